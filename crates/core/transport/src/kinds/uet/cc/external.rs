//! Congestion controls of other crates, with dynamic dispatch.

use super::{CcAck, CcLoss, CcParameters, ControlCapabilities, Sizes, WindowRule};
use crate::{Network, kinds::uet::UetParameters};
use anabranch_settings::{About, Addition, External, ExternalParameters, Parameters};
use anabranch_units::Time;
use std::{fmt::Debug, sync::Arc};

/// A congestion control of another crate.
pub trait ExternalWindowRule:
    WindowRule<Parameters: ExternalParameters + ControlCapabilities + Default, Config: Send + Sync> + Send + Sync + 'static
{
    /// Version of these traits for which it is written, as a number; [`anabranch_settings::INTERFACE`] is that of this crate.
    const INTERFACE: u32;
    /// Name and texts.
    const ABOUT: About;
}

/// Returns the addition of a congestion control.
pub fn window_rule<R: ExternalWindowRule>() -> Addition {
    let functions = RuleFunctions {
        capabilities: |external| external.of::<R::Parameters>(),
        config: |external, sizes, network| {
            Arc::new(OfRule::<R>(Arc::new(R::config(external.of::<R::Parameters>(), sizes, network))))
        },
    };
    let parameters = Box::new(R::Parameters::default());
    let kind = External { about: const { &R::ABOUT }, parameters, functions };
    let keys = UetParameters::default().entries().into_iter().map(|(key, _)| key).collect();
    Addition::new(kind, R::INTERFACE, ("congestion control of uet", CcParameters::ALL), keys)
}

/// Functions of a congestion control of another crate.
#[derive(Clone, Copy)]
pub struct RuleFunctions {
    capabilities: fn(&External<Self>) -> &(dyn ControlCapabilities + 'static),
    config: fn(&External<Self>, Sizes, &Network) -> Arc<dyn DynConstants>,
}

impl RuleFunctions {
    pub(super) fn capabilities(external: &External<Self>) -> &(dyn ControlCapabilities + 'static) {
        (external.functions.capabilities)(external)
    }
}

/// Constants of a run.
pub trait DynConstants: Debug + Send + Sync {
    /// Returns the state of a flow.
    fn flow(&self, base_rtt: Time) -> Box<dyn DynRule>;
}

struct OfRule<R: WindowRule>(Arc<R::Config>);

impl<R: WindowRule> Debug for OfRule<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<R: ExternalWindowRule> DynConstants for OfRule<R> {
    fn flow(&self, base_rtt: Time) -> Box<dyn DynRule> {
        Box::new((R::new(&self.0, base_rtt), OfRule::<R>(self.0.clone())))
    }
}

/// [`WindowRule`] with its constants, without associated types.
pub trait DynRule: Debug + Send + Sync {
    fn on_ack(&mut self, ack: &CcAck);
    fn on_progress(&mut self, bytes: u64);
    fn on_nack(&mut self, loss: &CcLoss);
    fn on_timeout(&mut self, loss: &CcLoss);
    fn cwnd(&self) -> f64;
    fn boxed(&self) -> Box<dyn DynRule>;
}

impl<R: ExternalWindowRule> DynRule for (R, OfRule<R>) {
    fn on_ack(&mut self, ack: &CcAck) {
        self.0.on_ack(&self.1.0, ack);
    }
    fn on_progress(&mut self, bytes: u64) {
        self.0.on_progress(bytes);
    }
    fn on_nack(&mut self, loss: &CcLoss) {
        self.0.on_nack(&self.1.0, loss);
    }
    fn on_timeout(&mut self, loss: &CcLoss) {
        self.0.on_timeout(&self.1.0, loss);
    }
    fn cwnd(&self) -> f64 {
        self.0.cwnd()
    }
    fn boxed(&self) -> Box<dyn DynRule> {
        Box::new((self.0.clone(), OfRule::<R>(self.1.0.clone())))
    }
}

/// The state of one flow.
#[derive(Debug)]
pub struct BoxedRule(Box<dyn DynRule>);

impl Clone for BoxedRule {
    fn clone(&self) -> Self {
        BoxedRule(self.0.boxed())
    }
}

impl WindowRule for BoxedRule {
    type Parameters = External<RuleFunctions>;
    type Config = Arc<dyn DynConstants>;

    fn config(external: &Self::Parameters, sizes: Sizes, network: &Network) -> Self::Config {
        (external.functions.config)(external, sizes, network)
    }
    fn new(config: &Self::Config, base_rtt: Time) -> Self {
        BoxedRule(config.flow(base_rtt))
    }
    fn on_ack(&mut self, _: &Self::Config, ack: &CcAck) {
        self.0.on_ack(ack);
    }
    fn on_progress(&mut self, bytes: u64) {
        self.0.on_progress(bytes);
    }
    fn on_nack(&mut self, _: &Self::Config, loss: &CcLoss) {
        self.0.on_nack(loss);
    }
    fn on_timeout(&mut self, _: &Self::Config, loss: &CcLoss) {
        self.0.on_timeout(loss);
    }
    fn cwnd(&self) -> f64 {
        self.0.cwnd()
    }
}
