//! The sending side of a flow: from its start to its last acknowledgement.

use super::Hosts;
use crate::{
    event::Event,
    ids::{FlowId, HostId, Slot},
    packet::{LAST_HOP, MARKED, Packet},
    partition::Partition,
};
use anabranch_lb::{Feedback, FlowInfo, GuidedPaths, HostScheme, PathSpace, registry::TagKind};
use anabranch_transport::Sender;
use anabranch_units::Time;
use std::sync::Arc;

/// An open flow at its sender.
#[derive(Debug)]
pub(crate) struct SenderFlow {
    pub(crate) sender: Sender,
    pub(crate) flow: FlowId,
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
    /// Its slot with its host's scheme.
    pub(crate) scheme_slot: u32,
    pub(crate) balancer: u8,
    pub(crate) class: u8,
    /// Whether it stands in its host's round.
    pub(crate) in_round: bool,
    /// Whether it waits among the paced flows of its host.
    pub(crate) paced: bool,
    /// The scheme holds it back until the next acknowledgement.
    pub(crate) waits: bool,
    /// When its next packet could first have gone, but for the NIC's other flows.
    pub(crate) eligible_at: u64,
    /// When its pending timer strikes; `u64::MAX`: none.
    timer_at: u64,
    pub(crate) last_tag: Option<u32>,
    /// When its last packet started; `u64::MAX`: none has.
    pub(crate) last_sent: u64,
    /// Base round trip of its pair.
    pub(crate) base_rtt: u64,
    /// The list that its tags number, where they do, and the base round trip over the first of it.
    paths: Option<Arc<GuidedPaths>>,
    shortest_rtt: Time,
    pub(crate) path_switches: u64,
}

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
        let numbered = plan.balancers[usize::from(balancer)].host.about().tags == TagKind::Guided;
        let paths = list.filter(|_| numbered).map(Arc::clone);
        let scheme_slot = self.hosts.schemes[src.at()][usize::from(balancer)].open(time, &info);
        let slot = Slot(self.hosts.senders.insert(SenderFlow {
            sender,
            flow: number,
            src,
            dst: HostId(flow.dst),
            scheme_slot,
            balancer,
            class: flow.class,
            in_round: false,
            paced: false,
            waits: false,
            eligible_at: now,
            timer_at: u64::MAX,
            last_tag: None,
            last_sent: u64::MAX,
            base_rtt: base_rtt.ps(),
            paths,
            shortest_rtt,
            path_switches: 0,
        }) as u32);
        self.hosts.sender_of[number.at()] = slot;
        self.hosts.sent[number.at()].started = now;
        self.enter_round(slot, now);
        self.wake_nic(src, now);
    }

    /// Puts a flow that may send at `now` into its host's round, or among the paced.
    #[inline]
    fn enter_round(&mut self, slot: Slot, now: u64) {
        let flow = &mut self.hosts.senders[slot.at()];
        if flow.in_round || flow.paced || flow.waits || !flow.sender.ready(&self.plan.transport) {
            return;
        }
        let next_avail = flow.sender.next_avail().ps();
        flow.eligible_at = next_avail.max(now);
        let nic = &mut self.hosts.nics[flow.src.at()];
        if next_avail <= now {
            flow.in_round = true;
            nic.join_round(slot);
        } else {
            flow.paced = true;
            nic.pace(next_avail, flow.flow.0, slot);
        }
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
        let path_rtt = flow.paths.as_ref().and_then(detour).map(|detour| flow.shortest_rtt + detour);
        let heard = flow.sender.on_answer(&self.plan.transport, time, &packet.answer(), path_rtt);
        flow.waits = false;
        let scheme = &mut self.hosts.schemes[host.at()][usize::from(flow.balancer)].scheme;
        if heard.trimmed {
            if packet.flags & LAST_HOP == 0 || self.plan.transport.blames_last_hop() {
                scheme.on_nack(time, flow.scheme_slot, packet.tag);
            }
        } else {
            let feedback = Feedback {
                tag: packet.tag,
                ecn: packet.flags & MARKED != 0,
                rtt: heard.rtt,
                packets: heard.packets,
                bytes: heard.bytes,
                cumulative: flow.sender.cumulative(),
                next_psn: flow.sender.next_psn(),
            };
            scheme.on_ack(time, flow.scheme_slot, &feedback);
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
        if slot == Slot::NONE || self.hosts.senders[slot.at()].timer_at != now {
            return;
        }
        let host = self.hosts.senders[slot.at()].src;
        self.advance_nic(host, self.ports.before(now));
        let time = Time::from_ps(now);
        let Hosts { senders, schemes, timeouts, .. } = &mut self.hosts;
        let flow = &mut senders[slot.at()];
        flow.timer_at = u64::MAX;
        if flow.sender.deadline(&self.plan.transport).is_some_and(|deadline| deadline <= time) {
            let scheme = &mut schemes[host.at()][usize::from(flow.balancer)].scheme;
            let scheme_slot = flow.scheme_slot;
            flow.waits = false;
            flow.sender.on_timer(&self.plan.transport, time, &mut |_, tag| {
                *timeouts += 1;
                scheme.on_timeout(time, scheme_slot, tag);
            });
        }
        self.arm_timer(slot);
        self.enter_round(slot, now);
        self.wake_nic(host, now);
    }

    /// Makes sure that a timer strikes no later than the flow needs one.
    #[inline]
    pub(super) fn arm_timer(&mut self, slot: Slot) {
        let flow = &mut self.hosts.senders[slot.at()];
        let Some(deadline) = flow.sender.deadline(&self.plan.transport) else { return };
        let wanted = deadline.ps().max(self.now);
        if wanted < flow.timer_at {
            flow.timer_at = wanted;
            let (host, flow) = (flow.src, flow.flow);
            self.host_event(wanted, host, Event::FlowTimer { host, flow });
        }
    }

    fn close_sender(&mut self, slot: Slot, now: u64) {
        let flow = self.hosts.senders.remove(slot.at());
        let host = flow.src;
        self.hosts.schemes[host.at()][usize::from(flow.balancer)].close(flow.scheme_slot);
        if flow.in_round {
            self.hosts.nics[host.at()].leave_round(slot);
        }
        self.hosts.sender_of[flow.flow.at()] = Slot::NONE;
        let sent = &mut self.hosts.sent[flow.flow.at()];
        sent.note(&flow);
        sent.done = now;
        self.hosts.finished += 1;
        if flow.sender.in_flight() != 0 {
            let bytes = flow.sender.in_flight();
            self.fail(now, format!("flow {} is done with {bytes} bytes in flight", flow.flow.0));
        }
        if let Some(trigger) = self.plan.flows.flows[flow.flow.at()].on_sent {
            self.activate(trigger.0, host, now);
        }
    }

    /// The tables have changed at `now`: every open flow's scheme hears which of its paths are known to be dead.
    pub(crate) fn tell_dead_paths(&mut self, now: u64) {
        let mut open: Vec<(FlowId, usize)> = self.hosts.senders.iter().map(|(slot, flow)| (flow.flow, slot)).collect();
        // Where flows share a scheme's memory, their order counts; that of the slots is an accident.
        open.sort_unstable();
        for (_, slot) in open {
            let flow = &self.hosts.senders[slot];
            let dead = self.plan.dead_paths(self.tables, flow.balancer, flow.src.0, flow.dst.0);
            let (host, balancer, scheme_slot) = (flow.src, flow.balancer, flow.scheme_slot);
            self.hosts.scheme(host, balancer).on_paths_changed(Time::from_ps(now), scheme_slot, &dead);
        }
    }
}
