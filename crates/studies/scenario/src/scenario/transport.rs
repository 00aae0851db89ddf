//! `[transport]`: the kind, its parameters, and a table for each congestion control.

use crate::{ScenarioError, Section, Tree, document};
use anabranch_backend::LoadBalancer;
use anabranch_lb::registry::{HostParameters, SwitchParameters};
use anabranch_settings::{About, Raw, SetError};
use anabranch_transport::TransportParameters;
use anabranch_units::BytesOrBdp;
use toml::Table;

/// Reads the section over the defaults in `transport`.
pub(crate) fn read(
    section: Option<Section<'_>>,
    mut transport: TransportParameters,
    tree: &Tree,
) -> Result<TransportParameters, ScenarioError> {
    let Some(mut section) = section else { return Ok(transport) };
    let mut taken = vec!["kind"];
    for About { name, .. } in transport.controls().all() {
        let Some(parameters) = transport.control_parameters_mut(name) else { continue };
        taken.push(name);
        if let Some(node) = section.take(name) {
            Section::of(node, format!("[transport.{name}]"))?.fill(parameters, &[])?;
        }
    }
    section.fill(transport.parameters_mut(), &taken)?;
    transport.check().map_err(|error| {
        let key = match &error {
            SetError::UnknownKey { key, .. } | SetError::InvalidValue { key, .. } => key.clone(),
        };
        ScenarioError::new(format!("[transport]: {error}")).maybe_at(tree.place_in("transport", Some(&key)))
    })?;
    Ok(transport)
}

/// Checks that a full packet fits into a window that the scenario sets, given the BDP of the built topology.
pub(crate) fn check_with_bdp(transport: &TransportParameters, bdp: u64, tree: &Tree) -> Result<(), ScenarioError> {
    let Some(place) = tree.place("transport.window") else { return Ok(()) };
    let Some((window, packet)) = transport.window() else { return Ok(()) };
    if window.bytes(bdp) >= packet {
        return Ok(());
    }
    let found = match window {
        BytesOrBdp::Bytes(_) => window.to_string(),
        BytesOrBdp::Bdp(_) => format!("{window}, which is {}B with a BDP of {bdp}B", window.bytes(bdp)),
    };
    let message = format!("[transport]: `window`: found {found}, expected at least a full packet, {packet}B");
    Err(ScenarioError::new(message).at(place).help(format!("the smallest window that works is \"{packet}B\"")))
}

/// Returns the transport with another congestion control, that of a workload; fails on an unknown name.
pub(crate) fn with_control(transport: &TransportParameters, control: &str) -> Result<TransportParameters, SetError> {
    let mut own = transport.clone();
    own.parameters_mut().set("congestion_control", &Raw::Text(control.trim().into()))?;
    own.check()?;
    Ok(own)
}

/// Checks that the load balancers in use fit the congestion control. ConWeave holds packets back in the network, which a round
/// trip cannot distinguish from congestion (specification 4.4). A rate that restarts with every packet does not pace.
pub(crate) fn check_balancers(
    transport: &TransportParameters,
    used: &[LoadBalancer],
    tree: &Tree,
) -> Result<(), ScenarioError> {
    let place = |key: &str| tree.place(&format!("transport.{key}"));
    let (control, misled) = (transport.control(), transport.controls().delay_based());
    let distorts = |balancer: &&LoadBalancer| balancer.switch.capabilities().distorts_round_trips();
    if let Some(balancer) = used.iter().find(distorts).filter(|_| misled.contains(&control.name)) {
        let message = format!(
            "load balancer `{}` conflicts with transport.congestion_control = \"{}\", because it measures round trips that switches of `{}` distort",
            balancer.name,
            control.name,
            balancer.switch.name()
        );
        let others = transport.controls().all().iter().filter(|other| !misled.contains(&other.name));
        let others: Vec<_> = others.map(|other| format!("\"{}\"", other.name)).collect();
        let help = format!("use congestion_control = {}, or another load balancer", others.join(" or "));
        return Err(ScenarioError::new(message).help(help));
    }
    let sprayer = used.iter().find(|balancer| !balancer.host.capabilities().keeps_path());
    if let Some(sprayer) = sprayer.filter(|_| transport.restarts_on_path_change()) {
        let key = "rate_on_path_change";
        let found = transport.parameters().entries().into_iter().find(|(name, _)| *name == key);
        let found = found.map(|(_, value)| value.to_string()).unwrap_or_default();
        let message = format!(
            "[transport]: `{key}`: {found} conflicts with the host scheme `{}`, which changes paths for every packet, so no packet would be paced",
            sprayer.host.name()
        );
        let movers = HostParameters::names(|host| host.capabilities().keeps_path());
        let help = format!("use \"keep\", or a scheme that moves flows: {}", movers.join(", "));
        return Err(ScenarioError::new(message).maybe_at(place("rate_on_path_change")).help(help));
    }
    let holds = |balancer: &&LoadBalancer| {
        let (host, switch) = (balancer.host.capabilities(), balancer.switch.capabilities());
        host.holds_for_flowlets() && switch.flowlet_timeout().is_none()
    };
    if let Some(holder) = used.iter().find(holds) {
        let (host, switch) = (holder.host.name(), holder.switch.name());
        let message = format!(
            "[load_balancer.{host}]: `flowlet_timeout`: `{host}` holds packets back for a flowlet timeout of the switches, and switches of `{switch}` have none"
        );
        let named = |key: String| tree.find(&key).filter(|node| node.raw() == Some(Raw::Text(holder.name.clone())));
        let of_workloads = (0..).map(|at| format!("workload.{at}")).take_while(|key| tree.find(key).is_some());
        let of_workloads = of_workloads.map(|key| format!("{key}.load_balancer"));
        let place = ["load_balancer.scheme".to_string()].into_iter().chain(of_workloads).find_map(named);
        let place = place.map(|node| node.place.clone());
        let others = SwitchParameters::names(|switch| switch.capabilities().flowlet_timeout().is_some());
        let pairs: Vec<String> = others.iter().map(|switch| format!("\"{host}+{switch}\"")).collect();
        let help = format!("use a flowlet switch: scheme = {}", pairs.join(" or "));
        return Err(ScenarioError::new(message).maybe_at(place).help(help));
    }
    Ok(())
}

/// Returns the section with the table of each congestion control in use: its own and those that workloads name.
pub(crate) fn table<'a>(transport: &TransportParameters, named: impl IntoIterator<Item = &'a str>) -> Table {
    let name = ("kind", Raw::Text(transport.name().into()));
    let mut transport = transport.clone();
    let mut table = document::table([name], &*transport.parameters_mut());
    let own = transport.control().name;
    for control in std::iter::once(own).chain(named) {
        if let Some(parameters) = transport.control_parameters_mut(control.trim()) {
            table.insert(control.trim().into(), document::table([], &*parameters).into());
        }
    }
    table
}
