//! A partition: some switches, their hosts, and every event that concerns them.

use crate::{
    guided::PathLists,
    host::{Gaps, Host},
    order,
    outcome::{PortSamples, RxOutcome, TxOutcome},
    packet::{Kind, NONE},
    plan::{Message, Plan, Tables, start_time},
    port::NIC,
    probe::ProbeCounters,
    reorder::Reordering,
    sender::SenderFlow,
    switch::Switches,
    transport::Receiver,
    trigger::TriggerState,
    wires::{KINDS, Tally, Wires},
};
use anabranch_engine::{Event, Status, Wheel};
use anabranch_topology::{BasePaths, FaultAction};
use anabranch_units::Time;
use slab::Slab;
use std::collections::BTreeMap;

/// Events handled between two looks at the clock where there is one partition.
const BATCH: u32 = 1 << 16;

/// Payloads of plan events: faults first, then changes of the tables, then samples and snapshots.
const TABLE_CHANGE: u32 = 1 << 30;
const SAMPLE: u32 = 1 << 31;
const SNAPSHOT: u32 = 1 << 29;

/// Why a run had to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An invariant of ours does not hold.
    Invariant(String),
    /// The input asks for something impossible.
    Input(String),
}

/// A partition of the fabric.
#[derive(Debug)]
pub struct Partition<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) me: u16,
    pub(crate) wires: Wires,
    pub(crate) tables: &'a Tables,
    pub(crate) switches: Switches,
    pub(crate) reordering: Reordering,
    /// Per host; empty ones for hosts of other partitions.
    pub(crate) hosts: Vec<Host>,
    pub(crate) senders: Slab<SenderFlow>,
    /// Per flow its slot in `senders`.
    pub(crate) sender_of: Vec<u32>,
    pub(crate) receivers: Slab<Receiver>,
    /// Per flow its slot in `receivers`.
    pub(crate) receiver_of: Vec<u32>,
    pub(crate) tx: Vec<TxOutcome>,
    pub(crate) rx: Vec<RxOutcome>,
    pub(crate) triggers: Vec<TriggerState>,
    /// When each processor that triggers used is free again, by host and number.
    pub(crate) processors: BTreeMap<(u32, u8), u64>,
    pub(crate) base_paths: BasePaths,
    /// Lists of guided paths.
    pub(crate) lists: PathLists,
    /// Links between switches that leave this partition's switches, where snapshots are taken of them.
    pub(crate) switch_links: Vec<u32>,
    pub(crate) samples: Vec<PortSamples>,
    /// Packets per kind that came into being here.
    pub(crate) injected: [Tally; KINDS],
    /// Those that reached their end here.
    pub(crate) delivered: [Tally; KINDS],
    pub(crate) probes: ProbeCounters,
    pub(crate) gaps: Gaps,
    pub(crate) timeouts: u64,
    pub(crate) marked: u64,
    pub(crate) now: u64,
    pub(crate) events: u64,
    pub(crate) finished: u64,
    pub(crate) failure: Option<Failure>,
    /// When the last packet arrived anywhere.
    pub(crate) last_arrival: u64,
    /// Links that lead to other partitions.
    boundary: Vec<u32>,
    /// The next flow of this partition that starts by itself.
    next_flow: usize,
}

impl<'a> Partition<'a> {
    /// Partition `me` of `plan`, with its first events.
    pub fn new(plan: &'a Plan, me: u16) -> Self {
        let mut partition = Partition {
            plan,
            me,
            wires: Wires::new(plan, me, wheel(plan), plan.partitions),
            tables: &plan.tables[0],
            switches: Switches::new(plan, me),
            reordering: Reordering::default(),
            hosts: (0..plan.hosts).map(|h| Host::new(plan, me, h)).collect(),
            senders: Slab::new(),
            sender_of: vec![NONE; plan.flows.flows.len()],
            receivers: Slab::new(),
            receiver_of: vec![NONE; plan.flows.flows.len()],
            tx: vec![TxOutcome::default(); plan.flows.flows.len()],
            rx: vec![RxOutcome::default(); plan.flows.flows.len()],
            triggers: vec![TriggerState::default(); plan.flows.triggers.len()],
            processors: BTreeMap::new(),
            base_paths: BasePaths::default(),
            lists: PathLists::default(),
            switch_links: match plan.guided.as_ref().is_some_and(|guided| guided.snapshots.is_some()) {
                true => {
                    let between = |link: &u32| {
                        let link = &plan.links[*link as usize];
                        link.from.min(link.to) >= plan.hosts
                    };
                    plan.links_of(me).filter(between).collect()
                }
                false => Vec::new(),
            },
            samples: PortSamples::of(plan, me),
            injected: Default::default(),
            delivered: Default::default(),
            probes: ProbeCounters::default(),
            gaps: Gaps::default(),
            timeouts: 0,
            marked: 0,
            now: 0,
            events: 0,
            finished: 0,
            failure: None,
            last_arrival: 0,
            boundary: plan.links_of(me).filter(|&l| plan.owner[plan.links[l as usize].to as usize] != me).collect(),
            next_flow: 0,
        };
        for (index, fault) in plan.faults.iter().enumerate() {
            partition.plan_event(fault.at.ps(), index as u32);
        }
        for (index, tables) in plan.tables.iter().enumerate().skip(1) {
            partition.plan_event(tables.from, TABLE_CHANGE | index as u32);
        }
        if !partition.samples.is_empty() {
            partition.plan_event(0, SAMPLE);
        }
        partition.ask_for_next_start();
        partition.keep_snapshots(0);
        partition.activate_by_time();
        partition
    }

    fn plan_event(&mut self, time: u64, payload: u32) {
        self.wires.wheel.push(Event { time, order: order::PLAN, payload });
    }

    /// A snapshot of the queues is due at `time`.
    pub(crate) fn plan_snapshot(&mut self, time: u64) {
        self.plan_event(time, SNAPSHOT);
    }

    /// Flows with a start time are sorted by it, so one pending start event is enough.
    fn ask_for_next_start(&mut self) {
        let flows = &self.plan.flows.flows;
        while let Some(flow) = flows.get(self.next_flow) {
            self.next_flow += 1;
            if let Some(time) = start_time(flow.start)
                && self.plan.owner_of_host(flow.src) == self.me
            {
                let payload = self.next_flow as u32 - 1;
                self.wires.wheel.push(Event { time, order: order::START | flow.src, payload });
                return;
            }
        }
    }

    #[inline]
    fn next_event(&mut self, end: u64) -> Option<Event> {
        let event = self.wires.wheel.pop_before(end);
        self.fetch_ahead();
        event
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        self.now = event.time;
        self.events += 1;
        match event.order & order::KIND {
            order::ARRIVAL => self.arrival(event.payload, event.order & !order::KIND, event.time),
            order::SERVICE => self.service(event.payload, event.time),
            order::TIMER => self.timer(event.payload, event.order & !order::KIND, event.time),
            order::WAKE => self.switch_timer(event.order & !order::KIND, event.payload, event.time),
            order::EXPIRY => self.pause_expires(event.payload, event.time),
            order::START => self.start(event.payload, event.time),
            order::ACTIVATE => self.trigger_event(event.payload, event.time),
            _ => self.plan_change(event.payload, event.time),
        }
    }

    #[inline]
    fn arrival(&mut self, id: u32, rank: u32, now: u64) {
        self.last_arrival = now;
        let packet = &self.wires.packets[id];
        let to = packet.next;
        if packet.kind == Kind::Pause {
            self.pause_arrival(id, now);
        } else if to < self.plan.hosts {
            self.host_arrival(to, id, now);
        } else {
            let ingress = if self.plan.shared.is_some() { self.plan.link_of_rank[rank as usize] } else { NONE };
            self.switch_arrival(to - self.plan.hosts, id, ingress, now);
        }
    }

    /// A timer of a flow at `host`: of its sender or of its receiver.
    fn timer(&mut self, flow: u32, host: u32, now: u64) {
        if self.plan.flows.flows[flow as usize].src == host {
            self.flow_timer(flow, now);
        } else {
            self.receiver_timer(flow, now);
        }
    }

    #[inline]
    fn service(&mut self, link: u32, now: u64) {
        if self.wires.ports[link as usize].flags & NIC != 0 {
            self.serve_nic(self.plan.links[link as usize].from, now);
        } else {
            self.wires.serve(self.plan, link, now);
        }
    }

    fn start(&mut self, flow: u32, now: u64) {
        if start_time(self.plan.flows.flows[flow as usize].start).is_some() {
            self.ask_for_next_start();
        }
        self.start_flow(flow, now);
    }

    #[cold]
    fn plan_change(&mut self, payload: u32, now: u64) {
        if payload & SAMPLE != 0 {
            self.sample(now);
        } else if payload & SNAPSHOT != 0 {
            self.snapshot(now);
        } else if payload & TABLE_CHANGE != 0 {
            self.change_tables((payload & !TABLE_CHANGE) as usize, now);
        } else {
            self.begin_fault(payload as usize, now);
        }
    }

    /// A fault strikes: what started before stays as it was.
    fn begin_fault(&mut self, index: usize, now: u64) {
        let fault = &self.plan.faults[index];
        for link in &fault.links {
            let link = link.0;
            if self.plan.owner[self.plan.links[link as usize].from as usize] != self.me {
                continue;
            }
            self.settle(link, now);
            match fault.action {
                FaultAction::Down => self.wires.set_fault(link, |f| {
                    f.down = true;
                    f.data_only = fault.data_only;
                }),
                FaultAction::Up => self.wires.set_fault(link, |f| *f = Default::default()),
                FaultAction::Loss { per_billion } => self.wires.set_fault(link, |f| {
                    f.loss_per_billion = per_billion;
                    f.data_only = fault.data_only;
                }),
                FaultAction::Degrade(rate) => self.wires.set_rate(self.plan, link, rate),
            }
        }
    }

    fn change_tables(&mut self, index: usize, now: u64) {
        self.tables = &self.plan.tables[index];
        self.switches.routes_changed(&self.tables.routes, self.plan);
        self.lists.forget_live();
        for (_, flow) in &mut self.senders {
            let dead = self.plan.dead_paths(self.tables, flow.balancer, flow.src, flow.dst);
            let host = &mut self.hosts[flow.src as usize];
            host.scheme(flow.balancer).paths_changed(Time::from_ps(now), flow.scheme_slot, &dead);
        }
    }

    fn sample(&mut self, now: u64) {
        for samples in &mut self.samples {
            self.wires.catch_up(self.plan, samples.link, now);
            samples.take(now, &self.wires.ports[samples.link as usize]);
        }
        let open = !self.senders.is_empty()
            || self.next_flow < self.plan.flows.flows.len()
            || self.wires.wheel.len() > usize::from(self.lists.armed);
        if open {
            self.plan_event(now + self.plan.measure.series_interval.ps(), SAMPLE);
        }
    }

    /// Works out every transmission of `link` that starts before `end`.
    pub(crate) fn settle(&mut self, link: u32, end: u64) {
        let Some(last) = end.checked_sub(1) else { return };
        let from = self.plan.links[link as usize].from;
        if from < self.plan.hosts {
            self.nic_catch_up(from, last);
        } else {
            self.wires.catch_up(self.plan, link, last);
        }
    }

    /// Notes the first failure of an invariant.
    #[cold]
    pub(crate) fn fail(&mut self, message: String) {
        let now = Time::from_ps(self.now);
        self.failure.get_or_insert(Failure::Invariant(format!("at {now}: {message}")));
    }

    /// Notes a mistake of the input that only shows while running.
    #[cold]
    pub(crate) fn mistake(&mut self, message: String) {
        let now = Time::from_ps(self.now);
        self.failure.get_or_insert(Failure::Input(format!("at {now}: {message}")));
    }

    /// When the last packet arrived anywhere.
    pub fn last_arrival(&self) -> Time {
        Time::from_ps(self.last_arrival)
    }

    /// When the last event was handled.
    pub fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// Why the run had to stop, if it had to.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }
}

impl anabranch_engine::Partition for Partition<'_> {
    type Message = Message;

    fn next_time(&mut self) -> Option<u64> {
        self.wires.wheel.next_time()
    }

    fn run_window(&mut self, end: u64, outbox: &mut [Vec<Message>]) -> bool {
        self.wires.window_end = end;
        if outbox.is_empty() {
            for _ in 0..BATCH {
                let Some(event) = self.next_event(end) else { return true };
                self.handle(event);
            }
            return self.failure.is_some();
        }
        while let Some(event) = self.next_event(end) {
            self.handle(event);
        }
        for index in 0..self.boundary.len() {
            self.settle(self.boundary[index], end);
        }
        for (mine, theirs) in self.wires.outbox.iter_mut().zip(outbox) {
            theirs.append(mine);
        }
        true
    }

    fn receive(&mut self, messages: &mut Vec<Message>) {
        for message in messages.drain(..) {
            let (Message::Packet { time, .. } | Message::Activate { time, .. } | Message::Start { time, .. }) = message;
            self.keep_snapshots(time);
            let event = match message {
                Message::Packet { time, order, packet } => {
                    Event { time, order, payload: self.wires.packets.insert(packet) }
                }
                Message::Activate { time, trigger } => {
                    let home = self.plan.trigger_home[trigger as usize];
                    Event { time, order: order::ACTIVATE | home, payload: trigger }
                }
                Message::Start { time, flow } => {
                    let src = self.plan.flows.flows[flow as usize].src;
                    Event { time, order: order::START | src, payload: flow }
                }
            };
            self.wires.wheel.push(event);
        }
    }

    fn status(&self) -> Status {
        Status { now: self.now, work: self.wires.totals.packet_hops, finished: self.finished }
    }

    fn failed(&self) -> bool {
        self.failure.is_some()
    }
}

/// A wheel whose buckets hold some tens of events when every host sends at line rate.
fn wheel(plan: &Plan) -> Wheel {
    let slowest = plan.links.iter().map(|l| l.rate.wire_time(u64::from(u16::MAX)).ps().min(10_000_000)).max();
    let delay = plan.links.iter().map(|l| l.delay).max().unwrap_or(0).min(50_000_000);
    let horizon = 2 * (delay + slowest.unwrap_or(0) / 8) + 1_000_000;
    // At line rate a host causes about one event per 20 ns; aim at 32 events per bucket, and at more where what a bucket will
    // touch is fetched ahead: 12 % faster on a Dragonfly of 1,056 hosts.
    let per_bucket = if plan.large { 256 } else { 32 } * 20_000 * plan.partitions as u64 / u64::from(plan.hosts.max(1));
    let shift = per_bucket.max(256).ilog2().clamp(8, 15);
    Wheel::new(shift, horizon)
}
