//! Writing of runs and comparisons. A run's directory contains its tables, `summary.json` and `manifest.json`; a
//! comparison's is a store of runs with `plan.json`, `comparison.csv` and `manifest.json`.

use crate::{
    comparison::Comparison,
    error::ReportError,
    figures::style_folder,
    json::to_json,
    limit_files::read_limits,
    manifest::{FileEntry, Manifest, Provenance},
    meta::RunMeta,
    names::{ATTEMPT, PLAN, SUMMARY, run_name},
    output::{Inputs, OutputDir},
    staging::Staging,
    store::{Attempt, plan_entries},
    summary::Summary,
    sweep::Plan,
    tables::{Context, Label, Member, TABLES, csv_bytes, stage_gathered, write_csv, write_parquet},
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
    /// Maximum size of `links.csv` in bytes where `links.parquet` is written; a larger table is written as Parquet alone.
    pub max_links_csv: u64,
}

/// [`Formats::max_links_csv`] of results.
const MAX_LINKS_CSV: u64 = 1_000_000_000;

impl Formats {
    /// Both formats, for a single run.
    pub const BOTH: Formats = Formats { csv: true, parquet: true, max_links_csv: MAX_LINKS_CSV };
    /// Parquet alone, a fraction of the size, for the runs of a comparison.
    pub const PARQUET: Formats = Formats { csv: false, ..Formats::BOTH };
    /// CSV alone.
    pub const CSV: Formats = Formats { parquet: false, ..Formats::BOTH };
}

/// Writes a run's tables, `manifest.json` and `summary.json` into `dir`.
///
/// The files appear when all are complete, the summary last. Files of an earlier run in the existing manifest that this
/// run does not write are removed, and no others.
///
/// # Errors
/// [`ReportError`] if a file cannot be written, or exists and no manifest lists it.
pub fn write_run(
    dir: &Path,
    result: &RunResult,
    meta: &RunMeta,
    provenance: &Provenance,
    formats: Formats,
) -> Result<Summary, ReportError> {
    let staging = Staging::new(OutputDir::keeping(dir, inputs(provenance))?)?;
    stage_run(staging, result, meta, provenance, formats, vec![])
}

/// Writes a run as [`write_run`], with figures and page to follow ([`report`](crate::report)): the manifest lists the
/// page as not yet drawn.
pub fn write_run_to_draw(
    dir: &Path,
    result: &RunResult,
    meta: &RunMeta,
    provenance: &Provenance,
    formats: Formats,
) -> Result<Summary, ReportError> {
    let staging = Staging::new(OutputDir::keeping(dir, inputs(provenance))?)?;
    stage_run(staging, result, meta, provenance, formats, vec![FileEntry::page()])
}

/// Writes a run with `attempt.json` into `dir`, which it creates. The caller makes the files durable before it renames
/// the directory.
///
/// # Errors
/// [`ReportError`] if a file cannot be written.
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
    stage_run(staging, result, meta, provenance, formats, vec![Attempt::entry()])
}

fn inputs(provenance: &Provenance) -> Inputs {
    Inputs::of(provenance.inputs.iter().map(|input| PathBuf::from(&input.path)))
}

fn stage_run(
    mut staging: Staging,
    result: &RunResult,
    meta: &RunMeta,
    provenance: &Provenance,
    formats: Formats,
    also: Vec<FileEntry>,
) -> Result<Summary, ReportError> {
    let summary = Summary::new(result, meta);
    let context = Context::new(result, meta);
    let keys = key_values(&summary, provenance);
    let mut files = vec![];
    for table in TABLES {
        let rows = (table.rows)(result);
        if rows.is_empty() && !table.always {
            continue;
        }
        let is_limited = table.name == "links" && formats.csv && formats.parquet;
        let omitted = is_limited
            .then(|| csv_bytes(table, &context, &rows))
            .filter(|bytes| *bytes > formats.max_links_csv)
            .map(|bytes| {
                format!("; links.csv is omitted: about {bytes} B, at most {} B are written", formats.max_links_csv)
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
    files.extend(also);
    let run = format!("{}/seed{}", meta.scheme, meta.seed);
    let wire = result.on_wire.as_ref();
    let mut manifest = Manifest {
        name: meta.scenario.clone(),
        version: meta.version.clone(),
        commit: meta.commit.clone(),
        schemes: vec![meta.scheme.clone()],
        seeds: vec![meta.seed],
        threads: meta.threads,
        recorded_backend: meta.backend.clone(),
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
    let kept = staging.target().manifest().map(|there| there.files.clone()).unwrap_or_default();
    let kept = kept.into_iter().filter(|file| file.open || file.name == PLAN).collect();
    manifest.keep_entries(&Manifest { files: kept, ..Manifest::default() });
    staging.write_all(SUMMARY, to_json(&summary))?;
    staging.publish(manifest)?;
    Ok(summary)
}

fn described(provenance: &Provenance) -> Manifest {
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
        ("fct_kind", if summary.all.fct_kind == crate::FctKind::Rx { "rx" } else { "ack" }.to_string()),
    ];
    let fingerprint = summary.fingerprint.iter().map(|fingerprint| ("fingerprint", fingerprint.clone()));
    pairs.into_iter().chain(fingerprint).map(|(key, value)| (format!("anabranch.{key}"), value)).collect()
}

/// Writes `comparison.csv`, `comparison.json` and `manifest.json` over `runs`, the finished ones of the plan in `dir`.
///
/// # Errors
/// [`ReportError`] if there is no plan, or a file cannot be written, or exists and no manifest lists it.
pub fn write_comparison(
    dir: &Path,
    runs: &[Summary],
    threads: usize,
    provenance: &Provenance,
) -> Result<Comparison, ReportError> {
    let plan = Plan::read(dir)?.ok_or_else(|| ReportError::NoResults { path: dir.to_path_buf() })?;
    let comparison = Comparison::planned(runs, &plan.entries, &plan.baseline, plan.until_decided.as_ref())
        .with_limits(read_limits(dir)?.as_ref());
    let first = runs.first();
    let name = |run: &Summary| run_name(&run.scheme, run.seed);
    let rows = |run: &Summary| {
        let place = plan.directory(dir, &run.scheme, run.seed)?;
        let digest = Manifest::read(&place).ok().flatten()?.rows_digest()?;
        Some((place.file_name()?.to_string_lossy().into_owned(), digest))
    };
    let mut files = plan_entries();
    files.extend([
        FileEntry::new("comparison.csv", "a row per workload, metric and scheme", Comparison::columns()),
        FileEntry::new("comparison.json", "the same rows under `rows`, with schemes, seeds and baseline", vec![]),
    ]);
    let mut staging = Staging::new(OutputDir::keeping(dir, inputs(provenance))?)?;
    staging.write_all(PLAN, to_json(&plan))?;
    staging.write_all("comparison.csv", comparison.to_csv())?;
    staging.write_all("comparison.json", to_json(&comparison))?;
    let mut manifest = Manifest {
        name: comparison.scenario.clone(),
        version: first.map(|run| run.version.clone()).unwrap_or_default(),
        commit: first.map(|run| run.commit.clone()).unwrap_or_default(),
        schemes: plan.entries.clone(),
        baseline: Some(plan.baseline.clone()),
        seeds: comparison.seeds.clone(),
        until_decided: plan.until_decided.clone(),
        threads,
        recorded_backend: first.map(|run| run.backend().to_string()).unwrap_or_default(),
        datapath: first.and_then(|run| run.datapath.clone()),
        longest_pause_s: runs.iter().filter_map(|run| run.longest_pause_s).max_by(f64::total_cmp),
        machine_bound: runs.iter().filter(|run| run.is_machine_bound()).map(name).collect(),
        fingerprints: runs.iter().filter_map(|run| Some((name(run), run.fingerprint.clone()?))).collect(),
        statuses: runs.iter().filter_map(|run| Some((name(run), run.status?))).collect(),
        deadlocks: runs.iter().filter(|r| !r.deadlock.is_empty()).map(|r| (name(r), r.deadlock.clone())).collect(),
        runs: runs.iter().filter_map(rows).collect(),
        files,
        ..described(provenance)
    };
    // Figures, page and gathered rows are kept until they are written again.
    if let Some(there) = staging.target().manifest() {
        manifest.keep_entries(there);
        // Figures of a style are drawn on request alone: no command would replace those of other results.
        let same = there.runs == manifest.runs
            && there.schemes == manifest.schemes
            && there.baseline == manifest.baseline
            && there.until_decided == manifest.until_decided;
        manifest.files.retain(|file| same || style_folder(&file.name).is_none());
    }
    staging.publish(manifest)?;
    Ok(comparison)
}

/// Gathers the rows of `members` in one Parquet file per table in `dir`, and lists those files in its manifest.
///
/// # Errors
/// [`ReportError`] if rows cannot be read or a file cannot be written.
pub fn gather_runs(dir: &Path, labels: &[Label], members: &[Member]) -> Result<(), ReportError> {
    let mut staging = Staging::new(OutputDir::open(dir)?)?;
    let mut manifest = staging.target().manifest().cloned().unwrap_or_default();
    stage_gathered(&mut staging, &mut manifest, labels, members)?;
    staging.publish(manifest)
}
