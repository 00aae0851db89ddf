//! Processor time of each thread in each window, from which the speed on more cores than there are can be predicted.

use crate::{
    arena::{Arena, Attribution},
    context::Shared,
    message::Message,
    partition::Partition,
    plan::{How, Plan},
};
use anabranch_backend::{RunError, Setup};
use anabranch_engine::{Outcome, Status};
use std::sync::Arc;

/// Runs `setup` on up to `threads` threads and returns, per thread and window, the time that its events and messages took.
///
/// `clock` returns the processor time of the calling thread in nanoseconds, so that threads may share a core.
/// Fails if the run cannot be prepared or an invariant fails.
pub fn window_times(setup: &Setup, threads: usize, clock: fn() -> u64) -> Result<Vec<Vec<u64>>, RunError> {
    let plan = Plan::new(setup, How::on(threads), &mut || true)?;
    let (shared, arena) = (Shared::new(&plan), Arena::new(Attribution::new(&plan), None).map_err(RunError::Setup)?);
    let partitions = 0..plan.cells.partitions as u16;
    let timed = |me| Timed {
        of: Partition::new(&plan, &shared, Arc::clone(&arena), me),
        clock,
        windows: Vec::new(),
        receiving: 0,
    };
    let mut timed: Vec<Timed<'_>> = partitions.map(timed).collect();
    let end = setup.limits.time_limit.ps();
    match anabranch_engine::run(&mut timed, plan.cells.lookahead, end, &mut |_| true) {
        Outcome::Failed => Err(RunError::Invariant("the run failed while its windows were measured".into())),
        Outcome::Done | Outcome::Interrupted => Ok(timed.into_iter().map(|partition| partition.windows).collect()),
    }
}

/// A partition that notes the time of its windows.
struct Timed<'a> {
    of: Partition<'a>,
    clock: fn() -> u64,
    windows: Vec<u64>,
    /// Time for messages that belong to the next window.
    receiving: u64,
}

impl anabranch_engine::Partition for Timed<'_> {
    type Message = Message;

    fn next_time(&self) -> u64 {
        self.of.next_time()
    }
    fn next_cut(&self, start: u64) -> u64 {
        self.of.next_cut(start)
    }
    fn cut(&mut self, time: u64, start: u64) -> bool {
        self.of.cut(time, start)
    }
    fn run_window(&mut self, start: u64, end: u64, outbox: &mut [Vec<Message>], go_on: &mut dyn FnMut(Status) -> bool) {
        let began = (self.clock)();
        self.of.run_window(start, end, outbox, go_on);
        self.windows.push((self.clock)() - began + std::mem::take(&mut self.receiving));
    }
    fn receive(&mut self, messages: &mut Vec<Message>) {
        if !messages.is_empty() {
            let began = (self.clock)();
            self.of.receive(messages);
            self.receiving += (self.clock)() - began;
        }
    }
    fn status(&self) -> Status {
        self.of.status()
    }
    fn failed(&self) -> bool {
        self.of.failed()
    }
}
