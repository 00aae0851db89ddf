//! Comparison of the same flows on several backends: ratio per scheme with its interval, verdict, explaining quantities.

mod explain;
mod model;
mod page;

pub use explain::Explanation;
pub use model::{Agreement, AgreementRow, Side, Verdict};

use crate::metric::Metric;
use anabranch_results::{FileEntry, Inputs, Manifest, OutputDir, PAGE, PLAN, ReportError, Staging, read_json, to_json};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Writes the tables and the page of `agreement` into `directory`, above the directories of its `sides`, and returns
/// the page's path.
///
/// Fails if a file cannot be written, or exists and no manifest lists it.
pub fn write_agreement(
    directory: &Path,
    agreement: &Agreement,
    sides: &[Side],
    inputs: Inputs,
) -> Result<PathBuf, ReportError> {
    let mut staging = Staging::new(OutputDir::keeping(directory, inputs)?)?;
    let explanations = explain::to_csv(agreement);
    staging.write_all("agreement.csv", agreement.to_csv())?;
    staging.write_all("explanations.csv", explanations)?;
    staging.write_all("agreement.json", to_json(agreement))?;
    staging.write_all(PAGE, page::render(agreement)?)?;
    let mut files = vec![
        FileEntry::new("agreement.csv", "a row per scheme and backend except the first", agreement.columns()),
        FileEntry::new("explanations.csv", "counters of the runs of each backend", explain::columns(agreement)),
        FileEntry::new("agreement.json", "both tables in one", vec![]),
        FileEntry::page(),
    ];
    let there = staging.target().manifest().cloned().unwrap_or_default();
    files.extend(there.files.iter().filter(|file| file.open || file.name == PLAN).cloned());
    let mut manifest = Manifest::default();
    let mut runs = BTreeMap::new();
    for side in sides {
        let meaning = format!("the comparison on the backend `{}`, with a manifest of its own", side.backend);
        files.retain(|file| file.name != side.backend);
        files.push(FileEntry::open(&side.backend, &meaning));
        let Some(there) = Manifest::read(&directory.join(&side.backend))? else { continue };
        runs.extend(there.runs.iter().map(|(run, rows)| (format!("{}/{run}", side.backend), rows.clone())));
        if manifest.name.is_empty() {
            manifest = Manifest { backend: String::new(), files: vec![], ..there };
            (manifest.baseline, manifest.datapath) = (None, None);
            manifest.fingerprints.clear();
            manifest.statuses.clear();
        }
    }
    manifest.files = files;
    manifest.runs = runs;
    staging.publish(manifest)?;
    Ok(directory.join(PAGE))
}

/// Part of `agreement.json` that is required to compute the agreement again.
#[derive(Deserialize)]
struct Recorded {
    backends: Vec<String>,
    metric: String,
    rows: Vec<RecordedRow>,
    #[serde(default)]
    unlike: Vec<String>,
}

#[derive(Deserialize)]
struct RecordedRow {
    scheme: String,
}

/// Writes the tables and the page of the agreement in `directory` again. `None` if it contains no agreement, or the
/// runs of a backend are missing.
pub(crate) fn report_agreement(directory: &Path) -> Result<Option<PathBuf>, ReportError> {
    let Some(recorded) = read_json::<Recorded>(&directory.join("agreement.json"))? else { return Ok(None) };
    let sides: Vec<Side> =
        recorded.backends.iter().map(|backend| Side::read(backend, directory)).collect::<Result<_, _>>()?;
    let mut schemes: Vec<String> = recorded.rows.into_iter().map(|row| row.scheme).collect();
    schemes.dedup();
    if sides.is_empty() || sides.iter().any(|side| side.runs.is_empty()) {
        return Ok(None);
    }
    let agreement = Agreement::new(&sides, &schemes, Metric::read(&recorded.metric).ok().as_ref())?;
    let agreement = Agreement { unlike: recorded.unlike, ..agreement };
    write_agreement(directory, &agreement, &sides, Inputs::default()).map(Some)
}
