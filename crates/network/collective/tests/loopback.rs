//! Verified collectives over our plugin and the loopback interface, each rank a process: this one, started again with `rank`.

mod common;

use anabranch_collective::{
    plan::{KINDS, Kind},
    plugin::{Plugin, VERSIONS},
    rank::Element,
    run::{Mishap, Settings},
};
use common::{fine, harness, is_invalid_usage, others_are_told, plugin, serve};
use std::time::Duration;

fn settings(kind: Kind, ranks: usize) -> Settings {
    let variables = [
        ("ANABRANCH_IFNAME", "=lo"),
        ("ANABRANCH_PATHS", "4"),
        ("ANABRANCH_RATE", "2Gbps"),
        ("ANABRANCH_GIVE_UP", "3s"),
    ];
    common::settings(kind, ranks, variables.map(|(name, value)| (name.into(), value.into())).to_vec())
}

/// Every collective, every version of the interface, 2, 3, 4, 5 and 8 ranks, both types: correct to the element.
fn every_collective() {
    let ranks = [2, 3, 4, 5, 8];
    for (number, (_, kind)) in KINDS.iter().enumerate() {
        for (at, version) in VERSIONS.iter().enumerate() {
            // Each collective meets every version and every number of ranks, and both types.
            let element = if (number + at).is_multiple_of(2) { Element::Float } else { Element::Int };
            let of = Settings { abi: Some(*version), element, ..settings(*kind, ranks[(number + at) % 5]) };
            assert_eq!(fine(&of).abi, *version);
        }
    }
    let newest = fine(&settings(Kind::Ring, 2));
    assert_eq!((newest.abi, newest.device.0.as_str()), (12, "lo"), "the newest first");
}

/// A row per message: a ring of three in one channel sends two times two segments per rank, each of two chunks, and they have
/// the bytes of the segments.
fn rows_of_messages() {
    let bytes = 3 * (1 << 20);
    let outcome = fine(&Settings { rows: true, bytes, channels: 1, ..settings(Kind::Ring, 3) });
    let rows = &outcome.rounds[0].rows;
    let sent: Vec<_> = rows.iter().filter(|row| row.sent).collect();
    assert_eq!((rows.len(), sent.len()), (2 * 24, 24));
    assert_eq!(sent.iter().map(|row| row.bytes).sum::<usize>(), 3 * 4 * (1 << 20));
    assert!(rows.iter().all(|row| row.start_ns <= row.end_ns && row.end_ns <= outcome.rounds[0].nanoseconds));
    assert_eq!(outcome.rounds[0].began_ns.len(), 3);
    // What went over the network, said by its sender: half a MiB is eight packets at least, over no more than four paths.
    for row in rows {
        assert_eq!(row.went.is_some(), row.sent);
        let Some(went) = row.went else { continue };
        assert!(went.packets >= 8 + went.retransmitted && went.retransmitted >= went.timeouts, "{went:?}");
        assert!((1..=4).contains(&went.paths) && (went.moves == 0 || went.paths > 1), "{went:?}");
    }
}

/// A rank that is killed in the midst of a round, which takes half a second at 2 Gbit/s at least: the others are told within
/// the stated time, say so, and close.
fn a_rank_is_killed() {
    let mishap = Mishap { rank: 1, after: Duration::from_millis(100), pause: None };
    let of = Settings { mishap: Some(mishap), rounds: 1, bytes: 3 << 25, ..settings(Kind::Ring, 3) };
    others_are_told(&of);
}

/// A rank that stands still for a second, in the midst of a round that takes 90 ms at least: the job goes on.
fn a_rank_stands_still() {
    let pause = Some(Duration::from_secs(1));
    let mishap = Mishap { rank: 1, after: Duration::from_millis(10), pause };
    let outcome = fine(&Settings { mishap: Some(mishap), rounds: 1, bytes: 3 << 23, ..settings(Kind::Ring, 3) });
    let slowest = outcome.rounds.iter().map(|round| round.nanoseconds).max();
    assert!(slowest >= Some(900_000_000), "it did stand still: {slowest:?}");
}

/// Ranks whose packets differ in size: both ends say so, and close.
fn ranks_of_another_packet_size() {
    let mut of = settings(Kind::Pairs, 2);
    // Two that are started alike differ by their process number.
    of.command.push("own-mtu".into());
    is_invalid_usage(&of);
}

/// A plugin that is not there, and one without the version.
fn what_cannot_be_loaded() {
    let error = Plugin::load(&plugin().with_file_name("no.so"), None).unwrap_err().to_string();
    assert!(error.contains("no.so"), "{error}");
    let error = Plugin::load(&plugin(), Some(7)).unwrap_err().to_string();
    assert!(error.contains("ncclNetPlugin_v7"), "{error}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "rank") {
        if arguments.get(1).is_some_and(|second| second == "own-mtu") {
            let mtu = format!("{}B", 1000 + std::process::id() % 1000);
            // A process that has no other thread yet.
            #[allow(unsafe_code)]
            // SAFETY: nobody else reads variables at the same time.
            unsafe {
                std::env::set_var("ANABRANCH_MTU", mtu);
            }
        }
        return serve();
    }
    let tests: &[(&str, bool, fn())] = &[
        ("every_collective", false, every_collective),
        ("rows_of_messages", false, rows_of_messages),
        ("a_rank_is_killed", false, a_rank_is_killed),
        ("a_rank_stands_still", false, a_rank_stands_still),
        ("ranks_of_another_packet_size", false, ranks_of_another_packet_size),
        ("what_cannot_be_loaded", false, what_cannot_be_loaded),
    ];
    harness(&arguments, tests);
}
