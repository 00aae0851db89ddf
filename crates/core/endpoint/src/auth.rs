//! Authentication (docs/reference/wire.md, "Authentication"): keyed BLAKE3 as MAC, which requires no unique nonce, and
//! for deriving keys. MACs are compared in constant time.
//!
//! HELLO, RETRY and WELCOME have the key of greetings; their number is 0, and nonce and cookie refuse replays. All
//! others have the keys of their connection and direction, and numbers from 1. Where ranks have a secret each, a
//! caller uses that of the rank it calls.
//!
//! **What follows a header** with flag 128: its number (8 bytes), with flag 64 the MAC of the payload (12), the MAC
//! (12). The check field is zero but in greetings. The MAC covers the header, number and payload's MAC, without bytes
//! 4 to 11 (the connection number is in the key), of greetings all but the check: 64 bytes of data, one block of
//! BLAKE3. Padding is not covered. Flags 1 and 2 of greetings state what their sender authenticates: 0 nothing, 1
//! `control`, 2 `all`.

use crate::header::{Protection, Sealed, TAG_BYTES, Tag};
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A key that two endpoints share. It is never printed.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; 32]);

impl Key {
    /// Derives the key of a secret of any length; less than 16 unpredictable bytes make no sense.
    pub fn of(secret: &[u8]) -> Self {
        Key(blake3::derive_key("anabranch wire 2 shared key", secret))
    }

    /// For HELLO, RETRY and WELCOME, which precede the exchange of nonces.
    fn greetings(&self) -> PacketKey {
        PacketKey(blake3::derive_key("anabranch wire 2 greetings", &self.0))
    }

    fn packets(&self, from: Side, to: Side) -> DirectionKeys {
        let mut hasher = blake3::Hasher::new_derive_key("anabranch wire 2 packets");
        hasher.update(&self.0);
        for Side { nonce, connection } in [from, to] {
            hasher.update(&nonce.to_be_bytes()).update(&connection.to_be_bytes());
        }
        let mut keys = Zeroizing::new([0; 64]);
        hasher.finalize_xof().fill(&mut *keys);
        hasher.zeroize();
        let half = |from: usize| PacketKey(std::array::from_fn(|at| keys[from + at]));
        DirectionKeys { headers: half(0), payloads: half(32) }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) nonce: u64,
    /// Assigned by this endpoint to the other one.
    pub(crate) connection: u32,
}

#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct PacketKey([u8; 32]);

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PacketKey")
    }
}

fn truncated(hash: &blake3::Hash) -> Tag {
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(&hash.as_bytes()[..TAG_BYTES]);
    tag
}

impl PacketKey {
    pub(crate) fn mac(&self, bytes: &[u8]) -> Tag {
        truncated(&blake3::keyed_hash(&self.0, bytes))
    }

    pub(crate) fn mac_of(&self, head: &[u8], rest: &[u8]) -> Tag {
        if head.is_empty() {
            return self.mac(rest);
        }
        truncated(&blake3::Hasher::new_keyed(&self.0).update(head).update(rest).finalize())
    }

    fn is_mac(&self, bytes: &[u8], tag: &Tag) -> bool {
        constant_time_eq::constant_time_eq_n(&self.mac(bytes), tag)
    }
}

#[derive(Clone, Debug)]
struct DirectionKeys {
    headers: PacketKey,
    payloads: PacketKey,
}

impl DirectionKeys {
    fn opens(&self, sealed: &Sealed<'_>) -> bool {
        let payload = sealed.payload.is_none_or(|(payload, tag)| self.payloads.is_mac(payload, &tag));
        sealed.is_covered(|covered| self.headers.is_mac(covered, &sealed.tag)) && payload
    }
}

/// The endpoint's own key and, for a peer that it calls, that peer's.
#[derive(Clone, Debug)]
pub(crate) struct GreetingKeys {
    own: PacketKey,
    peer: Option<PacketKey>,
}

impl GreetingKeys {
    pub(crate) fn new(own: &Key, peer: Option<&Key>) -> Self {
        GreetingKeys { own: own.greetings(), peer: peer.filter(|peer| *peer != own).map(Key::greetings) }
    }

    pub(crate) fn sending(&self) -> &PacketKey {
        self.peer.as_ref().unwrap_or(&self.own)
    }

    pub(crate) fn opens(&self, sealed: &Sealed<'_>) -> bool {
        sealed.is_covered(|covered| {
            let fits = |key: &PacketKey| key.is_mac(covered, &sealed.tag);
            fits(&self.own) || self.peer.as_ref().is_some_and(fits)
        })
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    sending: DirectionKeys,
    /// Under the local key and, if set, the peer's; `usual`: the index of those that verified the last packet.
    receiving: Vec<DirectionKeys>,
    usual: usize,
    sides: [Side; 2],
    next: u64,
    window: Window,
    pub(crate) protection: Protection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The MAC does not match, or that of the payload is missing.
    Forged,
    /// The number has been received, or is too old to be checked.
    Replayed,
}

impl Session {
    /// Packets to send are sealed with the key of the peer if it is known, else with the local one, by which that peer
    /// has called.
    pub(crate) fn new(own: &Key, peer: Option<&Key>, here: Side, there: Side, protection: Protection) -> Self {
        let peer = peer.filter(|peer| *peer != own);
        let sending = peer.unwrap_or(own).packets(here, there);
        let receiving = std::iter::once(own).chain(peer).map(|key| key.packets(there, here)).collect();
        let sides = [here, there];
        Session { sending, receiving, usual: 0, sides, next: 0, window: Window::default(), protection }
    }

    /// Packet numbers and the replay window continue.
    pub(crate) fn with_peer_key(self, own: &Key, peer: Option<&Key>) -> Self {
        let [here, there] = self.sides;
        Session { next: self.next, window: self.window, ..Session::new(own, peer, here, there, self.protection) }
    }

    pub(crate) fn sides(&self) -> [Side; 2] {
        self.sides
    }

    /// 64 bits are never exhausted.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn headers(&self) -> &PacketKey {
        &self.sending.headers
    }

    /// `None` if payloads are not authenticated.
    pub(crate) fn payload_tag(&self, head: &[u8], rest: &[u8]) -> Option<Tag> {
        (self.protection == Protection::All).then(|| self.sending.payloads.mac_of(head, rest))
    }

    pub(crate) fn open(&mut self, sealed: &Sealed<'_>) -> Result<(), Rejected> {
        if self.protection == Protection::All && sealed.is_data && !sealed.has_payload_tag {
            return Err(Rejected::Forged);
        }
        // Precedes the MAC, so that a flood of recorded packets costs little.
        if !self.window.may_be_new(sealed.number) {
            return Err(Rejected::Replayed);
        }
        if !self.receiving[self.usual].opens(sealed) {
            let other = (0..self.receiving.len()).find(|at| *at != self.usual && self.receiving[*at].opens(sealed));
            self.usual = other.ok_or(Rejected::Forged)?;
        }
        self.window.note(sealed.number);
        Ok(())
    }
}

/// Accepted packets behind the newest one: those of a slow path among fast ones.
const WINDOW: u64 = 1 << 16;

/// Replay window (RFC 4303, section 3.4.3): a bitmap that slides with the highest number.
#[derive(Debug, Default)]
struct Window {
    /// Highest number received, plus one.
    next: u64,
    /// By remainder; empty before the first packet.
    seen: Vec<u64>,
}

impl Window {
    fn place(number: u64) -> (usize, u64) {
        ((number % WINDOW / 64) as usize, 1 << (number % 64))
    }

    fn may_be_new(&self, number: u64) -> bool {
        if number >= self.next {
            return number < u64::MAX;
        }
        let (word, bit) = Self::place(number);
        self.next - number <= WINDOW && self.seen[word] & bit == 0
    }

    fn note(&mut self, number: u64) {
        if self.seen.is_empty() {
            self.seen = vec![0; (WINDOW / 64) as usize];
        }
        if number >= self.next {
            if number - self.next >= WINDOW {
                self.seen.fill(0);
            } else {
                for passed in self.next..number {
                    let (word, bit) = Self::place(passed);
                    self.seen[word] &= !bit;
                }
            }
            self.next = number + 1;
        }
        let (word, bit) = Self::place(number);
        self.seen[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_random::Stream;
    use std::collections::BTreeSet;

    #[test]
    fn replay_window_accepts_each_number_once() {
        let mut draws = Stream::keyed(1, 2, "window");
        let (mut window, mut seen, mut highest) = (Window::default(), BTreeSet::new(), 0);
        for step in 0..200_000u64 {
            let number = match draws.below(10) {
                0 => draws.below(highest + 10),
                1 if step % 1000 == 0 => highest + draws.below(3 * WINDOW),
                _ => (highest + 4).saturating_sub(draws.below(200)),
            };
            let is_old = highest >= WINDOW && number <= highest - WINDOW;
            let expected = !is_old && !seen.contains(&number);
            assert_eq!(window.may_be_new(number), expected, "{number} after {highest}");
            if expected {
                window.note(number);
                seen.insert(number);
                highest = highest.max(number);
            }
        }
        assert!(seen.len() > 10_000 && highest > WINDOW);
        assert!(!window.may_be_new(u64::MAX));
    }

    #[test]
    fn each_direction_connection_and_key_has_its_own_mac() {
        let side = |nonce, connection| Side { nonce, connection };
        let (one, other) = (Key::of(b"one"), Key::of(b"other"));
        let tag = |key: &Key, from, to| key.packets(from, to).headers.mac(b"x");
        let usual = tag(&one, side(1, 2), side(3, 4));
        let others = [
            tag(&other, side(1, 2), side(3, 4)),
            tag(&one, side(3, 4), side(1, 2)),
            tag(&one, side(1, 3), side(3, 4)),
            tag(&one, side(1, 2), side(3, 5)),
            tag(&one, side(2, 2), side(3, 4)),
            one.packets(side(1, 2), side(3, 4)).payloads.mac(b"x"),
            one.greetings().mac(b"x"),
        ];
        assert!(others.iter().all(|other| *other != usual));
        assert_eq!(tag(&one, side(1, 2), side(3, 4)), usual);
        assert_eq!(format!("{one:?} {:?}", one.greetings()), "Key PacketKey", "no key is ever printed");
    }
}
