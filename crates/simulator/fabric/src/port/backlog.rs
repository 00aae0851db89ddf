//! Queues of the ports: how packets join, leave, are marked, trimmed and dropped. [`super::Ports`] decides when a
//! packet joins and when one may start.

use super::{
    NIC, PLAIN, Port, WATCHED,
    buffer::{BufferRequest, Buffers},
    classes::ClassQueues,
    contest::Contest,
    headers::{Admitted, Headers},
    limits::AllLimits,
    signal::Signals,
};
use crate::{
    arena::{Arena, Packets},
    ids::{FlowId, PacketId, PortId, SwitchId},
    measure::{Balances, Histograms, PausedTimes, Watch},
    packet::{Fifo, Kind, LAST_HOP, MARKED},
    plan::Plan,
};
use anabranch_backend::{MarkedQueue, MarkingStates, TRIMMED_SIZE, Trim};
use anabranch_lb::Record;
use anabranch_outcome::TraceEvent;
use anabranch_random::Stream;
use anabranch_units::Rate;
use std::sync::Arc;

/// Counters of rare events of a port, kept apart from the hot data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortCounters {
    pub(crate) marked: u64,
    pub(crate) trimmed: u64,
    pub(crate) dropped: u64,
    /// Pause frames received for the data of this port.
    pub(crate) pauses: u64,
}

#[derive(Debug)]
pub(crate) struct Backlog<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) ports: Vec<Port>,
    links: &'a [u32],
    /// Per port, the node that sends over its link.
    from: Vec<u32>,
    pub(crate) packets: Packets,
    pub(crate) ledger: Balances,
    pub(super) counters: Vec<PortCounters>,
    pub(crate) histograms: Histograms,
    pub(crate) watch: Watch,
    pub(super) classes: ClassQueues,
    pub(crate) buffers: Buffers,
    pub(super) paused_times: PausedTimes,
    /// Ingress and class that receive a resume once the packet just taken has started.
    pub(super) resumes: Option<(u32, u8)>,
    /// Per port, random stream for marks and for the choice of the packet to trim; created on first use.
    draws: Vec<Option<Box<Stream>>>,
    /// Per port and class.
    marking: MarkingStates,
    contests: Vec<Contest>,
    pub(super) headers: Headers,
    pub(super) limits: AllLimits,
    pub(super) signals: Option<Box<Signals>>,
    control_limit: u32,
}

impl<'a> Backlog<'a> {
    pub(super) fn new(plan: &'a Plan<'a>, me: u16, mut ports: Vec<Port>, arena: Arc<Arena>) -> Self {
        let (count, fabric) = (ports.len(), &plan.fabric);
        let captured = plan.measure.capture_links.iter().filter(|link| plan.owner_of_link(link.0) == me);
        let captured = captured.map(|link| plan.port_of(link.0));
        let (traced, limit) = (&plan.measure.trace_flows, plan.measure.trace_limit);
        let mut watch = Watch::new(traced, plan.flows.flows.len(), limit, captured, plan.measure.capture_limit);
        watch.record = plan
            .measure
            .trace_scheme
            .then(|| Record::of(traced.iter().map(|&flow| (plan.flow(FlowId(flow)).key, flow))));
        let signals = Signals::new(plan, me);
        match watch.traces() || signals.is_some() {
            true => ports.iter_mut().for_each(|port| port.flags |= WATCHED),
            false => watch.captured().for_each(|port| ports[port.at()].flags |= WATCHED),
        }
        Backlog {
            plan,
            ports,
            links: plan.links_of(me),
            from: plan.links_of(me).iter().map(|&link| plan.links[link as usize].from).collect(),
            packets: Packets::new(arena),
            ledger: Balances::default(),
            counters: vec![PortCounters::default(); count],
            histograms: Histograms::new(count, plan.longest_queue(), plan.measure.occupancy),
            watch,
            classes: ClassQueues::new(count, fabric.scheduling, &fabric.quanta, fabric.usual.marking.is_sampled()),
            buffers: Buffers::new(plan.shared.as_ref(), plan.links.len(), fabric.classes, fabric.pfc),
            paused_times: PausedTimes::new(
                if plan.measure.attribution && fabric.pfc { count } else { 0 },
                fabric.classes,
            ),
            resumes: None,
            draws: vec![None; count],
            marking: fabric.usual.marking.states(count * fabric.classes),
            contests: vec![Contest::default(); count],
            headers: Headers::new(fabric.trimmed_share, count),
            limits: AllLimits::new(
                fabric,
                plan.links_of(me).iter().map(|&link| (link, plan.links[link as usize].rate)),
            ),
            signals,
            control_limit: fabric.control_limit,
        }
    }

    // ---- joining; each returns `true` if the port now has something more to send ----

    /// Queues a data packet at a plain port that is busy.
    #[inline(always)]
    pub(super) fn push_plain(&mut self, port: PortId, id: PacketId, now: u64) -> bool {
        let (state, packet) = (&mut self.ports[port.at()], &mut self.packets[id]);
        let (bytes, waiting) = (u32::from(packet.size), state.waiting_bytes);
        if waiting + bytes > self.limits.usual.queue {
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
        if waiting > self.limits.usual.joining {
            self.mark(port, id, waiting, now);
        }
        true
    }

    #[inline(always)]
    pub(super) fn push_control(&mut self, port: PortId, id: PacketId, now: u64) -> bool {
        let state = &mut self.ports[port.at()];
        let packet = &mut self.packets[id];
        let size = u32::from(packet.size);
        if state.control_bytes.saturating_add(size) > self.control_limit && state.flags & NIC == 0 {
            self.drop_packet(port, id, TraceEvent::Drop, now);
            return false;
        }
        packet.next = PacketId::NONE.0;
        state.control_bytes += size;
        // A pause frame is queued before other control packets (IEEE 802.1Qbb: it passes the queues), behind other
        // pause frames.
        if packet.kind == Kind::Pause && !self.plan.shared.as_ref().is_some_and(|shared| shared.recorded) {
            state.control.push_behind(&mut self.packets, id, |other| other.kind == Kind::Pause);
        } else {
            state.control.push(&mut self.packets, id);
        }
        true
    }

    /// Queues a data packet, or trims or drops it where the queue is full.
    #[inline]
    pub(super) fn push_data(&mut self, port: PortId, id: PacketId, now: u64) -> bool {
        let (size, class) = (u32::from(self.packets[id].size), self.packets[id].class);
        let waiting = self.class_bytes(port, class);
        let limits = self.limits.of(port);
        if waiting + size > limits.queue {
            return self.overflow(port, id, now);
        }
        if waiting > limits.joining {
            self.mark(port, id, waiting, now);
        }
        self.push(port, id, now)
    }

    /// Appends a data packet, regardless of the queue's length.
    #[inline(always)]
    pub(super) fn push(&mut self, port: PortId, id: PacketId, now: u64) -> bool {
        let size = i64::from(self.packets[id].size);
        self.change(port, now, size, 1);
        let packet = &mut self.packets[id];
        packet.next = PacketId::NONE.0;
        packet.queued_at = now;
        if self.paused_times.any() {
            let paused = self.paused_times.before(port, packet.class, now);
            self.packets.join(id, paused);
        }
        if self.classes.are_used() {
            let class = self.packets[id].class;
            self.sample(port, class, self.classes.bytes(port, class), now);
            self.classes.push(&mut self.packets, port, id);
        } else {
            self.ports[port.at()].data.push(&mut self.packets, id);
        }
        // An idle port that is paused is woken when the pause ends.
        self.ports[port.at()].paused == 0 || self.can_send(port)
    }

    #[inline]
    pub(super) fn class_bytes(&self, port: PortId, class: u8) -> u32 {
        if self.classes.are_used() { self.classes.bytes(port, class) } else { self.ports[port.at()].waiting_bytes }
    }

    /// Trims a data packet that finds its queue full, or drops it where trimming is off.
    #[cold]
    fn overflow(&mut self, port: PortId, id: PacketId, now: u64) -> bool {
        let fabric = &self.plan.fabric;
        if !fabric.trimming {
            self.refuse(port, id, now);
            return false;
        }
        match fabric.trim {
            Trim::Coin if self.draws(port).chance(1, 2) => self.swap_with_last(port, id, now),
            Trim::Coin => {}
            _ => self.contend(port, id, now),
        }
        if self.packets[id].kind == Kind::Probe {
            // A probe measures the round-trip time of a packet of its size: without its bytes the result would be wrong.
            self.drop_packet(port, id, TraceEvent::Drop, now);
            return false;
        }
        if self.ports[port.at()].flags & WATCHED != 0 {
            self.signal_trim(port, id);
            self.watch_event(TraceEvent::Trim, port, id, now, None);
        }
        let packet = &mut self.packets[id];
        self.counters[port.at()].trimmed += 1;
        self.ledger.trimmed(packet);
        packet.kind = Kind::Header;
        if fabric.marks_last_hop && self.ports[port.at()].to < self.plan.hosts {
            packet.flags |= LAST_HOP;
        }
        packet.size = TRIMMED_SIZE;
        self.ledger.born(packet);
        if self.ports[port.at()].flags & WATCHED != 0 {
            self.watch_join(port, id, now);
        }
        self.push_header(port, id, now)
    }

    /// Queues a trimmed header: with the control packets, or behind data where its class has used up its share.
    pub(super) fn push_header(&mut self, port: PortId, id: PacketId, now: u64) -> bool {
        let state = &self.ports[port.at()];
        if state.waiting_packets == 0 {
            return self.push_control(port, id, now);
        }
        let (limit, plain) = (self.limits.of(port).trimmed, state.flags & PLAIN != 0);
        let admitted = self.headers.admit(&mut self.packets, port, id, limit, plain);
        if self.headers.any(port) {
            self.ports[port.at()].flags &= !PLAIN;
        }
        match admitted {
            Admitted::Now => return self.push_control(port, id, now),
            Admitted::Waits => {}
            Admitted::Never => self.drop_packet(port, id, TraceEvent::Drop, now),
        }
        false
    }

    /// Lets headers go before data for which their class has credit; all that wait in turn where no data does.
    fn serve_headers(&mut self, port: PortId) {
        loop {
            let state = &self.ports[port.at()];
            let idle = state.waiting_packets == 0;
            let Some(id) = self.headers.take(&self.packets, port, idle && state.control.is_empty()) else { break };
            self.packets[id].next = PacketId::NONE.0;
            let state = &mut self.ports[port.at()];
            state.control_bytes += u32::from(self.packets[id].size);
            state.control.push(&mut self.packets, id);
        }
        let idle = self.ports[port.at()].waiting_packets == 0;
        if self.headers.settle(port, idle) {
            self.ports[port.at()].flags |= PLAIN;
        }
    }

    /// Drops an arriving data packet, or the one whose place it wins.
    pub(super) fn refuse(&mut self, port: PortId, id: PacketId, now: u64) {
        self.contend(port, id, now);
        self.drop_packet(port, id, TraceEvent::Drop, now);
    }

    /// Exchanges the arriving packet with the last one of its class where both contend for one place and it wins.
    fn contend(&mut self, port: PortId, id: PacketId, now: u64) {
        let fabric = &self.plan.fabric;
        let last = self.last(port, self.packets[id].class);
        // With PFC, the buffer accounts for the link by which a packet came.
        if fabric.arrivals_first || fabric.pfc || !last.is_some() {
            return;
        }
        let (state, link) = (&self.ports[port.at()], &self.plan.links[self.link(port) as usize]);
        let (new, old) = (&self.packets[id], &self.packets[last]);
        let began = state.free_at.saturating_sub(state.wire_time(link.rate));
        if old.queued_at < began || (old.size, old.kind) != (new.size, new.kind) {
            return;
        }
        let key = anabranch_random::key(self.plan.seed, link.key, "contest");
        if self.contests[port.at()].won_by(new.flow, old.flow, state.account.sent_packets, key) {
            self.swap_with_last(port, id, now);
        }
    }

    fn last(&self, port: PortId, class: u8) -> PacketId {
        if self.classes.are_used() { self.classes.last(port, class) } else { self.ports[port.at()].data.last() }
    }

    /// Exchanges the arriving packet with the last one of its class, which is then the one to trim.
    fn swap_with_last(&mut self, port: PortId, id: PacketId, now: u64) {
        let class = self.packets[id].class;
        let last = self.last(port, class);
        if !last.is_some() {
            return;
        }
        let difference = i64::from(self.packets[id].size) - i64::from(self.packets[last].size);
        self.change(port, now, difference, 0);
        if self.classes.are_used() {
            self.sample(port, class, self.classes.bytes(port, class), now);
            self.classes.resize(port, class, difference);
        }
        self.packets.swap(id, last);
        self.watch.swap(id, last);
        let hop = now - self.packets[id].queued_at;
        self.ports[port.at()].account.waited += hop;
        self.note_wait(port, id, class, hop, now);
        let paused = self.paused_times.before(port, class, now);
        self.packets.join(last, paused);
        let next = self.packets[id].next;
        let arrived = &mut self.packets[last];
        arrived.next = next;
        arrived.queued_at = now;
        let size = u32::from(arrived.size);
        let ahead = self.class_bytes(port, class) - size;
        if ahead > self.limits.of(port).joining {
            self.mark(port, last, ahead, now);
        }
    }

    /// Accounts for the time since the last change of the data queue and applies a change.
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

    // ---- leaving ----

    /// Returns `true` if a packet waits that is not paused.
    #[inline]
    pub(crate) fn can_send(&self, port: PortId) -> bool {
        let state = &self.ports[port.at()];
        if state.paused == 0 {
            state.backlogged()
        } else {
            !state.control.is_empty() || self.classes.are_used() && self.classes.waits(port, state.paused)
        }
    }

    /// Takes the next packet of a plain port with its start, at most `until`.
    #[inline(always)]
    pub(super) fn take_plain<const POOLED: bool>(&mut self, port: PortId, until: u64) -> Option<(PacketId, u64)> {
        let state = &mut self.ports[port.at()];
        let start = state.free_at;
        if start > until || !state.backlogged() {
            return None;
        }
        let control = !state.control.is_empty();
        if POOLED && !control && state.paused != 0 {
            return None;
        }
        let id = if control { state.pop_control(&self.packets) } else { state.data.pop(&self.packets) };
        // It has waited for long; the next one will have waited as long.
        self.packets.prefetch(state.data.first());
        let packet = &mut self.packets[id];
        if !control {
            let (bytes, packets) = (state.waiting_bytes, state.waiting_packets);
            let span = state.account.held(bytes, packets, start);
            let hop = start - packet.queued_at;
            state.account.waited += hop;
            state.waiting_bytes = bytes - u32::from(packet.size);
            state.waiting_packets = packets - 1;
            self.histograms.record(port, bytes, packets, span);
            let behind = state.waiting_bytes;
            let (class, size, order) = (packet.class, u32::from(packet.size), state.order);
            self.packets.leave(id, hop, order);
            if POOLED && self.paused_times.any() {
                self.packets.resume(id, self.paused_times.before(port, class, start));
            }
            if behind > self.limits.usual.leaving {
                self.mark(port, id, behind, start);
            }
            if POOLED {
                self.leave_buffer(port, id, class, size, behind);
            }
        }
        Some((id, start))
    }

    /// Takes the next packet at `start`: control first, then data that is not paused.
    #[inline]
    pub(crate) fn take(&mut self, port: PortId, start: u64) -> Option<PacketId> {
        let state = &mut self.ports[port.at()];
        if !state.control.is_empty() {
            let id = state.pop_control(&self.packets);
            if self.headers.any(port) {
                self.serve_headers(port);
            }
            return Some(id);
        }
        (state.waiting_packets > 0 && self.can_send(port)).then(|| self.take_data(port, start))
    }

    fn take_data(&mut self, port: PortId, start: u64) -> PacketId {
        let state = &mut self.ports[port.at()];
        let id = if self.classes.are_used() {
            let id = self.classes.pop(&self.packets, port, state.paused);
            let (size, class) = (self.packets[id].size, self.packets[id].class);
            self.sample(port, class, self.classes.bytes(port, class) + u32::from(size), start);
            id
        } else {
            state.data.pop(&self.packets)
        };
        let packet = &self.packets[id];
        let (size, class) = (packet.size, packet.class);
        let hop = start - packet.queued_at;
        self.ports[port.at()].account.waited += hop;
        self.note_wait(port, id, class, hop, start);
        self.change(port, start, -i64::from(size), -1);
        let behind = self.class_bytes(port, class);
        if behind > self.limits.of(port).leaving {
            self.mark(port, id, behind, start);
        }
        if self.ports[port.at()].flags & NIC == 0 {
            self.leave_buffer(port, id, class, u32::from(size), behind);
        }
        if self.headers.any(port) {
            self.headers.earn(port, u32::from(size));
            self.serve_headers(port);
        }
        id
    }

    /// Notes the wait of a data packet that leaves the queue at `start`.
    #[inline]
    fn note_wait(&mut self, port: PortId, id: PacketId, class: u8, hop: u64, start: u64) {
        self.packets.leave(id, hop, self.ports[port.at()].order);
        if self.paused_times.any() {
            self.packets.resume(id, self.paused_times.before(port, class, start));
        }
    }

    /// Returns the time for which a class of a port has been paused up to `now`, no earlier than its last change.
    pub(crate) fn paused_before(&self, port: PortId, class: u8, now: u64) -> u64 {
        self.paused_times.before(port, class, now)
    }

    /// Accounts for a data packet that leaves a port of a switch, where `behind` bytes of its class are left.
    #[inline]
    fn leave_buffer(&mut self, port: PortId, id: PacketId, class: u8, size: u32, behind: u32) {
        if let Some(shared) = &self.plan.shared {
            let request = BufferRequest { switch: self.switch(port), ingress: u32::MAX, class, size, queue: behind };
            self.resumes = self.buffers.leave(shared, &request, id).map(|ingress| (ingress, class));
        }
    }

    #[inline(never)]
    fn mark(&mut self, port: PortId, id: PacketId, bytes: u32, time: u64) {
        let (plan, links, packets, classes) = (self.plan, self.links, &self.packets, &self.classes);
        let limits = self.limits.of(port);
        let queue = MarkedQueue { bytes: bytes.saturating_sub(limits.unmarked), time };
        let at = || (packets[id].class, classes.index(port, packets[id].class));
        let draws = &mut self.draws[port.at()];
        let draw = || draws.get_or_insert_with(|| new_draws(plan, links[port.at()])).unit();
        if self.marking.marks(at, &limits.marking, &queue, draw) {
            self.packets[id].flags |= MARKED;
            self.counters[port.at()].marked += 1;
            if self.ports[port.at()].flags & WATCHED != 0 {
                self.watch_event(TraceEvent::Mark, port, id, time, Some(bytes));
            }
        }
    }

    /// Notes for a rule that samples queues that the one of a class, of `bytes`, changes at `now`.
    fn sample(&mut self, port: PortId, class: u8, bytes: u32, now: u64) {
        let limits = self.limits.of(port);
        if limits.marking.is_sampled() {
            let counted = bytes.saturating_sub(limits.unmarked);
            self.marking.held(self.classes.index(port, class), &limits.marking, counted, now);
        }
    }

    fn draws(&mut self, port: PortId) -> &mut Stream {
        let (plan, link) = (self.plan, self.link(port));
        self.draws[port.at()].get_or_insert_with(|| new_draws(plan, link))
    }

    /// Sets the limits of a port, one of `ports`, whose link has another rate than its healthy one.
    #[inline(never)]
    pub(super) fn scale_limits(&mut self, port: PortId, rates: (Rate, Rate), ports: usize) {
        let whole = self.plan.fabric.at(self.link(port), rates.1);
        self.limits.change_rate(port, rates, whole, ports, self.plan.wire_mtu as u32);
    }

    pub(super) fn drop_packet(&mut self, port: PortId, id: PacketId, how: TraceEvent, now: u64) {
        self.counters[port.at()].dropped += 1;
        self.watch_event(how, port, id, now, None);
        self.discard(id);
    }

    pub(super) fn discard(&mut self, id: PacketId) {
        self.ledger.dropped(&self.packets[id]);
        self.packets.remove(id);
    }

    // ---- read access and accounts ----

    pub(super) fn link(&self, port: PortId) -> u32 {
        self.links[port.at()]
    }

    /// Returns the node that sends over the link of a port.
    #[inline]
    pub(super) fn from(&self, port: PortId) -> u32 {
        self.from[port.at()]
    }

    #[inline]
    pub(super) fn switch(&self, port: PortId) -> SwitchId {
        SwitchId(self.from(port) - self.plan.hosts)
    }

    /// Returns the queues of a port, control first.
    pub(crate) fn of(&self, port: PortId) -> impl Iterator<Item = &Fifo> {
        let state = &self.ports[port.at()];
        let (one, several) =
            if self.classes.are_used() { (None, Some(self.classes.of(port))) } else { (Some(&state.data), None) };
        std::iter::once(&state.control).chain(one).chain(several.into_iter().flatten()).chain(self.headers.queue(port))
    }

    /// Returns the bytes of control packets and trimmed headers that wait at a port.
    pub(crate) fn control_bytes(&self, port: PortId) -> u64 {
        u64::from(self.ports[port.at()].control_bytes) + u64::from(self.headers.bytes(port))
    }

    pub(crate) fn counters(&self, port: PortId) -> &PortCounters {
        &self.counters[port.at()]
    }

    /// Returns the bytes that each port has put on the wire until `now`.
    pub(crate) fn sent_until(&self, plan: &Plan<'_>, now: u64) -> Vec<u64> {
        let rates = self.links.iter().map(|link| plan.links[*link as usize].rate);
        self.ports.iter().zip(rates).map(|(port, rate)| port.sent_until(now, rate)).collect()
    }

    pub(crate) fn finish_accounts(&mut self, port: PortId, end: u64) {
        let end = end.max(self.ports[port.at()].account.changed_at);
        self.change(port, end, 0, 0);
    }

    pub(super) fn memory(&self) -> usize {
        self.ports.capacity() * (size_of::<Port>() + size_of::<PortCounters>() + size_of::<Contest>() + 3 * 8 + 4)
            + self.headers.memory()
            + self.packets.bytes()
            + self.histograms.memory()
            + self.classes.memory()
            + self.marking.memory()
            + self.buffers.memory(self.packets.slots())
    }
}

/// Creates the stream of a link, kept so that later draws do not read the link.
#[cold]
fn new_draws(plan: &Plan<'_>, link: u32) -> Box<Stream> {
    Box::new(Stream::keyed(plan.seed, plan.links[link as usize].key, "red"))
}
