//! A rank performs its part of a collective. Its parent communicates with it over standard input and output, one line
//! of JSON per message.

#![allow(unsafe_code)]

use crate::{
    plan::{self, Action, Arrived, CollectiveKind, Step},
    plugin::{DeliveryCounters, Handle, Opaque, Plugin, PluginError},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, VecDeque},
    ffi::c_int,
    io::{BufRead, Write},
    path::PathBuf,
    sync::mpsc::channel,
    time::{Duration, Instant},
};

/// Messages of a connection in flight at once, as in NCCL.
const DEPTH: usize = 8;
/// Above the timeouts of plugins.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(300);
/// Polls without progress before the thread yields.
const MAX_IDLE_POLLS: u32 = 200;
const TAG: c_int = 0x0ab;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Element {
    /// 32-bit floating point.
    Float,
    /// 32-bit integers.
    Int,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) plugin: PathBuf,
    /// Version of its interface; `None`: the newest.
    pub(crate) abi: Option<u32>,
    /// The collective, by name.
    pub(crate) kind: String,
    pub(crate) rank: usize,
    pub(crate) ranks: usize,
    /// Bytes of its buffer.
    pub(crate) bytes: usize,
    /// Channels, each with a share of the buffer.
    pub(crate) channels: usize,
    pub(crate) element: Element,
    /// `true` to record a row per message.
    pub(crate) rows: bool,
}

/// A connection to a listening peer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RankPlace {
    pub(crate) channel: usize,
    pub(crate) peer: usize,
    pub(crate) handle: Vec<u8>,
}

/// A message as recorded by its sender or its receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub rank: usize,
    pub channel: usize,
    pub peer: usize,
    /// `true` if it was sent, `false` if received.
    pub sent: bool,
    /// Its position in the program of the channel.
    pub step: usize,
    pub bytes: usize,
    /// Times of posting and completion, in nanoseconds from the rank's own start of the round.
    pub start_ns: u64,
    /// See `start_ns`.
    pub end_ns: u64,
    /// Transport counters of a sent message, if the plugin exports them.
    pub counters: Option<TransportCounters>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransportCounters {
    /// Packets, retransmissions included.
    pub packets: u64,
    pub retransmitted: u64,
    /// Packets that timed out.
    pub timeouts: u64,
    /// Packets on another path than the one before them.
    pub moves: u64,
    pub paths: u32,
}

impl From<DeliveryCounters> for TransportCounters {
    fn from(counters: DeliveryCounters) -> Self {
        let DeliveryCounters { packets, retransmitted, timeouts, moves, paths } = counters;
        let paths = paths.iter().map(|word| word.count_ones()).sum();
        TransportCounters { packets, retransmitted, timeouts, moves, paths }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    Begin(Job),
    Connect(Vec<RankPlace>),
    /// Run the collective once.
    Go,
    End,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    Listening {
        places: Vec<RankPlace>,
        /// Its process number outside of its namespaces.
        process: i32,
        /// The plugin's version, and the name and speed in Mbit/s of its first device.
        net: (u32, String, i32),
    },
    Connected,
    Done {
        /// Its start, in nanoseconds of the machine's monotonic clock.
        began_ns: u64,
        nanoseconds: u64,
        wrong: usize,
        rows: Vec<Row>,
    },
    Failed {
        reason: String,
        /// Time since the last order.
        nanoseconds: u64,
    },
    Closed,
}

#[derive(Debug, thiserror::Error)]
enum RankError {
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error("no progress for {} s", PROGRESS_TIMEOUT.as_secs())]
    Timeout,
    #[error("{0}")]
    Protocol(String),
}

struct Connection {
    communicator: Opaque,
    /// Registered: the buffer of a sender, the slots of a receiver.
    memory: Opaque,
    /// Steps of the program and the number of posted ones.
    steps: Vec<usize>,
    posted: usize,
    /// Step, request (`None`: completed, not yet applied), slot, time of posting.
    open: VecDeque<(usize, Option<Opaque>, usize, u64)>,
    slots: Vec<u8>,
}

/// Connections by the rank of the peer.
struct Channel {
    program: Vec<Step>,
    done: Vec<bool>,
    senders: BTreeMap<usize, Connection>,
    receivers: BTreeMap<usize, Connection>,
}

struct Rank {
    plugin: Plugin,
    job: Job,
    kind: CollectiveKind,
    buffer: Vec<u8>,
    channels: Vec<Channel>,
    listeners: Vec<(usize, usize, Opaque)>,
    devices: c_int,
}

/// Serves a parent until its last order; exits when the parent does.
/// Fails if the parent cannot be reached, or sends an invalid order.
pub fn serve(orders: impl BufRead + Send + 'static, mut reports: impl Write) -> std::io::Result<()> {
    let mut rank: Option<Rank> = None;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in orders.lines().map_while(Result::ok) {
            // The receiving thread has ended.
            let _ = sender.send(line);
        }
        std::process::exit(1);
    });
    for line in lines {
        let began = Instant::now();
        let order: Order = serde_json::from_str(&line).map_err(std::io::Error::other)?;
        let is_end = matches!(order, Order::End);
        let report = match follow(&mut rank, order) {
            Ok(report) => report,
            Err(stop) => {
                let report = Report::Failed { reason: stop.to_string(), nanoseconds: nanoseconds(began) };
                writeln!(reports, "{}", serde_json::to_string(&report)?)?;
                // Close the resources of a failed rank.
                match rank.take().map(Rank::close) {
                    Some(Err(stop)) => Report::Failed { reason: stop.to_string(), nanoseconds: nanoseconds(began) },
                    _ => Report::Closed,
                }
            }
        };
        writeln!(reports, "{}", serde_json::to_string(&report)?)?;
        reports.flush()?;
        if is_end || matches!(report, Report::Closed) {
            break;
        }
    }
    Ok(())
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the machine's monotonic clock, which all ranks of a machine share.
pub fn clock_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the number of this process: /proc is that of the outermost namespaces.
fn process() -> i32 {
    let known = std::fs::read_link("/proc/self").ok().and_then(|link| link.to_string_lossy().parse().ok());
    known.unwrap_or_else(|| rustix::process::getpid().as_raw_nonzero().get())
}

fn follow(rank: &mut Option<Rank>, order: Order) -> Result<Report, RankError> {
    let none = || RankError::Protocol("an order before the first".into());
    match order {
        Order::Begin(job) => {
            let (new, report) = Rank::begin(job)?;
            *rank = Some(new);
            Ok(report)
        }
        Order::End => rank.take().ok_or_else(none)?.close().map(|()| Report::Closed),
        Order::Connect(places) => rank.as_mut().ok_or_else(none)?.connect(&places).map(|()| Report::Connected),
        Order::Go => rank.as_mut().ok_or_else(none)?.run(),
    }
}

/// Leaves the processor to others: a long wait becomes 2 % longer at most.
fn pause(waited: Duration) {
    std::thread::sleep((waited / 64).clamp(Duration::from_micros(50), Duration::from_millis(2)));
}

impl Rank {
    fn begin(job: Job) -> Result<(Self, Report), RankError> {
        let kind = plan::KINDS.iter().find(|(name, _)| *name == job.kind).map(|(_, kind)| *kind);
        let kind = kind.ok_or_else(|| RankError::Protocol(format!("unknown collective {}", job.kind)))?;
        let plugin = Plugin::load(&job.plugin, job.abi)?;
        let devices = plugin.devices()?.max(1);
        let properties = plugin.properties(0)?;
        let net = (plugin.version(), properties.name, properties.limits.speed);
        let (mut listeners, mut places, mut channels) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..job.channels {
            let share = plan::part(&(0..job.bytes), number, job.channels);
            let program = plan::program(kind, job.rank, job.ranks, share, job.bytes);
            let mut from: Vec<usize> = program
                .iter()
                .filter_map(|step| if let Action::Receive(from, _) = step.what { Some(from) } else { None })
                .collect();
            from.sort_unstable();
            from.dedup();
            for peer in from {
                let (handle, listener) = plugin.listen(number as c_int % devices)?;
                listeners.push((number, peer, listener));
                places.push(RankPlace { channel: number, peer, handle: handle.to_vec() });
            }
            let done = vec![false; program.len()];
            channels.push(Channel { program, done, senders: BTreeMap::new(), receivers: BTreeMap::new() });
        }
        let size = job.bytes * if kind.is_beside() { 2 } else { 1 };
        let rank = Rank { plugin, kind, buffer: vec![0; size], channels, listeners, devices, job };
        Ok((rank, Report::Listening { places, process: process(), net }))
    }

    fn connect(&mut self, places: &[RankPlace]) -> Result<(), RankError> {
        let mut requested: Vec<(usize, usize, Handle)> = Vec::new();
        for RankPlace { channel, peer, handle } in places {
            let handle = handle.as_slice().try_into().map_err(|_| RankError::Protocol("invalid handle".into()))?;
            requested.push((*channel, *peer, handle));
        }
        let mut waiting: Vec<(usize, usize, Opaque)> = self.listeners.clone();
        let began = Instant::now();
        while !(requested.is_empty() && waiting.is_empty()) {
            let mut left = Vec::new();
            for (channel, peer, mut handle) in std::mem::take(&mut requested) {
                match self.plugin.connect(channel as c_int % self.devices, &mut handle)? {
                    None => left.push((channel, peer, handle)),
                    Some(communicator) => self.add(channel, peer, communicator, true)?,
                }
            }
            requested = left;
            let mut left = Vec::new();
            for (channel, peer, listener) in std::mem::take(&mut waiting) {
                match self.plugin.accept(listener)? {
                    None => left.push((channel, peer, listener)),
                    Some(communicator) => self.add(channel, peer, communicator, false)?,
                }
            }
            waiting = left;
            if began.elapsed() > PROGRESS_TIMEOUT {
                return Err(RankError::Timeout);
            }
            pause(began.elapsed());
        }
        for (_, _, listener) in std::mem::take(&mut self.listeners) {
            self.plugin.close_listener(listener)?;
        }
        Ok(())
    }

    fn add(&mut self, channel: usize, peer: usize, communicator: Opaque, sends: bool) -> Result<(), RankError> {
        let of = &mut self.channels[channel];
        let is_its = |step: &Step| match step.what {
            Action::Send(to) => sends && to == peer,
            Action::Receive(from, _) => !sends && from == peer,
        };
        let steps = (0..of.program.len()).filter(|at| is_its(&of.program[*at])).collect();
        let mut slots = if sends { Vec::new() } else { vec![0; DEPTH * plan::CHUNK] };
        let memory = self.plugin.register(communicator, if sends { &mut self.buffer } else { &mut slots })?;
        let line = Connection { communicator, memory, steps, posted: 0, open: VecDeque::new(), slots };
        let lines = if sends { &mut of.senders } else { &mut of.receivers };
        lines.insert(peer, line);
        Ok(())
    }

    fn word(&self, value: u32) -> [u8; 4] {
        match self.job.element {
            Element::Float => (value as f32).to_le_bytes(),
            Element::Int => value.to_le_bytes(),
        }
    }

    fn run(&mut self) -> Result<Report, RankError> {
        for element in 0..self.job.bytes / 4 {
            let word = self.word(plan::before(self.job.rank, element));
            self.buffer[4 * element..4 * element + 4].copy_from_slice(&word);
        }
        self.buffer[self.job.bytes..].fill(0);
        for channel in &mut self.channels {
            channel.done.fill(false);
            channel.senders.values_mut().chain(channel.receivers.values_mut()).for_each(|line| line.posted = 0);
        }
        let mut rows = Vec::new();
        // One clock that ranks share, so no message is received before it was sent.
        let (began_ns, mut idle, mut last) = (clock_ns(), 0, Instant::now());
        while !self.channels.iter().all(|channel| channel.done.iter().all(|done| *done)) {
            let mut moved = false;
            for channel in 0..self.channels.len() {
                moved |= self.post(channel, began_ns)?;
                moved |= self.poll(channel, began_ns, &mut rows)?;
            }
            if moved {
                (idle, last) = (0, Instant::now());
                continue;
            }
            idle += 1;
            if idle < MAX_IDLE_POLLS {
                std::thread::yield_now();
            } else {
                pause(last.elapsed());
                if last.elapsed() > PROGRESS_TIMEOUT {
                    return Err(RankError::Timeout);
                }
            }
        }
        let nanoseconds = clock_ns().saturating_sub(began_ns);
        Ok(Report::Done { began_ns, nanoseconds, wrong: self.wrong(), rows })
    }

    /// Returns `true` if it posted a request.
    fn post(&mut self, number: usize, began_ns: u64) -> Result<bool, RankError> {
        let (plugin, buffer) = (&self.plugin, &self.buffer);
        let Channel { program, done, senders, receivers } = &mut self.channels[number];
        let mut moved = false;
        for line in senders.values_mut() {
            while line.open.len() < DEPTH
                && let Some(&step) = line.steps.get(line.posted)
                && program[step].after.iter().all(|before| done[*before])
            {
                let at = clock_ns().saturating_sub(began_ns);
                // SAFETY: the buffer does not move, and a step that changes these bytes waits until this one is done.
                let request =
                    unsafe { plugin.send(line.communicator, &buffer[program[step].bytes.clone()], TAG, line.memory)? };
                let Some(request) = request else { break };
                line.open.push_back((step, Some(request), 0, at));
                line.posted += 1;
                moved = true;
            }
        }
        for line in receivers.values_mut() {
            while line.open.len() < DEPTH
                && let Some(&step) = line.steps.get(line.posted)
            {
                let slot = line.posted % DEPTH;
                let size = program[step].bytes.len();
                let bytes = &mut line.slots[slot * plan::CHUNK..][..size];
                let at = clock_ns().saturating_sub(began_ns);
                // SAFETY: the slots do not move, and one is reused only after its message has been applied.
                let request = unsafe { plugin.receive(line.communicator, bytes, TAG, line.memory)? };
                let Some(request) = request else { break };
                line.open.push_back((step, Some(request), slot, at));
                line.posted += 1;
                moved = true;
            }
        }
        Ok(moved)
    }

    /// Returns `true` if a request has completed.
    fn poll(&mut self, number: usize, began_ns: u64, rows: &mut Vec<Row>) -> Result<bool, RankError> {
        let Rank { plugin, job, buffer, channels, .. } = self;
        let Channel { program, done, senders, receivers } = &mut channels[number];
        let mut moved = false;
        let row = |peer: usize, sent: Option<Opaque>, step: usize, start_ns: u64| {
            let bytes = program[step].bytes.len();
            let (rank, end_ns) = (job.rank, clock_ns().saturating_sub(began_ns));
            let counters = sent.and_then(|sender| plugin.counters(sender)).map(TransportCounters::from);
            Row { rank, channel: number, peer, sent: sent.is_some(), step, bytes, start_ns, end_ns, counters }
        };
        for (peer, line) in senders {
            while let Some(&(step, Some(request), _, start)) = line.open.front()
                && let Some(size) = plugin.test(request)?
            {
                check_size(size, program[step].bytes.len())?;
                line.open.pop_front();
                done[step] = true;
                moved = true;
                if job.rows {
                    rows.push(row(*peer, Some(line.communicator), step, start));
                }
            }
        }
        for (peer, line) in receivers {
            while let Some(&(step, request, slot, start)) = line.open.front() {
                if let Some(request) = request {
                    let Some(size) = plugin.test(request)? else { break };
                    check_size(size, program[step].bytes.len())?;
                    moved = true;
                    line.open[0].1 = None;
                    if job.rows {
                        rows.push(row(*peer, None, step, start));
                    }
                }
                if !program[step].after.iter().all(|before| done[*before]) {
                    break;
                }
                let bytes = program[step].bytes.clone();
                let arrived = &line.slots[slot * plan::CHUNK..][..bytes.len()];
                apply(job.element, &program[step].what, &mut buffer[bytes], arrived);
                line.open.pop_front();
                done[step] = true;
                moved = true;
            }
        }
        Ok(moved)
    }

    fn wrong(&self) -> usize {
        let Job { rank, ranks, bytes, channels, .. } = self.job;
        let beside = if self.kind.is_beside() { bytes } else { 0 };
        let is_wrong = |element: &usize| {
            let requested = plan::after(self.kind, rank, ranks, bytes / 4, channels, *element);
            let at = beside + 4 * element;
            requested.is_some_and(|requested| self.buffer[at..at + 4] != self.word(requested))
        };
        (0..bytes / 4).filter(is_wrong).count()
    }

    fn close(self) -> Result<(), RankError> {
        let mut result = Ok(());
        let mut keep = |closed: Result<(), PluginError>| {
            if let Err(error) = closed
                && result.is_ok()
            {
                result = Err(RankError::Plugin(error));
            }
        };
        for channel in self.channels {
            for line in channel.senders.into_values() {
                keep(self.plugin.deregister(line.communicator, line.memory));
                keep(self.plugin.close_sender(line.communicator));
            }
            for line in channel.receivers.into_values() {
                keep(self.plugin.deregister(line.communicator, line.memory));
                keep(self.plugin.close_receiver(line.communicator));
            }
        }
        for (_, _, listener) in self.listeners {
            keep(self.plugin.close_listener(listener));
        }
        result
    }
}

fn check_size(size: usize, requested: usize) -> Result<(), RankError> {
    if size == requested {
        return Ok(());
    }
    Err(RankError::Protocol(format!("received {size} B, expected {requested} B")))
}

fn apply(element: Element, what: &Action, into: &mut [u8], arrived: &[u8]) {
    let Action::Receive(_, Arrived::Sum) = what else { return into.copy_from_slice(arrived) };
    for (mine, theirs) in into.chunks_exact_mut(4).zip(arrived.chunks_exact(4)) {
        let read = |bytes: &[u8]| [bytes[0], bytes[1], bytes[2], bytes[3]];
        let sum = match element {
            Element::Float => (f32::from_le_bytes(read(mine)) + f32::from_le_bytes(read(theirs))).to_le_bytes(),
            Element::Int => u32::from_le_bytes(read(mine)).wrapping_add(u32::from_le_bytes(read(theirs))).to_le_bytes(),
        };
        mine.copy_from_slice(&sum);
    }
}
