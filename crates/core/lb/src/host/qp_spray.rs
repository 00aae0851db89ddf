//! Static spraying over queue pairs, as in collective libraries (NCCL), independent of congestion.

use super::{OnTimeout, Slots, chunks::Chunks};
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, PathReading, State, Tag,
    hash::EntropySpace,
    registry::{Invalid, SchemeCapabilities},
    state::state,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, parameters};
use anabranch_units::{Bytes, Time};
use std::collections::BTreeMap;

pub(crate) const ABOUT: About = About {
    name: "qp-spray",
    summary: "chunks in turn over a few queue pairs with fixed paths (NCCL)",
    source: "Hopper §1 and §4.2: what collective libraries do",
    description: "A connection has `qps` random tags. Chunk k of a flow goes over tag k mod `qps`; at most `outstanding` chunks \
        are in flight. The queue pairs share the flow's sequence numbers, so a chunk that overtakes counts as out of \
        order; RoCE retransmits for it. Channels of a collective are queue pairs with sequence numbers of their own.",
};

state! {
    /// Chunks begun.
    chunks: "chunks";
    /// Chunks in flight.
    open_chunks: "chunks";
}

parameters! {
    pub struct QpSprayParameters {
        /// Queue pairs per flow.
        qps: u32 = 4, source "ours: a usual NCCL_IB_QPS_PER_CONNECTION; the library's own default, 1, is ecmp", Expert;
        /// Bytes per chunk.
        chunk: Bytes = Bytes(1_000_000), source "Hopper §4.2: 1 MB and 10 MB", Expert;
        /// Maximum chunks in flight.
        outstanding: u32 = 4, source "NCCL: a channel's buffer of 4 MiB (NCCL_BUFFSIZE), in slices of 1 MiB; 1: as many as keep the order of one sequence", Expert;
        /// Number of entropy values.
        values: u32 = 65_536, source "UDP source ports", Expert;
        /// Effect of a retransmission timeout: with "move" the queue pair in use gets another port.
        on_timeout: OnTimeout = OnTimeout::Ignore, source "NCCL: a queue pair keeps its port, and its error ends the job; move: ours", Expert;
    }
}

impl SchemeCapabilities for QpSprayParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless((1..=256).contains(&self.qps), "qps", self.qps, "1 to 256")?;
        Invalid::unless(self.chunk.0 > 0, "chunk", self.chunk, "1B or more")?;
        Invalid::unless(self.outstanding > 0, "outstanding", self.outstanding, "1 or more")?;
        Invalid::unless(self.values > 0, "values", self.values, "1 or more")
    }

    fn keeps_path(&self) -> bool {
        true
    }

    fn queue_pairs(&self) -> u32 {
        self.qps
    }

    fn can_be_steered(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct Flow {
    stream: Stream,
    connection: u64,
    chunks: Chunks,
    tags: Box<[Tag]>,
    tag: Tag,
}

/// A connection whose chunks an agent spreads.
#[derive(Debug, Default)]
struct Steered {
    /// Shares of the tags; their sum is 1.
    weights: Vec<f32>,
    /// What each is owed, in chunks.
    owed: Vec<f32>,
    last: Option<usize>,
    readings: Vec<PathReading>,
}

impl Steered {
    /// Weighted round robin: the tag that is owed most sends the next chunk.
    fn next(&mut self) -> Tag {
        let mut most = 0;
        for (tag, weight) in self.weights.iter().enumerate() {
            self.owed[tag] += weight;
            if *weight > 0.0 && (self.weights[most] <= 0.0 || self.owed[tag] > self.owed[most]) {
                most = tag;
            }
        }
        self.owed[most] -= 1.0;
        if self.last.replace(most).is_some_and(|last| last != most) {
            self.readings[most].moves += 1;
        }
        most as Tag
    }
}

#[derive(Debug)]
pub struct QpSpray {
    parameters: QpSprayParameters,
    host_key: u64,
    flows: Slots<Flow>,
    steered: BTreeMap<u64, Steered>,
}

impl QpSpray {
    pub fn new(parameters: QpSprayParameters, seed: u64, host_key: u64) -> Self {
        QpSpray { parameters, host_key: key(seed, host_key, "qp-spray"), flows: Slots::new(), steered: BTreeMap::new() }
    }

    fn reading(&mut self, slot: u32, tag: Tag) -> Option<&mut PathReading> {
        if self.steered.is_empty() {
            return None;
        }
        let connection = self.flows.get(slot)?.connection;
        self.steered.get_mut(&connection)?.readings.get_mut(tag as usize)
    }
}

impl HostScheme for QpSpray {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let p = &self.parameters;
        let (mut stream, space) = (Stream::keyed(self.host_key, flow.connection, "ports"), EntropySpace::new(p.values));
        let tags: Box<[Tag]> = (0..p.qps.max(1)).map(|_| space.draw(&mut stream)).collect();
        let chunks = Chunks::new(flow, p.chunk.0, p.outstanding);
        self.flows.put(slot, Flow { stream, connection: flow.connection, chunks, tag: tags[0], tags });
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision {
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        if flow.chunks.begins(packet.psn) {
            if !flow.chunks.may_begin() {
                return Decision::Wait;
            }
            flow.tag = match self.steered.get_mut(&flow.connection) {
                Some(steered) => steered.next(),
                None => flow.tags[(flow.chunks.number() % flow.tags.len() as u64) as usize],
            };
            flow.chunks.begin(now, packet.psn);
        }
        let (tag, decision) = (flow.tag, flow.chunks.send(packet.psn, flow.tag));
        if let Some(reading) = self.reading(slot, tag) {
            reading.packets += 1;
            reading.bytes += u64::from(packet.bytes);
        }
        decision
    }
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        if let Some(flow) = self.flows.get(slot) {
            flow.chunks.acknowledged(now, feedback.cumulative);
        }
        if let Some(reading) = self.reading(slot, feedback.tag) {
            reading.marks += u64::from(feedback.ecn);
            if let Some(round_trip) = feedback.rtt {
                reading.samples += 1;
                reading.round_trips += round_trip;
            }
        }
    }
    fn on_nack(&mut self, _now: Time, slot: u32, tag: Tag) {
        if let Some(reading) = self.reading(slot, tag) {
            reading.losses += 1;
        }
    }
    fn on_timeout(&mut self, now: Time, slot: u32, tag: Tag) {
        self.on_nack(now, slot, tag);
        let Some(flow) = self.flows.get(slot) else { return };
        if self.parameters.on_timeout != OnTimeout::Move || self.steered.contains_key(&flow.connection) {
            return;
        }
        let space = EntropySpace::new(self.parameters.values);
        let other = OnTimeout::another(space, &mut flow.stream, flow.tag);
        flow.tags.iter_mut().filter(|tag| **tag == flow.tag).for_each(|tag| *tag = other);
        flow.tag = other;
    }
    fn steer(&mut self, connection: u64, weights: &[f32]) -> bool {
        let sum: f32 = weights.iter().sum();
        if !sum.is_finite() || sum <= 0.0 || weights.iter().any(|weight| *weight < 0.0) {
            return false;
        }
        let steered = self.steered.entry(connection).or_default();
        steered.weights = weights.iter().map(|weight| weight / sum).collect();
        // Fewer tags than before leave the readings of the others.
        let tags = weights.len().max(steered.readings.len());
        steered.owed.resize(tags, 0.0);
        steered.readings.resize(tags, PathReading::default());
        true
    }
    fn readings(&self, connection: u64) -> &[PathReading] {
        self.steered.get(&connection).map_or(&[], |steered| &steered.readings)
    }

    fn state(&self, _now: Time, slot: u32, _tag: Option<Tag>) -> State {
        let Some(flow) = self.flows.peek(slot) else { return State::default() };
        Columns { chunks: flow.chunks.number() as f64, open_chunks: flow.chunks.in_flight() as f64 }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{feedback, flow};

    #[test]
    fn a_worked_trace() {
        // Chunks of ten packets, one in flight: packets 0 to 9 share a tag, packet 10 waits for them.
        let p = QpSprayParameters { chunk: Bytes(40_960), qps: 2, outstanding: 1, ..Default::default() };
        let mut s = QpSpray::new(p, 1, 2);
        s.open(Time::ZERO, 0, &flow(&[8]));
        let ask = |s: &mut QpSpray, psn| s.select(Time::ZERO, 0, &Outgoing { psn, ..Outgoing::first(4096) });
        let first = ask(&mut s, 0);
        assert!((1..9).all(|psn| ask(&mut s, psn) == first));
        let asks =
            |decision| if let Decision::Send(tag) = decision { Decision::SendWithAckRequest(tag) } else { decision };
        assert_eq!(ask(&mut s, 9), asks(first), "nothing goes before it is acknowledged");
        assert_eq!(ask(&mut s, 10), Decision::Wait);
        s.on_ack(Time::ZERO, 0, &Feedback { cumulative: 10, ..feedback(0, false) });
        let second = ask(&mut s, 10);
        assert!(second != first && (11..19).all(|psn| ask(&mut s, psn) == second));
        s.on_ack(Time::ZERO, 0, &Feedback { cumulative: 20, ..feedback(0, false) });
        assert_eq!(ask(&mut s, 20), first, "in turn");
        s.on_timeout(Time::ZERO, 0, 0);
        assert_eq!(ask(&mut s, 21), first, "a timeout changes nothing");
        s.parameters.on_timeout = OnTimeout::Move;
        s.on_timeout(Time::ZERO, 0, 0);
        let third = ask(&mut s, 21);
        assert_ne!(third, first);
        s.on_ack(Time::ZERO, 0, &Feedback { cumulative: 30, ..feedback(0, false) });
        assert_eq!(ask(&mut s, 30), second, "the other queue pair keeps its port");
        s.on_ack(Time::ZERO, 0, &Feedback { cumulative: 40, ..feedback(0, false) });
        assert_eq!(ask(&mut s, 40), third);
        // By default, four chunks of 245 packets (1 MB in payloads of 4096 B) go without an acknowledgement.
        let mut s = QpSpray::new(QpSprayParameters::default(), 1, 2);
        s.open(Time::ZERO, 0, &FlowInfo { size: 8_192_000, packets: 2000, ..flow(&[8]) });
        assert!((0..4 * 245).all(|psn| ask(&mut s, psn) != Decision::Wait));
        assert_eq!(ask(&mut s, 4 * 245), Decision::Wait);
    }

    #[test]
    fn an_agent_sets_the_shares_of_the_tags() {
        let p = QpSprayParameters { chunk: Bytes(4096), outstanding: 1000, ..Default::default() };
        let mut s = QpSpray::new(p, 1, 2);
        assert!(s.steer(42, &[3.0, 0.0, 1.0]) && s.readings(7).is_empty());
        assert!([&[][..], &[0.0], &[1.0, -0.5], &[f32::NAN]].iter().all(|weights| !s.steer(42, weights)));
        s.open(Time::ZERO, 0, &flow(&[8]));
        let send = |s: &mut QpSpray, psn| match s.select(Time::ZERO, 0, &Outgoing { psn, ..Outgoing::first(4096) }) {
            Decision::Send(tag) => tag,
            other => panic!("{other:?}"),
        };
        // Owed after each turn, in quarters: (3, 0, 1) -> 0 sends; (2, 0, 2) -> 0; (1, 0, 3) -> 2; (4, 0, 0) -> 0; again.
        let tags: Vec<Tag> = (0..8).map(|psn| send(&mut s, psn)).collect();
        assert_eq!(tags, [0, 0, 2, 0, 0, 0, 2, 0]);
        s.on_ack(Time::ZERO, 0, &feedback(2, true));
        s.on_loss(Time::ZERO, 0, 0, crate::Loss::Gap);
        s.on_loss(Time::ZERO, 0, 0, crate::Loss::Refused);
        let tag0 = PathReading { packets: 6, bytes: 6 * 4096, losses: 1, moves: 2, ..PathReading::default() };
        let tag2 = PathReading {
            packets: 2,
            bytes: 2 * 4096,
            samples: 1,
            round_trips: Time::from_us(10),
            marks: 1,
            losses: 0,
            moves: 2,
        };
        assert_eq!(s.readings(42), [tag0, PathReading::default(), tag2]);
        // One tag alone, with the debts of before.
        assert!(s.steer(42, &[0.0, 1.0]) && (8..20).all(|psn| send(&mut s, psn) == 1));
        assert_eq!((s.readings(42).len(), s.readings(42)[1].packets), (3, 12));
    }
}
