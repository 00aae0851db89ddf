//! Small setups built in code.
#![allow(unreachable_pub)]

use anabranch_backend::{FabricParameters, LoadBalancer, Measure, RunLimits, Setup};
use anabranch_lb::registry;
use anabranch_outcome::RunResult;
use anabranch_random::{Stream, key, name_key};
use anabranch_sim::{How, Split, Timing};
pub use anabranch_testkit::set_keys;
use anabranch_topology::{FaultKind, FaultParameters, Topology, TopologyParameters};
use anabranch_transport::{
    TransportParameters,
    roce::{RoceParameters, RoceTransport},
    uet::{UetParameters, UetTransport},
};
use anabranch_units::{Rate, Time};
use anabranch_workload::{Flow, FlowSet, GeneratedAs, HostView, Start, WorkloadInfo, WorkloadParameters, generate};

/// Picoseconds of a packet of 4096 B with 64 B of headers at 400 Gb/s.
pub const WIRE: u64 = 4160 * 20;
/// Picoseconds of an acknowledgement of 64 B at 400 Gb/s.
pub const ACK: u64 = 64 * 20;
/// Delay of a link in picoseconds.
pub const DELAY: u64 = 1_000_000;

/// What workloads are generated for: hosts of 400 Gb/s without servers.
pub fn host_view(topology: &Topology) -> HostView {
    let hosts = topology.hosts;
    HostView {
        hosts,
        leaf_of: (0..hosts).map(|host| topology.edge_switch(host).0).collect(),
        group_of: vec![0; hosts as usize],
        host_key: (0..u64::from(hosts)).collect(),
        nic_rate: vec![Rate::gbps(400); hosts as usize],
        oversubscription: 1.0,
        flow_memory: u64::MAX,
        low_diameter: None,
        servers: None,
        templates: false,
        classes: vec!["data".into()],
    }
}

pub fn uet(setup: &mut Setup) -> &mut UetParameters {
    let TransportParameters::Uet(transport) = &mut setup.transport else { panic!("a setup with uet") };
    &mut transport.uet
}

pub fn topology(kind: &str, keys: &str) -> Topology {
    let mut parameters = TopologyParameters::named(kind).expect("a kind");
    set_keys(parameters.parameters_mut(), keys);
    parameters.build(&|path| Err(std::io::Error::other(path.to_string()))).expect("a topology")
}

pub fn workload(kind: &str, keys: &str) -> WorkloadParameters {
    let mut parameters = WorkloadParameters::named(kind).expect("a kind");
    set_keys(parameters.parameters_mut(), keys);
    parameters
}

/// Generates workloads, of which number n reads `n.goal` as the n-th of `files`.
pub fn generated(view: &HostView, kinds: Vec<WorkloadParameters>, files: &[&str]) -> FlowSet {
    let sent_as =
        |name| GeneratedAs { name: format!("workload{name}"), class: 0, load_balancer: 0, measured: true, split: None };
    let list: Vec<_> = kinds.into_iter().enumerate().map(|(number, kind)| (kind, sent_as(number))).collect();
    let read = |path: &str| Ok(files[path.trim_end_matches(".goal").parse::<usize>().unwrap()].as_bytes().to_vec());
    generate(&list, view, 1, &read).expect("flows")
}

/// A 400 Gb/s fat tree with 1 us links.
pub fn fat_tree(tiers: i64, radix: i64) -> Topology {
    let keys = format!("tiers={tiers} radix={radix} link_rate=400Gbps link_delay=1us");
    topology("fat-tree", &keys)
}

/// Two leaves with two hosts each and one spine, with 400 Gb/s and 1 us links.
pub fn two_leaves() -> Topology {
    let keys = "leaves=2 spines=1 hosts_per_leaf=2 link_rate=400Gbps link_delay=1us";
    topology("leaf-spine", keys)
}

/// Flows (source, destination, bytes, start in picoseconds).
pub fn flows(list: &[(u32, u32, u64, u64)]) -> FlowSet {
    let mut list = list.to_vec();
    list.sort_by_key(|&(src, dst, _, start)| (start, src, dst));
    let flow = |(number, &(src, dst, size, start)): (usize, &(u32, u32, u64, u64))| Flow {
        src,
        dst,
        gpus: None,
        medium: anabranch_workload::Medium::Network,
        size,
        start: Start::At(Time::from_ps(start)),
        workload: 0,
        class: 0,
        key: key(0, number as u64, "test flow"),
        connection: key(0, number as u64, "test flow"),
        listed: number as u32,
        on_sent: None,
        on_received: None,
    };
    FlowSet {
        flows: list.iter().enumerate().map(flow).collect(),
        workloads: vec![WorkloadInfo {
            name: "test".into(),
            measured: true,
            load_balancer: 0,
            is_job: false,
            collective: None,
        }],
        ..FlowSet::default()
    }
}

/// Permutation of all hosts in which none sends inside its leaf.
pub fn permutation(topology: &Topology, size: u64, seed: u64) -> FlowSet {
    let mut stream = Stream::keyed(seed, name_key("permutation"), "test");
    let hosts: Vec<u32> = (0..topology.hosts).collect();
    loop {
        let mut to = hosts.clone();
        stream.shuffle(&mut to);
        // Repairs by swaps with random partners; restarts if that does not converge.
        for _ in 0..100 {
            let same = |a: u32, b: u32| topology.edge_switch(a) == topology.edge_switch(b);
            let bad: Vec<usize> = (0..to.len()).filter(|&i| same(i as u32, to[i])).collect();
            if bad.is_empty() {
                let list: Vec<_> = hosts.iter().map(|&h| (h, to[h as usize], size, 0)).collect();
                return flows(&list);
            }
            for i in bad {
                let j = stream.below(to.len() as u64) as usize;
                to.swap(i, j);
            }
        }
    }
}

/// Defaults of the profile `uet-lossy`.
pub fn setup(topology: Topology, flows: FlowSet, scheme: &str) -> Setup {
    let (host, switch) = registry::resolve(scheme).expect("a scheme");
    Setup {
        topology,
        flows,
        fabric: FabricParameters::default(),
        marking: Default::default(),
        transport: TransportParameters::Uet(UetTransport::default()),
        own_transports: Default::default(),
        load_balancers: vec![LoadBalancer { name: scheme.into(), host, switch }],
        faults: vec![],
        measure: Measure::default(),
        limits: RunLimits {
            until_all_done: true,
            time_limit: Time::from_ms(1000),
            trigger_latency: Time::from_us(1),
            stall_after: None,
            skip: false,
            warmup: Time::ZERO,
        },
        seed: 1,
        steering: None,
    }
}

/// With the dispatch of schemes of other crates.
pub fn as_external(mut setup: Setup) -> Setup {
    for balancer in &mut setup.load_balancers {
        (balancer.host, balancer.switch) = (balancer.host.as_external(), balancer.switch.as_external());
    }
    setup
}

/// As [`setup`], with the transport of Spritz.
pub fn spritz(topology: Topology, flows: FlowSet, scheme: &str) -> Setup {
    Setup { transport: TransportParameters::Uet(UetTransport::spritz()), ..setup(topology, flows, scheme) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    Irn,
    Lossless,
    ConweaveIrn,
    ConweaveLossless,
}

pub fn roce_setup(topology: Topology, flows: FlowSet, scheme: &str, profile: Profile) -> Setup {
    let (fabric, transport) = match profile {
        Profile::Irn => (FabricParameters::roce(false), RoceTransport::irn()),
        Profile::Lossless => (FabricParameters::roce(true), RoceTransport::lossless()),
        Profile::ConweaveIrn => (FabricParameters::conweave(false), RoceTransport::conweave(false)),
        Profile::ConweaveLossless => (FabricParameters::conweave(true), RoceTransport::conweave(true)),
    };
    Setup { fabric, transport: TransportParameters::Roce(transport), ..setup(topology, flows, scheme) }
}

pub fn roce(setup: &mut Setup) -> &mut RoceParameters {
    let TransportParameters::Roce(transport) = &mut setup.transport else { panic!("a setup with roce") };
    &mut transport.roce
}

/// The fabric of the recorded runs: 8 leaves of 16 hosts, 8 spines, 100 Gb/s, 1 us.
pub fn leaf_spine_128() -> Topology {
    let keys = "leaves=8 spines=8 hosts_per_leaf=16 link_rate=100Gbps link_delay=1us";
    topology("leaf-spine", keys)
}

/// Messages (source, destination, bytes, start) of up to `most` bytes and with starts within `span` picoseconds.
pub fn random_list(hosts: u32, number: usize, most: u64, span: u64, seed: u64) -> Vec<(u32, u32, u64, u64)> {
    let mut stream = Stream::keyed(seed, name_key("random flows"), "test");
    let hosts = u64::from(hosts);
    let mut list = Vec::new();
    while list.len() < number {
        let (src, dst) = (stream.below(hosts) as u32, stream.below(hosts) as u32);
        if src != dst {
            list.push((src, dst, 1 + stream.below(most), stream.below(span)));
        }
    }
    list
}

pub fn random_flows(topology: &Topology, number: usize, most: u64, span: u64, seed: u64) -> FlowSet {
    flows(&random_list(topology.hosts, number, most, span, seed))
}

pub fn run(setup: &Setup) -> RunResult {
    run_on(setup, 1)
}

pub fn run_on(setup: &Setup, threads: usize) -> RunResult {
    run_as(setup, How::on(threads))
}

pub fn run_as(setup: &Setup, how: How) -> RunResult {
    anabranch_sim::run_with(setup, how, &mut |_| true).expect("a run")
}

pub fn run_eager(setup: &Setup, threads: usize) -> RunResult {
    run_as(setup, How { timing: Timing::Eager, ..How::on(threads) })
}

pub fn refused(setup: &Setup) -> anabranch_backend::RunError {
    anabranch_sim::run(setup, 1, &mut |_| true).expect_err("refused")
}

/// Threads, splits and timings, which do not affect results.
pub fn modes() -> impl Iterator<Item = How> {
    let ways = [(1, Split::Cells), (2, Split::Cells), (3, Split::Cells), (1, Split::One)].into_iter();
    ways.flat_map(|(threads, split)| [Timing::Lazy, Timing::Eager].map(|timing| How { threads, timing, split }))
}

/// Runs in every mode; all have the results of one thread, which are returned.
pub fn run_in_every_mode(setup: &Setup, what: &str) -> RunResult {
    let first = run(setup);
    for how in modes() {
        let other = run_as(setup, how);
        assert_eq!((other.fingerprint, other.packet_hops), (first.fingerprint, first.packet_hops), "{what}: {how:?}");
    }
    first
}

/// Disables congestion control, marks and limits of queues.
pub fn unconstrained(mut setup: Setup) -> Setup {
    let fabric = &mut setup.fabric;
    set_keys(fabric, "queue_limit=1GB ecn=false");
    set_keys(uet(&mut setup), "congestion_control=none window=100MB rto=100ms");
    setup
}

pub fn link_fault(kind: FaultKind, at: Time, link: &str) -> FaultParameters {
    FaultParameters { kind, at, links: vec![link.into()], ..FaultParameters::default() }
}

pub fn with_fault(mut setup: Setup, fault: FaultParameters) -> Setup {
    let faults = fault.resolve(&setup.topology, setup.faults.len(), 1).expect("a fault");
    setup.faults.extend(faults);
    setup
}
