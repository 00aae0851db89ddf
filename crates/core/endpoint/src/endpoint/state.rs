//! What an endpoint knows, and what everything that happens to it does with that.

use super::{control::Control, cookie::Cookies, datagram::To, hosts::Hosts};
use crate::{
    Balancer, Entropy, Flow, Nic, Settings,
    event::Event,
    header::{self, Greeting, Protection},
    pacer::Pacer,
    peer::Peer,
    stream::{Outgoing, Spares},
};
use anabranch_lb::{
    GuidedPaths, Tag,
    registry::{Host, TagKind},
};
use anabranch_transport::{Network, Transport};
use anabranch_units::Time;
use slab::Slab;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque},
    net::SocketAddr,
    sync::Arc,
};

/// What an endpoint counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data packets sent.
    pub packets: u64,
    /// Of them those that were sent before.
    pub retransmitted: u64,
    /// Packets given up for lost by a timeout.
    pub timeouts: u64,
    /// Packets given up for lost because a later one of the same tag was acknowledged.
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
    /// Datagrams that are none of ours, or say what cannot be.
    pub refused: u64,
    /// Datagrams whose header or payload does not fit its CRC32C: dropped, and repaired as a loss.
    pub damaged: u64,
    /// Datagrams without the MAC that they need, or with a wrong one.
    pub forged: u64,
    /// Authenticated datagrams that have come already, or are too old to tell.
    pub replayed: u64,
    /// Datagrams of a peer or a connection that we know nothing of.
    pub strangers: u64,
    /// Data packets for whose message there was no memory.
    pub no_room: u64,
    /// RETRYs sent, and HELLOs that none was sent for because too many came.
    pub retries: u64,
    /// See `retries`.
    pub retries_suppressed: u64,
    /// Peers forgotten because others needed their place or memory.
    pub evicted: u64,
    /// Answers that were not sent because too many waited.
    pub answers_dropped: u64,
}

/// Answers that may wait, to all peers and to one; what a receiver says later says all that it said before.
pub(super) const MOST_CONTROL: usize = 4096;
pub(super) const MAX_CONTROL_PER_PEER: usize = 1024;
/// Replies to unknown addresses that may wait, and verified HELLOs.
pub(super) const MAX_REPLIES: usize = 256;
/// The stream number of the endpoint's own probes.
pub(super) const CALIBRATION: u32 = u32::MAX;
/// Packets of a stream, which has no end, that schemes are told of.
pub(super) const STREAM_PACKETS: u64 = 1 << 20;
/// PSNs end here.
pub(super) const LAST_PSN: u64 = 1 << 47;

/// Whose timer.
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
    /// Of the endpoint itself: which peers have said nothing for too long.
    Idle,
}

/// Whoever has brought back a cookie from an address that the datapath knows no peer of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer {
    pub(super) from: SocketAddr,
    pub(super) label: u32,
    pub(super) at: Time,
    pub(super) greeting: Greeting,
}

/// An endpoint: its peers, the streams to them and from them, and one line that all its packets leave by.
#[derive(Debug)]
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) entropy: Entropy,
    pub(super) cookies: Cookies,
    pub(super) hosts: Hosts,
    /// What streams use whose peer has no transport of its own yet: receivers need none of its round trips.
    pub(super) transport: Transport,
    pub(super) transports: Vec<Option<Transport>>,
    pub(super) peers: Vec<Option<Peer>>,
    pub(super) flows: Slab<Flow<Outgoing>>,
    pub(super) balancer: Balancer<Host>,
    pub(super) tags: TagKind,
    /// Lists of so many paths, for schemes that choose from a list.
    pub(super) guided: BTreeMap<u32, Arc<GuidedPaths>>,
    pub(super) nic: Nic,
    pub(super) pacer: Pacer,
    /// Peer, label, packet.
    pub(super) control: VecDeque<(u32, u32, Control)>,
    /// Replies to those who are no peers, which take the place of no one's answers.
    pub(super) replies: VecDeque<(To, u32, Control)>,
    /// Who has shown where it receives and is to become a peer.
    pub(super) newcomers: VecDeque<Newcomer>,
    /// Memory of messages that their owner has given back.
    pub(super) spares: Spares,
    /// When peers were last looked for whose memory others may have.
    pub(super) relieved_at: Time,
    pub(super) timers: BinaryHeap<Reverse<(Time, Timer)>>,
    pub(super) events: VecDeque<Event>,
    /// Peers that are none, whose numbers the datapath may give to others.
    pub(super) gone: BTreeSet<u32>,
    /// A look for idle peers is due.
    pub(super) looks_for_idle: bool,
    pub(super) counters: Counters,
    /// Whether what every path does is kept.
    pub(super) watches: bool,
    /// When it may next be told that somebody is refused.
    pub(super) tells_refusals_at: Time,
    /// Streams whose schemes have just said that they wait.
    pub(super) resting: Vec<u32>,
    /// Numbers streams, so that those whose time comes at once have an order.
    pub(super) opened: u32,
    /// Whose turn it is where the tag names no path.
    pub(super) turn: u32,
    /// Messages of all streams that are not acknowledged.
    pub(super) unacknowledged: usize,
}

impl State {
    /// See [`super::Endpoint::new`].
    pub(super) fn new(mut settings: Settings) -> Self {
        settings.labels = settings.labels.clamp(1, 1 << 12);
        settings.span = settings.span.clamp(1, 1 << 20);
        settings.run_length = settings.run_length.max(1);
        settings.most_held = settings.most_held.max(2 * settings.most_message);
        settings.max_buffered_bytes = settings.max_buffered_bytes.max(2 * settings.most_held);
        let transport = resolve(&settings, Time::from_us(1000));
        let entropy = Entropy::new(&settings.secret, &format!("anabranch endpoint {}", settings.host_key));
        let (cookies, hosts) = (Cookies::new(&settings.secret, settings.max_retries), Hosts::new(&settings));
        let balancer = Balancer::new(settings.scheme.build(settings.seed, settings.host_key));
        let tags = settings.scheme.capabilities().tags();
        let pacer = Pacer::new(settings.rate, settings.overhead, settings.catch_up);
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
            newcomers: VecDeque::new(),
            spares: Spares::default(),
            relieved_at: Time::ZERO,
            timers: BinaryHeap::new(),
            events: VecDeque::new(),
            gone: BTreeSet::new(),
            looks_for_idle: false,
            counters: Counters::default(),
            watches: false,
            tells_refusals_at: Time::ZERO,
            resting: Vec::new(),
            opened: 0,
            turn: 0,
            unacknowledged: 0,
        }
    }

    /// Bytes of the longest datagram that it sends.
    pub(super) fn longest_datagram(&self) -> usize {
        self.settings.max_header() + self.settings.mtu() as usize
    }

    /// Bytes of the datagrams that explore paths for the scheme, where it asks for any.
    pub(super) fn probe_datagram(&self) -> Option<usize> {
        let payload = self.settings.scheme.capabilities().probe_payload()?;
        Some(self.settings.probe_datagram(payload))
    }

    /// Bytes of a HELLO that is not padded. Replies to it are no longer: a RETRY has 56 bytes, a WELCOME 64.
    pub(super) fn short_hello(&self) -> usize {
        header::HELLO_BYTES + if self.settings.key.is_some() { header::SEAL } else { 0 }
    }

    pub(super) fn peer(&self, peer: u32) -> Option<&Peer> {
        self.peers.get(peer as usize)?.as_ref()
    }

    /// Shows a stream's sender what it may send next.
    pub(super) fn offer(&mut self, slot: u32, now: Time) {
        let flow = &mut self.flows[slot as usize];
        let peer = flow.of.peer as usize;
        let span = self.peers.get(peer).and_then(Option::as_ref).map_or(1, |known| known.span);
        let transport = self.transports[peer].as_ref().unwrap_or(&self.transport);
        let more = flow.of.offer(flow.sender.cumulative(), span);
        if more > 0 && flow.of.offered < LAST_PSN {
            flow.sender.append(transport, more);
        }
        self.nic.enter(slot, flow, transport, now);
    }

    /// Sees to it that a timer strikes for a stream when it needs one.
    pub(super) fn arm(&mut self, slot: u32, now: Time) {
        let flow = &mut self.flows[slot as usize];
        let transport = self.transports[flow.of.peer as usize].as_ref().unwrap_or(&self.transport);
        if let Some(at) = flow.arm(transport, now) {
            let (peer, stream) = (flow.of.peer, flow.of.stream);
            self.timers.push(Reverse((at, Timer::Stream { slot, peer, stream })));
        }
    }

    /// The slot of a stream to a peer.
    pub(super) fn slot(&self, peer: u32, stream: u32) -> Option<u32> {
        self.peer(peer)?.streams.get(&stream).copied()
    }

    /// Queues a packet that goes before all data.
    pub(super) fn say(&mut self, peer: u32, label: u32, control: Control) {
        let of_peer = self.peers.get_mut(peer as usize).and_then(Option::as_mut);
        let is_full = of_peer.as_ref().is_some_and(|known| known.control >= MAX_CONTROL_PER_PEER);
        if is_full || self.control.len() >= MOST_CONTROL {
            self.counters.answers_dropped += 1;
            return;
        }
        if let Some(known) = of_peer {
            known.control += 1;
        }
        self.control.push_back((peer, label, control));
    }

    /// Queues a reply to whoever is no peer.
    pub(super) fn reply(&mut self, to: To, label: u32, control: Control) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back((to, label, control));
        }
    }

    /// The label of a path tag of a stream: the one place where paths become labels. Tags that number paths name one each, others are folded
    /// to path and label.
    pub(super) fn label(&mut self, slot: u32, tag: Tag) -> u32 {
        let (peer, turn) = (self.flows[slot as usize].of.peer, self.flows[slot as usize].of.turn);
        let Some(Some(known)) = self.peers.get(peer as usize) else { return 0 };
        let paths = known.paths.len() as u32;
        match self.tags {
            TagKind::Guided => known.label((tag >> 16) % paths, turn),
            TagKind::Category => {
                self.turn = (self.turn + 1) % paths;
                known.label(self.turn, turn)
            }
            TagKind::MultiPart => known.label((tag ^ tag >> 16) % paths, turn),
            TagKind::Entropy => {
                let entropy = tag ^ tag >> 16;
                known.label(entropy % paths, entropy / paths)
            }
        }
    }

    /// Whoever sends what is of no use, and is nobody's peer, takes no place.
    pub(super) fn stranger(&mut self, peer: Option<u32>) {
        if let Some(peer) = peer.filter(|peer| self.peer(*peer).is_none()) {
            self.gone.insert(peer);
        }
    }

    /// What greetings say of us.
    pub(super) fn protection(&self) -> Protection {
        match self.settings.key {
            Some(_) => self.settings.protection.max(Protection::Control),
            None => Protection::Off,
        }
    }
}

/// The transport towards a peer of this round trip.
pub(super) fn resolve(settings: &Settings, base_rtt: Time) -> Transport {
    let network = Network {
        base_rtt,
        bdp: settings.rate.bytes_in(base_rtt),
        queue_drain: settings.queue_drain,
        trimming: true,
        nic_rate: settings.rate,
    };
    Transport::new(&settings.transport, &network)
}
