//! Switches: route lookup, choice among equal paths by the scheme, and hand-over to a port.

mod effects;
mod guided;

use crate::{
    context::Ctx,
    ids::{PacketId, SwitchId},
    packet::{Kind, MARKED, Packet},
    plan::Plan,
};
use anabranch_lb::{
    Candidates, LocalQueues, PacketView, Record, SchemeCounters, SwitchInfo, SwitchScheme,
    registry::{PacketScope, Switch, TagKind},
};
use anabranch_topology::{LinkId, NodeId, NodeKind};
use anabranch_units::{Rate, Time};
use effects::Reordering;
use std::collections::BTreeMap;

/// The schemes of a partition's switches, per switch and load balancer; `None` for switches of other partitions.
#[derive(Debug)]
struct Schemes {
    balancers: usize,
    schemes: Vec<Option<Switch>>,
}

impl Schemes {
    #[inline]
    fn get(&self, switch: SwitchId, balancer: u8) -> &Switch {
        self.schemes[switch.at() * self.balancers + usize::from(balancer)].as_ref().expect("a switch of this partition")
    }

    #[inline]
    fn of(&mut self, switch: SwitchId, balancer: u8) -> &mut Switch {
        self.schemes[switch.at() * self.balancers + usize::from(balancer)].as_mut().expect("a switch of this partition")
    }
}

#[derive(Debug)]
pub(crate) struct Switches {
    schemes: Schemes,
    /// Per switch: its uplinks when nothing has failed.
    uplinks: Vec<u32>,
    reordering: Reordering,
    /// Data packets per flow and link of which a switch had a choice, where requested.
    pub(crate) uplink_counts: Option<BTreeMap<(u32, u32), u64>>,
}

impl Switches {
    pub(crate) fn new(plan: &Plan<'_>, me: u16, record: Option<&Record>) -> Self {
        let balancers = plan.balancers.len();
        let mut schemes = Vec::new();
        let mut uplinks = Vec::new();
        for switch in 0..plan.topology.switches() {
            let node = NodeId(plan.hosts + switch);
            let mut info = info(plan, node);
            uplinks.push(info.own_uplinks());
            let shift = info.part_shift;
            for (number, balancer) in plan.balancers.iter().enumerate() {
                let mine = plan.cells.owner_of(node) == me;
                info.tags = balancer.host.capabilities().tags();
                info.part_shift = shift + plan.nic_ports[number].plane_bits();
                let build = || {
                    let scheme = balancer.switch.build(plan.seed, &info);
                    match record.filter(|_| !balancer.switch.state().is_empty()) {
                        Some(record) => record.wrap_switch(scheme, balancer.switch.name()),
                        None => scheme,
                    }
                };
                schemes.push(mine.then(build));
            }
        }
        Switches {
            schemes: Schemes { balancers, schemes },
            uplinks,
            reordering: Reordering::default(),
            uplink_counts: plan.measure.uplink_counts.then(BTreeMap::new),
        }
    }

    pub(crate) fn counters(&self, balancer: usize) -> SchemeCounters {
        let mut sum = SchemeCounters::default();
        let own = self.schemes.schemes.iter().skip(balancer).step_by(self.schemes.balancers.max(1));
        own.flatten().for_each(|scheme| sum += scheme.counters());
        sum
    }

    pub(crate) fn on_tables_changed(&mut self, cx: &Ctx<'_>) {
        for (index, scheme) in self.schemes.schemes.iter_mut().enumerate() {
            let node = NodeId(cx.plan.hosts + (index / self.schemes.balancers) as u32);
            if let Some(scheme) = scheme {
                scheme.on_routes_changed(cx.routes.groups_at(node));
            }
        }
    }
}

/// Properties of a switch, for schemes without a kind of tags of their own.
pub(crate) fn info(plan: &Plan<'_>, node: NodeId) -> SwitchInfo {
    let NodeKind::Switch { tier } = plan.topology.node(node).kind else { unreachable!("a switch") };
    let bits = |uplinks: u32| u32::BITS - uplinks.saturating_sub(1).leading_zeros();
    let uplinks = &plan.topology.uplinks;
    let part = usize::from(tier).min(uplinks.len().saturating_sub(1));
    let routes = &plan.tables[0].routes;
    SwitchInfo {
        key: plan.topology.key(node),
        tier,
        groups: plan.tables.iter().map(|t| t.routes.groups_at(node)).max().unwrap_or(0),
        widest: routes.widest(node),
        part_shift: uplinks.iter().take(part).map(|&u| bits(u)).sum(),
        part_size: uplinks.get(part).copied().unwrap_or(0),
        number: (node.0 - plan.hosts) % plan.topology.plane_switches(),
        switches: plan.topology.plane_switches(),
        ports: plan.topology.out_links(node).len() as u32,
        uplinks: plan.topology.uplinks.clone(),
        murmur3: plan.murmur3.then_some(node.0),
        udp_ports: plan.udp_ports,
        hop_delay: plan.hop_delay,
        queue_limit: u64::from(
            plan.fabric.of(plan.fastest[(node.0 - plan.hosts) as usize], tier.saturating_add(1)).queue,
        ),
        lossless: plan.fabric.pfc,
        tags: TagKind::Entropy,
    }
}

#[inline]
fn view(plan: &Plan<'_>, packet: &Packet) -> PacketView {
    PacketView {
        src: packet.src,
        dst: packet.dst,
        src_leaf: plan.leaf[packet.src as usize],
        dst_leaf: plan.leaf[packet.dst as usize],
        flow: plan.flow_key(packet.flow),
        tag: packet.tag ^ u32::from(packet.fresh_entropy()) << 16,
        bytes: u32::from(packet.size),
        control: matches!(packet.kind, Kind::Ack | Kind::Nack | Kind::ProbeReply | Kind::SwitchControl | Kind::Grant),
        marked: packet.flags & MARKED != 0,
    }
}

struct Queues<'s, 'p> {
    cx: &'s mut Ctx<'p>,
    links: &'p [LinkId],
}

impl LocalQueues for Queues<'_, '_> {
    #[inline]
    fn bytes(&mut self, index: u32) -> u64 {
        self.cx.ports.backlog(self.cx.plan.port_of(self.links[index as usize].0), self.cx.now)
    }
    fn rate(&mut self, index: u32) -> Rate {
        self.cx.plan.links[self.links[index as usize].0 as usize].rate
    }
}

impl Switches {
    /// Handles a packet that came with an arrival of this order and has passed the switch's latency.
    #[inline]
    pub(crate) fn on_arrival(&mut self, cx: &mut Ctx<'_>, switch: SwitchId, id: PacketId, order: u32) {
        let ingress = if cx.plan.shared.is_some() { cx.plan.link_of(order) } else { u32::MAX };
        self.forward(cx, switch, id, ingress);
    }

    /// Forwards a packet to an output port; `ingress` is the link it came by.
    #[inline]
    fn forward(&mut self, cx: &mut Ctx<'_>, switch: SwitchId, id: PacketId, ingress: u32) {
        let plan = cx.plan;
        let packet = &cx.ports[id];
        let (dst, balancer) = (packet.dst, packet.balancer);
        let sees = plan.packet_scopes[usize::from(balancer)];
        let every_hop = sees == PacketScope::EveryHop && packet.kind == Kind::Data;
        let leaf = plan.leaf[dst as usize];
        let beside = plan.is_guided_or_has_planes;
        let last = match leaf == switch.0 {
            true => Some(dst),
            false if beside && plan.planes > 1 => last_in_plane(plan, switch, leaf, dst),
            false => None,
        };
        let link = if let Some(down) = last {
            if packet.kind == Kind::SwitchControl {
                return self.on_control(cx, switch, id);
            }
            if every_hop && !self.deliver(cx, switch, id, ingress) {
                return;
            }
            plan.down_of(down)
        } else if let Some(guided) = plan.guided.as_ref().filter(|_| beside && sees == PacketScope::Guided) {
            match self.guided_hop(cx, guided, switch, leaf, id) {
                Some(link) => link,
                None => return no_route(cx, switch, id),
            }
        } else {
            let routes = cx.routes;
            let group = routes.group(switch.0, leaf);
            match u32::from(group.len) {
                0 => return no_route(cx, switch, id),
                1 if !every_hop => routes.link_of(group, 0).0,
                count => {
                    let (scheme, uplinks) = (self.schemes.get(switch, balancer), self.uplinks[switch.at()]);
                    let by_labels = scheme.by_labels(packet.tag, || view(plan, packet), count, uplinks);
                    let index = by_labels.unwrap_or_else(|| self.choose(cx, switch, leaf, id));
                    let link = cx.routes.link_of(group, index).0;
                    self.count_uplink(cx, id, link);
                    link
                }
            }
        };
        cx.ports.join(plan.port_of(link), id, cx.now, ingress);
    }

    /// Returns the index of the next hop that the scheme chooses towards `leaf`.
    #[inline(never)]
    fn choose(&mut self, cx: &mut Ctx<'_>, switch: SwitchId, leaf: u32, id: PacketId) -> u32 {
        let packet = &cx.ports[id];
        let hops = cx.routes.towards(switch.0, leaf);
        let candidates = Candidates {
            count: hops.links.len() as u32,
            group: hops.group,
            position: hops.positions,
            port: hops.ports,
            uplinks: self.uplinks[switch.at()],
        };
        let (view, mut header, balancer) = (view(cx.plan, packet), packet.head, packet.balancer);
        let now = Time::from_ps(cx.now);
        let mut queues = Queues { cx, links: hops.links };
        let index = self.schemes.of(switch, balancer).forward(now, &view, &mut header, &candidates, &mut queues);
        cx.ports[id].head = header;
        index
    }

    #[inline(always)]
    fn count_uplink(&mut self, cx: &Ctx<'_>, id: PacketId, link: u32) {
        if self.uplink_counts.is_some() {
            self.add_uplink(cx, id, link);
        }
    }

    #[cold]
    fn add_uplink(&mut self, cx: &Ctx<'_>, id: PacketId, link: u32) {
        if let Some(counts) = &mut self.uplink_counts {
            let packet = &cx.ports[id];
            if packet.kind == Kind::Data {
                *counts.entry((packet.flow, link)).or_insert(0) += 1;
            }
        }
    }
}

/// Returns `true` at the switch of a plane that is `leaf` there; then `down` becomes the number of the host's port.
#[inline(never)]
fn last_in_plane(plan: &Plan<'_>, switch: SwitchId, leaf: u32, dst: u32) -> Option<u32> {
    let switches = plan.topology.plane_switches();
    (switch.0 % switches == leaf).then(|| dst + switch.0 / switches * plan.hosts)
}

#[cold]
fn no_route(cx: &mut Ctx<'_>, switch: SwitchId, id: PacketId) {
    let links = cx.plan.topology.out_links(NodeId(cx.plan.hosts + switch.0));
    cx.ports.queues.discard_lost(id, links[0].0, cx.now);
}
