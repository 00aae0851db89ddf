//! `[topology]`: its kind, the kind's parameters, and `[[topology.link]]` overrides.

use super::{files::Folder, memory::Budget};
use crate::{ScenarioError, Section, Tree, document, kinds};
use anabranch_random::name_key;
use anabranch_settings::Raw;
use anabranch_topology::{
    Guidance, Guide, LinkOverride, NodeId, NodeKind, Topology, TopologyError, TopologyParameters,
};
use anabranch_units::Rate;
use anabranch_workload::{HostView, LowDiameter, ServerParameters};
use std::sync::Arc;
use toml::Table;

#[derive(Clone, Debug)]
pub(crate) struct TopologySection {
    pub(crate) parameters: TopologyParameters,
    overrides: Vec<LinkOverride>,
}

pub(crate) fn read(section: Option<Section<'_>>) -> Result<TopologySection, ScenarioError> {
    let Some(mut section) = section else {
        return Err(ScenarioError::new("the scenario has no [topology]")
            .help(format!("add `[topology]` with `kind = ...`; kinds are {}", kinds::<TopologyParameters>())));
    };
    let Some(mut parameters) = section.kind::<TopologyParameters>()? else {
        return Err(section.no_kind::<TopologyParameters>());
    };
    let overrides = section
        .tables("link", "topology.link")?
        .into_iter()
        .map(|link| {
            let mut settings = LinkOverride::default();
            link.fill(&mut settings, &[]).map(|()| settings)
        })
        .collect::<Result<_, _>>()?;
    let has_planes = |parameters: &TopologyParameters| {
        parameters.parameters().documentation().iter().any(|parameter| parameter.name == "planes")
    };
    if !has_planes(&parameters)
        && let Some(node) = section.take("planes")
    {
        let kinds = TopologyParameters::ALL.iter().filter_map(|kind| TopologyParameters::named(kind.name).ok());
        let trees: Vec<&str> = kinds.filter(has_planes).map(|kind| kind.name()).collect();
        let message = format!(
            "[topology]: `planes`: {} has one plane; planes are copies of a tree, of {}",
            parameters.name(),
            trees.join(", ")
        );
        return Err(ScenarioError::new(message).at(node.key.clone()));
    }
    section.fill(parameters.parameters_mut(), &["kind", "link"])?;
    Ok(TopologySection { parameters, overrides })
}

impl TopologySection {
    pub(crate) fn build(&self, folder: &Folder, budget: &Budget, tree: &Tree) -> Result<Topology, ScenarioError> {
        let wrong = |table: &str, title: &str, error: TopologyError| {
            ScenarioError::new(format!("{title}: {error}")).maybe_at(tree.place_in(table, error.key.as_deref()))
        };
        let mut topology = self
            .parameters
            .build(&|path| folder.read(path, budget))
            .map_err(|error| wrong("topology", "[topology]", error))?;
        for (number, settings) in self.overrides.iter().enumerate() {
            let (table, title) = (format!("topology.link[{number}]"), format!("[[topology.link]] {}", number + 1));
            topology.apply(settings).map_err(|error| wrong(&table, &title, error))?;
        }
        Ok(topology)
    }

    pub(crate) fn table(&self, files: impl Fn(&str) -> String) -> Table {
        let mut parameters = self.parameters.clone();
        if let TopologyParameters::File(file) = &mut parameters {
            file.path = files(&file.path);
        }
        let mut table = document::table([("kind", Raw::Text(parameters.name().into()))], parameters.parameters());
        if !self.overrides.is_empty() {
            let links: Vec<Table> = self.overrides.iter().map(|settings| document::table([], settings)).collect();
            table.insert("link".into(), links.into());
        }
        table
    }
}

/// Describes the endpoints of the traffic: the hosts, or the GPUs of `servers`, each with a share of its NIC's rate.
pub(crate) fn host_view(
    topology: &Topology,
    classes: &[String],
    flow_memory: u64,
    servers: Option<&ServerParameters>,
    templates: bool,
) -> HostView {
    let hosts = topology.hosts;
    let groups = if topology.groups.is_empty() { groups(topology) } else { topology.groups.clone() };
    let group_of = |host: u32| groups[(topology.edge_switch(host).0 - hosts) as usize];
    let endpoints = servers.map_or(hosts, |servers| servers.endpoints(hosts));
    let nic_of = |endpoint: u32| servers.map_or(endpoint, |servers| servers.nic_of(endpoint));
    let key_of = |endpoint: u32| match servers {
        None => topology.key(NodeId(endpoint)),
        Some(_) => name_key(&format!("gpu{endpoint}")),
    };
    let sharers = servers.map_or(1, |servers| u64::from(servers.gpus / servers.nics));
    let rate_of = |host: u32| Rate((topology.host_rates(host).0.0 / sharers).max(1));
    let low_diameter = topology.guidance.map(|guidance| Arc::new(Guided::new(topology, guidance, servers)) as _);
    HostView {
        hosts: endpoints,
        leaf_of: (0..endpoints).map(|endpoint| topology.edge_switch(nic_of(endpoint)).0 - hosts).collect(),
        group_of: (0..endpoints).map(|endpoint| group_of(nic_of(endpoint))).collect(),
        host_key: (0..endpoints).map(key_of).collect(),
        nic_rate: (0..endpoints).map(|endpoint| rate_of(nic_of(endpoint))).collect(),
        oversubscription: topology.oversubscription(),
        classes: classes.to_vec(),
        flow_memory,
        low_diameter,
        servers: servers.cloned(),
        templates,
    }
}

#[derive(Debug)]
struct Guided {
    topology: Topology,
    guide: Option<Arc<Guide>>,
    servers: Option<ServerParameters>,
}

impl Guided {
    fn new(topology: &Topology, guidance: Guidance, servers: Option<&ServerParameters>) -> Self {
        let guide = if guidance == Guidance::Dragonfly { topology.guide() } else { None };
        Guided { topology: topology.clone(), guide, servers: servers.cloned() }
    }
}

impl LowDiameter for Guided {
    fn is_dragonfly(&self) -> bool {
        self.guide.is_some()
    }
    fn groups(&self) -> u32 {
        self.topology.groups.iter().max().map_or(0, |last| last + 1)
    }
    fn adversarial_pairs(&self, seed: u64) -> Vec<(u32, u32)> {
        // Of the GPUs that share a NIC, the first sends and receives.
        let of = |host: u32| self.servers.as_ref().map_or(host, |servers| servers.gpu_of(host));
        self.topology.adversarial_pairs(seed).into_iter().map(|(src, dst)| (of(src), of(dst))).collect()
    }
    fn gateway_leaf(&self, from_group: u32, to_group: u32) -> Option<u32> {
        let (owner, _) = self.guide.as_ref()?.gateway(from_group, to_group)?;
        Some(owner.0 - self.topology.hosts)
    }
}

/// Groups of a topology without any: switches that reach each other below the top tier, or each switch in two tiers.
fn groups(topology: &Topology) -> Vec<u32> {
    let hosts = topology.hosts;
    let tier = |node: NodeId| match topology.node(node).kind {
        NodeKind::Host => 0,
        NodeKind::Switch { tier } => tier,
    };
    let top = topology.nodes.iter().map(|node| match node.kind {
        NodeKind::Switch { tier } => tier,
        NodeKind::Host => 0,
    });
    let top = top.max().unwrap_or(0);
    let mut group: Vec<u32> = (0..topology.switches()).collect();
    fn find(group: &mut [u32], mut at: u32) -> u32 {
        while group[at as usize] != at {
            group[at as usize] = group[group[at as usize] as usize];
            at = group[at as usize];
        }
        at
    }
    for link in &topology.links {
        if link.from.0 >= hosts && link.to.0 >= hosts && tier(link.from).max(tier(link.to)) < top {
            let (a, b) = (find(&mut group, link.from.0 - hosts), find(&mut group, link.to.0 - hosts));
            group[a.max(b) as usize] = a.min(b);
        }
    }
    (0..group.len() as u32).map(|switch| find(&mut group, switch)).collect()
}
