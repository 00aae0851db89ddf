//! Times of the ranks of a job, from the times of its messages.

use super::{
    job::{Barrier, GroupedJob},
    schedule::{Done, Schedule, Work},
};
use anabranch_units::Time;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Ends of a message; `None`: it had not ended when the run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageEnd {
    /// Time at which the receiver had the last byte.
    pub received: Option<Time>,
    /// Time at which the sender had the last acknowledgement.
    pub acknowledged: Option<Time>,
}

/// Times of a rank in a repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankTimes {
    /// Begin of its repetition, with the computation; `None`: what it waits for had not ended when the run did.
    pub start: Option<Time>,
    /// Time at which all messages to it are received, its own acknowledged and its computations done; `None`: the run
    /// ended before.
    pub end: Option<Time>,
    /// Number of the message that ended last; `None` if a computation did, or the repetition has not ended.
    pub last: Option<u32>,
}

/// Times of a repetition.
#[derive(Clone, Copy, Debug)]
pub struct RepetitionTimes<'a> {
    /// Group, from 0.
    pub group: u32,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Per rank of the group.
    pub ranks: &'a [RankTimes],
    /// The schedule, and per operation the earlier one whose event let it start.
    schedule: &'a Schedule,
    causes: &'a [Option<u32>],
    /// Number of its first message.
    first: u32,
}

impl RepetitionTimes<'_> {
    /// Returns the critical path that ends with `message`: the messages of which each let the next one start, at once or
    /// after computations, from the begin of the repetition on.
    pub fn critical_path(&self, message: u32) -> Vec<u32> {
        let mut path = vec![];
        let mut at = Some(self.schedule.operation_of(message - self.first));
        while let Some(operation) = at {
            path.extend(self.schedule.message_of(operation).map(|number| self.first + number));
            at = self.causes[operation as usize];
        }
        path.reverse();
        path
    }
}

/// An unknown end comes after all that are known.
const UNKNOWN: Time = Time::MAX;

struct Walk<'a> {
    job: &'a GroupedJob,
    latency: Time,
    ends: Vec<MessageEnd>,
    /// Per operation so far, the one whose event let it start; `None`: the begin of the repetition did.
    causes: Vec<Option<u32>>,
    /// Per rank, the ends of its outstanding messages, with their operations.
    outstanding: Vec<BinaryHeap<Reverse<(Time, u32)>>>,
    ranks: Vec<RankTimes>,
    /// Per rank: every end so far is known.
    is_known: Vec<bool>,
}

impl Walk<'_> {
    fn across(&self, time: Option<Time>, from: u32, to: u32) -> Option<Time> {
        time.map(|time| if from == to { time } else { time.saturating_add(self.latency) })
    }

    fn end(&mut self, rank: u32, at: Option<Time>, message: Option<u32>) {
        let times = &mut self.ranks[rank as usize];
        match at {
            None => self.is_known[rank as usize] = false,
            Some(_) if times.end.is_none_or(|end| Some(end) < at) => (times.end, times.last) = (at, message),
            Some(_) => {}
        }
    }

    /// Follows one repetition from the starts in `ranks`; `first` is the number of its first message.
    fn follow(&mut self, schedule: &Schedule, first: u32, message: &mut dyn FnMut(u32, Option<Time>) -> MessageEnd) {
        self.ends.clear();
        self.causes.clear();
        self.is_known.fill(true);
        self.outstanding.iter_mut().for_each(BinaryHeap::clear);
        let mut number = first;
        for (at, operation) in schedule.operations().iter().enumerate() {
            let rank = operation.rank;
            let mut ready = self.ranks[rank as usize].start.map(|start| start.saturating_add(self.job.compute));
            let mut cause = None;
            let mut waits = |ready: Option<Time>, end: Option<Time>, of: u32| {
                let (ready, end) = (ready?, end?);
                // Of several that end together, the last of the schedule.
                cause = if end >= ready { Some(of) } else { cause };
                Some(ready.max(end))
            };
            for &on in schedule.after(at) {
                let ends = self.ends[on.operation as usize];
                let end = if on.done == Done::Acknowledged { ends.acknowledged } else { ends.received };
                ready = waits(ready, self.across(end, schedule.place(on), rank), on.operation);
            }
            match operation.work {
                Work::Compute(time) => {
                    self.causes.push(cause);
                    let end = ready.map(|ready| ready.saturating_add(time));
                    self.ends.push(MessageEnd { received: end, acknowledged: end });
                    self.end(rank, end, None);
                }
                Work::Send { to, .. } => {
                    let window = schedule.window().filter(|_| schedule.after(at).is_empty());
                    if let Some(window) = window
                        && self.outstanding[rank as usize].len() >= window.messages as usize
                    {
                        let earliest = self.outstanding[rank as usize].pop().map(|Reverse(end)| end);
                        let (end, of) = earliest.unwrap_or((UNKNOWN, 0));
                        ready = waits(ready, Some(end).filter(|end| *end < UNKNOWN), of);
                    }
                    self.causes.push(cause);
                    let ends = message(number, ready);
                    if let Some(window) = window {
                        let end = match window.done {
                            Done::Acknowledged => ends.acknowledged,
                            _ => self.across(ends.received, to, rank),
                        };
                        self.outstanding[rank as usize].push(Reverse((end.unwrap_or(UNKNOWN), at as u32)));
                    }
                    self.ends.push(ends);
                    self.end(to, ends.received, Some(number));
                    self.end(rank, ends.acknowledged, Some(number));
                    number += 1;
                }
            }
        }
        for (times, is_known) in self.ranks.iter_mut().zip(&self.is_known) {
            if !is_known || times.start.is_none() {
                (times.end, times.last) = (None, None);
            }
        }
    }

    /// Returns the starts of the next repetition, before the gap.
    fn next(&self, schedule: &Schedule) -> Vec<Option<Time>> {
        match self.job.barrier {
            Barrier::Rank => self.ranks.iter().map(|rank| rank.end).collect(),
            Barrier::Group => self.from(schedule.message(0).rank, self.all_received(schedule)),
        }
    }

    /// Returns the time at which all receipts have reached the sender of the first message.
    fn all_received(&self, schedule: &Schedule) -> Option<Time> {
        let home = schedule.message(0).rank;
        let ends = schedule.operations().iter().zip(&self.ends).filter_map(|(operation, ends)| match operation.work {
            Work::Send { to, .. } => Some(self.across(ends.received, to, home)),
            Work::Compute(_) => None,
        });
        latest(ends)
    }

    fn from(&self, home: u32, time: Option<Time>) -> Vec<Option<Time>> {
        (0..self.job.ranks).map(|rank| self.across(time, home, rank)).collect()
    }

    /// Returns the starts of the group that follows: its first rank starts the others.
    fn successor(&self, schedule: &Schedule) -> Vec<Option<Time>> {
        let end = match self.job.barrier {
            Barrier::Rank => latest((0..).zip(&self.ranks).map(|(rank, times)| self.across(times.end, rank, 0))),
            Barrier::Group => self.across(self.all_received(schedule), schedule.message(0).rank, 0),
        };
        self.from(0, end)
    }
}

/// Returns the latest of some times; `None` if one is unknown.
fn latest(mut times: impl Iterator<Item = Option<Time>>) -> Option<Time> {
    times.try_fold(Time::ZERO, |latest, time| Some(latest.max(time?)))
}

/// Follows a job group by group.
///
/// Groups that run at the same time may come in any order, those that follow each other on the same hosts in theirs.
#[derive(Clone, Debug)]
pub struct JobWalk {
    latency: Time,
    /// Per group of those that run at the same time, the starts of the ranks of the next.
    starts: Vec<Vec<Option<Time>>>,
}

impl JobWalk {
    /// Creates the walk of `job`. `latency` is the time for an event to reach another host.
    pub fn new(job: &GroupedJob, latency: Time) -> Self {
        JobWalk { latency, starts: vec![vec![Some(job.start); job.ranks as usize]; job.concurrent as usize] }
    }

    /// Passes the times of each repetition of `group` of `job`, that of the walk, to `each`.
    ///
    /// `message` returns the ends of the message with a number (as in [`crate::FlowSet::messages`]), given the time at
    /// which it may start.
    pub fn group(
        &mut self,
        job: &GroupedJob,
        group: u32,
        message: &mut dyn FnMut(u32, Option<Time>) -> MessageEnd,
        each: &mut dyn FnMut(&RepetitionTimes<'_>),
    ) {
        let (ranks, schedule) = (job.ranks as usize, job.schedule(group));
        let mut walk = Walk {
            job,
            latency: self.latency,
            ends: vec![],
            causes: vec![],
            outstanding: vec![BinaryHeap::new(); ranks],
            ranks: vec![RankTimes::default(); ranks],
            is_known: vec![true; ranks],
        };
        let start = &mut self.starts[(group % job.concurrent) as usize];
        for repetition in 0..job.repetitions {
            for (times, start) in walk.ranks.iter_mut().zip(start.iter()) {
                *times = RankTimes { start: *start, ..RankTimes::default() };
            }
            walk.follow(schedule, job.first_of(group, repetition), message);
            let (ranks, causes, first) = (&walk.ranks, &walk.causes, job.first_of(group, repetition));
            each(&RepetitionTimes { group, repetition, ranks, schedule, causes, first });
            if repetition + 1 < job.repetitions {
                let after = |end: Option<Time>| end.map(|end| end.saturating_add(job.gap));
                *start = walk.next(schedule).into_iter().map(after).collect();
            } else {
                *start = walk.successor(schedule);
            }
        }
    }
}

impl GroupedJob {
    /// Follows the job and passes the times of each repetition to `each`, group by group, as [`JobWalk::group`] does.
    pub fn times(
        &self,
        latency: Time,
        message: &mut dyn FnMut(u32, Option<Time>) -> MessageEnd,
        each: &mut dyn FnMut(&RepetitionTimes<'_>),
    ) {
        let mut walk = JobWalk::new(self, latency);
        (0..self.groups).for_each(|group| walk.group(self, group, message, each));
    }
}
