//! Packets that no longer pass while small ones do (black holes of RFC 8899, section 4.3): probes find the largest datagram
//! with a reply, and packets are sent in fragments of that size.

use super::{
    control::Control,
    peers,
    state::{State, Timer},
};
use crate::{
    event::{CloseReason, Event, Sizes},
    fragments::Search,
    header,
    peer::Phase,
};
use anabranch_units::Time;
use std::cmp::Reverse;

/// Stream number of the probes, whose tag is an index into [`FRAGMENTS`], [`BARE`] or [`BARE_ECN`].
pub(super) const SIZES: u32 = u32::MAX - 2;
/// Tags of the probe without padding, and of the same one that is ECN-capable.
const BARE: usize = FRAGMENTS.len();
const BARE_ECN: usize = BARE + 1;
/// Numbers of fragments that a packet may have; the first is the packet as it is.
const FRAGMENTS: [u8; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// Probes of a size without a reply after which it counts as dropped (`MAX_PROBES` of RFC 8899, section 5.1.2).
const MAX_PROBES: u32 = 3;
/// Time for which datagrams leave one by one after timeouts between which less arrived than was lost.
pub(super) const SINGLE: Time = Time::from_us(1_000_000);
/// Minimum time between two searches of a peer.
const INTERVAL: Time = Time::from_us(1_000_000);

fn probe_of(state: &State, tag: usize) -> usize {
    let seal = if state.settings.key.is_some() { header::SEAL } else { 0 };
    FRAGMENTS.get(tag).map_or(header::ECHO_BYTES + seal, |fragments| state.datagram_of(*fragments))
}

/// Searches if the peer has acknowledged nothing new since `since`, or loses the peer if that is longer than its timeout, or if
/// it `is_silent` for as long. Returns `false` if the peer is lost.
pub(super) fn note_stall(state: &mut State, peer: u32, since: Time, label: u32, is_silent: bool, now: Time) -> bool {
    let pause = state.settings.request_timeout + state.pace(1, state.longest_datagram_to(peer), now);
    let stalled = now.saturating_sub(since);
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return false };
    if is_silent || stalled > state.settings.peer_timeout {
        // What an earlier search found is not the reason.
        let found = known.sizes.filter(|sizes| sizes.passes > 0 && known.next_search_at > since);
        // Its own datagrams may be what the path drops.
        peers::leave(state, peer, Some(found.unwrap_or_default()));
        let reason = found.map_or(CloseReason::TimedOut, CloseReason::Stalled);
        state.events.push_back(Event::Lost { peer, reason });
        return false;
    }
    if stalled >= pause && !state.settings.is_reliable && known.search.is_none() && now >= known.next_search_at {
        known.search = Some(Box::new(Search { label, ..Search::default() }));
        send_probes(state, peer, now);
    }
    true
}

/// Searches before the first calibration: full HELLOs had no reply.
pub(super) fn search_first(state: &mut State, peer: u32, label: u32, now: Time) {
    if let Some(Some(known)) = state.peers.get_mut(peer as usize) {
        known.search = Some(Box::new(Search { label, ..Search::default() }));
    }
    send_probes(state, peer, now);
}

/// Sends a probe of each size: those that are dropped sooner first, so that a slow reply is not taken for a dropped probe.
fn send_probes(state: &mut State, peer: u32, now: Time) {
    let Some(known) = state.peer(peer) else { return };
    let is_sent = |tag: &usize| FRAGMENTS.get(*tag).is_none_or(|fragments| *fragments >= known.fragments);
    let ecn = known.uses_ecn(&state.settings).then_some(BARE_ECN);
    let tags = (0..BARE).filter(is_sent).chain(ecn).chain([BARE]);
    let probes: Vec<(usize, usize)> = tags.map(|tag| (tag, probe_of(state, tag))).collect();
    let bytes = probes.iter().map(|(_, size)| size).sum();
    let wait = state.settings.request_timeout.max(known.initial_rtt * 2) + state.pace(probes.len(), bytes, now);
    let Some(search) = state.peers[peer as usize].as_mut().and_then(|known| known.search.as_mut()) else { return };
    (search.sent, search.due) = (search.sent + 1, now + wait);
    let (label, due) = (search.label, search.due);
    state.timers.push(Reverse((due, Timer::Search { peer })));
    for (tag, size) in probes {
        let ecn = tag == BARE_ECN;
        state.send_control(peer, label, Control::Probe { stream: SIZES, tag: tag as u32, size, ecn });
    }
}

pub(super) fn on_echo(state: &mut State, now: Time, peer: u32, tag: u32) {
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    let has_ecn = !known.uses_ecn(&state.settings);
    let Some(search) = known.search.as_mut().filter(|_| tag as usize <= BARE_ECN) else { return };
    search.echoed |= 1 << tag;
    let passes = |tag: usize| search.echoed >> tag & 1 == 1;
    if FRAGMENTS.iter().position(|of| *of == known.fragments).is_some_and(passes) && (has_ecn || passes(BARE_ECN)) {
        end(state, peer, now);
    }
}

pub(super) fn on_timer(state: &mut State, peer: u32, at: Time, now: Time) {
    let Some(search) = state.peer(peer).and_then(|known| known.search.as_ref()).filter(|search| search.due == at)
    else {
        return;
    };
    if search.sent < MAX_PROBES { send_probes(state, peer, now) } else { end(state, peer, now) }
}

/// Takes the largest datagram with a reply.
fn end(state: &mut State, peer: u32, now: Time) {
    let Some((known, search)) = state.peer(peer).and_then(|known| Some((known, known.search.as_ref()?))) else {
        return;
    };
    let drops_ecn = search.echoed >> BARE & 3 == 1 && known.uses_ecn(&state.settings);
    let tag = search.echoed.trailing_zeros() as usize;
    let smaller = FRAGMENTS.get(tag).copied().filter(|fragments| *fragments > known.fragments);
    let passes = if tag <= BARE { probe_of(state, tag) as u32 } else { 0 };
    let fails = match smaller {
        Some(_) => state.datagram_of(known.fragments) as u32,
        None if tag == BARE => probe_of(state, tag - 1) as u32,
        // That of an earlier search.
        None => known.sizes.map_or(0, |sizes| sizes.fails),
    };
    let sizes = Sizes { passes, fails };
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    (known.search, known.next_search_at, known.sizes) = (None, now + INTERVAL, Some(sizes));
    known.drops_ecn |= drops_ecn;
    known.fragments = smaller.unwrap_or(known.fragments);
    state.events.extend(drops_ecn.then_some(Event::EcnDropped { peer }));
    state.events.extend(smaller.map(|_| Event::Fragmented { peer, sizes }));
    if state.peer(peer).is_some_and(|known| known.phase == Phase::Calibrating) {
        peers::send_request(state, peer, now);
    }
}
