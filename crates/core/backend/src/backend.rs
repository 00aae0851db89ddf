//! What carries the packets of a run.

use crate::{Progress, Refusal, RunError, Setup, fingerprint::fingerprint};
use anabranch_outcome::{Clock, Measures, RunResult, RunRows};

/// How a run is done; results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Threads that it may use.
    pub threads: usize,
}

/// What carries the packets of a run. Its rows become a result by [`run`] alone, which leaves out what it does not measure.
pub trait Backend {
    /// What it fills in of a result.
    fn measures(&self) -> Measures;

    /// Whether the switch side of load balancers runs. Where not, the host side alone counts, whatever the switch side is.
    fn runs_switch_schemes(&self) -> bool {
        true
    }

    /// Checks whether `setup` can be run.
    ///
    /// # Errors
    /// [`RunError::Refused`] or [`RunError::Setup`] of what this backend cannot do or be.
    fn check(&self, setup: &Setup) -> Result<(), RunError>;

    /// Runs `setup`. `progress` is called a few times per second, from the preparations on, and returns false to interrupt the run.
    ///
    /// # Errors
    /// [`RunError`].
    fn run(
        &self,
        setup: &Setup,
        options: RunOptions,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<RunRows, RunError>;
}

/// Runs `setup` on `backend`.
///
/// # Errors
/// [`RunError`].
pub fn run(
    backend: &dyn Backend,
    setup: &Setup,
    options: RunOptions,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, RunError> {
    let measures = backend.measures();
    let mut rows = backend.run(setup, options, progress)?;
    rows.fingerprint = (measures.clock == Clock::Simulated).then(|| fingerprint(&rows.flows, &rows.links));
    Ok(RunResult::new(rows, &measures))
}

impl Refusal {
    /// A refusal of what `key` asks for.
    pub fn new(key: impl Into<String>, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Refusal { key: key.into(), reason: reason.into(), remedy: remedy.into() }
    }
}
