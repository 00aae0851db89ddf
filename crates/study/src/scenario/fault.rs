//! `[[fault]]`: what fails and when.

use crate::{document, error::ScenarioError, section::Section, tree::Tree};
use anabranch_settings::{Parameters, Raw};
use anabranch_topology::{Affects, Fault, FaultAction, FaultParameters, LinkId, NodeId, Topology};
use anabranch_units::Time;
use anabranch_workload::{FailedSwitch, FileFailure};
use toml::Table;

/// Reads all faults; what a fault harms where it does not say comes from the profile.
pub(crate) fn read(sections: Vec<Section<'_>>, affects: Affects) -> Result<Vec<FaultParameters>, ScenarioError> {
    sections
        .into_iter()
        .map(|section| {
            let mut fault = FaultParameters { affects, ..FaultParameters::default() };
            section.fill(&mut fault, &[]).map(|()| fault)
        })
        .collect()
}

/// A fault with every default filled in; what is not given at all is left out.
pub(crate) fn table(fault: &FaultParameters) -> Table {
    let given = |(key, raw): (&str, Raw)| {
        let nothing = raw == Raw::Text(String::new()) || raw == Raw::List(Vec::new());
        (!nothing).then(|| (key.to_string(), document::value(&raw)))
    };
    fault.entries().into_iter().filter_map(given).collect()
}

/// The faults resolved to links; random choices depend on the seed and the fault's number.
pub(crate) fn resolve(
    faults: &[FaultParameters],
    topology: &Topology,
    seed: u64,
    tree: &Tree,
) -> Result<Vec<Fault>, ScenarioError> {
    let mut resolved = Vec::new();
    for (number, fault) in faults.iter().enumerate() {
        let found = fault.resolve(topology, number, seed).map_err(|error| {
            let table = format!("fault[{number}]");
            let own = error.key.as_deref().and_then(|key| tree.find(&format!("{table}.{key}")));
            let at = own.map(|node| node.place.clone()).or_else(|| tree.find(&table).map(|node| node.key.clone()));
            ScenarioError::new(format!("[[fault]] {}: {error}", number + 1)).maybe_at(at)
        })?;
        resolved.extend(found);
    }
    Ok(resolved)
}

/// Links that a flow file says are failed: both directions are down from the start, and the forwarding tables know.
pub(crate) fn of_files(failures: &[FileFailure], topology: &Topology) -> Result<Vec<Fault>, ScenarioError> {
    failures.iter().map(|failure| of_file(failure, topology)).collect()
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
    Ok(Fault { at: Time::ZERO, action: FaultAction::Down, links, data_only: false, detect_at: Some(Time::ZERO) })
}
