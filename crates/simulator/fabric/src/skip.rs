//! Skips of the steady state (`run.skip = "steady"`).
//!
//! Per-packet spraying settles long flows: each receives at a constant rate until a flow starts or ends. Every interval is
//! a cut. Where 4, 8, 16, ... intervals have passed since the last start, end or change of the fabric, the bytes of all
//! open flows are sampled. If the rates over the last three spans agree, all flows are shortened by their rates times the
//! same jump, and times from then on count as later by the jump. Packets in flight are not touched.
//!
//! A cut has several phases, between which the partitions wait for each other; all of them decide alike.

use crate::{ids::FlowId, plan::Plan};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

#[derive(Debug, Default)]
pub(crate) struct Published {
    /// Time of the last start, trigger, computation or end of a flow.
    pub(crate) disturbed: AtomicU64,
    pub(crate) senders: AtomicU64,
    pub(crate) receivers: AtomicU64,
    /// Scheduled starts, triggers and computations, less those that have happened.
    pub(crate) planned: AtomicI64,
    /// Longest jump that the open receivers allow.
    pub(crate) jump: AtomicU64,
}

/// What the partitions share.
#[derive(Debug)]
pub(crate) struct SkipCheck {
    pub(crate) interval: u64,
    /// Time of the last fault or change of tables within the run.
    last_change: u64,
    pub(crate) time_limit: u64,
    pub(crate) mtu: u64,
    pub(crate) published: Vec<Published>,
    /// Per flow, packets that the sender has not sent yet; after a decision, packets that it skips.
    pub(crate) packets: Vec<AtomicU64>,
    /// Per flow, packets skipped so far.
    pub(crate) skipped: Vec<AtomicU64>,
}

impl SkipCheck {
    /// Creates the check of a run; `None` where nothing is skipped.
    pub(crate) fn new(plan: &Plan<'_>) -> Option<Self> {
        let flows = || plan.flows.flows.iter().map(|_| AtomicU64::new(0)).collect();
        Some(SkipCheck {
            interval: plan.skip_interval?,
            last_change: plan.last_change(),
            time_limit: plan.time_limit.ps(),
            mtu: plan.wire_mtu - u64::from(plan.data_overhead),
            published: (0..plan.cells.partitions).map(|_| Published::default()).collect(),
            packets: flows(),
            skipped: flows(),
        })
    }

    pub(crate) fn skipped_bytes(&self, flow: FlowId) -> u64 {
        self.skipped[flow.at()].load(Relaxed) * self.mtu
    }

    /// Returns the intervals since the last disturbance if all flows are under way and nothing is due.
    pub(crate) fn settled(&self, now: u64) -> Option<u64> {
        let (mut disturbed, mut senders, mut receivers, mut planned) = (self.last_change, 0, 0, 0);
        for published in &self.published {
            disturbed = disturbed.max(published.disturbed.load(Relaxed));
            senders += published.senders.load(Relaxed);
            receivers += published.receivers.load(Relaxed);
            planned += published.planned.load(Relaxed);
        }
        let since = now.checked_sub(disturbed.next_multiple_of(self.interval))?;
        (senders > 0 && senders == receivers && planned == 0).then_some(since / self.interval)
    }
}

/// A jump: the time of its cut, by the clock without jumps, and its length; picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    pub(crate) at: u64,
    pub(crate) by: u64,
}

/// Returns the time, jumps included, of an event at `time` by the clock without jumps.
pub(crate) fn with_jumps(jumps: &[Jump], time: u64) -> u64 {
    time + jumps.iter().filter(|jump| jump.at <= time).map(|jump| jump.by).sum::<u64>()
}
