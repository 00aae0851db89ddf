//! What can stand on the command line.

use anabranch_units::Bytes;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::{net::IpAddr, path::PathBuf};

/// Steers RDMA and Ultra Ethernet traffic over the many paths of an AI cluster's network, and finds out beforehand
/// which way of steering serves best.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// Says nothing but the answer and errors: no progress, notes or warnings
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs one scenario
    Run(Run),
    /// Runs a scenario with several load balancers on the same flows and compares them
    Compare(Compare),
    /// Run a scenario in the simulator and on a testbed, and judge per load balancer whether the two agree
    Agree(Agree),
    /// Runs a scenario over the values of some of its keys, every load balancer and seed at each point
    Sweep(Sweep),
    /// Runs what the claims of a paper need, and says which of them come out
    Reproduce(Reproduce),
    /// Re-runs a result from its manifest and compares every row
    Rerun(Rerun),
    /// Compares every file of a result and its inputs with the digests in its manifest
    Verify(Verify),
    /// Writes DIR/report.html again from the rows in DIR
    Report(Report),
    /// Writes DIR/view.html: the fabric over time, one run or two side by side
    View(View),
    /// Writes what happened in a run in the form of other people's tools
    Trace(Trace),
    /// Lists what there is
    List(List),
    /// Explains a scheme, transport, topology, workload, section or key: what it does, and every parameter
    Explain(Explain),
    /// Writes a commented scenario to start from
    Init(Init),
    /// Prints the JSON Schema of scenario files, for editors
    Schema,
    /// Validates a scenario and prints it with every default filled in
    Check(Check),
    /// Shows a scenario's topology: counts, diameter, paths
    Topology(Topology),
    /// Measures packet-hops per second on this machine, beside a stripped loop
    Bench(Bench),
    /// Draw random scenarios, run each in different ways and compare the results
    Soak(Soak),
    /// Takes what `send` sends to this machine and says whether every byte came, until it is interrupted
    Serve(Serve),
    /// Sends bytes over UDP to `serve` on another machine, over the paths that a scheme chooses
    Send(Send),
    /// Runs a collective over NCCL's network plugin, without NCCL and without a GPU, and looks at every element
    Collective(crate::commands::collective::Collective),
    /// A rank of `collective`
    #[command(hide = true)]
    CollectiveRank,
    /// A part of `bench --nccl`
    #[command(hide = true)]
    BenchPart(crate::commands::bench_nccl::BenchPart),
    /// The network plugin for NCCL
    Nccl(crate::commands::nccl::Nccl),
    /// Shows what the paths of NCCL's connections on this machine do, and changes parameters while they run
    Stats(crate::commands::stats::Stats),
    /// Finds out which switches the packets to another machine meet, by their ports
    #[cfg(target_os = "linux")]
    Paths(crate::commands::paths::Paths),
    /// A leaf-spine of network namespaces on this machine: real packets, the kernel's own ECMP
    #[cfg(target_os = "linux")]
    Testbed(crate::commands::testbed::Testbed),
    /// Prints the completions of a shell
    Completions(Completions),
    /// Writes the manual pages
    Man(Man),
}

impl Command {
    /// Returns `true` where signals are for what the command runs, and not for itself.
    pub(crate) fn passes_signals_on(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Command::Testbed(testbed) = self {
            return testbed.passes_signals_on();
        }
        false
    }
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    /// One JSON object on standard output and nothing else there
    Json,
}

/// Whether progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Show {
    /// A status line on a terminal, else a line every ten seconds at most
    #[default]
    Auto,
    /// Nothing
    Never,
}

/// The scenario and what the command line changes of it.
#[derive(Debug, Args)]
pub(crate) struct ScenarioArguments {
    /// A scenario file, or the name of a ready-made scenario (`anabranch list scenarios`)
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: String,
    /// Overrides a key of the scenario, for example topology.link_rate=100Gbps or workload.0.load=0.8
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of everything random, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// How a simulation is run and where its results go.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Threads to use [default: as many as the machine has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Directory for the results [default: results/SCENARIO-HASH]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Whether progress is shown
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: Show,
}

/// What carries the packets.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct BackendArguments {
    /// What runs it: sim, testbed, or several with commas between, which are compared [default: sim; of agree: sim,testbed; of
    /// testbed run and testbed compare: testbed]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) backend: Vec<String>,
    /// The network plugin that workloads of kind `nccl` load on a testbed, a shared object; unless given, that beside the command
    #[arg(long, value_name = "PATH")]
    pub(crate) plugin: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    /// Replaces another scenario's results in the directory, and files of --pcap
    #[arg(long)]
    pub(crate) replace: bool,
    /// Writes what leaves over a link, such as 'leaf0->spine0=up.pcapng', for Wireshark and its like
    #[arg(long, value_name = "LINK=FILE")]
    pub(crate) pcap: Vec<String>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// What is compared.
#[derive(Debug, Args)]
pub(crate) struct EntryArguments {
    /// The load balancers, with commas between [default: those of the scenario's [compare] section]
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub(crate) schemes: Vec<String>,
    /// The scenario with other settings, beside the load balancers, for example short='load_balancer.prime.p_ecn=8'
    #[arg(long = "variant", value_name = "NAME=KEY=VALUE;...")]
    pub(crate) variants: Vec<String>,
    /// How many seeds, counting up from the scenario's [default: that of the scenario's [compare] section, else 1]
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<u64>,
    /// The load balancer or variant that the others are related to [default: the first]
    #[arg(long, value_name = "A")]
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
    /// Runs everything again, finished or not
    #[arg(long)]
    pub(crate) again: bool,
    /// Moves the runs of another comparison in the directory aside, to `earlier-runs`
    #[arg(long)]
    pub(crate) replace: bool,
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
    /// The metric whose ratio is judged, for example slowdown_p99 [default: completion where flows wait for each other, else fct_mean]
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Option<String>,
    /// Runs everything again, finished or not
    #[arg(long)]
    pub(crate) again: bool,
    /// Moves the runs of another comparison in the directory aside, to `earlier-runs`
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// Which runs of a sweep are done anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Again {
    /// All, finished or not
    All,
    /// Those that failed
    Failed,
}

#[derive(Debug, Args)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    /// A key of the scenario and the values it takes: KEY=A,B,... or KEY=A..B:STEP
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) over: Vec<String>,
    /// Takes the first value of each key together, then the second, instead of every value with every other
    #[arg(long)]
    pub(crate) zip: bool,
    #[command(flatten)]
    pub(crate) entries: EntryArguments,
    /// Says what it would take, measured on one of its runs, and writes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Prints the runs with their hashes, and runs nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) list: bool,
    /// Does a share of the runs: number K, from 1, of N
    #[arg(long, value_name = "K/N", conflicts_with_all = ["dry_run", "list"])]
    pub(crate) task: Option<String>,
    /// Workers of this Dask scheduler do the runs (the command of the Python package does that)
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["dry_run", "list", "task"])]
    pub(crate) dask: Option<String>,
    /// Runs anew what is there: all, or what failed
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all", value_name = "WHICH")]
    pub(crate) again: Option<Again>,
    /// Replaces tables and figures of another sweep in the directory; its runs stay
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// How large the studies of `reproduce` are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scale {
    /// Every claim in minutes, at sizes that are stated
    #[default]
    Quick,
    /// The papers' sizes
    Full,
}

#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// hopper, hf2t, prime, spritz, or all
    #[arg(value_name = "PAPER")]
    pub(crate) paper: String,
    /// One figure, or one claim, by its name in `--list` [default: all]
    #[arg(value_name = "FIGURE")]
    pub(crate) figure: Option<String>,
    /// How large the studies are
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scale: Scale,
    /// Only what rests on these studies alone
    #[arg(long, value_name = "STUDY,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Prints studies, figures and claims, and runs nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Says which runs are missing and what they would take, and runs nothing
    #[arg(long, conflicts_with = "list")]
    pub(crate) dry_run: bool,
    /// Judges and draws what is finished, and runs nothing
    #[arg(long, conflicts_with_all = ["list", "dry_run"])]
    pub(crate) no_run: bool,
    /// Finished runs of other commits of this version count too
    #[arg(long)]
    pub(crate) any_commit: bool,
    /// Runs anew what is there: all, or what failed
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all", value_name = "WHICH")]
    pub(crate) again: Option<Again>,
    /// Claim files of DIR/PAPER instead of those that come with the command
    #[arg(long, value_name = "DIR")]
    pub(crate) claims: Option<PathBuf>,
    /// For maintainers: keeps the rows in claims/rows and writes the tables of docs, in the repository DIR
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = ".", value_name = "DIR")]
    pub(crate) write_docs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Rerun {
    /// A directory that `run`, `compare` or `sweep` wrote
    pub(crate) dir: PathBuf,
    /// One of its runs: SCHEME/seedN of a comparison, the hash of a sweep [default: all]
    pub(crate) run: Option<String>,
    /// Threads to use [default: as many as the machine has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Whether progress is shown
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: Show,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// A directory that `run`, `compare`, `sweep` or `reproduce` wrote
    pub(crate) dir: PathBuf,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The file to write; `-` for standard output
    #[arg(default_value = "scenario.toml")]
    pub(crate) file: PathBuf,
    /// Replaces a file that is there
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The directory to write them into, a file per command
    #[arg(default_value = "man")]
    pub(crate) dir: PathBuf,
    /// Replaces other files of these names
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
    /// Replaces a file that is there
    #[arg(long)]
    pub(crate) replace: bool,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// A directory that `run`, `compare` or `sweep` wrote
    pub(crate) dir: PathBuf,
    /// Show several workloads also pooled, as one
    #[arg(long)]
    pub(crate) all_flows: bool,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct View {
    /// A directory that `run` or `compare` wrote, or a run of a sweep
    pub(crate) dir: PathBuf,
    /// Another one, to be seen beside it
    pub(crate) beside: Option<PathBuf>,
    /// The load balancers of a comparison to show [default: its first two]
    #[arg(long, value_name = "A[,B]", value_delimiter = ',')]
    pub(crate) schemes: Vec<String>,
    /// The seed of a comparison to show [default: the first that they have]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// The file to write, instead of DIR/view.html
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replaces a file of --out that is there
    #[arg(long)]
    pub(crate) replace: bool,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
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
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// What to list
    #[arg(value_enum)]
    pub(crate) what: Kind,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Its name, as `anabranch list` prints it, or a section or key of a scenario
    pub(crate) name: String,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Topology {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Lists the shortest paths between two hosts
    #[arg(long, num_args = 2, value_names = ["SRC", "DST"])]
    pub(crate) paths: Option<Vec<String>>,
    /// Writes the topology to a file, in ConWeave's text format
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
    /// Replaces a file of --export that is there
    #[arg(long)]
    pub(crate) replace: bool,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Threads of the simulator; the stripped loop always has one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: u16,
    /// Runs of each case, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) repetitions: u16,
    /// Measures the case with 128 hosts alone
    #[arg(long)]
    pub(crate) small: bool,
    /// Measures 65,536 hosts as well, once: needs up to 16 GiB
    #[arg(long)]
    pub(crate) large: bool,
    /// Measures what packets cost on real sockets instead, over the loopback interface, beside plain sockets
    #[arg(long, conflicts_with_all = ["small", "large", "threads"])]
    pub(crate) wire: bool,
    /// Measures what messages over the plugin for NCCL cost instead, over the loopback interface, beside the wire bench
    #[arg(long, conflicts_with_all = ["small", "large", "threads", "wire"])]
    pub(crate) nccl: bool,
    /// The shared object of --nccl; unless given, that beside the command
    #[arg(long, value_name = "PATH", requires = "nccl")]
    pub(crate) plugin: Option<PathBuf>,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A case follows from the seed and its number. It is run on 1, 2, 3 and 5 threads, with one and with many \
partitions, with lazy and eager ports, measured and not; results must be equal byte for byte. Exit code: 0 nothing found, 1 a case \
failed, 2 the input is wrong, 130 interrupted."
)]
pub(crate) struct Soak {
    /// Minutes after which no case is begun [default: 10, or no limit with --cases]
    #[arg(long, value_name = "N", value_parser = minutes)]
    pub(crate) minutes: Option<f64>,
    /// Number of cases [default: as many as there is time for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cases: Option<u64>,
    /// Seed of all cases [default: another one each time]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Draw this load balancer alone; a host scheme or a switch scheme stands for all its pairs
    #[arg(long, value_name = "NAME")]
    pub(crate) scheme: Option<String>,
    /// Draw this topology alone: a kind, a scenario whose [topology] counts, or a topology file
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<String>,
    /// Check case N of --seed alone
    #[arg(long, value_name = "N", requires = "seed", conflicts_with_all = ["cases", "minutes"])]
    pub(crate) case: Option<u64>,
    /// Check a scenario in every way instead: a scenario, a case that was kept, or a directory of such cases
    #[arg(long, value_name = "SCENARIO", conflicts_with_all = ["minutes", "cases", "seed", "scheme", "topology", "case", "out"])]
    pub(crate) again: Option<String>,
    /// Directory for failing cases, empty or not there [default: soak-failures/seed-S]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Whether progress is shown
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: Show,
}

impl Soak {
    /// Number of the first case.
    pub(crate) fn first(&self) -> u64 {
        self.case.unwrap_or(0)
    }
}

/// Reads a number of minutes above zero.
fn minutes(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|minutes| *minutes > 0.0 && *minutes <= 1e6)
        .ok_or_else(|| "expected minutes above 0, for example 60".into())
}

/// What both ends of a transfer may be told.
#[derive(Debug, Args)]
pub(crate) struct WireOptions {
    /// A scenario file, or the name of a ready-made scenario, whose [transport], [load_balancer] and [wire] hold
    /// [default: two machines with eight paths between them]
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// Overrides a key of it, for example wire.labels=16 or transport.congestion_control=nscc
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Short for --set wire.datapath=NAME: udp, verbs or uc
    #[arg(long, value_name = "NAME")]
    pub(crate) datapath: Option<String>,
    /// The RDMA device of the datapaths verbs and uc [default: the only one]
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) wire: WireOptions,
    /// Address and first port to listen at
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7000")]
    pub(crate) at: String,
    /// End after the first whole transfer: bytes came, and they are those that were sent
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
    /// Own address to send from, and with it the interface, also where others are in its network [default: what routes choose]
    #[arg(long, value_name = "IP")]
    pub(crate) from: Option<IpAddr>,
    /// Bytes to send
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    pub(crate) bytes: Bytes,
    /// The scheme that chooses paths: a host scheme or an alias of `anabranch list schemes` [default: the scenario's]
    #[arg(long, value_name = "NAME")]
    pub(crate) scheme: Option<String>,
    /// Seed of the scheme's draws and of the bytes, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}
