//! JSON files with their errors.

use crate::ReportError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Remedy for a file that was changed after it was written.
pub const REMEDY: &str = "restore it, or move its directory away and repeat the run; nothing was written";

/// `None` if the file does not exist.
pub fn read_text(path: &Path) -> Result<Option<String>, ReportError> {
    match anabranch_input::read_text(path, anabranch_input::MAX_JSON) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(ReportError::content(path, "this is not UTF-8 text", REMEDY))
        }
        Err(error) => Err(ReportError::file(path, error)),
    }
}

/// `None` if the file does not exist.
pub fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Option<T>, ReportError> {
    read_text(path)?.map(|text| from_json(path, &text)).transpose()
}

pub(crate) fn from_json<T: for<'a> Deserialize<'a>>(path: &Path, text: &str) -> Result<T, ReportError> {
    let wrong = |error: serde_json::Error| {
        let found = match error.classify() {
            serde_json::error::Category::Eof => format!("the file ends too early: {error}"),
            serde_json::error::Category::Data => format!("another version may have written it: {error}"),
            _ => error.to_string(),
        };
        ReportError::content(path, found, "repeat the run with this version; nothing was written")
    };
    serde_json::from_str(text).map_err(wrong)
}

/// Returns the content of a JSON file, indented.
pub fn to_json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}
