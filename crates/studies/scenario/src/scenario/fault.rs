//! `[[fault]]`: links and switches that fail, with their times.

use crate::{Mistakes, ScenarioError, Section, Tree, document};
use anabranch_backend::Setup;
use anabranch_lb::registry::TagKind;
use anabranch_settings::{Never, Parameters, Raw};
use anabranch_topology::{Affects, Fault, FaultAction, FaultKind, FaultParameters, LinkId, NodeId, Topology};
use anabranch_units::Time;
use anabranch_workload::{FailedSwitch, FileFailure, Flow, FlowSet, Medium};
use std::collections::BTreeSet;
use toml::Table;

/// Reads all faults; the profile decides which packets a fault harms by default.
pub(crate) fn read(sections: Vec<Section<'_>>, affects: Affects) -> Result<Vec<FaultParameters>, ScenarioError> {
    let mut mistakes = Mistakes::default();
    let mut faults = Vec::new();
    for section in sections {
        let mut fault = FaultParameters { affects, ..FaultParameters::default() };
        mistakes.ok(section.fill(&mut fault, &[]));
        faults.push(fault);
    }
    mistakes.or(faults)
}

/// Returns a fault with every default filled in; keys without a value are omitted.
pub(crate) fn table(fault: &FaultParameters) -> Table {
    let given = |(key, raw): (&str, Raw)| {
        let nothing = raw == Raw::Text(String::new()) || raw == Raw::List(Vec::new());
        (!nothing).then(|| (key.to_string(), document::value(&raw)))
    };
    fault.entries().into_iter().filter_map(given).collect()
}

/// Resolves the faults to links; random choices depend on the seed and the fault's number.
pub(crate) fn resolve(
    faults: &[FaultParameters],
    topology: &Topology,
    seed: u64,
    tree: &Tree,
) -> Result<Vec<Fault>, ScenarioError> {
    let (mut resolved, mut mistakes) = (Vec::new(), Mistakes::default());
    for (number, fault) in faults.iter().enumerate() {
        let found = fault.resolve(topology, number, seed).map_err(|error| {
            let at = tree.place_in(&format!("fault[{number}]"), error.key.as_deref());
            ScenarioError::new(format!("[[fault]] {}: {error}", number + 1)).maybe_at(at)
        });
        resolved.extend(mistakes.ok(found).unwrap_or_default());
    }
    mistakes.or(resolved)
}

/// Maximum number of links that a warning names.
pub(crate) const NAMED: usize = 3;

pub(crate) fn never_down(faults: &[FaultParameters], setup: &Setup, tree: &Tree) -> Vec<String> {
    let mut warnings = Vec::new();
    for (number, fault) in faults.iter().enumerate().filter(|(_, fault)| fault.kind == FaultKind::LinkUp) {
        let Ok(resolved) = fault.resolve(&setup.topology, number, setup.seed) else { continue };
        let was_down = |link: &LinkId| {
            let downs = setup.faults.iter().filter(|other| other.action == FaultAction::Down && other.at <= fault.at);
            downs.into_iter().any(|other| other.links.contains(link))
        };
        let links: BTreeSet<LinkId> = resolved.into_iter().flat_map(|fault| fault.links).collect();
        let never: Vec<LinkId> = links.into_iter().filter(|link| !was_down(link)).collect();
        if never.is_empty() {
            continue;
        }
        let names: Vec<String> = never.iter().take(NAMED).map(|link| setup.topology.link_name(*link)).collect();
        let more = never.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let place = tree.line_of(&format!("fault[{number}]"));
        warnings.push(format!(
            "{place}[[fault]] {}: `link-up` at {}: {}{more} did not go down before, so that nothing changes there",
            number + 1,
            fault.at,
            names.join(", ")
        ));
    }
    warnings
}

/// Warns of faults, or of their keys, that no load balancer of `setup` heeds.
pub(crate) fn unheeded(faults: &[FaultParameters], setup: &Setup, tree: &Tree) -> Vec<String> {
    let keeps = setup.load_balancers.iter().filter(|b| b.switch.capabilities().keeps_tables()).count();
    let reads = |tags| matches!(tags, TagKind::MultiPart | TagKind::Guided);
    let is_read = setup.load_balancers.iter().any(|b| reads(b.host.capabilities().tags()));
    let reads_rates = setup.load_balancers.iter().any(|b| b.host.capabilities().reads_path_rates());
    let planes = setup.topology.planes;
    let names_ports = setup.load_balancers.iter().any(|b| b.named_planes(setup.fabric.nic_ports, planes) > 1);
    let is_port = |link: &LinkId| {
        let link = setup.topology.link(*link);
        link.from.0.min(link.to.0) < setup.topology.hosts
    };
    let of_port = |number: usize| {
        setup.faults.iter().any(|fault| fault.number == Some(number) && fault.links.iter().any(is_port))
    };
    let of = |(number, fault): (usize, &FaultParameters)| {
        let is_denial = matches!(fault.kind, FaultKind::PathDeny | FaultKind::PathAllow);
        let why = match fault.detect_after {
            Never::Value(_) if fault.kind == FaultKind::LinkDegrade && reads_rates => return None,
            Never::Value(_) if fault.kind == FaultKind::LinkDegrade => {
                "`detect_after` of a degradation has no effect: no host scheme here reads the rates of paths"
            }
            Never::Value(_) if keeps > 0 && keeps == setup.load_balancers.len() => {
                "`detect_after` has no effect: these switches keep their tables (`remap = \"static\"`)"
            }
            Never::Value(_) if keeps > 0 => "the tables change for all load balancers, also with `remap = \"static\"`",
            _ if is_denial && !names_ports && of_port(number) => {
                "no host can leave a port of its NIC: entropy values name none here, so that only paths between switches are denied"
            }
            _ if is_denial && !is_read => "no host here can deny a path: entropy values that are hashed name none",
            _ => return None,
        };
        Some(format!("{}[[fault]] {}: {why}", tree.line_of(&format!("fault[{number}]")), number + 1))
    };
    faults.iter().enumerate().filter_map(of).collect()
}

/// Faults of links that a flow file lists as failed: both directions are down from the start, and tables avoid them.
///
/// Refuses failures that leave no path between the hosts of a flow.
pub(crate) fn of_files(
    failures: &[FileFailure],
    flows: &FlowSet,
    topology: &Topology,
) -> Result<Vec<Fault>, ScenarioError> {
    let faults: Vec<Fault> =
        failures.iter().map(|failure| of_file(failure, topology)).collect::<Result<_, ScenarioError>>()?;
    let Some(last) = failures.last() else { return Ok(faults) };
    let down: BTreeSet<LinkId> = faults.iter().flat_map(|fault| fault.links.iter().copied()).collect();
    let mut part = vec![u32::MAX; topology.nodes.len()];
    for first in 0..topology.hosts {
        let mut stack = vec![NodeId(first)];
        while let Some(node) = stack.pop() {
            if part[node.0 as usize] == u32::MAX {
                part[node.0 as usize] = first;
                let up = topology.out_links(node).iter().filter(|link| !down.contains(link));
                stack.extend(up.map(|link| topology.link(*link).to));
            }
        }
    }
    let is_cut = |flow: &Flow| {
        flow.medium == Medium::Network
            && topology.is_connected(flow.src, flow.dst)
            && part[flow.src as usize] != part[flow.dst as usize]
    };
    if let Some(flow) = flows.all_flows().find(is_cut) {
        let names: Vec<String> = down.iter().step_by(2).map(|link| topology.cable_name(*link)).collect();
        return Err(ScenarioError::new(format!(
            "{}: the failures of the file ({}) leave no path from host{} to host{}, between which there is a flow",
            last.place,
            names.join(", "),
            flow.src,
            flow.dst
        )));
    }
    Ok(faults)
}

fn of_file(failure: &FileFailure, topology: &Topology) -> Result<Fault, ScenarioError> {
    let highest = (topology.hosts..topology.nodes.len() as u32).filter_map(|n| topology.tier(NodeId(n))).max();
    let highest = highest.unwrap_or(0);
    let (tier, word) = match failure.switch_type {
        FailedSwitch::Tor => (0, "TOR"),
        FailedSwitch::Agg => (1, "AGG"),
        FailedSwitch::Core => (highest, "CORE"),
    };
    let mut switches =
        (topology.hosts..topology.nodes.len() as u32).map(NodeId).filter(|n| topology.tier(*n) == Some(tier));
    let wrong = |message: String| Err(ScenarioError::new(format!("{}: {message}", failure.place)));
    let Some(switch) = switches.nth(failure.switch_id as usize) else {
        return wrong(format!("there is no {word} switch {} in this topology", failure.switch_id));
    };
    // A core switch has no uplinks: its links count from its first port.
    let links: Vec<LinkId> = match topology.uplinks_of(switch).collect::<Vec<_>>() {
        none if none.is_empty() => topology.out_links(switch).to_vec(),
        uplinks => uplinks,
    };
    let Some(link) = links.get(failure.link_id as usize) else {
        let (name, last) = (&topology.node(switch).name, links.len().saturating_sub(1));
        return wrong(format!("{name} has no link {}; they count from 0 to {last}", failure.link_id));
    };
    let mut links = vec![*link, link.reverse()];
    links.sort_unstable();
    Ok(Fault {
        at: Time::ZERO,
        action: FaultAction::Down,
        links,
        number: None,
        data_only: false,
        detect_at: Some(Time::ZERO),
        port_detect_at: [Some(Time::ZERO); 2],
    })
}
