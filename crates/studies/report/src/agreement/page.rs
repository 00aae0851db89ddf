use super::{Agreement, AgreementRow, Explanation, Verdict, model::ALIKE};
use crate::page::parts;
use anabranch_results::{ReportError, significant_digits, significant_digits_trimmed};
use minijinja::{Value, context};

const TEMPLATE: &str = include_str!("../page/agreement.html.jinja");
/// Ports listed per scheme and quantity; all are in `explanations.csv`.
const MAX_PORTS: usize = 6;
/// Ratios above this or below its inverse are drawn at the edge.
const EDGE: f64 = 4.0;
const WIDTH: f64 = 180.0;
const MARK: f64 = 4.0;

pub(super) fn render(agreement: &Agreement) -> Result<String, ReportError> {
    let mut schemes: Vec<&str> = agreement.rows.iter().map(|row| row.scheme.as_str()).collect();
    schemes.dedup();
    let reasons: Vec<Value> = schemes.iter().map(|scheme| block(agreement, scheme)).collect();
    let page = context! {
        title => &agreement.scenario,
        backends => &agreement.backends,
        metric => &agreement.title,
        unit => agreement.unit,
        headline => headline(agreement),
        notes => [&agreement.notes[..], &agreement.unlike].concat(),
        rows => agreement.rows.iter().map(verdict).collect::<Vec<_>>(),
        band => [at(ALIKE.0), at(ALIKE.1) - at(ALIKE.0), at(1.0), WIDTH],
        reasons => reasons,
    };
    parts::render(TEMPLATE, page)
}

fn at(ratio: f64) -> f64 {
    // Marks at both limits are drawn whole.
    MARK + (0.5 + 0.5 * ratio.clamp(1.0 / EDGE, EDGE).ln() / EDGE.ln()) * (WIDTH - 2.0 * MARK)
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_string(), |value| significant_digits_trimmed(value, 4))
}

fn headline(agreement: &Agreement) -> Vec<String> {
    let of = |verdict: Verdict| -> Vec<String> {
        let rows = agreement.rows.iter().filter(|row| row.verdict == verdict);
        rows.map(|row| {
            if agreement.backends.len() > 2 { format!("{} on {}", row.scheme, row.backend) } else { row.scheme.clone() }
        })
        .collect()
    };
    let verdicts = [
        (Verdict::Alike, "Alike"),
        (Verdict::Apart, "Apart"),
        (Verdict::Undecided, "Undecided"),
        (Verdict::MachineBound, "Machine-bound"),
        (Verdict::Missing, "Without runs"),
    ];
    let sentence = |(verdict, word): (Verdict, &str)| {
        let schemes = of(verdict);
        (!schemes.is_empty()).then(|| format!("{word}: {}.", schemes.join(", ")))
    };
    verdicts.into_iter().filter_map(sentence).collect()
}

fn verdict(row: &AgreementRow) -> Value {
    let (low, high) = (row.ratio_ci95_low.or(row.ratio), row.ratio_ci95_high.or(row.ratio));
    let interval = match (row.ratio_ci95_low, row.ratio_ci95_high) {
        (Some(low), Some(high)) => format!("{} to {}", significant_digits(low, 3), significant_digits(high, 3)),
        _ => "-".to_string(),
    };
    context! {
        scheme => &row.scheme,
        backend => &row.backend,
        reference => number(row.reference),
        value => number(row.value),
        ratio => row.ratio.map_or_else(|| "-".to_string(), |ratio| significant_digits(ratio, 3)),
        sort => row.ratio.unwrap_or(0.0),
        interval => interval,
        mark => row.ratio.map(at),
        from => low.map(at),
        width => low.zip(high).map(|(low, high)| (at(high) - at(low)).max(1.0)),
        seeds => row.seeds,
        verdict => row.verdict.word(),
        apart => row.verdict == Verdict::Apart,
    }
}

fn block(agreement: &Agreement, scheme: &str) -> Value {
    let own = || agreement.explanations.iter().filter(|row| row.scheme == scheme);
    let mut rows: Vec<&Explanation> = own().filter(|row| row.place.is_empty() || row.unit.is_empty()).collect();
    for quantity in ["marks at a port", "drops at a port"] {
        let largest = |row: &Explanation| row.values.iter().flatten().fold(0.0f64, |most, value| most.max(*value));
        let mut ports: Vec<&Explanation> = own().filter(|row| row.quantity == quantity).collect();
        ports.sort_by(|a, b| largest(b).total_cmp(&largest(a)));
        rows.extend(ports.into_iter().take(MAX_PORTS));
    }
    let cell = |row: &Explanation, value: &Option<f64>| match value {
        Some(value) if row.unit.is_empty() => format!("{} %", significant_digits(value * 100.0, 3)),
        value => number(*value),
    };
    let rows: Vec<Value> = rows
        .into_iter()
        .map(|row| {
            let cells: Vec<String> = row.values.iter().map(|value| cell(row, value)).collect();
            context! { quantity => row.quantity, place => &row.place, unit => row.unit, cells => cells }
        })
        .collect();
    context! { scheme => scheme, rows => rows }
}
