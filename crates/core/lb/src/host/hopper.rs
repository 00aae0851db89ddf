//! Hopper (specification 2; arXiv 2506.08132): probes other paths when round trips grow, and moves to a better one
//! after a delay in which the packets in flight on the old path arrive first.

use super::{
    OnTimeout, Slots,
    chunks::{Chunks, Granularity},
    first_tag, times,
};
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, Probe, State, Tag,
    hash::EntropySpace,
    registry::{Invalid, SchemeCapabilities},
    state::{ps, state},
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, Auto, choices, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "hopper",
    summary: "moves a flow to a better path that it has probed when its round trips grow",
    source: "Hopper §3, Appendix A; specification 2",
    description: "Per flow: the round trip (a moving average) is compared with `th_probe` and `th_cong` base round trips, \
        at most once per epoch each. Above the first, two random paths are probed with real packets; above the second \
        the flow moves to the better of the two, if that is below `delta_rtt` of its own. The move is delayed by the \
        extrapolated difference, so that no more packets come early than the receiver takes.",
};

state! {
    /// Moving average of the round trip.
    average_ps: "ps";
    /// Average above which paths are probed.
    probe_above_ps: "ps";
    /// Average above which the flow may move.
    move_above_ps: "ps";
    /// Start of the epoch.
    epoch_ps: "ps";
    /// 1: paths may be probed in this epoch.
    may_probe: "";
    /// 1: the flow may move in this epoch.
    may_move: "";
    /// Probes that have no reply yet.
    open_probes: "probes";
    /// Shortest round trip of a reply that has not expired; empty: there is none.
    best_ps: "ps";
    /// Path of that reply.
    best_tag: "";
    /// Time until which packets of a new path are held, a move is pending, or a chunk waits for replies; empty: none of them.
    held_until_ps: "ps";
}

choices! {
    /// Probe results that count when a flow may move.
    pub enum HopperCandidates {
        /// All that are not older than `ttl_probe`.
        Ttl = "ttl",
        /// Those of this epoch.
        Epoch = "epoch",
    }
}

choices! {
    /// Round trip that defines an epoch.
    pub enum HopperEpoch {
        /// The maximum of measured and base: an epoch ends with the first acknowledgement of a packet sent in it.
        Measured = "measured",
        /// The base round trip.
        Base = "base",
    }
}

choices! {
    /// Behaviour until a move takes effect.
    pub enum HopperDelay {
        /// Packets of the new path are held, except as many as may arrive early: no harmful reordering.
        Hold = "hold",
        /// The sender continues on the old path.
        Continue = "continue",
    }
}

choices! {
    /// Entropy values of a flow.
    pub enum HopperPorts {
        /// UDP source ports drawn at random; two may share a path.
        Random = "random",
        /// One value per path, as the testbed's profiling finds them: no two share one. Where paths are not known (switches
        /// that do not hash, real networks with `wire.find_labels = "all"`) as many values as there are paths.
        Profiled = "profiled",
    }
}

parameters! {
    /// Hopper. Round-trip thresholds are in base round trips of the flow (of a chunk, at chunk granularity).
    pub struct HopperParameters {
        /// Weight of the last sample in the moving average; 1: the last sample alone.
        alpha: f64 = 1.0, source "Hopper Table 1", Expert;
        /// Average round trip above which paths are probed.
        th_probe: f64 = 1.5, source "Hopper Table 1", Expert;
        /// Average round trip above which the flow may move.
        th_cong: f64 = 2.5, source "Hopper Table 1", Expert;
        /// Age at which a probe result expires, in base round trips.
        ttl_probe: f64 = 4.0, source "Hopper Table 1", Expert;
        /// Maximum round trip of a new path, as a share of the flow's round trip.
        delta_rtt: f64 = 0.8, source "Hopper Table 1", Expert;
        /// Paths probed at a time.
        probes: u32 = 2, source "Hopper §3.2: power of two choices", Expert;
        /// Length of an epoch in round trips.
        epoch: f64 = 1.0, source "Hopper §3: one RTT", Reading;
        /// Round trip that defines an epoch.
        epoch_rtt: HopperEpoch = HopperEpoch::Measured, source "Hopper §3 says RTT, Table 1 says base RTT where it means it (specification 2.3, point 6)", Reading;
        /// Probe results that count.
        candidates: HopperCandidates = HopperCandidates::Epoch, source "Hopper Alg. 1 and §1: the two paths just probed (specification 2.3, point 1)", Reading;
        /// Uses up an epoch's chance to move even without a result (Algorithm 1, literally).
        consume_on_no_result: bool = false, source "specification 2.3, point 1", Reading;
        /// Delay of the move, as a multiple of the difference of the round trips; at chunk granularity it waits for the next chunk.
        kappa: f64 = 1.0, source "ours: the paper says proportional (specification 2.4)", Reading;
        /// Behaviour until the move takes effect, at packet granularity.
        delay: HopperDelay = HopperDelay::Hold, source "specification 2.4", Reading;
        /// With `delay = "hold"`, at packet granularity: packets that may be in flight without waiting, including the new path's first ones;
        /// auto: as many as the receiver accepts early (`transport.ooo_window` with `irn-extended`, else none).
        hold_beyond: Auto<u32> = Auto::Auto, source "Hopper §4.1.1: a packet that is early by up to 30 is acknowledged normally", Reading;
        /// Entropy values of a flow.
        ports: HopperPorts = HopperPorts::Random, source "specification 2.3, point 5", Reading;
        /// Number of entropy values with `ports = "random"`.
        values: u32 = 65_536, source "UDP source ports", Expert;
        /// Payload of a probe, at most a full packet's; auto: 64 B, or at chunk granularity up to 10 kB as fits a
        /// packet. The header of a data packet is added. Over RC queue pairs `wire.probe` sets it.
        probe_size: Auto<Bytes> = Auto::Auto, source "specification 2.3, point 3; Hopper §4.2", Expert;
        /// Unit of decisions: packets, or chunks as in the testbed.
        granularity: Granularity = Granularity::Packet, source "Hopper §4.1 and §4.2", Expert;
        /// Bytes of a chunk, at chunk granularity.
        chunk: Bytes = Bytes(1_000_000), source "Hopper §4.2: 1 MB and 10 MB", Expert;
        /// Maximum chunks in flight, at chunk granularity.
        outstanding: u32 = 1, source "ours: not given", Expert;
        /// Probes as soon as an ACK of the path is marked as well, before round trips reach `th_probe`.
        probe_on_ecn: bool = false, source "Hopper §3.1: named as an optimisation, not implemented there", Reading;
        /// At chunk granularity: a flow that may move begins no chunk before its probes have replies. The wait ends early
        /// where the replies still out are too late for a move, by `delta_rtt`.
        probe_wait: bool = true, source "Hopper Alg. 1: PROBEPATHS returns before SWITCHPATH (specification 2.3, point 1)", Reading;
        /// Effect of a retransmission timeout on the flow's path.
        on_timeout: OnTimeout = OnTimeout::Ignore, source "Hopper §3 knows round trips alone; move: ours", Expert;
    }
}

impl SchemeCapabilities for HopperParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.alpha > 0.0 && self.alpha <= 1.0, "alpha", self.alpha, "a share above 0 and up to 1")?;
        Invalid::unless((1..=8).contains(&self.probes), "probes", self.probes, "1 to 8")?;
        Invalid::unless(self.values > 1, "values", self.values, "2 or more")?;
        Invalid::unless(self.chunk.0 > 0, "chunk", self.chunk, "1B or more")?;
        Invalid::unless(self.outstanding > 0, "outstanding", self.outstanding, "1 or more")?;
        let numbers = [
            ("th_probe", self.th_probe),
            ("th_cong", self.th_cong),
            ("ttl_probe", self.ttl_probe),
            ("delta_rtt", self.delta_rtt),
            ("epoch", self.epoch),
            ("kappa", self.kappa),
        ];
        match numbers.into_iter().find(|(_, x)| !(*x >= 0.0 && x.is_finite())) {
            Some((key, x)) => Invalid::unless(false, key, x, "a number, 0 or more"),
            None => Ok(()),
        }
    }

    fn keeps_path(&self) -> bool {
        true
    }

    fn profiles_ports(&self) -> bool {
        self.ports == HopperPorts::Profiled
    }

    fn without_effect(&self) -> Vec<(&'static str, &'static str)> {
        let keys = match self.granularity {
            Granularity::Chunk => ["kappa", "delay", "hold_beyond"],
            Granularity::Packet => ["chunk", "outstanding", "probe_wait"],
        };
        keys.map(|key| (key, self.granularity.setting())).to_vec()
    }

    fn probe_payload(&self) -> Option<u32> {
        Some(match self.probe_size {
            Auto::Value(bytes) => bytes.0.min(u64::from(u32::MAX)) as u32,
            Auto::Auto if self.granularity == Granularity::Chunk => 10_000,
            Auto::Auto => 64,
        })
    }
}

/// Sums for the least-squares line through (index, round trip) of an epoch's samples.
#[derive(Clone, Copy, Debug, Default)]
struct LineFit {
    n: f64,
    k: f64,
    r: f64,
    kr: f64,
    kk: f64,
    last: f64,
}

impl LineFit {
    fn add(&mut self, rtt: f64) {
        let k = self.n;
        self.n += 1.0;
        self.k += k;
        self.r += rtt;
        self.kr += k * rtt;
        self.kk += k * k;
        self.last = rtt;
    }

    /// Estimates the round trip `ahead` packets after the last sample, at least the last sample ("conservative").
    fn estimate(&self, ahead: f64) -> f64 {
        let spread = self.n * self.kk - self.k * self.k;
        if self.n < 2.0 || spread <= 0.0 {
            return self.last;
        }
        let slope = (self.n * self.kr - self.k * self.r) / spread;
        let start = (self.r - slope * self.k) / self.n;
        (start + slope * (self.n - 1.0 + ahead)).max(self.last)
    }
}

#[derive(Clone, Copy, Debug)]
struct ProbedPath {
    tag: Tag,
    sent: Time,
    result: Option<(Time, Time)>,
}

#[derive(Debug)]
struct Flow {
    stream: Stream,
    space: EntropySpace,
    /// Value per number of `space`; empty: the number itself.
    labels: Box<[Tag]>,
    path: Tag,
    /// Round trip of the flow, or of a chunk, on the empty network.
    base: Time,
    packet_base: Time,
    probe_base: Time,
    average: f64,
    epoch_start: Time,
    started: bool,
    may_probe: bool,
    may_move: bool,
    line: LineFit,
    probed: Vec<ProbedPath>,
    wanted: Vec<Tag>,
    /// Time until which the next chunk waits for replies to probes; zero: it does not.
    awaited_until: Time,
    pending: Option<(Tag, Time)>,
    /// After a move: before this time no packet is sent that would be early by more than `early` packets.
    held_until: Time,
    early: u64,
    cumulative: u64,
    /// A packet of the chunk under way was marked.
    marked: bool,
    chunks: Option<Chunks>,
}

#[derive(Debug)]
pub struct Hopper {
    parameters: HopperParameters,
    host_key: u64,
    flows: Slots<Flow>,
}

impl Hopper {
    pub fn new(parameters: HopperParameters, seed: u64, host_key: u64) -> Self {
        Hopper { parameters, host_key: key(seed, host_key, "hopper"), flows: Slots::new() }
    }
}

/// Returns the entropy value of a number.
fn label(labels: &[Tag], number: Tag) -> Tag {
    labels.get(number as usize).copied().unwrap_or(number)
}

impl Flow {
    fn turn_epoch(&mut self, p: &HopperParameters, now: Time, measured: Time) {
        let round_trip = match p.epoch_rtt {
            HopperEpoch::Measured => self.base.max(measured),
            HopperEpoch::Base => self.base,
        };
        if self.started && now < self.epoch_start + times(round_trip, p.epoch) {
            return;
        }
        self.started = true;
        self.epoch_start = now;
        (self.may_probe, self.may_move) = (true, true);
        self.line = LineFit::default();
    }

    fn sample(&mut self, p: &HopperParameters, now: Time, rtt: Time, in_flight: u64, marked: bool) {
        self.turn_epoch(p, now, rtt);
        let rtt = rtt.ps() as f64;
        // The first sample of an epoch restarts the average (Algorithm 1 resets it).
        self.average = if self.line.n == 0.0 { rtt } else { p.alpha * rtt + (1.0 - p.alpha) * self.average };
        self.line.add(rtt);
        let base = self.base.ps() as f64;
        if (self.average > p.th_probe * base || (marked && p.probe_on_ecn)) && self.may_probe {
            self.probe(p, now);
        }
        let moving = self.pending.is_some() || now < self.held_until;
        if self.average > p.th_cong * base && self.may_move && !moving {
            match self.replies_due(p).filter(|due| *due > now) {
                Some(due) => self.awaited_until = due,
                None => self.consider(p, now, in_flight),
            }
        }
    }

    /// Returns the time after which no reply to a probe of this epoch can allow a move; `None`: none is awaited.
    fn replies_due(&self, p: &HopperParameters) -> Option<Time> {
        if !p.probe_wait || self.chunks.is_none() {
            return None;
        }
        let out = |probed: &&ProbedPath| {
            probed.sent >= self.epoch_start && probed.result.is_none_or(|(_, answered)| answered < probed.sent)
        };
        let share = p.delta_rtt * self.average / self.base.ps() as f64;
        self.probed.iter().filter(out).map(|probed| probed.sent.saturating_add(times(self.probe_base, share))).max()
    }

    /// Requests probes of paths without a recent probe.
    fn probe(&mut self, p: &HopperParameters, now: Time) {
        let ttl = times(self.base, p.ttl_probe);
        let fresh = |at: Time| at + ttl > now;
        self.probed.retain(|probed| fresh(probed.sent) || probed.result.is_some_and(|(_, at)| fresh(at)));
        self.may_probe = false;
        let mut wanted = 0;
        // Few of many values are excluded, so a handful of draws finds others; otherwise fewer are probed.
        for _ in 0..8 * p.probes {
            let tag = label(&self.labels, self.space.draw(&mut self.stream));
            let known = self.probed.iter_mut().find(|probed| probed.tag == tag);
            if tag == self.path || known.as_ref().is_some_and(|probed| fresh(probed.sent)) {
                continue;
            }
            match known {
                Some(probed) => probed.sent = now,
                None => self.probed.push(ProbedPath { tag, sent: now, result: None }),
            }
            self.wanted.push(tag);
            wanted += 1;
            if wanted == p.probes {
                return;
            }
        }
    }

    fn consider(&mut self, p: &HopperParameters, now: Time, in_flight: u64) {
        let ttl = times(self.base, p.ttl_probe);
        let valid = |probed: &&ProbedPath| {
            let fresh = probed.result.is_some_and(|(_, at)| at + ttl > now);
            let this_epoch = p.candidates == HopperCandidates::Ttl || probed.sent >= self.epoch_start;
            fresh && this_epoch && probed.tag != self.path
        };
        let best = self.probed.iter().filter(valid).filter_map(|probed| Some((probed.result?.0, probed.tag))).min();
        if best.is_some() || p.consume_on_no_result {
            self.may_move = false;
        }
        let Some((rtt, tag)) = best else { return };
        // A probe is one packet: a chunk over its path would exceed its ideal by the same factor.
        let found = rtt.ps() as f64 * (self.base.ps() as f64 / self.packet_base.ps() as f64);
        if found >= p.delta_rtt * self.average {
            return;
        }
        let delay = match self.chunks {
            Some(_) => 0.0,
            None => p.kappa * (self.line.estimate(in_flight as f64) - found).max(0.0),
        };
        let at = now + times(Time::from_ps(1), delay);
        if self.chunks.is_none() && p.delay == HopperDelay::Hold {
            self.move_to(tag);
            self.held_until = at;
        } else {
            self.pending = Some((tag, at));
        }
    }

    fn move_to(&mut self, tag: Tag) {
        self.path = tag;
        self.pending = None;
        self.line = LineFit::default();
    }

    /// Returns `true` if a packet must wait because it would be earlier than the receiver accepts.
    #[inline]
    fn waits(&self, now: Time, psn: u64) -> bool {
        now < self.held_until && psn.saturating_sub(self.cumulative) > self.early
    }
}

impl HostScheme for Hopper {
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let p = &self.parameters;
        let paths = flow.paths.uplinks.iter().fold(1u32, |paths, &uplinks| paths.saturating_mul(uplinks.max(1)));
        let labels: Box<[Tag]> = if p.ports == HopperPorts::Profiled { flow.paths.labels.into() } else { [].into() };
        let space = EntropySpace::new(match p.ports {
            HopperPorts::Random => p.values,
            HopperPorts::Profiled if labels.is_empty() => paths,
            HopperPorts::Profiled => labels.len() as u32,
        });
        let (first, stream) = first_tag(space, self.host_key, flow, "hopper");
        let path = label(&labels, first);
        let chunks = (p.granularity == Granularity::Chunk).then(|| Chunks::new(flow, p.chunk.0, p.outstanding));
        let base = chunks.as_ref().map_or(flow.base_rtt, |chunks| chunks.ideal);
        let state = Flow {
            stream,
            space,
            labels,
            path,
            base,
            packet_base: flow.base_rtt,
            probe_base: flow.probe_rtt,
            average: 0.0,
            epoch_start: now,
            started: false,
            may_probe: true,
            may_move: true,
            line: LineFit::default(),
            probed: Vec::new(),
            wanted: Vec::new(),
            awaited_until: Time::ZERO,
            pending: None,
            held_until: Time::ZERO,
            early: p.hold_beyond.value().map_or(flow.early_packets, u64::from),
            cumulative: 0,
            marked: false,
            chunks,
        };
        self.flows.put(slot, state);
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }

    #[inline]
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision {
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        if let Some(chunks) = &mut flow.chunks {
            if chunks.begins(packet.psn) {
                if !chunks.may_begin() {
                    return Decision::Wait;
                }
                if now < flow.awaited_until {
                    return Decision::Hold(flow.awaited_until);
                }
                if std::mem::take(&mut flow.awaited_until) > Time::ZERO && flow.may_move && flow.pending.is_none() {
                    flow.consider(&self.parameters, now, 0);
                }
                let Some(chunks) = &mut flow.chunks else { return Decision::Wait };
                chunks.begin(now, packet.psn);
                if let Some((tag, _)) = flow.pending.take() {
                    (flow.path, flow.line) = (tag, LineFit::default());
                }
            }
            return flow.chunks.as_ref().map_or(Decision::Wait, |chunks| chunks.send(packet.psn, flow.path));
        }
        if let Some((tag, _)) = flow.pending.filter(|(_, at)| *at <= now) {
            flow.move_to(tag);
        }
        match flow.waits(now, packet.psn) {
            false => Decision::Send(flow.path),
            true if flow.early == 0 => Decision::Hold(flow.held_until),
            // Any acknowledgement may release it, and one will arrive, since packets are in flight.
            true => Decision::Wait,
        }
    }

    #[inline]
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        let Some(flow) = self.flows.get(slot) else { return };
        if let Some(chunks) = &mut flow.chunks {
            flow.marked |= feedback.ecn;
            if let Some(took) = chunks.acknowledged(now, feedback.cumulative) {
                let marked = std::mem::take(&mut flow.marked);
                flow.sample(&self.parameters, now, took, 0, marked);
            }
            return;
        }
        flow.cumulative = feedback.cumulative;
        if let Some(rtt) = feedback.rtt.filter(|_| feedback.tag == flow.path) {
            let in_flight = feedback.next_psn.saturating_sub(feedback.cumulative);
            flow.sample(&self.parameters, now, rtt, in_flight, feedback.ecn);
        }
    }

    fn on_timeout(&mut self, _now: Time, slot: u32, _tag: Tag) {
        let Some(flow) = self.flows.get(slot) else { return };
        if self.parameters.on_timeout == OnTimeout::Move {
            let number = flow.labels.iter().position(|tag| *tag == flow.path).map_or(flow.path, |at| at as Tag);
            let another = OnTimeout::another(flow.space, &mut flow.stream, number);
            flow.move_to(label(&flow.labels, another));
            flow.held_until = Time::ZERO;
        }
    }

    #[inline]
    fn poll_probe(&mut self, _now: Time, slot: u32) -> Option<Probe> {
        let flow = self.flows.get(slot)?;
        let tag = flow.wanted.pop()?;
        Some(Probe { tag, bytes: self.parameters.probe_payload()? })
    }

    fn on_probe_reply(&mut self, now: Time, slot: u32, tag: Tag, rtt: Time, _ecn: bool) -> bool {
        let Some(flow) = self.flows.get(slot) else { return false };
        if let Some(probed) = flow.probed.iter_mut().find(|probed| probed.tag == tag) {
            probed.result = Some((rtt, now));
        }
        let awaits = now < flow.awaited_until;
        if awaits && flow.replies_due(&self.parameters).is_some_and(|due| due > now) {
            return false;
        }
        // Between two chunks more time may pass than a result is valid for, so it is evaluated now (ours).
        let congested = flow.average > self.parameters.th_cong * flow.base.ps() as f64;
        if flow.chunks.is_some() && congested && flow.may_move && flow.pending.is_none() {
            flow.consider(&self.parameters, now, 0);
        }
        flow.awaited_until = Time::ZERO;
        awaits
    }

    fn state(&self, now: Time, slot: u32, _tag: Option<Tag>) -> State {
        let Some(flow) = self.flows.peek(slot) else { return State::default() };
        let (p, ttl) = (&self.parameters, times(flow.base, self.parameters.ttl_probe));
        let best = flow
            .probed
            .iter()
            .filter_map(|probed| probed.result.filter(|(_, at)| *at + ttl > now).map(|r| (r.0, probed.tag)));
        let (best, tag) = best.min().map_or((f64::NAN, f64::NAN), |(rtt, tag)| (ps(rtt), f64::from(tag)));
        let held = flow.held_until.max(flow.awaited_until).max(flow.pending.map_or(Time::ZERO, |(_, at)| at));
        let is_open = |probed: &&ProbedPath| probed.result.is_none_or(|(_, at)| at < probed.sent);
        let base = ps(flow.base);
        Columns {
            average_ps: if flow.started { flow.average } else { f64::NAN },
            probe_above_ps: p.th_probe * base,
            move_above_ps: p.th_cong * base,
            epoch_ps: ps(flow.epoch_start),
            may_probe: flow.may_probe.into(),
            may_move: flow.may_move.into(),
            open_probes: flow.probed.iter().filter(is_open).count() as f64,
            best_ps: best,
            best_tag: tag,
            held_until_ps: if held > now { ps(held) } else { f64::NAN },
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{feedback, flow, packet, us};

    fn hopper(p: HopperParameters) -> Hopper {
        opened(p, flow(&[8]))
    }
    fn opened(p: HopperParameters, flow: FlowInfo<'_>) -> Hopper {
        let (mut s, base_rtt) = (Hopper::new(p, 1, 2), Time::from_us(8));
        s.open(Time::ZERO, 0, &FlowInfo { base_rtt, probe_rtt: base_rtt, ..flow });
        s
    }
    fn ask(s: &mut Hopper, now: f64, psn: u64) -> Decision {
        s.select(us(now), 0, &packet(psn, us(now)))
    }
    fn select(s: &mut Hopper, now: f64) -> Decision {
        ask(s, now, 5)
    }
    fn path(s: &mut Hopper, now: f64) -> Tag {
        match select(s, now) {
            Decision::Send(tag) => tag,
            other => panic!("{other:?}"),
        }
    }
    fn ack(s: &mut Hopper, now: f64, tag: Tag, rtt: f64) {
        let f = Feedback { rtt: Some(us(rtt)), cumulative: 0, next_psn: 10, ..feedback(tag, false) };
        s.on_ack(us(now), 0, &f);
    }
    fn probes(s: &mut Hopper, now: f64) -> Vec<Tag> {
        std::iter::from_fn(|| s.poll_probe(us(now), 0).map(|p| p.tag)).collect()
    }

    #[test]
    fn the_example_of_the_appendix() {
        // Base round trip 8 us, probing from 12 us (1.5x), moving from 14 us (1.75x), margin 80 %.
        let mut s = hopper(HopperParameters { th_cong: 1.75, ..Default::default() });
        let old = path(&mut s, 0.0);
        ack(&mut s, 9.0, old, 10.0);
        assert!(probes(&mut s, 9.0).is_empty(), "10 us: no congestion");
        // A packet sent at 9 us is acknowledged: the first epoch ends and the second begins.
        ack(&mut s, 18.0, old, 9.0);
        ack(&mut s, 19.0, old, 13.0);
        let asked = probes(&mut s, 19.0);
        assert_eq!(asked.len(), 2, "13 us: two paths are probed");
        assert!(asked[0] != asked[1] && !asked.contains(&old));
        ack(&mut s, 20.0, old, 13.5);
        assert!(probes(&mut s, 20.0).is_empty(), "once per epoch");
        s.on_probe_reply(us(28.0), 0, asked[0], us(9.0), false);
        s.on_probe_reply(us(31.0), 0, asked[1], us(12.0), false);
        // 15 us, above 14, of a packet sent at 17 us: still the same epoch. The best probed path has 9 us, below 80 % of
        // 15 = 12. The line through 9, 13, 13.5, 15 rises by (4 * 85 - 6 * 50.5) / (4 * 14 - 36) = 1.85 us per packet from
        // 9.85 us; ten packets on it gives 9.85 + 13 * 1.85 = 33.9 us: the move waits for 33.9 - 9 = 24.9 us.
        ack(&mut s, 32.0, old, 15.0);
        let Decision::Hold(until) = select(&mut s, 32.0) else { panic!() };
        assert!(until.ps().abs_diff(us(56.9).ps()) < 10, "{until}");
        assert_eq!(path(&mut s, 57.0), asked[0]);
        ack(&mut s, 60.0, old, 40.0);
        assert_eq!(path(&mut s, 60.0), asked[0]);
    }

    #[test]
    fn an_epoch_lasts_a_measured_round_trip() {
        // 20 us are measured, 8 us are the base: probes at 20 us, then when a packet sent at that time is acknowledged.
        for (epoch_rtt, second) in [(HopperEpoch::Measured, 40.0), (HopperEpoch::Base, 28.0)] {
            let mut s = hopper(HopperParameters { epoch_rtt, ..Default::default() });
            let old = path(&mut s, 0.0);
            ack(&mut s, 20.0, old, 20.0);
            assert_eq!(probes(&mut s, 20.0).len(), 2);
            ack(&mut s, second - 0.1, old, 20.0);
            assert!(probes(&mut s, second).is_empty(), "{epoch_rtt:?}");
            ack(&mut s, second, old, 20.0);
            assert_eq!(probes(&mut s, second).len(), 2, "{epoch_rtt:?}");
        }
    }

    /// §3.1: a mark comes before the round trip grows. 10 us are below 1.5 x 8.
    #[test]
    fn mark_starts_probing_if_configured() {
        for (probe_on_ecn, expected) in [(false, 0), (true, 2)] {
            let mut s = hopper(HopperParameters { probe_on_ecn, ..Default::default() });
            let path = path(&mut s, 0.0);
            let marked = Feedback { rtt: Some(us(10.0)), ..feedback(path, true) };
            s.on_ack(us(9.0), 0, &marked);
            assert_eq!(probes(&mut s, 9.0).len(), expected);
        }
        // Of a chunk any packet counts, at its end. 10 us are below 1.5 x 8.7488.
        let mut s = hopper(HopperParameters { probe_on_ecn: true, ..chunks_of_ten() });
        ask(&mut s, 0.0, 0);
        s.on_ack(us(9.0), 0, &Feedback { cumulative: 4, ..feedback(0, true) });
        assert!(probes(&mut s, 9.0).is_empty());
        s.on_ack(us(10.0), 0, &Feedback { cumulative: 10, ..feedback(0, false) });
        assert_eq!(probes(&mut s, 10.0).len(), 2);
    }

    #[test]
    fn the_two_paths_just_probed_count() {
        // A good result of the epoch before is a candidate by its age alone (10 us of 32).
        for (candidates, moves) in [(HopperCandidates::Epoch, false), (HopperCandidates::Ttl, true)] {
            let mut s = hopper(HopperParameters { candidates, ..Default::default() });
            let old = path(&mut s, 0.0);
            ack(&mut s, 20.0, old, 15.0);
            let asked = probes(&mut s, 20.0);
            s.on_probe_reply(us(30.0), 0, asked[0], us(10.0), false);
            ack(&mut s, 40.0, old, 19.9);
            assert!(s.flows.get(0).unwrap().path == old, "a new epoch, whose probes are on their way");
            ack(&mut s, 41.0, old, 21.0);
            assert_eq!(s.flows.get(0).unwrap().path != old, moves, "{candidates:?}");
        }
    }

    #[test]
    fn packets_within_the_receivers_window_need_not_wait() {
        // 20 packets in flight, up to 30 may be early: the first ten of the new path are sent at once, then one per
        // packet that arrives, and all of them when the time is over.
        let p = HopperParameters { th_cong: 1.75, ..Default::default() };
        let mut s = opened(p, FlowInfo { early_packets: 30, ..flow(&[8]) });
        let Decision::Send(old) = ask(&mut s, 0.0, 0) else { panic!() };
        let ack = |s: &mut Hopper, now: f64, rtt: f64, cumulative| {
            s.on_ack(us(now), 0, &Feedback { rtt: Some(us(rtt)), cumulative, next_psn: 40, ..feedback(old, false) });
        };
        ack(&mut s, 15.0, 15.0, 20);
        let asked = probes(&mut s, 15.0);
        s.on_probe_reply(us(24.0), 0, asked[0], us(9.0), false);
        ack(&mut s, 25.0, 15.0, 20);
        // The move waits for 15 - 9 = 6 us, until 31 us.
        assert_eq!(ask(&mut s, 25.0, 40), Decision::Send(asked[0]));
        assert_eq!(ask(&mut s, 25.5, 50), Decision::Send(asked[0]));
        assert_eq!(ask(&mut s, 26.0, 51), Decision::Wait);
        ack(&mut s, 26.5, 16.0, 21);
        assert_eq!(ask(&mut s, 26.5, 51), Decision::Send(asked[0]));
        assert_eq!(ask(&mut s, 30.9, 90), Decision::Wait);
        assert_eq!(ask(&mut s, 31.0, 90), Decision::Send(asked[0]));
    }

    #[test]
    fn timeout_moves_a_flow_if_configured() {
        for (on_timeout, moves) in [(OnTimeout::Ignore, false), (OnTimeout::Move, true)] {
            let mut s = hopper(HopperParameters { on_timeout, ..Default::default() });
            let old = path(&mut s, 0.0);
            s.on_timeout(us(300.0), 0, old);
            assert_eq!(path(&mut s, 300.0) != old, moves);
        }
    }

    #[test]
    fn line_fit_predicts_the_last_packet_in_flight() {
        // Samples of 20, 21, 22 us grow by 1 us per packet; ten are in flight: 32 us. The path found has 10 us.
        let at_22_us = |delay| {
            let mut s = hopper(HopperParameters { th_cong: 2.7, delay, ..Default::default() });
            let old = path(&mut s, 0.0);
            ack(&mut s, 20.0, old, 20.0);
            let asked = probes(&mut s, 20.0);
            s.on_probe_reply(us(20.5), 0, asked[0], us(10.0), false);
            ack(&mut s, 21.0, old, 21.0);
            ack(&mut s, 22.0, old, 22.0);
            (s, old, asked[0])
        };
        let (mut s, ..) = at_22_us(HopperDelay::Hold);
        assert_eq!(select(&mut s, 22.0), Decision::Hold(us(22.0 + 32.0 - 10.0)));
        let (mut s, old, new) = at_22_us(HopperDelay::Continue);
        assert_eq!((path(&mut s, 22.0), path(&mut s, 43.9), path(&mut s, 44.0)), (old, old, new));
    }

    #[test]
    fn profiled_ports_are_one_per_path() {
        let labels = [3, 17, 40];
        let paths = crate::PathSpace { labels: &labels, ..flow(&[3]).paths };
        let parameters =
            HopperParameters { ports: HopperPorts::Profiled, on_timeout: OnTimeout::Move, ..Default::default() };
        let mut s = opened(parameters, FlowInfo { paths, ..flow(&[3]) });
        let own = path(&mut s, 0.0);
        ack(&mut s, 13.0, own, 13.0);
        let mut all = probes(&mut s, 13.0);
        all.push(own);
        all.sort_unstable();
        assert_eq!(all, labels, "the flow's own path and two others");
        s.on_timeout(us(300.0), 0, own);
        assert!(path(&mut s, 300.0) != own && labels.contains(&path(&mut s, 300.0)));
    }

    #[test]
    fn results_expire_and_the_margin_counts() {
        let mut s = hopper(HopperParameters::default());
        let old = path(&mut s, 0.0);
        ack(&mut s, 10.0, old, 13.0);
        let asked = probes(&mut s, 10.0);
        s.on_probe_reply(us(20.0), 0, asked[0], us(18.0), false);
        // 22 us is above 20 (2.5x), but 18 is not below 17.6 (80 %): no move, and the chance of this epoch is used up.
        ack(&mut s, 21.0, old, 22.0);
        assert_eq!(path(&mut s, 21.0), old);
        ack(&mut s, 22.0, old, 40.0);
        assert_eq!(path(&mut s, 22.0), old);
        // Next epoch, 32 us (4x) after the result: it has expired. Without a result the chance remains.
        ack(&mut s, 53.0, old, 40.0);
        assert_eq!(path(&mut s, 53.0), old);
        let asked = probes(&mut s, 53.0);
        s.on_probe_reply(us(54.0), 0, asked[0], us(9.0), false);
        ack(&mut s, 55.0, old, 40.0);
        assert!(matches!(select(&mut s, 55.0), Decision::Hold(_)));
        let mut s = hopper(HopperParameters { consume_on_no_result: true, ..Default::default() });
        let old = path(&mut s, 0.0);
        ack(&mut s, 53.0, old, 40.0);
        let asked = probes(&mut s, 53.0);
        s.on_probe_reply(us(54.0), 0, asked[0], us(9.0), false);
        ack(&mut s, 55.0, old, 40.0);
        assert_eq!(path(&mut s, 55.0), old);
    }

    fn chunks_of_ten() -> HopperParameters {
        HopperParameters { granularity: Granularity::Chunk, chunk: Bytes(40_960), ..Default::default() }
    }

    /// Algorithm 1: the probes return, then the better of the two paths is taken.
    #[test]
    fn a_congested_chunk_waits_for_its_probes() {
        // The ideal of a chunk is 8.7488 us, so 40 us are 4.572 times as much, above 2.5. A path is better from 0.8 x 4.572 =
        // 3.6576 times the base on, of a probe 3.6576 x 8 us = 29.261 us: no later reply can allow a move.
        let due = 40.0 + 8.0 * 0.8 * 40.0 / 8.7488;
        let start = |p: HopperParameters, took: f64| {
            let mut s = hopper(p);
            let Decision::Send(old) = ask(&mut s, 0.0, 0) else { panic!() };
            s.on_ack(us(took), 0, &Feedback { cumulative: 10, ..feedback(old, false) });
            let asked = probes(&mut s, took);
            (s, old, asked)
        };
        let held = |decision: Decision| match decision {
            Decision::Hold(until) => until.ps().abs_diff(us(due).ps()) < 10,
            _ => false,
        };

        let (mut s, _, asked) = start(chunks_of_ten(), 40.0);
        assert_eq!(asked.len(), 2);
        assert!(held(ask(&mut s, 40.0, 10)));
        assert!(!s.on_probe_reply(us(52.0), 0, asked[0], us(12.0), false), "the second is out");
        assert!(held(ask(&mut s, 52.0, 10)));
        assert!(s.on_probe_reply(us(60.0), 0, asked[1], us(9.0), false), "both are there: the flow goes on");
        assert_eq!(ask(&mut s, 60.0, 10), Decision::Send(asked[1]), "the better of the two");

        // A lost probe: what is known when no reply can help any more decides.
        let (mut s, _, asked) = start(chunks_of_ten(), 40.0);
        s.on_probe_reply(us(52.0), 0, asked[0], us(12.0), false);
        assert_eq!(ask(&mut s, due + 0.001, 10), Decision::Send(asked[0]));
        // The network reports both as lost: nothing to wait for, nowhere to go.
        let (mut s, old, asked) = start(chunks_of_ten(), 40.0);
        assert!(
            !s.on_probe_reply(us(45.0), 0, asked[0], Time::MAX, false)
                && s.on_probe_reply(us(46.0), 0, asked[1], Time::MAX, false)
        );
        assert_eq!(ask(&mut s, 46.0, 10), Decision::Send(old));
        // 15 us are above 1.5 x 8.7488 and below 2.5 x: probes, but no move that could wait for them.
        let (mut s, old, asked) = start(chunks_of_ten(), 15.0);
        assert_eq!((asked.len(), ask(&mut s, 15.0, 10)), (2, Decision::Send(old)));
        let (mut s, old, asked) = start(HopperParameters { probe_wait: false, ..chunks_of_ten() }, 40.0);
        assert_eq!((asked.len(), ask(&mut s, 40.0, 10)), (2, Decision::Send(old)));
    }

    #[test]
    fn chunks_move_between_chunks() {
        // Chunks of 10 packets of 4096 B: ideal 8 us + 0.7488 us at 400 Gb/s.
        let mut s = hopper(HopperParameters { probe_wait: false, ..chunks_of_ten() });
        let Decision::Send(old) = ask(&mut s, 0.0, 0) else { panic!() };
        assert_eq!([8, 9].map(|psn| ask(&mut s, 0.1, psn)), [Decision::Send(old), Decision::SendWithAckRequest(old)]);
        assert_eq!(ask(&mut s, 0.2, 10), Decision::Wait);
        let done = |s: &mut Hopper, now: f64, cumulative| {
            s.on_ack(us(now), 0, &Feedback { cumulative, ..feedback(old, false) });
        };
        // 15 us are above 1.5 x 8.75: probes, of 10 kB if they fit a packet.
        done(&mut s, 15.0, 10);
        assert_eq!(s.poll_probe(us(15.0), 0).map(|p| p.bytes), Some(10_000));
        let asked = probes(&mut s, 15.0);
        s.on_probe_reply(us(24.0), 0, asked[0], us(8.0), false);
        assert_eq!(ask(&mut s, 24.0, 10), Decision::Send(old));
        // 40 us for the next chunk: probes again. The first good result moves the flow, between chunks.
        done(&mut s, 64.0, 20);
        assert_eq!(ask(&mut s, 64.0, 20), Decision::Send(old), "the first result is older than 4 x 8.75 us");
        let again: Vec<Tag> = probes(&mut s, 64.0);
        s.on_probe_reply(us(72.0), 0, again[0], us(8.0), false);
        assert_eq!(ask(&mut s, 72.0, 29), Decision::SendWithAckRequest(old));
        done(&mut s, 304.0, 30);
        assert_eq!(ask(&mut s, 304.0, 30), Decision::Send(again[0]));
    }
}
