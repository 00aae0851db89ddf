//! Totals of a run, and its balance of packets and bytes.

use crate::measures::metrics;

metrics! {
    /// What is known of a whole run.
    RunMetrics from
    /// Totals of a run by a backend that counts all of them.
    Counters,
    /// Which totals a backend fills in.
    CounterMeasures {
        data_packets: "Data packets sent, retransmissions included.";
        acks: "ACKs and NACKs sent.";
        ecn_marked: "Data packets marked.";
        trimmed: "Data packets trimmed.";
        dropped: "Packets dropped, data and other.";
        retransmitted: "Data packets sent again.";
        timeouts: "Packets that timed out.";
        out_of_order: "Data arrivals out of order.";
        pfc_pauses: "PFC pause frames sent.";
        flowlets: "Flowlets seen by flowlet schemes.";
        path_switches: "Packets sent with another tag than the packet before.";
        probes: "Probe packets sent.";
        probe_bytes: "Bytes of the probe packets sent.";
        created_flowlets: "Flowlets created by hosts that held a packet back (HF2T).";
        added_delay_ns: "Nanoseconds for which hosts held packets back, in total (HF2T).";
        reroutes: "Moves of a flow to another path by a switch (ConWeave).";
        reordered_packets: "Packets that waited in a reordering queue of a switch (ConWeave).";
        gaps: "Pairs of consecutive packets of a flow.";
        gaps_1_rtt: "Of these, pairs that left their NIC at least one base round trip apart.";
        gaps_2_rtt: "At least two round trips apart.";
        gaps_3_rtt: "At least three.";
    }
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
