use super::{
    control::Control,
    cookie::Cookies,
    datagram::{Source, To, Transmit},
    hosts::Hosts,
};
use crate::{
    Balancer, Entropy, Flow, Nic, Settings,
    event::Event,
    header::{self, Greeting, Protection},
    pacer::Pacer,
    peer::Peer,
    stream::{First, Outgoing, Spares},
};
use anabranch_lb::{
    GuidedPaths, Tag,
    registry::{Host, TagKind},
};
use anabranch_random::Stream;
use anabranch_transport::{Network, Transport};
use anabranch_units::Time;
use slab::Slab;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque},
    net::SocketAddr,
    sync::Arc,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data packets sent.
    pub packets: u64,
    /// Retransmissions among them.
    pub retransmitted: u64,
    /// Packets declared lost by a timeout.
    pub timeouts: u64,
    /// Packets declared lost because a later one of the same tag was acknowledged.
    pub overtaken: u64,
    /// Headers of trimmed packets received.
    pub trimmed: u64,
    /// Marked packets received.
    pub marked: u64,
    /// Probes of schemes sent.
    pub probes: u64,
    /// Their bytes on the wire.
    pub probe_bytes: u64,
    /// Data packets sent over another path than the one before them of their stream.
    pub path_switches: u64,
    /// Datagrams of another format, or with invalid values.
    pub refused: u64,
    /// Datagrams whose header or payload does not match its CRC32C: dropped, and repaired as a loss.
    pub damaged: u64,
    /// Datagrams without the MAC that they need, or with a wrong one.
    pub forged: u64,
    /// Authenticated datagrams that were received already, or are too old to be checked.
    pub replayed: u64,
    /// Datagrams of unknown peers or connections.
    pub unknown_peers: u64,
    /// Data packets dropped for lack of memory or streams.
    pub no_capacity: u64,
    /// RETRYs sent.
    pub retries: u64,
    /// HELLOs without a RETRY, because too many arrived.
    pub retries_suppressed: u64,
    /// Peers dropped because others needed their place or memory.
    pub evicted: u64,
    /// Control packets, ACKs above all, dropped because too many waited.
    pub control_dropped: u64,
}

/// Maximum queued control packets, to all peers and to one. A later ACK contains all earlier ones.
pub(super) const MAX_CONTROL: usize = 4096;
pub(super) const MAX_CONTROL_PER_PEER: usize = 1024;
/// Maximum queued replies to unknown addresses, and verified HELLOs.
pub(super) const MAX_REPLIES: usize = 256;
pub(super) const CALIBRATION: u32 = u32::MAX;
/// Of probes of labels, which measure nothing.
pub(super) const LABELS: u32 = u32::MAX - 1;
/// Size in packets that schemes receive for a stream, which has no end.
pub(super) const STREAM_PACKETS: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Stream {
        slot: u32,
        peer: u32,
        stream: u32,
    },
    Receiver {
        peer: u32,
        stream: u32,
    },
    Peer {
        peer: u32,
    },
    Search {
        peer: u32,
    },
    /// Of the endpoint itself: check for idle peers.
    Idle,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer {
    pub(super) from: Source,
    pub(super) label: u32,
    pub(super) greeting: Greeting,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) entropy: Entropy,
    pub(super) cookies: Cookies,
    pub(super) hosts: Hosts,
    /// For streams whose peer has none of its own yet: receivers need none of its round trips.
    pub(super) transport: Transport,
    pub(super) transports: Vec<Option<Transport>>,
    pub(super) peers: Vec<Option<Peer>>,
    pub(super) flows: Slab<Flow<Outgoing>>,
    pub(super) balancer: Balancer<Host>,
    pub(super) tags: TagKind,
    pub(super) guided: BTreeMap<u32, Arc<GuidedPaths>>,
    pub(super) nic: Nic,
    pub(super) pacer: Pacer,
    /// Peer, label, packet.
    pub(super) control: VecDeque<(u32, u32, Control)>,
    /// To senders that are no peers, queued apart so that they displace no ACKs.
    pub(super) replies: VecDeque<(To, u32, Control)>,
    /// Further datagrams of packets that have been sent in part.
    pub(super) fragments: VecDeque<(Transmit, Vec<u8>)>,
    /// Those of the packet that is written.
    pub(super) parts: Vec<Vec<u8>>,
    pub(super) newcomers: VecDeque<Newcomer>,
    pub(super) connections: BTreeMap<u32, u32>,
    /// Peer, label, address: found by connection number.
    pub(super) confirmed: Vec<(u32, u32, SocketAddr)>,
    pub(super) spares: Spares,
    pub(super) last_eviction_at: Time,
    pub(super) timers: BinaryHeap<Reverse<(Time, Timer)>>,
    pub(super) events: VecDeque<Event>,
    /// Numbers without a peer, which the datapath may reuse.
    pub(super) released: BTreeSet<u32>,
    pub(super) has_idle_check: bool,
    pub(super) counters: Counters,
    pub(super) watches: bool,
    pub(super) first: First,
    pub(super) next_refusal_report_at: Time,
    /// Streams whose schemes have just decided to wait.
    pub(super) blocked: Vec<u32>,
    pub(super) opened: u32,
    /// For tags that name no path.
    pub(super) paths_of_categories: Stream,
    pub(super) unacknowledged: usize,
}

impl State {
    pub(super) fn new(mut settings: Settings) -> Self {
        settings.planes = settings.planes.clamp(1, 1 << 7);
        settings.labels = settings.labels.next_multiple_of(settings.planes).clamp(1, 1 << 12);
        settings.span = settings.span.clamp(1, 1 << 20);
        settings.run_length = settings.run_length.max(1);
        settings.max_held = settings.max_held.max(2 * settings.max_message);
        settings.max_buffered_bytes = settings.max_buffered_bytes.max(2 * settings.max_held);
        let transport = resolve(&settings, Time::from_us(1000));
        let entropy = Entropy::new(&settings.secret, &format!("anabranch endpoint {}", settings.host_key));
        let (cookies, hosts) = (Cookies::new(&settings.secret, settings.max_retries), Hosts::new(&settings));
        let balancer = Balancer::new(settings.scheme.build(settings.seed, settings.host_key));
        let tags = settings.scheme.capabilities().tags();
        let pacer = Pacer::new(settings.rate, settings.overhead, settings.catch_up);
        let paths_of_categories = Stream::keyed(settings.seed, 0, "paths of categories");
        State {
            settings,
            entropy,
            cookies,
            hosts,
            transport,
            transports: Vec::new(),
            peers: Vec::new(),
            flows: Slab::new(),
            balancer,
            tags,
            guided: BTreeMap::new(),
            nic: Nic::default(),
            pacer,
            control: VecDeque::new(),
            replies: VecDeque::new(),
            fragments: VecDeque::new(),
            parts: Vec::new(),
            newcomers: VecDeque::new(),
            connections: BTreeMap::new(),
            confirmed: Vec::new(),
            spares: Spares::default(),
            last_eviction_at: Time::ZERO,
            timers: BinaryHeap::new(),
            events: VecDeque::new(),
            released: BTreeSet::new(),
            has_idle_check: false,
            counters: Counters::default(),
            watches: false,
            first: First::default(),
            next_refusal_report_at: Time::ZERO,
            blocked: Vec::new(),
            opened: 0,
            paths_of_categories,
            unacknowledged: 0,
        }
    }

    pub(super) fn longest_datagram(&self) -> usize {
        self.settings.longest_datagram()
    }

    pub(super) fn longest_datagram_to(&self, peer: u32) -> usize {
        self.datagram_of(self.peer(peer).map_or(1, |known| known.fragments))
    }

    /// Bytes of the longest fragment of a full packet.
    pub(super) fn datagram_of(&self, fragments: u8) -> usize {
        self.settings.max_header() + self.settings.mtu().div_ceil(u64::from(fragments)) as usize
    }

    /// `None` if the scheme probes no paths.
    pub(super) fn probe_datagram(&self) -> Option<usize> {
        let payload = self.settings.scheme.capabilities().probe_payload()?;
        Some(self.settings.probe_datagram(payload))
    }

    /// Returns the time until datagrams that are sent now have left, and as many replies: the other endpoint may be as slow.
    pub(super) fn pace(&self, datagrams: usize, bytes: usize, now: Time) -> Time {
        let datagrams = (datagrams + self.control.len()) as u64;
        let bytes =
            bytes as u64 + self.control.len() as u64 * header::ECHO_BYTES as u64 + datagrams * self.settings.overhead;
        self.pacer.free_at().saturating_sub(now) + self.settings.rate.wire_time(bytes) * 2
    }

    pub(super) fn peer(&self, peer: u32) -> Option<&Peer> {
        self.peers.get(peer as usize)?.as_ref()
    }

    pub(super) fn offer(&mut self, slot: u32, now: Time) {
        let flow = &mut self.flows[slot as usize];
        let peer = flow.of.peer as usize;
        let span = self.peers.get(peer).and_then(Option::as_ref).map_or(1, |known| known.span);
        let transport = self.transports[peer].as_ref().unwrap_or(&self.transport);
        let more = flow.of.offer(flow.sender.cumulative(), span);
        if more > 0 {
            flow.sender.append(transport, more);
        }
        self.nic.enter(slot, flow, transport, now);
    }

    pub(super) fn arm(&mut self, slot: u32, now: Time) {
        let flow = &mut self.flows[slot as usize];
        let transport = self.transports[flow.of.peer as usize].as_ref().unwrap_or(&self.transport);
        if let Some(at) = flow.arm(transport, now) {
            let (peer, stream) = (flow.of.peer, flow.of.stream);
            self.timers.push(Reverse((at, Timer::Stream { slot, peer, stream })));
        }
    }

    pub(super) fn slot(&self, peer: u32, stream: u32) -> Option<u32> {
        self.peer(peer)?.streams.get(&stream).copied()
    }

    pub(super) fn send_control(&mut self, peer: u32, label: u32, control: Control) {
        let of_peer = self.peers.get_mut(peer as usize).and_then(Option::as_mut);
        let is_full = of_peer.as_ref().is_some_and(|known| known.control >= MAX_CONTROL_PER_PEER);
        if is_full || self.control.len() >= MAX_CONTROL {
            self.counters.control_dropped += 1;
            return;
        }
        if let Some(known) = of_peer {
            known.control += 1;
        }
        self.control.push_back((peer, label, control));
    }

    /// Returns `false` if too many replies wait already.
    pub(super) fn reply(&mut self, to: To, label: u32, control: Control) -> bool {
        let has_space = self.replies.len() < MAX_REPLIES;
        if has_space {
            self.replies.push_back((to, label, control));
        }
        has_space
    }

    /// Tags that number paths name one each, others are folded to path and label.
    pub(super) fn label(&mut self, slot: u32, tag: Tag) -> u32 {
        let (peer, turn) = (self.flows[slot as usize].of.peer, self.flows[slot as usize].of.turn);
        let Some(Some(known)) = self.peers.get(peer as usize) else { return 0 };
        let paths = known.paths.len() as u32;
        match self.tags {
            TagKind::Guided => known.label((tag >> 16) % paths, turn),
            TagKind::Category => {
                // In turn, what is retransmitted might take the same path every time.
                known.label(self.paths_of_categories.below(u64::from(paths)) as u32, turn)
            }
            TagKind::MultiPart => {
                // Of several planes the first part names one, in as many bits as their number needs.
                let bits = known.live_planes.next_power_of_two().trailing_zeros();
                let (plane, tag) = (tag & ((1 << bits) - 1), tag >> bits);
                known.label((tag ^ tag >> 16).wrapping_mul(known.live_planes).wrapping_add(plane) % paths, turn)
            }
            TagKind::Entropy => {
                let entropy = tag ^ tag >> 16;
                known.label(entropy % paths, entropy / paths)
            }
        }
    }

    pub(super) fn release_unknown(&mut self, peer: Option<u32>) {
        if let Some(peer) = peer.filter(|peer| self.peer(*peer).is_none()) {
            self.released.insert(peer);
        }
    }

    pub(super) fn protection(&self) -> Protection {
        match self.settings.key {
            Some(_) => self.settings.protection.max(Protection::Control),
            None => Protection::Off,
        }
    }
}

pub(super) fn resolve(settings: &Settings, base_rtt: Time) -> Transport {
    // A stream has no more packets under way, regardless of the round trips that its peer reports.
    let full = settings.longest_datagram() as u64 + settings.overhead;
    let bdp = settings.rate.bytes_in(base_rtt).min(full.saturating_mul(u64::from(settings.span)));
    let network = Network {
        base_rtt,
        bdp,
        longest: (base_rtt, bdp),
        queue_drain: settings.queue_drain,
        trimming: true,
        nic_rate: settings.rate,
        selective: settings.scheme.capabilities().reads_selective(),
        ..Network::default()
    };
    Transport::new(&settings.transport, &network)
}
