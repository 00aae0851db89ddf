//! Flows and triggers of a job by arithmetic, from those of one group.
//!
//! A run that keeps no rows of the flows of jobs needs a group's flows only while the group runs. Their numbers follow
//! those of all listed flows, group by group, so that a number gives group and place; triggers likewise.

use super::job::GroupedJob;
use crate::{Flow, Start, Trigger, TriggerId, TriggerKind};
use anabranch_random::mix;
use anabranch_units::Time;

/// The flows and triggers of every group of a job. Hosts of the template are ranks, connections numbers of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupTemplate {
    /// Its job, an index into [`crate::FlowSet::grouped`].
    pub job: u32,
    /// Number of its first flow, as [`crate::FlowSet::flow`] counts.
    pub first_flow: u32,
    /// Number of its first trigger, as [`crate::FlowSet::trigger`] counts.
    pub first_trigger: u32,
    groups: u32,
    flows: Vec<Flow>,
    /// Triggers of this group have numbers below their count; the next number is [`GroupTemplate::ALL`] of the successor.
    triggers: Vec<Trigger>,
    entity: u64,
}

/// Place of a flow or trigger of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplatePlace {
    /// The template, an index into [`crate::FlowSet::templates`].
    pub template: usize,
    /// Group, from 0.
    pub group: u32,
    /// Number within the group.
    pub number: u32,
}

impl GroupTemplate {
    /// Trigger of a group that counts the ends of the group before and starts the ranks, whose triggers follow it.
    pub const ALL: u32 = 0;

    pub(crate) fn new(flows: Vec<Flow>, triggers: Vec<Trigger>) -> Self {
        GroupTemplate { job: 0, first_flow: 0, first_trigger: 0, groups: 0, flows, triggers, entity: 0 }
    }

    /// Sets the parts that the flows take from their workload. Random streams are keyed by `entity`.
    pub(crate) fn labelled(mut self, workload: u16, class: u8, entity: u64, groups: u32) -> Self {
        self.flows.iter_mut().for_each(|flow| (flow.workload, flow.class) = (workload, class));
        GroupTemplate { entity, groups, ..self }
    }

    pub fn groups(&self) -> u32 {
        self.groups
    }

    pub fn flows_per_group(&self) -> u32 {
        self.flows.len() as u32
    }

    pub fn triggers_per_group(&self) -> u32 {
        self.triggers.len() as u32
    }

    pub fn flows(&self) -> u64 {
        self.flows.len() as u64 * u64::from(self.groups)
    }

    pub fn triggers(&self) -> u64 {
        self.triggers.len() as u64 * u64::from(self.groups)
    }

    /// Returns the flows of a group, among its ranks.
    pub fn of_ranks(&self) -> &[Flow] {
        &self.flows
    }

    /// Returns the bytes that a rank of a group sends and receives.
    pub fn bytes_of_rank(&self, rank: u32) -> u64 {
        let of = |flow: &&Flow| flow.src == rank || flow.dst == rank;
        self.flows.iter().filter(of).map(|flow| flow.size).fold(0, u64::saturating_add)
    }

    #[inline]
    pub(crate) fn key(&self, flow: u32) -> u64 {
        mix(self.entity ^ mix(u64::from(flow - self.first_flow) + 1))
    }

    #[inline]
    pub(crate) fn connection_key(&self, flow: u32) -> u64 {
        let number = (flow - self.first_flow) % self.flows_per_group();
        self.key(flow - number + self.flows[number as usize].connection as u32)
    }

    pub(crate) fn flow(&self, job: &GroupedJob, place: TemplatePlace) -> Flow {
        let of = &self.flows[place.number as usize];
        let number = self.first_flow + place.group * self.flows_per_group() + place.number;
        let beyond = |TriggerId(trigger)| TriggerId(self.trigger_base(place.group) + trigger);
        let hosts = job.hosts_of(place.group);
        Flow {
            src: hosts[of.src as usize],
            dst: hosts[of.dst as usize],
            start: match of.start {
                Start::On(trigger) => Start::On(beyond(trigger)),
                at @ Start::At(_) => at,
            },
            key: self.key(number),
            connection: self.connection_key(number),
            listed: number,
            on_sent: of.on_sent.map(beyond),
            on_received: of.on_received.map(beyond),
            ..*of
        }
    }

    fn trigger_base(&self, group: u32) -> u32 {
        self.first_trigger + group * self.triggers_per_group()
    }

    pub(crate) fn trigger<'a>(&'a self, job: &GroupedJob, place: TemplatePlace) -> TriggerView<'a> {
        let of = &self.triggers[place.number as usize];
        let home = of.home.or_else(|| of.targets.first().map(|first| self.flows[*first as usize].src));
        let starts_a_rank = (1..=job.ranks).contains(&place.number);
        let successor = place.group + job.concurrent;
        TriggerView {
            of,
            home: home.map(|rank| job.hosts_of(place.group)[rank as usize]),
            at: (starts_a_rank && place.group < job.concurrent).then_some(job.start),
            flows: self.first_flow + place.group * self.flows_per_group(),
            own: self.trigger_base(place.group),
            per_group: self.triggers_per_group(),
            successor: (successor < self.groups).then(|| self.trigger_base(successor)),
        }
    }

    /// Returns the numbers of the triggers that start at a time: those of the ranks of the first groups.
    pub fn timed_triggers(&self, job: &GroupedJob) -> impl Iterator<Item = u32> {
        let (first, per_group, ranks) = (self.first_trigger, self.triggers_per_group(), job.ranks);
        (0..job.concurrent.min(self.groups))
            .flat_map(move |group| (1..=ranks).map(move |rank| first + group * per_group + rank))
    }
}

/// A trigger, with the numbers of its run.
#[derive(Clone, Copy, Debug)]
pub struct TriggerView<'a> {
    of: &'a Trigger,
    home: Option<u32>,
    at: Option<Time>,
    /// Added to the numbers of flows.
    flows: u32,
    /// Added to the numbers of triggers below `per_group`.
    own: u32,
    per_group: u32,
    /// Takes the place of the numbers from `per_group` on; `None`: there is no such trigger.
    successor: Option<u32>,
}

impl<'a> TriggerView<'a> {
    pub(crate) fn listed(of: &'a Trigger) -> Self {
        TriggerView { of, home: of.home, at: of.at, flows: 0, own: 0, per_group: u32::MAX, successor: None }
    }

    /// Returns the effect of an activation.
    #[inline]
    pub fn kind(&self) -> TriggerKind {
        self.of.kind
    }

    /// Returns the host of its state, with servers a GPU; `None`: the sender of its first target.
    pub fn home(&self) -> Option<u32> {
        self.home
    }

    /// Returns the time of one activation by itself.
    pub fn at(&self) -> Option<Time> {
        self.at
    }

    /// Returns the time from its beginning to its firing.
    #[inline]
    pub fn delay(&self) -> Time {
        self.of.delay
    }

    /// Returns the processor that the delay occupies.
    #[inline]
    pub fn cpu(&self) -> Option<u8> {
        self.of.cpu
    }

    /// Returns the number of flows that it starts.
    pub fn targets(&self) -> usize {
        self.of.targets.len()
    }

    /// Returns the number of a flow that it starts.
    #[inline]
    pub fn target(&self, index: usize) -> Option<u32> {
        self.of.targets.get(index).map(|flow| flow + self.flows)
    }

    /// Returns the number of triggers activated when it begins.
    pub fn begun(&self) -> usize {
        self.of.begun.len()
    }

    /// Returns a trigger activated when it begins.
    #[inline]
    pub fn begun_at(&self, index: usize) -> Option<TriggerId> {
        self.numbered(self.of.begun[index])
    }

    /// Returns the number of triggers activated when it fires.
    pub fn next(&self) -> usize {
        self.of.next.len()
    }

    /// Returns a trigger activated when it fires; `None`: the job ends there.
    #[inline]
    pub fn next_at(&self, index: usize) -> Option<TriggerId> {
        self.numbered(self.of.next[index])
    }

    #[inline]
    fn numbered(&self, TriggerId(trigger): TriggerId) -> Option<TriggerId> {
        match trigger.checked_sub(self.per_group) {
            None => Some(TriggerId(trigger + self.own)),
            Some(beyond) => self.successor.map(|successor| TriggerId(successor + beyond)),
        }
    }
}
