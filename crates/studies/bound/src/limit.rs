//! Bounds of the metrics of a comparison, from every machine that flows share.

use crate::{
    Demand, Machine, Network,
    cuts::{Family, core_job, families, longest},
    distances,
    flows::{demands, first_start},
    max_flow::{MAX_PAIRS, MaxFlow, costs, max_flow},
};
use anabranch_backend::{FctKind, IdealFct, Setup};
use anabranch_topology::NodeId;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Instant};

/// Workload name of the limits over all measured workloads, as in a comparison.
pub(crate) const ALL: &str = "all";

/// Lower bound of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Name of the workload; `all`: all measured workloads.
    pub workload: String,
    /// Name of the metric in `comparison.csv`.
    pub metric: String,
    /// Value in the metric's unit (microseconds, or none) that no run of these flows falls below.
    pub value: f64,
    /// Cause of the limit: a link, the links out of a leaf, `max-flow`, `a flow alone`, or, where the value is infinite, `flows
    /// without a path`.
    pub by: String,
}

/// Cost and accuracy of a linear program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MaxFlowCost {
    /// Name of the workload; `all`: all measured workloads.
    pub workload: String,
    /// Pairs of leaves with traffic.
    pub pairs: usize,
    /// Paths in the last program.
    pub paths: usize,
    /// Linear programs solved.
    pub rounds: u32,
    /// Least time in which the links between switches carry all bytes, in microseconds.
    pub time_us: f64,
    /// Share by which a better certificate could at most exceed it; `None`: no routing was found.
    pub gap: Option<f64>,
    /// Wall time in seconds.
    pub seconds: f64,
    /// Links with the largest part of the certificate, with their shares.
    pub links: Vec<(String, f64)>,
}

/// Flows that have no path for as long as there is traffic. They never finish, so that no bound exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unreachable {
    /// Name of the workload; `all`: all measured workloads.
    pub workload: String,
    /// Number of flows without a path.
    pub flows: usize,
    /// Number of flows of the workload.
    pub of: usize,
    /// First pairs of hosts without a path.
    pub pairs: Vec<UnreachablePair>,
    /// Links that are down throughout and separate the first pair.
    pub down: Vec<String>,
}

/// Hosts without a path, with their leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreachablePair {
    pub src: String,
    pub src_leaf: String,
    pub dst: String,
    pub dst_leaf: String,
}

impl Unreachable {
    /// Returns which flows have no path, and why, in one sentence.
    pub fn reason(&self) -> String {
        let of = if self.workload == ALL { String::new() } else { format!(" of workload {}", self.workload) };
        let first = self.pairs.first().map_or(String::new(), |pair| {
            let UnreachablePair { src, src_leaf, dst, dst_leaf } = pair;
            format!(", first {src} ({src_leaf}) to {dst} ({dst_leaf})")
        });
        let down = match self.down.len() {
            0 => String::new(),
            1 => format!(", where {} is down throughout", self.down[0]),
            count => {
                let more = if count > NAMED_LINKS { ", ..." } else { "" };
                let named = &self.down[..count.min(NAMED_LINKS)];
                format!(", where {}{more} are down throughout", named.join(", "))
            }
        };
        let (flows, all) = (self.flows, self.of);
        let have = if flows == 1 { "has" } else { "have" };
        format!("{flows} of {all} flows{of} {have} no path{first}{down}: no bound exists, since they never finish")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// A limit per workload and metric.
    pub limits: Vec<Limit>,
    /// The linear programs.
    pub max_flow: Vec<MaxFlowCost>,
    /// Flows without a path. Limits of their workloads are infinite.
    #[serde(default)]
    pub unreachable: Vec<Unreachable>,
    /// Reasons why limits are looser than they could be, or do not exist.
    pub loose: Vec<String>,
    /// Wall time in seconds.
    pub seconds: f64,
}

impl Bounds {
    pub fn limit(&self, workload: &str, metric: &str) -> Option<&Limit> {
        self.limits.iter().find(|limit| limit.workload == workload && limit.metric == metric)
    }
}

/// Rounding of wire times, in picoseconds: less than one per link and port.
const ROUNDING: f64 = 32.0;
/// Rounding of floating-point sums, as a share.
const PRECISION: f64 = 1e-9;
/// Links of a certificate or a cut that are named.
const NAMED_LINKS: usize = 5;
/// Pairs of hosts without a path that are named.
const NAMED_PAIRS: usize = 3;

/// Computes the bounds of `setup`; those by linear programs only with `with_max_flow`, since they take longest.
///
/// Every bound holds for each run of the setup in which all measured flows finish, under any load balancer and transport.
/// With servers there are none, and [`Bounds::loose`] has the reason.
pub fn bounds(setup: &Setup, with_max_flow: bool) -> Bounds {
    if !setup.flows.templates.is_empty() {
        let mut listed = setup.clone();
        listed.flows.list_templates();
        return bounds(&listed, with_max_flow);
    }
    if setup.flows.servers.is_some() {
        let loose = vec!["[servers]: messages over scale-up take no link of the network; no bounds".to_string()];
        return Bounds { loose, ..Bounds::default() };
    }
    let started = Instant::now();
    let from = first_start(setup);
    let mut network = Network::new(setup, from);
    let demands = demands(setup, &mut network);
    let counted_from = CountedFrom::new(&demands, setup.limits.warmup.ps() as f64);
    let mut bounds = Bounds::default();
    for part in parts(setup, &demands, counted_from) {
        part_bounds(setup, &network, &demands, &part, with_max_flow, &mut bounds);
    }
    bounds.loose.sort();
    bounds.loose.dedup();
    bounds.seconds = started.elapsed().as_secs_f64();
    bounds
}

/// Flows of a row of a comparison.
struct Part {
    name: String,
    /// Flows that count.
    flows: Vec<usize>,
    /// `false` if further flows may count, whose start decides whether they are past the warm-up.
    is_whole: bool,
}

/// Start from which flows count: that of the first flow, and the warm-up.
struct CountedFrom {
    /// Latest time that it can be; infinite if unknown, and minus infinity without a warm-up: every flow counts.
    latest: f64,
    /// `true` if it is known.
    is_known: bool,
}

impl CountedFrom {
    fn new(demands: &[Demand], warmup: f64) -> Self {
        if warmup == 0.0 {
            return CountedFrom { latest: f64::NEG_INFINITY, is_known: true };
        }
        let first = demands.iter().filter_map(|demand| demand.start).fold(f64::INFINITY, f64::min);
        let waits = demands.iter().filter(|demand| demand.start.is_none());
        CountedFrom { latest: first + warmup, is_known: waits.map(|demand| demand.earliest).all(|at| at >= first) }
    }
}

fn parts(setup: &Setup, demands: &[Demand], counted_from: CountedFrom) -> Vec<Part> {
    let workloads = &setup.flows.workloads;
    let of = |name: &str, belongs: &dyn Fn(u16) -> bool| {
        let own = || (0..demands.len()).filter(|number| belongs(demands[*number].workload));
        let counts = |number: &usize| demands[*number].earliest >= counted_from.latest;
        // Others may count too if their start, or that of the first flow, is not known.
        let may_count = |number: usize| !counts(&number) && (demands[number].start.is_none() || !counted_from.is_known);
        let is_whole = !own().any(may_count);
        Part { name: name.to_string(), flows: own().filter(counts).collect(), is_whole }
    };
    let is_measured = |workload: u16| workloads.get(usize::from(workload)).is_none_or(|workload| workload.measured);
    let mut parts = vec![of(ALL, &is_measured)];
    if workloads.len() > 1 {
        parts.extend(
            workloads.iter().enumerate().map(|(number, workload)| of(&workload.name, &|of| usize::from(of) == number)),
        );
    }
    parts
}

fn part_bounds(
    setup: &Setup,
    network: &Network<'_>,
    demands: &[Demand],
    part: &Part,
    with_max_flow: bool,
    bounds: &mut Bounds,
) {
    if part.flows.is_empty() {
        return;
    }
    let mut families = families(network, demands, &part.flows);
    let unreachable = unreachable(network, demands, part);
    let is_cut = unreachable.is_some();
    bounds.loose.extend(unreachable.iter().map(Unreachable::reason));
    bounds.unreachable.extend(unreachable);
    if is_cut {
        // Without a routing the lengths of a program are arbitrary: they do not name the links that are down.
    } else if with_max_flow && !network.is_exact() {
        bounds.loose.push("wire times of whole nanoseconds: no bounds of links between switches".into());
    } else if with_max_flow {
        let started = Instant::now();
        match max_flow(network, demands, &part.flows) {
            Ok(None) => {}
            Ok(Some(flow)) => {
                bounds.max_flow.push(cost(network, part, &flow, started.elapsed().as_secs_f64()));
                families.push(by_lengths(network, demands, part, &flow));
            }
            Err(pairs) => bounds.loose.push(format!(
                "{pairs} pairs of leaves with traffic, more than {MAX_PAIRS}: no linear program, cuts of leaves and groups alone"
            )),
        }
    }
    let kind = setup.fabric.fct_kind;
    if kind == FctKind::Rx && (setup.fabric.pfc || setup.fabric.classes.len() > 1) {
        bounds.loose.push(
            "completion times begin with the first packet sent, which pauses or other classes may delay: flows alone and completion only".into(),
        );
    }
    let least_slowdown = if setup.fabric.ideal_fct == IdealFct::RttAndBytes { 0.0 } else { 1.0 };
    let search = Search { demands, part, kind, families: &families, is_cut, least_slowdown };
    bounds.limits.extend(search.limits());
}

/// Returns the flows of a part that have no path; `None` if all have one.
fn unreachable(network: &Network<'_>, demands: &[Demand], part: &Part) -> Option<Unreachable> {
    let has_none = |demand: &&Demand| !(demand.alone() + demand.back).is_finite();
    let cut: Vec<&Demand> = part.flows.iter().map(|number| &demands[*number]).filter(has_none).collect();
    let first = cut.first()?;
    let topology = network.topology;
    let name = |node: NodeId| topology.node(node).name.clone();
    let mut pairs: Vec<UnreachablePair> = vec![];
    for demand in &cut {
        let pair = UnreachablePair {
            src: name(NodeId(demand.src)),
            src_leaf: name(topology.edge_switch(demand.src)),
            dst: name(NodeId(demand.dst)),
            dst_leaf: name(topology.edge_switch(demand.dst)),
        };
        if pairs.len() < NAMED_PAIRS && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    Some(Unreachable {
        workload: part.name.clone(),
        flows: cut.len(),
        of: part.flows.len(),
        pairs,
        down: network.cut(first.src, first.dst).into_iter().map(|link| topology.link_name(link)).collect(),
    })
}

fn cost(network: &Network<'_>, part: &Part, flow: &MaxFlow, seconds: f64) -> MaxFlowCost {
    let gap = (flow.routed.is_finite() && flow.routed > 0.0).then(|| (1.0 - flow.time / flow.routed).max(0.0));
    MaxFlowCost {
        workload: part.name.clone(),
        pairs: flow.pairs,
        paths: flow.paths,
        rounds: flow.rounds,
        time_us: flow.time / 1e6,
        gap,
        seconds,
        links: longest(network, &flow.lengths, NAMED_LINKS),
    }
}

/// Returns the machine of all links between switches, weighted by the lengths of a certificate.
fn by_lengths(network: &Network<'_>, demands: &[Demand], part: &Part, flow: &MaxFlow) -> Family {
    let topology = network.topology;
    let costs = costs(network, &flow.lengths);
    let mut from: BTreeMap<NodeId, Vec<f64>> = BTreeMap::new();
    let mut jobs = vec![];
    for number in &part.flows {
        let demand = &demands[*number];
        let (leaf, to) = (topology.edge_switch(demand.src), topology.edge_switch(demand.dst));
        if leaf != to {
            let distances = from.entry(leaf).or_insert_with(|| distances(topology, leaf, &costs));
            let work = flow.work(demand.bytes(), distances[(to.0 - topology.hosts) as usize]);
            jobs.push(core_job(*number, demand, work));
        }
    }
    Family { machines: vec![("max-flow".into(), Machine::new(jobs))] }
}

struct Search<'s> {
    demands: &'s [Demand],
    part: &'s Part,
    kind: FctKind,
    families: &'s [Family],
    /// `true` if a flow has no path.
    is_cut: bool,
    /// 1 where ideal times are bounds; 0 for the recorded model's formula.
    least_slowdown: f64,
}

/// A value in picoseconds, or a ratio, and what causes it.
#[derive(Clone, Debug)]
struct Found {
    value: f64,
    by: String,
}

impl Found {
    fn alone(value: f64) -> Self {
        Found { value, by: "a flow alone".into() }
    }

    fn raise(&mut self, value: f64, by: &str) {
        if value > self.value {
            *self = Found { value, by: by.to_string() };
        }
    }
}

impl Search<'_> {
    fn limits(&self) -> Vec<Limit> {
        let flows = || self.part.flows.iter().map(|number| &self.demands[*number]);
        let ideal = flows().map(|flow| flow.ideal_of(self.kind)).fold(0.0, f64::max);
        let mut limits = vec![];
        let mut add = |metric: &str, found: Option<Found>, scale: f64| {
            let found = match self.is_cut {
                true => found.map(|_| Found { value: f64::INFINITY, by: "flows without a path".into() }),
                false => found.filter(|found| !found.value.is_nan()),
            };
            if let Some(found) = found {
                let value = found.value * (1.0 - PRECISION) / scale;
                // What rounding takes away below the least slowdown is proven.
                let is_slowdown = metric.starts_with("slowdown");
                let value = if is_slowdown { value.max(self.least_slowdown) } else { value };
                limits.push(Limit { workload: self.part.name.clone(), metric: metric.into(), value, by: found.by });
            }
        };
        let rounded = |found: Found| Found { value: (found.value - ROUNDING).max(0.0), ..found };
        let (slowest, slowdown) = self.slowest();
        add("fct_mean", self.mean(&|_| 1.0, 0.0).map(rounded), 1e6);
        add("fct_max", Some(rounded(slowest.clone())), 1e6);
        let share = |number: usize| 1.0 / self.demands[number].ideal_of(self.kind);
        add("slowdown_mean", self.mean(&share, self.least_slowdown), 1.0);
        add("slowdown_max", Some(slowdown), 1.0);
        if ideal > 0.0 {
            add("fct_ratio_max", Some(rounded(slowest)), ideal);
        }
        add("completion", self.completion().map(rounded), 1e6);
        limits
    }

    /// Returns the machine with the jobs whose clock is known, by the clock of the completion times.
    fn clocked(&self, machine: &Machine) -> Machine {
        let jobs = machine.jobs().iter().filter_map(|job| {
            let demand = &self.demands[job.flow];
            demand.start?;
            match self.kind {
                FctKind::Rx => job.turn.is_finite().then_some(*job),
                FctKind::Ack => Some(crate::machine::Job {
                    turn: 0.0,
                    tail: job.tail + demand.back,
                    after: job.after + demand.back,
                    ..*job
                }),
            }
        });
        Machine::new(jobs.collect())
    }

    /// Returns the bounds of the longest completion time and of the largest slowdown.
    fn slowest(&self) -> (Found, Found) {
        let flows = || self.part.flows.iter().map(|number| &self.demands[*number]);
        let alone = |flow: &Demand| flow.alone_of(self.kind);
        let mut time = Found::alone(flows().map(alone).fold(0.0, f64::max));
        let ratio = |flow: &Demand| (alone(flow) - ROUNDING) / flow.ideal_of(self.kind);
        let mut slowdown = Found::alone(flows().map(ratio).fold(self.least_slowdown, f64::max));
        for (name, machine) in self.families.iter().flat_map(|family| &family.machines) {
            let machine = self.clocked(machine);
            let Some(span) = machine.span() else { continue };
            time.raise(span.time, name);
            let jobs = machine.jobs()[span.first..=span.last].iter();
            let ideal = jobs.map(|job| self.demands[job.flow].ideal_of(self.kind)).fold(0.0, f64::max);
            slowdown.raise((span.time - ROUNDING) / ideal, name);
        }
        (time, slowdown)
    }

    /// Returns the bound of the mean of `weight` times completion time, of which no value is less than `least`.
    fn mean(&self, weight: &dyn Fn(usize) -> f64, least: f64) -> Option<Found> {
        if !self.part.is_whole {
            return None;
        }
        let alone = |number: usize| ((self.demands[number].alone_of(self.kind) - ROUNDING) * weight(number)).max(least);
        let all: f64 = self.part.flows.iter().map(|number| alone(*number)).sum();
        let mut best = Found::alone(all);
        for family in self.families {
            let (mut sum, mut rest) = (0.0, all);
            let mut largest: Option<Found> = None;
            for (name, machine) in &family.machines {
                let machine = self.clocked(machine);
                let single: f64 = machine.jobs().iter().map(|job| alone(job.flow)).sum();
                let rounding: f64 = machine.jobs().iter().map(|job| ROUNDING * weight(job.flow)).sum();
                let shared = machine.total(weight) - rounding;
                rest -= single;
                sum += single.max(shared);
                if shared > single {
                    largest.get_or_insert(Found::alone(0.0)).raise(shared - single, name);
                }
            }
            if let Some(largest) = largest {
                let others = family.machines.len() - 1;
                let by = match others {
                    0 => largest.by,
                    _ => format!("{} and {others} alike", largest.by),
                };
                best.raise(sum + rest, &by);
            }
        }
        Some(Found { value: best.value / self.part.flows.len() as f64, by: best.by })
    }

    /// Returns the bound of the time from the first start to the last acknowledgement; `None` if no start is known.
    fn completion(&self) -> Option<Found> {
        if !self.part.is_whole {
            return None;
        }
        let flows = || self.part.flows.iter().map(|number| &self.demands[*number]);
        let first = flows().filter_map(|flow| flow.start).min_by(f64::total_cmp)?;
        let starts = || flows().filter(|flow| flow.earliest.is_finite());
        let ends = starts().map(|flow| flow.earliest + flow.alone() + flow.back);
        let mut best = Found::alone(ends.fold(0.0, f64::max) - first);
        for (name, machine) in self.families.iter().flat_map(|family| &family.machines) {
            let jobs = machine.jobs().iter().filter(|job| job.start.is_finite());
            let jobs = jobs.map(|job| crate::machine::Job { tail: job.tail + self.demands[job.flow].back, ..*job });
            if let Some(end) = Machine::new(jobs.collect()).end() {
                best.raise(end - first, name);
            }
        }
        Some(best)
    }
}
