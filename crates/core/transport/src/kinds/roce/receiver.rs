//! The receiver of a queue pair (specification 7.3, 17.3): a reply to every packet, but one NACK per hole and interval.

use super::{Recovery, RoceConfig, blocks::Blocks};
use crate::{DataArrival, Receiving, Reply};
use anabranch_units::Time;

/// Minimum time between two NACKs for the same packet (specification 17.3).
const NACK_INTERVAL: Time = Time::from_us(4);

/// The receiving side of a flow.
#[derive(Clone, Debug)]
pub struct RoceReceiver {
    /// Bytes by which the last packet is shorter than the others.
    short: u64,
    packets: u64,
    expected: u64,
    early: Blocks,
    /// No second NACK for the same packet before this time.
    nack_suppressed_until: Time,
    last_nack: Option<u64>,
    following: u64,
    received_bytes: u64,
    early_bytes: u64,
    max_early_bytes: u64,
    /// Early packets beyond it are refused.
    early_limit: u64,
    refused: u64,
    out_of_order: u64,
    out_of_sequence: u64,
    /// State of a delayed acknowledgement: packets covered, the last of them, due time.
    delayed: u32,
    last: Reply,
    due: Option<Time>,
}

struct ReplyFlags {
    sack: bool,
    nack: bool,
    cnp: bool,
    suppressed: bool,
}

const PLAIN: ReplyFlags = ReplyFlags { sack: false, nack: false, cnp: false, suppressed: false };

impl RoceReceiver {
    fn expected_arrives(&mut self, config: &RoceConfig, arrival: &DataArrival) -> ReplyFlags {
        self.expected += 1;
        self.received_bytes = self.received_bytes.wrapping_add(u64::from(arrival.payload));
        if let Some((start, end)) = self.early.first().filter(|run| run.0 <= self.expected) {
            self.early_bytes -= (end - start) * config.mtu - if end == self.packets { self.short } else { 0 };
            self.expected = end;
            self.early.discard_below(end);
        }
        self.ack_or_nack(config)
    }

    /// Reply to a packet that was due or is a duplicate: IRN sends a NACK while holes remain.
    fn ack_or_nack(&self, config: &RoceConfig) -> ReplyFlags {
        let complains = config.recovery == Recovery::Irn && !self.early.is_empty();
        // The reference model reports the packet itself, which restarts recovery.
        ReplyFlags { sack: complains && config.recorded, nack: complains, ..PLAIN }
    }

    fn early_arrives(&mut self, config: &RoceConfig, now: Time, arrival: &DataArrival) -> ReplyFlags {
        if config.recovery == Recovery::GoBackN {
            return self.drop_early(now);
        }
        let known = self.early.contains(arrival.psn);
        if !known && self.early_bytes + u64::from(arrival.payload) > self.early_limit {
            self.refused += 1;
            return self.drop_early(now);
        }
        if !known {
            self.early.insert(arrival.psn);
            self.received_bytes = self.received_bytes.wrapping_add(u64::from(arrival.payload));
            self.early_bytes += u64::from(arrival.payload);
            self.max_early_bytes = self.max_early_bytes.max(self.early_bytes);
        }
        let inside = arrival.psn - self.expected <= config.ooo_window;
        if config.recovery == Recovery::IrnExtended && inside {
            return ReplyFlags { sack: config.early_sack, ..PLAIN };
        }
        if known && now < self.nack_suppressed_until {
            return ReplyFlags { suppressed: true, ..PLAIN };
        }
        self.nack_suppressed_until = now + NACK_INTERVAL;
        ReplyFlags { sack: true, nack: true, cnp: true, suppressed: false }
    }

    /// A packet that is not kept: a NACK without a block, one per interval for the same expected packet.
    fn drop_early(&mut self, now: Time) -> ReplyFlags {
        if now < self.nack_suppressed_until && self.last_nack == Some(self.expected) {
            return ReplyFlags { suppressed: true, ..PLAIN };
        }
        self.nack_suppressed_until = now + NACK_INTERVAL;
        self.last_nack = Some(self.expected);
        ReplyFlags { nack: true, cnp: true, ..PLAIN }
    }

    fn may_wait(&mut self, config: &RoceConfig, now: Time, reply: &Reply) -> bool {
        let Some(acks) = config.control.delayed_acks() else { return false };
        self.delayed += 1;
        let changed = reply.cnp != self.last.cnp;
        self.last = *reply;
        if self.delayed >= acks.every || self.expected == self.packets || changed || reply.psn + 1 != self.expected {
            (self.delayed, self.due) = (0, None);
            return false;
        }
        self.due = Some(now + acks.wait);
        true
    }
}

impl Receiving for RoceReceiver {
    type Config = RoceConfig;

    fn on_data(&mut self, config: &RoceConfig, now: Time, arrival: &DataArrival) -> (Option<Reply>, bool) {
        if arrival.psn >= self.packets {
            return (None, false);
        }
        let complete_before = self.expected == self.packets;
        self.out_of_order += u64::from(arrival.psn != self.expected);
        self.out_of_sequence += u64::from(arrival.psn != self.following);
        self.following = arrival.psn + 1;
        let flags = match arrival.psn.cmp(&self.expected) {
            std::cmp::Ordering::Equal => self.expected_arrives(config, arrival),
            std::cmp::Ordering::Greater => self.early_arrives(config, now, arrival),
            std::cmp::Ordering::Less => self.ack_or_nack(config),
        };
        let complete = !complete_before && self.expected == self.packets;
        let reply = Reply {
            cumulative: self.expected,
            bitmap: if flags.sack { arrival.psn } else { 0 },
            offset: flags.sack.into(),
            nack: flags.nack,
            psn: arrival.psn,
            tag: arrival.tag,
            ecn: arrival.ecn,
            cnp: flags.cnp || arrival.ecn,
            last_hop: false,
        };
        let suppressed = flags.suppressed || (!flags.nack && self.may_wait(config, now, &reply));
        ((!suppressed).then_some(reply), complete)
    }

    fn on_timer(&mut self, _config: &RoceConfig, now: Time) -> Option<Reply> {
        self.due.filter(|due| *due <= now)?;
        (self.delayed, self.due) = (0, None);
        Some(Reply { cumulative: self.expected, ..self.last })
    }

    fn new(config: &RoceConfig, size: u64) -> Self {
        RoceReceiver {
            short: config.packets(size) * config.mtu - size,
            packets: config.packets(size),
            expected: 0,
            early: Blocks::default(),
            nack_suppressed_until: Time::ZERO,
            last_nack: None,
            following: 0,
            received_bytes: 0,
            early_bytes: 0,
            max_early_bytes: 0,
            early_limit: config.reorder_memory,
            refused: 0,
            out_of_order: 0,
            out_of_sequence: 0,
            delayed: 0,
            last: Reply::default(),
            due: None,
        }
    }

    fn shorten(&mut self, _config: &RoceConfig, packets: u64) {
        self.packets -= packets;
    }

    fn of_stream(config: &RoceConfig, first: u64) -> Self {
        RoceReceiver { short: 0, packets: u64::MAX, expected: first, following: first, ..RoceReceiver::new(config, 0) }
    }

    fn cumulative(&self) -> u64 {
        self.expected
    }

    fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    fn out_of_sequence(&self) -> u64 {
        self.out_of_sequence
    }

    fn max_reorder_bytes(&self) -> u64 {
        self.max_early_bytes
    }

    fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    #[inline]
    fn early_bytes(&self) -> u64 {
        self.early_bytes
    }

    #[inline]
    fn limit_early(&mut self, bytes: u64) {
        self.early_limit = bytes;
    }

    fn early_limit(&self) -> u64 {
        self.early_limit
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    #[inline]
    fn deadline(&self) -> Option<Time> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Network,
        roce::{EarlyAck, RoceTransport},
    };
    use anabranch_settings::Never;
    use anabranch_units::{Bytes, Rate};

    /// Hopper §4.1.1: early by up to 30 packets is acknowledged normally, beyond that a NACK starts recovery.
    #[test]
    fn early_packets_of_the_window_are_acknowledged_selectively() {
        let network =
            Network { base_rtt: Time::from_us(8), bdp: 104_000, nic_rate: Rate::gbps(100), ..Network::default() };
        for (early_ack, block) in [(EarlyAck::Selective, Some(31)), (EarlyAck::Cumulative, None)] {
            let mut transport = RoceTransport::irn();
            (transport.roce.recovery, transport.roce.early_ack) = (Recovery::IrnExtended, early_ack);
            let config = RoceConfig::new(&transport, &network);
            let mut receiver = RoceReceiver::new(&config, 100_000);
            let mut arrives = |psn| {
                let arrival = DataArrival { psn, payload: 1000, tag: 7, ..DataArrival::default() };
                receiver.on_data(&config, Time::ZERO, &arrival).0.unwrap()
            };
            arrives(0);
            // Expected is 1, so 31 is early by 30 and 32 by 31.
            let inside = arrives(31);
            assert_eq!((inside.nack, inside.cnp, inside.cumulative), (false, false, 1), "{early_ack:?}");
            assert_eq!((inside.offset != 0).then_some(inside.bitmap), block, "{early_ack:?}");
            let beyond = arrives(32);
            assert_eq!((beyond.nack, beyond.cnp, beyond.bitmap), (true, true, 32), "{early_ack:?}");
        }
    }

    #[test]
    fn early_packets_beyond_the_memory_are_refused() {
        let network =
            Network { base_rtt: Time::from_us(8), bdp: 104_000, nic_rate: Rate::gbps(100), ..Network::default() };
        let mut transport = RoceTransport::irn();
        transport.roce.reorder_memory = Never::Value(Bytes(2000));
        let config = RoceConfig::new(&transport, &network);
        let mut receiver = RoceReceiver::new(&config, 100_000);
        let mut arrives = |psn| {
            let arrival = DataArrival { psn, payload: 1000, tag: 7, ..DataArrival::default() };
            receiver.on_data(&config, Time::from_us(10 * psn), &arrival).0.unwrap()
        };
        // Two packets of 1000 B fit into 2000 B; the third is refused by a NACK without a block.
        assert_eq!([1, 2].map(|psn| arrives(psn).offset), [1, 1]);
        let refused = arrives(3);
        assert_eq!((refused.nack, refused.offset, refused.cumulative, refused.psn), (true, 0, 0, 3));
        // 0 arrives and with it 1 and 2: space again.
        assert_eq!(arrives(0).cumulative, 3);
        assert_eq!((arrives(4).offset, receiver.refused(), receiver.max_reorder_bytes()), (1, 1, 2000));
    }

    #[test]
    fn packet_out_of_order_is_notified_but_not_marked() {
        let network =
            Network { base_rtt: Time::from_us(8), bdp: 104_000, nic_rate: Rate::gbps(100), ..Network::default() };
        let config = RoceConfig::new(&RoceTransport::irn(), &network);
        let mut receiver = RoceReceiver::new(&config, 100_000);
        let mut arrives = |psn, ecn| {
            let arrival = DataArrival { psn, payload: 1000, tag: 7, ecn, ..DataArrival::default() };
            let reply = receiver.on_data(&config, Time::ZERO, &arrival).0.unwrap();
            (reply.nack, reply.cnp, reply.ecn)
        };
        assert_eq!(arrives(0, false), (false, false, false));
        assert_eq!(arrives(2, false), (true, true, false), "early: the rate is to fall, but nothing was marked");
        assert_eq!(arrives(4, true), (true, true, true));
        assert_eq!(arrives(1, true), (true, true, true), "in order and marked, while 3 is missing");
    }
}
