//! Spritz-Scout (Spritz §IV-A, Algorithms 1 and 2; specification 8.4, 8.5).

use super::{
    guided::Subset,
    spritz::{self, Acknowledged, BlockScope, Buffer, Reading, Rules, Spritz},
};
use crate::{
    Weights,
    registry::{Invalid, SchemeCapabilities, TagKind},
};
use anabranch_settings::{About, Never, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "spritz-scout",
    summary: "explores paths by weight and holds to the fastest that is good",
    source: "Spritz §IV, Algorithms 1 and 2; specification 8.4, 8.5",
    description: "Up to 8 good paths per connection, the fastest first, are reused for packet after packet. More than \
        `ecn_threshold` marks, a NACK or a timeout remove a path; a timeout also blocks it until a timer restores all. \
        Where nearly all ACKs are marked, draws lean to the minimal path.",
};

parameters! {
    pub struct SpritzScoutParameters {
        /// Weights of the paths in draws.
        weights: Weights = Weights::Latency, source "Spritz equation 1; (u) is uniform", Expert;
        /// Packets after which one explores: the next is drawn by weight. 0: never.
        explore_threshold: u32 = 44, source "Spritz Table II: about half a BDP", Expert;
        /// Good paths that are kept.
        buffer_size: u32 = 8, source "Spritz §IV; the artifact keeps 9", Expert;
        /// Owner of a buffer of good paths. That of a pair is emptied when a flow opens and no ACK has come for 100 us.
        buffer: Buffer = Buffer::Flow, source "Spritz §IV: may be cached between identical connections", Reading;
        /// Marks above which a path is no longer good.
        ecn_threshold: u32 = 8, source "Spritz Table II: about a tenth of a BDP", Expert;
        /// Source of what counts towards an exploration, and of what blocks a path.
        reading: Reading = Reading::Paper, source "Spritz Algorithms 1 to 3", Reading;
        /// Flows for which a timeout blocks a path.
        block_scope: BlockScope = BlockScope::Endpoint, source "Spritz §III-C, Algorithms 1 to 3: entries and weights are those of the endpoint", Reading;
        /// Interval of the timer that restores all blocked paths.
        block_interval: Never<Time> = Never::Value(Time::from_ms(1)), source "ours: not given", Expert;
        /// Share of marked ACKs above which the minimal path is preferred.
        ecn_rate: f64 = 0.9, source "Spritz Algorithm 2", Expert;
        /// Flows below this size draw the minimal path with weight 100 and all others with 1.
        small_flow: Bytes = Bytes(0), source "Spritz §V-C: identical weights; the artifact's scripts: 512KiB", Reading;
        /// Maximum paths kept per destination; 0: all.
        max_paths: u32 = 0, source "Spritz §III-C: a subset where memory is limited", Expert;
        /// Selection of the paths kept.
        subset: Subset = Subset::Fastest, source "ours: not given", Expert;
    }
}

impl SchemeCapabilities for SpritzScoutParameters {
    fn tags(&self) -> TagKind {
        TagKind::Guided
    }

    fn check(&self) -> Result<(), Invalid> {
        spritz::check(self.buffer_size, self.ecn_rate)
    }
}

impl From<SpritzScoutParameters> for Rules {
    fn from(p: SpritzScoutParameters) -> Self {
        Rules { name: ABOUT.name, scout: true, coarse: None, acknowledged: Acknowledged::Own, of: p }
    }
}

pub(crate) use super::spritz::STATE;
pub(crate) type SpritzScout = Spritz;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{FOUR_TAGS as T, clean, four_paths, guided_flow, mark, packet, send, send_at};
    use crate::{FlowInfo, HostScheme, Tag};

    fn scout(parameters: SpritzScoutParameters) -> SpritzScout {
        let mut s = SpritzScout::new(parameters, 1, 2);
        s.open(Time::ZERO, 0, &guided_flow(&four_paths()));
        s
    }

    #[test]
    fn a_worked_trace_of_algorithm_2() {
        let mut s = scout(SpritzScoutParameters { explore_threshold: 0, ..Default::default() });
        // Paths 2 and 3 return unmarked, then 0: the buffer is in order of latency, its front remains.
        clean(&mut s, T[2]);
        clean(&mut s, T[3]);
        assert_eq!([send(&mut s), send(&mut s)], [T[2]; 2]);
        clean(&mut s, T[0]);
        clean(&mut s, T[0]);
        assert_eq!([send(&mut s), send(&mut s)], [T[0]; 2]);
        // Eight marks are tolerated, the ninth removes the path (more than ecn_threshold = 8).
        (0..8).for_each(|_| mark(&mut s, T[0]));
        assert_eq!(send(&mut s), T[0]);
        mark(&mut s, T[0]);
        assert_eq!(send(&mut s), T[2]);
        clean(&mut s, T[0]);
        (0..8).for_each(|_| mark(&mut s, T[0]));
        assert_eq!(send(&mut s), T[0]);
        s.on_nack(Time::ZERO, 0, T[0]);
        assert_eq!(send(&mut s), T[2]);
        clean(&mut s, T[0]);
        mark(&mut s, T[0]);
        assert_eq!(send(&mut s), T[0]);
        // A timeout removes and blocks it: no draw selects it until the timer fires at 1 ms.
        for path in T {
            s.on_nack(Time::ZERO, 0, path);
        }
        s.on_timeout(Time::from_us(10), 0, T[0]);
        assert!((0..500).all(|_| send_at(&mut s, Time::from_us(999)) != T[0]));
        assert!((0..500).any(|_| send_at(&mut s, Time::from_us(1000)) == T[0]));
    }

    #[test]
    fn the_buffer_holds_eight() {
        let paths = std::sync::Arc::new(crate::GuidedPaths::new((0..12u16).map(|i| crate::GuidedPath {
            ev: i,
            kind: 0,
            minimal: i == 0,
            latency: Time::from_ns(100 + u64::from(i)),
            propagation: Time::from_ns(50),
            hops: 2,
        })));
        let mut s = SpritzScout::new(SpritzScoutParameters { explore_threshold: 0, ..Default::default() }, 1, 2);
        s.open(Time::ZERO, 0, &guided_flow(&paths));
        (4..12).for_each(|i| clean(&mut s, paths.tag(i)));
        clean(&mut s, paths.tag(0));
        assert_eq!(send(&mut s), paths.tag(4));
        s.on_nack(Time::ZERO, 0, paths.tag(9));
        clean(&mut s, paths.tag(0));
        assert_eq!(send(&mut s), paths.tag(0));
    }

    #[test]
    fn every_46th_packet_explores() {
        // 45 packets are counted (0 to 44 are not above 44), then one explores and the count restarts: with the
        // fastest path good, any other tag is an exploration.
        let mut s = scout(SpritzScoutParameters { weights: Weights::Uniform, ..Default::default() });
        clean(&mut s, T[0]);
        let sent: Vec<Tag> = (0..46 * 200).map(|_| send(&mut s)).collect();
        for (number, tag) in sent.iter().enumerate() {
            assert!(*tag == T[0] || number % 46 == 45, "{number}");
        }
        // Of 200 explorations three quarters take another path: 150, standard deviation 6.1.
        let others = sent.iter().filter(|tag| **tag != T[0]).count();
        assert!((130..=170).contains(&others), "{others}");
    }

    #[test]
    fn heavy_congestion_prefers_the_minimal_path() {
        // 200 marked ACKs: 1 - (63/64)^200 = 0.957 > 0.9. The minimal path then has a weight of 100 against 3 others of 1.
        let mut s = scout(SpritzScoutParameters {
            weights: Weights::Uniform,
            explore_threshold: 0,
            ecn_threshold: 1000,
            ..Default::default()
        });
        (0..200).for_each(|_| mark(&mut s, T[1]));
        let share = |s: &mut SpritzScout| (0..10_000).filter(|_| send(s) == T[0]).count();
        let biased = share(&mut s);
        assert!(biased.abs_diff(9709) < 56, "{biased}: 10,000 * 100/103, 3.3 standard deviations of 17");
        s.on_timeout(Time::ZERO, 0, T[0]);
        assert_eq!(share(&mut s), 0);
        // 4 clean ACKs bring the share to 0.957 * (63/64)^4 = 0.898: over.
        let mut s = scout(SpritzScoutParameters {
            weights: Weights::Uniform,
            explore_threshold: 0,
            buffer_size: 1,
            ..Default::default()
        });
        (0..200).for_each(|_| mark(&mut s, T[1]));
        (0..4).for_each(|_| clean(&mut s, T[1]));
        s.on_nack(Time::ZERO, 0, T[1]);
        assert!(share(&mut s).abs_diff(2500) < 143);
    }

    #[test]
    fn a_timeout_blocks_a_path_for_the_endpoint_or_for_the_flow() {
        // Three flows: slots 0 and 1 to switch 7, by different hosts, slot 2 to switch 8.
        for (block_scope, others) in [(BlockScope::Endpoint, true), (BlockScope::Flow, false)] {
            let paths = four_paths();
            let mut s = SpritzScout::new(SpritzScoutParameters { block_scope, ..Default::default() }, 1, 2);
            let to = |dst, edge| {
                let flow = guided_flow(&paths);
                FlowInfo { dst, paths: crate::PathSpace { edge, ..flow.paths }, ..flow }
            };
            for (slot, dst, edge) in [(0, 2, 7), (1, 3, 7), (2, 4, 8)] {
                s.open(Time::ZERO, slot, &to(dst, edge));
            }
            s.on_timeout(Time::from_us(10), 0, T[0]);
            let packet = packet(0, Time::ZERO);
            let uses = |s: &mut SpritzScout, slot, us| {
                (0..500).any(|_| s.select(Time::from_us(us), slot, &packet) == crate::Decision::Send(T[0]))
            };
            assert!(!uses(&mut s, 0, 20));
            assert_eq!(!uses(&mut s, 1, 20), others);
            assert!(uses(&mut s, 2, 20));
            // A flow that opens later finds the block too; the timer restores the path for all.
            s.open(Time::from_us(30), 3, &to(5, 7));
            assert_eq!(!uses(&mut s, 3, 40), others);
            assert!(uses(&mut s, 0, 1000) && uses(&mut s, 1, 1000) && uses(&mut s, 3, 1000));
        }
    }

    #[test]
    fn flows_of_a_pair_may_share_their_good_paths() {
        let paths = four_paths();
        let parameters =
            SpritzScoutParameters { buffer: Buffer::Pair, explore_threshold: 0, ..SpritzScoutParameters::default() };
        let mut s = SpritzScout::new(parameters, 1, 2);
        s.open(Time::ZERO, 0, &guided_flow(&paths));
        clean(&mut s, T[3]);
        s.close(0);
        // A flow that opens 99 us after the last ACK finds the path, one that opens 100 us after it does not.
        s.open(Time::from_us(99), 0, &guided_flow(&paths));
        assert!((0..50).all(|_| send(&mut s) == T[3]));
        s.close(0);
        s.open(Time::from_us(100), 0, &guided_flow(&paths));
        assert!((0..200).any(|_| send(&mut s) != T[3]));
    }

    #[test]
    fn small_flows_may_be_biased_as_the_artifact_does() {
        let parameters = SpritzScoutParameters { small_flow: Bytes(512 << 10), ..SpritzScoutParameters::default() };
        let paths = four_paths();
        let mut s = SpritzScout::new(parameters, 1, 2);
        s.open(Time::ZERO, 0, &FlowInfo { size: 1000, ..guided_flow(&paths) });
        let share = (0..10_000).filter(|_| send(&mut s) == T[0]).count();
        assert!(share.abs_diff(9709) < 56, "{share}: 10,000 * 100/103");
    }
}
