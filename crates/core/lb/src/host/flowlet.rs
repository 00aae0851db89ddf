//! Host flowlets (specification 3.3): after a pause of `gap` the earlier packets have arrived, so none is overtaken.

use super::{Slots, first_tag, times};
use crate::{
    Decision, FlowInfo, HostScheme, Outgoing, State, Tag,
    hash::EntropySpace,
    registry::{Invalid, SchemeCapabilities},
    state::{ps, state},
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "flowlet",
    summary: "a new random path after every pause of the sender",
    source: "specification 3.3",
    description: "A flow keeps its entropy value until it pauses for longer than `gap` base round trips; the next \
        packet draws a new one at random.",
};

state! {
    /// Pause after which the next packet draws a path.
    gap_ps: "ps";
    /// Time of the last packet.
    last_ps: "ps";
}

parameters! {
    pub struct FlowletParameters {
        /// Pause after which a flow may change its path, in base round trips.
        gap: f64 = 0.5, source "REPS artifact (specification 3.3)", Expert;
        /// Number of entropy values.
        entropy_values: u32 = 65536, source "ours: the 16 bits of a UDP source port", Expert;
    }
}

impl SchemeCapabilities for FlowletParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.gap >= 0.0, "gap", self.gap, "at least 0")?;
        Invalid::unless(self.entropy_values > 0, "entropy_values", self.entropy_values, "at least 1")
    }

    fn keeps_path(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct Flow {
    stream: Stream,
    gap: Time,
    last: Time,
    tag: Tag,
}

#[derive(Debug)]
pub struct Flowlet {
    parameters: FlowletParameters,
    host_key: u64,
    space: EntropySpace,
    flows: Slots<Flow>,
}

impl Flowlet {
    pub fn new(parameters: FlowletParameters, seed: u64, host_key: u64) -> Self {
        let space = EntropySpace::new(parameters.entropy_values);
        Flowlet { parameters, host_key: key(seed, host_key, "flowlet"), space, flows: Slots::new() }
    }
}

impl HostScheme for Flowlet {
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let (tag, stream) = first_tag(self.space, self.host_key, flow, "flowlet");
        self.flows.put(slot, Flow { stream, gap: times(flow.base_rtt, self.parameters.gap), last: now, tag });
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }
    #[inline]
    fn select(&mut self, now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        if now.saturating_sub(flow.last) > flow.gap {
            flow.tag = self.space.draw(&mut flow.stream);
        }
        flow.last = now;
        Decision::Send(flow.tag)
    }

    fn state(&self, _now: Time, slot: u32, _tag: Option<Tag>) -> State {
        let columns = |flow: &Flow| Columns { gap_ps: ps(flow.gap), last_ps: ps(flow.last) }.into();
        self.flows.peek(slot).map_or_else(State::default, columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{flow, send_at};

    #[test]
    fn a_worked_trace() {
        // Base RTT 10 us, gap 0.5: a pause of 5 us is not enough, one of 5 us + 1 ps is.
        let mut s = Flowlet::new(FlowletParameters::default(), 1, 2);
        s.open(Time::ZERO, 0, &flow(&[8]));
        let first = send_at(&mut s, Time::ZERO);
        assert_eq!(send_at(&mut s, Time::from_us(5)), first);
        assert_eq!(send_at(&mut s, Time::from_us(10)), first);
        let second = send_at(&mut s, Time::from_us(15) + Time::from_ps(1));
        assert_ne!(second, first);
        assert_eq!(send_at(&mut s, Time::from_us(16)), second);
    }
}
