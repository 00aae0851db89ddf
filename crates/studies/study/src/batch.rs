//! Runs into a store: each is claimed, written aside and put in place whole. A failed run does not stop the others.

use crate::{Again, Hold, Observer, RunError, Step, Store, Work, Written, results::run, store::Claim, work_off};
use anabranch_backend::Progress;
use anabranch_results::{Attempt, Formats, disk};
use anabranch_scenario::{BackendEntry, Scenario, ScenarioError};
use std::{
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

/// Starts that killed their process after which a run counts as failed.
const MAX_KILLED: u64 = 3;

/// Maximum number of runs that wait to be made durable; each holds an open file.
const WAITING: usize = 64;

/// Duration above which a run is put in place at once: the relative cost is small, and nothing is lost when the process ends.
const SHORT: Duration = Duration::from_millis(20);

/// A finished run that waits to be put in place, with its claim and hold.
struct Waiting {
    written: Written,
    _claim: Claim,
    _hold: Hold,
}

/// Closes the queue when it is dropped, after a panic too: the thread that puts runs in place waits for its end.
struct Closed<'q>(&'q Mutex<Option<SyncSender<Waiting>>>);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

pub trait Runs: Sync {
    fn key(&self, number: usize) -> &str;
    fn name(&self, number: usize) -> String;
    fn scenario(&self, number: usize) -> Result<Scenario, ScenarioError>;
    fn backend(&self) -> &'static BackendEntry;
    fn formats(&self) -> Formats {
        Formats::PARQUET
    }
}

#[derive(Default)]
struct Done {
    reused: usize,
    fatal: Option<RunError>,
    notes: Vec<String>,
}

/// Runs and the store they go into.
pub struct Batch<'b> {
    runs: &'b dyn Runs,
    store: &'b Store,
    again: Again,
    done: Mutex<Done>,
    queue: Mutex<Option<SyncSender<Waiting>>>,
}

impl<'b> Batch<'b> {
    /// Creates a batch in which no run has begun.
    pub fn new(runs: &'b dyn Runs, store: &'b Store, again: Again) -> Self {
        Batch { runs, store, again, done: Mutex::default(), queue: Mutex::default() }
    }

    /// Does `jobs`. Returns the number of runs that another process did, and the error that stopped the batch.
    pub fn work_off(self, jobs: Vec<usize>, threads: usize, observer: &dyn Observer) -> (usize, Option<RunError>) {
        if self.again != Again::All {
            for number in &jobs {
                if let Some(found) = self.store.damage(self.runs.key(*number)) {
                    observer.warn(&format!("{found}; {} is run again", self.runs.name(*number)));
                }
            }
        }
        let (sender, receiver) = sync_channel(WAITING);
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        thread::scope(|scope| {
            // Simulation continues while the disk is busy.
            let this = &self;
            scope.spawn(move || this.put_in_place(&receiver, observer));
            let _closed = Closed(&self.queue);
            work_off(&self, jobs, threads, observer);
        });
        let done = self.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.notes.iter().for_each(|note| observer.warn(note));
        (done.reused, done.fatal)
    }

    fn lock(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_in_place(&self, waiting: &Receiver<Waiting>, observer: &dyn Observer) {
        while let Ok(first) = waiting.recv() {
            let batch: Vec<Waiting> = std::iter::once(first).chain(waiting.try_iter().take(WAITING)).collect();
            let written: Vec<Written> = batch.iter().map(|waiting| waiting.written.clone()).collect();
            match self.store.publish(&written) {
                Ok(moved) => moved.iter().for_each(|moved| observer.warn(moved)),
                Err(error) => {
                    self.lock().fatal.get_or_insert(error.into());
                    written.iter().for_each(|written| drop(disk::remove_own_tree(&written.aside)));
                }
            }
        }
    }

    /// Returns only errors that every further run would have.
    fn attempt_run(
        &self,
        number: usize,
        threads: usize,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Step, RunError> {
        let run = self.runs.key(number);
        if self.lock().fatal.is_some() {
            return Ok(Step::Stop);
        }
        let Some(mut claim) = self.store.claim(run)? else { return Ok(Step::Elsewhere) };
        // Another process may have done it since this one checked.
        let tried = self.again == Again::No && self.store.has_failed(run);
        if self.again != Again::All && (self.store.is_finished(run) || tried) {
            self.lock().reused += 1;
            return Ok(Step::Done);
        }
        let name = self.runs.name(number);
        if claim.killed >= MAX_KILLED {
            let error = format!("its process was killed {} times, possibly out of memory", claim.killed);
            self.store.record_failure(run, &name, &error, claim.killed)?;
            return Ok(Step::Done);
        }
        self.store.forget_failure(run)?;
        self.store.note_start(run, &mut claim)?;
        let aside = self.store.aside(run);
        let attempt = Attempt { host: self.store.host.clone(), attempts: claim.killed + 1 };
        let begun = Instant::now();
        let outcome = self.run_aside(number, threads, &aside, attempt, progress);
        let hold = Hold::take();
        match outcome {
            Ok(true) => {
                let written = Written { aside, run: run.to_string(), replace: self.again == Again::All };
                if begun.elapsed() > SHORT {
                    let published = self.store.publish(std::slice::from_ref(&written));
                    let moved = published.inspect_err(|_| drop(disk::remove_own_tree(&written.aside)))?;
                    self.lock().notes.extend(moved);
                    return Ok(Step::Done);
                }
                claim.is_done();
                let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // The queue exists while runs are done.
                let _ = queue.map(|queue| queue.send(Waiting { written, _claim: claim, _hold: hold }));
                Ok(Step::Done)
            }
            outcome => {
                let _ = disk::remove_own_tree(&aside);
                self.keep(run, &name, &claim, outcome)
            }
        }
    }

    fn run_aside(
        &self,
        number: usize,
        threads: usize,
        aside: &Path,
        attempt: Attempt,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<bool, RunError> {
        let scenario = self.runs.scenario(number)?;
        let ran = match run(&scenario, self.runs.backend(), threads, &|_| Ok(()), progress) {
            Err(RunError::Interrupted) => return Ok(false),
            ran => ran?,
        };
        if !ran.result.interrupted {
            ran.write_fresh(aside, self.runs.formats(), &attempt)?;
        }
        Ok(!ran.result.interrupted)
    }

    fn keep(&self, run: &str, name: &str, claim: &Claim, outcome: Result<bool, RunError>) -> Result<Step, RunError> {
        match outcome {
            Ok(_) => Ok(Step::Interrupted),
            // The disk failed, not the run.
            Err(error @ RunError::Report(_)) => Err(error),
            Err(error) => {
                self.store.record_failure(run, name, &error.to_string(), claim.killed + 1)?;
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

    fn max_threads(&self, number: usize) -> usize {
        self.runs.scenario(number).map_or(1, |scenario| scenario.max_threads())
    }
}
