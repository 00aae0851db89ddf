//! Congestion control of RoCEv2.
//!
//! To add one, write a file with `pub(super) const ABOUT: About`, parameters, and a type that implements [`PairControl`]; name them
//! in the list below. What scenarios, `explain`, `list`, checks and messages say of it follows from that line.

mod dcqcn;
mod line_rate;
mod pair;
mod swift;
mod tcp_like;

pub use crate::control::{Check, Section};
pub use dcqcn::{Dcqcn, DcqcnConfig, DcqcnParameters};
pub use line_rate::LineRateParameters;
pub use pair::{DelayedAcks, PairAnswer, PairControl, Start};
pub use swift::SwiftParameters;
pub use tcp_like::TcpLikeParameters;

use anabranch_settings::registry;
use anabranch_units::{Rate, Time};

macro_rules! pair_controls {
    ($($module:ident $control:ident $parameters:ident,)*) => {
        registry! {
            /// A congestion control and its parameters, `[transport.<name>]`.
            pub enum ControlParameters("congestion control of roce"): pub dyn Check in self {
                $($module $control $parameters,)*
            }
        }

        /// The congestion control of a run and its constants.
        #[derive(Clone, Debug)]
        pub enum ControlConfig {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $control(<$module::$control as PairControl>::Config),
            )*
        }

        /// The congestion control of one queue pair.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum Control {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $control($module::$control),
            )*
        }

        impl ControlConfig {
            pub(crate) fn new(parameters: &ControlParameters, nic_rate: Rate) -> Self {
                match parameters {
                    $(ControlParameters::$control(parameters) => {
                        Self::$control(<$module::$control as PairControl>::config(parameters, nic_rate))
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
    dcqcn Dcqcn DcqcnParameters,
    swift Swift SwiftParameters,
    tcp_like TcpLike TcpLikeParameters,
    line_rate LineRate LineRateParameters,
}
