//! Carriers of a device's packets: UDP sockets, or unreliable queue pairs of its RDMA device.

use crate::handle::Carrier;
use anabranch_units::Time;
use anabranch_wire::{Abilities, Datapath, Inbound, Label, Outbound, PeerId, WireError, udp::UdpPath, verbs::UcPath};
use std::net::SocketAddr;

#[derive(Debug)]
pub(crate) enum Path {
    /// Sockets, one per label.
    Udp(UdpPath),
    /// Queue pairs, one per label and peer.
    Verbs(UcPath),
}

macro_rules! either {
    ($self:expr, $path:ident => $body:expr) => {
        match $self {
            Path::Udp($path) => $body,
            Path::Verbs($path) => $body,
        }
    };
}

impl Path {
    pub(crate) fn carrier(&self) -> Carrier {
        match self {
            Path::Udp(_) => Carrier::Udp,
            Path::Verbs(_) => Carrier::Uc,
        }
    }

    /// Returns the address of label 0, or of the RDMA device's listener; `None`: it no longer listens.
    pub(crate) fn at(&self) -> Option<SocketAddr> {
        match self {
            Path::Udp(path) => Some(path.at()),
            Path::Verbs(path) => path.at(),
        }
    }

    /// Sets the traffic class of later queue pairs; a UDP datagram has the class of its connection.
    pub(crate) fn set_traffic_class(&mut self, class: u8) {
        if let Path::Verbs(path) = self {
            path.set_traffic_class(class);
        }
    }
}

impl Datapath for Path {
    fn abilities(&self) -> Abilities {
        either!(self, path => path.abilities())
    }

    fn now(&self) -> Time {
        either!(self, path => path.now())
    }

    fn peer(&mut self, at: SocketAddr, labels: &[Label]) -> Result<PeerId, WireError> {
        either!(self, path => path.peer(at, labels))
    }

    fn peer_at(&self, peer: PeerId) -> Option<SocketAddr> {
        either!(self, path => path.peer_at(peer))
    }

    fn release(&mut self, peer: PeerId) {
        either!(self, path => path.release(peer));
    }

    fn send(&mut self, batch: &[Outbound<'_>]) -> Result<usize, WireError> {
        either!(self, path => path.send(batch))
    }

    fn receive(&mut self, max: usize, take: &mut dyn FnMut(Inbound<'_>)) -> Result<usize, WireError> {
        either!(self, path => path.receive(max, take))
    }

    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        either!(self, path => path.wait(until))
    }
}
