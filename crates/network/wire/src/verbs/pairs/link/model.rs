//! Two links over a model of queue pairs, in virtual time: failures, late and repeated reports, resets, long outages.

use super::{Link, LinkStatus};
use crate::{
    Kind, Label, Outbound, To, WireError,
    verbs::{
        control::{Control, Greeting},
        pairs::{own::Capacity, trials::MAX_PAUSE},
        sys::{AddressVector, Post, QueuePairs, Remote, WorkCompletion},
    },
};
use anabranch_endpoint::Write;
use anabranch_random::Stream;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    net::{TcpListener, TcpStream},
    rc::Rc,
    time::{Duration, Instant},
};

/// Hardware retransmits for this time.
const RETRIES: Duration = Duration::from_secs(2);
/// As `wire.give_up`.
const TIMEOUT: Duration = Duration::from_secs(10);
const SLOT: u32 = 64;
const WORK_REQUEST_FLUSHED: u32 = 5;
const REMOTE_ACCESS: u32 = 10;
const RETRIES_EXCEEDED: u32 = 12;
const MS: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum State {
    Reset,
    Init,
    Ready,
    Failed,
}

/// `id`: number of a chunk and of its attempt; `since`: first transmission without an acknowledgement.
struct Request {
    number: u64,
    what: Post,
    range: (u64, u32),
    id: Option<(u64, u32)>,
    due: Instant,
    since: Option<Instant>,
    has_arrived: bool,
}

struct Pair {
    state: State,
    remote: Option<Remote>,
    psn: u32,
    label: Label,
    sends: VecDeque<Request>,
    receives: VecDeque<(u64, (u64, u32))>,
    last_report: Instant,
    /// Its driver returns receives late, after a reset.
    is_late: bool,
}

struct Side {
    pairs: Vec<Pair>,
    reports: VecDeque<(Instant, WorkCompletion)>,
    memory: Vec<u8>,
    gid: [u8; 16],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Dead,
    /// Acknowledgements alone are lost.
    Deaf,
}

struct World {
    now: Instant,
    sides: Vec<Side>,
    faults: Vec<(Label, Instant, Instant, Fault)>,
    draws: Stream,
    /// One of this many, of reports repeated, writes refused, and connections refused by the kernel; 0: none.
    odds: u64,
    /// Chunks on their way with the number of the attempt, and those that have arrived.
    open: BTreeMap<u64, u32>,
    arrived: BTreeSet<u64>,
    resets: u64,
    /// The kernel of one does not reach the other's address until then; how often it has tried.
    unreachable: Option<(usize, Instant)>,
    refusals: u64,
}

impl World {
    fn qpn(side: usize, index: usize) -> u32 {
        (side * 1000 + index + 1) as u32
    }

    fn chance(&mut self, more: u64) -> bool {
        self.odds > 0 && self.draws.chance(1, self.odds * more)
    }

    fn report(&mut self, side: usize, index: usize, what: WorkCompletion) {
        let at = self.now + MS * self.draws.below(31) as u32;
        let repeats = self.chance(1).then(|| MS * self.draws.below(700) as u32);
        let Side { pairs, reports, .. } = &mut self.sides[side];
        let pair = &mut pairs[index];
        pair.last_report = at.max(pair.last_report);
        reports.push_back((pair.last_report, what));
        reports.extend(repeats.map(|later| (pair.last_report + later, what)));
    }

    fn run(&mut self) {
        let pairs = self.sides[0].pairs.len();
        for (side, index) in (0..2 * pairs).map(|at| (at % 2, at / 2)) {
            while self.sides[side].pairs[index].state == State::Ready {
                let now = self.now;
                let first = self.sides[side].pairs[index].sends.front().filter(|first| first.due <= now);
                let Some(number) = first.map(|first| first.number) else { break };
                let Some(error) = self.carry(side, index) else { break };
                self.sides[side].pairs[index].sends.pop_front();
                self.report(side, index, WorkCompletion::Sent { qpn: World::qpn(side, index), number, error });
                if error.is_some() {
                    self.sides[side].pairs[index].state = State::Failed;
                }
            }
            if self.sides[side].pairs[index].state == State::Failed {
                self.flush(side, index);
            }
        }
    }

    fn flush(&mut self, side: usize, index: usize) {
        let (qpn, pair) = (World::qpn(side, index), &mut self.sides[side].pairs[index]);
        let sends: Vec<u64> = pair.sends.drain(..).map(|of| of.number).collect();
        let receives: Vec<u64> =
            if pair.is_late { Vec::new() } else { pair.receives.drain(..).map(|of| of.0).collect() };
        for number in sends {
            let error = Some(WORK_REQUEST_FLUSHED);
            self.report(side, index, WorkCompletion::Sent { qpn, number, error });
        }
        for number in receives {
            self.report(side, index, WorkCompletion::Withdrawn { qpn, number });
        }
    }

    /// Returns the outcome of the first request of a queue pair, if there is one yet.
    fn carry(&mut self, side: usize, index: usize) -> Option<Option<u32>> {
        let (now, refuses, other) = (self.now, self.chance(8), 1 - side);
        let (own_gid, their_gid) = (self.sides[side].gid, self.sides[other].gid);
        let pair = &self.sides[side].pairs[index];
        let (remote, psn, label) = (pair.remote?, pair.psn, pair.label);
        let mut request = self.sides[side].pairs[index].sends.pop_front()?;
        let fault = self.faults.iter().find(|(of, from, to, _)| *of == label && *from <= now && now < *to);
        let fault = fault.map(|(.., fault)| *fault);
        let to = (remote.qpn - World::qpn(other, 0)) as usize;
        let there = &mut self.sides[other].pairs[to];
        let is_peer = there
            .remote
            .is_some_and(|back| (back.qpn, back.psn, back.address.gid) == (World::qpn(side, index), psn, own_gid));
        let passes = fault != Some(Fault::Dead)
            && there.state == State::Ready
            && is_peer
            && (remote.psn, remote.address.gid) == (there.psn, their_gid);
        let mut outcome = None;
        if passes && !request.has_arrived {
            let takes_receive = !matches!(request.what, Post::Write { notice: None, .. });
            if takes_receive && refuses {
                there.state = State::Failed;
                outcome = Some(Some(REMOTE_ACCESS));
            } else if !takes_receive || !there.receives.is_empty() {
                request.has_arrived = true;
                if takes_receive {
                    self.deliver(side, (other, to), &request);
                }
            }
        }
        if request.has_arrived && passes && fault != Some(Fault::Deaf) {
            outcome = Some(None);
        } else if passes && !request.has_arrived {
            // It waits for a receive as long as it takes.
            (request.due, request.since) = (now + MS, None);
        } else if now.duration_since(*request.since.get_or_insert(now)) >= RETRIES {
            outcome = outcome.or(Some(Some(RETRIES_EXCEEDED)));
        }
        self.sides[side].pairs[index].sends.push_front(request);
        outcome
    }

    fn deliver(&mut self, side: usize, (other, to): (usize, usize), request: &Request) {
        let (id, attempt) = request.id.expect("a chunk");
        assert_eq!(self.open.get(&id), Some(&attempt), "chunk {id} arrives after its sender knows the outcome");
        assert!(self.arrived.insert(id), "chunk {id} arrives twice");
        let (number, (at, _)) = self.sides[other].pairs[to].receives.pop_front().expect("a receive");
        let qpn = World::qpn(other, to);
        let (from, bytes) = (request.range.0 as usize, request.range.1);
        let what = match request.what {
            Post::Write { notice, .. } => {
                WorkCompletion::Arrived { qpn, number, notice: notice.expect("a notice"), bytes: 1 }
            }
            Post::Message => {
                let message = self.sides[side].memory[from..from + bytes as usize].to_vec();
                self.sides[other].memory[at as usize..at as usize + message.len()].copy_from_slice(&message);
                WorkCompletion::Received { qpn, number, bytes }
            }
        };
        self.report(other, to, what);
    }

    fn next(&self) -> Option<Instant> {
        let reports = self.sides.iter().flat_map(|side| side.reports.iter().map(|report| report.0));
        let pairs = self.sides.iter().flat_map(|side| &side.pairs);
        let requests = pairs.filter_map(|pair| pair.sends.front());
        let requests = requests.map(|of| of.since.map_or(of.due, |since| since + RETRIES));
        let faults = self.faults.iter().map(|fault| fault.2).filter(|at| *at > self.now);
        reports.chain(requests).chain(faults).min()
    }
}

struct Nic(Rc<RefCell<World>>, usize);

impl Nic {
    fn with<T>(&self, queue: usize, body: impl FnOnce(&mut Pair) -> T) -> T {
        body(&mut self.0.borrow_mut().sides[self.1].pairs[queue])
    }

    fn push(&self, queue: usize, number: u64, range: (u64, u32), what: Post) -> Option<()> {
        let mut world = self.0.borrow_mut();
        let id = match what {
            Post::Write { notice, .. } => notice.map(u64::from),
            Post::Message => {
                let head = &world.sides[self.1].memory[range.0 as usize..];
                Some(id_of(head))
            }
        };
        let id = id.map(|id| (id, world.open[&id]));
        let due = world.now + MS;
        let request = Request { number, what, range, id, due, since: None, has_arrived: false };
        let pair = &mut world.sides[self.1].pairs[queue];
        assert!(pair.state >= State::Ready, "a request before the queue pair is ready");
        pair.sends.push_back(request);
        Some(())
    }
}

impl QueuePairs for Nic {
    fn window(&self, at: u64) -> (u64, u32) {
        (at, 1)
    }
    fn write(&mut self, at: u64, bytes: &[u8]) {
        self.0.borrow_mut().sides[self.1].memory[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    fn read(&self, at: u64, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0.borrow().sides[self.1].memory[at as usize..][..bytes.len()]);
    }
    fn destroy_queues(&mut self) {}
    fn fail(&self, queue: usize) -> Result<(), WireError> {
        self.with(queue, |pair| pair.state = State::Failed);
        Ok(())
    }
    fn reset(&self, queue: usize) -> Result<(), WireError> {
        let left: Vec<u64> = self.with(queue, |pair| {
            assert!(pair.sends.is_empty(), "a reset with requests outstanding");
            pair.state = State::Reset;
            pair.receives.drain(..).map(|of| of.0).collect()
        });
        let mut world = self.0.borrow_mut();
        world.resets += 1;
        for number in left {
            world.report(self.1, queue, WorkCompletion::Withdrawn { qpn: World::qpn(self.1, queue), number });
        }
        let is_late = world.chance(1);
        world.sides[self.1].pairs[queue].is_late = is_late;
        Ok(())
    }
    fn initialise(&self, queue: usize) -> Result<(), WireError> {
        self.with(queue, |pair| {
            assert!(pair.state == State::Reset, "{:?}", pair.state);
            (pair.state, pair.remote) = (State::Init, None);
        });
        Ok(())
    }
    fn connect(&self, queue: usize, remote: &Remote, psn: u32) -> Result<(), WireError> {
        let mut world = self.0.borrow_mut();
        let is_unreachable = world.unreachable.is_some_and(|(side, until)| side == self.1 && world.now < until);
        if is_unreachable || world.resets > 0 && world.chance(1) {
            world.refusals += 1;
            return Err(WireError::System {
                what: "a queue pair to RTR".into(),
                source: io::ErrorKind::TimedOut.into(),
            });
        }
        drop(world);
        self.with(queue, |pair| {
            assert!(pair.state == State::Init && pair.psn != psn, "{:?}", pair.state);
            (pair.state, pair.remote, pair.psn) = (State::Ready, Some(*remote), psn);
            pair.label = remote.address.flow_label - 1;
        });
        Ok(())
    }
    fn redirect(&self, queue: usize, address: AddressVector) -> Result<(), WireError> {
        self.with(queue, |pair| {
            assert!(pair.sends.is_empty(), "relabelled with requests outstanding");
            if pair.state != State::Ready {
                return Err(WireError::Verbs("a queue pair to SQD".into()));
            }
            pair.label = address.flow_label - 1;
            Ok(())
        })
    }
    fn post(&mut self, queue: usize, number: u64, range: (u64, u32), what: Post) -> Option<()> {
        self.push(queue, number, range, what)
    }
    fn post_bytes(&mut self, queue: usize, number: u64, _: &[u8], _: u32, what: Post) -> Option<()> {
        self.push(queue, number, (0, 0), what)
    }
    fn post_receive(&mut self, queue: usize, number: u64, range: (u64, u32)) -> Result<(), WireError> {
        self.with(queue, |pair| {
            assert!(pair.state >= State::Init, "a receive before INIT");
            pair.receives.push_back((number, range));
        });
        Ok(())
    }
    fn poll(&mut self, take: &mut dyn FnMut(WorkCompletion)) -> Result<(), WireError> {
        let mut world = self.0.borrow_mut();
        world.run();
        let now = world.now;
        let side = &mut world.sides[self.1];
        let (due, later) = std::mem::take(&mut side.reports).into_iter().partition(|(at, _)| *at <= now);
        let due: VecDeque<_> = due;
        side.reports = later;
        due.into_iter().for_each(|(_, what)| take(what));
        Ok(())
    }
    fn gid(&self, _: u8) -> Result<[u8; 16], WireError> {
        Ok(self.0.borrow().sides[self.1].gid)
    }
    fn use_gid(&mut self, _: u8) {}
}

fn id_of(head: &[u8]) -> u64 {
    u64::from_be_bytes(head[24..32].try_into().expect("eight bytes"))
}

/// Two links, what they send, and what has become of it.
struct Bench {
    world: Rc<RefCell<World>>,
    links: Vec<Link<Nic>>,
    labels: u32,
    began: Instant,
    draws: Stream,
    next: u64,
    attempts: u32,
    /// To be sent: not before, side, chunk, label.
    waiting: Vec<(Instant, usize, u64, Label)>,
    received: BTreeSet<u64>,
    done: BTreeSet<u64>,
    refused: u64,
}

impl Bench {
    fn new(seed: u64, labels: u32, queues: u32, odds: u64) -> Self {
        let (now, mut draws) = (Instant::now(), Stream::keyed(seed, 0, "pairs"));
        let capacity = Capacity { receives: 4, sends: 8, bytes: ((queues * 4 + 8) * SLOT + 4096) as usize };
        let side = |gid| Side {
            pairs: (0..queues).map(|label| Pair::new(now, label)).collect(),
            reports: VecDeque::new(),
            memory: vec![0; capacity.bytes],
            gid: [gid; 16],
        };
        let (sides, faults) = (vec![side(1), side(2)], Vec::new());
        let world = World {
            now,
            sides,
            faults,
            draws: Stream::keyed(seed, 1, "pairs"),
            odds,
            open: BTreeMap::new(),
            arrived: BTreeSet::new(),
            resets: 0,
            unreachable: None,
            refusals: 0,
        };
        let world = Rc::new(RefCell::new(world));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let called = TcpStream::connect(listener.local_addr().expect("it")).expect("a connection");
        let streams = [called, listener.accept().expect("a caller").0];
        let greeting = |side: u8| Greeting { gid: [side + 1; 16], mtu: 3, labels, queues, largest: SLOT, probe: 4096 };
        let links = streams.into_iter().enumerate().map(|(side, stream)| {
            let pairs = (0..queues as usize).map(|at| (at, World::qpn(side, at))).collect();
            let (ours, theirs) = (greeting(side as u8), greeting(1 - side as u8));
            let port = (String::new(), Some(0), 0);
            let control = Control::new(stream).expect("a socket");
            let device = (Nic(Rc::clone(&world), side), pairs);
            Link::of(control, device, (SLOT, &capacity), port, (&ours, &theirs), &mut draws, side == 0)
        });
        let mut bench = Bench {
            links: links.collect(),
            world,
            labels,
            began: now,
            draws,
            next: 1,
            attempts: 0,
            waiting: Vec::new(),
            received: BTreeSet::new(),
            done: BTreeSet::new(),
            refused: 0,
        };
        bench.links[0].request_queues().expect("requests");
        while !bench.links.iter().all(Link::is_ready) {
            bench.step(MS);
        }
        bench
    }

    fn now(&self) -> Instant {
        self.world.borrow().now
    }

    fn fault(&mut self, label: Label, from: Duration, lasts: Duration, fault: Fault) {
        self.world.borrow_mut().faults.push((label, self.began + from, self.began + from + lasts, fault));
    }

    fn chunk(&mut self, side: usize, label: Label) -> u64 {
        self.next += 1;
        self.waiting.push((self.now(), side, self.next, label));
        self.next
    }

    fn send(&mut self) {
        let now = self.now();
        let (due, later) = std::mem::take(&mut self.waiting).into_iter().partition(|(at, ..)| *at <= now);
        let due: Vec<_> = due;
        self.waiting = later;
        for (at, side, id, label) in due {
            let mut head = [0; 64];
            head[1] = 3;
            head[24..32].copy_from_slice(&id.to_be_bytes());
            let write = (id % 2 == 0).then_some(Write { to: 0, key: 1, notice: id as u32 });
            let payload: &[u8] = if write.is_some() { b"x" } else { b"" };
            let to = To::Peer(0);
            let outbound = Outbound { to, label, ecn: false, class: 0, head: &head, payload, write };
            self.attempts += 1;
            self.world.borrow_mut().open.insert(id, self.attempts);
            if !self.links[side].send(&outbound, &|_, _| Some(1), now).expect("sent") {
                self.world.borrow_mut().open.remove(&id);
                self.waiting.push((at + MS, side, id, label));
            }
        }
    }

    /// Until the next event, at most `max` later.
    fn step(&mut self, max: Duration) {
        let now = self.now();
        let polls = self.links.iter().filter_map(|link| link.poll_interval(now)).map(|left| now + left);
        let waiting = self.waiting.iter().map(|waiting| waiting.0);
        // A wait returns at once with events that were not taken.
        let events = self.links.iter().any(Link::has_events).then_some(now);
        let next = polls.chain(waiting).chain(events).chain(self.world.borrow().next()).min().unwrap_or(now + max);
        self.world.borrow_mut().now = next.clamp(now + MS, now + max);
        self.send();
        let now = self.now();
        for side in 0..2 {
            // Frames come late.
            if !self.draws.chance(1, 3) {
                let status = self.links[side].poll_control(TIMEOUT, now);
                if let LinkStatus::Disconnected(error) | LinkStatus::Failed(error) = status {
                    panic!("{error}");
                }
            }
            self.links[side].gather(now).expect("completions");
            assert_ne!(self.links[side].poll_interval(now), Some(Duration::ZERO), "a wait would spin");
            let (mut buffer, mut taken) = ([0; 128], 0);
            while taken < 2
                && let Some((label, kind, bytes)) = self.links[side].take(&mut buffer)
            {
                taken += 1;
                let arrived = match kind {
                    Kind::Datagram => Some(id_of(bytes)),
                    Kind::Written { notice, .. } => Some(u64::from(notice)),
                    _ => None,
                };
                if let Some(id) = arrived {
                    assert!(self.received.insert(id), "chunk {id} is received twice");
                    continue;
                }
                let Kind::Completed { arrived } = kind else { panic!("{kind:?}") };
                let (id, mut world) = (id_of(bytes), self.world.borrow_mut());
                assert!(world.open.remove(&id).is_some(), "chunk {id} completes twice");
                assert_eq!(world.arrived.contains(&id), arrived, "chunk {id} over label {label}");
                drop(world);
                if arrived {
                    self.done.insert(id);
                } else {
                    // Another label, as a scheme would take.
                    self.refused += 1;
                    let (label, later) = (self.draws.below(self.labels.into()) as Label, self.draws.below(200));
                    self.waiting.push((now + MS * later as u32, side, id, label));
                }
            }
            assert!(!self.links[side].broken);
        }
    }

    fn until(&mut self, at: Duration) {
        while self.now() < self.began + at {
            self.step(self.began + at - self.now());
        }
    }

    /// Every chunk has arrived once, and each label carries the next at its first attempt.
    fn check(&mut self, last_fault: Duration) {
        // The trial that the end of the fault has missed, the last pause and a trial that it delays, 500 ms of a driver, and a retry.
        self.until(last_fault + MAX_PAUSE + 2 * RETRIES + Duration::from_secs(3));
        assert_eq!(self.done.len() as u64, self.next - 1, "{:?}", self.waiting);
        for (side, label) in (0..2 * self.labels).map(|at| (at as usize % 2, at / 2)) {
            let (id, refused) = (self.chunk(side, label), self.refused);
            let from = self.now();
            while !self.done.contains(&id) || !self.received.contains(&id) {
                self.step(MS);
                assert!(self.now() - from < Duration::from_secs(1), "label {label} carries nothing from side {side}");
            }
            assert_eq!(refused, self.refused, "label {label} from side {side}");
        }
        // Late reports of trials.
        let now = self.now() - self.began;
        self.until(now + MS * 100);
        assert_eq!(self.received, self.done);
        for link in &self.links {
            let queued = link.queues.iter().map(|of| of.posted.len() + of.unknown.len()).sum::<usize>();
            assert_eq!((link.free.len(), queued, link.events.len(), link.refused.len()), (link.sends, 0, 0, 0));
        }
    }
}

impl Pair {
    fn new(now: Instant, label: Label) -> Self {
        Pair {
            state: State::Reset,
            remote: None,
            psn: u32::MAX,
            label,
            sends: VecDeque::new(),
            receives: VecDeque::new(),
            last_report: now,
            is_late: false,
        }
    }
}

fn try_seed(seed: u64) -> Result<(), String> {
    let mut draws = Stream::keyed(seed, 2, "pairs");
    let labels = 1 + draws.below(6) as u32;
    let queues = if draws.chance(2, 3) { labels } else { 1 + draws.below(labels.into()) as u32 };
    let mut bench = Bench::new(seed, labels, queues, 8 + draws.below(60));
    let mut last = Duration::ZERO;
    for _ in 0..draws.below(8) {
        let fault = if draws.chance(1, 3) { Fault::Deaf } else { Fault::Dead };
        let (from, lasts) = (MS * draws.below(10_000) as u32, MS * (1 << draws.below(17)));
        // All paths, or one.
        let all = if draws.chance(1, 4) {
            0..labels
        } else {
            let of = draws.below(labels.into()) as u32;
            of..of + 1
        };
        all.for_each(|label| bench.fault(label, from, lasts, fault));
        last = last.max(from + lasts);
    }
    let moves = draws.chance(1, 4).then(|| MS * draws.below(10_000) as u32);
    for at in (0..12_000).step_by(60) {
        bench.until(MS * at);
        if moves.is_some_and(|moves| moves <= MS * at && moves > MS * at - MS * 60.min(at)) {
            bench.world.borrow_mut().sides[draws.below(2) as usize].gid = [7; 16];
        }
        let (side, label) = (draws.below(2) as usize, draws.below(labels.into()) as u32);
        bench.chunk(side, label);
    }
    // Nothing goes wrong any more.
    bench.until(last.max(MS * 12_000));
    bench.world.borrow_mut().odds = 0;
    let now = bench.now() - bench.began;
    bench.check(now);
    Ok(())
}

#[test]
fn every_chunk_arrives_once() {
    anabranch_testkit::try_seeds(0..60, try_seed);
}

#[test]
#[ignore = "takes minutes"]
fn every_chunk_arrives_once_of_three_thousand_seeds() {
    anabranch_testkit::try_seeds(0..3_000, try_seed);
}

/// The port of one is down for nine seconds, in which its kernel refuses connections.
#[test]
fn a_port_that_is_down_is_tried_with_pauses() {
    for side in 0..2 {
        let mut bench = Bench::new(2, 4, 4, 0);
        (0..4).for_each(|label| bench.fault(label, MS, MS * 9_000, Fault::Dead));
        bench.world.borrow_mut().unreachable = Some((side, bench.began + MS * 9_000));
        for of in 0..8 {
            bench.chunk(of % 2, (of / 2) as Label);
        }
        bench.until(MS * 9_000);
        // Each of four queue pairs once; then one after 0.1, 0.2, 0.4, 0.8, and three times 1.6 seconds.
        let refusals = bench.world.borrow().refusals;
        assert!((8..=4 + 8).contains(&refusals), "{refusals} tries");
        bench.check(MS * 9_000);
    }
}

/// One path of four is dead for three hours, then all of them for a shorter time than the peer's timeout.
#[test]
fn a_path_that_is_back_after_hours_carries_data() {
    let (hours, label) = (Duration::from_secs(3 * 3600), 2);
    let mut bench = Bench::new(1, 4, 4, 0);
    bench.fault(label, MS, hours, Fault::Dead);
    (0..4).for_each(|label| bench.fault(label, hours, TIMEOUT, Fault::Dead));
    for minute in 0..180 {
        bench.until(Duration::from_secs(60) * minute);
        for of in 0..8 {
            bench.chunk(of % 2, (of / 2) as Label);
        }
    }
    bench.until(hours);
    // Pauses of 0, 20, 40 ms ... 5.12 s, then 8 s, with a trial of two seconds between; a failure resets both pairs.
    let (resets, tries) = (bench.world.borrow().resets, 10 + 3 * 3600 / 10);
    assert!(resets > tries && resets <= 2 * (tries + 2), "{resets} resets, {tries} trials");
    bench.check(hours + TIMEOUT);
}
