//! Schedules many runs on all cores and within memory: whole runs side by side, several threads per run where runs are few.
//!
//! A run begins only if the free memory holds another one like the largest so far. If a run grows beyond that and memory
//! becomes short, the youngest run is stopped and repeated later, with fewer beside it. Results do not depend on any of this.

use anabranch_backend::Progress;
use anabranch_scenario::{Memory, resident};
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Watches runs; called from several threads.
pub trait Observer: Sync {
    /// Run number `job` begins.
    fn started(&self, job: usize);
    /// Reports information before a run takes its time.
    fn note(&self, message: &str);
    /// Reports what may make results differ from what the user expects; by default a note.
    fn warn(&self, message: &str) {
        self.note(message);
    }
    /// Reports progress of a run; `false` interrupts it.
    fn progress(&self, job: usize, progress: &Progress) -> bool;
    /// The run is done: its results are on disk, or existed already, or it failed.
    fn finished(&self, job: usize);
    /// Returns `true` if no further run should begin.
    fn interrupted(&self) -> bool;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is done, successfully or not.
    Done,
    /// Another process does it: try again later.
    Elsewhere,
    /// `progress` returned `false`.
    Interrupted,
    /// Nothing further can be done, for example because the disk is full.
    Stop,
}

pub(crate) trait Work: Sync {
    fn attempt(&self, job: usize, threads: usize, progress: &mut dyn FnMut(&Progress) -> bool) -> Step;
    /// Maximum number of threads that one run keeps busy; called only where there are fewer runs than threads.
    fn max_threads(&self, job: usize) -> usize;
}

/// Time until a run of another process is tried again.
const CLAIM_CHECK_INTERVAL: Duration = Duration::from_millis(200);
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(100);

struct Active {
    job: usize,
    threads: usize,
    since: Instant,
    evicted: bool,
}

struct State {
    waiting: VecDeque<(usize, Option<Instant>)>,
    active: Vec<Active>,
    free_threads: usize,
    /// Maximum number of concurrent runs; falls where memory was short.
    side_by_side: usize,
    /// Bytes of the largest run so far; `None` before any.
    largest: Option<u64>,
    memory_checked_at: Option<Instant>,
    stopped: bool,
}

struct Scheduler<'w> {
    work: &'w dyn Work,
    observer: &'w dyn Observer,
    memory: &'w (dyn Fn() -> Option<Memory> + Sync),
    state: Mutex<State>,
    changed: Condvar,
    /// Resident bytes of the process before the first run.
    base: u64,
}

/// Works off `jobs` in their order on `threads` threads. Returns when all are done or nothing further should begin.
pub(crate) fn work_off(
    work: &dyn Work,
    jobs: impl IntoIterator<Item = usize>,
    threads: usize,
    observer: &dyn Observer,
) {
    work_off_within(work, jobs, threads, observer, &Memory::now);
}

fn work_off_within(
    work: &dyn Work,
    jobs: impl IntoIterator<Item = usize>,
    threads: usize,
    observer: &dyn Observer,
    memory: &(dyn Fn() -> Option<Memory> + Sync),
) {
    let waiting: VecDeque<_> = jobs.into_iter().map(|job| (job, None)).collect();
    let workers = threads.clamp(1, waiting.len().max(1));
    let scheduler = Scheduler {
        work,
        observer,
        memory,
        state: Mutex::new(State {
            waiting,
            active: Vec::new(),
            free_threads: threads.max(1),
            side_by_side: workers,
            largest: None,
            memory_checked_at: None,
            stopped: false,
        }),
        changed: Condvar::new(),
        base: resident().unwrap_or(0),
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(|| scheduler.worker());
        }
        scheduler.worker();
    });
}

/// Memory that must stay free: a tenth of the total, at most 2 GiB.
fn reserve(memory: Memory) -> u64 {
    (memory.total / 10).min(2 << 30)
}

impl Scheduler<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>, time: Duration) -> MutexGuard<'s, State> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    fn worker(&self) {
        while let Some((job, threads)) = self.next() {
            let mut progress = |progress: &Progress| self.observer.progress(job, progress) && self.may_go_on(job);
            let attempt = catch_unwind(AssertUnwindSafe(|| self.work.attempt(job, threads, &mut progress)));
            // Others wait for this thread's.
            let step = attempt.as_ref().map_or(Step::Stop, |step| *step);
            let mut state = self.lock();
            let place = state.active.iter().position(|active| active.job == job).expect("it is under way");
            self.measure(&mut state);
            let active = state.active.remove(place);
            state.free_threads += active.threads;
            match step {
                Step::Done => {}
                Step::Elsewhere => state.waiting.push_back((job, Some(Instant::now() + CLAIM_CHECK_INTERVAL))),
                Step::Interrupted if active.evicted => state.waiting.push_front((job, None)),
                Step::Interrupted | Step::Stop => state.stopped = true,
            }
            drop(state);
            self.changed.notify_all();
            if let Err(panic) = attempt {
                resume_unwind(panic);
            }
            if step == Step::Done {
                self.observer.finished(job);
            }
        }
    }

    /// Waits until memory suffices; `None` where nothing is left to do.
    fn next(&self) -> Option<(usize, usize)> {
        let mut state = self.lock();
        loop {
            if state.stopped || self.observer.interrupted() || (state.waiting.is_empty() && state.active.is_empty()) {
                return None;
            }
            let now = Instant::now();
            let ready = state.waiting.iter().position(|(_, from)| from.is_none_or(|from| from <= now));
            let Some(place) = ready.filter(|_| state.free_threads > 0 && self.has_free_memory(&mut state)) else {
                // Conditions change with time: another process finishes its run, another program frees memory.
                state = self.wait(state, MEMORY_CHECK_INTERVAL);
                continue;
            };
            let (job, _) = state.waiting.remove(place).expect("it is there");
            let share = state.free_threads / (state.waiting.len() + 1);
            let threads = if share > 1 { share.min(self.work.max_threads(job)).max(1) } else { 1 };
            state.free_threads -= threads;
            state.active.push(Active { job, threads, since: Instant::now(), evicted: false });
            drop(state);
            self.observer.started(job);
            return Some((job, threads));
        }
    }

    fn has_free_memory(&self, state: &mut State) -> bool {
        if state.active.is_empty() {
            return true;
        }
        if state.active.len() >= state.side_by_side {
            return false;
        }
        let Some(memory) = (self.memory)() else { return true };
        match state.largest {
            // A margin of one half, since runs differ.
            Some(largest) => memory.available > reserve(memory) + largest + largest / 2,
            // Until the first run has been measured, others wait where memory is not plentiful.
            None => memory.available > memory.total / 2,
        }
    }

    fn measure(&self, state: &mut State) {
        let Some(held) = resident() else { return };
        let each = held.saturating_sub(self.base) / state.active.len().max(1) as u64;
        state.largest = Some(state.largest.unwrap_or(0).max(each));
    }

    /// Called while `job` runs; `false` if it must free its memory, as the youngest of several.
    fn may_go_on(&self, job: usize) -> bool {
        let mut state = self.lock();
        if state.memory_checked_at.is_some_and(|memory_checked_at| memory_checked_at.elapsed() < MEMORY_CHECK_INTERVAL)
        {
            return true;
        }
        state.memory_checked_at = Some(Instant::now());
        self.measure(&mut state);
        let short = (self.memory)().is_some_and(|memory| memory.available < reserve(memory) / 2);
        let going_on = state.active.iter().filter(|active| !active.evicted);
        let youngest = going_on.clone().max_by_key(|active| active.since).map(|active| active.job);
        let several = going_on.count() > 1;
        if short && several && youngest == Some(job) {
            if let Some(active) = state.active.iter_mut().find(|active| active.job == job) {
                active.evicted = true;
            }
            state.side_by_side = (state.active.len() - 1).max(1);
            return false;
        }
        if short {
            state.memory_checked_at = None;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

    struct Silent;
    impl Observer for Silent {
        fn started(&self, _: usize) {}
        fn note(&self, _: &str) {}
        fn progress(&self, _: usize, _: &Progress) -> bool {
            true
        }
        fn finished(&self, _: usize) {}
        fn interrupted(&self) -> bool {
            false
        }
    }

    #[derive(Default)]
    struct Noted {
        seen: Mutex<Vec<(usize, usize)>>,
        at_once: AtomicUsize,
        max_at_once: AtomicUsize,
        elsewhere: AtomicUsize,
    }

    impl Work for Noted {
        fn attempt(&self, job: usize, threads: usize, _: &mut dyn FnMut(&Progress) -> bool) -> Step {
            let now = self.at_once.fetch_add(threads, SeqCst) + threads;
            self.max_at_once.fetch_max(now, SeqCst);
            std::thread::sleep(Duration::from_millis(5));
            self.at_once.fetch_sub(threads, SeqCst);
            if job == 3 && self.elsewhere.fetch_add(1, SeqCst) < 2 {
                return Step::Elsewhere;
            }
            self.seen.lock().unwrap().push((job, threads));
            Step::Done
        }
        fn max_threads(&self, _: usize) -> usize {
            4
        }
    }

    #[test]
    fn every_run_is_executed_once_within_threads() {
        for (jobs, threads) in [(1, 1), (20, 3), (5, 8), (4, 4)] {
            let work = Noted::default();
            work_off(&work, 0..jobs, threads, &Silent);
            let mut seen: Vec<usize> = work.seen.lock().unwrap().iter().map(|(job, _)| *job).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..jobs).collect::<Vec<_>>());
            assert!(work.max_at_once.load(SeqCst) <= threads, "{jobs} runs on {threads} threads");
        }
    }

    /// The run of job 2 panics.
    struct Panics(AtomicUsize);

    impl Work for Panics {
        fn attempt(&self, job: usize, _: usize, _: &mut dyn FnMut(&Progress) -> bool) -> Step {
            assert!(job != 2, "job 2");
            self.0.fetch_add(1, SeqCst);
            Step::Done
        }
        fn max_threads(&self, _: usize) -> usize {
            1
        }
    }

    /// It reaches the caller, and no thread waits for the one that is gone.
    #[test]
    fn a_panic_ends_all_threads() {
        for threads in 1..=3 {
            let (sender, receiver) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let all = catch_unwind(|| work_off(&Panics(AtomicUsize::new(0)), 0..8, threads, &Silent));
                sender.send(all.is_err()).unwrap();
            });
            assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(true), "{threads} threads");
        }
    }

    #[test]
    fn few_runs_are_split() {
        // A single run gets as many threads as it can use; two share eight threads, four each.
        for (jobs, expected) in [(1, vec![4]), (2, vec![4, 4])] {
            let work = Noted::default();
            work_off(&work, 0..jobs, 8, &Silent);
            assert_eq!(work.seen.lock().unwrap().iter().map(|(_, threads)| *threads).collect::<Vec<_>>(), expected);
        }
    }

    /// Runs that continue until each is the only one, as if each took all memory.
    struct Greedy {
        short: AtomicBool,
        active: AtomicUsize,
        evictions: AtomicUsize,
        done: AtomicUsize,
    }

    impl Work for Greedy {
        fn attempt(&self, _: usize, _: usize, progress: &mut dyn FnMut(&Progress) -> bool) -> Step {
            self.active.fetch_add(1, SeqCst);
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(10));
                self.short.store(self.active.load(SeqCst) > 1, SeqCst);
                if !progress(&Progress::default()) {
                    self.active.fetch_sub(1, SeqCst);
                    self.evictions.fetch_add(1, SeqCst);
                    return Step::Interrupted;
                }
            }
            self.active.fetch_sub(1, SeqCst);
            self.done.fetch_add(1, SeqCst);
            Step::Done
        }
        fn max_threads(&self, _: usize) -> usize {
            1
        }
    }

    #[test]
    fn low_memory_evicts_and_repeats_youngest_run() {
        let work = Greedy {
            short: AtomicBool::new(false),
            active: AtomicUsize::new(0),
            evictions: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
        };
        // 16 GiB, of which almost nothing is left while two runs are under way.
        let total = 16 << 30;
        let memory = || {
            let available = if work.short.load(SeqCst) { 1 << 20 } else { total };
            Some(Memory { available, total })
        };
        work_off_within(&work, 0..3, 2, &Silent, &memory);
        assert_eq!(work.done.load(SeqCst), 3, "all are done in the end");
        assert!(work.evictions.load(SeqCst) >= 1, "one made room");
    }
}
