//! Judgement of a claim: turns the rows of its studies into a verdict with its comparisons.

use super::{
    Best, Claim, ClaimKind, Coordinate, Detail, Metric, Published, Reduce, Rows, SeedStatistic, Selected, Take,
    Verdict, at,
    rows::{BOUND, REFERENCE},
    select::Group,
    verdict,
    verdict::{Compared, Effect},
    words::{published, result_text},
};
use anabranch_statistics::MIN_PAIRS;
use std::collections::BTreeMap;

/// Claim with its results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    pub verdict: Verdict,
    pub published: String,
    /// Our result as text.
    pub ours: String,
    /// Number of seeds: the minimum over its comparisons.
    pub seeds: usize,
    /// Comparisons that the verdict rests on.
    pub details: Vec<Detail>,
    /// Number of settings tried of which this is one, and the verdict after the correction for them; `None` for one try.
    pub after_tries: Option<(u64, Verdict)>,
    /// Largest effect that bound and reference allow, as text; empty if they are not known.
    pub limits: String,
    /// Verdicts under other readings of the paper that the studies run.
    pub readings: Vec<(String, Verdict)>,
}

impl Judged {
    /// Returns the verdict in words; with a mark if it holds under some readings only.
    pub fn words(&self) -> String {
        match self.depends_on() {
            Some(readings) => format!("{}, depends on a reading ({readings})", self.verdict.word()),
            None => self.verdict.word().to_string(),
        }
    }

    /// Returns the readings, with their verdicts, if the claim is reproduced under some of them, ours among them, and not under
    /// others.
    pub fn depends_on(&self) -> Option<String> {
        let holds = |verdict: Verdict| verdict == Verdict::Reproduced;
        let known = || self.readings.iter().filter(|(_, verdict)| *verdict != Verdict::NotRun);
        if self.verdict == Verdict::NotRun || known().all(|(_, verdict)| holds(*verdict) == holds(self.verdict)) {
            return None;
        }
        let others = known().map(|(reading, verdict)| format!("{reading}: {}", verdict.word()));
        let ours = format!("ours: {}", self.verdict.word());
        Some([ours].into_iter().chain(others).collect::<Vec<_>>().join("; "))
    }
}

/// One value per seed.
type Series = BTreeMap<u64, f64>;

struct Side {
    scheme: String,
    values: Series,
}

/// Judges a claim under one setting. `tries` is the number of settings tried, ours excluded; 0 or 1 needs no correction.
pub(crate) fn judge(selected: &Selected<'_>, rows: &BTreeMap<String, Rows>, tries: u64) -> Judged {
    let tries = tries.max(selected.claim.tried.unwrap_or(1));
    let claim_judge = ClaimJudge { selected, claim: selected.claim, rows };
    let details = match &selected.claim.kind {
        ClaimKind::Order(..) | ClaimKind::Trend(..) => claim_judge.pairs(),
        ClaimKind::Value(..) | ClaimKind::Shown(_) => claim_judge.values(),
        _ => claim_judge.comparisons(),
    };
    let published = published(selected.claim);
    let Some(mut found) = details.filter(|found| !found.is_empty()) else {
        return Judged { published, ours: "-".into(), ..Judged::default() };
    };
    let (limits, is_in_reach) = claim_judge.limits(&found);
    let limited = |verdict: Verdict| match verdict {
        Verdict::NotReproduced | Verdict::Weaker | Verdict::TooFewSeeds if !is_in_reach => Verdict::OutOfReach,
        other => other,
    };
    let few_flows = claim_judge.few_flows();
    let limited = |verdict: Verdict| match few_flows {
        Some((Some(_), _)) if verdict != Verdict::NoNumber => Verdict::TooFewSeeds,
        _ => limited(verdict),
    };
    let after_tries = (tries > 1).then(|| (tries, limited(claim_judge.verdict(&mut found.clone(), tries).0)));
    let (verdict, summary_text) = claim_judge.verdict(&mut found, 1);
    let verdict = limited(verdict);
    let details: Vec<Detail> = found.into_iter().map(|(detail, _)| detail).collect();
    let seeds = details.iter().map(|detail| detail.seeds).min().unwrap_or(0);
    let planned = selected.plans.iter().map(|plan| plan.sweep.plan.seeds.len()).min().unwrap_or(0);
    let mut ours = result_text(selected.claim, &details, summary_text);
    if seeds < planned {
        ours += &format!("; {seeds} of {planned} seeds");
    }
    if let Some((flows, required)) = few_flows {
        let flows = flows.map_or("unknown number of".to_string(), |flows| flows.to_string());
        ours += &format!("; {flows} flows in a group, {required} are needed");
    }
    if let Some(tried) = selected.claim.tried {
        ours += &format!("; found among {tried} settings");
    }
    Judged { verdict, published, ours, seeds, details, after_tries, limits, readings: vec![] }
}

/// Ratio of two values; 1 for equal ones, two zeros included, as of a comparison.
pub(crate) fn ratio(a: f64, b: f64) -> f64 {
    if a == b { 1.0 } else { a / b }
}

struct ClaimJudge<'j> {
    selected: &'j Selected<'j>,
    claim: &'j Claim,
    rows: &'j BTreeMap<String, Rows>,
}

type Comparisons = Option<Vec<(Detail, Option<Compared>)>>;

impl ClaimJudge<'_> {
    /// Returns the value per seed of a scheme over a group's side; `None` if there is none.
    fn series(&self, coordinates: &[Coordinate], scheme: &str) -> Option<Series> {
        let of = |coordinate: &Coordinate| {
            let study = at(coordinate, "study")?;
            let series = self.rows.get(study)?.series(coordinate, scheme, self.claim.metric.name());
            (!series.is_empty()).then_some(series)
        };
        let all: Vec<Series> = coordinates.iter().map(of).collect::<Option<_>>()?;
        let Some(reduce) = self.claim.reduce else { return all.into_iter().next() };
        let reduced = |values: &[f64]| {
            let values = values.iter().copied();
            let (max, min) =
                (values.clone().fold(f64::NEG_INFINITY, f64::max), values.clone().fold(f64::INFINITY, f64::min));
            match reduce {
                Reduce::Max => max,
                Reduce::Min => min,
                Reduce::Mean => values.sum::<f64>() / all.len() as f64,
                Reduce::Spread => ratio(max, min) - 1.0,
            }
        };
        (!all.is_empty()).then(|| combined(&all, reduced))
    }

    /// Returns the best of several schemes; `None` if one of them has no value.
    fn best(&self, coordinates: &[Coordinate], schemes: &[String]) -> Option<Side> {
        let sides = schemes
            .iter()
            .map(|scheme| Some(Side { scheme: scheme.clone(), values: self.series(coordinates, scheme)? }));
        let sides: Vec<Side> = sides.collect::<Option<_>>()?;
        let mean = |side: &Side| self.centre(&side.values).map_or(f64::NAN, |(mean, _)| mean);
        let sign = if self.claim.better == Best::Higher { -1.0 } else { 1.0 };
        sides.into_iter().min_by(|a, b| (sign * mean(a)).total_cmp(&(sign * mean(b))))
    }

    /// Returns the best of several schemes, or each of them if `every`.
    fn sides(&self, coordinates: &[Coordinate], schemes: &[String], every: bool) -> Option<Vec<Side>> {
        if every {
            return schemes.iter().map(|scheme| self.best(coordinates, std::slice::from_ref(scheme))).collect();
        }
        Some(vec![self.best(coordinates, schemes)?])
    }

    /// Returns the load balancers of both sides, in the study of a group's side.
    fn schemes(&self, coordinates: &[Coordinate]) -> (Vec<String>, Vec<String>) {
        let study = coordinates.first().and_then(|coordinate| at(coordinate, "study"));
        let plan = self.selected.plans.iter().find(|plan| Some(plan.study.id.as_str()) == study);
        plan.map_or((vec![], vec![]), |plan| self.claim.sides(&plan.sweep.plan.entries))
    }

    fn by_scheme(&self) -> bool {
        self.claim.each.iter().any(|each| each == "scheme")
    }

    fn values(&self) -> Comparisons {
        let mut found = vec![];
        let mut means: Vec<Series> = vec![];
        for group in &self.selected.groups {
            let (schemes, _) = self.schemes(&group.a);
            let every = self.by_scheme() || matches!(self.claim.kind, ClaimKind::Shown(_));
            for side in self.sides(&group.a, &schemes, every)? {
                let own = self.value(group.at.clone(), &side)?;
                // That flows never ended within the run proves no lower bound.
                if own.a_mean.is_infinite() && matches!(self.claim.kind, ClaimKind::Value(_, Published::AtLeast(_))) {
                    return None;
                }
                found.push((own, None));
                means.push(side.values);
            }
        }
        if self.claim.take == Take::Mean && means.len() > 1 {
            let side = Side { scheme: found[0].0.a.clone(), values: combined(&means, mean) };
            return Some(vec![(self.value(vec![], &side)?, None)]);
        }
        Some(found)
    }

    fn value(&self, at: Coordinate, side: &Side) -> Option<Detail> {
        let (mean, interval) = self.centre(&side.values)?;
        Some(Detail {
            at,
            a: side.scheme.clone(),
            a_mean: mean,
            b: String::new(),
            b_mean: f64::NAN,
            effect: mean,
            interval,
            significant: None,
            seeds: side.values.len(),
        })
    }

    fn comparisons(&self) -> Comparisons {
        let mut found = vec![];
        let mut ratios: Vec<Series> = vec![];
        for group in &self.selected.groups {
            let ((a_schemes, _), (_, b_schemes)) = (self.schemes(&group.a), self.schemes(&group.b));
            let b = self.best(&group.b, &b_schemes)?;
            for a in self.sides(&group.a, &a_schemes, self.by_scheme())? {
                let compared = self.compared(&pairs(&a.values, &b.values))?;
                // Where flows of both never end nothing is known.
                if compared.a.is_infinite() && compared.b.is_infinite() {
                    return None;
                }
                ratios.push(
                    a.values
                        .iter()
                        .filter_map(|(seed, value)| Some((*seed, ratio(*value, *b.values.get(seed)?))))
                        .collect(),
                );
                found.push(self.comparison(group.at.clone(), &a.scheme, &b.scheme, compared));
            }
        }
        if self.claim.take == Take::Mean && found.len() > 1 {
            let pairs: Vec<(f64, f64)> = combined(&ratios, mean).into_values().map(|ratio| (ratio, 1.0)).collect();
            let compared = self.compared(&pairs)?;
            let (a, b) = (found[0].0.a.clone(), found[0].0.b.clone());
            return Some(vec![self.comparison(vec![], &a, &b, compared)]);
        }
        Some(found)
    }

    fn comparison(&self, at: Coordinate, a: &str, b: &str, compared: Compared) -> (Detail, Option<Compared>) {
        let factor = |change: f64| match self.claim.better {
            Best::Lower => {
                if change <= -1.0 {
                    f64::INFINITY
                } else {
                    1.0 / (1.0 + change)
                }
            }
            Best::Higher => 1.0 + change,
        };
        let (effect, interval) = match &self.claim.kind {
            ClaimKind::Factor(..) => {
                let ends = compared.interval.map(|(low, high)| (factor(low), factor(high)));
                (factor(compared.change), ends.map(|(one, other)| (one.min(other), one.max(other))))
            }
            _ => (100.0 * compared.change, compared.interval.map(|(low, high)| (100.0 * low, 100.0 * high))),
        };
        let detail = Detail {
            at,
            a: a.to_string(),
            a_mean: compared.a,
            b: b.to_string(),
            b_mean: compared.b,
            effect,
            interval,
            significant: None,
            seeds: compared.seeds,
        };
        (detail, Some(compared))
    }

    /// Compares every pair of an order, or neighbours in a trend. A negative change means that A is ahead.
    fn pairs(&self) -> Comparisons {
        let mut found = vec![];
        let mut add = |group: &Group, a: (&str, &Series), b: (&str, &Series), sign: f64| {
            let mut compared = self.compared(&pairs(a.1, b.1))?;
            if sign > 0.0 {
                compared.change = -compared.change;
                compared.interval = compared.interval.map(|(low, high)| (-high, -low));
            }
            found.push(self.comparison(group.at.clone(), a.0, b.0, compared));
            Some(())
        };
        for group in &self.selected.groups {
            match &self.claim.kind {
                ClaimKind::Order(tiers, _) => {
                    let sign = if self.claim.better == Best::Higher { 1.0 } else { -1.0 };
                    for (rank, tier) in tiers.iter().enumerate() {
                        for a in tier {
                            for b in tiers[rank + 1..].iter().flatten() {
                                let (one, other) = (self.series(&group.a, a)?, self.series(&group.a, b)?);
                                add(group, (a.as_str(), &one), (b.as_str(), &other), sign)?;
                            }
                        }
                    }
                }
                ClaimKind::Trend(schemes, sign, _) => {
                    for scheme in schemes {
                        for step in group.a.windows(2) {
                            let (before, after) = (self.series(&step[..1], scheme)?, self.series(&step[1..], scheme)?);
                            add(group, (scheme.as_str(), &after), (scheme.as_str(), &before), *sign)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Some(found)
    }

    /// Returns what bound and reference leave open as text, and `false` if a proven bound rules the published number out.
    ///
    /// Per group: the best that side A can reach is the bound of its flows, against side B as we measured it. The reference
    /// decides nothing.
    fn limits(&self, found: &[(Detail, Option<Compared>)]) -> (String, bool) {
        let (published, none) = match &self.claim.kind {
            ClaimKind::Change(_, _, published) if asks_for_less(*published) => (*published, 0.0),
            ClaimKind::Factor(_, _, published) => (*published, 1.0),
            _ => return (String::new(), true),
        };
        if self.claim.better == Best::Higher || self.claim.reduce.is_some() || self.claim.take == Take::Mean {
            return (String::new(), true);
        }
        let effect = |value: f64, b: f64| if none == 0.0 { 100.0 * (value / b - 1.0) } else { b / value };
        let (mut bounds, mut references) = (vec![], vec![]);
        for group in &self.selected.groups {
            // Every comparison of a group has the same side B.
            let Some(b) = found.iter().find(|(detail, _)| detail.at == group.at).map(|(detail, _)| detail.b.clone())
            else {
                continue;
            };
            let Some(b) = self.series(&group.b, &b) else { continue };
            let best = |entry: &str| {
                let own = self.series(&group.a, entry)?;
                let pairs = pairs(&own, &b);
                let is_known = !pairs.is_empty() && pairs.iter().all(|(own, b)| own.is_finite() && b.is_finite());
                let sum = |side: fn(&(f64, f64)) -> f64| pairs.iter().map(side).sum::<f64>();
                is_known.then(|| effect(sum(|pair| pair.0), sum(|pair| pair.1)))
            };
            bounds.push(best(BOUND));
            references.push(best(REFERENCE));
        }
        let tolerance = self.claim.tolerance;
        let reaches =
            |best: &Option<f64>| best.is_none_or(|best| verdict::is_in_reach(best, published, tolerance, none));
        let is_in_reach = match self.claim.take {
            Take::Largest => bounds.is_empty() || bounds.iter().any(reaches),
            _ => bounds.iter().all(reaches),
        };
        (limit_words(&bounds, &references, none == 0.0), is_in_reach)
    }

    /// Returns the number of flows in the smallest group of a run, and how many its quantile needs, if these are more or the
    /// number is not known. Where no flows arrive at random, a run has all of them, not a sample.
    fn few_flows(&self) -> Option<(Option<u64>, u64)> {
        let required = self.claim.metric.required_flows()?;
        let counts = Metric::flow_count();
        let (mut smallest, mut is_known) = (None, true);
        for group in &self.selected.groups {
            let sides = [(&group.a, self.schemes(&group.a).0), (&group.b, self.schemes(&group.b).1)];
            for (coordinate, scheme) in sides.iter().flat_map(|(of, schemes)| {
                of.iter().flat_map(move |coordinate| schemes.iter().map(move |scheme| (coordinate, scheme)))
            }) {
                let study = at(coordinate, "study").unwrap_or_default();
                let is_sample = self.selected.plans.iter().any(|plan| plan.study.id == study && plan.is_sample);
                let Some(rows) = self.rows.get(study).filter(|_| is_sample) else { continue };
                let flows = rows.series(coordinate, scheme, counts.name());
                is_known &= !flows.is_empty();
                smallest = smallest.into_iter().chain(flows.into_values().map(|flows| flows as u64)).min();
            }
        }
        match smallest.filter(|flows| *flows < required) {
            None if is_known => None,
            few => Some((few, required)),
        }
    }

    fn centre(&self, values: &Series) -> Option<(f64, Option<(f64, f64)>)> {
        self.claim.across.centre(&values.values().copied().collect::<Vec<_>>())
    }

    fn compared(&self, pairs: &[(f64, f64)]) -> Option<Compared> {
        match self.claim.across {
            SeedStatistic::Mean => Compared::of(pairs),
            SeedStatistic::Median => Compared::of_medians(pairs),
        }
    }

    /// Returns the verdict, and the comparison that decides it if one of several counts.
    fn verdict(&self, found: &mut [(Detail, Option<Compared>)], tries: u64) -> (Verdict, Option<usize>) {
        let compared: Vec<Compared> = found.iter().filter_map(|(_, compared)| *compared).collect();
        let differ = verdict::significant(&compared, tries);
        if let Some(differ) = &differ
            && compared.len() == found.len()
        {
            found.iter_mut().zip(differ).for_each(|((detail, _), differ)| detail.significant = Some(*differ));
        }
        match &self.claim.kind {
            ClaimKind::Shown(_) => (Verdict::NoNumber, None),
            ClaimKind::Value(_, published) => {
                let few = |detail: &Detail| match self.claim.across {
                    SeedStatistic::Mean => detail.seeds < MIN_PAIRS,
                    SeedStatistic::Median => detail.interval.is_none(),
                };
                let each = |(detail, _): &(Detail, Option<Compared>)| match few(detail) {
                    true => Verdict::TooFewSeeds,
                    false => verdict::of_value(detail.effect, detail.interval, *published, self.claim.tolerance),
                };
                let verdicts: Vec<Verdict> = found.iter().map(each).collect();
                (verdict::of_every(&verdicts), None)
            }
            ClaimKind::Equal(..) => {
                let verdicts: Vec<Verdict> =
                    compared.iter().map(|compared| verdict::of_equality(*compared, self.claim.tolerance)).collect();
                (verdict::of_every(&verdicts), None)
            }
            ClaimKind::Order(_, strict) => {
                (verdict::of_order(&compared, (!strict).then_some(self.claim.tolerance), tries), None)
            }
            ClaimKind::Trend(_, _, strict) => {
                let verdict = verdict::of_order(&compared, (!strict).then_some(self.claim.tolerance), tries);
                let moves = found.iter().any(|(detail, _)| detail.significant == Some(true) && detail.effect < 0.0);
                // Values that are level throughout are no trend.
                let flat = verdict == Verdict::Reproduced && !moves;
                (if flat { Verdict::NotReproduced } else { verdict }, None)
            }
            ClaimKind::Change(_, _, published) => self.of_effects(found, differ, *published, (0.0, 1.0)),
            ClaimKind::Factor(_, _, published) => self.of_effects(found, differ, *published, (1.0, 0.01)),
        }
    }

    /// Effects are around `none`, 0 for changes and 1 for factors; `percent` is one per cent in their unit.
    fn of_effects(
        &self,
        found: &[(Detail, Option<Compared>)],
        differ: Option<Vec<bool>>,
        published: Published,
        (none, percent): (f64, f64),
    ) -> (Verdict, Option<usize>) {
        let Some(differ) = differ else { return (Verdict::TooFewSeeds, None) };
        let published = shifted(published, none);
        let each = |at: usize| {
            let detail = &found[at].0;
            let interval = detail.interval.map(|(low, high)| (low - none, high - none));
            let effect = Effect { mean: detail.effect - none, interval, significant: differ[at], percent };
            verdict::of_effect(effect, published, self.claim.tolerance)
        };
        if self.claim.take != Take::Largest {
            let verdicts: Vec<Verdict> = (0..found.len()).map(each).collect();
            return (verdict::of_every(&verdicts), None);
        }
        let sign = match published {
            Published::Number(number) | Published::AtMost(number) | Published::AtLeast(number) if number != 0.0 => {
                number.signum()
            }
            Published::Range(low, high) => {
                if high.abs() >= low.abs() {
                    1.0
                } else {
                    -1.0
                }
            }
            Published::Direction(sign) => sign,
            _ => 1.0,
        };
        let most = (0..found.len()).max_by(|a, b| (sign * found[*a].0.effect).total_cmp(&(sign * found[*b].0.effect)));
        most.map_or((Verdict::NotRun, None), |most| (each(most), Some(most)))
    }
}

fn asks_for_less(published: Published) -> bool {
    match published {
        Published::Number(number) | Published::AtMost(number) | Published::Direction(number) => number < 0.0,
        Published::Range(_, high) => high < 0.0,
        Published::AtLeast(_) => false,
    }
}

/// Formats the largest effects that bound and reference leave: `bound: at most -15.2 %, reference -11.6 %`.
fn limit_words(bounds: &[Option<f64>], references: &[Option<f64>], is_change: bool) -> String {
    let largest = |values: &[Option<f64>]| {
        let known = values.iter().flatten().copied();
        if is_change { known.min_by(f64::total_cmp) } else { known.max_by(f64::total_cmp) }
    };
    let text = |value: f64| if is_change { format!("{value:+.1} %") } else { format!("{value:.3} times") };
    let bound = largest(bounds).map(|best| format!("bound: no more than {}", text(best)));
    let reference = largest(references).map(|best| format!("reference {}", text(best)));
    bound.into_iter().chain(reference).collect::<Vec<_>>().join(", ")
}

fn pairs(a: &Series, b: &Series) -> Vec<(f64, f64)> {
    a.iter().filter_map(|(seed, value)| Some((*value, *b.get(seed)?))).collect()
}

/// Returns one value per seed that all series have.
fn combined(all: &[Series], of: impl Fn(&[f64]) -> f64) -> Series {
    let at = |seed: &u64| all.iter().map(|series| series.get(seed).copied()).collect::<Option<Vec<f64>>>();
    let seeds = all.iter().take(1).flat_map(Series::keys);
    seeds.filter_map(|seed| Some((*seed, of(&at(seed)?)))).collect()
}

fn mean(values: &[f64]) -> f64 {
    (values[0] + values[1..].iter().sum::<f64>()) / values.len() as f64
}

fn shifted(published: Published, none: f64) -> Published {
    match published {
        Published::Number(number) => Published::Number(number - none),
        Published::Range(low, high) => Published::Range(low - none, high - none),
        Published::AtMost(bound) => Published::AtMost(bound - none),
        Published::AtLeast(bound) => Published::AtLeast(bound - none),
        direction @ Published::Direction(_) => direction,
    }
}

#[cfg(test)]
mod tests {
    use super::ratio;

    #[test]
    fn two_zeros_are_equal() {
        assert_eq!((ratio(0.0, 0.0), ratio(3.0, 2.0), ratio(1.0, 0.0)), (1.0, 1.5, f64::INFINITY));
    }
}
