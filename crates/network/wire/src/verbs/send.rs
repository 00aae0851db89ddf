//! Sender of transfers over verbs: rounds of bytes to one receiver.

use super::{VerbsPath, VerbsSettings, control::Frame};
use crate::{
    Label, WireError,
    chunks::{ChunkCounters, ChunkDriver, ChunkEvent, ChunkPath, ChunkSettings, Message},
    transfer::{Conductor, Progress, Summary, TransferError},
};
use anabranch_units::Time;
use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
};

const CHUNKS: u64 = 16;
/// Messages in memory: one is under way while the receiver reads the other.
const SLOTS: u64 = 2;
/// Bytes produced between two polls of the completion queue.
const PIECE: usize = 1 << 16;
/// Maximum time between two calls of [`Conductor::goes_on`].
const POLL_INTERVAL: Time = Time::from_us(100_000);
/// The same while a round waits for others.
const BARRIER_POLL_INTERVAL: Time = Time::from_us(200);

/// Result of a transfer over verbs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerbsSent {
    /// Summary of the bytes, equal at sender and receiver.
    pub summary: Summary,
    /// Time from the first chunk to the receiver's confirmation.
    pub took: Time,
    /// Duration of each round, from its start to the completion of its last chunk.
    pub rounds: Vec<Time>,
    /// Shortest round trip of a whole chunk before anything was sent.
    pub base: Time,
    /// Shortest round trip of a probe.
    pub probe: Time,
    /// Noise floor: round trips up to this much above the base count as uncongested.
    pub noise: Time,
    /// Counters of the driver.
    pub counters: ChunkCounters,
    /// Number of chunks sent per label.
    pub by_label: Vec<(Label, u64)>,
    /// Reason of the last failed chunk, if any failed.
    pub last_error: Option<String>,
    /// Longest time between two polls of the completion queue.
    pub longest_pause: Time,
}

struct Making<'a> {
    rounds: &'a [u64],
    round: usize,
    /// Of the round, and of the message in production.
    made: u64,
    done: u64,
    number: u64,
    hasher: crc32fast::Hasher,
    piece: Vec<u8>,
}

impl Making<'_> {
    fn is_over(&self) -> bool {
        self.round == self.rounds.len()
    }

    /// Returns the next message and its round once it is complete.
    fn step(&mut self, path: &mut VerbsPath, max: u64, conductor: &mut dyn Conductor) -> Option<(usize, Message)> {
        let bytes = *self.rounds.get(self.round)?;
        if bytes == 0 {
            self.round += 1;
            return None;
        }
        let from = self.number % SLOTS * max;
        let whole = (bytes - (self.made - self.done)).min(max);
        let size = (whole - self.done).min(PIECE as u64) as usize;
        let piece = &mut self.piece[..size];
        conductor.fill(self.round, piece);
        self.hasher.update(piece);
        path.fill(from + self.done, piece);
        self.made += size as u64;
        self.done += size as u64;
        if self.done < whole {
            return None;
        }
        let made = (self.round, Message { number: self.number, from, to: from, bytes: whole });
        self.number += 1;
        self.done = 0;
        if self.made == bytes {
            (self.round, self.made) = (self.round + 1, 0);
        }
        Some(made)
    }
}

fn lost(at: SocketAddr, error: &WireError) -> TransferError {
    TransferError::Lost { at, reason: format!("is lost: {error}") }
}

struct Performance<'a> {
    to: SocketAddr,
    driver: ChunkDriver<VerbsPath>,
    stream: u32,
    chunk: u32,
    /// Bytes of the longest message.
    max: u64,
    making: Making<'a>,
    ready: VecDeque<(usize, Message)>,
    /// Not yet read by the receiver.
    messages: BTreeMap<u64, Message>,
    remaining: Vec<u64>,
    /// Start of the current round, durations of the previous ones.
    began: Option<Time>,
    rounds: Vec<Time>,
    /// Time of the measurement of the path; base, probe, noise.
    opened: Option<(Time, Time, Time, Time)>,
    taken: u64,
    total: u64,
    ended: bool,
    took: Time,
}

impl Performance<'_> {
    fn makes(&self) -> bool {
        !self.making.is_over() && (self.messages.len() as u64) < SLOTS
    }

    fn make(&mut self, conductor: &mut dyn Conductor) {
        if let Some((round, message)) = self.making.step(self.driver.path(), self.max, conductor) {
            self.ready.push_back((round, message));
            self.messages.insert(message.number, message);
        }
    }

    fn handle_events(&mut self, now: Time) -> Result<(), TransferError> {
        while let Some(event) = self.driver.poll_event() {
            match event {
                ChunkEvent::Open { base, probe, noise, .. } => self.opened = Some((now, base, probe, noise)),
                ChunkEvent::Sent { message, .. } => {
                    let Some(Message { number, to: at, bytes, .. }) = self.messages.get(&message).copied() else {
                        continue;
                    };
                    let chunks = self.messages[&message].chunks(self.chunk);
                    if let Some(remaining) = self.remaining.get_mut(self.rounds.len()) {
                        *remaining -= bytes;
                    }
                    let frame = Frame::Message { number, at, bytes, chunks };
                    self.driver.path().control(0)?.send(&frame).map_err(|error| lost(self.to, &error))?;
                }
                ChunkEvent::Lost { .. } => {
                    let reason = self.driver.path().last_error().unwrap_or("no path leads there").to_string();
                    return Err(TransferError::Lost { at: self.to, reason: format!("cannot be reached: {reason}") });
                }
            }
        }
        Ok(())
    }

    /// Returns `true` if new messages are passed to the driver.
    fn turn(&mut self, now: Time, conductor: &mut dyn Conductor) -> bool {
        if self.opened.is_none() {
            return false;
        }
        while let Some(remaining) = self.remaining.get(self.rounds.len()) {
            let round = self.rounds.len();
            match self.began {
                None if conductor.may_begin(round as u32) => {
                    if round > 0 {
                        self.driver.renew(self.stream);
                    }
                    // The conductor may have blocked at a barrier.
                    self.began = Some(self.driver.path().now());
                }
                Some(began) if *remaining == 0 => {
                    self.rounds.push(now.saturating_sub(began));
                    self.began = None;
                    conductor.is_over(round as u32);
                    continue;
                }
                _ => {}
            }
            break;
        }
        let (round, mut some) = (self.rounds.len(), false);
        while self.began.is_some()
            && let Some((of, message)) = self.ready.front()
            && *of == round
        {
            some |= self.driver.send(self.stream, *message);
            self.ready.pop_front();
        }
        some
    }

    fn summary(&self) -> Summary {
        Summary { bytes: self.total, checksum: self.making.hasher.clone().finalize() }
    }

    /// Returns the receiver's confirmation once it has arrived.
    fn read(&mut self) -> Result<Option<Summary>, TransferError> {
        let at = self.to;
        while let Some(frame) = self.driver.path().control(0)?.poll().map_err(|error| lost(at, &error))? {
            match frame {
                Frame::Taken { number } => {
                    self.taken += self.messages.remove(&number).map_or(0, |message| message.bytes);
                }
                Frame::Total(theirs, _) => {
                    let ours = self.summary();
                    if theirs != ours || !self.ended {
                        return Err(TransferError::Differs { at, theirs, ours });
                    }
                    return Ok(Some(ours));
                }
                Frame::Refused => {
                    return Err(TransferError::Lost {
                        at,
                        reason: "refused the connection; its output has the reason".into(),
                    });
                }
                other => {
                    return Err(TransferError::Lost { at, reason: format!("sent an unexpected {other:?}") });
                }
            }
        }
        Ok(None)
    }
}

/// Sends rounds of the given sizes in bytes, each a separate flow for the scheme.
///
/// A round begins when the previous one has arrived and the conductor, which also produces the bytes, permits it. Fills
/// memory offsets into `chunks` and configures the scheme.
pub fn perform(
    to: SocketAddr,
    rounds: &[u64],
    verbs: &VerbsSettings,
    mut chunks: ChunkSettings,
    conductor: &mut dyn Conductor,
) -> Result<VerbsSent, TransferError> {
    let max = CHUNKS * u64::from(chunks.chunk);
    chunks.probe_to = SLOTS * max;
    chunks.max_queues = chunks.max_queues.min(super::MAX_QUEUES);
    chunks.configure_scheme().map_err(|error| WireError::Verbs(error.to_string()))?;
    let memory = chunks.probe_to + u64::from(chunks.probe);
    let path = VerbsPath::connect(to, memory, verbs.clone(), chunks.seed)?;
    let hasher = crc32fast::Hasher::new();
    let making = Making { rounds, round: 0, made: 0, done: 0, number: 0, hasher, piece: vec![0; PIECE] };
    let mut driver = ChunkDriver::new(path, chunks.clone());
    let stream = driver.open(0);
    let mut performance = Performance {
        to,
        driver,
        stream,
        chunk: chunks.chunk,
        max,
        making,
        ready: VecDeque::new(),
        messages: BTreeMap::new(),
        remaining: rounds.to_vec(),
        began: None,
        rounds: Vec::new(),
        opened: None,
        taken: 0,
        total: rounds.iter().sum(),
        ended: false,
        took: Time::ZERO,
    };
    // Messages produced before the measurement do not disturb it.
    while performance.makes() {
        performance.make(conductor);
    }
    let (mut last_poll, mut longest_pause, mut last) = (Time::ZERO, Time::ZERO, performance.driver.path().now());
    loop {
        let next = performance.driver.work().map_err(|error| lost(to, &error))?;
        let now = performance.driver.path().now();
        longest_pause = longest_pause.max(now.saturating_sub(last));
        performance.handle_events(now)?;
        let handed = performance.turn(now, conductor);
        if let Some(summary) = performance.read()? {
            let (_, base, probe, noise) = performance.opened.unwrap_or_default();
            let driver = &mut performance.driver;
            return Ok(VerbsSent {
                summary,
                took: performance.took,
                rounds: performance.rounds,
                base,
                probe,
                noise,
                counters: driver.counters(),
                by_label: driver.by_label().collect(),
                last_error: driver.path().last_error().map(str::to_string),
                longest_pause,
            });
        }
        let makes = performance.makes();
        if makes {
            performance.make(conductor);
        }
        if performance.rounds.len() == rounds.len() && performance.taken == performance.total && !performance.ended {
            performance.ended = true;
            performance.took = now.saturating_sub(performance.opened.map_or(now, |(began, ..)| began));
            let frame = Frame::Total(performance.summary(), performance.took.ps() / 1000);
            performance.driver.path().control(0)?.send(&frame).map_err(|error| lost(to, &error))?;
        }
        if now.saturating_sub(last_poll) >= POLL_INTERVAL {
            last_poll = now;
            let (acknowledged, done) = (performance.taken, performance.ended);
            let over = performance.rounds.len() as u32;
            if !conductor.goes_on(&Progress { now, acknowledged, rounds: over, done, served: 0 }) {
                return Err(TransferError::Interrupted);
            }
        }
        last = performance.driver.path().now();
        if !makes && !handed {
            let waits =
                performance.opened.is_some() && performance.began.is_none() && performance.rounds.len() < rounds.len();
            let until = last + if waits { BARRIER_POLL_INTERVAL } else { POLL_INTERVAL };
            performance.driver.wait(next.unwrap_or(until).min(until))?;
            last = performance.driver.path().now().max(last);
        }
    }
}

struct Sending<'a> {
    fill: &'a mut dyn FnMut(&mut [u8]),
    poll: &'a mut dyn FnMut(Time, u64) -> bool,
}

impl Conductor for Sending<'_> {
    fn fill(&mut self, _round: usize, bytes: &mut [u8]) {
        (self.fill)(bytes);
    }
    fn goes_on(&mut self, progress: &Progress) -> bool {
        (self.poll)(progress.now, progress.acknowledged)
    }
}

/// Sends `total` bytes, produced by `fill`, like [`perform`]. `poll` is called periodically with the time and the bytes
/// that the receiver has read; it returns `false` to stop.
pub fn send(
    to: SocketAddr,
    total: u64,
    verbs: &VerbsSettings,
    chunks: ChunkSettings,
    fill: &mut dyn FnMut(&mut [u8]),
    poll: &mut dyn FnMut(Time, u64) -> bool,
) -> Result<VerbsSent, TransferError> {
    perform(to, &[total], verbs, chunks, &mut Sending { fill, poll })
}
