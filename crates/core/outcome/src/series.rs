//! Time series: samples at multiples of an interval, of the state before any event at that time. Counters start with the run.

use anabranch_units::Time;

/// Sample of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSample {
    /// Sample time.
    pub time: Time,
    /// Waiting data bytes.
    pub queue_bytes: u64,
    /// Waiting data packets.
    pub queue_packets: u64,
    /// Bytes sent so far.
    pub sent_bytes: u64,
    /// Packets sent so far.
    pub sent_packets: u64,
    /// Packets marked so far.
    pub ecn_marks: u64,
    /// Data packets trimmed so far.
    pub trims: u64,
    /// Packets dropped so far, in the queue or on the link.
    pub drops: u64,
    /// PFC pause frames received so far.
    pub pauses: u64,
    /// `true` if some of its data is paused.
    pub paused: bool,
}

/// A time series of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSeries {
    /// Sending node.
    pub from: String,
    /// Receiving node.
    pub to: String,
    /// Samples by time.
    pub samples: Vec<PortSample>,
}

/// Sample of an open flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSample {
    /// Sample time.
    pub time: Time,
    /// Data packets sent so far, retransmissions included.
    pub sent_packets: u64,
    /// Payload bytes received so far, each counted once.
    pub received_bytes: u64,
    /// Bytes sent that are neither acknowledged nor lost, as its transport counts them (`uet`: on the wire, `roce`: payload).
    pub in_flight_bytes: u64,
    /// Window of its congestion control in the same bytes; `None` if it has none.
    pub window_bytes: Option<u64>,
    /// Rate of its congestion control in bits per second; `None` if it is unpaced.
    pub rate_bps: Option<u64>,
    /// Data packets retransmitted so far.
    pub retransmitted_packets: u64,
    /// Arrivals out of order so far.
    pub out_of_order_packets: u64,
    /// Acknowledgements with a congestion mark received so far.
    pub marked_acks: u64,
    /// Notices of trimmed packets received so far.
    pub trim_notices: u64,
    /// Path tag of the last packet sent; `None` before the first.
    pub path_tag: Option<u32>,
    /// Packets sent so far with another tag than the packet before.
    pub path_switches: u64,
    /// Different tags since the sample before.
    pub paths: u64,
}

/// A time series of one flow: samples while it is open at its sender, and a final sample at its last acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSeries {
    /// Number of the flow.
    pub flow_id: u32,
    /// Samples by time.
    pub samples: Vec<FlowSample>,
}

/// Sample of a load balancer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SchemeSample {
    /// Sample time.
    pub time: Time,
    /// Its flows that have started and wait for acknowledgements.
    pub open_flows: u64,
    /// Its flows with all acknowledgements.
    pub finished_flows: u64,
    /// Bytes in flight of its open flows.
    pub in_flight_bytes: u64,
    /// Windows of its open flows.
    pub window_bytes: u64,
    /// Data packets retransmitted so far.
    pub retransmitted_packets: u64,
    /// Packets sent so far with another path tag than the flow's packet before.
    pub path_switches: u64,
    /// Flowlets detected so far by its switches.
    pub flowlets: u64,
    /// Flowlets created so far by its hosts.
    pub created_flowlets: u64,
    /// Time for which its hosts have held packets back so far.
    pub added_delay: Time,
    /// Flows moved by its switches so far.
    pub reroutes: u64,
    /// Packets that have waited in its reordering queues so far.
    pub reordered_packets: u64,
    /// Imbalance of all traffic since the previous sample: bytes over the busiest uplink of a switch over those of its
    /// mean uplink, both summed over the switches. 1 is even; `None` without traffic.
    pub uplink_imbalance: Option<f64>,
}

/// A time series of one load balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemeSeries {
    /// Index into the setup's load balancers.
    pub load_balancer: u16,
    /// Samples by time.
    pub samples: Vec<SchemeSample>,
}
