//! `testbed`: a leaf-spine of network namespaces.

mod stand;

use crate::{
    arguments::{BackendArguments, Compare, Format, Run, ScenarioArguments},
    backends::testbed::TESTBED,
    commands,
    failure::Failure,
};
use anabranch_scenario::backend::BackendEntry;
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
    /// Builds a testbed that stands until `down`
    Up(Up),
    /// Takes a testbed down
    Down(Name),
    /// Shows a testbed: hosts, ports, counters
    Status(Status),
    /// Runs a command at a host or switch and passes signals on to it
    Exec(Exec),
    /// Slows, cuts or mends links, or makes them harm packets, while traffic runs
    Fault(Fault),
    /// Captures what leaves by a port, as pcapng
    Capture(Capture),
    /// Runs one scenario on a testbed of its own, which goes with it
    Run(Run),
    /// Runs a scenario with several load balancers on testbeds and compares them
    Compare(Compare),
    /// Holds a testbed: what `up` starts
    #[command(hide = true)]
    Hold,
    /// Does something inside a testbed
    #[command(hide = true)]
    Act,
    /// Delays packets inside a testbed
    #[command(hide = true)]
    Forward,
}

impl Testbed {
    /// Returns `true` for a command that hands signals to what it runs, in a process without other threads.
    pub(crate) fn passes_signals_on(&self) -> bool {
        matches!(self.command, Command::Exec(_))
    }
}

#[derive(Debug, Args)]
struct Name {
    /// Name of the testbed
    #[arg(long, value_name = "N", default_value = "default")]
    name: String,
}

#[derive(Debug, Args)]
struct Up {
    /// The scenario whose network is built
    #[arg(long, value_name = "SCENARIO", default_value = "hopper-testbed-small")]
    fabric: String,
    /// Overrides a key of the scenario, for example topology.spines=2
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    name: Name,
    /// How the answer is printed
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
    name: Name,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Args)]
struct Exec {
    /// The host or switch, for example host0
    host: String,
    #[command(flatten)]
    name: Name,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    words: Vec<OsString>,
}

/// What is done to cables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Another rate, both ways
    Slow,
    /// No packet passes; the lower switch notices and takes another way, others do not notice
    Cut,
    /// As it was
    Mend,
    /// Lose packets at random
    Loss,
    /// Change a bit of packets at random
    Corrupt,
    /// Deliver packets twice at random
    Duplicate,
    /// Deliver packets later
    Delay,
}

#[derive(Debug, Args)]
struct Fault {
    /// What is done
    kind: Kind,
    /// A cable by its ends, for example leaf0-spine1, or a switch, which stands for all its cables; for loss, corrupt,
    /// duplicate and delay also one direction, for example 'leaf0->spine1'
    #[arg(value_name = "CABLE|SWITCH")]
    place: String,
    /// The rate of slow (20Mbps), the share of packets of loss, corrupt and duplicate (0.01 or 1%), the time of delay (5ms); 0
    /// ends the latter four
    #[arg(value_name = "VALUE")]
    value: Option<String>,
    /// How far packets deviate from the delay at most; they may overtake each other
    #[arg(long, value_name = "TIME")]
    jitter: Option<Time>,
    #[command(flatten)]
    name: Name,
}

#[derive(Debug, Args)]
struct Capture {
    /// The port, for example 'leaf0->spine1'
    port: String,
    /// The file to write, as pcapng
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replaces a file that is there
    #[arg(long)]
    replace: bool,
    /// Ends after so many packets
    #[arg(long, value_name = "N")]
    packets: Option<u64>,
    /// Ends after so many seconds [default: when it is interrupted]
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    #[command(flatten)]
    name: Name,
}

impl From<TestbedError> for Failure {
    fn from(error: TestbedError) -> Self {
        Failure::input(error.to_string())
    }
}

/// Returns the backend that `testbed run` and `testbed compare` stand for.
fn on_testbed(on: BackendArguments) -> Result<BackendArguments, Failure> {
    if !on.backend.is_empty() {
        let message = "--backend: `testbed run` and `testbed compare` run on the testbed; several backends are compared by \
                       `anabranch compare --backend sim,testbed`";
        return Err(Failure::input(message));
    }
    Ok(BackendArguments { backend: vec![TESTBED.name.to_string()], ..on })
}

/// `anabranch testbed`.
pub(crate) fn testbed(arguments: Testbed, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    match arguments.command {
        Command::Up(up) => stand::up(&up),
        Command::Down(name) => stand::down(&name),
        Command::Status(status) => stand::status(&status),
        Command::Exec(exec) => stand::exec(&exec),
        Command::Fault(fault) => stand::fault(&fault),
        Command::Capture(capture) => stand::capture(&capture),
        Command::Run(run) => commands::run::run(&Run { on: on_testbed(run.on)?, ..run }, backends),
        Command::Compare(compare) => {
            commands::compare::compare(&Compare { on: on_testbed(compare.on)?, ..compare }, backends)
        }
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
