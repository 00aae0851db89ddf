use anabranch_units::Time;

/// Time-weighted statistics of a queue (waiting packets, not the one in transmission), all data classes together.
/// `None`: not measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueStats {
    /// Mean bytes.
    pub mean_bytes: Option<f64>,
    /// 99th percentile of bytes over time (upper edge of its histogram bin).
    pub p99_bytes: Option<u64>,
    /// Maximum bytes.
    pub max_bytes: Option<u64>,
    /// Mean packets.
    pub mean_packets: Option<f64>,
    /// 99th percentile of packets over time.
    pub p99_packets: Option<u64>,
    /// Maximum packets.
    pub max_packets: Option<u64>,
    /// Time at each number of waiting packets, if the scenario requests occupancy histograms: (packets, picoseconds).
    pub occupancy: Vec<(u64, u64)>,
}

/// Returns the name of a directed link, `leaf0->spine3`, or `leaf0->spine3#1` among parallel ones.
pub fn link_name(from: &str, to: &str, parallel: u16) -> String {
    match parallel {
        0 => format!("{from}->{to}"),
        _ => format!("{from}->{to}#{parallel}"),
    }
}

/// Results of one directed link and the queue of its output port; a row only for measured traffic. Other unmeasured
/// values are `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkRow {
    /// Name of the sending node.
    pub from: String,
    /// Name of the receiving node.
    pub to: String,
    /// Number among parallel cables between these nodes, from 0.
    pub parallel: u16,
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
    pub ecn_marks: Option<u64>,
    /// Data packets trimmed.
    pub trims: Option<u64>,
    /// Packets dropped (full queue, or lost on a faulty link).
    pub drops: Option<u64>,
    /// PFC pause frames received.
    pub pauses: Option<u64>,
}

/// Metrics of links that a backend measures, apart from their traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkMeasures {
    /// Means over time of the queue, in bytes and packets.
    pub queue_mean: bool,
    /// 99th percentiles over time of the queue, in bytes and packets, and its histogram.
    pub queue_p99: bool,
    /// Maximum queue in bytes.
    pub queue_max_bytes: bool,
    /// Maximum queue in packets.
    pub queue_max_packets: bool,
    /// Packets marked.
    pub ecn_marks: bool,
    /// Packets trimmed.
    pub trims: bool,
    /// Packets dropped.
    pub drops: bool,
    /// Pause frames.
    pub pauses: bool,
}

impl LinkMeasures {
    /// All.
    pub const ALL: Self = Self::every(true);
    /// None.
    pub const NONE: Self = Self::every(false);

    const fn every(measured: bool) -> Self {
        LinkMeasures {
            queue_mean: measured,
            queue_p99: measured,
            queue_max_bytes: measured,
            queue_max_packets: measured,
            ecn_marks: measured,
            trims: measured,
            drops: measured,
            pauses: measured,
        }
    }
}

impl LinkRow {
    pub(crate) fn keep(&mut self, measures: &LinkMeasures) {
        let queue = &mut self.queue;
        if !measures.queue_mean {
            (queue.mean_bytes, queue.mean_packets) = (None, None);
        }
        if !measures.queue_p99 {
            (queue.p99_bytes, queue.p99_packets) = (None, None);
            queue.occupancy.clear();
        }
        if !measures.queue_max_bytes {
            queue.max_bytes = None;
        }
        if !measures.queue_max_packets {
            queue.max_packets = None;
        }
        for (is_measured, value) in [
            (measures.ecn_marks, &mut self.ecn_marks),
            (measures.trims, &mut self.trims),
            (measures.drops, &mut self.drops),
            (measures.pauses, &mut self.pauses),
        ] {
            if !is_measured {
                *value = None;
            }
        }
    }
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
    /// Number among parallel cables between these switches, from 0.
    pub parallel: u16,
    /// Number of the flow's data packets over it.
    pub packets: u64,
}

/// Traffic of the links from the end of the warm-up to the last start of a flow; the drain after it would reduce the
/// utilisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkWindow {
    /// Start of the window.
    pub from: Time,
    /// End of the window.
    pub to: Time,
    /// Bytes that each link sent within it, in link order.
    pub sent_bytes: Vec<u64>,
}
