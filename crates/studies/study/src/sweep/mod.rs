//! Sweeps: a scenario over the values of some of its keys, every load balancer and seed at each point, in a store.

mod dry;
mod execute;
mod file;
pub mod over;

pub use crate::store::Again;
pub use dry::{DryRun, Measured};
pub use execute::{Options, Swept};
pub use file::{SweepFile, flatten, variants};

use crate::{Entries, Request, entries::plan_of, run_key};
use anabranch_backend::Clock;
use anabranch_random::name_key;
use anabranch_results::{Axis, Plan, PlannedRun};
use anabranch_scenario::{Scenario, ScenarioError, explain};
use over::MAX_POINTS;
use std::{collections::BTreeSet, path::PathBuf};

enum Points {
    /// The base scenario, changed to the values of the keys at the point.
    Of(Box<Scenario>),
    /// A list of scenarios, one per point.
    List(Vec<Scenario>),
}

const SCENARIO: &str = "scenario";

/// A sweep with every point checked.
pub struct Sweep {
    /// Keys, values, entries, seeds and every run with its hash.
    pub plan: Plan,
    points: Points,
    entries: Entries,
    /// Runs of the plan in the order they are done, each hash once.
    order: Vec<usize>,
    /// The files that its scenarios read.
    inputs: BTreeSet<PathBuf>,
}

impl Sweep {
    /// Plans the sweep of `base` over `axes`: every value with every other, or with `zip` the first with the first.
    ///
    /// Fails where a key, value or entry is wrong, zipped lists differ in length, or there are too many runs.
    pub fn new(base: Scenario, axes: Vec<Axis>, zip: bool, request: &Request) -> Result<Self, ScenarioError> {
        if axes.is_empty() {
            return Err(ScenarioError::new("nothing to sweep: no key is named").help(
                "give --over KEY=A,B,... or --over KEY=A..B:STEP, for example --over workload.0.load=0.3..0.9:0.1",
            ));
        }
        Sweep::planned(base, axes, zip, request)
    }

    /// As [`Sweep::new`], but a single point without keys is a sweep too.
    pub fn planned(
        mut base: Scenario,
        mut axes: Vec<Axis>,
        zip: bool,
        request: &Request,
    ) -> Result<Self, ScenarioError> {
        if let Some(twice) = axes.iter().enumerate().find(|(i, a)| axes[..*i].iter().any(|b| b.key == a.key)) {
            return Err(ScenarioError::new(format!("--over {}: this key is swept twice", twice.1.key)));
        }
        if zip && let Some(other) = axes.iter().find(|axis| axis.values.len() != axes[0].values.len()) {
            let lengths = axes.iter().map(|axis| format!("{} has {}", axis.key, axis.values.len()));
            return Err(ScenarioError::new(format!(
                "--zip: the keys have different numbers of values: {}",
                lengths.collect::<Vec<_>>().join(", ")
            ))
            .help(format!("give `{}` as many values as `{}`, or leave --zip out", other.key, axes[0].key)));
        }
        let is_simulated = request.backend.clock(&base) == Clock::Simulated;
        if let Some(wire) = axes.iter().find(|axis| axis.key.starts_with("wire.") && is_simulated) {
            let message = format!("--over {}: a simulation does not read `[wire]`", wire.key);
            return Err(
                ScenarioError::new(message).help("sweep it on a real network, for example with --backend testbed")
            );
        }
        base.remember_files();
        let entries = Entries::new(&base, request)?;
        let plan = planned(&base, &entries)?;
        axes.iter_mut().for_each(|axis| axis.meaning = explain::meaning(&axis.key, &plan.scenario));
        let plan = Plan { axes, zip, ..plan };
        Sweep::over(Points::Of(Box::new(base)), plan, entries)
    }

    /// Plans the sweep over `scenarios`, each with a name of its own; its only key is `scenario`.
    ///
    /// Fails where there is none, a name occurs twice or there are too many runs; and the errors of its entries.
    pub fn of_scenarios(scenarios: Vec<(String, Scenario)>, request: &Request) -> Result<Self, ScenarioError> {
        let (names, mut scenarios): (Vec<String>, Vec<Scenario>) = scenarios.into_iter().unzip();
        if let Some(twice) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            return Err(ScenarioError::new(format!("two scenarios are called `{}`", twice.1))
                .help("give each a different name"));
        }
        let Some(first) = scenarios.first().cloned() else {
            return Err(ScenarioError::new("nothing to sweep: there are no scenarios"));
        };
        scenarios.iter_mut().for_each(Scenario::remember_files);
        let entries = Entries::new(&first, request)?;
        let plan = Plan {
            name: format!("{} scenarios", scenarios.len()),
            scenario: String::new(),
            // The list of scenarios may grow, as the values of a key may.
            scenario_hash: format!("{:016x}", name_key("scenarios")),
            ground: format!("{:016x}", name_key("scenarios")),
            axes: vec![Axis { key: SCENARIO.into(), values: names, meaning: "Scenario".into(), ..Axis::default() }],
            ..planned(&first, &entries)?
        };
        Sweep::over(Points::List(scenarios), plan, entries)
    }

    fn over(points_of: Points, mut plan: Plan, entries: Entries) -> Result<Self, ScenarioError> {
        let zip = plan.zip;
        let lengths = plan.axes.iter().map(|axis| axis.values.len());
        let points = if zip { plan.points() } else { lengths.fold(1usize, usize::saturating_mul) };
        let runs = points.saturating_mul(plan.entries.len()).saturating_mul(plan.seeds.len());
        if runs > MAX_POINTS {
            let parts = format!("{points} points, {} load balancers, {} seeds", plan.entries.len(), plan.seeds.len());
            let message = format!("{parts} are {runs} runs; at most {MAX_POINTS} make a sweep");
            return Err(ScenarioError::new(message).help("name fewer values, load balancers or seeds"));
        }
        let mut inputs = BTreeSet::new();
        for point in 0..points {
            let scenario = points_of.scenario(&plan, point)?;
            inputs.extend(scenario.inputs());
            let here = entries.of(&scenario)?;
            for &seed in &plan.seeds {
                for (number, entry) in here.iter().enumerate() {
                    let run = run_key(&entry.scenario.with_seed(seed), entries.backend());
                    plan.runs.push(PlannedRun { point, entry: number, seed, run, ..PlannedRun::default() });
                }
            }
        }
        let mut order: Vec<usize> = (0..plan.runs.len()).collect();
        // Every point gets its first seed before any gets its second, so that early results cover the whole sweep.
        order.sort_by_key(|number| plan.runs[*number].seed);
        let mut seen = BTreeSet::new();
        order.retain(|number| seen.insert(plan.runs[*number].run.clone()));
        Ok(Sweep { plan, points: points_of, entries, order, inputs })
    }

    /// Returns the runs to be done, in their order: positions in the plan, each hash once.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the scenario of a run; errors are those of planning.
    pub fn scenario(&self, number: usize) -> Result<Scenario, ScenarioError> {
        let run = &self.plan.runs[number];
        let mut entries = self.entries.of(&self.points.scenario(&self.plan, run.point)?)?;
        Ok(entries.swap_remove(run.entry).scenario.with_seed(run.seed))
    }

    /// Returns the name of a run in messages: `load = 0.3, prime, seed 1`.
    pub fn name(&self, number: usize) -> String {
        let run = &self.plan.runs[number];
        format!("{}, seed {}", self.plan.scheme_at(run), run.seed)
    }

    /// Returns the files that its scenarios read.
    pub fn inputs(&self) -> Vec<PathBuf> {
        self.inputs.iter().cloned().collect()
    }

    /// Returns 64 bits over scenario and keys, but neither values nor load balancers nor seeds, which may grow.
    pub fn identity(&self) -> u64 {
        let keys: Vec<&str> = self.plan.axes.iter().map(|axis| axis.key.as_str()).collect();
        name_key(&format!("{} {} {}", self.plan.scenario_hash, keys.join(" "), self.plan.zip))
    }

    /// Returns reasons to doubt the results.
    pub fn warnings(&self) -> Vec<String> {
        let runs = |point: usize| -> BTreeSet<&str> {
            self.plan.runs.iter().filter(|run| run.point == point).map(|run| run.run.as_str()).collect()
        };
        let mut warnings = Vec::new();
        let mut step = if self.plan.zip { 0 } else { self.plan.points() };
        for axis in &self.plan.axes {
            let values = axis.values.len();
            // Neighbours along this axis, at the first value of the others.
            step = if self.plan.zip { 1 } else { step / values };
            if values > 1 && (1..values).all(|place| runs(place * step) == runs(0)) {
                warnings.push(format!("`{}` changes nothing: its values give the same runs.", axis.key));
            }
        }
        warnings
    }
}

impl Points {
    fn scenario(&self, plan: &Plan, point: usize) -> Result<Scenario, ScenarioError> {
        let base = match self {
            Points::List(scenarios) => return Ok(scenarios[point].clone()),
            Points::Of(base) => base,
        };
        let axes = plan.axes.iter().zip(plan.values(point));
        let changes: Vec<String> = axes.map(|(axis, value)| format!("{}={value}", axis.key)).collect();
        base.changed("--over", &changes)
    }
}

fn planned(scenario: &Scenario, entries: &Entries) -> Result<Plan, ScenarioError> {
    Ok(Plan {
        entries: entries.names().to_vec(),
        baseline: entries.baseline(scenario)?,
        seeds: entries.seeds(scenario)?,
        ..plan_of(scenario)
    })
}
