//! Congestion control of the window-based transport.
//!
//! All bytes are bytes on the wire (payload and header), "MTU" is a full packet of them. Window arithmetic is in
//! `f64`, with `+ - * /` and comparisons only, which every machine rounds alike. The rules are stated for one
//! packet per acknowledgement; where one acknowledgement covers more, each rule is applied to the bytes it newly
//! acknowledges, all of which share the mark and the delay of the packet that triggered it (ours).
//!
//! To add one, write a file with a type that implements [`WindowRule`], and name it in the list below. What scenarios,
//! `explain`, `list`, checks and messages say of it follows from that line.

mod adaptive;
mod dctcp;
mod fixed;
mod nscc;
mod smartt;

pub use crate::control::{About, Section};
pub use dctcp::{Dctcp, DctcpConfig, DctcpParameters};
pub use fixed::{Fixed, FixedParameters};
pub use nscc::{Nscc, NsccConfig, NsccParameters};
pub use smartt::{Smartt, SmarttConfig, SmarttParameters};

use crate::{
    Network,
    control::{controls, in_table},
    uet::UetTransport,
};
use anabranch_settings::{Parameters, Raw, SetError, Setting, Wrong};
use anabranch_units::Time;
use std::fmt::Debug;

/// A congestion control of the window-based transport: the state of one flow, and how its window moves.
pub trait WindowRule: Clone + Debug {
    /// What the registry says of it.
    const ABOUT: About;
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
    /// The constants for packets and windows of these sizes on this network.
    fn config(parameters: &Self::Parameters, sizes: Sizes, network: &Network) -> Self::Config;
    /// For a flow whose longest path has the base round trip `base_rtt`.
    fn new(config: &Self::Config, base_rtt: Time) -> Self;
    /// See [`CongestionControl::on_ack`].
    fn on_ack(&mut self, config: &Self::Config, ack: &CcAck);
    /// See [`CongestionControl::on_progress`].
    fn on_progress(&mut self, _bytes: u64) {}
    /// See [`CongestionControl::on_nack`].
    fn on_nack(&mut self, config: &Self::Config, loss: &CcLoss);
    /// See [`CongestionControl::on_timeout`].
    fn on_timeout(&mut self, config: &Self::Config, loss: &CcLoss);
    /// The window in bytes on the wire.
    fn cwnd(&self) -> f64;
}

macro_rules! window_rules {
    ($($module:ident $rule:ident,)*) => {
        controls! {
            WindowRule, CONTROLS, CongestionControlKind, CcParameters, CcConfig, CongestionControl: $($module $rule,)*
        }

        impl CcConfig {
            /// The constants for packets of `mtu + header` bytes and a window of at most `window`.
            pub(crate) fn new(transport: &UetTransport, network: &Network, mtu: u64, header: u64, window: u64) -> Self {
                let sizes = Sizes { mtu: (mtu + header) as f64, payload: mtu as f64, max: window as f64, trimmed: header };
                match transport.uet.congestion_control {
                    $(CongestionControlKind::$rule => {
                        CcConfig::$rule(<$module::$rule as WindowRule>::config(&transport.cc.$module, sizes, network))
                    })*
                }
            }
        }

        /// A flow is never shown another run's configuration, so that its rule and the constants are of one kind.
        impl CongestionControl {
            /// For a flow whose longest path has the base round trip `base_rtt`.
            pub fn new(config: &CcConfig, base_rtt: Time) -> Self {
                match config {
                    $(CcConfig::$rule(constants) => Self::$rule(WindowRule::new(constants, base_rtt)),)*
                }
            }

            /// An ACK that newly acknowledges something.
            #[inline]
            pub fn on_ack(&mut self, config: &CcConfig, ack: &CcAck) {
                match (self, config) {
                    $((Self::$rule(rule), CcConfig::$rule(constants)) => rule.on_ack(constants, ack),)*
                    _ => {}
                }
            }

            /// Bytes acknowledged in passing, by a NACK's cumulative PSN: they count as achieved, but with neither mark
            /// nor delay known they do not move the window (ours).
            #[inline]
            pub fn on_progress(&mut self, bytes: u64) {
                match self {
                    $(Self::$rule(rule) => rule.on_progress(bytes),)*
                }
            }

            /// A packet was trimmed on its way.
            pub fn on_nack(&mut self, config: &CcConfig, loss: &CcLoss) {
                match (self, config) {
                    $((Self::$rule(rule), CcConfig::$rule(constants)) => rule.on_nack(constants, loss),)*
                    _ => {}
                }
            }

            /// A packet was not acknowledged in time.
            pub fn on_timeout(&mut self, config: &CcConfig, loss: &CcLoss) {
                match (self, config) {
                    $((Self::$rule(rule), CcConfig::$rule(constants)) => rule.on_timeout(constants, loss),)*
                    _ => {}
                }
            }

            /// The window in bytes on the wire, rounded down.
            #[inline]
            pub fn cwnd(&self) -> u64 {
                match self {
                    $(Self::$rule(rule) => rule.cwnd() as u64,)*
                }
            }
        }
    };
}

window_rules! {
    dctcp Dctcp,
    smartt Smartt,
    nscc Nscc,
    fixed Fixed,
}

/// Bounds of the window and the sizes the rules count in, all in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// A full packet on the wire, also the least window.
    pub mtu: f64,
    /// Payload of a full packet.
    pub payload: f64,
    /// Initial and largest window.
    pub max: f64,
    /// Bytes of a trimmed packet that still arrive: its header.
    pub trimmed: u64,
}

/// What an acknowledgement tells the congestion control.
#[derive(Clone, Copy, Debug)]
pub struct CcAck {
    /// The current time.
    pub now: Time,
    /// Bytes newly acknowledged, on the wire; never zero.
    pub bytes: u64,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// The mark.
    pub ecn: bool,
    /// Round trip of the packet that triggered it; `None` where the packet was sent more than once.
    pub rtt: Option<Time>,
    /// Bytes still in flight.
    pub in_flight: u64,
    /// Base round trip of that packet's own path; `None` where the sender does not know its path.
    pub path_rtt: Option<Time>,
}

/// What the loss of a packet (a NACK or a timeout) tells the congestion control.
#[derive(Clone, Copy, Debug)]
pub struct CcLoss {
    /// The current time.
    pub now: Time,
    /// Bytes lost, on the wire.
    pub bytes: u64,
    /// Bytes still in flight.
    pub in_flight: u64,
}

/// `factor` times `time`, rounded down to a picosecond.
fn scaled(time: Time, factor: f64) -> Time {
    Time::from_ps((time.ps() as f64 * factor) as u64)
}
