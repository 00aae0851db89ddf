//! Results of jobs: groups of ranks that repeat a schedule.

use crate::FlowMetrics;
use anabranch_units::Time;

/// A group in a repetition. Times count from the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupRow {
    /// Index of its job into the setup's workloads.
    pub workload: u16,
    /// Group, from 0.
    pub group: u32,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Earliest start of a rank; `None`: no rank had started when the run ended.
    pub start: Option<Time>,
    /// Earliest start to latest end of its ranks; `None`: a rank had not ended.
    pub completion: Option<Time>,
    /// `completion` of the job alone on an idle network.
    pub ideal: Option<Time>,
    /// Computation of its last rank.
    pub computation: Time,
    /// Bandwidth over each rank's link by NCCL's factor, in bits per second; `None` where NCCL defines none.
    pub bus_bandwidth_bps: Option<f64>,
    /// Rank that ended last, the lowest of several.
    pub last_rank: Option<u32>,
    /// Flow that ended last there; `None` if a computation did.
    pub last_flow: Option<u32>,
    /// Number of messages of the critical path to it: each let the next one start.
    pub critical_messages: Option<u32>,
    /// Link at which the flows of the critical path waited longest, each at the link that held it longest, and their waits
    /// there together; `None` where nothing waited, or waits are unknown.
    pub critical_link: Option<(u32, Time)>,
}

/// A rank in a repetition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankRow {
    /// Index of its job into the setup's workloads.
    pub workload: u16,
    /// Group, from 0.
    pub group: u32,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Rank, from 0.
    pub rank: u32,
    /// Its host.
    pub host: u32,
    /// Begin of its repetition, with its computation; unknown: not before the end of the run.
    pub start: CompactTime,
    /// Start to the last message received, acknowledgement or computation; unknown: incomplete.
    pub completion: CompactTime,
    /// `completion` of the job alone on an idle network.
    pub ideal: CompactTime,
    /// Its computation.
    pub computation: Time,
    /// Flow that ended last; none if a computation did, or it is incomplete.
    pub last_flow: CompactNumber,
}

/// A step of a group in a repetition: its messages together. Times count from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepRow {
    /// Index of its job into the setup's workloads.
    pub workload: u16,
    /// Group, from 0.
    pub group: u32,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Step of the schedule, from 0.
    pub step: u32,
    /// Number of its messages.
    pub messages: u32,
    /// Earliest start of a message; unknown: none had started when the run ended.
    pub start: CompactTime,
    /// Earliest start of a message to the last one received; unknown: one was not received.
    pub completion: CompactTime,
    /// `completion` of the job alone on an idle network.
    pub ideal: CompactTime,
    /// Rank that received the last message.
    pub last_rank: CompactNumber,
    /// Flow of the last message.
    pub last_flow: CompactNumber,
}

/// A time, or an unknown one, in 8 bytes: runs keep many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactTime(Time);

impl CompactTime {
    /// Returns the time; `None`: it is unknown.
    pub fn get(self) -> Option<Time> {
        (self.0 != Time::MAX).then_some(self.0)
    }
}

impl Default for CompactTime {
    fn default() -> Self {
        CompactTime(Time::MAX)
    }
}

impl From<CompactTime> for Option<Time> {
    fn from(time: CompactTime) -> Self {
        time.get()
    }
}

impl From<Option<Time>> for CompactTime {
    fn from(time: Option<Time>) -> Self {
        CompactTime(time.unwrap_or(Time::MAX))
    }
}

/// A number below 2^32 - 1, or none, in 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactNumber(u32);

impl CompactNumber {
    /// Returns the number; `None`: there is none.
    pub fn get(self) -> Option<u32> {
        (self.0 != u32::MAX).then_some(self.0)
    }
}

impl Default for CompactNumber {
    fn default() -> Self {
        CompactNumber(u32::MAX)
    }
}

impl From<Option<u32>> for CompactNumber {
    fn from(number: Option<u32>) -> Self {
        CompactNumber(number.unwrap_or(u32::MAX))
    }
}

/// Place of a flow in its job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobFlowRow {
    /// Number of the flow in the flow set.
    pub flow_id: u32,
    /// Index of its job into the setup's workloads.
    pub workload: u16,
    /// Group, from 0.
    pub group: u32,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Step of the schedule, from 0.
    pub step: u32,
    /// Sending rank.
    pub src_rank: u32,
    /// Receiving rank.
    pub dst_rank: u32,
}

/// All flows of a job together, where a run keeps no rows of them (`measure.flow_rows`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnlistedFlows {
    /// Index of the job into the setup's workloads.
    pub workload: u16,
    /// Number of flows.
    pub total: u64,
    /// Number of flows whose receivers had the last byte.
    pub received: u64,
    /// Number of flows whose senders had the last acknowledgement.
    pub finished: u64,
    /// First start of a flow.
    pub first_start: Option<Time>,
    /// Last acknowledgement of those that finished.
    pub last_end: Option<Time>,
    /// Their metrics, combined.
    pub metrics: FlowMetrics,
    /// 64 bits over the integers that the fingerprint covers, in the order of the flows.
    pub hash: u64,
}

/// Rows of all jobs of a run; empty without jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobRows {
    /// By job, group and repetition.
    pub groups: Vec<GroupRow>,
    /// By job, group, repetition and rank.
    pub ranks: Vec<RankRow>,
    /// By job, group, repetition and step.
    pub steps: Vec<StepRow>,
    /// By flow.
    pub flows: Vec<JobFlowRow>,
    /// By job whose flows have no rows.
    pub unlisted: Vec<UnlistedFlows>,
}

impl JobRows {
    /// Returns these rows, followed by those of jobs whose flows have none.
    pub fn with_unlisted(mut self, mut others: JobRows) -> Self {
        if self.groups.is_empty() {
            others.flows = self.flows;
            return others;
        }
        self.groups.append(&mut others.groups);
        self.ranks.append(&mut others.ranks);
        self.steps.append(&mut others.steps);
        JobRows { unlisted: others.unlisted, ..self }
    }
}

/// Returns the part of a completion time that is not covered by computation.
pub fn exposed(completion: Option<Time>, computation: Time) -> Option<Time> {
    completion.map(|completion| completion.saturating_sub(computation))
}
