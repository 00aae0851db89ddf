//! The page over a sweep: self-contained, like that of a run or comparison.

use super::{Standing, Sweep, curves::capital};
use crate::{
    comparison::Metric,
    error::ReportError,
    figures::{BOLD, Figure, REGULAR, SERIES},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use minijinja::{AutoEscape, Environment, Value, context};

const TEMPLATE: &str = include_str!("../page/sweep.html.jinja");
const STYLE: &str = include_str!("../page/style.css");
const SCRIPT: &str = include_str!("../page/sort.js");

/// Rows of the table that the page shows; all are in `sweep.csv`.
const MOST_ROWS: usize = 400;
/// Failures listed; all are in `runs.csv`.
const MOST_FAILURES: usize = 12;

/// The page over `sweep`.
pub(super) fn render(sweep: &Sweep, figures: &[Figure]) -> Result<String, ReportError> {
    let wrong = |error: minijinja::Error| ReportError::drawing("report.html", error);
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("report.html", TEMPLATE).map_err(wrong)?;
    let plan = &sweep.plan;
    let (header, mut rows) = sweep.table(2);
    let all = rows.len();
    rows.truncate(MOST_ROWS);
    let figures: Vec<Value> = figures
        .iter()
        .map(|f| context! { name => f.name, title => &f.title, caption => &f.caption, svg => Value::from_safe_string(f.svg.clone()) })
        .collect();
    let fonts = [(REGULAR, 400), (BOLD, 600)].map(|(font, weight)| {
        let source = format!("url(data:font/otf;base64,{})", BASE64_STANDARD.encode(font));
        context! { weight => weight, source => Value::from_safe_string(source) }
    });
    let axes: Vec<Value> =
        plan.axes.iter().map(|axis| context! { key => &axis.key, values => axis.values.join(", ") }).collect();
    let entries: Vec<Value> = plan
        .entries
        .iter()
        .enumerate()
        .map(|(i, name)| context! { name => name, series => i % SERIES.len() })
        .collect();
    let page = context! {
        style => Value::from_safe_string(STYLE.to_string()),
        script => Value::from_safe_string(SCRIPT.to_string()),
        fonts => fonts,
        title => &plan.name,
        entries => entries,
        baseline => &plan.baseline,
        seeds => plan.seeds.len(),
        zip => plan.zip,
        axes => axes,
        points => plan.points(),
        headline => headline(sweep),
        warnings => warnings(sweep),
        header => header,
        rows => rows,
        all => all,
        shown => all.min(MOST_ROWS),
        figures => figures,
        facts => [
            ("Version", format!("Anabranch {}, commit {}", plan.version, plan.commit)),
            ("Scenario hash", plan.scenario_hash.clone()),
            ("Runs", plan.runs.len().to_string()),
        ].map(|(name, value)| context! { name => name, value => value }),
        scenario => &plan.scenario,
    };
    environment.get_template("report.html").and_then(|template| template.render(page)).map_err(wrong)
}

/// At how many points each scheme has the least mean of the main metric. Whether that is more than chance, the table
/// says point by point.
fn headline(sweep: &Sweep) -> Vec<String> {
    let Some(metric) = Metric::named(sweep.main_metric()) else { return vec![] };
    if sweep.plan.entries.len() < 2 {
        return vec![];
    }
    let mut sentences = vec![];
    let workloads = sweep.workloads();
    for workload in &workloads {
        let mut least = vec![0usize; sweep.plan.entries.len()];
        let mut points = 0;
        for comparison in sweep.comparisons.iter().flatten() {
            let means: Vec<Option<f64>> = sweep
                .plan
                .entries
                .iter()
                .map(|entry| comparison.row(workload, entry, metric.name).filter(|row| row.unfinished_flows == 0)?.mean)
                .collect();
            let Some(best) = means.iter().flatten().copied().min_by(f64::total_cmp) else { continue };
            points += 1;
            for (count, mean) in least.iter_mut().zip(&means) {
                *count += usize::from(*mean == Some(best));
            }
        }
        let mut counts: Vec<(usize, &String)> =
            least.into_iter().zip(&sweep.plan.entries).filter(|(n, _)| *n > 0).collect();
        counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let parts: Vec<String> = counts.iter().map(|(count, name)| format!("{name} at {count}")).collect();
        if parts.is_empty() {
            continue;
        }
        let of = if workloads.len() > 1 { format!(" of {workload}") } else { String::new() };
        let ties =
            if counts.iter().map(|(count, _)| count).sum::<usize>() > points { " (ties count for each)" } else { "" };
        sentences.push(format!(
            "{}{of}: least at how many of {points} points: {}{ties}.",
            capital(metric.title),
            parts.join(", ")
        ));
    }
    sentences
}

fn warnings(sweep: &Sweep) -> Vec<String> {
    let (finished, failed, missing) = sweep.counts();
    let mut warnings = vec![];
    if missing > 0 {
        warnings.push(format!(
            "{missing} of {} runs are missing: points differ in their number of seeds.",
            finished + failed + missing
        ));
    }
    if sweep.plan.seeds.len() == 1 {
        warnings.push("One seed: no intervals and no tests; differences may be chance.".to_string());
    }
    let failures = sweep.plan.runs.iter().zip(&sweep.standings).filter_map(|(_, standing)| match standing {
        Standing::Failed(failed) => {
            Some(format!("Failed: {}: {}", failed.name, failed.error.lines().next().unwrap_or_default()))
        }
        _ => None,
    });
    warnings.extend(failures.take(MOST_FAILURES));
    if failed > MOST_FAILURES {
        warnings.push(format!("{} more failed; `runs.csv` names them.", failed - MOST_FAILURES));
    }
    let unfinished = |c: &&crate::comparison::Comparison| c.rows.iter().any(|row| row.unfinished_flows > 0);
    let points = sweep.comparisons.iter().flatten().filter(unfinished).count();
    if points > 0 {
        warnings.push(format!(
            "At {points} points flows that count did not finish; the schemes look better there than they are."
        ));
    }
    warnings
}
