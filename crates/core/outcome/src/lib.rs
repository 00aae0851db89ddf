//! Results of a run: integers per flow and per link, counters, conservation. Unknown values are `None`, never 0: a
//! backend declares what it [`Measures`], and a [`RunResult`] contains nothing else.

mod delays;
mod flow_metrics;
mod jobs;
mod links;
mod machine;
mod measures;
mod result;
mod run_metrics;
mod scale_up;
mod series;
mod watched;

pub use delays::FlowDelays;
pub use flow_metrics::{FlowCounters, FlowMeasures, FlowMetrics};
pub use jobs::{CompactNumber, CompactTime, GroupRow, JobFlowRow, JobRows, RankRow, StepRow, UnlistedFlows, exposed};
pub use links::{LinkMeasures, LinkRow, LinkWindow, QueueStats, UplinkCount, link_name};
pub use machine::{EndpointLoad, MAX_LATE_SHARE, MIN_OFFERED_SHARE, MachineLoad};
pub use measures::{Clock, Measures};
pub use result::{RunResult, RunRows};
pub use run_metrics::{Balance, Conservation, CounterMeasures, Counters, RunMetrics};
pub use scale_up::{GpuPortStats, GpuRow};
pub use series::{FlowSample, FlowSeries, PortSample, PortSeries, SchemeSample, SchemeSeries};
pub use watched::{Capture, CapturedPacket, PacketKind, SchemeRow, TraceEvent, TraceRow, Watched};

use anabranch_units::Time;
use serde::{Deserialize, Serialize};

anabranch_settings::worded! {
/// Final state of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowStatus {
    /// All bytes received, last acknowledgement back at the sender.
    Finished = "finished",
    /// All bytes received; the sender still waits for the last acknowledgement.
    Received = "received",
    /// Started, not all bytes received.
    Unfinished = "unfinished",
    /// Never started: its trigger never fired, or the run ended before its start.
    NotStarted = "not-started",
}
}

/// One flow's outcome. Times count from the start of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRow {
    /// Number of the flow in the flow set.
    pub flow_id: u32,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Sending and receiving GPU; `None` without servers.
    pub gpus: Option<(u32, u32)>,
    /// `true` if the scale-up network of a server carries it, `false` for the network.
    pub is_scale_up: bool,
    /// Payload bytes.
    pub size_bytes: u64,
    /// Start time; `None` if it never started.
    pub start: Option<Time>,
    /// From the start to the first packet sent, at the NIC; `None`: none was sent.
    pub nic_wait: Option<Time>,
    /// First packet sent to last packet received.
    pub fct_rx: Option<Time>,
    /// Start to last acknowledgement at the sender.
    pub fct_ack: Option<Time>,
    /// `fct_rx` of the same flow alone on the network.
    pub ideal_rx: Time,
    /// `fct_ack` of the same flow alone on the network.
    pub ideal_ack: Time,
    /// Final state.
    pub status: FlowStatus,
    /// Index into the setup's workloads.
    pub workload: u16,
    /// Index into the setup's load balancers.
    pub load_balancer: u16,
    /// Index into the fabric's data classes.
    pub class: u8,
    /// Its metrics.
    pub metrics: FlowMetrics,
    /// Parts of its completion time; `None`: not measured, or not all was received.
    pub delays: Option<FlowDelays>,
}

/// Results that only a run of real packets has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OnWire {
    /// Datapath that carried them.
    pub datapath: String,
    /// Longest time for which an endpoint was runnable but not scheduled; `None`: not measured.
    pub longest_pause: Option<Time>,
    /// Load of the machine.
    pub machine: MachineLoad,
    /// Capabilities that the machine lacked.
    pub missing: Vec<String>,
    /// Collectives that ranks ran.
    pub collectives: Vec<Collective>,
    /// Time at which each fault of the setup took effect, in their order; `None`: the run ended before.
    pub faults: Vec<Option<Time>>,
    /// Pairs of hosts that lost each other.
    pub lost_peers: Vec<LostPeer>,
}

/// Maximum lateness of a fault of a real run; a later one is a finding.
pub const MAX_FAULT_LATENESS: Time = Time::from_ms(5);

/// Two hosts of which one no longer received replies from the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostPeer {
    /// Their names.
    pub hosts: [String; 2],
    /// Reason that the one reported for the other.
    pub reason: String,
}

/// A collective: of ranks over a network plugin, or of messages that are flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collective {
    /// Its workload.
    pub workload: String,
    /// Name of the collective.
    pub collective: String,
    /// Number of ranks.
    pub ranks: usize,
    /// Bytes of each rank's buffer; `None` where the messages are not those of a buffer.
    pub bytes: Option<u64>,
    /// Version of the plugin's interface; `None`: no plugin, or it did not complete.
    pub abi: Option<u32>,
    /// Number of completed rounds; 0 also where the last of its messages is not the last of a round.
    pub rounds: usize,
    /// First start to last acknowledgement of its flows, in seconds; `None`: a flow did not finish.
    #[serde(default)]
    pub completion_s: Option<f64>,
    /// Median round, each the time of its slowest rank, in seconds; `None`: there was none.
    pub median_round_s: Option<f64>,
    /// Its bandwidth over each rank's link, in bits per second, by NCCL's factor.
    pub bus_bandwidth_bps: Option<f64>,
}
