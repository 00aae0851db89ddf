//! `anabranch bench`: the stripped loop and the full simulator on the same case, side by side.

use crate::{
    error::ScenarioError,
    library,
    machine::{peak_rss_bytes, reset_peak_rss},
    stripped,
};
use anabranch_sim::SimError;

/// A standard case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name of its ready-made scenario.
    pub scenario: &'static str,
    /// The same for the stripped loop.
    pub stripped: stripped::Case,
}

/// The standard cases: 128 hosts that send 8 MiB each, and 8,192 hosts that send 1 MiB each.
pub const CASES: &[Case] = &[
    Case { scenario: "permutation-128", stripped: stripped_case(16, 8, 8 << 20) },
    Case { scenario: "permutation-8192", stripped: stripped_case(128, 64, 1 << 20) },
];

/// With the link delay and the acknowledgements of the scenarios; the bucket width is the fastest on both cases.
const fn stripped_case(leaves: usize, hosts_per_leaf: usize, bytes_per_flow: u64) -> stripped::Case {
    stripped::Case {
        leaves,
        hosts_per_leaf,
        bytes_per_flow,
        link_delay_ps: 1_000_000,
        packets_per_ack: 4,
        bucket_bits: 12,
    }
}

/// What a case gave.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Name of the scenario.
    pub scenario: &'static str,
    /// Hosts.
    pub hosts: u32,
    /// Packet-hops per second of the stripped loop, per repetition.
    pub stripped: Vec<f64>,
    /// Packet-hops per second of the simulator, per repetition.
    pub simulator: Vec<f64>,
    /// Packet-hops of one run of the simulator.
    pub packet_hops: u64,
    /// Fingerprint of the simulator's results.
    pub fingerprint: u64,
    /// Bytes of the simulator's own structures per host.
    pub bytes_per_host: u64,
    /// Largest memory of the process during the simulator's runs, with the flows and results; `None` where the system
    /// does not say.
    pub peak_rss_bytes: Option<u64>,
}

impl Measured {
    /// The simulator's median over the stripped loop's.
    pub fn ratio(&self) -> f64 {
        median(&self.simulator) / median(&self.stripped)
    }
}

/// Why a case could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The run.
    #[error(transparent)]
    Run(#[from] SimError),
    /// Stopped by the user.
    #[error("interrupted")]
    Interrupted,
}

/// Measures `case`: `repetitions` times the stripped loop and the simulator in turn, so that a change of the
/// machine's speed touches both.
///
/// # Errors
/// [`BenchError`].
pub fn measure(
    case: &Case,
    threads: usize,
    repetitions: usize,
    interrupted: &dyn Fn() -> bool,
) -> Result<Measured, BenchError> {
    let scenario = library::load(case.scenario, &[], None)?;
    let setup = scenario.setup(scenario.seed)?;
    let mut measured = Measured {
        scenario: case.scenario,
        hosts: setup.topology.hosts,
        stripped: Vec::new(),
        simulator: Vec::new(),
        packet_hops: 0,
        fingerprint: 0,
        bytes_per_host: 0,
        peak_rss_bytes: None,
    };
    for _ in 0..repetitions.max(1) {
        let tally = stripped::run(case.stripped);
        measured.stripped.push(tally.packet_hops as f64 / tally.wall_seconds.max(1e-9));
        reset_peak_rss();
        let result = anabranch_sim::run(&setup, threads, &mut |_| !interrupted())?;
        if result.interrupted || interrupted() {
            return Err(BenchError::Interrupted);
        }
        measured.simulator.push(result.packet_hops as f64 / result.wall_seconds.max(1e-9));
        measured.packet_hops = result.packet_hops;
        measured.fingerprint = result.fingerprint;
        measured.bytes_per_host = result.bytes_per_host;
        measured.peak_rss_bytes = measured.peak_rss_bytes.max(peak_rss_bytes());
    }
    Ok(measured)
}

/// The middle of `values` (of an even number, the mean of the two in the middle); NaN of none.
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
    use anabranch_fabric::TransportParameters;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    fn acks(setup: &anabranch_sim::Setup) -> u64 {
        match &setup.transport {
            TransportParameters::Uet(t) => u64::from(t.uet.ack_every),
            TransportParameters::Roce(_) => 1,
        }
    }

    #[test]
    fn the_stripped_loop_stands_for_its_scenario() {
        for case in CASES {
            let setup = library::load(case.scenario, &[], None).and_then(|s| s.setup(1)).unwrap();
            let hosts = case.stripped.leaves * case.stripped.hosts_per_leaf;
            assert_eq!(setup.topology.hosts as usize, hosts);
            assert_eq!(setup.flows.flows.len(), hosts);
            assert!(setup.flows.flows.iter().all(|f| f.size == case.stripped.bytes_per_flow));
            assert!(setup.topology.links.iter().all(|l| l.delay.ps() == case.stripped.link_delay_ps));
            assert_eq!(acks(&setup), case.stripped.packets_per_ack);
        }
    }
}
