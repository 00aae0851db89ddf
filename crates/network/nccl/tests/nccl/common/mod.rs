//! Two nodes on a network in memory.
#![allow(unreachable_pub)]

use anabranch_endpoint::{Bytes as Message, Checksum, Endpoint, Key, Secret, Settings, header::Protection};
use anabranch_testkit::set_keys;
use anabranch_transport::TransportParameters;
use anabranch_units::{Rate, Time};
use anabranch_wire::{
    Driver,
    memory::{Link, Memory as Network, MemoryPath},
};
use nccl_net_anabranch::{
    Buffer, Connecting, Done, Failure, Memory, Node,
    handle::{Authentication, Carrier, Handle, MAX_OTHERS},
    ids::Id,
};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A write or read beyond its size panics, and so does the last drop while part of it is lent.
#[derive(Clone, Debug)]
pub struct Shared {
    bytes: Rc<RefCell<Vec<u8>>>,
    lent: Arc<AtomicUsize>,
    at: u64,
}

thread_local! {
    /// Memory to which a reliable network may write, by address.
    static OPEN: RefCell<BTreeMap<u64, Rc<RefCell<Vec<u8>>>>> = RefCell::default();
    static NEXT: Cell<u64> = const { Cell::new(1) };
}

/// Bytes between the addresses of two memories.
const APART: u64 = 1 << 32;

/// Writes as a NIC does; panics unless the memory is open.
pub fn write(to: u64, key: u32, bytes: &[u8]) {
    let (at, from) = (to / APART, (to % APART) as usize);
    assert_eq!(key, (at * APART) as u32, "the key of another memory");
    OPEN.with_borrow(|open| {
        let memory = open.get(&at).expect("a write to memory that is complete or gone");
        memory.borrow_mut()[from..][..bytes.len()].copy_from_slice(bytes);
    });
}

struct Lent(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let lent = self.lent.load(Ordering::Relaxed);
        let is_taken_back = Rc::strong_count(&self.bytes) == 1 && lent > 0;
        assert!(
            !is_taken_back || std::thread::panicking(),
            "{lent} pieces of memory that is gone are still on their way"
        );
    }
}

impl Shared {
    pub fn of(bytes: Vec<u8>) -> Self {
        Shared { bytes: Rc::new(RefCell::new(bytes)), lent: Arc::default(), at: NEXT.replace(NEXT.get() + 1) }
    }
    /// Until [`Shared::close`] peers may write to it.
    pub fn open(self) -> Self {
        OPEN.with_borrow_mut(|open| open.insert(self.at, Rc::clone(&self.bytes)));
        self
    }
    pub fn close(&self) {
        OPEN.with_borrow_mut(|open| open.remove(&self.at));
    }
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.borrow().clone()
    }
}

impl Memory for Shared {
    fn lend(&self, from: u64, bytes: usize) -> Message {
        self.lent.fetch_add(1, Ordering::Relaxed);
        let part = self.bytes.borrow()[from as usize..][..bytes].to_vec();
        Message::from_owner(Lent(part, Arc::clone(&self.lent)))
    }
    fn address(&self) -> u64 {
        self.at * APART
    }
    fn write(&mut self, to: u64, bytes: &[u8]) {
        self.bytes.borrow_mut()[to as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

pub type TestNode = Node<MemoryPath, Shared>;

pub fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + host as u8], 7000))
}

/// Of a listener with two labels and packets of 1000 B.
pub fn handle(at: SocketAddr, key: u64) -> Handle {
    let (carrier, authentication, others) = (Carrier::Udp, Authentication::Off, [None; MAX_OTHERS]);
    Handle { carrier, at, others, labels: 2, payload: 1000, key, authentication }
}

pub fn settings(seed: u64, mtu: u64, labels: u32) -> Settings {
    let mut transport = TransportParameters::named("uet").unwrap();
    let keys = format!("mtu={mtu}B header=106B rto_rule=measured early_loss=20us");
    set_keys(transport.parameters_mut(), &keys);
    Settings {
        transport,
        seed,
        secret: Secret::of_seed(seed),
        labels,
        rate: Rate::gbps(10),
        calibrations: 4,
        request_timeout: Time::from_us(100),
        peer_timeout: Time::from_us(1_000_000),
        max_message: (256 << 10) + 32,
        max_held: 1 << 21,
        max_streams: 256,
        ..Settings::default()
    }
}

/// The same over reliable queue pairs, with chunks of `mtu` bytes.
pub fn reliable(seed: u64, mtu: u64, labels: u32, span: u32) -> Settings {
    let mut settings = settings(seed, mtu, labels);
    let keys = "congestion_control=none window=100MB rto_rule=fixed rto=1s early_loss=never";
    set_keys(settings.transport.parameters_mut(), keys);
    let max_message = settings.max_message.max(mtu);
    Settings { is_reliable: true, ecn: false, checksum: Checksum::Never, span, max_message, ..settings }
}

pub struct Pair<M = Shared> {
    pub network: Network,
    pub nodes: [Node<MemoryPath, M>; 2],
    /// Authentication in the handles of each node.
    pub authentications: [Authentication; 2],
}

impl<M: Memory> Pair<M> {
    pub fn of(seed: u64, link: &Link, settings: [Settings; 2]) -> Self {
        let network = Network::new(seed, settings[0].labels, link.clone());
        let mut host = 0;
        let nodes = settings.map(|settings| {
            let path = network.host(address(host));
            host += 1;
            Node::new(Driver::new(Endpoint::new(settings), path))
        });
        Pair { network, nodes, authentications: [Authentication::Off; 2] }
    }

    /// Creates a pair in which each node has a secret of its own, with which the other one connects.
    pub fn authenticated(seed: u64, link: &Link, settings: [Settings; 2], protections: [Protection; 2]) -> Self {
        let secret = |host: usize| [host as u8 + 1; 32];
        let mut host = 0;
        let settings = settings.map(|settings| {
            host += 1;
            Settings { key: Some(Key::of(&secret(host - 1))), protection: protections[host - 1], ..settings }
        });
        let pair = Pair::of(seed, link, settings);
        Pair { authentications: [0, 1].map(|host| Authentication::Job(secret(host))), ..pair }
    }

    pub fn listen(&mut self, host: usize) -> (Id, Handle) {
        let (id, key) = self.nodes[host].listen(0).unwrap();
        let settings = self.nodes[host].driver().endpoint().0.settings();
        let (labels, payload) = (settings.labels as u16, settings.mtu() as u32);
        (id, Handle { labels, payload, authentication: self.authentications[host], ..handle(address(host), key) })
    }

    /// Lets both nodes work, then advances the clock; returns `false` if it does not advance.
    pub fn step(&mut self) -> bool {
        let mut next: Option<Time> = None;
        for node in &mut self.nodes {
            let due = node.work().ok().flatten();
            next = [next, due].into_iter().flatten().min();
        }
        let now = self.network.now();
        self.network.advance(next.unwrap_or(Time::MAX).max(now + Time::from_ps(1)).min(now + Time::from_us(1000)));
        self.network.now() > now
    }

    /// Steps until `look` returns a value; panics after some seconds of simulated time.
    pub fn until<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let limit = self.network.now() + Time::from_us(8_000_000);
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(self.network.now() < limit, "{what}");
            self.step();
        }
    }

    /// Connects a host to the other one; returns sender and receiver.
    pub fn connect(&mut self, from: usize) -> (Id, Id) {
        let (listener, handle) = self.listen(1 - from);
        let (mut attempt, mut sender, mut receiver) = (None, None, None);
        let ends = self.until("a connection", |pair| {
            if sender.is_none() {
                match pair.nodes[from].connect(&handle, attempt, 0, &[]).unwrap() {
                    Connecting::Wait(id) => attempt = Some(id),
                    Connecting::Done(id) => sender = Some(id),
                }
            }
            receiver = receiver.or(pair.nodes[1 - from].accept(listener).unwrap());
            sender.zip(receiver)
        });
        self.nodes[1 - from].close_listener(listener).unwrap();
        ends
    }

    pub fn refused(&mut self, from: usize, handle: &Handle) -> Failure {
        let mut attempt = None;
        self.until("a refusal", |pair| match pair.nodes[from].connect(handle, attempt, 0, &[]) {
            Ok(Connecting::Wait(id)) => {
                attempt = Some(id);
                None
            }
            Ok(Connecting::Done(_)) => panic!("connected"),
            Err(failure) => Some(failure),
        })
    }

    pub fn finish(&mut self, host: usize, request: Id) -> Result<Done, Failure> {
        self.until("a request", |pair| pair.nodes[host].test(request).transpose())
    }
}

impl Pair {
    pub fn new(seed: u64, link: &Link, settings: [Settings; 2]) -> Self {
        Pair::of(seed, link, settings)
    }

    /// Creates a pair on a fast network without faults.
    pub fn usual(seed: u64) -> Self {
        let link = Link::new(Rate::gbps(10), Time::from_us(5));
        Pair::new(seed, &link, [settings(seed, 1000, 4), settings(seed + 1, 1000, 4)])
    }

    pub fn receive(&mut self, host: usize, receiver: Id, size: usize, tag: i32) -> (Id, Shared) {
        let memory = Shared::of(vec![0; size]);
        let buffer = Buffer { memory: memory.clone(), size: size as u64, tag };
        (self.nodes[host].receive(receiver, vec![buffer]).unwrap(), memory)
    }

    pub fn send(&mut self, host: usize, sender: Id, bytes: &[u8], tag: i32) -> Result<Id, Failure> {
        let memory = Shared::of(bytes.to_vec());
        self.until("room", |pair| pair.nodes[host].send(sender, memory.clone(), bytes.len() as u64, tag).transpose())
    }
}
