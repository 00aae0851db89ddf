//! `agree`, and `run` and `compare` on several backends.

use super::{
    plan_runs::{Seen, ended, run_plan},
    request::{directory, request, runs_failed, unfinished, unfinished_of},
    run::print_result_paths,
};
use crate::{
    BackendArguments, EntryArguments, Failure, Format, ProgressDisplay, RunOptions, ScenarioArguments, Schemes, Table,
    complete, note, print, print_json, scenario_on, select_backends, width, wrapped,
};
use anabranch_report::{Agreement, MetricError, Side, metric::Metric, write_agreement};
use anabranch_results::{Inputs, significant_digits};
use anabranch_scenario::{BackendEntry, Scenario, ScenarioError};
use anabranch_study::{ComparePlan, Hold, Permission, Place, Request, begin_backends, draw};
use serde_json::json;
use std::path::Path;

#[derive(Debug, clap::Args)]
pub(crate) struct Agree {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    #[command(flatten)]
    pub(crate) entries: EntryArguments,
    /// Metric to judge, for example slowdown_p99 [default: completion where flows wait for each other, else fct_mean]
    #[arg(long, value_name = "NAME", add = complete::metrics())]
    pub(crate) metric: Option<String>,
    /// Repeat finished runs too
    #[arg(long)]
    pub(crate) again: bool,
    /// Replace tables of another scenario in the directory; its runs stay
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

pub(super) struct ComparisonRequest<'a> {
    pub(super) request: Request,
    /// Metric to judge; `None`: completion time where flows wait for each other, else mean FCT.
    pub(super) metric: Option<Metric>,
    pub(super) permission: Permission,
    pub(super) options: &'a RunOptions,
    /// Unfinished flows are a failure.
    pub(super) strict: bool,
}

pub(crate) fn agree(arguments: &Agree, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    let mut on = arguments.on.clone();
    if on.backend.is_empty() {
        on.backend = backends.iter().take(2).map(|backend| backend.name.to_string()).collect();
    }
    let chosen = select_backends(&on, backends)?;
    if chosen.len() < 2 {
        let known: Vec<&str> = backends.iter().map(|backend| backend.name).collect();
        let message =
            format!("--backend: found `{}` only, expected two or more of {}", chosen[0].name, known.join(", "));
        return Err(Failure::input(message));
    }
    let metric = arguments.metric.as_deref().map(metric).transpose()?;
    let scenario = scenario_on(&arguments.scenario, &on, &chosen, Schemes::Named)?;
    let permission = Permission { again: arguments.again, replace: arguments.replace };
    let requested = ComparisonRequest {
        request: request(&arguments.entries),
        metric,
        permission,
        options: &arguments.options,
        strict: false,
    };
    let agreement = compare_backends(&scenario, &chosen, &requested)?;
    match agreement.is_apart() {
        true => {
            let apart = agreement.rows.iter().filter(|row| row.verdict == anabranch_report::Verdict::Apart);
            let names: Vec<&str> = apart.map(|row| row.scheme.as_str()).collect();
            Err(Failure::Check(format!("the verdict is `apart` for {}", names.join(", "))))
        }
        false => Ok(()),
    }
}

fn metric(name: &str) -> Result<Metric, ScenarioError> {
    Metric::read(name).map_err(|error| metric_error("--metric", &error))
}

/// Returns the message for an option with a metric that does not exist.
pub(super) fn metric_error(option: &str, error: &MetricError) -> ScenarioError {
    let message = ScenarioError::new(format!("{option}: {error}"));
    error.nearest.as_ref().map_or(message.clone(), |near| message.help(format!("did you mean `{near}`?")))
}

pub(super) fn compare_backends(
    scenario: &Scenario,
    backends: &[&'static BackendEntry],
    requested: &ComparisonRequest<'_>,
) -> Result<Agreement, Failure> {
    let plans =
        backends.iter().map(|backend| ComparePlan::new(scenario, &Request { backend, ..requested.request.clone() }));
    let plans: Vec<ComparePlan> = plans.collect::<Result<_, _>>()?;
    let names: Vec<&str> = backends.iter().map(|backend| backend.name).collect();
    let stem = format!("{}-{}", scenario.stem, names.join("-"));
    let directory = directory(requested.options, &stem, scenario.hash())?;
    for plan in &plans {
        let watch = ProgressDisplay::new(requested.options.progress, vec![]);
        let checked = plan.check(&watch);
        watch.close();
        checked.map_err(|error| error.of(&format!("backend `{}`", plan.backend.name)))?;
    }
    let joined = ComparePlan::joined(&plans, scenario);
    begin_backends(&directory, &joined, &scenario.inputs(), requested.permission.replace)?;
    let (mut sides, mut open): (Vec<Side>, Vec<String>) = (Vec::new(), Vec::new());
    for plan in &plans {
        note(&format!("on `{}`:", plan.backend.name));
        let place = Place::side(&directory, plan.backend.name);
        let compared = run_plan(plan, scenario, &place, requested.permission, requested.options, &mut Seen::default())?;
        if compared.comparison.is_none() {
            let runs = plan.jobs.len();
            return Err(if compared.interrupted { Failure::Interrupted } else { runs_failed(&compared.failed, runs) });
        }
        {
            let _hold = Hold::take();
            draw(place.tables())?;
        }
        sides.push(plan.side(place.tables(), &compared));
        open.extend(unfinished_of(&compared.summaries).map(|line| format!("{line} on {}", plan.backend.name)));
        ended(&compared, plan.jobs.len())?;
    }
    let inputs = Inputs::of(scenario.inputs());
    let (schemes, metric) = (&plans[0].schemes, requested.metric.as_ref());
    let unlike = unlike(scenario, backends)?;
    let options = requested.options;
    let agreement = write_and_print_agreement(&sides, schemes, metric, unlike, &directory, inputs, options)?;
    if requested.strict { unfinished(&open).map(|()| agreement) } else { Ok(agreement) }
}

/// Returns what each backend does otherwise than a simulation of `scenario`.
pub(super) fn unlike(scenario: &Scenario, backends: &[&BackendEntry]) -> Result<Vec<String>, ScenarioError> {
    let setup = scenario.setup(scenario.seed)?;
    let of = |backend: &&BackendEntry| {
        let differences = (backend.make)(scenario).unlike(&setup);
        differences.into_iter().map(|what| format!("On `{}`: {what}.", backend.name)).collect::<Vec<_>>()
    };
    Ok(backends.iter().flat_map(of).collect())
}

pub(super) fn write_and_print_agreement(
    sides: &[Side],
    schemes: &[String],
    metric: Option<&Metric>,
    unlike: Vec<String>,
    directory: &Path,
    inputs: Inputs,
    options: &RunOptions,
) -> Result<Agreement, Failure> {
    let _hold = Hold::take();
    let agreement = Agreement { unlike, ..Agreement::new(sides, schemes, metric)? };
    let page = write_agreement(directory, &agreement, sides, inputs)?;
    match options.format {
        Format::Json => print_json(&json!({ "agreement": agreement, "directory": directory.to_string_lossy() })),
        Format::Table => print(&format!("{}\n{}", agreement.scenario, text(&agreement))),
    }
    print_result_paths(directory, &page);
    Ok(agreement)
}

fn text(agreement: &Agreement) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_string(), |value| significant_digits(value, 4));
    let ratio = |value: Option<f64>| value.map_or_else(|| "-".to_string(), |value| significant_digits(value, 3));
    let row = |row: &anabranch_report::AgreementRow| {
        let interval = match (row.ratio_ci95_low, row.ratio_ci95_high) {
            (Some(low), Some(high)) => format!("{} to {}", ratio(Some(low)), ratio(Some(high))),
            _ => "-".to_string(),
        };
        vec![
            row.scheme.clone(),
            row.backend.clone(),
            number(row.reference),
            number(row.value),
            ratio(row.ratio),
            interval,
            row.seeds.to_string(),
            row.verdict.word().to_string(),
        ]
    };
    let header = ["scheme", "backend", &agreement.backends[0], "value", "ratio", "95 % interval", "seeds", "verdict"];
    let unit = if agreement.unit.is_empty() { String::new() } else { format!(" ({})", agreement.unit) };
    let head = format!("{}{unit}, ratio to `{}`\n\n", agreement.title, agreement.backends[0]);
    let table = Table::new(&header, agreement.rows.iter().map(row).collect()).full_table_in("agreement.csv").draw();
    let notes: Vec<String> =
        agreement.notes.iter().chain(&agreement.unlike).map(|note| wrapped(note, width())).collect();
    let notes = if notes.is_empty() { String::new() } else { format!("\n{}\n", notes.join("\n")) };
    head + &table + &notes
}
