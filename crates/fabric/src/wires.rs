//! Ports, queues and links of a partition: marking, trimming, scheduling, transmission.

use crate::{
    buffer::{Admission, Buffers, Guest},
    classes::ClassQueues,
    histogram::QueueHistograms,
    order,
    packet::{Arena, Kind, MARKED, NONE, Packet},
    parameters::{MarkAt, Quirks, Trim},
    pause::Pauses,
    plan::{Message, Plan},
    port::{ARMED, BOUNDARY, CUT, FAULTY, NIC, Port, PortCounters},
};
use anabranch_engine::{Event, Wheel};
use anabranch_random::Stream;
use anabranch_topology::NodeId;
use anabranch_units::{Rate, Serialiser};

/// What a link does to packets at the moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkFault {
    pub(crate) down: bool,
    /// Packets lost out of 10^9.
    pub(crate) loss_per_billion: u64,
    /// Only data packets are affected.
    pub(crate) data_only: bool,
}

/// Totals of a partition.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) packet_hops: u64,
    pub(crate) dropped: [Tally; KINDS],
    pub(crate) trimmed_packets: u64,
    pub(crate) trimmed_bytes: u64,
    /// Pause frames sent.
    pub(crate) pause_frames: u64,
}

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
    }
}

/// Kinds that tallies tell apart.
pub(crate) const KINDS: usize = 5;

/// Index of a packet's kind in tallies: data, headers, acknowledgements, probes with their replies, words between
/// switches.
pub(crate) fn tally_of(kind: Kind) -> usize {
    match kind {
        Kind::Data => 0,
        Kind::Header => 1,
        Kind::Ack | Kind::Nack | Kind::Free => 2,
        Kind::Probe | Kind::ProbeReply => 3,
        Kind::SwitchControl | Kind::Pause => 4,
    }
}

/// Everything that moves packets from port to port.
#[derive(Debug)]
pub(crate) struct Wires {
    pub(crate) ports: Vec<Port>,
    pub(crate) packets: Arena,
    pub(crate) wheel: Wheel,
    pub(crate) totals: Totals,
    pub(crate) counters: Vec<PortCounters>,
    /// Messages for other partitions, filled within a window.
    pub(crate) outbox: Vec<Vec<Message>>,
    pub(crate) histograms: QueueHistograms,
    /// Ports whose rate does not give whole picoseconds per byte, and their state.
    uneven: Vec<Option<Box<Serialiser>>>,
    /// Wire times in whole nanoseconds by size, per rate, where the fabric counts so.
    cuts: Vec<(Rate, Box<[u32]>)>,
    pub(crate) buffers: Buffers,
    pub(crate) pauses: Pauses,
    /// Pause frames that came into being here.
    pub(crate) born_control: Tally,
    faults: Vec<LinkFault>,
    loss: Vec<Option<Box<Stream>>>,
    red: Vec<Option<Box<Stream>>>,
    classes: ClassQueues,
    /// End of the window being run: boundary ports are worked out up to here when it ends.
    pub(crate) window_end: u64,
    /// Whether transmissions may be worked out later than they happen.
    lazy: bool,
    /// 1 where the fabric follows the reference model, in which a packet that arrives at the very time at which a port
    /// becomes free joins the queue before the port chooses; else 0.
    late: u64,
}

impl Wires {
    pub(crate) fn new(plan: &Plan, me: u16, wheel: Wheel, partitions: usize) -> Self {
        let mut uneven = Vec::new();
        let mut cuts = Vec::new();
        let ports: Vec<Port> = plan
            .links
            .iter()
            .map(|link| {
                let (ps_per_byte, serialiser) = wire_times(plan, link.rate, &mut cuts);
                uneven.push(serialiser);
                let mut flags = 0;
                if plan.owner[link.from as usize] == me && plan.owner[link.to as usize] != me {
                    flags |= BOUNDARY;
                }
                if link.from < plan.hosts {
                    flags |= NIC;
                }
                Port::new(link.delay, ps_per_byte, order::ARRIVAL | link.rank, link.to, flags)
            })
            .collect();
        let count = ports.len();
        Wires {
            ports,
            packets: Arena::default(),
            wheel,
            totals: Totals::default(),
            counters: vec![PortCounters::default(); count],
            outbox: (0..partitions).map(|_| Vec::new()).collect(),
            histograms: QueueHistograms::new(plan, count),
            uneven,
            cuts,
            buffers: Buffers::new(plan),
            pauses: Pauses::new(plan),
            born_control: Tally::default(),
            faults: vec![LinkFault::default(); if plan.faults.is_empty() { 0 } else { count }],
            loss: vec![None; if plan.faults.is_empty() { 0 } else { count }],
            red: vec![None; count],
            classes: ClassQueues::new(plan, count),
            window_end: 0,
            lazy: plan.fabric.lazy,
            late: u64::from(plan.reference()),
        }
    }

    /// Up to when ports are worked out before an arrival at `now`: whether those that start at `now` have looked already.
    #[inline]
    pub(crate) fn before(&self, now: u64) -> u64 {
        now - self.late.min(now)
    }

    /// A packet that came into its switch by `ingress` joins the port of `link` at `now`.
    #[inline]
    pub(crate) fn enqueue(&mut self, plan: &Plan, link: u32, id: u32, now: u64, ingress: u32) {
        let before = self.before(now);
        self.catch_up(plan, link, before);
        let port = &mut self.ports[link as usize];
        if plan.shared.is_some() && !self.packets[id].is_control() {
            self.enqueue_shared(plan, link, id, now, ingress);
        } else if port.busy_until <= before {
            self.transmit(plan, link, id, now);
        } else if self.packets[id].is_control() {
            self.queue_control(plan, link, id, now);
        } else {
            self.queue_data(plan, link, id, now);
        }
    }

    /// A data packet joins a port of a switch with a shared buffer.
    #[inline]
    fn enqueue_shared(&mut self, plan: &Plan, link: u32, id: u32, now: u64, ingress: u32) {
        let Some(shared) = &plan.shared else { return };
        let (size, class) = (u32::from(self.packets[id].size), self.packets[id].class);
        let switch = plan.links[link as usize].from - plan.hosts;
        let guest = Guest { switch, ingress, class, size, queue: self.class_bytes(plan, link, class) };
        if self.buffers.admits(shared, &guest) == Admission::Drop && !self.admits_after_all(plan, &guest, now) {
            self.drop_packet(link, id);
            return;
        }
        let before = self.before(now);
        let port = &self.ports[link as usize];
        if port.busy_until <= before && port.paused >> class & 1 == 0 {
            if plan.fabric.pfc {
                self.check_pause(plan, &guest, size, now);
            }
            self.transmit(plan, link, id, now);
            return;
        }
        self.buffers.join(shared, &guest, id);
        self.join_queue(plan, link, id, now);
        if plan.fabric.pfc {
            self.check_pause(plan, &guest, 0, now);
        }
    }

    /// Ports that work lazily may hold, on paper, packets that have left: they are worked out, and then it counts.
    #[cold]
    fn admits_after_all(&mut self, plan: &Plan, guest: &Guest, now: u64) -> bool {
        let (true, Some(shared)) = (self.lazy, &plan.shared) else { return false };
        for other in plan.topology.out_links(NodeId(plan.hosts + guest.switch)) {
            self.catch_up(plan, other.0, self.before(now));
        }
        self.buffers.admits(shared, guest) == Admission::Admit
    }

    /// A control packet joins the port of a NIC that has been caught up.
    #[inline]
    pub(crate) fn enqueue_nic(&mut self, plan: &Plan, link: u32, id: u32, now: u64) {
        if self.ports[link as usize].busy_until <= self.before(now) {
            self.transmit(plan, link, id, now);
        } else {
            self.queue_control(plan, link, id, now);
        }
    }

    fn queue_control(&mut self, plan: &Plan, link: u32, id: u32, now: u64) {
        let port = &mut self.ports[link as usize];
        let packet = &mut self.packets[id];
        let size = u32::from(packet.size);
        if port.control_bytes + size > plan.fabric.control_limit && port.flags & NIC == 0 {
            self.drop_packet(link, id);
            return;
        }
        packet.queued_at = now;
        port.control_bytes += size;
        // A pause frame goes before other control packets (IEEE 802.1Qbb: it passes the queues), behind other frames.
        let ahead = packet.kind == Kind::Pause && !plan.reference();
        let (mut before, mut after) = (port.control_tail, NONE);
        if ahead {
            (before, after) = (NONE, port.control_head);
            while after != NONE && self.packets[after].kind == Kind::Pause {
                (before, after) = (after, self.packets[after].next);
            }
        }
        self.packets[id].next = after;
        let port = &mut self.ports[link as usize];
        if after == NONE {
            port.control_tail = id;
        }
        if before == NONE {
            port.control_head = id;
        } else {
            self.packets[before].next = id;
        }
        self.arm(link);
    }

    fn queue_data(&mut self, plan: &Plan, link: u32, id: u32, now: u64) {
        let size = u32::from(self.packets[id].size);
        let class = self.packets[id].class;
        let waiting = self.class_bytes(plan, link, class);
        if waiting + size > plan.fabric.queue_limit {
            self.overflow(plan, link, id, now);
            return;
        }
        if plan.fabric.ecn && plan.fabric.mark_at == MarkAt::Enqueue {
            self.mark(plan, link, id, waiting);
        }
        self.join_queue(plan, link, id, now);
    }

    /// A data packet goes to the end of its queue.
    #[inline]
    pub(crate) fn join_queue(&mut self, plan: &Plan, link: u32, id: u32, now: u64) {
        let (size, class) = (u32::from(self.packets[id].size), self.packets[id].class);
        self.change_data_queue(link, now, i64::from(size), 1);
        let packet = &mut self.packets[id];
        packet.next = NONE;
        packet.queued_at = now;
        if plan.fabric.classes > 1 {
            self.classes.push(&mut self.packets, link, class, id, size);
        } else {
            let port = &mut self.ports[link as usize];
            let tail = std::mem::replace(&mut port.data_tail, id);
            if tail == NONE {
                port.data_head = id;
            } else {
                self.packets[tail].next = id;
            }
        }
        // A paused port that stands idle is woken when the pause ends.
        if self.ports[link as usize].paused == 0 || self.can_send(link) {
            self.arm(link);
        }
    }

    #[inline]
    fn class_bytes(&self, plan: &Plan, link: u32, class: u8) -> u32 {
        if plan.fabric.classes > 1 { self.classes.bytes(link, class) } else { self.ports[link as usize].data_bytes }
    }

    /// A data packet that finds its queue full: trimmed, or dropped where trimming is off.
    #[cold]
    fn overflow(&mut self, plan: &Plan, link: u32, id: u32, now: u64) {
        if !plan.fabric.trimming {
            self.drop_packet(link, id);
            return;
        }
        if plan.fabric.trim == Trim::Coin && self.red(plan, link).chance(1, 2) {
            self.swap_with_last(plan, link, id, now);
        }
        let header = plan.fabric.trimmed_size;
        let packet = &mut self.packets[id];
        self.counters[link as usize].trimmed += 1;
        self.totals.trimmed_packets += 1;
        self.totals.trimmed_bytes += u64::from(packet.size);
        packet.kind = Kind::Header;
        packet.size = header;
        self.queue_control(plan, link, id, now);
    }

    /// The arriving packet takes the place of the one queued last in its class, which is then the one to trim.
    fn swap_with_last(&mut self, plan: &Plan, link: u32, id: u32, now: u64) {
        let class = self.packets[id].class;
        let last =
            if plan.fabric.classes > 1 { self.classes.last(link, class) } else { self.ports[link as usize].data_tail };
        if last == NONE {
            return;
        }
        let difference = i64::from(self.packets[id].size) - i64::from(self.packets[last].size);
        self.change_data_queue(link, now, difference, 0);
        if plan.fabric.classes > 1 {
            self.classes.resize(link, class, difference);
        }
        self.packets.swap(id, last);
        self.ports[link as usize].waited += now - self.packets[id].queued_at;
        let next = self.packets[id].next;
        let arrived = &mut self.packets[last];
        arrived.next = next;
        arrived.queued_at = now;
    }

    /// Accounts for the time since the last change of the data queue and applies one.
    #[inline]
    fn change_data_queue(&mut self, link: u32, now: u64, bytes: i64, packets: i32) {
        let port = &mut self.ports[link as usize];
        let span = port.account(now);
        self.histograms.record(link, port.data_bytes, port.data_packets, span);
        port.data_bytes = (i64::from(port.data_bytes) + bytes) as u32;
        port.data_packets = (port.data_packets as i32 + packets) as u32;
        port.max_bytes = port.max_bytes.max(port.data_bytes);
        port.max_packets = port.max_packets.max(port.data_packets);
    }

    /// Asks for a service event of a switch port that has a backlog, unless one is pending.
    #[inline]
    pub(crate) fn arm(&mut self, link: u32) {
        let port = &mut self.ports[link as usize];
        if port.flags & (ARMED | NIC) == 0 {
            port.flags |= ARMED;
            let start = port.busy_until;
            let time = self.service_time(link, start);
            self.push_service(link, time);
        }
    }

    /// When a transmission that starts at `start` must be worked out at the latest.
    #[inline]
    pub(crate) fn service_time(&self, link: u32, start: u64) -> u64 {
        let port = &self.ports[link as usize];
        if !self.lazy {
            start + self.late
        } else if port.flags & BOUNDARY != 0 {
            // What starts within a window is worked out at its end.
            start.max(self.window_end)
        } else {
            start + port.delay
        }
    }

    #[inline]
    pub(crate) fn push_service(&mut self, link: u32, time: u64) {
        let order = order::SERVICE | (self.ports[link as usize].order & !order::KIND);
        self.wheel.push(Event { time, order, payload: link });
    }

    /// A service event of a switch port.
    pub(crate) fn serve(&mut self, plan: &Plan, link: u32, now: u64) {
        self.ports[link as usize].flags &= !ARMED;
        self.serve_now(plan, link, now);
    }

    /// Works a switch port out and asks for a service event if there is more to do.
    #[inline]
    pub(crate) fn serve_now(&mut self, plan: &Plan, link: u32, now: u64) {
        self.catch_up(plan, link, now);
        if self.can_send(link) {
            self.arm(link);
        }
    }

    /// Whether a packet waits that is not paused.
    #[inline]
    pub(crate) fn can_send(&self, link: u32) -> bool {
        let port = &self.ports[link as usize];
        if port.paused == 0 { port.backlogged() } else { port.control_head != NONE || self.unpaused_data(link) }
    }

    #[cold]
    fn unpaused_data(&self, link: u32) -> bool {
        let port = &self.ports[link as usize];
        if self.classes.several() { self.classes.waits(link, port.paused) } else { false }
    }

    /// Works out every transmission of a switch port that started at or before `now`.
    #[inline]
    pub(crate) fn catch_up(&mut self, plan: &Plan, link: u32, now: u64) {
        loop {
            let port = &self.ports[link as usize];
            if port.busy_until > now || !self.can_send(link) {
                return;
            }
            let start = port.busy_until;
            let id = if port.control_head != NONE { self.pop_control(link) } else { self.pop_data(plan, link, start) };
            self.transmit(plan, link, id, start);
        }
    }

    /// Takes the first packet of the control queue; there must be one.
    #[inline]
    pub(crate) fn pop_control(&mut self, link: u32) -> u32 {
        let port = &mut self.ports[link as usize];
        let id = port.control_head;
        let packet = &self.packets[id];
        port.control_bytes -= u32::from(packet.size);
        port.control_head = packet.next;
        if port.control_head == NONE {
            port.control_tail = NONE;
        }
        id
    }

    /// Takes the data packet whose turn it is; there must be one.
    #[inline]
    pub(crate) fn pop_data(&mut self, plan: &Plan, link: u32, start: u64) -> u32 {
        let id = if plan.fabric.classes > 1 {
            let paused = self.ports[link as usize].paused;
            self.classes.pop(plan, &self.packets, link, paused)
        } else {
            let port = &mut self.ports[link as usize];
            let id = port.data_head;
            port.data_head = self.packets[id].next;
            if port.data_head == NONE {
                port.data_tail = NONE;
            }
            id
        };
        let packet = &self.packets[id];
        let (size, class) = (i64::from(packet.size), packet.class);
        self.ports[link as usize].waited += start - packet.queued_at;
        self.change_data_queue(link, start, -size, -1);
        let behind = self.class_bytes(plan, link, class);
        if plan.fabric.ecn && plan.fabric.mark_at == MarkAt::Dequeue && behind > plan.fabric.ecn_kmin {
            self.mark(plan, link, id, behind);
        }
        if let Some(shared) = &plan.shared
            && self.ports[link as usize].flags & NIC == 0
        {
            let switch = plan.links[link as usize].from - plan.hosts;
            let guest = Guest { switch, ingress: NONE, class, size: size as u32, queue: behind };
            if let Some(ingress) = self.buffers.leave(shared, &guest, id) {
                self.buffers.set_paused(ingress, class, false);
                self.send_pause(plan, ingress, class, false, start);
            }
        }
        id
    }

    /// RED: marks with a probability that grows linearly from `kmin` to `kmax`, always above `kmax`.
    fn mark(&mut self, plan: &Plan, link: u32, id: u32, bytes: u32) {
        let (low, high) = (plan.fabric.ecn_kmin, plan.fabric.ecn_kmax);
        // The reference model looks at what a queue holds beyond its minimum.
        let bytes = if plan.reference() { bytes.saturating_sub(plan.queue_minimum()) } else { bytes };
        if bytes <= low {
            return;
        }
        if bytes <= high {
            let probability = plan.fabric.ecn_pmax * f64::from(bytes - low) / f64::from(high - low);
            if self.red(plan, link).unit() >= probability {
                return;
            }
        }
        self.packets[id].flags |= MARKED;
        self.counters[link as usize].marked += 1;
    }

    fn red(&mut self, plan: &Plan, link: u32) -> &mut Stream {
        self.red[link as usize]
            .get_or_insert_with(|| Box::new(Stream::keyed(plan.seed, plan.links[link as usize].key, "red")))
    }

    /// A packet starts at `start`; works out when it arrives and asks for that event.
    #[inline]
    pub(crate) fn transmit(&mut self, plan: &Plan, link: u32, id: u32, start: u64) {
        let port = &mut self.ports[link as usize];
        let packet = &mut self.packets[id];
        let size = u32::from(packet.size);
        let time = if port.ps_per_byte.wrapping_sub(1) < CUT - 1 {
            u64::from(size) * u64::from(port.ps_per_byte)
        } else if port.ps_per_byte >= CUT {
            u64::from(self.cuts[(port.ps_per_byte - CUT) as usize].1[size as usize])
        } else {
            uneven_wire_time(&mut self.uneven[link as usize], size)
        };
        let end = start + time;
        port.busy_until = end;
        port.sending = size;
        port.sent_bytes += u64::from(size);
        port.sent_packets += 1;
        self.totals.packet_hops += 1;
        if port.flags & (BOUNDARY | FAULTY) != 0 {
            self.transmit_special(plan, link, id, end);
            return;
        }
        packet.next = port.to;
        self.wheel.push(Event { time: end + port.delay, order: port.order, payload: id });
    }

    /// Over a faulty link, or into another partition.
    #[cold]
    #[inline(never)]
    fn transmit_special(&mut self, plan: &Plan, link: u32, id: u32, end: u64) {
        let (flags, delay, order, to) = {
            let port = &self.ports[link as usize];
            (port.flags, port.delay, port.order, port.to)
        };
        if flags & FAULTY != 0 && self.lost(plan, link, id) {
            self.drop_packet(link, id);
            return;
        }
        self.packets[id].next = to;
        if flags & BOUNDARY == 0 {
            self.wheel.push(Event { time: end + delay, order, payload: id });
            return;
        }
        let message = Message::Packet { time: end + delay, order, packet: self.packets[id] };
        self.outbox[plan.owner[to as usize] as usize].push(message);
        self.packets.remove(id);
    }

    fn lost(&mut self, plan: &Plan, link: u32, id: u32) -> bool {
        let fault = &self.faults[link as usize];
        if fault.data_only && self.packets[id].is_control() {
            return false;
        }
        if fault.down || fault.loss_per_billion == 0 {
            return fault.down;
        }
        let stream = self.loss[link as usize]
            .get_or_insert_with(|| Box::new(Stream::keyed(plan.seed, plan.links[link as usize].key, "loss")));
        stream.chance(fault.loss_per_billion, 1_000_000_000)
    }

    fn drop_packet(&mut self, link: u32, id: u32) {
        let packet = &self.packets[id];
        self.counters[link as usize].dropped += 1;
        self.totals.dropped[tally_of(packet.kind)].add(packet);
        self.packets.remove(id);
    }

    /// A fault begins or ends at a link; its port has been worked out up to the moment before.
    pub(crate) fn set_fault(&mut self, link: u32, change: impl FnOnce(&mut LinkFault)) {
        let fault = &mut self.faults[link as usize];
        change(fault);
        let faulty = fault.down || fault.loss_per_billion > 0;
        let port = &mut self.ports[link as usize];
        port.flags = if faulty { port.flags | FAULTY } else { port.flags & !FAULTY };
    }

    /// The link gets another rate, for packets that start from now on.
    pub(crate) fn set_rate(&mut self, plan: &Plan, link: u32, rate: Rate) {
        let (ps_per_byte, serialiser) = wire_times(plan, rate, &mut self.cuts);
        self.ports[link as usize].ps_per_byte = ps_per_byte;
        self.uneven[link as usize] = serialiser;
    }

    /// Bytes a new packet at this port would have ahead of it: waiting, control included, and in transmission.
    #[inline]
    pub(crate) fn backlog(&mut self, plan: &Plan, link: u32, now: u64) -> u64 {
        self.catch_up(plan, link, self.before(now));
        let port = &self.ports[link as usize];
        let sending = if port.busy_until > now { port.sending } else { 0 };
        u64::from(port.data_bytes) + u64::from(port.control_bytes) + u64::from(sending)
    }

    /// Every packet that waits in a queue of `link`.
    pub(crate) fn queued(&self, plan: &Plan, link: u32) -> Vec<u32> {
        let port = &self.ports[link as usize];
        let mut heads = vec![port.control_head];
        if plan.fabric.classes > 1 {
            heads.extend(self.classes.heads(link));
        } else {
            heads.push(port.data_head);
        }
        let mut ids = Vec::new();
        for mut id in heads {
            while id != NONE {
                ids.push(id);
                id = self.packets[id].next;
            }
        }
        ids
    }

    /// Bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        self.ports.capacity() * (size_of::<Port>() + size_of::<PortCounters>() + 3 * 8)
            + self.packets.bytes()
            + self.wheel.bytes()
            + self.histograms.bytes()
            + self.classes.bytes_held()
            + self.buffers.bytes_held()
    }
}

/// How a port at `rate` works out wire times: its `ps_per_byte`, and a serialiser where that is 0.
fn wire_times(plan: &Plan, rate: Rate, cuts: &mut Vec<(Rate, Box<[u32]>)>) -> (u32, Option<Box<Serialiser>>) {
    if plan.fabric.quirks == Quirks::ConweaveNs3 {
        let known = cuts.iter().position(|(r, _)| *r == rate).unwrap_or_else(|| {
            let largest = plan.wire_mtu.max(256);
            cuts.push((rate, (0..=largest).map(|bytes| rate.wire_time_in_ns(bytes).ps() as u32).collect()));
            cuts.len() - 1
        });
        return (CUT + known as u32, None);
    }
    let ps_per_byte = rate.ps_per_byte().unwrap_or(0) as u32;
    (ps_per_byte, (ps_per_byte == 0).then(|| Box::new(Serialiser::new(rate))))
}

#[cold]
fn uneven_wire_time(serialiser: &mut Option<Box<Serialiser>>, size: u32) -> u64 {
    serialiser.as_mut().expect("a port at an uneven rate").serialise(u64::from(size)).ps()
}
