//! Claim sets under other settings: the studies with other values of their keys, and other seeds.

use super::{claim_set::ClaimSet, model::Study};
use anabranch_scenario::{error::ScenarioError, library, section::did_you_mean};
use anabranch_settings::nearest;

/// Returns the claim set with `changes` (`KEY=VALUE`) in every study that has the key and does not sweep it, and with seeds from
/// `first_seed` on.
///
/// # Errors
/// [`ScenarioError`] for a change that is no `KEY=VALUE`, or that no study takes.
pub fn with_changes(
    claim_set: &ClaimSet,
    changes: &[String],
    first_seed: Option<u64>,
) -> Result<ClaimSet, ScenarioError> {
    let mut other = claim_set.clone();
    for change in changes {
        let Some((key, _)) = change.split_once('=') else {
            let message = format!("--set {change}: there is no `=`");
            return Err(ScenarioError::new(message).help("write --set KEY=VALUE"));
        };
        let mut refused = None;
        let mut taken = false;
        for study in &mut other.studies {
            match takes(study, key.trim(), change) {
                Ok(true) => {
                    add(study, change);
                    taken = true;
                }
                Ok(false) => {}
                Err(error) => refused = Some(error),
            }
        }
        if !taken {
            let reason = refused.map_or("every study sweeps it".to_string(), |error| error.to_string());
            let message = format!("--set {change}: no study of {} takes it: {reason}", claim_set.paper.name);
            let keys = claim_set.open.iter().map(|open| open.key.as_str());
            return Err(did_you_mean(ScenarioError::new(message), nearest(key.trim(), keys)));
        }
    }
    if let Some(seed) = first_seed {
        other.studies.iter_mut().for_each(|study| add(study, &format!("seed={seed}")));
    }
    Ok(other)
}

/// Adds a setting that precedes all others, at both scales.
fn add(study: &mut Study, change: &str) {
    study.set.push(change.to_string());
    if let Some(quick) = &mut study.quick {
        quick.set.push(change.to_string());
    }
}

/// Returns `true` if a study runs several values of a key.
pub(crate) fn sweeps(study: &Study, key: &str) -> bool {
    let quick = study.quick.iter().filter_map(|quick| quick.over.as_ref()).flatten();
    study.over.iter().chain(quick).any(|axis| axis.key == key)
}

/// Returns `true` if the scenario of a study takes the change, `false` if the study sweeps the key.
fn takes(study: &Study, key: &str, change: &str) -> Result<bool, ScenarioError> {
    if sweeps(study, key) {
        return Ok(false);
    }
    let changes: Vec<String> = study.set.iter().cloned().chain([change.to_string()]).collect();
    library::load(&study.scenario, &changes, None).map(|_| true)
}
