//! The sending side of a flow: from its start to its last acknowledgement.

use super::{
    flow::{Sending, sample_sender},
    nic::Nics,
    probe::explore,
};
use crate::{
    context::Ctx,
    flow_table::FlowTable,
    ids::{FlowId, HostId, PacketId, Slot},
    labels::Labels,
    measure::{Cause, Timeline},
    packet::{Kind, LAST_HOP, MARKED, Packet, SIGNALLED},
    paths::{dead_paths, path_rates},
    plan::Plan,
};
use anabranch_endpoint::Flow;
use anabranch_lb::{FlowInfo, HostScheme, LinkSignal, Loss, PathSpace, registry::TagKind};
use anabranch_topology::BasePaths;
use anabranch_transport::Sender;
use anabranch_units::Time;

#[derive(Debug)]
pub(super) struct Senders {
    /// Per flow, its slot among those of the NICs.
    pub(super) slots: FlowTable<Slot>,
    pub(super) base_paths: BasePaths,
    /// Where a scheme profiles its ports.
    labels: Option<Labels>,
}

impl Senders {
    pub(super) fn new(plan: &Plan<'_>) -> Self {
        let slots = FlowTable::of_flows(plan.flows, Slot::NONE, Slot::NONE);
        Senders { slots, base_paths: BasePaths::default(), labels: None }
    }

    pub(super) fn start(&mut self, nics: &mut Nics, cx: &mut Ctx<'_>, number: FlowId) {
        let plan = cx.plan;
        let flow = &plan.flow(number);
        let (src, time) = (HostId(flow.src), Time::from_ps(cx.now));
        nics.catch_up(cx, src);
        let path = self.base_paths.path(plan.topology, flow.src, flow.dst);
        let path_rtt = plan.topology.rtt(path, plan.wire_mtu, u64::from(plan.ack_size));
        let transport = plan.transports.number_of(plan.topology, flow);
        let network = plan.transports.network(transport);
        let base_rtt = if plan.first_path_rtt { path_rtt } else { network.base_rtt };
        // Schemes compare with what a host can measure; windows and timeouts last for the longest path.
        let measured = if plan.first_path_rtt { path_rtt } else { plan.transports.shortest_rtt(transport) };
        let of_longest = u128::from(network.bdp) * u128::from(measured.ps());
        let bdp = (of_longest / u128::from(network.base_rtt.ps().max(1))) as u64;
        // Half of the hops between switches lead upwards; entropy values choose there.
        let levels = ((path.len() - 2) / 2).min(plan.topology.uplinks.len());
        let sender = Sender::new(plan.transports.of(transport), plan.nic_rate(flow.src), base_rtt, flow.size, time);
        let balancer = plan.balancer_of(flow);
        let down = if plan.planes > 1 { nics.down_between(flow.src, flow.dst) } else { 0 };
        let dead = dead_paths(plan, cx.tables, balancer, flow.src, flow.dst, down);
        let rates = path_rates(plan, cx.tables, balancer, (flow.src, flow.dst), &dead);
        let guided = plan.guided.as_ref().filter(|guided| guided.lists[usize::from(balancer)]);
        let (from, to) = (plan.leaf[flow.src as usize], plan.leaf[flow.dst as usize]);
        let list = guided.map(|guided| cx.paths.list(plan, &guided.guide, from, to));
        let mut uplinks = &plan.topology.uplinks[..levels];
        let planes = plan.nic_ports[usize::from(balancer)].named_planes();
        let with_planes: Vec<u32>;
        if planes > 1 {
            with_planes = [planes].into_iter().chain(uplinks.iter().copied()).collect();
            uplinks = &with_planes;
        }
        let capabilities = plan.balancers[usize::from(balancer)].host.capabilities();
        let labels = if capabilities.profiles_ports() {
            let paths = uplinks.iter().fold(1u32, |paths, &uplinks| paths.saturating_mul(uplinks.max(1)));
            self.labels.get_or_insert_with(|| Labels::new(plan)).of(plan, cx.routes, number.0, paths)
        } else {
            Vec::new()
        };
        let info = FlowInfo {
            key: flow.key,
            connection: if plan.per_connection { flow.connection } else { flow.key },
            src: flow.src,
            dst: flow.dst,
            size: flow.size,
            packets: sender.packets(),
            bdp_packets: bdp.div_ceil(plan.wire_mtu),
            base_rtt: measured,
            probe_rtt: measured,
            rate: plan.lone_rate(flow.src, flow.dst),
            full_packet: plan.wire_mtu as u32,
            early_packets: plan.transports.main().early_packets(),
            paths: PathSpace { uplinks, labels: &labels, dead: &dead, guided: list, planes, edge: to, rates: &rates },
        };
        let (numbered, pairs) = (capabilities.tags() == TagKind::Guided, capabilities.queue_pairs());
        cx.nics.open(src, pairs);
        let path_rtts = list.filter(|_| numbered).map(|list| {
            let rtt = |end| Some((end, path_rtt + list.detour(end - 1, plan.topology.switch_latency)?));
            list.steps().iter().filter_map(|step| rtt(step.end)).collect()
        });
        let scheme_slot = nics.schemes[src.at()][usize::from(balancer)].open(time, &info);
        let sending = Sending {
            flow: number,
            transport,
            src,
            dst: HostId(flow.dst),
            balancer,
            class: flow.class,
            base_rtt: base_rtt.ps(),
            path_rtts,
            pairs,
            max_pairs: pairs,
            watch: plan.measure.series_flows.binary_search(&number.0).map_or(u32::MAX, |index| index as u32),
            timeline: plan.measure.attribution.then(|| Box::new(Timeline::new(info.packets))),
        };
        let class = sending.class;
        if cx.ports.queues.watch.traces() {
            nics.schemes[src.at()][usize::from(balancer)].scheme_mut().record_changes(scheme_slot);
        }
        let flow = Flow::new(sender, number.0, scheme_slot, time, sending).in_class(class);
        let slot = nics.open(plan, flow);
        *self.slots.at_mut(number.0) = slot;
        nics.sent.at_mut(number.0).started = cx.now;
        if down != 0 {
            nics.tell_ports(cx, slot, cx.now);
        }
        nics.enter(cx, slot, |_| Cause::Start);
        nics.wake(cx, src);
    }

    #[inline]
    pub(super) fn on_ack(&mut self, nics: &mut Nics, cx: &mut Ctx<'_>, host: HostId, packet: &Packet, id: PacketId) {
        let slot = self.slots.get(packet.flow);
        if slot == Slot::NONE {
            return;
        }
        nics.catch_up(cx, host);
        let (plan, time) = (cx.plan, Time::from_ps(cx.now));
        let flow = &mut nics.flows[slot.at()];
        let path_rtt = flow.of.path_rtt(packet.tag);
        let scheme = nics.schemes[host.at()][usize::from(flow.of.balancer)].scheme_mut();
        let trim = match packet.flags & (LAST_HOP | SIGNALLED) {
            0 => Some(Loss::Trimmed),
            flags => {
                let is_of_last_hop = flags & LAST_HOP != 0;
                let cause = if is_of_last_hop { Loss::TrimmedAtLastHop } else { Loss::Trimmed };
                let trim = (!is_of_last_hop || plan.transports.main().reports_last_hop_trims()).then_some(cause);
                // Without its loss the scheme would take it for the next packet's.
                if flags & SIGNALLED != 0 && trim.is_some() {
                    scheme.on_signal(time, flow.scheme_slot(), packet.tag, LinkSignal(packet.payload));
                }
                trim
            }
        };
        let ack =
            flow.on_ack(plan.transports.of(flow.of.transport), scheme, time, &packet.answer(), path_rtt, None, trim);
        if let Some(samples) = cx.series.flows.get_mut(flow.of.watch as usize) {
            samples.counted.ack(packet.flags & MARKED != 0, ack.trimmed);
        }
        nics.trace_values(cx, slot);
        if ack.done {
            self.close(nics, cx, slot, packet.completed_at());
        } else {
            if !ack.trimmed {
                explore(nics, cx, host, slot);
            }
            let reports_loss = packet.kind == Kind::Nack || ack.lost > 0;
            nics.enter(cx, slot, |cx| {
                let waits = cx.ports.queues.packets.reply_waits(id);
                if reports_loss { Cause::Nack(waits) } else { Cause::Reply(waits) }
            });
            // A NACK that acknowledges packets too ends a doubled timeout, which may be over.
            nics.arm_timer(cx, slot);
        }
        nics.wake(cx, host);
    }

    /// Handles a grant of credit.
    pub(super) fn on_grant(&mut self, nics: &mut Nics, cx: &mut Ctx<'_>, host: HostId, packet: &Packet, id: PacketId) {
        let slot = self.slots.get(packet.flow);
        if slot == Slot::NONE {
            return;
        }
        nics.catch_up(cx, host);
        let flow = &mut nics.flows[slot.at()];
        flow.sender.on_grant(cx.plan.transports.of(flow.of.transport), packet.head.wide(0));
        nics.enter(cx, slot, |cx| Cause::Reply(cx.ports.queues.packets.reply_waits(id)));
        nics.arm_timer(cx, slot);
        nics.wake(cx, host);
    }

    /// Handles a retransmission timeout; ignores other timers, which are re-armed lazily.
    pub(super) fn on_timer(&mut self, nics: &mut Nics, cx: &mut Ctx<'_>, number: FlowId) {
        let (slot, time) = (self.slots.get(number.0), Time::from_ps(cx.now));
        if slot == Slot::NONE || !nics.flows[slot.at()].awaits(time) {
            return;
        }
        let host = nics.flows[slot.at()].of.src;
        nics.catch_up(cx, host);
        let flow = &mut nics.flows[slot.at()];
        let scheme = nics.schemes[host.at()][usize::from(flow.of.balancer)].scheme_mut();
        nics.counters.timeouts += flow.on_timer(cx.plan.transports.of(flow.of.transport), scheme, time, &mut |_, _| ());
        nics.trace_values(cx, slot);
        explore(nics, cx, host, slot);
        nics.arm_timer(cx, slot);
        nics.enter(cx, slot, |_| Cause::Timeout);
        nics.wake(cx, host);
    }

    fn close(&mut self, nics: &mut Nics, cx: &mut Ctx<'_>, slot: Slot, completed_at: Option<u64>) {
        let (plan, now) = (cx.plan, cx.now);
        let flow = nics.close(plan, slot);
        let Sending { flow: number, src: host, balancer, watch, .. } = flow.of;
        cx.nics.close(host, flow.of.pairs);
        let (retransmitted, path_switches) = (flow.sender.retransmitted(), flow.path_switches());
        if let Some(samples) = cx.series.flows.get_mut(watch as usize) {
            samples.last = Some((now, sample_sender(plan, &flow, &mut samples.counted, now)));
        }
        if let Some(balancers) = &mut cx.series.balancers {
            let done = &mut balancers.done[usize::from(balancer)];
            done.finished += 1;
            done.retransmitted += retransmitted;
            done.path_switches += path_switches;
        }
        *self.slots.at_mut(number.0) = Slot::NONE;
        if let (Some(timeline), Some(time)) = (&flow.of.timeline, completed_at) {
            nics.records[number.at()] = timeline.until(time);
        }
        let sent = nics.sent.at_mut(number.0);
        sent.note(&flow);
        sent.done = now;
        nics.counters.finished += 1;
        if flow.sender.in_flight() != 0 {
            let bytes = flow.sender.in_flight();
            cx.fail(cx.now, format!("flow {} is done with {bytes} bytes in flight", number.0));
        }
        if let Some(trigger) = plan.flow(number).on_sent {
            cx.activate(trigger, host);
        }
    }
}
