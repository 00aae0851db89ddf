//! Rings: steps of S/n from every rank to the next. An all-reduce is a reduce-scatter and an all-gather.

use crate::{
    jobs::schedule::Schedule,
    kinds::collective::pattern::{Group, Pattern, STEPS, buffer_of_parts},
};

pub(super) const ALLREDUCE: Pattern = Pattern {
    name: "ring-allreduce",
    short: Some("ring"),
    is_all_reduce: true,
    steps: |ranks| (ranks - 1).saturating_mul(2),
    ..ALL_GATHER
};
pub(super) const REDUCE_SCATTER: Pattern = Pattern { name: "ring-reduce-scatter", ..ALL_GATHER };
pub(super) const ALL_GATHER: Pattern =
    Pattern { name: "ring-all-gather", steps: |ranks| ranks - 1, buffer: buffer_of_parts, schedule, ..STEPS };

fn schedule(group: &Group<'_>) -> Schedule {
    let part = group.size.div_ceil(u64::from(group.ranks));
    group.schedule(group.steps, |_, rank| ((rank + 1) % group.ranks, part))
}
