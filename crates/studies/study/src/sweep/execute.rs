//! Execution of a sweep: the runs missing in its store on all cores, then tables and figures over all of it.

use super::Sweep;
use crate::{
    Again, Batch, Hold, Observer, Place, RunError, Runs, Store, check, is_due, replaceable, with_what_is_done,
};
use anabranch_random::name_key;
use anabranch_report::{Sweep as Table, report_sweep};
use anabranch_results::{FailedRun, Manifest, check_files, failed_file, is_complete_run, store_directory};
use anabranch_scenario::{BackendEntry, Scenario, ScenarioError};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub threads: usize,
    /// Existing runs that are repeated.
    pub again: Again,
    /// `true` if tables and figures of another sweep in the same store may be replaced; its runs stay in any case.
    pub replace: bool,
    /// The share to be done: number K (from 1) of N.
    pub task: Option<(usize, usize)>,
}

#[derive(Debug)]
pub struct Swept {
    /// Number of runs in this process's share.
    pub share: usize,
    /// Number of them that existed before.
    pub reused: usize,
    /// Runs of this process's share that failed, now or before: name and error.
    pub failed: Vec<(String, String)>,
    /// `true` if it was interrupted.
    pub interrupted: bool,
    /// The sweep over all that is finished, and its page, once every run is finished or failed.
    pub table: Option<(Table, PathBuf)>,
    /// Number of runs of the whole sweep that are still missing.
    pub missing: usize,
}

struct Execution<'s> {
    sweep: &'s Sweep,
    place: &'s Place,
    store: Store,
    again: Again,
}

impl Runs for Sweep {
    fn key(&self, number: usize) -> &str {
        &self.plan.runs[number].run
    }
    fn name(&self, number: usize) -> String {
        Sweep::name(self, number)
    }
    fn scenario(&self, number: usize) -> Result<Scenario, ScenarioError> {
        Sweep::scenario(self, number)
    }
    fn backend(&self) -> &'static BackendEntry {
        self.entries.backend()
    }
}

impl Sweep {
    /// Returns the runs of the sweep that are neither finished nor failed in `directory`.
    pub fn missing(&self, directory: &Path) -> Vec<usize> {
        let there = |number: &usize| {
            let run = &self.plan.runs[*number].run;
            is_complete_run(&store_directory(directory, run)) || failed_file(directory, run).exists()
        };
        self.order.iter().copied().filter(|number| !there(number)).collect()
    }

    /// Returns the runs of a share: every Nth, from the Kth on.
    pub fn share(&self, task: Option<(usize, usize)>) -> Vec<usize> {
        let (first, every) = task.map_or((1, 1), |(k, n)| (k.max(1), n.max(1)));
        self.order.iter().copied().skip(first - 1).step_by(every).collect()
    }

    /// Returns the runs of a share that remain to be done, given the content of `directory`.
    pub fn due(&self, directory: &Path, options: &Options) -> Vec<usize> {
        let due = |number: &usize| is_due(directory, &self.plan.runs[*number].run, options.again);
        self.share(options.task).into_iter().filter(due).collect()
    }

    /// Does the runs that are missing in the store of `place`. A failed run is recorded and does not stop the others.
    ///
    /// Fails where a point cannot be run at all (reported first), another sweep is in the way, or nothing can be written.
    pub fn execute(&self, place: &Place, options: Options, observer: &dyn Observer) -> Result<Swept, RunError> {
        let (share, jobs) = (self.share(options.task), self.due(place.runs(), &options));
        let store = self.open(place, &jobs, options.replace, observer)?;
        let there = share.len() - jobs.len();
        let execution = Execution { sweep: self, place, store, again: options.again };
        let threads = match jobs.first() {
            Some(first) => self.entries.backend().threads(&self.scenario(*first)?, options.threads),
            None => options.threads,
        };
        let (elsewhere, fatal) = Batch::new(self, &execution.store, options.again).work_off(jobs, threads, observer);
        execution.finish(&share, there + elsewhere, fatal, observer)
    }

    /// Prepares the store for other processes that do the runs: all steps of [`Sweep::execute`] before the first run.
    pub fn prepare(&self, directory: &Path, options: &Options, observer: &dyn Observer) -> Result<(), RunError> {
        self.open(&Place::one(directory), &self.due(directory, options), options.replace, observer).map(|_| ())
    }

    fn open(&self, place: &Place, jobs: &[usize], replace: bool, observer: &dyn Observer) -> Result<Store, RunError> {
        replaceable(place.tables(), &self.plan, &self.inputs(), replace)?;
        self.check(jobs, observer)?;
        place.open(&self.plan)
    }

    /// Sets up the first run of each point whole, and checks the load balancers of the others on its graph.
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
                check(&scenario, self.entries.backend(), &self.name(number), &mut first, observer)
                    .map_err(|e| e.of(&self.name(number)))?;
            }
        }
        Ok(())
    }
}

impl Execution<'_> {
    fn finish(
        self,
        share: &[usize],
        reused: usize,
        fatal: Option<RunError>,
        observer: &dyn Observer,
    ) -> Result<Swept, RunError> {
        let _hold = Hold::take();
        let missing = self.sweep.missing(self.place.runs());
        if let Some(error) = fatal {
            return Err(with_what_is_done(error, self.sweep.order.len() - missing.len(), self.sweep.order.len()));
        }
        let table = if missing.is_empty() { self.report()? } else { None };
        let failure = |number: &usize| {
            let run = &self.sweep.plan.runs[*number].run;
            let failed = FailedRun::read(self.place.runs(), run).ok()??;
            Some((self.sweep.name(*number), failed.error))
        };
        Ok(Swept {
            share: share.len(),
            reused,
            failed: share.iter().filter_map(failure).collect(),
            interrupted: observer.interrupted() && share.iter().any(|number| missing.contains(number)),
            table,
            missing: missing.len(),
        })
    }

    /// Does nothing for tables over exactly these runs; `None` where no run is finished.
    fn report(&self) -> Result<Option<(Table, PathBuf)>, RunError> {
        let (plan, directory) = (&self.sweep.plan, self.place.tables());
        let _alone = self.place.show(plan)?;
        let finished = |run: &str| if self.store.is_finished(run) { '+' } else { '-' };
        let standing: String = plan.runs.iter().map(|run| finished(&run.run)).collect();
        let text = serde_json::to_string(plan).unwrap_or_default();
        let digest = format!("{:016x}", name_key(&format!("{text} {standing}")));
        let page = directory.join("report.html");
        let there = Manifest::read(directory)?.is_some_and(|there| there.run_states == digest) && page.exists();
        let is_intact = || check_files(directory, |name| name != "report.html").is_ok_and(|found| found.is_empty());
        if there && self.again != Again::All && is_intact() {
            return Ok(Table::read(directory)?.map(|table| (table, page)));
        }
        if !standing.contains('+') {
            return Ok(None);
        }
        Ok(Some(report_sweep(directory, true, &digest)?))
    }
}
