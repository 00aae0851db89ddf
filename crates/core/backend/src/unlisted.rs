//! Rows of jobs whose flows have none (`measure.flow_rows`), group by group as they end.

use crate::{
    FlowOutcome, Setup,
    fingerprint::Hash,
    ideal::{IdealTimes, below_ideal},
    jobs::{Ideals, Place, add, set_critical},
    rows::row,
};
use anabranch_outcome::{FlowMetrics, FlowRow, JobRows, UnlistedFlows};
use anabranch_units::Time;
use anabranch_workload::{JobWalk, MessageTimes};

/// Rows of a job of a template ([`anabranch_workload::GroupTemplate`]).
#[derive(Debug)]
pub struct UnlistedJob {
    template: usize,
    measured: JobWalk,
    ideal: JobWalk,
    ideals: IdealTimes,
    rows: JobRows,
    flows: UnlistedFlows,
    metrics: Option<FlowMetrics>,
    /// Per group, the hash of its flows.
    hashes: Vec<u64>,
    /// The first flow below its ideal time, with a description.
    below_ideal: Option<(u32, String)>,
    of_group: Vec<FlowRow>,
}

impl UnlistedJob {
    /// Creates the job of a template of `setup`, by its number.
    pub fn new(setup: &Setup, template: usize) -> Self {
        let (set, latency) = (&setup.flows, setup.limits.trigger_latency);
        let of = &set.templates[template];
        let job = &set.grouped[of.job as usize];
        let repetitions = job.groups as usize * job.repetitions as usize;
        UnlistedJob {
            template,
            measured: JobWalk::new(job, latency),
            ideal: JobWalk::new(job, latency),
            ideals: IdealTimes::new(setup),
            // Exactly: they are most of the memory of a run of many groups.
            rows: JobRows {
                groups: Vec::with_capacity(repetitions),
                ranks: Vec::with_capacity(repetitions * job.ranks as usize),
                steps: Vec::with_capacity(repetitions * job.schedule(0).steps() as usize),
                ..JobRows::default()
            },
            flows: UnlistedFlows { workload: job.workload, total: of.flows(), ..UnlistedFlows::default() },
            metrics: None,
            hashes: vec![0; of.groups() as usize],
            below_ideal: None,
            of_group: vec![],
        }
    }

    /// Adds a group of `setup`, that of the job, with the outcomes of its flows in order. A group comes after the one whose
    /// hosts it took over.
    pub fn add(&mut self, setup: &Setup, group: u32, outcomes: &[FlowOutcome]) {
        let set = &setup.flows;
        let template = &set.templates[self.template];
        let job = &set.grouped[template.job as usize];
        let first = job.first_of(group, 0);
        let mut hash = Hash::new();
        self.of_group.clear();
        for (number, outcome) in outcomes.iter().enumerate() {
            let row = row(setup, &mut self.ideals, first as usize + number, outcome);
            hash.flow(&row);
            self.count(&row, outcome);
            let below = below_ideal(setup, &row).map(|what| (row.flow_id, what));
            self.below_ideal = self.below_ideal.take().into_iter().chain(below).min();
            self.of_group.push(row);
        }
        self.hashes[group as usize] = hash.0;
        let (rows, of_group) = (&mut self.rows, &self.of_group);
        let mut ideals = Ideals::default();
        let mut ideal = |message: u32, ready: Option<Time>| {
            let row = &of_group[(message - first) as usize];
            let after = |time: Time| ready.map(|ready| ready.saturating_add(time));
            MessageTimes { started: ready, received: after(row.ideal_rx), acknowledged: after(row.ideal_ack) }
        };
        self.ideal.group(job, group, &mut ideal, &mut |repetition| ideals.push(repetition));
        let mut measured = |message: u32, _: Option<Time>| {
            let outcome = &outcomes[(message - first) as usize];
            let FlowOutcome { started, received, acknowledged, .. } = *outcome;
            MessageTimes { started, received, acknowledged }
        };
        let mut at = Place::default();
        self.measured.group(job, group, &mut measured, &mut |repetition| {
            add(rows, job, repetition, at.take(&ideals, repetition), &|_| None, &|host| host);
            if let Some(row) = rows.groups.last_mut() {
                set_critical(row, repetition, &|_| vec![]);
            }
        });
    }

    fn count(&mut self, row: &FlowRow, outcome: &FlowOutcome) {
        let flows = &mut self.flows;
        flows.received += u64::from(outcome.received.is_some());
        flows.finished += u64::from(outcome.acknowledged.is_some());
        if let Some(start) = outcome.started {
            flows.first_start = Some(flows.first_start.map_or(start, |first| first.min(start)));
        }
        flows.last_end = flows.last_end.max(outcome.acknowledged);
        self.metrics = Some(match &self.metrics {
            None => row.metrics,
            Some(all) => FlowMetrics::together([all, &row.metrics]),
        });
    }

    /// Moves the rows to `rows`, by group, repetition and rank.
    /// Errors: a description of the first flow that took less than its ideal time.
    pub fn finish(&mut self, rows: &mut JobRows) -> Result<(), String> {
        self.rows.groups.sort_unstable_by_key(|row| (row.group, row.repetition));
        self.rows.ranks.sort_unstable_by_key(|row| (row.group, row.repetition, row.rank));
        self.rows.steps.sort_unstable_by_key(|row| (row.group, row.repetition, row.step));
        move_into(&mut rows.groups, &mut self.rows.groups);
        move_into(&mut rows.steps, &mut self.rows.steps);
        move_into(&mut rows.ranks, &mut self.rows.ranks);
        let mut hash = Hash::new();
        self.hashes.iter().for_each(|group| hash.add(*group));
        rows.unlisted.push(UnlistedFlows {
            metrics: self.metrics.unwrap_or_default(),
            hash: hash.0,
            ..self.flows.clone()
        });
        self.below_ideal.take().map_or(Ok(()), |(_, what)| Err(what))
    }
}

/// Moves rows to the end of others, without a copy where there are none.
fn move_into<T>(rows: &mut Vec<T>, more: &mut Vec<T>) {
    if rows.is_empty() {
        std::mem::swap(rows, more);
    }
    rows.append(more);
}
