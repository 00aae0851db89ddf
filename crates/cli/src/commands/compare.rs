use super::{
    against::{earlier, print_changes},
    agree::{ComparisonRequest, compare_backends, metric_error},
    plan_runs::{Seen, ended, run_plan},
    request::{directory, request, require_finished, runs_failed, stem},
    run::print_result_paths,
    until_decided,
    until_decided::run_until_decided,
};
use crate::{
    BackendArguments, EntryArguments, Failure, Format, RunOptions, ScenarioArguments, Schemes, note, print, print_json,
    scenario_on, select_backends, width, wrapped,
};
use anabranch_report::{Assertion, Checked, JunitCase, junit};
use anabranch_results::{Inputs, OutputFile};
use anabranch_scenario::{BackendEntry, SIMULATOR, Scenario, ScenarioError};
use anabranch_study::{ComparePlan, Compared, ComputeLimits, Hold, Permission, Place, Request, draw, limits::limits};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    #[command(flatten)]
    pub(crate) entries: EntryArguments,
    /// Add seeds until each difference to the baseline is significant, or surely within this share of it, for example 5%; --seeds: seeds of the first test [default: 5]
    #[arg(long, value_name = "SHARE", conflicts_with = "again")]
    pub(crate) until_decided: Option<String>,
    /// Maximum number of seeds with --until-decided
    #[arg(long, value_name = "N", default_value_t = 40, requires = "until_decided")]
    pub(crate) max_seeds: u64,
    /// Repeat finished runs too
    #[arg(long)]
    pub(crate) again: bool,
    /// Replace tables of another scenario in the directory; its runs stay
    #[arg(long)]
    pub(crate) replace: bool,
    /// Exit with 1 if a flow did not finish
    #[arg(long)]
    pub(crate) strict: bool,
    /// Add what no load balancer can beat and a fabric without contention: columns over bound and over reference
    #[arg(long)]
    pub(crate) bound: bool,
    /// Exit with 1 unless this holds, for example 'prime.slowdown_p99 < 0.9 * ecmp.slowdown_p99'; repeatable
    #[arg(long = "assert", value_name = "EXPR")]
    pub(crate) assertions: Vec<String>,
    /// Print what changed since the comparison or run in DIR, per scheme and metric
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Option<PathBuf>,
    /// Exit with 1 if a time of flows or jobs is significantly higher than in --against by more than this share, for example 5%
    #[arg(long, value_name = "SHARE", requires = "against")]
    pub(crate) fail_on_regression: Option<String>,
    /// Write the checks of --assert and --fail-on-regression to a file in JUnit's format; --replace: over an earlier one
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

pub(crate) fn compare(arguments: &Compare, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    let chosen = select_backends(&arguments.on, backends)?;
    let scenario = scenario_on(&arguments.scenario, &arguments.on, &chosen, Schemes::Named)?;
    match chosen.as_slice() {
        [backend] => compare_on(arguments, &scenario, backend),
        several => {
            let alone = [
                (
                    arguments.until_decided.is_some(),
                    "--until-decided",
                    "one",
                    "one with --backend NAME, or leave --until-decided out",
                ),
                (arguments.bound, "--bound", "the simulator alone", "it with --backend sim, or leave --bound out"),
                (arguments.against.is_some(), "--against", "one", "one with --backend NAME"),
                (!arguments.assertions.is_empty(), "--assert", "one", "one with --backend NAME"),
                (arguments.junit.is_some(), "--junit", "one", "one with --backend NAME"),
            ];
            if let Some((_, option, expected, remedy)) = alone.into_iter().find(|(is_given, ..)| *is_given) {
                let message = format!("{option}: found several backends, expected {expected}");
                return Err(ScenarioError::new(message).help(format!("name {remedy}")).into());
            }
            let requested = ComparisonRequest {
                request: request(&arguments.entries),
                metric: None,
                permission: permission(arguments),
                options: &arguments.options,
                strict: arguments.strict,
            };
            compare_backends(&scenario, several, &requested).map(drop)
        }
    }
}

fn permission(arguments: &Compare) -> Permission {
    Permission { again: arguments.again, replace: arguments.replace }
}

fn compare_on(arguments: &Compare, scenario: &Scenario, backend: &'static BackendEntry) -> Result<(), Failure> {
    if arguments.bound && *backend != SIMULATOR {
        let message = format!("--bound: found the backend {}, expected the simulator", backend.name);
        return Err(ScenarioError::new(message).help("name it with --backend sim, or leave --bound out").into());
    }
    let sequential = until_decided::plan(arguments)?;
    let fixed = ComparePlan::new(scenario, &Request { backend, ..request(&arguments.entries) })?;
    let workloads: Vec<String> = scenario.workloads.iter().flat_map(|workload| workload.names()).collect();
    let parse = |text: &String| assertion(text, &fixed.schemes, &workloads);
    let assertions = arguments.assertions.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let stem = format!("{}-compare", stem(scenario, backend));
    let directory = directory(&arguments.options, &stem, scenario.hash())?;
    let help = "for example --fail-on-regression 5%: what is significantly higher by more than 5 % fails";
    let allowed = arguments
        .fail_on_regression
        .as_ref()
        .map(|text| until_decided::share("fail-on-regression", text, help))
        .transpose()?;
    let junit_file = arguments
        .junit
        .as_ref()
        .map(|file| OutputFile::new(file, arguments.replace, &Inputs::of(scenario.inputs())))
        .transpose()?;
    if junit_file.is_some() && assertions.is_empty() && allowed.is_none() {
        return Err(ScenarioError::new("--junit: found no check to write")
            .help("add --assert, or --against with --fail-on-regression")
            .into());
    }
    let earlier = match &arguments.against {
        Some(old) => Some((old, earlier(old, &directory, scenario, backend, &fixed.schemes, &fixed.seeds)?)),
        None => None,
    };
    let (plan, compared) = match &sequential {
        Some(sequential) => run_until_decided(arguments, scenario, backend, sequential, &directory)?,
        None => {
            let plan = ComparePlan { with_limits: arguments.bound.then_some(limits as ComputeLimits), ..fixed };
            let options = &arguments.options;
            let compared = run_plan(
                &plan,
                scenario,
                &Place::one(&directory),
                permission(arguments),
                options,
                &mut Seen::default(),
            )?;
            (plan, compared)
        }
    };
    let runs = plan.jobs.len();
    let _hold = Hold::take();
    let Some(comparison) = &compared.comparison else {
        return Err(if compared.interrupted { Failure::Interrupted } else { runs_failed(&compared.failed, runs) });
    };
    let page = draw(&directory)?;
    let changes = earlier.map(|(old, earlier)| (old, earlier.changes(&compared.summaries, comparison)));
    match arguments.options.format {
        Format::Json => {
            let broken = |e: serde_json::Error| Failure::Broken(e.to_string());
            let rows = serde_json::to_value(&comparison.rows).map_err(broken)?;
            let summaries = serde_json::to_value(&compared.summaries).map_err(broken)?;
            let mut result = result(&plan, &compared, rows, summaries, &directory.to_string_lossy());
            if let Some(plan) = &comparison.until_decided {
                result["until_decided"] = json!({ "share": plan.share, "max_seeds": plan.max_seeds, "looks": plan.looks,
                                                  "undecided": comparison.undecided });
            }
            if let Some((old, changes)) = &changes {
                result["against"] = json!({ "directory": old, "equal": changes.are_none(), "missing": changes.missing,
                                            "unmatched": changes.unmatched, "rows": changes.rows });
            }
            result["failed"] =
                compared.failed.iter().map(|(name, error)| json!({ "run": name, "error": error })).collect();
            print_json(&result);
        }
        Format::Table => {
            print(&format!("{}\n{}", scenario.name, wrapped(&comparison.to_text(width()), width())));
            if let Some((old, changes)) = &changes {
                print_changes(old, changes, comparison);
            }
        }
    }
    print_result_paths(&directory, &page);
    let rows = plan.side(&directory, &compared).runs;
    let checked: Vec<Checked> =
        assertions.iter().map(|assertion| assertion.check(comparison, &rows)).collect::<Result<_, _>>()?;
    checked.iter().for_each(|checked| note(&assertion_text(checked)));
    let of_assertion = |(checked, text): (&Checked, &String)| JunitCase {
        class: "assert".into(),
        name: text.clone(),
        failure: (checked.holds != Some(true)).then(|| checked.text.clone()),
    };
    let mut cases: Vec<JunitCase> = checked.iter().zip(&arguments.assertions).map(of_assertion).collect();
    let judged =
        changes.as_ref().zip(allowed).map(|((_, changes), share)| changes.regressions(share)).unwrap_or_default();
    cases.extend(judged.iter().map(|(row, failure)| JunitCase {
        class: format!("{}.{}", row.scheme, comparison.label(&row.workload)),
        name: row.metric.into(),
        failure: failure.clone(),
    }));
    if let Some(file) = junit_file {
        file.write_all(junit(&scenario.name, &cases).as_bytes())?;
    }
    ended(&compared, runs)?;
    if arguments.strict {
        require_finished(&compared.summaries)?;
    }
    let regressions: Vec<String> = judged
        .iter()
        .filter_map(|(row, reason)| {
            Some(format!(
                "regression: {}.{}.{}: {}",
                row.scheme,
                comparison.label(&row.workload),
                row.metric,
                reason.as_ref()?
            ))
        })
        .collect();
    regressions.iter().for_each(|line| note(line));
    let failing = checked.iter().filter(|checked| checked.holds != Some(true)).count();
    let mut failures = vec![];
    if failing > 0 {
        failures.push(format!("--assert: {failing} of {} do not hold", checked.len()));
    }
    if !regressions.is_empty() {
        failures.push(format!("--fail-on-regression: {} of {} times are regressions", regressions.len(), judged.len()));
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Check(failures.join("; "))) }
}

fn assertion(text: &str, schemes: &[String], workloads: &[String]) -> Result<Assertion, ScenarioError> {
    Assertion::parse(text, schemes, workloads).map_err(|error| metric_error(&format!("--assert '{text}'"), &error))
}

fn assertion_text(checked: &Checked) -> String {
    let word = match checked.holds {
        Some(true) => "holds",
        Some(false) => "fails",
        None => "unknown",
    };
    format!("assertion {word}: {}", checked.text)
}

fn result(plan: &ComparePlan, compared: &Compared, rows: Value, runs: Value, directory: &str) -> Value {
    json!({
        "scenario": compared.comparison.as_ref().map(|c| c.scenario.clone()),
        "schemes": plan.schemes,
        "seeds": plan.seeds,
        "baseline": plan.baseline,
        "interrupted": compared.interrupted,
        "reused_runs": compared.reused,
        "comparison": rows,
        "runs": runs,
        "directory": directory,
    })
}
