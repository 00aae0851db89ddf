//! `summary.json`: a run in a page of numbers.

use crate::{
    load::{OfferedLoad, above_capacity, is_nic},
    meta::{FctKind, RunMeta, past_warmup},
    numbers::significant_digits_trimmed,
    real_run::{self, FaultSummary, LostPeerSummary},
    statistics::Distribution,
};
use anabranch_outcome::{
    Balance, Collective, Conservation, FlowMetrics, FlowRow, LinkRow, MachineLoad, RunMetrics, RunResult,
};
use anabranch_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// By itself, or at the time it was asked for.
    Finished,
    /// A time limit ended it before all flows were done.
    TimeLimit,
    /// The user interrupted it.
    Interrupted,
    /// PFC pauses wait for each other in a circle.
    Deadlock,
    /// Hosts lost each other, and flows between them did not finish.
    LostPeers,
}

impl RunStatus {
    fn of(result: &RunResult) -> Self {
        match result {
            _ if result.interrupted => RunStatus::Interrupted,
            _ if !result.deadlock.is_empty() => RunStatus::Deadlock,
            _ if result.time_limit_struck => RunStatus::TimeLimit,
            _ if result.on_wire.as_ref().is_some_and(|wire| !wire.lost_peers.is_empty()) => RunStatus::LostPeers,
            _ => RunStatus::Finished,
        }
    }

    /// Its word in every table and JSON file.
    pub fn word(self) -> &'static str {
        match self {
            RunStatus::Finished => "finished",
            RunStatus::TimeLimit => "time-limit",
            RunStatus::Interrupted => "interrupted",
            RunStatus::Deadlock => "deadlock",
            RunStatus::LostPeers => "lost-peers",
        }
    }
}

/// Everything `summary.json` holds. The keys are a contract: more may come, none changes its meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Name of the scenario.
    pub scenario: String,
    /// The load balancer.
    pub scheme: String,
    /// The seed.
    pub seed: u64,
    /// Threads of the simulation.
    pub threads: usize,
    /// What ran it: `sim`, `testbed`; empty in results of older versions ([`Summary::backend`]).
    #[serde(default, rename = "backend")]
    pub recorded_backend: String,
    /// 16 hex digits over the integers of flows and links; `None` on the clock of a machine.
    pub fingerprint: Option<String>,
    /// How long the run took on its clock, in seconds.
    pub simulated_s: f64,
    /// Wall time of the run without its preparations, in seconds.
    pub wall_s: f64,
    /// Events handled; `None`: there are none.
    pub events: Option<u64>,
    /// Packets that left a port; `None`: not counted.
    pub packet_hops: Option<u64>,
    /// The two divided.
    pub packet_hops_per_s: Option<f64>,
    /// Largest memory of the process.
    pub peak_rss_bytes: Option<u64>,
    /// The measured workloads together.
    #[serde(flatten)]
    pub all: FlowSummary,
    /// The same per workload; of its own flows also where it is not measured.
    pub workloads: BTreeMap<String, FlowSummary>,
    /// Totals.
    pub counters: CounterSummary,
    /// The balance of packets and bytes; `None`: it was not checked.
    pub conservation: Option<ConservationSummary>,
    /// The queues of the switches' ports.
    #[serde(default)]
    pub queues: QueueSummary,
    /// Version of the project.
    pub version: String,
    /// Commit of the build.
    pub commit: String,
    /// Whether a time limit ended the run before all flows were done.
    pub time_limit_struck: bool,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// How the run ended; `None` in results of older versions.
    #[serde(default)]
    pub status: Option<RunStatus>,
    /// The links of the circle of pauses in which a run ended as a deadlock; absent elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deadlock: Vec<String>,
    /// The first flows that did not finish, for people: which, where, since when. At most five.
    #[serde(default)]
    pub unfinished_named: Vec<String>,
    /// Warm-up in seconds.
    #[serde(default)]
    pub warmup_s: f64,
    /// Whether measured flows wait for others (a collective).
    #[serde(default)]
    pub flows_wait: bool,
    /// Bytes of the simulator's own structures per host.
    #[serde(default)]
    pub bytes_per_host: Option<u64>,
    /// When the first flow that counts started, in seconds; `None` where none did.
    #[serde(default)]
    pub arrivals_from_s: Option<f64>,
    /// When the last one started.
    #[serde(default)]
    pub arrivals_to_s: Option<f64>,
    /// Begin of the window of `window_utilisation` in `links`, in seconds; `None` without one.
    #[serde(default)]
    pub window_from_s: Option<f64>,
    /// Its end.
    #[serde(default)]
    pub window_to_s: Option<f64>,
    /// When `trace` ends, in seconds, where it has as many rows as it may have; `None` where it is whole or there is none.
    #[serde(default)]
    pub trace_cut_s: Option<f64>,
    /// What carried the packets; absent where they were simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datapath: Option<String>,
    /// The longest time for which an endpoint was not scheduled, in seconds; absent where the run was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_pause_s: Option<f64>,
    /// How far the machine kept up with real packets; absent where they were simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_load: Option<MachineSummary>,
    /// Collectives that ranks ran over a network plugin; absent where there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectives: Vec<CollectiveSummary>,
    /// What the machine of a run of real packets lacked, and what that means; absent elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// When each fault of a run of real packets took effect; absent elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultSummary>,
    /// Pairs of hosts that lost each other; absent where there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_peers: Vec<LostPeerSummary>,
    /// Links that are offered more than they can carry.
    #[serde(default)]
    pub offered_load: Vec<OfferedLoad>,
}

/// How far the machine kept up with real packets; null: not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineSummary {
    /// Whether the results reflect the machine rather than the load balancer.
    pub bound: Option<bool>,
    /// Rate at which hosts sent over the rate that transport and pacing asked for.
    pub offered_share: Option<f64>,
    /// Share of their active time for which endpoints ran late.
    pub late_share: Option<f64>,
    /// Share of the processors' time in which they were idle.
    pub idle_share: Option<f64>,
    /// Mean rate per sending host that transport and pacing asked for.
    pub asked_bps: Option<f64>,
    /// Mean rate at which the endpoints sent.
    pub offered_bps: Option<f64>,
    /// Mean rate at which the ports of their hosts sent.
    pub achieved_bps: Option<f64>,
}

impl From<&MachineLoad> for MachineSummary {
    fn from(of: &MachineLoad) -> Self {
        let MachineLoad { asked_bps, offered_bps, achieved_bps, offered_share, late_share, idle_share, is_bound } = *of;
        MachineSummary { bound: is_bound, offered_share, late_share, idle_share, asked_bps, offered_bps, achieved_bps }
    }
}

impl MachineSummary {
    /// What was measured, in words; empty where nothing was.
    pub fn in_words(&self) -> String {
        let percent = |share: Option<f64>, words: fn(String) -> String| {
            share.map(|share| words(format!("{} %", significant_digits_trimmed(share * 100.0, 3))))
        };
        let parts = [
            percent(self.offered_share, |share| format!("hosts offered {share} of the rate asked for")),
            percent(self.late_share, |share| format!("endpoints ran late for {share} of their active time")),
            percent(self.idle_share, |share| format!("processors were idle for {share}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// A collective of real ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectiveSummary {
    /// Its workload.
    pub workload: String,
    /// What it is called.
    pub collective: String,
    /// Ranks.
    pub ranks: usize,
    /// Bytes of each rank's buffer.
    pub bytes: u64,
    /// Version of NCCL's interface; `None` where it did not come to its end.
    pub abi: Option<u32>,
    /// Rounds that were done.
    pub rounds: usize,
    /// The median round, each the time of its slowest rank, in seconds.
    pub median_round_s: Option<f64>,
    /// Bits per second over each rank's link, by NCCL's factor.
    pub bus_bandwidth_bps: Option<f64>,
}

impl From<&Collective> for CollectiveSummary {
    fn from(of: &Collective) -> Self {
        let Collective { workload, collective, ranks, bytes, abi, rounds, median_round_s, bus_bandwidth_bps } =
            of.clone();
        CollectiveSummary { workload, collective, ranks, bytes, abi, rounds, median_round_s, bus_bandwidth_bps }
    }
}

/// Most unfinished flows that a summary names; the others are counted, and every one is in the flow table.
const NAMED: usize = 5;

/// An unfinished flow, for people.
fn name_of(flow: &FlowRow) -> String {
    let (number, src, dst, size) = (flow.flow_id, flow.src, flow.dst, flow.size_bytes);
    let since = flow.start.map_or("never started".to_string(), |start| format!("started at {start}"));
    format!("flow {number} (host{src} to host{dst}, {size} B, {since})")
}

/// How many flows there were and how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowCounts {
    /// All flows.
    pub total: u64,
    /// Those with a completion time of the kind in `fct_kind`.
    pub finished: u64,
    /// The others, among them those that never started.
    pub unfinished: u64,
    /// Finished flows in the statistics: measured and past the warm-up.
    pub measured: u64,
    /// Flows that would be in the statistics had they finished.
    pub measured_unfinished: u64,
}

/// The statistics of a set of flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// How many.
    pub flows: FlowCounts,
    /// Which completion time the rest is over.
    pub fct_kind: FctKind,
    /// Flow completion time in microseconds.
    pub fct_us: Distribution,
    /// Completion time over that of the same flow alone.
    pub slowdown: Distribution,
    /// Largest completion time over the largest ideal one (PRIME's "Ratio"). `None` where a flow that counts did not
    /// finish: the largest is then not known.
    pub fct_ratio_max: Option<f64>,
    /// From the first start of a flow that counts to the last acknowledgement of one, in microseconds: how long a
    /// collective takes. `None` where a flow that counts did not finish.
    #[serde(default)]
    pub completion_us: Option<f64>,
    /// Sizes of the flows that count.
    pub size_bytes: SizeRange,
    /// What was counted of the finished flows that count, added up or the largest.
    #[serde(default)]
    pub metrics: FlowTotals,
    /// Whether the flows enter the statistics over all workloads.
    pub measured: bool,
}

macro_rules! flow_totals {
    ($($name:ident: $how:ident, $unit:literal, $meaning:literal, $(fingerprint $place:literal)?;)*) => {
        /// What was counted of several flows; `None` where it was not of one of them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct FlowTotals {
            $(#[doc = concat!(stringify!($how), ", ", $unit, ": ", $meaning, ".")] pub $name: Option<u64>,)*
        }

        impl From<FlowMetrics> for FlowTotals {
            fn from(metrics: FlowMetrics) -> Self {
                FlowTotals { $($name: metrics.$name,)* }
            }
        }
    };
}

anabranch_outcome::flow_metrics!(flow_totals);

/// Smallest and largest flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeRange {
    /// Smallest, in bytes.
    pub min: Option<u64>,
    /// Largest, in bytes.
    pub max: Option<u64>,
}

/// Queues of switch ports: waiting data, the NICs of the hosts left out. `None` where a port was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueSummary {
    /// Most bytes that ever waited at one port.
    pub max_bytes: Option<u64>,
    /// 99th percentile over time of the port where it is largest.
    pub p99_bytes: Option<u64>,
    /// Mean over time and ports.
    pub mean_bytes: Option<f64>,
}

impl QueueSummary {
    /// Over the queues of `ports`.
    fn of(ports: &[&LinkRow]) -> Self {
        // One port that was not measured may be the largest.
        let largest = |of: fn(&LinkRow) -> Option<u64>| -> Option<u64> {
            ports.iter().map(|port| of(port)).collect::<Option<Vec<_>>>()?.into_iter().max()
        };
        let means: Option<Vec<f64>> = ports.iter().map(|port| port.queue.mean_bytes).collect();
        QueueSummary {
            max_bytes: largest(|port| port.queue.max_bytes),
            p99_bytes: largest(|port| port.queue.p99_bytes),
            mean_bytes: means.and_then(|means| crate::statistics::mean(&means)),
        }
    }
}

/// What differs from one run of the same thing to the next, or with the machine.
const OF_THE_MACHINE: &[&str] =
    &["wall_s", "packet_hops_per_s", "peak_rss_bytes", "bytes_per_host", "threads", "events", "version", "commit"];

/// The first key under which two summaries of the same run say different things; what differs with the machine is left out.
pub fn differing_summary(recorded: &Summary, again: &Summary) -> Option<String> {
    let values = |summary: &Summary| match serde_json::to_value(summary) {
        Ok(serde_json::Value::Object(values)) => values,
        _ => serde_json::Map::new(),
    };
    // Both by way of text: what is read back may differ from what was written in the last digit.
    let again = serde_json::to_string(again).ok().and_then(|text| serde_json::from_str::<Summary>(&text).ok());
    let (recorded, again) = (values(recorded), again.as_ref().map(values).unwrap_or_default());
    let keys = again.keys().chain(recorded.keys()).filter(|key| !OF_THE_MACHINE.contains(&key.as_str()));
    let mut different = keys.filter(|key| recorded.get(*key) != again.get(*key));
    different.next().cloned()
}

impl Summary {
    /// What ran it: `sim`, `testbed`.
    pub fn backend(&self) -> &str {
        match self.recorded_backend.as_str() {
            // Older versions had these two.
            "" if self.datapath.is_some() => "testbed",
            "" => "sim",
            backend => backend,
        }
    }

    /// Sums up a run.
    pub fn new(result: &RunResult, meta: &RunMeta) -> Self {
        let counted_from = meta.counted_from(result);
        let of = |belongs: &dyn Fn(&FlowRow) -> bool, counts: &dyn Fn(&FlowRow) -> bool, measured| {
            let flows = result.flows.iter().filter(|flow| belongs(flow));
            FlowSummary::new(flows, &|flow| counts(flow) && past_warmup(flow, counted_from), meta, measured)
        };
        let workloads = meta.workloads.iter().enumerate().map(|(index, workload)| {
            let own = |flow: &FlowRow| usize::from(flow.workload) == index;
            (workload.name.clone(), of(&own, &|_| true, workload.measured))
        });
        let switch_ports: Vec<&LinkRow> = result.links.iter().filter(|link| !is_nic(link)).collect();
        let unfinished = result.flows.iter().filter(|flow| meta.fct_kind.fct(flow).is_none());
        let counts = |flow: &&FlowRow| meta.is_measured(flow) && past_warmup(flow, counted_from);
        let starts = || result.flows.iter().filter(counts).filter_map(|flow| flow.start);
        let cut = result.watched.trace_cut;
        let mut summary = Summary {
            scenario: meta.scenario.clone(),
            scheme: meta.scheme.clone(),
            seed: meta.seed,
            threads: meta.threads,
            recorded_backend: meta.backend.clone(),
            fingerprint: result.fingerprint.map(|fingerprint| format!("{fingerprint:016x}")),
            simulated_s: result.simulated.as_seconds(),
            wall_s: result.wall_seconds,
            events: result.events,
            packet_hops: result.packet_hops,
            packet_hops_per_s: result.packet_hops.map(|hops| per_second(hops, result.wall_seconds)),
            peak_rss_bytes: meta.peak_rss_bytes,
            all: of(&|_| true, &|flow| meta.is_measured(flow), true),
            workloads: workloads.collect(),
            counters: CounterSummary::from(&result.counters),
            conservation: result.conservation.as_ref().map(ConservationSummary::from),
            queues: QueueSummary::of(&switch_ports),
            version: meta.version.clone(),
            commit: meta.commit.clone(),
            time_limit_struck: result.time_limit_struck,
            interrupted: result.interrupted,
            status: Some(RunStatus::of(result)),
            deadlock: result.deadlock.clone(),
            unfinished_named: unfinished.take(NAMED).map(name_of).collect(),
            flows_wait: meta.flows_wait,
            warmup_s: meta.warmup.as_seconds(),
            bytes_per_host: result.bytes_per_host,
            datapath: result.on_wire.as_ref().map(|wire| wire.datapath.clone()),
            longest_pause_s: result.on_wire.as_ref().and_then(|wire| wire.longest_pause).map(Time::as_seconds),
            machine_load: result.on_wire.as_ref().map(|wire| (&wire.machine).into()),
            collectives: result.on_wire.iter().flat_map(|wire| &wire.collectives).map(Into::into).collect(),
            missing: result.on_wire.as_ref().map(|wire| wire.missing.clone()).unwrap_or_default(),
            faults: result.on_wire.as_ref().map_or_else(Vec::new, |wire| FaultSummary::of(wire, &meta.planned_faults)),
            lost_peers: result.on_wire.iter().flat_map(|wire| &wire.lost_peers).map(Into::into).collect(),
            arrivals_from_s: starts().min().map(Time::as_seconds),
            arrivals_to_s: starts().max().map(Time::as_seconds),
            window_from_s: result.window.as_ref().map(|window| window.from.as_seconds()),
            window_to_s: result.window.as_ref().map(|window| window.to.as_seconds()),
            trace_cut_s: cut.then(|| result.watched.trace.last().map(|row| row.time.as_seconds())).flatten(),
            offered_load: above_capacity(result, meta),
        };
        summary.counters.packets_per_ack = summary.packets_per_ack();
        summary
    }

    /// Returns `true` where no real packets were carried.
    pub fn is_simulated(&self) -> bool {
        self.backend() == "sim"
    }

    /// Returns `true` where the machine is known not to have kept up.
    pub fn is_machine_bound(&self) -> bool {
        self.machine_load.and_then(|machine| machine.bound) == Some(true)
    }

    /// Things to check before the figures are trusted, as sentences.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = vec![];
        let flows = &self.all.flows;
        if let Some(machine) = self.machine_load.filter(|_| self.is_machine_bound()) {
            let words = machine.in_words();
            warnings.push(format!("Machine-bound: {words}. The results reflect the machine, not the load balancer."));
        }
        warnings.extend(self.missing.iter().map(|missing| format!("Missing on this machine: {missing}.")));
        warnings.extend(real_run::late(&self.faults));
        warnings.extend(real_run::lost(&self.lost_peers));
        if self.interrupted {
            warnings.push("The run was interrupted; its results are partial.".to_string());
        }
        warnings.extend(self.deadlocked().map(|sentence| format!("{sentence}.")));
        if self.time_limit_struck {
            warnings.push(format!("The time limit struck at {} s, before all flows were done.", self.simulated_s));
        }
        if flows.measured_unfinished > 0 {
            warnings.push(format!(
                "{} of {} flows that count did not finish; the statistics are over the others and look better than the truth.",
                flows.measured_unfinished,
                flows.measured + flows.measured_unfinished
            ));
        } else if flows.unfinished > 0 {
            warnings.push(format!(
                "{} of {} flows did not finish; none of them enters the statistics.",
                flows.unfinished, flows.total
            ));
        }
        if !self.unfinished_named.is_empty() {
            let more = flows.unfinished.saturating_sub(self.unfinished_named.len() as u64);
            let more = if more > 0 { format!("; {more} more in the flow table") } else { String::new() };
            warnings.push(format!("Unfinished: {}{more}.", self.unfinished_named.join(", ")));
        }
        if let Some(end) = self.trace_cut_s {
            warnings.push(format!(
                "The trace has as many rows as `measure.trace_limit` allows and ends at {end} s; what follows is left out."
            ));
        }
        for offered in &self.offered_load {
            warnings.push(format!(
                "The flows offer {:.0} % of what {} can carry: queues grow for as long as flows arrive, and the results depend on \
                 how long that is.",
                offered.load * 100.0,
                offered.links
            ));
        }
        if flows.measured == 0 {
            warnings.push("No finished flow enters the statistics.".to_string());
        }
        if self.conservation.is_some_and(|conservation| !conservation.holds) {
            warnings.push("Packets or bytes were lost or invented: the conservation check failed.".to_string());
        }
        warnings
    }

    /// What a deadlock is, as a sentence without its full stop; `None` where the run ended in another way.
    pub fn deadlocked(&self) -> Option<String> {
        let links = self.deadlock.join(", ");
        (!self.deadlock.is_empty())
            .then(|| format!("The run ended as a PFC deadlock: {links} are paused and wait for each other in a circle"))
    }

    /// Data arrivals per ACK; `None` where no ACK was sent. The NACKs of trimmed packets, one per header that arrived, are
    /// not counted (those of a RoCE receiver, which answers with nothing else, are). Worked out anew, since results of
    /// older versions do not have it among their counters.
    pub fn packets_per_ack(&self) -> Option<f64> {
        let conservation = self.conservation?;
        let acks = self.counters.acks?.saturating_sub(conservation.headers.delivered);
        (acks > 0).then(|| conservation.data_packets.delivered as f64 / acks as f64)
    }

    /// Share of data arrivals that came out of order; `None` where nothing arrived.
    pub fn out_of_order_share(&self) -> Option<f64> {
        let arrived = self.conservation?.data_packets.delivered;
        Some(self.counters.out_of_order?).filter(|_| arrived > 0).map(|packets| packets as f64 / arrived as f64)
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

impl FlowSummary {
    /// Of `flows`; the statistics are over the finished ones that count.
    fn new<'a>(
        flows: impl Iterator<Item = &'a FlowRow>,
        counts: &dyn Fn(&FlowRow) -> bool,
        meta: &RunMeta,
        measured: bool,
    ) -> Self {
        let fct_kind = meta.fct_kind;
        let (mut number, mut sizes) = (FlowCounts::default(), SizeRange::default());
        let (mut fct_us, mut slowdowns) = (vec![], vec![]);
        let mut metrics: Vec<&FlowMetrics> = vec![];
        let (mut longest, mut longest_ideal) = (0, 0);
        let (mut first, mut last): (Option<Time>, Option<Time>) = (None, None);
        for flow in flows {
            let fct = fct_kind.fct(flow);
            number.total += 1;
            number.finished += u64::from(fct.is_some());
            if !counts(flow) {
                continue;
            }
            sizes.min = Some(sizes.min.map_or(flow.size_bytes, |min| min.min(flow.size_bytes)));
            sizes.max = sizes.max.max(Some(flow.size_bytes));
            longest_ideal = longest_ideal.max(fct_kind.ideal(flow).ps());
            let Some(fct) = fct else {
                number.measured_unfinished += 1;
                continue;
            };
            number.measured += 1;
            longest = longest.max(fct.ps());
            first = flow.start.map(|start| first.map_or(start, |first| first.min(start))).or(first);
            last = last.max(flow.start.zip(flow.fct_ack).map(|(start, fct)| start + fct));
            metrics.push(&flow.metrics);
            fct_us.push(fct.as_us());
            slowdowns.extend(meta.slowdown(flow));
        }
        number.unfinished = number.total - number.finished;
        let known = number.measured > 0 && number.measured_unfinished == 0 && longest_ideal > 0;
        FlowSummary {
            flows: number,
            fct_kind,
            fct_us: Distribution::of(&mut fct_us),
            slowdown: Distribution::of(&mut slowdowns),
            fct_ratio_max: known.then(|| longest as f64 / longest_ideal as f64),
            completion_us: first.zip(last).filter(|_| known).map(|(first, last)| last.saturating_sub(first).as_us()),
            size_bytes: sizes,
            metrics: FlowMetrics::together(metrics).into(),
            measured,
        }
    }
}

/// Declares a struct of integers that mirrors one of `outcome`, with names for JSON, and a value that is worked out
/// from more than the source.
macro_rules! mirror {
    ($(#[$doc:meta])* $name:ident of $source:ident { $($field:ident)* }: $value:ty $(, beside $(#[$more_doc:meta])* $more:ident: $type:ty)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(#[doc = concat!("As in [`", stringify!($source), "::", stringify!($field), "`].")] pub $field: $value,)*
            $($(#[$more_doc])* pub $more: $type,)?
        }
        impl From<&$source> for $name {
            fn from(source: &$source) -> Self {
                $name { $($field: source.$field,)* $($more: <$type>::default(),)? }
            }
        }
    };
}

mirror! {
    /// Totals of a run.
    CounterSummary of RunMetrics {
        data_packets acks ecn_marked trimmed dropped retransmitted timeouts out_of_order pfc_pauses flowlets
        path_switches probes probe_bytes created_flowlets added_delay_ns reroutes reordered_packets
        gaps gaps_1_rtt gaps_2_rtt gaps_3_rtt
    }: Option<u64>,
    beside
    /// Data arrivals per ACK, as [`Summary::packets_per_ack`] counts them.
    packets_per_ack: Option<f64>
}

mirror! {
    /// One line of the conservation check.
    BalanceSummary of Balance { injected delivered dropped trimmed in_flight }: u64
}

/// The conservation check of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConservationSummary {
    /// Whether every line holds and finished flows received their bytes exactly once.
    pub holds: bool,
    /// Data packets.
    pub data_packets: BalanceSummary,
    /// Bytes of data packets.
    pub data_bytes: BalanceSummary,
    /// Headers of trimmed packets.
    pub headers: BalanceSummary,
    /// ACKs and NACKs.
    pub acks: BalanceSummary,
    /// Bytes of ACKs and NACKs.
    pub ack_bytes: BalanceSummary,
    /// Probes and their replies.
    #[serde(default)]
    pub probes: BalanceSummary,
    /// Pause frames and what switch schemes tell each other.
    #[serde(default)]
    pub control: BalanceSummary,
    /// Unique payload bytes received by finished flows.
    pub unique_bytes: u64,
    /// Their sizes added up.
    pub flow_bytes: u64,
}

impl From<&Conservation> for ConservationSummary {
    fn from(c: &Conservation) -> Self {
        let lines = [&c.data_packets, &c.data_bytes, &c.headers, &c.acks, &c.ack_bytes, &c.probes, &c.control];
        ConservationSummary {
            holds: lines.iter().all(|line| line.holds()) && c.unique_bytes == c.flow_bytes,
            data_packets: (&c.data_packets).into(),
            data_bytes: (&c.data_bytes).into(),
            headers: (&c.headers).into(),
            acks: (&c.acks).into(),
            ack_bytes: (&c.ack_bytes).into(),
            probes: (&c.probes).into(),
            control: (&c.control).into(),
            unique_bytes: c.unique_bytes,
            flow_bytes: c.flow_bytes,
        }
    }
}
