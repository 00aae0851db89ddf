//! Path discovery: traces the switches of a UDP flow by its port pair, without privileges.
//!
//! A switch that discards a datagram because its TTL expired sends an ICMP error, which arrives in the socket's error
//! queue.

use crate::TestbedError;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt},
};
use std::{
    collections::BTreeMap,
    io::{ErrorKind, IoSliceMut},
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket},
    os::fd::{AsFd, AsRawFd},
    time::{Duration, Instant},
};

/// Size of a probe in bytes.
const QUESTION: usize = 32;
/// Attempts per hop.
const TRIES: u32 = 3;
/// Labels probed at once; switches delay ICMP errors under larger bursts.
const BATCH: usize = 16;
/// Consecutive silent hops after which probing of a label stops.
const MAX_UNRESPONSIVE_HOPS: usize = 2;
/// Origin of an extended socket error (`SO_EE_ORIGIN_ICMP`).
const ORIGIN_ICMP: u8 = 2;
/// ICMP types: time exceeded, destination unreachable.
const TIME_EXCEEDED: u8 = 11;
const UNREACHABLE: u8 = 3;
/// Range in which free ports are searched.
const FIRST: u16 = 20_000;
const LAST: u16 = 60_000;

/// Parameters of a path discovery.
#[derive(Clone, Copy, Debug)]
pub struct PathRequest {
    /// Destination address, and destination port of label 0.
    pub to: SocketAddrV4,
    /// Source port of label 0. 0 selects the first run of free ports, one for each label.
    pub first_port: u16,
    /// Number of labels. Label `i` uses the `i`th source port and the `i`th destination port.
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

/// Groups labels that share their switches. Labels with fewer known switches than others are excluded. The result is
/// empty if no switch replied.
pub fn groups(found: &[LabelPath]) -> Vec<Vec<u32>> {
    let known = |path: &LabelPath| path.switches().iter().flatten().count();
    let most = found.iter().map(known).max().unwrap_or(0);
    let mut groups: BTreeMap<Vec<Option<Ipv4Addr>>, Vec<u32>> = BTreeMap::new();
    for path in found.iter().filter(|path| most > 0 && known(path) == most) {
        groups.entry(path.switches()).or_default().push(path.label.into());
    }
    groups.into_values().collect()
}

/// Returns the IPv4 address of an endpoint.
///
/// # Errors
/// Returns an error if the address is IPv6.
pub fn address(to: SocketAddr) -> Result<SocketAddrV4, TestbedError> {
    match to {
        SocketAddr::V4(to) => Ok(to),
        SocketAddr::V6(to) => Err(TestbedError::Input(format!("{to} is an IPv6 address; paths are found over IPv4"))),
    }
}

/// Opens a UDP socket whose error queue receives ICMP errors.
fn open(port: u16) -> Result<UdpSocket, TestbedError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AddrInUse => {
            TestbedError::Input(format!("UDP port {port} is in use here; choose others with --from"))
        }
        _ => TestbedError::system(format!("opening UDP port {port}"), error),
    };
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(failed)?;
    setsockopt(&socket, sockopt::Ipv4RecvErr, &true)
        .map_err(|error| TestbedError::system("asking for the error queue of a socket", error))?;
    socket.set_nonblocking(true).map_err(failed)?;
    Ok(socket)
}

fn open_all(first: u16, labels: u16) -> Result<Vec<UdpSocket>, TestbedError> {
    if u32::from(first) + u32::from(labels) > 1 << 16 {
        return Err(TestbedError::Input(format!("{labels} labels from port {first} on go beyond port 65535")));
    }
    if first != 0 {
        return (first..=first + (labels - 1)).map(open).collect();
    }
    let rooms = (FIRST..=LAST).step_by(usize::from(labels).max(1));
    let opened = rooms.filter(|first| first.checked_add(labels).is_some()).find_map(|first| {
        // Some of these ports may be in use.
        (first..first + labels).map(|port| open(port).ok()).collect::<Option<Vec<_>>>()
    });
    opened.ok_or_else(|| TestbedError::Input(format!("there are not {labels} free UDP ports in a row")))
}

/// Traces the hops of each label.
///
/// # Errors
/// Returns an error if ports are in use or nothing can be sent.
pub fn discover(request: &PathRequest) -> Result<Vec<LabelPath>, TestbedError> {
    if u32::from(request.to.port()) + u32::from(request.labels) > 1 << 16 {
        let (labels, to) = (request.labels, request.to);
        return Err(TestbedError::Input(format!("{labels} labels from {to} on go beyond port 65535")));
    }
    let sockets = open_all(request.first_port, request.labels)?;
    let destinations: Vec<u16> = (0..request.labels).map(|label| request.to.port() + label).collect();
    trace(*request.to.ip(), &sockets, &destinations, request.hops, request.timeout)
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
) -> Result<Vec<LabelPath>, TestbedError> {
    let sockets: Vec<UdpSocket> = pairs.iter().map(|pair| open(pair.0)).collect::<Result<_, _>>()?;
    let destinations: Vec<u16> = pairs.iter().map(|pair| pair.1).collect();
    trace(to, &sockets, &destinations, hops, timeout)
}

fn trace(
    to: Ipv4Addr,
    all: &[UdpSocket],
    ports: &[u16],
    hops: u8,
    timeout: Duration,
) -> Result<Vec<LabelPath>, TestbedError> {
    let mut paths = Vec::with_capacity(all.len());
    for (chunk, sockets) in all.chunks(BATCH).enumerate() {
        let mut found: Vec<LabelPath> = Vec::with_capacity(sockets.len());
        for (index, socket) in sockets.iter().enumerate() {
            let label = (chunk * BATCH + index) as u16;
            let at = socket.local_addr().map_err(|error| TestbedError::system("own address", error))?;
            found.push(LabelPath {
                label,
                source: at.port(),
                destination: ports[usize::from(label)],
                hops: Vec::new(),
            });
        }
        for ttl in 1..=hops.max(1) {
            let goes_on = |path: &LabelPath| {
                let ended = path.hops.last().is_some_and(|hop| hop.is_some_and(|hop| hop.is_last));
                !ended
                    && (path.hops.len() < MAX_UNRESPONSIVE_HOPS
                        || path.hops.iter().rev().take(MAX_UNRESPONSIVE_HOPS).any(Option::is_some))
            };
            let open_labels: Vec<usize> = (0..found.len()).filter(|index| goes_on(&found[*index])).collect();
            let destinations: Vec<u16> = open_labels.iter().map(|index| found[*index].destination).collect();
            let open_sockets: Vec<&UdpSocket> = open_labels.iter().map(|index| &sockets[*index]).collect();
            let replies = probe(&open_sockets, to, &destinations, ttl, timeout)?;
            open_labels.iter().zip(replies).for_each(|(index, hop)| found[*index].hops.push(hop));
        }
        paths.extend(found);
    }
    Ok(paths)
}

/// Probes hop `ttl` on each socket. Returns the hops that replied.
fn probe(
    sockets: &[&UdpSocket],
    to: Ipv4Addr,
    ports: &[u16],
    ttl: u8,
    timeout: Duration,
) -> Result<Vec<Option<Hop>>, TestbedError> {
    let mut replies: Vec<Option<Hop>> = vec![None; sockets.len()];
    let question = [ttl; QUESTION];
    for _ in 0..TRIES {
        let mut sent_at = vec![None; sockets.len()];
        for (index, socket) in sockets.iter().enumerate().filter(|(index, _)| replies[*index].is_none()) {
            socket.set_ttl(ttl.into()).map_err(|error| TestbedError::system("setting the hops of a socket", error))?;
            sent_at[index] = Some(Instant::now());
            let to = SocketAddrV4::new(to, ports[index]);
            // A pending error fails the first attempt, so a second one follows.
            let sent = socket.send_to(&question, to).or_else(|_| socket.send_to(&question, to));
            if let Err(error) = sent
                && matches!(error.kind(), ErrorKind::NetworkUnreachable | ErrorKind::PermissionDenied)
            {
                return Err(TestbedError::system(format!("sending to {to}"), error));
            }
        }
        let until = Instant::now() + timeout;
        loop {
            for (index, socket) in sockets.iter().enumerate() {
                while replies[index].is_none()
                    && let Some(begun) = sent_at[index]
                    && let Some((at, is_last, of)) = read(socket)?
                {
                    if of == ttl {
                        replies[index] = Some(Hop { at, round_trip: begun.elapsed(), is_last });
                    }
                }
            }
            let open = || (0..sockets.len()).filter(|index| sent_at[*index].is_some() && replies[*index].is_none());
            let left = until.saturating_duration_since(Instant::now());
            if open().next().is_none() || left.is_zero() {
                break;
            }
            // `poll` reports errors without a request for events.
            let mut fds: Vec<PollFd<'_>> =
                open().map(|index| PollFd::new(sockets[index].as_fd(), PollFlags::empty())).collect();
            let millis = u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX);
            match poll(&mut fds, PollTimeout::from(millis)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(TestbedError::system("waiting for answers", error)),
            }
        }
    }
    Ok(replies)
}

/// Reads the next message of a socket's error queue: its sender, `true` if that is the destination, and the probe's
/// TTL, which the payload repeats.
fn read(socket: &UdpSocket) -> Result<Option<(Ipv4Addr, bool, u8)>, TestbedError> {
    loop {
        let mut question = [0; QUESTION];
        let mut buffers = [IoSliceMut::new(&mut question)];
        let mut space = nix::cmsg_space!([u8; 256]);
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = match recvmsg::<SockaddrIn>(socket.as_raw_fd(), &mut buffers, Some(&mut space), flags) {
            Ok(message) => message,
            Err(Errno::EAGAIN) => return Ok(None),
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(TestbedError::system("reading the error queue of a socket", error)),
        };
        let hop = message.cmsgs().ok().and_then(|mut all| {
            all.find_map(|control| match control {
                ControlMessageOwned::Ipv4RecvErr(error, Some(from)) if error.ee_origin == ORIGIN_ICMP => {
                    let at = Ipv4Addr::from(u32::from_be(from.sin_addr.s_addr));
                    match error.ee_type {
                        TIME_EXCEEDED => Some((at, false)),
                        UNREACHABLE => Some((at, true)),
                        _ => None,
                    }
                }
                _ => None,
            })
        });
        if let Some((at, is_last)) = hop {
            return Ok(Some((at, is_last, question[0])));
        }
    }
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
        // The second switch never replies, and hops behind it are unknown.
        let unresponsive = [path(0, &[Some(1), None]), path(1, &[Some(1), None])];
        assert_eq!(groups(&unresponsive), [vec![0, 1]]);
        assert!(groups(&[path(0, &[None, None]), path(1, &[Some(9)])]).is_empty(), "no switch answers");
    }
}
