//! Settings of a run, resolved against its network.

use super::parameters::{RTO, RTO_HIGH, RTO_LOW};
use super::{EarlyAck, RateOnPathChange, Recovery, RoceTransport, control::ControlConfig};
use crate::{BaseRttShift, Constants, DataArrival, Network, NicLimits, Reply};
use anabranch_settings::Auto;
use anabranch_units::{Rate, Time};

/// Resolved settings of a run, shared by all its flows.
#[derive(Clone, Debug)]
pub struct RoceConfig {
    /// Shift of the base round trip since the flows opened.
    pub base_rtt_shift: BaseRttShift,
    /// Payload bytes of a full packet.
    pub mtu: u64,
    /// Header bytes of a data packet.
    pub header: u64,
    /// Bytes of an acknowledgement on the wire.
    pub ack_size: u64,
    /// Maximum payload bytes in flight; `u64::MAX`: unlimited.
    pub window: u64,
    pub(crate) recovery: Recovery,
    pub(crate) control: ControlConfig,
    /// Timeout of go-back-N; `None`: never.
    pub(crate) rto: Option<Time>,
    pub(crate) rto_low: Time,
    pub(crate) rto_high: Time,
    pub(crate) ooo_window: u64,
    /// Maximum early bytes of a connection; `u64::MAX`: unlimited.
    pub(crate) reorder_memory: u64,
    nic_limits: Option<NicLimits>,
    /// `true` if a packet that is early within the window is acknowledged selectively.
    pub(crate) early_sack: bool,
    pub(crate) on_path_change: RateOnPathChange,
    /// `true` if the congestion control counts the bytes sent.
    pub(crate) counts_bytes: bool,
    /// `true` if loss recovery follows the reference model.
    pub(crate) recorded: bool,
    /// `true` if outcomes have the packets that have arrived early.
    pub(crate) selective: bool,
}

impl RoceConfig {
    /// Resolves `transport`, which must have passed `check`, against the network.
    pub fn new(transport: &RoceTransport, network: &Network) -> Self {
        let roce = &transport.roce;
        let control = transport.cc.chosen(&roce.congestion_control);
        let least = network.base_rtt.saturating_add(network.queue_drain);
        let timeout = |setting: Auto<Time>, default: Time| {
            setting.value().map_or(default.max(least), |time| time.max(network.base_rtt))
        };
        let packet = roce.mtu.0 + roce.header.0;
        // Only payload counts.
        let filling = match network.packets_ahead(packet) {
            0 => 0,
            ahead => (network.packets_to_fill(packet, 1) + ahead).saturating_mul(roce.mtu.0),
        };
        let limited = roce.recovery != Recovery::GoBackN || control.capabilities().requires_go_back_n();
        let reorder = roce.reorder_memory.value().map(|bytes| bytes.0);
        RoceConfig {
            base_rtt_shift: BaseRttShift::default(),
            mtu: roce.mtu.0,
            header: roce.header.0,
            ack_size: roce.ack_size.0,
            window: match roce.window {
                Auto::Value(window) => window.bytes(network.bdp).max(roce.mtu.0),
                Auto::Auto if limited => network.bdp.max(roce.mtu.0).max(filling),
                Auto::Auto => u64::MAX,
            },
            recovery: roce.recovery,
            counts_bytes: ControlConfig::new(control, network.nic_rate).counts_bytes(),
            control: ControlConfig::new(control, network.nic_rate),
            rto: match roce.rto {
                Auto::Auto => Some(RTO.max(least)),
                Auto::Value(rto) => rto.value().map(|time| time.max(network.base_rtt)),
            },
            rto_low: timeout(roce.rto_low, RTO_LOW),
            rto_high: timeout(roce.rto_high, RTO_HIGH),
            ooo_window: u64::from(roce.ooo_window),
            reorder_memory: reorder.unwrap_or(u64::MAX),
            nic_limits: roce.nic_memory.value().map(|memory| NicLimits {
                memory: memory.0,
                reorder,
                queue_pair: roce.qp_memory.0,
            }),
            early_sack: roce.early_ack == EarlyAck::Selective,
            on_path_change: roce.rate_on_path_change,
            recorded: roce.recorded,
            selective: network.selective,
        }
    }

    /// Number of packets for `size` payload bytes.
    pub fn packets(&self, size: u64) -> u64 {
        size.div_ceil(self.mtu).max(1)
    }

    /// Time between the starts of two packets at `rate`, the first of `wire` bytes.
    pub(crate) fn gap(&self, rate: Rate, wire: u64) -> Time {
        if self.recorded { rate.wire_time_in_ns(wire) } else { rate.wire_time(wire) }
    }
}

impl Constants for RoceConfig {
    fn base_rtt_shift(&self) -> BaseRttShift {
        self.base_rtt_shift
    }

    fn set_base_rtt_shift(&mut self, base_rtt_shift: BaseRttShift) {
        self.base_rtt_shift = base_rtt_shift;
    }

    fn final_reply(&self, size: u64, arrival: &DataArrival) -> Reply {
        let DataArrival { psn, tag, ecn, .. } = *arrival;
        Reply { cumulative: self.packets(size), ecn, cnp: ecn, psn, tag, ..Reply::default() }
    }

    fn min_timeout(&self) -> Option<Time> {
        match self.recovery {
            Recovery::GoBackN => self.rto,
            Recovery::Irn | Recovery::IrnExtended => Some(self.rto_low.min(self.rto_high)),
        }
    }

    fn max_timeout(&self) -> Option<Time> {
        match self.recovery {
            Recovery::GoBackN => self.rto,
            Recovery::Irn | Recovery::IrnExtended => Some(self.rto_low.max(self.rto_high)),
        }
    }

    fn short_window(&self, network: &Network) -> Option<(u64, u64)> {
        // Only payload counts, and a packet leaves while less than a window is in flight.
        let packets = network.packets_to_fill(self.mtu + self.header, 1);
        (self.window.div_ceil(self.mtu) < packets).then(|| (self.window, packets * self.mtu))
    }

    fn early_packets(&self) -> u64 {
        if self.recovery == Recovery::IrnExtended { self.ooo_window } else { 0 }
    }

    fn nic_limits(&self) -> Option<NicLimits> {
        self.nic_limits
    }
}
