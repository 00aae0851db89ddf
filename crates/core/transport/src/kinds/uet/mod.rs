//! The Ultra-Ethernet-like transport. Sequence numbers count packets (PSN), from 0, one per `mtu` of payload. Window
//! and bytes in flight are counted in bytes on the wire (payload and header).

pub mod cc;
mod config;
mod limits;
mod parameters;
mod receiver;
mod sender;

pub use config::UetConfig;
pub use parameters::{
    AckEcn, AckEntropy, AckOnFilledHole, AckOnMark, LastHopTrims, RtoRule, UetParameters, UetTransport,
};
pub use receiver::UetReceiver;
pub use sender::UetSender;

use crate::{Network, Protocol};
use anabranch_settings::About;

/// Packets for which the rings of a flow have memory at first, and those of a stream.
const FIRST_SPAN: u64 = 256;
const FIRST_OF_STREAM: u64 = 64;

pub(super) const ABOUT: About = About::brief(
    "uet",
    "Ultra-Ethernet-like: window-based, coalesced acknowledgements with a selective bitmap, selective retransmission, NACKs for \
     trimmed packets.",
);

impl Protocol for UetTransport {
    type Config = UetConfig;
    type Sender = UetSender;
    type Receiver = UetReceiver;
    fn resolve(&self, network: &Network) -> UetConfig {
        UetConfig::new(self, network)
    }
}
