//! `compare --until-decided`: adds seeds until the differences to the baseline are decided.

use super::{
    compare::Compare,
    plan_runs::{Seen, run_plan},
    request::request,
};
use crate::{Failure, note};
use anabranch_results::Plan;
use anabranch_scenario::{BackendEntry, MAX_SEEDS, Scenario, ScenarioError};
use anabranch_statistics::{MIN_PAIRS, Sequential};
use anabranch_study::{ComparePlan, Compared, ComputeLimits, Permission, Place, Request, limits::limits};
use std::path::Path;

/// Seeds of the first test, unless `--seeds` names them.
const FIRST: u64 = 5;

/// Reads a share such as `5%` or `0.05`.
/// Parses a share of the baseline, `5%` or `0.05`.
pub(super) fn share(option: &str, text: &str, help: &str) -> Result<f64, ScenarioError> {
    let (number, scale) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |number| (number.trim(), 100.0));
    match number.parse::<f64>().map(|number| number / scale) {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err(ScenarioError::new(format!("--{option} {text}: expected a share above 0 and below 100 %")).help(help)),
    }
}

/// Returns the plan of the options; `None` for a fixed number of seeds.
pub(super) fn plan(arguments: &Compare) -> Result<Option<Sequential>, ScenarioError> {
    let Some(text) = &arguments.until_decided else { return Ok(None) };
    let help = "for example --until-decided 5%: a difference is decided if it is significant, or surely within 5 % of the baseline";
    let share = share("until-decided", text, help)?;
    let fewest = MIN_PAIRS as u64;
    let first = arguments.entries.seeds.unwrap_or_else(|| FIRST.min(arguments.max_seeds));
    if first < fewest {
        return Err(ScenarioError::new(format!("--seeds {first}: a test needs at least {fewest} seeds"))
            .help("leave --seeds out, or give the number of seeds of the first test"));
    }
    if arguments.max_seeds < first || arguments.max_seeds > MAX_SEEDS {
        let message = format!(
            "--max-seeds {}: expected from {first}, the seeds of the first test, to {MAX_SEEDS}",
            arguments.max_seeds
        );
        return Err(ScenarioError::new(message));
    }
    Ok(Some(Sequential::new(share, first, arguments.max_seeds)))
}

/// Refuses results of another plan: a plan that follows from results has no error rate. Returns the number of seeds that
/// `directory` has.
fn admit(sequential: &Sequential, directory: &Path) -> Result<u64, Failure> {
    let plan = Plan::read(directory).ok().flatten().unwrap_or_default();
    match plan.until_decided.or(plan.decided_before) {
        Some(there) if there != *sequential => {
            let first = there.looks.first().copied().unwrap_or_default();
            let message = format!(
                "{} was begun with --until-decided {}% --seeds {first} --max-seeds {}; a plan that changes once results are known has no error rate",
                directory.display(),
                there.share * 100.0,
                there.max_seeds
            );
            Err(ScenarioError::new(message)
                .help("give these options again to continue, or another directory with --out DIR")
                .into())
        }
        _ => Ok(plan.seeds.len() as u64),
    }
}

/// Runs `sequential`, test by test, until all differences are decided. Returns the last plan and its outcome.
pub(super) fn run_until_decided(
    arguments: &Compare,
    scenario: &Scenario,
    backend: &'static BackendEntry,
    sequential: &Sequential,
    directory: &Path,
) -> Result<(ComparePlan, Compared), Failure> {
    let there = admit(sequential, directory)?;
    let mut permission = Permission { again: false, replace: arguments.replace };
    let mut seen = Seen::default();
    // What is there was tested; the first test of this command has all of it.
    let begun = |look: &&u64| **look < there && **look < sequential.max_seeds;
    let mut looks = sequential.looks.iter().skip_while(begun).peekable();
    loop {
        let seeds = looks.next().copied();
        let asked = Request { backend, seeds, ..request(&arguments.entries) };
        let until_decided = Some(sequential.clone());
        let plan = ComparePlan {
            until_decided,
            with_limits: arguments.bound.then_some(limits as ComputeLimits),
            ..ComparePlan::new(scenario, &asked)?
        };
        if plan.schemes.len() < 2 {
            return Err(ScenarioError::new("--until-decided: found one load balancer, nothing to decide")
                .help("give several with --schemes A,B,...")
                .into());
        }
        let compared = run_plan(&plan, scenario, &Place::one(directory), permission, &arguments.options, &mut seen)?;
        permission.replace = false;
        let undecided =
            compared.comparison.as_ref().map(|comparison| comparison.undecided.as_slice()).unwrap_or_default();
        let (Some(next), false) = (looks.peek(), undecided.is_empty()) else { return Ok((plan, compared)) };
        if compared.interrupted || !compared.failed.is_empty() {
            return Ok((plan, compared));
        }
        let mut names: Vec<&str> = undecided.iter().map(|(_, scheme)| scheme.as_str()).collect();
        names.dedup();
        note(&format!(
            "{} seeds do not decide {}; going on to {next} of at most {}",
            plan.seeds.len(),
            names.join(", "),
            sequential.max_seeds
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        let share = |text: &str| share("until-decided", text, "");
        assert_eq!((share("5%").unwrap(), share("0.05").unwrap(), share(" 2.5 %").unwrap()), (0.05, 0.05, 0.025));
        for wrong in ["0", "100%", "5", "x", "-1%", "%", "NaN"] {
            let error = share(wrong).unwrap_err().to_string();
            assert!(error.contains("expected a share above 0"), "{wrong}: {error}");
        }
    }
}
