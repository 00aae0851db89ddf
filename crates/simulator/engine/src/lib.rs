//! A deterministic discrete-event engine. It knows time, order, cells and threads, and no word of networking.
//!
//! A model is split into **cells**: parts that cannot act on each other sooner than one *lookahead*. Time advances in
//! windows no longer than that, and within a window each cell handles its events before the next cell has its turn.
//! Cells are what threads share out among themselves ([`run`]), and what keeps the state of one thread in the
//! processor's caches ([`Cells`]).
//!
//! Events are handled in the order of their key (time, order, payload). `order` is a canonical number that the
//! model gives each source of events, so that neither the sequence of insertions nor the number of cells or threads
//! can show in a result.

mod barrier;
mod cells;
mod event;
mod windows;

pub use cells::Cells;
pub use event::Event;
pub use windows::{Message, Outcome, Partition, Status, run};
