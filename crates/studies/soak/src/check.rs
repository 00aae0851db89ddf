//! Runs a scenario in every mode that must not affect its results, and compares the results.

use super::{
    Draft,
    ending::{Ending, ending},
};
use anabranch_backend::{Measure, RunError, Setup};
use anabranch_bound::{beaten, bounds};
use anabranch_outcome::RunResult;
use anabranch_results::RunMeta;
use anabranch_scenario::SIMULATOR;
use anabranch_scenario::{Scenario, cpu_seconds};
use anabranch_sim::{How, Split, Timing, run_with};
use anabranch_study::results;
use anabranch_units::Time;
use std::{
    fmt, panic,
    panic::AssertUnwindSafe,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// Mode of a run: threads, timing of ports, partition, measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunMode {
    pub(crate) how: How,
    /// Runs without the measurements of the scenario, or with all of them if it has none.
    pub(crate) measured_otherwise: bool,
}

impl RunMode {
    const fn new(threads: usize, timing: Timing, split: Split) -> Self {
        RunMode { how: How { threads, timing, split }, measured_otherwise: false }
    }

    const fn lazy(threads: usize) -> Self {
        RunMode::new(threads, Timing::Lazy, Split::Cells)
    }

    const fn eager(threads: usize) -> Self {
        RunMode::new(threads, Timing::Eager, Split::Cells)
    }

    /// Returns `true` if `anabranch run --threads N` uses this mode.
    pub(crate) fn is_used_by_run(self) -> bool {
        self.how == How::on(self.how.threads)
    }

    fn run(self, case: &Case, go_on: &mut dyn FnMut() -> bool) -> Result<RunResult, RunError> {
        let setup = if self.measured_otherwise { &case.measured_otherwise } else { &case.setup };
        run_with(setup, self.how, &mut |_| go_on())
    }
}

impl fmt::Display for RunMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let How { threads, timing, split } = self.how;
        let ports = if timing == Timing::Lazy { "lazy" } else { "eager" };
        let cells = if split == Split::One { ", one cell" } else { "" };
        let measured = if self.measured_otherwise { ", other measurements" } else { "" };
        let s = if threads == 1 { "" } else { "s" };
        write!(f, "{threads} thread{s}, {ports} ports{cells}{measured}")
    }
}

/// Mode that the others are compared with.
pub(crate) const REFERENCE: RunMode = RunMode::lazy(1);

pub(crate) const OTHER_MODES: &[RunMode] = &[
    RunMode { how: REFERENCE.how, measured_otherwise: true },
    RunMode::eager(1),
    RunMode::new(1, Timing::Lazy, Split::One),
    RunMode::new(1, Timing::Eager, Split::One),
    RunMode::lazy(2),
    RunMode::lazy(3),
    RunMode::eager(3),
    RunMode::lazy(5),
];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// Mode that failed or differs from [`REFERENCE`].
    pub(crate) mode: RunMode,
    pub(crate) text: String,
}

/// Kind of a failure, which shrinking preserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// Two modes give different results.
    Different,
    /// An invariant failed, the run panicked or it stalled without a reason.
    Broken,
    /// The run took too long.
    Slow,
}

impl FailureKind {
    pub const ALL: [FailureKind; 3] = [FailureKind::Different, FailureKind::Broken, FailureKind::Slow];

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Different => "different",
            FailureKind::Broken => "broken",
            FailureKind::Slow => "slow",
        }
    }
}

/// Result of checking a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Every mode gives the same results.
    Passed,
    /// The scenario cannot be run, with the same message in every mode.
    Refused(String),
    /// Modes differ, or a run failed.
    Failed(Failure),
    /// Interrupted by the user.
    Interrupted,
}

#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum processor time of a run; most take some milliseconds.
    pub(crate) run: Duration,
    /// Set to interrupt the check.
    pub(crate) stop: &'static AtomicBool,
}

/// Maximum ratio of wall time to processor time: on a busy machine threads wait for each other.
const WAITING: u32 = 5;

impl Limits {
    /// Maximum wall time of a run.
    fn wall(self) -> Duration {
        self.run * WAITING
    }

    pub(crate) fn stopped(self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

struct Case {
    setup: Setup,
    measured_otherwise: Setup,
    meta: RunMeta,
}

pub(crate) fn check(draft: &Draft, folder: &Path, others: &[RunMode], limits: Limits) -> Verdict {
    match draft.load(folder) {
        Ok((scenario, setup)) => check_setup(&scenario, setup, others, limits),
        Err(error) => Verdict::Refused(error.to_string()),
    }
}

pub(crate) fn check_setup(scenario: &Scenario, mut setup: Setup, others: &[RunMode], limits: Limits) -> Verdict {
    // Every run checks that the parts of completion times add up, and every mode that they are the same.
    setup.measure.attribution = true;
    let meta = results::meta(scenario, &SIMULATOR, &setup, 1);
    let case = Arc::new(Case { measured_otherwise: measured_otherwise(&setup), setup, meta });
    let first = run(&case, REFERENCE, limits);
    if let Some(failure) = wrong(&first, REFERENCE) {
        // The difference of the first other mode is more informative than a failure of the reference.
        let other = others.first().map(|mode| (*mode, run(&case, *mode, limits)));
        let differs = other.filter(|(_, other)| !limits.stopped() && other.kind() != first.kind());
        return match differs {
            _ if limits.stopped() => Verdict::Interrupted,
            Some((mode, other)) if failure.kind != FailureKind::Slow => {
                Verdict::Failed(ends_differ(&first, &other, mode))
            }
            _ => Verdict::Failed(failure),
        };
    }
    for &mode in others {
        let other = run(&case, mode, limits);
        if limits.stopped() {
            return Verdict::Interrupted;
        }
        if other.kind() != first.kind() {
            return Verdict::Failed(ends_differ(&first, &other, mode));
        }
        if let Some(text) = other.difference(&first, mode.measured_otherwise) {
            return Verdict::Failed(Failure { kind: FailureKind::Different, mode, text });
        }
    }
    match first {
        _ if limits.stopped() => Verdict::Interrupted,
        Ending::Refused(reason) => Verdict::Refused(reason),
        _ => Verdict::Passed,
    }
}

fn ends_differ(first: &Ending, other: &Ending, mode: RunMode) -> Failure {
    let slow = |ending: &Ending| matches!(ending, Ending::Slow | Ending::Hung);
    Failure {
        kind: if slow(first) || slow(other) { FailureKind::Slow } else { FailureKind::Different },
        mode,
        text: format!("{}, but with {REFERENCE}: {}", other.describe(), first.describe()),
    }
}

fn wrong(ending: &Ending, mode: RunMode) -> Option<Failure> {
    let kind = match ending {
        Ending::Done { .. } | Ending::Refused(_) => return None,
        Ending::Broken(_) => FailureKind::Broken,
        Ending::Slow | Ending::Hung => FailureKind::Slow,
    };
    Some(Failure { kind, mode, text: ending.describe() })
}

/// Numbers of links, flows and rows to measure where a scenario measures nothing.
const MEASURED_LINKS: usize = 50;
const MEASURED_FLOWS: u32 = 5;
const MEASURED_ROWS: u64 = 5_000;

/// Returns the setup without its measurements, or with all of them if it has none.
fn measured_otherwise(setup: &Setup) -> Setup {
    let asked = &setup.measure;
    let series = asked.series_interval > Time::ZERO;
    let watched = !asked.trace_flows.is_empty() || !asked.capture_links.is_empty();
    let mut other = setup.clone();
    // With occupancy, `queue_p99_packets` is counted, otherwise derived from bytes: the only column that measuring changes.
    // Delays are columns of their own.
    let (occupancy, attribution) = (asked.occupancy, asked.attribution);
    other.measure = Measure { occupancy, attribution, ..Measure::default() };
    if !(series || asked.uplink_counts || watched) {
        let flows: Vec<u32> = (0..MEASURED_FLOWS.min(setup.flows.flows.len() as u32)).collect();
        other.measure = Measure {
            series_links: setup.topology.link_ids().take(MEASURED_LINKS).collect(),
            series_flows: flows.clone(),
            series_scheme: true,
            series_interval: Time::from_ps((setup.limits.time_limit.ps() / 1000).max(1)),
            uplink_counts: true,
            occupancy,
            attribution,
            trace_flows: flows,
            trace_scheme: true,
            trace_limit: MEASURED_ROWS,
            capture_links: setup.topology.link_ids().take(1).collect(),
            capture_limit: anabranch_study::pcap::MAX_PACKETS,
            ..Measure::default()
        };
    }
    other
}

fn run(case: &Arc<Case>, mode: RunMode, limits: Limits) -> Ending {
    let (send, receive) = mpsc::channel();
    let case = Arc::clone(case);
    record_panics();
    last_panic().clear();
    RUNNING.store(true, Ordering::SeqCst);
    thread::spawn(move || {
        let started = Instant::now();
        let used = || cpu_seconds().unwrap_or_else(|| started.elapsed().as_secs_f64());
        let before = used();
        let in_time = || used() - before < limits.run.as_secs_f64() && started.elapsed() < limits.wall();
        let mut go_on = || in_time() && !limits.stopped();
        let ran = panic::catch_unwind(AssertUnwindSafe(|| mode.run(&case, &mut go_on)));
        // The receiver is dropped if the run took too long.
        let end = |result: RunResult| match beats_bounds(&case, mode, &result) {
            Some(text) => (false, Ending::Broken(text)),
            None => (result.interrupted, ending(&result, &case.meta)),
        };
        let _ = send.send(ran.map(|result| result.map(end)));
    });
    let received = receive.recv_timeout(limits.wall() * 2);
    RUNNING.store(false, Ordering::SeqCst);
    match received {
        Ok(Ok(Ok((true, _))) | Ok(Err(RunError::Interrupted))) => Ending::Slow,
        Ok(Ok(Ok((false, ending)))) => ending,
        Ok(Ok(Err(error))) => Ending::of_error(&error),
        Ok(Err(_)) => Ending::Broken(format!("panicked: {}", last_panic())),
        Err(_) if last_panic().is_empty() => Ending::Hung,
        Err(_) => Ending::Broken(format!("hangs after a panic: {}", last_panic())),
    }
}

/// Returns a description of a bound that the results fall below, in the mode that the others are compared with.
fn beats_bounds(case: &Case, mode: RunMode, result: &RunResult) -> Option<String> {
    if mode != REFERENCE || result.interrupted {
        return None;
    }
    let found =
        panic::catch_unwind(AssertUnwindSafe(|| beaten(&case.setup, &bounds(&case.setup, true), &result.flows)));
    found.unwrap_or_else(|_| Some(format!("the bounds panicked: {}", last_panic())))
}

/// Set during a run, whose panics are results and are not printed.
static RUNNING: AtomicBool = AtomicBool::new(false);

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

fn last_panic() -> MutexGuard<'static, String> {
    LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner)
}

fn record_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if RUNNING.load(Ordering::SeqCst) {
                *last_panic() = info.to_string();
            } else {
                before(info);
            }
        }));
    });
}
