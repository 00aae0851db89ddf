//! Several partitions on several threads, conservatively.
//!
//! Time advances in windows. A window starts at the earliest pending event of all partitions and is one
//! lookahead long: nothing that a partition does inside it can reach another partition before its end. Within a
//! window the partitions run independently; between windows their messages are exchanged. Since events are
//! ordered by their key alone, it does not matter in which sequence messages are merged.

use std::{
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// A part of a model that shares no state with the others.
pub trait Partition: Send {
    /// What partitions tell each other.
    type Message: Send;

    /// The time of the next event, or `None`.
    fn next_time(&mut self) -> Option<u64>;
    /// Handles every event before `end` and leaves messages for partition `p` in `outbox[p]`. May stop early
    /// (at an event boundary) where it is the only partition; then returns false.
    fn run_window(&mut self, end: u64, outbox: &mut [Vec<Self::Message>]) -> bool;
    /// Takes over messages of another partition, leaving the vector empty.
    fn receive(&mut self, messages: &mut Vec<Self::Message>);
    /// Where it stands.
    fn status(&self) -> Status;
    /// True where an invariant failed and the run must stop.
    fn failed(&self) -> bool;
}

/// Where a partition stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Simulated time reached.
    pub now: u64,
    /// Units of work done (the model's word for it).
    pub work: u64,
    /// Items finished.
    pub finished: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No event is left before `end`.
    Done,
    /// The callback asked for a stop.
    Interrupted,
    /// A partition reported a failure.
    Failed,
}

/// How often the callback is asked, at most.
const TICK: Duration = Duration::from_millis(100);

/// Runs all events before `end`. `lookahead` is the least time between a cause in one partition and its effect in
/// another. `tick` hears the sum of all statuses now and then and returns false to stop.
pub fn run<P: Partition>(
    partitions: &mut [P],
    lookahead: u64,
    end: u64,
    tick: &mut dyn FnMut(Status) -> bool,
) -> Outcome {
    match partitions {
        [] => Outcome::Done,
        [single] => run_single(single, end, tick),
        several => run_several(several, lookahead, end, tick),
    }
}

fn run_single<P: Partition>(partition: &mut P, end: u64, tick: &mut dyn FnMut(Status) -> bool) -> Outcome {
    let mut last = Instant::now();
    loop {
        let done = partition.run_window(end, &mut []);
        if partition.failed() {
            return Outcome::Failed;
        }
        if done {
            return Outcome::Done;
        }
        if last.elapsed() >= TICK {
            last = Instant::now();
            if !tick(partition.status()) {
                return Outcome::Interrupted;
            }
        }
    }
}

fn run_several<P: Partition>(
    partitions: &mut [P],
    lookahead: u64,
    end: u64,
    tick: &mut dyn FnMut(Status) -> bool,
) -> Outcome {
    let count = partitions.len();
    let barrier = Barrier::new(count);
    let next: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(u64::MAX)).collect();
    let mailboxes: Vec<Mutex<Vec<P::Message>>> = (0..count * count).map(|_| Mutex::new(Vec::new())).collect();
    let statuses: Vec<Mutex<Status>> = (0..count).map(|_| Mutex::new(Status::default())).collect();
    let (stop, failed) = (AtomicBool::new(false), AtomicBool::new(false));
    let mailbox = |from: usize, to: usize| mailboxes[from * count + to].lock().expect("no thread panicked");

    // One thread per partition; all make the same decisions from the same numbers between two barriers.
    let work = |index: usize, partition: &mut P, tick: Option<&mut dyn FnMut(Status) -> bool>| {
        let mut outbox: Vec<Vec<P::Message>> = (0..count).map(|_| Vec::new()).collect();
        let (mut last, mut tick) = (Instant::now(), tick);
        loop {
            next[index].store(partition.next_time().unwrap_or(u64::MAX), SeqCst);
            barrier.wait();
            let earliest = next.iter().map(|n| n.load(SeqCst)).min().expect("a partition");
            if earliest >= end || stop.load(SeqCst) || failed.load(SeqCst) {
                return;
            }
            partition.run_window(earliest.saturating_add(lookahead).min(end), &mut outbox);
            for (to, messages) in outbox.iter_mut().enumerate().filter(|(to, _)| *to != index) {
                std::mem::swap(&mut *mailbox(index, to), messages);
            }
            *statuses[index].lock().expect("no thread panicked") = partition.status();
            barrier.wait();
            for from in (0..count).filter(|from| *from != index) {
                partition.receive(&mut mailbox(from, index));
            }
            if partition.failed() {
                failed.store(true, SeqCst);
            }
            if let Some(tick) = tick.as_mut()
                && last.elapsed() >= TICK
            {
                last = Instant::now();
                let sum =
                    statuses.iter().map(|s| *s.lock().expect("no thread panicked")).fold(Status::default(), |a, b| {
                        Status { now: a.now.max(b.now), work: a.work + b.work, finished: a.finished + b.finished }
                    });
                if !tick(sum) {
                    stop.store(true, SeqCst);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let (first, rest) = partitions.split_first_mut().expect("several partitions");
        for (index, partition) in rest.iter_mut().enumerate() {
            let work = &work;
            scope.spawn(move || work(index + 1, partition, None));
        }
        work(0, first, Some(tick));
    });
    if failed.load(SeqCst) {
        Outcome::Failed
    } else if stop.load(SeqCst) {
        Outcome::Interrupted
    } else {
        Outcome::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Wheel};

    /// Tokens that hop between cells, each hop taking `DELAY` and a little more; a cell logs what passes.
    const DELAY: u64 = 100;
    const CELLS: u32 = 12;

    struct Ring {
        wheel: Wheel,
        parts: u32,
        me: u32,
        log: Vec<(u64, u32, u32)>,
    }

    fn ring(parts: u32) -> Vec<Ring> {
        let make = |me| Ring { wheel: Wheel::new(4, 400), parts, me, log: vec![] };
        let mut all: Vec<_> = (0..parts).map(make).collect();
        for token in 0..40 {
            let cell = token * 7 % CELLS;
            all[(cell % parts) as usize].wheel.push(Event { time: u64::from(token % 3), order: cell, payload: token });
        }
        all
    }

    impl Partition for Ring {
        type Message = Event;
        fn next_time(&mut self) -> Option<u64> {
            self.wheel.next_time()
        }
        fn run_window(&mut self, end: u64, outbox: &mut [Vec<Event>]) -> bool {
            while let Some(event) = self.wheel.pop_before(end) {
                self.log.push((event.time, event.order, event.payload));
                let cell = (event.order * 5 + event.payload) % CELLS;
                let time = event.time + DELAY + u64::from((event.order * 31 + event.payload) % 17);
                let event = Event { time, order: cell, payload: event.payload };
                let to = cell % self.parts;
                if to == self.me { self.wheel.push(event) } else { outbox[to as usize].push(event) }
            }
            true
        }
        fn receive(&mut self, messages: &mut Vec<Event>) {
            messages.drain(..).for_each(|event| self.wheel.push(event));
        }
        fn status(&self) -> Status {
            Status { now: 0, work: self.log.len() as u64, finished: 0 }
        }
        fn failed(&self) -> bool {
            false
        }
    }

    #[test]
    fn partitions_do_not_show() {
        let logs: Vec<_> = [1, 2, 3, 4]
            .map(|parts| {
                let mut all = ring(parts);
                assert_eq!(run(&mut all, DELAY, 20_000, &mut |_| true), Outcome::Done);
                let mut log: Vec<_> = all.into_iter().flat_map(|p| p.log).collect();
                log.sort_unstable();
                log
            })
            .into();
        assert!(logs[0].len() > 5_000);
        assert!(logs.iter().all(|log| *log == logs[0]));
    }
}
