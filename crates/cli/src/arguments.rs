//! The command line: commands, options, help texts.

#![allow(clippy::doc_markdown, reason = "help is printed as it is written")]

use crate::complete;
use anabranch_units::Bytes;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::{net::IpAddr, path::PathBuf};

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
    Run(Run),
    /// Compare load balancers on the same flows
    Compare(Compare),
    /// Compare the simulator with a testbed, with a verdict per scheme
    Agree(Agree),
    /// Run a scenario over values of its keys
    Sweep(Sweep),
    /// Run the studies of a paper and judge its claims
    Reproduce(Reproduce),
    /// Compute what no load balancer can beat on a scenario
    Bound(Bound),
    /// Re-run from a manifest and compare fingerprints
    Rerun(Rerun),
    /// Check files of a result against the digests in its manifest
    Verify(Verify),
    /// Rebuild DIR/report.html from the rows in DIR
    Report(Report),
    /// Write DIR/view.html: the fabric over time
    View(View),
    /// List the results below a directory
    Results(Results),
    /// Export a run to Perfetto
    Trace(Trace),
    /// List schemes, scenarios, metrics and others
    List(List),
    /// Explain a scheme, topology, key, metric or column
    Explain(Explain),
    /// Write a commented scenario file
    Init(Init),
    /// Print the JSON Schema of scenario files
    Schema,
    /// Validate a scenario and print it with every default
    Check(Check),
    /// Print a topology: counts, diameter, paths
    Topology(Topology),
    /// Measure packet-hops per second on this machine
    Bench(Bench),
    /// Test random scenarios for equal results
    Soak(Soak),
    /// Receive transfers from `anabranch send` and verify checksums
    Serve(Serve),
    /// Send bytes to `anabranch serve` over the paths of a scheme
    Send(Send),
    /// Run a collective over the plugin, without NCCL or a GPU
    Collective(crate::commands::collective::Collective),
    /// Run a rank of `collective`
    #[command(hide = true)]
    CollectiveRank,
    /// Run a part of `bench --nccl`
    #[command(hide = true)]
    BenchPart(crate::commands::bench_nccl::BenchPart),
    /// Install the network plugin for NCCL
    Nccl(crate::commands::nccl::Nccl),
    /// Print or change the paths of running NCCL connections
    Stats(crate::commands::stats::Stats),
    /// Trace the route of each UDP port pair
    #[cfg(target_os = "linux")]
    Paths(crate::commands::paths::Paths),
    /// Build and use a leaf-spine of network namespaces
    #[cfg(target_os = "linux")]
    Testbed(crate::commands::testbed::Testbed),
    /// Print shell completions
    Completions(Completions),
    /// Write manual pages
    Man(Man),
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

/// Format of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables
    #[default]
    Table,
    /// One JSON object on standard output
    Json,
}

/// What figures are drawn for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// The page alone
    #[default]
    Page,
    /// Column and double-column width of ACM and IEEE, 8 to 9 pt, without titles
    Paper,
    /// Slides of 16:9, 16 to 18 pt, without titles
    Slides,
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
const MAX_THREADS: i64 = 1024;

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

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    /// Replace another scenario's results in the directory, and files of --pcap
    #[arg(long)]
    pub(crate) replace: bool,
    /// Capture packets that leave over a link, as pcapng, for example 'leaf0->spine0=up.pcapng'; repeatable
    #[arg(long, value_name = "LINK=FILE")]
    pub(crate) pcap: Vec<String>,
    /// Exit with 1 if a flow did not finish
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
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

#[derive(Debug, Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    #[command(flatten)]
    pub(crate) entries: EntryArguments,
    /// Add seeds until each difference to the baseline is significant, or surely within this share of it, for example 5%; --seeds: seeds of the first test [default: 5]
    #[arg(long, value_name = "SHARE", conflicts_with = "again")]
    pub(crate) until_decided: Option<String>,
    /// Maximum number of seeds with --until-decided
    #[arg(long, value_name = "N", default_value_t = 40, requires = "until_decided")]
    pub(crate) max_seeds: u64,
    /// Repeat finished runs too
    #[arg(long)]
    pub(crate) again: bool,
    /// Replace tables of another scenario in the directory; its runs stay
    #[arg(long)]
    pub(crate) replace: bool,
    /// Exit with 1 if a flow did not finish
    #[arg(long)]
    pub(crate) strict: bool,
    /// Add what no load balancer can beat and a fabric without contention: columns over bound and over reference
    #[arg(long)]
    pub(crate) bound: bool,
    /// Exit with 1 unless this holds, for example 'prime.slowdown_p99 < 0.9 * ecmp.slowdown_p99'; repeatable
    #[arg(long = "assert", value_name = "EXPR")]
    pub(crate) assertions: Vec<String>,
    /// Print what changed since the comparison or run in DIR, per scheme and metric
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Agree {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    #[command(flatten)]
    pub(crate) entries: EntryArguments,
    /// Metric to judge, for example slowdown_p99 [default: completion where flows wait for each other, else fct_mean]
    #[arg(long, value_name = "NAME", add = complete::metrics())]
    pub(crate) metric: Option<String>,
    /// Repeat finished runs too
    #[arg(long)]
    pub(crate) again: bool,
    /// Replace tables of another scenario in the directory; its runs stay
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// Runs of a sweep to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Again {
    /// All runs
    All,
    /// Failed runs
    Failed,
}

#[derive(Debug, Args)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    /// Key and its values: KEY=A,B,... or KEY=A..B:STEP; repeatable
    #[arg(long, value_name = "KEY=VALUES", add = complete::keys())]
    pub(crate) over: Vec<String>,
    /// Combine the first values of all keys, then the second values, instead of every combination
    #[arg(long)]
    pub(crate) zip: bool,
    #[command(flatten)]
    pub(crate) entries: EntryArguments,
    /// Estimate time and memory from one run, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the runs with their hashes, and run nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) list: bool,
    /// Run share K of N of the runs, K from 1
    #[arg(long, value_name = "K/N", conflicts_with_all = ["dry_run", "list"])]
    pub(crate) task: Option<String>,
    /// Address of a Dask scheduler whose workers do the runs (Python package only)
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["dry_run", "list", "task"])]
    pub(crate) dask: Option<String>,
    /// Repeat finished runs: all, or the failed ones
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all", value_name = "WHICH")]
    pub(crate) again: Option<Again>,
    /// Replace tables and figures of another sweep in the directory; its runs stay
    #[arg(long)]
    pub(crate) replace: bool,
    /// Exit with 1 if a flow did not finish
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// Size of the studies of `reproduce`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scale {
    /// Every claim in minutes, at smaller sizes
    #[default]
    Quick,
    /// The papers' sizes
    Full,
}

/// Help of `--out` where all commands share one store.
const OUT_OF_REPRODUCE: &str = "Directory for results [default: results/reproduce]";

#[derive(Debug, Args)]
#[command(mut_arg("out", |out| out.help(OUT_OF_REPRODUCE)))]
pub(crate) struct Reproduce {
    /// Paper: hopper, hf2t, prime, spritz, or all
    #[arg(value_name = "PAPER", add = complete::papers())]
    pub(crate) paper: String,
    /// Figure or claim, by its name in `--list` [default: all]
    #[arg(value_name = "FIGURE")]
    pub(crate) figure: Option<String>,
    /// Size of the studies
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scale: Scale,
    /// Restrict to claims and figures that need no other studies than these
    #[arg(long, value_name = "STUDY,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Print studies, figures and claims, and run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Print missing runs with an estimate of their time, and run nothing
    #[arg(long, conflicts_with = "list")]
    pub(crate) dry_run: bool,
    /// Judge and draw finished runs, and run nothing
    #[arg(long, conflicts_with_all = ["list", "dry_run"])]
    pub(crate) no_run: bool,
    /// Accept finished runs of other commits of this version
    #[arg(long)]
    pub(crate) any_commit: bool,
    /// Repeat finished runs: all, or the failed ones
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all", value_name = "WHICH")]
    pub(crate) again: Option<Again>,
    /// Read claim files from DIR/PAPER [default: those of this program]
    #[arg(long, value_name = "DIR")]
    pub(crate) claims: Option<PathBuf>,
    /// For maintainers: store the rows in claims/rows and write the tables of docs, in the repository DIR
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = ".", value_name = "DIR")]
    pub(crate) write_docs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Bound {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Number of seeds, counting up from the scenario's; values are means
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
    /// Simulate the reference too: the same flows with links between switches 16 times as fast
    #[arg(long)]
    pub(crate) reference: bool,
    /// Number of threads of the reference [default: the machine's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS))]
    pub(crate) threads: Option<u16>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Progress output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: ProgressMode,
}

#[derive(Debug, Args)]
pub(crate) struct Rerun {
    /// Directory written by `run`, `compare` or `sweep`
    pub(crate) dir: PathBuf,
    /// One of its runs: SCHEME/seedN of a comparison, a hash of a sweep [default: all]
    pub(crate) run: Option<String>,
    /// Number of threads [default: the machine's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS))]
    pub(crate) threads: Option<u16>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Progress output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: ProgressMode,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Directory written by `run`, `compare`, `sweep` or `reproduce`
    pub(crate) dir: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// File to write; `-` for standard output
    #[arg(default_value = "scenario.toml")]
    pub(crate) file: PathBuf,
    /// Write every key with its meaning and default
    #[arg(long, conflicts_with = "from")]
    pub(crate) all: bool,
    /// Write a ready-made scenario (`anabranch list scenarios`)
    #[arg(long, value_name = "NAME", add = complete::ready_made())]
    pub(crate) from: Option<String>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell; for bash: source <(anabranch completions bash)
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Directory for the pages, one file per command
    #[arg(default_value = "man")]
    pub(crate) dir: PathBuf,
    /// Replace other files of these names
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Trace {
    /// Directory of a run
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// File for Perfetto (ui.perfetto.dev): flows and phases of collectives as slices, time series as counters
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) replace: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Directory written by `run`, `compare` or `sweep`
    pub(crate) dir: PathBuf,
    /// Also draw figures for ACM and IEEE columns (SVG, PDF) or for slides (SVG, PDF, PNG), with their captions
    #[arg(long, value_enum, default_value_t)]
    pub(crate) style: Style,
    /// Add figures of all workloads pooled
    #[arg(long)]
    pub(crate) all_flows: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct View {
    /// Directory written by `run` or `compare`, or a run of a sweep
    pub(crate) dir: PathBuf,
    /// Second directory, shown beside the first
    pub(crate) beside: Option<PathBuf>,
    /// Load balancers of a comparison [default: its first two]
    #[arg(long, value_name = "A[,B]", value_delimiter = ',')]
    pub(crate) schemes: Vec<String>,
    /// Seed of a comparison [default: the first that both have]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Run again, with series of links and a trace of the slowest flow of each workload, what was run without them; fingerprints must be equal
    #[arg(long)]
    pub(crate) record: bool,
    /// File to write [default: DIR/view.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace an existing file of --out
    #[arg(long)]
    pub(crate) replace: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Results {
    /// Directory to search, with all below it
    #[arg(default_value = "results")]
    pub(crate) dir: PathBuf,
    /// File of the index page [default: DIR/index.html, unless DIR is a result itself]
    #[arg(long, value_name = "FILE")]
    pub(crate) index: Option<PathBuf>,
    /// Replace an existing file that is no index page
    #[arg(long)]
    pub(crate) replace: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Catalogues of `list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Catalogue {
    /// Load balancers: pairs by name, host sides, switch sides
    Schemes,
    /// Kinds of topology
    Topologies,
    /// Transports and their congestion controls
    Transports,
    /// Kinds of workload and flow-size distributions
    Workloads,
    /// Ready-made scenarios
    Scenarios,
    /// Metrics of comparisons and sweeps
    Metrics,
    /// Columns and keys of result files
    Columns,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Catalogue to list [default: the catalogues]
    #[arg(value_enum)]
    pub(crate) what: Option<Catalogue>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Name as printed by `anabranch list`, section or key of a scenario, column of a result file, or a word of the field such as allreduce
    #[arg(value_name = "NAME", add = complete::terms())]
    pub(crate) name: String,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Topology {
    /// Scenario file, or name of a ready-made scenario (`anabranch list scenarios`)
    #[arg(value_name = "SCENARIO", required_unless_present = "hosts", add = complete::scenarios())]
    pub(crate) scenario: Option<String>,
    /// Set a key of the scenario, for example topology.link_rate=100Gbps; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", add = complete::keys())]
    pub(crate) set: Vec<String>,
    /// Random seed [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Propose fabrics with about this number of hosts, instead of a scenario
    #[arg(long, value_name = "N", conflicts_with_all = ["scenario", "set", "seed", "paths", "export", "replace"])]
    pub(crate) hosts: Option<u64>,
    /// Tiers of switches to propose: 2 or 3 [default: both]
    #[arg(long, value_name = "N", requires = "hosts")]
    pub(crate) tiers: Option<u64>,
    /// Hosts per uplink of a leaf to propose
    #[arg(long, value_name = "X", default_value_t = 1.0, requires = "hosts")]
    pub(crate) oversubscription: f64,
    /// List the shortest paths between two hosts
    #[arg(long, num_args = 2, value_names = ["SRC", "DST"])]
    pub(crate) paths: Option<Vec<String>>,
    /// Write the topology to a file in ConWeave's text format
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
    /// Replace an existing file of --export
    #[arg(long)]
    pub(crate) replace: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Threads of the simulator; the stripped loop has one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS))]
    pub(crate) threads: u16,
    /// Runs of each case; the median is reported
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) repetitions: u16,
    /// Measure 128 hosts only
    #[arg(long)]
    pub(crate) small: bool,
    /// Measure 65,536 hosts too, once (up to 16 GiB)
    #[arg(long)]
    pub(crate) large: bool,
    /// Measure these cases only
    #[arg(long = "case", value_name = "A,B,...", value_delimiter = ',', conflicts_with_all = ["small", "large"],
        value_parser = clap::builder::PossibleValuesParser::new(anabranch_bench::simulator::CASES.iter().map(|case| case.name)))]
    pub(crate) cases: Vec<String>,
    /// Predict the speed on these numbers of threads, from the windows of a run, with 1,024 hosts or more
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', conflicts_with = "small",
        value_parser = clap::value_parser!(u16).range(2..=MAX_THREADS))]
    pub(crate) predict: Vec<u16>,
    /// Measure real packets over the loopback interface instead, beside plain sockets
    #[arg(long, conflicts_with_all = ["small", "large", "cases", "threads", "predict"])]
    pub(crate) wire: bool,
    /// Measure messages over the NCCL plugin instead, beside the endpoint's packets
    #[arg(long, conflicts_with_all = ["small", "large", "cases", "threads", "predict", "wire"])]
    pub(crate) nccl: bool,
    /// Shared object of the plugin for --nccl [default: the one beside this program]
    #[arg(long, value_name = "PATH", requires = "nccl")]
    pub(crate) plugin: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Seed and number determine a case. It runs on 1, 2, 3 and 5 threads, with one and with many partitions, with lazy and eager ports, with and without measurements; results must be equal byte for byte. Exit code: 0 all cases passed, 1 a case failed, 2 invalid input, 130 interrupted."
)]
pub(crate) struct Soak {
    /// Minutes after which no case starts [default: 10, or no limit with --cases]
    #[arg(long, value_name = "N", value_parser = minutes)]
    pub(crate) minutes: Option<f64>,
    /// Number of cases [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cases: Option<u64>,
    /// Seed of all cases [default: random]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Draw only this load balancer; a host or switch scheme includes all its pairs
    #[arg(long, value_name = "NAME", add = complete::schemes())]
    pub(crate) scheme: Option<String>,
    /// Draw only this topology: a kind, a scenario whose [topology] is used, or a topology file
    #[arg(long, value_name = "FILE", add = complete::scenarios())]
    pub(crate) topology: Option<String>,
    /// Check only case N of --seed
    #[arg(long, value_name = "N", requires = "seed", conflicts_with_all = ["cases", "minutes"])]
    pub(crate) case: Option<u64>,
    /// Check a scenario, a kept case or a directory of kept cases instead
    #[arg(long, value_name = "SCENARIO", conflicts_with_all = ["minutes", "cases", "seed", "scheme", "topology", "case", "out"])]
    pub(crate) again: Option<String>,
    /// Directory for failing cases; must be empty or new [default: soak-failures/seed-S]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Progress output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: ProgressMode,
}

impl Soak {
    pub(crate) fn first(&self) -> u64 {
        self.case.unwrap_or(0)
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|minutes| *minutes > 0.0 && *minutes <= 1e6)
        .ok_or_else(|| "expected minutes above 0, for example 60".into())
}

/// Options of both `serve` and `send`.
#[derive(Debug, Args)]
pub(crate) struct WireOptions {
    /// Scenario whose [transport], [load_balancer] and [wire] are used: a file or the name of a ready-made one
    /// [default: two machines with eight paths between them]
    #[arg(value_name = "SCENARIO", add = complete::scenarios())]
    pub(crate) scenario: Option<String>,
    /// Set a key of it, for example wire.labels=16 or transport.congestion_control=nscc; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", add = complete::keys())]
    pub(crate) set: Vec<String>,
    /// Short for --set wire.datapath=NAME: udp, rc or uc
    #[arg(long, value_name = "NAME")]
    pub(crate) datapath: Option<String>,
    /// RDMA device of the datapaths rc and uc [default: the only one]
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) wire: WireOptions,
    /// Address and first port to listen on
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7000")]
    pub(crate) at: String,
    /// Exit after the first complete and verified transfer
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    #[command(flatten)]
    pub(crate) wire: WireOptions,
    /// Address and first port of `serve`
    #[arg(long, value_name = "ADDR")]
    pub(crate) to: String,
    /// Local address, and with it the interface, to send from [default: by the routing table]
    #[arg(long, value_name = "IP")]
    pub(crate) from: Option<IpAddr>,
    /// Bytes to send
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    pub(crate) bytes: Bytes,
    /// Load balancer: a host scheme or an alias of `anabranch list schemes` [default: the scenario's]
    #[arg(long, value_name = "NAME", add = complete::schemes())]
    pub(crate) scheme: Option<String>,
    /// Random seed of the scheme and of the bytes [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}
