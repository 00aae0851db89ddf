//! `[[workload]]`: its kind, the kind's parameters and the common ones.

use super::{LoadBalancers, transport};
use crate::{Mistakes, Place, ScenarioError, Section, Tree, did_you_mean, document, kinds, list, section::Both};
use anabranch_backend::FabricParameters;
use anabranch_backend::LoadBalancer;
use anabranch_settings::{Parameters, Raw, nearest};
use anabranch_transport::TransportParameters;
use anabranch_workload::{
    CommonParameters, FlowSet, GeneratedAs, MAX_WORKLOADS, WorkloadError, WorkloadParameters, names,
};
use std::collections::{BTreeMap, HashSet};
use toml::Table;

/// A part of the traffic.
#[derive(Clone, Debug)]
pub struct Workload {
    pub kind: WorkloadParameters,
    pub common: CommonParameters,
    /// Its name, given or made from its kind.
    pub name: String,
}

/// Returns the place of a key of workload `number`, or else of the workload.
fn place(tree: &Tree, number: usize, key: &str) -> Option<Place> {
    tree.place_in(&format!("workload[{number}]"), Some(key))
}

pub(crate) fn workload_error(error: &WorkloadError, number: usize, tree: &Tree) -> ScenarioError {
    let number = error.workload.unwrap_or(number);
    let at = tree.place_in(&format!("workload[{number}]"), error.key.as_deref());
    ScenarioError::new(format!("[[workload]] {}: {error}", number + 1)).maybe_at(at)
}

/// Reads all workloads and checks each by itself and against the classes and load balancers, where these are known.
pub(crate) fn read(
    sections: Vec<Section<'_>>,
    fabric: Option<&FabricParameters>,
    balancers: Option<&LoadBalancers>,
    tree: &Tree,
) -> Result<Vec<Workload>, ScenarioError> {
    if sections.is_empty() {
        return Err(ScenarioError::new("the scenario has no [[workload]], so it sends nothing")
            .help(format!("add `[[workload]]` with `kind = ...`; kinds are {}", kinds::<WorkloadParameters>())));
    }
    if let Some(beyond) = sections.get(MAX_WORKLOADS) {
        let found = sections.len();
        return Err(beyond
            .error(format!("found {found} workloads, at most {MAX_WORKLOADS} are allowed"))
            .help("put the flows into a file: kind = \"file\" takes any number of them"));
    }
    let (mut read, mut mistakes) = (Vec::new(), Mistakes::default());
    for (number, section) in sections.into_iter().enumerate() {
        read.extend(mistakes.ok(read_one(section, number, fabric, balancers, tree)));
    }
    let read = mistakes.or(read)?;
    let given = names(&read.iter().map(|(kind, common)| (kind.name(), common)).collect::<Vec<_>>());
    let mut seen = HashSet::new();
    for (number, name) in given.iter().enumerate() {
        if !seen.insert(name) {
            let message = format!("[[workload]] {}: `name`: another workload has the name `{name}`", number + 1);
            let at = place(tree, number, "name");
            return Err(ScenarioError::new(message).maybe_at(at).help("give each workload a different name"));
        }
    }
    Ok(read.into_iter().zip(given).map(|((kind, common), name)| Workload { kind, common, name }).collect())
}

fn read_one(
    mut section: Section<'_>,
    number: usize,
    fabric: Option<&FabricParameters>,
    balancers: Option<&LoadBalancers>,
    tree: &Tree,
) -> Result<(WorkloadParameters, CommonParameters), ScenarioError> {
    let Some(mut kind) = section.kind::<WorkloadParameters>()? else {
        return Err(section.no_kind::<WorkloadParameters>());
    };
    refuse_plugin(&section, kind.name(), number)?;
    let mut common = CommonParameters::default();
    section.fill(&mut Both(kind.parameters_mut(), &mut common), &["kind"])?;
    let checked = kind.check().and_then(|()| common.check());
    checked.map_err(|error| workload_error(&error, number, tree))?;
    if common.overlap && !kind.is_job() {
        let message =
            format!("[[workload]] {}: `overlap`: has no effect with {}, expected false", number + 1, kind.name());
        let help = "only jobs are warned about: collectives, training, GOAL schedules";
        return Err(ScenarioError::new(message).maybe_at(place(tree, number, "overlap")).help(help));
    }
    let mut mistakes = Mistakes::default();
    for (key, class) in [("class", &common.class), ("split_class", &common.split_class)] {
        if let (Some(class), Some(fabric)) = (class, fabric) {
            let checked = check_class(class, fabric, &format!("[[workload]] {}: `{key}`", number + 1));
            mistakes.ok(checked.map_err(|error| error.maybe_at(place(tree, number, key))));
        }
    }
    for (key, name) in [("load_balancer", &common.load_balancer), ("split_load_balancer", &common.split_load_balancer)]
    {
        if let (Some(name), Some(balancers)) = (name, balancers) {
            let named = balancers.named(name);
            let wrong = |error| ScenarioError::new(format!("[[workload]] {}: `{key}`: {error}", number + 1));
            mistakes.ok(named.map_err(|error| wrong(error).maybe_at(place(tree, number, key))));
        }
    }
    mistakes.or((kind, common))
}

/// Checks the congestion controls that workloads name against those of the transport.
pub(crate) fn check_controls(
    workloads: &[Workload],
    transport: &TransportParameters,
    tree: &Tree,
) -> Result<(), ScenarioError> {
    let mut mistakes = Mistakes::default();
    for (number, workload) in workloads.iter().enumerate() {
        let Some(control) = &workload.common.congestion_control else { continue };
        let checked = transport::with_control(transport, control).map_err(|error| {
            let message = format!("[[workload]] {}: {error}", number + 1);
            ScenarioError::new(message).maybe_at(place(tree, number, "congestion_control"))
        });
        mistakes.ok(checked);
    }
    mistakes.or(())
}

/// Returns the transport of each workload in `flows` that has a congestion control of its own.
pub(crate) fn own_transports(
    workloads: &[Workload],
    transport: &TransportParameters,
    flows: &FlowSet,
) -> BTreeMap<u32, TransportParameters> {
    let own = workloads.iter().filter(|workload| workload.common.congestion_control.is_some());
    let own: BTreeMap<String, &Workload> = own.flat_map(|own| own.names().map(move |name| (name, own))).collect();
    let of = |name: &str| {
        let control = own.get(name)?.common.congestion_control.as_deref()?;
        transport::with_control(transport, control).ok()
    };
    let all = flows.workloads.iter().enumerate();
    all.filter_map(|(number, label)| Some((number as u32, of(&label.name)?))).collect()
}

/// Refuses a plugin in a scenario: scenarios are data, and native code is named on the command line alone.
fn refuse_plugin(section: &Section<'_>, kind: &str, number: usize) -> Result<(), ScenarioError> {
    let Some(node) = section.peek("plugin").filter(|_| kind == "nccl") else { return Ok(()) };
    let message = format!("[[workload]] {}: `plugin`: a scenario does not name code to run", number + 1);
    let help = "name the plugin on the command line: `anabranch testbed run SCENARIO --plugin PATH`";
    Err(ScenarioError::new(message).at(node.key.clone()).help(help))
}

fn load_of(kind: &WorkloadParameters) -> Option<f64> {
    match kind {
        WorkloadParameters::Poisson(poisson) => Some(poisson.load),
        _ => None,
    }
}

fn check_class(class: &str, fabric: &FabricParameters, what: &str) -> Result<(), ScenarioError> {
    if fabric.classes.iter().any(|c| c == class) {
        return Ok(());
    }
    let names: Vec<&str> = fabric.classes.iter().map(String::as_str).collect();
    let message = format!("{what}: found \"{class}\", which is no class; `classes` of [fabric] has {}", list(&names));
    Err(did_you_mean(ScenarioError::new(message), nearest(class, names)))
}

pub(crate) fn warnings(workloads: &[Workload]) -> Vec<String> {
    let mut warnings = Vec::new();
    for workload in workloads {
        if let Some(load) = load_of(&workload.kind).filter(|load| *load > 1.0) {
            warnings.push(format!(
                "workload `{}` has a load of {load}, above the network's capacity, so completion times depend on its duration",
                workload.name
            ));
        }
    }
    if !workloads.iter().any(|workload| workload.common.measured) {
        warnings.push("no workload has measured = true: the statistics will be empty".into());
    }
    warnings
}

impl Workload {
    /// Returns the load balancers it names, in the order of their use; `None` means the scenario's.
    pub(crate) fn load_balancers(&self) -> Vec<Option<&str>> {
        let own = self.common.load_balancer.as_deref();
        match self.common.split_share > 0.0 {
            true => vec![own, self.common.split_load_balancer.as_deref().or(own)],
            false => vec![own],
        }
    }

    /// Returns the names of its flows in results: its own, and that of the flows that are split off.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let split = (self.common.split_share > 0.0).then(|| self.split_name());
        [self.name.clone()].into_iter().chain(split)
    }

    fn split_name(&self) -> String {
        self.common.split_name.clone().unwrap_or_else(|| format!("{}-split", self.name))
    }

    /// Returns name, class and load balancer of its flows; `used` are the load balancers of the setup, the scenario's first.
    pub(crate) fn sent_as(&self, fabric: &FabricParameters, used: &[LoadBalancer]) -> GeneratedAs {
        let class =
            |name: Option<&str>| name.and_then(|name| fabric.classes.iter().position(|c| c == name)).unwrap_or(0) as u8;
        let balancer = |name: Option<&str>| {
            name.and_then(|name| used.iter().position(|b| b.name == name.trim())).unwrap_or(0) as u16
        };
        let common = &self.common;
        let own = GeneratedAs {
            name: self.name.clone(),
            class: class(common.class.as_deref()),
            load_balancer: balancer(common.load_balancer.as_deref()),
            measured: common.measured,
            split: None,
        };
        if common.split_share == 0.0 {
            return own;
        }
        let split = GeneratedAs {
            name: self.split_name(),
            class: common.split_class.as_deref().map_or(own.class, |name| class(Some(name))),
            load_balancer: common.split_load_balancer.as_deref().map_or(own.load_balancer, |name| balancer(Some(name))),
            measured: common.measured,
            split: None,
        };
        GeneratedAs { split: Some((common.split_share, Box::new(split))), ..own }
    }

    /// Returns the section with its name and class filled in; keys without a value are omitted.
    pub(crate) fn table(&self, fabric: &FabricParameters) -> Table {
        let mut table = document::table([("kind", Raw::Text(self.kind.name().into()))], self.kind.parameters());
        let class = self.common.class.as_ref().or(fabric.classes.first()).cloned();
        let filled = CommonParameters { name: Some(self.name.clone()), class, ..self.common.clone() };
        let given = filled.entries().into_iter().filter(|(_, raw)| *raw != Raw::Text(String::new()));
        table.extend(given.map(|(key, raw)| (key.to_string(), document::value(&raw))));
        table
    }
}
