//! The sender of a transfer over verbs.

use super::{VerbsPath, VerbsSettings, control::Frame};
use crate::{
    Label, WireError,
    chunks::{ChunkCounters, ChunkDriver, ChunkEvent, ChunkPath, ChunkSettings, Message},
    transfer::{Summary, TransferError},
};
use anabranch_units::Time;
use std::{collections::BTreeMap, net::SocketAddr};

/// Chunks of a message.
const CHUNKS: u64 = 16;
/// Messages for which both ends have room: one is under way while the receiver reads the other.
const SLOTS: u64 = 2;
/// Bytes that are made at once, between two looks at the completion queue.
const PIECE: usize = 1 << 16;
/// How long nothing need happen before somebody looks whether to go on.
const LOOK: Time = Time::from_us(100_000);

/// How a transfer over verbs went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerbsSent {
    /// What was sent, and received, which is the same.
    pub summary: Summary,
    /// From the first chunk to the receiver's word that it has all.
    pub took: Time,
    /// Shortest round trip of a whole chunk before anything was sent.
    pub base: Time,
    /// Shortest round trip of a probe.
    pub probe: Time,
    /// What lies this much above the base counts as nothing.
    pub noise: Time,
    /// What the driver has counted.
    pub counters: ChunkCounters,
    /// How many chunks went by each label.
    pub by_label: Vec<(Label, u64)>,
    /// Why hardware has last given a chunk up, if it has.
    pub last_error: Option<String>,
    /// The longest time between two looks at the completion queue.
    pub longest_pause: Time,
}

/// Bytes on their way into messages.
struct Making<'a> {
    total: u64,
    fill: &'a mut dyn FnMut(&mut [u8]),
    hasher: crc32fast::Hasher,
    made: u64,
    /// Of the message that is being made.
    done: u64,
    number: u64,
    piece: Vec<u8>,
}

impl Making<'_> {
    /// Makes a piece of the next message; returns that where it is whole.
    fn step(&mut self, path: &mut VerbsPath, most: u64) -> Option<Message> {
        let from = self.number % SLOTS * most;
        let whole = (self.total - (self.made - self.done)).min(most);
        let size = (whole - self.done).min(PIECE as u64) as usize;
        let piece = &mut self.piece[..size];
        (self.fill)(piece);
        self.hasher.update(piece);
        path.fill(from + self.done, piece);
        self.made += size as u64;
        self.done += size as u64;
        if self.done < whole {
            return None;
        }
        let message = Message { number: self.number, from, to: from, bytes: whole };
        self.number += 1;
        self.done = 0;
        Some(message)
    }
}

fn lost(at: SocketAddr, error: &WireError) -> TransferError {
    TransferError::Lost { at, why: format!("is lost: {error}") }
}

/// Sends `total` bytes that `fill` makes to a receiver that serves. `chunks` are told where memory lies and to the scheme;
/// `look` hears now and then how much has been taken, and says whether to go on.
///
/// # Errors
/// [`TransferError`].
pub fn send(
    to: SocketAddr,
    total: u64,
    verbs: &VerbsSettings,
    mut chunks: ChunkSettings,
    fill: &mut dyn FnMut(&mut [u8]),
    look: &mut dyn FnMut(Time, u64) -> bool,
) -> Result<VerbsSent, TransferError> {
    let most = CHUNKS * u64::from(chunks.chunk);
    chunks.probe_to = SLOTS * most;
    chunks.most_queues = chunks.most_queues.min(super::MOST_QUEUES);
    chunks.tell_scheme().map_err(|error| WireError::Verbs(error.to_string()))?;
    let memory = chunks.probe_to + u64::from(chunks.probe);
    let mut path = VerbsPath::connect(to, memory, verbs.clone(), chunks.seed)?;
    let mut making =
        Making { total, fill, hasher: crc32fast::Hasher::new(), made: 0, done: 0, number: 0, piece: vec![0; PIECE] };
    // Whatever can be made beforehand disturbs no measurement.
    let mut first = Vec::new();
    while making.made < total && (first.len() as u64) < SLOTS {
        first.extend(making.step(&mut path, most));
    }
    let mut driver = ChunkDriver::new(path, chunks.clone());
    let stream = driver.open(0);
    let mut messages: BTreeMap<u64, Message> = BTreeMap::new();
    for message in first {
        driver.send(stream, message);
        messages.insert(message.number, message);
    }
    let (mut taken, mut ended, mut looked) = (0, false, Time::ZERO);
    let mut opened: Option<(Time, Time, Time, Time)> = None;
    let (mut longest_pause, mut last) = (Time::ZERO, driver.path().now());
    loop {
        let next = driver.work().map_err(|error| lost(to, &error))?;
        let now = driver.path().now();
        longest_pause = longest_pause.max(now.saturating_sub(last));
        while let Some(event) = driver.poll_event() {
            match event {
                ChunkEvent::Open { base, probe, noise, .. } => opened = Some((now, base, probe, noise)),
                ChunkEvent::Sent { message, .. } => {
                    let Some(Message { number, to: at, bytes, .. }) = messages.get(&message).copied() else { continue };
                    let count = messages[&message].chunks(chunks.chunk);
                    let frame = Frame::Message { number, at, bytes, chunks: count };
                    driver.path().control(0)?.send(&frame).map_err(|error| lost(to, &error))?;
                }
                ChunkEvent::Lost { .. } => {
                    let why = driver.path().last_error().unwrap_or("no path leads there").to_string();
                    return Err(TransferError::Lost { at: to, why: format!("cannot be reached: {why}") });
                }
            }
        }
        while let Some(frame) = driver.path().control(0)?.poll().map_err(|error| lost(to, &error))? {
            match frame {
                Frame::Taken { number } => taken += messages.remove(&number).map_or(0, |message| message.bytes),
                Frame::Total(theirs) => {
                    let ours = Summary { bytes: total, checksum: making.hasher.clone().finalize() };
                    if theirs != ours || !ended {
                        return Err(TransferError::Differs { at: to, theirs, ours });
                    }
                    let (began, base, probe, noise) = opened.unwrap_or((now, Time::ZERO, Time::ZERO, Time::ZERO));
                    return Ok(VerbsSent {
                        summary: ours,
                        took: now.saturating_sub(began),
                        base,
                        probe,
                        noise,
                        counters: driver.counters(),
                        by_label: driver.by_label().collect(),
                        last_error: driver.path().last_error().map(str::to_string),
                        longest_pause,
                    });
                }
                Frame::Refused => {
                    let why = "refuses; its own output says why".into();
                    return Err(TransferError::Lost { at: to, why });
                }
                other => {
                    return Err(TransferError::Lost { at: to, why: format!("says {other:?} where nobody asked") });
                }
            }
        }
        let making_more = making.made < total && (messages.len() as u64) < SLOTS;
        if making_more && let Some(message) = making.step(driver.path(), most) {
            driver.send(stream, message);
            messages.insert(message.number, message);
        }
        if opened.is_some() && taken == total && !ended {
            ended = true;
            let summary = Summary { bytes: total, checksum: making.hasher.clone().finalize() };
            driver.path().control(0)?.send(&Frame::Total(summary)).map_err(|error| lost(to, &error))?;
        }
        if now.saturating_sub(looked) >= LOOK {
            looked = now;
            if !look(now, taken) {
                return Err(TransferError::Interrupted);
            }
        }
        last = driver.path().now();
        if !making_more {
            driver.wait(next.unwrap_or(now + LOOK).min(now + LOOK))?;
            last = driver.path().now().max(last);
        }
    }
}
