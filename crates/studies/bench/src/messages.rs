//! What messages over the plugin cost: two copies of it in one process, a thread each, over the loopback interface, so that the CPU
//! time of the process is that of both ends and their helper threads.

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

/// Bytes of a message that says what a connection carries.
const MESSAGE: usize = 1 << 20;
/// Messages under way.
const DEPTH: usize = 8;
/// Bytes of a message there and back.
const WORD: usize = 8;
/// Looks in a row that find nothing, before a thread sleeps a little.
const RESTLESS: u32 = 20;
const NAP: Duration = Duration::from_micros(20);
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
const TAG: i32 = 1;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Bytes over one connection.
    Goodput,
    /// Eight bytes there and back, beside a bare pair of sockets.
    RoundTrip,
    /// A look at a request that waits.
    Waiting,
    /// Memory of connections, and threads.
    Memory,
}

/// What came of it; a part fills what it measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// Bytes carried.
    pub bytes: u64,
    /// CPU time of both ends, in seconds.
    pub cpu_seconds: f64,
    /// Seconds.
    pub seconds: f64,
    /// The median of a round trip, in nanoseconds: over the plugin, and over bare sockets.
    pub round_trip_ns: f64,
    /// See `round_trip_ns`.
    pub bare_ns: f64,
    /// The median look at a request that waits, in nanoseconds, called again at once.
    pub look_ns: f64,
    /// Bytes of memory that a connection takes at both ends.
    pub connection_bytes: f64,
    /// Threads of each copy besides those that call it.
    pub helpers: f64,
    /// CPU time of these, as a share of the time in which the others polled.
    pub helper_share: f64,
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The plugin says no.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// A socket or a file.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// Nothing has happened for too long.
    #[error("nothing has happened for {} s", PATIENCE.as_secs())]
    Hangs,
}

type Result<T> = std::result::Result<T, BenchError>;

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Looks until something is there; naps where nothing is for a while.
fn until<T>(naps: bool, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let (mut looks, began) = (0u32, Instant::now());
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        looks += 1;
        if naps && looks.is_multiple_of(RESTLESS) {
            thread::sleep(NAP)
        } else {
            thread::yield_now()
        }
        if looks.is_multiple_of(1000) && began.elapsed() > PATIENCE {
            return Err(BenchError::Hangs);
        }
    }
}

/// One end: a copy of the plugin with a connection in each direction, or several.
struct End {
    plugin: Plugin,
    senders: Vec<Opaque>,
    receivers: Vec<Opaque>,
}

impl End {
    /// Opens connections to another end in another thread, and from it; handles go through the channels.
    fn open(path: &Path, connections: usize, say: &Sender<Vec<u8>>, hear: &Receiver<Vec<u8>>) -> Result<Self> {
        let plugin = Plugin::load(path, None)?;
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for _ in 0..connections {
            let (handle, listener) = plugin.listen(0)?;
            let _ = say.send(handle.to_vec());
            let theirs = hear.recv().map_err(|_| BenchError::Hangs)?;
            let mut theirs: [u8; 128] = theirs.try_into().map_err(|_| BenchError::Hangs)?;
            let (mut sender, mut receiver) = (None, None);
            until(true, || {
                if sender.is_none() {
                    sender = plugin.connect(0, &mut theirs)?;
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
        Ok(End { plugin, senders, receivers })
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

    /// Sends `count` messages over a connection, so many under way.
    fn send(&self, connection: usize, bytes: &mut [u8], count: u64) -> Result<()> {
        let sender = self.senders[connection];
        let memory = self.memory(sender, bytes)?;
        // SAFETY: nobody changes the bytes until all messages are done.
        self.carry(count, |_| Ok(unsafe { self.plugin.send(sender, bytes, TAG, memory)? }))?;
        Ok(self.plugin.deregister(sender, memory)?)
    }

    /// Receives `count` messages of `size` bytes into slots, one after the other.
    fn receive(&self, connection: usize, slots: &mut [u8], size: usize, count: u64) -> Result<()> {
        let receiver = self.receivers[connection];
        let memory = self.memory(receiver, slots)?;
        self.carry(count, |posted| {
            let at = posted as usize * size % slots.len();
            // SAFETY: the slots stay, and each is used again when its message has come.
            Ok(unsafe { self.plugin.receive(receiver, &mut slots[at..][..size], TAG, memory)? })
        })?;
        Ok(self.plugin.deregister(receiver, memory)?)
    }

    /// Posts `count` requests, so many under way, until all are done; who posts hears how many went before.
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

    /// Says a word, and waits for one, `count` times; the time of each. Whoever answers waits first. Receives are posted ahead.
    fn ping(&self, count: usize, answers: bool) -> Result<Vec<f64>> {
        let (mut word, mut slots) = (vec![7u8; WORD], vec![0u8; DEPTH * WORD]);
        let (sender, receiver) = (self.senders[0], self.receivers[0]);
        let (from, to) = (self.memory(sender, &mut word)?, self.memory(receiver, &mut slots)?);
        let mut waiting = VecDeque::new();
        let mut posted = 0;
        let mut times = Vec::with_capacity(count);
        let mut post = |waiting: &mut VecDeque<Opaque>| -> Result<()> {
            if posted < count {
                let slot = &mut slots[posted % DEPTH * WORD..][..WORD];
                // SAFETY: the slots stay, and each is used again when its message has come.
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
            for step in [!answers, answers] {
                if step {
                    // SAFETY: nobody changes the word.
                    sent.push_back(until(false, || Ok(unsafe { self.plugin.send(sender, &word, TAG, from)? }))?);
                } else {
                    let Some(request) = waiting.pop_front() else { return Err(BenchError::Hangs) };
                    until(false, || Ok(self.plugin.test(request)?))?;
                }
            }
            times.push(began.elapsed().as_nanos() as f64);
            // Outside what is timed, as NCCL does it while others compute.
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

    /// Looks at a request that waits: a first look works, those right after it look and do nothing else.
    fn look(&self) -> Result<f64> {
        const AGAIN: u32 = 4;
        let mut slot = vec![0u8; WORD];
        let receiver = self.receivers[0];
        let memory = self.memory(receiver, &mut slot)?;
        // SAFETY: the slot stays until the communicator is closed, which is before it goes.
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
            // Whoever was interrupted looked later than at once.
            if since < Duration::from_micros(20) {
                times.push(took.as_nanos() as f64 / f64::from(AGAIN));
            }
        }
        // The slot must outlive the communicator.
        self.plugin.close_receiver(receiver)?;
        self.plugin.close_sender(self.senders[0])?;
        drop(slot);
        Ok(median(&mut times))
    }
}

/// Bare sockets that do the same as [`End::ping`]: they look, and let others have their turn.
fn bare(count: usize) -> Result<f64> {
    let (one, two) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    one.connect(two.local_addr()?)?;
    two.connect(one.local_addr()?)?;
    one.set_nonblocking(true)?;
    two.set_nonblocking(true)?;
    let hear = |socket: &UdpSocket| {
        until(false, || match socket.recv(&mut [0; WORD]) {
            Ok(_) => Ok(Some(())),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        })
    };
    thread::scope(|scope| {
        let answers = scope.spawn(|| -> Result<()> {
            for _ in 0..count {
                hear(&two)?;
                two.send(&[7; WORD])?;
            }
            Ok(())
        });
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let began = Instant::now();
            one.send(&[7; WORD])?;
            hear(&one)?;
            times.push(began.elapsed().as_nanos() as f64);
        }
        answers.join().map_err(|_| BenchError::Hangs)??;
        Ok(median(&mut times))
    })
}

/// Threads of this process by number, with their CPU time in seconds.
fn tasks() -> Result<Vec<(String, f64)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc/self/task")? {
        let path = entry?.path();
        // Nanoseconds on a processor stand first.
        let text = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        let ns: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
        all.push((path.display().to_string(), ns / 1e9));
    }
    Ok(all)
}

/// Bytes of memory that this process has.
fn resident() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0.0);
    Ok(pages * rustix::param::page_size() as f64)
}

/// What both ends do at once, each in a thread: `first` with one copy and `second` with the other.
fn both<A: Send, B: Send>(
    copies: [&Path; 2],
    connections: usize,
    first: impl FnOnce(End) -> Result<A> + Send,
    second: impl FnOnce(End) -> Result<B> + Send,
) -> Result<(A, B)> {
    let ((to_two, of_one), (to_one, of_two)) = (channel(), channel());
    thread::scope(|scope| {
        let other = scope.spawn(move || second(End::open(copies[1], connections, &to_one, &of_one)?));
        let mine = End::open(copies[0], connections, &to_two, &of_two).and_then(first);
        let theirs = other.join().map_err(|_| BenchError::Hangs)?;
        Ok((mine?, theirs?))
    })
}

/// Measures one part with two copies of the plugin, as the variables of this process say.
///
/// # Errors
/// Where the plugin says no, or nothing happens.
pub fn measure(part: Part, copies: [&Path; 2], bytes: u64) -> Result<Numbers> {
    let barrier = Barrier::new(2);
    let mut numbers = Numbers::default();
    match part {
        Part::Goodput => {
            let count = (bytes / MESSAGE as u64).max(1);
            let send = |end: End| {
                let mut message = vec![7u8; MESSAGE];
                // Windows open and buffers are touched.
                end.send(0, &mut message, 2 * DEPTH as u64)?;
                barrier.wait();
                let (began, before) = (Instant::now(), cpu());
                end.send(0, &mut message, count)?;
                barrier.wait();
                let took = (began.elapsed().as_secs_f64(), cpu() - before);
                end.close()?;
                Ok(took)
            };
            let receive = |end: End| {
                let mut slots = vec![0u8; DEPTH * MESSAGE];
                end.receive(0, &mut slots, MESSAGE, 2 * DEPTH as u64)?;
                barrier.wait();
                end.receive(0, &mut slots, MESSAGE, count)?;
                barrier.wait();
                end.close()
            };
            let ((seconds, cpu_seconds), ()) = both(copies, 1, send, receive)?;
            numbers = Numbers { bytes: count * MESSAGE as u64, seconds, cpu_seconds, ..numbers };
        }
        Part::RoundTrip => {
            let count = 500;
            let before = bare(count)?;
            let ping = |answers| {
                let barrier = &barrier;
                move |end: End| {
                    end.ping(50, answers)?;
                    barrier.wait();
                    let mut times = end.ping(count, answers)?;
                    barrier.wait();
                    end.close()?;
                    Ok(median(&mut times))
                }
            };
            let (round_trip_ns, _) = both(copies, 1, ping(false), ping(true))?;
            numbers = Numbers { round_trip_ns, bare_ns: f64::midpoint(before, bare(count)?), ..numbers };
        }
        Part::Waiting => {
            let look = |end: End| {
                let threads = tasks()?;
                let (began, before) = (Instant::now(), own());
                let look = end.look()?;
                let (took, mine) = (began.elapsed().as_secs_f64(), own() - before);
                let later = tasks()?;
                barrier.wait();
                let used: f64 = later
                    .iter()
                    .map(|(name, cpu)| cpu - threads.iter().find(|(of, _)| of == name).map_or(0.0, |(_, cpu)| *cpu))
                    .sum();
                Ok((look, (used - mine).max(0.0) / 2.0 / took))
            };
            let wait = |end: End| {
                barrier.wait();
                end.close()
            };
            let ((look_ns, helper_share), ()) = both(copies, 1, look, wait)?;
            numbers = Numbers { look_ns, helper_share, ..numbers };
        }
        Part::Memory => {
            const MANY: usize = 16;
            let plain = tasks()?.len();
            let carry = |end: &End, sends: bool, connections: std::ops::Range<usize>| -> Result<()> {
                for connection in connections {
                    if sends {
                        end.send(connection, &mut vec![7u8; MESSAGE], 1)?;
                    } else {
                        end.receive(connection, &mut vec![0u8; MESSAGE], MESSAGE, 1)?;
                    }
                    barrier.wait();
                }
                Ok(())
            };
            let measure = |end: End| {
                // What there is once, whatever the connections: buffers of sockets and of the first message.
                carry(&end, true, 0..1)?;
                let (threads, before) = (tasks()?.len(), resident()?);
                carry(&end, true, 1..MANY + 1)?;
                let after = resident()?;
                barrier.wait();
                end.close()?;
                Ok((threads, (after - before) / MANY as f64))
            };
            let answer = |end: End| {
                carry(&end, false, 0..MANY + 1)?;
                barrier.wait();
                end.close()
            };
            let ((threads, connection_bytes), ()) = both(copies, MANY + 1, measure, answer)?;
            // One more thread is the other end's own.
            let helpers = (threads as f64 - plain as f64 - 1.0) / 2.0;
            numbers = Numbers { connection_bytes, helpers, ..numbers };
        }
    }
    Ok(numbers)
}

/// CPU time of this thread.
fn own() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
