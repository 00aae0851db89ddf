//! FlowBender (specification 3.1; CoNEXT 2014), with Hopper's variant of late ACKs. A timeout changes the tag at once.

use super::{
    OnTimeout, Slots,
    chunks::{Chunks, Granularity},
    first_tag, times,
};
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, State, Tag,
    hash::EntropySpace,
    registry::{Invalid, SchemeCapabilities, TagKind},
    state::{ps, state},
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, choices, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "flowbender",
    summary: "a flow changes its tag when too many ACKs of a round trip were marked (or late)",
    source: "specification 3.1; FlowBender, CoNEXT 2014; Hopper §4 (variant rtt)",
    description: "At the end of every round trip the share of marked ACKs is compared with `t`; after `n` congested \
        round trips in a row the flow's tag moves to the next value, without bound or among `range` (`value`). Variant \
        `rtt` counts ACKs whose round trip exceeds `rtt_threshold` instead of marks.",
};

state! {
    /// Congested ACKs of this epoch: marked, or late.
    congested_acks: "ACKs";
    /// ACKs of this epoch; none is counted at chunk granularity.
    acks: "ACKs";
    /// Congested epochs in a row.
    congested_epochs: "epochs";
    /// Round trip, or time of a chunk, above which it is late.
    late_above_ps: "ps";
}

choices! {
    /// Congestion signal.
    pub enum FlowBenderVariant {
        /// The ECN mark of an ACK.
        Ecn = "ecn",
        /// A round trip above `rtt_threshold`.
        Rtt = "rtt",
    }
}

choices! {
    /// Next value of the tag.
    pub enum NextValue {
        /// One more, without bound: V names ever new paths.
        Unbounded = "unbounded",
        /// The next one of `range`; 0 after the last.
        Next = "next",
        /// Another one of `range` at random.
        Random = "random",
    }
}

choices! {
    /// End of a flow's first epoch.
    pub enum FirstEpoch {
        /// The first ACK: the packet that was next to send when the flow opened.
        FirstAck = "first-ack",
        /// One round trip after the first ACK.
        RoundTrip = "round-trip",
    }
}

parameters! {
    pub struct FlowBenderParameters {
        /// Share of congested ACKs above which an epoch is congested, at packet granularity.
        t: f64 = 0.05, source "HERMES artifact (specification 3.1); the paper names 0.01 to 0.05", Expert;
        /// Consecutive congested epochs that change the tag, at packet granularity.
        n: u32 = 1, source "HERMES artifact (specification 3.1)", Expert;
        /// Number of values of the tag, with `value = "next"` or `"random"`; otherwise of a flow's first value.
        range: u32 = 8, source "FlowBender (specification 3.1)", Reading;
        /// Next value of the tag.
        value: NextValue = NextValue::Unbounded, source "HERMES artifact (specification 3.1)", Reading;
        /// End of a flow's first epoch, at packet granularity.
        first_epoch: FirstEpoch = FirstEpoch::FirstAck, source "HERMES artifact (specification 3.1)", Reading;
        /// Congestion signal, at packet granularity.
        variant: FlowBenderVariant = FlowBenderVariant::Ecn, source "FlowBender; rtt: Hopper's testbed", Expert;
        /// Round trip above which an ACK counts as congested in variant rtt, in base round trips.
        rtt_threshold: f64 = 2.5, source "ours: Hopper's own test of congestion (its Table 1); §4.2 says no more than round trips that increase", Expert;
        /// Unit of decisions: packets, or chunks as in Hopper's testbed, where a chunk that takes longer than
        /// `rtt_threshold` times its ideal changes the tag of the next one.
        granularity: Granularity = Granularity::Packet, source "Hopper §4.2", Expert;
        /// Bytes of a chunk, at chunk granularity.
        chunk: Bytes = Bytes(1_000_000), source "Hopper §4.2: 1 MB and 10 MB", Expert;
        /// Maximum chunks in flight, at chunk granularity.
        outstanding: u32 = 1, source "ours: not given", Expert;
    }
}

impl SchemeCapabilities for FlowBenderParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless((0.0..=1.0).contains(&self.t), "t", self.t, "a share from 0 to 1")?;
        Invalid::unless(self.n > 0, "n", self.n, "at least 1")?;
        Invalid::unless(self.range > 0, "range", self.range, "at least 1")?;
        Invalid::unless(self.chunk.0 > 0, "chunk", self.chunk, "1B or more")?;
        Invalid::unless(self.outstanding > 0, "outstanding", self.outstanding, "1 or more")?;
        Invalid::unless(self.rtt_threshold >= 0.0, "rtt_threshold", self.rtt_threshold, "at least 0")
    }

    fn keeps_path(&self) -> bool {
        true
    }

    fn without_effect(&self, _tags: TagKind) -> Vec<(&'static str, &'static str)> {
        let mut keys = match self.granularity {
            Granularity::Chunk => vec!["t", "n", "first_epoch"],
            Granularity::Packet => vec!["chunk", "outstanding"],
        };
        if self.granularity == Granularity::Chunk && self.variant == FlowBenderVariant::Ecn {
            keys.push("variant");
        }
        keys.into_iter().map(|key| (key, self.granularity.setting())).collect()
    }
}

#[derive(Debug)]
struct Flow {
    stream: Stream,
    tag: Tag,
    congested_epochs: u32,
    /// PSN at whose acknowledgement the epoch ends; 0 before the first ACK, which ends one or starts one.
    epoch_end: u64,
    congested: u32,
    acks: u32,
    late: Time,
    chunks: Option<Chunks>,
}

#[derive(Debug)]
pub struct FlowBender {
    parameters: FlowBenderParameters,
    host_key: u64,
    space: EntropySpace,
    flows: Slots<Flow>,
}

impl FlowBender {
    pub fn new(parameters: FlowBenderParameters, seed: u64, host_key: u64) -> Self {
        let space = EntropySpace::new(parameters.range);
        FlowBender { parameters, host_key: key(seed, host_key, "flowbender"), space, flows: Slots::new() }
    }
}

impl HostScheme for FlowBender {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let (tag, stream) = first_tag(self.space, self.host_key, flow, "flowbender");
        let p = &self.parameters;
        let chunks = (p.granularity == Granularity::Chunk).then(|| Chunks::new(flow, p.chunk.0, p.outstanding));
        let late = times(chunks.as_ref().map_or(flow.base_rtt, |chunks| chunks.ideal), p.rtt_threshold);
        let state = Flow { stream, tag, congested_epochs: 0, epoch_end: 0, congested: 0, acks: 0, late, chunks };
        self.flows.put(slot, state);
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }
    #[inline]
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision {
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        let Some(chunks) = &mut flow.chunks else { return Decision::Send(flow.tag) };
        if chunks.begins(packet.psn) {
            if !chunks.may_begin() {
                return Decision::Wait;
            }
            chunks.begin(now, packet.psn);
        }
        chunks.send(packet.psn, flow.tag)
    }

    #[inline]
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        let Some(flow) = self.flows.get(slot) else { return };
        if let Some(chunks) = &mut flow.chunks {
            if chunks.acknowledged(now, feedback.cumulative).is_some_and(|took| took > flow.late) {
                flow.bend(self.parameters.value, self.space);
            }
            return;
        }
        let congested = match self.parameters.variant {
            FlowBenderVariant::Ecn => feedback.ecn,
            FlowBenderVariant::Rtt => feedback.rtt.is_some_and(|rtt| rtt > flow.late),
        };
        flow.acks += 1;
        flow.congested += u32::from(congested);
        let next_end = feedback.next_psn.max(feedback.cumulative + 1);
        if flow.epoch_end == 0 && self.parameters.first_epoch == FirstEpoch::RoundTrip {
            flow.epoch_end = next_end;
        }
        if feedback.cumulative < flow.epoch_end {
            return;
        }
        let over = f64::from(flow.congested) > self.parameters.t * f64::from(flow.acks);
        flow.congested_epochs = if over { flow.congested_epochs + 1 } else { 0 };
        (flow.congested, flow.acks) = (0, 0);
        flow.epoch_end = next_end;
        if flow.congested_epochs >= self.parameters.n.max(1) {
            flow.bend(self.parameters.value, self.space);
        }
    }

    fn on_timeout(&mut self, _now: Time, slot: u32, _tag: Tag) {
        if let Some(flow) = self.flows.get(slot) {
            flow.bend(self.parameters.value, self.space);
        }
    }

    fn state(&self, _now: Time, slot: u32, _tag: Option<Tag>) -> State {
        let Some(flow) = self.flows.peek(slot) else { return State::default() };
        Columns {
            congested_acks: flow.congested.into(),
            acks: flow.acks.into(),
            congested_epochs: flow.congested_epochs.into(),
            late_above_ps: ps(flow.late),
        }
        .into()
    }
}

impl Flow {
    fn bend(&mut self, value: NextValue, space: EntropySpace) {
        self.congested_epochs = 0;
        self.tag = match value {
            NextValue::Unbounded => self.tag.wrapping_add(1),
            NextValue::Next => space.after(self.tag),
            NextValue::Random => OnTimeout::another(space, &mut self.stream, self.tag),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{feedback, flow, send};

    /// Acknowledges packets `from..to` in order, `marked` of them marked; `to` ends the epoch.
    fn epoch(s: &mut FlowBender, from: u64, to: u64, marked: u64) {
        for psn in from..to {
            // Above 2.5 x 10 us is late.
            let rtt = Some(Time::from_us(if psn - from < marked { 26 } else { 25 }));
            s.on_ack(
                Time::ZERO,
                0,
                &Feedback { cumulative: psn + 1, next_psn: to + 20, rtt, ..feedback(0, psn - from < marked) },
            );
        }
    }

    /// The first ACK, which is clean, ends or starts an epoch; 20 more packets are in flight.
    fn bender(parameters: FlowBenderParameters) -> FlowBender {
        let mut s = FlowBender::new(parameters, 1, 2);
        s.open(Time::ZERO, 0, &flow(&[8]));
        s.on_ack(Time::ZERO, 0, &Feedback { cumulative: 1, next_psn: 21, ..feedback(0, false) });
        s
    }

    #[test]
    fn a_worked_trace() {
        // T = 5 % of 20 ACKs (21 in an epoch that the first ACK starts) is one (1.05): one mark does not exceed it, two do.
        let signals = [FlowBenderVariant::Ecn, FlowBenderVariant::Rtt];
        let firsts = [FirstEpoch::FirstAck, FirstEpoch::RoundTrip];
        for (variant, first_epoch) in signals.into_iter().flat_map(|signal| firsts.map(|first| (signal, first))) {
            let mut s =
                bender(FlowBenderParameters { variant, first_epoch, value: NextValue::Next, ..Default::default() });
            let v = send(&mut s);
            epoch(&mut s, 1, 21, 1);
            assert_eq!(send(&mut s), v);
            epoch(&mut s, 21, 41, 2);
            assert_eq!(send(&mut s), (v + 1) % 8);
            epoch(&mut s, 41, 60, 19);
            assert_eq!(send(&mut s), (v + 1) % 8, "the epoch ends with packet 60");
            epoch(&mut s, 60, 61, 0);
            assert_eq!(send(&mut s), (v + 2) % 8);
            s.on_timeout(Time::ZERO, 0, 0);
            assert_eq!(send(&mut s), (v + 3) % 8);
        }
    }

    /// At the start of a flow its first packet is the next to send, so its ACK ends the first epoch. One of one is marked.
    #[test]
    fn first_ack_is_judged() {
        for (first_epoch, bends) in [(FirstEpoch::FirstAck, 1), (FirstEpoch::RoundTrip, 0)] {
            let mut s = FlowBender::new(FlowBenderParameters { first_epoch, ..Default::default() }, 1, 2);
            s.open(Time::ZERO, 0, &flow(&[8]));
            let v = send(&mut s);
            s.on_ack(Time::ZERO, 0, &Feedback { cumulative: 1, next_psn: 21, ..feedback(0, true) });
            assert_eq!(send(&mut s), v + bends, "{first_epoch:?}");
        }
    }

    #[test]
    fn v_grows_without_bound() {
        let mut s = bender(FlowBenderParameters::default());
        let v = send(&mut s);
        for bends in 1..=20 {
            s.on_timeout(Time::ZERO, 0, 0);
            assert_eq!(send(&mut s), v + bends);
        }
    }

    #[test]
    fn n_counts_epochs_in_a_row_and_random_differs() {
        let mut s = bender(FlowBenderParameters { n: 2, value: NextValue::Random, ..Default::default() });
        let v = send(&mut s);
        for (i, marked) in [20, 0, 20].into_iter().enumerate() {
            epoch(&mut s, 1 + 20 * i as u64, 21 + 20 * i as u64, marked);
            assert_eq!(send(&mut s), v);
        }
        epoch(&mut s, 61, 81, 20);
        assert_ne!(send(&mut s), v);
        for _ in 0..100 {
            let before = send(&mut s);
            s.on_timeout(Time::ZERO, 0, 0);
            assert!(send(&mut s) != before && send(&mut s) < 8);
        }
    }
}
