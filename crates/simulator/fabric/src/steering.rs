//! A run that an agent steers: between windows it reads what hosts have measured and sets shares of tags.

use crate::{
    ids::{FlowId, HostId},
    message::Message,
    partition::Partition,
    plan::Plan,
};
use anabranch_backend::{Connection, Steering, Turn};
use anabranch_engine::{Outcome, Status};
use anabranch_lb::HostScheme;
use anabranch_units::Time;
use std::sync::PoisonError;

/// Runs `partition`, the only one of its run, with the turns of the agent.
pub(crate) fn run<'p>(
    partition: Partition<'p>,
    plan: &Plan<'p>,
    steering: &Steering,
    tick: &mut dyn FnMut(Status) -> bool,
) -> (Partition<'p>, Outcome) {
    let open = (0..plan.flows.flows.len() as u32).map(FlowId).collect();
    let turns = Turns { steering, next: 0, now: 0, open, is_over: false };
    let mut steered = [Steered { of: partition, turns, plan }];
    steered[0].turn(0);
    let outcome = anabranch_engine::run(&mut steered, plan.cells.lookahead, plan.time_limit.ps(), tick);
    let [Steered { mut of, mut turns, .. }] = steered;
    let interrupted = turns.is_over || outcome == Outcome::Interrupted;
    if !interrupted && outcome == Outcome::Done {
        // What has happened since the last turn.
        let end = end_of(&of, plan);
        turns.take(&mut of, plan, end, true);
    }
    (of, if interrupted { Outcome::Interrupted } else { outcome })
}

/// Returns the end of a run: with all flows done its last event.
fn end_of(partition: &Partition<'_>, plan: &Plan<'_>) -> u64 {
    let all_done = partition.finished() == plan.flows.number_of_flows() as u64;
    if all_done || anabranch_engine::Partition::next_time(partition) == u64::MAX {
        partition.cx.now
    } else {
        plan.time_limit.ps()
    }
}

struct Steered<'a, 'p> {
    of: Partition<'p>,
    turns: Turns<'a>,
    plan: &'a Plan<'p>,
}

struct Turns<'a> {
    steering: &'a Steering,
    /// Times of the next turn and of the last.
    next: u64,
    now: u64,
    /// Listed flows without their last byte.
    open: Vec<FlowId>,
    /// The agent has ended the run.
    is_over: bool,
}

impl Steered<'_, '_> {
    fn turn(&mut self, now: u64) {
        self.turns.take(&mut self.of, self.plan, now, false);
        self.turns.next = now.saturating_add(self.turns.steering.interval.ps().max(1));
    }
}

impl Turns<'_> {
    fn take(&mut self, of: &mut Partition<'_>, plan: &Plan<'_>, now: u64, is_last: bool) {
        let (since, tags) = (std::mem::replace(&mut self.now, now), self.steering.tags);
        let mut open_time = 0;
        self.open.retain(|&flow| {
            let (started, done) = (of.hosts.sent(flow).started, of.hosts.received(flow).done);
            // Neither has come: `NEVER` is after all times.
            open_time += done.min(now).saturating_sub(started.max(since));
            done > now
        });
        let mut readings = Vec::with_capacity(self.steering.connections.len() * tags);
        let balancer = |of: &Connection| usize::from(plan.flows.workloads[usize::from(of.workload)].load_balancer);
        for connection in &self.steering.connections {
            let scheme = of.hosts.nics.scheme(HostId(connection.src), balancer(connection));
            let known = scheme.readings(connection.key);
            readings.extend((0..tags).map(|tag| known.get(tag).copied().unwrap_or_default()));
        }
        let (finished, open_time) = (of.finished(), Time::from_ps(open_time));
        let turn = Turn { now: Time::from_ps(now), readings, finished, open_time, is_last };
        let answer = self.steering.agent.lock().unwrap_or_else(PoisonError::into_inner)(turn);
        let Some(weights) = answer else {
            self.is_over = true;
            return;
        };
        for (connection, weights) in self.steering.connections.iter().zip(weights.chunks(tags)) {
            let scheme = of.hosts.nics.scheme(HostId(connection.src), balancer(connection));
            scheme.steer(connection.key, weights);
        }
    }
}

impl anabranch_engine::Partition for Steered<'_, '_> {
    type Message = Message;

    fn next_time(&self) -> u64 {
        if self.turns.is_over { u64::MAX } else { self.of.next_time() }
    }
    fn next_cut(&self, start: u64) -> u64 {
        self.of.next_cut(start).min(self.turns.next)
    }
    fn cut(&mut self, time: u64, start: u64) -> bool {
        let again = self.of.next_cut(start) == time && self.of.cut(time, start);
        if self.turns.next == time {
            self.turn(time);
        }
        again
    }
    fn run_window(&mut self, start: u64, end: u64, outbox: &mut [Vec<Message>], go_on: &mut dyn FnMut(Status) -> bool) {
        if !self.turns.is_over {
            self.of.run_window(start, end, outbox, go_on);
        }
    }
    fn receive(&mut self, messages: &mut Vec<Message>) {
        self.of.receive(messages);
    }
    fn status(&self) -> Status {
        self.of.status()
    }
    fn failed(&self) -> bool {
        self.of.failed()
    }
}
