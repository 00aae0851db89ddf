use super::{
    control::{Control, NO_PEER, Welcome},
    datagram::{To, Transmit},
    sealing,
    state::{CALIBRATION, Counters, State},
};
use crate::{
    Checksum, Departure, Egress, Settings, Transports,
    auth::Session,
    event::Write,
    header::{self, Cookie, Data, Fragment, Greeting, ProbeHeader},
    pacer::Pacer,
    peer::Peer,
    stream::{Message, Outgoing},
};
use anabranch_lb::{Decision, HostScheme, Outgoing as Packet, Tag, registry::Host};
use anabranch_transport::Transport;
use anabranch_units::Time;
use bytes::Bytes;
use std::ops::Range;

struct PerPeer<'a>(&'a [Option<Transport>], &'a Transport);

impl Transports<Outgoing> for PerPeer<'_> {
    #[inline]
    fn of<'a>(&'a self, flow: &'a Outgoing) -> &'a Transport {
        self.0.get(flow.peer as usize).and_then(Option::as_ref).unwrap_or(self.1)
    }
}

struct WireEgress<'a> {
    scheme: &'a mut Host,
    pacer: &'a mut Pacer,
    counters: &'a mut Counters,
    out: &'a mut Vec<u8>,
    run_length: u32,
    checksum: Checksum,
    peers: &'a mut [Option<Peer>],
    blocked: &'a mut Vec<u32>,
    fragments: &'a mut Vec<Vec<u8>>,
    sent: Option<Sent>,
}

struct Sent {
    payload: Bytes,
    class: u8,
    peer: u32,
    tag: Tag,
    psn: u64,
    again: bool,
    drops_ecn: bool,
    is_single: bool,
    write: Option<Write>,
}

/// Writes header and head of a datagram with these bytes of a message; returns the rest of the payload.
#[inline(always)]
fn write_data(
    out: &mut Vec<u8>,
    (connection, is_checked): (u32, bool),
    data: &mut Data,
    message: &Message,
    bytes: Range<usize>,
    session: Option<&mut Session>,
) -> Bytes {
    data.payload = bytes.len() as u32;
    let (head, payload) = message.part(bytes.start, bytes.end);
    let tag = session.as_ref().and_then(|session| session.payload_tag(head, &payload));
    data.checksum = (is_checked && tag.is_none()).then(|| header::crc32c_of(head, &payload));
    header::data(out, connection, data);
    if let Some(session) = session {
        let number = session.number();
        header::authenticate(out, number, tag, |bytes| session.headers().mac(bytes));
    }
    out.extend_from_slice(head);
    payload
}

/// Writes all fragments of a packet but the first, each of this size at most. Their payload is copied, since its owner may
/// reuse the memory before they leave.
#[cold]
fn write_fragments(
    fragments: &mut Vec<Vec<u8>>,
    header: (u32, bool),
    data: &Data,
    message: &Message,
    (bytes, size): (Range<usize>, usize),
    mut session: Option<&mut Session>,
) {
    for (index, from) in bytes.clone().step_by(size).enumerate().skip(1) {
        let fragment = Fragment { index: index as u8, ..data.fragment };
        let (mut out, to) = (Vec::new(), (from + size).min(bytes.end));
        let mut data = Data { fragment, ..*data };
        let payload = write_data(&mut out, header, &mut data, message, from..to, session.as_deref_mut());
        out.extend_from_slice(&payload);
        fragments.push(out);
    }
}

impl Egress<Outgoing> for WireEgress<'_> {
    type Scheme = Host;

    #[inline]
    fn scheme(&mut self, _flow: &Outgoing) -> &mut Host {
        self.scheme
    }

    /// A run of new packets keeps the tag of its first.
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
        // The sender has no packet that the stream does not hold.
        let Outgoing { stream, connection, mtu, peer: flow_peer, .. } = *flow;
        let mut size = 0;
        if let Some((message, index, transmission)) = flow.transmit(psn, start) {
            let from = (u64::from(index) * mtu) as usize;
            let mut to = (from + mtu as usize).min(message.len() as usize);
            let known = self.peers.get_mut(flow_peer as usize).and_then(Option::as_mut);
            let is_checked = match self.checksum {
                Checksum::BetweenHosts => known.as_ref().is_none_or(|known| !known.is_same_host),
                other => other == Checksum::Always,
            };
            let (count, drops_ecn, is_single) = known
                .as_ref()
                .map_or((1, false, false), |known| (known.fragments, known.drops_ecn, known.is_single(start)));
            let mut session = known.and_then(|known| known.session.as_deref_mut());
            let mut data = Data {
                stream,
                payload: 0,
                psn,
                tag: packet.tag,
                message: message.number,
                length: message.len(),
                index,
                fragment: Fragment::WHOLE,
                checksum: None,
                steering: message.steering,
                transmission,
                ack_request: packet.ack_request,
            };
            // Hardware reads no header.
            let header = (connection, is_checked && message.write.is_none());
            if count > 1 && from < to {
                data.fragment.count = count;
                let fragment = mtu.div_ceil(u64::from(count)) as usize;
                write_fragments(self.fragments, header, &data, message, (from..to, fragment), session.as_deref_mut());
                to = (from + fragment).min(to);
            }
            let payload = write_data(self.out, header, &mut data, message, from..to, session);
            let again = packet.segment.retransmission;
            self.counters.packets += 1;
            self.counters.retransmitted += u64::from(again);
            size = self.out.len() + payload.len();
            let (peer, class, tag) = (flow_peer, message.class, packet.tag);
            let write = message.write.map(|write| Write { to: write.to + from as u64, ..write });
            self.sent = Some(Sent { payload, class, peer, tag, psn, again, drops_ecn, is_single, write });
        }
        // One datagram at a time: the line is free again later than now, even if the pacer makes up for lost time.
        self.pacer.occupy(start, size).max(start + Time::from_ps(1))
    }

    fn on_blocked(&mut self, slot: u32) {
        self.blocked.push(slot);
    }

    fn has_urgent(&self) -> bool {
        false
    }
}

pub(super) fn greeting(state: &State, connection: u32, nonces: [u64; 2]) -> Greeting {
    let [nonce, own_nonce] = nonces;
    let Settings { span, max_message, labels, planes, .. } = state.settings;
    let (labels, planes) = (labels as u16, planes as u8);
    let mtu = state.settings.mtu() as u32;
    let protection = state.protection();
    Greeting { connection, nonce, own_nonce, protection, mtu, labels, planes, span, max_message }
}

pub(super) fn poll(state: &mut State, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
    if state.pacer.free_at() > now {
        return None;
    }
    if let Some((peer, label, control)) = state.control.pop_front() {
        write(state, peer, &control, now, out);
        sealing::seal_control(state, peer, &control, out);
        state.pacer.occupy(now, out.len());
        let known = state.peers.get_mut(peer as usize).and_then(Option::as_mut);
        let (class, is_single) = known.map_or((0, false), |known| {
            known.control = known.control.saturating_sub(1);
            (known.class, known.is_single(now))
        });
        let ecn = matches!(control, Control::Probe { ecn: true, .. });
        return Some(Transmit { to: To::Peer(peer), label, ecn, class, is_single, payload: Bytes::new(), write: None });
    }
    if let Some((to, label, control)) = state.replies.pop_front() {
        write(state, NO_PEER, &control, now, out);
        sealing::seal_control(state, NO_PEER, &control, out);
        state.pacer.occupy(now, out.len());
        let payload = Bytes::new();
        return Some(Transmit { to, label, ecn: false, class: 0, is_single: false, payload, write: None });
    }
    if let Some((transmit, bytes)) = state.fragments.pop_front() {
        *out = bytes;
        state.pacer.occupy(now, out.len());
        return Some(transmit);
    }
    let transports = PerPeer(&state.transports, &state.transport);
    state.nic.promote(&mut state.flows, &transports, now);
    out.clear();
    let (pacer, counters, run_length) = (&mut state.pacer, &mut state.counters, state.settings.run_length);
    let (scheme, blocked) = (state.balancer.scheme_mut(), &mut state.blocked);
    // A MAC over headers alone covers the payload by its CRC32C.
    let checksum = if state.settings.key.is_some() { Checksum::Always } else { state.settings.checksum };
    let peers = &mut state.peers[..];
    let mut line = WireEgress {
        scheme,
        pacer,
        counters,
        out,
        run_length,
        checksum,
        peers,
        blocked,
        fragments: &mut state.parts,
        sent: None,
    };
    let served = state.nic.serve(&mut state.flows, &transports, &mut line, now, now);
    let sent = line.sent;
    // A stream that waits for an ACK has sent all that it may; its timer detects a loss there sooner than a timeout.
    while let Some(slot) = state.blocked.pop() {
        state.arm(slot, now);
    }
    let (slot, Sent { payload, class, peer, tag, psn, again, drops_ecn, is_single, write }) = served.zip(sent)?;
    state.arm(slot, now);
    let (label, labels) = (state.label(slot, tag), state.settings.labels);
    let flow = &mut state.flows[slot as usize];
    let switches = flow.path_switches();
    flow.of.note_sent(psn, now, label, labels, again, switches);
    if let Some(watched) = &mut flow.of.watched {
        watched.note_sent(now, psn, label, out.len() + payload.len(), again);
    }
    let ecn = state.settings.ecn && !drops_ecn;
    let transmit = Transmit { to: To::Peer(peer), label, ecn, class, is_single, payload, write };
    if !state.parts.is_empty() {
        let rest = Transmit { payload: Bytes::new(), ..transmit };
        state.fragments.extend(state.parts.drain(..).map(|bytes| (rest.clone(), bytes)));
    }
    Some(transmit)
}

pub(super) fn write(state: &mut State, peer: u32, control: &Control, now: Time, out: &mut Vec<u8>) {
    let connection = state.peer(peer).map_or(0, |known| known.theirs);
    match *control {
        Control::Hello { is_short } => {
            let known = state.peer(peer);
            let (ours, nonce) = known.map_or((0, 0), |known| (known.ours, known.nonce));
            let cookie = known.and_then(|known| known.cookie).map_or(Cookie::default(), |(cookie, _)| cookie);
            let greeting = greeting(state, ours, [nonce; 2]);
            // A queue pair carries what it carries.
            let is_short = is_short || state.settings.is_reliable;
            let size = if is_short { 0 } else { state.longest_datagram() };
            header::hello(out, &greeting, &cookie, size);
        }
        Control::Retry { connection, nonce, cookie } => header::retry(out, connection, nonce, &cookie),
        Control::Welcome(Welcome { to, ours, nonce, own_nonce, .. }) => {
            header::welcome(out, to, &greeting(state, ours, [nonce, own_nonce]));
        }
        Control::Ack { stream, ack, transmission, arrived } => {
            header::ack(out, connection, stream, &ack, transmission, now.saturating_sub(arrived));
        }
        Control::Probe { stream, tag, size, .. } => {
            let transmission = note_probe(state, peer, stream, now, size);
            let probe = ProbeHeader { stream, tag, transmission, ..ProbeHeader::default() };
            header::probe(out, connection, &probe, size);
        }
        Control::Echo { probe, arrived } => {
            header::echo(out, connection, &ProbeHeader { held: now.saturating_sub(arrived), ..probe });
        }
        Control::Bye(ref bye) => {
            header::bye(out, bye.connection, bye.proof, bye.stalled);
            header::bye_part(out, bye.part, &bye.streams);
        }
    }
}

/// Records a probe as it leaves; returns the number of its transmission.
fn note_probe(state: &mut State, peer: u32, stream: u32, now: Time, size: usize) -> u32 {
    let is_full = size == state.longest_datagram_to(peer);
    if let Some(slot) = state.slot(peer, stream) {
        let of = &mut state.flows[slot as usize].of;
        return of.transmissions.note(now, is_full, 0);
    }
    let known = state.peers.get_mut(peer as usize).and_then(Option::as_mut).filter(|_| stream == CALIBRATION);
    known.map_or(0, |known| known.requests.note(now, is_full, 0))
}

pub(super) fn send_probes(state: &mut State, slot: u32, now: Time) {
    let flow = &state.flows[slot as usize];
    let (peer, stream) = (flow.of.peer, flow.of.stream);
    // As data, which it waits with.
    let ecn = state.peer(peer).is_some_and(|known| known.uses_ecn(&state.settings));
    while let Some(probe) = state.flows[slot as usize].poll_probe(state.balancer.scheme_mut(), now) {
        let requested = state.settings.probe_datagram(probe.bytes);
        // A probe without a base round trip of its size measures nothing: another scheme may have been in use at calibration.
        let is_measured = state.peer(peer).is_some_and(|known| known.probe_base.datagram == requested);
        let longest = state.longest_datagram_to(peer);
        let size = if is_measured { requested.min(longest) } else { longest };
        let label = state.label(slot, probe.tag);
        state.counters.probes += 1;
        state.counters.probe_bytes += size as u64 + state.settings.overhead;
        state.send_control(peer, label, Control::Probe { stream, tag: probe.tag, size, ecn });
    }
}
