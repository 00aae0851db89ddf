//! Groups of templates that have ended: their outcomes become rows, and their state is released.
//!
//! A partition contributes what its hosts counted of a group when the group that takes over the hosts starts there, or at
//! the end of the run. The last contribution turns the whole into rows.

use crate::{
    host::{NEVER, Received, Sent},
    ids::FlowId,
    plan::Plan,
};
use anabranch_backend::{FlowOutcome, Setup, UnlistedJob};
use anabranch_outcome::{FlowCounters, JobRows};
use std::{collections::BTreeMap, sync::Mutex};

/// Outcomes of the flows of a group so far.
#[derive(Debug)]
struct Partial {
    outcomes: Vec<(FlowOutcome, FlowCounters)>,
    /// Partitions that have not contributed.
    missing: u32,
}

#[derive(Debug)]
struct OfTemplate {
    job: UnlistedJob,
    partial: BTreeMap<u32, Partial>,
}

pub(crate) fn whole((outcome, counters): (FlowOutcome, FlowCounters)) -> FlowOutcome {
    FlowOutcome { metrics: counters.into(), ..outcome }
}

#[derive(Debug)]
pub(crate) struct GroupEnds {
    templates: Vec<Mutex<OfTemplate>>,
}

/// Bytes of complete flows: unique ones that receivers had, and those of the flows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompleteBytes {
    pub(crate) unique: u64,
    pub(crate) size: u64,
}

impl GroupEnds {
    pub(crate) fn new(setup: &Setup) -> Self {
        let of = |template| Mutex::new(OfTemplate { job: UnlistedJob::new(setup, template), partial: BTreeMap::new() });
        GroupEnds { templates: (0..setup.flows.templates.len()).map(of).collect() }
    }

    /// Adds what the hosts of partition `me` counted for the flows of a group, and returns their complete bytes. `sent` and
    /// `received` return the records of the flows that its hosts send and receive.
    pub(crate) fn contribute(
        &self,
        plan: &Plan<'_>,
        me: u16,
        (template, group): (usize, u32),
        sent: impl Fn(FlowId) -> Sent,
        received: impl Fn(FlowId) -> Received,
    ) -> CompleteBytes {
        let set = plan.flows;
        let of = &set.templates[template];
        let job = &set.grouped[of.job as usize];
        let ranks = job.hosts_of(group);
        let is_mine: Vec<bool> = ranks.iter().map(|host| plan.owner_of_host(*host) == me).collect();
        let first = job.first_of(group, 0);
        let mut bytes = CompleteBytes::default();
        let Ok(mut ends) = self.templates[template].lock() else { return bytes };
        let OfTemplate { job: rows, partial } = &mut *ends;
        let entry = partial.entry(group).or_insert_with(|| {
            let mut owners: Vec<u16> = ranks.iter().map(|host| plan.owner_of_host(*host)).collect();
            owners.sort_unstable();
            owners.dedup();
            let outcomes = vec![Default::default(); of.flows_per_group() as usize];
            Partial { outcomes, missing: owners.len() as u32 }
        });
        for (number, flow) in (first..).zip(of.of_ranks()) {
            let outcome = &mut entry.outcomes[(number - first) as usize];
            if is_mine[flow.src as usize] {
                sent(FlowId(number)).add_to(outcome);
            }
            if is_mine[flow.dst as usize] {
                let received = received(FlowId(number));
                received.add_to(outcome);
                if received.done != NEVER {
                    bytes.unique += received.received_bytes;
                    bytes.size += flow.size;
                }
            }
        }
        entry.missing -= 1;
        if entry.missing == 0
            && let Some(Partial { outcomes, .. }) = partial.remove(&group)
        {
            let outcomes: Vec<FlowOutcome> = outcomes.into_iter().map(whole).collect();
            rows.add(plan.setup, group, &outcomes);
        }
        bytes
    }

    /// Moves the rows of all jobs to `rows`; fails if a flow took less than its ideal time. Every partition has contributed to
    /// every group.
    pub(crate) fn finish(&self, rows: &mut JobRows) -> Result<(), String> {
        self.templates.iter().filter_map(|of| of.lock().ok()).try_for_each(|mut of| of.job.finish(rows))
    }
}
