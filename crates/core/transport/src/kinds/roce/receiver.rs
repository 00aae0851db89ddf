//! The receiver of a queue pair (specification 7.3, 17.3): answers every packet, unless it is the second
//! complaint about the same hole within the NACK interval.

use super::{Recovery, RoceConfig, blocks::Blocks};
use crate::{Answer, DataArrival, Receiving};
use anabranch_units::Time;

/// What the receiver tells the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoceReply {
    /// Every PSN below this one has been received.
    pub cumulative: u64,
    /// A PSN beyond it that has been received.
    pub sack: Option<u64>,
    /// A packet is missing.
    pub nack: bool,
    /// PSN of the packet that is answered.
    pub psn: u64,
    /// Its path tag.
    pub tag: u32,
    /// Whether that packet was marked.
    pub ecn: bool,
    /// Congestion notification: it was marked, or it came out of order and the NIC takes that for congestion.
    pub cnp: bool,
}

impl From<RoceReply> for Answer {
    #[inline]
    fn from(reply: RoceReply) -> Self {
        let (bitmap, offset) = (reply.sack.unwrap_or(0), u32::from(reply.sack.is_some()));
        let RoceReply { cumulative, nack, psn, tag, ecn, cnp, .. } = reply;
        Answer { psn, tag, cumulative, bitmap, offset, ecn, cnp, nack }
    }
}

impl From<Answer> for RoceReply {
    #[inline]
    fn from(answer: Answer) -> Self {
        let Answer { psn, tag, cumulative, bitmap, offset, ecn, cnp, nack } = answer;
        RoceReply { cumulative, sack: (offset != 0).then_some(bitmap), nack, psn, tag, ecn, cnp }
    }
}

/// What a data packet brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoceReceived {
    /// The answer, if one is due.
    pub reply: Option<RoceReply>,
    /// This packet completed the flow.
    pub complete: bool,
}

/// The receiving side of a flow.
#[derive(Clone, Debug)]
pub struct RoceReceiver {
    size: u64,
    packets: u64,
    expected: u64,
    early: Blocks,
    /// No second NACK for the same packet before this.
    quiet_until: Time,
    last_nack: Option<u64>,
    /// PSN that would follow the last arrival.
    following: u64,
    received_bytes: u64,
    early_bytes: u64,
    max_early_bytes: u64,
    out_of_order: u64,
    out_of_sequence: u64,
    /// Of a delayed acknowledgement: packets it covers, the last of them, and when it is due.
    delayed: u32,
    last: RoceReply,
    due: Option<Time>,
}

/// How an arrival is answered.
struct Manner {
    sack: bool,
    nack: bool,
    cnp: bool,
    silent: bool,
}

const PLAIN: Manner = Manner { sack: false, nack: false, cnp: false, silent: false };

impl RoceReceiver {
    /// A data packet arrives. One beyond the flow's end is not taken and not answered.
    pub fn on_data(&mut self, config: &RoceConfig, now: Time, arrival: &DataArrival) -> RoceReceived {
        if arrival.psn >= self.packets {
            return RoceReceived { reply: None, complete: false };
        }
        let complete_before = self.expected == self.packets;
        self.out_of_order += u64::from(arrival.psn != self.expected);
        self.out_of_sequence += u64::from(arrival.psn != self.following);
        self.following = arrival.psn + 1;
        let answer = match arrival.psn.cmp(&self.expected) {
            std::cmp::Ordering::Equal => self.expected_arrives(config, arrival),
            std::cmp::Ordering::Greater => self.early_arrives(config, now, arrival),
            std::cmp::Ordering::Less => self.while_holes_remain(config),
        };
        let complete = !complete_before && self.expected == self.packets;
        let reply = RoceReply {
            cumulative: self.expected,
            sack: answer.sack.then_some(arrival.psn),
            nack: answer.nack,
            psn: arrival.psn,
            tag: arrival.tag,
            ecn: arrival.ecn,
            cnp: answer.cnp || arrival.ecn,
        };
        let silent = answer.silent || (!answer.nack && self.may_wait(config, now, &reply));
        RoceReceived { reply: (!silent).then_some(reply), complete }
    }

    fn expected_arrives(&mut self, config: &RoceConfig, arrival: &DataArrival) -> Manner {
        self.expected += 1;
        self.received_bytes += u64::from(arrival.payload);
        if let Some((start, end)) = self.early.first().filter(|run| run.0 <= self.expected) {
            let bytes = |psn: u64| (psn * config.mtu).min(self.size);
            self.early_bytes -= bytes(end) - bytes(start);
            self.expected = end;
            self.early.discard_below(end);
        }
        self.while_holes_remain(config)
    }

    /// The answer to a packet that was due, or that came again: while holes remain, IRN says so.
    fn while_holes_remain(&self, config: &RoceConfig) -> Manner {
        let complains = config.recovery == Recovery::Irn && !self.early.is_empty();
        // The reference model reports the packet itself, which triggers recovery again.
        Manner { sack: complains && config.recorded_irn, nack: complains, ..PLAIN }
    }

    fn early_arrives(&mut self, config: &RoceConfig, now: Time, arrival: &DataArrival) -> Manner {
        if config.recovery == Recovery::GoBackN {
            if now < self.quiet_until && self.last_nack == Some(self.expected) {
                return Manner { silent: true, ..PLAIN };
            }
            self.quiet_until = now + config.nack_interval;
            self.last_nack = Some(self.expected);
            return Manner { nack: true, cnp: true, ..PLAIN };
        }
        let known = self.early.contains(arrival.psn);
        if !known {
            self.early.insert(arrival.psn);
            self.received_bytes += u64::from(arrival.payload);
            self.early_bytes += u64::from(arrival.payload);
            self.max_early_bytes = self.max_early_bytes.max(self.early_bytes);
        }
        let inside = arrival.psn - self.expected <= config.ooo_window;
        if config.recovery == Recovery::IrnExtended && inside {
            return PLAIN;
        }
        if known && now < self.quiet_until {
            return Manner { silent: true, ..PLAIN };
        }
        self.quiet_until = now + config.nack_interval;
        Manner { sack: true, nack: true, cnp: true, silent: false }
    }

    /// Delayed acknowledgements: whether this one may wait for the next packet.
    fn may_wait(&mut self, config: &RoceConfig, now: Time, reply: &RoceReply) -> bool {
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

    #[inline]
    fn on_data(&mut self, config: &RoceConfig, now: Time, data: &DataArrival) -> (Option<Answer>, bool) {
        let received = RoceReceiver::on_data(self, config, now, data);
        (received.reply.map(Answer::from), received.complete)
    }

    fn on_timer(&mut self, _config: &RoceConfig, now: Time) -> Option<Answer> {
        self.due.filter(|due| *due <= now)?;
        (self.delayed, self.due) = (0, None);
        Some(RoceReply { cumulative: self.expected, ..self.last }.into())
    }

    fn new(config: &RoceConfig, size: u64) -> Self {
        RoceReceiver {
            size,
            packets: config.packets(size),
            expected: 0,
            early: Blocks::default(),
            quiet_until: Time::ZERO,
            last_nack: None,
            following: 0,
            received_bytes: 0,
            early_bytes: 0,
            max_early_bytes: 0,
            out_of_order: 0,
            out_of_sequence: 0,
            delayed: 0,
            last: RoceReply::default(),
            due: None,
        }
    }

    fn of_stream(config: &RoceConfig) -> Self {
        RoceReceiver { size: u64::MAX, packets: u64::MAX / config.mtu.max(1), ..RoceReceiver::new(config, 0) }
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
    fn deadline(&self) -> Option<Time> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Network, roce::RoceTransport};
    use anabranch_units::Rate;

    #[test]
    fn a_packet_out_of_order_is_a_notification_and_no_mark() {
        let network = Network {
            base_rtt: Time::from_us(8),
            bdp: 104_000,
            queue_drain: Time::ZERO,
            trimming: false,
            nic_rate: Rate::gbps(100),
        };
        let config = RoceConfig::new(&RoceTransport::irn(), &network);
        let mut receiver = RoceReceiver::new(&config, 100_000);
        let mut arrives = |psn, ecn| {
            let arrival = DataArrival { psn, payload: 1000, tag: 7, ecn, ..DataArrival::default() };
            let reply = receiver.on_data(&config, Time::ZERO, &arrival).reply.unwrap();
            (reply.nack, reply.cnp, reply.ecn)
        };
        assert_eq!(arrives(0, false), (false, false, false));
        assert_eq!(arrives(2, false), (true, true, false), "early: the rate is to fall, but nothing was marked");
        assert_eq!(arrives(4, true), (true, true, true));
        assert_eq!(arrives(1, true), (true, true, true), "in order and marked, while 3 is missing");
    }
}
