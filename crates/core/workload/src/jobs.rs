//! Jobs: groups of ranks that repeat a schedule of messages and computations.
//!
//! A [`Schedule`] is the dependency graph of one repetition. A [`GroupedJob`] places it on hosts and repeats it.
//! `compile` makes flows and triggers of it, or a [`GroupTemplate`](template::GroupTemplate), from which those of each group
//! follow by arithmetic. [`GroupedJob::times`] follows the same graph with given times of messages,
//! measured or ideal ones.

pub(crate) mod compile;
pub(crate) mod job;
pub(crate) mod schedule;
pub(crate) mod template;
pub(crate) mod times;
