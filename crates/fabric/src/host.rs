//! Hosts: a NIC that pulls from the flows, and the receiving side.

use crate::{
    order,
    outcome::RxOutcome,
    packet::{ACK_REQUEST, Kind, MARKED, NONE, Packet, RETRANSMISSION},
    partition::Partition,
    plan::Plan,
    port::ARMED,
    wires::tally_of,
};
use anabranch_engine::Event;
use anabranch_lb::{Decision, FlowInfo, HostScheme, Outgoing, registry};
use anabranch_transport::{
    Ack,
    uet::{DataArrival, UetReceiver},
};
use anabranch_units::Time;
use std::collections::VecDeque;

/// A flow whose receiver has everything.
const COMPLETE: u32 = NONE - 1;

/// A host's scheme and the slots of its flows.
#[derive(Debug)]
pub(crate) struct HostBalancer {
    pub(crate) scheme: registry::Host,
    free: Vec<u32>,
    slots: u32,
}

impl HostBalancer {
    pub(crate) fn open(&mut self, now: Time, info: &FlowInfo<'_>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.scheme.open(now, slot, info);
        slot
    }

    pub(crate) fn close(&mut self, slot: u32) {
        self.scheme.close(slot);
        self.free.push(slot);
    }

    pub(crate) fn paths_changed(&mut self, now: Time, slot: u32, dead: &[bool]) {
        self.scheme.on_paths_changed(now, slot, dead);
    }
}

/// A host: its schemes and the round of flows that may send.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) schemes: Vec<HostBalancer>,
    /// Flows with something to send and a window that allows it, served packet by packet in turn.
    pub(crate) round: VecDeque<u32>,
}

impl Host {
    pub(crate) fn new(plan: &Plan, me: u16, host: u32) -> Self {
        let mine = plan.owner_of_host(host) == me;
        let key = plan.topology.key(anabranch_topology::NodeId(host));
        let build = |b: &crate::Balancer| HostBalancer { scheme: b.host.build(plan.seed, key), free: vec![], slots: 0 };
        Host { schemes: if mine { plan.balancers.iter().map(build).collect() } else { vec![] }, round: VecDeque::new() }
    }

    #[inline]
    pub(crate) fn scheme(&mut self, balancer: u8) -> &mut HostBalancer {
        &mut self.schemes[balancer as usize]
    }
}

impl Partition<'_> {
    /// Works out what the NIC started to send at or before `now`.
    #[inline]
    pub(crate) fn nic_catch_up(&mut self, host: u32, now: u64) {
        let link = self.plan.host_up[host as usize];
        loop {
            let free_at = self.wires.ports[link as usize].busy_until;
            if free_at > now || !self.nic_start(host, link, free_at) {
                return;
            }
        }
    }

    /// After something changed at `now` (the NIC having been caught up): an idle NIC starts at once.
    #[inline]
    pub(crate) fn nic_kick(&mut self, host: u32, now: u64) {
        let link = self.plan.host_up[host as usize];
        if self.wires.ports[link as usize].busy_until <= now && !self.nic_start(host, link, now) {
            return;
        }
        let waiting = self.wires.ports[link as usize].backlogged() || !self.hosts[host as usize].round.is_empty();
        if waiting && self.wires.ports[link as usize].flags & ARMED == 0 {
            self.wires.arm(link);
        }
    }

    pub(crate) fn serve_nic(&mut self, host: u32, now: u64) {
        let link = self.plan.host_up[host as usize];
        self.wires.ports[link as usize].flags &= !ARMED;
        self.nic_catch_up(host, now);
        self.nic_kick(host, now);
    }

    /// The NIC starts one packet at `start`, control first, then the flows in turn; false where it has nothing.
    #[inline]
    fn nic_start(&mut self, host: u32, link: u32, start: u64) -> bool {
        if self.wires.ports[link as usize].control_head != NONE {
            let id = self.wires.pop_control(link);
            self.wires.transmit(self.plan, link, id, start);
            return true;
        }
        while let Some(slot) = self.hosts[host as usize].round.pop_front() {
            if self.send_of(host, link, slot, start) {
                return true;
            }
        }
        false
    }

    /// The flow in `slot`, whose turn it is, sends a packet at `start`; false where it may not after all.
    #[inline]
    fn send_of(&mut self, host: u32, link: u32, slot: u32, start: u64) -> bool {
        let plan = self.plan;
        let flow = &mut self.senders[slot as usize];
        flow.in_round = false;
        if !flow.sender.ready(&plan.transport) {
            return false;
        }
        let Some(next) = flow.sender.peek(&plan.transport) else { return false };
        let (time, scheme_slot) = (Time::from_ps(start), flow.scheme_slot);
        let outgoing =
            Outgoing { psn: next.psn, bytes: next.payload, retransmission: next.retransmission, eligible_at: time };
        let scheme = &mut self.hosts[host as usize].schemes[flow.balancer as usize].scheme;
        let tag = match scheme.select(time, scheme_slot, &outgoing) {
            Decision::Send(tag) => tag,
            Decision::Hold(until) => {
                flow.held_until = until.ps().max(start + 1);
                self.arm_timer(slot);
                return false;
            }
            Decision::Wait => return false,
        };
        flow.sender.send(&plan.transport, time, tag);
        let again = if next.retransmission { RETRANSMISSION } else { 0 };
        let request = if next.retransmission || !flow.sender.ready(&plan.transport) { ACK_REQUEST } else { 0 };
        let payload = next.payload as u16;
        let packet = Packet {
            psn: next.psn,
            flow: flow.flow,
            tag,
            src: flow.src,
            dst: flow.dst,
            size: payload + plan.data_overhead,
            payload,
            kind: Kind::Data,
            class: flow.class,
            flags: again | request,
            balancer: flow.balancer,
            ..Packet::default()
        };
        if flow.last_tag != Some(tag) {
            flow.path_switches += u64::from(flow.last_tag.is_some());
            flow.last_tag = Some(tag);
        }
        if next.psn == 0 && !next.retransmission {
            self.tx[flow.flow as usize].first_sent = start;
        }
        self.injected[0].add(&packet);
        let needs_timer = flow.timer_at == u64::MAX;
        self.enter_round(slot);
        if needs_timer {
            self.arm_timer(slot);
        }
        let id = self.wires.packets.insert(packet);
        self.wires.transmit(plan, link, id, start);
        true
    }

    /// A packet has reached its host.
    #[inline]
    pub(crate) fn host_arrival(&mut self, host: u32, id: u32, now: u64) {
        let packet = self.wires.packets[id];
        self.delivered[tally_of(packet.kind)].add(&packet);
        match packet.kind {
            Kind::Data => self.data_arrival(host, id, &packet, now),
            Kind::Header => self.header_arrival(host, id, &packet, now),
            Kind::Ack => {
                self.wires.packets.remove(id);
                self.ack_arrival(host, &packet, now);
            }
            Kind::Nack => {
                self.wires.packets.remove(id);
                self.nack_arrival(host, &packet, now);
            }
            Kind::Free => self.fail(format!("packet {id} arrives at host {host} after its end")),
        }
    }

    #[inline]
    fn data_arrival(&mut self, host: u32, id: u32, packet: &Packet, now: u64) {
        let marked = packet.flags & MARKED != 0;
        self.marked += u64::from(marked);
        let number = packet.flow as usize;
        let mut slot = self.receiver_of[number];
        let ack = if slot == COMPLETE {
            // The last ACK was lost or is still on its way: say it again.
            Some(self.final_ack(number, packet, marked))
        } else {
            if slot == NONE {
                slot = self.open_receiver(number);
            }
            let receiver = &mut self.receivers[slot as usize];
            let arrival = DataArrival {
                psn: packet.psn,
                payload: u32::from(packet.payload),
                tag: packet.tag,
                ecn: marked,
                ack_request: packet.flags & ACK_REQUEST != 0,
            };
            let received = receiver.on_data(&self.plan.transport, &arrival);
            if received.complete {
                self.close_receiver(number, slot, now);
            }
            received.reply
        };
        match ack {
            Some(ack) => {
                let reply = Packet {
                    head: Packet::answer(ack.cumulative, ack.bitmap, (ack.bitmap_base - ack.cumulative) as u32),
                    flags: if ack.ecn { MARKED } else { 0 },
                    ..self.reply(packet, Kind::Ack)
                };
                self.send_control(host, id, reply, now);
            }
            None => self.wires.packets.remove(id),
        }
    }

    fn header_arrival(&mut self, host: u32, id: u32, packet: &Packet, now: u64) {
        let number = packet.flow as usize;
        let reply = match self.receiver_of[number] {
            COMPLETE => {
                let ack = self.final_ack(number, packet, false);
                Packet { head: Packet::answer(ack.cumulative, 0, 0), ..self.reply(packet, Kind::Ack) }
            }
            slot => {
                let slot = if slot == NONE { self.open_receiver(number) } else { slot };
                let nack = self.receivers[slot as usize].on_header(&self.plan.transport, packet.psn, packet.tag);
                Packet { head: Packet::answer(nack.cumulative, 0, 0), ..self.reply(packet, Kind::Nack) }
            }
        };
        self.send_control(host, id, reply, now);
    }

    fn final_ack(&self, number: usize, packet: &Packet, marked: bool) -> Ack {
        let packets = self.plan.transport.packets(self.plan.flows.flows[number].size);
        Ack { cumulative: packets, bitmap_base: packets, bitmap: 0, psn: packet.psn, tag: packet.tag, ecn: marked }
    }

    /// An answer to `packet`, on its way back with its tag.
    fn reply(&self, packet: &Packet, kind: Kind) -> Packet {
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

    /// Sends an answer in the place of packet `id`.
    #[inline]
    fn send_control(&mut self, host: u32, id: u32, reply: Packet, now: u64) {
        self.injected[2].add(&reply);
        self.wires.packets[id] = reply;
        self.nic_catch_up(host, now);
        let link = self.plan.host_up[host as usize];
        self.wires.enqueue_nic(self.plan, link, id, now);
    }

    fn open_receiver(&mut self, number: usize) -> u32 {
        let size = self.plan.flows.flows[number].size;
        let slot = self.receivers.insert(UetReceiver::new(&self.plan.transport, size)) as u32;
        self.receiver_of[number] = slot;
        slot
    }

    fn close_receiver(&mut self, number: usize, slot: u32, now: u64) {
        let receiver = self.receivers.remove(slot as usize);
        self.receiver_of[number] = COMPLETE;
        let flow = &self.plan.flows.flows[number];
        self.rx[number] = RxOutcome { done: now, ..RxOutcome::of(&receiver) };
        if receiver.received_bytes() != flow.size {
            let bytes = receiver.received_bytes();
            self.fail(format!("flow {number} of {} B is complete with {bytes} unique bytes", flow.size));
        }
        if let Some(trigger) = flow.on_received {
            self.pull(trigger.0, flow.dst, now);
        }
    }

    /// Asks for an event of kind `kind` at `host`.
    pub(crate) fn host_event(&mut self, time: u64, kind: u32, host: u32, payload: u32) {
        debug_assert_eq!(kind & !order::KIND, 0);
        self.wires.wheel.push(Event { time, order: kind | host, payload });
    }
}
