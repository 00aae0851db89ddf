//! Comparisons that add seeds until their differences are decided, with the correction that this needs.

use crate::SIGNIFICANCE;
use serde::{Deserialize, Serialize};
use std::f64::consts::E;

/// Plan of a comparison that adds seeds until its differences are decided. It is fixed before the first result.
///
/// The differences are tested after each of [`Sequential::looks`]. An interim test may spend a part of the 5 % that depends only on
/// the share of the seeds it uses: alpha(t) = alpha ln(1 + (e - 1) t), the Pocock-type function of Lan and `DeMets`
/// (Biometrika 70, 1983). The tests are combined by Bonferroni's inequality, so the error is at most 5 % for any
/// correlation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sequential {
    /// A difference whose interval is within this share of the baseline's mean is decided too: too small to matter.
    pub share: f64,
    /// Number of seeds after which it ends either way.
    pub max_seeds: u64,
    /// Numbers of seeds after which the differences are tested, ascending; the last is `max_seeds`.
    pub looks: Vec<u64>,
}

impl Sequential {
    /// Plans interim tests from `first` seeds on, each with half as many again, up to `max_seeds`.
    pub fn new(share: f64, first: u64, max_seeds: u64) -> Self {
        let next = |seeds: &u64| Some(*seeds + seeds.div_ceil(2).max(1));
        let before_last = std::iter::successors(Some(first.max(1)), next).take_while(|seeds| *seeds < max_seeds);
        Sequential { share, max_seeds, looks: before_last.chain([max_seeds]).collect() }
    }

    /// Returns the interim tests of the first `seeds` seeds, the last of all of them: number of seeds, share of the level.
    pub fn looks_in(&self, seeds: usize) -> Vec<(usize, f64)> {
        let spent = |look: u64| (1.0 + (E - 1.0) * look as f64 / self.max_seeds.max(1) as f64).ln();
        let mut before = 0.0;
        let mut looks = vec![];
        for look in &self.looks {
            let weight = spent(*look) - before;
            before = spent(*look);
            let number = usize::try_from(*look).unwrap_or(usize::MAX);
            looks.push((number.min(seeds), weight));
            if number >= seeds {
                return looks;
            }
        }
        // More seeds than planned: the last test has them all.
        if let Some(last) = looks.last_mut() {
            last.0 = seeds;
        }
        looks
    }

    /// Returns the share of the level at which a comparison of `seeds` seeds is tested.
    pub fn level(&self, seeds: usize) -> f64 {
        self.looks_in(seeds).last().map_or(1.0, |look| look.1)
    }

    /// Returns the level of one test in per cent, as in tables.
    pub fn level_percent(&self, seeds: usize) -> f64 {
        100.0 * SIGNIFICANCE * self.level(seeds)
    }
}
