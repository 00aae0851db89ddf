//! Arguments that several commands share. Those of one command are beside it.

use crate::complete;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Format of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables
    #[default]
    Table,
    /// One JSON object on standard output
    Json,
}

/// Display of progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressMode {
    /// A status line on a terminal, else at most one line every 10 s
    #[default]
    Auto,
    /// None
    Never,
}

/// The scenario and changes to it.
#[derive(Debug, Args)]
pub(crate) struct ScenarioArguments {
    /// Scenario file, or name of a ready-made scenario (`anabranch list scenarios`)
    #[arg(value_name = "SCENARIO", add = complete::scenarios())]
    pub(crate) scenario: String,
    /// Set a key of the scenario, for example topology.link_rate=100Gbps or workload.0.load=0.8; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", add = complete::keys())]
    pub(crate) set: Vec<String>,
    /// Random seed [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Maximum of `--threads`: more than any machine has cores, fewer than a process may start.
pub(crate) const MAX_THREADS: i64 = 1024;

/// Options of a run: threads, results, progress.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Number of threads [default: the machine's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS))]
    pub(crate) threads: Option<u16>,
    /// Directory for results [default: results/SCENARIO-HASH]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Progress output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: ProgressMode,
}

/// Backends of a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct BackendArguments {
    /// Backend: sim, testbed, or several separated by commas, which are compared [default: sim; of agree: sim,testbed; of
    /// testbed run and testbed compare: testbed]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) backend: Vec<String>,
    /// Shared object of the NCCL plugin, for workloads of kind `nccl` on a testbed [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) plugin: Option<PathBuf>,
}

/// Entries and seeds of a comparison.
#[derive(Debug, Args)]
pub(crate) struct EntryArguments {
    /// Load balancers, separated by commas [default: `schemes` of [compare]]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', add = complete::schemes())]
    pub(crate) schemes: Vec<String>,
    /// Add an entry to the comparison, the scenario with other settings, for example short='load_balancer.prime.p_ecn=8'; repeatable
    #[arg(long = "variant", value_name = "NAME=KEY=VALUE;...")]
    pub(crate) variants: Vec<String>,
    /// Number of seeds, counting up from the scenario's [default: `seeds` of [compare], else 1]
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<u64>,
    /// Load balancer or variant that the others are compared with [default: the first]
    #[arg(long, value_name = "A", add = complete::schemes())]
    pub(crate) baseline: Option<String>,
}

/// Runs of a sweep to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Again {
    /// All runs
    All,
    /// Failed runs
    Failed,
}
