//! `[transport]` of kind `roce`: its scenario keys.

use super::control::{ControlParameters, DcqcnParameters};
use crate::{
    RealNetwork, TransportSettings,
    control::{Controls, Section},
};
use anabranch_settings::{
    About, Auto, Each, Named, Never, Parameter, Parameters, Raw, SetError, Setting, choices, parameters,
};
use anabranch_units::{Bytes, BytesOrBdp, Time};

choices! {
    /// Loss recovery.
    pub enum Recovery {
        /// IRN: selective acknowledgements and an upper bound of the packets in flight.
        Irn = "irn",
        /// IRN whose receiver accepts packets that are early by up to a window without a NACK (Hopper).
        IrnExtended = "irn-extended",
        /// Go-back-N: the receiver accepts only the next packet in order.
        GoBackN = "go-back-n",
    }
}

choices! {
    /// Effect of a path change on a flow's rate (DCQCN) or window (Swift).
    pub enum RateOnPathChange {
        /// None: the flow is one queue pair.
        Keep = "keep",
        /// A reset: every path has a queue pair of its own.
        Fresh = "fresh",
        /// The rate or window before the last cuts, which the path that is left caused.
        Restore = "restore",
    }
}

choices! {
    /// Acknowledgement of a packet that is early within `ooo_window`.
    pub enum EarlyAck {
        /// Cumulative point and the packet itself, without a NACK: the sender does not retransmit it.
        Selective = "selective",
        /// The cumulative point alone, as for a duplicate.
        Cumulative = "cumulative",
    }
}

parameters! {
    /// RoCEv2: a queue pair per flow with its own pacing, a reply per packet. Each congestion control has its own
    /// section.
    pub struct RoceParameters {
        /// Congestion control that sets rate or window.
        congestion_control: Named<ControlParameters> = Named::of(&ControlParameters::Dcqcn(DcqcnParameters::default())), source "Hopper §4.1.1; specification 17.3";
        /// Loss recovery.
        recovery: Recovery = Recovery::Irn, source "Hopper §4.1.1; specification 7.3";
        /// Payload bytes of a full packet.
        mtu: Bytes = Bytes(1000), source "specification 17.2";
        /// Header bytes of a data packet.
        header: Bytes = Bytes(48), source "specification 17.2", Expert;
        /// Bytes of an acknowledgement (ACK, NACK) on the wire.
        ack_size: Bytes = Bytes(60), source "specification 17.2", Expert;
        /// Maximum payload bytes in flight; auto: one BDP with IRN and `tcp-like`, unlimited with go-back-N. Where the BDP has
        /// fewer than 16 packets one packet more per link of the path: acknowledgements wait for packets on the wire.
        window: Auto<BytesOrBdp> = Auto::Auto, source "specification 7.3: the BDP cap of IRN; the packets per link are ours";
        /// Retransmission timeout of go-back-N. Auto: 4 ms, at least the base round trip of the pair of hosts and the drain time
        /// of a full queue. A shorter one than the base round trip is lengthened to that.
        rto: Auto<Never<Time>> = Auto::Auto, source "specification 17.3; the minimum is ours";
        /// Retransmission timeout of IRN with up to three packets in flight. Auto: 100 us; minimum as for `rto`.
        rto_low: Auto<Time> = Auto::Auto, source "specification 17.3; the minimum is ours", Expert;
        /// Retransmission timeout of IRN with more in flight. Auto: 320 us; minimum as for `rto`.
        rto_high: Auto<Time> = Auto::Auto, source "specification 17.3; the minimum is ours", Expert;
        /// Packets that may be early without a NACK, with `irn-extended`.
        ooo_window: u32 = 30, source "Hopper §4.1.1", Expert;
        /// Memory of a NIC for its queue pairs and for packets that are early. Queue pairs come first and
        /// are opened even where they do not fit (`max_queue_pairs` counts them); an early packet that does not fit is refused
        /// by a NACK and counted (`refused_packets`). Go-back-N keeps no early packet.
        nic_memory: Never<Bytes> = Never::Never, source "Hopper §2: about 2 MB on a ConnectX-5", Expert;
        /// Maximum bytes of early packets per connection. With `nic_memory` each connection reserves them when it opens, and
        /// one that finds them taken accepts no early packet; without it, connections share what is free.
        reorder_memory: Never<Bytes> = Never::Never, source "Hopper §2: a buffer of one BDP takes 0.1 MB per connection", Expert;
        /// Bytes of `nic_memory` that a queue pair occupies at each endpoint. A probe is a queue pair of its sender until its reply.
        qp_memory: Bytes = Bytes(375), source "Kalia et al., NSDI 2019 (Hopper's reference 16); Hopper §3.2", Expert;
        /// Acknowledgement of a packet that is early within `ooo_window`, with `irn-extended`.
        early_ack: EarlyAck = EarlyAck::Selective, source "Hopper §4.1.1: such a packet is acknowledged normally", Reading;
        /// Effect of a change of the path tag on a flow's rate (DCQCN) or window (Swift). With "fresh" every path is a
        /// queue pair of its own that starts at line rate; with "restore" the flow returns to the rate before the last cuts.
        /// With both, notifications of the previous path are ignored. Meant for schemes whose hosts move flows (moves of
        /// switches are not seen); they disable congestion control under packet spraying.
        rate_on_path_change: RateOnPathChange = RateOnPathChange::Keep, source "ours: Hopper's simulations build on ConWeave's, where a flow is one queue pair; section 3.3 (\"starts using the corresponding QP\") reads as fresh", Reading;
        /// Peculiarities of the recorded ConWeave runs, which the `conweave-ns3` profiles set. The time between two packets of a
        /// flow is truncated to whole nanoseconds. IRN retransmits all packets not reported as received, even those in flight.
        /// Recovery restarts with every packet that fills a hole and ends with a plain ACK.
        recorded: bool = false, source "specification 17.2, 17.3", Reading;
    }
}

/// The transport with the parameters of each congestion control.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoceTransport {
    /// `[transport]`.
    pub roce: RoceParameters,
    /// `[transport.<name>]` of each congestion control.
    pub cc: Each<ControlParameters>,
}

impl RoceTransport {
    /// Defaults of the profile `roce-irn`.
    pub fn irn() -> Self {
        RoceTransport::default()
    }

    /// Defaults of the profile `roce-lossless`.
    pub fn lossless() -> Self {
        let roce = RoceParameters { recovery: Recovery::GoBackN, ..RoceParameters::default() };
        RoceTransport { roce, ..RoceTransport::default() }
    }

    /// Defaults of the `conweave-ns3` profiles. The lossless one has a timeout, since it does lose packets.
    pub fn conweave(lossless: bool) -> Self {
        let mut transport = if lossless { RoceTransport::lossless() } else { RoceTransport::irn() };
        transport.roce.recorded = true;
        transport
    }
}

impl Parameters for RoceTransport {
    fn documentation(&self) -> Vec<Parameter> {
        self.roce.documentation()
    }
    fn set(&mut self, key: &str, value: &Raw) -> Result<(), SetError> {
        self.roce.set(key, value)
    }
    fn entries(&self) -> Vec<(&'static str, Raw)> {
        self.roce.entries()
    }
}

/// Defaults of the timeouts, except on long or slow links.
pub(super) const RTO: Time = Time::from_ms(4);
pub(super) const RTO_LOW: Time = Time::from_us(100);
pub(super) const RTO_HIGH: Time = Time::from_us(320);

impl TransportSettings for RoceTransport {
    fn controls(&self) -> &dyn Controls {
        &self.cc
    }

    fn controls_mut(&mut self) -> &mut dyn Controls {
        &mut self.cc
    }

    fn control(&self) -> &'static About {
        self.roce.congestion_control.about()
    }

    fn check(&self) -> Result<(), SetError> {
        let (roce, section) = (&self.roce, Section::of(&self.roce));
        let fits = roce.mtu.0 > 0 && roce.mtu.0 + roce.header.0 <= 65_000;
        section.require("mtu", fits, "1B or more, and at most 65000B with the header")?;
        section.require("ack_size", (1..=65_000).contains(&roce.ack_size.0), "from 1B to 65000B")?;
        let zero = Auto::Value(Time::ZERO);
        section.require("rto_low", roce.rto_low != zero, "a time above zero, or \"auto\"")?;
        section.require("rto_high", roce.rto_high != zero, "a time above zero, or \"auto\"")?;
        let zero = Auto::Value(Never::Value(Time::ZERO));
        section.require("rto", roce.rto != zero, "a time above zero, \"never\" or \"auto\"")?;
        // Early packets that need no NACK, or one packet.
        let early = if roce.recovery == Recovery::IrnExtended { u64::from(roce.ooo_window).max(1) } else { 1 };
        let window = Bytes(early.saturating_mul(roce.mtu.0));
        let holds = |limit: Never<Bytes>, least: u64| limit.value().is_none_or(|bytes| bytes.0 >= least);
        let (of_window, of_nic) = (window.0, window.0.saturating_add(roce.qp_memory.0));
        let what = if early > 1 { "the early packets of one window, `ooo_window`" } else { "one packet" };
        let allowed = format!("{window} or more, {what}, or \"never\"");
        section.require("reorder_memory", holds(roce.reorder_memory, of_window), &allowed)?;
        let allowed = format!("{} or more, {what} and a queue pair (`qp_memory`), or \"never\"", Bytes(of_nic));
        section.require("nic_memory", holds(roce.nic_memory, of_nic), &allowed)?;
        if let (Never::Value(nic), Never::Value(reorder)) = (roce.nic_memory, roce.reorder_memory) {
            let most = nic.0.saturating_sub(roce.qp_memory.0);
            let allowed = format!("{} or less, `nic_memory` without a queue pair (`qp_memory`)", Bytes(most));
            section.require("reorder_memory", reorder.0 <= most, &allowed)?;
        }
        let requires_go_back_n = self.cc.chosen(&roce.congestion_control).capabilities().requires_go_back_n();
        let expected = format!("\"go-back-n\" with congestion_control = \"{}\"", self.control().name);
        section.require("recovery", !requires_go_back_n || roce.recovery == Recovery::GoBackN, &expected)?;
        self.cc.check()
    }

    fn mtu(&self) -> u64 {
        self.roce.mtu.0
    }

    fn header(&self) -> u64 {
        self.roce.header.0
    }

    fn ack_size(&self) -> u64 {
        self.roce.ack_size.0
    }

    fn window(&self) -> Option<(BytesOrBdp, u64)> {
        // Only payload counts.
        self.roce.window.value().map(|window| (window, self.mtu()))
    }

    fn adapt(&mut self, real: &RealNetwork) {
        let (roce, least) = (&mut self.roce, real.min_timeout);
        (roce.mtu, roce.header) = (real.payload, real.header);
        roce.rto_low = Auto::Value(roce.rto_low.value().unwrap_or(RTO_LOW).max(least));
        roce.rto_high = Auto::Value(roce.rto_high.value().unwrap_or(RTO_HIGH).max(least));
        // Without a timeout, a stream whose last packet is lost would stall.
        let rto = roce.rto.value().unwrap_or(Never::Value(RTO)).value();
        roce.rto = Auto::Value(Never::Value(rto.map_or(least, |rto| rto.max(least))));
    }

    fn restarts_on_path_change(&self) -> bool {
        self.roce.rate_on_path_change != RateOnPathChange::Keep
    }

    fn has_roce_headers(&self) -> bool {
        true
    }

    fn pfc_problem(&self) -> Option<(String, &'static str)> {
        let help = "IRN runs without PFC: use the profile roce-irn, or recovery = \"go-back-n\" with PFC (profile roce-lossless)";
        let fits = self.roce.recovery == Recovery::GoBackN;
        (!fits).then(|| (format!("recovery = {}", self.roce.recovery.write()), help))
    }
}
