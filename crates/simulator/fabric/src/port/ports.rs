//! Every port of a partition with its packets and events: joining, working out, starting.

use super::{
    ARMED, FAULTY, LISTED, NIC, PLAIN, PROMPT, Port, REMOTE, WATCHED,
    buffer::{Admission, Buffers, Guest},
    classes::ClassQueues,
    fault::LinkFault,
    marking::{Draws, Marking},
    pause::Pauses,
    wire_time::{WireTime, wire_time},
};
use crate::{
    event::Event,
    ids::{HostId, PacketId, PortId, SwitchId},
    measure::{Balances, Histograms, Watch},
    message::Message,
    packet::{Fifo, Kind, LAST_HOP, MARKED, Packet, Packets},
    plan::Plan,
    prefetch::prefetch,
};
use anabranch_backend::{MarkAt, Trim};
use anabranch_engine::Cells;
use anabranch_outcome::TraceEvent;
use anabranch_random::Stream;
use anabranch_topology::{Fault, FaultAction, NodeId};

/// Events of a port that are rare enough to be kept apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortCounters {
    pub(crate) marked: u64,
    pub(crate) trimmed: u64,
    pub(crate) dropped: u64,
    /// Pause frames received for the data of this port.
    pub(crate) pauses: u64,
}

/// Everything that moves packets from port to port.
#[derive(Debug)]
pub(crate) struct Ports<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) ports: Vec<Port>,
    /// Directed link of each port.
    links: Vec<u32>,
    pub(crate) packets: Packets,
    pub(crate) cells: Cells,
    pub(crate) books: Balances,
    /// Packets that left a port.
    pub(crate) hops: u64,
    pub(super) counters: Vec<PortCounters>,
    /// Ingress and class that may go on once the packet just taken has started.
    resumes: Option<(u32, u8)>,
    pub(crate) histograms: Histograms,
    pub(crate) watch: Watch,
    /// Messages for other partitions, filled within a window.
    pub(crate) outbox: Vec<Vec<Message>>,
    /// Ports whose wire times are not whole picoseconds per byte.
    clocks: Vec<Option<Box<WireTime>>>,
    pub(super) faults: Vec<LinkFault>,
    draws: Vec<Draws>,
    pub(super) classes: ClassQueues,
    pub(super) buffers: Buffers,
    pub(super) pauses: Pauses,
    pub(crate) pause_frames: u64,
    /// Ports of the running cell that have more to send than has been worked out.
    listed: Vec<PortId>,
    /// Those of the other cells.
    parked: Vec<Vec<PortId>>,
    marking: Marking,
    /// [`Marking::kmin`] where packets are marked when they leave, else nothing is long enough.
    marks_leaving: u32,
    marks_joining: u32,
    queue_limit: u32,
    control_limit: u32,
    /// 1 where a packet that arrives at the very time at which a port becomes free joins the queue before the port
    /// chooses; else 0.
    tie: u64,
}

/// A packet leaves a plain port at `start`. Where the link leads into another partition, the rest is the caller's: the
/// end of the transmission is returned.
#[inline(always)]
fn depart(state: &mut Port, packet: &mut Packet, id: PacketId, start: u64, cells: &mut Cells) -> Option<u64> {
    let size = u32::from(packet.size);
    let end = start + u64::from(size) * u64::from(state.ps_per_byte);
    state.free_at = end;
    state.sending = size;
    state.account.sent_bytes += u64::from(size);
    state.account.sent_packets += 1;
    if state.to_cell == REMOTE {
        return Some(end);
    }
    packet.next = state.to;
    let arrival = anabranch_engine::Event { time: end + state.delay, order: state.order, payload: id.0 };
    cells.push(u32::from(state.to_cell), arrival);
    None
}

impl<'a> Ports<'a> {
    /// The ports of partition `me`.
    pub(crate) fn new(plan: &'a Plan<'a>, me: u16) -> Self {
        let links: Vec<u32> = plan.links_of(me).to_vec();
        let (count, fabric) = (links.len(), &plan.fabric);
        let captured = plan.measure.capture_links.iter().filter(|link| plan.owner_of_link(link.0) == me);
        let captured = captured.map(|link| plan.port_of(link.0));
        let (traced, limit) = (&plan.measure.trace_flows, plan.measure.trace_limit);
        let watch = Watch::new(traced, plan.flows.flows.len(), limit, captured, plan.measure.capture_limit);
        let mut ports = Vec::with_capacity(count);
        let mut clocks = Vec::with_capacity(count);
        for &link in &links {
            let link = &plan.links[link as usize];
            let (ps_per_byte, clock) = wire_time(link.rate, fabric.whole_nanoseconds, plan.wire_mtu.max(256));
            let nic = link.from < plan.hosts;
            let prompt = plan.is_eager(link) || link.delay < plan.cells.lookahead;
            let flags = if nic { NIC } else { 0 } | if prompt { PROMPT } else { 0 };
            let to_cell = if plan.cells.owner_of(NodeId(link.to)) == me { plan.cell_of(link.to) } else { REMOTE };
            ports.push(Port { ps_per_byte, ..Port::new(link.delay, link.rank, link.to, to_cell, flags) });
            clocks.push(clock);
        }
        match watch.traces() {
            true => ports.iter_mut().for_each(|port| port.flags |= WATCHED),
            false => watch.captured().for_each(|port| ports[port.at()].flags |= WATCHED),
        }
        let marks = |at| if fabric.ecn && fabric.mark_at == at { fabric.marking.kmin } else { u32::MAX };
        let mut all = Ports {
            plan,
            ports,
            links,
            packets: Packets::default(),
            cells: Cells::new(plan.cells.cells()),
            books: Balances::default(),
            hops: 0,
            counters: vec![PortCounters::default(); count],
            resumes: None,
            histograms: Histograms::new(count, plan.longest_queue(), plan.measure.occupancy),
            watch,
            outbox: (0..plan.cells.partitions).map(|_| Vec::new()).collect(),
            clocks,
            faults: vec![LinkFault::default(); if plan.faults.is_empty() { 0 } else { count }],
            draws: vec![Draws::default(); count],
            classes: ClassQueues::new(count, fabric.scheduling, &fabric.quanta),
            buffers: Buffers::new(plan.shared.as_ref(), plan.links.len(), fabric.classes, fabric.pfc),
            pauses: Pauses::new(if fabric.pfc { count * fabric.classes } else { 0 }),
            pause_frames: 0,
            listed: Vec::new(),
            parked: vec![Vec::new(); plan.cells.cells()],
            marking: fabric.marking,
            marks_leaving: marks(MarkAt::Dequeue),
            marks_joining: marks(MarkAt::Enqueue),
            queue_limit: fabric.queue_limit,
            control_limit: fabric.control_limit,
            tie: u64::from(fabric.arrivals_first),
        };
        (0..count as u32).for_each(|port| all.choose_path(PortId(port)));
        all
    }

    /// Whether the port takes the plain path from now on.
    fn choose_path(&mut self, port: PortId) {
        let simple = !self.classes.several() && self.plan.shared.is_none() && self.tie == 0;
        let state = &mut self.ports[port.at()];
        let plain = simple && self.clocks[port.at()].is_none() && state.flags & (FAULTY | WATCHED) == 0;
        state.flags = if plain { state.flags | PLAIN } else { state.flags & !PLAIN };
    }

    /// Up to when a port is worked out before an arrival at `now`: whether what starts at `now` has been chosen already.
    #[inline]
    pub(crate) fn before(&self, now: u64) -> u64 {
        now - self.tie.min(now)
    }

    #[inline]
    pub(crate) fn free_at(&self, port: PortId) -> u64 {
        self.ports[port.at()].free_at
    }

    /// The port stands idle until `time`, which has been worked out.
    #[inline]
    pub(crate) fn idle_until(&mut self, port: PortId, time: u64) {
        let free_at = &mut self.ports[port.at()].free_at;
        *free_at = time.max(*free_at);
    }

    /// One bit per class that is paused.
    #[inline]
    pub(crate) fn paused(&self, port: PortId) -> u8 {
        self.ports[port.at()].paused
    }

    /// The port itself, for results.
    pub(crate) fn port(&self, port: PortId) -> &Port {
        &self.ports[port.at()]
    }

    /// Bytes that each port has sent so far.
    pub(crate) fn sent_bytes(&self) -> Vec<u64> {
        self.ports.iter().map(|port| port.account.sent_bytes).collect()
    }

    pub(crate) fn counters(&self, port: PortId) -> &PortCounters {
        &self.counters[port.at()]
    }

    /// The switch or host that sends over the link of a port, as a node.
    #[inline]
    pub(super) fn from(&self, port: PortId) -> u32 {
        self.plan.links[self.links[port.at()] as usize].from
    }

    /// The directed link of a port.
    pub(super) fn link(&self, port: PortId) -> u32 {
        self.links[port.at()]
    }

    fn switch(&self, port: PortId) -> SwitchId {
        SwitchId(self.from(port) - self.plan.hosts)
    }

    // ---- joining ----

    /// A packet that came into its switch by link `ingress` joins a port at `now`.
    #[inline]
    pub(crate) fn join(&mut self, port: PortId, id: PacketId, now: u64, ingress: u32) {
        let flags = self.ports[port.at()].flags;
        match flags & (PLAIN | WATCHED) {
            PLAIN => self.join_plain(port, id, now),
            0 => self.join_any(port, id, now, ingress),
            _ => self.join_watched(port, id, now, ingress),
        }
    }

    fn join_plain(&mut self, port: PortId, id: PacketId, now: u64) {
        let mut state = &mut self.ports[port.at()];
        if state.free_at <= now && state.backlogged() {
            self.advance_backlog(port, now);
            state = &mut self.ports[port.at()];
        }
        let packet = &mut self.packets[id];
        if state.free_at <= now {
            self.hops += 1;
            if let Some(end) = depart(state, packet, id, now, &mut self.cells) {
                self.start_remote(port, id, end);
            }
            return;
        }
        if packet.is_control() {
            return self.queue_control(port, id, now);
        }
        let (bytes, waiting) = (u32::from(packet.size), state.waiting_bytes);
        if waiting + bytes > self.queue_limit {
            return self.overflow(port, id, now);
        }
        let span = state.account.held(waiting, state.waiting_packets, now);
        self.histograms.record(port, waiting, state.waiting_packets, span);
        state.waiting_bytes += bytes;
        state.waiting_packets += 1;
        state.account.max_bytes = state.account.max_bytes.max(state.waiting_bytes);
        state.account.max_packets = state.account.max_packets.max(state.waiting_packets);
        packet.next = PacketId::NONE.0;
        packet.queued_at = now;
        state.data.push(&mut self.packets, id);
        if waiting > self.marks_joining {
            self.mark(port, id, waiting, now);
        }
        self.list(port);
    }

    /// The same for ports with classes, a shared buffer, a fault or another clock.
    #[inline(never)]
    pub(super) fn join_any(&mut self, port: PortId, id: PacketId, now: u64, ingress: u32) {
        let before = self.before(now);
        self.advance(port, before);
        let control = self.packets[id].is_control();
        if self.plan.shared.is_some() && !control {
            self.join_shared(port, id, now, ingress);
        } else if self.ports[port.at()].free_at <= before {
            self.start(port, id, now);
        } else if control {
            self.queue_control(port, id, now);
        } else {
            self.queue_data(port, id, now);
        }
    }

    /// A data packet joins a port of a switch with a shared buffer.
    fn join_shared(&mut self, port: PortId, id: PacketId, now: u64, ingress: u32) {
        let Some(shared) = &self.plan.shared else { return };
        let (size, class) = (u32::from(self.packets[id].size), self.packets[id].class);
        let guest = Guest { switch: self.switch(port), ingress, class, size, queue: self.class_bytes(port, class) };
        if self.buffers.admits(shared, &guest) == Admission::Drop && !self.admits_after_all(&guest, now) {
            self.drop_packet(port, id, TraceEvent::Drop, now);
            return;
        }
        let state = &self.ports[port.at()];
        if state.free_at <= self.before(now) && state.paused >> class & 1 == 0 {
            // It has begun before its sender is paused: the pause may go back by this very port.
            self.start(port, id, now);
            if self.plan.fabric.pfc {
                self.check_pause(&guest, size, now);
            }
            return;
        }
        self.buffers.join(shared, &guest, id);
        self.queue(port, id, now);
        if self.plan.fabric.pfc {
            self.check_pause(&guest, 0, now);
        }
    }

    /// Ports that have not been worked out may hold, on paper, packets that have left: they are worked out, and then it
    /// counts.
    #[cold]
    fn admits_after_all(&mut self, guest: &Guest, now: u64) -> bool {
        let Some(shared) = &self.plan.shared else { return false };
        let plan = self.plan;
        for other in plan.topology.out_links(NodeId(plan.hosts + guest.switch.0)) {
            self.advance(plan.port_of(other.0), self.before(now));
        }
        self.buffers.admits(shared, guest) == Admission::Admit
    }

    /// A control packet joins the port of a NIC that has been worked out.
    #[inline]
    pub(crate) fn join_nic(&mut self, port: PortId, id: PacketId, now: u64) {
        if self.ports[port.at()].free_at <= self.before(now) {
            self.start(port, id, now);
        } else {
            self.queue_control(port, id, now);
        }
    }

    fn queue_control(&mut self, port: PortId, id: PacketId, now: u64) {
        let state = &mut self.ports[port.at()];
        let packet = &mut self.packets[id];
        let size = u32::from(packet.size);
        if state.control_bytes.saturating_add(size) > self.control_limit && state.flags & NIC == 0 {
            self.drop_packet(port, id, TraceEvent::Drop, now);
            return;
        }
        packet.next = PacketId::NONE.0;
        packet.queued_at = now;
        state.control_bytes += size;
        // A pause frame goes before other control packets (IEEE 802.1Qbb: it passes the queues), behind other frames.
        if packet.kind == Kind::Pause && !self.plan.shared.as_ref().is_some_and(|shared| shared.recorded) {
            state.control.push_behind(&mut self.packets, id, |other| other.kind == Kind::Pause);
        } else {
            state.control.push(&mut self.packets, id);
        }
        self.list(port);
    }

    #[inline]
    fn queue_data(&mut self, port: PortId, id: PacketId, now: u64) {
        let (size, class) = (u32::from(self.packets[id].size), self.packets[id].class);
        let waiting = self.class_bytes(port, class);
        if waiting + size > self.queue_limit {
            self.overflow(port, id, now);
            return;
        }
        if waiting > self.marks_joining {
            self.mark(port, id, waiting, now);
        }
        self.queue(port, id, now);
    }

    /// A data packet goes to the end of its queue, whatever its length.
    #[inline]
    pub(crate) fn queue(&mut self, port: PortId, id: PacketId, now: u64) {
        let size = i64::from(self.packets[id].size);
        self.change(port, now, size, 1);
        let packet = &mut self.packets[id];
        packet.next = PacketId::NONE.0;
        packet.queued_at = now;
        if self.classes.several() {
            self.classes.push(&mut self.packets, port, id);
        } else {
            self.ports[port.at()].data.push(&mut self.packets, id);
        }
        // A paused port that stands idle is woken when the pause ends.
        if self.ports[port.at()].paused == 0 || self.can_send(port) {
            self.list(port);
        }
    }

    #[inline]
    pub(super) fn class_bytes(&self, port: PortId, class: u8) -> u32 {
        if self.classes.several() { self.classes.bytes(port, class) } else { self.ports[port.at()].waiting_bytes }
    }

    /// A data packet that finds its queue full: trimmed, or dropped where trimming is off.
    #[cold]
    fn overflow(&mut self, port: PortId, id: PacketId, now: u64) {
        let fabric = &self.plan.fabric;
        if !fabric.trimming {
            self.drop_packet(port, id, TraceEvent::Drop, now);
            return;
        }
        if fabric.trim == Trim::Coin && self.draws(port).chance(1, 2) {
            self.swap_with_last(port, id, now);
        }
        let packet = &mut self.packets[id];
        if packet.kind == Kind::Probe {
            // Its round trip is its message: without its bytes it would say something else.
            return self.drop_packet(port, id, TraceEvent::Drop, now);
        }
        if self.ports[port.at()].flags & WATCHED != 0 {
            self.watch_event(TraceEvent::Trim, port, id, now, None);
        }
        let packet = &mut self.packets[id];
        self.counters[port.at()].trimmed += 1;
        self.books.trimmed(packet);
        packet.kind = Kind::Header;
        if self.ports[port.at()].to < self.plan.hosts {
            packet.flags |= LAST_HOP;
        }
        packet.size = fabric.trimmed_size;
        self.books.born(packet);
        if self.ports[port.at()].flags & WATCHED != 0 {
            self.watch_join(port, id, now);
        }
        self.queue_control(port, id, now);
    }

    /// The arriving packet takes the place of the one queued last in its class, which is then the one to trim.
    fn swap_with_last(&mut self, port: PortId, id: PacketId, now: u64) {
        let class = self.packets[id].class;
        let last =
            if self.classes.several() { self.classes.last(port, class) } else { self.ports[port.at()].data.last() };
        if !last.is_some() {
            return;
        }
        let difference = i64::from(self.packets[id].size) - i64::from(self.packets[last].size);
        self.change(port, now, difference, 0);
        if self.classes.several() {
            self.classes.resize(port, class, difference);
        }
        self.packets.swap(id, last);
        self.watch.swap(id, last);
        self.ports[port.at()].account.waited += now - self.packets[id].queued_at;
        let next = self.packets[id].next;
        let arrived = &mut self.packets[last];
        arrived.next = next;
        arrived.queued_at = now;
    }

    /// Accounts for the time since the last change of the data queue and applies one.
    #[inline]
    fn change(&mut self, port: PortId, now: u64, bytes: i64, packets: i32) {
        let state = &mut self.ports[port.at()];
        let span = state.account.held(state.waiting_bytes, state.waiting_packets, now);
        self.histograms.record(port, state.waiting_bytes, state.waiting_packets, span);
        state.waiting_bytes = (i64::from(state.waiting_bytes) + bytes) as u32;
        state.waiting_packets = (state.waiting_packets as i32 + packets) as u32;
        state.account.max_bytes = state.account.max_bytes.max(state.waiting_bytes);
        state.account.max_packets = state.account.max_packets.max(state.waiting_packets);
    }

    // ---- working out ----

    /// Works out every transmission of a switch's port that starts at or before `until`.
    #[inline]
    pub(crate) fn advance(&mut self, port: PortId, until: u64) {
        if self.ports[port.at()].flags & PLAIN != 0 {
            return self.advance_plain(port, until);
        }
        loop {
            let start = self.ports[port.at()].free_at;
            if start > until {
                return;
            }
            let Some(id) = self.take(port, start) else { return };
            self.start(port, id, start);
            // After the start: the frame may leave by this very port.
            if let Some((ingress, class)) = self.resumes.take() {
                self.resume(ingress, class, start);
            }
        }
    }

    #[inline]
    fn advance_plain(&mut self, port: PortId, until: u64) {
        let state = &self.ports[port.at()];
        if state.free_at <= until && state.backlogged() {
            self.advance_backlog(port, until);
        }
    }

    fn advance_backlog(&mut self, port: PortId, until: u64) {
        loop {
            let state = &mut self.ports[port.at()];
            let start = state.free_at;
            if start > until || !state.backlogged() {
                return;
            }
            let control = !state.control.is_empty();
            let id = if control { state.pop_control(&self.packets) } else { state.data.pop(&self.packets) };
            // It has waited for long; the next one will have waited as long.
            self.packets.prefetch(state.data.first());
            let packet = &mut self.packets[id];
            if !control {
                let (bytes, packets) = (state.waiting_bytes, state.waiting_packets);
                let span = state.account.held(bytes, packets, start);
                state.account.waited += start - packet.queued_at;
                state.waiting_bytes = bytes - u32::from(packet.size);
                state.waiting_packets = packets - 1;
                self.histograms.record(port, bytes, packets, span);
                let behind = state.waiting_bytes;
                if behind > self.marks_leaving {
                    self.mark(port, id, behind, start);
                }
            }
            let (state, packet) = (&mut self.ports[port.at()], &mut self.packets[id]);
            self.hops += 1;
            if let Some(end) = depart(state, packet, id, start, &mut self.cells) {
                self.start_remote(port, id, end);
            }
        }
    }

    /// Takes the packet whose turn it is at `start`: control first, then data that is not paused.
    #[inline]
    pub(crate) fn take(&mut self, port: PortId, start: u64) -> Option<PacketId> {
        let state = &mut self.ports[port.at()];
        if !state.control.is_empty() {
            return Some(state.pop_control(&self.packets));
        }
        (state.waiting_packets > 0 && self.can_send(port)).then(|| self.take_data(port, start))
    }

    fn take_data(&mut self, port: PortId, start: u64) -> PacketId {
        let state = &mut self.ports[port.at()];
        let id = if self.classes.several() {
            self.classes.pop(&self.packets, port, state.paused)
        } else {
            state.data.pop(&self.packets)
        };
        let packet = &self.packets[id];
        let (size, class) = (packet.size, packet.class);
        state.account.waited += start - packet.queued_at;
        self.change(port, start, -i64::from(size), -1);
        let behind = self.class_bytes(port, class);
        if behind > self.marks_leaving {
            self.mark(port, id, behind, start);
        }
        if let Some(shared) = &self.plan.shared
            && self.ports[port.at()].flags & NIC == 0
        {
            let switch = self.switch(port);
            let guest = Guest { switch, ingress: u32::MAX, class, size: u32::from(size), queue: behind };
            self.resumes = self.buffers.leave(shared, &guest, id).map(|ingress| (ingress, class));
        }
        id
    }

    #[inline(never)]
    fn mark(&mut self, port: PortId, id: PacketId, bytes: u32, time: u64) {
        let (plan, link) = (self.plan, self.links[port.at()] as usize);
        let draws = &mut self.draws[port.at()];
        if self.marking.marks(bytes, || draws.of(plan.seed, plan.links[link].key).unit()) {
            self.packets[id].flags |= MARKED;
            self.counters[port.at()].marked += 1;
            if self.ports[port.at()].flags & WATCHED != 0 {
                self.watch_event(TraceEvent::Mark, port, id, time, Some(bytes));
            }
        }
    }

    fn draws(&mut self, port: PortId) -> &mut Stream {
        let link = &self.plan.links[self.links[port.at()] as usize];
        self.draws[port.at()].of(self.plan.seed, link.key)
    }

    /// Whether a packet waits that is not paused.
    #[inline]
    pub(crate) fn can_send(&self, port: PortId) -> bool {
        let state = &self.ports[port.at()];
        if state.paused == 0 {
            state.backlogged()
        } else {
            !state.control.is_empty() || self.classes.several() && self.classes.waits(port, state.paused)
        }
    }

    // ---- starting ----

    /// A packet starts at `start`: works out when it arrives.
    #[inline]
    fn start_plain(&mut self, port: PortId, id: PacketId, start: u64) {
        let (state, packet) = (&mut self.ports[port.at()], &mut self.packets[id]);
        self.hops += 1;
        if let Some(end) = depart(state, packet, id, start, &mut self.cells) {
            self.start_remote(port, id, end);
        }
    }

    /// The same for any port.
    #[inline]
    pub(crate) fn start(&mut self, port: PortId, id: PacketId, start: u64) {
        if self.ports[port.at()].flags & PLAIN != 0 {
            return self.start_plain(port, id, start);
        }
        self.start_any(port, id, start);
    }

    #[inline(never)]
    fn start_any(&mut self, port: PortId, id: PacketId, start: u64) {
        let state = &mut self.ports[port.at()];
        let size = u32::from(self.packets[id].size);
        let time = match &mut self.clocks[port.at()] {
            None => u64::from(size) * u64::from(state.ps_per_byte),
            Some(clock) => clock.of(size),
        };
        let end = start + time;
        state.free_at = end;
        state.sending = size;
        state.account.sent_bytes += u64::from(size);
        state.account.sent_packets += 1;
        self.hops += 1;
        if state.flags & (FAULTY | WATCHED) != 0 {
            return self.start_seen(port, id, start, end);
        }
        if state.to_cell == REMOTE {
            return self.start_remote(port, id, end);
        }
        self.packets[id].next = state.to;
        let arrival = anabranch_engine::Event { time: end + state.delay, order: state.order, payload: id.0 };
        self.cells.push(u32::from(state.to_cell), arrival);
    }

    /// Into another partition.
    #[inline(never)]
    pub(super) fn start_remote(&mut self, port: PortId, id: PacketId, end: u64) {
        let state = &self.ports[port.at()];
        let packet = &mut self.packets[id];
        packet.next = state.to;
        let message = Message::Packet { time: end + state.delay, order: state.order, packet: *packet };
        let to = self.plan.cells.owner_of(NodeId(state.to));
        self.outbox[usize::from(to)].push(message);
        self.packets.remove(id);
    }

    pub(super) fn drop_packet(&mut self, port: PortId, id: PacketId, how: TraceEvent, now: u64) {
        self.counters[port.at()].dropped += 1;
        self.watch_event(how, port, id, now, None);
        self.discard(id);
    }

    /// A packet is lost.
    pub(crate) fn discard(&mut self, id: PacketId) {
        self.books.dropped(&self.packets[id]);
        self.packets.remove(id);
    }

    // ---- the list of ports that have more to send ----

    /// The port has something to send: it is worked out at the end of the window at the latest.
    #[inline]
    pub(crate) fn list(&mut self, port: PortId) {
        let state = &mut self.ports[port.at()];
        if state.flags & LISTED == 0 {
            state.flags |= LISTED;
            self.listed.push(port);
        }
        if state.flags & (PROMPT | NIC) == PROMPT {
            self.arm(port, self.ports[port.at()].free_at);
        }
    }

    /// Sees to it that a prompt port of a switch that may start something at `start` is worked out within the window.
    #[inline(never)]
    pub(crate) fn arm(&mut self, port: PortId, start: u64) {
        let time = self.service_time(port, start);
        let state = &mut self.ports[port.at()];
        if state.flags & (PROMPT | ARMED) == PROMPT && time < self.cells.window_end() {
            state.flags |= ARMED;
            self.ask_for_service(port, time);
        }
    }

    /// When a transmission of a prompt port that starts at `start` must be worked out.
    pub(crate) fn service_time(&self, port: PortId, start: u64) -> u64 {
        let link = &self.plan.links[self.link(port) as usize];
        start.saturating_add(if self.plan.is_eager(link) { self.tie } else { link.delay.max(self.tie) })
    }

    pub(crate) fn ask_for_service(&mut self, port: PortId, time: u64) {
        let link = &self.plan.links[self.link(port) as usize];
        let event = Event::Service { rank: link.rank, port };
        self.cells.push(u32::from(self.plan.cell_of(link.from)), event.at(time));
    }

    /// A service event has come.
    #[inline]
    pub(crate) fn disarm(&mut self, port: PortId) {
        self.ports[port.at()].flags &= !ARMED;
    }

    /// The host whose NIC a port is.
    #[inline]
    pub(crate) fn nic_of(&self, port: PortId) -> Option<HostId> {
        (self.ports[port.at()].flags & NIC != 0).then(|| HostId(self.from(port)))
    }

    #[inline]
    pub(crate) fn is_prompt(&self, port: PortId) -> bool {
        self.ports[port.at()].flags & PROMPT != 0
    }

    /// The cell's turn begins: its ports that have more to send.
    pub(crate) fn open_list(&mut self, cell: u32) {
        debug_assert!(self.listed.is_empty());
        std::mem::swap(&mut self.listed, &mut self.parked[cell as usize]);
    }

    /// The ports that have more to send, in the order in which they were listed.
    pub(crate) fn listed(&self, index: usize) -> Option<PortId> {
        self.listed.get(index).copied()
    }

    /// Asks the processor to fetch the ports of a cell.
    pub(crate) fn fetch_cell(&self, cell: u32) {
        let ports = self.plan.ports_of_cell(cell);
        for port in &self.ports[ports.start as usize..ports.end as usize] {
            prefetch(port);
            prefetch(&port.account);
        }
    }

    /// Asks the processor to fetch what will be needed of a port that comes up in the list.
    #[inline]
    pub(crate) fn fetch_listed(&self, index: usize) {
        if let Some(port) = self.listed.get(index) {
            prefetch(&self.ports[port.at()]);
        }
    }

    /// The list, at the end of the cell's turn.
    pub(crate) fn take_list(&mut self) -> Vec<PortId> {
        std::mem::take(&mut self.listed)
    }

    /// A port of the list can start something at `next`, or has nothing more to send; returns whether it stays.
    #[inline]
    pub(crate) fn note_next(&mut self, cell: u32, port: PortId, next: Option<u64>) -> bool {
        match next {
            Some(time) => self.cells.wake(cell, time),
            None => self.ports[port.at()].flags &= !LISTED,
        }
        next.is_some()
    }

    /// What is left of the list waits for the cell's next turn.
    pub(crate) fn park_list(&mut self, cell: u32, mut list: Vec<PortId>) {
        std::mem::swap(&mut self.parked[cell as usize], &mut list);
        self.listed = list;
        debug_assert!(self.listed.is_empty());
    }

    // ---- the rest ----

    /// Bytes a new packet at a switch's port would have ahead of it: waiting, control included, and in transmission.
    #[inline]
    pub(crate) fn backlog(&mut self, port: PortId, now: u64) -> u64 {
        self.advance(port, self.before(now));
        let state = &self.ports[port.at()];
        let sending = if state.free_at > now { state.sending } else { 0 };
        u64::from(state.waiting_bytes) + u64::from(state.control_bytes) + u64::from(sending)
    }

    /// A fault begins or ends at a port's link; everything before has been worked out.
    pub(crate) fn change_fault(&mut self, port: PortId, fault: &Fault) {
        if let FaultAction::Degrade(rate) = fault.action {
            let (plan, state) = (self.plan, &mut self.ports[port.at()]);
            (state.ps_per_byte, self.clocks[port.at()]) =
                wire_time(rate, plan.fabric.whole_nanoseconds, plan.wire_mtu.max(256));
        } else {
            let state = &mut self.faults[port.at()];
            state.change(fault.action, fault.data_only);
            let flags = &mut self.ports[port.at()].flags;
            *flags = if state.acts() { *flags | FAULTY } else { *flags & !FAULTY };
        }
        self.choose_path(port);
    }

    /// The queues of a port, control first.
    pub(crate) fn queues(&self, port: PortId) -> impl Iterator<Item = &Fifo> {
        let state = &self.ports[port.at()];
        let (one, several) =
            if self.classes.several() { (None, Some(self.classes.of(port))) } else { (Some(&state.data), None) };
        std::iter::once(&state.control).chain(one).chain(several.into_iter().flatten())
    }

    /// Closes the books of a port's queue at `end`.
    pub(crate) fn close_books(&mut self, port: PortId, end: u64) {
        let end = end.max(self.ports[port.at()].account.changed_at);
        self.change(port, end, 0, 0);
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        self.ports.capacity() * (size_of::<Port>() + size_of::<PortCounters>() + 3 * 8)
            + self.packets.bytes()
            + self.cells.bytes()
            + self.histograms.memory()
            + self.classes.memory()
            + self.buffers.memory()
    }
}
