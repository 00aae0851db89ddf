//! Waiting times of M/D/1, M/M/1 and M/G/1 at a NIC and at a switch port, with confidence intervals.

use crate::common::*;
use anabranch_backend::Setup;
use anabranch_outcome::FlowRow;
use anabranch_random::Stream;

/// One-packet messages from host 0 as a Poisson process; the NIC is the server.
fn poisson(
    sizes: &mut dyn FnMut(&mut Stream) -> u64,
    mean_service_ps: f64,
    load: f64,
    count: usize,
    seed: u64,
) -> Setup {
    let mut stream = Stream::keyed(seed, 0, "arrivals");
    let mut time = 0.0;
    let list: Vec<_> = (0..count)
        .map(|i| {
            time += stream.exponential(mean_service_ps / load);
            (0, 1 + (i % 3) as u32, sizes(&mut stream), time as u64)
        })
        .collect();
    let mut setup = unconstrained(setup(fat_tree(2, 4), flows(&list), "ecmp"));
    set_keys(uet(&mut setup), "header=0B mtu=65000B");
    setup
}

/// Mean wait at the NIC in picoseconds, and half of its 99.9 % confidence interval from 20 batch means.
fn mean_wait(rows: &[FlowRow]) -> (f64, f64) {
    // From the start to the first bit on the wire, less the ACK's return path (`fct_rx` counts from that bit).
    let wait = |r: &FlowRow| r.fct_ack.unwrap().ps() - r.fct_rx.unwrap().ps() - (r.ideal_ack.ps() - r.ideal_rx.ps());
    let waits: Vec<f64> = rows.iter().map(|r| wait(r) as f64).skip(rows.len() / 20).collect();
    let batch = waits.len() / 20;
    let means: Vec<f64> = waits.chunks_exact(batch).map(|b| b.iter().sum::<f64>() / batch as f64).collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (means.len() - 1) as f64;
    // Student's t with 19 degrees of freedom at 99.9 %: 3.883.
    (mean, 3.883 * (variance / means.len() as f64).sqrt())
}

fn assert_wait(setup: &Setup, expected: f64, what: &str) {
    let (mean, half) = mean_wait(&run(setup).flows);
    assert!(
        (mean - expected).abs() <= half,
        "{what}: waited {mean:.0} ps, theory says {expected:.0}, interval {half:.0}"
    );
    assert!(half < 0.35 * expected, "{what}: {half} of {expected}");
}

#[test]
fn m_d_1() {
    // Service: 4000 B at 20 ps per byte. Mean wait: rho * s / (2 (1 - rho)).
    let service = 80_000.0;
    for load in [0.3, 0.5, 0.7, 0.9] {
        let setup = poisson(&mut |_| 4000, service, load, 60_000, 1);
        assert_wait(&setup, load * service / (2.0 * (1.0 - load)), &format!("M/D/1 at {load}"));
    }
}

#[test]
fn m_m_1() {
    // Exponential sizes of mean 2000 B (rounding adds half a byte). Mean wait: rho * s / (1 - rho).
    let service = 40_000.0;
    for load in [0.3, 0.5, 0.7] {
        let mut sizes = |stream: &mut Stream| (stream.exponential(2000.0) as u64 + 1).min(65_000);
        let setup = poisson(&mut sizes, service, load, 80_000, 2);
        assert_wait(&setup, load * service / (1.0 - load), &format!("M/M/1 at {load}"));
    }
}

#[test]
fn m_g_1() {
    // Pollaczek-Khinchine: wait = lambda E[S^2] / (2 (1 - rho)); S is 20 ns or 200 ns with probability 1/2 each.
    let (short, long) = (20_000.0, 200_000.0);
    let (mean, square) = ((short + long) / 2.0, (short * short + long * long) / 2.0);
    for load in [0.4, 0.7] {
        let mut sizes = |stream: &mut Stream| if stream.chance(1, 2) { 1000 } else { 10_000 };
        let setup = poisson(&mut sizes, mean, load, 80_000, 3);
        assert_wait(&setup, load / mean * square / (2.0 * (1.0 - load)), &format!("M/G/1 at {load}"));
    }
}

#[test]
fn a_switch_port_fed_by_many_hosts_is_nearly_m_d_1() {
    // 31 hosts send one-packet messages to host 0, so its port sees nearly Poisson arrivals. Spreading over NICs and
    // spines shapes them by about load/31, hence the tolerance.
    let topology = fat_tree(2, 16);
    let service = 4160.0 * 20.0;
    for load in [0.5, 0.8] {
        let mut stream = Stream::keyed(9, 0, "arrivals");
        let mut time = 0.0;
        let list: Vec<_> = (0..100_000)
            .map(|_| {
                time += stream.exponential(service / load);
                (8 + stream.below(120) as u32, 0, 4096, time as u64)
            })
            .collect();
        let result = run(&unconstrained(setup(topology.clone(), flows(&list), "ops")));
        let port = result.links.iter().find(|l| l.from == "leaf0" && l.to == "host0").expect("the port");
        // Little: mean number waiting = arrival rate * mean wait = rho^2 / (2 (1 - rho)).
        let expected = load * load / (2.0 * (1.0 - load));
        let error = (port.queue.mean_packets.unwrap() - expected).abs() / expected;
        assert!(error < 0.08, "load {load}: {} packets wait, theory says {expected}", port.queue.mean_packets.unwrap());
        assert!((port.utilisation - load).abs() < 0.02, "{}", port.utilisation);
    }
}
