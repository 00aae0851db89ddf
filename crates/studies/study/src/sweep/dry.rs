//! Estimate of the time and memory of a sweep, measured on one of its runs.

use super::Sweep;
use crate::{RunError, results::run};
use anabranch_results::parquet_bytes;
use anabranch_scenario::{Memory, peak_rss_bytes, reset_peak_rss, resident};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Estimated cost of a sweep.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// Total number of runs; several points may share one.
    pub runs: usize,
    /// Number of runs that are neither finished nor failed.
    pub missing: usize,
    /// The run that was measured; `None` where none is missing.
    pub measured: Option<Measured>,
    /// Number of concurrent runs, by threads and memory.
    pub side_by_side: usize,
}

#[derive(Clone, Debug)]
pub struct Measured {
    pub name: String,
    /// Its duration in seconds; if it was stopped early, extrapolated from the share of its flows that were done.
    pub seconds: f64,
    /// `true` if it was stopped early.
    pub stopped: bool,
    /// Its peak memory in bytes; `None` where the system does not report it.
    pub memory_bytes: Option<u64>,
    /// Bytes of its tables on disk; `None` if it was stopped early.
    pub disk_bytes: Option<u64>,
}

impl DryRun {
    /// Estimates the duration of the missing runs in seconds, if they are like the one measured.
    pub fn seconds(&self) -> f64 {
        let each = self.measured.as_ref().map_or(0.0, |measured| measured.seconds);
        each * self.missing as f64 / self.side_by_side.max(1) as f64
    }
}

impl Sweep {
    /// Measures the last run that is missing in `directory`, for `patience` at most; nothing is written.
    pub fn dry_run(
        &self,
        directory: &Path,
        threads: usize,
        patience: Duration,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<DryRun, RunError> {
        let missing = self.missing(directory);
        let Some(&last) = missing.last() else {
            return Ok(DryRun { runs: self.order().len(), missing: 0, measured: None, side_by_side: threads.max(1) });
        };
        let scenario = self.scenario(last)?;
        reset_peak_rss();
        let (before, started) = (resident(), Instant::now());
        let mut share = 0.0;
        let outcome = run(&scenario, self.entries.backend(), 1, &|_| Ok(()), &mut |progress| {
            share = progress.flows_finished as f64 / progress.flows_total.max(1) as f64;
            started.elapsed() < patience && !interrupted()
        });
        let ran = match outcome {
            Ok(ran) => Some(ran),
            Err(RunError::Interrupted) => None,
            Err(error) => return Err(error),
        };
        let elapsed = started.elapsed().as_secs_f64();
        let memory_bytes = peak_rss_bytes().zip(before).map(|(peak, before)| peak.saturating_sub(before));
        // After time and memory were measured.
        let whole = ran.filter(|ran| !ran.result.interrupted);
        let disk_bytes = whole.as_ref().map(|ran| parquet_bytes(&ran.result, &ran.meta)).transpose()?;
        let stopped = whole.is_none();
        // Below a hundredth of the flows the share is too coarse; the run then takes at least a hundred times as long.
        let seconds = if stopped { elapsed / f64::max(share, 0.01) } else { elapsed };
        let room = Memory::now().zip(memory_bytes).map_or(usize::MAX, |(memory, each)| {
            usize::try_from(memory.available / (each + each / 2).max(1)).unwrap_or(usize::MAX)
        });
        Ok(DryRun {
            runs: self.order().len(),
            missing: missing.len(),
            measured: Some(Measured { name: self.name(last), seconds, stopped, memory_bytes, disk_bytes }),
            side_by_side: threads.min(missing.len()).min(room).max(1),
        })
    }
}
