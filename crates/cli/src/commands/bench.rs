use crate::{Failure, Format, MAX_THREADS, Table, count, millions, note, print, print_json, width, wrapped};
use anabranch_backend::RunError;
use anabranch_bench::simulator::{
    BARRIER_NS, BenchError, CASES, Case, CaseResult, HOSTS_FOR_TWO_THREADS, LARGE, Predicted, SMALL, Timed, measure,
    median, predict,
};
use anabranch_scenario::{COMMIT, VERSION, machine::machine};
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
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
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

pub(crate) fn bench(arguments: &Bench) -> Result<(), Failure> {
    let threads = super::request::threads_or_cores(Some(arguments.threads));
    let cases = if arguments.small { SMALL } else { CASES };
    let requested = |case: &&Case| arguments.cases.is_empty() || arguments.cases.iter().any(|name| name == case.name);
    let cases = cases.iter().filter(requested).chain(arguments.large.then_some(&LARGE));
    let (mut all, mut predicted) = (Vec::new(), Vec::new());
    for case in cases {
        note(&format!("measuring {}: the stripped loop and the simulator in turn", case.name));
        let measured = measure(case, threads, arguments.repetitions.into()).map_err(|error| failure(case, error))?;
        let on: Vec<usize> = arguments.predict.iter().map(|&threads| threads.into()).collect();
        if !on.is_empty() && measured.hosts >= HOSTS_FOR_TWO_THREADS {
            note(&format!("measuring the windows of {}", case.name));
            let of_case = predict(case, &on).map_err(|error| failure(case, error))?;
            predicted.extend(of_case.into_iter().map(|predicted| (case.name, predicted)));
        }
        all.push(measured);
    }
    match arguments.format {
        Format::Json => {
            let cases: Vec<Value> = all.iter().map(case_json).collect();
            print_json(&json!({
                "version": VERSION,
                "commit": COMMIT,
                "machine": machine(),
                "threads": arguments.threads,
                "cores": cores(),
                "repetitions": arguments.repetitions,
                "cases": cases,
                "predicted": predicted.iter().map(|(case, of)| predicted_json(case, of)).collect::<Vec<_>>(),
            }));
        }
        Format::Table => print(&(text(&all) + &prediction_text(&predicted))),
    }
    Ok(())
}

fn predicted_json(case: &str, of: &Predicted) -> Value {
    json!({
        "name": case,
        "threads": of.threads,
        "windows": of.windows,
        "work": of.work,
        "balance": of.balance,
        "speedup": of.speedup,
    })
}

fn prediction_text(predicted: &[(&str, Predicted)]) -> String {
    if predicted.is_empty() {
        return String::new();
    }
    let row = |(case, of): &(&str, Predicted)| {
        vec![
            (*case).to_string(),
            of.threads.to_string(),
            count(of.windows as u64),
            format!("{:.2}", of.work),
            format!("{:.2}", of.balance),
            format!("{:.1}", of.speedup),
        ]
    };
    let header = ["case", "threads", "windows", "work", "balance", "predicted speedup"];
    let legend = format!(
        "Predicted, not measured: each window takes as long as its slowest thread, and a barrier of {BARRIER_NS} ns. Work: processor \
         time of all threads over that of one. Balance: mean over maximum of the threads. Caches and memory that more cores share \
         are not in it."
    );
    let table = Table::new(&header, predicted.iter().map(row).collect()).draw();
    format!("\n{table}\n{}\n", wrapped(&legend, width()))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn failure(case: &Case, error: BenchError) -> Failure {
    match error {
        BenchError::Scenario(error) => Failure::Input(error),
        BenchError::Run(RunError::Setup(message)) => Failure::input(message),
        error => Failure::Broken(format!("{}: {error}", case.name)),
    }
}

fn case_json(m: &CaseResult) -> Value {
    let rates = |runs: &[Timed]| runs.iter().map(Timed::per_second).collect::<Vec<_>>();
    let cpu = |runs: &[Timed]| runs.iter().map(|run| run.cpu_seconds).collect::<Vec<_>>();
    let (stripped, simulator) = (rates(&m.stripped), rates(&m.simulator));
    let stripped_median = (!stripped.is_empty()).then(|| median(&stripped));
    json!({
        "name": m.name,
        "scenario": m.scenario,
        "changes": m.changes,
        "hosts": m.hosts,
        "packet_hops": m.packet_hops,
        "fingerprint": format!("{:016x}", m.fingerprint.unwrap_or_default()),
        "stripped_packet_hops_per_s": stripped_median,
        "packet_hops_per_s": median(&simulator),
        "ratio": m.ratio(),
        "cpu_s_best": m.best_cpu_seconds(),
        "cpu_ratio_best": m.best_ratio(),
        "first_event_s": m.first_event_seconds(),
        "setup_hosts_per_s": f64::from(m.hosts) / m.first_event_seconds().max(1e-9),
        "rows_written_per_cpu_s": m.written.and_then(|written| written.per_cpu_second()),
        "bytes_per_host": m.bytes_per_host,
        "bytes_per_idle_host": m.bytes_per_idle_host,
        "bytes_per_packet_in_flight": m.bytes_per_packet_in_flight,
        "peak_rss_bytes": m.peak_rss_bytes,
        "two_threads": m.pairs().map(|pairs| json!({
            "packet_hops_per_s": pairs.per_second,
            "speedup": pairs.speedup,
            "all": rates(&m.two_threads),
        })),
        "stripped_all": stripped,
        "simulator_all": simulator,
        "stripped_cpu_s": cpu(&m.stripped),
        "simulator_cpu_s": cpu(&m.simulator),
    })
}

fn text(all: &[CaseResult]) -> String {
    let dash = || "-".to_string();
    let rows: Vec<_> = all
        .iter()
        .map(|m| {
            let rates = |runs: &[Timed]| median(&runs.iter().map(Timed::per_second).collect::<Vec<_>>());
            let percent = |ratio: Option<f64>| ratio.map_or_else(dash, |ratio| format!("{:.0} %", 100.0 * ratio));
            vec![
                m.name.to_string(),
                count(m.hosts.into()),
                millions(rates(&m.simulator)),
                if m.stripped.is_empty() { dash() } else { millions(rates(&m.stripped)) },
                percent(m.ratio()),
                percent(m.best_ratio()),
                m.best_cpu_seconds().map_or_else(dash, |seconds| format!("{seconds:.2}")),
                m.pairs().map_or_else(dash, |pairs| format!("{:.2}", pairs.speedup)),
                format!("{:.2}", m.first_event_seconds()),
                millions(f64::from(m.hosts) / m.first_event_seconds().max(1e-9)),
                m.written.and_then(|written| written.per_cpu_second()).map_or_else(dash, millions),
                if m.bytes_per_idle_host == 0 { dash() } else { count(m.bytes_per_idle_host) },
                m.bytes_per_packet_in_flight.map_or_else(dash, count),
                m.peak_rss_bytes.map_or_else(dash, |bytes| format!("{:.0}", bytes as f64 / 1e6)),
            ]
        })
        .collect();
    let header = [
        "case",
        "hosts",
        "packet-hops/s",
        "stripped loop",
        "ratio",
        "CPU ratio",
        "CPU (s)",
        "two threads",
        "first event (s)",
        "hosts/s set up",
        "rows/s written",
        "B/idle host",
        "B per packet",
        "peak (MB)",
    ];
    let least =
        ["rows/s written", "hosts/s set up", "B per packet", "B/idle host", "CPU (s)", "first event (s)", "peak (MB)"];
    let legend = "Medians; CPU ratio and CPU time are the best of all repetitions. A packet-hop is one packet leaving one \
                  port. Two threads: speedup over one";
    let cores = cores();
    let legend = format!("{legend}, on {cores} {}.", if cores == 1 { "core" } else { "cores" });
    Table::new(&header, rows).hide_first(&least).draw() + &format!("\n{}\n", wrapped(&legend, width()))
}
