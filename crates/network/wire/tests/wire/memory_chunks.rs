//! Queues of a sender in memory: paths with faults, and a virtual clock.

use anabranch_random::Stream;
use anabranch_units::{Rate, Time};
use anabranch_wire::{
    Label, WireError,
    chunks::{Chunk, ChunkPath, Completion, Full, QueueId},
};
use std::collections::{BTreeMap, VecDeque};

/// Duration of relabelling a queue (Soft-RoCE).
pub(crate) const RELABEL: Time = Time::from_us(500);
/// Time after which the hardware fails a chunk (seven retries).
const PEER_TIMEOUT: Time = Time::from_ms(500);

/// Path for chunks, which serves one at a time in the order of posting.
#[derive(Clone)]
pub(crate) struct ChunkLink {
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
    pub(crate) fn new(rate: Rate, delay: Time) -> Self {
        ChunkLink { rate, delay, jitter: Time::ZERO, cuts: Vec::new(), far: false }
    }
}

struct Queue {
    label: Label,
    failed: bool,
    /// Time at which it is ready after relabelling.
    ready: Time,
    posted: VecDeque<u64>,
    /// Completion of the last posted chunk: chunks keep their order.
    last: Time,
}

struct Pending {
    queue: QueueId,
    chunk: Chunk,
    is_done: bool,
    arrives: bool,
}

/// Sender in memory.
pub(crate) struct MemoryChunks {
    now: Time,
    seed: u64,
    usual: ChunkLink,
    /// Maximum outstanding chunks of a queue.
    depth: usize,
    /// Memory that chunks are read from, and that of the receiver.
    pub memory: Vec<u8>,
    pub received: Vec<u8>,
    /// Notices that the receiver has.
    pub notices: Vec<u32>,
    links: BTreeMap<Label, (ChunkLink, Time, Stream)>,
    queues: Vec<Queue>,
    pending: BTreeMap<(Time, u64), Pending>,
    posted: u64,
}

impl MemoryChunks {
    /// A sender with this memory to a receiver with `bytes` bytes, over `usual` paths unless they are set.
    pub(crate) fn new(seed: u64, usual: ChunkLink, depth: usize, memory: Vec<u8>, bytes: usize) -> Self {
        MemoryChunks {
            now: Time::ZERO,
            seed,
            usual,
            depth,
            memory,
            received: vec![0; bytes],
            notices: Vec::new(),
            links: BTreeMap::new(),
            queues: Vec::new(),
            pending: BTreeMap::new(),
            posted: 0,
        }
    }

    /// Sets the path of a label for chunks posted from now on.
    pub(crate) fn set(&mut self, label: Label, link: ChunkLink) {
        self.link(label).0 = link;
    }

    fn link(&mut self, label: Label) -> &mut (ChunkLink, Time, Stream) {
        let MemoryChunks { seed, usual, links, .. } = self;
        links
            .entry(label)
            .or_insert_with(|| (usual.clone(), Time::ZERO, Stream::keyed(*seed, u64::from(label), "chunk link")))
    }

    /// Returns the time of the completion, and whether the chunk is done and arrives.
    fn delivery(&mut self, label: Label, from: Time, bytes: u32) -> (Time, bool, bool) {
        let (link, free_at, draws) = self.link(label);
        let took = link.rate.wire_time(u64::from(bytes));
        let mut start = from.max(*free_at);
        for (cut, mended) in link.cuts.iter().copied() {
            if start < mended && cut < start + took {
                let noticed = start.max(cut);
                if mended.saturating_sub(noticed) > PEER_TIMEOUT {
                    *free_at = noticed + PEER_TIMEOUT;
                    return (noticed + PEER_TIMEOUT, false, link.far);
                }
                start = mended;
            }
        }
        *free_at = start + took;
        let late = if link.jitter > Time::ZERO { draws.below(link.jitter.ps()) } else { 0 };
        (*free_at + link.delay + Time::from_ps(late), true, true)
    }
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
        if state.posted.len() >= self.depth {
            return Err(Full);
        }
        let (label, last) = (state.label, state.last);
        let (at, is_done, arrives) = match state.failed {
            true => (self.now, false, false),
            false => self.delivery(label, self.now.max(state.ready), chunk.bytes),
        };
        let at = at.max(last);
        let state = &mut self.queues[queue as usize];
        state.last = at;
        state.posted.push_back(chunk.number);
        self.pending.insert((at, self.posted), Pending { queue, chunk, is_done, arrives });
        self.posted += 1;
        Ok(())
    }

    fn completions(&mut self, take: &mut dyn FnMut(Completion)) -> Result<(), WireError> {
        while let Some(entry) = self.pending.first_entry()
            && entry.key().0 <= self.now
        {
            let (at, _) = *entry.key();
            let Pending { queue, chunk, is_done, arrives } = entry.remove();
            let state = &mut self.queues[queue as usize];
            state.posted.pop_front();
            state.failed |= !is_done;
            if arrives {
                let (from, to, bytes) = (chunk.from as usize, chunk.to as usize, chunk.bytes as usize);
                self.received[to..to + bytes].copy_from_slice(&self.memory[from..from + bytes]);
                self.notices.extend(chunk.notice);
            }
            take(Completion { queue, chunk: chunk.number, at, is_done: !state.failed });
        }
        Ok(())
    }

    fn relabel(&mut self, queue: QueueId, label: Label) -> Result<Time, WireError> {
        let state = &mut self.queues[queue as usize];
        assert!(state.posted.is_empty(), "queue {queue} has {} chunks outstanding", state.posted.len());
        (state.label, state.failed, state.ready) = (label, false, self.now + RELABEL);
        Ok(RELABEL)
    }

    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        let next = self.pending.first_key_value().map_or(until, |((at, _), _)| (*at).min(until));
        self.now = self.now.max(next);
        Ok(())
    }
}
