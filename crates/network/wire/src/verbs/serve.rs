//! Receiver of transfers over verbs. Each connection has its own thread, device and memory.

use super::{
    MAX_QUEUES, RECEIVES, VerbsSettings, check_label,
    control::{Control, Frame},
    gid,
    sys::{self, AddressVector, Device, Remote, WorkCompletion},
};
use crate::{
    WireError,
    chunks::{MAX_CHUNKS, read_notice},
    transfer::Summary,
};
use anabranch_random::Stream;
use anabranch_units::Time;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

const MAX_MEMORY: u64 = 1 << 30;
/// Bytes read for the checksum between two polls of the completion queue.
const PIECE: usize = 1 << 16;
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Concurrent connections, in total and per address, and their memory.
const MAX_CONNECTIONS: usize = 64;
const MAX_PER_ADDRESS: usize = 16;
const MAX_TOTAL_MEMORY: u64 = 2 << 30;
const FRAME_BATCH: usize = 64;
const IDLE: Duration = Duration::from_secs(60);
/// Messages after the next one of which chunks may arrive.
const AHEAD: u64 = 16;

/// Connection that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Address of the sender.
    pub from: SocketAddr,
    /// Summaries of the bytes received and sent, and the time until all were read, as the sender has measured it; or the
    /// error.
    pub outcome: Result<(Summary, Summary, Time), String>,
}

impl Served {
    /// Returns `true` if bytes arrived and match the sender's summary.
    pub fn is_whole(&self) -> bool {
        matches!(&self.outcome, Ok((ours, theirs, _)) if ours == theirs && ours.bytes > 0)
    }
}

#[derive(Debug, Default)]
struct Shared {
    from: Mutex<Vec<IpAddr>>,
    memory: AtomicU64,
}

/// Leaves the shared counts when it is dropped.
struct Counted {
    shared: Arc<Shared>,
    from: IpAddr,
    memory: u64,
}

impl Shared {
    /// `None`: there are too many.
    fn enter(self: &Arc<Self>, from: IpAddr) -> Option<Counted> {
        let mut all = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = all.iter().filter(|other| **other == from).count();
        (all.len() < MAX_CONNECTIONS && of_one < MAX_PER_ADDRESS).then(|| {
            all.push(from);
            Counted { shared: Arc::clone(self), from, memory: 0 }
        })
    }
}

impl Counted {
    fn take(&mut self, memory: u64) -> bool {
        let all = &self.shared.memory;
        let taken = all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
            all.checked_add(memory).filter(|all| *all <= MAX_TOTAL_MEMORY)
        });
        if taken.is_ok() {
            self.memory += memory;
        }
        taken.is_ok()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.shared.memory.fetch_sub(self.memory, Ordering::Relaxed);
        let mut all = self.shared.from.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.iter().position(|from| *from == self.from) {
            all.swap_remove(at);
        }
    }
}

/// Receives transfers at this address and confirms them until `poll`, called periodically and with each finished
/// connection, returns `false`.
///
/// With `once` it returns after the first [whole](Served::is_whole) transfer.
///
/// # Errors
/// Fails if it cannot listen at the address, or if library or device are missing.
pub fn serve(
    at: SocketAddr,
    settings: &VerbsSettings,
    once: bool,
    listening: &mut dyn FnMut(SocketAddr, &str),
    poll: &mut dyn FnMut(Option<&Served>) -> bool,
) -> Result<(), WireError> {
    let name = super::device(settings.device.as_deref())?;
    let index = gid::choose(&name, settings.gid_index, Some(at.ip()))?;
    // Fails early if the device cannot be opened.
    Device::open(&name, index, 4096, 16, settings.reliable())?.mtu()?;
    let system = |source| WireError::System { what: format!("cannot listen at {at}"), source };
    let listener = TcpListener::bind(at).map_err(system)?;
    listener.set_nonblocking(true).map_err(system)?;
    listening(listener.local_addr().map_err(system)?, &name);
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, served_connections) = mpsc::channel();
    let shared = Arc::new(Shared::default());
    let mut threads = Vec::new();
    loop {
        match listener.accept() {
            Ok((stream, from)) => {
                let Some(mut counted) = shared.enter(from.ip().to_canonical()) else { continue };
                let (settings, name, stop, sender) =
                    (settings.clone(), name.clone(), Arc::clone(&stop), sender.clone());
                threads.push(thread::spawn(move || {
                    let served = Control::new(stream, settings.peer_timeout)
                        .map_err(|source| WireError::System { what: from.to_string(), source })
                        .and_then(|control| converse(control, &name, &settings, &stop, &mut counted));
                    // The channel may be closed.
                    let _ = sender.send(Served { from, outcome: served.map_err(|error| error.to_string()) });
                }));
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // The client has disconnected, or there are no file descriptors left: later connections may succeed.
            Err(_) => thread::sleep(POLL_INTERVAL),
        }
        let over = served_connections.recv_timeout(POLL_INTERVAL).ok();
        let advance = poll(over.as_ref());
        if !advance || once && over.as_ref().is_some_and(Served::is_whole) {
            break;
        }
        threads.retain(|thread| !thread.is_finished());
    }
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        let _ = thread.join();
    }
    Ok(())
}

struct Receiver {
    control: Control,
    device: Device,
    gid: [u8; 16],
    mtu: u8,
    memory: u64,
    /// By the sender's number: local index and queue pair number.
    queues: BTreeMap<u32, (usize, u32)>,
    draws: Stream,
    /// By the lower bits of their message's number.
    arrived: BTreeMap<u32, BTreeSet<u32>>,
    /// `since`: start of the wait for the first.
    announced: VecDeque<(u64, u64, u64, u64)>,
    since: Instant,
    next: u64,
    hasher: crc32fast::Hasher,
    bytes: u64,
}

fn wrong(control: &Control, what: impl std::fmt::Display) -> WireError {
    WireError::Verbs(format!("{} {what}", control.peer))
}

fn converse(
    mut control: Control,
    name: &str,
    settings: &VerbsSettings,
    stop: &AtomicBool,
    counted: &mut Counted,
) -> Result<(Summary, Summary, Time), WireError> {
    let hello = control.expect(&mut |frame| match *frame {
        Frame::Hello { gid, mtu, memory } => Some(Some((gid, mtu, memory))),
        Frame::HelloDatagrams(_) => Some(None),
        _ => None,
    })?;
    let Some((gid, mtu, memory)) = hello else {
        control.send(&Frame::Refused)?;
        return Err(wrong(&control, "uses the datapath uc, this endpoint rc: both need the same datapath"));
    };
    let mut opened = || {
        if memory == 0 || memory > MAX_MEMORY {
            return Err(wrong(&control, format!("requests {memory} B of memory, the maximum is {MAX_MEMORY} B")));
        }
        if !counted.take(memory) {
            return Err(wrong(
                &control,
                format!("requests {memory} B of memory; all connections together may have {MAX_TOTAL_MEMORY} B"),
            ));
        }
        let index = gid::choose(name, settings.gid_index, control.local().map(|at| at.ip()))?;
        let device = Device::open(name, index, memory as usize, super::COMPLETIONS, settings.reliable())?;
        let (own_gid, own_mtu) = (device.gid()?, device.mtu()?);
        Ok((device, own_gid, own_mtu))
    };
    let (device, own_gid, own_mtu) = match opened() {
        Ok(opened) => opened,
        Err(error) => {
            control.send(&Frame::Refused)?;
            return Err(error);
        }
    };
    let (at, key) = device.window();
    control.send(&Frame::Welcome { gid: own_gid, mtu: own_mtu, at, key, memory })?;
    let mut receiver = Receiver {
        control,
        device,
        gid,
        mtu: mtu.min(own_mtu),
        memory,
        queues: BTreeMap::new(),
        draws: Stream::keyed(at, u64::from(std::process::id()), "first packets"),
        arrived: BTreeMap::new(),
        announced: VecDeque::new(),
        since: Instant::now(),
        next: 0,
        hasher: crc32fast::Hasher::new(),
        bytes: 0,
    };
    let outcome = receiver.work(settings, stop);
    if outcome.is_err() {
        // The sender need not wait for its timeout.
        let _ = receiver.control.send(&Frame::Refused);
    }
    outcome
}

impl Receiver {
    fn work(&mut self, settings: &VerbsSettings, stop: &AtomicBool) -> Result<(Summary, Summary, Time), WireError> {
        let mut outcome = None;
        let mut active = Instant::now();
        loop {
            if stop.load(Ordering::Relaxed) {
                return outcome.ok_or_else(|| wrong(&self.control, "was disconnected: this endpoint stops"));
            }
            if active.elapsed() > IDLE {
                return outcome.ok_or_else(|| wrong(&self.control, format!("did nothing for {} s", IDLE.as_secs())));
            }
            for frames in 0..FRAME_BATCH {
                match self.control.poll() {
                    Ok(Some(Frame::Queue { queue, qpn, psn, label })) => self.connect(queue, qpn, psn, label)?,
                    Ok(Some(Frame::Message { number, at, bytes, chunks })) => {
                        self.on_message(number, at, bytes, chunks)?
                    }
                    Ok(Some(Frame::Total(theirs, took))) => {
                        let ours = Summary { bytes: self.bytes, checksum: self.hasher.clone().finalize() };
                        self.control.send(&Frame::Total(ours, took))?;
                        outcome = Some((ours, theirs, Time::from_ps(took.saturating_mul(1000))));
                    }
                    Ok(Some(other)) => return Err(wrong(&self.control, format!("sent an unexpected {other:?}"))),
                    Ok(None) => {
                        if frames > 0 {
                            active = Instant::now();
                        }
                        break;
                    }
                    Err(error) => return outcome.ok_or(error),
                }
            }
            // First, so that no arrival is missed between the poll and the wait.
            self.device.arm()?;
            let arrived = self.gather()?;
            if arrived {
                active = Instant::now();
            }
            if !self.read(settings)? && !arrived {
                sys::wait(&[&self.device], &[self.control.fd()], &[], POLL_INTERVAL)?;
            }
        }
    }

    /// Uses a new queue pair, or the one that the sender's had.
    fn connect(&mut self, queue: u32, qpn: u32, psn: u32, label: u32) -> Result<(), WireError> {
        check_label(label)?;
        let (slot, own) = match self.queues.get(&queue) {
            Some(&known) => {
                self.device.reset(known.0)?;
                known
            }
            None if self.queues.len() >= MAX_QUEUES as usize => {
                return Err(wrong(&self.control, format!("requests more than {MAX_QUEUES} queue pairs")));
            }
            None => {
                let made = self.device.create(1, RECEIVES)?;
                self.queues.insert(queue, made);
                made
            }
        };
        let own_psn = self.draws.below(1 << 24) as u32;
        self.device.initialise(slot)?;
        for _ in 0..RECEIVES {
            self.device.post_receive(slot, None)?;
        }
        let address = AddressVector { gid: self.gid, flow_label: label, class: 0 };
        let remote = Remote { qpn, psn, mtu: self.mtu, address };
        self.device.connect(slot, &remote, own_psn)?;
        self.control.send(&Frame::Ready { queue, qpn: own, psn: own_psn })
    }

    fn on_message(&mut self, number: u64, at: u64, bytes: u64, chunks: u64) -> Result<(), WireError> {
        let within = at.checked_add(bytes).is_some_and(|end| end <= self.memory);
        let in_turn = number == self.next + self.announced.len() as u64 && (self.announced.len() as u64) < AHEAD;
        let cut = (1..=bytes.min(MAX_CHUNKS)).contains(&chunks);
        if !(within && in_turn && cut) {
            let what = format!("announced an invalid message {number}: {bytes} B at {at} in {chunks} chunks");
            return Err(wrong(&self.control, what));
        }
        if self.announced.is_empty() {
            self.since = Instant::now();
        }
        self.announced.push_back((number, at, bytes, chunks));
        Ok(())
    }

    fn gather(&mut self) -> Result<bool, WireError> {
        let mut notices = Vec::new();
        self.device.poll(&mut |completion| {
            if let WorkCompletion::Arrived { qpn, notice } = completion {
                notices.push((qpn, notice));
            }
        })?;
        for &(qpn, notice) in &notices {
            if let Some(&(slot, _)) = self.queues.values().find(|(_, own)| *own == qpn) {
                self.device.post_receive(slot, None)?;
            }
            // Its acknowledgement may have been lost.
            let (message, chunk) = read_notice(notice);
            let ahead = message.wrapping_sub(self.next as u32) % 4096;
            if u64::from(ahead) < AHEAD {
                self.arrived.entry(message).or_default().insert(chunk);
            }
        }
        Ok(!notices.is_empty())
    }

    /// Reads the next complete message into the checksum, and frees its memory.
    fn read(&mut self, settings: &VerbsSettings) -> Result<bool, WireError> {
        let Some(&(number, at, bytes, chunks)) = self.announced.front() else { return Ok(false) };
        let key = (number % 4096) as u32;
        if (self.arrived.get(&key).map_or(0, BTreeSet::len) as u64) < chunks {
            if self.since.elapsed() > settings.peer_timeout {
                let what = format!("reports message {number} as sent, but chunks of it have not arrived");
                return Err(wrong(&self.control, what));
            }
            return Ok(false);
        }
        let mut piece = vec![0; PIECE];
        for offset in (0..bytes).step_by(PIECE) {
            let size = (bytes - offset).min(PIECE as u64) as usize;
            self.device.read(at + offset, &mut piece[..size]);
            self.hasher.update(&piece[..size]);
        }
        self.bytes += bytes;
        self.arrived.remove(&key);
        self.announced.pop_front();
        self.next += 1;
        self.since = Instant::now();
        self.control.send(&Frame::Taken { number })?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, host])
    }

    #[test]
    fn connections_are_limited_in_all_and_per_address() {
        let shared = Arc::new(Shared::default());
        let of_one: Vec<Counted> = (0..100).filter_map(|_| shared.enter(address(1))).collect();
        assert_eq!(of_one.len(), 16);
        let mut others: Vec<Counted> = (0..200).filter_map(|host| shared.enter(address(2 + host))).collect();
        assert_eq!(others.len(), 64 - 16);
        drop(others.pop());
        assert!(shared.enter(address(1)).is_none(), "this address has as many as it may");
        let next = shared.enter(address(250));
        assert!(next.is_some() && shared.enter(address(251)).is_none());
        drop((of_one, others, next));
        assert!(shared.from.lock().unwrap().is_empty());
    }

    #[test]
    fn memory_is_limited_over_all_connections() {
        let shared = Arc::new(Shared::default());
        let mut three = [1, 2, 3].map(|host| shared.enter(address(host)).unwrap());
        assert!(three[0].take(1 << 30) && three[1].take(1 << 30));
        assert!(!three[2].take(1) && !three[2].take(u64::MAX), "2 GiB are taken");
        let [first, second, mut third] = three;
        drop(first);
        assert!(third.take(1 << 29) && third.take(1 << 29) && !third.take(1));
        drop((second, third));
        assert_eq!(shared.memory.load(Ordering::Relaxed), 0);
    }
}
