//! Makes a failing scenario smaller while it still fails in the same way.

use crate::{
    check::{Failure, check},
    draft::Draft,
};
use anabranch_backend::Setup;
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Tables that a scenario cannot do without.
const NEEDED: [&str; 2] = ["", "[topology]"];

/// The smallest scenario found within `patience` that fails as `draft` does, and how it fails.
pub(crate) fn shrink(
    draft: &Draft,
    failure: Failure,
    folder: &Path,
    limit: Duration,
    patience: Duration,
) -> (Draft, Failure) {
    let until = Instant::now() + patience;
    let (mut best, mut failure) = (draft.clone(), failure);
    // A key that is taken away can leave a default that is larger.
    let mut size = draft.load(folder).map_or((u32::MAX, u64::MAX), |(_, setup)| size(&setup));
    loop {
        let before = best.clone();
        let mut number = 0;
        // A candidate that was taken leaves another one in its place.
        while let Some(smaller) = candidate(&best, number) {
            if Instant::now() >= until {
                return (best, failure);
            }
            let of_smaller = smaller.load(folder).ok().map(|(_, setup)| self::size(&setup));
            let found = match of_smaller.filter(|(hosts, bytes)| *hosts <= size.0 && *bytes <= size.1) {
                Some(_) => check(&smaller, folder, &[failure.way], limit).filter(|found| found.kind == failure.kind),
                None => None,
            };
            match (found, of_smaller) {
                (Some(found), Some(of_smaller)) => (best, failure, size) = (smaller, found, of_smaller),
                _ => number += 1,
            }
        }
        if best == before {
            return (best, failure);
        }
    }
}

/// Hosts, and bytes that they send.
fn size(setup: &Setup) -> (u32, u64) {
    (setup.topology.hosts, setup.flows.flows.iter().map(|flow| flow.size).sum())
}

/// The scenario with a table or a key less or a number halved; `None` where there are no more candidates.
fn candidate(draft: &Draft, number: usize) -> Option<Draft> {
    let mut left = number;
    let mut take = || {
        let taken = left == 0;
        left = left.wrapping_sub(1);
        taken
    };
    for at in (0..draft.sections.len()).rev() {
        if !NEEDED.contains(&draft.sections[at].header.as_str()) && take() {
            let mut smaller = draft.clone();
            smaller.sections.remove(at);
            return Some(smaller);
        }
    }
    for at in (0..draft.sections.len()).rev() {
        for key in (0..draft.sections[at].keys.len()).rev() {
            if take() {
                let mut smaller = draft.clone();
                smaller.sections[at].keys.remove(key);
                return Some(smaller);
            }
            if let Some(half) = halved(&draft.sections[at].keys[key].1)
                && take()
            {
                let mut smaller = draft.clone();
                smaller.sections[at].keys[key].1 = half;
                return Some(smaller);
            }
        }
    }
    None
}

/// Half of a number above one, with its unit.
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
