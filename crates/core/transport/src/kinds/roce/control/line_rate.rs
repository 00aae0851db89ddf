//! No congestion control: every flow sends at line rate.

use super::{ControlCapabilities, PairControl, Start};
use anabranch_settings::{About, parameters};
use anabranch_units::Rate;

pub(super) const ABOUT: About = About::brief("none", "Line rate.");

parameters! {
    /// Line rate has no parameters.
    pub struct LineRateParameters {
    }
}

impl ControlCapabilities for LineRateParameters {}

/// A queue pair at line rate.
#[derive(Clone, Debug)]
pub struct LineRate;

impl PairControl for LineRate {
    type Parameters = LineRateParameters;
    type Config = ();

    fn config(_: &LineRateParameters, _: Rate) {}

    fn new((): &(), _: &Start) -> Self {
        LineRate
    }
}
