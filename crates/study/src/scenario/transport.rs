//! `[transport]`: the kind, its parameters, and a table for each congestion control.

use crate::{document, error::ScenarioError, section::Section, tree::Tree};
use anabranch_fabric::TransportParameters;
use anabranch_lb::registry::HostParameters;
use anabranch_settings::{Auto, Parameters, Raw, SetError, Setting};
use anabranch_sim::LoadBalancer;
use anabranch_transport::{
    roce::{RateOnPathChange, RoceControl, RoceTransport},
    uet::UetTransport,
};
use anabranch_units::BytesOrBdp;
use toml::Table;

/// The kinds there are.
pub const TRANSPORT_KINDS: &[(&str, &str)] = &[
    (
        "uet",
        "Ultra-Ethernet-like: window-based, coalesced acknowledgements with a selective bitmap, selective retransmission, NACKs for trimmed packets.",
    ),
    (
        "roce",
        "RoCEv2: a queue pair per flow with its own pacing, an acknowledgement per packet, go-back-N or IRN, DCQCN.",
    ),
];

/// The congestion controls: transport, name and what they do.
pub const CONGESTION_CONTROLS: &[(&str, &str, &str)] = &[
    ("uet", "dctcp", "DCTCP as in MPRDMA, with QuickAdapt and FastIncrease."),
    ("uet", "smartt", "SMaRTT: moves the window by ECN and delay, with QuickAdapt and FastIncrease."),
    (
        "uet",
        "nscc",
        "Network-signal congestion control of Ultra Ethernet: a target queueing delay, ECN and QuickAdapt.",
    ),
    ("uet", "none", "A fixed window."),
    ("roce", "dcqcn", "DCQCN: a rate that falls with congestion notifications and recovers by timers."),
    ("roce", "swift", "Swift: a window moved by delay."),
    (
        "roce",
        "tcp-like",
        "A TCP-like sender: slow start, DCTCP's rule, bursts of segmentation offload, delayed acknowledgements.",
    ),
    ("roce", "none", "Line rate."),
];

/// The parameters of a congestion control of this transport, where it has any.
pub(crate) fn congestion_control<'a>(
    transport: &'a mut TransportParameters,
    name: &str,
) -> Option<&'a mut dyn Parameters> {
    match (transport, name) {
        (TransportParameters::Uet(t), "dctcp") => Some(&mut t.dctcp),
        (TransportParameters::Uet(t), "smartt") => Some(&mut t.smartt),
        (TransportParameters::Uet(t), "nscc") => Some(&mut t.nscc),
        (TransportParameters::Roce(t), "dcqcn") => Some(&mut t.dcqcn),
        (TransportParameters::Roce(t), "swift") => Some(&mut t.swift),
        (TransportParameters::Roce(t), "tcp-like") => Some(&mut t.tcp_like),
        _ => None,
    }
}

/// The name of a transport's kind.
pub(crate) fn kind(transport: &TransportParameters) -> &'static str {
    match transport {
        TransportParameters::Uet(_) => "uet",
        TransportParameters::Roce(_) => "roce",
    }
}

/// The transport of this kind with its defaults.
pub(crate) fn named(kind: &str) -> TransportParameters {
    match kind {
        "roce" => TransportParameters::Roce(RoceTransport::default()),
        _ => TransportParameters::Uet(UetTransport::default()),
    }
}

/// The parameters of the transport itself.
pub(crate) fn main_parameters(transport: &mut TransportParameters) -> &mut dyn Parameters {
    match transport {
        TransportParameters::Uet(t) => &mut t.uet,
        TransportParameters::Roce(t) => &mut t.roce,
    }
}

/// The kind that the section asks for, if it does.
pub(crate) fn wanted(section: &mut Option<Section<'_>>) -> Result<Option<&'static str>, ScenarioError> {
    let kinds: Vec<&'static str> = TRANSPORT_KINDS.iter().map(|k| k.0).collect();
    match section {
        Some(section) => section.word("kind", &kinds),
        None => Ok(None),
    }
}

/// Reads the section over the defaults in `transport`.
pub(crate) fn read(
    section: Option<Section<'_>>,
    mut transport: TransportParameters,
    tree: &Tree,
) -> Result<TransportParameters, ScenarioError> {
    let Some(mut section) = section else { return Ok(transport) };
    let mut taken = vec!["kind"];
    for (_, name, _) in CONGESTION_CONTROLS {
        let Some(parameters) = congestion_control(&mut transport, name) else { continue };
        taken.push(name);
        if let Some(node) = section.take(name) {
            Section::of(node, format!("[transport.{name}]"))?.fill(parameters, &[])?;
        }
    }
    section.fill(main_parameters(&mut transport), &taken)?;
    let place = |key: &str| {
        let own = tree.find(&format!("transport.{key}")).map(|node| node.place.clone());
        own.or_else(|| tree.find("transport").map(|node| node.key.clone()))
    };
    let checked = match &transport {
        TransportParameters::Uet(t) => t.check(),
        TransportParameters::Roce(t) => t.check(),
    };
    checked.map_err(|error| {
        let key = match &error {
            SetError::UnknownKey { key, .. } | SetError::WrongValue { key, .. } => key.clone(),
        };
        ScenarioError::new(format!("[transport]: {error}")).maybe_at(place(&key))
    })?;
    Ok(transport)
}

/// Whether a full packet fits into the window once the BDP is known; called when the topology stands.
pub(crate) fn check_with_bdp(transport: &TransportParameters, bdp: u64, tree: &Tree) -> Result<(), ScenarioError> {
    let (window, packet) = match transport {
        TransportParameters::Uet(t) => (t.uet.window, t.uet.mtu.0 + t.uet.header.0),
        TransportParameters::Roce(t) => match t.roce.window {
            Auto::Auto => return Ok(()),
            // Of RoCE's window payload alone counts.
            Auto::Value(window) => (window, t.roce.mtu.0),
        },
    };
    if window.bytes(bdp) >= packet {
        return Ok(());
    }
    let found = match window {
        BytesOrBdp::Bytes(_) => window.to_string(),
        BytesOrBdp::Bdp(_) => format!("{window}, which is {}B with a BDP of {bdp}B", window.bytes(bdp)),
    };
    let message = format!("[transport]: `window`: found {found}, expected room for a full packet: {packet}B or more");
    let place = tree.find("transport.window").map(|node| node.place.clone());
    Err(ScenarioError::new(message).maybe_at(place).help(format!("the smallest window that works is \"{packet}B\"")))
}

/// Whether the load balancers in use go with the congestion control: ConWeave holds packets back in the network, which a
/// round trip cannot tell from congestion (specification 4.4); and a rate that starts afresh with every packet is none.
pub(crate) fn check_balancers(
    transport: &TransportParameters,
    used: &[LoadBalancer],
    tree: &Tree,
) -> Result<(), ScenarioError> {
    let place = |key: &str| tree.find(&format!("transport.{key}")).map(|node| node.place.clone());
    let TransportParameters::Roce(roce) = transport else { return Ok(()) };
    let conweave = used.iter().any(|balancer| balancer.switch.name() == "conweave");
    if conweave && roce.roce.congestion_control == RoceControl::Swift {
        let message = "load balancer `conweave` stands beside transport.congestion_control = \"swift\", which reads round \
                       trips that ConWeave's reordering queues distort";
        return Err(ScenarioError::new(message).help("use congestion_control = \"dcqcn\", or another load balancer"));
    }
    let sprayer = used.iter().find(|balancer| !balancer.host.capabilities().keeps_path());
    if let (RateOnPathChange::Fresh, Some(sprayer)) = (roce.roce.rate_on_path_change, sprayer) {
        let message = format!(
            "[transport]: `rate_on_path_change`: \"fresh\" stands beside the host scheme `{}`, whose packets take ever new \
             paths: none would be paced",
            sprayer.host.name()
        );
        let movers = HostParameters::names(|host| host.capabilities().keeps_path());
        let help = format!("use \"keep\", or a scheme that moves flows: {}", movers.join(", "));
        return Err(ScenarioError::new(message).maybe_at(place("rate_on_path_change")).help(help));
    }
    Ok(())
}

/// The section with every default filled in.
pub(crate) fn table(transport: &TransportParameters) -> Table {
    let name = ("kind", Raw::Text(kind(transport).into()));
    let mut transport = transport.clone();
    let mut table = document::table([name], &*main_parameters(&mut transport));
    let in_use = match &transport {
        TransportParameters::Uet(t) => t.uet.congestion_control.write(),
        TransportParameters::Roce(t) => t.roce.congestion_control.write(),
    };
    // Those of a congestion control that is not in use decide nothing.
    if let Raw::Text(name) = in_use
        && let Some(parameters) = congestion_control(&mut transport, &name)
    {
        table.insert(name, document::table([], &*parameters).into());
    }
    table
}
