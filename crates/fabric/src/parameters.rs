//! `[fabric]`: buffers, marking, trimming, classes.

use anabranch_settings::{choices, parameters};
use anabranch_units::{Bytes, BytesOrBdp};

choices! {
    /// When a packet is marked.
    pub enum MarkAt {
        /// When it leaves the queue, on the bytes behind it (PRIME, section III-B).
        Dequeue = "dequeue",
        /// When it joins the queue, on the bytes before it.
        Enqueue = "enqueue",
    }
}

choices! {
    /// Which packet is trimmed when a data packet finds its queue full.
    pub enum Trim {
        /// The arriving one.
        Arrival = "arrival",
        /// With probability one half the arriving one, else the one queued last, whose place the arrival takes.
        Coin = "coin",
    }
}

choices! {
    /// How a port serves its data classes; control always goes first.
    pub enum Scheduling {
        /// The first class that has a packet.
        Strict = "strict",
        /// Weighted round robin on bytes (deficit round robin), weights in `class_weights`.
        Wrr = "wrr",
    }
}

choices! {
    /// Which flow completion time feeds the statistics.
    pub enum FctKind {
        /// First packet sent to last packet received.
        Rx = "rx",
        /// Start to last acknowledgement at the sender.
        Ack = "ack",
    }
}

parameters! {
    /// Buffers, ECN, trimming, classes and their scheduling. The defaults are those of the profile `uet-lossy`.
    pub struct FabricParameters {
        /// Bytes of data a class of a port holds; a packet that would exceed it is trimmed, or dropped where trimming is off.
        queue_limit: BytesOrBdp = BytesOrBdp::Bdp(1_000_000), source "PRIME section IV: packets get trimmed if the queue exceeds one BDP";
        /// Bytes of control packets and trimmed headers a port holds; beyond it they are dropped.
        control_limit: BytesOrBdp = BytesOrBdp::Bdp(2_000_000), source "specification 7.7 (htsim): twice the data queue";
        /// Whether switches mark packets.
        ecn: bool = true, source "PRIME section III-B";
        /// Bytes in the queue above which packets may be marked.
        ecn_kmin: BytesOrBdp = BytesOrBdp::Bdp(200_000), source "ours: the paper's value is lost; same share as REPS and Spritz";
        /// Bytes in the queue above which every packet is marked.
        ecn_kmax: BytesOrBdp = BytesOrBdp::Bdp(800_000), source "ours: the paper's value is lost; same share as REPS and Spritz";
        /// Marking probability just below `ecn_kmax`; it grows linearly from zero at `ecn_kmin`.
        ecn_pmax: f64 = 1.0, source "specification 7.7 (htsim): linear to 1";
        /// When a packet is marked.
        ecn_mark_at: MarkAt = MarkAt::Dequeue, source "PRIME section III-B";
        /// Whether a packet that finds its queue full is cut to its header, which goes on in the control class.
        trimming: bool = true, source "PRIME section IV";
        /// Which packet is trimmed.
        trim: Trim = Trim::Arrival, source "specification 7.7: Spritz's prose; the coin is htsim's";
        /// Bytes of a trimmed packet.
        trimmed_size: Bytes = Bytes(64), source "specification 7.7 (htsim)";
        /// Names of the data classes, highest priority first.
        classes: Vec<String> = vec!["data".to_string()], source "ours";
        /// How the data classes share a port.
        scheduling: Scheduling = Scheduling::Strict, source "PRIME section IV-A2";
        /// Weights of the data classes under `wrr`; empty: equal weights.
        class_weights: Vec<u64> = vec![], source "PRIME section IV-A2";
        /// Which flow completion time feeds the statistics.
        fct_kind: FctKind = FctKind::Rx, source "PRIME section IV: first packet sent to last packet received";
    }
}
