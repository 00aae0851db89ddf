//! What people see while runs are under way: a status line on a terminal, else a line every ten seconds at most.

use crate::{
    arguments::Show,
    printing::{complain, is_quiet, note},
};
use anabranch_study::{Observer, Progress, hold};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::IsTerminal,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Set by an interruption (ctrl-c); runs look at it when they report progress.
pub(crate) static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Time between two lines where there is no terminal.
const QUIET: Duration = Duration::from_secs(10);
/// Time between two states of the status line, which takes a look at every run.
const STEADY: Duration = Duration::from_millis(50);

/// How long a command that holds nothing has to end by itself.
const GRACE: Duration = Duration::from_millis(400);

/// Lets an interruption be noticed. Runs obey it when they next report; what is only being built is left behind. The
/// second one ends the process at once.
pub(crate) fn listen_for_interruption() {
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            leave();
        }
        std::thread::spawn(|| {
            let mut free_since = Instant::now();
            loop {
                std::thread::sleep(GRACE / 20);
                if hold::any() {
                    free_since = Instant::now();
                } else if free_since.elapsed() >= GRACE {
                    complain("interrupted");
                    leave();
                }
            }
        });
    });
}

/// Ends the process; what it was about to do is free for others.
fn leave() -> ! {
    anabranch_study::release_locks();
    std::process::exit(130);
}

#[derive(Clone, Debug)]
struct Job {
    name: String,
    began: Option<Instant>,
    latest: Progress,
    done: bool,
}

struct State {
    jobs: Vec<Job>,
    last_line: Instant,
}

/// Watches one or several runs.
pub(crate) struct Watch {
    bar: Option<ProgressBar>,
    lines: bool,
    began: Instant,
    state: Mutex<State>,
}

impl Watch {
    /// For the runs with these names.
    pub(crate) fn new(show: Show, names: Vec<String>) -> Self {
        let show = if is_quiet() { Show::Never } else { show };
        let terminal = std::io::stderr().is_terminal();
        let bar = (show == Show::Auto && terminal).then(|| {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        let jobs =
            names.into_iter().map(|name| Job { name, began: None, latest: Progress::default(), done: false }).collect();
        let now = Instant::now();
        Watch {
            bar,
            lines: show == Show::Auto && !terminal,
            began: now,
            state: Mutex::new(State { jobs, last_line: now }),
        }
    }

    /// Takes the status line away.
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
            if state.last_line.elapsed() < STEADY {
                return;
            }
            state.last_line = Instant::now();
            bar.set_position((1000.0 * share_done(&state.jobs)) as u64);
            bar.set_message(status(&state.jobs, self.began.elapsed()));
        } else if self.lines && state.last_line.elapsed() >= QUIET {
            state.last_line = Instant::now();
            note(&status(&state.jobs, self.began.elapsed()));
        }
    }
}

impl Observer for Watch {
    fn started(&self, job: usize) {
        self.with_state(|state| {
            state.jobs[job].began = Some(Instant::now());
            self.show(state);
        });
    }

    fn note(&self, message: &str) {
        self.with_state(|_| match &self.bar {
            Some(bar) => bar.suspend(|| note(&format!("warning: {message}"))),
            None => note(&format!("warning: {message}")),
        });
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
            state.jobs[job].done = true;
            self.show(state);
        });
    }

    fn interrupted(&self) -> bool {
        INTERRUPTED.load(Ordering::Relaxed)
    }
}

/// Part of the flows of a run that is done.
fn part(progress: &Progress) -> f64 {
    if progress.flows_total == 0 { 0.0 } else { progress.flows_finished as f64 / progress.flows_total as f64 }
}

fn share_done(jobs: &[Job]) -> f64 {
    let done: f64 = jobs.iter().map(|job| if job.done { 1.0 } else { part(&job.latest) }).sum();
    if jobs.is_empty() { 1.0 } else { done / jobs.len() as f64 }
}

/// One line: which runs, simulated time, packet-hops per second, flows finished of all, time left.
fn status(jobs: &[Job], elapsed: Duration) -> String {
    let active: Vec<&Job> = jobs.iter().filter(|job| job.began.is_some() && !job.done).collect();
    let mut parts = Vec::new();
    if jobs.len() > 1 {
        let done = jobs.iter().filter(|job| job.done).count();
        let names: Vec<&str> = active.iter().map(|job| job.name.as_str()).collect();
        parts.push(format!("{done}/{} runs done", jobs.len()));
        if !names.is_empty() {
            parts.push(format!("now {}", names.join(", ")));
        }
    }
    let sum = |of: fn(&Progress) -> u64| active.iter().map(|job| of(&job.latest)).sum::<u64>();
    if !active.is_empty() {
        let times: Vec<String> = active.iter().map(|job| format!("{:.1} us", job.latest.now.as_us())).collect();
        let rate: f64 = active
            .iter()
            .filter_map(|job| {
                let seconds = job.began?.elapsed().as_secs_f64();
                (seconds > 0.0).then(|| job.latest.packet_hops as f64 / seconds)
            })
            .sum();
        parts.push(format!("simulated {}", times.join(", ")));
        parts.push(format!("{:.2} M packet-hops/s", rate / 1e6));
        parts.push(format!("{}/{} flows finished", sum(|p| p.flows_finished), sum(|p| p.flows_total)));
    }
    parts.push(match time_left(share_done(jobs), elapsed) {
        Some(left) => format!("{:.0} s left", left.as_secs_f64()),
        None => "time left unknown".into(),
    });
    parts.join(" | ")
}

/// By what is done so far; `None` while too little is.
fn time_left(share: f64, elapsed: Duration) -> Option<Duration> {
    (share > 0.01).then(|| elapsed.mul_f64((1.0 - share).max(0.0) / share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Time;

    #[test]
    fn the_line_says_what_the_contract_asks_for() {
        let latest = Progress { now: Time::from_us(250), packet_hops: 5_000_000, flows_finished: 30, flows_total: 120 };
        let job = |name: &str, done| Job { name: name.into(), began: Some(Instant::now()), latest, done };
        let text = status(&[job("ecmp", true), job("prime", false)], Duration::from_secs(50));
        for word in ["1/2 runs done", "now prime", "simulated 250.0 us", "packet-hops/s", "30/120 flows finished"] {
            assert!(text.contains(word), "{text}");
        }
        // Done: one run and a quarter of the other, 5/8 in 50 s, so 3/8 take 30 s.
        assert!(text.ends_with("30 s left"), "{text}");
    }
}
