//! The sender of a queue pair (specification 7.3, 17.3).
//!
//! IRN (SIGCOMM 2018, section 3.1) retransmits lost packets once per recovery. After a selective acknowledgement those
//! are the missing ones below the highest PSN that has arrived, the cumulative one first; after a timeout, all packets
//! not reported as received. The reference model's IRN goes back like go-back-N and skips what has arrived, so it
//! retransmits packets still in flight (`recorded = true`).

use super::{
    RateOnPathChange, Recovery, RoceConfig,
    blocks::Blocks,
    control::{Control, PairReply, Start},
};
use crate::{AckOutcome, Reply, Segment, Sending};
use anabranch_units::{Rate, Time};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    at: Time,
    tag: u32,
    /// Retransmitted: its round trip is ambiguous.
    is_retransmitted: bool,
}

/// Bytes of a stream for the initial state of its congestion control.
const ENDLESS: u64 = 1 << 40;

/// The sending side of a flow.
#[derive(Clone, Debug)]
pub struct RoceSender {
    /// Bytes by which the last packet is shorter than the others.
    short: u64,
    packets: u64,
    /// First PSN not yet acknowledged.
    una: u64,
    /// PSN of the next transmission, apart from arrived packets and IRN's retransmissions.
    nxt: u64,
    /// IRN's rule: retransmit the PSNs from `again_from` to below `lost_below` that have not arrived.
    again_from: u64,
    lost_below: u64,
    highest: u64,
    /// Highest cumulative acknowledgement received.
    highest_ack: u64,
    /// PSNs beyond `una` reported as received.
    arrived: Blocks,
    recovering: bool,
    /// PSN at which recovery ends, once all below it are acknowledged.
    recovery_end: u64,
    next_avail: Time,
    /// Last restart of the retransmission timer, and its duration; `None`: stopped.
    restarted: Time,
    timeout: Option<Time>,
    line_rate: Rate,
    base_rtt: Time,
    control: Control,
    path: Option<u32>,
    /// State of PSN `una + i` at index `i`.
    sent: VecDeque<Sent>,
    retransmitted: u64,
}

/// PSN beyond the cumulative one that a reply reports as received; IRN uses the bitmap field for it.
fn sack(reply: &Reply) -> Option<u64> {
    (reply.offset != 0).then_some(reply.bitmap)
}

impl RoceSender {
    fn control(config: &RoceConfig, line_rate: Rate, base_rtt: Time, size: u64) -> Control {
        let window_packets = config.window.min(size) as f64 / config.mtu as f64;
        Control::new(&config.control, &Start { line_rate, base_rtt, window_packets })
    }

    /// Payload of the packets from PSN `from` to below `to`. Bytes are never counted from the first packet of a stream.
    #[inline]
    fn bytes(&self, config: &RoceConfig, from: u64, to: u64) -> u64 {
        let short = if to == self.packets && from < to { self.short } else { 0 };
        (to - from) * config.mtu - short
    }

    fn size(&self, config: &RoceConfig) -> u64 {
        self.packets.saturating_mul(config.mtu) - self.short
    }

    #[inline]
    fn next(&self, config: &RoceConfig) -> u64 {
        if config.recorded {
            // The reference model skips the first run alone.
            return self.arrived.first().filter(|run| run.0 == self.nxt).map_or(self.nxt, |run| run.1);
        }
        self.lost().unwrap_or(self.nxt)
    }

    /// First PSN that is lost by IRN's rule and has not been retransmitted.
    #[inline]
    fn lost(&self) -> Option<u64> {
        let from = self.again_from.max(self.una);
        if from >= self.lost_below {
            return None;
        }
        let psn = self.arrived.run_at(from).unwrap_or(from);
        (psn < self.lost_below).then_some(psn)
    }

    fn window(&self, config: &RoceConfig) -> u64 {
        self.control.window(config.mtu).min(config.window)
    }

    /// Notes the path `tag` of the next packet. A change resets or restores the rate where that is set.
    #[inline]
    fn take_path(&mut self, config: &RoceConfig, now: Time, tag: u32) {
        let changes = config.on_path_change;
        if changes != RateOnPathChange::Keep && self.control.is_per_path() && self.path.is_some_and(|path| path != tag)
        {
            match changes {
                RateOnPathChange::Restore => self.control.restore(&config.control, now),
                _ => self.control = Self::control(config, self.line_rate, self.base_rtt, self.size(config)),
            }
        }
        self.path = Some(tag);
    }

    #[inline]
    fn restart(&mut self, config: &RoceConfig, now: Time) {
        self.restarted = now;
        self.timeout = match config.recovery {
            Recovery::GoBackN => config.rto,
            _ if self.bytes(config, self.una, self.nxt) > 3 * config.mtu => Some(config.rto_high),
            _ => Some(config.rto_low),
        };
    }

    fn take(&mut self, config: &RoceConfig, reply: &Reply) {
        let before = self.una;
        let cumulative = reply.cumulative.min(self.highest);
        self.highest_ack = self.highest_ack.max(cumulative);
        self.una = self.una.max(cumulative);
        if config.recovery != Recovery::GoBackN {
            if let Some(psn) = sack(reply).filter(|psn| *psn >= self.una && *psn < self.highest) {
                self.arrived.insert(psn);
            }
            if let Some(first) = self.arrived.first() {
                if first.0 <= self.una {
                    self.una = self.una.max(first.1);
                }
                self.arrived.discard_below(self.una);
            }
        }
        self.nxt = self.nxt.max(self.una);
        let gone = ((self.una - before) as usize).min(self.sent.len());
        self.sent.drain(..gone);
        if self.recovering && self.una >= self.recovery_end {
            self.recovering = false;
        }
    }

    /// Returns the packets that have arrived early, a bit each, and the PSN of the lowest bit.
    #[cold]
    fn early(&self) -> (u64, u64) {
        (self.arrived.bits(self.una), self.una)
    }

    /// PSN below which a NACK reports what has not arrived as lost: the packet of its block, or with a packet that the
    /// receiver had no memory for, the one after it.
    fn reported_lost(&self, reply: &Reply) -> Option<u64> {
        match sack(reply) {
            _ if !reply.nack => None,
            Some(psn) => Some(psn),
            None => (reply.psn >= self.una).then_some(reply.psn + 1),
        }
    }

    fn recover(&mut self, config: &RoceConfig, reply: &Reply) {
        if config.recovery == Recovery::GoBackN {
            if reply.nack {
                self.nxt = self.una;
            }
        } else if let Some(psn) = self.reported_lost(reply) {
            let entering = !self.recovering;
            if entering {
                self.recovery_end = self.nxt;
                self.recovering = true;
            }
            match (config.recorded, entering) {
                (true, true) => self.nxt = self.una,
                (true, false) => {}
                (false, _) => {
                    if entering {
                        self.again_from = self.una;
                    }
                    // Ignore reports of packets that were never sent.
                    self.lost_below = self.lost_below.max(psn.min(self.highest));
                }
            }
        } else if config.recorded && sack(reply).is_none() {
            self.recovering = false;
        }
    }
}

impl Sending for RoceSender {
    type Config = RoceConfig;

    fn new(config: &RoceConfig, line_rate: Rate, base_rtt: Time, size: u64, now: Time) -> Self {
        RoceSender {
            short: config.packets(size) * config.mtu - size,
            packets: config.packets(size),
            una: 0,
            nxt: 0,
            again_from: 0,
            lost_below: 0,
            highest: 0,
            highest_ack: 0,
            arrived: Blocks::default(),
            recovering: false,
            recovery_end: 0,
            next_avail: now,
            restarted: now,
            timeout: None,
            line_rate,
            base_rtt,
            control: Self::control(config, line_rate, base_rtt, size),
            path: None,
            sent: VecDeque::new(),
            retransmitted: 0,
        }
    }

    fn of_stream(config: &RoceConfig, line_rate: Rate, base_rtt: Time, now: Time, first: u64) -> Self {
        let endless = RoceSender::new(config, line_rate, base_rtt, ENDLESS, now);
        RoceSender {
            short: 0,
            packets: first,
            una: first,
            nxt: first,
            highest: first,
            highest_ack: first,
            recovery_end: first,
            ..endless
        }
    }

    fn append(&mut self, _config: &RoceConfig, packets: u64) {
        self.packets += packets;
    }

    fn shorten(&mut self, _config: &RoceConfig, packets: u64) {
        self.packets -= packets;
        assert!(self.highest < self.packets, "a packet that was sent cannot be removed");
    }

    #[inline]
    fn ready(&self, config: &RoceConfig) -> bool {
        let next = self.next(config);
        if next >= self.packets {
            return false;
        }
        if config.window == u64::MAX && !self.control.has_window() {
            return true;
        }
        let window = self.window(config);
        let (to_next, left) = (self.bytes(config, self.highest_ack, next), self.bytes(config, next, self.packets));
        if self.control.has_bursts() {
            let room = window.saturating_sub(to_next);
            // A burst is at most one window, or it would never start.
            return room > 0 && self.control.may_send(&config.control, config.mtu, room, left.min(window));
        }
        let in_flight = self.bytes(config, self.highest_ack, self.highest.max(self.highest_ack));
        in_flight + config.mtu.min(left) < window || window > to_next
    }

    #[inline]
    fn peek(&self, config: &RoceConfig) -> Option<Segment> {
        let psn = self.next(config);
        let payload = || self.bytes(config, psn, psn + 1) as u32;
        (psn < self.packets).then(|| Segment { psn, payload: payload(), retransmission: psn < self.highest })
    }

    fn send(&mut self, config: &RoceConfig, now: Time, tag: u32) -> Segment {
        let segment = self.peek(config).expect("something to send");
        if self.control.has_bursts() {
            let sent = self.bytes(config, self.highest_ack, segment.psn);
            let room = self.window(config).saturating_sub(sent);
            self.control.on_sent(&config.control, room, u64::from(segment.payload));
        }
        self.take_path(config, now, tag);
        if segment.psn < self.nxt {
            self.again_from = segment.psn + 1;
        } else {
            self.nxt = segment.psn + 1;
        }
        let index = (segment.psn - self.una) as usize;
        if self.sent.len() <= index {
            self.sent.resize(index + 1, Sent { is_retransmitted: true, ..Sent::default() });
        }
        self.sent[index] = Sent { at: now, tag, is_retransmitted: segment.retransmission };
        if segment.retransmission {
            self.retransmitted += 1;
        } else {
            self.highest = segment.psn + 1;
        }
        let wire = u64::from(segment.payload) + config.header;
        if config.counts_bytes {
            self.control.on_bytes(&config.control, now, wire);
        }
        let paced = self.control.rate(&config.control, now, self.line_rate);
        let gap = paced.map_or(Time::ZERO, |rate| config.gap(rate, wire));
        self.next_avail = now + gap.max(self.control.min_gap());
        self.restart(config, now);
        segment
    }

    #[inline]
    fn deadline(&self, _config: &RoceConfig) -> Option<Time> {
        if self.nxt > self.una { self.timeout.map(|timeout| self.restarted.saturating_add(timeout)) } else { None }
    }

    /// Goes back to the first unacknowledged packet. With IRN all later packets that have not arrived count as lost too
    /// (ours, as in the reference model: by the paper only the first does, and a lost tail takes a timeout per packet).
    fn on_timer(&mut self, config: &RoceConfig, now: Time, timed_out: &mut impl FnMut(u64, u32)) {
        if self.deadline(config).is_none_or(|deadline| deadline > now) {
            return;
        }
        timed_out(self.una, self.sent.front().map_or(0, |sent| sent.tag));
        self.control.on_timeout(&config.control, now);
        if config.recovery == Recovery::GoBackN {
            self.nxt = self.una;
            return;
        }
        self.recovering = true;
        if config.recorded {
            self.nxt = self.una;
            return;
        }
        self.recovery_end = self.nxt;
        (self.again_from, self.lost_below) = (self.una, self.nxt);
        self.restart(config, now);
    }

    fn allowed(&self, config: &RoceConfig, now: Time) -> (Option<u64>, Option<Rate>) {
        let window = self.window(config);
        ((window != u64::MAX).then_some(window), self.control.clone().rate(&config.control, now, self.line_rate))
    }

    fn next_psn(&self) -> u64 {
        self.highest
    }

    fn cumulative(&self) -> u64 {
        self.una
    }

    fn in_flight(&self) -> u64 {
        self.nxt - self.una
    }

    fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    #[inline]
    fn next_avail(&self) -> Time {
        self.next_avail
    }

    fn on_reply(
        &mut self,
        config: &RoceConfig,
        now: Time,
        reply: &Reply,
        _path_rtt: Option<Time>,
        measured: Option<Time>,
    ) -> AckOutcome {
        let before = self.una;
        let sample = reply.psn.checked_sub(self.una).and_then(|index| self.sent.get(index as usize));
        let since = || sample.filter(|sent| !sent.is_retransmitted).map(|sent| now.saturating_sub(sent.at));
        let rtt = measured.map(|rtt| config.base_rtt_shift.adjust(rtt)).or_else(since);
        // Signals of another queue pair's path do not affect this one's rate.
        let own = config.on_path_change == RateOnPathChange::Keep || self.path == Some(reply.tag);
        self.take(config, reply);
        if reply.cnp && own {
            self.control.on_notification(&config.control, now);
        }
        let acked = (self.una - before) as u32;
        self.control.on_reply(
            &config.control,
            &PairReply {
                now,
                packets: acked,
                rtt: rtt.filter(|_| own),
                marked: reply.cnp,
                nack: reply.nack,
                una: self.una,
                next: self.nxt,
                largest: config.window.min(self.size(config).max(config.mtu)) as f64 / config.mtu as f64,
            },
        );
        let is_early = reply.psn >= self.una && reply.psn < self.packets;
        let refused = reply.nack && is_early && sack(reply).is_none() && config.recovery != Recovery::GoBackN;
        if self.una < self.packets {
            self.recover(config, reply);
        }
        if self.nxt > self.una {
            self.restart(config, now);
        }
        let bytes = self.bytes(config, before, self.una);
        let done = self.una == self.packets;
        let (selective, selective_from) = if config.selective { self.early() } else { (0, 0) };
        AckOutcome { packets: acked, bytes, rtt, refused, done, selective, selective_from, ..AckOutcome::default() }
    }

    #[inline]
    fn keeps_turn(&self) -> bool {
        self.control.in_burst()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Network,
        roce::{RateOnPathChange, RoceTransport},
    };

    fn config(change: impl Fn(&mut RoceTransport)) -> RoceConfig {
        let mut transport = RoceTransport::irn();
        change(&mut transport);
        let network =
            Network { base_rtt: Time::from_us(8), bdp: 104_000, nic_rate: Rate::gbps(100), ..Network::default() };
        RoceConfig::new(&transport, &network)
    }

    fn twenty_sent(config: &RoceConfig) -> RoceSender {
        let mut sender = RoceSender::new(config, Rate::gbps(100), Time::from_us(8), 100_000, Time::ZERO);
        (0..20).for_each(|psn| assert_eq!(sender.send(config, Time::ZERO, 7).psn, psn));
        sender
    }

    fn reply(cumulative: u64, sack: Option<u64>) -> Reply {
        Reply {
            cumulative,
            bitmap: sack.unwrap_or(0),
            offset: sack.is_some().into(),
            nack: sack.is_some(),
            psn: sack.unwrap_or(cumulative),
            tag: 7,
            ..Reply::default()
        }
    }

    fn sends(sender: &mut RoceSender, config: &RoceConfig, n: usize) -> Vec<u64> {
        (0..n).map(|_| sender.send(config, Time::from_us(10), 7).psn).collect()
    }

    /// IRN, section 3.1: packets missing below the highest arrival are lost; each is retransmitted once.
    #[test]
    fn irn_retransmits_packets_missing_below_the_highest_arrival() {
        let config = config(|_| ());
        let mut sender = twenty_sent(&config);
        sender.on_reply(&config, Time::from_us(9), &reply(3, Some(5)), None, None);
        assert_eq!(sends(&mut sender, &config, 3), [3, 4, 20], "5 has arrived, 6 to 19 are on their way");
        sender.on_reply(&config, Time::from_us(10), &reply(3, Some(6)), None, None);
        sender.on_reply(&config, Time::from_us(10), &reply(3, Some(9)), None, None);
        assert_eq!(sends(&mut sender, &config, 3), [7, 8, 21]);
        // 3 and 4 arrive; recovery continues up to 20, the first packet not sent when it began.
        sender.on_reply(&config, Time::from_us(18), &reply(7, None), None, None);
        assert_eq!((sends(&mut sender, &config, 1), sender.recovering), (vec![22], true));
        sender.on_reply(&config, Time::from_us(19), &reply(20, None), None, None);
        assert!(!sender.recovering);
        sender.on_reply(&config, Time::from_us(19), &reply(20, Some(22)), None, None);
        assert_eq!(sends(&mut sender, &config, 3), [20, 21, 23]);
        assert_eq!(sender.retransmitted(), 6);
    }

    /// From PSN 3, the first missing one: 5 is bit 2, 9 bit 6. PSN 3 fills the gap up to 4: then 5 is bit 1, 9 bit 5.
    #[test]
    fn early_packets_are_reported_on_request() {
        for requested in [false, true] {
            let mut config = config(|_| ());
            config.selective = requested;
            let mut sender = twenty_sent(&config);
            let mut told = |cumulative, sack| {
                let outcome = sender.on_reply(&config, Time::from_us(9), &reply(cumulative, sack), None, None);
                (outcome.selective, outcome.selective_from)
            };
            let shown = |bits: u64, from: u64| if requested { (bits, from) } else { (0, 0) };
            assert_eq!(told(3, Some(5)), shown(1 << 2, 3));
            assert_eq!(told(3, Some(9)), shown(1 << 2 | 1 << 6, 3));
            assert_eq!(told(4, None), shown(1 << 1 | 1 << 5, 4));
            assert_eq!(told(6, None), shown(1 << 3, 6));
            assert_eq!(told(10, None), shown(0, 10));
        }
    }

    /// Packets reported as early without a NACK start no recovery, and a timeout does not retransmit them.
    #[test]
    fn selective_acknowledgement_without_a_nack_loses_nothing() {
        let config = config(|transport| transport.roce.recovery = Recovery::IrnExtended);
        let mut sender = twenty_sent(&config);
        sender.on_reply(&config, Time::from_us(9), &Reply { nack: false, ..reply(3, Some(5)) }, None, None);
        assert_eq!((sends(&mut sender, &config, 1), sender.recovering), (vec![20], false));
        let at = sender.deadline(&config).unwrap();
        sender.on_timer(&config, at, &mut |_, _| ());
        assert_eq!(sends(&mut sender, &config, 4), [3, 4, 6, 7]);
    }

    /// A NACK without a block for a packet beyond the cumulative point: the receiver had no memory for it.
    #[test]
    fn refused_packets_are_retransmitted() {
        let config = config(|_| ());
        let mut sender = twenty_sent(&config);
        let nack = Reply { nack: true, psn: 5, ..reply(3, None) };
        assert!(sender.on_reply(&config, Time::from_us(9), &nack, None, None).refused);
        assert_eq!(sends(&mut sender, &config, 4), [3, 4, 5, 20]);
        // In order while later packets are missing: a NACK too, but of a packet that has arrived.
        let nack = Reply { nack: true, psn: 3, ..reply(4, None) };
        assert!(!sender.on_reply(&config, Time::from_us(18), &nack, None, None).refused);
        assert_eq!(sends(&mut sender, &config, 1), [21]);
    }

    /// specification 17.3: packets not reported as received count as lost, even those in flight.
    #[test]
    fn reference_model_retransmits_packets_in_flight() {
        let config = config(|transport| transport.roce.recorded = true);
        let mut sender = twenty_sent(&config);
        sender.on_reply(&config, Time::from_us(9), &reply(3, Some(5)), None, None);
        assert_eq!(sends(&mut sender, &config, 5), [3, 4, 6, 7, 8]);
    }

    #[test]
    fn timeout_loses_all_packets_not_received() {
        let config = config(|_| ());
        let mut sender = twenty_sent(&config);
        sender.on_reply(&config, Time::from_us(9), &reply(17, Some(18)), None, None);
        assert_eq!(sends(&mut sender, &config, 1), [17]);
        let (mut told, at) = (Vec::new(), sender.deadline(&config).unwrap());
        sender.on_timer(&config, at, &mut |psn, tag| told.push((psn, tag)));
        assert_eq!((told, sends(&mut sender, &config, 3)), (vec![(17, 7)], vec![17, 19, 20]));
        assert!(sender.deadline(&config).unwrap() > at, "the timer runs again");
        sender.on_reply(&config, at, &reply(21, None), None, None);
        assert_eq!((sender.in_flight(), sender.deadline(&config)), (0, None));
    }

    #[test]
    fn a_fresh_rate_is_that_of_another_queue_pair() {
        let changes =
            [(RateOnPathChange::Keep, true), (RateOnPathChange::Fresh, false), (RateOnPathChange::Restore, false)];
        for (on_change, keeps) in changes {
            let config = config(|transport| transport.roce.rate_on_path_change = on_change);
            let mut sender = twenty_sent(&config);
            // Notified for 1 ms, every 4 us: the rate falls to its least.
            let at = |step: u64| Time::from_us(10 + 4 * step);
            let rate = |sender: &RoceSender, step| sender.allowed(&config, at(step)).1.unwrap();
            (0..250).for_each(|step| {
                sender.on_reply(&config, at(step), &Reply { cnp: true, ..reply(1, None) }, None, None);
            });
            let slow = rate(&sender, 250);
            assert!(slow < Rate::gbps(1), "{slow}");
            sender.send(&config, at(250), 8);
            let now = rate(&sender, 250);
            assert_eq!(now, if keeps { slow } else { Rate::gbps(100) });
            sender.on_reply(&config, at(250), &Reply { cnp: true, ..reply(2, None) }, None, None);
            let later = rate(&sender, 252);
            assert_eq!(later < now || later.0 == 100_000_000, keeps, "{later} after {now}");
            sender.on_reply(&config, at(252), &Reply { cnp: true, tag: 8, ..reply(3, None) }, None, None);
            assert!(rate(&sender, 254) < Rate::gbps(100));
        }
    }
}
