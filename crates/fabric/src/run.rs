//! The way in: from a setup to its results.

use crate::{
    error::FabricError,
    partition::{Failure, Partition},
    plan::{Plan, Setup},
    results::{End, Output, collect, deadlock},
};
use anabranch_engine::{Outcome, Partition as _};
use anabranch_units::Time;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Packets that left a port so far.
    pub packet_hops: u64,
    /// Flows done.
    pub flows_finished: u64,
}

/// Runs `setup`. `observer` is called a few times per second of wall time, from the preparations on, and returns false
/// to interrupt the run. `until_all_done` says that the run ends with its last flow, not at its time limit.
///
/// # Errors
/// [`FabricError`]. A panic on whichever thread is an invariant that failed.
pub fn run(
    setup: &Setup<'_>,
    until_all_done: bool,
    observer: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Output, FabricError> {
    let plan = Plan::new(setup, &mut || observer(&Progress::default()))?;
    let caught = catch_unwind(AssertUnwindSafe(|| drive(&plan, setup, until_all_done, observer)));
    caught.unwrap_or_else(|panic| Err(FabricError::Invariant(format!("panic: {}", message(&*panic)))))
}

/// Whether `setup` can be run: prepares everything that can be wrong, not the forwarding tables, which cannot and take
/// long in large fabrics.
///
/// # Errors
/// [`FabricError`].
pub fn check(setup: &Setup<'_>, go_on: &mut dyn FnMut() -> bool) -> Result<(), FabricError> {
    // The tables come last: they are stopped where they begin.
    let stopped = !go_on();
    match Plan::new(setup, &mut || false) {
        Err(FabricError::Interrupted) if !stopped => Ok(()),
        made => made.map(|_| ()),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

fn drive(
    plan: &Plan<'_>,
    setup: &Setup<'_>,
    until_all_done: bool,
    observer: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Output, FabricError> {
    let mut partitions = Vec::new();
    for me in 0..plan.cells.partitions as u16 {
        if !observer(&Progress::default()) {
            return Err(FabricError::Interrupted);
        }
        partitions.push(Partition::new(plan, me));
    }
    // All is built: whoever watches hears of it before the first event.
    if !observer(&Progress::default()) {
        return Err(FabricError::Interrupted);
    }
    let started = Instant::now();
    let outcome = anabranch_engine::run(&mut partitions, plan.cells.lookahead, setup.time_limit.ps(), &mut |status| {
        observer(&Progress {
            now: Time::from_ps(status.now),
            packet_hops: status.work,
            flows_finished: status.finished,
        })
    });
    let wall_seconds = started.elapsed().as_secs_f64();
    if let Some(failure) = partitions.iter().find_map(|partition| partition.failure.clone()) {
        return Err(match failure {
            Failure::Invariant(message) => FabricError::Invariant(message),
            Failure::Input(message) => FabricError::Setup(message),
        });
    }
    if let Some(circle) = deadlock(plan, &partitions) {
        return Err(FabricError::Stalled(circle));
    }
    let finished: u64 = partitions.iter().map(|partition| partition.hosts.finished).sum();
    let all_done = finished == plan.flows.flows.len() as u64;
    let idle = partitions.iter().all(|partition| partition.next_time() == u64::MAX);
    // Timers of flows that are done mean nothing.
    let quiet = idle || all_done && partitions.iter().all(|partition| partition.ports.packets.live().next().is_none());
    if outcome == Outcome::Done
        && idle
        && !all_done
        && let Some((_, flow)) = partitions.iter().filter_map(|p| p.hosts.open_flow()).min_by_key(|open| open.0)
    {
        return Err(FabricError::Stalled(format!("no event is pending, but {flow}")));
    }
    let interrupted = outcome == Outcome::Interrupted;
    let latest = |time: fn(&Partition<'_>) -> u64| Time::from_ps(partitions.iter().map(time).max().unwrap_or(0));
    let simulated = match () {
        () if interrupted => latest(|partition| partition.now),
        () if quiet && until_all_done => latest(|partition| partition.last_arrival),
        () => setup.time_limit,
    };
    // A run that was asked to end at a time has not been struck by a limit.
    let time_limit_struck = until_all_done && !interrupted && !all_done && !idle;
    let end = End { simulated, time_limit_struck, interrupted, wall_seconds };
    collect(plan, partitions, end).map_err(FabricError::Invariant)
}
