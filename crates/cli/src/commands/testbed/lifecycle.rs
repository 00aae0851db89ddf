//! Running testbeds: up, down, status, exec, fault, capture.

use super::{Capture, Exec, Fault, FaultKind, Status, TestbedName, Up};
use crate::{Failure, Format, Table, commands::request::load, count, note, print, print_json, width, wrapped};
use anabranch_results::{Inputs, OutputFile};
use anabranch_testbed::{
    Harm, MAX_RATE, MIN_RATE, PortCount, Role, TestbedPlan, dropped,
    space::Privileges,
    standing,
    standing::{Action, RunningTestbed},
};
use anabranch_units::{Rate, Time};
use serde_json::{Value, json};
use std::process::ExitStatus;

pub(super) fn up(arguments: &Up) -> Result<(), Failure> {
    let scenario = load(&arguments.scenario())?;
    // Refuses what cannot be built before the topology is built in memory.
    let plan = TestbedPlan::of_setup(&scenario.setup(scenario.seed)?, &scenario.wire)?;
    let standing = standing::up(&arguments.name.name, &plan)?;
    match arguments.format {
        Format::Json => print_json(&describe(&standing, None)),
        Format::Table => {
            print(&nodes(&standing));
            print(&format!("\n{}\n", wrapped(&cost(&standing), width())));
            for missing in &standing.missing {
                note(&format!("missing on this machine: {missing}"));
            }
            let name = match standing.name.as_str() {
                "default" => String::new(),
                name => format!(" --name {name}"),
            };
            let host = &standing.plan.nodes[0].name;
            note(&format!(
                "run a command on a host: `anabranch testbed exec{name} {host} -- CMD`; remove the testbed: `anabranch testbed down{name}`"
            ));
        }
    }
    Ok(())
}

fn cost(standing: &RunningTestbed) -> String {
    let plan = &standing.plan;
    format!(
        "`{}`: {} namespaces and {} cables, built in {:.1} s; no CPU while idle. A packet of {} B takes about 10 us of CPU per hop, so {} MB/s through the fabric occupy one core.",
        standing.name,
        plan.nodes.len(),
        plan.cables.len(),
        standing.took_s,
        plan.mtu,
        u64::from(plan.mtu) / 40
    )
}

fn nodes(standing: &RunningTestbed) -> String {
    let plan = &standing.plan;
    let rows: Vec<Vec<String>> = (plan.nodes.iter().enumerate())
        .map(|(number, node)| {
            let own = |(end, other): (&anabranch_testbed::End, usize)| {
                (end.node == number).then(|| format!("{} {}", plan.nodes[other].name, Rate(end.rate)))
            };
            let ports: Vec<String> = plan.ports().filter_map(own).collect();
            vec![node.name.clone(), node.address.to_string(), ports.join(", ")]
        })
        .collect();
    Table::new(&["node", "address", "ports"], rows).wrap_last().draw()
}

fn describe(standing: &RunningTestbed, counts: Option<&[PortCount]>) -> Value {
    let plan = &standing.plan;
    let name = |node: usize| plan.nodes[node].name.as_str();
    let dropped = counts.map(|counts| dropped(plan, &[], counts)).unwrap_or_default();
    let ports = plan.ports().enumerate().map(|(number, (end, other))| {
        let mut port = json!({
            "port": format!("{}->{}", name(end.node), name(other)),
            "interface": name(other),
            "address": end.address,
            "rate_bps": end.rate,
        });
        if let Some((count, drops)) = counts.and_then(|counts| counts.get(number)).zip(dropped.get(number)) {
            port["counters"] = json!(PortCount { drops: *drops, ..*count });
        }
        port
    });
    json!({
        "name": standing.name,
        "holder": standing.holder,
        "privileges": standing.privileges,
        "mtu": plan.mtu,
        "queue": plan.queue,
        "nodes": plan.nodes,
        "ports": ports.collect::<Vec<_>>(),
        "missing": standing.missing,
        "took_s": standing.took_s,
    })
}

pub(super) fn down(name: &TestbedName) -> Result<(), Failure> {
    standing::find(&name.name)?.down()?;
    note(&format!("testbed `{}` removed", name.name));
    Ok(())
}

pub(super) fn status(arguments: &Status) -> Result<(), Failure> {
    let standing = standing::find(&arguments.name.name)?;
    let counts = standing.act(Action::Count)?;
    if arguments.format == Format::Json {
        print_json(&describe(&standing, Some(&counts)));
        return Ok(());
    }
    let plan = &standing.plan;
    let ports = plan.ports().zip(counts.iter().zip(dropped(plan, &[], &counts)));
    let switch_ports = ports.filter(|((end, _), _)| plan.nodes[end.node].role != Role::Host);
    let rows: Vec<Vec<String>> = switch_ports
        .map(|((end, other), (c, drops))| {
            let port = format!("{}->{}", plan.nodes[end.node].name, plan.nodes[other].name);
            let [bytes, packets, waiting] = [c.bytes, c.packets, c.backlog].map(Some);
            let harms = [c.lost, c.corrupted, c.duplicated].map(Some);
            let numbers = [&[bytes, packets, drops, c.marks, c.trims, waiting][..], &harms].concat();
            let numbers: Vec<String> =
                numbers.into_iter().map(|number| number.map_or_else(|| "-".into(), count)).collect();
            let rate = if c.rate == 0 { "down".into() } else { Rate(c.rate).to_string() };
            [vec![port, rate], numbers].concat()
        })
        .collect();
    let created = match standing.privileges {
        Privileges::Root => "by root",
        Privileges::UserNamespace => "in a user namespace",
    };
    print(&format!("`{}`, process {}, made {created}\n\n", standing.name, standing.holder));
    let header =
        ["port", "rate", "bytes", "packets", "drops", "marks", "trims", "waiting", "lost", "corrupted", "duplicated"];
    let least = ["duplicated", "corrupted", "packets", "waiting", "trims", "lost"];
    print(&Table::new(&header, rows).hide_first(&least).draw());
    Ok(())
}

/// Ends this process with the exit code of a program in a testbed.
fn exit_with(status: std::io::Result<ExitStatus>, what: &str) -> Result<(), Failure> {
    let status = status.map_err(|error| Failure::input(format!("running `{what}`: {error}")))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => std::process::exit(code),
        None => Err(Failure::Interrupted),
    }
}

pub(super) fn exec(arguments: &Exec) -> Result<(), Failure> {
    let standing = standing::find(&arguments.name.name)?;
    match standing.run(&arguments.host, &arguments.words)? {
        0 => Ok(()),
        code => std::process::exit(code),
    }
}

pub(super) fn fault(arguments: &Fault) -> Result<(), Failure> {
    let standing = standing::find(&arguments.name.name)?;
    let plan = &standing.plan;
    let switch = plan.nodes.iter().position(|node| node.role != Role::Host && node.name == arguments.place);
    let cables = || match switch {
        Some(switch) => {
            let ends = |n: &usize| [plan.cables[*n].lower.node, plan.cables[*n].upper.node];
            let between = |n: &usize| ends(n).iter().all(|node| plan.nodes[*node].role != Role::Host);
            Ok((0..plan.cables.len()).filter(between).filter(|n| ends(n).contains(&switch)).collect())
        }
        None => Ok::<Vec<usize>, Failure>(vec![plan.cable_named(&arguments.place)?]),
    };
    let links = || {
        if arguments.place.contains("->") {
            return Ok(vec![plan.port(&arguments.place)?]);
        }
        let both = |n: usize| {
            let (lower, upper) = (plan.cables[n].lower.node, plan.cables[n].upper.node);
            [(lower, upper), (upper, lower)]
        };
        Ok::<Vec<(usize, usize)>, Failure>(cables()?.into_iter().flat_map(both).collect())
    };
    let action = match (arguments.kind, arguments.value.as_deref()) {
        (FaultKind::Slow, value) => Action::Slow(cables()?, rate(value)?),
        (FaultKind::Cut | FaultKind::Mend, Some(value)) => {
            return Err(Failure::input(format!(
                "VALUE: found `{value}`, expected none: `fault cut` and `fault mend` take no value"
            )));
        }
        (FaultKind::Cut, None) => Action::Cut(cables()?),
        (FaultKind::Mend, None) => Action::Mend(cables()?),
        (FaultKind::Loss, value) => Action::Harm(links()?, Harm::Lose(share(value)?)),
        (FaultKind::Corrupt, value) => Action::Harm(links()?, Harm::Corrupt(share(value)?)),
        (FaultKind::Duplicate, value) => Action::Harm(links()?, Harm::Duplicate(share(value)?)),
        (FaultKind::Delay, value) => Action::Harm(links()?, delay(value, arguments.jitter)?),
    };
    if let Some(jitter) = arguments.jitter.filter(|_| arguments.kind != FaultKind::Delay) {
        return Err(Failure::input(format!("--jitter: found {jitter}, expected it with `fault delay` only")));
    }
    standing.act(action)?;
    Ok(())
}

/// Parses the rate of `fault slow`, in bit/s.
fn rate(value: Option<&str>) -> Result<u64, Failure> {
    let rate = value.and_then(|value| value.parse::<Rate>().ok());
    let rate = rate.filter(|rate| (MIN_RATE..=MAX_RATE).contains(&rate.0));
    let found = value.map_or_else(|| "nothing".into(), |value| format!("`{value}`"));
    let (least, most) = (Rate(MIN_RATE), Rate(MAX_RATE));
    let wrong = || Failure::input(format!("RATE: found {found}, expected from {least} to {most}, for example 20Mbps"));
    rate.map(|rate| rate.0).ok_or_else(wrong)
}

/// Parses a share of packets, 0.01 or 1%, into parts per 10^9.
fn share(value: Option<&str>) -> Result<u64, Failure> {
    let number = |value: &str| match value.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => value.parse().ok(),
    };
    let found = value.map_or_else(|| "nothing".into(), |value| format!("`{value}`"));
    let share = value.and_then(number).filter(|share| (0.0..=1.0).contains(share));
    let wrong = || {
        Failure::input(format!("SHARE: found {found}, expected a share of packets from 0 to 1, for example 0.01 or 1%"))
    };
    share.map(|share| (share * 1e9).round() as u64).ok_or_else(wrong)
}

const MAX_DELAY: Time = Time::from_us(10_000_000);

fn delay(value: Option<&str>, jitter: Option<Time>) -> Result<Harm, Failure> {
    let zero = |value: &str| (value == "0").then_some(Time::ZERO);
    let time = value.and_then(|value| zero(value).or_else(|| value.parse().ok())).filter(|time| *time <= MAX_DELAY);
    let found = value.map_or_else(|| "nothing".into(), |value| format!("`{value}`"));
    let delay = time.ok_or_else(|| {
        Failure::input(format!("TIME: found {found}, expected a time up to {MAX_DELAY}, for example 5ms"))
    })?;
    let jitter = jitter.unwrap_or(Time::ZERO);
    if jitter > delay {
        return Err(Failure::input(format!("--jitter: found {jitter}, expected a time up to the delay, {delay}")));
    }
    Ok(Harm::Delay(delay.ps(), jitter.ps()))
}

pub(super) fn capture(arguments: &Capture) -> Result<(), Failure> {
    let standing = standing::find(&arguments.name.name)?;
    let (from, to) = standing.plan.port(&arguments.port)?;
    let program = anabranch_testbed::command("dumpcap")?;
    let mut words = vec![program.get_program().to_os_string()];
    words.extend(["-q", "-n", "-i", &standing.plan.nodes[to].name, "-w"].map(Into::into));
    words.push("-".into());
    for (flag, value) in
        [("-c", arguments.packets.map(|n| n.to_string())), ("-a", arguments.seconds.map(|s| format!("duration:{s}")))]
    {
        words.extend(value.into_iter().flat_map(|value| [flag.into(), value.into()]));
    }
    // dumpcap drops its privileges and may not write there, so it receives the open file.
    let file = OutputFile::new(&arguments.out, arguments.replace, &Inputs::default())?.open()?;
    let status = standing.exec(&standing.plan.nodes[from].name.clone(), &words)?.stdout(file).status();
    exit_with(status, "dumpcap")
}
