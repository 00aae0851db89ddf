//! Messages between partitions.

use crate::{event::Event, ids::HostId, measure::Waits, packet::Packet};

/// A message takes effect in a later window than the one it is sent in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    /// A packet arrives; the canonical order of its arrival identifies the link.
    Packet { time: u64, order: u32, packet: Packet, waits: Waits },
    /// A trigger is activated, or a flow starts.
    Event { time: u64, host: HostId, event: Event },
}

// Small: a message is written by one processor and read by another.
const _: () = assert!(size_of::<Message>() == 104);

impl anabranch_engine::Message for Message {
    fn time(&self) -> u64 {
        let (Message::Packet { time, .. } | Message::Event { time, .. }) = self;
        *time
    }
}
