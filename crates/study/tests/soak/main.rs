//! The soak: random valid scenarios, each run with lazy and eager ports and with several threads, which must give the same
//! bytes. docs/validation.md says how to run an hour of it, or one case again.

mod check;
mod dice;
mod draft;
mod draw;
mod shrink;

use anabranch_lb::registry::{HOST_SCHEMES, SWITCH_SCHEMES, resolve};
use anabranch_study::scenario::PROFILES;
use anabranch_topology::TOPOLOGY_KINDS;
use anabranch_transport::TRANSPORTS;
use anabranch_workload::WORKLOAD_KINDS;
use check::{Failure, OTHERS, check};
use draft::{Draft, REPORT};
use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Wall time that one run of a case may take; most take some milliseconds.
const LIMIT: Duration = Duration::from_secs(20);

/// How long a failing scenario is made smaller.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the report of a scenario begins that cannot be run, and says why: drawn at random, some will not do.
const REFUSED: &str = "refused:";

/// Failures after which a soak gives up.
const MOST_FAILURES: usize = 20;

/// Only one case at a time: runs have several threads themselves.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number from the environment.
fn asked<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: found `{text}`, expected a number")))
}

/// Where scenarios of the soak are kept.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("soak").join(name)
}

/// Runs the cases of `seed` from `from` on until `time` is over, and says what failed.
fn soak(seed: u64, from: u64, time: Duration, shrinking: bool) {
    let started = Instant::now();
    let mut failures = Vec::new();
    let (mut number, mut refused) = (from, 0);
    while started.elapsed() < time && failures.len() < MOST_FAILURES {
        match one(seed, number, shrinking) {
            Some(failure) if failure.starts_with(REFUSED) => refused += 1,
            Some(failure) => failures.push(failure),
            None => {}
        }
        number += 1;
    }
    println!("{refused} scenarios were refused");
    assert!(refused * 10 <= number - from, "{refused} of {} scenarios were refused", number - from);
    println!("{} scenarios of seed {seed} in {:.0} s", number - from, started.elapsed().as_secs_f64());
    assert!(number > from, "no scenario was run");
    assert!(failures.is_empty(), "{} of {} scenarios failed:\n{}", failures.len(), number - from, failures.join("\n"));
}

/// Runs one case; says what is wrong with it and how to see it again.
fn one(seed: u64, number: u64, shrinking: bool) -> Option<String> {
    let name = format!("seed-{seed}-case-{number}");
    let draft = draw::case(seed, number, &folder("drawing").join(&name));
    let kept = folder(&name);
    if let Err(error) = draft.load(&folder("drawing").join(&name)) {
        return Some(format!("{REFUSED} {error}"));
    }
    let failure = check(&draft, &folder("drawing").join(&name), OTHERS, LIMIT)?;
    Some(report(&draft, failure, &kept, shrinking, &format!("ANABRANCH_SOAK_SEED={seed} ANABRANCH_SOAK_CASE={number}")))
}

/// Keeps a failing scenario, made smaller, and says where it is.
fn report(draft: &Draft, failure: Failure, kept: &Path, shrinking: bool, again: &str) -> String {
    let mut text = format!("{failure}\n");
    draft.write(kept).expect("a folder to write to");
    if shrinking {
        let small = kept.with_file_name(format!("{}-small", kept.file_name().unwrap_or_default().to_string_lossy()));
        let (smaller, failure) = shrink::shrink(draft, failure, &small, LIMIT, PATIENCE);
        smaller.write(&small).expect("a folder to write to");
        text += &format!("made smaller: {}\n{failure}\n", small.display());
        fs::write(small.join(REPORT), &text).expect("a file to write");
    }
    text += &format!(
        "to see it again: {again} cargo test --profile fast -p anabranch-study --test soak one_case -- --ignored --nocapture\n\
         or: cd {} && anabranch run s.toml --threads {}\n",
        kept.display(),
        failure_threads(&text)
    );
    fs::write(kept.join(REPORT), &text).expect("a file to write");
    println!("{text}");
    text
}

/// Threads of the way that a report begins with.
fn failure_threads(text: &str) -> &str {
    text.split(" threads").next().and_then(|start| start.rsplit(' ').next()).unwrap_or("1")
}

#[test]
fn a_minute() {
    let _alone = alone();
    soak(1, 0, Duration::from_secs(asked("ANABRANCH_SOAK_SECONDS").unwrap_or(55)), false);
}

/// As long as `ANABRANCH_SOAK_MINUTES` says (60), with `ANABRANCH_SOAK_SEED` (2), from `ANABRANCH_SOAK_CASE` on.
#[test]
#[ignore = "an hour"]
fn an_hour() {
    let _alone = alone();
    let minutes: u64 = asked("ANABRANCH_SOAK_MINUTES").unwrap_or(60);
    let (seed, from) = (asked("ANABRANCH_SOAK_SEED").unwrap_or(2), asked("ANABRANCH_SOAK_CASE").unwrap_or(0));
    soak(seed, from, Duration::from_secs(minutes * 60), true);
}

/// Case `ANABRANCH_SOAK_CASE` of `ANABRANCH_SOAK_SEED`, or the scenario `s.toml` in `ANABRANCH_SOAK_FOLDER`.
#[test]
#[ignore = "asks which"]
fn one_case() {
    let _alone = alone();
    let failed = match asked::<PathBuf>("ANABRANCH_SOAK_FOLDER") {
        Some(from) => {
            let draft = Draft::read(&from).expect("a simple scenario");
            let kept = folder("one");
            let failure = check(&draft, &kept, OTHERS, LIMIT);
            failure.map(|failure| {
                report(&draft, failure, &kept, true, &format!("ANABRANCH_SOAK_FOLDER={}", from.display()))
            })
        }
        None => one(asked("ANABRANCH_SOAK_SEED").unwrap_or(1), asked("ANABRANCH_SOAK_CASE").unwrap_or(0), true),
    };
    assert!(failed.is_none(), "{}", failed.unwrap_or_default());
}

/// The same seed and number give the same case, and cases are not all alike.
#[test]
fn cases_come_again() {
    let _alone = alone();
    let at = folder("again");
    let texts: Vec<String> = (0..8).map(|n| draw::case(7, n, &at).text()).collect();
    for (number, text) in (0..).zip(&texts) {
        assert_eq!(&draw::case(7, number, &at).text(), text);
    }
    let kinds = |key: &str| texts.iter().flat_map(|t| t.lines()).filter(|l| l.starts_with(key)).collect::<Vec<_>>();
    assert!(kinds("scheme").iter().any(|s| *s != kinds("scheme")[0]));
    assert_eq!(kinds("time_limit").len(), 8, "no case is without a limit");
}

/// What can be drawn is drawn: every kind of topology, transport, workload and fault, and every scheme.
#[test]
fn everything_is_drawn() {
    let _alone = alone();
    let mut seen = BTreeSet::new();
    for number in 0..400 {
        let draft = draw::case(1, number, &folder("everything"));
        let keys = draft.sections.iter().flat_map(|s| s.keys.iter().map(move |(key, value)| (&s.header, key, value)));
        for (header, key, value) in keys {
            let value = value.trim_matches('"');
            let (host, switch) = match key.as_str() {
                "scheme" | "load_balancer" => resolve(value).map(|(h, s)| (h.name(), s.name())).expect("a pair"),
                _ => ("", ""),
            };
            seen.extend([format!("{header} {key} {value}"), format!("host {host}"), format!("switch {switch}")]);
        }
    }
    let hosts = HOST_SCHEMES.iter().map(|about| format!("host {}", about.name));
    let switches = SWITCH_SCHEMES.iter().map(|about| format!("switch {}", about.name));
    // Ranks of `nccl` are no matter of simulations.
    let simulated = WORKLOAD_KINDS.iter().filter(|about| about.name != "nccl");
    let workloads = simulated.map(|about| format!("[[workload]] kind {}", about.name));
    let topologies = TOPOLOGY_KINDS.iter().map(|kind| format!("[topology] kind {}", kind.name));
    let controls = TRANSPORTS.iter().flat_map(|about| about.controls.iter().map(|control| control.name));
    let controls = controls.map(|name| format!("[transport] congestion_control {name}"));
    let profiles = PROFILES.iter().map(|profile| format!("[fabric] profile {}", profile.name));
    let others = [
        "[[fault]] kind link-down",
        "[[fault]] kind link-up",
        "[[fault]] kind link-degrade",
        "[[fault]] kind switch-down",
        "[[fault]] kind packet-loss",
        "[measure] occupancy true",
        "[transport] recovery irn-extended",
        "[[workload]] format goal",
    ];
    let wanted = hosts.chain(switches).chain(workloads).chain(topologies).chain(controls).chain(profiles);
    let missing: Vec<String> = wanted.chain(others.map(String::from)).filter(|what| !seen.contains(what)).collect();
    assert!(missing.is_empty(), "never drawn: {missing:?}");
}

/// A scenario that failed once and must not again.
fn failed_once(name: &str) {
    let _alone = alone();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/soak_cases");
    let draft = Draft::read(&cases.join(name)).expect("a simple scenario");
    let failure = check(&draft, &folder(name), OTHERS, LIMIT);
    assert!(failure.is_none(), "{name}: {}", failure.map(|failure| failure.to_string()).unwrap_or_default());
}

macro_rules! failed_once {
    ($($test:ident $folder:literal,)*) => {
        $(
            #[test]
            fn $test() {
                failed_once($folder);
            }
        )*

        /// Every folder there is has its test.
        #[test]
        fn every_case_is_run() {
            let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/soak_cases");
            let mut found: Vec<String> = fs::read_dir(cases)
                .expect("the cases")
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                .filter(|name| name != "README.md")
                .collect();
            found.sort();
            let mut listed = vec![$($folder),*];
            listed.sort_unstable();
            assert_eq!(found, listed);
        }
    };
}

failed_once! {
    case_53 "case-53",
    case_276 "case-276",
    case_278 "case-278",
    case_354 "case-354",
    case_451 "case-451",
    case_736 "case-736",
    case_807 "case-807",
    case_988 "case-988",
    case_1115 "case-1115",
    case_1272 "case-1272",
    case_1430 "case-1430",
    case_1563 "case-1563",
    case_1595 "case-1595",
    case_1607 "case-1607",
    case_1608 "case-1608",
    case_1672 "case-1672",
    case_2058 "case-2058",
    case_2099 "case-2099",
    case_2411 "case-2411",
    case_2570 "case-2570",
    case_2582 "case-2582",
    case_2613 "case-2613",
    case_2724 "case-2724",
    case_2781 "case-2781",
    case_2963 "case-2963",
}
