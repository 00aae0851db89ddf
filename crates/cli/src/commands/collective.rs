//! `collective`: collectives over a network plugin for NCCL, without NCCL and without a GPU.

use super::collective_suite;
#[cfg(target_os = "linux")]
use super::collective_testbed::RankHosts;
use crate::{Failure, Format, INTERRUPTED, commands::nccl, count, note, print, print_json, table};
use anabranch_collective::{
    plan::{CollectiveKind, KINDS},
    rank,
    rank::{Element, Row},
    run,
    run::{InjectedFailure, JobError, Outcome, Settings},
};
use anabranch_results::{Inputs, OutputFile};
use anabranch_units::{Bytes, Time};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;
use std::{fmt::Write, path::PathBuf, time::Duration};

/// Element type of the buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Type {
    /// 32-bit floating point
    #[default]
    Float,
    /// 32-bit integers
    Int,
}

#[derive(Debug, Args)]
pub(crate) struct Collective {
    /// Collective: ring, tree, reduce-scatter, all-gather, all-to-all or pairs
    #[arg(value_name = "KIND", value_parser = kind, required_unless_present = "suite")]
    kind: Option<CollectiveKind>,
    /// Check a plugin against NCCL's contract instead, case by case, or these cases and faults alone; --bytes is the largest message
    #[arg(long, value_name = "CASE,...", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    #[arg(conflicts_with_all = ["kind", "ranks", "channels", "rounds", "element", "rows", "kill", "each"])]
    suite: Option<Vec<String>>,
    /// With --suite: faults on a testbed of namespaces too, which needs its privileges
    #[arg(long, requires = "suite")]
    pub(super) faults: bool,
    /// Number of ranks, each its own process
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=64))]
    ranks: u16,
    /// Buffer size of each rank, at most 4GiB
    #[arg(long, value_name = "BYTES", default_value = "4MiB")]
    bytes: Bytes,
    /// Shared object of the plugin [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    pub(super) plugin: Option<PathBuf>,
    /// Version of NCCL's interface [default: the newest that the plugin has]
    #[arg(long, value_name = "VERSION", value_parser = ["v8", "v9", "v10", "v11", "v12"])]
    abi: Option<String>,
    /// Number of channels, each with its own connections and a share of the data
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=32))]
    channels: u16,
    /// Measured rounds, after one warm-up round
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Element type
    #[arg(long = "type", value_enum, default_value_t)]
    element: Type,
    /// Write a row per message and endpoint to a file
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,
    /// Replace an existing file of --rows
    #[arg(long)]
    replace: bool,
    /// Kill a rank at a time after the first round starts, for example 2@500ms; the others must report it
    #[arg(long, value_name = "RANK@TIME", value_parser = injected_failure)]
    kill: Option<(usize, Time)>,
    /// Build the network of a scenario from namespaces and run each rank on one of its hosts, with the scenario's [load_balancer],
    /// [transport] and [wire]; environment variables take precedence
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "SCENARIO", conflicts_with = "suite")]
    testbed: Option<String>,
    /// Set a key of that scenario, for example load_balancer.scheme=ecmp; repeatable
    #[cfg(target_os = "linux")]
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "testbed")]
    set: Vec<String>,
    /// Run each rank on a host of a running testbed (`anabranch testbed up`)
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["testbed", "suite"])]
    at: Option<String>,
    /// Set an environment variable per rank, values in turn, for example ANABRANCH_IFNAME==eth0;=eth1
    #[arg(long, value_name = "VARIABLE=VALUES", value_parser = each)]
    each: Vec<Each>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

impl Collective {
    /// Requested version of the interface.
    pub(super) fn version(&self) -> Option<u32> {
        self.abi.as_ref().and_then(|abi| abi[1..].parse().ok())
    }
}

pub(super) fn own_program() -> Result<String, Failure> {
    let exe = std::env::current_exe().map_err(|error| Failure::Broken(error.to_string()))?;
    Ok(exe.display().to_string())
}

/// Variable with values that ranks take in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Each {
    name: String,
    values: Vec<String>,
}

/// Counters of a port from a leaf to a spine during a job.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Uplink {
    pub(super) port: String,
    /// Bytes sent, with Ethernet headers.
    pub(super) bytes: u64,
    pub(super) packets: u64,
    /// Packets dropped; `None` if unknown.
    pub(super) drops: Option<u64>,
    /// Packets marked; `None` if unknown.
    pub(super) marks: Option<u64>,
}

fn kind(text: &str) -> Result<CollectiveKind, String> {
    let found = KINDS.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
    found.ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        let near = anabranch_settings::nearest(text, names.iter().copied());
        let hint = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
        format!("expected one of {}{hint}", names.join(", "))
    })
}

fn injected_failure(text: &str) -> Result<(usize, Time), String> {
    let expected = || "expected a rank and a time, for example 2@500ms".to_string();
    let (rank, time) = text.split_once('@').ok_or_else(expected)?;
    Ok((rank.parse().map_err(|_| expected())?, time.parse().map_err(|_| expected())?))
}

fn each(text: &str) -> Result<Each, String> {
    let (name, values) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
        "expected a variable and its values with semicolons, for example ANABRANCH_IFNAME==eth0;=eth1".to_string()
    })?;
    Ok(Each { name: name.into(), values: values.split(';').map(String::from).collect() })
}

pub(crate) fn collective(arguments: &Collective) -> Result<(), Failure> {
    let bytes = usize::try_from(arguments.bytes.0).ok().filter(|bytes| *bytes <= 4 << 30 && bytes.is_multiple_of(4));
    let bytes = bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        Failure::input(format!("--bytes: found {}, expected whole words of 4 B, up to 4GiB", arguments.bytes))
    })?;
    let Some(kind) = arguments.kind else {
        return collective_suite::suite(arguments, arguments.suite.as_deref().unwrap_or_default(), bytes);
    };
    let inputs = Inputs::of(arguments.plugin.clone());
    let rows_file =
        arguments.rows.as_ref().map(|path| OutputFile::new(path, arguments.replace, &inputs)).transpose()?;
    let ranks = usize::from(arguments.ranks);
    let kill = match arguments.kill {
        Some((rank, _)) if rank >= ranks => {
            return Err(Failure::input(format!("--kill: found rank {rank}, expected 0 to {}", ranks - 1)));
        }
        kill => kill.map(|(rank, after)| InjectedFailure {
            rank,
            after: Duration::from_nanos(after.ps() / 1000),
            pause: None,
        }),
    };
    let mut settings = Settings {
        command: vec![own_program()?, "collective-rank".into()],
        places: Vec::new(),
        variables: Vec::new(),
        without: Vec::new(),
        plugin: nccl::plugin(arguments.plugin.as_deref())?,
        abi: arguments.version(),
        kind,
        ranks,
        bytes,
        channels: usize::from(arguments.channels),
        rounds: arguments.rounds as usize,
        element: match arguments.element {
            Type::Float => Element::Float,
            Type::Int => Element::Int,
        },
        rows: arguments.rows.is_some(),
        injected_failure: kill,
    };
    #[cfg(target_os = "linux")]
    let rank_hosts = match (&arguments.testbed, &arguments.at) {
        (Some(scenario), _) => Some(RankHosts::build(scenario, &arguments.set)?),
        (None, Some(name)) => Some(RankHosts::find(name)?),
        (None, None) => None,
    };
    #[cfg(target_os = "linux")]
    if let Some(rank_hosts) = &rank_hosts {
        (settings.places, settings.variables) = (rank_hosts.command_prefixes(ranks)?, rank_hosts.variables());
    }
    settings.places.resize(ranks, Vec::new());
    for Each { name, values } in &arguments.each {
        for (rank, place) in settings.places.iter_mut().enumerate() {
            place.extend(["env".into(), format!("{name}={}", values[rank % values.len()]).into()]);
        }
    }
    note(&format!("{} ranks with {}", ranks, settings.plugin.display()));
    let outcome = run::run(&settings, &INTERRUPTED, &mut |_| ()).map_err(|error| match error {
        JobError::Stopped => Failure::Interrupted,
        JobError::Failed { .. } | JobError::Rank { .. } => Failure::input(error.to_string()),
        JobError::Wrong { .. } | JobError::Timeout => Failure::Broken(error.to_string()),
    })?;
    if let Some(file) = rows_file {
        let rows =
            outcome.rounds.iter().enumerate().flat_map(|(round, of)| of.rows.iter().map(move |row| (round, row)));
        file.write_all(csv(rows).as_bytes())?;
    }
    #[cfg(target_os = "linux")]
    let uplinks = rank_hosts.map(|rank_hosts| rank_hosts.uplinks()).transpose()?.unwrap_or_default();
    #[cfg(not(target_os = "linux"))]
    let uplinks: Vec<Uplink> = Vec::new();
    print_outcome(&settings, &outcome, &uplinks, arguments.format);
    // The remaining ranks must have noticed and closed.
    match settings.injected_failure {
        Some(_) if outcome.closed != ranks - 1 => {
            Err(Failure::Broken("a remaining rank has not closed its connections".into()))
        }
        _ => Ok(()),
    }
}

fn csv<'a>(rows: impl Iterator<Item = (usize, &'a Row)>) -> String {
    let mut text = String::from(
        "round,rank,channel,peer,direction,step,bytes,start_ns,end_ns,packets,retransmitted,moves,paths\n",
    );
    for (round, row) in rows {
        let Row { rank, channel, peer, sent, step, bytes, start_ns, end_ns, counters } = row;
        // Receivers have no counts.
        let counters = counters.map_or_else(
            || ",,,".into(),
            |counters| format!("{},{},{},{}", counters.packets, counters.retransmitted, counters.moves, counters.paths),
        );
        let direction = if *sent { "send" } else { "receive" };
        let line =
            writeln!(text, "{round},{rank},{channel},{peer},{direction},{step},{bytes},{start_ns},{end_ns},{counters}");
        debug_assert!(line.is_ok(), "writing to a string");
    }
    text
}

fn print_outcome(settings: &Settings, outcome: &Outcome, uplinks: &[Uplink], format: Format) {
    let bandwidth = outcome.bus_bandwidth(settings);
    if format == Format::Json {
        let rounds: Vec<u64> = outcome.rounds.iter().map(|round| round.nanoseconds).collect();
        let failures: Vec<_> = outcome
            .failures
            .iter()
            .map(|(rank, reason, nanoseconds)| json!({ "rank": rank, "why": reason, "after_ns": nanoseconds }))
            .collect();
        return print_json(&json!({
            "collective": settings.kind.name(),
            "ranks": settings.ranks,
            "bytes": settings.bytes,
            "channels": settings.channels,
            "abi": outcome.abi,
            "device": outcome.device.0,
            "device_mbps": outcome.device.1,
            "rounds_ns": rounds,
            "bus_bandwidth_bps": bandwidth.is_finite().then_some(bandwidth),
            "wrong_elements": 0,
            "failures": failures,
            "closed": outcome.closed,
            "uplinks": uplinks,
        }));
    }
    let row = |what: &str, value: String| vec![what.to_string(), value];
    let (name, speed) = &outcome.device;
    let mut rows = vec![
        row(
            "collective",
            format!("{}, {} ranks, {} B each", settings.kind.name(), settings.ranks, count(settings.bytes as u64)),
        ),
        row("plugin", format!("ncclNetPlugin_v{}, device {name} ({speed} Mbit/s)", outcome.abi)),
    ];
    if !outcome.rounds.is_empty() {
        let took = Time::from_ns((outcome.seconds() * 1e9) as u64);
        rows.push(row("median round", format!("{} of {} rounds", took.rounded(), outcome.rounds.len())));
        rows.push(row("bus bandwidth", format!("{:.1} Mbit/s", bandwidth / 1e6)));
        rows.push(row("elements", "all correct".into()));
    }
    for (rank, reason, nanoseconds) in &outcome.failures {
        rows.push(row(&format!("rank {rank}"), format!("{reason}, after {:.2} s", *nanoseconds as f64 / 1e9)));
    }
    if !outcome.failures.is_empty() {
        rows.push(row("closed", format!("{} of {} ranks", outcome.closed, settings.ranks)));
    }
    print(&table(&["what", "value"], &rows));
    if !uplinks.is_empty() {
        let row = |of: &Uplink| {
            let numbers = [Some(of.bytes), Some(of.packets), of.drops, of.marks];
            let numbers = numbers.map(|number| number.map_or_else(|| "-".into(), count));
            [vec![of.port.clone()], numbers.to_vec()].concat()
        };
        let rows: Vec<_> = uplinks.iter().map(row).collect();
        print(&format!("\n{}", table(&["port", "bytes", "packets", "drops", "marks"], &rows)));
    }
}

pub(crate) fn serve() -> Result<(), Failure> {
    rank::serve(std::io::BufReader::new(std::io::stdin()), std::io::stdout())
        .map_err(|error| Failure::Broken(error.to_string()))
}
