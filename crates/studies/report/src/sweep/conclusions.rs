//! What a sweep shows, in sentences: its best point, keys that changed nothing, and where the order of schemes flips.

use super::model::{RunState, Sweep};
use crate::comparison::{ComparisonRow, METRICS, Metric};
use anabranch_outcome::RunMetrics;
use anabranch_results::numbers::{list, significant_digits, thousands};
use anabranch_statistics::statistics::{PairedDifference, SIGNIFICANCE, holm};
use std::collections::{BTreeMap, BTreeSet};

/// Points named in a sentence.
const NAMED: usize = 3;
/// Share of data packets below which what a key governs hardly happened.
const RARE: f64 = 1e-4;

/// Keys by their beginning, with the counter of what they govern and its name.
type Governed = (&'static [&'static str], &'static str, fn(&RunMetrics) -> Option<u64>);
const GOVERNED: &[Governed] = &[
    (&["fabric.ecn_k", "fabric.ecn_p", "fabric.ecn_mark", "fabric.marking"], "ECN mark", |totals| totals.ecn_marked),
    (
        &["fabric.queue_limit", "fabric.shared_buffer", "fabric.buffer_alpha", "fabric.trim"],
        "packet trimmed or dropped",
        |totals| Some(totals.trimmed? + totals.dropped?),
    ),
    (&["transport.rto", "transport.min_rto", "transport.early_loss"], "timeout", |totals| totals.timeouts),
    (&["fabric.pfc"], "PFC pause", |totals| totals.pfc_pauses),
];

impl Sweep {
    /// Returns the best point, keys that changed nothing, and where the order of schemes flips, a sentence each.
    pub fn conclusions(&self) -> Vec<String> {
        let Some(metric) = Metric::named(self.main_metric()) else { return vec![] };
        let workloads = self.workloads();
        let several = workloads.len() > 1;
        let mut sentences = vec![];
        for workload in &workloads {
            let of = if several { format!(" of {workload}") } else { String::new() };
            sentences.extend(best(self, workload, metric, &of, !several));
            sentences.extend(flips(self, workload, metric, &of));
        }
        sentences.extend((0..self.plan.axes.len()).filter_map(|axis| unchanged(self, axis)));
        sentences
    }
}

/// Values of a run of all flows, by point, scheme and seed.
fn values(sweep: &Sweep, metric: &Metric) -> BTreeMap<(usize, usize), BTreeMap<u64, f64>> {
    let column = METRICS.iter().position(|of| of.name == metric.name).unwrap_or_default();
    let mut values: BTreeMap<_, BTreeMap<u64, f64>> = BTreeMap::new();
    for (run, state) in sweep.plan.runs.iter().zip(&sweep.states) {
        if let RunState::Finished { metrics, .. } = state
            && let Some(value) = metrics.get(column).copied().flatten()
        {
            values.entry((run.point, run.entry)).or_default().insert(run.seed, value);
        }
    }
    values
}

fn spread(row: &ComparisonRow) -> String {
    match (row.ci95_low, row.ci95_high) {
        (Some(low), Some(high)) => {
            format!(" (95 % CI {} to {})", significant_digits(low, 3), significant_digits(high, 3))
        }
        _ => " (one seed, CI n/a)".to_string(),
    }
}

/// The lowest mean over all points and schemes, and from how many others it differs.
fn best(sweep: &Sweep, workload: &str, metric: &Metric, of: &str, tested: bool) -> Vec<String> {
    let mut ranked: Vec<(f64, usize, usize, &ComparisonRow)> = vec![];
    for (point, comparison) in sweep.comparisons.iter().enumerate() {
        for (entry, scheme) in sweep.plan.entries.iter().enumerate() {
            let row = comparison.as_ref().and_then(|comparison| comparison.row(workload, scheme, metric.name));
            ranked.extend(row.filter(|row| row.ranks()).and_then(|row| Some((row.mean?, point, entry, row))));
        }
    }
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (true, Some(&(mean, point, entry, row))) = (ranked.len() > 1, ranked.first()) else { return vec![] };
    let unit = if metric.unit.is_empty() { String::new() } else { format!(" {}", metric.unit) };
    let lowest = format!(
        "Best{of}: {} with {}, {} {}{unit}{}.",
        sweep.plan.entries[entry],
        sweep.plan.point_name(point),
        metric.title,
        significant_digits(mean, 3),
        spread(row)
    );
    if !tested {
        return vec![lowest];
    }
    let values = values(sweep, metric);
    let Some(base) = values.get(&(point, entry)) else { return vec![lowest] };
    let others = ranked[1..].iter().filter_map(|(_, point, entry, _)| values.get(&(*point, *entry)));
    let paired = others.filter_map(|other| {
        let pairs: Vec<(f64, f64)> =
            other.iter().filter_map(|(seed, value)| Some((*value, *base.get(seed)?))).collect();
        PairedDifference::of(&pairs)
    });
    let p_values: Vec<f64> = paired.filter_map(|paired| paired.p_value()).collect();
    let others = ranked.len() - 1;
    let apart = match p_values.len() {
        0 => "No difference is tested: too few seeds, or equal values.".to_string(),
        _ => {
            let apart = match holm(&p_values).into_iter().filter(|p| *p < SIGNIFICANCE).count() {
                0 => "none".to_string(),
                count => count.to_string(),
            };
            format!(
                "It is significantly below {apart} of the {others} others (paired t-tests over seeds, Holm's correction, 5 %). It was chosen as the lowest on these seeds, so fresh seeds would show it a little higher."
            )
        }
    };
    vec![lowest, apart]
}

/// Pairs of schemes each of which is significantly lower than the other somewhere.
fn flips(sweep: &Sweep, workload: &str, metric: &Metric, of: &str) -> Vec<String> {
    let entries = &sweep.plan.entries;
    let mut sentences = vec![];
    for a in 0..entries.len() {
        for b in a + 1..entries.len() {
            let mut lower: [Vec<usize>; 2] = [vec![], vec![]];
            for (point, comparison) in sweep.comparisons.iter().enumerate() {
                let rows = comparison.as_ref().and_then(|comparison| {
                    let row =
                        |entry: usize| comparison.row(workload, &entries[entry], metric.name).filter(|row| row.ranks());
                    Some((row(a)?, row(b)?))
                });
                let Some((one, other)) = rows else { continue };
                // Schemes without a common letter differ significantly.
                let apart = !one.group.is_empty()
                    && !other.group.is_empty()
                    && !one.group.chars().any(|letter| other.group.contains(letter));
                if apart {
                    lower[usize::from(one.mean > other.mean)].push(point);
                }
            }
            if lower.iter().all(|points| !points.is_empty()) {
                let places = lower.map(|points| {
                    let named: Vec<String> =
                        points.iter().take(NAMED).map(|point| sweep.plan.point_name(*point)).collect();
                    let more = points.len() - named.len();
                    if more > 0 { format!("{} and {more} more", named.join("; ")) } else { named.join("; ") }
                });
                sentences.push(format!(
                    "The order{of} flips: {} is significantly lower than {} at {}, and higher at {}.",
                    entries[a], entries[b], places[0], places[1]
                ));
            }
        }
    }
    sentences
}

/// A key whose values give the same results, or hardly met what they govern.
fn unchanged(sweep: &Sweep, axis: usize) -> Option<String> {
    let plan = &sweep.plan;
    let key = &plan.axes[axis].key;
    if plan.axes[axis].values.len() < 2 {
        return None;
    }
    // Runs that differ in this key alone; the effects of keys that change together cannot be separated.
    let mut groups: BTreeMap<(Vec<&str>, usize, u64), Vec<&str>> = BTreeMap::new();
    let (mut packets, mut counts) = (0u64, vec![0u64; GOVERNED.len()]);
    let mut known = vec![true; GOVERNED.len()];
    for (run, state) in plan.runs.iter().zip(&sweep.states) {
        let RunState::Finished { fingerprint: Some(fingerprint), totals, .. } = state else { continue };
        let mut others = plan.values(run.point);
        others.remove(axis);
        if !plan.zip {
            groups.entry((others, run.entry, run.seed)).or_default().push(fingerprint);
        }
        packets += totals.data_packets.unwrap_or(0);
        for (number, (_, _, count)) in GOVERNED.iter().enumerate() {
            match count(totals) {
                Some(count) => counts[number] += count,
                None => known[number] = false,
            }
        }
    }
    let rare = GOVERNED.iter().enumerate().find(|(number, (begins, ..))| {
        known[*number]
            && packets > 0
            && (counts[*number] as f64) < RARE * packets as f64
            && begins.iter().any(|begin| key.starts_with(begin))
    });
    let why = rare.map(|(number, (_, what, _))| {
        let s = if counts[number] == 1 { "" } else { "s" };
        let (count, packets) = (thousands(&counts[number].to_string()), thousands(&packets.to_string()));
        match what.split_once(' ') {
            Some(("packet", rest)) => format!("{count} packet{s} {rest} of {packets}"),
            _ => format!("{count} {what}{s} in {packets} data packets"),
        }
    });
    // Where a value has no finished run, nothing is known.
    groups.retain(|_, prints| prints.len() == plan.axes[axis].values.len());
    let is_same = |prints: &Vec<&str>| prints.iter().all(|print| *print == prints[0]);
    let same = groups.values().filter(|prints| is_same(prints)).count();
    let all = groups.len();
    match (all > 0 && same == all, why) {
        (true, Some(why)) => Some(format!(
            "`{key}` changed nothing: runs that differ in it alone are equal. What it governs hardly happened: {why}."
        )),
        (true, None) => Some(format!("`{key}` changed nothing: runs that differ in it alone are equal, flow by flow.")),
        (false, Some(why)) => Some(format!("What `{key}` governs was rare: {why}.")),
        (false, None) if same > 0 => {
            let schemes: BTreeSet<&str> = (0..plan.entries.len())
                .filter(|entry| {
                    let mut own = groups.iter().filter(|((_, of, _), _)| of == entry).peekable();
                    own.peek().is_some() && own.all(|(_, prints)| is_same(prints))
                })
                .map(|entry| plan.entries[entry].as_str())
                .collect();
            (!schemes.is_empty())
                .then(|| format!("`{key}` changed nothing for {}.", list(schemes.into_iter().collect())))
        }
        (false, None) => None,
    }
}
