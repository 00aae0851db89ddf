//! Schemes that fit a scenario, and those of a list of schemes with `all`.

use anabranch_lb::registry::{aliases, resolve};
use anabranch_scenario::{Scenario, ScenarioError, did_you_mean};
use anabranch_settings::nearest;

/// All schemes, in a list of schemes.
pub(crate) const EVERY: &str = "all";

/// Schemes that do not run on a ground, each with the reason.
type Unfit = Vec<(String, String)>;

/// Returns the schemes that fit a scenario, without other names of the same, latency weights where they are the default (`-w`)
/// and uniform weights (`-u`), and those that do not fit it.
///
/// # Errors
/// [`ScenarioError`] if its graph cannot be built.
pub(crate) fn schemes_for(scenario: &Scenario) -> Result<(Vec<String>, Unfit), ScenarioError> {
    let topology = scenario.topology()?;
    let (mut fit, mut unfit, mut seen) = (vec![], vec![], vec![]);
    for alias in aliases() {
        let Ok(pair) = resolve(alias.name) else { continue };
        // Latency weights are the papers' choice, and the default of their schemes.
        let is_default = |name: &str| aliases().iter().any(|a| a.name == name && a.switch == alias.switch);
        if alias.name.ends_with("-u") || alias.name.strip_suffix("-w").is_some_and(is_default) || seen.contains(&pair) {
            continue;
        }
        seen.push(pair);
        match scenario.check_scheme(&topology, alias.name) {
            Ok(()) => fit.push(alias.name.to_string()),
            Err(error) => unfit.push((alias.name.to_string(), error.to_string())),
        }
    }
    Ok((fit, unfit))
}

/// Replaces [`EVERY`] by the schemes that fit, or by those of them that are named: `all:SCHEME`. None: the ground is omitted.
pub(crate) fn expand(schemes: Vec<String>, scenario: &Scenario) -> Result<Vec<String>, ScenarioError> {
    let named: Vec<&str> = schemes.iter().filter_map(|scheme| scheme.strip_prefix("all:")).collect();
    if let Some(unknown) = named.iter().find(|name| !aliases().iter().any(|alias| alias.name == **name)) {
        let names = aliases().iter().map(|alias| alias.name);
        let error = ScenarioError::new(format!("--schemes: unknown scheme `{unknown}`"));
        return Err(did_you_mean(error, nearest(unknown, names)));
    }
    if named.is_empty() && !schemes.iter().any(|scheme| scheme == EVERY) {
        return Ok(schemes);
    }
    let (mut fit, _) = schemes_for(scenario)?;
    fit.retain(|scheme| named.is_empty() || named.contains(&scheme.as_str()));
    Ok(fit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_scenario::library;

    fn scenario(changes: &[&str]) -> Scenario {
        library::load("tiny", &changes.iter().map(ToString::to_string).collect::<Vec<_>>(), None).unwrap()
    }

    #[test]
    fn every_scheme_runs_or_says_why_not() {
        for (changes, runs, not) in [
            (&[][..], "braid", "spritz-scout"),
            (&["topology={kind=\"dragonfly\",p=2,a=4,h=2}"], "spritz-scout", "braid"),
        ] {
            let scenario = scenario(changes);
            let (fit, unfit) = schemes_for(&scenario).unwrap();
            assert!(fit.iter().any(|scheme| scheme == runs), "{fit:?}");
            let why = unfit.iter().find(|(scheme, _)| scheme == not).map(|(_, why)| why.as_str());
            assert!(why.is_some_and(|why| why.contains("topology")), "{why:?}");
            // One name of each, no variants with uniform weights, and none is missing.
            assert!(fit.iter().all(|scheme| scenario.with_scheme(scheme).is_ok() && !scheme.ends_with("-u")));
            let known: Vec<_> = aliases().iter().filter_map(|alias| resolve(alias.name).ok()).collect();
            for pair in known {
                let of = |name: &String| resolve(name).is_ok_and(|other| other == pair);
                let named = fit.iter().chain(unfit.iter().map(|(name, _)| name)).any(of);
                let weighted = |a: &anabranch_lb::registry::Alias| a.name.ends_with("-u") || a.name.ends_with("-w");
                let weights = aliases().iter().any(|a| weighted(a) && resolve(a.name).is_ok_and(|o| o == pair));
                assert!(named || weights);
            }
        }
    }

    #[test]
    fn some_schemes_are_those_that_fit() {
        let all = |names: &[&str]| names.iter().map(|name| format!("all:{name}")).collect::<Vec<_>>();
        let tree = scenario(&[]);
        assert_eq!(expand(all(&["reps", "spritz-scout", "ecmp"]), &tree).unwrap(), ["ecmp", "reps"]);
        assert_eq!(expand(all(&["spritz-scout"]), &tree).unwrap(), [""; 0], "the ground is omitted");
        assert_eq!(expand(vec!["mine".into()], &tree).unwrap(), ["mine"]);
        let error = expand(all(&["brade"]), &tree).unwrap_err();
        assert!(error.to_string().contains("brade") && error.remedy().unwrap().contains("braid"), "{error}");
    }
}
