//! Hosts: a NIC that pulls from the flows, and the receiving side.

use crate::{
    order,
    outcome::RxOutcome,
    packet::{ACK_REQUEST, Kind, MARKED, NONE, NOTIFICATION, Packet, RETRANSMISSION},
    partition::Partition,
    plan::Plan,
    transport::{Answer, Receiver},
    wires::tally_of,
};
use anabranch_engine::Event;
use anabranch_lb::{Decision, FlowInfo, HostScheme, Outgoing, registry};
use anabranch_transport::uet::DataArrival;
use anabranch_units::Time;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// A flow whose receiver has everything.
const COMPLETE: u32 = NONE - 1;

/// Gaps between the packets of a flow, as its NIC sends them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    pub(crate) all: u64,
    /// Of at least one, two and three base round trips.
    pub(crate) round_trips: [u64; 3],
}

impl Gaps {
    #[inline]
    fn note(&mut self, gap: u64, base_rtt: u64) {
        self.all += 1;
        if gap >= base_rtt {
            for (times, count) in self.round_trips.iter_mut().enumerate() {
                *count += u64::from(gap >= (times as u64 + 1) * base_rtt);
            }
        }
    }
}

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

/// A host: its schemes and the flows that may send.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) schemes: Vec<HostBalancer>,
    /// Flows with something to send and a window that allows it, served packet by packet in turn.
    pub(crate) round: VecDeque<u32>,
    /// Flows that may send from a time on (pacing, or held back by their scheme): time, flow, slot.
    paced: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Time of the earliest pending service event of its NIC; `u64::MAX`: none.
    armed_at: u64,
}

impl Host {
    pub(crate) fn new(plan: &Plan, me: u16, host: u32) -> Self {
        let mine = plan.owner_of_host(host) == me;
        let key = plan.topology.key(anabranch_topology::NodeId(host));
        let build = |b: &crate::Balancer| HostBalancer { scheme: b.host.build(plan.seed, key), free: vec![], slots: 0 };
        Host {
            schemes: if mine { plan.balancers.iter().map(build).collect() } else { vec![] },
            round: VecDeque::new(),
            paced: BinaryHeap::new(),
            armed_at: u64::MAX,
        }
    }

    #[inline]
    pub(crate) fn scheme(&mut self, balancer: u8) -> &mut HostBalancer {
        &mut self.schemes[balancer as usize]
    }

    /// A flow may send from `time` on.
    #[inline]
    pub(crate) fn pace(&mut self, time: u64, flow: u32, slot: u32) {
        self.paced.push(Reverse((time, flow, slot)));
    }
}

impl Partition<'_> {
    /// Works out what the NIC started to send at or before `now`.
    #[inline]
    pub(crate) fn nic_catch_up(&mut self, host: u32, now: u64) {
        let link = self.plan.host_up[host as usize];
        loop {
            let free_at = self.wires.ports[link as usize].busy_until;
            if free_at > now {
                return;
            }
            self.promote(host, free_at);
            if self.nic_start(host, link, free_at) {
                continue;
            }
            // Nothing may go: the NIC stands idle until pacing lets the next flow send.
            match self.hosts[host as usize].paced.peek() {
                Some(&Reverse((time, ..))) if time <= now => {
                    self.wires.ports[link as usize].busy_until = time.max(free_at);
                }
                _ => return,
            }
        }
    }

    /// Flows whose time has come at `start` join the round.
    #[inline]
    fn promote(&mut self, host: u32, start: u64) {
        while let Some(&Reverse((time, number, slot))) = self.hosts[host as usize].paced.peek()
            && time <= start
        {
            self.hosts[host as usize].paced.pop();
            if self.sender_of[number as usize] != slot {
                continue;
            }
            let flow = &mut self.senders[slot as usize];
            flow.paced = false;
            if !flow.in_round && flow.sender.ready(&self.plan.transport) {
                flow.in_round = true;
                self.hosts[host as usize].round.push_back(slot);
            }
        }
    }

    /// After something changed at `now` (the NIC having been caught up): an idle NIC starts at once.
    #[inline]
    pub(crate) fn nic_kick(&mut self, host: u32, now: u64) {
        let link = self.plan.host_up[host as usize];
        if self.wires.ports[link as usize].busy_until <= self.wires.before(now) {
            self.promote(host, now);
            self.nic_start(host, link, now);
        }
        self.arm_nic(host, link);
    }

    /// Asks for a service event no later than the NIC needs one.
    #[inline]
    pub(crate) fn arm_nic(&mut self, host: u32, link: u32) {
        let state = &self.hosts[host as usize];
        let port = &self.wires.ports[link as usize];
        let unpaused = |slot: &u32| port.paused >> self.senders[*slot as usize].class & 1 == 0;
        let waits = !state.round.is_empty() && (port.paused == 0 || state.round.iter().any(unpaused));
        let ready = waits || self.wires.can_send(link);
        let start = if ready {
            port.busy_until
        } else if let Some(&Reverse((time, ..))) = state.paced.peek() {
            time.max(port.busy_until)
        } else {
            return;
        };
        let wanted = self.wires.service_time(link, start);
        if wanted < self.hosts[host as usize].armed_at {
            self.hosts[host as usize].armed_at = wanted;
            self.wires.push_service(link, wanted);
        }
    }

    pub(crate) fn serve_nic(&mut self, host: u32, now: u64) {
        let state = &mut self.hosts[host as usize];
        if state.armed_at <= now {
            state.armed_at = u64::MAX;
        }
        self.nic_catch_up(host, now);
        self.nic_kick(host, now);
    }

    /// The NIC starts one packet at `start`: control first, then probes, then the flows in turn; false where it has
    /// nothing that may go.
    #[inline]
    fn nic_start(&mut self, host: u32, link: u32, start: u64) -> bool {
        let port = &self.wires.ports[link as usize];
        if port.control_head != NONE {
            let id = self.wires.pop_control(link);
            self.wires.transmit(self.plan, link, id, start);
            return true;
        }
        if port.data_packets > 0 && self.wires.can_send(link) {
            let id = self.wires.pop_data(self.plan, link, start);
            self.wires.packets[id].head.set_wide(0, start);
            self.wires.transmit(self.plan, link, id, start);
            return true;
        }
        let paused = port.paused;
        for _ in 0..self.hosts[host as usize].round.len() {
            let Some(slot) = self.hosts[host as usize].round.pop_front() else { break };
            if paused >> self.senders[slot as usize].class & 1 == 1 {
                self.hosts[host as usize].round.push_back(slot);
            } else if self.send_of(host, link, slot, start) {
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
        let next_avail = flow.sender.next_avail();
        if next_avail > start {
            flow.paced = true;
            self.hosts[host as usize].pace(next_avail, flow.flow, slot);
            return false;
        }
        let Some(next) = flow.sender.peek(&plan.transport) else { return false };
        let (time, scheme_slot) = (Time::from_ps(start), flow.scheme_slot);
        let outgoing = Outgoing {
            psn: next.psn,
            bytes: next.payload,
            retransmission: next.retransmission,
            eligible_at: Time::from_ps(flow.eligible_at),
        };
        let scheme = &mut self.hosts[host as usize].schemes[flow.balancer as usize].scheme;
        let tag = match scheme.select(time, scheme_slot, &outgoing) {
            Decision::Send(_) if plan.plain_host[flow.balancer as usize] => 0,
            Decision::Send(tag) => tag,
            Decision::Hold(until) => {
                flow.paced = true;
                self.hosts[host as usize].pace(until.ps().max(start + 1), flow.flow, slot);
                return false;
            }
            Decision::Wait => {
                flow.waits = true;
                return false;
            }
        };
        flow.sender.send(&plan.transport, time, tag);
        let again = if next.retransmission { RETRANSMISSION } else { 0 };
        let request = if next.retransmission || flow.sender.wants_answer(&plan.transport) { ACK_REQUEST } else { 0 };
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
        let gap = start.wrapping_sub(std::mem::replace(&mut flow.last_sent, start));
        if gap <= start {
            self.gaps.note(gap, flow.base_rtt);
        }
        if next.psn == 0 && !next.retransmission {
            self.tx[flow.flow as usize].first_sent = start;
        }
        self.injected[0].add(&packet);
        let id = self.wires.packets.insert(packet);
        self.wires.transmit(plan, link, id, start);
        // Whoever may send by the time the NIC is free again need not wait in the heap.
        let free_at = self.wires.ports[link as usize].busy_until;
        self.enter_round(slot, start, free_at);
        // Segmentation offload hands a NIC whole bursts, which leave unbroken.
        if self.senders[slot as usize].in_round && self.senders[slot as usize].sender.keeps_turn() {
            let round = &mut self.hosts[host as usize].round;
            round.pop_back();
            round.push_front(slot);
        }
        self.arm_timer(slot);
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
            Kind::Probe => self.probe_arrival(host, id, &packet, now),
            Kind::ProbeReply => {
                self.wires.packets.remove(id);
                self.probe_reply_arrival(host, &packet, now);
            }
            Kind::Free | Kind::SwitchControl | Kind::Pause => {
                self.fail(format!("packet {id} ({:?}) arrives at host {host}", packet.kind));
            }
        }
    }

    #[inline]
    fn data_arrival(&mut self, host: u32, id: u32, packet: &Packet, now: u64) {
        let marked = packet.flags & MARKED != 0;
        self.marked += u64::from(marked);
        let number = packet.flow as usize;
        let mut slot = self.receiver_of[number];
        let arrival = DataArrival {
            psn: packet.psn,
            payload: u32::from(packet.payload),
            tag: packet.tag,
            ecn: marked,
            ack_request: packet.flags & ACK_REQUEST != 0,
        };
        let answer = if slot == COMPLETE {
            // The last ACK was lost or is still on its way: say it again.
            Some(self.plan.transport.final_answer(self.plan.flows.flows[number].size, &arrival))
        } else {
            if slot == NONE {
                slot = self.open_receiver(number);
            }
            let receiver = &mut self.receivers[slot as usize];
            let (answer, complete) = receiver.on_data(&self.plan.transport, Time::from_ps(now), &arrival);
            if complete {
                self.close_receiver(number, slot, now);
            } else if let Some(deadline) = receiver.deadline() {
                self.host_event(deadline.ps(), order::TIMER, host, packet.flow);
            }
            answer
        };
        match answer {
            Some(answer) => {
                let reply = self.answer(packet, &answer);
                self.send_control(host, id, reply, now);
            }
            None => self.wires.packets.remove(id),
        }
    }

    fn header_arrival(&mut self, host: u32, id: u32, packet: &Packet, now: u64) {
        let number = packet.flow as usize;
        let answer = match self.receiver_of[number] {
            COMPLETE => {
                let arrival = DataArrival { psn: packet.psn, tag: packet.tag, ..DataArrival::default() };
                self.plan.transport.final_answer(self.plan.flows.flows[number].size, &arrival)
            }
            slot => {
                let slot = if slot == NONE { self.open_receiver(number) } else { slot };
                self.receivers[slot as usize].on_header(&self.plan.transport, packet.psn, packet.tag)
            }
        };
        let reply = self.answer(packet, &answer);
        self.send_control(host, id, reply, now);
    }

    fn answer(&self, packet: &Packet, answer: &Answer) -> Packet {
        let flags = if answer.ecn { MARKED } else { 0 } | if answer.cnp { NOTIFICATION } else { 0 };
        Packet { head: answer.head, flags, ..self.reply(packet, answer.kind()) }
    }

    /// The receiver of a flow has waited long enough with its acknowledgement.
    pub(crate) fn receiver_timer(&mut self, number: u32, now: u64) {
        let slot = self.receiver_of[number as usize];
        let Some(receiver) = self.receivers.get_mut(slot as usize) else { return };
        if receiver.deadline() != Some(Time::from_ps(now)) {
            return;
        }
        let Some(reply) = receiver.on_timer(&self.plan.transport, Time::from_ps(now)) else { return };
        let flow = &self.plan.flows.flows[number as usize];
        let data = Packet {
            psn: reply.psn,
            flow: number,
            tag: reply.tag,
            src: flow.src,
            dst: flow.dst,
            class: flow.class,
            balancer: self.plan.flows.workloads[flow.workload as usize].load_balancer as u8,
            ..Packet::default()
        };
        let packet = self.answer(&data, &Answer::roce(&reply));
        let id = self.wires.packets.insert(packet);
        self.send_control(flow.dst, id, packet, now);
    }

    /// An answer to `packet`, on its way back with its tag.
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

    /// Sends an answer in the place of packet `id`.
    #[inline]
    pub(crate) fn send_control(&mut self, host: u32, id: u32, reply: Packet, now: u64) {
        self.injected[tally_of(reply.kind)].add(&reply);
        self.wires.packets[id] = reply;
        self.nic_catch_up(host, self.wires.before(now));
        let link = self.plan.host_up[host as usize];
        self.wires.enqueue_nic(self.plan, link, id, now);
        self.arm_nic(host, link);
    }

    fn open_receiver(&mut self, number: usize) -> u32 {
        let size = self.plan.flows.flows[number].size;
        let slot = self.receivers.insert(Receiver::new(&self.plan.transport, size)) as u32;
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
