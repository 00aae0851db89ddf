//! Settings of a run, resolved against its network.

use super::cc::{CcConfig, Sizes};
use super::{
    AckEcn, AckEntropy, AckOnFilledHole, AckOnMark, LastHopTrims, RtoRule, UetTransport, parameters::DEFAULT_WINDOW,
};
use crate::{BaseRttShift, Constants, DataArrival, Network, Reply};
use anabranch_settings::Auto;
use anabranch_units::{BytesOrBdp, Time};

/// Longest doubled timeout (UEC: 0 to 8 s).
const MAX_RTO: Time = Time::from_ms(8000);

/// Resolved settings of a run, shared by all its flows.
#[derive(Clone, Debug)]
pub struct UetConfig {
    /// Shift of the base round trip since the flows opened.
    pub base_rtt_shift: BaseRttShift,
    /// Payload bytes of a full packet.
    pub mtu: u64,
    /// Header bytes of a data packet.
    pub header: u64,
    /// Bytes of an ACK or NACK on the wire.
    pub ack_size: u64,
    /// Initial and maximum window, bytes on the wire; at least one full packet.
    pub window: u64,
    /// Retransmission timeout, or the minimum of a measured one.
    pub rto: Time,
    /// Reordering window per tag: a packet is lost once one sent this much later is acknowledged; `None`: off.
    pub early_loss: Option<Time>,
    /// Reordering window over all tags; `None`: off.
    pub rack: Option<Time>,
    /// `true` if each flow measures its timeout.
    pub measures_rto: bool,
    /// Timeouts in a row before they double, and doublings before an error; `None`: they do not double.
    pub doubling: Option<(u32, Option<u32>)>,
    /// Maximum of unacknowledged PSNs.
    pub max_psn_range: u64,
    /// `true` if receivers grant credit (RCCC).
    pub takes_credit: bool,
    /// Data packets per acknowledgement.
    pub ack_every: u32,
    /// Base round trip of all flows, where the congestion control takes that of the longest pair.
    pub longest_rtt: Option<Time>,
    /// Time after which an arrival is acknowledged, however few have arrived since the last acknowledgement.
    pub ack_delay: Time,
    /// Packets that close a hole and are acknowledged at once.
    pub ack_on_filled_hole: AckOnFilledHole,
    /// Marked packets that are acknowledged at once.
    pub ack_on_mark: AckOnMark,
    /// Meaning of the ECN bit of an acknowledgement.
    pub ack_ecn: AckEcn,
    /// `true` if each acknowledgement has an entropy value of its own.
    pub fresh_acks: bool,
    /// `true` if the load balancer receives feedback on packets trimmed at their last hop.
    pub reports_last_hop_trims: bool,
    /// The congestion control and its constants.
    pub cc: CcConfig,
}

impl UetConfig {
    /// Resolves `transport` for `network`; values out of range are replaced by the nearest valid one.
    pub fn new(transport: &UetTransport, network: &Network) -> Self {
        let uet = &transport.uet;
        let (mtu, header) = (uet.mtu.0.clamp(1, 1 << 30), uet.header.0.min(1 << 30));
        let control = transport.cc.chosen(&uet.congestion_control);
        let is_longest = control.as_ref().takes_longest_rtt();
        let (base_rtt, bdp) = if is_longest { network.longest } else { (network.base_rtt, network.bdp) };
        let network = &Network { base_rtt, bdp, ..*network };
        let packet = mtu + header;
        let mut ack_every = uet.ack_every.max(1);
        let window = match uet.window {
            Auto::Auto => {
                let filling =
                    network.packets_to_fill(packet, ack_every).saturating_add(1 + network.packets_ahead(packet));
                let window = DEFAULT_WINDOW.bytes(bdp).max(filling.saturating_mul(packet));
                // A window that fits the queues of the path fills it with fewer packets per acknowledgement. Each of these
                // comes as a burst on top of what the queue holds.
                let (burst, least) = (network.burst.unwrap_or(u64::MAX), network.packets_to_fill(packet, 1).max(1));
                let fits = (burst / packet).max(least);
                if (window / packet).saturating_add(u64::from(ack_every) - 1) > fits {
                    ack_every = ack_every.min(1 + u32::try_from((fits - least) / 2).unwrap_or(u32::MAX - 1));
                    window.min((fits + 1 - u64::from(ack_every)).saturating_mul(packet))
                } else {
                    window
                }
            }
            Auto::Value(window) => window.bytes(bdp).max(packet),
        };
        let beyond_bdp = (u64::from(ack_every) + network.packets_ahead(packet)).saturating_mul(packet);
        let ack_delay = uet.ack_delay.value().unwrap_or(network.base_rtt);
        let rto = match uet.rto {
            Auto::Value(time) => time.max(Time::from_ps(1)),
            Auto::Auto => {
                let drain = Time::from_us(15).saturating_add(network.queue_drain.saturating_mul(6));
                let longest_reply = base_rtt.saturating_add(network.max_wait).saturating_add(ack_delay);
                drain.max(base_rtt.saturating_mul(2)).max(longest_reply).max(uet.min_rto)
            }
        };
        UetConfig {
            base_rtt_shift: BaseRttShift::default(),
            mtu,
            header,
            ack_size: uet.ack_size.0,
            window,
            rto,
            early_loss: uet.early_loss.value(),
            rack: uet.rack.value().map(|times| super::cc::scaled(network.base_rtt, times)),
            measures_rto: uet.rto_rule == RtoRule::Measured,
            doubling: (uet.rto_rule == RtoRule::Doubling).then(|| (uet.rto_linear, uet.rto_max_exponent.value())),
            max_psn_range: uet.max_psn_range.value().unwrap_or(u64::MAX),
            takes_credit: control.as_ref().takes_credit(),
            ack_every,
            ack_delay,
            longest_rtt: is_longest.then_some(base_rtt),
            ack_on_filled_hole: uet.ack_on_filled_hole,
            ack_on_mark: uet.ack_on_mark,
            ack_ecn: uet.ack_ecn,
            fresh_acks: uet.ack_entropy == AckEntropy::Fresh,
            reports_last_hop_trims: uet.last_hop_trims == LastHopTrims::Blame,
            cc: {
                let follows_bdp = !matches!(uet.window, Auto::Value(BytesOrBdp::Bytes(_)));
                let sizes = Sizes {
                    mtu: (mtu + header) as f64,
                    payload: mtu as f64,
                    max: window as f64,
                    beyond_bdp: if follows_bdp { beyond_bdp as f64 } else { f64::INFINITY },
                    trimmed: header,
                };
                CcConfig::new(control, sizes, network)
            },
        }
    }

    /// Returns the timeout after `timeouts` in a row; `None`: the queue pair is in error.
    pub(super) fn backed_off(&self, timeouts: u32) -> Option<Time> {
        let Some((linear, last)) = self.doubling else { return Some(self.rto) };
        let exponent = (timeouts + 1).saturating_sub(linear);
        let timeout = self.rto.saturating_mul(1 << exponent.min(32)).min(MAX_RTO.max(self.rto));
        last.is_none_or(|last| exponent <= last).then_some(timeout)
    }

    /// Number of packets for `size` bytes of payload; a flow without payload is one packet.
    pub fn packets(&self, size: u64) -> u64 {
        size.div_ceil(self.mtu).max(1)
    }
}

impl Constants for UetConfig {
    fn base_rtt_shift(&self) -> BaseRttShift {
        self.base_rtt_shift
    }

    fn set_base_rtt_shift(&mut self, base_rtt_shift: BaseRttShift) {
        self.base_rtt_shift = base_rtt_shift;
    }

    fn final_reply(&self, size: u64, arrival: &DataArrival) -> Reply {
        let DataArrival { psn, tag, ecn, .. } = *arrival;
        Reply { cumulative: self.packets(size), ecn, psn, tag, ..Reply::default() }
    }

    fn min_timeout(&self) -> Option<Time> {
        Some(self.rto)
    }

    fn check(&self, network: &Network) -> Result<(), String> {
        if self.rto >= network.base_rtt {
            return Ok(());
        }
        let (rto, rtt) = (self.rto, network.base_rtt);
        Err(format!(
            "transport.rto: found {rto}, expected at least the base round trip of {rtt}: every packet would be retransmitted \
             before its acknowledgement can arrive"
        ))
    }

    fn short_window(&self, network: &Network) -> Option<(u64, u64)> {
        let packet = self.mtu + self.header;
        // Acknowledgements that the receiver's timer sends come after this many bytes more.
        let delayed =
            u128::from(network.bdp) * u128::from(self.ack_delay.ps()) / u128::from(network.base_rtt.ps().max(1));
        let timed = u64::try_from((u128::from(network.bdp) + delayed).div_ceil(u128::from(packet))).unwrap_or(u64::MAX);
        let needed = network.packets_to_fill(packet, self.ack_every).min(timed);
        (self.window / packet < needed).then(|| (self.window, (needed + 1).saturating_mul(packet)))
    }

    fn window_packets(&self) -> u64 {
        self.window.div_ceil(self.mtu + self.header)
    }

    fn credit_window(&self) -> Option<u64> {
        self.takes_credit.then_some(self.window)
    }

    #[inline]
    fn fresh_acks(&self) -> bool {
        self.fresh_acks
    }

    #[inline]
    fn reports_last_hop_trims(&self) -> bool {
        self.reports_last_hop_trims
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::{BytesOrBdp, Rate};

    fn dragonfly() -> Network {
        // Specification 9.5: 7313.80 ns, 365,690 B; a queue of one BDP drains in 7313.8 ns.
        Network {
            base_rtt: Time::from_ps(7_313_800),
            bdp: 365_690,
            queue_drain: Time::from_ps(7_313_800),
            trimming: true,
            nic_rate: Rate::gbps(400),
            ..Network::default()
        }
    }

    #[test]
    fn the_timeout_follows_the_queues() {
        let mut transport = UetTransport::default();
        // 15 us + 6 * 7.3138 us = 58.8828 us.
        assert_eq!(UetConfig::new(&transport, &dragonfly()).rto, Time::from_ps(58_882_800));
        transport.uet.min_rto = Time::from_us(100);
        assert_eq!(UetConfig::new(&transport, &dragonfly()).rto, Time::from_us(100));
        transport.uet.rto = Auto::Value(Time::from_us(20));
        assert_eq!(UetConfig::new(&transport, &dragonfly()).rto, Time::from_us(20));
        // A long network with small queues: twice 1 ms.
        let long = Network { base_rtt: Time::from_ms(1), queue_drain: Time::ZERO, ..dragonfly() };
        assert_eq!(UetConfig::new(&UetTransport::default(), &long).rto, Time::from_ms(2));
    }

    #[test]
    fn windows_and_packets() {
        let mut transport = UetTransport::default();
        let config = UetConfig::new(&transport, &dragonfly());
        // 1.5 * 365,690 = 548,535 B, 131.9 packets of 4160 B.
        assert_eq!((config.window, config.window_packets()), (548_535, 132));
        assert_eq!([0, 1, 4096, 4097, 4 << 20].map(|size| config.packets(size)), [1, 1, 1, 2, 1024]);
        transport.uet.window = anabranch_settings::Auto::Value(BytesOrBdp::Bytes(1));
        assert_eq!(UetConfig::new(&transport, &dragonfly()).window, 4160, "one packet at least");
    }
}
