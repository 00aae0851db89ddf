//! Claims of a claim file, typed.

use super::{
    Metric,
    model::{Across, Filter, Scale},
};
use anabranch_scenario::tree::Place;

/// What a paper publishes of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// The number.
    Number(f64),
    /// From, to.
    Range(f64, f64),
    /// Not above.
    AtMost(f64),
    /// Not below.
    AtLeast(f64),
    /// A direction alone: 1 for higher, -1 for lower.
    Direction(f64),
}

/// What of several groups counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Each must hold.
    Every,
    /// The largest effect ("up to").
    Most,
    /// The mean over the groups.
    Mean,
}

/// Several values of a key as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The mean.
    Mean,
    /// The largest over the smallest, less one.
    Spread,
}

/// Which end of a metric is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

/// Schemes of one side of a claim: the best of them counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// These.
    Schemes(Vec<String>),
    /// All that are not on the other side.
    Others,
}

impl Operand {
    /// The load balancers, unless they are the others.
    fn named(&self) -> Option<&Vec<String>> {
        if let Operand::Schemes(names) = self { Some(names) } else { None }
    }
}

/// The rule of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimKind {
    /// A over B, less one, in per cent.
    Change(Operand, Operand, Published),
    /// How many times A is better than B.
    Factor(Operand, Operand, Published),
    /// A alone.
    Value(Operand, Published),
    /// A and B are alike.
    Equal(Operand, Operand),
    /// Tiers of schemes, each better than all that come later; not strict: or level.
    Order(Vec<Vec<String>>, bool),
    /// From one value of `along` to the next: 1 rises, -1 falls; not strict: or stays.
    Trend(Vec<String>, f64, bool),
    /// Nothing to compare with.
    Shown(Vec<String>),
}

/// What a paper says, and the rule that turns ours into a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its name within the paper.
    pub id: String,
    /// The figure it is about.
    pub figure: Option<String>,
    /// The section that says it.
    pub section: Option<String>,
    /// The sentence in our words.
    pub says: String,
    /// The studies it is about.
    pub studies: Vec<String>,
    /// The studies for the quick scale.
    pub quick_studies: Vec<String>,
    /// The number it is about.
    pub metric: Metric,
    /// The rule.
    pub kind: ClaimKind,
    /// What of the studies it is about.
    pub filter: Filter,
    /// What is different for A.
    pub a_filter: Filter,
    /// What is different for B.
    pub b_filter: Filter,
    /// Dimensions whose values make the groups.
    pub each: Vec<String>,
    /// Which groups count.
    pub take: Take,
    /// What of the seeds counts.
    pub across: Across,
    /// What still counts as the published number, as a share of it; as alike or level, as a share of the other side.
    pub tolerance: f64,
    /// Which end of the metric is good.
    pub better: Best,
    /// Key that is reduced, or that a trend follows.
    pub along: Option<String>,
    /// How it is reduced.
    pub reduce: Option<Reduce>,
    /// Parameters that the paper leaves open and whose value is our choice.
    pub ours: Vec<String>,
    /// What to know of it.
    pub note: Option<String>,
    /// Where it stands.
    pub place: Place,
}

impl Claim {
    /// What people read of where it comes from: `fig3, section 4.1`.
    pub fn source(&self) -> String {
        let section = self.section.as_ref().map(|section| format!("§{section}"));
        [self.figure.clone(), section].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The studies it is judged by at a scale.
    pub fn studies_at(&self, scale: Scale) -> &[String] {
        match scale {
            Scale::Quick => &self.quick_studies,
            Scale::Full => &self.studies,
        }
    }

    /// The load balancers it names.
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

    /// The load balancers of both sides in a study's entries.
    pub fn sides(&self, entries: &[String]) -> (Vec<String>, Vec<String>) {
        let names = |operand: &Operand, other: Option<&Operand>| match operand {
            Operand::Schemes(names) => names.clone(),
            Operand::Others => {
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

    /// Whether either side is the best of several.
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
