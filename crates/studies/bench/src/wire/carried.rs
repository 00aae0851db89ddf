//! Bytes over the loopback interface, and the CPU time of both ends.

use super::{
    iperf,
    per_packet::Check,
    shared::{DATAGRAM, PAYLOAD, UNDER_WAY, cpu_seconds},
};
use anabranch_endpoint::{Bytes, Endpoint, Event, Settings};
use anabranch_lb::registry::HostParameters;
use anabranch_settings::{Auto, Raw};
use anabranch_transport::TransportParameters;
use anabranch_units::{Rate, Time};
use anabranch_wire::{Datapath, Driver, WireError, WireParameters, udp::UdpPath};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::Timespec,
};
use std::{
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

/// How bytes are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A plain socket, one datagram at a time.
    Plain,
    /// A plain socket, runs of datagrams (GSO, GRO).
    PlainRuns,
    /// Our endpoints, every packet over another of eight labels (`ops`).
    Spray,
    /// The same in runs of eight packets.
    SprayRuns,
    /// Our endpoints over one label (`ecmp`).
    OnePath,
    /// The same with payloads unchecked.
    OnePathUnchecked,
    /// The same with a MAC of headers and control packets.
    OnePathControl,
    /// The same with a MAC of all.
    OnePathAll,
    /// Every packet over another label, with payloads unchecked.
    SprayUnchecked,
    /// `iperf3 -u` with datagrams of the same size, where it is installed.
    IperfUdp,
    /// `iperf3` over TCP, where it is installed.
    IperfTcp,
}

impl Way {
    /// All of them, in the order in which they are measured.
    pub const ALL: &[Way] = &[
        Way::Plain,
        Way::Spray,
        Way::SprayUnchecked,
        Way::SprayRuns,
        Way::PlainRuns,
        Way::OnePath,
        Way::OnePathUnchecked,
        Way::OnePathControl,
        Way::OnePathAll,
        Way::IperfUdp,
        Way::IperfTcp,
    ];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Way::Plain => "plain socket, datagram by datagram",
            Way::PlainRuns => "plain socket, GSO and GRO",
            Way::Spray => "sprayed over eight labels, packet by packet",
            Way::SprayRuns => "sprayed over eight labels, runs of eight",
            Way::OnePath => "one label, GSO and GRO",
            Way::OnePathUnchecked => "one label, payloads unchecked",
            Way::OnePathControl => "one label, MAC of headers and control",
            Way::OnePathAll => "one label, MAC of all",
            Way::SprayUnchecked => "sprayed packet by packet, payloads unchecked",
            Way::IperfUdp => "iperf3, UDP",
            Way::IperfTcp => "iperf3, TCP",
        }
    }
}

/// What a way has carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// Which.
    pub way: Way,
    /// Payload bytes that arrived.
    pub bytes: u64,
    /// CPU time of both ends, in seconds.
    pub cpu_seconds: f64,
    /// Seconds from the first to the last.
    pub seconds: f64,
}

impl Carried {
    /// Goodput per second of CPU time, in bytes.
    pub fn bytes_per_cpu_second(&self) -> f64 {
        self.bytes as f64 / self.cpu_seconds.max(1e-9)
    }
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn system(what: &str, source: io::Error) -> WireError {
    WireError::System { what: what.into(), source }
}

/// One measurement; `None` where the program that it needs is not there.
///
/// # Errors
/// Where sockets cannot be opened or carry nothing.
pub fn measure(way: Way, bytes: u64) -> Result<Option<Carried>, WireError> {
    match way {
        Way::Plain => plain(way, 1, bytes).map(Some).map_err(|error| system("plain sockets", error)),
        Way::PlainRuns => plain(way, 15, bytes).map(Some).map_err(|error| system("plain sockets", error)),
        Way::Spray => ours(way, "ops", 1, Check::Crc, bytes).map(Some),
        Way::SprayUnchecked => ours(way, "ops", 1, Check::Header, bytes).map(Some),
        Way::SprayRuns => ours(way, "ops", 8, Check::Crc, bytes).map(Some),
        Way::OnePath => ours(way, "ecmp", 15, Check::Crc, bytes).map(Some),
        Way::OnePathUnchecked => ours(way, "ecmp", 15, Check::Header, bytes).map(Some),
        Way::OnePathControl => ours(way, "ecmp", 15, Check::Control, bytes).map(Some),
        Way::OnePathAll => ours(way, "ecmp", 15, Check::All, bytes).map(Some),
        Way::IperfUdp | Way::IperfTcp => Ok(iperf::measure(way)),
    }
}

/// Datagrams in runs of `run` over a connected socket, as many under way as of ours: the receiver says now and then how many it has.
fn plain(way: Way, run: usize, bytes: u64) -> io::Result<Carried> {
    let (from, to) = (UdpSocket::bind(loopback())?, UdpSocket::bind(loopback())?);
    from.connect(to.local_addr()?)?;
    to.connect(from.local_addr()?)?;
    let (sends, receives) = (UdpSocketState::new((&from).into())?, UdpSocketState::new((&to).into())?);
    for (socket, state) in [(&from, &sends), (&to, &receives)] {
        state.set_recv_buffer_size(socket.into(), 4 << 20)?;
        state.set_send_buffer_size(socket.into(), 4 << 20)?;
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    }
    // Reading many at once, a socket that blocks waits for all of them.
    to.set_nonblocking(run > 1)?;
    let count = bytes / PAYLOAD;
    let start = Instant::now();
    let cpu = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| -> io::Result<f64> {
            let cpu = cpu_seconds();
            let (mut received, mut said) = (0u64, 0u64);
            let mut buffers = vec![vec![0u8; 1 << 16]; if run == 1 { 1 } else { BATCH_SIZE }];
            while received < count {
                if run == 1 {
                    to.recv(&mut buffers[0])?;
                    received += 1;
                } else {
                    let mut metas = [RecvMeta::default(); BATCH_SIZE];
                    let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
                    let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
                    poll(&mut [PollFd::new(&to, PollFlags::IN)], Some(&patience))?;
                    let filled = receives.recv((&to).into(), &mut slices, &mut metas)?;
                    received +=
                        metas[..filled].iter().map(|meta| meta.len.div_ceil(meta.stride.max(1)) as u64).sum::<u64>();
                }
                if received - said >= 16 || received == count {
                    to.send(&received.to_be_bytes())?;
                    said = received;
                }
            }
            Ok(cpu_seconds() - cpu)
        });
        let cpu = cpu_seconds();
        // As ours do, it sends a message of a mebibyte again and again: what is sent does not lie in the nearest cache.
        let message = vec![7u8; MESSAGE];
        let mut at = 0;
        let destination = to.local_addr()?;
        let (mut sent, mut received) = (0u64, 0u64);
        while received < count {
            let many = (count - sent).min(run as u64);
            if many > 0 && sent + many - received <= UNDER_WAY {
                at = if at + run * DATAGRAM > MESSAGE { 0 } else { at };
                let contents = &message[at..at + many as usize * DATAGRAM];
                at += contents.len();
                if run == 1 {
                    from.send(contents)?;
                } else {
                    let segment_size = (many > 1).then_some(DATAGRAM);
                    sends.try_send(
                        (&from).into(),
                        &Transmit { destination, ecn: None, contents, segment_size, src_ip: None },
                    )?;
                }
                sent += many;
            } else {
                let mut word = [0; 8];
                from.recv(&mut word)?;
                received = u64::from_be_bytes(word);
            }
        }
        let mine = cpu_seconds() - cpu;
        let theirs = receiver.join().map_err(|_| io::Error::other("the receiver failed"))??;
        Ok::<f64, io::Error>(mine + theirs)
    })?;
    Ok(Carried { way, bytes: count * PAYLOAD, cpu_seconds: cpu, seconds: start.elapsed().as_secs_f64() })
}

fn settings(scheme: &str, run_length: u32, ack_every: i64, host_key: u64) -> Settings {
    let mut transport = TransportParameters::named("uet").expect("a transport");
    let keys = [("mtu", format!("{PAYLOAD}B")), ("congestion_control", "none".into())];
    let window = format!("{}B", UNDER_WAY * (DATAGRAM as u64 + anabranch_wire::OVERHEAD));
    for (key, value) in keys.into_iter().chain([("window", window)]) {
        transport.parameters_mut().set(key, &Raw::Text(value)).expect("a key");
    }
    transport.parameters_mut().set("ack_every", &Raw::Int(ack_every)).expect("a key");
    let scheme = HostParameters::named(scheme).expect("a scheme");
    let wire = WireParameters {
        rate: Auto::Value(Rate::gbps(400)),
        run_length,
        // Nothing is lost here; two processors may well show a label's packets in another order.
        early_loss: anabranch_settings::Never::Never,
        ..WireParameters::default()
    };
    let settings = wire.settings(&transport, scheme, Rate::gbps(400), 1).expect("settings that can be");
    Settings { host_key, ..settings }
}

fn driver(settings: Settings) -> Result<Driver<UdpPath>, WireError> {
    let path = UdpPath::open(loopback(), settings.labels, 8)?;
    Ok(Driver::new(Endpoint::new(settings), path))
}

const MESSAGE: usize = 1 << 20;
/// Messages that wait at the sender.
const WAITING: u64 = 4;

/// Messages of a mebibyte over one stream.
fn ours(way: Way, scheme: &str, run_length: u32, check: Check, bytes: u64) -> Result<Carried, WireError> {
    // As often as plain sockets say what they have: after sixteen datagrams, in runs of fifteen after two runs.
    let ack_every = if run_length == 15 { 30 } else { 16 };
    let settings = |host_key| {
        let mut settings = settings(scheme, run_length, ack_every, host_key);
        check.set(&mut settings);
        settings
    };
    let mut from = driver(settings(1))?;
    let (says_where, hears_where) = mpsc::channel();
    let count = (bytes / MESSAGE as u64).max(1);
    let limit = Time::from_us(60_000_000);
    let (begun, stopped) = (AtomicBool::new(false), AtomicBool::new(false));
    let stalled = || system("our endpoints", io::ErrorKind::TimedOut.into());
    let (cpu, seconds) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| -> Result<f64, WireError> {
            // Made where it works, so that no line of its memory is the sender's too.
            let mut to = driver(settings(2))?;
            let _ = says_where.send(to.datapath().at());
            let (mut cpu, mut counting) = (0.0, false);
            while !stopped.load(Ordering::Relaxed) {
                let next = to.work()?;
                if !counting && begun.load(Ordering::Relaxed) {
                    (cpu, counting) = (cpu_seconds(), true);
                }
                let (endpoint, now) = to.endpoint();
                while let Some(event) = endpoint.poll_event() {
                    if let Event::Received { bytes, .. } = event {
                        endpoint.recycle(bytes);
                    }
                }
                to.wait(next.unwrap_or(limit).min(now + Time::from_us(100_000)))?;
            }
            Ok(cpu_seconds() - cpu)
        });
        let mut send = || -> Result<(f64, f64), WireError> {
            let at = hears_where.recv_timeout(Duration::from_secs(5)).map_err(|_| stalled())?;
            let peer = from.datapath().peer(at, &[])?;
            let (endpoint, now) = from.endpoint();
            endpoint.connect(now, peer);
            let message: Bytes = vec![7u8; MESSAGE].into();
            let (mut cpu, mut start, mut open) = (0.0, Instant::now(), false);
            let (mut queued, mut sent) = (0, 0);
            loop {
                let next = from.work()?;
                let (endpoint, now) = from.endpoint();
                while let Some(event) = endpoint.poll_event() {
                    match event {
                        Event::Open { .. } => {
                            begun.store(true, Ordering::Relaxed);
                            (cpu, start, open) = (cpu_seconds(), Instant::now(), true);
                        }
                        Event::Sent { .. } => sent += 1,
                        Event::Lost { .. } => return Err(stalled()),
                        Event::Received { .. } | Event::Refused { .. } => {}
                    }
                }
                if sent == count {
                    return Ok((cpu_seconds() - cpu, start.elapsed().as_secs_f64()));
                }
                if now > limit {
                    return Err(stalled());
                }
                let before = queued;
                while open && queued < count && queued - sent < WAITING {
                    if endpoint.send(now, peer, 0, message.clone()).is_err() {
                        break;
                    }
                    queued += 1;
                }
                if queued == before {
                    from.wait(next.unwrap_or(limit).min(now + Time::from_us(100_000)))?;
                }
            }
        };
        let sent = send();
        stopped.store(true, Ordering::Relaxed);
        let theirs = receiver.join().map_err(|_| stalled())??;
        sent.map(|(mine, seconds)| (mine + theirs, seconds))
    })?;
    Ok(Carried { way, bytes: count * MESSAGE as u64, cpu_seconds: cpu, seconds })
}
