//! Bounds and reference of the flows of a comparison: what no load balancer can beat, and a fabric almost without
//! contention inside.

use crate::{ComparePlan, Observer, RunError, results::meta};
use anabranch_backend::{FlowOutcome, RunOptions, RunResult, flow_rows};
pub use anabranch_bound::{Bounds, Limit};
use anabranch_bound::{REFERENCE_FACTOR, bounds, reference_setup};
use anabranch_random::name_key;
use anabranch_report::{ALL, METRICS, Metric};
use anabranch_results::{LimitRow, Limits, Summary};
use anabranch_scenario::{SIMULATOR, Scenario, ScenarioError};
use std::time::Instant;

/// Load balancer of the reference.
const REFERENCE_SCHEME: &str = "ecmp";

pub fn reference_words() -> String {
    format!(
        "the same flows under {REFERENCE_SCHEME} with links between switches {REFERENCE_FACTOR} times as fast, slowed ones included"
    )
}

/// Computes the limits of every seed of `plan` that `earlier` lacks.
/// Fails if the reference cannot be run. An interruption ends after the seed at hand.
pub fn limits(
    plan: &ComparePlan,
    scenario: &Scenario,
    earlier: Option<Limits>,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Limits, RunError> {
    let identity = flows_key(scenario);
    let mut limits = earlier.filter(|limits| limits.scenario == identity).unwrap_or_default();
    limits.scenario = identity;
    limits.schemes = alike(plan, scenario);
    limits.reference = reference_words();
    for &seed in &plan.seeds {
        if observer.interrupted() || limits.has(seed) {
            continue;
        }
        let Some(own) = limits_of(&scenario.with_seed(seed), threads, observer)? else { continue };
        let (bound, reference) = (own.bound_seconds, own.reference_seconds);
        observer.note(&format!("bounds and reference of seed {seed}: {bound:.1} s and {reference:.1} s"));
        limits.bound_seconds += bound;
        limits.reference_seconds += reference;
        limits.loose.extend(own.loose);
        limits.rows.extend(own.rows);
    }
    limits.loose.sort();
    limits.loose.dedup();
    Ok(limits)
}

/// Returns bounds and reference of `scenario` with its seed; `None` if the reference was interrupted.
pub fn limits_of(scenario: &Scenario, threads: usize, observer: &dyn Observer) -> Result<Option<Limits>, RunError> {
    let bounds = bounds_of(scenario)?;
    let started = Instant::now();
    let Some(reference) = reference(scenario, threads, observer)? else { return Ok(None) };
    Ok(Some(Limits {
        rows: rows(scenario.seed, &bounds, Some(&reference)),
        reference: reference_words(),
        bound_seconds: bounds.seconds,
        reference_seconds: started.elapsed().as_secs_f64(),
        loose: bounds.loose,
        scenario: flows_key(scenario),
        schemes: vec![],
    }))
}

/// Returns the bounds of links of `scenario` with its seed, without linear programs and without the reference.
pub fn link_limits(scenario: &Scenario) -> Result<Limits, ScenarioError> {
    let bounds = bounds(&scenario.setup(scenario.seed)?, false);
    Ok(Limits {
        rows: rows(scenario.seed, &bounds, None),
        bound_seconds: bounds.seconds,
        loose: bounds.loose,
        scenario: flows_key(scenario),
        ..Limits::default()
    })
}

/// Returns the identity of fabric, flows and clock of `scenario`: the same for every load balancer.
pub fn flows_key(scenario: &Scenario) -> String {
    format!("{:016x}", name_key(&format!("{}seed {}", scenario.without_load_balancer(), scenario.seed)))
}

/// Returns the bounds of `scenario` with its seed.
pub fn bounds_of(scenario: &Scenario) -> Result<Bounds, ScenarioError> {
    Ok(bounds(&scenario.setup(scenario.seed)?, true))
}

/// Runs the reference of `scenario` with its seed. Slowdowns are over the ideal times of the scenario's own fabric. `None`
/// if it was interrupted.
pub fn reference(scenario: &Scenario, threads: usize, observer: &dyn Observer) -> Result<Option<Summary>, RunError> {
    let scenario = scenario.with_scheme(REFERENCE_SCHEME).unwrap_or_else(|_| scenario.clone());
    let mut own = scenario.setup(scenario.seed)?;
    own.flows.list_templates();
    let setup = reference_setup(&own);
    scenario.check(&setup, &SIMULATOR)?;
    let options = RunOptions { threads: threads.min(scenario.max_threads()).max(1) };
    let made = (SIMULATOR.make)(&scenario);
    let rows = made.run(&setup, options, &mut |_| !observer.interrupted());
    let mut rows = rows.map_err(|error| RunError::Broken(format!("the reference: {error}")))?;
    if rows.interrupted {
        return Ok(None);
    }
    let ideals = flow_rows(&own, &vec![FlowOutcome::default(); own.flows.flows.len()]);
    for (flow, ideal) in rows.flows.iter_mut().zip(ideals) {
        (flow.ideal_rx, flow.ideal_ack) = (ideal.ideal_rx, ideal.ideal_ack);
    }
    let result = RunResult::new(rows, &made.measures());
    Ok(Some(Summary::new(&result, &meta(&scenario, &SIMULATOR, &setup, options.threads))))
}

/// Returns the entries of `plan` with the flows, fabric and clock of the scenario: all but variants that change them.
fn alike(plan: &ComparePlan, scenario: &Scenario) -> Vec<String> {
    let first = plan.seeds.first().copied().unwrap_or(scenario.seed);
    let text = scenario.with_seed(first).without_load_balancer();
    let same = |job: &&crate::compare::Job| job.seed == first && job.scenario.without_load_balancer() == text;
    plan.jobs.iter().filter(same).map(|job| job.scheme.clone()).collect()
}

fn rows(seed: u64, bounds: &Bounds, reference: Option<&Summary>) -> Vec<LimitRow> {
    let mut workloads = vec![ALL.to_string()];
    workloads.extend(reference.iter().flat_map(|summary| summary.workloads.keys().cloned()));
    for limit in &bounds.limits {
        if !workloads.contains(&limit.workload) {
            workloads.push(limit.workload.clone());
        }
    }
    let unfinished = reference.is_some_and(|summary| summary.all.flows.unfinished > 0);
    let row = |workload: &String, metric: &Metric| {
        let limit = bounds.limit(workload, metric.name);
        let value = reference.filter(|_| !unfinished && metric.is_of_flows());
        let row = LimitRow {
            seed,
            workload: workload.clone(),
            metric: metric.name.to_string(),
            bound: limit.map(|limit| limit.value).filter(|value| value.is_finite()),
            by: limit.map(|limit| limit.by.clone()),
            reference: value.and_then(|summary| metric.value(summary, workload)),
        };
        (row.bound.is_some() || row.reference.is_some()).then_some(row)
    };
    let mut rows = vec![];
    for workload in &workloads {
        rows.extend(METRICS.iter().filter_map(|metric| row(workload, metric)));
    }
    rows
}
