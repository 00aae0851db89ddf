//! Minimal routing on a Dragonfly or a Slim Fly by default tables (Spritz §II-A, specification 8.6).
//!
//! The route leads over the gateway of the destination's group, or over the direct link or the common neighbour of the
//! smallest number.

use crate::{
    GuidedSwitch, PacketView, SwitchHeader, SwitchInfo, SwitchScheme,
    registry::{PacketScope, SchemeCapabilities},
    state::state,
};
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "minimal",
    summary: "static minimal routing on a Dragonfly or a Slim Fly",
    source: "Spritz §II-A, §V-A; specification 8.6",
    description: "Every packet takes the one default path of its pair of switches. Best where traffic is uniform; one \
        global link carries all traffic between two groups of a Dragonfly.",
};

state! {}

parameters! {
    pub struct MinimalParameters {}
}

impl SchemeCapabilities for MinimalParameters {
    fn packet_scope(&self) -> PacketScope {
        PacketScope::Guided
    }
}

#[derive(Debug)]
pub struct Minimal;

impl Minimal {
    pub fn new(_: MinimalParameters, _: u64, _: &SwitchInfo) -> Self {
        Minimal
    }
}

impl SwitchScheme for Minimal {
    #[inline]
    fn guide<G: GuidedSwitch>(&mut self, _: Time, _: &PacketView, _: &mut SwitchHeader, at: &mut G) -> u32 {
        at.minimal(at.here())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, Little, data};

    #[test]
    fn default_port_is_taken_regardless_of_queues() {
        let mut s = Minimal::new(MinimalParameters {}, 1, &LEAF);
        let mut at = Little::dragonfly(0, 5);
        let wanted = at.minimal(0);
        at.queues[wanted as usize] = 1 << 30;
        assert_eq!(s.guide(Time::ZERO, &data(1, 0), &mut SwitchHeader::default(), &mut at), wanted);
    }
}
