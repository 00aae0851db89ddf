//! PLB, protective load balancing (specification 3.2; SIGCOMM 2022).

use super::{Slots, first_tag};
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, State, Tag,
    hash::EntropySpace,
    registry::{Invalid, SchemeCapabilities},
    state::{ps, state},
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(crate) const ABOUT: About = About {
    name: "plb",
    summary: "a flow moves to a random path after congested round trips",
    source: "specification 3.2; REPS artifact; Linux tcp_plb",
    description: "A round trip is congested if more than the share `k` of its acknowledged bytes was ECN-marked. \
        After more than `n` such rounds in a row the flow draws a new entropy value, at most once per `min_wait`.",
};

state! {
    /// Marked bytes of this round.
    marked_bytes: "bytes";
    /// Bytes acknowledged in this round.
    acked_bytes: "bytes";
    /// Congested rounds in a row.
    congested_rounds: "rounds";
    /// Earliest time of the next move.
    next_move_ps: "ps";
}

parameters! {
    pub struct PlbParameters {
        /// Share of marked bytes above which a round trip is congested (Linux: 0.5).
        k: f64 = 0.25, source "REPS artifact (specification 3.2)", Expert;
        /// Congested round trips in a row that are tolerated; one more moves the flow.
        n: u32 = 1, source "REPS artifact (specification 3.2)", Expert;
        /// Minimum time between two moves: one retransmission timeout.
        min_wait: Time = Time::from_us(100), source "ours: the timeout of specification 7.10", Expert;
        /// Moves the flow at once on a timeout.
        timeout_moves: bool = true, source "Linux rehashes a flow whose timer expires", Reading;
        /// Number of entropy values.
        entropy_values: u32 = 65536, source "ours: the 16 bits of a UDP source port", Expert;
    }
}

impl SchemeCapabilities for PlbParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless((0.0..=1.0).contains(&self.k), "k", self.k, "a share from 0 to 1")?;
        Invalid::unless(self.entropy_values > 0, "entropy_values", self.entropy_values, "at least 1")
    }

    fn keeps_path(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct Flow {
    stream: Stream,
    tag: Tag,
    congested_rounds: u32,
    /// PSN at whose acknowledgement the round ends; 0 before the first ACK, which starts one.
    round_end: u64,
    marked: u64,
    delivered: u64,
    next_move: Time,
}

#[derive(Debug)]
pub struct Plb {
    parameters: PlbParameters,
    host_key: u64,
    space: EntropySpace,
    flows: Slots<Flow>,
}

impl Plb {
    pub fn new(parameters: PlbParameters, seed: u64, host_key: u64) -> Self {
        let space = EntropySpace::new(parameters.entropy_values);
        Plb { parameters, host_key: key(seed, host_key, "plb"), space, flows: Slots::new() }
    }
}

impl HostScheme for Plb {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let (tag, stream) = first_tag(self.space, self.host_key, flow, "plb");
        let flow =
            Flow { stream, tag, congested_rounds: 0, round_end: 0, marked: 0, delivered: 0, next_move: Time::ZERO };
        self.flows.put(slot, flow);
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }
    #[inline]
    fn select(&mut self, _now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        Decision::Send(self.flows.get(slot).map_or(0, |flow| flow.tag))
    }

    #[inline]
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        let Some(flow) = self.flows.get(slot) else { return };
        flow.delivered += feedback.bytes;
        flow.marked += if feedback.ecn { feedback.bytes } else { 0 };
        let next_end = feedback.next_psn.max(feedback.cumulative + 1);
        if flow.round_end == 0 {
            flow.round_end = next_end;
        }
        if feedback.cumulative < flow.round_end {
            return;
        }
        let congested = flow.marked as f64 > self.parameters.k * flow.delivered as f64;
        flow.congested_rounds = if congested { flow.congested_rounds.saturating_add(1) } else { 0 };
        (flow.marked, flow.delivered) = (0, 0);
        flow.round_end = next_end;
        if flow.congested_rounds > self.parameters.n && now >= flow.next_move {
            flow.move_on(now, self.parameters.min_wait, self.space);
        }
    }

    fn on_timeout(&mut self, now: Time, slot: u32, _tag: Tag) {
        let Some(flow) = self.flows.get(slot) else { return };
        if self.parameters.timeout_moves && now >= flow.next_move {
            flow.move_on(now, self.parameters.min_wait, self.space);
        }
    }

    fn state(&self, _now: Time, slot: u32, _tag: Option<Tag>) -> State {
        let Some(flow) = self.flows.peek(slot) else { return State::default() };
        Columns {
            marked_bytes: flow.marked as f64,
            acked_bytes: flow.delivered as f64,
            congested_rounds: flow.congested_rounds.into(),
            next_move_ps: ps(flow.next_move),
        }
        .into()
    }
}

impl Flow {
    fn move_on(&mut self, now: Time, min_wait: Time, space: EntropySpace) {
        self.tag = space.draw(&mut self.stream);
        self.congested_rounds = 0;
        self.next_move = now.saturating_add(min_wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{feedback, flow, send};

    fn round(s: &mut Plb, now: Time, psn: u64, marked: u64) {
        for i in 0..4 {
            let cumulative = psn - 3 + i;
            s.on_ack(now, 0, &Feedback { cumulative, next_psn: psn + 4, ..feedback(0, i < marked) });
        }
    }

    #[test]
    fn a_worked_trace() {
        // k = 0.25, n = 1, rounds of 4 packets: 1 of 4 marked does not exceed a quarter, 2 of 4 do. The second
        // consecutive congested round moves the flow; then not again within 100 us.
        let mut s = Plb::new(PlbParameters::default(), 1, 2);
        s.open(Time::ZERO, 0, &flow(&[8]));
        let t = Time::from_us;
        let first = send(&mut s);
        // The first ACK starts the first round, which thus has 5 packets, 2 of them marked.
        s.on_ack(t(0), 0, &Feedback { cumulative: 1, next_psn: 5, ..feedback(0, false) });
        round(&mut s, t(10), 5, 2);
        round(&mut s, t(20), 9, 1);
        round(&mut s, t(30), 13, 2);
        assert_eq!(send(&mut s), first, "never two in a row");
        round(&mut s, t(40), 17, 4);
        let second = send(&mut s);
        assert_ne!(second, first);
        round(&mut s, t(50), 21, 4);
        round(&mut s, t(60), 25, 4);
        s.on_timeout(t(60), 0, second);
        assert_eq!(send(&mut s), second, "too soon");
        round(&mut s, t(140), 29, 4);
        let third = send(&mut s);
        assert_ne!(third, second);
        s.on_timeout(t(240), 0, third);
        assert_ne!(send(&mut s), third);
    }
}
