use crate::{Progress, Refusal, RunError, Setup, fingerprint::fingerprint};
use anabranch_lb::registry::HostParameters;
use anabranch_outcome::{Clock, Measures, RunResult, RunRows};
use anabranch_units::Time;

/// Options of the execution of a run; results do not depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    pub threads: usize,
}

/// Carries the packets of a run. [`run`] turns its rows into a result and removes those that it does not measure.
pub trait Backend {
    fn measures(&self) -> Measures;

    /// Returns `true` if it runs the switch side of load balancers. If not, only the host side has an effect.
    fn runs_switch_schemes(&self) -> bool {
        true
    }

    /// Checks that it can run `setup`.
    /// Errors: [`RunError::Refused`] or [`RunError::Setup`] for unsupported requests.
    fn check(&self, setup: &Setup) -> Result<(), RunError>;

    /// Returns what it does otherwise than a simulation of `setup`, a sentence each: keys that it replaces by its own.
    fn unlike(&self, _setup: &Setup) -> Vec<String> {
        Vec::new()
    }

    /// Returns the parameters with which it builds a scheme at a host.
    ///
    /// # Errors
    /// Its own configuration is invalid.
    fn host_scheme(&self, _setup: &Setup, scheme: &HostParameters, _host: u32) -> Result<HostParameters, RunError> {
        Ok(scheme.clone())
    }

    /// Runs `setup`. It calls `progress` a few times per second, also during preparation; `false` interrupts the run.
    fn run(
        &self,
        setup: &Setup,
        options: RunOptions,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<RunRows, RunError>;
}

/// Runs `setup` on `backend`.
pub fn run(
    backend: &dyn Backend,
    setup: &Setup,
    options: RunOptions,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, RunError> {
    let mut measures = backend.measures();
    let mut rows = backend.run(setup, options, progress)?;
    let is_skipped = rows.skipped.is_some_and(|skipped| skipped > Time::ZERO);
    if is_skipped {
        measures = Measures::SKIPPED;
    }
    rows.fingerprint = (!is_skipped && measures.clock == Clock::Simulated)
        .then(|| fingerprint(&rows.flows, &rows.jobs.unlisted, &rows.links));
    Ok(RunResult::new(rows, &measures))
}

impl Refusal {
    pub fn new(key: impl Into<String>, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Refusal { key: key.into(), reason: reason.into(), remedy: remedy.into() }
    }
}
