//! Spritz-Spray (Spritz §IV-B, Algorithms 1 and 3; specification 8.4, 8.5).

use super::{
    guided::Subset,
    spritz::{self, Acknowledged, BlockScope, Buffer, Reading, Rules, Spritz},
    spritz_scout::SpritzScoutParameters,
};
use crate::{
    Weights,
    registry::{Invalid, SchemeCapabilities, TagKind},
};
use anabranch_settings::{About, Never, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "spritz-spray",
    summary: "recycles paths that came back unmarked, else draws them by weight",
    source: "Spritz §IV, Algorithms 1 and 3; specification 8.4, 8.5",
    description: "Up to 8 good paths per connection, each used once and refilled by clean ACKs. A timeout blocks a path until a timer \
        restores all. Where nearly all ACKs are marked, draws lean to the minimal path.",
};

parameters! {
    pub struct SpritzSprayParameters {
        /// Weights of the paths in draws.
        weights: Weights = Weights::Latency, source "Spritz equation 1; (u) is uniform", Expert;
        /// Packets after which one explores: the next is drawn by weight. 0: never.
        explore_threshold: u32 = 44, source "Spritz Table II: about half a BDP", Expert;
        /// Good paths that are kept.
        buffer_size: u32 = 8, source "Spritz §IV; the artifact keeps 9", Expert;
        /// Owner of a buffer of good paths. That of a pair is emptied when a flow opens and no ACK has come for 100 us.
        buffer: Buffer = Buffer::Flow, source "Spritz §IV: may be cached between identical connections", Reading;
        /// Source of what counts towards an exploration, and of what blocks a path.
        reading: Reading = Reading::Paper, source "Spritz Algorithms 1 to 3", Reading;
        /// Flows for which a timeout blocks a path.
        block_scope: BlockScope = BlockScope::Endpoint, source "Spritz §III-C, Algorithms 1 to 3: entries and weights are those of the endpoint", Reading;
        /// Interval of the timer that restores all blocked paths.
        block_interval: Never<Time> = Never::Value(Time::from_ms(1)), source "ours: not given", Expert;
        /// Share of marked ACKs above which the minimal path is preferred.
        ecn_rate: f64 = 0.9, source "Spritz Algorithm 3", Expert;
        /// Flows below this size draw the minimal path with weight 100 and all others with 1.
        small_flow: Bytes = Bytes(0), source "Spritz §V-C: identical weights; the artifact's scripts: 512KiB", Reading;
        /// Packets whose paths a clean acknowledgement returns to the good ones. `covered` needs the bitmap of `uet`.
        acknowledged: Acknowledged = Acknowledged::Own, source "Spritz Algorithm 3: that of the ACK; covered is ours, for coalesced ACKs: Ultra Ethernet and MRC report 64 packets", Expert;
        /// Maximum paths kept per destination; 0: all.
        max_paths: u32 = 0, source "Spritz §III-C: a subset where memory is limited", Expert;
        /// Selection of the paths kept.
        subset: Subset = Subset::Fastest, source "ours: not given", Expert;
    }
}

impl SchemeCapabilities for SpritzSprayParameters {
    fn tags(&self) -> TagKind {
        TagKind::Guided
    }

    fn check(&self) -> Result<(), Invalid> {
        spritz::check(self.buffer_size, self.ecn_rate)
    }
}

impl From<SpritzSprayParameters> for Rules {
    fn from(p: SpritzSprayParameters) -> Self {
        let of = SpritzScoutParameters {
            weights: p.weights,
            explore_threshold: p.explore_threshold,
            buffer_size: p.buffer_size,
            buffer: p.buffer,
            ecn_threshold: 0,
            reading: p.reading,
            block_scope: p.block_scope,
            block_interval: p.block_interval,
            ecn_rate: p.ecn_rate,
            small_flow: p.small_flow,
            max_paths: p.max_paths,
            subset: p.subset,
        };
        Rules { name: ABOUT.name, scout: false, coarse: None, acknowledged: p.acknowledged, of }
    }
}

pub(crate) use super::spritz::STATE;
pub(crate) type SpritzSpray = Spritz;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{FOUR_TAGS as T, clean, feedback, four_paths, guided_flow, mark, send, send_at};
    use crate::{Decision, Feedback, HostScheme, Outgoing, Tag};

    fn spray(parameters: SpritzSprayParameters) -> SpritzSpray {
        let mut s = SpritzSpray::new(parameters, 1, 2);
        s.open(Time::ZERO, 0, &guided_flow(&four_paths()));
        s
    }

    #[test]
    fn a_worked_trace_of_algorithm_3() {
        let mut s = spray(SpritzSprayParameters { explore_threshold: 0, ..Default::default() });
        // First in, first out, the same path twice if it returned twice; marks and NACKs have no effect.
        for tag in [T[2], T[0], T[2], T[3]] {
            clean(&mut s, tag);
        }
        mark(&mut s, T[2]);
        s.on_nack(Time::ZERO, 0, T[0]);
        assert_eq!([(); 4].map(|()| send(&mut s)), [T[2], T[0], T[2], T[3]]);
        let drawn: Vec<Tag> = (0..500).map(|_| send(&mut s)).collect();
        assert!(T.iter().all(|tag| drawn.contains(tag)));
        (0..8).for_each(|_| clean(&mut s, T[1]));
        clean(&mut s, T[3]);
        assert!((0..8).all(|_| send(&mut s) == T[1]));
        // A timeout blocks the path for draws; in the buffer it remains (Algorithm 3 does not remove it).
        clean(&mut s, T[0]);
        s.on_timeout(Time::ZERO, 0, T[0]);
        assert_eq!(send(&mut s), T[0]);
        assert!((0..500).all(|_| send(&mut s) != T[0]));
        assert!((0..500).any(|_| send_at(&mut s, Time::from_ms(1)) == T[0]));
    }

    #[test]
    fn coalesced_acknowledgement_returns_every_path_that_it_covers() {
        let parameters =
            SpritzSprayParameters { explore_threshold: 0, acknowledged: Acknowledged::Covered, ..Default::default() };
        let mut s = spray(parameters);
        let sent = |s: &mut SpritzSpray, psn| match s.select(Time::ZERO, 0, &Outgoing { psn, ..Outgoing::first(4096) })
        {
            Decision::Send(tag) => tag,
            other => panic!("{other:?}"),
        };
        let tags: Vec<Tag> = (0..6).map(|psn| sent(&mut s, psn)).collect();
        // Of packet 5, which covers 0 to 2 and 4: those four, once, in the order of their PSNs; 5 itself is not in the bitmap.
        let ack =
            Feedback { cumulative: 3, next_psn: 6, selective: 0b10, selective_from: 3, ..feedback(tags[5], false) };
        s.on_ack(Time::ZERO, 0, &ack);
        s.on_ack(Time::ZERO, 0, &ack);
        assert_eq!([6, 7, 8, 9].map(|psn| sent(&mut s, psn)), [tags[0], tags[1], tags[2], tags[4]]);
        // A mark returns none of them: what follows is drawn.
        s.on_ack(Time::ZERO, 0, &Feedback { cumulative: 10, ecn: true, ..ack });
        assert_ne!([10, 11, 12, 13].map(|psn| sent(&mut s, psn)), [tags[0], tags[1], tags[2], tags[4]]);
    }

    #[test]
    fn exploration_leaves_the_buffer_alone() {
        // 45 from the buffer, one drawn, and so on: the buffer is refilled so that it never runs dry.
        let mut s = spray(SpritzSprayParameters { weights: Weights::Uniform, ..Default::default() });
        let mut others = 0;
        for number in 0..46 * 100 {
            clean(&mut s, T[0]);
            let tag = send(&mut s);
            assert!(tag == T[0] || number % 46 == 45, "{number}");
            others += u32::from(tag != T[0]);
        }
        // Of 100 explorations three quarters take another path: 75, standard deviation 4.3.
        assert!((60..=90).contains(&others), "{others}");
    }
}
