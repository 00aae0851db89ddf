//! Sweeps: one comparison per point of a grid, told together.
//!
//! `sweep.json` says what a sweep consists of; its runs lie beside it in `runs/`, each in a directory of its own that is
//! whole from the moment it is there. [`Sweep::read`] works everything out from those, whoever ran them and when.

mod curves;
mod heat;
mod page;
mod tables;

pub(crate) use curves::places;

use crate::{
    comparison::{ALL, Comparison},
    directory::{FigureFiles, page_entry, read_summary, stage_gathered},
    disk,
    error::ReportError,
    figures::Figure,
    manifest::{FileEntry, MANIFEST, Manifest, PAGE, read_json, to_json},
    output::OutputDir,
    staging::{Staging, write},
    summary::{RunStatus, Summary},
    tables::{Kind, Label, Member},
    verify::is_intact,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

/// Name of the file that says what a sweep consists of.
pub const SWEEP: &str = "sweep.json";

/// A key that is swept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepAxis {
    /// The key of the scenario.
    pub key: String,
    /// Its values, as they stand on the command line.
    pub values: Vec<String>,
    /// The same as numbers in one unit, where they are numbers; empty where they are not.
    pub numbers: Vec<f64>,
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRun {
    /// Its point.
    pub point: usize,
    /// Its load balancer or variant, as a position in [`SweepPlan::entries`].
    pub entry: usize,
    /// Its seed.
    pub seed: u64,
    /// Its hash, the name of its directory in `runs`. Several may share one.
    pub run: String,
}

/// What a sweep consists of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SweepPlan {
    /// Name of the scenario.
    pub name: String,
    /// Version of the project.
    pub version: String,
    /// Commit of the build.
    pub commit: String,
    /// The scenario with every default filled in, as TOML, before any key is swept.
    pub scenario: String,
    /// 16 hex digits over it.
    pub scenario_hash: String,
    /// The keys that are swept.
    pub axes: Vec<SweepAxis>,
    /// Whether the values of all keys go together (`zip`), instead of every value with every other.
    pub zip: bool,
    /// The load balancers and variants.
    pub entries: Vec<String>,
    /// The one that the others are related to.
    pub baseline: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Every run: point by point, seed by seed.
    pub runs: Vec<SweepRun>,
}

impl SweepPlan {
    /// A run's point and load balancer, as one name: `load = 0.3, ecmp`.
    pub fn scheme_at(&self, run: &SweepRun) -> String {
        let (point, entry) = (self.point_name(run.point), &self.entries[run.entry]);
        if point.is_empty() { entry.clone() } else { format!("{point}, {entry}") }
    }

    /// A point by its values: `load = 0.3, radix = 8`.
    pub fn point_name(&self, point: usize) -> String {
        let keys = self.axes.iter().map(|axis| axis.key.rsplit('.').next().unwrap_or(&axis.key));
        let values = keys.zip(self.values(point)).map(|(key, value)| format!("{key} = {value}"));
        values.collect::<Vec<_>>().join(", ")
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        match self.zip {
            true => self.axes.first().map_or(1, |axis| axis.values.len()),
            false => self.axes.iter().map(|axis| axis.values.len()).product(),
        }
    }

    /// Where a point lies: a position in the values of each axis. The last axis changes fastest.
    pub fn place(&self, point: usize) -> Vec<usize> {
        if self.zip {
            return vec![point; self.axes.len()];
        }
        let mut rest = point;
        let mut places: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let place = rest % axis.values.len().max(1);
                rest /= axis.values.len().max(1);
                place
            })
            .collect();
        places.reverse();
        places
    }

    /// The values of a point, one per axis.
    pub fn values(&self, point: usize) -> Vec<&str> {
        self.place(point).into_iter().zip(&self.axes).map(|(place, axis)| axis.values[place].as_str()).collect()
    }

    /// Reads the plan of `dir`; `None` where there is none.
    ///
    /// # Errors
    /// [`ReportError`] where it cannot be read.
    pub fn read(dir: &Path) -> Result<Option<Self>, ReportError> {
        read_json(&dir.join(SWEEP)).map_err(|error| match error {
            ReportError::Content { path, found, .. } => {
                let remedy = "the sweep's command with --replace writes it anew and keeps finished runs".to_string();
                ReportError::Content { path, found, remedy }
            }
            other => other,
        })
    }

    /// Writes the plan into `dir`, and a manifest that makes the directory its own.
    ///
    /// # Errors
    /// [`ReportError`] where it cannot be written, or a file that is not ours is in the way.
    pub fn write(&self, dir: &Path) -> Result<(), ReportError> {
        let mut staging = Staging::new(store_output(dir)?)?;
        let mut manifest = Manifest { files: plan_entries(), ..described(self) };
        if let Some(there) = staging.target().manifest() {
            manifest = Manifest { files: manifest.files, ..there.clone() };
            manifest.keep_entries(there);
        }
        if manifest.file(PAGE).is_none() {
            manifest.files.push(page_entry());
        }
        staging.write_all(SWEEP, to_json(self))?;
        staging.publish(manifest)
    }
}

/// What a store has beside the tables of what is made from it.
pub const STORE_FILES: &[&str] = &["runs", "failed", "starts.log", ".writing", ".claims", "earlier-runs"];
/// What a sweep has beside tables, figures and page.
pub const SWEEP_FILES: &[&str] = &[
    SWEEP,
    "sweep.csv",
    "runs.csv",
    "runs",
    "failed",
    "starts.log",
    ".writing",
    ".claims",
    "earlier-runs",
    ".reported",
];

/// The directory of a store, as it stands. A sweep of an older version has no manifest, or one that lists less: its plan makes
/// it ours.
///
/// # Errors
/// As [`OutputDir::open`].
pub fn store_output(dir: &Path) -> Result<OutputDir, ReportError> {
    let output = OutputDir::open(dir)?;
    let planned = output.manifest().is_none_or(|manifest| !manifest.is_sealed())
        && SweepPlan::read(dir).is_ok_and(|plan| plan.is_some());
    Ok(if planned { output.with(SWEEP_FILES) } else { output })
}

/// Makes `dir` the directory of a store, by a manifest that lists what a store has and the directories `also`; one that is a
/// store already stays as it is.
///
/// # Errors
/// [`ReportError`] where it cannot be written, or something that is not ours is in the way.
pub fn begin_store(dir: &Path, version: &str, also: &[(&str, &str)]) -> Result<(), ReportError> {
    let names = || STORE_FILES.iter().copied().chain(also.iter().map(|(name, _)| *name));
    let is_begun =
        |output: &OutputDir| output.manifest().is_some_and(|there| names().all(|name| there.file(name).is_some()));
    let begin = || {
        let output = store_output(dir)?;
        if is_begun(&output) {
            return Ok(());
        }
        output.admit(names())?;
        let mut manifest = output.manifest().cloned().unwrap_or_else(|| Manifest {
            version: version.to_string(),
            name: "store of runs".into(),
            ..Manifest::default()
        });
        let also = also.iter().map(|(name, meaning)| FileEntry::open(name, meaning));
        let known: Vec<String> = manifest.files.iter().map(|file| file.name.clone()).collect();
        manifest.files.extend(store_entries().into_iter().chain(also).filter(|file| !known.contains(&file.name)));
        Staging::new(output)?.publish(manifest)
    };
    // Another process may have begun the same store meanwhile.
    begin().or_else(|error| match store_output(dir) {
        Ok(output) if is_begun(&output) => Ok(()),
        _ => Err(error),
    })
}

fn store_entries() -> Vec<FileEntry> {
    vec![
        FileEntry::open("runs", "a directory per run, named by its hash, each with a manifest of its own"),
        FileEntry::open("failed", "a file per run that failed, with its error"),
        FileEntry::open("starts.log", "a line per start of a run: hash, computer, process"),
        FileEntry::open("earlier-runs", "runs that were found damaged, or that were replaced beside files of others"),
        FileEntry::open(".writing", "runs that are being written"),
        FileEntry::open(".claims", "runs that a process is at"),
    ]
}

fn plan_entries() -> Vec<FileEntry> {
    let meaning = "keys, values, load balancers and variants, seeds, and every run with its hash";
    [FileEntry::new(SWEEP, meaning, vec![])].into_iter().chain(store_entries()).collect()
}

fn described(plan: &SweepPlan) -> Manifest {
    Manifest {
        name: plan.name.clone(),
        version: plan.version.clone(),
        commit: plan.commit.clone(),
        scenario: plan.scenario.clone(),
        scenario_hash: plan.scenario_hash.clone(),
        schemes: plan.entries.clone(),
        baseline: Some(plan.baseline.clone()),
        seeds: plan.seeds.clone(),
        ..Manifest::default()
    }
}

/// A run that failed, as `failed/HASH.json` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRun {
    /// What it was, for people.
    pub name: String,
    /// Why.
    pub error: String,
    /// How often it was begun.
    pub attempts: u64,
    /// The computer it failed on.
    pub host: String,
}

/// Where a run was done, as `attempt.json` in its directory says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The computer.
    pub host: String,
    /// How often the run was begun, this time included.
    pub attempts: u64,
    /// The other files of its directory, with their sizes in bytes, where a version before the digests wrote it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, u64>,
}

/// Name of the file that an [`Attempt`] is kept in.
pub(crate) const ATTEMPT: &str = "attempt.json";

/// Writes `attempt.json` anew into the directory of a run that nobody looks into yet, and its digest into the manifest there.
///
/// # Errors
/// [`ReportError`] where they cannot be read or written.
pub fn restate_attempt(run: &Path, attempt: &Attempt) -> Result<(), ReportError> {
    let failed = |error| ReportError::file(run, error);
    let put = |name: &str, text: String| {
        let path = run.join(name);
        disk::remove_file(&path).map_err(failed)?;
        write(&path, |file| file.write_all(text.as_bytes()), false).map_err(failed)
    };
    let content = put(ATTEMPT, to_json(attempt))?;
    if let Some(mut manifest) = Manifest::read(run)? {
        let entry =
            FileEntry::new(ATTEMPT, "where the run was done, and how often it was begun", vec![]).holding(&content);
        manifest.files.retain(|file| file.name != ATTEMPT);
        manifest.files.push(entry);
        put(MANIFEST, manifest.to_json())?;
    }
    Ok(())
}

/// Whether the run of a store in directory `run` is there with all its files, as they were written. Without digests, since an
/// older version wrote it, its files must be as long as they were; a manifest that names figures too is longer.
pub fn is_whole(run: &Path) -> bool {
    if !run.join("summary.json").exists() || !is_intact(run) {
        return false;
    }
    let is_there =
        |(name, size): (&String, &u64)| fs::metadata(run.join(name)).is_ok_and(|metadata| metadata.len() >= *size);
    // Without the file it is no run of a store, or one that was copied.
    match read_json::<Attempt>(&run.join(ATTEMPT)) {
        Ok(attempt) => attempt.is_none_or(|attempt| attempt.files.iter().all(is_there)),
        Err(_) => false,
    }
}

/// Directory of a run in the store `dir`.
pub fn store_directory(dir: &Path, run: &str) -> PathBuf {
    dir.join("runs").join(run)
}

/// File that says why a run failed.
pub fn failed_file(dir: &Path, run: &str) -> PathBuf {
    dir.join("failed").join(format!("{run}.json"))
}

/// How a run of the plan stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Standing {
    Finished { status: RunStatus, fingerprint: Option<String>, attempt: Attempt, metrics: Vec<Option<f64>> },
    Failed(FailedRun),
    Missing,
}

/// A sweep with what its runs gave.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What it consists of.
    pub plan: SweepPlan,
    /// The comparison at each point over the runs finished there; `None` where there are none.
    pub comparisons: Vec<Option<Comparison>>,
    /// How each run of the plan stands.
    standings: Vec<Standing>,
}

impl Sweep {
    /// Reads the sweep in `dir`; `None` where there is none.
    ///
    /// # Errors
    /// [`ReportError`] where something there cannot be read.
    pub fn read(dir: &Path) -> Result<Option<Self>, ReportError> {
        let Some(plan) = SweepPlan::read(dir)? else { return Ok(None) };
        let mut comparisons = vec![];
        let mut standings = vec![];
        for runs in plan.runs.chunk_by(|a, b| a.point == b.point) {
            let mut summaries: Vec<Summary> = vec![];
            for run in runs {
                let directory = store_directory(dir, &run.run);
                let summary = if is_whole(&directory) { read_summary(&directory)? } else { None };
                let Some(mut summary) = summary else {
                    let failed = read_json(&failed_file(dir, &run.run))?;
                    standings.push(failed.map_or(Standing::Missing, Standing::Failed));
                    continue;
                };
                summary.scheme.clone_from(&plan.entries[run.entry]);
                standings.push(Standing::Finished {
                    status: summary.status.unwrap_or(RunStatus::Finished),
                    fingerprint: summary.fingerprint.clone(),
                    attempt: read_json(&directory.join(ATTEMPT))?.unwrap_or_default(),
                    metrics: crate::METRICS.iter().map(|metric| metric.value(&summary, ALL)).collect(),
                });
                summaries.push(summary);
            }
            let comparison = Comparison::new(&summaries, &plan.entries, &plan.baseline);
            comparisons.push((!summaries.is_empty()).then_some(comparison));
        }
        Ok(Some(Sweep { plan, comparisons, standings }))
    }

    /// Runs of the plan that are finished, failed, and missing.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |is: fn(&Standing) -> bool| self.standings.iter().filter(|standing| is(standing)).count();
        (
            count(|standing| matches!(standing, Standing::Finished { .. })),
            count(|standing| matches!(standing, Standing::Failed(_))),
            count(|standing| matches!(standing, Standing::Missing)),
        )
    }

    /// The metric that the points are told by: that of most of their comparisons.
    pub fn main_metric(&self) -> &'static str {
        let mut votes: BTreeMap<&'static str, usize> = BTreeMap::new();
        let workloads = self.workloads();
        for comparison in self.comparisons.iter().flatten() {
            for workload in &workloads {
                *votes.entry(comparison.main_metric_of(workload)).or_default() += 1;
            }
        }
        votes.into_iter().max_by_key(|(_, votes)| *votes).map_or("slowdown_p99", |(metric, _)| metric)
    }

    /// The workloads that are told apart: those of the scenario where it has several, else all flows.
    pub fn workloads(&self) -> Vec<String> {
        let mut names: Vec<String> = vec![];
        for comparison in self.comparisons.iter().flatten() {
            for name in comparison.shown(false) {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_string());
                }
            }
        }
        names
    }

    /// What figures say of where they come from.
    fn provenance(&self) -> String {
        let plan = &self.plan;
        format!(
            "Anabranch {} commit {}; scenario {} hash {}; {} seeds; {} runs.",
            plan.version,
            plan.commit,
            plan.name,
            plan.scenario_hash,
            plan.seeds.len(),
            plan.runs.len()
        )
    }
}

/// Columns that say which run a row of the gathered tables is of.
fn labels(plan: &SweepPlan) -> Vec<Label> {
    let axis = |axis: &SweepAxis| {
        let kind = match () {
            () if axis.values.iter().all(|value| value.parse::<i64>().is_ok()) => Kind::Integer,
            () if axis.values.iter().all(|value| value.parse::<f64>().is_ok()) => Kind::Real,
            () => Kind::Text,
        };
        Label { name: axis.key.clone(), kind, meaning: "value of this key of the scenario".into() }
    };
    let text = |name: &str, meaning: &str| Label { name: name.into(), kind: Kind::Text, meaning: meaning.into() };
    let mut labels: Vec<Label> = plan.axes.iter().map(axis).collect();
    labels.push(text("entry", "load balancer or variant, as in sweep.csv"));
    labels.push(text("run", "hash of the run, the name of its directory in `runs`"));
    labels
}

/// Writes the tables, figures and page of the sweep in `dir`, over the runs that are finished; gives it and the page's
/// path. With `rows`, the rows of all runs too, as one Parquet file per table. The manifest keeps `standing`, which says what
/// they were made from.
///
/// # Errors
/// [`ReportError`] where `dir` holds no sweep or no finished run, or something cannot be read or written.
pub fn report_sweep(dir: &Path, rows: bool, standing: &str) -> Result<(Sweep, PathBuf), ReportError> {
    let none = || ReportError::NoResults { path: dir.to_path_buf() };
    let sweep = Sweep::read(dir)?.ok_or_else(none)?;
    if sweep.counts().0 == 0 {
        return Err(none());
    }
    let figures: Vec<Figure> = [curves::draw(&sweep), heat::draw(&sweep)].into_iter().flatten().collect();
    let mut staging = Staging::new(store_output(dir)?)?;
    let provenance = sweep.provenance();
    let drawn: Vec<FigureFiles> =
        figures.iter().map(|figure| FigureFiles::stage(figure, &provenance, &mut staging)).collect::<Result<_, _>>()?;
    let mut manifest = manifest(dir, &sweep, &figures, standing);
    staging.write_all(SWEEP, to_json(&sweep.plan))?;
    staging.write_all("sweep.csv", sweep.to_csv())?;
    staging.write_all("runs.csv", sweep.runs_csv())?;
    staging.write_all("report.html", page::render(&sweep, &figures, &drawn)?)?;
    if rows {
        let finished = sweep.plan.runs.iter().zip(&sweep.standings);
        let finished = finished.filter(|(_, standing)| matches!(standing, Standing::Finished { .. }));
        let member = |run: &SweepRun| {
            let values = sweep.plan.values(run.point).into_iter().map(str::to_string);
            let entry = sweep.plan.entries[run.entry].clone();
            Member {
                directory: store_directory(dir, &run.run),
                labels: values.chain([entry, run.run.clone()]).collect(),
            }
        };
        let members: Vec<Member> = finished.map(|(run, _)| member(run)).collect();
        stage_gathered(&mut staging, &mut manifest, &labels(&sweep.plan), &members)?;
    }
    staging.publish(manifest)?;
    Ok((sweep, dir.join("report.html")))
}

fn manifest(dir: &Path, sweep: &Sweep, figures: &[Figure], standing: &str) -> Manifest {
    let mut files = plan_entries();
    files.extend([
        FileEntry::new("sweep.csv", "a row per point, workload, metric and scheme", sweep.columns()),
        FileEntry::new("runs.csv", "a row per run", sweep.run_columns()),
    ]);
    for figure in figures {
        for (extension, columns) in [("svg", vec![]), ("pdf", vec![]), ("png", vec![]), ("csv", figure.columns.clone())]
        {
            files.push(FileEntry::new(format!("figures/{}.{extension}", figure.name), &figure.title, columns));
        }
    }
    files.push(FileEntry::new("report.html", "the page that shows all this; opens offline", vec![]));
    let finished = sweep.plan.runs.iter().zip(&sweep.standings);
    let finished = finished.filter(|(_, standing)| matches!(standing, Standing::Finished { .. }));
    let rows = |(run, _): (&SweepRun, &Standing)| {
        let manifest = Manifest::read(&store_directory(dir, &run.run)).ok().flatten()?;
        Some((run.run.clone(), manifest.rows_digest()?))
    };
    Manifest {
        fingerprints: fingerprints(sweep),
        runs: finished.filter_map(rows).collect(),
        standing: standing.to_string(),
        files,
        ..described(&sweep.plan)
    }
}

fn fingerprints(sweep: &Sweep) -> BTreeMap<String, String> {
    let of = |(run, standing): (&SweepRun, &Standing)| match standing {
        Standing::Finished { fingerprint, .. } => Some((run.run.clone(), fingerprint.clone()?)),
        _ => None,
    };
    sweep.plan.runs.iter().zip(&sweep.standings).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(key: &str, values: &[&str]) -> SweepAxis {
        SweepAxis { key: key.into(), values: values.iter().map(ToString::to_string).collect(), numbers: vec![] }
    }

    #[test]
    fn points_of_a_grid_and_of_a_zip() {
        let axes = vec![axis("a", &["1", "2"]), axis("b", &["x", "y", "z"])];
        let grid = SweepPlan { axes: axes.clone(), ..SweepPlan::default() };
        assert_eq!(grid.points(), 6);
        let values: Vec<Vec<&str>> = (0..6).map(|point| grid.values(point)).collect();
        assert_eq!(values[..4], [["1", "x"], ["1", "y"], ["1", "z"], ["2", "x"]]);
        let zip =
            SweepPlan { axes: vec![axes[1].clone(), axis("c", &["7", "8", "9"])], zip: true, ..SweepPlan::default() };
        assert_eq!((zip.points(), zip.values(2)), (3, vec!["z", "9"]));
    }
}
