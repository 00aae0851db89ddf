//! The receiving side of flows: replies to arriving packets.

use super::outcome::Received;
use crate::{
    context::Ctx,
    event::Event,
    flow_table::FlowTable,
    ids::{FlowId, HostId, PacketId, Slot},
    measure::Waits,
    packet::{ACK_REQUEST, Kind, MARKED, Packet},
    plan::{Plan, TransportId},
};
use anabranch_transport::{CreditPacer, CreditSource, DataArrival, Receiver, Reply};
use anabranch_units::Time;
use anabranch_workload::Flow;
use slab::Slab;

/// The receiver of an open flow, and the time of its pending timer; `Time::MAX`: none.
#[derive(Debug)]
pub(crate) struct Open {
    pub(super) receiver: Receiver,
    flow: FlowId,
    transport: TransportId,
    timer_at: Time,
    /// Credit of its sender, and path tag of the last arrival, by which grants travel back.
    credit: CreditSource,
    tag: u32,
}

impl Open {
    /// Returns the time of a timer to arm; `None` if the pending one suffices.
    #[inline]
    fn arm(&mut self) -> Option<Time> {
        let deadline = self.receiver.deadline()?;
        (deadline < self.timer_at).then(|| {
            self.timer_at = deadline;
            deadline
        })
    }
}

/// Pacer of a NIC's grants, with the time of its pending timer.
#[derive(Clone, Debug)]
struct Pacer {
    pacer: CreditPacer,
    timer_at: Time,
}

#[derive(Debug)]
pub(crate) struct Receivers {
    pub(crate) open: Slab<Open>,
    /// Per flow of the run.
    pub(super) slots: FlowTable<Slot>,
    pub(super) received: FlowTable<Received>,
    /// Per flow of the run, where delays are attributed: waits of the packet that completed it.
    pub(crate) waits: Vec<Waits>,
    /// Per host, where receivers grant credit; else empty.
    pacers: Vec<Pacer>,
    /// Time at which any flow last received a byte that it did not have, in picoseconds.
    pub(crate) last_data: u64,
    /// Time of the last completion.
    pub(crate) last_end: u64,
}

impl Pacer {
    /// Schedules the next grant, unless one is.
    fn arm(&mut self, cx: &mut Ctx<'_>, host: HostId) {
        let now = Time::from_ps(cx.now);
        if let Some(due) = self.pacer.due(now).filter(|_| self.timer_at == Time::MAX) {
            self.timer_at = due;
            cx.host_event(due.ps(), host, Event::FlowTimer { host, flow: FlowId::PACER });
        }
    }
}

fn queue_pairs(plan: &Plan<'_>, flow: &Flow) -> u32 {
    plan.balancers[usize::from(plan.balancer_of(flow))].host.capabilities().queue_pairs()
}

impl Receivers {
    pub(super) fn new(plan: &Plan<'_>) -> Self {
        let pacer = |host| {
            let rate = plan.topology.host_rates(host).1;
            Pacer { pacer: CreditPacer::new(rate, plan.wire_mtu), timer_at: Time::MAX }
        };
        let flows = if plan.measure.attribution { plan.flows.number_of_flows() } else { 0 };
        Receivers {
            open: Slab::new(),
            slots: FlowTable::of_flows(plan.flows, Slot::NONE, Slot::COMPLETE),
            received: FlowTable::of_flows(plan.flows, Received::default(), Received::default()),
            waits: vec![Waits::default(); flows],
            pacers: if plan.transports.has_credit() { (0..plan.hosts).map(pacer).collect() } else { Vec::new() },
            last_data: 0,
            last_end: 0,
        }
    }

    #[inline]
    pub(super) fn on_data(&mut self, cx: &mut Ctx<'_>, host: HostId, packet: &Packet, id: PacketId) -> Option<Reply> {
        let (plan, flow) = (cx.plan, FlowId(packet.flow));
        let mut slot = self.slots.get(flow.0);
        let arrival = DataArrival {
            psn: u64::from(packet.psn),
            payload: u32::from(packet.payload),
            tag: packet.tag,
            ecn: packet.flags & MARKED != 0,
            ack_request: packet.flags & ACK_REQUEST != 0,
        };
        if slot == Slot::COMPLETE {
            return Some(self.final_reply(cx, flow, id, &arrival));
        }
        if slot == Slot::NONE {
            slot = self.open(cx, flow);
        }
        let open = &mut self.open[slot.at()];
        let receiver = &mut open.receiver;
        let before = receiver.received_bytes();
        let held = cx.nics.is_shared.then(|| receiver.early_bytes());
        if let Some(held) = held {
            receiver.limit_early(cx.nics.share(host, held));
        }
        let (answer, complete) = receiver.on_data(plan.transports.of(open.transport), Time::from_ps(cx.now), &arrival);
        if receiver.received_bytes() != before {
            // Cells take turns within a window, so time may step back.
            self.last_data = self.last_data.max(cx.now);
        }
        if let Some(held) = held {
            cx.nics.note(host, held, receiver.early_bytes());
        }
        if complete {
            self.close(cx, flow, slot, id);
            return answer;
        }
        if let Some(deadline) = open.arm() {
            cx.host_event(deadline.ps(), host, Event::FlowTimer { host, flow });
        }
        if !self.pacers.is_empty() {
            self.request(cx, host, slot, packet, id);
        }
        answer
    }

    pub(super) fn on_header(&mut self, cx: &mut Ctx<'_>, host: HostId, packet: &Packet, id: PacketId) -> Option<Reply> {
        let (plan, flow) = (cx.plan, FlowId(packet.flow));
        match self.slots.get(flow.0) {
            Slot::COMPLETE => {
                let arrival = DataArrival { psn: u64::from(packet.psn), tag: packet.tag, ..DataArrival::default() };
                Some(self.final_reply(cx, flow, id, &arrival))
            }
            slot => {
                let slot = if slot == Slot::NONE { self.open(cx, flow) } else { slot };
                if !self.pacers.is_empty() {
                    self.request(cx, host, slot, packet, id);
                }
                let request = packet.flags & ACK_REQUEST != 0;
                let Open { receiver, transport, .. } = &mut self.open[slot.at()];
                receiver.on_header(plan.transports.of(*transport), u64::from(packet.psn), packet.tag, request)
            }
        }
    }

    /// Notes the credit that the sender of an arrival requests.
    fn request(&mut self, cx: &mut Ctx<'_>, host: HostId, slot: Slot, packet: &Packet, id: PacketId) {
        let (open, pacer) = (&mut self.open[slot.at()], &mut self.pacers[host.at()]);
        let demand = cx.ports.queues.packets.demand(id);
        if demand > 0 {
            open.tag = packet.tag;
            pacer.pacer.request(slot.0, &mut open.credit, demand);
            if packet.kind == Kind::Header {
                pacer.pacer.on_trimmed(slot.0, &mut open.credit, cx.plan.wire_mtu);
            }
            pacer.arm(cx, host);
        }
    }

    /// Returns the grant that is due, a packet to the sender; `up` as [`CreditPacer::grant`] takes it.
    pub(super) fn grant(&mut self, cx: &mut Ctx<'_>, host: HostId, up: (u32, u32)) -> Option<Packet> {
        let (pacer, now) = (&mut self.pacers[host.at()], Time::from_ps(cx.now));
        if pacer.timer_at != now {
            return None;
        }
        pacer.timer_at = Time::MAX;
        let open = &mut self.open;
        let (slot, granted) = pacer.pacer.grant(now, up, |slot| &mut open[slot as usize].credit)?;
        pacer.arm(cx, host);
        let open = &open[slot as usize];
        let flow = cx.plan.flow(open.flow);
        let mut grant = Packet {
            flow: open.flow.0,
            tag: open.tag,
            src: flow.dst,
            dst: flow.src,
            size: cx.plan.ack_size,
            kind: Kind::Grant,
            class: flow.class,
            balancer: cx.plan.balancer_of(&flow),
            ..Packet::default()
        };
        grant.head.set_wide(0, granted);
        Some(grant)
    }

    /// Returns the final reply once more: it was lost or is in flight.
    fn final_reply(&self, cx: &mut Ctx<'_>, flow: FlowId, id: PacketId, arrival: &DataArrival) -> Reply {
        cx.ports[id].complete(self.received.get(flow.0).done);
        let size = cx.shared.simulated_bytes(flow, cx.plan.flow(flow).size);
        cx.plan.transports.main().final_reply(size, arrival)
    }

    /// Returns a delayed acknowledgement that is due; arms the timer again where it is not.
    pub(super) fn on_timer(&mut self, cx: &mut Ctx<'_>, host: HostId, flow: FlowId) -> Option<Reply> {
        let now = Time::from_ps(cx.now);
        let open = self.open.get_mut(self.slots.get(flow.0).at()).filter(|open| open.timer_at == now)?;
        open.timer_at = Time::MAX;
        let reply = open.receiver.on_timer(cx.plan.transports.of(open.transport), now);
        if let Some(deadline) = open.arm() {
            cx.host_event(deadline.ps(), host, Event::FlowTimer { host, flow });
        }
        reply
    }

    fn open(&mut self, cx: &mut Ctx<'_>, flow: FlowId) -> Slot {
        let (plan, of) = (cx.plan, &cx.plan.flow(flow));
        let transport = plan.transports.number_of(plan.topology, of);
        let mut receiver = Receiver::new(plan.transports.of(transport), of.size);
        cx.nics.open(HostId(of.dst), queue_pairs(plan, of));
        if let Some(bytes) = cx.nics.reserve(HostId(of.dst)) {
            receiver.limit_early(bytes);
        }
        let credit = CreditSource::new(plan.transports.of(transport).credit_window().unwrap_or(0));
        let open = Open { receiver, transport, flow, timer_at: Time::MAX, credit, tag: 0 };
        let slot = Slot(self.open.insert(open) as u32);
        *self.slots.at_mut(flow.0) = slot;
        slot
    }

    fn close(&mut self, cx: &mut Ctx<'_>, flow: FlowId, slot: Slot, id: PacketId) {
        let receiver = self.open.remove(slot.at()).receiver;
        *self.slots.at_mut(flow.0) = Slot::COMPLETE;
        let received = self.received.at_mut(flow.0);
        received.done = cx.now;
        self.last_end = self.last_end.max(cx.now);
        if let Some(waits) = self.waits.get_mut(flow.at()) {
            *waits = cx.ports.queues.packets.waits(id);
            cx.ports[id].complete(cx.now);
        }
        received.note(&receiver);
        let bytes = received.received_bytes;
        let of = &cx.plan.flow(flow);
        cx.nics.close(HostId(of.dst), queue_pairs(cx.plan, of));
        if let Some(pacer) = self.pacers.get_mut(of.dst as usize) {
            pacer.pacer.remove(slot.0);
        }
        cx.nics.release(HostId(of.dst), receiver.early_limit());
        let size = cx.shared.simulated_bytes(flow, of.size);
        if bytes != size {
            cx.fail(cx.now, format!("flow {} of {size} B is complete with {bytes} unique bytes", flow.0));
        }
        if let Some(trigger) = of.on_received {
            cx.activate(trigger, HostId(of.dst));
        }
    }
}
