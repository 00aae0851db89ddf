//! What can go wrong between a result and its files.

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why results could not be written or read. Each names the file or directory.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A file or directory could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file is there but does not hold what it should.
    #[error("{}: {found}; {remedy}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What can be done.
        remedy: String,
    },
    /// The directory holds no results.
    #[error("{} holds no results: neither `summary.json` of a run nor `runs` of a comparison; give the directory that `--out` named", path.display())]
    NoResults {
        /// Which.
        path: PathBuf,
    },
    /// A figure or page could not be drawn (our mistake).
    #[error("{what}: {message}")]
    Drawing {
        /// The figure or page.
        what: String,
        /// What the library says.
        message: String,
    },
}

impl ReportError {
    pub(crate) fn file(path: &Path, source: std::io::Error) -> Self {
        ReportError::File { path: path.to_path_buf(), source }
    }
    pub(crate) fn content(path: &Path, found: impl ToString, remedy: &str) -> Self {
        ReportError::Content { path: path.to_path_buf(), found: found.to_string(), remedy: remedy.to_string() }
    }
    pub(crate) fn drawing(what: &str, message: impl ToString) -> Self {
        ReportError::Drawing { what: what.to_string(), message: message.to_string() }
    }
}
