//! Parameters of a setup that a testbed replaces by its own, so that a simulation of the same setup differs.

use crate::jobs;
use anabranch_backend::{FlowKeys, LoadBalancer, MarkAt, PortSelector, Setup};
use anabranch_settings::{Auto, Raw};
use anabranch_topology::Fault;
use anabranch_transport::TransportParameters;
use anabranch_units::Rate;
use anabranch_wire::{FindLabels, WireParameters};

type Entries = Vec<(&'static str, Raw)>;

fn text(value: &Raw) -> String {
    value.to_string().trim_matches('"').to_string()
}

/// Returns the keys whose value differs, as `key = simulated here, other on the testbed`.
fn differing(section: &str, simulated: &Entries, real: &Entries, except: &[&str]) -> Vec<String> {
    let pairs = simulated.iter().zip(real).filter(|((key, a), (_, b))| a != b && !except.contains(key));
    pairs
        .map(|((key, a), (_, b))| format!("`{section}.{key}` is {} there, {} in a simulation", text(b), text(a)))
        .collect()
}

fn control_entries(transport: &TransportParameters, control: &str) -> Entries {
    transport.clone().control_parameters_mut(control).map(|parameters| parameters.entries()).unwrap_or_default()
}

/// Returns a sentence for each parameter that a testbed replaces.
pub(crate) fn unlike(setup: &Setup, wire: &WireParameters) -> Vec<String> {
    let mut unlike = Vec::new();
    let of_plane = setup.topology.link(setup.topology.host_uplink(0)).rate;
    let uplink = Rate(of_plane.0 * u64::from(setup.topology.planes));
    for balancer in &setup.load_balancers {
        let Ok(real) = wire.settings_with_key(&setup.transport, balancer.host.clone(), uplink, setup.seed, None) else {
            continue;
        };
        let section = format!("load_balancer.{}", balancer.host.name());
        let [simulated, own] = [&balancer.host, &real.scheme].map(|scheme| scheme.parameters().entries());
        unlike.extend(differing(&section, &simulated, &own, &[]));
    }
    if let Ok(real) = wire.transport(&setup.transport) {
        let [simulated, own] = [setup.transport.entries(), real.entries()];
        // One rule: a measured timeout of at least `wire.least_timeout`.
        unlike.extend(differing("transport", &simulated, &own, &["rto", "min_rto"]));
        let control = setup.transport.control().name;
        let [simulated_control, own] = [&setup.transport, &real].map(|of| control_entries(of, control));
        unlike.extend(differing(&format!("transport.{control}"), &simulated_control, &own, &[]));
        let least = wire.least_timeout.to_string();
        let rto = simulated.iter().find(|(key, _)| *key == "rto").map(|(_, rto)| text(rto));
        if let Some(rto) = rto.filter(|rto| *rto != least) {
            unlike.push(format!(
                "`transport.rto` is at least {least} there (`wire.least_timeout`), {rto} in a simulation"
            ));
        }
    }
    if let Auto::Value(rate) = wire.rate
        && rate != uplink
    {
        unlike.push(format!("hosts send at {rate} there (`wire.rate`), {uplink} in a simulation"));
    }
    let planes = setup.topology.planes;
    let takes_free_port = |balancer: &LoadBalancer| balancer.named_planes(setup.fabric.nic_ports, planes) < planes;
    if setup.fabric.nic_ports != PortSelector::ByEv && setup.load_balancers.iter().any(takes_free_port) {
        unlike.push(
            "a packet takes the port of its label there, the next free one in a simulation (`fabric.nic_ports`)".into(),
        );
    }
    let reads_rates = setup.load_balancers.iter().any(|b| b.host.capabilities().reads_path_rates());
    if reads_rates && wire.find_labels != FindLabels::Paths {
        unlike.push("no rates of paths are known there without `wire.find_labels = \"paths\"`".into());
    }
    let of_ranks = jobs::own_flows(&setup.flows);
    if setup.measure.trace_scheme && setup.measure.trace_flows.iter().any(|flow| of_ranks.contains(&(*flow as usize))) {
        unlike.push("calls of schemes in ranks of collectives are not recorded (`measure.trace_scheme`)".into());
    }
    let is_noticed = |fault: &Fault| fault.port_detect_at.iter().any(Option::is_some);
    if planes > 1 && setup.faults.iter().any(is_noticed) {
        unlike.push(
            "no message reports ports that are down there, but in a simulation (`port_detect` and `peer_detect` of faults)"
                .into(),
        );
    }
    let fabric = &setup.fabric;
    let marks = fabric.ecn && wire.ecn;
    let of_ports = [
        (
            marks && fabric.ecn_mark_at == MarkAt::Dequeue,
            "`fabric.ecn_mark_at` is enqueue there, dequeue in a simulation",
        ),
        (fabric.ecn && !wire.ecn, "nothing is marked there (`wire.ecn`), but in a simulation (`fabric.ecn`)"),
        (
            wire.trimming && !fabric.trimming,
            "packets are trimmed there (`wire.trimming`), not in a simulation (`fabric.trimming`)",
        ),
        (
            !wire.trimming && fabric.trimming,
            "no packet is trimmed there (`wire.trimming`), but in a simulation (`fabric.trimming`)",
        ),
        (
            fabric.flow_keys == FlowKeys::Connection,
            "each flow has a label of its own there (`fabric.flow_keys = \"stable\"`), each connection in a simulation",
        ),
        (fabric.classes.len() > 1, "`fabric.classes` are one class there"),
        (fabric.tiers() > 1, "limits by tier (`fabric.queue_limit_by_tier`) are those of all ports there"),
        (fabric.shared_buffer.0 > 0, "`fabric.shared_buffer`: each port has a queue of `fabric.queue_limit` there"),
    ];
    unlike.extend(of_ports.into_iter().filter(|(differs, _)| *differs).map(|(_, what)| what.to_string()));
    unlike
}
