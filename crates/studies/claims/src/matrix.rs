//! The matrix: every scheme on every ground. A study with `schemes = ["all"]` runs all that fit its scenario; its table states
//! which schemes do not differ, why others do not run, and what each scheme needs.

use super::{
    Figure, Rows, Study, StudyPlan,
    every::{EVERY, schemes_for},
    figure::Layout,
    judge::ratio,
};
use anabranch_lb::registry::{HostParameters, SwitchParameters, TagKind, aliases, resolve};
use anabranch_scenario::library;
use anabranch_statistics::{Pairs, mean};
use std::collections::BTreeMap;

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

/// Returns what follows the table: what each of its schemes needs, why some do not run, and what is missing.
pub(crate) fn notes(layout: &Layout<'_>, rows: &BTreeMap<String, Rows>) -> String {
    let mut needed: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    // By reason and scheme the grounds.
    let mut reasons: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    let mut missing: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    let mut named: Vec<String> = vec![];
    for plan in layout.plans() {
        let Study { id, label, scenario, set, schemes, .. } = &plan.study;
        let there: usize = rows.get(id).map_or(0, |rows| rows.runs());
        let planned = plan.sweep.order().len();
        if there < planned {
            missing.entry((there, planned)).or_default().push(label);
        }
        let has_run =
            |entry: &&String| rows.get(id).is_some_and(|rows| rows.rows.iter().any(|row| row.scheme == **entry));
        for entry in plan.sweep.plan.entries.iter().filter(has_run) {
            if !named.contains(entry) {
                named.push(entry.clone());
            }
        }
        let Ok(base) = library::load(scenario, set, None) else { continue };
        for (scheme, why) in schemes_for(&base).map(|(_, unfit)| unfit).unwrap_or_default() {
            if [EVERY.to_string(), format!("{EVERY}:{scheme}")].iter().any(|name| schemes.contains(name)) {
                let first = why.split(';').next().unwrap_or_default().to_string();
                // The scheme is named before, and several have one reason.
                let first = match first.split_once("` ") {
                    Some((name, why)) if name.starts_with("host scheme `") || name.starts_with("switch scheme `") => {
                        why
                    }
                    _ => &first,
                };
                let first = first.to_string();
                reasons.entry((first, scheme)).or_default().push(label);
            }
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
        let mut lines: BTreeMap<(String, Vec<&str>), Vec<String>> = BTreeMap::new();
        for ((why, scheme), grounds) in reasons {
            lines.entry((why, grounds)).or_default().push(scheme);
        }
        text += "\nCells that cannot be:\n\n";
        for ((why, grounds), schemes) in lines {
            text += &format!("- {}: {why}", schemes.join(", "));
            if grounds.len() < layout.plans().len() {
                text += &format!(" ({})", grounds.join("; "));
            }
            text.push('\n');
        }
    }
    if !missing.is_empty() {
        let of = |((there, planned), grounds): (&(usize, usize), &Vec<&str>)| {
            format!("{there} of {planned} runs of {}", grounds.join("; "))
        };
        let missing: Vec<String> = missing.iter().map(of).collect();
        text += &format!("\n**Incomplete**: {}. No mean over grounds is shown.\n", missing.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_those_of_the_capabilities() {
        let of = |name: &str| resolve(name).map(|(host, switch)| needs(&host, &switch)).unwrap();
        assert_eq!(of("ecmp"), "nothing");
        assert_eq!(of("drill"), "its own switches");
        assert_eq!(of("prime"), "entropy values that name uplinks, a receiver that takes early packets");
        assert_eq!(of("hopper"), "probes");
    }
}
