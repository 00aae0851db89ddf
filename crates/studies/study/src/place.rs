//! Directories of a plan: the store with its runs, and the directory with its tables and page.

use crate::{Lock, RunError, Store, replaceable};
use anabranch_results::{Plan, disk, is_complete_run, store_directory};
use anabranch_scenario::ScenarioError;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where the runs and the tables of a plan are: one directory, unless the store has runs of several backends.
#[derive(Clone, Debug)]
pub struct Place {
    runs: PathBuf,
    tables: PathBuf,
}

impl Place {
    /// Runs and tables in `directory`.
    pub fn one(directory: &Path) -> Self {
        Place { runs: directory.to_path_buf(), tables: directory.to_path_buf() }
    }

    /// Runs in the store `directory`; tables of the backend `name` in a directory there.
    pub fn side(directory: &Path, name: &str) -> Self {
        Place { runs: directory.to_path_buf(), tables: directory.join(name) }
    }

    pub fn runs(&self) -> &Path {
        &self.runs
    }

    /// The directory of tables, figures and page, in which every run is found as in a store.
    pub fn tables(&self) -> &Path {
        &self.tables
    }

    fn is_side(&self) -> bool {
        self.runs != self.tables
    }

    pub(crate) fn open(&self, plan: &Plan) -> Result<Store, RunError> {
        let store = Store::open(&self.runs)?;
        if self.is_side() {
            Store::open(&self.tables)?.write_plan(plan)?
        } else {
            store.write_plan(plan)?
        }
        Ok(store)
    }

    /// Makes the names of the finished runs of `plan`, and returns the right to write its tables.
    pub(crate) fn show(&self, plan: &Plan) -> Result<Option<Lock>, RunError> {
        let shown = Store::open(&self.tables)?;
        let alone = shown.exclusive()?;
        // Another command may have begun here meanwhile.
        shown.put_plan(plan)?;
        if self.is_side() {
            self.link(plan).map_err(|error| shown.refused(&error))?;
        }
        if plan.is_comparison() {
            shown.name_runs(plan)?;
        }
        Ok(alone)
    }

    /// Makes links to the finished runs of the store above the directory of a backend.
    fn link(&self, plan: &Plan) -> std::io::Result<()> {
        for run in plan.runs.iter().filter(|run| is_complete_run(&store_directory(&self.runs, &run.run))) {
            let at = store_directory(&self.tables, &run.run);
            if fs::symlink_metadata(&at).is_err() {
                disk::make_link(&store_directory(Path::new("../.."), &run.run), &at)?;
            }
        }
        disk::sync(&self.tables.join("runs"))
    }
}

/// Prepares the store `directory` for a plan over several backends.
/// Fails where foreign results are in the way.
pub fn begin_backends(directory: &Path, plan: &Plan, inputs: &[PathBuf], replace: bool) -> Result<(), RunError> {
    replaceable(directory, plan, inputs, replace)?;
    for backend in &plan.backends {
        let side = Plan { backends: vec![], ..plan.clone() };
        replaceable(&directory.join(backend), &side, inputs, replace)?;
    }
    let mut sides = plan.backends.iter().map(|backend| directory.join(backend));
    if let Some(side) = sides.find(|side| side.exists() && !side.is_dir()) {
        let found = "is a file; the results of a backend need a directory of that name";
        let message = format!("{} {found}", side.display());
        return Err(ScenarioError::new(message).help("give another directory with --out DIR").into());
    }
    Store::open(directory)?.write_plan(plan)
}
