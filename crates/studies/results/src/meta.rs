//! Names to which the rows of a run refer by number.

use anabranch_outcome::{FlowRow, FlowStatus, LinkRow, RunResult};
use anabranch_statistics::slowdown;
use anabranch_units::Time;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Completion time that the statistics are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FctKind {
    /// First packet sent to last packet received.
    #[default]
    Rx,
    /// Start to last acknowledgement at the sender.
    Ack,
}

impl FctKind {
    /// Returns the completion time of `flow`; `None` if it has not finished in this sense.
    #[inline]
    pub fn fct(self, flow: &FlowRow) -> Option<Time> {
        match self {
            FctKind::Rx => flow.fct_rx,
            FctKind::Ack => flow.fct_ack,
        }
    }
    /// Returns the completion time of the same flow alone on the network.
    #[inline]
    pub fn ideal(self, flow: &FlowRow) -> Time {
        match self {
            FctKind::Rx => flow.ideal_rx,
            FctKind::Ack => flow.ideal_ack,
        }
    }
}

/// Name of a workload, and whether it is measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadMeta {
    pub name: String,
    /// `true` if its flows enter the statistics over all workloads.
    pub measured: bool,
    /// `true` if the completion of the whole is its result: a collective, rounds of training, flows that wait for others.
    pub is_job: bool,
    pub collective: Option<CollectiveMeta>,
}

/// A collective as NCCL measures it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectiveMeta {
    pub name: String,
    pub ranks: usize,
    /// Bytes of a rank's buffer; `None` where the messages are not those of a buffer.
    pub bytes: Option<u64>,
    /// Number of times that it runs; `None` if the last time is incomplete.
    pub rounds: Option<u32>,
    /// Bus bandwidth over algorithm bandwidth.
    pub bus_factor: f64,
}

impl CollectiveMeta {
    /// Returns NCCL's bus bandwidth in bits per second of all rounds in `seconds`: the buffer over the time of a round,
    /// times the factor. `None` where buffer or rounds are not known.
    pub fn bus_bandwidth_bps(&self, seconds: f64) -> Option<f64> {
        let (bytes, rounds) = (self.bytes?, self.rounds?);
        (seconds > 0.0).then(|| bytes as f64 * f64::from(rounds) * 8.0 * self.bus_factor / seconds)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFault {
    /// Sending node of the directed link.
    pub from: String,
    /// Receiving node.
    pub to: String,
    /// Number among parallel cables between these nodes, from 0.
    pub parallel: u16,
    /// Time at which the fault takes effect.
    pub at: Time,
    /// Effect: `down`, `up`, `100Gbps`, `loses 0.01`.
    pub what: String,
}

impl LinkFault {
    /// Returns `true` if the fault affects this link.
    pub fn is_of(&self, link: &LinkRow) -> bool {
        (&self.from, &self.to, self.parallel) == (&link.from, &link.to, link.parallel)
    }

    /// Effect of a fault after which a link carries no packets.
    pub const DOWN: &str = "down";
}

/// Properties of a run that its rows do not contain.
#[derive(Clone, Debug, Default)]
pub struct RunMeta {
    pub scenario: String,
    /// The load balancer, as the user named it.
    pub scheme: String,
    pub seed: u64,
    /// Backend: `sim`, `testbed`.
    pub backend: String,
    pub threads: usize,
    pub version: String,
    pub commit: String,
    /// Completion time that the statistics are over.
    pub fct_kind: FctKind,
    /// Workloads, per index of [`FlowRow::workload`].
    pub workloads: Vec<WorkloadMeta>,
    /// Names of load balancers, per index of [`FlowRow::load_balancer`].
    pub load_balancers: Vec<String>,
    /// Names of traffic classes, per index of [`FlowRow::class`].
    pub classes: Vec<String>,
    /// Flows that start earlier than this after the first flow are run but not measured.
    pub warmup: Time,
    /// Sentence on ideal times that are not exact; `None` if all are.
    pub ideal_note: Option<String>,
    /// `true` if measured flows wait for others (a collective).
    pub flows_wait: bool,
    /// Peak resident memory of the process; `None` if the system does not report it.
    pub peak_rss_bytes: Option<u64>,
    /// Faults of links, in the order of their times.
    pub faults: Vec<LinkFault>,
    /// Number in the scenario, from 0, and planned time of each fault of the setup, in their order.
    pub planned_faults: Vec<(Option<usize>, Time)>,
}

impl RunMeta {
    /// Returns `fct / ideal` ([`slowdown`]); `None` for an unfinished flow.
    #[inline]
    pub fn slowdown(&self, flow: &FlowRow) -> Option<f64> {
        let kind = self.fct_kind;
        kind.fct(flow).map(|fct| slowdown(fct.ps(), kind.ideal(flow).ps()))
    }
}

impl RunMeta {
    /// Returns the name of a workload by index; the index itself if it has no name.
    #[inline]
    pub fn workload(&self, index: u16) -> Cow<'_, str> {
        let known = self.workloads.get(usize::from(index));
        known.map_or_else(|| Cow::Owned(index.to_string()), |workload| Cow::Borrowed(workload.name.as_str()))
    }
    /// Returns the effects on a link of the faults up to `end`, such as `down at 20us; up at 50us`; empty if there are none.
    pub fn faults_of(&self, link: &LinkRow, end: Time) -> String {
        let own = self.faults.iter().filter(|fault| fault.at <= end && fault.is_of(link));
        own.map(|fault| format!("{} at {}", fault.what, fault.at)).collect::<Vec<_>>().join("; ")
    }
    /// Returns the time from which starting flows are measured: the first flow's start plus the warm-up.
    pub fn counted_from(&self, result: &RunResult) -> Time {
        let first = result.flows.iter().filter_map(|flow| flow.start).min().unwrap_or(Time::ZERO);
        first.saturating_add(self.warmup)
    }
    /// Returns `true` if the workload of `flow` is measured.
    #[inline]
    pub fn is_measured(&self, flow: &FlowRow) -> bool {
        self.workloads.get(usize::from(flow.workload)).is_none_or(|w| w.measured)
    }
}

/// A flow that never started counts as unfinished.
#[inline]
pub fn past_warmup(flow: &FlowRow, counted_from: Time) -> bool {
    flow.start.is_none_or(|start| start >= counted_from) || flow.status == FlowStatus::NotStarted
}
