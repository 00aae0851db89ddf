//! The phases of a cut at which the steady state may be skipped ([`crate::skip`]), in a partition.

use crate::{
    host::Hosts,
    ids::FlowId,
    plan::Plan,
    skip::{Jump, SkipCheck},
};
use std::sync::atomic::Ordering::Relaxed;

/// Intervals from the last disturbance to the first sample.
const FIRST: u64 = 4;
/// Samples that a decision takes, after 1/8, 1/4, 1/2 and all of the time since the last disturbance.
const SAMPLES: usize = 4;
/// Minimum packets of a flow in the shortest span, so that one packet more or less is within the bound.
const MIN_PACKETS: u64 = 200;
/// Maximum difference of a flow's rate in an earlier span from that in the last one, as a part of it; the divisor. A shorter
/// span has more noise.
const BOUNDS: [u64; 2] = [50, 100];

/// Bytes of a flow at the last samples, the latest at the end.
#[derive(Clone, Copy, Debug)]
struct Samples {
    flow: FlowId,
    bytes: [u64; SAMPLES],
}

impl Samples {
    /// Returns the bytes in the last span, half of the time since the disturbance, if the flow is steady.
    fn steady(&self, mtu: u64) -> Option<u64> {
        let [first, second, third] = [0, 1, 2].map(|span| self.bytes[span + 1] - self.bytes[span]);
        let agrees = |bytes: u64, bound: u64| bytes.abs_diff(third).saturating_mul(bound) <= third;
        let is_steady = agrees(4 * first, BOUNDS[0]) && agrees(2 * second, BOUNDS[1]);
        (is_steady && first >= MIN_PACKETS * mtu).then_some(third)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Publish,
    Sample,
    Propose,
    ShortenReceivers,
    ShortenSenders,
}

/// What a partition brings to a phase.
#[derive(Debug)]
pub(crate) struct Here<'h> {
    pub(crate) me: u16,
    pub(crate) hosts: &'h mut Hosts,
    /// Time of the last start, trigger, computation or end of a flow here.
    pub(crate) disturbed: u64,
    /// Starts, triggers and computations scheduled here, less those that have happened here.
    pub(crate) planned: i64,
}

/// State of a partition. `jumps`, `phase` and times are the same on all.
#[derive(Debug, Default)]
pub(crate) struct Skips {
    next: u64,
    phase: Phase,
    samples: Vec<Samples>,
    /// Number of samples taken without a gap, and the intervals before the last one.
    taken: usize,
    at_interval: u64,
    pub(crate) jumps: Vec<Jump>,
}

impl Skips {
    pub(crate) fn total(&self) -> u64 {
        self.jumps.iter().map(|jump| jump.by).sum()
    }

    /// Time of the next cut, given that no event precedes `start`.
    pub(crate) fn next(&self, check: &SkipCheck, start: u64) -> u64 {
        if self.phase == Phase::Publish { self.next.max(start / check.interval * check.interval) } else { self.next }
    }

    /// Takes the next phase of the cut at `now`; returns `true` if the partitions must wait for each other before they go on.
    pub(crate) fn step(&mut self, plan: &Plan<'_>, check: &SkipCheck, now: u64, here: Here<'_>) -> bool {
        let Here { me, hosts, disturbed, planned } = here;
        let phase = match self.phase {
            Phase::Publish => {
                let published = &check.published[usize::from(me)];
                published.disturbed.store(disturbed, Relaxed);
                published.planned.store(planned, Relaxed);
                published.senders.store(hosts.open_senders().len() as u64, Relaxed);
                published.receivers.store(hosts.receivers.open.len() as u64, Relaxed);
                Some(Phase::Sample)
            }
            Phase::Sample => {
                let intervals = check.settled(now).filter(|since| *since >= FIRST && since.is_power_of_two());
                intervals.and_then(|intervals| self.sample(check, intervals, hosts).then_some(Phase::Propose))
            }
            Phase::Propose => {
                check.published[usize::from(me)].jump.store(self.longest_jump(check), Relaxed);
                Some(Phase::ShortenReceivers)
            }
            Phase::ShortenReceivers => self.shorten_receivers(plan, check, now, hosts).then_some(Phase::ShortenSenders),
            Phase::ShortenSenders => {
                let open: Vec<FlowId> = hosts.open_senders().map(|open| open.of.flow).collect();
                for flow in open {
                    let packets = check.packets[flow.at()].load(Relaxed);
                    hosts.sender_mut(flow).expect("an open flow").shorten(plan.transports.main(), packets);
                }
                None
            }
        };
        if phase.is_none() {
            self.next = now + check.interval;
        }
        self.phase = phase.unwrap_or_default();
        self.phase != Phase::Publish
    }

    /// Samples the flows; returns `true` if there are enough samples for a decision.
    fn sample(&mut self, check: &SkipCheck, intervals: u64, hosts: &Hosts) -> bool {
        if intervals == FIRST || self.taken == 0 || 2 * self.at_interval != intervals {
            self.taken = 0;
            self.samples = hosts.receiving().map(|flow| Samples { flow, bytes: [0; SAMPLES] }).collect();
        }
        for samples in &mut self.samples {
            samples.bytes.rotate_left(1);
            samples.bytes[SAMPLES - 1] = hosts.receiver(samples.flow).map_or(0, |receiver| receiver.received_bytes());
        }
        (self.taken, self.at_interval) = (self.taken + 1, intervals);
        for open in hosts.open_senders() {
            check.packets[open.of.flow.at()].store(open.sender.packets() - open.sender.next_psn(), Relaxed);
        }
        self.taken >= SAMPLES
    }

    fn span(&self, check: &SkipCheck) -> u64 {
        self.at_interval / 2 * check.interval
    }

    /// Returns the longest jump that the flows received here allow; zero: one is not steady.
    fn longest_jump(&self, check: &SkipCheck) -> u64 {
        let span = self.span(check);
        let of = |samples: &Samples| {
            let received = samples.steady(check.mtu)?;
            // Half of a span is simulated after the jump.
            let unsent = check.packets[samples.flow.at()].load(Relaxed).saturating_sub(1) * check.mtu;
            let bytes = u128::from(unsent.saturating_sub(received / 2));
            u64::try_from(bytes * u128::from(span) / u128::from(received)).ok()
        };
        self.samples.iter().map(|samples| of(samples).unwrap_or(0)).min().unwrap_or(u64::MAX)
    }

    /// Decides, and shortens the flows received here; returns `true` if there is a jump.
    fn shorten_receivers(&mut self, plan: &Plan<'_>, check: &SkipCheck, now: u64, hosts: &mut Hosts) -> bool {
        let span = self.span(check);
        let jump = check.published.iter().map(|published| published.jump.load(Relaxed)).min().unwrap_or(0);
        let left = check.time_limit.saturating_sub(now + self.total());
        let jump = jump.min(left);
        // A shorter one is not worth its error.
        if jump < span {
            return false;
        }
        for samples in &self.samples {
            let received = samples.steady(check.mtu).expect("all flows are steady");
            let bytes = u128::from(received) * u128::from(jump) / u128::from(span);
            let packets = bytes as u64 / check.mtu;
            check.packets[samples.flow.at()].store(packets, Relaxed);
            check.skipped[samples.flow.at()].fetch_add(packets, Relaxed);
            let transport = plan.transports.main();
            hosts.receiver_mut(samples.flow).expect("an open flow").shorten(transport, packets);
        }
        self.jumps.push(Jump { at: now, by: jump });
        true
    }
}
