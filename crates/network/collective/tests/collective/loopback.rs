//! Verified collectives over our plugin and the loopback interface.

use crate::common::{
    self, Test, fine, is_invalid_usage, others_report_the_failure, plugin, waits_for_a_suspended_rank,
};
use anabranch_collective::{
    plan::{CollectiveKind, KINDS},
    plugin::{Plugin, VERSIONS},
    rank::Element,
    run::Settings,
};
use anabranch_lb::registry::{HostParameters, check_host_side, resolve};
use std::time::Duration;

fn settings(kind: CollectiveKind, ranks: usize) -> Settings {
    let variables = [
        ("ANABRANCH_IFNAME", "=lo"),
        ("ANABRANCH_PATHS", "4"),
        ("ANABRANCH_RATE", "2Gbps"),
        ("ANABRANCH_GIVE_UP", "3s"),
    ];
    common::settings(kind, ranks, variables.map(|(name, value)| (name.into(), value.into())).to_vec())
}

fn every_collective() {
    let ranks = [2, 3, 4, 5, 8];
    for (number, (_, kind)) in KINDS.iter().enumerate() {
        for (at, version) in VERSIONS.iter().enumerate() {
            let element = if (number + at).is_multiple_of(2) { Element::Float } else { Element::Int };
            let of = Settings { abi: Some(*version), element, ..settings(*kind, ranks[(number + at) % 5]) };
            assert_eq!(fine(&of).abi, *version);
        }
    }
    let newest = fine(&settings(CollectiveKind::Ring, 2));
    assert_eq!((newest.abi, newest.device.0.as_str()), (12, "lo"), "the newest first");
}

/// Those whose hosts choose paths.
fn every_scheme() {
    let is_of_hosts = |name| !resolve(name).is_ok_and(|(host, switch)| check_host_side(&host, &switch).is_err());
    for about in HostParameters::ALL.iter().filter(|about| is_of_hosts(about.name)) {
        let mut of = settings(CollectiveKind::Ring, 2);
        of.variables.push(("ANABRANCH_SCHEME".into(), about.name.into()));
        fine(&of);
    }
}

/// A ring of three in one channel sends two times two segments per rank, each of two chunks.
fn rows_of_messages() {
    let bytes = 3 * (1 << 20);
    let outcome = fine(&Settings { rows: true, bytes, channels: 1, ..settings(CollectiveKind::Ring, 3) });
    let rows = &outcome.rounds[0].rows;
    let sent: Vec<_> = rows.iter().filter(|row| row.sent).collect();
    assert_eq!((rows.len(), sent.len()), (2 * 24, 24));
    assert_eq!(sent.iter().map(|row| row.bytes).sum::<usize>(), 3 * 4 * (1 << 20));
    assert!(rows.iter().all(|row| row.start_ns <= row.end_ns && row.end_ns <= outcome.rounds[0].nanoseconds));
    assert_eq!(outcome.rounds[0].began_ns.len(), 3);
    // Half a MiB is eight packets at least, over no more than four paths.
    for row in rows {
        assert_eq!(row.counters.is_some(), row.sent);
        let Some(counters) = row.counters else { continue };
        assert!(
            counters.packets >= 8 + counters.retransmitted && counters.retransmitted >= counters.timeouts,
            "{counters:?}"
        );
        assert!((1..=4).contains(&counters.paths) && (counters.moves == 0 || counters.paths > 1), "{counters:?}");
    }
}

/// A round takes half a second at 2 Gbit/s at least.
fn a_rank_is_killed() {
    let of = Settings { bytes: 3 << 25, ..settings(CollectiveKind::Ring, 3) };
    others_report_the_failure(of, Duration::from_millis(100));
}

/// A round takes 90 ms at least.
fn suspended_rank_does_not_stop_the_job() {
    let of = Settings { bytes: 3 << 23, ..settings(CollectiveKind::Ring, 3) };
    waits_for_a_suspended_rank(of, Duration::from_millis(10));
}

fn ranks_of_another_packet_size() {
    let mut of = settings(CollectiveKind::Pairs, 2);
    // Ranks with the same command differ by their process number.
    of.command.push("own-mtu".into());
    is_invalid_usage(&of);
}

fn invalid_plugins_are_reported() {
    let error = Plugin::load(&plugin().with_file_name("no.so"), None).unwrap_err().to_string();
    assert!(error.contains("no.so"), "{error}");
    let error = Plugin::load(&plugin(), Some(7)).unwrap_err().to_string();
    assert!(error.contains("ncclNetPlugin_v7"), "{error}");
}

pub(crate) const TESTS: &[Test] = &[
    ("loopback::every_collective", false, every_collective),
    ("loopback::every_scheme", false, every_scheme),
    ("loopback::rows_of_messages", false, rows_of_messages),
    ("loopback::a_rank_is_killed", false, a_rank_is_killed),
    ("loopback::suspended_rank_does_not_stop_the_job", false, suspended_rank_does_not_stop_the_job),
    ("loopback::ranks_of_another_packet_size", false, ranks_of_another_packet_size),
    ("loopback::invalid_plugins_are_reported", false, invalid_plugins_are_reported),
];
