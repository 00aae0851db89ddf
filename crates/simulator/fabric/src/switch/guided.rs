//! Switches of Dragonflies and Slim Flies: what guided schemes are asked with, and lists of paths.

use super::{Snapshots, Switches};
use crate::{
    ids::{PacketId, SwitchId},
    packet::Kind,
    partition::Partition,
    plan::{Plan, Tables},
    port::Ports,
};
use anabranch_backend::LoadBalancer;
use anabranch_lb::{
    GuidedPath, GuidedPaths, GuidedSwitch, Shape, SwitchScheme,
    registry::{Sees, TagKind},
};
use anabranch_topology::{Guidance, Guide, NodeId, Topology};
use anabranch_units::Time;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What guided schemes need beyond the links.
#[derive(Debug)]
pub(crate) struct Guided {
    pub(crate) guide: Arc<Guide>,
    /// Per balancer: its host scheme is given lists of paths.
    pub(crate) lists: Vec<bool>,
    pub(crate) snapshots: Option<Snapshots>,
}

impl Guided {
    /// What the balancers of a plan need; `None` where none of them is guided.
    pub(crate) fn new(topology: &Topology, balancers: &[LoadBalancer]) -> Result<Option<Self>, String> {
        let guided = |b: &&LoadBalancer| b.switch.capabilities().sees() == Sees::Guided;
        if !balancers.iter().any(|b| guided(&b)) {
            return Ok(None);
        }
        let Some(guide) = topology.guide() else {
            let names: Vec<&str> = balancers.iter().filter(guided).map(|b| b.switch.name()).collect();
            return Err(format!("switch scheme {} needs a Dragonfly or a Slim Fly", names.join(", ")));
        };
        let lists = |b: &LoadBalancer| matches!(b.host.capabilities().tags(), TagKind::Guided | TagKind::Category);
        let snapshots = Snapshots::new(topology, balancers)?;
        Ok(Some(Guided { guide, lists: balancers.iter().map(lists).collect(), snapshots }))
    }
}

/// Lists of paths from the switches of a partition, made when a pair is first used.
#[derive(Debug, Default)]
pub(crate) struct PathLists {
    all: FxHashMap<u64, Arc<GuidedPaths>>,
    /// Without the paths that are known to be dead, as far as there are any.
    live: FxHashMap<u64, Arc<GuidedPaths>>,
}

impl PathLists {
    /// All paths between two switches.
    pub(crate) fn list(&mut self, plan: &Plan<'_>, guide: &Guide, from: u32, to: u32) -> &Arc<GuidedPaths> {
        let make = || Arc::new(GuidedPaths::new(paths(plan, guide, from, to).into_iter().map(|path| path.0)));
        self.all.entry(u64::from(from) << 32 | u64::from(to)).or_insert_with(make)
    }

    /// The paths that are not known to be dead; all, where every one is.
    #[inline]
    fn live(&mut self, plan: &Plan<'_>, guide: &Guide, from: u32, to: u32, tables: &Tables) -> &GuidedPaths {
        if !tables.any_dead {
            return self.list(plan, guide, from, to);
        }
        let dead = &tables.dead;
        let key = u64::from(from) << 32 | u64::from(to);
        if !self.live.contains_key(&key) {
            let alive = paths(plan, guide, from, to).into_iter().filter(|path| !crosses(&path.1, dead));
            let alive = GuidedPaths::new(alive.map(|path| path.0));
            let list = if alive.is_empty() { Arc::clone(self.list(plan, guide, from, to)) } else { Arc::new(alive) };
            self.live.insert(key, list);
        }
        &self.live[&key]
    }

    /// The tables changed.
    pub(crate) fn forget_live(&mut self) {
        self.live.clear();
    }
}

/// The paths between two switches, with their links.
fn paths(plan: &Plan<'_>, guide: &Guide, from: u32, to: u32) -> Vec<(GuidedPath, Vec<u32>)> {
    let node = |switch: u32| NodeId(plan.hosts + switch);
    let guidance = guide.guidance();
    let of = |path: &anabranch_topology::GuidedPath| {
        let entry = GuidedPath {
            ev: path.ev[0] << 8 | path.ev[1] & 0xff,
            kind: guidance.category(path.kind).unwrap_or(0),
            minimal: path.minimal,
            latency: path.latency,
            propagation: path.propagation,
            hops: path.links().len() as u8,
        };
        (entry, path.links().iter().map(|link| link.0).collect())
    };
    guide.paths(plan.topology, node(from), node(to), plan.wire_mtu).iter().map(of).collect()
}

fn crosses(links: &[u32], dead: &[bool]) -> bool {
    links.iter().any(|&link| dead[link as usize])
}

impl Plan<'_> {
    /// Which paths from `src` to `dst` are known to be dead, as entropy values name them, or by their place in the list of
    /// guided paths; empty: none.
    pub(crate) fn dead_paths(&self, tables: &Tables, balancer: u8, src: u32, dst: u32) -> Vec<bool> {
        if !tables.any_dead || !self.balancers[usize::from(balancer)].switch.capabilities().tells_dead_paths() {
            return Vec::new();
        }
        let (from, to) = (self.leaf[src as usize], self.leaf[dst as usize]);
        let Some(guided) = self.guided.as_ref().filter(|guided| guided.lists[usize::from(balancer)]) else {
            return self.topology.dead_paths(NodeId(self.hosts + from), NodeId(self.hosts + to), &tables.dead);
        };
        let paths = paths(self, &guided.guide, from, to);
        let flags: Vec<bool> = paths.iter().map(|path| crosses(&path.1, &tables.dead)).collect();
        if flags.contains(&true) { flags } else { Vec::new() }
    }
}

/// A switch with a packet at hand.
struct At<'s, 'p> {
    guided: &'s Guided,
    here: u32,
    to: u32,
    plan: &'p Plan<'p>,
    ports: &'s mut Ports<'p>,
    lists: &'s mut PathLists,
    tables: &'s Tables,
    now: u64,
}

impl GuidedSwitch for At<'_, '_> {
    #[inline]
    fn shape(&self) -> Shape {
        match self.guided.guide.guidance() {
            Guidance::Dragonfly => Shape::Dragonfly,
            Guidance::SlimFly => Shape::SlimFly,
        }
    }
    #[inline]
    fn here(&self) -> u32 {
        self.here
    }
    #[inline]
    fn destination(&self) -> u32 {
        self.to
    }
    #[inline]
    fn ports(&self, switch: u32) -> u32 {
        self.guided.guide.port_count(switch)
    }
    #[inline]
    fn peer(&self, switch: u32, port: u32) -> u32 {
        self.guided.guide.peer(switch, port)
    }
    #[inline]
    fn is_local(&self, switch: u32, port: u32) -> bool {
        self.guided.guide.is_local(switch, port)
    }
    #[inline]
    fn group(&self, switch: u32) -> u32 {
        self.guided.guide.group_of(switch)
    }
    #[inline]
    fn minimal(&self, switch: u32) -> u32 {
        self.guided.guide.default_port_of(switch, self.to)
    }
    #[inline]
    fn named(&self, hop: u8, over_local: bool, ev: u16) -> u32 {
        self.guided.guide.next_port(self.here, hop, over_local, [ev >> 8, ev & 0xff], self.to)
    }
    fn queue(&mut self, port: u32) -> u64 {
        let link = self.guided.guide.link_at(self.here, port).0;
        self.ports.backlog(self.plan.port_of(link), self.now)
    }
    fn snapshot(&self, switch: u32, port: u32) -> u64 {
        let link = self.guided.guide.link_at(switch, port).0;
        self.guided.snapshots.as_ref().map_or(0, |snapshots| snapshots.read(link, self.now))
    }
    fn paths(&mut self) -> &GuidedPaths {
        self.lists.live(self.plan, &self.guided.guide, self.here, self.to, self.tables)
    }
}

impl Partition<'_> {
    /// The link that a packet of a guided scheme takes at `switch` towards the switch `to`.
    #[inline]
    pub(super) fn guided_hop(
        &mut self,
        guided: &Guided,
        switch: SwitchId,
        to: u32,
        id: PacketId,
        now: u64,
    ) -> Option<u32> {
        let plan = self.plan;
        let packet = &self.ports.packets[id];
        let default = || guided.guide.default_port_of(switch.0, to);
        let port = if matches!(packet.kind, Kind::Data | Kind::Header | Kind::Probe) {
            let (view, mut header, balancer) = (plan.view(packet), packet.head, packet.balancer);
            let Switches { schemes, lists, .. } = &mut self.switches;
            let mut at =
                At { guided, here: switch.0, to, plan, ports: &mut self.ports, lists, tables: self.tables, now };
            let scheme = schemes.of(switch, balancer);
            let port = scheme.guide(Time::from_ps(now), &view, &mut header, &mut at);
            self.ports.packets[id].head = header;
            port
        } else {
            default()
        };
        let link = guided.guide.link_at(switch.0, port).0;
        if self.tables.any_dead && port == default() && guided.guide.default_is_dead(switch.0, to, &self.tables.dead) {
            // A default path that is known to be dead gives way to the shortest that lives.
            return self.routes.towards(switch.0, to).links.first().map(|link| link.0);
        }
        self.count_uplink(id, link);
        Some(link)
    }
}
