//! Interface of a RoCEv2 congestion control and its inputs.

use anabranch_settings::Parameters;
use anabranch_units::{Rate, Time};
use std::fmt::Debug;

/// Initial conditions of a queue pair.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Rate of its NIC.
    pub line_rate: Rate,
    /// Base round trip of its path.
    pub base_rtt: Time,
    /// Full packets in the transport's window, or in the flow if that is smaller.
    pub window_packets: f64,
}

/// An acknowledgement as the congestion control receives it.
#[derive(Clone, Copy, Debug)]
pub struct PairReply {
    /// The current time.
    pub now: Time,
    /// Packets newly acknowledged; may be zero.
    pub packets: u32,
    /// Round trip of the packet; `None` if it was retransmitted, or took the path of another queue pair.
    pub rtt: Option<Time>,
    /// It carries a congestion notification.
    pub marked: bool,
    /// It reports a missing packet.
    pub nack: bool,
    /// First PSN not yet acknowledged.
    pub una: u64,
    /// PSN of the next transmission.
    pub next: u64,
    /// Upper bound of the window in full packets.
    pub largest: f64,
}

/// Coalescing of acknowledgements at the receiver.
#[derive(Clone, Copy, Debug)]
pub struct DelayedAcks {
    /// Packets per acknowledgement.
    pub every: u32,
    /// Maximum delay of an acknowledgement.
    pub wait: Time,
}

/// A congestion control of RoCEv2: the state of one queue pair, its rate and its window.
pub trait PairControl: Clone + Debug {
    /// `true` if it limits the window by [`PairControl::window`].
    const WINDOW: bool = false;
    /// `true` if it sends in bursts, by [`PairControl::may_send`].
    const BURSTS: bool = false;
    /// `true` if it is reset on a new path where each path is a queue pair of its own.
    const PER_PATH: bool = true;
    /// `[transport.<name>]` of a scenario; there is no table without parameters.
    type Parameters: Parameters + Clone + Debug + PartialEq;
    /// The constants of a run.
    type Config: Clone + Debug;

    /// Resolves the constants for NICs of this rate.
    fn config(parameters: &Self::Parameters, nic_rate: Rate) -> Self::Config;
    /// Creates the state of a queue pair.
    fn new(config: &Self::Config, start: &Start) -> Self;
    /// Maximum payload bytes in flight for packets of `mtu`.
    fn window(&self, _mtu: u64) -> u64 {
        u64::MAX
    }
    /// Rate that paces its packets at `now`; `None`: unpaced.
    fn rate(&mut self, _config: &Self::Config, _now: Time, line_rate: Rate) -> Option<Rate> {
        Some(line_rate)
    }
    /// Minimum time between two packets, regardless of the rate.
    fn min_gap(&self) -> Time {
        Time::ZERO
    }
    /// Handles a congestion notification.
    fn on_notification(&mut self, _config: &Self::Config, _now: Time) {}
    /// Handles an acknowledgement.
    fn on_reply(&mut self, _config: &Self::Config, _answer: &PairReply) {}
    /// Handles the expiry of the retransmission timer.
    fn on_timeout(&mut self, _config: &Self::Config, _now: Time) {}
    /// Returns `true` if a packet may be sent with `room` bytes of the window free and `left` bytes to send.
    fn may_send(&self, _config: &Self::Config, _mtu: u64, _room: u64, _left: u64) -> bool {
        true
    }
    /// Returns `true` during a burst, which a NIC sends without interruption.
    fn in_burst(&self) -> bool {
        false
    }
    /// Notes the transmission of `bytes` with `room` bytes of the window free.
    fn on_sent(&mut self, _config: &Self::Config, _room: u64, _bytes: u64) {}
    /// Returns `true` if [`PairControl::on_bytes`] has an effect.
    fn counts_bytes(_config: &Self::Config) -> bool {
        false
    }
    /// Notes the transmission of `bytes` on the wire at `now`, before its rate is read.
    fn on_bytes(&mut self, _config: &Self::Config, _now: Time, _bytes: u64) {}
    /// Restores the rate or window from before the last cuts: the flow leaves the path that caused them.
    fn restore(&mut self, _config: &Self::Config, _now: Time) {}
    /// Coalescing of acknowledgements at its receiver; `None`: one per packet.
    fn delayed_acks(_config: &Self::Config) -> Option<DelayedAcks> {
        None
    }
}
