//! NICs: ports fed by flows. Path, window and pacing are those at the start of a transmission.

use super::{
    flow::{SenderFlow, Sending},
    outcome::{HostCounters, Sent},
    ports::{Beside, start_beside},
};
use crate::{
    context::Ctx,
    event::Event,
    flow_table::FlowTable,
    ids::{FlowId, HostId, PacketId, PortId, Slot},
    measure::{Cause, Gaps, Record},
    packet::{ACK_REQUEST, Kind, Packet, RETRANSMISSION},
    paths::{dead_paths, path_rates},
    plan::Plan,
};
use anabranch_backend::{LoadBalancer, Scheduling};
use anabranch_endpoint::{Balancer, Departure, Egress, Nic as Turns};
use anabranch_lb::{HostScheme, registry};
use anabranch_topology::NodeId;
use anabranch_units::Time;
use slab::Slab;

#[derive(Debug)]
pub(super) struct Nic {
    /// Order of the flows: by class, in turn within a class.
    pub(super) turns: Turns,
    /// Time of the earliest pending service event.
    armed_at: u64,
    /// Open flows that it sends and that take credit.
    pub(super) sharing_credit: u32,
}

impl Nic {
    #[inline]
    fn paced_until(&self) -> Option<u64> {
        self.turns.paced_until().map(Time::ps)
    }
}

#[derive(Debug)]
pub(crate) struct Nics {
    /// Per host; unused for hosts of other partitions.
    pub(super) nics: Vec<Nic>,
    pub(super) beside: Beside,
    /// Per host and load balancer; none for hosts of other partitions.
    pub(super) schemes: Vec<Vec<Balancer<registry::Host>>>,
    pub(super) flows: Slab<SenderFlow>,
    /// Per flow of the run.
    pub(super) sent: FlowTable<Sent>,
    /// Per flow of the run, where delays are attributed: its timeline up to its last byte.
    pub(super) records: Vec<Option<Record>>,
    pub(crate) counters: HostCounters,
}

pub(super) struct NicEgress<'a, 'p> {
    pub(super) cx: &'a mut Ctx<'p>,
    pub(super) port: PortId,
    /// Paused data classes, one bit each.
    pub(super) paused: u8,
    pub(super) schemes: &'a mut [Balancer<registry::Host>],
    pub(super) gaps: &'a mut Gaps,
    pub(super) sent: &'a mut FlowTable<Sent>,
    beside: &'a mut Beside,
}

impl Egress<Sending> for NicEgress<'_, '_> {
    type Scheme = registry::Host;

    #[inline]
    fn scheme(&mut self, flow: &Sending) -> &mut registry::Host {
        self.schemes[usize::from(flow.balancer)].scheme_mut()
    }

    #[inline]
    fn paused(&self) -> u8 {
        self.paused
    }

    #[inline]
    fn free_ports(&self) -> u32 {
        self.beside.room
    }

    #[inline]
    fn port_free_at(&self) -> Time {
        self.beside.next_room
    }

    #[inline]
    fn sharing_credit(&self) -> u32 {
        self.beside.sharing_credit
    }

    fn request_credit(&mut self, bytes: u64) {
        self.beside.request = bytes;
    }

    #[inline]
    fn tag(&self, flow: &Sending, tag: u32) -> u32 {
        if self.cx.plan.plain_host[usize::from(flow.balancer)] { 0 } else { tag }
    }

    #[inline]
    fn start(&mut self, flow: &mut Sending, departure: &Departure, start: Time) -> Time {
        let (segment, start) = (departure.segment, start.ps());
        if let Some(samples) = self.cx.series.flows.get_mut(flow.watch as usize) {
            samples.counted.sent(departure.tag);
        }
        if let Some(gap) = departure.gap {
            self.gaps.note(gap.ps(), flow.base_rtt);
        }
        let first = segment.psn == 0 && !segment.retransmission;
        if first {
            self.sent.at_mut(flow.flow.0).first_sent = start;
        }
        let again = if segment.retransmission { RETRANSMISSION } else { 0 };
        let ports = &mut self.cx.ports;
        let id = ports.place();
        let packet = Packet {
            queued_at: 0,
            psn: segment.psn as u32,
            held_by: 0,
            head: Default::default(),
            flow: flow.flow.0,
            tag: departure.tag,
            src: flow.src.0,
            dst: flow.dst.0,
            next: PacketId::NONE.0,
            size: segment.payload as u16 + self.cx.plan.data_overhead,
            payload: segment.payload as u16,
            kind: Kind::Data,
            class: flow.class,
            flags: again | if departure.ack_request { ACK_REQUEST } else { 0 },
            balancer: flow.balancer,
        };
        ports.fill(id, packet);
        let (next, end) = if self.cx.plan.has_nic_beside {
            start_beside(self.cx, self.beside, self.port, id, start)
        } else {
            ports.start(self.port, id, start);
            let end = ports.free_at(self.port);
            (end, end)
        };
        if let Some(timeline) = &mut flow.timeline {
            let paused = self.cx.ports.queues.paused_before(self.port, flow.class, start);
            match first {
                true => timeline.first(start, end, paused),
                false => timeline.send(start, end, departure.ready_at.ps(), paused, segment.retransmission),
            }
        }
        Time::from_ps(next)
    }

    #[inline]
    fn has_urgent(&self) -> bool {
        self.cx.ports.queues.can_send(self.port)
    }
}

impl Nics {
    pub(crate) fn scheme(&mut self, host: HostId, balancer: usize) -> &mut registry::Host {
        self.schemes[host.at()][balancer].scheme_mut()
    }

    pub(super) fn new(plan: &Plan<'_>, me: u16, record: Option<&anabranch_lb::Record>) -> Self {
        let schemes = |host: u32| {
            let key = plan.topology.key(NodeId(host));
            let build = |b: &LoadBalancer| {
                let scheme = b.host.build(plan.seed, key);
                // A constant tag leaves nothing to record.
                Balancer::new(match record.filter(|_| !b.host.capabilities().leaves_choice_to_switches()) {
                    Some(record) => record.wrap(scheme, b.host.name(), key),
                    None => scheme,
                })
            };
            if plan.owner_of_host(host) == me { plan.balancers.iter().map(build).collect() } else { vec![] }
        };
        let fabric = &plan.fabric;
        let weighted = fabric.scheduling == Scheduling::Wrr && fabric.classes > 1;
        let quanta = if weighted { &fabric.quanta[..] } else { &[] };
        Nics {
            nics: (0..plan.hosts)
                .map(|_| Nic {
                    turns: Turns::new(fabric.classes, quanta, plan.data_overhead),
                    armed_at: u64::MAX,
                    sharing_credit: 0,
                })
                .collect(),
            beside: Beside::new(plan),
            schemes: (0..plan.hosts).map(schemes).collect(),
            flows: Slab::new(),
            sent: FlowTable::of_flows(plan.flows, Sent::default(), Sent::default()),
            records: vec![None; if plan.measure.attribution { plan.flows.number_of_flows() } else { 0 }],
            counters: HostCounters::default(),
        }
    }

    /// Advances the NIC of `host`: starts every transmission that is due at or before `until`.
    #[inline]
    pub(crate) fn advance(&mut self, cx: &mut Ctx<'_>, host: HostId, until: u64) {
        if cx.plan.planes > 1 {
            return self.advance_ports(cx, host, until);
        }
        let port = cx.plan.nic(host);
        loop {
            let start = cx.ports.free_at(port);
            if start > until {
                return;
            }
            if self.start_next(cx, host, port, start, until) {
                continue;
            }
            // The NIC is idle until pacing lets the next flow send.
            match self.nics[host.at()].paced_until() {
                Some(time) if time <= until => cx.ports.idle_until(port, time),
                _ => return,
            }
        }
    }

    #[inline]
    pub(super) fn catch_up(&mut self, cx: &mut Ctx<'_>, host: HostId) {
        let until = cx.ports.before(cx.now);
        self.advance(cx, host, until);
    }

    /// Starts a transmission at once if the NIC, which has been advanced, is idle.
    #[inline(always)]
    pub(crate) fn wake(&mut self, cx: &mut Ctx<'_>, host: HostId) {
        let (port, now) = (cx.plan.nic(host), cx.now);
        if cx.plan.planes > 1 {
            self.wake_ports(cx, host);
        } else if cx.ports.free_at(port) <= cx.ports.before(now) {
            self.start_next(cx, host, port, now, now);
        }
        self.list(cx, host, port);
    }

    /// Returns the start of the next transmission in the present state; `None`: there is none.
    #[inline]
    pub(crate) fn starts(&self, cx: &Ctx<'_>, host: HostId, port: PortId) -> Option<u64> {
        if cx.plan.planes > 1 {
            return self.next_start(cx, host);
        }
        let nic = &self.nics[host.at()];
        let (free_at, paused) = (cx.ports.free_at(port), cx.ports.port(port).paused);
        if nic.turns.ready() & !paused != 0 || cx.ports.queues.can_send(port) {
            Some(free_at)
        } else {
            nic.paced_until().map(|time| time.max(free_at))
        }
    }

    /// Lists the port and schedules a service event, so that the NIC is advanced in time.
    #[inline]
    fn list(&mut self, cx: &mut Ctx<'_>, host: HostId, port: PortId) {
        if cx.ports.is_scheduled(port) {
            return;
        }
        let Some(start) = self.starts(cx, host, port) else { return };
        cx.ports.list(port);
        if cx.ports.is_prompt(port) {
            self.arm(cx, host, port, start);
        }
    }

    /// Schedules a service event no later than the NIC needs one.
    #[cold]
    pub(crate) fn arm(&mut self, cx: &mut Ctx<'_>, host: HostId, port: PortId, start: u64) {
        let time = cx.ports.service_time(port, start);
        let nic = &mut self.nics[host.at()];
        if time < nic.armed_at && time < cx.ports.cells.window_end() {
            nic.armed_at = time;
            cx.ports.ask_for_service(port, time);
        }
    }

    pub(crate) fn serve(&mut self, cx: &mut Ctx<'_>, host: HostId) {
        let nic = &mut self.nics[host.at()];
        if nic.armed_at <= cx.now {
            nic.armed_at = u64::MAX;
        }
        self.catch_up(cx, host);
        let port = cx.plan.nic(host);
        self.list(cx, host, port);
    }

    #[inline]
    pub(super) fn send_control(&mut self, cx: &mut Ctx<'_>, host: HostId, id: PacketId, control: Packet) {
        cx.ports.fill(id, control);
        self.catch_up(cx, host);
        let port = cx.plan.nic(host);
        let own = if cx.plan.planes > 1 { self.port_of_reply(cx, host, &control) } else { port };
        cx.ports.join_nic(own, id, cx.now);
        self.list(cx, host, port);
    }

    /// Starts the next transmission: control, then probes, then the flows in turn. A flow that is alone also sends what
    /// may start by `until`. With several ports only the flows. Returns `false` where
    /// nothing may be sent.
    #[inline]
    pub(super) fn start_next(&mut self, cx: &mut Ctx<'_>, host: HostId, port: PortId, start: u64, until: u64) -> bool {
        let (plan, time) = (cx.plan, Time::from_ps(start));
        let has_beside = plan.has_nic_beside;
        if has_beside {
            self.note_beside(cx, host, start);
        }
        let Nics { nics, schemes, flows, sent, counters, beside, .. } = self;
        let turns = &mut nics[host.at()].turns;
        turns.promote(flows, plan, time);
        if (!has_beside || plan.planes == 1)
            && let Some(id) = cx.ports.queues.take(port, start)
        {
            let packet = &mut cx.ports[id];
            if packet.kind == Kind::Probe {
                packet.head.set_wide(0, start);
            }
            cx.ports.start(port, id, start);
            return true;
        }
        let (paused, schemes) = (cx.ports.port(port).paused, &mut schemes[host.at()]);
        let mut line = NicEgress { cx, port, paused, schemes, gaps: &mut counters.gaps, sent, beside };
        let Some(slot) = turns.serve(flows, plan, &mut line, time, Time::from_ps(until)) else {
            return false;
        };
        self.arm_timer(cx, Slot(slot));
        true
    }

    pub(super) fn open(&mut self, plan: &Plan<'_>, flow: SenderFlow) -> Slot {
        let takes_credit = plan.transports.of(flow.of.transport).credit_window().is_some();
        self.nics[flow.of.src.at()].sharing_credit += u32::from(takes_credit);
        Slot(self.flows.insert(flow) as u32)
    }

    /// Adds a flow that may send now, after an event of this cause, to its host's round, or to the paced flows.
    #[inline]
    pub(super) fn enter(&mut self, cx: &Ctx<'_>, slot: Slot, cause: impl FnOnce(&Ctx<'_>) -> Cause) {
        let flow = &mut self.flows[slot.at()];
        let host = flow.of.src;
        if self.nics[host.at()].turns.enter(
            slot.0,
            flow,
            cx.plan.transports.of(flow.of.transport),
            Time::from_ps(cx.now),
        ) && let Some(timeline) = &mut flow.of.timeline
        {
            let paused = cx.ports.queues.paused_before(cx.plan.nic(host), flow.of.class, cx.now);
            timeline.unblock(cx.now, cause(cx), paused);
        }
    }

    /// Records changes of the states of entropy values, where the flow is traced.
    #[inline]
    pub(super) fn trace_values(&mut self, cx: &mut Ctx<'_>, slot: Slot) {
        if cx.ports.queues.watch.traces() {
            self.trace_changes(cx, slot);
        }
    }

    #[cold]
    fn trace_changes(&mut self, cx: &mut Ctx<'_>, slot: Slot) {
        let flow = &self.flows[slot.at()];
        let (number, host, link) = (flow.of.flow, flow.of.src, cx.plan.host_up[flow.of.src.at()]);
        let of = Packet { flow: number.0, src: host.0, dst: flow.of.dst.0, ..Packet::default() };
        let watch = &mut cx.ports.queues.watch;
        let is_followed = watch.follows(&of);
        let scheme = self.schemes[host.at()][usize::from(flow.of.balancer)].scheme_mut();
        scheme.take_changes(flow.scheme_slot(), &mut |at, tag, state| {
            if is_followed {
                watch.note_value(&of, at.ps(), tag, state, link);
            }
        });
    }

    /// Adds a flow that its scheme no longer holds to its host's round. Its timeline counts the wait as the sender's.
    pub(super) fn resume(&mut self, cx: &Ctx<'_>, slot: Slot) {
        let flow = &mut self.flows[slot.at()];
        let (host, transport) = (flow.of.src, cx.plan.transports.of(flow.of.transport));
        self.nics[host.at()].turns.enter(slot.0, flow, transport, Time::from_ps(cx.now));
    }

    pub(super) fn close(&mut self, plan: &Plan<'_>, slot: Slot) -> SenderFlow {
        let flow = self.flows.remove(slot.at());
        let Sending { src: host, balancer, .. } = flow.of;
        self.schemes[host.at()][usize::from(balancer)].close(flow.scheme_slot());
        self.nics[host.at()].turns.leave(slot.0, &flow);
        let takes_credit = plan.transports.of(flow.of.transport).credit_window().is_some();
        self.nics[host.at()].sharing_credit -= u32::from(takes_credit);
        flow
    }

    /// Schedules a timer no later than the flow needs one.
    #[inline(never)]
    pub(super) fn arm_timer(&mut self, cx: &mut Ctx<'_>, slot: Slot) {
        let flow = &mut self.flows[slot.at()];
        if let Some(wanted) = flow.arm(cx.plan.transports.of(flow.of.transport), Time::from_ps(cx.now)) {
            let Sending { src: host, flow, .. } = flow.of;
            cx.host_event(wanted.ps(), host, Event::FlowTimer { host, flow });
        }
    }

    /// Notifies the scheme of every open flow of its dead paths; the tables have changed at `now`.
    pub(crate) fn on_tables_changed(&mut self, cx: &mut Ctx<'_>, now: u64) {
        let mut open: Vec<(FlowId, usize)> = self.flows.iter().map(|(slot, flow)| (flow.of.flow, slot)).collect();
        // Where flows share a scheme's memory, their order matters; slots are in arbitrary order.
        open.sort_unstable();
        for (_, slot) in open {
            let Sending { src, dst, balancer, .. } = self.flows[slot].of;
            let down = if cx.plan.planes > 1 { self.down_between(src.0, dst.0) } else { 0 };
            let dead = dead_paths(cx.plan, cx.tables, balancer, src.0, dst.0, down);
            let rates = path_rates(cx.plan, cx.tables, balancer, (src.0, dst.0), &dead);
            let (scheme, flow) = (self.schemes[src.at()][usize::from(balancer)].scheme_mut(), &mut self.flows[slot]);
            let resumes = !cx.tables.same_paths && flow.on_paths_changed(scheme, Time::from_ps(now), &dead);
            if !rates.is_empty() {
                scheme.on_rates_changed(Time::from_ps(now), flow.scheme_slot(), &rates);
            }
            if resumes {
                self.resume_at(cx, Slot(slot as u32), now);
            }
        }
    }

    /// Lets a flow that its scheme held send from `now` on, up to which its NIC has been advanced.
    pub(super) fn resume_at(&mut self, cx: &mut Ctx<'_>, slot: Slot, now: u64) {
        let flow = &mut self.flows[slot.at()];
        let (host, transport) = (flow.of.src, cx.plan.transports.of(flow.of.transport));
        let is_idle = flow.sender.in_flight() == 0;
        if self.nics[host.at()].turns.enter(slot.0, flow, transport, Time::from_ps(now)) && is_idle {
            self.idle_until(cx, host, now);
            // Nothing else may happen at the host.
            cx.ports.ask_for_service(cx.plan.nic(host), now);
        }
    }

    /// Returns `true` if a flow waits for a path, and nothing of it is in flight.
    pub(crate) fn any_without_path(&self) -> bool {
        self.flows.iter().any(|(_, flow)| flow.is_without_path())
    }

    pub(super) fn bytes_per_host() -> usize {
        size_of::<Nic>() + size_of::<Vec<Balancer<registry::Host>>>()
    }
}
