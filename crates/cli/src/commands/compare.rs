//! `compare`.

use super::{directory, request, run::where_it_lies, some_failed, stem, threads};
use crate::{
    arguments::{Compare, Format},
    backends::{chosen, scenario_on},
    failure::Failure,
    printing::{note, print, print_json, width, wrapped},
    progress::Watch,
};
use anabranch_study::{
    backend::BackendEntry,
    compare::{Compared, Permission, Plan, Request},
    hold::Hold,
    scenario::Scenario,
};
use serde_json::{Value, json};

/// `anabranch compare`.
pub(crate) fn compare(arguments: &Compare, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    let chosen = chosen(&arguments.on, backends)?;
    let scenario = scenario_on(&arguments.scenario, &arguments.on, &chosen)?;
    compare_on(arguments, &scenario, chosen[0])
}

/// The same on one backend.
fn compare_on(arguments: &Compare, scenario: &Scenario, backend: &'static BackendEntry) -> Result<(), Failure> {
    let plan = Plan::new(scenario, &Request { backend, ..request(&arguments.entries) })?;
    let stem = format!("{}-compare", stem(scenario, backend));
    let directory = directory(&arguments.options, &stem, scenario.hash())?;
    let threads = threads(&arguments.options);
    let watch = Watch::new(arguments.options.progress, plan.jobs.iter().map(|job| job.name.clone()).collect());
    let permission = Permission { again: arguments.again, replace: arguments.replace };
    let compared = plan.execute(scenario, &directory, threads, permission, &watch);
    watch.close();
    let compared = compared?;
    let runs = plan.jobs.len();
    if compared.reused > 0 {
        note(&format!("{} of {runs} runs were finished before and not repeated", compared.reused));
    }
    let _hold = Hold::take();
    let failed: Vec<(String, String)> =
        compared.failed.iter().map(|(name, error)| (name.clone(), error.to_string())).collect();
    let Some(comparison) = &compared.comparison else {
        return Err(if compared.interrupted { Failure::Interrupted } else { some_failed(&failed, runs) });
    };
    let page = anabranch_report::report(&directory)?;
    for summary in &compared.summaries {
        for warning in summary.warnings() {
            note(&format!("warning: {}, seed {}: {warning}", summary.scheme, summary.seed));
        }
    }
    match arguments.options.format {
        Format::Json => {
            let broken = |e: serde_json::Error| Failure::Broken(e.to_string());
            let rows = serde_json::to_value(&comparison.rows).map_err(broken)?;
            let summaries = serde_json::to_value(&compared.summaries).map_err(broken)?;
            let mut answer = answer(&plan, &compared, rows, summaries, &directory.to_string_lossy());
            answer["failed"] = failed.iter().map(|(name, error)| json!({ "run": name, "error": error })).collect();
            print_json(&answer);
        }
        Format::Table => print(&format!("{}\n{}", scenario.name, wrapped(&comparison.to_text(width()), width()))),
    }
    where_it_lies(&directory, &page);
    if compared.interrupted {
        note(&format!("partial: {} of {runs} runs are finished; the same command goes on", compared.summaries.len()));
        return Err(Failure::Interrupted);
    }
    if !failed.is_empty() {
        return Err(some_failed(&failed, runs));
    }
    Ok(())
}

fn answer(plan: &Plan, compared: &Compared, rows: Value, runs: Value, directory: &str) -> Value {
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
