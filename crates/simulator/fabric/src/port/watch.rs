//! Trace and capture of packets at watched ports.

use super::{NIC, WATCHED, backlog::Backlog};
use crate::{
    ids::{PacketId, PortId},
    measure::Spot,
    packet::Kind,
};
use anabranch_outcome::TraceEvent;

impl Backlog<'_> {
    /// Records that a packet joins a watched port of a switch, which has been advanced.
    #[cold]
    pub(super) fn watch_join(&mut self, port: PortId, id: PacketId, now: u64) {
        let packet = &self.packets[id];
        if self.watch.follows(packet) {
            let state = &self.ports[port.at()];
            let queue = if packet.is_control() { state.control_bytes } else { self.class_bytes(port, packet.class) };
            self.watch.joins(id, now, queue);
        }
        let packet = &self.packets[id];
        self.watch.note_choice(packet, self.plan.flow_key(packet.flow), now, self.link(port));
    }

    /// Records an event of a packet. `queue` is the queue length in bytes that caused it; `None`: the length when it joined.
    #[cold]
    pub(super) fn watch_event(&mut self, event: TraceEvent, port: PortId, id: PacketId, time: u64, queue: Option<u32>) {
        let state = &self.ports[port.at()];
        if state.flags & WATCHED == 0 || !self.watch.follows(&self.packets[id]) {
            return;
        }
        let at_join = if state.flags & NIC == 0 { self.watch.joined(id) } else { None };
        let (joined, found) = (at_join.map(|joined| joined.0), at_join.map(|joined| joined.1));
        let spot = Spot { time, link: self.link(port), joined, queue: queue.or(found) };
        self.watch.note(event, &self.packets[id], spot);
    }

    #[cold]
    pub(super) fn watch_start(&mut self, port: PortId, id: PacketId, start: u64) {
        let packet = &self.packets[id];
        self.watch.capture(port, packet, start);
        let nic = self.ports[port.at()].flags & NIC != 0;
        if nic && packet.kind == Kind::Data && self.watch.follows(packet) && self.watch.changes_path(packet) {
            self.watch_event(TraceEvent::PathChange, port, id, start, None);
        }
        self.watch_event(if nic { TraceEvent::Send } else { TraceEvent::Hop }, port, id, start, None);
    }

    /// Records a reception at `arrival`, where the link leads to a host.
    #[cold]
    pub(super) fn watch_arrival(&mut self, port: PortId, id: PacketId, arrival: u64) {
        let packet = &self.packets[id];
        if self.ports[port.at()].to < self.plan.hosts && self.watch.follows(packet) {
            let spot = Spot { time: arrival, link: self.link(port), joined: None, queue: None };
            self.watch.note(TraceEvent::Receive, packet, spot);
        }
    }

    /// Drops a packet at a switch without a route for it; `link` is any that leaves the switch.
    pub(crate) fn discard_lost(&mut self, id: PacketId, link: u32, now: u64) {
        if self.watch.follows(&self.packets[id]) {
            let spot = Spot { time: now, link, joined: None, queue: None };
            self.watch.note(TraceEvent::NoRoute, &self.packets[id], spot);
        }
        self.discard(id);
    }
}
