//! Ports whose packets are watched.

use super::{NIC, WATCHED, backlog::Backlog};
use crate::{
    ids::{PacketId, PortId},
    measure::Spot,
    packet::Kind,
};
use anabranch_outcome::TraceEvent;

impl Backlog<'_> {
    /// A packet joins a watched port of a switch, which has been worked out.
    #[cold]
    pub(super) fn watch_join(&mut self, port: PortId, id: PacketId, now: u64) {
        let packet = &self.packets[id];
        if self.watch.follows(packet) {
            let state = &self.ports[port.at()];
            let queue = if packet.is_control() { state.control_bytes } else { self.class_bytes(port, packet.class) };
            self.watch.joins(id, now, queue);
        }
    }

    /// Something happens to a packet at a watched port: `queue` bytes led to it, else those that it found when it joined
    /// count.
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

    /// The transmission of a packet from a watched port is worked out: it begins at `start`.
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

    /// It will arrive at `arrival`, which is worth a row where that is at a host.
    #[cold]
    pub(super) fn watch_arrival(&mut self, port: PortId, id: PacketId, arrival: u64) {
        let packet = &self.packets[id];
        if self.ports[port.at()].to < self.plan.hosts && self.watch.follows(packet) {
            let spot = Spot { time: arrival, link: self.link(port), joined: None, queue: None };
            self.watch.note(TraceEvent::Receive, packet, spot);
        }
    }

    /// A switch that knows no way on drops a packet at `now`; `link` is any that leaves it.
    pub(crate) fn discard_lost(&mut self, id: PacketId, link: u32, now: u64) {
        if self.watch.follows(&self.packets[id]) {
            let spot = Spot { time: now, link, joined: None, queue: None };
            self.watch.note(TraceEvent::NoRoute, &self.packets[id], spot);
        }
        self.discard(id);
    }
}
