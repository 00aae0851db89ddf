//! What an endpoint is told when it is made.

use crate::{
    Secret,
    auth::Key,
    header::{DATA_HEADER, MAX_HEADER, Protection},
};
use anabranch_lb::registry::HostParameters;
use anabranch_transport::TransportParameters;
use anabranch_units::{Rate, Time};

/// What an endpoint is and may use.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Transport and congestion control.
    pub transport: TransportParameters,
    /// The scheme that chooses paths.
    pub scheme: HostParameters,
    /// Seed of the scheme's draws.
    pub seed: u64,
    /// Where connection numbers, nonces and the keys of cookies come from.
    pub secret: Secret,
    /// The stable key of this host: hosts of one seed draw otherwise.
    pub host_key: u64,
    /// Labels of each path space: datagrams carry one of as many.
    pub labels: u32,
    /// The rate at which packets leave.
    pub rate: Rate,
    /// Bytes that a datagram has on the wire besides its own, which pacing and window count.
    pub overhead: u64,
    /// How much time the pacer may make up for when it is asked too late. Zero: none.
    pub catch_up: Time,
    /// Full packets that measure the base round trip of a peer.
    pub calibrations: u32,
    /// Least noise floor of a peer's round trips: what lies this much above the base counts as nothing.
    pub rtt_floor: Time,
    /// The base round trip rises to the shortest one of this time, where all were longer.
    pub rtt_window: Time,
    /// How long a question waits for its answer before it is asked again.
    pub patience: Time,
    /// How long a peer may say nothing while it owes an answer.
    pub give_up: Time,
    /// How long a peer may say nothing at all before it is forgotten.
    pub idle_timeout: Time,
    /// Whether switches may mark data packets.
    pub ecn: bool,
    /// Whether payloads carry a CRC32C, as every header does. Packets that it does not fit count as lost.
    pub checksum: bool,
    /// The key by which this endpoint is called and, unless [`crate::Endpoint::set_peer_key`] says otherwise, calls others; `None`: nothing is
    /// authenticated.
    pub key: Option<Key>,
    /// What is authenticated where there is a key, headers and control packets at least; the more of what both ends say.
    pub protection: Protection,
    /// New packets of a stream in a row that carry the tag chosen for the first of them.
    pub run_length: u32,
    /// Time to drain a full queue at the slowest link, which an automatic timeout of the transport allows for.
    pub queue_drain: Time,
    /// Packets beyond the first one missing that a stream may have under way.
    pub span: u32,
    /// Largest message in bytes.
    pub most_message: u64,
    /// Bytes that messages from one peer may hold at the receiver, two messages at least, and to one peer at the sender.
    pub most_held: u64,
    /// Bytes of memory that messages from all peers may take before they are complete and handed over: half of it those of senders that
    /// have delivered as much before, half of it those of others, which source addresses share alike. Messages of one source address may
    /// take half of it. At least twice `most_held`.
    pub max_buffered_bytes: u64,
    /// Streams from one peer.
    pub most_streams: usize,
    /// Peers.
    pub most_peers: usize,
    /// Of them those that have connected from one source address; of IPv6 from one prefix of 64 bits.
    pub max_peers_per_address: usize,
    /// Replies per second to addresses that have not shown that they receive there.
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
            rate: Rate::gbps(10),
            overhead: 42,
            catch_up: Time::from_us(100),
            calibrations: 16,
            rtt_floor: Time::ZERO,
            rtt_window: Time::from_us(10_000_000),
            patience: Time::from_us(50_000),
            give_up: Time::from_us(10_000_000),
            idle_timeout: Time::MAX,
            ecn: true,
            checksum: true,
            key: None,
            protection: Protection::Control,
            run_length: 1,
            queue_drain: Time::ZERO,
            span: 4096,
            most_message: 1 << 24,
            most_held: 1 << 26,
            max_buffered_bytes: 1 << 27,
            most_streams: 64,
            most_peers: 1024,
            max_peers_per_address: 256,
            max_retries: 20_000,
        }
    }
}

impl Settings {
    /// Payload bytes of a full packet.
    pub fn mtu(&self) -> u64 {
        self.transport.mtu()
    }

    /// Bytes of the datagram of a probe with so much payload: as many as a data packet would have, a full one at most.
    pub fn probe_datagram(&self, payload: u32) -> usize {
        self.max_header() + u64::from(payload).clamp(1, self.mtu()) as usize
    }

    /// Bytes of the longest header.
    pub fn max_header(&self) -> usize {
        if self.key.is_some() { MAX_HEADER } else { DATA_HEADER }
    }
}
