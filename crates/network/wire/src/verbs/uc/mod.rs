//! UC queue pairs as a [`Datapath`]: a message is a datagram without acknowledgement, a label a queue pair whose
//! packets carry that flow label. Connections to peers proceed in calls that send, receive or wait; only
//! [`Datapath::wait`] and functions documented as blocking wait.

mod call;
mod link;
mod own;

pub(super) use own::memory;

use super::{
    VerbsSettings,
    control::{self, Control, Frame, Greeting},
    gid,
    sys::{self, Device, Service},
};
use crate::{Abilities, Datapath, Inbound, Label, Outbound, PeerId, To, WireError};
use anabranch_random::Stream;
use anabranch_units::Time;
use call::{Call, Step};
use link::{Link, LinkStatus};
use own::{MAX_DATAGRAM, Own};
use std::{
    net::{IpAddr, SocketAddr, TcpListener},
    os::fd::AsFd,
    thread,
    time::{Duration, Instant},
};

/// Bytes of a packet on the wire besides its datagram: Ethernet, IPv4, UDP, base transport header and invariant CRC.
pub const UC_OVERHEAD: u64 = 14 + 20 + 8 + 12 + 4;

const MAX_LABELS: u32 = 256;
/// Intervals between polls of TCP while datagrams keep arriving: while a peer is being connected, and otherwise.
const POLL_INTERVALS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(5)];
/// Callers without a greeting, and the time after which the oldest gives way.
const MAX_CALLERS: usize = 64;
const CALLER_IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Connected callers of one address that have sent nothing yet: each takes local memory.
const MAX_UNPROVEN_PER_ADDRESS: usize = 32;

enum Peer {
    Called(Call),
    Linked(Box<Link>),
    /// Datagrams to it are lost.
    Unreachable {
        at: SocketAddr,
        reason: WireError,
    },
}

/// UC queue pairs, one per label and peer.
pub struct UcPath {
    opened: Instant,
    own: Own,
    ip: Option<IpAddr>,
    max_peers: u32,
    listener: Option<TcpListener>,
    callers: Vec<(Control, Instant)>,
    /// Last poll of callers and peers, and `true` while some are being connected.
    polled_at: Instant,
    is_connecting: bool,
    peers: Vec<Option<Peer>>,
    /// Kept until their packets have left or this time has come.
    leaving: Vec<(Box<Link>, Instant)>,
    turn: usize,
    draws: Stream,
    buffer: Vec<u8>,
    refused: u64,
    report: Box<dyn FnMut(&str) + Send>,
}

impl Peer {
    fn at(&self) -> SocketAddr {
        match self {
            Peer::Called(call) => call.at,
            Peer::Linked(link) => link.at,
            Peer::Unreachable { at, .. } => *at,
        }
    }

    fn is_connecting(&self) -> bool {
        match self {
            Peer::Called(_) => true,
            Peer::Linked(link) => !link.broken && !link.is_ready(),
            Peer::Unreachable { .. } => false,
        }
    }

    fn link(&mut self) -> Option<&mut Link> {
        match self {
            Peer::Linked(link) => Some(link),
            _ => None,
        }
    }
}

impl UcPath {
    /// Opens a device for datagrams of at most `largest` bytes over `labels` labels. With an address it listens there
    /// for at most `max_peers` peers.
    ///
    /// # Errors
    /// Fails if library or device are missing, or if it cannot listen at the address.
    pub fn open(
        at: Option<SocketAddr>,
        settings: VerbsSettings,
        (labels, max_peers): (u32, u32),
        largest: usize,
        seed: u64,
    ) -> Result<Self, WireError> {
        let name = super::device(settings.device.as_deref())?;
        let index = gid::choose(&name, settings.gid_index, at.map(|at| at.ip()))?;
        if !(1..=MAX_LABELS).contains(&labels) || largest > MAX_DATAGRAM {
            return Err(WireError::Verbs(format!(
                "{labels} labels and datagrams of {largest} B: from 1 to {MAX_LABELS}, and {MAX_DATAGRAM} B at most"
            )));
        }
        // Fails early if the memory of a peer is not available.
        Device::open(&name, index, memory(labels, largest), 16, Service::Unreliable)?.mtu()?;
        let listener = match at {
            Some(at) => {
                let system = |source| WireError::System { what: format!("cannot listen at {at}"), source };
                let listener = TcpListener::bind(at).map_err(system)?;
                listener.set_nonblocking(true).map_err(system)?;
                Some(listener)
            }
            None => None,
        };
        Ok(UcPath {
            opened: Instant::now(),
            own: Own { name, settings, labels, largest: largest as u32, class: 0 },
            ip: at.map(|at| at.ip()),
            max_peers,
            listener,
            callers: Vec::new(),
            polled_at: Instant::now(),
            is_connecting: false,
            peers: Vec::new(),
            leaving: Vec::new(),
            turn: 0,
            draws: Stream::keyed(seed, std::process::id().into(), "first packets"),
            buffer: vec![0; MAX_DATAGRAM],
            refused: 0,
            report: Box::new(|_| {}),
        })
    }

    /// Returns the address at which it listens.
    pub fn at(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// Returns the name of the device.
    pub fn device(&self) -> &str {
        &self.own.name
    }

    /// Returns the number of datagrams without a queue pair, which are lost.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Sets a callback for the reasons of refusals and failed peers.
    pub fn on_error(&mut self, callback: impl FnMut(&str) + Send + 'static) {
        self.report = Box::new(callback);
    }

    /// Sets the traffic class byte of queue pairs that are created from now on.
    pub fn set_traffic_class(&mut self, class: u8) {
        self.own.class = class;
    }

    /// Connects to a peer and blocks until datagrams can be sent to it or the timeout `peer_timeout` expires.
    ///
    /// # Errors
    /// Fails if it cannot be reached.
    pub fn reach(&mut self, at: SocketAddr) -> Result<PeerId, WireError> {
        let peer = self.peer(at, &[])?;
        let slot = peer as usize;
        loop {
            match self.peers[slot].take() {
                Some(Peer::Unreachable { reason, .. }) => return Err(reason),
                Some(other) => {
                    let is_there = !other.is_connecting();
                    self.peers[slot] = Some(other);
                    if is_there {
                        return Ok(peer);
                    }
                }
                None => return Err(WireError::UnknownPeer(peer)),
            }
            self.wait(self.now() + Time::from_ms(100))?;
        }
    }

    fn free_slot(&mut self) -> Option<usize> {
        if let Some(at) = self.peers.iter().position(Option::is_none) {
            return Some(at);
        }
        ((self.peers.len() as u32) < self.max_peers).then(|| {
            self.peers.push(None);
            self.peers.len() - 1
        })
    }

    /// Handles TCP without blocking: callers, outgoing connections, and control messages of peers.
    fn poll_tcp(&mut self) {
        self.polled_at = Instant::now();
        self.accept();
        let mut at = 0;
        while at < self.callers.len() {
            let (control, since) = &mut self.callers[at];
            match control.poll() {
                Ok(None) if since.elapsed() < self.own.settings.peer_timeout => at += 1,
                Ok(Some(frame)) => {
                    let (control, _) = self.callers.remove(at);
                    if let Err(error) = self.welcome(control, frame) {
                        (self.report)(&error.to_string());
                    }
                }
                Ok(None) | Err(_) => drop(self.callers.remove(at)),
            }
        }
        for slot in 0..self.peers.len() {
            self.peers[slot] = match self.peers[slot].take() {
                Some(Peer::Called(call)) => Some(self.advance(call)),
                Some(Peer::Linked(link)) => self.poll_link(link),
                other => other,
            };
        }
        self.is_connecting = !self.callers.is_empty() || self.peers.iter().flatten().any(Peer::is_connecting);
        self.leaving.retain_mut(|(link, until)| link.is_sending() && Instant::now() < *until);
    }

    /// With too many callers the next one waits, unless the oldest has been silent for a second.
    fn accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        loop {
            let is_full = self.callers.len() >= MAX_CALLERS;
            if is_full && self.callers[0].1.elapsed() < CALLER_IDLE_TIMEOUT {
                return;
            }
            let Ok((stream, _)) = listener.accept() else { return };
            if is_full {
                self.callers.remove(0);
            }
            if let Ok(control) = Control::new(stream, self.own.settings.peer_timeout) {
                self.callers.push((control, Instant::now()));
            }
        }
    }

    fn welcome(&mut self, mut control: Control, frame: Frame) -> Result<(), WireError> {
        let caller = control.peer;
        let Frame::HelloDatagrams(theirs) = frame else {
            control.post(&Frame::Refused)?;
            return Err(WireError::Verbs(format!(
                "{caller} uses the datapath rc, this endpoint uc: both need the same datapath"
            )));
        };
        let ip = caller.ip().to_canonical();
        let unproven = self.peers.iter().flatten().filter(|peer| match peer {
            Peer::Linked(link) => !link.called && !link.known && link.at.ip().to_canonical() == ip,
            _ => false,
        });
        if unproven.count() >= MAX_UNPROVEN_PER_ADDRESS {
            control.post(&Frame::Refused)?;
            return Err(WireError::Verbs(format!(
                "{caller} has {MAX_UNPROVEN_PER_ADDRESS} connections that have sent nothing, the maximum"
            )));
        }
        let vacant = self.free_slot();
        let (Some(slot), true) = (vacant, theirs.makes_sense()) else {
            control.post(&Frame::Refused)?;
            return Err(WireError::Verbs(format!(
                "{caller} has invalid labels or datagram sizes, or there are too many peers"
            )));
        };
        let (mut link, ours) = Link::new(&self.own, &mut self.draws, control, &theirs, false)?;
        link.control.post(&Frame::WelcomeDatagrams(ours))?;
        self.peers[slot] = Some(Peer::Linked(Box::new(link)));
        Ok(())
    }

    fn unreachable(&mut self, at: SocketAddr, reason: WireError) -> Peer {
        (self.report)(&reason.to_string());
        Peer::Unreachable { at, reason }
    }

    fn advance(&mut self, call: Call) -> Peer {
        let at = call.at;
        let linked = |this: &mut Self, control, theirs: &Greeting| {
            let (mut link, _) = Link::new(&this.own, &mut this.draws, control, theirs, true)?;
            link.at = at;
            link.request_queues()?;
            Ok(Peer::Linked(Box::new(link)))
        };
        let done = match call.advance(&self.own) {
            Ok(Step::Waits(call)) => Ok(Peer::Called(call)),
            Ok(Step::Welcomed(control, theirs)) => linked(self, control, &theirs),
            Err(error) => Err(error),
        };
        done.unwrap_or_else(|error| self.unreachable(at, error))
    }

    fn poll_link(&mut self, mut link: Box<Link>) -> Option<Peer> {
        let was_ready = link.is_ready();
        if !link.broken {
            let status = match link.poll_control() {
                LinkStatus::Healthy if !link.is_ready() && link.began.elapsed() >= self.own.settings.peer_timeout => {
                    LinkStatus::Disconnected(control::no_reply(link.at))
                }
                status => status,
            };
            match status {
                LinkStatus::Healthy => {}
                LinkStatus::Disconnected(error) | LinkStatus::Failed(error) if link.called && !was_ready => {
                    return Some(self.unreachable(link.at, error));
                }
                LinkStatus::Disconnected(_) => link.broken = true,
                LinkStatus::Failed(error) => {
                    link.broken = true;
                    (self.report)(&error.to_string());
                }
            }
        }
        if link.broken && !link.known {
            // Receives the last datagrams of a peer that has disconnected.
            let _ = link.gather();
        }
        // The owner releases only peers that it has seen; others are dropped here if they have disconnected or stay silent.
        let is_of_use = link.known
            || !link.broken && link.began.elapsed() < self.own.settings.peer_timeout
            || !link.arrived.is_empty();
        is_of_use.then_some(Peer::Linked(link))
    }
}

impl Drop for UcPath {
    fn drop(&mut self) {
        // The last acknowledgement would be lost with its queue pair.
        let until = Instant::now() + self.own.settings.parting;
        let leaving = self.leaving.iter_mut().map(|(link, _)| &mut **link);
        let mut all: Vec<&mut Link> = self.peers.iter_mut().flatten().filter_map(Peer::link).chain(leaving).collect();
        while all.iter_mut().any(|link| link.is_sending()) && Instant::now() < until {
            thread::sleep(Duration::from_micros(100));
        }
    }
}

impl Datapath for UcPath {
    fn abilities(&self) -> Abilities {
        Abilities { largest: self.own.largest as usize, labels: self.own.labels, run: 1 }
    }

    fn now(&self) -> Time {
        super::since(self.opened)
    }

    /// Datagrams are lost until the connection is established, or if it fails.
    fn peer(&mut self, at: SocketAddr, labels: &[Label]) -> Result<PeerId, WireError> {
        if let Some(label) = labels.iter().find(|label| **label >= self.own.labels) {
            return Err(WireError::UnknownLabel { label: *label, labels: self.own.labels });
        }
        if let Some(known) = self.peers.iter().position(|peer| peer.as_ref().is_some_and(|peer| peer.at() == at)) {
            return Ok(known as PeerId);
        }
        let slot = self.free_slot().ok_or(WireError::TooManyPeers(self.max_peers))?;
        self.peers[slot] = Some(match Call::begin(at, self.ip) {
            Ok(call) => self.advance(call),
            Err(error) => self.unreachable(at, error),
        });
        self.is_connecting = true;
        Ok(slot as PeerId)
    }

    fn peer_at(&self, peer: PeerId) -> Option<SocketAddr> {
        self.peers.get(peer as usize)?.as_ref().map(Peer::at)
    }

    fn release(&mut self, peer: PeerId) {
        if let Some(Peer::Linked(mut link)) = self.peers.get_mut(peer as usize).and_then(Option::take)
            && link.is_sending()
        {
            self.leaving.push((link, Instant::now() + self.own.settings.parting));
        }
    }

    fn send(&mut self, batch: &[Outbound<'_>]) -> Result<usize, WireError> {
        for (sent, outbound) in batch.iter().enumerate() {
            let Outbound { to, label, head, payload, .. } = *outbound;
            let To::Peer(peer) = to else { continue };
            let known = self.peers.get_mut(peer as usize).and_then(Option::as_mut);
            let link = known.ok_or(WireError::UnknownPeer(peer))?.link();
            let Some(link) = link.filter(|link| link.carries(label, outbound.size() as u32)) else {
                self.refused += 1;
                continue;
            };
            match link.send(label, head, payload) {
                Ok(true) => {}
                Ok(false) => return Ok(sent),
                Err(error) => (self.report)(&error.to_string()),
            }
        }
        Ok(batch.len())
    }

    fn receive(&mut self, max: usize, take: &mut dyn FnMut(Inbound<'_>)) -> Result<usize, WireError> {
        if self.polled_at.elapsed() >= POLL_INTERVALS[usize::from(!self.is_connecting)] {
            self.poll_tcp();
        }
        let (count, mut received) = (self.peers.len(), 0);
        self.turn = (self.turn + 1) % count.max(1);
        let now = self.now();
        for index in 0..count {
            let peer = (self.turn + index) % count;
            let Some(link) = self.peers[peer].as_mut().and_then(Peer::link) else { continue };
            let was_broken = link.broken;
            if let Err(error) = link.gather()
                && !was_broken
            {
                (self.report)(&error.to_string());
            }
            while received < max
                && let Some((label, bytes)) = link.take(&mut self.buffer)
            {
                let (peer, from) = (Some(peer as PeerId), None);
                take(Inbound { peer, from, label, at: now, ecn: false, bytes });
                received += 1;
            }
        }
        Ok(received)
    }

    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        self.poll_tcp();
        for link in self.peers.iter_mut().flatten().filter_map(Peer::link).filter(|link| !link.broken) {
            // First, so that no arrival is missed between the poll and the wait.
            if let Err(error) = link.device.arm().and_then(|()| link.gather()) {
                link.broken = true;
                (self.report)(&error.to_string());
            }
            if !link.arrived.is_empty() {
                return Ok(());
            }
        }
        let left = until.saturating_sub(self.now());
        if left > Time::ZERO {
            let (mut devices, mut sockets, mut calling) = (Vec::new(), Vec::new(), Vec::new());
            for peer in self.peers.iter().flatten() {
                match peer {
                    Peer::Linked(link) if !link.broken => {
                        devices.push(&link.device);
                        sockets.push(link.control.fd());
                    }
                    Peer::Called(call) => match call.fd() {
                        (fd, true) => calling.push(fd),
                        (fd, false) => sockets.push(fd),
                    },
                    Peer::Linked(_) | Peer::Unreachable { .. } => {}
                }
            }
            sockets.extend(self.callers.iter().map(|(control, _)| control.fd()));
            sockets.extend(self.listener.as_ref().map(AsFd::as_fd));
            let max = if self.is_connecting { Duration::from_millis(100) } else { Duration::MAX };
            sys::wait(&devices, &sockets, &calling, super::duration(left).min(max))?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for UcPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let peers = self.peers.iter().flatten().count();
        f.debug_struct("UcPath")
            .field("device", &self.own.name)
            .field("labels", &self.own.labels)
            .field("peers", &peers)
            .finish()
    }
}
