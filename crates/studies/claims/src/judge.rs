//! A claim judged: from the rows of its studies to a verdict, with what it rests on.

use super::{
    Coordinate, Plan, Scale,
    model::{Across, Best, Claim, ClaimKind, Published, Reduce, Take},
    rows::Rows,
    select::Group,
    verdict::{self, Compared, Effect, Verdict},
};
use anabranch_report::{FEWEST_PAIRS, significant_digits};
use anabranch_scenario::error::ScenarioError;
use std::collections::BTreeMap;

/// A claim with what came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// What the paper publishes.
    pub published: String,
    /// What came out.
    pub ours: String,
    /// Seeds that it rests on: the fewest of its comparisons.
    pub seeds: usize,
    /// The comparisons that it rests on.
    pub details: Vec<Detail>,
}

/// One comparison of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// The group: values of its dimensions.
    pub at: Coordinate,
    /// The load balancer of side A.
    pub a: String,
    /// Its mean, or median.
    pub a_mean: f64,
    /// The load balancer of side B; empty where there is none.
    pub b: String,
    /// Its mean, or median.
    pub b_mean: f64,
    /// What is judged: per cent of a change, times of a factor, else the value itself.
    pub effect: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Whether it is one after Holm's correction; `None` where that is not asked.
    pub significant: Option<bool>,
    /// Seeds.
    pub seeds: usize,
}

/// A value per seed.
type Series = BTreeMap<u64, f64>;

/// What a side of a group gave.
struct Side {
    scheme: String,
    values: Series,
}

impl Claim {
    /// Judges it by `rows`, those of its studies by id.
    ///
    /// # Errors
    /// As [`Claim::groups`].
    pub fn judge(
        &self,
        plans: &BTreeMap<String, Plan>,
        rows: &BTreeMap<String, Rows>,
        scale: Scale,
    ) -> Result<Judged, ScenarioError> {
        let own: Vec<&Plan> = self.studies_at(scale).iter().filter_map(|id| plans.get(id)).collect();
        let groups = self.groups(&own, scale)?;
        let judging = Judging { claim: self, plans: &own, rows };
        let details = match &self.kind {
            ClaimKind::Order(..) | ClaimKind::Trend(..) => judging.pairs(&groups),
            ClaimKind::Value(..) | ClaimKind::Shown(_) => judging.values(&groups),
            _ => judging.comparisons(&groups),
        };
        let published = self.published();
        let Some(mut found) = details.filter(|found| !found.is_empty()) else {
            let ours = "-".to_string();
            return Ok(Judged { verdict: Verdict::NotRun, published, ours, seeds: 0, details: vec![] });
        };
        let (verdict, told) = self.verdict(&mut found);
        let seeds = found.iter().map(|(detail, _)| detail.seeds).min().unwrap_or(0);
        let planned = own.iter().map(|plan| plan.sweep.plan.seeds.len()).min().unwrap_or(0);
        let mut ours = self.words(&found, told);
        if seeds < planned {
            ours += &format!("; {seeds} of {planned} seeds");
        }
        Ok(Judged { verdict, published, ours, seeds, details: found.into_iter().map(|(detail, _)| detail).collect() })
    }

    /// The verdict, and which comparison is told of where one of several counts.
    fn verdict(&self, found: &mut [(Detail, Option<Compared>)]) -> (Verdict, Option<usize>) {
        let compared: Vec<Compared> = found.iter().filter_map(|(_, compared)| *compared).collect();
        let differ = verdict::significant(&compared);
        if let Some(differ) = &differ
            && compared.len() == found.len()
        {
            found.iter_mut().zip(differ).for_each(|((detail, _), differ)| detail.significant = Some(*differ));
        }
        match &self.kind {
            ClaimKind::Shown(_) => (Verdict::NoNumber, None),
            ClaimKind::Value(_, published) => {
                let few = |detail: &Detail| match self.across {
                    Across::Mean => detail.seeds < FEWEST_PAIRS,
                    Across::Median => detail.interval.is_none(),
                };
                let each = |(detail, _): &(Detail, Option<Compared>)| match few(detail) {
                    true => Verdict::TooFewSeeds,
                    false => verdict::of_value(detail.effect, detail.interval, *published, self.tolerance),
                };
                let verdicts: Vec<Verdict> = found.iter().map(each).collect();
                (verdict::of_every(&verdicts), None)
            }
            ClaimKind::Equal(..) => {
                let verdicts: Vec<Verdict> =
                    compared.iter().map(|compared| verdict::of_equality(*compared, self.tolerance)).collect();
                (verdict::of_every(&verdicts), None)
            }
            ClaimKind::Order(_, strict) => (verdict::of_order(&compared, (!strict).then_some(self.tolerance)), None),
            ClaimKind::Trend(_, _, strict) => {
                let verdict = verdict::of_order(&compared, (!strict).then_some(self.tolerance));
                let moves = found.iter().any(|(detail, _)| detail.significant == Some(true) && detail.effect < 0.0);
                // Level all the way is no trend.
                let flat = verdict == Verdict::Reproduced && !moves;
                (if flat { Verdict::NotReproduced } else { verdict }, None)
            }
            ClaimKind::Change(_, _, published) => self.of_effects(found, differ, *published, (0.0, 1.0)),
            ClaimKind::Factor(_, _, published) => self.of_effects(found, differ, *published, (1.0, 0.01)),
        }
    }

    /// Over effects around `none`, 0 for changes and 1 for factors, in units of which so many are a per cent.
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
            verdict::of_effect(effect, published, self.tolerance)
        };
        if self.take != Take::Most {
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

    /// What the paper publishes, for people.
    pub fn published(&self) -> String {
        let unit = match self.kind {
            ClaimKind::Change(..) => " %".to_string(),
            ClaimKind::Factor(..) => " times".to_string(),
            _ => self.unit(),
        };
        let signed = |number: f64| match self.kind {
            ClaimKind::Change(..) => signed(number),
            _ => sig(number, 6),
        };
        let of = |published: &Published| match published {
            Published::Number(number) => format!("{}{unit}", signed(*number)),
            Published::Range(low, high) => format!("{} to {}{unit}", signed(*low), signed(*high)),
            Published::AtMost(bound) => format!("at most {}{unit}", signed(*bound)),
            Published::AtLeast(bound) => format!("at least {}{unit}", signed(*bound)),
            Published::Direction(sign) => if *sign > 0.0 { "higher" } else { "lower" }.to_string(),
        };
        match &self.kind {
            ClaimKind::Change(_, _, published) | ClaimKind::Value(_, published) => {
                let up_to = if self.take == Take::Most { "up to " } else { "" };
                format!("{up_to}{}", of(published))
            }
            ClaimKind::Factor(_, _, published) => match published {
                Published::Direction(_) => "ahead".into(),
                published if self.take == Take::Most => format!("up to {}", of(published)),
                published => of(published),
            },
            ClaimKind::Equal(..) => "alike".into(),
            ClaimKind::Order(tiers, strict) => {
                let tier = |tier: &Vec<String>| tier.join(", ");
                let better = if self.better == Best::Higher { " > " } else { " < " };
                let sign = if *strict { better } else { " <= " };
                tiers.iter().map(tier).collect::<Vec<_>>().join(sign)
            }
            ClaimKind::Trend(_, sign, _) => if *sign > 0.0 { "rises" } else { "falls" }.into(),
            ClaimKind::Shown(_) => "-".into(),
        }
    }

    fn unit(&self) -> String {
        match self.metric.unit() {
            "" => String::new(),
            unit => format!(" {unit}"),
        }
    }

    /// What came out, for people.
    fn words(&self, found: &[(Detail, Option<Compared>)], told: Option<usize>) -> String {
        let details: Vec<&Detail> = found.iter().map(|(detail, _)| detail).collect();
        let unit = match self.kind {
            ClaimKind::Change(..) | ClaimKind::Equal(..) => " %".to_string(),
            ClaimKind::Factor(..) => " times".to_string(),
            _ => self.unit(),
        };
        let digits = 3;
        let is_change = matches!(self.kind, ClaimKind::Change(..) | ClaimKind::Equal(..));
        let plain = |value: f64| if is_change { signed(value) } else { sig(value, digits) };
        let one = |detail: &Detail| {
            // A change from nothing, or a ratio to it, has no number.
            if detail.effect.is_infinite() && (detail.effect > 0.0 || !is_change) {
                return match (detail.a_mean, detail.b_mean) {
                    (a, b) if a.is_finite() && b.is_finite() => {
                        format!("{} against {}", sig(a, digits), sig(b, digits))
                    }
                    _ if self.metric.unit() == "us" => "never ends".to_string(),
                    _ => "none on one side".to_string(),
                };
            }
            if let (Across::Median, Some((low, high))) = (self.across, detail.interval) {
                return format!("{} ({} to {}){unit}", plain(detail.effect), plain(low), plain(high));
            }
            let half = detail.interval.map(|(low, high)| (high - low) / 2.0).filter(|half| half.is_finite());
            let half = half.map_or(String::new(), |half| format!(" ±{}", sig(half, 2)));
            format!("{}{half}{unit}", plain(detail.effect))
        };
        let place = |detail: &Detail| {
            let values: Vec<&str> = detail.at.iter().map(|(_, value)| value.as_str()).collect();
            if values.is_empty() { String::new() } else { format!(" ({})", values.join(", ")) }
        };
        match &self.kind {
            ClaimKind::Order(..) => {
                let right = details.iter().filter(|d| d.significant == Some(true) && d.effect < 0.0).count();
                let wrong = details.iter().filter(|d| d.significant == Some(true) && d.effect > 0.0).count();
                let mut means: Vec<(&str, f64)> = vec![];
                let first = &details[0].at;
                for detail in details.iter().filter(|detail| detail.at == *first) {
                    for (scheme, mean) in [(&detail.a, detail.a_mean), (&detail.b, detail.b_mean)] {
                        if !means.iter().any(|(known, _)| known == scheme) {
                            means.push((scheme, mean));
                        }
                    }
                }
                let several = details.iter().any(|detail| detail.at != *first);
                let means: Vec<String> =
                    means.iter().map(|(scheme, mean)| format!("{scheme} {}", sig(*mean, digits))).collect();
                let means = if several { String::new() } else { format!("{}{unit}; ", means.join(", ")) };
                format!("{means}{right} of {} pairs, {wrong} the other way", details.len())
            }
            ClaimKind::Trend(..) => {
                let right = details.iter().filter(|d| d.significant == Some(true) && d.effect < 0.0).count();
                let ends = match (details.first(), details.last()) {
                    (Some(first), Some(last)) if first.at == last.at && first.a == last.a => {
                        // Side B is the earlier value of a trend.
                        format!("{} to {}{unit}; ", sig(first.b_mean, digits), sig(last.a_mean, digits))
                    }
                    _ => String::new(),
                };
                format!("{ends}{right} of {} steps", details.len())
            }
            ClaimKind::Shown(_) => {
                let shown = details.iter().map(|detail| format!("{}{} {}", detail.a, place(detail), one(detail)));
                shown.take(6).collect::<Vec<_>>().join("; ") + if details.len() > 6 { "; ..." } else { "" }
            }
            _ => match (told, details.as_slice()) {
                (Some(told), _) => format!("{}{}", one(details[told]), place(details[told])),
                (None, [detail]) => {
                    let best = |scheme: &str, several: bool| if several { scheme.to_string() } else { String::new() };
                    let (a, b) = self.has_choice();
                    let named: Vec<String> =
                        [best(&detail.a, a), best(&detail.b, b)].into_iter().filter(|name| !name.is_empty()).collect();
                    let named =
                        if named.is_empty() { String::new() } else { format!(" ({})", named.join(" against ")) };
                    format!("{}{named}", one(detail))
                }
                (None, _) => {
                    let values = details.iter().map(|detail| detail.effect);
                    let low = values.clone().fold(f64::INFINITY, f64::min);
                    let high = values.fold(f64::NEG_INFINITY, f64::max);
                    format!("{} to {}{unit}", plain(low), plain(high))
                }
            },
        }
    }

    /// The mean or median of a value per seed, with its interval.
    fn centre(&self, values: &Series) -> Option<(f64, Option<(f64, f64)>)> {
        self.across.centre(&values.values().copied().collect::<Vec<_>>())
    }

    /// Two sides by their means or medians.
    fn compared(&self, pairs: &[(f64, f64)]) -> Option<Compared> {
        match self.across {
            Across::Mean => Compared::of(pairs),
            Across::Median => Compared::of_medians(pairs),
        }
    }

    /// Whether either side is the best of several.
    fn has_choice(&self) -> (bool, bool) {
        use super::model::Operand;
        let several = |operand: &Operand| match operand {
            Operand::Others => true,
            Operand::Schemes(names) => names.len() > 1,
        };
        match &self.kind {
            ClaimKind::Change(a, b, _) | ClaimKind::Factor(a, b, _) | ClaimKind::Equal(a, b) => {
                (several(a), several(b))
            }
            ClaimKind::Value(a, _) => (several(a), false),
            _ => (false, false),
        }
    }
}

/// What is judged, with what it is judged by.
struct Judging<'j> {
    claim: &'j Claim,
    plans: &'j [&'j Plan],
    rows: &'j BTreeMap<String, Rows>,
}

type Found = Option<Vec<(Detail, Option<Compared>)>>;

impl Judging<'_> {
    /// The value per seed of a scheme over a group's side; `None` where there is none.
    fn series(&self, coordinates: &[Coordinate], scheme: &str) -> Option<Series> {
        let of = |coordinate: &Coordinate| {
            let study = super::plan::at(coordinate, "study")?;
            let series = self.rows.get(study)?.series(coordinate, scheme, self.claim.metric.name());
            (!series.is_empty()).then_some(series)
        };
        let all: Vec<Series> = coordinates.iter().map(of).collect::<Option<_>>()?;
        let (first, rest) = all.split_first()?;
        let Some(reduce) = self.claim.reduce else { return Some(first.clone()) };
        let one = |(seed, value): (&u64, &f64)| {
            let others: Vec<f64> = rest.iter().map(|series| series.get(seed).copied()).collect::<Option<_>>()?;
            let values = || [*value].into_iter().chain(others.iter().copied());
            let (max, min) = (values().fold(f64::NEG_INFINITY, f64::max), values().fold(f64::INFINITY, f64::min));
            let reduced = match reduce {
                Reduce::Max => max,
                Reduce::Min => min,
                Reduce::Mean => values().sum::<f64>() / (rest.len() + 1) as f64,
                Reduce::Spread => max / min - 1.0,
            };
            Some((*seed, reduced))
        };
        Some(first.iter().filter_map(one).collect())
    }

    /// The best of several schemes; `None` where one of them has no value.
    fn best(&self, coordinates: &[Coordinate], schemes: &[String]) -> Option<Side> {
        let sides = schemes
            .iter()
            .map(|scheme| Some(Side { scheme: scheme.clone(), values: self.series(coordinates, scheme)? }));
        let sides: Vec<Side> = sides.collect::<Option<_>>()?;
        let mean = |side: &Side| self.claim.centre(&side.values).map_or(f64::NAN, |(mean, _)| mean);
        let sign = if self.claim.better == Best::Higher { -1.0 } else { 1.0 };
        sides.into_iter().min_by(|a, b| (sign * mean(a)).total_cmp(&(sign * mean(b))))
    }

    /// The load balancers of both sides in the study that a group's side lies in.
    fn schemes(&self, coordinates: &[Coordinate]) -> (Vec<String>, Vec<String>) {
        let study = coordinates.first().and_then(|coordinate| super::plan::at(coordinate, "study"));
        let plan = self.plans.iter().find(|plan| Some(plan.study.id.as_str()) == study);
        plan.map_or((vec![], vec![]), |plan| self.claim.sides(&plan.sweep.plan.entries))
    }

    fn by_scheme(&self) -> bool {
        self.claim.each.iter().any(|each| each == "scheme")
    }

    /// Values of side A.
    fn values(&self, groups: &[Group]) -> Found {
        let mut found = vec![];
        let mut means: Vec<Series> = vec![];
        for group in groups {
            let (schemes, _) = self.schemes(&group.a);
            let every = self.by_scheme() || matches!(self.claim.kind, ClaimKind::Shown(_));
            let sides: Vec<Side> = match every {
                false => vec![self.best(&group.a, &schemes)?],
                true => {
                    let one = |scheme: &String| self.best(&group.a, std::slice::from_ref(scheme));
                    schemes.iter().map(one).collect::<Option<_>>()?
                }
            };
            for side in sides {
                found.push((self.value(group, &side)?, None));
                means.push(side.values);
            }
        }
        if self.claim.take == Take::Mean && means.len() > 1 {
            let values = mean_of(&means);
            let side = Side { scheme: found[0].0.a.clone(), values };
            return Some(vec![(self.value(&Group { at: vec![], a: vec![], b: vec![] }, &side)?, None)]);
        }
        Some(found)
    }

    fn value(&self, group: &Group, side: &Side) -> Option<Detail> {
        let (mean, interval) = self.claim.centre(&side.values)?;
        Some(Detail {
            at: group.at.clone(),
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

    /// A against B in every group.
    fn comparisons(&self, groups: &[Group]) -> Found {
        let mut found = vec![];
        let mut ratios: Vec<Series> = vec![];
        for group in groups {
            let ((a_schemes, _), (_, b_schemes)) = (self.schemes(&group.a), self.schemes(&group.b));
            let a_sides: Vec<Side> = match self.by_scheme() {
                false => vec![self.best(&group.a, &a_schemes)?],
                true => {
                    let one = |scheme: &String| self.best(&group.a, std::slice::from_ref(scheme));
                    a_schemes.iter().map(one).collect::<Option<_>>()?
                }
            };
            let b = self.best(&group.b, &b_schemes)?;
            for a in a_sides {
                let compared = self.claim.compared(&pairs(&a.values, &b.values))?;
                ratios.push(
                    a.values.iter().filter_map(|(seed, value)| Some((*seed, value / b.values.get(seed)?))).collect(),
                );
                found.push(self.comparison(group.at.clone(), &a.scheme, &b.scheme, compared));
            }
        }
        if self.claim.take == Take::Mean && found.len() > 1 {
            let pairs: Vec<(f64, f64)> = mean_of(&ratios).into_values().map(|ratio| (ratio, 1.0)).collect();
            let compared = self.claim.compared(&pairs)?;
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

    /// Every pair of an order, or of neighbours in a trend, so that ahead is below none.
    fn pairs(&self, groups: &[Group]) -> Found {
        let mut found = vec![];
        let mut add = |group: &Group, a: (&str, &Series), b: (&str, &Series), sign: f64| {
            let mut compared = self.claim.compared(&pairs(a.1, b.1))?;
            if sign > 0.0 {
                compared.change = -compared.change;
                compared.interval = compared.interval.map(|(low, high)| (-high, -low));
            }
            let detail = Detail {
                at: group.at.clone(),
                a: a.0.to_string(),
                a_mean: compared.a,
                b: b.0.to_string(),
                b_mean: compared.b,
                effect: 100.0 * compared.change,
                interval: compared.interval.map(|(low, high)| (100.0 * low, 100.0 * high)),
                significant: None,
                seeds: compared.seeds,
            };
            found.push((detail, Some(compared)));
            Some(())
        };
        for group in groups {
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
}

/// The values of both sides at the seeds that both have.
fn pairs(a: &Series, b: &Series) -> Vec<(f64, f64)> {
    a.iter().filter_map(|(seed, value)| Some((*value, *b.get(seed)?))).collect()
}

/// The mean over several at the seeds that all have.
fn mean_of(all: &[Series]) -> Series {
    let Some((first, rest)) = all.split_first() else { return Series::new() };
    let one = |(seed, value): (&u64, &f64)| {
        let others: Vec<f64> = rest.iter().map(|series| series.get(seed).copied()).collect::<Option<_>>()?;
        Some((*seed, (value + others.iter().sum::<f64>()) / all.len() as f64))
    };
    first.iter().filter_map(one).collect()
}

/// A published number around nothing.
fn shifted(published: Published, none: f64) -> Published {
    match published {
        Published::Number(number) => Published::Number(number - none),
        Published::Range(low, high) => Published::Range(low - none, high - none),
        Published::AtMost(bound) => Published::AtMost(bound - none),
        Published::AtLeast(bound) => Published::AtLeast(bound - none),
        direction @ Published::Direction(_) => direction,
    }
}

/// With so many digits that count.
pub(crate) fn sig(value: f64, digits: usize) -> String {
    match value {
        value if value.is_infinite() => "never ends".into(),
        value if value.is_nan() => "-".into(),
        _ => {
            let text = significant_digits(value, digits).replace('\u{2212}', "-");
            match text.contains('.') && !text.contains('e') {
                true if digits > 5 => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                _ => text,
            }
        }
    }
}

/// A change in per cent, with its sign.
fn signed(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+∞".into() } else { "-100".into() };
    }
    let decimals = if value.abs() < 99.5 { 1 } else { 0 };
    let text = format!("{value:+.decimals$}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text.trim_matches(['+', '-', '0']).is_empty() { "0".into() } else { text.to_string() }
}
