//! A scheme that reads the rates of paths. The tests of testbeds use it too.

use anabranch_lb::{
    Decision, ExternalHost, FlowInfo, HostScheme, Outgoing,
    registry::{SchemeCapabilities, TagKind},
};
use anabranch_settings::{About, parameters};
use anabranch_units::{Rate, Time};

parameters! {
    /// Of a scheme that takes the fastest path.
    pub struct FastestParameters {}
}

impl SchemeCapabilities for FastestParameters {
    fn tags(&self) -> TagKind {
        TagKind::MultiPart
    }
    fn reads_path_rates(&self) -> bool {
        true
    }
}

/// The last of the fastest paths.
#[derive(Debug)]
pub(crate) struct Fastest(u32);

impl Fastest {
    fn take(&mut self, rates: &[Rate]) {
        self.0 = rates.iter().zip(0..).max().map_or(0, |(_, path)| path);
    }
}

impl ExternalHost for Fastest {
    const INTERFACE: u32 = 1;
    const ABOUT: About = About::brief("fastest", "the fastest path");
    type Parameters = FastestParameters;
    fn new(_: FastestParameters, _: u64, _: u64) -> Self {
        Fastest(0)
    }
}

impl HostScheme for Fastest {
    fn open(&mut self, _now: Time, _slot: u32, flow: &FlowInfo<'_>) {
        self.take(flow.paths.rates);
    }
    fn close(&mut self, _slot: u32) {}
    fn select(&mut self, _now: Time, _slot: u32, _packet: &Outgoing) -> Decision {
        Decision::Send(self.0)
    }
    fn on_rates_changed(&mut self, _now: Time, _slot: u32, rates: &[Rate]) {
        self.take(rates);
    }
}
