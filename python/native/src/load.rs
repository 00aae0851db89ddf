//! Results that lie on disk, whoever wrote them.

use crate::{error, table::Table};
use anabranch_report::{Frame, ReportError, TABLES, read_summary};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A run's directory.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Loaded {
    directory: PathBuf,
}

#[pymethods]
impl Loaded {
    /// `summary.json`, after a look whether it is whole.
    fn summary(&self) -> PyResult<String> {
        let path = self.directory.join("summary.json");
        read_summary(&self.directory).map_err(|e| error::report(&e))?;
        std::fs::read_to_string(&path).map_err(|source| error::report(&ReportError::File { path, source }))
    }

    /// Names of the tables that are there.
    fn tables(&self) -> Vec<&'static str> {
        let there =
            |name: &&str| ["parquet", "csv"].iter().any(|kind| self.directory.join(format!("{name}.{kind}")).exists());
        TABLES.iter().map(|table| table.name).filter(there).collect()
    }

    /// A table by name; `None` where it is not there.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Option<Table>> {
        py.detach(|| {
            let Some(declared) = TABLES.iter().find(|table| table.name == name) else { return Ok(None) };
            let columns: Vec<&str> = declared.columns.iter().map(|column| column.name).collect();
            let frame = Frame::read(&self.directory, name, &columns).map_err(|e| error::report(&e))?;
            frame.map(|frame| Table::of_frame(declared, &frame)).transpose()
        })
    }
}

/// The run in a directory.
#[pyfunction]
pub(crate) fn load(directory: PathBuf) -> Loaded {
    Loaded { directory }
}
