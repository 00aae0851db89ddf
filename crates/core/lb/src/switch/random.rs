//! Random packet spraying by the switch (Dixit et al., INFOCOM 2013). Control packets take plain hash ECMP.

use crate::{
    Candidates, LocalQueues, PacketView, SwitchHeader, SwitchInfo, SwitchScheme,
    hash::{self, Hasher},
    registry::SchemeCapabilities,
    state::state,
};
use anabranch_random::Stream;
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "random",
    summary: "a uniformly random next hop for every packet",
    source: "Dixit et al., INFOCOM 2013; specification 3.4",
    description: "Every data packet takes a next hop drawn uniformly at random by the switch itself; hosts need not \
        vary their tags.",
};

state! {}

parameters! {
    pub struct RandomParameters {}
}

impl SchemeCapabilities for RandomParameters {}

#[derive(Debug)]
pub struct Random {
    hasher: Hasher,
    stream: Stream,
}

impl Random {
    pub fn new(_parameters: RandomParameters, seed: u64, switch: &SwitchInfo) -> Self {
        Random { hasher: Hasher::of(seed, switch), stream: Stream::keyed(seed, switch.key, "random") }
    }
}

impl SwitchScheme for Random {
    #[inline]
    fn forward<Q: LocalQueues>(
        &mut self,
        _: Time,
        packet: &PacketView,
        _: &mut SwitchHeader,
        candidates: &Candidates<'_>,
        _: &mut Q,
    ) -> u32 {
        if packet.control {
            return hash::ecmp(&self.hasher, packet, candidates.count);
        }
        self.stream.below(u64::from(candidates.count)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, POSITIONS, Queues, ack, choose, data};

    #[test]
    fn a_worked_trace() {
        // One flow, one tag: 8000 packets over 8 next hops, 7 degrees of freedom, 24.3 is exceeded with probability
        // 0.001. The same ACK always takes the same next hop.
        let mut s = Random::new(RandomParameters {}, 1, &LEAF);
        let mut q = Queues::new(&[0; 8]);
        let way = choose(&mut s, &ack(1, 0), &POSITIONS, &mut q);
        let mut cells = [0u32; 8];
        for _ in 0..8000 {
            cells[choose(&mut s, &data(1, 0), &POSITIONS, &mut q) as usize] += 1;
            assert_eq!(choose(&mut s, &ack(1, 0), &POSITIONS, &mut q), way);
        }
        let chi: f64 = cells.iter().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 24.3, "{cells:?}");
    }
}
