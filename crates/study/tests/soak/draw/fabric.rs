//! Transport, fabric, load balancer and their parameters.

use crate::{
    dice::{Dice, quoted},
    draft::{Draft, Section},
};
use anabranch_lb::registry::{ALIASES, HOST_SCHEMES, HostParameters, SWITCH_SCHEMES, SwitchParameters, resolve};
use anabranch_settings::Parameters;
use anabranch_transport::TransportParameters;

const CLASSES: [&str; 3] = ["a", "b", "c"];

/// A transport and a fabric that it can work on.
pub(super) fn draw(dice: &mut Dice, draft: &Draft) -> Draft {
    if dice.once_in(2) { uet(dice, draft) } else { roce(dice, draft) }
}

fn uet(dice: &mut Dice, draft: &Draft) -> Draft {
    let profile = dice.pick(&["uet-lossy", "uet-lossy", "uet-lossy", "spritz", "spritz", "roce-irn", "roce-lossless"]);
    let mut fabric = common(dice, Section::new("[fabric]").text("profile", profile));
    if profile.starts_with("roce") {
        fabric = shared(dice, fabric, profile == "roce-lossless", false);
    } else {
        if dice.once_in(3) {
            fabric = fabric.text("queue_limit", dice.pick(&["1MiB", "70000B", "0.5bdp", "2bdp", "20kB"]));
        }
        if dice.once_in(3) {
            fabric = fabric.raw("trimming", dice.once_in(2));
        }
        if dice.once_in(3) {
            fabric = fabric.text("trim", dice.pick(&["arrival", "coin"]));
        }
        if dice.once_in(4) {
            fabric = fabric.text("control_limit", dice.pick(&["200B", "1000B", "64B"]));
        }
    }
    let control = dice.pick(&["dctcp", "smartt", "nscc", "none"]);
    let mut transport = Section::new("[transport]").text("kind", "uet").text("congestion_control", control);
    if dice.once_in(3) {
        transport = transport.raw("ack_every", dice.one(&[1, 2, 3, 8, 16]));
    }
    if dice.once_in(4) {
        transport = transport.text("ack_ecn", dice.pick(&["own", "any"]));
    }
    if dice.once_in(4) {
        transport = transport.text("rto", dice.pick(&["3us", "20us", "100us"]));
    }
    if dice.once_in(3) {
        transport = transport.text("window", dice.pick(&["0.3bdp", "1bdp", "5bdp", "20000B", "1MiB"]));
    }
    draft.with(fabric).with(sized(dice, transport))
}

fn roce(dice: &mut Dice, draft: &Draft) -> Draft {
    let profile = dice.pick(&[
        "roce-irn",
        "roce-irn",
        "roce-lossless",
        "roce-lossless",
        "conweave-ns3-irn",
        "conweave-ns3-lossless",
    ]);
    let lossless = profile.ends_with("lossless");
    let fabric = common(dice, Section::new("[fabric]").text("profile", profile));
    let fabric = shared(dice, fabric, lossless, profile.starts_with("conweave"));
    let control = dice.pick(&["dcqcn", "swift", "tcp-like", "none"]);
    let recovery = if lossless { "go-back-n" } else { dice.pick(&["irn", "irn-extended", "go-back-n"]) };
    let mut transport =
        Section::new("[transport]").text("kind", "roce").text("congestion_control", control).text("recovery", recovery);
    if dice.once_in(3) {
        transport = transport.text("window", dice.pick(&["auto", "0.1bdp", "1bdp", "5000B", "1MiB"]));
    }
    if dice.once_in(4) {
        transport = transport.text("rto", dice.pick(&["100us", "1ms"]));
    }
    if dice.once_in(5) {
        transport = transport.text("rto_low", dice.pick(&["20us", "50us"]));
    }
    if dice.once_in(5) {
        transport = transport.raw("ooo_window", dice.one(&[1, 5, 100]));
    }
    if dice.once_in(8) {
        transport = transport.text("irn_rule", dice.pick(&["irn", "recorded"]));
    }
    draft.with(fabric).with(sized(dice, transport))
}

/// What every fabric has.
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
    if dice.once_in(4) {
        fabric = fabric.text("fct_kind", dice.pick(&["rx", "ack"]));
    }
    if dice.once_in(5) {
        fabric = fabric.text("ecn_mark_at", dice.pick(&["enqueue", "dequeue"]));
    }
    if dice.once_in(8) {
        fabric = fabric.raw("ecn", false);
    }
    if dice.once_in(5) {
        fabric = fabric.text("ecn_kmin", "0.05bdp").text("ecn_kmax", dice.pick(&["0.1bdp", "0.5bdp"]));
    }
    fabric
}

/// A buffer that ports share, with or without PFC; what may lose packets under PFC is refused but for the quirks.
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

/// A transport with packets of other sizes, now and then.
fn sized(dice: &mut Dice, transport: Section) -> Section {
    match dice.number(0, 5) {
        0 => transport.text("mtu", dice.pick(&["64B", "1500B", "9000B", "256B"])),
        1 => transport.text("mtu", "1000B").text("header", dice.pick(&["1B", "200B"])),
        _ => transport,
    }
}

/// Any pair that works together, aliases more often.
pub(super) fn name(dice: &mut Dice) -> String {
    if dice.once_in(2) {
        return dice.one(ALIASES).name.into();
    }
    loop {
        let pair = format!("{}+{}", dice.one(HOST_SCHEMES).name, dice.one(SWITCH_SCHEMES).name);
        if resolve(&pair).is_ok() {
            return pair;
        }
    }
}

/// The load balancer of the scenario.
pub(super) fn load_balancer(dice: &mut Dice, draft: &Draft) -> Draft {
    draft.with(Section::new("[load_balancer]").text("scheme", &name(dice)))
}

/// Other parameters than the defaults for the schemes or the congestion control in use.
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
    if dice.once_in(3) {
        let transport = draft.section("[transport]")?;
        let name = transport.get("congestion_control")?;
        let mut parameters = TransportParameters::named(transport.get("kind")?)?;
        let parameters: &dyn Parameters = parameters.control_parameters_mut(name)?;
        return Some((format!("[transport.{name}]"), dice.other_value(parameters)?));
    }
    let (host, switch): (HostParameters, SwitchParameters) =
        resolve(draft.section("[load_balancer]")?.get("scheme")?).ok()?;
    let (name, parameters) = match dice.once_in(2) {
        true => (host.name(), host.parameters()),
        false => (switch.name(), switch.parameters()),
    };
    Some((format!("[load_balancer.{name}]"), dice.other_value(parameters)?))
}
