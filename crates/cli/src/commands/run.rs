use super::{
    agree::{ComparisonRequest, compare_backends},
    request::{directory, require_finished, stem, threads_of_run},
};
use crate::{
    BackendArguments, Failure, Format, ProgressDisplay, RunOptions, ScenarioArguments, Schemes, Table, count, millions,
    note, print, print_json, scenario_on, select_backends, width, wrapped,
};
use anabranch_results::{FlowSummary, Inputs, OutputDir, Summary, bytes, disk_use};
use anabranch_scenario::{BackendEntry, SIMULATOR, Scenario};
use anabranch_study::{Captured, Captures, Observer, Permission, Request, Single};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    /// Repeat the run if it is finished
    #[arg(long)]
    pub(crate) again: bool,
    /// Replace tables of another scenario in the directory, and files of --pcap; runs stay
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

pub(crate) fn run(arguments: &Run, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    let chosen = select_backends(&arguments.on, backends)?;
    if let [backend] = chosen.as_slice()
        && *backend != &SIMULATOR
        && !arguments.pcap.is_empty()
    {
        let message =
            "--pcap is for simulations; on a testbed use `anabranch testbed up` and `anabranch testbed capture`";
        return Err(Failure::input(message));
    }
    let scenario = scenario_on(&arguments.scenario, &arguments.on, &chosen, Schemes::Own)?;
    match chosen.as_slice() {
        [backend] => run_on(arguments, &scenario, backend),
        several => {
            if !arguments.pcap.is_empty() {
                return Err(Failure::input("--pcap: found with several backends; run the simulator alone to capture"));
            }
            let request =
                Request { schemes: vec![scenario.scheme().to_string()], seeds: Some(1), ..Request::default() };
            let permission = Permission { again: arguments.again, replace: arguments.replace };
            let asked = ComparisonRequest {
                request,
                metric: None,
                permission,
                options: &arguments.options,
                strict: arguments.strict,
            };
            compare_backends(&scenario, several, &asked).map(drop)
        }
    }
}

fn run_on(arguments: &Run, scenario: &Scenario, backend: &'static BackendEntry) -> Result<(), Failure> {
    let directory = directory(&arguments.options, &stem(scenario, backend), scenario.hash())?;
    // Packets are captured while a run is done.
    let permission = Permission { again: arguments.again || !arguments.pcap.is_empty(), replace: arguments.replace };
    let single = Single::new(scenario, backend, &directory, permission)?;
    let captures = Captures::read(
        &arguments.pcap,
        arguments.replace,
        &Inputs::of(scenario.inputs()),
        &OutputDir::open(&directory)?,
    )?;
    let (summary, captured, page) = match single.finished(&|found| note(found))? {
        Some((summary, page)) => {
            note("the run was already finished and is not repeated");
            if !directory.join("flows.csv").exists() {
                note("its tables are Parquet alone, as a sweep writes them; --again writes CSV too");
            }
            (summary, vec![], page)
        }
        None => do_run(arguments, scenario, backend, &single, &captures)?,
    };
    for warning in summary.warnings() {
        note(&format!("warning: {warning}"));
    }
    match arguments.options.format {
        Format::Json => print_json(&serde_json::to_value(&summary).map_err(|e| Failure::Broken(e.to_string()))?),
        Format::Table => print(&text(&summary)),
    }
    captured.iter().for_each(|capture| note(&capture_text(capture)));
    print_result_paths(&directory, &page);
    match summary.deadlocked().or_else(|| summary.stalled()) {
        _ if summary.interrupted => Err(Failure::Interrupted),
        Some(reason) => Err(Failure::Unfinished(reason)),
        None if arguments.strict => require_finished([&summary]),
        None => Ok(()),
    }
}

fn do_run(
    arguments: &Run,
    scenario: &Scenario,
    backend: &'static BackendEntry,
    single: &Single,
    captures: &Captures,
) -> Result<(Summary, Vec<Captured>, PathBuf), Failure> {
    let watch = ProgressDisplay::new(arguments.options.progress, vec![scenario.scheme().to_string()]);
    watch.started(0);
    let threads = threads_of_run(&arguments.options, scenario);
    let warn = |warning: &str| watch.warn(warning);
    let progress = &mut |progress: &_| watch.progress(0, progress);
    let ran = single.execute(scenario, backend, threads, captures, &warn, progress);
    watch.close();
    Ok(ran?)
}

/// Describes a capture, and how much longer its frames are than the simulated packets.
fn capture_text(capture: &Captured) -> String {
    let Captured { link, file, written } = capture;
    let (packets, bytes) = (count(written.packets), count(written.bytes));
    let mut text = format!("{}: {packets} packets, {bytes} bytes sent over {link}", file.display());
    if written.widened > 0 {
        text += &format!(
            "; {} of them are longer than simulated, by {} bytes in total, because their headers did not fit",
            count(written.widened),
            count(written.widened_by)
        );
    }
    text
}

pub(super) fn print_result_paths(directory: &Path, page: &Path) {
    let size = bytes(disk_use(directory) as f64);
    note(&format!("results in {} ({size}), report in {}", directory.display(), page.display()));
}

fn text(summary: &Summary) -> String {
    // Workloads are not pooled: one with many flows would hide the others.
    let parts: Vec<(&str, &FlowSummary)> = match summary.workloads.len() {
        0 | 1 => vec![("all", &summary.all)],
        _ => summary.workloads.iter().map(|(name, flows)| (name.as_str(), flows)).collect(),
    };
    let waited = parts.iter().any(|(_, flows)| flows.nic_wait_us.max.is_some_and(|max| max > 0.0));
    let rows: Vec<Vec<String>> = parts.iter().map(|(name, flows)| row(name, flows, waited)).collect();
    let kind = serde_json::to_value(summary.all.fct_kind).unwrap_or_default();
    let mut out = format!("{}, {}, seed {}\n\n", summary.scenario, summary.scheme, summary.seed);
    let numbers = ["mean", "p50", "p99", "max"];
    let columns = numbers.map(|n| format!("FCT (us) {n}")).into_iter().chain(numbers.map(|n| format!("slowdown {n}")));
    let waits = ["NIC wait (us) mean", "NIC wait (us) max"].into_iter().filter(|_| waited).map(String::from);
    let header: Vec<String> =
        ["workload", "flows", "finished"].map(String::from).into_iter().chain(columns).chain(waits).collect();
    // Slowdown is more informative than time, and the tail more than the median.
    let least = ["FCT (us) p50", "slowdown p50", "FCT (us) max", "NIC wait (us) mean", "FCT (us) p99", "slowdown mean"];
    out += &Table::new(&header, rows).hide_first(&least).full_table_in("summary.json").draw();
    let c = &summary.counters.totals;
    let per_ack =
        summary.counters.packets_per_ack.map_or_else(String::new, |packets| format!(", {packets:.2} packets per ACK"));
    let known = |number: Option<u64>| number.map_or_else(|| "-".to_string(), count);
    let counters = format!(
        "FCT: {}. {} data packets, {} marked, {} trimmed, {} dropped, {} retransmitted, {} timeouts{per_ack}.",
        kind.as_str().unwrap_or_default(),
        known(c.data_packets),
        known(c.ecn_marked),
        known(c.trimmed),
        known(c.dropped),
        known(c.retransmitted),
        known(c.timeouts)
    );
    let speed = match &summary.datapath {
        Some(datapath) => wire_speed(summary, datapath),
        None if summary.backend == SIMULATOR.name => simulation_speed(summary),
        None => format!("Took {:.2} s on `{}`.", summary.simulated_s, summary.backend),
    };
    out + &collectives(summary) + &format!("\n{}\n{}\n", wrapped(&counters, width()), wrapped(&speed, width()))
}

/// Table of what counts as a whole: collectives with their bus bandwidth, and other jobs.
fn collectives(summary: &Summary) -> String {
    let time = |value: Option<f64>| value.map_or("-".into(), anabranch_results::seconds);
    let collective = |of: &anabranch_report::Collective| {
        let size = of.bytes.map_or(String::new(), |bytes| format!(", {} B each", count(bytes)));
        vec![
            of.workload.clone(),
            format!("{}, {} ranks{size}", of.collective, of.ranks),
            if of.rounds > 0 { of.rounds.to_string() } else { "-".into() },
            time(of.median_round_s),
            time(of.completion_s),
            of.bus_bandwidth_bps.map_or("-".into(), anabranch_report::bit_rate),
        ]
    };
    let dash = || "-".to_string();
    let job = |(name, done): (&str, Option<f64>)| vec![name.into(), "job".into(), dash(), dash(), time(done), dash()];
    let rows: Vec<Vec<String>> =
        summary.collectives.iter().map(collective).chain(summary.jobs().into_iter().map(job)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = ["workload", "work", "rounds", "median round", "done after", "bus bandwidth"];
    let note = "Done: first start to last acknowledgement. Bus bandwidth: NCCL's definition (nccl-tests).";
    format!("\n{}{note}\n", Table::new(&header, rows).draw())
}

/// Describes the time of a run with real packets, and the load of the machine.
fn wire_speed(summary: &Summary, datapath: &str) -> String {
    let mut parts = vec![format!("Took {:.2} s over {datapath}", summary.simulated_s)];
    parts.extend(
        summary.longest_pause_s.map(|pause| format!("an endpoint was descheduled for up to {:.2} ms", pause * 1e3)),
    );
    let load = summary.machine_load.unwrap_or_default();
    parts.extend(Some(summary.machine_words()).filter(|words| !words.is_empty()));
    parts.push(
        match load.is_bound {
            Some(true) => "MACHINE-BOUND: the results reflect the machine, not the load balancer",
            Some(false) => "not machine-bound",
            None => "unknown if machine-bound",
        }
        .into(),
    );
    parts.join("; ") + "."
}

fn simulation_speed(summary: &Summary) -> String {
    format!(
        "Simulated {:.1} us in {:.2} s: {} packet-hops/s. Fingerprint {}.",
        summary.simulated_s * 1e6,
        summary.wall_s,
        summary.packet_hops_per_s.map_or_else(|| "-".into(), millions),
        summary.fingerprint.as_deref().unwrap_or("-")
    )
}

/// Row of a workload, with the waits at NICs if some are shown.
fn row(name: &str, flows: &FlowSummary, waits: bool) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_string(), |v| format!("{v:.2}"));
    let (fct, slowdown) = (&flows.fct_us, &flows.slowdown);
    let unlisted = flows.unlisted.unwrap_or_default();
    let (total, finished) = (flows.flows.total + unlisted.total, flows.flows.finished + unlisted.finished);
    let mut row = vec![name.to_string(), count(total), count(finished)];
    let numbers = [fct.mean, fct.p50, fct.p99, fct.max, slowdown.mean, slowdown.p50, slowdown.p99, slowdown.max];
    row.extend(numbers.map(number));
    let waited = [flows.nic_wait_us.mean, flows.nic_wait_us.max];
    row.extend(waited.into_iter().filter(|_| waits).map(number));
    row
}
