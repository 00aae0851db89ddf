//! Progress of runs: a status line on a terminal, else at most one line every 10 s.

use crate::{ProgressMode, is_quiet, note, printing::print_error, stderr_width};
use anabranch_study::{Observer, Progress, hold};
use anabranch_units::Time;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::IsTerminal,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Set by an interruption (ctrl-c); runs check it when they report progress.
pub(crate) static INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub(crate) const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Interval of redraws of the status line, each of which reads every run.
const REDRAW_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) const BAR_COLUMNS: usize = 12;

/// Time for a command without a [`hold`] to end by itself after an interruption.
const GRACE: Duration = Duration::from_millis(400);

/// Signals within this time count as one: `timeout` signals the process and then its group.
const SIGNAL_DEBOUNCE: Duration = Duration::from_millis(300);

/// Handles SIGINT, SIGTERM, and SIGHUP unless it is ignored (`nohup`). The second signal ends the process at once.
pub(crate) fn handle_signals() {
    let ignores_hangup = hangup::is_ignored();
    let first: Mutex<Option<Instant>> = Mutex::new(None);
    let _ = ctrlc::set_handler(move || {
        #[cfg(target_os = "linux")]
        if anabranch_testbed::space::interrupt_inside() {
            return;
        }
        let mut first = first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match *first {
            Some(first) if first.elapsed() < SIGNAL_DEBOUNCE => return,
            Some(_) => exit_interrupted(),
            None => *first = Some(Instant::now()),
        }
        INTERRUPTED.store(true, Ordering::SeqCst);
        std::thread::spawn(|| {
            let mut free_since = Instant::now();
            loop {
                std::thread::sleep(GRACE / 20);
                if hold::any() {
                    free_since = Instant::now();
                } else if free_since.elapsed() >= GRACE {
                    print_error("interrupted");
                    exit_interrupted();
                }
            }
        });
    });
    if ignores_hangup {
        hangup::ignore();
    }
}

/// SIGHUP, which `ctrlc` handles even where it was ignored.
#[allow(unsafe_code)]
mod hangup {
    use nix::sys::signal::{SigHandler, Signal, signal};

    pub(super) fn ignore() {
        let _ = is_ignored();
    }

    pub(super) fn is_ignored() -> bool {
        // SAFETY: `SIG_IGN` installs no handler.
        matches!(unsafe { signal(Signal::SIGHUP, SigHandler::SigIgn) }, Ok(SigHandler::SigIgn))
    }
}

fn exit_interrupted() -> ! {
    anabranch_study::release_locks();
    std::process::exit(130);
}

#[derive(Clone, Debug)]
struct Job {
    name: String,
    started_at: Option<Instant>,
    latest: Progress,
    is_done: bool,
}

struct State {
    jobs: Vec<Job>,
    last_line: Instant,
}

/// Returns the bar of a terminal, and `true` if there are lines instead.
pub(crate) fn bar_or_lines(show: ProgressMode) -> (Option<ProgressBar>, bool) {
    let (is_shown, terminal) = (show == ProgressMode::Auto && !is_quiet(), std::io::stderr().is_terminal());
    let bar = (is_shown && terminal).then(|| {
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(&format!("{{bar:{BAR_COLUMNS}}} {{msg}}")) {
            bar.set_style(style);
        }
        bar
    });
    (bar, is_shown && !terminal)
}

pub(crate) struct ProgressDisplay {
    bar: Option<ProgressBar>,
    lines: bool,
    started_at: Instant,
    state: Mutex<State>,
}

impl ProgressDisplay {
    pub(crate) fn new(show: ProgressMode, names: Vec<String>) -> Self {
        let (bar, lines) = bar_or_lines(show);
        let jobs = names
            .into_iter()
            .map(|name| Job { name, started_at: None, latest: Progress::default(), is_done: false })
            .collect();
        let now = Instant::now();
        ProgressDisplay { bar, lines, started_at: now, state: Mutex::new(State { jobs, last_line: now }) }
    }

    pub(crate) fn close(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn with_state<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn show(&self, state: &mut State) {
        if let Some(bar) = &self.bar {
            if state.last_line.elapsed() < REDRAW_INTERVAL {
                return;
            }
            state.last_line = Instant::now();
            bar.set_position((1000.0 * share_done(&state.jobs)) as u64);
            let columns = stderr_width().saturating_sub(BAR_COLUMNS + 1);
            bar.set_message(status(&state.jobs, self.started_at.elapsed(), columns));
        } else if self.lines && state.last_line.elapsed() >= LINE_INTERVAL {
            state.last_line = Instant::now();
            note(&status(&state.jobs, self.started_at.elapsed(), stderr_width()));
        }
    }
}

impl Observer for ProgressDisplay {
    fn started(&self, job: usize) {
        self.with_state(|state| {
            state.jobs[job].started_at = Some(Instant::now());
            self.show(state);
        });
    }

    fn note(&self, message: &str) {
        self.with_state(|_| match &self.bar {
            Some(bar) => bar.suspend(|| note(message)),
            None => note(message),
        });
    }

    fn warn(&self, message: &str) {
        self.note(&format!("warning: {message}"));
    }

    fn progress(&self, job: usize, progress: &Progress) -> bool {
        self.with_state(|state| {
            state.jobs[job].latest = *progress;
            self.show(state);
        });
        !INTERRUPTED.load(Ordering::Relaxed)
    }

    fn finished(&self, job: usize) {
        self.with_state(|state| {
            state.jobs[job].is_done = true;
            self.show(state);
        });
    }

    fn interrupted(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

fn part(progress: &Progress) -> f64 {
    if progress.flows_total == 0 { 0.0 } else { progress.flows_finished as f64 / progress.flows_total as f64 }
}

fn share_done(jobs: &[Job]) -> f64 {
    let done: f64 = jobs.iter().map(|job| if job.is_done { 1.0 } else { part(&job.latest) }).sum();
    if jobs.is_empty() { 1.0 } else { done / jobs.len() as f64 }
}

/// A time of a run: microseconds, or seconds of a testbed.
fn at(time: Time) -> String {
    let us = time.as_us();
    if us < 1e6 { format!("{us:.1} us") } else { format!("{:.1} s", us / 1e6) }
}

/// One line of at most `columns` columns; else words are shortened, then names of runs are dropped, then the rate.
fn status(jobs: &[Job], elapsed: Duration, columns: usize) -> String {
    let active: Vec<&Job> = jobs.iter().filter(|job| job.started_at.is_some() && !job.is_done).collect();
    // Long form, short form, and the rank in which parts are dropped; 0 is kept.
    let mut parts: Vec<(String, String, u8)> = Vec::new();
    if jobs.len() > 1 {
        let done = format!("{}/{} runs", jobs.iter().filter(|job| job.is_done).count(), jobs.len());
        parts.push((format!("{done} done"), done, 0));
        if !active.is_empty() {
            let names: Vec<&str> = active.iter().map(|job| job.name.as_str()).collect();
            let names = format!("now {}", names.join(", "));
            parts.push((names.clone(), names, 3));
        }
    }
    let sum = |of: fn(&Progress) -> u64| active.iter().map(|job| of(&job.latest)).sum::<u64>();
    let times = || active.iter().map(|job| job.latest.now);
    if let (Some(first), Some(last)) = (times().min(), times().max()) {
        let from = if first == last { String::new() } else { format!("{} to ", at(first)) };
        let last = at(last);
        parts.push((format!("simulated {from}{last}"), format!("at {last}"), 1));
        let rate = |job: &&Job| {
            let seconds = job.started_at?.elapsed().as_secs_f64();
            job.latest.packet_hops.filter(|_| seconds > 0.0).map(|hops| hops as f64 / seconds)
        };
        let rates: Vec<f64> = active.iter().filter_map(rate).collect();
        if !rates.is_empty() {
            let rate = rates.iter().sum::<f64>() / 1e6;
            parts.push((format!("{rate:.2} M packet-hops/s"), format!("{rate:.2} M hops/s"), 2));
        }
        let flows = format!("{}/{} flows", sum(|p| p.flows_finished), sum(|p| p.flows_total));
        parts.push((format!("{flows} finished"), flows, 0));
    }
    let is_ending = !active.is_empty()
        && active.iter().all(|job| job.latest.flows_total > 0 && job.latest.flows_finished == job.latest.flows_total);
    let left = match (no_progress_since(&active), time_left(share_done(jobs), elapsed)) {
        // Acknowledgements and timers are left: nothing is stuck.
        _ if is_ending => "last timers".to_string(),
        (Some(since), _) => format!("no progress since {}", at(since)),
        (None, Some(left)) => format!("{:.0} s left", left.as_secs_f64()),
        (None, None) => "time left unknown".into(),
    };
    parts.push((left.clone(), left, 0));
    let line = |parts: &[(String, String, u8)], short: bool| {
        parts.iter().map(|(long, brief, _)| if short { brief } else { long }.as_str()).collect::<Vec<_>>().join(" | ")
    };
    let fits = |line: &String| line.chars().count() <= columns;
    let long = line(&parts, false);
    if fits(&long) {
        return long;
    }
    for least in (1..=3).rev() {
        if fits(&line(&parts, true)) {
            break;
        }
        parts.retain(|(.., rank)| *rank != least);
    }
    line(&parts, true).chars().take(columns).collect()
}

/// Returns the simulated time since which no active run has received a byte, if that is the last tenth of each.
fn no_progress_since(active: &[&Job]) -> Option<Time> {
    let since = |job: &&Job| {
        let Progress { now, last_progress, .. } = job.latest;
        last_progress.filter(|last| now.saturating_sub(*last).ps() > now.ps() / 10)
    };
    active.iter().map(since).collect::<Option<Vec<Time>>>()?.into_iter().max()
}

/// Estimates the time left from the share done; `None` below 1 %.
fn time_left(share: f64, elapsed: Duration) -> Option<Duration> {
    (share > 0.01).then(|| elapsed.mul_f64((1.0 - share).max(0.0) / share))
}

/// Progress display of those runs of a plan that are missing, by their numbers in the plan.
pub(crate) struct NumberedProgress {
    pub(crate) watch: ProgressDisplay,
    /// Index of each run in the display, by its number in the plan.
    places: Vec<usize>,
}

impl NumberedProgress {
    pub(crate) fn new(show: ProgressMode, due: Vec<(usize, String)>, runs: usize) -> NumberedProgress {
        let mut places = vec![usize::MAX; runs];
        due.iter().enumerate().for_each(|(place, (number, _))| places[*number] = place);
        NumberedProgress { watch: ProgressDisplay::new(show, due.into_iter().map(|(_, name)| name).collect()), places }
    }
}

impl Observer for NumberedProgress {
    fn started(&self, job: usize) {
        self.watch.started(self.places[job]);
    }
    fn note(&self, message: &str) {
        self.watch.note(message);
    }
    fn warn(&self, message: &str) {
        self.watch.warn(message);
    }
    fn progress(&self, job: usize, progress: &Progress) -> bool {
        self.watch.progress(self.places[job], progress)
    }
    fn finished(&self, job: usize) {
        self.watch.finished(self.places[job]);
    }
    fn interrupted(&self) -> bool {
        self.watch.interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_line_has_contract_fields() {
        let latest = Progress {
            now: Time::from_us(250),
            packet_hops: Some(5_000_000),
            flows_finished: 30,
            flows_total: 120,
            last_progress: Some(Time::from_us(249)),
        };
        let started_at = Instant::now().checked_sub(Duration::from_secs(1));
        let job = |name: &str, is_done| Job { name: name.into(), started_at, latest, is_done };
        let jobs = [job("ecmp", true), job("prime", false)];
        let text = status(&jobs, Duration::from_secs(50), 200);
        let parts = ["1/2 runs done", "now prime", "simulated 250.0 us", "packet-hops/s", "30/120 flows finished"];
        anabranch_testkit::assert_contains(&text, &parts);
        // Done: one run and a quarter of the other, 5/8 in 50 s, so 3/8 take 30 s.
        assert!(text.ends_with("30 s left"), "{text}");
        // A narrow line shortens its words, then drops parts.
        for columns in [40, 60, 80, 100] {
            let text = status(&jobs, Duration::from_secs(50), columns);
            assert!(text.chars().count() <= columns && text.ends_with("30 s left"), "{columns}: {text}");
        }
        // Runs of a testbed take seconds.
        let long = Progress { now: Time::from_us(46_946_072), ..latest };
        let jobs_of = [Job { name: "ecmp".into(), started_at, latest: long, is_done: false }];
        assert!(status(&jobs_of, Duration::from_secs(50), 200).contains("simulated 46.9 s"));
        let narrow = status(&jobs, Duration::from_secs(50), 67);
        anabranch_testkit::assert_contains(&narrow, &["1/2 runs", "at 250.0 us", "M hops/s", "30/120 flows"]);
    }

    #[test]
    fn a_run_without_progress_shows_since_when_and_no_time_left() {
        let latest = |last| Progress {
            now: Time::from_us(40_000),
            packet_hops: Some(5_000_000),
            flows_finished: 30,
            flows_total: 120,
            last_progress: Some(Time::from_us(last)),
        };
        let started_at = Instant::now().checked_sub(Duration::from_secs(1));
        let job = |last| Job { name: "ecmp".into(), started_at, latest: latest(last), is_done: false };
        let text = |jobs: &[Job]| status(jobs, Duration::from_secs(50), 200);
        assert!(text(&[job(1000)]).ends_with("no progress since 1000.0 us"), "{}", text(&[job(1000)]));
        assert!(text(&[job(39_999)]).ends_with(" s left"));
        assert!(text(&[job(1000), job(39_999)]).ends_with(" s left"), "the other run goes on");
        let mut ending = job(1000);
        ending.latest.flows_finished = 120;
        assert!(
            text(&[ending.clone()]).ends_with("120/120 flows finished | last timers"),
            "{}",
            text(&[ending.clone()])
        );
        assert!(text(&[ending, job(39_999)]).ends_with(" s left"));
    }
}
