//! Carriers of a device's packets: UDP sockets, or unreliable queue pairs of its RDMA device.

#[cfg(target_os = "linux")]
use crate::labels::Tracer;
use crate::{
    handle::{Carrier, Handle},
    labels::Paths,
    node::Failure,
};
use anabranch_units::Time;
use anabranch_wire::{
    Abilities, Datapath, Inbound, Label, Outbound, PeerId, Region, Source, WireError, udp::UdpPath, verbs::VerbsPath,
};
#[cfg(target_os = "linux")]
use anabranch_wire::{
    paths::{self, Trace},
    verbs,
};
use std::{
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
    sync::Arc,
};

#[derive(Debug)]
pub(crate) struct Path {
    by: By,
    #[cfg(target_os = "linux")]
    tracer: Tracer,
}

#[derive(Debug)]
pub(crate) enum By {
    /// Sockets, one per label.
    Udp(UdpPath),
    /// Queue pairs, one per label and peer.
    Verbs(VerbsPath),
}

macro_rules! either {
    ($self:expr, $path:ident => $body:expr) => {
        match $self {
            By::Udp($path) => $body,
            By::Verbs($path) => $body,
        }
    };
}

impl Path {
    pub(crate) fn new(by: By) -> Self {
        Path {
            by,
            #[cfg(target_os = "linux")]
            tracer: Tracer::default(),
        }
    }

    pub(crate) fn carrier(&self) -> Carrier {
        match &self.by {
            By::Udp(_) => Carrier::Udp,
            By::Verbs(path) if path.is_reliable() => Carrier::Rc,
            By::Verbs(_) => Carrier::Uc,
        }
    }

    /// Traces which labels from the device's address `from` to a rank share a path; never waits. `None`: call again.
    /// Fails if paths cannot be traced there.
    #[cfg(target_os = "linux")]
    pub(crate) fn find_paths(&mut self, from: IpAddr, to: &Handle) -> Result<Option<Paths>, Failure> {
        let labels = to.labels.min(self.abilities().labels as u16);
        let Path { by, tracer } = self;
        let found = tracer.poll((from, to.at), labels.into(), |at| match by {
            By::Udp(path) => path.trace(at, labels),
            // Label `i` is the queue pair with flow label `i + 1`.
            By::Verbs(_) => {
                let pairs = verbs::port_pairs(1..=u32::from(labels));
                Trace::of_pairs(*at.ip(), &pairs, paths::MAX_SWITCHES, paths::SWITCH_TIMEOUT)
            }
        });
        let mut found = found?;
        if self.carrier() == Carrier::Rc {
            // A path has a queue pair of its own.
            found.iter_mut().flatten().for_each(|path| path.truncate(1));
        }
        Ok(found)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn find_paths(&mut self, _from: IpAddr, _to: &Handle) -> Result<Option<Paths>, Failure> {
        Err(crate::labels::unsupported())
    }

    /// Returns the address of label 0, or of the RDMA device's listener; `None`: it no longer listens.
    pub(crate) fn at(&self) -> Option<SocketAddr> {
        match &self.by {
            By::Udp(path) => Some(path.at()),
            By::Verbs(path) => path.at(),
        }
    }

    /// Returns a descriptor that is readable when packets arrive; `None`: the carrier has none.
    pub(crate) fn readiness(&self) -> Option<Arc<OwnedFd>> {
        match &self.by {
            #[cfg(target_os = "linux")]
            By::Udp(path) => path.readiness(),
            _ => None,
        }
    }

    /// Sets the traffic class of later queue pairs; a UDP datagram has the class of its connection.
    pub(crate) fn set_traffic_class(&mut self, class: u8) {
        if let By::Verbs(path) = &mut self.by {
            path.set_traffic_class(class);
        }
    }
}

impl Datapath for Path {
    fn refusals(&self, peer: PeerId) -> Option<(u64, String)> {
        either!(&self.by, path => path.refusals(peer))
    }

    fn abilities(&self) -> Abilities {
        either!(&self.by, path => path.abilities())
    }

    fn now(&self) -> Time {
        either!(&self.by, path => path.now())
    }

    fn peer(&mut self, at: SocketAddr, labels: &[Label]) -> Result<PeerId, WireError> {
        either!(&mut self.by, path => path.peer(at, labels))
    }

    fn peer_in_planes(&mut self, at: &[SocketAddr]) -> Result<PeerId, WireError> {
        either!(&mut self.by, path => path.peer_in_planes(at))
    }

    fn admit(&mut self, from: Source) -> Option<PeerId> {
        either!(&mut self.by, path => path.admit(from))
    }

    fn confirm(&mut self, peer: PeerId, label: Label, from: SocketAddr) {
        either!(&mut self.by, path => path.confirm(peer, label, from));
    }

    fn peer_at(&self, peer: PeerId) -> Option<SocketAddr> {
        either!(&self.by, path => path.peer_at(peer))
    }

    fn labels_at(&self, peer: PeerId) -> Option<SocketAddr> {
        either!(&self.by, path => path.labels_at(peer))
    }

    fn release(&mut self, peer: PeerId) {
        either!(&mut self.by, path => path.release(peer));
    }

    fn register(&mut self, region: Region) -> Result<bool, WireError> {
        either!(&mut self.by, path => path.register(region))
    }

    fn deregister(&mut self, region: Region) {
        either!(&mut self.by, path => path.deregister(region));
    }

    fn key(&self, at: u64, bytes: u64) -> Option<u32> {
        either!(&self.by, path => path.key(at, bytes))
    }

    fn revoke(&mut self, peer: PeerId, stream: u32, revoked: bool) {
        either!(&mut self.by, path => path.revoke(peer, stream, revoked));
    }

    fn cut(&mut self, peer: PeerId) {
        either!(&mut self.by, path => path.cut(peer));
    }

    fn send(&mut self, batch: &[Outbound<'_>]) -> Result<usize, WireError> {
        either!(&mut self.by, path => path.send(batch))
    }

    fn receive(&mut self, max: usize, take: &mut dyn FnMut(Inbound<'_>)) -> Result<usize, WireError> {
        either!(&mut self.by, path => path.receive(max, take))
    }

    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        either!(&mut self.by, path => path.wait(until))
    }
}
