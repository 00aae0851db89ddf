//! Tracing of labels: polled by an endpoint that has other work, or run to its end.

use super::{Hop, LabelPath, PathError};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg, setsockopt, sockopt},
};
use std::{
    io::{ErrorKind, IoSlice, IoSliceMut},
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::fd::{AsFd, AsRawFd},
    time::{Duration, Instant},
};

/// Size of a probe in bytes.
const QUESTION: usize = 32;
/// Attempts per hop.
const TRIES: u32 = 3;
/// Interval of further attempts where switches limit ICMP errors: Linux sends six at once and then one per second to an
/// address (`net.ipv4.icmp_ratelimit`).
const PACE: Duration = Duration::from_millis(1050);
/// Maximum time that a trace spends with them.
const PATIENCE: Duration = Duration::from_secs(15);
/// Labels probed at once; switches delay ICMP errors under larger bursts.
const BATCH: usize = 16;
/// Consecutive silent hops after which probing of a label stops.
const MAX_UNRESPONSIVE_HOPS: usize = 2;
/// Origin of an extended socket error (`SO_EE_ORIGIN_ICMP`).
const ORIGIN_ICMP: u8 = 2;
/// ICMP types: time exceeded, destination unreachable.
const TIME_EXCEEDED: u8 = 11;
const UNREACHABLE: u8 = 3;

pub(super) fn open(port: u16) -> Result<UdpSocket, PathError> {
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            PathError::Input(format!("UDP port {port} is in use here; choose another one with --from"))
        }
        _ => PathError::system(format!("opening UDP port {port}"), error),
    })
}

/// A running trace of the switches that the labels towards a host lead over.
#[derive(Debug)]
pub struct Trace {
    to: Ipv4Addr,
    /// One per label, or one for all. They may carry an endpoint's datagrams besides.
    sockets: Vec<UdpSocket>,
    hops: u8,
    timeout: Duration,
    /// Time at which the trace ends, regardless of what is known by then.
    ends_at: Option<Instant>,
    paths: Vec<LabelPath>,
    /// First label of the batch that is being probed.
    batch: usize,
    /// Hop that was probed last.
    ttl: u8,
    /// Probes of that hop, until all have replied or timed out.
    probes: Vec<Probe>,
    tries: u32,
    /// Silent probes of that hop, and further attempts since one has replied.
    silent: usize,
    idle: u32,
    paced_until: Option<Instant>,
    until: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    label: usize,
    sent_at: Instant,
    reply: Option<Hop>,
}

impl Trace {
    /// Prepares a trace that sends from these sockets, one per label or one for all, to these ports of `to`. Until it is dropped, their
    /// error queues receive ICMP errors, and other datagrams may fail to be sent or received with such an error.
    ///
    /// Fails if the sockets have no error queue.
    pub fn new(
        to: Ipv4Addr,
        sockets: Vec<UdpSocket>,
        ports: Vec<u16>,
        hops: u8,
        timeout: Duration,
    ) -> Result<Self, PathError> {
        let mut sources = Vec::with_capacity(sockets.len());
        for socket in &sockets {
            let at = socket.local_addr().map_err(|error| PathError::system("own address", error))?;
            sources.push(at.port());
            socket.set_nonblocking(true).map_err(|error| PathError::system("setting up a socket", error))?;
            setsockopt(socket, sockopt::Ipv4RecvErr, &true)
                .map_err(|error| PathError::system("asking for the error queue of a socket", error))?;
        }
        let path = |(label, destination)| {
            let source = sources[socket_of(&sockets, label)];
            LabelPath { label: label as u16, source, destination, hops: Vec::new() }
        };
        let paths = ports.into_iter().enumerate().map(path).collect();
        Ok(Trace {
            to,
            sockets,
            hops: hops.max(1),
            timeout,
            ends_at: None,
            paths,
            batch: 0,
            ttl: 0,
            probes: Vec::new(),
            tries: 0,
            silent: 0,
            idle: 0,
            paced_until: None,
            until: Instant::now(),
        })
    }

    /// Prepares a trace of packets of `pairs`, each a source and a destination port; label `i` is the `i`th pair.
    /// Fails if a source port is in use.
    pub fn of_pairs(to: Ipv4Addr, pairs: &[(u16, u16)], hops: u8, timeout: Duration) -> Result<Self, PathError> {
        let sockets: Vec<UdpSocket> = pairs.iter().map(|pair| open(pair.0)).collect::<Result<_, _>>()?;
        Trace::new(to, sockets, pairs.iter().map(|pair| pair.1).collect(), hops, timeout)
    }

    /// Ends the trace after `limit`, with fewer known hops for labels that have not been traced by then.
    pub fn end_after(&mut self, limit: Duration) {
        self.ends_at = Some(Instant::now() + limit);
    }

    /// Sends probes and reads replies as far as possible without waiting; returns the hops of each label at the end.
    pub fn poll(&mut self) -> Result<Option<Vec<LabelPath>>, PathError> {
        loop {
            if self.probes.is_empty() && !self.begin_hop()? {
                return Ok(Some(std::mem::take(&mut self.paths)));
            }
            self.read_replies()?;
            let now = Instant::now();
            let is_over = self.ends_at.is_some_and(|end| now >= end);
            if self.probes.iter().all(|probe| probe.reply.is_some()) || is_over || now >= self.until {
                let silent = self.probes.iter().filter(|probe| probe.reply.is_none()).count();
                if silent > 0 && !is_over && (self.tries < TRIES || self.is_limited(silent, now)) {
                    self.send()?;
                    continue;
                }
                for probe in std::mem::take(&mut self.probes) {
                    self.paths[probe.label].hops.push(probe.reply);
                }
                if is_over {
                    return Ok(Some(std::mem::take(&mut self.paths)));
                }
                continue;
            }
            return Ok(None);
        }
    }

    /// Waits for the end of the trace and returns the hops of each label.
    pub fn finish(mut self) -> Result<Vec<LabelPath>, PathError> {
        loop {
            if let Some(paths) = self.poll()? {
                return Ok(paths);
            }
            let until = self.ends_at.map_or(self.until, |end| end.min(self.until));
            let left = until.saturating_duration_since(Instant::now());
            // `poll` reports errors without a request for events.
            let open = self.probes.iter().filter(|probe| probe.reply.is_none()).take(self.sockets.len());
            let mut fds: Vec<PollFd<'_>> =
                open.map(|probe| PollFd::new(self.socket(probe.label).as_fd(), PollFlags::empty())).collect();
            let millis = u16::try_from(left.as_millis() + 1).unwrap_or(u16::MAX);
            match poll(&mut fds, PollTimeout::from(millis)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(PathError::system("waiting for answers", error)),
            }
        }
    }

    /// Probes the next hop of a batch, or the first one of the next batch; returns `false` if all is known.
    fn begin_hop(&mut self) -> Result<bool, PathError> {
        while self.batch < self.paths.len() {
            let end = (self.batch + BATCH).min(self.paths.len());
            let open: Vec<usize> = (self.batch..end).filter(|label| goes_on(&self.paths[*label])).collect();
            if self.ttl < self.hops && !open.is_empty() {
                self.ttl += 1;
                let sent_at = Instant::now();
                self.probes = open.into_iter().map(|label| Probe { label, sent_at, reply: None }).collect();
                (self.tries, self.silent, self.idle) = (0, 0, 0);
                return self.send().map(|()| true);
            }
            (self.batch, self.ttl) = (end, 0);
        }
        Ok(false)
    }

    /// Returns `true` if further attempts are worth their time: switches of this hop distinguish paths of silent labels, and reply
    /// to ever more of them.
    fn is_limited(&mut self, silent: usize, now: Instant) -> bool {
        let mut open = self.probes.iter().filter(|probe| probe.reply.is_none());
        let is_open = open.any(|probe| self.may_differ(probe.label));
        // The first of them comes right after the others.
        self.idle = if silent == self.silent { self.idle + 1 } else { 0 };
        self.silent = silent;
        is_open && self.idle < 2 && now < *self.paced_until.get_or_insert(now + PATIENCE)
    }

    /// Returns `true` if the known switches of a label leave open which of several it has at this hop.
    fn may_differ(&self, label: usize) -> bool {
        let own = &self.paths[label].hops;
        let fits = |path: &&LabelPath| {
            let mut pairs =
                own.iter().zip(&path.hops).filter_map(|(own, other)| Some((own.as_ref()?, other.as_ref()?)));
            pairs.all(|(own, other)| own.at == other.at)
        };
        let at = |path: &LabelPath| {
            let of_probe = || self.probes.iter().find(|probe| probe.label == usize::from(path.label))?.reply;
            path.hops.get(usize::from(self.ttl) - 1).copied().unwrap_or_else(of_probe).filter(|hop| !hop.is_last)
        };
        let mut switches = self.paths.iter().filter(fits).filter_map(at);
        let first = switches.next();
        switches.any(|hop| first.is_some_and(|first| first.at != hop.at))
    }

    /// Sends the probes that have no reply.
    fn send(&mut self) -> Result<(), PathError> {
        let question = [self.ttl; QUESTION];
        let ttl = i32::from(self.ttl);
        for probe in self.probes.iter_mut().filter(|probe| probe.reply.is_none()) {
            let to = SocketAddrV4::new(self.to, self.paths[probe.label].destination);
            let socket = &self.sockets[socket_of(&self.sockets, probe.label)];
            probe.sent_at = Instant::now();
            let send = || {
                // The TTL of this datagram alone: the socket may carry others.
                let control = [ControlMessage::Ipv4Ttl(&ttl)];
                let at = SockaddrIn::from(to);
                sendmsg(socket.as_raw_fd(), &[IoSlice::new(&question)], &control, MsgFlags::empty(), Some(&at))
            };
            // A pending error fails the first attempt, so a second one follows.
            if let Err(error @ (Errno::ENETUNREACH | Errno::EPERM | Errno::EACCES)) = send().or_else(|_| send()) {
                return Err(PathError::system(format!("sending to {to}"), error));
            }
        }
        self.tries += 1;
        self.until = Instant::now() + if self.tries > TRIES { PACE.max(self.timeout) } else { self.timeout };
        Ok(())
    }

    fn socket(&self, label: usize) -> &UdpSocket {
        &self.sockets[socket_of(&self.sockets, label)]
    }

    fn read_replies(&mut self) -> Result<(), PathError> {
        for (number, socket) in self.sockets.iter().enumerate() {
            while let Some(reply) = read(socket)? {
                let is_of = |probe: &&mut Probe| {
                    let to = SocketAddrV4::new(self.to, self.paths[probe.label].destination);
                    probe.reply.is_none()
                        && socket_of(&self.sockets, probe.label) == number
                        && (reply.to, reply.ttl) == (Some(to), self.ttl)
                };
                if let Some(probe) = self.probes.iter_mut().find(is_of) {
                    let Reply { at, is_last, .. } = reply;
                    probe.reply = Some(Hop { at, round_trip: probe.sent_at.elapsed(), is_last });
                }
            }
        }
        Ok(())
    }
}

fn socket_of(sockets: &[UdpSocket], label: usize) -> usize {
    label.min(sockets.len() - 1)
}

impl Drop for Trace {
    /// Discards what is left in the error queues, and the errors that wait for the sockets' next calls.
    fn drop(&mut self) {
        for socket in &self.sockets {
            let _ = setsockopt(socket, sockopt::Ipv4RecvErr, &false);
            let _ = socket.take_error();
        }
    }
}

fn goes_on(path: &LabelPath) -> bool {
    let ended = path.hops.last().is_some_and(|hop| hop.is_some_and(|hop| hop.is_last));
    !ended
        && (path.hops.len() < MAX_UNRESPONSIVE_HOPS
            || path.hops.iter().rev().take(MAX_UNRESPONSIVE_HOPS).any(Option::is_some))
}

/// ICMP error of a probe.
struct Reply {
    at: Ipv4Addr,
    /// `true` if that is the destination.
    is_last: bool,
    /// Destination of the probe.
    to: Option<SocketAddrV4>,
    /// TTL of the probe, which its payload repeats.
    ttl: u8,
}

/// Reads the next message of a socket's error queue.
fn read(socket: &UdpSocket) -> Result<Option<Reply>, PathError> {
    loop {
        let mut question = [0; QUESTION];
        let mut buffers = [IoSliceMut::new(&mut question)];
        let mut space = nix::cmsg_space!([u8; 256]);
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = match recvmsg::<SockaddrIn>(socket.as_raw_fd(), &mut buffers, Some(&mut space), flags) {
            Ok(message) => message,
            Err(Errno::EAGAIN) => return Ok(None),
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(PathError::system("reading the error queue of a socket", error)),
        };
        let (bytes, to) = (message.bytes, message.address.map(SocketAddrV4::from));
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
        let repeated = &question[..bytes.min(QUESTION)];
        // Other datagrams of the socket have other contents.
        if let (Some((at, is_last)), Some(ttl)) = (hop, repeated.first().copied())
            && repeated.iter().all(|byte| *byte == ttl)
        {
            return Ok(Some(Reply { at, is_last, to, ttl }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_ends_at_its_limit() {
        // A listening port of this machine replies to no probe.
        let to = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let from = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = to.local_addr().unwrap().port();
        let mut trace = Trace::new(Ipv4Addr::LOCALHOST, vec![from], vec![port], 8, Duration::from_secs(60)).unwrap();
        trace.end_after(Duration::from_millis(30));
        let began = Instant::now();
        assert_eq!(trace.finish().unwrap()[0].hops, [None]);
        assert!((Duration::from_millis(30)..Duration::from_secs(20)).contains(&began.elapsed()));
    }
}
