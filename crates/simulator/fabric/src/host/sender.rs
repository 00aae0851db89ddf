//! The sending side of a flow: from its start to its last acknowledgement.

use crate::{
    event::Event,
    ids::{FlowId, HostId, Slot},
    packet::{LAST_HOP, MARKED, Packet},
    partition::Partition,
};
use anabranch_endpoint::Flow;
use anabranch_lb::{FlowInfo, GuidedPaths, PathSpace, registry::TagKind};
use anabranch_transport::Sender;
use anabranch_units::Time;
use std::sync::Arc;

/// What the simulator keeps of an open flow at its sender.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) flow: FlowId,
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
    pub(crate) balancer: u8,
    pub(crate) class: u8,
    /// Base round trip of its pair.
    pub(crate) base_rtt: u64,
    /// The list that its tags number, where they do, and the base round trip over the first of it.
    paths: Option<Arc<GuidedPaths>>,
    shortest_rtt: Time,
    /// Its place among the flows that have time series; `u32::MAX`: it has none.
    pub(crate) watch: u32,
}

/// An open flow at its sender.
pub(crate) type SenderFlow = Flow<Sending>;

impl Partition<'_> {
    /// A flow starts.
    pub(crate) fn start_flow(&mut self, number: FlowId, now: u64) {
        let plan = self.plan;
        let flow = &plan.flows.flows[number.at()];
        let (src, time) = (HostId(flow.src), Time::from_ps(now));
        self.advance_nic(src, self.ports.before(now));
        let path = self.hosts.base_paths.path(plan.topology, flow.src, flow.dst);
        let shortest_rtt = plan.topology.rtt(path, plan.wire_mtu, u64::from(plan.ack_size));
        let base_rtt = plan.longest_rtt.unwrap_or(shortest_rtt);
        // Half of the hops between switches lead upwards; that is where entropy values choose.
        let levels = ((path.len() - 2) / 2).min(plan.topology.uplinks.len());
        let sender = Sender::new(&plan.transport, plan.nic_rate(flow.src), base_rtt, flow.size, time);
        let balancer = plan.balancer_of(flow);
        let dead = plan.dead_paths(self.tables, balancer, flow.src, flow.dst);
        let guided = plan.guided.as_ref().filter(|guided| guided.lists[usize::from(balancer)]);
        let (from, to) = (plan.leaf[flow.src as usize], plan.leaf[flow.dst as usize]);
        let list = guided.map(|guided| self.switches.lists.list(plan, &guided.guide, from, to));
        let info = FlowInfo {
            key: flow.key,
            src: flow.src,
            dst: flow.dst,
            size: flow.size,
            packets: sender.packets(),
            bdp_packets: plan.bdp_packets,
            base_rtt,
            rate: plan.lone_rate(flow.src, flow.dst),
            full_packet: plan.wire_mtu as u32,
            early_packets: plan.transport.early_packets(),
            paths: PathSpace { uplinks: &plan.topology.uplinks[..levels], dead: &dead, guided: list },
        };
        let numbered = plan.balancers[usize::from(balancer)].host.capabilities().tags() == TagKind::Guided;
        let paths = list.filter(|_| numbered).map(Arc::clone);
        let scheme_slot = self.hosts.schemes[src.at()][usize::from(balancer)].open(time, &info);
        let sending = Sending {
            flow: number,
            src,
            dst: HostId(flow.dst),
            balancer,
            class: flow.class,
            base_rtt: base_rtt.ps(),
            paths,
            shortest_rtt,
            watch: plan.measure.series_flows.binary_search(&number.0).map_or(u32::MAX, |index| index as u32),
        };
        let slot = Slot(self.hosts.senders.insert(Flow::new(sender, number.0, scheme_slot, time, sending)) as u32);
        self.hosts.sender_of[number.at()] = slot;
        self.hosts.sent[number.at()].started = now;
        self.enter_round(slot, now);
        self.wake_nic(src, now);
    }

    /// Puts a flow that may send at `now` into its host's round, or among the paced.
    #[inline]
    fn enter_round(&mut self, slot: Slot, now: u64) {
        let flow = &mut self.hosts.senders[slot.at()];
        self.hosts.nics[flow.of.src.at()].turns.enter(slot.0, flow, &self.plan.transport, Time::from_ps(now));
    }

    /// An answer of its receiver reaches the sender.
    #[inline]
    pub(super) fn answer_arrival(&mut self, host: HostId, packet: &Packet, now: u64) {
        let slot = self.hosts.sender_of[packet.flow as usize];
        if slot == Slot::NONE {
            return;
        }
        self.advance_nic(host, self.ports.before(now));
        let time = Time::from_ps(now);
        let flow = &mut self.hosts.senders[slot.at()];
        let detour = |paths: &Arc<GuidedPaths>| paths.detour(packet.tag >> 16, self.plan.topology.switch_latency);
        let path_rtt = flow.of.paths.as_ref().and_then(detour).map(|detour| flow.of.shortest_rtt + detour);
        let scheme = self.hosts.schemes[host.at()][usize::from(flow.of.balancer)].scheme_mut();
        let blames = packet.flags & LAST_HOP == 0 || self.plan.transport.blames_last_hop();
        let heard = flow.on_answer(&self.plan.transport, scheme, time, &packet.answer(), path_rtt, None, blames);
        if let Some(looks) = self.series.flows.get_mut(flow.of.watch as usize) {
            looks.counted.heard(packet.flags & MARKED != 0, heard.trimmed);
        }
        if heard.done {
            self.close_sender(slot, now);
        } else {
            if !heard.trimmed {
                self.send_probes(host, slot, now);
            }
            self.enter_round(slot, now);
            if !heard.trimmed {
                self.arm_timer(slot);
            }
        }
        self.wake_nic(host, now);
    }

    /// A flow's timer strikes: a retransmission timeout, or nothing (timers are re-armed lazily).
    pub(crate) fn sender_timer(&mut self, number: FlowId, now: u64) {
        let slot = self.hosts.sender_of[number.at()];
        let time = Time::from_ps(now);
        if slot == Slot::NONE || !self.hosts.senders[slot.at()].awaits(time) {
            return;
        }
        let host = self.hosts.senders[slot.at()].of.src;
        self.advance_nic(host, self.ports.before(now));
        let flow = &mut self.hosts.senders[slot.at()];
        let scheme = self.hosts.schemes[host.at()][usize::from(flow.of.balancer)].scheme_mut();
        self.hosts.timeouts += flow.on_timer(&self.plan.transport, scheme, time, &mut |_, _| ());
        self.arm_timer(slot);
        self.enter_round(slot, now);
        self.wake_nic(host, now);
    }

    /// Makes sure that a timer strikes no later than the flow needs one.
    #[inline]
    pub(super) fn arm_timer(&mut self, slot: Slot) {
        let flow = &mut self.hosts.senders[slot.at()];
        if let Some(wanted) = flow.arm(&self.plan.transport, Time::from_ps(self.now)) {
            let Sending { src: host, flow, .. } = flow.of;
            self.host_event(wanted.ps(), host, Event::FlowTimer { host, flow });
        }
    }

    fn close_sender(&mut self, slot: Slot, now: u64) {
        let flow = self.hosts.senders.remove(slot.at());
        self.last_look(&flow, now);
        let Sending { flow: number, src: host, balancer, .. } = flow.of;
        self.hosts.schemes[host.at()][usize::from(balancer)].close(flow.scheme_slot());
        self.hosts.nics[host.at()].turns.leave(slot.0, &flow);
        self.hosts.sender_of[number.at()] = Slot::NONE;
        let sent = &mut self.hosts.sent[number.at()];
        sent.note(&flow);
        sent.done = now;
        self.hosts.finished += 1;
        if flow.sender.in_flight() != 0 {
            let bytes = flow.sender.in_flight();
            self.fail(now, format!("flow {} is done with {bytes} bytes in flight", number.0));
        }
        if let Some(trigger) = self.plan.flows.flows[number.at()].on_sent {
            self.activate(trigger.0, host, now);
        }
    }

    /// The tables have changed at `now`: every open flow's scheme hears which of its paths are known to be dead.
    pub(crate) fn tell_dead_paths(&mut self, now: u64) {
        let mut open: Vec<(FlowId, usize)> =
            self.hosts.senders.iter().map(|(slot, flow)| (flow.of.flow, slot)).collect();
        // Where flows share a scheme's memory, their order counts; that of the slots is an accident.
        open.sort_unstable();
        for (_, slot) in open {
            let flow = &self.hosts.senders[slot];
            let Sending { src, dst, balancer, .. } = flow.of;
            let dead = self.plan.dead_paths(self.tables, balancer, src.0, dst.0);
            let scheme = self.hosts.schemes[src.at()][usize::from(balancer)].scheme_mut();
            flow.on_paths_changed(scheme, Time::from_ps(now), &dead);
        }
    }
}
