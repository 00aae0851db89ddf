//! Guided schemes on Dragonflies and Slim Flies.

use anabranch_backend::{LoadBalancer, ReplyPaths};
use anabranch_lb::registry::{PacketScope, TagKind};
use anabranch_settings::Auto;
use anabranch_topology::{Guide, Topology};
use anabranch_units::Time;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Guided {
    pub(crate) guide: Arc<Guide>,
    /// Per balancer: its host scheme receives lists of paths.
    pub(crate) lists: Vec<bool>,
    /// Replies are routed as data.
    pub(crate) guides_replies: bool,
    /// Picoseconds between two snapshots of all queues, where a scheme reads any.
    pub(crate) snapshot_interval: Option<u64>,
}

impl Guided {
    /// Prepares the state that the balancers of a plan need; `None` where none of them is guided.
    pub(crate) fn new(
        topology: &Topology,
        balancers: &[LoadBalancer],
        reply_paths: ReplyPaths,
    ) -> Result<Option<Self>, String> {
        let guided = |b: &&LoadBalancer| b.switch.capabilities().packet_scope() == PacketScope::Guided;
        if !balancers.iter().any(|b| guided(&b)) {
            return Ok(None);
        }
        let Some(guide) = topology.guide() else {
            let names: Vec<&str> = balancers.iter().filter(guided).map(|b| b.switch.name()).collect();
            return Err(format!("switch scheme {} needs a Dragonfly or a Slim Fly", names.join(", ")));
        };
        let lists = |b: &LoadBalancer| matches!(b.host.capabilities().tags(), TagKind::Guided | TagKind::Category);
        Ok(Some(Guided {
            guide,
            lists: balancers.iter().map(lists).collect(),
            guides_replies: reply_paths == ReplyPaths::Scheme,
            snapshot_interval: snapshot_interval(topology, balancers)?,
        }))
    }
}

/// Returns the shortest interval that the schemes request, in picoseconds; `None`: none reads snapshots.
fn snapshot_interval(topology: &Topology, balancers: &[LoadBalancer]) -> Result<Option<u64>, String> {
    let between = topology.links.iter().filter(|l| l.from.0.min(l.to.0) >= topology.hosts);
    let longest = between.map(|l| l.delay + topology.switch_latency).max().unwrap_or_default();
    let longest = longest.max(Time::from_ps(1));
    let interval = balancers.iter().filter_map(|b| Some((b.switch.name(), b.switch.capabilities().snapshots()?)));
    let interval = interval.map(|(name, interval)| match interval {
        Auto::Auto => (longest, name),
        Auto::Value(time) => (time, name),
    });
    let Some((interval, name)) = interval.min() else { return Ok(None) };
    if interval < longest {
        return Err(format!(
            "{name}.snapshot_interval is {interval}; expected at least the longest delay between switches ({longest}), or \
             \"auto\""
        ));
    }
    Ok(Some(interval.ps()))
}
