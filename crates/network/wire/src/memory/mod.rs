//! Network in memory: hosts joined by links that a label selects, and a virtual clock that does not advance while hosts
//! work. Every event is a function of the seed.

mod link;

pub use link::{Counted, Link, Share};

use crate::{Abilities, Datapath, Driver, Inbound, Kind, Label, Outbound, PeerId, Region, To, WireError};
use anabranch_endpoint::{Write, header};
use anabranch_random::Stream;
use anabranch_units::Time;
use link::{Delivery, LinkState};
use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque},
    net::SocketAddr,
    rc::Rc,
};

#[derive(Clone, Debug)]
struct Datagram {
    from: u32,
    label: Label,
    at: Time,
    ecn: bool,
    kind: Kind,
    bytes: Vec<u8>,
    /// Written to memory instead, with this stream's number.
    write: Option<(Write, u32)>,
}

/// What a reliable network writes to memory of its hosts: address, key, bytes.
type Sink = Box<dyn FnMut(u64, u32, &[u8])>;

struct Reliable {
    sink: Sink,
    /// Host, peer, and stream whose writes are not wanted.
    revoked: BTreeSet<(u32, PeerId, u32)>,
}

impl std::fmt::Debug for Reliable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reliable").field("revoked", &self.revoked).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct World {
    seed: u64,
    now: Time,
    labels: u32,
    usual: Link,
    links: BTreeMap<(u32, u32, Label), LinkState>,
    /// Labels that use the link of another label.
    shared: BTreeMap<(u32, u32, Label), Label>,
    /// Time, order of sending, host; and the datagrams by order of sending.
    arrivals: BinaryHeap<Reverse<(Time, u64, u32)>>,
    in_flight: BTreeMap<u64, Datagram>,
    sent: u64,
    hosts: Vec<Host>,
    /// `None`: losses are not reported.
    reliable: Option<Reliable>,
}

#[derive(Debug)]
struct Host {
    at: SocketAddr,
    peers: Vec<Option<u32>>,
    arrived: VecDeque<Datagram>,
}

#[derive(Clone, Debug)]
pub struct Memory(Rc<RefCell<World>>);

impl Memory {
    /// Returns a network without hosts. Each pair has `labels` links in each direction, `usual` unless they are set.
    pub fn new(seed: u64, labels: u32, usual: Link) -> Self {
        Memory(Rc::new(RefCell::new(World {
            seed,
            now: Time::ZERO,
            labels,
            usual,
            links: BTreeMap::new(),
            shared: BTreeMap::new(),
            arrivals: BinaryHeap::new(),
            in_flight: BTreeMap::new(),
            sent: 0,
            hosts: Vec::new(),
            reliable: None,
        })))
    }

    /// Makes it a network of reliable queue pairs, which report what has become of each datagram: a lost one as its queue pair fails,
    /// a duplicate as a repeated report. `sink` receives writes: address, key, bytes.
    pub fn make_reliable(&self, sink: impl FnMut(u64, u32, &[u8]) + 'static) {
        self.0.borrow_mut().reliable = Some(Reliable { sink: Box::new(sink), revoked: BTreeSet::new() });
    }

    /// Adds a host with this address.
    pub fn host(&self, at: SocketAddr) -> MemoryPath {
        let mut world = self.0.borrow_mut();
        world.hosts.push(Host { at, peers: Vec::new(), arrived: VecDeque::new() });
        MemoryPath { world: Rc::clone(&self.0), host: world.hosts.len() as u32 - 1 }
    }

    /// Sets the link of a label between two hosts, numbered in order of creation.
    pub fn set(&self, from: u32, to: u32, label: Label, link: Link) {
        self.0.borrow_mut().link(from, to, label).set(link);
    }

    /// Makes labels share the link of the first, as switches do that hash them alike.
    pub fn share(&self, from: u32, to: u32, labels: &[Label]) {
        let mut world = self.0.borrow_mut();
        if let Some((first, others)) = labels.split_first() {
            world.shared.extend(others.iter().map(|other| ((from, to, *other), *first)));
        }
    }

    pub fn counted(&self, from: u32, to: u32, label: Label) -> Counted {
        self.0.borrow_mut().link(from, to, label).counted()
    }

    pub fn now(&self) -> Time {
        self.0.borrow().now
    }

    /// Returns the time of the next arrival at any host.
    pub fn next_arrival(&self) -> Option<Time> {
        self.0.borrow().next_arrival()
    }

    /// Advances the clock to `time`, or to the next arrival if that is earlier.
    pub fn advance(&self, time: Time) {
        self.0.borrow_mut().advance(time);
    }

    /// Returns the number of datagrams under way or waiting at their hosts.
    pub fn in_flight(&self) -> usize {
        let world = self.0.borrow();
        world.in_flight.len() + world.hosts.iter().map(|host| host.arrived.len()).sum::<usize>()
    }
}

impl World {
    fn link(&mut self, from: u32, to: u32, label: Label) -> &mut LinkState {
        let World { seed, usual, links, shared, .. } = self;
        let label = shared.get(&(from, to, label)).copied().unwrap_or(label);
        links.entry((from, to, label)).or_insert_with(|| {
            let key = u64::from(from) << 40 | u64::from(to) << 16 | u64::from(label);
            LinkState::new(usual.clone(), Stream::keyed(*seed, key, "memory link"))
        })
    }

    fn next_arrival(&self) -> Option<Time> {
        self.arrivals.peek().map(|Reverse((at, ..))| *at)
    }

    fn advance(&mut self, time: Time) {
        self.now = self.now.max(self.next_arrival().unwrap_or(time).min(time));
        while let Some(&Reverse((at, number, to))) = self.arrivals.peek()
            && at <= self.now
        {
            self.arrivals.pop();
            if let Some(datagram) = self.in_flight.remove(&number) {
                if let (Some((write, _)), Some(reliable)) = (datagram.write, &mut self.reliable) {
                    (reliable.sink)(write.to, write.key, &datagram.bytes);
                }
                self.hosts[to as usize].arrived.push_back(datagram);
            }
        }
    }

    fn send(&mut self, from: u32, outbound: &Outbound<'_>) -> Result<(), WireError> {
        let to = match outbound.to {
            To::Peer(peer) => {
                let known = self.hosts[from as usize].peers.get(peer as usize).copied().flatten();
                known.ok_or(WireError::UnknownPeer(peer))?
            }
            // An unused address: lost.
            To::Address(to) => match self.hosts.iter().position(|host| host.at == to.at) {
                Some(to) => to as u32,
                None => return Ok(()),
            },
        };
        if self.reliable.is_some() {
            self.send_reliably(from, to, outbound);
            return Ok(());
        }
        let now = self.now;
        let deliveries = self.link(from, to, outbound.label).send(now, outbound.size(), outbound.ecn);
        for delivery in deliveries.into_iter().flatten() {
            let Delivery { at, ecn, kept } = delivery;
            let mut bytes: Vec<u8> = outbound.head.iter().chain(outbound.payload).take(kept).copied().collect();
            self.link(from, to, outbound.label).damage(&mut bytes);
            let (label, kind) = (outbound.label, Kind::Datagram);
            self.deliver(to, Datagram { from, label, at, ecn, kind, bytes, write: None });
        }
        Ok(())
    }

    fn deliver(&mut self, to: u32, datagram: Datagram) {
        self.arrivals.push(Reverse((datagram.at, self.sent, to)));
        self.in_flight.insert(self.sent, datagram);
        self.sent += 1;
    }

    fn send_reliably(&mut self, from: u32, to: u32, outbound: &Outbound<'_>) {
        let (now, label, head) = (self.now, outbound.label, outbound.head);
        let name = head[..head.len().min(header::DATA_HEADER)].to_vec();
        let stream = name.get(12..16).map_or(0, |stream| u32::from_be_bytes(stream.try_into().unwrap_or_default()));
        let report = |at, arrived| {
            let (kind, bytes) = (Kind::Completed { arrived }, name.clone());
            Datagram { from: to, label, at, ecn: false, kind, bytes, write: None }
        };
        let peer = self.hosts[from as usize].peers.iter().position(|peer| *peer == Some(to)).unwrap_or(0) as PeerId;
        let is_revoked = self.reliable.as_ref().is_some_and(|of| of.revoked.contains(&(from, peer, stream)));
        if is_revoked && outbound.write.is_some() {
            return self.deliver(from, report(now, true));
        }
        let back = self.usual.delay.max(Time::from_us(1));
        let [first, second] = self.link(from, to, label).send(now, outbound.size(), false);
        let Some(Delivery { at, .. }) = first else { return self.deliver(from, report(now + back * 10, false)) };
        if !header::is_probe(head) {
            let (kind, bytes) = match outbound.write {
                Some(write) => {
                    let bytes = outbound.payload.len() as u64;
                    (Kind::Written { notice: write.notice, bytes }, outbound.payload.to_vec())
                }
                None => (Kind::Datagram, [head, outbound.payload].concat()),
            };
            let write = outbound.write.map(|write| (write, stream));
            self.deliver(to, Datagram { from, label, at, ecn: false, kind, bytes, write });
        }
        self.deliver(from, report(at + back, true));
        if let Some(again) = second {
            self.deliver(from, report(again.at + back * 2, true));
        }
    }

    /// Withdraws writes under way between two hosts that are of a stream, or all.
    fn withdraw(&mut self, from: u32, to: u32, stream: Option<u32>) {
        let World { in_flight, arrivals, .. } = self;
        let numbers: BTreeSet<u64> =
            arrivals.iter().filter(|Reverse((.., host))| *host == to).map(|Reverse((_, number, _))| *number).collect();
        in_flight.retain(|number, datagram| {
            let is_it = datagram.write.is_some_and(|(_, of)| stream.is_none_or(|stream| stream == of));
            !(is_it && datagram.from == from && numbers.contains(number))
        });
    }

    fn peer_of(&mut self, host: u32, other: u32) -> PeerId {
        let peers = &mut self.hosts[host as usize].peers;
        let slot = |other| peers.iter().position(|peer| *peer == other);
        let at = slot(Some(other)).or_else(|| slot(None)).unwrap_or(peers.len());
        if at == peers.len() {
            peers.push(None);
        }
        peers[at] = Some(other);
        at as PeerId
    }
}

/// Host of a network in memory.
#[derive(Debug)]
pub struct MemoryPath {
    world: Rc<RefCell<World>>,
    host: u32,
}

impl Datapath for MemoryPath {
    fn abilities(&self) -> Abilities {
        Abilities { largest: 65_507, labels: self.world.borrow().labels, run: 1 }
    }

    fn now(&self) -> Time {
        self.world.borrow().now
    }

    fn peer(&mut self, at: SocketAddr, _labels: &[Label]) -> Result<PeerId, WireError> {
        let mut world = self.world.borrow_mut();
        let other = world.hosts.iter().position(|host| host.at == at).ok_or(WireError::UnknownPeer(u32::MAX))?;
        Ok(world.peer_of(self.host, other as u32))
    }

    fn peer_at(&self, peer: PeerId) -> Option<SocketAddr> {
        let world = self.world.borrow();
        let other = world.hosts[self.host as usize].peers.get(peer as usize).copied().flatten()?;
        Some(world.hosts[other as usize].at)
    }

    fn register(&mut self, _region: Region) -> Result<bool, WireError> {
        Ok(self.world.borrow().reliable.is_some())
    }

    fn key(&self, at: u64, _bytes: u64) -> Option<u32> {
        self.world.borrow().reliable.as_ref().map(|_| at as u32)
    }

    fn revoke(&mut self, peer: PeerId, stream: u32, revoked: bool) {
        let mut world = self.world.borrow_mut();
        let to = world.hosts[self.host as usize].peers.get(peer as usize).copied().flatten();
        let (Some(reliable), Some(to)) = (&mut world.reliable, to) else { return };
        if revoked {
            reliable.revoked.insert((self.host, peer, stream));
            world.withdraw(self.host, to, Some(stream));
        } else {
            reliable.revoked.remove(&(self.host, peer, stream));
        }
    }

    fn cut(&mut self, peer: PeerId) {
        let mut world = self.world.borrow_mut();
        if let Some(to) = world.hosts[self.host as usize].peers.get(peer as usize).copied().flatten() {
            world.withdraw(self.host, to, None);
            world.withdraw(to, self.host, None);
        }
    }

    fn release(&mut self, peer: PeerId) {
        let mut world = self.world.borrow_mut();
        if let Some(slot) = world.hosts[self.host as usize].peers.get_mut(peer as usize) {
            *slot = None;
        }
    }

    fn send(&mut self, batch: &[Outbound<'_>]) -> Result<usize, WireError> {
        let mut world = self.world.borrow_mut();
        for outbound in batch {
            world.send(self.host, outbound)?;
        }
        Ok(batch.len())
    }

    fn receive(&mut self, max: usize, take: &mut dyn FnMut(Inbound<'_>)) -> Result<usize, WireError> {
        for received in 0..max {
            let (datagram, peer, from) = {
                let mut world = self.world.borrow_mut();
                let Some(datagram) = world.hosts[self.host as usize].arrived.pop_front() else { return Ok(received) };
                if world.reliable.is_some() {
                    world.peer_of(self.host, datagram.from);
                }
                let peers = &world.hosts[self.host as usize].peers;
                let peer = peers.iter().position(|peer| *peer == Some(datagram.from)).map(|peer| peer as PeerId);
                let from = world.hosts[datagram.from as usize].at.into();
                let from = world.reliable.is_none().then_some(from);
                (datagram, peer, from)
            };
            let Datagram { label, at, ecn, kind, bytes, .. } = &datagram;
            take(Inbound { peer, from, label: *label, at: *at, ecn: *ecn, kind: *kind, bytes });
        }
        Ok(max)
    }

    /// Stops at the next arrival, when any host may have work.
    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        self.world.borrow_mut().advance(until);
        Ok(())
    }
}

/// Works for all hosts until `done`, called after each step, returns `true` or the clock reaches `until`; returns the
/// last result.
pub fn run(
    network: &Memory,
    hosts: &mut [Driver<MemoryPath>],
    until: Time,
    done: &mut dyn FnMut(&mut [Driver<MemoryPath>]) -> bool,
) -> Result<bool, WireError> {
    loop {
        let mut next = until;
        for host in hosts.iter_mut() {
            next = host.work()?.map_or(next, |time| time.min(next));
        }
        if done(hosts) {
            return Ok(true);
        }
        if network.now() >= until {
            return Ok(false);
        }
        network.advance(next);
    }
}
