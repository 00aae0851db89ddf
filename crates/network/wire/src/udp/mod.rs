//! UDP: labels are consecutive ports of the endpoint that is called, with one socket each.
//!
//! Label `i` is sent from the first port of the caller to the `i`th port of the called endpoint, and replies reverse that:
//! every label is a path to switches that hash the five-tuple. Only one port varies, so labels also differ for hashes that
//! combine both (XOR, sums, symmetric ones). A peer is identified by its address and first port. Segments of one label
//! leave together (GSO) and arrive together (GRO, `recvmmsg`).
//!
//! With several planes an endpoint has an address in each. Label `i` is of plane `i` modulo their number, and of that
//! address's port of number `i` divided by it.

#[cfg(target_os = "linux")]
mod flow_label;
mod interface;
mod peers;
mod ready;
mod send;
#[cfg(test)]
mod spread;

use crate::{Abilities, Datapath, Inbound, Kind, Label, Outbound, PeerId, Source, To, WireError};
#[cfg(target_os = "linux")]
use crate::{
    Carried,
    paths::{self, PathError, Trace},
};
use anabranch_units::Time;
use interface::Interface;
use peers::{Known, Peers, Remote, address, with_port};
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
/// Bytes that are requested of the kernel for each direction of a socket.
pub const SOCKET_BUFFER: usize = 4 << 20;
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
    /// One per label; of an endpoint that only calls, one per plane or source port.
    sockets: Vec<(UdpSocket, UdpSocketState)>,
    /// Of each label, the socket that calls, and the flow label that its packets carry (of IPv6).
    callers: Vec<(usize, Option<u16>)>,
    /// Number of sockets that call, the first ones.
    calling: usize,
    /// First address in each plane.
    at: Vec<SocketAddr>,
    /// `None` if no other interface shares its networks.
    interfaces: Vec<Option<Interface>>,
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

impl UdpPath {
    /// Opens sockets for `labels` consecutive ports from that of `at`, with port 0 from any free range, and at most
    /// `max_peers` peers. Packets to the networks of `at` leave by its interface, even if another one is in the same
    /// network.
    ///
    /// Fails if a port is in use or not permitted.
    pub fn open(at: SocketAddr, labels: u32, max_peers: u32) -> Result<Self, WireError> {
        Self::open_planes(&[at], labels, max_peers)
    }

    /// Does the same with an address in each plane; `labels` are those of all planes. Addresses with port 0 have the same
    /// ports.
    ///
    /// Fails if a port is in use or not permitted, or if the planes have no equal number of labels.
    pub fn open_planes(at: &[SocketAddr], labels: u32, max_peers: u32) -> Result<Self, WireError> {
        Self::open_sockets(at, labels, labels, max_peers)
    }

    /// Opens one socket in each plane, for an endpoint that calls others and is never called.
    /// Fails if the port is in use or not permitted, or if the planes have no equal number of labels.
    pub fn calling(at: &[SocketAddr], labels: u32, max_peers: u32) -> Result<Self, WireError> {
        Self::open_sockets(at, at.len() as u32, labels, max_peers)
    }

    /// Does the same for labels of which each carries a value.
    /// Fails also if the kernel does not send these flow labels.
    #[cfg(target_os = "linux")]
    pub fn calling_with(at: &[SocketAddr], carried: &[Carried], max_peers: u32) -> Result<Self, WireError> {
        let mut path = Self::calling(at, carried.len() as u32, max_peers)?;
        if carried.iter().any(|one| one.port.is_some()) {
            path.bind_ports(at, carried)?;
        }
        if carried.iter().any(|one| one.flow_label.is_some()) {
            let refused = |error| {
                system(
                    "the kernel refuses to send IPv6 flow labels (Linux 5.3 does unless other sockets have exclusive ones)",
                    error,
                )
            };
            flow_label::check().map_err(refused)?;
            path.sockets.iter().try_for_each(|(socket, _)| flow_label::is_chosen(socket)).map_err(refused)?;
        }
        path.callers.iter_mut().zip(carried).for_each(|(caller, one)| caller.1 = one.flow_label);
        Ok(path)
    }

    /// Replaces the sockets by those of the labels' source ports.
    #[cfg(target_os = "linux")]
    fn bind_ports(&mut self, at: &[SocketAddr], carried: &[Carried]) -> Result<(), WireError> {
        self.sockets.clear();
        let mut bound: Vec<SocketAddr> = Vec::new();
        for (label, one) in carried.iter().enumerate() {
            let at = with_port(at[label % at.len()], one.port.unwrap_or_default());
            let socket = match bound.iter().position(|bound| *bound == at) {
                Some(socket) => socket,
                None => {
                    let what = |error: &io::Error| cannot_listen(at, carried.len() as u32, error);
                    let (socket, state) = open_socket(at, &what)?;
                    bound.push(at);
                    self.sockets.push((socket, state));
                    bound.len() - 1
                }
            };
            self.callers[label].0 = socket;
        }
        self.at = at.iter().enumerate().map(|(plane, _)| bound[self.callers[plane].0]).collect();
        self.calling = self.sockets.len();
        self.waiter = Waiter::new(self.sockets.iter().map(|(socket, _)| socket));
        Ok(())
    }

    fn open_sockets(at: &[SocketAddr], sockets: u32, labels: u32, max_peers: u32) -> Result<Self, WireError> {
        if labels as usize > MAX_SOCKETS {
            return Err(WireError::Address(format!("{labels} labels, of which there may be {MAX_SOCKETS}")));
        }
        let (planes, labels) = (at.len() as u32, labels.max(1));
        if planes == 0 || !labels.is_multiple_of(planes) {
            let near = (labels / planes.max(1)).max(1) * planes;
            return Err(WireError::Address(format!(
                "wire.labels: found {labels} for {planes} planes, expected a multiple of them, such as {near}"
            )));
        }
        if let Some(at) = at.iter().find(|at| at.ip().is_multicast() || interface::is_broadcast(at.ip())) {
            let what = "a multicast or broadcast address, expected one of this machine";
            return Err(WireError::Address(format!("cannot listen at {at}: {what}")));
        }
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::try_open(at, sockets.max(planes), labels, max_peers) {
                Err(_) if at.iter().any(|at| at.port() == 0) && tries < TRIES => {}
                opened => return opened,
            }
        }
    }

    fn try_open(at: &[SocketAddr], count: u32, labels: u32, max_peers: u32) -> Result<Self, WireError> {
        let (mut sockets, mut bases, planes) = (Vec::new(), at.to_vec(), at.len() as u32);
        for label in 0..count {
            let at = address(&bases, label).ok_or_else(|| {
                let (base, labels) = (bases[(label % planes) as usize], labels / planes);
                WireError::Address(format!("{labels} labels take as many ports from {base} on, and ports end at 65535"))
            })?;
            let (socket, state) = open_socket(at, &|error| cannot_listen(at, labels, error))?;
            if label < planes {
                bases[label as usize] = socket.local_addr().map_err(|error| system("own address", error))?;
            }
            if label == 0 {
                // Planes for which any port does have the same one.
                let first = bases[0];
                let others = bases.iter_mut().filter(|base| base.port() == 0 && base.ip() != first.ip());
                others.for_each(|base| base.set_port(first.port()));
            }
            sockets.push((socket, state));
        }
        let run = sockets.first().map_or(1, |(_, state)| state.max_gso_segments()).clamp(1, send::MAX_RUN);
        let interfaces: Vec<Option<Interface>> = bases.iter().map(|base| Interface::of(base.ip())).collect();
        Ok(UdpPath {
            warning: interfaces.iter().flatten().find_map(Interface::warning),
            waiter: Waiter::new(sockets.iter().map(|(socket, _)| socket)),
            run,
            opened: Instant::now(),
            labels,
            sockets,
            callers: (0..labels).map(|label| ((label % planes) as usize, None)).collect(),
            calling: planes as usize,
            at: bases,
            interfaces,
            peers: Peers::new(labels, planes, max_peers.saturating_add(LEAVING)),
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
        self.at[0]
    }

    /// Returns the address of the first label in each plane.
    pub fn planes(&self) -> &[SocketAddr] {
        &self.at
    }

    /// Prepares a trace of the switches towards a peer to be called, whose label 0 has the address `to`, for as many labels
    /// as both have. It sends from the first socket of this datapath, which continues meanwhile.
    ///
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

    /// Returns a descriptor that is readable while a socket is, for a thread that waits without this datapath.
    #[cfg(target_os = "linux")]
    pub fn readiness(&self) -> Option<std::sync::Arc<rustix::fd::OwnedFd>> {
        self.waiter.list()
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

fn open_socket(at: SocketAddr, what: &dyn Fn(&io::Error) -> String) -> Result<(UdpSocket, UdpSocketState), WireError> {
    let bound = match UdpSocket::bind(at) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::MFILE) && raise_open_files() => UdpSocket::bind(at),
        bound => bound,
    };
    let socket = bound.map_err(|error| system(what(&error), error))?;
    let state = UdpSocketState::new((&socket).into()).map_err(|error| system(format!("at {at}"), error))?;
    // The kernel may grant less, which costs only lost packets.
    let _ = state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER);
    let _ = state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER);
    Ok((socket, state))
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
        self.peer_in_planes(&[at])
    }

    fn peer_in_planes(&mut self, at: &[SocketAddr]) -> Result<PeerId, WireError> {
        let (theirs, ours) = (at.len(), self.at.len());
        if theirs != ours {
            return Err(WireError::Planes { theirs, ours });
        }
        self.peers.number(at[0].into(), Some(at)).ok_or(WireError::TooManyPeers(self.peers.max))
    }

    fn admit(&mut self, from: Source) -> Option<PeerId> {
        self.peers.number(from, None)
    }

    fn confirm(&mut self, peer: PeerId, label: Label, from: SocketAddr) {
        self.peers.confirm(peer, label, from);
    }

    fn peer_at(&self, peer: PeerId) -> Option<SocketAddr> {
        self.peers.get(peer).map(|remote| remote.of.at)
    }

    fn labels_at(&self, peer: PeerId) -> Option<SocketAddr> {
        let remote = self.peers.get(peer)?;
        (self.at.len() == 1).then(|| remote.called.first().copied().unwrap_or(self.at[0]))
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
        let socket = UdpSocket::bind(with_port(self.at[0], 0)).ok()?;
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
            // The socket that calls in the label's plane, or that of the label.
            let (caller, flow_label) = self.callers[(label % self.labels) as usize];
            let mut is_call = true;
            let (Source { at: destination, local, .. }, socket) = match to {
                To::Address(of) if of.reply_of.is_some() => (of, caller),
                To::Address(of) => (of, label as usize),
                To::Peer(peer) => match self.peers.get(peer).ok_or(WireError::UnknownPeer(peer))? {
                    Remote { of, called, .. } if !called.is_empty() && label < self.labels => {
                        let Some(at) = address(called, label) else {
                            sent += 1;
                            continue;
                        };
                        (Source { at, ..*of }, caller)
                    }
                    Remote { of, called, mapped } => {
                        let plane = called.get((label % self.peers.planes) as usize);
                        let mapped = mapped.get(label as usize).copied().flatten();
                        let at = mapped.or(plane.copied()).unwrap_or(of.at);
                        is_call = false;
                        (Source { at, ..*of }, (label % self.labels) as usize)
                    }
                },
            };
            let (socket, _) = &self.sockets[socket % self.sockets.len()];
            let flow_label = flow_label.filter(|_| is_call);
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
            let interface = self.interfaces[(label % self.peers.planes) as usize].as_ref();
            let interface = interface.filter(|interface| interface.leads_to(destination.ip()));
            let by = interface.map(|of| (of.index(), of.address())).or_else(|| Some((0, local?)));
            let send = || send::send(socket, destination, &batch[sent..sent + run], class, by, flow_label);
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
                let is_wildcard = self.at.iter().any(|at| at.ip().is_unspecified());
                let local = meta.dst_ip.filter(|_| is_wildcard).map(|ip| ip.to_canonical());
                // Only the first sockets call, so to others the label of a sender is that of the socket.
                let calls = socket_label < self.calling;
                let known = self.peers.known.get(&meta.addr).filter(|known| known.label < self.peers.planes || calls);
                let label = known.map_or(0, |known| known.label).max(socket_label as Label);
                // Its labels are not those by which it is called: replies reverse the ports that it has chosen.
                let is_called =
                    known.and_then(|known| self.peers.get(known.peer)).is_some_and(|peer| !peer.called.is_empty());
                let label = if is_called && !calls { self.labels + label } else { label };
                let (peer, reply_of) = match known {
                    Some(Known { peer, is_confirmed: true, .. }) => (Some(*peer), None),
                    other => (None, other.map(|known| known.peer)),
                };
                let is_same_host = meta.dst_ip.is_some_and(|to| to.to_canonical() == meta.addr.ip().to_canonical());
                let from = Some(Source { at: meta.addr, local, reply_of, is_same_host });
                let (at, ecn) = (stamp(now, wall, meta.timestamp), meta.ecn == Some(EcnCodepoint::Ce));
                for bytes in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    take(Inbound { peer, from, label, at, ecn, kind: Kind::Datagram, bytes });
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
            Outbound { to: To::Peer(peer), label, ecn: true, class: 0, head, payload, write: None }
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
                    (None, Some(Source { is_same_host: true, ..at.into() })),
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
        let outbound =
            |ecn| Outbound { to: To::Peer(peer), label: 0, ecn, class: 187, head: &bytes, payload: &[], write: None };
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
            let outbound = |label| Outbound {
                to: To::Peer(peer),
                label,
                ecn: false,
                class: 0,
                head: &bytes,
                payload: &[],
                write: None,
            };
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
                let reply = Outbound { to, label: 1, ecn: true, class: 0, head: &[7; 100], payload: &[], write: None };
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
