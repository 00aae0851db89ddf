//! CONGA (specification 4.2; SIGCOMM 2014).

use super::leaf::{FlowKey, FlowTable, Flowlet, MAX_LEAF_PATHS, PathNumbers};
use crate::{
    Candidates, Delivery, Effects, LocalQueues, PacketView, SchemeCounters, State, SwitchHeader, SwitchInfo,
    SwitchScheme,
    hash::{self, Hasher},
    registry::{Invalid, PacketScope, SchemeCapabilities},
    state::state,
};
use anabranch_random::Stream;
use anabranch_settings::{About, parameters};
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "conga",
    summary: "flowlets take the path whose most congested link is least so, as other leaves report it",
    source: "specification 4.2; CONGA, SIGCOMM 2014; parameters of Hopper's comparison",
    description: "Every output port keeps a discounting rate estimator. A packet gathers the largest quantised estimate \
        on its path; the receiver's leaf stores it per path and returns it with traffic in the other direction. A \
        new flowlet compares max(local, remote) over `candidates` paths.",
};

state! {
    /// Path of the flowlet, from the sender's leaf.
    path: "";
    /// Congestion of that path as the receiver's leaf reported it, 0 to 7; empty: no report, or an old one.
    reported: "";
    /// Congestion of the link here.
    local: "";
    /// Least congestion of the paths that the receiver's leaf reported.
    least_reported: "";
    /// Paths whose reports are not old.
    reported_paths: "paths";
    /// Flowlets that this leaf has begun.
    flowlets: "flowlets";
}

parameters! {
    pub struct CongaParameters {
        /// A pause longer than this ends a flowlet.
        flowlet_timeout: Time = Time::from_us(100), source "specification 4.2";
        /// Consecutive paths that a new flowlet compares, from a random first one; 0: all.
        candidates: u32 = 4, source "specification 4.2: as in Hopper's comparison; CONGA's paper compares all", Expert;
    }
}

impl SchemeCapabilities for CongaParameters {
    fn packet_scope(&self) -> PacketScope {
        PacketScope::EveryHop
    }

    fn check(&self) -> Result<(), Invalid> {
        let timeout = self.flowlet_timeout;
        Invalid::unless(timeout > Time::ZERO, "flowlet_timeout", timeout, "a time above zero")
    }

    fn fills_header(&self) -> bool {
        true
    }

    fn max_leaf_paths(&self) -> Option<u64> {
        Some(MAX_LEAF_PATHS)
    }

    fn flowlet_timeout(&self) -> Option<Time> {
        Some(self.flowlet_timeout)
    }
}

// Constants of specification 4.2.
/// Interval at which the rate estimators are discounted, and the share that one discount takes away.
const T_DRE: Time = Time::from_us(50);
const ALPHA: f64 = 0.2;
/// Levels of a congestion metric of 3 bits.
const LEVELS: u32 = 1 << 3;
/// Age at which reports on a path expire.
const AGING: Time = Time::from_us(500);

/// A discounting rate estimator: bytes, discounted at every multiple of the interval.
#[derive(Clone, Copy, Debug, Default)]
struct Dre {
    bytes: u64,
    interval: u64,
}

impl Dre {
    fn catch_up(&mut self, interval: u64) {
        while self.interval < interval && self.bytes > 0 {
            self.bytes = (self.bytes as f64 * (1.0 - ALPHA)) as u64;
            self.interval += 1;
        }
        self.interval = interval;
    }
}

#[derive(Clone, Copy, Debug)]
struct Metric {
    value: u32,
    at: Time,
}

/// Words of the header: path, largest metric so far, path reported (plus one; 0: none), its metric.
const PATH: usize = 0;
const CE: usize = 1;
const FEEDBACK_PATH: usize = 2;
const FEEDBACK: usize = 3;

#[derive(Debug)]
pub struct Conga {
    parameters: CongaParameters,
    hasher: Hasher,
    stream: Stream,
    number: u32,
    udp_ports: bool,
    paths: PathNumbers,
    dre: Vec<Dre>,
    flowlets: FlowTable<Flowlet>,
    /// Congestion per leaf and path: of the path there, and of the path back.
    to_leaf: Vec<Vec<Option<Metric>>>,
    from_leaf: Vec<Vec<Option<Metric>>>,
    best: Vec<u32>,
    count: u64,
}

impl Conga {
    pub fn new(parameters: CongaParameters, seed: u64, switch: &SwitchInfo) -> Self {
        let udp_ports = switch.udp_ports;
        Conga {
            hasher: Hasher::of(seed, switch),
            stream: Stream::keyed(seed, switch.key, "conga"),
            number: switch.number,
            udp_ports,
            paths: PathNumbers::of(switch),
            dre: vec![Dre::default(); switch.ports as usize],
            flowlets: FlowTable::new(parameters.flowlet_timeout.saturating_mul(20)),
            to_leaf: vec![Vec::new(); switch.switches as usize],
            from_leaf: vec![Vec::new(); switch.switches as usize],
            best: Vec::new(),
            count: 0,
            parameters,
        }
    }

    /// Returns the metric of an output port at `now`, after `bytes` more have passed.
    fn metric(&mut self, now: Time, port: u16, bytes: u32, rate: Rate) -> u32 {
        let dre = &mut self.dre[port as usize];
        dre.catch_up(now.ps() / T_DRE.ps());
        dre.bytes += u64::from(bytes);
        let capacity = rate.0 as f64 * (T_DRE.ps() as f64 / 1e12) / ALPHA;
        let metric = (dre.bytes as f64 * 8.0 / capacity * f64::from(LEVELS)) as u32;
        // The recorded model does not limit it (specification 17).
        if self.udp_ports { metric } else { metric.min(LEVELS - 1) }
    }

    /// Returns the report unless it has expired, which takes effect at multiples of the aging time.
    fn fresh(&self, metric: Option<Metric>, now: Time) -> Option<u32> {
        let aging = AGING.ps();
        let sweep = now.ps() / aging * aging;
        metric.filter(|m| sweep <= m.at.ps() + aging).map(|m| m.value)
    }

    fn choose<Q: LocalQueues>(&mut self, now: Time, leaf: u32, candidates: &Candidates<'_>, queues: &mut Q) -> u32 {
        let (count, sample) = (self.paths.count(), self.parameters.candidates);
        let (first, number) = if sample == 0 || sample >= count {
            (0, count)
        } else {
            (self.stream.below(u64::from(count - sample + 1)) as u32, sample)
        };
        let mut best = std::mem::take(&mut self.best);
        best.clear();
        let mut least = u32::MAX;
        for path in first..first + number {
            let index = self.paths.candidate(path, candidates);
            let local = self.metric(now, candidates.port[index as usize], 0, queues.rate(index));
            let heard = self.to_leaf.get(leaf as usize).and_then(|table| table.get(path as usize)).copied().flatten();
            let metric = local.max(self.fresh(heard, now).unwrap_or(0));
            if metric < least {
                least = metric;
                best.clear();
            }
            if metric == least {
                best.push(path);
            }
        }
        let chosen = best[self.stream.below(best.len() as u64) as usize];
        self.best = best;
        chosen
    }

    fn feedback(&mut self, now: Time, leaf: u32) -> Option<(u32, u32)> {
        let known = |conga: &Self, path: u32| {
            let table = conga.from_leaf.get(leaf as usize);
            let entry = table.and_then(|table| table.get(path as usize)).copied().flatten();
            conga.fresh(entry, now)
        };
        let count = (0..self.paths.count()).filter(|&path| known(self, path).is_some()).count();
        if count == 0 {
            return None;
        }
        let nth = self.stream.below(count as u64) as usize;
        let path = (0..self.paths.count()).filter(|&path| known(self, path).is_some()).nth(nth)?;
        Some((path, known(self, path)?))
    }

    /// Stores a report from a header; reports on paths that do not exist are ignored.
    fn note(tables: &mut [Vec<Option<Metric>>], leaf: u32, paths: u32, path: u32, metric: Metric) {
        let Some(table) = tables.get_mut(leaf as usize).filter(|_| path < paths) else { return };
        if table.is_empty() {
            table.resize(paths as usize, None);
        }
        table[path as usize] = Some(metric);
    }
}

impl SwitchScheme for Conga {
    fn forward<Q: LocalQueues>(
        &mut self,
        now: Time,
        packet: &PacketView,
        header: &mut SwitchHeader,
        candidates: &Candidates<'_>,
        queues: &mut Q,
    ) -> u32 {
        if packet.control || packet.src_leaf == packet.dst_leaf {
            return hash::ecmp(&self.hasher, packet, candidates.count);
        }
        if packet.src_leaf != self.number {
            let index = self.paths.candidate(header.0[PATH], candidates);
            let metric = self.metric(now, candidates.port[index as usize], packet.bytes, queues.rate(index));
            header.0[CE] = header.0[CE].max(metric);
            return index;
        }
        let key = FlowKey::of(packet, self.udp_ports);
        let timeout = self.parameters.flowlet_timeout;
        let known = self.flowlets.get(key).map(|flowlet| {
            let going = now - flowlet.last <= timeout;
            if going {
                flowlet.last = now;
            }
            (flowlet.path, going)
        });
        let path = match known {
            Some((path, true)) => path,
            _ => {
                let path = self.choose(now, packet.dst_leaf, candidates, queues);
                self.flowlets.insert(key, Flowlet { last: now, path }, now);
                self.count += 1;
                path
            }
        };
        let index = self.paths.candidate(path, candidates);
        header.0[PATH] = path;
        header.0[CE] = self.metric(now, candidates.port[index as usize], packet.bytes, queues.rate(index));
        if let Some((path, metric)) = self.feedback(now, packet.dst_leaf) {
            (header.0[FEEDBACK_PATH], header.0[FEEDBACK]) = (path + 1, metric);
        }
        index
    }

    fn deliver(&mut self, now: Time, packet: &PacketView, header: &SwitchHeader, _: &mut Effects) -> Delivery {
        if packet.src_leaf != packet.dst_leaf {
            let (leaf, paths) = (packet.src_leaf, self.paths.count());
            let metric = |value| Metric { value, at: now };
            Self::note(&mut self.from_leaf, leaf, paths, header.0[PATH], metric(header.0[CE]));
            if let Some(path) = header.0[FEEDBACK_PATH].checked_sub(1) {
                Self::note(&mut self.to_leaf, leaf, paths, path, metric(header.0[FEEDBACK]));
            }
        }
        Delivery::Deliver
    }

    fn counters(&self) -> SchemeCounters {
        SchemeCounters { flowlets: self.count, ..SchemeCounters::default() }
    }

    fn state(&self, now: Time, packet: &PacketView, header: &SwitchHeader) -> State {
        if packet.control || packet.src_leaf != self.number || packet.src_leaf == packet.dst_leaf {
            return State::default();
        }
        let table = self.to_leaf.get(packet.dst_leaf as usize).map_or(&[][..], Vec::as_slice);
        let reports = || table.iter().filter_map(|metric| self.fresh(*metric, now));
        let of = |metric: Option<u32>| metric.map_or(f64::NAN, f64::from);
        Columns {
            path: header.0[PATH].into(),
            reported: of(table.get(header.0[PATH] as usize).and_then(|metric| self.fresh(*metric, now))),
            local: header.0[CE].into(),
            least_reported: of(reports().min()),
            reported_paths: reports().count() as f64,
            flowlets: self.count as f64,
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::testing::{LEAF, POSITIONS, Queues, among, data};

    fn leaf(number: u32) -> SwitchInfo {
        SwitchInfo { uplinks: vec![8], number, ..LEAF }
    }
    fn scheme(number: u32) -> Conga {
        Conga::new(CongaParameters::default(), 1, &leaf(number))
    }

    #[test]
    fn the_estimator_forgets_a_fifth_per_interval() {
        // 100 Gb/s, 50 us, alpha 0.2: capacity C * T / alpha = 25 Mbit = 3.125 MB; of it 2^3 levels.
        let mut s = scheme(0);
        let rate = Rate(100_000_000_000);
        assert_eq!(s.metric(Time::from_us(10), 0, 1_000_000, rate), 2); // 1 / 3.125 * 8 = 2.56
        assert_eq!(s.metric(Time::from_us(60), 0, 0, rate), 2); // 0.8 MB: 2.048
        assert_eq!(s.metric(Time::from_us(110), 0, 0, rate), 1); // 0.64 MB: 1.64
        assert_eq!(s.dre[0].bytes, 640_000);
        assert_eq!(s.metric(Time::from_us(110), 0, 10_000_000, rate), 7, "3 bits");
        let mut free = Conga::new(CongaParameters::default(), 1, &SwitchInfo { udp_ports: true, ..leaf(0) });
        assert_eq!(free.metric(Time::ZERO, 0, 10_000_000, rate), 25); // 10 / 3.125 * 8 = 25.6
    }

    #[test]
    fn metrics_travel_to_the_other_leaf_and_back() {
        let (mut a, mut b) = (scheme(0), scheme(1));
        let mut spine = Conga::new(CongaParameters::default(), 1, &SwitchInfo { tier: 1, ..leaf(9) });
        let now = Time::from_us(10);
        let mut queues = Queues::new(&[0; 8]);
        let mut effects = Effects::default();
        // 1.2 MB pass the spine towards leaf 1: 1.2 / 3.125 * 8 = 3.07.
        let down: [u16; 1] = [5];
        for _ in 0..1200 {
            let other = crate::PacketView { bytes: 1000, ..data(99, 0) };
            spine.forward(now, &other, &mut SwitchHeader::default(), &among(&down, 0), &mut queues);
        }
        let packet = data(7, 0);
        let mut header = SwitchHeader::default();
        let path = a.forward(now, &packet, &mut header, &among(&POSITIONS, 0), &mut queues);
        assert_eq!((header.0[PATH], header.0[CE]), (path, 0), "an idle uplink");
        spine.forward(now, &packet, &mut header, &among(&down, 0), &mut queues);
        assert_eq!(header.0[CE], 3);
        assert_eq!(b.deliver(now, &packet, &header, &mut effects), Delivery::Deliver);
        let back = crate::PacketView { src: 2, dst: 1, src_leaf: 1, dst_leaf: 0, ..data(8, 0) };
        let mut header = SwitchHeader::default();
        b.forward(now, &back, &mut header, &among(&POSITIONS, 0), &mut queues);
        assert_eq!((header.0[FEEDBACK_PATH], header.0[FEEDBACK]), (path + 1, 3));
        a.deliver(now, &back, &header, &mut effects);
        let known = a.to_leaf[1][path as usize];
        assert_eq!(a.fresh(known, now), Some(3));
        // Dropped at the first multiple of 500 us at which it is older than 500 us: 1000 us.
        assert_eq!((a.fresh(known, Time::from_us(999)), a.fresh(known, Time::from_us(1000))), (Some(3), None));
        for flow in 100..400 {
            let mut header = SwitchHeader::default();
            a.forward(now, &data(flow, 0), &mut header, &among(&POSITIONS, 0), &mut queues);
            assert_ne!(header.0[PATH], path);
        }
    }

    #[test]
    fn four_consecutive_paths_weigh_the_middle_more() {
        // First of four from 0 to 4: path p is in min(p, 7-p)+1 of the five windows, capped at 4: of 20 samples
        // 1, 2, 3, 4, 4, 3, 2, 1; with all metrics equal the choice has these weights.
        let mut s = scheme(0);
        let mut queues = Queues::new(&[0; 8]);
        let mut seen = [0u32; 8];
        for flow in 0..20_000 {
            // Far apart in time, so that the estimators are empty.
            let now = Time::from_us(10_000 * (flow + 1));
            let mut header = SwitchHeader::default();
            s.forward(now, &data(flow, 0), &mut header, &among(&POSITIONS, 0), &mut queues);
            seen[header.0[PATH] as usize] += 1;
        }
        let weights = [1.0, 2.0, 3.0, 4.0, 4.0, 3.0, 2.0, 1.0];
        let chi: f64 = seen.iter().zip(weights).map(|(&n, w)| (f64::from(n) - 1000.0 * w).powi(2) / (1000.0 * w)).sum();
        assert!(chi < 24.3, "{seen:?}: chi-square {chi} with 7 degrees of freedom");
    }
}
