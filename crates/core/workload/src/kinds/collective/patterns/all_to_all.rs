//! All-to-all: S/n from every rank to every other.

use crate::{
    jobs::schedule::Done,
    kinds::{
        all_to_all::exchange,
        collective::pattern::{Pattern, STEPS, buffer_of_parts},
    },
};

pub(super) const PATTERN: Pattern = Pattern {
    name: "all-to-all",
    keys: &["message_size", "trigger", "parallel", "order"],
    buffer: buffer_of_parts,
    messages: |group| u128::from(group.ranks) * u128::from(group.ranks - 1),
    schedule: |group| {
        let window = (group.parallel, group.trigger.unwrap_or(Done::Acknowledged));
        exchange(group.context, group.hosts, group.part(group.ranks.into()), group.order, window)
    },
    ..STEPS
};
