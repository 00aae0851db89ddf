//! Slowdown against flow size: median and 99th percentile in bins, each the mean over seeds with its confidence interval.

use super::{
    Figure, FigureKind, View,
    palette::Paint,
    panel::{Axis, end_labels},
    scale::{Scale, plain},
    sheet::{Grid, Sheet, column, names, seeds},
};
use crate::{
    dataset::FlowPoint,
    intervals::Range,
    numbers::{bytes, significant_digits, thousands},
    statistics::{Estimate, mean, quantile},
};

pub(crate) const KIND: FigureKind = FigureKind {
    name: "slowdown_by_size",
    draw,
    of_flows: true,
    needs: ("flows", &["size_bytes", "slowdown", "measured"]),
};

/// Number of bins if flows have many sizes.
const BINS: usize = 20;
/// Up to this many different sizes, each size is a bin.
const DISTINCT: usize = 24;
/// Minimum number of flows of every seed in a bin: with fewer, the 99th percentile is close to the slowest flow.
const MIN_FLOWS: usize = 100;
/// The same for a median.
const MIN_FLOWS_MEDIAN: usize = 10;

/// `at`: median size of its flows, at which its point is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bin {
    from: u64,
    to: u64,
    at: u64,
}

/// Bins over the flows of `seeds` (sizes per seed), no size in two, with `fewest` flows of every seed or more if there
/// are as many. Up to [`DISTINCT`] different sizes are a bin each, regardless of their flows.
fn bins(seeds: &[Vec<u64>], fewest: usize) -> Vec<Bin> {
    let mut flows: Vec<(u64, usize)> =
        seeds.iter().enumerate().flat_map(|(seed, sizes)| sizes.iter().map(move |size| (*size, seed))).collect();
    flows.sort_unstable();
    let distinct = flows.chunk_by(|a, b| a.0 == b.0).count();
    let few = distinct <= DISTINCT;
    let target = if few { 1 } else { flows.len().div_ceil(BINS) };
    let bin = |flows: &[(u64, usize)]| Bin {
        from: flows[0].0,
        to: flows[flows.len() - 1].0,
        at: flows[(flows.len() - 1) / 2].0,
    };
    let full = |flows: &[(u64, usize)]| {
        let of = |seed: usize| flows.iter().filter(|flow| flow.1 == seed).count();
        flows.len() >= target && (few || (0..seeds.len()).all(|seed| of(seed) >= fewest))
    };
    let mut ranges: Vec<(usize, usize)> = vec![];
    let mut from = 0;
    while from < flows.len() {
        let mut to = (from + target).min(flows.len());
        loop {
            let last = flows[to - 1].0;
            to += flows[to..].partition_point(|flow| flow.0 <= last);
            if to == flows.len() || full(&flows[from..to]) {
                break;
            }
            to = (to + seeds.len().max(1)).min(flows.len());
        }
        // A rest of less than half a bin, or with too few flows, joins the bin before it.
        let rest = flows.len() - to;
        if !few && rest > 0 && (rest < target / 2 || !full(&flows[to..]) && rest < target) {
            to = flows.len();
        }
        match ranges.last_mut() {
            Some(last) if !few && !full(&flows[from..to]) => last.1 = to,
            _ => ranges.push((from, to)),
        }
        from = to;
    }
    ranges.into_iter().map(|(from, to)| bin(&flows[from..to])).collect()
}

fn binned<'f>(bins: &[Bin], flows: impl Iterator<Item = &'f FlowPoint>) -> Vec<Vec<f64>> {
    let mut slowdowns = vec![vec![]; bins.len()];
    for flow in flows {
        let bin = bins.partition_point(|bin| bin.to < flow.size_bytes);
        if let Some(bin) = slowdowns.get_mut(bin) {
            bin.push(flow.slowdown);
        }
    }
    for bin in &mut slowdowns {
        bin.sort_unstable_by(f64::total_cmp);
    }
    slowdowns
}

/// `None` if a seed has fewer than `fewest` flows in the bin.
fn over_seeds(seeds: &[Vec<Vec<f64>>], bin: usize, q: f64, fewest: usize) -> Option<Estimate> {
    if seeds.iter().any(|bins| bins[bin].len() < fewest) {
        return None;
    }
    Estimate::of(&seeds.iter().filter_map(|bins| quantile(&bins[bin], q)).collect::<Vec<_>>())
}

type Points = Vec<(usize, Estimate)>;

/// A slowdown of a simulation is at least 1; the model of a real network may be slower than the network.
fn interval(estimate: &Estimate) -> Option<(f64, f64)> {
    estimate.interval_in(Range::AtLeast(if estimate.mean > 1.0 { 1.0 } else { 0.0 }))
}

fn draw(view: &View<'_>) -> Result<Option<Figure>, String> {
    let data = view.data;
    // Not all schemes finish all flows; the bins are those of the scheme that finished the most.
    let sizes = |scheme: &crate::dataset::SchemeRuns| -> Vec<Vec<u64>> {
        scheme.runs.iter().map(|run| view.flows(run).map(|flow| flow.size_bytes).collect()).collect()
    };
    let most = data.schemes.iter().map(sizes).max_by_key(|seeds| seeds.iter().map(Vec::len).sum::<usize>());
    let Some(most) = most else { return Ok(None) };
    let mut all: Vec<u64> = most.iter().flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    if all.len() < 2 {
        return Ok(None);
    }
    let mut bins_of = bins(&most, MIN_FLOWS);
    if bins_of.len() < 2 {
        bins_of = bins(&most, MIN_FLOWS_MEDIAN);
    }
    if bins_of.len() < 2 {
        return Err(format!(
            "each seed has too few flows for two sizes ({MIN_FLOWS_MEDIAN} flows a bin are the fewest)"
        ));
    }
    let bins = bins_of;
    let number = |estimate: Option<Estimate>, get: fn(&Estimate) -> Option<f64>| {
        estimate.as_ref().and_then(get).map(|value| value.to_string()).unwrap_or_default()
    };
    let names = names(data);
    let mut rows = vec![];
    let mut panels: [Vec<(usize, Points)>; 2] = [vec![], vec![]];
    for (series, scheme) in data.schemes.iter().enumerate() {
        let per_seed: Vec<Vec<Vec<f64>>> = scheme.runs.iter().map(|run| binned(&bins, view.flows(run))).collect();
        let mut lines = [vec![], vec![]];
        for (at, bin) in bins.iter().enumerate() {
            let slowdowns: Vec<f64> = per_seed.iter().flat_map(|bins| bins[at].iter().copied()).collect();
            let estimates =
                [(0.5, MIN_FLOWS_MEDIAN), (0.99, MIN_FLOWS)].map(|(q, few)| over_seeds(&per_seed, at, q, few));
            for (line, estimate) in lines.iter_mut().zip(estimates) {
                line.extend(estimate.map(|estimate| (at, estimate)));
            }
            let sizes = [bin.from, bin.to, bin.at].map(|size| size.to_string());
            let [p50, p99] = estimates;
            let means = [mean(&slowdowns).map(|m| m.to_string()).unwrap_or_default(), number(p50, |e| Some(e.mean))];
            let tail = [
                number(p99, |e| Some(e.mean)),
                number(p50, |e| interval(e).map(|i| i.0)),
                number(p50, |e| interval(e).map(|i| i.1)),
                number(p99, |e| interval(e).map(|i| i.0)),
                number(p99, |e| interval(e).map(|i| i.1)),
                scheme.runs.len().to_string(),
            ];
            let count = [slowdowns.len().to_string()];
            rows.push([std::slice::from_ref(&scheme.name), &sizes, &count, &means, &tail].concat());
        }
        for (panel, line) in panels.iter_mut().zip(lines) {
            panel.push((series, line));
        }
    }
    let many = bins.len() > DISTINCT || bins.iter().any(|bin| bin.from != bin.to);
    let shown: Vec<(&str, &Vec<(usize, Points)>)> = ["Median", "99th percentile"]
        .into_iter()
        .zip(&panels)
        .filter(|(_, lines)| lines.iter().any(|line| !line.1.is_empty()))
        .collect();
    if shown.is_empty() {
        return Err(format!("no bin of sizes has {MIN_FLOWS_MEDIAN} flows of every seed"));
    }
    let subtitle = format!(
        "{}, {}{}; a 99th percentile is shown where every seed has {MIN_FLOWS} flows or more{}. Less is better, 1 is a flow alone on the network",
        if many { format!("{} bins of sizes", bins.len()) } else { "One point per size".to_string() },
        seeds(data, "mean over ", " with its 95 % confidence interval"),
        if data.seeds().len() == 1 { ", so no interval" } else { "" },
        if shown.len() == 1 { " (here nowhere)" } else { "" },
    );
    let grid = Grid::pairs(shown.len(), 300.0);
    let title = view.titled("FCT slowdown by flow size: median and tail");
    let mut sheet = Sheet::new(&title, &subtitle, &grid, &names);
    let x = Scale::fitting(bins[0].at as f64, bins[bins.len() - 1].at as f64, 5.0);
    let values = || shown.iter().flat_map(|(_, lines)| lines.iter()).flat_map(|line| &line.1).map(|(_, e)| e);
    let largest = values().map(|e| interval(e).map_or(e.mean, |i| i.1).min(e.mean * 3.0)).fold(1.0, f64::max);
    let y = Scale::fitting(1.0, largest, 5.0);
    for (panel, (heading, lines)) in shown.iter().enumerate() {
        let x_axis = Axis { scale: x, title: "Flow size", format: bytes };
        let y_axis = Axis { scale: y, title: "FCT slowdown", format: plain };
        let area = grid.panel(panel, x_axis, y_axis);
        area.frame(&mut sheet.canvas, heading);
        for (series, line) in lines.iter() {
            let intervals: Vec<(f64, (f64, f64))> =
                line.iter().filter_map(|(bin, e)| Some((bins[*bin].at as f64, interval(e)?))).collect();
            let upper = intervals.iter().map(|(x, ends)| area.at((*x, ends.1)));
            let lower = intervals.iter().rev().map(|(x, ends)| area.at((*x, ends.0)));
            let band: Vec<(f64, f64)> = upper.chain(lower).collect();
            sheet.canvas.area(&band, Paint::Series(*series), 0.14);
        }
        let mut ends = vec![];
        for (series, line) in lines.iter() {
            let points: Vec<(f64, f64)> = line.iter().map(|(bin, e)| (bins[*bin].at as f64, e.mean)).collect();
            area.line(&mut sheet.canvas, &points, *series, true);
            for ((bin, estimate), point) in line.iter().zip(&points) {
                let words = words(&names[*series], heading, &bins[*bin], estimate);
                sheet.canvas.hit(area.at(*point), Some(*series), words);
            }
            if let Some(&(_, last)) = points.last() {
                ends.push((area.at_y(last), names[*series].clone(), *series));
            }
        }
        if panel + 1 == shown.len() && ends.len() > 1 {
            end_labels(&mut sheet.canvas, grid.right(), (area.top, area.top + grid.height), ends);
        }
        sheet.canvas.line((area.left, area.top), (area.left, area.top + grid.height), Paint::Grid, 1.0);
    }
    let columns = vec![
        column("scheme", "text", "", "load balancer"),
        column("size_from_bytes", "integer", "bytes", "smallest flow of the bin"),
        column("size_to_bytes", "integer", "bytes", "largest flow of the bin"),
        column("size_median_bytes", "integer", "bytes", "median flow of the bin, position of its point"),
        column("flows", "integer", "flows", "flows of the scheme in the bin, all seeds"),
        column("slowdown_mean", "real", "", "mean slowdown of these flows"),
        column("slowdown_p50", "real", "", "median slowdown per seed, mean over seeds; empty below 10 flows of a seed"),
        column(
            "slowdown_p99",
            "real",
            "",
            "99th percentile per seed, mean over seeds; empty below 100 flows of a seed",
        ),
        column("slowdown_p50_ci95_low", "real", "", "lower end of the median's 95 % confidence interval"),
        column("slowdown_p50_ci95_high", "real", "", "upper end"),
        column("slowdown_p99_ci95_low", "real", "", "lower end of the 99th percentile's 95 % confidence interval"),
        column("slowdown_p99_ci95_high", "real", "", "upper end"),
        column("seeds", "integer", "", "seeds"),
    ];
    Ok(Some(sheet.finish(KIND.name, view, columns, rows)))
}

fn words(name: &str, heading: &str, bin: &Bin, estimate: &Estimate) -> String {
    let interval = interval(estimate).map_or(String::new(), |(low, high)| {
        format!(" (95 % CI {} to {})", significant_digits(low, 3), significant_digits(high, 3))
    });
    let sizes = if bin.from == bin.to {
        format!("{} B", thousands(&bin.at.to_string()))
    } else {
        format!("{} to {}", bytes(bin.from as f64), bytes(bin.to as f64))
    };
    format!("{name}, {sizes}: {} slowdown {}{interval}", heading.to_lowercase(), significant_digits(estimate.mean, 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sizes_have_one_bin_each() {
        let found = bins(&[vec![10, 20, 10], vec![30, 20]], 100);
        let at = |size| Bin { from: size, to: size, at: size };
        assert_eq!(found, [at(10), at(20), at(30)]);
    }

    #[test]
    fn many_sizes_fall_into_equal_bins_without_overlap() {
        // 1000 different sizes into 20 bins: 50 flows each, the first from 1 to 50.
        let found = bins(&[(1..=1000).rev().collect()], 10);
        assert_eq!(found.len(), 20);
        assert_eq!((found[0].from, found[0].to, found[19].to), (1, 50, 1000));
        assert!(found.windows(2).all(|pair| pair[0].to < pair[1].from));
    }

    #[test]
    fn every_seed_has_enough_flows_in_every_bin() {
        // 1000 flows of one seed would make 20 bins of 50; with at least 100 of each seed there are at most ten. The
        // second seed lacks small sizes, so the first bin extends up to its first.
        let seeds: [Vec<u64>; 2] = [(1..=1000).collect(), (301..=900).collect()];
        let found = bins(&seeds, 100);
        assert!(found.len() > 2 && found.len() <= 6, "{found:?}");
        for sizes in &seeds {
            for bin in &found {
                let inside = sizes.iter().filter(|size| (bin.from..=bin.to).contains(*size)).count();
                assert!(inside >= 100, "{bin:?} holds {inside}");
            }
        }
        assert_eq!((found[0].from, found[found.len() - 1].to), (1, 1000));
    }

    #[test]
    fn flow_is_counted_in_bin_of_its_size() {
        let flow = |size_bytes, slowdown| FlowPoint { size_bytes, slowdown, workload: 0 };
        let flows = [flow(10, 2.0), flow(20, 3.0), flow(10, 1.0), flow(99, 9.0)];
        assert_eq!(binned(&bins(&[vec![10, 20]], 1), flows.iter()), [vec![1.0, 2.0], vec![3.0]]);
    }

    #[test]
    fn tail_of_too_few_flows_is_hidden() {
        let seed = |n: usize| vec![(0..n).map(|i| i as f64).collect::<Vec<f64>>()];
        assert_eq!(over_seeds(&[seed(100), seed(99)], 0, 0.99, MIN_FLOWS), None);
        // 0 to 99: position 99 * 0.99 = 98.01; twice the same values: no spread.
        let found = over_seeds(&[seed(100), seed(100)], 0, 0.99, MIN_FLOWS).unwrap();
        assert!((found.mean - 98.01).abs() < 1e-9 && found.half_width == Some(0.0), "{found:?}");
    }
}
