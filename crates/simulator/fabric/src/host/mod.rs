//! Hosts: NICs that serve the flows, senders, receivers, and the host side of the schemes.

mod flow;
mod memory;
mod nic;
mod outcome;
mod ports;
mod probe;
mod receiver;
mod sender;

pub(crate) use flow::{SenderFlow, sample_sender};
pub(crate) use memory::NicUses;
pub(crate) use outcome::{NEVER, Received, Sent, known};
pub(crate) use ports::wake_at_changes;

use crate::{
    context::Ctx,
    ids::{FlowId, HostId, PacketId, Slot},
    measure::{Record, Waits},
    packet::{Kind, LAST_HOP, MARKED, Packet, SIGNALLED},
    plan::{Plan, ReplyField},
};
use anabranch_lb::{HostScheme, SchemeCounters};
use anabranch_transport::{Receiver, Reply, Sender};
use anabranch_units::Time;
use nic::Nics;
use receiver::{Open, Receivers};
use sender::Senders;

#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) nics: Nics,
    senders: Senders,
    pub(crate) receivers: Receivers,
}

impl Hosts {
    pub(crate) fn new(plan: &Plan<'_>, me: u16, record: Option<&anabranch_lb::Record>) -> Self {
        Hosts { nics: Nics::new(plan, me, record), senders: Senders::new(plan), receivers: Receivers::new(plan) }
    }

    // ---- events ----

    #[inline]
    pub(crate) fn on_arrival(&mut self, cx: &mut Ctx<'_>, host: HostId, id: PacketId, order: u32) {
        cx.arrival = order;
        let packet = cx.ports.deliver(id);
        let answer = match packet.kind {
            Kind::Data => self.receivers.on_data(cx, host, &packet, id),
            Kind::Header => self.receivers.on_header(cx, host, &packet, id),
            Kind::Ack | Kind::Nack => {
                self.senders.on_ack(&mut self.nics, cx, host, &packet, id);
                return cx.ports.remove(id);
            }
            Kind::Probe => {
                let reply = packet.reply(Kind::ProbeReply, cx.plan.ack_size);
                // Word 4 has the course of the way out (the first words the time of sending).
                let (payload, flags) = (packet.payload, packet.flags & MARKED);
                let mut reply = Packet { head: packet.head, payload, flags, ..reply };
                reply.head.0[4] = 0;
                return self.nics.send_control(cx, host, id, reply);
            }
            Kind::ProbeReply => {
                cx.ports.remove(id);
                return self.senders.on_probe_reply(&mut self.nics, cx, host, &packet);
            }
            Kind::Grant => {
                self.senders.on_grant(&mut self.nics, cx, host, &packet, id);
                return cx.ports.remove(id);
            }
            Kind::Free | Kind::SwitchControl | Kind::Pause => {
                return cx.fail(cx.now, format!("packet {} ({:?}) arrives at host {}", id.0, packet.kind, host.0));
            }
        };
        match answer {
            Some(answer) => self.answer(cx, host, id, &packet, &answer),
            None => cx.ports.remove(id),
        }
    }

    pub(crate) fn on_timer(&mut self, cx: &mut Ctx<'_>, host: HostId, flow: FlowId) {
        if flow == FlowId::PACER {
            let up = self.nics.ports_up(cx, host);
            if let Some(grant) = self.receivers.grant(cx, host, up) {
                let id = cx.ports.place();
                // No packet's arrival is its cause.
                cx.arrival = u32::MAX;
                self.nics.send_control(cx, host, id, grant);
            }
            return;
        }
        let plan = cx.plan;
        let of = &plan.flow(flow);
        if of.src == host.0 {
            self.senders.on_timer(&mut self.nics, cx, flow);
        } else if let Some(answer) = self.receivers.on_timer(cx, host, flow) {
            let data = Packet {
                flow: flow.0,
                src: of.src,
                dst: of.dst,
                class: of.class,
                balancer: plan.balancer_of(of),
                ..Packet::default()
            };
            let id = cx.ports.place();
            cx.ports[id] = data;
            cx.arrival = u32::MAX;
            self.answer(cx, host, id, &data, &answer);
        }
    }

    pub(crate) fn on_start(&mut self, cx: &mut Ctx<'_>, flow: FlowId) {
        self.senders.start(&mut self.nics, cx, flow);
    }

    /// Sends a reply to `data` in the slot of packet `id`.
    #[inline(always)]
    fn answer(&mut self, cx: &mut Ctx<'_>, host: HostId, id: PacketId, data: &Packet, answer: &Reply) {
        let mut reply = data.reply(Kind::Ack, cx.plan.ack_size);
        reply.set_ack(answer);
        reply.flags |= data.flags & LAST_HOP;
        match cx.plan.reply_fields[usize::from(data.balancer)] {
            ReplyField::None => {}
            // The time of sending gives every reply another entropy value.
            ReplyField::Entropy => reply.payload = (cx.now ^ cx.now >> 16) as u16,
            // A delayed acknowledgement is of no packet.
            ReplyField::Signal => (reply.payload, reply.flags) = (data.signal().0, reply.flags | SIGNALLED),
        }
        cx.ports.queues.packets.hand_over(id, &mut reply);
        self.nics.send_control(cx, host, id, reply);
    }

    // ---- read access ----

    pub(crate) fn sender(&self, flow: FlowId) -> Option<&SenderFlow> {
        self.nics.flows.get(self.senders.slots.get(flow.0).at())
    }

    pub(crate) fn receiver(&self, flow: FlowId) -> Option<&Receiver> {
        self.receivers.open.get(self.receivers.slots.get(flow.0).at()).map(|open| &open.receiver)
    }

    pub(crate) fn sender_mut(&mut self, flow: FlowId) -> Option<&mut Sender> {
        let slot = self.senders.slots.get(flow.0).at();
        self.nics.flows.get_mut(slot).map(|open| &mut open.sender)
    }

    pub(crate) fn receiver_mut(&mut self, flow: FlowId) -> Option<&mut Receiver> {
        self.receivers.open.get_mut(self.receivers.slots.get(flow.0).at()).map(|open| &mut open.receiver)
    }

    /// Returns the flows that are open at their receiver, in order.
    pub(crate) fn receiving(&self) -> impl Iterator<Item = FlowId> {
        let flows = self.receivers.slots.numbers().map(FlowId);
        flows.filter(|flow| self.receiver(*flow).is_some())
    }

    pub(crate) fn is_complete(&self, flow: FlowId) -> bool {
        self.receivers.slots.get(flow.0) == Slot::COMPLETE
    }

    /// Returns every flow that is open at its sender, in arbitrary order.
    pub(crate) fn open_senders(&self) -> impl ExactSizeIterator<Item = &SenderFlow> {
        self.nics.flows.iter().map(|(_, flow)| flow)
    }

    pub(crate) fn scheme_counters(&self, balancer: usize) -> SchemeCounters {
        let mut sum = SchemeCounters::default();
        let own = self.nics.schemes.iter().filter_map(|host| host.get(balancer));
        own.for_each(|own| sum += own.scheme().counters());
        sum
    }

    pub(crate) fn sent(&self, flow: FlowId) -> Sent {
        self.nics.sent.get(flow.0)
    }

    pub(crate) fn received(&self, flow: FlowId) -> Received {
        self.receivers.received.get(flow.0)
    }

    pub(crate) fn note_open_flows(&mut self) {
        for (_, flow) in &self.nics.flows {
            self.nics.sent.at_mut(flow.of.flow.0).note(flow);
        }
        let Receivers { open, slots, received, .. } = &mut self.receivers;
        for flow in slots.numbers() {
            if let Some(Open { receiver, .. }) = open.get(slots.get(flow).at()) {
                received.at_mut(flow).note(receiver);
            }
        }
    }

    pub(crate) fn has_ended(&self, template: usize, group: u32) -> bool {
        self.senders.slots.has_ended(template, group)
    }

    /// Passes the outcomes of a group of a template on and releases its state: no flow of it is open here.
    pub(crate) fn end_group(&mut self, cx: &mut Ctx<'_>, template: usize, group: u32) {
        let bytes = cx.shared.group_ends.contribute(
            cx.plan,
            cx.me,
            (template, group),
            |flow| self.sent(flow),
            |flow| self.received(flow),
        );
        cx.ended_bytes.unique += bytes.unique;
        cx.ended_bytes.size += bytes.size;
        self.nics.sent.end(template, group);
        self.senders.slots.end(template, group);
        self.receivers.slots.end(template, group);
        self.receivers.received.end(template, group);
    }

    /// Returns the timeline of a flow at its sender up to its last byte, received at `done`, where delays are attributed.
    pub(crate) fn record(&self, flow: FlowId, done: u64) -> Option<Record> {
        match self.sender(flow) {
            Some(open) => open.of.timeline.as_ref()?.until(done),
            None => *self.nics.records.get(flow.at())?,
        }
    }

    /// Returns `true` if an open flow retransmits after a timeout.
    pub(crate) fn has_timeouts(&self, plan: &Plan<'_>) -> bool {
        let retransmits = |open: &SenderFlow| plan.transports.of(open.of.transport).max_timeout().is_some();
        self.open_senders().any(|open| !open.sender.is_failed() && retransmits(open))
    }

    /// Returns the number of flows whose queue pair is in error.
    pub(crate) fn failed(&self) -> usize {
        self.open_senders().filter(|open| open.sender.is_failed()).count()
    }

    /// Returns the open flow with the lowest number and a message about it.
    pub(crate) fn open_flow(&self) -> Option<(FlowId, String)> {
        let open = self.open_senders().min_by_key(|open| open.of.flow)?;
        let (flow, src, dst) = (open.of.flow, open.of.src, open.of.dst);
        let started = Time::from_ps(self.sent(flow).started);
        let message = format!(
            "flow {} (host{} to host{}, started at {started}) has {} of {} packets acknowledged",
            flow.0,
            src.0,
            dst.0,
            open.sender.cumulative(),
            open.sender.packets(),
        );
        Some((flow, message))
    }

    /// Returns the bytes of the hosts of a partition that has had `packets` under way.
    pub(crate) fn memory(&self, plan: &Plan<'_>, packets: usize) -> usize {
        let window = (plan.transports.window_packets() as usize).min(packets).next_power_of_two();
        let timelines = self.open_senders().filter_map(|open| open.of.timeline.as_ref());
        // A sender keeps 16 B per packet that was in its window, a receiver one bit.
        self.nics.flows.capacity() * (size_of::<SenderFlow>() + 16 * window)
            + self.receivers.open.capacity() * (size_of::<Open>() + window / 8)
            + self.nics.sent.memory()
            + self.receivers.received.memory()
            + self.senders.slots.memory()
            + self.receivers.slots.memory()
            + plan.hosts as usize * Nics::bytes_per_host()
            + timelines.map(|timeline| timeline.bytes()).sum::<usize>()
            + self.nics.records.capacity() * size_of::<Option<Record>>()
            + self.receivers.waits.capacity() * size_of::<Waits>()
    }
}
