//! `topology`.

use super::load;
use crate::{
    arguments::{Format, Topology},
    failure::Failure,
    printing::{count, print, print_json, table},
};
use anabranch_study::ScenarioError;
use anabranch_topology::{LinkId, PathCount, Routes, Summary, TierCount, Topology as Graph};
use anabranch_units::{Rate, Time};
use serde_json::{Value, json};
use std::path::Path;

/// Paths of a pair that are listed at most.
const MOST_PATHS: usize = 10_000;

/// `anabranch topology`.
pub(crate) fn topology(arguments: &Topology) -> Result<(), Failure> {
    let scenario = load(&arguments.scenario)?;
    let graph = scenario.topology()?;
    if let Some(file) = &arguments.export {
        export(&graph, file)?;
    }
    let packets = &scenario.transport;
    let summary = graph.summary(packets.mtu() + packets.header(), packets.ack_size());
    let paths = arguments.paths.as_ref().map(|pair| paths(&graph, pair)).transpose()?;
    match arguments.format {
        Format::Json => {
            let mut answer = summary_json(&summary);
            if let (Some(paths), Value::Object(answer)) = (&paths, &mut answer) {
                answer.insert("pair".into(), paths.json(&graph));
            }
            print_json(&answer);
        }
        Format::Table => {
            print(&summary_text(&summary));
            if let Some(paths) = &paths {
                print(&paths.text(&graph));
            }
        }
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
        "tiers": s.tiers.iter().map(tier).collect::<Vec<_>>(),
        "cables": s.cables.iter().map(cable).collect::<Vec<_>>(),
        "diameter_links": s.diameter_links,
        "diameter_switch_hops": s.diameter_switch_hops,
        "paths": s.paths.iter().map(path).collect::<Vec<_>>(),
        "base_rtt_ps": s.base_rtt.ps(),
        "bdp_bytes": s.bdp_bytes,
        "bdp_packets": s.bdp_packets,
    })
}

fn summary_text(s: &Summary) -> String {
    let mut out =
        format!("{} hosts, {} switches\n\n", count(s.hosts.into()), s.tiers.iter().map(|t| t.switches).sum::<u32>());
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
    out += &format!("\n{}", table(&["links", "cables", "rate and delay"], &cables));
    let paths: Vec<_> =
        s.paths.iter().map(|p| vec![p.switch_hops.to_string(), count(p.paths), count(p.pairs)]).collect();
    out += &format!("\n{}", table(&["switch hops", "shortest paths", "ordered pairs of leaf switches"], &paths));
    out += &format!(
        "\nDiameter {} links between hosts ({} between leaf switches). Base RTT {}, BDP {} B = {} packets.\n",
        s.diameter_links,
        s.diameter_switch_hops,
        s.base_rtt,
        count(s.bdp_bytes),
        s.bdp_packets
    );
    out
}

/// The shortest paths of a pair.
struct Pair {
    src: u32,
    dst: u32,
    paths: Vec<Vec<LinkId>>,
    /// Whether there are more than are listed.
    more: bool,
}

/// A host by name (`host3`) or number.
fn host(graph: &Graph, text: &str) -> Result<u32, ScenarioError> {
    let number = text.parse::<u32>().ok().or_else(|| graph.node_named(text).ok().map(|node| node.0));
    number.filter(|host| *host < graph.hosts).ok_or_else(|| {
        let last = graph.hosts - 1;
        ScenarioError::new(format!("--paths: found `{text}`, expected a host: 0 to {last}, or host0 to host{last}"))
    })
}

fn paths(graph: &Graph, pair: &[String]) -> Result<Pair, ScenarioError> {
    let (src, dst) = (host(graph, &pair[0])?, host(graph, &pair[1])?);
    if src == dst {
        return Err(ScenarioError::new(format!("--paths: {} twice, expected two different hosts", pair[0])));
    }
    let mut paths = graph.paths(&Routes::shortest(graph, &[]), src, dst, MOST_PATHS + 1);
    let more = paths.len() > MOST_PATHS;
    paths.truncate(MOST_PATHS);
    Ok(Pair { src, dst, paths, more })
}

impl Pair {
    fn nodes(&self, graph: &Graph, path: &[LinkId]) -> Vec<String> {
        let first = path.first().map(|link| graph.link(*link).from);
        let nodes = first.into_iter().chain(path.iter().map(|link| graph.link(*link).to));
        nodes.map(|node| graph.node(node).name.clone()).collect()
    }

    fn json(&self, graph: &Graph) -> Value {
        let paths: Vec<_> = self.paths.iter().map(|path| self.nodes(graph, path)).collect();
        json!({ "src": self.src, "dst": self.dst, "paths": paths, "more": self.more })
    }

    fn text(&self, graph: &Graph) -> String {
        let more = if self.more { "more than " } else { "" };
        let mut out =
            format!("\n{more}{} shortest paths from host{} to host{}\n", self.paths.len(), self.src, self.dst);
        for path in &self.paths {
            out += &format!("  {}\n", self.nodes(graph, path).join(" "));
        }
        out
    }
}

/// Writes ConWeave's text: counts, the switches, and a line per cable.
fn export(graph: &Graph, file: &Path) -> Result<(), ScenarioError> {
    let switches: Vec<String> = (graph.hosts..graph.nodes.len() as u32).map(|n| n.to_string()).collect();
    let mut text =
        format!("{} {} {}\n{}\n", graph.nodes.len(), switches.len(), graph.links.len() / 2, switches.join(" "));
    for cable in graph.links.chunks_exact(2) {
        let link = &cable[0];
        text += &format!("{} {} {}bps {}ps 0\n", link.from.0, link.to.0, link.rate.0, link.delay.ps());
    }
    std::fs::write(file, text).map_err(|error| {
        ScenarioError::new(format!("--export: {} cannot be written: {error}", file.display()))
            .help("give a file in a directory that can be written")
    })
}
