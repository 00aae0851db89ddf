//! `[fabric]`: a profile's defaults, single keys over them, and checks of their combination.

use crate::document;
use crate::{ScenarioError, Section, Tree};
use anabranch_backend::{CsigSignal, FabricParameters, MarkingParameters, Scheduling, TRIMMED_SIZE};
use anabranch_settings::{About, ControlOr, Each, Parameters, Raw, Setting};
use anabranch_topology::Affects;
use anabranch_transport::TransportParameters;
use anabranch_transport::{roce::RoceTransport, uet::UetTransport};
use anabranch_units::BytesOrBdp;
use toml::Table;

/// A named set of defaults.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub name: &'static str,
    pub meaning: &'static str,
    /// Its defaults of `[fabric]`.
    pub fabric: fn() -> FabricParameters,
    /// Its defaults of `[transport]`.
    pub transport: fn() -> TransportParameters,
    /// Packets that a fault harms by default.
    pub faults: Affects,
}

/// All profiles; the first is the default.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "uet-lossy",
        meaning: "A lossy Ultra Ethernet fabric as in PRIME's and Spritz' studies: packets are marked at dequeue and trimmed beyond one BDP.",
        fabric: FabricParameters::default,
        transport: || TransportParameters::Uet(UetTransport::default()),
        faults: Affects::All,
    },
    Profile {
        name: "spritz",
        meaning: "The fabric and the transport of Spritz' study: as uet-lossy, with DCTCP (QuickAdapt, FastIncrease), an ACK per packet, a timeout of 100 us, completion by the sender's clock; failed links lose data only.",
        fabric: FabricParameters::spritz,
        transport: || TransportParameters::Uet(UetTransport::spritz()),
        faults: Affects::Data,
    },
    Profile {
        name: "mrc",
        meaning: "A plane as MRC 1.0 asks: trimmed beyond one BDP and 1.5 at the last hop, where nothing is marked, trimmed headers with control; an ACK per mark, at most 1,024 unacknowledged PSNs, doubling timeouts, NSCC with a moving base round trip.",
        fabric: FabricParameters::mrc,
        transport: || TransportParameters::Uet(UetTransport::mrc()),
        faults: Affects::All,
    },
    Profile {
        name: "uet-1.0.3",
        meaning: "The thresholds, timeouts and NSCC of Ultra Ethernet 1.0.3: as mrc, with marks at the last hop, a class of trimmed headers, timeouts of rto times 2^retry, any number of unacknowledged PSNs.",
        fabric: FabricParameters::uec,
        transport: || TransportParameters::Uet(UetTransport::uec()),
        faults: Affects::All,
    },
    Profile {
        name: "roce-irn",
        meaning: "A lossy RoCEv2 fabric: switches share one buffer and drop beyond a dynamic threshold, hosts recover by IRN.",
        fabric: || FabricParameters::roce(false),
        transport: || TransportParameters::Roce(RoceTransport::irn()),
        faults: Affects::All,
    },
    Profile {
        name: "roce-lossless",
        meaning: "A lossless RoCEv2 fabric: PFC pauses before the shared buffer overflows, hosts go back N.",
        fabric: || FabricParameters::roce(true),
        transport: || TransportParameters::Roce(RoceTransport::lossless()),
        faults: Affects::All,
    },
    Profile {
        name: "conweave-ns3-irn",
        meaning: "The model behind the recorded ConWeave runs, lossy with IRN, peculiarities included.",
        fabric: || FabricParameters::conweave(false),
        transport: || TransportParameters::Roce(RoceTransport::conweave(false)),
        faults: Affects::All,
    },
    Profile {
        name: "conweave-ns3-lossless",
        meaning: "The model behind the recorded ConWeave runs with PFC and go-back-N, peculiarities included.",
        fabric: || FabricParameters::conweave(true),
        transport: || TransportParameters::Roce(RoceTransport::conweave(true)),
        faults: Affects::All,
    },
];

/// Maximum number of data classes of a port, the number of priorities of Ethernet.
pub const MAX_CLASSES: usize = 8;

/// The profile, the parameters, and those of the marking rules.
pub(crate) type Fabric = (&'static Profile, FabricParameters, Each<MarkingParameters>);

/// Reads the section: the profile's name, the parameters, and a table for each marking rule. Without a profile the kind of
/// transport decides.
pub(crate) fn read(section: Option<Section<'_>>, transport: Option<&str>) -> Result<Fabric, ScenarioError> {
    let names: Vec<&'static str> = PROFILES.iter().map(|p| p.name).collect();
    let fits = |profile: &&Profile| transport.is_none_or(|kind| (profile.transport)().about().name == kind);
    let default = PROFILES.iter().find(fits).map_or(names[0], |profile| profile.name);
    let mut section = section.unwrap_or_else(|| Section::absent("[fabric]"));
    let name = section.word("profile", &names)?.unwrap_or(default);
    let profile = PROFILES.iter().find(|p| p.name == name).unwrap_or(&PROFILES[0]);
    let mut fabric = (profile.fabric)();
    let trimming = section.peek("trimming").is_some();
    let (mut marking, mut taken) = (Each::<MarkingParameters>::default(), vec!["profile"]);
    for About { name, .. } in rules_with_tables() {
        taken.push(name);
        if let (Some(node), Some(parameters)) = (section.take(name), marking.parameters_mut(name)) {
            Section::of(node, format!("[fabric.{name}]"))?.fill(parameters, &[])?;
        }
    }
    // One value for all replaces the list of the profile.
    let lists = [&mut fabric.queue_limit_by_tier, &mut fabric.ecn_kmin_by_tier, &mut fabric.ecn_kmax_by_tier];
    for (key, list) in ["queue_limit", "ecn_kmin", "ecn_kmax"].into_iter().zip(lists) {
        if section.peek(key).is_some() {
            list.clear();
        }
    }
    section.fill(&mut fabric, &taken)?;
    // A switch with a shared buffer does not trim, unless the file contradicts itself.
    fabric.trimming &= trimming || fabric.shared_buffer.0 == 0;
    Ok((profile, fabric, marking))
}

/// Returns the marking rules that have keys of their own.
pub(crate) fn rules_with_tables() -> impl Iterator<Item = &'static About> {
    let has_keys =
        |about: &&About| MarkingParameters::named(about.name).is_ok_and(|rule| !rule.parameters().entries().is_empty());
    MarkingParameters::ALL.iter().filter(has_keys)
}

/// Returns the section, with the table of the marking rule in use.
pub(crate) fn table(profile: &Profile, fabric: &FabricParameters, marking: &Each<MarkingParameters>) -> Table {
    let mut table = document::table([("profile", Raw::Text(profile.name.into()))], fabric);
    let rule = marking.chosen(&fabric.marking);
    if rules_with_tables().any(|about| about.name == rule.name()) {
        table.insert(rule.name().into(), document::table([], rule.parameters()).into());
    }
    table
}

pub(crate) fn check(
    fabric: &FabricParameters,
    transport: &TransportParameters,
    tree: &Tree,
) -> Result<(), ScenarioError> {
    let wrong = |key: &str, message: String| {
        ScenarioError::new(format!("[fabric]: `{key}`: {message}")).maybe_at(tree.place_in("fabric", Some(key)))
    };
    let packet = transport.mtu() + transport.header();
    let trimmed: Vec<_> = fabric.trimmed_limit.value().into_iter().collect();
    if above(fabric.ecn_kmin, fabric.ecn_kmax) {
        let (kmin, kmax) = (fabric.ecn_kmin, fabric.ecn_kmax);
        let key = if tree.find("fabric.ecn_kmin").is_some() { "ecn_kmin" } else { "ecn_kmax" };
        return Err(wrong(key, format!("ecn_kmin ({kmin}) is above ecn_kmax ({kmax})"))
            .help("marking grows from ecn_kmin to ecn_kmax: give an ecn_kmin that is at most ecn_kmax"));
    }
    for (key, limit) in [("queue_limit", fabric.queue_limit), ("control_limit", fabric.control_limit)] {
        let (least, what) =
            if key == "queue_limit" { (packet, "full packet") } else { (transport.ack_size(), "acknowledgement") };
        if matches!(limit, BytesOrBdp::Bytes(bytes) if bytes < least) || limit == BytesOrBdp::Bdp(0) {
            return Err(wrong(key, format!("found {limit}, expected at least one {what} ({least}B)")));
        }
    }
    for (key, list) in [("queue_limit_by_tier", &fabric.queue_limit_by_tier), ("trimmed_limit", &trimmed)] {
        let least = if key == "trimmed_limit" { u64::from(TRIMMED_SIZE) } else { packet };
        let short = |limit: &&BytesOrBdp| {
            **limit == BytesOrBdp::Bdp(0) || matches!(limit, BytesOrBdp::Bytes(bytes) if *bytes < least)
        };
        if let Some(limit) = list.iter().find(short) {
            return Err(wrong(key, format!("found {limit}, expected at least {least}B")));
        }
    }
    check_transport(fabric, transport, &wrong)?;
    check_classes(fabric, &wrong)
}

fn check_transport(
    fabric: &FabricParameters,
    transport: &TransportParameters,
    wrong: &dyn Fn(&str, String) -> ScenarioError,
) -> Result<(), ScenarioError> {
    if fabric.pfc && fabric.shared_buffer.0 == 0 {
        let message = "PFC watches a shared buffer, and shared_buffer is 0B".to_string();
        return Err(wrong("pfc", message).help("give a shared_buffer, or the profile roce-lossless"));
    }
    if fabric.trimming && fabric.shared_buffer.0 > 0 {
        let message = "a switch with a shared buffer drops or pauses, it does not trim".to_string();
        return Err(wrong("trimming", message).help("leave out `trimming`, or give shared_buffer = \"0B\""));
    }
    if fabric.trimming && !transport.supports_trimming() {
        let message = format!("receivers of `{}` do not understand trimmed packets", transport.about().name);
        return Err(wrong("trimming", message).help("use the profile roce-irn or roce-lossless, or trimming = false"));
    }
    if let Some((parameter, help)) = transport.pfc_problem().filter(|_| fabric.pfc) {
        return Err(wrong("pfc", format!("PFC conflicts with transport.{parameter}")).help(help));
    }
    Ok(())
}

fn check_classes(
    fabric: &FabricParameters,
    wrong: &dyn Fn(&str, String) -> ScenarioError,
) -> Result<(), ScenarioError> {
    let classes = &fabric.classes;
    if classes.is_empty() || classes.len() > MAX_CLASSES {
        return Err(wrong("classes", format!("found {} names, expected from 1 to {MAX_CLASSES}", classes.len())));
    }
    if let Some(name) = classes.iter().enumerate().find(|(i, c)| classes[..*i].contains(c)).map(|(_, c)| c) {
        return Err(wrong("classes", format!("`{name}` is given twice; each class needs a different name")));
    }
    if let Some(message) = classes.iter().find_map(|class| anabranch_input::wrong_name(class)) {
        return Err(wrong("classes", message));
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
            "found a weight of 0, expected 1 or more; a class with weight 0 never sends".into(),
        ));
    }
    Ok(())
}

pub(crate) fn warnings(
    profile: &Profile,
    fabric: &FabricParameters,
    marking: &Each<MarkingParameters>,
) -> impl Iterator<Item = String> {
    let used = fabric.marking.about();
    let (defaults, entries) = ((profile.fabric)().entries(), fabric.entries());
    let changed = entries.iter().filter(|entry| !defaults.contains(entry)).map(|(key, _)| *key);
    let read = |rule: &MarkingParameters, key: &str| rule.capabilities().fabric_keys().contains(&key);
    let others = || marking.iter().zip(MarkingParameters::each()).filter(|(rule, _)| rule.about() != used);
    let tables = others().filter(|(rule, default)| *rule != default).map(|(rule, _)| rule.name());
    let unread = changed.filter(|key| others().any(|(rule, _)| read(rule, key))).chain(tables);
    let rules: Vec<_> =
        unread.map(|key| format!("[fabric]: `{key}` has no effect with marking = \"{}\"", used.name)).collect();
    let weights = (fabric.scheduling == Scheduling::Strict && !fabric.class_weights.is_empty()).then(|| {
        format!(
            "[fabric]: `class_weights` has no effect with scheduling = {}; write scheduling = \"wrr\" to use it",
            fabric.scheduling.write()
        )
    });
    let given = ![ControlOr::Control, FabricParameters::default().trimmed_class].contains(&fabric.trimmed_class);
    let class = (given && !fabric.trimming)
        .then(|| "[fabric]: `trimmed_class` has no effect: these switches trim nothing".to_string());
    let has_class = fabric.trimming && fabric.trimmed_class != ControlOr::Control;
    let limit = (fabric.trimmed_limit != (profile.fabric)().trimmed_limit && !has_class)
        .then(|| "[fabric]: `trimmed_limit` has no effect: trimmed headers have no class of their own".to_string());
    let defaults = (profile.fabric)();
    let listed = [
        ("queue_limit", fabric.queue_limit != defaults.queue_limit, &fabric.queue_limit_by_tier),
        ("ecn_kmin", fabric.ecn_kmin != defaults.ecn_kmin, &fabric.ecn_kmin_by_tier),
        ("ecn_kmax", fabric.ecn_kmax != defaults.ecn_kmax, &fabric.ecn_kmax_by_tier),
    ];
    let listed = listed.into_iter().filter(|(_, is_given, list)| *is_given && !list.is_empty());
    let listed: Vec<_> =
        listed.map(|(key, ..)| format!("[fabric]: `{key}` has no effect with {key}_by_tier")).collect();
    weights.into_iter().chain(class).chain(limit).chain(listed).chain(rules)
}

/// Warns of signals that no scheme reads, or that have no window.
pub(crate) fn unread(fabric: &FabricParameters, reads: bool) -> Option<String> {
    let defaults = FabricParameters::default();
    if fabric.csig != CsigSignal::Off && !reads {
        return Some(
            "[fabric]: `csig` has no effect: no load balancer reads it; load_balancer.prime.signal = \"csig\" does"
                .into(),
        );
    }
    let windowless = fabric.csig != CsigSignal::Utilisation && fabric.csig_window != defaults.csig_window;
    windowless.then(|| "[fabric]: `csig_window` has no effect without csig = \"utilisation\"".into())
}

/// Returns `true` if `a` is certainly above `b`: both in bytes or both in BDP.
fn above(a: BytesOrBdp, b: BytesOrBdp) -> bool {
    match (a, b) {
        (BytesOrBdp::Bytes(a), BytesOrBdp::Bytes(b)) | (BytesOrBdp::Bdp(a), BytesOrBdp::Bdp(b)) => a > b,
        _ => false,
    }
}

/// Checks that a fabric with PFC loses nothing on this topology, for packets of `packet` bytes.
pub(crate) fn check_lossless(
    fabric: &FabricParameters,
    topology: &anabranch_topology::Topology,
    packet: u64,
    tree: &Tree,
) -> Result<(), ScenarioError> {
    match anabranch_fabric::lossless_problem(topology, fabric, packet) {
        Some((key, message, help)) => Err(ScenarioError::new(format!("[fabric]: `{key}`: {message}"))
            .maybe_at(tree.place(&format!("fabric.{key}")))
            .help(help)),
        None => Ok(()),
    }
}

/// Checks that the thresholds of every tier rise, given the BDP of the built topology.
pub(crate) fn check_with_bdp(fabric: &FabricParameters, bdp: u64, tree: &Tree) -> Result<(), ScenarioError> {
    let wrong = |other: &str, message: String| {
        let keys = ["ecn_kmin", other].map(|key| [format!("{key}_by_tier"), key.to_string()]);
        let place = keys.as_flattened().iter().find_map(|key| tree.place(&format!("fabric.{key}")));
        ScenarioError::new(format!("[fabric]: {message} with a BDP of {bdp}B")).maybe_at(place)
    };
    let reads_kmin = |rule: MarkingParameters| rule.capabilities().fabric_keys().contains(&"ecn_kmin");
    let reads_kmin = MarkingParameters::named(fabric.marking.about().name).is_ok_and(reads_kmin);
    for tier in 0..fabric.tiers() {
        let of = fabric.at_tier(tier);
        let [kmin, kmax, limit] = [of.ecn_kmin, of.ecn_kmax, of.queue_limit].map(|size| size.bytes(bdp));
        let tier = match (fabric.tiers(), tier) {
            (1, _) => String::new(),
            (_, 0) => " of ports to hosts".to_string(),
            (_, tier) => format!(" of ports of tier {tier}"),
        };
        if kmin > kmax {
            return Err(wrong("ecn_kmax", format!("ecn_kmin{tier} ({kmin}B) is above ecn_kmax ({kmax}B)")));
        }
        // A queue never exceeds its limit: marking would be off without a word.
        let has_lists = !(fabric.queue_limit_by_tier.is_empty() && fabric.ecn_kmin_by_tier.is_empty());
        if has_lists && reads_kmin && of.ecn && fabric.shared_buffer.0 == 0 && kmin >= limit {
            let message =
                format!("ecn_kmin{tier} ({kmin}B) is not below its queue_limit ({limit}B): nothing is ever marked");
            return Err(wrong("queue_limit", message).help("give a lower ecn_kmin_by_tier, or false in ecn_by_tier"));
        }
    }
    Ok(())
}
