//! Shrinks a failing scenario while the failure persists.

use super::{
    Draft,
    check::{Failure, RunMode, Verdict},
};
use anabranch_backend::Setup;
use anabranch_units::Time;
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Tables that every scenario needs.
const NEEDED: [&str; 2] = ["", "[topology]"];

/// Returns the smallest scenario found within `time` that fails as `draft` does, with its failure.
pub(super) fn shrink(
    draft: &Draft,
    failure: Failure,
    folder: &Path,
    time: Duration,
    check: &mut dyn FnMut(&Draft, RunMode) -> Verdict,
) -> (Draft, Failure) {
    let until = Instant::now() + time;
    let (mut best, mut failure) = (draft.clone(), failure);
    // The default of a removed key may be larger.
    let mut size = draft.load(folder).map_or(LARGEST, |(_, setup)| size(&setup));
    loop {
        let before = best.clone();
        let mut number = 0;
        // After a candidate is taken, another one has its number.
        while let Some(smaller) = candidate(&best, number) {
            if Instant::now() >= until {
                return (best, failure);
            }
            let of_smaller = smaller.load(folder).ok().map(|(_, setup)| self::size(&setup));
            let found = match of_smaller
                .filter(|(hosts, bytes, time)| *hosts <= size.0 && *bytes <= size.1 && *time <= size.2)
            {
                Some(_) => check(&smaller, failure.mode),
                None => Verdict::Passed,
            };
            match (found, of_smaller) {
                (Verdict::Interrupted, _) => return (best, failure),
                (Verdict::Failed(found), Some(of_smaller)) if found.kind == failure.kind => {
                    (best, failure, size) = (smaller, found, of_smaller);
                }
                _ => number += 1,
            }
        }
        if best == before {
            return (best, failure);
        }
    }
}

/// Hosts, bytes that they send, and the end of the run.
type Size = (u32, u64, Time);

const LARGEST: Size = (u32::MAX, u64::MAX, Time::MAX);

fn size(setup: &Setup) -> Size {
    let bytes = setup.flows.all_flows().map(|flow| flow.size).sum();
    (setup.topology.hosts, bytes, setup.limits.time_limit)
}

/// Omits a capture, a table, a key or half the lines of a file, or halves a number; `None` after the last candidate.
fn candidate(draft: &Draft, number: usize) -> Option<Draft> {
    let mut left = number;
    let mut take = || {
        let taken = left == 0;
        left = left.wrapping_sub(1);
        taken
    };
    let changed = |change: &dyn Fn(&mut Draft)| {
        let mut smaller = draft.clone();
        change(&mut smaller);
        Some(smaller)
    };
    for at in (0..draft.captures.len()).rev() {
        if take() {
            return changed(&|smaller| drop(smaller.captures.remove(at)));
        }
    }
    for at in (0..draft.sections.len()).rev() {
        if !NEEDED.contains(&draft.sections[at].header.as_str()) && take() {
            return changed(&|smaller| drop(smaller.sections.remove(at)));
        }
    }
    let unused = |name: &str| !draft.sections.iter().any(|section| section.get("path") == Some(name));
    for name in draft.files.keys().filter(|name| unused(name)) {
        if take() {
            return changed(&|smaller| drop(smaller.files.remove(name)));
        }
    }
    // Readers refuse the rest of a file that needs all of its lines.
    for (name, text) in &draft.files {
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > 2 && take() {
            let half = lines[..lines.len().div_ceil(2)].join("\n") + "\n";
            return changed(&|smaller| drop(smaller.files.insert(name.clone(), half.clone())));
        }
    }
    for at in (0..draft.sections.len()).rev() {
        for key in (0..draft.sections[at].keys.len()).rev() {
            if take() {
                return changed(&|smaller| drop(smaller.sections[at].keys.remove(key)));
            }
            if let Some(half) = halved(&draft.sections[at].keys[key].1)
                && take()
            {
                return changed(&|smaller| smaller.sections[at].keys[key].1.clone_from(&half));
            }
        }
    }
    None
}

/// Returns half of a number above one, with its unit.
fn halved(value: &str) -> Option<String> {
    let digits: String = value.trim_start_matches('"').chars().take_while(char::is_ascii_digit).collect();
    let number: u64 = digits.parse().ok().filter(|number| *number > 1)?;
    let after = value.trim_start_matches('"').chars().nth(digits.len());
    match after {
        Some('.') => None,
        _ => Some(value.replacen(&digits, &(number / 2).to_string(), 1)),
    }
}

#[test]
fn numbers_are_halved_with_their_units() {
    assert_eq!(halved("\"64KiB\"").as_deref(), Some("\"32KiB\""));
    assert_eq!(halved("7").as_deref(), Some("3"));
    assert_eq!((halved("1"), halved("0.5"), halved("\"any\"")), (None, None, None));
}
