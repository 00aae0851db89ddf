//! Queues of all ports at multiples of an interval, as an oracle (UGAL-G) reads them.
//!
//! At a time in epoch k the snapshot of epoch k - 1 is read: its time was a cut, which every partition has passed.

use crate::partition::Partition;
use anabranch_backend::LoadBalancer;
use anabranch_settings::Auto;
use anabranch_topology::Topology;
use anabranch_units::Time;
use std::sync::atomic::{AtomicU32, Ordering};

/// Snapshots that are kept: one is written while the one before it is read.
const SLOTS: u64 = 4;

/// The snapshots of a run, for all partitions to write and to read.
#[derive(Debug)]
pub(crate) struct Snapshots {
    interval: u64,
    slots: Vec<Box<[AtomicU32]>>,
}

impl Snapshots {
    /// What the schemes of `balancers` ask for; `None` where none of them reads snapshots.
    pub(crate) fn new(topology: &Topology, balancers: &[LoadBalancer]) -> Result<Option<Self>, String> {
        let between = topology.links.iter().filter(|l| l.from.0.min(l.to.0) >= topology.hosts);
        let longest = between.map(|l| l.delay + topology.switch_latency).max().unwrap_or_default();
        let longest = longest.max(Time::from_ps(1));
        let interval = balancers.iter().filter_map(|b| Some((b.switch.name(), b.switch.capabilities().snapshots()?)));
        let interval = interval.map(|(name, interval)| match interval {
            Auto::Auto => (longest, name),
            Auto::Value(time) => (time, name),
        });
        let Some((interval, name)) = interval.min() else { return Ok(None) };
        if interval < longest {
            return Err(format!(
                "{name}.snapshot_interval is {interval}; expected at least the longest delay between switches ({longest}), or \
                 \"auto\""
            ));
        }
        let slot = || (0..topology.links.len()).map(|_| AtomicU32::new(0)).collect();
        Ok(Some(Snapshots { interval: interval.ps(), slots: (0..SLOTS).map(|_| slot()).collect() }))
    }

    fn slot(&self, epoch: u64) -> &[AtomicU32] {
        &self.slots[(epoch % SLOTS) as usize]
    }

    /// What waited at the port of a directed link in the epoch before that of `now`.
    pub(super) fn read(&self, link: u32, now: u64) -> u64 {
        match (now / self.interval).checked_sub(1) {
            None => 0,
            Some(epoch) => u64::from(self.slot(epoch)[link as usize].load(Ordering::Relaxed)),
        }
    }

    /// When the next snapshot is due after the one taken at `last`. Nothing happens before `start`: of the snapshots until
    /// then, which are alike, only those that can still be read are taken.
    pub(crate) fn next(&self, last: Option<u64>, start: u64) -> u64 {
        let next = last.map_or(0, |last| last + self.interval);
        let readable = (start / self.interval).saturating_sub(1) * self.interval;
        next.max(readable)
    }
}

impl Partition<'_> {
    /// Notes what waits at every port between switches of this partition at `now`, a multiple of the interval.
    pub(crate) fn take_snapshot(&mut self, now: u64) {
        let plan = self.plan;
        let Some(snapshots) = plan.guided.as_ref().and_then(|guided| guided.snapshots.as_ref()) else { return };
        let slot = snapshots.slot(now / snapshots.interval);
        for &link in plan.links_of(self.me) {
            let ends = &plan.links[link as usize];
            if ends.from.min(ends.to) >= plan.hosts {
                let waiting = self.ports.backlog(plan.port_of(link), now).min(u64::from(u32::MAX)) as u32;
                slot[link as usize].store(waiting, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 10 ps. After a long silence that ends at 97, epoch 9 reads epoch 8: those before are skipped.
    #[test]
    fn snapshots_that_nobody_can_read_are_skipped() {
        let snapshots = Snapshots { interval: 10, slots: vec![] };
        assert_eq!(snapshots.next(None, 0), 0);
        assert_eq!(snapshots.next(Some(0), 3), 10);
        assert_eq!(snapshots.next(Some(10), 97), 80);
        assert_eq!(snapshots.next(Some(80), 97), 90);
        assert_eq!(snapshots.next(Some(90), 97), 100);
    }
}
