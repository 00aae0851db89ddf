use super::{
    Chunk, ChunkPath, ChunkSettings, Completion, MAX_CHUNKS, QueueId,
    queues::Queues,
    stream::{Flight, Measured, Next, PendingChunk, Posted, Stream},
};
use crate::{Label, WireError};
use anabranch_endpoint::Balancer;
use anabranch_lb::{
    Decision, Feedback, FlowInfo, GuidedPaths, HostScheme, Outgoing, PathSpace, Tag,
    registry::{Host, TagKind},
};
use anabranch_random::Stream as Draws;
use anabranch_units::{Rate, Time};
use std::{collections::VecDeque, sync::Arc};

/// For schemes that require a flow size: a stream is unbounded.
const STREAM_CHUNKS: u64 = 1 << 40;
/// Delay before a refused post is retried when no completion can wake the stream.
const AGAIN: Time = Time::from_us(100);

/// Bytes to copy from the sender's memory to the receiver's. The sender's bytes must not change until [`ChunkEvent::Sent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the message, unique.
    pub number: u64,
    /// Offset in the sender's memory, in bytes.
    pub from: u64,
    /// Offset in the receiver's memory, in bytes.
    pub to: u64,
    /// Length in bytes, at least one.
    pub bytes: u64,
}

impl Message {
    /// Returns the number of chunks that the message is cut into.
    pub fn chunks(&self, chunk: u32) -> u64 {
        self.bytes.div_ceil(u64::from(chunk.max(1))).max(1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkEvent {
    /// The peer is measured, and sending begins.
    Open {
        /// Shortest round trip of a whole chunk.
        base: Time,
        /// Shortest round trip of a probe.
        probe: Time,
        /// Noise floor: round trips up to this much above the base count as uncongested.
        noise: Time,
    },
    /// A message is complete at the receiver.
    Sent { message: u64 },
    /// A chunk failed [`ChunkSettings::tries`] times, or no path worked: nothing more is sent.
    Lost,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkCounters {
    /// Chunks sent, retransmissions included.
    pub chunks: u64,
    /// Retransmitted chunks.
    pub again: u64,
    /// Probes sent after the base round trip was measured.
    pub probes: u64,
    /// Chunks and probes that the hardware failed to deliver.
    pub failed: u64,
    /// Chunks sent with another label than the chunk before.
    pub path_switches: u64,
    /// Times that a queue was assigned another label.
    pub relabelled: u64,
    /// Total time for which queues were down while they were relabelled or recovered.
    pub relabel_time: Time,
    pub queues: u64,
}

/// A scheme and the messages whose chunks it sends to the peer of a [`ChunkPath`], whose errors it returns. The peer's base
/// round trip is measured first.
#[derive(Debug)]
pub struct ChunkDriver<P> {
    path: P,
    settings: ChunkSettings,
    balancer: Balancer<Host>,
    stream: Stream,
    completed: Vec<Completion>,
    /// Number of the next chunk.
    posts: u64,
    events: VecDeque<ChunkEvent>,
    counters: ChunkCounters,
    by_label: Vec<u64>,
}

impl<P: ChunkPath> ChunkDriver<P> {
    /// Returns a driver without messages. `settings` have at least one label and have passed [`ChunkSettings::configure_scheme`].
    pub fn new(path: P, settings: ChunkSettings) -> Self {
        let scheme = settings.scheme.build(settings.seed, settings.seed);
        ChunkDriver {
            path,
            balancer: Balancer::new(scheme),
            stream: Stream::new(&settings),
            completed: Vec::new(),
            posts: 0,
            events: VecDeque::new(),
            counters: ChunkCounters::default(),
            by_label: vec![0; settings.labels.len()],
            settings,
        }
    }

    pub fn path(&mut self) -> &mut P {
        &mut self.path
    }

    /// Appends a message; returns `false` if it is empty or has too many chunks to number.
    pub fn send(&mut self, message: Message) -> bool {
        let count = message.chunks(self.settings.chunk);
        let may = count <= MAX_CHUNKS && message.bytes > 0;
        if may {
            self.stream.append(message, count);
        }
        may
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ChunkEvent> {
        self.events.pop_front()
    }

    pub fn counters(&self) -> ChunkCounters {
        let Queues { relabelled, relabel_time, .. } = self.stream.queues;
        let queues = self.stream.queues.count() as u64;
        ChunkCounters { relabelled, relabel_time, queues, ..self.counters }
    }

    /// Returns the number of chunks sent per label.
    pub fn by_label(&self) -> impl Iterator<Item = (Label, u64)> {
        self.settings.labels.iter().copied().zip(self.by_label.iter().copied())
    }

    /// Processes completions and sends. Returns the time of the next work, unless a chunk completes earlier.
    pub fn work(&mut self) -> Result<Option<Time>, WireError> {
        loop {
            let mut completed = std::mem::take(&mut self.completed);
            completed.clear();
            self.path.completions(&mut |completion| completed.push(completion))?;
            for completion in &completed {
                self.complete(completion)?;
            }
            self.completed = completed;
            let next = self.serve()?;
            if self.completed.is_empty() {
                return Ok(next);
            }
        }
    }

    /// Waits until a chunk completes or until `until`.
    pub fn wait(&mut self, until: Time) -> Result<(), WireError> {
        self.path.wait(until)
    }

    fn complete(&mut self, completion: &Completion) -> Result<(), WireError> {
        let stream = &mut self.stream;
        let Some(flight) = stream.in_flight.remove(&completion.chunk) else { return Ok(()) };
        stream.queues.completed(&mut self.path, completion.queue, completion.is_done)?;
        let took = completion.is_done.then(|| completion.at.saturating_sub(flight.at));
        self.counters.failed += u64::from(took.is_none());
        match flight.what {
            Posted::Calibration { label, whole, first } => stream.calibration.measured(first, label, whole, took),
            Posted::Probe { tag } => {
                if let Some(measured) = stream.measured {
                    // A chunk over this path takes as many times its base as the probe did.
                    let scaled = |took: Time| {
                        let times = u128::from(took.ps()) * u128::from(measured.chunk.ps());
                        Time::from_ps((times / u128::from(measured.probe.ps().max(1))) as u64)
                    };
                    let rtt = took.map_or(Time::MAX, scaled);
                    if self.balancer.scheme_mut().on_probe_reply(completion.at, measured.slot, tag, rtt, false) {
                        (stream.hold_until, stream.waits) = (Time::ZERO, false);
                    }
                }
            }
            Posted::Chunk { psn, tag } => self.complete_chunk(completion.at, psn, tag, took),
        }
        self.poll_probes(completion.at);
        Ok(())
    }

    fn poll_probes(&mut self, now: Time) {
        let Some(measured) = self.stream.measured else { return };
        while let Some(probe) = self.balancer.scheme_mut().poll_probe(now, measured.slot) {
            self.stream.queue_probe(probe);
        }
    }

    fn complete_chunk(&mut self, now: Time, psn: u64, tag: Tag, took: Option<Time>) {
        let stream = &mut self.stream;
        stream.chunks_under_way -= 1;
        stream.waits = false;
        let Some(measured) = stream.measured else { return };
        let Some(pending) = stream.pending.get_mut(&psn) else { return };
        let (bytes, tries) = (pending.bytes, pending.tries);
        let scheme = self.balancer.scheme_mut();
        if let Some(took) = took {
            if let Some(message) = stream.arrived(psn) {
                self.events.push_back(ChunkEvent::Sent { message });
            }
            let feedback = Feedback {
                tag,
                ecn: false,
                rtt: (tries == 1).then_some(took),
                psn,
                packets: 1,
                bytes: u64::from(bytes),
                cumulative: stream.cumulative(),
                next_psn: stream.next_psn,
                selective: 1,
                selective_from: psn,
            };
            scheme.on_ack(now, measured.slot, &feedback);
        } else {
            if tries >= self.settings.tries && !stream.lost {
                stream.lost = true;
                self.events.push_back(ChunkEvent::Lost);
            }
            stream.again.insert(psn);
            scheme.on_timeout(now, measured.slot, tag);
        }
    }

    /// Returns the time of the next transmission, unless a chunk completes earlier.
    fn serve(&mut self) -> Result<Option<Time>, WireError> {
        if self.stream.lost {
            return Ok(None);
        }
        if self.stream.measured.is_none() {
            return self.calibrate();
        }
        // Without acknowledgements too, where the scheme probes by time.
        let probe_at = |driver: &Self| driver.stream.measured.map(|of| driver.balancer.scheme().probe_at(of.slot));
        let now = self.path.now();
        if probe_at(self).is_some_and(|at| at <= now) {
            self.poll_probes(now);
        }
        self.send_probes()?;
        let next = self.send_chunks()?;
        let probe_at = probe_at(self).filter(|at| *at < Time::MAX);
        Ok(next.into_iter().chain(probe_at).min())
    }

    fn calibrate(&mut self) -> Result<Option<Time>, WireError> {
        let stream = &mut self.stream;
        if !stream.in_flight.is_empty() {
            return Ok(None);
        }
        let first = stream.probed_labels < self.settings.labels.len();
        match stream.calibration.next(stream.probed_labels, &self.settings) {
            Next::Measure { label, whole } => {
                let bytes = if whole { self.settings.chunk } else { self.settings.probe };
                let queue = stream.queues.of(&mut self.path, self.settings.labels[label], None)?;
                let posted = match queue {
                    Some(queue) => {
                        let to = if whole { 0 } else { self.settings.probe_to };
                        let chunk = Chunk { number: 0, from: 0, to, bytes, notice: None };
                        self.post(queue, chunk, Posted::Calibration { label, whole, first })
                    }
                    None => false,
                };
                if !posted {
                    return Ok(Some(self.path.now() + AGAIN));
                }
                self.stream.probed_labels += usize::from(first);
                Ok(None)
            }
            Next::Done { probe, base, noise } => {
                self.start(probe, base, noise);
                self.send_chunks()
            }
            Next::GivenUp => {
                stream.lost = true;
                self.events.push_back(ChunkEvent::Lost);
                Ok(None)
            }
        }
    }

    fn start(&mut self, probe: Time, base: Time, noise: Time) {
        let chunk = u64::from(self.settings.chunk);
        // Serialisation time: chunks under way on one path that wait for each other are no congestion.
        let probe_bytes = u64::from(self.settings.probe).min(chunk.saturating_sub(1));
        let line = u128::from(base.saturating_sub(probe).ps()) * u128::from(chunk) / u128::from(chunk - probe_bytes);
        let waiting = Time::from_ps(line as u64) * u64::from(self.settings.window.max(1) - 1);
        let base_rtt = base + noise + waiting;
        self.events.push_back(ChunkEvent::Open { base, probe, noise });
        let probe = probe + noise;
        let bits_per_second = u128::from(chunk) * 8_000_000_000_000 / u128::from(base.ps().max(1));
        let uplinks = [self.settings.labels.len() as u32];
        let is_guided = self.settings.scheme.capabilities().tags() == TagKind::Guided;
        let guided = is_guided.then(|| Arc::new(GuidedPaths::alike(uplinks[0])));
        let key = Draws::keyed(self.settings.seed, 0, "chunks").bits();
        let info = FlowInfo {
            key,
            connection: key,
            src: 0,
            dst: 1,
            size: chunk.saturating_mul(STREAM_CHUNKS),
            packets: STREAM_CHUNKS,
            bdp_packets: 1,
            base_rtt,
            probe_rtt: probe,
            rate: Rate((bits_per_second as u64).max(1)),
            full_packet: self.settings.chunk,
            early_packets: u64::MAX,
            paths: PathSpace { uplinks: &uplinks, guided: guided.as_ref(), ..PathSpace::default() },
        };
        let slot = self.balancer.open(self.path.now(), &info);
        self.stream.measured = Some(Measured { slot, probe, chunk: base_rtt });
    }

    fn send_probes(&mut self) -> Result<(), WireError> {
        for _ in 0..self.stream.probes.len() {
            let stream = &mut self.stream;
            let Some(probe) = stream.probes.pop_front() else { break };
            let in_use = stream.last_label;
            let label = self.label(probe.tag);
            let stream = &mut self.stream;
            // A probe does not relabel the queue that carries the data.
            let queue = stream.queues.of(&mut self.path, label, in_use)?;
            let chunk =
                Chunk { number: 0, from: 0, to: self.settings.probe_to, bytes: self.settings.probe, notice: None };
            match queue {
                Some(queue) if self.post(queue, chunk, Posted::Probe { tag: probe.tag }) => self.counters.probes += 1,
                _ => self.stream.probes.push_back(probe),
            }
        }
        Ok(())
    }

    fn send_chunks(&mut self) -> Result<Option<Time>, WireError> {
        let Some(measured) = self.stream.measured else { return Ok(None) };
        loop {
            let (chunk, window, now) = (self.settings.chunk, self.settings.window.max(1), self.path.now());
            let stream = &mut self.stream;
            if stream.chunks_under_way >= window || stream.waits {
                return Ok(None);
            }
            if now < stream.hold_until {
                return Ok(Some(stream.hold_until));
            }
            let Some((psn, pending)) = stream.next_chunk(chunk) else { return Ok(None) };
            let tag = match stream.chosen {
                Some((_, tag)) => tag,
                None => {
                    let outgoing = Outgoing {
                        psn,
                        retransmission: pending.tries > 0,
                        eligible_at: now,
                        ..Outgoing::first(pending.bytes)
                    };
                    match self.balancer.scheme_mut().select(now, measured.slot, &outgoing) {
                        Decision::Send(tag) | Decision::SendWithAckRequest(tag) => {
                            stream.choose(psn, pending, tag, chunk);
                            tag
                        }
                        Decision::Hold(until) => {
                            stream.hold_until = until;
                            continue;
                        }
                        Decision::Wait => {
                            // Without chunks under way no completion would wake the stream.
                            stream.waits = stream.chunks_under_way > 0;
                            return Ok((!stream.waits).then(|| now + AGAIN));
                        }
                    }
                }
            };
            if !self.send_chunk(psn, pending, tag)? {
                let idle = self.stream.in_flight.is_empty();
                return Ok(idle.then(|| now + AGAIN));
            }
        }
    }

    /// Tags of guided paths number labels, and chunks take turns where a tag names a category. Of other tags the halves
    /// beyond the number of labels are folded onto each other.
    fn label(&self, tag: Tag) -> Label {
        let labels = &self.settings.labels;
        let count = labels.len() as u32;
        let path = match self.settings.scheme.capabilities().tags() {
            TagKind::Guided => tag >> 16,
            TagKind::Category => self.counters.chunks as u32,
            TagKind::MultiPart | TagKind::Entropy if tag < count => tag,
            TagKind::MultiPart | TagKind::Entropy => tag >> 16 ^ tag & 0xffff,
        };
        labels[(path % count) as usize]
    }

    /// Returns `false` if no queue accepts the chunk.
    fn send_chunk(&mut self, psn: u64, pending: PendingChunk, tag: Tag) -> Result<bool, WireError> {
        let label = self.label(tag);
        let stream = &mut self.stream;
        let Some(queue) = stream.queues.of(&mut self.path, label, None)? else { return Ok(false) };
        let PendingChunk { from, to, bytes, notice, .. } = pending;
        let chunk = Chunk { number: 0, from, to, bytes, notice: Some(notice) };
        if !self.post(queue, chunk, Posted::Chunk { psn, tag }) {
            return Ok(false);
        }
        let stream = &mut self.stream;
        stream.chosen = None;
        stream.chunks_under_way += 1;
        let moved = stream.last_label.replace(label).is_some_and(|last| last != label);
        self.counters.chunks += 1;
        self.counters.again += u64::from(pending.tries > 0);
        self.counters.path_switches += u64::from(moved);
        if let Some(pending) = stream.pending.get_mut(&psn) {
            pending.tries += 1;
        }
        if let Some(slot) = self.settings.labels.iter().position(|known| *known == label) {
            self.by_label[slot] += 1;
        }
        Ok(true)
    }

    /// Returns `false` if the queue is full.
    fn post(&mut self, queue: QueueId, chunk: Chunk, what: Posted) -> bool {
        let number = self.posts;
        let now = self.path.now();
        if self.path.post(queue, Chunk { number, ..chunk }).is_err() {
            return false;
        }
        self.posts += 1;
        let stream = &mut self.stream;
        stream.queues.posted(queue);
        stream.in_flight.insert(number, Flight { what, at: now });
        true
    }
}
