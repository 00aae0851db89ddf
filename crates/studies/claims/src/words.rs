//! Published numbers and our results as text.

use super::{Best, Claim, ClaimKind, Coordinate, Published, SeedStatistic, Take};
use anabranch_results::significant_digits;

/// One comparison of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// Group: values of its dimensions.
    pub at: Coordinate,
    /// Load balancer of side A.
    pub a: String,
    /// Mean or median of side A.
    pub a_mean: f64,
    /// Load balancer of side B; empty if there is none.
    pub b: String,
    /// Mean or median of side B.
    pub b_mean: f64,
    /// Judged effect: per cent of a change, factor, else the value itself.
    pub effect: f64,
    /// 95 % interval of the effect.
    pub interval: Option<(f64, f64)>,
    /// `true` if the effect is significant after Holm's correction; `None` if it is not tested.
    pub significant: Option<bool>,
    pub seeds: usize,
}

pub(crate) fn published(claim: &Claim) -> String {
    let unit = match claim.kind {
        ClaimKind::Change(..) => " %".to_string(),
        ClaimKind::Factor(..) => " times".to_string(),
        _ => unit(claim),
    };
    let signed = |number: f64| match claim.kind {
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
    match &claim.kind {
        ClaimKind::Change(_, _, published) | ClaimKind::Value(_, published) => {
            let up_to = if claim.take == Take::Largest { "up to " } else { "" };
            format!("{up_to}{}", of(published))
        }
        ClaimKind::Factor(_, _, published) => match published {
            Published::Direction(_) => "ahead".into(),
            published if claim.take == Take::Largest => format!("up to {}", of(published)),
            published => of(published),
        },
        ClaimKind::Equal(..) => "alike".into(),
        ClaimKind::Order(tiers, strict) => {
            let tier = |tier: &Vec<String>| tier.join(", ");
            let better = if claim.better == Best::Higher { " > " } else { " < " };
            let sign = if *strict { better } else { " <= " };
            tiers.iter().map(tier).collect::<Vec<_>>().join(sign)
        }
        ClaimKind::Trend(_, sign, _) => if *sign > 0.0 { "rises" } else { "falls" }.into(),
        ClaimKind::Shown(_) => "-".into(),
    }
}

fn unit(claim: &Claim) -> String {
    match claim.metric.unit() {
        "" => String::new(),
        unit => format!(" {unit}"),
    }
}

/// Formats our result for a claim. `summary_text` is the index of the comparison that decides the verdict.
pub(crate) fn result_text(claim: &Claim, details: &[Detail], summary_text: Option<usize>) -> String {
    let unit = match claim.kind {
        ClaimKind::Change(..) | ClaimKind::Equal(..) => " %".to_string(),
        ClaimKind::Factor(..) => " times".to_string(),
        _ => unit(claim),
    };
    let digits = 3;
    let is_change = matches!(claim.kind, ClaimKind::Change(..) | ClaimKind::Equal(..));
    let plain = |value: f64| if is_change { signed(value) } else { sig(value, digits) };
    let one = |detail: &Detail| {
        // A change from zero, or a ratio to it, has no number.
        if detail.effect.is_infinite() && (detail.effect > 0.0 || !is_change) {
            return match (detail.a_mean, detail.b_mean) {
                (a, b) if a.is_finite() && b.is_finite() => {
                    format!("{} against {}", sig(a, digits), sig(b, digits))
                }
                _ if claim.metric.unit() == "us" || detail.b.is_empty() => "never ends".to_string(),
                _ => "none on one side".to_string(),
            };
        }
        if let (SeedStatistic::Median, Some((low, high))) = (claim.across, detail.interval) {
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
    match &claim.kind {
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
        _ => match (summary_text, details) {
            (Some(summary_text), _) => format!("{}{}", one(&details[summary_text]), place(&details[summary_text])),
            (None, [detail]) => {
                let best = |scheme: &str, several: bool| if several { scheme.to_string() } else { String::new() };
                let (a, b) = claim.has_choice();
                let named: Vec<String> =
                    [best(&detail.a, a), best(&detail.b, b)].into_iter().filter(|name| !name.is_empty()).collect();
                let named = if named.is_empty() { String::new() } else { format!(" ({})", named.join(" against ")) };
                format!("{}{named}", one(detail))
            }
            (None, _) => {
                let values = details.iter().map(|detail| detail.effect);
                let low = values.clone().fold(f64::INFINITY, f64::min);
                let high = values.fold(f64::NEG_INFINITY, f64::max);
                let ends = format!("{} to {}{unit}", plain(low), plain(high));
                match claim.kind {
                    ClaimKind::Change(_, _, Published::Direction(sign)) => {
                        let holds = |detail: &&Detail| detail.significant == Some(true) && detail.effect * sign > 0.0;
                        let word = if sign > 0.0 { "higher" } else { "lower" };
                        format!("{ends}; {} of {} {word}", details.iter().filter(holds).count(), details.len())
                    }
                    _ => ends,
                }
            }
        },
    }
}

/// Formats a value with `digits` significant digits.
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

fn signed(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+∞".into() } else { "-100".into() };
    }
    let decimals = if value.abs() < 99.5 { 1 } else { 0 };
    let text = format!("{value:+.decimals$}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text.trim_matches(['+', '-', '0']).is_empty() { "0".into() } else { text.to_string() }
}
