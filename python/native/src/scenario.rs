//! Scenarios.

use crate::error;
use anabranch_scenario::{backend::SIMULATOR, library, scenario::Scenario as Checked, tree::Tree};
use anabranch_study::run_key;
use pyo3::prelude::*;
use std::{path::PathBuf, sync::Arc};

/// Checked scenario.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Scenario {
    pub(crate) checked: Arc<Checked>,
}

impl From<Checked> for Scenario {
    fn from(checked: Checked) -> Self {
        Scenario { checked: Arc::new(checked) }
    }
}

#[pymethods]
impl Scenario {
    /// Loads a file or a ready-made scenario, with changes `KEY=VALUE`.
    #[staticmethod]
    fn load(py: Python<'_>, name: &str, changes: Vec<String>, seed: Option<u64>) -> PyResult<Self> {
        py.detach(|| library::load(name, &changes, seed)).map(Into::into).map_err(|e| error::scenario(&e))
    }

    /// Parses TOML; relative paths are relative to `folder`.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str, name: &str, stem: &str, folder: PathBuf) -> PyResult<Self> {
        py.detach(|| Tree::parse(name, text).and_then(|tree| Checked::read(tree, stem, &folder)))
            .map(Into::into)
            .map_err(|e| error::scenario(&e))
    }

    /// Returns the scenario with changes `KEY=VALUE`.
    fn changed(&self, py: Python<'_>, flag: &str, changes: Vec<String>) -> PyResult<Self> {
        py.detach(|| self.checked.changed(flag, &changes)).map(Into::into).map_err(|e| error::scenario(&e))
    }

    /// Returns the scenario with another load balancer.
    fn with_scheme(&self, scheme: &str) -> PyResult<Self> {
        self.checked.with_scheme(scheme).map(Into::into).map_err(|e| error::scenario(&e))
    }

    /// Returns the scenario with every default.
    fn to_toml(&self) -> String {
        self.checked.to_toml()
    }

    /// Refuses what a run would refuse. Returns the warnings.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let scenario = self.checked.clone();
        crate::wait::attend(py, 1, None, move |_| {
            let setup = scenario.setup(scenario.seed)?;
            scenario.check(&setup, &SIMULATOR)?;
            Ok(scenario.warnings().into_iter().chain(scenario.foresight(&setup, &SIMULATOR)).collect())
        })?
        .map_err(|e: anabranch_scenario::ScenarioError| error::scenario(&e))
    }

    fn warnings(&self) -> Vec<String> {
        self.checked.warnings()
    }

    #[getter]
    fn name(&self) -> String {
        self.checked.name.clone()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.checked.seed
    }

    #[getter]
    fn scheme(&self) -> String {
        self.checked.scheme().to_string()
    }

    /// 16 hexadecimal digits over all that a run depends on, except the commit of the build.
    #[getter]
    fn hash(&self, py: Python<'_>) -> String {
        py.detach(|| format!("{:016x}", self.checked.hash()))
    }

    /// The same with the commit: the name of a run in a store.
    #[getter]
    fn run_key(&self, py: Python<'_>) -> String {
        py.detach(|| run_key(&self.checked, &SIMULATOR))
    }
}
