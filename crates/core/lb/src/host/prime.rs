//! PRIME on the sending host (PRIME §III-C, §III-D and Alg. 1; specification 5.4).
//!
//! Interpretation of points that the paper leaves open:
//! - A skipped path is not used up: it is sent later in the same pass if its penalty ends before.
//! - Equally penalised paths take turns in generation order.
//! - With `decay_on = "generated"` skipped candidates are used up, and each one lets penalties decay.
//! - Feedback of the first BDP is recorded, but takes effect only afterwards.
//!
//! A packet costs O(1) amortised (with `"generated"`, so does a penalty): penalised paths are outside the permutation.

use super::{
    Slots,
    history::{History, MAX_PENALTY, Signal},
    mp_ev::{Generator, PathEncoding},
};
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, Tag,
    registry::{Invalid, SchemeCapabilities, TagKind},
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, Auto, choices, parameters};
use anabranch_units::{PacketsOrBdp, Time};

/// Registry entry.
pub const ABOUT: About = About {
    name: "prime",
    summary: "pseudo-random round robin over all paths, passing over paths with recent congestion",
    source: "PRIME §III, Alg. 1 and 2",
    description: "Every packet takes the next path of a permutation of all uplinks, tier by tier, that is reshuffled \
        after every pass. A path is penalised by an ECN mark (p_ecn), a NACK (p_nack) or a timeout (p_timeout), and skipped \
        until the penalty, which falls by `decay` per packet, ends; if all are penalised, the least penalised \
        is used. Needs a switch scheme that reads multi-part entropy values.",
};

choices! {
    /// Event that lets penalties decay.
    pub enum DecayOn {
        /// Every packet sent (PRIME §III-D).
        Sent = "sent",
        /// Every entropy value generated, including skipped ones (PRIME §III-C).
        Generated = "generated",
    }
}

choices! {
    /// Scope of one round robin and one congestion history.
    pub enum Scope {
        /// One flow.
        Flow = "flow",
        /// The flows of a host to one destination, also consecutive ones.
        Destination = "destination",
        /// All flows of a host over the same set of paths.
        Host = "host",
    }
}

parameters! {
    /// PRIME: congestion-aware multi-part entropy.
    pub struct PrimeParameters {
        /// Penalty of a path after an ECN mark, in packets (or a share of the BDP).
        p_ecn: PacketsOrBdp = PacketsOrBdp::Bdp(250_000), source "ours (specification 5.2); PRIME asks p_nack >> p_ecn";
        /// Penalty of a path after a NACK, in packets (or a share of the BDP).
        p_nack: PacketsOrBdp = PacketsOrBdp::Bdp(1_000_000), source "ours (specification 5.2)";
        /// Penalty of a path after a timeout, at least that of the others; auto: p_nack, on the wire the packets sent
        /// in ten times wire.least_timeout.
        p_timeout: Auto<PacketsOrBdp> = Auto::Auto, source "specification 5.4 (g); on the wire ours: a dead path that is tried again costs a timeout there, a tenth of the time at most";
        /// Decay of every penalty per packet.
        decay: u32 = 1, source "ours: a queue at line rate drains one packet per packet time (PRIME §III-D)";
        /// Event that counts as a packet for the decay.
        decay_on: DecayOn = DecayOn::Sent, source "PRIME §III-D (III-C differs)";
        /// Scope of one round robin and one congestion history.
        scope: Scope = Scope::Flow, source "ours; specification 5.4 (f)";
        /// Packets sent before the history takes effect.
        history_after: PacketsOrBdp = PacketsOrBdp::Bdp(1_000_000), source "PRIME §III-C";
    }
}

impl SchemeCapabilities for PrimeParameters {
    fn tags(&self) -> TagKind {
        TagKind::MultiPart
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.decay <= MAX_PENALTY, "decay", self.decay, "at most 1073741824")
    }
}

#[derive(Debug)]
struct Context {
    generator: Generator,
    history: History,
    /// Packets left to send before the history takes effect.
    blind: u64,
    p_ecn: u32,
    p_nack: u32,
    p_timeout: u32,
}

/// The key of a shared context: destination (if it matters), uplinks, dead paths (if they differ by flow).
type Sharing = (Option<u32>, Vec<u32>, Vec<bool>);

/// PRIME for all flows of a host.
#[derive(Debug)]
pub struct Prime {
    parameters: PrimeParameters,
    decay: u32,
    host_key: u64,
    /// Per slot its flow and the number of its context; unused with scope = flow.
    shared_by: Slots<(u32, SharedFlow)>,
    /// By slot with scope = flow, else in order of creation.
    contexts: Slots<Context>,
    /// Sorted by key; the number is an index into `contexts`.
    shared: Vec<(Sharing, u32)>,
}

/// Properties of a flow with a shared context, needed to find another one.
#[derive(Debug)]
struct SharedFlow {
    key: u64,
    dst: u32,
    uplinks: Vec<u32>,
    bdp_packets: u64,
}

impl Prime {
    /// Creates the scheme of the host `host_key`.
    pub fn new(parameters: PrimeParameters, seed: u64, host_key: u64) -> Self {
        let decay = parameters.decay.min(MAX_PENALTY);
        let host_key = key(seed, host_key, "mp-ev");
        Prime { parameters, decay, host_key, shared_by: Slots::new(), contexts: Slots::new(), shared: Vec::new() }
    }

    /// Returns the heap bytes of flows, contexts and their paths.
    pub fn memory(&self) -> usize {
        let heap = |c: &Context| c.generator.memory() - size_of::<Generator>() + c.history.heap();
        self.contexts.bytes() + self.shared_by.bytes() + self.contexts.iter().map(heap).sum::<usize>()
    }

    fn context(&self, flow_key: u64, shape: PathEncoding, bdp_packets: u64) -> Context {
        let penalty = |p: PacketsOrBdp| p.packets(bdp_packets).min(u64::from(MAX_PENALTY)) as u32;
        let (p_ecn, p_nack) = (penalty(self.parameters.p_ecn), penalty(self.parameters.p_nack));
        let p_timeout = match self.parameters.p_timeout {
            Auto::Value(own) => penalty(own).max(p_nack).max(p_ecn),
            Auto::Auto => p_nack,
        };
        let larger = if p_timeout > p_nack {
            Signal::Timeout
        } else if p_ecn > p_nack {
            Signal::Mark
        } else {
            Signal::Loss
        };
        Context {
            generator: Generator::new(shape, Stream::keyed(self.host_key, flow_key, "mp-ev")),
            history: History::new(shape.paths() as u16, larger),
            blind: self.parameters.history_after.packets(bdp_packets),
            p_ecn,
            p_nack,
            p_timeout,
        }
    }

    fn share(&mut self, slot: u32, flow: SharedFlow, dead: &[bool]) {
        let Some(shape) = PathEncoding::new(&flow.uplinks) else { return };
        let per_destination = self.parameters.scope == Scope::Destination;
        let known_by: Sharing = (
            per_destination.then_some(flow.dst),
            flow.uplinks.clone(),
            if per_destination { Vec::new() } else { dead.to_vec() },
        );
        let number = match self.shared.binary_search_by(|(other, _)| other.cmp(&known_by)) {
            Ok(found) => self.shared[found].1,
            Err(place) => {
                let (number, context) = (self.shared.len() as u32, self.context(flow.key, shape, flow.bdp_packets));
                self.shared.insert(place, (known_by, number));
                self.contexts.put(number, context);
                number
            }
        };
        self.shared_by.put(slot, (number, flow));
        let generated = self.parameters.decay_on == DecayOn::Generated;
        if let Some(context) = self.contexts.get(number) {
            context.set_dead(dead, generated);
        }
    }

    #[inline]
    fn of(&mut self, slot: u32) -> Option<&mut Context> {
        if self.parameters.scope == Scope::Flow {
            return self.contexts.get(slot);
        }
        let number = self.shared_by.get(slot)?.0;
        self.contexts.get(number)
    }

    fn penalise(&mut self, slot: u32, tag: Tag, signal: Signal) {
        let sent = self.parameters.decay_on == DecayOn::Sent;
        let Some(context) = self.of(slot) else { return };
        let Some(path) = context.generator.encoding().path(tag) else { return };
        let penalty = match signal {
            Signal::Mark => context.p_ecn,
            Signal::Loss => context.p_nack,
            Signal::Timeout => context.p_timeout,
        };
        if context.history.penalise(path, signal, penalty) && sent && context.blind == 0 {
            context.generator.set(path, false);
        }
    }
}

impl Context {
    #[inline]
    fn select_blind(&mut self, decay: u32, sent: bool) -> Tag {
        let tag = self.generator.generate().map_or(0, |pick| pick.tag);
        self.history.tick(decay, |_| ());
        self.blind -= 1;
        if self.blind == 0 && sent {
            for path in self.history.waiting() {
                self.generator.set(path, false);
            }
        }
        tag
    }

    /// Selects the next path without penalty, or the least penalised. Penalised paths are outside the permutation.
    #[inline]
    fn select(&mut self, decay: u32) -> Tag {
        let Context { generator, history, .. } = self;
        if history.all_wait() {
            history.release(|path| generator.set(path, true));
        }
        let tag = generator.generate().map_or(0, |pick| pick.tag);
        history.tick(decay, |path| generator.set(path, true));
        tag
    }

    /// As `select`, but steps over penalised paths, each of which lets penalties decay.
    fn select_walking(&mut self, decay: u32) -> Tag {
        loop {
            if self.history.all_wait() {
                self.history.release(|_| ());
            }
            let Some(pick) = self.generator.generate() else { return 0 };
            let waits = self.history.waits(pick.path);
            self.history.tick(decay, |_| ());
            if !waits {
                return pick.tag;
            }
        }
    }

    fn set_dead(&mut self, dead: &[bool], generated: bool) {
        let Context { generator, history, blind, .. } = self;
        let heeded = !generated && *blind == 0;
        let mut dead_now = Vec::new();
        history.set_dead(dead, |path, usable| dead_now.push((path, usable)));
        for (path, usable) in dead_now {
            generator.set(path, usable || !heeded && history.waits(path));
        }
    }
}

impl HostScheme for Prime {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        self.close(slot);
        let Some(shape) = PathEncoding::new(flow.paths.uplinks) else { return };
        if self.parameters.scope == Scope::Flow {
            let mut context = self.context(flow.key, shape, flow.bdp_packets);
            if !flow.paths.dead.is_empty() {
                context.set_dead(flow.paths.dead, self.parameters.decay_on == DecayOn::Generated);
            }
            self.contexts.put(slot, context);
        } else {
            let uplinks = flow.paths.uplinks.to_vec();
            let known = SharedFlow { key: flow.key, dst: flow.dst, uplinks, bdp_packets: flow.bdp_packets };
            self.share(slot, known, flow.paths.dead);
        }
    }

    fn close(&mut self, slot: u32) {
        if self.parameters.scope == Scope::Flow {
            self.contexts.take(slot);
        } else {
            self.shared_by.take(slot);
        }
    }

    #[inline]
    fn select(&mut self, _now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        let (decay, sent) = (self.decay, self.parameters.decay_on == DecayOn::Sent);
        let Some(context) = self.of(slot) else { return Decision::Send(0) };
        Decision::Send(if context.blind > 0 {
            context.select_blind(decay, sent)
        } else if sent {
            context.select(decay)
        } else {
            context.select_walking(decay)
        })
    }

    #[inline]
    fn on_ack(&mut self, _now: Time, slot: u32, feedback: &Feedback) {
        if feedback.ecn {
            self.penalise(slot, feedback.tag, Signal::Mark);
        }
    }

    fn on_nack(&mut self, _now: Time, slot: u32, tag: Tag) {
        self.penalise(slot, tag, Signal::Loss);
    }

    fn on_timeout(&mut self, _now: Time, slot: u32, tag: Tag) {
        self.penalise(slot, tag, Signal::Timeout);
    }

    fn on_paths_changed(&mut self, _now: Time, slot: u32, dead: &[bool]) {
        if self.parameters.scope == Scope::Host {
            if let Some((_, flow)) = self.shared_by.take(slot) {
                self.share(slot, flow, dead);
            }
            return;
        }
        let generated = self.parameters.decay_on == DecayOn::Generated;
        if let Some(context) = self.of(slot) {
            context.set_dead(dead, generated);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{flow, mark, send};
    use anabranch_settings::{Parameters, Raw};

    fn prime(sets: &[(&str, Raw)], uplinks: &[u32]) -> Prime {
        let mut p = PrimeParameters { history_after: PacketsOrBdp::Packets(0), ..Default::default() };
        for (name, value) in sets {
            p.set(name, value).unwrap();
        }
        let mut scheme = Prime::new(p, 1, 2);
        scheme.open(Time::ZERO, 0, &flow(uplinks));
        scheme
    }

    #[test]
    fn a_worked_trace_on_two_paths() {
        // p_ecn = 3, decay 1. After the mark on path a its penalty is 3, 2, 1 for the next three selections: they
        // take b. The fourth takes a, which this pass has not used yet.
        let mut s = prime(&[("p_ecn", Raw::Int(3))], &[2]);
        let (a, b) = (send(&mut s), send(&mut s));
        assert_eq!(a + b, 1, "both paths, once each");
        mark(&mut s, a);
        assert_eq!([send(&mut s), send(&mut s), send(&mut s), send(&mut s)], [b, b, b, a]);
        // NACK on both: 5 and, one packet later, 5; the earlier one has decayed more.
        let mut s = prime(&[("p_ecn", Raw::Int(3)), ("p_nack", Raw::Int(5))], &[2]);
        let first = send(&mut s);
        s.on_nack(Time::ZERO, 0, first);
        let second = send(&mut s);
        assert_ne!(first, second);
        s.on_nack(Time::ZERO, 0, second);
        // Penalties (first, second) at selection: (4,5) (3,4) (2,3) (1,2), then (0,1), all to the first path.
        for _ in 0..5 {
            assert_eq!(send(&mut s), first);
        }
        // Now (0,0). The second path has missed the current pass, so it is used; then a pass has both.
        assert_eq!(send(&mut s), second);
        let mut both = [send(&mut s), send(&mut s)];
        both.sort();
        assert_eq!(both, [0, 1]);
    }

    #[test]
    fn feedback_of_the_first_bdp_is_recorded_but_ignored() {
        // History from packet 3 on, p_nack = 10. The NACK comes after packet 1, decays at packets 2 and 3: 8 left.
        let mut s = prime(&[("history_after", Raw::Int(3)), ("p_nack", Raw::Int(10))], &[2]);
        let a = send(&mut s);
        s.on_nack(Time::ZERO, 0, a);
        let sent = [send(&mut s), send(&mut s)];
        let b = 1 - a;
        assert_eq!(sent[0], b);
        for _ in 0..8 {
            assert_eq!(send(&mut s), b);
        }
        let next = [send(&mut s), send(&mut s)];
        assert!(next.contains(&a));
    }

    #[test]
    fn generated_decay_counts_skipped_candidates() {
        // 2 paths, p_ecn = 4. With "sent" path a misses 4 packets. With "generated" each pass of two candidates sends
        // one packet on b and decays twice.
        let missed = |decay_on: &str| {
            let mut s = prime(&[("p_ecn", Raw::Int(4)), ("decay_on", Raw::Text(decay_on.into()))], &[2]);
            let (a, _) = (send(&mut s), send(&mut s));
            mark(&mut s, a);
            (0..).take_while(|_| send(&mut s) != a).count()
        };
        assert_eq!(missed("sent"), 4);
        // Penalties in passes 1 and 2 are 4, 3 and 2, 1; in pass 3 path a is free, and b may precede it.
        assert!((2..=3).contains(&missed("generated")));
    }

    #[test]
    fn scopes_share_their_contexts() {
        for (scope, shared_with_other_destination) in
            [("flow", None), ("destination", Some(false)), ("host", Some(true))]
        {
            let mut s = prime(&[("scope", Raw::Text(scope.into())), ("p_nack", Raw::Int(1000))], &[4]);
            let same = FlowInfo { key: 77, ..flow(&[4]) };
            let other = FlowInfo { key: 78, dst: 99, ..flow(&[4]) };
            s.open(Time::ZERO, 1, &same);
            s.open(Time::ZERO, 2, &other);
            let bad = send(&mut s);
            s.on_nack(Time::ZERO, 0, bad);
            let uses = |s: &mut Prime, slot| {
                (0..8).any(|psn| {
                    s.select(
                        Time::ZERO,
                        slot,
                        &Outgoing { psn, bytes: 1, retransmission: false, eligible_at: Time::ZERO },
                    ) == Decision::Send(bad)
                })
            };
            assert!(!uses(&mut s, 0), "{scope}");
            assert_eq!(uses(&mut s, 1), scope == "flow", "{scope}");
            assert_eq!(!uses(&mut s, 2), shared_with_other_destination == Some(true), "{scope}");
        }
    }

    #[test]
    fn a_flow_takes_little_memory() {
        // 8,192 hosts have 64 paths; the target is 1.2 KB per flow. 16 flows fill the slots.
        let mut s = prime(&[], &[64]);
        (0..16).for_each(|slot| s.open(Time::ZERO, slot, &flow(&[64])));
        assert!(s.memory() / 16 < 1200, "{}", s.memory() / 16);
    }
}
