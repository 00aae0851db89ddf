//! What arrives at a host.

use super::Received;
use crate::{
    event::Event,
    ids::{FlowId, HostId, PacketId, Slot},
    packet::{ACK_REQUEST, Kind, LAST_HOP, MARKED, Packet},
    partition::Partition,
};
use anabranch_transport::{Answer, DataArrival, Receiver};
use anabranch_units::Time;

impl Partition<'_> {
    /// A packet has reached its host.
    #[inline]
    pub(crate) fn host_arrival(&mut self, host: HostId, id: PacketId, now: u64) {
        let packet = self.ports.packets[id];
        self.ports.books.delivered(&packet);
        match packet.kind {
            Kind::Data => self.data_arrival(host, id, &packet, now),
            Kind::Header => self.header_arrival(host, id, &packet, now),
            Kind::Ack | Kind::Nack => {
                self.ports.packets.remove(id);
                self.answer_arrival(host, &packet, now);
            }
            Kind::Probe => self.probe_arrival(host, id, &packet, now),
            Kind::ProbeReply => {
                self.ports.packets.remove(id);
                self.probe_reply_arrival(host, &packet, now);
            }
            Kind::Free | Kind::SwitchControl | Kind::Pause => {
                self.fail(now, format!("packet {} ({:?}) arrives at host {}", id.0, packet.kind, host.0));
            }
        }
    }

    #[inline]
    fn data_arrival(&mut self, host: HostId, id: PacketId, packet: &Packet, now: u64) {
        let flow = FlowId(packet.flow);
        let mut slot = self.hosts.receiver_of[flow.at()];
        let arrival = DataArrival {
            psn: packet.psn,
            payload: u32::from(packet.payload),
            tag: packet.tag,
            ecn: packet.flags & MARKED != 0,
            ack_request: packet.flags & ACK_REQUEST != 0,
        };
        let answer = if slot == Slot::COMPLETE {
            // The last answer was lost or is still on its way: once more.
            Some(self.plan.transport.final_answer(self.plan.flows.flows[flow.at()].size, &arrival))
        } else {
            if slot == Slot::NONE {
                slot = self.open_receiver(flow);
            }
            let receiver = &mut self.hosts.receivers[slot.at()];
            let (answer, complete) = receiver.on_data(&self.plan.transport, Time::from_ps(now), &arrival);
            if complete {
                self.close_receiver(flow, slot, now);
            } else if let Some(deadline) = receiver.deadline() {
                self.host_event(deadline.ps(), host, Event::FlowTimer { host, flow });
            }
            answer
        };
        match answer {
            Some(answer) => self.send_answer(host, id, packet, &answer, now),
            None => self.ports.packets.remove(id),
        }
    }

    fn header_arrival(&mut self, host: HostId, id: PacketId, packet: &Packet, now: u64) {
        let flow = FlowId(packet.flow);
        let answer = match self.hosts.receiver_of[flow.at()] {
            Slot::COMPLETE => {
                let arrival = DataArrival { psn: packet.psn, tag: packet.tag, ..DataArrival::default() };
                Some(self.plan.transport.final_answer(self.plan.flows.flows[flow.at()].size, &arrival))
            }
            slot => {
                let slot = if slot == Slot::NONE { self.open_receiver(flow) } else { slot };
                self.hosts.receivers[slot.at()].on_header(&self.plan.transport, packet.psn, packet.tag)
            }
        };
        match answer {
            Some(answer) => self.send_answer(host, id, packet, &answer, now),
            None => self.ports.packets.remove(id),
        }
    }

    /// The receiver of a flow has waited long enough with its acknowledgement.
    pub(crate) fn receiver_timer(&mut self, flow: FlowId, now: u64) {
        let slot = self.hosts.receiver_of[flow.at()];
        let Some(receiver) = self.hosts.receivers.get_mut(slot.at()) else { return };
        if receiver.deadline() != Some(Time::from_ps(now)) {
            return;
        }
        let Some(answer) = receiver.on_timer(&self.plan.transport, Time::from_ps(now)) else { return };
        let of = &self.plan.flows.flows[flow.at()];
        let data = Packet {
            flow: flow.0,
            src: of.src,
            dst: of.dst,
            class: of.class,
            balancer: self.plan.balancer_of(of),
            ..Packet::default()
        };
        let id = self.ports.packets.insert(data);
        self.send_answer(HostId(of.dst), id, &data, &answer, now);
    }

    /// Sends an answer to `data` in the place of packet `id`.
    #[inline]
    fn send_answer(&mut self, host: HostId, id: PacketId, data: &Packet, answer: &Answer, now: u64) {
        let mut reply = self.reply(data, Kind::Ack);
        reply.set_answer(answer);
        reply.flags |= data.flags & LAST_HOP;
        if self.plan.transport.fresh_acks() && self.plan.hashed[usize::from(data.balancer)] {
            // The time of sending: another entropy value for every answer, the same in every run.
            reply.payload = (now ^ now >> 16) as u16;
        }
        self.send_control(host, id, reply, now);
    }

    /// A control packet that goes back where `packet` came from.
    #[inline]
    pub(crate) fn reply(&self, packet: &Packet, kind: Kind) -> Packet {
        Packet {
            psn: packet.psn,
            flow: packet.flow,
            tag: packet.tag,
            src: packet.dst,
            dst: packet.src,
            size: self.plan.ack_size,
            kind,
            class: packet.class,
            balancer: packet.balancer,
            ..Packet::default()
        }
    }

    /// Sends a control packet in the place of packet `id`.
    #[inline]
    pub(super) fn send_control(&mut self, host: HostId, id: PacketId, control: Packet, now: u64) {
        self.ports.books.born(&control);
        self.ports.packets[id] = control;
        self.advance_nic(host, self.ports.before(now));
        let port = self.plan.nic(host);
        self.ports.join_nic(port, id, now);
        self.list_nic(host, port);
    }

    fn open_receiver(&mut self, flow: FlowId) -> Slot {
        let size = self.plan.flows.flows[flow.at()].size;
        let slot = Slot(self.hosts.receivers.insert(Receiver::new(&self.plan.transport, size)) as u32);
        self.hosts.receiver_of[flow.at()] = slot;
        slot
    }

    fn close_receiver(&mut self, flow: FlowId, slot: Slot, now: u64) {
        let receiver = self.hosts.receivers.remove(slot.at());
        self.hosts.receiver_of[flow.at()] = Slot::COMPLETE;
        let received: &mut Received = &mut self.hosts.received[flow.at()];
        received.done = now;
        received.note(&receiver);
        let bytes = received.received_bytes;
        let of = &self.plan.flows.flows[flow.at()];
        if bytes != of.size {
            self.fail(now, format!("flow {} of {} B is complete with {bytes} unique bytes", flow.0, of.size));
        }
        if let Some(trigger) = of.on_received {
            self.activate(trigger.0, HostId(of.dst), now);
        }
    }

    /// Asks for an event at a host of this partition.
    #[inline]
    pub(crate) fn host_event(&mut self, time: u64, host: HostId, event: Event) {
        self.ports.cells.push(u32::from(self.plan.cell_of(host.0)), event.at(time));
    }
}
