//! Integer picoseconds, bytes and rates, with parsing and printing.
//!
//! Every quantity is an exact integer: time in picoseconds, sizes in bytes, rates in bits per second.
//! Text such as `"1.5us"` or `"400Gbps"` is read digit by digit, never through floating point, and a
//! value that is not a whole number of the smallest unit is refused.

mod decimal;
mod rate;
mod size;
mod time;

pub use decimal::UnitError;
pub use rate::{Rate, Serialiser};
pub use size::{Bytes, BytesOrBdp, PacketsOrBdp};
pub use time::Time;
