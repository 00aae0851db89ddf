//! Sentences about tests, the same in tables, pages and sweeps.

use crate::{Comparison, ComparisonRow};
use anabranch_results::{RunStatus, list, significant_digits, significant_digits_trimmed, thousands};
use anabranch_statistics::{MIN_PAIRS, Method, Sequential, about_seeds};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const INTERVAL: &str = "± half of the 95 % confidence interval (−/+ to its ends where they differ)";

/// Formats a confidence interval as `95 % CI 3.15 to 3.27`.
pub(crate) fn interval(low: f64, high: f64) -> String {
    format!("95 % CI {} to {}", significant_digits(low, 3), significant_digits(high, 3))
}

/// Returns how the schemes of `rows` were tested against `baseline`; `None` where none was. `rows` are those of the main
/// metric, of one comparison or of all points of a sweep.
pub(crate) fn tests(rows: &[&ComparisonRow], baseline: &str) -> Option<String> {
    let methods: BTreeSet<Method> =
        rows.iter().filter(|row| row.p_value.is_some()).filter_map(|row| row.test).collect();
    // Members of the largest family: the comparisons of one workload, seeds and metric.
    let others = rows.iter().filter(|row| row.scheme != baseline && row.difference.is_some());
    let names: BTreeSet<&str> = others.map(|row| row.scheme.as_str()).collect();
    let family = names.len();
    let seeds: BTreeSet<usize> = rows.iter().filter(|row| row.p_value.is_some()).map(|row| row.seeds).collect();
    let how = match (methods.contains(&Method::Blocked), methods.contains(&Method::Paired)) {
        (true, false) => match seeds.iter().copied().collect::<Vec<_>>().as_slice() {
            [seeds] => format!(
                "t-tests blocked over seeds with the pooled error ({} degrees of freedom)",
                family * (seeds - 1)
            ),
            _ => "t-tests blocked over seeds with the pooled error".to_string(),
        },
        (true, true) => {
            "t-tests, blocked over seeds where the variances allow it, else paired (column `test`)".to_string()
        }
        (false, true) if family == 1 => "paired t-test".to_string(),
        (false, true) => "paired t-tests, since the variances differ too much to pool".to_string(),
        (false, false) if methods.is_empty() => return None,
        (false, false) => String::new(),
    };
    let separated = "one value at every seed against values beyond it: p = 2/4^n for n seeds".to_string();
    let separated = methods.contains(&Method::Separated).then_some(separated);
    let how: Vec<String> = [how].into_iter().filter(|how| !how.is_empty()).chain(separated).collect();
    let correction = match family {
        1 => String::new(),
        family => format!(", Holm's correction over the {family} comparisons"),
    };
    Some(format!("tests against {baseline}: {}{correction}, 5 %", how.join("; ")))
}

/// Returns what letters mean.
pub(crate) const LETTERS: &str =
    "schemes that share a letter do not differ significantly (paired t-tests over all pairs, Holm's correction, 5 %)";

/// Returns the rows of the main metric of every workload that is shown.
pub(crate) fn main_rows(comparison: &Comparison) -> Vec<&ComparisonRow> {
    let of = |workload: &str| {
        let metric = comparison.main_metric_of(workload);
        comparison.schemes.iter().filter_map(move |scheme| comparison.row(workload, scheme, metric)).collect::<Vec<_>>()
    };
    comparison.shown(false).into_iter().flat_map(of).collect()
}

/// Returns `true` if there are letters.
pub(crate) fn has_letters(comparison: &Comparison) -> bool {
    main_rows(comparison).iter().any(|row| !row.group.is_empty())
}

/// Returns how the schemes were tested against the baseline; `None` where none was.
pub(crate) fn tests_line(comparison: &Comparison) -> Option<String> {
    tests(&main_rows(comparison), &comparison.baseline)
}

/// Returns how many seeds would decide the differences to the baseline that are not significant.
pub(crate) fn needed_line(comparison: &Comparison) -> Option<String> {
    needed(&main_rows(comparison), &comparison.baseline)
}

/// Returns how the number of seeds was chosen, if the differences chose it.
pub(crate) fn sequential_line(comparison: &Comparison) -> Option<String> {
    let plan = comparison.until_decided.as_ref()?;
    let names: Vec<&str> = comparison.undecided.iter().map(|(_, scheme)| scheme.as_str()).collect();
    let open = match names.as_slice() {
        [] => "all differences are decided".to_string(),
        _ => format!("undecided: {}", list(dedup(names))),
    };
    Some(format!("{}; {open}", in_words(plan, comparison.compared_seeds.len())))
}

/// Returns, per scheme that is not compared, why.
pub(crate) fn censored_lines(comparison: &Comparison) -> Vec<String> {
    let mut worst: BTreeMap<&str, (u64, Option<RunStatus>)> = BTreeMap::new();
    for row in comparison.rows.iter().filter(|row| row.test == Some(Method::Censored)) {
        let own = worst.entry(&row.scheme).or_default();
        *own = (own.0.max(row.unfinished_flows), own.1.max(row.status));
    }
    let line = |scheme: &String| {
        let (flows, status) = worst.get(scheme.as_str())?;
        let status = status.filter(|status| *status != RunStatus::Finished);
        let status = status.map_or(String::new(), |status| format!(" ({})", status.word()));
        let flows = format!("{} measured flow{}", thousands(&flows.to_string()), if *flows == 1 { "" } else { "s" });
        let effect = match *scheme == comparison.baseline {
            true => {
                "; it is the baseline, so no scheme has a ratio, a difference or a test (--baseline A names another)"
            }
            false => "",
        };
        Some(format!(
            "{scheme} is not compared: {flows} did not finish{status}, so its figures, of \
             the others alone, are too good{effect}"
        ))
    };
    comparison.schemes.iter().filter_map(line).collect()
}

fn dedup(mut names: Vec<&str>) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// Returns the plan of a sequential comparison after `seeds` seeds.
pub(crate) fn in_words(plan: &Sequential, seeds: usize) -> String {
    let looks: Vec<String> = plan.looks_in(seeds).iter().map(|look| look.0.to_string()).collect();
    format!(
        "seeds were added until every difference was significant or surely within {} %, up to {}: tested after {} seeds, each \
         time at a part of the 5 % (Lan and DeMets 1983), the last time at {} %",
        significant_digits_trimmed(plan.share * 100.0, 3),
        plan.max_seeds,
        looks.join(", "),
        significant_digits_trimmed(plan.level_percent(seeds), 2)
    )
}

/// Returns how many seeds would decide the differences of `rows` to `baseline` that are not significant.
pub(crate) fn needed(rows: &[&ComparisonRow], baseline: &str) -> Option<String> {
    let open: Vec<&&ComparisonRow> = rows
        .iter()
        .filter(|row| row.significant == Some(false) && matches!(row.test, Some(Method::Blocked | Method::Paired)))
        .collect();
    if open.is_empty() {
        return None;
    }
    // Per scheme the largest number, `None` being beyond all.
    let mut most: Vec<(&str, Option<usize>)> = vec![];
    for row in open {
        match most.iter_mut().find(|(name, _)| *name == row.scheme) {
            Some((_, seeds)) => *seeds = seeds.zip(row.seeds_needed).map(|(a, b)| a.max(b)),
            None => most.push((&row.scheme, row.seeds_needed)),
        }
    }
    let parts: Vec<String> = most.iter().map(|(name, seeds)| format!("{name} needs {}", about_seeds(*seeds))).collect();
    Some(format!(
        "seeds for a significant difference to {baseline} (80 % power, at the difference and variance observed): {}",
        parts.join(", ")
    ))
}

/// Returns why no pair differs significantly: too few seeds for a test, or for the differences observed, or one scheme alone
/// has results.
pub(crate) fn undecided(rows: &[&ComparisonRow]) -> String {
    let known = rows.iter().filter(|row| row.mean.is_some()).map(|row| row.scheme.as_str());
    if let [scheme] = known.collect::<BTreeSet<&str>>().into_iter().collect::<Vec<_>>().as_slice() {
        return format!("nothing to compare: {scheme} alone has results so far");
    }
    // Without a baseline that finished, the others are still compared with each other.
    let compared = |row: &&&ComparisonRow| row.p_value.is_some() || row.test == Some(Method::BaselineCensored);
    match rows.iter().find(compared) {
        Some(row) if row.seeds >= MIN_PAIRS => {
            "no letters: in the main metric no two schemes differ significantly with these seeds".to_string()
        }
        _ => format!("too few seeds to compare schemes: a test needs {MIN_PAIRS}, a decision five or more"),
    }
}
