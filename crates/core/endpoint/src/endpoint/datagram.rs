use crate::event::Write;
use anabranch_units::Time;
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Source address, which may be forged.
    pub at: SocketAddr,
    /// Local address that the datagram was sent to, from which replies leave; `None`: the datapath has only one.
    pub local: Option<IpAddr>,
    /// Peer whose replies over a label may come from there, and that is `None` in [`Arrival::peer`] until one has.
    pub reply_of: Option<u32>,
    /// It was sent from the address that it was sent to.
    pub is_same_host: bool,
}

impl From<SocketAddr> for Source {
    fn from(at: SocketAddr) -> Self {
        Source { at, local: None, reply_of: None, is_same_host: false }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Peer of its source address; `None`: the datapath has no peer of that address.
    pub peer: Option<u32>,
    /// Source; `None`: the datapath vouches for the peer, and HELLOs need no cookie.
    pub from: Option<Source>,
    /// Label that replies to it should carry.
    pub label: u32,
    /// Arrival time, possibly in the past.
    pub at: Time,
    /// It carries an ECN mark.
    pub ecn: bool,
    pub bytes: &'a [u8],
}

/// Direct data placement (RFC 5041): bytes of messages with a steering value ([`crate::Endpoint::send_with`]) are
/// stored at their destination as they arrive, in any order.
pub trait Placement {
    /// Returns the number of leading bytes, at most one packet, to report on completion; the others are placed. `None`:
    /// the message is kept and reported like any other.
    fn head(&mut self, peer: u32, steering: u64, length: u64) -> Option<usize>;
    /// Places bytes from the offset `from` on. Each byte is passed once.
    fn place(&mut self, peer: u32, steering: u64, from: u64, bytes: &[u8]);
    /// The datapath has written bytes of a peer to memory of the owner ([`crate::Write`]), with this notice.
    fn written(&mut self, _peer: u32, _notice: u32, _bytes: u64) {}
}

/// A [`Placement`] that places no message.
pub struct NoPlacement;

impl Placement for NoPlacement {
    fn head(&mut self, _peer: u32, _steering: u64, _length: u64) -> Option<usize> {
        None
    }
    fn place(&mut self, _peer: u32, _steering: u64, _from: u64, _bytes: &[u8]) {}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum To {
    Peer(u32),
    /// The source of a datagram of a sender that is no peer.
    Address(Source),
}

/// Destination and properties of a datagram that [`crate::Endpoint::poll_transmit`] has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// It shares no segmented datagram (GSO): the path may drop datagrams by the size of all segments together.
    pub is_single: bool,
    pub to: To,
    pub label: u32,
    /// Switches may mark it (ECN).
    pub ecn: bool,
    /// Traffic class, of which the upper six bits count (DSCP).
    pub class: u8,
    /// Bytes that follow those written: part of a message, by reference.
    pub payload: Bytes,
    /// Where the payload goes, if not to the peer's endpoint.
    pub write: Option<Write>,
}
