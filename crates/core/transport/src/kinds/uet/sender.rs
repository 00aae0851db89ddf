//! The sender of a flow (specification 7.10): a window, selective retransmission, a timeout per packet.

use super::{
    FIRST_OF_STREAM, FIRST_SPAN, UetConfig,
    cc::{CcAck, CcLoss, CongestionControl},
    limits::{Credit, SendLimits},
};
use crate::{AckOutcome, Constants, Reply, Segment, Sending, psn_set::PsnSet};
use anabranch_units::{Rate, Time};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Acknowledged, or not sent yet.
    #[default]
    Idle,
    InFlight,
    /// Trimmed or timed out; waits for retransmission.
    Lost,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    sent_at: Time,
    tag: u32,
    state: State,
    is_retransmitted: bool,
}

const _: () = assert!(size_of::<Slot>() == 16);

/// Round-trip statistics for a measured timeout (RFC 6298).
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrips {
    smoothed: Time,
    deviation: Time,
    /// Doublings since the last acknowledgement.
    backoff: u32,
    /// Time of the last doubling; packets sent before it belong to the same timeout.
    doubled: Time,
}

/// Tail loss probe (RFC 8985, section 7). No later packet reveals losses at the tail, so its last packet is
/// retransmitted after two round trips without a reply.
#[derive(Clone, Copy, Debug, Default)]
enum Tail {
    #[default]
    Idle,
    /// The last packet sent is the tail for now: the flow is blocked until a reply arrives.
    Blocked,
    /// Packet `psn` was retransmitted as a probe at `at`.
    Probed { psn: u64, at: Time },
    /// The probe was acknowledged: packets sent before `at` and still in flight are lost.
    ProbeAcked { at: Time },
}

const MAX_BACKOFF: u32 = 6;

impl RoundTrips {
    fn note(&mut self, rtt: Time) {
        self.backoff = 0;
        if self.smoothed == Time::ZERO {
            (self.smoothed, self.deviation) = (rtt, rtt / 2);
            return;
        }
        let off = rtt.max(self.smoothed).saturating_sub(rtt.min(self.smoothed));
        self.deviation = (self.deviation * 3 + off) / 4;
        self.smoothed = (self.smoothed * 7 + rtt) / 8;
    }

    fn back_off(&mut self, sent: Time, now: Time, most: u32) {
        if self.backoff == 0 || sent >= self.doubled {
            self.backoff = (self.backoff + 1).min(most);
            self.doubled = now;
        }
    }

    fn timeout(&self, least: Time) -> Time {
        let measured = (self.smoothed + self.deviation * 4).max(least);
        measured.saturating_mul(1 << self.backoff)
    }
}

/// The sending side of a flow.
#[derive(Clone, Debug)]
pub struct UetSender {
    /// Slot of PSN p: `ring[p & mask]`, for `cumulative <= p < next_psn`.
    ring: Box<[Slot]>,
    mask: u64,
    cumulative: u64,
    next_psn: u64,
    packets: u64,
    last_payload: u32,
    lost: u32,
    /// Bytes on the wire that are neither acknowledged nor lost.
    in_flight: u64,
    cwnd: u64,
    /// Lower bound of the send times of packets in flight.
    oldest: Time,
    rto: Time,
    round_trips: RoundTrips,
    last_sent: Time,
    tail: Tail,
    acked: PsnSet,
    /// Lost packets in the order of their loss; some may have been acknowledged since.
    queue: VecDeque<u64>,
    cc: CongestionControl,
    retransmitted: u64,
    /// `None`: the window alone decides.
    limits: Option<Box<SendLimits>>,
}

impl UetSender {
    #[inline]
    fn payload(&self, config: &UetConfig, psn: u64) -> u32 {
        if psn + 1 == self.packets { self.last_payload } else { config.mtu as u32 }
    }

    #[inline]
    fn wire(&self, config: &UetConfig, psn: u64) -> u64 {
        u64::from(self.payload(config, psn)) + config.header
    }

    #[inline]
    fn slot(&mut self, psn: u64) -> &mut Slot {
        &mut self.ring[(psn & self.mask) as usize]
    }

    /// Removes packets that are no longer lost from the front of the queue.
    #[inline]
    fn skip_stale(&mut self) {
        while let Some(&psn) = self.queue.front() {
            if psn >= self.cumulative && self.ring[(psn & self.mask) as usize].state == State::Lost {
                return;
            }
            self.queue.pop_front();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = 2 * (self.mask + 1);
        let mut ring = vec![Slot::default(); slots as usize].into_boxed_slice();
        for psn in self.cumulative..self.next_psn {
            ring[(psn & (slots - 1)) as usize] = self.ring[(psn & self.mask) as usize];
        }
        (self.ring, self.mask) = (ring, slots - 1);
    }

    #[inline]
    fn acknowledge(&mut self, config: &UetConfig, psn: u64) {
        let wire = self.wire(config, psn);
        let slot = self.slot(psn);
        match std::mem::replace(&mut slot.state, State::Idle) {
            State::InFlight => self.in_flight -= wire,
            State::Lost => self.lost -= 1,
            State::Idle => {}
        }
    }

    /// Applies a cumulative PSN and a selective bitmap; returns packets and payload bytes newly acknowledged.
    fn take(&mut self, config: &UetConfig, cumulative: u64, base: u64, bitmap: u64) -> (u32, u64) {
        let cumulative = cumulative.min(self.next_psn);
        let (mut packets, mut bytes) = (0, 0);
        let count = |sender: &Self, psn: u64, packets: &mut u32, bytes: &mut u64| {
            *packets += 1;
            *bytes += u64::from(sender.payload(config, psn));
        };
        for psn in self.cumulative..cumulative {
            if !self.acked.contains(self.cumulative, psn) {
                self.acknowledge(config, psn);
                count(self, psn, &mut packets, &mut bytes);
            }
        }
        if cumulative > self.cumulative {
            self.acked.take_below(self.cumulative, cumulative);
            self.cumulative = cumulative;
        }
        // Ignore bits below `cumulative` and at or above `next_psn`.
        let (base, bitmap) = if base >= self.cumulative {
            (base, bitmap)
        } else {
            (self.cumulative, bitmap.checked_shr((self.cumulative - base).min(64) as u32).unwrap_or(0))
        };
        let room = self.next_psn.saturating_sub(base);
        let bitmap = if room < 64 { bitmap & ((1 << room) - 1) } else { bitmap };
        if bitmap != 0 {
            let fresh = bitmap & !self.acked.bits_from(self.cumulative, base);
            let mut rest = fresh;
            while rest != 0 {
                let psn = base + u64::from(rest.trailing_zeros());
                rest &= rest - 1;
                self.acknowledge(config, psn);
                count(self, psn, &mut packets, &mut bytes);
            }
            self.acked.insert_bits(self.cumulative, base, fresh);
            self.cumulative = self.acked.take_run(self.cumulative);
        } else if packets > 0 {
            self.cumulative = self.acked.take_run(self.cumulative);
        }
        if packets > 0 {
            self.skip_stale();
            if config.doubling.is_some() {
                (self.round_trips.backoff, self.rto) = (0, config.rto);
            }
        }
        (packets, bytes)
    }

    /// Bytes on the wire that wait for their first transmission or another one; the last packet counts as full.
    fn backlog(&self, config: &UetConfig) -> u64 {
        (self.packets - self.next_psn + u64::from(self.lost)) * (config.mtu + config.header)
    }

    fn credit(&mut self) -> Option<&mut Credit> {
        self.limits.as_mut().and_then(|limits| limits.credit.as_mut())
    }

    #[cold]
    #[inline(never)]
    fn spend(&mut self, bytes: u64) {
        if let Some(credit) = self.credit() {
            credit.spend(bytes);
        }
    }

    /// Returns the time at which a sender without credit and packets in flight requests credit again: a grant may have been lost.
    #[cold]
    #[inline(never)]
    fn starved_until(&self, config: &UetConfig) -> Option<Time> {
        let is_starved = self.limits.as_ref().is_some_and(|limits| limits.is_starved());
        (is_starved && self.backlog(config) > 0).then(|| self.last_sent.saturating_add(self.rto))
    }

    #[cold]
    #[inline(never)]
    fn is_within_limits(&self) -> bool {
        self.limits.as_ref().is_none_or(|limits| limits.allow(self.lost > 0, self.next_psn - self.cumulative))
    }

    /// Stops for good.
    #[cold]
    fn fail(&mut self) {
        (self.lost, self.in_flight) = (0, 0);
        self.queue.clear();
        self.ring.fill(Slot::default());
        self.limits = Some(SendLimits::failed());
    }

    #[inline]
    fn on_ack(
        &mut self,
        config: &UetConfig,
        now: Time,
        ack: &Reply,
        path_rtt: Option<Time>,
        measured: Option<Time>,
    ) -> AckOutcome {
        let sample = (ack.psn >= self.cumulative && ack.psn < self.next_psn).then(|| *self.slot(ack.psn));
        let since = || sample.filter(|slot| !slot.is_retransmitted).map(|slot| now.saturating_sub(slot.sent_at));
        let rtt = measured.or_else(since);
        self.note_round_trip(config, rtt);
        let rtt = if measured.is_some() { rtt.map(|rtt| config.base_rtt_shift.adjust(rtt)) } else { rtt };
        let selective_from = ack.cumulative + u64::from(ack.offset);
        let (packets, bytes) = self.take(config, ack.cumulative, selective_from, ack.bitmap);
        if packets > 0 {
            let wire = bytes + u64::from(packets) * config.header;
            let (ecn, in_flight) = (ack.ecn, self.in_flight);
            let is_full = self.payload(config, ack.psn) == config.mtu as u32;
            let cc_ack = CcAck { now, bytes: wire, packets, psn: ack.psn, ecn, rtt, is_full, in_flight, path_rtt };
            self.cc.on_ack(&config.cc, &cc_ack);
            self.cwnd = self.cc.cwnd();
        }
        if let Tail::Probed { psn, at } = self.tail {
            // The ACK of the first transmission predates the probe.
            let of_this = ack.psn == psn && measured.is_none_or(|rtt| rtt <= now.saturating_sub(at));
            if of_this || packets > 0 {
                self.tail = if of_this && self.in_flight > 0 { Tail::ProbeAcked { at } } else { Tail::Idle };
            }
        }
        let lost = match (config.early_loss, sample) {
            (Some(after), Some(slot)) if !slot.is_retransmitted => {
                self.lose_earlier(config, now, ack.psn, &slot, after)
            }
            _ => 0,
        };
        let lost = match (config.rack, sample) {
            (Some(after), Some(slot)) if !slot.is_retransmitted => lost + self.lose_older(config, now, &slot, after),
            _ => lost,
        };
        let (selective, done) = (ack.bitmap, self.is_done());
        AckOutcome { packets, bytes, rtt, lost, done, selective, selective_from, ..AckOutcome::default() }
    }

    /// Declares lost the packets of the tag of `psn`, which has arrived, that were sent at least `after` before it.
    #[cold]
    fn lose_earlier(&mut self, config: &UetConfig, now: Time, psn: u64, slot: &Slot, after: Time) -> u32 {
        let mut lost = 0;
        for earlier in self.cumulative..psn {
            let of = *self.slot(earlier);
            if of.state == State::InFlight && of.tag == slot.tag && of.sent_at.saturating_add(after) <= slot.sent_at {
                let bytes = self.lose(config, earlier);
                self.cc.on_nack(&config.cc, &CcLoss { now, bytes, in_flight: self.in_flight });
                lost += 1;
            }
        }
        if lost > 0 {
            self.cwnd = self.cc.cwnd();
        }
        lost
    }

    /// Declares lost the packets of any tag that were sent at least `after` before the one of `slot`, which has arrived.
    #[inline]
    fn lose_older(&mut self, config: &UetConfig, now: Time, slot: &Slot, after: Time) -> u32 {
        let is_old = |sent_at: Time| sent_at.saturating_add(after) <= slot.sent_at;
        // After a search `oldest` is exact, so that there is about one search per `after`.
        if self.in_flight == 0 || !is_old(self.oldest) {
            return 0;
        }
        let (mut lost, mut oldest) = (0, Time::MAX);
        for psn in self.cumulative..self.next_psn {
            let of = *self.slot(psn);
            if of.state != State::InFlight {
                continue;
            }
            if !is_old(of.sent_at) {
                oldest = oldest.min(of.sent_at);
                continue;
            }
            let bytes = self.lose(config, psn);
            self.cc.on_timeout(&config.cc, &CcLoss { now, bytes, in_flight: self.in_flight });
            lost += 1;
        }
        (self.oldest, self.cwnd) = (oldest, self.cc.cwnd());
        lost
    }

    #[inline]
    fn note_round_trip(&mut self, config: &UetConfig, rtt: Option<Time>) {
        if config.measures_rto
            && let Some(rtt) = rtt
        {
            self.round_trips.note(rtt);
            self.rto = self.round_trips.timeout(config.rto);
        }
    }

    fn on_nack(&mut self, config: &UetConfig, now: Time, nack: &Reply) -> AckOutcome {
        let (packets, bytes) = self.take(config, nack.cumulative, nack.cumulative, 0);
        if packets > 0 {
            self.cc.on_progress(bytes + u64::from(packets) * config.header);
        }
        let known = nack.psn >= self.cumulative && nack.psn < self.next_psn;
        if known && self.slot(nack.psn).state == State::InFlight {
            let bytes = self.lose(config, nack.psn);
            // The receiver's credit already adapts to its own port.
            if !(nack.last_hop && config.takes_credit) {
                self.cc.on_nack(&config.cc, &CcLoss { now, bytes, in_flight: self.in_flight });
            }
            self.cwnd = self.cc.cwnd();
        }
        AckOutcome { trimmed: true, done: self.is_done(), ..AckOutcome::default() }
    }

    fn lose(&mut self, config: &UetConfig, psn: u64) -> u64 {
        let wire = self.wire(config, psn);
        self.slot(psn).state = State::Lost;
        self.in_flight -= wire;
        self.lost += 1;
        self.queue.push_back(psn);
        wire
    }

    fn tail_deadline(&self) -> Option<Time> {
        match self.tail {
            Tail::ProbeAcked { .. } => Some(Time::ZERO),
            Tail::Probed { .. } => None,
            Tail::Idle if self.next_psn < self.packets => None,
            _ if self.lost == 0 && self.round_trips.smoothed > Time::ZERO => {
                Some(self.last_sent.saturating_add(self.round_trips.smoothed * 2))
            }
            _ => None,
        }
    }

    /// Sends the tail loss probe, or declares lost the packets sent before an acknowledged one.
    #[cold]
    fn on_tail(&mut self, config: &UetConfig, now: Time, lost: &mut impl FnMut(u64, u32)) {
        let in_flight = |sender: &mut Self, psn: u64| Some(*sender.slot(psn)).filter(|of| of.state == State::InFlight);
        match self.tail {
            Tail::ProbeAcked { at } => {
                for psn in self.cumulative..self.next_psn {
                    let Some(slot) = in_flight(self, psn).filter(|slot| slot.sent_at < at) else { continue };
                    let bytes = self.lose(config, psn);
                    self.cc.on_nack(&config.cc, &CcLoss { now, bytes, in_flight: self.in_flight });
                    lost(psn, slot.tag);
                }
                (self.tail, self.cwnd) = (Tail::Idle, self.cc.cwnd());
            }
            _ => {
                let last = (self.cumulative..self.next_psn).rev().find(|psn| in_flight(self, *psn).is_some());
                if let Some(psn) = last {
                    // The packet may have arrived, so no loss is reported yet.
                    self.lose(config, psn);
                    self.tail = Tail::Probed { psn, at: now };
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        self.cumulative == self.packets
    }
}

impl Sending for UetSender {
    type Config = UetConfig;

    fn new(config: &UetConfig, _rate: Rate, base_rtt: Time, size: u64, _now: Time) -> Self {
        let packets = config.packets(size);
        // Rings grow with the packets under way: no window that a scenario or a peer states takes memory.
        let span = config.window_packets().min(packets).min(FIRST_SPAN);
        let slots = span.next_power_of_two();
        let cc = CongestionControl::new(&config.cc, config.longest_rtt.unwrap_or(base_rtt));
        UetSender {
            ring: vec![Slot::default(); slots as usize].into_boxed_slice(),
            mask: slots - 1,
            cumulative: 0,
            next_psn: 0,
            packets,
            last_payload: (size - (packets - 1) * config.mtu) as u32,
            lost: 0,
            in_flight: 0,
            cwnd: cc.cwnd(),
            oldest: Time::ZERO,
            rto: config.rto,
            round_trips: RoundTrips::default(),
            last_sent: Time::ZERO,
            tail: Tail::Idle,
            acked: PsnSet::new(span),
            queue: VecDeque::new(),
            cc,
            retransmitted: 0,
            limits: SendLimits::new(config),
        }
    }

    fn of_stream(config: &UetConfig, rate: Rate, base_rtt: Time, now: Time, first: u64) -> Self {
        let full = UetSender::new(config, rate, base_rtt, FIRST_OF_STREAM * config.mtu, now);
        UetSender { packets: first, cumulative: first, next_psn: first, last_payload: config.mtu as u32, ..full }
    }

    #[inline]
    fn on_reply(
        &mut self,
        config: &UetConfig,
        now: Time,
        reply: &Reply,
        path_rtt: Option<Time>,
        measured: Option<Time>,
    ) -> AckOutcome {
        if let Some(credit) = self.credit() {
            credit.end_speculation();
        }
        if !reply.nack {
            return self.on_ack(config, now, reply, path_rtt, measured);
        }
        self.note_round_trip(config, measured);
        self.on_nack(config, now, reply)
    }

    fn last_lost(&self, count: u32, lost: &mut impl FnMut(u32)) {
        let first = self.queue.len().saturating_sub(count as usize);
        self.queue.range(first..).for_each(|psn| lost(self.ring[(psn & self.mask) as usize].tag));
    }

    fn allowed(&self, _config: &UetConfig, _now: Time) -> (Option<u64>, Option<Rate>) {
        (Some(self.cwnd), None)
    }

    #[inline]
    fn requests_ack(&self, ready: bool) -> bool {
        !ready
    }

    fn append(&mut self, _config: &UetConfig, packets: u64) {
        self.packets += packets;
    }

    fn shorten(&mut self, _config: &UetConfig, packets: u64) {
        self.packets -= packets;
        assert!(self.next_psn < self.packets, "a packet that was sent cannot be removed");
    }

    #[inline]
    fn ready(&self, config: &UetConfig) -> bool {
        if self.lost == 0 && self.next_psn == self.packets {
            return false;
        }
        if self.limits.is_some() && !self.is_within_limits() {
            return false;
        }
        // Lost packets count as full: only a flow's last packet is shorter, and it can wait.
        let wire = if self.lost == 0 { self.wire(config, self.next_psn) } else { config.mtu + config.header };
        self.in_flight == 0 || self.in_flight + wire <= self.cwnd
    }

    #[inline]
    fn peek(&self, config: &UetConfig) -> Option<Segment> {
        if self.lost > 0 {
            let psn = *self.queue.front()?;
            return Some(Segment { psn, payload: self.payload(config, psn), retransmission: true });
        }
        let psn = self.next_psn;
        (psn < self.packets).then(|| Segment { psn, payload: self.payload(config, psn), retransmission: false })
    }

    #[inline]
    fn send(&mut self, config: &UetConfig, now: Time, tag: u32) -> Segment {
        let segment = self.peek(config).expect("something to send");
        if segment.retransmission {
            self.queue.pop_front();
            self.lost -= 1;
            self.retransmitted += 1;
        } else {
            if self.next_psn - self.cumulative > self.mask {
                self.grow();
            }
            self.next_psn += 1;
        }
        if self.in_flight == 0 {
            self.oldest = now;
        }
        self.last_sent = now;
        if let Tail::Blocked = self.tail {
            self.tail = Tail::Idle;
        }
        let wire = u64::from(segment.payload) + config.header;
        self.in_flight += wire;
        if self.limits.is_some() {
            self.spend(wire);
        }
        *self.slot(segment.psn) =
            Slot { sent_at: now, tag, state: State::InFlight, is_retransmitted: segment.retransmission };
        self.skip_stale();
        segment
    }

    #[inline]
    fn deadline(&self, config: &UetConfig) -> Option<Time> {
        if self.in_flight == 0 {
            return if self.limits.is_some() { self.starved_until(config) } else { None };
        }
        let timeout = self.oldest.saturating_add(self.rto);
        let tail = if config.measures_rto { self.tail_deadline() } else { None };
        Some(tail.map_or(timeout, |tail| tail.min(timeout)))
    }

    /// Declares lost what was sent a timeout ago or earlier; a measured timeout adds the earlier tail loss probe.
    fn on_timer(&mut self, config: &UetConfig, now: Time, timed_out: &mut impl FnMut(u64, u32)) {
        if config.measures_rto && self.oldest.saturating_add(self.rto) > now {
            if self.tail_deadline().is_some_and(|tail| tail <= now) {
                self.on_tail(config, now, timed_out);
            }
            return;
        }
        self.tail = Tail::Idle;
        let is_starved = self.in_flight == 0;
        let mut oldest = Time::MAX;
        let mut last_lost = None;
        for psn in self.cumulative..self.next_psn {
            let slot = *self.slot(psn);
            if slot.state != State::InFlight {
                continue;
            }
            if slot.sent_at.saturating_add(self.rto) > now {
                oldest = oldest.min(slot.sent_at);
                continue;
            }
            let bytes = self.lose(config, psn);
            last_lost = last_lost.max(Some(slot.sent_at));
            self.cc.on_timeout(&config.cc, &CcLoss { now, bytes, in_flight: self.in_flight });
            timed_out(psn, slot.tag);
        }
        self.cwnd = self.cc.cwnd();
        if (is_starved || last_lost.is_some())
            && let Some(credit) = self.credit()
        {
            // The next packet requests more.
            credit.allow_packet();
        }
        if oldest != Time::MAX {
            self.oldest = oldest;
        }
        if config.measures_rto
            && let Some(sent) = last_lost
        {
            self.round_trips.back_off(sent, now, MAX_BACKOFF);
            self.rto = self.round_trips.timeout(config.rto);
        } else if config.doubling.is_some()
            && let Some(sent) = last_lost
        {
            self.round_trips.back_off(sent, now, u32::MAX);
            match config.backed_off(self.round_trips.backoff) {
                Some(rto) => self.rto = rto,
                None => self.fail(),
            }
        }
    }

    fn next_psn(&self) -> u64 {
        self.next_psn
    }

    fn cumulative(&self) -> u64 {
        self.cumulative
    }

    fn sent_at(&self, psn: u64) -> Option<Time> {
        let is_known = (self.cumulative..self.next_psn).contains(&psn);
        is_known.then(|| self.ring[(psn & self.mask) as usize].sent_at)
    }

    fn in_flight(&self) -> u64 {
        self.in_flight
    }

    fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    #[inline]
    fn demand(&self, config: &UetConfig, active: u32) -> u64 {
        let Some(credit) = self.limits.as_ref().and_then(|limits| limits.credit.as_ref()) else { return 0 };
        let packet = config.mtu + config.header;
        credit.demand(self.backlog(config).min(config.window).min(self.cwnd + packet), packet, active)
    }

    fn on_grant(&mut self, config: &UetConfig, granted: u64) {
        if let Some(credit) = self.credit() {
            credit.grant(granted, config.window);
        }
    }

    fn is_failed(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| limits.has_failed)
    }

    #[inline]
    fn on_blocked(&mut self) {
        if let Tail::Idle = self.tail {
            self.tail = Tail::Blocked;
        }
    }
}

#[cfg(test)]
mod tests;
