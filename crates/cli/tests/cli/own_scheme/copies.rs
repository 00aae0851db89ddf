//! Copies of three schemes and two congestion controls of ours under other names, in place of the scheme of `init --scheme`.

use anabranch::{
    lb::{
        Candidates, Decision, ExternalHost, ExternalSwitch, FlowInfo, GuidedSwitch, Hasher, HostScheme, LocalQueues,
        Outgoing, PacketView, SwitchHeader, SwitchInfo, SwitchScheme, ecmp, host_scheme,
        registry::{PacketScope, SchemeCapabilities},
        switch_scheme,
    },
    random::{Stream, key},
    settings::{About, Addition, parameters},
    transport::{
        ControlCapabilities, Network,
        roce::control::{ExternalPairControl, PairControl, Start, pair_control},
        uet::cc::{CcAck, CcLoss, ExternalWindowRule, Sizes, WindowRule, window_rule},
    },
    units::{Rate, Time},
};

pub fn schemes() -> Vec<Addition> {
    let mut all = vec![
        host_scheme::<Ops>(),
        switch_scheme::<Random>(),
        switch_scheme::<Minimal>(),
        window_rule::<Fixed>(),
        pair_control::<LineRate>(),
    ];
    if std::env::var_os("COPIES_TWICE").is_some() {
        all.push(host_scheme::<Ops>());
    }
    all
}

parameters! {
    /// Of `ops-copy`.
    pub struct OpsParameters {
        /// Number of entropy values.
        entropy_values: u32 = 65536, source "as ops";
    }
}
impl SchemeCapabilities for OpsParameters {}

#[derive(Debug)]
pub struct Ops {
    host_key: u64,
    values: u64,
    flows: Vec<Option<Stream>>,
}

impl ExternalHost for Ops {
    const INTERFACE: u32 = 1;
    const ABOUT: About = About::brief("ops-copy", "a fresh entropy value for every packet");
    type Parameters = OpsParameters;
    fn new(parameters: OpsParameters, seed: u64, host_key: u64) -> Self {
        Ops { host_key: key(seed, host_key, "ops"), values: parameters.entropy_values.into(), flows: Vec::new() }
    }
}

impl HostScheme for Ops {
    fn open(&mut self, _: Time, slot: u32, flow: &FlowInfo<'_>) {
        self.flows.resize_with(self.flows.len().max(slot as usize + 1), || None);
        self.flows[slot as usize] = Some(Stream::keyed(self.host_key, flow.key, "ops"));
    }
    fn close(&mut self, slot: u32) {
        self.flows[slot as usize] = None;
    }
    fn select(&mut self, _: Time, slot: u32, _: &Outgoing) -> Decision {
        let stream = self.flows[slot as usize].as_mut();
        Decision::Send(stream.map_or(0, |stream| stream.below(self.values) as u32))
    }
}

parameters! {
    /// Of the others: none.
    pub struct NoParameters {}
}
impl SchemeCapabilities for NoParameters {}
impl ControlCapabilities for NoParameters {}

#[derive(Debug)]
pub struct Random(Hasher, Stream);

impl ExternalSwitch for Random {
    const INTERFACE: u32 = 1;
    const ABOUT: About = About::brief("random-copy", "a uniformly random next hop for every packet");
    type Parameters = NoParameters;
    fn new(_: NoParameters, seed: u64, switch: &SwitchInfo) -> Self {
        Random(Hasher::of(seed, switch), Stream::keyed(seed, switch.key, "random"))
    }
}

impl SwitchScheme for Random {
    fn forward<Q: LocalQueues>(
        &mut self,
        _: Time,
        packet: &PacketView,
        _: &mut SwitchHeader,
        candidates: &Candidates<'_>,
        _: &mut Q,
    ) -> u32 {
        match packet.control {
            true => ecmp(&self.0, packet, candidates.count),
            false => self.1.below(candidates.count.into()) as u32,
        }
    }
}

parameters! {
    /// Of `minimal-copy`: none.
    pub struct MinimalParameters {}
}
impl SchemeCapabilities for MinimalParameters {
    fn packet_scope(&self) -> PacketScope {
        PacketScope::Guided
    }
}

#[derive(Debug)]
pub struct Minimal;

impl ExternalSwitch for Minimal {
    const INTERFACE: u32 = 1;
    const ABOUT: About = About::brief("minimal-copy", "static minimal routing");
    type Parameters = MinimalParameters;
    fn new(_: MinimalParameters, _: u64, _: &SwitchInfo) -> Self {
        Minimal
    }
}

impl SwitchScheme for Minimal {
    fn guide<G: GuidedSwitch>(&mut self, _: Time, _: &PacketView, _: &mut SwitchHeader, at: &mut G) -> u32 {
        at.minimal(at.here())
    }
}

#[derive(Clone, Debug)]
pub struct Fixed(f64);

impl ExternalWindowRule for Fixed {
    const INTERFACE: u32 = 1;
    const ABOUT: About = About::brief("none-copy", "a fixed window");
}

impl WindowRule for Fixed {
    type Parameters = NoParameters;
    type Config = Sizes;
    fn config(_: &NoParameters, sizes: Sizes, _: &Network) -> Sizes {
        sizes
    }
    fn new(sizes: &Sizes, _: Time) -> Self {
        Fixed(sizes.max)
    }
    fn on_ack(&mut self, _: &Sizes, _: &CcAck) {}
    fn on_nack(&mut self, _: &Sizes, _: &CcLoss) {}
    fn on_timeout(&mut self, _: &Sizes, _: &CcLoss) {}
    fn cwnd(&self) -> f64 {
        self.0
    }
}

#[derive(Clone, Debug)]
pub struct LineRate;

impl ExternalPairControl for LineRate {
    const INTERFACE: u32 = 1;
    const ABOUT: About = About::brief("line-rate-copy", "line rate");
}

impl PairControl for LineRate {
    type Parameters = NoParameters;
    type Config = ();
    fn config(_: &NoParameters, _: Rate) {}
    fn new((): &(), _: &Start) -> Self {
        LineRate
    }
}
