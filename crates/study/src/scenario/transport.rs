//! `[transport]`: the kind, its parameters, and a table for each congestion control.

use crate::{error::ScenarioError, section::Section, toml_text, tree::Tree};
use anabranch_settings::{Parameters, Raw, SetError, Setting};
use anabranch_transport::uet::UetTransport;

/// The kinds there are.
pub const TRANSPORT_KINDS: &[(&str, &str)] = &[(
    "uet",
    "Ultra-Ethernet-like: window-based, coalesced acknowledgements with a selective bitmap, selective retransmission, NACKs for trimmed packets.",
)];

/// The congestion controls of `uet` that have parameters: name and what they do.
pub const CONGESTION_CONTROLS: &[(&str, &str)] = &[
    ("dctcp", "DCTCP as in MPRDMA, with QuickAdapt and FastIncrease."),
    ("smartt", "SMaRTT: moves the window by ECN and delay, with QuickAdapt and FastIncrease."),
    ("nscc", "Network-signal congestion control of Ultra Ethernet: a target queueing delay, ECN and QuickAdapt."),
    ("none", "A fixed window."),
];

/// The parameters of a congestion control.
pub(crate) fn congestion_control<'a>(transport: &'a mut UetTransport, name: &str) -> Option<&'a mut dyn Parameters> {
    match name {
        "dctcp" => Some(&mut transport.dctcp),
        "smartt" => Some(&mut transport.smartt),
        "nscc" => Some(&mut transport.nscc),
        _ => None,
    }
}

/// Reads the section.
pub(crate) fn read(section: Option<Section<'_>>, tree: &Tree) -> Result<UetTransport, ScenarioError> {
    let mut transport = UetTransport::default();
    let Some(mut section) = section else { return Ok(transport) };
    section.word("kind", &TRANSPORT_KINDS.iter().map(|k| k.0).collect::<Vec<_>>())?;
    for (name, _) in CONGESTION_CONTROLS {
        let Some(parameters) = congestion_control(&mut transport, name) else { continue };
        if let Some(node) = section.take(name) {
            Section::of(node, format!("[transport.{name}]"))?.fill(parameters, &[])?;
        }
    }
    section.fill(&mut transport.uet, &["kind", "dctcp", "smartt", "nscc"])?;
    let place = |key: &str| tree.find(&format!("transport.{key}")).map(|node| node.place.clone());
    transport.check().map_err(|error| {
        let key = match &error {
            SetError::UnknownKey { key, .. } | SetError::WrongValue { key, .. } => key.clone(),
        };
        ScenarioError::new(format!("[transport]: {error}")).maybe_at(place(&key))
    })?;
    Ok(transport)
}

/// The section with every default filled in.
pub(crate) fn print(out: &mut String, transport: &UetTransport) {
    out.push_str("\n[transport]\n");
    toml_text::line(out, "kind", &Raw::Text("uet".into()));
    toml_text::lines(out, &transport.uet);
    let sections: [(&str, &dyn Parameters); 3] =
        [("dctcp", &transport.dctcp), ("smartt", &transport.smartt), ("nscc", &transport.nscc)];
    let in_use = transport.uet.congestion_control.write();
    for (name, parameters) in sections {
        // Those of a congestion control that is not in use decide nothing.
        if in_use == Raw::Text(name.into()) {
            out.push_str(&format!("\n[transport.{name}]\n"));
            toml_text::lines(out, parameters);
        }
    }
}
