//! Faults, measurements and limits.

use super::topology::RATES;
use crate::{
    dice::{Dice, quoted},
    draft::{Draft, Section},
};

/// Names of switches and links that some topology has.
const SWITCHES: &[&str] = &["spine0", "spine1", "leaf1", "agg0", "core0", "switch0", "switch3"];
const LINKS: &[&str] = &[
    "leaf0->spine0",
    "spine0->leaf1",
    "host0->leaf0",
    "leaf0->host0",
    "leaf0->agg0",
    "agg0->core0",
    "switch0->switch1",
    "switch1->switch0",
    "host0->switch0",
    "switch0->host0",
];

/// One more fault.
pub(super) fn fault(dice: &mut Dice, draft: &Draft) -> Draft {
    let kind =
        dice.pick(&["link-down", "link-down", "link-up", "link-degrade", "link-degrade", "switch-down", "packet-loss"]);
    let at = dice.pick(&["0us", "333ns", "5us", "17us", "50us"]);
    let mut section = Section::new("[[fault]]").text("kind", kind).text("at", at);
    match dice.number(0, 3) {
        _ if kind == "switch-down" => section = section.raw("switches", format!("[{}]", quoted(dice.pick(SWITCHES)))),
        0 => section = section.raw("links", format!("[{}]", quoted(dice.pick(LINKS)))),
        1 => section = section.raw("fraction", dice.pick(&["0.1", "0.3", "0.5", "1.0"])),
        _ => section = section.raw("count", dice.one(&[1, 1, 2])),
    }
    if section.get("links").is_none() && kind != "switch-down" && dice.once_in(3) {
        section = section.raw("directed", true);
    }
    if ["link-down", "link-up", "switch-down"].contains(&kind) && dice.once_in(2) {
        section = section.text("detect_after", dice.pick(&["0us", "1us", "10us", "30us", "1ps"]));
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
    if dice.once_in(4) {
        section = section.text("affects", dice.pick(&["data", "all"]));
    }
    draft.with(section)
}

/// Series, occupancy, counts per uplink and traces.
pub(super) fn measure(dice: &mut Dice, draft: &Draft) -> Draft {
    let mut section = Section::new("[measure]");
    if !dice.once_in(4) {
        section = section.raw("uplink_counts", true).raw("occupancy", true);
    }
    if !dice.once_in(4) {
        let mut links = vec![dice.pick(LINKS)];
        if dice.once_in(2) {
            links.push(dice.pick(LINKS));
        }
        let links: Vec<String> = links.into_iter().map(quoted).collect();
        section = section
            .raw("series_links", format!("[{}]", links.join(", ")))
            .text("series_interval", dice.pick(&["100ns", "1us", "777ps", "10us"]));
        if dice.once_in(2) {
            section = section.raw("series_flows", "[\"first:5\"]").raw("series_scheme", true);
        }
    }
    if !dice.once_in(4) {
        section =
            section.raw("trace_flows", "[\"first:4\"]").raw("trace_limit", dice.pick(&["100", "5000", "1000000"]));
    }
    draft.with(section)
}

/// When the run ends.
pub(super) fn run(dice: &mut Dice, draft: &Draft) -> Draft {
    let mut section = Section::new("[run]").text("time_limit", dice.pick(&["100us", "300us", "1ms", "5ms"]));
    if dice.once_in(6) {
        section = section.text("until", dice.pick(&["20us", "100us"]));
    }
    if dice.once_in(4) {
        section = section.text("warmup", dice.pick(&["1us", "10us"]));
    }
    if dice.once_in(4) {
        section = section.text("trigger_latency", dice.pick(&["1ps", "1ns", "100ns", "5us"]));
    }
    draft.with(section)
}
