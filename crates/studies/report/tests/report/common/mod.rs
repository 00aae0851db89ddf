//! Synthetic results on a leaf-spine network.

use anabranch_lb::{Call, CallEvent, Decision, Feedback, Outgoing, Probe, State};
use anabranch_outcome::{
    Balance, Conservation, Counters, FlowCounters, FlowRow, FlowSample, FlowSeries, FlowStatus, GpuPortStats, GpuRow,
    GroupRow, JobFlowRow, JobRows, LinkRow, Measures, PortSample, PortSeries, QueueStats, RankRow, RunResult, RunRows,
    SchemeRow, SchemeSample, SchemeSeries, StepRow, TraceEvent, TraceRow, UplinkCount,
};
use anabranch_random::Stream;
use anabranch_report::Comparison;
use anabranch_results::{
    Formats, LinkFault, Plan, PlannedRun, Provenance, RunMeta, Summary, WorkloadMeta, run_name, store_directory,
    write_plan,
};
use anabranch_units::Time;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    pub(crate) name: &'static str,
    /// Mean excess of the slowdown over 1.
    pub(crate) excess: f64,
    /// Imbalance of its uplinks, 0 to 1.
    pub(crate) uneven: f64,
}

pub(crate) const SCHEMES: &[Behaviour] = &[
    Behaviour { name: "ecmp", excess: 2.4, uneven: 0.9 },
    Behaviour { name: "hf2t+letflow", excess: 1.1, uneven: 0.5 },
    Behaviour { name: "hopper", excess: 0.8, uneven: 0.35 },
    Behaviour { name: "reps", excess: 0.45, uneven: 0.15 },
    Behaviour { name: "prime", excess: 0.35, uneven: 0.05 },
];

const LEAVES: usize = 16;
const SPINES: usize = 8;
const HOSTS: u64 = 128;

pub(crate) fn meta(scheme: &str, seed: u64) -> RunMeta {
    RunMeta {
        scenario: "Web search on a 128-host leaf-spine".to_string(),
        scheme: scheme.to_string(),
        seed,
        backend: "sim".to_string(),
        threads: 2,
        version: "0.1.0".to_string(),
        commit: "0123abc".to_string(),
        workloads: vec![WorkloadMeta { name: "web".to_string(), measured: true, ..WorkloadMeta::default() }],
        load_balancers: vec![scheme.to_string()],
        classes: vec!["data".to_string()],
        peak_rss_bytes: Some(48 << 20),
        ..RunMeta::default()
    }
}

pub(crate) fn provenance() -> Provenance {
    Provenance {
        scenario_toml:
            "name = \"Web search on a 128-host leaf-spine\"\nseed = 1\n\n[topology]\nkind = \"leaf-spine\"\n"
                .to_string(),
        scenario_hash: 0x0123_4567_89ab_cdef,
        machine: "linux x86_64, two cores".to_string(),
        wall_seconds: 12.5,
        command: "anabranch compare web.toml --schemes ecmp,prime".to_string(),
        ..Provenance::default()
    }
}

/// Returns a finished flow that took `slowdown` times its ideal time.
pub(crate) fn flow(flow_id: u32, size_bytes: u64, start: Time, slowdown: f64) -> FlowRow {
    // 20 ps per byte and four links of a microsecond each.
    let ideal = Time::from_ps(size_bytes * 20 + 4_000_000);
    let fct = Time::from_ps((ideal.ps() as f64 * slowdown).round() as u64);
    FlowRow {
        flow_id,
        src: flow_id % HOSTS as u32,
        dst: (flow_id + 1) % HOSTS as u32,
        gpus: None,
        is_scale_up: false,
        size_bytes,
        start: Some(start),
        nic_wait: Some(Time::ZERO),
        fct_rx: Some(fct),
        fct_ack: Some(fct + Time::from_us(4)),
        ideal_rx: ideal,
        ideal_ack: ideal + Time::from_us(4),
        status: FlowStatus::Finished,
        workload: 0,
        load_balancer: 0,
        class: 0,
        metrics: FlowCounters::default().into(),
        delays: None,
    }
}

pub(crate) fn unfinish(flow: &mut FlowRow) {
    (flow.fct_rx, flow.fct_ack, flow.status) = (None, None, FlowStatus::Unfinished);
}

pub(crate) fn result(flows: Vec<FlowRow>) -> RunRows {
    let data = Balance { injected: 1000, delivered: 900, dropped: 10, trimmed: 90, in_flight: 0 };
    RunRows {
        fingerprint: Some(0xfeed_0000_0000_0001),
        simulated: Time::from_ms(10),
        wall_seconds: 2.0,
        events: Some(5_000_000),
        packet_hops: Some(4_000_000),
        flows,
        counters: Counters { data_packets: 1000, trimmed: 90, dropped: 10, out_of_order: 45, ..Counters::default() }
            .into(),
        conservation: Some(Conservation { data_packets: data, ..Conservation::default() }),
        bytes_per_host: Some(4096),
        ..RunRows::default()
    }
}

pub(crate) fn link(
    from: String,
    to: String,
    tier: &str,
    direction: &'static str,
    utilisation: f64,
    queue: f64,
) -> LinkRow {
    LinkRow {
        from,
        to,
        parallel: 0,
        tier: tier.to_string(),
        direction,
        rate_bps: 400_000_000_000,
        bytes: (utilisation * 5e8) as u64,
        packets: (utilisation * 5e8 / 4160.0) as u64,
        utilisation,
        queue: QueueStats {
            mean_bytes: Some(queue),
            p99_bytes: Some((queue * 12.0) as u64),
            max_bytes: Some((queue * 40.0) as u64),
            mean_packets: Some(queue / 4160.0),
            p99_packets: Some((queue * 12.0 / 4160.0) as u64),
            max_packets: Some((queue * 40.0 / 4160.0) as u64),
            occupancy: vec![],
        },
        ecn_marks: Some((queue / 10.0) as u64),
        trims: Some((queue / 1000.0) as u64),
        drops: Some(0),
        pauses: Some(0),
    }
}

/// `flows` flows of sizes from 1 kB to 30 MB, or all of 8 MB if `one_size`.
pub(crate) fn run(scheme: &Behaviour, seed: u64, flows: u32, one_size: bool) -> RunRows {
    // The traffic is the same for all schemes, its completion times are not.
    let mut traffic = Stream::keyed(seed, 0, "traffic");
    let mut outcomes = Stream::keyed(seed, scheme.name.len() as u64, scheme.name);
    let mut start = 0;
    let rows = (0..flows).map(|id| {
        start += traffic.exponential(500_000.0) as u64;
        let size = if one_size { 8 << 20 } else { (1e3 * 30_000f64.powf(traffic.unit().powf(1.6))) as u64 };
        let weight = 0.25 + (size as f64 / 1e6).powf(0.35).min(3.0);
        let slowdown = 1.0 + scheme.excess * weight * outcomes.exponential(0.5) * (1.0 + 2.0 * outcomes.unit().powi(6));
        let mut row = flow(id, size, Time::from_ps(start), slowdown);
        row.metrics.path_switches = Some(size / 4096);
        row
    });
    let mut result = result(rows.collect());
    for leaf in 0..LEAVES {
        for spine in 0..SPINES {
            let (l, s) = (format!("leaf{leaf}"), format!("spine{spine}"));
            let mut draw = || {
                let skew = scheme.uneven * (outcomes.unit() - 0.5);
                let broken = leaf == 3 && spine == 5;
                if broken { 0.0 } else { (0.6 * (1.0 + skew)).clamp(0.0, 1.0) }
            };
            let (up, down) = (draw(), draw());
            let queue = |u: f64| 4000.0 * scheme.excess * u / (1.02 - u).max(0.02);
            result.links.push(link(l.clone(), s.clone(), "tier0-1", "up", up, queue(up)));
            result.links.push(link(s, l, "tier0-1", "down", down, queue(down)));
        }
    }
    for host in 0..HOSTS {
        let (h, l) = (format!("host{host}"), format!("leaf{}", host / 8));
        result.links.push(link(h.clone(), l.clone(), "host", "up", 0.6, 1e9));
        result.links.push(link(l, h, "host", "down", 0.6, 3000.0));
    }
    result.fingerprint = Some(outcomes.bits());
    result
}

/// Two groups of a job, of which the second is incomplete.
fn jobs() -> JobRows {
    let group = |group: u32, completion| GroupRow {
        group,
        ranks: 2,
        start: Some(Time::ZERO),
        completion,
        ideal: Some(Time::from_us(3)),
        computation: Time::from_us(1),
        bus_bandwidth_bps: completion.map(|_| 1e9),
        last_rank: completion.map(|_| 1),
        last_flow: completion.map(|_| 5),
        ..GroupRow::default()
    };
    let rank = |rank| RankRow { rank, host: 3 + rank, ideal: Some(Time::from_us(2)).into(), ..RankRow::default() };
    JobRows {
        groups: vec![group(0, Some(Time::from_us(4))), group(1, None)],
        ranks: (0..2).map(rank).collect(),
        steps: vec![StepRow {
            messages: 2,
            start: Some(Time::from_us(1)).into(),
            completion: Some(Time::from_us(2)).into(),
            last_flow: Some(5).into(),
            ..StepRow::default()
        }],
        flows: vec![JobFlowRow { flow_id: 5, dst_rank: 1, ..JobFlowRow::default() }],
        unlisted: vec![],
    }
}

pub(crate) fn add_measurements(result: &mut RunRows) {
    for link in &mut result.links {
        link.queue.occupancy =
            (0..40).map(|n| (n, (1e9 * (1.0 - link.utilisation) * link.utilisation.powi(n as i32)) as u64)).collect();
    }
    result.jobs = jobs();
    let egress = GpuPortStats { bytes: 4000, messages: 2, utilisation: 0.25, longest_wait: Time::from_ns(80) };
    result.gpus = vec![GpuRow { gpu: 1, server: 0, host: 1, rate_bps: 3_600_000_000_000, egress, ..GpuRow::default() }];
    result.series = vec![PortSeries {
        from: "leaf0".to_string(),
        to: "spine0".to_string(),
        samples: (0..100).map(port_sample).collect(),
    }];
    let flow = |i| FlowSample {
        time: Time::from_us(i),
        sent_packets: 12 * i,
        received_bytes: 49_152 * i,
        in_flight_bytes: 200_000,
        window_bytes: Some(400_000 - 1_000 * i),
        path_tag: Some(i as u32),
        path_switches: i,
        paths: 1,
        ..FlowSample::default()
    };
    result.flow_series = vec![FlowSeries { flow_id: 7, samples: (0..50).map(flow).collect() }];
    let scheme = |i| SchemeSample {
        time: Time::from_us(i),
        open_flows: 10,
        finished_flows: i,
        uplink_imbalance: (i > 0).then_some(1.25),
        ..SchemeSample::default()
    };
    result.scheme_series = vec![SchemeSeries { load_balancer: 0, samples: (0..50).map(scheme).collect() }];
    result.uplink_counts =
        vec![UplinkCount { flow_id: 7, from: "leaf0".to_string(), to: "spine3".to_string(), parallel: 0, packets: 12 }];
    let sent = TraceRow {
        time: Time::from_us(1),
        flow_id: 7,
        psn: Some(3),
        link: 2,
        tag: 9,
        joined: Some(Time::from_ns(900)),
        queue_bytes: Some(4160),
        size_bytes: 4160,
        marked: true,
        ..TraceRow::default()
    };
    let lost = TraceRow { event: TraceEvent::NoRoute, psn: None, joined: None, queue_bytes: None, ..sent };
    result.watched.trace = vec![sent, lost];
    result.watched.schemes = scheme_rows();
}

/// Calls of Hopper for flow 7: a packet, an acknowledgement, a hold, and a probe with its reply.
pub(crate) fn scheme_rows() -> Vec<SchemeRow> {
    let feedback = Feedback {
        tag: 9,
        ecn: true,
        rtt: Some(Time::from_us(14)),
        psn: 3,
        packets: 2,
        bytes: 8192,
        cumulative: 4,
        next_psn: 11,
        ..Feedback::default()
    };
    let hold = Decision::Hold(Time::from_us(20));
    let events = [
        (CallEvent::Select(Outgoing { psn: 3, ..Outgoing::first(4096) }, Decision::Send(9)), f64::NAN),
        (CallEvent::Ack(feedback), 14e6),
        (CallEvent::PollProbe(Some(Probe { tag: 5, bytes: 64 })), 14e6),
        (CallEvent::ProbeReply(5, Time::from_us(8), false, false), 14e6),
        (CallEvent::Select(Outgoing { psn: 11, retransmission: true, ..Outgoing::first(4096) }, hold), 14e6),
    ];
    let row = |(us, (event, average))| SchemeRow {
        link: 0,
        call: Call {
            time: Time::from_us(us),
            zero: Time::ZERO,
            scheme: "hopper",
            host: 1,
            flow: 7,
            event,
            state: State::of(&[average, 12e6]),
        },
    };
    (1..).zip(events).map(row).collect()
}

fn port_sample(i: u64) -> PortSample {
    PortSample {
        time: Time::from_us(i),
        queue_bytes: i * 4160,
        queue_packets: i,
        sent_bytes: i * 50_000,
        sent_packets: 12 * i,
        ecn_marks: i / 10,
        ..PortSample::default()
    }
}

pub(crate) fn fault(from: &str, to: &str, at: Time, what: &str) -> LinkFault {
    LinkFault { from: from.into(), to: to.into(), parallel: 0, at, what: what.into() }
}

pub(crate) fn summary(rows: &RunRows, meta: &RunMeta) -> Summary {
    Summary::new(&RunResult::new(rows.clone(), &Measures::ALL), meta)
}

pub(crate) const CSV: Formats = Formats { parquet: false, ..Formats::BOTH };

pub(crate) fn write_run(directory: &Path, rows: &RunRows, meta: &RunMeta, formats: Formats) -> Summary {
    write_run_from(directory, rows, meta, &provenance(), formats)
}

pub(crate) fn write_run_from(
    directory: &Path,
    rows: &RunRows,
    meta: &RunMeta,
    provenance: &Provenance,
    formats: Formats,
) -> Summary {
    let result = RunResult::new(rows.clone(), &Measures::ALL);
    anabranch_results::write_run(directory, &result, meta, provenance, formats).unwrap()
}

/// The results of one flow of 300,000 B (ideal 10 us) with this slowdown.
pub(crate) fn one_flow(scheme: &str, seed: u64, slowdown: f64) -> Summary {
    summary(&result(vec![flow(0, 300_000, Time::ZERO, slowdown)]), &meta(scheme, seed))
}

/// A flow of 30 MB: its slowdown is exact to seven digits.
pub(crate) fn large_flow(scheme: &str, seed: u64, slowdown: f64) -> Summary {
    summary(&result(vec![flow(0, 30_000_000, Time::ZERO, slowdown)]), &meta(scheme, seed))
}

/// Compares the slowdowns of large flows at seeds from 1 on with those of the first scheme.
pub(crate) fn slowdowns_compared(schemes: &[(&str, &[f64])]) -> Comparison {
    let of = |(scheme, values): &(&str, &[f64])| -> Vec<Summary> {
        values.iter().zip(1..).map(|(value, seed)| large_flow(scheme, seed, *value)).collect()
    };
    let names: Vec<String> = schemes.iter().map(|(name, _)| (*name).to_string()).collect();
    Comparison::new(&schemes.iter().flat_map(of).collect::<Vec<_>>(), &names, schemes[0].0)
}

pub(crate) fn names(schemes: &[&str]) -> Vec<String> {
    schemes.iter().map(|scheme| scheme.to_string()).collect()
}

/// Directory of a run of a comparison whose runs have their names as hashes.
pub(crate) fn place(dir: &Path, scheme: &str, seed: u64) -> PathBuf {
    store_directory(dir, &run_name(scheme, seed))
}

/// Writes these runs as Parquet and their comparison, whose schemes are in the order of the runs.
pub(crate) fn write_compared(
    dir: &Path,
    runs: impl IntoIterator<Item = (RunRows, RunMeta)>,
    baseline: &str,
) -> (Vec<Summary>, Comparison) {
    let mut schemes: Vec<String> = vec![];
    let write = |(rows, meta): (RunRows, RunMeta)| {
        if !schemes.contains(&meta.scheme) {
            schemes.push(meta.scheme.clone());
        }
        write_run(&place(dir, &meta.scheme, meta.seed), &rows, &meta, Formats::PARQUET)
    };
    let summaries: Vec<Summary> = runs.into_iter().map(write).collect();
    let comparison = compared(dir, &summaries, &schemes, baseline);
    (summaries, comparison)
}

/// Writes the comparison of `schemes` over `runs`; its plan has every seed of theirs.
pub(crate) fn compared(dir: &Path, runs: &[Summary], schemes: &[String], baseline: &str) -> Comparison {
    let mut seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let run = |seed: u64, (entry, scheme): (usize, &String)| PlannedRun {
        entry,
        seed,
        run: run_name(scheme, seed),
        ..PlannedRun::default()
    };
    let planned = seeds.iter().flat_map(|seed| schemes.iter().enumerate().map(|entry| run(*seed, entry))).collect();
    let plan = Plan {
        name: "Web search on a 128-host leaf-spine".into(),
        version: "0.1.0".into(),
        entries: schemes.to_vec(),
        baseline: baseline.into(),
        seeds: seeds.clone(),
        runs: planned,
        ..Plan::default()
    };
    write_plan(&plan, dir).unwrap();
    anabranch_report::write_comparison(dir, runs, 2, &provenance()).unwrap()
}
