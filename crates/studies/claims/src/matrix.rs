//! The matrix: every scheme on every ground. A study with `schemes = ["all"]` runs all that fit its scenario; its table states
//! which schemes do not differ, why others do not run, and what each scheme needs.

use super::{Figure, Rows, Study, StudyPlan, figure::Layout, judge::ratio};
use anabranch_lb::registry::{HostParameters, SwitchParameters, TagKind, aliases, resolve};
use anabranch_scenario::{Scenario, ScenarioError, did_you_mean, library};
use anabranch_settings::nearest;
use anabranch_statistics::{Pairs, mean};
use std::collections::BTreeMap;

/// All schemes, in a list of schemes.
pub(crate) const EVERY: &str = "all";

/// Schemes that do not run on a ground, each with the reason.
type Unfit = Vec<(String, String)>;

/// Returns the schemes that fit a scenario, without other names of the same and variants with uniform weights (`-u`), and
/// those that do not fit it.
///
/// # Errors
/// [`ScenarioError`] if its graph cannot be built.
pub(crate) fn schemes_for(scenario: &Scenario) -> Result<(Vec<String>, Unfit), ScenarioError> {
    let topology = scenario.topology()?;
    let (mut fit, mut unfit, mut seen) = (vec![], vec![], vec![]);
    for alias in aliases() {
        let Ok(pair) = resolve(alias.name) else { continue };
        // Latency weights are the papers' choice.
        if alias.name.ends_with("-u") || seen.contains(&pair) {
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

/// Returns what a scheme needs from switches and hosts, in a few words.
fn needs(host: &HostParameters, switch: &SwitchParameters) -> String {
    let (of_host, of_switch) = (host.capabilities(), switch.capabilities());
    let mut needs = vec![];
    match of_host.tags() {
        TagKind::MultiPart => needs.push("entropy values that name uplinks"),
        TagKind::Guided | TagKind::Category => needs.push("source routing"),
        TagKind::Entropy => {}
    }
    if of_host.leaves_choice_to_switches() && switch.name() != "ecmp" {
        needs.push("its own switches");
    }
    if of_switch.fills_header() {
        needs.push("headers of its own");
    }
    if of_host.probe_payload().is_some() {
        needs.push("probes");
    }
    if !of_host.keeps_path() && !of_host.leaves_choice_to_switches() {
        needs.push("a receiver that takes early packets");
    }
    if needs.is_empty() { "nothing".into() } else { needs.join(", ") }
}

/// Returns the letters of a ground's schemes for the last metric of the figure: two share one if they do not differ significantly (Holm
/// over all pairs of the ground). Empty without enough seeds.
pub(crate) fn letters(figure: &Figure, plan: &StudyPlan, rows: &Rows) -> BTreeMap<String, String> {
    let none = BTreeMap::new();
    let Some(metric) = figure.metrics.last() else { return none };
    let coordinate = [("study".to_string(), plan.study.id.clone())];
    let base = figure.relative_to.as_ref().map(|base| rows.series(&coordinate, base, metric.name()));
    let seeds = &plan.sweep.plan.seeds;
    let values = |scheme: &String| -> Vec<Option<f64>> {
        let own = rows.series(&coordinate, scheme, metric.name());
        let of = |seed: &u64| {
            let value = *own.get(seed)?;
            base.as_ref().map_or(Some(value), |base| Some(ratio(value, *base.get(seed)?)))
        };
        seeds.iter().map(of).map(|value| value.filter(|value| value.is_finite())).collect()
    };
    let schemes: Vec<&String> = plan.sweep.plan.entries.iter().collect();
    let all: Vec<(&String, Vec<Option<f64>>)> = schemes.into_iter().map(|scheme| (scheme, values(scheme))).collect();
    let all: Vec<_> = all.into_iter().filter(|(_, values)| values.iter().all(Option::is_some)).collect();
    let centre = |at: &usize| mean(&all[*at].1.iter().flatten().copied().collect::<Vec<_>>()).unwrap_or(f64::INFINITY);
    let mut ranked: Vec<usize> = (0..all.len()).collect();
    ranked.sort_by(|a, b| centre(a).total_cmp(&centre(b)));
    let pairs = Pairs::of(&all.iter().map(|(_, values)| values.clone()).collect::<Vec<_>>(), None);
    let Some(letters) = pairs.letters(&ranked) else { return none };
    ranked.into_iter().zip(letters).map(|(at, letters)| (all[at].0.clone(), letters)).collect()
}

/// Returns what follows the table: what each scheme needs, why some do not run, and what is missing.
pub(crate) fn notes(layout: &Layout<'_>, rows: &BTreeMap<String, Rows>) -> String {
    let mut needed: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let (mut reasons, mut missing): (BTreeMap<String, Vec<String>>, Vec<String>) = Default::default();
    let mut named: Vec<String> = vec![];
    for plan in layout.plans() {
        let Study { id, label, scenario, set, .. } = &plan.study;
        let there: usize = rows.get(id).map_or(0, |rows| rows.runs());
        if there < plan.sweep.order().len() {
            missing.push(format!("{label} ({there} of {} runs)", plan.sweep.order().len()));
        }
        for entry in &plan.sweep.plan.entries {
            if !named.contains(entry) {
                named.push(entry.clone());
            }
        }
        let Ok(base) = library::load(scenario, set, None) else { continue };
        for (scheme, why) in schemes_for(&base).map(|(_, unfit)| unfit).unwrap_or_default() {
            let first = why.split(';').next().unwrap_or_default().to_string();
            reasons.entry(format!("{first} ({label})")).or_default().push(scheme);
        }
    }
    for scheme in &named {
        if let Ok((host, switch)) = resolve(scheme) {
            let alias = aliases().iter().find(|alias| alias.name == scheme).map_or("", |alias| alias.name);
            needed.entry(needs(&host, &switch)).or_default().push(alias);
        }
    }
    let mut text = String::from("What each needs:\n\n");
    for (needs, schemes) in needed {
        text += &format!("- {needs}: {}\n", schemes.join(", "));
    }
    if !reasons.is_empty() {
        // The same reason on several grounds has one line.
        let mut by_schemes: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        reasons.into_iter().for_each(|(why, schemes)| by_schemes.entry(schemes).or_default().push(why));
        text += "\nCells that cannot be:\n\n";
        for (schemes, whys) in by_schemes {
            text += &format!("- {}: {}\n", schemes.join(", "), whys[0]);
        }
    }
    if !missing.is_empty() {
        text += &format!("\n**Incomplete**: {}. No mean over grounds is shown.\n", missing.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
                let uniform =
                    aliases().iter().any(|a| a.name.ends_with("-u") && resolve(a.name).is_ok_and(|o| o == pair));
                assert!(named || uniform);
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

    #[test]
    fn needs_are_those_of_the_capabilities() {
        let of = |name: &str| resolve(name).map(|(host, switch)| needs(&host, &switch)).unwrap();
        assert_eq!(of("ecmp"), "nothing");
        assert_eq!(of("drill"), "its own switches");
        assert_eq!(of("prime"), "entropy values that name uplinks, a receiver that takes early packets");
        assert_eq!(of("hopper"), "probes");
    }
}
