//! Time series: looks at ports, flows and load balancers at multiples of an interval, each at the state before anything
//! happens at that time.
//!
//! A look is a cut, like a fault: all cells have reached its time and nothing has happened at it or after it. So it sees the
//! same state for any number of threads, changes nothing, and costs nothing between two looks. Times between which nothing
//! happens at all share a look.

use crate::ids::PortId;
use anabranch_lb::SchemeCounters;
use std::collections::BTreeSet;

/// What a look sees of a port; the counts are those of the run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortLook {
    pub(crate) waiting_bytes: u32,
    pub(crate) waiting_packets: u32,
    pub(crate) sent_bytes: u64,
    pub(crate) sent_packets: u64,
    pub(crate) marked: u32,
    pub(crate) trimmed: u32,
    pub(crate) dropped: u32,
    pub(crate) pauses: u32,
    /// One bit per class that is paused.
    pub(crate) paused: u8,
}

/// What a look sees of a flow at its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderLook {
    pub(crate) sent_packets: u64,
    pub(crate) in_flight: u64,
    pub(crate) window: Option<u64>,
    pub(crate) rate: Option<u64>,
    pub(crate) retransmitted: u64,
    pub(crate) marked: u64,
    pub(crate) trimmed: u64,
    pub(crate) tag: Option<u32>,
    pub(crate) path_switches: u64,
    /// Different tags since the last look.
    pub(crate) paths: u64,
}

/// What a look sees of a flow at its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceiverLook {
    pub(crate) received_bytes: u64,
    pub(crate) out_of_order: u64,
}

/// What a look sees of a load balancer, in one partition. All are sums, so that partitions add up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BalancerLook {
    pub(crate) open: u64,
    pub(crate) finished: u64,
    pub(crate) in_flight: u64,
    pub(crate) window: u64,
    pub(crate) retransmitted: u64,
    pub(crate) path_switches: u64,
    pub(crate) counters: SchemeCounters,
}

impl std::ops::AddAssign for BalancerLook {
    fn add_assign(&mut self, other: Self) {
        self.open += other.open;
        self.finished += other.finished;
        self.in_flight += other.in_flight;
        self.window += other.window;
        self.retransmitted += other.retransmitted;
        self.path_switches += other.path_switches;
        self.counters += other.counters;
    }
}

/// How evenly switches spread what they send upwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    /// Bytes since the last look over the busiest uplink of each switch, added up.
    pub(crate) busiest: u64,
    /// Bytes since the last look over the mean uplink of each switch, added up.
    pub(crate) mean: u64,
}

/// What is counted of a flow because it is watched.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) sent: u64,
    pub(crate) marked: u64,
    pub(crate) trimmed: u64,
    /// Of the last packet sent.
    pub(crate) tag: Option<u32>,
    /// Of the packets sent since the last look.
    pub(crate) tags: BTreeSet<u32>,
}

impl Counted {
    /// A data packet leaves.
    #[cold]
    pub(crate) fn sent(&mut self, tag: u32) {
        self.sent += 1;
        self.tag = Some(tag);
        self.tags.insert(tag);
    }

    /// An answer has come: with a mark, of a trimmed packet.
    #[cold]
    pub(crate) fn heard(&mut self, marked: bool, trimmed: bool) {
        self.marked += u64::from(marked);
        self.trimmed += u64::from(trimmed);
    }
}

/// A flow that is watched, as far as this partition sees it.
#[derive(Debug, Default)]
pub(crate) struct FlowLooks {
    pub(crate) flow: u32,
    pub(crate) counted: Counted,
    /// Number of the look and what it saw, while the flow is open at its sender.
    pub(crate) sender: Vec<(u32, SenderLook)>,
    /// What was left when its last acknowledgement came, and when that was.
    pub(crate) last: Option<(u64, SenderLook)>,
    /// Number of the look and what it saw, where that is new.
    pub(crate) receiver: Vec<(u32, ReceiverLook)>,
    /// The first look that found all received.
    pub(crate) closed: Option<u32>,
}

impl FlowLooks {
    /// A look at the receiver, kept where it is new.
    pub(crate) fn receives(&mut self, number: u32, look: ReceiverLook) {
        if self.receiver.last().is_none_or(|last| last.1 != look) {
            self.receiver.push((number, look));
        }
    }

    /// What look `number` saw at the receiver; `complete` is what holds once it has closed the flow.
    pub(crate) fn at(&self, number: u32, complete: impl FnOnce() -> ReceiverLook) -> ReceiverLook {
        if self.closed.is_some_and(|closed| closed <= number) {
            return complete();
        }
        let before = self.receiver.partition_point(|(other, _)| *other <= number);
        before.checked_sub(1).map_or_else(ReceiverLook::default, |index| self.receiver[index].1)
    }
}

/// What there is of all load balancers.
#[derive(Debug, Default)]
pub(crate) struct BalancerLooks {
    /// Of flows that are done, per load balancer.
    pub(crate) done: Vec<BalancerLook>,
    /// Per look and load balancer.
    pub(crate) looks: Vec<Vec<BalancerLook>>,
    /// Per switch of this partition: its uplinks, and what each had sent at the last look.
    pub(crate) uplinks: Vec<Vec<(PortId, u64)>>,
    /// Per look.
    pub(crate) spread: Vec<Spread>,
}

/// A look, and for how many times in a row it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    at: u64,
    times: u64,
}

/// Bytes of memory that samples of ports, flows and load balancers take until their rows are written: the look, the row, and
/// what both grow by.
pub fn series_bytes(ports: u64, flows: u64, balancers: u64) -> u64 {
    let parts = [(ports, 400u64), (flows, 600), (balancers, 600)];
    parts.into_iter().map(|(samples, bytes)| samples.saturating_mul(bytes)).fold(0, u64::saturating_add)
}

/// The series of a partition.
#[derive(Debug, Default)]
pub(crate) struct Series {
    interval: u64,
    next: u64,
    looks: Vec<Look>,
    /// Per port, and per look.
    pub(crate) ports: Vec<(PortId, Vec<PortLook>)>,
    pub(crate) flows: Vec<FlowLooks>,
    pub(crate) balancers: Option<Box<BalancerLooks>>,
    /// Bytes that each time of the last look takes.
    pub(crate) bytes_per_time: u64,
}

impl Series {
    /// With looks at multiples of `interval`; none where it is zero.
    pub(crate) fn new(interval: u64) -> Self {
        Series { interval, next: if interval == 0 { u64::MAX } else { 0 }, ..Series::default() }
    }

    /// When the next look is due; `u64::MAX`: never.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The next look is taken; nothing happens before `start`. Returns its number.
    pub(crate) fn look(&mut self, start: u64) -> u32 {
        let times = (start.max(self.next) - self.next) / self.interval + 1;
        self.looks.push(Look { at: self.next, times });
        self.next = self.next.saturating_add(times.saturating_mul(self.interval));
        (self.looks.len() - 1) as u32
    }

    /// The times for which look number `number` counts, up to `end`.
    pub(crate) fn times(&self, number: usize, end: u64) -> impl Iterator<Item = u64> + use<> {
        let (look, interval) = (self.looks[number], self.interval);
        (0..look.times).map(move |k| look.at + k * interval).take_while(move |time| *time <= end)
    }

    /// Bytes that the last look takes for its times up to `end`.
    pub(crate) fn last_bytes(&self, end: u64) -> u64 {
        let Some(last) = self.looks.last() else { return 0 };
        let times = (end.saturating_sub(last.at) / self.interval + 1).min(last.times);
        times.saturating_mul(self.bytes_per_time)
    }

    /// Looks taken.
    pub(crate) fn looks(&self) -> usize {
        self.looks.len()
    }

    pub(crate) fn memory(&self) -> usize {
        let ports: usize = self.ports.iter().map(|port| port.1.capacity()).sum();
        let flows: usize = self.flows.iter().map(|f| f.sender.capacity()).sum();
        ports * size_of::<PortLook>() + flows * size_of::<(u32, SenderLook)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_which_nothing_happens_share_a_look() {
        let mut series = Series::new(10);
        assert_eq!((series.next(), series.look(4)), (0, 0));
        assert_eq!((series.next(), series.look(10)), (10, 1));
        // Nothing happens until 47: the look at 20 counts for 30 and 40 too.
        assert_eq!((series.next(), series.look(47), series.next()), (20, 2, 50));
        let times = |number, end| series.times(number, end).collect::<Vec<_>>();
        assert_eq!((times(0, 99), times(1, 99), times(2, 99)), (vec![0], vec![10], vec![20, 30, 40]));
        assert_eq!(times(2, 30), [20, 30]);
        assert_eq!(Series::new(0).next(), u64::MAX);
    }
}
