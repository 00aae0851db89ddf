//! Statistics of runs: estimates, tests with corrections, rankings, numbers of seeds. Numbers in, numbers out.

#[cfg(test)]
mod coverage;
pub mod family;
pub mod intervals;
pub mod medians;
pub mod ranking;
pub mod sequential;
pub mod statistics;

pub use family::{Method, Tested};
pub use intervals::{POWER, Range, seeds_needed};
pub use medians::{median, sign_test};
pub use sequential::Sequential;
pub use statistics::{
    CONFIDENCE, Distribution, Estimate, MIN_PAIRS, PairedDifference, SIGNIFICANCE, Test, holm, mean, quantile,
    slowdown, standard_deviation,
};
