//! `[servers]`: GPUs, NICs and scale-up networks.

use crate::{ScenarioError, Section, Tree};
use anabranch_topology::Topology;
use anabranch_workload::{CrossRail, FlowSet, Medium, ServerParameters, WorkloadError};

pub(crate) fn read(section: Option<Section<'_>>, tree: &Tree) -> Result<Option<ServerParameters>, ScenarioError> {
    let Some(section) = section else { return Ok(None) };
    let mut servers = ServerParameters::default();
    section.fill(&mut servers, &[])?;
    servers.check().map_err(|error| wrong(&error, tree))?;
    Ok(Some(servers))
}

/// Converts an error to one at its key, or else at the section.
pub(crate) fn wrong(error: &WorkloadError, tree: &Tree) -> ScenarioError {
    ScenarioError::new(format!("[servers]: {error}")).maybe_at(tree.place_in("servers", error.key.as_deref()))
}

/// Checks that the hosts of `topology` are the NICs of servers.
pub(crate) fn check(servers: &ServerParameters, topology: &Topology, tree: &Tree) -> Result<(), ScenarioError> {
    let rails = topology.rails;
    servers.check_hosts(topology.hosts, rails.map(|rails| rails.count)).map_err(|error| wrong(&error, tree))?;
    if servers.cross_rail == CrossRail::Network && rails.is_some_and(|rails| !rails.are_joined) {
        let error = WorkloadError {
            key: Some("cross_rail".into()),
            message: "found \"network\", but no link of this topology leads from one rail to another".into(),
            ..WorkloadError::default()
        };
        let help = "give `cross_rail = \"pxn\"`: such messages use the scale-up network, or a [topology] of kind \"rail-optimised\"";
        return Err(wrong(&error, tree).help(help));
    }
    Ok(())
}

/// Refuses flows over the network between rails that no link joins.
pub(crate) fn check_paths(set: &FlowSet, topology: &Topology, tree: &Tree) -> Result<(), ScenarioError> {
    let Some(rails) = topology.rails.filter(|rails| !rails.are_joined) else { return Ok(()) };
    let cut =
        |flow: &&anabranch_workload::Flow| flow.medium == Medium::Network && !topology.is_connected(flow.src, flow.dst);
    let Some(flow) = set.flows.iter().find(cut) else { return Ok(()) };
    let workload = set.workloads.get(usize::from(flow.workload)).map_or("", |workload| &workload.name);
    let count = rails.count;
    let message = format!(
        "[topology]: `kind`: no link joins the {count} rails, so no path leads from host{} (rail {}) to host{} (rail {}), as the \
         workload `{workload}` requires",
        flow.src,
        flow.src % count,
        flow.dst,
        flow.dst % count
    );
    let at = tree.place("topology.kind");
    let help = format!(
        "add [servers] with `nics = {count}`: messages between rails then use the scale-up network of a server"
    );
    Err(ScenarioError::new(message).maybe_at(at).help(help))
}
