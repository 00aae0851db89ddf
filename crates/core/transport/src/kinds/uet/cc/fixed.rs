//! No congestion control: a fixed window.

use super::{CcAck, CcLoss, ControlCapabilities, Sizes, WindowRule};
use crate::Network;
use anabranch_settings::{About, parameters};
use anabranch_units::Time;

pub(super) const ABOUT: About = About::brief("none", "A fixed window.");

parameters! {
    /// A fixed window has no parameters.
    pub struct FixedParameters {
    }
}

impl ControlCapabilities for FixedParameters {}

/// A constant window in bytes.
#[derive(Clone, Debug)]
pub struct Fixed(f64);

impl WindowRule for Fixed {
    type Parameters = FixedParameters;
    type Config = Sizes;

    fn config(_: &FixedParameters, sizes: Sizes, _: &Network) -> Sizes {
        sizes
    }

    fn new(sizes: &Sizes, _base_rtt: Time) -> Self {
        Fixed(sizes.max)
    }

    #[inline]
    fn on_ack(&mut self, _: &Sizes, _: &CcAck) {}

    fn on_nack(&mut self, _: &Sizes, _: &CcLoss) {}

    fn on_timeout(&mut self, _: &Sizes, _: &CcLoss) {}

    #[inline]
    fn cwnd(&self) -> f64 {
        self.0
    }
}
