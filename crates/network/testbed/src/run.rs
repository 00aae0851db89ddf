//! A scenario's flows on a network of namespaces: one process, a thread per host, the clock of the machine.

use crate::{
    Fabric, Harm, Plan, PortCount, TestbedError,
    host::{Host, Order, Report},
    jobs::{self, Jobs, Launch},
    paths::{Asked, discover, groups},
    processors::Processors,
    triggers::Triggers,
};
use anabranch_backend::{FlowOutcome, Progress, RunError, Setup, flow_rows};
use anabranch_endpoint::{Bytes, Counters};
use anabranch_outcome::{EndpointLoad, FlowMetrics, LinkRow, MachineLoad, OnWire, QueueStats, RunMetrics, RunRows};
use anabranch_topology::{Fault, FaultAction};
use anabranch_units::Time;
use anabranch_wire::{FindLabels, Label, Lateness, WireParameters};
use std::{
    collections::BTreeSet,
    net::{SocketAddr, SocketAddrV4},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

/// The port of label 0.
const PORT: u16 = 7000;
/// Bytes that flows consist of, over and over.
const CONTENT: usize = 1 << 20;
/// How long other ends may take to be met.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often progress is told.
const TELL: Duration = Duration::from_millis(100);
/// How often switches are asked where labels lead.
const ROUNDS: usize = 5;
/// How long an answer of a switch may take.
const ANSWER: Duration = Duration::from_millis(200);

fn wrong(error: &TestbedError) -> RunError {
    RunError::Setup(error.to_string())
}

/// Runs `setup` on namespaces as `wire` says; `launch` says how ranks of collectives are started.
///
/// # Errors
/// [`RunError::Setup`] of what a testbed cannot be, [`RunError::Stalled`] where an end loses another.
pub(crate) fn run(
    setup: &Setup,
    wire: &WireParameters,
    launch: &Launch<'_>,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunRows, RunError> {
    let plan = Plan::of_setup(setup, wire).map_err(|error| wrong(&error))?;
    let fabric = Fabric::build(plan).map_err(|error| wrong(&error))?;
    let mut run = Run::new(setup, wire, &fabric)?;
    run.prepare_faults()?;
    let ways = run.ways(wire)?;
    let ranks = jobs::settings(&setup.flows, &fabric, launch)?;
    let stop = AtomicBool::new(false);
    let (sender, reports) = channel();
    let hosts: Vec<Option<Host>> = run.hosts.iter_mut().map(Option::take).collect();
    std::thread::scope(|scope| {
        let mut orders = Vec::new();
        for (number, host) in hosts.iter().enumerate() {
            let (order, receiver) = channel();
            orders.push(order);
            if let Some(host) = host {
                let sender: Sender<(usize, Report)> = sender.clone();
                scope.spawn(move || host.live(number, &receiver, &sender));
            }
        }
        let mut begins = Vec::new();
        for (number, settings) in ranks.iter().enumerate() {
            let (begin, receiver) = channel();
            begins.push(begin);
            let (sender, stop) = (sender.clone(), &stop);
            scope.spawn(move || jobs::live(number, settings, &receiver, &sender, stop));
        }
        drop(sender);
        let _stops = Stops(&stop);
        let jobs = Jobs::new(&setup.flows, begins);
        // Dropped on any return, the orders end their threads.
        run.drive(ways, orders, jobs, &reports, progress)
    })
}

/// Ends the collectives that still run when it goes.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a fault does to packets that pass; `None`: it does something to the link.
pub(crate) fn harm(action: FaultAction) -> Option<Harm> {
    match action {
        FaultAction::Down | FaultAction::Up | FaultAction::Degrade(_) => None,
        FaultAction::Loss { per_billion } => Some(Harm::Lose(per_billion)),
        FaultAction::Corrupt { per_billion } => Some(Harm::Corrupt(per_billion)),
        FaultAction::Duplicate { per_billion } => Some(Harm::Duplicate(per_billion)),
        FaultAction::Delay { delay, jitter } => Some(Harm::Delay(delay.ps(), jitter.ps())),
    }
}

/// Whom a host sends to, and over which paths, each by its labels; none: every label is one.
type Ways = Vec<(SocketAddr, Vec<Vec<Label>>)>;

struct Run<'a> {
    setup: &'a Setup,
    fabric: &'a Fabric,
    /// Of the hosts that send or receive.
    hosts: Vec<Option<Host>>,
    at: Vec<SocketAddr>,
    clock: Instant,
    outcomes: Vec<FlowOutcome>,
    faults: Vec<Fault>,
    finished: u64,
    /// Flows that ranks of collectives send.
    of_ranks: BTreeSet<usize>,
    /// What was counted of them.
    counted: Counters,
}

impl<'a> Run<'a> {
    fn new(setup: &'a Setup, wire: &WireParameters, fabric: &'a Fabric) -> Result<Self, RunError> {
        let (plan, flows) = (fabric.plan(), &setup.flows.flows);
        let of_ranks = jobs::own_flows(&setup.flows);
        let of_hosts = flows.iter().enumerate().filter(|(number, _)| !of_ranks.contains(number));
        let used: BTreeSet<u32> = of_hosts.flat_map(|(_, flow)| [flow.src, flow.dst]).collect();
        let at: Vec<SocketAddr> = (0..setup.topology.hosts as usize)
            .map(|host| SocketAddrV4::new(plan.nodes[host].address, PORT).into())
            .collect();
        let clock = Instant::now();
        let sizes: Arc<[u64]> = flows.iter().map(|flow| flow.size).collect();
        // Whatever it is, it is not all alike.
        let mut word = setup.seed | 1;
        let content: Vec<u8> = std::iter::repeat_with(|| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (word >> 56) as u8
        })
        .take(CONTENT)
        .collect();
        let content = Bytes::from(content);
        let balancer = setup.flows.workloads.first().map_or(0, |workload| usize::from(workload.load_balancer));
        let make = |host: u32| -> Result<Host, RunError> {
            let rate = setup.topology.link(setup.topology.host_uplink(host)).rate;
            // Endpoints draw alike only where they are alike.
            let seed = setup.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(host));
            let scheme = setup.load_balancers[balancer].host.clone();
            let mut settings = wire.settings(&setup.transport, scheme, rate, seed);
            if let Ok(settings) = &mut settings {
                // Ends that wait for a barrier say nothing for a while, and each flow is a stream of its own.
                settings.idle_timeout = settings.idle_timeout.max(setup.limits.time_limit);
                settings.most_streams = settings.most_streams.max(flows.len());
            }
            let settings = settings.map_err(|error| RunError::Setup(format!("[wire]: {error}")))?;
            Ok(Host {
                name: plan.nodes[host as usize].name.clone(),
                namespace: fabric.namespace(host as usize),
                at: at[host as usize],
                settings,
                real_time: wire.real_time,
                sizes: sizes.clone(),
                content: content.clone(),
                clock,
            })
        };
        let hosts = (0..setup.topology.hosts).map(|host| used.contains(&host).then(|| make(host)).transpose());
        let hosts = hosts.collect::<Result<_, _>>()?;
        let nothing = FlowOutcome {
            started: None,
            first_sent: None,
            received: None,
            acknowledged: None,
            metrics: FlowMetrics::default(),
        };
        let mut faults = setup.faults.clone();
        faults.sort_by_key(|fault| std::cmp::Reverse(fault.at));
        let (outcomes, counted) = (vec![nothing; flows.len()], Counters::default());
        Ok(Run { setup, fabric, hosts, at, clock, outcomes, faults, finished: 0, of_ranks, counted })
    }

    /// Ends of the flows that hosts send.
    fn of_hosts(&self) -> impl Iterator<Item = (u32, u32)> {
        let flows = self.setup.flows.flows.iter().enumerate();
        flows.filter(|(number, _)| !self.of_ranks.contains(number)).map(|(_, flow)| (flow.src, flow.dst))
    }

    fn elapsed(&self) -> Time {
        Time::from_ns(u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX / 1000))
    }

    /// Whom each host sends to, and over which paths.
    fn ways(&self, wire: &WireParameters) -> Result<Vec<Ways>, RunError> {
        let pairs: BTreeSet<(u32, u32)> = self.of_hosts().collect();
        let mut ways = vec![Vec::new(); self.at.len()];
        for (from, to) in pairs {
            let paths = paths(wire, self.fabric, from, to).map_err(|error| wrong(&error))?;
            ways[from as usize].push((self.at[to as usize], paths));
        }
        Ok(ways)
    }

    /// All that happens, from the first hello to the last counter.
    fn drive(
        mut self,
        ways: Vec<Ways>,
        orders: Vec<Sender<Order>>,
        mut jobs: Jobs<'_>,
        reports: &Receiver<(usize, Report)>,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<RunRows, RunError> {
        let flows = &self.setup.flows.flows;
        let living = self.of_hosts().flat_map(|(src, dst)| [src, dst]).collect::<BTreeSet<_>>().len();
        self.wait_for_all(reports, living)?;
        let senders: Vec<usize> = (0..ways.len()).filter(|host| !ways[*host].is_empty()).collect();
        for (host, others) in ways.into_iter().enumerate().filter(|(_, others)| !others.is_empty()) {
            let _ = orders[host].send(Order::Connect(others));
        }
        self.wait_for_all(reports, senders.len())?;
        let before = self.fabric.counters().map_err(|error| wrong(&error))?;
        let processors = Processors::now();
        let zero = self.elapsed();
        jobs.begin_clock();
        let mut triggers = Triggers::new(&self.setup.flows);
        let mut told = Instant::now();
        let mut interrupted = false;
        let struck = loop {
            let now = self.elapsed().saturating_sub(zero);
            let struck = now >= self.setup.limits.time_limit && self.finished < flows.len() as u64;
            // The receiver's word, which may start others, may come after the sender's.
            let idle = triggers.next().is_none()
                && jobs.are_over()
                && self
                    .outcomes
                    .iter()
                    .all(|o| o.started.is_none() || (o.acknowledged.is_some() && o.received.is_some()));
            if idle || struck || interrupted {
                break struck;
            }
            self.break_what_is_due(now)?;
            jobs.begin(now);
            for flow in triggers.starting(now) {
                let Some(of) = flows.get(flow as usize) else { continue };
                let order = Order::Start { flow, to: self.at[of.dst as usize], bytes: of.size };
                let _ = orders[of.src as usize].send(order);
                // Until its host says when, so that it counts as begun.
                self.outcomes[flow as usize].started = Some(now);
            }
            let due = [triggers.next(), jobs.next(), self.faults.last().map(|fault| fault.at)];
            let due = due.into_iter().flatten().min();
            let wait = due.map_or(TELL, |at| {
                Duration::from_nanos(at.saturating_sub(self.elapsed().saturating_sub(zero)).ps() / 1000)
            });
            if let Ok((number, report)) = reports.recv_timeout(wait.min(TELL)) {
                match report {
                    Report::Round(round) => {
                        self.finished += jobs.take_round(number, &round, &mut self.outcomes, &mut self.counted);
                    }
                    Report::Over(result) => jobs.take_end(number, *result)?,
                    report => self.take(report, zero, &mut triggers)?,
                }
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                let (flows_finished, flows_total) = (self.finished, flows.len() as u64);
                interrupted = !progress(&Progress { now, packet_hops: None, flows_finished, flows_total });
            }
        };
        let took = self.elapsed().saturating_sub(zero);
        orders.iter().for_each(|order| drop(order.send(Order::Stop)));
        let idle_share = processors.and_then(|before| before.idle_share_since());
        let (mut counted, mut longest_pause, mut ended) = (self.counted, None, Vec::new());
        while ended.len() < living {
            match reports.recv_timeout(PATIENCE) {
                Ok((host, Report::Done { counters, longest_pause: pause, lateness })) => {
                    ended.push((host, lateness));
                    add(&mut counted, &counters);
                    longest_pause = longest_pause.max(Some(pause));
                }
                Ok((_, Report::Failed(why))) => return Err(RunError::Stalled(why)),
                Ok(_) => {}
                Err(_) => return Err(RunError::Stalled("an endpoint does not end".into())),
            }
        }
        let after = self.fabric.counters().map_err(|error| wrong(&error))?;
        let links = self.links(&before, &after, took);
        let missing = self.fabric.missing().clone();
        let loads: Vec<EndpointLoad> = ended.iter().map(|(host, of)| self.load(*host, of, &before, &after)).collect();
        let on_wire = OnWire {
            datapath: "udp, network namespaces".into(),
            longest_pause,
            machine: MachineLoad::new(&loads, idle_share, self.of_ranks.is_empty()),
            missing,
            collectives: jobs.results(),
        };
        let ended = Ended { by_time_limit: struck, interrupted };
        Ok(self.rows(links, took, &counted, on_wire, ended))
    }

    /// What the endpoint of a host missed.
    fn load(&self, host: usize, of: &Lateness, before: &[PortCount], after: &[PortCount]) -> EndpointLoad {
        let port = self.setup.topology.host_uplink(host as u32).0 as usize;
        let Lateness { sending, receiving, active, late, lost, bytes: offered_bytes } = *of;
        let achieved_bytes = after[port].bytes.saturating_sub(before[port].bytes);
        EndpointLoad { sending, receiving, active, late, lost, offered_bytes, achieved_bytes }
    }

    /// Waits until so many hosts are ready.
    fn wait_for_all(&self, reports: &Receiver<(usize, Report)>, hosts: usize) -> Result<(), RunError> {
        let until = Instant::now() + PATIENCE;
        let mut ready = 0;
        while ready < hosts {
            match reports.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((_, Report::Ready)) => ready += 1,
                Ok((_, Report::Failed(why))) => return Err(RunError::Setup(why)),
                Ok(_) => {}
                Err(_) => return Err(RunError::Stalled("hosts of the testbed do not find each other".into())),
            }
        }
        Ok(())
    }

    fn take(&mut self, report: Report, zero: Time, triggers: &mut Triggers<'_>) -> Result<(), RunError> {
        let since = |at: Time| Some(at.saturating_sub(zero));
        match report {
            Report::Started { flow, at } => {
                let outcome = &mut self.outcomes[flow as usize];
                (outcome.started, outcome.first_sent) = (since(at), since(at));
            }
            Report::Received { flow, at } => {
                // The receiver may hear of it, in its own thread, after the sender has its answer.
                let outcome = &mut self.outcomes[flow as usize];
                outcome.received = outcome.acknowledged.into_iter().chain(since(at)).min();
                triggers.activate(self.setup.flows.flows[flow as usize].on_received, at.saturating_sub(zero));
            }
            Report::Acknowledged { flow, at, counted } => {
                let outcome = &mut self.outcomes[flow as usize];
                outcome.acknowledged = since(at);
                outcome.received = outcome.received.map(|received| received.min(at.saturating_sub(zero)));
                outcome.metrics.retransmitted_packets = Some(counted.retransmitted);
                outcome.metrics.path_switches = Some(counted.path_switches);
                self.finished += 1;
                triggers.activate(self.setup.flows.flows[flow as usize].on_sent, at.saturating_sub(zero));
            }
            Report::Failed(why) => return Err(RunError::Stalled(why)),
            Report::Ready | Report::Done { .. } | Report::Round(_) | Report::Over(_) => {}
        }
        Ok(())
    }

    /// Ends of the directed links of a fault.
    fn ends(&self, fault: &Fault) -> Vec<(usize, usize)> {
        let link = |link: &anabranch_topology::LinkId| self.setup.topology.link(*link);
        fault.links.iter().map(link).map(|link| (link.from.0 as usize, link.to.0 as usize)).collect()
    }

    /// Loads the programs of links that are to harm packets, or says that they cannot be loaded.
    fn prepare_faults(&self) -> Result<(), RunError> {
        let harms = self.faults.iter().filter(|fault| harm(fault.action).is_some());
        let links: BTreeSet<(usize, usize)> = harms.flat_map(|fault| self.ends(fault)).collect();
        links.into_iter().try_for_each(|(from, to)| self.fabric.prepare_harm(from, to)).map_err(|error| wrong(&error))
    }

    /// The faults of the scenario whose time has come.
    fn break_what_is_due(&mut self, now: Time) -> Result<(), RunError> {
        while self.faults.last().is_some_and(|fault| fault.at <= now) {
            let Some(fault) = self.faults.pop() else { break };
            if let Some(harm) = harm(fault.action) {
                for (from, to) in self.ends(&fault) {
                    self.fabric.harm(from, to, harm).map_err(|error| wrong(&error))?;
                }
                continue;
            }
            let cables: BTreeSet<usize> = fault.links.iter().map(|link| link.0 as usize / 2).collect();
            for cable in cables {
                match fault.action {
                    FaultAction::Down => self.fabric.cut(cable),
                    FaultAction::Up => self.fabric.restore(cable),
                    FaultAction::Degrade(rate) => self.fabric.slow(cable, Some(rate.0)),
                    _ => Ok(()),
                }
                .map_err(|error| wrong(&error))?;
            }
        }
        Ok(())
    }

    fn links(&self, before: &[PortCount], after: &[PortCount], took: Time) -> Vec<LinkRow> {
        let topology = &self.setup.topology;
        let row = |(number, link): (usize, &anabranch_topology::Link)| {
            let (before, after) = (before[number], after[number]);
            let bytes = after.bytes - before.bytes;
            LinkRow {
                from: topology.node(link.from).name.clone(),
                to: topology.node(link.to).name.clone(),
                tier: link.class.name(),
                direction: if number % 2 == 0 { "up" } else { "down" },
                rate_bps: link.rate.0,
                bytes,
                packets: after.packets - before.packets,
                utilisation: bytes as f64 * 8.0 / (link.rate.0 as f64 * took.as_seconds().max(1e-9)),
                queue: QueueStats { max_bytes: after.deepest, ..QueueStats::default() },
                ecn_marks: Some(after.marks - before.marks),
                trims: Some(after.trims - before.trims),
                drops: Some(after.drops + after.lost - before.drops - before.lost),
                pauses: None,
            }
        };
        topology.links.iter().enumerate().map(row).collect()
    }

    /// What was measured, as the rows of a run.
    fn rows(self, links: Vec<LinkRow>, took: Time, counted: &Counters, on_wire: OnWire, ended: Ended) -> RunRows {
        let all = |of: fn(&LinkRow) -> Option<u64>| links.iter().map(of).sum::<Option<u64>>();
        let counters = RunMetrics {
            data_packets: Some(counted.packets),
            ecn_marked: all(|link| link.ecn_marks),
            trimmed: all(|link| link.trims),
            dropped: all(|link| link.drops),
            retransmitted: Some(counted.retransmitted),
            timeouts: Some(counted.timeouts),
            path_switches: Some(counted.path_switches),
            // Ranks of collectives do not say what they probe.
            probes: self.of_ranks.is_empty().then_some(counted.probes),
            probe_bytes: self.of_ranks.is_empty().then_some(counted.probe_bytes),
            ..RunMetrics::default()
        };
        RunRows {
            simulated: took,
            wall_seconds: took.as_seconds(),
            packet_hops: Some(links.iter().map(|link| link.packets).sum()),
            time_limit_struck: ended.by_time_limit,
            interrupted: ended.interrupted,
            flows: flow_rows(self.setup, &self.outcomes),
            links,
            counters,
            on_wire: Some(on_wire),
            ..RunRows::default()
        }
    }
}

/// How a run ended, if not with its last flow.
#[derive(Clone, Copy, Debug)]
struct Ended {
    by_time_limit: bool,
    interrupted: bool,
}

fn add(all: &mut Counters, one: &Counters) {
    all.packets += one.packets;
    all.retransmitted += one.retransmitted;
    all.timeouts += one.timeouts;
    all.trimmed += one.trimmed;
    all.marked += one.marked;
    all.probes += one.probes;
    all.probe_bytes += one.probe_bytes;
    all.path_switches += one.path_switches;
}

/// The paths that a host uses towards another: every label, or the labels over each spine that some were found to lead over.
fn paths(wire: &WireParameters, fabric: &Fabric, from: u32, to: u32) -> Result<Vec<Vec<Label>>, TestbedError> {
    let plan = fabric.plan();
    let leaf =
        |host: u32| plan.cables.iter().find(|cable| cable.lower.node == host as usize).map(|cable| cable.upper.node);
    if wire.find_labels != FindLabels::Paths {
        return Ok(Vec::new());
    }
    if leaf(from) == leaf(to) {
        return Ok(vec![(0..wire.labels).collect()]);
    }
    let asked = Asked {
        to: SocketAddrV4::new(plan.nodes[to as usize].address, PORT),
        first_port: PORT,
        labels: wire.labels as u16,
        hops: 2,
        patience: ANSWER,
    };
    // Interfaces that have just been made carry nothing until the kernel has seen their carrier, a second later at most.
    for _ in 0..ROUNDS {
        let found = fabric.within(from as usize, || discover(&asked))??;
        if found.iter().all(|path| path.hops.get(1).is_some_and(Option::is_some)) {
            return Ok(groups(&found));
        }
    }
    let (from, to) = (&plan.nodes[from as usize].name, &plan.nodes[to as usize].name);
    Err(TestbedError::Input(format!(
        "the spine of a label from {from} to {to} does not answer; `wire.find_labels = \"all\"` does without answers"
    )))
}
