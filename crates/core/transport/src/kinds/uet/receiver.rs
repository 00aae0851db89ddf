//! The receiver of a flow (specification 7.10): any order, an acknowledgement per n packets, urgent ones at once.
//!
//! Every arrival is acknowledged within [`UetConfig::ack_delay`], regardless of later packets: a sender whose window
//! has shrunk below what is in flight sends none, and would wait for its timeout although nothing was lost. What waits for
//! its acknowledgement always fits into one bitmap.

use super::{AckEcn, AckOnFilledHole, AckOnMark, FIRST_OF_STREAM, FIRST_SPAN, UetConfig};
use crate::{Constants, DataArrival, Receiving, Reply, psn_set::PsnSet};
use anabranch_units::Time;

/// Packets of the bitmap of an acknowledgement.
const SPAN: u64 = u64::BITS as u64;

/// The receiving side of a flow.
#[derive(Clone, Debug)]
pub struct UetReceiver {
    /// PSNs at or above `cumulative` that have been received.
    received: PsnSet,
    cumulative: u64,
    packets: u64,
    last_payload: u32,
    unacknowledged: u32,
    /// Lowest and highest PSN among the unacknowledged arrivals.
    pending: (u64, u64),
    /// Time at which they are acknowledged at the latest; `Time::MAX`: there are none.
    due: Time,
    last_tag: u32,
    /// A trimmed packet had requested an acknowledgement, and none was sent since.
    trimmed_request: bool,
    /// An acknowledgement was requested while earlier packets were missing, and some still are.
    owed: bool,
    /// PSN after the last arrival.
    following: u64,
    marked: bool,
    any_marked: bool,
    received_bytes: u64,
    /// Payload bytes held beyond the lowest missing PSN.
    beyond: u64,
    max_reorder_bytes: u64,
    out_of_order: u64,
    out_of_sequence: u64,
}

impl UetReceiver {
    /// Advances past the lowest missing packet, which has arrived, to the next missing one.
    fn advance(&mut self, config: &UetConfig) {
        let next = self.cumulative + 1;
        if self.beyond == 0 {
            self.cumulative = next;
            return;
        }
        self.cumulative = self.received.take_run(next);
        let mut taken = (self.cumulative - next) * config.mtu;
        if self.cumulative == self.packets && self.cumulative > next {
            taken = taken - config.mtu + u64::from(self.last_payload);
        }
        self.beyond -= taken;
    }

    /// Acknowledges with a bitmap of [`SPAN`] packets from `base`.
    fn acknowledge(&mut self, config: &UetConfig, base: u64, psn: u64, own: bool) -> Reply {
        self.trimmed_request = false;
        let any = std::mem::take(&mut self.any_marked);
        let (cumulative, base) = (self.cumulative, self.cumulative.max(base));
        let bitmap = if self.beyond == 0 { 0 } else { self.received.bits_from(cumulative, base) };
        let ecn = if config.ack_ecn == AckEcn::Own { own } else { any };
        let offset = (base - cumulative) as u32;
        Reply { psn, tag: self.last_tag, cumulative, bitmap, offset, ecn, ..Reply::default() }
    }

    /// Adds the arrival `psn` to the unacknowledged ones; returns the first PSN of the bitmap of an acknowledgement, which
    /// is sent if one is `due` or the arrival does not fit into one bitmap with the others.
    #[inline]
    fn pend(&mut self, config: &UetConfig, now: Time, psn: u64, due: bool) -> Option<u64> {
        let waited = self.due != Time::MAX;
        let (low, high) = if waited { self.pending } else { (psn, psn) };
        let (lowest, highest) = (low.min(psn), high.max(psn));
        let fits = highest < lowest.max(self.cumulative) + SPAN;
        if fits {
            self.pending = (lowest, highest);
            if due {
                (self.unacknowledged, self.due) = (0, Time::MAX);
                return Some(highest.saturating_sub(SPAN - 1));
            }
            if !waited {
                self.due = now.saturating_add(config.ack_delay);
            }
            return None;
        }
        if due {
            // The others stay pending.
            self.unacknowledged -= 1;
            return Some(if psn == lowest { psn } else { psn.saturating_sub(SPAN - 1) });
        }
        (self.pending, self.unacknowledged, self.due) = ((psn, psn), 1, now.saturating_add(config.ack_delay));
        Some(low)
    }
}

impl Receiving for UetReceiver {
    type Config = UetConfig;

    fn new(config: &UetConfig, size: u64) -> Self {
        let packets = config.packets(size);
        UetReceiver {
            received: PsnSet::new(config.window_packets().min(packets).min(FIRST_SPAN)),
            cumulative: 0,
            packets,
            last_payload: (size - (packets - 1) * config.mtu) as u32,
            unacknowledged: 0,
            pending: (0, 0),
            due: Time::MAX,
            last_tag: 0,
            trimmed_request: false,
            owed: false,
            following: 0,
            marked: false,
            any_marked: false,
            received_bytes: 0,
            beyond: 0,
            max_reorder_bytes: 0,
            out_of_order: 0,
            out_of_sequence: 0,
        }
    }

    fn shorten(&mut self, _config: &UetConfig, packets: u64) {
        self.packets -= packets;
    }

    fn of_stream(config: &UetConfig, first: u64) -> Self {
        let full = UetReceiver::new(config, FIRST_OF_STREAM * config.mtu);
        UetReceiver { packets: u64::MAX, cumulative: first, following: first, last_payload: config.mtu as u32, ..full }
    }

    /// PSNs beyond the flow's end are a caller's bug and are ignored.
    #[inline]
    fn on_data(&mut self, config: &UetConfig, now: Time, data: &DataArrival) -> (Option<Reply>, bool) {
        let DataArrival { psn, payload, tag, ecn, ack_request } = *data;
        let duplicate = psn < self.cumulative || self.received.contains(self.cumulative, psn);
        self.out_of_order += u64::from(psn != self.cumulative);
        self.out_of_sequence += u64::from(psn != self.following);
        self.following = psn.wrapping_add(1);
        let fills = !duplicate && psn == self.cumulative && self.beyond > 0;
        if !duplicate && psn < self.packets {
            self.received_bytes = self.received_bytes.wrapping_add(u64::from(payload));
            if psn == self.cumulative {
                self.advance(config);
            } else {
                self.received.insert(self.cumulative, psn);
                self.beyond += u64::from(payload);
                self.max_reorder_bytes = self.max_reorder_bytes.max(self.beyond);
            }
        }
        let complete = !duplicate && self.cumulative == self.packets;
        let changed = ecn != self.marked;
        self.marked = ecn;
        self.any_marked |= ecn;
        self.unacknowledged += 1;
        let marks = match config.ack_on_mark {
            AckOnMark::Change => changed,
            AckOnMark::Every => ecn,
        };
        let filled = fills
            && match config.ack_on_filled_hole {
                AckOnFilledHole::Requested => self.owed && self.beyond == 0,
                AckOnFilledHole::Every => true,
            };
        self.owed = (self.owed || ack_request) && self.beyond > 0;
        self.last_tag = tag;
        let requested = ack_request || self.trimmed_request;
        let due = self.unacknowledged >= config.ack_every || duplicate || filled || complete || marks || requested;
        let base = self.pend(config, now, psn, due);
        (base.map(|base| self.acknowledge(config, base, psn, ecn)), complete)
    }

    fn on_header(&mut self, _config: &UetConfig, psn: u64, tag: u32, ack_request: bool) -> Option<Reply> {
        self.trimmed_request |= ack_request;
        Some(Reply { cumulative: self.cumulative, psn, tag, nack: true, ..Reply::default() })
    }

    #[inline]
    fn deadline(&self) -> Option<Time> {
        (self.due != Time::MAX).then_some(self.due)
    }

    fn on_timer(&mut self, config: &UetConfig, now: Time) -> Option<Reply> {
        if self.due > now {
            return None;
        }
        (self.unacknowledged, self.due) = (0, Time::MAX);
        let base = self.pending.1.saturating_sub(SPAN - 1);
        Some(self.acknowledge(config, base, Reply::OF_TIMER, self.marked))
    }

    fn cumulative(&self) -> u64 {
        self.cumulative
    }

    fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    fn out_of_sequence(&self) -> u64 {
        self.out_of_sequence
    }

    fn max_reorder_bytes(&self) -> u64 {
        self.max_reorder_bytes
    }

    fn received_bytes(&self) -> u64 {
        self.received_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Network, uet::UetTransport};
    use anabranch_units::Rate;

    fn config(change: impl FnOnce(&mut UetTransport)) -> UetConfig {
        let mut transport = UetTransport::default();
        change(&mut transport);
        let (base_rtt, queue_drain) = (Time::from_us(8), Time::from_us(8));
        let network = Network {
            base_rtt,
            bdp: 400_000,
            queue_drain,
            trimming: true,
            nic_rate: Rate::gbps(400),
            ..Network::default()
        };
        UetConfig::new(&transport, &network)
    }

    /// PSNs acknowledged at once, of 100 packets of which these arrive: (PSN, marked, requests).
    fn answered(config: &UetConfig, arrivals: &[(u64, bool, bool)]) -> Vec<u64> {
        let mut receiver = UetReceiver::new(config, 100 * 4096);
        let arrive = |&(psn, ecn, ack_request): &(u64, bool, bool)| {
            let data = DataArrival { psn, payload: 4096, tag: psn as u32, ecn, ack_request };
            receiver.on_data(config, Time::ZERO, &data).0.map(|ack| ack.psn)
        };
        arrivals.iter().filter_map(arrive).collect()
    }

    fn plain(psns: &[u64]) -> Vec<(u64, bool, bool)> {
        psns.iter().map(|&psn| (psn, false, false)).collect()
    }

    #[test]
    fn reordering_leaves_coalescing_alone() {
        // Twelve packets, each pair reversed: six holes are filled, and there is one ACK per four packets.
        let swapped = plain(&[1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10]);
        assert_eq!(answered(&config(|_| ()), &swapped), [2, 6, 10]);
        let every = config(|t| t.uet.ack_on_filled_hole = AckOnFilledHole::Every);
        assert_eq!(answered(&every, &swapped), [0, 2, 4, 6, 8, 10]);
    }

    #[test]
    fn requested_ack_is_repeated_once_holes_are_filled() {
        // Packet 3 requests one while 0 and 2 are missing: acknowledged at once, and again as 0 closes the last hole.
        let arrivals = [(1, false, false), (3, false, true), (2, false, false), (0, false, false), (5, false, false)];
        assert_eq!(answered(&config(|_| ()), &arrivals), [3, 0]);
        let more = [&arrivals[..], &[(4, false, false), (6, false, false)]].concat();
        assert_eq!(answered(&config(|_| ()), &more), [3, 0]);
        assert_eq!(answered(&config(|_| ()), &[(0, false, true), (2, false, false), (1, false, false)]), [0]);
    }

    /// Specification of MRC's SACK, base max(p - 63, cack + 1): without 103 and 107 the bits of 103 to 111 are 0x1ee.
    #[test]
    fn bitmap_begins_at_the_first_hole_or_63_before_the_newest() {
        let last = |first: u64, psns: &mut dyn Iterator<Item = u64>| {
            let config = config(|_| ());
            let mut receiver = UetReceiver::of_stream(&config, first);
            let arrive =
                |psn| DataArrival { psn, payload: 4096, tag: 1000 + psn as u32, ecn: false, ack_request: true };
            psns.filter_map(|psn| receiver.on_data(&config, Time::ZERO, &arrive(psn)).0).last().unwrap()
        };
        let ack = last(100, &mut (100..112).filter(|psn| ![103, 107].contains(psn)));
        assert_eq!((ack.cumulative - 1, ack.offset + 1, ack.bitmap, ack.tag), (102, 1, 0x1ee, 1111));
        // 80 packets without the first: 16 to 79.
        let ack = last(0, &mut (1..80));
        assert_eq!((ack.cumulative, ack.offset, ack.bitmap), (0, 16, u64::MAX));
        let ack = last(0, &mut (1..63));
        assert_eq!((ack.cumulative, ack.offset, ack.bitmap), (0, 0, u64::MAX >> 1 & !1));
    }

    #[test]
    fn marks_are_acknowledged_on_change_or_each() {
        let marks = [false, true, true, true, false, false, true].into_iter().zip(0..);
        let arrivals: Vec<_> = marks.map(|(ecn, psn)| (psn, ecn, false)).collect();
        assert_eq!(answered(&config(|_| ()), &arrivals), [1, 4, 6]);
        assert_eq!(answered(&config(|t| t.uet.ack_on_mark = AckOnMark::Every), &arrivals), [1, 2, 3, 6]);
    }
}
