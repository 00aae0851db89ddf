//! Deterministic discrete-event engine with time, order, cells and threads. It is independent of networking.
//!
//! A model is split into **cells**: parts that cannot affect each other sooner than one *lookahead*. Time advances in
//! windows no longer than that. Cells are the unit of distribution over threads ([`run`]), and keep the state of one
//! thread in the processor's caches ([`Cells`]).
//!
//! Events are handled in the order of their key (time, order, payload). `order` is a canonical number of the source of
//! an event, so that neither the sequence of insertions nor the number of cells or threads affects a result.

mod barrier;
mod cells;
mod event;
mod windows;

pub use cells::Cells;
pub use event::Event;
pub use windows::{Message, Outcome, Partition, Status, run};
