use super::{Sweep, model::RunState};
use crate::{
    Comparison, Figure, FigureFiles, Metric, colours,
    page::{parts, ranges, setup},
};
use anabranch_results::{ReportError, capital};
use minijinja::{Value, context};

const TEMPLATE: &str = include_str!("../page/sweep.html.jinja");
/// Maximum number of table rows on the page; all are in `sweep.csv`.
const MAX_ROWS: usize = 400;
/// Maximum number of failures listed; all are in `runs.csv`.
const MAX_FAILURES: usize = 12;

pub(super) fn render(sweep: &Sweep, figures: &[Figure], files: &[FigureFiles]) -> Result<String, ReportError> {
    let plan = &sweep.plan;
    let (header, mut rows) = sweep.table(2);
    let all = rows.len();
    rows.truncate(MAX_ROWS);
    let figures: Vec<Value> = figures.iter().zip(files).map(|(f, files)| parts::figure(f, files)).collect();
    // The first columns are text (keys, workload, scheme); numbers follow.
    let words = plan.axes.len() + usize::from(sweep.workloads().len() > 1) + 1;
    let rows: Vec<Vec<Value>> = rows.iter().map(|row| cells(sweep, row, words)).collect();
    let axes: Vec<Value> = plan
        .axes
        .iter()
        .map(|axis| context! { key => &axis.key, words => axis.words(), values => axis.values.join(", ") })
        .collect();
    let entries: Vec<Value> = plan
        .entries
        .iter()
        .enumerate()
        .map(|(i, name)| context! { name => name, series => colours(&plan.entries)[i] })
        .collect();
    let page = context! {
        title => &plan.name,
        entries => entries,
        baseline => &plan.baseline,
        seeds => plan.seeds.len(),
        zip => plan.zip,
        axes => axes,
        points => plan.points(),
        setup => what_was_run(sweep).into_iter().map(|(name, value)| context! { name => name, value => value }).collect::<Vec<_>>(),
        missing => missing(sweep),
        headline => [sweep.conclusions(), headline(sweep)].concat(),
        warnings => warnings(sweep),
        notes => sweep.notes().iter().map(|note| format!("{}.", capital(note))).collect::<Vec<_>>().join(" "),
        header => header,
        rows => rows,
        words => words,
        all => all,
        shown => all.min(MAX_ROWS),
        figures => figures,
        facts => [
            ("Scenario hash", plan.scenario_hash.clone()),
            ("Runs planned", plan.runs.len().to_string()),
        ].map(|(name, value)| context! { name => name, value => value }),
        scenario => &plan.scenario,
    };
    parts::render(TEMPLATE, page)
}

fn what_was_run(sweep: &Sweep) -> Vec<(String, String)> {
    let plan = &sweep.plan;
    let keys: Vec<&str> = plan.axes.iter().map(|axis| axis.key.as_str()).collect();
    let mut facts = setup::of_sweep(&plan.scenario, &keys);
    let schemes = plan.entries.iter().map(|name| match *name == plan.baseline && plan.entries.len() > 1 {
        true => format!("{name} (baseline)"),
        false => name.clone(),
    });
    let (finished, failed, missing) = sweep.counts();
    let mut runs = format!("{finished} of {} finished", finished + failed + missing);
    for (number, word) in [(failed, "failed"), (missing, "missing")] {
        if number > 0 {
            runs.push_str(&format!(", {number} {word}"));
        }
    }
    let more = [
        ("Schemes", schemes.collect::<Vec<_>>().join(", ")),
        ("Seeds", ranges(&plan.seeds)),
        ("Runs", runs),
        ("Version", format!("Anabranch {}, commit {}", plan.version, plan.commit)),
    ];
    facts.extend(more.map(|(name, value)| (name.to_string(), value)));
    facts
}

/// The seeds that points and schemes lack.
fn missing(sweep: &Sweep) -> Vec<String> {
    let plan = &sweep.plan;
    let mut lines = vec![];
    let mut hidden = 0;
    for (point, runs) in plan.runs.chunk_by(|a, b| a.point == b.point).enumerate() {
        let first = plan.runs.iter().position(|run| run.point == runs[0].point).unwrap_or(0);
        let states = &sweep.states[first..first + runs.len()];
        for (entry, name) in plan.entries.iter().enumerate() {
            let seeds = |is: fn(&RunState) -> bool| -> Vec<u64> {
                let own = runs.iter().zip(states).filter(|(run, state)| run.entry == entry && is(state));
                own.map(|(run, _)| run.seed).collect()
            };
            let parts = [
                ("not run", seeds(|state| matches!(state, RunState::Missing))),
                ("failed", seeds(|state| matches!(state, RunState::Failed(_)))),
            ];
            let parts: Vec<String> = parts
                .into_iter()
                .filter(|(_, seeds)| !seeds.is_empty())
                .map(|(word, seeds)| {
                    format!("seed{} {} {word}", if seeds.len() == 1 { "" } else { "s" }, ranges(&seeds))
                })
                .collect();
            match parts.is_empty() {
                true => {}
                false if lines.len() < MAX_FAILURES => {
                    lines.push(format!("{}: {name}: {}.", plan.point_name(point), parts.join("; ")));
                }
                false => hidden += 1,
            }
        }
    }
    if hidden > 0 {
        lines.push(format!("{hidden} more points and schemes lack seeds; `runs.csv` names them."));
    }
    lines
}

/// Sort keys are the index of values of keys, the mean of numbers.
fn cells(sweep: &Sweep, row: &[String], words: usize) -> Vec<Value> {
    let plan = &sweep.plan;
    let cell = |(place, text): (usize, &String)| {
        let value = match plan.axes.get(place) {
            Some(axis) => axis.values.iter().position(|value| value == text).map_or(text.clone(), |at| at.to_string()),
            None if place < words => text.clone(),
            None => {
                let number = text.replace('\u{2212}', "-");
                let end = number.find(|c: char| !(c.is_ascii_digit() || "-.".contains(c))).unwrap_or(number.len());
                number[..end].to_string()
            }
        };
        let entry = if place + 1 == words { plan.entries.iter().position(|entry| entry == text) } else { None };
        context! { text => text, value => value, series => entry.map(|entry| colours(&plan.entries)[entry]) }
    };
    row.iter().enumerate().map(cell).collect()
}

/// Number of points at which each scheme leads in the main metric, alone or tied.
fn headline(sweep: &Sweep) -> Vec<String> {
    let Some(metric) = Metric::named(sweep.main_metric()) else { return vec![] };
    if sweep.plan.entries.len() < 2 {
        return vec![];
    }
    let mut sentences = vec![];
    let workloads = sweep.workloads();
    for workload in &workloads {
        let (mut alone, mut together) =
            (vec![0usize; sweep.plan.entries.len()], vec![0usize; sweep.plan.entries.len()]);
        let mut points = 0;
        for comparison in sweep.comparisons.iter().flatten() {
            let row = |entry: &String| comparison.row(workload, entry, metric.name);
            let leads = |entry: &String| row(entry).is_some_and(|row| row.leads());
            let leading: Vec<bool> = sweep.plan.entries.iter().map(leads).collect();
            let several = leading.iter().filter(|leads| **leads).count() > 1;
            points += usize::from(leading.contains(&true));
            for (number, _) in leading.iter().enumerate().filter(|(_, leads)| **leads) {
                if several { together[number] += 1 } else { alone[number] += 1 }
            }
        }
        if points == 0 {
            continue;
        }
        let words = |name: &String, alone: usize, together: usize| match (alone, together) {
            (0, 0) => None,
            (alone, 0) => Some(format!("{name} leads alone at {alone}")),
            (0, together) => Some(format!("{name} ties for the lead at {together}")),
            (alone, together) => Some(format!("{name} leads alone at {alone} and ties for the lead at {together}")),
        };
        let parts: Vec<String> = sweep
            .plan
            .entries
            .iter()
            .zip(alone.iter().zip(&together))
            .filter_map(|(name, (alone, together))| words(name, *alone, *together))
            .collect();
        let of = if workloads.len() > 1 { format!(" of {workload}") } else { String::new() };
        sentences.push(format!("{}{of}, at {points} points: {}.", capital(metric.title), parts.join("; ")));
    }
    sentences
}

fn warnings(sweep: &Sweep) -> Vec<String> {
    let (finished, failed, missing) = sweep.counts();
    let mut warnings = vec![];
    if missing + failed > 0 {
        warnings.push(format!(
            "{} of {} runs have no results: points differ in their number of seeds. A point without results is not drawn, and \
             lines do not cross it.",
            missing + failed,
            finished + failed + missing
        ));
    }
    if sweep.plan.seeds.len() == 1 {
        warnings.push("One seed: no intervals and no tests; differences may be chance.".to_string());
    }
    let failures = sweep.plan.runs.iter().zip(&sweep.states).filter_map(|(_, state)| match state {
        RunState::Failed(failed) => {
            Some(format!("Failed: {}: {}", failed.name, failed.error.lines().next().unwrap_or_default()))
        }
        _ => None,
    });
    warnings.extend(failures.take(MAX_FAILURES));
    let bound = |at: usize| sweep.comparisons[at].as_ref().filter(|comparison| !comparison.machine_bound.is_empty());
    warnings.extend(
        (0..sweep.comparisons.len())
            .filter_map(|at| Some(format!("{}: {}.", sweep.plan.point_name(at), bound(at)?.machine_bound_line()?))),
    );
    if failed > MAX_FAILURES {
        warnings.push(format!("{} more failed; `runs.csv` names them.", failed - MAX_FAILURES));
    }
    let unfinished = |c: &&Comparison| c.rows.iter().any(|row| row.unfinished_flows > 0);
    let points = sweep.comparisons.iter().flatten().filter(unfinished).count();
    if points > 0 {
        warnings.push(format!(
            "At {points} points measured flows did not finish; the figures of those schemes are too good there, and they are not compared."
        ));
    }
    warnings
}
