//! Claims of a claim file, typed.

use super::{Filter, Metric, Scale, SeedStatistic};
use anabranch_scenario::Place;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    Number(f64),
    /// Range, from and to.
    Range(f64, f64),
    /// Upper bound.
    AtMost(f64),
    /// Lower bound.
    AtLeast(f64),
    /// Direction only: 1 for higher, -1 for lower.
    Direction(f64),
}

/// Combination of several groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Every group must hold.
    Every,
    /// Group with the largest effect ("up to").
    Largest,
    Mean,
}

/// Reduction of several values of a key to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    Max,
    Min,
    Mean,
    /// Maximum over minimum, minus one.
    Spread,
}

/// Preferred direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    Lower,
    Higher,
}

/// Schemes of one side of a claim, of which the best one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// These schemes.
    Schemes(Vec<String>),
    /// All schemes that are not on the other side.
    OtherCommits,
}

impl Operand {
    fn named(&self) -> Option<&Vec<String>> {
        if let Operand::Schemes(names) = self { Some(names) } else { None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum ClaimKind {
    /// A over B, minus one, in per cent.
    Change(Operand, Operand, Published),
    /// Factor by which A is better than B.
    Factor(Operand, Operand, Published),
    Value(Operand, Published),
    /// Equality of A and B, within the tolerance.
    Equal(Operand, Operand),
    /// Tiers of schemes, each better than all later ones. If the flag (strict) is `false`, schemes may also be level.
    Order(Vec<Vec<String>>, bool),
    /// Change from each value of `along` to the next: 1 rises, -1 falls. Unless the flag (strict) is set, it may stay.
    Trend(Vec<String>, f64, bool),
    /// Values without a published number.
    Shown(Vec<String>),
}

/// Claim of a paper, and the rule that turns our measurements into a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Name, unique within the paper.
    pub id: String,
    pub figure: Option<String>,
    pub section: Option<String>,
    /// The claim in one sentence, paraphrased.
    pub says: String,
    pub studies: Vec<String>,
    pub quick_studies: Vec<String>,
    pub metric: Metric,
    pub kind: ClaimKind,
    /// Part of the studies that the claim refers to.
    pub filter: Filter,
    /// Additional filter for side A.
    pub a_filter: Filter,
    /// Additional filter for side B.
    pub b_filter: Filter,
    /// Dimensions whose values form the groups.
    pub each: Vec<String>,
    /// Combination of the groups.
    pub take: Take,
    pub across: SeedStatistic,
    /// Tolerance as a share: of the published number, or of the other side for equal and level.
    pub tolerance: f64,
    /// Preferred direction of the metric.
    pub better: Best,
    /// Key that is reduced, or that a trend follows.
    pub along: Option<String>,
    /// Reduction over `along`.
    pub reduce: Option<Reduce>,
    /// Parameters that the paper leaves open and whose value is our choice.
    pub ours: Vec<String>,
    /// Readings of the paper that are not ours, by their names.
    pub readings: Vec<String>,
    /// Number of settings that were tried before the one that the claim is judged under; `None` if it was not searched for.
    pub tried: Option<u64>,
    /// Remark for the reader.
    pub note: Option<String>,
    /// Position in the claim file.
    pub place: Place,
}

impl Claim {
    /// Returns the source within the paper: `fig3, §4.1`.
    pub fn source(&self) -> String {
        let section = self.section.as_ref().map(|section| format!("§{section}"));
        [self.figure.clone(), section].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Returns the studies that the claim is judged by at a scale.
    pub fn studies_at(&self, scale: Scale) -> &[String] {
        match scale {
            Scale::Quick => &self.quick_studies,
            Scale::Full => &self.studies,
        }
    }

    /// Returns the load balancers that the claim names.
    pub fn schemes(&self) -> Vec<&String> {
        match &self.kind {
            ClaimKind::Change(a, b, _) | ClaimKind::Factor(a, b, _) | ClaimKind::Equal(a, b) => {
                [a, b].into_iter().filter_map(Operand::named).flatten().collect()
            }
            ClaimKind::Value(a, _) => a.named().into_iter().flatten().collect(),
            ClaimKind::Order(tiers, _) => tiers.iter().flatten().collect(),
            ClaimKind::Trend(schemes, ..) | ClaimKind::Shown(schemes) => schemes.iter().collect(),
        }
    }

    /// Returns the load balancers of both sides, for a study with these entries.
    pub fn sides(&self, entries: &[String]) -> (Vec<String>, Vec<String>) {
        let names = |operand: &Operand, other: Option<&Operand>| match operand {
            Operand::Schemes(names) => names.clone(),
            Operand::OtherCommits => {
                let taken = other.and_then(Operand::named).cloned().unwrap_or_default();
                entries.iter().filter(|entry| !taken.contains(entry)).cloned().collect()
            }
        };
        match &self.kind {
            ClaimKind::Change(a, b, _) | ClaimKind::Factor(a, b, _) | ClaimKind::Equal(a, b) => {
                (names(a, Some(b)), names(b, Some(a)))
            }
            ClaimKind::Value(a, _) => (names(a, None), vec![]),
            ClaimKind::Order(tiers, _) => (tiers.iter().flatten().cloned().collect(), vec![]),
            ClaimKind::Trend(schemes, ..) => (schemes.clone(), vec![]),
            ClaimKind::Shown(schemes) if schemes.is_empty() => (entries.to_vec(), vec![]),
            ClaimKind::Shown(schemes) => (schemes.clone(), vec![]),
        }
    }

    /// Returns the claim with other entries in place of its own.
    pub(crate) fn with_entries(&self, entry: &dyn Fn(&str) -> String) -> Claim {
        let list = |names: &[String]| names.iter().map(|name| entry(name)).collect::<Vec<_>>();
        let operand = |operand: &Operand| match operand {
            Operand::Schemes(names) => Operand::Schemes(list(names)),
            Operand::OtherCommits => Operand::OtherCommits,
        };
        let kind = match &self.kind {
            ClaimKind::Change(a, b, published) => ClaimKind::Change(operand(a), operand(b), *published),
            ClaimKind::Factor(a, b, published) => ClaimKind::Factor(operand(a), operand(b), *published),
            ClaimKind::Value(a, published) => ClaimKind::Value(operand(a), *published),
            ClaimKind::Equal(a, b) => ClaimKind::Equal(operand(a), operand(b)),
            ClaimKind::Order(tiers, strict) => ClaimKind::Order(tiers.iter().map(|tier| list(tier)).collect(), *strict),
            ClaimKind::Trend(schemes, sign, strict) => ClaimKind::Trend(list(schemes), *sign, *strict),
            ClaimKind::Shown(schemes) => ClaimKind::Shown(list(schemes)),
        };
        Claim { kind, ..self.clone() }
    }

    pub(crate) fn has_choice(&self) -> (bool, bool) {
        let several = |operand: &Operand| operand.named().is_none_or(|names| names.len() > 1);
        match &self.kind {
            ClaimKind::Change(a, b, _) | ClaimKind::Factor(a, b, _) | ClaimKind::Equal(a, b) => {
                (several(a), several(b))
            }
            ClaimKind::Value(a, _) => (several(a), false),
            _ => (false, false),
        }
    }
}
