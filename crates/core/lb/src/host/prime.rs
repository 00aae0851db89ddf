//! PRIME on the sending host (PRIME §III-C, §III-D and Alg. 1; specification 5.4).
//!
//! Interpretation of points that the paper leaves open:
//! - A skipped path is not used up: it is sent later in the same pass if its penalty ends before.
//! - Equally penalised paths take turns in generation order.
//! - With `decay_on = "generated"` skipped candidates are used up, and each one lets penalties decay.
//! - Feedback of the first BDP is recorded, but takes effect only afterwards.
//! - Guided paths (§VI: other topologies need a "mapping between each part of MP-EV to the topology") are one part, the number
//!   of the path in its list: lists are not as long for every first choice.
//! - With `signal = "csig"` (§VII names CSIG for "fine-grained congestion signals" that "avoid specific links") marks have no effect.
//!   A packet whose most loaded link has at least `csig_least` penalises all paths over that link by `p_ecn`, one that a link has
//!   trimmed by `p_nack`: none if all paths share the link. Timeouts penalise their path.
//!
//! A packet costs O(1) amortised (with `"generated"`, so does a penalty): penalised paths are outside the permutation.
//! The history of a path takes `ceil(log2(p_max` + 1)) bits in hardware, `p_max` being the largest penalty (PRIME §III-D;
//! specification 5.4 has the budget).

mod context;
mod parts;
mod tuning;

use super::{
    Slots,
    history::{MAX_PENALTY, Signal},
    mp_ev::{Generator, MAX_PATHS, PathEncoding},
    times,
};
use crate::{
    Decision, Feedback, FlowInfo, GuidedPaths, HostScheme, LinkSignal, Outgoing, PathSpace, State, Tag,
    registry::{Invalid, SchemeCapabilities, TagKind},
    state::state,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, Auto, choices, parameters};
use anabranch_units::{PacketsOrBdp, PacketsOrPasses, Time};
use context::{Context, Penalties, Rules};
use std::sync::Arc;

pub(crate) const ABOUT: About = About {
    name: "prime",
    summary: "pseudo-random round robin over all paths, passing over paths with recent congestion",
    source: "PRIME §III, Alg. 1 and 2",
    description: "Every packet takes the next path of a permutation of all uplinks, tier by tier, that is reshuffled \
        after every pass. A path is penalised by an ECN mark (p_ecn), a NACK (p_nack) or a timeout (p_timeout), and skipped \
        until the penalty, which falls by `decay` per packet, ends; if all are penalised, the least penalised \
        is used. With more hosts than uplinks, where every path is congested, it needs decay_on = \"drained\": penalties \
        counted in packets sent outlast the queues. Needs a switch scheme that reads multi-part entropy values.",
};

state! {
    /// Penalty that is left on the path chosen or reported on.
    penalty_packets: "packets";
    /// Paths that are passed over for their penalties; with `history = "part"`, values of parts.
    skipped_paths: "paths";
    /// Packets until the history takes effect.
    blind_packets: "packets";
}

choices! {
    /// Event that lets penalties decay.
    pub enum DecayOn {
        /// Every packet sent (PRIME §III-D).
        Sent = "sent",
        /// Every entropy value generated, including skipped ones (PRIME §III-C).
        Generated = "generated",
        /// Every packet time at the flow's maximum rate since its last packet: what a queue drains meanwhile (PRIME §III-D:
        /// "based on the drainage rate of the switch").
        Drained = "drained",
    }
}

choices! {
    /// What a penalty belongs to.
    pub enum HistoryOf {
        /// The whole multi-part value, that is the path: §III-D indexes the history by values of which "each EV
        /// uniquely represents a path".
        Path = "path",
        /// Each part of the value: §III-C skips a value if "any EV in MP-EV is experiencing congestion". Differs from
        /// `path` on three tiers alone.
        Part = "part",
    }
}

choices! {
    /// Effect of a NACK on a path that a mark has penalised.
    pub enum NackOnMarked {
        /// Its penalty becomes p_nack, the larger one: §III-C lets the history reflect that "a NACK indicates severe
        /// congestion".
        Replace = "replace",
        /// None: §III-D "avoids re-penalizing a path that is ECN-marked".
        Ignore = "ignore",
    }
}

choices! {
    /// Sign of congestion.
    pub enum PrimeSignal {
        /// A mark or a NACK penalises the path of its packet.
        Ecn = "ecn",
        /// The most loaded link of a packet's path, which switches write into it (`fabric.csig`), penalises all over it, as
        /// of tables without failures.
        Csig = "csig",
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

choices! {
    /// Paths that entropy values name.
    pub enum PrimeValues {
        /// An uplink per tier.
        Structured = "structured",
        /// The paths of a guided list (Spritz), at most the 32,000 fastest.
        Guided = "guided",
    }
}

parameters! {
    /// PRIME: congestion-aware multi-part entropy.
    pub struct PrimeParameters {
        /// Penalty of a path after an ECN mark, in packets (or a share of the BDP, or passes over the paths). Below one
        /// pass it only delays a path inside it: a path at the share r of the healthy rate, one of U, needs U (1/r - 1)
        /// packets. auto: a path's own, by how often it came up until it was marked again, at least one pass.
        p_ecn: Auto<PacketsOrPasses> = Auto::Value(PacketsOrPasses::Packets(PacketsOrBdp::Bdp(250_000))), source "ours (specification 5.2); PRIME requires p_nack >> p_ecn; auto: ours (specification 5.4 (i))";
        /// Limit of p_ecn = "auto".
        p_ecn_max: PacketsOrPasses = PacketsOrPasses::Passes(16_000_000), source "ours: a path at a sixteenth of the healthy rate", Expert;
        /// Least packets between two changes of a path's p_ecn = "auto": marks that come sooner are of earlier packets.
        p_ecn_settle: PacketsOrBdp = PacketsOrBdp::Bdp(1_000_000), source "ours: one round trip", Expert;
        /// Penalty of a path after a NACK, in packets (or a share of the BDP, or passes over the paths).
        p_nack: PacketsOrPasses = PacketsOrPasses::Packets(PacketsOrBdp::Bdp(1_000_000)), source "ours (specification 5.2)", Expert;
        /// Penalty of a path after a timeout, at least that of the others; auto: p_nack, on the wire the packets sent
        /// in ten times wire.least_timeout.
        p_timeout: Auto<PacketsOrPasses> = Auto::Auto, source "specification 5.4 (g); on the wire ours: a dead path that is tried again costs a timeout there, a tenth of the time at most", Expert;
        /// Decay of every penalty per packet.
        decay: u32 = 1, source "ours: a queue at line rate drains one packet per packet time (PRIME §III-D)", Expert;
        /// Event that counts as a packet for the decay.
        decay_on: DecayOn = DecayOn::Sent, source "PRIME §III-D: \"when sending a new packet all penalty values would be updated\"; §III-C: \"after each MP-EV generation\"", Reading;
        /// What a penalty belongs to.
        history: HistoryOf = HistoryOf::Path, source "PRIME §III-D (III-C differs; specification 5.4 (c))", Reading;
        /// Effect of a NACK on a path that a mark has penalised.
        nack_on_marked: NackOnMarked = NackOnMarked::Replace, source "PRIME §III-C (III-D can be read otherwise; specification 5.4 (b))", Reading;
        /// Sign of congestion.
        signal: PrimeSignal = PrimeSignal::Ecn, source "PRIME §III-C; csig: ours, §VII names it as future work", Reading;
        /// With `signal = "csig"`: least load of a link that penalises its paths, a delay in base round trips (a BDP at the flow's
        /// rate) or a utilisation, above 1 none; auto: 1, which no full queue of a BDP before a healthy link exceeds, or a
        /// utilisation of 0.98.
        csig_least: Auto<f64> = Auto::Auto, within 0.0..=1_000_000.0, source "ours: of 0.4 to 1.6 the least that was ahead on three tiers", Expert;
        /// Scope of one round robin and one congestion history.
        scope: Scope = Scope::Flow, source "ours; specification 5.4 (f)", Reading;
        /// Packets sent before the history takes effect.
        history_after: PacketsOrBdp = PacketsOrBdp::Bdp(1_000_000), source "PRIME §III-C", Reading;
        /// Paths that entropy values name; switches must read them so.
        values: PrimeValues = PrimeValues::Structured, source "PRIME §III-D; `guided` is ours (PRIME §VI: other topologies)", Expert;
    }
}

impl SchemeCapabilities for PrimeParameters {
    fn tags(&self) -> TagKind {
        match self.values {
            PrimeValues::Structured => TagKind::MultiPart,
            PrimeValues::Guided => TagKind::Guided,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        let is_shared = self.values == PrimeValues::Guided && self.scope != Scope::Flow;
        Invalid::unless(!is_shared, "values", "guided", "structured, or `scope = \"flow\"`")?;
        let names_links = self.values == PrimeValues::Structured && self.history == HistoryOf::Path;
        let expected =
            "\"ecn\", or `values = \"structured\"` and `history = \"path\"`, in which a link is a set of paths";
        Invalid::unless(self.signal == PrimeSignal::Ecn || names_links, "signal", "\"csig\"", expected)?;
        Invalid::unless(self.decay <= MAX_PENALTY, "decay", self.decay, "at most 1073741824")
    }

    fn without_effect(&self, _tags: TagKind) -> Vec<(&'static str, &'static str)> {
        let is_auto = self.p_ecn == Auto::Auto;
        let all = [
            (self.signal == PrimeSignal::Ecn, ("csig_least", "signal = \"ecn\"")),
            (!is_auto, ("p_ecn_max", "a p_ecn that is not \"auto\"")),
            (!is_auto, ("p_ecn_settle", "a p_ecn that is not \"auto\"")),
            // A path of a list is one part.
            (self.values == PrimeValues::Guided, ("history", "values = \"guided\"")),
        ];
        all.into_iter().filter_map(|(is_idle, pair)| is_idle.then_some(pair)).collect()
    }

    fn reads_signals(&self) -> Option<&'static str> {
        (self.signal == PrimeSignal::Csig).then_some("signal = \"csig\"")
    }
}

impl PrimeParameters {
    fn rules(&self) -> Rules {
        let (walks, by_part) = (self.decay_on == DecayOn::Generated, self.history == HistoryOf::Part);
        Rules {
            decay: self.decay.min(MAX_PENALTY),
            walks,
            by_part,
            keeps_marks: self.nack_on_marked == NackOnMarked::Ignore,
            by_time: self.decay_on == DecayOn::Drained,
            plain: !walks && !by_part && self.p_ecn != Auto::Auto,
        }
    }

    /// Returns the penalties over this many alternatives.
    fn penalties(&self, bdp_packets: u64, alternatives: u32) -> Penalties {
        let packets = |size: PacketsOrPasses| {
            size.packets(bdp_packets, u64::from(alternatives)).min(u64::from(MAX_PENALTY)) as u32
        };
        let (mark, loss) = (self.p_ecn.value().map_or(0, packets), packets(self.p_nack));
        let timeout = self.p_timeout.value().map_or(loss, |own| packets(own).max(loss).max(mark));
        Penalties { mark, loss, timeout, pass: alternatives, limit: packets(self.p_ecn_max) }
    }
}

/// The key of a shared context: destination (if it matters), uplinks, dead paths (if they differ by flow).
type Sharing = (Option<u32>, Vec<u32>, Vec<bool>);

#[derive(Debug)]
pub struct Prime {
    parameters: PrimeParameters,
    rules: Rules,
    host_key: u64,
    /// Per slot its flow and the number of its context; unused with scope = flow.
    shared_by: Slots<(u32, SharedFlow)>,
    /// By slot with scope = flow, else in order of creation.
    contexts: Slots<Context>,
    /// By slot the paths of flows over guided paths.
    lists: Slots<Arc<GuidedPaths>>,
    /// Sorted by key; the number is an index into `contexts`.
    shared: Vec<(Sharing, u32)>,
    /// The signal of the trimmed packet whose NACK follows, with its tag.
    trim: (Tag, LinkSignal),
    /// Parts of a value before those of the switches: 1 where the first names a plane.
    before: usize,
}

/// Properties of a flow with a shared context, needed to find another one.
#[derive(Debug)]
struct SharedFlow {
    key: u64,
    dst: u32,
    uplinks: Vec<u32>,
    bdp_packets: u64,
    packet_time: Time,
}

impl Prime {
    pub fn new(parameters: PrimeParameters, seed: u64, host_key: u64) -> Self {
        let (rules, host_key) = (parameters.rules(), key(seed, host_key, "mp-ev"));
        Prime {
            parameters,
            rules,
            host_key,
            shared_by: Slots::new(),
            contexts: Slots::new(),
            lists: Slots::new(),
            shared: Vec::new(),
            trim: (0, LinkSignal::default()),
            before: 0,
        }
    }

    fn context(&self, flow_key: u64, shape: PathEncoding, bdp_packets: u64, packet_time: Time) -> Context {
        let parameters = &self.parameters;
        let round_trip = Time::from_ps(packet_time.ps().saturating_mul(bdp_packets));
        let settle = parameters.p_ecn_settle.packets(bdp_packets).saturating_mul(u64::from(self.rules.decay));
        Context::new(
            Generator::new(shape, Stream::keyed(self.host_key, flow_key, "mp-ev")),
            &self.rules,
            |alternatives| parameters.penalties(bdp_packets, alternatives),
            parameters.history_after.packets(bdp_packets),
            (parameters.p_ecn == Auto::Auto).then(|| settle.min(u64::from(MAX_PENALTY)) as u32),
            packet_time,
            times(round_trip, parameters.csig_least.value().unwrap_or(1.0)),
        )
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
                let (number, context) =
                    (self.shared.len() as u32, self.context(flow.key, shape, flow.bdp_packets, flow.packet_time));
                self.shared.insert(place, (known_by, number));
                self.contexts.put(number, context);
                number
            }
        };
        self.shared_by.put(slot, (number, flow));
        if let Some(context) = self.contexts.get(number) {
            context.set_dead(dead, &self.rules);
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

    fn heeds(&mut self, slot: u32, signal: LinkSignal) -> bool {
        let share = self.parameters.csig_least.value().unwrap_or(0.98);
        self.of(slot).is_some_and(|context| signal.is_at_least(context.least_delay, share))
    }

    fn encoding(&self, paths: &PathSpace<'_>) -> Option<PathEncoding> {
        match self.parameters.values {
            PrimeValues::Structured => PathEncoding::new(paths.uplinks),
            PrimeValues::Guided => PathEncoding::new(&[paths.guided?.len().min(MAX_PATHS)]),
        }
    }

    /// Penalises the path of a tag, or all over the link that its first `parts` name.
    fn penalise(&mut self, slot: u32, tag: Tag, parts: Option<usize>, signal: Signal) {
        let rules = self.rules;
        let tag = if self.parameters.values == PrimeValues::Guided { GuidedPaths::index(tag) } else { tag };
        if let Some(context) = self.of(slot) {
            context.penalise(tag, parts, signal, &rules);
        }
    }
}

impl HostScheme for Prime {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        self.close(slot);
        if let Some(list) = flow.paths.guided.filter(|_| self.parameters.values == PrimeValues::Guided) {
            self.lists.put(slot, Arc::clone(list));
        }
        let Some(shape) = self.encoding(&flow.paths) else { return };
        self.before = usize::from(flow.paths.planes > 1);
        let packet_time = flow.rate.wire_time(u64::from(flow.full_packet));
        if self.parameters.scope == Scope::Flow {
            let mut context = self.context(flow.key, shape, flow.bdp_packets, packet_time);
            if !flow.paths.dead.is_empty() {
                context.set_dead(named(flow.paths.dead), &self.rules);
            }
            self.contexts.put(slot, context);
        } else {
            let uplinks = flow.paths.uplinks.to_vec();
            let bdp_packets = flow.bdp_packets;
            let known = SharedFlow { key: flow.key, dst: flow.dst, uplinks, bdp_packets, packet_time };
            self.share(slot, known, flow.paths.dead);
        }
    }

    fn close(&mut self, slot: u32) {
        self.lists.take(slot);
        if self.parameters.scope == Scope::Flow {
            self.contexts.take(slot);
        } else {
            self.shared_by.take(slot);
        }
    }

    #[inline]
    fn select(&mut self, now: Time, slot: u32, _packet: &Outgoing) -> Decision {
        let mut rules = self.rules;
        let tag = self.of(slot).map_or(0, |context| {
            if rules.by_time {
                rules.decay = context.drained(now, rules.decay);
            }
            context.select(&rules)
        });
        Decision::Send(match self.parameters.values {
            PrimeValues::Structured => tag,
            PrimeValues::Guided => self.lists.get(slot).map_or(0, |list| list.tag(tag)),
        })
    }

    fn on_signal(&mut self, _now: Time, slot: u32, tag: Tag, signal: LinkSignal) {
        if signal.is_trim() {
            self.trim = (tag, signal);
        } else if self.heeds(slot, signal) {
            self.penalise(slot, tag, Some(signal.stage() + self.before), Signal::Mark);
        }
    }

    #[inline]
    fn on_ack(&mut self, _now: Time, slot: u32, feedback: &Feedback) {
        if feedback.ecn && self.parameters.signal == PrimeSignal::Ecn {
            self.penalise(slot, feedback.tag, None, Signal::Mark);
        }
    }

    fn on_nack(&mut self, _now: Time, slot: u32, tag: Tag) {
        let (of, link) = std::mem::take(&mut self.trim);
        let parts = (of == tag && link.is_trim()).then(|| link.stage() + self.before);
        self.penalise(slot, tag, parts, Signal::Loss);
    }

    fn on_timeout(&mut self, _now: Time, slot: u32, tag: Tag) {
        self.penalise(slot, tag, None, Signal::Timeout);
    }

    fn on_paths_changed(&mut self, _now: Time, slot: u32, dead: &[bool]) {
        if self.parameters.scope == Scope::Host {
            if let Some((_, flow)) = self.shared_by.take(slot) {
                self.share(slot, flow, dead);
            }
            return;
        }
        let rules = self.rules;
        if let Some(context) = self.of(slot) {
            context.set_dead(named(dead), &rules);
        }
    }

    fn state(&self, _now: Time, slot: u32, tag: Option<Tag>) -> State {
        let context = match self.parameters.scope {
            Scope::Flow => Some(slot),
            _ => self.shared_by.peek(slot).map(|shared| shared.0),
        };
        let Some(context) = context.and_then(|number| self.contexts.peek(number)) else { return State::default() };
        let is_guided = self.parameters.values == PrimeValues::Guided;
        let tag = tag.map(|tag| if is_guided { GuidedPaths::index(tag) } else { tag });
        Columns {
            penalty_packets: tag.and_then(|tag| context.penalty(tag)).map_or(f64::NAN, f64::from),
            skipped_paths: context.skipped().into(),
            blind_packets: context.blind() as f64,
        }
        .into()
    }
}

/// Of the paths of a list, those that are named.
fn named(dead: &[bool]) -> &[bool] {
    &dead[..dead.len().min(MAX_PATHS as usize)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkLoad;
    use crate::host::testing::{flow, guided_flow, mark, packet, send, send_at};
    use anabranch_settings::{Parameters, Raw};
    use std::collections::BTreeSet;

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
    fn drained_decay_counts_packet_times() {
        // 2 paths, a packet every k packet times of 4160 B at 400 Gb/s: 83.2 ns. A penalty of p packet times ends with the
        // ceil(p / k)-th packet; path a, unused in its pass, is next. With k = 1 that is `sent`.
        for (p, k) in [(8, 1), (8, 4), (100, 4), (100, 7), (30, 2), (5, 9)] {
            let mut s = prime(&[("p_nack", Raw::Int(p)), ("decay_on", Raw::Text("drained".into()))], &[2]);
            let mut now = Time::from_us(5);
            let mut next = || {
                now = now.saturating_add(Time::from_ps(83_200 * k as u64));
                now
            };
            let (a, _) = (send_at(&mut s, next()), send_at(&mut s, next()));
            s.on_nack(next(), 0, a);
            let missed = (0..200).take_while(|_| send_at(&mut s, next()) != a).count() as i64;
            // The NACK takes one of the packet times of the first packet after it.
            let after = 2 * k;
            let expected = if p <= after { 1 } else { 1 + (p - after + k - 1) / k };
            assert_eq!(missed, expected, "p {p}, k {k}");
        }
    }

    /// Returns how many packets pass before the next one on path `tag`.
    fn missed(s: &mut Prime, tag: Tag) -> usize {
        (0..10_000).take_while(|_| send(s) != tag).count()
    }

    #[test]
    fn passes_count_paths() {
        // 8 paths, 2 passes: 16 packets without the marked path, which then has its turn within 7 others.
        for (p_ecn, packets) in [(Raw::Text("2passes".into()), 16), (Raw::Int(16), 16), (Raw::Int(25), 25)] {
            let mut s = prime(&[("p_ecn", p_ecn)], &[8]);
            let a = send(&mut s);
            (0..7).for_each(|_| assert_ne!(send(&mut s), a));
            mark(&mut s, a);
            let missed = missed(&mut s, a);
            assert!((packets..packets + 8).contains(&missed), "{missed} of {packets}");
        }
    }

    #[test]
    fn an_automatic_penalty_grows_by_a_pass_until_a_clean_return() {
        let auto = [("p_ecn", Raw::Text("auto".into())), ("p_ecn_settle", Raw::Int(0)), ("p_ecn_max", Raw::Int(40))];
        let mut s = prime(&auto, &[8]);
        let a = send(&mut s);
        (0..7).for_each(|_| assert_ne!(send(&mut s), a));
        // One of 8 packets took path a: a pass. It is marked at each return; its spacing, the packets since the last
        // mark with its own one, is the next penalty: larger by 1 to 8 each time, so 40 after 32 at the latest.
        let mut penalty = 8;
        for _ in 0..32 {
            mark(&mut s, a);
            let spacing = missed(&mut s, a) + 1;
            assert!((penalty + 1..=penalty + 8).contains(&spacing), "{spacing} after {penalty}");
            penalty = spacing.min(40);
        }
        assert_eq!(penalty, 40);
        // Now it returns three times before its next mark: the mean of three spacings, about (48 + 8 + 8) / 3 = 22.
        mark(&mut s, a);
        let spacings: usize = (0..3).map(|_| missed(&mut s, a) + 1).sum();
        mark(&mut s, a);
        let (penalty, spacing) = (spacings.div_ceil(3), missed(&mut s, a) + 1);
        assert!((penalty + 1..=penalty + 8).contains(&spacing), "{spacing} after {penalty}");
        // The default settles for a round trip, 100 packets: the second mark within it penalises as the first.
        let mut s = prime(&[("p_ecn", Raw::Text("auto".into()))], &[8]);
        let a = send(&mut s);
        (0..7).for_each(|_| assert_ne!(send(&mut s), a));
        for _ in 0..4 {
            mark(&mut s, a);
            assert!((8..16).contains(&missed(&mut s, a)));
        }
    }

    #[test]
    fn a_penalty_may_belong_to_each_part() {
        let of = |history: &str| {
            let sets = [("history", Raw::Text(history.into())), ("p_ecn", Raw::Int(100)), ("p_nack", Raw::Int(200))];
            let mut s = prime(&sets, &[2, 2]);
            mark(&mut s, 0);
            s
        };
        let used = |s: &mut Prime, packets: usize| (0..packets).map(|_| send(s)).collect::<Vec<_>>();
        // Path 0 is uplink 0 twice. By path the other three share 96 packets; by part path 3 alone has neither uplink 0.
        let mut by_path = used(&mut of("path"), 96);
        by_path.sort();
        assert_eq!(by_path, [[1; 32], [2; 32], [3; 32]].concat());
        let mut s = of("part");
        assert_eq!(used(&mut s, 3), [3; 3]);
        // A mark on path 3: its values have 100 left, those of path 0 have 97, and paths 1 and 2 one of each.
        mark(&mut s, 3);
        assert_eq!(used(&mut s, 97), [0; 97]);
        assert_eq!(used(&mut s, 3), [0; 3], "path 0 is free, path 3 has 3, 2, 1 left");
        let all = used(&mut s, 8);
        assert!((0..4).all(|path| all.contains(&path)), "{all:?}: two passes with all paths");
        // A dead path is not used while another lives: with path 3 dead, all live ones have a penalised value.
        let mut s = of("part");
        s.on_paths_changed(Time::ZERO, 0, &[false, false, false, true]);
        assert!(used(&mut s, 50).iter().all(|&tag| tag != 3));
        // With one part both readings are the same.
        let mut pair = ["path", "part"].map(|history| prime(&[("history", Raw::Text(history.into()))], &[8]));
        for packet in 0..500u32 {
            let [a, b] = pair.each_mut().map(|s| {
                let tag = send(s);
                match packet % 7 {
                    0 => mark(s, packet * 5 % 8),
                    3 => s.on_nack(Time::ZERO, 0, packet * 3 % 8),
                    _ => (),
                }
                tag
            });
            assert_eq!(a, b, "{packet}");
        }
    }

    proptest::proptest! {
        /// A path is a digit per tier. Penalised are those with the digits of the packet up to the named link, and no others;
        /// none where that is all of them.
        #[test]
        fn a_signal_penalises_the_paths_over_its_link(
            uplinks in proptest::collection::vec(2u32..6, 1..4), path: u32, stage in 0usize..4, loss: bool, planes: bool,
        ) {
            let stage = stage.min(uplinks.len() - usize::from(planes));
            let csig = [("signal", Raw::Text("csig".into())), ("p_ecn", Raw::Int(200)), ("p_nack", Raw::Int(200))];
            let mut s = Prime::new(prime(&csig, &[2]).parameters, 1, 2);
            let paths = PathSpace { uplinks: &uplinks, planes: if planes { uplinks[0] } else { 1 }, ..Default::default() };
            s.open(Time::ZERO, 0, &FlowInfo { paths, ..flow(&[]) });
            let encoding = PathEncoding::new(&uplinks).unwrap();
            let digits = |path: u32| -> Vec<u32> {
                (0..uplinks.len()).map(|i| path / uplinks[..i].iter().product::<u32>() % uplinks[i]).collect()
            };
            let path = path % encoding.paths();
            let tag = encoding.tag(path as u16);
            // The threshold is 100 packets of 83.2 ns, 8.32 us.
            s.on_signal(Time::ZERO, 0, tag, LinkSignal::new(LinkLoad::Delay(8_000_000), stage as u8, false));
            mark(&mut s, tag);
            let sent: BTreeSet<Tag> = (0..encoding.paths()).map(|_| send(&mut s)).collect();
            proptest::prop_assert_eq!(sent.len() as u32, encoding.paths(), "neither less nor a mark");
            let load = if loss { LinkLoad::Trimmed } else { LinkLoad::Delay(8_500_000) };
            s.on_signal(Time::ZERO, 0, tag, LinkSignal::new(load, stage as u8, false));
            if loss {
                s.on_nack(Time::ZERO, 0, tag);
            }
            let shared = stage + usize::from(planes);
            let over = |other: u32| shared > 0 && digits(other)[..shared] == digits(path)[..shared];
            let mut free: BTreeSet<Tag> = (0..encoding.paths()).filter(|other| !over(*other)).map(|p| encoding.tag(p as u16)).collect();
            // Penalties last for 200 packets. Then a timeout, which has no signal: its path alone.
            for _ in 0..2 {
                let sent: BTreeSet<Tag> = (0..80).map(|_| send(&mut s)).collect();
                proptest::prop_assert!(free.is_empty() || sent.is_subset(&free), "{sent:?} of {free:?}");
                proptest::prop_assert!(free.is_empty() || free.len() > 40 || sent == free);
                let other = send(&mut s);
                s.on_timeout(Time::ZERO, 0, other);
                free.remove(&other);
            }
        }
    }

    #[test]
    fn a_signal_needs_paths_whose_parts_are_links() {
        let csig = PrimeParameters { signal: PrimeSignal::Csig, ..Default::default() };
        assert!(csig.check().is_ok());
        let by_part = PrimeParameters { history: HistoryOf::Part, ..csig.clone() };
        let guided = PrimeParameters { values: PrimeValues::Guided, ..csig };
        assert_eq!([by_part, guided].map(|p| p.check().unwrap_err().key), ["signal"; 2]);
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
                (0..8).any(|psn| s.select(Time::ZERO, slot, &packet(psn, Time::ZERO)) == Decision::Send(bad))
            };
            assert!(!uses(&mut s, 0), "{scope}");
            assert_eq!(uses(&mut s, 1), scope == "flow", "{scope}");
            assert_eq!(!uses(&mut s, 2), shared_with_other_destination == Some(true), "{scope}");
        }
    }

    #[test]
    fn a_flow_takes_little_memory() {
        // 8,192 hosts have 64 paths; the target is 1.2 KB per flow. A history has no memory before its first penalty.
        let mut s = prime(&[], &[64]);
        let heap = s.contexts.get(0).unwrap().generator.memory() - size_of::<Generator>() + size_of::<Penalties>();
        let all = size_of::<Option<Context>>() + heap;
        assert!(all < 1200, "{all}");
    }

    fn guided(paths: u32) -> (Prime, Arc<GuidedPaths>) {
        let path = |index: u32| crate::GuidedPath {
            ev: ((index / 7) << 8 | (index % 7)) as u16,
            kind: 0,
            minimal: index == 0,
            latency: Time::from_ns(u64::from(index)),
            propagation: Time::ZERO,
            hops: 1,
        };
        let list = Arc::new(GuidedPaths::new((0..paths).map(path)));
        let values = PrimeValues::Guided;
        let p = PrimeParameters { history_after: PacketsOrBdp::Packets(0), values, ..Default::default() };
        let mut scheme = Prime::new(p, 1, 2);
        scheme.open(Time::ZERO, 0, &guided_flow(&list));
        (scheme, list)
    }

    #[test]
    fn a_pass_has_every_path_of_a_list_once() {
        for paths in [1, 2, 7, 40, 33_000] {
            let (mut s, list) = guided(paths);
            let named = paths.min(MAX_PATHS);
            for _ in 0..2 {
                let mut pass: Vec<Tag> = (0..named).map(|_| send(&mut s)).collect();
                pass.sort_unstable();
                assert_eq!(pass, (0..named).map(|index| list.tag(index)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_marked_path_of_a_list_is_passed_over() {
        let (mut s, list) = guided(5);
        let marked = list.tag(3);
        while send(&mut s) != marked {}
        mark(&mut s, marked);
        // A quarter of a BDP of `testing::flow`.
        assert!((0..5).all(|_| send(&mut s) != marked));
        let dead: Vec<bool> = (0..5).map(|index| index == 1).collect();
        s.on_paths_changed(Time::ZERO, 0, &dead);
        assert!((0..100).all(|_| send(&mut s) != list.tag(1)));
    }
}
