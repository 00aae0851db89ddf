use crate::{TopologyError, graph::Graph};
use anabranch_units::{Rate, Time};

pub(crate) trait Kind {
    /// Returns `None` for a file and for refused sizes.
    fn scale(&self) -> Option<Scale>;
    /// `read_file` returns the text of a file that the parameters name.
    fn build(&self, read_file: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError>;
}

/// Size of a topology, available before it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Number of hosts.
    pub hosts: u64,
    /// Number of switches.
    pub switches: u64,
    /// Number of switches with hosts, of several planes those of one: forwarding tables have an entry for each.
    pub leaves: u64,
    /// Number of cables, those of hosts included.
    pub cables: u64,
    /// Bytes of the tables of source-guided routing.
    pub guide_bytes: u64,
}

impl Scale {
    pub(crate) fn of(graph: &Graph) -> Self {
        let groups = graph.groups.iter().max().map_or(0, |last| u64::from(*last) + 1);
        Scale {
            hosts: graph.hosts.into(),
            switches: graph.switches().into(),
            leaves: graph.edge_switches().len() as u64,
            cables: graph.links.len() as u64 / 2,
            guide_bytes: graph.guidance.map_or(0, |guidance| guidance.table_bytes(graph.switches().into(), groups)),
        }
    }

    /// Returns the number of entries of the forwarding tables.
    pub fn table_entries(&self) -> u64 {
        self.switches.saturating_mul(self.leaves)
    }
}

pub(crate) fn positive(key: &str, value: u64) -> Result<(), TopologyError> {
    if value == 0 { Err(TopologyError::at(key, format!("`{key}` is 0; at least 1 is needed"))) } else { Ok(()) }
}

/// Maximum value of a number in a key.
const MAX_NUMBER: u64 = 1 << 16;
/// Maximum number of cables between switches.
const MAX_CABLES: u64 = 1 << 24;

/// Refuses zero and numbers that no fabric has.
pub(crate) fn counts(keys: &[(&'static str, u64)]) -> Result<(), TopologyError> {
    keys.iter().try_for_each(|(key, value)| positive(key, *value).and_then(|()| at_most(key, *value)))
}

pub(crate) fn at_most(key: &str, value: u64) -> Result<(), TopologyError> {
    if value > MAX_NUMBER {
        return Err(TopologyError::at(key, format!("`{key}` is {value}; at most {MAX_NUMBER} are allowed")));
    }
    Ok(())
}

pub(crate) fn few_cables(key: &str, cables: u64) -> Result<(), TopologyError> {
    if cables > MAX_CABLES {
        let message = format!("`{key}` makes {cables} cables between switches; at most {MAX_CABLES} are allowed");
        return Err(TopologyError::at(key, message));
    }
    Ok(())
}

/// Refuses rates below 1 Mb/s.
pub(crate) fn moving(key: &str, rate: Rate) -> Result<Rate, TopologyError> {
    if rate.0 < 1_000_000 {
        return Err(TopologyError::at(key, format!("`{key}` is {rate}; at least 1Mbps is needed")));
    }
    Ok(rate)
}

/// Maximum number of planes: ports of a host.
const MAX_PLANES: u64 = 16;

pub(crate) fn at_most_planes(planes: u64) -> Result<(), TopologyError> {
    if !(1..=MAX_PLANES).contains(&planes) {
        let message = format!("`planes` is {planes}; a number from 1 to {MAX_PLANES} is needed");
        return Err(TopologyError::at("planes", message));
    }
    Ok(())
}

/// Returns the rate of a link of one of `planes` planes, which share `rate`.
pub(crate) fn per_plane(key: &str, rate: Rate, planes: u64) -> Result<Rate, TopologyError> {
    at_most_planes(planes)?;
    if !rate.0.is_multiple_of(planes) || rate.0 / planes < 1_000_000 {
        let message = format!(
            "`planes` is {planes}, and `{key}` {rate}; a plane has an equal part of it, whole bits per second and at least 1Mbps"
        );
        return Err(TopologyError::at("planes", message));
    }
    Ok(Rate(rate.0 / planes))
}

pub(crate) fn short(key: &str, delay: Time) -> Result<Time, TopologyError> {
    if delay > Time::from_ms(1000) {
        return Err(TopologyError::at(key, format!("`{key}` is {delay}; at most 1s is allowed")));
    }
    Ok(delay)
}

/// Refuses more hosts than the simulator can number.
pub(crate) fn not_too_many(key: &str, hosts: u64) -> Result<u32, TopologyError> {
    if hosts > crate::build::MAX_HOSTS {
        let most = crate::build::MAX_HOSTS;
        return Err(TopologyError::at(key, format!("`{key}` makes {hosts} hosts; at most {most} are allowed")));
    }
    Ok(hosts as u32)
}
