use crate::{
    Settings, Source,
    auth::{GreetingKeys, Key, PacketKey, Session, Side},
    event::Sizes,
    fragments::{Incomplete, Search},
    header::{Cookie, Greeting, Protection},
    stream::{Incoming, Outgoing, Stored},
    transmissions::Transmissions,
};
use anabranch_units::{Rate, Time};
use std::{collections::BTreeMap, net::IpAddr};

/// Minimum round trips in a window before the base round trip may rise.
const MIN_SAMPLES: u64 = 64;
/// Paths that are tried before the base round trip rises.
const CHECKS: u64 = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The peer has sent its greeting; the local endpoint only listens.
    #[default]
    Greeted,
    Greeting,
    Calibrating,
    Open,
}

/// A greeting with a valid cookie from the address of a peer: its process has restarted, or an earlier HELLO is
/// replayed. It replaces the peer when it sends with the connection number of its WELCOME.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) ours: u32,
    pub(crate) nonce: u64,
    pub(crate) greeting: Greeting,
    pub(crate) session: Option<Box<Session>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeBase {
    /// 0: none shorter than a full packet has been measured.
    pub(crate) datagram: usize,
    /// Excess of the base round trip of a full packet over that of the probe.
    pub(crate) longer: Time,
}

/// For a peer whose state is dropped before the datagram leaves.
#[derive(Clone, Debug)]
pub(crate) struct LastSeal {
    pub(crate) key: PacketKey,
    pub(crate) number: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Peer {
    pub(crate) phase: Phase,
    /// `None`: the local endpoint has called it, or the datapath vouches for it.
    pub(crate) host: Option<IpAddr>,
    /// Address in each plane that it has greeted from, or else first sent from with the local connection number. Ports of
    /// its labels may differ from those that the datapath expects.
    pub(crate) ips: Vec<Option<IpAddr>>,
    /// As of its last datagram ([`Source::is_same_host`]).
    pub(crate) is_same_host: bool,
    /// It has sent a datagram with the local connection number.
    pub(crate) is_proven: bool,
    pub(crate) made_at: Time,
    pub(crate) candidate: Option<Box<Candidate>>,
    /// Of the next HELLO, with its label.
    pub(crate) cookie: Option<(Cookie, u32)>,
    pub(crate) control: usize,
    /// Connection number that its datagrams carry; `theirs`: the one of datagrams to it.
    pub(crate) ours: u32,
    pub(crate) theirs: u32,
    pub(crate) nonce: u64,
    pub(crate) their_nonce: Option<u64>,
    /// Maximum message that it accepts, in bytes; `span`: maximum packets of a stream to it under way.
    pub(crate) max_message: u64,
    pub(crate) span: u64,
    /// The local endpoint has called it.
    pub(crate) is_called: bool,
    /// Each as the labels that lead over it; empty: every label is a path.
    pub(crate) requested_paths: Vec<Vec<u32>>,
    /// Of requested paths; empty: unknown.
    pub(crate) path_rates: Vec<Rate>,
    /// Of each path its number among the requested ones, if it is one.
    numbers: Vec<Option<usize>>,
    /// Schemes choose from these: the requested ones with at least one label that both endpoints have.
    pub(crate) paths: Vec<Vec<u32>>,
    /// Labels that both endpoints have, and planes: label `i` is of plane `i` modulo their number.
    pub(crate) labels: u32,
    pub(crate) planes: u32,
    /// Number of planes with a path: path `i` is in the one of number `i` modulo it.
    pub(crate) live_planes: u32,
    /// `true` for labels over which a reply has come: the others are probed, and carry nothing else.
    answered: Vec<bool>,
    /// Rounds of these probes, and the time of the last.
    pub(crate) sweeps: u32,
    pub(crate) swept_at: Time,
    /// The last datagram from it has come over this label.
    pub(crate) last_label: u32,
    /// HELLOs or calibration probes so far, of which one is outstanding.
    pub(crate) requests_sent: u32,
    /// Calibration probes.
    pub(crate) requests: Transmissions,
    /// Label of the last.
    pub(crate) requested_over: u32,
    pub(crate) hellos: Hellos,
    /// Datagrams of a full packet to it.
    pub(crate) fragments: u8,
    pub(crate) search: Option<Box<Search>>,
    pub(crate) next_search_at: Time,
    /// End of the time for which its datagrams leave one by one.
    pub(crate) single_until: Time,
    /// What the last search has found.
    pub(crate) sizes: Option<Sizes>,
    /// The path to it drops what is ECN-capable.
    pub(crate) drops_ecn: bool,
    /// Time since which no calibration probe had a reply.
    pub(crate) stalled_since: Option<Time>,
    /// Packets from it of which fragments are missing.
    pub(crate) incomplete: Vec<Incomplete>,
    /// Round trips of full packets, and their labels.
    pub(crate) samples: Vec<(Time, u32)>,
    /// Of the scheme's probes, if they are shorter than full packets.
    pub(crate) probe_samples: Vec<Time>,
    pub(crate) probe_base: ProbeBase,
    pub(crate) base_rtt: Time,
    pub(crate) noise: Time,
    /// Base round trip plus noise floor that its streams opened with.
    pub(crate) initial_rtt: Time,
    /// Of full packets since `window_since`; `full_packets`: their number.
    shortest: Time,
    window_since: Time,
    full_packets: u64,
    /// Paths tried in it.
    checks: u32,
    /// Slots among the flows, by stream.
    pub(crate) streams: BTreeMap<u32, u32>,
    pub(crate) waiting: Vec<Outgoing>,
    pub(crate) incoming: BTreeMap<u32, Incoming>,
    /// Bytes of messages from it, each at its full length.
    pub(crate) reserved: u64,
    /// Memory of these messages; `stored_since`: since when without a significant part of it having become complete.
    pub(crate) stored: Stored,
    pub(crate) delivered: u64,
    /// Memory of its streams, without messages.
    pub(crate) kept: u64,
    pub(crate) stored_since: Time,
    pub(crate) awaiting_since: Option<Time>,
    pub(crate) last_received_at: Time,
    pub(crate) timer_at: Time,
    /// Key by which it is called, if not the local one.
    pub(crate) key: Option<Key>,
    pub(crate) greeting_keys: Option<Box<GreetingKeys>>,
    pub(crate) session: Option<Box<Session>>,
    /// Except for messages with their own class.
    pub(crate) class: u8,
    /// Parts of its BYE that have arrived, as bits.
    pub(crate) byes: u64,
}

impl Peer {
    pub(crate) fn new(phase: Phase, ours: u32, nonce: u64, now: Time) -> Self {
        Peer {
            phase,
            made_at: now,
            ours,
            nonce,
            max_message: u64::MAX,
            span: 1,
            fragments: 1,
            paths: vec![vec![0]],
            labels: 1,
            planes: 1,
            live_planes: 1,
            answered: vec![false],
            shortest: Time::MAX,
            window_since: now,
            stored_since: now,
            last_received_at: now,
            timer_at: Time::MAX,
            ..Peer::default()
        }
    }

    /// `span` and `labels` are the local limits.
    pub(crate) fn apply_greeting(&mut self, greeting: &Greeting, span: u32, labels: u32) {
        (self.theirs, self.max_message) = (greeting.connection, greeting.max_message);
        self.span = u64::from(greeting.span.min(span));
        let labels = labels.min(u32::from(greeting.labels));
        // A repeated greeting must not reset them.
        if labels != self.labels {
            self.set_labels(labels);
        }
    }

    pub(crate) fn set_labels(&mut self, labels: u32) {
        self.labels = labels;
        self.answered.clear();
        self.answered.resize(labels as usize, false);
        self.set_paths();
    }

    /// Of requested paths, or of labels, those over which a reply has come; all until then.
    pub(crate) fn set_paths(&mut self) {
        let is_any = self.answered.contains(&true);
        let may = |label: &u32| self.answered.get(*label as usize).is_some_and(|answered| *answered || !is_any);
        let of =
            |(number, path): (usize, &Vec<u32>)| (path.iter().copied().filter(may).collect::<Vec<u32>>(), Some(number));
        let mut paths: Vec<(Vec<u32>, Option<usize>)> =
            self.requested_paths.iter().enumerate().map(of).filter(|(path, _)| !path.is_empty()).collect();
        if paths.is_empty() {
            paths = (0..self.labels).filter(may).map(|label| (vec![label], None)).collect();
        }
        self.live_planes = 1;
        if self.planes > 1 {
            let plane_of = |path: &[u32]| path.first().map_or(0, |label| label % self.planes);
            let mut planes = vec![Vec::new(); self.planes as usize];
            paths.drain(..).for_each(|path| planes[plane_of(&path.0) as usize].push(path));
            planes.retain(|plane| !plane.is_empty());
            // Every plane has as many paths: those of one with fewer are repeated.
            let most = planes.iter().map(Vec::len).max().unwrap_or(0);
            let of = |number: usize| planes.iter().map(move |plane| plane[number % plane.len()].clone());
            paths = (0..most).flat_map(of).collect();
            self.live_planes = planes.len() as u32;
        }
        (self.paths, self.numbers) = paths.into_iter().unzip();
    }

    /// Returns the rate of each path; empty: unknown.
    pub(crate) fn rates(&self) -> Vec<Rate> {
        let of = |number: &Option<usize>| number.and_then(|number| self.path_rates.get(number).copied());
        self.numbers.iter().map(of).collect::<Option<_>>().unwrap_or_default()
    }

    /// Returns `true` if datagrams over this label may come from this address.
    pub(crate) fn is_address(&self, label: u32, ip: IpAddr) -> bool {
        let known = self.ips.get((label % self.planes) as usize).copied().flatten();
        known.map_or(self.planes > 1, |known| known == ip)
    }

    /// The peer has sent from this address over a label.
    pub(crate) fn note_address(&mut self, label: u32, from: Option<Source>) {
        self.ips.resize(self.planes as usize, None);
        self.ips[(label % self.planes) as usize] = from.map(|from| from.at.ip());
    }

    /// Returns `true` if no reply had come over this label before.
    pub(crate) fn note_answer(&mut self, label: u32) -> bool {
        self.answered.get_mut(label as usize).is_some_and(|answered| !std::mem::replace(answered, true))
    }

    /// Returns the labels of all paths over which no reply has come.
    pub(crate) fn silent_labels(&self) -> Vec<u32> {
        let all = (0..self.labels).filter(|label| !self.answered[*label as usize]);
        let is_requested = |label: &u32| self.requested_paths.iter().any(|path| path.contains(label));
        all.filter(|label| self.requested_paths.is_empty() || is_requested(label)).collect()
    }

    pub(crate) fn is_measured(&self, required: usize) -> bool {
        self.samples.len() >= required && (self.probe_base.datagram == 0 || self.probe_samples.len() >= required)
    }

    /// Label of the HELLO of this number: of each requested path in turn, else of all `labels` of the local endpoint.
    pub(crate) fn greeting_label(&self, number: u32, labels: u32) -> u32 {
        let paths = self.requested_paths.len() as u32;
        if paths == 0 {
            return number % labels;
        }
        let path = &self.requested_paths[(number % paths) as usize];
        path.get((number / paths) as usize % path.len().max(1)).copied().unwrap_or_default().min(labels - 1)
    }

    /// The entropy value selects among the labels of the path.
    pub(crate) fn label(&self, path: u32, entropy: u32) -> u32 {
        let labels = &self.paths[path as usize % self.paths.len()];
        labels[entropy as usize % labels.len()]
    }

    /// Returns `true` if its datagrams leave one by one: what does not pass may be runs of them (GSO).
    pub(crate) fn is_single(&self, now: Time) -> bool {
        self.fragments > 1 || self.search.is_some() || now < self.single_until
    }

    pub(crate) fn uses_ecn(&self, settings: &Settings) -> bool {
        settings.ecn && !self.drops_ecn
    }

    /// Label of the next calibration probe: the first half of `required` full ones go over each path in turn, all others over the
    /// shortest of these, unless that does not reply. What is longer about other paths is no noise.
    pub(crate) fn calibration_label(&self, required: usize) -> u32 {
        let shortest = self.samples.iter().min();
        match shortest.filter(|_| self.samples.len() >= required.div_ceil(2) && self.stalled_since.is_none()) {
            Some((_, label)) => *label,
            None => self.next_label(),
        }
    }

    /// Label of the next request over each path in turn.
    pub(crate) fn next_label(&self) -> u32 {
        let paths = self.paths.len() as u32;
        self.label(self.requests_sent % paths, self.requests_sent / paths)
    }

    /// The base round trip is the shortest sample; nine of ten over its path are within the noise floor above it, which is at least
    /// `min_noise`.
    pub(crate) fn calibrate(&mut self, min_noise: Time) {
        self.samples.sort_unstable();
        let (base, label) = self.samples.first().copied().unwrap_or((Time::from_us(100), 0));
        let of_path: Vec<Time> = self.samples.iter().filter(|(_, of)| *of == label).map(|(rtt, _)| *rtt).collect();
        let nine_of_ten = of_path.len().saturating_sub(1) * 9 / 10;
        let usual = of_path.get(nine_of_ten).copied().unwrap_or(base);
        (self.base_rtt, self.noise) = (base, usual.saturating_sub(base).max(min_noise));
        self.initial_rtt = self.base_rtt + self.noise;
        let shortest = self.probe_samples.iter().min().copied().unwrap_or(base);
        self.probe_base.longer = base.saturating_sub(shortest);
    }

    /// Changes of the base round trip by less are noise.
    fn much(&self) -> Time {
        (self.noise / 2).max(self.base_rtt / 16)
    }

    /// Returns `true` if another path is to be tried: all full packets of the window so far were longer, and data may have taken one
    /// path alone.
    pub(crate) fn begin_check(&mut self, now: Time, window: Time) -> bool {
        if self.shortest == Time::MAX || self.shortest <= self.base_rtt + self.much() {
            return false;
        }
        let is_due = now.saturating_sub(self.window_since) >= window / (CHECKS + 1) * (u64::from(self.checks) + 1);
        self.checks += u32::from(is_due);
        is_due
    }

    /// Returns `true` if the base round trip has changed by more than noise. It falls at once, and rises to the
    /// shortest round trip of a whole `window`.
    pub(crate) fn note_round_trip(&mut self, now: Time, rtt: Time, window: Time) -> bool {
        self.shortest = self.shortest.min(rtt);
        self.full_packets += 1;
        let much = self.much();
        if rtt.saturating_add(much) < self.base_rtt {
            self.base_rtt = rtt;
            return true;
        }
        if now.saturating_sub(self.window_since) < window || self.full_packets < MIN_SAMPLES {
            return false;
        }
        let shortest = std::mem::replace(&mut self.shortest, Time::MAX);
        (self.window_since, self.full_packets, self.checks) = (now, 0, 0);
        let rises = shortest > self.base_rtt + much;
        if rises {
            self.base_rtt = shortest;
        }
        rises
    }

    pub(crate) fn greeting_keys(&mut self, own: &Key) -> &GreetingKeys {
        let key = self.key.as_ref();
        self.greeting_keys.get_or_insert_with(|| Box::new(GreetingKeys::new(own, key)))
    }

    /// The peer's, or its candidate's.
    pub(crate) fn session_of(&mut self, connection: u32) -> Option<&mut Box<Session>> {
        match &mut self.candidate {
            Some(candidate) if candidate.ours == connection => candidate.session.as_mut(),
            _ => self.session.as_mut(),
        }
    }

    pub(crate) fn derive(&mut self, own: &Key, greeting: &Greeting, protection: Protection) {
        let here = Side { nonce: self.nonce, connection: self.ours };
        let there = Side { nonce: greeting.own_nonce, connection: greeting.connection };
        // A repeated greeting must not reset packet numbers and the replay window.
        if self.session.as_ref().is_none_or(|session| session.sides() != [here, there]) {
            self.session = Some(Box::new(Session::new(own, self.key.as_ref(), here, there, protection)));
        }
    }

    pub(crate) fn last_seal(&mut self) -> Option<Box<LastSeal>> {
        let session = self.session.as_mut()?;
        let number = session.number();
        Some(Box::new(LastSeal { key: session.headers().clone(), number }))
    }
}

/// Sizes of HELLOs: some are short, since a path may drop large packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hellos {
    pub(crate) is_short: bool,
    /// Time of the first RETRY.
    pub(crate) reply_at: Option<Time>,
    /// No full one has led to a WELCOME for long.
    pub(crate) only_short: bool,
    /// Time of the last, and how many have repeated it since the WELCOME.
    pub(crate) sent_at: Time,
    pub(crate) repeated: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two paths in each of two planes, whose rates differ. Part 0 of a value names the plane.
    #[test]
    fn rates_follow_their_paths() {
        let mut peer = Peer::new(Phase::Open, 1, 1, Time::ZERO);
        peer.planes = 2;
        peer.requested_paths = vec![vec![0, 4], vec![2], vec![1], vec![3]];
        peer.path_rates = [10, 20, 30, 40].map(Rate::gbps).to_vec();
        peer.set_labels(6);
        let gbps = |peer: &Peer| peer.rates().iter().map(|rate| rate.0 / 1_000_000_000).collect::<Vec<_>>();
        assert_eq!((&peer.paths[..2], gbps(&peer)), (&[vec![0, 4], vec![1]][..], vec![10, 30, 20, 40]));
        // No reply over labels 2 and 4: plane 0 has one path, which comes twice.
        [0, 1, 3].iter().for_each(|label| assert!(peer.note_answer(*label)));
        peer.set_paths();
        assert_eq!((&peer.paths[..2], gbps(&peer)), (&[vec![0], vec![1]][..], vec![10, 30, 10, 40]));
        peer.path_rates.pop();
        assert_eq!(gbps(&peer), [0u64; 0], "unknown, as one of them is");
        // Without replies over requested paths labels are paths, whose rates are unknown.
        peer.requested_paths.clear();
        peer.set_labels(6);
        assert_eq!((peer.paths.len(), gbps(&peer)), (6, vec![]));
    }

    #[test]
    fn base_rtt_follows_the_network() {
        let (window, us) = (Time::from_us(10_000), Time::from_us);
        let mut peer = Peer::new(Phase::Open, 1, 1, Time::ZERO);
        // 16 samples of 100 to 115 us: nine of ten are within 13 us. Those of a longer path do not count.
        peer.samples = (0..16).map(|sample| (us(100 + sample), 3)).chain([(us(900), 4), (us(900), 5)]).collect();
        peer.calibrate(Time::ZERO);
        assert_eq!((peer.base_rtt, peer.noise), (us(100), us(13)));
        // Changes by less than half of the noise are ignored.
        assert!(!peer.note_round_trip(us(1), us(94), window));
        assert!(peer.note_round_trip(us(2), us(90), window), "shorter by more");
        assert_eq!(peer.base_rtt, us(90));
        // All of a window are longer. The previous window contains the 90 us.
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
