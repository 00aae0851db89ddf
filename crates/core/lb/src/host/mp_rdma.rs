//! MP-RDMA's path selection (Lu et al., NSDI 2018, §3.2 and §3.3): every acknowledgement clocks out a packet on its own path.
//!
//! A path is a random entropy value (a *virtual path*). Paths have no state: what they bring back is what they are given again,
//! so that packets drift to the paths that deliver. The window is one for all paths: `congestion_control = "dctcp"` without
//! `quick_adapt` and `fast_increase`, with `late = 32`.
//!
//! Ours: a marked acknowledgement takes half a packet from the window, so of two the second has no packet of its own; the
//! window grows on the path of the last acknowledgement.

use super::{Slots, recycle::Recycle};
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, State, Tag,
    hash::EntropySpace,
    registry::{Invalid, SchemeCapabilities},
    state::state,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "mp-rdma",
    summary: "each acknowledgement sends a packet on its own path, unless that is late or congested",
    source: "Lu et al., NSDI 2018, as public descriptions have it",
    description: "The first window takes random paths. After it a packet takes the path of an acknowledgement: a path is \
        used as often as it delivers. A share of the packets explores a random path. An acknowledgement that lags more than \
        `late` packets behind the newest sends nothing on its path. Its window is congestion_control = \"dctcp\" with \
        quick_adapt = false, fast_increase = false and late = 32, its receiver acknowledges every packet (ack_every = 1).",
};

state! {
    /// Packets that acknowledgements have clocked and that have not been sent, each on the path of its acknowledgement.
    clocked_packets: "packets";
    /// Path of the last acknowledgement that was neither late nor marked; empty: there is none.
    last_tag: "";
    /// 1: the next marked acknowledgement sends no packet.
    half: "";
    /// Highest PSN acknowledged.
    newest_psn: "";
}

parameters! {
    pub struct MpRdmaParameters {
        /// Number of entropy values.
        entropy_values: u32 = 65536, source "ours: the 16 bits of a UDP source port", Expert;
        /// Share of the packets that explore a random path.
        explore: f64 = 0.01, within 0.0..=1.0, source "MP-RDMA §3.2: 1 %", Expert;
        /// Packets by which an acknowledged packet may lag behind the newest before its path is left.
        late: u64 = 32, source "MP-RDMA §3.3: the out-of-order bound of its study", Expert;
    }
}

impl SchemeCapabilities for MpRdmaParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.entropy_values > 0, "entropy_values", self.entropy_values, "at least 1")
    }

    fn own_control(&self) -> Option<&'static str> {
        Some("dctcp")
    }
}

#[derive(Debug)]
struct Flow {
    stream: Stream,
    /// Paths of acknowledgements that have sent no packet yet.
    clock: Recycle,
    /// Path of the last acknowledgement that is neither late nor congested.
    last: Option<Tag>,
    /// The last marked acknowledgement has taken half a packet.
    half: bool,
    newest: u64,
}

/// See the module.
#[derive(Debug)]
pub struct MpRdma {
    parameters: MpRdmaParameters,
    host_key: u64,
    space: EntropySpace,
    flows: Slots<Flow>,
}

impl MpRdma {
    /// Creates the scheme of one host.
    pub fn new(parameters: MpRdmaParameters, seed: u64, host_key: u64) -> Self {
        let space = EntropySpace::new(parameters.entropy_values);
        MpRdma { parameters, host_key: key(seed, host_key, "mp-rdma"), space, flows: Slots::new() }
    }
}

impl HostScheme for MpRdma {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let stream = Stream::keyed(self.host_key, flow.key, "mp-rdma");
        let clock = Recycle::new(flow.bdp_packets);
        self.flows.put(slot, Flow { stream, clock, last: None, half: false, newest: 0 });
    }

    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }

    #[inline]
    fn select(&mut self, _now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        let clocked = flow.clock.pop().or(flow.last);
        let explores = self.parameters.explore > 0.0 && flow.stream.unit() < self.parameters.explore;
        Decision::Send(match clocked {
            Some(tag) if !explores => tag,
            _ => self.space.draw(&mut flow.stream),
        })
    }

    #[inline]
    fn on_ack(&mut self, _now: Time, slot: u32, feedback: &Feedback) {
        let Some(flow) = self.flows.get(slot) else { return };
        flow.newest = flow.newest.max(feedback.psn);
        let is_late = flow.newest - feedback.psn > self.parameters.late;
        if is_late || feedback.ecn {
            // The path of an earlier acknowledgement is no worse than a random one.
            flow.last = flow.last.filter(|tag| *tag != feedback.tag);
        }
        if is_late {
            return;
        }
        if feedback.ecn {
            flow.half = !flow.half;
            if flow.half {
                flow.clock.push(feedback.tag);
            }
            return;
        }
        flow.last = Some(feedback.tag);
        // Of packets acknowledged together only the path of one is known.
        (0..feedback.packets.max(1)).for_each(|_| flow.clock.push(feedback.tag));
    }

    fn state(&self, _now: Time, slot: u32, _tag: Option<Tag>) -> State {
        let Some(flow) = self.flows.peek(slot) else { return State::default() };
        Columns {
            clocked_packets: flow.clock.len().into(),
            last_tag: flow.last.map_or(f64::NAN, f64::from),
            half: flow.half.into(),
            newest_psn: flow.newest as f64,
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{feedback, flow, send};
    use std::collections::BTreeSet;

    fn opened(parameters: MpRdmaParameters) -> MpRdma {
        let mut scheme = MpRdma::new(parameters, 1, 2);
        scheme.open(Time::ZERO, 0, &flow(&[8]));
        scheme
    }

    fn acked(s: &mut MpRdma, psn: u64, tag: Tag, ecn: bool) {
        s.on_ack(Time::ZERO, 0, &Feedback { psn, ..feedback(tag, ecn) });
    }

    /// Window of four, without exploring. Packets 0 to 3 take a, b, c, d.
    #[test]
    fn a_worked_trace() {
        let mut s = opened(MpRdmaParameters { explore: 0.0, late: 2, ..Default::default() });
        let first: Vec<Tag> = (0..4).map(|_| send(&mut s)).collect();
        let [a, b, c, d] = first[..] else { unreachable!() };
        assert_eq!(BTreeSet::from([a, b, c, d]).len(), 4);
        // Clean: each acknowledgement has its successor. The window grows on the last path.
        acked(&mut s, 0, a, false);
        assert_eq!(send(&mut s), a);
        acked(&mut s, 1, b, false);
        assert_eq!([send(&mut s), send(&mut s)], [b, b]);
        // Two marks: the first half packet sends on its path, the second does not; what the window still allows takes the last
        // clean path.
        acked(&mut s, 2, c, true);
        assert_eq!(send(&mut s), c);
        acked(&mut s, 3, d, true);
        assert_eq!(send(&mut s), b);
        // 4 (a) and 5 (b) come after 8: 4 lags by more than two packets, 6 does not.
        acked(&mut s, 8, b, false);
        acked(&mut s, 4, a, false);
        acked(&mut s, 6, b, false);
        assert_eq!([send(&mut s), send(&mut s), send(&mut s)], [b, b, b]);
        // The last path itself is late: the next ones are random.
        acked(&mut s, 5, b, false);
        assert!(![a, b, c, d].contains(&send(&mut s)));
    }

    /// Of 100,000 packets on one path a hundredth explores: 1000 within five deviations, 5 * sqrt(990).
    #[test]
    fn a_hundredth_explores() {
        let mut s = opened(MpRdmaParameters::default());
        let explored = (0..100_000u64).filter(|psn| {
            acked(&mut s, *psn, 7, false);
            send(&mut s) != 7
        });
        let explored = explored.count();
        assert!(explored.abs_diff(1000) <= 157, "{explored}");
    }
}
