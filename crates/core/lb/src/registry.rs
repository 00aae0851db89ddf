//! Every scheme, by name, and static dispatch over them.
//!
//! A new scheme is one file in `host/` or `switch/` and one line `module X XParameters` here. The file has
//! - `pub(crate) const ABOUT: About`: name and texts;
//! - `XParameters`, declared with `parameters!`, and its `impl SchemeCapabilities`: limits and capabilities;
//! - `X` with `X::new(parameters, seed, host_key)` and `impl HostScheme`, or
//!   `X::new(parameters, seed, &SwitchInfo)` and `impl SwitchScheme`.
//!
//! Schemes of other crates ([`ExternalHost`](crate::ExternalHost), [`ExternalSwitch`](crate::ExternalSwitch)) are the variant
//! `External`, with dynamic dispatch.
//!
//! A new kind of tag is a variant of [`TagKind`]; a pair that a paper gives one name is a line of [`ALIASES`].

mod alias;
mod capabilities;
mod errors;

pub use alias::{ALIASES, Alias, DEFAULT_ALIAS, aliases, check_header, check_host_side, check_pair, resolve};
pub use capabilities::{PacketScope, SchemeCapabilities, TagKind};
pub use errors::{Invalid, SchemeError};

use crate::{
    Candidates, Decision, Delivery, Effects, Feedback, FlowInfo, GuidedSwitch, HostScheme, LinkSignal, LocalQueues,
    Loss, Outgoing, PacketView, PathReading, Probe, Recorded, RecordedSwitch, SchemeCounters, State, StateColumn,
    SwitchHeader, SwitchInfo, SwitchScheme, Tag, ValueState,
    external::{BoxedSwitch, DynHost, HostFunctions, SwitchFunctions},
    host,
    host::mp_ev::{MAX_PARTS, MAX_PATHS, PathEncoding},
    switch,
};
use anabranch_settings::registry;
use anabranch_units::{Rate, Time};

/// Items common to both sides, in addition to [`anabranch_settings::registry!`].
macro_rules! both_sides {
    (
        $side:literal, $folder:ident, $parameters:ident, $functions:ident, $running:ident { $($more:tt)* }:
        $($module:ident $scheme:ident $of_scheme:ident,)*
    ) => {
        registry! {
            #[doc = concat!("A ", $side, " and its parameters.")]
            pub enum $parameters($side): pub dyn SchemeCapabilities in $folder, external $functions {
                $($module $scheme $of_scheme,)*
            }
        }

        impl $parameters {
            /// Checks that every parameter is within its limits.
            ///
            /// # Errors
            /// [`SchemeError::Invalid`].
            pub fn check(&self) -> Result<(), SchemeError> {
                self.capabilities().check().map_err(|invalid| SchemeError::Invalid { scheme: self.name(), invalid })
            }

            /// Returns the columns of its state; empty: it keeps none.
            pub fn state(&self) -> &'static [StateColumn] {
                match self {
                    $(Self::$scheme(_) => $folder::$module::STATE,)*
                    Self::External(external) => external.functions.state,
                }
            }
        }

        #[doc = concat!("A ", $side, " at work.")]
        #[derive(Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum $running {
            $(
                #[doc = concat!("See the module `", stringify!($folder), "::", stringify!($module), "`.")]
                $scheme($folder::$module::$scheme),
            )*
            $($more)*
        }
    };
}

macro_rules! host_schemes {
    ($($module:ident $scheme:ident $of_scheme:ident,)*) => {
        both_sides! {
            "host scheme", host, HostParameters, HostFunctions, Host {
                /// Any scheme whose calls are recorded.
                Recorded(Box<Recorded>),
                /// A scheme of another crate.
                External(Box<dyn DynHost>),
            }:
            $($module $scheme $of_scheme,)*
        }

        impl HostParameters {
            /// Creates the scheme of the host with the stable key `host_key`.
            pub fn build(&self, seed: u64, host_key: u64) -> Host {
                match self {
                    $(Self::$scheme(p) => Host::$scheme(host::$module::$scheme::new(p.clone(), seed, host_key)),)*
                    Self::External(external) => Host::External(HostFunctions::build(external, seed, host_key)),
                }
            }
        }

        host_calls! { $($scheme)* Recorded External }
    };
}

macro_rules! host_calls {
    ($($scheme:ident)*) => {
        impl HostScheme for Host {
            #[inline]
            fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
                match self { $(Self::$scheme(s) => s.open(now, slot, flow),)* }
            }
            #[inline]
            fn close(&mut self, slot: u32) {
                match self { $(Self::$scheme(s) => s.close(slot),)* }
            }
            #[inline]
            fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision {
                match self { $(Self::$scheme(s) => s.select(now, slot, packet),)* }
            }
            fn on_signal(&mut self, now: Time, slot: u32, tag: Tag, signal: LinkSignal) {
                match self { $(Self::$scheme(s) => s.on_signal(now, slot, tag, signal),)* }
            }
            #[inline]
            fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
                match self { $(Self::$scheme(s) => s.on_ack(now, slot, feedback),)* }
            }
            #[inline]
            fn on_nack(&mut self, now: Time, slot: u32, tag: Tag) {
                self.on_loss(now, slot, tag, Loss::Trimmed);
            }
            #[inline]
            fn on_loss(&mut self, now: Time, slot: u32, tag: Tag, cause: Loss) {
                match self { $(Self::$scheme(s) => s.on_loss(now, slot, tag, cause),)* }
            }
            #[inline]
            fn on_timeout(&mut self, now: Time, slot: u32, tag: Tag) {
                match self { $(Self::$scheme(s) => s.on_timeout(now, slot, tag),)* }
            }
            #[inline]
            fn on_paths_changed(&mut self, now: Time, slot: u32, dead: &[bool]) {
                match self { $(Self::$scheme(s) => s.on_paths_changed(now, slot, dead),)* }
            }
            fn on_rates_changed(&mut self, now: Time, slot: u32, rates: &[Rate]) {
                match self { $(Self::$scheme(s) => s.on_rates_changed(now, slot, rates),)* }
            }
            fn on_ports_changed(&mut self, now: Time, slot: u32, local: u32, remote: u32) {
                match self { $(Self::$scheme(s) => s.on_ports_changed(now, slot, local, remote),)* }
            }
            #[inline]
            fn poll_probe(&mut self, now: Time, slot: u32) -> Option<Probe> {
                match self { $(Self::$scheme(s) => s.poll_probe(now, slot),)* }
            }
            #[inline]
            fn probe_at(&self, slot: u32) -> Time {
                match self { $(Self::$scheme(s) => s.probe_at(slot),)* }
            }
            fn on_probe_reply(&mut self, now: Time, slot: u32, tag: Tag, rtt: Time, ecn: bool) -> bool {
                match self { $(Self::$scheme(s) => s.on_probe_reply(now, slot, tag, rtt, ecn),)* }
            }
            fn record_changes(&mut self, slot: u32) {
                match self { $(Self::$scheme(s) => s.record_changes(slot),)* }
            }
            fn take_changes(&mut self, slot: u32, each: &mut dyn FnMut(Time, Tag, ValueState)) {
                match self { $(Self::$scheme(s) => s.take_changes(slot, each),)* }
            }
            fn steer(&mut self, connection: u64, weights: &[f32]) -> bool {
                match self { $(Self::$scheme(s) => s.steer(connection, weights),)* }
            }
            fn readings(&self, connection: u64) -> &[PathReading] {
                match self { $(Self::$scheme(s) => s.readings(connection),)* }
            }
            fn state(&self, now: Time, slot: u32, tag: Option<Tag>) -> State {
                match self { $(Self::$scheme(s) => s.state(now, slot, tag),)* }
            }
            fn counters(&self) -> SchemeCounters {
                match self { $(Self::$scheme(s) => s.counters(),)* }
            }
        }
    };
}

macro_rules! switch_schemes {
    ($($module:ident $scheme:ident $of_scheme:ident,)*) => {
        both_sides! {
            "switch scheme", switch, SwitchParameters, SwitchFunctions, Switch {
                /// Any scheme whose choices are recorded.
                Recorded(Box<RecordedSwitch>),
                /// A scheme of another crate.
                External(BoxedSwitch),
            }:
            $($module $scheme $of_scheme,)*
        }

        impl SwitchParameters {
            /// Creates the scheme of this switch.
            pub fn build(&self, seed: u64, info: &SwitchInfo) -> Switch {
                match self {
                    $(Self::$scheme(p) => Switch::$scheme(switch::$module::$scheme::new(p.clone(), seed, info)),)*
                    Self::External(external) => Switch::External(SwitchFunctions::build(external, seed, info)),
                }
            }
        }

        switch_calls! { $($scheme)* Recorded External }
    };
}

macro_rules! switch_calls {
    ($($scheme:ident)*) => {
        impl SwitchScheme for Switch {
            #[inline]
            fn forward<Q: LocalQueues>(
                &mut self,
                now: Time,
                packet: &PacketView,
                header: &mut SwitchHeader,
                candidates: &Candidates<'_>,
                queues: &mut Q,
            ) -> u32 {
                match self { $(Self::$scheme(s) => s.forward(now, packet, header, candidates, queues),)* }
            }
            #[inline]
            fn guide<G: GuidedSwitch>(
                &mut self,
                now: Time,
                packet: &PacketView,
                header: &mut SwitchHeader,
                at: &mut G,
            ) -> u32 {
                match self { $(Self::$scheme(s) => s.guide(now, packet, header, at),)* }
            }
            #[inline]
            fn deliver(&mut self, now: Time, packet: &PacketView, header: &SwitchHeader, out: &mut Effects) -> Delivery {
                match self { $(Self::$scheme(s) => s.deliver(now, packet, header, out),)* }
            }
            fn on_control(&mut self, now: Time, packet: &PacketView, header: &SwitchHeader, out: &mut Effects) {
                match self { $(Self::$scheme(s) => s.on_control(now, packet, header, out),)* }
            }
            fn on_timer(&mut self, now: Time, number: u32, out: &mut Effects) {
                match self { $(Self::$scheme(s) => s.on_timer(now, number, out),)* }
            }
            fn state(&self, now: Time, packet: &PacketView, header: &SwitchHeader) -> State {
                match self { $(Self::$scheme(s) => s.state(now, packet, header),)* }
            }
            fn counters(&self) -> SchemeCounters {
                match self { $(Self::$scheme(s) => s.counters(),)* }
            }
            #[inline]
            fn by_labels(&self, tag: Tag, packet: impl FnOnce() -> PacketView, count: u32, uplinks: u32) -> Option<u32> {
                match self { $(Self::$scheme(s) => s.by_labels(tag, packet, count, uplinks),)* }
            }
            #[inline]
            fn on_routes_changed(&mut self, groups: u32) {
                match self { $(Self::$scheme(s) => s.on_routes_changed(groups),)* }
            }
        }
    };
}

host_schemes! {
    ecmp Ecmp EcmpParameters,
    ops Ops OpsParameters,
    round_robin RoundRobin RoundRobinParameters,
    reps Reps RepsParameters,
    bitmap Bitmap BitmapParameters,
    mixed Mixed MixedParameters,
    plb Plb PlbParameters,
    flowbender FlowBender FlowBenderParameters,
    flowlet Flowlet FlowletParameters,
    co_prime CoPrime CoPrimeParameters,
    prime Prime PrimeParameters,
    hopper Hopper HopperParameters,
    hf2t Hf2t Hf2tParameters,
    qp_spray QpSpray QpSprayParameters,
    flicr Flicr FlicrParameters,
    mrc Mrc MrcParameters,
    mp_rdma MpRdma MpRdmaParameters,
    braid Braid BraidParameters,
    cast Cast CastParameters,
    spritz_scout SpritzScout SpritzScoutParameters,
    spritz_spray SpritzSpray SpritzSprayParameters,
    spritz_coarse SpritzCoarse SpritzCoarseParameters,
}

switch_schemes! {
    ecmp Ecmp EcmpParameters,
    ev_index EvIndex EvIndexParameters,
    ar Ar ArParameters,
    drill Drill DrillParameters,
    letflow Letflow LetflowParameters,
    conga Conga CongaParameters,
    conweave Conweave ConweaveParameters,
    round_robin RoundRobin RoundRobinParameters,
    random Random RandomParameters,
    source_guided SourceGuided SourceGuidedParameters,
    coarse_guided CoarseGuided CoarseGuidedParameters,
    minimal Minimal MinimalParameters,
    valiant Valiant ValiantParameters,
    ugal Ugal UgalParameters,
}

impl HostParameters {
    /// Checks that the scheme can encode the paths of these uplinks per tier, else every packet would carry tag 0; `planes` as in
    /// [`PathSpace`](crate::PathSpace).
    ///
    /// # Errors
    /// [`SchemeError::Unfit`].
    pub fn check_uplinks(&self, uplinks: &[u32], planes: u32) -> Result<(), SchemeError> {
        let paths = uplinks.iter().fold(1u64, |paths, &size| paths.saturating_mul(u64::from(size.max(1))));
        let scheme = self.name();
        if self.capabilities().tags() == TagKind::MultiPart && uplinks.is_empty() {
            let others = Self::names(|other| other.capabilities().tags() == TagKind::Entropy).join(", ");
            return Err(SchemeError::Unfit(format!(
                "host scheme `{scheme}` names uplinks tier by tier, and this topology has no tiers; take a scheme whose \
                 entropy values are hashed: {others}"
            )));
        }
        if self.capabilities().tags() != TagKind::MultiPart || paths == 1 || PathEncoding::new(uplinks).is_some() {
            let tiers = if planes > 1 { uplinks.get(1..).unwrap_or_default() } else { uplinks };
            return self
                .capabilities()
                .check_paths(tiers, planes.max(1))
                .map_err(|invalid| SchemeError::Invalid { scheme, invalid });
        }
        Err(SchemeError::Unfit(format!(
            "host scheme `{scheme}` names at most {MAX_PATHS} paths over {MAX_PARTS} tiers; this topology has {paths} over {}",
            uplinks.len()
        )))
    }
}

impl SwitchParameters {
    /// Checks that the scheme works with or without guided paths, at switches of up to `max_ports` switch-facing ports.
    ///
    /// # Errors
    /// [`SchemeError::Unfit`].
    pub fn check_guided(&self, guided: bool, max_ports: u32) -> Result<(), SchemeError> {
        let scheme = self.name();
        match self.capabilities().packet_scope() {
            PacketScope::Guided if !guided => Err(SchemeError::Unfit(format!(
                "switch scheme `{scheme}` needs a topology of kind dragonfly, slim-fly or hyperx, or an adjacency list with `guided = true`; on any other take one of {}",
                Self::names(Self::works_anywhere).join(", ")
            ))),
            // A part of an entropy value has 8 bits.
            PacketScope::Guided if max_ports > 256 => Err(SchemeError::Unfit(format!(
                "switch scheme `{scheme}` names ports by 8 bits (Spritz §III-C): at most 256 ports to other switches; this \
                 topology has switches with {max_ports}"
            ))),
            _ => Ok(()),
        }
    }

    fn works_anywhere(&self) -> bool {
        let of = self.capabilities();
        of.packet_scope() != PacketScope::Guided && of.tags() == TagKind::Entropy && of.max_leaf_paths().is_none()
    }

    /// Checks that the scheme works on a topology with these uplinks per tier.
    ///
    /// # Errors
    /// [`SchemeError::Unfit`].
    pub fn check_uplinks(&self, uplinks: &[u32]) -> Result<(), SchemeError> {
        let Some(most) = self.capabilities().max_leaf_paths() else { return Ok(()) };
        let paths = uplinks.iter().fold(1u64, |paths, &size| paths.saturating_mul(u64::from(size.max(1))));
        if (1..=2).contains(&uplinks.len()) && paths <= most {
            return Ok(());
        }
        Err(SchemeError::Unfit(format!(
            "switch scheme `{}` chooses paths at the sender's leaf: it needs a leaf-spine or a fat tree, with at most {most} \
             paths between leaves; this topology has {} tiers with uplinks and {paths} paths; others: {}",
            self.name(),
            uplinks.len(),
            Self::names(Self::works_anywhere).join(", ")
        )))
    }
}
