//! A sweep done: what is missing in its store, on all cores, then tables and figures over all of it.

use super::Sweep;
use crate::{
    compare::{check, directory_error},
    error::ScenarioError,
    hold::Hold,
    results::{Destination, RunError, run_unless},
    schedule::{Observer, Step, Work, work_off},
    store::{Claim, Store},
};
use anabranch_random::name_key;
use anabranch_report::{Formats, ReportError, Sweep as Table, SweepPlan, failed_file, report_sweep, store_directory};
use anabranch_sim::Progress;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// Which runs that are there are done anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Again {
    /// None.
    #[default]
    No,
    /// Those that failed.
    Failed,
    /// All.
    All,
}

/// How a sweep is done.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Threads.
    pub threads: usize,
    /// What is done anew.
    pub again: Again,
    /// Whether tables and figures of another sweep in the same store may be replaced; its runs stay in any case.
    pub replace: bool,
    /// The share to be done: number K (from 1) of N.
    pub task: Option<(usize, usize)>,
}

/// What came of it.
#[derive(Debug)]
pub struct Swept {
    /// Runs of this process's share.
    pub share: usize,
    /// How many of them were there before.
    pub reused: usize,
    /// Runs of this process's share that failed, now or before: name and error.
    pub failed: Vec<(String, String)>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// The sweep over all that is finished, and its page, once every run is finished or failed.
    pub table: Option<(Table, PathBuf)>,
    /// Runs of the whole sweep that are still missing.
    pub missing: usize,
}

/// Starts after which a run is given up that kills its process each time.
const MOST_KILLED: u64 = 3;

#[derive(Default)]
struct Done {
    reused: usize,
    fatal: Option<RunError>,
}

struct Execution<'s> {
    sweep: &'s Sweep,
    directory: &'s Path,
    store: Store,
    again: Again,
    done: Mutex<Done>,
}

impl Sweep {
    /// Runs of the sweep that are neither finished nor failed in `directory`.
    pub fn missing(&self, directory: &Path) -> Vec<usize> {
        let there = |number: &usize| {
            let run = &self.plan.runs[*number].run;
            store_directory(directory, run).join("summary.json").exists() || failed_file(directory, run).exists()
        };
        self.order.iter().copied().filter(|number| !there(number)).collect()
    }

    /// The runs of a share: every Nth, from the Kth on.
    pub fn share(&self, task: Option<(usize, usize)>) -> Vec<usize> {
        let (first, every) = task.map_or((1, 1), |(k, n)| (k.max(1), n.max(1)));
        self.order.iter().copied().skip(first - 1).step_by(every).collect()
    }

    /// The runs of a share that are to be done, by what stands in `directory`.
    pub fn due(&self, directory: &Path, options: &Options) -> Vec<usize> {
        let due = |number: &usize| {
            let run = &self.plan.runs[*number].run;
            let finished = || store_directory(directory, run).join("summary.json").exists();
            let failed = || failed_file(directory, run).exists();
            match options.again {
                Again::All => true,
                Again::Failed => !finished(),
                Again::No => !finished() && !failed(),
            }
        };
        self.share(options.task).into_iter().filter(due).collect()
    }

    /// Does what is missing in the store `directory`. A run that fails is kept with its error and does not stop the
    /// others.
    ///
    /// # Errors
    /// [`RunError`] where a point cannot be run at all (said before anything runs), another sweep is in the way, or
    /// nothing can be written; what is finished stays.
    pub fn execute(&self, directory: &Path, options: Options, observer: &dyn Observer) -> Result<Swept, RunError> {
        self.ask(directory, options.replace)?;
        let (share, jobs) = (self.share(options.task), self.due(directory, &options));
        self.check(&jobs, observer)?;
        let store = Store::open(directory)?;
        self.write_plan(directory, &store)?;
        let reused = share.len() - jobs.len();
        let execution = Execution {
            sweep: self,
            directory,
            store,
            again: options.again,
            done: Mutex::new(Done { reused, fatal: None }),
        };
        work_off(&execution, jobs, options.threads, observer);
        execution.finish(&share, observer)
    }

    /// What else lies in the directory, of which nothing may be lost unasked.
    fn ask(&self, directory: &Path, replace: bool) -> Result<(), ScenarioError> {
        let name = directory.display();
        for (file, what) in [("summary.json", "a single run"), ("comparison.csv", "a comparison")] {
            if directory.join(file).exists() {
                let message = format!("{name} holds {what}; a sweep needs a directory of its own");
                return Err(ScenarioError::new(message).help("give another directory with --out DIR"));
            }
        }
        let Some(there) = SweepPlan::read(directory).map_err(|error| ScenarioError::new(error.to_string()))? else {
            return Ok(());
        };
        let keys = |plan: &SweepPlan| plan.axes.iter().map(|axis| axis.key.clone()).collect::<Vec<_>>();
        let same = there.scenario_hash == self.plan.scenario_hash
            && keys(&there) == keys(&self.plan)
            && there.zip == self.plan.zip;
        if same || replace {
            return Ok(());
        }
        let version = match there.version == self.plan.version {
            true => String::new(),
            false => format!(", by version {}", there.version),
        };
        let message = format!("{name} holds another sweep: {} over {}{version}", there.name, keys(&there).join(", "));
        Err(ScenarioError::new(message)
            .help("give another directory with --out DIR; or --replace, which replaces its tables and keeps its runs"))
    }

    /// Whatever is wrong with a graph, the traffic or a load balancer shows before anything runs: the first run of
    /// each point is set up whole, the load balancers of the others are checked on its graph.
    fn check(&self, jobs: &[usize], observer: &dyn Observer) -> Result<(), ScenarioError> {
        let mut by_point: Vec<usize> = jobs.to_vec();
        by_point.sort_by_key(|number| (self.plan.runs[*number].point, self.plan.runs[*number].seed));
        for jobs in by_point.chunk_by(|a, b| self.plan.runs[*a].point == self.plan.runs[*b].point) {
            let (mut first, seed) = (None, self.plan.runs[jobs[0]].seed);
            for number in jobs.iter().copied().take_while(|number| self.plan.runs[*number].seed == seed) {
                if observer.interrupted() {
                    return Ok(());
                }
                let scenario = self.scenario(number)?;
                check(&scenario, &self.name(number), &mut first, observer).map_err(|e| self.placed(e, number))?;
            }
        }
        Ok(())
    }

    /// An error with the point it shows at.
    fn placed(&self, error: ScenarioError, number: usize) -> ScenarioError {
        let remedy = error.remedy().map(str::to_string);
        let placed = ScenarioError::new(format!("{}: {error}", self.name(number)));
        match remedy {
            Some(remedy) => placed.help(remedy),
            None => placed,
        }
    }

    fn write_plan(&self, directory: &Path, store: &Store) -> Result<(), RunError> {
        let _alone = store.exclusive()?;
        if SweepPlan::read(directory).ok().flatten().is_none_or(|there| there != self.plan) {
            self.plan.write(directory)?;
        }
        Ok(())
    }
}

impl Work for Execution<'_> {
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
        self.sweep.scenario(number).map_or(1, |scenario| scenario.most_threads())
    }
}

impl Execution<'_> {
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
        let run = self.sweep.plan.runs[number].run.as_str();
        let Some(mut claim) = self.store.claim(run)? else { return Ok(Step::Elsewhere) };
        // Another process may have done it since this one looked.
        let tried = self.again == Again::No && self.store.has_failed(run);
        if self.again != Again::All && (self.store.is_finished(run) || tried) {
            self.lock().reused += 1;
            return Ok(Step::Done);
        }
        let name = self.sweep.name(number);
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
        let scenario = self.sweep.scenario(number)?;
        let to = Destination {
            entry: scenario.scheme(),
            directory: aside,
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

    fn finish(self, share: &[usize], observer: &dyn Observer) -> Result<Swept, RunError> {
        let _hold = Hold::take();
        let done = std::mem::take(&mut *self.lock());
        let missing = self.sweep.missing(self.directory);
        if let Some(error) = done.fatal {
            return Err(with_what_is_done(error, self.sweep.order.len() - missing.len(), self.sweep.order.len()));
        }
        let table = match missing.is_empty() {
            true => self.report()?,
            false => None,
        };
        let failure = |number: &usize| {
            let run = &self.sweep.plan.runs[*number].run;
            let text = fs::read_to_string(failed_file(self.directory, run)).ok()?;
            let failed: serde_json::Value = serde_json::from_str(&text).ok()?;
            Some((self.sweep.name(*number), failed["error"].as_str().unwrap_or_default().to_string()))
        };
        Ok(Swept {
            share: share.len(),
            reused: done.reused,
            failed: share.iter().filter_map(failure).collect(),
            interrupted: observer.interrupted() && share.iter().any(|number| missing.contains(number)),
            table,
            missing: missing.len(),
        })
    }

    /// Tables and figures, unless they stand there over just these runs; `None` where no run is finished.
    fn report(&self) -> Result<Option<(Table, PathBuf)>, RunError> {
        let _alone = self.store.exclusive()?;
        let plan = &self.sweep.plan;
        let finished = |run: &str| if self.store.is_finished(run) { '+' } else { '-' };
        let standing: String = plan.runs.iter().map(|run| finished(&run.run)).collect();
        let text = serde_json::to_string(plan).unwrap_or_default();
        let digest = format!("{:016x}\n", name_key(&format!("{text} {standing}")));
        let (mark, page) = (self.directory.join(".reported"), self.directory.join("report.html"));
        let there = fs::read_to_string(&mark).is_ok_and(|there| there == digest) && page.exists();
        if there && self.again != Again::All {
            return Ok(Table::read(self.directory)?.map(|table| (table, page)));
        }
        if !standing.contains('+') {
            return Ok(None);
        }
        let reported = report_sweep(self.directory, true)?;
        fs::write(&mark, digest).map_err(|error| directory_error(self.directory, &error))?;
        Ok(Some(reported))
    }
}

/// An error that ended a sweep, with how far it came.
fn with_what_is_done(error: RunError, finished: usize, of: usize) -> RunError {
    match error {
        RunError::Report(ReportError::File { path, source }) => {
            let message = format!("{}: {source}; {finished} of {of} runs are finished and kept", path.display());
            ScenarioError::new(message).help("make room there, and give the same command again: it goes on").into()
        }
        other => other,
    }
}
