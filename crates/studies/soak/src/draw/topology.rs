//! Topologies.

use super::unknown::unknown;
use crate::{Dice, Draft, Section, restrictions::TopologyChoice};
use anabranch_topology::TopologyParameters;
use std::fmt::Write;

pub(super) const RATES: &[&str] = &[
    "400Gbps",
    "300Gbps",
    "100Gbps",
    "100Gbps",
    "25Gbps",
    "10Gbps",
    "7Gbps",
    "1Gbps",
    "123456789bps",
    "999999999999bps",
];
pub(super) const DELAYS: &[&str] = &["1us", "1us", "500ns", "25ns", "10us", "777ps", "1ps", "0us"];
const LATENCIES: &[&str] = &["0us", "100ns", "500ns", "1us"];

/// Draws a topology, of a kind if restricted; a given one is used as it is.
pub(super) fn draw(dice: &mut Dice, draft: &Draft, choice: &TopologyChoice) -> Draft {
    let kind = match choice {
        TopologyChoice::Any => dice.one(TopologyParameters::ALL).name,
        TopologyChoice::Kind(kind) => kind,
        TopologyChoice::Given { sections, files, .. } => {
            let mut draft = draft.clone();
            draft.sections.extend(sections.iter().cloned());
            draft.files.extend(files.clone());
            return draft;
        }
    };
    let section = Section::new("[topology]").text("kind", kind);
    let low_diameter = ["host", "local", "global"];
    match kind {
        "leaf-spine" => {
            let section = section
                .raw("leaves", dice.number(2, 5))
                .raw("spines", dice.number(1, 4))
                .raw("hosts_per_leaf", dice.number(1, 4))
                .raw("links_per_spine", dice.one(&[1, 1, 2, 3]));
            draft.with(tree_links(dice, section))
        }
        "fat-tree" => {
            let (tiers, radix) = dice.one(&[(2, 4), (2, 6), (2, 8), (3, 4), (3, 4), (3, 6)]);
            draft.with(tree_links(dice, section.raw("tiers", tiers).raw("radix", radix)))
        }
        "clos" => {
            let spines = dice.number(1, 3);
            let section = section
                .raw("pods", dice.number(1, 3))
                .raw("leaves_per_pod", dice.number(1, 3))
                .raw("hosts_per_leaf", dice.number(1, 4))
                .raw("spines_per_pod", spines)
                .raw("links_per_spine", dice.one(&[1, 1, 2]))
                .raw("cores", spines * dice.number(1, 2))
                .raw("links_per_core", dice.one(&[1, 1, 2]));
            draft.with(tree_links(dice, section))
        }
        "rail-optimised" | "rail-only" => rails(dice, draft, section, kind),
        "dragonfly" => {
            let groups = dice.pick(&["\"auto\"", "\"auto\"", "3", "4", "5"]);
            let section = section
                .raw("p", dice.number(1, 2))
                .raw("a", dice.one(&[2, 4]))
                .raw("h", dice.number(1, 2))
                .raw("groups", groups)
                .text("arrangement", dice.pick(&["relative", "absolute", "palmtree", "circulant"]));
            draft.with(links(dice, section, &low_diameter))
        }
        "slim-fly" => {
            let (q, p) = dice.one(&[(3, 1), (3, 2), (4, 1), (5, 1)]);
            draft.with(links(dice, section.raw("q", q).raw("p", p), &low_diameter))
        }
        "hyperx" => {
            let [rows, columns, p] = [(1, 4), (2, 4), (1, 2)].map(|(least, most)| dice.number(least, most));
            let section = section.raw("rows", rows).raw("columns", columns).raw("p", p);
            draft.with(links(dice, section, &low_diameter))
        }
        "file" => file(dice, draft, section),
        _ => draft.with(match TopologyParameters::named(kind) {
            Ok(parameters) => unknown(dice, section, parameters.parameters()),
            Err(_) => section,
        }),
    }
}

fn tree_links(dice: &mut Dice, mut section: Section) -> Section {
    let planes = dice.one(&[1, 1, 1, 2, 3, 4]);
    // Planes divide rates.
    let rates = match planes {
        1 => RATES,
        _ => &["300Gbps", "120Gbps", "24Gbps", "12Gbps"],
    };
    section = section.raw("planes", planes);
    section = section.text("link_rate", dice.pick(rates)).text("link_delay", dice.pick(DELAYS));
    section = section.text("switch_latency", dice.pick(LATENCIES));
    section = section.maybe(dice, 3, "host_link_rate", rates);
    section = section.maybe(dice, 3, "host_link_delay", DELAYS);
    section
}

/// Draws a fabric of rails; without links between them also the servers that its traffic needs.
fn rails(dice: &mut Dice, draft: &Draft, section: Section, kind: &str) -> Draft {
    let (servers, per_pod) = (dice.number(2, 6), dice.number(1, 4));
    let pods = servers.div_ceil(per_pod);
    let rails = dice.number(1, 4);
    let spines = if kind == "rail-only" && pods == 1 && dice.once_in(2) { 0 } else { dice.number(1, 3) };
    let mut section = section
        .raw("servers", servers)
        .raw("rails", rails)
        .raw("servers_per_pod", per_pod)
        .raw("spines", spines)
        .raw("links_per_spine", dice.one(&[1, 1, 2]));
    if kind == "rail-optimised" && pods > 1 && dice.once_in(2) {
        section = section.raw("cores", spines * dice.number(1, 2)).raw("links_per_core", dice.one(&[1, 2]));
    }
    let draft = draft.with(tree_links(dice, section));
    match kind == "rail-only" && rails > 1 {
        true => {
            let servers = servers_of(dice, rails);
            draft.with(servers)
        }
        false => draft,
    }
}

fn servers_of(dice: &mut Dice, nics: u64) -> Section {
    Section::new("[servers]")
        .raw("gpus", nics * dice.one(&[1, 1, 2, 3]))
        .raw("nics", nics)
        .text("scale_up_rate", dice.pick(&["3600Gbps", "400Gbps", "7Gbps"]))
        .text("scale_up_latency", dice.pick(&["1us", "500ns", "25ns", "1ps", "0us", "10us"]))
}

/// Draws servers, whose NICs are the hosts of the topology.
pub(super) fn servers(dice: &mut Dice, draft: &Draft) -> Draft {
    if draft.section("[servers]").is_some() {
        return draft.clone();
    }
    let given = draft.section("[topology]").and_then(|topology| topology.get("rails")?.parse().ok());
    let nics = given.unwrap_or_else(|| dice.one(&[1, 2, 2, 3, 4]));
    let section = servers_of(dice, nics).text("cross_rail", dice.pick(&["pxn", "network"]));
    draft.with(section)
}

/// Adds rates and delays for about half of the classes of links.
fn links(dice: &mut Dice, mut section: Section, classes: &[&str]) -> Section {
    section = section.maybe(dice, 2, "link_rate", RATES);
    section = section.maybe(dice, 3, "switch_latency", LATENCIES);
    for class in classes {
        section = section.maybe(dice, 3, &format!("{class}_link_delay"), DELAYS);
        section = section.maybe(dice, 4, &format!("{class}_link_rate"), RATES);
    }
    section
}

/// Draws a graph in one of the formats of other simulators.
fn file(dice: &mut Dice, draft: &Draft, section: Section) -> Draft {
    let format = dice.pick(&["adjacency", "conweave", "htsim-topo"]);
    let path = format!("graph.{format}");
    let mut section = section.text("path", &path).text("format", format);
    let text = match format {
        "adjacency" => {
            section = section
                .raw("hosts_per_switch", dice.number(1, 3))
                .text("link_rate", dice.pick(RATES))
                .text("link_delay", dice.pick(DELAYS));
            adjacency(dice)
        }
        "conweave" => conweave(dice),
        _ => htsim(dice),
    };
    if format != "htsim-topo" {
        section = section.text("switch_latency", dice.pick(LATENCIES));
    }
    let mut draft = draft.with(section);
    draft.files.insert(path, text);
    draft
}

/// Draws a ring of switches with additional cables.
fn adjacency(dice: &mut Dice) -> String {
    let switches = dice.number(2, 7);
    let mut text = String::new();
    for a in 0..switches {
        let _ = write!(text, "{a}");
        for b in a + 1..switches {
            if b == a + 1 || (a == 0 && b == switches - 1) || dice.once_in(3) {
                let _ = write!(text, " {b}");
            }
        }
        text.push('\n');
    }
    text
}

/// Draws a leaf-spine with unequal uplinks.
fn conweave(dice: &mut Dice) -> String {
    let (leaves, spines, hosts) = (dice.number(2, 3), dice.number(1, 3), dice.number(1, 3));
    let first = leaves * hosts;
    let own = |host: u64| format!("{host} {} 100Gbps 1000ns 0", first + host / hosts);
    let mut cables: Vec<String> = (0..first).map(own).collect();
    for leaf in 0..leaves {
        for spine in 0..spines {
            let rate = dice.pick(&["100Gbps", "100Gbps", "40Gbps"]);
            let delay = dice.pick(&["1000ns", "1000ns", "30ns"]);
            cables.push(format!("{} {} {rate} {delay} 0", first + leaf, first + leaves + spine));
        }
    }
    let switches: Vec<String> = (first..first + leaves + spines).map(|s| s.to_string()).collect();
    format!(
        "{} {} {}\n{}\n{}\n",
        first + leaves + spines,
        switches.len(),
        cables.len(),
        switches.join(" "),
        cables.join("\n")
    )
}

/// Draws a fat tree of two tiers, or a Dragonfly.
fn htsim(dice: &mut Dice) -> String {
    let (speed, latency) = (dice.one(&[400, 100, 10]), dice.one(&[1000, 500, 25]));
    if dice.once_in(2) {
        return format!(
            "p 2\na 4\nh 1\nLink_speed_global_Gbps {speed}\nLink_latency_global_ns {latency}\nSwitch_latency_ns 100\n"
        );
    }
    let half = dice.number(2, 3);
    let hosts = 2 * half * half;
    format!(
        "Nodes {hosts}\nTiers 2\nPodsize {hosts}\nTier 0\nDownlink_speed_Gbps {speed}\nRadix_Up {half}\nRadix_Down {half}\n\
         Downlink_Latency_ns {latency}\nSwitch_Latency_ns 0\nTier 1\nDownlink_speed_Gbps {speed}\nRadix_Down {}\n\
         Downlink_Latency_ns {latency}\nSwitch_Latency_ns 100\n",
        2 * half
    )
}

/// Adds a class of links with different rate or delay.
pub(super) fn overrides(dice: &mut Dice, draft: &Draft) -> Draft {
    let class = dice.pick(&["host", "tier0-1", "tier1-2", "local", "global"]);
    let mut section = Section::new("[[topology.link]]").text("class", class);
    section = match dice.once_in(2) {
        true => section.text("rate", dice.pick(RATES)),
        false => section.text("delay", dice.pick(DELAYS)),
    };
    draft.with(section)
}
