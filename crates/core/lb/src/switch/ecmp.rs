//! ECMP in the switch (specification 3.5): a hash keyed by the switch selects the next hop, without queues or state.

use crate::{
    Candidates, LocalQueues, PacketView, SwitchHeader, SwitchInfo, SwitchScheme, Tag,
    hash::{self, Hasher},
    registry::SchemeCapabilities,
    state::state,
};
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "ecmp",
    summary: "hash of flow and tag, with a seed per switch",
    source: "specification 3.5",
    description: "The next hop is a hash of source, destination, flow and path tag, keyed by the switch. Hosts steer \
        it by the entropy value they write into the tag.",
};

state! {}

parameters! {
    pub struct EcmpParameters {}
}

impl SchemeCapabilities for EcmpParameters {
    /// Source-guided switches hash to all paths and not to the shortest alone (Spritz §V-A).
    fn guided_form(&self) -> Option<&'static str> {
        Some(super::source_guided::ABOUT.name)
    }
}

#[derive(Debug)]
pub struct Ecmp {
    hasher: Hasher,
}

impl Ecmp {
    pub fn new(_parameters: EcmpParameters, seed: u64, switch: &SwitchInfo) -> Self {
        Ecmp { hasher: Hasher::of(seed, switch) }
    }
}

impl SwitchScheme for Ecmp {
    #[inline]
    fn by_labels(&self, _: Tag, packet: impl FnOnce() -> PacketView, count: u32, _: u32) -> Option<u32> {
        Some(hash::ecmp(&self.hasher, &packet(), count))
    }

    #[inline]
    fn forward<Q: LocalQueues>(
        &mut self,
        _: Time,
        packet: &PacketView,
        _: &mut SwitchHeader,
        candidates: &Candidates<'_>,
        _: &mut Q,
    ) -> u32 {
        hash::ecmp(&self.hasher, packet, candidates.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, POSITIONS, Queues, ack, choose, data};

    #[test]
    fn a_worked_trace() {
        // A packet always takes the same next hop; 64 tags of one flow reach all 8 uplinks (missing one has
        // probability 8 * (7/8)^64 = 0.0016); no queue is read.
        let mut s = Ecmp::new(EcmpParameters {}, 1, &LEAF);
        let mut q = Queues::new(&[0; 8]);
        let mut seen = [false; 8];
        for tag in 0..64 {
            let index = choose(&mut s, &data(9, tag), &POSITIONS, &mut q);
            assert_eq!(index, choose(&mut s, &data(9, tag), &POSITIONS, &mut q));
            assert_eq!(index, choose(&mut s, &ack(9, tag), &POSITIONS, &mut q));
            seen[index as usize] = true;
        }
        assert_eq!((seen, q.reads), ([true; 8], vec![0; 8]));
    }
}
