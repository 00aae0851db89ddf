//! Lists of guided paths, and the paths that are dead.

use crate::plan::{Plan, Tables};
use anabranch_lb::{GuidedPath, GuidedPaths};
use anabranch_topology::{Guide, NodeId};
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
pub(crate) fn dead_paths(plan: &Plan<'_>, tables: &Tables, balancer: u8, src: u32, dst: u32) -> Vec<bool> {
    let is_reported =
        tables.any_dead && plan.balancers[usize::from(balancer)].switch.capabilities().reports_dead_paths();
    let known = match (is_reported, &tables.denied[..]) {
        (false, []) => return Vec::new(),
        (true, []) => Cow::Borrowed(&tables.dead),
        (false, _) => Cow::Borrowed(&tables.denied),
        (true, denied) => Cow::Owned(tables.dead.iter().zip(denied).map(|(dead, denied)| *dead || *denied).collect()),
    };
    let (from, to) = (plan.leaf[src as usize], plan.leaf[dst as usize]);
    let Some(guided) = plan.guided.as_ref().filter(|guided| guided.lists[usize::from(balancer)]) else {
        return plan.topology.dead_paths(NodeId(plan.hosts + from), NodeId(plan.hosts + to), &known);
    };
    let paths = paths(plan, &guided.guide, from, to);
    let flags: Vec<bool> = paths.iter().map(|path| crosses(&path.1, &known)).collect();
    if flags.contains(&true) { flags } else { Vec::new() }
}
