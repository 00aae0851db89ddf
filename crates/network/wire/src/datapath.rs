//! What carries datagrams.

pub use anabranch_endpoint::To;
use anabranch_units::Time;
use std::{io, net::SocketAddr};

/// What a datagram carries so that the network picks a path for it: a source port, a queue pair, a link in memory.
pub type Label = u32;

/// Another end, as a datapath numbers them: from 0, without gaps.
pub type PeerId = u32;

/// Who notes when a datagram arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// The program, when it looked.
    User,
    /// The kernel.
    Kernel,
    /// The NIC, or the model of one.
    Hardware,
}

/// What a datapath can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Bytes of the largest datagram.
    pub largest: usize,
    /// Labels to choose from.
    pub labels: u32,
    /// Datagrams of one label and size that it sends at once.
    pub run: usize,
    /// Who notes when a datagram arrived.
    pub stamps: Stamps,
    /// Whether marks are asked for and told.
    pub ecn: bool,
    /// Whether trimmed datagrams arrive as such.
    pub trimmed: bool,
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outbound<'a> {
    /// Whom it goes to.
    pub to: To,
    /// The label that it carries.
    pub label: Label,
    /// Whether switches may mark it.
    pub ecn: bool,
    /// Its traffic class, of which the upper six bits count (DSCP): the lower two are marks. Where the datapath can, and on Linux.
    pub class: u8,
    /// How it begins: its header.
    pub head: &'a [u8],
    /// What follows, wherever that lies.
    pub payload: &'a [u8],
}

impl Outbound<'_> {
    /// Its bytes.
    pub fn size(&self) -> usize {
        self.head.len() + self.payload.len()
    }
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Inbound<'a> {
    /// The peer at the address that it comes from; `None`: there is none.
    pub peer: Option<PeerId>,
    /// That address, of label 0. Anybody may forge it; `None`: this datapath knows who its peers are.
    pub from: Option<SocketAddr>,
    /// The label that it came by, which answers should carry.
    pub label: Label,
    /// When it arrived.
    pub at: Time,
    /// Whether it was marked.
    pub ecn: bool,
    /// Whether a switch has cut its payload off.
    pub trimmed: bool,
    /// What it says.
    pub bytes: &'a [u8],
}

/// Why a datapath cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// No more peers than this can be told apart.
    #[error("there are {0} peers already, which is as many as this endpoint keeps")]
    TooManyPeers(u32),
    /// There is no peer of that number.
    #[error("there is no peer {0}")]
    UnknownPeer(PeerId),
    /// There is no label of that number.
    #[error("there is no label {label}: labels count from 0, and there are {labels}")]
    UnknownLabel {
        /// The label.
        label: Label,
        /// How many there are.
        labels: u32,
    },
    /// Nobody is there, where queue pairs are to be connected.
    #[error("no answer from {at}: {source}")]
    NoAnswer {
        /// Where.
        at: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// What RDMA verbs need is not there.
    #[error("{0}")]
    Verbs(String),
    /// The operating system says no.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What it says.
        source: io::Error,
    },
}

/// Datagrams over paths that a label picks: sockets, or memory.
pub trait Datapath {
    /// What it can do.
    fn abilities(&self) -> Abilities;

    /// The time since it was opened; it never goes back.
    fn now(&self) -> Time;

    /// Another end, to be reached by these labels; none: by all. What merely sends to us gets no number.
    ///
    /// # Errors
    /// Where it cannot be another one's peer.
    fn peer(&mut self, at: SocketAddr, labels: &[Label]) -> Result<PeerId, WireError>;

    /// Where a peer is.
    fn peer_at(&self, peer: PeerId) -> Option<SocketAddr>;

    /// Forgets a peer; its number may be another's next.
    fn release(&mut self, peer: PeerId);

    /// Sends datagrams in order, as many as it takes at once; returns how many. It never blocks.
    ///
    /// # Errors
    /// Where nothing can ever be sent again.
    fn send(&mut self, batch: &[Outbound<'_>]) -> Result<usize, WireError>;

    /// Hands over what has arrived, `most` datagrams at most; returns how many.
    ///
    /// # Errors
    /// Where nothing can ever arrive again.
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Inbound<'_>)) -> Result<usize, WireError>;

    /// Waits until something has arrived, `until` at the latest.
    ///
    /// # Errors
    /// Where nothing can ever arrive again.
    fn wait(&mut self, until: Time) -> Result<(), WireError>;
}
