use super::{BenchError, Case, Written};
use anabranch_backend::Setup;
use anabranch_outcome::RunResult;

/// Run of the simulator or of the stripped loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// Packets that left a port.
    pub packet_hops: u64,
    /// Wall time of the event loop.
    pub wall_seconds: f64,
    /// Processor time of all threads from the first event to the results; `None` where the system does not report it.
    pub cpu_seconds: Option<f64>,
    /// Wall time from the setup to the first event.
    pub building_seconds: f64,
}

impl Timed {
    /// Packet-hops per second of wall time.
    pub fn per_second(&self) -> f64 {
        self.packet_hops as f64 / self.wall_seconds.max(1e-9)
    }

    /// Packet-hops per second of processor time.
    pub fn per_cpu_second(&self) -> Option<f64> {
        self.cpu_seconds.map(|seconds| self.packet_hops as f64 / seconds.max(1e-9))
    }
}

/// Comparison of two threads with one, from pairs of consecutive runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    /// Median packet-hops per second on two threads.
    pub per_second: f64,
    /// Median speedup over one thread.
    pub speedup: f64,
}

#[derive(Clone, Debug)]
pub struct CaseResult {
    pub name: &'static str,
    pub scenario: &'static str,
    pub changes: &'static [&'static str],
    pub hosts: u32,
    /// Runs of the stripped loop.
    pub stripped: Vec<Timed>,
    pub simulator: Vec<Timed>,
    /// Runs of the simulator on two threads; empty if not measured.
    pub two_threads: Vec<Timed>,
    pub packet_hops: u64,
    /// Fingerprint of the simulator's results, the same in every run; `None` before the first.
    pub fingerprint: Option<u64>,
    /// Bytes of the simulator's own structures per host at the end of a run.
    pub bytes_per_host: u64,
    /// The same without flows.
    pub bytes_per_idle_host: u64,
    /// Additional bytes after two round trips per packet in flight, records of its flows included.
    pub bytes_per_packet_in_flight: Option<u64>,
    /// Peak memory of the process during the simulator's runs; `None` where the system does not report it.
    pub peak_rss_bytes: Option<u64>,
    /// Wall time to build graph and flows.
    pub set_up_seconds: f64,
    /// Writing of a run's results; `None` if not measured.
    pub written: Option<Written>,
}

impl CaseResult {
    pub(super) fn new(case: &Case, setup: &Setup, set_up_seconds: f64) -> Self {
        CaseResult {
            name: case.name,
            scenario: case.scenario,
            changes: case.changes,
            hosts: setup.topology.hosts,
            stripped: Vec::new(),
            simulator: Vec::new(),
            two_threads: Vec::new(),
            packet_hops: 0,
            fingerprint: None,
            bytes_per_host: 0,
            bytes_per_idle_host: 0,
            bytes_per_packet_in_flight: None,
            peak_rss_bytes: None,
            set_up_seconds,
            written: None,
        }
    }

    pub(super) fn take(&mut self, result: &RunResult, timed: Timed, threads: usize) -> Result<(), BenchError> {
        self.same(result, threads)?;
        self.simulator.push(timed);
        self.packet_hops = result.packet_hops.unwrap_or_default();
        self.fingerprint = result.fingerprint;
        self.bytes_per_host = result.bytes_per_host.unwrap_or_default();
        Ok(())
    }

    pub(super) fn same(&self, result: &RunResult, threads: usize) -> Result<(), BenchError> {
        match self.fingerprint.zip(result.fingerprint) {
            Some((expected, found)) if expected != found => Err(BenchError::Differs { found, expected, threads }),
            _ => Ok(()),
        }
    }

    /// Median rate of the simulator over that of the stripped loop; `None` without a loop of this topology.
    pub fn ratio(&self) -> Option<f64> {
        (!self.stripped.is_empty()).then(|| median(&rates(&self.simulator)) / median(&rates(&self.stripped)))
    }

    /// Minimum processor time of a run, from the first event to the results.
    pub fn best_cpu_seconds(&self) -> Option<f64> {
        self.simulator.iter().filter_map(|timed| timed.cpu_seconds).min_by(f64::total_cmp)
    }

    /// Best rate by processor time over that of the stripped loop.
    pub fn best_ratio(&self) -> Option<f64> {
        Some(best_per_cpu_second(&self.simulator)? / best_per_cpu_second(&self.stripped)?)
    }

    /// Time from the loaded scenario to the first event: graph and flows, then the median of the run's setup.
    pub fn first_event_seconds(&self) -> f64 {
        let building: Vec<f64> = self.simulator.iter().map(|timed| timed.building_seconds).collect();
        self.set_up_seconds + median(&building)
    }

    /// Comparison of two threads with one.
    pub fn pairs(&self) -> Option<Pairs> {
        let speedups =
            self.two_threads.iter().zip(&self.simulator).map(|(two, one)| two.per_second() / one.per_second());
        let speedups: Vec<f64> = speedups.collect();
        (!speedups.is_empty())
            .then(|| Pairs { per_second: median(&rates(&self.two_threads)), speedup: median(&speedups) })
    }
}

pub(super) fn rates(runs: &[Timed]) -> Vec<f64> {
    runs.iter().map(Timed::per_second).collect()
}

fn best_per_cpu_second(runs: &[Timed]) -> Option<f64> {
    runs.iter().filter_map(Timed::per_cpu_second).max_by(f64::total_cmp)
}

/// Median of `values`; NaN if empty.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn rates_by_wall_and_processor_time() {
        let run = |wall_seconds, cpu| Timed { packet_hops: 100, wall_seconds, cpu_seconds: cpu, building_seconds: 0.0 };
        let runs = [run(2.0, Some(1.0)), run(4.0, Some(0.5)), run(1.0, None)];
        assert_eq!(rates(&runs), [50.0, 25.0, 100.0]);
        assert_eq!(best_per_cpu_second(&runs), Some(200.0));
        assert_eq!(best_per_cpu_second(&runs[2..]), None);
    }
}
