//! Traffic of links while flows arrive: `RunResult::window`.

use crate::common::*;
use anabranch_backend::Setup;
use anabranch_units::Time;
use anabranch_workload::{Start, Trigger, TriggerId, TriggerKind, WorkloadInfo};

/// Of 60 packets of 4 KiB at 400 Gb/s and a load of 0.6: 60 * 4096 B * 8 / (0.6 * 400 Gb/s).
const PERIOD: u64 = 8_192_000;
const ROUNDS: u64 = 20;

/// Hosts 2 to 7 send to their neighbours at a load of 0.6; at the end host 0 sends 5.5 MB to host 1 (110 us at 400
/// Gb/s), while the others are idle.
fn load_of_60_percent() -> Setup {
    let mut list = vec![(0, 1, 5_500_000, ROUNDS * PERIOD)];
    for round in 0..ROUNDS {
        list.extend((2..8).map(|host| (host, host ^ 1, 60 * 4096, round * PERIOD)));
    }
    setup(fat_tree(2, 4), flows(&list), "ecmp")
}

#[test]
fn a_load_of_60_percent_shows_60_percent() {
    let result = run(&load_of_60_percent());
    let window = result.window.as_ref().expect("known starts");
    assert_eq!((window.from, window.to), (Time::ZERO, Time::from_ps(ROUNDS * PERIOD)));
    for (number, link) in result.links.iter().enumerate().filter(|(_, l)| l.from == "host2" || l.to == "host2") {
        // 4160 B on the wire for 4096 B make 0.6 0.609; an ACK of 64 B for every four packets of the reverse flow adds
        // 0.6 * 16 / 4096 = 0.0023.
        let in_window = result.window_utilisation(number).unwrap();
        assert!((0.6093..0.6120).contains(&in_window), "{}: {in_window}", link.from);
        // Over all of 164 + 110 us it is 0.36.
        assert!((0.355..0.370).contains(&link.utilisation), "{}: {}", link.from, link.utilisation);
    }
}

#[test]
fn equal_bytes_for_any_execution() {
    let setup = load_of_60_percent();
    for how in modes() {
        let result = run_as(&setup, how);
        let sent = &result.window.as_ref().unwrap().sent_bytes;
        // 20 flows of 60 packets, and 20 * 15 ACKs for those of the neighbour.
        assert_eq!(sent[result.links.iter().position(|l| l.from == "host3").unwrap()], 20 * 60 * 4160 + 20 * 15 * 64);
        assert_eq!(sent[result.links.iter().position(|l| l.from == "host0").unwrap()], 0);
    }
}

#[test]
fn warm_up_and_time_limit_cut_it() {
    let mut setup = load_of_60_percent();
    setup.limits.warmup = Time::from_ps(5 * PERIOD);
    setup.limits.time_limit = Time::from_ps(15 * PERIOD);
    let result = run(&setup);
    let window = result.window.as_ref().unwrap();
    assert_eq!((window.from, window.to), (setup.limits.warmup, setup.limits.time_limit));
    let host = result.links.iter().position(|l| l.from == "host3").unwrap();
    assert_eq!(window.sent_bytes[host], 10 * 60 * 4160 + 10 * 15 * 64);
}

#[test]
fn none_without_known_and_different_starts() {
    let together = setup(fat_tree(2, 4), flows(&[(0, 5, 4096, 7), (1, 4, 4096, 7)]), "ecmp");
    assert_eq!(run(&together).window, None);
    let mut waits = setup(fat_tree(2, 4), flows(&[(0, 5, 4096, 0), (1, 4, 4096, 9), (5, 0, 4096, 10)]), "ecmp");
    assert!(run(&waits).window.is_some());
    waits.flows.triggers = vec![Trigger::new(TriggerKind::Oneshot, vec![2])];
    waits.flows.flows[0].on_received = Some(TriggerId(0));
    waits.flows.flows[2].start = Start::On(TriggerId(0));
    assert_eq!(run(&waits).window, None);
    // If the waiting flow is not measured, it has no effect.
    let background = WorkloadInfo { measured: false, ..waits.flows.workloads[0].clone() };
    waits.flows.workloads.push(background);
    waits.flows.flows[2].workload = 1;
    assert!(run(&waits).window.is_some());
}

/// Ended at any time, also within packets: no link sends longer than the run lasts, nor than its window.
#[test]
fn utilisation_of_runs_that_end_early_is_at_most_one() {
    for limit in (1..60).map(|number| number * 71_001) {
        let mut setup = load_of_60_percent();
        setup.limits.time_limit = Time::from_ps(limit);
        setup.limits.until_all_done = false;
        let result = run(&setup);
        for (number, link) in result.links.iter().enumerate() {
            let shares = [Some(link.utilisation), result.window_utilisation(number)];
            assert!(shares.into_iter().flatten().all(|share| share <= 1.0), "{} at {limit} ps: {shares:?}", link.from);
        }
    }
}
