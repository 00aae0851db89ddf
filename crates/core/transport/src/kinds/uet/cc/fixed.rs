//! No congestion control: a fixed window.

use super::{CcAck, CcLoss, ControlCapabilities, Sizes, WindowRule};
use crate::Network;
use anabranch_settings::{About, Parameters, parameters};
use anabranch_units::Time;
use std::{fmt::Debug, marker::PhantomData};

pub(super) const ABOUT: About = About::brief("none", "A fixed window.");

parameters! {
    /// A fixed window has no parameters.
    pub struct FixedParameters {
    }
}

impl ControlCapabilities for FixedParameters {}

/// See the module.
pub type Fixed = Constant<FixedParameters>;

/// A constant window in bytes, under parameters `P`.
#[derive(Clone, Debug)]
pub struct Constant<P>(f64, PhantomData<P>);

impl<P: Parameters + Clone + Debug + Default + PartialEq> WindowRule for Constant<P> {
    type Parameters = P;
    type Config = Sizes;

    fn config(_: &P, sizes: Sizes, _: &Network) -> Sizes {
        sizes
    }

    fn new(sizes: &Sizes, _base_rtt: Time) -> Self {
        Constant(sizes.max, PhantomData)
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
