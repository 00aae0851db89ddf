//! What leaves.

use super::{Counters, Endpoint, MAX_CONTROL_PER_PEER, MAX_REPLIES, MOST_CONTROL, sealing::LastSeal};
use crate::{
    Departure, Line, Transports,
    header::{self, Cookie, Data, Greeting, Probed},
    pacer::Pacer,
    peer::Peer,
    settings::Settings,
    stream::Outgoing,
};
use anabranch_lb::{
    Decision, HostScheme, Outgoing as Packet, Tag,
    registry::{Host, TagKind},
};
use anabranch_transport::{Reply, Transport};
use anabranch_units::Time;
use bytes::Bytes;
use std::net::SocketAddr;

/// The number of no peer.
pub(super) const NO_PEER: u32 = u32::MAX;

/// Whom a datagram goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum To {
    /// A peer.
    Peer(u32),
    /// The address that something came from whose sender is no peer: that of label 0.
    Address(SocketAddr),
}

/// Where a datagram goes that [`Endpoint::poll_transmit`] has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Whom it goes to.
    pub to: To,
    /// The label that it carries.
    pub label: u32,
    /// Whether switches may mark it.
    pub ecn: bool,
    /// Its traffic class, of which the upper six bits count (DSCP).
    pub class: u8,
    /// What follows the bytes that were written: part of a message, where it lies.
    pub payload: Bytes,
}

/// A packet that goes before all data.
#[derive(Clone, Debug)]
pub(super) enum Control {
    Hello { is_short: bool },
    Retry { connection: u32, nonce: u64, cookie: Cookie },
    Welcome(Welcome),
    Answer { stream: u32, answer: Reply, stamp: Option<Time>, arrived: Time },
    Probe { stream: u32, tag: Tag, size: usize },
    Echo { probe: Probed, arrived: Time },
    Bye { connection: u32, proof: u64, seal: Option<Box<LastSeal>> },
}

impl Control {
    /// A BYE that this peer believes.
    pub(super) fn bye(peer: &mut Peer) -> Self {
        let (connection, proof) = (peer.theirs, peer.their_nonce.unwrap_or(peer.nonce));
        Control::Bye { connection, proof, seal: peer.last_seal() }
    }

    /// Whether it is an answer that says nothing which `next`, to be sent right after it, does not say too: of packets of one path that
    /// came in order.
    pub(super) fn is_told_by(&self, stream: u32, next: &Reply) -> bool {
        let Control::Answer { stream: of, answer, .. } = self else { return false };
        let plain = |answer: &Reply| !answer.nack && !answer.cnp && answer.bitmap == 0 && answer.offset == 0;
        *of == stream
            && (answer.tag, answer.ecn) == (next.tag, next.ecn)
            && plain(answer)
            && plain(next)
            && answer.cumulative <= next.cumulative
    }
}

/// What a welcome says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Welcome {
    /// The connection of whoever said hello, and ours; 0: there is none.
    pub(super) to: u32,
    pub(super) ours: u32,
    pub(super) nonce: u64,
    pub(super) own_nonce: u64,
    pub(super) stamp: Time,
    pub(super) arrived: Time,
    /// It goes to whoever may take the place of a peer, and knows nothing of that peer's key.
    pub(super) is_for_candidate: bool,
}

impl Welcome {
    /// One that says: there is no connection for this greeting.
    pub(super) fn refusing(greeting: &Greeting, arrived: Time) -> Self {
        let Greeting { connection: to, nonce, stamp, .. } = *greeting;
        Welcome { to, ours: 0, nonce, own_nonce: 0, stamp, arrived, is_for_candidate: false }
    }
}

/// The transports of all peers, as the NIC asks for them.
struct PerPeer<'a>(&'a [Option<Transport>], &'a Transport);

impl Transports<Outgoing> for PerPeer<'_> {
    #[inline]
    fn of<'a>(&'a self, flow: &'a Outgoing) -> &'a Transport {
        self.0.get(flow.peer as usize).and_then(Option::as_ref).unwrap_or(self.1)
    }
}

/// What a stream's packet leaves by.
struct WireLine<'a> {
    scheme: &'a mut Host,
    pacer: &'a mut Pacer,
    counters: &'a mut Counters,
    out: &'a mut Vec<u8>,
    run_length: u32,
    is_checked: bool,
    peers: &'a mut [Option<Peer>],
    resting: &'a mut Vec<u32>,
    sent: Option<Sent>,
}

/// A packet whose header has been written.
struct Sent {
    payload: Bytes,
    class: u8,
    peer: u32,
    tag: Tag,
    psn: u64,
    again: bool,
}

impl Line<Outgoing> for WireLine<'_> {
    type Scheme = Host;

    #[inline]
    fn scheme(&mut self, _flow: &Outgoing) -> &mut Host {
        self.scheme
    }

    /// A run of new packets keeps the tag of its first: the scheme is asked once for all of them.
    #[inline]
    fn choose(&mut self, flow: &mut Outgoing, slot: u32, start: Time, packet: &Packet) -> Decision {
        if flow.run_left > 0 && !packet.retransmission {
            flow.run_left -= 1;
            return Decision::Send(flow.run_tag);
        }
        let decision = self.scheme.select(start, slot, packet);
        if let Decision::Send(tag) | Decision::SendWithAckRequest(tag) = decision {
            (flow.run_tag, flow.run_left) = (tag, if packet.retransmission { 0 } else { self.run_length - 1 });
        }
        decision
    }

    fn start(&mut self, flow: &mut Outgoing, packet: &Departure, start: Time) -> Time {
        let psn = packet.segment.psn;
        // The sender knows of no packet that the stream does not hold.
        let Outgoing { stream, connection, mtu, peer: flow_peer, .. } = *flow;
        let mut size = 0;
        let is_checked = self.is_checked;
        if let Some((message, index)) = flow.find(psn) {
            let from = (u64::from(index) * mtu) as usize;
            let to = (from + mtu as usize).min(message.len() as usize);
            let (head, payload) = message.part(from, to);
            let session = self.peers.get_mut(flow_peer as usize).and_then(Option::as_mut);
            let mut session = session.and_then(|known| known.session.as_mut());
            let tag = session.as_ref().and_then(|session| session.payload_tag(head, &payload));
            let checksum = (is_checked && tag.is_none()).then(|| header::crc32c_of(head, &payload));
            let data = Data {
                stream,
                payload: (to - from) as u16,
                psn,
                tag: packet.tag,
                message: message.number,
                length: message.len(),
                index,
                checksum,
                steering: message.steering,
                stamp: start,
                ack_request: packet.ack_request,
            };
            header::data(self.out, connection, &data);
            if let Some(session) = &mut session {
                let number = session.number();
                header::authenticate(self.out, number, tag, |bytes| session.headers().mac(bytes));
            }
            self.out.extend_from_slice(head);
            let again = packet.segment.retransmission;
            self.counters.packets += 1;
            self.counters.retransmitted += u64::from(again);
            size = self.out.len() + payload.len();
            let class = message.class;
            self.sent = Some(Sent { payload, class, peer: flow.peer, tag: packet.tag, psn, again });
        }
        // One datagram at a time: the line is free again later than now, whatever the pacer makes up for.
        self.pacer.occupy(start, size).max(start + Time::from_ps(1))
    }

    fn rests(&mut self, slot: u32) {
        self.resting.push(slot);
    }

    fn has_urgent(&self) -> bool {
        false
    }
}

impl Endpoint {
    /// Queues a packet that goes before all data.
    pub(super) fn say(&mut self, peer: u32, label: u32, control: Control) {
        let of_peer = self.peers.get_mut(peer as usize).and_then(Option::as_mut);
        let is_full = of_peer.as_ref().is_some_and(|known| known.control >= MAX_CONTROL_PER_PEER);
        if is_full || self.control.len() >= MOST_CONTROL {
            self.counters.answers_dropped += 1;
            return;
        }
        if let Some(known) = of_peer {
            known.control += 1;
        }
        self.control.push_back((peer, label, control));
    }

    /// Queues a reply to whoever is no peer.
    pub(super) fn reply(&mut self, to: To, label: u32, control: Control) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back((to, label, control));
        }
    }

    /// The label of a path tag of a stream: the one place where paths become labels. Tags that number paths name one each, others are folded
    /// to path and label.
    pub(super) fn label(&mut self, slot: u32, tag: Tag) -> u32 {
        let (peer, turn) = (self.flows[slot as usize].of.peer, self.flows[slot as usize].of.turn);
        let Some(Some(known)) = self.peers.get(peer as usize) else { return 0 };
        let paths = known.paths.len() as u32;
        match self.tags {
            TagKind::Guided => known.label((tag >> 16) % paths, turn),
            TagKind::Category => {
                self.turn = (self.turn + 1) % paths;
                known.label(self.turn, turn)
            }
            TagKind::MultiPart => known.label((tag ^ tag >> 16) % paths, turn),
            TagKind::Entropy => {
                let entropy = tag ^ tag >> 16;
                known.label(entropy % paths, entropy / paths)
            }
        }
    }

    pub(super) fn greeting(&self, connection: u32, nonces: [u64; 2], stamp: Time, held: Time) -> Greeting {
        let [nonce, own_nonce] = nonces;
        let Settings { span, most_message, labels, .. } = self.settings;
        let labels = labels as u16;
        let mtu = self.settings.mtu() as u16;
        let protection = self.protection();
        Greeting { connection, nonce, own_nonce, protection, mtu, labels, span, most_message, stamp, held }
    }

    /// The next datagram that may leave at `now`: its header is written into `out`, its payload comes with what is returned;
    /// `None`: none may.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if self.pacer.free_at() > now {
            return None;
        }
        if let Some((peer, label, control)) = self.control.pop_front() {
            self.write(peer, &control, now, out);
            self.seal_control(peer, &control, out);
            self.pacer.occupy(now, out.len());
            let known = self.peers.get_mut(peer as usize).and_then(Option::as_mut);
            let class = known.map_or(0, |known| {
                known.control = known.control.saturating_sub(1);
                known.class
            });
            return Some(Transmit { to: To::Peer(peer), label, ecn: false, class, payload: Bytes::new() });
        }
        if let Some((to, label, control)) = self.replies.pop_front() {
            self.write(NO_PEER, &control, now, out);
            self.seal_control(NO_PEER, &control, out);
            self.pacer.occupy(now, out.len());
            return Some(Transmit { to, label, ecn: false, class: 0, payload: Bytes::new() });
        }
        let transports = PerPeer(&self.transports, &self.transport);
        self.nic.promote(&mut self.flows, &transports, now);
        out.clear();
        let (pacer, counters, run_length) = (&mut self.pacer, &mut self.counters, self.settings.run_length);
        let (scheme, resting) = (self.balancer.scheme_mut(), &mut self.resting);
        // A MAC over headers alone binds the payload by its CRC32C.
        let is_checked = self.settings.checksum || self.settings.key.is_some();
        let peers = &mut self.peers[..];
        let mut line = WireLine { scheme, pacer, counters, out, run_length, is_checked, peers, resting, sent: None };
        let served = self.nic.serve(&mut self.flows, &transports, &mut line, now, now);
        let sent = line.sent;
        // Who waits for an answer has reached the end of what may be sent, which is seen to sooner than after a timeout.
        while let Some(slot) = self.resting.pop() {
            self.arm(slot, now);
        }
        let (slot, Sent { payload, class, peer, tag, psn, again }) = served.zip(sent)?;
        self.arm(slot, now);
        let (label, labels) = (self.label(slot, tag), self.settings.labels);
        let flow = &mut self.flows[slot as usize];
        let switches = flow.path_switches();
        flow.of.note_sent(psn, now, label, labels, again, switches);
        if let Some(watched) = &mut flow.of.watched {
            watched.note_sent(now, psn, label, out.len() + payload.len(), again);
        }
        Some(Transmit { to: To::Peer(peer), label, ecn: self.settings.ecn, class, payload })
    }

    pub(super) fn write(&self, peer: u32, control: &Control, now: Time, out: &mut Vec<u8>) {
        let connection = self.peer(peer).map_or(0, |known| known.theirs);
        match *control {
            Control::Hello { is_short } => {
                let known = self.peer(peer);
                let (ours, nonce) = known.map_or((0, 0), |known| (known.ours, known.nonce));
                let cookie = known.and_then(|known| known.cookie).map_or(Cookie::default(), |(cookie, _)| cookie);
                let greeting = self.greeting(ours, [nonce; 2], now, Time::ZERO);
                let size = if is_short { 0 } else { self.longest_datagram() };
                header::hello(out, &greeting, &cookie, size);
            }
            Control::Retry { connection, nonce, cookie } => header::retry(out, connection, nonce, &cookie),
            Control::Welcome(Welcome { to, ours, nonce, own_nonce, stamp, arrived, .. }) => {
                let held = now.saturating_sub(arrived);
                header::welcome(out, to, &self.greeting(ours, [nonce, own_nonce], stamp, held));
            }
            Control::Answer { stream, answer, stamp, arrived } => {
                header::answer(out, connection, stream, &answer, stamp, now.saturating_sub(arrived));
            }
            Control::Probe { stream, tag, size } => {
                let probe = Probed { stream, tag, stamp: now, size: 0, held: Time::ZERO };
                header::probe(out, connection, &probe, size);
            }
            Control::Echo { probe, arrived } => {
                header::echo(out, connection, &Probed { held: now.saturating_sub(arrived), ..probe });
            }
            Control::Bye { connection, proof, .. } => header::bye(out, connection, proof),
        }
    }

    /// Sends what the scheme of a stream wants to explore.
    pub(super) fn send_probes(&mut self, slot: u32, now: Time) {
        let flow = &self.flows[slot as usize];
        let (peer, stream) = (flow.of.peer, flow.of.stream);
        while let Some(probe) = self.flows[slot as usize].poll_probe(self.balancer.scheme_mut(), now) {
            let asked = self.settings.probe_datagram(probe.bytes);
            // A size whose base round trip is not known would tell nothing: another scheme may have been in charge when it was measured.
            let is_measured = self.peer(peer).is_some_and(|known| known.probe_base.datagram == asked);
            let size = if is_measured { asked } else { self.longest_datagram() };
            let label = self.label(slot, probe.tag);
            self.counters.probes += 1;
            self.counters.probe_bytes += size as u64 + self.settings.overhead;
            self.say(peer, label, Control::Probe { stream, tag: probe.tag, size });
        }
    }
}
