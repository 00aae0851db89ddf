//! Runs done into a store: each claimed, written aside, put in place whole; a failure kept, the others done.

use crate::{
    error::ScenarioError,
    hold::Hold,
    results::{Destination, RunError, run_unless},
    scenario::Scenario,
    schedule::{Observer, Step, Work, work_off},
    store::{Claim, Store},
    sweep::Again,
};
use anabranch_backend::Progress;
use anabranch_report::Formats;
use std::{
    fs,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// Starts after which a run is given up that kills its process each time.
const MOST_KILLED: u64 = 3;

/// Runs by number.
pub(crate) trait Runs: Sync {
    /// Name of the run in the store.
    fn key(&self, number: usize) -> &str;
    /// Its name for people.
    fn name(&self, number: usize) -> String;
    /// What it runs.
    fn scenario(&self, number: usize) -> Result<Scenario, ScenarioError>;
}

#[derive(Default)]
struct Done {
    reused: usize,
    fatal: Option<RunError>,
}

/// Runs and the store they go into.
pub(crate) struct Batch<'b> {
    runs: &'b dyn Runs,
    store: &'b Store,
    again: Again,
    done: Mutex<Done>,
}

impl<'b> Batch<'b> {
    pub(crate) fn new(runs: &'b dyn Runs, store: &'b Store, again: Again) -> Self {
        Batch { runs, store, again, done: Mutex::default() }
    }

    /// Does `jobs` on `threads` threads; how many of them another process had done meanwhile, and what kept it from going
    /// on, if anything.
    pub(crate) fn work_off(
        self,
        jobs: Vec<usize>,
        threads: usize,
        observer: &dyn Observer,
    ) -> (usize, Option<RunError>) {
        work_off(&self, jobs, threads, observer);
        let done = self.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        (done.reused, done.fatal)
    }

    fn lock(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a run; an error is one that every further run would have.
    fn attempt_run(
        &self,
        number: usize,
        threads: usize,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Step, RunError> {
        let run = self.runs.key(number);
        let Some(mut claim) = self.store.claim(run)? else { return Ok(Step::Elsewhere) };
        // Another process may have done it since this one looked.
        let tried = self.again == Again::No && self.store.has_failed(run);
        if self.again != Again::All && (self.store.is_finished(run) || tried) {
            self.lock().reused += 1;
            return Ok(Step::Done);
        }
        let name = self.runs.name(number);
        if claim.killed >= MOST_KILLED {
            let error = format!("its process was killed {} times, perhaps for want of memory", claim.killed);
            self.store.keep_failure(run, &name, &error, claim.killed)?;
            return Ok(Step::Done);
        }
        self.store.forget_failure(run)?;
        self.store.note_start(run, &mut claim)?;
        let aside = self.store.aside(run);
        let outcome = self.run_aside(number, threads, &aside, progress);
        let _hold = Hold::take();
        let step = self.keep(run, &name, &aside, &claim, outcome);
        if !matches!(step, Ok(Step::Done)) {
            let _ = fs::remove_dir_all(&aside);
        }
        step
    }

    fn run_aside(
        &self,
        number: usize,
        threads: usize,
        aside: &Path,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<bool, RunError> {
        let scenario = self.runs.scenario(number)?;
        let to = Destination {
            entry: scenario.scheme(),
            directory: aside,
            taken: None,
            formats: Formats::PARQUET,
            started: Instant::now(),
        };
        run_unless(&scenario, threads, &to, progress).map(|summary| summary.is_some())
    }

    fn keep(
        &self,
        run: &str,
        name: &str,
        aside: &Path,
        claim: &Claim,
        outcome: Result<bool, RunError>,
    ) -> Result<Step, RunError> {
        let attempts = claim.killed + 1;
        match outcome {
            Ok(false) => Ok(Step::Interrupted),
            Ok(true) => {
                self.store.publish(aside, run, attempts, self.again == Again::All)?;
                Ok(Step::Done)
            }
            // The disk, not the run.
            Err(error @ RunError::Report(_)) => Err(error),
            Err(error) => {
                self.store.keep_failure(run, name, &error.to_string(), attempts)?;
                Ok(Step::Done)
            }
        }
    }
}

impl Work for Batch<'_> {
    fn attempt(&self, number: usize, threads: usize, progress: &mut dyn FnMut(&Progress) -> bool) -> Step {
        match self.attempt_run(number, threads, progress) {
            Ok(step) => step,
            Err(error) => {
                self.lock().fatal.get_or_insert(error);
                Step::Stop
            }
        }
    }

    fn most_threads(&self, number: usize) -> usize {
        self.runs.scenario(number).map_or(1, |scenario| scenario.most_threads())
    }
}
