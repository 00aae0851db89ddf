//! Repeats recorded runs from their manifests and compares every table row by row.

use crate::{Observer, Ran, RunError, Step, Work, input_error, results::run, work_off};
use anabranch_backend::Progress;
use anabranch_results::{
    Context, Manifest, RunMeta, Summary, check_files, differing_rows, differing_summary, finished_runs, is_data,
    read_summary,
};
use anabranch_scenario::{COMMIT, SIMULATOR, Scenario, ScenarioError, Tree, VERSION};
use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its path in the directory: `scheme/seedN` in a comparison, the hash in a sweep.
    pub name: String,
    pub scenario: Scenario,
    pub directory: PathBuf,
    summary: Summary,
    /// Files that differ from what was written: name and difference.
    pub damaged: Vec<String>,
    /// Build that did the run, where it is not this one.
    pub other_build: Option<String>,
}

/// Reads the finished runs in `directory`.
///
/// With `run`, reads that one alone; otherwise those with real packets are skipped if there are others. Also returns
/// their number.
/// Fails where there is none, one cannot be read, or a file that its scenario reads has changed since.
pub fn recorded(directory: &Path, run: Option<&str>) -> Result<(Vec<Recorded>, usize), ScenarioError> {
    let found = finished_runs(directory).map_err(input_error)?;
    let mut found: Vec<(String, PathBuf)> = found.into_iter().map(|run| (run.name, run.path)).collect();
    if found.is_empty() {
        let message = format!("{} has no finished runs", directory.display());
        return Err(ScenarioError::new(message).help("give the directory of a run, a comparison or a sweep"));
    }
    found.sort();
    if let Some(run) = run {
        let names: Vec<String> = found.iter().map(|(name, _)| name.clone()).collect();
        found.retain(|(name, _)| name == run || (!run.is_empty() && !name.contains('/') && name.starts_with(run)));
        if found.is_empty() {
            let near = anabranch_settings::nearest(run, names.iter().map(String::as_str)).unwrap_or(names[0].clone());
            let message = format!("{} has no run `{run}`, but {} others", directory.display(), names.len());
            return Err(ScenarioError::new(message).help(format!("did you mean `{near}`?")));
        }
    }
    let is_simulated =
        |path: &Path| Manifest::read(path).ok().flatten().is_none_or(|manifest| manifest.backend == SIMULATOR.name);
    let all = found.len();
    if run.is_none() && found.iter().any(|(_, path)| is_simulated(path)) {
        found.retain(|(_, path)| is_simulated(path));
    }
    let read: Result<Vec<Recorded>, ScenarioError> = found.iter().map(|(name, path)| read(name, path)).collect();
    Ok((read?, all - found.len()))
}

fn read(name: &str, path: &Path) -> Result<Recorded, ScenarioError> {
    let wrong = |error: String| ScenarioError::new(format!("{name}: {error}"));
    let manifest = Manifest::read(path).map_err(|error| wrong(error.to_string()))?;
    let manifest = manifest.ok_or_else(|| wrong("there is no manifest.json of the run".into()))?;
    let summary = read_summary(path).map_err(|error| wrong(error.to_string()))?;
    let summary = summary.ok_or_else(|| wrong("there is no summary.json".into()))?;
    if summary.interrupted {
        return Err(wrong("the run was interrupted, so there is no complete result to compare with".into()));
    }
    if manifest.backend != SIMULATOR.name {
        let datapath = manifest.datapath.as_ref().map_or(String::new(), |datapath| format!(" ({datapath})"));
        let message = format!("its packets were real{datapath}, and no two such runs are alike");
        let help = format!("`anabranch run SCENARIO --backend {}` runs it again", manifest.backend);
        return Err(wrong(message).help(help));
    }
    let tree = Tree::parse(&format!("{} (scenario)", path.join("manifest.json").display()), &manifest.scenario)?;
    let scenario = Scenario::read(tree, &manifest.name, Path::new(""))?;
    let same_version = manifest.version == VERSION;
    if same_version && format!("{:016x}", scenario.hash()) != manifest.scenario_hash {
        return Err(wrong("a file that its scenario reads is missing or has changed since".into())
            .help("put the file back as it was; the scenario in manifest.json names it"));
    }
    let other_build = (!same_version || manifest.commit != COMMIT)
        .then(|| format!("version {} ({})", manifest.version, manifest.commit));
    let findings = check_files(path, is_data).map_err(|error| wrong(error.to_string()))?;
    let file = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let damaged = findings.iter().map(|finding| format!("{}: {}", file(&finding.path), finding.found)).collect();
    Ok(Recorded { name: name.to_string(), scenario, directory: path.to_path_buf(), summary, damaged, other_build })
}

impl Recorded {
    pub fn fingerprint(&self) -> &str {
        self.summary.fingerprint.as_deref().unwrap_or_default()
    }

    /// Compares the record with the result of the repeated run.
    fn compare(&self, ran: &Ran) -> RepeatedRun {
        let (result, meta) = (&ran.result, RunMeta { scheme: self.summary.scheme.clone(), ..ran.meta.clone() });
        let rows = differing_rows(&self.directory, &Context::new(result, &meta));
        let rows = rows.into_iter().map(|difference| format!("{}: {}", difference.file, difference.found));
        let mut differences: Vec<String> = self.damaged.iter().cloned().chain(rows).collect();
        let fingerprint = result.fingerprint.map_or_else(String::new, |fingerprint| format!("{fingerprint:016x}"));
        if fingerprint != self.fingerprint() {
            differences.push(format!("the fingerprint is {}; the run gives {fingerprint}", self.fingerprint()));
        } else if let Some(key) = differing_summary(&self.summary, &Summary::new(result, &meta)) {
            differences.push(format!("summary.json: `{key}` differs from the run"));
        }
        RepeatedRun { fingerprint, differences }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedRun {
    pub fingerprint: String,
    /// Differences of the record: file, row, column.
    pub differences: Vec<String>,
}

struct Execution<'r> {
    runs: &'r [Recorded],
    found: Mutex<Vec<Option<Result<RepeatedRun, RunError>>>>,
}

impl Work for Execution<'_> {
    fn attempt(&self, job: usize, threads: usize, progress: &mut dyn FnMut(&Progress) -> bool) -> Step {
        let outcome = match run(&self.runs[job].scenario, &SIMULATOR, threads, &|_| Ok(()), progress) {
            Err(RunError::Interrupted) => return Step::Interrupted,
            Ok(ran) if ran.result.interrupted => return Step::Interrupted,
            Ok(ran) => Ok(self.runs[job].compare(&ran)),
            Err(error) => Err(error),
        };
        self.found.lock().unwrap_or_else(PoisonError::into_inner)[job] = Some(outcome);
        Step::Done
    }
    fn max_threads(&self, job: usize) -> usize {
        self.runs[job].scenario.max_threads()
    }
}

/// Repeats `runs` without writing anything. Returns the outcome of each, `None` for those that an interruption skipped.
pub fn rerun(runs: &[Recorded], threads: usize, observer: &dyn Observer) -> Vec<Option<Result<RepeatedRun, RunError>>> {
    let execution = Execution { runs, found: Mutex::new(runs.iter().map(|_| None).collect()) };
    work_off(&execution, 0..runs.len(), threads, observer);
    execution.found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
