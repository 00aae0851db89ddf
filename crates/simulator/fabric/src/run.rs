//! Entry points of the simulator: from a setup to its results.

use crate::{
    arena::{Arena, Attribution, Packets, TooManyPackets},
    context::{Ctx, Shared},
    partition::Partition,
    plan::{How, Plan},
    results::{End, collect, deadlock},
    sampling::hold,
    steering,
};
use anabranch_backend::{Progress, RunError, Setup};
use anabranch_engine::{Outcome, Partition as _, Status};
use anabranch_outcome::RunRows;
use anabranch_units::Time;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

/// Runs `setup`. Calls `observer` a few times per second of wall time, from the preparations on; `false` interrupts the run.
/// Errors: [`RunError`]. A panic on any thread is an invariant that failed.
pub fn run(setup: &Setup, how: How, observer: &mut dyn FnMut(&Progress) -> bool) -> Result<RunRows, RunError> {
    let plan = Plan::new(setup, how, &mut || observer(&Progress::default()))?;
    let caught = catch_unwind(AssertUnwindSafe(|| drive(&plan, setup, observer)));
    caught.unwrap_or_else(|panic| {
        Err(match panic.downcast_ref::<TooManyPackets>() {
            Some(too_many) => RunError::Setup(too_many.to_string()),
            None => RunError::Invariant(format!("panic: {}", message(&*panic))),
        })
    })
}

/// Checks that `setup` can be run: prepares all but the forwarding tables, which cannot fail and take long in large fabrics.
pub fn check(setup: &Setup, go_on: &mut dyn FnMut() -> bool) -> Result<(), RunError> {
    // The tables come last: the preparation stops when they begin.
    let stopped = !go_on();
    match Plan::new(setup, How::on(1), &mut || false) {
        Err(RunError::Interrupted) if !stopped => Ok(()),
        made => made.map(|_| ()),
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

fn drive(plan: &Plan<'_>, setup: &Setup, observer: &mut dyn FnMut(&Progress) -> bool) -> Result<RunRows, RunError> {
    let (until_all_done, time_limit) = (setup.limits.until_all_done, setup.limits.time_limit);
    let flows_total = setup.flows.number_of_flows() as u64;
    let shared = Shared::new(plan);
    let arena = Arena::new(Attribution::new(plan), plan.measure.memory).map_err(RunError::Setup)?;
    let mut partitions = Vec::new();
    for me in 0..plan.cells.partitions as u16 {
        if !observer(&Progress::default()) {
            return Err(RunError::Interrupted);
        }
        partitions.push(Partition::new(plan, &shared, Arc::clone(&arena), me));
    }
    drop(arena);
    if !observer(&Progress::default()) {
        return Err(RunError::Interrupted);
    }
    let started = Instant::now();
    let mut tick = |status: Status| {
        observer(&Progress {
            now: Time::from_ps(status.now),
            packet_hops: Some(status.work),
            flows_finished: status.finished,
            flows_total,
            last_progress: Some(Time::from_ps(status.progress)),
        })
    };
    let outcome = match (&setup.steering, partitions.pop()) {
        (Some(steering), Some(only)) if partitions.is_empty() => {
            let (partition, outcome) = steering::run(only, plan, steering, &mut tick);
            partitions.push(partition);
            outcome
        }
        (Some(_), _) => return Err(RunError::Setup("an agent steers runs on one thread".into())),
        (None, last) => {
            partitions.extend(last);
            anabranch_engine::run(&mut partitions, plan.cells.lookahead, time_limit.ps(), &mut tick)
        }
    };
    let wall_seconds = started.elapsed().as_secs_f64();
    if let Some(failure) = partitions.iter_mut().find_map(|partition| partition.cx.failure.take()) {
        return Err(failure);
    }
    let finished: u64 = partitions.iter().map(Partition::finished).sum();
    let all_done = finished == flows_total;
    let interrupted = outcome == Outcome::Interrupted;
    let stalled =
        partitions.first().and_then(|partition| partition.stalled).filter(|_| !interrupted).map(Time::from_ps);
    let over = partitions.iter().any(|partition| partition.over);
    let jumps = plan.skip_interval.and_then(|_| Some(partitions.first()?.skips.jumps.clone()));
    let idle = stalled.is_none() && !over && partitions.iter().all(|partition| partition.next_time() == u64::MAX);
    // Pending timers of finished flows do not matter.
    let quiet = idle || all_done && Packets::live(&packets_of(&partitions)).next().is_none();
    let circle = if interrupted || all_done { Vec::new() } else { deadlock(plan, &partitions) };
    let mut stall_reason = None;
    let failed: usize = partitions.iter().map(|partition| partition.hosts.failed()).sum();
    if failed > 0 && !interrupted && (idle || stalled.is_some()) {
        stall_reason = Some(format!(
            "{failed} flows are in error after their last timeout (`rto_max_exponent`): their senders have stopped"
        ));
    } else if outcome == Outcome::Done
        && idle
        && !all_done
        && circle.is_empty()
        && let Some((_, flow)) = partitions.iter().filter_map(|p| p.hosts.open_flow()).min_by_key(|open| open.0)
    {
        // Without timeouts, a lost packet can leave a flow open for good.
        let dropped: u64 = partitions.iter().map(|p| p.cx.ports.queues.ledger.all_dropped()).sum();
        let waits_for_port = partitions.iter().any(|p| p.hosts.nics.any_without_port(plan.planes));
        let waits_for_path = partitions.iter().any(|p| p.hosts.nics.any_without_path());
        if !waits_for_port && !waits_for_path && (dropped == 0 || partitions.iter().any(|p| p.hosts.has_timeouts(plan)))
        {
            return Err(RunError::EndedEarly(format!("no event is pending, but {flow}")));
        }
        stall_reason = Some(match (waits_for_port, waits_for_path) {
            (true, _) => format!("{flow}; all ports of a sender are down"),
            (_, true) => format!("{flow}; its load balancer has no path left that is neither dead nor denied"),
            _ => format!("{flow}; {dropped} packets were dropped, and it has no timeout (`rto = \"never\"`)"),
        });
    }
    let latest = |time: fn(&Partition<'_>) -> u64| Time::from_ps(partitions.iter().map(time).max().unwrap_or(0));
    let span = Time::from_ps(plan.stall_span.unwrap_or(0));
    let stalled_after = match stall_reason {
        Some(_) => Some(latest(|partition| partition.progress())),
        None => stalled.map(|stalled| stalled.saturating_sub(span)),
    };
    let simulated = match stalled {
        Some(stalled) => stalled,
        None if interrupted => latest(|partition| partition.cx.now),
        None if quiet && until_all_done => latest(|partition| partition.last_arrival),
        None => Time::from_ps(time_limit.ps() - jumps.iter().flatten().map(|jump| jump.by).sum::<u64>()),
    };
    // A run with a set end does not count as ended by the time limit.
    let time_limit_struck = until_all_done && !interrupted && !all_done && !idle && stalled.is_none();
    for Ctx { series, ports, .. } in partitions.iter().map(|partition| &partition.cx) {
        hold(plan, &ports.queues.packets, series.last_bytes(simulated.ps()), simulated.ps())?;
    }
    let deadlock = circle.into_iter().map(|link| plan.topology.link_name(link)).collect();
    let end =
        End { simulated, time_limit_struck, interrupted, deadlock, stalled_after, stall_reason, wall_seconds, jumps };
    collect(setup, plan, partitions, end).map_err(RunError::Invariant)
}

/// Returns the packets of every partition, those of all threads.
pub(crate) fn packets_of<'p>(partitions: &'p [Partition<'_>]) -> Vec<&'p Packets> {
    partitions.iter().map(|partition| &partition.cx.ports.queues.packets).collect()
}
