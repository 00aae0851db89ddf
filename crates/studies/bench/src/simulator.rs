//! The stripped loop and the simulator on the same case.

mod cases;
mod measured;
mod predicted;
mod writing;

pub use cases::{CASES, Case, LARGE, SMALL};
pub use measured::{CaseResult, Pairs, Timed, median};
pub use predicted::{BARRIER_NS, Predicted, predict};
pub use writing::Written;

use crate::stripped;
use anabranch_backend::{RunError, Setup};
use anabranch_outcome::RunResult;
use anabranch_scenario::{ScenarioError, cpu_seconds, peak_rss_bytes, reset_peak_rss};
use anabranch_units::Time;
use anabranch_workload::FlowSet;
use std::time::Instant;

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The results cannot be written.
    #[error("writing results: {0}")]
    Write(String),
    /// Two runs of the same scenario have different results.
    #[error("fingerprint {found:016x} on {threads} threads, {expected:016x} before")]
    Differs {
        /// Fingerprint of this run.
        found: u64,
        /// Fingerprint of the first run.
        expected: u64,
        threads: usize,
    },
}

/// Minimum hosts of a fabric for which several threads are measured or predicted.
pub const HOSTS_FOR_TWO_THREADS: u32 = 1024;

/// Measures `case`: the stripped loop and the simulator in turn, `repetitions` times, so that both see the same changes
/// of the machine's speed; on a large fabric also on two threads.
pub fn measure(case: &Case, threads: usize, repetitions: usize) -> Result<CaseResult, BenchError> {
    let scenario = case.load()?;
    let started = Instant::now();
    let mut setup = scenario.setup(scenario.seed)?;
    if case.external {
        for balancer in &mut setup.load_balancers {
            (balancer.host, balancer.switch) = (balancer.host.as_external(), balancer.switch.as_external());
        }
    }
    let set_up_seconds = started.elapsed().as_secs_f64();
    let yardstick = stripped::StrippedCase::of(&setup);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let in_pairs = setup.topology.hosts >= HOSTS_FOR_TWO_THREADS && threads == 1 && cores > 1 && !case.once;

    let mut measured = CaseResult::new(case, &setup, set_up_seconds);
    for _ in 0..if case.once { 1 } else { repetitions.max(1) } {
        measured.stripped.extend(yardstick.as_ref().map(time_loop));
        reset_peak_rss();
        let (result, timed) = simulate(&setup, threads)?;
        measured.peak_rss_bytes = measured.peak_rss_bytes.max(peak_rss_bytes());
        measured.take(&result, timed, threads)?;
        if in_pairs {
            let (two, timed) = simulate(&setup, 2)?;
            measured.same(&two, 2)?;
            measured.two_threads.push(timed);
        }
    }
    if !case.once {
        weigh(&setup, &mut measured)?;
        measured.written = Some(writing::write(&scenario, &measured)?);
    }
    Ok(measured)
}

fn time_loop(case: &stripped::StrippedCase) -> Timed {
    let before = cpu_seconds();
    let tally = stripped::run(case);
    let cpu_seconds = cpu_seconds().zip(before).map(|(after, before)| after - before);
    Timed { packet_hops: tally.packet_hops, wall_seconds: tally.wall_seconds, cpu_seconds, building_seconds: 0.0 }
}

/// Runs `setup`. Wall time is that of the event loop; processor time includes the collection of results.
fn simulate(setup: &Setup, threads: usize) -> Result<(RunResult, Timed), BenchError> {
    let started = Instant::now();
    let mut first_event = None;
    let result = anabranch_sim::run(setup, threads, &mut |_| {
        first_event.get_or_insert_with(|| (started.elapsed().as_secs_f64(), cpu_seconds()));
        true
    })?;
    let (building_seconds, before) = first_event.unwrap_or_default();
    let timed = Timed {
        packet_hops: result.packet_hops.unwrap_or_default(),
        wall_seconds: result.wall_seconds,
        cpu_seconds: cpu_seconds().zip(before).map(|(after, before)| after - before),
        building_seconds,
    };
    Ok((result, timed))
}

/// Measures the memory of an idle host, from a run without flows, and of a packet in flight, after two round trips,
/// when windows are full.
fn weigh(setup: &Setup, measured: &mut CaseResult) -> Result<(), BenchError> {
    let mut idle = setup.clone();
    let workloads = idle.flows.workloads.clone();
    idle.flows = FlowSet { workloads, ..FlowSet::default() };
    let idle = anabranch_sim::run(&idle, 1, &mut |_| true)?;
    measured.bytes_per_idle_host = idle.bytes_per_host.unwrap_or_default();

    let mut early = setup.clone();
    early.limits.until_all_done = false;
    let (data, ack) = (setup.transport.mtu() + setup.transport.header(), setup.transport.ack_size());
    early.limits.time_limit = Time::from_ps(2 * setup.topology.window_rtt(data, ack).ps());
    let early = anabranch_sim::run(&early, 1, &mut |_| true)?;
    let c = early.conservation.unwrap_or_default();
    let in_flight_now = c.data_packets.in_flight + c.headers.in_flight + c.acks.in_flight;
    let more = early.bytes_per_host.unwrap_or_default().saturating_sub(measured.bytes_per_idle_host)
        * u64::from(setup.topology.hosts);
    measured.bytes_per_packet_in_flight = more.checked_div(in_flight_now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_measured() {
        let case = Case { changes: &["topology.radix=4", "workload.0.size=1MiB"], ..CASES[0] };
        let measured = measure(&case, 1, 2).unwrap();
        assert_eq!((measured.hosts, measured.stripped.len(), measured.simulator.len()), (8, 2, 2));
        // 8 flows of 256 packets over 4 hops, plus ACKs.
        assert!(measured.packet_hops >= 8 * 256 * 4, "{}", measured.packet_hops);
        assert!(measured.first_event_seconds() > 0.0 && measured.ratio().unwrap() > 0.0);
        assert!(measured.bytes_per_idle_host > 0 && measured.bytes_per_packet_in_flight.is_some());
        assert!(measured.two_threads.is_empty(), "too few hosts");
        let written = measured.written.unwrap();
        // 8 flows; both directions of 8 cables to hosts and of 4 leaves to 2 spines.
        assert_eq!(written.rows, 8 + 2 * (8 + 4 * 2));
        assert!(written.per_cpu_second().unwrap() > 0.0);
    }

    #[test]
    fn results_that_differ_are_an_error() {
        let case = Case { changes: &["topology.radix=4", "workload.0.size=64KiB"], ..CASES[0] };
        let setup = case.load().and_then(|scenario| scenario.setup(1)).unwrap();
        let mut measured = CaseResult::new(&case, &setup, 0.0);
        let (result, timed) = simulate(&setup, 1).unwrap();
        measured.take(&result, timed, 1).unwrap();
        measured.fingerprint = result.fingerprint.map(|fingerprint| fingerprint ^ 1);
        assert!(matches!(measured.same(&result, 2), Err(BenchError::Differs { threads: 2, .. })));
    }
}
