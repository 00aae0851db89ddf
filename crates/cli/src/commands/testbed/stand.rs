//! Testbeds that stand: up, down, status, exec, fault, capture.

use super::{Capture, Exec, Fault, Kind, Name, Status, Up};
use crate::{
    arguments::Format,
    commands::request::load,
    failure::Failure,
    printing::{count, note, print, print_json, width, wrapped},
    table::Table,
};
use anabranch_report::{Inputs, OutputFile};
use anabranch_testbed::{
    Harm, LEAST_RATE, MOST_RATE, Plan, PortCount, Role, dropped,
    space::Privileges,
    standing::{self, Action, Standing},
};
use anabranch_units::{Rate, Time};
use serde_json::{Value, json};
use std::process::ExitStatus;

/// `anabranch testbed up`.
pub(super) fn up(arguments: &Up) -> Result<(), Failure> {
    let scenario = load(&arguments.scenario())?;
    // What cannot be built is told before a large network is made in memory.
    let plan = Plan::of_setup(&scenario.setup(scenario.seed)?, &scenario.wire)?;
    let standing = standing::up(&arguments.name.name, &plan)?;
    match arguments.format {
        Format::Json => print_json(&describe(&standing, None)),
        Format::Table => {
            print(&nodes(&standing));
            print(&format!("\n{}\n", wrapped(&cost(&standing), width())));
            for missing in &standing.missing {
                note(&format!("missing here: {missing}"));
            }
            note(&format!(
                "`anabranch testbed exec {} -- CMD` runs a command there, `anabranch testbed down` takes it down",
                standing.plan.nodes[0].name
            ));
        }
    }
    Ok(())
}

/// What a testbed costs while nothing is sent.
fn cost(standing: &Standing) -> String {
    let plan = &standing.plan;
    format!(
        "`{}`: {} namespaces and {} cables, built in {:.1} s; no CPU while nothing is sent. A packet of {} B takes about 10 us of \
         CPU per hop, so {} MB/s through the fabric keep a core busy.",
        standing.name,
        plan.nodes.len(),
        plan.cables.len(),
        standing.took_s,
        plan.mtu,
        u64::from(plan.mtu) / 40
    )
}

fn nodes(standing: &Standing) -> String {
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

fn describe(standing: &Standing, counts: Option<&[PortCount]>) -> Value {
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

/// `anabranch testbed down`.
pub(super) fn down(name: &Name) -> Result<(), Failure> {
    standing::find(&name.name)?.down()?;
    note(&format!("the testbed `{}` is gone", name.name));
    Ok(())
}

/// `anabranch testbed status`.
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
    let how = match standing.privileges {
        Privileges::Root => "by root",
        Privileges::UserNamespace => "in a user namespace",
    };
    print(&format!("`{}`, process {}, made {how}\n\n", standing.name, standing.holder));
    let header =
        ["port", "rate", "bytes", "packets", "drops", "marks", "trims", "waiting", "lost", "corrupted", "duplicated"];
    let least = ["duplicated", "corrupted", "packets", "waiting", "trims", "lost"];
    print(&Table::new(&header, rows).least(&least).draw());
    Ok(())
}

/// What a program in a testbed ended with becomes our own end.
fn pass_on(status: std::io::Result<ExitStatus>, what: &str) -> Result<(), Failure> {
    let status = status.map_err(|error| Failure::input(format!("running `{what}`: {error}")))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => std::process::exit(code),
        None => Err(Failure::Interrupted),
    }
}

/// `anabranch testbed exec`.
pub(super) fn exec(arguments: &Exec) -> Result<(), Failure> {
    let standing = standing::find(&arguments.name.name)?;
    match standing.run(&arguments.host, &arguments.words)? {
        0 => Ok(()),
        code => std::process::exit(code),
    }
}

/// `anabranch testbed fault`.
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
        (Kind::Slow, value) => Action::Slow(cables()?, rate(value)?),
        (Kind::Cut | Kind::Mend, Some(value)) => {
            return Err(Failure::input(format!("found `{value}`, but `fault cut` and `fault mend` take no value")));
        }
        (Kind::Cut, None) => Action::Cut(cables()?),
        (Kind::Mend, None) => Action::Mend(cables()?),
        (Kind::Loss, value) => Action::Harm(links()?, Harm::Lose(share(value)?)),
        (Kind::Corrupt, value) => Action::Harm(links()?, Harm::Corrupt(share(value)?)),
        (Kind::Duplicate, value) => Action::Harm(links()?, Harm::Duplicate(share(value)?)),
        (Kind::Delay, value) => Action::Harm(links()?, delay(value, arguments.jitter)?),
    };
    if let Some(jitter) = arguments.jitter.filter(|_| arguments.kind != Kind::Delay) {
        return Err(Failure::input(format!("found --jitter {jitter}, which only `fault delay` takes")));
    }
    standing.act(action)?;
    Ok(())
}

/// The rate of `fault slow`, bits per second.
fn rate(value: Option<&str>) -> Result<u64, Failure> {
    let rate = value.and_then(|value| value.parse::<Rate>().ok());
    let rate = rate.filter(|rate| (LEAST_RATE..=MOST_RATE).contains(&rate.0));
    let found = value.map_or_else(|| "nothing".into(), |value| format!("`{value}`"));
    let (least, most) = (Rate(LEAST_RATE), Rate(MOST_RATE));
    let wrong = || Failure::input(format!("RATE: found {found}, expected from {least} to {most}, for example 20Mbps"));
    rate.map(|rate| rate.0).ok_or_else(wrong)
}

/// A share of packets as 0.01 or 1%, out of 10^9.
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

/// Longest delay of a link.
const MAX_DELAY: Time = Time::from_us(10_000_000);

/// What `fault delay` takes.
fn delay(value: Option<&str>, jitter: Option<Time>) -> Result<Harm, Failure> {
    let zero = |value: &str| (value == "0").then_some(Time::ZERO);
    let time = value.and_then(|value| zero(value).or_else(|| value.parse().ok())).filter(|time| *time <= MAX_DELAY);
    let found = value.map_or_else(|| "nothing".into(), |value| format!("`{value}`"));
    let delay = time.ok_or_else(|| {
        Failure::input(format!("TIME: found {found}, expected a time up to {MAX_DELAY}, for example 5ms"))
    })?;
    let jitter = jitter.unwrap_or(Time::ZERO);
    if jitter > delay {
        return Err(Failure::input(format!("found --jitter {jitter}, expected a time up to the delay, {delay}")));
    }
    Ok(Harm::Delay(delay.ps(), jitter.ps()))
}

/// `anabranch testbed capture`.
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
    // It drops its privileges and could not write where we can; we hand it the open file.
    let file = OutputFile::new(&arguments.out, arguments.replace, &Inputs::default())?.open()?;
    let status = standing.exec(&standing.plan.nodes[from].name.clone(), &words)?.stdout(file).status();
    pass_on(status, "dumpcap")
}
