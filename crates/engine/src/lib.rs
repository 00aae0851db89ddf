//! A deterministic discrete-event engine. It knows time, order and partitions, and no word of networking.
//!
//! Events are handled in the order of their key (time, order, payload). `order` is a canonical number that the
//! model gives each source of events, so that neither the sequence of insertions nor the way a model is split
//! into partitions can show in a result. [`Wheel`] is the queue of one partition; [`run`] drives several
//! partitions on several threads, conservatively, with a lookahead.

mod parallel;
mod wheel;

pub use parallel::{Outcome, Partition, Status, run};
pub use wheel::{Event, Wheel};
