use super::{
    control::Control,
    datagram::{Arrival, Placement},
    peers, sealing, sizes,
    state::{CALIBRATION, LABELS, MAX_REPLIES, State, Timer},
    transmit,
};
use crate::{
    event::{CloseReason, Event, Sizes},
    fragments::{self, Incomplete},
    header::{self, Data, DecodeError, Packet, ProbeHeader},
    peer::Peer,
    stream::{Completed, Cost, Incoming, Limits, Stored},
    transmissions::Transmissions,
};
use anabranch_lb::{HostScheme, Loss};
use anabranch_transport::{DataArrival, Reply};
use anabranch_units::Time;
use std::cmp::Reverse;

/// A complete message of at least 1/`PROGRESS` of the bytes that its peer's messages hold is progress.
const PROGRESS: u64 = 64;

/// Returns the peer whose connection number the datagram carries, if it has greeted from this address or replies from it.
/// A NAT may have mapped the port of each label.
fn peer_by_connection(state: &State, arrival: &Arrival<'_>, packet: &Packet<'_>) -> Option<u32> {
    let (from, connection) = (arrival.from?, packet.connection());
    let peer = from.reply_of.or_else(|| state.connections.get(&connection).copied())?;
    let known = state.peer(peer)?;
    let is_there = from.reply_of.is_some() || known.is_address(arrival.label, from.at.ip());
    (is_there && known.ours == connection && !matches!(packet, Packet::Hello { .. })).then_some(peer)
}

pub(super) fn handle(state: &mut State, now: Time, arrival: &Arrival<'_>, places: &mut dyn Placement) {
    let (packet, sealed) = match Packet::open(arrival.bytes) {
        Ok(opened) => opened,
        Err(DecodeError::Damaged) => {
            state.counters.damaged += 1;
            return state.release_unknown(arrival.peer);
        }
        Err(_) => {
            state.counters.refused += 1;
            return match header::decode_foreign(arrival.bytes) {
                Some(decode_foreign) => peers::on_foreign(state, now, arrival, &decode_foreign),
                None => state.release_unknown(arrival.peer),
            };
        }
    };
    let by_connection = if arrival.peer.is_none() { peer_by_connection(state, arrival, &packet) } else { None };
    let arrival = &Arrival { peer: arrival.peer.or(by_connection), ..*arrival };
    // Refusals come from senders that cannot authenticate them.
    if let Packet::Welcome { connection, greeting } = &packet
        && greeting.connection == 0
    {
        return peers::on_refused(state, arrival.peer, *connection, greeting);
    }
    if !sealing::is_authentic(state, arrival, &packet, sealed.as_ref()) {
        return match &packet {
            Packet::Hello { greeting, .. } => peers::refuse_key(state, now, arrival, greeting),
            _ => state.release_unknown(arrival.peer),
        };
    }
    let connection = match &packet {
        Packet::Hello { greeting, cookie } => return peers::on_hello(state, now, arrival, greeting, cookie),
        Packet::Retry { connection, nonce, cookie } => {
            return peers::on_retry(state, arrival, *connection, *nonce, cookie);
        }
        other => other.connection(),
    };
    let Some((peer, known)) = arrival.peer.and_then(|peer| Some((peer, state.peers.get_mut(peer as usize)?.as_mut()?)))
    else {
        state.counters.unknown_peers += 1;
        return state.release_unknown(arrival.peer);
    };
    if known.ours == connection {
        (known.awaiting_since, known.last_received_at, known.is_proven) = (None, now, true);
        known.last_label = arrival.label;
        known.is_same_host = arrival.from.is_some_and(|from| from.is_same_host);
        if let Some((_, from)) = by_connection.zip(arrival.from).filter(|_| state.confirmed.len() < MAX_REPLIES) {
            state.confirmed.push((peer, arrival.label, from.at));
            if from.reply_of.is_none() {
                known.note_address(arrival.label, Some(from));
            }
        }
    } else if !peers::promote(state, now, peer, connection) {
        state.counters.unknown_peers += 1;
        return;
    }
    match packet {
        Packet::Hello { .. } | Packet::Retry { .. } => {}
        Packet::Welcome { greeting, .. } => peers::on_welcome(state, now, peer, &greeting, arrival.label),
        Packet::Data { ref data, payload, .. } => match data.fragment.count {
            1 => on_data(state, now, peer, arrival, data, payload, places),
            _ => on_fragment(state, now, peer, arrival, data, payload, places),
        },
        Packet::Ack { stream, ack, transmission, held, .. } => {
            on_ack(state, now, peer, stream, &ack, (transmission, held), arrival.label);
        }
        Packet::Probe { probe, .. } => state.send_control(
            peer,
            arrival.label,
            Control::Echo { probe: ProbeHeader { ecn: arrival.ecn, ..probe }, arrived: arrival.at },
        ),
        Packet::Echo { echo, .. } => on_echo(state, now, peer, &echo),
        Packet::Bye { proof, stalled, part, streams, .. } => on_bye(state, now, peer, (proof, stalled, part), streams),
    }
}

/// Must carry a nonce of the handshake: a guessed connection number does not suffice. The peer is lost with the last part.
fn on_bye(
    state: &mut State,
    now: Time,
    peer: u32,
    (proof, stalled, [index, parts]): (u64, Option<Sizes>, [u8; 2]),
    streams: &[u8],
) {
    let has_nonce = |known: &&mut Peer| known.nonce == proof || known.their_nonce == Some(proof);
    let Some(known) = state.peers.get_mut(peer as usize).and_then(Option::as_mut).filter(has_nonce) else {
        state.counters.refused += 1;
        return;
    };
    known.byes |= 1 << index;
    let (is_whole, label) = (known.byes.count_ones() >= u32::from(parts), known.last_label);
    for (stream, cumulative) in header::bye_list(streams) {
        let ack = Reply { psn: Reply::OF_TIMER, cumulative, ..Reply::default() };
        on_ack(state, now, peer, stream, &ack, (0, Time::ZERO), label);
    }
    if is_whole {
        peers::lose(state, peer, stalled.map_or(CloseReason::Closed, CloseReason::Unreceived));
    }
}

#[cold]
fn on_fragment(
    state: &mut State,
    now: Time,
    peer: u32,
    arrival: &Arrival<'_>,
    data: &Data,
    payload: Option<&[u8]>,
    places: &mut dyn Placement,
) {
    let mtu = state.settings.mtu();
    let Some(payload) = payload else {
        // Without one fragment the packet is retransmitted, as if it had been trimmed.
        return on_data(state, now, peer, arrival, &fragments::whole(data, mtu), None, places);
    };
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    if known.incomplete.capacity() == 0 {
        let bytes = Incomplete::memory(mtu);
        if !state.hosts.keep(known.host, bytes) {
            state.counters.no_capacity += 1;
            return;
        }
        known.kept += bytes;
    }
    match fragments::assemble(&mut known.incomplete, data, payload, arrival.ecn, mtu) {
        Ok(Some((data, bytes, ecn))) => {
            on_data(state, now, peer, &Arrival { ecn, ..*arrival }, &data, Some(&bytes), places);
        }
        Ok(None) => {}
        Err(()) => state.counters.refused += 1,
    }
}

fn on_data(
    state: &mut State,
    now: Time,
    peer: u32,
    arrival: &Arrival<'_>,
    data: &Data,
    payload: Option<&[u8]>,
    places: &mut dyn Placement,
) {
    let known = state.peers.get(peer as usize).and_then(Option::as_ref);
    let limits = Limits {
        earned: known.map_or(0, |known| known.delivered.saturating_sub(known.stored.bytes)),
        is_short: state.hosts.is_short(),
        mtu: state.settings.mtu(),
        span: u64::from(state.settings.span),
        max_message: state.settings.max_message,
        max_held: state.settings.max_held,
    };
    let transport = state.transports[peer as usize].as_ref().unwrap_or(&state.transport);
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    if !known.incoming.contains_key(&data.stream) {
        let bytes = size_of::<Incoming>() as u64;
        if known.incoming.len() >= state.settings.max_streams || !state.hosts.keep(known.host, bytes) {
            state.counters.no_capacity += 1;
            return;
        }
        known.kept += bytes;
        known.incoming.insert(data.stream, Incoming::new(transport, state.first));
    }
    let Some(incoming) = known.incoming.get_mut(&data.stream) else { return };
    if !incoming.fits(data, &limits) {
        state.counters.refused += 1;
        return;
    }
    if let Some(bytes) = incoming.widens(data.psn, limits.span) {
        if !state.hosts.keep(known.host, bytes) {
            state.counters.no_capacity += 1;
            return;
        }
        (incoming.is_wide, known.kept) = (true, known.kept + bytes);
    }
    state.counters.marked += u64::from(arrival.ecn);
    let ack = match payload {
        None => {
            state.counters.trimmed += 1;
            incoming.receiver().on_header(transport, data.psn, data.tag, data.ack_request)
        }
        Some(payload) => {
            let (steering, length) = (data.steering, data.length);
            let memory = (&mut known.reserved, &mut state.spares);
            let mut cost =
                incoming.prepare(data, payload.len(), &limits, memory, || places.head(peer, steering, length));
            if let Cost::Bytes { bytes, is_earned: true } = cost
                && bytes > 0
                && !state.hosts.may_earn(known.host, bytes)
            {
                incoming.abandon(data.message, &mut known.reserved);
                let (limits, memory) = (Limits { earned: 0, ..limits }, (&mut known.reserved, &mut state.spares));
                cost = incoming.prepare(data, payload.len(), &limits, memory, || places.head(peer, steering, length));
            }
            match cost {
                Cost::Bytes { bytes: 0, .. } => {}
                Cost::Bytes { bytes, is_earned } => {
                    if !is_earned && !state.hosts.may_store(known.host, bytes) {
                        incoming.abandon(data.message, &mut known.reserved);
                        let host = known.host;
                        if peers::evict_for_memory(state, now, host, bytes) {
                            return on_data(state, now, peer, arrival, data, Some(payload), places);
                        }
                        state.counters.no_capacity += 1;
                        return;
                    }
                }
                Cost::Full => {
                    state.counters.no_capacity += 1;
                    return;
                }
            }
            let place = |from, bytes: &[u8]| places.place(peer, steering, from, bytes);
            let Data { psn, tag, ack_request, .. } = *data;
            let arrived = DataArrival { psn, payload: limits.mtu as u32, tag, ecn: arrival.ecn, ack_request };
            let (ack, more) = incoming.on_data(transport, now, &arrived, data, payload, place);
            if more.bytes > 0 {
                if known.stored.bytes == 0 {
                    known.stored_since = now;
                }
                known.stored.add(more);
                state.hosts.store(known.host, more);
            }
            ack
        }
    };
    while let Some(Completed { number, bytes, placed, began, reserved, stored }) = incoming.take(limits.mtu) {
        let length = bytes.len() as u64;
        known.delivered = known.delivered.saturating_add(length);
        known.reserved = (known.reserved + length).saturating_sub(reserved);
        // Small messages beside large ones that never end are no progress.
        if length >= known.stored.bytes / PROGRESS {
            known.stored_since = now;
        }
        let complete = Stored::new(length, true);
        known.stored.add(complete);
        known.stored.take(stored);
        state.hosts.store(known.host, complete);
        state.hosts.release(known.host, stored);
        state.events.push_back(Event::Received { peer, stream: data.stream, message: number, bytes, placed, began });
    }
    if let Some(due) = incoming.receiver().deadline().filter(|_| !state.settings.is_reliable)
        && due < incoming.timer_at
    {
        incoming.timer_at = due;
        state.timers.push(Reverse((due, Timer::Receiver { peer, stream: data.stream })));
    }
    if let Some(ack) = ack.filter(|_| !state.settings.is_reliable) {
        let (stream, transmission, arrived) = (data.stream, data.transmission, arrival.at);
        let control = Control::Ack { stream, ack, transmission, arrived };
        match state.control.back_mut() {
            Some((of, label, last))
                if (*of, *label) == (peer, arrival.label) && last.is_superseded_by(stream, &ack) =>
            {
                *last = control;
            }
            _ => state.send_control(peer, arrival.label, control),
        }
    }
}

/// `sent` is the transmission that the ACK names, and the time for which the peer held it.
fn on_ack(state: &mut State, now: Time, peer: u32, stream: u32, ack: &Reply, sent: (u32, Time), label: u32) {
    let Some(slot) = state.slot(peer, stream) else { return };
    let flow = &state.flows[slot as usize];
    let is_of = |last: Time| flow.of.transmissions.get(sent.0).is_some_and(|of| of.at >= last);
    if ack.nack && flow.sender.sent_at(ack.psn).is_some_and(|last| !is_of(last)) {
        // A duplicate, or late: the packet has been retransmitted, and that copy counts as under way.
        return;
    }
    let sample = sample(&state.flows[slot as usize].of.transmissions, sent, now, state.settings.peer_timeout);
    let rtt = sample.map(|(rtt, _)| rtt);
    if let Some((rtt, true)) = sample {
        peers::note_round_trip(state, now, peer, rtt);
    }
    let transport = state.transports[peer as usize].as_ref().unwrap_or(&state.transport);
    let flow = &mut state.flows[slot as usize];
    let scheme = state.balancer.scheme_mut();
    let outcome = flow.on_ack(transport, scheme, now, ack, None, rtt, Some(Loss::Trimmed));
    state.counters.overtaken += u64::from(outcome.lost);
    let cumulative = flow.sender.cumulative();
    if let Some(watched) = &mut flow.of.watched {
        // ACKs return over the label of the packet; late ones of a timer carry no time stamp.
        let lost = u64::from(outcome.lost) + u64::from(outcome.trimmed);
        watched.note_ack(now, label, ack.ecn, lost, rtt);
        watched.note_received(cumulative);
    }
    while let Some((message, delivered)) = flow.of.acknowledged(cumulative) {
        state.unacknowledged -= 1;
        state.events.push_back(Event::Sent { peer, stream, message, delivered });
    }
    if !outcome.trimmed {
        transmit::send_probes(state, slot, now);
    }
    state.offer(slot, now);
    state.arm(slot, now);
}

/// Returns the round trip of a transmission, and `true` if it is that of a full packet. A local record alone gives it.
fn sample(of: &Transmissions, (number, held): (u32, Time), now: Time, max: Time) -> Option<(Time, bool)> {
    let transmission = of.get(number)?;
    Some((transmission.round_trip(now, held, max)?, transmission.is_full))
}

/// Handles the completion of a datagram of ours, which has `arrived` or never will: that of data acts as its ACK, that of a
/// probe as its echo.
pub(super) fn complete(state: &mut State, now: Time, peer: u32, label: u32, sent: &header::OfOurs, arrived: bool) {
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    if arrived {
        (known.awaiting_since, known.last_received_at) = (None, now);
    }
    let header::OfOurs { stream, psn, tag, transmission } = *sent;
    let Some(psn) = psn else {
        if arrived {
            on_echo(state, now, peer, &ProbeHeader { stream, tag, transmission, ..ProbeHeader::default() });
        } else if stream == CALIBRATION {
            peers::repeat_request(state, peer, now);
        }
        return;
    };
    let Some(slot) = state.slot(peer, stream) else { return };
    let transport = state.transports[peer as usize].as_ref().unwrap_or(&state.transport);
    let flow = &mut state.flows[slot as usize];
    let Some(reply) = flow.of.complete(transport, now, (psn, tag), arrived, state.first) else { return };
    if arrived {
        return on_ack(state, now, peer, stream, &reply, (transmission, Time::ZERO), label);
    }
    let scheme = state.balancer.scheme_mut();
    scheme.on_timeout(now, flow.scheme_slot(), tag);
    flow.of.note_timeout(psn);
    state.counters.timeouts += 1;
    flow.on_ack(transport, scheme, now, &reply, None, None, None);
    let since = *flow.of.stalled_since.get_or_insert(now);
    if sizes::note_stall(state, peer, since, label, false, now) {
        transmit::send_probes(state, slot, now);
        state.offer(slot, now);
        state.arm(slot, now);
    }
}

fn on_echo(state: &mut State, now: Time, peer: u32, echo: &ProbeHeader) {
    if echo.stream == LABELS {
        return peers::on_answer(state, now, peer, echo.tag);
    }
    let (sent, max) = ((echo.transmission, echo.held), state.settings.peer_timeout);
    let Some(known) = state.peer(peer) else { return };
    if echo.stream == CALIBRATION {
        // Late echoes of earlier probes are ignored.
        let last = known.requests.last().filter(|of| of.number == echo.transmission);
        if let Some(rtt) = last.and_then(|of| of.round_trip(now, echo.held, max)) {
            peers::on_calibration(state, now, peer, rtt);
        }
    } else if echo.stream == sizes::SIZES {
        sizes::on_echo(state, now, peer, echo.tag);
    } else if let Some(slot) = state.slot(peer, echo.stream) {
        // The scheme receives the round trip that a full packet would have measured.
        let longer = known.probe_base.longer;
        let Some((rtt, is_full)) = sample(&state.flows[slot as usize].of.transmissions, sent, now, max) else { return };
        let rtt = if is_full {
            peers::note_round_trip(state, now, peer, rtt);
            rtt
        } else {
            rtt.saturating_add(longer)
        };
        let rtt =
            state.transports[peer as usize].as_ref().map_or(rtt, |transport| transport.base_rtt_shift().adjust(rtt));
        // A flow that its scheme no longer holds is offered to the NIC again.
        state.flows[slot as usize].on_probe_reply(state.balancer.scheme_mut(), now, echo.tag, rtt, echo.ecn);
        transmit::send_probes(state, slot, now);
        state.offer(slot, now);
        state.arm(slot, now);
    }
}

pub(super) fn receiver_timer(state: &mut State, peer: u32, stream: u32, at: Time, now: Time) {
    let transport = state.transports.get(peer as usize).and_then(Option::as_ref).unwrap_or(&state.transport);
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    let label = known.last_label;
    let Some(incoming) = known.incoming.get_mut(&stream).filter(|incoming| incoming.timer_at == at) else { return };
    incoming.timer_at = Time::MAX;
    if let Some(ack) = incoming.receiver().on_timer(transport, now) {
        state.send_control(peer, label, Control::Ack { stream, ack, transmission: 0, arrived: now });
    } else if let Some(due) = incoming.receiver().deadline() {
        incoming.timer_at = due;
        state.timers.push(Reverse((due, Timer::Receiver { peer, stream })));
    }
}
