//! Round robin over entropy values (specification 3.4 without the mask): no value repeats before all have been used.

use super::Slots;
use crate::{
    Decision, FlowInfo, HostScheme, Outgoing, Tag,
    hash::EntropySpace,
    registry::{Invalid, SchemeCapabilities},
    state::state,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "rr",
    summary: "entropy values in turn, from a random start",
    source: "ours; specification 3.4 without the mask",
    description: "Every packet carries the next entropy value of a counter that starts at random for each flow. \
        The switches hash the values, so with few values some paths get several and others none.",
};

state! {}

parameters! {
    pub struct RoundRobinParameters {
        /// Number of entropy values.
        entropy_values: u32 = 65536, source "ours: the 16 bits of a UDP source port", Expert;
    }
}

impl SchemeCapabilities for RoundRobinParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.entropy_values > 0, "entropy_values", self.entropy_values, "at least 1")
    }
}

#[derive(Debug)]
pub struct RoundRobin {
    host_key: u64,
    space: EntropySpace,
    flows: Slots<Tag>,
}

impl RoundRobin {
    pub fn new(parameters: RoundRobinParameters, seed: u64, host_key: u64) -> Self {
        let space = EntropySpace::new(parameters.entropy_values);
        RoundRobin { host_key: key(seed, host_key, "rr"), space, flows: Slots::new() }
    }
}

impl HostScheme for RoundRobin {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let start = self.space.draw(&mut Stream::keyed(self.host_key, flow.key, "rr"));
        self.flows.put(slot, start);
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }
    #[inline]
    fn select(&mut self, _now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        let Some(next) = self.flows.get(slot) else { return Decision::Send(0) };
        let tag = *next;
        *next = self.space.after(tag);
        Decision::Send(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{flow, send};

    #[test]
    fn a_worked_trace() {
        // From start s over 5 values: s, s+1, ... mod 5.
        let mut s = RoundRobin::new(RoundRobinParameters { entropy_values: 5 }, 1, 2);
        s.open(Time::ZERO, 0, &flow(&[8]));
        let start = send(&mut s);
        for i in 1..13 {
            assert_eq!(send(&mut s), (start + i) % 5);
        }
    }
}
