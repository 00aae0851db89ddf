//! Prediction of the speed on more threads than there are cores, from measured windows.

use super::{BenchError, Case};
use anabranch_backend::Setup;
use anabranch_sim::window_times;
use rustix::time::{ClockId, clock_gettime};

/// Assumed time of a barrier that no thread waits for long, in nanoseconds: about one cache line to and from each thread.
pub const BARRIER_NS: u64 = 1_000;

/// Prediction for a number of threads.
///
/// A window takes as long as its slowest thread, and then a barrier. The threads are those of a real run and share the cores of the
/// machine, so the time of packets that cross between them is included. Caches and memory that more cores share are not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Threads; fewer than requested where the fabric has fewer cells.
    pub threads: usize,
    pub windows: usize,
    /// Processor time of all threads over that of one thread alone: what crossing costs.
    pub work: f64,
    /// Mean over maximum of the threads' times, windows weighted by their time; 1: all are equally busy.
    pub balance: f64,
    /// Predicted speedup over one thread.
    pub speedup: f64,
}

/// Processor time of the calling thread in nanoseconds.
fn thread_nanoseconds() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Predicts the speed of `case` on each of `threads`.
pub fn predict(case: &Case, threads: &[usize]) -> Result<Vec<Predicted>, BenchError> {
    let scenario = case.load()?;
    let setup: Setup = scenario.setup(scenario.seed)?;
    let alone: u64 = window_times(&setup, 1, thread_nanoseconds)?.iter().flatten().sum();
    let on = |&threads: &usize| Ok(of_windows(alone, &window_times(&setup, threads, thread_nanoseconds)?));
    threads.iter().map(on).collect()
}

/// `alone` is the time of one thread, `times` those of several, per thread and window.
fn of_windows(alone: u64, times: &[Vec<u64>]) -> Predicted {
    let windows = times.iter().map(Vec::len).max().unwrap_or(0);
    let slowest = |window: usize| times.iter().filter_map(|thread| thread.get(window)).max().copied().unwrap_or(0);
    let critical: u64 = (0..windows).map(slowest).sum();
    let all: u64 = times.iter().flatten().sum();
    let critical_path = critical + if times.len() > 1 { BARRIER_NS * windows as u64 } else { 0 };
    Predicted {
        threads: times.len(),
        windows,
        work: all as f64 / alone.max(1) as f64,
        balance: all as f64 / (critical.max(1) as f64 * times.len().max(1) as f64),
        speedup: alone as f64 / critical_path.max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::CASES;

    /// Two threads, two windows: 30 + 10 and 20 + 20 us where one thread takes 80 us. The slowest take 30 + 20, barriers 2 us.
    #[test]
    fn the_slowest_thread_of_each_window_counts() {
        let predicted = of_windows(80_000, &[vec![30_000, 20_000], vec![10_000, 20_000]]);
        assert_eq!((predicted.threads, predicted.windows, predicted.work), (2, 2, 1.0));
        assert_eq!((predicted.balance, predicted.speedup), (80.0 / (2.0 * 50.0), 80.0 / 52.0));
        assert_eq!(of_windows(80, &[vec![50, 30]]).speedup, 1.0, "one thread has no barrier");
    }

    #[test]
    fn a_small_fabric_is_predicted() {
        let case = Case { changes: &["topology.radix=8", "workload.0.size=256KiB"], ..CASES[0] };
        let predicted = predict(&case, &[2, 4]).unwrap();
        assert_eq!(predicted.iter().map(|p| p.threads).collect::<Vec<_>>(), [2, 4]);
        assert!(predicted.iter().all(|p| p.windows > 10 && p.speedup > 0.0 && p.balance <= 1.0), "{predicted:?}");
    }
}
