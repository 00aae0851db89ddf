//! Switches of Dragonflies and Slim Flies: what guided schemes are asked with, lists of paths, snapshots of queues.

use crate::{
    packet::{Kind, Packet},
    partition::Partition,
    plan::{Plan, Tables},
    switch::scheme_index,
    wires::Wires,
};
use anabranch_lb::{
    GuidedPath, GuidedPaths, GuidedSwitch, Shape, SwitchScheme,
    registry::{SwitchParameters, TagKind},
};
use anabranch_settings::Auto;
use anabranch_topology::{Guidance, Guide, NodeId};
use anabranch_units::Time;
use rustc_hash::FxHashMap;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Snapshots that are kept: one is written while the one before it is read, and a partition may be an epoch behind.
const SLOTS: u64 = 4;

/// What guided schemes need beyond the links.
#[derive(Debug)]
pub(crate) struct Guided {
    pub(crate) guide: Guide,
    /// Per balancer: its switch scheme is guided.
    pub(crate) balancer: Vec<bool>,
    /// Per balancer: its host scheme is given lists of paths.
    pub(crate) lists: Vec<bool>,
    pub(crate) snapshots: Option<Snapshots>,
}

/// Queues of all ports at multiples of an interval, as an oracle (UGAL-G) reads them.
///
/// At a time in epoch k the snapshot of epoch k - 1 is read: as the interval is at least the lookahead, every partition
/// has taken it by then, so that the partitioning does not show.
#[derive(Debug)]
pub(crate) struct Snapshots {
    interval: u64,
    slots: Vec<Box<[AtomicU32]>>,
}

impl Snapshots {
    fn slot(&self, epoch: u64) -> &[AtomicU32] {
        &self.slots[(epoch % SLOTS) as usize]
    }

    fn read(&self, link: u32, now: u64) -> u64 {
        match (now / self.interval).checked_sub(1) {
            None => 0,
            Some(epoch) => u64::from(self.slot(epoch)[link as usize].load(Ordering::Relaxed)),
        }
    }
}

impl Guided {
    /// What the balancers of a plan need; `None` where none of them is guided.
    pub(crate) fn new(
        topology: &anabranch_topology::Topology,
        balancers: &[crate::Balancer],
    ) -> Result<Option<Self>, String> {
        let guided = |b: &crate::Balancer| b.switch.about().sees == anabranch_lb::registry::Sees::Guided;
        if !balancers.iter().any(guided) {
            return Ok(None);
        }
        let Some(guide) = topology.guide() else {
            let names: Vec<&str> = balancers.iter().filter(|b| guided(b)).map(|b| b.switch.name()).collect();
            return Err(format!("switch scheme {} needs a Dragonfly or a Slim Fly", names.join(", ")));
        };
        // No lookahead is longer than this, so that the same intervals do for any number of partitions.
        let between = topology.links.iter().filter(|l| l.from.0.min(l.to.0) >= topology.hosts);
        let longest = between.map(|l| l.delay + topology.switch_latency).max().unwrap_or_default();
        let longest = longest.max(Time::from_ps(1));
        let interval = balancers.iter().filter_map(|b| match &b.switch {
            SwitchParameters::Ugal(ugal) => ugal.snapshots(),
            _ => None,
        });
        let interval = interval.map(|interval| match interval {
            Auto::Auto => longest,
            Auto::Value(time) => time,
        });
        let interval = interval.min();
        if let Some(interval) = interval.filter(|interval| *interval < longest) {
            return Err(format!(
                "ugal.snapshot_interval is {interval}; expected at least the longest delay between switches ({longest}), or \
                 \"auto\""
            ));
        }
        let interval = interval.map(Time::ps);
        let slot = || (0..topology.links.len()).map(|_| AtomicU32::new(0)).collect();
        let snapshots = interval.map(|interval| Snapshots { interval, slots: (0..SLOTS).map(|_| slot()).collect() });
        let lists = |b: &crate::Balancer| matches!(b.host.about().tags, TagKind::Guided | TagKind::Category);
        Ok(Some(Guided {
            guide,
            balancer: balancers.iter().map(guided).collect(),
            lists: balancers.iter().map(lists).collect(),
            snapshots,
        }))
    }
}

/// Lists of paths from the switches of a partition, made when a pair is first used.
#[derive(Debug, Default)]
pub(crate) struct PathLists {
    all: FxHashMap<u64, Arc<GuidedPaths>>,
    /// Without the paths that are known to be dead, as far as there are any.
    live: FxHashMap<u64, Arc<GuidedPaths>>,
    /// Intervals in a row in which nothing waited; snapshots are taken while it is below [`SLOTS`].
    idle: u64,
    /// A snapshot is due.
    pub(crate) armed: bool,
}

impl PathLists {
    /// All paths between two switches.
    pub(crate) fn list(&mut self, plan: &Plan, guide: &Guide, from: u32, to: u32) -> &Arc<GuidedPaths> {
        let make = || Arc::new(GuidedPaths::new(paths(plan, guide, from, to).into_iter().map(|path| path.0)));
        self.all.entry(u64::from(from) << 32 | u64::from(to)).or_insert_with(make)
    }

    /// The paths that are not known to be dead; all, where every one is.
    #[inline]
    fn live(&mut self, plan: &Plan, guide: &Guide, from: u32, to: u32, tables: &Tables) -> &GuidedPaths {
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
fn paths(plan: &Plan, guide: &Guide, from: u32, to: u32) -> Vec<(GuidedPath, Vec<u32>)> {
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
    guide.paths(&plan.topology, node(from), node(to), plan.wire_mtu).iter().map(of).collect()
}

fn crosses(links: &[u32], dead: &[bool]) -> bool {
    links.iter().any(|&link| dead[link as usize])
}

/// Which paths of the list between two switches are known to be dead; empty: none is.
pub(crate) fn dead_paths(plan: &Plan, guide: &Guide, from: u32, to: u32, dead: &[bool]) -> Vec<bool> {
    let flags: Vec<bool> = paths(plan, guide, from, to).iter().map(|path| crosses(&path.1, dead)).collect();
    if flags.contains(&true) { flags } else { Vec::new() }
}

/// A switch with a packet at hand; `inside` is what it has besides its tables.
struct At<'a, I> {
    guided: &'a Guided,
    here: u32,
    to: u32,
    inside: I,
}

/// Queues and lists of a switch.
trait Inside {
    fn queue(&mut self, link: u32) -> u64;
    fn snapshot(&self, guided: &Guided, link: u32) -> u64;
    fn paths(&mut self, guided: &Guided, here: u32, to: u32) -> &GuidedPaths;
}

struct Live<'a> {
    plan: &'a Plan,
    wires: &'a mut Wires,
    lists: &'a mut PathLists,
    tables: &'a Tables,
    now: u64,
}

impl Inside for Live<'_> {
    fn queue(&mut self, link: u32) -> u64 {
        self.wires.backlog(self.plan, link, self.now)
    }
    fn snapshot(&self, guided: &Guided, link: u32) -> u64 {
        guided.snapshots.as_ref().map_or(0, |snapshots| snapshots.read(link, self.now))
    }
    fn paths(&mut self, guided: &Guided, here: u32, to: u32) -> &GuidedPaths {
        self.lists.live(self.plan, &guided.guide, here, to, self.tables)
    }
}

/// Nothing: tables alone.
struct Nothing;

static NO_PATHS: GuidedPaths = GuidedPaths::EMPTY;

impl Inside for Nothing {
    fn queue(&mut self, _: u32) -> u64 {
        0
    }
    fn snapshot(&self, _: &Guided, _: u32) -> u64 {
        0
    }
    fn paths(&mut self, _: &Guided, _: u32, _: u32) -> &GuidedPaths {
        &NO_PATHS
    }
}

impl<I: Inside> GuidedSwitch for At<'_, I> {
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
        self.inside.queue(link)
    }
    fn snapshot(&self, switch: u32, port: u32) -> u64 {
        let link = self.guided.guide.link_at(switch, port).0;
        self.inside.snapshot(self.guided, link)
    }
    fn paths(&mut self) -> &GuidedPaths {
        self.inside.paths(self.guided, self.here, self.to)
    }
}

impl Partition<'_> {
    /// The link that a packet of a guided scheme will take, where that can be told beforehand.
    #[inline]
    pub(crate) fn foresee_guided(&self, guided: &Guided, switch: u32, to: u32, packet: &Packet) -> Option<u32> {
        let at = At { guided, here: switch, to, inside: Nothing };
        let port = match packet.kind {
            Kind::Data => {
                let view = packet.view(self.plan);
                self.switches.known(switch, packet.balancer)?.foresee_guide(&view, &packet.head, &at)?
            }
            _ => guided.guide.default_port_of(switch, to),
        };
        Some(guided.guide.link_at(switch, port).0)
    }

    /// The link that a packet of a guided scheme takes at `switch` towards the switch `to`.
    #[inline]
    pub(crate) fn guided_hop(&mut self, guided: &Guided, switch: u32, to: u32, id: u32, now: u64) -> Option<u32> {
        let plan = self.plan;
        let packet = &self.wires.packets[id];
        let default = || guided.guide.default_port_of(switch, to);
        let port = if matches!(packet.kind, Kind::Data | Kind::Header | Kind::Probe) {
            let (view, mut header, balancer) = (packet.view(plan), packet.head, packet.balancer);
            let inside = Live { plan, wires: &mut self.wires, lists: &mut self.lists, tables: self.tables, now };
            let mut at = At { guided, here: switch, to, inside };
            let scheme = self.switches.scheme(scheme_index(plan, switch, balancer));
            let port = scheme.guide(Time::from_ps(now), &view, &mut header, &mut at);
            self.wires.packets[id].head = header;
            port
        } else {
            default()
        };
        let link = guided.guide.link_at(switch, port).0;
        if self.tables.any_dead && port == default() && guided.guide.default_is_dead(switch, to, &self.tables.dead) {
            // A default path that is known to be dead gives way to the shortest that lives.
            return self.tables.routes.towards(switch, to).links.first().map(|link| link.0);
        }
        if self.switches.uplink_counts.is_some() {
            self.count_uplink(id, link);
        }
        Some(link)
    }

    /// Something happens: snapshots go on where they had stopped.
    #[inline]
    pub(crate) fn keep_snapshots(&mut self, now: u64) {
        if let Some(snapshots) = self.plan.guided.as_ref().and_then(|guided| guided.snapshots.as_ref())
            && !self.lists.armed
        {
            self.lists.armed = true;
            self.lists.idle = 0;
            self.plan_snapshot(now.div_ceil(snapshots.interval) * snapshots.interval);
        }
    }

    /// Notes what waits at every port of this partition.
    pub(crate) fn snapshot(&mut self, now: u64) {
        let plan = self.plan;
        let Some(snapshots) = plan.guided.as_ref().and_then(|guided| guided.snapshots.as_ref()) else { return };
        let slot = snapshots.slot(now / snapshots.interval);
        let mut nothing = true;
        for &link in &self.switch_links {
            let waiting = self.wires.backlog(plan, link, now).min(u64::from(u32::MAX)) as u32;
            nothing &= waiting == 0;
            slot[link as usize].store(waiting, Ordering::Relaxed);
        }
        self.lists.idle = if nothing { self.lists.idle + 1 } else { 0 };
        // When nothing is pending and every slot says so, the next event starts them again.
        if self.lists.idle >= SLOTS && self.wires.wheel.len() <= usize::from(!self.samples.is_empty()) {
            self.lists.armed = false;
        } else {
            self.plan_snapshot(now + snapshots.interval);
        }
    }
}
