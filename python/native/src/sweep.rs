//! Sweeps, and stores of runs.

use crate::{compare::request, error, scenario::Scenario, scheme, table::Table, wait};
use anabranch_report::Sweep as Report;
use anabranch_results::store_directory;
use anabranch_scenario::{ScenarioError, library};
use anabranch_study::{
    place::Place,
    runs::{self, RunState, Task},
    sweep::{Again, Options, Sweep, SweepFile, over},
};
use pyo3::prelude::*;
use std::{path::PathBuf, sync::Arc};

/// Values of a key: a list of texts, or a range such as `0.3..0.9:0.1`.
#[derive(FromPyObject)]
pub(crate) enum Values {
    /// Text as on the command line.
    Text(String),
    /// List of values.
    List(Vec<String>),
}

fn again(word: &str) -> PyResult<Again> {
    match word {
        "" => Ok(Again::No),
        "failed" => Ok(Again::Failed),
        "all" => Ok(Again::All),
        _ => Err(error::scenario(&ScenarioError::new(format!(
            "again: found {word:?}, expected False, True or \"failed\""
        )))),
    }
}

/// Planned sweep with checked points.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Plan {
    sweep: Arc<Sweep>,
    /// Prefix of its directory's name.
    #[pyo3(get)]
    stem: String,
}

/// Run: number, hash, values of the keys, load balancer, seed, printed name.
type Run = (usize, String, Vec<String>, String, u64, String);

#[pymethods]
impl Plan {
    /// Plans a scenario over values of its keys.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)]
    fn over(
        py: Python<'_>,
        scenario: &Scenario,
        axes: Vec<(String, Values)>,
        zip: bool,
        schemes: Vec<String>,
        variants: Vec<String>,
        seeds: Option<u64>,
        baseline: Option<String>,
    ) -> PyResult<Self> {
        let request = request(schemes, variants, seeds, baseline);
        let base = scenario.checked.clone();
        let stem = base.stem.clone();
        let plan = move || {
            let axis = |(key, values): &(String, Values)| match values {
                Values::Text(text) => over::axis_of(key, text),
                Values::List(values) => over::axis_from(key, values.clone()),
            };
            let axes = axes.iter().map(axis).collect::<Result<Vec<_>, _>>()?;
            Sweep::new((*base).clone(), axes, zip, &request)
        };
        Plan::planned(py, stem, plan)
    }

    /// Plans a list of scenarios.
    #[staticmethod]
    fn scenarios(
        py: Python<'_>,
        scenarios: Vec<(String, PyRef<'_, Scenario>)>,
        schemes: Vec<String>,
        variants: Vec<String>,
        seeds: Option<u64>,
        baseline: Option<String>,
    ) -> PyResult<Self> {
        let request = request(schemes, variants, seeds, baseline);
        let list: Vec<_> = scenarios.into_iter().map(|(name, scenario)| (name, (*scenario.checked).clone())).collect();
        Plan::planned(py, "scenarios".into(), move || Sweep::of_scenarios(list, &request))
    }

    /// Reads a sweep file; `None` for another file.
    #[staticmethod]
    fn file(py: Python<'_>, path: PathBuf, changes: Vec<String>, seed: Option<u64>) -> PyResult<Option<Self>> {
        let Some(file) = SweepFile::read(&path).map_err(|e| error::scenario(&e))? else { return Ok(None) };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let plan = move || {
            let base = library::load(&file.scenario, &changes, seed)?;
            Sweep::new(base, file.axes, file.zip, &file.request)
        };
        Plan::planned(py, stem, plan).map(Some)
    }

    /// Names of the keys.
    fn keys(&self) -> Vec<String> {
        self.sweep.plan.axes.iter().map(|axis| axis.key.clone()).collect()
    }

    /// Runs in their order, each hash once.
    fn runs(&self) -> Vec<Run> {
        let plan = &self.sweep.plan;
        let of = |number: &usize| {
            let run = &plan.runs[*number];
            let values = plan.values(run.point).into_iter().map(str::to_string).collect();
            let name = self.sweep.name(*number);
            (*number, run.run.clone(), values, plan.entries[run.entry].clone(), run.seed, name)
        };
        self.sweep.order().iter().map(of).collect()
    }

    /// Warnings of the plan.
    fn warnings(&self) -> Vec<String> {
        self.sweep.warnings()
    }

    /// 16 hexadecimal digits over scenario and keys.
    fn identity(&self) -> String {
        format!("{:016x}", self.sweep.identity())
    }

    /// Returns the scenario of a run by its number.
    fn scenario(&self, py: Python<'_>, number: usize) -> PyResult<Scenario> {
        py.detach(|| self.sweep.scenario(number)).map(Into::into).map_err(|e| error::scenario(&e))
    }

    /// Returns the numbers of the runs to execute, given the contents of the directory.
    #[pyo3(signature = (directory, again_, task=None))]
    fn due(&self, directory: PathBuf, again_: &str, task: Option<(usize, usize)>) -> PyResult<Vec<usize>> {
        Ok(self.sweep.due(&directory, &Options { threads: 1, again: again(again_)?, replace: false, task }))
    }

    /// Prepares the store for other workers; errors of any point are raised here.
    fn prepare(&self, py: Python<'_>, directory: PathBuf, again_: &str, replace: bool) -> PyResult<()> {
        let options = Options { threads: 1, again: again(again_)?, replace, task: None };
        let sweep = self.sweep.clone();
        wait::attend(py, 1, None, move |watch| sweep.prepare(&directory, &options, watch))?.map_err(error::run)
    }

    /// Executes the missing runs of the store. Returns `true` if all runs are finished or failed.
    #[pyo3(signature = (directory, threads, again_, replace, task=None, callback=None))]
    #[allow(clippy::too_many_arguments)]
    fn execute(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        threads: usize,
        again_: &str,
        replace: bool,
        task: Option<(usize, usize)>,
        callback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let plan = &self.sweep.plan;
        let values = plan.axes.iter().flat_map(|axis| &axis.values).cloned();
        let base = self.sweep.order().first().and_then(|first| self.sweep.scenario(*first).ok());
        let texts: Vec<String> =
            values.chain(plan.entries.iter().cloned()).chain(base.map(|of| of.to_toml())).collect();
        let threads = scheme::threads(threads, &texts.iter().map(String::as_str).collect::<Vec<_>>());
        let options = Options { threads, again: again(again_)?, replace, task };
        let due = self.sweep.due(&directory, &options).len();
        let sweep = self.sweep.clone();
        let swept =
            wait::attend(py, due, callback, move |watch| sweep.execute(&Place::one(&directory), options, watch))?;
        swept.map(|swept| swept.missing == 0).map_err(error::run)
    }

    fn __len__(&self) -> usize {
        self.sweep.order().len()
    }
}

impl Plan {
    fn planned(
        py: Python<'_>,
        stem: String,
        plan: impl FnOnce() -> Result<Sweep, ScenarioError> + Send + 'static,
    ) -> PyResult<Self> {
        let sweep = wait::attend(py, 1, None, move |_| plan())?.map_err(|e| error::scenario(&e))?;
        Ok(Plan { sweep: Arc::new(sweep), stem })
    }
}

/// Directory of runs, each under the hash of its inputs.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Store {
    directory: PathBuf,
}

#[pymethods]
impl Store {
    #[new]
    fn new(directory: PathBuf) -> Self {
        Store { directory }
    }

    /// Executes the missing runs of `scenarios` (printed name, scenario). Returns the status of each: `finished`, `missing`,
    /// or `failed: ` and the reason.
    #[pyo3(signature = (scenarios, threads, again_, callback=None))]
    fn run(
        &self,
        py: Python<'_>,
        scenarios: Vec<(String, PyRef<'_, Scenario>)>,
        threads: usize,
        again_: &str,
        callback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let texts: Vec<String> = scenarios.iter().map(|(_, scenario)| scenario.checked.to_toml()).collect();
        let threads = scheme::threads(threads, &texts.iter().map(String::as_str).collect::<Vec<_>>());
        let tasks: Vec<Task> =
            scenarios.into_iter().map(|(name, scenario)| Task::new(name, (*scenario.checked).clone())).collect();
        let (directory, again, runs) = (self.directory.clone(), again(again_)?, tasks.len());
        let done =
            wait::attend(py, runs, callback, move |watch| runs::do_runs(&directory, &tasks, threads, again, watch))?;
        Ok(done.map_err(error::run)?.into_iter().map(word).collect())
    }

    /// Stores a run of another store, given its `files` (path, contents).
    fn adopt(
        &self,
        py: Python<'_>,
        run: &str,
        files: Vec<(String, Vec<u8>)>,
        attempts: u64,
        replace: bool,
    ) -> PyResult<()> {
        py.detach(|| runs::adopt(&self.directory, run, &files, attempts, replace)).map_err(error::run)
    }

    /// Records that a run failed on another machine.
    fn mark_failed(&self, run: &str, name: &str, reason: &str, attempts: u64) -> PyResult<()> {
        runs::give_up(&self.directory, run, name, reason, attempts).map_err(error::run)
    }

    /// Adds a start on another machine to the log.
    fn log_start(&self, line: &str) -> PyResult<()> {
        runs::log_start(&self.directory, line).map_err(error::run)
    }

    /// Returns the status of a run.
    fn state(&self, run: &str) -> String {
        word(runs::run_state(&self.directory, run))
    }

    /// Returns the directory of a run.
    fn place(&self, run: &str) -> PathBuf {
        store_directory(&self.directory, run)
    }

    /// Rows of `runs.csv`; `None` if there is no sweep.
    fn runs(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        py.detach(|| {
            let sweep = Report::read(&self.directory).map_err(|e| error::report(&e))?;
            sweep.map(|sweep| Table::of_csv(&sweep.runs_csv(), &sweep.run_columns())).transpose()
        })
    }

    /// The same as CSV.
    fn runs_csv(&self, py: Python<'_>) -> PyResult<Option<String>> {
        py.detach(|| Report::read(&self.directory).map(|sweep| sweep.map(|sweep| sweep.runs_csv())))
            .map_err(|e| error::report(&e))
    }

    /// Rows of `sweep.csv`; `None` if there is no sweep.
    fn comparison(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        py.detach(|| {
            let sweep = Report::read(&self.directory).map_err(|e| error::report(&e))?;
            sweep.map(|sweep| Table::of_csv(&sweep.to_csv(), &sweep.columns())).transpose()
        })
    }
}

fn word(state: RunState) -> String {
    match state {
        RunState::Finished => "finished".into(),
        RunState::Missing => "missing".into(),
        RunState::Failed(error) => format!("failed: {error}"),
    }
}
