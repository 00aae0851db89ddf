//! One file per command.

mod against;
mod agree;
mod bench;
mod bound;
mod catalogue;
mod check;
pub(crate) mod collective;
mod collective_suite;
#[cfg(target_os = "linux")]
mod collective_testbed;
mod compare;
mod init;
pub(crate) mod nccl;
#[cfg(target_os = "linux")]
pub(crate) mod paths;
mod plan_runs;
mod record;
mod replay;
mod report;
mod reproduce;
pub(crate) mod request;
mod rerun;
mod results;
mod run;
mod shell;
mod soak;
pub(crate) mod stats;
mod stats_prometheus;
mod sweep;
#[cfg(target_os = "linux")]
pub(crate) mod testbed;
mod topology;
mod trace;
mod until_decided;
mod verify;
mod view;
mod wire;

pub use topology::topology_of;

use crate::{Failure, print_json};
use anabranch_scenario::{BackendEntry, schema};
use clap::{CommandFactory, Parser, Subcommand};

/// Simulate, compare and run load balancing for RDMA and Ultra Ethernet
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// Print only results and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario once
    Run(run::Run),
    /// Compare load balancers on the same flows
    Compare(compare::Compare),
    /// Compare the simulator with a testbed, with a verdict per scheme
    Agree(agree::Agree),
    /// Run a scenario over values of its keys
    Sweep(sweep::Sweep),
    /// Run the studies of a paper and judge its claims
    Reproduce(reproduce::Reproduce),
    /// Run every scheme on every ground, beside what its links allow
    Matrix(reproduce::Matrix),
    /// Compute what no load balancer can beat on a scenario
    Bound(bound::Bound),
    /// Re-run from a manifest and compare fingerprints
    Rerun(rerun::Rerun),
    /// Replay the feedback of a flow to its scheme or another
    Replay(replay::Replay),
    /// Check files of a result against the digests in its manifest
    Verify(verify::Verify),
    /// Rebuild DIR/report.html from the rows in DIR
    Report(report::Report),
    /// Write DIR/view.html: the fabric over time
    View(view::View),
    /// List the results below a directory
    Results(results::Results),
    /// Export a run to Perfetto
    Trace(trace::Trace),
    /// List schemes, scenarios, metrics and others
    List(catalogue::List),
    /// Explain a scheme, topology, key, metric or column
    Explain(catalogue::Explain),
    /// Write a commented scenario file
    Init(init::Init),
    /// Print the JSON Schema of scenario files
    Schema,
    /// Validate a scenario and print it with every default
    Check(check::Check),
    /// Print a topology: counts, diameter, paths
    Topology(topology::Topology),
    /// Measure packet-hops per second on this machine
    Bench(bench::Bench),
    /// Test random scenarios for equal results
    Soak(soak::Soak),
    /// Receive transfers from `anabranch send` and verify checksums
    Serve(wire::Serve),
    /// Send bytes to `anabranch serve` over the paths of a scheme
    Send(wire::Send),
    /// Run a collective over the plugin, without NCCL or a GPU
    Collective(collective::Collective),
    /// Run a rank of `collective`
    #[command(hide = true)]
    CollectiveRank,
    /// Run a case of `collective --suite`
    #[command(hide = true)]
    CollectiveCase { order: String },
    /// Install the network plugin for NCCL, or check this host for it
    Nccl(nccl::Nccl),
    /// Print or change the paths of running NCCL connections
    Stats(stats::Stats),
    /// Trace the route of each UDP port pair
    #[cfg(target_os = "linux")]
    Paths(paths::Paths),
    /// Build and use a leaf-spine of network namespaces
    #[cfg(target_os = "linux")]
    Testbed(testbed::Testbed),
    /// Print shell completions
    Completions(shell::Completions),
    /// Write manual pages
    Man(shell::Man),
}

impl Command {
    /// Returns `true` if the command forwards signals to the program that it runs.
    pub(crate) fn forwards_signals(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Command::Testbed(testbed) = self {
            return testbed.forwards_signals();
        }
        false
    }
}

pub(crate) fn execute(arguments: Arguments, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    match arguments.command {
        Command::Run(arguments) => run::run(&arguments, backends),
        Command::Compare(arguments) => compare::compare(&arguments, backends),
        Command::Agree(arguments) => agree::agree(&arguments, backends),
        Command::Sweep(arguments) => sweep::sweep(&arguments, backends),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Command::Matrix(arguments) => reproduce::matrix(&arguments),
        Command::Bound(arguments) => bound::bound(&arguments),
        Command::Rerun(arguments) => rerun::rerun(&arguments),
        Command::Replay(arguments) => replay::replay(&arguments, backends),
        Command::Verify(arguments) => verify::verify(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::View(arguments) => view::view(&arguments),
        Command::Results(arguments) => results::results(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
        Command::List(arguments) => catalogue::list(&arguments),
        Command::Explain(arguments) => catalogue::explain(&arguments),
        Command::Check(arguments) => check::check(&arguments, backends),
        Command::Topology(arguments) => topology::topology(&arguments),
        Command::Init(arguments) => init::init(&arguments),
        Command::Schema => {
            print_json(&schema::schema());
            Ok(())
        }
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Soak(arguments) => soak::soak(&arguments),
        Command::Serve(arguments) => wire::serve(&arguments),
        Command::Send(arguments) => wire::send(&arguments),
        Command::Collective(arguments) => collective::collective(&arguments),
        Command::CollectiveRank => collective::serve(),
        Command::CollectiveCase { order } => collective_suite::serve(&order),
        Command::Nccl(arguments) => nccl::nccl(&arguments),
        Command::Stats(arguments) => stats::stats(&arguments),
        #[cfg(target_os = "linux")]
        Command::Paths(arguments) => paths::paths(&arguments),
        #[cfg(target_os = "linux")]
        Command::Testbed(arguments) => testbed::testbed(arguments, backends),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments, Arguments::command()),
    }
}
