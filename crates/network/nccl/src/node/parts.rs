//! Parts of a node: peers, listeners, senders and receivers, requests.

use super::windows::Windows;
use crate::{
    abi::{Code, MAX_RECEIVES},
    ids::Id,
    message::{PostedBuffer, Window},
};
use anabranch_endpoint::{Bytes, Delivered, PathCounts};
use anabranch_units::Time;
use anabranch_wire::PeerId;
use std::{
    collections::VecDeque,
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

#[derive(Clone, Debug)]
pub struct Failure {
    /// Result code for NCCL.
    pub code: Code,
    /// Message for the user.
    pub message: String,
    /// All calls that fail for the same reason share it.
    is_reported: Arc<AtomicBool>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), is_reported: Arc::default() }
    }

    /// Returns the message for the log, unless this failure was reported before or has none.
    pub fn report(&self) -> Option<&str> {
        let is_new = !self.message.is_empty() && !self.is_reported.swap(true, Ordering::Relaxed);
        is_new.then_some(&self.message)
    }

    /// Creates a failure for a call of NCCL's that is not allowed.
    pub fn internal(message: impl Into<String>) -> Self {
        Failure::new(Code::Internal, message)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct StickyError(Option<Failure>);

impl StickyError {
    pub(super) fn record(&mut self, failure: &Failure) {
        self.0.get_or_insert_with(|| failure.clone());
    }

    pub(super) fn is_clear(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        self.0.clone().map_or(Ok(()), Err)
    }
}

#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) unsent: VecDeque<Vec<u8>>,
    /// Time of the last message on stream 0.
    pub(super) last_sent_at: Time,
    /// Streams to it, from stream 1 on.
    pub(super) streams: Vec<Channel>,
    /// Bytes of pieces in flight.
    pub(super) flying: u64,
    pub(super) connections: u32,
    pub(super) refused: u32,
    /// This rank has called it.
    pub(super) is_called: bool,
    /// Its last message or chunk.
    pub(super) heard_at: Time,
    pub(super) windows: Windows,
}

/// Connections use a stream to a peer one after the other.
#[derive(Debug, Default)]
pub(super) struct Channel {
    pub(super) used: bool,
    /// Messages in flight: number, request, bytes.
    pub(super) flying: VecDeque<(u64, Id, u64)>,
}

/// State of a sender for the statistics page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    pub connection: u32,
    /// Address at which the peer listened.
    pub at: SocketAddr,
    /// It has not failed.
    pub is_open: bool,
    /// Full packets do not pass to its peer: they are sent in fragments.
    pub is_fragmented: bool,
    /// Congestion window in bytes, where the algorithm has one.
    pub window: Option<u64>,
    /// Counters of each path, of this connection and of earlier ones on its stream; empty: nothing has been sent.
    pub paths: Vec<PathCounts>,
}

#[derive(Debug)]
pub(super) struct Listener {
    pub(super) key: u64,
    pub(super) class: u8,
    pub(super) waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) peer: PeerId,
    pub(super) connection: u32,
    pub(super) error: StickyError,
}

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) peer: PeerId,
    pub(super) at: SocketAddr,
    pub(super) connection: u32,
    pub(super) key: u64,
    pub(super) class: u8,
    pub(super) sender: Option<Id>,
    pub(super) error: StickyError,
    /// The peer counts it among its connections.
    pub(super) is_attached: bool,
}

#[derive(Debug)]
pub(super) struct Sender {
    pub(super) peer: PeerId,
    pub(super) at: SocketAddr,
    pub(super) connection: u32,
    pub(super) class: u8,
    /// Index among the peer's streams.
    pub(super) channel: usize,
    pub(super) grants: VecDeque<Grant>,
    /// Number of the next grant.
    pub(super) next: u32,
    /// Requests with pieces to send, in order.
    pub(super) queue: VecDeque<Id>,
    /// Requests that have not been reported as done.
    pub(super) open: Vec<Id>,
    pub(super) flying: u64,
    /// Counters of the message last reported as done.
    pub(super) counters: DeliveryCounters,
    pub(super) error: StickyError,
    /// The peer counts it among its connections.
    pub(super) is_attached: bool,
}

/// Buffers that a receiver has posted; `None` for those in use.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) number: u32,
    pub(super) entries: Vec<Option<PostedBuffer>>,
}

#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) peer: PeerId,
    pub(super) connection: u32,
    /// Receives that are not complete; the first has the number `completed`. Those before `granted` have been granted.
    pub(super) waiting: VecDeque<Id>,
    pub(super) completed: u32,
    pub(super) granted: u32,
    /// Requests that have not been reported as done.
    pub(super) open: Vec<Id>,
    pub(super) error: StickyError,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Ours {
    Attempt(Id),
    Sender(Id),
}

/// Memory that messages are read from and written to.
pub trait Memory {
    /// Returns `bytes` bytes from offset `from` on, lent or copied. The node drops all references to them before it
    /// reports their request as done, or closes their sender.
    fn lend(&self, from: u64, bytes: usize) -> Bytes;
    /// Returns the same bytes where they are.
    fn lend_in_place(&self, from: u64, bytes: usize) -> Bytes {
        self.lend(from, bytes)
    }
    /// Returns its address, by which it was registered, if it was.
    fn address(&self) -> u64 {
        0
    }
    /// Copies `bytes` to offset `to`; never more than were granted.
    fn write(&mut self, to: u64, bytes: &[u8]);
}

#[derive(Debug)]
pub struct Buffer<M> {
    pub memory: M,
    /// Bytes of the buffer.
    pub size: u64,
    /// Tag of the message that it receives.
    pub tag: i32,
}

/// Message sizes of a request that is done, in the order of its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub(super) sizes: [u64; MAX_RECEIVES],
    pub(super) count: usize,
}

impl Done {
    pub fn sizes(&self) -> &[u64] {
        &self.sizes[..self.count]
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DeliveryCounters {
    /// Number of packets, retransmissions included.
    pub packets: u64,
    pub retransmitted: u64,
    /// Number of packets that timed out.
    pub timeouts: u64,
    /// Number of packets on another path than the previous one.
    pub moves: u64,
    /// Paths that it used, one bit each.
    pub paths: [u64; 4],
}

impl DeliveryCounters {
    pub(super) fn add(&mut self, piece: &Delivered) {
        self.packets += piece.packets;
        self.retransmitted += piece.retransmitted;
        self.timeouts += piece.timeouts;
        self.moves += piece.path_switches;
        let used = piece.per_label.iter().enumerate().filter(|(_, packets)| **packets > 0);
        used.for_each(|(label, _)| self.paths[label / 64 % 4] |= 1 << (label % 64));
    }
}

#[derive(Debug)]
pub(super) struct Part<M> {
    pub(super) buffer: Buffer<M>,
    /// Bytes of its message, once a piece has arrived.
    pub(super) size: Option<u64>,
    pub(super) received: u64,
}

#[derive(Debug)]
pub(super) enum Request<M> {
    Send {
        sender: Id,
        memory: M,
        number: u32,
        index: u32,
        /// Memory of the receiver to write to, and the number of chunks that have been made.
        window: Option<Window>,
        chunks: u64,
        size: u64,
        sent: u64,
        flying: u32,
        all_sent: bool,
        counters: DeliveryCounters,
    },
    Receive {
        receiver: Id,
        parts: Vec<Part<M>>,
        left: usize,
    },
}

impl Sender {
    /// Takes the first buffer of this tag from the oldest grant, with number of the receive, and index.
    pub(super) fn take(&mut self, tag: i32) -> Option<(u32, u32, PostedBuffer)> {
        let grant = self.grants.front_mut()?;
        let index = grant.entries.iter().position(|entry| entry.is_some_and(|entry| entry.tag == tag))?;
        let (number, entry) = (grant.number, grant.entries[index].take()?);
        if grant.entries.iter().all(Option::is_none) {
            self.grants.pop_front();
        }
        Some((number, index as u32, entry))
    }
}

pub(super) fn unknown(what: &str) -> Failure {
    Failure::internal(format!("NCCL names {what} that there is not, or no longer"))
}
