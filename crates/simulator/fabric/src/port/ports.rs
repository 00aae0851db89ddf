//! All ports of a partition with their packets and events: joining, advancing, starting.

use super::{
    ARMED, FAULTY, LISTED, NIC, PLAIN, POOLED, PROMPT, Port, WATCHED,
    backlog::Backlog,
    buffer::BufferRequest,
    fault::LinkFault,
    lists::Lists,
    wire_time::{WireTime, wire_time},
};
use crate::{
    arena::Arena,
    event::{Event, Ties},
    ids::{HostId, PacketId, PortId, SwitchId},
    message::Message,
    packet::{Kind, Packet},
    plan::Plan,
    prefetch::prefetch,
};
use anabranch_engine::Cells;
use anabranch_outcome::TraceEvent;
use anabranch_random::Stream;
use anabranch_topology::{Fault, FaultAction, NodeId};
use std::sync::Arc;

/// Ports, packets, queues and events that move packets from port to port.
#[derive(Debug)]
pub(crate) struct Ports<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(crate) queues: Backlog<'a>,
    pub(crate) cells: Cells,
    /// Number of packets that left a port.
    pub(crate) hops: u64,
    /// Messages for other partitions, filled within a window.
    pub(crate) outbox: Vec<Vec<Message>>,
    /// Per port, its clock where wire times are not whole picoseconds per byte.
    clocks: Vec<Option<Box<WireTime>>>,
    faults: Vec<LinkFault>,
    /// By port and class, the end of its pause, where pauses expire; empty without PFC.
    pub(super) pause_ends: Vec<u64>,
    pub(crate) pause_frames: u64,
    pub(crate) resume_frames: u64,
    pub(crate) lists: Lists,
    /// 1 if a packet that arrives exactly when a port becomes free joins before the port chooses, else 0.
    tie: u64,
    ties: Ties,
    salts: Vec<u64>,
}

impl<'a> Ports<'a> {
    pub(crate) fn new(plan: &'a Plan<'a>, me: u16, arena: Arc<Arena>) -> Self {
        let (count, fabric) = (plan.links_of(me).len(), &plan.fabric);
        let mut ports = Vec::with_capacity(count);
        let mut clocks = Vec::with_capacity(count);
        for &link in plan.links_of(me) {
            let link = &plan.links[link as usize];
            let (ps_per_byte, clock) = wire_time(link.rate, fabric.whole_nanoseconds, plan.wire_mtu.max(256));
            ports.push(Port { ps_per_byte, ..Port::new(plan, link, me) });
            clocks.push(clock);
        }
        let mut all = Ports {
            plan,
            queues: Backlog::new(plan, me, ports, arena),
            cells: Cells::new(plan.cells.cells()),
            hops: 0,
            outbox: (0..plan.cells.partitions).map(|_| Vec::new()).collect(),
            clocks,
            faults: vec![LinkFault::default(); if plan.faults.is_empty() { 0 } else { count }],
            pause_ends: vec![0; if fabric.pfc { count * fabric.classes } else { 0 }],
            pause_frames: 0,
            resume_frames: 0,
            lists: Lists::new(plan.cells.cells()),
            tie: u64::from(fabric.arrivals_first),
            ties: plan.ties,
            salts: plan.links_of(me).iter().map(|&link| plan.salt(link)).collect(),
        };
        (0..count as u32).for_each(|port| all.choose_path(PortId(port)));
        all
    }

    /// Selects the code path of the port.
    fn choose_path(&mut self, port: PortId) {
        let simple = !self.queues.classes.are_used() && self.tie == 0 && !self.queues.limits.differ(port);
        let state = &mut self.queues.ports[port.at()];
        let pooled = self.plan.shared.is_some() && state.flags & NIC == 0;
        state.flags &= !(PLAIN | POOLED);
        if simple && self.clocks[port.at()].is_none() && state.flags & (FAULTY | WATCHED) == 0 {
            state.flags |= if pooled { POOLED } else { PLAIN };
        }
        if self.queues.headers.any(port) {
            self.queues.headers.set_plain(port, state.flags & PLAIN != 0);
            state.flags &= !PLAIN;
        }
    }

    /// Returns the time up to which a port is advanced before an arrival at `now`; without `now` itself if the arrival
    /// joins before the port chooses.
    #[inline]
    pub(crate) fn before(&self, now: u64) -> u64 {
        now - self.tie.min(now)
    }

    #[inline]
    pub(crate) fn free_at(&self, port: PortId) -> u64 {
        self.port(port).free_at
    }

    /// Marks the port, advanced up to `time`, as idle until then.
    #[inline]
    pub(crate) fn idle_until(&mut self, port: PortId, time: u64) {
        let free_at = &mut self.port_mut(port).free_at;
        *free_at = time.max(*free_at);
    }

    #[inline]
    pub(crate) fn port(&self, port: PortId) -> &Port {
        &self.queues.ports[port.at()]
    }

    #[inline]
    pub(super) fn port_mut(&mut self, port: PortId) -> &mut Port {
        &mut self.queues.ports[port.at()]
    }

    // ---- packets ----

    #[inline]
    pub(crate) fn place(&mut self) -> PacketId {
        self.queues.packets.place()
    }

    /// Writes a new packet into a slot, over its previous content, and counts it.
    #[inline(always)]
    pub(crate) fn fill(&mut self, id: PacketId, packet: Packet) {
        let place = &mut self.queues.packets[id];
        *place = packet;
        self.queues.ledger.born(place);
    }

    pub(crate) fn create(&mut self, packet: Packet) -> PacketId {
        let id = self.place();
        self.fill(id, packet);
        id
    }

    /// Counts a packet that has reached its destination; its slot is not free before [`Ports::remove`].
    #[inline]
    pub(crate) fn deliver(&mut self, id: PacketId) -> Packet {
        let packet = self.queues.packets[id];
        self.queues.ledger.delivered(&packet);
        packet
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: PacketId) {
        self.queues.packets.remove(id);
    }

    /// Counts the time for which a scheme has held a packet back from a port, since `queued_at`, as a wait there.
    pub(crate) fn note_held(&mut self, port: PortId, id: PacketId, now: u64) {
        let (order, held) = (self.port(port).order, now - self[id].queued_at);
        self.queues.packets.leave(id, held, order);
    }

    // ---- joining ----

    /// Lets a packet that came into its switch by link `ingress` join a port at `now`.
    #[inline]
    pub(crate) fn join(&mut self, port: PortId, id: PacketId, now: u64, ingress: u32) {
        let flags = self.port(port).flags;
        match flags & (PLAIN | POOLED | WATCHED) {
            PLAIN => self.join_plain(port, id, now),
            POOLED => self.join_pooled(port, id, now, ingress),
            0 => self.join_any(port, id, now, ingress),
            _ => self.join_watched(port, id, now, ingress),
        }
    }

    fn join_plain(&mut self, port: PortId, id: PacketId, now: u64) {
        let state = self.port(port);
        if state.free_at > now {
            return self.wait_plain(port, id, now);
        }
        if state.backlogged() {
            self.advance_backlog(port, now);
            if self.free_at(port) > now {
                return self.wait_plain(port, id, now);
            }
        }
        self.start_plain(port, id, now);
    }

    #[inline(always)]
    fn wait_plain(&mut self, port: PortId, id: PacketId, now: u64) {
        if self[id].is_control() {
            self.queue_control(port, id, now);
        } else if self.queues.push_plain(port, id, now) {
            self.list(port);
        }
    }

    fn join_pooled(&mut self, port: PortId, id: PacketId, now: u64, ingress: u32) {
        self.advance_pooled(port, now);
        if !self[id].is_control() {
            self.join_shared(port, id, now, ingress);
        } else if self.free_at(port) <= now {
            self.start_plain(port, id, now);
        } else {
            self.queue_control(port, id, now);
        }
    }

    /// Lets a packet join a port with classes, a fault or another clock.
    #[inline(never)]
    fn join_any(&mut self, port: PortId, id: PacketId, now: u64, ingress: u32) {
        let before = self.before(now);
        self.advance(port, before);
        let control = self[id].is_control();
        if self.plan.shared.is_some() && !control {
            self.join_shared(port, id, now, ingress);
        } else if self.free_at(port) <= before {
            self.start(port, id, now);
        } else if control {
            self.queue_control(port, id, now);
        } else if self.queues.push_data(port, id, now) {
            self.list(port);
        }
    }

    #[cold]
    fn join_watched(&mut self, port: PortId, id: PacketId, now: u64, ingress: u32) {
        self.advance(port, self.before(now));
        self.queues.signal_join(id, now);
        self.queues.watch_join(port, id, now);
        self.join_any(port, id, now, ingress);
    }

    fn join_shared(&mut self, port: PortId, id: PacketId, now: u64, ingress: u32) {
        let Some(shared) = &self.plan.shared else { return };
        let packet = &self[id];
        let (size, class) = (u32::from(packet.size), packet.class);
        let (switch, queue) = (self.queues.switch(port), self.queues.class_bytes(port, class));
        let request = BufferRequest { switch, ingress, class, size, queue };
        // Whether it takes headroom must be computed from counters that are up to date.
        if self.plan.fabric.pfc
            && self.queues.buffers.takes_headroom(shared, &request)
            && self.queues.buffers.is_calm(switch)
        {
            self.advance_switch(switch, now);
        }
        if !self.queues.buffers.admits(shared, &request) && !self.admits_after_all(&request, now) {
            return self.queues.refuse(port, id, now);
        }
        let state = self.port(port);
        if state.free_at <= self.before(now) && state.paused >> class & 1 == 0 {
            // It has started before its sender is paused: the pause may leave by this port.
            self.start(port, id, now);
            if self.plan.fabric.pfc {
                self.check_pause(&request, size, now);
            }
            return;
        }
        self.queues.buffers.join(shared, &request, id);
        self.queue(port, id, now);
        if self.plan.fabric.pfc {
            self.check_pause(&request, 0, now);
        }
    }

    /// Checks the admission again: ports that lag behind may still count packets that have left.
    #[cold]
    fn admits_after_all(&mut self, request: &BufferRequest, now: u64) -> bool {
        let Some(shared) = &self.plan.shared else { return false };
        self.advance_switch(request.switch, now);
        self.queues.buffers.admits(shared, request)
    }

    /// Advances every port of a switch, so that its buffer's counters are up to date.
    pub(super) fn advance_switch(&mut self, switch: SwitchId, now: u64) {
        let plan = self.plan;
        for link in plan.topology.out_links(NodeId(plan.hosts + switch.0)) {
            self.advance(plan.port_of(link.0), self.before(now));
        }
    }

    /// Lets a control packet join the port of a NIC that has been advanced.
    #[inline]
    pub(crate) fn join_nic(&mut self, port: PortId, id: PacketId, now: u64) {
        if self.free_at(port) <= self.before(now) {
            self.start(port, id, now);
        } else {
            self.queue_control(port, id, now);
        }
    }

    fn queue_control(&mut self, port: PortId, id: PacketId, now: u64) {
        if self[id].kind == Kind::Header {
            return self.queue_header(port, id, now);
        }
        if self.queues.push_control(port, id, now) {
            self.list(port);
        }
    }

    /// Queues a header that was trimmed at another port.
    #[cold]
    fn queue_header(&mut self, port: PortId, id: PacketId, now: u64) {
        if self.queues.push_header(port, id, now) {
            self.list(port);
        }
    }

    /// Appends a data packet, regardless of the queue's length.
    #[inline]
    pub(crate) fn queue(&mut self, port: PortId, id: PacketId, now: u64) {
        if self.queues.push(port, id, now) {
            self.list(port);
        }
    }

    // ---- advancing ----

    /// Starts every transmission of a switch's port that is due at or before `until`.
    #[inline]
    pub(crate) fn advance(&mut self, port: PortId, until: u64) {
        match self.port(port).flags & (PLAIN | POOLED) {
            PLAIN => self.advance_plain(port, until),
            POOLED => self.advance_pooled(port, until),
            _ => self.advance_any(port, until),
        }
    }

    #[inline(never)]
    fn advance_any(&mut self, port: PortId, until: u64) {
        loop {
            let start = self.free_at(port);
            if start > until {
                return;
            }
            let Some(id) = self.queues.take(port, start) else { return };
            self.start(port, id, start);
            // After the start: the resume frame may leave by this port.
            if let Some((ingress, class)) = self.queues.resumes.take() {
                self.resume(ingress, class, start);
            }
        }
    }

    #[inline]
    fn advance_plain(&mut self, port: PortId, until: u64) {
        let state = self.port(port);
        if state.free_at <= until && state.backlogged() {
            self.advance_backlog(port, until);
        }
    }

    fn advance_backlog(&mut self, port: PortId, until: u64) {
        while let Some((id, start)) = self.queues.take_plain::<false>(port, until) {
            self.start_plain(port, id, start);
        }
    }

    #[inline]
    fn advance_pooled(&mut self, port: PortId, until: u64) {
        let state = self.port(port);
        if state.free_at <= until && state.backlogged() {
            self.advance_pooled_backlog(port, until);
        }
    }

    fn advance_pooled_backlog(&mut self, port: PortId, until: u64) {
        while let Some((id, start)) = self.queues.take_plain::<true>(port, until) {
            self.start_plain(port, id, start);
            // After the start: the resume frame may leave by this port.
            if let Some((ingress, class)) = self.queues.resumes.take() {
                self.resume(ingress, class, start);
            }
        }
    }

    // ---- starting ----

    #[inline(always)]
    fn start_plain(&mut self, port: PortId, id: PacketId, start: u64) {
        let (state, packet) = (&mut self.queues.ports[port.at()], &mut self.queues.packets[id]);
        let size = u32::from(packet.size);
        let end = start + u64::from(size) * u64::from(state.ps_per_byte);
        state.occupy(size, end);
        self.hops += 1;
        if !state.reach(packet, id, end, self.salts[port.at()], &self.ties, &mut self.cells) {
            self.start_remote(port, id, end);
        }
    }

    #[inline]
    pub(crate) fn start(&mut self, port: PortId, id: PacketId, start: u64) {
        if self.port(port).flags & (PLAIN | POOLED) != 0 {
            return self.start_plain(port, id, start);
        }
        self.start_any(port, id, start);
    }

    #[inline(never)]
    fn start_any(&mut self, port: PortId, id: PacketId, start: u64) {
        let (state, packet) = (&mut self.queues.ports[port.at()], &mut self.queues.packets[id]);
        let size = u32::from(packet.size);
        let time = match &mut self.clocks[port.at()] {
            None => u64::from(size) * u64::from(state.ps_per_byte),
            Some(clock) => clock.of(size),
        };
        let end = start + time;
        state.occupy(size, end);
        self.hops += 1;
        if state.flags & (FAULTY | WATCHED) != 0 {
            self.start_seen(port, id, start, end);
        } else if !state.reach(packet, id, end, self.salts[port.at()], &self.ties, &mut self.cells) {
            self.start_remote(port, id, end);
        }
    }

    /// Starts a packet over a link that loses packets or is watched.
    #[inline(never)]
    fn start_seen(&mut self, port: PortId, id: PacketId, start: u64, end: u64) {
        let Port { flags, delay, .. } = *self.port(port);
        if flags & WATCHED != 0 {
            self.queues.signal_start(port, id, start, end);
            self.queues.watch_start(port, id, start);
        }
        if flags & FAULTY != 0 {
            let (seed, key) = (self.plan.seed, self.plan.links[self.queues.link(port) as usize].key);
            let stream = || Stream::keyed(seed, key, "loss");
            let packet = &self.queues.packets[id];
            // Nothing repeats the frames of pauses that do not expire: a lost one would stop its sender for ever.
            let is_reliable = packet.kind == Kind::Pause && self.plan.fabric.pfc_pause.is_none();
            if !is_reliable && self.faults[port.at()].loses(packet, stream) {
                return self.queues.drop_packet(port, id, TraceEvent::Loss, start);
            }
        }
        if flags & WATCHED != 0 {
            self.queues.watch_arrival(port, id, end + delay);
        }
        let (state, packet) = (&self.queues.ports[port.at()], &mut self.queues.packets[id]);
        if !state.reach(packet, id, end, self.salts[port.at()], &self.ties, &mut self.cells) {
            self.start_remote(port, id, end);
        }
    }

    #[inline(never)]
    fn start_remote(&mut self, port: PortId, id: PacketId, end: u64) {
        let state = self.port(port);
        let (to, delay, order) = (state.to, state.delay, state.arrival(self.salts[port.at()], &self.ties));
        self.queues.packets[id].next = to;
        let event = anabranch_engine::Event { time: end + delay, order, payload: id.0 };
        let message = Message { event, cell: u32::from(self.plan.cell_of(to)) };
        self.outbox[usize::from(self.plan.cells.owner_of(NodeId(to)))].push(message);
    }

    // ---- the list of ports that have more to send ----

    /// Lists a port, so that it advances at the end of the window at the latest.
    #[inline]
    pub(crate) fn list(&mut self, port: PortId) {
        let state = &mut self.queues.ports[port.at()];
        if state.flags & LISTED == 0 {
            state.flags |= LISTED;
            self.lists.push(port);
        }
        if state.flags & (PROMPT | NIC) == PROMPT {
            self.arm(port, self.free_at(port));
        }
    }

    /// Schedules a service event within the window for a prompt port of a switch that may start a packet at `start`.
    #[inline(never)]
    pub(crate) fn arm(&mut self, port: PortId, start: u64) {
        let time = self.service_time(port, start);
        let state = &mut self.queues.ports[port.at()];
        if state.flags & (PROMPT | ARMED) == PROMPT && time < self.cells.window_end() {
            state.flags |= ARMED;
            self.ask_for_service(port, time);
        }
    }

    /// Returns the time at which a prompt port must be advanced over a transmission that starts at `start`.
    pub(crate) fn service_time(&self, port: PortId, start: u64) -> u64 {
        let link = &self.plan.links[self.queues.link(port) as usize];
        start.saturating_add(if self.plan.is_immediate(link) { self.tie } else { link.delay.max(self.tie) })
    }

    pub(crate) fn ask_for_service(&mut self, port: PortId, time: u64) {
        let link = &self.plan.links[self.queues.link(port) as usize];
        let event = Event::Service { rank: link.rank, port };
        self.cells.push(u32::from(self.plan.cell_of(link.from)), event.at(time));
    }

    #[inline]
    pub(crate) fn disarm(&mut self, port: PortId) {
        self.port_mut(port).flags &= !ARMED;
    }

    #[inline]
    pub(crate) fn nic_of(&self, port: PortId) -> Option<HostId> {
        (self.port(port).flags & NIC != 0).then(|| HostId(self.queues.from(port)))
    }

    /// Returns `true` if the port advances at the end of the window, and needs no event within it.
    #[inline]
    pub(crate) fn is_scheduled(&self, port: PortId) -> bool {
        self.port(port).flags & (LISTED | PROMPT) == LISTED
    }

    #[inline]
    pub(crate) fn is_prompt(&self, port: PortId) -> bool {
        self.port(port).flags & PROMPT != 0
    }

    pub(crate) fn fetch_cell(&self, cell: u32) {
        let ports = self.plan.ports_of_cell(cell);
        for port in &self.queues.ports[ports.start as usize..ports.end as usize] {
            prefetch(port);
            prefetch(&port.account);
        }
    }

    pub(crate) fn fetch_port(&self, port: PortId) {
        prefetch(self.port(port));
        prefetch(&self.port(port).account);
        prefetch(self.queues.counters(port));
    }

    /// Prefetches the histograms of the cell's queues; the ports have been fetched meanwhile.
    pub(crate) fn fetch_histograms(&self, cell: u32) {
        let ports = self.plan.ports_of_cell(cell);
        for port in ports.map(PortId) {
            self.queues.histograms.prefetch(port, self.port(port).waiting_bytes);
        }
    }

    #[inline]
    pub(crate) fn fetch_listed(&self, index: usize) {
        if let Some(port) = self.lists.get(index) {
            prefetch(self.port(port));
        }
    }

    /// Records the next start of a listed port, if any; returns `true` if the port stays in the list.
    #[inline]
    pub(crate) fn note_next(&mut self, cell: u32, port: PortId, next: Option<u64>) -> bool {
        match next {
            Some(time) => self.cells.wake(cell, time),
            None => self.port_mut(port).flags &= !LISTED,
        }
        next.is_some()
    }

    // ---- read access and faults ----

    /// Returns the bytes ahead of a new packet at a switch's port: waiting, control included, and in transmission. Headers that
    /// wait for their share are not counted.
    #[inline]
    pub(crate) fn backlog(&mut self, port: PortId, now: u64) -> u64 {
        self.advance(port, self.before(now));
        let state = self.port(port);
        let sending = if state.free_at > now { state.sending } else { 0 };
        u64::from(state.waiting_bytes) + u64::from(state.control_bytes) + u64::from(sending)
    }

    /// Applies a fault that begins or ends at a port's link; the port must have been advanced up to then.
    pub(crate) fn change_fault(&mut self, port: PortId, fault: &Fault) {
        if let FaultAction::Degrade(rate) = fault.action {
            let plan = self.plan;
            let healthy = plan.links[self.queues.link(port) as usize].rate;
            let (ports, state) = (self.queues.ports.len(), &mut self.queues.ports[port.at()]);
            (state.ps_per_byte, self.clocks[port.at()]) =
                wire_time(rate, plan.fabric.whole_nanoseconds, plan.wire_mtu.max(256));
            if state.flags & NIC == 0 {
                self.queues.scale_limits(port, (rate, healthy), ports);
            }
        } else {
            let state = &mut self.faults[port.at()];
            state.change(fault.action, fault.data_only);
            let flags = &mut self.queues.ports[port.at()].flags;
            *flags = if state.acts() { *flags | FAULTY } else { *flags & !FAULTY };
        }
        self.choose_path(port);
    }

    pub(crate) fn memory(&self) -> usize {
        self.queues.memory() + self.cells.bytes() + self.salts.capacity() * 8
    }
}

impl std::ops::Index<PacketId> for Ports<'_> {
    type Output = Packet;
    #[inline]
    fn index(&self, id: PacketId) -> &Packet {
        &self.queues.packets[id]
    }
}
impl std::ops::IndexMut<PacketId> for Ports<'_> {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.queues.packets[id]
    }
}
