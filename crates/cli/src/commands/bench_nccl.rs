//! `bench --nccl`: cost of messages over the plugin for NCCL, beside the wire bench and plain sockets.

use super::{bench::Bench, nccl};
use crate::{
    arguments::Format,
    failure::Failure,
    printing::{note, print, print_json, table, width, wrapped},
};
use anabranch_bench::messages::{self as bench, Numbers, Quantity};
use anabranch_bench::wire::{SendMethod, carry};
use anabranch_scenario::machine::{COMMIT, VERSION, machine};
use clap::Args;
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Bytes of each goodput measurement.
const BYTES: u64 = 128 << 20;
const MANY_PATHS: &str = "64";
/// Settings of the wire bench: the same packets, window and ACKs.
const AS_WIRE: &str = "wire.rate=400Gbps;wire.payload=4096B;wire.early_loss=never;transport.congestion_control=none;\
                       transport.window=536832B;transport.ack_every=16";

/// Quantity of the bench, run in its own process with its own environment variables.
#[derive(Debug, Args)]
pub(crate) struct BenchPart {
    /// Quantity to measure, as JSON
    part: String,
    /// Two copies of the plugin
    copies: Vec<PathBuf>,
}

pub(crate) fn part(arguments: &BenchPart) -> Result<(), Failure> {
    let broken = |error: String| Failure::Broken(error);
    let part: Quantity = serde_json::from_str(&format!("\"{}\"", arguments.part)).map_err(|e| broken(e.to_string()))?;
    let [one, two] = &arguments.copies[..] else {
        return Err(broken("bench-part: expected two copies of the plugin".into()));
    };
    let numbers = bench::measure(part, [one, two], BYTES).map_err(|error| broken(error.to_string()))?;
    print_json(&json!(numbers));
    Ok(())
}

/// Two copies of the plugin, which one process can load together.
struct Copies(#[expect(dead_code, reason = "dropped, it is removed")] tempfile::TempDir, [PathBuf; 2]);

impl Copies {
    fn of(plugin: &Path) -> Result<Self, Failure> {
        // The directory must be private, since code is loaded from it.
        let made = tempfile::Builder::new().prefix("anabranch-bench-").tempdir();
        let folder = made.map_err(|error| Failure::input(format!("a temporary folder: {error}")))?;
        let failed = |error: std::io::Error| Failure::input(format!("{}: {error}", folder.path().display()));
        let copies = ["one.so", "two.so"].map(|name| folder.path().join(name));
        copies.iter().try_for_each(|copy| fs::copy(plugin, copy).map(drop)).map_err(failed)?;
        Ok(Copies(folder, copies))
    }

    fn measure(&self, part: &str, variables: &[(&str, &str)]) -> Result<Numbers, Failure> {
        let failed = |reason: String| Failure::Broken(format!("{part}: {reason}"));
        let exe = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(exe);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANABRANCH_")) {
            command.env_remove(name);
        }
        command.env("ANABRANCH_IFNAME", "=lo").envs(variables.iter().copied());
        let output =
            command.args(["bench-part", part]).args(&self.1).output().map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().into()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
    }
}

/// A figure: what it is, its unit, what is wanted of it, and its value in each repetition.
struct Figure {
    name: &'static str,
    unit: &'static str,
    /// At least, or at most.
    target: Option<(bool, f64)>,
    values: Vec<f64>,
}

impl Figure {
    fn median(&self) -> f64 {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

pub(crate) fn bench(arguments: &Bench) -> Result<(), Failure> {
    let copies = Copies::of(&nccl::plugin(arguments.plugin.as_deref())?)?;
    let mut figures = [
        ("goodput per CPU second, one path", "Gbit", None),
        ("the same of the wire bench", "Gbit", None),
        ("ratio", "", Some((true, 0.9))),
        ("goodput per CPU second, sprayed over eight", "Gbit", None),
        ("the same of the wire bench", "Gbit", None),
        ("ratio", "", Some((true, 0.9))),
        ("round trip of 8 bytes", "us", None),
        ("the same over bare sockets", "us", None),
        ("ratio", "", Some((false, 1.3))),
        ("poll of an unfinished request, immediately after another", "ns", Some((false, 100.0))),
        ("memory of a connection with 64 paths, both endpoints", "kB", Some((false, 2.0 * 1048.576))),
        ("threads of a rank besides NCCL's", "", Some((false, 1.0))),
        ("their CPU share while NCCL polls", "%", None),
    ]
    .map(|(name, unit, target)| Figure { name, unit, target, values: Vec::new() });
    for repetition in 1..=arguments.repetitions {
        note(&format!(
            "repetition {repetition} of {}: the plugin, the wire bench, bare sockets",
            arguments.repetitions
        ));
        let mut values = Vec::new();
        for (method, scheme, run) in [(SendMethod::OnePath, "ecmp", "15"), (SendMethod::Spray, "ops", "1")] {
            let set = format!("{AS_WIRE};wire.run_length={run}");
            let ours = copies.measure("goodput", &[("ANABRANCH_SCHEME", scheme), ("ANABRANCH_SET", &set)])?;
            let wire = carry(method, BYTES).map_err(|error| Failure::Broken(error.to_string()))?;
            let ours = ours.bytes as f64 * 8e-9 / ours.cpu_seconds;
            let wire = wire.map_or(f64::NAN, |wire| 8e-9 * wire.bytes_per_cpu_second());
            values.extend([ours, wire, ours / wire]);
        }
        let trip = copies.measure("round-trip", &[])?;
        let (ours, bare) = (trip.round_trip_ns / 1e3, trip.bare_ns / 1e3);
        values.extend([ours, bare, ours / bare]);
        let waiting = copies.measure("waiting", &[])?;
        let memory = copies.measure("memory", &[("ANABRANCH_PATHS", MANY_PATHS)])?;
        values.extend([waiting.poll_ns, memory.connection_bytes / 1e3, memory.helpers, waiting.helper_share * 100.0]);
        figures.iter_mut().zip(values).for_each(|(figure, value)| figure.values.push(value));
    }
    match arguments.format {
        Format::Json => {
            let one = |figure: &Figure| {
                json!({
                    "name": figure.name,
                    "unit": figure.unit,
                    "median": figure.median(),
                    "at_least": figure.target.filter(|(least, _)| *least).map(|(_, target)| target),
                    "at_most": figure.target.filter(|(least, _)| !*least).map(|(_, target)| target),
                    "all": figure.values,
                })
            };
            print_json(&json!({
                "version": VERSION,
                "commit": COMMIT,
                "machine": machine(),
                "repetitions": arguments.repetitions,
                "figures": figures.iter().map(one).collect::<Vec<_>>(),
            }));
        }
        Format::Table => print(&text(&figures)),
    }
    Ok(())
}

fn text(figures: &[Figure]) -> String {
    let number = |value: f64| if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") };
    let rows: Vec<Vec<String>> = figures
        .iter()
        .map(|figure| {
            let wanted = figure.target.map_or_else(String::new, |(least, target)| {
                format!("{} {}", if least { "at least" } else { "at most" }, number(target))
            });
            vec![figure.name.into(), number(figure.median()), figure.unit.into(), wanted]
        })
        .collect();
    let legend = "Medians over the loopback interface; ratios are within one repetition. Both endpoints are threads of one process, each with a copy of the plugin; CPU time is that of the process, polls without progress included.";
    table(&["quantity", "median", "unit", "target"], &rows) + &format!("\n{}\n", wrapped(legend, width()))
}
