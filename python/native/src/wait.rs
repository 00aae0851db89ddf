//! Work on a thread of its own while Python goes on: signals are heard, progress is told, exceptions come through.

use crate::error;
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

/// How often signals are looked at and progress is told.
const LOOK: Duration = Duration::from_millis(50);
/// How long an interrupted work has to come to its end; then it is left behind. Nobody hears of it any more, and it ends
/// when it next looks up: building a large fabric asks nobody for many seconds.
const PATIENCE: Duration = Duration::from_millis(700);

/// What the thread that works and the one that waits share.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    stop: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Runs under way.
    active: BTreeMap<usize, Progress>,
    done: usize,
    notes: Vec<String>,
    changed: bool,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is to tell, if anything is new.
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
        self.stop.load(Ordering::Relaxed)
    }
}

/// Does `work` on a thread of its own and waits for it without the GIL. `callback` is told how the `runs` stand, on this
/// thread; its exceptions and those of signals end the work and come back as they are. Notes become warnings.
pub(crate) fn attend<T: Send + 'static>(
    py: Python<'_>,
    runs: usize,
    callback: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let (sender, receiver) = channel();
    let theirs = watch.clone();
    let thread = std::thread::Builder::new()
        .name("anabranch".into())
        .spawn(move || {
            let _ = sender.send(work(&theirs));
        })
        .map_err(error::unexpected)?;
    // A receiver is no Sync: it goes to and fro.
    let receiver = Mutex::new(receiver);
    let next =
        |time: Duration| py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time));
    let look = || -> PyResult<()> {
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
        match next(LOOK) {
            Ok(done) => {
                // Its memory is free for others once it is gone.
                let _ = py.detach(|| thread.join());
                look()?;
                return Ok(done);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(error::broken("a thread of anabranch has panicked; this is a mistake in anabranch"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = look() {
                    watch.stop.store(true, Ordering::Relaxed);
                    let until = Instant::now() + PATIENCE;
                    let _ = next(until.saturating_duration_since(Instant::now()));
                    return Err(error);
                }
            }
        }
    }
}
