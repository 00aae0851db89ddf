use crate::{Comparison, Dataset, Drawn};
use std::collections::BTreeSet;

pub(super) fn missing(data: &Dataset, comparison: Option<&Comparison>) -> Vec<String> {
    let mut lines = vec![];
    lines.extend(comparison.into_iter().flat_map(Comparison::missing_lines).map(|line| format!("{line}.")));
    lines.extend(comparison.and_then(Comparison::machine_bound_line).map(|line| format!("{line}.")));
    if !data.unfinished.is_empty() {
        lines.push(format!("Not finished: {}. Repeat the command to continue.", shortened(&data.unfinished)));
    }
    lines
}

pub(super) fn versions(data: &Dataset) -> Vec<String> {
    let builds: BTreeSet<String> = data.summaries.iter().map(|s| format!("{} ({})", s.version, s.commit)).collect();
    let own = env!("CARGO_PKG_VERSION");
    let mut lines = vec![];
    if builds.len() > 1 {
        let builds: Vec<String> = builds.into_iter().collect();
        lines.push(format!("The runs come from different builds: {}. They may not be comparable.", builds.join(", ")));
    }
    if !data.manifest.version.is_empty() && data.manifest.version != own {
        lines.push(format!("The rows were written by version {}, this page by {own}.", data.manifest.version));
    }
    let scenarios: BTreeSet<&str> = data.summaries.iter().map(|s| s.scenario.as_str()).collect();
    if scenarios.len() > 1 {
        let names: Vec<&str> = scenarios.into_iter().collect();
        lines.push(format!("The runs are of different scenarios: {}.", names.join(", ")));
    }
    lines
}

pub(super) fn skipped(drawn: &Drawn) -> Vec<String> {
    drawn.skipped.iter().map(|reason| format!("Not drawn: {reason}.")).collect()
}

fn shortened(names: &[String]) -> String {
    const MAX_LISTED: usize = 12;
    match names.len() {
        n if n > MAX_LISTED => format!("{} and {} more", names[..MAX_LISTED].join("; "), n - MAX_LISTED),
        _ => names.join("; "),
    }
}
