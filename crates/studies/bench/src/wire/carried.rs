use super::{
    iperf,
    per_packet::PacketCheck,
    shared::{DATAGRAM, MAX_IN_FLIGHT, PAYLOAD, cpu_seconds},
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

/// Sender and receiver of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMethod {
    /// Plain sockets, one datagram at a time.
    Plain,
    /// Plain sockets, runs of datagrams (GSO, GRO).
    PlainRuns,
    /// Our endpoints, each packet with another of eight labels (`ops`).
    Spray,
    /// `ops` in runs of eight packets.
    SprayRuns,
    /// Our endpoints over one label (`ecmp`).
    OnePath,
    /// `ecmp` with payloads unchecked.
    OnePathUnchecked,
    /// `ecmp` with a MAC of headers and control packets.
    OnePathControl,
    /// `ecmp` with a MAC of all bytes.
    OnePathAll,
    /// `ops` with payloads unchecked.
    SprayUnchecked,
    /// `iperf3 -u` with datagrams of the same size, if installed.
    IperfUdp,
    /// `iperf3` over TCP, if installed.
    IperfTcp,
}

impl SendMethod {
    /// All methods, in the order of measurement.
    pub const ALL: &[SendMethod] = &[
        SendMethod::Plain,
        SendMethod::Spray,
        SendMethod::SprayUnchecked,
        SendMethod::SprayRuns,
        SendMethod::PlainRuns,
        SendMethod::OnePath,
        SendMethod::OnePathUnchecked,
        SendMethod::OnePathControl,
        SendMethod::OnePathAll,
        SendMethod::IperfUdp,
        SendMethod::IperfTcp,
    ];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            SendMethod::Plain => "plain socket, datagram by datagram",
            SendMethod::PlainRuns => "plain socket, GSO and GRO",
            SendMethod::Spray => "sprayed over eight labels, packet by packet",
            SendMethod::SprayRuns => "sprayed over eight labels, runs of eight",
            SendMethod::OnePath => "one label, GSO and GRO",
            SendMethod::OnePathUnchecked => "one label, payloads unchecked",
            SendMethod::OnePathControl => "one label, MAC of headers and control",
            SendMethod::OnePathAll => "one label, MAC of all",
            SendMethod::SprayUnchecked => "sprayed packet by packet, payloads unchecked",
            SendMethod::IperfUdp => "iperf3, UDP",
            SendMethod::IperfTcp => "iperf3, TCP",
        }
    }
}

/// Measurement of one method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// Method.
    pub method: SendMethod,
    /// Payload bytes received.
    pub bytes: u64,
    /// CPU time of both peers, in seconds.
    pub cpu_seconds: f64,
    /// Wall time from the first to the last byte, in seconds.
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

/// Measures one method; `None` if the program that it needs is missing.
pub fn measure(method: SendMethod, bytes: u64) -> Result<Option<Carried>, WireError> {
    match method {
        SendMethod::Plain => plain(method, 1, bytes).map(Some).map_err(|error| system("plain sockets", error)),
        SendMethod::PlainRuns => plain(method, 15, bytes).map(Some).map_err(|error| system("plain sockets", error)),
        SendMethod::Spray => endpoint_transfer(method, "ops", 1, PacketCheck::Crc, bytes).map(Some),
        SendMethod::SprayUnchecked => endpoint_transfer(method, "ops", 1, PacketCheck::Header, bytes).map(Some),
        SendMethod::SprayRuns => endpoint_transfer(method, "ops", 8, PacketCheck::Crc, bytes).map(Some),
        SendMethod::OnePath => endpoint_transfer(method, "ecmp", 15, PacketCheck::Crc, bytes).map(Some),
        SendMethod::OnePathUnchecked => endpoint_transfer(method, "ecmp", 15, PacketCheck::Header, bytes).map(Some),
        SendMethod::OnePathControl => endpoint_transfer(method, "ecmp", 15, PacketCheck::Control, bytes).map(Some),
        SendMethod::OnePathAll => endpoint_transfer(method, "ecmp", 15, PacketCheck::All, bytes).map(Some),
        SendMethod::IperfUdp | SendMethod::IperfTcp => Ok(iperf::measure(method)),
    }
}

/// Sends datagrams in runs of `run`, as many in flight as our endpoints. The receiver acknowledges every 16.
fn plain(method: SendMethod, run: usize, bytes: u64) -> io::Result<Carried> {
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
    // With batched reads, a blocking socket would wait for a full batch.
    to.set_nonblocking(run > 1)?;
    let count = bytes / PAYLOAD;
    let start = Instant::now();
    let cpu = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| -> io::Result<f64> {
            let cpu = cpu_seconds();
            let (mut received, mut acknowledged) = (0u64, 0u64);
            let mut buffers = vec![vec![0u8; 1 << 16]; if run == 1 { 1 } else { BATCH_SIZE }];
            while received < count {
                if run == 1 {
                    to.recv(&mut buffers[0])?;
                    received += 1;
                } else {
                    let mut metas = [RecvMeta::default(); BATCH_SIZE];
                    let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
                    let timeout = Timespec { tv_sec: 5, tv_nsec: 0 };
                    poll(&mut [PollFd::new(&to, PollFlags::IN)], Some(&timeout))?;
                    let filled = receives.recv((&to).into(), &mut slices, &mut metas)?;
                    received +=
                        metas[..filled].iter().map(|meta| meta.len.div_ceil(meta.stride.max(1)) as u64).sum::<u64>();
                }
                if received - acknowledged >= 16 || received == count {
                    to.send(&received.to_be_bytes())?;
                    acknowledged = received;
                }
            }
            Ok(cpu_seconds() - cpu)
        });
        let cpu = cpu_seconds();
        // A message of 1 MiB, as from our endpoints, so that its bytes are not in the nearest cache.
        let message = vec![7u8; MESSAGE];
        let mut at = 0;
        let destination = to.local_addr()?;
        let (mut sent, mut received) = (0u64, 0u64);
        while received < count {
            let many = (count - sent).min(run as u64);
            if many > 0 && sent + many - received <= MAX_IN_FLIGHT {
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
        let sender_cpu = cpu_seconds() - cpu;
        let receiver_cpu = receiver.join().map_err(|_| io::Error::other("the receiver failed"))??;
        Ok::<f64, io::Error>(sender_cpu + receiver_cpu)
    })?;
    Ok(Carried { method, bytes: count * PAYLOAD, cpu_seconds: cpu, seconds: start.elapsed().as_secs_f64() })
}

fn settings(scheme: &str, run_length: u32, ack_every: i64, host_key: u64) -> Settings {
    let mut transport = TransportParameters::named("uet").expect("a transport");
    let keys = [("mtu", format!("{PAYLOAD}B")), ("congestion_control", "none".into())];
    let window = format!("{}B", MAX_IN_FLIGHT * (DATAGRAM as u64 + anabranch_wire::OVERHEAD));
    for (key, value) in keys.into_iter().chain([("window", window)]) {
        transport.parameters_mut().set(key, &Raw::Text(value)).expect("a key");
    }
    transport.parameters_mut().set("ack_every", &Raw::Int(ack_every)).expect("a key");
    let scheme = HostParameters::named(scheme).expect("a scheme");
    let wire = WireParameters {
        rate: Auto::Value(Rate::gbps(400)),
        run_length,
        // No packet is lost; two processors may reorder the packets of a label.
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
const WAITING: u64 = 4;

fn endpoint_transfer(
    method: SendMethod,
    scheme: &str,
    run_length: u32,
    check: PacketCheck,
    bytes: u64,
) -> Result<Carried, WireError> {
    // As frequent as the ACKs of plain sockets: after 16 datagrams, or two runs of 15.
    let ack_every = if run_length == 15 { 30 } else { 16 };
    let settings = |host_key| {
        let mut settings = settings(scheme, run_length, ack_every, host_key);
        check.set(&mut settings);
        settings
    };
    let mut from = driver(settings(1))?;
    let (address_sender, address_receiver) = mpsc::channel();
    let count = (bytes / MESSAGE as u64).max(1);
    let limit = Time::from_us(60_000_000);
    let (begun, stopped) = (AtomicBool::new(false), AtomicBool::new(false));
    let stalled = || system("our endpoints", io::ErrorKind::TimedOut.into());
    let (cpu, seconds) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| -> Result<f64, WireError> {
            // Allocated on its own thread, so that no cache line is shared with the sender.
            let mut to = driver(settings(2))?;
            let _ = address_sender.send(to.datapath().at());
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
            let at = address_receiver.recv_timeout(Duration::from_secs(5)).map_err(|_| stalled())?;
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
                        Event::Silent { .. } => {}
                        Event::Lost { .. } => return Err(stalled()),
                        Event::Received { .. }
                        | Event::Refused { .. }
                        | Event::Fragmented { .. }
                        | Event::EcnDropped { .. } => {}
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
        let receiver_cpu = receiver.join().map_err(|_| stalled())??;
        sent.map(|(sender_cpu, seconds)| (sender_cpu + receiver_cpu, seconds))
    })?;
    Ok(Carried { method, bytes: count * MESSAGE as u64, cpu_seconds: cpu, seconds })
}
