//! Runs a scenario in every way that must not affect its results, and compares all that it gives.

use super::{
    draft::Draft,
    ending::{Ending, ending},
};
use anabranch_backend::{Measure, RunError, Setup};
use anabranch_outcome::RunResult;
use anabranch_report::RunMeta;
use anabranch_scenario::backend::SIMULATOR;
use anabranch_scenario::{machine::cpu_seconds, scenario::Scenario};
use anabranch_sim::{How, Split, Timing, run_with};
use anabranch_study::results;
use anabranch_units::Time;
use std::{
    fmt,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// How a scenario is run; its results are the same in every way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) how: How,
    /// Run without the measurements that the scenario asks for, or with all of them where it asks for none.
    pub(crate) measured_otherwise: bool,
}

impl Way {
    const fn new(threads: usize, timing: Timing, split: Split) -> Self {
        Way { how: How { threads, timing, split }, measured_otherwise: false }
    }

    const fn lazy(threads: usize) -> Self {
        Way::new(threads, Timing::Lazy, Split::Cells)
    }

    const fn eager(threads: usize) -> Self {
        Way::new(threads, Timing::Eager, Split::Cells)
    }

    /// Returns `true` where `anabranch run --threads N` runs a scenario in this way.
    pub(crate) fn is_of_run(self) -> bool {
        self.how == How::on(self.how.threads)
    }

    fn run(self, case: &Case, go_on: &mut dyn FnMut() -> bool) -> Result<RunResult, RunError> {
        let setup = if self.measured_otherwise { &case.measured_otherwise } else { &case.setup };
        run_with(setup, self.how, &mut |_| go_on())
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let How { threads, timing, split } = self.how;
        let ports = if timing == Timing::Lazy { "lazy" } else { "eager" };
        let cells = if split == Split::One { ", one cell" } else { "" };
        let measured = if self.measured_otherwise { ", other measurements" } else { "" };
        let s = if threads == 1 { "" } else { "s" };
        write!(f, "{threads} thread{s}, {ports} ports{cells}{measured}")
    }
}

/// The way that the others are compared with.
pub(crate) const FIRST: Way = Way::lazy(1);

/// The other ways.
pub(crate) const OTHERS: &[Way] = &[
    Way { how: FIRST.how, measured_otherwise: true },
    Way::eager(1),
    Way::new(1, Timing::Lazy, Split::One),
    Way::new(1, Timing::Eager, Split::One),
    Way::lazy(2),
    Way::lazy(3),
    Way::eager(3),
    Way::lazy(5),
];

/// What is wrong with a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// The way that failed or that differs from [`FIRST`].
    pub(crate) way: Way,
    /// What happened, in a few lines.
    pub(crate) text: String,
}

/// Kinds of failures. Shrinking keeps the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Two ways give different results.
    Different,
    /// An invariant failed, the run panicked or it stalled without a reason.
    Broken,
    /// It took too long.
    Slow,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Different, Kind::Broken, Kind::Slow];

    /// Returns its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Different => "different",
            Kind::Broken => "broken",
            Kind::Slow => "slow",
        }
    }
}

/// What comes of checking a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Every way gives the same results.
    Passed,
    /// The scenario cannot be run, and every way says so alike.
    Refused(String),
    /// Something is wrong.
    Failed(Failure),
    /// The user asked for a stop.
    Interrupted,
}

/// Bounds of a check.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Processor time that one run may take; most take some milliseconds.
    pub(crate) run: Duration,
    /// Set when the user asks for a stop.
    pub(crate) stop: &'static AtomicBool,
}

/// How much longer than its processor time a run may take by the clock: on a busy machine threads wait for each other.
const WAITING: u32 = 5;

impl Limits {
    /// Longest time of a run by the clock.
    fn wall(self) -> Duration {
        self.run * WAITING
    }

    pub(crate) fn stopped(self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A scenario that is ready to run.
struct Case {
    setup: Setup,
    measured_otherwise: Setup,
    meta: RunMeta,
}

/// Runs `draft` in the first way and in `others`; its files are written to `folder`.
pub(crate) fn check(draft: &Draft, folder: &Path, others: &[Way], limits: Limits) -> Verdict {
    match draft.load(folder) {
        Ok((scenario, setup)) => check_setup(&scenario, setup, others, limits),
        Err(error) => Verdict::Refused(error.to_string()),
    }
}

/// Runs `setup`, which `scenario` stands for, in the first way and in `others`.
pub(crate) fn check_setup(scenario: &Scenario, setup: Setup, others: &[Way], limits: Limits) -> Verdict {
    let meta = results::meta(scenario, &SIMULATOR, &setup, 1);
    let case = Arc::new(Case { measured_otherwise: measured_otherwise(&setup), setup, meta });
    let first = run(&case, FIRST, limits);
    if let Some(failure) = wrong(&first, FIRST) {
        // What the first other way does differently says more than that the first is wrong.
        let other = others.first().map(|way| (*way, run(&case, *way, limits)));
        let differs = other.filter(|(_, other)| !limits.stopped() && other.kind() != first.kind());
        return match differs {
            _ if limits.stopped() => Verdict::Interrupted,
            Some((way, other)) if failure.kind != Kind::Slow => Verdict::Failed(ends_differ(&first, &other, way)),
            _ => Verdict::Failed(failure),
        };
    }
    for &way in others {
        let other = run(&case, way, limits);
        if limits.stopped() {
            return Verdict::Interrupted;
        }
        if other.kind() != first.kind() {
            return Verdict::Failed(ends_differ(&first, &other, way));
        }
        if let Some(text) = other.difference(&first, way.measured_otherwise) {
            return Verdict::Failed(Failure { kind: Kind::Different, way, text });
        }
    }
    match first {
        _ if limits.stopped() => Verdict::Interrupted,
        Ending::Refused(reason) => Verdict::Refused(reason),
        _ => Verdict::Passed,
    }
}

/// Returns the failure of two ways that end differently.
fn ends_differ(first: &Ending, other: &Ending, way: Way) -> Failure {
    let slow = |ending: &Ending| matches!(ending, Ending::Slow | Ending::Hung);
    Failure {
        kind: if slow(first) || slow(other) { Kind::Slow } else { Kind::Different },
        way,
        text: format!("{}, but with {FIRST}: {}", other.describe(), first.describe()),
    }
}

/// Returns what is wrong with how a run ended, whatever the other ways do.
fn wrong(ending: &Ending, way: Way) -> Option<Failure> {
    let kind = match ending {
        Ending::Done { .. } | Ending::Refused(_) => return None,
        Ending::Broken(_) => Kind::Broken,
        Ending::Slow | Ending::Hung => Kind::Slow,
    };
    Some(Failure { kind, way, text: ending.describe() })
}

/// Links, flows and rows that are measured where a scenario measures nothing.
const MEASURED_LINKS: usize = 50;
const MEASURED_FLOWS: u32 = 5;
const MEASURED_ROWS: u64 = 5_000;

/// Returns the setup without its measurements, or with all of them where it has none.
fn measured_otherwise(setup: &Setup) -> Setup {
    let asked = &setup.measure;
    let series = asked.series_interval > Time::ZERO;
    let watched = !asked.trace_flows.is_empty() || !asked.capture_links.is_empty();
    let mut other = setup.clone();
    // With occupancy, `queue_p99_packets` is counted, without it comes from bytes: the one column that measuring changes.
    let occupancy = asked.occupancy;
    other.measure = Measure { occupancy, ..Measure::default() };
    if !(series || asked.uplink_counts || watched) {
        let flows: Vec<u32> = (0..MEASURED_FLOWS.min(setup.flows.flows.len() as u32)).collect();
        other.measure = Measure {
            series_links: setup.topology.link_ids().take(MEASURED_LINKS).collect(),
            series_flows: flows.clone(),
            series_scheme: true,
            series_interval: Time::from_ps((setup.limits.time_limit.ps() / 1000).max(1)),
            uplink_counts: true,
            occupancy,
            trace_flows: flows,
            trace_limit: MEASURED_ROWS,
            capture_links: setup.topology.link_ids().take(1).collect(),
            capture_limit: anabranch_study::pcap::MOST_PACKETS,
            ..Measure::default()
        };
    }
    other
}

/// Runs in a thread of its own, so that a run that hangs can be left behind.
fn run(case: &Arc<Case>, way: Way, limits: Limits) -> Ending {
    let (send, receive) = mpsc::channel();
    let case = Arc::clone(case);
    keep_panics();
    last_panic().clear();
    RUNNING.store(true, Ordering::SeqCst);
    thread::spawn(move || {
        let started = Instant::now();
        let used = || cpu_seconds().unwrap_or_else(|| started.elapsed().as_secs_f64());
        let before = used();
        let in_time = || used() - before < limits.run.as_secs_f64() && started.elapsed() < limits.wall();
        let mut go_on = || in_time() && !limits.stopped();
        let ran = panic::catch_unwind(AssertUnwindSafe(|| way.run(&case, &mut go_on)));
        // The receiver is gone where the run took too long.
        let _ = send.send(ran.map(|result| result.map(|result| (result.interrupted, ending(&result, &case.meta)))));
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

/// Set while a run is under way: its panics are results and are not printed.
static RUNNING: AtomicBool = AtomicBool::new(false);

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

fn last_panic() -> MutexGuard<'static, String> {
    LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the message of the last panic, also of threads that a run starts itself.
fn keep_panics() {
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
