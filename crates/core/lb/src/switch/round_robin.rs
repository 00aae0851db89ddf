//! Round robin in the switch, from a random start. Control packets take plain hash ECMP.

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
    name: "rr",
    summary: "the next hops in turn, packet by packet",
    source: "ours; round robin of Dixit et al., INFOCOM 2013",
    description: "Each set of next hops has a counter, and every data packet takes the next one in turn.",
};

state! {}

parameters! {
    pub struct RoundRobinParameters {}
}

impl SchemeCapabilities for RoundRobinParameters {}

#[derive(Debug)]
pub struct RoundRobin {
    hasher: Hasher,
    stream: Stream,
    widest: u64,
    /// Next candidate per set.
    next: Vec<u32>,
}

impl RoundRobin {
    pub fn new(_parameters: RoundRobinParameters, seed: u64, switch: &SwitchInfo) -> Self {
        let stream = Stream::keyed(seed, switch.key, "rr");
        let widest = u64::from(switch.widest.max(1));
        let mut scheme = RoundRobin { hasher: Hasher::of(seed, switch), stream, widest, next: Vec::new() };
        scheme.on_routes_changed(switch.groups);
        scheme
    }
}

impl SwitchScheme for RoundRobin {
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
        let Some(next) = self.next.get_mut(candidates.group as usize) else { return 0 };
        let index = if *next < candidates.count { *next } else { 0 };
        *next = index + 1;
        index
    }

    fn on_routes_changed(&mut self, groups: u32) {
        self.next.clear();
        self.next.extend((0..groups).map(|_| self.stream.below(self.widest) as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, POSITIONS, Queues, ack, among, choose, data};

    #[test]
    fn a_worked_trace() {
        // From start s: s, s+1, ... mod 8 in set 0; control packets and set 1 do not take a turn of it.
        let mut s = RoundRobin::new(RoundRobinParameters {}, 1, &LEAF);
        let mut q = Queues::new(&[0; 8]);
        let start = choose(&mut s, &data(1, 0), &POSITIONS, &mut q);
        for i in 1..20 {
            choose(&mut s, &ack(i, 0), &POSITIONS, &mut q);
            s.forward(Time::ZERO, &data(i, 0), &mut SwitchHeader::default(), &among(&POSITIONS, 1), &mut q);
            assert_eq!(u64::from(choose(&mut s, &data(i, 0), &POSITIONS, &mut q)), (u64::from(start) + i) % 8);
        }
    }
}
