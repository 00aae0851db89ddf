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

/// Error of a path discovery.
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
    /// Timeout of a reply.
    pub timeout: Duration,
}

/// A hop that replied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Address of the hop.
    pub at: Ipv4Addr,
    /// Time from probe to reply.
    pub round_trip: Duration,
    /// `true` if the hop is the destination, which reports its closed port as unreachable.
    pub is_last: bool,
}

/// Hops of one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelPath {
    /// Label number.
    pub label: u16,
    /// Source port.
    pub source: u16,
    /// Destination port.
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

/// Groups labels that share their switches.
///
/// A switch that did not reply is ignored where one behind it did, as far as the
/// others distinguish all paths; other labels with fewer known switches are excluded. The result is empty if no switch
/// replied.
pub fn groups(found: &[LabelPath]) -> Vec<Vec<u32>> {
    type Switches = Vec<Option<Ipv4Addr>>;
    let known = |switches: &Switches| switches.iter().flatten().count();
    let mut traced: Vec<(Switches, u32)> = found.iter().map(|path| (path.switches(), path.label.into())).collect();
    traced.sort_by_key(|(switches, _)| std::cmp::Reverse(known(switches)));
    let Some(length) = traced.first().map(|(switches, _)| switches.len()).filter(|length| *length > 0) else {
        return Vec::new();
    };
    let mut groups: BTreeMap<Switches, Vec<u32>> = BTreeMap::new();
    for (switches, label) in traced.into_iter().filter(|(switches, _)| switches.len() == length) {
        // Every group has a label with as many known switches or more.
        let fits =
            |other: &&Switches| switches.iter().zip(other.iter()).all(|(own, other)| own.is_none() || own == other);
        let differs = |other: &Switches| {
            let mut pairs = switches.iter().zip(other);
            pairs.any(|(own, other)| own.is_some() && other.is_some() && own != other)
        };
        let mut fitting = groups.keys().filter(fits);
        match (fitting.next().cloned(), fitting.next()) {
            (Some(only), None) => groups.entry(only).or_default().push(label),
            (None, _) if groups.keys().all(differs) => groups.entry(switches).or_default().push(label),
            _ => {}
        }
    }
    let mut groups: Vec<Vec<u32>> = groups.into_values().collect();
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

/// Returns the IPv4 address of an endpoint.
///
/// # Errors
/// Returns an error if the address is IPv6.
pub fn address(to: SocketAddr) -> Result<SocketAddrV4, PathError> {
    match to {
        SocketAddr::V4(to) => Ok(to),
        SocketAddr::V6(to) => Err(PathError::Input(format!("{to} is an IPv6 address; paths are found over IPv4"))),
    }
}

/// Checks that a network with switches may be between the local endpoint and `to`.
///
/// # Errors
/// Returns an error if the address is a loopback address.
pub fn check_network(to: IpAddr) -> Result<(), PathError> {
    if !to.is_loopback() {
        return Ok(());
    }
    Err(PathError::Input(format!("{to} is this machine, and no switch lies in between")))
}

/// Describes the paths to `to` that `labels` labels lead over.
pub fn describe(paths: &[Vec<u32>], labels: usize, to: &str) -> String {
    match paths.iter().map(Vec::len).sum::<usize>() {
        0 => format!("no switch towards {to} replied: each of {labels} labels counts as a path"),
        traced => {
            let plural = if paths.len() == 1 { "" } else { "s" };
            let mut text = format!("{traced} of {labels} labels lead over {} path{plural}", paths.len());
            if traced < labels {
                text +=
                    &format!("; no switch replied for some hops of the other {}, which are not used", labels - traced);
            }
            text
        }
    }
}

/// Traces the hops of each label.
///
/// # Errors
/// Returns an error if ports are in use or nothing can be sent.
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
/// # Errors
/// Returns an error if a source port is in use or nothing can be sent.
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
        assert_eq!(groups(&found), [vec![1, 4], vec![0, 2]], "label 3 may lead over either");
        // The first switch limits its replies: what is behind it distinguishes labels 2, 3 and 5, label 4 may lead over any.
        let limited = [
            path(0, &[Some(1), Some(3), Some(9)]),
            path(1, &[Some(1), Some(2), Some(9)]),
            path(2, &[None, Some(3), Some(9)]),
            path(3, &[None, Some(2), Some(9)]),
            path(4, &[Some(1), None, Some(9)]),
            path(5, &[None, Some(4), Some(9)]),
        ];
        assert_eq!(groups(&limited), [vec![5], vec![1, 3], vec![0, 2]]);
        // A hop that only one of two has shown leaves open whether they differ.
        let open = [path(0, &[Some(1), None, Some(5), Some(9)]), path(1, &[None, Some(4), Some(5), Some(9)])];
        assert_eq!(groups(&open), [vec![0]]);
        // The second switch never replies, and hops behind it are unknown.
        let unresponsive = [path(0, &[Some(1), None]), path(1, &[Some(1), None])];
        assert_eq!(groups(&unresponsive), [vec![0, 1]]);
        assert!(groups(&[path(0, &[None, None]), path(1, &[Some(9)])]).is_empty(), "no switch answers");
    }
}
