//! OPS, oblivious packet spraying (specification 3.4): every packet carries a fresh entropy value for hashing switches.

use super::Slots;
use crate::{
    Decision, FlowInfo, HostScheme, Outgoing, Tag,
    hash::EntropySpace,
    registry::{Invalid, SchemeCapabilities},
    state::state,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, choices, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "ops",
    summary: "a fresh entropy value for every packet, blind to congestion",
    source: "specification 3.4; Dixit et al., INFOCOM 2013; Ultra Ethernet",
    description: "Every packet takes a random path: the host writes a random entropy value and the switches hash it. \
        Mode `round-robin-masked` runs through all values in an order that changes at every wrap.",
};

state! {}

choices! {
    /// Selection of the next entropy value.
    pub enum OpsMode {
        /// Uniformly at random.
        Random = "random",
        /// A counter XOR a mask that is redrawn when the counter wraps.
        RoundRobinMasked = "round-robin-masked",
    }
}

parameters! {
    pub struct OpsParameters {
        /// Number of entropy values; round-robin-masked rounds it up to a power of two.
        entropy_values: u32 = 65536, source "ours: the 16 bits of a UDP source port", Expert;
        /// Selection of the next entropy value.
        mode: OpsMode = OpsMode::Random, source "specification 3.4", Expert;
    }
}

impl SchemeCapabilities for OpsParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.entropy_values > 0, "entropy_values", self.entropy_values, "at least 1")
    }
}

#[derive(Debug)]
struct Flow {
    stream: Stream,
    counter: u32,
    mask: Tag,
}

#[derive(Debug)]
pub struct Ops {
    host_key: u64,
    space: EntropySpace,
    masked: bool,
    flows: Slots<Flow>,
}

impl Ops {
    pub fn new(parameters: OpsParameters, seed: u64, host_key: u64) -> Self {
        let masked = parameters.mode == OpsMode::RoundRobinMasked;
        let mut space = EntropySpace::new(parameters.entropy_values);
        if masked {
            space = EntropySpace::new(space.power_of_two());
        }
        Ops { host_key: key(seed, host_key, "ops"), space, masked, flows: Slots::new() }
    }
}

impl HostScheme for Ops {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let stream = Stream::keyed(self.host_key, flow.key, "ops");
        self.flows.put(slot, Flow { stream, counter: 0, mask: 0 });
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }
    #[inline]
    fn select(&mut self, _now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        if !self.masked {
            return Decision::Send(self.space.draw(&mut flow.stream));
        }
        if flow.counter == 0 {
            flow.mask = self.space.draw(&mut flow.stream);
        }
        let tag = flow.counter ^ flow.mask;
        flow.counter = self.space.after(flow.counter);
        Decision::Send(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{flow, send};

    fn ops(entropy_values: u32, mode: OpsMode) -> Ops {
        let mut scheme = Ops::new(OpsParameters { entropy_values, mode }, 1, 2);
        scheme.open(Time::ZERO, 0, &flow(&[8]));
        scheme
    }

    #[test]
    fn random_values_are_uniform() {
        // 10 cells, 9 degrees of freedom: 27.88 is exceeded with probability 0.001.
        let mut s = ops(10, OpsMode::Random);
        let mut cells = [0u32; 10];
        for _ in 0..10_000 {
            cells[send(&mut s) as usize] += 1;
        }
        let chi: f64 = cells.iter().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 27.88, "{cells:?}");
    }

    #[test]
    fn a_worked_trace_of_the_mask() {
        // The first value of a cycle is the mask m; the following are m^1, m^2, ... m^7. 5 values round up to 8.
        let mut s = ops(5, OpsMode::RoundRobinMasked);
        let mut masks = Vec::new();
        for _ in 0..20 {
            let cycle: Vec<Tag> = (0..8).map(|_| send(&mut s)).collect();
            assert!(cycle.iter().enumerate().all(|(i, &tag)| tag == cycle[0] ^ i as u32 && tag < 8));
            masks.push(cycle[0]);
        }
        masks.dedup();
        assert!(masks.len() > 1, "the mask changes");
    }
}
