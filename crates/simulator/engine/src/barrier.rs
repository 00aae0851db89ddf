//! Barrier that spins briefly, then sleeps, and releases all threads after one of them has panicked.

use std::sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

/// Polls of the barrier before a thread goes to sleep: a few microseconds.
const SPINS: u32 = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

#[derive(Debug)]
pub(crate) struct Barrier {
    threads: usize,
    waiting: AtomicUsize,
    round: AtomicUsize,
    broken: AtomicBool,
    sleep: Mutex<()>,
    wake: Condvar,
    /// Polls before sleeping; none if there are fewer processors than threads.
    spins: u32,
}

impl Barrier {
    pub(crate) fn new(threads: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Barrier {
            threads,
            waiting: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
            spins: if processors < threads { 0 } else { SPINS },
        }
    }

    pub(crate) fn wait(&self) -> Result<(), Broken> {
        let round = self.round.load(SeqCst);
        if self.waiting.fetch_add(1, SeqCst) + 1 == self.threads {
            self.waiting.store(0, SeqCst);
            // Under the lock, so that no thread polls before the change and falls asleep after the wake-up.
            let _lock = self.sleep.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            self.round.fetch_add(1, SeqCst);
            self.wake.notify_all();
        } else {
            self.wait_for(round);
        }
        if self.broken.load(SeqCst) { Err(Broken) } else { Ok(()) }
    }

    fn passed(&self, round: usize) -> bool {
        self.round.load(SeqCst) != round || self.broken.load(SeqCst)
    }

    fn wait_for(&self, round: usize) {
        for _ in 0..self.spins {
            if self.passed(round) {
                return;
            }
            std::hint::spin_loop();
        }
        let mut lock = self.sleep.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while !self.passed(round) {
            lock = self.wake.wait(lock).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn break_up(&self) {
        let _lock = self.sleep.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.broken.store(true, SeqCst);
        self.wake.notify_all();
    }
}

/// Breaks the barrier when its thread panics.
pub(crate) struct Guard<'a>(pub(crate) &'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barrier_waits_for_all_threads() {
        let (barrier, arrived) = (Barrier::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..200 {
                        arrived.fetch_add(1, SeqCst);
                        barrier.wait().unwrap();
                        assert!(arrived.load(SeqCst) >= 3 * round);
                        barrier.wait().unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_lets_the_others_go() {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait());
            let panicking = scope.spawn(|| {
                let _guard = Guard(&barrier);
                std::thread::sleep(std::time::Duration::from_millis(20));
                panic!("on purpose");
            });
            assert!(panicking.join().is_err());
            assert_eq!(waiting.join().unwrap(), Err(Broken));
        });
    }
}
