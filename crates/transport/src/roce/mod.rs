//! RoCEv2: a queue pair per flow, paced on its own, an answer per packet, go-back-N or IRN (specification 7.1, 7.3;
//! specification 17.3).
//!
//! Sequence numbers count packets (PSN), all of `mtu` payload bytes but the last. The rules of the literature that speak
//! of bytes are applied to the bytes below a PSN.

mod blocks;
mod config;
mod dcqcn;
mod parameters;
mod receiver;
mod sender;
mod swift;
mod tcp_like;

pub use config::RoceConfig;
pub use dcqcn::{Dcqcn, DcqcnConfig, DcqcnParameters};
pub use parameters::{IrnRule, RateOnPathChange, Recovery, RoceControl, RoceParameters, RoceTransport};
pub use receiver::{RoceReceived, RoceReceiver, RoceReply, final_reply};
pub use sender::RoceSender;
pub use swift::SwiftParameters;
pub use tcp_like::TcpLikeParameters;
