//! Explanations of all names: those of scenarios, those of results, and words that lead to them.

use anabranch_report::{METRIC, Term, heading, terms};
use anabranch_scenario::{
    Explanation, ScenarioError,
    explain::{self as scenario, Part, key_paths},
    synonyms::{SYNONYMS, Synonym, synonym},
};
use anabranch_settings::{nearest, nearest_few};

/// Number of names that an error lists.
const NEAR: usize = 4;

fn plain(name: &str) -> String {
    let words = name.trim().trim_start_matches('[').trim_end_matches(']').to_lowercase().replace(['_', ','], " ");
    words.split_whitespace().collect::<Vec<_>>().join("-")
}

/// Returns the forms in which a word on the screen may be known: as it is, without a unit in brackets, in the other number.
fn forms(name: &str) -> Vec<String> {
    let without_unit = name.trim().split_once([' ', '\n']).and_then(|_| name.rfind(['[', '('])).map(|at| &name[..at]);
    let words: Vec<String> = std::iter::once(name).chain(without_unit).map(plain).collect();
    let other = |word: &String| word.strip_suffix('s').map_or_else(|| format!("{word}s"), str::to_string);
    words.iter().cloned().chain(words.iter().map(other)).collect()
}

/// Explains a scheme, topology, transport, workload, scenario, section or key, a column or metric of results, or a word that
/// leads to them.
///
/// Fails where the name has no meaning: the nearest names, those that begin with it or contain it first.
pub fn explain(name: &str) -> Result<Explanation, ScenarioError> {
    for word in forms(name) {
        let found = scenario::find(&word);
        // A key's name is as it was typed: the word has no underscores.
        let known = found.as_ref().map(|found| found.name.clone()).filter(|known| *known != word);
        let own = known.unwrap_or_else(|| name.trim().to_lowercase());
        let mut parts = found.map_or_else(Vec::new, |found| found.parts);
        parts.extend(result_parts(&word));
        // What a word means, before the keys and columns of that name.
        parts.splice(0..0, synonym(&word).map(synonym_part));
        if !parts.is_empty() {
            return Ok(Explanation { name: own, parts });
        }
    }
    Err(unknown(name, &plain(name)))
}

/// Columns, keys and metrics called `word`, or `FILE.NAME`, or the last part of whose name it is.
fn result_parts(word: &str) -> Vec<Part> {
    let is_meant = |term: &Term| {
        let name = plain(&term.name);
        let of_file = word.split_once('.').is_some_and(|(file, rest)| rest == name && term.place.contains(file));
        let is_heading = term.place == METRIC
            && (plain(&term.meaning) == word || heading(&term.name).is_some_and(|heading| plain(heading) == word));
        name == word || of_file || is_heading || name.rsplit_once('.').is_some_and(|(_, last)| last == word)
    };
    let part = |term: Term| {
        let unit = if term.unit.is_empty() { String::new() } else { format!(" ({})", term.unit) };
        let end = if term.meaning.ends_with('.') { "" } else { "." };
        Part {
            table: format!("{}: {}", term.place, term.name),
            meaning: format!("{}{unit}{end}", term.meaning),
            parameters: Vec::new(),
        }
    };
    terms().into_iter().filter(is_meant).map(part).collect()
}

fn synonym_part(synonym: &Synonym) -> Part {
    let see: Vec<String> = synonym.see.iter().map(|name| format!("  anabranch explain {name}")).collect();
    let meaning = format!("{}\nSee\n{}", synonym.meaning, see.join("\n"));
    Part { table: synonym.words.join(", "), meaning, parameters: Vec::new() }
}

/// Returns every name that [`explain`] explains.
pub fn names() -> Vec<String> {
    let mut names = scenario::names();
    names.extend(terms().into_iter().map(|term| term.name));
    names.extend(SYNONYMS.iter().flat_map(|synonym| synonym.words.iter().map(|word| (*word).to_string())));
    names.extend(scenario::reference().iter().flat_map(|part| part.parameters.iter().map(|p| p.name.to_string())));
    names.sort();
    names.dedup();
    names
}

fn unknown(name: &str, word: &str) -> ScenarioError {
    let (paths, names) = (key_paths(), names());
    let section = word.split('.').next().unwrap_or(word);
    // A key of a section that exists, with the names of the sections around it or without: its other keys.
    let within = |path: &&str| format!(".{}", plain(path)).contains(&format!(".{section}."));
    let keys: Vec<&str> = paths.iter().map(String::as_str).filter(within).collect();
    let names = names.iter().map(String::as_str);
    let near = match word.contains('.') && !keys.is_empty() {
        true => nearest_few(name, keys, NEAR),
        // A word that resembles nothing is no typing error.
        false if nearest(name, names.clone()).is_none() => {
            return ScenarioError::new(format!("unknown name `{name}`"))
                .help("no name resembles it; `anabranch list` shows what there is to list");
        }
        false => nearest_few(name, names, NEAR),
    };
    let quoted: Vec<String> = near.iter().skip(1).map(|name| format!("`{name}`")).collect();
    ScenarioError::new(format!("unknown name `{name}`")).help(format!(
        "did you mean `{}`? Near are {} too; `anabranch list` shows what there is to list",
        near.first().map_or("", String::as_str),
        quoted.join(", ")
    ))
}

/// Returns the metrics and columns of results, for `list`.
pub fn result_terms(metrics: bool) -> Vec<Term> {
    terms().into_iter().filter(|term| (term.place == METRIC) == metrics).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synonyms_lead_to_names_that_exist() {
        let lines = include_str!("../../scenario/src/synonyms.txt").lines().count();
        assert_eq!(SYNONYMS.len(), lines - 1, "a line that is no synonym");
        for synonym in SYNONYMS.iter() {
            for name in &synonym.see {
                assert!(explain(name).is_ok_and(|found| !found.parts.is_empty()), "{name}");
            }
            for word in &synonym.words {
                assert!(explain(word).unwrap().text(80).contains(synonym.see[0]), "{word}");
            }
        }
    }

    #[test]
    fn results_are_explained_and_keys_have_full_paths() {
        let text = |name: &str| explain(name).unwrap().text(100);
        assert!(text("fct_rx_ps").contains("column of flows.csv"), "{}", text("fct_rx_ps"));
        assert!(text("slowdown_p99").contains(METRIC));
        assert!(text("p_holm").contains("comparison.csv"));
        assert!(text("flows.finished").contains("summary.json"));
        // Every column of every table, those of calls of schemes too.
        for (table, column) in anabranch_results::TABLES.iter().flat_map(|t| t.columns.iter().map(move |c| (t, c))) {
            assert!(
                text(column.name).contains(column.meaning.split(' ').next().unwrap()),
                "{}: {}",
                table.name,
                column.name
            );
        }
        for key in ["link_rate", "topology.link_rate", "load_balancer.prime.p_ecn"] {
            assert_eq!(text(key).lines().next(), Some(key));
        }
        assert!(text("load").contains("--set workload.0.load=0.5"), "{}", text("load"));
        assert!(text("p_ecn").contains("--set load_balancer.prime.p_ecn="), "{}", text("p_ecn"));
    }

    #[test]
    fn every_key_of_a_checked_scenario_and_every_choice_is_explained() {
        let scenario = anabranch_scenario::library::load("first-run", &[], None).unwrap();
        let (text, mut section) = (scenario.to_toml(), String::new());
        let mut keys = Vec::new();
        for line in text.lines() {
            if line.starts_with('[') {
                section = format!("{}.", line.trim_matches(['[', ']']));
            } else if let Some((key, _)) = line.split_once(" = ") {
                keys.push(format!("{section}{key}"));
            }
        }
        assert!(keys.len() > 100, "{}", keys.len());
        let unknown: Vec<_> = keys.iter().filter(|key| explain(key).is_err()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let expected: Vec<String> =
            scenario::reference().into_iter().flat_map(|part| part.parameters).map(|p| p.expected).collect();
        let choices: std::collections::BTreeSet<&str> =
            expected.iter().flat_map(|text| text.split('"').skip(1).step_by(2)).collect();
        let unknown: Vec<_> = choices.iter().filter(|choice| explain(choice).is_err()).collect();
        assert!(choices.len() > 50 && unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn unknown_names_list_what_begins_with_them() {
        let remedy = |name: &str| explain(name).unwrap_err().remedy().unwrap().to_string();
        assert!(remedy("slowdown_p9").starts_with("did you mean `slowdown_p9"), "{}", remedy("slowdown_p9"));
        assert!(remedy("topology.link_rte").contains("`topology.link_rate`"), "{}", remedy("topology.link_rte"));
        assert!(remedy("prim").starts_with("did you mean `prime`"), "{}", remedy("prim"));
    }
}
