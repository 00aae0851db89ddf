//! Runs work on another thread while this one handles signals, progress and exceptions of Python.

use crate::{error, scheme};
use anabranch_study::{Observer, Progress};
use pyo3::{prelude::*, types::PyDict};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};

/// Interval of checks for signals and of progress.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time for interrupted work to end, after which its thread is detached. It ends when it next checks for interruptions: building
/// a large fabric takes many seconds without a check.
const GRACE: Duration = Duration::from_millis(700);

/// State shared by the working and the waiting thread.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    stop: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Runs in progress.
    active: BTreeMap<usize, Progress>,
    done: usize,
    notes: Vec<String>,
    changed: bool,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the progress if it has changed.
    fn news(&self, py: Python<'_>, runs: usize) -> PyResult<Option<Py<PyDict>>> {
        let mut state = self.lock();
        if !std::mem::take(&mut state.changed) {
            return Ok(None);
        }
        let sum = |of: fn(&Progress) -> u64| state.active.values().map(of).sum::<u64>();
        let news = PyDict::new(py);
        news.set_item("runs", runs)?;
        news.set_item("runs_done", state.done)?;
        news.set_item("now_s", state.active.values().map(|p| p.now.as_seconds()).fold(0.0, f64::max))?;
        news.set_item("packet_hops", sum(|p| p.packet_hops.unwrap_or_default()))?;
        news.set_item("flows_finished", sum(|p| p.flows_finished))?;
        news.set_item("flows", sum(|p| p.flows_total))?;
        Ok(Some(news.unbind()))
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().notes)
    }
}

impl Observer for Watch {
    fn started(&self, job: usize) {
        let mut state = self.lock();
        state.active.insert(job, Progress::default());
        state.changed = true;
    }
    fn note(&self, message: &str) {
        self.lock().notes.push(message.to_string());
    }
    fn progress(&self, job: usize, progress: &Progress) -> bool {
        let mut state = self.lock();
        state.active.insert(job, *progress);
        state.changed = true;
        !self.interrupted()
    }
    fn finished(&self, job: usize) {
        let mut state = self.lock();
        state.active.remove(&job);
        state.done += 1;
        state.changed = true;
    }
    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || scheme::failed()
    }
}

/// Runs `work` on another thread and waits for it without the GIL. `callback` receives the progress of the `runs` on this
/// thread; its exceptions, and those of signals, interrupt the work and propagate. Notes become warnings.
pub(crate) fn attend<T: Send + 'static>(
    py: Python<'_>,
    runs: usize,
    callback: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> PyResult<T> {
    scheme::begin();
    let begun = Instant::now();
    let watch = Arc::new(Watch::default());
    let (sender, receiver) = channel();
    let theirs = watch.clone();
    let thread = std::thread::Builder::new()
        .name("anabranch".into())
        .spawn(move || {
            let _ = sender.send(scheme::beside(|| work(&theirs)));
        })
        .map_err(error::unexpected)?;
    // `Receiver` is not `Sync`, as `py.detach` requires.
    let receiver = Mutex::new(receiver);
    let next =
        |time: Duration| py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time));
    let poll_python = || -> PyResult<()> {
        py.check_signals()?;
        for note in watch.notes() {
            py.import("anabranch._errors")?.call_method1("note", (note,))?;
        }
        if let Some(callback) = callback
            && let Some(news) = watch.news(py, runs)?
        {
            callback.call1((news,))?;
        }
        Ok(())
    };
    loop {
        match next(POLL_INTERVAL) {
            Ok(done) => {
                // The memory of the thread is reusable once it has ended.
                let _ = py.detach(|| thread.join());
                scheme::end(py, begun.elapsed().as_secs_f64())?.into_iter().for_each(|note| watch.note(&note));
                poll_python()?;
                return Ok(done);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(error::broken("internal error in anabranch: a thread panicked; please report it"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = poll_python() {
                    watch.stop.store(true, Ordering::Relaxed);
                    let until = Instant::now() + GRACE;
                    let _ = next(until.saturating_duration_since(Instant::now()));
                    return Err(error);
                }
            }
        }
    }
}
