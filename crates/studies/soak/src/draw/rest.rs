//! Faults, measurements and limits.

use super::topology::RATES;
use crate::{Dice, Draft, Section, quoted};
use anabranch_topology::{LinkId, NodeId, Topology};

fn link(dice: &mut Dice, topology: &Topology) -> String {
    topology.link_name(LinkId(dice.number(0, topology.links.len() as u64 - 1) as u32))
}

/// Draws links by name: one, a cable, those of a node, or a class.
fn links(dice: &mut Dice, topology: &Topology) -> String {
    let link = LinkId(dice.number(0, topology.links.len() as u64 - 1) as u32);
    let ends = topology.link(link);
    match dice.number(0, 5) {
        0 => topology.cable_name(link),
        1 => format!("{}->*", topology.node(ends.from).name),
        2 => ends.class.name(),
        _ => topology.link_name(link),
    }
}

fn switch(dice: &mut Dice, topology: &Topology) -> String {
    let number = dice.number(0, u64::from(topology.switches()) - 1) as u32;
    topology.node(NodeId(topology.hosts + number)).name.clone()
}

pub(super) fn fault(dice: &mut Dice, draft: &Draft, topology: &Topology) -> Draft {
    let kind =
        dice.pick(&["link-down", "link-down", "link-up", "link-degrade", "link-degrade", "switch-down", "packet-loss"]);
    let at = dice.pick(&["0us", "333ns", "5us", "17us", "50us"]);
    let mut section = Section::new("[[fault]]").text("kind", kind).text("at", at);
    match dice.number(0, 3) {
        _ if kind == "switch-down" => {
            section = section.raw("switches", format!("[{}]", quoted(switch(dice, topology))))
        }
        0 => section = section.raw("links", format!("[{}]", quoted(links(dice, topology)))),
        1 => section = section.raw("fraction", dice.pick(&["0.1", "0.3", "0.5", "1.0"])),
        _ => section = section.raw("count", dice.one(&[1, 1, 2])),
    }
    if section.get("links").is_none() && kind != "switch-down" && dice.once_in(3) {
        section = section.raw("directed", true);
    }
    if ["link-down", "link-up", "switch-down"].contains(&kind) && dice.once_in(2) {
        section = section.text("detect_after", dice.pick(&["0us", "1us", "10us", "30us", "1ps"]));
    }
    if topology.planes > 1 && ["link-down", "link-up", "switch-down"].contains(&kind) {
        section = section.maybe(dice, 3, "port_detect", &["1us", "30us", "never"]);
        section = section.maybe(dice, 3, "peer_detect", &["1us", "30us", "never"]);
    }
    if kind == "link-degrade" {
        section = match dice.once_in(2) {
            true => section.text("rate", dice.pick(RATES)),
            false => section.raw("factor", dice.pick(&["0.5", "0.01"])),
        };
    }
    if kind == "packet-loss" {
        section = section.raw("loss", dice.pick(&["0.001", "0.05", "0.5"]));
    }
    section = section.maybe(dice, 4, "affects", &["data", "all"]);
    draft.with(section)
}

pub(super) fn measure(dice: &mut Dice, draft: &Draft, topology: &Topology) -> Draft {
    let mut section = Section::new("[measure]");
    if !dice.once_in(4) {
        section = section.raw("uplink_counts", true).raw("occupancy", true);
    }
    if !dice.once_in(4) {
        let names: Vec<String> = (0..dice.number(1, 2)).map(|_| quoted(links(dice, topology))).collect();
        section = section
            .raw("series_links", format!("[{}]", names.join(", ")))
            .text("series_interval", dice.pick(&["100ns", "1us", "777ps", "10us"]));
        if dice.once_in(2) {
            section = section.raw("series_flows", format!("[{}]", quoted(flows(dice)))).raw("series_scheme", true);
        }
    }
    if !dice.once_in(4) {
        section = section
            .raw("trace_flows", format!("[{}]", quoted(flows(dice))))
            .raw("trace_limit", dice.pick(&["100", "5000", "1000000"]))
            .raw("trace_scheme", dice.once_in(2));
    }
    draft.with(section)
}

fn flows(dice: &mut Dice) -> &'static str {
    dice.pick(&["first:5", "first:4", "0", "w0:3", "w0", "host0->*", "*->host1"])
}

pub(super) fn captures(dice: &mut Dice, draft: &Draft, topology: &Topology) -> Draft {
    let mut draft = draft.clone();
    draft.captures = (0..dice.number(1, 2)).map(|_| link(dice, topology)).collect();
    draft.captures.dedup();
    draft
}

pub(super) fn run(dice: &mut Dice, draft: &Draft) -> Draft {
    let mut section = Section::new("[run]").text("time_limit", dice.pick(&["100us", "300us", "1ms", "5ms"]));
    section = section.maybe(dice, 6, "until", &["20us", "100us"]);
    section = section.maybe(dice, 4, "warmup", &["1us", "10us"]);
    section = section.maybe(dice, 4, "trigger_latency", &["1ps", "1ns", "100ns", "5us"]);
    draft.with(section)
}
