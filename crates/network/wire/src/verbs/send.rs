//! Sender of transfers over verbs.

use super::{VerbsPath, VerbsSettings, control::Frame};
use crate::{
    Label, WireError,
    chunks::{ChunkCounters, ChunkDriver, ChunkEvent, ChunkPath, ChunkSettings, Message},
    transfer::{Summary, TransferError},
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
/// Maximum time between two calls of the caller's `poll`.
const POLL_INTERVAL: Time = Time::from_us(100_000);

/// Result of a transfer over verbs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerbsSent {
    /// Summary of the bytes, equal at sender and receiver.
    pub summary: Summary,
    /// Time from the first chunk to the receiver's confirmation.
    pub took: Time,
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

fn lost(at: SocketAddr, error: &WireError) -> TransferError {
    TransferError::Lost { at, reason: format!("is lost: {error}") }
}

struct Sender<'a> {
    to: SocketAddr,
    driver: ChunkDriver<VerbsPath>,
    chunk: u32,
    /// Bytes of the longest message.
    max: u64,
    total: u64,
    fill: &'a mut dyn FnMut(&mut [u8]),
    made: u64,
    /// Bytes made of the message in production, and its number.
    partial: u64,
    number: u64,
    hasher: crc32fast::Hasher,
    piece: Vec<u8>,
    ready: VecDeque<Message>,
    /// Not yet read by the receiver.
    messages: BTreeMap<u64, Message>,
    /// Time of the measurement of the path; base, probe, noise.
    opened: Option<(Time, Time, Time, Time)>,
    /// Bytes that the receiver has read.
    taken: u64,
    ended: bool,
    took: Time,
}

impl Sender<'_> {
    fn makes(&self) -> bool {
        self.made < self.total && (self.messages.len() as u64) < SLOTS
    }

    /// Produces a piece of the next message.
    fn make(&mut self) {
        let from = self.number % SLOTS * self.max;
        let bytes = (self.total - (self.made - self.partial)).min(self.max);
        let size = (bytes - self.partial).min(PIECE as u64) as usize;
        let piece = &mut self.piece[..size];
        (self.fill)(piece);
        self.hasher.update(piece);
        self.driver.path().fill(from + self.partial, piece);
        self.made += size as u64;
        self.partial += size as u64;
        if self.partial == bytes {
            let message = Message { number: self.number, from, to: from, bytes };
            self.ready.push_back(message);
            self.messages.insert(message.number, message);
            (self.number, self.partial) = (self.number + 1, 0);
        }
    }

    fn handle_events(&mut self, now: Time) -> Result<(), TransferError> {
        while let Some(event) = self.driver.poll_event() {
            match event {
                ChunkEvent::Open { base, probe, noise } => self.opened = Some((now, base, probe, noise)),
                ChunkEvent::Sent { message } => {
                    let Some(Message { number, to: at, bytes, .. }) = self.messages.get(&message).copied() else {
                        continue;
                    };
                    let chunks = self.messages[&message].chunks(self.chunk);
                    let frame = Frame::Message { number, at, bytes, chunks };
                    self.driver.path().control().send(&frame).map_err(|error| lost(self.to, &error))?;
                }
                ChunkEvent::Lost => {
                    let reason = self.driver.path().last_error().unwrap_or("no path leads there").to_string();
                    return Err(TransferError::Lost { at: self.to, reason: format!("cannot be reached: {reason}") });
                }
            }
        }
        Ok(())
    }

    /// Passes new messages to the driver; returns `true` if it accepts any.
    fn pass(&mut self) -> bool {
        let mut some = false;
        while self.opened.is_some()
            && let Some(message) = self.ready.pop_front()
        {
            some |= self.driver.send(message);
        }
        some
    }

    fn summary(&self) -> Summary {
        Summary { bytes: self.total, checksum: self.hasher.clone().finalize() }
    }

    /// Returns the receiver's confirmation once it has arrived.
    fn read(&mut self) -> Result<Option<Summary>, TransferError> {
        let at = self.to;
        while let Some(frame) = self.driver.path().control().poll().map_err(|error| lost(at, &error))? {
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

/// Sends `total` bytes, produced by `fill`.
///
/// `poll` is called periodically with the time and the bytes that the receiver has read; it returns `false` to stop. Fills
/// memory offsets into `chunks` and configures the scheme.
pub fn send(
    to: SocketAddr,
    total: u64,
    verbs: &VerbsSettings,
    mut chunks: ChunkSettings,
    fill: &mut dyn FnMut(&mut [u8]),
    poll: &mut dyn FnMut(Time, u64) -> bool,
) -> Result<VerbsSent, TransferError> {
    let max = CHUNKS * u64::from(chunks.chunk);
    chunks.probe_to = SLOTS * max;
    chunks.max_queues = chunks.max_queues.min(super::MAX_QUEUES);
    chunks.configure_scheme().map_err(|error| WireError::Verbs(error.to_string()))?;
    let memory = chunks.probe_to + u64::from(chunks.probe);
    let path = VerbsPath::connect(to, memory, verbs.clone(), chunks.seed)?;
    let driver = ChunkDriver::new(path, chunks.clone());
    let mut sender = Sender {
        to,
        driver,
        chunk: chunks.chunk,
        max,
        total,
        fill,
        made: 0,
        partial: 0,
        number: 0,
        hasher: crc32fast::Hasher::new(),
        piece: vec![0; PIECE],
        ready: VecDeque::new(),
        messages: BTreeMap::new(),
        opened: None,
        taken: 0,
        ended: false,
        took: Time::ZERO,
    };
    // Messages produced before the measurement do not disturb it.
    while sender.makes() {
        sender.make();
    }
    let (mut last_poll, mut longest_pause, mut last) = (Time::ZERO, Time::ZERO, sender.driver.path().now());
    loop {
        let next = sender.driver.work().map_err(|error| lost(to, &error))?;
        let now = sender.driver.path().now();
        longest_pause = longest_pause.max(now.saturating_sub(last));
        sender.handle_events(now)?;
        let passed = sender.pass();
        if let Some(summary) = sender.read()? {
            let (_, base, probe, noise) = sender.opened.unwrap_or_default();
            let driver = &mut sender.driver;
            return Ok(VerbsSent {
                summary,
                took: sender.took,
                base,
                probe,
                noise,
                counters: driver.counters(),
                by_label: driver.by_label().collect(),
                last_error: driver.path().last_error().map(str::to_string),
                longest_pause,
            });
        }
        let makes = sender.makes();
        if makes {
            sender.make();
        }
        if sender.opened.is_some() && sender.taken == total && !sender.ended {
            sender.ended = true;
            sender.took = now.saturating_sub(sender.opened.map_or(now, |(began, ..)| began));
            let frame = Frame::Total(sender.summary(), sender.took.ps() / 1000);
            sender.driver.path().control().send(&frame).map_err(|error| lost(to, &error))?;
        }
        if now.saturating_sub(last_poll) >= POLL_INTERVAL {
            last_poll = now;
            if !poll(now, sender.taken) {
                return Err(TransferError::Interrupted);
            }
        }
        last = sender.driver.path().now();
        if !makes && !passed {
            let until = last + POLL_INTERVAL;
            sender.driver.wait(next.unwrap_or(until).min(until))?;
            last = sender.driver.path().now().max(last);
        }
    }
}
