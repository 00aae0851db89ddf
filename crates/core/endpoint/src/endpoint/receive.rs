//! What arrives.

use super::{CALIBRATION, Endpoint, Timer, transmit::Control};
use crate::{
    header::{self, Data, Packet, Probed, Refused},
    peer::{Event, Peer, Stored, Why},
    stream::{Cost, Incoming, Limits, Taken},
};
use anabranch_transport::{DataArrival, Reply};
use anabranch_units::Time;
use std::{cmp::Reverse, net::SocketAddr};

/// A datagram that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The peer whose address it comes from; `None`: the datapath knows none of that address.
    pub peer: Option<u32>,
    /// That address, of label 0, which may be forged. `None`: the datapath vouches for the peer, and HELLOs need no cookie.
    pub from: Option<SocketAddr>,
    /// The label that answers to it should carry.
    pub label: u32,
    /// When it arrived, which may be some time ago.
    pub at: Time,
    /// Whether it was marked on its way.
    pub ecn: bool,
    /// What it says.
    pub bytes: &'a [u8],
}

/// Puts bytes of messages where they are to lie as they come, whatever their order (direct data placement, as RFC 5041 has it), for
/// those that say where ([`Endpoint::send_with`]): they are copied once, and not kept until they are whole.
pub trait Place {
    /// How many bytes of the beginning of such a message, of a packet at most, are told with it when it is whole, and the others put in their
    /// place as they come. `None`: it is kept and told like any other.
    fn head(&mut self, peer: u32, steering: u64, length: u64) -> Option<usize>;
    /// Bytes of such a message, from so many on. Each comes once.
    fn place(&mut self, peer: u32, steering: u64, from: u64, bytes: &[u8]);
}

/// There is no place for any.
pub struct Nowhere;

impl Place for Nowhere {
    fn head(&mut self, _peer: u32, _steering: u64, _length: u64) -> Option<usize> {
        None
    }
    fn place(&mut self, _peer: u32, _steering: u64, _from: u64, _bytes: &[u8]) {}
}

/// A peer makes progress where a message becomes whole that is so large a part of what its messages hold.
const PROGRESS: u64 = 64;

impl Endpoint {
    /// A datagram has arrived; `now` is when it is dealt with.
    pub fn handle(&mut self, now: Time, arrival: &Arrival<'_>) {
        self.handle_placing(now, arrival, &mut Nowhere);
    }

    /// The same for an owner who has places for messages; who has given one asks no more for [`Endpoint::handle`].
    pub fn handle_placing(&mut self, now: Time, arrival: &Arrival<'_>, places: &mut dyn Place) {
        let (packet, sealed) = match Packet::open(arrival.bytes) {
            Ok(opened) => opened,
            Err(Refused::Damaged) => {
                self.counters.damaged += 1;
                return self.stranger(arrival.peer);
            }
            Err(_) => {
                self.counters.refused += 1;
                return match header::foreign(arrival.bytes) {
                    Some(foreign) => self.on_foreign(now, arrival, &foreign),
                    None => self.stranger(arrival.peer),
                };
            }
        };
        // Refusals are said by those who cannot authenticate them.
        if let Packet::Welcome { connection, greeting } = &packet
            && greeting.connection == 0
        {
            return self.on_refused(arrival.peer, *connection, greeting);
        }
        if !self.is_authentic(arrival, &packet, sealed.as_ref()) {
            return match &packet {
                Packet::Hello { greeting, .. } => self.refuse_key(now, arrival, greeting),
                _ => self.stranger(arrival.peer),
            };
        }
        let connection = match &packet {
            Packet::Hello { greeting, cookie } => return self.on_hello(now, arrival, greeting, cookie),
            Packet::Retry { connection, nonce, cookie } => return self.on_retry(arrival, *connection, *nonce, cookie),
            other => other.connection(),
        };
        let Some((peer, known)) =
            arrival.peer.and_then(|peer| Some((peer, self.peers.get_mut(peer as usize)?.as_mut()?)))
        else {
            self.counters.strangers += 1;
            return self.stranger(arrival.peer);
        };
        if known.ours == connection {
            (known.quiet_since, known.heard_at, known.is_proven) = (None, now, true);
        } else if !self.promote(now, peer, connection) {
            self.counters.strangers += 1;
            return;
        }
        match packet {
            Packet::Hello { .. } | Packet::Retry { .. } => {}
            Packet::Welcome { greeting, .. } => self.on_welcome(now, peer, &greeting),
            Packet::Data { data, payload, .. } => self.on_data(now, peer, arrival, &data, payload, places),
            Packet::Answer { stream, answer, stamp, held, .. } => {
                let rtt = stamp.map(|stamp| now.saturating_sub(stamp).saturating_sub(held));
                self.on_answer(now, peer, stream, &answer, rtt, arrival.label);
            }
            Packet::Probe { probe, .. } => self.say(peer, arrival.label, Control::Echo { probe, arrived: arrival.at }),
            Packet::Echo { echo, .. } => {
                let rtt = now.saturating_sub(echo.stamp).saturating_sub(echo.held);
                self.on_echo(now, peer, &echo, rtt);
            }
            Packet::Bye { proof, .. } => self.on_bye(peer, proof),
        }
    }

    /// A peer leaves, if it is the peer: it has seen the handshake, as whoever guesses its connection number has not.
    fn on_bye(&mut self, peer: u32, proof: u64) {
        let knows = |known: &Peer| known.nonce == proof || known.their_nonce == Some(proof);
        if self.peer(peer).is_some_and(knows) {
            self.lose(peer, Why::Left);
        } else {
            self.counters.refused += 1;
        }
    }

    /// Whoever sends what is of no use, and is nobody's peer, takes no place.
    pub(super) fn stranger(&mut self, peer: Option<u32>) {
        if let Some(peer) = peer.filter(|peer| self.peer(*peer).is_none()) {
            self.gone.insert(peer);
        }
    }

    fn on_data(
        &mut self,
        now: Time,
        peer: u32,
        arrival: &Arrival<'_>,
        data: &Data,
        payload: Option<&[u8]>,
        places: &mut dyn Place,
    ) {
        let known = self.peers.get(peer as usize).and_then(Option::as_ref);
        let limits = Limits {
            earned: known.map_or(0, |known| known.delivered.saturating_sub(known.stored.bytes)),
            is_short: self.hosts.is_short(),
            mtu: self.settings.mtu(),
            span: u64::from(self.settings.span),
            most_message: self.settings.most_message,
            most_held: self.settings.most_held,
        };
        let transport = self.transports[peer as usize].as_ref().unwrap_or(&self.transport);
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        if !known.incoming.contains_key(&data.stream) {
            if known.incoming.len() >= self.settings.most_streams {
                self.counters.no_room += 1;
                return;
            }
            known.incoming.insert(data.stream, Incoming::new(transport));
        }
        let Some(incoming) = known.incoming.get_mut(&data.stream) else { return };
        if !incoming.fits(data, &limits) {
            self.counters.refused += 1;
            return;
        }
        self.counters.marked += u64::from(arrival.ecn);
        let answer = match payload {
            None => {
                self.counters.trimmed += 1;
                incoming.receiver().on_header(transport, data.psn, data.tag)
            }
            Some(payload) => {
                let (steering, length) = (data.steering, data.length);
                let room = (&mut known.reserved, &mut self.spares);
                let mut cost =
                    incoming.prepare(data, payload.len(), &limits, room, || places.head(peer, steering, length));
                if let Cost::Bytes { bytes, is_earned: true } = cost
                    && bytes > 0
                    && !self.hosts.may_earn(known.host, bytes)
                {
                    // It begins as those of other senders do.
                    incoming.abandon(data.message, &mut known.reserved);
                    let (limits, room) = (Limits { earned: 0, ..limits }, (&mut known.reserved, &mut self.spares));
                    cost = incoming.prepare(data, payload.len(), &limits, room, || places.head(peer, steering, length));
                }
                match cost {
                    Cost::Bytes { bytes: 0, .. } => {}
                    Cost::Bytes { bytes, is_earned } => {
                        if !is_earned && !self.hosts.may_store(known.host, bytes) {
                            incoming.abandon(data.message, &mut known.reserved);
                            let host = known.host;
                            if self.relieve(now, host, bytes) {
                                return self.on_data(now, peer, arrival, data, Some(payload), places);
                            }
                            self.counters.no_room += 1;
                            return;
                        }
                    }
                    Cost::Full => {
                        self.counters.no_room += 1;
                        return;
                    }
                }
                let place = |from, bytes: &[u8]| places.place(peer, steering, from, bytes);
                let Data { psn, tag, ack_request, .. } = *data;
                let arrived = DataArrival { psn, payload: limits.mtu as u32, tag, ecn: arrival.ecn, ack_request };
                let (answer, more) = incoming.on_data(transport, now, &arrived, data, payload, place);
                if more.bytes > 0 {
                    if known.stored.bytes == 0 {
                        known.stored_since = now;
                    }
                    known.stored.add(more);
                    self.hosts.store(known.host, more);
                }
                answer
            }
        };
        while let Some(Taken { number, bytes, placed, began, reserved, stored }) = incoming.take(limits.mtu) {
            // From now on it counts the bytes that are handed over.
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
            self.hosts.store(known.host, complete);
            self.hosts.release(known.host, stored);
            self.events.push_back(Event::Received { peer, stream: data.stream, message: number, bytes, placed, began });
        }
        if let Some(due) = incoming.receiver().deadline()
            && due < incoming.timer_at
        {
            incoming.timer_at = due;
            self.timers.push(Reverse((due, Timer::Receiver { peer, stream: data.stream })));
        }
        if let Some(answer) = answer {
            let (stream, stamp, arrived) = (data.stream, Some(data.stamp), arrival.at);
            let answered = Control::Answer { stream, answer, stamp, arrived };
            match self.control.back_mut() {
                Some((of, label, last))
                    if (*of, *label) == (peer, arrival.label) && last.is_told_by(stream, &answer) =>
                {
                    *last = answered;
                }
                _ => self.say(peer, arrival.label, answered),
            }
        }
    }

    pub(super) fn on_answer(
        &mut self,
        now: Time,
        peer: u32,
        stream: u32,
        answer: &Reply,
        rtt: Option<Time>,
        label: u32,
    ) {
        let Some(slot) = self.slot(peer, stream) else { return };
        if let Some(rtt) = rtt.filter(|_| self.flows[slot as usize].of.is_full(answer.psn)) {
            self.note_round_trip(now, peer, rtt);
        }
        let transport = self.transports[peer as usize].as_ref().unwrap_or(&self.transport);
        let flow = &mut self.flows[slot as usize];
        let scheme = self.balancer.scheme_mut();
        let heard = flow.on_answer(transport, scheme, now, answer, None, rtt, true);
        self.counters.overtaken += u64::from(heard.lost);
        let cumulative = flow.sender.cumulative();
        if let Some(watched) = &mut flow.of.watched {
            // Answers come back over the label of what they answer, and late ones of a timer name no packet's stamp.
            let lost = u64::from(heard.lost) + u64::from(heard.trimmed);
            watched.note_answer(now, label, answer.ecn, lost, rtt);
            watched.note_received(cumulative);
        }
        while let Some((message, delivered)) = flow.of.acknowledged(cumulative) {
            self.unacknowledged -= 1;
            self.events.push_back(Event::Sent { peer, stream, message, delivered });
        }
        if !heard.trimmed {
            self.send_probes(slot, now);
        }
        self.offer(slot, now);
        self.arm(slot, now);
    }

    pub(super) fn on_echo(&mut self, now: Time, peer: u32, echo: &Probed, rtt: Time) {
        if echo.stream == CALIBRATION {
            // Late echoes of questions that were asked again count for nothing.
            let last = self.peer(peer).is_some_and(|known| known.asked.wrapping_sub(1) == echo.tag);
            if last {
                self.on_calibration(now, peer, rtt);
            }
        } else if let Some(slot) = self.slot(peer, echo.stream) {
            // The scheme hears what a full packet would have measured.
            let Some(base) = self.peer(peer).map(|known| known.probe_base) else { return };
            let rtt = if usize::from(echo.size) == base.datagram {
                rtt.saturating_add(base.longer)
            } else {
                self.note_round_trip(now, peer, rtt);
                rtt
            };
            let rtt =
                self.transports[peer as usize].as_ref().map_or(rtt, |transport| transport.base_rtt_shift().adjust(rtt));
            self.flows[slot as usize].on_probe_reply(self.balancer.scheme_mut(), now, echo.tag, rtt);
            self.offer(slot, now);
        }
    }

    pub(super) fn receiver_timer(&mut self, peer: u32, stream: u32, at: Time, now: Time) {
        let transport = self.transports.get(peer as usize).and_then(Option::as_ref).unwrap_or(&self.transport);
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        let Some(incoming) = known.incoming.get_mut(&stream).filter(|incoming| incoming.timer_at == at) else { return };
        incoming.timer_at = Time::MAX;
        if let Some(answer) = incoming.receiver().on_timer(transport, now) {
            self.say(peer, 0, Control::Answer { stream, answer, stamp: None, arrived: now });
        } else if let Some(due) = incoming.receiver().deadline() {
            incoming.timer_at = due;
            self.timers.push(Reverse((due, Timer::Receiver { peer, stream })));
        }
    }
}
