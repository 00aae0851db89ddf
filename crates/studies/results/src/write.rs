//! Writing of runs: tables, `summary.json` and `manifest.json` in the directory of each.

use crate::{
    ATTEMPT, Attempt, Context, FileEntry, Inputs, Label, Manifest, Member, OutputDir, PLAN, Provenance, ReportError,
    RunMeta, SUMMARY, Staging, Summary, TABLES, stage_gathered,
    tables::{csv_bytes, write_csv, write_parquet},
    to_json,
};
use anabranch_outcome::RunResult;
use anabranch_units::Time;
use std::path::{Path, PathBuf};

/// Formats in which tables are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    /// Write `flows.csv` and so on.
    pub csv: bool,
    /// Write `flows.parquet` and so on.
    pub parquet: bool,
    /// Maximum size of a CSV file in bytes where the table is written as Parquet too; a larger one is Parquet alone.
    pub max_csv: u64,
}

/// [`Formats::max_csv`] of results.
const MAX_CSV: u64 = 100_000_000;

impl Formats {
    /// Both formats, for a single run.
    pub const BOTH: Formats = Formats { csv: true, parquet: true, max_csv: MAX_CSV };
    /// Parquet alone, a fraction of the size, for the runs of a comparison.
    pub const PARQUET: Formats = Formats { csv: false, ..Formats::BOTH };
}

/// Writes a run's tables, `manifest.json` and `summary.json` into `dir`; the manifest lists the page as not yet drawn.
///
/// The files appear when all are complete, the summary last. Files of an earlier run in the existing manifest that this
/// run does not write are removed, and no others.
/// Fails if a file cannot be written, or exists and no manifest lists it.
pub fn write_run(
    dir: &Path,
    result: &RunResult,
    meta: &RunMeta,
    provenance: &Provenance,
    formats: Formats,
) -> Result<Summary, ReportError> {
    let staging = Staging::new(OutputDir::keeping(dir, inputs(provenance))?)?;
    stage_run(staging, result, meta, provenance, formats, FileEntry::page())
}

/// Writes a run with `attempt.json` into `dir`, which it creates. The caller makes the files durable before it renames
/// the directory.
pub fn write_fresh_run(
    dir: &Path,
    result: &RunResult,
    meta: &RunMeta,
    provenance: &Provenance,
    formats: Formats,
    attempt: &Attempt,
) -> Result<Summary, ReportError> {
    let mut staging = Staging::fresh(dir)?;
    staging.write_all(ATTEMPT, to_json(attempt))?;
    stage_run(staging, result, meta, provenance, formats, Attempt::entry())
}

/// Returns the bytes of a run's tables as Parquet, without writing them: what a run of a store takes on disk.
pub fn parquet_bytes(result: &RunResult, meta: &RunMeta) -> Result<u64, ReportError> {
    let context = Context::new(result, meta);
    let mut bytes = 0;
    for table in TABLES.iter() {
        let rows = (table.rows)(table, result);
        if rows.is_empty() && !table.always {
            continue;
        }
        let mut file = Vec::new();
        write_parquet(table, &context, &rows, &[], &mut file)
            .map_err(|error| ReportError::drawing(table.name, error))?;
        bytes += file.len() as u64;
    }
    Ok(bytes)
}

/// Returns the files that were read.
pub fn inputs(provenance: &Provenance) -> Inputs {
    Inputs::of(provenance.inputs.iter().map(|input| PathBuf::from(&input.path)))
}

fn stage_run(
    mut staging: Staging,
    result: &RunResult,
    meta: &RunMeta,
    provenance: &Provenance,
    formats: Formats,
    also: FileEntry,
) -> Result<Summary, ReportError> {
    let summary = Summary::new(result, meta);
    let context = Context::new(result, meta);
    let keys = key_values(&summary, provenance);
    let mut files = vec![];
    for table in TABLES.iter() {
        let rows = (table.rows)(table, result);
        if rows.is_empty() && !table.always {
            continue;
        }
        let is_limited = formats.csv && formats.parquet;
        let omitted = is_limited
            .then(|| csv_bytes(table, &context, &rows))
            .filter(|bytes| *bytes > formats.max_csv)
            .map(|bytes| {
                format!("; {}.csv is omitted: about {bytes} B, at most {} B are written", table.name, formats.max_csv)
            });
        for (extension, wanted) in [("csv", formats.csv && omitted.is_none()), ("parquet", formats.parquet)] {
            let mut entry = FileEntry::of_table(table, extension);
            entry.meaning.extend(omitted.as_deref());
            if !wanted {
                continue;
            }
            match extension {
                "csv" => staging.write(&entry.name, |file| write_csv(table, &context, &rows, file))?,
                _ => staging.write(&entry.name, |file| write_parquet(table, &context, &rows, &keys, file))?,
            }
            files.push(entry);
        }
    }
    files.push(FileEntry::new(SUMMARY, "the run in a page of numbers", Summary::keys()));
    files.push(also);
    let run = format!("{}/seed{}", meta.scheme, meta.seed);
    let wire = result.on_wire.as_ref();
    let mut manifest = Manifest {
        name: meta.scenario.clone(),
        version: meta.version.clone(),
        commit: meta.commit.clone(),
        schemes: vec![meta.scheme.clone()],
        seeds: vec![meta.seed],
        threads: meta.threads,
        backend: meta.backend.clone(),
        datapath: wire.map(|wire| wire.datapath.clone()),
        longest_pause_s: wire.and_then(|wire| wire.longest_pause).map(Time::as_seconds),
        machine_bound: summary.is_machine_bound().then(|| run.clone()).into_iter().collect(),
        missing: wire.map(|wire| wire.missing.clone()).unwrap_or_default(),
        faults: summary.faults.clone(),
        fingerprints: summary.fingerprint.iter().map(|fingerprint| (run.clone(), fingerprint.clone())).collect(),
        statuses: summary.status.map(|status| (run.clone(), status)).into_iter().collect(),
        deadlocks: [(run, summary.deadlock.clone())].into_iter().filter(|(_, links)| !links.is_empty()).collect(),
        files,
        ..described(provenance)
    };
    // Plan and store of an interrupted run stay.
    let there = staging.target().manifest().into_iter().flat_map(|there| &there.files);
    manifest.keep_entries(there.filter(|file| file.open || file.name == PLAN));
    staging.write_all(SUMMARY, to_json(&summary))?;
    staging.publish(manifest)?;
    Ok(summary)
}

/// Returns a manifest of what was run, without files.
pub fn described(provenance: &Provenance) -> Manifest {
    Manifest {
        scenario: provenance.scenario_toml.clone(),
        scenario_hash: hash(provenance),
        machine: provenance.machine.clone(),
        wall_s: provenance.wall_seconds,
        command: provenance.command.clone(),
        inputs: provenance.inputs.clone(),
        readings: provenance.readings.clone(),
        ..Manifest::default()
    }
}

fn hash(provenance: &Provenance) -> String {
    format!("{:016x}", provenance.scenario_hash)
}

/// Returns no metadata that differs between repetitions of a run.
fn key_values(summary: &Summary, provenance: &Provenance) -> Vec<(String, String)> {
    let pairs = [
        ("scenario", summary.scenario.clone()),
        ("scenario_hash", hash(provenance)),
        ("scheme", summary.scheme.clone()),
        ("seed", summary.seed.to_string()),
        ("version", summary.version.clone()),
        ("commit", summary.commit.clone()),
        ("fct_kind", if summary.all.fct_kind == crate::meta::FctKind::Rx { "rx" } else { "ack" }.to_string()),
    ];
    let fingerprint = summary.fingerprint.iter().map(|fingerprint| ("fingerprint", fingerprint.clone()));
    pairs.into_iter().chain(fingerprint).map(|(key, value)| (format!("anabranch.{key}"), value)).collect()
}

/// Gathers the rows of `members` in one Parquet file per table in `dir`, and lists those files in its manifest.
pub fn gather_runs(dir: &Path, labels: &[Label], members: &[Member]) -> Result<(), ReportError> {
    let mut staging = Staging::new(OutputDir::open(dir)?)?;
    let mut manifest = staging.target().manifest().cloned().unwrap_or_default();
    stage_gathered(&mut staging, &mut manifest, labels, members)?;
    staging.publish(manifest)
}
