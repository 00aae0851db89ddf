//! Network in memory: hosts joined by links that a label selects, and a virtual clock that does not advance while hosts
//! work. Every event is a function of the seed.

mod link;

pub use link::{Counted, Link, Share};

use crate::{Abilities, Datapath, Driver, Inbound, Label, Outbound, PeerId, To, WireError};
use anabranch_random::Stream;
use anabranch_units::Time;
use link::{Delivery, LinkState};
use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
    net::SocketAddr,
    rc::Rc,
};

#[derive(Clone, Debug)]
struct Datagram {
    from: u32,
    label: Label,
    at: Time,
    ecn: bool,
    bytes: Vec<u8>,
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
        })))
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
        let now = self.now;
        let deliveries = self.link(from, to, outbound.label).send(now, outbound.size(), outbound.ecn);
        for delivery in deliveries.into_iter().flatten() {
            let Delivery { at, ecn, kept } = delivery;
            let mut bytes: Vec<u8> = outbound.head.iter().chain(outbound.payload).take(kept).copied().collect();
            self.link(from, to, outbound.label).damage(&mut bytes);
            let datagram = Datagram { from, label: outbound.label, at, ecn, bytes };
            self.in_flight.insert(self.sent, datagram);
            self.arrivals.push(Reverse((at, self.sent, to)));
            self.sent += 1;
        }
        Ok(())
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
                let peers = &world.hosts[self.host as usize].peers;
                let peer = peers.iter().position(|peer| *peer == Some(datagram.from)).map(|peer| peer as PeerId);
                let from = Some(world.hosts[datagram.from as usize].at.into());
                (datagram, peer, from)
            };
            let Datagram { label, at, ecn, bytes, .. } = &datagram;
            take(Inbound { peer, from, label: *label, at: *at, ecn: *ecn, bytes });
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
