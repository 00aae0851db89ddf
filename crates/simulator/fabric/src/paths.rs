//! Lists of guided paths, and the paths that are dead.

use crate::plan::{Plan, Tables};
use anabranch_lb::{GuidedPath, GuidedPaths};
use anabranch_topology::{Guide, LinkId, NodeId};
use anabranch_units::Rate;
use rustc_hash::FxHashMap;
use std::{borrow::Cow, sync::Arc};

/// Path lists from the switches of a partition, created on first use.
#[derive(Debug, Default)]
pub(crate) struct PathLists {
    all: FxHashMap<u64, Arc<GuidedPaths>>,
    /// Lists without known dead paths.
    live: FxHashMap<u64, Arc<GuidedPaths>>,
}

impl PathLists {
    pub(crate) fn list(&mut self, plan: &Plan<'_>, guide: &Guide, from: u32, to: u32) -> &Arc<GuidedPaths> {
        let make = || Arc::new(GuidedPaths::new(paths(plan, guide, from, to).into_iter().map(|path| path.0)));
        self.all.entry(u64::from(from) << 32 | u64::from(to)).or_insert_with(make)
    }

    /// Returns the paths not known to be dead, or all if every one is.
    #[inline]
    pub(crate) fn live(&mut self, plan: &Plan<'_>, guide: &Guide, from: u32, to: u32, tables: &Tables) -> &GuidedPaths {
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

    pub(crate) fn forget_live(&mut self) {
        self.live.clear();
    }
}

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

/// Returns per path from `src` to `dst` whether it is known to be dead; empty: none is. Paths are numbered by entropy
/// value, or by index in the list of guided paths.
///
/// `down` are the ports that are known to be down at sender or receiver, one bit per plane.
pub(crate) fn dead_paths(plan: &Plan<'_>, tables: &Tables, balancer: u8, src: u32, dst: u32, down: u32) -> Vec<bool> {
    let reports = plan.balancers[usize::from(balancer)].switch.capabilities().reports_dead_paths();
    let down = if reports { down } else { 0 } | denied_ports(plan, tables, src, dst);
    let known = match (reports && tables.any_dead, &tables.denied[..]) {
        (false, []) if down == 0 => return Vec::new(),
        (_, []) => Cow::Borrowed(&tables.dead),
        (false, _) => Cow::Borrowed(&tables.denied),
        (true, denied) => Cow::Owned(tables.dead.iter().zip(denied).map(|(dead, denied)| *dead || *denied).collect()),
    };
    let (from, to) = (plan.leaf[src as usize], plan.leaf[dst as usize]);
    let Some(guided) = plan.guided.as_ref().filter(|guided| guided.lists[usize::from(balancer)]) else {
        return dead_in_planes(plan, &known, balancer, (src, dst), down);
    };
    let paths = paths(plan, &guided.guide, from, to);
    let flags: Vec<bool> = paths.iter().map(|path| crosses(&path.1, &known)).collect();
    if flags.contains(&true) { flags } else { Vec::new() }
}

/// Returns the rates of the paths from `src` to `dst`, numbered as by [`dead_paths`], whose result is `dead`; empty: unknown, there is
/// no choice, or the scheme does not read them.
pub(crate) fn path_rates(
    plan: &Plan<'_>,
    tables: &Tables,
    balancer: u8,
    (src, dst): (u32, u32),
    dead: &[bool],
) -> Vec<Rate> {
    if tables.rates.is_empty() || !plan.balancers[usize::from(balancer)].host.capabilities().reads_path_rates() {
        return Vec::new();
    }
    let of_link = |link: LinkId| if tables.dead[link.0 as usize] { Rate(0) } else { tables.rates[link.0 as usize] };
    let guided = plan.guided.as_ref().filter(|guided| guided.lists[usize::from(balancer)]);
    let mut rates: Vec<Rate> = if let Some(guided) = guided {
        let slowest = |links: &[u32]| links.iter().map(|link| of_link(LinkId(*link))).min().unwrap_or_default();
        let (from, to) = (plan.leaf[src as usize], plan.leaf[dst as usize]);
        paths(plan, &guided.guide, from, to).iter().map(|path| slowest(&path.1)).collect()
    } else {
        let of_plane = |plane: u32| {
            let [from, to] = [src, dst].map(|host| plan.topology.edge_switch_in(host, plane));
            plan.topology.path_rates(from, to, &of_link)
        };
        let planes: Vec<Vec<Rate>> = (0..plan.planes).map(of_plane).collect();
        let of_path = |path: usize| planes.iter().map(move |plane| plane[path]);
        match plan.nic_ports[usize::from(balancer)].named_planes() {
            1 => (0..planes[0].len()).filter_map(|path| of_path(path).max()).collect(),
            _ => (0..planes[0].len()).flat_map(of_path).collect(),
        }
    };
    rates.iter_mut().zip(dead).filter(|(_, dead)| **dead).for_each(|(rate, _)| *rate = Rate(0));
    rates
}

/// Returns the planes whose port of `src` or `dst` is denied, one bit each.
fn denied_ports(plan: &Plan<'_>, tables: &Tables, src: u32, dst: u32) -> u32 {
    if plan.planes == 1 || tables.denied.is_empty() {
        return 0;
    }
    let is_denied = |plane: u32| {
        let [up, down] = [src, dst].map(|host| plan.topology.host_uplink_in(host, plane));
        [up, down.reverse()].iter().any(|link| tables.denied[link.0 as usize])
    };
    (0..plan.planes).filter(|plane| is_denied(*plane)).fold(0, |ports, plane| ports | 1 << plane)
}

/// Returns the dead paths of a tree. Values that name planes have them as part 0; of others, a path is dead that is so in
/// every plane.
fn dead_in_planes(plan: &Plan<'_>, dead: &[bool], balancer: u8, (src, dst): (u32, u32), down: u32) -> Vec<bool> {
    let of_plane = |plane: u32| {
        let [from, to] = [src, dst].map(|host| plan.topology.edge_switch_in(host, plane));
        plan.topology.dead_paths(from, to, dead)
    };
    if plan.planes == 1 {
        return of_plane(0);
    }
    let planes: Vec<Vec<bool>> = (0..plan.planes).map(of_plane).collect();
    let paths = planes[0].len().max(1);
    let is_dead = |plane: usize, path: usize| down >> plane & 1 == 1 || planes[plane].get(path) == Some(&true);
    let planes = 0..planes.len();
    match plan.nic_ports[usize::from(balancer)].named_planes() {
        1 => (0..paths).map(|path| planes.clone().all(|plane| is_dead(plane, path))).collect(),
        _ => (0..paths)
            .flat_map(|path| planes.clone().map(move |plane| (plane, path)))
            .map(|(p, path)| is_dead(p, path))
            .collect(),
    }
}
