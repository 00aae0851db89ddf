//! Queue pairs as a [`Datapath`]: a label is a queue pair whose packets carry that flow label. A message is a datagram;
//! reliable queue pairs also write to registered memory of a peer, and report what has become of each datagram.
//! Connections to peers proceed in calls that send, receive or wait; only [`Datapath::wait`] and functions documented as
//! blocking wait.

mod call;
mod link;
mod own;
mod regions;
mod trials;

pub(super) use own::capacity;

use super::{
    VerbsSettings,
    control::{self, Control, Frame, Greeting},
    gid,
    sys::{self, Domain},
};
use crate::{Abilities, Datapath, Inbound, Kind, Label, Outbound, PeerId, Region, To, WireError};
use anabranch_random::Stream;
use anabranch_units::Time;
use call::{Call, Step};
use link::{Link, LinkStatus};
use own::{Own, max_datagram};
use regions::Regions;
use std::{
    net::{IpAddr, SocketAddr, TcpListener},
    os::fd::AsFd,
    thread,
    time::{Duration, Instant},
};

/// Bytes of a packet on the wire besides its datagram: Ethernet, IPv4, UDP, base transport header and invariant CRC.
pub const OVERHEAD: u64 = 14 + 20 + 8 + 12 + 4;

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
        /// The owner was notified, or queue pairs are unreliable and report no loss.
        is_told: bool,
    },
}

/// What an endpoint requires of its queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimensions {
    /// Labels, and maximum peers.
    pub labels: u32,
    pub peers: u32,
    /// Bytes of the longest datagram that is not written to memory of the peer.
    pub datagram: usize,
    /// Bytes of the longest probe over reliable queue pairs.
    pub probe: usize,
}

/// Queue pairs to each peer.
pub struct VerbsPath {
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
    regions: Regions,
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

impl VerbsPath {
    /// Opens a device. With an address it listens there for peers.
    ///
    /// # Errors
    /// Fails if library or device are missing, or if it cannot listen at the address.
    pub fn open(
        at: Option<SocketAddr>,
        settings: VerbsSettings,
        dimensions: Dimensions,
        seed: u64,
    ) -> Result<Self, WireError> {
        let name = super::device(settings.device.as_deref())?;
        let index = gid::choose(&name, settings.gid_index, at.map(|at| at.ip()))?;
        let Dimensions { labels, peers: max_peers, datagram, probe } = dimensions;
        let (is_reliable, most) = (settings.is_reliable, max_datagram(settings.is_reliable));
        if !(1..=MAX_LABELS).contains(&labels) || datagram.max(probe) > most {
            return Err(WireError::Verbs(format!(
                "{labels} labels and datagrams of {} B: from 1 to {MAX_LABELS}, and {most} B at most",
                datagram.max(probe)
            )));
        }
        let domain = Domain::open(&name)?;
        let queues = if is_reliable { settings.queue_pairs.min(labels) } else { labels };
        let (largest, probe) = (datagram as u32, if is_reliable { probe as u32 } else { 0 });
        let own = Own { name, domain, settings, labels, queues, largest, probe, class: 0 };
        // Fails early if the memory of a peer is not available.
        own.greeting(index)?;
        own.check_memory(index)?;
        let listener = match at {
            Some(at) => {
                let system = |source| WireError::System { what: format!("cannot listen at {at}"), source };
                let listener = TcpListener::bind(at).map_err(system)?;
                listener.set_nonblocking(true).map_err(system)?;
                Some(listener)
            }
            None => None,
        };
        Ok(VerbsPath {
            opened: Instant::now(),
            own,
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
            buffer: vec![0; most.min(datagram.max(1 << 14))],
            regions: Regions::default(),
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

    /// Returns `true` for RC queue pairs.
    pub fn is_reliable(&self) -> bool {
        self.own.is_reliable()
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

    fn link(&mut self, peer: PeerId) -> Option<&mut Link> {
        self.peers.get_mut(peer as usize)?.as_mut()?.link()
    }

    /// Returns how often idle queue pairs have changed their labels, and the reason of the last failure of the hardware.
    pub fn relabelled(&self) -> (u64, Option<String>) {
        let links = || {
            self.peers.iter().flatten().filter_map(|peer| match peer {
                Peer::Linked(link) => Some(link),
                _ => None,
            })
        };
        let reason = links().filter_map(|link| link.last_error).next_back();
        (links().map(|link| link.relabelled).sum(), reason.map(|reason| self.own.domain.meaning(reason)))
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
            if let Ok(control) = Control::new(stream) {
                self.callers.push((control, Instant::now()));
            }
        }
    }

    fn welcome(&mut self, mut control: Control, frame: Frame) -> Result<(), WireError> {
        let caller = control.peer;
        let Frame::Hello(theirs) = frame else { return Err(control::unknown(caller)) };
        if (theirs.probe > 0) != self.own.is_reliable() {
            control.post(&Frame::Refused)?;
            let [of_theirs, of_ours] = if self.own.is_reliable() { ["uc", "rc"] } else { ["rc", "uc"] };
            return Err(WireError::Verbs(format!(
                "{caller} uses the datapath {of_theirs}, this endpoint {of_ours}: both need the same datapath"
            )));
        }
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
        let (Some(slot), true) = (vacant, self.own.fits(&theirs)) else {
            control.post(&Frame::Refused)?;
            return Err(WireError::Verbs(format!(
                "{caller} has invalid labels or datagram sizes, or there are too many peers"
            )));
        };
        let (mut link, ours) = Link::new(&self.own, &mut self.draws, control, &theirs, false)?;
        link.control.post(&Frame::Welcome(ours))?;
        self.peers[slot] = Some(Peer::Linked(Box::new(link)));
        Ok(())
    }

    fn unreachable(&mut self, at: SocketAddr, reason: WireError) -> Peer {
        (self.report)(&reason.to_string());
        Peer::Unreachable { at, reason, is_told: !self.own.is_reliable() }
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
            let status = match link.poll_control(self.own.settings.peer_timeout, Instant::now()) {
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
            let _ = link.gather(Instant::now());
        }
        // The owner releases only peers that it has seen; others are dropped here if they have disconnected or stay silent.
        let is_of_use =
            link.known || !link.broken && link.began.elapsed() < self.own.settings.peer_timeout || link.has_events();
        is_of_use.then_some(Peer::Linked(link))
    }
}

impl Drop for VerbsPath {
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

impl Datapath for VerbsPath {
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
        let now = Instant::now();
        for (sent, outbound) in batch.iter().enumerate() {
            let (To::Peer(peer), false) = (outbound.to, outbound.head.is_empty()) else { continue };
            let known = self.peers.get_mut(peer as usize).and_then(Option::as_mut);
            let link = known.ok_or(WireError::UnknownPeer(peer))?.link();
            let Some(link) = link.filter(|link| link.carries(outbound.label, outbound.size() as u32)) else {
                self.refused += 1;
                continue;
            };
            match link.send(outbound, &|at, bytes| self.regions.keys(at, bytes).map(|(own, _)| own), now) {
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
        let (now, clock) = (self.now(), Instant::now());
        for index in 0..count {
            let peer = (self.turn + index) % count;
            let (id, from) = (Some(peer as PeerId), None);
            let mut inbound = Inbound { peer: id, from, label: 0, at: now, ecn: false, kind: Kind::Gone, bytes: &[] };
            let link = match &mut self.peers[peer] {
                Some(Peer::Linked(link)) => link,
                Some(Peer::Unreachable { is_told, .. }) => {
                    if !std::mem::replace(is_told, true) {
                        take(inbound);
                    }
                    continue;
                }
                _ => continue,
            };
            let was_broken = link.broken;
            if let Err(error) = link.gather(clock) {
                link.broken = true;
                if !was_broken {
                    (self.report)(&error.to_string());
                }
            }
            while received < max
                && let Some((label, kind, bytes)) = link.take(&mut self.buffer)
            {
                (inbound.label, inbound.kind) = (label, kind);
                take(Inbound { bytes, ..inbound });
                received += 1;
            }
            if self.own.settings.is_reliable && link.broken && !link.has_events() && !link.is_told {
                link.is_told = true;
                take(Inbound { kind: Kind::Gone, ..inbound });
            }
        }
        Ok(received)
    }

    fn register(&mut self, region: Region) -> Result<bool, WireError> {
        // Hardware takes no empty region.
        if self.own.is_reliable() && region.bytes > 0 {
            self.regions.add(&self.own.domain, region)?;
        }
        Ok(self.own.is_reliable())
    }

    fn deregister(&mut self, region: Region) {
        self.regions.remove(region);
    }

    fn key(&self, at: u64, bytes: u64) -> Option<u32> {
        self.regions.keys(at, bytes).map(|(_, remote)| remote)
    }

    fn revoke(&mut self, peer: PeerId, stream: u32, revoked: bool) {
        if let Some(link) = self.link(peer) {
            link.revoke(stream, revoked, Instant::now());
        }
    }

    fn cut(&mut self, peer: PeerId) {
        if let Some(link) = self.link(peer) {
            link.cut();
        }
    }

    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        self.poll_tcp();
        for link in self.peers.iter_mut().flatten().filter_map(Peer::link).filter(|link| !link.broken) {
            // First, so that no arrival is missed between the poll and the wait.
            if let Err(error) = link.device.arm().and_then(|()| link.gather(Instant::now())) {
                link.broken = true;
                (self.report)(&error.to_string());
            }
            if link.has_events() {
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
            let now = Instant::now();
            let connecting = self.is_connecting.then_some(Duration::from_millis(100));
            let links = self.peers.iter().flatten().filter_map(|peer| match peer {
                Peer::Linked(link) if !link.broken => link.poll_interval(now),
                _ => None,
            });
            let max = links.chain(connecting).min().unwrap_or(Duration::MAX);
            sys::wait(&devices, &sockets, &calling, super::duration(left).min(max))?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for VerbsPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let peers = self.peers.iter().flatten().count();
        f.debug_struct("VerbsPath")
            .field("device", &self.own.name)
            .field("labels", &self.own.labels)
            .field("peers", &peers)
            .finish()
    }
}
