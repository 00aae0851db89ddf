//! A minute of the soak (`anabranch soak`), and the scenarios that failed once.

use anabranch_soak::{Request, Restrictions, SoakOutcome, again, soak};
use anabranch_testkit::turn;
use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

static STOP: AtomicBool = AtomicBool::new(false);

fn asked(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: found `{text}`, expected a number")))
}

fn nothing_found(outcome: &SoakOutcome) {
    let failures: Vec<String> = outcome
        .failures
        .iter()
        .map(|failed| {
            format!("{}: {}\n  to reproduce: {}", failed.mode, failed.text, failed.commands.join("\n             "))
        })
        .collect();
    assert!(failures.is_empty(), "{} of {} cases failed:\n{}", failures.len(), outcome.cases, failures.join("\n"));
}

fn soak_for(seed: u64, time: Duration, out: Option<PathBuf>) {
    let request = Request { seed, first: 0, cases: None, time: Some(time), only: Restrictions::default(), out };
    let outcome = soak(&request, &STOP, &mut |_| {}).expect("cases to draw");
    let SoakOutcome { cases, refused, .. } = outcome;
    println!("{cases} cases of seed {seed}, {refused} refused");
    assert!(cases > 0, "no case was run");
    assert!(refused * 10 <= cases, "{refused} of {cases} cases were refused:\n{}", outcome.reasons.join("\n"));
    nothing_found(&outcome);
}

#[test]
fn minute_of_cases_passes_with_few_refusals() {
    let _turn = turn();
    soak_for(1, Duration::from_secs(asked("ANABRANCH_SOAK_SECONDS").unwrap_or(55)), None);
}

#[test]
#[ignore = "slow: an hour"]
fn hour_of_cases_passes() {
    let _turn = turn();
    let seed = asked("ANABRANCH_SOAK_SEED").unwrap_or(2);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("soak-{seed}-{}", std::process::id()));
    soak_for(seed, Duration::from_secs(60 * asked("ANABRANCH_SOAK_MINUTES").unwrap_or(60)), Some(out));
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/soak_cases")
}

#[test]
fn fixed_cases_pass() {
    let _turn = turn();
    let kept =
        fs::read_dir(cases()).expect("the cases").filter(|entry| entry.as_ref().is_ok_and(|e| e.path().is_dir()));
    let outcome = again(&cases().to_string_lossy(), &STOP).expect("scenarios that can be run");
    assert_eq!(outcome.cases, kept.count() as u64);
    assert_eq!(outcome.refused, 0, "{}", outcome.reasons.join("\n"));
    nothing_found(&outcome);
}
