//! A stream of messages to one peer, chunk by chunk.

use super::{ChunkSettings, Completion, Message, Status, notice, piece, queues::Queues};
use crate::{Label, PeerId};
use anabranch_lb::{Probe, Tag};
use anabranch_units::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is posted: a chunk of a message, or a probe.
#[derive(Clone, Copy, Debug)]
pub(super) enum Posted {
    Chunk {
        psn: u64,
        tag: Tag,
    },
    Probe {
        tag: Tag,
        /// The flow that asked.
        flow: u64,
    },
    /// Before anything else: the base round trip is measured.
    Calibration {
        label: usize,
        whole: bool,
        first: bool,
    },
}

/// Something under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) what: Posted,
    pub(super) at: Time,
}

/// A chunk that has not arrived yet, as its message says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) message: u64,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) bytes: u32,
    pub(super) notice: u32,
    pub(super) tries: u32,
}

/// How the base round trip is measured: a probe over each label, then more over the best of them, then whole chunks.
#[derive(Debug)]
pub(super) struct Calibration {
    /// The first round trip over each label.
    first: Vec<Option<Time>>,
    /// Round trips of probes and of chunks over the best label.
    probes: Vec<Time>,
    chunks: Vec<Time>,
    /// How often the hardware gave up on that label.
    failures: u32,
}

/// What a calibration asks for next.
pub(super) enum Next {
    Measure { label: usize, whole: bool },
    Done { probe: Time, base: Time, noise: Time },
    GivenUp,
}

impl Calibration {
    pub(super) fn new(labels: usize) -> Self {
        Calibration { first: vec![None; labels], probes: Vec::new(), chunks: Vec::new(), failures: 0 }
    }

    fn best(&self) -> usize {
        let heard = self.first.iter().enumerate().filter_map(|(label, first)| Some(((*first)?, label)));
        heard.min().map_or(0, |(_, label)| label)
    }

    /// What comes next. `asked` labels have been asked for their first round trip.
    pub(super) fn next(&self, asked: usize, settings: &ChunkSettings) -> Next {
        if asked < self.first.len() {
            return Next::Measure { label: asked, whole: false };
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
        // Nine of ten, and of a few all, were within the noise.
        let spread = |times: &[Time], shortest: Time| {
            let mut times = times.to_vec();
            times.sort_unstable();
            times[(times.len() * 9).div_ceil(10) - 1].saturating_sub(shortest)
        };
        let noise = spread(&self.probes, probe).max(spread(&self.chunks, base)).max(settings.rtt_floor);
        Next::Done { probe, base, noise }
    }

    /// A round trip over a label, or none where the hardware gave up.
    pub(super) fn heard(&mut self, first: bool, label: usize, whole: bool, took: Option<Time>) {
        match took {
            took if first => self.first[label] = took,
            None => self.failures += 1,
            Some(took) if whole => self.chunks.push(took),
            Some(took) => self.probes.push(took),
        }
    }
}

/// What is known of a peer once it has been measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) slot: u32,
    /// The round trips of a probe and of a whole chunk that the scheme takes for uncongested, noise included.
    pub(super) probe: Time,
    pub(super) chunk: Time,
    /// That of a whole chunk alone.
    pub(super) base: Time,
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) peer: PeerId,
    pub(super) queues: Queues,
    pub(super) calibration: Calibration,
    /// Labels that have been asked for their first round trip.
    pub(super) asked: usize,
    pub(super) measured: Option<Measured>,
    pub(super) lost: bool,
    /// Which flow it is to the scheme: one after the other.
    pub(super) flow: u64,
    /// Messages of which chunks have still to be made, and how many have.
    pub(super) messages: VecDeque<(Message, u64)>,
    /// Chunks of messages that have not arrived.
    missing: BTreeMap<u64, u64>,
    /// Chunks that have not arrived, by their numbers in the stream.
    pub(super) wanted: BTreeMap<u64, Wanted>,
    /// Chunks to be sent again.
    pub(super) again: BTreeSet<u64>,
    pub(super) under_way: BTreeMap<u64, Flight>,
    pub(super) chunks_under_way: u32,
    pub(super) next_psn: u64,
    /// The scheme's answer for a chunk that no queue has taken yet: it is not asked twice.
    pub(super) chosen: Option<(u64, Tag)>,
    pub(super) hold_until: Time,
    pub(super) waits: bool,
    pub(super) probes: VecDeque<Probe>,
    pub(super) last_tag: Option<Tag>,
}

/// Probes that may wait for a queue; older ones are void.
const MOST_PROBES: usize = 16;

impl Stream {
    pub(super) fn new(peer: PeerId, settings: &ChunkSettings) -> Self {
        Stream {
            peer,
            queues: Queues::new(peer, settings.most_queues),
            calibration: Calibration::new(settings.labels.len()),
            asked: 0,
            measured: None,
            lost: false,
            flow: 0,
            messages: VecDeque::new(),
            missing: BTreeMap::new(),
            wanted: BTreeMap::new(),
            again: BTreeSet::new(),
            under_way: BTreeMap::new(),
            chunks_under_way: 0,
            next_psn: 0,
            chosen: None,
            hold_until: Time::ZERO,
            waits: false,
            probes: VecDeque::new(),
            last_tag: None,
        }
    }

    pub(super) fn append(&mut self, message: Message, count: u64) {
        self.missing.insert(message.number, count);
        self.messages.push_back((message, 0));
    }

    /// Another flow begins, where nothing of this one is left.
    pub(super) fn renew(&mut self) {
        (self.flow, self.next_psn) = (self.flow + 1, 0);
        (self.last_tag, self.hold_until, self.waits) = (None, Time::ZERO, false);
        self.probes.clear();
    }

    /// The chunk to be sent next: one to be sent again, or the next new one. It stays until [`Stream::taken`].
    pub(super) fn next_chunk(&mut self, chunk: u32) -> Option<(u64, Wanted)> {
        if let Some((psn, _)) = self.chosen {
            return Some((psn, *self.wanted.get(&psn)?));
        }
        if let Some(psn) = self.again.first() {
            return Some((*psn, *self.wanted.get(psn)?));
        }
        let (message, made) = self.messages.front()?;
        let count = message.chunks(chunk);
        let (offset, bytes) = piece(message.bytes, count, *made);
        let wanted = Wanted {
            message: message.number,
            from: message.from + offset,
            to: message.to + offset,
            bytes: bytes as u32,
            notice: notice(message.number, *made),
            tries: 0,
        };
        Some((self.next_psn, wanted))
    }

    /// The scheme has chosen for a chunk, which is made now if it is new.
    pub(super) fn choose(&mut self, psn: u64, wanted: Wanted, tag: Tag, chunk: u32) {
        self.chosen = Some((psn, tag));
        if psn != self.next_psn {
            self.again.remove(&psn);
            return;
        }
        self.next_psn += 1;
        self.wanted.insert(psn, wanted);
        if let Some((message, made)) = self.messages.front_mut() {
            *made += 1;
            if *made == message.chunks(chunk) {
                self.messages.pop_front();
            }
        }
    }

    /// A chunk has arrived; returns its message where that is whole now.
    pub(super) fn arrived(&mut self, psn: u64) -> Option<u64> {
        let wanted = self.wanted.remove(&psn)?;
        let missing = self.missing.get_mut(&wanted.message)?;
        *missing -= 1;
        if *missing > 0 {
            return None;
        }
        self.missing.remove(&wanted.message);
        Some(wanted.message)
    }

    /// Every chunk below this one has arrived.
    pub(super) fn cumulative(&self) -> u64 {
        self.wanted.first_key_value().map_or(self.next_psn, |(psn, _)| *psn)
    }

    pub(super) fn want_probe(&mut self, probe: Probe) {
        if self.probes.len() == MOST_PROBES {
            self.probes.pop_front();
        }
        self.probes.push_back(probe);
    }

    /// Messages that are not whole at the receiver.
    pub(super) fn waiting(&self) -> usize {
        self.missing.len()
    }
}

/// The label of a tag: one of as many as there are, the halves of a larger tag folded onto each other.
pub(super) fn label(labels: &[Label], tag: Tag) -> Label {
    let count = labels.len() as u32;
    let folded = if tag < count { tag } else { ((tag >> 16) ^ (tag & 0xffff)) % count };
    labels[folded as usize]
}

/// What a completion says, for [`Calibration::heard`].
pub(super) fn took(completion: &Completion, posted: Time) -> Option<Time> {
    (completion.status == Status::Done).then(|| completion.at.saturating_sub(posted))
}
