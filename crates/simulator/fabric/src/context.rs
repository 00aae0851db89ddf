//! State that every event handler reads and writes.

use crate::{
    arena::Arena,
    event::{Event, Stage},
    group_ends::{CompleteBytes, GroupEnds},
    host::NicUses,
    ids::{FlowId, HostId},
    measure::Series,
    message::Message,
    paths::PathLists,
    plan::{Plan, Tables},
    port::Ports,
    skip::SkipCheck,
    snapshots::Snapshots,
    stall::StallCheck,
};
use anabranch_backend::RunError;
use anabranch_topology::Routes;
use anabranch_units::Time;
use anabranch_workload::TriggerId;
use std::sync::Arc;

/// State that all partitions of a run write to.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Queue lengths of all ports between switches, where a scheme reads them.
    pub(crate) snapshots: Option<Snapshots>,
    pub(crate) stalls: Option<StallCheck>,
    pub(crate) skips: Option<SkipCheck>,
    pub(crate) group_ends: GroupEnds,
}

impl Shared {
    pub(crate) fn new(plan: &Plan<'_>) -> Self {
        let interval = plan.guided.as_ref().and_then(|guided| guided.snapshot_interval);
        Shared {
            snapshots: interval.map(|interval| Snapshots::new(interval, plan.links.len())),
            stalls: StallCheck::new(plan),
            skips: SkipCheck::new(plan),
            group_ends: GroupEnds::new(plan.setup),
        }
    }

    /// Bytes of a flow that its packets carry: its size, less what was skipped.
    pub(crate) fn simulated_bytes(&self, flow: FlowId, size: u64) -> u64 {
        size - self.skips.as_ref().map_or(0, |skips| skips.skipped_bytes(flow))
    }
}

/// Context that the handlers of a partition share. Hosts, switches and triggers act on each other only through it.
#[derive(Debug)]
pub(crate) struct Ctx<'a> {
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) shared: &'a Shared,
    pub(crate) me: u16,
    pub(crate) ports: Ports<'a>,
    pub(crate) tables: &'a Tables,
    /// The routes of `tables`, kept here to save an indirection.
    pub(crate) routes: &'a Routes,
    pub(crate) paths: PathLists,
    pub(crate) series: Series,
    pub(crate) now: u64,
    /// Order of the arrival that a host handles; `u32::MAX`: a timer.
    pub(crate) arrival: u32,
    /// Starts, triggers and computations scheduled here, less those that have happened here.
    pub(crate) planned: i64,
    pub(crate) failure: Option<RunError>,
    /// Complete bytes of the groups that have ended here.
    pub(crate) ended_bytes: CompleteBytes,
    /// Queue pairs and memory of the NICs.
    pub(crate) nics: NicUses,
}

impl<'a> Ctx<'a> {
    pub(crate) fn new(plan: &'a Plan<'a>, shared: &'a Shared, arena: Arc<Arena>, me: u16, series: Series) -> Self {
        Ctx {
            plan,
            shared,
            me,
            ports: Ports::new(plan, me, arena),
            tables: &plan.tables[0],
            routes: &plan.tables[0].routes,
            paths: PathLists::default(),
            series,
            now: 0,
            arrival: u32::MAX,
            planned: 0,
            failure: None,
            ended_bytes: CompleteBytes::default(),
            nics: NicUses::new(plan.transports.main().nic_limits(), plan.hosts),
        }
    }

    /// Schedules an event at a host of this partition.
    #[inline]
    pub(crate) fn host_event(&mut self, time: u64, host: HostId, event: Event) {
        self.ports.cells.push(u32::from(self.plan.cell_of(host.0)), event.at(time));
    }

    /// Schedules a start, a trigger or a computation at a host of this partition.
    pub(crate) fn plan_event(&mut self, time: u64, host: HostId, event: Event) {
        self.planned += 1;
        self.host_event(time, host, event);
    }

    /// Schedules an event at the host `to`: now if `from` is the same host, else one trigger latency later.
    pub(crate) fn cause(&mut self, from: HostId, to: HostId, event: Event) {
        let time = if from == to { self.now } else { self.now + self.plan.trigger_latency };
        self.plan_remote(time, to, event);
    }

    /// Schedules a start, a trigger or a message over scale-up at any host: at least a lookahead ahead in another cell.
    pub(crate) fn plan_remote(&mut self, time: u64, to: HostId, event: Event) {
        let owner = self.plan.owner_of_host(to.0);
        if owner == self.me {
            self.plan_event(time, to, event);
        } else {
            self.planned += 1;
            let cell = u32::from(self.plan.cell_of(to.0));
            self.ports.outbox[usize::from(owner)].push(Message { event: event.at(time), cell });
        }
    }

    pub(crate) fn activate(&mut self, trigger: TriggerId, from: HostId) {
        let home = self.plan.home(trigger.0);
        self.cause(from, home, Event::Trigger { home, trigger: trigger.0, stage: Stage::Activated });
    }

    /// Records the first failure of an invariant.
    #[cold]
    pub(crate) fn fail(&mut self, now: u64, message: String) {
        let now = Time::from_ps(now);
        self.failure.get_or_insert(RunError::Invariant(format!("at {now}: {message}")));
    }

    /// Records an error of the input that only shows while running.
    #[cold]
    pub(crate) fn mistake(&mut self, message: String) {
        let now = Time::from_ps(self.now);
        self.failure.get_or_insert(RunError::Setup(format!("at {now}: {message}")));
    }
}
