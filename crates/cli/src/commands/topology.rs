use super::request::load;
use crate::{
    Failure, Format, ScenarioArguments, Table, complete, count, note, print, print_json, table, width, wrapped,
};
use anabranch_results::{Inputs, OutputFile};
use anabranch_scenario::{Scenario, ScenarioError};
use anabranch_study::{Hold, input_error};
use anabranch_topology::{
    GuidedPath, GuidedSummary, LinkId, PathCount, Proposal, Summary, TierCount, Topology as Graph, TypeCount, propose,
};
use anabranch_units::{Rate, Time};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Topology {
    /// Scenario file, or name of a ready-made scenario (`anabranch list scenarios`)
    #[arg(value_name = "SCENARIO", required_unless_present = "hosts", add = complete::scenarios())]
    pub(crate) scenario: Option<String>,
    /// Set a key of the scenario, for example topology.link_rate=100Gbps; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", add = complete::keys())]
    pub(crate) set: Vec<String>,
    /// Random seed [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Propose fabrics with about this number of hosts, instead of a scenario
    #[arg(long, value_name = "N", conflicts_with_all = ["scenario", "set", "seed", "paths", "export", "replace"])]
    pub(crate) hosts: Option<u64>,
    /// Tiers of switches to propose: 2 or 3 [default: both]
    #[arg(long, value_name = "N", requires = "hosts")]
    pub(crate) tiers: Option<u64>,
    /// Hosts per uplink of a leaf to propose
    #[arg(long, value_name = "X", default_value_t = 1.0, requires = "hosts")]
    pub(crate) oversubscription: f64,
    /// List the shortest paths between two hosts
    #[arg(long, num_args = 2, value_names = ["SRC", "DST"])]
    pub(crate) paths: Option<Vec<String>>,
    /// Write the topology to a file in ConWeave's text format
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
    /// Replace an existing file of --export
    #[arg(long)]
    pub(crate) replace: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

const MAX_PATHS: usize = 10_000;

/// Returns the result of `anabranch topology --format json`, with the paths of a pair of hosts if given.
pub fn topology_of(scenario: &Scenario, pair: Option<&[String; 2]>) -> Result<Value, ScenarioError> {
    let (graph, summary, paths) = described(scenario, pair.map(<[String; 2]>::as_slice))?;
    Ok(as_json(&graph, &summary, paths.as_ref()))
}

fn described(scenario: &Scenario, pair: Option<&[String]>) -> Result<(Graph, Summary, Option<Pair>), ScenarioError> {
    let (graph, packets) = (scenario.topology()?, &scenario.transport);
    let packet = packets.mtu() + packets.header();
    let summary = graph.summary(packet, packets.ack_size());
    let paths = pair.map(|pair| paths(&graph, pair, packet)).transpose()?;
    Ok((graph, summary, paths))
}

fn as_json(graph: &Graph, summary: &Summary, paths: Option<&Pair>) -> Value {
    let mut answer = summary_json(summary);
    if let Some(paths) = paths {
        answer["pair"] = paths.json(graph);
    }
    answer
}

pub(crate) fn topology(arguments: &Topology) -> Result<(), Failure> {
    let scenario = match (&arguments.scenario, arguments.hosts) {
        (_, Some(hosts)) => return proposals(arguments, hosts),
        (Some(scenario), None) => scenario.clone(),
        (None, None) => return Err(Failure::input("found neither a scenario nor --hosts")),
    };
    let scenario = load(&ScenarioArguments { scenario, set: arguments.set.clone(), seed: arguments.seed })?;
    let (graph, summary, paths) = described(&scenario, arguments.paths.as_deref())?;
    if let Some(file) = &arguments.export {
        export(&graph, &OutputFile::new(file, arguments.replace, &Inputs::of(scenario.inputs()))?)?;
    }
    match arguments.format {
        Format::Json => print_json(&as_json(&graph, &summary, paths.as_ref())),
        Format::Table => {
            print(&summary_text(&summary));
            if let Some(paths) = &paths {
                print(&paths.text(&graph));
            }
        }
    }
    Ok(())
}

/// Prints fabrics that can be built.
fn proposals(arguments: &Topology, hosts: u64) -> Result<(), Failure> {
    let found = propose(hosts, arguments.tiers, arguments.oversubscription)
        .map_err(|error| ScenarioError::new(format!("--{}: {error}", error.key.as_deref().unwrap_or("hosts"))))?;
    let keys = |of: &Proposal| of.keys.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>();
    match arguments.format {
        Format::Json => {
            let one = |of: &Proposal| {
                let keys: serde_json::Map<String, Value> =
                    of.keys.iter().map(|(key, value)| ((*key).to_string(), json!(value))).collect();
                json!({ "kind": of.kind, "keys": keys, "hosts": of.hosts, "switches": of.switches, "ports": of.ports,
                        "oversubscription": of.oversubscription })
            };
            print_json(&json!({ "proposals": found.iter().map(one).collect::<Vec<_>>() }));
        }
        Format::Table => {
            let row = |of: &Proposal| {
                vec![
                    of.kind.to_string(),
                    count(of.hosts),
                    of.oversubscription.to_string(),
                    count(of.switches),
                    of.ports.to_string(),
                    keys(of).join(", "),
                ]
            };
            let header = ["kind", "hosts", "oversubscription", "switches", "ports", "keys of [topology]"];
            print(&Table::new(&header, found.iter().map(row).collect()).wrap_last().draw());
        }
    }
    if !found.iter().any(|of| of.hosts == hosts && of.oversubscription == arguments.oversubscription) {
        note(&format!("no fabric has exactly {hosts} hosts with this oversubscription; the nearest are listed"));
    }
    Ok(())
}

fn summary_json(s: &Summary) -> Value {
    let tier = |t: &TierCount| json!({ "tier": t.tier, "switches": t.switches, "ports": t.ports, "oversubscription": t.oversubscription });
    let kind = |(rate, delay): &(Rate, Time)| json!({ "rate_bps": rate.0, "delay_ps": delay.ps() });
    let cable = |(class, count, kinds): &(String, u64, Vec<(Rate, Time)>)| json!({ "class": class, "cables": count, "kinds": kinds.iter().map(kind).collect::<Vec<_>>() });
    let path = |p: &PathCount| json!({ "switch_hops": p.switch_hops, "paths": p.paths, "switch_pairs": p.pairs });
    json!({
        "hosts": s.hosts,
        "switches": s.tiers.iter().map(|t| t.switches).sum::<u32>(),
        "planes": s.planes,
        "tiers": s.tiers.iter().map(tier).collect::<Vec<_>>(),
        "cables": s.cables.iter().map(cable).collect::<Vec<_>>(),
        "diameter_links": s.diameter_links,
        "diameter_switch_hops": s.diameter_switch_hops,
        "average_switch_hops": s.average_switch_hops,
        "guided": s.guided.as_ref().map(guided_json),
        "rails": s.rails.map(|rails| json!({ "count": rails.count, "joined": rails.are_joined })),
        "paths": s.paths.iter().map(path).collect::<Vec<_>>(),
        "base_rtt_ps": s.base_rtt.ps(),
        "bdp_bytes": s.bdp_bytes,
        "bdp_packets": s.bdp_packets,
    })
}

fn guided_json(g: &GuidedSummary) -> Value {
    let kind = |t: &TypeCount| {
        json!({
            "local": t.kind.local,
            "global": t.kind.global,
            "paths": t.paths,
            "latency_ps": t.latency.ps(),
        })
    };
    json!({
        "types": g.types.iter().map(kind).collect::<Vec<_>>(),
        "sources": g.sources,
        "fewest_paths": g.fewest,
        "max_paths": g.most,
        "table_bytes": g.table_bytes,
        "base_rtt_ps": g.base_rtt.ps(),
        "bdp_bytes": g.bdp_bytes,
        "bdp_packets": g.bdp_packets,
    })
}

fn guided_text(g: &GuidedSummary, switches: u32) -> String {
    let kinds: Vec<_> = g
        .types
        .iter()
        .map(|t| {
            let latency = format!("{:.1} ns", t.latency.ps() as f64 / 1e3);
            vec![t.kind.local.to_string(), t.kind.global.to_string(), latency, count(t.paths)]
        })
        .collect();
    let of = match g.sources == switches {
        true => "of all pairs of switches".to_string(),
        false => format!("from {} of the {switches} switches", g.sources),
    };
    let out = format!("\nGuided paths {of}:\n{}", table(&["local", "global", "latency", "paths"], &kinds));
    let mib = g.table_bytes as f64 / f64::from(1 << 20);
    let table = format!(
        "{} to {} guided paths per pair; an endpoint's table takes up to {mib:.2} MiB (3 B per path).",
        g.fewest, g.most
    );
    let (rtt, bdp) = (g.base_rtt, count(g.bdp_bytes));
    let trip = format!("Longest guided round trip {rtt}, BDP {bdp} B = {} packets.", g.bdp_packets);
    out + &format!("\n{}\n{}\n", wrapped(&table, width()), wrapped(&trip, width()))
}

fn summary_text(s: &Summary) -> String {
    let mut out =
        format!("{} hosts, {} switches\n\n", count(s.hosts.into()), s.tiers.iter().map(|t| t.switches).sum::<u32>());
    if s.planes > 1 {
        let planes = s.planes;
        out += &format!(
            "{planes} planes without a common switch; a host has a port in each. Paths are those of one plane.\n\n"
        );
    }
    let tiers: Vec<_> = s
        .tiers
        .iter()
        .map(|t| {
            let over = t.oversubscription.map_or("-".into(), |x| format!("{x:.2}"));
            vec![t.tier.to_string(), count(t.switches.into()), t.ports.to_string(), over]
        })
        .collect();
    out += &table(&["tier", "switches", "ports each", "down to up capacity"], &tiers);
    let cables: Vec<_> = s
        .cables
        .iter()
        .map(|(class, cables, kinds)| {
            let kinds: Vec<String> = kinds.iter().map(|(rate, delay)| format!("{rate} {delay}")).collect();
            vec![class.clone(), count(*cables), kinds.join("; ")]
        })
        .collect();
    out += &format!("\n{}", Table::new(&["links", "cables", "rate and delay"], cables).wrap_last().draw());
    let paths: Vec<_> =
        s.paths.iter().map(|p| vec![p.switch_hops.to_string(), count(p.paths), count(p.pairs)]).collect();
    out += &format!("\n{}", table(&["switch hops", "shortest paths", "ordered pairs of leaf switches"], &paths));
    if let Some(rails) = s.rails {
        let joined = if rails.are_joined { "joined by the switches above" } else { "without links between them" };
        out += &format!("\n{} rails, {joined}: host h is on rail h modulo {0}.\n", rails.count);
    }
    let diameter = format!(
        "Diameter {} links between hosts ({} between leaf switches, {:.3} on average).",
        s.diameter_links, s.diameter_switch_hops, s.average_switch_hops
    );
    let trip = format!("Base RTT {}, BDP {} B = {} packets.", s.base_rtt, count(s.bdp_bytes), s.bdp_packets);
    out += &format!("\n{}\n{trip}\n", wrapped(&diameter, width()));
    if let Some(guided) = &s.guided {
        out += &guided_text(guided, s.tiers.iter().map(|t| t.switches).sum());
    }
    out
}

struct Pair {
    src: u32,
    dst: u32,
    paths: Vec<Vec<LinkId>>,
    more: bool,
    /// Guided paths between their switches, fastest first.
    guided: Vec<GuidedPath>,
}

/// Returns the host with a name (`host3`) or number.
fn host(graph: &Graph, text: &str) -> Result<u32, ScenarioError> {
    let number = text.parse::<u32>().ok().or_else(|| graph.node_named(text).ok().map(|node| node.0));
    number.filter(|host| *host < graph.hosts).ok_or_else(|| {
        let last = graph.hosts - 1;
        ScenarioError::new(format!("--paths: found `{text}`, expected a host: 0 to {last}, or host0 to host{last}"))
    })
}

fn paths(graph: &Graph, pair: &[String], packet: u64) -> Result<Pair, ScenarioError> {
    let (src, dst) = (host(graph, &pair[0])?, host(graph, &pair[1])?);
    if src == dst {
        return Err(ScenarioError::new(format!("--paths: found {} twice, expected two different hosts", pair[0])));
    }
    let mut paths = graph.paths(&graph.routes(), src, dst, MAX_PATHS + 1);
    let more = paths.len() > MAX_PATHS;
    paths.truncate(MAX_PATHS);
    let (from, to) = (graph.edge_switch(src), graph.edge_switch(dst));
    let guided = graph.guide().map(|guide| guide.paths(graph, from, to, packet)).unwrap_or_default();
    Ok(Pair { src, dst, paths, more, guided })
}

impl Pair {
    /// Returns the nodes of a path; one that is reached over a parallel cable has its number: `spine0#1`.
    fn nodes(&self, graph: &Graph, path: &[LinkId]) -> Vec<String> {
        let name = |node| graph.node(node).name.clone();
        let first = path.first().map(|link| name(graph.link(*link).from));
        let reached = path.iter().map(|link| match graph.parallel(*link) {
            0 => name(graph.link(*link).to),
            number => format!("{}#{number}", name(graph.link(*link).to)),
        });
        first.into_iter().chain(reached).collect()
    }

    fn json(&self, graph: &Graph) -> Value {
        let paths: Vec<_> = self.paths.iter().map(|path| self.nodes(graph, path)).collect();
        let guided = |path: &GuidedPath| {
            json!({
                "ev": path.ev,
                "local": path.kind.local,
                "global": path.kind.global,
                "minimal": path.minimal,
                "latency_ps": path.latency.ps(),
                "switches": self.nodes(graph, path.links()),
            })
        };
        let guided: Vec<_> = self.guided.iter().map(guided).collect();
        json!({ "src": self.src, "dst": self.dst, "paths": paths, "more": self.more, "guided": guided })
    }

    fn text(&self, graph: &Graph) -> String {
        let more = if self.more { "more than " } else { "" };
        let mut out =
            format!("\n{more}{} shortest paths from host{} to host{}\n", self.paths.len(), self.src, self.dst);
        if !graph.is_connected(self.src, self.dst) {
            out += "  none: they are on different rails, which no link joins\n";
        }
        for path in &self.paths {
            out += &format!("  {}\n", self.nodes(graph, path).join(" "));
        }
        if !self.guided.is_empty() {
            out += &format!("\n{} guided paths between their switches, fastest first\n", self.guided.len());
            let row = |path: &GuidedPath| {
                vec![
                    format!("{} {}", path.ev[0], path.ev[1]),
                    format!("{} {}", path.kind.local, path.kind.global),
                    format!("{:.1} ns", path.latency.ps() as f64 / 1e3),
                    if path.minimal { "yes" } else { "" }.to_string(),
                    self.nodes(graph, path.links()).join(" "),
                ]
            };
            let rows: Vec<_> = self.guided.iter().map(row).collect();
            let header = ["EV1 EV2", "local global", "latency", "minimal", "switches"];
            out += &Table::new(&header, rows).wrap_last().hide_first(&["minimal", "local global"]).draw();
        }
        out
    }
}

/// Writes ConWeave's text format: counts, the switches, and a line per cable.
fn export(graph: &Graph, file: &OutputFile) -> Result<(), ScenarioError> {
    if graph.planes > 1 {
        let message =
            format!("--export: hosts have {} links, one per plane; the format has one per host", graph.planes);
        return Err(ScenarioError::new(message));
    }
    if graph.switch_latency > Time::ZERO {
        let latency = graph.switch_latency;
        note(&format!(
            "warning: the format has no switch latency: give switch_latency = \"{latency}\" where the file is read"
        ));
    }
    let switches: Vec<String> = (graph.hosts..graph.nodes.len() as u32).map(|n| n.to_string()).collect();
    let mut text =
        format!("{} {} {}\n{}\n", graph.nodes.len(), switches.len(), graph.links.len() / 2, switches.join(" "));
    for cable in graph.links.chunks_exact(2) {
        let link = &cable[0];
        text += &format!("{} {} {}bps {}ps 0\n", link.from.0, link.to.0, link.rate.0, link.delay.ps());
    }
    let _hold = Hold::take();
    file.write_all(text.as_bytes()).map_err(input_error)
}
