//! Flow-level ECMP on the host (specification 3.5): the tag is a keyed hash of the flow's connection.

use super::{OnTimeout, Slots};
use crate::{Decision, FlowInfo, HostScheme, Outgoing, Tag, registry::SchemeCapabilities, state::state};
use anabranch_random::key;
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "ecmp",
    summary: "one path per flow, by hash",
    source: "specification 3.5",
    description: "All packets of a flow carry the same tag, a hash of its connection, and so take one path. Flows \
        that happen to share a link share it to their end.",
};

state! {}

parameters! {
    pub struct EcmpParameters {
        /// Effect of a retransmission timeout on the flow's path.
        on_timeout: OnTimeout = OnTimeout::Ignore, source "RFC 2992: a flow's hash is fixed; move: ours, as Linux' rehash of the flow label", Expert;
    }
}

impl SchemeCapabilities for EcmpParameters {
    fn leaves_choice_to_switches(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub struct Ecmp {
    parameters: EcmpParameters,
    host_key: u64,
    flows: Slots<Tag>,
}

impl Ecmp {
    pub fn new(parameters: EcmpParameters, seed: u64, host_key: u64) -> Self {
        Ecmp { parameters, host_key: key(seed, host_key, "ecmp"), flows: Slots::new() }
    }
}

impl HostScheme for Ecmp {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        self.flows.put(slot, (key(self.host_key, flow.connection, "tag") >> 32) as Tag);
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }
    #[inline]
    fn select(&mut self, _now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        Decision::Send(self.flows.get(slot).map_or(0, |tag| *tag))
    }
    fn on_timeout(&mut self, _now: Time, slot: u32, _tag: Tag) {
        if let Some(tag) = self.flows.get(slot).filter(|_| self.parameters.on_timeout == OnTimeout::Move) {
            // A hash of the last tag; it does not recur within any run.
            *tag = (key(self.host_key, u64::from(*tag), "timeout") >> 32) as Tag;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{flow, mark, send};

    #[test]
    fn a_worked_trace() {
        let mut s = Ecmp::new(EcmpParameters::default(), 1, 2);
        s.open(Time::ZERO, 0, &flow(&[8]));
        let tag = send(&mut s);
        mark(&mut s, tag);
        s.on_timeout(Time::ZERO, 0, tag);
        assert_eq!(send(&mut s), tag);
        s.open(Time::ZERO, 0, &FlowInfo { key: 43, ..flow(&[8]) });
        assert_eq!(send(&mut s), tag, "another message of the connection");
        s.open(Time::ZERO, 0, &FlowInfo { connection: 43, ..flow(&[8]) });
        assert_ne!(send(&mut s), tag);
        let mut other = Ecmp::new(EcmpParameters::default(), 1, 3);
        other.open(Time::ZERO, 0, &flow(&[8]));
        assert_ne!(send(&mut other), tag);
        let mut moving = Ecmp::new(EcmpParameters { on_timeout: OnTimeout::Move }, 1, 3);
        moving.open(Time::ZERO, 0, &flow(&[8]));
        let tags = [0, 1, 2].map(|_| {
            moving.on_timeout(Time::ZERO, 0, 0);
            send(&mut moving)
        });
        assert!(!tags.contains(&send(&mut other)) && tags[0] != tags[1] && tags[1] != tags[2]);
    }
}
