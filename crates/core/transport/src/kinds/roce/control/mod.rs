//! Congestion control of RoCEv2. To add one, write a file with `pub(super) const ABOUT: About`, parameters, and a type
//! that implements [`PairControl`]; name them in the list below.

mod dcqcn;
mod line_rate;
mod pair;
mod swift;
mod tcp_like;

pub use crate::control::{ControlCapabilities, Section};
pub use dcqcn::{Dcqcn, DcqcnConfig, DcqcnParameters};
pub use line_rate::LineRateParameters;
pub use pair::{DelayedAcks, PairControl, PairReply, Start};
pub use swift::SwiftParameters;
pub use tcp_like::TcpLikeParameters;

use crate::dispatch::dispatch;
use anabranch_settings::registry;
use anabranch_units::{Rate, Time};

macro_rules! pair_controls {
    ($dollar:tt $($module:ident $control:ident $parameters:ident,)*) => {
        registry! {
            /// A congestion control and its parameters, `[transport.<name>]`.
            pub enum ControlParameters("congestion control of roce"): pub dyn ControlCapabilities in self {
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

        dispatch! { $dollar ControlConfig: $($control)* }

        impl ControlConfig {
            pub(crate) fn new(parameters: &ControlParameters, nic_rate: Rate) -> Self {
                match parameters {
                    $(ControlParameters::$control(it) => Self::$control($module::$control::config(it, nic_rate)),)*
                }
            }

            /// See [`PairControl::delayed_acks`].
            #[inline]
            pub(crate) fn delayed_acks(&self) -> Option<DelayedAcks> {
                match self {
                    $(Self::$control(constants) => $module::$control::delayed_acks(constants),)*
                }
            }

            /// See [`PairControl::counts_bytes`].
            pub(crate) fn counts_bytes(&self) -> bool {
                match self {
                    $(Self::$control(constants) => $module::$control::counts_bytes(constants),)*
                }
            }
        }

        impl Control {
            /// See [`PairControl::WINDOW`].
            #[inline]
            pub(crate) fn has_window(&self) -> bool {
                match self { $(Self::$control(_) => $module::$control::WINDOW,)* }
            }

            /// See [`PairControl::BURSTS`].
            #[inline]
            pub(crate) fn has_bursts(&self) -> bool {
                match self { $(Self::$control(_) => $module::$control::BURSTS,)* }
            }

            /// See [`PairControl::PER_PATH`].
            #[inline]
            pub(crate) fn is_per_path(&self) -> bool {
                match self { $(Self::$control(_) => $module::$control::PER_PATH,)* }
            }
        }
    };
}

pair_controls! { $
    dcqcn Dcqcn DcqcnParameters,
    swift Swift SwiftParameters,
    tcp_like TcpLike TcpLikeParameters,
    line_rate LineRate LineRateParameters,
}

impl Control {
    pub(crate) fn new(config: &ControlConfig, start: &Start) -> Self {
        made!(config, ControlConfig(constants) => Control(PairControl::new(constants, start)))
    }

    #[inline]
    pub(crate) fn window(&self, mtu: u64) -> u64 {
        of!(self, Control(pair) => PairControl::window(pair, mtu))
    }

    #[inline]
    pub(crate) fn rate(&mut self, config: &ControlConfig, now: Time, line_rate: Rate) -> Option<Rate> {
        both!(self, config: Control(pair, constants) => PairControl::rate(pair, constants, now, line_rate))
    }

    #[inline]
    pub(crate) fn min_gap(&self) -> Time {
        of!(self, Control(pair) => pair.min_gap())
    }

    pub(crate) fn on_notification(&mut self, config: &ControlConfig, now: Time) {
        both!(self, config: Control(pair, constants) => pair.on_notification(constants, now));
    }

    #[inline]
    pub(crate) fn on_reply(&mut self, config: &ControlConfig, reply: &PairReply) {
        both!(self, config: Control(pair, constants) => pair.on_reply(constants, reply));
    }

    pub(crate) fn on_bytes(&mut self, config: &ControlConfig, now: Time, bytes: u64) {
        both!(self, config: Control(pair, constants) => pair.on_bytes(constants, now, bytes));
    }

    pub(crate) fn restore(&mut self, config: &ControlConfig, now: Time) {
        both!(self, config: Control(pair, constants) => pair.restore(constants, now));
    }

    pub(crate) fn on_timeout(&mut self, config: &ControlConfig, now: Time) {
        both!(self, config: Control(pair, constants) => pair.on_timeout(constants, now));
    }

    #[inline]
    pub(crate) fn may_send(&self, config: &ControlConfig, mtu: u64, room: u64, left: u64) -> bool {
        both!(self, config: Control(pair, constants) => pair.may_send(constants, mtu, room, left))
    }

    #[inline]
    pub(crate) fn in_burst(&self) -> bool {
        of!(self, Control(pair) => pair.in_burst())
    }

    #[inline]
    pub(crate) fn on_sent(&mut self, config: &ControlConfig, room: u64, bytes: u64) {
        both!(self, config: Control(pair, constants) => pair.on_sent(constants, room, bytes));
    }
}
