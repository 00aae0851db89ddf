//! `[fabric]`: a profile's defaults, single keys over them, and whether they fit together.

use crate::{error::ScenarioError, section::Section, tree::Tree};
use anabranch_fabric::{FabricParameters, Scheduling};
use anabranch_settings::Setting;
use anabranch_transport::uet::UetParameters;
use anabranch_units::BytesOrBdp;

/// A named set of defaults.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// What it stands for.
    pub meaning: &'static str,
    /// Its defaults.
    pub fabric: fn() -> FabricParameters,
}

/// The profiles there are; the first is the default.
pub const PROFILES: &[Profile] = &[Profile {
    name: "uet-lossy",
    meaning: "A lossy Ultra Ethernet fabric as in PRIME's and Spritz' studies: packets are marked at dequeue and trimmed beyond one BDP.",
    fabric: FabricParameters::default,
}];

/// The most data classes a port can have, as many as Ethernet has priorities.
pub const MOST_CLASSES: usize = 8;

/// Reads the section: the profile's name and the parameters.
pub(crate) fn read(section: Option<Section<'_>>) -> Result<(&'static Profile, FabricParameters), ScenarioError> {
    let Some(mut section) = section else { return Ok((&PROFILES[0], (PROFILES[0].fabric)())) };
    let names: Vec<&'static str> = PROFILES.iter().map(|p| p.name).collect();
    let name = section.word("profile", &names)?.unwrap_or(names[0]);
    let profile = PROFILES.iter().find(|p| p.name == name).unwrap_or(&PROFILES[0]);
    let mut fabric = (profile.fabric)();
    section.fill(&mut fabric, &["profile"])?;
    Ok((profile, fabric))
}

/// Whether the values fit together and to the packets of `transport`.
pub(crate) fn check(fabric: &FabricParameters, transport: &UetParameters, tree: &Tree) -> Result<(), ScenarioError> {
    let wrong = |key: &str, message: String| {
        ScenarioError::new(format!("[fabric]: `{key}`: {message}"))
            .maybe_at(tree.find(&format!("fabric.{key}")).map(|node| node.place.clone()))
    };
    let packet = transport.mtu.0 + transport.header.0;
    if above(fabric.ecn_kmin, fabric.ecn_kmax) {
        let (kmin, kmax) = (fabric.ecn_kmin, fabric.ecn_kmax);
        let key = if tree.find("fabric.ecn_kmin").is_some() { "ecn_kmin" } else { "ecn_kmax" };
        return Err(wrong(key, format!("ecn_kmin ({kmin}) is above ecn_kmax ({kmax})"))
            .help("marking grows from ecn_kmin to ecn_kmax: give an ecn_kmin that is at most ecn_kmax"));
    }
    if !(0.0..=1.0).contains(&fabric.ecn_pmax) {
        return Err(wrong("ecn_pmax", format!("found {}, expected a probability from 0 to 1", fabric.ecn_pmax)));
    }
    for (key, limit) in [("queue_limit", fabric.queue_limit), ("control_limit", fabric.control_limit)] {
        let (least, what) =
            if key == "queue_limit" { (packet, "full packet") } else { (transport.ack_size.0, "acknowledgement") };
        if matches!(limit, BytesOrBdp::Bytes(bytes) if bytes < least) || limit == BytesOrBdp::Bdp(0) {
            return Err(wrong(key, format!("found {limit}, expected room for at least one {what} ({least}B)")));
        }
    }
    if fabric.trimmed_size.0 == 0 || fabric.trimmed_size.0 > packet {
        let found = fabric.trimmed_size;
        return Err(wrong("trimmed_size", format!("found {found}, expected from 1B to a full packet ({packet}B)")));
    }
    check_classes(fabric, &wrong)
}

fn check_classes(
    fabric: &FabricParameters,
    wrong: &dyn Fn(&str, String) -> ScenarioError,
) -> Result<(), ScenarioError> {
    let classes = &fabric.classes;
    if classes.is_empty() || classes.len() > MOST_CLASSES {
        return Err(wrong("classes", format!("found {} names, expected from 1 to {MOST_CLASSES}", classes.len())));
    }
    if let Some(name) = classes.iter().enumerate().find(|(i, c)| classes[..*i].contains(c)).map(|(_, c)| c) {
        return Err(wrong("classes", format!("`{name}` stands twice; every class needs a name of its own")));
    }
    if classes.iter().any(|c| c.trim().is_empty()) {
        return Err(wrong("classes", "an empty name; every class needs a name".into()));
    }
    let weights = &fabric.class_weights;
    if !weights.is_empty() && weights.len() != classes.len() {
        let (found, needed) = (weights.len(), classes.len());
        return Err(wrong(
            "class_weights",
            format!("found {found} weights for {needed} classes ({})", classes.join(", ")),
        )
        .help("give one weight per class, in the order of `classes`"));
    }
    if weights.contains(&0) {
        return Err(wrong(
            "class_weights",
            "found a weight of 0, expected 1 or more: the class would never send".into(),
        ));
    }
    Ok(())
}

/// Things to check before trusting a result.
pub(crate) fn warnings(fabric: &FabricParameters) -> Option<String> {
    (fabric.scheduling == Scheduling::Strict && !fabric.class_weights.is_empty()).then(|| {
        format!(
            "[fabric]: `class_weights` has no effect with scheduling = {}; write scheduling = \"wrr\" to use it",
            fabric.scheduling.write()
        )
    })
}

/// Whether `a` is surely above `b`: both in bytes or both in BDP.
fn above(a: BytesOrBdp, b: BytesOrBdp) -> bool {
    match (a, b) {
        (BytesOrBdp::Bytes(a), BytesOrBdp::Bytes(b)) | (BytesOrBdp::Bdp(a), BytesOrBdp::Bdp(b)) => a > b,
        _ => false,
    }
}

/// Whether the thresholds fit together once the BDP is known; called when the topology stands.
pub(crate) fn check_with_bdp(
    fabric: &FabricParameters,
    bdp: u64,
    packet: u64,
    tree: &Tree,
) -> Result<(), ScenarioError> {
    let at = |key: &str| tree.find(&format!("fabric.{key}")).map(|node| node.place.clone());
    let (kmin, kmax) = (fabric.ecn_kmin.bytes(bdp), fabric.ecn_kmax.bytes(bdp));
    if kmin > kmax {
        let message = format!("[fabric]: ecn_kmin ({kmin}B) is above ecn_kmax ({kmax}B) with a BDP of {bdp}B");
        return Err(ScenarioError::new(message).maybe_at(at("ecn_kmin").or(at("ecn_kmax"))));
    }
    let limit = fabric.queue_limit.bytes(bdp);
    if limit < packet {
        let message =
            format!("[fabric]: `queue_limit` is {limit}B with a BDP of {bdp}B: no full packet ({packet}B) fits");
        return Err(ScenarioError::new(message).maybe_at(at("queue_limit")));
    }
    Ok(())
}
