//! `testbed`: a leaf-spine of network namespaces.

mod lifecycle;

use crate::{
    BackendArguments, Failure, Format, ScenarioArguments,
    backends::testbed::TESTBED,
    commands::{
        compare::{Compare, compare},
        run::{Run, run},
    },
};
use anabranch_scenario::BackendEntry;
use anabranch_testbed::{TestbedError, standing};
use anabranch_units::Time;
use clap::{Args, Subcommand, ValueEnum};
use std::{ffi::OsString, path::PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Testbed {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build a testbed that stays until `down`
    Up(Up),
    /// Remove a testbed
    Down(TestbedName),
    /// Print hosts, ports and counters of a testbed
    Status(Status),
    /// Run a command on a host or switch; signals are forwarded
    Exec(Exec),
    /// Degrade, disconnect or restore links
    Fault(Fault),
    /// Capture packets that leave a port, as pcapng
    Capture(Capture),
    /// Run a scenario on its own testbed
    Run(Run),
    /// Compare load balancers on the same flows, each on its own testbed
    Compare(Compare),
    /// Hold a testbed, in the process that `up` starts
    #[command(hide = true)]
    Hold,
    /// Execute an action inside a testbed
    #[command(hide = true)]
    Act,
    /// Delay packets inside a testbed
    #[command(hide = true)]
    Forward,
}

impl Testbed {
    /// Returns `true` for a command that forwards signals to the program that it runs, in a process without other threads.
    pub(crate) fn forwards_signals(&self) -> bool {
        matches!(self.command, Command::Exec(_))
    }
}

#[derive(Debug, Args)]
struct TestbedName {
    /// Name of the testbed
    #[arg(long, value_name = "N", default_value = "default")]
    name: String,
}

#[derive(Debug, Args)]
struct Up {
    /// Scenario whose network is built
    #[arg(long, value_name = "SCENARIO", default_value = "hopper-testbed-small")]
    fabric: String,
    /// Set a key of the scenario, for example topology.spines=2; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    name: TestbedName,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Up {
    fn scenario(&self) -> ScenarioArguments {
        ScenarioArguments { scenario: self.fabric.clone(), set: self.set.clone(), seed: None }
    }
}

#[derive(Debug, Args)]
struct Status {
    #[command(flatten)]
    name: TestbedName,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Args)]
struct Exec {
    /// Host or switch, for example host0
    host: String,
    #[command(flatten)]
    name: TestbedName,
    /// Command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    words: Vec<OsString>,
}

/// Faults of cables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FaultKind {
    /// Change the rate, both directions
    Slow,
    /// Drop all packets; only the lower switch notices and uses other paths
    Cut,
    /// Restore rate and link
    Mend,
    /// Drop packets at random
    Loss,
    /// Flip a bit of packets at random
    Corrupt,
    /// Duplicate packets at random
    Duplicate,
    /// Delay packets
    Delay,
}

#[derive(Debug, Args)]
struct Fault {
    /// Kind of fault
    kind: FaultKind,
    /// Cable by its two nodes, for example leaf0-spine1, or a switch for all its cables; for loss, corrupt, duplicate and delay
    /// also one direction, for example 'leaf0->spine1'
    #[arg(value_name = "CABLE|SWITCH")]
    place: String,
    /// Rate for slow (20Mbps), share of packets for loss, corrupt and duplicate (0.01 or 1%), time for delay (5ms); 0 ends the
    /// last four
    #[arg(value_name = "VALUE")]
    value: Option<String>,
    /// Maximum deviation from the delay; packets may overtake each other
    #[arg(long, value_name = "TIME")]
    jitter: Option<Time>,
    #[command(flatten)]
    name: TestbedName,
}

#[derive(Debug, Args)]
struct Capture {
    /// Port, for example 'leaf0->spine1'
    port: String,
    /// File to write, as pcapng
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    replace: bool,
    /// Stop after this number of packets
    #[arg(long, value_name = "N")]
    packets: Option<u64>,
    /// Stop after this number of seconds [default: when interrupted]
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    #[command(flatten)]
    name: TestbedName,
}

impl From<TestbedError> for Failure {
    fn from(error: TestbedError) -> Self {
        Failure::input(error.to_string())
    }
}

fn on_testbed(on: BackendArguments) -> Result<BackendArguments, Failure> {
    if !on.backend.is_empty() {
        let message = "--backend: `testbed run` and `testbed compare` use the testbed; compare several backends with \
                                              `anabranch compare SCENARIO --backend sim,testbed`";
        return Err(Failure::input(message));
    }
    Ok(BackendArguments { backend: vec![TESTBED.name.to_string()], ..on })
}

pub(crate) fn testbed(arguments: Testbed, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    match arguments.command {
        Command::Up(up) => lifecycle::up(&up),
        Command::Down(name) => lifecycle::down(&name),
        Command::Status(status) => lifecycle::status(&status),
        Command::Exec(exec) => lifecycle::exec(&exec),
        Command::Fault(fault) => lifecycle::fault(&fault),
        Command::Capture(capture) => lifecycle::capture(&capture),
        Command::Run(arguments) => run(&Run { on: on_testbed(arguments.on)?, ..arguments }, backends),
        Command::Compare(arguments) => compare(&Compare { on: on_testbed(arguments.on)?, ..arguments }, backends),
        Command::Hold => {
            standing::hold();
            Ok(())
        }
        Command::Act => {
            standing::act();
            Ok(())
        }
        Command::Forward => {
            anabranch_testbed::forward();
            Ok(())
        }
    }
}
