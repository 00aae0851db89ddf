//! Catalogue and explanations of schemes, topologies, keys and so on, from the registries that the reader of scenarios uses.

use crate::{CompareParameters, MeasureParameters, PROFILES, RunParameters, library::READY_MADE, scenario::KEYS};
use anabranch_backend::{FabricParameters, MarkingParameters};
use anabranch_lb::registry::{Alias, HostParameters, SwitchParameters, aliases};
use anabranch_settings::{About, Level, Parameter, Parameters, Raw, Registry};
use anabranch_topology::{FaultParameters, LinkOverride, TopologyParameters};
use anabranch_transport::TransportParameters;
use anabranch_wire::WireParameters;
use anabranch_workload::{CommonParameters, SIZE_DISTRIBUTIONS, ServerParameters, WorkloadParameters};
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogueKind {
    /// Load balancers.
    Schemes,
    Topologies,
    /// Transports and congestion controls.
    Transports,
    /// Kinds of workload and flow-size distributions.
    Workloads,
    /// Ready-made scenarios, without those of papers.
    Scenarios,
    /// Ready-made scenarios of the papers whose claims are judged.
    PaperScenarios,
}

impl CatalogueKind {
    pub const ALL: [CatalogueKind; 6] =
        [Self::Schemes, Self::Topologies, Self::Transports, Self::Workloads, Self::Scenarios, Self::PaperScenarios];
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueEntry {
    pub name: String,
    /// Its sort, for example `host side`.
    pub sort: &'static str,
    /// Its purpose, in one line.
    pub meaning: String,
}

/// Parameters under a common header.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The table of a scenario that contains them, for example `[load_balancer.prime]`.
    pub table: String,
    pub meaning: String,
    pub parameters: Vec<Parameter>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    pub name: String,
    pub parts: Vec<Part>,
}

const KINDS: [CatalogueKind; 4] =
    [CatalogueKind::Schemes, CatalogueKind::Topologies, CatalogueKind::Transports, CatalogueKind::Workloads];

fn entry(name: &str, sort: &'static str, meaning: impl Into<String>) -> CatalogueEntry {
    CatalogueEntry { name: name.into(), sort, meaning: meaning.into() }
}

fn entries(abouts: &'static [About], sort: &'static str) -> impl Iterator<Item = CatalogueEntry> {
    abouts.iter().map(move |about| entry(about.name, sort, about.summary))
}

/// Returns all entries of a kind.
pub fn catalogue(kind: CatalogueKind) -> Vec<CatalogueEntry> {
    let mut all = Vec::new();
    match kind {
        CatalogueKind::Schemes => {
            for alias in aliases() {
                let meaning = format!("{} ({}+{})", alias.summary, alias.host, alias.switch);
                all.push(entry(alias.name, "pair", meaning));
            }
            all.extend(entries(HostParameters::all(), "host side"));
            all.extend(entries(SwitchParameters::all(), "switch side"));
        }
        CatalogueKind::Topologies => {
            all.extend(entries(TopologyParameters::ALL, "topology"));
        }
        CatalogueKind::Transports => {
            all.extend(entries(TransportParameters::ALL, "transport"));
            for (transport, control) in controls() {
                all.push(entry(
                    control.name,
                    "congestion control",
                    format!("{} ({})", control.summary, transport.name()),
                ));
            }
            all.extend(entries(MarkingParameters::ALL, "marking rule"));
            all.extend(PROFILES.iter().map(|profile| entry(profile.name, "fabric profile", profile.meaning)));
        }
        CatalogueKind::Workloads => {
            all.extend(entries(WorkloadParameters::ALL, "workload"));
            all.extend(SIZE_DISTRIBUTIONS.iter().map(|about| entry(about.name, "flow sizes", about.summary)));
        }
        CatalogueKind::Scenarios | CatalogueKind::PaperScenarios => {
            let of_papers = kind == CatalogueKind::PaperScenarios;
            let listed = READY_MADE.iter().filter(|ready| ready.is_of_paper() == of_papers);
            all.extend(listed.map(|ready| entry(ready.name, "scenario", ready.title())));
        }
    }
    all
}

/// Explains `name`: an entry of the catalogue, a section of a scenario, or a key, dotted or not, in any case; `None` if it has
/// no meaning in a scenario.
pub fn find(name: &str) -> Option<Explanation> {
    let wanted = plain(name);
    let known = names().into_iter().find(|known| plain(known) == wanted);
    let parts = match &known {
        Some(known) => [as_named(known, thing_parts(known)), section_parts(known)].concat(),
        None => Vec::new(),
    };
    let ways: [fn(&str) -> Vec<Part>; 3] = [key_parts, selector_parts, value_parts];
    let parts = ways.iter().fold(parts, |parts, way| if parts.is_empty() { way(&wanted) } else { parts });
    let name = known.unwrap_or_else(|| name.trim().to_lowercase());
    (!parts.is_empty()).then_some(Explanation { name, parts })
}

/// Returns the declared meaning of a key for the kind that its table of `scenario` has; empty if it is not declared.
pub fn meaning(key: &str, scenario: &str) -> String {
    let root = toml::Value::Table(scenario.parse().unwrap_or_default());
    let table = key.rsplit_once('.').map_or("", |(table, _)| table);
    let table = table.split('.').try_fold(&root, |value, step| match step.parse::<usize>() {
        Ok(number) => value.get(number),
        Err(_) => value.get(step),
    });
    let kind = table.and_then(|table| table.get("kind")).and_then(toml::Value::as_str);
    let parts = key_parts(&plain(key));
    let own = kind.and_then(|kind| parts.iter().find(|part| part.table.contains(&format!("\"{kind}\""))));
    let declared = own.or(parts.first()).and_then(|part| part.parameters.first());
    declared.map_or_else(String::new, |parameter| parameter.meaning.to_string())
}

impl Part {
    /// Returns the dotted path of the table, as `--set` takes it; an element of a list is the first.
    fn path(&self) -> Option<String> {
        let (_, rest) = self.table.split_once('[')?;
        let path = rest.trim_start_matches('[').split(']').next()?;
        let first = if rest.starts_with('[') { ".0" } else { "" };
        Some(format!("{path}{first}"))
    }
}

/// Returns every key with its dotted path as `--set` takes it; an element of a list is the first.
pub fn keys() -> Vec<(String, Parameter)> {
    let of = |part: Part| {
        let path = part.path().unwrap_or_default();
        part.parameters.into_iter().map(move |key| (format!("{path}.{}", key.name), key))
    };
    let mut keys: Vec<_> = reference().into_iter().flat_map(of).collect();
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    keys.dedup_by(|a, b| a.0 == b.0);
    keys
}

/// Returns the dotted path of every key, without the numbers of elements.
pub fn key_paths() -> Vec<String> {
    let mut paths: Vec<String> = keys().into_iter().map(|(path, _)| path.replace(".0", "")).collect();
    paths.sort();
    paths.dedup();
    paths
}

fn plain(name: &str) -> String {
    name.trim().trim_start_matches('[').trim_end_matches(']').to_lowercase().replace('_', "-")
}

/// Returns the parts of exactly this name, without those of sections.
fn thing_parts(name: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    if let Some(alias) = Alias::named(name) {
        let sides = format!("host side {}, switch side {}", alias.host, alias.switch);
        let fixed: Vec<String> =
            alias.fixed.iter().map(|(key, word)| format!(" It sets {key} = \"{word}\".")).collect();
        let meaning = format!("{}. A pair: {sides}.{}", capitalised(alias.summary), fixed.concat());
        parts.push(part("[load_balancer] scheme", meaning, Vec::new()));
        parts.extend(host_part(alias.host));
        parts.extend(switch_part(alias.switch));
    } else {
        parts.extend(host_part(name));
        parts.extend(switch_part(name));
    }
    parts.extend(topology_part(name));
    parts.extend(transport_parts(name));
    parts.extend(workload_parts(name));
    parts.extend(fabric_part(name));
    parts.extend(scenario_part(name));
    parts
}

/// Returns the parts of a pair of schemes with what its name sets as defaults.
fn as_named(name: &str, mut parts: Vec<Part>) -> Vec<Part> {
    let fixed = Alias::named(name).map_or(&[][..], |alias| alias.fixed);
    let sides = parts.iter_mut().filter(|part| part.table.starts_with("[load_balancer."));
    for parameter in sides.flat_map(|part| &mut part.parameters) {
        if let Some((_, word)) = fixed.iter().find(|(key, _)| *key == parameter.name) {
            parameter.default = Raw::Text((*word).into());
            parameter.source = "the name of the scheme, which sets it";
        }
    }
    parts
}

fn part(table: impl Into<String>, meaning: impl Into<String>, parameters: Vec<Parameter>) -> Part {
    Part { table: table.into(), meaning: meaning.into(), parameters }
}

fn links() -> Part {
    let meaning = "Other rates and delays for single links or for a class of links.";
    part("[[topology.link]]", meaning, LinkOverride::default().documentation())
}

fn section_parts(name: &str) -> Vec<Part> {
    let list = |kind, sort: &str| -> String {
        let named = catalogue(kind).into_iter().filter(|entry| entry.sort == sort);
        named.map(|entry| format!("  {}: {}", entry.name, entry.meaning)).collect::<Vec<_>>().join("\n")
    };
    match name {
        "topology" => {
            let meaning = format!("The graph. `kind` is one of\n{}", list(CatalogueKind::Topologies, "topology"));
            vec![part("[topology]", meaning, Vec::new()), links()]
        }
        "transport" => {
            let [kinds, controls] =
                ["transport", "congestion control"].map(|sort| list(CatalogueKind::Transports, sort));
            let meaning =
                format!("Senders and receivers. `kind` is one of\n{kinds}\n`congestion_control` is one of\n{controls}");
            vec![part("[transport]", meaning, Vec::new())]
        }
        "load_balancer" => {
            let meaning = format!(
                "Load balancer. `scheme` names a pair, or `host` and `switch` name both sides; \
                 `[load_balancer.NAME]` holds the parameters of a side. Pairs are\n{}",
                list(CatalogueKind::Schemes, "pair")
            );
            vec![part("[load_balancer]", meaning, Vec::new())]
        }
        "fabric" => {
            let profiles: Vec<String> =
                PROFILES.iter().map(|profile| format!("  {}: {}", profile.name, profile.meaning)).collect();
            let meaning = format!("Sets of defaults. `profile` is one of\n{}", profiles.join("\n"));
            vec![part("[fabric] profile", meaning, Vec::new())]
        }
        "workload" => {
            let meaning = format!("Traffic. `kind` is one of\n{}", list(CatalogueKind::Workloads, "workload"));
            vec![part("[[workload]]", meaning, CommonParameters::default().documentation())]
        }
        _ => Vec::new(),
    }
}

/// Returns every table with parameters, each once, with all of them.
pub fn reference() -> Vec<Part> {
    // Schemes share a name with other kinds (`nccl`): each part is listed with its own kind.
    let things = KINDS.into_iter().flat_map(|kind| {
        let of_schemes = matches!(kind, CatalogueKind::Schemes);
        let entries = catalogue(kind).into_iter().filter(|entry| entry.sort != "fabric profile");
        let parts = entries.flat_map(|entry| thing_parts(&entry.name));
        parts.filter(move |part| part.table.starts_with("[load_balancer") == of_schemes).collect::<Vec<_>>()
    });
    let mut parts: Vec<Part> = Vec::new();
    for part in things.chain(KEYS[2..].iter().flat_map(|name| [thing_parts(name), section_parts(name)].concat())) {
        if !part.parameters.is_empty() && !parts.iter().any(|known| known.table == part.table) {
            parts.push(part);
        }
    }
    parts
}

/// Returns the parts that contain a key: by itself (`ecn_kmin`), or dotted as `--set` takes it (`load_balancer.prime.p_ecn`).
fn key_parts(wanted: &str) -> Vec<Part> {
    let mut steps: Vec<&str> = wanted.split('.').filter(|step| step.parse::<usize>().is_err()).collect();
    let Some(key) = steps.pop() else { return Vec::new() };
    let in_steps = |part: &Part| {
        let table = plain(&part.table);
        // `topology.radix` is a key of every kind of topology; `load_balancer.prime.p_ecn` of that table alone.
        steps.iter().all(|step| table.contains(step))
    };
    let parts = reference().into_iter().filter(in_steps);
    let own = parts.map(|mut part| {
        part.parameters.retain(|parameter| plain(parameter.name) == key);
        part.meaning = String::new();
        part
    });
    own.filter(|part| !part.parameters.is_empty()).collect()
}

/// Returns the part of a section for the key that selects its kind, which no parameter is: `topology.kind`, `fabric.profile`.
fn selector_parts(wanted: &str) -> Vec<Part> {
    let steps: Vec<&str> = wanted.split('.').filter(|step| step.parse::<usize>().is_err()).collect();
    match steps[..] {
        [section, "kind" | "profile" | "scheme" | "host" | "switch"] => {
            let section = section.replace('-', "_");
            [thing_parts(&section), section_parts(&section)].concat()
        }
        _ => Vec::new(),
    }
}

/// Returns the keys that take this word.
fn value_parts(wanted: &str) -> Vec<Part> {
    let takes = |parameter: &Parameter| plain(&parameter.expected).contains(&format!("\"{wanted}\""));
    let mut parts = reference();
    parts.iter_mut().for_each(|part| part.parameters.retain(takes));
    parts.retain(|part| !part.parameters.is_empty());
    parts.iter_mut().for_each(|part| part.meaning = String::new());
    parts
}

/// Returns all names of the catalogue and of sections.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = CatalogueKind::ALL.into_iter().flat_map(catalogue).map(|entry| entry.name).collect();
    names.extend(KEYS[2..].iter().map(|name| (*name).to_string()));
    names
}

fn registry_part<T: Registry>(name: &str, table: String) -> Option<Part> {
    let kind = T::named(name).ok()?;
    Some(Part { table, meaning: kind.about().text(), parameters: kind.parameters().documentation() })
}

fn host_part(name: &str) -> Option<Part> {
    registry_part::<HostParameters>(name, format!("[load_balancer.{name}] (host side)"))
}

fn switch_part(name: &str) -> Option<Part> {
    registry_part::<SwitchParameters>(name, format!("[load_balancer.{name}] (switch side)"))
}

fn controls() -> impl Iterator<Item = (TransportParameters, &'static About)> {
    let all = TransportParameters::each().into_iter();
    all.flat_map(|transport| transport.controls().all().iter().map(move |control| (transport.clone(), control)))
}

fn transport_parts(name: &str) -> Vec<Part> {
    let own = registry_part::<TransportParameters>(name, format!("[transport] with kind = \"{name}\""));
    let mut parts = Vec::from_iter(own);
    for (mut transport, control) in controls().filter(|(_, control)| control.name == name) {
        let kind = transport.name();
        let parameters = transport.control_parameters_mut(name).map(|p| p.documentation()).unwrap_or_default();
        let table = format!("[transport.{name}] with kind = \"{kind}\", congestion_control = \"{name}\"");
        parts.push(Part { table, meaning: control.text(), parameters });
    }
    parts
}

fn topology_part(name: &str) -> Vec<Part> {
    let own = registry_part::<TopologyParameters>(name, format!("[topology] with kind = \"{name}\""));
    own.map_or_else(Vec::new, |own| vec![own, links()])
}

fn workload_parts(name: &str) -> Vec<Part> {
    if let Some(sizes) = SIZE_DISTRIBUTIONS.iter().find(|about| about.name == name) {
        return vec![part(format!("flow sizes: sizes = \"{name}\""), sizes.about().text(), Vec::new())];
    }
    let own = registry_part::<WorkloadParameters>(name, format!("[[workload]] with kind = \"{name}\""));
    let common =
        part("any [[workload]]", "Optional keys of every workload.", CommonParameters::default().documentation());
    own.map_or_else(Vec::new, |own| vec![own, common])
}

fn fabric_part(name: &str) -> Option<Part> {
    let (table, meaning, parameters): (_, _, &dyn Parameters) = match name {
        "fabric" => {
            let names: Vec<_> = PROFILES.iter().map(|p| p.name).collect();
            let meaning = format!(
                "Buffers, marking, trimming, classes and their scheduling. `profile` names a set of defaults: {}.",
                names.join(", ")
            );
            return Some(part("[fabric]", meaning, FabricParameters::default().documentation()));
        }
        "servers" => (
            "[servers]",
            "Servers: hosts of the topology are their NICs, the traffic is between their GPUs. Without it hosts are endpoints.",
            &ServerParameters::default(),
        ),
        "run" => ("[run]", "End of a run, and flows in the statistics.", &RunParameters::default()),
        "measure" => ("[measure]", "Optional measurements.", &MeasureParameters::default()),
        "compare" => (
            "[compare]",
            "Defaults of `anabranch compare` for arguments that are not given.",
            &CompareParameters::default(),
        ),
        "wire" => (
            "[wire]",
            "Settings of real networks only (`serve`, `send`, testbeds); simulations do not read them.",
            &WireParameters::default(),
        ),
        "fault" => ("[[fault]]", "Faults of links and switches, with their times.", &FaultParameters::default()),
        _ => match PROFILES.iter().find(|profile| profile.name == name) {
            Some(profile) => {
                let table = format!("[fabric] with profile = \"{name}\"");
                return Some(part(table, profile.meaning, (profile.fabric)().documentation()));
            }
            None => {
                let table = format!("[fabric.{name}] with marking = \"{name}\"");
                return registry_part::<MarkingParameters>(name, table);
            }
        },
    };
    Some(part(table, meaning, parameters.documentation()))
}

fn scenario_part(name: &str) -> Option<Part> {
    let ready = READY_MADE.iter().find(|r| r.name == name)?;
    Some(part("a ready-made scenario", ready.shows(), Vec::new()))
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().collect::<String>() + characters.as_str()).unwrap_or_default()
}

impl Explanation {
    /// Returns it with the keys of `levels` alone, and with the flags that show others. A key by name stays.
    #[must_use]
    pub fn at(mut self, levels: &[Level]) -> Self {
        for part in self.parts.iter_mut().filter(|part| !part.meaning.is_empty()) {
            let hidden = [(Level::Expert, "--expert"), (Level::Reading, "--readings")].map(|(level, flag)| {
                let number =
                    part.parameters.iter().filter(|key| key.level == level && !levels.contains(&level)).count();
                (number > 0).then(|| format!("{flag} ({number})"))
            });
            let hidden: Vec<String> = hidden.into_iter().flatten().collect();
            part.parameters.retain(|key| levels.contains(&key.level));
            if !hidden.is_empty() {
                part.meaning += &format!("\nMore keys: {}.", hidden.join(", "));
            }
        }
        self
    }

    /// Formats the explanation as text, in lines of at most `columns` columns.
    pub fn text(&self, columns: usize) -> String {
        let wrapped = |text: &str, indent: &str| wrapped(text, indent, columns.min(WIDEST));
        let mut out = format!("{}\n", self.name);
        for part in &self.parts {
            out += &format!("\n{}", wrapped(&part.table, ""));
            for line in part.meaning.lines() {
                out += &wrapped(line, if line.starts_with("  ") { "      " } else { "    " });
            }
            for parameter in &part.parameters {
                let default = match &parameter.default {
                    Raw::Text(text) if text.is_empty() => "none".to_string(),
                    raw => raw.to_string(),
                };
                let level = match parameter.level {
                    Level::User => String::new(),
                    level => format!("  ({})", level.word()),
                };
                out += &format!("\n    {} = {default}{level}\n", parameter.name);
                out += &wrapped(parameter.meaning, "        ");
                out += &wrapped(&format!("Takes {}.", parameter.expected), "        ");
                out += &wrapped(&format!("Default from: {}.", parameter.source), "        ");
                // Users who explain a single key are about to set it.
                if let Some(path) = part.path().filter(|_| part.meaning.is_empty()) {
                    let value = if default == "none" { "VALUE" } else { &default };
                    out += &format!("        --set {path}.{}={value}\n", parameter.name);
                }
            }
        }
        out
    }

    pub fn json(&self) -> Value {
        let parts: Vec<Value> = self
            .parts
            .iter()
            .map(|part| {
                let path = part.path();
                let parameters: Vec<Value> =
                    part.parameters.iter().map(|parameter| parameter_json(parameter, path.as_deref())).collect();
                json!({ "table": part.table, "meaning": part.meaning, "parameters": parameters })
            })
            .collect();
        json!({ "name": self.name, "parts": parts })
    }
}

fn parameter_json(parameter: &Parameter, path: Option<&str>) -> Value {
    json!({
        "name": parameter.name,
        "key": path.map(|path| format!("{path}.{}", parameter.name)),
        "meaning": parameter.meaning,
        "expected": parameter.expected,
        "default": raw_json(&parameter.default),
        "source": parameter.source,
        "level": parameter.level.word(),
    })
}

pub(crate) fn raw_json(raw: &Raw) -> Value {
    match raw {
        Raw::Bool(b) => json!(b),
        Raw::Int(i) => json!(i),
        Raw::Float(x) => json!(x),
        Raw::Text(text) => json!(text),
        Raw::List(items) => Value::Array(items.iter().map(raw_json).collect()),
    }
}

/// Maximum width in columns; longer lines are hard to read.
const WIDEST: usize = 100;

fn wrapped(text: &str, indent: &str, columns: usize) -> String {
    let options = textwrap::Options::new(columns).initial_indent(indent).subsequent_indent(indent).break_words(false);
    let options = options.word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options).trim_end().to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_means_what_its_kind_declares() {
        let scenario =
            "[topology]\nkind = \"fat-tree\"\n[[workload]]\nkind = \"incast\"\n[[workload]]\nkind = \"poisson\"\n";
        let of = |table: &str, name: &str| {
            let part = reference().into_iter().find(|part| part.table.contains(table)).unwrap();
            part.parameters.into_iter().find(|parameter| parameter.name == name).unwrap().meaning
        };
        assert_eq!(meaning("workload.1.load", scenario), of("\"poisson\"", "load"));
        assert_eq!(meaning("topology.link_rate", scenario), of("\"fat-tree\"", "link_rate"));
        assert_eq!(meaning("topology.unheard", scenario), "");
    }
}
