//! Completion of an operation.

use std::{
    any::Any,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

type Callback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Outcome {
    /// Rank that sent the message of a receive, or the error.
    result: Option<Result<usize, String>>,
    callbacks: Vec<Callback>,
}

/// An operation in progress or done.
#[derive(Clone, Default)]
pub struct Work(Arc<(AtomicBool, Mutex<Outcome>)>);

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Work").field(&self.result()).finish()
    }
}

impl Work {
    fn lock(&self) -> MutexGuard<'_, Outcome> {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_done(&self) -> bool {
        self.0.0.load(Ordering::Acquire)
    }

    /// Returns the rank that sent the message of a receive (otherwise 0), or the error; `None`: it is in progress.
    pub fn result(&self) -> Option<Result<usize, String>> {
        self.is_done().then(|| self.lock().result.clone()).flatten()
    }

    /// Calls `callback` when the operation is done, in any thread.
    pub fn on_done(&self, callback: impl FnOnce() + Send + 'static) {
        let mut outcome = self.lock();
        if outcome.result.is_none() {
            outcome.callbacks.push(Box::new(callback));
            return;
        }
        drop(outcome);
        callback();
    }

    fn finish(&self, result: Result<usize, String>) -> Vec<Callback> {
        let mut outcome = self.lock();
        outcome.result = Some(result);
        self.0.0.store(true, Ordering::Release);
        std::mem::take(&mut outcome.callbacks)
    }
}

/// What an operation leaves to be done without the lock of its group.
pub(super) struct Finished(Vec<Callback>, #[expect(dead_code, reason = "dropped with it")] Keep);

impl Finished {
    pub(super) fn deliver(self) {
        self.0.into_iter().for_each(|callback| callback());
    }
}

/// Owner of an operation's memory.
pub type Keep = Box<dyn Any + Send>;

/// What every operation has: its completion, the owner of its memory, its time.
pub(super) struct Ticket {
    pub(super) work: Work,
    pub(super) keep: Keep,
    pub(super) timeout: Duration,
    pub(super) deadline: Instant,
}

impl Ticket {
    pub(super) fn new(keep: Keep, timeout: Duration) -> Self {
        Ticket { work: Work::default(), keep, timeout, deadline: Instant::now() + timeout }
    }

    pub(super) fn finish(self, result: Result<usize, String>) -> Finished {
        Finished(self.work.finish(result), self.keep)
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("work", &self.work).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
