//! Targets: files of users and other programs: scenarios, flows, topologies, tables of sizes.

use anabranch_claims as claims;
use anabranch_results::{Inputs, OutputDir};
use anabranch_scenario::{scenario::Scenario, tree::Tree};
use anabranch_settings::Auto;
use anabranch_study::{pcap, sweep::over};
use anabranch_topology::{FileFormat as TopologyFormat, FileParameters as TopologyFile, TopologyParameters};
use anabranch_units::{Bytes, BytesOrBdp, PacketsOrBdp, PacketsOrPasses, Rate, Time};
use anabranch_workload::{
    FileFormat, FileParameters, Flow, FlowSet, GeneratedAs, HostView, Medium, ServerParameters, SizeDistribution,
    Start, TriggerId, TriggerKind, WorkloadParameters, generate_all,
};
use std::{io::ErrorKind, path::Path};

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

pub(crate) fn scenario(bytes: &[u8]) {
    let read = |text: &str| Scenario::read(Tree::parse("fuzz.toml", text)?, "fuzz", Path::new("/nonexistent"));
    match read(text(bytes)) {
        Ok(scenario) => {
            let written = scenario.to_toml();
            match read(&written) {
                Ok(again) => assert_eq!(again.hash(), scenario.hash(), "{written}"),
                Err(error) => panic!("does not read back: {error}\n{written}"),
            }
        }
        Err(error) => {
            let _ = (error.line_column(), error.remedy());
            let shown = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor());
            assert!(shown.render_report(&mut String::new(), &error).is_ok(), "{error}");
        }
    }
}

/// Parses `--set`, `--over` and `--pcap`.
pub(crate) fn assignment(bytes: &[u8]) {
    let text = text(bytes);
    if let Ok(mut tree) =
        Tree::parse("fuzz.toml", "[topology]\nkind = \"leaf-spine\"\n[[workload]]\nkind = \"incast\"\n")
        && tree.set(text).is_ok()
    {
        let _ = Scenario::read(tree, "fuzz", Path::new("/nonexistent")).map(|scenario| scenario.to_toml());
    }
    let _ = over::axis(text);
    if let Ok(nowhere) = OutputDir::open(Path::new("/nonexistent")) {
        let _ = pcap::Captures::read(&[text.to_string()], false, &Inputs::default(), &nowhere);
    }
}

/// Parses sizes, rates and times; their printed form parses to the same value.
pub(crate) fn units(bytes: &[u8]) {
    fn both<T: std::str::FromStr + ToString + PartialEq + std::fmt::Debug>(text: &str) {
        if let Ok(value) = text.parse::<T>() {
            let written = value.to_string();
            assert_eq!(written.parse::<T>().ok(), Some(value), "{text:?} is written {written:?}");
        }
    }
    let text = text(bytes);
    both::<Bytes>(text);
    both::<BytesOrBdp>(text);
    both::<PacketsOrBdp>(text);
    both::<PacketsOrPasses>(text);
    both::<Rate>(text);
    both::<Time>(text);
}

pub(crate) fn claims(bytes: &[u8]) {
    let file = claims::SourceFile { name: "fuzz.toml".into(), text: text(bytes).into() };
    let _ = claims::ClaimSet::read(claims::PAPERS[0], &[file]);
    let _ = claims::Metric::read(text(bytes));
}

pub(crate) fn size_distribution(bytes: &[u8]) {
    let _ = SizeDistribution::parse(text(bytes), "fuzz");
}

fn flows(format: FileFormat, bytes: &[u8]) {
    const HOSTS: u32 = 16;
    let each = || 0..HOSTS;
    let view = HostView {
        hosts: HOSTS,
        leaf_of: each().map(|host| host / 4).collect(),
        group_of: each().map(|host| host / 8).collect(),
        host_key: each().map(u64::from).collect(),
        nic_rate: vec![Rate::gbps(100); HOSTS as usize],
        oversubscription: 1.0,
        classes: vec!["data".into(), "bulk".into()],
        flow_memory: 64 << 20,
        low_diameter: None,
        servers: None,
        templates: false,
    };
    let file = FileParameters { path: "fuzz".into(), format: Auto::Value(format), ..FileParameters::default() };
    let sent_as = GeneratedAs { name: "fuzz".into(), class: 0, load_balancer: 0, measured: true, split: None };
    let read = |_: &str| Ok(bytes.to_vec());
    if let Ok(made) = generate_all(&[(WorkloadParameters::File(file), sent_as)], &view, 1, &read) {
        for flow in &made.flows.flows {
            assert!(flow.src < HOSTS && flow.dst < HOSTS && flow.src != flow.dst && flow.size > 0, "{flow:?}");
        }
        let flows = made.flows.flows.len();
        assert_eq!(started(&made.flows), flows, "some of {flows} flows never start");
        on_servers(made.flows);
    }
}

/// Returns the number of flows that start, if every flow ends.
fn started(set: &FlowSet) -> usize {
    let (mut activations, mut started) = (vec![0; set.triggers.len()], 0);
    let mut open: Vec<TriggerId> = Vec::new();
    let start = |flow: &Flow, open: &mut Vec<TriggerId>| open.extend(flow.on_sent.into_iter().chain(flow.on_received));
    for flow in set.flows.iter().filter(|flow| matches!(flow.start, Start::At(_))) {
        started += 1;
        start(flow, &mut open);
    }
    open.extend((0..).map(TriggerId).zip(&set.triggers).filter(|(_, trigger)| trigger.at.is_some()).map(|(id, _)| id));
    while let Some(TriggerId(number)) = open.pop() {
        let trigger = &set.triggers[number as usize];
        let count = &mut activations[number as usize];
        *count += 1;
        let fired: &[u32] = match trigger.kind {
            TriggerKind::Multishot => trigger.targets.get(*count - 1..*count).unwrap_or_default(),
            TriggerKind::Oneshot if *count == 1 => &trigger.targets,
            TriggerKind::Barrier(all) if *count == all as usize => &trigger.targets,
            _ => continue,
        };
        open.extend(trigger.begun.iter().chain(&trigger.next));
        for target in fired {
            started += 1;
            start(&set.flows[*target as usize], &mut open);
        }
    }
    started
}

/// Maps flows to those of 4 servers with 4 GPUs and 2 NICs each.
fn on_servers(mut set: FlowSet) {
    let servers = ServerParameters { gpus: 4, nics: 2, ..ServerParameters::default() };
    let messages = set.flows.len();
    if servers.route(&mut set, 64 << 20).is_err() {
        return;
    }
    let targets = set.triggers.iter().flat_map(|trigger| &trigger.targets);
    assert!(targets.into_iter().all(|target| (*target as usize) < set.flows.len()), "a trigger without its flow");
    for (number, flow) in set.flows.iter().enumerate() {
        assert!(flow.src < 8 && flow.dst < 8 && (flow.medium == Medium::ScaleUp || flow.src != flow.dst), "{flow:?}");
        assert!(flow.medium == Medium::ScaleUp || flow.src % 2 == flow.dst % 2, "between rails: {flow:?}");
        assert!(number < messages || matches!(flow.start, Start::On(_)), "{flow:?}");
    }
}

pub(crate) fn flow_csv(bytes: &[u8]) {
    flows(FileFormat::Csv, bytes);
}

pub(crate) fn flow_conweave(bytes: &[u8]) {
    flows(FileFormat::Conweave, bytes);
}

pub(crate) fn flow_htsim_cm(bytes: &[u8]) {
    flows(FileFormat::HtsimCm, bytes);
}

pub(crate) fn flow_goal(bytes: &[u8]) {
    flows(FileFormat::Goal, bytes);
}

pub(crate) fn topology(bytes: &[u8]) {
    let text = text(bytes);
    let formats = [TopologyFormat::Conweave, TopologyFormat::HtsimTopo, TopologyFormat::Adjacency].map(Auto::Value);
    for format in formats.into_iter().chain([Auto::Auto]) {
        let file = TopologyFile { path: "fuzz".into(), format, ..TopologyFile::default() };
        let read = |_: &str| if text.is_empty() { Err(ErrorKind::NotFound.into()) } else { Ok(text.to_string()) };
        if let Ok(topology) = TopologyParameters::File(file).build(&read) {
            assert!(topology.links.iter().all(|link| link.from != link.to), "a link from a node to itself");
            assert!(
                topology.hosts >= 2 && (0..topology.hosts).all(|host| topology.edge_switch(host).0 >= topology.hosts)
            );
            if topology.hosts <= 64 && topology.switches() <= 64 {
                let summary = topology.summary(4160, 64);
                assert!(summary.base_rtt > Time::ZERO && summary.paths.iter().all(|pair| pair.paths > 0));
                let dead = vec![false; topology.links.len()];
                for (from, to) in [(0, topology.hosts - 1), (topology.hosts - 1, 0)] {
                    topology.dead_paths(topology.edge_switch(from), topology.edge_switch(to), &dead);
                }
                anabranch_topology::partition(&topology, 3);
            }
        }
    }
}
