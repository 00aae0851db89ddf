//! Verified collectives over our plugin and the loopback interface, each rank a process: this one, started again with `rank`.

use anabranch_collective::{
    plan::{KINDS, Kind},
    plugin::{Plugin, VERSIONS},
    rank::{self, Element},
    run::{self, JobError, Mishap, Outcome, Settings},
};
use std::{path::PathBuf, sync::atomic::AtomicBool, time::Duration};

/// Nobody stops these jobs.
static NEVER: AtomicBool = AtomicBool::new(false);

/// The shared object, which cargo builds beside the tests.
fn plugin() -> PathBuf {
    let exe = std::env::current_exe().expect("a path");
    exe.parent().expect("a folder").join("libnccl_net_anabranch.so")
}

fn settings(kind: Kind, ranks: usize) -> Settings {
    let exe = std::env::current_exe().expect("a path").display().to_string();
    let set = |name: &str, value: &str| (name.to_string(), value.to_string());
    Settings {
        command: vec![exe, "rank".into()],
        places: Vec::new(),
        variables: vec![
            set("ANABRANCH_IFNAME", "=lo"),
            set("ANABRANCH_PATHS", "4"),
            set("ANABRANCH_RATE", "2Gbps"),
            set("ANABRANCH_GIVE_UP", "3s"),
        ],
        without: Vec::new(),
        plugin: plugin(),
        abi: None,
        kind,
        ranks,
        bytes: 1 << 20,
        channels: 2,
        rounds: 1,
        element: Element::Float,
        rows: false,
        mishap: None,
    }
}

fn fine(settings: &Settings) -> Outcome {
    let what = format!("{} of {} ranks, abi {:?}", settings.kind.name(), settings.ranks, settings.abi);
    let outcome = run::run(settings, &NEVER, &mut |_| ()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!((outcome.closed, outcome.failures.len()), (settings.ranks, 0), "{what}");
    outcome
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
    let outcome = run::run(&of, &NEVER, &mut |_| ()).expect("an outcome");
    let mut ranks: Vec<usize> = outcome.failures.iter().map(|(rank, ..)| *rank).collect();
    ranks.sort_unstable();
    assert_eq!((ranks, outcome.closed), (vec![0, 2], 2), "{:?}", outcome.failures);
    for (_, why, nanoseconds) in &outcome.failures {
        assert!(why.contains("ncclRemoteError"), "{why}");
        // Three seconds to give up, one until the ping that asks, and what the timeouts take to count it.
        assert!(*nanoseconds < 15_000_000_000, "{nanoseconds}");
    }
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
    match run::run(&of, &NEVER, &mut |_| ()) {
        Err(JobError::Failed { why, .. }) => assert!(why.contains("ncclInvalidUsage"), "{why}"),
        other => panic!("{other:?}"),
    }
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
        return rank::serve(std::io::BufReader::new(std::io::stdin()), std::io::stdout()).expect("a parent");
    }
    let tests: &[(&str, fn())] = &[
        ("every_collective", every_collective),
        ("rows_of_messages", rows_of_messages),
        ("a_rank_is_killed", a_rank_is_killed),
        ("a_rank_stands_still", a_rank_stands_still),
        ("ranks_of_another_packet_size", ranks_of_another_packet_size),
        ("what_cannot_be_loaded", what_cannot_be_loaded),
    ];
    // As the usual harness: a word picks tests by their names, options are not ours.
    let word = arguments.iter().find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| word.is_none_or(|word| name.contains(word.as_str()));
    if arguments.iter().any(|argument| argument == "--list" || argument == "--ignored") {
        return;
    }
    let mut passed = 0;
    for (name, test) in tests.iter().filter(|(name, _)| chosen(name)) {
        test();
        println!("test {name} ... ok");
        passed += 1;
    }
    println!("test result: ok. {passed} passed; 0 failed; 0 ignored");
}
