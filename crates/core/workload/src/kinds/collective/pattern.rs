//! What a pattern of a collective declares, and what it reads of its workload.

use crate::{
    jobs::schedule::{Dependency, Done, Schedule},
    kinds::all_to_all::Order,
    view::Context,
};
use std::fmt::{self, Debug, Formatter};

/// A group of ranks, and the keys of its workload that patterns read.
#[derive(Clone, Copy)]
pub(super) struct Group<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) hosts: &'a [u32],
    pub(super) ranks: u32,
    /// Ranks in one server, which are consecutive; 1 if the pattern does not read `server_ranks`.
    pub(super) local: u32,
    pub(super) size: u64,
    pub(super) message_size: Option<u64>,
    pub(super) steps: u32,
    pub(super) trigger: Option<Done>,
    pub(super) channels: u32,
    pub(super) chunks: Option<u32>,
    pub(super) skew: f64,
    pub(super) parallel: u32,
    pub(super) order: Order,
}

impl Group<'_> {
    /// Returns the bytes of a message that would have `derived` bytes.
    pub(super) fn sized(&self, derived: u64) -> u64 {
        self.message_size.unwrap_or(derived)
    }

    /// Returns the bytes of a message with one of `parts` parts of the vector, rounded up so that none is empty.
    pub(super) fn part(&self, parts: u64) -> u64 {
        self.sized(self.size.div_ceil(parts))
    }

    /// Returns the schedule of steps in which every rank sends a message. It waits for the message that the rank receives
    /// in the step before. `message` returns receiver and bytes of the message of a step and a rank.
    pub(super) fn schedule(&self, steps: u32, message: impl Fn(u32, u32) -> (u32, u64)) -> Schedule {
        let done = self.trigger.unwrap_or(Done::Received);
        let mut schedule = Schedule::default();
        for _ in 0..self.channels {
            schedule.begin_channel();
            let mut incoming: Vec<Option<Dependency>> = vec![None; self.ranks as usize];
            for step in 0..steps {
                let mut next = incoming.clone();
                for rank in 0..self.ranks {
                    let (to, bytes) = message(step, rank);
                    let bytes = self.sized(bytes.div_ceil(u64::from(self.channels)));
                    let operation = schedule.send(rank, to, bytes, step, incoming[rank as usize].as_slice());
                    next[to as usize] = Some(Dependency { operation, done });
                }
                incoming = next;
            }
        }
        schedule
    }
}

/// Bytes of a message by group, repetition and number; `None`: those of the schedule.
pub(super) type Sizes = Box<dyn Fn(u32, u32, u32) -> Option<u64>>;

/// A pattern: the messages of a collective and their order (specification 12.5).
pub(super) struct Pattern {
    pub(super) name: &'static str,
    pub(super) short: Option<&'static str>,
    /// Keys that it reads, of those that not all patterns read; another one that is set is refused.
    pub(super) keys: &'static [&'static str],
    pub(super) needs_a_power_of_two: bool,
    /// Every rank has the sum of all vectors at the end: the factor of bus bandwidth is then twice that of the others
    /// (nccl-tests, PERFORMANCE.md).
    pub(super) is_all_reduce: bool,
    /// Steps of one pass, by the number of ranks; the key `steps` counts them.
    pub(super) steps: fn(u32) -> u32,
    /// Buffer of a rank by the number of ranks, `size` and the bytes of every message where they are set; `None` where they
    /// are not those of a buffer.
    pub(super) buffer: fn(u32, u64, Option<u64>) -> Option<u64>,
    pub(super) messages: fn(&Group<'_>) -> u128,
    /// Messages of one repetition, which groups share unless they differ in `order`.
    pub(super) schedule: fn(&Group<'_>) -> Schedule,
    /// Sizes of messages, by the numbers of groups and repetitions, where these differ in them.
    pub(super) sizes: fn(&Group<'_>, u32, u32) -> Option<Sizes>,
}

impl Debug for Pattern {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What most patterns of [`Group::schedule`] have in common: a message of every rank in each step.
pub(super) const STEPS: Pattern = Pattern {
    name: "",
    short: None,
    keys: &["message_size", "steps", "trigger", "channels"],
    needs_a_power_of_two: false,
    is_all_reduce: false,
    steps: |_| 1,
    buffer: |_, size, message| message.is_none().then_some(size),
    messages: |group| u128::from(group.ranks) * u128::from(group.steps) * u128::from(group.channels),
    schedule: |_| Schedule::default(),
    sizes: |_, _, _| None,
};

/// Returns the buffer of a rank that sends it in one part per rank.
pub(super) fn buffer_of_parts(ranks: u32, size: u64, message: Option<u64>) -> Option<u64> {
    message.map_or(Some(size), |message| message.checked_mul(u64::from(ranks)))
}

/// Messages of a pipelined transfer from one rank to another that are outstanding.
const IN_FLIGHT: usize = 2;

/// Appends a message that waits for `after`, and for the acknowledgement of the chunk `IN_FLIGHT` before it, of `sent`.
pub(super) fn chunk(
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
