//! Slowdown by flow size: the bins, quantiles and intervals of the reports' figure and of Python's.

use anabranch_statistics::{Estimate, Range, quantile};

/// Number of bins if flows have many sizes.
const BINS: usize = 20;
/// Up to this many different sizes, each size is a bin.
pub(crate) const DISTINCT: usize = 24;
/// Minimum number of flows of every seed in a bin: with fewer, the 99th percentile is close to the slowest flow.
pub(crate) const MIN_FLOWS: usize = 100;
/// The same for a median.
pub(crate) const MIN_FLOWS_MEDIAN: usize = 10;

/// `at`: median size of its flows, at which its point is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bin {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) at: u64,
}

/// Bins over the flows of `seeds` (sizes per seed), no size in two, with `fewest` flows of every seed or more if there
/// are as many. Up to [`DISTINCT`] different sizes are a bin each, regardless of their flows.
fn filled(seeds: &[Vec<u64>], fewest: usize) -> Vec<Bin> {
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

/// Returns the bins for the 99th percentile or, where that gives fewer than two, for the median.
pub(crate) fn bins(seeds: &[Vec<u64>]) -> Vec<Bin> {
    let bins = filled(seeds, MIN_FLOWS);
    if bins.len() < 2 { filled(seeds, MIN_FLOWS_MEDIAN) } else { bins }
}

/// Minimum number of flows of every seed in a bin for this quantile: one beyond it on average, and at least those of a median.
fn fewest(q: f64) -> usize {
    // Less the rounding error of 1 - q.
    MIN_FLOWS_MEDIAN.max((1.0 / (1.0 - q) - 1e-6).ceil() as usize)
}

pub(crate) fn binned(bins: &[Bin], flows: impl Iterator<Item = (u64, f64)>) -> Vec<Vec<f64>> {
    let mut slowdowns = vec![vec![]; bins.len()];
    for (size, slowdown) in flows {
        let bin = bins.partition_point(|bin| bin.to < size);
        if let Some(bin) = slowdowns.get_mut(bin) {
            bin.push(slowdown);
        }
    }
    for bin in &mut slowdowns {
        bin.sort_unstable_by(f64::total_cmp);
    }
    slowdowns
}

/// `None` if a seed has too few flows in the bin for this quantile.
pub(crate) fn over_seeds(seeds: &[Vec<Vec<f64>>], bin: usize, q: f64) -> Option<Estimate> {
    if seeds.is_empty() || seeds.iter().any(|bins| bins[bin].len() < fewest(q)) {
        return None;
    }
    Estimate::of(&seeds.iter().filter_map(|bins| quantile(&bins[bin], q)).collect::<Vec<_>>())
}

/// A slowdown of a simulation is at least 1; the model of a real network may be slower than the network.
pub(crate) fn interval(estimate: &Estimate) -> Option<(f64, f64)> {
    estimate.interval_in(Range::AtLeast(if estimate.mean > 1.0 { 1.0 } else { 0.0 }))
}

/// Slowdown of the flows of a scheme in a bin of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizePoint {
    /// Smallest size, largest size, and median size of the bin in bytes; all schemes share the bins.
    pub sizes: [u64; 3],
    /// Flows of the scheme in the bin, all seeds.
    pub flows: usize,
    /// Quantile per seed, mean over seeds; `None` where a seed has too few flows for it.
    pub slowdown: Option<f64>,
    /// Its 95 % confidence interval (Student's t over seeds); `None` below two seeds.
    pub interval: Option<(f64, f64)>,
}

/// Returns a quantile of the slowdown by flow size, as the figure `slowdown_by_size` shows it: points per scheme.
///
/// `schemes`: size in bytes and slowdown of each flow, per scheme and seed. `quantile`: from 0 to below 1. The bins are those of
/// the scheme with the most flows, since not all schemes finish all flows.
pub fn slowdown_by_size(schemes: &[Vec<Vec<(u64, f64)>>], quantile: f64) -> Vec<Vec<SizePoint>> {
    let most = schemes.iter().rev().max_by_key(|seeds| seeds.iter().map(Vec::len).sum::<usize>());
    let sizes: Vec<Vec<u64>> =
        most.into_iter().flatten().map(|flows| flows.iter().map(|flow| flow.0).collect()).collect();
    let bins = bins(&sizes);
    let of_scheme = |seeds: &Vec<Vec<(u64, f64)>>| {
        let per_seed: Vec<Vec<Vec<f64>>> = seeds.iter().map(|flows| binned(&bins, flows.iter().copied())).collect();
        let point = |(at, bin): (usize, &Bin)| {
            let estimate = over_seeds(&per_seed, at, quantile);
            SizePoint {
                sizes: [bin.from, bin.to, bin.at],
                flows: per_seed.iter().map(|bins| bins[at].len()).sum(),
                slowdown: estimate.map(|estimate| estimate.mean),
                interval: estimate.as_ref().and_then(interval),
            }
        };
        bins.iter().enumerate().map(point).collect()
    };
    schemes.iter().map(of_scheme).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sizes_have_one_bin_each() {
        let found = filled(&[vec![10, 20, 10], vec![30, 20]], 100);
        let at = |size| Bin { from: size, to: size, at: size };
        assert_eq!(found, [at(10), at(20), at(30)]);
    }

    #[test]
    fn many_sizes_fall_into_equal_bins_without_overlap() {
        // 1000 different sizes into 20 bins: 50 flows each, the first from 1 to 50.
        let found = filled(&[(1..=1000).rev().collect()], 10);
        assert_eq!(found.len(), 20);
        assert_eq!((found[0].from, found[0].to, found[19].to), (1, 50, 1000));
        assert!(found.windows(2).all(|pair| pair[0].to < pair[1].from));
    }

    #[test]
    fn every_seed_has_enough_flows_in_every_bin() {
        // 1000 flows of one seed would make 20 bins of 50; with at least 100 of each seed there are at most ten. The
        // second seed lacks small sizes, so the first bin extends up to its first.
        let seeds: [Vec<u64>; 2] = [(1..=1000).collect(), (301..=900).collect()];
        let found = filled(&seeds, 100);
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
        let flows = [(10, 2.0), (20, 3.0), (10, 1.0), (99, 9.0)];
        assert_eq!(binned(&bins(&[vec![10, 20]]), flows.into_iter()), [vec![1.0, 2.0], vec![3.0]]);
    }

    #[test]
    fn tail_of_too_few_flows_is_hidden() {
        let seed = |n: usize| vec![(0..n).map(|i| i as f64).collect::<Vec<f64>>()];
        assert_eq!(over_seeds(&[seed(100), seed(99)], 0, 0.99), None);
        // 0 to 99: position 99 * 0.99 = 98.01; twice the same values: no spread.
        let found = over_seeds(&[seed(100), seed(100)], 0, 0.99).unwrap();
        assert!((found.mean - 98.01).abs() < 1e-9 && found.half_width == Some(0.0), "{found:?}");
    }

    #[test]
    fn quantiles_need_a_flow_beyond_them() {
        assert_eq!([0.0, 0.5, 0.9, 0.95, 0.99, 0.999].map(fewest), [10, 10, 10, 20, 100, 1000]);
    }

    #[test]
    fn schemes_share_the_bins_of_the_one_that_finished_most() {
        // 20 flows of 10 and 20 bytes; the other scheme finished the small ones alone.
        let all: Vec<(u64, f64)> = (0..40).map(|i| (10 + 10 * (i % 2), 1.0 + f64::from(i as u32))).collect();
        let small: Vec<(u64, f64)> = all.iter().copied().filter(|flow| flow.0 == 10).collect();
        let found = slowdown_by_size(&[vec![small], vec![all.clone(), all]], 0.5);
        // Slowdowns 1, 3 to 39 of the small, 2, 4 to 40 of the large: medians 20 and 21.
        let point = |size, flows, slowdown, interval| SizePoint { sizes: [size; 3], flows, slowdown, interval };
        assert_eq!(found[0], [point(10, 20, Some(20.0), None), point(20, 0, None, None)]);
        assert_eq!(found[1][0], point(10, 40, Some(20.0), Some((20.0, 20.0))));
        assert_eq!(found[1][1], point(20, 40, Some(21.0), Some((21.0, 21.0))));
    }
}
