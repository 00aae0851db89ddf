//! Congestion control of RoCEv2. To add one, write a file with `pub(super) const ABOUT: About`, parameters, and a type
//! that implements [`PairControl`]; name them in the list below.

mod dcqcn;
mod external;
mod line_rate;
mod pair;
mod swift;
mod tcp_like;

pub use crate::control::{ControlCapabilities, Section};
pub use dcqcn::{Dcqcn, DcqcnConfig, DcqcnParameters};
pub use external::{ExternalPairControl, pair_control};
pub use line_rate::LineRateParameters;
pub use pair::{DelayedAcks, PairControl, PairReply, Start};
pub use swift::SwiftParameters;
pub use tcp_like::TcpLikeParameters;

use crate::dispatch::{calls, dispatch};
use anabranch_settings::registry;
use anabranch_units::{Rate, Time};
use external::{BoxedControl, ControlFunctions};

macro_rules! pair_controls {
    ($dollar:tt $($module:ident $control:ident $parameters:ident,)*) => {
        registry! {
            /// A congestion control and its parameters, `[transport.<name>]`.
            pub enum ControlParameters("congestion control of roce"): pub dyn ControlCapabilities in self, external ControlFunctions {
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
            /// Of another crate.
            External(<BoxedControl as PairControl>::Config),
        }

        /// The congestion control of one queue pair.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum Control {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $control($module::$control),
            )*
            /// Of another crate.
            External(BoxedControl),
        }

        dispatch! { $dollar ControlConfig: $($control)* External }

        impl ControlConfig {
            pub(crate) fn new(parameters: &ControlParameters, nic_rate: Rate) -> Self {
                match parameters {
                    $(ControlParameters::$control(it) => Self::$control($module::$control::config(it, nic_rate)),)*
                    ControlParameters::External(it) => Self::External(BoxedControl::config(it, nic_rate)),
                }
            }

            /// See [`PairControl::delayed_acks`].
            #[inline]
            pub(crate) fn delayed_acks(&self) -> Option<DelayedAcks> {
                match self {
                    $(Self::$control(constants) => $module::$control::delayed_acks(constants),)*
                    Self::External(constants) => constants.delayed_acks(),
                }
            }

            /// See [`PairControl::counts_bytes`].
            pub(crate) fn counts_bytes(&self) -> bool {
                match self {
                    $(Self::$control(constants) => $module::$control::counts_bytes(constants),)*
                    Self::External(constants) => constants.counts_bytes(),
                }
            }
        }

        impl Control {
            /// See [`PairControl::WINDOW`].
            #[inline]
            pub(crate) fn has_window(&self) -> bool {
                match self { $(Self::$control(_) => $module::$control::WINDOW,)* Self::External(it) => it.properties()[0] }
            }

            /// See [`PairControl::BURSTS`].
            #[inline]
            pub(crate) fn has_bursts(&self) -> bool {
                match self { $(Self::$control(_) => $module::$control::BURSTS,)* Self::External(it) => it.properties()[1] }
            }

            /// See [`PairControl::PER_PATH`].
            #[inline]
            pub(crate) fn is_per_path(&self) -> bool {
                match self { $(Self::$control(_) => $module::$control::PER_PATH,)* Self::External(it) => it.properties()[2] }
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

calls! { pub(crate) Control, PairControl, ControlConfig, self:
    [mut] fn rate(now: Time, line_rate: Rate) -> Option<Rate>;
    [mut] fn on_notification(now: Time);
    [mut] fn on_reply(reply: &PairReply);
    [mut] fn on_bytes(now: Time, bytes: u64);
    [mut] fn restore(now: Time);
    [mut] fn on_timeout(now: Time);
    fn may_send(mtu: u64, room: u64, left: u64) -> bool;
    [mut] fn on_sent(room: u64, bytes: u64);
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
    pub(crate) fn min_gap(&self) -> Time {
        of!(self, Control(pair) => pair.min_gap())
    }

    #[inline]
    pub(crate) fn in_burst(&self) -> bool {
        of!(self, Control(pair) => pair.in_burst())
    }
}
