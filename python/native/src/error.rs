//! Converts errors of the study to exceptions of the package.

use anabranch_results::ReportError;
use anabranch_scenario::ScenarioError;
use anabranch_study::error::RunError;
use pyo3::{
    exceptions::{PyKeyboardInterrupt, PyRuntimeError},
    prelude::*,
    types::PyDict,
};

/// Creates an exception with a class or function of `anabranch._errors`.
fn exception(py: Python<'_>, class: &str, message: &str, attributes: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    let class = py.import("anabranch._errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((message,), Some(attributes))?))
}

/// Returns the name in ``did you mean `x`?``.
fn named(text: &str) -> Option<&str> {
    text.split_once("did you mean `")?.1.split_once('`').map(|(name, _)| name)
}

/// Returns the message of an error with those of the errors found with it, a line each.
fn message_of(error: &ScenarioError) -> String {
    let also = error.others().iter().map(|other| {
        let line = other.line_column().map_or_else(String::new, |(line, _)| format!("line {line}: "));
        format!("\nalso {line}{other}")
    });
    std::iter::once(error.to_string()).chain(also).collect()
}

/// Invalid input: `anabranch.ScenarioError`.
pub(crate) fn scenario(error: &ScenarioError) -> PyErr {
    Python::attach(|py| {
        let make = || {
            let (message, remedy) = (message_of(error), error.remedy());
            let attributes = PyDict::new(py);
            attributes.set_item("source", error.source_name())?;
            attributes.set_item("line", error.line_column().map(|(line, _)| line))?;
            attributes.set_item("column", error.line_column().map(|(_, column)| column))?;
            attributes.set_item("text", error.source_line())?;
            attributes.set_item("remedy", remedy)?;
            attributes.set_item("nearest", remedy.and_then(named).or_else(|| named(&message)))?;
            exception(py, "of_command", &message, &attributes)
        };
        make().unwrap_or_else(|error: PyErr| error)
    })
}

/// A failed invariant: `anabranch.BrokenError`.
pub(crate) fn broken(message: &str) -> PyErr {
    Python::attach(|py| exception(py, "BrokenError", message, &PyDict::new(py)).unwrap_or_else(|error| error))
}

/// Results cannot be read or written.
pub(crate) fn report(error: &ReportError) -> PyErr {
    let (path, message, remedy) = match error {
        ReportError::Drawing { .. } => return broken(&error.to_string()),
        ReportError::File { path, source } => (path, source.to_string(), None),
        ReportError::Content { path, found, remedy } => (path, found.clone(), Some(remedy)),
        ReportError::NoResults { path } => (path, error.to_string(), None),
    };
    Python::attach(|py| {
        let make = || {
            let attributes = PyDict::new(py);
            attributes.set_item("place", path.display().to_string())?;
            attributes.set_item("remedy", remedy)?;
            exception(py, "of_command", &message, &attributes)
        };
        make().unwrap_or_else(|error: PyErr| error)
    })
}

/// A run failed.
pub(crate) fn run(error: RunError) -> PyErr {
    match error {
        RunError::Scenario(error) => scenario(&error),
        RunError::Broken(message) => broken(&message),
        RunError::Report(error) => report(&error),
        RunError::Interrupted => PyKeyboardInterrupt::new_err(()),
    }
}

/// Invalid call of the native module.
pub(crate) fn unexpected(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
