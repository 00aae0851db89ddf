//! Claim sets under other settings: the studies with other values of their keys, and other seeds.

use super::{claim_set::ClaimSet, model::Study};
use anabranch_scenario::{error::ScenarioError, library, section::did_you_mean, tree::Place};
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
        if let key @ ("load_balancer.scheme" | "load_balancer.host" | "load_balancer.switch") = key.trim() {
            let message = format!("--set {change}: `{key}` has no effect: studies name their load balancers");
            return Err(ScenarioError::new(message)
                .help("change `schemes` of a study in a copy of the claim files, and give it with --claims DIR"));
        }
        match apply(&mut other, change) {
            Applied::Taken => other.changes.push(change.clone()),
            Applied::Swept => {
                let studies = sweeping(claim_set, key.trim()).join(", ");
                let name = claim_set.paper.name;
                let message = format!("--set {change}: the studies of {name} that have the key sweep it: {studies}");
                let help = "they keep their values: change `over` of these studies in a copy of the claim files, and give it with --claims DIR";
                return Err(ScenarioError::new(message).help(help));
            }
            Applied::Refused(error) => {
                let message = format!("--set {change}: no study of {} takes it: {error}", claim_set.paper.name);
                let keys = claim_set.open.iter().map(|open| open.key.as_str());
                // A known key is spelled right: its value is wrong, as the reason states.
                let near = nearest(key.trim(), keys).filter(|near| near != key.trim() && error.is_unknown_key());
                let remedy = error.remedy().map(str::to_string);
                let error = ScenarioError::new(message);
                return Err(match (remedy, near) {
                    (Some(remedy), _) => error.help(remedy),
                    (None, near) => did_you_mean(error, near),
                });
            }
        }
    }
    if let Some(seed) = first_seed {
        let change = format!("seed={seed}");
        other.studies.iter_mut().for_each(|study| add(study, &change));
        other.changes.push(change);
    }
    Ok(other)
}

/// What the studies of a claim set do with a change.
enum Applied {
    /// One at least takes it.
    Taken,
    /// None takes it; those that have the key sweep it.
    Swept,
    /// None takes it.
    Refused(ScenarioError),
}

fn apply(claim_set: &mut ClaimSet, change: &str) -> Applied {
    let key = change.split('=').next().unwrap_or_default().trim();
    let (mut taken, mut swept) = (false, false);
    let mut refused: Option<ScenarioError> = None;
    for study in &mut claim_set.studies {
        match takes(study, key, change) {
            Ok(true) => {
                add(study, change);
                taken = true;
            }
            Ok(false) => swept = true,
            // The refusal of a value is a better reason than the lack of the key.
            Err(error) if refused.as_ref().is_none_or(ScenarioError::is_unknown_key) => refused = Some(error),
            Err(_) => {}
        }
    }
    match refused {
        _ if taken => Applied::Taken,
        Some(error) if !swept || !error.is_unknown_key() => Applied::Refused(error),
        _ => Applied::Swept,
    }
}

/// Returns the studies of a claim set that sweep a key, and keep their values under a change of it.
pub fn sweeping<'c>(claim_set: &'c ClaimSet, key: &str) -> Vec<&'c str> {
    claim_set.studies.iter().filter(|study| sweeps(study, key)).map(|study| study.id.as_str()).collect()
}

/// Checks that a study takes each value of the open parameters, and the settings of each reading.
///
/// A reading that claims name is tried in their studies. [`with_changes`] would refuse a value only when a claim is judged under it.
///
/// # Errors
/// [`ScenarioError`] with the place in the claim file.
pub fn check_open(claim_set: &ClaimSet) -> Result<(), ScenarioError> {
    let refused = |by: String, error: &ScenarioError, place: &Place| {
        let placed = ScenarioError::new(format!("{by}: no study takes it: {error}")).at(place.clone());
        error.remedy().map(str::to_string).into_iter().fold(placed, ScenarioError::help)
    };
    let with_studies = |ids: &dyn Fn(&Study) -> bool| ClaimSet {
        studies: claim_set.studies.iter().filter(|study| ids(study)).cloned().collect(),
        ..claim_set.clone()
    };
    for open in &claim_set.open {
        for value in &open.values {
            let change = format!("{}={value}", open.key);
            if let Some(error) = refusal(&claim_set.studies, &change) {
                return Err(refused(format!("[[open]]: {change}"), &error, &open.place));
            }
        }
    }
    for reading in claim_set.readings.iter().filter(|reading| !reading.set.is_empty()) {
        let claims = claim_set.claims.iter().filter(|claim| claim.readings.contains(&reading.id));
        let mut scopes: Vec<Vec<&String>> =
            claims.map(|claim| claim.studies.iter().chain(&claim.quick_studies).collect()).collect();
        scopes.sort();
        scopes.dedup();
        if scopes.is_empty() {
            scopes.push(claim_set.studies.iter().map(|study| &study.id).collect());
        }
        for scope in scopes {
            let mut own = with_studies(&|study| scope.contains(&&study.id));
            for change in &reading.set {
                if let Applied::Refused(error) = apply(&mut own, change) {
                    return Err(refused(format!("reading `{}`: {change}", reading.id), &error, &reading.place));
                }
            }
        }
    }
    Ok(())
}

/// Returns why no study takes a change, whether it sweeps the key or not; `None` if one does.
fn refusal(studies: &[Study], change: &str) -> Option<ScenarioError> {
    let mut refused: Option<ScenarioError> = None;
    for study in studies {
        match loads(study, change) {
            Ok(()) => return None,
            Err(error) if refused.as_ref().is_none_or(ScenarioError::is_unknown_key) => refused = Some(error),
            Err(_) => {}
        }
    }
    refused
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
    loads(study, change).map(|()| true)
}

fn loads(study: &Study, change: &str) -> Result<(), ScenarioError> {
    let changes: Vec<String> = study.set.iter().cloned().chain([change.to_string()]).collect();
    let scenario = library::load(&study.scenario, &changes, None)?;
    if change.starts_with("fault.") {
        // A change of a fault makes none where no link fails.
        let fault: Vec<&str> = change.split(['.', '=']).take(2).collect();
        let fault = fault.join(".");
        if !has(&library::load(&study.scenario, &study.set, None)?.to_toml(), &fault) {
            return Err(ScenarioError::of_unknown_key(format!("study `{}` has no `{fault}`", study.id)));
        }
        // A fault of two links takes no fraction of them, which only its topology shows.
        scenario.setup(scenario.seed)?;
    }
    Ok(())
}

/// Returns `true` if the text of a scenario has the key.
pub(crate) fn has(text: &str, key: &str) -> bool {
    let Ok(document) = text.parse::<toml::Table>() else { return false };
    let document = toml::Value::Table(document);
    let mut parts = key.split('.');
    let at = parts.try_fold(&document, |at, part| match part.parse::<usize>() {
        Ok(index) => at.get(index),
        Err(_) => at.get(part),
    });
    at.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim_set::claim_sets;

    #[test]
    fn a_fraction_of_failed_links_leaves_studies_that_count_them() {
        let set = &claim_sets("prime", None).unwrap()[0];
        let changed = with_changes(set, &["fault.0.fraction=0.1".to_string()], None).unwrap();
        let study = |set: &ClaimSet, id: &str| set.studies.iter().find(|study| study.id == id).unwrap().set.clone();
        assert_eq!(study(&changed, "failed-known"), study(set, "failed-known"), "two links fail there");
        assert_eq!(study(&changed, "perm-128"), study(set, "perm-128"), "no link fails there");
        assert!(study(&changed, "degraded").contains(&"fault.0.fraction=0.1".to_string()));
    }
}
