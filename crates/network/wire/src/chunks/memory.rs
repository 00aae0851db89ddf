//! Queues of a sender in memory: paths with faults, and a virtual clock.

use super::{Chunk, ChunkPath, Completion, Full, QueueId, Status};
use crate::{Label, WireError};
use anabranch_random::Stream;
use anabranch_units::{Rate, Time};
use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

/// Path for chunks, which serves one at a time in the order of posting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkLink {
    /// Rate at which chunks leave.
    pub rate: Rate,
    /// Time from the departure of the last byte to the completion.
    pub delay: Time,
    /// Maximum extra delay of a completion, which completions of other queues may overtake.
    pub jitter: Time,
    /// Intervals (start, end) of cuts. A chunk under way then is retransmitted after the cut, or fails.
    pub cuts: Vec<(Time, Time)>,
    /// The cut affects the return direction: a failed chunk has arrived nevertheless.
    pub far: bool,
}

impl ChunkLink {
    /// Returns a path without faults.
    pub fn new(rate: Rate, delay: Time) -> Self {
        ChunkLink { rate, delay, jitter: Time::ZERO, cuts: Vec::new(), far: false }
    }
}

/// Limits that all queues of a sender in memory share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum outstanding chunks of a queue.
    pub depth: u32,
    /// Time after which the hardware fails the chunk.
    pub peer_timeout: Time,
    /// Duration of relabelling a queue.
    pub relabel: Time,
}

impl Default for Limits {
    /// Returns a depth of 16, half a second of retries (hardware's seven), and half a millisecond to relabel (Soft-RoCE).
    fn default() -> Self {
        Limits { depth: 16, peer_timeout: Time::from_ms(500), relabel: Time::from_us(500) }
    }
}

/// Chunk with a notice that has arrived at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// [`Chunk::notice`].
    pub notice: u32,
    /// Offset in the receiver's memory, in bytes.
    pub to: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Time of the sender's completion.
    pub at: Time,
}

#[derive(Debug)]
struct Peer {
    memory: Vec<u8>,
    arrived: Vec<Arrived>,
}

#[derive(Debug)]
struct Queue {
    label: Label,
    failed: bool,
    /// Time at which it is ready after relabelling.
    ready: Time,
    posted: VecDeque<u64>,
    /// Completion of the last posted chunk: chunks keep their order.
    last: Time,
}

#[derive(Debug)]
struct Pending {
    queue: QueueId,
    chunk: Chunk,
    status: Status,
    arrives: bool,
}

/// Sender in memory.
#[derive(Debug)]
pub struct MemoryChunks {
    now: Time,
    seed: u64,
    usual: ChunkLink,
    limits: Limits,
    /// Memory that chunks are read from.
    pub memory: Vec<u8>,
    peer: Peer,
    links: BTreeMap<Label, (ChunkLink, Time, Stream)>,
    queues: Vec<Queue>,
    pending: BTreeMap<(Time, u64), Pending>,
    posted: u64,
}

impl MemoryChunks {
    /// Returns a sender with this memory to a receiver with `bytes` bytes, over `usual` paths unless they are set.
    pub fn new(seed: u64, usual: ChunkLink, limits: Limits, memory: Vec<u8>, bytes: usize) -> Self {
        MemoryChunks {
            now: Time::ZERO,
            seed,
            usual,
            limits,
            memory,
            peer: Peer { memory: vec![0; bytes], arrived: Vec::new() },
            links: BTreeMap::new(),
            queues: Vec::new(),
            pending: BTreeMap::new(),
            posted: 0,
        }
    }

    /// Sets the path of a label to `link`, for chunks posted from now on.
    pub fn set(&mut self, label: Label, link: ChunkLink) {
        self.link(label).0 = link;
    }

    /// Returns the receiver's memory.
    pub fn received(&self) -> &[u8] {
        &self.peer.memory
    }

    /// Returns the chunks with notices that the receiver has, in order of arrival.
    pub fn arrived(&self) -> &[Arrived] {
        &self.peer.arrived
    }

    /// Returns the labels of all queues.
    pub fn labels(&self) -> Vec<Label> {
        self.queues.iter().map(|queue| queue.label).collect()
    }

    fn link(&mut self, label: Label) -> &mut (ChunkLink, Time, Stream) {
        let MemoryChunks { seed, usual, links, .. } = self;
        links
            .entry(label)
            .or_insert_with(|| (usual.clone(), Time::ZERO, Stream::keyed(*seed, u64::from(label), "chunk link")))
    }

    fn delivery(&mut self, label: Label, from: Time, bytes: u32) -> (Time, Status, bool) {
        let peer_timeout = self.limits.peer_timeout;
        let (link, free_at, draws) = self.link(label);
        let took = link.rate.wire_time(u64::from(bytes));
        let mut start = from.max(*free_at);
        let mut cuts = link.cuts.clone();
        cuts.sort_unstable();
        for (cut, mended) in cuts {
            if start < mended && cut < start + took {
                let noticed = start.max(cut);
                if mended.saturating_sub(noticed) > peer_timeout {
                    *free_at = noticed + peer_timeout;
                    return (noticed + peer_timeout, Status::Failed, link.far);
                }
                start = mended;
            }
        }
        *free_at = start + took;
        let late = if link.jitter > Time::ZERO { draws.below(link.jitter.ps()) } else { 0 };
        (*free_at + link.delay + Time::from_ps(late), Status::Done, true)
    }
}

fn refused(what: String) -> WireError {
    WireError::System { what, source: io::ErrorKind::InvalidInput.into() }
}

impl ChunkPath for MemoryChunks {
    fn now(&self) -> Time {
        self.now
    }

    fn queue(&mut self, label: Label) -> Result<QueueId, WireError> {
        let (ready, last) = (self.now, Time::ZERO);
        self.queues.push(Queue { label, failed: false, ready, posted: VecDeque::new(), last });
        Ok(self.queues.len() as QueueId - 1)
    }

    fn post(&mut self, queue: QueueId, chunk: Chunk) -> Result<(), Full> {
        let state = &self.queues[queue as usize];
        if state.posted.len() >= self.limits.depth as usize {
            return Err(Full);
        }
        let (label, last) = (state.label, state.last);
        let (at, status, arrives) = match state.failed {
            true => (self.now, Status::Failed, false),
            false => self.delivery(label, self.now.max(state.ready), chunk.bytes),
        };
        let at = at.max(last);
        let state = &mut self.queues[queue as usize];
        state.last = at;
        state.posted.push_back(chunk.number);
        self.pending.insert((at, self.posted), Pending { queue, chunk, status, arrives });
        self.posted += 1;
        Ok(())
    }

    fn completions(&mut self, take: &mut dyn FnMut(Completion)) -> Result<usize, WireError> {
        let mut taken = 0;
        while let Some(entry) = self.pending.first_entry()
            && entry.key().0 <= self.now
        {
            let (at, _) = *entry.key();
            let Pending { queue, chunk, status, arrives } = entry.remove();
            let state = &mut self.queues[queue as usize];
            state.posted.pop_front();
            let status = if state.failed { Status::Failed } else { status };
            state.failed |= status == Status::Failed;
            let peer = &mut self.peer;
            if arrives {
                let (from, to, bytes) = (chunk.from as usize, chunk.to as usize, chunk.bytes as usize);
                peer.memory[to..to + bytes].copy_from_slice(&self.memory[from..from + bytes]);
                if let Some(notice) = chunk.notice {
                    peer.arrived.push(Arrived { notice, to: chunk.to, bytes: chunk.bytes, at });
                }
            }
            take(Completion { queue, chunk: chunk.number, at, status });
            taken += 1;
        }
        Ok(taken)
    }

    fn relabel(&mut self, queue: QueueId, label: Label) -> Result<Time, WireError> {
        let (now, takes) = (self.now, self.limits.relabel);
        let state = self.queues.get_mut(queue as usize).ok_or_else(|| refused(format!("there is no queue {queue}")))?;
        if !state.posted.is_empty() {
            return Err(refused(format!("queue {queue} has {} chunks outstanding", state.posted.len())));
        }
        (state.label, state.failed, state.ready) = (label, false, now + takes);
        Ok(takes)
    }

    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        let next = self.pending.first_key_value().map_or(until, |((at, _), _)| (*at).min(until));
        self.now = self.now.max(next);
        Ok(())
    }
}
