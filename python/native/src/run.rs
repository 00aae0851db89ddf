//! Runs in memory.

use crate::{error, scenario::Scenario, scheme, table::Table, wait};
use anabranch_results::{Context, TABLES};
use anabranch_scenario::backend::SIMULATOR;
use anabranch_study::{
    Observer,
    compare::Permission,
    error::RunError,
    results::{self, Ran},
    single::Single,
};
use pyo3::prelude::*;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// Results of a run.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Outcome {
    ran: Ran,
    scenario: Arc<anabranch_scenario::scenario::Scenario>,
    /// Tables built so far.
    tables: Mutex<BTreeMap<&'static str, Table>>,
}

impl Outcome {
    pub(crate) fn new(ran: Ran, scenario: Arc<anabranch_scenario::scenario::Scenario>) -> Self {
        Outcome { ran, scenario, tables: Mutex::default() }
    }
}

#[pymethods]
impl Outcome {
    /// Returns `summary.json`.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string(&self.ran.summary())).map_err(error::unexpected)
    }

    /// Names of its tables.
    fn tables(&self) -> Vec<&'static str> {
        let has = |table: &&anabranch_results::Table| table.always || !(table.rows)(table, &self.ran.result).is_empty();
        TABLES.iter().filter(has).map(|table| table.name).collect()
    }

    /// Returns a table by name; `None` if the run has none.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Option<Table>> {
        py.detach(|| {
            let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(table) = tables.get(name) {
                return Ok(Some(table.clone()));
            }
            let Some(declared) = TABLES.iter().find(|table| table.name == name) else { return Ok(None) };
            let table = beside(|| Table::of_run(declared, &Context::new(&self.ran.result, &self.ran.meta)))?;
            if table.is_empty() && !declared.always {
                return Ok(None);
            }
            tables.insert(declared.name, table.clone());
            Ok(Some(table))
        })
    }

    /// Writes rows, summary and manifest.
    fn write(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        py.detach(|| {
            let permission = Permission { again: false, replace: true };
            let single = Single::new(&self.scenario, &SIMULATOR, &directory, permission);
            let written = single.and_then(|single| single.begin().and_then(|()| single.write(&self.ran)));
            written.map(|_| ()).map_err(error::run)
        })
    }
}

/// Runs `work` on another thread, whose allocator reuses memory that the run has freed and that is mapped already: for a
/// table of 100,000 rows page faults take as long as the rest.
fn beside<T: Send>(work: impl Fn() -> T + Sync) -> T {
    std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, &work) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(_) => work(),
    })
}

/// Runs a scenario on `threads` threads (0: as many as the fabric can use); writes the results to `directory` if given.
#[pyfunction]
#[pyo3(signature = (scenario, threads=0, directory=None, replace=false, callback=None))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    threads: usize,
    directory: Option<PathBuf>,
    replace: bool,
    callback: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let scenario = scenario.checked.clone();
    let own = scenario.clone();
    let ran = wait::attend(py, 1, callback, move |watch| {
        let permission = Permission { again: true, replace };
        let single = |directory| Single::new(&scenario, &SIMULATOR, directory, permission);
        let single = directory.as_deref().map(single).transpose()?;
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads > 0 { threads } else { cores().min(scenario.max_threads()) };
        let threads = scheme::threads(threads, &[&scenario.to_toml()]);
        watch.started(0);
        let prepare = |setup: &mut _| {
            scenario.check(setup, &SIMULATOR)?;
            scenario.foresight(setup, &SIMULATOR).into_iter().for_each(|warning| watch.note(&warning));
            single.as_ref().map_or(Ok(()), Single::begin)
        };
        let ran = results::run(&scenario, &SIMULATOR, threads, &prepare, &mut |progress| watch.progress(0, progress));
        let ran = ran.and_then(|ran| if ran.result.interrupted { Err(RunError::Interrupted) } else { Ok(ran) });
        let ran = ran.inspect_err(|_| single.iter().for_each(Single::undo))?;
        watch.finished(0);
        if let Some(single) = &single {
            single.write(&ran)?;
        }
        Ok(ran)
    })?;
    Ok(Outcome::new(ran.map_err(error::run)?, own))
}
