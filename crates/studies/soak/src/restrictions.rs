//! Restrictions of a soak: load balancers, a kind of topology or one topology.

use super::Section;
use anabranch_lb::registry::{HostParameters, SwitchParameters, aliases, resolve};
use anabranch_scenario::{
    ScenarioError, Tree, did_you_mean, library, list,
    scenario::{FolderFile, topology_of},
};
use anabranch_settings::{nearest, nearest_few};
use anabranch_topology::TopologyParameters;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

#[derive(Clone, Debug, Default)]
pub struct Restrictions {
    /// Load balancers to draw from; empty: all.
    pub(super) schemes: Vec<String>,
    pub(super) topology: TopologyChoice,
    /// The restrictions as command line options, each after a space.
    pub(super) flags: String,
}

#[derive(Clone, Debug, Default)]
pub(super) enum TopologyChoice {
    #[default]
    Any,
    Kind(&'static str),
    /// A given topology, as a section of a scenario, with the files it names.
    Given {
        sections: Vec<Section>,
        files: BTreeMap<String, String>,
    },
}

impl Restrictions {
    /// Returns the restrictions of `--scheme` and `--topology`. A scheme is a load balancer, or a host or switch scheme
    /// with all its pairs. A topology is a kind, a scenario whose `[topology]` is used, or a file that `kind = "file"`
    /// reads. An error names the nearest.
    pub fn new(scheme: Option<&str>, topology: Option<&str>) -> Result<Self, ScenarioError> {
        let flag = |name: &str, value: Option<&str>| {
            value.map_or_else(String::new, |value| format!(" --{name} {}", anabranch_scenario::machine::quoted(value)))
        };
        Ok(Restrictions {
            schemes: scheme.map_or_else(|| Ok(Vec::new()), schemes)?,
            topology: topology.map_or(Ok(TopologyChoice::Any), topology_choice)?,
            flags: flag("scheme", scheme) + &flag("topology", topology),
        })
    }
}

fn schemes(name: &str) -> Result<Vec<String>, ScenarioError> {
    let name = name.trim();
    let wrong = |error: String| ScenarioError::new(format!("`--scheme {name}`: {error}"));
    match resolve(name) {
        Ok(_) => return Ok(vec![name.into()]),
        Err(error) if name.contains('+') => return Err(wrong(error.to_string())),
        Err(_) => {}
    }
    let pairs = HostParameters::all()
        .iter()
        .flat_map(|host| SwitchParameters::all().iter().map(move |switch| (host.name, switch.name)));
    let of = pairs.filter(|(host, switch)| name == *host || name == *switch);
    let pairs: Vec<String> =
        of.map(|(host, switch)| format!("{host}+{switch}")).filter(|p| resolve(p).is_ok()).collect();
    if !pairs.is_empty() {
        return Ok(pairs);
    }
    let sides = HostParameters::all().iter().chain(SwitchParameters::all()).map(|about| about.name);
    let names: Vec<&str> = aliases().iter().map(|alias| alias.name).chain(sides).collect();
    let few = nearest_few(name, names.iter().copied(), 3).join(", ");
    let message = format!("unknown load balancer, host scheme or switch scheme; the nearest are {few}");
    let error = wrong(message).help("`anabranch list schemes` lists all of them; a pair is HOST+SWITCH");
    Err(did_you_mean(error, nearest(name, names)))
}

fn topology_choice(name: &str) -> Result<TopologyChoice, ScenarioError> {
    if let Some(kind) = TopologyParameters::ALL.iter().find(|kind| kind.name == name) {
        return Ok(TopologyChoice::Kind(kind.name));
    }
    let ready_made = library::READY_MADE.iter().any(|ready| ready.name == name);
    let path = Path::new(name);
    if path.is_file() || ready_made {
        let (tree, folder) = match ready_made || path.extension().is_some_and(|ending| ending == "toml") {
            true => {
                let (tree, _, folder) = library::find(name)?;
                (tree, folder)
            }
            false => (of_file(path)?, PathBuf::new()),
        };
        let (table, file) = topology_of(&tree, &folder).map_err(|error| error.of(&format!("`--topology {name}`")))?;
        return Ok(given(&table, file));
    }
    let kinds: Vec<&str> = TopologyParameters::ALL.iter().map(|kind| kind.name).collect();
    let what = if path.exists() { "is not a readable file" } else { "is no file" };
    let message = format!(
        "`--topology {name}`: {name} {what}, no kind of topology ({}) and no ready-made scenario",
        list(&kinds)
    );
    let names = kinds.into_iter().chain(library::READY_MADE.iter().map(|ready| ready.name));
    let help = "name a kind, a scenario whose [topology] is used, or a file in the format of ConWeave, htsim or an adjacency list";
    Err(did_you_mean(ScenarioError::new(message).help(help), nearest(name, names)))
}

fn of_file(path: &Path) -> Result<Tree, ScenarioError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut section = toml::Table::new();
    section.insert("kind".into(), "file".into());
    section.insert("path".into(), path.to_string_lossy().into_owned().into());
    let mut root = toml::Table::new();
    root.insert("topology".into(), section.into());
    Tree::parse("--topology", &root.to_string())
}

/// Returns a topology for drafts; `file` is the file of `path`.
fn given(table: &toml::Table, file: Option<FolderFile>) -> TopologyChoice {
    let mut files = BTreeMap::new();
    let keys = |table: &toml::Table| {
        let plain = table.iter().filter(|(_, value)| !value.is_table() && !is_tables(value));
        plain.map(|(key, value)| (key.clone(), value.to_string())).collect::<Vec<_>>()
    };
    let mut main = Section { header: "[topology]".into(), keys: keys(table) };
    if let Some(file) = file {
        let name = format!("topology.{}", if file.ending.is_empty() { "txt" } else { &file.ending });
        main = main.text("path", &name);
        files.insert(name, file.text);
    }
    let links = table.get("link").and_then(toml::Value::as_array).into_iter().flatten();
    let links = links.filter_map(toml::Value::as_table);
    let links = links.map(|link| Section { header: "[[topology.link]]".into(), keys: keys(link) });
    TopologyChoice::Given { sections: [main].into_iter().chain(links).collect(), files }
}

fn is_tables(value: &toml::Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().any(toml::Value::is_table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_side_selects_all_pairs() {
        assert_eq!(Restrictions::new(Some("prime"), None).expect("an alias").schemes, ["prime"]);
        assert_eq!(Restrictions::new(Some("ops+drill"), None).expect("a pair").schemes, ["ops+drill"]);
        // Every side has its own name or an alias.
        for about in HostParameters::all().iter().chain(SwitchParameters::all()) {
            let found = Restrictions::new(Some(about.name), None).expect("a scheme").schemes;
            assert!(!found.is_empty() && found.iter().all(|pair| resolve(pair).is_ok()), "{}: {found:?}", about.name);
        }
    }

    #[test]
    fn wrong_names_suggest_the_nearest() {
        let message_of = |scheme, topology| {
            let error = Restrictions::new(scheme, topology).expect_err("a mistake");
            format!("{error} {}", error.remedy().unwrap_or_default())
        };
        assert!(message_of(Some("prme"), None).contains("prime"), "{}", message_of(Some("prme"), None));
        assert!(message_of(Some("ops+dril"), None).contains("did you mean `drill`?"));
        assert!(message_of(None, Some("dragonfy")).contains("dragonfly"), "{}", message_of(None, Some("dragonfy")));
        assert!(message_of(None, Some("/")).contains("is not a readable file"));
    }
}
