//! What a node is made of: peers, listeners, both ends of connections, requests.

use crate::{
    abi::{Code, MOST_RECEIVES},
    ids::Id,
    message::Entry,
};
use anabranch_endpoint::{Bytes, Delivered, PathCounts};
use anabranch_units::Time;
use anabranch_wire::PeerId;
use std::{collections::VecDeque, fmt, net::SocketAddr};

/// Why a call fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What NCCL is told.
    pub code: Code,
    /// What people are told; empty: they have been told before.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// A failure of this kind.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Failure { code, message: message.into() }
    }

    /// NCCL calls what it must not.
    pub fn internal(message: impl Into<String>) -> Self {
        Failure::new(Code::Internal, message)
    }
}

/// A failure that stays, and is told once.
#[derive(Clone, Debug, Default)]
pub(super) struct Fate(Option<Failure>);

impl Fate {
    pub(super) fn meets(&mut self, failure: &Failure) {
        self.0.get_or_insert_with(|| failure.clone());
    }

    pub(super) fn is_well(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn check(&mut self) -> Result<(), Failure> {
        let Some(failure) = &mut self.0 else { return Ok(()) };
        let code = failure.code;
        Err(Failure { code, message: std::mem::take(&mut failure.message) })
    }
}

/// Another node.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// What could not be said yet.
    pub(super) unsaid: VecDeque<Vec<u8>>,
    /// When anything was last said over stream 0.
    pub(super) said_at: Time,
    /// Streams to it, from stream 1 on.
    pub(super) streams: Vec<Channel>,
    /// Bytes of pieces that it has not acknowledged.
    pub(super) flying: u64,
    /// Connections with it.
    pub(super) connections: u32,
    /// Connections that it was refused one after the other.
    pub(super) refused: u32,
}

/// A stream to a peer, used by one connection after the other.
#[derive(Debug, Default)]
pub(super) struct Channel {
    /// The connection that uses it.
    pub(super) used: bool,
    /// Messages that are not acknowledged: number, request, bytes.
    pub(super) flying: VecDeque<(u32, Id, u64)>,
}

/// What the sending end of a connection does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Its number.
    pub connection: u32,
    /// Where the other end listened.
    pub at: SocketAddr,
    /// It has not failed.
    pub is_well: bool,
    /// Bytes that congestion control lets be under way, where it says so.
    pub window: Option<u64>,
    /// What has gone over each path, of this connection and of those that used its stream before; empty: nothing yet.
    pub paths: Vec<PathCounts>,
}

/// Somebody who listens.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) key: u64,
    pub(super) class: u8,
    pub(super) waiting: VecDeque<Waiting>,
}

/// A connection that nobody has accepted yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) peer: PeerId,
    pub(super) connection: u32,
    pub(super) fate: Fate,
}

/// An attempt to connect.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) peer: PeerId,
    pub(super) at: SocketAddr,
    pub(super) connection: u32,
    pub(super) key: u64,
    pub(super) class: u8,
    pub(super) sender: Option<Id>,
    pub(super) fate: Fate,
    /// The peer counts it among its connections.
    pub(super) is_attached: bool,
}

/// The sending end of a connection.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) peer: PeerId,
    pub(super) at: SocketAddr,
    pub(super) connection: u32,
    /// The traffic class of its messages.
    pub(super) class: u8,
    /// Its place among the peer's streams.
    pub(super) channel: usize,
    pub(super) grants: VecDeque<Grant>,
    /// The number of the next grant.
    pub(super) next: u32,
    /// Requests that have pieces to send, in order.
    pub(super) queue: VecDeque<Id>,
    /// Requests that NCCL has not heard of again.
    pub(super) open: Vec<Id>,
    /// Bytes of pieces that are not acknowledged.
    pub(super) flying: u64,
    /// How the message went of which NCCL heard last.
    pub(super) went: Went,
    pub(super) fate: Fate,
    /// The peer counts it among its connections.
    pub(super) is_attached: bool,
}

/// Room at the receiver; entries that are taken are gone.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) number: u32,
    pub(super) entries: Vec<Option<Entry>>,
}

/// The receiving end of a connection.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) peer: PeerId,
    pub(super) connection: u32,
    /// Receives that are not complete, the first of which has the number `completed`. The sender knows of those before `granted`.
    pub(super) waiting: VecDeque<Id>,
    pub(super) completed: u32,
    pub(super) granted: u32,
    /// Requests that NCCL has not heard of again.
    pub(super) open: Vec<Id>,
    pub(super) fate: Fate,
}

/// Which end of which connection a number of ours is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ours {
    Attempt(Id),
    Sender(Id),
}

/// Memory that messages are read from and written to.
pub trait Memory {
    /// So many bytes from a place on, where they lie or copied. The node gives back all that it has of them before it says that their
    /// request is done, or closes their sender.
    fn lend(&self, from: u64, bytes: usize) -> Bytes;
    /// Copies bytes to a place; never more than were granted.
    fn write(&mut self, to: u64, bytes: &[u8]);
}

/// Where a message is to be put.
#[derive(Debug)]
pub struct Buffer<M> {
    /// The memory.
    pub memory: M,
    /// Its bytes.
    pub size: u64,
    /// The tag of the message that it takes.
    pub tag: i32,
}

/// Sizes of the messages of a request that is done, in the order of its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub(super) sizes: [u64; MOST_RECEIVES],
    pub(super) count: usize,
}

impl Done {
    /// The sizes.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes[..self.count]
    }
}

/// How a message went that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Went {
    /// Packets, those that were sent again included.
    pub packets: u64,
    /// Of them those that were sent again.
    pub retransmitted: u64,
    /// Packets that timed out.
    pub timeouts: u64,
    /// Packets that went another way than the one before them.
    pub moves: u64,
    /// The paths that it took, a bit for each.
    pub paths: [u64; 4],
}

impl Went {
    pub(super) fn add(&mut self, piece: &Delivered) {
        self.packets += piece.packets;
        self.retransmitted += piece.retransmitted;
        self.timeouts += piece.timeouts;
        self.moves += piece.path_switches;
        let used = piece.per_label.iter().enumerate().filter(|(_, packets)| **packets > 0);
        used.for_each(|(label, _)| self.paths[label / 64 % 4] |= 1 << (label % 64));
    }
}

/// A buffer that is being filled.
#[derive(Debug)]
pub(super) struct Part<M> {
    pub(super) buffer: Buffer<M>,
    /// Bytes of its message, once a piece has come.
    pub(super) size: Option<u64>,
    pub(super) received: u64,
}

/// What NCCL waits for.
#[derive(Debug)]
pub(super) enum Request<M> {
    Send {
        sender: Id,
        memory: M,
        number: u32,
        index: u32,
        size: u64,
        sent: u64,
        flying: u32,
        all_sent: bool,
        went: Went,
    },
    Receive {
        receiver: Id,
        parts: Vec<Part<M>>,
        left: usize,
    },
}

impl Sender {
    /// Takes the room of the first receive that has some left, for a message of this tag: number, place, bytes.
    pub(super) fn take(&mut self, tag: i32) -> Option<(u32, u32, u64)> {
        let grant = self.grants.front_mut()?;
        let index = grant.entries.iter().position(|entry| entry.is_some_and(|entry| entry.tag == tag))?;
        let (number, entry) = (grant.number, grant.entries[index].take()?);
        if grant.entries.iter().all(Option::is_none) {
            self.grants.pop_front();
        }
        Some((number, index as u32, entry.size))
    }
}

pub(super) fn unknown(what: &str) -> Failure {
    Failure::internal(format!("NCCL names {what} that there is not, or no longer"))
}
