//! A scenario's flows on a network of namespaces: one process, one thread per host, the clock of the machine.

use crate::{
    Fabric, PortCount, TestbedError, TestbedPlan,
    counters::Meter,
    dropped,
    faults::{self, Effect, Go},
    host::{Destination, Host, Order, Report, Traced},
    jobs::{self, Jobs, Launch},
    paths::{self, PORT, Path},
    processors::Processors,
    triggers::Triggers,
};
use anabranch_backend::{FlowOutcome, Progress, RunError, Setup, flow_rows, job_rows};
use anabranch_endpoint::{Bytes, Counters};
use anabranch_lb::{Call, Record};
use anabranch_outcome::{
    EndpointLoad, FlowMetrics, LinkRow, LostPeer, MachineLoad, OnWire, QueueStats, RunMetrics, RunRows, SchemeRow,
    Watched,
};
use anabranch_topology::{Fault, FaultAction, LinkId, NodeId};
use anabranch_units::{Rate, Time};
use anabranch_wire::{Lateness, WireParameters};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::{SocketAddr, SocketAddrV4},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::ScopedJoinHandle,
    time::{Duration, Instant},
};

/// Bytes of content, which flows repeat.
const CONTENT: usize = 1 << 20;
/// Timeout of connecting all peers, and of ending the endpoints.
const TIMEOUT: Duration = Duration::from_secs(30);
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

fn wrong(error: TestbedError) -> RunError {
    RunError::Setup(error.to_string())
}

/// Returns the rate of a host over all its ports.
pub(crate) fn rate(setup: &Setup, host: u32) -> Rate {
    setup.topology.host_rates(host).0
}

/// Runs `setup` on namespaces with endpoints configured by `wire`; `launch` returns the settings of the ranks of collectives.
pub(crate) fn run(
    setup: &Setup,
    wire: &WireParameters,
    launch: &Launch<'_>,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunRows, RunError> {
    let plan = TestbedPlan::of_setup(setup, wire).map_err(wrong)?;
    let fabric = Fabric::build(plan).map_err(wrong)?;
    let mut run = Run::new(setup, wire, &fabric)?;
    run.find_paths(wire)?;
    let ranks = jobs::settings(&setup.flows, &fabric, launch)?;
    let stop = AtomicBool::new(false);
    let (sender, reports) = channel();
    let hosts: Vec<Option<Host>> = run.hosts.iter_mut().map(Option::take).collect();
    std::thread::scope(|scope| {
        let ((go, goes), (effects, received)) = (channel(), channel());
        let (fabric, failed) = (&fabric, sender.clone());
        let thread = scope.spawn(move || {
            let failed = |error: TestbedError| drop(failed.send((0, Report::FaultFailed(error.to_string()))));
            faults::live(setup, fabric, &goes, &effects, failed)
        });
        let faults = FaultThread { go, effects: received, thread };
        faults.effects()?;
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
        // Dropping the orders on any return ends their threads.
        run.drive(orders, jobs, faults, &reports, progress)
    })
}

struct FaultThread<'scope> {
    go: Sender<Go>,
    effects: Receiver<Result<Vec<Effect>, TestbedError>>,
    thread: ScopedJoinHandle<'scope, Vec<Effect>>,
}

impl FaultThread<'_> {
    /// Waits until the thread reports that it is ready or has begun.
    fn effects(&self) -> Result<Vec<Effect>, RunError> {
        let ended = |_| RunError::Failed("the thread of faults has ended".into());
        self.effects.recv().map_err(ended)?.map_err(wrong)
    }

    fn begin(&self) -> Result<Vec<Effect>, RunError> {
        let _ = self.go.send(Go::Begin);
        self.effects()
    }

    fn end(self) -> Vec<Effect> {
        drop(self.go);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Run<'a> {
    setup: &'a Setup,
    fabric: &'a Fabric,
    hosts: Vec<Option<Host>>,
    /// Of each host that sends a traced flow.
    records: Vec<Option<Record>>,
    calls: Vec<SchemeRow>,
    /// Of each pair of hosts with a flow.
    paths: BTreeMap<(u32, u32), Vec<Path>>,
    /// Of each link, as far as degradations were detected; empty: no scheme reads them.
    rates: Vec<Rate>,
    /// Of each host, its address in each plane.
    at: Vec<Vec<SocketAddr>>,
    clock: Instant,
    outcomes: Vec<FlowOutcome>,
    effects: Vec<Option<Time>>,
    abandoned: BTreeSet<u32>,
    /// Pairs of hosts of which one has lost the connection to the other, with the reason.
    lost: BTreeMap<[usize; 2], String>,
    finished: u64,
    of_ranks: BTreeSet<usize>,
    counted: Counters,
}

impl<'a> Run<'a> {
    fn new(setup: &'a Setup, wire: &WireParameters, fabric: &'a Fabric) -> Result<Self, RunError> {
        let (plan, flows) = (fabric.plan(), &setup.flows.flows);
        let of_ranks = jobs::own_flows(&setup.flows);
        let of_hosts = flows.iter().enumerate().filter(|(number, _)| !of_ranks.contains(number));
        let used: BTreeSet<u32> = of_hosts.flat_map(|(_, flow)| [flow.src, flow.dst]).collect();
        let at: Vec<Vec<SocketAddr>> = (0..setup.topology.hosts as usize)
            .map(|host| plan.planes(host).map(|(ip, _)| SocketAddrV4::new(ip, PORT).into()).collect())
            .collect();
        let clock = Instant::now();
        let sizes: Arc<[u64]> = flows.iter().map(|flow| flow.size).collect();
        // The content must vary; its values are arbitrary.
        let mut word = setup.seed | 1;
        let content: Vec<u8> = std::iter::repeat_with(|| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (word >> 56) as u8
        })
        .take(CONTENT)
        .collect();
        let content = Bytes::from(content);
        let balancer = setup.flows.workloads.first().map_or(0, |workload| usize::from(workload.load_balancer));
        let capabilities = setup.load_balancers.get(balancer).map(|balancer| balancer.host.capabilities());
        let reads_rates = capabilities.is_some_and(|of| of.reads_path_rates());
        let (topology, planes) = (&setup.topology, setup.topology.planes);
        // A constant tag leaves nothing to record.
        let records = setup.measure.trace_scheme && capabilities.is_some_and(|of| !of.leaves_choice_to_switches());
        let traced: Arc<[u32]> = match records {
            true => {
                setup.measure.trace_flows.iter().copied().filter(|flow| !of_ranks.contains(&(*flow as usize))).collect()
            }
            false => Arc::default(),
        };
        let records: Vec<Option<Record>> = (0..topology.hosts)
            .map(|host| traced.iter().any(|flow| flows[*flow as usize].src == host).then(|| Record::of([])))
            .collect();
        let make = |host: u32| -> Result<Host, RunError> {
            let scheme = setup.load_balancers[balancer].host.clone();
            let mut settings = wire.settings(&setup.transport, scheme, rate(setup, host), setup.seed);
            if let Ok(settings) = &mut settings {
                settings.planes = planes;
                // As in a simulation, by which the draws of hosts differ.
                settings.host_key = topology.key(NodeId(host));
                // Endpoints that wait for a barrier are idle for a while, and each flow is a stream of its own.
                settings.idle_timeout = settings.idle_timeout.max(setup.limits.time_limit);
                settings.max_streams = settings.max_streams.max(flows.len());
                // An eighth is for streams, 4 kB each.
                settings.max_buffered_bytes = settings.max_buffered_bytes.max((flows.len() as u64) << 15);
            }
            let settings = settings.map_err(|error| RunError::Setup(format!("[wire]: {error}")))?;
            Ok(Host {
                name: plan.nodes[host as usize].name.clone(),
                namespace: fabric.namespace(host as usize),
                at: at[host as usize].clone(),
                settings,
                real_time: wire.real_time,
                sizes: sizes.clone(),
                content: content.clone(),
                clock,
                traced: records[host as usize].clone().map(|record| Traced {
                    record,
                    flows: traced.clone(),
                    limit: setup.measure.trace_limit,
                }),
            })
        };
        let hosts = (0..setup.topology.hosts).map(|host| used.contains(&host).then(|| make(host)).transpose());
        let hosts = hosts.collect::<Result<_, _>>()?;
        let unfinished = FlowOutcome {
            started: None,
            first_sent: None,
            received: None,
            acknowledged: None,
            metrics: FlowMetrics::default(),
            delays: None,
        };
        Ok(Run {
            setup,
            fabric,
            hosts,
            records,
            calls: Vec::new(),
            paths: BTreeMap::new(),
            rates: if reads_rates { topology.links.iter().map(|link| link.rate).collect() } else { Vec::new() },
            at,
            clock,
            outcomes: vec![unfinished; flows.len()],
            effects: vec![None; setup.faults.len()],
            abandoned: BTreeSet::new(),
            lost: BTreeMap::new(),
            finished: 0,
            of_ranks,
            counted: Counters::default(),
        })
    }

    fn of_hosts(&self) -> impl Iterator<Item = (u32, u32)> {
        let flows = self.setup.flows.flows.iter().enumerate();
        flows.filter(|(number, _)| !self.of_ranks.contains(number)).map(|(_, flow)| (flow.src, flow.dst))
    }

    fn elapsed(&self) -> Time {
        Time::from_ns(u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX / 1000))
    }

    fn find_paths(&mut self, wire: &WireParameters) -> Result<(), RunError> {
        let pairs: BTreeSet<(u32, u32)> = self.of_hosts().collect();
        for pair in pairs {
            let paths = paths::paths(wire, self.fabric, &self.setup.topology, pair).map_err(wrong)?;
            self.paths.insert(pair, paths);
        }
        Ok(())
    }

    fn destinations(&self, from: u32) -> Vec<Destination> {
        let of = |(&pair, paths): (&(u32, u32), &Vec<Path>)| Destination {
            at: self.at[pair.1 as usize].clone(),
            paths: paths.iter().map(|path| path.labels.clone()).collect(),
            rates: paths::rates(&self.setup.topology, pair, paths, &self.rates),
        };
        self.paths.range((from, 0)..=(from, u32::MAX)).map(of).collect()
    }

    /// Returns the faults that hosts are notified of, by time.
    fn detections(&self) -> VecDeque<(Time, usize)> {
        let is_notified = |fault: &Fault| matches!(fault.action, FaultAction::Degrade(_)) && !self.rates.is_empty();
        let faults = self.setup.faults.iter().enumerate();
        let mut all: Vec<(Time, usize)> = faults
            .filter(|(_, fault)| is_notified(fault))
            .filter_map(|(n, fault)| Some((fault.detect_at?, n)))
            .collect();
        all.sort_by_key(|(at, _)| *at);
        all.into()
    }

    /// Notifies the hosts that send of a degradation.
    fn detect(&mut self, fault: usize, orders: &[Sender<Order>]) {
        let Fault { action, links, .. } = &self.setup.faults[fault];
        if let FaultAction::Degrade(rate) = action {
            links.iter().for_each(|link| self.rates[link.0 as usize] = *rate);
        }
        for host in self.senders() {
            let _ = orders[host as usize].send(Order::Rates(self.destinations(host)));
        }
    }

    fn senders(&self) -> BTreeSet<u32> {
        self.paths.keys().map(|(from, _)| *from).collect()
    }

    fn drive(
        mut self,
        orders: Vec<Sender<Order>>,
        mut jobs: Jobs<'_>,
        faults: FaultThread<'_>,
        reports: &Receiver<(usize, Report)>,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<RunRows, RunError> {
        let (flows, limit) = (&self.setup.flows.flows, self.setup.limits.time_limit);
        let living = self.of_hosts().flat_map(|(src, dst)| [src, dst]).collect::<BTreeSet<_>>().len();
        self.wait_for_all(reports, living)?;
        let senders = self.senders();
        for host in &senders {
            let _ = orders[*host as usize].send(Order::Connect(self.destinations(*host)));
        }
        self.wait_for_all(reports, senders.len())?;
        let meter = Meter::open(&self.fabric.net).map_err(wrong)?;
        let before = self.fabric.counters().map_err(wrong)?;
        self.took_effect(faults.begin()?);
        let processors = Processors::now();
        let sent_before = meter.read().map_err(wrong)?;
        let zero = self.elapsed();
        let start = self.clock + Duration::from_nanos(zero.ps() / 1000);
        let _ = faults.go.send(Go::Clock(start));
        jobs.begin_clock();
        let (mut triggers, mut detections) = (Triggers::new(&self.setup.flows), self.detections());
        let mut reported_at = Instant::now();
        let mut interrupted = false;
        let by_time_limit = loop {
            let now = self.elapsed().saturating_sub(zero);
            // Both sides must have reported: the receiver's report, which may start other flows, may arrive after the sender's.
            let over = |(number, o): (usize, &FlowOutcome)| {
                o.started.is_none()
                    || (o.acknowledged.is_some() && o.received.is_some())
                    || self.abandoned.contains(&(number as u32))
            };
            let idle = triggers.next().is_none() && jobs.are_over() && self.outcomes.iter().enumerate().all(over);
            if idle || now >= limit || interrupted {
                break !idle && now >= limit;
            }
            while let Some((at, fault)) = detections.front().copied()
                && at <= now
            {
                detections.pop_front();
                self.detect(fault, &orders);
            }
            jobs.begin(now);
            for flow in triggers.starting(now) {
                let Some(of) = flows.get(flow as usize) else { continue };
                let order = Order::Start { flow, to: self.at[of.dst as usize].clone(), bytes: of.size };
                let _ = orders[of.src as usize].send(order);
                // A provisional start time, so that the flow counts as started until its host reports the exact time.
                self.outcomes[flow as usize].started = Some(now);
            }
            let detected = detections.front().map(|(at, _)| *at);
            let due =
                [triggers.next(), jobs.next(), detected, Some(limit)].into_iter().flatten().min().unwrap_or(limit);
            let wait = Duration::from_nanos(due.saturating_sub(self.elapsed().saturating_sub(zero)).ps() / 1000);
            if let Ok((number, report)) = reports.recv_timeout(wait.min(REPORT_INTERVAL)) {
                match report {
                    Report::Round(round) => {
                        self.finished += jobs.take_round(number, &round, &mut self.outcomes, &mut self.counted);
                    }
                    Report::Over(result) => jobs.take_end(number, *result)?,
                    report => self.take(number, report, zero, limit, &mut triggers)?,
                }
            }
            if reported_at.elapsed() >= REPORT_INTERVAL {
                reported_at = Instant::now();
                let (flows_finished, flows_total) = (self.finished, flows.len() as u64);
                interrupted = !progress(&Progress { now, flows_finished, flows_total, ..Progress::default() });
            }
        };
        // Bytes that left the ports and the elapsed time, read at one moment.
        let sent = meter.read().map_err(wrong)?;
        let took = self.elapsed().saturating_sub(zero);
        orders.iter().for_each(|order| drop(order.send(Order::Stop)));
        self.took_effect(faults.end());
        let idle_share = processors.and_then(|before| before.idle_share_since());
        let (mut longest_pause, mut ended) = (None, Vec::new());
        while ended.len() < living {
            match reports.recv_timeout(TIMEOUT) {
                Ok((host, Report::Done { counters, longest_pause: pause, lateness, began })) => {
                    self.take_calls(host, zero.saturating_sub(began), limit.min(took));
                    ended.push((host, lateness));
                    add(&mut self.counted, &counters);
                    longest_pause = longest_pause.max(Some(pause));
                }
                // Reports from before the end count; later ones do not.
                Ok((number, report)) => self.take(number, report, zero, limit.min(took), &mut triggers)?,
                Err(_) => return Err(RunError::Failed("an endpoint does not end".into())),
            }
        }
        let after = self.fabric.counters().map_err(wrong)?;
        let sent: Vec<(u64, u64)> =
            sent_before.iter().zip(&sent).map(|(before, sent)| (sent.0 - before.0, sent.1 - before.1)).collect();
        let links = self.links(&before, &after, &sent, took);
        let loads: Vec<EndpointLoad> = ended.iter().map(|(host, of)| self.load(*host, of, &sent)).collect();
        let on_wire = OnWire {
            datapath: "udp, network namespaces".into(),
            longest_pause,
            machine: MachineLoad::new(&loads, idle_share, self.of_ranks.is_empty()),
            missing: self.fabric.missing().clone(),
            collectives: jobs.results(),
            faults: self.effects.clone(),
            lost_peers: self.lost_peers(),
        };
        let ended = Ended { by_time_limit: by_time_limit && self.finished < flows.len() as u64, interrupted };
        Ok(self.rows(links, took, on_wire, ended))
    }

    /// Takes the calls of the scheme of a host, whose clock showed `zero` at the start of the run, up to its end.
    fn take_calls(&mut self, host: usize, zero: Time, end: Time) {
        let Some(record) = &self.records[host] else { return };
        let link = self.setup.topology.host_uplink(host as u32).0;
        let rows = record.take().into_iter().map(|call| SchemeRow { link, call: Call { zero, ..call } });
        self.calls.extend(rows.filter(|row| row.call.at() <= end));
    }

    fn took_effect(&mut self, effects: Vec<Effect>) {
        for (fault, at) in effects {
            self.effects[fault] = Some(at);
        }
    }

    fn lost_peers(&self) -> Vec<LostPeer> {
        let name = |host: usize| self.fabric.plan().nodes[host].name.clone();
        let row = |(hosts, reason): (&[usize; 2], &String)| LostPeer { hosts: hosts.map(name), reason: reason.clone() };
        self.lost.iter().map(row).collect()
    }

    fn load(&self, host: usize, of: &Lateness, sent: &[(u64, u64)]) -> EndpointLoad {
        let topology = &self.setup.topology;
        let ports = (0..topology.planes).map(|plane| topology.host_uplink_in(host as u32, plane).0 as usize);
        let Lateness { sending, receiving, active, late, lost, bytes: offered_bytes } = *of;
        let achieved_bytes = ports.map(|port| sent[port].0).sum();
        EndpointLoad { sending, receiving, active, late, lost, offered_bytes, achieved_bytes }
    }

    fn wait_for_all(&self, reports: &Receiver<(usize, Report)>, hosts: usize) -> Result<(), RunError> {
        let until = Instant::now() + TIMEOUT;
        let mut ready = 0;
        while ready < hosts {
            match reports.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((_, Report::Ready)) => ready += 1,
                Ok((_, Report::Failed(reason))) => return Err(RunError::Setup(reason)),
                Ok(_) => {}
                Err(_) => return Err(RunError::Failed("hosts of the testbed do not find each other".into())),
            }
        }
        Ok(())
    }

    /// Handles a report of a host; events after `end` on the clock of the run do not count.
    fn take(
        &mut self,
        number: usize,
        report: Report,
        zero: Time,
        end: Time,
        triggers: &mut Triggers<'_>,
    ) -> Result<(), RunError> {
        let since = |at: Time| at.saturating_sub(zero);
        match report {
            Report::Started { flow, at } => {
                let outcome = &mut self.outcomes[flow as usize];
                (outcome.started, outcome.first_sent) = (Some(since(at)), Some(since(at)));
            }
            Report::Received { at, .. } | Report::Acknowledged { at, .. } if since(at) > end => {}
            Report::Received { flow, at } => {
                // The report of the receiver's thread may arrive after the sender has the ACK.
                let outcome = &mut self.outcomes[flow as usize];
                outcome.received = outcome.acknowledged.into_iter().chain([since(at)]).min();
                triggers.activate(self.setup.flows.flows[flow as usize].on_received, since(at));
            }
            Report::Acknowledged { flow, at, counted } => {
                let outcome = &mut self.outcomes[flow as usize];
                outcome.acknowledged = Some(since(at));
                outcome.received = outcome.received.map(|received| received.min(since(at)));
                outcome.metrics.retransmitted_packets = Some(counted.retransmitted);
                outcome.metrics.path_switches = Some(counted.path_switches);
                self.finished += 1;
                triggers.activate(self.setup.flows.flows[flow as usize].on_sent, since(at));
            }
            Report::Abandoned { flow } => drop(self.abandoned.insert(flow)),
            Report::Lost { other, reason } => {
                if let Some(other) = self.at.iter().position(|at| at.contains(&other)) {
                    self.lost.entry([number.min(other), number.max(other)]).or_insert(reason);
                }
            }
            Report::Failed(reason) => return Err(RunError::Failed(reason)),
            Report::FaultFailed(reason) => return Err(RunError::Setup(format!("a fault could not be made: {reason}"))),
            Report::Ready | Report::Done { .. } | Report::Round(_) | Report::Over(_) => {}
        }
        Ok(())
    }

    fn links(&self, before: &[PortCount], after: &[PortCount], sent: &[(u64, u64)], took: Time) -> Vec<LinkRow> {
        let topology = &self.setup.topology;
        let dropped = dropped(self.fabric.plan(), before, after);
        let row = |(number, link): (usize, &anabranch_topology::Link)| {
            let ((before, after), (bytes, packets)) = ((before[number], after[number]), sent[number]);
            let since = |of: fn(&PortCount) -> Option<u64>| Some(of(&after)? - of(&before)?);
            LinkRow {
                from: topology.node(link.from).name.clone(),
                to: topology.node(link.to).name.clone(),
                parallel: topology.parallel(LinkId(number as u32)),
                tier: link.class.name(),
                direction: if number % 2 == 0 { "up" } else { "down" },
                rate_bps: link.rate.0,
                bytes,
                packets,
                utilisation: bytes as f64 * 8.0 / (link.rate.0 as f64 * took.as_seconds().max(1e-9)),
                queue: QueueStats { max_bytes: after.deepest, ..QueueStats::default() },
                ecn_marks: since(|count| count.marks),
                trims: since(|count| count.trims),
                drops: dropped[number].map(|dropped| dropped + after.lost - before.lost),
                pauses: None,
            }
        };
        topology.links.iter().enumerate().map(row).collect()
    }

    fn rows(mut self, links: Vec<LinkRow>, took: Time, on_wire: OnWire, ended: Ended) -> RunRows {
        let mut schemes = std::mem::take(&mut self.calls);
        // Those of a host keep their order.
        schemes.sort_by_key(|row| (row.call.at(), row.link));
        let limit = usize::try_from(self.setup.measure.trace_limit).unwrap_or(usize::MAX);
        let schemes_cut = schemes.len() > limit;
        schemes.truncate(limit);
        let counted = &self.counted;
        let all = |of: fn(&LinkRow) -> Option<u64>| links.iter().map(of).sum::<Option<u64>>();
        let counters = RunMetrics {
            data_packets: Some(counted.packets),
            ecn_marked: all(|link| link.ecn_marks),
            trimmed: all(|link| link.trims),
            dropped: all(|link| link.drops),
            retransmitted: Some(counted.retransmitted),
            timeouts: Some(counted.timeouts),
            path_switches: Some(counted.path_switches),
            // Ranks of collectives do not report their probes.
            probes: self.of_ranks.is_empty().then_some(counted.probes),
            probe_bytes: self.of_ranks.is_empty().then_some(counted.probe_bytes),
            ..RunMetrics::default()
        };
        let flows = flow_rows(self.setup, &self.outcomes);
        RunRows {
            jobs: job_rows(self.setup, &self.outcomes, &flows),
            flows,
            simulated: took,
            wall_seconds: took.as_seconds(),
            packet_hops: Some(links.iter().map(|link| link.packets).sum()),
            time_limit_struck: ended.by_time_limit,
            interrupted: ended.interrupted,
            links,
            counters,
            watched: Watched { schemes, schemes_cut, ..Watched::default() },
            on_wire: Some(on_wire),
            ..RunRows::default()
        }
    }
}

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
