//! Flows and triggers of a job.
//!
//! Every operation that waits has a trigger at its host, activated by each event that it waits for. A rank whose next
//! repetition begins by itself has one more: it counts the last events of the repetition, passes the gap and the
//! computation, and starts the first messages. Every operation without a dependency on its own rank waits for it too.

use super::{
    job::{Barrier, GroupedJob},
    schedule::{Done, Schedule, Work},
    template::GroupTemplate,
};
use crate::{Flow, Start, Trigger, TriggerId, TriggerKind, flow::plain, traffic::Traffic, view::Context};
use anabranch_units::Time;

/// Properties of a schedule that hold for every repetition.
struct Shape<'a> {
    schedule: &'a Schedule,
    /// Operations that wait for an event of each operation.
    dependents: Vec<Vec<(Done, u32)>>,
    /// Per operation: it waits for the begin of its rank's repetition.
    waits_for_rank: Vec<bool>,
    /// Per operation: its receiver, or its sender or processor, counts its end at the end of the repetition.
    counted: Vec<[bool; 2]>,
    /// Ends that each rank counts.
    counts: Vec<u32>,
}

impl<'a> Shape<'a> {
    fn new(job: &GroupedJob, schedule: &'a Schedule) -> Self {
        let operations = schedule.operations();
        let mut dependents = vec![vec![]; operations.len()];
        let mut waits_for_rank = vec![true; operations.len()];
        for at in 0..operations.len() {
            for on in schedule.after(at) {
                dependents[on.operation as usize].push((on.done, at as u32));
                waits_for_rank[at] &= operations[on.operation as usize].rank != operations[at].rank;
            }
        }
        let mut counts = vec![0; job.ranks as usize];
        let mut counted = Vec::with_capacity(operations.len());
        for (operation, dependents) in operations.iter().zip(&dependents) {
            // A completion that lets its own rank go on comes before a later one.
            let is_last = |done: Done, place: u32| {
                let goes_on = |&(on, by): &(Done, u32)| on == done && operations[by as usize].rank == place;
                !dependents.iter().any(goes_on)
            };
            let of = match (operation.work, job.barrier) {
                (Work::Send { to, .. }, Barrier::Rank) => {
                    [is_last(Done::Received, to), is_last(Done::Acknowledged, operation.rank)]
                }
                (Work::Send { .. }, Barrier::Group) => [true, false],
                (Work::Compute { .. }, _) => [false, is_last(Done::Computed, operation.rank)],
            };
            if let Work::Send { to, .. } = operation.work {
                counts[to as usize] += u32::from(of[0]);
            }
            counts[operation.rank as usize] += u32::from(of[1]);
            counted.push(of);
        }
        Shape { schedule, dependents, waits_for_rank, counted, counts }
    }
}

/// Starts the operations of a rank that wait for no other.
#[derive(Clone, Copy)]
enum Begin {
    At(Time),
    On(TriggerId),
}

struct Compiler<'a> {
    job: &'a GroupedJob,
    flows: Vec<Flow>,
    triggers: Vec<Trigger>,
}

impl Compiler<'_> {
    fn push(&mut self, trigger: Trigger) -> TriggerId {
        self.triggers.push(trigger);
        TriggerId(self.triggers.len() as u32 - 1)
    }

    fn trigger(&mut self, TriggerId(number): TriggerId) -> &mut Trigger {
        &mut self.triggers[number as usize]
    }

    /// Returns a trigger that activates all of `list`.
    fn one(&mut self, mut list: Vec<TriggerId>, home: u32) -> Option<TriggerId> {
        match list.len() {
            0 | 1 => list.pop(),
            _ => Some(self.push(Trigger { next: list, ..after(1, home) })),
        }
    }

    /// Returns the trigger that each operation has of its own, if it waits.
    fn entries(&mut self, shape: &Shape<'_>, hosts: &[u32], begin: &[Begin]) -> Vec<Option<TriggerId>> {
        let operations = shape.schedule.operations();
        let mut entries = Vec::with_capacity(operations.len());
        for (at, operation) in operations.iter().enumerate() {
            let (rank, host) = (operation.rank as usize, hosts[operation.rank as usize]);
            let events = shape.schedule.after(at).len() as u32;
            let (begun_by, begun_at) = match begin[rank] {
                Begin::On(trigger) => (Some(trigger).filter(|_| shape.waits_for_rank[at]), None),
                Begin::At(time) => (None, Some(time).filter(|_| events == 0)),
            };
            let activations = events + u32::from(begun_by.is_some());
            let entry = match operation.work {
                // The trigger of its rank starts it, or nothing does.
                Work::Send { .. } if events == 0 => None,
                Work::Send { .. } => Some(self.push(Trigger { home: None, ..after(activations, host) })),
                Work::Compute { time: delay, cpu } => {
                    Some(self.push(Trigger { delay, cpu, at: begun_at, ..after(activations.max(1), host) }))
                }
            };
            if let (Some(begin), Some(entry)) = (begun_by, entry) {
                self.trigger(begin).next.push(entry);
            }
            entries.push(entry);
        }
        entries
    }

    /// Adds the flows of a repetition. `begin` starts each rank, `end` counts the last events of each.
    fn repetition(
        &mut self,
        shape: &Shape<'_>,
        hosts: &[u32],
        begin: &[Begin],
        end: &[TriggerId],
        bytes: &dyn Fn(u32) -> Option<u64>,
    ) {
        let schedule = shape.schedule;
        let entries = self.entries(shape, hosts, begin);
        let mut windows: Vec<Option<TriggerId>> = vec![None; hosts.len()];
        let mut outstanding = vec![0; hosts.len()];
        let mut message = 0;
        for (number, operation) in (0..).zip(schedule.operations()) {
            let at = number as usize;
            let (rank, host) = (operation.rank as usize, hosts[operation.rank as usize]);
            let [ends_at_receiver, ends_at_rank] = shape.counted[at];
            let list = |done: Done, last: Option<TriggerId>| {
                let of = |&(on, by): &(Done, u32)| if on == done { entries[by as usize] } else { None };
                shape.dependents[at].iter().filter_map(of).chain(last).collect::<Vec<_>>()
            };
            let last = |counts: bool, rank: usize| if counts { end.get(rank).copied() } else { None };
            let Work::Send { to, bytes: usual } = operation.work else {
                let next = list(Done::Computed, last(ends_at_rank, rank));
                if let Some(entry) = entries[at] {
                    self.trigger(entry).next.extend(next);
                }
                continue;
            };
            let mut received = list(Done::Received, last(ends_at_receiver, to as usize));
            let mut sent = list(Done::Acknowledged, last(ends_at_rank, rank));
            let flow = self.flows.len() as u32;
            let mut start = match (entries[at], begin[rank]) {
                (Some(entry), _) | (None, Begin::On(entry)) => Start::On(entry),
                (None, Begin::At(time)) => Start::At(time),
            };
            if let Some(window) = schedule.window().filter(|_| schedule.after(at).is_empty()) {
                let multishot = *windows[rank].get_or_insert_with(|| {
                    self.triggers.push(Trigger::new(TriggerKind::Multishot, vec![]));
                    TriggerId(self.triggers.len() as u32 - 1)
                });
                if window.done == Done::Acknowledged { &mut sent } else { &mut received }.push(multishot);
                outstanding[rank] += 1;
                if outstanding[rank] > window.messages {
                    start = Start::On(multishot);
                }
            }
            if let Start::On(trigger) = start {
                self.trigger(trigger).targets.push(flow);
            }
            let size = bytes(message).unwrap_or(usual);
            let on_sent = self.one(sent, host);
            let on_received = self.one(received, hosts[to as usize]);
            self.flows.push(Flow { on_sent, on_received, ..plain(host, hosts[to as usize], size, start) });
            message += 1;
        }
    }

    /// Returns the triggers that count the ends of each rank, and start what follows after `delay`.
    fn ends(&mut self, shape: &Shape<'_>, hosts: &[u32], delay: Time) -> Vec<TriggerId> {
        match self.job.barrier {
            Barrier::Rank => {
                let of_rank = |(&host, &count): (&u32, &u32)| Trigger { delay, ..after(count, host) };
                hosts.iter().zip(&shape.counts).map(of_rank).map(|trigger| self.push(trigger)).collect()
            }
            Barrier::Group => {
                let home = hosts[shape.schedule.message(0).rank as usize];
                let all = self.push(Trigger { delay, ..after(shape.counts.iter().sum(), home) });
                vec![all; hosts.len()]
            }
        }
    }

    /// Returns the triggers that start the ranks of the group that takes over these hosts. The first rank's host waits for
    /// all ranks.
    fn successor(&mut self, hosts: &[u32], mut ends: Vec<TriggerId>) -> Vec<Begin> {
        ends.dedup();
        let delay = self.job.compute;
        let starts: Vec<TriggerId> = hosts.iter().map(|&host| self.push(Trigger { delay, ..after(1, host) })).collect();
        let all = self.push(Trigger { next: starts.clone(), ..after(ends.len() as u32, hosts[0]) });
        for end in ends {
            self.trigger(end).next.push(all);
        }
        starts.into_iter().map(Begin::On).collect()
    }
}

fn after(activations: u32, home: u32) -> Trigger {
    let kind = if activations == 1 { TriggerKind::Oneshot } else { TriggerKind::Barrier(activations) };
    Trigger { home: Some(home), ..Trigger::new(kind, vec![]) }
}

/// Returns the flows of `job`, whose messages have the sizes of the schedule: as a template where the run keeps no rows
/// of them, and all groups have the same schedule.
pub(crate) fn compile_alike(job: GroupedJob, context: &Context<'_>) -> Traffic {
    if context.templates && job.schedules.len() == 1 && job.barrier == Barrier::Rank {
        let template = template(&job);
        return Traffic { template: Some(template), grouped: Some(job), ..Traffic::default() };
    }
    compile(job, &|_, _, _| None)
}

/// Returns the flows and triggers of a group among its own ranks.
///
/// The triggers begin as [`GroupTemplate::ALL`] states: one counts the ends of the group before, which it receives as a
/// successor does, and one starts each rank.
fn template(job: &GroupedJob) -> GroupTemplate {
    let ranks: Vec<u32> = (0..job.ranks).collect();
    let shape = Shape::new(job, &job.schedules[0]);
    let mut compiler = Compiler { job, flows: vec![], triggers: vec![] };
    // The number of ends that it waits for is known later.
    let all = compiler.push(after(1, ranks[0]));
    let starts: Vec<TriggerId> =
        ranks.iter().map(|&rank| compiler.push(Trigger { delay: job.compute, ..after(1, rank) })).collect();
    compiler.trigger(all).next.clone_from(&starts);
    let mut begin: Vec<Begin> = starts.into_iter().map(Begin::On).collect();
    let mut ends = vec![];
    for repetition in 0..job.repetitions {
        let is_last = repetition + 1 == job.repetitions;
        let delay = if is_last { Time::ZERO } else { job.gap.saturating_add(job.compute) };
        ends = compiler.ends(&shape, &ranks, delay);
        compiler.repetition(&shape, &ranks, &begin, &ends, &|_| None);
        begin = ends.iter().copied().map(Begin::On).collect();
    }
    compiler.trigger(all).kind = after(ends.len() as u32, 0).kind;
    let successor = TriggerId(compiler.triggers.len() as u32);
    for end in ends {
        compiler.trigger(end).next.push(successor);
    }
    for (flow, connection) in compiler.flows.iter_mut().zip(job.connections(0)) {
        flow.connection = u64::from(connection);
    }
    GroupTemplate::new(compiler.flows, compiler.triggers)
}

/// Returns the flows of `job`, in the order in which it numbers its messages.
///
/// `bytes` returns the size of a message by group, repetition and number within the repetition, where it is not that of
/// the schedule.
pub(crate) fn compile(job: GroupedJob, bytes: &dyn Fn(u32, u32, u32) -> Option<u64>) -> Traffic {
    let mut compiler = Compiler { job: &job, flows: vec![], triggers: vec![] };
    compiler.flows.reserve(job.messages() as usize);
    let shapes: Vec<Shape<'_>> = job.schedules.iter().map(|schedule| Shape::new(&job, schedule)).collect();
    let mut begins =
        vec![vec![Begin::At(job.start.saturating_add(job.compute)); job.ranks as usize]; job.concurrent as usize];
    for group in 0..job.groups {
        let shape = &shapes[if shapes.len() == 1 { 0 } else { group as usize }];
        let (hosts, slot) = (job.hosts_of(group), (group % job.concurrent) as usize);
        for repetition in 0..job.repetitions {
            let is_last = repetition + 1 == job.repetitions;
            let has_successor = group.checked_add(job.concurrent).is_some_and(|after| after < job.groups);
            let end = match (is_last, has_successor) {
                (true, false) => vec![],
                (false, _) => compiler.ends(shape, hosts, job.gap.saturating_add(job.compute)),
                (true, true) => compiler.ends(shape, hosts, Time::ZERO),
            };
            compiler.repetition(shape, hosts, &begins[slot], &end, &|message| bytes(group, repetition, message));
            if !is_last {
                begins[slot] = end.into_iter().map(Begin::On).collect();
            } else if has_successor {
                begins[slot] = compiler.successor(hosts, end);
            }
        }
    }
    let Compiler { flows, triggers, .. } = compiler;
    Traffic { flows, triggers, grouped: Some(job), ..Traffic::default() }
}
