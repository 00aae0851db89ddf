use crate::region::Region;
use anabranch_endpoint::Write;
pub use anabranch_endpoint::{Source, To};
use anabranch_units::Time;
use std::{io, net::SocketAddr};

/// Value in a datagram by which the network selects its path: a source port, a queue pair, a link in memory.
pub type Label = u32;

/// Number of a peer in its datapath: from 0, without gaps.
pub type PeerId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Bytes of the largest datagram.
    pub largest: usize,
    /// Number of labels to choose from.
    pub labels: u32,
    /// Maximum datagrams of one label and size in one run.
    pub run: usize,
}

/// Datagram to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outbound<'a> {
    pub to: To,
    pub label: Label,
    /// Switches may mark it (ECN-capable).
    pub ecn: bool,
    /// Traffic class, of which the upper six bits count (DSCP); the lower two are marks. Only where the datapath
    /// supports it, and on Linux.
    pub class: u8,
    /// Header, the first bytes.
    pub head: &'a [u8],
    /// Payload, which need not be adjacent to the header in memory.
    pub payload: &'a [u8],
    /// Where the payload goes instead, in memory that the peer has registered; the header stays here.
    pub write: Option<Write>,
}

impl Outbound<'_> {
    /// Returns its length in bytes.
    pub fn size(&self) -> usize {
        self.head.len() + self.payload.len()
    }
}

/// What an [`Inbound`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A datagram has arrived.
    Datagram,
    /// Outcome of a datagram over a reliable datapath, with the first bytes of its header.
    Completed { arrived: bool },
    /// The peer has written bytes to memory of the owner.
    Written { notice: u32, bytes: u64 },
    /// A reliable datapath has lost the peer.
    Gone,
}

/// Datagram that has arrived, or news of one.
#[derive(Clone, Copy, Debug)]
pub struct Inbound<'a> {
    /// Peer at the source address, if there is one.
    pub peer: Option<PeerId>,
    /// Source; `None`: the datapath identifies peers by itself.
    pub from: Option<Source>,
    /// Label that it arrived with; replies should carry it.
    pub label: Label,
    pub at: Time,
    /// The datagram was marked (ECN).
    pub ecn: bool,
    pub kind: Kind,
    /// Bytes of the datagram, header first.
    pub bytes: &'a [u8],
}

#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The datapath has as many peers as it can number.
    #[error("there are already {0} peers, the maximum of this endpoint")]
    TooManyPeers(u32),
    /// There is no peer of that number.
    #[error("there is no peer {0}")]
    UnknownPeer(PeerId),
    /// There is no label of that number.
    #[error("there is no label {label}: labels count from 0, and there are {labels}")]
    UnknownLabel { label: Label, labels: u32 },
    /// A peer has addresses in more or fewer planes.
    #[error("found {theirs} addresses of a peer, expected {ours}: one in each plane")]
    Planes {
        /// Its addresses.
        theirs: usize,
        /// Planes of the datapath.
        ours: usize,
    },
    /// The peer with which queue pairs are to be connected does not respond.
    #[error("no reply from {at}: {source}")]
    NoReply {
        /// Address of the peer.
        at: SocketAddr,
        /// Error of the operating system.
        source: io::Error,
    },
    /// An address that cannot be used.
    #[error("{0}")]
    Address(String),
    /// RDMA verbs or something they require is missing.
    #[error("{0}")]
    Verbs(String),
    /// The clock of the datapath, 64 bits of picoseconds since it was opened, ends within a day.
    #[error("this endpoint is open for 212 days, after which its clock ends: restart it")]
    ClockEnd,
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// Operation that failed.
        what: String,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Datagrams over paths that a label selects: sockets, or memory.
pub trait Datapath {
    fn abilities(&self) -> Abilities;

    /// Returns the time since the datapath was opened. It never decreases.
    fn now(&self) -> Time;

    /// Adds a peer that is reachable by these labels; an empty slice means all.
    /// Fails if the address cannot be that of a new peer.
    fn peer(&mut self, at: SocketAddr, labels: &[Label]) -> Result<PeerId, WireError>;

    /// Adds a peer by its first address in each plane.
    /// Fails if the addresses cannot be those of a new peer, or the datapath has another number of planes.
    fn peer_in_planes(&mut self, at: &[SocketAddr]) -> Result<PeerId, WireError> {
        match at {
            [at] => self.peer(*at, &[]),
            _ => Err(WireError::Planes { theirs: at.len(), ours: 1 }),
        }
    }

    /// Adds a peer that has called the local endpoint; returns `None` if there is no number for it.
    fn admit(&mut self, from: Source) -> Option<PeerId> {
        self.peer(from.at, &[]).ok()
    }

    /// Notes that a datagram with the connection number of a peer has come from this address over a label.
    fn confirm(&mut self, _peer: PeerId, _label: Label, _from: SocketAddr) {}

    fn peer_at(&self, peer: PeerId) -> Option<SocketAddr>;

    /// Returns the address from whose port on consecutive ones are the labels towards a peer, if ports are labels.
    fn labels_at(&self, _peer: PeerId) -> Option<SocketAddr> {
        None
    }

    /// Removes a peer; its number may be reused.
    fn release(&mut self, peer: PeerId);

    /// Lets peers write to a region, and datagrams to peers be written from it; `false`: the datapath writes to no memory.
    /// Fails if the memory cannot be registered.
    fn register(&mut self, _region: Region) -> Result<bool, WireError> {
        Ok(false)
    }

    /// Ends a registration.
    fn deregister(&mut self, _region: Region) {}

    /// Returns the key by which peers write to these bytes; `None`: they are not registered.
    fn key(&self, _at: u64, _bytes: u64) -> Option<u32> {
        None
    }

    /// Withdraws the writes of a stream, those under way too, or ends that. Withdrawn ones count as arrived.
    fn revoke(&mut self, _peer: PeerId, _stream: u32, _revoked: bool) {}

    /// Ends all writes to and from a peer at once; nothing more is carried.
    fn cut(&mut self, _peer: PeerId) {}

    /// Sends datagrams in order without blocking; returns the number accepted.
    /// Fails if sending is no longer possible.
    fn send(&mut self, batch: &[Outbound<'_>]) -> Result<usize, WireError>;

    /// Returns the number of datagrams sent, and of system calls that sent them; none where datagrams need no calls.
    fn sent(&self) -> [u64; 2] {
        [0; 2]
    }

    /// Returns the number of datagrams to a peer that the kernel has refused, and its last reason with a remedy; `None`: none.
    fn refusals(&self, _peer: PeerId) -> Option<(u64, String)> {
        None
    }

    /// Returns an address to which the kernel refuses datagrams, and its reason with a remedy, once per address and reason.
    fn poll_refusal(&mut self) -> Option<(SocketAddr, String)> {
        None
    }

    /// Sends a byte to an address; returns the ICMP error that comes back at once, with its meaning.
    fn icmp_error(&self, _at: SocketAddr) -> Option<String> {
        None
    }

    /// Passes at most `max` arrived datagrams to `take` and returns their number.
    /// Fails if nothing can ever arrive again.
    fn receive(&mut self, max: usize, take: &mut dyn FnMut(Inbound<'_>)) -> Result<usize, WireError>;

    /// Waits until a datagram arrives or until `until`.
    /// Fails if nothing can ever arrive again.
    fn wait(&mut self, until: Time) -> Result<(), WireError>;
}
