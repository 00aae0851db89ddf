//! Schemes of other crates: the traits that they implement, and dynamic dispatch to them.

use crate::{
    Candidates, Delivery, Effects, GuidedPaths, GuidedSwitch, GuidedTopology, HostScheme, LocalQueues, PacketView,
    SchemeCounters, State, StateColumn, SwitchHeader, SwitchInfo, SwitchScheme, Tag,
    registry::{ALIASES, HostParameters, SchemeCapabilities, SwitchParameters},
};
use anabranch_settings::{
    About, Addition, External, ExternalParameters, INTERFACE, Parameter, Parameters, Raw, Registry, SetError,
};
use anabranch_units::{Rate, Time};
use std::fmt::Debug;

/// A host scheme of another crate.
pub trait ExternalHost: HostScheme + Debug + Send + Sync + Sized + 'static {
    /// Version of these traits for which it is written, as a number; [`anabranch_settings::INTERFACE`] is that of this crate.
    const INTERFACE: u32;
    /// Name and texts.
    const ABOUT: About;
    /// Columns of its state in traces.
    const STATE: &'static [StateColumn] = &[];
    /// Parameters, declared with [`anabranch_settings::parameters!`].
    type Parameters: ExternalParameters + SchemeCapabilities + Clone + Default;
    /// Creates the scheme of the host with the stable key `host_key`.
    fn new(parameters: Self::Parameters, seed: u64, host_key: u64) -> Self;
}

/// A switch scheme of another crate.
pub trait ExternalSwitch: SwitchScheme + Debug + Send + Sync + Sized + 'static {
    /// Version of these traits for which it is written, as a number; [`anabranch_settings::INTERFACE`] is that of this crate.
    const INTERFACE: u32;
    /// Name and texts.
    const ABOUT: About;
    /// Columns of its state in traces.
    const STATE: &'static [StateColumn] = &[];
    /// Parameters, declared with [`anabranch_settings::parameters!`].
    type Parameters: ExternalParameters + SchemeCapabilities + Clone + Default;
    /// Creates the scheme of a switch.
    fn new(parameters: Self::Parameters, seed: u64, switch: &SwitchInfo) -> Self;
}

/// Returns the addition of a host scheme.
pub fn host_scheme<S: ExternalHost>() -> Addition {
    Addition::new(host_kind::<S>(), S::INTERFACE, ("host scheme", HostParameters::ALL), names())
}

/// A host scheme that is described at run time, such as one in another language: its parameters, which create it.
pub trait DescribedHost: ExternalParameters + SchemeCapabilities {
    /// Creates the scheme of the host with the stable key `host_key`.
    fn build(&self, seed: u64, host_key: u64) -> Box<dyn DynHost>;
}

/// Returns the addition of a host scheme that is described at run time; it keeps no columns of state.
pub fn described_host<P: DescribedHost>(about: &'static About, parameters: P) -> Addition {
    let functions = HostFunctions {
        state: &[],
        capabilities: |external| external.of::<P>(),
        build: |external, seed, host_key| external.of::<P>().build(seed, host_key),
    };
    let kind = External { about, parameters: Box::new(parameters), functions };
    Addition::new(kind, INTERFACE, ("host scheme", HostParameters::ALL), names())
}

/// Returns the addition of a switch scheme.
pub fn switch_scheme<S: ExternalSwitch>() -> Addition {
    Addition::new(switch_kind::<S>(), S::INTERFACE, ("switch scheme", SwitchParameters::ALL), names())
}

fn host_kind<S: ExternalHost>() -> External<HostFunctions> {
    let functions = HostFunctions {
        state: S::STATE,
        capabilities: |external| external.of::<S::Parameters>(),
        build: |external, seed, host_key| Box::new(S::new(external.of::<S::Parameters>().clone(), seed, host_key)),
    };
    External { about: const { &S::ABOUT }, parameters: Box::new(S::Parameters::default()), functions }
}

fn switch_kind<S: ExternalSwitch>() -> External<SwitchFunctions> {
    let functions = SwitchFunctions {
        state: S::STATE,
        capabilities: |external| external.of::<S::Parameters>(),
        build: |external, seed, info| Box::new(S::new(external.of::<S::Parameters>().clone(), seed, info)),
    };
    External { about: const { &S::ABOUT }, parameters: Box::new(S::Parameters::default()), functions }
}

/// Names in `[load_balancer]`.
fn names() -> Vec<&'static str> {
    let ours = HostParameters::ALL.iter().chain(SwitchParameters::ALL).map(|about| about.name);
    ours.chain(ALIASES.iter().map(|alias| alias.name)).chain(["scheme", "host", "switch"]).collect()
}

/// Functions of a host scheme of another crate.
#[derive(Clone, Copy)]
pub struct HostFunctions {
    pub(crate) state: &'static [StateColumn],
    capabilities: fn(&External<Self>) -> &(dyn SchemeCapabilities + 'static),
    build: fn(&External<Self>, u64, u64) -> Box<dyn DynHost>,
}

impl HostFunctions {
    pub(crate) fn capabilities(external: &External<Self>) -> &(dyn SchemeCapabilities + 'static) {
        (external.functions.capabilities)(external)
    }
    pub(crate) fn build(external: &External<Self>, seed: u64, host_key: u64) -> Box<dyn DynHost> {
        (external.functions.build)(external, seed, host_key)
    }
}

/// Functions of a switch scheme of another crate.
#[derive(Clone, Copy)]
pub struct SwitchFunctions {
    pub(crate) state: &'static [StateColumn],
    capabilities: fn(&External<Self>) -> &(dyn SchemeCapabilities + 'static),
    build: fn(&External<Self>, u64, &SwitchInfo) -> Box<dyn DynSwitch>,
}

impl SwitchFunctions {
    pub(crate) fn capabilities(external: &External<Self>) -> &(dyn SchemeCapabilities + 'static) {
        (external.functions.capabilities)(external)
    }
    pub(crate) fn build(external: &External<Self>, seed: u64, info: &SwitchInfo) -> BoxedSwitch {
        BoxedSwitch((external.functions.build)(external, seed, info))
    }
}

/// A scheme of ours as the parameters of an external one.
#[derive(Clone, Debug)]
struct Twin<P>(P);

impl<P: Registry> Parameters for Twin<P> {
    fn documentation(&self) -> Vec<Parameter> {
        self.0.parameters().documentation()
    }
    fn set(&mut self, key: &str, value: &Raw) -> Result<(), SetError> {
        self.0.parameters_mut().set(key, value)
    }
    fn entries(&self) -> Vec<(&'static str, Raw)> {
        self.0.parameters().entries()
    }
}

impl HostParameters {
    /// Returns a scheme of another crate, added or not.
    pub fn external<S: ExternalHost>() -> Self {
        Self::External(host_kind::<S>())
    }

    /// Returns this scheme with the dispatch of one of another crate, to measure its cost.
    #[must_use]
    pub fn as_external(&self) -> Self {
        let functions = HostFunctions {
            state: self.state(),
            capabilities: |external| external.of::<Twin<Self>>().0.as_ref(),
            build: |external, seed, host_key| Box::new(external.of::<Twin<Self>>().0.build(seed, host_key)),
        };
        Self::External(External { about: self.about(), parameters: Box::new(Twin(self.clone())), functions })
    }
}

impl SwitchParameters {
    /// Returns a scheme of another crate, added or not.
    pub fn external<S: ExternalSwitch>() -> Self {
        Self::External(switch_kind::<S>())
    }

    /// Returns this scheme with the dispatch of one of another crate, to measure its cost.
    #[must_use]
    pub fn as_external(&self) -> Self {
        let functions = SwitchFunctions {
            state: self.state(),
            capabilities: |external| external.of::<Twin<Self>>().0.as_ref(),
            build: |external, seed, info| Box::new(external.of::<Twin<Self>>().0.build(seed, info)),
        };
        Self::External(External { about: self.about(), parameters: Box::new(Twin(self.clone())), functions })
    }
}

/// A host scheme of another crate at work.
pub trait DynHost: HostScheme + Debug + Send + Sync {}

impl<S: HostScheme + Debug + Send + Sync> DynHost for S {}

/// Declares [`DynSwitch`], implemented by every switch scheme and called through its box.
macro_rules! dyn_switch {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty, $($mut:ident)?;)*) => {
        /// [`SwitchScheme`] without type parameters.
        pub(crate) trait DynSwitch: Debug + Send + Sync {
            /// See [`SwitchScheme::by_labels`].
            fn by_labels(&self, tag: Tag, packet: &mut dyn FnMut() -> PacketView, count: u32, uplinks: u32) -> Option<u32>;
            /// See [`SwitchScheme::forward`].
            fn forward(
                &mut self,
                now: Time,
                packet: &PacketView,
                header: &mut SwitchHeader,
                candidates: &Candidates<'_>,
                queues: &mut dyn LocalQueues,
            ) -> u32;
            /// See [`SwitchScheme::guide`].
            fn guide(&mut self, now: Time, packet: &PacketView, header: &mut SwitchHeader, at: &mut dyn GuidedSwitch) -> u32;
            $(
                #[doc = concat!("See [`SwitchScheme::", stringify!($name), "`].")]
                fn $name(&$($mut)? self, $($arg: $kind),*) -> $result;
            )*
        }

        impl<S: SwitchScheme + Debug + Send + Sync> DynSwitch for S {
            fn by_labels(&self, tag: Tag, packet: &mut dyn FnMut() -> PacketView, count: u32, uplinks: u32) -> Option<u32> {
                SwitchScheme::by_labels(self, tag, packet, count, uplinks)
            }
            fn forward(
                &mut self,
                now: Time,
                packet: &PacketView,
                header: &mut SwitchHeader,
                candidates: &Candidates<'_>,
                mut queues: &mut dyn LocalQueues,
            ) -> u32 {
                SwitchScheme::forward(self, now, packet, header, candidates, &mut queues)
            }
            fn guide(
                &mut self,
                now: Time,
                packet: &PacketView,
                header: &mut SwitchHeader,
                mut at: &mut dyn GuidedSwitch,
            ) -> u32 {
                SwitchScheme::guide(self, now, packet, header, &mut at)
            }
            $(fn $name(&$($mut)? self, $($arg: $kind),*) -> $result {
                SwitchScheme::$name(self, $($arg),*)
            })*
        }

        impl SwitchScheme for BoxedSwitch {
            fn by_labels(&self, tag: Tag, packet: impl FnOnce() -> PacketView, count: u32, uplinks: u32) -> Option<u32> {
                let mut packet = Some(packet);
                let mut view = || packet.take().map_or_else(|| unreachable!("called once"), |packet| packet());
                self.0.by_labels(tag, &mut view, count, uplinks)
            }
            fn forward<Q: LocalQueues>(
                &mut self,
                now: Time,
                packet: &PacketView,
                header: &mut SwitchHeader,
                candidates: &Candidates<'_>,
                queues: &mut Q,
            ) -> u32 {
                self.0.forward(now, packet, header, candidates, queues)
            }
            fn guide<G: GuidedSwitch>(
                &mut self,
                now: Time,
                packet: &PacketView,
                header: &mut SwitchHeader,
                at: &mut G,
            ) -> u32 {
                self.0.guide(now, packet, header, at)
            }
            $(fn $name(&$($mut)? self, $($arg: $kind),*) -> $result {
                self.0.$name($($arg),*)
            })*
        }
    };
}

dyn_switch! {
    deliver(now: Time, packet: &PacketView, header: &SwitchHeader, out: &mut Effects) -> Delivery, mut;
    on_control(now: Time, packet: &PacketView, header: &SwitchHeader, out: &mut Effects) -> (), mut;
    on_timer(now: Time, number: u32, out: &mut Effects) -> (), mut;
    state(now: Time, packet: &PacketView, header: &SwitchHeader) -> State,;
    counters() -> SchemeCounters,;
    on_routes_changed(groups: u32) -> (), mut;
}

/// A switch scheme of another crate at work.
#[derive(Debug)]
pub struct BoxedSwitch(Box<dyn DynSwitch>);

/// Calls of a trait through a reference.
macro_rules! through {
    ($trait:ident: $($name:ident($($arg:ident: $kind:ty),*) -> $result:ty, $($mut:ident)?;)*) => {
        impl<T: $trait + ?Sized> $trait for &mut T {
            $(fn $name(&$($mut)? self, $($arg: $kind),*) -> $result {
                (**self).$name($($arg),*)
            })*
        }
    };
}

through! { LocalQueues:
    bytes(index: u32) -> u64, mut;
    rate(index: u32) -> Rate, mut;
}

through! { GuidedSwitch:
    topology() -> GuidedTopology,;
    here() -> u32,;
    destination() -> u32,;
    ports(switch: u32) -> u32,;
    peer(switch: u32, port: u32) -> u32,;
    is_local(switch: u32, port: u32) -> bool,;
    group(switch: u32) -> u32,;
    minimal(switch: u32) -> u32,;
    named(hop: u8, over_local: bool, ev: u16) -> u32,;
    path_type(local: u8, global: u8) -> Option<u8>,;
    is_live(port: u32) -> bool,;
    queue(port: u32) -> u64, mut;
    snapshot(switch: u32, port: u32) -> u64,;
    paths() -> &GuidedPaths, mut;
}
