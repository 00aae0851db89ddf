//! Coarse-grained path control (Spritz §III-D). A pair without a path of the category uses the default table.

use crate::{
    Category, GuidedSwitch, PacketView, SwitchHeader, SwitchInfo, SwitchScheme,
    hash::{ecmp_hash, reduce},
    registry::{PacketScope, SchemeCapabilities, TagKind},
    switch::course::Course,
};
use anabranch_random::key;
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

/// Registry entry.
pub const ABOUT: About = About {
    name: "coarse-guided",
    summary: "the first switch picks a path of the category that the host's VLAN tag names",
    source: "Spritz §III-D",
    description: "The tag is a category of paths: minimal, non-minimal, or a type of Spritz' Table I. The first switch \
        hashes flow and entropy to one path of that category, the second follows, the tag is cleared, and default tables \
        apply from there. Needs no list of paths at the endpoints.",
};

parameters! {
    /// Coarse-grained path control has no parameters.
    pub struct CoarseGuidedParameters {}
}

impl SchemeCapabilities for CoarseGuidedParameters {
    fn tags(&self) -> TagKind {
        TagKind::Category
    }

    fn packet_scope(&self) -> PacketScope {
        PacketScope::Guided
    }
}

/// Coarse-grained path control at one switch.
#[derive(Debug)]
pub struct CoarseGuided {
    seed: u64,
}

impl CoarseGuided {
    /// Creates the scheme of this switch.
    pub fn new(_: CoarseGuidedParameters, seed: u64, switch: &SwitchInfo) -> Self {
        CoarseGuided { seed: key(seed, switch.key, "coarse-guided") }
    }
}

impl SwitchScheme for CoarseGuided {
    #[inline]
    fn guide<G: GuidedSwitch>(&mut self, _: Time, packet: &PacketView, header: &mut SwitchHeader, at: &mut G) -> u32 {
        let mut course = Course::of(header);
        if course.hop() == 0 {
            let category = Category::of(packet.tag as u8);
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
        let port = course.port(at);
        course.leave(at, port, header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, Little, data};

    #[test]
    fn categories_hold_their_paths_only() {
        let mut s = CoarseGuided::new(CoarseGuidedParameters {}, 1, &LEAF);
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
    fn codes_are_one_to_one() {
        for code in 0..=u8::MAX {
            assert_eq!(Category::of(code).code(), code);
        }
    }
}
