//! RoCEv2 (specification 7.1, 7.3; specification 17.3). Sequence numbers count packets (PSN), all of `mtu` payload
//! bytes but the last. Published rules in bytes apply to the bytes below a PSN.

mod blocks;
mod config;
pub mod control;
mod parameters;
mod receiver;
mod sender;

pub use config::RoceConfig;
pub use control::{Dcqcn, DcqcnConfig, DcqcnParameters, SwiftParameters, TcpLikeParameters};
pub use parameters::{EarlyAck, RateOnPathChange, Recovery, RoceParameters, RoceTransport};
pub use receiver::RoceReceiver;
pub use sender::RoceSender;

use crate::{Network, Protocol};
use anabranch_settings::About;

pub(super) const ABOUT: About = About::brief(
    "roce",
    "RoCEv2: a queue pair per flow with its own pacing, an acknowledgement per packet, go-back-N or IRN, DCQCN.",
);

impl Protocol for RoceTransport {
    type Config = RoceConfig;
    type Sender = RoceSender;
    type Receiver = RoceReceiver;
    fn resolve(&self, network: &Network) -> RoceConfig {
        RoceConfig::new(self, network)
    }
}
