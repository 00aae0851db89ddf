use super::{ChunkSettings, Message, notice, piece, queues::Queues};
use crate::Label;
use anabranch_lb::{Probe, Tag};
use anabranch_units::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Copy, Debug)]
pub(super) enum Posted {
    Chunk {
        psn: u64,
        tag: Tag,
    },
    Probe {
        tag: Tag,
    },
    /// Before any data.
    Calibration {
        label: usize,
        whole: bool,
        first: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) what: Posted,
    pub(super) at: Time,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PendingChunk {
    pub(super) message: u64,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) bytes: u32,
    pub(super) notice: u32,
    pub(super) tries: u32,
}

/// A probe over each label, then probes and whole chunks over the fastest.
#[derive(Debug, Default)]
pub(super) struct Calibration {
    first: Vec<Option<Time>>,
    probes: Vec<Time>,
    chunks: Vec<Time>,
    failures: u32,
}

pub(super) enum Next {
    Measure { label: usize, whole: bool },
    Done { probe: Time, base: Time, noise: Time },
    GivenUp,
}

impl Calibration {
    fn best(&self) -> usize {
        let measured = self.first.iter().enumerate().filter_map(|(label, first)| Some(((*first)?, label)));
        measured.min().map_or(0, |(_, label)| label)
    }

    /// `probed_labels` is the number of labels whose first probe was sent.
    pub(super) fn next(&self, probed_labels: usize, settings: &ChunkSettings) -> Next {
        if probed_labels < self.first.len() {
            return Next::Measure { label: probed_labels, whole: false };
        }
        if self.failures > settings.tries || self.first.iter().all(Option::is_none) {
            return Next::GivenUp;
        }
        let label = self.best();
        if self.probes.len() < settings.calibrations.max(1) as usize {
            return Next::Measure { label, whole: false };
        }
        if self.chunks.len() < settings.chunk_calibrations.max(1) as usize {
            return Next::Measure { label, whole: true };
        }
        let (probe, base) = (self.probes.iter().min(), self.chunks.iter().min());
        let (Some(&probe), Some(&base)) = (probe, base) else { return Next::GivenUp };
        // The noise covers nine of ten samples, or all of a few.
        let spread = |times: &[Time], shortest: Time| {
            let mut times = times.to_vec();
            times.sort_unstable();
            times[(times.len() * 9).div_ceil(10) - 1].saturating_sub(shortest)
        };
        let noise = spread(&self.probes, probe).max(spread(&self.chunks, base)).max(settings.rtt_floor);
        Next::Done { probe, base, noise }
    }

    /// `None`: the hardware failed to deliver.
    pub(super) fn measured(&mut self, first: bool, label: usize, whole: bool, took: Option<Time>) {
        match took {
            took if first => self.first[label] = took,
            None => self.failures += 1,
            Some(took) if whole => self.chunks.push(took),
            Some(took) => self.probes.push(took),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) slot: u32,
    /// Uncongested round trips of a probe and of a whole chunk, noise included.
    pub(super) probe: Time,
    pub(super) chunk: Time,
}

#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) queues: Queues,
    pub(super) calibration: Calibration,
    pub(super) probed_labels: usize,
    pub(super) measured: Option<Measured>,
    pub(super) lost: bool,
    /// Messages with chunks still to be cut, and the number of chunks already cut.
    pub(super) messages: VecDeque<(Message, u64)>,
    missing: BTreeMap<u64, u64>,
    pub(super) pending: BTreeMap<u64, PendingChunk>,
    pub(super) again: BTreeSet<u64>,
    pub(super) in_flight: BTreeMap<u64, Flight>,
    pub(super) chunks_under_way: u32,
    pub(super) next_psn: u64,
    /// For a chunk that no queue has accepted yet: the scheme is not called twice.
    pub(super) chosen: Option<(u64, Tag)>,
    pub(super) hold_until: Time,
    pub(super) waits: bool,
    pub(super) probes: VecDeque<Probe>,
    pub(super) last_label: Option<Label>,
}

/// Maximum number of probes that wait for a queue; older ones are dropped.
const MAX_PROBES: usize = 16;

impl Stream {
    pub(super) fn new(settings: &ChunkSettings) -> Self {
        Stream {
            queues: Queues::new(settings.max_queues),
            calibration: Calibration { first: vec![None; settings.labels.len()], ..Calibration::default() },
            ..Stream::default()
        }
    }

    pub(super) fn append(&mut self, message: Message, count: u64) {
        self.missing.insert(message.number, count);
        self.messages.push_back((message, 0));
    }

    /// Returns a retransmission or a new chunk, which stays queued until [`Stream::choose`].
    pub(super) fn next_chunk(&mut self, chunk: u32) -> Option<(u64, PendingChunk)> {
        if let Some((psn, _)) = self.chosen {
            return Some((psn, *self.pending.get(&psn)?));
        }
        if let Some(psn) = self.again.first() {
            return Some((*psn, *self.pending.get(psn)?));
        }
        let (message, made) = self.messages.front()?;
        let count = message.chunks(chunk);
        let (offset, bytes) = piece(message.bytes, count, *made);
        let pending = PendingChunk {
            message: message.number,
            from: message.from + offset,
            to: message.to + offset,
            bytes: bytes as u32,
            notice: notice(message.number, *made),
            tries: 0,
        };
        Some((self.next_psn, pending))
    }

    pub(super) fn choose(&mut self, psn: u64, pending: PendingChunk, tag: Tag, chunk: u32) {
        self.chosen = Some((psn, tag));
        if psn != self.next_psn {
            self.again.remove(&psn);
            return;
        }
        self.next_psn += 1;
        self.pending.insert(psn, pending);
        if let Some((message, made)) = self.messages.front_mut() {
            *made += 1;
            if *made == message.chunks(chunk) {
                self.messages.pop_front();
            }
        }
    }

    /// Returns the chunk's message if that is complete now.
    pub(super) fn arrived(&mut self, psn: u64) -> Option<u64> {
        let pending = self.pending.remove(&psn)?;
        let missing = self.missing.get_mut(&pending.message)?;
        *missing -= 1;
        if *missing > 0 {
            return None;
        }
        self.missing.remove(&pending.message);
        Some(pending.message)
    }

    /// Every chunk below this one has arrived.
    pub(super) fn cumulative(&self) -> u64 {
        self.pending.first_key_value().map_or(self.next_psn, |(psn, _)| *psn)
    }

    pub(super) fn queue_probe(&mut self, probe: Probe) {
        if self.probes.len() == MAX_PROBES {
            self.probes.pop_front();
        }
        self.probes.push_back(probe);
    }
}
