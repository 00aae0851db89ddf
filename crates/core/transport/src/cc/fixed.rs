//! No congestion control: a fixed window.

use super::{About, CcAck, CcLoss, Sizes, WindowRule};
use crate::Network;
use anabranch_settings::parameters;
use anabranch_units::Time;

parameters! {
    /// A fixed window has no parameters of its own.
    pub struct FixedParameters {
    }
}

/// A window that nothing moves, in bytes.
#[derive(Clone, Debug)]
pub struct Fixed(f64);

impl WindowRule for Fixed {
    const ABOUT: About = About { name: "none", summary: "A fixed window.", by_delay_alone: false };
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
