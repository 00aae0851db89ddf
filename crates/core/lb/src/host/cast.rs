//! Queue pairs weighted by their round trips: RCCL's CAST (Congestion Aware Sprayed Traffic, by Broadcom), as the scheduler
//! of its transport `net_ib_cast` (ROCm/rocm-systems, `projects/rccl`) posts whole messages.
//!
//! Ours: a message of the library is a chunk of a flow, and each flow begins without samples. A sample is the round trip of
//! a packet; RCCL takes a message's time from post to completion, less that of its bytes at the NIC's rate. Here the
//! chunks of a flow share one sequence, in which a completion would include the chunks before it. RCCL's other mode, which
//! splits each message over all queue pairs (`NCCL_IB_SPLIT_DATA_ON_QPS`), is not modelled.

use super::{OnTimeout, Slots, chunks::Chunks};
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, State, Tag,
    hash::EntropySpace,
    registry::{Invalid, SchemeCapabilities},
    state::state,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, Never, parameters};
use anabranch_units::{Bytes, Time};

/// Chunks of a round over all queue pairs, before rounding.
const ROUND: f64 = 100.0;

pub(crate) const ABOUT: About = About {
    name: "cast",
    summary: "chunks over a few queue pairs with fixed paths, more over those with short round trips (RCCL)",
    source: "RCCL, net_ib_cast/scheduler.cc and its table of environment variables",
    description: "A connection has `qps` random tags. The weight of a queue pair is the inverse of its mean round trip, less the \
        least of these means, plus the least sample of the pair that has it. Of a round of 100 chunks each gets its share, at \
        least one, and they take turns while they have some left; at most `outstanding` chunks are in flight. Before all have a \
        sample they take turns. Ours: samples are round trips of packets, and each flow begins without any. As in qp-spray, a \
        chunk that overtakes counts as out of order. RCCL's splitting of each message over all pairs is not modelled.",
};

state! {
    /// Mean round trip of the queue pair chosen or reported on.
    round_trip_ps: "ps";
    /// Chunks that it sends in a round.
    quota: "chunks";
    /// Chunks of it left in this round.
    left: "chunks";
}

parameters! {
    pub struct CastParameters {
        /// Queue pairs per flow.
        qps: u32 = 4, source "ours: a usual NCCL_IB_QPS_PER_CONNECTION", Expert;
        /// Bytes per chunk.
        chunk: Bytes = Bytes(1_000_000), source "Hopper §4.2: 1 MB and 10 MB", Expert;
        /// Maximum chunks in flight.
        outstanding: u32 = 4, source "NCCL: a channel's buffer of 4 MiB (NCCL_BUFFSIZE), in slices of 1 MiB", Expert;
        /// Weight of a new sample in the moving average; 0: the mean of all samples.
        rtt_weight: f64 = 0.0, within 0.0..=1.0, source "RCCL_IB_QP_SCHED_WEIGHT", Expert;
        /// Least time between two changes of the weights.
        update_interval: Time = Time::from_us(50), source "RCCL_IB_QP_SCHED_UPDATE_INTERVAL", Expert;
        /// Time after which the means restart.
        reset_interval: Never<Time> = Never::Value(Time::from_ms(60_000)), source "RCCL_IB_QP_SCHED_RESET_INTERVAL", Expert;
        /// Number of entropy values.
        values: u32 = 65_536, source "UDP source ports", Expert;
        /// Effect of a retransmission timeout: with "move" the queue pair in use gets another port.
        on_timeout: OnTimeout = OnTimeout::Ignore, source "NCCL: a queue pair keeps its port, and its error ends the job; move: ours", Expert;
    }
}

impl SchemeCapabilities for CastParameters {
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

/// A queue pair. Times are in picoseconds; 0: no sample yet.
#[derive(Clone, Copy, Debug)]
struct Pair {
    tag: Tag,
    sum: f64,
    samples: f64,
    mean: f64,
    least: f64,
    /// Chunks of a round, and of this one those left.
    quota: u32,
    left: u32,
}

impl Pair {
    fn sample(&mut self, rtt: f64, weight: f64) {
        self.sum += rtt;
        self.samples += 1.0;
        self.least = if self.least == 0.0 { rtt } else { self.least.min(rtt) };
        self.mean = match weight {
            _ if self.samples == 1.0 => rtt,
            0.0 => self.sum / self.samples,
            _ => self.mean * (1.0 - weight) + rtt * weight,
        };
    }
}

#[derive(Debug)]
struct Flow {
    stream: Stream,
    chunks: Chunks,
    pairs: Box<[Pair]>,
    /// The next queue pair in turn.
    cursor: usize,
    tag: Tag,
    weigh_at: Time,
    reset_at: Time,
}

impl Flow {
    /// Takes the next queue pair that has chunks left in the round.
    fn take_turn(&mut self) -> Tag {
        if self.pairs.iter().all(|pair| pair.left == 0) {
            self.pairs.iter_mut().for_each(|pair| pair.left = pair.quota);
        }
        loop {
            let turn = self.cursor;
            self.cursor = (turn + 1) % self.pairs.len();
            let pair = &mut self.pairs[turn];
            if pair.left > 0 {
                pair.left -= 1;
                return pair.tag;
            }
        }
    }

    /// Shares a round among the queue pairs, once all have a sample.
    fn weigh(&mut self) {
        let best = self.pairs.iter().min_by(|a, b| a.mean.total_cmp(&b.mean));
        let Some(Pair { mean, least, .. }) = best.copied().filter(|best| best.mean > 0.0) else { return };
        let weight = |pair: &Pair| 1.0 / (pair.mean - mean + least);
        let sum: f64 = self.pairs.iter().map(weight).sum();
        for pair in &mut self.pairs {
            let share = ROUND * weight(pair) / sum;
            // Halves are rounded down.
            pair.quota = ((share - 0.5).ceil() as u32).max(1);
            pair.left = pair.left.min(pair.quota);
        }
    }
}

#[derive(Debug)]
pub struct Cast {
    parameters: CastParameters,
    host_key: u64,
    flows: Slots<Flow>,
}

impl Cast {
    pub fn new(parameters: CastParameters, seed: u64, host_key: u64) -> Self {
        Cast { parameters, host_key: key(seed, host_key, "cast"), flows: Slots::new() }
    }
}

impl HostScheme for Cast {
    fn state(&self, _now: Time, slot: u32, tag: Option<Tag>) -> State {
        let flow = self.flows.peek(slot);
        let Some(pair) = flow.and_then(|flow| flow.pairs.iter().find(|pair| Some(pair.tag) == tag)) else {
            return State::default();
        };
        let round_trip_ps = if pair.samples > 0.0 { pair.mean } else { f64::NAN };
        Columns { round_trip_ps, quota: pair.quota.into(), left: pair.left.into() }.into()
    }
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let p = &self.parameters;
        let (mut stream, space) = (Stream::keyed(self.host_key, flow.connection, "ports"), EntropySpace::new(p.values));
        let mut pair =
            |_| Pair { tag: space.draw(&mut stream), sum: 0.0, samples: 0.0, mean: 0.0, least: 0.0, quota: 1, left: 1 };
        let pairs: Box<[Pair]> = (0..p.qps.max(1)).map(&mut pair).collect();
        let (chunks, tag) = (Chunks::new(flow, p.chunk.0, p.outstanding), pairs[0].tag);
        let weigh_at = now.saturating_add(p.update_interval);
        self.flows.put(slot, Flow { stream, chunks, pairs, cursor: 0, tag, weigh_at, reset_at: now });
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
            flow.tag = flow.take_turn();
            flow.chunks.begin(now, packet.psn);
            if now >= flow.weigh_at {
                flow.weigh();
                flow.weigh_at = now.saturating_add(self.parameters.update_interval);
            }
        }
        flow.chunks.send(packet.psn, flow.tag)
    }
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        let Some(flow) = self.flows.get(slot) else { return };
        flow.chunks.acknowledged(now, feedback.cumulative);
        let Some(rtt) = feedback.rtt else { return };
        if let Never::Value(interval) = self.parameters.reset_interval
            && now >= flow.reset_at
        {
            flow.pairs.iter_mut().for_each(|pair| (pair.sum, pair.samples) = (0.0, 0.0));
            flow.reset_at = now.saturating_add(interval);
        }
        let own = flow.pairs.iter_mut().filter(|pair| pair.tag == feedback.tag);
        own.for_each(|pair| pair.sample(rtt.ps() as f64, self.parameters.rtt_weight));
    }
    fn on_timeout(&mut self, _now: Time, slot: u32, _tag: Tag) {
        let Some(flow) = self.flows.get(slot).filter(|_| self.parameters.on_timeout == OnTimeout::Move) else { return };
        let space = EntropySpace::new(self.parameters.values);
        let other = OnTimeout::another(space, &mut flow.stream, flow.tag);
        for pair in flow.pairs.iter_mut().filter(|pair| pair.tag == flow.tag) {
            (pair.tag, pair.sum, pair.samples) = (other, 0.0, 0.0);
        }
        flow.tag = other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{feedback, flow, us};

    /// A flow of 10 GB in chunks of one packet of 4096 B, any number in flight.
    fn opened(parameters: CastParameters) -> (Cast, Vec<Tag>) {
        let mut s = Cast::new(CastParameters { chunk: Bytes(4096), outstanding: 1 << 20, ..parameters }, 1, 2);
        s.open(Time::ZERO, 0, &FlowInfo { size: 4096 << 20, packets: 1 << 20, ..flow(&[8]) });
        let tags = s.flows.get(0).unwrap().pairs.iter().map(|pair| pair.tag).collect();
        (s, tags)
    }
    fn send(s: &mut Cast, now: f64, psn: u64) -> Tag {
        let Decision::Send(tag) = s.select(us(now), 0, &Outgoing { psn, ..Outgoing::first(4096) }) else { panic!() };
        tag
    }
    fn ack(s: &mut Cast, now: f64, tag: Tag, rtt: f64) {
        s.on_ack(us(now), 0, &Feedback { rtt: Some(us(rtt)), ..feedback(tag, false) });
    }

    #[test]
    fn a_worked_trace() {
        let (mut s, tags) = opened(CastParameters { qps: 2, ..Default::default() });
        let (a, b) = (tags[0], tags[1]);
        assert_eq!([0, 1, 2, 3].map(|psn| send(&mut s, 0.0, psn)), [a, b, a, b], "in turn without samples");
        // Means of 10 and (20 + 40) / 2 = 30 us: 1 / 10 and 1 / (30 - 10 + 10) are 3 to 1, 75 and 25 of 100.
        ack(&mut s, 10.0, a, 10.0);
        ack(&mut s, 20.0, b, 20.0);
        ack(&mut s, 40.0, b, 40.0);
        assert_eq!([4, 5, 6].map(|psn| send(&mut s, 49.9, psn)), [a, b, a], "weights change every 50 us");
        assert_eq!(send(&mut s, 50.0, 7), b, "the round before ends first");
        let round: Vec<Tag> = (8..108).map(|psn| send(&mut s, 50.0, psn)).collect();
        assert!(round[..50].chunks(2).all(|pair| pair == [a, b]) && round[50..].iter().all(|tag| *tag == a));
        // 30 us on a, too: (10 + 30) / 2 = 20; its least sample stays 10: 1 / 10 and 1 / (30 - 20 + 10), 66.7 and 33.3.
        ack(&mut s, 100.0, a, 30.0);
        send(&mut s, 100.0, 108);
        let quotas = |s: &mut Cast| s.flows.get(0).unwrap().pairs.iter().map(|pair| pair.quota).collect::<Vec<_>>();
        assert_eq!(quotas(&mut s), [67, 33]);
        // 60 s later the means restart: a has 90 us alone, b keeps its 30: 1 / (90 - 30 + 20) and 1 / 20, 20 and 80.
        ack(&mut s, 61e6, a, 90.0);
        send(&mut s, 61e6, 109);
        assert_eq!(quotas(&mut s), [20, 80]);
    }

    #[test]
    fn a_weight_makes_the_mean_a_moving_one() {
        let (mut s, tags) = opened(CastParameters { qps: 2, rtt_weight: 0.5, ..Default::default() });
        // 10, 30, 30: 10, 20, 25 us; the other has 10: 1 / (25 - 10 + 10) and 1 / 10, 28.6 and 71.4.
        [10.0, 30.0, 30.0].into_iter().for_each(|rtt| ack(&mut s, rtt, tags[0], rtt));
        ack(&mut s, 40.0, tags[1], 10.0);
        send(&mut s, 50.0, 0);
        assert_eq!(s.flows.get(0).unwrap().pairs.iter().map(|pair| pair.quota).collect::<Vec<_>>(), [29, 71]);
    }

    #[test]
    fn every_queue_pair_keeps_a_chunk_per_round() {
        // 1 us against 10 ms: 100 / 10,001 is below one.
        let (mut s, tags) = opened(CastParameters { qps: 2, ..Default::default() });
        ack(&mut s, 10.0, tags[0], 1.0);
        ack(&mut s, 10.0, tags[1], 10_000.0);
        let sent: Vec<Tag> = (0..206).map(|psn| send(&mut s, 60.0, psn)).collect();
        assert_eq!(
            sent.iter().filter(|tag| **tag == tags[1]).count(),
            4,
            "a turn, then one in each of three rounds of 101"
        );
    }

    #[test]
    fn a_timeout_may_move_a_queue_pair() {
        for (on_timeout, moves) in [(OnTimeout::Ignore, false), (OnTimeout::Move, true)] {
            let (mut s, tags) = opened(CastParameters { qps: 2, on_timeout, ..Default::default() });
            assert_eq!(send(&mut s, 0.0, 0), tags[0]);
            s.on_timeout(us(1.0), 0, tags[0]);
            assert_eq!(send(&mut s, 1.0, 1), tags[1], "the other keeps its port");
            assert_eq!(send(&mut s, 1.0, 2) != tags[0], moves);
        }
    }
}
