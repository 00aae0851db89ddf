use crate::{
    Secret,
    auth::Key,
    header::{DATA_HEADER, MAX_HEADER, Protection},
};
use anabranch_lb::registry::HostParameters;
use anabranch_transport::TransportParameters;
use anabranch_units::{Rate, Time};

/// Payloads that carry a CRC32C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    Never,
    /// Those to other hosts: the kernel passes the others on in memory, and omits TCP's and UDP's checksums there too.
    BetweenHosts,
    Always,
}

/// Configuration of an endpoint.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Transport and congestion control.
    pub transport: TransportParameters,
    /// Scheme that chooses paths.
    pub scheme: HostParameters,
    /// Seed of the scheme's draws.
    pub seed: u64,
    /// Source of connection numbers, nonces and the keys of cookies.
    pub secret: Secret,
    /// Stable key of this host: hosts with the same seed draw different numbers.
    pub host_key: u64,
    /// Number of labels of each path space; a datagram carries one of them. A multiple of `planes`.
    pub labels: u32,
    /// Number of planes of both endpoints, each a network of its own: label `i` is of plane `i` modulo their number.
    pub planes: u32,
    /// Rate at which packets leave.
    pub rate: Rate,
    /// Bytes on the wire besides a datagram's own, which pacing and window count.
    pub overhead: u64,
    /// Maximum time that the pacer makes up for after a late poll.
    pub catch_up: Time,
    /// Number of full packets that measure the base round trip of a peer.
    pub calibrations: u32,
    /// Minimum noise floor of a peer's round trips: an excess over the base up to this counts as noise.
    pub rtt_floor: Time,
    /// Window of the base round trip, which rises to the shortest round trip of this time.
    pub rtt_window: Time,
    /// Time to wait for the reply to a HELLO or calibration probe.
    pub request_timeout: Time,
    /// Timeout of a peer that owes a reply.
    pub peer_timeout: Time,
    /// Idle timeout of a peer that owes no reply.
    pub idle_timeout: Time,
    /// The datapath reports of each datagram whether it has arrived, as queue pairs do ([`crate::Endpoint::complete`]):
    /// receivers send no ACKs, and no sizes are searched.
    pub is_reliable: bool,
    /// Data packets are ECN-capable: switches may mark them.
    pub ecn: bool,
    /// Which payloads carry a CRC32C; a packet whose payload does not match counts as lost.
    pub checksum: Checksum,
    /// Key of this endpoint, by which it also calls peers without their own ([`crate::Endpoint::set_peer_key`]);
    /// `None`: no authentication.
    pub key: Option<Key>,
    /// Minimum scope of authentication with a key; the stronger setting of two peers applies.
    pub protection: Protection,
    /// Number of consecutive new packets of a stream that carry the tag chosen for the first of them.
    pub run_length: u32,
    /// Time to drain a full queue at the slowest link, which an automatic timeout of the transport allows for.
    pub queue_drain: Time,
    /// Maximum number of packets of a stream under way beyond the first missing one.
    pub span: u32,
    /// Maximum bytes of a message.
    pub max_message: u64,
    /// Maximum bytes of messages per peer, at the receiver and at the sender each; two messages at least.
    pub max_held: u64,
    /// Maximum bytes of incomplete messages of all peers, at least twice `max_held`. Half is for senders that have
    /// delivered as many bytes, half is shared among the addresses of others. One address may take half.
    pub max_buffered_bytes: u64,
    /// Maximum number of streams from one peer.
    pub max_streams: usize,
    pub max_peers: usize,
    /// Maximum number of peers that have connected from one source address; of IPv6 from one 64-bit prefix.
    pub max_peers_per_address: usize,
    /// Maximum replies per second to unproven addresses.
    pub max_retries: u32,
}

impl Default for Settings {
    fn default() -> Self {
        let transport = TransportParameters::named("uet").expect("a transport");
        Settings {
            transport,
            scheme: HostParameters::named("reps").expect("a scheme"),
            seed: 1,
            secret: Secret::of_seed(1),
            host_key: 0,
            labels: 8,
            planes: 1,
            rate: Rate::gbps(10),
            overhead: 42,
            catch_up: Time::from_us(100),
            calibrations: 16,
            rtt_floor: Time::ZERO,
            rtt_window: Time::from_us(10_000_000),
            request_timeout: Time::from_us(50_000),
            peer_timeout: Time::from_us(10_000_000),
            idle_timeout: Time::MAX,
            is_reliable: false,
            ecn: true,
            checksum: Checksum::Always,
            key: None,
            protection: Protection::Control,
            run_length: 1,
            queue_drain: Time::ZERO,
            span: 4096,
            max_message: 1 << 24,
            max_held: 1 << 26,
            max_buffered_bytes: 1 << 27,
            max_streams: 64,
            max_peers: 1024,
            max_peers_per_address: 256,
            max_retries: 20_000,
        }
    }
}

impl Settings {
    /// Returns the payload bytes of a full packet.
    pub fn mtu(&self) -> u64 {
        self.transport.mtu()
    }

    /// Returns the bytes of a probe datagram with this payload: those of a data packet, at most a full one.
    pub fn probe_datagram(&self, payload: u32) -> usize {
        self.max_header() + u64::from(payload).clamp(1, self.mtu()) as usize
    }

    pub(crate) fn longest_datagram(&self) -> usize {
        self.max_header() + self.mtu() as usize
    }

    /// Returns the bytes of the longest header of data, with authentication if there is a key.
    pub fn max_header(&self) -> usize {
        if self.key.is_some() { MAX_HEADER } else { DATA_HEADER }
    }
}
