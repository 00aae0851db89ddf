//! Congestion control of RoCEv2.
//!
//! To add one, write a file with a type that implements [`PairControl`], and name it in the list below. What scenarios,
//! `explain`, `list`, checks and messages say of it follows from that line.

mod dcqcn;
mod line_rate;
mod swift;
mod tcp_like;

pub use crate::control::{About, Section};
pub use dcqcn::{Dcqcn, DcqcnConfig, DcqcnParameters};
pub use swift::SwiftParameters;
pub use tcp_like::TcpLikeParameters;

use super::RoceTransport;
use crate::{
    Network,
    control::{controls, in_table},
};
use anabranch_settings::{Parameters, Raw, SetError, Setting, Wrong};
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
    /// What the registry says of it.
    const ABOUT: About;
    /// Whether it has a window of its own ([`PairControl::window`]).
    const WINDOW: bool = false;
    /// Whether it sends in bursts, by [`PairControl::lets_go`].
    const BURSTS: bool = false;
    /// Whether it starts afresh on a new path where each path is a queue pair of its own.
    const PER_PATH: bool = true;
    /// Whether it needs a receiver that goes back N and a window of one BDP.
    const GO_BACK_N: bool = false;
    /// `[transport.<name>]` of a scenario; without parameters there is no such table.
    type Parameters: Parameters + Clone + Debug + Default + PartialEq;
    /// The constants of a run.
    type Config: Clone + Debug;

    /// Whether every value lies in the range where it has a meaning.
    ///
    /// # Errors
    /// [`SetError::WrongValue`] of the first that does not.
    fn check(_parameters: &Self::Parameters) -> Result<(), SetError> {
        Ok(())
    }
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

macro_rules! pair_controls {
    ($($module:ident $control:ident,)*) => {
        controls! {
            PairControl, CONTROLS, RoceControl, ControlParameters, ControlConfig, Control: $($module $control,)*
        }

        impl RoceControl {
            /// See [`PairControl::GO_BACK_N`].
            pub fn goes_back_n(self) -> bool {
                match self {
                    $(Self::$control => <$module::$control as PairControl>::GO_BACK_N,)*
                }
            }
        }

        impl ControlConfig {
            pub(crate) fn new(transport: &RoceTransport, network: &Network) -> Self {
                match transport.roce.congestion_control {
                    $(RoceControl::$control => {
                        Self::$control(<$module::$control as PairControl>::config(&transport.cc.$module, network.nic_rate))
                    })*
                }
            }

            /// See [`PairControl::delayed_acks`].
            #[inline]
            pub(crate) fn delayed_acks(&self) -> Option<DelayedAcks> {
                match self {
                    $(Self::$control(constants) => <$module::$control as PairControl>::delayed_acks(constants),)*
                }
            }
        }

        /// A queue pair is never shown another run's configuration, so that its state and the constants are of one kind.
        impl Control {
            pub(crate) fn new(config: &ControlConfig, start: &Start) -> Self {
                match config {
                    $(ControlConfig::$control(constants) => Self::$control(PairControl::new(constants, start)),)*
                }
            }

            /// See [`PairControl::WINDOW`].
            #[inline]
            pub(crate) fn has_window(&self) -> bool {
                match self {
                    $(Self::$control(_) => <$module::$control as PairControl>::WINDOW,)*
                }
            }

            /// See [`PairControl::BURSTS`].
            #[inline]
            pub(crate) fn has_bursts(&self) -> bool {
                match self {
                    $(Self::$control(_) => <$module::$control as PairControl>::BURSTS,)*
                }
            }

            /// See [`PairControl::PER_PATH`].
            #[inline]
            pub(crate) fn is_per_path(&self) -> bool {
                match self {
                    $(Self::$control(_) => <$module::$control as PairControl>::PER_PATH,)*
                }
            }

            /// See [`PairControl::window`].
            #[inline]
            pub(crate) fn window(&self, mtu: u64) -> u64 {
                match self {
                    $(Self::$control(state) => PairControl::window(state, mtu),)*
                }
            }

            /// See [`PairControl::rate`].
            #[inline]
            pub(crate) fn rate(&mut self, config: &ControlConfig, now: Time, line_rate: Rate) -> Option<Rate> {
                match (self, config) {
                    $((Self::$control(state), ControlConfig::$control(constants)) => PairControl::rate(state, constants, now, line_rate),)*
                    _ => Some(line_rate),
                }
            }

            /// See [`PairControl::least_gap`].
            #[inline]
            pub(crate) fn least_gap(&self) -> Time {
                match self {
                    $(Self::$control(state) => PairControl::least_gap(state),)*
                }
            }

            /// See [`PairControl::on_notification`].
            pub(crate) fn on_notification(&mut self, config: &ControlConfig, now: Time) {
                match (self, config) {
                    $((Self::$control(state), ControlConfig::$control(constants)) => PairControl::on_notification(state, constants, now),)*
                    _ => {}
                }
            }

            /// See [`PairControl::on_answer`].
            #[inline]
            pub(crate) fn on_answer(&mut self, config: &ControlConfig, answer: &PairAnswer) {
                match (self, config) {
                    $((Self::$control(state), ControlConfig::$control(constants)) => PairControl::on_answer(state, constants, answer),)*
                    _ => {}
                }
            }

            /// See [`PairControl::on_timeout`].
            pub(crate) fn on_timeout(&mut self, config: &ControlConfig, now: Time) {
                match (self, config) {
                    $((Self::$control(state), ControlConfig::$control(constants)) => PairControl::on_timeout(state, constants, now),)*
                    _ => {}
                }
            }

            /// See [`PairControl::lets_go`].
            #[inline]
            pub(crate) fn lets_go(&self, config: &ControlConfig, mtu: u64, room: u64, left: u64) -> bool {
                match (self, config) {
                    $((Self::$control(state), ControlConfig::$control(constants)) => {
                        PairControl::lets_go(state, constants, mtu, room, left)
                    })*
                    _ => true,
                }
            }

            /// See [`PairControl::in_burst`].
            #[inline]
            pub(crate) fn in_burst(&self) -> bool {
                match self {
                    $(Self::$control(state) => PairControl::in_burst(state),)*
                }
            }

            /// See [`PairControl::sent`].
            #[inline]
            pub(crate) fn sent(&mut self, config: &ControlConfig, room: u64, bytes: u64) {
                match (self, config) {
                    $((Self::$control(state), ControlConfig::$control(constants)) => PairControl::sent(state, constants, room, bytes),)*
                    _ => {}
                }
            }
        }
    };
}

pair_controls! {
    dcqcn Dcqcn,
    swift Swift,
    tcp_like TcpLike,
    line_rate LineRate,
}
