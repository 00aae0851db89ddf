//! The simulator as a backend: runs a setup packet by packet.

pub use anabranch_fabric::{How, Split, Timing, check};

use anabranch_backend::{Progress, RunError, RunResult, Setup};

/// Runs `setup` on `threads` threads. `progress` is called a few times per second, from the preparations on, and returns
/// false to interrupt the run.
///
/// # Errors
/// [`RunError`].
pub fn run(setup: &Setup, threads: usize, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, RunError> {
    run_with(setup, How::on(threads), progress)
}

/// As [`run`], with a choice of how.
///
/// # Errors
/// [`RunError`].
pub fn run_with(setup: &Setup, how: How, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, RunError> {
    anabranch_fabric::run(setup, how, progress)
}
