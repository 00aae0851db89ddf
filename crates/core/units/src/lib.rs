//! Integer picoseconds, bytes and rates, with parsing and printing.
//!
//! Text such as `"1.5us"` is read digit by digit, never through floating point; a value that is not a whole number of
//! the smallest unit is refused.

#![warn(missing_docs)]

mod decimal;
mod passes;
mod rate;
mod size;
mod time;

pub use decimal::UnitError;
pub use passes::PacketsOrPasses;
pub use rate::{Rate, Serialiser};
pub use size::{Bytes, BytesOrBdp, PacketsOrBdp};
pub use time::Time;
