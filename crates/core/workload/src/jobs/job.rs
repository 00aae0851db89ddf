use super::schedule::Schedule;
use crate::CollectiveInfo;
use anabranch_units::Time;

/// Event after which the next repetition begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// Each rank continues by itself, when its messages are received and those that it sent are acknowledged.
    Rank,
    /// All ranks continue when all messages of the group are received. The sender of the first message keeps the count.
    Group,
}

/// A job: groups of ranks, each of which repeats a schedule.
///
/// `concurrent` groups begin at `start`; each other group takes over the hosts of the one `concurrent` before it, when
/// that has ended. The messages are numbered by group, repetition and place in the schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedJob {
    /// Its workload, an index into [`crate::FlowSet::workloads`].
    pub workload: u16,
    /// Number of its first message in [`crate::FlowSet::messages`].
    pub first: u32,
    pub groups: u32,
    pub ranks: u32,
    pub repetitions: u32,
    /// Groups that run at a time.
    pub concurrent: u32,
    /// Start of the first groups.
    pub start: Time,
    /// Time between the end of a repetition and the begin of the next, per rank.
    pub gap: Time,
    /// Computation of every rank at the begin of a repetition.
    pub compute: Time,
    /// Event after which the next repetition begins.
    pub barrier: Barrier,
    /// Hosts of the ranks, group by group; `concurrent * ranks` entries.
    pub hosts: Vec<u32>,
    /// One schedule of all groups, or one per group; all have the same number of messages.
    pub schedules: Vec<Schedule>,
    /// A repetition as a collective of NCCL's; `None` if it is none.
    pub collective: Option<CollectiveInfo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLabel {
    /// The job, an index into [`crate::FlowSet::grouped`].
    pub job: u32,
    /// Group, from 0.
    pub group: u32,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Step of the schedule, from 0.
    pub step: u32,
    /// Sending rank within the group.
    pub src_rank: u32,
    /// Receiving rank within the group.
    pub dst_rank: u32,
}

impl GroupedJob {
    pub fn schedule(&self, group: u32) -> &Schedule {
        &self.schedules[if self.schedules.len() == 1 { 0 } else { group as usize }]
    }

    /// Returns the host of each rank of a group.
    pub fn hosts_of(&self, group: u32) -> &[u32] {
        let first = (group % self.concurrent) as usize * self.ranks as usize;
        &self.hosts[first..first + self.ranks as usize]
    }

    pub fn messages(&self) -> u64 {
        u64::from(self.schedules[0].messages()) * u64::from(self.repetitions) * u64::from(self.groups)
    }

    /// Returns the number of the first message of a repetition.
    pub fn first_of(&self, group: u32, repetition: u32) -> u32 {
        self.first + (group * self.repetitions + repetition) * self.schedules[0].messages()
    }

    /// Returns the first message of the connection of each message of a group, both counted from the group's first.
    pub(crate) fn connections(&self, group: u32) -> impl Iterator<Item = u32> {
        let of_one = self.schedule(group).connections();
        let repetitions = if of_one.is_empty() { 0 } else { self.repetitions };
        (0..repetitions).flat_map(move |_| of_one.clone())
    }

    /// Returns the time that `rank` computes in a repetition.
    pub fn computation(&self, group: u32, rank: u32) -> Time {
        self.compute.saturating_add(self.schedule(group).computation(rank))
    }

    /// Returns the label of a message; `job` is its own number.
    pub(crate) fn label(&self, job: u32, message: u32) -> FlowLabel {
        let (number, of_one) = (message - self.first, self.schedules[0].messages());
        let (repetition, group) = (number / of_one % self.repetitions, number / of_one / self.repetitions);
        let operation = self.schedule(group).message(number % of_one);
        let dst_rank = match operation.work {
            super::schedule::Work::Send { to, .. } => to,
            super::schedule::Work::Compute { .. } => operation.rank,
        };
        FlowLabel { job, group, repetition, step: operation.step, src_rank: operation.rank, dst_rank }
    }
}
