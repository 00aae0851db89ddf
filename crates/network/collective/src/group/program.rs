//! The sends and receives of a rank in a collective: rings, chains, trees and direct exchange, by their cost.

use super::reduce::{Dtype, Reduction};

/// Bytes of a message: an eighth of a block that is sent, within these. Ranks work on one while the next is on its way; smaller
/// ones cost a third of the bandwidth at 1 MiB.
pub(super) const CHUNK: std::ops::RangeInclusive<usize> = (256 << 10)..=(512 << 10);
/// Cost of an algorithm, constants of ours (`tools/torch_speed.py`, two ranks over loopback): nanoseconds until a message has
/// arrived, of the processor per message, per byte on the wire, and per byte reduced.
const LATENCY: f64 = 60_000.0;
const PER_MESSAGE: f64 = 10_000.0;
const PER_BYTE: f64 = 0.8;
const PER_REDUCED: f64 = 0.1;

/// Memory of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub at: usize,
    pub len: usize,
}

impl Block {
    fn slice(self, from: usize, to: usize) -> Self {
        Block { at: self.at + from, len: to - from }
    }

    fn overlaps(self, other: Self) -> bool {
        self.at < other.at + other.len && other.at < self.at + self.len
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    AllReduce,
    Broadcast,
    Reduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Gather,
    Scatter,
    Barrier,
}

pub const KINDS: &[(&str, Kind)] = &[
    ("allreduce", Kind::AllReduce),
    ("broadcast", Kind::Broadcast),
    ("reduce", Kind::Reduce),
    ("allgather", Kind::AllGather),
    ("reduce_scatter", Kind::ReduceScatter),
    ("alltoall", Kind::AllToAll),
    ("gather", Kind::Gather),
    ("scatter", Kind::Scatter),
    ("barrier", Kind::Barrier),
];

impl Kind {
    pub fn name(self) -> &'static str {
        KINDS[self as usize].0
    }
}

/// A collective with a rank's memory: a block, or one per rank, of input and output. Collectives in place have outputs alone.
#[derive(Clone, Debug)]
pub struct Job {
    pub kind: Kind,
    pub dtype: Dtype,
    pub reduction: Reduction,
    pub root: usize,
    pub inputs: Vec<Block>,
    pub outputs: Vec<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Send,
    /// Received bytes replace the previous ones.
    Copy,
    Reduce,
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) action: Action,
    pub(super) peer: usize,
    pub(super) block: Block,
    /// Steps that must be done first.
    pub(super) after: Vec<u32>,
}

/// What a rank does: copies, then steps, then the reduction of what has been gathered.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) scratch: Vec<u8>,
    /// Copies before the first step.
    pub(super) copies: Vec<(Block, Block)>,
    /// Blocks of all ranks in their order, the first of which becomes their reduction.
    pub(super) fold: Vec<Block>,
    /// Copy after that.
    pub(super) result: Option<(Block, Block)>,
    /// Block to be divided for an average.
    pub(super) reduced: Option<Block>,
}

impl Program {
    fn add(&mut self, action: Action, peer: usize, block: Block) {
        let size = (block.len / 8).next_multiple_of(64).clamp(*CHUNK.start(), *CHUNK.end());
        let count = block.len.div_ceil(size).max(1);
        for chunk in 0..count {
            let block = block.slice(chunk * size, (chunk * size + size).min(block.len));
            let disturbs =
                |step: &Step| (action != Action::Send || step.action != Action::Send) && step.block.overlaps(block);
            let after = self.steps.iter().enumerate().filter(|(_, step)| disturbs(step)).map(|(at, _)| at as u32);
            let after = after.collect();
            self.steps.push(Step { action, peer, block, after });
        }
    }

    fn scratch(&mut self, len: usize) -> Block {
        self.scratch.resize(len.max(self.scratch.len()), 0);
        Block { at: self.scratch.as_ptr() as usize, len }
    }

    pub(super) fn scratch_block(&self) -> Block {
        Block { at: self.scratch.as_ptr() as usize, len: self.scratch.len() }
    }

    fn copy(&mut self, from: Block, to: Block) {
        if from.at != to.at {
            self.copies.push((from, to));
        }
    }
}

/// Returns part `index` of `count` of a block, in whole elements.
fn part(block: Block, index: usize, count: usize, size: usize) -> Block {
    let elements = block.len / size;
    block.slice(elements * index / count * size, elements * (index + 1) / count * size)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Algorithm {
    Direct,
    Tree,
    Ring,
}

/// Returns the cheapest algorithm for this many bytes: of an all-reduce, or of a broadcast or reduction to a root.
fn cheapest(ranks: usize, bytes: usize, is_all: bool) -> Algorithm {
    let (n, bytes) = (ranks as f64, bytes as f64);
    let (levels, step) = (f64::from(ranks.ilog2()), LATENCY + PER_MESSAGE);
    let (move_all, reduce_all) = (bytes * PER_BYTE, bytes * PER_REDUCED);
    let costs = if is_all {
        let folds = if ranks.is_power_of_two() { 0.0 } else { 2.0 };
        [
            // Its reduction begins when all have arrived.
            (LATENCY + (n - 1.0) * (PER_MESSAGE + move_all + 2.0 * reduce_all), Algorithm::Direct),
            // A rank reduces where it sends from, after an acknowledgement.
            ((levels + folds) * (step + LATENCY / 2.0 + move_all + reduce_all), Algorithm::Tree),
            (2.0 * (n - 1.0) * step + 2.0 * (n - 1.0) / n * (move_all + reduce_all / 2.0), Algorithm::Ring),
        ]
    } else {
        let levels = f64::from(ranks.next_power_of_two().ilog2());
        [
            (levels * (step + move_all), Algorithm::Tree),
            ((n - 1.0) * (step + move_all.min(*CHUNK.end() as f64 * PER_BYTE)) + move_all, Algorithm::Ring),
            (f64::INFINITY, Algorithm::Direct),
        ]
    };
    let best = costs.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(Algorithm::Ring, |(_, algorithm)| algorithm)
}

/// Returns the program of `rank` of `ranks`, with memory that may serve as its scratch memory.
pub(super) fn program(job: &Job, rank: usize, ranks: usize, scratch: Vec<u8>) -> Program {
    let mut program = Program { scratch, ..Program::default() };
    let p = &mut program;
    let size = job.dtype.size();
    let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    let others = || (1..ranks).map(|distance| ((rank + distance) % ranks, (rank + ranks - distance) % ranks));
    // Position in trees and chains, whose root is 0.
    let position = (rank + ranks - job.root) % ranks;
    let at = |position: usize| (position + job.root) % ranks;
    match job.kind {
        Kind::Barrier => {
            // After round k a rank depends on 2^(k+1) ranks.
            let mut distance = 1;
            while distance < ranks {
                p.add(Action::Send, (rank + distance) % ranks, Block { at: 0, len: 0 });
                p.add(Action::Copy, (rank + ranks - distance) % ranks, Block { at: 0, len: 0 });
                // A round begins after the one before it.
                if let [.., receive, _, _] = &p.steps[..] {
                    debug_assert!(receive.action == Action::Copy);
                    let (round, last) = (p.steps.len() - 2, p.steps.len() as u32 - 3);
                    p.steps[round].after.push(last);
                }
                distance *= 2;
            }
        }
        Kind::AllReduce => {
            let block = job.outputs[0];
            p.reduced = Some(block);
            match cheapest(ranks, block.len, true) {
                Algorithm::Direct => direct_allreduce(p, block, rank, ranks),
                Algorithm::Tree => doubling(p, block, rank, ranks),
                Algorithm::Ring => {
                    let parts: Vec<Block> = (0..ranks).map(|index| part(block, index, ranks, size)).collect();
                    ring(p, &parts, rank, Action::Reduce);
                    ring(p, &parts, rank, Action::Copy);
                }
            }
        }
        Kind::ReduceScatter => {
            let (all, output) = (&job.inputs, job.outputs[0]);
            p.reduced = Some(output);
            if cheapest(ranks, output.len * ranks, true) == Algorithm::Ring {
                let scratch = p.scratch(output.len * ranks);
                let parts: Vec<Block> =
                    (0..ranks).map(|of| scratch.slice(of * output.len, (of + 1) * output.len)).collect();
                all.iter().zip(&parts).for_each(|(input, part)| p.copy(*input, *part));
                ring(p, &parts, rank, Action::Reduce);
                p.result = Some((parts[rank], output));
            } else {
                let scratch = p.scratch(output.len * ranks);
                p.fold = (0..ranks).map(|of| scratch.slice(of * output.len, (of + 1) * output.len)).collect();
                p.copy(all[rank], p.fold[rank]);
                for (to, from) in others() {
                    p.add(Action::Send, to, all[to]);
                    p.add(Action::Copy, from, p.fold[from]);
                }
                p.result = Some((p.fold[0], output));
            }
        }
        Kind::AllGather => {
            p.copy(job.inputs[0], job.outputs[rank]);
            // Direct exchange sends as many bytes, in one step; a ring loads each link with one neighbour's.
            if job.inputs[0].len * ranks < *CHUNK.end() {
                for (to, from) in others() {
                    p.add(Action::Send, to, job.inputs[0]);
                    p.add(Action::Copy, from, job.outputs[from]);
                }
            } else {
                ring(p, &job.outputs, rank, Action::Copy);
            }
        }
        Kind::Broadcast => {
            let block = job.outputs[0];
            match cheapest(ranks, block.len, false) {
                Algorithm::Ring => {
                    if position > 0 {
                        p.add(Action::Copy, before, block);
                    }
                    if position + 1 < ranks {
                        p.add(Action::Send, next, block);
                    }
                }
                _ => {
                    let (parent, children) = binomial(position, ranks);
                    parent.iter().for_each(|parent| p.add(Action::Copy, at(*parent), block));
                    children.iter().rev().for_each(|child| p.add(Action::Send, at(*child), block));
                }
            }
        }
        Kind::Reduce => {
            let block = if position == 0 {
                p.reduced = Some(job.outputs[0]);
                job.outputs[0]
            } else {
                let scratch = p.scratch(job.outputs[0].len);
                p.copy(job.outputs[0], scratch);
                scratch
            };
            match cheapest(ranks, block.len, false) {
                Algorithm::Ring => {
                    if position + 1 < ranks {
                        p.add(Action::Reduce, next, block);
                    }
                    if position > 0 {
                        p.add(Action::Send, before, block);
                    }
                }
                _ => {
                    let (parent, children) = binomial(position, ranks);
                    children.iter().for_each(|child| p.add(Action::Reduce, at(*child), block));
                    parent.iter().for_each(|parent| p.add(Action::Send, at(*parent), block));
                }
            }
        }
        Kind::AllToAll => {
            p.copy(job.inputs[rank], job.outputs[rank]);
            for (to, from) in others() {
                p.add(Action::Send, to, job.inputs[to]);
                p.add(Action::Copy, from, job.outputs[from]);
            }
        }
        Kind::Gather if position == 0 => {
            p.copy(job.inputs[0], job.outputs[rank]);
            others().for_each(|(of, _)| p.add(Action::Copy, of, job.outputs[of]));
        }
        Kind::Gather => p.add(Action::Send, job.root, job.inputs[0]),
        Kind::Scatter if position == 0 => {
            p.copy(job.inputs[rank], job.outputs[0]);
            others().for_each(|(of, _)| p.add(Action::Send, of, job.inputs[of]));
        }
        Kind::Scatter => p.add(Action::Copy, job.root, job.outputs[0]),
    }
    program
}

/// Passes parts around the ring: reduced, so that a rank ends with its own; or copied, from its own to all.
fn ring(p: &mut Program, parts: &[Block], rank: usize, action: Action) {
    let ranks = parts.len();
    let ahead = usize::from(action == Action::Reduce);
    for step in 0..ranks - 1 {
        let part = |back: usize| parts[(rank + 2 * ranks - back) % ranks];
        p.add(Action::Send, (rank + 1) % ranks, part(step + ahead));
        p.add(action, (rank + ranks - 1) % ranks, part(step + ahead + 1));
    }
}

/// Every rank sends all it has to every other, and reduces in the order of ranks, so that all have the same result.
fn direct_allreduce(p: &mut Program, block: Block, rank: usize, ranks: usize) {
    let scratch = p.scratch(block.len * ranks);
    p.fold = (0..ranks).map(|of| scratch.slice(of * block.len, (of + 1) * block.len)).collect();
    p.fold[rank] = block;
    if rank > 0 {
        p.result = Some((p.fold[0], block));
    }
    for distance in 1..ranks {
        let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
        p.add(Action::Send, to, block);
        p.add(Action::Copy, from, p.fold[from]);
    }
}

/// Recursive doubling; ranks beyond a power of two give theirs to another rank and receive the result.
fn doubling(p: &mut Program, block: Block, rank: usize, ranks: usize) {
    let power = 1 << ranks.ilog2();
    if rank >= power {
        p.add(Action::Send, rank - power, block);
        p.add(Action::Copy, rank - power, block);
        return;
    }
    let extra = (rank + power < ranks).then_some(rank + power);
    extra.iter().for_each(|extra| p.add(Action::Reduce, *extra, block));
    let mut mask = 1;
    while mask < power {
        p.add(Action::Send, rank ^ mask, block);
        p.add(Action::Reduce, rank ^ mask, block);
        mask *= 2;
    }
    extra.iter().for_each(|extra| p.add(Action::Send, *extra, block));
}

/// Returns parent and children in a binomial tree, the nearest child first.
fn binomial(position: usize, ranks: usize) -> (Option<usize>, Vec<usize>) {
    let mut children = Vec::new();
    let mut mask = 1;
    while mask < ranks {
        if position & mask != 0 {
            return (Some(position - mask), children);
        }
        if position + mask < ranks {
            children.push(position + mask);
        }
        mask *= 2;
    }
    (None, children)
}
