//! The sending side of a flow: from its start to its last acknowledgement.

use crate::{
    guided::dead_paths,
    host::Host,
    order,
    packet::{Kind, NONE, Packet},
    partition::Partition,
    plan::{Plan, Tables},
    transport::{Sender, Transport},
};
use anabranch_engine::Event;
use anabranch_lb::{Feedback, FlowInfo, HostScheme, PathSpace};
use anabranch_topology::NodeId;
use anabranch_units::Time;

/// An open flow at its sender.
#[derive(Debug)]
pub(crate) struct SenderFlow {
    pub(crate) sender: Sender,
    pub(crate) flow: u32,
    pub(crate) src: u32,
    pub(crate) dst: u32,
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
    pub(crate) timer_at: u64,
    pub(crate) last_tag: Option<u32>,
    /// When its last packet started; `u64::MAX`: none has.
    pub(crate) last_sent: u64,
    /// Base round trip of its pair.
    pub(crate) base_rtt: u64,
    pub(crate) path_switches: u64,
}

impl Plan {
    /// Which paths from `src` to `dst` are known to be dead, as entropy values name them; empty: none.
    pub(crate) fn dead_paths(&self, tables: &Tables, balancer: u8, src: u32, dst: u32) -> Vec<bool> {
        if !tables.any_dead {
            return Vec::new();
        }
        let (from, to) = (self.edge[src as usize], self.edge[dst as usize]);
        if let Some(guided) = self.guided.as_ref().filter(|guided| guided.lists[balancer as usize]) {
            return dead_paths(self, &guided.guide, from, to, &tables.dead);
        }
        self.topology.dead_paths(NodeId(self.hosts + from), NodeId(self.hosts + to), &tables.dead)
    }
}

impl Partition<'_> {
    pub(crate) fn start_flow(&mut self, number: u32, now: u64) {
        let plan = self.plan;
        let flow = &plan.flows.flows[number as usize];
        let time = Time::from_ps(now);
        self.nic_catch_up(flow.src, self.wires.before(now));
        let path = self.base_paths.path(&plan.topology, flow.src, flow.dst);
        let base_rtt = match plan.longest_rtt {
            Some(rtt) => rtt,
            None => plan.topology.rtt(path, plan.wire_mtu, u64::from(plan.ack_size)),
        };
        // Half of the hops between switches lead upwards; that is where entropy values choose.
        let levels = ((path.len() - 2) / 2).min(plan.topology.uplinks.len());
        let sender = Sender::new(&plan.transport, plan.nic_rate(flow.src), base_rtt, flow.size, time);
        let balancer = plan.flows.workloads[flow.workload as usize].load_balancer as u8;
        let dead = plan.dead_paths(self.tables, balancer, flow.src, flow.dst);
        let guided = plan.guided.as_ref().filter(|guided| guided.lists[balancer as usize]);
        let (from, to) = (plan.edge[flow.src as usize], plan.edge[flow.dst as usize]);
        let list = guided.map(|guided| self.lists.list(plan, &guided.guide, from, to));
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
        let scheme = self.hosts[flow.src as usize].scheme(balancer);
        let scheme_slot = scheme.open(time, &info);
        let slot = self.senders.insert(SenderFlow {
            sender,
            flow: number,
            src: flow.src,
            dst: flow.dst,
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
            path_switches: 0,
        });
        self.sender_of[number as usize] = slot as u32;
        self.tx[number as usize].started = now;
        self.enter_round(slot as u32, now, now);
        self.nic_kick(flow.src, now);
    }

    /// Puts a flow that may send at `now` into its host's round, if pacing lets it go by `by`, else among the paced.
    #[inline]
    pub(crate) fn enter_round(&mut self, slot: u32, now: u64, by: u64) {
        let flow = &mut self.senders[slot as usize];
        if flow.in_round || flow.paced || flow.waits || !flow.sender.ready(&self.plan.transport) {
            return;
        }
        let next_avail = flow.sender.next_avail();
        flow.eligible_at = next_avail.max(now);
        let (src, number) = (flow.src as usize, flow.flow);
        if next_avail <= by {
            flow.in_round = true;
            self.hosts[src].round.push_back(slot);
        } else {
            flow.paced = true;
            self.hosts[src].pace(next_avail, number, slot);
        }
    }

    /// An ACK reaches the sender, or any answer of a RoCE receiver.
    pub(crate) fn ack_arrival(&mut self, host: u32, packet: &Packet, now: u64) {
        let slot = self.sender_of[packet.flow as usize];
        if slot == NONE {
            return;
        }
        self.nic_catch_up(host, self.wires.before(now));
        let time = Time::from_ps(now);
        let flow = &mut self.senders[slot as usize];
        let acked = flow.sender.on_answer(&self.plan.transport, time, packet);
        let feedback = Feedback {
            tag: packet.tag,
            ecn: packet.flags & crate::packet::MARKED != 0,
            rtt: acked.rtt,
            packets: acked.packets,
            bytes: acked.bytes,
            cumulative: flow.sender.cumulative(),
            next_psn: flow.sender.next_psn(),
        };
        let (balancer, scheme_slot) = (flow.balancer, flow.scheme_slot);
        flow.waits = false;
        self.hosts[host as usize].scheme(balancer).scheme.on_ack(time, scheme_slot, &feedback);
        if acked.done {
            self.close_sender(slot, now);
        } else {
            self.send_probes(host, slot, now);
            self.enter_round(slot, now, now);
            self.arm_timer(slot);
        }
        self.nic_kick(host, now);
    }

    /// A NACK reaches the sender: of a trimmed packet, or of a RoCE receiver, whose answers are all alike.
    pub(crate) fn nack_arrival(&mut self, host: u32, packet: &Packet, now: u64) {
        if matches!(self.plan.transport, Transport::Roce(_)) {
            debug_assert_eq!(packet.kind, Kind::Nack);
            return self.ack_arrival(host, packet, now);
        }
        let slot = self.sender_of[packet.flow as usize];
        if slot == NONE {
            return;
        }
        self.nic_catch_up(host, self.wires.before(now));
        let time = Time::from_ps(now);
        let flow = &mut self.senders[slot as usize];
        let done = flow.sender.on_trimmed(&self.plan.transport, time, packet);
        let (balancer, scheme_slot) = (flow.balancer, flow.scheme_slot);
        flow.waits = false;
        self.hosts[host as usize].scheme(balancer).scheme.on_nack(time, scheme_slot, packet.tag);
        if done {
            self.close_sender(slot, now);
        } else {
            self.enter_round(slot, now, now);
        }
        self.nic_kick(host, now);
    }

    /// A flow's timer strikes: a retransmission timeout, or nothing (timers are re-armed lazily).
    pub(crate) fn flow_timer(&mut self, number: u32, now: u64) {
        let slot = self.sender_of[number as usize];
        if slot == NONE || self.senders[slot as usize].timer_at != now {
            return;
        }
        let host = self.senders[slot as usize].src;
        self.nic_catch_up(host, self.wires.before(now));
        let time = Time::from_ps(now);
        let flow = &mut self.senders[slot as usize];
        flow.timer_at = u64::MAX;
        if flow.sender.deadline(&self.plan.transport).is_some_and(|deadline| deadline <= time) {
            let Host { schemes, .. } = &mut self.hosts[host as usize];
            let scheme = &mut schemes[flow.balancer as usize].scheme;
            let (slot, timeouts) = (flow.scheme_slot, &mut self.timeouts);
            flow.waits = false;
            flow.sender.on_timer(&self.plan.transport, time, &mut |_, tag| {
                *timeouts += 1;
                scheme.on_timeout(time, slot, tag);
            });
        }
        self.arm_timer(slot);
        self.enter_round(slot, now, now);
        self.nic_kick(host, now);
    }

    /// Makes sure that a timer strikes no later than the flow needs one.
    #[inline]
    pub(crate) fn arm_timer(&mut self, slot: u32) {
        let flow = &mut self.senders[slot as usize];
        let Some(deadline) = flow.sender.deadline(&self.plan.transport) else { return };
        let wanted = deadline.ps().max(self.now);
        if wanted < flow.timer_at {
            flow.timer_at = wanted;
            let event = Event { time: wanted, order: order::TIMER | flow.src, payload: flow.flow };
            self.wires.wheel.push(event);
        }
    }

    fn close_sender(&mut self, slot: u32, now: u64) {
        let flow = self.senders.remove(slot as usize);
        let number = flow.flow as usize;
        let host = &mut self.hosts[flow.src as usize];
        host.scheme(flow.balancer).close(flow.scheme_slot);
        if flow.in_round {
            host.round.retain(|s| *s != slot);
        }
        self.sender_of[number] = NONE;
        let tx = &mut self.tx[number];
        tx.note(&flow.sender, flow.path_switches);
        tx.done = now;
        self.finished += 1;
        if flow.sender.in_flight() != 0 {
            self.fail(format!("flow {number} is done with {} bytes in flight", flow.sender.in_flight()));
        }
        if let Some(trigger) = self.plan.flows.flows[number].on_sent {
            self.pull(trigger.0, flow.src, now);
        }
    }
}
