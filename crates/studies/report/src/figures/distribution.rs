use super::View;
use crate::dataset::RunRows;
use anabranch_results::significant_digits;
use anabranch_statistics::{censored_quantile, mean};

/// Number of the scheme, values with their shares, and the 99th percentile.
type Curve = (usize, Vec<(f64, f64)>, Option<f64>);

/// Distributions of the schemes: a curve is the mean over seeds of their quantiles, and ends where a seed has no more values.
#[derive(Clone, Debug, Default)]
pub(super) struct Distributions {
    pub(super) curves: Vec<Curve>,
    /// Scheme, share and value.
    pub(super) rows: Vec<Vec<String>>,
    pub(super) largest: f64,
    /// Least and largest number of values of a seed per scheme, those that are not known included.
    pub(super) counts: Vec<(usize, usize)>,
    pub(super) ends_early: bool,
}

impl Distributions {
    /// `values` returns the values of a run and how many it has in all, `shares` the shares of a curve over this many values.
    pub(super) fn new(
        view: &View<'_>,
        values: impl Fn(&RunRows) -> (Vec<f64>, usize),
        shares: impl Fn(usize) -> Vec<f64>,
    ) -> Self {
        let mut all_schemes = Self::default();
        for (series, scheme) in view.data.schemes.iter().enumerate() {
            let mut per_seed: Vec<(Vec<f64>, usize)> = scheme.runs.iter().map(&values).collect();
            per_seed.retain(|(_, all)| *all > 0);
            per_seed.iter_mut().for_each(|(known, _)| known.sort_unstable_by(f64::total_cmp));
            let at = |share: f64| {
                let quantiles = per_seed.iter().map(|(known, all)| censored_quantile(known, *all, share));
                mean(&quantiles.collect::<Option<Vec<f64>>>()?)
            };
            let counts = || per_seed.iter().map(|(_, all)| *all);
            let (Some(fewest), Some(most)) = (counts().min(), counts().max()) else { continue };
            let points: Vec<(f64, f64)> =
                shares(fewest).into_iter().filter_map(|share| Some((at(share)?, share))).collect();
            let row = |(x, share): &(f64, f64)| vec![scheme.name.clone(), share.to_string(), x.to_string()];
            all_schemes.rows.extend(points.iter().map(row));
            all_schemes.largest = all_schemes.largest.max(points.last().map_or(0.0, |point| point.0));
            all_schemes.counts.push((fewest, most));
            all_schemes.ends_early |= per_seed.iter().any(|(known, all)| known.len() < *all);
            all_schemes.curves.push((series, points, at(0.99)));
        }
        all_schemes
    }

    pub(super) fn are_empty(&self) -> bool {
        self.curves.iter().all(|(_, points, _)| points.is_empty())
    }

    /// Returns the names with the 99th percentile in `unit`, and the numbers of their curves.
    pub(super) fn entries(&self, view: &View<'_>, names: &[String], unit: &str) -> Vec<(String, usize)> {
        let entry = |(series, _, p99): &Curve| {
            // The legend of a paper has no space for numbers, which its table states.
            let p99 = p99.map_or("not reached".to_string(), |p99| format!("{}{unit}", significant_digits(p99, 3)));
            let number = if view.layout.is_page() { format!(" · p99 {p99}") } else { String::new() };
            (format!("{}{number}", names[*series]), *series)
        };
        self.curves.iter().map(entry).collect()
    }
}
