//! `[fabric]`: buffers, marking, trimming, classes.

use anabranch_settings::{Auto, Never, choices, parameters};
use anabranch_units::{Bytes, BytesOrBdp, Time};

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

choices! {
    /// Whose peculiarities the fabric follows.
    pub enum Quirks {
        /// Nobody's: times to the picosecond, buffers as their parameters say.
        None = "none",
        /// Those of the model behind the recorded ConWeave runs: whole nanoseconds, its hash, its buffer pools.
        ConweaveNs3 = "conweave-ns3",
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
        /// Bytes of packet memory that the ports of a switch share; 0: every port has a `queue_limit` of its own. With a
        /// shared buffer `queue_limit` has no effect and trimming is off.
        shared_buffer: Bytes = Bytes(0), source "specification 7.2: 9 MiB in the RoCE profiles";
        /// A queue of a shared buffer may hold this many times what is still free of it; beyond, packets are dropped. With
        /// PFC it has no effect (but for the quirks): whatever is admitted, ingresses are paused before the buffer is full.
        buffer_alpha: f64 = 1.0, source "specification 7.2: dynamic threshold, egress alpha 1";
        /// Whether a switch pauses its upstream neighbours before it would drop (PFC); needs a shared buffer.
        pfc: bool = false, source "specification 7.2";
        /// An ingress (port and class) is paused when it holds more than this many times what is still free.
        pfc_alpha: f64 = 0.0625, source "specification 7.2: ingress alpha 1/16";
        /// How long a pause frame pauses. A finite pause is sent again for every packet that arrives above the threshold
        /// and ends by itself, which loses packets and is refused without the quirks; with "never" it lasts until the
        /// frame that resumes.
        pfc_pause: Never<Time> = Never::Never, source "ours: a switch refreshes its pauses in time";
        /// Buffer per ingress and class kept for packets that arrive after the pause was sent; auto: all that can, which is
        /// twice rate times delay of its link, three full packets and a pause frame. Less is refused without the quirks;
        /// there auto is a full packet and the frame less.
        pfc_headroom: Auto<Bytes> = Auto::Auto, source "ours, so that nothing is dropped; specification 7.2 for the quirks";
        /// Bytes of a pause frame.
        pfc_frame: Bytes = Bytes(64), source "IEEE 802.1Qbb: the least Ethernet frame";
        /// Whose peculiarities the fabric follows: `none` or `conweave-ns3`.
        quirks: Quirks = Quirks::None, source "conweave-ns3";
        /// Which flow completion time feeds the statistics.
        fct_kind: FctKind = FctKind::Rx, source "PRIME section IV: first packet sent to last packet received; specification 1: `ack` in the other profiles";
    }
}

impl FabricParameters {
    /// Defaults of `roce-irn` and `roce-lossless`: a switch with one shared buffer, marking as DCQCN wants it.
    fn roce(pfc: bool) -> Self {
        FabricParameters {
            shared_buffer: Bytes(9 << 20),
            control_limit: BytesOrBdp::Bytes(u64::from(u32::MAX)),
            ecn_kmin: BytesOrBdp::Bytes(100_000),
            ecn_kmax: BytesOrBdp::Bytes(400_000),
            ecn_pmax: 0.2,
            trimming: false,
            pfc,
            fct_kind: FctKind::Ack,
            ..FabricParameters::default()
        }
    }

    /// Defaults of the profile `spritz`: as `uet-lossy`, by the sender's clock (specification 1, after Spritz' artifact).
    pub fn spritz() -> Self {
        FabricParameters { fct_kind: FctKind::Ack, ..FabricParameters::default() }
    }

    /// Defaults of the profile `roce-irn`.
    pub fn roce_irn() -> Self {
        FabricParameters::roce(false)
    }

    /// Defaults of the profile `roce-lossless`.
    pub fn roce_lossless() -> Self {
        FabricParameters::roce(true)
    }

    /// Defaults of the profile `conweave-ns3-irn`.
    pub fn conweave_irn() -> Self {
        FabricParameters { quirks: Quirks::ConweaveNs3, ..FabricParameters::roce(false) }
    }

    /// Defaults of the profile `conweave-ns3-lossless`.
    pub fn conweave_lossless() -> Self {
        FabricParameters {
            quirks: Quirks::ConweaveNs3,
            pfc_pause: Never::Value(Time::from_us(5)),
            pfc_frame: Bytes(43),
            ..FabricParameters::roce(true)
        }
    }
}
