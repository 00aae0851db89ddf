//! HF2T (specification 11; APNet 2024): RDMA leaves few gaps that a switch takes for the end of a flowlet, so packets
//! whose gap is nearly long enough are delayed slightly.

use super::{OnTimeout, Slots, times};
use crate::{
    Decision, FlowInfo, HostScheme, Outgoing, SchemeCounters, State, Tag,
    registry::{Invalid, SchemeCapabilities, TagKind},
    state::{ps, state},
};
use anabranch_random::key;
use anabranch_settings::{About, Auto, Never, choices, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "hf2t",
    summary: "holds a few packets back so that flowlet switches see more flowlets",
    source: "HF2T slides, APNet 2024; specification 11.3",
    description: "A host keeps a histogram of the gaps of its flows and every `refresh` takes as threshold T the gap that \
        a share `p` of them reaches. A packet whose gap is at least alpha T, and short of the flowlet timeout by \
        at most `dmax` of it, waits until the timeout has passed. alpha makes short flowlets longer and splits long ones. \
        Works with any flowlet switch; it never changes a path itself.",
};

state! {
    /// Gap above which a packet may be held; empty: not known yet. Of the host.
    threshold_ps: "ps";
    /// Share of the gaps that were held. Of the host.
    held_share: "";
    /// Bytes of the flowlet.
    flowlet_bytes: "bytes";
    /// Delay that may still be added to the flow; empty: unlimited.
    budget_ps: "ps";
}

choices! {
    /// Source of the threshold T.
    pub enum Hf2tThreshold {
        /// The quantile of the host's gaps that a share `p` reaches.
        Quantile = "quantile",
        /// `fixed_threshold`.
        Fixed = "fixed",
    }
}

choices! {
    /// Definition of a gap.
    pub enum Hf2tGaps {
        /// Time between transmissions: the gap at the switch.
        Wire = "wire",
        /// From the last packet to the time at which pacing and window would allow the next one on an idle NIC.
        Eligible = "eligible",
    }
}

parameters! {
    pub struct Hf2tParameters {
        /// The switches' flowlet timeout F; auto: that of the simulated switches, on a real network one base round trip
        /// of the flow. With less, no held packet begins a flowlet.
        flowlet_timeout: Auto<Time> = Auto::Auto, source "specification 11.3: that of the switches";
        /// Scales alpha with the length of the flowlet; otherwise alpha is 1 ("No Dynamic T").
        dynamic: bool = true, source "HF2T slides", Expert;
        /// Source of T.
        threshold: Hf2tThreshold = Hf2tThreshold::Quantile, source "ours: how T is computed is not given (specification 11.2)", Reading;
        /// Definition of a gap.
        gaps: Hf2tGaps = Hf2tGaps::Wire, source "HF2T slides: the time between adjacent packets of a flow", Reading;
        /// Share of the gaps that reach T.
        p: f64 = 0.01, source "specification 11.3", Expert;
        /// T with `threshold = "fixed"`.
        fixed_threshold: Time = Time::from_us(6), source "ours", Reading;
        /// Interval at which T is recomputed and older gaps lose half of their weight.
        refresh: Time = Time::from_ms(1), source "specification 11.3", Expert;
        /// Target flowlet length.
        l_target: Bytes = Bytes(64_000), source "specification 11.3", Expert;
        /// Lower bound of alpha.
        alpha_min: f64 = 0.25, source "specification 11.3", Expert;
        /// Upper bound of alpha.
        alpha_max: f64 = 4.0, source "specification 11.3", Expert;
        /// Maximum delay of one packet, in flowlet timeouts; 1: unlimited.
        dmax: f64 = 1.0, source "ours: no bound; with 0.5 (specification 11.3) and a timeout of 100 us only flows below 168 Mb/s are ever held", Expert;
        /// Maximum total delay of a flow: this share of its ideal completion time and one flowlet timeout.
        max_added_delay: Never<f64> = Never::Never, source "ours: no bound; 0.01 (specification 11.3) allows 2 to 4 holds where the slides' numbers need 15 per large flow", Expert;
        /// Maximum share of a host's packets that are held, over the last `refresh` intervals. A bound ends the feedback in
        /// which holds shorten the gaps of other packets, T falls with them, and more are held.
        max_held: Never<f64> = Never::Never, source "ours: no bound; the slides delay \"a small number of specific packets\", by their counts 2.6 %", Expert;
        /// Effect of a retransmission timeout on the flow's tag; with a flowlet switch the pause alone lets it move.
        on_timeout: OnTimeout = OnTimeout::Ignore, source "HF2T slides: the host changes no path; move: ours", Expert;
    }
}

impl SchemeCapabilities for Hf2tParameters {
    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(
            self.flowlet_timeout != Auto::Value(Time::ZERO),
            "flowlet_timeout",
            "0us",
            "a time above zero",
        )?;
        Invalid::unless(self.p > 0.0 && self.p < 1.0, "p", self.p, "a share between 0 and 1")?;
        Invalid::unless(self.refresh > Time::ZERO, "refresh", self.refresh, "a time above zero")?;
        Invalid::unless(self.alpha_min > 0.0, "alpha_min", self.alpha_min, "a number above 0")?;
        let found = format!("{} with alpha_max = {}", self.alpha_min, self.alpha_max);
        Invalid::unless(self.alpha_min <= self.alpha_max, "alpha_min", found, "alpha_max or less")?;
        Invalid::unless((0.0..=1.0).contains(&self.dmax), "dmax", self.dmax, "a share from 0 to 1")?;
        let share = self.max_held.value().unwrap_or(0.0);
        Invalid::unless((0.0..=1.0).contains(&share), "max_held", share, "a share from 0 to 1, or \"never\"")?;
        let share = self.max_added_delay.value().unwrap_or(0.0);
        Invalid::unless(share >= 0.0, "max_added_delay", share, "0 or more, or \"never\"")
    }

    fn keeps_path(&self) -> bool {
        true
    }

    fn holds_for_flowlets(&self) -> bool {
        true
    }

    fn without_effect(&self, _tags: TagKind) -> Vec<(&'static str, &'static str)> {
        let mut all = vec![];
        if !self.dynamic {
            all.extend(["l_target", "alpha_min", "alpha_max"].map(|key| (key, "dynamic = false")));
        }
        if self.threshold == Hf2tThreshold::Quantile {
            all.push(("fixed_threshold", "threshold = \"quantile\""));
        }
        all
    }
}

/// Bins per doubling of the gap, as a power of two.
const FINE: u32 = 3;
const BINS: usize = 64 << FINE;
/// Weight of a fresh gap, large so that repeated halving preserves it for long.
const WEIGHT: u64 = 1 << 16;

#[derive(Debug)]
struct Gaps {
    bins: Box<[u64]>,
    total: u64,
}

impl Gaps {
    fn new() -> Self {
        Gaps { bins: vec![0; BINS].into_boxed_slice(), total: 0 }
    }

    fn bin(gap: Time) -> usize {
        let gap = gap.ps().max(1 << FINE);
        let top = gap.ilog2();
        ((top << FINE) + (gap >> (top - FINE)) as u32 - (1 << FINE)) as usize
    }

    /// The smallest gap of a bin.
    fn edge(bin: usize) -> Time {
        let (top, part) = ((bin >> FINE) as u32, bin as u64 & ((1 << FINE) - 1));
        Time::from_ps(((1 << FINE) + part) << (top - FINE))
    }

    fn add(&mut self, gap: Time) {
        self.bins[Self::bin(gap)] += WEIGHT;
        self.total += WEIGHT;
    }

    /// Returns the smallest gap that at most a share `p` of the gaps reaches; `None` without data.
    fn reached_by(&self, p: f64) -> Option<Time> {
        if self.total == 0 {
            return None;
        }
        let allowed = (self.total as f64 * p) as u64;
        let mut above = 0;
        for bin in (Gaps::bin(Time::ZERO)..BINS).rev() {
            above += self.bins[bin];
            if above > allowed {
                return Some(Self::edge((bin + 1).min(BINS - 1)));
            }
        }
        Some(Time::ZERO)
    }

    fn forget_half(&mut self) {
        self.total = 0;
        for bin in &mut self.bins {
            *bin /= 2;
            self.total += *bin;
        }
    }
}

#[derive(Debug)]
struct Flow {
    tag: Tag,
    timeout: Time,
    /// Wire time of one full packet at the flow's rate: safety margin of a delay beyond the timeout.
    margin: Time,
    last_sent: Option<Time>,
    length: u64,
    budget: Time,
    held_since: Option<Time>,
}

#[derive(Debug)]
pub struct Hf2t {
    parameters: Hf2tParameters,
    host_key: u64,
    flows: Slots<Flow>,
    gaps: Gaps,
    threshold: Option<Time>,
    refresh_at: Time,
    /// Gaps and holds; both lose half of their weight at every refresh.
    offered: f64,
    held: f64,
    counters: SchemeCounters,
}

impl Hf2t {
    pub fn new(parameters: Hf2tParameters, seed: u64, host_key: u64) -> Self {
        let threshold = match parameters.threshold {
            Hf2tThreshold::Quantile => None,
            Hf2tThreshold::Fixed => Some(parameters.fixed_threshold),
        };
        Hf2t {
            refresh_at: parameters.refresh,
            parameters,
            host_key: key(seed, host_key, "hf2t"),
            flows: Slots::new(),
            gaps: Gaps::new(),
            threshold,
            offered: 0.0,
            held: 0.0,
            counters: SchemeCounters::default(),
        }
    }

    fn refresh(&mut self, now: Time) {
        if now < self.refresh_at {
            return;
        }
        while self.refresh_at <= now {
            self.refresh_at += self.parameters.refresh;
        }
        if self.parameters.threshold == Hf2tThreshold::Quantile {
            self.threshold = self.gaps.reached_by(self.parameters.p).or(self.threshold);
        }
        self.gaps.forget_half();
        (self.offered, self.held) = (self.offered / 2.0, self.held / 2.0);
    }
}

impl HostScheme for Hf2t {
    fn open(&mut self, _now: Time, slot: u32, flow: &FlowInfo<'_>) {
        let timeout = self.parameters.flowlet_timeout.value().unwrap_or(flow.base_rtt);
        let ideal = flow.base_rtt + flow.rate.wire_time(flow.packets * u64::from(flow.full_packet));
        let budget = self.parameters.max_added_delay.value().map_or(Time::MAX, |share| times(ideal, share) + timeout);
        let state = Flow {
            tag: (key(self.host_key, flow.connection, "tag") >> 32) as Tag,
            timeout,
            margin: flow.rate.wire_time(u64::from(flow.full_packet)),
            last_sent: None,
            length: 0,
            budget,
            held_since: None,
        };
        self.flows.put(slot, state);
    }
    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }

    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision {
        self.refresh(now);
        let p = &self.parameters;
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        if let Some(since) = flow.held_since.take() {
            // It has waited: the switch starts a new flowlet.
            self.counters.created_flowlets += 1;
            self.counters.hold_timeouts_ps += flow.timeout.ps();
            self.counters.added_delay_ps += now.saturating_sub(since).ps();
            flow.budget = flow.budget.saturating_sub(now.saturating_sub(since));
            flow.length = 0;
        } else if let Some(last) = flow.last_sent {
            let gap = match p.gaps {
                Hf2tGaps::Wire => now.saturating_sub(last),
                Hf2tGaps::Eligible => packet.eligible_at.max(last) - last,
            };
            self.gaps.add(gap);
            self.offered += 1.0;
            if gap >= flow.timeout {
                flow.length = 0;
            } else if let Some(threshold) = self.threshold {
                let alpha = match p.dynamic {
                    true => {
                        let length = flow.length.max(u64::from(packet.bytes)) as f64;
                        (p.l_target.0 as f64 / length).clamp(p.alpha_min, p.alpha_max)
                    }
                    false => 1.0,
                };
                let wanted = (threshold.min(flow.timeout).ps() as f64 * alpha) as u64;
                let missing = flow.timeout - gap;
                let near = missing.ps() as f64 <= p.dmax * flow.timeout.ps() as f64;
                let until = last + flow.timeout + flow.margin;
                let few = p.max_held.value().is_none_or(|share| self.held + 1.0 <= share * self.offered);
                if gap.ps() >= wanted && near && few && until > now && until - now <= flow.budget {
                    self.held += 1.0;
                    flow.held_since = Some(now);
                    return Decision::Hold(until);
                }
            }
        }
        flow.length += u64::from(packet.bytes);
        flow.last_sent = Some(now);
        Decision::Send(flow.tag)
    }

    fn on_timeout(&mut self, _now: Time, slot: u32, _tag: Tag) {
        if let Some(flow) = self.flows.get(slot).filter(|_| self.parameters.on_timeout == OnTimeout::Move) {
            flow.tag = (key(self.host_key, u64::from(flow.tag), "timeout") >> 32) as Tag;
        }
    }

    fn counters(&self) -> SchemeCounters {
        self.counters
    }

    fn state(&self, _now: Time, slot: u32, _tag: Option<Tag>) -> State {
        let Some(flow) = self.flows.peek(slot) else { return State::default() };
        Columns {
            threshold_ps: self.threshold.map_or(f64::NAN, ps),
            held_share: self.held / self.offered,
            flowlet_bytes: flow.length as f64,
            budget_ps: ps(flow.budget),
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::{flow, packet, us};
    use proptest::prelude::*;

    fn hf2t(p: Hf2tParameters) -> Hf2t {
        let mut s = Hf2t::new(p, 1, 2);
        s.open(Time::ZERO, 0, &flow(&[8]));
        s
    }
    /// A threshold of 6 us and alpha = 1.
    fn fixed() -> Hf2tParameters {
        Hf2tParameters { threshold: Hf2tThreshold::Fixed, dynamic: false, ..Default::default() }
    }
    fn ask(s: &mut Hf2t, now: f64, eligible: f64) -> Decision {
        s.select(us(now), 0, &packet(0, us(eligible)))
    }

    #[test]
    fn bins_hold_their_edges() {
        for gap in [8u64, 9, 15, 16, 83_000, 1_000_000, 12_500_000, u64::MAX] {
            let bin = Gaps::bin(Time::from_ps(gap));
            let next = bin + 1;
            assert!(Gaps::edge(bin).ps() <= gap, "{gap}");
            assert!(next >= BINS || Gaps::edge(next).ps() > gap, "{gap}");
        }
    }

    #[test]
    fn the_threshold_is_a_quantile() {
        // 990 gaps of 1 us and 10 of 9 us: one in a hundred reaches 9 us, so T is the first edge above 1 us.
        let mut gaps = Gaps::new();
        (0..990).for_each(|_| gaps.add(us(1.0)));
        (0..10).for_each(|_| gaps.add(us(9.0)));
        let t = gaps.reached_by(0.01).unwrap();
        assert!(t > us(1.0) && t < us(1.2), "{t}");
        let t = gaps.reached_by(0.009).unwrap();
        assert!(t > us(9.0) && t < us(10.2), "{t}");
        gaps.forget_half();
        assert_eq!(gaps.total, 500 * WEIGHT);
    }

    #[test]
    fn a_worked_trace() {
        // F = 10 us (the base round trip), T fixed at 6 us, alpha = 1, packets of 4160 B at 400 Gb/s take 83.2 ns.
        let mut s = hf2t(Hf2tParameters { dmax: 0.5, max_added_delay: Never::Value(0.01), ..fixed() });
        let Decision::Send(tag) = ask(&mut s, 0.0, 0.0) else { panic!() };
        assert_eq!(ask(&mut s, 5.0, 5.0), Decision::Send(tag), "a gap of 5 us is below T");
        // A gap of 7 us: held until 10 us and one packet after the last.
        assert_eq!(ask(&mut s, 12.0, 12.0), Decision::Hold(us(15.0832)));
        assert_eq!(ask(&mut s, 15.0832, 12.0), Decision::Send(tag));
        assert_eq!((s.counters().created_flowlets, s.counters().added_delay_ps), (1, 3_083_200));
        assert_eq!(ask(&mut s, 26.0, 26.0), Decision::Send(tag));
        assert_eq!(s.counters().created_flowlets, 1);
        // The flow's budget: 1 % of 10 + 83.2 us and 10 us = 10.932 us, of which 3.0832 are used; three more fit.
        for round in 0..4 {
            let last = 26.0 + 30.0 * f64::from(round);
            let decision = ask(&mut s, last + 7.0, last + 7.0);
            if round < 2 {
                assert!(matches!(decision, Decision::Hold(_)), "{round}");
                ask(&mut s, last + 10.0832, last + 7.0);
                ask(&mut s, last + 30.0, last + 30.0);
            } else {
                assert_eq!(decision, Decision::Send(tag), "{round}");
                ask(&mut s, last + 30.0, last + 30.0);
            }
        }
    }

    #[test]
    fn holding_time_is_unbounded_by_default() {
        // Gaps of 6 us of 10 are 4 us short: twenty holds of 4.0832 us, of a flow that takes 93 us alone.
        let mut s = hf2t(fixed());
        let mut last = us(0.0);
        s.select(last, 0, &packet(0, last));
        for psn in 1..=20 {
            let packet = packet(psn, last);
            let Decision::Hold(until) = s.select(last + us(6.0), 0, &packet) else { panic!("{psn}") };
            assert_eq!(until, last + us(10.0832));
            assert!(matches!(s.select(until, 0, &packet), Decision::Send(_)));
            last = until;
        }
        assert_eq!((s.counters().created_flowlets, s.counters().added_delay_ps), (20, 20 * 4_083_200));
    }

    #[test]
    fn at_most_a_share_of_the_packets_is_held() {
        // 400 gaps of 7 us of 10, all above T = 6 us, in one refresh interval: of n packets at most n / 20 are held.
        let mut s = hf2t(Hf2tParameters { refresh: Time::from_ms(100), max_held: Never::Value(0.05), ..fixed() });
        let (mut now, mut held) = (Time::ZERO, 0);
        let select = |s: &mut Hf2t, now| s.select(now, 0, &packet(0, now));
        select(&mut s, now);
        for packet in 1..=400 {
            now += Time::from_us(7);
            if let Decision::Hold(until) = select(&mut s, now) {
                (held, now) = (held + 1, until);
                select(&mut s, now);
            }
            assert_eq!(held, packet / 20, "of {packet}");
        }
        // Each hold means one timeout of 10 us, and took 10 us and a packet of 83.2 ns less the gap.
        let counters = s.counters();
        assert_eq!((counters.created_flowlets, counters.hold_timeouts_ps), (20, 20 * 10_000_000));
        assert_eq!(counters.added_delay_ps, 20 * 3_083_200);
    }

    #[test]
    fn gaps_are_measured_on_the_wire_or_before_the_nics_queue() {
        // Ready after 1 us, sent after 7 us, because other flows of the NIC were sent first.
        for (gaps, held) in [(Hf2tGaps::Wire, true), (Hf2tGaps::Eligible, false)] {
            let mut s = hf2t(Hf2tParameters { gaps, ..fixed() });
            ask(&mut s, 0.0, 0.0);
            assert_eq!(matches!(ask(&mut s, 7.0, 1.0), Decision::Hold(_)), held, "{gaps:?}");
        }
    }

    #[test]
    fn long_flowlets_are_split_sooner_than_short_ones() {
        // alpha = 64 kB / length: after one packet of 4096 B it is 4 (the bound), after 40 packets 0.39.
        let mut s = hf2t(Hf2tParameters { dynamic: true, ..fixed() });
        ask(&mut s, 0.0, 0.0);
        assert!(matches!(ask(&mut s, 9.0, 9.0), Decision::Send(_)), "9 us are below 4 x 6");
        for step in 1..40 {
            ask(&mut s, 9.0 + f64::from(step) * 0.1, 9.0 + f64::from(step) * 0.1);
        }
        // The gap of 5.1 us is above 0.39 x 6 = 2.3 us and 4.9 us short of 10, at most half.
        assert!(matches!(ask(&mut s, 18.0, 18.0), Decision::Hold(_)));
    }

    proptest! {
        /// For any gaps: the tag is constant, no packet is held twice, and the added delay is within its bound.
        #[test]
        fn packets_stay_in_order_with_little_delay(gaps in prop::collection::vec(0u64..30_000_000, 1..300), dynamic: bool, seed: u64) {
            let max_added_delay = Never::Value(0.01);
            let p = Hf2tParameters { dynamic, refresh: Time::from_us(50), p: 0.2, max_added_delay, ..Default::default() };
            let mut s = Hf2t::new(p, seed, 2);
            let info = flow(&[8]);
            s.open(Time::ZERO, 0, &info);
            let (mut now, mut tag) = (Time::ZERO, None);
            for gap in gaps {
                now += Time::from_ps(gap);
                let packet = packet(0, now);
                let mut decision = s.select(now, 0, &packet);
                if let Decision::Hold(until) = decision {
                    prop_assert!(until > now);
                    now = until;
                    decision = s.select(now, 0, &packet);
                }
                let Decision::Send(sent) = decision else { panic!("held twice") };
                prop_assert_eq!(*tag.get_or_insert(sent), sent);
            }
            // 1 % of the ideal time (10 us and 1000 packets of 83.2 ns) and one timeout of 10 us.
            let bound = Time::from_ps((93_200_000f64 * 0.01) as u64) + Time::from_us(10);
            prop_assert!(s.counters().added_delay_ps <= bound.ps());
        }
    }
}
