//! Ports, queues, marking, trimming, scheduling, switches and NICs on the engine.
//!
//! [`run`] prepares a plan that all threads read, lets one partition per thread handle its events, checks the
//! invariants and merges the results.

mod arena;
mod context;
mod event;
mod flow_table;
mod group_ends;
mod host;
mod ids;
mod labels;
mod measure;
mod message;
mod packet;
mod partition;
mod paths;
mod plan;
mod port;
mod prefetch;
mod results;
mod run;
mod sampling;
mod scale_up;
mod skip;
mod snapshots;
mod stall;
mod steady;
mod steering;
mod switch;
mod trigger;
mod windows;

pub use measure::series_bytes;
pub use plan::{How, Split, Timing, long_window, lossless_problem, shared_cells, short_range, short_window};
pub use run::{check, run};
pub use windows::window_times;
