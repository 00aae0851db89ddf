//! Significance tests between schemes: paired differences of all pairs, one family per metric, and the groups that tie.

use crate::{
    PairedDifference, SIGNIFICANCE, Sequential, Test,
    family::{looks, separated_p},
    holm,
};

/// Tests of all pairs of schemes on a metric.
#[derive(Clone, Debug)]
pub struct Pairs {
    schemes: usize,
    /// Differences per pair (first, second) with first < second, row by row.
    differences: Vec<Option<PairedDifference>>,
    /// P-values adjusted for all pairs; `None` if there is no test.
    adjusted: Vec<Option<f64>>,
}

impl Pairs {
    /// `values` contains per scheme the value at each compared seed. With `sequential`, tests after fewer seeds count
    /// too, each at its share of the level.
    pub fn of(values: &[Vec<Option<f64>>], sequential: Option<&Sequential>) -> Self {
        let schemes = values.len();
        let (mut differences, mut least) = (vec![], vec![]);
        let looks = looks(values.first().map_or(0, Vec::len), sequential);
        for (first, a) in values.iter().enumerate() {
            for b in &values[first + 1..] {
                let both = |seeds: usize| -> Vec<(f64, f64)> {
                    a[..seeds].iter().zip(&b[..seeds]).filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect()
                };
                let p = |(seeds, weight): &(usize, f64)| {
                    let pairs = both(*seeds);
                    let paired = PairedDifference::of(&pairs)?.p_value()?;
                    let p = separated_p(&pairs).map_or(paired, |separated| separated.min(paired));
                    Some((p / weight).min(1.0))
                };
                least.push(looks.iter().filter_map(p).min_by(f64::total_cmp));
                differences.push(PairedDifference::of(&both(a.len())));
            }
        }
        // Pairs without variance are members of the family too: its size must not depend on the results.
        let family: Vec<(usize, f64)> = differences
            .iter()
            .enumerate()
            .filter_map(|(at, difference)| match difference.as_ref()?.test {
                Test::P(_) => Some((at, least[at]?)),
                Test::Equal => Some((at, 1.0)),
                Test::Constant => Some((at, 0.0)),
                Test::TooFew => None,
            })
            .collect();
        let corrected = holm(&family.iter().map(|member| member.1).collect::<Vec<_>>());
        let mut adjusted = vec![None; differences.len()];
        for ((at, _), p) in family.into_iter().zip(corrected) {
            adjusted[at] = differences[at].filter(|d| d.p_value().is_some()).map(|_| p);
        }
        Pairs { schemes, differences, adjusted }
    }

    fn pair_index(&self, first: usize, second: usize) -> usize {
        let (a, b) = (first.min(second), first.max(second));
        a * self.schemes - a * (a + 1) / 2 + b - a - 1
    }

    /// Returns the p-value after Holm's correction over all pairs.
    fn adjusted(&self, first: usize, second: usize) -> Option<f64> {
        self.adjusted[self.pair_index(first, second)]
    }

    /// `None` if the seeds are too few for a test.
    pub fn apart(&self, first: usize, second: usize) -> Option<bool> {
        match self.differences[self.pair_index(first, second)]?.test {
            Test::TooFew => None,
            Test::Equal => Some(false),
            // The difference is the same at every seed, so more seeds would not change it.
            Test::Constant => Some(true),
            Test::P(_) => self.adjusted(first, second).map(|p| p < SIGNIFICANCE),
        }
    }

    /// Returns `true` if every pair has enough seeds for a test.
    pub fn is_tested(&self) -> bool {
        let is_tested = |difference: &Option<PairedDifference>| difference.is_some_and(|d| d.test != Test::TooFew);
        self.schemes > 0 && self.differences.iter().all(is_tested)
    }

    /// Returns `true` if letters separate schemes: a pair is significantly different, or all are equal at every seed.
    fn decide(&self) -> bool {
        let mut pairs = (0..self.schemes).flat_map(|a| (a + 1..self.schemes).map(move |b| (a, b)));
        let equal = |difference: &Option<PairedDifference>| difference.is_some_and(|d| d.test == Test::Equal);
        self.schemes > 1 && (self.differences.iter().all(equal) || pairs.any(|(a, b)| self.apart(a, b) == Some(true)))
    }

    /// Letters of each scheme in `ranked` (best first); two share one if they do not differ significantly (a compact
    /// letter display, Piepho 2004). `None` if a pair has too few seeds for a test, or no pair differs significantly.
    pub fn letters(&self, ranked: &[usize]) -> Option<Vec<String>> {
        if !self.decide() {
            return None;
        }
        let n = ranked.len();
        let mut columns = vec![vec![true; n]];
        for i in 0..n {
            for j in i + 1..n {
                if !self.apart(ranked[i], ranked[j])? {
                    continue;
                }
                let (both, mut kept): (Vec<_>, Vec<_>) = columns.into_iter().partition(|column| column[i] && column[j]);
                for out in [j, i] {
                    for mut column in both.iter().cloned() {
                        column[out] = false;
                        let within = |other: &Vec<bool>| column.iter().zip(other).all(|(own, other)| *other || !own);
                        if !kept.iter().any(within) {
                            kept.push(column);
                        }
                    }
                }
                columns = kept;
            }
        }
        columns.sort_by_key(|column| (column.iter().position(|c| *c), column.iter().rposition(|c| *c)));
        let of = |scheme: usize| {
            let own = columns.iter().enumerate().filter(|(_, column)| column[scheme]);
            own.map(|(at, _)| letter(at)).collect()
        };
        Some((0..n).map(of).collect())
    }
}

/// Letters are `a` to `z`, then `a1` and so on.
fn letter(at: usize) -> String {
    let letter = char::from(b'a' + (at % 26) as u8);
    if at < 26 { letter.to_string() } else { format!("{letter}{}", at / 26) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(rows: &[&[f64]]) -> Vec<Vec<Option<f64>>> {
        rows.iter().map(|row| row.iter().map(|v| Some(*v)).collect()).collect()
    }

    #[test]
    fn pair_indices_cover_all_pairs_once() {
        let pairs = Pairs { schemes: 5, differences: vec![], adjusted: vec![] };
        let places: Vec<usize> =
            (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b))).map(|(a, b)| pairs.pair_index(b, a)).collect();
        assert_eq!(places, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn neighbours_may_tie_where_extremes_do_not() {
        // Differences around 1 with a spread of about 1 between neighbours, around 2 with almost none between first and last: a
        // and b tie, b and c tie, a and c do not. Three pairs: Holm multiplies the smallest p-value by 3.
        let a = [10.0, 20.0, 30.0, 40.0, 50.0];
        let b = [12.0, 20.1, 32.1, 40.0, 51.9];
        let c = [12.1, 22.0, 32.0, 42.1, 51.9];
        let pairs = Pairs::of(&values(&[&a, &b, &c]), None);
        assert_eq!(
            (pairs.apart(0, 1), pairs.apart(1, 2), pairs.apart(0, 2)),
            (Some(false), Some(false), Some(true)),
            "{pairs:?}"
        );
        assert_eq!(pairs.letters(&[0, 1, 2]).unwrap(), ["a", "ab", "b"]);
        assert_eq!(pairs.adjusted(0, 2), pairs.differences[1].unwrap().p_value().map(|p| 3.0 * p));
    }

    #[test]
    fn disjoint_groups_have_one_letter_each() {
        let a = [1.0, 2.0, 3.0, 4.0];
        let near = [1.01, 1.99, 3.02, 3.99];
        let far = [9.0, 10.1, 11.0, 12.2];
        let pairs = Pairs::of(&values(&[&far, &near, &a]), None);
        assert_eq!(pairs.letters(&[2, 1, 0]).unwrap(), ["a", "a", "b"]);
    }

    #[test]
    fn two_seeds_make_no_groups() {
        assert_eq!(Pairs::of(&values(&[&[1.0, 2.0], &[5.0, 9.0]]), None).letters(&[0, 1]), None);
    }

    #[test]
    fn equal_differences_are_significant_without_p_value() {
        let pairs = Pairs::of(&values(&[&[1.0, 1.0, 1.0], &[2.0, 2.0, 2.0], &[2.0, 2.0, 2.0]]), None);
        assert_eq!((pairs.apart(0, 1), pairs.adjusted(0, 1), pairs.apart(1, 2)), (Some(true), None, Some(false)));
        assert_eq!(pairs.letters(&[0, 1, 2]).unwrap(), ["a", "b", "b"]);
    }
}
