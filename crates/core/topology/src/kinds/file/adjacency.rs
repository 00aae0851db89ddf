//! Adjacency list (specification 14.2): a line per switch, the switch and then neighbours; each edge once, in the list of one of its two nodes.

use super::text::{at_line, lines, number};
use crate::{
    Guidance, Guide, LinkClass, TopologyError,
    build::{Builder, MAX_HOSTS},
    graph::Graph,
    guidance::MAX_DIAMETER,
    kinds::grouped::MAX_SWITCHES,
};
use anabranch_units::{Rate, Time};
use std::collections::BTreeMap;

pub(crate) struct Rest {
    pub(crate) hosts_per_switch: u64,
    pub(crate) guided: bool,
    pub(crate) link: (Rate, Time),
    pub(crate) latency: Time,
}

pub(crate) fn parse(text: &str, rest: &Rest) -> Result<Graph, TopologyError> {
    // The line of each edge, smaller end first.
    let mut edges = BTreeMap::new();
    let mut switches = 0;
    for (line, text) in lines(text) {
        let mut fields = text.split_whitespace();
        let switch = fields.next().map_or(Ok(0), |text| number(line, "the switch", text))?;
        switches = switches.max(switch.saturating_add(1));
        for text in fields {
            let neighbour = number(line, "a neighbour", text)?;
            if neighbour == switch {
                return Err(at_line(
                    line,
                    format!("switch {switch} is its own neighbour; links lead to other switches"),
                ));
            }
            let (low, high) = (switch.min(neighbour), switch.max(neighbour));
            if high >= MAX_HOSTS {
                return Err(at_line(line, format!("switch {high}; numbers up to {} are allowed", MAX_HOSTS - 1)));
            }
            if let Some(before) = edges.insert((low as u32, high as u32), line) {
                let message = format!(
                    "the link {switch} {neighbour} is listed twice, first in line {before}; an adjacency list has each link once, in the list of one of its two nodes, and no parallel links"
                );
                return Err(at_line(line, message));
            }
            switches = switches.max(neighbour + 1);
        }
    }
    let hosts = switches.saturating_mul(rest.hosts_per_switch);
    if hosts > MAX_HOSTS || rest.hosts_per_switch == 0 {
        let message = format!(
            "{switches} switches with {} hosts each; at least one host each and at most {MAX_HOSTS} in all",
            rest.hosts_per_switch
        );
        return Err(TopologyError::new(message));
    }
    let mut builder = Builder::default();
    builder.hosts(hosts as u32);
    let first = builder.switches(switches as u32, "switch", 0);
    for host in 0..hosts as u32 {
        builder.cable(host, first + host / rest.hosts_per_switch as u32, rest.link, LinkClass::Host);
    }
    for (a, b) in edges.into_keys() {
        builder.cable(first + a, first + b, rest.link, LinkClass::Local);
    }
    let mut graph = builder.finish(rest.latency, Vec::new())?;
    if rest.guided {
        guide(&mut graph)?;
    }
    Ok(graph)
}

fn guide(graph: &mut Graph) -> Result<(), TopologyError> {
    let (switches, refused) = (u64::from(graph.switches()), |message| Err(TopologyError::at("guided", message)));
    if switches > MAX_SWITCHES {
        return refused(format!("{switches} switches; guided paths need at most {MAX_SWITCHES}"));
    }
    graph.groups = vec![0; switches as usize];
    graph.guidance = Some(Guidance::Graph);
    match Guide::new(graph, Guidance::Graph).diameter() {
        Some(diameter) if diameter <= MAX_DIAMETER => Ok(()),
        Some(diameter) => {
            refused(format!("two switches are {diameter} links apart; guided paths need at most {MAX_DIAMETER}"))
        }
        None => refused("not all switches are connected".into()),
    }
}
