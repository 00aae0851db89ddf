//! Time series: samples of ports, flows and load balancers at multiples of an interval, each before any event of that time.
//!
//! A sample is a cut, like a fault: it has the same values for any number of threads, changes nothing, and costs
//! nothing between two samples. Sampling times with no event between them share a sample.

use crate::ids::PortId;
use anabranch_lb::SchemeCounters;
use std::collections::BTreeSet;

/// A sample of a port; the counts are those of the run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SampledPort {
    pub(crate) waiting_bytes: u32,
    pub(crate) waiting_packets: u32,
    pub(crate) sent_bytes: u64,
    pub(crate) sent_packets: u64,
    pub(crate) marked: u32,
    pub(crate) trimmed: u32,
    pub(crate) dropped: u32,
    pub(crate) pauses: u32,
    /// Paused classes, one bit each.
    pub(crate) paused: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SampledSender {
    pub(crate) sent_packets: u64,
    pub(crate) in_flight: u64,
    pub(crate) window: Option<u64>,
    pub(crate) rate: Option<u64>,
    pub(crate) retransmitted: u64,
    pub(crate) marked: u64,
    pub(crate) trimmed: u64,
    pub(crate) tag: Option<u32>,
    pub(crate) path_switches: u64,
    /// Number of different tags since the previous sample.
    pub(crate) paths: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SampledReceiver {
    pub(crate) received_bytes: u64,
    pub(crate) out_of_order: u64,
}

/// Sample of a load balancer in one partition. All fields are sums, so that partitions add up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SampledBalancer {
    pub(crate) open: u64,
    pub(crate) finished: u64,
    pub(crate) in_flight: u64,
    pub(crate) window: u64,
    pub(crate) retransmitted: u64,
    pub(crate) path_switches: u64,
    pub(crate) counters: SchemeCounters,
}

impl std::ops::AddAssign for SampledBalancer {
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

/// Imbalance of the bytes that switches send upwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    /// Sum over switches of the bytes of the busiest uplink since the previous sample.
    pub(crate) busiest: u64,
    /// The same of the mean uplink.
    pub(crate) mean: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) sent: u64,
    pub(crate) marked: u64,
    pub(crate) trimmed: u64,
    pub(crate) tag: Option<u32>,
    /// Tags of the packets sent since the previous sample.
    pub(crate) tags: BTreeSet<u32>,
}

impl Counted {
    #[cold]
    pub(crate) fn sent(&mut self, tag: u32) {
        self.sent += 1;
        self.tag = Some(tag);
        self.tags.insert(tag);
    }

    #[cold]
    pub(crate) fn ack(&mut self, marked: bool, trimmed: bool) {
        self.marked += u64::from(marked);
        self.trimmed += u64::from(trimmed);
    }
}

#[derive(Debug, Default)]
pub(crate) struct FlowSamples {
    pub(crate) flow: u32,
    pub(crate) counted: Counted,
    /// Sample number and values, while the flow is open at its sender.
    pub(crate) sender: Vec<(u32, SampledSender)>,
    /// Time of its last acknowledgement and the values at that time.
    pub(crate) last: Option<(u64, SampledSender)>,
    /// Sample number and values, where they have changed.
    pub(crate) receiver: Vec<(u32, SampledReceiver)>,
    /// First sample after complete reception.
    pub(crate) closed: Option<u32>,
}

impl FlowSamples {
    pub(crate) fn receives(&mut self, number: u32, sample: SampledReceiver) {
        if self.receiver.last().is_none_or(|last| last.1 != sample) {
            self.receiver.push((number, sample));
        }
    }

    /// Returns the values at the receiver in sample `number`; `complete` gives those of a flow that has completed.
    pub(crate) fn at(&self, number: u32, complete: impl FnOnce() -> SampledReceiver) -> SampledReceiver {
        if self.closed.is_some_and(|closed| closed <= number) {
            return complete();
        }
        let before = self.receiver.partition_point(|(other, _)| *other <= number);
        before.checked_sub(1).map_or_else(SampledReceiver::default, |index| self.receiver[index].1)
    }
}

#[derive(Debug, Default)]
pub(crate) struct BalancerSamples {
    /// Sums over finished flows, per load balancer.
    pub(crate) done: Vec<SampledBalancer>,
    /// Per sample and load balancer.
    pub(crate) samples: Vec<Vec<SampledBalancer>>,
    /// Per switch: its uplinks, and the bytes that each had sent at the previous sample.
    pub(crate) uplinks: Vec<Vec<(PortId, u64)>>,
    pub(crate) spread: Vec<Spread>,
}

/// A sample, and the number of consecutive sampling times it is valid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SampleTime {
    at: u64,
    times: u64,
}

/// Returns the bytes of memory of samples of ports, flows and load balancers and of their rows, with the growth of both.
pub fn series_bytes(ports: u64, flows: u64, balancers: u64) -> u64 {
    let parts = [(ports, 400u64), (flows, 600), (balancers, 600)];
    parts.into_iter().map(|(samples, bytes)| samples.saturating_mul(bytes)).fold(0, u64::saturating_add)
}

#[derive(Debug, Default)]
pub(crate) struct Series {
    interval: u64,
    next: u64,
    samples: Vec<SampleTime>,
    /// Ports with a series, in order.
    pub(crate) ports: Vec<PortId>,
    /// Per sample, those of all ports: lists per port would grow at as many places, and displace more from the caches.
    pub(crate) sampled: Vec<SampledPort>,
    pub(crate) flows: Vec<FlowSamples>,
    pub(crate) balancers: Option<Box<BalancerSamples>>,
    /// Bytes that each time of the last sample takes.
    pub(crate) bytes_per_time: u64,
}

impl Series {
    /// Creates a series with samples at multiples of `interval`; zero: none.
    pub(crate) fn new(interval: u64) -> Self {
        Series { interval, next: if interval == 0 { u64::MAX } else { 0 }, ..Series::default() }
    }

    /// Returns the time of the next sample; `u64::MAX`: never.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Registers the next sample, valid to before `start`. Returns its number.
    pub(crate) fn sample(&mut self, start: u64) -> u32 {
        let times = (start.max(self.next) - self.next) / self.interval + 1;
        self.samples.push(SampleTime { at: self.next, times });
        self.next = self.next.saturating_add(times.saturating_mul(self.interval));
        (self.samples.len() - 1) as u32
    }

    /// Returns the times for which sample `number` is valid, up to `end`.
    pub(crate) fn times(&self, number: usize, end: u64) -> impl Iterator<Item = u64> + use<> {
        let (sample, interval) = (self.samples[number], self.interval);
        (0..sample.times).map(move |k| sample.at + k * interval).take_while(move |time| *time <= end)
    }

    pub(crate) fn last_bytes(&self, end: u64) -> u64 {
        let Some(last) = self.samples.last() else { return 0 };
        let times = (end.saturating_sub(last.at) / self.interval + 1).min(last.times);
        times.saturating_mul(self.bytes_per_time)
    }

    pub(crate) fn samples(&self) -> usize {
        self.samples.len()
    }

    pub(crate) fn memory(&self) -> usize {
        let flows: usize = self.flows.iter().map(|f| f.sender.capacity()).sum();
        self.sampled.capacity() * size_of::<SampledPort>() + flows * size_of::<(u32, SampledSender)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_sampling_times_share_a_sample() {
        let mut series = Series::new(10);
        assert_eq!((series.next(), series.sample(4)), (0, 0));
        assert_eq!((series.next(), series.sample(10)), (10, 1));
        // Nothing happens until 47: the sample at 20 is valid for 30 and 40 too.
        assert_eq!((series.next(), series.sample(47), series.next()), (20, 2, 50));
        let times = |number, end| series.times(number, end).collect::<Vec<_>>();
        assert_eq!((times(0, 99), times(1, 99), times(2, 99)), (vec![0], vec![10], vec![20, 30, 40]));
        assert_eq!(times(2, 30), [20, 30]);
        assert_eq!(Series::new(0).next(), u64::MAX);
    }
}
