//! Testbeds that stand: up, down, status, exec, fault, capture.

use super::{Capture, Exec, Fault, Kind, Name, Status, Up};
use crate::{
    arguments::Format,
    commands::load,
    failure::Failure,
    printing::{count, note, print, print_json, width, wrapped},
    table::Table,
};
use anabranch_report::{Inputs, OutputFile};
use anabranch_testbed::{
    Plan, PortCount, Role,
    space::Privileges,
    standing::{self, Action, Standing},
};
use anabranch_units::Rate;
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
    let ports = plan.ports().enumerate().map(|(number, (end, other))| {
        let mut port = json!({
            "port": format!("{}->{}", name(end.node), name(other)),
            "interface": name(other),
            "address": end.address,
            "rate_bps": end.rate,
        });
        if let Some(count) = counts.and_then(|counts| counts.get(number)) {
            port["counters"] = json!(count);
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
    let switch_ports = plan.ports().zip(&counts).filter(|((end, _), _)| plan.nodes[end.node].role != Role::Host);
    let rows: Vec<Vec<String>> = switch_ports
        .map(|((end, other), c)| {
            let port = format!("{}->{}", plan.nodes[end.node].name, plan.nodes[other].name);
            let numbers = [c.bytes, c.packets, c.drops, c.marks, c.trims, c.backlog].map(count);
            let rate = if c.rate == 0 { "down".into() } else { Rate(c.rate).to_string() };
            [vec![port, rate], numbers.to_vec()].concat()
        })
        .collect();
    let how = match standing.privileges {
        Privileges::Root => "by root",
        Privileges::UserNamespace => "in a user namespace",
    };
    print(&format!("`{}`, process {}, made {how}\n\n", standing.name, standing.holder));
    let header = ["port", "rate", "bytes", "packets", "drops", "marks", "trims", "waiting"];
    print(&Table::new(&header, rows).least(&["packets", "waiting", "trims"]).draw());
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
    let status = standing.exec(&arguments.host, &arguments.words)?.status();
    pass_on(status, &arguments.words[0].to_string_lossy())
}

/// `anabranch testbed fault`.
pub(super) fn fault(arguments: &Fault) -> Result<(), Failure> {
    let standing = standing::find(&arguments.name.name)?;
    let plan = &standing.plan;
    let switch = plan.nodes.iter().position(|node| node.role != Role::Host && node.name == arguments.place);
    let cables = match switch {
        Some(switch) => {
            let ends = |n: &usize| [plan.cables[*n].lower.node, plan.cables[*n].upper.node];
            let between = |n: &usize| ends(n).iter().all(|node| plan.nodes[*node].role != Role::Host);
            (0..plan.cables.len()).filter(between).filter(|n| ends(n).contains(&switch)).collect()
        }
        None => vec![plan.cable_named(&arguments.place)?],
    };
    let action = match (arguments.kind, arguments.rate) {
        (Kind::Slow, Some(rate)) if rate.0 >= 8_000 => Action::Slow(cables, rate.0),
        (Kind::Slow, _) => {
            return Err(Failure::input("`fault slow` takes a rate of at least 8kbps, for example 20Mbps"));
        }
        (_, Some(rate)) => return Err(Failure::input(format!("found the rate {rate}, which only `fault slow` takes"))),
        (Kind::Cut, None) => Action::Cut(cables),
        (Kind::Mend, None) => Action::Mend(cables),
    };
    standing.act(action)?;
    Ok(())
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
