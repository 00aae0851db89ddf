//! RCCC, the receiver-based congestion control of Ultra Ethernet, without another one: a fixed window and credit.

use super::{ControlCapabilities, fixed::Constant};
use anabranch_settings::{About, parameters};

pub(super) const ABOUT: About = About::brief(
    "rccc",
    "Receiver credits of Ultra Ethernet: a pacer at each receiving NIC grants 99 % of its rate to its senders in turn.",
);

parameters! {
    /// Receiver credits have no parameters.
    pub struct RcccParameters {
    }
}

impl ControlCapabilities for RcccParameters {
    fn takes_credit(&self) -> bool {
        true
    }
}

/// See the module.
pub type Rccc = Constant<RcccParameters>;
