//! Snapshots of the queues of all ports at multiples of an interval, which an oracle (UGAL-G) reads.
//!
//! At a time in epoch k the snapshot of epoch k - 1 is read. Its time is a cut that every partition has passed; after an idle
//! time, in which no window began in epoch k - 1, the partitions wait for each other once more before they run ([`Snapshots::is_read_at`]).

use crate::{plan::Plan, port::Ports};
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of snapshots that are kept: one is written while the previous one is read.
const SLOTS: u64 = 4;

#[derive(Debug)]
pub(crate) struct Snapshots {
    interval: u64,
    slots: Vec<Box<[AtomicU32]>>,
}

impl Snapshots {
    /// Creates snapshots of `links` directed links, taken every `interval` picoseconds.
    pub(crate) fn new(interval: u64, links: usize) -> Self {
        let slot = || (0..links).map(|_| AtomicU32::new(0)).collect();
        Snapshots { interval, slots: (0..SLOTS).map(|_| slot()).collect() }
    }

    fn slot(&self, epoch: u64) -> &[AtomicU32] {
        &self.slots[(epoch % SLOTS) as usize]
    }

    /// Returns the bytes that waited at the port of a directed link in the epoch before that of `now`.
    pub(crate) fn read(&self, link: u32, now: u64) -> u64 {
        match (now / self.interval).checked_sub(1) {
            None => 0,
            Some(epoch) => u64::from(self.slot(epoch)[link as usize].load(Ordering::Relaxed)),
        }
    }

    /// Returns the time of the snapshot after the one at `last`. Those until `start` are equal: only those that can
    /// still be read are taken.
    pub(crate) fn next(&self, last: Option<u64>, start: u64) -> u64 {
        let next = last.map_or(0, |last| last + self.interval);
        let readable = (start / self.interval).saturating_sub(1) * self.interval;
        next.max(readable)
    }

    /// Returns `true` if events at `start` read the snapshot of `time`.
    pub(crate) fn is_read_at(&self, time: u64, start: u64) -> bool {
        time / self.interval + 1 == start / self.interval
    }

    /// Stores the backlog of every port between switches; `now` is a multiple of the interval.
    pub(crate) fn take(&self, plan: &Plan<'_>, ports: &mut Ports<'_>, me: u16, now: u64) {
        let slot = self.slot(now / self.interval);
        for &link in plan.links_of(me) {
            let ends = &plan.links[link as usize];
            if ends.from.min(ends.to) >= plan.hosts {
                let waiting = ports.backlog(plan.port_of(link), now).min(u64::from(u32::MAX)) as u32;
                slot[link as usize].store(waiting, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 10 ps. After an idle time up to 97, epoch 9 reads epoch 8: those before are skipped.
    #[test]
    fn unreadable_snapshots_are_skipped() {
        let snapshots = Snapshots { interval: 10, slots: vec![] };
        assert_eq!(snapshots.next(None, 0), 0);
        assert_eq!(snapshots.next(Some(0), 3), 10);
        assert_eq!(snapshots.next(Some(10), 97), 80);
        assert_eq!(snapshots.next(Some(80), 97), 90);
        assert_eq!(snapshots.next(Some(90), 97), 100);
        assert!(snapshots.is_read_at(80, 97) && !snapshots.is_read_at(90, 97));
    }
}
