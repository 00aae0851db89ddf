//! `compare --against`: what changed since an earlier comparison.

use crate::{Failure, Table, note, print, width, wrapped};
use anabranch_report::{Change, ChangeRow, Changes, Comparison};
use anabranch_results::{Manifest, ResultKind, Summary, check_results, read_runs, significant_digits};
use anabranch_scenario::{BackendEntry, COMMIT, Scenario, ScenarioError, VERSION};
use std::{collections::BTreeMap, path::Path};
use toml::{Table as Toml, Value};

/// Sections that decide which flows there are: results of others are not comparable.
const FLOWS: [&str; 2] = ["topology", "workload"];
/// Maximum number of changed keys that a note names.
const NAMED: usize = 6;

/// Earlier results.
pub(super) struct Earlier {
    runs: Vec<Summary>,
    manifest: Manifest,
    /// Keys of the scenario that differ: key, earlier, now.
    changed: Vec<String>,
}

/// Reads the results in `old`, and checks that `scenario` with `schemes` and `seeds` can be compared with them.
/// Fails where they cannot be read, or are not comparable.
pub(super) fn earlier(
    old: &Path,
    directory: &Path,
    scenario: &Scenario,
    backend: &BackendEntry,
    schemes: &[String],
    seeds: &[u64],
) -> Result<Earlier, Failure> {
    let wrong = |found: String, remedy: String| {
        Err(Failure::from(ScenarioError::new(format!("--against {}: {found}", old.display())).help(remedy)))
    };
    if !old.is_dir() {
        return wrong("directory does not exist".into(), "give the --out directory of an earlier comparison".into());
    }
    if std::fs::canonicalize(old).ok().is_some_and(|old| std::fs::canonicalize(directory).ok() == Some(old)) {
        return wrong(
            "this is the directory of this comparison".into(),
            "give another directory for the new results with --out DIR".into(),
        );
    }
    let Some(manifest) = Manifest::read(old)? else {
        return wrong("it has no results".into(), "give the --out directory of an earlier comparison".into());
    };
    if !matches!(manifest.kind(), ResultKind::Comparison | ResultKind::Run) {
        return wrong(
            format!("found {}, expected a comparison or a run", manifest.kind()),
            "give the --out directory of compare or run".into(),
        );
    }
    if manifest.backend != backend.name {
        return wrong(
            format!("its runs are of the backend `{}`, these of `{}`", manifest.backend, backend.name),
            format!("run this comparison with --backend {}", manifest.backend),
        );
    }
    let (was, is) = (flat(&manifest.scenario), flat(&scenario.to_toml()));
    let is_of_flows = |key: &&String| FLOWS.iter().any(|section| key.split(['.', '[']).next() == Some(section));
    let mut changed = Vec::new();
    for key in was.keys().chain(is.keys().filter(|key| !was.contains_key(*key))) {
        let (before, now) = (was.get(key), is.get(key));
        // A key that one version lacks has its default in the other.
        let is_new = before.is_none() || now.is_none();
        if before == now || ["name", "seed"].contains(&key.as_str()) || key.starts_with("compare") {
            continue;
        }
        let word = |value: Option<&String>| value.map_or("-".to_string(), Clone::clone);
        if is_of_flows(&key) && !(is_new && manifest.version != VERSION) {
            return wrong(
                format!("its flows differ: `{key}` was {}, and is {}", word(before), word(now)),
                "compare results of the same topology and workloads".into(),
            );
        }
        // Parameters of the scheme in use follow from --schemes.
        if !key.starts_with("load_balancer.scheme") && !is_new {
            changed.push(format!("{key} {} to {}", word(before), word(now)));
        }
    }
    let runs: Vec<Summary> = read_runs(old)?.into_iter().map(|(summary, _)| summary).collect();
    let known: Vec<String> = runs.iter().map(|run| run.scheme.clone()).collect();
    if !schemes.iter().any(|scheme| known.contains(scheme)) {
        let mut known = known;
        known.dedup();
        return wrong(
            format!("it has none of the load balancers {}", schemes.join(", ")),
            format!("its load balancers are {}", known.join(", ")),
        );
    }
    if !runs.iter().any(|run| seeds.contains(&run.seed)) {
        let mut there: Vec<u64> = runs.iter().map(|run| run.seed).collect();
        there.sort_unstable();
        let ends = format!("{} to {}", there.first().unwrap_or(&0), there.last().unwrap_or(&0));
        return wrong("no seed is in both".into(), format!("its seeds are {ends}; give --seed and --seeds of it"));
    }
    check_results(old)?;
    Ok(Earlier { runs, manifest, changed })
}

/// Returns the leaves of a scenario by dotted key.
fn flat(text: &str) -> BTreeMap<String, String> {
    fn walk(value: &Value, path: &str, found: &mut BTreeMap<String, String>) {
        let below = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
        match value {
            Value::Table(table) => table.iter().for_each(|(key, value)| walk(value, &below(key), found)),
            Value::Array(items) if items.iter().all(Value::is_table) && !items.is_empty() => {
                items.iter().enumerate().for_each(|(at, item)| walk(item, &format!("{path}[{at}]"), found));
            }
            leaf => {
                found.insert(path.to_string(), leaf.to_string());
            }
        }
    }
    let mut found = BTreeMap::new();
    if let Ok(table) = text.parse::<Toml>() {
        walk(&Value::Table(table), "", &mut found);
    }
    found
}

impl Earlier {
    /// Compares `now` with these results, and warns of what they lack.
    pub(super) fn changes(&self, now: &[Summary], comparison: &Comparison) -> Changes {
        let changes = Changes::new(&self.runs, now, comparison);
        let build = match &self.manifest {
            old if old.version != VERSION => Some(format!("version {}", old.version)),
            old if old.commit != COMMIT => Some(format!("commit {}", old.commit)),
            _ => None,
        };
        if !changes.missing.is_empty() {
            let of = build.clone().map_or_else(String::new, |build| format!(", of {build},"));
            note(&format!("warning: --against: the earlier results{of} lack {}", changes.missing.join(", ")));
        } else if let Some(build) = build {
            note(&format!("--against: the earlier results are of {build}"));
        }
        if !changes.unmatched.is_empty() {
            note(&format!("--against: in one of both only: {}", changes.unmatched.join(", ")));
        }
        if !self.changed.is_empty() {
            let more = self.changed.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let named: Vec<&str> = self.changed.iter().take(NAMED).map(String::as_str).collect();
            note(&format!("--against: settings changed: {}{more}", named.join(", ")));
        }
        changes
    }
}

/// Prints the changes: what is ranked, and what changed.
pub(super) fn print_changes(old: &Path, changes: &Changes, comparison: &Comparison) {
    let since = format!("\nSince {}", old.display());
    if changes.are_none() {
        print(&format!("{since}: equal, same fingerprint for every run.\n"));
        return;
    }
    let is_shown = |row: &&ChangeRow| {
        let is_main = comparison.main_metric_of(&row.workload) == row.metric;
        is_main || matches!(row.change, Change::Lower | Change::Higher | Change::FewSeeds)
    };
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_string(), |value| significant_digits(value, 4));
    let line = |row: &ChangeRow| {
        let interval = match (row.difference_ci95_low, row.difference_ci95_high) {
            (Some(low), Some(high)) => format!("{} to {}", number(Some(low)), number(Some(high))),
            _ => "-".to_string(),
        };
        vec![
            comparison.label(&row.workload),
            row.scheme.clone(),
            row.metric.to_string(),
            number(row.before),
            number(row.now),
            number(row.difference),
            interval,
            row.change.word().to_string(),
        ]
    };
    let header = ["workload", "scheme", "metric", "before", "now", "change", "95 % interval", "verdict"];
    let rows: Vec<_> = changes.rows.iter().filter(is_shown).map(line).collect();
    let seeds = changes.rows.iter().map(|row| row.seeds).max().unwrap_or_default();
    let text = format!(
        "Seed by seed over {seeds} common seeds, with Holm's correction over the schemes per metric. Metrics that did not change are not listed."
    );
    print(&format!("{since}\n\n{}\n{}\n", Table::new(&header, rows).wrap_last().draw(), wrapped(&text, width())));
}
