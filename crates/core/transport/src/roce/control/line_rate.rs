//! No congestion control: every flow sends at line rate.

use super::{About, PairControl, Start};
use anabranch_settings::parameters;
use anabranch_units::Rate;

parameters! {
    /// Line rate has no parameters of its own.
    pub struct LineRateParameters {
    }
}

/// A queue pair at line rate.
#[derive(Clone, Debug)]
pub struct LineRate;

impl PairControl for LineRate {
    const ABOUT: About = About { name: "none", summary: "Line rate.", by_delay_alone: false };
    type Parameters = LineRateParameters;
    type Config = ();

    fn config(_: &LineRateParameters, _: Rate) {}

    fn new((): &(), _: &Start) -> Self {
        LineRate
    }
}
