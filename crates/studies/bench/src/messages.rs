//! Cost of messages over the plugin. Two threads of one process each load a copy and connect over the loopback
//! interface: the CPU time of the process includes both peers and their helper threads.

#![allow(unsafe_code)]

use anabranch_collective::plugin::{Opaque, Plugin, PluginError};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    fs,
    net::UdpSocket,
    path::Path,
    sync::{
        Barrier,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

const MESSAGE: usize = 1 << 20;
const DEPTH: usize = 8;
const WORD: usize = 8;
/// Number of unsuccessful polls before a thread sleeps.
const POLLS_BEFORE_NAP: u32 = 20;
const NAP: Duration = Duration::from_micros(20);
const TIMEOUT: Duration = Duration::from_secs(60);
const TAG: i32 = 1;

/// Quantity to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Bytes over one connection.
    Goodput,
    /// Round trips of 8 bytes, beside a pair of plain sockets.
    RoundTrip,
    /// Time to poll a pending request.
    Waiting,
    /// Memory of connections, and number of threads.
    Memory,
}

/// Results; each quantity fills those that it measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// Bytes carried.
    pub bytes: u64,
    /// CPU time of both peers, in seconds.
    pub cpu_seconds: f64,
    /// Wall time, in seconds.
    pub seconds: f64,
    /// Median round trip in nanoseconds, over the plugin.
    pub round_trip_ns: f64,
    /// Median round trip in nanoseconds, over plain sockets.
    pub bare_ns: f64,
    /// Median time to poll a pending request, in nanoseconds, right after another poll.
    pub poll_ns: f64,
    /// Memory of a connection at both peers, in bytes.
    pub connection_bytes: f64,
    /// Number of helper threads of each copy.
    pub helpers: f64,
    /// CPU time of the helper threads, as a share of the time in which the callers polled.
    pub helper_share: f64,
}

/// Error of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum PluginBenchError {
    /// The plugin returned an error.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// Error of a socket or a file.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// A timeout expired.
    #[error("no progress for {} s", TIMEOUT.as_secs())]
    Timeout,
}

type Result<T> = std::result::Result<T, PluginBenchError>;

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn until<T>(naps: bool, mut poll: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let (mut polls, began) = (0u32, Instant::now());
    loop {
        if let Some(found) = poll()? {
            return Ok(found);
        }
        polls += 1;
        if naps && polls.is_multiple_of(POLLS_BEFORE_NAP) {
            thread::sleep(NAP)
        } else {
            thread::yield_now()
        }
        if polls.is_multiple_of(1000) && began.elapsed() > TIMEOUT {
            return Err(PluginBenchError::Timeout);
        }
    }
}

struct PluginPeer {
    plugin: Plugin,
    senders: Vec<Opaque>,
    receivers: Vec<Opaque>,
}

impl PluginPeer {
    fn open(path: &Path, connections: usize, to_peer: &Sender<Vec<u8>>, from_peer: &Receiver<Vec<u8>>) -> Result<Self> {
        let plugin = Plugin::load(path, None)?;
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for _ in 0..connections {
            let (handle, listener) = plugin.listen(0)?;
            let _ = to_peer.send(handle.to_vec());
            let peer_handle = from_peer.recv().map_err(|_| PluginBenchError::Timeout)?;
            let mut peer_handle: [u8; 128] = peer_handle.try_into().map_err(|_| PluginBenchError::Timeout)?;
            let (mut sender, mut receiver) = (None, None);
            until(true, || {
                if sender.is_none() {
                    sender = plugin.connect(0, &mut peer_handle)?;
                }
                if receiver.is_none() {
                    receiver = plugin.accept(listener)?;
                }
                Ok(sender.zip(receiver))
            })?;
            senders.extend(sender);
            receivers.extend(receiver);
            plugin.close_listener(listener)?;
        }
        Ok(PluginPeer { plugin, senders, receivers })
    }

    fn close(self) -> Result<()> {
        for sender in self.senders {
            self.plugin.close_sender(sender)?;
        }
        for receiver in self.receivers {
            self.plugin.close_receiver(receiver)?;
        }
        Ok(())
    }

    fn memory(&self, communicator: Opaque, bytes: &mut [u8]) -> Result<Opaque> {
        Ok(self.plugin.register(communicator, bytes)?)
    }

    fn send(&self, connection: usize, bytes: &mut [u8], count: u64) -> Result<()> {
        let sender = self.senders[connection];
        let memory = self.memory(sender, bytes)?;
        // SAFETY: the bytes are unchanged until all messages are complete.
        self.carry(count, |_| Ok(unsafe { self.plugin.send(sender, bytes, TAG, memory)? }))?;
        Ok(self.plugin.deregister(sender, memory)?)
    }

    fn receive(&self, connection: usize, slots: &mut [u8], size: usize, count: u64) -> Result<()> {
        let receiver = self.receivers[connection];
        let memory = self.memory(receiver, slots)?;
        self.carry(count, |posted| {
            let at = posted as usize * size % slots.len();
            // SAFETY: the slots outlive the requests, and each is reused after its message is complete.
            Ok(unsafe { self.plugin.receive(receiver, &mut slots[at..][..size], TAG, memory)? })
        })?;
        Ok(self.plugin.deregister(receiver, memory)?)
    }

    /// Posts `count` requests, at most [`DEPTH`] in flight, until all are complete; `post` receives the number posted before.
    fn carry(&self, count: u64, mut post: impl FnMut(u64) -> Result<Option<Opaque>>) -> Result<()> {
        let (mut open, mut posted, mut done) = (VecDeque::new(), 0, 0);
        while done < count {
            until(true, || {
                let mut moved = false;
                while posted < count && open.len() < DEPTH {
                    let Some(request) = post(posted)? else { break };
                    open.push_back(request);
                    posted += 1;
                    moved = true;
                }
                while let Some(request) = open.front()
                    && self.plugin.test(*request)?.is_some()
                {
                    open.pop_front();
                    done += 1;
                    moved = true;
                }
                Ok(moved.then_some(()))
            })?;
        }
        Ok(())
    }

    /// Sends a word and receives one, `count` times, and returns each time. With `replies` it receives first.
    fn ping(&self, count: usize, replies: bool) -> Result<Vec<f64>> {
        let (mut word, mut slots) = (vec![7u8; WORD], vec![0u8; DEPTH * WORD]);
        let (sender, receiver) = (self.senders[0], self.receivers[0]);
        let (from, to) = (self.memory(sender, &mut word)?, self.memory(receiver, &mut slots)?);
        let mut waiting = VecDeque::new();
        let mut posted = 0;
        let mut times = Vec::with_capacity(count);
        let mut post = |waiting: &mut VecDeque<Opaque>| -> Result<()> {
            if posted < count {
                let slot = &mut slots[posted % DEPTH * WORD..][..WORD];
                // SAFETY: the slots outlive the requests, and each is reused after its message is complete.
                if let Some(request) = unsafe { self.plugin.receive(receiver, slot, TAG, to)? } {
                    waiting.push_back(request);
                    posted += 1;
                }
            }
            Ok(())
        };
        for _ in 0..DEPTH {
            post(&mut waiting)?;
        }
        let mut sent = VecDeque::new();
        for _ in 0..count {
            let began = Instant::now();
            for step in [!replies, replies] {
                if step {
                    // SAFETY: the word is not changed.
                    sent.push_back(until(false, || Ok(unsafe { self.plugin.send(sender, &word, TAG, from)? }))?);
                } else {
                    let Some(request) = waiting.pop_front() else { return Err(PluginBenchError::Timeout) };
                    until(false, || Ok(self.plugin.test(request)?))?;
                }
            }
            times.push(began.elapsed().as_nanos() as f64);
            // Not measured, as NCCL posts while ranks compute.
            post(&mut waiting)?;
            if sent.len() >= DEPTH
                && let Some(request) = sent.pop_front()
            {
                until(false, || Ok(self.plugin.test(request)?))?;
            }
        }
        for request in sent {
            until(false, || Ok(self.plugin.test(request)?))?;
        }
        self.plugin.deregister(sender, from)?;
        self.plugin.deregister(receiver, to)?;
        Ok(times)
    }

    /// Polls a pending request: the first poll does work, those right after it only check.
    fn time_polls(&self) -> Result<f64> {
        const AGAIN: u32 = 4;
        let mut slot = vec![0u8; WORD];
        let receiver = self.receivers[0];
        let memory = self.memory(receiver, &mut slot)?;
        // SAFETY: the slot outlives the communicator.
        let request = until(false, || Ok(unsafe { self.plugin.receive(receiver, &mut slot, TAG, memory)? }))?;
        let mut times = Vec::new();
        for _ in 0..20_000 {
            let first = Instant::now();
            self.plugin.test(request)?;
            let began = Instant::now();
            for _ in 0..AGAIN {
                self.plugin.test(request)?;
            }
            let (took, since) = (began.elapsed(), first.elapsed());
            // Excludes measurements interrupted by the scheduler.
            if since < Duration::from_micros(20) {
                times.push(took.as_nanos() as f64 / f64::from(AGAIN));
            }
        }
        self.plugin.close_receiver(receiver)?;
        self.plugin.close_sender(self.senders[0])?;
        drop(slot);
        Ok(median(&mut times))
    }
}

/// Measures round trips as [`PluginPeer::ping`] does, over plain sockets: polls, and yields.
fn bare(count: usize) -> Result<f64> {
    let (one, two) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    one.connect(two.local_addr()?)?;
    two.connect(one.local_addr()?)?;
    one.set_nonblocking(true)?;
    two.set_nonblocking(true)?;
    let from_peer = |socket: &UdpSocket| {
        until(false, || match socket.recv(&mut [0; WORD]) {
            Ok(_) => Ok(Some(())),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        })
    };
    thread::scope(|scope| {
        let replies = scope.spawn(|| -> Result<()> {
            for _ in 0..count {
                from_peer(&two)?;
                two.send(&[7; WORD])?;
            }
            Ok(())
        });
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let began = Instant::now();
            one.send(&[7; WORD])?;
            from_peer(&one)?;
            times.push(began.elapsed().as_nanos() as f64);
        }
        replies.join().map_err(|_| PluginBenchError::Timeout)??;
        Ok(median(&mut times))
    })
}

/// Threads of this process by number, with their CPU times in seconds.
fn tasks() -> Result<Vec<(String, f64)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc/self/task")? {
        let path = entry?.path();
        // The first number is the time on a processor in nanoseconds.
        let text = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        let ns: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
        all.push((path.display().to_string(), ns / 1e9));
    }
    Ok(all)
}

/// Resident memory of this process in bytes.
fn resident() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0.0);
    Ok(pages * rustix::param::page_size() as f64)
}

fn both<A: Send, B: Send>(
    copies: [&Path; 2],
    connections: usize,
    first: impl FnOnce(PluginPeer) -> Result<A> + Send,
    second: impl FnOnce(PluginPeer) -> Result<B> + Send,
) -> Result<(A, B)> {
    let ((to_two, of_one), (to_one, of_two)) = (channel(), channel());
    thread::scope(|scope| {
        let other = scope.spawn(move || second(PluginPeer::open(copies[1], connections, &to_one, &of_one)?));
        let first_result = PluginPeer::open(copies[0], connections, &to_two, &of_two).and_then(first);
        let second_result = other.join().map_err(|_| PluginBenchError::Timeout)?;
        Ok((first_result?, second_result?))
    })
}

/// Measures one quantity with two copies of the plugin, configured by the variables of this process.
pub fn measure(quantity: Quantity, copies: [&Path; 2], bytes: u64) -> Result<Numbers> {
    let barrier = Barrier::new(2);
    let mut numbers = Numbers::default();
    match quantity {
        Quantity::Goodput => {
            let count = (bytes / MESSAGE as u64).max(1);
            let send = |peer: PluginPeer| {
                let mut message = vec![7u8; MESSAGE];
                // Warm-up: opens windows and touches buffers.
                peer.send(0, &mut message, 2 * DEPTH as u64)?;
                barrier.wait();
                let (began, before) = (Instant::now(), cpu());
                peer.send(0, &mut message, count)?;
                barrier.wait();
                let took = (began.elapsed().as_secs_f64(), cpu() - before);
                peer.close()?;
                Ok(took)
            };
            let receive = |peer: PluginPeer| {
                let mut slots = vec![0u8; DEPTH * MESSAGE];
                peer.receive(0, &mut slots, MESSAGE, 2 * DEPTH as u64)?;
                barrier.wait();
                peer.receive(0, &mut slots, MESSAGE, count)?;
                barrier.wait();
                peer.close()
            };
            let ((seconds, cpu_seconds), ()) = both(copies, 1, send, receive)?;
            numbers = Numbers { bytes: count * MESSAGE as u64, seconds, cpu_seconds, ..numbers };
        }
        Quantity::RoundTrip => {
            let count = 500;
            let before = bare(count)?;
            let ping = |replies| {
                let barrier = &barrier;
                move |peer: PluginPeer| {
                    peer.ping(50, replies)?;
                    barrier.wait();
                    let mut times = peer.ping(count, replies)?;
                    barrier.wait();
                    peer.close()?;
                    Ok(median(&mut times))
                }
            };
            let (round_trip_ns, _) = both(copies, 1, ping(false), ping(true))?;
            numbers = Numbers { round_trip_ns, bare_ns: f64::midpoint(before, bare(count)?), ..numbers };
        }
        Quantity::Waiting => {
            let poll = |peer: PluginPeer| {
                let threads = tasks()?;
                let (began, before) = (Instant::now(), own());
                let poll = peer.time_polls()?;
                let (took, caller_cpu) = (began.elapsed().as_secs_f64(), own() - before);
                let later = tasks()?;
                barrier.wait();
                let used: f64 = later
                    .iter()
                    .map(|(name, cpu)| cpu - threads.iter().find(|(of, _)| of == name).map_or(0.0, |(_, cpu)| *cpu))
                    .sum();
                Ok((poll, (used - caller_cpu).max(0.0) / 2.0 / took))
            };
            let wait = |peer: PluginPeer| {
                barrier.wait();
                peer.close()
            };
            let ((poll_ns, helper_share), ()) = both(copies, 1, poll, wait)?;
            numbers = Numbers { poll_ns, helper_share, ..numbers };
        }
        Quantity::Memory => {
            const MANY: usize = 16;
            let plain = tasks()?.len();
            let carry = |peer: &PluginPeer, sends: bool, connections: std::ops::Range<usize>| -> Result<()> {
                for connection in connections {
                    if sends {
                        peer.send(connection, &mut vec![7u8; MESSAGE], 1)?;
                    } else {
                        peer.receive(connection, &mut vec![0u8; MESSAGE], MESSAGE, 1)?;
                    }
                    barrier.wait();
                }
                Ok(())
            };
            let measure = |peer: PluginPeer| {
                // Warm-up of what is shared by all connections: buffers of sockets and of the first message.
                carry(&peer, true, 0..1)?;
                let (threads, before) = (tasks()?.len(), resident()?);
                carry(&peer, true, 1..MANY + 1)?;
                let after = resident()?;
                barrier.wait();
                peer.close()?;
                Ok((threads, (after - before) / MANY as f64))
            };
            let reply = |peer: PluginPeer| {
                carry(&peer, false, 0..MANY + 1)?;
                barrier.wait();
                peer.close()
            };
            let ((threads, connection_bytes), ()) = both(copies, MANY + 1, measure, reply)?;
            // One thread more is the caller of the other peer.
            let helpers = (threads as f64 - plain as f64 - 1.0) / 2.0;
            numbers = Numbers { connection_bytes, helpers, ..numbers };
        }
    }
    Ok(numbers)
}

fn own() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
