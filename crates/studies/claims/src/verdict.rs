//! Rule that turns numbers into a verdict. It uses numbers alone: no files, no names.

use super::Published;
use anabranch_statistics::{Estimate, PairedDifference, SIGNIFICANCE, Test, holm, median, sign_test};

anabranch_settings::worded! {
    /// Verdict on a claim.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Verdict {
        /// Direction and number agree with the paper.
        Reproduced = "reproduced",
        /// The direction agrees; our effect is larger.
        Stronger = "same direction, stronger",
        /// The direction agrees; our effect is smaller.
        Weaker = "same direction, weaker",
        /// Not reached, and a proven bound shows that no load balancer reaches it here.
        OutOfReach = "out of reach",
        /// The direction disagrees, or a value without direction misses the number.
        NotReproduced = "not reproduced",
        /// The paper gives no number to compare with.
        NoNumber = "no number published",
        /// Fewer than three seeds, or too much noise to confirm or refute the published number.
        TooFewSeeds = "too few seeds to tell",
        /// The runs are missing.
        #[default]
        NotRun = "not run",
    }
}

/// Comparison of two sides, paired by seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Compared {
    /// Mean of A, or median.
    pub(crate) a: f64,
    pub(crate) b: f64,
    /// Mean of A over mean of B, minus one; or the median of the changes per seed.
    pub(crate) change: f64,
    /// 95 % interval of the change.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) test: Test,
    pub(crate) seeds: usize,
}

impl Compared {
    /// Pairs (A, B), one per seed, by means; `None` if there are none. An infinite value means that flows never ended.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let seeds = pairs.len();
        let endless = |side: fn(&(f64, f64)) -> f64| pairs.iter().any(|pair| side(pair).is_infinite());
        let (a_endless, b_endless) = (endless(|pair| pair.0), endless(|pair| pair.1));
        if a_endless || b_endless {
            let mean = |side: fn(&(f64, f64)) -> f64| {
                Estimate::of(&pairs.iter().map(side).collect::<Vec<_>>()).map_or(f64::NAN, |estimate| estimate.mean)
            };
            // A side that ends at every seed is ahead of one that does not.
            let (change, test) = match (a_endless, b_endless) {
                (true, true) => (0.0, Test::Equal),
                (true, false) => (f64::INFINITY, Test::Constant),
                _ => (-1.0, Test::Constant),
            };
            let test = if seeds < anabranch_statistics::MIN_PAIRS { Test::TooFew } else { test };
            let side = |endless: bool, mean: f64| if endless { f64::INFINITY } else { mean };
            let (a, b) = (side(a_endless, mean(|pair| pair.0)), side(b_endless, mean(|pair| pair.1)));
            return Some(Compared { a, b, change, interval: None, test, seeds });
        }
        let paired = PairedDifference::of(pairs)?;
        let mean = |side: fn(&(f64, f64)) -> f64| Estimate::of(&pairs.iter().map(side).collect::<Vec<_>>());
        let (a, b) = (mean(|pair| pair.0)?.mean, mean(|pair| pair.1)?.mean);
        let share = |difference: f64| match b == 0.0 {
            true if difference == 0.0 => 0.0,
            true => difference.signum() * f64::INFINITY,
            // A difference of two metrics may be negative: a change upwards is one all the same.
            false => difference / b.abs(),
        };
        let interval = paired.difference.interval().map(|(low, high)| (share(low), share(high)));
        Some(Compared { a, b, change: share(paired.difference.mean), interval, test: paired.test, seeds })
    }

    /// As [`Compared::of`], by medians: the median of the changes per seed, with a sign test.
    pub(crate) fn of_medians(pairs: &[(f64, f64)]) -> Option<Self> {
        let change = |(a, b): &(f64, f64)| match a == b {
            true => 0.0,
            false if b.is_infinite() => -1.0,
            false if *b == 0.0 => (a - b).signum() * f64::INFINITY,
            false => (a / b - 1.0) * b.signum(),
        };
        let changes: Vec<f64> = pairs.iter().map(change).collect();
        let (change, interval) = median(&changes)?;
        let side = |side: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(side).collect::<Vec<_>>());
        let (a, b) = (side(|pair| pair.0)?.0, side(|pair| pair.1)?.0);
        Some(Compared { a, b, change, interval, test: sign_test(&changes), seeds: pairs.len() })
    }

    /// Returns the p-value for the correction of a family; `None` if there are too few seeds.
    fn p(&self) -> Option<f64> {
        match self.test {
            Test::TooFew => None,
            Test::Equal => Some(1.0),
            // The seed has no influence, so one observation is conclusive.
            Test::Constant => Some(0.0),
            Test::P(p) => Some(p),
        }
    }
}

/// Significance of each comparison after Holm's correction, and Bonferroni's for `tries` settings of which this is one;
/// `None` if one has too few seeds.
pub(super) fn significant(family: &[Compared], tries: u64) -> Option<Vec<bool>> {
    let p: Vec<f64> = family.iter().map(Compared::p).collect::<Option<_>>()?;
    Some(holm(&p).into_iter().map(|p| p * (tries.max(1) as f64) < SIGNIFICANCE).collect())
}

/// Effect: 0 is none, and its sign is its direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effect {
    pub(crate) mean: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// `true` if it differs significantly from zero.
    pub(crate) significant: bool,
    /// One per cent in its unit.
    pub(crate) percent: f64,
}

/// Per cent. A claimed direction is refuted if the interval reaches less far in that direction; else noise may hide it.
const NOISE_FACTOR: f64 = 5.0;

/// Returns the verdict on an effect with a direction. `tolerance` is a share of the published number.
pub(super) fn of_effect(effect: Effect, published: Published, tolerance: f64) -> Verdict {
    let towards = |sign: f64| effect.significant && effect.mean * sign > 0.0;
    let fit = |low: f64, high: f64, tolerance: f64, size: f64| {
        Fit::of(effect.mean, effect.interval, (low, high), tolerance, size)
    };
    let (low, high) = match published {
        Published::Direction(sign) if towards(sign) => return Verdict::Reproduced,
        Published::Direction(sign) => {
            let (low, high) = effect.interval.unwrap_or((effect.mean, effect.mean));
            let room = if sign > 0.0 { high } else { -low };
            let reversed = effect.significant || room < NOISE_FACTOR * effect.percent;
            return if reversed { Verdict::NotReproduced } else { Verdict::TooFewSeeds };
        }
        // A bound on how far A is behind does not require a direction.
        Published::AtMost(bound) => return fit(f64::NEG_INFINITY, bound, 0.0, bound.abs()).verdict(),
        Published::AtLeast(bound) if bound <= 0.0 => return fit(bound, f64::INFINITY, 0.0, bound.abs()).verdict(),
        Published::AtLeast(bound) => (bound, f64::INFINITY),
        Published::Number(number) => (number, number),
        Published::Range(low, high) => (low, high),
    };
    if low <= 0.0 && high >= 0.0 {
        // A published range that contains zero needs no direction; a value beyond it needs one.
        let size = low.abs().max(high.abs());
        let sign = if high.abs() >= low.abs() { 1.0 } else { -1.0 };
        return match fit(low, high, tolerance, size) {
            Fit::Missed if low != high && towards(sign) => Verdict::Stronger,
            fit => fit.verdict(),
        };
    }
    let sign = low.signum();
    match fit(low, high, tolerance, effect.mean.abs()) {
        Fit::Within if towards(sign) => Verdict::Reproduced,
        Fit::Within | Fit::Unclear => Verdict::TooFewSeeds,
        Fit::Missed if !towards(sign) => Verdict::NotReproduced,
        Fit::Missed => {
            let (near, size) = (if sign > 0.0 { low } else { high }, effect.mean * sign);
            if size < near * sign { Verdict::Weaker } else { Verdict::Stronger }
        }
    }
}

/// Returns the verdict on a value without a comparison.
pub(super) fn of_value(mean: f64, interval: Option<(f64, f64)>, published: Published, tolerance: f64) -> Verdict {
    let (range, tolerance) = match published {
        Published::Number(number) => ((number, number), tolerance),
        Published::Range(low, high) => ((low, high), tolerance),
        Published::AtMost(bound) => ((f64::NEG_INFINITY, bound), 0.0),
        Published::AtLeast(bound) => ((bound, f64::INFINITY), 0.0),
        Published::Direction(_) => return Verdict::NoNumber,
    };
    Fit::of(mean, interval, range, tolerance, mean.abs()).verdict()
}

/// Returns the verdict on two sides that should be equal: the whole interval must be within the tolerance.
pub(super) fn of_equality(compared: Compared, tolerance: f64) -> Verdict {
    if compared.test == Test::TooFew {
        return Verdict::TooFewSeeds;
    }
    let (low, high) = compared.interval.unwrap_or((compared.change, compared.change));
    match () {
        () if low >= -tolerance && high <= tolerance => Verdict::Reproduced,
        () if low <= tolerance && high >= -tolerance => Verdict::TooFewSeeds,
        () => Verdict::NotReproduced,
    }
}

/// Returns the verdict on comparisons that should each be negative (A ahead). `level` is the share by which A may be
/// behind and still count as level; `None` if A must be ahead.
pub(super) fn of_order(pairs: &[Compared], level: Option<f64>, tries: u64) -> Verdict {
    let Some(differ) = significant(pairs, tries) else { return Verdict::TooFewSeeds };
    let ahead = |(pair, differ): (&Compared, &bool)| *differ && pair.change < 0.0;
    if let Some(level) = level {
        let each = |pair: (&Compared, &bool)| {
            let (low, high) = pair.0.interval.unwrap_or((pair.0.change, pair.0.change));
            match () {
                () if ahead(pair) || high <= level => Verdict::Reproduced,
                () if *pair.1 && low > level => Verdict::NotReproduced,
                () => Verdict::TooFewSeeds,
            }
        };
        return of_every(&pairs.iter().zip(&differ).map(each).collect::<Vec<_>>());
    }
    let behind = pairs.iter().zip(&differ).any(|(pair, differ)| *differ && pair.change > 0.0);
    let count = pairs.iter().zip(&differ).filter(|pair| ahead(*pair)).count();
    let room = |pair: &Compared| -pair.interval.map_or(pair.change, |(low, _)| low) >= NOISE_FACTOR / 100.0;
    match () {
        () if behind => Verdict::NotReproduced,
        () if count == pairs.len() => Verdict::Reproduced,
        () if count > 0 => Verdict::Weaker,
        () if pairs.iter().all(room) => Verdict::TooFewSeeds,
        () => Verdict::NotReproduced,
    }
}

/// Returns `true` if an effect as far in the published direction as `best` could be the published one, `tolerance` included.
/// `none` is the effect of no difference: 0 for changes, 1 for factors. The sign of `published` is its direction.
pub(super) fn is_in_reach(best: f64, published: Published, tolerance: f64, none: f64) -> bool {
    let reaches = |number: f64, tolerance: f64| {
        let (wanted, best) = (number - none, best - none);
        // An effect in the other direction needs no bound.
        best * wanted.signum() >= wanted.abs() * (1.0 - tolerance) || wanted == 0.0
    };
    match published {
        Published::Number(number) => reaches(number, tolerance),
        Published::Range(low, high) => {
            (low - none) * (high - none) <= 0.0 || reaches(if low > none { low } else { high }, tolerance)
        }
        Published::AtMost(bound) if bound < none => reaches(bound, 0.0),
        Published::AtLeast(bound) if bound > none => reaches(bound, 0.0),
        Published::AtMost(_) | Published::AtLeast(_) => true,
        Published::Direction(sign) => (best - none) * sign > 0.0,
    }
}

/// Combines the verdicts of several groups, each of which must hold.
pub(super) fn of_every(verdicts: &[Verdict]) -> Verdict {
    const WORST_FIRST: [Verdict; 8] = [
        Verdict::NotRun,
        Verdict::NotReproduced,
        Verdict::OutOfReach,
        Verdict::TooFewSeeds,
        Verdict::Weaker,
        Verdict::Stronger,
        Verdict::Reproduced,
        Verdict::NoNumber,
    ];
    WORST_FIRST.into_iter().find(|verdict| verdicts.contains(verdict)).unwrap_or(Verdict::NotRun)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fit {
    /// The mean is in the range, and precise enough.
    Within,
    /// Neither confirmed nor refuted: more seeds are needed.
    Unclear,
    /// Neither the mean nor any part of the interval is in the range.
    Missed,
}

impl Fit {
    /// The bounds are widened for the mean by a share of themselves. A number is precise enough if half the interval is
    /// at most half of `size`, or all of it is in the range: noise never makes a number fit.
    fn of(mean: f64, interval: Option<(f64, f64)>, (low, high): (f64, f64), tolerance: f64, size: f64) -> Self {
        let wider =
            |bound: f64, sign: f64| if bound.is_finite() { bound + sign * tolerance * bound.abs() } else { bound };
        let (least, most) = (wider(low, -1.0), wider(high, 1.0));
        let (from, to) = interval.unwrap_or((mean, mean));
        let within = mean >= least && mean <= most;
        let known = (to - from) / 2.0 <= size / 2.0 || (from >= least && to <= most);
        match () {
            () if within && known => Fit::Within,
            () if within || (from <= high && to >= low) => Fit::Unclear,
            () => Fit::Missed,
        }
    }

    fn verdict(self) -> Verdict {
        match self {
            Fit::Within => Verdict::Reproduced,
            Fit::Unclear => Verdict::TooFewSeeds,
            Fit::Missed => Verdict::NotReproduced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(mean: f64, half: f64) -> Effect {
        Effect { mean, interval: Some((mean - half, mean + half)), significant: mean.abs() > half, percent: 1.0 }
    }

    #[test]
    fn every_verdict_over_a_number() {
        // Published: 8 % below; a quarter of it is 2 %, so from -10 to -6.
        let of = |mean: f64, half: f64| of_effect(effect(mean, half), Published::Number(-8.0), 0.25);
        assert_eq!(of(-6.1, 0.01), Verdict::Reproduced);
        assert_eq!(of(-9.9, 0.01), Verdict::Reproduced);
        assert_eq!(of(-5.9, 0.01), Verdict::Weaker);
        assert_eq!(of(-10.1, 0.01), Verdict::Stronger);
        assert_eq!(of(8.0, 0.01), Verdict::NotReproduced, "the other way");
    }

    #[test]
    fn a_change_of_negative_values_keeps_its_direction() {
        // -4 is above -5, by a fifth of 5.
        let up = Compared::of(&[(-4.0, -5.0), (-4.1, -5.1), (-3.9, -4.9)]).unwrap();
        let (low, high) = up.interval.unwrap();
        assert!((up.change - 0.2).abs() < 1e-12 && low <= up.change && up.change <= high, "{up:?}");
        let median = Compared::of_medians(&[(-4.0, -5.0); 6]).unwrap();
        assert!((median.change - 0.2).abs() < 1e-12, "{median:?}");
    }

    #[test]
    fn more_tries_need_a_smaller_p() {
        // p = 0.03 counts for one try, and not for two: 2 * 0.03 is above 5 %.
        let c = Compared { a: 1.0, b: 2.0, change: -0.5, interval: None, test: Test::P(0.03), seeds: 5 };
        assert_eq!(significant(&[c], 1), Some(vec![true]));
        assert_eq!(significant(&[c], 2), Some(vec![false]));
    }

    #[test]
    fn numbers_beyond_a_bound_are_out_of_reach() {
        // 27 % below, a quarter of it tolerated: 20.25 %. A bound that allows 11.6 % rules it out, one of 25 % does not.
        assert!(!is_in_reach(-11.6, Published::Number(-27.0), 0.25, 0.0));
        assert!(is_in_reach(-25.0, Published::Number(-27.0), 0.25, 0.0));
        // A range is reached at its nearer end; a direction needs any gain at all.
        assert!(is_in_reach(-8.0, Published::Range(-20.0, -10.0), 0.25, 0.0));
        assert!(!is_in_reach(-7.0, Published::Range(-20.0, -10.0), 0.25, 0.0));
        assert!(is_in_reach(-0.1, Published::Direction(-1.0), 0.25, 0.0));
        assert!(!is_in_reach(0.0, Published::Direction(-1.0), 0.25, 0.0));
        // 1.8 times as good, a quarter of the excess tolerated: 1.6.
        assert!(is_in_reach(1.6, Published::Number(1.8), 0.25, 1.0));
        assert!(!is_in_reach(1.59, Published::Number(1.8), 0.25, 1.0));
    }

    #[test]
    fn noise_is_no_direction() {
        // -8 on average, but the interval contains zero; it contains -8 too, so the claim is not refuted.
        assert_eq!(of_effect(effect(-8.0, 8.5), Published::Number(-8.0), 0.25), Verdict::TooFewSeeds);
        assert_eq!(of_effect(effect(-8.0, 8.5), Published::Direction(-1.0), 0.25), Verdict::TooFewSeeds);
        // From -4.5 to 3.5 is less than 5 % in the claimed direction; from -2 to 10 reaches 10 % in the opposite one.
        assert_eq!(of_effect(effect(-0.5, 4.0), Published::Direction(-1.0), 0.25), Verdict::NotReproduced);
        assert_eq!(of_effect(effect(4.0, 6.0), Published::Direction(-1.0), 0.25), Verdict::NotReproduced);
        assert_eq!(of_effect(effect(4.0, 6.0), Published::Direction(1.0), 0.25), Verdict::TooFewSeeds);
        assert_eq!(of_effect(effect(8.0, 1.0), Published::Direction(-1.0), 0.25), Verdict::NotReproduced);
        assert_eq!(of_effect(effect(-8.0, 7.5), Published::Direction(-1.0), 0.25), Verdict::Reproduced);
        // From -5 to 3: neither a direction nor -8.
        assert_eq!(of_effect(effect(-1.0, 4.0), Published::Number(-8.0), 0.25), Verdict::NotReproduced);
    }

    #[test]
    fn noise_never_reproduces_a_number() {
        let of = |mean: f64, half: f64| of_effect(effect(mean, half), Published::Number(-8.0), 0.25);
        // A wide interval around the number itself: half of 8 is 4.
        assert_eq!((of(-8.0, 3.9), of(-8.0, 4.1)), (Verdict::Reproduced, Verdict::TooFewSeeds));
        // The mean misses it, but the interval from -8.5 to -0.5 contains it; from -7.9 to -3.1 does not.
        assert_eq!((of(-4.5, 4.0), of(-5.5, 2.4)), (Verdict::TooFewSeeds, Verdict::Weaker));
        // From -24 to -8.1: certainly more, though wide.
        assert_eq!(of(-16.05, 7.95), Verdict::Stronger);
        // At least 1: from 2 to 18 is wide, but entirely in the range.
        assert_eq!(of_effect(effect(10.0, 8.0), Published::AtLeast(1.0), 0.0), Verdict::Reproduced);
        assert_eq!(of_effect(effect(10.0, 9.5), Published::AtLeast(1.0), 0.0), Verdict::TooFewSeeds);
        // At most 8 behind: half of that is 4.
        let behind = |mean: f64, half: f64| of_effect(effect(mean, half), Published::AtMost(8.0), 0.0);
        assert_eq!((behind(6.0, 3.9), behind(6.0, 4.1)), (Verdict::Reproduced, Verdict::TooFewSeeds));
        assert_eq!((behind(-20.0, 15.0), behind(9.0, 1.5)), (Verdict::Reproduced, Verdict::TooFewSeeds));
    }

    #[test]
    fn ranges_and_bounds() {
        let of = |mean: f64, published| of_effect(effect(mean, 0.001), published, 0.0);
        let range = Published::Range(0.1, 0.2);
        assert_eq!(of(0.15, range), Verdict::Reproduced);
        assert_eq!((of(0.05, range), of(0.3, range)), (Verdict::Weaker, Verdict::Stronger));
        assert_eq!(of(-0.15, range), Verdict::NotReproduced);
        // Behind by less than 8.3: from 0 to 8.3; level is within, ahead is not, further behind is stronger.
        let gap = Published::Range(0.0, 8.3);
        assert_eq!((of(4.7, gap), of(0.0, gap)), (Verdict::Reproduced, Verdict::Reproduced));
        assert_eq!((of(-3.0, gap), of(30.0, gap)), (Verdict::NotReproduced, Verdict::Stronger));
        assert_eq!(of(0.8, Published::AtLeast(0.5)), Verdict::Reproduced);
        assert_eq!(of(0.3, Published::AtLeast(0.5)), Verdict::Weaker);
        assert_eq!(of(-0.8, Published::AtLeast(0.5)), Verdict::NotReproduced);
        assert_eq!(
            (of(8.0, Published::AtMost(8.3)), of(9.0, Published::AtMost(8.3))),
            (Verdict::Reproduced, Verdict::NotReproduced)
        );
        // No change published: an interval around zero has no size to compare with, which is the purpose of `equal`.
        assert_eq!(
            (of(0.0, Published::Number(0.0)), of(0.1, Published::Number(0.0))),
            (Verdict::TooFewSeeds, Verdict::NotReproduced)
        );
    }

    #[test]
    fn single_values_are_judged_directly() {
        let of = |mean, half, published| of_value(mean, Some((mean - half, mean + half)), published, 0.1);
        assert_eq!(of(2.75, 0.001, Published::Range(2.74, 2.77)), Verdict::Reproduced);
        assert_eq!(of(2.0, 0.001, Published::Range(2.74, 2.77)), Verdict::NotReproduced);
        assert_eq!(of(2.0, 0.8, Published::Range(2.74, 2.77)), Verdict::TooFewSeeds, "the interval alone reaches it");
        assert_eq!(of(2.75, 1.4, Published::Range(2.74, 2.77)), Verdict::TooFewSeeds, "wider than half of 2.75");
        assert_eq!(of(2.75, 1.3, Published::Range(2.74, 2.77)), Verdict::Reproduced);
        assert_eq!(of(91.0, 0.0, Published::Number(100.0)), Verdict::Reproduced);
        assert_eq!(of(89.0, 0.0, Published::Number(100.0)), Verdict::NotReproduced);
    }

    #[test]
    fn the_change_of_pairs() {
        // A: 9, 10, 11; B: 10, 12, 11. Differences -1, -2, 0: mean -1, deviation 1, half width 4.303 / sqrt(3) = 2.484;
        // of B's mean 11 that is -9.09 % from -31.7 to 13.5 %.
        let c = Compared::of(&[(9.0, 10.0), (10.0, 12.0), (11.0, 11.0)]).unwrap();
        assert!((c.change + 1.0 / 11.0).abs() < 1e-12);
        let (low, high) = c.interval.unwrap();
        assert!((low + 3.484 / 11.0).abs() < 1e-3 && (high - 1.484 / 11.0).abs() < 1e-3, "{low} {high}");
        assert_eq!(significant(&[c], 1), Some(vec![false]));
    }

    #[test]
    fn the_change_of_medians() {
        // One seed in six is a hundred times as slow; the changes are -10, -20, -30, -40, -50 % and that one. The
        // median is between -20 and -30 %, and one of six above is 2 (1 + 6) / 64 = 22 %.
        let mut pairs: Vec<(f64, f64)> = (1..=5).map(|tenth| (10.0 - f64::from(tenth), 10.0)).collect();
        pairs.push((1000.0, 10.0));
        let c = Compared::of_medians(&pairs).unwrap();
        let Test::P(p) = c.test else { panic!("{c:?}") };
        assert!((c.change + 0.25).abs() < 1e-12 && (p - 14.0 / 64.0).abs() < 1e-12, "{c:?}");
        assert_eq!(significant(&[c], 1), Some(vec![false]));
        // Ahead as often as never ending.
        let endless = [(9.0, f64::INFINITY), (f64::INFINITY, 9.0), (f64::INFINITY, f64::INFINITY)];
        let c = Compared::of_medians(&[endless, endless].concat()).unwrap();
        assert_eq!((c.change, c.test), (0.0, Test::P(1.0)));
    }

    #[test]
    fn unfinished_scheme_is_behind() {
        let c = Compared::of(&[(9.0, f64::INFINITY), (9.5, 12.0), (9.1, 11.0)]).unwrap();
        assert_eq!((c.change, significant(&[c], 1)), (-1.0, Some(vec![true])));
        let c = Compared::of(&[(f64::INFINITY, 9.0), (9.5, 12.0), (9.1, 11.0)]).unwrap();
        assert!(c.change > 0.0 && significant(&[c], 1) == Some(vec![true]));
        let both = Compared::of(&[(f64::INFINITY, f64::INFINITY); 3]).unwrap();
        assert_eq!(significant(&[both], 1), Some(vec![false]));
        assert_eq!(Compared::of(&[(9.0, f64::INFINITY)]).unwrap().test, Test::TooFew);
    }

    #[test]
    fn orders() {
        let ahead = Compared::of(&[(9.0, 10.0), (9.1, 10.2), (9.0, 10.1)]).unwrap();
        let behind = Compared::of(&[(10.0, 9.0), (10.2, 9.1), (10.1, 9.0)]).unwrap();
        let noise = Compared::of(&[(9.0, 10.0), (10.0, 9.0), (9.5, 9.6)]).unwrap();
        let few = Compared::of(&[(9.0, 10.0), (9.0, 10.0)]).unwrap();
        // Differences of 0.01, 0, -0.01 over 10 are 0 +- 0.25 %.
        let level = Compared::of(&[(10.01, 10.0), (10.0, 10.0), (9.99, 10.0)]).unwrap();
        assert_eq!(of_order(&[ahead, ahead], None, 1), Verdict::Reproduced);
        assert_eq!(of_order(&[ahead, noise], None, 1), Verdict::Weaker);
        // Differences of -1, 1, -0.1 over 9.5: the interval reaches a quarter.
        assert_eq!(of_order(&[noise, noise], None, 1), Verdict::TooFewSeeds);
        assert_eq!(of_order(&[noise, level], None, 1), Verdict::NotReproduced);
        assert_eq!(of_order(&[ahead, behind], None, 1), Verdict::NotReproduced);
        assert_eq!(of_order(&[ahead, few], None, 1), Verdict::TooFewSeeds);
        // Level within 2 %: noise of +- 26 % is not.
        assert_eq!(of_order(&[ahead, level], Some(0.02), 1), Verdict::Reproduced);
        assert_eq!(of_order(&[ahead, noise], Some(0.02), 1), Verdict::TooFewSeeds);
        assert_eq!(of_order(&[ahead, behind], Some(0.02), 1), Verdict::NotReproduced);
    }

    #[test]
    fn a_large_family_needs_more() {
        // Differences -1, -2, -3: mean -2, standard error 1 / sqrt(3), t = -3.46 with two degrees: p = 0.074. Differences
        // -2, -2.5, -3: t = -2.5 / (0.5 / sqrt(3)) = -8.66, p = 0.0131: alone significant, five times it is not.
        let c = Compared::of(&[(8.0, 10.0), (7.5, 10.0), (7.0, 10.0)]).unwrap();
        assert_eq!(significant(&[c], 1), Some(vec![true]));
        assert_eq!(significant(&[c; 5], 1), Some(vec![false; 5]));
    }

    #[test]
    fn equal_requires_the_whole_interval() {
        let c = |half: f64| Compared {
            a: 1.0,
            b: 1.0,
            change: 0.0,
            interval: Some((-half, half)),
            test: Test::P(1.0),
            seeds: 5,
        };
        assert_eq!(of_equality(c(0.01), 0.02), Verdict::Reproduced);
        assert_eq!(of_equality(c(0.03), 0.02), Verdict::TooFewSeeds, "alike or not");
        let far = Compared { change: 0.05, interval: Some((0.03, 0.07)), ..c(0.0) };
        assert_eq!(of_equality(far, 0.02), Verdict::NotReproduced);
    }

    #[test]
    fn the_worst_of_several_counts() {
        use Verdict::{NotReproduced, NotRun, Reproduced, Stronger, TooFewSeeds, Weaker};
        assert_eq!(of_every(&[Reproduced, Stronger]), Stronger);
        assert_eq!(of_every(&[Reproduced, Weaker, Stronger]), Weaker);
        assert_eq!(of_every(&[Weaker, NotReproduced]), NotReproduced);
        assert_eq!(of_every(&[Reproduced, TooFewSeeds]), TooFewSeeds);
        assert_eq!(of_every(&[TooFewSeeds, NotReproduced]), NotReproduced);
        assert_eq!(of_every(&[NotReproduced, NotRun]), NotRun);
        assert_eq!(of_every(&[Reproduced, Reproduced]), Reproduced);
    }
}
