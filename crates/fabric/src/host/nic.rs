//! A NIC: a port that is fed by flows. Path, window and pacing are those of the very moment at which a transmission
//! starts.

use crate::{
    ids::{HostId, PacketId, PortId, Slot},
    packet::{ACK_REQUEST, Kind, Packet, RETRANSMISSION},
    partition::Partition,
};
use anabranch_lb::{Decision, HostScheme, Outgoing};
use anabranch_units::Time;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// Who may send at a host.
#[derive(Debug)]
pub(crate) struct Nic {
    /// Flows with something to send and a window that allows it, served packet by packet in turn.
    round: VecDeque<Slot>,
    /// Flows that may send from a time on (pacing, or held back by their scheme): time, flow, slot.
    paced: BinaryHeap<Reverse<(u64, u32, Slot)>>,
    /// Time of the earliest pending service event, where the NIC needs any.
    armed_at: u64,
}

impl Default for Nic {
    fn default() -> Self {
        Nic { round: VecDeque::new(), paced: BinaryHeap::new(), armed_at: u64::MAX }
    }
}

impl Nic {
    /// The flow may send from `time` on.
    #[inline]
    pub(super) fn pace(&mut self, time: u64, flow: u32, slot: Slot) {
        self.paced.push(Reverse((time, flow, slot)));
    }

    #[inline]
    pub(super) fn join_round(&mut self, slot: Slot) {
        self.round.push_back(slot);
    }

    pub(super) fn leave_round(&mut self, slot: Slot) {
        self.round.retain(|other| *other != slot);
    }

    #[inline]
    fn paced_until(&self) -> Option<u64> {
        self.paced.peek().map(|Reverse((time, ..))| *time)
    }
}

impl Partition<'_> {
    /// Works out what the NIC of `host` started to send at or before `until`.
    #[inline]
    pub(crate) fn advance_nic(&mut self, host: HostId, until: u64) {
        let port = self.plan.nic(host);
        loop {
            let start = self.ports.free_at(port);
            if start > until {
                return;
            }
            if self.start_next(host, port, start, until) {
                continue;
            }
            // Nothing may go: the NIC stands idle until pacing lets the next flow send.
            match self.hosts.nics[host.at()].paced_until() {
                Some(time) if time <= until => self.ports.idle_until(port, time),
                _ => return,
            }
        }
    }

    /// After something changed at `now` (the NIC having been worked out): an idle NIC starts at once.
    #[inline]
    pub(crate) fn wake_nic(&mut self, host: HostId, now: u64) {
        let port = self.plan.nic(host);
        if self.ports.free_at(port) <= self.ports.before(now) {
            self.start_next(host, port, now, now);
        }
        self.list_nic(host, port);
    }

    /// When the NIC can start to send next, as things stand; `None`: there is nothing.
    #[inline]
    pub(crate) fn nic_starts(&self, host: HostId, port: PortId) -> Option<u64> {
        let nic = &self.hosts.nics[host.at()];
        let (free_at, paused) = (self.ports.free_at(port), self.ports.paused(port));
        let unpaused = |slot: &Slot| paused >> self.hosts.senders[slot.at()].class & 1 == 0;
        let waits = !nic.round.is_empty() && (paused == 0 || nic.round.iter().any(unpaused));
        if waits || self.ports.can_send(port) { Some(free_at) } else { nic.paced_until().map(|time| time.max(free_at)) }
    }

    /// Sees to it that the NIC is worked out in time.
    #[inline]
    pub(crate) fn list_nic(&mut self, host: HostId, port: PortId) {
        let Some(start) = self.nic_starts(host, port) else { return };
        self.ports.list(port);
        if self.ports.is_prompt(port) {
            self.arm_nic(host, port, start);
        }
    }

    /// Asks for a service event no later than the NIC needs one.
    #[cold]
    pub(crate) fn arm_nic(&mut self, host: HostId, port: PortId, start: u64) {
        let time = self.ports.service_time(port, start);
        let nic = &mut self.hosts.nics[host.at()];
        if time < nic.armed_at && time < self.ports.cells.window_end() {
            nic.armed_at = time;
            self.ports.ask_for_service(port, time);
        }
    }

    /// A service event of a NIC.
    pub(crate) fn serve_nic(&mut self, host: HostId, now: u64) {
        let nic = &mut self.hosts.nics[host.at()];
        if nic.armed_at <= now {
            nic.armed_at = u64::MAX;
        }
        self.advance_nic(host, self.ports.before(now));
        self.list_nic(host, self.plan.nic(host));
    }

    /// Flows whose time has come at `start` join the round.
    #[inline]
    fn promote(&mut self, host: HostId, start: u64) {
        while let Some(&Reverse((time, number, slot))) = self.hosts.nics[host.at()].paced.peek()
            && time <= start
        {
            self.hosts.nics[host.at()].paced.pop();
            if self.hosts.sender_of[number as usize] != slot {
                continue;
            }
            let flow = &mut self.hosts.senders[slot.at()];
            flow.paced = false;
            if !flow.in_round && flow.sender.ready(&self.plan.transport) {
                flow.in_round = true;
                self.hosts.nics[host.at()].join_round(slot);
            }
        }
    }

    /// The NIC starts at `start` what is due: control first, then probes, then the flows in turn. A flow that is alone
    /// goes on with what may start by `until`. False where nothing may go.
    #[inline]
    fn start_next(&mut self, host: HostId, port: PortId, start: u64, until: u64) -> bool {
        self.promote(host, start);
        if let Some(id) = self.ports.take(port, start) {
            let packet = &mut self.ports.packets[id];
            if packet.kind == Kind::Probe {
                packet.head.set_wide(0, start);
            }
            self.ports.start(port, id, start);
            return true;
        }
        let paused = self.ports.paused(port);
        for _ in 0..self.hosts.nics[host.at()].round.len() {
            let nic = &mut self.hosts.nics[host.at()];
            let Some(slot) = nic.round.pop_front() else { break };
            if paused >> self.hosts.senders[slot.at()].class & 1 == 1 {
                nic.round.push_back(slot);
            } else if self.send_of(host, port, slot, start, until) {
                return true;
            }
        }
        false
    }

    /// The flow in `slot`, whose turn it is, sends a packet at `start`, and more while it is alone and they may start by
    /// `until`; false where it may not after all.
    fn send_of(&mut self, host: HostId, port: PortId, slot: Slot, mut start: u64, until: u64) -> bool {
        let (plan, ports) = (self.plan, &mut self.ports);
        let nic = &mut self.hosts.nics[host.at()];
        let flow = &mut self.hosts.senders[slot.at()];
        let scheme = &mut self.hosts.schemes[host.at()][usize::from(flow.balancer)].scheme;
        flow.in_round = false;
        if !flow.sender.ready(&plan.transport) {
            return false;
        }
        let next_avail = flow.sender.next_avail().ps();
        if next_avail > start {
            flow.paced = true;
            nic.pace(next_avail, flow.flow.0, slot);
            return false;
        }
        let mut sent = false;
        let rested = loop {
            let Some(next) = flow.sender.peek(&plan.transport) else { break true };
            let time = Time::from_ps(start);
            let outgoing = Outgoing {
                psn: next.psn,
                bytes: next.payload,
                retransmission: next.retransmission,
                eligible_at: Time::from_ps(flow.eligible_at),
            };
            let tag = match scheme.select(time, flow.scheme_slot, &outgoing) {
                Decision::Send(_) if plan.plain_host[usize::from(flow.balancer)] => 0,
                Decision::Send(tag) => tag,
                Decision::Hold(until) => {
                    flow.paced = true;
                    nic.pace(until.ps().max(start + 1), flow.flow.0, slot);
                    break true;
                }
                Decision::Wait => {
                    flow.waits = true;
                    break true;
                }
            };
            flow.sender.send(&plan.transport, time, tag);
            let ready = flow.sender.ready(&plan.transport);
            if flow.last_tag != Some(tag) {
                flow.path_switches += u64::from(flow.last_tag.is_some());
                flow.last_tag = Some(tag);
            }
            let gap = start.wrapping_sub(std::mem::replace(&mut flow.last_sent, start));
            if gap <= start {
                self.hosts.gaps.note(gap, flow.base_rtt);
            }
            if next.psn == 0 && !next.retransmission {
                self.hosts.sent[flow.flow.at()].first_sent = start;
            }
            let again = if next.retransmission { RETRANSMISSION } else { 0 };
            let request = next.retransmission || flow.sender.wants_answer(ready);
            let id = ports.packets.place();
            let packet = &mut ports.packets[id];
            *packet = Packet {
                queued_at: 0,
                psn: next.psn,
                head: Default::default(),
                flow: flow.flow.0,
                tag,
                src: flow.src.0,
                dst: flow.dst.0,
                next: PacketId::NONE.0,
                size: next.payload as u16 + plan.data_overhead,
                payload: next.payload as u16,
                kind: Kind::Data,
                class: flow.class,
                flags: again | if request { ACK_REQUEST } else { 0 },
                balancer: flow.balancer,
            };
            ports.books.born(packet);
            ports.start(port, id, start);
            sent = true;
            if !ready {
                break true;
            }
            // Whoever may send by the time the NIC is free again need not wait in the heap.
            let (next_avail, free_at) = (flow.sender.next_avail().ps(), ports.free_at(port));
            flow.eligible_at = next_avail.max(start);
            if next_avail > free_at {
                flow.paced = true;
                nic.pace(next_avail, flow.flow.0, slot);
                break true;
            }
            if !(nic.round.is_empty() && nic.paced.is_empty()) || free_at > until || ports.can_send(port) {
                break false;
            }
            start = free_at;
        };
        if !rested {
            flow.in_round = true;
            // Segmentation offload hands a NIC whole bursts, which leave unbroken.
            if flow.sender.keeps_turn() {
                nic.round.push_front(slot);
            } else {
                nic.join_round(slot);
            }
        }
        if sent {
            self.arm_timer(slot);
        }
        sent
    }
}
