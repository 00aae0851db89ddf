//! `[fabric]`: buffers, marking, trimming, classes.

use crate::marking::{MarkingParameters, RedParameters};
use anabranch_settings::{Auto, ControlOr, Named, Never, choices, parameters};
use anabranch_units::{Bytes, BytesOrBdp, Time};

choices! {
    /// Load of links that switches write into data packets whose host scheme reads it (CSIG): a link with a higher one than
    /// those before it writes its own, and where it is. The acknowledgement returns it.
    pub enum CsigSignal {
        /// None.
        Off = "off",
        /// The share of the last `csig_window` for which it was busy.
        Utilisation = "utilisation",
        /// The time for which the packet waited for it.
        Delay = "delay",
    }
}

choices! {
    /// Queue operation at which a packet is marked.
    pub enum MarkAt {
        /// On leaving the queue, by the bytes behind it (PRIME, section III-B).
        Dequeue = "dequeue",
        /// On joining the queue, by the bytes before it.
        Enqueue = "enqueue",
    }
}

choices! {
    /// Packet that is trimmed when a data packet arrives at a full queue.
    pub enum Trim {
        /// The arriving one; of those that have arrived since the last departure, each in turn.
        Arrival = "arrival",
        /// With probability one half the arriving one, else the one queued last, whose place the arrival takes.
        Coin = "coin",
    }
}

choices! {
    /// Limits of the queue before a link that a fault has slowed.
    pub enum SlowedLimits {
        /// As before the fault: the queue of a link at a quarter of its rate drains in four times the time.
        Keep = "keep",
        /// `queue_limit`, `ecn_kmin` and `ecn_kmax` fall with the rate, so that the queue drains in the same time (the
        /// queue holds a full packet at least). htsim builds the queues of failed links so.
        Scale = "scale",
    }
}

choices! {
    /// Scheduling of the data classes of a port and a NIC; control always has priority.
    pub enum Scheduling {
        /// The first class that has a packet.
        Strict = "strict",
        /// Weighted round robin on bytes (deficit round robin), weights in `class_weights`.
        Wrr = "wrr",
    }
}

choices! {
    /// Flow completion time in the statistics.
    pub enum FctKind {
        /// First packet sent to last packet received.
        Rx = "rx",
        /// Start to last acknowledgement at the sender.
        Ack = "ack",
    }
}

choices! {
    /// Identification of flows by switches.
    pub enum FlowKeys {
        /// By a stable key of each connection: the messages of a job from one rank to another over one channel share it,
        /// as they share a queue pair. Schemes that keep a path begin every message of a connection with its label.
        Connection = "connection",
        /// By a stable key of each flow: every message has a queue pair of its own.
        Stable = "stable",
        /// By UDP ports: sources count from 10,000 per sender, destinations from 100 per receiver, in the order of the
        /// flow file. Tables of flowlets use only the receiver and the ports and mix some flows up, DRILL stores its
        /// memory per receiver, and ECMP does not change the ports.
        UdpPorts = "udp-ports",
    }
}

choices! {
    /// Paths of acknowledgements, and of replies to probes, on Dragonflies and Slim Flies.
    pub enum ReplyPaths {
        /// The minimal path of the default tables, regardless of the path of the data.
        Default = "default",
        /// The path that the switch scheme gives a packet with their entropy value, which is that of the data: "we assume
        /// the receiver keeps the same EV for the response" (Spritz §IV). Switches route it as they route data.
        Scheme = "scheme",
    }
}

choices! {
    /// Distribution of packets over the ports of a NIC with one per plane.
    pub enum PortSelector {
        /// `by-ev` for schemes of multi-part entropy values and MRC, `free-port` for others.
        Auto = "auto",
        /// The entropy value names the port: the first part of a multi-part one, which has the planes as one tier more; any
        /// other by a hash of it and the flow. A packet whose port is busy waits for it.
        ByEv = "by-ev",
        /// The next free port in turn takes the next packet, regardless of its entropy value.
        FreePort = "free-port",
    }
}

choices! {
    /// Definition of a flow's ideal completion time, the divisor of its slowdown.
    pub enum IdealFct {
        /// That of the flow alone on the network.
        LoneFlow = "lone-flow",
        /// The base round trip and all bytes at the NIC's rate, one packet too many, to the last acknowledgement.
        RttAndBytes = "rtt-and-bytes",
        /// All bytes at the rate of its paths together and both host links, without propagation, to the last packet received.
        Transmission = "transmission",
    }
}

parameters! {
    /// Buffers, ECN, trimming, classes and their scheduling. The defaults are those of the profile `uet-lossy`.
    pub struct FabricParameters {
        /// Maximum data bytes of a class of a port; a packet that would exceed it is trimmed, or dropped without
        /// trimming.
        queue_limit: BytesOrBdp = BytesOrBdp::Bdp(1_000_000), source "PRIME section IV: packets get trimmed if the queue exceeds one BDP";
        /// `queue_limit` by tier: of ports to hosts, of the ports of leaves to switches, of those of the second tier, and so on;
        /// the last one also of all higher tiers. Empty: `queue_limit` for all. The other lists by tier are alike.
        queue_limit_by_tier: Vec<BytesOrBdp> = vec![], source "ours; UEC 1.0.3, as public briefs have it: 1 BDP of the plane, 1.5 at the last hop", Expert;
        /// Maximum bytes of control packets of a port, and of trimmed headers that have no class of their own; further ones are
        /// dropped.
        control_limit: BytesOrBdp = BytesOrBdp::Bdp(2_000_000), source "specification 7.7 (htsim): twice the data queue", Expert;
        /// Enables ECN marking by switches.
        ecn: bool = true, source "PRIME section III-B", Expert;
        /// `ecn` by tier; without `ecn` nothing is marked.
        ecn_by_tier: Vec<bool> = vec![], source "ours; arXiv 2605.04333: off at the last hop", Expert;
        /// Rule by which packets are marked.
        marking: Named<MarkingParameters> = Named::of(&MarkingParameters::Red(RedParameters::default())), source "specification 7.7 (htsim)", Expert;
        /// RED: bytes in the queue above which packets may be marked.
        ecn_kmin: BytesOrBdp = BytesOrBdp::Bdp(200_000), source "ours: the paper's value is lost; same share as REPS and Spritz";
        /// RED: bytes in the queue above which every packet is marked.
        ecn_kmax: BytesOrBdp = BytesOrBdp::Bdp(800_000), source "ours: the paper's value is lost; same share as REPS and Spritz";
        /// `ecn_kmin` by tier.
        ecn_kmin_by_tier: Vec<BytesOrBdp> = vec![], source "ours", Expert;
        /// `ecn_kmax` by tier.
        ecn_kmax_by_tier: Vec<BytesOrBdp> = vec![], source "ours", Expert;
        /// RED: marking probability just below `ecn_kmax`; it grows linearly from zero at `ecn_kmin`.
        ecn_pmax: f64 = 1.0, within 0.0..=1.0, source "specification 7.7 (htsim): linear to 1", Expert;
        /// Queue operation at which a packet is marked.
        ecn_mark_at: MarkAt = MarkAt::Dequeue, source "PRIME section III-B", Expert;
        /// Limits of the queue before a link that a `link-degrade` fault has slowed.
        slowed_limits: SlowedLimits = SlowedLimits::Keep, source "ours: PRIME gives thresholds in the BDP of the topology; scale: htsim", Reading;
        /// Load of links in data packets (CSIG). A trimmed packet names the port that trimmed it. Of its bytes on the wire, 4 in the
        /// draft's compact form, none is counted.
        csig: CsigSignal = CsigSignal::Off, source "draft-ravi-ippm-csig-01: max(PD), min(ABW/C); PRIME section VII names it", Expert;
        /// Window of `csig = "utilisation"`.
        csig_window: Time = Time::from_us(10), within Time::from_ns(1)..=Time::from_ms(1000), source "ours: about a round trip", Expert;
        /// Trims a packet that arrives at a full queue to its header.
        trimming: bool = true, source "PRIME section IV";
        /// Packet that is trimmed.
        trim: Trim = Trim::Arrival, source "specification 7.7: Spritz's prose; the coin is htsim's", Reading;
        /// Class of trimmed headers. A share: beside data that waits they have this part of the rate, and
        /// precede it while they have less. control: they always precede data, so that enough of them starve it.
        trimmed_class: ControlOr<f64> = ControlOr::Value(0.25), within 0.001..=0.5, source "UEC 1.0.3: a class with a minimum of bandwidth, 25 % recommended, at most 50 %; control: htsim", Expert;
        /// Maximum bytes of trimmed headers that wait for their share at a port; auto: its `queue_limit`.
        trimmed_limit: Auto<BytesOrBdp> = Auto::Auto, source "UEC 1.0.3, as public briefs have it: 1 BDP of the plane", Expert;
        /// Headers of packets trimmed at a port to a host are marked as such, as by a DSCP per egress port. Without it a trim at
        /// the last hop is as any other.
        mark_last_hop_trims: bool = true, source "SONiC, SAI and Cumulus: a capability of the switch", Expert;
        /// Names of the data classes, highest priority first.
        classes: Vec<String> = vec!["data".to_string()], source "ours";
        /// Scheduling of the data classes of a port and a NIC.
        scheduling: Scheduling = Scheduling::Strict, source "PRIME section IV-A2";
        /// Weights of the data classes under `wrr`; empty: equal weights.
        class_weights: Vec<u64> = vec![], source "PRIME section IV-A2", Expert;
        /// Packet memory in bytes shared by the ports of a switch; 0: every port has a `queue_limit` of its own. With a
        /// shared buffer `queue_limit` has no effect and trimming is off.
        shared_buffer: Bytes = Bytes(0), source "specification 7.2: 9 MiB in the RoCE profiles", Expert;
        /// Maximum of a queue of a shared buffer, as a multiple of the free buffer; further packets are dropped. With PFC it
        /// has no effect (except for `recorded = true`): ingresses are paused before the buffer is full.
        buffer_alpha: f64 = 1.0, within 0.000001..=1_000_000.0, source "specification 7.2: dynamic threshold, egress alpha 1", Expert;
        /// Lets a switch pause its upstream neighbours before it would drop (PFC); needs a shared buffer.
        pfc: bool = false, source "specification 7.2", Expert;
        /// An ingress (port and class) is paused when it exceeds this multiple of the free buffer.
        pfc_alpha: f64 = 0.0625, within 0.000001..=1_000_000.0, source "specification 7.2: ingress alpha 1/16", Expert;
        /// Duration of a pause. A finite pause is refreshed by every packet that arrives above the threshold and expires by
        /// itself, which loses packets and is refused unless `recorded = true`; with "never" it lasts until the resume
        /// frame.
        pfc_pause: Never<Time> = Never::Never, source "ours: a switch refreshes its pauses in time", Expert;
        /// Reserved buffer per ingress and class for packets that arrive after the pause was sent; auto: the maximum, which is
        /// twice rate times delay of its link, three full packets and a pause frame. Less is refused
        /// unless `recorded = true`; there auto is a full packet and the frame less.
        pfc_headroom: Auto<Bytes> = Auto::Auto, source "ours, so that nothing is dropped; specification 7.2 and 17.4 for the recorded model", Expert;
        /// Identification of flows by switches.
        flow_keys: FlowKeys = FlowKeys::Connection, source "NCCL: a queue pair per connection; stable: Spritz' artifact, a flow per message; specification 17.1 and 17.5 for the recorded model", Reading;
        /// Paths of acknowledgements, and of replies to probes, on Dragonflies and Slim Flies.
        reply_paths: ReplyPaths = ReplyPaths::Default, source "ours (specification 8.1): the artifact's replies are minimal; scheme: Spritz §IV", Reading;
        /// Distribution of packets over the ports of a NIC with one per plane.
        nic_ports: PortSelector = PortSelector::Auto, source "ours; by-ev: MRC 1.0 (OCP), as public summaries have it; free-port: uet-htsim's -planes", Expert;
        /// Definition of a flow's ideal completion time, the divisor of its slowdown.
        ideal_fct: IdealFct = IdealFct::LoneFlow, source "specification 1; 17.7 for the recorded model; transmission: ours, a reading of PRIME's undefined ideal", Reading;
        /// Peculiarities of the recorded ConWeave runs, which the `conweave-ns3` profiles set. Wire times are truncated to whole
        /// nanoseconds. Arrivals precede simultaneous departures. A base round trip is a payload out and propagation back. With
        /// `flow_keys = "udp-ports"` equal-cost forwarding is MurmurHash3 of the ports. Marking counts the bytes beyond the
        /// minimum of a queue. One port's headroom is not counted, and the egress threshold also applies with PFC. Pause frames
        /// have 43 B and are queued.
        recorded: bool = false, source "specification 17.1 to 17.5", Reading;
        /// Flow completion time in the statistics.
        fct_kind: FctKind = FctKind::Rx, source "PRIME section IV: first packet sent to last packet received; specification 1: `ack` in the other profiles", Expert;
    }
}

/// Bytes of a trimmed packet (specification 7.7, htsim).
pub const TRIMMED_SIZE: u16 = 64;

impl FabricParameters {
    /// Returns the parameters with the limits of ports of a tier: 0 is that of ports to hosts, 1 that of leaves to switches.
    #[must_use]
    pub fn at_tier(&self, tier: usize) -> Self {
        fn of<T: Copy>(list: &[T], tier: usize, all: T) -> T {
            list.get(tier).or(list.last()).copied().unwrap_or(all)
        }
        FabricParameters {
            queue_limit: of(&self.queue_limit_by_tier, tier, self.queue_limit),
            ecn: self.ecn && of(&self.ecn_by_tier, tier, true),
            ecn_kmin: of(&self.ecn_kmin_by_tier, tier, self.ecn_kmin),
            ecn_kmax: of(&self.ecn_kmax_by_tier, tier, self.ecn_kmax),
            ..self.clone()
        }
    }

    /// Returns the number of tiers whose limits may differ; 1 without lists by tier.
    pub fn tiers(&self) -> usize {
        let limits = [&self.queue_limit_by_tier, &self.ecn_kmin_by_tier, &self.ecn_kmax_by_tier];
        limits.map(Vec::len).into_iter().fold(self.ecn_by_tier.len().max(1), usize::max)
    }

    /// Defaults of the profile `uet-1.0.3`: 1 BDP for every queue, 1.5 BDP for data at the last hop.
    pub fn uec() -> Self {
        let [bdp, last_hop] = [1_000_000, 1_500_000].map(BytesOrBdp::Bdp);
        FabricParameters {
            queue_limit_by_tier: vec![last_hop, bdp],
            control_limit: bdp,
            trimmed_limit: Auto::Value(bdp),
            ..FabricParameters::default()
        }
    }

    /// Defaults of the profile `mrc`: as `uet-1.0.3`, trimmed headers in the control class, no marks at the last hop.
    pub fn mrc() -> Self {
        FabricParameters {
            ecn_by_tier: vec![false, true],
            trimmed_class: ControlOr::Control,
            trimmed_limit: Auto::Auto,
            ..FabricParameters::uec()
        }
    }

    /// Defaults of `roce-irn` and, with `pfc`, of `roce-lossless`: a switch with one shared buffer and DCQCN's marking.
    pub fn roce(pfc: bool) -> Self {
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
        FabricParameters {
            fct_kind: FctKind::Ack,
            flow_keys: FlowKeys::Stable,
            trimmed_class: ControlOr::Control,
            ..FabricParameters::default()
        }
    }

    /// Defaults of `conweave-ns3-irn` and, with `pfc`, of `conweave-ns3-lossless`.
    pub fn conweave(pfc: bool) -> Self {
        FabricParameters {
            recorded: true,
            flow_keys: FlowKeys::UdpPorts,
            ideal_fct: IdealFct::RttAndBytes,
            pfc_pause: if pfc { Never::Value(Time::from_us(5)) } else { Never::Never },
            ..FabricParameters::roce(pfc)
        }
    }

    /// Returns the bytes of a pause frame: the least Ethernet frame (IEEE 802.1Qbb), 43 in the recorded model.
    pub fn pfc_frame(&self) -> u16 {
        if self.recorded { 43 } else { 64 }
    }
}
