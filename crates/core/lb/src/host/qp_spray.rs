//! Static spraying over queue pairs, as in collective libraries (NCCL), independent of congestion.

use super::{OnTimeout, Slots, chunks::Chunks};
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, Tag,
    hash::EntropySpace,
    registry::{Invalid, SchemeCapabilities},
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "qp-spray",
    summary: "chunks in turn over a few queue pairs with fixed paths (NCCL)",
    source: "Hopper §1 and §4.2: what collective libraries do",
    description: "A connection has `qps` random tags. Chunk k of a flow goes over tag k mod `qps`; at most `outstanding` chunks \
        are in flight. The queue pairs share the flow's sequence numbers, so a chunk that overtakes counts as out of \
        order; RoCE retransmits for it. Channels of a collective are queue pairs with sequence numbers of their own.",
};

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
}

#[derive(Debug)]
struct Flow {
    stream: Stream,
    chunks: Chunks,
    tags: Box<[Tag]>,
    tag: Tag,
}

#[derive(Debug)]
pub struct QpSpray {
    parameters: QpSprayParameters,
    host_key: u64,
    flows: Slots<Flow>,
}

impl QpSpray {
    pub fn new(parameters: QpSprayParameters, seed: u64, host_key: u64) -> Self {
        QpSpray { parameters, host_key: key(seed, host_key, "qp-spray"), flows: Slots::new() }
    }
}

impl HostScheme for QpSpray {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let p = &self.parameters;
        let (mut stream, space) = (Stream::keyed(self.host_key, flow.connection, "ports"), EntropySpace::new(p.values));
        let tags: Box<[Tag]> = (0..p.qps.max(1)).map(|_| space.draw(&mut stream)).collect();
        let chunks = Chunks::new(flow, p.chunk.0, p.outstanding);
        self.flows.put(slot, Flow { stream, chunks, tag: tags[0], tags });
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
            flow.tag = flow.tags[(flow.chunks.number() % flow.tags.len() as u64) as usize];
            flow.chunks.begin(now, packet.psn);
        }
        flow.chunks.send(packet.psn, flow.tag)
    }
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        if let Some(flow) = self.flows.get(slot) {
            flow.chunks.acknowledged(now, feedback.cumulative);
        }
    }
    fn on_timeout(&mut self, _now: Time, slot: u32, _tag: Tag) {
        let Some(flow) = self.flows.get(slot).filter(|_| self.parameters.on_timeout == OnTimeout::Move) else { return };
        let space = EntropySpace::new(self.parameters.values);
        let other = OnTimeout::another(space, &mut flow.stream, flow.tag);
        flow.tags.iter_mut().filter(|tag| **tag == flow.tag).for_each(|tag| *tag = other);
        flow.tag = other;
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
}
