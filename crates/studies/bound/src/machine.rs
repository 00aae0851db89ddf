//! A shared resource as a single machine: flows are jobs, and each needs a time of the machine for itself.
//!
//! Links that flows share are such a machine: a link between hosts and switches, all links out of a leaf, or all links of
//! the fabric weighted by lengths. In [`Machine::span`] and [`Machine::total`] the order of the jobs is free and jobs may be
//! interrupted, so that no schedule of packets beats them.

use crate::network::Cost;
use std::{cmp::Reverse, collections::BinaryHeap};

/// A flow on a machine. Times are picoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Job {
    pub(crate) flow: usize,
    /// Earliest start of the flow.
    pub(crate) start: f64,
    /// Longest time from the start to the zero of its clock.
    pub(crate) turn: f64,
    /// Least time from the start of the flow to its first byte on the machine.
    pub(crate) head: f64,
    /// Time of the machine for its bytes.
    pub(crate) work: f64,
    /// Least time from its last byte on the machine to its end.
    pub(crate) tail: f64,
    /// Least time of its bytes on the link of a host at which [`Job::after`] begins. Half of it separates the mean time of its
    /// bytes from its last byte.
    pub(crate) alone: f64,
    /// Least time from its last byte on that link to its end.
    pub(crate) after: f64,
}

/// Jobs that share a resource, by start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    jobs: Vec<Job>,
}

/// Largest completion time on a machine, with the range of jobs that causes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    /// Lower bound of the largest completion time among the jobs `first..=last`.
    pub(crate) time: f64,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Machine {
    pub(crate) fn new(mut jobs: Vec<Job>) -> Self {
        jobs.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.flow.cmp(&b.flow)));
        Machine { jobs }
    }

    pub(crate) fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    fn head(&self) -> f64 {
        self.jobs.iter().map(|job| job.head).fold(f64::INFINITY, f64::min)
    }

    fn tail(&self) -> f64 {
        self.jobs.iter().map(|job| job.tail).fold(f64::INFINITY, f64::min)
    }

    /// Returns the range of jobs with the largest lower bound of the longest completion time; `None` without jobs.
    ///
    /// Of jobs that start from `a` to `b` the last one ends no earlier than `a + head + sum of works + tail`, and its clock
    /// begins no later than `b + turn`.
    pub(crate) fn span(&self) -> Option<Span> {
        let turn = self.jobs.iter().map(|job| job.turn).fold(0.0, f64::max);
        let extra = self.head() + self.tail() - turn;
        let mut best: Option<Span> = None;
        let (mut before, mut first, mut least) = (0.0, 0, f64::INFINITY);
        for (number, job) in self.jobs.iter().enumerate() {
            if before - job.start < least {
                (least, first) = (before - job.start, number);
            }
            before += job.work;
            let time = (before - job.start) - least + extra;
            if best.is_none_or(|best| time > best.time) {
                best = Some(Span { time, first, last: number });
            }
        }
        best
    }

    /// Returns a lower bound of the end of the last job, on the clock of the run; `None` without jobs.
    pub(crate) fn end(&self) -> Option<f64> {
        let (mut after, mut latest) = (0.0, None);
        for job in self.jobs.iter().rev() {
            after += job.work;
            let end: f64 = job.start + after;
            latest = Some(latest.map_or(end, |latest| end.max(latest)));
        }
        latest.map(|latest| latest + self.head() + self.tail())
    }

    /// Returns a lower bound of the sum of the completion times, each with the factor `weight(flow)`.
    ///
    /// The mean time of a job's bytes on the machine is at least that of the relaxation by mean busy times, whose optimum is
    /// the preemptive schedule by weight over work (Goemans et al., "Single machine scheduling with release dates", 2002).
    /// A job ends at least half of [`Job::alone`] after it.
    pub(crate) fn total(&self, weight: &dyn Fn(usize) -> f64) -> f64 {
        if self.jobs.iter().any(|job| !(job.work + job.head).is_finite()) {
            return f64::INFINITY;
        }
        let mut queue: BinaryHeap<(Cost, Reverse<usize>)> = BinaryHeap::new();
        let mut left: Vec<f64> = self.jobs.iter().map(|job| job.work).collect();
        // Sum over the pieces of a job of their time of the machine times the middle of the piece.
        let mut busy = vec![0.0; self.jobs.len()];
        let mut releases: Vec<(f64, usize)> =
            self.jobs.iter().enumerate().map(|(number, job)| (job.start + job.head, number)).collect();
        releases.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut releases = releases.into_iter().peekable();
        let mut now = 0.0;
        loop {
            while let Some((_, number)) = releases.next_if(|(at, _)| *at <= now) {
                let job = &self.jobs[number];
                queue.push((Cost(weight(job.flow) / job.work), Reverse(number)));
            }
            let Some((_, Reverse(number))) = queue.peek().copied() else {
                match releases.peek() {
                    Some((at, _)) => now = *at,
                    None => break,
                }
                continue;
            };
            let until = releases.peek().map_or(f64::INFINITY, |(at, _)| *at);
            let piece = left[number].min(until - now);
            busy[number] += piece * (now + piece / 2.0);
            left[number] -= piece;
            now += piece;
            if left[number] <= 0.0 {
                queue.pop();
            }
        }
        let time = |(job, busy): (&Job, f64)| {
            let mean = if job.work > 0.0 { busy / job.work } else { job.start + job.head };
            weight(job.flow) * (mean + job.alone / 2.0 + job.after - job.start - job.turn)
        };
        self.jobs.iter().zip(busy).map(time).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(flow: usize, start: f64, work: f64) -> Job {
        Job { flow, start, turn: 0.0, head: 0.0, work, tail: 0.0, alone: work, after: 0.0 }
    }

    #[test]
    fn equal_jobs_end_one_after_the_other() {
        // Four jobs of 10: the last ends at 40; ends are 10, 20, 30 and 40, 100 together.
        let machine = Machine::new((0..4).map(|flow| job(flow, 0.0, 10.0)).collect());
        assert_eq!(machine.span().unwrap().time, 40.0);
        assert_eq!(machine.end(), Some(40.0));
        assert_eq!(machine.total(&|_| 1.0), 100.0);
    }

    #[test]
    fn shorter_jobs_go_first_where_weights_are_equal() {
        // 1, 2 and 3: ends are 1, 3 and 6. With weight 9 on the longest it goes first: 9 * 3, then 4 and 6.
        let machine = Machine::new(vec![job(0, 0.0, 3.0), job(1, 0.0, 1.0), job(2, 0.0, 2.0)]);
        assert_eq!(machine.total(&|_| 1.0), 10.0);
        assert_eq!(machine.total(&|flow| if flow == 0 { 9.0 } else { 1.0 }), 27.0 + 4.0 + 6.0);
    }

    #[test]
    fn a_burst_counts_from_its_own_start() {
        // Jobs at 0, 100 and 101 of 10 each: the burst of two takes 20, and its second job began 1 later.
        let machine = Machine::new(vec![job(0, 0.0, 10.0), job(1, 100.0, 10.0), job(2, 101.0, 10.0)]);
        assert_eq!(machine.span().unwrap(), Span { time: 19.0, first: 1, last: 2 });
        assert_eq!(machine.end(), Some(120.0));
        // 10, 10 and 19.
        assert_eq!(machine.total(&|_| 1.0), 39.0);
    }

    #[test]
    fn a_shared_machine_is_no_faster_than_each_job_alone() {
        // Two jobs that need 10 alone and 10 of the machine together: side by side each ends at 10.
        let half = |flow| Job { work: 5.0, ..job(flow, 0.0, 10.0) };
        let machine = Machine::new(vec![half(0), half(1)]);
        assert_eq!(machine.span().unwrap().time, 10.0);
        // Mean busy times 2.5 and 7.5, half of 10 each after it.
        assert_eq!(machine.total(&|_| 1.0), 20.0);
    }
}
