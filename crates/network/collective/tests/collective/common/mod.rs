#![allow(unreachable_pub)]

use anabranch_collective::{
    plan::CollectiveKind,
    rank::{self, Element},
    run::{self, InjectedFailure, JobError, Outcome, Settings},
};
use std::{
    path::PathBuf,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

pub static NEVER: AtomicBool = AtomicBool::new(false);

/// The shared object that cargo builds next to the tests.
pub fn plugin() -> PathBuf {
    let exe = std::env::current_exe().expect("a path");
    exe.parent().expect("a folder").join("libnccl_net_anabranch.so")
}

pub fn own_name() -> String {
    std::env::current_exe().expect("a path").display().to_string()
}

/// A round of a MiB over two channels.
pub fn settings(kind: CollectiveKind, ranks: usize, variables: Vec<(String, String)>) -> Settings {
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
        injected_failure: None,
    }
}

pub fn fine(settings: &Settings) -> Outcome {
    let what = format!("{} of {} ranks, abi {:?}", settings.kind.name(), settings.ranks, settings.abi);
    let outcome = run::run(settings, &NEVER, &mut |_| ()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!((outcome.closed, outcome.failures.len()), (settings.ranks, 0), "{what}");
    outcome
}

/// Suspends rank 1 of three for a second: the job goes on.
pub fn waits_for_a_suspended_rank(of: Settings, after: Duration) {
    let injected_failure = Some(InjectedFailure { rank: 1, after, pause: Some(Duration::from_secs(1)) });
    let outcome = fine(&Settings { injected_failure, ..of });
    let slowest = outcome.rounds.iter().map(|round| round.nanoseconds).max();
    assert!(slowest >= Some(900_000_000), "it did stand still: {slowest:?}");
}

/// Kills rank 1 of three: the others detect it in time, report it, and close.
pub fn others_report_the_failure(of: Settings, after: Duration) {
    let injected_failure = Some(InjectedFailure { rank: 1, after, pause: None });
    let outcome = run::run(&Settings { injected_failure, ..of }, &NEVER, &mut |_| ()).expect("an outcome");
    let mut ranks: Vec<usize> = outcome.failures.iter().map(|(rank, ..)| *rank).collect();
    ranks.sort_unstable();
    assert_eq!((ranks, outcome.closed), (vec![0, 2], 2), "{:?}", outcome.failures);
    for (_, reason, nanoseconds) in &outcome.failures {
        assert!(reason.contains("ncclRemoteError"), "{reason}");
        // Three seconds of timeout, one until the liveness ping, and the time to count the timeouts.
        assert!(*nanoseconds < 15_000_000_000, "{nanoseconds}");
    }
}

pub fn is_invalid_usage(settings: &Settings) {
    match run::run(settings, &NEVER, &mut |_| ()) {
        Err(JobError::Failed { reason, .. }) => assert!(reason.contains("ncclInvalidUsage"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

pub fn serve() {
    rank::serve(std::io::BufReader::new(std::io::stdin()), std::io::stdout()).expect("a parent");
}

/// Name, `true` if it is ignored, function.
pub type Test = (&'static str, bool, fn());

/// Runs tests. Supports the standard harness's word, `--list`, `--ignored` and `--include-ignored`.
pub fn harness(arguments: &[String], tests: &[Test]) {
    let word = arguments.iter().find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| word.is_none_or(|word| name.contains(word.as_str()));
    let is_requested = |option: &str| arguments.iter().any(|argument| argument == option);
    if is_requested("--list") {
        return tests.iter().for_each(|(name, ..)| println!("{name}: test"));
    }
    let (mut passed, mut ignored) = (0, 0);
    for (name, is_ignored, test) in tests.iter().filter(|(name, ..)| chosen(name)) {
        if !is_requested("--include-ignored") && *is_ignored != is_requested("--ignored") {
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
