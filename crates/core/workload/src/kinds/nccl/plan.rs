//! Operations of each rank of a collective, per channel: rings and trees as in the literature.

use anabranch_settings::choices;
use std::ops::Range;

/// Bytes of a chunk, as in NCCL's rings.
pub const CHUNK: usize = 512 << 10;

choices! {
    /// A collective.
    pub enum CollectiveKind {
        /// All-reduce on a ring: every segment passes all ranks twice, first to be summed, then to distribute the result.
        Ring = "ring",
        /// All-reduce on a binary tree: sums go up, the result goes down.
        Tree = "tree",
        /// The first half of a ring: every rank ends with the sum of one segment.
        ReduceScatter = "reduce-scatter",
        /// The second half of a ring: every rank begins with one segment and ends with all.
        AllGather = "all-gather",
        /// Every rank has a block for every other.
        AllToAll = "all-to-all",
        /// Every rank sends to the next and receives from the one before.
        Pairs = "pairs",
    }
}

pub const KINDS: &[(&str, CollectiveKind)] = CollectiveKind::ALL;

impl CollectiveKind {
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Returns `true` if a rank's receive buffer follows its send buffer.
    pub fn is_beside(self) -> bool {
        matches!(self, CollectiveKind::AllToAll | CollectiveKind::Pairs)
    }

    /// Returns the bytes over each rank's link per byte of the buffer: NCCL's factor from algorithm to bus bandwidth.
    pub fn bus_factor(self, ranks: usize) -> f64 {
        let n = ranks as f64;
        match self {
            CollectiveKind::Ring | CollectiveKind::Tree => 2.0 * (n - 1.0) / n,
            CollectiveKind::ReduceScatter | CollectiveKind::AllGather | CollectiveKind::AllToAll => (n - 1.0) / n,
            CollectiveKind::Pairs => 1.0,
        }
    }
}

/// Treatment of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// They are added.
    Sum,
    /// They replace the previous bytes.
    Copy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends bytes to a rank.
    Send(usize),
    /// Receives them from a rank.
    Receive(usize, Arrived),
}

/// A step of a rank's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub what: Action,
    /// Bytes of the buffer.
    pub bytes: Range<usize>,
    /// Steps that must complete first, by their position in the program.
    pub after: Vec<usize>,
}

/// An empty range is one chunk.
fn chunks(bytes: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let count = bytes.len().div_ceil(CHUNK).max(1);
    (0..count).map(move |chunk| {
        let from = bytes.start + chunk * CHUNK;
        from..(from + CHUNK).min(bytes.end)
    })
}

/// Returns part `index` of `count` of some bytes, in whole words of four.
pub fn part(bytes: &Range<usize>, index: usize, count: usize) -> Range<usize> {
    let words = bytes.len() / 4;
    let at = |index: usize| bytes.start + words * index / count * 4;
    at(index)..if index + 1 == count { bytes.end } else { at(index + 1) }
}

/// Returns a rank's block of equal size; a few bytes may remain.
fn block(bytes: &Range<usize>, rank: usize, ranks: usize) -> Range<usize> {
    let size = bytes.len() / 4 / ranks * 4;
    bytes.start + rank * size..bytes.start + (rank + 1) * size
}

struct Operations(Vec<(Action, Range<usize>)>);

impl Operations {
    fn send(&mut self, to: usize, bytes: Range<usize>) {
        self.0.extend(chunks(bytes).map(|chunk| (Action::Send(to), chunk)));
    }

    fn receive(&mut self, from: usize, arrived: Arrived, bytes: Range<usize>) {
        self.0.extend(chunks(bytes).map(|chunk| (Action::Receive(from, arrived), chunk)));
    }
}

/// Returns the program of a rank for one channel's share `bytes` of a buffer of `all` bytes.
pub fn program(kind: CollectiveKind, rank: usize, ranks: usize, bytes: Range<usize>, all: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (what, bytes) in operations(kind, rank, ranks, bytes, all) {
        let overlaps = |step: &Step| {
            let reads = |what: &Action| matches!(what, Action::Send(_));
            let disturbs = !(reads(&what) && reads(&step.what));
            disturbs && step.bytes.start < bytes.end && bytes.start < step.bytes.end
        };
        let after = steps.iter().enumerate().filter(|(_, step)| overlaps(step)).map(|(at, _)| at).collect();
        steps.push(Step { what, bytes, after });
    }
    steps
}

/// Returns the sends and receives of [`program`] in order. The bytes of a receive buffer follow those of the send buffer.
pub fn operations(
    kind: CollectiveKind,
    rank: usize,
    ranks: usize,
    bytes: Range<usize>,
    all: usize,
) -> Vec<(Action, Range<usize>)> {
    let mut program = Operations(Vec::new());
    let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    let segment = |number: usize| part(&bytes, number % ranks, ranks);
    let mut around = |arrived: Arrived, first: usize| {
        for step in 0..ranks - 1 {
            program.send(next, segment(rank + 2 * ranks + first - step));
            program.receive(before, arrived, segment(rank + 2 * ranks + first - step - 1));
        }
    };
    match kind {
        // After n - 1 steps a rank has the sum of the segment after its own.
        CollectiveKind::Ring => {
            around(Arrived::Sum, 0);
            around(Arrived::Copy, 1);
        }
        CollectiveKind::ReduceScatter => around(Arrived::Sum, 0),
        CollectiveKind::AllGather => around(Arrived::Copy, 0),
        CollectiveKind::Tree => {
            let children: Vec<usize> =
                [2 * rank + 1, 2 * rank + 2].into_iter().filter(|child| *child < ranks).collect();
            let parent = rank.checked_sub(1).map(|up| up / 2);
            for chunk in chunks(bytes.clone()) {
                children.iter().for_each(|child| program.receive(*child, Arrived::Sum, chunk.clone()));
                parent.iter().for_each(|parent| program.send(*parent, chunk.clone()));
            }
            for chunk in chunks(bytes.clone()) {
                parent.iter().for_each(|parent| program.receive(*parent, Arrived::Copy, chunk.clone()));
                children.iter().for_each(|child| program.send(*child, chunk.clone()));
            }
        }
        CollectiveKind::AllToAll => {
            for distance in 1..ranks {
                let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
                let back = block(&bytes, from, ranks);
                program.send(to, block(&bytes, to, ranks));
                program.receive(from, Arrived::Copy, back.start + all..back.end + all);
            }
        }
        CollectiveKind::Pairs => {
            program.send(next, bytes.clone());
            program.receive(before, Arrived::Copy, bytes.start + all..bytes.end + all);
        }
    }
    program.0
}

/// Returns an element of a buffer before a collective: small, so that sums are exact in every type.
pub fn before(rank: usize, element: usize) -> u32 {
    ((element * 7 + rank * 13) % 97) as u32
}

/// Returns the expected element of a (receive) buffer after a collective; `None`: undefined.
pub fn after(
    kind: CollectiveKind,
    rank: usize,
    ranks: usize,
    elements: usize,
    channels: usize,
    element: usize,
) -> Option<u32> {
    let all = 0..elements * 4;
    let channel =
        (0..channels).map(|channel| part(&all, channel, channels)).find(|bytes| bytes.contains(&(element * 4)))?;
    let segment = (0..ranks).find(|segment| part(&channel, *segment, ranks).contains(&(element * 4)))?;
    match kind {
        CollectiveKind::Ring | CollectiveKind::Tree => Some((0..ranks).map(|of| before(of, element)).sum()),
        CollectiveKind::ReduceScatter => {
            (segment == (rank + 1) % ranks).then(|| (0..ranks).map(|of| before(of, element)).sum())
        }
        CollectiveKind::AllGather => Some(before(segment, element)),
        // Blocks for this rank have its position among the blocks of the others.
        CollectiveKind::AllToAll => {
            let theirs = (0..ranks).find(|of| block(&channel, *of, ranks).contains(&(element * 4)))?;
            let at = element * 4 - block(&channel, theirs, ranks).start + block(&channel, rank, ranks).start;
            (theirs != rank).then(|| before(theirs, at / 4))
        }
        CollectiveKind::Pairs => Some(before((rank + ranks - 1) % ranks, element)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn run(kind: CollectiveKind, ranks: usize, elements: usize, channels: usize) {
        let all = elements * 4;
        let mut buffers: Vec<Vec<u32>> = (0..ranks)
            .map(|rank| (0..elements).map(|at| before(rank, at)).chain((0..elements).map(|_| 9999)).collect())
            .collect();
        let mut queues = vec![vec![VecDeque::<Vec<u32>>::new(); ranks]; ranks];
        for channel in 0..channels {
            let share = part(&(0..all), channel, channels);
            let programs: Vec<_> = (0..ranks).map(|rank| program(kind, rank, ranks, share.clone(), all)).collect();
            let mut at = vec![0; ranks];
            let mut moved = true;
            while moved {
                moved = false;
                for rank in 0..ranks {
                    while let Some(Step { what, bytes, .. }) = programs[rank].get(at[rank]) {
                        let words = bytes.start / 4..bytes.end / 4;
                        match what {
                            Action::Send(to) => queues[rank][*to].push_back(buffers[rank][words].to_vec()),
                            Action::Receive(from, arrived) => {
                                let Some(message) = queues[*from][rank].pop_front() else { break };
                                assert_eq!(message.len(), words.len(), "{kind:?} {ranks}");
                                for (mine, theirs) in buffers[rank][words].iter_mut().zip(message) {
                                    *mine = if *arrived == Arrived::Sum { *mine + theirs } else { theirs };
                                }
                            }
                        }
                        at[rank] += 1;
                        moved = true;
                    }
                }
            }
            assert!(
                (0..ranks).all(|rank| at[rank] == programs[rank].len()),
                "{kind:?} {ranks}: somebody waits for ever"
            );
        }
        for (rank, buffer) in buffers.iter().enumerate() {
            for element in 0..elements {
                let wanted = after(kind, rank, ranks, elements, channels, element);
                let place = if kind.is_beside() { elements + element } else { element };
                assert!(wanted.is_none_or(|wanted| wanted == buffer[place]), "{kind:?} {ranks} {rank} {element}");
            }
        }
    }

    #[test]
    fn every_collective_computes_its_result() {
        for (_, kind) in KINDS {
            for ranks in 2..=8 {
                for (elements, channels) in [(1, 1), (7, 1), (1000, 3), (300_000, 2)] {
                    run(*kind, ranks, elements, channels);
                }
            }
        }
    }

    #[test]
    fn steps_wait_for_steps_on_the_same_bytes() {
        // Two ranks, two segments of one chunk: send, receive and add, send the sum, receive the other's.
        let steps = program(CollectiveKind::Ring, 0, 2, 0..16, 16);
        let short: Vec<_> =
            steps.iter().map(|step| (step.what.clone(), step.bytes.clone(), step.after.clone())).collect();
        assert_eq!(
            short,
            [
                (Action::Send(1), 0..8, vec![]),
                (Action::Receive(1, Arrived::Sum), 8..16, vec![]),
                (Action::Send(1), 8..16, vec![1]),
                (Action::Receive(1, Arrived::Copy), 0..8, vec![0]),
            ]
        );
    }

    #[test]
    fn a_chunk_is_at_most_what_nccl_sends() {
        let sizes: Vec<usize> = chunks(4..4 + 2 * CHUNK + 8).map(|chunk| chunk.len()).collect();
        assert_eq!(sizes, [CHUNK, CHUNK, 8]);
        assert!(chunks(4..4).eq(std::iter::once(4..4)), "nothing is a message too");
    }
}
