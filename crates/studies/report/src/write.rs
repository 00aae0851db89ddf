//! Writing of a comparison: `comparison.csv`, `comparison.json` and the manifest over the runs of its plan.

use crate::{Comparison, style_folder};
use anabranch_results::{
    FileEntry, Manifest, OutputDir, PLAN, Plan, Provenance, ReportError, Staging, Summary, plan_entries, read_limits,
    run_name, to_json,
    write::{described, inputs},
};
use std::path::Path;

/// Writes `comparison.csv`, `comparison.json` and `manifest.json` over `runs`, the finished ones of the plan in `dir`.
///
/// Fails if there is no plan, or a file cannot be written, or exists and no manifest lists it.
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
        backend: first.map(|run| run.backend.clone()).unwrap_or_default(),
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
        manifest.keep_entries(&there.files);
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
