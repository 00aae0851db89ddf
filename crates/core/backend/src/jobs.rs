//! Rows of jobs, from the times of their flows.

use crate::{FlowOutcome, Setup};
use anabranch_outcome::{FlowRow, GroupRow, JobFlowRow, JobRows, RankRow, StepRow, exposed};
use anabranch_units::Time;
use anabranch_workload::{FlowSet, GroupedJob, MessageTimes, NO_MESSAGE, RankTimes, RepetitionTimes, StepTimes};
use std::{cmp::Reverse, collections::BTreeMap};

/// Flows of the messages of a job, in order: one each, or several that follow each other.
struct FlowsOf {
    /// First flow of each message in `flows`; one more entry follows the last.
    first: Vec<u32>,
    flows: Vec<u32>,
}

impl FlowsOf {
    fn new(set: &FlowSet, job: &GroupedJob) -> Self {
        let messages = job.messages() as u32;
        let own = || {
            (0u32..).zip(&set.messages).filter_map(|(flow, message)| {
                let number = message.checked_sub(job.first).filter(|number| *number < messages)?;
                (*message != NO_MESSAGE).then_some((flow, number as usize))
            })
        };
        let mut first = vec![0; messages as usize + 1];
        own().for_each(|(_, number)| first[number + 1] += 1);
        (1..first.len()).for_each(|at| first[at] += first[at - 1]);
        let mut next = first.clone();
        let mut flows = vec![0; own().count()];
        for (flow, number) in own() {
            flows[next[number] as usize] = flow;
            next[number] += 1;
        }
        FlowsOf { first, flows }
    }

    fn of(&self, number: u32) -> &[u32] {
        &self.flows[self.first[number as usize] as usize..self.first[number as usize + 1] as usize]
    }
}

/// Start of a group and end of its last rank.
#[derive(Clone, Copy, Default)]
pub(crate) struct Span {
    start: Option<Time>,
    end: Option<Time>,
    last: Option<usize>,
}

impl Span {
    pub(crate) fn of(ranks: &[RankTimes]) -> Self {
        let start = ranks.iter().filter_map(|rank| rank.start).min();
        let ends: Option<Vec<Time>> = ranks.iter().map(|rank| rank.end).collect();
        let end = ends.as_ref().and_then(|ends| ends.iter().copied().max());
        let last = ranks.iter().position(|rank| end.is_some() && rank.end == end);
        Span { start, end, last }
    }

    pub(crate) fn completion(&self) -> Option<Time> {
        Some(self.end?.saturating_sub(self.start?))
    }
}

/// Times of an idle network: of the ranks, each with the completion of its group, and of the steps.
#[derive(Debug, Default)]
pub(crate) struct Ideals {
    ranks: Vec<(RankTimes, Option<Time>)>,
    steps: Vec<Option<Time>>,
}

impl Ideals {
    pub(crate) fn push(&mut self, repetition: &RepetitionTimes<'_>) {
        let completion = Span::of(repetition.ranks).completion();
        self.ranks.extend(repetition.ranks.iter().map(|rank| (*rank, completion)));
        self.steps.extend(repetition.steps.iter().map(step_completion));
    }
}

fn step_completion(times: &StepTimes) -> Option<Time> {
    Some(times.end?.saturating_sub(times.start?))
}

fn completion(times: &RankTimes) -> Option<Time> {
    Some(times.end?.saturating_sub(times.start?))
}

/// Returns the rows of all jobs of `setup`. The ideal times are those of the same dependency graph, each message with the
/// ideal time of its flows, from the moment at which it may start.
pub fn job_rows(setup: &Setup, outcomes: &[FlowOutcome], flows: &[FlowRow]) -> JobRows {
    let (set, latency) = (&setup.flows, setup.limits.trigger_latency);
    let mut rows = JobRows::default();
    // Jobs of templates come last, and give their rows as their groups end.
    for job in &set.grouped[..set.grouped.len() - set.templates.len()] {
        let of = FlowsOf::new(set, job);
        let mut ideals = Ideals::default();
        // The last hop's acknowledgement is at the relay; its trigger reaches the sender after the latency.
        let relayed = |end: MessageTimes, hops: usize| MessageTimes {
            acknowledged: end.acknowledged.map(|at| if hops > 1 { at.saturating_add(latency) } else { at }),
            ..end
        };
        let mut ideal = |message: u32, ready: Option<Time>| {
            let mut at = ready;
            let mut end = MessageTimes::default();
            for &flow in of.of(message - job.first) {
                let row = &flows[flow as usize];
                let after = |time: Time| at.map(|at| at.saturating_add(time));
                end =
                    MessageTimes { started: ready, received: after(row.ideal_rx), acknowledged: after(row.ideal_ack) };
                at = end.received;
            }
            relayed(end, of.of(message - job.first).len())
        };
        job.times(latency, &mut ideal, &mut |repetition| {
            ideals.push(repetition);
        });
        let mut measured = |message: u32, _: Option<Time>| {
            let own = of.of(message - job.first);
            let outcome = |flow: &u32| &outcomes[*flow as usize];
            let (first, last) = (own.first().map(outcome), own.last().map(outcome));
            let end = MessageTimes {
                started: first.and_then(|first| first.started),
                received: last.and_then(|last| last.received),
                acknowledged: last.and_then(|last| last.acknowledged),
            };
            relayed(end, own.len())
        };
        let flow_of = |message: Option<u32>| message.and_then(|message| of.of(message - job.first).last().copied());
        let host_of = |endpoint: u32| set.servers.as_ref().map_or(endpoint, |servers| servers.nic_of(endpoint));
        let mut at = Place::default();
        let waits = |message: u32| {
            let own = of.of(message - job.first).iter();
            own.filter_map(|flow| flows[*flow as usize].delays?.longest).collect::<Vec<_>>()
        };
        job.times(latency, &mut measured, &mut |repetition| {
            add(&mut rows, job, repetition, at.take(&ideals, repetition), &flow_of, &host_of);
            if let Some(row) = rows.groups.last_mut() {
                set_critical(row, repetition, &waits);
            }
        });
    }
    if !set.messages.is_empty() {
        rows.flows = (0..set.flows.len()).filter_map(|flow| label(set, flow)).collect();
    }
    rows
}

/// Place in [`Ideals`], repetition by repetition.
#[derive(Debug, Default)]
pub(crate) struct Place {
    rank: usize,
    step: usize,
}

/// Ideal times of a repetition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfRepetition<'a> {
    ranks: &'a [(RankTimes, Option<Time>)],
    steps: &'a [Option<Time>],
}

impl Place {
    /// Returns the ideal times of `repetition`, the next one.
    pub(crate) fn take<'a>(&mut self, ideals: &'a Ideals, repetition: &RepetitionTimes<'_>) -> OfRepetition<'a> {
        let (rank, step) = (self.rank, self.step);
        self.rank += repetition.ranks.len();
        self.step += repetition.steps.len();
        OfRepetition { ranks: &ideals.ranks[rank..self.rank], steps: &ideals.steps[step..self.step] }
    }
}

pub(crate) fn add(
    rows: &mut JobRows,
    job: &GroupedJob,
    times: &RepetitionTimes<'_>,
    ideals: OfRepetition<'_>,
    flow_of: &dyn Fn(Option<u32>) -> Option<u32>,
    host_of: &dyn Fn(u32) -> u32,
) {
    let (workload, group, repetition) = (job.workload, times.group, times.repetition);
    let hosts = job.hosts_of(group);
    for ((rank, times), (ideal, _)) in (0..).zip(times.ranks).zip(ideals.ranks) {
        rows.ranks.push(RankRow {
            workload,
            group,
            repetition,
            rank,
            host: host_of(hosts[rank as usize]),
            start: times.start.into(),
            completion: completion(times).into(),
            ideal: completion(ideal).into(),
            computation: job.computation(group, rank),
            last_flow: flow_of(times.last).into(),
        });
    }
    for ((step, times), ideal) in (0..).zip(times.steps).zip(ideals.steps).filter(|((_, times), _)| times.messages > 0)
    {
        rows.steps.push(StepRow {
            workload,
            group,
            repetition,
            step,
            messages: times.messages,
            start: times.start.into(),
            completion: step_completion(times).into(),
            ideal: (*ideal).into(),
            last_rank: times.last.map(|(_, rank)| rank).into(),
            last_flow: flow_of(times.last.map(|(message, _)| message)).into(),
        });
    }
    let span = Span::of(times.ranks);
    let computation = job.computation(group, span.last.unwrap_or(0) as u32);
    let completion = span.completion();
    rows.groups.push(GroupRow {
        workload,
        group,
        repetition,
        ranks: job.ranks,
        start: span.start,
        completion,
        ideal: ideals.ranks.first().and_then(|(_, completion)| *completion),
        computation,
        bus_bandwidth_bps: exposed(completion, computation).and_then(|time| bus_bandwidth(job, time)),
        last_rank: span.last.map(|rank| rank as u32),
        last_flow: span.last.and_then(|rank| flow_of(times.ranks[rank].last)),
        critical_messages: None,
        critical_link: None,
    });
}

/// Sets the critical path of a group that ended with a message. `waits` returns the links that held the flows of a message
/// longest, and for how long.
pub(crate) fn set_critical(row: &mut GroupRow, times: &RepetitionTimes<'_>, waits: &dyn Fn(u32) -> Vec<(u32, Time)>) {
    let last = row.last_rank.and_then(|rank| times.ranks[rank as usize].last);
    let Some(path) = last.map(|last| times.critical_path(last)) else { return };
    row.critical_messages = Some(path.len() as u32);
    let mut at: BTreeMap<u32, Time> = BTreeMap::new();
    for (link, span) in path.into_iter().flat_map(waits) {
        let held = at.entry(link).or_default();
        *held = held.saturating_add(span);
    }
    // Of several, the first link.
    row.critical_link = at.into_iter().max_by_key(|(link, span)| (*span, Reverse(*link)));
}

/// Returns NCCL's bus bandwidth: bytes of a buffer over the time of the collective, times the factor of the algorithm.
fn bus_bandwidth(job: &GroupedJob, time: Time) -> Option<f64> {
    let of = job.collective.as_ref()?;
    let (bytes, rounds, seconds) = (of.bytes?, of.rounds?, time.as_seconds());
    (seconds > 0.0).then(|| bytes as f64 * f64::from(rounds) * 8.0 * of.bus_factor / seconds)
}

fn label(set: &FlowSet, flow: usize) -> Option<JobFlowRow> {
    let label = set.label(flow)?;
    Some(JobFlowRow {
        flow_id: flow as u32,
        workload: set.grouped[label.job as usize].workload,
        group: label.group,
        repetition: label.repetition,
        step: label.step,
        src_rank: label.src_rank,
        dst_rank: label.dst_rank,
    })
}
