//! Whole chunks that hardware delivers and acknowledges by itself, hiding sequence numbers, marks and losses: queue
//! pairs of RDMA NICs.
//!
//! A scheme chooses once per chunk, and its feedback is the chunk's round-trip time (Hopper §4.2).

mod driver;
mod queues;
mod settings;
mod stream;

pub use driver::{ChunkCounters, ChunkDriver, ChunkEvent, Message};
pub use settings::{ChunkSettings, chunk_scheme};

use crate::{Label, WireError};
use anabranch_units::Time;

/// Number of a queue pair within its path for chunks: from 0, without gaps.
pub type QueueId = u32;

/// Bytes to copy from an offset of the sender's memory to an offset of the receiver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Identifier in its completion, unique among the chunks under way.
    pub number: u64,
    /// Offset in the sender's memory, in bytes.
    pub from: u64,
    /// Offset in the receiver's memory, in bytes.
    pub to: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Immediate data that notifies the receiver ([`notice`]); `None`: no notification, as for a probe.
    pub notice: Option<u32>,
}

/// Chunk that is no longer under way. Chunks of one queue complete in the order of posting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub queue: QueueId,
    /// [`Chunk::number`].
    pub chunk: u64,
    /// Time at which the sender learned of the outcome.
    pub at: Time,
    /// The receiver has it. Otherwise the hardware stopped retrying, or the queue had failed before: the chunk may have arrived,
    /// and the queue must be relabelled.
    pub is_done: bool,
}

/// Error of a queue that accepts no chunk until another one on it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Delivery of whole chunks by hardware: RC queue pairs. Schemes work at chunk granularity: a "packet" is a chunk.
pub trait ChunkPath {
    /// Returns the time since the path was opened. It never decreases.
    fn now(&self) -> Time;

    /// Opens a queue to the peer. Its packets carry this label.
    /// Fails if the peer does not respond or no more queues can be opened.
    fn queue(&mut self, label: Label) -> Result<QueueId, WireError>;

    /// Posts a chunk without blocking.
    /// Errors: [`Full`]: the chunk was not accepted.
    fn post(&mut self, queue: QueueId, chunk: Chunk) -> Result<(), Full>;

    /// Passes completions to `take`.
    /// Fails if nothing can ever complete again.
    fn completions(&mut self, take: &mut dyn FnMut(Completion)) -> Result<(), WireError>;

    /// Assigns a label to a queue without outstanding chunks; the same label recovers a failed one. Returns the time for which the
    /// queue was down.
    /// Fails if the hardware or the peer refuses.
    fn relabel(&mut self, queue: QueueId, label: Label) -> Result<Time, WireError>;

    /// Waits until a chunk completes or until `until`.
    /// Fails if nothing can ever complete again.
    fn wait(&mut self, until: Time) -> Result<(), WireError>;
}

/// Bits of a notice that number the chunks of a message.
const CHUNK_BITS: u32 = 20;

/// Maximum number of chunks of a message.
pub const MAX_CHUNKS: u64 = 1 << CHUNK_BITS;

/// Returns the notice of a chunk (32 bits of immediate data): the lower 12 bits of its message's number, and its index.
/// A receiver thus counts a duplicate once.
pub fn notice(message: u64, chunk: u64) -> u32 {
    ((message << CHUNK_BITS) as u32) | (chunk % MAX_CHUNKS) as u32
}

/// Splits a notice into the lower 12 bits of the message's number and the chunk's index.
pub fn read_notice(notice: u32) -> (u32, u32) {
    (notice >> CHUNK_BITS, notice % MAX_CHUNKS as u32)
}

/// Returns offset and length of chunk `index` of `count`. All have nearly one size: the time of a short one would
/// measure its path less accurately.
pub fn piece(bytes: u64, count: u64, index: u64) -> (u64, u64) {
    let (size, longer) = (bytes / count.max(1), bytes % count.max(1));
    (index * size + index.min(longer), size + u64::from(index < longer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_message() {
        // 10 bytes in 4 pieces: 3, 3, 2, 2.
        assert_eq!([0, 1, 2, 3].map(|index| piece(10, 4, index)), [(0, 3), (3, 3), (6, 2), (8, 2)]);
        assert_eq!(piece(7, 1, 0), (0, 7));
        assert_eq!(piece(0, 1, 0), (0, 0));
    }

    #[test]
    fn notice_encodes_message_and_chunk() {
        assert_eq!(notice(1, 2), 0x0010_0002);
        assert_eq!(read_notice(notice(4097, MAX_CHUNKS - 1)), (1, 0xf_ffff));
    }
}
