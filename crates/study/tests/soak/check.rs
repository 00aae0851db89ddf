//! Runs a scenario in every way that must not show, and compares all that it gives.

use crate::draft::Draft;
use anabranch_backend::{RunError, Setup};
use anabranch_outcome::RunResult;
use anabranch_report::{RunMeta, Summary, csv_tables};
use anabranch_sim::{How, Split, Timing, run_with};
use anabranch_study::results;
use std::{
    fmt,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::{Arc, Mutex, Once, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

/// How a scenario is run; no way may show in what it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way(How);

impl Way {
    const fn lazy(threads: usize) -> Self {
        Way(How { threads, timing: Timing::Lazy, split: Split::Cells })
    }

    const fn eager(threads: usize) -> Self {
        Way(How { threads, timing: Timing::Eager, split: Split::Cells })
    }

    const fn one_cell(timing: Timing) -> Self {
        Way(How { threads: 1, timing, split: Split::One })
    }

    /// The one place that knows how a run is started.
    fn run(self, setup: &Setup, go_on: &mut dyn FnMut() -> bool) -> Result<RunResult, RunError> {
        run_with(setup, self.0, &mut |_| go_on())
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let How { threads, timing, split } = self.0;
        let ports = if timing == Timing::Lazy { "lazy" } else { "eager" };
        let cells = if split == Split::One { ", one cell" } else { "" };
        write!(f, "{ports} ports{cells}, {threads} threads")
    }
}

/// The way that the others are compared with.
pub(crate) const FIRST: Way = Way::lazy(1);

/// The other ways.
pub(crate) const OTHERS: &[Way] = &[
    Way::eager(1),
    Way::one_cell(Timing::Lazy),
    Way::one_cell(Timing::Eager),
    Way::lazy(2),
    Way::lazy(3),
    Way::eager(3),
    Way::lazy(5),
];

/// What a run comes to.
#[derive(Clone, Debug, PartialEq)]
enum Ending {
    /// Its fingerprint, its tables as CSV, and its summary without what depends on the machine.
    Done { fingerprint: u64, tables: Vec<(&'static str, String)>, summary: String },
    /// Exit code 2: the input's fault.
    Refused(String),
    /// Exit code 3: flows are open and nothing will happen.
    Stalled(String),
    /// Exit code 3: a mistake of ours.
    Broken(String),
    /// The run goes on beyond the limit and heeds the interruption.
    Slow,
    /// It does not heed it.
    Hung,
}

/// What is wrong with a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// The way that failed or that differs from [`FIRST`].
    pub(crate) way: Way,
    /// What happened, in a few lines.
    pub(crate) text: String,
}

/// What kind of failure it is; shrinking keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Two ways give other results.
    Differ,
    /// A mistake of ours ended the run, or it stalled without a reason.
    Broken,
    /// It took too long.
    Slow,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.way, self.text)
    }
}

/// Runs `draft` in the first way and in `others`; each run may take `limit` of wall time. `None` where all is well.
pub(crate) fn check(draft: &Draft, folder: &Path, others: &[Way], limit: Duration) -> Option<Failure> {
    let (scenario, setup) = match draft.load(folder) {
        Ok(loaded) => loaded,
        Err(error) => return Some(Failure { kind: Kind::Broken, way: FIRST, text: format!("no scenario: {error}") }),
    };
    let meta = results::meta(&scenario, &setup, 1);
    let case = Arc::new((setup, meta));
    let first = run(&case, FIRST, limit);
    let mut failure = wrong(&first, FIRST);
    for &way in others {
        let other = run(&case, way, limit);
        let found = match (&first, &other) {
            // How ways end that differ says more than that one of them is wrong.
            _ if kind(&first) != kind(&other) => Some(Failure {
                kind: if [&first, &other].contains(&&Ending::Hung) { Kind::Slow } else { Kind::Differ },
                way,
                text: format!("{}, but with {FIRST}: {}", describe(&other), describe(&first)),
            }),
            _ if first != other && failure.is_none() => {
                Some(Failure { kind: Kind::Differ, way, text: difference(&first, &other) })
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        if failure.is_some() {
            break;
        }
    }
    failure.take()
}

/// What is wrong with how a run ended, whatever the others do. That a scenario cannot be run is the input's own fault
/// where the message says why; an open flow with nothing left to happen is ours.
fn wrong(ending: &Ending, way: Way) -> Option<Failure> {
    let kind = match ending {
        Ending::Done { .. } | Ending::Refused(_) => return None,
        Ending::Stalled(why) if !why.starts_with("no event is pending") => return None,
        Ending::Stalled(_) | Ending::Broken(_) => Kind::Broken,
        Ending::Slow | Ending::Hung => Kind::Slow,
    };
    Some(Failure { kind, way, text: describe(ending) })
}

fn kind(ending: &Ending) -> u8 {
    match ending {
        Ending::Done { .. } => 0,
        Ending::Refused(_) => 1,
        Ending::Stalled(_) => 2,
        Ending::Broken(_) => 3,
        Ending::Slow | Ending::Hung => 4,
    }
}

fn describe(ending: &Ending) -> String {
    match ending {
        Ending::Done { fingerprint, .. } => format!("done, fingerprint {fingerprint:016x}"),
        Ending::Refused(why) => format!("refused: {why}"),
        Ending::Stalled(why) => format!("stalled: {why}"),
        Ending::Broken(why) => why.clone(),
        Ending::Slow => "not done in time".into(),
        Ending::Hung => "hangs and does not heed an interruption".into(),
    }
}

/// The first difference of each table.
fn difference(first: &Ending, other: &Ending) -> String {
    let (
        Ending::Done { fingerprint: a, tables: ta, summary: sa },
        Ending::Done { fingerprint: b, tables: tb, summary: sb },
    ) = (first, other)
    else {
        return format!("{}, but with {FIRST}: {}", describe(other), describe(first));
    };
    let mut out = match a == b {
        true => "rows differ".to_string(),
        false => format!("fingerprints differ, {b:016x} instead of {a:016x}"),
    };
    let pairs = ta.iter().zip(tb).map(|((name, x), (_, y))| (*name, x, y)).chain([("summary", sa, sb)]);
    for (name, x, y) in pairs.filter(|(_, x, y)| x != y) {
        let (xs, ys): (Vec<_>, Vec<_>) = (x.lines().collect(), y.lines().collect());
        let at = xs.iter().zip(&ys).position(|(x, y)| x != y).unwrap_or_else(|| xs.len().min(ys.len()));
        let line = |lines: &[&str]| lines.get(at).map_or("the end", |line| line).to_string();
        out += &format!("\n  {name}: line {} is\n    {}\n  instead of\n    {}", at + 1, line(&ys), line(&xs));
    }
    out
}

/// A run in a thread of its own, so that one that hangs can be left behind.
fn run(case: &Arc<(Setup, RunMeta)>, way: Way, limit: Duration) -> Ending {
    let (send, receive) = mpsc::channel();
    let case = Arc::clone(case);
    listen_for_panics();
    last_panic().clear();
    thread::spawn(move || {
        let started = Instant::now();
        let (setup, meta) = &*case;
        let ran = panic::catch_unwind(AssertUnwindSafe(|| way.run(setup, &mut || started.elapsed() < limit)));
        // Nobody listens any more to a run that was given up.
        let _ = send.send(ran.map(|result| result.map(|result| (result.interrupted, ending(&result, meta)))));
    });
    match receive.recv_timeout(limit * 2 + Duration::from_secs(5)) {
        Ok(Ok(Ok((true, _))) | Ok(Err(RunError::Interrupted))) => Ending::Slow,
        Ok(Ok(Ok((false, ending)))) => ending,
        Ok(Ok(Err(RunError::Setup(why)))) => Ending::Refused(why),
        Ok(Ok(Err(RunError::Stalled(why)))) => Ending::Stalled(why),
        Ok(Ok(Err(error @ RunError::Invariant(_)))) => Ending::Broken(error.to_string()),
        Ok(Err(_)) => Ending::Broken(format!("panicked: {}", last_panic())),
        Err(_) if last_panic().is_empty() => Ending::Hung,
        Err(_) => Ending::Broken(format!("hangs after a panic: {}", last_panic())),
    }
}

fn ending(result: &RunResult, meta: &RunMeta) -> Ending {
    let mut summary = serde_json::to_value(Summary::new(result, meta)).expect("plain data");
    if let Some(keys) = summary.as_object_mut() {
        for of_the_machine in ["wall_s", "packet_hops_per_s", "peak_rss_bytes", "threads", "events", "bytes_per_host"] {
            keys.remove(of_the_machine);
        }
    }
    Ending::Done { fingerprint: result.fingerprint, tables: csv_tables(result, meta), summary: format!("{summary:#}") }
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

fn last_panic() -> std::sync::MutexGuard<'static, String> {
    LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps what the last panic said, also of threads that the run starts itself.
fn listen_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            *last_panic() = info.to_string();
            before(info);
        }));
    });
}
