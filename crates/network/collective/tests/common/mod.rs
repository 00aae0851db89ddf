//! What tests of collectives share, each rank of which is a process: the test's own program, started again with `rank`.
#![allow(dead_code, unreachable_pub)]

use anabranch_collective::{
    plan::Kind,
    rank::{self, Element},
    run::{self, JobError, Outcome, Settings},
};
use std::{path::PathBuf, sync::atomic::AtomicBool, time::Instant};

/// Nobody stops these jobs.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// The shared object, which cargo builds beside the tests.
pub fn plugin() -> PathBuf {
    let exe = std::env::current_exe().expect("a path");
    exe.parent().expect("a folder").join("libnccl_net_anabranch.so")
}

pub fn own_name() -> String {
    std::env::current_exe().expect("a path").display().to_string()
}

/// A round of a MiB over two channels.
pub fn settings(kind: Kind, ranks: usize, variables: Vec<(String, String)>) -> Settings {
    Settings {
        command: vec![own_name(), "rank".into()],
        places: Vec::new(),
        variables,
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

/// Every rank ends as it should.
pub fn fine(settings: &Settings) -> Outcome {
    let what = format!("{} of {} ranks, abi {:?}", settings.kind.name(), settings.ranks, settings.abi);
    let outcome = run::run(settings, &NEVER, &mut |_| ()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!((outcome.closed, outcome.failures.len()), (settings.ranks, 0), "{what}");
    outcome
}

/// Rank 1 of three is killed: the others are told within the stated time, say so, and close.
pub fn others_are_told(settings: &Settings) {
    let outcome = run::run(settings, &NEVER, &mut |_| ()).expect("an outcome");
    let mut ranks: Vec<usize> = outcome.failures.iter().map(|(rank, ..)| *rank).collect();
    ranks.sort_unstable();
    assert_eq!((ranks, outcome.closed), (vec![0, 2], 2), "{:?}", outcome.failures);
    for (_, why, nanoseconds) in &outcome.failures {
        assert!(why.contains("ncclRemoteError"), "{why}");
        // Three seconds to give up, one until the ping that asks, and what the timeouts take to count it.
        assert!(*nanoseconds < 15_000_000_000, "{nanoseconds}");
    }
}

/// Ranks that do not fit each other fail as NCCL has it.
pub fn is_invalid_usage(settings: &Settings) {
    match run::run(settings, &NEVER, &mut |_| ()) {
        Err(JobError::Failed { why, .. }) => assert!(why.contains("ncclInvalidUsage"), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// What a process does that was started as a rank.
pub fn serve() {
    rank::serve(std::io::BufReader::new(std::io::stdin()), std::io::stdout()).expect("a parent");
}

/// Runs tests: name, whether it is ignored, what it does. As the usual harness: a word picks tests by their names; of options
/// `--list`, `--ignored` and `--include-ignored` are known.
pub fn harness(arguments: &[String], tests: &[(&str, bool, fn())]) {
    let word = arguments.iter().find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| word.is_none_or(|word| name.contains(word.as_str()));
    let is_asked = |option: &str| arguments.iter().any(|argument| argument == option);
    if is_asked("--list") {
        return;
    }
    let (mut passed, mut ignored) = (0, 0);
    for (name, is_ignored, test) in tests.iter().filter(|(name, ..)| chosen(name)) {
        if !is_asked("--include-ignored") && *is_ignored != is_asked("--ignored") {
            ignored += usize::from(*is_ignored);
            continue;
        }
        let began = Instant::now();
        test();
        println!("test {name} ... ok ({:.1} s)", began.elapsed().as_secs_f64());
        passed += 1;
    }
    println!("test result: ok. {passed} passed; 0 failed; {ignored} ignored");
}
