//! UDP: labels are consecutive ports of the endpoint that is called, with one socket each.
//!
//! Label `i` is sent from the first port of the caller to the `i`th port of the called endpoint, and replies reverse that:
//! every label is a path to switches that hash the five-tuple. Only one port varies, so labels also differ for hashes that
//! combine both (XOR, sums, symmetric ones). A peer is identified by its address and first port. Segments of one label
//! leave together (GSO) and arrive together (GRO, `recvmmsg`).

mod interface;
mod ready;
mod send;
#[cfg(test)]
mod spread;

#[cfg(target_os = "linux")]
use crate::paths::{self, PathError, Trace};
use crate::{Abilities, Datapath, Inbound, Label, Outbound, PeerId, Source, To, WireError};
use anabranch_units::Time;
use interface::Interface;
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSocketState};
use ready::{Readable, Waiter};
use rustix::io::Errno;
#[cfg(target_os = "linux")]
use std::net::SocketAddrV4;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, IoSliceMut},
    net::{IpAddr, SocketAddr, UdpSocket},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Bytes of the largest run of segments.
const MAX_RUN_BYTES: usize = 65_000;
/// The kernel's limit for coalesced segments.
const BUFFER: usize = 1 << 16;
const SOCKET_BUFFER: usize = 4 << 20;
/// Runs read at once from a socket: few, so that they stay in the cache.
const READ_BATCH: usize = 8;
const MAX_SOCKETS: usize = 256;
/// Maximum time between two uninterrupted clock readings.
const CLOCK_INTERVAL: Time = Time::from_us(50);
/// Additional peers that may be closing while others connect.
const LEAVING: u32 = 64;
const TRIES: u32 = 64;
/// Linux sends one ICMP error per second to an address.
const ICMP_TRIES: u32 = 12;
const ICMP_INTERVAL: Duration = Duration::from_millis(100);
/// Refusals of the kernel that are reported, with different addresses or errors.
const MAX_REPORTED: usize = 64;

/// UDP sockets, one per label, or one for an endpoint that only calls.
#[derive(Debug)]
pub struct UdpPath {
    opened: Instant,
    labels: u32,
    sockets: Vec<(UdpSocket, UdpSocketState)>,
    /// Address of label 0.
    at: SocketAddr,
    /// `None` if no other interface shares its networks.
    interface: Option<Interface>,
    peers: Peers,
    buffers: Vec<Vec<u8>>,
    /// As of a poll that has not been used yet.
    ready: Option<Readable>,
    waiter: Waiter,
    /// One after the kernel or the device has refused runs.
    run: usize,
    turn: usize,
    /// Datagrams and system calls.
    sent: [u64; 2],
    /// Datagrams that the kernel has refused, and its last error.
    refused: BTreeMap<PeerId, (u64, i32)>,
    /// Addresses and errors to report, and those reported.
    refusals: Vec<(SocketAddr, i32)>,
    reported: BTreeSet<(IpAddr, i32)>,
    warning: Option<String>,
}

fn system(what: impl Into<String>, source: io::Error) -> WireError {
    WireError::System { what: what.into(), source }
}

/// The scope of a link-local address stays.
fn with_port(mut at: SocketAddr, port: u16) -> SocketAddr {
    at.set_port(port);
    at
}

/// `base` is that of label 0.
fn address(base: SocketAddr, label: Label) -> Option<SocketAddr> {
    u16::try_from(u32::from(base.port()) + label).ok().map(|port| with_port(base, port))
}

impl UdpPath {
    /// Opens sockets for `labels` consecutive ports from that of `at`, with port 0 from any free range, and at most
    /// `max_peers` peers. Packets to the networks of `at` leave by its interface, even if another one is in the same
    /// network.
    ///
    /// # Errors
    /// Fails if a port is in use or not permitted.
    pub fn open(at: SocketAddr, labels: u32, max_peers: u32) -> Result<Self, WireError> {
        Self::open_sockets(at, labels, labels, max_peers)
    }

    /// Opens one socket, for an endpoint that calls others and is never called.
    ///
    /// # Errors
    /// Fails if the port is in use or not permitted.
    pub fn calling(at: SocketAddr, labels: u32, max_peers: u32) -> Result<Self, WireError> {
        Self::open_sockets(at, 1, labels, max_peers)
    }

    fn open_sockets(at: SocketAddr, sockets: u32, labels: u32, max_peers: u32) -> Result<Self, WireError> {
        if labels as usize > MAX_SOCKETS {
            return Err(WireError::Address(format!("{labels} labels, of which there may be {MAX_SOCKETS}")));
        }
        if at.ip().is_multicast() || interface::is_broadcast(at.ip()) {
            let what = "a multicast or broadcast address, expected one of this machine";
            return Err(WireError::Address(format!("cannot listen at {at}: {what}")));
        }
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::try_open(at, sockets.max(1), labels.max(1), max_peers) {
                Err(_) if at.port() == 0 && tries < TRIES => {}
                opened => return opened,
            }
        }
    }

    fn try_open(at: SocketAddr, count: u32, labels: u32, max_peers: u32) -> Result<Self, WireError> {
        let (mut sockets, mut base) = (Vec::new(), at);
        for label in 0..count {
            let at = address(base, label).ok_or_else(|| {
                WireError::Address(format!("{labels} labels take as many ports from {base} on, and ports end at 65535"))
            })?;
            let bound = match UdpSocket::bind(at) {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::MFILE) && raise_open_files() => {
                    UdpSocket::bind(at)
                }
                bound => bound,
            };
            let socket = bound.map_err(|error| system(cannot_listen(at, labels, &error), error))?;
            let state = UdpSocketState::new((&socket).into()).map_err(|error| system(format!("at {at}"), error))?;
            // The kernel may grant less, which costs only lost packets.
            let _ = state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER);
            let _ = state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER);
            if label == 0 {
                base = socket.local_addr().map_err(|error| system("own address", error))?;
            }
            sockets.push((socket, state));
        }
        let run = sockets.first().map_or(1, |(_, state)| state.max_gso_segments()).clamp(1, send::MAX_RUN);
        let interface = Interface::of(base.ip());
        Ok(UdpPath {
            warning: interface.as_ref().and_then(Interface::warning),
            waiter: Waiter::new(sockets.iter().map(|(socket, _)| socket)),
            run,
            opened: Instant::now(),
            labels,
            sockets,
            at: base,
            interface,
            peers: Peers { labels, max: max_peers.saturating_add(LEAVING), ..Peers::default() },
            buffers: (0..READ_BATCH).map(|_| vec![0; BUFFER]).collect(),
            ready: None,
            turn: 0,
            sent: [0; 2],
            refused: BTreeMap::new(),
            refusals: Vec::new(),
            reported: BTreeSet::new(),
        })
    }

    /// Returns a setting of this machine that will drop packets.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Returns the address of label 0.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// Prepares a trace of the switches towards a peer to be called, whose label 0 has the address `to`, for as many labels
    /// as both have. It sends from the first socket of this datapath, which continues meanwhile.
    ///
    /// # Errors
    /// Fails if the sockets have no error queue.
    #[cfg(target_os = "linux")]
    pub fn trace(&self, to: SocketAddrV4, labels: u16) -> Result<Trace, PathError> {
        let ports: Vec<u16> = (to.port()..=u16::MAX).take(labels.into()).collect();
        let socket = self.sockets[0].0.try_clone();
        let socket = socket.map_err(|source| PathError::System { what: "sharing a socket".into(), source })?;
        Trace::new(*to.ip(), vec![socket], ports, paths::MAX_SWITCHES, paths::SWITCH_TIMEOUT)
    }

    fn since_opened(&self) -> Time {
        let nanoseconds = u64::try_from(self.opened.elapsed().as_nanos()).unwrap_or(u64::MAX / 1000);
        Time::from_ps(nanoseconds.saturating_mul(1000))
    }

    /// Reads monotonic and wall clock; an interrupted reading is repeated.
    fn both_clocks(&self) -> (Time, Option<Duration>) {
        let mut before = self.since_opened();
        loop {
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).ok();
            let now = self.since_opened();
            if now.saturating_sub(before) < CLOCK_INTERVAL {
                return (now, wall);
            }
            before = now;
        }
    }

    fn readable(&mut self, timeout: Duration) -> Result<Readable, WireError> {
        let sockets = self.sockets.iter().map(|(socket, _)| socket);
        self.waiter.wait(sockets, timeout).map_err(|error| system("waiting for datagrams", error.into()))
    }
}

/// Returns `false` if the process may open no more files than it does.
fn raise_open_files() -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    current < maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok()
}

fn cannot_listen(at: SocketAddr, labels: u32, error: &io::Error) -> String {
    let remedy = match Errno::from_io_error(error) {
        Some(Errno::MFILE) => format!(
            " with {labels} sockets, one per label: raise the limit of open files (ulimit -Hn), or use fewer labels"
        ),
        _ => String::new(),
    };
    format!("cannot listen at {at}{remedy}")
}

/// Describes an error of the kernel in the words of its remedy.
fn refusal(code: i32) -> String {
    let error = io::Error::from_raw_os_error(code);
    let remedy = match Errno::from_raw_os_error(code) {
        Errno::PERM => "; a firewall of this machine drops them",
        Errno::NETUNREACH | Errno::HOSTUNREACH => "; this machine has no route there",
        Errno::ACCESS => "; a route or a firewall of this machine prohibits it",
        Errno::INVAL => "; a route drops them, or the local address cannot be used there",
        Errno::ADDRNOTAVAIL | Errno::NETDOWN | Errno::NODEV | Errno::NXIO => "; the local address or interface is gone",
        _ => "",
    };
    format!("{error}{remedy}")
}

/// Returns `true` if the error may be an ICMP error that an earlier datagram of the socket has caused.
fn is_icmp(error: &io::Error) -> bool {
    // As the kernel translates them (`icmp_err_convert` of Linux).
    let errors = [
        Errno::NETUNREACH,
        Errno::HOSTUNREACH,
        Errno::NOPROTOOPT,
        Errno::CONNREFUSED,
        Errno::MSGSIZE,
        Errno::OPNOTSUPP,
        Errno::HOSTDOWN,
    ];
    Errno::from_io_error(error).is_some_and(|error| errors.contains(&error))
}

#[derive(Clone, Debug)]
struct Remote {
    /// Its first port, or as a NAT has mapped it, and the local address that it has called.
    of: Source,
    /// Its ports are the labels: the local endpoint calls it. Otherwise those of the local endpoint are.
    is_called: bool,
    /// Ports of its labels as a NAT has mapped them; 0: its first port.
    ports: Vec<u16>,
}

/// Sender of an address.
#[derive(Clone, Copy, Debug)]
struct Known {
    peer: PeerId,
    /// Label of its datagrams to the first socket.
    label: Label,
    /// A datagram with its connection number has come from there.
    is_confirmed: bool,
}

/// Numbers of released peers are reused.
#[derive(Debug, Default)]
struct Peers {
    at: Vec<Option<Remote>>,
    /// First ports, ports of the labels of called peers, and those that NATs have mapped.
    known: BTreeMap<SocketAddr, Known>,
    free: Vec<PeerId>,
    labels: u32,
    max: u32,
}

impl Peers {
    fn get(&self, peer: PeerId) -> Option<&Remote> {
        self.at.get(peer as usize)?.as_ref()
    }

    /// Returns the number of a peer of a first port.
    fn number(&mut self, of: Source, is_called: bool) -> Option<PeerId> {
        let known = self.known.get(&of.at).filter(|known| self.get(known.peer).is_some_and(|peer| peer.of.at == of.at));
        let peer = match known.map(|known| known.peer).or_else(|| self.free.pop()) {
            Some(peer) => peer,
            None => {
                let peer = u32::try_from(self.at.len()).ok().filter(|peer| *peer < self.max)?;
                self.at.push(None);
                peer
            }
        };
        let remote = self.at[peer as usize].get_or_insert(Remote { of, is_called: false, ports: Vec::new() });
        self.known.insert(of.at, Known { peer, label: 0, is_confirmed: true });
        if is_called && !remote.is_called {
            remote.is_called = true;
            for label in 1..self.labels {
                // Another peer may have this as its first port.
                let Some(at) = address(of.at, label) else { break };
                self.known.entry(at).or_insert(Known { peer, label, is_confirmed: false });
            }
        }
        Some(peer)
    }

    /// A datagram of the peer has come from this address over a label: a NAT has mapped its port, or a called peer replies.
    fn confirm(&mut self, peer: PeerId, label: Label, from: SocketAddr) {
        let Some(Some(remote)) = self.at.get_mut(peer as usize) else { return };
        if remote.is_called {
            if let Some(known) = self.known.get_mut(&from).filter(|known| known.peer == peer) {
                known.is_confirmed = true;
            }
            return;
        }
        if label >= self.labels || from.ip() != remote.of.at.ip() {
            return;
        }
        let at = label as usize;
        if remote.ports.len() <= at {
            remote.ports.resize(at + 1, 0);
        }
        let before = with_port(from, std::mem::replace(&mut remote.ports[at], from.port()));
        let is_used = remote.ports.contains(&before.port()) || before == remote.of.at;
        if !is_used && self.known.get(&before).is_some_and(|known| known.peer == peer) {
            self.known.remove(&before);
        }
        self.known.entry(from).or_insert(Known { peer, label: 0, is_confirmed: true });
    }

    fn release(&mut self, peer: PeerId) {
        let Some(remote) = self.at.get_mut(peer as usize).and_then(Option::take) else { return };
        let labels =
            (1..if remote.is_called { self.labels } else { 1 }).filter_map(|label| address(remote.of.at, label));
        let mapped = remote.ports.iter().map(|port| with_port(remote.of.at, *port));
        for at in labels.chain(mapped).chain([remote.of.at]) {
            if self.known.get(&at).is_some_and(|known| known.peer == peer) {
                self.known.remove(&at);
            }
        }
        self.free.push(peer);
    }
}

/// The kernel's timestamp is of the wall clock.
fn stamp(now: Time, wall: Option<Duration>, stamped: Option<Duration>) -> Time {
    let age = wall.zip(stamped).and_then(|(wall, stamped)| wall.checked_sub(stamped)).unwrap_or(Duration::ZERO);
    // Above one second the wall clock was set.
    let age = if age > Duration::from_secs(1) { Duration::ZERO } else { age };
    now.saturating_sub(Time::from_ns(age.as_nanos() as u64))
}

impl Datapath for UdpPath {
    fn abilities(&self) -> Abilities {
        Abilities { largest: MAX_RUN_BYTES, labels: self.labels, run: self.run }
    }

    fn now(&self) -> Time {
        self.since_opened()
    }

    fn peer(&mut self, at: SocketAddr, labels: &[Label]) -> Result<PeerId, WireError> {
        if let Some(label) = labels.iter().find(|label| **label >= self.labels) {
            return Err(WireError::UnknownLabel { label: *label, labels: self.labels });
        }
        self.peers.number(at.into(), true).ok_or(WireError::TooManyPeers(self.peers.max))
    }

    fn admit(&mut self, from: Source) -> Option<PeerId> {
        self.peers.number(from, false)
    }

    fn confirm(&mut self, peer: PeerId, label: Label, from: SocketAddr) {
        self.peers.confirm(peer, label, from);
    }

    fn peer_at(&self, peer: PeerId) -> Option<SocketAddr> {
        self.peers.get(peer).map(|remote| remote.of.at)
    }

    fn labels_at(&self, peer: PeerId) -> Option<SocketAddr> {
        let remote = self.peers.get(peer)?;
        Some(if remote.is_called { remote.of.at } else { self.at })
    }

    fn release(&mut self, peer: PeerId) {
        self.peers.release(peer);
        self.refused.remove(&peer);
    }

    fn refusals(&self, peer: PeerId) -> Option<(u64, String)> {
        self.refused
            .get(&peer)
            .map(|(count, code)| (*count, format!("the kernel refused {count} datagrams: {}", refusal(*code))))
    }

    fn poll_refusal(&mut self) -> Option<(SocketAddr, String)> {
        let (at, code) = self.refusals.pop()?;
        Some((at, format!("the kernel refuses datagrams to it: {}", refusal(code))))
    }

    /// Only connected sockets receive them.
    fn icmp_error(&self, at: SocketAddr) -> Option<String> {
        let socket = UdpSocket::bind(with_port(self.at, 0)).ok()?;
        socket.connect(at).ok()?;
        socket.set_read_timeout(Some(ICMP_INTERVAL)).ok()?;
        (0..ICMP_TRIES).find_map(|_| {
            let error = socket.send(&[0]).and_then(|_| socket.recv(&mut [0])).err()?;
            let meaning = match Errno::from_io_error(&error)? {
                Errno::CONNREFUSED => "nothing listens there, or a firewall rejects it",
                Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::ACCESS => "a router or firewall on the path rejects it",
                _ => return None,
            };
            Some(format!("{meaning} (ICMP: {error})"))
        })
    }

    fn sent(&self) -> [u64; 2] {
        self.sent
    }

    fn send(&mut self, batch: &[Outbound<'_>]) -> Result<usize, WireError> {
        let mut sent = 0;
        while let Some(first) = batch.get(sent) {
            let Outbound { to, label, ecn, class, .. } = *first;
            // The caller's first socket, or that of the label.
            let (Source { at: destination, local, .. }, socket) = match to {
                To::Address(of) => (of, if of.reply_of.is_some() { 0 } else { label }),
                To::Peer(peer) => match self.peers.get(peer).ok_or(WireError::UnknownPeer(peer))? {
                    Remote { of, is_called: true, .. } if label < self.labels => {
                        let Some(at) = address(of.at, label) else {
                            sent += 1;
                            continue;
                        };
                        (Source { at, ..*of }, 0)
                    }
                    Remote { of, ports, .. } => {
                        let mapped = ports.get(label as usize).copied().filter(|port| *port != 0);
                        let at = with_port(of.at, mapped.unwrap_or(of.at.port()));
                        (Source { at, ..*of }, label % self.labels)
                    }
                },
            };
            let (socket, _) = &self.sockets[socket as usize % self.sockets.len()];
            // The last segment of a run may be shorter.
            let size = first.size();
            let max = self.run.min(MAX_RUN_BYTES / size.max(1)).max(1);
            let mut run = 1;
            while let Some(next) = batch.get(sent + run)
                && run < max
                && (next.to, next.label, next.ecn, next.class) == (to, label, ecn, class)
                && next.size() <= size
                && batch[sent + run - 1].size() == size
            {
                run += 1;
            }
            let class = class & 0xfc | if ecn { EcnCodepoint::Ect0 as u8 } else { 0 };
            let interface = self.interface.as_ref().filter(|interface| interface.leads_to(destination.ip()));
            let by = interface.map(|of| (of.index(), of.address())).or_else(|| Some((0, local?)));
            let send = || send::send(socket, destination, &batch[sent..sent + run], class, by);
            let result = match send() {
                // An ICMP error of an earlier datagram, while labels are traced.
                Err(error) if is_icmp(&error) => send(),
                result => result,
            };
            match result {
                Ok(()) => self.sent = [self.sent[0] + run as u64, self.sent[1] + 1],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(sent),
                // Some devices do not support runs; the transport retransmits this one.
                Err(error) if run > 1 && matches!(Errno::from_io_error(&error), Some(Errno::IO | Errno::INVAL)) => {
                    self.run = 1;
                }
                // Other errors may be transient: the transport retransmits. The endpoint finds the size that passes.
                Err(error) => {
                    let code = error.raw_os_error().unwrap_or_default();
                    if let To::Peer(peer) = to {
                        let (count, last) = self.refused.entry(peer).or_default();
                        (*count, *last) = (*count + run as u64, code);
                    }
                    // A flood from forged addresses fills no log.
                    if self.reported.len() < MAX_REPORTED && self.reported.insert((destination.ip(), code)) {
                        self.refusals.push((destination, code));
                    }
                }
            }
            sent += run;
        }
        Ok(sent)
    }

    fn receive(&mut self, max: usize, take: &mut dyn FnMut(Inbound<'_>)) -> Result<usize, WireError> {
        let readable = match self.ready.take() {
            Some(readable) => readable,
            None => self.readable(Duration::ZERO)?,
        };
        let (count, mut received) = (self.sockets.len(), 0);
        self.turn = (self.turn + 1) % count;
        for index in 0..count {
            let socket_label = (self.turn + index) % count;
            if !readable.has(socket_label) || received >= max {
                continue;
            }
            let (socket, state) = &self.sockets[socket_label];
            let mut metas = [RecvMeta::default(); READ_BATCH];
            let mut slices = self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer));
            let mut slices: [IoSliceMut<'_>; READ_BATCH] =
                std::array::from_fn(|_| slices.next().unwrap_or(IoSliceMut::new(&mut [])));
            let filled = match state.recv(socket.into(), &mut slices, &mut metas) {
                Ok(filled) => filled,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                // The peer's timeout covers a closed port.
                Err(error) if error.kind() == io::ErrorKind::Interrupted || is_icmp(&error) => continue,
                Err(error) => return Err(system("receiving", error)),
            };
            let (now, wall) = self.both_clocks();
            for (meta, buffer) in metas[..filled].iter().zip(&self.buffers) {
                // At the wildcard address, replies must leave from the address that was called.
                let local = meta.dst_ip.filter(|_| self.at.ip().is_unspecified()).map(|ip| ip.to_canonical());
                // Only the first socket calls, so to others the label of a sender is that of the socket.
                let known = self.peers.known.get(&meta.addr).filter(|known| known.label == 0 || socket_label == 0);
                let label = known.map_or(0, |known| known.label).max(socket_label as Label);
                // Its labels are not those by which it is called: replies reverse the ports that it has chosen.
                let is_called = known.and_then(|known| self.peers.get(known.peer)).is_some_and(|peer| peer.is_called);
                let label = if is_called && socket_label > 0 { self.labels + label } else { label };
                let (peer, reply_of) = match known {
                    Some(Known { peer, is_confirmed: true, .. }) => (Some(*peer), None),
                    other => (None, other.map(|known| known.peer)),
                };
                let from = Some(Source { at: meta.addr, local, reply_of });
                let (at, ecn) = (stamp(now, wall, meta.timestamp), meta.ecn == Some(EcnCodepoint::Ce));
                for bytes in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    take(Inbound { peer, from, label, at, ecn, bytes });
                    received += 1;
                }
            }
        }
        Ok(received)
    }

    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        let left = until.saturating_sub(self.since_opened());
        if left > Time::ZERO {
            // One hour at most: the caller waits again.
            self.ready = Some(self.readable(Duration::from_nanos((left.ps() / 1000).min(3_600_000_000_000)))?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    #[test]
    fn labels_runs_and_marks_arrive_as_they_were_sent() {
        let mut a = UdpPath::open(loopback(), 4, 8).unwrap();
        let mut b = UdpPath::open(loopback(), 4, 8).unwrap();
        let peer = a.peer(b.at(), &[0, 1, 2, 3]).unwrap();
        let full: &'static [u8] = (0..1200).map(|at| (at % 251) as u8).collect::<Vec<_>>().leak();
        let outbound = |label, bytes: &'static [u8]| {
            let (head, payload) = bytes.split_at(56);
            Outbound { to: To::Peer(peer), label, ecn: true, class: 0, head, payload }
        };
        // Runs of three and two, and a single datagram.
        let short = &full[..100];
        let batch = [
            outbound(2, full),
            outbound(2, full),
            outbound(2, full),
            outbound(3, full),
            outbound(3, short),
            outbound(0, short),
        ];
        assert_eq!(a.send(&batch).unwrap(), 6);
        let (at, mut seen) = (a.at(), Vec::new());
        let limit = b.now() + Time::from_us(5_000_000);
        while seen.len() < 6 && b.now() < limit {
            b.wait(limit).unwrap();
            let now = b.now();
            b.receive(64, &mut |inbound| {
                assert!(inbound.at <= now + Time::from_us(1_000_000) && !inbound.ecn);
                assert_eq!(inbound.bytes, &full[..inbound.bytes.len()]);
                assert_eq!(
                    (inbound.peer, inbound.from),
                    (None, Some(at.into())),
                    "told by its first port, whatever label it used"
                );
                seen.push((0, inbound.label, inbound.bytes.len()));
            })
            .unwrap();
        }
        seen.sort_unstable();
        assert_eq!(seen, [(0, 0, 100), (0, 2, 1200), (0, 2, 1200), (0, 2, 1200), (0, 3, 100), (0, 3, 1200)]);
        assert_eq!(b.peer_at(0), None, "what sends takes no number");
        assert_eq!((b.peer(at, &[]).unwrap(), b.peer_at(0)), (0, Some(at)));
    }

    /// Expedited forwarding is 46, so 184 of the byte, beside the mark (ECT(0): 2).
    #[cfg(target_os = "linux")]
    #[test]
    fn a_traffic_class_stands_beside_marks() {
        use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt::IpRecvTos};
        use std::os::fd::AsRawFd;
        let (to, mut from) = (UdpSocket::bind(loopback()).unwrap(), UdpPath::open(loopback(), 1, 8).unwrap());
        setsockopt(&to, IpRecvTos, &true).unwrap();
        let peer = from.peer(to.local_addr().unwrap(), &[0]).unwrap();
        let bytes = vec![7u8; 1200];
        let outbound = |ecn| Outbound { to: To::Peer(peer), label: 0, ecn, class: 187, head: &bytes, payload: &[] };
        for (batch, byte) in [([outbound(true), outbound(true)], 184 | 2), ([outbound(false), outbound(false)], 184)] {
            assert_eq!(from.send(&batch).unwrap(), 2);
            for _ in 0..2 {
                let (mut buffer, mut message) = ([0; 2000], nix::cmsg_space!(u8));
                let mut places = [IoSliceMut::new(&mut buffer)];
                let got = recvmsg::<()>(to.as_raw_fd(), &mut places, Some(&mut message), MsgFlags::empty()).unwrap();
                assert_eq!(got.bytes, 1200);
                let message: Vec<_> = got.cmsgs().unwrap().collect();
                assert!(matches!(message[..], [ControlMessageOwned::Ipv4Tos(of)] if of == byte), "{message:?}");
            }
        }
    }

    /// A closed port replies to the probes with an ICMP error, and datagrams pass meanwhile and afterwards.
    #[cfg(target_os = "linux")]
    #[test]
    fn labels_are_traced_from_sockets_in_use() {
        let (mut a, mut b) = (UdpPath::open(loopback(), 2, 8).unwrap(), UdpPath::open(loopback(), 2, 8).unwrap());
        let peer = a.peer(b.at(), &[0, 1]).unwrap();
        let closed = {
            let closed = UdpPath::open(loopback(), 2, 8).unwrap();
            let SocketAddr::V4(at) = closed.at() else { panic!("IPv4") };
            at
        };
        let mut trace = a.trace(closed, 2).unwrap();
        let (bytes, limit) = (vec![7u8; 100], Instant::now() + Duration::from_secs(10));
        let (mut found, mut received) = (None, 0);
        while (found.is_none() || received < 2) && Instant::now() < limit {
            found = found.or(trace.poll().unwrap());
            let outbound =
                |label| Outbound { to: To::Peer(peer), label, ecn: false, class: 0, head: &bytes, payload: &[] };
            assert_eq!(a.send(&[outbound(0), outbound(1)]).unwrap(), 2);
            a.receive(8, &mut |_| panic!("nothing is sent here")).unwrap();
            b.receive(64, &mut |_| received += 1).unwrap();
        }
        let found = found.expect("replies");
        for (label, path) in found.iter().enumerate() {
            assert_eq!((path.source, path.destination), (a.at().port(), closed.port() + label as u16));
            let [Some(hop)] = path.hops[..] else { panic!("{path:?}") };
            assert_eq!((hop.is_last, hop.at), (true, *closed.ip()));
        }
        assert!(received >= 2);
        drop(trace);
        let none = a.readable(Duration::from_millis(20)).unwrap();
        assert!(!none.has(0) && !none.has(1), "no error is left");
    }

    /// The kernel's own choice of a source would be 127.0.0.1.
    #[cfg(target_os = "linux")]
    #[test]
    fn wildcard_replies_from_the_called_address() {
        for (wildcard, called) in [("0.0.0.0:0", "127.0.0.2"), ("[::]:0", "127.0.0.2"), ("[::]:0", "::1")] {
            let mut server = UdpPath::open(wildcard.parse().unwrap(), 2, 8).unwrap();
            let at = SocketAddr::new(called.parse().unwrap(), server.at().port() + 1);
            let local = if called.contains(':') { "[::1]:0" } else { "127.0.0.1:0" };
            let client = UdpSocket::bind(local).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            // First as an unknown sender, then as a peer, whose runs of segments count too.
            for is_peer in [false, true] {
                client.send_to(b"hello", at).unwrap();
                let (mut to, limit) = (None, server.now() + Time::from_us(10_000_000));
                server.wait(limit).unwrap();
                server.receive(8, &mut |inbound| to = Some((inbound.peer, inbound.from.unwrap()))).unwrap();
                let (peer, from) = to.expect("a datagram");
                let to = match is_peer {
                    true => To::Peer(peer.expect("a peer")),
                    false => To::Address(from),
                };
                let reply = Outbound { to, label: 1, ecn: true, class: 0, head: &[7; 100], payload: &[] };
                assert_eq!(server.send(&[reply; 3]).unwrap(), 3);
                for _ in 0..3 {
                    assert_eq!(client.recv_from(&mut [0; 200]).unwrap(), (100, at), "{wildcard} {called} {is_peer}");
                }
                server.admit(from).unwrap();
            }
        }
    }

    #[test]
    fn a_port_in_use_is_named() {
        let a = UdpPath::open(loopback(), 2, 8).unwrap();
        let error = UdpPath::open(a.at(), 1, 8).unwrap_err().to_string();
        assert!(error.contains(&a.at().to_string()), "{error}");
        let last = SocketAddr::from(([127, 0, 0, 1], 65_535));
        assert!(UdpPath::open(last, 2, 8).unwrap_err().to_string().contains("65535"));
    }

    #[test]
    fn stamps_are_of_our_own_clock() {
        let (now, wall) = (Time::from_us(1000), Duration::from_secs(1_700_000_000));
        let before = |us| Some(wall - Duration::from_micros(us));
        assert_eq!(stamp(now, Some(wall), before(30)), Time::from_us(970));
        assert_eq!(stamp(now, Some(wall), before(5_000_000)), now, "the wall clock was set");
        assert_eq!(stamp(now, Some(wall), None), now);
    }
}
