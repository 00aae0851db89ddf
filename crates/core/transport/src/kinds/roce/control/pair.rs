//! What a congestion control of RoCEv2 is, and what it is told.

use anabranch_settings::Parameters;
use anabranch_units::{Rate, Time};
use std::fmt::Debug;

/// What a queue pair starts from.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Rate of its NIC.
    pub line_rate: Rate,
    /// Base round trip of its path.
    pub base_rtt: Time,
    /// Full packets that the window of the transport holds, or of the flow where that is smaller.
    pub window_packets: f64,
}

/// What an answer tells the congestion control.
#[derive(Clone, Copy, Debug)]
pub struct PairAnswer {
    /// The current time.
    pub now: Time,
    /// Packets newly acknowledged; may be zero.
    pub packets: u32,
    /// Round trip of the packet that it answers; `None` where that was sent more than once, or by another path that has a
    /// queue pair of its own.
    pub rtt: Option<Time>,
    /// A congestion notification.
    pub marked: bool,
    /// A packet is missing.
    pub nack: bool,
    /// Every PSN below is acknowledged.
    pub una: u64,
    /// The PSN to be sent next.
    pub next: u64,
    /// Full packets that the largest window holds.
    pub largest: f64,
}

/// Acknowledgements that wait for more packets.
#[derive(Clone, Copy, Debug)]
pub struct DelayedAcks {
    /// Packets per acknowledgement.
    pub every: u32,
    /// The longest wait.
    pub wait: Time,
}

/// A congestion control of RoCEv2: the state of one queue pair, its rate and its window.
pub trait PairControl: Clone + Debug {
    /// Whether it has a window of its own ([`PairControl::window`]).
    const WINDOW: bool = false;
    /// Whether it sends in bursts, by [`PairControl::lets_go`].
    const BURSTS: bool = false;
    /// Whether it starts afresh on a new path where each path is a queue pair of its own.
    const PER_PATH: bool = true;
    /// `[transport.<name>]` of a scenario; without parameters there is no such table.
    type Parameters: Parameters + Clone + Debug + Default + PartialEq;
    /// The constants of a run.
    type Config: Clone + Debug;

    /// The constants for NICs of this rate.
    fn config(parameters: &Self::Parameters, nic_rate: Rate) -> Self::Config;
    /// A queue pair at its start.
    fn new(config: &Self::Config, start: &Start) -> Self;
    /// Payload bytes that may be in flight, packets having `mtu`.
    fn window(&self, _mtu: u64) -> u64 {
        u64::MAX
    }
    /// The rate that paces its packets at `now`; `None`: nothing does.
    fn rate(&mut self, _config: &Self::Config, _now: Time, line_rate: Rate) -> Option<Rate> {
        Some(line_rate)
    }
    /// The least time between two packets, whatever the rate.
    fn least_gap(&self) -> Time {
        Time::ZERO
    }
    /// A congestion notification arrived.
    fn on_notification(&mut self, _config: &Self::Config, _now: Time) {}
    /// An answer arrived.
    fn on_answer(&mut self, _config: &Self::Config, _answer: &PairAnswer) {}
    /// The retransmission timer struck.
    fn on_timeout(&mut self, _config: &Self::Config, _now: Time) {}
    /// Whether a packet may go while `room` bytes of the window are free and `left` bytes wait to be sent.
    fn lets_go(&self, _config: &Self::Config, _mtu: u64, _room: u64, _left: u64) -> bool {
        true
    }
    /// Whether a burst is under way, which a NIC sends unbroken.
    fn in_burst(&self) -> bool {
        false
    }
    /// `bytes` are sent while `room` bytes of the window are free.
    fn sent(&mut self, _config: &Self::Config, _room: u64, _bytes: u64) {}
    /// How its receiver delays acknowledgements; `None`: every packet has its own.
    fn delayed_acks(_config: &Self::Config) -> Option<DelayedAcks> {
        None
    }
}
