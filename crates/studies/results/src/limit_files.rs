//! Reads and writes `limits.json` of a comparison, and the limits of a store.

use crate::{FileEntry, LIMITS, Limits, OutputDir, ReportError, Staging, disk, read_json, to_json};
use std::path::Path;

/// Reads the limits in `dir`; `None` if there are none.
pub fn read_limits(dir: &Path) -> Result<Option<Limits>, ReportError> {
    read_json(&dir.join(LIMITS))
}

/// Writes them into `dir`, and lists the file in its manifest.
/// Fails if it cannot be written, or exists and no manifest lists it.
pub fn write_limits(limits: &Limits, dir: &Path) -> Result<(), ReportError> {
    let mut staging = Staging::new(OutputDir::open(dir)?)?;
    let mut manifest = staging.target().manifest().cloned().unwrap_or_default();
    staging.write_all(LIMITS, to_json(limits))?;
    manifest.files.retain(|file| file.name != LIMITS);
    manifest.files.push(FileEntry::new(
        LIMITS,
        "bounds and reference of the flows, per seed, workload and metric",
        vec![],
    ));
    staging.publish(manifest)
}

/// Reads the limits in a file of a store; `None` if it does not exist.
pub fn read_limits_file(path: &Path) -> Result<Option<Limits>, ReportError> {
    read_json(path)
}

/// Writes them to a file of a store, whole or not at all.
pub fn write_limits_file(limits: &Limits, path: &Path) -> Result<(), ReportError> {
    let failed = |error| ReportError::file(path, error);
    disk::make_directories(path.parent().unwrap_or(Path::new(""))).map_err(failed)?;
    // A name of its own: another process may write the same limits.
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&draft, to_json(limits)).map_err(failed)?;
    disk::rename(&draft, path).map_err(failed)
}
