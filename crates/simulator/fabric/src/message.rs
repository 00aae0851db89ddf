//! What partitions tell each other.

use crate::{ids::FlowId, packet::Packet};

/// A message; takes effect in another window than the one it is sent in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    /// A packet arrives; the canonical order of its arrival tells the link.
    Packet { time: u64, order: u32, packet: Packet },
    /// A trigger is activated.
    Activate { time: u64, trigger: u32 },
    /// A flow starts.
    Start { time: u64, flow: FlowId },
}

impl anabranch_engine::Message for Message {
    fn time(&self) -> u64 {
        let (Message::Packet { time, .. } | Message::Activate { time, .. } | Message::Start { time, .. }) = self;
        *time
    }
}
