//! Two endpoints on a network in memory.
#![allow(dead_code, unreachable_pub)]

use anabranch_endpoint::{Bytes, Endpoint, Event, Settings};
use anabranch_random::Stream;
use anabranch_testkit::set_keys;
use anabranch_transport::TransportParameters;
use anabranch_units::Time;
use anabranch_wire::{
    Datapath, Driver,
    memory::{Link, Memory, MemoryPath, run},
    transfer::{self, Received},
    udp::UdpPath,
};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
};

pub fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 7000))
}

/// The transport `uet` with these keys.
pub fn uet(keys: &str) -> TransportParameters {
    let mut uet = TransportParameters::named("uet").unwrap();
    set_keys(uet.parameters_mut(), keys);
    uet
}

/// An endpoint on free ports of the loopback interface.
pub fn driver(settings: Settings) -> Driver<UdpPath> {
    let path = UdpPath::open(SocketAddr::from(([127, 0, 0, 1], 0)), settings.labels, 64).unwrap();
    Driver::new(Endpoint::new(settings), path)
}

/// Serves at an endpoint of its own until `body`, which gets its address, is over. Returns what arrived.
pub fn served<D: Datapath, R>(
    make: impl FnOnce() -> (Driver<D>, SocketAddr) + Send,
    body: impl FnOnce(SocketAddr) -> R,
) -> (R, Vec<Received>) {
    let (is_over, (tell, address)) = (AtomicBool::new(false), mpsc::channel());
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let server = scope.spawn(move || {
            let (mut driver, at) = make();
            tell.send(at).unwrap();
            let mut all = Vec::new();
            let mut poll = |received: Option<&Received>| {
                all.extend(received.copied());
                !is_over.load(Ordering::Relaxed)
            };
            transfer::serve(&mut driver, false, &mut poll, &mut |_, _, _| ()).unwrap();
            all
        });
        let at = address.recv().unwrap();
        // A failed test ends the server too.
        let result = catch_unwind(AssertUnwindSafe(|| body(at)));
        is_over.store(true, Ordering::Relaxed);
        let all = server.join().unwrap();
        (result.unwrap_or_else(|panic| resume_unwind(panic)), all)
    })
}

/// An endpoint for [`served`] on free ports of the loopback interface.
pub fn server(settings: Settings) -> impl FnOnce() -> (Driver<UdpPath>, SocketAddr) + Send {
    move || {
        let mut driver = driver(settings);
        let at = driver.datapath().at();
        (driver, at)
    }
}

/// Bytes that differ.
pub fn drawn(seed: u64) -> impl FnMut(&mut [u8]) {
    let mut draws = Stream::keyed(seed, 0, "bytes");
    move |bytes| bytes.iter_mut().for_each(|byte| *byte = draws.bits() as u8)
}

/// Host 0 connects to host 1.
pub struct Pair {
    pub network: Memory,
    pub hosts: Vec<Driver<MemoryPath>>,
    /// By stream and in order.
    pub received: [BTreeMap<u32, Vec<Vec<u8>>>; 2],
    /// Acknowledged messages, with the time.
    pub sent: [Vec<(u32, u64, Time)>; 2],
    pub times: [Vec<Time>; 2],
    pub lost: Vec<Event>,
    /// Reports that the path drops what is ECN-capable.
    pub drops_ecn: [usize; 2],
    /// Reports of silent labels.
    pub silent: usize,
    /// Number of the first message of each stream.
    pub first: u64,
    /// Maximum of either host: bytes, and packets, messages and timers.
    pub held: (u64, usize),
}

impl Pair {
    pub fn new(seed: u64, link: &Link, settings: [Settings; 2]) -> Self {
        Pair::over(seed, link, settings, &[])
    }

    /// The first host uses these paths towards the second.
    pub fn over(seed: u64, link: &Link, settings: [Settings; 2], paths: &[Vec<u32>]) -> Self {
        let labels = settings[0].labels;
        let network = Memory::new(seed, labels, link.clone());
        let hosts = settings.into_iter().zip([1, 2]);
        let mut hosts: Vec<_> =
            hosts.map(|(settings, at)| Driver::new(Endpoint::new(settings), network.host(address(at)))).collect();
        let labels: Vec<u32> = (0..labels).collect();
        hosts[0].datapath().peer(address(2), &labels).unwrap();
        hosts[1].datapath().peer(address(1), &labels).unwrap();
        let (endpoint, now) = hosts[0].endpoint();
        endpoint.connect_over(now, 0, paths);
        Pair {
            network,
            hosts,
            received: Default::default(),
            sent: Default::default(),
            times: Default::default(),
            lost: Vec::new(),
            drops_ecn: [0; 2],
            silent: 0,
            first: 0,
            held: (0, 0),
        }
    }

    pub fn send(&mut self, host: usize, stream: u32, bytes: impl Into<Bytes>) {
        let (endpoint, now) = self.hosts[host].endpoint();
        endpoint.send(now, 0, stream, bytes.into()).unwrap();
    }

    /// Returns `false` if the clock reaches `until`.
    pub fn run(&mut self, until: Time, done: &mut dyn FnMut(&Self) -> bool) -> bool {
        let network = self.network.clone();
        let mut hosts = std::mem::take(&mut self.hosts);
        let finished = run(&network, &mut hosts, until, &mut |hosts| {
            for (me, host) in hosts.iter_mut().enumerate() {
                let (endpoint, now) = host.endpoint();
                let held = endpoint.held();
                self.held = (self.held.0.max(held.0), self.held.1.max(held.1));
                while let Some(event) = endpoint.poll_event() {
                    match event {
                        Event::Open { .. } => {}
                        Event::Silent { .. } => self.silent += 1,
                        Event::Received { stream, message, bytes, .. } => {
                            let messages = self.received[me].entry(stream).or_default();
                            assert_eq!(messages.len() as u64, message - self.first, "in order, each once");
                            messages.push(bytes);
                            self.times[me].push(now);
                        }
                        Event::Sent { stream, message, .. } => self.sent[me].push((stream, message, now)),
                        lost @ Event::Lost { .. } => self.lost.push(lost),
                        Event::EcnDropped { .. } => self.drops_ecn[me] += 1,
                        Event::Refused { .. } | Event::Fragmented { .. } => {}
                    }
                }
            }
            done(self)
        });
        self.hosts = hosts;
        finished.unwrap()
    }

    pub fn open(&mut self) {
        let open = |pair: &Self| {
            let _ = pair;
            false
        };
        let limit = self.network.now() + Time::from_us(1_000_000);
        while self.hosts[0].endpoint().0.round_trip(0).is_none() {
            let step = self.network.now() + Time::from_us(100);
            assert!(step < limit, "no connection");
            self.run(step, &mut { open });
        }
    }
}
