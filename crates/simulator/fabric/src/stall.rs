//! Detection of stalled runs: flows are open, none has received a byte for many timeouts, and no scheduled event could
//! change that.
//!
//! Each partition publishes its state at the end of a window and reads those of all at the start of the next one. The
//! time of a stall is a cut, which follows from the model alone, not from windows.

use crate::plan::Plan;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

#[derive(Debug, Default)]
struct Published {
    /// Time of the last new byte, start, trigger or computation.
    progress: AtomicU64,
    open_flows: AtomicU64,
    /// Scheduled starts, triggers and computations, less those that have happened.
    planned: AtomicI64,
}

#[derive(Debug)]
pub(crate) struct StallCheck {
    /// A run stalls after this span without progress.
    span: u64,
    /// Time of the last fault or change of tables within the run.
    last_change: u64,
    /// For odd and even windows: one is written while the other is read.
    published: [Vec<Published>; 2],
}

impl StallCheck {
    /// Creates the check of a run; `None` where it cannot stall: without timeouts it ends by itself.
    pub(crate) fn new(plan: &Plan<'_>) -> Option<Self> {
        let published = || (0..plan.cells.partitions).map(|_| Published::default()).collect();
        Some(StallCheck {
            span: plan.stall_span?,
            last_change: plan.last_change(),
            published: [published(), published()],
        })
    }

    pub(crate) fn publish(&self, window: u64, me: u16, progress: u64, open_flows: usize, planned: i64) {
        let published = &self.published[(window % 2) as usize][usize::from(me)];
        published.progress.store(progress, Relaxed);
        published.open_flows.store(open_flows as u64, Relaxed);
        published.planned.store(planned, Relaxed);
    }

    /// Returns the time of a stall if no progress follows the first `windows` windows; `u64::MAX`: none.
    pub(crate) fn due(&self, windows: u64) -> u64 {
        let Some(window) = windows.checked_sub(1) else { return u64::MAX };
        let (mut progress, mut open, mut planned) = (self.last_change, 0, 0);
        for published in &self.published[(window % 2) as usize] {
            progress = progress.max(published.progress.load(Relaxed));
            open += published.open_flows.load(Relaxed);
            planned += published.planned.load(Relaxed);
        }
        if open > 0 && planned == 0 { progress.saturating_add(self.span) } else { u64::MAX }
    }
}
