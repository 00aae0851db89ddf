//! Common part of Dragonfly and Slim Fly: switches in groups, hosts at every switch, local and global links.

use super::kind::{moving, short};
use crate::{Guidance, LinkClass, TopologyError, build::Builder, graph::Graph};
use anabranch_units::{Rate, Time};

/// Maximum number of switches, so that forwarding tables have at most 2^29 entries.
pub(crate) const MAX_SWITCHES: u64 = 23_170;

pub(crate) struct Cabling {
    pub(crate) host: (Rate, Time),
    pub(crate) local: (Rate, Time),
    pub(crate) global: (Rate, Time),
    pub(crate) latency: Time,
}

impl Cabling {
    /// Checks rates and delays (host, local, global); a missing rate is `link_rate`.
    pub(crate) fn checked(
        link_rate: Rate,
        rates: [Option<Rate>; 3],
        delays: [Time; 3],
        latency: Time,
    ) -> Result<Self, TopologyError> {
        moving("link_rate", link_rate)?;
        let class = |i: usize, rate: &str, delay: &str| {
            Ok::<_, TopologyError>((moving(rate, rates[i].unwrap_or(link_rate))?, short(delay, delays[i])?))
        };
        Ok(Cabling {
            host: class(0, "host_link_rate", "host_link_delay")?,
            local: class(1, "local_link_rate", "local_link_delay")?,
            global: class(2, "global_link_rate", "global_link_delay")?,
            latency: short("switch_latency", latency)?,
        })
    }
}

/// Host h is at switch h div `p`; `edges` are pairs of switch numbers.
pub(crate) fn build(
    groups: u32,
    group_size: u32,
    p: u32,
    mut edges: Vec<(u32, u32)>,
    cabling: &Cabling,
    guidance: Guidance,
) -> Result<Graph, TopologyError> {
    let switches = groups * group_size;
    let mut builder = Builder::default();
    builder.hosts(switches * p);
    let first = builder.named_switches(switches, |s| format!("sw{}.{}", s / group_size, s % group_size));
    for host in 0..switches * p {
        builder.cable(host, first + host / p, cabling.host, LinkClass::Host);
    }
    edges.sort_unstable();
    for (a, b) in edges {
        let local = a / group_size == b / group_size;
        let (link, class) = if local { (cabling.local, LinkClass::Local) } else { (cabling.global, LinkClass::Global) };
        builder.cable(first + a, first + b, link, class);
    }
    let mut topology = builder.finish(cabling.latency, Vec::new())?;
    topology.groups = (0..switches).map(|switch| switch / group_size).collect();
    topology.guidance = Some(guidance);
    Ok(topology)
}
