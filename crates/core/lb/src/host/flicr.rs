//! Flicr (also Flier; specification 3.6): one path at a time, drawn by weight and left when too many ACKs are marked.

use super::{
    OnTimeout, Slots,
    guided::{Blocks, Sampler},
};
use crate::{
    Decision, Feedback, FlowInfo, GuidedPaths, HostScheme, Outgoing, State, Tag, Weights,
    registry::{SchemeCapabilities, TagKind},
    state::{ps, state},
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, parameters};
use anabranch_units::Time;
use std::sync::Arc;

pub(crate) const ABOUT: About = About {
    name: "flicr",
    summary: "one path at a time, drawn by weight, left when a round trip was congested",
    source: "Flier, INFOCOM 2017, as Spritz' artifact has it (specification 3.6)",
    description: "After a grace of one base round trip on a new path, whose feedback is ignored, the share of \
        marked ACKs is checked every base round trip; above a tenth, or at a NACK or a timeout, the next packet \
        draws another path.",
};

state! {
    /// Marked ACKs of this round trip.
    marked_acks: "ACKs";
    /// ACKs of this round trip.
    acks: "ACKs";
    /// 1: the first round trip of the path, whose marks are not heeded.
    grace: "";
    /// Start of the round trip.
    since_ps: "ps";
}

parameters! {
    pub struct FlicrParameters {
        /// Weights of the paths in draws.
        weights: Weights = Weights::Latency, source "Spritz §V-A: Flicr (w)", Expert;
        /// Effect of a retransmission timeout within the grace: none, or another path as after it.
        on_timeout: OnTimeout = OnTimeout::Ignore, source "Spritz' artifact (specification 3.6); move: ours, since a dead path answers nothing and its grace has no end", Expert;
    }
}

impl SchemeCapabilities for FlicrParameters {
    fn tags(&self) -> TagKind {
        TagKind::Guided
    }
}

/// Share of marked ACKs in a round trip above which the path is left (Spritz' artifact; specification 3.6).
const ECN_SHARE: f64 = 0.1;

#[derive(Debug)]
struct Flow {
    paths: Arc<GuidedPaths>,
    sampler: Sampler,
    base_rtt: Time,
    current: Option<u32>,
    /// The first round trip of the path is not over.
    grace: bool,
    /// Start of the round trip.
    since: Time,
    acks: u32,
    marked: u32,
}

#[derive(Debug)]
pub struct Flicr {
    parameters: FlicrParameters,
    host_key: u64,
    flows: Slots<Flow>,
}

impl Flicr {
    pub fn new(parameters: FlicrParameters, seed: u64, host_key: u64) -> Self {
        Flicr { parameters, host_key: key(seed, host_key, "flicr"), flows: Slots::new() }
    }
}

impl Flow {
    fn counts(&mut self, now: Time) -> bool {
        if self.grace && now > self.since + self.base_rtt {
            (self.grace, self.acks, self.marked, self.since) = (false, 0, 0, now);
            return false;
        }
        !self.grace
    }
}

impl HostScheme for Flicr {
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let paths = flow.paths.guided.map_or_else(Default::default, Arc::clone);
        let weights = self.parameters.weights;
        let mut sampler = Sampler::of(&paths, weights, None, Stream::keyed(self.host_key, flow.key, "flicr"));
        sampler.set_dead(flow.paths.dead.to_vec());
        let state = Flow {
            paths,
            sampler,
            base_rtt: flow.base_rtt,
            current: None,
            grace: true,
            since: now,
            acks: 0,
            marked: 0,
        };
        self.flows.put(slot, state);
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }
    #[inline]
    fn select(&mut self, now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        let index = match flow.current {
            Some(index) => index,
            None => {
                let index = flow.sampler.draw(&mut Blocks::default(), now);
                (flow.current, flow.grace, flow.since) = (Some(index), true, now);
                index
            }
        };
        Decision::Send(flow.paths.tag(index))
    }
    #[inline]
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        let Some(flow) = self.flows.get(slot) else { return };
        if !flow.counts(now) {
            return;
        }
        flow.acks += 1;
        flow.marked += u32::from(feedback.ecn);
        if now > flow.since + flow.base_rtt {
            if f64::from(flow.marked) > ECN_SHARE * f64::from(flow.acks) {
                flow.current = None;
            }
            (flow.acks, flow.marked, flow.since) = (0, 0, now);
        }
    }
    fn on_nack(&mut self, now: Time, slot: u32, _tag: Tag) {
        if let Some(flow) = self.flows.get(slot).filter(|flow| !flow.grace)
            && flow.counts(now)
        {
            flow.current = None;
        }
    }
    fn on_timeout(&mut self, now: Time, slot: u32, tag: Tag) {
        self.on_nack(now, slot, tag);
        if self.parameters.on_timeout == OnTimeout::Move
            && let Some(flow) = self.flows.get(slot)
        {
            flow.current = None;
        }
    }
    fn on_paths_changed(&mut self, _now: Time, slot: u32, dead: &[bool]) {
        let Some(flow) = self.flows.get(slot) else { return };
        flow.sampler.set_dead(dead.to_vec());
        if flow.current.is_some_and(|index| flow.sampler.is_blocked(&Blocks::default(), index)) {
            flow.current = None;
        }
    }

    fn state(&self, _now: Time, slot: u32, _tag: Option<Tag>) -> State {
        let Some(flow) = self.flows.peek(slot) else { return State::default() };
        let (marked_acks, acks) = (flow.marked.into(), flow.acks.into());
        Columns { marked_acks, acks, grace: flow.grace.into(), since_ps: ps(flow.since) }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{feedback, four_paths, guided_flow, send_at};

    fn us(n: u64) -> Time {
        Time::from_us(n)
    }

    /// Of 200 flows, the number on another path after `events` and another draw.
    fn moved(events: impl Fn(&mut Flicr)) -> usize {
        let paths = four_paths();
        (0..200)
            .filter(|host| {
                let mut s = Flicr::new(FlicrParameters { weights: Weights::Uniform, ..Default::default() }, 1, *host);
                s.open(Time::ZERO, 0, &guided_flow(&paths));
                let before = send_at(&mut s, Time::ZERO);
                events(&mut s);
                send_at(&mut s, us(100)) != before
            })
            .count()
    }

    #[test]
    fn a_dead_path_is_left_within_its_grace() {
        // There is no feedback, so the grace never ends; the paper's flow never moves.
        let paths = four_paths();
        let left = |on_timeout| {
            let parameters = FlicrParameters { weights: Weights::Uniform, on_timeout };
            (0..100).any(|host| {
                let mut s = Flicr::new(parameters.clone(), 1, host);
                s.open(Time::ZERO, 0, &guided_flow(&paths));
                let before = send_at(&mut s, Time::ZERO);
                s.on_timeout(us(1000), 0, before);
                send_at(&mut s, us(1001)) != before
            })
        };
        assert_eq!((left(OnTimeout::Ignore), left(OnTimeout::Move)), (false, true));
    }

    fn acks(s: &mut Flicr, at: u64, clean: u32, marked: u32) {
        (0..clean).for_each(|_| s.on_ack(us(at), 0, &feedback(0, false)));
        (0..marked).for_each(|_| s.on_ack(us(at), 0, &feedback(0, true)));
    }

    #[test]
    fn a_worked_trace() {
        // The base round trip is 10 us. Marks and NACKs of the grace are ignored.
        assert_eq!(
            moved(|s| {
                acks(s, 5, 0, 50);
                s.on_nack(us(6), 0, 0);
                s.on_timeout(us(7), 0, 0)
            }),
            0
        );
        // The grace ends with the first ACK after 10 us, which is ignored; then one mark of ten is not above 0.1.
        assert_eq!(
            moved(|s| {
                acks(s, 11, 1, 0);
                acks(s, 12, 8, 1);
                acks(s, 22, 1, 0)
            }),
            0
        );
        // Two of eleven are: the flow draws a path, in a quarter of the cases the same (50, standard deviation 6.1).
        let left = moved(|s| {
            acks(s, 11, 1, 0);
            acks(s, 12, 8, 2);
            acks(s, 22, 1, 0)
        });
        assert!((130..=170).contains(&left), "{left}");
        let nacked = moved(|s| {
            acks(s, 11, 1, 0);
            s.on_nack(us(12), 0, 0)
        });
        assert!((130..=170).contains(&nacked), "{nacked}");
    }
}
