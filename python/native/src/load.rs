//! Results on disk.

use crate::{error, table::Table};
use anabranch_results::{Finding, Frame, ReportError, TABLES, check_files, read_summary};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Directory of a run.
#[pyclass(frozen, module = "anabranch._native")]
pub(crate) struct Loaded {
    directory: PathBuf,
}

impl Loaded {
    /// Refuses a file that differs from its digest.
    fn check(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let findings =
            py.detach(|| check_files(&self.directory, |file| file == name)).map_err(|e| error::report(&e))?;
        match findings.into_iter().next() {
            Some(Finding { path, found, .. }) => {
                let remedy = "restore it, or repeat the run; `anabranch verify` lists all such files".into();
                Err(error::report(&ReportError::Content { path, found, remedy }))
            }
            None => Ok(()),
        }
    }
}

#[pymethods]
impl Loaded {
    /// Returns `summary.json` after an integrity check.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        self.check(py, "summary.json")?;
        let path = self.directory.join("summary.json");
        read_summary(&self.directory).map_err(|e| error::report(&e))?;
        std::fs::read_to_string(&path).map_err(|source| error::report(&ReportError::File { path, source }))
    }

    /// Names of the tables present.
    fn tables(&self) -> Vec<&'static str> {
        let there =
            |name: &&str| ["parquet", "csv"].iter().any(|kind| self.directory.join(format!("{name}.{kind}")).exists());
        TABLES.iter().map(|table| table.name).filter(there).collect()
    }

    /// Returns a table by name; `None` if it is not present.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Option<Table>> {
        let parquet = format!("{name}.parquet");
        let is_parquet = self.directory.join(&parquet).exists();
        let file = if is_parquet { parquet } else { format!("{name}.csv") };
        if self.directory.join(&file).exists() {
            self.check(py, &file)?;
        }
        py.detach(|| {
            let Some(declared) = TABLES.iter().find(|table| table.name == name) else { return Ok(None) };
            let columns: Vec<&str> = declared.columns.iter().map(|column| column.name).collect();
            let frame = Frame::read(&self.directory, name, &columns).map_err(|e| error::report(&e))?;
            frame.map(|frame| Table::of_frame(declared, &frame)).transpose()
        })
    }
}

/// Opens the run in a directory.
#[pyfunction]
pub(crate) fn load(directory: PathBuf) -> Loaded {
    Loaded { directory }
}
