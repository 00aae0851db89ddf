//! Flows that can never finish: every packet hashes over an element that is down for good and that no table avoids.

use super::{Scenario, fault::NAMED};
use crate::BackendEntry;
use anabranch_backend::{FctKind, Measure, RunOptions, Setup};
use anabranch_outcome::FlowRow;
use anabranch_topology::{Fault, FaultAction, Link, LinkId, NodeId};
use anabranch_units::Time;
use anabranch_workload::Start;
use std::collections::{BTreeMap, BTreeSet};

/// Beyond this number of flows no packet is sent to find them; the warning is general.
const MAX_FLOWS: usize = 100_000;
/// Time between the starts of two flows, so that no queue overflows.
const SPACING: Time = Time::from_ns(200);

/// Returns the last faults of links that stay down unnoticed, by link.
fn down_for_good(faults: &[Fault]) -> BTreeMap<LinkId, &Fault> {
    let mut ordered: Vec<&Fault> = faults.iter().collect();
    ordered.sort_by_key(|fault| fault.at);
    let mut down = BTreeMap::new();
    for fault in ordered {
        for link in &fault.links {
            match fault.action {
                FaultAction::Down if fault.detect_at.is_none() => drop(down.insert(*link, fault)),
                FaultAction::Down | FaultAction::Up => drop(down.remove(link)),
                _ => {}
            }
        }
    }
    down
}

/// Returns the flows that never finish: each is simulated as one packet, with the links down from the start.
fn dead_flows(scenario: &Scenario, setup: &Setup, down: &[Fault], backend: &BackendEntry) -> Option<Vec<usize>> {
    let mut probe = setup.clone();
    probe.faults = down.to_vec();
    probe.measure = Measure::default();
    probe.limits.warmup = Time::ZERO;
    probe.limits.until_all_done = true;
    probe.limits.stall_after = probe.limits.stall_after.or(Some(50));
    probe.flows.list_templates();
    probe.flows.triggers.clear();
    for (number, flow) in probe.flows.flows.iter_mut().enumerate() {
        flow.size = 1;
        flow.start = Start::At(Time::from_ps(number as u64 * SPACING.ps()));
        (flow.on_sent, flow.on_received) = (None, None);
    }
    let options = RunOptions { threads: 1 };
    let result = anabranch_backend::run((backend.make)(scenario).as_ref(), &probe, options, &mut |_| true).ok()?;
    let unfinished = |row: &&FlowRow| match setup.fabric.fct_kind {
        FctKind::Rx => row.fct_rx.is_none(),
        FctKind::Ack => row.fct_ack.is_none(),
    };
    Some(result.flows.iter().filter(unfinished).map(|row| row.flow_id as usize).collect())
}

pub(crate) fn warning(scenario: &Scenario, setup: &Setup, backend: &BackendEntry) -> Option<String> {
    let down = down_for_good(&setup.faults);
    let last = down.values().max_by_key(|fault| fault.at)?;
    // Other schemes leave a path that loses packets.
    let is_static: Vec<bool> = setup
        .load_balancers
        .iter()
        .map(|balancer| balancer.host.name() == "ecmp" && balancer.switch.name() == "ecmp")
        .collect();
    if !setup.flows.workloads.iter().any(|workload| is_static[usize::from(workload.load_balancer)])
        || !setup.flows.jobs.is_empty()
    {
        return None;
    }
    let elements = elements(&down, setup);
    let remedy = format!(
        "set `{}` to a time after which the forwarding tables avoid it, or choose a scheme that leaves a dead path",
        last.key("detect_after")
    );
    if setup.flows.number_of_flows() > MAX_FLOWS {
        return Some(format!("ECMP hashes flows over {elements}, down for good: those never finish; {remedy}"));
    }
    let from_start: Vec<Fault> =
        down.iter().map(|(link, fault)| Fault { at: Time::ZERO, links: vec![*link], ..(*fault).clone() }).collect();
    let mut dead = dead_flows(scenario, setup, &from_start, backend)?;
    dead.retain(|&flow| {
        let workload = &setup.flows.workloads[usize::from(setup.flows.flow(flow as u32).workload)];
        is_static[usize::from(workload.load_balancer)]
    });
    if dead.is_empty() {
        return None;
    }
    let named: Vec<String> = dead
        .iter()
        .take(NAMED)
        .map(|&number| {
            let flow = setup.flows.flow(number as u32);
            format!("{number} (host{} to host{})", flow.src, flow.dst)
        })
        .collect();
    let more = if dead.len() > NAMED { ", ..." } else { "" };
    let when = match last.at {
        Time::ZERO => String::new(),
        at => format!(" unless they finish before {at}"),
    };
    let waits = setup.flows.all_flows().any(|flow| matches!(flow.start, Start::On(_)));
    let waiting = if waits { ", and flows that wait for them never start" } else { "" };
    Some(format!(
        "{} of {} flows never finish{when}: ECMP hashes them over {elements}, down for good (flows {}{more}){waiting}; {remedy}",
        dead.len(),
        setup.flows.number_of_flows(),
        named.join(", ")
    ))
}

/// Names what is down: switches all of whose links are, else links.
fn elements(down: &BTreeMap<LinkId, &Fault>, setup: &Setup) -> String {
    let topology = &setup.topology;
    // Links and dead links per node.
    let mut ends: BTreeMap<NodeId, (u32, u32)> = BTreeMap::new();
    for (number, link) in topology.links.iter().enumerate() {
        let is_down = u32::from(down.contains_key(&LinkId(number as u32)));
        for node in [link.from, link.to] {
            let (links, dead) = ends.entry(node).or_default();
            (*links, *dead) = (*links + 1, *dead + is_down);
        }
    }
    let is_down = |node: &NodeId| node.0 >= topology.hosts && ends.get(node).is_some_and(|(links, dead)| links == dead);
    let mut names: BTreeSet<String> = BTreeSet::new();
    for link in down.keys() {
        let Link { from, to, .. } = topology.link(*link);
        match [from, to].into_iter().find(|node| is_down(node)) {
            Some(switch) => names.insert(topology.nodes[switch.0 as usize].name.clone()),
            None => names.insert(topology.link_name(*link)),
        };
        if names.len() > NAMED {
            break;
        }
    }
    let more = if names.len() > NAMED { ", ..." } else { "" };
    format!("{}{more}", names.into_iter().take(NAMED).collect::<Vec<_>>().join(", "))
}
