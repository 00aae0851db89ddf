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
    registry::{Invalid, SchemeCapabilities, TagKind},
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

choices! {
    /// What measures another path.
    pub enum HopperProbe {
        /// Probing packets, out of band.
        Packet = "packet",
        /// Data packets of the flow, one over each path: they may arrive early, and their acknowledgements are the replies.
        Data = "data",
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
        /// What measures another path.
        probe: HopperProbe = HopperProbe::Packet, source "Hopper §3.2: out-of-band probing packets; data: the same section, not implemented there; one packet per path is ours", Reading;
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
        // A chunk is a message, which belongs to one queue pair.
        let is_whole = self.probe == HopperProbe::Packet || self.granularity == Granularity::Packet;
        Invalid::unless(is_whole, "probe", "\"data\"", "\"packet\", or `granularity = \"packet\"`")?;
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

    fn without_effect(&self, _tags: TagKind) -> Vec<(&'static str, &'static str)> {
        let keys = match self.granularity {
            Granularity::Chunk => ["kappa", "delay", "hold_beyond"],
            Granularity::Packet => ["chunk", "outstanding", "probe_wait"],
        };
        let others = [
            (self.probe == HopperProbe::Data, ("probe_size", "probe = \"data\"")),
            (self.ports == HopperPorts::Profiled, ("values", "ports = \"profiled\"")),
            (self.delay == HopperDelay::Continue, ("hold_beyond", "delay = \"continue\"")),
        ];
        let others = others.into_iter().filter_map(|(is_set, pair)| is_set.then_some(pair));
        keys.map(|key| (key, self.granularity.setting())).into_iter().chain(others).collect()
    }

    fn probe_payload(&self) -> Option<u32> {
        (self.probe == HopperProbe::Packet).then(|| match self.probe_size {
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
    /// Data packets probe the paths in `wanted`.
    by_data: bool,
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

    /// Sends the next packet over a path to be probed. Its acknowledgement must not wait for others.
    #[cold]
    fn probe_with_data(&mut self, now: Time) -> Decision {
        let tag = self.wanted.pop().unwrap_or(self.path);
        if let Some(probed) = self.probed.iter_mut().find(|probed| probed.tag == tag) {
            probed.sent = now;
        }
        Decision::SendWithAckRequest(tag)
    }

    fn note_reply(&mut self, tag: Tag, rtt: Time, now: Time) {
        if let Some(probed) = self.probed.iter_mut().find(|probed| probed.tag == tag) {
            probed.result = Some((rtt, now));
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
            by_data: p.probe == HopperProbe::Data,
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
            // A retransmission has no sample.
            false if flow.by_data && !flow.wanted.is_empty() && !packet.retransmission => flow.probe_with_data(now),
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
        let Some(rtt) = feedback.rtt else { return };
        if feedback.tag == flow.path {
            let in_flight = feedback.next_psn.saturating_sub(feedback.cumulative);
            flow.sample(&self.parameters, now, rtt, in_flight, feedback.ecn);
        } else if flow.by_data {
            flow.note_reply(feedback.tag, rtt, now);
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
        let bytes = self.parameters.probe_payload()?;
        let tag = self.flows.get(slot)?.wanted.pop()?;
        Some(Probe { tag, bytes })
    }

    fn on_probe_reply(&mut self, now: Time, slot: u32, tag: Tag, rtt: Time, _ecn: bool) -> bool {
        let Some(flow) = self.flows.get(slot) else { return false };
        flow.note_reply(tag, rtt, now);
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
mod tests;
