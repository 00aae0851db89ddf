//! Claim sets under other settings: the studies with other values of their keys, and other seeds.

use super::{claim_set::ClaimSet, model::Study};
use anabranch_scenario::{error::ScenarioError, library, section::did_you_mean};
use anabranch_settings::nearest;

impl ClaimSet {
    /// Returns the claim set with `changes` (`KEY=VALUE`) in every study that has the key and does not sweep it, and with seeds from
    /// `first_seed` on.
    ///
    /// # Errors
    /// [`ScenarioError`] for a change that is no `KEY=VALUE`, or that no study takes.
    pub fn with_changes(&self, changes: &[String], first_seed: Option<u64>) -> Result<Self, ScenarioError> {
        let mut other = self.clone();
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
                        study.change(change);
                        taken = true;
                    }
                    Ok(false) => {}
                    Err(error) => refused = Some(error),
                }
            }
            if !taken {
                let reason = refused.map_or("every study sweeps it".to_string(), |error| error.to_string());
                let message = format!("--set {change}: no study of {} takes it: {reason}", self.paper.name);
                let keys = self.open.iter().map(|open| open.key.as_str());
                return Err(did_you_mean(ScenarioError::new(message), nearest(key.trim(), keys)));
            }
        }
        if let Some(seed) = first_seed {
            other.studies.iter_mut().for_each(|study| study.change(&format!("seed={seed}")));
        }
        Ok(other)
    }
}

impl Study {
    /// Adds a setting that precedes all others, at both scales.
    pub(crate) fn change(&mut self, change: &str) {
        self.set.push(change.to_string());
        if let Some(quick) = &mut self.quick {
            quick.set.push(change.to_string());
        }
    }

    /// Returns `true` if the study runs several values of a key.
    pub(crate) fn sweeps(&self, key: &str) -> bool {
        let quick = self.quick.iter().filter_map(|quick| quick.over.as_ref()).flatten();
        self.over.iter().chain(quick).any(|axis| axis.key == key)
    }
}

/// Returns `true` if the scenario of a study takes the change, `false` if the study sweeps the key.
fn takes(study: &Study, key: &str, change: &str) -> Result<bool, ScenarioError> {
    if study.sweeps(key) {
        return Ok(false);
    }
    let changes: Vec<String> = study.set.iter().cloned().chain([change.to_string()]).collect();
    library::load(&study.scenario, &changes, None).map(|_| true)
}
