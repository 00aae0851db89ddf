//! The rule that turns numbers into a verdict. Numbers alone: no files, no names.

use super::model::Published;
use anabranch_report::{Estimate, PairedDifference, SIGNIFICANCE, Test, holm};

/// What becomes of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Direction and number, where there is one.
    Reproduced,
    /// The direction; ours is larger.
    Stronger,
    /// The direction; ours is smaller.
    Weaker,
    /// Neither.
    NotReproduced,
    /// The paper gives no number to compare with.
    NoNumber,
    /// Fewer than three seeds.
    TooFewSeeds,
    /// The runs are not there.
    NotRun,
}

impl Verdict {
    /// As it is printed.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Stronger => "same direction, stronger",
            Verdict::Weaker => "same direction, weaker",
            Verdict::NotReproduced => "not reproduced",
            Verdict::NoNumber => "no number published",
            Verdict::TooFewSeeds => "too few seeds",
            Verdict::NotRun => "not run",
        }
    }
}

/// Two sides, compared seed by seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Mean of A.
    pub a: f64,
    /// Mean of B.
    pub b: f64,
    /// Mean of A over that of B, less one.
    pub change: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// What tells whether the two differ.
    pub test: Test,
    /// Pairs of seeds.
    pub seeds: usize,
}

impl Compared {
    /// Of pairs (A, B), one per seed; `None` where there are none. A side that is infinite at a seed never ended there.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let seeds = pairs.len();
        let endless = |side: fn(&(f64, f64)) -> f64| pairs.iter().any(|pair| side(pair).is_infinite());
        let (a_endless, b_endless) = (endless(|pair| pair.0), endless(|pair| pair.1));
        if a_endless || b_endless {
            let mean = |side: fn(&(f64, f64)) -> f64| {
                Estimate::of(&pairs.iter().map(side).collect::<Vec<_>>()).map_or(f64::NAN, |estimate| estimate.mean)
            };
            // What ends at every seed is ahead of what does not.
            let (change, test) = match (a_endless, b_endless) {
                (true, true) => (0.0, Test::Equal),
                (true, false) => (f64::INFINITY, Test::Constant),
                _ => (-1.0, Test::Constant),
            };
            let test = if seeds < anabranch_report::FEWEST_PAIRS { Test::TooFew } else { test };
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
            false => difference / b,
        };
        let interval = paired.difference.interval().map(|(low, high)| (share(low), share(high)));
        Some(Compared { a, b, change: share(paired.difference.mean), interval, test: paired.test, seeds })
    }

    /// The p-value that a family is corrected with; `None` where there are too few seeds.
    fn p(&self) -> Option<f64> {
        match self.test {
            Test::TooFew => None,
            Test::Equal => Some(1.0),
            // The seed changes nothing: what was found once is found always.
            Test::Constant => Some(0.0),
            Test::P(p) => Some(p),
        }
    }
}

/// Which of a claim's comparisons differ, corrected for all of them (Holm); `None` where one has too few seeds.
pub(super) fn significant(family: &[Compared]) -> Option<Vec<bool>> {
    let p: Vec<f64> = family.iter().map(Compared::p).collect::<Option<_>>()?;
    Some(holm(&p).into_iter().map(|p| p < SIGNIFICANCE).collect())
}

/// An effect: 0 is none, and its sign is its direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Its mean.
    pub mean: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Whether it differs from none.
    pub significant: bool,
}

/// The verdict over an effect with a direction. `tolerance` is a share of the published number.
pub(super) fn of_effect(effect: Effect, published: Published, tolerance: f64) -> Verdict {
    let yes = |holds: bool| if holds { Verdict::Reproduced } else { Verdict::NotReproduced };
    let towards = |sign: f64| effect.significant && effect.mean * sign > 0.0;
    let (low, high) = match published {
        Published::Direction(sign) => return yes(towards(sign)),
        // A bound on how far behind says nothing of being ahead.
        Published::AtMost(bound) => return yes(reaches(effect.mean, effect.interval, f64::NEG_INFINITY, bound, 0.0)),
        Published::AtLeast(bound) if bound <= 0.0 => {
            return yes(reaches(effect.mean, effect.interval, bound, f64::INFINITY, 0.0));
        }
        Published::AtLeast(bound) => (bound, f64::INFINITY),
        Published::Number(number) => (number, number),
        Published::Range(low, high) => (low, high),
    };
    let fits = reaches(effect.mean, effect.interval, low, high, tolerance);
    if low <= 0.0 && high >= 0.0 {
        // What may be nothing needs no direction; beyond it one is needed.
        let sign = if high.abs() >= low.abs() { 1.0 } else { -1.0 };
        return match fits {
            true => Verdict::Reproduced,
            false if low != high && towards(sign) => Verdict::Stronger,
            false => Verdict::NotReproduced,
        };
    }
    let sign = low.signum();
    if !towards(sign) {
        return Verdict::NotReproduced;
    }
    if fits {
        return Verdict::Reproduced;
    }
    let (near, size) = (if sign > 0.0 { low } else { high }, effect.mean * sign);
    if size < near * sign { Verdict::Weaker } else { Verdict::Stronger }
}

/// The verdict over a number that stands for itself. An interval that holds zero is too wide to reach anything.
pub(super) fn of_value(mean: f64, interval: Option<(f64, f64)>, published: Published, tolerance: f64) -> Verdict {
    let (low, high, tolerance) = match published {
        Published::Number(number) => (number, number, tolerance),
        Published::Range(low, high) => (low, high, tolerance),
        Published::AtMost(bound) => (f64::NEG_INFINITY, bound, 0.0),
        Published::AtLeast(bound) => (bound, f64::INFINITY, 0.0),
        Published::Direction(_) => return Verdict::NoNumber,
    };
    let interval = interval.filter(|(low, high)| low * high > 0.0);
    match reaches(mean, interval, low, high, tolerance) {
        true => Verdict::Reproduced,
        false => Verdict::NotReproduced,
    }
}

/// The verdict over two sides that should be alike: the whole interval lies within the tolerance.
pub(super) fn of_equality(compared: Compared, tolerance: f64) -> Verdict {
    if compared.test == Test::TooFew {
        return Verdict::TooFewSeeds;
    }
    let (low, high) = compared.interval.unwrap_or((compared.change, compared.change));
    if low >= -tolerance && high <= tolerance { Verdict::Reproduced } else { Verdict::NotReproduced }
}

/// The verdict over comparisons that should each be below none (A ahead); not strict: none above.
pub(super) fn of_order(pairs: &[Compared], strict: bool) -> Verdict {
    let Some(differ) = significant(pairs) else { return Verdict::TooFewSeeds };
    let ahead = pairs.iter().zip(&differ).filter(|(pair, differ)| **differ && pair.change < 0.0).count();
    let behind = pairs.iter().zip(&differ).filter(|(pair, differ)| **differ && pair.change > 0.0).count();
    match () {
        () if behind > 0 => Verdict::NotReproduced,
        () if !strict || ahead == pairs.len() => Verdict::Reproduced,
        () if ahead > 0 => Verdict::Weaker,
        () => Verdict::NotReproduced,
    }
}

/// One verdict of the verdicts of several groups, each of which must hold.
pub(super) fn of_every(verdicts: &[Verdict]) -> Verdict {
    const WORST_FIRST: [Verdict; 7] = [
        Verdict::NotRun,
        Verdict::TooFewSeeds,
        Verdict::NotReproduced,
        Verdict::Weaker,
        Verdict::Stronger,
        Verdict::Reproduced,
        Verdict::NoNumber,
    ];
    WORST_FIRST.into_iter().find(|verdict| verdicts.contains(verdict)).unwrap_or(Verdict::NotRun)
}

/// Whether the mean lies from `low` to `high`, both widened by a share of themselves, or the interval reaches them.
fn reaches(mean: f64, interval: Option<(f64, f64)>, low: f64, high: f64, tolerance: f64) -> bool {
    let wider = |bound: f64, sign: f64| if bound.is_finite() { bound + sign * tolerance * bound.abs() } else { bound };
    let within = mean >= wider(low, -1.0) && mean <= wider(high, 1.0);
    within || interval.is_some_and(|(from, to)| from <= high && to >= low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(mean: f64, half: f64) -> Effect {
        Effect { mean, interval: Some((mean - half, mean + half)), significant: mean.abs() > half }
    }

    #[test]
    fn every_verdict_over_a_number() {
        // Published: 8 % below; a quarter of it is 2 %, so from -10 to -6.
        let of = |mean: f64, half: f64| of_effect(effect(mean, half), Published::Number(-8.0), 0.25);
        assert_eq!(of(-6.1, 0.01), Verdict::Reproduced);
        assert_eq!(of(-9.9, 0.01), Verdict::Reproduced);
        assert_eq!(of(-5.9, 0.01), Verdict::Weaker);
        assert_eq!(of(-10.1, 0.01), Verdict::Stronger);
        // The published number lies in the interval from -8.5 to -0.5.
        assert_eq!(of(-4.5, 4.0), Verdict::Reproduced);
        assert_eq!(of(8.0, 0.01), Verdict::NotReproduced, "the other way");
    }

    #[test]
    fn noise_is_no_direction() {
        // -8 on average, but the interval holds zero.
        assert_eq!(of_effect(effect(-8.0, 8.5), Published::Number(-8.0), 0.25), Verdict::NotReproduced);
        assert_eq!(of_effect(effect(-8.0, 8.5), Published::Direction(-1.0), 0.25), Verdict::NotReproduced);
        assert_eq!(of_effect(effect(-8.0, 7.5), Published::Direction(-1.0), 0.25), Verdict::Reproduced);
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
        // No change published.
        assert_eq!(
            (of(0.0, Published::Number(0.0)), of(0.1, Published::Number(0.0))),
            (Verdict::Reproduced, Verdict::NotReproduced)
        );
    }

    #[test]
    fn values_stand_for_themselves() {
        let of = |mean, half, published| of_value(mean, Some((mean - half, mean + half)), published, 0.1);
        assert_eq!(of(2.75, 0.001, Published::Range(2.74, 2.77)), Verdict::Reproduced);
        assert_eq!(of(2.0, 0.001, Published::Range(2.74, 2.77)), Verdict::NotReproduced);
        assert_eq!(of(2.0, 0.8, Published::Range(2.74, 2.77)), Verdict::Reproduced, "the interval reaches it");
        assert_eq!(of(2.0, 2.5, Published::Range(2.74, 2.77)), Verdict::NotReproduced, "from -0.5 to 4.5 says nothing");
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
        assert_eq!(significant(&[c]), Some(vec![false]));
    }

    #[test]
    fn what_never_ends_is_behind() {
        let c = Compared::of(&[(9.0, f64::INFINITY), (9.5, 12.0), (9.1, 11.0)]).unwrap();
        assert_eq!((c.change, significant(&[c])), (-1.0, Some(vec![true])));
        let c = Compared::of(&[(f64::INFINITY, 9.0), (9.5, 12.0), (9.1, 11.0)]).unwrap();
        assert!(c.change > 0.0 && significant(&[c]) == Some(vec![true]));
        let both = Compared::of(&[(f64::INFINITY, f64::INFINITY); 3]).unwrap();
        assert_eq!(significant(&[both]), Some(vec![false]));
        assert_eq!(Compared::of(&[(9.0, f64::INFINITY)]).unwrap().test, Test::TooFew);
    }

    #[test]
    fn orders() {
        let ahead = Compared::of(&[(9.0, 10.0), (9.1, 10.2), (9.0, 10.1)]).unwrap();
        let behind = Compared::of(&[(10.0, 9.0), (10.2, 9.1), (10.1, 9.0)]).unwrap();
        let noise = Compared::of(&[(9.0, 10.0), (10.0, 9.0), (9.5, 9.6)]).unwrap();
        let few = Compared::of(&[(9.0, 10.0), (9.0, 10.0)]).unwrap();
        assert_eq!(of_order(&[ahead, ahead], true), Verdict::Reproduced);
        assert_eq!(of_order(&[ahead, noise], true), Verdict::Weaker);
        assert_eq!(of_order(&[noise, noise], true), Verdict::NotReproduced);
        assert_eq!(of_order(&[ahead, behind], true), Verdict::NotReproduced);
        assert_eq!(of_order(&[ahead, noise], false), Verdict::Reproduced);
        assert_eq!(of_order(&[ahead, behind], false), Verdict::NotReproduced);
        assert_eq!(of_order(&[ahead, few], true), Verdict::TooFewSeeds);
    }

    #[test]
    fn a_large_family_needs_more() {
        // Differences -1, -2, -3: mean -2, standard error 1 / sqrt(3), t = -3.46 with two degrees: p = 0.074. Differences
        // -2, -2.5, -3: t = -2.5 / (0.5 / sqrt(3)) = -8.66, p = 0.0131: alone significant, five times it is not.
        let c = Compared::of(&[(8.0, 10.0), (7.5, 10.0), (7.0, 10.0)]).unwrap();
        assert_eq!(significant(&[c]), Some(vec![true]));
        assert_eq!(significant(&[c; 5]), Some(vec![false; 5]));
    }

    #[test]
    fn alike_means_the_whole_interval() {
        let c = |half: f64| Compared {
            a: 1.0,
            b: 1.0,
            change: 0.0,
            interval: Some((-half, half)),
            test: Test::P(1.0),
            seeds: 5,
        };
        assert_eq!(of_equality(c(0.01), 0.02), Verdict::Reproduced);
        assert_eq!(of_equality(c(0.03), 0.02), Verdict::NotReproduced);
    }

    #[test]
    fn the_worst_of_several_counts() {
        use Verdict::{NotReproduced, NotRun, Reproduced, Stronger, Weaker};
        assert_eq!(of_every(&[Reproduced, Stronger]), Stronger);
        assert_eq!(of_every(&[Reproduced, Weaker, Stronger]), Weaker);
        assert_eq!(of_every(&[Weaker, NotReproduced]), NotReproduced);
        assert_eq!(of_every(&[NotReproduced, NotRun]), NotRun);
        assert_eq!(of_every(&[Reproduced, Reproduced]), Reproduced);
    }
}
