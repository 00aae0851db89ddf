//! Totals of a run, and its conservation of packets and bytes.

use crate::measures::metrics;
use serde::{Deserialize, Serialize};

/// Passes the declarations of all totals to the macro `with`: `name: unit, meaning;`.
#[macro_export]
macro_rules! run_metrics {
    ($with:ident) => {
        $with! {
            data_packets: "packets", "data packets sent, retransmissions included";
            acks: "packets", "ACKs and NACKs sent";
            ecn_marked: "packets", "data packets marked";
            trimmed: "packets", "data packets cut to their header";
            dropped: "packets", "packets dropped, data and other";
            retransmitted: "packets", "data packets retransmitted";
            timeouts: "packets", "packets that timed out";
            out_of_order: "packets", "data arrivals out of order";
            pfc_pauses: "frames", "PFC pause frames sent";
            pfc_resumes: "frames", "PFC frames sent that end a pause";
            flowlets: "flowlets", "flowlets seen by flowlet schemes";
            path_switches: "packets", "packets sent with another path tag than the packet before";
            probes: "packets", "probe packets sent";
            probe_bytes: "bytes", "their bytes";
            created_flowlets: "flowlets", "flowlets that hosts made by holding a packet back (HF2T)";
            added_delay_ns: "ns", "time for which hosts held packets back, all together (HF2T)";
            hold_timeouts_ns: "ns", "flowlet timeouts of the packets held back, all together: added_delay_ns over this is the hold over the timeout (HF2T)";
            reroutes: "", "flows moved to another path by a switch, counted each time (ConWeave)";
            reordered_packets: "packets", "packets that waited in a reordering queue (ConWeave)";
            max_queue_pairs: "", "most queue pairs that one NIC had open at once, of flows in both directions and of probes";
            refused_packets: "packets", "early packets for which a NIC had no memory (`transport.nic_memory`)";
            unbuffered_flows: "flows", "flows whose receiver found no memory for a reordering buffer";
            gaps: "", "pairs of consecutive packets of a flow";
            gaps_1_rtt: "", "those that left their NIC at least one base round trip apart";
            gaps_2_rtt: "", "at least two base round trips apart";
            gaps_3_rtt: "", "at least three base round trips apart";
        }
    };
}

macro_rules! declare {
    ($($name:ident: $unit:literal, $meaning:literal;)*) => {
        metrics! {
            /// Metrics of a whole run.
            RunMetrics from
            /// Totals of a run by a backend that counts all of them.
            Counters,
            /// Totals that a backend measures.
            CounterMeasures { $($name: concat!("Counted: ", $meaning, ".");)* }
        }
    };
}

run_metrics!(declare);

/// One line of the conservation check: injected = delivered + dropped + trimmed + in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
    /// Returns `true` if all injected items are accounted for.
    pub fn holds(&self) -> bool {
        self.injected == self.delivered + self.dropped + self.trimmed + self.in_flight
    }
}

/// The conservation check of a run, in packets and in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
    /// Bytes of messages over the scale-up networks of servers.
    pub scale_up_bytes: Balance,
    /// Unique payload bytes received by finished flows over the network.
    pub unique_bytes: u64,
    /// Sum of their sizes.
    pub flow_bytes: u64,
}

impl Conservation {
    /// Returns `true` where every line holds and finished flows received their bytes exactly once.
    pub fn holds(&self) -> bool {
        let Conservation {
            data_packets, data_bytes, headers, acks, ack_bytes, probes, control, scale_up_bytes, ..
        } = self;
        let lines = [data_packets, data_bytes, headers, acks, ack_bytes, probes, control, scale_up_bytes];
        lines.iter().all(|line| line.holds()) && self.unique_bytes == self.flow_bytes
    }
}
