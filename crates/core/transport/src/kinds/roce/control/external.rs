//! Congestion controls of other crates, with dynamic dispatch.

use super::{ControlCapabilities, ControlParameters, DelayedAcks, PairControl, PairReply, Start};
use crate::kinds::roce::RoceParameters;
use anabranch_settings::{About, Addition, External, ExternalParameters, Parameters};
use anabranch_units::{Rate, Time};
use std::{fmt::Debug, sync::Arc};

/// A congestion control of another crate.
pub trait ExternalPairControl:
    PairControl<Parameters: ExternalParameters + ControlCapabilities + Default, Config: Send + Sync> + Send + Sync + 'static
{
    /// Version of these traits for which it is written, as a number; [`anabranch_settings::INTERFACE`] is that of this crate.
    const INTERFACE: u32;
    /// Name and texts.
    const ABOUT: About;
}

/// Returns the addition of a congestion control.
pub fn pair_control<C: ExternalPairControl>() -> Addition {
    let functions = ControlFunctions {
        capabilities: |external| external.of::<C::Parameters>(),
        config: |external, nic_rate| {
            Arc::new(OfControl::<C>(Arc::new(C::config(external.of::<C::Parameters>(), nic_rate))))
        },
    };
    let parameters = Box::new(C::Parameters::default());
    let kind = External { about: const { &C::ABOUT }, parameters, functions };
    let keys = RoceParameters::default().entries().into_iter().map(|(key, _)| key).collect();
    Addition::new(kind, C::INTERFACE, ("congestion control of roce", ControlParameters::ALL), keys)
}

/// Functions of a congestion control of another crate.
#[derive(Clone, Copy)]
pub struct ControlFunctions {
    capabilities: fn(&External<Self>) -> &(dyn ControlCapabilities + 'static),
    config: fn(&External<Self>, Rate) -> Arc<dyn DynConstants>,
}

impl ControlFunctions {
    pub(super) fn capabilities(external: &External<Self>) -> &(dyn ControlCapabilities + 'static) {
        (external.functions.capabilities)(external)
    }
}

struct OfControl<C: PairControl>(Arc<C::Config>);

impl<C: PairControl> Debug for OfControl<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Constants of a run.
pub trait DynConstants: Debug + Send + Sync {
    fn pair(&self, start: &Start) -> Box<dyn DynControl>;
    fn counts_bytes(&self) -> bool;
    fn delayed_acks(&self) -> Option<DelayedAcks>;
}

impl<C: ExternalPairControl> DynConstants for OfControl<C> {
    fn pair(&self, start: &Start) -> Box<dyn DynControl> {
        Box::new((C::new(&self.0, start), OfControl::<C>(self.0.clone())))
    }
    fn counts_bytes(&self) -> bool {
        C::counts_bytes(&self.0)
    }
    fn delayed_acks(&self) -> Option<DelayedAcks> {
        C::delayed_acks(&self.0)
    }
}

/// The state of one queue pair.
#[derive(Debug)]
pub struct BoxedControl(Box<dyn DynControl>);

impl Clone for BoxedControl {
    fn clone(&self) -> Self {
        BoxedControl(self.0.boxed())
    }
}

/// Declares [`DynControl`], [`PairControl`] with its constants and without associated types: calls without constants, then calls
/// with them.
macro_rules! dyn_control {
    (
        { $($plain:ident($($arg:ident: $kind:ty),*) -> $result:ty;)* }
        $($name:ident($($of:ident: $type:ty),*) -> $returned:ty, $($mut:ident)?;)*
    ) => {
        /// A congestion control at work.
        pub trait DynControl: Debug + Send + Sync {
            /// `WINDOW`, `BURSTS` and `PER_PATH` of [`PairControl`].
            fn properties(&self) -> [bool; 3];
            fn boxed(&self) -> Box<dyn DynControl>;
            $(fn $plain(&self, $($arg: $kind),*) -> $result;)*
            $(fn $name(&$($mut)? self, $($of: $type),*) -> $returned;)*
        }

        impl<C: ExternalPairControl> DynControl for (C, OfControl<C>) {
            fn properties(&self) -> [bool; 3] {
                [C::WINDOW, C::BURSTS, C::PER_PATH]
            }
            fn boxed(&self) -> Box<dyn DynControl> {
                Box::new((self.0.clone(), OfControl::<C>(self.1.0.clone())))
            }
            $(fn $plain(&self, $($arg: $kind),*) -> $result {
                self.0.$plain($($arg),*)
            })*
            $(fn $name(&$($mut)? self, $($of: $type),*) -> $returned {
                self.0.$name(&self.1.0, $($of),*)
            })*
        }

        impl PairControl for BoxedControl {
            type Parameters = External<ControlFunctions>;
            type Config = Arc<dyn DynConstants>;
            fn config(external: &Self::Parameters, nic_rate: Rate) -> Self::Config {
                (external.functions.config)(external, nic_rate)
            }
            fn new(config: &Self::Config, start: &Start) -> Self {
                BoxedControl(config.pair(start))
            }
            fn counts_bytes(config: &Self::Config) -> bool {
                config.counts_bytes()
            }
            fn delayed_acks(config: &Self::Config) -> Option<DelayedAcks> {
                config.delayed_acks()
            }
            $(fn $plain(&self, $($arg: $kind),*) -> $result {
                self.0.$plain($($arg),*)
            })*
            $(fn $name(&$($mut)? self, _: &Self::Config, $($of: $type),*) -> $returned {
                self.0.$name($($of),*)
            })*
        }
    };
}

dyn_control! {
    {
        window(mtu: u64) -> u64;
        min_gap() -> Time;
        in_burst() -> bool;
    }
    rate(now: Time, line_rate: Rate) -> Option<Rate>, mut;
    on_notification(now: Time) -> (), mut;
    on_reply(reply: &PairReply) -> (), mut;
    on_timeout(now: Time) -> (), mut;
    may_send(mtu: u64, room: u64, left: u64) -> bool,;
    on_sent(room: u64, bytes: u64) -> (), mut;
    on_bytes(now: Time, bytes: u64) -> (), mut;
    restore(now: Time) -> (), mut;
}

impl BoxedControl {
    /// Returns `WINDOW`, `BURSTS` and `PER_PATH` of [`PairControl`].
    pub(super) fn properties(&self) -> [bool; 3] {
        self.0.properties()
    }
}
