//! Numbers of peers by their addresses.

use crate::{Label, PeerId, Source};
use std::{collections::BTreeMap, net::SocketAddr};

/// The scope of a link-local address stays.
pub(super) fn with_port(mut at: SocketAddr, port: u16) -> SocketAddr {
    at.set_port(port);
    at
}

/// `bases` are those of the first label in each plane.
pub(super) fn address(bases: &[SocketAddr], label: Label) -> Option<SocketAddr> {
    let planes = bases.len() as u32;
    let base = bases[(label % planes) as usize];
    u16::try_from(u32::from(base.port()) + label / planes).ok().map(|port| with_port(base, port))
}

#[derive(Clone, Debug)]
pub(super) struct Remote {
    /// Its first port, or as a NAT has mapped it, and the local address that it has called.
    pub(super) of: Source,
    /// Its first address in each plane. Its ports are the labels: the local endpoint calls it. If there is none, those of
    /// the local endpoint are.
    pub(super) called: Vec<SocketAddr>,
    /// Addresses of its labels, of another plane or as a NAT has mapped its ports; `None`: its first port.
    pub(super) mapped: Vec<Option<SocketAddr>>,
}

/// Sender of an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) peer: PeerId,
    /// Label of its datagrams to the first socket.
    pub(super) label: Label,
    /// A datagram with its connection number has come from there.
    pub(super) is_confirmed: bool,
}

/// Numbers of released peers are reused.
#[derive(Debug, Default)]
pub(super) struct Peers {
    at: Vec<Option<Remote>>,
    /// First ports, ports of the labels of called peers, and those that NATs have mapped.
    pub(super) known: BTreeMap<SocketAddr, Known>,
    free: Vec<PeerId>,
    labels: u32,
    pub(super) planes: u32,
    pub(super) max: u32,
}

impl Peers {
    pub(super) fn new(labels: u32, planes: u32, max: u32) -> Self {
        Peers { labels, planes, max, ..Peers::default() }
    }

    pub(super) fn get(&self, peer: PeerId) -> Option<&Remote> {
        self.at.get(peer as usize)?.as_ref()
    }

    /// Returns the number of a peer of a first port, which the local endpoint calls at these addresses.
    pub(super) fn number(&mut self, of: Source, called: Option<&[SocketAddr]>) -> Option<PeerId> {
        let known = self.known.get(&of.at).filter(|known| self.get(known.peer).is_some_and(|peer| peer.of.at == of.at));
        let peer = match known.map(|known| known.peer).or_else(|| self.free.pop()) {
            Some(peer) => peer,
            None => {
                let peer = u32::try_from(self.at.len()).ok().filter(|peer| *peer < self.max)?;
                self.at.push(None);
                peer
            }
        };
        let remote = self.at[peer as usize].get_or_insert(Remote { of, called: Vec::new(), mapped: Vec::new() });
        self.known.insert(of.at, Known { peer, label: 0, is_confirmed: true });
        if let Some(called) = called.filter(|_| remote.called.is_empty()) {
            remote.called = called.to_vec();
            for label in 1..self.labels {
                // Another peer may have this as its first port.
                let Some(at) = address(called, label) else { continue };
                self.known.entry(at).or_insert(Known { peer, label, is_confirmed: false });
            }
        }
        Some(peer)
    }

    /// A datagram of the peer has come from this address over a label: a NAT has mapped its port, or a called peer replies.
    pub(super) fn confirm(&mut self, peer: PeerId, label: Label, from: SocketAddr) {
        let Some(Some(remote)) = self.at.get_mut(peer as usize) else { return };
        if !remote.called.is_empty() {
            if let Some(known) = self.known.get_mut(&from).filter(|known| known.peer == peer) {
                known.is_confirmed = true;
            }
            return;
        }
        // The endpoint has checked the address in each plane.
        if label >= self.labels || (self.planes == 1 && from.ip() != remote.of.at.ip()) {
            return;
        }
        let at = label as usize;
        if remote.mapped.len() <= at {
            remote.mapped.resize(at + 1, None);
        }
        let before = remote.mapped[at].replace(from);
        let before = before.filter(|before| !remote.mapped.contains(&Some(*before)) && *before != remote.of.at);
        if let Some(before) = before.filter(|before| self.known.get(before).is_some_and(|known| known.peer == peer)) {
            self.known.remove(&before);
        }
        self.known.entry(from).or_insert(Known { peer, label: 0, is_confirmed: true });
    }

    pub(super) fn release(&mut self, peer: PeerId) {
        let Some(remote) = self.at.get_mut(peer as usize).and_then(Option::take) else { return };
        let called = &remote.called;
        let labels = (0..if called.is_empty() { 0 } else { self.labels }).filter_map(|label| address(called, label));
        let mapped = remote.mapped.iter().copied().flatten();
        for at in labels.chain(mapped).chain([remote.of.at]) {
            if self.known.get(&at).is_some_and(|known| known.peer == peer) {
                self.known.remove(&at);
            }
        }
        self.free.push(peer);
    }
}
