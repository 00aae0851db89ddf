//! The receiving side of flows: replies to arriving packets.

use super::outcome::Received;
use crate::{
    context::Ctx,
    event::Event,
    flow_table::FlowTable,
    ids::{FlowId, HostId, PacketId, Slot},
    measure::Waits,
    packet::{ACK_REQUEST, MARKED, Packet},
    plan::{Plan, TransportId},
};
use anabranch_transport::{DataArrival, Receiver, Reply};
use anabranch_units::Time;
use anabranch_workload::Flow;
use slab::Slab;

/// The receiver of an open flow, and the time of its pending timer; `Time::MAX`: none.
#[derive(Debug)]
pub(crate) struct Open {
    pub(super) receiver: Receiver,
    transport: TransportId,
    timer_at: Time,
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

#[derive(Debug)]
pub(crate) struct Receivers {
    pub(crate) open: Slab<Open>,
    /// Per flow of the run.
    pub(super) slots: FlowTable<Slot>,
    pub(super) received: FlowTable<Received>,
    /// Per flow of the run, where delays are attributed: waits of the packet that completed it.
    pub(crate) waits: Vec<Waits>,
    /// Time at which any flow last received a byte that it did not have, in picoseconds.
    pub(crate) last_data: u64,
    /// Time of the last completion.
    pub(crate) last_end: u64,
}

/// Queue pairs of a flow at its receiver.
fn queue_pairs(plan: &Plan<'_>, flow: &Flow) -> u32 {
    plan.balancers[usize::from(plan.balancer_of(flow))].host.capabilities().queue_pairs()
}

impl Receivers {
    pub(super) fn new(plan: &Plan<'_>) -> Self {
        let flows = if plan.measure.attribution { plan.flows.number_of_flows() } else { 0 };
        Receivers {
            open: Slab::new(),
            slots: FlowTable::of_flows(plan.flows, Slot::NONE, Slot::COMPLETE),
            received: FlowTable::of_flows(plan.flows, Received::default(), Received::default()),
            waits: vec![Waits::default(); flows],
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
        } else if let Some(deadline) = open.arm() {
            cx.host_event(deadline.ps(), host, Event::FlowTimer { host, flow });
        }
        answer
    }

    pub(super) fn on_header(&mut self, cx: &mut Ctx<'_>, packet: &Packet, id: PacketId) -> Option<Reply> {
        let (plan, flow) = (cx.plan, FlowId(packet.flow));
        match self.slots.get(flow.0) {
            Slot::COMPLETE => {
                let arrival = DataArrival { psn: u64::from(packet.psn), tag: packet.tag, ..DataArrival::default() };
                Some(self.final_reply(cx, flow, id, &arrival))
            }
            slot => {
                let slot = if slot == Slot::NONE { self.open(cx, flow) } else { slot };
                let request = packet.flags & ACK_REQUEST != 0;
                let Open { receiver, transport, .. } = &mut self.open[slot.at()];
                receiver.on_header(plan.transports.of(*transport), u64::from(packet.psn), packet.tag, request)
            }
        }
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
        let slot = Slot(self.open.insert(Open { receiver, transport, timer_at: Time::MAX }) as u32);
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
