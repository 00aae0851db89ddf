//! Whole chunks that hardware delivers and acknowledges by itself, hiding sequence numbers, marks and losses: queue pairs of
//! RDMA NICs. A scheme is asked once per chunk, and what it hears is how long a chunk took (Hopper §4.2).
//!
//! - [`ChunkPath`]: what carries chunks: a queue for each path, completions;
//! - [`ChunkDriver`]: streams of messages cut into chunks, over the queues that a scheme chooses;
//! - [`memory`]: a virtual clock and paths with rate, delay and faults, the test bench of the driver.

mod driver;
pub mod memory;
mod queues;
mod settings;
mod stream;

pub use driver::{ChunkCounters, ChunkDriver, ChunkEvent, Message};
pub use settings::{ChunkSettings, chunk_scheme};

use crate::{Label, PeerId, WireError};
use anabranch_units::Time;

/// A queue pair, as a path for chunks numbers them: from 0, without gaps.
pub type QueueId = u32;

/// Bytes that go from a place of the sender's memory to a place of the receiver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// What its completion is called; no two that are under way share a number.
    pub number: u64,
    /// Its place in the sender's memory, in bytes.
    pub from: u64,
    /// Its place in the receiver's memory, in bytes.
    pub to: u64,
    /// How many bytes.
    pub bytes: u32,
    /// What the receiver is told when it has arrived ([`notice`]); `None`: nothing, as of a probe.
    pub notice: Option<u32>,
}

/// What became of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The receiver has it.
    Done,
    /// The hardware has given up, or the queue had failed before. The receiver may have it or not. The queue takes nothing
    /// more until it is relabelled.
    Failed,
}

/// A chunk that is no longer under way. Chunks of one queue complete in the order in which they were posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its queue.
    pub queue: QueueId,
    /// [`Chunk::number`].
    pub chunk: u64,
    /// When that was known.
    pub at: Time,
    /// What became of it.
    pub status: Status,
}

/// A queue that takes no more until something on it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Whole chunks that hardware delivers: RC queue pairs. Schemes work at chunk granularity, a "packet" is a chunk.
pub trait ChunkPath {
    /// The time since it was opened; it never goes back.
    fn now(&self) -> Time;

    /// Opens a queue to a peer, whose packets carry this label.
    ///
    /// # Errors
    /// Where the peer does not answer or nothing more can be opened.
    fn queue(&mut self, peer: PeerId, label: Label) -> Result<QueueId, WireError>;

    /// Posts a chunk. It never blocks.
    ///
    /// # Errors
    /// [`Full`]: the chunk was not taken.
    fn post(&mut self, queue: QueueId, chunk: Chunk) -> Result<(), Full>;

    /// Hands over what has completed; returns how many.
    ///
    /// # Errors
    /// Where nothing can ever complete again.
    fn completions(&mut self, take: &mut dyn FnMut(Completion)) -> Result<usize, WireError>;

    /// Gives a queue another label, or the same to one that has failed, which brings it back to life. Returns how long it stood.
    ///
    /// # Errors
    /// Where something on it is outstanding, or the hardware or the peer refuses.
    fn relabel(&mut self, queue: QueueId, label: Label) -> Result<Time, WireError>;

    /// Waits until something has completed, `until` at the latest.
    ///
    /// # Errors
    /// Where nothing can ever complete again.
    fn wait(&mut self, until: Time) -> Result<(), WireError>;
}

/// Bits of a notice that number the chunks of a message.
const CHUNK_BITS: u32 = 20;

/// Chunks that a message may have.
pub const MOST_CHUNKS: u64 = 1 << CHUNK_BITS;

/// What a receiver is told with a chunk (32 bits of immediate data): the lower 12 bits of its message's number and its place
/// among the message's chunks, so that a chunk which was sent twice counts once.
pub fn notice(message: u64, chunk: u64) -> u32 {
    ((message << CHUNK_BITS) as u32) | (chunk % MOST_CHUNKS) as u32
}

/// The lower 12 bits of the message's number, and the chunk.
pub fn read_notice(notice: u32) -> (u32, u32) {
    (notice >> CHUNK_BITS, notice % MOST_CHUNKS as u32)
}

/// Where chunk `index` of `count` begins in a message of `bytes`, and how long it is: all of nearly one size, since the time
/// of a short one would say less about its path.
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
    fn a_notice_names_message_and_chunk() {
        assert_eq!(notice(1, 2), 0x0010_0002);
        assert_eq!(read_notice(notice(4097, MOST_CHUNKS - 1)), (1, 0xf_ffff));
    }
}
