//! Interface of a window-based congestion control and its inputs.

use crate::Network;
use anabranch_settings::Parameters;
use anabranch_units::Time;
use std::fmt::Debug;

/// A congestion control of the window-based transport: state and window of one flow.
pub trait WindowRule: Clone + Debug {
    /// `[transport.<name>]` of a scenario; there is no table without parameters.
    type Parameters: Parameters + Clone + Debug + PartialEq;
    /// Constants of a run.
    type Config: Clone + Debug;

    /// Resolves the constants for packets and windows of these sizes on this network.
    fn config(parameters: &Self::Parameters, sizes: Sizes, network: &Network) -> Self::Config;
    /// Creates the state of a flow whose longest path has the base round trip `base_rtt`.
    fn new(config: &Self::Config, base_rtt: Time) -> Self;
    /// Processes an ACK that newly acknowledges packets.
    fn on_ack(&mut self, config: &Self::Config, ack: &CcAck);
    /// Counts bytes acknowledged by a NACK's cumulative PSN as delivered; they do not move the window (ours).
    fn on_progress(&mut self, _bytes: u64) {}
    /// Processes the trim of a packet.
    fn on_nack(&mut self, config: &Self::Config, loss: &CcLoss);
    /// Processes the timeout of a packet.
    fn on_timeout(&mut self, config: &Self::Config, loss: &CcLoss);
    /// Returns the window in bytes on the wire.
    fn cwnd(&self) -> f64;
}

/// Bounds of the window and packet sizes, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// A full packet on the wire, also the minimum window.
    pub mtu: f64,
    /// Payload of a full packet.
    pub payload: f64,
    /// Initial and maximum window.
    pub max: f64,
    /// Packets beyond a BDP that fill a link while an acknowledgement waits for the packets it covers, in bytes; infinite
    /// where the window is a number of bytes, which does not follow the base round trip.
    pub beyond_bdp: f64,
    /// Bytes of a trimmed packet that still arrive: its header.
    pub trimmed: u64,
}

/// An acknowledgement as the congestion control receives it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CcAck {
    /// The current time.
    pub now: Time,
    /// Bytes newly acknowledged, on the wire; never zero.
    pub bytes: u64,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// PSN of the packet that triggered it.
    pub psn: u64,
    /// ECN mark.
    pub ecn: bool,
    /// Round trip of the packet that triggered it; `None` if the packet was retransmitted.
    pub rtt: Option<Time>,
    /// The packet that triggered it was full: its round trip is no shorter for its size.
    pub is_full: bool,
    /// Bytes still in flight.
    pub in_flight: u64,
    /// Base round trip of that packet's own path; `None` if unknown.
    pub path_rtt: Option<Time>,
}

/// The loss of a packet (a NACK or a timeout) as the congestion control receives it.
#[derive(Clone, Copy, Debug)]
pub struct CcLoss {
    /// The current time.
    pub now: Time,
    /// Bytes lost, on the wire.
    pub bytes: u64,
    /// Bytes still in flight.
    pub in_flight: u64,
}

/// Returns `factor` times `time`, rounded down to a picosecond. Added to a time of the run it stays below its limit.
pub(in crate::kinds::uet) fn scaled(time: Time, factor: f64) -> Time {
    Time::from_ps(((time.ps() as f64 * factor) as u64).min(1 << 62))
}
