use super::shared::{PAYLOAD, cpu_seconds};
use anabranch_endpoint::{Arrival, Departure, Egress, Endpoint, Event, Flow, Key, Nic, Settings, header::Protection};
use anabranch_lb::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, PathSpace,
    registry::{Host, HostParameters},
};
use anabranch_settings::Raw;
use anabranch_transport::{DataArrival, Network, Receiver, Sender, Transport, TransportParameters};
use anabranch_units::{Rate, Time};
use anabranch_wire::WireParameters;
use slab::Slab;

/// Layers included in a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layers {
    /// The scheme: a choice and an ACK.
    Scheme,
    /// Scheme, NIC, and the transport of both peers.
    Transport,
    /// An endpoint, with header, CRC32C and copy of the payload: the mean of sender and receiver.
    Endpoint,
    /// The same with another check of packets.
    Checked(PacketCheck),
}

/// Check of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketCheck {
    /// A CRC32C of the header.
    Header,
    /// CRC32Cs of header and payload.
    Crc,
    /// A MAC of the header, a CRC32C of the payload.
    Control,
    /// MACs of both.
    All,
}

impl PacketCheck {
    pub(super) fn set(self, settings: &mut Settings) {
        settings.checksum = self != PacketCheck::Header;
        settings.key = matches!(self, PacketCheck::Control | PacketCheck::All).then(|| Key::of(b"a key for measuring"));
        settings.protection = if self == PacketCheck::All { Protection::All } else { Protection::Control };
    }
}

impl Layers {
    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Layers::Scheme => "scheme",
            Layers::Transport => "scheme and transport",
            Layers::Endpoint => "endpoint, 4 KiB, copy included",
            Layers::Checked(PacketCheck::Header) => "the same, payloads unchecked",
            Layers::Checked(PacketCheck::Crc) => "the same, CRC32C",
            Layers::Checked(PacketCheck::Control) => "the same, MAC of headers and control",
            Layers::Checked(PacketCheck::All) => "the same, MAC of all",
        }
    }

    /// Maximum cost to reach, in nanoseconds.
    pub fn target(self) -> f64 {
        match self {
            Layers::Scheme => 40.0,
            Layers::Transport => 130.0,
            Layers::Endpoint | Layers::Checked(PacketCheck::Header | PacketCheck::Crc) => 1000.0,
            Layers::Checked(PacketCheck::Control) => 1200.0,
            Layers::Checked(PacketCheck::All) => 3000.0,
        }
    }
}

/// Cost of a packet.
#[derive(Clone, Debug, PartialEq)]
pub struct PerPacket {
    /// Scheme.
    pub scheme: &'static str,
    /// Layers included.
    pub part: Layers,
    /// Nanoseconds of CPU time.
    pub nanoseconds: f64,
}

const SCHEMES: [&str; 5] = ["ecmp", "ops", "reps", "prime", "hopper"];
const PACKETS: u64 = 1_000_000;
const STEP: Time = Time::from_ns(100);

pub(super) fn measure() -> Vec<PerPacket> {
    let all = SCHEMES.iter().flat_map(|scheme| {
        let cost = |part, nanoseconds| PerPacket { scheme, part, nanoseconds };
        [
            cost(Layers::Scheme, scheme_alone(scheme)),
            cost(Layers::Transport, with_transport(scheme)),
            cost(Layers::Endpoint, endpoints(scheme, PacketCheck::Crc)),
        ]
    });
    let checks = [PacketCheck::Header, PacketCheck::Crc, PacketCheck::Control, PacketCheck::All];
    let checked = checks.map(|check| PerPacket {
        scheme: "ecmp",
        part: Layers::Checked(check),
        nanoseconds: endpoints("ecmp", check),
    });
    all.chain(checked).collect()
}

fn scheme_of(name: &str) -> Host {
    HostParameters::named(name).expect("a scheme").build(1, 1)
}

fn flow(base_rtt: Time) -> FlowInfo<'static> {
    FlowInfo {
        key: 1,
        connection: 1,
        src: 0,
        dst: 1,
        size: 1 << 40,
        packets: 1 << 28,
        bdp_packets: 64,
        base_rtt,
        probe_rtt: base_rtt,
        rate: Rate::gbps(100),
        full_packet: PAYLOAD as u32 + 106,
        early_packets: u64::MAX,
        paths: PathSpace { uplinks: &[8], ..PathSpace::default() },
    }
}

fn each(seconds: f64, packets: u64) -> f64 {
    seconds * 1e9 / packets as f64
}

fn scheme_alone(name: &str) -> f64 {
    let mut scheme = scheme_of(name);
    let base_rtt = Time::from_us(10);
    scheme.open(Time::ZERO, 0, &flow(base_rtt));
    let (mut now, mut tags) = (Time::ZERO, [0; 64]);
    let cpu = cpu_seconds();
    for psn in 0..PACKETS {
        now += STEP;
        let packet = Outgoing { psn, bytes: PAYLOAD as u32, retransmission: false, eligible_at: now };
        let tag = match scheme.select(now, 0, &packet) {
            Decision::Send(tag) | Decision::SendWithAckRequest(tag) => tag,
            _ => 0,
        };
        // ACK of the packet sent 64 packets before.
        let of = std::mem::replace(&mut tags[(psn % 64) as usize], tag);
        let feedback = Feedback {
            tag: of,
            ecn: false,
            rtt: Some(base_rtt),
            packets: 1,
            bytes: PAYLOAD,
            cumulative: psn.saturating_sub(63),
            next_psn: psn + 1,
        };
        scheme.on_ack(now, 0, &feedback);
        while scheme.poll_probe(now, 0).is_some() {}
    }
    each(cpu_seconds() - cpu, PACKETS)
}

struct NullNic {
    scheme: Host,
    left: Option<Departure>,
}

impl Egress<()> for NullNic {
    type Scheme = Host;
    fn scheme(&mut self, (): &()) -> &mut Host {
        &mut self.scheme
    }
    fn start(&mut self, (): &mut (), packet: &Departure, start: Time) -> Time {
        self.left = Some(*packet);
        start + STEP
    }
    fn has_urgent(&self) -> bool {
        false
    }
}

fn transport() -> TransportParameters {
    let mut transport = TransportParameters::named("uet").expect("a transport");
    transport.parameters_mut().set("mtu", &Raw::Text(format!("{PAYLOAD}B"))).expect("a key");
    transport
}

fn with_transport(name: &str) -> f64 {
    let base_rtt = Time::from_us(10);
    let (rate, bdp) = (Rate::gbps(100), 125_000);
    let network =
        Network { base_rtt, bdp, queue_drain: Time::ZERO, trimming: true, nic_rate: rate, ..Network::default() };
    let transport = Transport::new(&transport(), &network);
    let mut line = NullNic { scheme: scheme_of(name), left: None };
    line.scheme.open(Time::ZERO, 0, &flow(base_rtt));
    let mut sender = Sender::of_stream(&transport, rate, base_rtt, Time::ZERO, 0);
    sender.append(&transport, PACKETS);
    let mut receiver = Receiver::of_stream(&transport, 0);
    let (mut nic, mut flows, mut now) = (Nic::default(), Slab::new(), Time::ZERO);
    let slot = flows.insert(Flow::new(sender, 0, 0, now, ()));
    nic.enter(slot as u32, &mut flows[slot], &transport, now);
    let cpu = cpu_seconds();
    let mut sent = 0;
    while sent < PACKETS {
        now += STEP;
        nic.promote(&mut flows, &transport, now);
        nic.serve(&mut flows, &transport, &mut line, now, now);
        let Some(packet) = line.left.take() else { continue };
        sent += 1;
        let arrival = DataArrival {
            psn: packet.segment.psn,
            payload: packet.segment.payload,
            tag: packet.tag,
            ecn: false,
            ack_request: packet.ack_request,
        };
        if let (Some(answer), _) = receiver.on_data(&transport, now, &arrival) {
            let flow = &mut flows[slot];
            flow.on_ack(&transport, &mut line.scheme, now, &answer, None, Some(base_rtt), true);
            while flow.poll_probe(&mut line.scheme, now).is_some() {}
            flow.arm(&transport, now);
            nic.enter(slot as u32, flow, &transport, now);
        }
    }
    each(cpu_seconds() - cpu, PACKETS)
}

fn endpoints(name: &str, check: PacketCheck) -> f64 {
    let wire = WireParameters::default();
    let scheme = HostParameters::named(name).expect("a scheme");
    let mut settings = wire.settings(&transport(), scheme, Rate::gbps(100), 1).expect("settings that can be");
    check.set(&mut settings);
    let mut ends = [Endpoint::new(settings.clone()), Endpoint::new(Settings { host_key: 1, ..settings })];
    let (mut now, mut out) = (Time::ZERO, Vec::new());
    ends[0].connect(now, 0);
    let message: anabranch_endpoint::Bytes = vec![7u8; 1 << 20].into();
    let (wanted, mut queued, mut sent) = (PACKETS / 10 / 256, 0, 0);
    let cpu = cpu_seconds();
    while sent < wanted {
        now += STEP;
        for from in 0..2 {
            ends[from].handle_timeout(now);
            while let Some(transmit) = ends[from].poll_transmit(now, &mut out) {
                out.extend_from_slice(&transmit.payload);
                let arrival =
                    Arrival { peer: Some(0), from: None, label: transmit.label, at: now, ecn: false, bytes: &out };
                ends[1 - from].handle(now, &arrival);
            }
            while let Some(event) = ends[from].poll_event() {
                sent += u64::from(matches!(event, Event::Sent { .. }));
            }
        }
        if queued < wanted && queued < sent + 4 && ends[0].round_trip(0).is_some() {
            queued += u64::from(ends[0].send(now, 0, 0, message.clone()).is_ok());
        }
    }
    each(cpu_seconds() - cpu, ends[0].counters().packets) / 2.0
}
