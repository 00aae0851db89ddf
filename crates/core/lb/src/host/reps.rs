//! REPS, recycled entropies for packet spraying (specification 6.1; arXiv 2407.21625).

use super::{Slots, recycle::Recycle, times};
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, Tag,
    hash::EntropySpace,
    registry::{Invalid, SchemeCapabilities},
    state::{ps, state},
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, choices, parameters};
use anabranch_units::{PacketsOrBdp, Time};

pub(crate) const ABOUT: About = About {
    name: "reps",
    summary: "reuses entropy values whose packets came back unmarked",
    source: "specification 6.1; REPS (arXiv 2407.21625) and its artifact",
    description: "The entropy values of unmarked ACKs are kept in a circular buffer of 8 and each is reused once; \
        without one a random value explores. A timeout freezes the buffer, whose values are then repeated until \
        10 ms have passed. Variant `legacy` is an unlimited queue without freezing.",
};

state! {
    /// Entropy values in the buffer that may be used.
    fresh_values: "values";
    /// Entropy values in the buffer.
    values: "values";
    /// End of the freeze; empty: the buffer is not frozen.
    frozen_until_ps: "ps";
    /// Packets left that explore.
    explore_packets: "packets";
}

choices! {
    /// Version of REPS.
    pub enum RepsVariant {
        /// The circular buffer of the published scheme.
        Circular = "circular",
        /// The queue of its first version: a window of packets in round robin, then recycled values.
        Legacy = "legacy",
    }
}

parameters! {
    pub struct RepsParameters {
        /// Version of REPS.
        variant: RepsVariant = RepsVariant::Circular, source "specification 6.1", Reading;
        /// Entries of the circular buffer.
        buffer: u32 = 8, source "REPS artifact (specification 6.1)", Expert;
        /// Number of entropy values.
        entropy_values: u32 = 65536, source "REPS: 2^8 to 2^16", Expert;
        /// Uses of a value that returned unmarked; the packets per ACK where ACKs are coalesced.
        usable_lifetime: u32 = 1, source "REPS artifact (specification 6.1)", Expert;
        /// Set if switches trim: then every timeout freezes, otherwise one without signs of congestion.
        with_trimming: bool = true, source "REPS artifact (specification 6.1)", Expert;
        /// Without trimming: a timeout is not attributed to congestion while no round trip exceeds this, in base round
        /// trips.
        freeze_below: f64 = 1.65, source "REPS artifact (specification 6.1)", Expert;
    }
}

impl SchemeCapabilities for RepsParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless((1..=1 << 15).contains(&self.buffer), "buffer", self.buffer, "1 to 32768")?;
        Invalid::unless(self.entropy_values > 0, "entropy_values", self.entropy_values, "at least 1")?;
        Invalid::unless(self.usable_lifetime > 0, "usable_lifetime", self.usable_lifetime, "at least 1")?;
        Invalid::unless(self.freeze_below >= 0.0, "freeze_below", self.freeze_below, "at least 0")
    }
}

/// Minimum time that the buffer remains frozen (REPS artifact).
const FREEZE_TIME: Time = Time::from_ms(10);
/// Legacy: packets initially sent in round robin, at most one per entropy value. Ours: the initial window.
const FIRST_WINDOW: PacketsOrBdp = PacketsOrBdp::Bdp(1_500_000);

#[derive(Clone, Copy, Debug, Default)]
struct BufferEntry {
    tag: Tag,
    /// Remaining uses; 0: invalid.
    uses: u32,
}

#[derive(Debug)]
struct Circular {
    entries: Box<[BufferEntry]>,
    head: u32,
    count: u32,
    fresh: u32,
    head_frozen: u32,
    /// While frozen: earliest time at which feedback thaws it.
    frozen_until: Option<Time>,
    explore: u64,
    /// One BDP.
    explore_after: u64,
    largest_rtt: Time,
    /// Without trimming, a timeout freezes only below this round trip.
    freeze_below: Time,
}

#[derive(Debug)]
enum State {
    Circular(Circular),
    Legacy { good: Recycle, next: Tag, first: u64 },
}

#[derive(Debug)]
struct Flow {
    stream: Stream,
    state: State,
}

#[derive(Debug)]
pub struct Reps {
    parameters: RepsParameters,
    host_key: u64,
    space: EntropySpace,
    flows: Slots<Flow>,
}

impl Reps {
    pub fn new(parameters: RepsParameters, seed: u64, host_key: u64) -> Self {
        let space = EntropySpace::new(parameters.entropy_values);
        Reps { parameters, host_key: key(seed, host_key, "reps"), space, flows: Slots::new() }
    }
}

impl Circular {
    fn new(parameters: &RepsParameters, flow: &FlowInfo<'_>) -> Self {
        Circular {
            entries: vec![BufferEntry::default(); parameters.buffer.clamp(1, 1 << 15) as usize].into(),
            head: 0,
            count: 0,
            fresh: 0,
            head_frozen: 0,
            frozen_until: None,
            explore: 0,
            explore_after: flow.bdp_packets,
            largest_rtt: Time::ZERO,
            freeze_below: times(flow.base_rtt, parameters.freeze_below),
        }
    }

    #[inline]
    fn select(&mut self) -> Option<Tag> {
        if self.explore > 0 {
            self.explore -= 1;
            return None;
        }
        if self.frozen_until.is_some() && self.count > 0 {
            let at = self.head_frozen;
            self.head_frozen = if at + 1 >= self.count { 0 } else { at + 1 };
            // Reused even if invalid.
            return Some(self.take(at));
        }
        if self.fresh == 0 {
            return None;
        }
        let size = self.entries.len() as u32;
        let oldest = if self.head >= self.fresh { self.head - self.fresh } else { self.head + size - self.fresh };
        Some(self.take(oldest))
    }

    #[inline]
    fn take(&mut self, at: u32) -> Tag {
        let entry = &mut self.entries[at as usize];
        if entry.uses > 0 {
            entry.uses -= 1;
            self.fresh -= u32::from(entry.uses == 0);
        }
        entry.tag
    }

    #[inline]
    fn keep(&mut self, tag: Tag, uses: u32) {
        let size = self.entries.len() as u32;
        let entry = &mut self.entries[self.head as usize];
        self.fresh += u32::from(entry.uses == 0);
        *entry = BufferEntry { tag, uses };
        self.head = if self.head + 1 == size { 0 } else { self.head + 1 };
        self.count = (self.count + 1).min(size);
    }

    /// Thaws the buffer at the first feedback after the freeze, empties it and starts exploring.
    #[inline]
    fn thaw(&mut self, now: Time) {
        if self.frozen_until.is_some_and(|until| now >= until) {
            self.frozen_until = None;
            self.entries.fill(BufferEntry::default());
            (self.head, self.count, self.fresh, self.head_frozen) = (0, 0, 0, 0);
            self.explore = self.explore_after;
        }
    }
}

impl HostScheme for Reps {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let mut stream = Stream::keyed(self.host_key, flow.key, "reps");
        let state = match self.parameters.variant {
            RepsVariant::Circular => State::Circular(Circular::new(&self.parameters, flow)),
            RepsVariant::Legacy => {
                let first = FIRST_WINDOW.packets(flow.bdp_packets);
                State::Legacy {
                    good: Recycle::new(first.saturating_add(flow.bdp_packets)),
                    next: self.space.draw(&mut stream),
                    first: first.min(u64::from(self.space.values())),
                }
            }
        };
        self.flows.put(slot, Flow { stream, state });
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }

    #[inline]
    fn select(&mut self, _now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        let recycled = match &mut flow.state {
            State::Circular(circular) => circular.select(),
            State::Legacy { next, first, .. } if *first > 0 => {
                *first -= 1;
                let tag = *next;
                *next = self.space.after(tag);
                Some(tag)
            }
            State::Legacy { good, .. } => good.pop(),
        };
        Decision::Send(recycled.unwrap_or_else(|| self.space.draw(&mut flow.stream)))
    }

    #[inline]
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        let Some(flow) = self.flows.get(slot) else { return };
        let uses = self.parameters.usable_lifetime.max(1);
        match &mut flow.state {
            State::Circular(circular) => {
                circular.largest_rtt = circular.largest_rtt.max(feedback.rtt.unwrap_or(Time::ZERO));
                circular.thaw(now);
                if !feedback.ecn {
                    circular.keep(feedback.tag, uses);
                }
            }
            State::Legacy { good, .. } if !feedback.ecn => (0..uses).for_each(|_| good.push(feedback.tag)),
            State::Legacy { .. } => {}
        }
    }

    fn on_nack(&mut self, now: Time, slot: u32, _tag: Tag) {
        if let Some(Flow { state: State::Circular(circular), .. }) = self.flows.get(slot) {
            circular.thaw(now);
        }
    }

    fn on_timeout(&mut self, now: Time, slot: u32, _tag: Tag) {
        let trimming = self.parameters.with_trimming;
        let Some(Flow { state: State::Circular(circular), .. }) = self.flows.get(slot) else { return };
        let failure = if trimming { circular.explore == 0 } else { circular.largest_rtt < circular.freeze_below };
        if failure && circular.frozen_until.is_none() {
            circular.frozen_until = Some(now.saturating_add(FREEZE_TIME));
        }
    }

    fn state(&self, _now: Time, slot: u32, _tag: Option<Tag>) -> crate::State {
        let Some(flow) = self.flows.peek(slot) else { return crate::State::default() };
        let columns = match &flow.state {
            State::Circular(of) => Columns {
                fresh_values: of.fresh.into(),
                values: of.count.into(),
                frozen_until_ps: of.frozen_until.map_or(f64::NAN, ps),
                explore_packets: of.explore as f64,
            },
            State::Legacy { good, first, .. } => Columns {
                fresh_values: good.len().into(),
                values: good.len().into(),
                frozen_until_ps: f64::NAN,
                explore_packets: *first as f64,
            },
        };
        columns.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{clean, feedback, flow, mark, send};

    /// Values 0..2^32-1, so a random one is none of the small ones used here (chance 2^-28 per draw).
    fn reps(parameters: RepsParameters) -> Reps {
        let mut s = Reps::new(RepsParameters { entropy_values: u32::MAX, ..parameters }, 1, 2);
        s.open(Time::ZERO, 0, &flow(&[8]));
        s
    }
    fn explores(s: &mut Reps) -> bool {
        send(s) > 100
    }

    #[test]
    fn a_worked_trace_of_the_buffer() {
        let mut s = reps(RepsParameters::default());
        assert!(explores(&mut s), "nothing is known");
        // Three clean ACKs, one marked in between: used oldest first, once each.
        clean(&mut s, 1);
        mark(&mut s, 2);
        clean(&mut s, 3);
        clean(&mut s, 4);
        assert_eq!([send(&mut s), send(&mut s), send(&mut s)], [1, 3, 4]);
        assert!(explores(&mut s));
        // Ten clean ACKs: the buffer of 8 keeps the last eight.
        (10..20).for_each(|tag| clean(&mut s, tag));
        assert_eq!((0..8).map(|_| send(&mut s)).collect::<Vec<_>>(), (12..20).collect::<Vec<_>>());
        assert!(explores(&mut s));
    }

    #[test]
    fn a_worked_trace_of_freezing() {
        // BDP 100 packets, frozen for 10 ms.
        let mut s = reps(RepsParameters::default());
        let late = Time::from_ms(10);
        clean(&mut s, 1);
        clean(&mut s, 2);
        assert_eq!(send(&mut s), 1);
        s.on_timeout(Time::ZERO, 0, 7);
        // Frozen: 1 and 2 in turn, valid or not; values that return unmarked join them.
        assert_eq!([send(&mut s), send(&mut s), send(&mut s)], [1, 2, 1]);
        clean(&mut s, 3);
        assert_eq!([send(&mut s), send(&mut s), send(&mut s), send(&mut s)], [2, 3, 1, 2]);
        // A second timeout does not prolong it. The first feedback at 10 ms thaws, explores one BDP, keeps its own tag.
        s.on_timeout(Time::from_ms(5), 0, 7);
        s.on_ack(late, 0, &feedback(5, false));
        s.on_timeout(late, 0, 7);
        for _ in 0..100 {
            assert!(explores(&mut s));
        }
        assert_eq!(send(&mut s), 5);
        assert!(explores(&mut s));
        let mut s = reps(RepsParameters::default());
        s.on_timeout(Time::ZERO, 0, 7);
        assert!(explores(&mut s));
    }

    #[test]
    fn without_trimming_congestion_prevents_freezing() {
        // Base RTT 10 us: a round trip of 16.4 us is below 1.65 times that, 16.5 us is not.
        for (rtt, freezes) in [(16_400, true), (16_500, false)] {
            let mut s = reps(RepsParameters { with_trimming: false, ..Default::default() });
            s.on_ack(Time::ZERO, 0, &Feedback { rtt: Some(Time::from_ns(rtt)), ..feedback(1, false) });
            assert_eq!(send(&mut s), 1);
            s.on_timeout(Time::ZERO, 0, 7);
            assert_eq!(send(&mut s) == 1, freezes);
        }
    }

    #[test]
    fn coalesced_acks_give_several_uses() {
        let mut s = reps(RepsParameters { usable_lifetime: 2, ..Default::default() });
        clean(&mut s, 1);
        clean(&mut s, 2);
        assert_eq!([send(&mut s), send(&mut s), send(&mut s), send(&mut s)], [1, 1, 2, 2]);
        assert!(explores(&mut s));
    }

    #[test]
    fn legacy_begins_with_a_window_in_turn() {
        // 1.5 BDP = 150 packets in turn, then the queue, then random.
        let mut s = reps(RepsParameters { variant: RepsVariant::Legacy, ..Default::default() });
        let start = send(&mut s);
        clean(&mut s, 1);
        clean(&mut s, 2);
        mark(&mut s, 3);
        for i in 1..150 {
            assert_eq!(send(&mut s), start + i);
        }
        assert_eq!([send(&mut s), send(&mut s)], [1, 2]);
        assert!(explores(&mut s));
    }
}
