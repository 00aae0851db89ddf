//! Recursive doubling: log2 n steps of S with the partners at distance 1, 2, 4, ...

use crate::kinds::collective::pattern::{Pattern, STEPS};

pub(super) const PATTERN: Pattern = Pattern {
    name: "recursive-doubling",
    needs_a_power_of_two: true,
    is_all_reduce: true,
    steps: u32::ilog2,
    buffer: |_, size, message| Some(message.unwrap_or(size)),
    schedule: |group| group.schedule(group.steps, |step, rank| (rank ^ 1 << (step % group.ranks.ilog2()), group.size)),
    ..STEPS
};
