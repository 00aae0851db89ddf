//! `[transport]` of kind `uet`: its scenario keys.

use super::cc::{CcParameters, DctcpParameters, NsccBaseRtt, NsccParameters, QuickAdaptDelay};
use crate::{
    RealNetwork, TransportSettings,
    control::{Controls, Section},
};
use anabranch_settings::{
    About, Auto, Each, Named, Never, Parameter, Parameters, Raw, SetError, Setting, choices, parameters,
};
use anabranch_units::{Bytes, BytesOrBdp, Time};

choices! {
    /// Meaning of the ECN bit of an acknowledgement.
    pub enum AckEcn {
        /// Mark of the packet that triggered it.
        Own = "own",
        /// Mark of any packet since the last acknowledgement.
        Any = "any",
    }
}

choices! {
    /// Packets that close a hole in the sequence and are acknowledged at once.
    pub enum AckOnFilledHole {
        /// The one that closes the last hole after an acknowledgement was requested: the acknowledgement of the request
        /// could not cover the packets missing then.
        Requested = "requested",
        /// Every one. Under reordering this defeats coalescing, and returns the tag of the late packet.
        Every = "every",
    }
}

choices! {
    /// Marked packets that are acknowledged at once.
    pub enum AckOnMark {
        /// The first marked packet after an unmarked one, and the first unmarked one after a marked one (DCTCP).
        Change = "change",
        /// Every marked one.
        Every = "every",
    }
}

choices! {
    /// Entropy value by which an acknowledgement is hashed on the return path.
    pub enum AckEntropy {
        /// That of the acknowledged packet. If its hash leads to a dead link that the tables still list, every
        /// acknowledgement of a flow that keeps its entropy value is lost, and the flow never completes.
        Echo = "echo",
        /// A new one for every acknowledgement.
        Fresh = "fresh",
    }
}

choices! {
    /// Feedback to the load balancer on a packet trimmed at its last hop, which all paths share.
    pub enum LastHopTrims {
        /// As for any trimmed packet.
        Blame = "blame",
        /// None: no other path would have avoided the trim. The congestion control still receives it.
        Ignore = "ignore",
    }
}

choices! {
    /// Source of the retransmission timeout.
    pub enum RtoRule {
        /// A constant of the run.
        Fixed = "fixed",
        /// The round trips of each flow (RFC 6298): the smoothed one plus four times its deviation, at least `rto`. It
        /// doubles with every timeout until the next acknowledgement. For networks of unknown queueing delay.
        Measured = "measured",
        /// `rto` for `rto_linear` timeouts in a row, then doubled by each, at most 8 s. An ACK of new packets ends the row.
        Doubling = "doubling",
    }
}

parameters! {
    /// The Ultra-Ethernet-like transport: window, acknowledgements, timeout. Each congestion control has its own
    /// section.
    pub struct UetParameters {
        /// Congestion control that sets the window.
        congestion_control: Named<CcParameters> = Named::of(&CcParameters::Nscc(NsccParameters::default())), source "ours: PRIME does not name it (specification 5.4); Spritz uses dctcp";
        /// Data packets per acknowledgement; 1 acknowledges every packet. A packet after which the sender is blocked
        /// requests one at once.
        ack_every: u32 = 4, source "specification 7.10; 16 KiB of packets in Ultra Ethernet's public simulator", Expert;
        /// Time after which an arrival is acknowledged although fewer than `ack_every` packets have arrived; auto: the base
        /// round trip. A sender whose window shrinks below what is in flight waits for it.
        ack_delay: Auto<Time> = Auto::Auto, source "ours; specification 7.10", Expert;
        /// Packets that close a hole in the sequence and are acknowledged at once.
        ack_on_filled_hole: AckOnFilledHole = AckOnFilledHole::Requested, source "specification 7.10, after Ultra Ethernet's public simulator", Reading;
        /// Marked packets that are acknowledged at once.
        ack_on_mark: AckOnMark = AckOnMark::Change, source "specification 7.10; every one in Ultra Ethernet's public simulator", Reading;
        /// Meaning of the ECN bit of an acknowledgement.
        ack_ecn: AckEcn = AckEcn::Own, source "specification 7.10", Reading;
        /// Entropy value by which an acknowledgement is hashed on the return path; switches that read multi-part values
        /// or guide packets do not hash it.
        ack_entropy: AckEntropy = AckEntropy::Echo, source "specification 4: control packets by the hash of their flow; `fresh` is ours", Reading;
        /// Feedback to the load balancer on a packet trimmed at its last hop.
        last_hop_trims: LastHopTrims = LastHopTrims::Blame, source "PRIME III-C and Spritz Alg. 2: every NACK counts; ignore: MRC 1.0 (OCP), as public summaries have it", Reading;
        /// Initial and maximum window in bytes on the wire; at least one packet. Auto: 1.5 BDP, at least one BDP and
        /// `ack_every` packets, and where the BDP has fewer than 16 packets one more per link of the path. Where that would
        /// overflow the queue of an empty slower port: what fits, with fewer packets per acknowledgement if need be.
        window: Auto<BytesOrBdp> = Auto::Auto, source "Spritz §V: 1.5 BDP; the bounds are ours";
        /// Retransmission timeout. `auto`: 15 us and six times the drain time of a full data queue, at least two base round
        /// trips of the pair of hosts, `min_rto`, and the longest time that a reply can take where nothing is dropped.
        rto: Auto<Time> = Auto::Auto, source "specification 7.10; the bounds are ours";
        /// Reordering window: a packet is lost once one of the same tag, sent this much later, is acknowledged. For
        /// networks without trimming that keep the packets of a tag in order. `never`: only NACKs and timeouts signal
        /// losses.
        early_loss: Never<Time> = Never::Never, source "ours, after RFC 8985 (RACK), per path; specification 7.10 knows NACKs and timeouts", Expert;
        /// Reordering window over all entropy values, in base round trips: a packet is lost once one sent this much later, over
        /// any path, is acknowledged. `never`: see `early_loss`.
        rack: Never<f64> = Never::Never, within 0.0..=1_000_000.0, source "RFC 8985 (RACK); MRC 1.0 leaves the rule open: one base round trip is ours", Expert;
        /// Maximum of unacknowledged PSNs: no packet is sent this many PSNs or more beyond the first unacknowledged one. A multiple
        /// of 128, at most 32,640.
        max_psn_range: Never<u64> = Never::Never, source "MRC 1.0 (OCP), as public summaries have it: MPR, in units of 128", Expert;
        /// Source of the timeout; the minimum of a measured one is `rto`.
        rto_rule: RtoRule = RtoRule::Fixed, source "specification 7.10; measured: RFC 6298, for real networks; doubling: MRC 1.0 and UEC 1.0.3", Expert;
        /// Timeouts in a row of `rto` each before they double (`rto_rule = "doubling"`).
        rto_linear: u32 = 1, within 1..=1000, source "UEC 1.0.3, as public briefs have it: rto times 2^retry, 0 to 8 s; at most 7 in MRC 1.0 (OCP), as public summaries have it", Expert;
        /// Doublings after which the next timeout is an error of the queue pair: its sender stops for good, and its flow never
        /// ends (`rto_rule = "doubling"`).
        rto_max_exponent: Never<u32> = Never::Never, within 0..=24, source "MRC 1.0 (OCP), as public summaries have it; 25 there is never", Expert;
        /// Minimum of an automatic timeout.
        min_rto: Time = Time::ZERO, source "ours; 100 us on Dragonfly and Slim Fly (specification 7.10)", Expert;
        /// Payload bytes of a full packet.
        mtu: Bytes = Bytes(4096), source "Spritz Table II; specification 9.4: 4160 B on the wire";
        /// Header bytes of a data packet.
        header: Bytes = Bytes(64), source "specification 9.4: 4160 B on the wire", Expert;
        /// Bytes of an acknowledgement (ACK or NACK) on the wire.
        ack_size: Bytes = Bytes(64), source "specification 1", Expert;
    }
}

/// The transport with the parameters of each congestion control.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UetTransport {
    /// `[transport]`.
    pub uet: UetParameters,
    /// `[transport.<name>]` of each congestion control.
    pub cc: Each<CcParameters>,
}

impl UetTransport {
    /// Defaults of the profile `spritz` (Spritz §IV-C and V-A; the timeout is that of its artifact, specification 7.4).
    pub fn spritz() -> Self {
        let uet = UetParameters {
            congestion_control: Named::of(&CcParameters::Dctcp(DctcpParameters::default())),
            ack_every: 1,
            rto: Auto::Value(Time::from_us(100)),
            ..UetParameters::default()
        };
        let mut transport = UetTransport { uet, ..UetTransport::default() };
        transport.take_longest_rtt();
        transport
    }
}

impl UetTransport {
    /// Defaults of the profile `mrc`.
    pub fn mrc() -> Self {
        let mut transport = UetTransport::uec();
        // 1.024 us times 2^8.
        transport.uet.rto = Auto::Value(Time::from_ns(262_144));
        (transport.uet.rto_linear, transport.uet.max_psn_range) = (7, Never::Value(1024));
        transport.uet.rack = Never::Value(1.0);
        transport
    }

    /// Defaults of the profile `uet-1.0.3`.
    pub fn uec() -> Self {
        let uet = UetParameters {
            ack_on_mark: AckOnMark::Every,
            last_hop_trims: LastHopTrims::Ignore,
            rto_rule: RtoRule::Doubling,
            ..UetParameters::default()
        };
        let mut transport = UetTransport { uet, ..UetTransport::default() };
        transport.set_nscc("base_rtt", &NsccBaseRtt::Moving.write());
        transport.set_nscc("quick_adapt_delay", &QuickAdaptDelay::Queue.write());
        transport
    }

    fn set_nscc(&mut self, key: &str, value: &Raw) {
        let nscc = self.cc.parameters_mut("nscc").expect("a congestion control of uet");
        nscc.set(key, value).expect("a key that it has");
    }

    fn take_longest_rtt(&mut self) {
        self.set_nscc("base_rtt", &NsccBaseRtt::Longest.write());
    }
}

impl Parameters for UetTransport {
    fn documentation(&self) -> Vec<Parameter> {
        self.uet.documentation()
    }
    fn set(&mut self, key: &str, value: &Raw) -> Result<(), SetError> {
        self.uet.set(key, value)
    }
    fn entries(&self) -> Vec<(&'static str, Raw)> {
        self.uet.entries()
    }
}

/// Default window, except on links whose BDP is a few packets.
pub(super) const DEFAULT_WINDOW: BytesOrBdp = BytesOrBdp::Bdp(1_500_000);

/// QuickAdapt's periods on a real network, where a path may deliver only trimmed packets.
const QUICK_ADAPT_PATIENCE: f64 = 10.0;

impl TransportSettings for UetTransport {
    fn controls(&self) -> &dyn Controls {
        &self.cc
    }

    fn controls_mut(&mut self) -> &mut dyn Controls {
        &mut self.cc
    }

    fn control(&self) -> &'static About {
        self.uet.congestion_control.about()
    }

    fn check(&self) -> Result<(), SetError> {
        let uet = Section::of(&self.uet);
        uet.require("ack_every", self.uet.ack_every > 0, "at least 1")?;
        // The length field of IP limits a packet to 65,535 B.
        uet.require("header", self.uet.header.0 < 1 << 15, "less than 32KiB")?;
        let room = 65_535 - self.uet.header.0;
        uet.require("mtu", (1..=room).contains(&self.uet.mtu.0), &format!("from 1B to {room}B beside the header"))?;
        uet.require("ack_size", (1..=65_535).contains(&self.uet.ack_size.0), "from 1B to 65535B")?;
        let range =
            self.uet.max_psn_range.value().is_none_or(|range| range % 128 == 0 && (128..=32_640).contains(&range));
        uet.require("max_psn_range", range, "\"never\" or a multiple of 128 from 128 to 32640")?;
        uet.require("rto", self.uet.rto != Auto::Value(Time::ZERO), "longer than 0us")?;
        self.cc.check()
    }

    fn mtu(&self) -> u64 {
        self.uet.mtu.0
    }

    fn header(&self) -> u64 {
        self.uet.header.0
    }

    fn ack_size(&self) -> u64 {
        self.uet.ack_size.0
    }

    fn window(&self) -> Option<(BytesOrBdp, u64)> {
        Some((self.uet.window.value().unwrap_or(DEFAULT_WINDOW), self.mtu() + self.header()))
    }

    fn adapt(&mut self, real: &RealNetwork) {
        let uet = &mut self.uet;
        (uet.mtu, uet.header, uet.early_loss) = (real.payload, real.header, real.early_loss);
        (uet.rto, uet.rto_rule, uet.min_rto) = (Auto::Auto, RtoRule::Measured, real.min_timeout);
        if real.is_reliable {
            (uet.rto, uet.rto_rule) = (Auto::Value(real.min_timeout), RtoRule::Fixed);
            (uet.early_loss, uet.rack) = (Never::Never, Never::Never);
        }
        // The base round trip is measured before the flow, and again where the path changes.
        self.take_longest_rtt();
        let key = "quick_adapt_patience";
        for about in CcParameters::ALL {
            let parameters = self.cc.parameters_mut(about.name);
            if let Some(waits) = parameters.filter(|p| p.entries().contains(&(key, Never::<f64>::Never.write()))) {
                waits.set(key, &Never::Value(QUICK_ADAPT_PATIENCE).write()).expect("a key that it has");
            }
        }
    }

    fn packets_per_ack(&self) -> u64 {
        u64::from(self.uet.ack_every)
    }

    fn outlasts_queues(&self) -> bool {
        (self.uet.rto, self.uet.rto_rule) == (Auto::Auto, RtoRule::Fixed) && self.uet.early_loss == Never::Never
    }

    fn supports_trimming(&self) -> bool {
        true
    }

    fn takes_credit(&self) -> bool {
        self.cc.chosen(&self.uet.congestion_control).as_ref().takes_credit()
    }

    fn idle_keys(&self) -> Vec<(&'static str, &'static str)> {
        let defaults = UetParameters::default();
        let idle = [
            ("rto_linear", self.uet.rto_linear != defaults.rto_linear),
            ("rto_max_exponent", self.uet.rto_max_exponent != defaults.rto_max_exponent),
        ];
        let idle = idle.into_iter().filter(|(_, differs)| *differs && self.uet.rto_rule != RtoRule::Doubling);
        idle.map(|(key, _)| (key, "rto_rule = \"doubling\"")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_settings::{Parameters, Raw};

    #[test]
    fn the_defaults_are_in_range() {
        assert_eq!(UetTransport::default().check(), Ok(()));
    }

    #[test]
    fn errors_name_the_key_and_what_is_allowed() {
        let mut transport = UetTransport::default();
        transport.cc.parameters_mut("dctcp").unwrap().set("decrease", &Raw::Float(1.5)).unwrap();
        let error = transport.check().unwrap_err().to_string();
        assert!(error.contains("dctcp.decrease") && error.contains("1.5") && error.contains("0 to 1"), "{error}");
        let mut transport = UetTransport::default();
        transport.uet.set("ack_every", &Raw::Int(0)).unwrap();
        assert!(transport.check().unwrap_err().to_string().contains("`ack_every`: found 0"));
        let error = transport.uet.set("congestion_control", &Raw::Text("dctpc".into())).unwrap_err().to_string();
        assert!(error.contains("did you mean `dctcp`"), "{error}");
    }
}
