//! The settings of a run, resolved against its network.

use super::cc::{CcConfig, Sizes};
use super::{AckEcn, AckEntropy, AckOnFilledHole, AckOnMark, LastHopTrims, RtoRule, UetTransport};
use crate::{Answer, Constants, DataArrival, Moved, Network};
use anabranch_settings::{Auto, Never};
use anabranch_units::Time;

/// The resolved settings of a run, shared by all its flows.
#[derive(Clone, Debug)]
pub struct UetConfig {
    /// By how much the base round trip is another than flows were told.
    pub moved: Moved,
    /// Payload bytes of a full packet.
    pub mtu: u64,
    /// Header bytes of a data packet.
    pub header: u64,
    /// Bytes of an ACK or NACK on the wire.
    pub ack_size: u64,
    /// Initial and largest window, bytes on the wire; at least one full packet.
    pub window: u64,
    /// Retransmission timeout; where it is measured, the least.
    pub rto: Time,
    /// How much later a packet of the same tag must have left whose acknowledgement makes a packet count as lost; `None`: none does.
    pub early_loss: Option<Time>,
    /// Whether each flow measures its timeout.
    pub measures_rto: bool,
    /// Data packets per acknowledgement.
    pub ack_every: u32,
    /// Which packet that closes a hole is acknowledged at once.
    pub ack_on_filled_hole: AckOnFilledHole,
    /// Which marked packet is acknowledged at once.
    pub ack_on_mark: AckOnMark,
    /// What the ECN bit of an acknowledgement says.
    pub ack_ecn: AckEcn,
    /// Whether an acknowledgement is hashed by an entropy value of its own.
    pub fresh_acks: bool,
    /// Whether the load balancer hears of packets that were trimmed at their last hop.
    pub blames_last_hop: bool,
    /// The congestion control and its constants.
    pub cc: CcConfig,
}

impl UetConfig {
    /// Resolves `transport` for `network`. Values out of range (see [`UetTransport::check`]) are moved to the
    /// nearest usable one.
    pub fn new(transport: &UetTransport, network: &Network) -> Self {
        let uet = &transport.uet;
        let (mtu, header) = (uet.mtu.0.clamp(1, 1 << 30), uet.header.0.min(1 << 30));
        let window = uet.window.bytes(network.bdp).max(mtu + header);
        let rto = match uet.rto {
            Auto::Value(time) => time.max(Time::from_ps(1)),
            Auto::Auto => {
                let drain = Time::from_us(15) + network.queue_drain * 6;
                drain.max(network.base_rtt * 2).max(uet.min_rto)
            }
        };
        UetConfig {
            moved: Moved::default(),
            mtu,
            header,
            ack_size: uet.ack_size.0,
            window,
            rto,
            early_loss: match uet.early_loss {
                Never::Never => None,
                Never::Value(time) => Some(time),
            },
            measures_rto: uet.rto_rule == RtoRule::Measured,
            ack_every: uet.ack_every.max(1),
            ack_on_filled_hole: uet.ack_on_filled_hole,
            ack_on_mark: uet.ack_on_mark,
            ack_ecn: uet.ack_ecn,
            fresh_acks: uet.ack_entropy == AckEntropy::Fresh,
            blames_last_hop: uet.last_hop_trims == LastHopTrims::Blame,
            cc: {
                let sizes =
                    Sizes { mtu: (mtu + header) as f64, payload: mtu as f64, max: window as f64, trimmed: header };
                CcConfig::new(transport.cc.chosen(&uet.congestion_control), sizes, network)
            },
        }
    }

    /// Packets that `size` bytes of payload fill; a flow without payload is one packet.
    pub fn packets(&self, size: u64) -> u64 {
        size.div_ceil(self.mtu).max(1)
    }
}

impl Constants for UetConfig {
    fn moved(&self) -> Moved {
        self.moved
    }

    fn set_moved(&mut self, moved: Moved) {
        self.moved = moved;
    }

    fn final_answer(&self, size: u64, arrival: &DataArrival) -> Answer {
        let DataArrival { psn, tag, ecn, .. } = *arrival;
        Answer { cumulative: self.packets(size), ecn, psn, tag, ..Answer::default() }
    }

    fn least_timeout(&self) -> Option<Time> {
        Some(self.rto)
    }

    fn check(&self, network: &Network) -> Result<(), String> {
        if self.rto >= network.base_rtt {
            return Ok(());
        }
        let (rto, rtt) = (self.rto, network.base_rtt);
        Err(format!(
            "transport.rto: found {rto}, expected the base round trip of {rtt} at least: every packet would be sent again before its \
             answer can be back"
        ))
    }

    fn window_packets(&self) -> u64 {
        self.window.div_ceil(self.mtu + self.header)
    }

    #[inline]
    fn fresh_acks(&self) -> bool {
        self.fresh_acks
    }

    #[inline]
    fn blames_last_hop(&self) -> bool {
        self.blames_last_hop
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
        transport.uet.window = BytesOrBdp::Bytes(1);
        assert_eq!(UetConfig::new(&transport, &dragonfly()).window, 4160, "one packet at least");
    }
}
