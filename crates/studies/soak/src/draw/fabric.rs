//! Transport, fabric, load balancer and their parameters.

use super::unknown::unknown;
use crate::{Dice, Draft, Section, quoted};
use anabranch_backend::{FabricParameters, MarkingParameters};
use anabranch_lb::registry::{HostParameters, SwitchParameters, aliases, resolve};
use anabranch_scenario::{PROFILES, scenario::Profile};
use anabranch_settings::Parameters;
use anabranch_transport::TransportParameters;

const CLASSES: [&str; 3] = ["a", "b", "c"];

pub(super) fn draw(dice: &mut Dice, draft: &Draft) -> Draft {
    let profile = dice.one(PROFILES);
    let defaults = (profile.fabric)();
    // Mostly the default of the profile.
    let kind = if dice.once_in(4) { dice.one(&TransportParameters::each()) } else { (profile.transport)() };
    let control = dice.one(kind.controls().all()).name;
    let section = Section::new("[transport]").text("kind", kind.name()).text("congestion_control", control);
    let transport = match kind.name() {
        "uet" => uet(dice, section),
        "roce" => roce(dice, section, defaults.pfc),
        _ => unknown(dice, section, kind.parameters()),
    };
    let draft = draft.with(fabric(dice, profile, &defaults)).with(sized(dice, transport));
    match control == "nscc" && dice.once_in(5) {
        true => draft.with(Section::new("[transport.nscc]").raw("receiver_credit", true)),
        false => draft,
    }
}

fn fabric(dice: &mut Dice, profile: Profile, defaults: &FabricParameters) -> Section {
    let fabric = common(dice, Section::new("[fabric]").text("profile", profile.name));
    match defaults.shared_buffer.0 {
        0 => queues(dice, fabric),
        _ => shared(dice, fabric, defaults.pfc, defaults.recorded),
    }
}

fn queues(dice: &mut Dice, mut fabric: Section) -> Section {
    fabric = fabric.maybe(dice, 3, "queue_limit", &["1MiB", "70000B", "0.5bdp", "2bdp", "20kB"]);
    fabric = fabric.now_and_then(dice, 3, |dice, section| section.raw("trimming", dice.once_in(2)));
    if dice.once_in(4) {
        let list = dice.pick(&["[\"1.5bdp\", \"1bdp\"]", "[\"1bdp\", \"2bdp\", \"1.2bdp\"]"]);
        fabric =
            fabric.raw("queue_limit_by_tier", list).raw("ecn_by_tier", dice.pick(&["[false, true]", "[true, false]"]));
        fabric = fabric.raw("ecn_kmin_by_tier", "[\"0.1bdp\", \"0.05bdp\"]").raw("ecn_kmax_by_tier", "[\"0.6bdp\"]");
    }
    fabric = fabric.maybe(dice, 6, "trimmed_limit", &["1bdp", "200B", "4kB"]);
    fabric = fabric.now_and_then(dice, 4, |dice, section| section.raw("mark_last_hop_trims", dice.once_in(2)));
    fabric = fabric.maybe(dice, 3, "trim", &["arrival", "coin"]);
    fabric = fabric.maybe(dice, 4, "control_limit", &["200B", "1000B", "64B"]);
    match dice.one(&[0, 1, 2, 3]) {
        0 => fabric.text("trimmed_class", "control"),
        1 => fabric.raw("trimmed_class", dice.pick(&["0.001", "0.1", "0.5"])),
        _ => fabric,
    }
}

fn uet(dice: &mut Dice, mut transport: Section) -> Section {
    transport = transport.now_and_then(dice, 3, |dice, section| section.raw("ack_every", dice.one(&[1, 2, 3, 8, 16])));
    transport = transport.maybe(dice, 4, "ack_ecn", &["own", "any"]);
    transport = transport.maybe(dice, 4, "rto", &["3us", "20us", "100us"]);
    if dice.once_in(4) {
        transport = transport.text("rto_rule", "doubling").raw("rto_linear", dice.number(1, 7));
    }
    transport = transport.now_and_then(dice, 5, |dice, section| section.raw("max_psn_range", dice.one(&[128, 1024])));
    transport = transport.maybe(dice, 5, "last_hop_trims", &["blame", "ignore"]);
    transport = transport.maybe(dice, 3, "window", &["0.3bdp", "1bdp", "5bdp", "20000B", "1MiB"]);
    transport
}

fn roce(dice: &mut Dice, transport: Section, lossless: bool) -> Section {
    let recovery = if lossless { "go-back-n" } else { dice.pick(&["irn", "irn-extended", "go-back-n"]) };
    let mut transport = transport.text("recovery", recovery);
    transport = transport.maybe(dice, 3, "window", &["auto", "0.1bdp", "1bdp", "5000B", "1MiB"]);
    transport = transport.maybe(dice, 4, "rto", &["100us", "1ms"]);
    transport = transport.maybe(dice, 5, "rto_low", &["20us", "50us"]);
    transport = transport.now_and_then(dice, 5, |dice, section| section.raw("ooo_window", dice.one(&[1, 5, 100])));
    // With space for a window of the largest packets.
    transport = transport.maybe(dice, 6, "nic_memory", &["1MB", "10MB"]);
    transport = transport.maybe(dice, 8, "reorder_memory", &["950kB", "2MB"]);
    transport = transport.now_and_then(dice, 8, |dice, section| section.raw("recorded", dice.once_in(2)));
    transport
}

fn common(dice: &mut Dice, mut fabric: Section) -> Section {
    if dice.once_in(3) {
        let classes = dice.number(2, 3) as usize;
        let names: Vec<String> = CLASSES[..classes].iter().map(quoted).collect();
        let scheduling = dice.pick(&["strict", "wrr"]);
        fabric = fabric.raw("classes", format!("[{}]", names.join(", "))).text("scheduling", scheduling);
        if scheduling == "wrr" && dice.once_in(2) {
            let weights: Vec<String> = (0..classes).map(|_| dice.number(1, 90).to_string()).collect();
            fabric = fabric.raw("class_weights", format!("[{}]", weights.join(", ")));
        }
    }
    fabric = fabric.maybe(dice, 4, "fct_kind", &["rx", "ack"]);
    for (key, word, times) in [
        ("slowed_limits", "scale", 4),
        ("reply_paths", "scheme", 3),
        ("ideal_fct", "transmission", 8),
        ("nic_ports", "by-ev", 3),
    ] {
        fabric = fabric.now_and_then(dice, times, |_, section| section.text(key, word));
    }
    fabric = fabric.maybe(dice, 5, "ecn_mark_at", &["enqueue", "dequeue"]);
    fabric = fabric.now_and_then(dice, 8, |_, section| section.raw("ecn", false));
    if dice.once_in(5) {
        fabric = fabric.text("ecn_kmin", "0.05bdp").text("ecn_kmax", dice.pick(&["0.1bdp", "0.5bdp"]));
    }
    if dice.once_in(6) {
        fabric = fabric.text("marking", dice.one(MarkingParameters::ALL).name);
    }
    fabric
}

/// A shared buffer, with or without PFC. Values that may lose packets under PFC are refused except with quirks.
fn shared(dice: &mut Dice, mut fabric: Section, lossless: bool, quirks: bool) -> Section {
    if dice.once_in(3) {
        let sizes: &[&str] = if lossless { &["1MB", "2MB", "9MB"] } else { &["50kB", "200kB", "500kB", "1MB"] };
        fabric = fabric.text("shared_buffer", dice.pick(sizes));
    }
    if dice.once_in(4) {
        fabric = fabric.raw("buffer_alpha", dice.pick(&["0.1", "0.5", "8.0"]));
    }
    if lossless && dice.once_in(2) {
        fabric = fabric.raw("pfc_alpha", dice.pick(&["0.001", "0.01", "0.25", "4.0"]));
    }
    if lossless && dice.once_in(3) {
        let (drawn, safe) = (dice.pick(&["auto", "50kB", "5kB"]), "auto");
        fabric = fabric.text("pfc_headroom", if quirks { drawn } else { safe });
    }
    if lossless && dice.once_in(3) {
        let (drawn, safe) = (dice.pick(&["never", "10us", "100us"]), "never");
        fabric = fabric.text("pfc_pause", if quirks { drawn } else { safe });
    }
    fabric
}

/// Draws other packet sizes now and then.
fn sized(dice: &mut Dice, transport: Section) -> Section {
    match dice.number(0, 5) {
        0 => transport.text("mtu", dice.pick(&["64B", "1500B", "9000B", "256B"])),
        1 => transport.text("mtu", "1000B").text("header", dice.pick(&["1B", "200B"])),
        _ => transport,
    }
}

/// Draws any valid pair, aliases more often.
pub(super) fn name(dice: &mut Dice) -> String {
    if dice.once_in(2) {
        return dice.one(aliases()).name.into();
    }
    loop {
        let pair = format!("{}+{}", dice.one(HostParameters::all()).name, dice.one(SwitchParameters::all()).name);
        if resolve(&pair).is_ok() {
            return pair;
        }
    }
}

/// Draws the load balancer: one of `schemes`, or any.
pub(super) fn load_balancer(dice: &mut Dice, draft: &Draft, schemes: &[String]) -> Draft {
    let name = if schemes.is_empty() { name(dice) } else { dice.one(schemes) };
    draft.with(Section::new("[load_balancer]").text("scheme", &name))
}

/// Draws other values than the defaults of parameters.
pub(super) fn parameters(dice: &mut Dice, draft: &Draft) -> Draft {
    let mut draft = draft.clone();
    for _ in 0..dice.number(1, 3) {
        let Some((header, change)) = other_value(dice, &draft) else { continue };
        match draft.sections.iter_mut().find(|section| section.header == header) {
            Some(section) => *section = section.clone().raw(&change.0, change.1),
            None => draft = draft.with(Section::new(&header).raw(&change.0, change.1)),
        }
    }
    draft
}

fn other_value(dice: &mut Dice, draft: &Draft) -> Option<(String, (String, String))> {
    let transport = draft.section("[transport]");
    let kind = transport.and_then(|section| section.get("kind"));
    let part = dice.number(0, 7);
    match part {
        0 => {
            let name = draft.section("[fabric]").and_then(|section| section.get("profile"))?;
            let profile = PROFILES.iter().find(|profile| profile.name == name)?;
            Some(("[fabric]".into(), dice.other_value(&(profile.fabric)())?))
        }
        1 => {
            let transport = TransportParameters::named(kind?).ok()?;
            Some(("[transport]".into(), dice.other_value(transport.parameters())?))
        }
        2 | 3 => {
            let name = transport?.get("congestion_control")?;
            let mut transport = TransportParameters::named(kind?).ok()?;
            let parameters: &dyn Parameters = transport.control_parameters_mut(name)?;
            Some((format!("[transport.{name}]"), dice.other_value(parameters)?))
        }
        _ => {
            let scheme = draft.section("[load_balancer]")?.get("scheme")?;
            let (host, switch): (HostParameters, SwitchParameters) = resolve(scheme).ok()?;
            let (name, parameters) = match part {
                4 | 5 => (host.name(), host.parameters()),
                _ => (switch.name(), switch.parameters()),
            };
            Some((format!("[load_balancer.{name}]"), dice.other_value(parameters)?))
        }
    }
}
