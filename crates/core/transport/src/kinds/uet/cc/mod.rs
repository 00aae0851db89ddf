//! Congestion control of the window-based transport.
//!
//! All bytes are bytes on the wire (payload and header), "MTU" is a full packet of them. Window arithmetic is in `f64`,
//! with `+ - * /` and comparisons only, which every machine rounds alike. An acknowledgement of several packets applies
//! each rule to all bytes that it newly acknowledges, which share the mark and the delay of its packet (ours).
//!
//! To add one, write a file with `pub(super) const ABOUT: About`, parameters, and a type that implements
//! [`WindowRule`]; name them in the list below.

mod adaptive;
mod dctcp;
mod external;
mod fixed;
mod nscc;
mod rccc;
mod rule;
mod smartt;

pub use crate::control::{ControlCapabilities, Section};
pub use dctcp::{Dctcp, DctcpConfig, DctcpParameters};
pub use external::{ExternalWindowRule, window_rule};
pub use fixed::{Fixed, FixedParameters};
pub use nscc::{Nscc, NsccBaseRtt, NsccConfig, NsccParameters, QuickAdaptDelay};
pub use rccc::{Rccc, RcccParameters};
pub(super) use rule::scaled;
pub use rule::{CcAck, CcLoss, Sizes, WindowRule};
pub use smartt::{Smartt, SmarttConfig, SmarttParameters};

use crate::{
    Network,
    dispatch::{calls, dispatch},
};
use anabranch_settings::registry;
use anabranch_units::Time;
use external::{BoxedRule, RuleFunctions};

macro_rules! window_rules {
    ($dollar:tt $($module:ident $rule:ident $parameters:ident,)*) => {
        registry! {
            /// A congestion control and its parameters, `[transport.<name>]`.
            pub enum CcParameters("congestion control of uet"): pub dyn ControlCapabilities in self, external RuleFunctions {
                $($module $rule $parameters,)*
            }
        }

        /// The congestion control of a run and its constants.
        #[derive(Clone, Debug)]
        pub enum CcConfig {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $rule(<$module::$rule as WindowRule>::Config),
            )*
            /// Of another crate.
            External(<BoxedRule as WindowRule>::Config),
        }

        /// The congestion control of one flow.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum CongestionControl {
            $(
                #[doc = concat!("See the module `", stringify!($module), "`.")]
                $rule($module::$rule),
            )*
            /// Of another crate.
            External(BoxedRule),
        }

        dispatch! { $dollar CcConfig: $($rule)* External }

        impl CcConfig {
            pub(crate) fn new(parameters: &CcParameters, sizes: Sizes, network: &Network) -> Self {
                match parameters {
                    $(CcParameters::$rule(it) => CcConfig::$rule($module::$rule::config(it, sizes, network)),)*
                    CcParameters::External(it) => CcConfig::External(BoxedRule::config(it, sizes, network)),
                }
            }
        }
    };
}

window_rules! { $
    dctcp Dctcp DctcpParameters,
    smartt Smartt SmarttParameters,
    nscc Nscc NsccParameters,
    fixed Fixed FixedParameters,
    rccc Rccc RcccParameters,
}

calls! { pub CongestionControl, WindowRule, CcConfig, self:
    [mut] fn on_ack(ack: &CcAck);
    [mut] fn on_nack(loss: &CcLoss);
    [mut] fn on_timeout(loss: &CcLoss);
}

impl CongestionControl {
    /// Creates the state of a flow whose longest path has the base round trip `base_rtt`.
    pub fn new(config: &CcConfig, base_rtt: Time) -> Self {
        made!(config, CcConfig(constants) => CongestionControl(WindowRule::new(constants, base_rtt)))
    }

    /// See [`WindowRule::on_progress`].
    #[inline]
    pub fn on_progress(&mut self, bytes: u64) {
        of!(self, CongestionControl(rule) => rule.on_progress(bytes));
    }

    /// Returns the window in bytes on the wire, rounded down.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        of!(self, CongestionControl(rule) => rule.cwnd() as u64)
    }
}
