//! Messages between partitions.

use anabranch_engine::Event;

/// An event in a cell of another partition, in a later window than the one it is sent in. With the arrival of a packet the
/// packet itself passes to that partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) event: Event,
    pub(crate) cell: u32,
}

// Small: a message is written by one processor and read by another.
const _: () = assert!(size_of::<Message>() == 24);

impl anabranch_engine::Message for Message {
    fn time(&self) -> u64 {
        self.event.time
    }
}
