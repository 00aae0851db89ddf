//! Comparisons: every load balancer with every seed, several runs at a time; what is finished is not repeated.

use crate::{
    error::ScenarioError,
    hold::Hold,
    library::in_list,
    results::{RunError, finished, provenance, run_unless},
    scenario::{MOST_SEEDS, Scenario},
    section::{did_you_mean, list},
};
use anabranch_report::{Comparison, Summary, run_directory, write_comparison};
use anabranch_settings::nearest;
use anabranch_sim::Progress;
use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

/// One run of a comparison.
#[derive(Clone, Debug)]
pub struct Job {
    /// `scheme, seed N`, for people.
    pub name: String,
    /// The load balancer.
    pub scheme: String,
    /// The seed.
    pub seed: u64,
    /// The scenario with that load balancer.
    pub scenario: Scenario,
}

/// What a comparison runs. All load balancers see the same flows: the traffic is drawn from the seed alone.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The load balancers, in the order given.
    pub schemes: Vec<String>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The load balancer that the others are related to.
    pub baseline: String,
    /// Every run, seed by seed, so that early results compare all load balancers.
    pub jobs: Vec<Job>,
}

/// What the command line says of a comparison; what it leaves out comes from the scenario's `[compare]`.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The load balancers.
    pub schemes: Vec<String>,
    /// How many seeds.
    pub seeds: Option<u64>,
    /// The baseline.
    pub baseline: Option<String>,
}

impl Plan {
    /// Plans the comparison of `scenario`.
    ///
    /// # Errors
    /// [`ScenarioError`] where a load balancer does not exist, stands twice or does not go with the scenario, where
    /// there is none, or where the baseline is not among them.
    pub fn new(scenario: &Scenario, request: &Request) -> Result<Self, ScenarioError> {
        let asked: Vec<String> =
            request.schemes.iter().map(|s| s.trim().to_string()).filter(|s| !s.is_empty()).collect();
        let from_flag = !asked.is_empty();
        let schemes = if from_flag { asked } else { scenario.compare.schemes.clone() };
        let place = |scheme: &str| match from_flag {
            true => in_list("--schemes", &request.schemes, scheme),
            false => scenario.place("compare.schemes"),
        };
        if schemes.is_empty() {
            return Err(ScenarioError::new("nothing to compare: no load balancers are named").help(
                "give --schemes A,B,... (`anabranch list schemes`) or `schemes = [...]` under [compare] in the scenario",
            ));
        }
        if let Some(twice) = schemes.iter().enumerate().find(|(i, s)| schemes[..*i].contains(s)).map(|(_, s)| s) {
            return Err(ScenarioError::new(format!("`{twice}` stands twice among the load balancers to compare"))
                .maybe_at(place(twice)));
        }
        let variants: Vec<Scenario> = schemes
            .iter()
            .map(|scheme| scenario.with_scheme(scheme).map_err(|error| error.maybe_at(place(scheme))))
            .collect::<Result<_, _>>()?;
        let baseline = match request.baseline.clone().or_else(|| scenario.compare.baseline.clone()) {
            None => schemes[0].clone(),
            Some(baseline) if schemes.contains(&baseline) => baseline,
            // The scenario's own baseline need not be among the load balancers of the command line.
            Some(_) if request.baseline.is_none() && from_flag => schemes[0].clone(),
            Some(baseline) => {
                let names: Vec<&str> = schemes.iter().map(String::as_str).collect();
                let message =
                    format!("the baseline `{baseline}` is not among the load balancers compared: {}", list(&names));
                return Err(did_you_mean(ScenarioError::new(message), nearest(&baseline, names)));
            }
        };
        let count = request.seeds.unwrap_or(scenario.compare.seeds);
        if count == 0 || count > MOST_SEEDS || scenario.seed.checked_add(count).is_none_or(|s| s > i64::MAX as u64) {
            return Err(ScenarioError::new(format!("--seeds: found {count}, expected from 1 to {MOST_SEEDS}")));
        }
        let seeds: Vec<u64> = (0..count).map(|i| scenario.seed + i).collect();
        let mut jobs = Vec::with_capacity(seeds.len() * schemes.len());
        for &seed in &seeds {
            for (scheme, variant) in schemes.iter().zip(&variants) {
                let scenario = variant.with_seed(seed);
                jobs.push(Job { name: format!("{scheme}, seed {seed}"), scheme: scheme.clone(), seed, scenario });
            }
        }
        Ok(Plan { schemes, seeds, baseline, jobs })
    }

    /// How many runs go side by side on `threads` threads, and how many threads each gets.
    pub fn share(&self, threads: usize) -> (usize, usize) {
        let side_by_side = threads.clamp(1, self.jobs.len().max(1));
        (side_by_side, (threads / side_by_side).max(1))
    }
}

/// Watches the runs of a comparison; called from several threads.
pub trait Observer: Sync {
    /// Run number `job` begins.
    fn started(&self, job: usize);
    /// Something to know before it takes its time.
    fn note(&self, message: &str);
    /// Where it stands; false interrupts it.
    fn progress(&self, job: usize, progress: &Progress) -> bool;
    /// Its results are on disk, or were there already.
    fn finished(&self, job: usize);
    /// Whether no further run should begin.
    fn interrupted(&self) -> bool;
}

/// What a comparison gave.
#[derive(Debug)]
pub struct Compared {
    /// Summaries of the finished runs, in the order of the plan.
    pub summaries: Vec<Summary>,
    /// How many of them were there before.
    pub reused: usize,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// The comparison over the finished runs; `None` where there are none.
    pub comparison: Option<Comparison>,
}

struct Done {
    summaries: Vec<Option<Summary>>,
    reused: usize,
    failed: Option<RunError>,
}

/// A file that says that a comparison was interrupted; it goes when the comparison is complete.
const INTERRUPTED: &str = "interrupted.json";

impl Plan {
    /// Runs what is not finished in `directory` yet, several runs at a time on `threads` threads, and writes each run
    /// and the comparison there as soon as they are known. With `again`, everything is run.
    ///
    /// # Errors
    /// [`RunError`] of the first run that failed; the results of the others are kept.
    pub fn execute(
        &self,
        scenario: &Scenario,
        directory: &Path,
        threads: usize,
        again: bool,
        observer: &dyn Observer,
    ) -> Result<Compared, RunError> {
        let started = Instant::now();
        // Whatever is wrong with the graph, the traffic or a load balancer shows before anything is written.
        if let Some(job) = self.jobs.first() {
            let mut setup = job.scenario.setup(job.seed)?;
            job.scenario.check(&setup)?;
            if let Some(warning) = job.scenario.foresight(&setup) {
                observer.note(&format!("{}: {warning}", job.name));
            }
            for other in &self.jobs[1..self.schemes.len().min(self.jobs.len())] {
                setup.load_balancers = other.scenario.balancers(&setup.topology)?;
                other.scenario.check(&setup)?;
            }
        }
        self.move_others_aside(directory).map_err(|error| directory_error(directory, &error))?;
        let (side_by_side, threads_each) = self.share(threads);
        let next = AtomicUsize::new(0);
        let done = Done { summaries: vec![None; self.jobs.len()], reused: 0, failed: None };
        // Marked as incomplete from the start: an interruption while fabrics are being built ends the process.
        self.mark(directory, &done, true).map_err(|error| directory_error(directory, &error))?;
        let done = Mutex::new(done);
        let lock = || done.lock().unwrap_or_else(PoisonError::into_inner);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = self.jobs.get(number) else { return };
                if observer.interrupted() || lock().failed.is_some() {
                    return;
                }
                let own = run_directory(directory, &job.scheme, job.seed);
                let kept = if again { None } else { finished(&job.scenario, &own) };
                observer.started(number);
                let reused = kept.is_some();
                let outcome = match kept {
                    Some(summary) => Ok(Some(summary)),
                    None => self.run_job(number, &own, threads_each, observer),
                };
                let _hold = Hold::take();
                let mut done = lock();
                match outcome {
                    Ok(None) => return,
                    Ok(Some(summary)) => {
                        done.summaries[number] = Some(summary);
                        done.reused += usize::from(reused);
                        let written = self.write(scenario, directory, &done, threads, started).and_then(|_| {
                            let open = done.summaries.iter().any(Option::is_none);
                            self.mark(directory, &done, open).map_err(|e| directory_error(directory, &e).into())
                        });
                        if let Err(error) = written {
                            done.failed.get_or_insert(error);
                        }
                    }
                    Err(error) => {
                        done.failed.get_or_insert(error);
                    }
                }
                drop(done);
                observer.finished(number);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..side_by_side {
                scope.spawn(work);
            }
            work();
        });
        let _hold = Hold::take();
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        if done.failed.is_some() {
            self.mark(directory, &done, false).map_err(|error| directory_error(directory, &error))?;
        }
        if let Some(error) = done.failed {
            return Err(error);
        }
        let comparison = match done.summaries.iter().any(Option::is_some) {
            true => Some(self.write(scenario, directory, &done, threads, started)?),
            false => None,
        };
        let interrupted = done.summaries.iter().any(Option::is_none);
        self.mark(directory, &done, interrupted).map_err(|error| directory_error(directory, &error))?;
        let summaries = done.summaries.into_iter().flatten().collect();
        Ok(Compared { summaries, reused: done.reused, interrupted, comparison })
    }

    /// `None` where the run was interrupted: half a run is nothing to compare, and it is not kept.
    fn run_job(
        &self,
        number: usize,
        directory: &Path,
        threads: usize,
        observer: &dyn Observer,
    ) -> Result<Option<Summary>, RunError> {
        run_unless(&self.jobs[number].scenario, threads, directory, &mut |p| observer.progress(number, p))
    }

    fn write(
        &self,
        scenario: &Scenario,
        directory: &Path,
        done: &Done,
        threads: usize,
        started: Instant,
    ) -> Result<Comparison, RunError> {
        let runs: Vec<Summary> = done.summaries.iter().flatten().cloned().collect();
        let provenance = provenance(scenario, started);
        Ok(write_comparison(directory, &runs, &self.schemes, &self.baseline, threads, &provenance)?)
    }

    fn mark(&self, directory: &Path, done: &Done, interrupted: bool) -> std::io::Result<()> {
        let path = directory.join(INTERRUPTED);
        if !interrupted {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let missing: Vec<&str> =
            self.jobs.iter().zip(&done.summaries).filter(|(_, s)| s.is_none()).map(|(j, _)| j.name.as_str()).collect();
        let text =
            serde_json::json!({ "interrupted": true, "finished": self.jobs.len() - missing.len(), "missing": missing });
        std::fs::create_dir_all(directory)?;
        std::fs::write(path, format!("{text:#}\n"))
    }

    /// Runs of other comparisons in the same directory would show up in the report: they are kept under `earlier-runs`,
    /// and come back when they are asked for again.
    fn move_others_aside(&self, directory: &Path) -> std::io::Result<()> {
        let (runs, earlier) = (directory.join("runs"), directory.join("earlier-runs"));
        let mine: Vec<PathBuf> = self.jobs.iter().map(|job| run_directory(directory, &job.scheme, job.seed)).collect();
        for scheme in children(&runs)? {
            for seed in children(&scheme)? {
                if !mine.contains(&seed) && seed.join("manifest.json").exists() {
                    let relative = seed.strip_prefix(&runs).map_err(std::io::Error::other)?;
                    move_over(&seed, &earlier.join(relative))?;
                }
            }
        }
        for wanted in mine.iter().filter(|path| !path.exists()) {
            let kept = earlier.join(wanted.strip_prefix(&runs).map_err(std::io::Error::other)?);
            if kept.exists() {
                move_over(&kept, wanted)?;
            }
        }
        Ok(())
    }
}

/// What is in a directory, in order; nothing where it is not there.
fn children(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = std::fs::read_dir(path)?.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
    found.sort();
    Ok(found)
}

/// Moves a directory, over one that is there.
fn move_over(from: &Path, to: &Path) -> std::io::Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    std::fs::create_dir_all(to.parent().unwrap_or(Path::new("")))?;
    std::fs::rename(from, to)
}

fn directory_error(directory: &Path, error: &std::io::Error) -> ScenarioError {
    ScenarioError::new(format!("the directory {} cannot be used for results: {error}", directory.display()))
        .help("give a directory that can be written with --out DIR")
}
