//! Chunks: the pieces of a message in which a collective library posts work to its queue pairs.

use crate::{Decision, FlowInfo, Tag};
use anabranch_settings::choices;
use anabranch_units::Time;
use std::collections::VecDeque;

choices! {
    /// Unit of decisions and measurements.
    pub enum Granularity {
        /// Packets: every acknowledgement is a sample, the path may change at any packet.
        Packet = "packet",
        /// Chunks: the duration of a chunk is a sample, the path may change between chunks.
        Chunk = "chunk",
    }
}

impl Granularity {
    /// Returns the setting as text.
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Granularity::Packet => "granularity = \"packet\"",
            Granularity::Chunk => "granularity = \"chunk\"",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    packets: u64,
    outstanding: usize,
    /// First PSN of the next chunk.
    next: u64,
    /// Chunks in flight: the PSN after their last packet, and their start time.
    open: VecDeque<(u64, Time)>,
    /// Duration of a chunk on the empty network.
    pub(crate) ideal: Time,
}

impl Chunks {
    /// Creates chunks of `bytes` payload, at most `outstanding` in flight.
    pub(crate) fn new(flow: &FlowInfo<'_>, bytes: u64, outstanding: u32) -> Self {
        let payload = flow.size.div_ceil(flow.packets.max(1)).max(1);
        let packets = bytes.div_ceil(payload).clamp(1, flow.packets.max(1));
        let rest = flow.rate.wire_time((packets - 1) * u64::from(flow.full_packet));
        Chunks {
            packets,
            outstanding: outstanding.max(1) as usize,
            next: 0,
            open: VecDeque::new(),
            ideal: flow.base_rtt + rest,
        }
    }

    /// Returns `true` if the packet belongs to a chunk that has not begun; in runs it may not be the chunk's first.
    #[inline]
    pub(crate) fn begins(&self, psn: u64) -> bool {
        psn >= self.next
    }

    #[inline]
    pub(crate) fn may_begin(&self) -> bool {
        self.open.len() < self.outstanding
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn number(&self) -> u64 {
        self.next / self.packets
    }

    /// Begins the chunk of packet `psn`. Those before it may have left before the scheme was chosen.
    pub(crate) fn begin(&mut self, now: Time, psn: u64) {
        self.next = psn / self.packets * self.packets + self.packets;
        self.open.push_back((self.next, now));
    }

    /// Sends packet `psn`. The last before the sender is blocked requests an ACK, as the last of an RDMA message does.
    #[inline]
    pub(crate) fn send(&self, psn: u64, tag: Tag) -> Decision {
        if psn + 1 == self.next && !self.may_begin() { Decision::SendWithAckRequest(tag) } else { Decision::Send(tag) }
    }

    /// Processes the cumulative acknowledgement; returns the duration of the chunk that it completes, if any.
    pub(crate) fn acknowledged(&mut self, now: Time, cumulative: u64) -> Option<Time> {
        let mut took = None;
        while let Some(&(end, began)) = self.open.front().filter(|chunk| chunk.0 <= cumulative) {
            debug_assert!(end <= cumulative);
            self.open.pop_front();
            took = Some(now.saturating_sub(began));
        }
        took
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Decision::{Send, SendWithAckRequest},
        host::testing::flow,
    };

    #[test]
    fn a_worked_trace() {
        // 1000 packets of 4096 B; chunks of 40,960 B are 10 packets. At 400 Gb/s nine packets of 4160 B take 748.8 ns.
        let mut chunks = Chunks::new(&flow(&[8]), 40_960, 2);
        assert_eq!(chunks.ideal, Time::from_us(10) + Time::from_ps(748_800));
        assert!(chunks.begins(0) && chunks.may_begin());
        chunks.begin(Time::from_us(1), 0);
        assert!(!chunks.begins(5) && chunks.begins(10) && chunks.number() == 1);
        chunks.begin(Time::from_us(2), 10);
        assert!(!chunks.may_begin(), "two are on their way");
        // The sender is blocked after packet 19, and continues after packet 9 without its acknowledgement.
        assert_eq!([9, 18, 19].map(|psn| chunks.send(psn, 7)), [Send(7), Send(7), SendWithAckRequest(7)]);
        assert_eq!(chunks.acknowledged(Time::from_us(20), 9), None);
        assert_eq!(chunks.acknowledged(Time::from_us(21), 10), Some(Time::from_us(20)));
        assert!(chunks.may_begin());
        assert_eq!(chunks.send(19, 7), Send(7), "another may begin");
        // A scheme that is chosen in mid-stream takes up the chunk that is under way.
        let mut late = Chunks::new(&flow(&[8]), 40_960, 1);
        late.begin(Time::ZERO, 10_000_003);
        assert_eq!((late.begins(10_000_009), late.begins(10_000_010), late.number()), (false, true, 1_000_001));
        assert_eq!(late.send(10_000_009, 7), SendWithAckRequest(7));
        assert!(chunks.begins(23), "asked for a packet in the midst of a chunk, where the first went with a run");
    }
}
