//! Bounds of clocks and tables of results: larger numbers are refused before the run rather than when its results are written.

use super::Workload;
use crate::{ScenarioError, Tree};
use anabranch_backend::Setup;
use anabranch_topology::{BasePaths, LinkId, Topology};
use anabranch_workload::{Flow, MAX_NUMBER, Medium};

/// Picoseconds in a second, which is also the time of a bit at one bit per second.
const SECOND: u128 = 1_000_000_000_000;
const MAX: u128 = MAX_NUMBER as u128;

const MOST: &str = "9223372 s (2^63 - 1 ps)";

/// Refuses rates and times of flows beyond [`MAX_NUMBER`], with the dotted key at fault. Flows are checked when generated.
pub(crate) fn check(setup: &Setup, workloads: &[Workload], tree: &Tree) -> Result<(), (&'static str, ScenarioError)> {
    if let Some(link) = setup.topology.links.iter().find(|link| link.rate.0 > MAX_NUMBER) {
        let message = format!(
            "[topology]: the rate of {} is {} bit/s, expected {MAX_NUMBER} bit/s or less, the limit of tables",
            setup.topology.node(link.from).name,
            link.rate.0
        );
        return Err(("topology.link_rate", ScenarioError::new(message)));
    }
    ideal_times(setup, workloads, tree).map_err(|error| ("workload", error))
}

/// Refuses flows that take too long even alone on the network.
fn ideal_times(setup: &Setup, workloads: &[Workload], tree: &Tree) -> Result<(), ScenarioError> {
    let topology = &setup.topology;
    let flows = || setup.flows.all_flows();
    // The largest flow over the slowest and longest path is mostly short enough: no path need be found.
    let (Some(largest), Some(slowest), Some(delay)) = (
        flows().map(|flow| flow.size).max(),
        topology.links.iter().map(|link| link.rate.0).min(),
        topology.links.iter().map(|link| link.delay).max(),
    ) else {
        return Ok(());
    };
    let scale_up = setup.flows.servers.as_ref().map_or(0, |servers| {
        wire(largest.into(), servers.scale_up_rate.0) + 2 * u128::from(servers.scale_up_latency.ps())
    });
    let longest = usize::try_from(topology.switches()).unwrap_or(usize::MAX).saturating_add(1);
    let hop = u128::from(delay.saturating_add(topology.switch_latency).ps()) + wire(packet(setup), slowest);
    if (train(setup, largest, slowest) + 2 * hop * longest as u128).max(scale_up) <= MAX {
        return Ok(());
    }
    let mut paths = BasePaths::default();
    let mut worst = None;
    for flow in flows() {
        let time = match (flow.medium, &setup.flows.servers) {
            (Medium::ScaleUp, Some(servers)) => {
                wire(flow.size.into(), servers.scale_up_rate.0) + 2 * u128::from(servers.scale_up_latency.ps())
            }
            _ => alone(setup, &flow, paths.path(topology, flow.src, flow.dst)),
        };
        if time > MAX && worst.as_ref().is_none_or(|(most, _)| time > *most) {
            worst = Some((time, flow));
        }
    }
    let Some((time, flow)) = worst else { return Ok(()) };
    let number = number(setup, &flow, workloads);
    let name = |host: u32| host_name(topology, host);
    let message = format!(
        "[[workload]] {}: `size`: a flow of {} B from {} to {} takes {:.0} s alone on the network, expected {MOST} or less, the limit of clocks and tables",
        number + 1,
        flow.size,
        name(flow.src),
        name(flow.dst),
        time as f64 / SECOND as f64
    );
    let help = "make the flow smaller or its links faster";
    Err(ScenarioError::new(message).maybe_at(tree.place_in(&format!("workload[{number}]"), Some("size"))).help(help))
}

fn host_name(topology: &Topology, host: u32) -> &str {
    &topology.node(topology.link(topology.host_uplink(host)).from).name
}

fn packet(setup: &Setup) -> u128 {
    u128::from(setup.transport.mtu()) + u128::from(setup.transport.header())
}

fn wire(bytes: u128, rate: u64) -> u128 {
    bytes * 8 * SECOND / u128::from(rate.max(1))
}

/// Returns the time of all packets of a message at a rate, in picoseconds.
fn train(setup: &Setup, size: u64, rate: u64) -> u128 {
    let packets = u128::from(size.div_ceil(setup.transport.mtu().max(1)).max(1));
    wire(u128::from(size) + packets * u128::from(setup.transport.header()), rate)
}

/// Returns an upper bound on the time that a flow takes alone, in picoseconds, including the return of its last ACK.
fn alone(setup: &Setup, flow: &Flow, path: &[LinkId]) -> u128 {
    let links = || path.iter().map(|link| setup.topology.link(*link));
    let slowest = links().map(|link| link.rate.0).min().unwrap_or(1);
    let latency = u128::from(setup.topology.switch_latency.ps());
    let hops: u128 = links().map(|l| u128::from(l.delay.ps()) + latency + wire(packet(setup), l.rate.0)).sum();
    train(setup, flow.size, slowest) + 2 * hops
}

/// Returns the number of the workload that a flow belongs to; parts of flow files have names of their own.
fn number(setup: &Setup, flow: &Flow, workloads: &[Workload]) -> usize {
    let name = &setup.flows.workloads[usize::from(flow.workload)].name;
    let named = workloads.iter().position(|workload| workload.names().any(|own| own == *name));
    named.or_else(|| workloads.iter().position(|workload| workload.kind.about().name == "file")).unwrap_or(0)
}
