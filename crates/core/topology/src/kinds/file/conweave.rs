//! ConWeave's topology text (specification 14.3): `nodes switches links`, the switches' ids, then a line per cable:
//! `a b rate delay error`. Hosts are the other ids, by rank. Text after the last cable is ignored: ConWeave's files end with
//! an explanation of their format.

use super::text::{at_line, lines, number};
use crate::{
    LinkClass, TopologyError,
    build::{Builder, MAX_HOSTS},
    graph::Graph,
};
use anabranch_units::{Rate, Time};

struct CableLine {
    line: usize,
    ends: [usize; 2],
    rate: Rate,
    delay: Time,
}

pub(crate) fn parse(text: &str, switch_latency: Time) -> Result<Graph, TopologyError> {
    let mut lines = lines(text);
    let (line, counts) =
        lines.next().ok_or_else(|| at_line(1, "the file is empty; it starts with `nodes switches links`"))?;
    let counts: Vec<&str> = counts.split_whitespace().collect();
    let [nodes, switches, cables] = counts[..] else {
        return Err(at_line(line, format!("{} values; `nodes switches links` are needed", counts.len())));
    };
    let nodes = number(line, "the number of nodes", nodes)?;
    let switches = number(line, "the number of switches", switches)?;
    let expected = number(line, "the number of links", cables)?;
    if nodes > 2 * MAX_HOSTS || switches >= nodes.max(1) {
        let message =
            format!("{switches} of {nodes} nodes are switches; at most {} nodes, and some hosts", 2 * MAX_HOSTS);
        return Err(at_line(line, message));
    }
    let mut is_switch = vec![false; nodes as usize];
    let mut left = switches;
    while left > 0 {
        let (line, ids) = lines.next().ok_or_else(|| at_line(line, format!("{left} more switch ids are needed")))?;
        for id in ids.split_whitespace() {
            let node = node_id(line, id, nodes)?;
            if left == 0 || std::mem::replace(&mut is_switch[node], true) {
                return Err(at_line(
                    line,
                    format!("switch id {node} is one too many; {switches} different ids are needed"),
                ));
            }
            left -= 1;
        }
    }
    let mut found = Vec::new();
    for (line, text) in lines {
        let cable = cable_line(line, text, nodes);
        if (found.len() as u64) < expected {
            found.push(cable?);
        } else if cable.is_ok() {
            return Err(at_line(line, format!("one link too many; the first line says {expected}")));
        }
    }
    if (found.len() as u64) < expected {
        return Err(TopologyError::new(format!("{} links; the first line says {expected}", found.len())));
    }
    assemble(&is_switch, &found, switch_latency)
}

fn node_id(line: usize, text: &str, nodes: u64) -> Result<usize, TopologyError> {
    let id = number(line, "a node", text)?;
    if id >= nodes {
        return Err(at_line(line, format!("node {id} does not exist; nodes are 0 to {}", nodes.saturating_sub(1))));
    }
    Ok(id as usize)
}

fn cable_line(line: usize, text: &str, nodes: u64) -> Result<CableLine, TopologyError> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [a, b, rate, delay, error] = fields[..] else {
        let message =
            format!("{} values; `a b rate delay error` are needed, for example `0 128 100Gbps 1000ns 0`", fields.len());
        return Err(at_line(line, message));
    };
    let ends = [node_id(line, a, nodes)?, node_id(line, b, nodes)?];
    if ends[0] == ends[1] {
        return Err(at_line(line, format!("node {a} is linked to itself")));
    }
    if error.parse::<f64>() != Ok(0.0) {
        return Err(at_line(
            line,
            format!("error rate `{error}`; only 0 is read, write a [[fault]] of kind packet-loss instead"),
        ));
    }
    let rate: Rate = rate.parse().map_err(|e| at_line(line, e))?;
    if rate.0 < 1_000_000 {
        return Err(at_line(line, format!("rate {rate}; at least 1Mbps is needed")));
    }
    let delay: Time = delay.parse().map_err(|e| at_line(line, e))?;
    if delay > Time::from_ms(1000) {
        return Err(at_line(line, format!("delay {delay}; at most 1s is allowed")));
    }
    Ok(CableLine { line, ends, rate, delay })
}

/// Tiers are distances from the hosts; switches of a tier keep the order of their ids.
fn assemble(is_switch: &[bool], cables: &[CableLine], switch_latency: Time) -> Result<Graph, TopologyError> {
    let mut neighbours = vec![Vec::new(); is_switch.len()];
    for cable in cables {
        let [a, b] = cable.ends;
        neighbours[a].push(b);
        neighbours[b].push(a);
        if !is_switch[a] && !is_switch[b] {
            return Err(at_line(
                cable.line,
                format!("hosts {a} and {b} are linked to each other; hosts attach to switches"),
            ));
        }
    }
    let mut height = vec![usize::MAX; is_switch.len()];
    let mut queue: Vec<usize> = (0..is_switch.len()).filter(|n| !is_switch[*n]).collect();
    queue.iter().for_each(|&host| height[host] = 0);
    let mut next = 0;
    while let Some(&node) = queue.get(next) {
        next += 1;
        for &other in &neighbours[node] {
            if height[other] == usize::MAX {
                height[other] = height[node] + 1;
                queue.push(other);
            }
        }
    }
    if let Some(lost) = height.iter().position(|h| *h == usize::MAX) {
        return Err(TopologyError::new(format!("switch {lost} cannot be reached from any host")));
    }
    let top = height.iter().copied().max().unwrap_or(0);
    let flat = cables.iter().any(|c| height[c.ends[0]] == height[c.ends[1]]);
    let mut builder = Builder::default();
    let mut number = vec![0u32; is_switch.len()];
    let hosts = height.iter().filter(|h| **h == 0).count() as u32;
    builder.hosts(hosts);
    let mut start = 0;
    for tier in 0..=top {
        let members: Vec<usize> = (0..height.len()).filter(|n| height[*n] == tier).collect();
        if tier > 0 {
            let name = match (tier, top) {
                (1, _) => "leaf",
                (2, 2) => "spine",
                (2, _) => "agg",
                (3, 3) => "core",
                _ => return Err(TopologyError::new(format!("{top} tiers of switches; at most 3 are read"))),
            };
            start = builder.switches(members.len() as u32, name, tier as u8 - 1);
        }
        for (rank, &node) in members.iter().enumerate() {
            number[node] = start + rank as u32;
        }
    }
    let mut up_ports = vec![0u32; is_switch.len()];
    for cable in cables {
        let [mut lower, mut upper] = cable.ends;
        if (height[lower], lower) > (height[upper], upper) {
            std::mem::swap(&mut lower, &mut upper);
        }
        let class = match height[lower] {
            0 => LinkClass::Host,
            h if height[upper] == h => LinkClass::Local,
            h => LinkClass::Tier { lower: h as u8 - 1 },
        };
        up_ports[lower] += 1;
        builder.cable(number[lower], number[upper], (cable.rate, cable.delay), class);
    }
    let most = |tier: usize| (0..height.len()).filter(|n| height[*n] == tier).map(|n| up_ports[n]).max().unwrap_or(0);
    let uplinks = if flat { Vec::new() } else { (1..top).map(most).collect() };
    builder.finish(switch_latency, uplinks)
}
