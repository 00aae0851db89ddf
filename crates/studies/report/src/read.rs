use crate::{error::ReportError, json::read_json, names::SUMMARY, summary::Summary};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Reads the summary of a finished run in `dir`; `None` if there is none. It is written last: all files of the run are
/// then complete.
///
/// # Errors
/// [`ReportError`] if it cannot be read.
pub fn read_summary(dir: &Path) -> Result<Option<Summary>, ReportError> {
    read_json(&dir.join(SUMMARY))
}

/// Returns the directories of the finished runs in the directory of a run, comparison or sweep, in order of their paths.
///
/// # Errors
/// [`ReportError`] if a directory cannot be read.
pub fn finished_runs(dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
    Ok(run_directories(dir)?.0)
}

pub(crate) fn read_runs(dir: &Path) -> Result<Vec<(Summary, PathBuf)>, ReportError> {
    let mut runs = vec![];
    for path in finished_runs(dir)? {
        runs.extend(read_summary(&path)?.map(|summary| (summary, path)));
    }
    Ok(runs)
}

/// Returns every directory at or below `dir` with a run's summary, sorted, and the names of those below `runs` that lack one.
pub(crate) fn run_directories(dir: &Path) -> Result<(Vec<PathBuf>, Vec<String>), ReportError> {
    if dir.join(SUMMARY).exists() {
        return Ok((vec![dir.to_path_buf()], vec![]));
    }
    let runs = dir.join("runs");
    let (mut found, mut unfinished) = (vec![], vec![]);
    let mut open = if runs.is_dir() { vec![runs] } else { vec![] };
    while let Some(path) = open.pop() {
        if path.join(SUMMARY).exists() {
            found.push(path);
            continue;
        }
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seed")) {
            unfinished.push(path.strip_prefix(dir).unwrap_or(&path).display().to_string());
            continue;
        }
        for entry in fs::read_dir(&path).map_err(|error| ReportError::file(&path, error))? {
            let entry = entry.map_err(|error| ReportError::file(&path, error))?.path();
            let hidden = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if entry.is_dir() && !hidden {
                open.push(entry);
            }
        }
    }
    found.sort();
    unfinished.sort();
    Ok((found, unfinished))
}
