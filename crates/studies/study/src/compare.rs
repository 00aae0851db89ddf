//! Comparisons: every load balancer and variant with every seed, on all cores. Finished runs are not repeated.

pub use crate::entries::Request;

use crate::{
    entries::Entries,
    hold::Hold,
    input_error,
    lock::{Lock, is_unsupported},
    results::{Destination, Found, RunError, look, provenance, run_unless},
    schedule::{Observer, Step, Work, work_off},
};
use anabranch_backend::{Progress, Setup};
use anabranch_report::{
    COMPARISON_FILES, ColumnKind, Comparison, Inputs, Label, Limits, Manifest, Member, OutputDir, Provenance,
    ResultKind, Sequential, Side, Summary, begin_comparison, disk, gather_runs, is_of_others, read_limits,
    run_directory, write_limits, write_partial_comparison,
};
use anabranch_scenario::{backend::BackendEntry, error::ScenarioError, machine::VERSION, scenario::Scenario};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// One run of a comparison.
#[derive(Clone, Debug)]
pub struct Job {
    /// `scheme, seed N`, as in messages.
    pub name: String,
    /// The load balancer or variant.
    pub scheme: String,
    /// The seed.
    pub seed: u64,
    /// The scenario with that load balancer.
    pub scenario: Scenario,
}

/// Computes the limits of every seed of a plan that the earlier ones lack, on a number of threads.
pub type ComputeLimits = fn(&ComparePlan, &Scenario, Option<Limits>, usize, &dyn Observer) -> Result<Limits, RunError>;

/// Plan of a comparison. All load balancers get the same flows: the traffic is drawn from the seed alone.
#[derive(Clone, Debug)]
pub struct ComparePlan {
    /// The load balancers and variants, in the order given.
    pub schemes: Vec<String>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The one to which the others are related.
    pub baseline: String,
    /// Every run, seed by seed, so that early results compare all load balancers.
    pub jobs: Vec<Job>,
    /// Backend of the runs.
    pub backend: &'static BackendEntry,
    /// Plan by which seeds are added until the differences are decided; `None` for a fixed number.
    pub until_decided: Option<Sequential>,
    /// Computes bounds and reference of the flows for the results; `None` if they are not requested.
    pub with_limits: Option<ComputeLimits>,
}

impl ComparePlan {
    /// Plans the comparison of `scenario`.
    ///
    /// # Errors
    /// Where there is no load balancer, one does not exist or is named twice, or a variant or the baseline is wrong.
    pub fn new(scenario: &Scenario, request: &Request) -> Result<Self, ScenarioError> {
        let entries = Entries::new(scenario, request)?;
        let of = entries.of(scenario)?;
        let (baseline, seeds) = (entries.baseline(scenario)?, entries.seeds(scenario)?);
        let mut jobs = Vec::with_capacity(seeds.len() * of.len());
        for &seed in &seeds {
            for entry in &of {
                let (scheme, scenario) = (entry.name.clone(), entry.scenario.with_seed(seed));
                jobs.push(Job { name: format!("{scheme}, seed {seed}"), scheme, seed, scenario });
            }
        }
        let schemes = entries.names().to_vec();
        Ok(ComparePlan {
            schemes,
            seeds,
            baseline,
            jobs,
            backend: request.backend,
            until_decided: None,
            with_limits: None,
        })
    }
}

/// Permitted changes to existing results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// Finished runs are repeated.
    pub again: bool,
    /// Results of another scenario or comparison may be replaced.
    pub replace: bool,
}

/// Outcome of a comparison.
#[derive(Debug)]
pub struct Compared {
    /// Summaries of the finished runs, in the order of the plan.
    pub summaries: Vec<Summary>,
    /// Number of them that existed before.
    pub reused: usize,
    /// Failed runs: name and error.
    pub failed: Vec<(String, RunError)>,
    /// `true` if it was interrupted.
    pub interrupted: bool,
    /// The comparison over the finished runs; `None` where there are none.
    pub comparison: Option<Comparison>,
}

struct Done {
    summaries: Vec<Option<Summary>>,
    reused: usize,
    failed: Vec<(usize, RunError)>,
    fatal: Option<RunError>,
    written: Option<Instant>,
}

/// Minimum time between two writes of the comparison over the runs so far.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// A directory that this process works in, until dropped. If made for it and empty, it is removed on drop.
#[derive(Debug)]
#[must_use]
pub struct Taken {
    directory: PathBuf,
    lock: Option<Lock>,
    made: Vec<PathBuf>,
}

impl Taken {
    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Checks that the directory is still the one that was taken.
    ///
    /// # Errors
    /// Where it was removed or replaced: further files would not be written beside the earlier ones.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let is_there = self.lock.as_ref().map_or_else(|| self.directory.is_dir(), Lock::is_there);
        if is_there {
            return Ok(());
        }
        let message = format!("{} was removed or replaced during the runs in it", self.directory.display());
        Err(ScenarioError::new(message).help("results that were not written are lost; run it again"))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.lock = None;
        self.made.iter().for_each(|directory| drop(std::fs::remove_dir(directory)));
    }
}

/// Takes `directory` for this process alone, if the file system has locks.
///
/// # Errors
/// Where another process holds it, or it cannot be written.
pub fn take_directory(directory: &Path) -> Result<Taken, ScenarioError> {
    let absent = directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
    let mut taken =
        Taken { directory: directory.to_path_buf(), lock: None, made: absent.map(Path::to_path_buf).collect() };
    disk::make_directories(directory).map_err(|error| directory_error(directory, &error))?;
    let lock = directory.join(".lock");
    match Lock::try_take_among_others(&lock) {
        Ok(Some(lock)) => {
            taken.lock = Some(lock);
            Ok(taken)
        }
        Ok(None) => Err(ScenarioError::new(format!("another anabranch process uses {}", directory.display()))
            .help("wait until it ends, or give another directory with --out DIR")),
        Err(error) if is_unsupported(&error) => Ok(taken),
        Err(error) if fs::symlink_metadata(&lock).is_ok_and(|there| !there.is_file()) => {
            Err(ScenarioError::new(format!("{}: {error}", lock.display()))
                .help("the command keeps its lock there: remove it, or give another directory with --out DIR"))
        }
        Err(error) => Err(directory_error(directory, &error)),
    }
}

struct Execution<'p> {
    plan: &'p ComparePlan,
    scenario: &'p Scenario,
    directory: &'p Path,
    taken: &'p Taken,
    threads: usize,
    again: bool,
    started: Instant,
    observer: &'p dyn Observer,
    done: Mutex<Done>,
}

impl ComparePlan {
    /// Checks the graph, the traffic and the load balancers before anything is written. The error names the run.
    pub fn check(&self, observer: &dyn Observer) -> Result<(), ScenarioError> {
        let mut first = None;
        let jobs = &self.jobs[..self.schemes.len().min(self.jobs.len())];
        jobs.iter().try_for_each(|job| {
            check(&job.scenario, self.backend, &job.name, &mut first, observer).map_err(|error| match jobs.len() {
                1 => error,
                _ => error.of(&job.name),
            })
        })
    }

    /// Returns the finished runs in `directory` as one side of an agreement.
    pub fn side(&self, directory: &Path, compared: &Compared) -> Side {
        let place = |run: &Summary| run_directory(directory, &run.scheme, run.seed);
        let runs = compared.summaries.iter().map(|run| (run.clone(), place(run))).collect();
        Side { backend: self.backend.name.to_string(), runs }
    }

    /// Runs what `directory` lacks on `threads` threads. A run that fails does not stop the others.
    ///
    /// # Errors
    /// [`RunError`] where the input is wrong, foreign results are in the way, or nothing can be written. Finished runs
    /// are kept.
    pub fn execute(
        &self,
        scenario: &Scenario,
        directory: &Path,
        threads: usize,
        permission: Permission,
        observer: &dyn Observer,
    ) -> Result<Compared, RunError> {
        self.check(observer)?;
        let open = || OutputDir::keeping(directory, Inputs::of(scenario.inputs())).map_err(input_error);
        let (output, taken) = OutputDir::settled(open, |output| {
            self.ask(output, permission, observer)?;
            take_directory(directory)
        })?;
        let threads = self.backend.threads(scenario, threads);
        self.move_replaced_aside(&output, observer).map_err(|error| directory_error(directory, &error))?;
        self.move_others_aside(directory).map_err(|error| directory_error(directory, &error))?;
        let execution = Execution {
            plan: self,
            scenario,
            directory,
            taken: &taken,
            threads,
            again: permission.again,
            started: Instant::now(),
            observer,
            done: Mutex::new(Done {
                summaries: vec![None; self.jobs.len()],
                reused: 0,
                failed: Vec::new(),
                fatal: None,
                written: None,
            }),
        };
        // Marked as incomplete from the start: an interruption while fabrics are being built ends the process.
        execution.mark(&execution.lock())?;
        work_off(&execution, 0..self.jobs.len(), threads, observer);
        execution.finish()
    }

    /// Refuses, without `replace`, a directory with runs of other comparisons; notes that they will be moved otherwise.
    fn ask(&self, output: &OutputDir, permission: Permission, observer: &dyn Observer) -> Result<(), ScenarioError> {
        let directory = output.path();
        if let Some(kind) = output.manifest().map(Manifest::kind).filter(|kind| *kind != ResultKind::Comparison) {
            let message = format!("{} contains {kind}; a comparison needs a separate directory", directory.display());
            return Err(ScenarioError::new(message).help("give another directory with --out DIR"));
        }
        output.admit_results(COMPARISON_FILES).map_err(input_error)?;
        for job in &self.jobs {
            let own = run_directory(Path::new(""), &job.scheme, job.seed);
            output.admit_folder(&own).map_err(input_error)?;
        }
        let mut others = self.others(directory).map_err(|error| directory_error(directory, &error))?;
        let replaced = self.replaced(output);
        others.retain(|other| !replaced.contains(other));
        if others.is_empty() {
            return Ok(());
        }
        let runs = directory.join("runs");
        let names: Vec<String> =
            others.iter().take(3).map(|path| path.strip_prefix(&runs).unwrap_or(path).display().to_string()).collect();
        let more = if others.len() > names.len() { ", ..." } else { "" };
        let message = format!(
            "{} contains {} of another comparison: {}{more}",
            directory.display(),
            if others.len() == 1 { "a run".to_string() } else { format!("{} runs", others.len()) },
            names.join(", ")
        );
        if permission.replace {
            observer.warn(&format!("{message}; --replace moves them to `earlier-runs` and removes nothing"));
            return Ok(());
        }
        Err(ScenarioError::new(message)
            .help("give another directory with --out DIR; or --replace, which keeps them under `earlier-runs`"))
    }

    /// Runs of other load balancers, seeds or scenarios.
    fn others(&self, directory: &Path) -> std::io::Result<Vec<PathBuf>> {
        let mut others = Vec::new();
        for scheme in children(&directory.join("runs"))? {
            for seed in children(&scheme)? {
                if !seed.join("manifest.json").exists() {
                    continue;
                }
                let mine = self.jobs.iter().find(|job| run_directory(directory, &job.scheme, job.seed) == seed);
                if mine.is_none_or(|job| matches!(look(&job.scenario, self.backend, &seed), Found::Other)) {
                    others.push(seed);
                }
            }
        }
        Ok(others)
    }

    /// Directories of this comparison's runs with other content: another run, or files without a manifest.
    fn replaced(&self, output: &OutputDir) -> Vec<PathBuf> {
        let Some(manifest) = output.manifest() else { return Vec::new() };
        let directory = output.path();
        let places = self.jobs.iter().map(|job| run_directory(directory, &job.scheme, job.seed));
        places.filter(|place| place.is_dir() && is_of_others(directory, place, manifest)).collect()
    }

    /// Moves them aside without a flag: no command put them there, and nothing is removed.
    fn move_replaced_aside(&self, output: &OutputDir, observer: &dyn Observer) -> std::io::Result<()> {
        for place in self.replaced(output) {
            let kept = self.move_aside(output.path(), &place)?;
            let (place, kept) = (place.display(), kept.display());
            observer.warn(&format!(
                "{place}: this is not the run that the tables were made of; it is kept in {kept}, and run again"
            ));
        }
        Ok(())
    }

    /// Moves the run in `other` to `earlier-runs`; returns its path there.
    fn move_aside(&self, directory: &Path, other: &Path) -> std::io::Result<PathBuf> {
        let own = other.strip_prefix(directory.join("runs")).map_err(std::io::Error::other)?;
        let kept = directory.join("earlier-runs").join(own);
        disk::make_directories(kept.parent().unwrap_or(Path::new("")))?;
        let names = std::iter::once(kept.clone()).chain((2..).map(|number| beside(&kept, number)));
        let free = names.into_iter().find(|name| std::fs::symlink_metadata(name).is_err()).unwrap_or(kept);
        disk::rename(other, &free)?;
        Ok(free)
    }

    /// Moves foreign runs to `earlier-runs`, since the report would show them, and moves back those in this comparison.
    fn move_others_aside(&self, directory: &Path) -> std::io::Result<()> {
        let (runs, earlier) = (directory.join("runs"), directory.join("earlier-runs"));
        for other in self.others(directory)? {
            self.move_aside(directory, &other)?;
        }
        for job in &self.jobs {
            let wanted = run_directory(directory, &job.scheme, job.seed);
            let kept = earlier.join(wanted.strip_prefix(&runs).map_err(std::io::Error::other)?);
            if wanted.exists() || !earlier.is_dir() {
                continue;
            }
            let seed = format!("seed{}", job.seed);
            let of_seed = |path: &PathBuf| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                *name == *seed || name.starts_with(&format!("{seed}-"))
            };
            let mut there = children(kept.parent().unwrap_or(&earlier))?.into_iter().filter(of_seed);
            let mine = |path: &PathBuf| {
                !matches!(look(&job.scenario, self.backend, path), Found::Other | Found::Empty | Found::Unknown(_))
            };
            if let Some(found) = there.find(mine) {
                disk::make_directories(wanted.parent().unwrap_or(&runs))?;
                disk::rename(&found, &wanted)?;
            }
        }
        Ok(())
    }
}

/// Turns `seed1` into `seed1-2` and so on.
fn beside(path: &Path, number: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}-{number}"))
}

impl Work for Execution<'_> {
    fn attempt(&self, number: usize, threads: usize, progress: &mut dyn FnMut(&Progress) -> bool) -> Step {
        let job = &self.plan.jobs[number];
        let directory = run_directory(self.directory, &job.scheme, job.seed);
        match look(&job.scenario, self.plan.backend, &directory) {
            Found::Finished(summary) if !self.again => return self.keep(number, *summary, true),
            Found::Damaged(found) if !self.again => {
                self.observer.warn(&format!("{found}; {} is run again", job.name));
            }
            Found::Unknown(found) => match self.plan.move_aside(self.directory, &directory) {
                Ok(kept) => {
                    let kept = kept.display();
                    self.observer.warn(&format!("{found}; it is kept in {kept}, and {} is run again", job.name));
                }
                Err(error) => return self.give_up(directory_error(self.directory, &error).into()),
            },
            _ => {}
        }
        let to = Destination::in_place(&job.scheme, &directory, self.taken);
        match run_unless(&job.scenario, self.plan.backend, threads, &to, progress) {
            Ok(None) => Step::Interrupted,
            Err(error) if self.taken.check().is_err() => self.give_up(error),
            Ok(Some(summary)) => self.keep(number, summary, false),
            Err(error @ RunError::Report(_)) => self.give_up(error),
            Err(error) => {
                self.lock().failed.push((number, error));
                Step::Done
            }
        }
    }

    fn max_threads(&self, number: usize) -> usize {
        self.plan.jobs[number].scenario.max_threads()
    }
}

impl Execution<'_> {
    fn lock(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, number: usize, summary: Summary, reused: bool) -> Step {
        let _hold = Hold::take();
        let mut done = self.lock();
        done.summaries[number] = Some(summary);
        done.reused += usize::from(reused);
        if reused || done.written.is_some_and(|written| written.elapsed() < WRITE_EVERY) {
            return Step::Done;
        }
        done.written = Some(Instant::now());
        let written = self.write(&done);
        drop(done);
        match written {
            Ok(_) => Step::Done,
            Err(error) => self.give_up(error),
        }
    }

    fn provenance(&self) -> Provenance {
        let until_decided = self.plan.until_decided.clone();
        Provenance { until_decided, ..provenance(self.scenario, self.started) }
    }

    fn give_up(&self, error: RunError) -> Step {
        self.lock().fatal.get_or_insert(error);
        Step::Stop
    }

    fn write(&self, done: &Done) -> Result<Comparison, RunError> {
        let runs: Vec<Summary> = done.summaries.iter().flatten().cloned().collect();
        let provenance = self.provenance();
        let plan = self.plan;
        let (missing, dir) = (self.missing(done), self.directory);
        let (schemes, baseline) = (&plan.schemes, &plan.baseline);
        Ok(write_partial_comparison(dir, &runs, schemes, baseline, self.threads, &provenance, missing.as_deref())?)
    }

    fn finish(self) -> Result<Compared, RunError> {
        let _hold = Hold::take();
        let mut done = std::mem::replace(
            &mut *self.lock(),
            Done { summaries: Vec::new(), reused: 0, failed: Vec::new(), fatal: None, written: None },
        );
        if let Some(error) = done.fatal.take() {
            return Err(error);
        }
        self.taken.check()?;
        let any = done.summaries.iter().any(Option::is_some);
        if let Some(compute) = self.plan.with_limits
            && any
            && done.summaries.iter().all(Option::is_some)
        {
            self.write(&done)?;
            let earlier = read_limits(self.directory)?;
            let limits = compute(self.plan, self.scenario, earlier, self.threads, self.observer)?;
            write_limits(&limits, self.directory)?;
        }
        let comparison = match any {
            true => Some(self.write(&done)?),
            false => self.mark(&done).map(|()| None)?,
        };
        self.gather(&done)?;
        let missing = done.summaries.iter().filter(|summary| summary.is_none()).count();
        let interrupted = missing > done.failed.len();
        done.failed.sort_by_key(|(number, _)| *number);
        let failed =
            done.failed.into_iter().map(|(number, error)| (self.plan.jobs[number].name.clone(), error)).collect();
        let summaries = done.summaries.into_iter().flatten().collect();
        Ok(Compared { summaries, reused: done.reused, failed, interrupted, comparison })
    }

    fn gather(&self, done: &Done) -> Result<(), RunError> {
        let label = Label {
            name: "entry".into(),
            kind: ColumnKind::Text,
            meaning: "load balancer or variant, as in comparison.csv".into(),
        };
        let jobs = self.plan.jobs.iter().zip(&done.summaries).filter(|(_, summary)| summary.is_some());
        let member = |job: &Job| Member {
            directory: run_directory(self.directory, &job.scheme, job.seed),
            labels: vec![job.scheme.clone()],
        };
        let mut members: Vec<Member> = jobs.map(|(job, _)| member(job)).collect();
        members.sort_by_key(|member| self.plan.schemes.iter().position(|scheme| *scheme == member.labels[0]));
        if !members.is_empty() {
            gather_runs(self.directory, &[label], &members)?;
        }
        Ok(())
    }

    fn mark(&self, done: &Done) -> Result<(), RunError> {
        let (plan, provenance) = (self.plan, self.provenance());
        let missing = self.missing(done);
        Ok(begin_comparison(self.directory, VERSION, &plan.schemes, &plan.baseline, &provenance, missing.as_deref())?)
    }

    fn missing(&self, done: &Done) -> Option<String> {
        if done.summaries.iter().all(Option::is_some) {
            return None;
        }
        let jobs = self.plan.jobs.iter().enumerate().zip(&done.summaries).filter(|(_, summary)| summary.is_none());
        let failed = |number: usize| done.failed.iter().find(|(n, _)| *n == number).map(|(_, error)| error.to_string());
        let missing: Vec<&str> = jobs.clone().map(|((_, job), _)| job.name.as_str()).collect();
        let failures: serde_json::Map<String, serde_json::Value> =
            jobs.filter_map(|((number, job), _)| Some((job.name.clone(), failed(number)?.into()))).collect();
        let text = serde_json::json!({
            "interrupted": missing.len() > failures.len(),
            "finished": self.plan.jobs.len() - missing.len(),
            "missing": missing,
            "failed": failures,
        });
        Some(format!("{text:#}\n"))
    }
}

/// Checks graph, traffic and load balancers of `scenario`. `first` caches the setup for equal networks and traffic.
pub fn check(
    scenario: &Scenario,
    backend: &BackendEntry,
    name: &str,
    first: &mut Option<(String, Setup)>,
    observer: &dyn Observer,
) -> Result<(), ScenarioError> {
    let same = scenario.without_load_balancer();
    match first {
        Some((text, setup)) if *text == same => {
            setup.load_balancers = scenario.balancers(&setup.topology)?;
            scenario.check(setup, backend)
        }
        _ => {
            let setup = scenario.setup(scenario.seed)?;
            scenario.check(&setup, backend)?;
            if first.is_none() {
                scenario
                    .foresight(&setup, backend)
                    .iter()
                    .for_each(|warning| observer.warn(&format!("{name}: {warning}")));
            }
            *first = Some((same, setup));
            Ok(())
        }
    }
}

fn children(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = std::fs::read_dir(path)?.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
    found.sort();
    Ok(found)
}

pub(crate) fn directory_error(directory: &Path, error: &std::io::Error) -> ScenarioError {
    ScenarioError::new(format!("the directory {} cannot be used for results: {error}", directory.display()))
        .help("give a directory that can be written with --out DIR")
}
