//! An endpoint on a real network, without the network: datagrams and times in, datagrams, deadlines and events out.

mod cookie;
mod hosts;
mod peers;
mod receive;
mod sealing;
mod transmit;

pub use receive::{Arrival, Nowhere, Place};
pub use transmit::{To, Transmit};

use crate::{
    Balancer, Entropy, Flow, Nic, header,
    pacer::Pacer,
    peer::{Event, Peer, Phase, SendError, SendOptions, Stored, Why},
    settings::Settings,
    stream::{Incoming, Outgoing, Spares},
    watched::PathCounts,
};
use anabranch_lb::{
    GuidedPaths, Record,
    registry::{Host, HostParameters, TagKind},
};
use anabranch_transport::{Network, Transport};
use anabranch_units::Time;
use bytes::Bytes;
use cookie::Cookies;
use hosts::Hosts;
use peers::Newcomer;
use slab::Slab;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque},
    sync::Arc,
};
use transmit::Control;

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
const MOST_CONTROL: usize = 4096;
const MAX_CONTROL_PER_PEER: usize = 1024;
/// Replies to unknown addresses that may wait, and verified HELLOs.
const MAX_REPLIES: usize = 256;
/// The stream number of the endpoint's own probes.
const CALIBRATION: u32 = u32::MAX;
/// Packets of a stream, which has no end, that schemes are told of.
const STREAM_PACKETS: u64 = 1 << 20;
/// PSNs end here.
const LAST_PSN: u64 = 1 << 47;

/// Whose timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
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

/// An endpoint: its peers, the streams to them and from them, and one line that all its packets leave by.
#[derive(Debug)]
pub struct Endpoint {
    settings: Settings,
    entropy: Entropy,
    cookies: Cookies,
    hosts: Hosts,
    /// What streams use whose peer has no transport of its own yet: receivers need none of its round trips.
    transport: Transport,
    transports: Vec<Option<Transport>>,
    peers: Vec<Option<Peer>>,
    flows: Slab<Flow<Outgoing>>,
    balancer: Balancer<Host>,
    tags: TagKind,
    /// Lists of so many paths, for schemes that choose from a list.
    guided: BTreeMap<u32, Arc<GuidedPaths>>,
    nic: Nic,
    pacer: Pacer,
    /// Peer, label, packet.
    control: VecDeque<(u32, u32, Control)>,
    /// Replies to those who are no peers, which take the place of no one's answers.
    replies: VecDeque<(To, u32, Control)>,
    /// Who has shown where it receives and is to become a peer.
    newcomers: VecDeque<Newcomer>,
    /// Memory of messages that their owner has given back.
    spares: Spares,
    /// When peers were last looked for whose memory others may have.
    relieved_at: Time,
    timers: BinaryHeap<Reverse<(Time, Timer)>>,
    events: VecDeque<Event>,
    /// Peers that are none, whose numbers the datapath may give to others.
    gone: BTreeSet<u32>,
    /// A look for idle peers is due.
    looks_for_idle: bool,
    counters: Counters,
    /// Whether what every path does is kept.
    watches: bool,
    /// When it may next be told that somebody is refused.
    tells_refusals_at: Time,
    /// Streams whose schemes have just said that they wait.
    resting: Vec<u32>,
    /// Numbers streams, so that those whose time comes at once have an order.
    opened: u32,
    /// Whose turn it is where the tag names no path.
    turn: u32,
    /// Messages of all streams that are not acknowledged.
    unacknowledged: usize,
}

/// When an endpoint may send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextSend {
    /// The time.
    pub at: Time,
    /// The pacer makes up for a late start, within its bounds. `false` for a packet that its transport or scheme
    /// holds back until `at`.
    pub catches_up: bool,
}

impl Endpoint {
    /// An endpoint that knows nobody yet. `settings.transport` and `settings.scheme` must have passed their checks.
    pub fn new(mut settings: Settings) -> Self {
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
        Endpoint {
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

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What it has counted.
    pub fn counters(&self) -> Counters {
        let switches: u64 = self.flows.iter().map(|(_, flow)| flow.path_switches()).sum();
        Counters { path_switches: self.counters.path_switches + switches, ..self.counters }
    }

    /// Bytes of the longest datagram that it sends.
    pub fn longest_datagram(&self) -> usize {
        self.settings.max_header() + self.settings.mtu() as usize
    }

    /// Bytes of the datagrams that explore paths for the scheme, where it asks for any.
    fn probe_datagram(&self) -> Option<usize> {
        let payload = self.settings.scheme.capabilities().probe_payload()?;
        Some(self.settings.probe_datagram(payload))
    }

    /// Bytes of a HELLO that is not padded. Replies to it are no longer: a RETRY has 56 bytes, a WELCOME 64.
    fn short_hello(&self) -> usize {
        header::HELLO_BYTES + if self.settings.key.is_some() { header::SEAL } else { 0 }
    }

    /// Base round trip and noise floor of a peer whose streams are open.
    pub fn round_trip(&self, peer: u32) -> Option<(Time, Time)> {
        let peer = self.peer(peer).filter(|peer| peer.phase == Phase::Open)?;
        Some((peer.base_rtt, peer.noise))
    }

    /// Bytes, packets and messages held for peers at either end: what must stay bounded.
    pub fn held(&self) -> (u64, usize) {
        let sending: u64 = self.flows.iter().map(|(_, flow)| flow.of.held).sum();
        let peers = || self.peers.iter().flatten();
        let receiving = self.hosts.stored;
        let messages: usize = peers().flat_map(|peer| peer.incoming.values()).map(Incoming::held_messages).sum();
        (sending + receiving, messages + self.control.len() + self.timers.len())
    }

    /// Whether nothing waits to be sent or acknowledged.
    pub fn is_idle(&self) -> bool {
        let waiting = self.peers.iter().flatten().any(|peer| !peer.waiting.is_empty());
        !waiting && self.control.is_empty() && self.flows.iter().all(|(_, flow)| flow.of.is_idle())
    }

    fn peer(&self, peer: u32) -> Option<&Peer> {
        self.peers.get(peer as usize)?.as_ref()
    }

    // ---- what its owner asks for ----

    /// Keeps a record of what its scheme is told and answers from now on. To be called before anything is sent.
    pub fn record(&mut self, record: &Record) {
        let scheme = self.settings.scheme.build(self.settings.seed, self.settings.host_key);
        self.balancer = Balancer::new(record.wrap(scheme, self.settings.host_key));
    }

    /// Keeps what every path of every stream does, for [`Endpoint::watched`]. To be called before anything is sent.
    pub fn watch_paths(&mut self) {
        self.watches = true;
    }

    /// The window of an open stream in bytes, where its congestion control has one, and what its paths have done, by label;
    /// `None`: there is no such stream, or nobody watches.
    pub fn watched(
        &self,
        now: Time,
        peer: u32,
        stream: u32,
    ) -> Option<(Option<u64>, impl Iterator<Item = PathCounts>)> {
        let flow = &self.flows[self.slot(peer, stream)? as usize];
        let transport = self.transports[peer as usize].as_ref().unwrap_or(&self.transport);
        Some((flow.sender.allowed(transport, now).0, flow.of.watched.as_ref()?.counts()))
    }

    /// Another scheme, or the same with other parameters, which must have passed their checks, steers from now on. What schemes
    /// remember of paths begins anew; windows stay.
    pub fn change_scheme(&mut self, now: Time, scheme: HostParameters) {
        self.balancer = Balancer::new(scheme.build(self.settings.seed, self.settings.host_key));
        self.tags = scheme.capabilities().tags();
        self.settings.scheme = scheme;
        let slots: Vec<u32> = self.flows.iter().map(|(slot, _)| slot as u32).collect();
        for slot in slots {
            let Outgoing { peer, stream, .. } = self.flows[slot as usize].of;
            let scheme_slot = self.open_with_scheme(peer, stream, now);
            let flow = &mut self.flows[slot as usize];
            (flow.scheme_slot, flow.waits, flow.of.run_left) = (scheme_slot, false, 0);
            self.offer(slot, now);
        }
    }

    /// Says hello to a peer, unless it is known.
    pub fn connect(&mut self, now: Time, peer: u32) {
        self.connect_over(now, peer, &[]);
    }

    /// Says hello to a peer, unless its streams are open, which are to use these paths alone, as far as it has their labels: a path is the
    /// labels that lead over it. What a scheme remembers is of paths, which tags and [`Endpoint::paths_changed`] count in this order.
    pub fn connect_over(&mut self, now: Time, peer: u32, paths: &[Vec<u32>]) {
        let phase = self.peer(peer).map(|known| known.phase);
        if phase.is_none() && !self.make_peer(peer, Phase::Greeting, None, now) {
            return;
        }
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        match phase {
            None => known.wanted = paths.to_vec(),
            // It has called us; whoever only listened so far measures before it speaks.
            Some(Phase::Greeted) => {
                known.wanted = paths.to_vec();
                known.have_labels(known.labels);
                known.phase = Phase::Calibrating;
            }
            Some(Phase::Greeting | Phase::Calibrating | Phase::Open) => return,
        }
        self.ask(peer, now);
    }

    /// Appends a message to a stream to a peer; streams open as they are used. Returns the message's number in its stream.
    ///
    /// # Errors
    /// Where there is no such peer, the message is too large for it, or too much waits already.
    pub fn send(&mut self, now: Time, peer: u32, stream: u32, bytes: Bytes) -> Result<u32, SendError> {
        let class = self.peer(peer).map_or(0, |known| known.class);
        self.send_with(now, peer, stream, SendOptions { class, ..SendOptions::default() }, bytes)
    }

    /// The same for a message that is more than its bytes.
    ///
    /// # Errors
    /// As for [`Endpoint::send`], and where the head is longer than a packet.
    pub fn send_with(
        &mut self,
        now: Time,
        peer: u32,
        stream: u32,
        options: SendOptions,
        bytes: Bytes,
    ) -> Result<u32, SendError> {
        let head = &options.head;
        let length = (head.len() + bytes.len()) as u64;
        let known = self.peers.get_mut(peer as usize).and_then(Option::as_mut).ok_or(SendError::NoPeer)?;
        if stream == CALIBRATION {
            return Err(SendError::NoPeer);
        }
        let most = known.most_message.min(self.settings.most_message);
        if length > most || head.len() as u64 > self.settings.mtu() {
            return Err(SendError::TooLarge(most));
        }
        let flows = &self.flows;
        let held: u64 = known.streams.values().map(|slot| flows[*slot as usize].of.held).sum();
        let held = held + known.waiting.iter().map(|outgoing| outgoing.held).sum::<u64>();
        if held + length > self.settings.most_held {
            return Err(SendError::Full);
        }
        if let Some(&slot) = known.streams.get(&stream) {
            let number = self.flows[slot as usize].of.push(options, bytes, now);
            self.unacknowledged += 1;
            self.offer(slot, now);
            return Ok(number);
        }
        let at = match known.waiting.iter().position(|outgoing| outgoing.stream == stream) {
            Some(at) => at,
            None => {
                known.waiting.push(Outgoing::new(peer, stream, known.theirs, self.settings.transport.mtu()));
                known.waiting.len() - 1
            }
        };
        let number = known.waiting[at].push(options, bytes, now);
        self.unacknowledged += 1;
        match known.phase {
            Phase::Open => self.open_waiting(peer, now),
            Phase::Greeted => {
                // Whoever only listened so far measures before it speaks.
                known.phase = Phase::Calibrating;
                self.ask(peer, now);
            }
            Phase::Greeting | Phase::Calibrating => {}
        }
        Ok(number)
    }

    /// Messages of a stream that were given by reference ([`Bytes::from_owner`]) and are not acknowledged are copied: their owner wants
    /// the memory back.
    pub fn own(&mut self, peer: u32, stream: u32) {
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        known.waiting.iter_mut().filter(|of| of.stream == stream).for_each(Outgoing::own);
        if let Some(slot) = known.streams.get(&stream) {
            self.flows[*slot as usize].of.own();
        }
    }

    /// Whatever is said to a peer from now on, answers and probes above all, has this traffic class, but for messages that have one of
    /// their own ([`SendOptions`]).
    pub fn set_class(&mut self, peer: u32, class: u8) {
        if let Some(Some(known)) = self.peers.get_mut(peer as usize) {
            known.class = class;
        }
    }

    /// Takes leave of a peer; whatever is under way is lost.
    pub fn close(&mut self, peer: u32) {
        if let Some(Some(known)) = self.peers.get_mut(peer as usize) {
            let bye = Control::bye(known);
            self.forget(peer);
            self.say(peer, 0, bye);
        }
    }

    /// The host has learnt which paths are dead.
    pub fn paths_changed(&mut self, now: Time, peer: u32, dead: &[bool]) {
        let Some(known) = self.peer(peer) else { return };
        let slots: Vec<u32> = known.streams.values().copied().collect();
        for slot in slots {
            self.flows[slot as usize].on_paths_changed(self.balancer.scheme_mut(), now, dead);
        }
    }

    /// What has happened, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Received { peer, bytes, .. } = &event
            && let Some(Some(known)) = self.peers.get_mut(*peer as usize)
        {
            let bytes = bytes.len() as u64;
            let stored = Stored::new(bytes.min(known.stored.bytes), true);
            known.reserved = known.reserved.saturating_sub(bytes);
            known.stored.take(stored);
            self.hosts.release(known.host, stored);
        }
        Some(event)
    }

    /// Takes the memory of a message ([`Event::Received`]) that its owner needs no more: another message is put together there.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.spares.keep(bytes);
    }

    /// A peer that is none, or no longer, and to whom nothing is left to be said: the datapath may forget it, and give its
    /// number to another. Ask until there is none, when all events have been taken.
    pub fn poll_gone(&mut self) -> Option<u32> {
        if !self.control.is_empty() || !self.events.is_empty() {
            return None;
        }
        loop {
            let peer = self.gone.pop_first()?;
            if self.peer(peer).is_none() {
                return Some(peer);
            }
        }
    }

    /// Shows a stream's sender what it may send next.
    fn offer(&mut self, slot: u32, now: Time) {
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
    fn arm(&mut self, slot: u32, now: Time) {
        let flow = &mut self.flows[slot as usize];
        let transport = self.transports[flow.of.peer as usize].as_ref().unwrap_or(&self.transport);
        if let Some(at) = flow.arm(transport, now) {
            let (peer, stream) = (flow.of.peer, flow.of.stream);
            self.timers.push(Reverse((at, Timer::Stream { slot, peer, stream })));
        }
    }

    /// The slot of a stream to a peer.
    fn slot(&self, peer: u32, stream: u32) -> Option<u32> {
        self.peer(peer)?.streams.get(&stream).copied()
    }

    /// When [`Endpoint::handle_timeout`] or [`Endpoint::poll_transmit`] has something to do next, unless something arrives;
    /// `None`: never.
    pub fn poll_timeout(&self) -> Option<Time> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        [timer, self.next_send().map(|next| next.at)].into_iter().flatten().min()
    }

    /// Returns when [`Endpoint::poll_transmit`] has a packet next, timers and arrivals aside; `None`: there is none. The time
    /// may lie before the packet was there.
    pub fn next_send(&self) -> Option<NextSend> {
        let free_at = self.pacer.free_at();
        let waits = !self.control.is_empty() || !self.replies.is_empty() || !self.nic.round().is_empty();
        if waits {
            return Some(NextSend { at: free_at, catches_up: true });
        }
        let held_until = self.nic.paced_until()?;
        Some(NextSend { at: held_until.max(free_at), catches_up: held_until <= free_at })
    }

    /// Returns `true` while a message of its own is not acknowledged.
    pub fn is_sending(&self) -> bool {
        self.unacknowledged > 0
    }

    /// Returns `true` while a message of a peer is not complete, or its owner has not taken it.
    pub fn is_receiving(&self) -> bool {
        self.hosts.stored > 0
    }

    /// Timers that are due at `now` strike.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(&Reverse((at, timer))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            match timer {
                Timer::Peer { peer } => self.peer_timer(peer, at, now),
                Timer::Idle => self.lose_idle(now),
                Timer::Receiver { peer, stream } => self.receiver_timer(peer, stream, at, now),
                Timer::Stream { slot, peer, stream } => {
                    if self.slot(peer, stream) == Some(slot) {
                        self.stream_timer(slot, peer, at, now);
                    }
                }
            }
        }
    }

    fn stream_timer(&mut self, slot: u32, peer: u32, at: Time, now: Time) {
        let flow = &mut self.flows[slot as usize];
        if !flow.awaits(at) {
            return;
        }
        let transport = self.transports[peer as usize].as_ref().unwrap_or(&self.transport);
        let lost =
            flow.on_timer(transport, self.balancer.scheme_mut(), now, &mut |stream, psn| stream.note_timeout(psn));
        self.counters.timeouts += lost;
        flow.of.turn = flow.of.turn.wrapping_add(u32::from(lost > 0));
        if lost > 0
            && let Some(Some(known)) = self.peers.get_mut(peer as usize)
        {
            let since = *known.quiet_since.get_or_insert(now);
            if now.saturating_sub(since) > self.settings.give_up {
                return self.lose(peer, Why::Silent);
            }
        }
        self.send_probes(slot, now);
        self.offer(slot, now);
        self.arm(slot, now);
    }
}

/// The transport towards a peer of this round trip.
fn resolve(settings: &Settings, base_rtt: Time) -> Transport {
    let network = Network {
        base_rtt,
        bdp: settings.rate.bytes_in(base_rtt),
        queue_drain: settings.queue_drain,
        trimming: true,
        nic_rate: settings.rate,
    };
    Transport::new(&settings.transport, &network)
}
