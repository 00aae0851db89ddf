//! Switches: look the destination up, let the scheme choose among equal paths, queue.

use crate::{
    packet::Kind,
    partition::Partition,
    plan::Plan,
    wires::{Wires, tally_of},
};
use anabranch_lb::{
    Candidates, LocalQueues, PacketView, SchemeCounters, SwitchInfo, SwitchScheme,
    registry::{Switch, TagKind},
};
use anabranch_topology::{LinkId, NodeId, NodeKind, Routes};
use anabranch_units::{Rate, Time};
use std::collections::BTreeMap;

/// The schemes of a partition's switches.
#[derive(Debug)]
pub(crate) struct Switches {
    balancers: usize,
    /// Per switch and load balancer; `None` for switches of other partitions.
    schemes: Vec<Option<Switch>>,
    uplinks: Vec<u32>,
    /// Packets that had no way to go.
    pub(crate) no_route: u64,
    /// Data packets per (flow, link) that leaves a switch by choice, where asked for.
    pub(crate) uplink_counts: Option<BTreeMap<(u32, u32), u64>>,
}

/// Where the scheme of a switch and a load balancer stands.
#[inline]
pub(crate) fn scheme_index(plan: &Plan, switch: u32, balancer: u8) -> usize {
    switch as usize * plan.balancers.len() + balancer as usize
}

impl Switches {
    /// A scheme of this partition.
    #[inline]
    pub(crate) fn scheme(&mut self, index: usize) -> &mut Switch {
        self.schemes[index].as_mut().expect("a switch of this partition")
    }

    /// What the schemes have counted.
    pub(crate) fn counters(&self) -> SchemeCounters {
        self.schemes.iter().flatten().fold(SchemeCounters::default(), |mut sum, scheme| {
            sum += scheme.counters();
            sum
        })
    }

    pub(crate) fn new(plan: &Plan, me: u16) -> Self {
        let balancers = plan.balancers.len();
        let mut schemes = Vec::new();
        let mut uplinks = Vec::new();
        for switch in 0..plan.topology.switches() {
            let node = NodeId(plan.hosts + switch);
            let mut info = info(plan, node);
            uplinks.push(info.part_size);
            for balancer in &plan.balancers {
                let mine = plan.owner[node.0 as usize] == me;
                info.tags = balancer.host.about().tags;
                schemes.push(mine.then(|| balancer.switch.build(plan.seed, &info)));
            }
        }
        let uplink_counts = plan.measure.uplink_counts.then(BTreeMap::new);
        Switches { balancers, schemes, uplinks, no_route: 0, uplink_counts }
    }

    /// Uplinks of a switch when nothing has failed.
    #[inline]
    pub(crate) fn uplinks(&self, switch: u32) -> u32 {
        self.uplinks[switch as usize]
    }

    /// The scheme of a switch, if it is of this partition.
    #[inline]
    pub(crate) fn known(&self, switch: u32, balancer: u8) -> Option<&Switch> {
        self.schemes.get(switch as usize * self.balancers + balancer as usize)?.as_ref()
    }

    /// The candidate that a packet will take, where the scheme can tell beforehand.
    #[inline]
    pub(crate) fn foresee(
        &self,
        switch: u32,
        balancer: u8,
        packet: &PacketView,
        candidates: &Candidates<'_>,
    ) -> Option<u32> {
        self.known(switch, balancer)?.foresee(packet, candidates)
    }

    pub(crate) fn routes_changed(&mut self, routes: &Routes, plan: &Plan) {
        for (index, scheme) in self.schemes.iter_mut().enumerate() {
            let node = NodeId(plan.hosts + (index / self.balancers) as u32);
            if let Some(scheme) = scheme {
                scheme.on_routes_changed(routes.groups_at(node));
            }
        }
    }
}

fn info(plan: &Plan, node: NodeId) -> SwitchInfo {
    let NodeKind::Switch { tier } = plan.topology.node(node).kind else { unreachable!("a switch") };
    let bits = |uplinks: u32| u32::BITS - uplinks.saturating_sub(1).leading_zeros();
    let below = plan.topology.uplinks.iter().take(tier as usize);
    let routes = &plan.tables[0].routes;
    SwitchInfo {
        key: plan.topology.key(node),
        tier,
        groups: plan.tables.iter().map(|t| t.routes.groups_at(node)).max().unwrap_or(0),
        widest: routes.widest(node),
        part_shift: below.map(|&u| bits(u)).sum(),
        part_size: plan.topology.uplinks.get(tier as usize).copied().unwrap_or(0),
        number: node.0 - plan.hosts,
        switches: plan.topology.switches(),
        ports: plan.topology.out_links(node).len() as u32,
        uplinks: plan.topology.uplinks.clone(),
        reference: plan.reference().then_some(node.0),
        hop_delay: plan.hop_delay(),
        queue_limit: u64::from(plan.fabric.queue_limit),
        lossless: plan.fabric.pfc,
        tags: TagKind::Entropy,
    }
}

/// The candidates' queues as a scheme may read them.
struct Queues<'a> {
    wires: &'a mut Wires,
    plan: &'a Plan,
    links: &'a [LinkId],
    now: u64,
}

impl LocalQueues for Queues<'_> {
    #[inline]
    fn bytes(&mut self, index: u32) -> u64 {
        self.wires.backlog(self.plan, self.links[index as usize].0, self.now)
    }
    fn rate(&mut self, index: u32) -> Rate {
        self.plan.links[self.links[index as usize].0 as usize].rate
    }
}

impl Partition<'_> {
    /// A packet that came by `ingress` has passed the switch's latency and goes to an output port.
    #[inline]
    pub(crate) fn switch_arrival(&mut self, switch: u32, id: u32, ingress: u32, now: u64) {
        let plan = self.plan;
        let packet = &self.wires.packets[id];
        let (dst, balancer) = (packet.dst, packet.balancer);
        let every_hop = plan.every_hop[balancer as usize] && packet.kind == Kind::Data;
        let edge = plan.edge[dst as usize];
        let link = if edge == switch {
            if packet.kind == Kind::SwitchControl {
                return self.switch_control(switch, id, now);
            }
            if every_hop && !self.deliver(switch, id, ingress, now) {
                return;
            }
            plan.host_down[dst as usize]
        } else if let Some(guided) = plan.guided.as_ref().filter(|guided| guided.balancer[balancer as usize]) {
            match self.guided_hop(guided, switch, edge, id, now) {
                Some(link) => link,
                None => return self.no_route(id),
            }
        } else {
            let hops = self.tables.routes.towards(switch, edge);
            match hops.links {
                [] => return self.no_route(id),
                [only] if !every_hop => only.0,
                several => {
                    let view = packet.view(plan);
                    let mut header = packet.head;
                    let candidates = Candidates {
                        count: several.len() as u32,
                        group: hops.group,
                        position: hops.positions,
                        port: hops.ports,
                        uplinks: self.switches.uplinks(switch),
                    };
                    let scheme = self.switches.scheme(scheme_index(plan, switch, balancer));
                    let mut queues = Queues { wires: &mut self.wires, plan, links: several, now };
                    let index = scheme.forward(Time::from_ps(now), &view, &mut header, &candidates, &mut queues);
                    self.wires.packets[id].head = header;
                    let link = several[index as usize].0;
                    if self.switches.uplink_counts.is_some() {
                        self.count_uplink(id, link);
                    }
                    link
                }
            }
        };
        self.wires.enqueue(plan, link, id, now, ingress);
    }

    #[cold]
    pub(crate) fn count_uplink(&mut self, id: u32, link: u32) {
        let packet = &self.wires.packets[id];
        if let Some(counts) = &mut self.switches.uplink_counts
            && packet.kind == Kind::Data
        {
            *counts.entry((packet.flow, link)).or_insert(0) += 1;
        }
    }

    #[cold]
    fn no_route(&mut self, id: u32) {
        let packet = &self.wires.packets[id];
        self.switches.no_route += 1;
        self.wires.totals.dropped[tally_of(packet.kind)].add(packet);
        self.wires.packets.remove(id);
    }
}
