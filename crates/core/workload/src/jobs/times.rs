//! Times of the ranks of a job, from the times of its messages.

use super::{
    job::{Barrier, GroupedJob},
    schedule::{Done, Schedule, Work},
};
use anabranch_units::Time;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

/// Times of a message; `None`: not before the end of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageTimes {
    /// Start of its first flow.
    pub started: Option<Time>,
    /// Time at which the receiver had the last byte.
    pub received: Option<Time>,
    /// Time at which the sender had the last acknowledgement.
    pub acknowledged: Option<Time>,
}

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

/// Times of the messages of a step in a repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTimes {
    pub messages: u32,
    /// Earliest start of a message; `None`: none had started when the run ended.
    pub start: Option<Time>,
    /// Time at which its last message was received; `None`: the run ended before.
    pub end: Option<Time>,
    /// Number of that message, and its receiver.
    pub last: Option<(u32, u32)>,
    received: u32,
}

impl StepTimes {
    fn add(&mut self, message: u32, to: u32, times: &MessageTimes) {
        self.messages += 1;
        self.start = match (self.start, times.started) {
            (Some(start), Some(started)) => Some(start.min(started)),
            (start, started) => start.or(started),
        };
        if let Some(received) = times.received {
            self.received += 1;
            if self.end.is_none_or(|end| end < received) {
                (self.end, self.last) = (Some(received), Some((message, to)));
            }
        }
    }

    fn close(&mut self) {
        if self.received < self.messages {
            (self.end, self.last) = (None, None);
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct RepetitionTimes<'a> {
    /// Group, from 0.
    pub group: u32,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Per rank of the group.
    pub ranks: &'a [RankTimes],
    /// Per step of the schedule; some may have no messages.
    pub steps: &'a [StepTimes],
    /// The schedule, and per operation the one whose event let it start.
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

/// Returns the times of a message, given its number and the time at which it may start.
type Messages<'a> = dyn FnMut(u32, Option<Time>) -> MessageTimes + 'a;

struct Walk<'a> {
    job: &'a GroupedJob,
    latency: Time,
    /// Per operation.
    times: Vec<MessageTimes>,
    /// Per operation, the one whose event let it start; `None`: the begin of the repetition did.
    causes: Vec<Option<u32>>,
    /// Per rank, the ends of its outstanding messages, with their operations.
    outstanding: Vec<BinaryHeap<Reverse<(Time, u32)>>>,
    /// Per rank and processor in use, the end of its last computation, and which that was.
    processors: BTreeMap<(u32, u8), (Option<Time>, u32)>,
    ranks: Vec<RankTimes>,
    /// Per rank: every end so far is known.
    is_known: Vec<bool>,
    steps: Vec<StepTimes>,
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
    fn follow(&mut self, schedule: &Schedule, first: u32, message: &mut Messages<'_>) {
        let operations = schedule.operations().len();
        self.times.clear();
        self.times.resize(operations, MessageTimes::default());
        self.causes.clear();
        self.causes.resize(operations, None);
        self.is_known.fill(true);
        self.outstanding.iter_mut().for_each(BinaryHeap::clear);
        self.processors.clear();
        self.steps.fill(StepTimes::default());
        if !schedule.is_unordered {
            for at in 0..operations {
                let (ready, cause) = self.ready(schedule, at);
                self.operation(schedule, (at, ready, cause), first, message);
            }
        } else {
            self.by_time(schedule, first, message);
        }
        self.steps.iter_mut().for_each(StepTimes::close);
        for (times, is_known) in self.ranks.iter_mut().zip(&self.is_known) {
            if !is_known || times.start.is_none() {
                (times.end, times.last) = (None, None);
            } else if times.end.is_none() {
                // A rank without operations.
                times.end = times.start;
            }
        }
    }

    /// Follows operations in the order in which they become ready, as processors take them.
    fn by_time(&mut self, schedule: &Schedule, first: u32, message: &mut Messages<'_>) {
        let operations = schedule.operations().len();
        let mut open = vec![0u32; operations];
        let mut first_of = vec![0u32; operations + 1];
        for (at, open) in open.iter_mut().enumerate() {
            *open = schedule.after(at).len() as u32;
            schedule.after(at).iter().for_each(|on| first_of[on.operation as usize + 1] += 1);
        }
        (1..first_of.len()).for_each(|at| first_of[at] += first_of[at - 1]);
        let mut next = first_of.clone();
        let mut dependents = vec![0u32; first_of[operations] as usize];
        for at in 0..operations {
            for on in schedule.after(at) {
                let place = &mut next[on.operation as usize];
                dependents[*place as usize] = at as u32;
                *place += 1;
            }
        }
        let key = |ready: Option<Time>| ready.unwrap_or(UNKNOWN);
        let free = (0..operations).filter(|at| open[*at] == 0);
        let mut queue: BinaryHeap<Reverse<(Time, u32)>> =
            free.map(|at| Reverse((key(self.ready(schedule, at).0), at as u32))).collect();
        while let Some(Reverse((_, number))) = queue.pop() {
            let at = number as usize;
            let (ready, cause) = self.ready(schedule, at);
            self.operation(schedule, (at, ready, cause), first, message);
            for &waiter in &dependents[first_of[at] as usize..first_of[at + 1] as usize] {
                open[waiter as usize] -= 1;
                if open[waiter as usize] == 0 {
                    queue.push(Reverse((key(self.ready(schedule, waiter as usize).0), waiter)));
                }
            }
        }
    }

    /// Returns the time at which an operation may start, and the operation whose event that was.
    fn ready(&self, schedule: &Schedule, at: usize) -> (Option<Time>, Option<u32>) {
        let rank = schedule.operations()[at].rank;
        let begin = self.ranks[rank as usize].start.map(|start| start.saturating_add(self.job.compute));
        schedule.after(at).iter().fold((begin, None), |ready, &on| {
            let times = self.times[on.operation as usize];
            let end = match on.done {
                Done::Acknowledged => times.acknowledged,
                Done::Received | Done::Computed => times.received,
                Done::Started => times.started,
            };
            later(ready, self.across(end, schedule.place(on), rank), on.operation)
        })
    }

    fn operation(
        &mut self,
        schedule: &Schedule,
        (at, ready, cause): (usize, Option<Time>, Option<u32>),
        first: u32,
        message: &mut Messages<'_>,
    ) {
        let (operation, of) = (schedule.operations()[at], at as u32);
        let rank = operation.rank;
        self.causes[at] = cause;
        match operation.work {
            Work::Compute { time, cpu } => {
                let mut started = ready;
                if let Some(cpu) = cpu {
                    let before = self.processors.get(&(rank, cpu)).copied();
                    if let Some((end, by)) = before {
                        (started, self.causes[at]) = later((ready, cause), end, by);
                    }
                }
                let end = started.map(|started| started.saturating_add(time));
                if let Some(cpu) = cpu {
                    self.processors.insert((rank, cpu), (end, of));
                }
                self.times[at] = MessageTimes { started, received: end, acknowledged: end };
                self.end(rank, end, None);
            }
            Work::Send { to, .. } => {
                let mut ready = ready;
                let window = schedule.window().filter(|_| schedule.after(at).is_empty());
                if let Some(window) = window
                    && self.outstanding[rank as usize].len() >= window.messages as usize
                {
                    let earliest = self.outstanding[rank as usize].pop().map(|Reverse(end)| end);
                    let (end, by) = earliest.unwrap_or((UNKNOWN, 0));
                    (ready, self.causes[at]) = later((ready, cause), Some(end).filter(|end| *end < UNKNOWN), by);
                }
                let number = first + schedule.message_of(of).unwrap_or_default();
                let times = message(number, ready);
                if let Some(window) = window {
                    let end = match window.done {
                        Done::Acknowledged => times.acknowledged,
                        _ => self.across(times.received, to, rank),
                    };
                    self.outstanding[rank as usize].push(Reverse((end.unwrap_or(UNKNOWN), of)));
                }
                self.times[at] = times;
                self.end(to, times.received, Some(number));
                self.end(rank, times.acknowledged, Some(number));
                self.steps[operation.step as usize].add(number, to, &times);
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
        let ends =
            schedule.operations().iter().zip(&self.times).filter_map(|(operation, times)| match operation.work {
                Work::Send { to, .. } => Some(self.across(times.received, to, home)),
                Work::Compute { .. } => None,
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

/// Returns the later of a time with its cause and the end of another; of two that are equal the other. `None`: one is
/// unknown.
fn later((ready, cause): (Option<Time>, Option<u32>), end: Option<Time>, of: u32) -> (Option<Time>, Option<u32>) {
    match (ready, end) {
        (Some(ready), Some(end)) if end >= ready => (Some(end), Some(of)),
        (Some(ready), Some(_)) => (Some(ready), cause),
        _ => (None, cause),
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
    /// `message` returns the times of the message with a number (as in [`crate::FlowSet::messages`]), given the time at
    /// which it may start.
    pub fn group(
        &mut self,
        job: &GroupedJob,
        group: u32,
        message: &mut dyn FnMut(u32, Option<Time>) -> MessageTimes,
        each: &mut dyn FnMut(&RepetitionTimes<'_>),
    ) {
        let (ranks, schedule) = (job.ranks as usize, job.schedule(group));
        let mut walk = Walk {
            job,
            latency: self.latency,
            times: vec![],
            causes: vec![],
            outstanding: vec![BinaryHeap::new(); ranks],
            processors: BTreeMap::new(),
            steps: vec![StepTimes::default(); schedule.steps() as usize],
            ranks: vec![RankTimes::default(); ranks],
            is_known: vec![true; ranks],
        };
        let start = &mut self.starts[(group % job.concurrent) as usize];
        for repetition in 0..job.repetitions {
            for (times, start) in walk.ranks.iter_mut().zip(start.iter()) {
                *times = RankTimes { start: *start, ..RankTimes::default() };
            }
            walk.follow(schedule, job.first_of(group, repetition), message);
            let (ranks, steps, causes) = (&walk.ranks, &walk.steps, &walk.causes);
            let first = job.first_of(group, repetition);
            each(&RepetitionTimes { group, repetition, ranks, steps, schedule, causes, first });
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
        message: &mut dyn FnMut(u32, Option<Time>) -> MessageTimes,
        each: &mut dyn FnMut(&RepetitionTimes<'_>),
    ) {
        let mut walk = JobWalk::new(self, latency);
        (0..self.groups).for_each(|group| walk.group(self, group, message, each));
    }
}
