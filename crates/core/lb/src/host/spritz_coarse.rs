//! Spritz with coarse-grained path control (Spritz §III-D). Scout's feedback to categories is ours; the paper has none.

use super::{
    spritz::{self, Acknowledged, BlockScope, Categories, Entropy, Rules, Spritz},
    spritz_scout::SpritzScoutParameters,
};
use crate::{
    Weights,
    registry::{Invalid, SchemeCapabilities, TagKind},
};
use anabranch_settings::{About, Never, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "spritz-coarse",
    summary: "Scout's feedback over categories of paths, tagged by VLAN",
    source: "Spritz §III-D; the algorithm is ours (specification 8.6)",
    description: "The host marks packets with a category of paths (minimal and non-minimal, or the types of Table I) and \
        keeps the fastest good category, as Spritz-Scout does with paths. Endpoints need no list of paths; in \
        return they cannot avoid a single bad one.",
};

parameters! {
    pub struct SpritzCoarseParameters {
        /// Granularity of the categories.
        categories: Categories = Categories::Types, source "Spritz §III-D: path categories, and types within them", Reading;
        /// Change of the entropy that the switch hashes.
        entropy: Entropy = Entropy::Packet, source "ours: spraying within a category", Expert;
        /// Weights of the paths in draws; a category weighs as much as its paths.
        weights: Weights = Weights::Latency, source "Spritz equation 1", Expert;
        /// Packets after which one explores: the next category is drawn by weight. 0: never.
        explore_threshold: u32 = 44, source "Spritz Table II", Expert;
        /// Good categories that are kept.
        buffer_size: u32 = 8, source "Spritz §IV", Expert;
        /// Marks above which a category is no longer good.
        ecn_threshold: u32 = 8, source "Spritz Table II", Expert;
        /// Interval of the timer that restores categories blocked by timeouts.
        block_interval: Never<Time> = Never::Value(Time::from_ms(1)), source "ours: not given", Expert;
        /// Share of marked ACKs above which the fastest category is preferred.
        ecn_rate: f64 = 0.9, source "Spritz Algorithm 2", Expert;
    }
}

impl SchemeCapabilities for SpritzCoarseParameters {
    fn tags(&self) -> TagKind {
        TagKind::Category
    }

    fn check(&self) -> Result<(), Invalid> {
        spritz::check(self.buffer_size, self.ecn_rate)
    }
}

impl From<SpritzCoarseParameters> for Rules {
    fn from(p: SpritzCoarseParameters) -> Self {
        let of = SpritzScoutParameters {
            explore_threshold: p.explore_threshold,
            buffer_size: p.buffer_size,
            ecn_threshold: p.ecn_threshold,
            weights: p.weights,
            block_scope: BlockScope::Flow,
            block_interval: p.block_interval,
            ecn_rate: p.ecn_rate,
            ..SpritzScoutParameters::default()
        };
        Rules {
            name: ABOUT.name,
            scout: true,
            coarse: Some((p.categories, p.entropy)),
            acknowledged: Acknowledged::Own,
            of,
        }
    }
}

pub(crate) use super::spritz::STATE;
pub(crate) type SpritzCoarse = Spritz;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Category, HostScheme, Tag,
        host::testing::{clean, four_paths, guided_flow, send},
    };

    fn coarse(parameters: SpritzCoarseParameters) -> SpritzCoarse {
        let mut s = SpritzCoarse::new(parameters, 1, 2);
        s.open(Time::ZERO, 0, &guided_flow(&four_paths()));
        s
    }

    #[test]
    fn a_worked_trace() {
        let mut s = coarse(SpritzCoarseParameters { explore_threshold: 0, ..Default::default() });
        // Types 3, 7 and 8 occur; one that returned unmarked is kept, with a fresh entropy for every packet.
        let drawn: std::collections::BTreeSet<u8> = (0..500).map(|_| send(&mut s) as u8).collect();
        assert_eq!(drawn, [3, 7, 8].map(|kind| Category::Kind(kind).code()).into());
        clean(&mut s, Tag::from(Category::Kind(7).code()));
        let sent: Vec<Tag> = (0..20).map(|_| send(&mut s)).collect();
        assert!(sent.iter().all(|tag| Category::of(*tag as u8) == Category::Kind(7)));
        assert!(sent.windows(2).any(|pair| pair[0] >> 8 != pair[1] >> 8));
        clean(&mut s, Tag::from(Category::Kind(3).code()));
        assert_eq!(Category::of(send(&mut s) as u8), Category::Kind(3));
        s.on_nack(Time::ZERO, 0, Tag::from(Category::Kind(3).code()));
        assert_eq!(Category::of(send(&mut s) as u8), Category::Kind(7));
    }

    #[test]
    fn minimal_or_not() {
        let mut s = coarse(SpritzCoarseParameters {
            categories: Categories::Minimal,
            entropy: Entropy::Flow,
            weights: Weights::Uniform,
            explore_threshold: 0,
            ..Default::default()
        });
        let sent: Vec<Tag> = (0..10_000).map(|_| send(&mut s)).collect();
        assert!(sent.iter().all(|tag| tag >> 8 == sent[0] >> 8));
        // One of four paths is minimal: 2,500, standard deviation 43.
        let minimal = sent.iter().filter(|tag| Category::of(**tag as u8) == Category::Minimal).count();
        assert!(minimal.abs_diff(2500) < 143, "{minimal}");
    }
}
