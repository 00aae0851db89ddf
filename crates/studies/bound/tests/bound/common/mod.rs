//! Scenarios with some of their keys changed.

use anabranch_backend::Setup;
use anabranch_scenario::library;

/// Returns the setup of a ready-made scenario or file with changed keys, for a seed.
pub(crate) fn setup(name: &str, changes: &[&str], seed: u64) -> Setup {
    let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
    let scenario = library::load(name, &changes, Some(seed)).unwrap_or_else(|error| panic!("{name}: {error}"));
    scenario.setup(seed).unwrap_or_else(|error| panic!("{name}: {error}"))
}
