//! A partition: the cells of one thread, and every event that concerns them.

use crate::{
    event::{Event, MOST_ENTITIES, is_arrival},
    host::Hosts,
    ids::{FlowId, HostId, PacketId, PortId, SwitchId},
    looks,
    measure::{Series, Window},
    message::Message,
    packet::Kind,
    plan::{Plan, Tables, start_time},
    port::Ports,
    switch::Switches,
    trigger::Triggers,
};
use anabranch_engine::Status;
use anabranch_topology::Routes;
use anabranch_units::Time;

/// Events handled between two looks at whether to go on.
const BATCH: u32 = 1 << 14;
/// How many events ahead packets are fetched into the processor's caches.
const FETCH: usize = 24;

/// Why a run had to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An invariant of ours does not hold.
    Invariant(String),
    /// The input asks for something impossible.
    Input(String),
}

/// A partition of the fabric.
#[derive(Debug)]
pub(crate) struct Partition<'a> {
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) me: u16,
    pub(crate) ports: Ports<'a>,
    pub(crate) hosts: Hosts,
    pub(crate) switches: Switches,
    pub(crate) triggers: Triggers,
    pub(crate) tables: &'a Tables,
    /// The routes of `tables`, one step nearer.
    pub(crate) routes: &'a Routes,
    /// The cells of this partition.
    cells: Vec<u32>,
    /// Per cell the flows that start there by themselves, in order, and how many of them have been asked for.
    starts: Vec<(Vec<FlowId>, usize)>,
    /// Faults and tables that have taken effect, of those of the plan.
    faults_done: usize,
    tables_done: usize,
    /// When the last snapshot of all queues was taken, where there are any.
    last_snapshot: Option<u64>,
    pub(crate) window: Window,
    pub(crate) series: Series,
    /// Latest event handled.
    pub(crate) now: u64,
    pub(crate) events: u64,
    pub(crate) failure: Option<Failure>,
    /// When the last packet arrived anywhere.
    pub(crate) last_arrival: u64,
}

impl<'a> Partition<'a> {
    /// Partition `me` of `plan`, with its first events.
    pub(crate) fn new(plan: &'a Plan<'a>, me: u16) -> Self {
        let cells = (0..plan.cells.cells() as u32).filter(|&cell| plan.cells.owner[cell as usize] == me).collect();
        let mut partition = Partition {
            plan,
            me,
            ports: Ports::new(plan, me),
            hosts: Hosts::new(plan, me),
            switches: Switches::new(plan, me),
            triggers: Triggers::new(plan),
            tables: &plan.tables[0],
            routes: &plan.tables[0].routes,
            cells,
            starts: vec![(Vec::new(), 0); plan.cells.cells()],
            faults_done: 0,
            tables_done: 1,
            last_snapshot: None,
            window: Window::new(plan.window),
            series: looks::series(plan, me),
            now: 0,
            events: 0,
            failure: None,
            last_arrival: 0,
        };
        for (number, flow) in plan.flows.flows.iter().enumerate() {
            if start_time(flow.start).is_some() && plan.owner_of_host(flow.src) == me {
                partition.starts[usize::from(plan.cell_of(flow.src))].0.push(FlowId(number as u32));
            }
        }
        for index in 0..partition.cells.len() {
            partition.ask_for_next_start(partition.cells[index]);
        }
        partition.activate_by_time();
        partition
    }

    /// Flows with a start time are sorted by it, so one pending start event per cell is enough.
    fn ask_for_next_start(&mut self, cell: u32) {
        let (flows, next) = &mut self.starts[cell as usize];
        let Some(&flow) = flows.get(*next) else { return };
        *next += 1;
        let definition = &self.plan.flows.flows[flow.at()];
        let time = start_time(definition.start).unwrap_or(0);
        self.ports.cells.push(cell, Event::Start { host: HostId(definition.src), flow }.at(time));
    }

    #[inline]
    fn handle(&mut self, event: anabranch_engine::Event) {
        let now = event.time;
        self.now = now;
        if is_arrival(event.order) {
            // Nearly every event is one.
            return self.arrival(PacketId(event.payload), event.order & (MOST_ENTITIES - 1), now);
        }
        match Event::of(event) {
            Event::Arrival { rank, packet } => self.arrival(packet, rank, now),
            Event::Service { port, .. } => self.serve(port, now),
            Event::FlowTimer { host, flow } => self.flow_timer(flow, host, now),
            Event::SchemeTimer { switch, balancer, number } => self.scheme_timer(switch, balancer, number, now),
            Event::PauseEnds { queue, .. } => self.pause_ends(queue, now),
            Event::Start { host, flow } => {
                if start_time(self.plan.flows.flows[flow.at()].start).is_some() {
                    self.ask_for_next_start(u32::from(self.plan.cell_of(host.0)));
                }
                self.start_flow(flow, now);
            }
            Event::Trigger { trigger, stage, .. } => self.trigger_event(trigger, stage, now),
        }
    }

    #[inline]
    fn arrival(&mut self, id: PacketId, rank: u32, now: u64) {
        let packet = &self.ports.packets[id];
        let to = packet.next;
        if packet.kind == Kind::Pause {
            self.pause_arrival(id, now);
        } else if to < self.plan.hosts {
            self.host_arrival(HostId(to), id, now);
        } else {
            self.switch_arrival(SwitchId(to - self.plan.hosts), id, rank, now);
        }
    }

    /// A timer of a flow at `host`: of its sender or of its receiver.
    fn flow_timer(&mut self, flow: FlowId, host: HostId, now: u64) {
        if self.plan.flows.flows[flow.at()].src == host.0 {
            self.sender_timer(flow, now);
        } else {
            self.receiver_timer(flow, now);
        }
    }

    // ---- ports, whoever feeds them ----

    /// Works out every transmission of a port that starts at or before `until`.
    #[inline]
    pub(crate) fn advance(&mut self, port: PortId, until: u64) {
        match self.ports.nic_of(port) {
            Some(host) => self.advance_nic(host, until),
            None => self.ports.advance(port, until),
        }
    }

    /// When a port can start to send next; `None`: there is nothing.
    fn starts_next(&self, port: PortId) -> Option<u64> {
        match self.ports.nic_of(port) {
            Some(host) => self.nic_starts(host, port),
            None => self.ports.can_send(port).then(|| self.ports.free_at(port)),
        }
    }

    /// Sees to it that a port that must be worked out within the window is.
    fn arm(&mut self, port: PortId) {
        let Some(start) = self.starts_next(port) else { return };
        match self.ports.nic_of(port) {
            Some(host) => self.arm_nic(host, port, start),
            None => self.ports.arm(port, start),
        }
    }

    /// A service event.
    fn serve(&mut self, port: PortId, now: u64) {
        match self.ports.nic_of(port) {
            Some(host) => self.serve_nic(host, now),
            None => {
                self.ports.disarm(port);
                self.ports.advance(port, self.ports.before(now));
                self.arm(port);
            }
        }
    }

    // ---- pauses ----

    /// A pause frame has reached the node that sends over the link it speaks of.
    fn pause_arrival(&mut self, id: PacketId, now: u64) {
        let frame = self.ports.packets[id];
        self.ports.packets.remove(id);
        self.ports.books.delivered(&frame);
        let port = self.plan.port_of(frame.tag);
        self.advance(port, now);
        if frame.psn == 0 {
            self.unpause(port, frame.class, now);
        } else {
            self.ports.pause(port, frame.class, now);
        }
    }

    /// A pause ends by itself, unless it was renewed.
    fn pause_ends(&mut self, queue: u32, now: u64) {
        if let Some((port, class)) = self.ports.paused_queue(queue, now) {
            self.advance(port, now);
            self.unpause(port, class, now);
        }
    }

    /// A port, worked out up to `now`, may send a class again.
    fn unpause(&mut self, port: PortId, class: u8, now: u64) {
        self.ports.unpause(port, class, now);
        match self.ports.nic_of(port) {
            Some(host) => {
                self.advance_nic(host, now);
                self.wake_nic(host, now);
            }
            None => {
                self.ports.advance(port, now);
                if self.ports.can_send(port) {
                    self.ports.list(port);
                }
            }
        }
    }

    // ---- failures ----

    /// Notes the first failure of an invariant.
    #[cold]
    pub(crate) fn fail(&mut self, now: u64, message: String) {
        let now = Time::from_ps(now);
        self.failure.get_or_insert(Failure::Invariant(format!("at {now}: {message}")));
    }

    /// Notes a mistake of the input that only shows while running.
    #[cold]
    pub(crate) fn mistake(&mut self, now: u64, message: String) {
        let now = Time::from_ps(now);
        self.failure.get_or_insert(Failure::Input(format!("at {now}: {message}")));
    }

    /// A captured link has carried more packets than are kept.
    #[cold]
    fn too_much_captured(&mut self, most: u64) {
        let message = format!(
            "a captured link has carried more than {most} packets, which is what is kept in memory; end the run earlier \
             (`--set run.until=...`) or capture a link that carries less"
        );
        self.mistake(self.now, message);
    }

    // ---- windows ----

    /// Runs the window of one cell; false where it was told to stop.
    fn run_cell(&mut self, cell: u32, start: u64, end: u64, go_on: &mut dyn FnMut(Status) -> bool) -> bool {
        self.ports.fetch_cell(cell);
        self.ports.cells.open(cell, start, end);
        self.ports.open_list(cell);
        let mut index = 0;
        while let Some(port) = self.ports.listed(index) {
            if self.ports.is_prompt(port) {
                self.arm(port);
            }
            index += 1;
        }
        let mut arrived = 0;
        let mut left = BATCH;
        while let Some(event) = self.ports.cells.pop() {
            if let Some((order, payload)) = self.ports.cells.upcoming(FETCH)
                && is_arrival(order)
            {
                self.ports.packets.prefetch(PacketId(payload));
            }
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
        while let Some(port) = self.ports.listed(index) {
            self.ports.fetch_listed(index + 2);
            self.advance(port, end - 1);
            index += 1;
        }
        self.close_list(cell);
        self.ports.cells.close();
        true
    }

    /// Keeps of the ports of a cell those that still have something to send.
    fn close_list(&mut self, cell: u32) {
        let mut listed = self.ports.take_list();
        listed.retain(|&port| {
            let next = self.starts_next(port);
            self.ports.note_next(cell, port, next)
        });
        self.ports.park_list(cell, listed);
    }

    fn state(&self) -> Status {
        Status { now: self.now, work: self.ports.hops, finished: self.hosts.finished }
    }
}

impl anabranch_engine::Partition for Partition<'_> {
    type Message = Message;

    fn next_time(&self) -> u64 {
        self.ports.cells.next_time()
    }

    fn next_cut(&self, start: u64) -> u64 {
        let fault = self.plan.faults_by_time.get(self.faults_done).map_or(u64::MAX, |(at, _)| *at);
        let tables = self.plan.tables.get(self.tables_done).map_or(u64::MAX, |tables| tables.from);
        let snapshots = self.plan.guided.as_ref().and_then(|guided| guided.snapshots.as_ref());
        let snapshot = snapshots.map_or(u64::MAX, |snapshots| snapshots.next(self.last_snapshot, start));
        fault.min(tables).min(snapshot).min(self.window.next()).min(self.series.next())
    }

    fn cut(&mut self, time: u64, start: u64) {
        let plan = self.plan;
        if self.window.next() == time {
            self.window.look(self.ports.sent_bytes());
        }
        if self.series.next() == time {
            self.look(start);
        }
        while let Some(&(at, fault)) = plan.faults_by_time.get(self.faults_done).filter(|(at, _)| *at <= time) {
            debug_assert_eq!(at, time);
            let fault = &plan.faults[fault];
            for link in fault.links.iter().filter(|link| plan.owner_of_link(link.0) == self.me) {
                self.ports.change_fault(plan.port_of(link.0), fault);
            }
            self.faults_done += 1;
        }
        while let Some(tables) = plan.tables.get(self.tables_done).filter(|tables| tables.from <= time) {
            self.tables = tables;
            self.routes = &tables.routes;
            self.switches.routes_changed(&tables.routes, plan);
            self.tell_dead_paths(time);
            self.tables_done += 1;
        }
        if let Some(snapshots) = plan.guided.as_ref().and_then(|guided| guided.snapshots.as_ref())
            && snapshots.next(self.last_snapshot, start) == time
        {
            self.take_snapshot(time);
            self.last_snapshot = Some(time);
        }
    }

    fn run_window(&mut self, start: u64, end: u64, outbox: &mut [Vec<Message>], go_on: &mut dyn FnMut(Status) -> bool) {
        for index in 0..self.cells.len() {
            let cell = self.cells[index];
            if self.ports.cells.next_of(cell) < end && (!self.run_cell(cell, start, end, go_on) || !go_on(self.state()))
            {
                break;
            }
        }
        self.ports.watch.close_window();
        if let Some(most) = self.ports.watch.too_many() {
            self.too_much_captured(most);
        }
        for (mine, theirs) in self.ports.outbox.iter_mut().zip(outbox) {
            theirs.append(mine);
        }
        if let Some(late) = self.ports.cells.late() {
            let message = format!("{:?} was pushed into a window that has passed", Event::of(*late));
            self.fail(late.time, message);
        }
    }

    fn receive(&mut self, messages: &mut Vec<Message>) {
        for message in messages.drain(..) {
            match message {
                Message::Packet { time, order, packet } => {
                    let cell = u32::from(self.plan.cell_of(packet.next));
                    let payload = self.ports.packets.insert(packet).0;
                    self.ports.cells.push(cell, anabranch_engine::Event { time, order, payload });
                }
                Message::Activate { time, trigger } => self.activate_at(trigger, time),
                Message::Start { time, flow } => {
                    let host = HostId(self.plan.flows.flows[flow.at()].src);
                    self.host_event(time, host, Event::Start { host, flow });
                }
            }
        }
    }

    fn status(&self) -> Status {
        self.state()
    }

    fn failed(&self) -> bool {
        self.failure.is_some()
    }
}
