//! Path discovery: traces the switches of a UDP flow by its port pair, without privileges.
//!
//! A switch that discards a datagram because its TTL expired sends an ICMP error, which arrives in the socket's error
//! queue.

mod trace;

pub use trace::Trace;

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4},
    time::Duration,
};

/// Maximum number of switches between two endpoints that trace their labels before they connect.
pub const MAX_SWITCHES: u8 = 8;
/// Timeout of a switch's reply to an endpoint that traces its labels before it connects.
pub const SWITCH_TIMEOUT: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// Invalid input: an address or port that cannot be traced.
    #[error("{0}")]
    Input(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// Operation that failed.
        what: String,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl PathError {
    fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        PathError::System { what: what.into(), source: source.into() }
    }
}

/// Parameters of a path discovery.
#[derive(Clone, Copy, Debug)]
pub struct PathRequest {
    /// Destination address, and destination port of label 0.
    pub to: SocketAddrV4,
    /// Source port, 0 for any free one.
    pub port: u16,
    /// Number of labels. Label `i` uses the `i`th destination port.
    pub labels: u16,
    /// Maximum number of hops to probe.
    pub hops: u8,
    pub timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    pub at: Ipv4Addr,
    /// Time from probe to reply.
    pub round_trip: Duration,
    /// `true` if the hop is the destination, which reports its closed port as unreachable.
    pub is_last: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelPath {
    pub label: u16,
    pub source: u16,
    pub destination: u16,
    /// Hops in order; `None` if no reply arrived.
    pub hops: Vec<Option<Hop>>,
}

impl LabelPath {
    /// Returns the switches on the path, without the destination host; `None` for a hop that did not reply.
    pub fn switches(&self) -> Vec<Option<Ipv4Addr>> {
        let switch = |hop: &Option<Hop>| hop.filter(|hop| !hop.is_last).map(|hop| hop.at);
        let mut switches: Vec<_> = self.hops.iter().map(switch).collect();
        while switches.last() == Some(&None) {
            switches.pop();
        }
        switches
    }
}

/// Labels by the paths that they lead over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// Paths, each as its labels; empty if no switch replied.
    pub paths: Vec<Vec<u32>>,
    /// Labels among them whose known switches fit several paths, or none; each counts as a path.
    pub unknown: Vec<u32>,
}

/// Groups labels that share their switches.
///
/// A switch that did not reply is ignored as far as the others distinguish all paths.
pub fn groups(found: &[LabelPath]) -> Groups {
    type Switches = Vec<Option<Ipv4Addr>>;
    let known = |switches: &Switches| switches.iter().flatten().count();
    let length = found.iter().map(|path| path.switches().len()).max().unwrap_or(0);
    if length == 0 {
        return Groups::default();
    }
    let whole = |path: &LabelPath| {
        let mut switches = path.switches();
        // Without a reply of the destination the last switches may have been silent, as many as others have.
        let end = path.hops.iter().position(|hop| hop.is_some_and(|hop| hop.is_last));
        switches.resize(end.unwrap_or(length).max(switches.len()), None);
        (switches, u32::from(path.label))
    };
    let mut traced: Vec<(Switches, u32)> = found.iter().map(whole).collect();
    traced.sort_by_key(|(switches, _)| std::cmp::Reverse(known(switches)));
    let mut groups: BTreeMap<Switches, Vec<u32>> = BTreeMap::new();
    let mut unknown = Vec::new();
    for (switches, label) in traced {
        // Every group has a label with as many known switches or more.
        let pairs = |other: &Switches| switches.len() == other.len() && known(&switches) > 0;
        let fits = |other: &&Switches| {
            pairs(other) && switches.iter().zip(other.iter()).all(|(own, other)| own.is_none() || own == other)
        };
        let differs = |other: &Switches| {
            let mut pairs = switches.iter().zip(other);
            switches.len() != other.len() || pairs.any(|(own, other)| own.is_some() && other.is_some() && own != other)
        };
        let mut fitting = groups.keys().filter(fits);
        match (fitting.next().cloned(), fitting.next()) {
            (Some(only), None) => groups.entry(only).or_default().push(label),
            (None, _) if groups.keys().all(differs) => groups.entry(switches).or_default().push(label),
            _ => unknown.push(label),
        }
    }
    unknown.sort_unstable();
    let mut paths: Vec<Vec<u32>> = groups.into_values().collect();
    paths.iter_mut().for_each(|group| group.sort_unstable());
    paths.extend(unknown.iter().map(|label| vec![*label]));
    Groups { paths, unknown }
}

/// Returns the IPv4 address of an endpoint.
/// Fails if the address is IPv6.
pub fn address(to: SocketAddr) -> Result<SocketAddrV4, PathError> {
    match to {
        SocketAddr::V4(to) => Ok(to),
        SocketAddr::V6(to) => Err(PathError::Input(format!("{to} is an IPv6 address; paths are found over IPv4"))),
    }
}

/// Checks that a network with switches may be between the local endpoint and `to`.
/// Fails if the address is a loopback address.
pub fn check_network(to: IpAddr) -> Result<(), PathError> {
    if !to.is_loopback() {
        return Ok(());
    }
    Err(PathError::Input(format!("{to} is this machine, and no switch lies in between")))
}

/// Describes the paths to `to` that `labels` labels lead over.
pub fn describe(groups: &Groups, labels: usize, to: &str) -> String {
    let (unknown, paths) = (groups.unknown.len(), groups.paths.len());
    if paths == 0 {
        return format!("no switch towards {to} replied: each of {labels} labels counts as a path");
    }
    let known = paths - unknown;
    let plural = if known == 1 { "" } else { "s" };
    let mut text = format!("{} of {labels} labels lead over {known} path{plural}", labels - unknown);
    if unknown > 0 {
        text += &format!(
            "; of the other {unknown} too few switches replied (Linux: net.ipv4.icmp_ratelimit), and each counts as a path"
        );
    }
    text
}

/// Traces the hops of each label.
/// Fails if ports are in use or nothing can be sent.
pub fn discover(request: &PathRequest) -> Result<Vec<LabelPath>, PathError> {
    if u32::from(request.to.port()) + u32::from(request.labels) > 1 << 16 {
        let (labels, to) = (request.labels, request.to);
        return Err(PathError::Input(format!("{labels} labels from {to} on go beyond port 65535")));
    }
    let destinations = (0..request.labels).map(|label| request.to.port() + label).collect();
    Trace::new(*request.to.ip(), vec![trace::open(request.port)?], destinations, request.hops, request.timeout)?
        .finish()
}

/// Traces the hops of packets of `pairs`, each a source and a destination port; label `i` is the `i`th pair. Queue pairs of
/// RoCEv2 have one destination port, and source ports of their own.
///
/// Fails if a source port is in use or nothing can be sent.
pub fn discover_pairs(
    to: Ipv4Addr,
    pairs: &[(u16, u16)],
    hops: u8,
    timeout: Duration,
) -> Result<Vec<LabelPath>, PathError> {
    Trace::of_pairs(to, pairs, hops, timeout)?.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_over_the_same_switches_are_a_path() {
        let hop = |last| Hop { at: Ipv4Addr::new(10, 0, 0, last), round_trip: Duration::ZERO, is_last: last == 9 };
        let path = |label: u16, hops: &[Option<u8>]| LabelPath {
            label,
            source: 7000 + label,
            destination: 7000 + label,
            hops: hops.iter().map(|last| last.map(hop)).collect(),
        };
        let found = [
            path(0, &[Some(1), Some(3), Some(9)]),
            path(1, &[Some(1), Some(2), Some(9)]),
            path(2, &[Some(1), Some(3), None]),
            path(3, &[Some(1), None, None]),
            path(4, &[Some(1), Some(2)]),
        ];
        let grouped = |paths: &[&[u32]], unknown: &[u32]| Groups {
            paths: paths.iter().map(|path| path.to_vec()).chain(unknown.iter().map(|label| vec![*label])).collect(),
            unknown: unknown.to_vec(),
        };
        assert_eq!(groups(&found), grouped(&[&[1, 4], &[0, 2]], &[3]), "label 3 may lead over either");
        // The first switch limits its replies: what is behind it distinguishes labels 2, 3 and 5, label 4 may lead over any.
        let limited = [
            path(0, &[Some(1), Some(3), Some(9)]),
            path(1, &[Some(1), Some(2), Some(9)]),
            path(2, &[None, Some(3), Some(9)]),
            path(3, &[None, Some(2), Some(9)]),
            path(4, &[Some(1), None, Some(9)]),
            path(5, &[None, Some(4), Some(9)]),
        ];
        assert_eq!(groups(&limited), grouped(&[&[5], &[1, 3], &[0, 2]], &[4]));
        // A hop that only one of two has shown leaves open whether they differ.
        let open = [path(0, &[Some(1), None, Some(5), Some(9)]), path(1, &[None, Some(4), Some(5), Some(9)])];
        assert_eq!(groups(&open), grouped(&[&[0]], &[1]));
        // The second switch never replies, and hops behind it are unknown.
        let unresponsive = [path(0, &[Some(1), None]), path(1, &[Some(1), None])];
        assert_eq!(groups(&unresponsive), grouped(&[&[0, 1]], &[]));
        // The last switch has replied to one label alone, and a label whose switches are all silent may lead over any.
        let late = [
            path(0, &[Some(1), Some(2), Some(4)]),
            path(1, &[Some(1), Some(3), None, None]),
            path(2, &[Some(1), Some(2), None, None]),
            path(3, &[None, None]),
        ];
        assert_eq!(groups(&late), grouped(&[&[0, 2], &[1]], &[3]));
        assert_eq!(describe(&groups(&late), 4, "there").matches("3 of 4 labels lead over 2 paths").count(), 1);
        assert!(groups(&[path(0, &[None, None]), path(1, &[Some(9)])]).paths.is_empty(), "no switch answers");
    }
}
