//! The mixed scheme of Ultra Ethernet's reference model (specification 6.3): clean entropy values are reused, oldest
//! first; while none is queued, [`super::bitmap`] selects.

use super::{
    Slots,
    bitmap::{BitmapParameters, Penalties},
    recycle::Recycle,
};
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, State, Tag,
    registry::{Invalid, SchemeCapabilities},
    state::state,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, parameters};
use anabranch_units::{PacketsOrBdp, Time};

pub(crate) const ABOUT: About = About {
    name: "mixed",
    summary: "recycles entropy values that came back clean, else picks by bitmap",
    source: "specification 6.3; Ultra Ethernet reference model",
    description: "Entropy values of clean ACKs are queued and used again, oldest first; while none is queued, the \
        bitmap scheme picks the next one.",
};

state! {
    /// Entropy values that came back unmarked and wait to be used.
    recycled_values: "values";
    /// Penalty count of the path chosen or reported on.
    penalty: "";
    /// Paths with a penalty.
    penalised_paths: "paths";
}

parameters! {
    /// Mixed: recycled entropy values, else the bitmap.
    pub struct MixedParameters {
        /// Number of paths of the bitmap, a power of two.
        paths: u32 = 64, source "ours", Expert;
        /// Penalty of an ECN mark, up to 15.
        ecn: u32 = 1, source "Ultra Ethernet reference model (specification 6.2)", Expert;
        /// Penalty of a NACK, up to 15.
        nack: u32 = 4, source "Ultra Ethernet reference model (specification 6.2)", Expert;
        /// Penalty of a timeout, up to 15.
        timeout: u32 = 15, source "Ultra Ethernet reference model (specification 6.2)", Expert;
        /// Capacity of the queue of entropy values, in packets (rounded up to a power of two).
        queue: PacketsOrBdp = PacketsOrBdp::Bdp(2_000_000), source "ours: more than a window", Expert;
    }
}

impl MixedParameters {
    fn bitmap(&self) -> BitmapParameters {
        BitmapParameters { paths: self.paths, ecn: self.ecn, nack: self.nack, timeout: self.timeout }
    }
}

impl SchemeCapabilities for MixedParameters {
    fn check(&self) -> Result<(), Invalid> {
        self.bitmap().check()
    }
}

#[derive(Debug)]
struct Flow {
    good: Recycle,
    penalties: Penalties,
}

#[derive(Debug)]
pub struct Mixed {
    parameters: MixedParameters,
    host_key: u64,
    flows: Slots<Flow>,
}

impl Mixed {
    pub fn new(parameters: MixedParameters, seed: u64, host_key: u64) -> Self {
        Mixed { parameters, host_key: key(seed, host_key, "mixed"), flows: Slots::new() }
    }

    fn penalise(&mut self, slot: u32, tag: Tag, by: u32) {
        if let Some(flow) = self.flows.get(slot) {
            flow.penalties.penalise(tag, by);
        }
    }
}

impl HostScheme for Mixed {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let stream = Stream::keyed(self.host_key, flow.key, "bitmap");
        let good = Recycle::new(self.parameters.queue.packets(flow.bdp_packets));
        self.flows.put(slot, Flow { good, penalties: Penalties::new(self.parameters.paths, stream) });
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }
    #[inline]
    fn select(&mut self, _now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        Decision::Send(flow.good.pop().unwrap_or_else(|| flow.penalties.select()))
    }
    #[inline]
    fn on_ack(&mut self, _now: Time, slot: u32, feedback: &Feedback) {
        let Some(flow) = self.flows.get(slot) else { return };
        if feedback.ecn {
            flow.penalties.penalise(feedback.tag, self.parameters.ecn);
        } else {
            flow.good.push(feedback.tag);
        }
    }
    fn on_nack(&mut self, _now: Time, slot: u32, tag: Tag) {
        self.penalise(slot, tag, self.parameters.nack);
    }
    fn on_timeout(&mut self, _now: Time, slot: u32, tag: Tag) {
        self.penalise(slot, tag, self.parameters.timeout);
    }

    fn state(&self, _now: Time, slot: u32, tag: Option<Tag>) -> State {
        let Some(flow) = self.flows.peek(slot) else { return State::default() };
        let (penalty, penalised_paths) = flow.penalties.state(tag);
        Columns { recycled_values: flow.good.len().into(), penalty, penalised_paths }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{clean, flow, mark, send};

    #[test]
    fn a_worked_trace() {
        let mut s = Mixed::new(MixedParameters { paths: 4, ..Default::default() }, 1, 2);
        s.open(Time::ZERO, 0, &flow(&[8]));
        // A pass of the bitmap: a, b, c, d. a and c return clean, b marked.
        let [a, b, c, d] = [(); 4].map(|_| send(&mut s));
        let mut pass = [a & 3, b & 3, c & 3, d & 3];
        pass.sort();
        assert_eq!(pass, [0, 1, 2, 3]);
        clean(&mut s, a);
        mark(&mut s, b);
        clean(&mut s, c);
        // Recycled first, in order of return; then the bitmap, which skips b once.
        assert_eq!([send(&mut s), send(&mut s)], [a, c]);
        let mut rest = [(); 3].map(|_| send(&mut s));
        rest.sort();
        let mut expected = [a, c, d];
        expected.sort();
        assert_eq!(rest, expected);
    }
}
