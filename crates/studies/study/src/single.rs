//! One run that is shown by itself: a plan of one in a store, whose tables are in the directory of the store too.

use crate::{
    Captured, Captures, Lock, Permission, Ran, RunError, Store, Written, entries::plan_of, replaceable, results::run,
    run_key, store::Aside,
};
use anabranch_backend::{Progress, Setup};
use anabranch_report::{SeriesSums, report, report_run};
use anabranch_results::{
    Attempt, Formats, PLAN, Plan, PlannedRun, Summary, damage, disk, is_complete_run, read_summary, show_run,
    store_directory,
};
use anabranch_scenario::{BackendEntry, Scenario, ScenarioError};
use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
};

/// The directory of one run.
#[derive(Debug)]
pub struct Single {
    directory: PathBuf,
    plan: Plan,
    again: bool,
    /// `true` if the directory had results before.
    was_there: bool,
    /// The directory for the files of a run that has begun.
    aside: RefCell<Option<Aside>>,
}

impl Single {
    /// Plans the run of `scenario` with its seed in `directory`, to be done again if it is finished there and `again` is
    /// permitted. Tables of another scenario are replaced only with permission; runs stay.
    ///
    /// Errors: [`RunError`] that names what is in the way.
    pub fn new(
        scenario: &Scenario,
        backend: &BackendEntry,
        directory: &Path,
        permission: Permission,
    ) -> Result<Self, RunError> {
        let (seed, run) = (scenario.seed, run_key(scenario, backend));
        let plan = Plan {
            entries: vec![scenario.scheme().to_string()],
            baseline: scenario.scheme().to_string(),
            seeds: vec![seed],
            is_run: true,
            runs: vec![PlannedRun { seed, run, ..PlannedRun::default() }],
            ..plan_of(scenario)
        };
        replaceable(directory, &plan, &scenario.inputs(), permission.replace)?;
        let was_there = fs::symlink_metadata(directory.join("manifest.json")).is_ok();
        Ok(Single {
            directory: directory.to_path_buf(),
            plan,
            again: permission.again,
            was_there,
            aside: RefCell::default(),
        })
    }

    /// Creates the store before the run begins, so that a disk that cannot be written is found first.
    pub fn begin(&self) -> Result<(), RunError> {
        let store = Store::open(&self.directory)?;
        // Others see that a run is under way here.
        *self.aside.borrow_mut() = Some(store.aside_unclaimed(self.run())?);
        store.write_plan(&self.plan)
    }

    /// Removes what [`Single::begin`] made, unless there was something before: no run began.
    pub fn undo(&self) {
        self.aside.take();
        let mut parts = vec![self.directory.join("manifest.json"), self.directory.join(PLAN)];
        let is_file = |path: &PathBuf| path.is_file();
        let has_more =
            |folder: &str| fs::read_dir(self.directory.join(folder)).is_ok_and(|mut found| found.next().is_some());
        let folders = ["runs", "failed", ".writing", ".claims"];
        if self.was_there || folders.into_iter().any(has_more) || self.directory.join("starts.log").exists() {
            return;
        }
        parts.retain(is_file);
        parts.iter().for_each(|file| drop(disk::remove_file(file)));
        folders.iter().for_each(|folder| drop(disk::remove_directory(&self.directory.join(folder))));
        let _ = disk::remove_directory(&self.directory);
    }

    fn run(&self) -> &str {
        &self.plan.runs[0].run
    }

    /// Shows the run if the store has it undamaged and it is not to be repeated, and returns its summary.
    pub fn finished(&self, observer: &dyn Fn(&str)) -> Result<Option<(Summary, PathBuf)>, RunError> {
        let place = store_directory(&self.directory, self.run());
        if let Some(found) = damage(&place).filter(|_| !self.again) {
            observer(&format!("{found}; the run is done again"));
        }
        if self.again || !is_complete_run(&place) {
            return Ok(None);
        }
        let store = Store::open(&self.directory)?;
        let _alone = self.show(&store)?;
        let page = report(&self.directory)?;
        Ok(read_summary(&place)?.map(|summary| (summary, page)))
    }

    /// Does the run on `threads` threads, writes it, its page, and `captures` to their files. `warn` gets reasons to doubt
    /// the results, before the run takes its time.
    ///
    /// Errors: [`RunError`]; the directory is created only for a run that begins.
    pub fn execute(
        &self,
        scenario: &Scenario,
        backend: &'static BackendEntry,
        threads: usize,
        captures: &Captures,
        warn: &dyn Fn(&str),
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<(Summary, Vec<Captured>, PathBuf), RunError> {
        let prepare = |setup: &mut Setup| {
            captures.ask(setup)?;
            scenario.check(setup, backend)?;
            scenario.foresight(setup, backend).iter().for_each(|warning| warn(warning));
            self.begin()
        };
        let ran = run(scenario, backend, threads, &prepare, progress).inspect_err(|_| self.undo())?;
        let files = captures.write(&ran.setup, &ran.result)?;
        let (summary, _alone) = self.put(&ran)?;
        let captured = files.publish()?;
        Ok((summary, captured, report_run(&self.directory, &SeriesSums::of(&ran.result))?))
    }

    /// Writes the result of the run: into the store, or, where it was interrupted, into the directory alone.
    pub fn write(&self, ran: &Ran) -> Result<Summary, RunError> {
        self.put(ran).map(|(summary, _)| summary)
    }

    /// As [`Single::write`]; also returns the right to write the tables.
    fn put(&self, ran: &Ran) -> Result<(Summary, Option<Lock>), RunError> {
        // Nothing of a run that cannot be written is of use, unlike the directory of one that a full disk has stopped.
        self.try_put(ran).inspect_err(|error| {
            if matches!(error, RunError::Broken(_)) {
                self.undo();
            }
        })
    }

    fn try_put(&self, ran: &Ran) -> Result<(Summary, Option<Lock>), RunError> {
        if !self.directory.is_dir() {
            let message = format!("{} was moved or removed during the run", self.directory.display());
            return Err(ScenarioError::new(message).help("its results are lost; run it again").into());
        }
        let store = Store::open(&self.directory)?;
        if ran.result.interrupted {
            let alone = store.exclusive()?;
            store.put_plan(&self.plan)?;
            return Ok((ran.write_part(&self.directory)?, alone));
        }
        let aside = match self.aside.take() {
            Some(aside) if aside.path.is_dir() => aside,
            _ => store.aside_unclaimed(self.run())?,
        };
        disk::remove_directory(&aside.path).map_err(|error| store.refused(&error))?;
        let attempt = Attempt { host: store.host.clone(), attempts: 1 };
        let summary = ran.write_fresh(&aside.path, Formats::BOTH, &attempt)?;
        // A run that another process has finished meanwhile stays.
        store.publish(&[Written { aside: aside.path.clone(), run: self.run().to_string(), replace: self.again }])?;
        Ok((summary, self.show(&store)?))
    }

    /// Makes the run the one that the directory shows, and returns the right to write there.
    fn show(&self, store: &Store) -> Result<Option<Lock>, RunError> {
        let alone = store.exclusive()?;
        store.put_plan(&self.plan)?;
        store.name_runs(&self.plan)?;
        show_run(&self.plan, &self.directory)?;
        Ok(alone)
    }
}
