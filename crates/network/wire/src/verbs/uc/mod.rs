//! UC queue pairs as a [`Datapath`]: a message is a datagram, which arrives or does not; an endpoint's own packets and transport do the
//! rest. A label is a queue pair whose packets carry that flow label.
//!
//! Nothing here waits but [`Datapath::wait`] and what says so: peers are called bit by bit, whenever somebody sends, receives or waits.

mod call;
mod link;
mod own;

pub(super) use own::memory;

use super::{
    VerbsSettings,
    control::{Control, Frame},
    gid,
    sys::{self, Device, Service},
};
use crate::{Abilities, Datapath, Inbound, Label, Outbound, PeerId, Stamps, To, WireError};
use anabranch_random::Stream;
use anabranch_units::Time;
use call::{Call, Step};
use link::{Heard, Link};
use own::{Greeting, LONGEST, Own};
use std::{
    net::{IpAddr, SocketAddr, TcpListener},
    os::fd::AsFd,
    thread,
    time::{Duration, Instant},
};

/// Bytes that a packet has on the wire besides its datagram: Ethernet, IPv4, UDP, base transport header and invariant CRC.
pub const UC_OVERHEAD: u64 = 14 + 20 + 8 + 12 + 4;

/// Labels of a datapath: as many queue pairs for each peer.
const MOST_LABELS: u32 = 256;
/// How long callers, and what peers say over TCP, wait at most while datagrams keep coming: while somebody is being connected, and else.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(5)];
/// Callers that have not said yet who they are, and how long those may keep others waiting.
const MOST_CALLERS: usize = 64;
const HURRY: Duration = Duration::from_secs(1);

/// Callers of one address that are linked and have sent nothing yet: each has memory of ours.
const MAX_SILENT_PER_ADDRESS: usize = 32;

/// A peer by its number.
enum Peer {
    Called(Call),
    Linked(Box<Link>),
    /// It could not be reached, for this reason: what is sent to it is lost.
    Unreachable {
        at: SocketAddr,
        why: WireError,
    },
}

/// UC queue pairs, one per label and peer.
pub struct UcPath {
    opened: Instant,
    own: Own,
    /// Whose packets leave by: that of the listener.
    ip: Option<IpAddr>,
    most_peers: u32,
    listener: Option<TcpListener>,
    callers: Vec<(Control, Instant)>,
    /// When callers and peers were last heard, and whether some are being connected.
    attended: Instant,
    is_connecting: bool,
    peers: Vec<Option<Peer>>,
    /// Those that are forgotten when what is on its way to them has left, at the latest then.
    leaving: Vec<(Box<Link>, Instant)>,
    turn: usize,
    draws: Stream,
    buffer: Vec<u8>,
    refused: u64,
    /// Hears why somebody was sent away or a peer is of no more use.
    tell: Box<dyn FnMut(&str) + Send>,
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
            Peer::Linked(link) => !link.broken && !link.stands(),
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
    /// Opens a device for datagrams of so many bytes at most over so many labels; with an address it is listened at, so that others may
    /// become peers, `most_peers` at most.
    ///
    /// # Errors
    /// Where library or device are missing, or the address cannot be listened at.
    pub fn open(
        at: Option<SocketAddr>,
        settings: VerbsSettings,
        (labels, most_peers): (u32, u32),
        largest: usize,
        seed: u64,
    ) -> Result<Self, WireError> {
        let name = super::device(settings.device.as_deref())?;
        let index = gid::choose(&name, settings.gid_index, at.map(|at| at.ip()))?;
        if !(1..=MOST_LABELS).contains(&labels) || largest > LONGEST {
            return Err(WireError::Verbs(format!(
                "{labels} labels and datagrams of {largest} B: from 1 to {MOST_LABELS}, and {LONGEST} B at most"
            )));
        }
        // Opened once to see that it can be, with the memory of a peer.
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
            most_peers,
            listener,
            callers: Vec::new(),
            attended: Instant::now(),
            is_connecting: false,
            peers: Vec::new(),
            leaving: Vec::new(),
            turn: 0,
            draws: Stream::keyed(seed, std::process::id().into(), "first packets"),
            buffer: vec![0; LONGEST],
            refused: 0,
            tell: Box::new(|_| {}),
        })
    }

    /// Where it listens.
    pub fn at(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// The device.
    pub fn device(&self) -> &str {
        &self.own.name
    }

    /// Datagrams that had no queue pair to go by, as if the network had lost them.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Tells `hear` from now on why somebody was sent away, or a peer is of no more use.
    pub fn on_trouble(&mut self, hear: impl FnMut(&str) + Send + 'static) {
        self.tell = Box::new(hear);
    }

    /// Gives what is sent a traffic class, as whole as it is: the queue pairs of those who become peers from now on have it.
    pub fn set_traffic_class(&mut self, class: u8) {
        self.own.class = class;
    }

    /// Calls a peer and waits until it can be sent to, for as long as the settings say that it may be silent: for whoever has nothing else
    /// to do meanwhile, and wants to know why not.
    ///
    /// # Errors
    /// Where it cannot be reached.
    pub fn reach(&mut self, at: SocketAddr) -> Result<PeerId, WireError> {
        let peer = self.peer(at, &[])?;
        let place = peer as usize;
        loop {
            match self.peers[place].take() {
                Some(Peer::Unreachable { why, .. }) => return Err(why),
                Some(other) => {
                    let is_there = !other.is_connecting();
                    self.peers[place] = Some(other);
                    if is_there {
                        return Ok(peer);
                    }
                }
                None => return Err(WireError::UnknownPeer(peer)),
            }
            self.wait(self.now() + Time::from_ms(100))?;
        }
    }

    /// A free number.
    fn vacancy(&mut self) -> Option<usize> {
        if let Some(at) = self.peers.iter().position(Option::is_none) {
            return Some(at);
        }
        ((self.peers.len() as u32) < self.most_peers).then(|| {
            self.peers.push(None);
            self.peers.len() - 1
        })
    }

    /// Goes on with whatever is said over TCP: by those who call, those who are called, and peers who have something to say besides
    /// datagrams. Never waits.
    fn attend(&mut self) {
        self.attended = Instant::now();
        self.accept();
        let mut at = 0;
        while at < self.callers.len() {
            let (control, since) = &mut self.callers[at];
            match control.poll() {
                Ok(None) if since.elapsed() < self.own.settings.give_up => at += 1,
                Ok(Some(frame)) => {
                    let (control, _) = self.callers.remove(at);
                    if let Err(error) = self.welcome(control, frame) {
                        (self.tell)(&error.to_string());
                    }
                }
                // Whoever says nothing, or nonsense, is none of ours.
                Ok(None) | Err(_) => drop(self.callers.remove(at)),
            }
        }
        for place in 0..self.peers.len() {
            self.peers[place] = match self.peers[place].take() {
                Some(Peer::Called(call)) => Some(self.go_on(call)),
                Some(Peer::Linked(link)) => self.hear(link),
                other => other,
            };
        }
        self.is_connecting = !self.callers.is_empty() || self.peers.iter().flatten().any(Peer::is_connecting);
        self.leaving.retain_mut(|(link, until)| link.is_sending() && Instant::now() < *until);
    }

    /// Hears who calls. Whoever finds too many before him waits, unless one of them says nothing.
    fn accept(&mut self) {
        let Some(listener) = &self.listener else { return };
        loop {
            let is_full = self.callers.len() >= MOST_CALLERS;
            if is_full && self.callers[0].1.elapsed() < HURRY {
                return;
            }
            let Ok((stream, _)) = listener.accept() else { return };
            if is_full {
                self.callers.remove(0);
            }
            // One that is gone again says nothing.
            if let Ok(control) = Control::new(stream, self.own.settings.give_up) {
                self.callers.push((control, Instant::now()));
            }
        }
    }

    fn welcome(&mut self, mut control: Control, frame: Frame) -> Result<(), WireError> {
        let who = control.peer;
        let Frame::HelloDatagrams { gid, mtu, labels, largest } = frame else {
            control.post(&Frame::Refused)?;
            return Err(WireError::Verbs(format!(
                "{who} sends with the datapath verbs, and this end serves uc: both ends must be told the same"
            )));
        };
        let theirs = Greeting { gid, mtu, labels, largest };
        let ip = who.ip().to_canonical();
        let silent = self.peers.iter().flatten().filter(|peer| match peer {
            Peer::Linked(link) => !link.called && !link.known && link.at.ip().to_canonical() == ip,
            _ => false,
        });
        if silent.count() >= MAX_SILENT_PER_ADDRESS {
            control.post(&Frame::Refused)?;
            return Err(WireError::Verbs(format!("{who} has called {MAX_SILENT_PER_ADDRESS} times and sent nothing")));
        }
        let vacant = self.vacancy();
        let (Some(place), true) = (vacant, theirs.makes_sense()) else {
            control.post(&Frame::Refused)?;
            return Err(WireError::Verbs(format!("{who} asks for too much, or there are too many peers")));
        };
        let (mut link, Greeting { gid, mtu, labels, largest }) =
            Link::new(&self.own, &mut self.draws, control, &theirs, false)?;
        link.say(&Frame::WelcomeDatagrams { gid, mtu, labels, largest })?;
        self.peers[place] = Some(Peer::Linked(Box::new(link)));
        Ok(())
    }

    fn unreachable(&mut self, at: SocketAddr, why: WireError) -> Peer {
        (self.tell)(&why.to_string());
        Peer::Unreachable { at, why }
    }

    fn go_on(&mut self, call: Call) -> Peer {
        let at = call.at;
        let linked = |this: &mut Self, control, theirs: &Greeting| {
            let (mut link, _) = Link::new(&this.own, &mut this.draws, control, theirs, true)?;
            link.at = at;
            link.ask()?;
            Ok(Peer::Linked(Box::new(link)))
        };
        let done = match call.go_on(&self.own) {
            Ok(Step::Waits(call)) => Ok(Peer::Called(call)),
            Ok(Step::Welcomed(control, theirs)) => linked(self, control, &theirs),
            Err(error) => Err(error),
        };
        done.unwrap_or_else(|error| self.unreachable(at, error))
    }

    fn hear(&mut self, mut link: Box<Link>) -> Option<Peer> {
        let stood = link.stands();
        if !link.broken {
            let heard = match link.hear() {
                Heard::Fine if !link.stands() && link.age() >= self.own.settings.give_up => {
                    Heard::Gone(WireError::Verbs(format!("{} does not answer", link.at)))
                }
                heard => heard,
            };
            match heard {
                Heard::Fine => {}
                Heard::Gone(error) | Heard::Wrong(error) if link.called && !stood => {
                    return Some(self.unreachable(link.at, error));
                }
                Heard::Gone(_) => link.broken = true,
                Heard::Wrong(error) => {
                    link.broken = true;
                    (self.tell)(&error.to_string());
                }
            }
        }
        if link.broken && !link.known {
            // The last words of who has gone already.
            let _ = link.gather();
        }
        // Whom the owner does not know nobody else would forget: who has gone, or takes our memory and says nothing.
        let is_of_use = link.known || !link.broken && link.age() < self.own.settings.give_up || link.has_arrived();
        is_of_use.then_some(Peer::Linked(link))
    }
}

impl Drop for UcPath {
    fn drop(&mut self) {
        // What has been posted is to leave, the last acknowledgement above all; with its queue pair it would be gone.
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
        Abilities {
            largest: self.own.largest as usize,
            labels: self.own.labels,
            run: 1,
            stamps: Stamps::User,
            ecn: false,
            trimmed: false,
        }
    }

    fn now(&self) -> Time {
        super::since(self.opened)
    }

    /// Begins to call, where it is not known. Until the call is answered, and where it is not, datagrams to it are lost.
    fn peer(&mut self, at: SocketAddr, labels: &[Label]) -> Result<PeerId, WireError> {
        if let Some(label) = labels.iter().find(|label| **label >= self.own.labels) {
            return Err(WireError::UnknownLabel { label: *label, labels: self.own.labels });
        }
        if let Some(known) = self.peers.iter().position(|peer| peer.as_ref().is_some_and(|peer| peer.at() == at)) {
            return Ok(known as PeerId);
        }
        let place = self.vacancy().ok_or(WireError::TooManyPeers(self.most_peers))?;
        self.peers[place] = Some(match Call::begin(at, self.ip) {
            Ok(call) => self.go_on(call),
            Err(error) => self.unreachable(at, error),
        });
        self.is_connecting = true;
        Ok(place as PeerId)
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
            // Whoever is no peer has no queue pair, and has sent nothing.
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
                Err(error) => (self.tell)(&error.to_string()),
            }
        }
        Ok(batch.len())
    }

    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Inbound<'_>)) -> Result<usize, WireError> {
        if self.attended.elapsed() >= LOOKS[usize::from(!self.is_connecting)] {
            self.attend();
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
                (self.tell)(&error.to_string());
            }
            while received < most
                && let Some((label, bytes)) = link.take(&mut self.buffer)
            {
                let (peer, from) = (Some(peer as PeerId), None);
                take(Inbound { peer, from, label, at: now, ecn: false, trimmed: false, bytes });
                received += 1;
            }
        }
        Ok(received)
    }

    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        self.attend();
        for link in self.peers.iter_mut().flatten().filter_map(Peer::link).filter(|link| !link.broken) {
            // Asked for first, so that nothing arrives unheard between the look and the wait.
            if let Err(error) = link.device().arm().and_then(|()| link.gather()) {
                link.broken = true;
                (self.tell)(&error.to_string());
            }
            if link.has_arrived() {
                return Ok(());
            }
        }
        let left = until.saturating_sub(self.now());
        if left > Time::ZERO {
            let (mut devices, mut sockets, mut calling) = (Vec::new(), Vec::new(), Vec::new());
            for peer in self.peers.iter().flatten() {
                match peer {
                    Peer::Linked(link) if !link.broken => {
                        devices.push(link.device());
                        sockets.push(link.control().fd());
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
            // Callers and calls are given up after a while, though nothing comes of them.
            let most = if self.is_connecting { Duration::from_millis(100) } else { Duration::MAX };
            sys::wait(&devices, &sockets, &calling, super::duration(left).min(most))?;
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
