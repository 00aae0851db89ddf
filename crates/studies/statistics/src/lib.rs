//! Statistics of runs: estimates, tests with corrections, rankings, numbers of seeds. Numbers in, numbers out.

#[cfg(test)]
mod coverage;
pub mod family;
pub mod intervals;
pub mod medians;
pub mod ranking;
pub mod sequential;
pub mod statistics;

pub use family::{Method, Tested, against};
pub use intervals::{POWER, Range, about_seeds, seeds_needed};
pub use medians::{median, sign_test};
pub use ranking::Pairs;
pub use sequential::Sequential;
pub(crate) use statistics::t_quantile;
pub use statistics::{
    CONFIDENCE, Distribution, Estimate, MIN_PAIRS, PairedDifference, SIGNIFICANCE, Test, censored_quantile, holm, mean,
    quantile, slowdown, standard_deviation,
};
