//! How endpoints get to know each other: greetings, the base round trip, the opening of streams, and the end.

use super::{
    Arrival, CALIBRATION, Endpoint, STREAM_PACKETS, Timer, resolve,
    transmit::{Control, Welcome},
};
use crate::{
    Flow,
    header::{self, Greeting, Protection},
    peer::{Event, Peer, Phase, Why},
    settings::Settings,
    watched::Watched,
};
use anabranch_lb::{FlowInfo, PathSpace, registry::TagKind};
use anabranch_random::Stream;
use anabranch_transport::{Moved, Sender};
use anabranch_units::Time;
use std::cmp::Reverse;

impl Endpoint {
    pub(super) fn make_peer(&mut self, peer: u32, phase: Phase, now: Time) -> bool {
        let at = peer as usize;
        if at >= self.settings.most_peers {
            return false;
        }
        if self.peers.len() <= at {
            self.peers.resize_with(at + 1, || None);
            self.transports.resize_with(at + 1, || None);
        }
        let (ours, nonce) = (self.draws.bits() as u32, self.draws.bits());
        self.peers[at] = Some(Peer::new(phase, ours, nonce, now));
        self.look_for_idle(now);
        true
    }

    /// Sees to it that peers which say nothing are found.
    fn look_for_idle(&mut self, now: Time) {
        if !self.looks_for_idle && self.settings.idle_timeout != Time::MAX {
            self.looks_for_idle = true;
            let at = now + (self.settings.idle_timeout / 4).max(Time::from_us(1));
            self.timers.push(Reverse((at, Timer::Idle)));
        }
    }

    /// Peers that have said nothing for too long are forgotten. Whoever owes an answer has its own limit.
    pub(super) fn lose_idle(&mut self, now: Time) {
        self.looks_for_idle = false;
        for peer in 0..self.peers.len() as u32 {
            let idle = |known: &Peer| {
                known.quiet_since.is_none() && now.saturating_sub(known.heard_at) >= self.settings.idle_timeout
            };
            if self.peer(peer).is_some_and(idle) {
                self.lose(peer, Why::Idle);
            }
        }
        if self.peers.iter().any(Option::is_some) {
            self.look_for_idle(now);
        }
    }

    pub(super) fn lose(&mut self, peer: u32, why: Why) {
        if self.peer(peer).is_some() {
            self.forget(peer);
            self.events.push_back(Event::Lost { peer, why });
        }
    }

    /// Drops whatever belongs to a peer.
    pub(super) fn forget(&mut self, peer: u32) {
        let Some(known) = self.peers.get_mut(peer as usize).and_then(Option::take) else { return };
        for slot in known.streams.values() {
            let flow = self.flows.remove(*slot as usize);
            self.balancer.close(flow.scheme_slot());
            self.nic.leave(*slot, &flow);
            self.counters.path_switches += flow.path_switches();
        }
        self.transports[peer as usize] = None;
        self.control.retain(|(of, ..)| *of != peer);
        self.gone.insert(peer);
    }

    /// The next hello or calibration of a peer, and a timer in case that no answer comes.
    pub(super) fn ask(&mut self, peer: u32, now: Time) {
        let (labels, size) = (self.settings.labels, self.longest_datagram());
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        let question = match known.phase {
            Phase::Greeting => Control::Hello,
            Phase::Calibrating => Control::Probe { stream: CALIBRATION, tag: known.asked, size },
            Phase::Greeted | Phase::Open => return,
        };
        // Before the other has said how many labels it has, all are tried.
        let label = if known.phase == Phase::Greeting {
            known.asked % labels
        } else {
            known.ways[known.asked as usize % known.ways.len()]
        };
        known.asked = known.asked.wrapping_add(1);
        known.quiet_since.get_or_insert(now);
        known.timer_at = now + self.settings.patience;
        self.timers.push(Reverse((known.timer_at, Timer::Peer { peer })));
        self.say(peer, label, question);
    }

    /// A question of ours was not answered in time.
    pub(super) fn peer_timer(&mut self, peer: u32, at: Time, now: Time) {
        let Some(known) = self.peer(peer).filter(|known| known.timer_at == at) else { return };
        if known.quiet_since.is_some_and(|since| now.saturating_sub(since) > self.settings.give_up) {
            return self.lose(peer, Why::Silent);
        }
        self.ask(peer, now);
    }

    pub(super) fn on_hello(&mut self, now: Time, arrival: &Arrival<'_>, greeting: &Greeting) {
        let peer = arrival.peer;
        let mut welcome = Welcome {
            to: greeting.connection,
            ours: 0,
            nonce: greeting.nonce,
            stamp: greeting.stamp,
            arrived: arrival.at,
        };
        if u64::from(greeting.mtu) != self.settings.mtu() {
            // The welcome says what ours is; the other end gives up.
            self.counters.refused += 1;
            self.stranger(peer);
            return self.say(peer, arrival.label, Control::Welcome(welcome));
        }
        let restarted = |known: &Peer| known.their_nonce.is_some_and(|nonce| nonce != greeting.nonce);
        if self.peer(peer).is_some_and(restarted) {
            self.lose(peer, Why::Restarted);
        }
        if self.peer(peer).is_none() && !self.make_peer(peer, Phase::Greeted, now) {
            self.counters.strangers += 1;
            return self.stranger(peer);
        }
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        (known.their_nonce, known.heard_at) = (Some(greeting.nonce), now);
        (known.theirs, known.most_message) = (greeting.connection, greeting.most_message);
        known.span = u64::from(greeting.span.min(self.settings.span));
        known.have_labels(self.settings.labels.min(u32::from(greeting.labels)));
        welcome.ours = known.ours;
        self.derive(peer, greeting);
        self.say(peer, arrival.label, Control::Welcome(welcome));
    }

    /// A HELLO that our key does not fit, or of whoever has one where we have none: its sender is told so.
    pub(super) fn refuse_key(&mut self, arrival: &Arrival<'_>, greeting: &Greeting) {
        let (to, nonce, stamp, arrived) = (greeting.connection, greeting.nonce, greeting.stamp, arrival.at);
        self.stranger(arrival.peer);
        self.say(arrival.peer, arrival.label, Control::Welcome(Welcome { to, ours: 0, nonce, stamp, arrived }));
    }

    /// Somebody of another version of the format: who says hello is told what ours is, and a peer that answers ours so is given up.
    pub(super) fn on_foreign(&mut self, arrival: &Arrival<'_>, foreign: &header::Foreign) {
        let (peer, ours) = (arrival.peer, header::VERSION);
        if foreign.hello {
            let (to, nonce, arrived) = (foreign.connection, foreign.nonce, arrival.at);
            self.stranger(peer);
            let welcome = Welcome { to, ours: 0, nonce, stamp: Time::ZERO, arrived };
            return self.say(peer, arrival.label, Control::Welcome(welcome));
        }
        let asked =
            |known: &Peer| known.phase == Phase::Greeting && (known.ours, known.nonce) == (foreign.to, foreign.nonce);
        if self.peer(peer).is_some_and(asked) {
            return self.lose(peer, Why::Version { theirs: foreign.version, ours });
        }
        self.stranger(peer);
    }

    /// Our HELLO is refused, by whoever has seen its connection number and nonce: for the size of our packets, or for our key.
    pub(super) fn on_refused(&mut self, peer: u32, connection: u32, greeting: &Greeting) {
        let asked =
            |known: &Peer| known.phase == Phase::Greeting && (known.ours, known.nonce) == (connection, greeting.nonce);
        if !self.peer(peer).is_some_and(asked) {
            self.counters.strangers += 1;
            return self.stranger(peer);
        }
        let (size, ours, theirs) = (self.settings.mtu(), self.protection(), greeting.protection);
        if u64::from(greeting.mtu) != size {
            self.lose(peer, Why::Mtu { theirs: greeting.mtu, ours: size as u16 });
        } else if ours > Protection::Off || theirs > Protection::Off {
            self.lose(peer, Why::Key { theirs, ours });
        } else {
            self.counters.refused += 1;
        }
    }

    pub(super) fn on_welcome(&mut self, now: Time, peer: u32, greeting: &Greeting) {
        let Settings { span, labels, .. } = self.settings;
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        if known.phase != Phase::Greeting || known.nonce != greeting.nonce {
            return;
        }
        (known.theirs, known.most_message) = (greeting.connection, greeting.most_message);
        known.span = u64::from(greeting.span.min(span));
        known.have_labels(labels.min(u32::from(greeting.labels)));
        known.phase = Phase::Calibrating;
        known.asked = 0;
        self.derive(peer, greeting);
        self.ask(peer, now);
    }

    /// A full packet of ours has been there and back.
    pub(super) fn on_calibration(&mut self, now: Time, peer: u32, rtt: Time) {
        let (wanted, floor) = (self.settings.calibrations.max(1) as usize, self.settings.rtt_floor);
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        if known.phase != Phase::Calibrating {
            return;
        }
        known.samples.push(rtt);
        if known.samples.len() < wanted {
            return self.ask(peer, now);
        }
        known.calibrate(floor);
        known.phase = Phase::Open;
        known.timer_at = Time::MAX;
        known.samples = Vec::new();
        let (base_rtt, noise) = (known.base_rtt, known.noise);
        self.transports[peer as usize] = Some(resolve(&self.settings, base_rtt + noise));
        self.events.push_back(Event::Open { peer, base_rtt, noise });
        self.open_waiting(peer, now);
    }

    /// A full packet has been there and back in `rtt`. Where the base round trip has changed with it, streams hear of round trips
    /// as if it had not.
    pub(super) fn note_round_trip(&mut self, now: Time, peer: u32, rtt: Time) {
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        if !known.note_round_trip(now, rtt, self.settings.rtt_window) {
            return;
        }
        let base = known.base_rtt + known.noise;
        let mut transport = resolve(&self.settings, base);
        transport.set_moved(Moved::new(known.told, base));
        self.transports[peer as usize] = Some(transport);
    }

    /// Opens the streams that waited for it.
    pub(super) fn open_waiting(&mut self, peer: u32, now: Time) {
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        if self.transports[peer as usize].is_none() {
            return;
        }
        let (connection, base_rtt) = (known.theirs, known.told);
        let mut opened = Vec::new();
        for mut outgoing in std::mem::take(&mut known.waiting) {
            outgoing.connection = connection;
            outgoing.watched = self.watches.then(|| Box::new(Watched::new(self.settings.labels)));
            let stream = outgoing.stream;
            let scheme_slot = self.open_with_scheme(peer, stream, now);
            let Some(transport) = &self.transports[peer as usize] else { return };
            let sender = Sender::of_stream(transport, self.settings.rate, base_rtt, now);
            let slot = self.flows.insert(Flow::new(sender, self.opened, scheme_slot, now, outgoing)) as u32;
            self.opened = self.opened.wrapping_add(1);
            opened.push((stream, slot));
        }
        if let Some(Some(known)) = self.peers.get_mut(peer as usize) {
            known.streams.extend(opened.iter().copied());
        }
        for (_, slot) in opened {
            self.offer(slot, now);
        }
    }

    /// Tells the scheme of a stream to a peer whose round trip is known; returns its slot.
    pub(super) fn open_with_scheme(&mut self, peer: u32, stream: u32, now: Time) -> u32 {
        let settings = &self.settings;
        let transport = self.transports[peer as usize].as_ref().unwrap_or(&self.transport);
        let known = self.peers.get(peer as usize).and_then(Option::as_ref);
        // Whoever opens later hears the same as the others.
        let base_rtt = known.map_or(Time::ZERO, |known| known.told);
        let uplinks = [known.map_or(1, |known| known.ways.len() as u32)];
        let mtu = settings.mtu();
        let full = mtu + header::DATA_HEADER as u64 + settings.overhead;
        let info = FlowInfo {
            key: Stream::keyed(settings.seed, u64::from(peer) << 32 | u64::from(stream), "stream").bits(),
            src: 0,
            dst: peer.wrapping_add(1),
            size: mtu * STREAM_PACKETS,
            packets: STREAM_PACKETS,
            bdp_packets: settings.rate.bytes_in(base_rtt).div_ceil(full).max(1),
            base_rtt,
            rate: settings.rate,
            full_packet: full as u32,
            early_packets: transport.early_packets(),
            paths: PathSpace {
                uplinks: &uplinks,
                guided: (self.tags == TagKind::Guided).then_some(&self.paths),
                dead: &[],
            },
        };
        self.balancer.open(now, &info)
    }
}
