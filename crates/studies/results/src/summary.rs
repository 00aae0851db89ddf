//! `summary.json`: a run in a page of numbers.

use crate::{
    ColumnEntry, FaultSummary, FctKind, Key, OfferedLoad, RunMeta, declared,
    load::{above_capacity, is_nic},
    past_warmup, real_run, seconds,
};
use anabranch_outcome::{
    Collective, Conservation, FlowMetrics, FlowRow, LinkRow, LostPeer, MachineLoad, RunMetrics, RunResult,
};
use anabranch_statistics::{Distribution, slowdown};
use anabranch_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

anabranch_settings::worded! {
    /// Outcome of a run, the later the worse.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum RunStatus {
        /// The run ended by itself, or at the requested time.
        Finished = "finished",
        /// The steady state was skipped (`run.skip`): its times are estimates.
        Skipped = "skipped",
        /// A time limit ended it before all flows were done.
        TimeLimit = "time-limit",
        /// The user interrupted it.
        Interrupted = "interrupted",
        /// Hosts lost each other, and flows between them did not finish.
        LostPeers = "lost-peers",
        /// PFC pauses wait for each other in a circle.
        Deadlock = "deadlock",
        /// No open flow received a byte for `run.stall_after` timeouts, and no event was pending.
        Stalled = "stalled",
    }
}

impl RunStatus {
    fn of(result: &RunResult) -> Self {
        match result {
            _ if result.interrupted => RunStatus::Interrupted,
            _ if !result.deadlock.is_empty() => RunStatus::Deadlock,
            _ if result.stalled_after.is_some() => RunStatus::Stalled,
            _ if result.time_limit_struck => RunStatus::TimeLimit,
            _ if result.on_wire.as_ref().is_some_and(|wire| !wire.lost_peers.is_empty()) => RunStatus::LostPeers,
            _ if result.skipped.is_some_and(|skipped| skipped > Time::ZERO) => RunStatus::Skipped,
            _ => RunStatus::Finished,
        }
    }
}

declared! {
    /// Content of `summary.json`. The keys are stable: keys may be added, and none changes its meaning.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct Summary {
        pub scenario: String => "text", "", "name of the scenario";
        pub scheme: String => "text", "", "load balancer";
        pub seed: u64 => "integer", "", "seed of the run";
        pub threads: usize => "integer", "", "threads of the simulation";
        #[serde(default)]
        pub backend: String => "text", "", "backend: sim, testbed";
        pub fingerprint: Option<String> => "text", "",
            "64 bits over the integers of flows and links, equal for any number of threads; null on the clock of a machine, and where the steady state was skipped";
        pub simulated_s: f64 => "real", "s", "duration of the run: simulated time, or clock time on a testbed";
        pub wall_s: f64 => "real", "s", "wall time of the run without setup";
        pub events: Option<u64> => "integer", "", "events handled; null on a testbed";
        pub packet_hops: Option<u64> => "integer", "packets", "packets that left a port; null where not counted";
        pub packet_hops_per_s: Option<f64> => "real", "1/s", "packet_hops over wall_s";
        pub peak_rss_bytes: Option<u64> => "integer", "bytes",
            "largest memory of the process; null where the system does not report it";
        #[serde(flatten)]
        /// Statistics over all measured workloads.
        pub all: FlowSummary;
        pub workloads: BTreeMap<String, FlowSummary> => "object", "", "the keys from flows to measured, per workload";
        /// Totals.
        pub counters: CounterSummary;
        pub conservation: Option<ConservationSummary> => "object", "packets, bytes",
            "injected = delivered + dropped + trimmed + in_flight, per kind; null where it was not checked";
        #[serde(default)]
        /// Queues of the switch ports.
        pub queues: QueueSummary;
        pub version: String => "text", "", "version of the project";
        pub commit: String => "text", "", "commit of the build";
        pub time_limit_struck: bool => "boolean", "", "true if a time limit ended the run before all flows were done";
        pub interrupted: bool => "boolean", "", "true if the run was interrupted";
        pub status: Option<RunStatus> => "text", "",
            "outcome: finished, time-limit, interrupted, deadlock, stalled, lost-peers or skipped";
        pub deadlock: Vec<String> => default "list of text", "",
            "links of a cyclic wait of PFC pauses (deadlock); absent elsewhere";
        pub last_progress_s: Option<f64> => default "real", "s",
            "time at which an open flow last received a byte, of a stalled run; absent elsewhere";
        pub stalled_port: Option<String> => default "text", "",
            "port with the most trimmed headers and control packets when a run stalled, or where none waited, with the most packets trimmed or dropped; absent elsewhere";
        pub stalled_port_bytes: Option<u64> => default "integer", "B",
            "bytes of trimmed headers and control packets at that port; absent elsewhere";
        pub stall_reason: Option<String> => default "text", "",
            "why no event was pending, of a run that stalled so; absent elsewhere";
        pub ideal_note: Option<String> => default "text", "",
            "why ideal times, and so slowdowns, are not exact; absent where they are";
        pub skipped_s: Option<f64> => default "real", "s",
            "simulated time that was skipped as steady (run.skip), 0 where nothing was; absent where not requested";
        #[serde(default)]
        pub unfinished_named: Vec<String> => "list of text", "",
            "the first unfinished flows: number, hosts, size, start";
        #[serde(default)]
        pub warmup_s: f64 => "real", "s",
            "flows that start within this time of the first flow are not in the statistics";
        #[serde(default)]
        pub flows_wait: bool => "boolean", "", "true if measured flows wait for others, as in a collective";
        pub bytes_per_host: Option<u64> => "integer", "bytes", "the simulator's own structures per host";
        pub arrivals_from_s: Option<f64> => "real", "s", "start of the first measured flow; null without one";
        pub arrivals_to_s: Option<f64> => "real", "s", "start of the last measured flow";
        pub window_from_s: Option<f64> => "real", "s",
            "begin of the window of window_utilisation in links; null without one";
        pub window_to_s: Option<f64> => "real", "s", "its end";
        pub trace_cut_s: Option<f64> => "real", "s",
            "end of a trace, or of the calls of schemes, that reached measure.trace_limit rows; null if it is complete";
        pub datapath: Option<String> => default "text", "", "datapath of real packets; absent where simulated";
        pub longest_pause_s: Option<f64> => default "real", "s",
            "longest time for which an endpoint was not scheduled; absent where simulated";
        pub machine_load: Option<MachineLoad> => default "object", "",
            "load of the machine: bound, offered_share, late_share, idle_share, asked_bps, offered_bps, achieved_bps; absent where simulated";
        pub collectives: Vec<Collective> => default "list of objects", "",
            "collectives: workload, collective, ranks, bytes of a buffer, rounds, completion_s, median_round_s, bus_bandwidth_bps (NCCL's definition), abi (of ranks over a network plugin); absent where there were none";
        pub missing: Vec<String> => default "list of text", "",
            "features that the machine lacked, in a run of real packets; absent elsewhere";
        pub faults: Vec<FaultSummary> => default "list of objects", "",
            "per fault of a run of real packets: fault (its number in the scenario, from 1), planned_s, took_effect_s (null: not before the end of the run); absent elsewhere";
        pub lost_peers: Vec<LostPeer> => default "list of objects", "",
            "hosts (two names) of which one timed out for the other, reason; absent without any";
        pub scale_up: Option<ScaleUpSummary> => default "object", "",
            "scale-up networks: bytes, messages, and of all directions of the ports of GPUs utilisation_mean and utilisation_max; absent without servers";
        #[serde(default)]
        pub offered_load: Vec<OfferedLoad> => "list of object", "",
            "payload offered over capacity, where it exceeds that of the links named";
    }
}

/// Size of small and large flows in bytes, up to and from which; the limits of pFabric §5 and CONGA §5.
pub const SMALL_FLOW: u64 = 100_000;
pub(crate) const LARGE_FLOW: u64 = 10_000_000;

/// Maximum number of unfinished flows that a summary names.
const NAMED: usize = 5;

fn name_of(flow: &FlowRow) -> String {
    let (number, src, dst, size) = (flow.flow_id, flow.src, flow.dst, flow.size_bytes);
    let since = flow.start.map_or("never started".to_string(), |start| format!("started at {start}"));
    format!("flow {number} (host{src} to host{dst}, {size} B, {since})")
}

declared! {
    /// Numbers of flows, by outcome.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct FlowCounts {
        pub total: u64 => "integer", "flows", "all flows";
        pub finished: u64 => "integer", "flows", "flows with a completion time of the kind in fct_kind";
        pub unfinished: u64 => "integer", "flows", "all others, including flows that never started";
        pub measured: u64 => "integer", "flows", "finished flows in the statistics: measured workload, past the warm-up";
        pub measured_unfinished: u64 => "integer", "flows", "flows that would be in the statistics had they finished";
    }
}

declared! {
    /// Statistics of a set of flows.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct FlowSummary {
        /// Numbers of flows.
        pub flows: FlowCounts;
        pub fct_kind: FctKind => "text", "", "rx: first packet sent to last received; ack: start to last acknowledgement";
        pub fct_us: Distribution => "object", "us",
            "mean, p50, p95, p99, max of the flow completion time; quantiles interpolate linearly";
        pub slowdown: Distribution => "object", "",
            "the same of the completion time over that of the flow alone on the network";
        #[serde(default)]
        pub nic_wait_us: Distribution => "object", "us",
            "the same of the time from the start to the first packet sent, which fct_kind rx leaves out; null in older results";
        pub slowdown_p99_small: Option<f64> => default "real", "",
            "99th percentile of the slowdown of flows up to 100 kB; absent without them, and where all flows are small";
        pub slowdown_p99_large: Option<f64> => default "real", "",
            "99th percentile of the slowdown of flows of 10 MB or more; absent without them, and where all flows are large";
        pub fct_ratio_max: Option<f64> => "real", "",
            "largest completion time over largest ideal one; null where a flow did not finish";
        pub completion_us: Option<f64> => "real", "us",
            "first start to last acknowledgement of the measured flows; null if one did not finish";
        pub size_bytes: SizeRange => "object", "bytes", "smallest and largest flow in the statistics";
        #[serde(default)]
        pub metrics: FlowMetrics => "object", "",
            "counts of the finished measured flows, by column of flows: sums, maxima of max_ columns; null where not measured";
        pub measured: bool => "boolean", "", "true if these flows are in the statistics over all workloads";
        pub is_job: Option<bool> => default "boolean", "",
            "true if completion_us is the result: a collective, rounds of training, flows that wait for others; absent in older results";
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Groups of a job; absent elsewhere.
        pub groups: Option<GroupSummary>;
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Flows of jobs that have no rows; absent where all have.
        pub unlisted: Option<UnlistedSummary>;
    }
}

declared! {
    /// Flows of jobs without rows (`measure.flow_rows`). No other statistic than `completion_us` includes them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct UnlistedSummary {
        pub total: u64 => "integer", "flows", "flows without rows";
        pub finished: u64 => "integer", "flows", "those whose last acknowledgement arrived";
    }
}

/// First start and last end of flows.
type Span = (Option<Time>, Option<Time>);

impl UnlistedSummary {
    /// Summarises the jobs for which `belongs` returns `true`; `None` without any. Also returns their span.
    fn of(result: &RunResult, belongs: &dyn Fn(usize) -> bool) -> Option<(Self, Span)> {
        let mut found = None;
        for job in result.jobs.unlisted.iter().filter(|job| belongs(usize::from(job.workload))) {
            let (sum, (first, last)): &mut (Self, Span) = found.get_or_insert_default();
            sum.total += job.total;
            sum.finished += job.finished;
            *first = job.first_start.map(|start| first.map_or(start, |first| first.min(start))).or(*first);
            *last = (*last).max(job.last_end);
        }
        found
    }
}

declared! {
    /// Statistics of the groups of a job, a value per group and repetition.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct GroupSummary {
        pub total: u64 => "integer", "", "groups times repetitions";
        pub complete: u64 => "integer", "", "those that all ranks have ended; the statistics are over them";
        pub completion_us: Distribution => "object", "us", "mean, p50, p95, p99, max of the completion time";
        pub slowdown: Distribution => "object", "", "the same of the completion time over that of the job alone";
        pub exposed_us: Distribution => "object", "us", "the same of the completion time without computation";
        pub bus_bandwidth_bps: Option<f64> => "real", "bit/s",
            "median bus bandwidth by NCCL's definition; null where NCCL defines none";
    }
}

impl GroupSummary {
    /// Summarises the rows of a workload; `None` without rows.
    fn of(result: &RunResult, workload: usize) -> Option<Self> {
        let own = || result.jobs.groups.iter().filter(|row| usize::from(row.workload) == workload);
        let total = own().count() as u64;
        let (mut completion, mut slowdowns, mut exposed, mut bus) = (vec![], vec![], vec![], vec![]);
        for row in own() {
            let Some(time) = row.completion else { continue };
            completion.push(time.as_us());
            exposed.extend(anabranch_outcome::exposed(row.completion, row.computation).map(Time::as_us));
            slowdowns.extend(row.ideal.map(|ideal| slowdown(time.ps(), ideal.ps())));
            bus.extend(row.bus_bandwidth_bps);
        }
        (total > 0).then(|| GroupSummary {
            total,
            complete: completion.len() as u64,
            completion_us: Distribution::of(&mut completion),
            slowdown: Distribution::of(&mut slowdowns),
            exposed_us: Distribution::of(&mut exposed),
            bus_bandwidth_bps: Distribution::of(&mut bus).p50,
        })
    }
}

/// Smallest and largest flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeRange {
    /// Smallest, in bytes.
    pub min: Option<u64>,
    /// Largest, in bytes.
    pub max: Option<u64>,
}

declared! {
    /// Queues of switch ports: waiting data, without the NICs of the hosts. `None` if a port was not measured.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct QueueSummary {
        pub max_bytes: Option<u64> => "integer", "bytes", "most data that ever waited at one switch port";
        pub p99_bytes: Option<u64> => "integer", "bytes",
            "99th percentile over time of the switch port where it is largest";
        pub mean_bytes: Option<f64> => "real", "bytes", "waiting data, mean over time and switch ports";
    }
}

impl QueueSummary {
    fn of(ports: &[&LinkRow]) -> Self {
        // A port that was not measured may be the largest.
        let largest = |of: fn(&LinkRow) -> Option<u64>| -> Option<u64> {
            ports.iter().map(|port| of(port)).collect::<Option<Vec<_>>>()?.into_iter().max()
        };
        let means: Option<Vec<f64>> = ports.iter().map(|port| port.queue.mean_bytes).collect();
        QueueSummary {
            max_bytes: largest(|port| port.queue.max_bytes),
            p99_bytes: largest(|port| port.queue.p99_bytes),
            mean_bytes: means.and_then(|means| anabranch_statistics::statistics::mean(&means)),
        }
    }
}

/// Keys that differ between repetitions of a run, or with the machine.
const OF_THE_MACHINE: &[&str] =
    &["wall_s", "packet_hops_per_s", "peak_rss_bytes", "bytes_per_host", "threads", "events", "version", "commit"];

/// Returns the first key with different values in two summaries of the same run, except for keys that depend on the machine.
pub fn differing_summary(recorded: &Summary, again: &Summary) -> Option<String> {
    let values = |summary: &Summary| match serde_json::to_value(summary) {
        Ok(serde_json::Value::Object(values)) => values,
        _ => serde_json::Map::new(),
    };
    // Through text: a number that is read back may differ in the last digit.
    let again = serde_json::to_string(again).ok().and_then(|text| serde_json::from_str::<Summary>(&text).ok());
    let (recorded, again) = (values(recorded), again.as_ref().map(values).unwrap_or_default());
    let keys = again.keys().chain(recorded.keys()).filter(|key| !OF_THE_MACHINE.contains(&key.as_str()));
    let mut different = keys.filter(|key| recorded.get(*key) != again.get(*key));
    different.next().cloned()
}

impl Summary {
    /// Returns the keys of `summary.json` with their units and meanings.
    pub fn keys() -> Vec<ColumnEntry> {
        fn entries(keys: &[Key], prefix: &str) -> Vec<ColumnEntry> {
            let entry = |&(name, kind, unit, meaning): &Key| match name {
                "all" => entries(FlowSummary::KEYS, ""),
                "groups" => entries(GroupSummary::KEYS, "groups."),
                "unlisted" => entries(UnlistedSummary::KEYS, "unlisted."),
                "flows" => entries(FlowCounts::KEYS, "flows."),
                "counters" => entries(COUNTER_KEYS, "counters."),
                "queues" => entries(QueueSummary::KEYS, "queues."),
                _ => vec![ColumnEntry::new(&format!("{prefix}{name}"), kind, unit, meaning)],
            };
            keys.iter().flat_map(entry).collect()
        }
        entries(Summary::KEYS, "")
    }

    pub fn new(result: &RunResult, meta: &RunMeta) -> Self {
        let counted_from = meta.counted_from(result);
        let of = |belongs: &dyn Fn(&FlowRow) -> bool,
                  counts: &dyn Fn(&FlowRow) -> bool,
                  unlisted: Option<(UnlistedSummary, Span)>,
                  measured,
                  is_job| {
            let flows = result.flows.iter().filter(|flow| belongs(flow));
            let counts = |flow: &FlowRow| counts(flow) && past_warmup(flow, counted_from);
            FlowSummary { is_job: Some(is_job), ..FlowSummary::new(flows, &counts, meta, measured, unlisted) }
        };
        let workloads = meta.workloads.iter().enumerate().map(|(index, workload)| {
            let own = |flow: &FlowRow| usize::from(flow.workload) == index;
            let groups = GroupSummary::of(result, index);
            let unlisted = UnlistedSummary::of(result, &|workload| workload == index);
            let flows = FlowSummary { groups, ..of(&own, &|_| true, unlisted, workload.measured, workload.is_job) };
            (workload.name.clone(), flows)
        });
        let mut measured = meta.workloads.iter().filter(|workload| workload.measured).peekable();
        let all_jobs = measured.peek().is_some() && measured.all(|workload| workload.is_job);
        let switch_ports: Vec<&LinkRow> = result.links.iter().filter(|link| !is_nic(link)).collect();
        let unfinished = result.flows.iter().filter(|flow| meta.fct_kind.fct(flow).is_none());
        let counts = |flow: &&FlowRow| meta.is_measured(flow) && past_warmup(flow, counted_from);
        let starts = || result.flows.iter().filter(counts).filter_map(|flow| flow.start);
        let is_measured = |index: usize| meta.workloads.get(index).is_some_and(|workload| workload.measured);
        let mut summary = Summary {
            scenario: meta.scenario.clone(),
            scheme: meta.scheme.clone(),
            seed: meta.seed,
            threads: meta.threads,
            backend: meta.backend.clone(),
            fingerprint: result.fingerprint.map(|fingerprint| format!("{fingerprint:016x}")),
            simulated_s: result.simulated.as_seconds(),
            wall_s: result.wall_seconds,
            events: result.events,
            packet_hops: result.packet_hops,
            packet_hops_per_s: result.packet_hops.map(|hops| per_second(hops, result.wall_seconds)),
            peak_rss_bytes: meta.peak_rss_bytes,
            all: FlowSummary {
                groups: groups_of_all(result, meta),
                ..of(
                    &|_| true,
                    &|flow| meta.is_measured(flow),
                    UnlistedSummary::of(result, &is_measured),
                    true,
                    all_jobs,
                )
            },
            workloads: workloads.collect(),
            counters: CounterSummary { totals: result.counters, packets_per_ack: None },
            scale_up: ScaleUpSummary::of(result),
            conservation: result.conservation.map(|balance| ConservationSummary { holds: balance.holds(), balance }),
            queues: QueueSummary::of(&switch_ports),
            version: meta.version.clone(),
            commit: meta.commit.clone(),
            time_limit_struck: result.time_limit_struck,
            interrupted: result.interrupted,
            status: Some(RunStatus::of(result)),
            deadlock: result.deadlock.clone(),
            last_progress_s: result.stalled_after.map(Time::as_seconds),
            stalled_port: result.stalled_after.and_then(|_| stalled_port(result)),
            stalled_port_bytes: result.stalled_port.as_ref().map(|port| port.1),
            stall_reason: result.stall_reason.clone(),
            ideal_note: meta.ideal_note.clone(),
            skipped_s: result.skipped.map(Time::as_seconds),
            unfinished_named: unfinished.take(NAMED).map(name_of).collect(),
            flows_wait: meta.flows_wait,
            warmup_s: meta.warmup.as_seconds(),
            bytes_per_host: result.bytes_per_host,
            datapath: result.on_wire.as_ref().map(|wire| wire.datapath.clone()),
            longest_pause_s: result.on_wire.as_ref().and_then(|wire| wire.longest_pause).map(Time::as_seconds),
            machine_load: result.on_wire.as_ref().map(|wire| wire.machine),
            collectives: collectives(result, meta),
            missing: result.on_wire.as_ref().map(|wire| wire.missing.clone()).unwrap_or_default(),
            faults: result.on_wire.as_ref().map_or_else(Vec::new, |wire| FaultSummary::of(wire, &meta.planned_faults)),
            lost_peers: result.on_wire.iter().flat_map(|wire| wire.lost_peers.clone()).collect(),
            arrivals_from_s: starts().min().map(Time::as_seconds),
            arrivals_to_s: starts().max().map(Time::as_seconds),
            window_from_s: result.window.as_ref().map(|window| window.from.as_seconds()),
            window_to_s: result.window.as_ref().map(|window| window.to.as_seconds()),
            trace_cut_s: result.watched.cut_at().map(Time::as_seconds),
            offered_load: above_capacity(result, meta),
        };
        summary.counters.packets_per_ack = summary.packets_per_ack();
        summary
    }

    /// Returns the jobs that are no collectives, with their completion times in seconds; `None` where flows did not finish.
    pub fn jobs(&self) -> Vec<(&str, Option<f64>)> {
        let is_collective = |name: &str| self.collectives.iter().any(|of| of.workload == name);
        let jobs = self.workloads.iter().filter(|(name, of)| of.is_job == Some(true) && !is_collective(name));
        jobs.map(|(name, of)| (name.as_str(), of.completion_us.map(|us| us / 1e6))).collect()
    }

    /// Returns `true` if the packets were simulated.
    pub fn is_simulated(&self) -> bool {
        self.backend == "sim"
    }

    /// Returns `true` if the machine was measured to be overloaded.
    pub fn is_machine_bound(&self) -> bool {
        self.machine_load.and_then(|machine| machine.is_bound) == Some(true)
    }

    /// Returns the measured parts of the machine's load as text; empty if none was measured.
    pub fn machine_words(&self) -> String {
        real_run::in_words(&self.machine_load.unwrap_or_default())
    }

    /// Returns sentences on findings that limit the validity of the results.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = vec![];
        let flows = &self.all.flows;
        if self.is_machine_bound() {
            let words = self.machine_words();
            warnings.push(format!("Machine-bound: {words}. The results reflect the machine, not the load balancer."));
        }
        warnings.extend(self.missing.iter().map(|missing| format!("Missing on this machine: {missing}.")));
        warnings.extend(real_run::late(&self.faults));
        warnings.extend(real_run::lost(&self.lost_peers));
        if self.interrupted {
            warnings.push("The run was interrupted; its results are partial.".to_string());
        }
        warnings.extend(self.deadlocked().map(|sentence| format!("{sentence}.")));
        warnings.extend(self.stalled().map(|sentence| format!("{sentence}.")));
        warnings.extend(self.skip().map(|sentence| format!("{sentence}.")));
        if self.time_limit_struck {
            warnings.push(format!(
                "The time limit ended the run at {}, before all flows were done.",
                seconds(self.simulated_s)
            ));
        }
        if flows.measured_unfinished > 0 {
            warnings.push(format!(
                "{} of {} measured flows did not finish; the statistics cover only the others, so they are too good.",
                flows.measured_unfinished,
                flows.measured + flows.measured_unfinished
            ));
        } else if flows.unfinished > 0 {
            warnings.push(format!(
                "{} of {} flows did not finish; none of them is in the statistics.",
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
                "The trace reached `measure.trace_limit` rows and ends at {end} s; later events are not recorded."
            ));
        }
        for offered in &self.offered_load {
            warnings.push(format!(
                "The flows offer {:.0} % of what {} can carry: queues grow while flows arrive, so the results depend on the length of the run.",
                offered.load * 100.0,
                offered.links
            ));
        }
        let unlisted = self.all.unlisted.unwrap_or_default();
        if unlisted.finished < unlisted.total {
            warnings.push(format!(
                "{} of {} flows of jobs, which have no rows (measure.flow_rows), did not finish.",
                unlisted.total - unlisted.finished,
                unlisted.total
            ));
        }
        if flows.measured == 0 && unlisted.finished == 0 {
            warnings.push("No finished flow is in the statistics.".to_string());
        }
        if self.conservation.is_some_and(|conservation| !conservation.holds) {
            warnings.push(
                "The conservation check failed: packets or bytes are missing or counted twice. Please report this bug."
                    .to_string(),
            );
        }
        warnings
    }

    /// Returns a stall as a sentence without its full stop; `None` if the run did not stall.
    pub fn stalled(&self) -> Option<String> {
        let (since, end) = (seconds(self.last_progress_s?), seconds(self.simulated_s));
        let port = self.stalled_port.as_ref().zip(self.stalled_port_bytes).map(|(port, bytes)| {
            format!("; {bytes} B of trimmed headers and control packets wait at {port}, more than at any other port")
        });
        let refusing = self.stalled_port.as_ref().map(|port| format!("; {port} trimmed or dropped the most packets"));
        let port = port.or(refusing);
        if let Some(reason) = &self.stall_reason {
            return Some(format!(
                "The run stalled: no event is pending, but {reason}; the last byte arrived by {since}"
            ));
        }
        Some(format!(
            "The run stalled: no open flow has received a byte since {since}, and no start, fault or change of tables is due; it ended at {end}, after `run.stall_after` timeouts{}",
            port.unwrap_or_default()
        ))
    }

    /// Returns the share of the simulated time that was skipped, as a sentence without its full stop; `None` if no skip was requested.
    pub fn skip(&self) -> Option<String> {
        let skipped = self.skipped_s?;
        if skipped == 0.0 {
            return Some("`run.skip`: not steady, simulated in full".into());
        }
        let share = 100.0 * skipped / self.simulated_s;
        Some(format!(
            "`run.skip` skipped {share:.1} % of the simulated time as steady: the times of flows are estimates, and nothing else is measured"
        ))
    }

    /// Returns a deadlock as a sentence without its full stop; `None` if the run did not end in a deadlock.
    pub fn deadlocked(&self) -> Option<String> {
        let links = self.deadlock.join(", ");
        (!self.deadlock.is_empty())
            .then(|| format!("The run ended as a PFC deadlock: {links} are paused and wait for each other in a circle"))
    }

    /// Returns the data arrivals per ACK; `None` if no ACK was sent. NACKs of trimmed packets are not counted; those of
    /// a RoCE receiver, which sends no other response, are. It is computed from the counters: results of older versions
    /// do not contain it.
    pub fn packets_per_ack(&self) -> Option<f64> {
        let conservation = self.conservation?;
        let acks = self.counters.totals.acks?.saturating_sub(conservation.balance.headers.delivered);
        (acks > 0).then(|| conservation.balance.data_packets.delivered as f64 / acks as f64)
    }

    /// Returns the share of data arrivals that were out of order; `None` if no data arrived.
    pub fn out_of_order_share(&self) -> Option<f64> {
        let arrived = self.conservation?.balance.data_packets.delivered;
        Some(self.counters.totals.out_of_order?).filter(|_| arrived > 0).map(|packets| packets as f64 / arrived as f64)
    }
}

/// Returns the port where most control packets wait, else that which trimmed and dropped the most packets.
fn stalled_port(result: &RunResult) -> Option<String> {
    let lost = |link: &&LinkRow| link.trims.unwrap_or(0) + link.drops.unwrap_or(0);
    let refusing = || result.links.iter().max_by_key(lost).filter(|link| lost(link) > 0);
    let name = |link: &LinkRow| anabranch_outcome::link_name(&link.from, &link.to, link.parallel);
    result.stalled_port.as_ref().map(|port| port.0.clone()).or_else(|| refusing().map(name))
}

/// Returns those that ranks ran themselves, and those whose messages are flows. Their time is from the first start to the
/// last acknowledgement, as the completion of a job is.
fn collectives(result: &RunResult, meta: &RunMeta) -> Vec<Collective> {
    let mut all: Vec<Collective> = result.on_wire.iter().flat_map(|wire| wire.collectives.clone()).collect();
    for (index, workload) in meta.workloads.iter().enumerate() {
        let flows = || result.flows.iter().filter(|flow| usize::from(flow.workload) == index);
        let end = |flow: &FlowRow| Some(flow.start? + meta.fct_kind.fct(flow)?.max(flow.fct_ack.unwrap_or(Time::ZERO)));
        let ends: Option<Vec<Time>> = flows().map(end).collect();
        let first = flows().filter_map(|flow| flow.start).min();
        let last = ends.and_then(|ends| ends.into_iter().max());
        let completion = first.zip(last).map(|(first, last)| last.saturating_sub(first).as_seconds());
        if let Some(own) = all.iter_mut().find(|own| own.workload == workload.name) {
            own.completion_s = completion;
        } else if let Some(of) = &workload.collective {
            all.push(Collective {
                workload: workload.name.clone(),
                collective: of.name.clone(),
                ranks: of.ranks,
                bytes: of.bytes,
                abi: None,
                rounds: completion.and(of.rounds).unwrap_or(0) as usize,
                completion_s: completion,
                median_round_s: completion.filter(|_| of.rounds == Some(1)),
                bus_bandwidth_bps: completion.and_then(|seconds| of.bus_bandwidth_bps(seconds)),
            });
        }
    }
    all
}

/// Returns the groups of the only measured job.
fn groups_of_all(result: &RunResult, meta: &RunMeta) -> Option<GroupSummary> {
    let measured = |(at, workload): (usize, &crate::meta::WorkloadMeta)| workload.measured.then_some(at);
    let mut all = meta.workloads.iter().enumerate().filter_map(measured);
    all.next().filter(|_| all.next().is_none()).and_then(|only| GroupSummary::of(result, only))
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

impl FlowSummary {
    /// The statistics are over the finished flows for which `counts` returns `true`.
    fn new<'a>(
        flows: impl Iterator<Item = &'a FlowRow>,
        counts: &dyn Fn(&FlowRow) -> bool,
        meta: &RunMeta,
        measured: bool,
        unlisted: Option<(UnlistedSummary, Span)>,
    ) -> Self {
        let fct_kind = meta.fct_kind;
        let (mut number, mut sizes) = (FlowCounts::default(), SizeRange::default());
        let (mut fct_us, mut slowdowns, mut nic_waits) = (vec![], vec![], vec![]);
        let (mut small, mut large) = (vec![], vec![]);
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
            // Messages over scale-up have no packets to count.
            if !flow.is_scale_up {
                metrics.push(&flow.metrics);
            }
            fct_us.push(fct.as_us());
            nic_waits.extend(flow.nic_wait.map(Time::as_us));
            let slowdown = meta.slowdown(flow);
            slowdowns.extend(slowdown);
            match flow.size_bytes {
                ..=SMALL_FLOW => small.extend(slowdown),
                LARGE_FLOW.. => large.extend(slowdown),
                _ => {}
            }
        }
        let tail = |part: &mut Vec<f64>| (part.len() < slowdowns.len()).then(|| Distribution::of(part).p99).flatten();
        let (slowdown_p99_small, slowdown_p99_large) = (tail(&mut small), tail(&mut large));
        number.unfinished = number.total - number.finished;
        let known = number.measured > 0 && number.measured_unfinished == 0 && longest_ideal > 0;
        let mut completes = known;
        if let Some((sum, (start, end))) = &unlisted {
            completes = number.measured_unfinished == 0 && sum.finished == sum.total;
            first = start.map(|start| first.map_or(start, |first| first.min(start))).or(first);
            last = last.max(*end);
        }
        FlowSummary {
            flows: number,
            fct_kind,
            fct_us: Distribution::of(&mut fct_us),
            slowdown: Distribution::of(&mut slowdowns),
            nic_wait_us: Distribution::of(&mut nic_waits),
            slowdown_p99_small,
            slowdown_p99_large,
            fct_ratio_max: known.then(|| longest as f64 / longest_ideal as f64),
            completion_us: first
                .zip(last)
                .filter(|_| completes)
                .map(|(first, last)| last.saturating_sub(first).as_us()),
            size_bytes: sizes,
            metrics: FlowMetrics::together(metrics),
            measured,
            is_job: None,
            groups: None,
            unlisted: unlisted.map(|(sum, _)| sum),
        }
    }
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CounterSummary {
    #[serde(flatten)]
    pub totals: RunMetrics,
    /// Data arrivals per ACK ([`Summary::packets_per_ack`]).
    pub packets_per_ack: Option<f64>,
}

macro_rules! counter_keys {
    ($($name:ident: $unit:literal, $meaning:literal;)*) => {
        const COUNTER_KEYS: &[Key] = &[
            $((stringify!($name), "integer", $unit, $meaning),)*
            (
                "packets_per_ack",
                "number",
                "packets",
                "data arrivals per ACK; the NACKs of trimmed packets are not counted; null where no ACK was sent",
            ),
        ];
    };
}

anabranch_outcome::run_metrics!(counter_keys);

/// Use of the scale-up networks of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScaleUpSummary {
    /// Bytes of all messages.
    pub bytes: u64,
    pub messages: u64,
    /// Mean utilisation of the ports of all GPUs, both directions.
    pub utilisation_mean: f64,
    /// Largest utilisation of a direction of a port.
    pub utilisation_max: f64,
}

impl ScaleUpSummary {
    fn of(result: &RunResult) -> Option<Self> {
        let gpus = &result.gpus;
        let shares = || gpus.iter().flat_map(|gpu| [gpu.egress.utilisation, gpu.ingress.utilisation]);
        (!gpus.is_empty()).then(|| ScaleUpSummary {
            bytes: gpus.iter().map(|gpu| gpu.egress.bytes).sum(),
            messages: gpus.iter().map(|gpu| gpu.egress.messages).sum(),
            utilisation_mean: shares().sum::<f64>() / (2 * gpus.len()) as f64,
            utilisation_max: shares().fold(0.0, f64::max),
        })
    }
}

/// The conservation check of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConservationSummary {
    /// `true` if every line balances and finished flows received their bytes exactly once.
    pub holds: bool,
    /// Lines of the check.
    #[serde(flatten)]
    pub balance: Conservation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_explained() {
        let collective = Collective {
            workload: "ring".into(),
            collective: "all-reduce".into(),
            ranks: 2,
            bytes: Some(1),
            abi: None,
            rounds: 0,
            completion_s: None,
            median_round_s: None,
            bus_bandwidth_bps: None,
        };
        let text = || vec!["x".to_string()];
        let summary = Summary {
            deadlock: text(),
            last_progress_s: Some(0.0),
            stall_reason: Some(String::new()),
            ideal_note: Some(String::new()),
            datapath: Some("udp".into()),
            longest_pause_s: Some(0.0),
            machine_load: Some(MachineLoad::default()),
            collectives: vec![collective],
            missing: text(),
            faults: vec![FaultSummary::default()],
            scale_up: Some(ScaleUpSummary::default()),
            lost_peers: vec![LostPeer { hosts: ["a".into(), "b".into()], reason: "quiet".into() }],
            ..Summary::default()
        };
        let written = serde_json::to_value(&summary).unwrap();
        let known: Vec<String> = Summary::keys().into_iter().map(|key| key.name).collect();
        let is_known = |key: &String| known.iter().any(|name| name == key || name.starts_with(&format!("{key}.")));
        let unknown: Vec<&String> = written.as_object().unwrap().keys().filter(|key| !is_known(key)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        for part in ["counters", "flows", "queues"] {
            for key in written[part].as_object().unwrap().keys() {
                assert!(known.contains(&format!("{part}.{key}")), "{part}.{key}");
            }
        }
    }
}
