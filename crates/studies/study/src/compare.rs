//! Comparisons: every load balancer and variant with every seed, in a store of runs.

pub use crate::entries::Request;

use crate::{
    Again, Batch, Entries, Hold, Observer, Place, RunError, Runs, Store, entries::plan_of, is_due, replaceable,
    results::provenance, run_key, with_what_is_done,
};
use anabranch_backend::Setup;
use anabranch_report::{Comparison, Side, report, write_comparison};
use anabranch_results::{
    ColumnKind, FailedRun, Formats, Label, Limits, Member, Plan, PlannedRun, Summary, gather_runs, read_limits,
    read_summary, store_directory, write_limits,
};
use anabranch_scenario::{BackendEntry, Scenario, ScenarioError};
use anabranch_statistics::Sequential;
use std::{
    path::{Path, PathBuf},
    time::Instant,
};

#[derive(Clone, Debug)]
pub struct Job {
    /// `scheme, seed N`, as in messages.
    pub name: String,
    /// The load balancer or variant.
    pub scheme: String,
    pub seed: u64,
    /// The scenario with that load balancer.
    pub scenario: Scenario,
    /// Name of its directory in the store.
    pub key: String,
}

/// Computes the limits of every seed of a plan that the earlier ones lack, on a number of threads.
pub type ComputeLimits = fn(&ComparePlan, &Scenario, Option<Limits>, usize, &dyn Observer) -> Result<Limits, RunError>;

/// Plan of a comparison. All load balancers get the same flows: the traffic is drawn from the seed alone.
#[derive(Clone, Debug)]
pub struct ComparePlan {
    /// The load balancers and variants, in the order given.
    pub schemes: Vec<String>,
    pub seeds: Vec<u64>,
    /// The one to which the others are related.
    pub baseline: String,
    /// Every run, seed by seed, so that early results compare all load balancers.
    pub jobs: Vec<Job>,
    pub backend: &'static BackendEntry,
    /// Plan by which seeds are added until the differences are decided; `None` for a fixed number.
    pub until_decided: Option<Sequential>,
    /// Computes bounds and reference of the flows for the results; `None` if they are not requested.
    pub with_limits: Option<ComputeLimits>,
}

impl ComparePlan {
    /// Plans the comparison of `scenario`.
    /// Fails where there is no load balancer, one does not exist or is named twice, or a variant or the baseline is wrong.
    pub fn new(scenario: &Scenario, request: &Request) -> Result<Self, ScenarioError> {
        let entries = Entries::new(scenario, request)?;
        let of = entries.of(scenario)?;
        let (baseline, seeds) = (entries.baseline(scenario)?, entries.seeds(scenario)?);
        let mut jobs = Vec::with_capacity(seeds.len() * of.len());
        for &seed in &seeds {
            for entry in &of {
                let (scheme, scenario) = (entry.name.clone(), entry.scenario.with_seed(seed));
                let key = run_key(&scenario, request.backend);
                jobs.push(Job { name: format!("{scheme}, seed {seed}"), scheme, seed, scenario, key });
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
    /// Tables of another scenario may be replaced; its runs stay.
    pub replace: bool,
}

#[derive(Debug)]
pub struct Compared {
    /// Summaries of the finished runs, in the order of the plan.
    pub summaries: Vec<Summary>,
    /// Number of them that existed before.
    pub reused: usize,
    /// Failed runs: name and error.
    pub failed: Vec<(String, String)>,
    /// `true` if it was interrupted.
    pub interrupted: bool,
    /// The comparison over the finished runs; `None` where there are none.
    pub comparison: Option<Comparison>,
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
        let own = |run: &Summary| self.jobs.iter().find(|job| job.scheme == run.scheme && job.seed == run.seed);
        let of = |run: &Summary| Some((run.clone(), store_directory(directory, &own(run)?.key)));
        Side { backend: self.backend.name.to_string(), runs: compared.summaries.iter().filter_map(of).collect() }
    }

    /// The plan as it is written to the store.
    fn written(&self, scenario: &Scenario) -> Plan {
        let entry = |job: &Job| self.schemes.iter().position(|scheme| *scheme == job.scheme).unwrap_or_default();
        let run =
            |job: &Job| PlannedRun { entry: entry(job), seed: job.seed, run: job.key.clone(), ..PlannedRun::default() };
        Plan {
            entries: self.schemes.clone(),
            baseline: self.baseline.clone(),
            seeds: self.seeds.clone(),
            until_decided: self.until_decided.clone(),
            runs: self.jobs.iter().map(run).collect(),
            ..plan_of(scenario)
        }
    }

    /// Runs what the store of `place` lacks on `threads` threads. A run that fails does not stop the others.
    ///
    /// Fails where the input is wrong, foreign results are in the way, or nothing can be written. Finished runs are kept.
    pub fn execute(
        &self,
        scenario: &Scenario,
        place: &Place,
        threads: usize,
        permission: Permission,
        observer: &dyn Observer,
    ) -> Result<Compared, RunError> {
        let started = Instant::now();
        let plan = self.written(scenario);
        replaceable(place.tables(), &plan, &scenario.inputs(), permission.replace)?;
        self.check(observer)?;
        let store = place.open(&plan)?;
        let again = if permission.again { Again::All } else { Again::Failed };
        let is_due = |job: &usize| is_due(place.runs(), &self.jobs[*job].key, again);
        let due: Vec<usize> = (0..self.jobs.len()).filter(is_due).collect();
        let there = self.jobs.len() - due.len();
        let threads = self.backend.threads(scenario, threads);
        let (elsewhere, fatal) = Batch::new(self, &store, again).work_off(due, threads, observer);
        let _hold = Hold::take();
        let finished = |job: &&Job| store.is_finished(&job.key);
        let done: Vec<&Job> = self.jobs.iter().filter(finished).collect();
        if let Some(error) = fatal {
            return Err(with_what_is_done(error, done.len(), self.jobs.len()));
        }
        let directory = place.tables();
        let _alone = place.show(&plan)?;
        let mut summaries = vec![];
        for job in &done {
            let summary = read_summary(&store_directory(directory, &job.key))?;
            summaries.extend(summary.map(|summary| Summary { scheme: job.scheme.clone(), ..summary }));
        }
        let mut failed = vec![];
        for job in self.jobs.iter().filter(|job| !finished(job)) {
            failed.extend(FailedRun::read(place.runs(), &job.key)?.map(|failure| (job.name.clone(), failure.error)));
        }
        let missing = self.jobs.len() - done.len();
        if let Some(compute) = self.with_limits
            && missing == 0
        {
            let limits = compute(self, scenario, read_limits(directory)?, threads, observer)?;
            write_limits(&limits, directory)?;
        }
        let comparison = match summaries.is_empty() {
            true => None,
            false => Some(write_comparison(directory, &summaries, threads, &provenance(scenario, started))?),
        };
        self.gather(directory, &done)?;
        let interrupted = missing > failed.len();
        Ok(Compared { summaries, reused: there + elsewhere, failed, interrupted, comparison })
    }

    /// The plans of several backends as one, for the store that they share.
    pub fn joined(plans: &[ComparePlan], scenario: &Scenario) -> Plan {
        Plan::of_backends(plans.iter().map(|plan| (plan.backend.name, plan.written(scenario))))
    }

    fn gather(&self, directory: &Path, done: &[&Job]) -> Result<(), RunError> {
        let label = Label {
            name: "entry".into(),
            kind: ColumnKind::Text,
            meaning: "load balancer or variant, as in comparison.csv".into(),
        };
        let member =
            |job: &&Job| Member { directory: store_directory(directory, &job.key), labels: vec![job.scheme.clone()] };
        let mut members: Vec<Member> = done.iter().map(member).collect();
        members.sort_by_key(|member| self.schemes.iter().position(|scheme| *scheme == member.labels[0]));
        if !members.is_empty() {
            gather_runs(directory, &[label], &members)?;
        }
        Ok(())
    }
}

impl Runs for ComparePlan {
    fn key(&self, number: usize) -> &str {
        &self.jobs[number].key
    }
    fn name(&self, number: usize) -> String {
        self.jobs[number].name.clone()
    }
    fn scenario(&self, number: usize) -> Result<Scenario, ScenarioError> {
        Ok(self.jobs[number].scenario.clone())
    }
    fn backend(&self) -> &'static BackendEntry {
        self.backend
    }
    fn formats(&self) -> Formats {
        Formats::BOTH
    }
}

/// Draws figures and page of the comparison in `directory` while no other process does.
pub fn draw(directory: &Path) -> Result<PathBuf, RunError> {
    let store = Store::open(directory)?;
    let _alone = store.exclusive()?;
    Ok(report(directory)?)
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
