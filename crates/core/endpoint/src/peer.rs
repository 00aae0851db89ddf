//! What an endpoint knows of another one.

use crate::{
    auth::{GreetingKeys, Key, PacketKey, Session, Side},
    header::{Cookie, Greeting, Protection},
    stream::{Incoming, Outgoing, Stored},
};
use anabranch_units::Time;
use std::{collections::BTreeMap, net::IpAddr};

/// Round trips without which nothing is said of a window.
const FEWEST: u64 = 64;

/// How far two endpoints know each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// We have been greeted and wait for whatever comes.
    #[default]
    Greeted,
    /// We say hello until we are welcome.
    Greeting,
    /// We measure the base round trip.
    Calibrating,
    /// Streams are open.
    Open,
}

/// What a peer's address, once more, has said in a HELLO with a valid cookie: the process there has started anew, or somebody has replayed
/// a HELLO of an earlier one. It takes the place of the peer when it sends with the connection number of its WELCOME, which only it has
/// received.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) ours: u32,
    pub(crate) nonce: u64,
    pub(crate) greeting: Greeting,
    pub(crate) session: Option<Box<Session>>,
}

/// What a probe of the scheme's size measures on the empty network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeBase {
    /// Bytes of its datagram; 0: none shorter than a full packet has been measured.
    pub(crate) datagram: usize,
    /// By how much the base round trip of a full packet is longer.
    pub(crate) longer: Time,
}

/// What seals a datagram to a peer that is forgotten by the time it leaves.
#[derive(Clone, Debug)]
pub(crate) struct LastSeal {
    pub(crate) key: PacketKey,
    pub(crate) number: u64,
}

/// Another endpoint.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    pub(crate) phase: Phase,
    /// Where it connected from; `None`: we have called it, or the datapath vouches for it.
    pub(crate) host: Option<IpAddr>,
    /// It has sent something with our connection number.
    pub(crate) is_proven: bool,
    pub(crate) made_at: Time,
    pub(crate) candidate: Option<Box<Candidate>>,
    /// What our next HELLO carries, and over which label.
    pub(crate) cookie: Option<(Cookie, u32)>,
    /// Packets to it that wait to go before all data.
    pub(crate) control: usize,
    /// What its datagrams must carry, and ours to it.
    pub(crate) ours: u32,
    pub(crate) theirs: u32,
    /// Of our hello, and of its.
    pub(crate) nonce: u64,
    pub(crate) their_nonce: Option<u64>,
    /// Largest message that it takes, and packets that a stream to it may have under way.
    pub(crate) most_message: u64,
    pub(crate) span: u64,
    /// Paths that are wanted towards it, each by the labels that lead over it; empty: every label is one.
    pub(crate) wanted: Vec<Vec<u32>>,
    /// The paths that schemes choose from: those of them that both endpoints have a label of.
    pub(crate) paths: Vec<Vec<u32>>,
    /// Labels that both have.
    pub(crate) labels: u32,
    /// Questions asked so far, hellos or calibrations, of which one is open.
    pub(crate) asked: u32,
    pub(crate) hellos: Hellos,
    pub(crate) samples: Vec<Time>,
    /// Round trips of the scheme's probes, where they are shorter than full packets.
    pub(crate) probe_samples: Vec<Time>,
    pub(crate) probe_base: ProbeBase,
    pub(crate) base_rtt: Time,
    pub(crate) noise: Time,
    /// The base round trip and noise floor that its streams were told.
    pub(crate) told: Time,
    /// The shortest round trip of a full packet since `window_since`, and how many there were.
    shortest: Time,
    window_since: Time,
    full_packets: u64,
    /// Streams to it by number: where they are among the flows.
    pub(crate) streams: BTreeMap<u32, u32>,
    /// Streams that wait until they can open.
    pub(crate) waiting: Vec<Outgoing>,
    /// Streams from it.
    pub(crate) incoming: BTreeMap<u32, Incoming>,
    /// Bytes that messages from it may come to hold: each of them whole.
    pub(crate) reserved: u64,
    /// Memory that they do hold, and since when without a good part of it having become whole.
    pub(crate) stored: Stored,
    /// Bytes of messages from it that have become whole.
    pub(crate) delivered: u64,
    pub(crate) stored_since: Time,
    /// Since when it owes an answer.
    pub(crate) quiet_since: Option<Time>,
    /// When something of it last arrived.
    pub(crate) heard_at: Time,
    /// When its pending timer strikes.
    pub(crate) timer_at: Time,
    /// The key that it is called by, where that is not ours.
    pub(crate) key: Option<Key>,
    pub(crate) greeting_keys: Option<Box<GreetingKeys>>,
    /// What its packets and ours to it are authenticated with.
    pub(crate) session: Option<Box<Session>>,
    /// The traffic class of what is said to it besides messages that have one of their own.
    pub(crate) class: u8,
}

impl Peer {
    pub(crate) fn new(phase: Phase, ours: u32, nonce: u64, now: Time) -> Self {
        Peer {
            phase,
            made_at: now,
            ours,
            nonce,
            most_message: u64::MAX,
            span: 1,
            paths: vec![vec![0]],
            labels: 1,
            shortest: Time::MAX,
            window_since: now,
            stored_since: now,
            heard_at: now,
            timer_at: Time::MAX,
            ..Peer::default()
        }
    }

    /// Takes what its greeting says; `span` and `labels` are our own limits.
    pub(crate) fn meet(&mut self, greeting: &Greeting, span: u32, labels: u32) {
        (self.theirs, self.most_message) = (greeting.connection, greeting.most_message);
        self.span = u64::from(greeting.span.min(span));
        self.have_labels(labels.min(u32::from(greeting.labels)));
    }

    /// Both ends have so many labels.
    pub(crate) fn have_labels(&mut self, labels: u32) {
        self.labels = labels;
        let known = |path: &Vec<u32>| path.iter().copied().filter(|label| *label < labels).collect::<Vec<u32>>();
        self.paths = self.wanted.iter().map(known).filter(|path| !path.is_empty()).collect();
        if self.paths.is_empty() {
            self.paths = (0..labels).map(|label| vec![label]).collect();
        }
    }

    /// The label of a path and of an entropy value, which chooses among those that lead over it.
    pub(crate) fn label(&self, path: u32, entropy: u32) -> u32 {
        let labels = &self.paths[path as usize % self.paths.len()];
        labels[entropy as usize % labels.len()]
    }

    /// The base round trip is the shortest that was seen; nine of ten were within the noise floor above it, which is
    /// `least` at least.
    pub(crate) fn calibrate(&mut self, least: Time) {
        self.samples.sort_unstable();
        let base = self.samples.first().copied().unwrap_or(Time::from_us(100));
        let nine_of_ten = self.samples.len().saturating_sub(1) * 9 / 10;
        let usual = self.samples.get(nine_of_ten).copied().unwrap_or(base);
        (self.base_rtt, self.noise) = (base, usual.saturating_sub(base).max(least));
        self.told = self.base_rtt + self.noise;
        let shortest = self.probe_samples.iter().min().copied().unwrap_or(base);
        self.probe_base.longer = base.saturating_sub(shortest);
    }

    /// A full packet has been there and back at `now`. True where the base round trip has changed by more than noise: it falls
    /// at once, and rises to the shortest one of a whole `window`.
    pub(crate) fn note_round_trip(&mut self, now: Time, rtt: Time, window: Time) -> bool {
        self.shortest = self.shortest.min(rtt);
        self.full_packets += 1;
        let much = (self.noise / 2).max(self.base_rtt / 16);
        if rtt.saturating_add(much) < self.base_rtt {
            self.base_rtt = rtt;
            return true;
        }
        if now.saturating_sub(self.window_since) < window || self.full_packets < FEWEST {
            return false;
        }
        let shortest = std::mem::replace(&mut self.shortest, Time::MAX);
        (self.window_since, self.full_packets) = (now, 0);
        let rises = shortest > self.base_rtt + much;
        if rises {
            self.base_rtt = shortest;
        }
        rises
    }

    /// The keys of greetings, made when they are first needed.
    pub(crate) fn greeting_keys(&mut self, own: &Key) -> &GreetingKeys {
        let key = self.key.as_ref();
        self.greeting_keys.get_or_insert_with(|| Box::new(GreetingKeys::new(own, key)))
    }

    /// The keys of packets with this connection number: of the peer, or of whoever may take its place.
    pub(crate) fn session_of(&mut self, connection: u32) -> Option<&mut Box<Session>> {
        match &mut self.candidate {
            Some(candidate) if candidate.ours == connection => candidate.session.as_mut(),
            _ => self.session.as_mut(),
        }
    }

    pub(crate) fn derive(&mut self, own: &Key, greeting: &Greeting, protection: Protection) {
        let here = Side { nonce: self.nonce, connection: self.ours };
        let there = Side { nonce: greeting.own_nonce, connection: greeting.connection };
        // What is said twice begins nothing anew: numbers would repeat, and the window would forget what has come.
        if self.session.as_ref().is_none_or(|session| session.sides() != [here, there]) {
            self.session = Some(Box::new(Session::new(own, self.key.as_ref(), here, there, protection)));
        }
    }

    /// What seals the last datagram to this peer.
    pub(crate) fn last_seal(&mut self) -> Option<Box<LastSeal>> {
        let session = self.session.as_mut()?;
        let number = session.number();
        Some(Box::new(LastSeal { key: session.headers().clone(), number }))
    }
}

/// Which HELLOs to a peer were answered. One of several is short, to tell a path that drops large packets from one that drops all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hellos {
    /// The last one was short.
    pub(crate) is_short: bool,
    /// A full one was answered.
    pub(crate) full_answered: bool,
    /// When the first short one was.
    pub(crate) short_answered_at: Option<Time>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_round_trip_follows_the_network() {
        let (window, us) = (Time::from_us(10_000), Time::from_us);
        let mut peer = Peer::new(Phase::Open, 1, 1, Time::ZERO);
        // 16 samples of 100 to 115 us: nine of ten are within 13 us.
        peer.samples = (0..16).map(|sample| us(100 + sample)).collect();
        peer.calibrate(Time::ZERO);
        assert_eq!((peer.base_rtt, peer.noise), (us(100), us(13)));
        // Half of the noise more or less changes nothing.
        assert!(!peer.note_round_trip(us(1), us(94), window));
        assert!(peer.note_round_trip(us(2), us(90), window), "shorter by more");
        assert_eq!(peer.base_rtt, us(90));
        // All of a window are longer: the network's path has changed. The window before holds the 90 us.
        let mut rose = Vec::new();
        for step in 1..300u64 {
            let now = us(step * 100);
            if peer.note_round_trip(now, us(150 + step % 7), window) {
                rose.push((now, peer.base_rtt));
            }
        }
        assert_eq!(rose, [(us(20_000), us(150))]);
    }
}
