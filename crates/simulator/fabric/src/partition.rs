//! A partition: the cells of one thread, and the handling of their events.

use crate::{
    arena::Arena,
    context::{Ctx, Shared},
    event::{Event, is_arrival},
    host::{Hosts, wake_at_changes},
    ids::{FlowId, HostId, PacketId, PortId, SwitchId},
    measure::Window,
    message::Message,
    packet::Kind,
    plan::{Plan, start_time},
    sampling,
    scale_up::ScaleUp,
    skip::with_jumps,
    steady::{Here, Skips},
    switch::Switches,
    trigger::Triggers,
};
use anabranch_engine::Status;
use std::sync::Arc;

/// Number of events handled between two checks whether to go on.
const BATCH: u32 = 1 << 14;
/// Number of events in advance at which packets are prefetched into the processor's caches.
const FETCH: usize = 24;

#[derive(Debug)]
pub(crate) struct Partition<'a> {
    pub(crate) cx: Ctx<'a>,
    pub(crate) hosts: Hosts,
    pub(crate) switches: Switches,
    pub(crate) scale_up: ScaleUp,
    triggers: Triggers,
    cells: Vec<u32>,
    /// Per cell, the flows with a start time there, in order, and how many of them have been scheduled.
    starts: Vec<(Vec<FlowId>, usize)>,
    /// Numbers of the plan's faults, changes of ports and tables that have taken effect.
    faults_applied: usize,
    ports_changed: usize,
    tables_applied: usize,
    /// Time of the last snapshot of all queues, where there are any.
    last_snapshot: Option<u64>,
    /// Number of windows run, and time of the last start, trigger or computation.
    windows: u64,
    last_planned: u64,
    /// Time at which the run was found to have stalled.
    pub(crate) stalled: Option<u64>,
    pub(crate) skips: Skips,
    /// The time limit was reached, jumps included.
    pub(crate) over: bool,
    pub(crate) window: Window,
    pub(crate) events: u64,
    /// Time of the last arrival of a packet at any node, or of the last step of a message over scale-up.
    pub(crate) last_arrival: u64,
}

impl<'a> Partition<'a> {
    /// Creates partition `me` of `plan`, with its first events.
    pub(crate) fn new(plan: &'a Plan<'a>, shared: &'a Shared, arena: Arc<Arena>, me: u16) -> Self {
        let cells = (0..plan.cells.cells() as u32).filter(|&cell| plan.cells.owner[cell as usize] == me).collect();
        let mut starts = vec![(Vec::new(), 0); plan.cells.cells()];
        for (number, flow) in plan.flows.flows.iter().enumerate() {
            if start_time(flow.start).is_some() && plan.owner_of_host(flow.src) == me {
                starts[usize::from(plan.cell_of(flow.src))].0.push(FlowId(number as u32));
            }
        }
        let mut cx = Ctx::new(plan, shared, arena, me, sampling::series(plan, me));
        let triggers = Triggers::new(&mut cx);
        let record = cx.ports.queues.watch.record.clone();
        let mut partition = Partition {
            cx,
            hosts: Hosts::new(plan, me, record.as_ref()),
            switches: Switches::new(plan, me, record.as_ref()),
            scale_up: ScaleUp::new(plan),
            triggers,
            cells,
            starts,
            faults_applied: 0,
            ports_changed: 0,
            tables_applied: 1,
            last_snapshot: None,
            windows: 0,
            last_planned: 0,
            stalled: None,
            skips: Skips::default(),
            over: false,
            window: Window::new(plan.window),
            events: 0,
            last_arrival: 0,
        };
        wake_at_changes(&mut partition.cx);
        for index in 0..partition.cells.len() {
            partition.ask_for_next_start(partition.cells[index]);
        }
        partition
    }

    pub(crate) fn trigger_memory(&self) -> usize {
        if self.cx.plan.flows.templates.is_empty() { 0 } else { self.triggers.states.memory() }
    }

    /// Schedules the next start in a cell. Flows are sorted by start time, so one pending start event per cell is enough.
    fn ask_for_next_start(&mut self, cell: u32) {
        let (flows, next) = &mut self.starts[cell as usize];
        let Some(&flow) = flows.get(*next) else { return };
        *next += 1;
        let definition = self.cx.plan.flow(flow);
        let host = HostId(definition.src);
        self.cx.plan_event(start_time(definition.start).unwrap_or(0), host, Event::Start { host, flow });
    }

    #[inline(always)]
    fn handle(&mut self, event: anabranch_engine::Event) {
        self.cx.now = event.time;
        if is_arrival(event.order) {
            // Nearly every event is an arrival.
            self.arrival(PacketId(event.payload), event.order);
        } else {
            self.handle_other(event);
        }
    }

    #[inline(never)]
    fn handle_other(&mut self, event: anabranch_engine::Event) {
        let cx = &mut self.cx;
        match Event::of(event) {
            Event::Arrival { packet, .. } => self.arrival(packet, event.order),
            Event::Service { port, .. } => self.serve(port),
            Event::FlowTimer { host, flow } => self.hosts.on_timer(cx, host, flow),
            Event::SchemeTimer { switch, balancer, number } => self.switches.on_timer(cx, switch, balancer, number),
            Event::PauseEnds { queue, .. } => self.pause_ends(queue),
            Event::Start { host, flow } => {
                cx.planned -= 1;
                self.last_planned = self.last_planned.max(event.time);
                let plan = cx.plan;
                if start_time(plan.flow(flow).start).is_some() {
                    self.ask_for_next_start(u32::from(plan.cell_of(host.0)));
                }
                if !self.scale_up.start(&mut self.cx, flow) {
                    self.hosts.on_start(&mut self.cx, flow);
                }
            }
            Event::ScaleUp { flow, step, .. } => {
                cx.planned -= 1;
                self.last_planned = self.last_planned.max(event.time);
                self.last_arrival = self.last_arrival.max(event.time);
                self.scale_up.on_event(cx, flow, step);
            }
            Event::Trigger { trigger, stage, .. } => {
                cx.planned -= 1;
                self.last_planned = self.last_planned.max(event.time);
                if let Some((template, group)) = self.triggers.ended_by(cx.plan, trigger) {
                    self.hosts.end_group(cx, template, group);
                    self.triggers.states.end(template, group);
                }
                self.triggers.on_event(cx, trigger, stage);
            }
        }
    }

    #[inline]
    fn arrival(&mut self, id: PacketId, order: u32) {
        let cx = &mut self.cx;
        let packet = &cx.ports[id];
        let (to, hosts) = (packet.next, cx.plan.hosts);
        if packet.kind == Kind::Pause {
            self.pause_arrival(id);
        } else if to < hosts {
            self.hosts.on_arrival(cx, HostId(to), id, order);
        } else {
            self.switches.on_arrival(cx, SwitchId(to - hosts), id, order);
        }
    }

    /// Takes the next sample of the time series: all events before its time have been handled, and nothing happens from
    /// then to before `start`.
    pub(crate) fn sample(&mut self, start: u64) {
        sampling::sample(&mut self.cx, &self.hosts, &self.switches, start);
    }

    /// Takes the next phase of a cut for skips; returns `true` if the partitions must wait for each other.
    fn skip(&mut self, time: u64) -> bool {
        let Partition { cx, hosts, skips, last_planned, .. } = self;
        let check = cx.shared.skips.as_ref().expect("a run that skips");
        if skips.next(check, time) <= time {
            let disturbed = hosts.receivers.last_end.max(*last_planned);
            let here = Here { me: cx.me, hosts, disturbed, planned: cx.planned };
            if skips.step(cx.plan, check, time, here) {
                return true;
            }
        }
        self.over = self.end_after_jumps() <= time;
        false
    }

    // ---- ports, of hosts and of switches ----

    /// Advances a port: starts every transmission that is due at or before `until`.
    #[inline]
    fn advance(&mut self, port: PortId, until: u64) {
        match self.cx.ports.nic_of(port) {
            Some(host) => self.hosts.nics.advance(&mut self.cx, host, until),
            None => self.cx.ports.advance(port, until),
        }
    }

    fn next_ports(&self) -> u64 {
        self.cx.plan.port_changes.get(self.ports_changed).map_or(u64::MAX, |change| change.at)
    }

    fn next_tables(&self) -> u64 {
        self.cx.plan.tables.get(self.tables_applied).map_or(u64::MAX, |tables| tables.from)
    }

    /// Returns the time at which a port can start its next transmission; `None`: it has none.
    fn starts_next(&self, port: PortId) -> Option<u64> {
        let ports = &self.cx.ports;
        match ports.nic_of(port) {
            Some(host) => self.hosts.nics.starts(&self.cx, host, port),
            None => ports.queues.can_send(port).then(|| ports.free_at(port)),
        }
    }

    /// Schedules a service event for a port that must advance within the window.
    fn arm(&mut self, port: PortId) {
        let Some(start) = self.starts_next(port) else { return };
        match self.cx.ports.nic_of(port) {
            Some(host) => self.hosts.nics.arm(&mut self.cx, host, port, start),
            None => self.cx.ports.arm(port, start),
        }
    }

    fn serve(&mut self, port: PortId) {
        let Ctx { ports, now, .. } = &mut self.cx;
        match ports.nic_of(port) {
            Some(host) => self.hosts.nics.serve(&mut self.cx, host),
            None => {
                ports.disarm(port);
                ports.advance(port, ports.before(*now));
                self.arm(port);
            }
        }
    }

    // ---- pauses ----

    /// Handles a pause frame that reaches the node that sends over the link it names.
    fn pause_arrival(&mut self, id: PacketId) {
        let frame = self.cx.ports.deliver(id);
        self.cx.ports.remove(id);
        let (port, now) = (self.cx.plan.port_of(frame.tag), self.cx.now);
        self.advance(port, now);
        if frame.psn == 0 {
            self.unpause(port, frame.class, now);
        } else {
            self.cx.ports.pause(port, frame.class, now);
        }
    }

    /// Ends a pause that expires, unless it was renewed.
    fn pause_ends(&mut self, queue: u32) {
        let now = self.cx.now;
        if let Some((port, class)) = self.cx.ports.paused_queue(queue, now) {
            self.advance(port, now);
            self.unpause(port, class, now);
        }
    }

    /// Lets a port, advanced up to `now`, send a class again.
    fn unpause(&mut self, port: PortId, class: u8, now: u64) {
        let Partition { cx, hosts, .. } = self;
        cx.ports.unpause(port, class, now);
        match cx.ports.nic_of(port) {
            Some(host) => {
                hosts.nics.advance(cx, host, now);
                hosts.nics.wake(cx, host);
            }
            None => {
                cx.ports.advance(port, now);
                if cx.ports.queues.can_send(port) {
                    cx.ports.list(port);
                }
            }
        }
    }

    // ---- windows ----

    /// Runs the window of one cell; returns `false` where the observer has stopped the run.
    fn run_cell(&mut self, cell: u32, start: u64, end: u64, go_on: &mut dyn FnMut(Status) -> bool) -> bool {
        self.cx.ports.fetch_cell(cell);
        self.cx.ports.cells.open(cell, start, end);
        self.cx.ports.fetch_histograms(cell);
        let _ = (0..=FETCH).take_while(|&ahead| self.fetch_upcoming(ahead)).count();
        self.cx.ports.lists.open(cell);
        let mut index = 0;
        while let Some(port) = self.cx.ports.lists.get(index) {
            if self.cx.ports.is_prompt(port) {
                self.arm(port);
            }
            index += 1;
        }
        let mut arrived = 0;
        let mut left = BATCH;
        while let Some(event) = self.cx.ports.cells.pop() {
            self.fetch_upcoming(FETCH);
            if is_arrival(event.order) {
                arrived = event.time;
            }
            self.handle(event);
            left -= 1;
            if left == 0 {
                self.events += u64::from(BATCH);
                left = BATCH;
                if !go_on(self.state()) {
                    return false;
                }
            }
        }
        self.events += u64::from(BATCH - left);
        self.last_arrival = self.last_arrival.max(arrived);
        let mut index = 0;
        while let Some(port) = self.cx.ports.lists.get(index) {
            self.cx.ports.fetch_listed(index + 2);
            self.advance(port, end - 1);
            index += 1;
        }
        self.close_list(cell);
        self.cx.ports.cells.close();
        true
    }

    /// Prefetches the packet that arrives with the event `ahead` places after the next one; `false` beyond the window's events.
    #[inline(always)]
    fn fetch_upcoming(&self, ahead: usize) -> bool {
        let Some((order, payload)) = self.cx.ports.cells.upcoming(ahead) else { return false };
        if is_arrival(order) {
            self.cx.ports.queues.packets.prefetch(PacketId(payload));
        }
        true
    }

    /// Keeps on the cell's list those ports that still have something to send.
    fn close_list(&mut self, cell: u32) {
        let mut listed = self.cx.ports.lists.take();
        listed.retain(|&port| {
            let next = self.starts_next(port);
            self.cx.ports.note_next(cell, port, next)
        });
        self.cx.ports.lists.park(cell, listed);
    }

    /// Returns the time of the last progress: new data at a receiver, a start, a trigger or a computation.
    pub(crate) fn progress(&self) -> u64 {
        self.last_planned.max(self.hosts.receivers.last_data)
    }

    /// Returns the number of flows whose senders here have finished.
    pub(crate) fn finished(&self) -> u64 {
        self.hosts.nics.counters.finished + self.scale_up.finished
    }

    /// Returns `true` if the run ends though events are left.
    fn has_ended(&self) -> bool {
        self.over || self.stalled.is_some()
    }

    /// Time of the next cut for skips, or of the time limit after them.
    fn next_skip(&self, start: u64) -> u64 {
        let Some(check) = self.cx.shared.skips.as_ref().filter(|_| !self.has_ended()) else { return u64::MAX };
        self.skips.next(check, start).min(self.end_after_jumps())
    }

    fn end_after_jumps(&self) -> u64 {
        if self.skips.jumps.is_empty() { u64::MAX } else { self.cx.plan.time_limit.ps() - self.skips.total() }
    }

    fn state(&self) -> Status {
        Status {
            now: self.cx.now + self.skips.total(),
            work: self.cx.ports.hops,
            finished: self.finished(),
            progress: with_jumps(&self.skips.jumps, self.progress()),
        }
    }
}

impl anabranch_engine::Partition for Partition<'_> {
    type Message = Message;

    fn next_time(&self) -> u64 {
        if self.has_ended() {
            return u64::MAX;
        }
        // New paths and ports let flows go on that have nothing in flight.
        self.cx.ports.cells.next_time().min(self.next_ports()).min(self.next_tables())
    }

    fn next_cut(&self, start: u64) -> u64 {
        let fault = self.cx.plan.faults_by_time.get(self.faults_applied).map_or(u64::MAX, |(at, _)| *at);
        let snapshots = self.cx.shared.snapshots.as_ref();
        let snapshot = snapshots.map_or(u64::MAX, |snapshots| snapshots.next(self.last_snapshot, start));
        let stall = self.cx.shared.stalls.as_ref().filter(|_| self.stalled.is_none());
        let stall = stall.map_or(u64::MAX, |stalls| stalls.due(self.windows));
        fault
            .min(self.next_ports())
            .min(self.next_tables())
            .min(snapshot)
            .min(stall)
            .min(self.next_skip(start))
            .min(self.window.next())
            .min(self.cx.series.next())
    }

    fn cut(&mut self, time: u64, start: u64) -> bool {
        let plan = self.cx.plan;
        let mut is_read_at_once = false;
        if self.window.next() == time {
            self.window.sample(self.cx.ports.queues.sent_until(plan, time));
        }
        if self.cx.series.next() == time {
            self.sample(start);
        }
        while let Some(&(at, fault)) = plan.faults_by_time.get(self.faults_applied).filter(|(at, _)| *at <= time) {
            debug_assert_eq!(at, time);
            let fault = &plan.faults[fault];
            for link in fault.links.iter().filter(|link| plan.owner_of_link(link.0) == self.cx.me) {
                self.cx.ports.change_fault(plan.port_of(link.0), fault);
            }
            self.faults_applied += 1;
        }
        while let Some(tables) = plan.tables.get(self.tables_applied).filter(|tables| tables.from <= time) {
            (self.cx.tables, self.cx.routes) = (tables, &tables.routes);
            if !tables.same_paths {
                self.cx.paths.forget_live();
                self.switches.on_tables_changed(&self.cx);
            }
            self.hosts.nics.on_tables_changed(&mut self.cx, time);
            self.tables_applied += 1;
        }
        let changes = &plan.port_changes[self.ports_changed..];
        let changes = &changes[..changes.partition_point(|change| change.at <= time)];
        if !changes.is_empty() {
            self.hosts.nics.on_ports_changed(&mut self.cx, time, changes);
            self.ports_changed += changes.len();
        }
        if let Some(snapshots) = &self.cx.shared.snapshots
            && snapshots.next(self.last_snapshot, start) == time
        {
            snapshots.take(plan, &mut self.cx.ports, self.cx.me, time);
            self.last_snapshot = Some(time);
            is_read_at_once = snapshots.is_read_at(time, start);
        }
        if self.cx.shared.stalls.as_ref().is_some_and(|stalls| stalls.due(self.windows) == time) {
            self.stalled = Some(time);
        }
        if self.next_skip(start) == time {
            is_read_at_once |= self.skip(time);
        }
        is_read_at_once
    }

    fn run_window(&mut self, start: u64, end: u64, outbox: &mut [Vec<Message>], go_on: &mut dyn FnMut(Status) -> bool) {
        for index in 0..self.cells.len() {
            let cell = self.cells[index];
            if !self.has_ended()
                && self.cx.ports.cells.next_of(cell) < end
                && (!self.run_cell(cell, start, end, go_on) || !go_on(self.state()))
            {
                break;
            }
        }
        self.windows += 1;
        if let Some(stalls) = &self.cx.shared.stalls {
            let open = self.hosts.open_senders().len();
            stalls.publish(self.windows - 1, self.cx.me, self.progress(), open, self.cx.planned);
        }
        self.cx.ports.queues.watch.close_window();
        if let Some(most) = self.cx.ports.queues.watch.too_many() {
            self.cx.mistake(format!(
                "a captured link has carried more than {most} packets, the limit of a capture in memory; end the run earlier (`--set run.until=...`) or capture a link with less traffic"
            ));
        }
        self.cx.ports.queues.packets.share_free();
        for (mine, theirs) in self.cx.ports.outbox.iter_mut().zip(outbox) {
            theirs.append(mine);
        }
        if let Some(late) = self.cx.ports.cells.late() {
            let message = format!("{:?} was pushed into a window that has passed", Event::of(*late));
            self.cx.fail(late.time, message);
        }
    }

    fn receive(&mut self, messages: &mut Vec<Message>) {
        for message in messages.drain(..) {
            self.cx.ports.cells.push(message.cell, message.event);
        }
    }

    fn status(&self) -> Status {
        self.state()
    }

    fn failed(&self) -> bool {
        self.cx.failure.is_some()
    }
}
