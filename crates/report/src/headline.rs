//! The result in words.

use crate::{
    comparison::{ALL, Comparison, ComparisonRow, Metric},
    numbers::{significant_digits, significant_digits_trimmed, thousands},
    statistics::PairedDifference,
    summary::Summary,
};

impl Comparison {
    /// The result in words: which scheme is best on the main metric, by how much, and how sure that is. `runs` are those
    /// compared.
    pub fn headline(&self, runs: &[Summary]) -> Vec<String> {
        let Some(metric) = Metric::named(self.main_metric) else { return vec![] };
        let rows = self.schemes.iter().filter_map(|scheme| self.row(ALL, scheme, metric.name));
        let finished = |row: &&ComparisonRow| row.unfinished_flows == 0 && row.mean.is_some();
        let (mut ranked, left_out): (Vec<&ComparisonRow>, Vec<&ComparisonRow>) = rows.partition(finished);
        let mut sentences = vec![];
        if !left_out.is_empty() {
            let names: Vec<&str> = left_out.iter().map(|row| row.scheme.as_str()).collect();
            sentences.push(format!("Not ranked, since flows did not finish: {}.", names.join(", ")));
        }
        ranked.sort_by(|a, b| a.mean.partial_cmp(&b.mean).unwrap_or(std::cmp::Ordering::Equal));
        let title = match metric.name {
            "fct_ratio_max" => "slowest flow against the ideal (max FCT over ideal)",
            "completion" => "time of the whole (first start to last acknowledgement)",
            _ => "99th-percentile slowdown",
        };
        let Some(&best) = ranked.first() else {
            sentences.insert(0, "No scheme finished all flows that count, so none can be called the best.".to_string());
            return sentences;
        };
        if ranked.len() > 1 && ranked.iter().all(|row| row.mean == best.mean) {
            sentences.insert(0, format!("All schemes are equal in the {title}: {}.", value(best)));
            return sentences;
        }
        let mut first = format!("{} has the best {title}: {}", best.scheme, value(best));
        if best.scheme != self.baseline {
            if let Some(ratio) = best.ratio_to_baseline {
                first.push_str(&format!(", {} than {} (baseline)", change(ratio), self.baseline));
                first.push_str(&format!("; {}", test(best.significant, best.p_value)));
            }
        } else {
            first.push_str("; it is the baseline");
        }
        first.push('.');
        sentences.insert(0, first);
        if let Some(second) = ranked.get(1).filter(|second| {
            // Against the baseline alone there is no more to say.
            best.scheme == self.baseline || second.scheme != self.baseline
        }) {
            let of = |scheme: &str| runs.iter().filter(|run| run.scheme == scheme).collect::<Vec<_>>();
            let others = of(&best.scheme);
            let pairs: Vec<(f64, f64)> = of(&second.scheme)
                .into_iter()
                .filter_map(|run| {
                    let best = others.iter().find(|other| other.seed == run.seed)?;
                    Some((metric.value(run, ALL)?, metric.value(best, ALL)?))
                })
                .collect();
            let paired = PairedDifference::of(&pairs);
            let ratio = second.mean.zip(best.mean).map_or(1.0, |(second, best)| second / best);
            sentences.insert(
                1,
                format!(
                    "Next is {} with {}, {}; {}.",
                    second.scheme,
                    value(second),
                    change(ratio),
                    test(paired.and_then(|p| p.significant()), paired.and_then(|p| p.p_value))
                ),
            );
        }
        sentences
    }
}

/// `3.21 (95 % CI 3.15 to 3.27)`.
fn value(row: &ComparisonRow) -> String {
    let mean = significant_digits(row.mean.unwrap_or(f64::NAN), 3);
    match (row.ci95_low, row.ci95_high) {
        (Some(low), Some(high)) => {
            format!("{mean} (95 % CI {} to {})", significant_digits(low, 3), significant_digits(high, 3))
        }
        _ => format!("{mean} (one seed, CI n/a)"),
    }
}

/// `23 % lower`.
fn change(ratio: f64) -> String {
    let word = if ratio <= 1.0 { "lower" } else { "higher" };
    format!("{} % {word}", significant_digits_trimmed((1.0 - ratio).abs() * 100.0, 2))
}

fn test(significant: Option<bool>, p_value: Option<f64>) -> String {
    let p = p_value.map_or(String::new(), |p| match p {
        p if p < 0.001 => ", p < 0.001".to_string(),
        p => format!(", p = {p:.3}"),
    });
    match significant {
        Some(true) => format!("the difference is significant (paired t-test{p})"),
        Some(false) => format!("the difference is not significant (paired t-test{p})"),
        None => "with one seed there is no test of the difference (n/a)".to_string(),
    }
}

/// The same for a single run.
pub(crate) fn of_run(run: &Summary) -> Vec<String> {
    let flows = &run.all.flows;
    let mut sentences = vec![format!(
        "{} of {} flows finished in {} of simulated time under {}.",
        thousands(&flows.finished.to_string()),
        thousands(&flows.total.to_string()),
        seconds(run.simulated_s),
        run.scheme
    )];
    if let (Some(p50), Some(p99)) = (run.all.slowdown.p50, run.all.slowdown.p99) {
        sentences.push(format!(
            "Half of those that count took at most {} times as long as alone on the network, 99 % at most {} times.",
            significant_digits(p50, 3),
            significant_digits(p99, 3)
        ));
    }
    sentences
}

/// A time in the unit that fits.
pub(crate) fn seconds(seconds: f64) -> String {
    let (scale, unit) = match seconds {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        _ => (1e6, "µs"),
    };
    format!("{} {unit}", significant_digits(seconds * scale, 3))
}
