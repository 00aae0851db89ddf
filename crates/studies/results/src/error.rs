//! Errors of results.

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Error of reading or writing results. Each variant names the file or directory.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A file or directory could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A file exists but its content is not as expected.
    #[error("{}: {found}; {remedy}", path.display())]
    Content {
        /// The file or directory.
        path: PathBuf,
        /// The unexpected content.
        found: String,
        remedy: String,
    },
    /// The directory contains no results.
    #[error("{} has no results: found neither `summary.json` of a run nor `runs` of a comparison; give the --out directory of run, compare or sweep", path.display())]
    NoResults { path: PathBuf },
    /// A figure or page could not be drawn (a bug in this crate).
    #[error("{what}: {message}")]
    Drawing {
        /// The figure or page.
        what: String,
        /// Message of the drawing library.
        message: String,
    },
}

impl ReportError {
    /// A file that cannot be read or written.
    pub fn file(path: &Path, source: std::io::Error) -> Self {
        ReportError::File { path: path.to_path_buf(), source }
    }
    /// A file whose content is wrong: what was found, and the remedy.
    pub fn content(path: &Path, found: impl ToString, remedy: &str) -> Self {
        ReportError::Content { path: path.to_path_buf(), found: found.to_string(), remedy: remedy.to_string() }
    }
    /// A figure or page that cannot be drawn.
    pub fn drawing(what: &str, message: impl ToString) -> Self {
        ReportError::Drawing { what: what.to_string(), message: message.to_string() }
    }
}
