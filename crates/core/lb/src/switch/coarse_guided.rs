//! Coarse-grained path control (Spritz §III-D). A pair without a path of the category uses the default table.

use crate::{
    Category, GuidedSwitch, GuidedTopology, PacketView, SwitchHeader, SwitchInfo, SwitchScheme,
    hash::{ecmp_hash, reduce},
    registry::{PacketScope, SchemeCapabilities, TagKind},
    state::state,
    switch::course::Course,
};
use anabranch_random::key;
use anabranch_settings::{About, choices, parameters};
use anabranch_units::Time;
use smallvec::SmallVec;

pub(crate) const ABOUT: About = About {
    name: "coarse-guided",
    summary: "the first two switches hash within a table that the host's VLAN tag selects",
    source: "Spritz §III-D",
    description: "The tag is a category of paths: minimal, non-minimal, or a type of Spritz' Table I. Each of the first two \
        switches takes the ECMP table of that category and hashes flow and entropy within it; then the tag is cleared, and \
        default tables apply. Needs no list of paths at the endpoints.",
};

state! {}

choices! {
    /// Switches that choose within a category.
    pub enum ChosenBy {
        /// The first two, each among its own next hops: "the switch first activates ECMP table based on the VLAN tag and
        /// then selects a specific path within that table using standard ECMP hashing" (§III-D).
        EachSwitch = "each-switch",
        /// The first, among whole paths, which the second follows: no switch's tables hold them (ours).
        FirstSwitch = "first-switch",
    }
}

parameters! {
    pub struct CoarseGuidedParameters {
        /// Switches that choose within a category.
        chosen_by: ChosenBy = ChosenBy::EachSwitch, source "Spritz §III-D; first-switch: ours", Expert;
    }
}

impl SchemeCapabilities for CoarseGuidedParameters {
    fn tags(&self) -> TagKind {
        TagKind::Category
    }

    fn packet_scope(&self) -> PacketScope {
        PacketScope::Guided
    }
}

#[derive(Debug)]
pub struct CoarseGuided {
    seed: u64,
    chosen_by: ChosenBy,
}

/// Ports of a table.
type Ports = SmallVec<[u32; 16]>;

impl CoarseGuided {
    pub fn new(parameters: CoarseGuidedParameters, seed: u64, switch: &SwitchInfo) -> Self {
        CoarseGuided { seed: key(seed, switch.key, "coarse-guided"), chosen_by: parameters.chosen_by }
    }

    fn hashed(&self, packet: &PacketView, ports: &Ports) -> Option<u32> {
        ports.get(reduce(ecmp_hash(self.seed, packet), ports.len() as u32) as usize).copied()
    }

    /// Writes the entropy value of one of the category's paths, by a hash.
    fn choose_path<G: GuidedSwitch>(&self, packet: &PacketView, category: Category, course: &mut Course, at: &mut G) {
        let paths = at.paths();
        let mut of_category = (0..paths.len()).filter(|&index| paths.belongs(index, category));
        let count = of_category.clone().count() as u32;
        if count > 0 {
            let chosen = reduce(ecmp_hash(self.seed, packet), count);
            if let Some(index) = of_category.nth(chosen as usize) {
                course.set_ev(paths.ev(index));
            }
        }
    }
}

/// Table of the first switch: ports at which a path of the category begins.
fn first_ports<G: GuidedSwitch>(category: Category, at: &mut G) -> Ports {
    let paths = at.paths();
    let mut values: SmallVec<[u16; 16]> = (0..paths.len())
        .filter(|&index| paths.belongs(index, category))
        .map(|index| paths.ev(index) & 0xff00)
        .collect();
    values.sort_unstable();
    values.dedup();
    values.iter().map(|&ev| at.named(0, false, ev)).collect()
}

/// Table of the second switch: ports that continue a path of the category, by the class of the link that it came over.
fn second_ports<G: GuidedSwitch>(category: Category, over_local: bool, source: u32, at: &G) -> Ports {
    let (here, to, dragonfly) = (at.here(), at.destination(), at.topology() == GuidedTopology::Dragonfly);
    let default = at.minimal(here);
    let continues = |port: &u32| {
        let peer = at.peer(here, *port);
        match category {
            Category::Default | Category::Minimal => *port == default,
            Category::NonMinimal if dragonfly => at.group(peer) != at.group(to),
            Category::NonMinimal => *port != default,
            Category::Kind(kind) => {
                let (mut switch, mut next, mut links) = (here, *port, [u8::from(over_local), u8::from(!over_local)]);
                loop {
                    links[usize::from(!at.is_local(switch, next))] += 1;
                    switch = at.peer(switch, next);
                    if switch == to || links[0] + links[1] > 8 {
                        break at.path_type(links[0], links[1]) == Some(kind);
                    }
                    next = at.minimal(switch);
                }
            }
        }
    };
    let misroutes = |port: &u32| !(dragonfly && at.is_local(here, *port)) && at.peer(here, *port) != source;
    (0..at.ports(here)).filter(misroutes).filter(|port| at.is_live(*port)).filter(continues).collect()
}

impl SwitchScheme for CoarseGuided {
    #[inline]
    fn guide<G: GuidedSwitch>(&mut self, _: Time, packet: &PacketView, header: &mut SwitchHeader, at: &mut G) -> u32 {
        let mut course = Course::of(header);
        let category = Category::of(packet.tag as u8);
        let chosen = match (self.chosen_by, course.hop()) {
            (ChosenBy::FirstSwitch, hop) => {
                if hop == 0 {
                    self.choose_path(packet, category, &mut course, at);
                }
                Some(course.port(at))
            }
            (ChosenBy::EachSwitch, 0) => self.hashed(packet, &first_ports(category, at)),
            // In a Dragonfly the intermediate group has been reached, or there is none within a group.
            (ChosenBy::EachSwitch, 1)
                if at.topology() == GuidedTopology::SlimFly
                    || course.over_local() && at.group(at.here()) != at.group(at.destination()) =>
            {
                self.hashed(packet, &second_ports(category, course.over_local(), packet.src_leaf, at))
            }
            (ChosenBy::EachSwitch, _) => None,
        };
        let port = chosen.unwrap_or_else(|| at.minimal(at.here()));
        course.leave(at, port, header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, Little, data};

    #[test]
    fn categories_hold_their_paths_only() {
        let mut s = CoarseGuided::new(CoarseGuidedParameters { chosen_by: ChosenBy::FirstSwitch }, 1, &LEAF);
        let mut at = Little::dragonfly(0, 4);
        let paths = at.paths().clone();
        for category in [Category::Minimal, Category::NonMinimal] {
            for entropy in 0..100u32 {
                let mut header = SwitchHeader::default();
                s.guide(Time::ZERO, &data(3, entropy << 8 | u32::from(category.code())), &mut header, &mut at);
                let ev = Course::of(&header).ev().unwrap();
                let index = (0..paths.len()).find(|&i| paths.ev(i) == ev).unwrap();
                assert!(paths.belongs(index, category));
            }
        }
        for category in [Category::Kind(77), Category::Default] {
            let mut header = SwitchHeader::default();
            let port = s.guide(Time::ZERO, &data(3, u32::from(category.code())), &mut header, &mut at);
            assert_eq!((port, Course::of(&header).ev()), (at.minimal(0), None));
        }
    }

    #[test]
    fn each_of_two_switches_hashes_within_its_table() {
        // Switch 0 to switch 4 of the Dragonfly (1, 2, 1). Of the two paths of the list, 0x0001 (minimal) begins at port 0, to
        // switch 1 of the group, and 0x0100 at port 1, the global link to switch 3.
        let mut s = CoarseGuided::new(CoarseGuidedParameters::default(), 1, &LEAF);
        let mut ports_of = |here: u32, hop: u32, category: Category| {
            let mut seen: Vec<u32> = (0..100u32)
                .map(|entropy| {
                    let mut header = SwitchHeader::default();
                    // Hop 1 over a local link is 0x101 in the word of the course.
                    header.0[4] = hop * 0x101;
                    let packet = data(3, entropy << 8 | u32::from(category.code()));
                    s.guide(Time::ZERO, &packet, &mut header, &mut Little::dragonfly(here, 4))
                })
                .collect();
            seen.sort();
            seen.dedup();
            seen
        };
        assert_eq!(ports_of(0, 0, Category::Minimal), [0]);
        assert_eq!(ports_of(0, 0, Category::NonMinimal), [1]);
        assert_eq!(ports_of(0, 0, Category::Default), [Little::dragonfly(0, 4).minimal(0)]);
        // At switch 1, whose global link 1-4 leads to the destination's group, the minimal path goes on at port 1. A
        // non-minimal one would need a global link elsewhere: there is none, so the default table has it.
        assert_eq!(ports_of(1, 1, Category::Minimal), [1]);
        assert_eq!(ports_of(1, 1, Category::NonMinimal), [1]);
        // At switch 0 after a local link, towards switch 4: port 1 leads to switch 3 in a third group.
        assert_eq!(ports_of(0, 1, Category::NonMinimal), [1]);
        assert_eq!(ports_of(0, 1, Category::Minimal), [Little::dragonfly(0, 4).minimal(0)]);
        // By type: local, then global 1-4 to the destination: (1, 1), coded 0x11 in this test.
        assert_eq!(second_ports(Category::Kind(0x11), true, 0, &Little::dragonfly(1, 4)).to_vec(), [1]);
        assert!(second_ports(Category::Kind(0x12), true, 0, &Little::dragonfly(1, 4)).is_empty());
        // From switch 0 after a local link: global to 3, local to 2, global to 5, local to 4: (3, 2).
        assert_eq!(second_ports(Category::Kind(0x32), true, 1, &Little::dragonfly(0, 4)).to_vec(), [1]);
    }

    #[test]
    fn codes_are_one_to_one() {
        for code in 0..=u8::MAX {
            assert_eq!(Category::of(code).code(), code);
        }
    }
}
