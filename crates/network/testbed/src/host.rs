//! Endpoint of a run: one thread in its host's namespace, with sockets that stay there.

use crate::{TestbedError, net::enter, programs};
use anabranch_endpoint::{Bytes, Counters, Delivered, Endpoint, Event, SendError, Settings};
use anabranch_lb::Record;
use anabranch_units::{Rate, Time};
use anabranch_wire::{Datapath, Driver, Label, Lateness, transfer::close_reason_text, udp::UdpPath};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::SocketAddr,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, TryRecvError},
    },
    time::Instant,
};

/// Size of a message in bytes; a flow is split into messages.
const MESSAGE: u64 = 1 << 20;
/// Maximum interval between two polls of the orders.
const POLL_INTERVAL: Time = Time::from_us(1_000);
/// Real-time priority of endpoints: above ordinary processes, below kernel threads.
const PRIORITY: &str = "5";

#[derive(Debug)]
pub(crate) struct Destination {
    /// Its address in each plane.
    pub(crate) at: Vec<SocketAddr>,
    /// Each as its labels; empty: every label is a path.
    pub(crate) paths: Vec<Vec<Label>>,
    /// Of paths; empty: unknown.
    pub(crate) rates: Vec<Rate>,
}

#[derive(Debug)]
pub(crate) enum Order {
    Connect(Vec<Destination>),
    /// The rates of paths have changed.
    Rates(Vec<Destination>),
    Start {
        flow: u32,
        to: Vec<SocketAddr>,
        bytes: u64,
    },
    Stop,
}

/// Report from a host, a job or the fault thread.
#[derive(Debug)]
pub(crate) enum Report {
    /// The socket is open, or all peers are connected.
    Ready,
    /// The first packet of a flow may leave.
    Started {
        flow: u32,
        at: Time,
    },
    /// All bytes of a flow have arrived.
    Received {
        flow: u32,
        at: Time,
    },
    /// All bytes of a flow have been acknowledged.
    Acknowledged {
        flow: u32,
        at: Time,
        counted: Box<Delivered>,
    },
    /// A flow ends early because its receiver is lost.
    Abandoned {
        flow: u32,
    },
    /// The connection to another host is lost, with the reason.
    Lost {
        other: SocketAddr,
        reason: String,
    },
    /// The thread cannot continue.
    Failed(String),
    /// A fault of the scenario could not be applied.
    FaultFailed(String),
    Round(Box<anabranch_collective::run::Round>),
    Over(Box<Result<anabranch_collective::run::Outcome, anabranch_collective::run::JobError>>),
    /// The thread has ended.
    Done {
        counters: Counters,
        longest_pause: Time,
        lateness: Lateness,
        /// Reading of [`Host::clock`] at which the endpoint's own began.
        began: Time,
    },
}

/// Records the calls of the scheme for some flows.
#[derive(Debug)]
pub(crate) struct Traced {
    pub(crate) record: Record,
    /// Ascending.
    pub(crate) flows: Arc<[u32]>,
    /// Maximum number of calls.
    pub(crate) limit: u64,
}

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Its address in each plane.
    pub(crate) at: Vec<SocketAddr>,
    pub(crate) settings: Settings,
    pub(crate) real_time: bool,
    /// Bytes of each flow by flow number, which is also the stream number.
    pub(crate) sizes: Arc<[u64]>,
    /// Content of flows, repeated.
    pub(crate) content: Bytes,
    /// Origin of reported times.
    pub(crate) clock: Instant,
    pub(crate) traced: Option<Traced>,
}

#[derive(Debug)]
struct Going {
    peer: u32,
    left: u64,
    last: u64,
    counted: Delivered,
}

struct HostRun<'a> {
    host: &'a Host,
    number: usize,
    reports: &'a Sender<(usize, Report)>,
    driver: Driver<UdpPath>,
    going: BTreeMap<u32, Going>,
    /// Flows with messages that the endpoint has not accepted yet.
    waiting: VecDeque<u32>,
    received: BTreeMap<u32, u64>,
    lost: BTreeSet<u32>,
    unmet: usize,
    /// Bytes sent when the first flow started.
    sent_before: Option<u64>,
}

impl Host {
    fn now(&self) -> Time {
        Time::from_ns(u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX / 1000))
    }

    pub(crate) fn live(&self, number: usize, orders: &Receiver<Order>, reports: &Sender<(usize, Report)>) {
        let done = self.open().and_then(|driver| {
            let _ = reports.send((number, Report::Ready));
            let mut work = HostRun {
                host: self,
                number,
                reports,
                driver,
                going: BTreeMap::new(),
                waiting: VecDeque::new(),
                received: BTreeMap::new(),
                lost: BTreeSet::new(),
                unmet: 0,
                sent_before: None,
            };
            work.run(orders)
        });
        let report = done.unwrap_or_else(|reason| Report::Failed(format!("{}: {reason}", self.name)));
        let _ = reports.send((number, report));
    }

    fn open(&self) -> Result<Driver<UdpPath>, String> {
        enter(&self.namespace).map_err(|error| error.to_string())?;
        if self.real_time {
            // Without the privilege the thread runs in the ordinary class; the longest pause shows the effect.
            let _ = be_real_time();
        }
        let (labels, peers) = (self.settings.labels, self.settings.max_peers as u32);
        let path = UdpPath::open_planes(&self.at, labels, peers).map_err(|error| error.to_string())?;
        let mut endpoint = Endpoint::new(self.settings.clone());
        self.traced.iter().for_each(|traced| endpoint.record(&traced.record));
        Ok(Driver::new(endpoint, path))
    }
}

pub(crate) fn be_real_time() -> Result<(), TestbedError> {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    programs::run("chrt", &["--rr", "--pid", PRIORITY, &thread], "").map(drop)
}

impl HostRun<'_> {
    fn report(&self, report: Report) {
        // The receiver is gone if the run has ended early.
        let _ = self.reports.send((self.number, report));
    }

    fn run(&mut self, orders: &Receiver<Order>) -> Result<Report, String> {
        loop {
            loop {
                match orders.try_recv() {
                    Ok(Order::Stop) | Err(TryRecvError::Disconnected) => return self.end(),
                    Ok(Order::Connect(others)) => self.connect(&others)?,
                    Ok(Order::Rates(others)) => self.set_rates(&others)?,
                    Ok(Order::Start { flow, to, bytes }) => self.start(flow, &to, bytes)?,
                    Err(TryRecvError::Empty) => break,
                }
            }
            let next = self.driver.work().map_err(|error| error.to_string())?;
            while let Some(event) = self.driver.endpoint().0.poll_event() {
                self.on_event(event)?;
            }
            self.host.traced.iter().for_each(|traced| traced.record.close(traced.limit));
            let handed = self.hand_over()?;
            let now = self.driver.datapath().now();
            let until = if handed { now } else { next.unwrap_or(now + POLL_INTERVAL).min(now + POLL_INTERVAL) };
            self.driver.wait(until).map_err(|error| error.to_string())?;
        }
    }

    fn end(&mut self) -> Result<Report, String> {
        let longest_pause = self.driver.longest_pause();
        let mut lateness = self.driver.lateness();
        lateness.bytes -= self.sent_before.unwrap_or(lateness.bytes);
        let counters = self.driver.endpoint().0.counters();
        let began = self.host.now().saturating_sub(self.driver.datapath().now());
        Ok(Report::Done { counters, longest_pause, lateness, began })
    }

    fn connect(&mut self, others: &[Destination]) -> Result<(), String> {
        for Destination { at, paths, .. } in others {
            let peer = self.driver.datapath().peer_in_planes(at).map_err(|error| error.to_string())?;
            let (endpoint, now) = self.driver.endpoint();
            endpoint.connect_over(now, peer, paths);
            self.unmet += 1;
        }
        self.set_rates(others)?;
        if self.unmet == 0 {
            self.report(Report::Ready);
        }
        Ok(())
    }

    fn set_rates(&mut self, others: &[Destination]) -> Result<(), String> {
        for Destination { at, rates, .. } in others {
            let peer = self.driver.datapath().peer_in_planes(at).map_err(|error| error.to_string())?;
            let (endpoint, now) = self.driver.endpoint();
            endpoint.set_path_rates(now, peer, rates);
        }
        Ok(())
    }

    fn start(&mut self, flow: u32, to: &[SocketAddr], bytes: u64) -> Result<(), String> {
        let sent = self.driver.lateness().bytes;
        self.sent_before.get_or_insert(sent);
        let peer = self.driver.datapath().peer_in_planes(to).map_err(|error| error.to_string())?;
        if let Some(traced) = &self.host.traced
            && traced.flows.binary_search(&flow).is_ok()
        {
            traced.record.follow(self.driver.endpoint().0.stream_key(peer, flow), flow);
        }
        self.going.insert(flow, Going { peer, left: bytes, last: 0, counted: Delivered::default() });
        self.waiting.push_back(flow);
        self.report(Report::Started { flow, at: self.host.now() });
        if self.lost.contains(&peer) {
            self.abandon(flow);
        }
        Ok(())
    }

    fn abandon(&mut self, flow: u32) {
        self.going.remove(&flow);
        self.waiting.retain(|waiting| *waiting != flow);
        self.report(Report::Abandoned { flow });
    }

    /// Passes messages to the endpoint until it is full. Returns `true` if it accepted any.
    fn hand_over(&mut self) -> Result<bool, String> {
        let mut some = false;
        while let Some(flow) = self.waiting.front().copied() {
            let Some(going) = self.going.get_mut(&flow) else { break };
            let size = going.left.min(MESSAGE);
            let message = self.host.content.slice(..size as usize);
            let (endpoint, now) = self.driver.endpoint();
            match endpoint.send(now, going.peer, flow, message) {
                Ok(number) => {
                    (going.left, going.last, some) = (going.left - size, number, true);
                    if going.left == 0 {
                        self.waiting.pop_front();
                    }
                }
                Err(SendError::Full) => break,
                Err(SendError::NoPeer) => self.abandon(flow),
                Err(SendError::TooLarge(most)) => return Err(format!("messages of {most} B at most are taken")),
            }
        }
        Ok(some)
    }

    fn on_event(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Open { .. } => {
                self.unmet = self.unmet.saturating_sub(1);
                if self.unmet == 0 {
                    self.report(Report::Ready);
                }
            }
            Event::Received { stream, bytes, .. } => {
                let expected = self.host.sizes.get(stream as usize).copied().unwrap_or(0);
                let so_far = self.received.entry(stream).or_default();
                *so_far += bytes.len() as u64;
                // The endpoint guarantees whole messages in order; their content is checked here.
                if *bytes != self.host.content[..bytes.len()] || *so_far > expected {
                    return Err(format!("flow {stream} did not bring what was sent"));
                }
                if *so_far == expected {
                    self.received.remove(&stream);
                    self.report(Report::Received { flow: stream, at: self.host.now() });
                }
                self.driver.endpoint().0.recycle(bytes);
            }
            Event::Sent { stream, message, delivered, .. } => {
                let Some(going) = self.going.get_mut(&stream) else { return Ok(()) };
                let counted = &mut going.counted;
                counted.packets += delivered.packets;
                counted.retransmitted += delivered.retransmitted;
                counted.timeouts += delivered.timeouts;
                counted.path_switches += delivered.path_switches;
                if going.left == 0 && going.last == message {
                    let counted = Box::new(std::mem::take(counted));
                    self.going.remove(&stream);
                    self.report(Report::Acknowledged { flow: stream, at: self.host.now(), counted });
                }
            }
            // A label of a link that is down.
            Event::Refused { .. } | Event::Silent { .. } | Event::Fragmented { .. } | Event::EcnDropped { .. } => {}
            Event::Lost { peer, reason } => {
                let at = self.driver.datapath().peer_at(peer);
                if self.unmet > 0 {
                    let at = at.map_or_else(String::new, |at| at.to_string());
                    return Err(format!("{at} {}", close_reason_text(reason)));
                }
                self.lost.insert(peer);
                let flows: Vec<u32> =
                    self.going.iter().filter(|(_, of)| of.peer == peer).map(|(flow, _)| *flow).collect();
                flows.into_iter().for_each(|flow| self.abandon(flow));
                if let Some(other) = at {
                    self.report(Report::Lost { other, reason: close_reason_text(reason) });
                }
            }
        }
        Ok(())
    }
}
