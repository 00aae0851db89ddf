//! Schedules of collectives.

use super::trees::Tree;
use crate::jobs::schedule::{Dependency, Done, Schedule};
use anabranch_units::Time;

/// Messages of a pipelined transfer from one rank to another that are outstanding.
const IN_FLIGHT: usize = 2;

/// Appends steps in which every rank sends a message. It waits for the message that the rank receives in the step before.
pub(super) fn steps(
    schedule: &mut Schedule,
    ranks: u32,
    steps: u32,
    done: Done,
    message: &dyn Fn(u32, u32) -> (u32, u64),
) {
    let mut incoming: Vec<Option<Dependency>> = vec![None; ranks as usize];
    for step in 0..steps {
        let mut next = incoming.clone();
        for rank in 0..ranks {
            let (to, bytes) = message(step, rank);
            let operation = schedule.send(rank, to, bytes, step, incoming[rank as usize].as_slice());
            next[to as usize] = Some(Dependency { operation, done });
        }
        incoming = next;
    }
}

/// Returns receiver and bytes of a step of a hierarchical all-reduce: `local` ranks of a server, consecutive, reduce-scatter
/// among them, all-reduce with the ranks of the same place in the other servers, all-gather in the server.
pub(super) fn hierarchical(ranks: u32, local: u32, size: u64, step: u32, rank: u32) -> (u32, u64) {
    let (first, place, servers) = (rank / local * local, rank % local, ranks / local);
    let within = (first + (place + 1) % local, size.div_ceil(u64::from(local)));
    match step {
        step if step < local - 1 || step >= local - 1 + 2 * (servers - 1) => within,
        _ => ((rank + local) % ranks, size.div_ceil(u64::from(ranks))),
    }
}

pub(super) fn hierarchical_steps(ranks: u32, local: u32) -> u32 {
    2 * (local - 1) + 2 * (ranks / local - 1)
}

/// Appends a message that waits for `after`, and for the acknowledgement of the chunk `IN_FLIGHT` before it, of `sent`.
fn chunk(
    schedule: &mut Schedule,
    (from, to): (u32, u32),
    (bytes, step): (u64, u32),
    after: &[Dependency],
    sent: &mut Vec<u32>,
) -> Dependency {
    let before = sent.len().checked_sub(IN_FLIGHT).map(|at| Dependency::acknowledged(sent[at]));
    let all: Vec<Dependency> = after.iter().copied().chain(before).collect();
    let operation = schedule.send(from, to, bytes, step, &all);
    sent.push(operation);
    Dependency::received(operation)
}

/// Appends an all-reduce on a tree: each of `chunks` chunks of `bytes` is summed on the way up, and the result goes down.
pub(super) fn tree(schedule: &mut Schedule, tree: &Tree, chunks: u32, bytes: u64) {
    let ranks = tree.parent.len();
    let (mut up, mut down) = (vec![vec![]; ranks], vec![vec![]; ranks]);
    for _ in 0..chunks {
        let mut sums: Vec<Vec<Dependency>> = vec![vec![]; ranks];
        for &rank in tree.from_root.iter().rev() {
            let at = rank as usize;
            if let Some(parent) = tree.parent[at] {
                let step = tree.height[at];
                let sum = chunk(schedule, (rank, parent), (bytes, step), &std::mem::take(&mut sums[at]), &mut up[at]);
                sums[parent as usize].push(sum);
            }
        }
        // The root has the result when it has all sums, others when it reaches them.
        for &rank in &tree.from_root {
            let at = rank as usize;
            if let Some(parent) = tree.parent[at] {
                let step = tree.levels() + tree.depth[at] - 1;
                let after = sums[parent as usize].clone();
                sums[at] = vec![chunk(schedule, (parent, rank), (bytes, step), &after, &mut down[at])];
            }
        }
    }
}

/// Appends the microbatches of a pipeline: all forward through the ranks, then all back. The last rank sends the first
/// back when it has them all.
pub(super) fn pipeline(schedule: &mut Schedule, ranks: u32, microbatches: u32, bytes: u64) {
    let stages = ranks as usize;
    let (mut forward, mut back) = (vec![vec![]; stages], vec![vec![]; stages]);
    let mut arrived = None;
    for _ in 0..microbatches {
        arrived = None;
        for stage in 0..ranks - 1 {
            let sent = &mut forward[stage as usize];
            let received = chunk(schedule, (stage, stage + 1), (bytes, stage), arrived.as_slice(), sent);
            arrived = Some(received);
        }
    }
    let last = arrived;
    for _ in 0..microbatches {
        let mut arrived = last;
        for stage in (1..ranks).rev() {
            let (sent, step) = (&mut back[stage as usize], 2 * (ranks - 1) - stage);
            arrived = Some(chunk(schedule, (stage, stage - 1), (bytes, step), arrived.as_slice(), sent));
        }
    }
}

/// Appends the exchange of a layer of experts, one per rank: tokens to the experts, and the results back when an expert has
/// all its tokens. `bytes` is that of every message; the sizes by popularity replace it.
pub(super) fn experts(schedule: &mut Schedule, ranks: u32, bytes: u64) {
    let mut tokens: Vec<Vec<Dependency>> = vec![vec![]; ranks as usize];
    for rank in 0..ranks {
        for distance in 1..ranks {
            let expert = (rank + distance) % ranks;
            let sent = schedule.send(rank, expert, bytes, 0, &[]);
            tokens[expert as usize].push(Dependency::received(sent));
        }
    }
    let all: Vec<u32> = (0..ranks).map(|rank| schedule.compute(rank, Time::ZERO, 0, &tokens[rank as usize])).collect();
    for rank in 0..ranks {
        for distance in 1..ranks {
            let home = (rank + distance) % ranks;
            schedule.send(rank, home, bytes, 1, &[Dependency::computed(all[rank as usize])]);
        }
    }
}
