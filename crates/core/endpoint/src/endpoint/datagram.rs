//! Datagrams as the datapath gives and takes them, and where bytes of messages are put.

use anabranch_units::Time;
use bytes::Bytes;
use std::net::SocketAddr;

/// A datagram that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The peer whose address it comes from; `None`: the datapath knows none of that address.
    pub peer: Option<u32>,
    /// That address, of label 0, which may be forged. `None`: the datapath vouches for the peer, and HELLOs need no cookie.
    pub from: Option<SocketAddr>,
    /// The label that answers to it should carry.
    pub label: u32,
    /// When it arrived, which may be some time ago.
    pub at: Time,
    /// Whether it was marked on its way.
    pub ecn: bool,
    /// What it says.
    pub bytes: &'a [u8],
}

/// Puts bytes of messages where they are to lie as they come, whatever their order (direct data placement, as RFC 5041 has it), for
/// those that say where ([`Endpoint::send_with`]): they are copied once, and not kept until they are whole.
pub trait Place {
    /// How many bytes of the beginning of such a message, of a packet at most, are told with it when it is whole, and the others put in their
    /// place as they come. `None`: it is kept and told like any other.
    fn head(&mut self, peer: u32, steering: u64, length: u64) -> Option<usize>;
    /// Bytes of such a message, from so many on. Each comes once.
    fn place(&mut self, peer: u32, steering: u64, from: u64, bytes: &[u8]);
}

/// There is no place for any.
pub struct Nowhere;

impl Place for Nowhere {
    fn head(&mut self, _peer: u32, _steering: u64, _length: u64) -> Option<usize> {
        None
    }
    fn place(&mut self, _peer: u32, _steering: u64, _from: u64, _bytes: &[u8]) {}
}

/// Whom a datagram goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum To {
    /// A peer.
    Peer(u32),
    /// The address that something came from whose sender is no peer: that of label 0.
    Address(SocketAddr),
}

/// Where a datagram goes that [`Endpoint::poll_transmit`] has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Whom it goes to.
    pub to: To,
    /// The label that it carries.
    pub label: u32,
    /// Whether switches may mark it.
    pub ecn: bool,
    /// Its traffic class, of which the upper six bits count (DSCP).
    pub class: u8,
    /// What follows the bytes that were written: part of a message, where it lies.
    pub payload: Bytes,
}
