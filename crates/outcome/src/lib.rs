//! The results of a run: integers per flow and per link, counters, conservation. Plain data without behaviour.

mod flow_metrics;
mod machine;
mod series;
mod watched;

pub use flow_metrics::FlowMetrics;
pub use machine::{EndpointLoad, MAX_LATE_SHARE, MIN_OFFERED_SHARE, MachineLoad};
pub use series::{FlowSample, FlowSeries, PortSample, PortSeries, SchemeSample, SchemeSeries};
pub use watched::{Capture, CapturedPacket, PacketKind, TraceEvent, TraceRow, Watched};

use anabranch_units::Time;

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowStatus {
    /// All bytes received, last acknowledgement back at the sender.
    Finished,
    /// All bytes received; the sender still waits for the last acknowledgement.
    Received,
    /// Started, not all bytes received.
    Unfinished,
    /// Never started: its trigger never fired, or the run ended before its start.
    NotStarted,
}

impl FlowStatus {
    /// The word in `flows.csv`.
    #[inline]
    pub fn word(self) -> &'static str {
        match self {
            FlowStatus::Finished => "finished",
            FlowStatus::Received => "received",
            FlowStatus::Unfinished => "unfinished",
            FlowStatus::NotStarted => "not-started",
        }
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
    /// Payload bytes.
    pub size_bytes: u64,
    /// When it started; `None` if it never did.
    pub start: Option<Time>,
    /// First packet sent to last packet received.
    pub fct_rx: Option<Time>,
    /// Start to last acknowledgement at the sender.
    pub fct_ack: Option<Time>,
    /// `fct_rx` of the same flow alone on the network.
    pub ideal_rx: Time,
    /// `fct_ack` of the same flow alone on the network.
    pub ideal_ack: Time,
    /// How it ended.
    pub status: FlowStatus,
    /// Index into the setup's workloads.
    pub workload: u16,
    /// Index into the setup's load balancers.
    pub load_balancer: u16,
    /// Index into the fabric's data classes.
    pub class: u8,
    /// What was counted of it.
    pub metrics: FlowMetrics,
}

/// Time-weighted statistics of a queue (packets that wait, without the one in transmission), all data classes together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueStats {
    /// Mean bytes.
    pub mean_bytes: f64,
    /// 99th percentile of bytes over time (upper edge of its histogram bin).
    pub p99_bytes: u64,
    /// Most bytes.
    pub max_bytes: u64,
    /// Mean packets.
    pub mean_packets: f64,
    /// 99th percentile of packets over time.
    pub p99_packets: u64,
    /// Most packets.
    pub max_packets: u64,
    /// Share of the time at each number of waiting packets, where the scenario asks for occupancy histograms:
    /// (packets, picoseconds).
    pub occupancy: Vec<(u64, u64)>,
}

/// One directed link's outcome, with the queue of the port that feeds it.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRow {
    /// Name of the sending node.
    pub from: String,
    /// Name of the receiving node.
    pub to: String,
    /// `host`, `tier0-1`, `local`, `global`.
    pub tier: String,
    /// `up`, `down` or `flat`.
    pub direction: &'static str,
    /// Rate in bits per second at the start of the run.
    pub rate_bps: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent over rate times simulated time.
    pub utilisation: f64,
    /// The queue of data.
    pub queue: QueueStats,
    /// Packets marked.
    pub ecn_marks: u64,
    /// Data packets trimmed.
    pub trims: u64,
    /// Packets dropped (full queue, or lost on a faulty link).
    pub drops: u64,
    /// PFC pause frames received.
    pub pauses: u64,
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data packets sent, retransmissions included.
    pub data_packets: u64,
    /// ACKs and NACKs sent.
    pub acks: u64,
    /// Data packets marked.
    pub ecn_marked: u64,
    /// Data packets trimmed.
    pub trimmed: u64,
    /// Packets dropped, data and other.
    pub dropped: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Packets that timed out.
    pub timeouts: u64,
    /// Data arrivals out of order.
    pub out_of_order: u64,
    /// PFC pause frames sent.
    pub pfc_pauses: u64,
    /// Flowlets seen by flowlet schemes.
    pub flowlets: u64,
    /// Packets sent with another tag than the packet before.
    pub path_switches: u64,
    /// Probe packets sent.
    pub probes: u64,
    /// Bytes of the probe packets sent.
    pub probe_bytes: u64,
    /// Flowlets created by hosts that held a packet back (HF2T).
    pub created_flowlets: u64,
    /// Nanoseconds for which hosts held packets back, in total (HF2T).
    pub added_delay_ns: u64,
    /// Moves of a flow to another path by a switch (ConWeave).
    pub reroutes: u64,
    /// Packets that waited in a reordering queue of a switch (ConWeave).
    pub reordered_packets: u64,
    /// Pairs of consecutive packets of a flow.
    pub gaps: u64,
    /// Of these, pairs that left their NIC at least one base round trip apart.
    pub gaps_1_rtt: u64,
    /// At least two round trips apart.
    pub gaps_2_rtt: u64,
    /// At least three.
    pub gaps_3_rtt: u64,
}

/// One line of the conservation check: injected = delivered + dropped + trimmed + in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Sent by a host; for headers: created by trimming.
    pub injected: u64,
    /// Reached their host.
    pub delivered: u64,
    /// Dropped in a queue or lost on a link.
    pub dropped: u64,
    /// Turned into a header (data only).
    pub trimmed: u64,
    /// Found in a queue or on a link when the run ended.
    pub in_flight: u64,
}

impl Balance {
    /// Whether everything injected is accounted for.
    pub fn holds(&self) -> bool {
        self.injected == self.delivered + self.dropped + self.trimmed + self.in_flight
    }
}

/// The conservation check of a run, in packets and in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conservation {
    /// Data packets.
    pub data_packets: Balance,
    /// Bytes of data packets.
    pub data_bytes: Balance,
    /// Headers of trimmed packets.
    pub headers: Balance,
    /// ACKs and NACKs.
    pub acks: Balance,
    /// Bytes of ACKs and NACKs.
    pub ack_bytes: Balance,
    /// Probes and their replies.
    pub probes: Balance,
    /// Pause frames, and control packets between switches.
    pub control: Balance,
    /// Unique payload bytes received by finished flows.
    pub unique_bytes: u64,
    /// Their sizes added up.
    pub flow_bytes: u64,
}

/// Packets of one flow on one uplink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UplinkCount {
    /// Number of the flow.
    pub flow_id: u32,
    /// Sending switch.
    pub from: String,
    /// Receiving switch.
    pub to: String,
    /// Data packets of the flow that took it.
    pub packets: u64,
}

/// What the links carried while traffic arrived: from the end of the warm-up to the last start of a flow, both known
/// beforehand. The drain that follows, while the last flows finish, would water down a utilisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkWindow {
    /// Its begin.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// Bytes that each link sent within it, in link order.
    pub sent_bytes: Vec<u64>,
}

impl RunResult {
    /// The share of its rate that a link carried in the window; `None` where there is none.
    pub fn window_utilisation(&self, link: usize) -> Option<f64> {
        let window = self.window.as_ref()?;
        let (bytes, rate) = (*window.sent_bytes.get(link)?, self.links.get(link)?.rate_bps);
        let seconds = window.to.saturating_sub(window.from).as_seconds();
        (seconds > 0.0 && rate > 0).then(|| bytes as f64 * 8.0 / (rate as f64 * seconds))
    }
}

/// What only a run of real packets has to tell.
#[derive(Clone, Debug, PartialEq)]
pub struct OnWire {
    /// What carried them.
    pub datapath: String,
    /// The longest time for which an endpoint was not scheduled though it wanted to run; `None`: not measured.
    pub longest_pause: Option<Time>,
    /// How far the machine kept up.
    pub machine: MachineLoad,
    /// What the machine lacked.
    pub missing: Vec<String>,
    /// Collectives that ranks ran.
    pub collectives: Vec<Collective>,
}

/// A collective that ranks ran over a network plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    /// Its workload.
    pub workload: String,
    /// What it is called.
    pub collective: String,
    /// Ranks.
    pub ranks: usize,
    /// Bytes of each rank's buffer.
    pub bytes: u64,
    /// Version of the plugin's interface; `None`: it did not come to its end.
    pub abi: Option<u32>,
    /// Rounds that were done.
    pub rounds: usize,
    /// The median round, each the time of its slowest rank, in seconds; `None`: there was none.
    pub median_round_s: Option<f64>,
    /// What that is over each rank's link, in bits per second, by NCCL's factor.
    pub bus_bandwidth_bps: Option<f64>,
}

/// All results of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// 64 bits over the integers of flows and links in canonical order; equal for any number of threads.
    pub fingerprint: u64,
    /// Simulated time.
    pub simulated: Time,
    /// Wall time of the event loop.
    pub wall_seconds: f64,
    /// Events handled.
    pub events: u64,
    /// Packets that left a port.
    pub packet_hops: u64,
    /// Whether a time limit ended the run before all flows were done.
    pub time_limit_struck: bool,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// The links of a circle of PFC pauses that nothing can resolve; empty: there is none.
    pub deadlock: Vec<String>,
    /// Per flow, in flow order.
    pub flows: Vec<FlowRow>,
    /// Per directed link, in link order.
    pub links: Vec<LinkRow>,
    /// Totals.
    pub counters: Counters,
    /// The balance of packets and bytes.
    pub conservation: Conservation,
    /// Time series of the ports asked for.
    pub series: Vec<PortSeries>,
    /// Time series of the flows asked for.
    pub flow_series: Vec<FlowSeries>,
    /// Time series of the load balancers, where asked for.
    pub scheme_series: Vec<SchemeSeries>,
    /// Per-flow packet counts per uplink, where asked for.
    pub uplink_counts: Vec<UplinkCount>,
    /// What was watched packet by packet, where asked for.
    pub watched: Watched,
    /// Bytes of the simulator's own structures per host, estimated from their sizes.
    pub bytes_per_host: u64,
    /// What the links carried while traffic arrived; `None` where the starts of the flows are not known beforehand, or all
    /// start at once.
    pub window: Option<LinkWindow>,
    /// Of a run of real packets; `None`: it was simulated.
    pub on_wire: Option<OnWire>,
}
