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
    /// How long a packet is on the wire.
    pub enum WireTimes {
        /// Exactly as long as its bytes take; remainders are carried over.
        Exact = "exact",
        /// Cut to whole nanoseconds.
        WholeNanoseconds = "whole-nanoseconds",
    }
}

choices! {
    /// What comes first where a packet arrives at the very time at which its port becomes free.
    pub enum Simultaneous {
        /// The port chooses among those that were there before.
        Departure = "departure",
        /// The packet joins the queue, and then the port chooses.
        Arrival = "arrival",
    }
}

choices! {
    /// What the base round trip is made of, from which windows and the bandwidth-delay product follow.
    pub enum BaseRtt {
        /// A full packet out and its acknowledgement back.
        PacketAndAck = "packet-and-ack",
        /// The payload of a full packet out and propagation alone back.
        PayloadAndPropagation = "payload-and-propagation",
    }
}

choices! {
    /// How switches tell flows apart.
    pub enum FlowKeys {
        /// By a stable key of each flow.
        Stable = "stable",
        /// By UDP ports: sources count from 10,000 per sender, destinations from 100 per receiver, in the order of the
        /// flow file. Tables of flowlets see the receiver and the ports alone and mix some flows up, DRILL remembers per receiver,
        /// and ECMP leaves the ports as they are.
        UdpPorts = "udp-ports",
    }
}

choices! {
    /// The hash of equal-cost forwarding.
    pub enum SwitchHash {
        /// A keyed hash of source, destination, flow and path tag.
        Mix = "mix",
        /// MurmurHash3 of addresses and UDP ports, with the switch's number as its seed; needs `flow_keys = "udp-ports"`.
        Murmur3 = "murmur3",
    }
}

choices! {
    /// Which bytes of a queue count for marking.
    pub enum MarkedBytes {
        /// All.
        All = "all",
        /// Those beyond the minimum that each queue of a shared buffer has for itself.
        BeyondMinimum = "beyond-minimum",
    }
}

choices! {
    /// How a shared buffer is divided.
    pub enum BufferRules {
        /// With PFC nothing can be dropped: headroom for all that can still arrive, pause frames before other control
        /// packets, no threshold at the egress.
        Lossless = "lossless",
        /// As in the recorded ConWeave runs: one port's headroom is not counted, the egress threshold acts with PFC too, and
        /// a pause frame waits its turn.
        Recorded = "recorded",
    }
}

choices! {
    /// What a flow's ideal completion time is, of which its slowdown is a multiple.
    pub enum IdealFct {
        /// That of the flow alone on the network.
        LoneFlow = "lone-flow",
        /// The base round trip and all bytes at the NIC's rate, one packet too many, to the last acknowledgement.
        RttAndBytes = "rtt-and-bytes",
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
        /// PFC it has no effect (but for `buffer_rules = "recorded"`): whatever is admitted, ingresses are paused before the buffer is full.
        buffer_alpha: f64 = 1.0, source "specification 7.2: dynamic threshold, egress alpha 1";
        /// Whether a switch pauses its upstream neighbours before it would drop (PFC); needs a shared buffer.
        pfc: bool = false, source "specification 7.2";
        /// An ingress (port and class) is paused when it holds more than this many times what is still free.
        pfc_alpha: f64 = 0.0625, source "specification 7.2: ingress alpha 1/16";
        /// How long a pause frame pauses. A finite pause is sent again for every packet that arrives above the threshold
        /// and ends by itself, which loses packets and is refused under `buffer_rules = "lossless"`; with "never" it lasts until the
        /// frame that resumes.
        pfc_pause: Never<Time> = Never::Never, source "ours: a switch refreshes its pauses in time";
        /// Buffer per ingress and class kept for packets that arrive after the pause was sent; auto: all that can, which is
        /// twice rate times delay of its link, three full packets and a pause frame. Less is refused under
        /// `buffer_rules = "lossless"`; else auto is a full packet and the frame less.
        pfc_headroom: Auto<Bytes> = Auto::Auto, source "ours, so that nothing is dropped; specification 7.2 and 17.4 for the recorded model";
        /// Bytes of a pause frame.
        pfc_frame: Bytes = Bytes(64), source "IEEE 802.1Qbb: the least Ethernet frame";
        /// How long a packet is on the wire.
        wire_times: WireTimes = WireTimes::Exact, source "ours; specification 17.2 for the recorded model";
        /// What comes first where a packet arrives at the very time at which its port becomes free.
        simultaneous: Simultaneous = Simultaneous::Departure, source "ours; specification 17.2 for the recorded model";
        /// What the base round trip is made of, from which windows and the bandwidth-delay product follow.
        base_rtt: BaseRtt = BaseRtt::PacketAndAck, source "specification 1; 17.1 for the recorded model";
        /// How switches tell flows apart.
        flow_keys: FlowKeys = FlowKeys::Stable, source "ours; specification 17.1 and 17.5 for the recorded model";
        /// The hash of equal-cost forwarding.
        switch_hash: SwitchHash = SwitchHash::Mix, source "ours; specification 17.5 for the recorded model";
        /// Which bytes of a queue count for marking.
        marked_bytes: MarkedBytes = MarkedBytes::All, source "PRIME section III-B; specification 17.4 for the recorded model";
        /// How a shared buffer is divided.
        buffer_rules: BufferRules = BufferRules::Lossless, source "specification 7.2; 17.4 for the recorded model";
        /// What a flow's ideal completion time is, of which its slowdown is a multiple.
        ideal_fct: IdealFct = IdealFct::LoneFlow, source "specification 1; 17.7 for the recorded model";
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

    /// The same with everything that is particular to the model behind the recorded ConWeave runs.
    fn recorded(self) -> Self {
        FabricParameters {
            wire_times: WireTimes::WholeNanoseconds,
            simultaneous: Simultaneous::Arrival,
            base_rtt: BaseRtt::PayloadAndPropagation,
            flow_keys: FlowKeys::UdpPorts,
            switch_hash: SwitchHash::Murmur3,
            marked_bytes: MarkedBytes::BeyondMinimum,
            buffer_rules: BufferRules::Recorded,
            ideal_fct: IdealFct::RttAndBytes,
            ..self
        }
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
        FabricParameters::roce(false).recorded()
    }

    /// Defaults of the profile `conweave-ns3-lossless`.
    pub fn conweave_lossless() -> Self {
        FabricParameters {
            pfc_pause: Never::Value(Time::from_us(5)),
            pfc_frame: Bytes(43),
            ..FabricParameters::roce(true).recorded()
        }
    }
}
