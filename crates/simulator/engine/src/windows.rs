//! Windows of one lookahead, on one thread or several.
//!
//! A window starts at the earliest event of all partitions and is one lookahead long: no event inside it affects
//! another cell before its end. The windows do not depend on the distribution of cells over threads.

use crate::{
    Cells,
    barrier::{Barrier, Guard},
};
use std::{
    panic::resume_unwind,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

pub trait Message: Send {
    /// Returns the time at which it takes effect.
    fn time(&self) -> u64;
}

/// Cells with their state, which one thread runs.
pub trait Partition: Send {
    type Message: Message;

    /// Returns a lower bound of the next event's time, not before the end of the last window; `u64::MAX`: no event is left.
    fn next_time(&self) -> u64;
    /// Returns the time of the next cut, a global change of the model such as a fault, the same on all partitions;
    /// `u64::MAX`: none. No event precedes `start`.
    fn next_cut(&self, start: u64) -> u64;
    /// Applies a cut between the events before it and those at or after it. Returns `true`, the same on all partitions, if events
    /// from `start` on, or the next cut, read what the cut of another partition writes: all then wait for each other before any of them runs.
    fn cut(&mut self, time: u64, start: u64) -> bool;
    /// Handles every event from `start` to before `end` and puts messages for partition `p` into `outbox[p]`. Calls `go_on`
    /// periodically between events, and returns early if it returns `false`.
    fn run_window(
        &mut self,
        start: u64,
        end: u64,
        outbox: &mut [Vec<Self::Message>],
        go_on: &mut dyn FnMut(Status) -> bool,
    );
    /// Takes messages of another partition, leaving the vector empty.
    fn receive(&mut self, messages: &mut Vec<Self::Message>);
    fn status(&self) -> Status;
    /// Returns `true` if the run must stop because an invariant failed.
    fn failed(&self) -> bool;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Simulated time reached.
    pub now: u64,
    /// Units of work done, as the model counts them.
    pub work: u64,
    pub finished: u64,
    /// Time of the last progress, as the model defines it.
    pub progress: u64,
}

impl Status {
    fn and(self, other: Status) -> Status {
        Status {
            now: self.now.max(other.now),
            work: self.work + other.work,
            finished: self.finished + other.finished,
            progress: self.progress.max(other.progress),
        }
    }
}

/// Reason for the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No event is left before the end.
    Done,
    /// The callback requested a stop.
    Interrupted,
    /// A partition reported a failure.
    Failed,
}

const TICK: Duration = Duration::from_millis(100);

/// Runs all events before `end`, one thread per partition.
///
/// `lookahead` is the minimum time, above zero, from a cause in one cell to its effect in another. `tick` is called
/// periodically with the sum of all statuses and returns `false` to stop.
///
/// # Panics
/// Panics if a partition does, on any thread; the other threads end first.
pub fn run<P: Partition>(
    partitions: &mut [P],
    lookahead: u64,
    end: u64,
    tick: &mut dyn FnMut(Status) -> bool,
) -> Outcome {
    let common = Common::new(partitions.len(), lookahead.min(Cells::LONGEST_WINDOW), end);
    let Some((first, rest)) = partitions.split_first_mut() else { return Outcome::Done };
    if rest.is_empty() {
        return Worker { common: &common, me: 0 }.work(first, tick);
    }
    std::thread::scope(|scope| {
        let common = &common;
        let spawn = |(index, partition)| {
            scope.spawn(move || {
                let _guard = Guard(&common.barrier);
                let me = index + 1;
                let mut tick = |_| !common.stop.load(SeqCst);
                Worker { common, me }.work(partition, &mut tick)
            })
        };
        let others: Vec<_> = rest.iter_mut().enumerate().map(spawn).collect();
        let outcome = {
            let _guard = Guard(&common.barrier);
            Worker { common, me: 0 }.work(first, tick)
        };
        for other in others {
            if let Err(panic) = other.join() {
                resume_unwind(panic);
            }
        }
        outcome
    })
}

#[derive(Debug)]
struct Report {
    /// Minimum of the times of its next event and of its messages.
    next: AtomicU64,
    stops: AtomicBool,
    fails: AtomicBool,
}

/// Data written in one window and read after its barrier exist twice, so that one barrier per window is enough.
struct Common<M> {
    count: usize,
    lookahead: u64,
    end: u64,
    barrier: Barrier,
    reports: [Vec<Report>; 2],
    /// Messages by parity, sender and receiver.
    mail: [Vec<Mutex<Vec<M>>>; 2],
    statuses: Vec<Mutex<Status>>,
    stop: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M> Common<M> {
    fn new(count: usize, lookahead: u64, end: u64) -> Self {
        let report =
            || Report { next: AtomicU64::new(u64::MAX), stops: AtomicBool::new(false), fails: AtomicBool::new(false) };
        let reports = || (0..count).map(|_| report()).collect();
        let mail = || (0..count * count).map(|_| Mutex::new(Vec::new())).collect();
        Common {
            count,
            lookahead,
            end,
            barrier: Barrier::new(count),
            reports: [reports(), reports()],
            mail: [mail(), mail()],
            statuses: (0..count).map(|_| Mutex::default()).collect(),
            stop: AtomicBool::new(false),
        }
    }
}

struct Worker<'a, M> {
    common: &'a Common<M>,
    me: usize,
}

impl<M: Message> Worker<'_, M> {
    fn work<P: Partition<Message = M>>(&self, partition: &mut P, tick: &mut dyn FnMut(Status) -> bool) -> Outcome {
        let Common { count, lookahead, end, barrier, reports, mail, statuses, stop } = self.common;
        let mut outbox: Vec<Vec<M>> = (0..*count).map(|_| Vec::new()).collect();
        let mut last = Instant::now();
        // After the callback returns `false`, each thread stops at its next call of `go_on`.
        let mut go_on = |mine: Status| {
            if last.elapsed() >= TICK {
                last = Instant::now();
                *lock(&statuses[self.me]) = mine;
                let others = statuses.iter().enumerate().filter(|(index, _)| *index != self.me);
                if !tick(others.fold(mine, |sum, (_, status)| sum.and(*lock(status)))) {
                    stop.store(true, SeqCst);
                }
            }
            !stop.load(SeqCst)
        };
        for parity in [0, 1].into_iter().cycle() {
            let report = &reports[parity][self.me];
            let posted = outbox.iter().flatten().map(Message::time).min().unwrap_or(u64::MAX);
            for (to, messages) in outbox.iter_mut().enumerate().filter(|(_, messages)| !messages.is_empty()) {
                std::mem::swap(&mut *lock(&mail[parity][self.me * count + to]), messages);
            }
            report.next.store(partition.next_time().min(posted), SeqCst);
            report.stops.store(!go_on(partition.status()), SeqCst);
            report.fails.store(partition.failed(), SeqCst);
            if barrier.wait().is_err() {
                return Outcome::Failed;
            }
            for from in (0..*count).filter(|from| *from != self.me) {
                partition.receive(&mut lock(&mail[parity][from * count + self.me]));
            }
            let message = &reports[parity];
            if message.iter().any(|report| report.fails.load(SeqCst)) {
                return Outcome::Failed;
            }
            if message.iter().any(|report| report.stops.load(SeqCst)) {
                return Outcome::Interrupted;
            }
            let start = message.iter().map(|report| report.next.load(SeqCst)).min().unwrap_or(u64::MAX);
            if start >= *end {
                return Outcome::Done;
            }
            let mut cut = partition.next_cut(start);
            let mut is_read_at_once = false;
            while cut <= start && !is_read_at_once {
                is_read_at_once = partition.cut(cut, start);
                cut = partition.next_cut(start);
            }
            if is_read_at_once {
                // The next turn has the same start, and the cuts that are left.
                continue;
            }
            let window = start.saturating_add(*lookahead).min(cut).min(*end);
            partition.run_window(start, window, &mut outbox, &mut go_on);
        }
        unreachable!("windows never run out")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;
    use std::sync::Arc;

    /// Tokens hop between cells, each hop taking `DELAY` and a little more; cuts change their paths.
    const DELAY: u64 = 100;
    const CELLS: u32 = 12;

    struct Ring {
        cells: Cells,
        parts: u32,
        me: u32,
        cuts: u64,
        log: Vec<(u64, u32, u32, u64)>,
        panics_at: u64,
    }

    impl Message for Event {
        fn time(&self) -> u64 {
            self.time
        }
    }

    fn ring(parts: u32, panics_at: u64) -> Vec<Ring> {
        let make = |me| Ring { cells: Cells::new(CELLS as usize), parts, me, cuts: 0, log: vec![], panics_at };
        let mut all: Vec<_> = (0..parts).map(make).collect();
        for token in 0..40 {
            let cell = token * 7 % CELLS;
            let event = Event { time: u64::from(token % 3), order: cell, payload: token };
            all[(cell % parts) as usize].cells.push(cell, event);
        }
        all
    }

    impl Partition for Ring {
        type Message = Event;
        fn next_time(&self) -> u64 {
            self.cells.next_time()
        }
        fn next_cut(&self, _: u64) -> u64 {
            (self.cuts + 1) * 777
        }
        fn cut(&mut self, _: u64, _: u64) -> bool {
            self.cuts += 1;
            false
        }
        fn run_window(
            &mut self,
            start: u64,
            end: u64,
            outbox: &mut [Vec<Event>],
            go_on: &mut dyn FnMut(Status) -> bool,
        ) {
            assert!(self.me == 0 || end < self.panics_at, "on purpose");
            for cell in (self.me..CELLS).step_by(self.parts as usize) {
                self.cells.open(cell, start, end);
                while let Some(event) = self.cells.pop() {
                    self.log.push((event.time, event.order, event.payload, self.cuts));
                    let cell = (event.order * 5 + event.payload + self.cuts as u32) % CELLS;
                    let time = event.time + DELAY + u64::from((event.order * 31 + event.payload) % 17);
                    let event = Event { time, order: cell, payload: event.payload };
                    let to = cell % self.parts;
                    if to == self.me { self.cells.push(cell, event) } else { outbox[to as usize].push(event) }
                }
                self.cells.close();
                go_on(self.status());
            }
        }
        fn receive(&mut self, messages: &mut Vec<Event>) {
            messages.drain(..).for_each(|event| self.cells.push(event.order, event));
        }
        fn status(&self) -> Status {
            Status { work: self.log.len() as u64, ..Status::default() }
        }
        fn failed(&self) -> bool {
            self.cells.late().is_some()
        }
    }

    #[test]
    fn partitions_do_not_show() {
        let logs: Vec<_> = [1, 2, 3, 4]
            .map(|parts| {
                let mut all = ring(parts, u64::MAX);
                assert_eq!(run(&mut all, DELAY, 20_000, &mut |_| true), Outcome::Done);
                let mut log: Vec<_> = all.into_iter().flat_map(|p| p.log).collect();
                log.sort_unstable();
                log
            })
            .into();
        assert!(logs[0].len() > 5_000);
        assert!(logs.iter().all(|log| *log == logs[0]));
    }

    #[test]
    fn a_lookahead_that_is_too_long_is_noticed() {
        for parts in [1, 2] {
            assert_eq!(run(&mut ring(parts, u64::MAX), 2 * DELAY, 20_000, &mut |_| true), Outcome::Failed);
        }
    }

    /// Without the guard, the other threads would wait for ever.
    #[test]
    fn a_panic_on_one_thread_ends_the_run() {
        let panicked = std::panic::catch_unwind(|| run(&mut ring(3, 5_000), DELAY, 20_000, &mut |_| true));
        assert!(panicked.is_err());
    }

    #[test]
    fn the_callback_stops_all_threads() {
        for parts in [1, 3] {
            let mut asked = 0;
            let outcome = run(&mut ring(parts, u64::MAX), DELAY, u64::MAX, &mut |_| {
                asked += 1;
                asked < 2
            });
            assert_eq!(outcome, Outcome::Interrupted);
        }
    }

    /// A partition with an event every 1,000, whose cuts at multiples of 10 write what all read from the next 10 on. The first
    /// partition is slow to write.
    struct Board {
        me: usize,
        next: u64,
        last_cut: u64,
        written: Arc<[AtomicU64; 2]>,
    }

    impl Partition for Board {
        type Message = Event;
        fn next_time(&self) -> u64 {
            self.next
        }
        fn next_cut(&self, start: u64) -> u64 {
            (self.last_cut + 10).max(start / 10 * 10 - 10)
        }
        fn cut(&mut self, time: u64, start: u64) -> bool {
            if self.me == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            self.last_cut = time;
            let is_read_at_once = time + 10 == start / 10 * 10;
            if is_read_at_once {
                self.written[self.me].store(time, SeqCst);
            }
            is_read_at_once
        }
        fn run_window(&mut self, start: u64, _: u64, _: &mut [Vec<Event>], _: &mut dyn FnMut(Status) -> bool) {
            if self.next == start {
                let read: Vec<u64> = self.written.iter().map(|written| written.load(SeqCst)).collect();
                assert_eq!(read, [start - 10; 2]);
                self.next += 1_000;
            }
        }
        fn receive(&mut self, _: &mut Vec<Event>) {}
        fn status(&self) -> Status {
            Status::default()
        }
        fn failed(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_cut_that_is_read_at_once_is_complete_on_all_partitions() {
        let written = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let board = |me| Board { me, next: 1_000, last_cut: 0, written: Arc::clone(&written) };
        assert_eq!(run(&mut [board(0), board(1)], DELAY, 20_000, &mut |_| true), Outcome::Done);
    }
}
