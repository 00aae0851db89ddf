//! Source-guided adaptive routing, the switch side of Spritz (Spritz §III, specification 8.1): the first switch
//! forwards by EV1, the second by EV2, each modulo its table, all others by default.

use crate::{
    GuidedSwitch, PacketView, SwitchHeader, SwitchInfo, SwitchScheme, Weights,
    hash::ecmp_hash,
    registry::{PacketScope, SchemeCapabilities, TagKind},
    state::state,
    switch::course::Course,
};
use anabranch_random::key;
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "source-guided",
    summary: "the first two switches of a Dragonfly or a Slim Fly forward by the entropy value",
    source: "Spritz §III; specification 8.1",
    description: "Entropy values have two parts: the port at the first switch and the port at the second; from there the \
        default table leads to the destination. Host schemes with the list of paths (spritz-scout, spritz-spray, \
        flicr) select the path. For all others (ecmp, ops, reps, ...) the first switch hashes flow and entropy value to \
        one of the paths of the pair, with the probabilities of `weights`.",
};

state! {}

parameters! {
    pub struct SourceGuidedParameters {
        /// Distribution of the entropy values of hashing host schemes over the paths of a pair.
        weights: Weights = Weights::Uniform, source "Spritz §V-A: OPS (u) and OPS (w)", Expert;
    }
}

impl SchemeCapabilities for SourceGuidedParameters {
    fn tags(&self) -> TagKind {
        TagKind::Guided
    }

    fn packet_scope(&self) -> PacketScope {
        PacketScope::Guided
    }

    fn without_effect(&self, tags: TagKind) -> Vec<(&'static str, &'static str)> {
        (tags == TagKind::Guided).then_some(("weights", "a host scheme that selects the path")).into_iter().collect()
    }
}

#[derive(Debug)]
pub struct SourceGuided {
    seed: u64,
    weights: Weights,
    named_by_host: bool,
}

impl SourceGuided {
    pub fn new(parameters: SourceGuidedParameters, seed: u64, switch: &SwitchInfo) -> Self {
        SourceGuided {
            seed: key(seed, switch.key, "source-guided"),
            weights: parameters.weights,
            named_by_host: switch.tags == TagKind::Guided,
        }
    }
}

/// Converts 53 bits of a hash to a number in [0, 1).
pub(crate) fn unit(hash: u64) -> f64 {
    (hash >> 11) as f64 / (1u64 << 53) as f64
}

impl SwitchScheme for SourceGuided {
    #[inline]
    fn guide<G: GuidedSwitch>(&mut self, _: Time, packet: &PacketView, header: &mut SwitchHeader, at: &mut G) -> u32 {
        let mut course = Course::of(header);
        if course.hop() == 0 {
            course.set_ev(match self.named_by_host {
                true => packet.tag as u16,
                false => {
                    let unit = unit(ecmp_hash(self.seed, packet));
                    let paths = at.paths();
                    paths.ev(self.weights.pick(paths, unit))
                }
            });
        }
        let port = course.port(at);
        course.leave(at, port, header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, Little, data};

    fn scheme(tags: TagKind, weights: Weights) -> SourceGuided {
        let parameters = SourceGuidedParameters { weights };
        SourceGuided::new(parameters, 1, &SwitchInfo { tags, ..LEAF })
    }

    #[test]
    fn a_worked_trace_of_the_roles() {
        // Dragonfly (1, 2, 1): three groups of two switches, a port to the other switch and one global link each.
        // Switch 0 to switch 4: EV1 = 0 is the local link to switch 1, EV2 = 1 its global link, then the default.
        let mut s = scheme(TagKind::Guided, Weights::Uniform);
        let mut header = SwitchHeader::default();
        let packet = data(1, 7 << 16 | 1);
        let mut way = vec![0];
        while *way.last().unwrap() != 4 {
            let here = *way.last().unwrap();
            let mut at = Little::dragonfly(here, 4);
            let port = s.guide(Time::ZERO, &packet, &mut header, &mut at);
            way.push(at.peer(here, port));
        }
        let at = Little::dragonfly(1, 4);
        assert_eq!(way[..3], [0, 1, at.peer(1, 1)]);
        assert!(way.len() <= 6, "{way:?}");
        assert_eq!(Course::of(&header).hop() as usize, way.len() - 1);
    }

    #[test]
    fn entropy_values_spread_over_the_paths_of_the_pair() {
        let mut s = scheme(TagKind::Entropy, Weights::Uniform);
        let mut at = Little::dragonfly(0, 4);
        let paths = at.paths().clone();
        let mut seen = vec![0u32; paths.len() as usize];
        for tag in 0..10_000 {
            let mut header = SwitchHeader::default();
            s.guide(Time::ZERO, &data(9, tag), &mut header, &mut at);
            let ev = Course::of(&header).ev().unwrap();
            seen[(0..paths.len()).find(|&i| paths.ev(i) == ev).unwrap() as usize] += 1;
        }
        // Two paths: 5,000 each, standard deviation 50; 3.3 of them are passed with probability 0.001.
        assert_eq!(seen.len(), 2);
        assert!(seen.iter().all(|&n| n.abs_diff(5000) < 165), "{seen:?}");
        let once = |s: &mut SourceGuided, at: &mut Little| {
            let mut header = SwitchHeader::default();
            s.guide(Time::ZERO, &data(9, 77), &mut header, at);
            header
        };
        assert_eq!(once(&mut s, &mut at), once(&mut s, &mut at));
    }

    #[test]
    fn weights_are_those_of_equation_1_times_the_scale() {
        // 799.6 and 1491.0 ns: 1.8647 times 3 against 1: 84.8 % of the packets take the short path.
        let path = |ev, ns: f64| crate::GuidedPath {
            ev,
            kind: 0,
            minimal: false,
            latency: Time::from_ps((ns * 1000.0) as u64),
            propagation: Time::ZERO,
            hops: 2,
        };
        let paths = crate::GuidedPaths::new([path(1, 799.6), path(2, 1491.0)]);
        let share = |weights: Weights| {
            (0..100_000).filter(|i| weights.pick(&paths, f64::from(*i) / 1e5) == 0).count() as f64 / 1e5
        };
        let ratio = 1491.0 / 799.6;
        assert!((ratio - 1.8647f64).abs() < 1e-4);
        assert!((share(Weights::Latency) - 3.0 * ratio / (3.0 * ratio + 1.0)).abs() < 2e-5);
        assert!((share(Weights::Uniform) - 0.5).abs() < 2e-5);
    }
}
