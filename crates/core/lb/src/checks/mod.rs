//! Checks of what every scheme must keep, of this crate or another, with random events: any order, any tags, late and twice.
//!
//! ```
//! # use anabranch_lb::{checks, registry::{HostParameters, SwitchParameters}};
//! #[global_allocator]
//! static ALLOCATOR: checks::CountingAllocator = checks::CountingAllocator;
//! # fn main() {
//! checks::host(&HostParameters::named("ops").unwrap(), 0..20).unwrap();
//! checks::switch(&SwitchParameters::named("ar").unwrap(), 0..20).unwrap();
//! # }
//! ```

mod counting;
mod host;
mod switch;

pub use crate::host::testing::{feedback, flow};
pub use counting::CountingAllocator;
pub use host::host;
pub use switch::switch;

use anabranch_random::Stream;
use anabranch_settings::{Raw, Registry};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};
use thiserror::Error;

/// What a scheme must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Every path chosen is there.
    PathExists,
    /// The limits of its interface: numbers of probes, times not in the past, queues that wait.
    Interface,
    /// No panic, for any feedback.
    NoPanic,
    /// The same calls give the same choices: no clock, no random numbers but those of its seed, nothing global.
    SameChoices,
    /// No allocation per packet.
    NoAllocation,
    /// No memory kept of a flow that has closed.
    NoLeak,
}

/// A check that a scheme fails.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{scheme}` fails {check:?} with seed {seed}: {what}")]
pub struct Broken {
    /// The scheme.
    pub scheme: &'static str,
    /// The check.
    pub check: Check,
    /// Seed of the events and the scheme that shows it.
    pub seed: u64,
    /// Event and finding.
    pub what: String,
}

type Finding = (Check, String);

/// Fails `check` unless `fine`.
fn ensure(fine: bool, check: Check, what: impl FnOnce() -> String) -> Result<(), Finding> {
    if fine { Ok(()) } else { Err((check, what())) }
}

/// Runs `body`, which notes the event that it processes. Findings and panics name it.
fn watched<T>(
    (scheme, seed): (&'static str, u64),
    body: impl FnOnce(&Cell<usize>) -> Result<T, Finding>,
) -> Result<T, Broken> {
    let event = Cell::new(0);
    let played = catch_unwind(AssertUnwindSafe(|| body(&event))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
        Err((Check::NoPanic, text))
    });
    played.map_err(|(check, what)| Broken { scheme, check, seed, what: format!("event {}: {what}", event.get()) })
}

fn differs<T: PartialEq + std::fmt::Debug>(first: &[T], again: &[T]) -> Result<(), Finding> {
    let at = first.iter().zip(again).position(|(first, again)| first != again);
    let Some(at) = at else { return Ok(()) };
    let what = "a clock, random numbers not of its seed, or something global";
    Err((Check::SameChoices, format!("choice {at} was {:?} and then {:?}: it depends on {what}", first[at], again[at])))
}

/// Returns the scheme with its defaults, and with each parameter that is a choice of words at each of them.
pub fn variants<Scheme: Registry + Clone>(scheme: &Scheme) -> Vec<Scheme> {
    let mut all = vec![scheme.clone()];
    for parameter in scheme.parameters().documentation() {
        let Raw::Text(_) = parameter.default else { continue };
        for word in parameter.expected.split('"').skip(1).step_by(2) {
            let mut other = scheme.clone();
            if other.parameters_mut().set(parameter.name, &Raw::Text(word.into())).is_ok() {
                all.push(other);
            }
        }
    }
    all
}

fn draw(seed: u64, purpose: &str) -> Stream {
    Stream::keyed(seed, 0, purpose)
}
