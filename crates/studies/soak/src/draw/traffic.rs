//! Workloads and their files.

use super::{fabric, unknown::unknown};
use crate::{Dice, Draft, Section};
use anabranch_transport::TransportParameters;
use anabranch_workload::{Algorithm, SIZE_DISTRIBUTIONS, WorkloadParameters};
use std::fmt::Write;

const SIZES: &[&str] = &["1B", "100B", "4096B", "4097B", "10kB", "20kB", "64KiB", "200kB", "1MiB"];
const STARTS: &[&str] = &["0us", "1us", "3333ps", "10us", "1ps"];

/// Smallest workload, for a scenario whose workloads are not drawn yet.
pub(super) fn minimal() -> Section {
    Section::new("[[workload]]").text("kind", "permutation").text("size", "1B")
}

pub(super) fn draw(dice: &mut Dice, draft: &Draft, number: u64) -> Draft {
    let kind = dice.one(WorkloadParameters::ALL).name;
    let name = format!("w{number}");
    let mut draft = draft.clone();
    let mut section = Section::new("[[workload]]").text("kind", kind).text("name", &name);
    section = match kind {
        "permutation" => section
            .text("size", dice.pick(SIZES))
            .text("scope", dice.pick(&["any", "other-leaf", "other-group"]))
            .raw("rounds", dice.one(&[1, 1, 2, 4]))
            .text("hosts", dice.pick(&["all", "all", "rest"])),
        "poisson" => section
            .text("sizes", &sizes(dice))
            .raw("load", dice.pick(&["0.05", "0.4", "0.8", "1.5"]))
            .text("duration", dice.pick(&["5us", "20us", "50us", "200us"]))
            .text("load_reference", dice.pick(&["host", "network"]))
            .text("destinations", dice.pick(&["any", "other-leaf", "other-group"]))
            .raw("max_senders", dice.one(&[0, 0, 2]))
            .raw("max_flows", 4000),
        "incast" => section
            .text("size", dice.pick(SIZES))
            .raw("senders", dice.number(1, 30))
            .raw("receivers", dice.one(&[1, 1, 2])),
        "adversarial" => section.text("size", dice.pick(SIZES)).raw("offset", dice.number(1, 3)),
        "microbenchmark" => section
            .text("size", dice.pick(SIZES))
            .text("background_size", "200kB")
            .text("background", dice.pick(&["gateway", "through"]))
            .raw("free_groups", dice.number(0, 2)),
        "all-to-all" => section
            .text("size", dice.pick(SIZES))
            .raw("parallel", dice.one(&[0, 1, 2, 4]))
            .text("order", dice.pick(&["shifted", "random"]))
            .text("placement", dice.pick(&["packed", "random"]))
            .raw("ranks", dice.number(2, 12)),
        "collective" => collective(dice, section),
        "training-step" => training_step(dice, section),
        "training-rounds" => section
            .raw("rounds", dice.number(1, 5))
            .raw("ranks", dice.number(2, 6))
            .text("sizes", dice.pick(&["1B", "50kB", "10kB"]))
            .text("exchange", dice.pick(&["direct", "ring"])),
        "file" => {
            let hosts = dice.number(2, 8);
            let format = dice.pick(&["htsim-cm", "csv", "conweave", "goal"]);
            let path = format!("{name}.{format}");
            let text = match format {
                "htsim-cm" => matrix(dice, hosts),
                "csv" => table(dice, hosts),
                "conweave" => seconds(dice, hosts),
                _ => goal(dice, hosts),
            };
            draft.files.insert(path.clone(), text);
            section.text("path", &path).text("format", format)
        }
        _ => match WorkloadParameters::named(kind) {
            Ok(parameters) => unknown(dice, section, parameters.parameters()),
            Err(_) => section,
        },
    };
    draft.with(common(dice, &draft, section, kind))
}

/// Draws a distribution of flow sizes, or a size.
fn sizes(dice: &mut Dice) -> String {
    if dice.once_in(3) { dice.pick(&["64KiB", "100B"]).into() } else { dice.one(SIZE_DISTRIBUTIONS).name.into() }
}

fn training_step(dice: &mut Dice, section: Section) -> Section {
    let [dp, tp, pp] = dice.one(&[[2, 1, 1], [1, 2, 1], [1, 1, 2], [2, 2, 1], [1, 2, 2], [2, 2, 2]]);
    section
        .raw("dp", dp)
        .raw("tp", tp)
        .raw("pp", pp)
        .raw("ranks", dp * tp * pp)
        .raw("layers", pp * dice.one(&[1, 2]))
        .raw("microbatches", dice.number(1, 3))
        .text("activations", dice.pick(&["1B", "10kB"]))
        .text("gradients", dice.pick(&["1B", "100kB"]))
        .text("forward", dice.pick(&["0ps", "2us"]))
        .raw("repetitions", dice.one(&[1, 1, 2]))
}

fn collective(dice: &mut Dice, section: Section) -> Section {
    let algorithm = dice.one(&Algorithm::each().collect::<Vec<_>>()).name();
    let section = section
        .text("algorithm", algorithm)
        .text("size", dice.pick(&["1B", "10kB", "64KiB", "1MiB"]))
        .raw("ranks", dice.one(&[2, 3, 4, 4, 6, 8, 8]))
        .text("placement", dice.pick(&["packed", "random"]))
        .raw("channels", dice.one(&[1, 1, 3]))
        .text("trigger", dice.pick(&["auto", "received", "acknowledged"]));
    let section = if dice.once_in(3) { section.raw("steps", dice.number(1, 9)) } else { section };
    if !dice.once_in(3) {
        return section;
    }
    section
        .raw("groups", dice.one(&[1, 2, 3]))
        .raw("repetitions", dice.one(&[1, 2, 3]))
        .text("compute", dice.pick(&["0ps", "3us"]))
        .text("gap", dice.pick(&["0ps", "1us"]))
}

/// Draws a congestion control of the transport in the draft.
fn control(dice: &mut Dice, draft: &Draft) -> Option<&'static str> {
    let kind = draft.section("[transport]")?.get("kind")?;
    let transport = TransportParameters::named(kind).ok()?;
    Some(dice.one(transport.controls().all()).name)
}

fn common(dice: &mut Dice, draft: &Draft, mut section: Section, kind: &str) -> Section {
    let classes = draft.section("[fabric]").and_then(|fabric| fabric.get("classes")).map(str::to_string);
    let class = |dice: &mut Dice| dice.pick(&["a", "b", "c"]);
    if kind != "file" && dice.once_in(3) {
        section = section.text("start", dice.pick(STARTS));
    }
    if classes.is_some() && dice.once_in(2) {
        section = section.text("class", class(dice));
    }
    section = section.now_and_then(dice, 6, |_, section| section.raw("measured", false));
    if dice.once_in(6)
        && let Some(control) = control(dice, draft)
    {
        section = section.text("congestion_control", control);
    }
    section = section.now_and_then(dice, 4, |dice, section| section.text("load_balancer", &fabric::name(dice)));
    if dice.once_in(6) {
        section = section.raw("split_share", "0.4").text("split_load_balancer", &fabric::name(dice));
        if classes.is_some() {
            section = section.text("split_class", class(dice));
        }
    }
    section
}

fn pair(dice: &mut Dice, hosts: u64) -> (u64, u64) {
    let order = dice.order(hosts);
    (order[0], order[1])
}

/// Draws htsim's connection matrix: chains of flows, and a barrier now and then.
fn matrix(dice: &mut Dice, hosts: u64) -> String {
    let flows = dice.number(2, 17);
    let barrier = dice.once_in(3);
    let (mut lines, mut triggers) = (String::new(), String::new());
    for flow in 1..=flows {
        let (src, dst) = pair(dice, hosts);
        let size = dice.one(&[1, 5000, 60_000]);
        let _ = match (barrier, flow) {
            // All flows but the last activate the barrier that starts the last.
            (true, flow) if flow == flows => writeln!(lines, "{src}->{dst} id {flow} trigger 1 size {size}"),
            (true, _) => writeln!(lines, "{src}->{dst} id {flow} start {flow} size {size} send_done_trigger 1"),
            (false, 1) => writeln!(lines, "{src}->{dst} id 1 start 0 size {size} recv_done_trigger 1"),
            (false, flow) if flow == flows => {
                writeln!(lines, "{src}->{dst} id {flow} trigger {} size {size}", flow - 1)
            }
            (false, _) => {
                let done = dice.pick(&["send_done_trigger", "recv_done_trigger"]);
                writeln!(lines, "{src}->{dst} id {flow} trigger {} size {size} {done} {flow}", flow - 1)
            }
        };
        if !barrier && flow < flows {
            let _ = writeln!(triggers, "trigger id {flow} oneshot");
        }
    }
    if barrier {
        triggers = format!("trigger id 1 barrier count {}\n", flows - 1);
    }
    let count = if barrier { 1 } else { flows - 1 };
    format!("Nodes {hosts}\nConnections {flows}\nTriggers {count}\n{lines}{triggers}")
}

fn table(dice: &mut Dice, hosts: u64) -> String {
    let mut text = String::from("src,dst,size_bytes,start_ps\n");
    for _ in 0..dice.number(1, 30) {
        let (src, dst) = pair(dice, hosts);
        let _ = writeln!(text, "{src},{dst},{},{}", dice.number(1, 30_000), dice.number(0, 20) * 500_000);
    }
    text
}

/// Draws ConWeave's flows, which start some microseconds after two seconds.
fn seconds(dice: &mut Dice, hosts: u64) -> String {
    let flows = dice.number(1, 20);
    let mut text = format!("{flows}\n");
    for flow in 0..flows {
        let (src, dst) = pair(dice, hosts);
        let _ = writeln!(text, "{src} {dst} 3 {} 2.{:09}", dice.number(1, 50_000), flow / 3 * 700);
    }
    text
}

/// Draws a ring of computations and messages.
fn goal(dice: &mut Dice, hosts: u64) -> String {
    let steps = dice.number(1, 4);
    let size = dice.one(&[1, 4096, 20_000]);
    let mut text = format!("num_ranks {hosts}\n");
    for rank in 0..hosts {
        let (left, right) = ((rank + hosts - 1) % hosts, (rank + 1) % hosts);
        let _ = writeln!(text, "rank {rank} {{");
        for step in 0..steps {
            let calc = dice.number(0, 3) * 100;
            let _ = writeln!(text, "s{step}: send {size}b to {right} tag {step}");
            let _ = writeln!(text, "r{step}: recv {size}b from {left} tag {step}");
            let _ = writeln!(text, "c{step}: calc {calc}\nc{step} requires r{step}");
            if step > 0 {
                let _ = writeln!(text, "s{step} requires c{}", step - 1);
            }
        }
        text += "}\n";
    }
    text
}
