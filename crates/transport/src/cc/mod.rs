//! Congestion control of the window-based transport.
//!
//! All bytes are bytes on the wire (payload and header), "MTU" is a full packet of them. Window arithmetic is in
//! `f64`, with `+ - * /` and comparisons only, which every machine rounds alike. The rules are stated for one
//! packet per acknowledgement; where one acknowledgement covers more, each rule is applied to the bytes it newly
//! acknowledges, all of which share the mark and the delay of the packet that triggered it (ours).

mod adaptive;
mod dctcp;
mod nscc;
mod smartt;

pub use dctcp::{Dctcp, DctcpConfig, DctcpParameters};
pub use nscc::{Nscc, NsccConfig, NsccParameters};
pub use smartt::{Smartt, SmarttConfig, SmarttParameters};

use crate::uet::{CongestionControlKind, Network, UetTransport};
use anabranch_units::Time;

/// The congestion control of a run and its constants.
#[derive(Clone, Debug)]
pub enum CcConfig {
    /// A fixed window, in bytes.
    Fixed(u64),
    /// [`Dctcp`].
    Dctcp(DctcpConfig),
    /// [`Smartt`].
    Smartt(SmarttConfig),
    /// [`Nscc`].
    Nscc(NsccConfig),
}

/// Bounds of the window and the sizes the rules count in, all in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// A full packet on the wire, also the least window.
    pub(crate) mtu: f64,
    /// Payload of a full packet.
    pub(crate) payload: f64,
    /// Initial and largest window.
    pub(crate) max: f64,
    /// Bytes of a trimmed packet that still arrive: its header.
    pub(crate) trimmed: u64,
}

impl CcConfig {
    /// The constants for packets of `mtu + header` bytes and a window of at most `window`.
    pub(crate) fn new(transport: &UetTransport, network: &Network, mtu: u64, header: u64, window: u64) -> Self {
        let sizes = Sizes { mtu: (mtu + header) as f64, payload: mtu as f64, max: window as f64, trimmed: header };
        match transport.uet.congestion_control {
            CongestionControlKind::None => CcConfig::Fixed(window),
            CongestionControlKind::Dctcp => CcConfig::Dctcp(DctcpConfig::new(&transport.dctcp, sizes)),
            CongestionControlKind::Smartt => CcConfig::Smartt(SmarttConfig::new(&transport.smartt, sizes, network)),
            CongestionControlKind::Nscc => CcConfig::Nscc(NsccConfig::new(&transport.nscc, sizes, network)),
        }
    }
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

/// The congestion control of one flow.
#[derive(Clone, Debug)]
pub enum CongestionControl {
    /// A fixed window.
    Fixed,
    /// [`Dctcp`].
    Dctcp(Dctcp),
    /// [`Smartt`].
    Smartt(Smartt),
    /// [`Nscc`].
    Nscc(Nscc),
}

macro_rules! dispatch {
    ($self:ident, $config:ident, $state:ident, $constants:ident => $call:expr) => {
        match ($self, $config) {
            (CongestionControl::Dctcp($state), CcConfig::Dctcp($constants)) => $call,
            (CongestionControl::Smartt($state), CcConfig::Smartt($constants)) => $call,
            (CongestionControl::Nscc($state), CcConfig::Nscc($constants)) => $call,
            // A fixed window; a flow is never shown another run's configuration.
            _ => {}
        }
    };
}

impl CongestionControl {
    /// For a flow whose longest path has the base round trip `base_rtt`.
    pub fn new(config: &CcConfig, base_rtt: Time) -> Self {
        match config {
            CcConfig::Fixed(_) => CongestionControl::Fixed,
            CcConfig::Dctcp(constants) => CongestionControl::Dctcp(Dctcp::new(constants, base_rtt)),
            CcConfig::Smartt(constants) => CongestionControl::Smartt(Smartt::new(constants, base_rtt)),
            CcConfig::Nscc(constants) => CongestionControl::Nscc(Nscc::new(constants, base_rtt)),
        }
    }

    /// An ACK that newly acknowledges something.
    #[inline]
    pub fn on_ack(&mut self, config: &CcConfig, ack: &CcAck) {
        dispatch!(self, config, state, constants => state.on_ack(constants, ack));
    }

    /// Bytes acknowledged in passing, by a NACK's cumulative PSN: they count as achieved, but with neither mark
    /// nor delay known they do not move the window (ours).
    #[inline]
    pub fn on_progress(&mut self, bytes: u64) {
        match self {
            CongestionControl::Fixed => {}
            CongestionControl::Dctcp(state) => state.on_progress(bytes),
            CongestionControl::Smartt(state) => state.on_progress(bytes),
            CongestionControl::Nscc(state) => state.on_progress(bytes),
        }
    }

    /// A packet was trimmed on its way.
    pub fn on_nack(&mut self, config: &CcConfig, loss: &CcLoss) {
        dispatch!(self, config, state, constants => state.on_nack(constants, loss));
    }

    /// A packet was not acknowledged in time.
    pub fn on_timeout(&mut self, config: &CcConfig, loss: &CcLoss) {
        dispatch!(self, config, state, constants => state.on_timeout(constants, loss));
    }

    /// The window in bytes on the wire, rounded down.
    #[inline]
    pub fn cwnd(&self, config: &CcConfig) -> u64 {
        match (self, config) {
            (CongestionControl::Dctcp(state), _) => state.cwnd() as u64,
            (CongestionControl::Smartt(state), _) => state.cwnd() as u64,
            (CongestionControl::Nscc(state), _) => state.cwnd() as u64,
            (CongestionControl::Fixed, CcConfig::Fixed(window)) => *window,
            (CongestionControl::Fixed, _) => 0,
        }
    }
}

/// `factor` times `time`, rounded down to a picosecond.
fn scaled(time: Time, factor: f64) -> Time {
    Time::from_ps((time.ps() as f64 * factor) as u64)
}
