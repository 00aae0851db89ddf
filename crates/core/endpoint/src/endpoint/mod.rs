//! Endpoint on a real network, without I/O: datagrams and times in, datagrams, deadlines and events out.

mod control;
mod cookie;
mod datagram;
mod hosts;
mod peers;
mod receive;
mod sealing;
mod sizes;
mod state;
mod transmit;

pub use datagram::{Arrival, NoPlacement, Placement, Source, To, Transmit};
pub use state::Counters;

use crate::{
    Balancer, CloseReason, Key, Settings,
    event::{Event, SendError, SendOptions, Sizes},
    header,
    peer::Phase,
    stream::{First, Incoming, Outgoing, Stored},
    watched::{PathCounts, SchemeState},
};
use anabranch_lb::{HostScheme, Record, registry::HostParameters};
use anabranch_units::{Rate, Time};
use bytes::Bytes;
use state::{State, Timer};
use std::{cmp::Reverse, net::SocketAddr};

/// Time of an endpoint's next transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextSend {
    /// Earliest time.
    pub at: Time,
    /// The pacer makes up for a late start; `false` for a packet that its transport or scheme holds until `at`.
    pub catches_up: bool,
}

/// An endpoint: its peers, the streams to and from them, and one egress for all its packets.
#[derive(Debug)]
pub struct Endpoint {
    state: State,
}

impl Endpoint {
    /// Creates an endpoint without peers. `settings.transport` and `settings.scheme` must have passed their checks.
    pub fn new(settings: Settings) -> Self {
        Endpoint { state: State::new(settings) }
    }

    pub fn settings(&self) -> &Settings {
        &self.state.settings
    }

    pub fn counters(&self) -> Counters {
        let switches: u64 = self.state.flows.iter().map(|(_, flow)| flow.path_switches()).sum();
        Counters { path_switches: self.state.counters.path_switches + switches, ..self.state.counters }
    }

    /// Returns the bytes of the longest datagram that it sends.
    pub fn longest_datagram(&self) -> usize {
        self.state.longest_datagram()
    }

    /// Returns base round trip and noise floor of a peer whose streams are open.
    pub fn round_trip(&self, peer: u32) -> Option<(Time, Time)> {
        let peer = self.state.peer(peer).filter(|peer| peer.phase == Phase::Open)?;
        Some((peer.base_rtt, peer.noise))
    }

    /// Returns the sizes that pass to a peer and that do not, if its packets are sent in fragments.
    pub fn fragmented(&self, peer: u32) -> Option<Sizes> {
        self.state.peer(peer).filter(|peer| peer.fragments > 1)?.sizes
    }

    /// Returns the bytes held for peers, and the number of messages, control packets and timers held: what must stay bounded.
    pub fn held(&self) -> (u64, usize) {
        let sending: u64 = self.state.flows.iter().map(|(_, flow)| flow.of.held).sum();
        let peers = || self.state.peers.iter().flatten();
        let receiving = self.state.hosts.stored;
        let messages: usize = peers().flat_map(|peer| peer.incoming.values()).map(Incoming::incomplete_messages).sum();
        (sending + receiving, messages + self.state.control.len() + self.state.timers.len())
    }

    /// Returns `true` if nothing waits to be sent or acknowledged.
    pub fn is_idle(&self) -> bool {
        let waiting = self.state.peers.iter().flatten().any(|peer| !peer.waiting.is_empty());
        !waiting && self.state.control.is_empty() && self.state.flows.iter().all(|(_, flow)| flow.of.is_idle())
    }

    // ---- requests of its owner ----

    /// Records the inputs and outputs of its scheme; call before anything is sent.
    pub fn record(&mut self, record: &Record) {
        let Settings { scheme, seed, host_key, .. } = &self.state.settings;
        self.state.balancer = Balancer::new(record.wrap(scheme.build(*seed, *host_key), scheme.name(), *host_key));
    }

    /// Returns the key of a stream for its scheme ([`anabranch_lb::FlowInfo::key`]).
    pub fn stream_key(&self, peer: u32, stream: u32) -> u64 {
        peers::stream_key(self.state.settings.seed, peer, stream)
    }

    /// Begins all streams with these numbers, at both endpoints, for tests of numbers that others reach in years.
    #[doc(hidden)]
    pub fn begin_streams_at(&mut self, psn: u64, message: u64, transmission: u32) {
        self.state.first = First { psn, message, transmission };
    }

    /// Enables [`Endpoint::watched`]; call before anything is sent.
    pub fn watch_paths(&mut self) {
        self.state.watches = true;
    }

    /// Returns the window of an open stream in bytes, if its congestion control has one, and the counters of its paths,
    /// by label; `None` if there is no such stream, or paths are not watched.
    pub fn watched(
        &self,
        now: Time,
        peer: u32,
        stream: u32,
    ) -> Option<(Option<u64>, impl Iterator<Item = PathCounts>)> {
        let flow = &self.state.flows[self.state.slot(peer, stream)? as usize];
        let transport = self.state.transports[peer as usize].as_ref().unwrap_or(&self.state.transport);
        let silent = self.state.peer(peer)?.silent_labels();
        let of = move |(label, counts)| PathCounts { is_silent: silent.contains(&(label as u32)), ..counts };
        Some((flow.sender.allowed(transport, now).0, flow.of.watched.as_ref()?.counts().enumerate().map(of)))
    }

    /// Spreads the chunks of a stream over labels by these weights, from its next chunk on ([`HostScheme::steer`]); `None`: the peer
    /// has sent no reply yet, `Some(false)`: its scheme decides alone.
    pub fn steer(&mut self, peer: u32, stream: u32, weights: &[f32]) -> Option<bool> {
        peers::steer(&mut self.state, peer, stream, weights)
    }

    /// Returns the columns of the scheme's state with their values for an open stream, after the last packet and its path;
    /// `None` if there is no such stream.
    pub fn scheme_state(&self, now: Time, peer: u32, stream: u32) -> Option<SchemeState> {
        let flow = &self.state.flows[self.state.slot(peer, stream)? as usize];
        let state = self.state.balancer.scheme().state(now, flow.scheme_slot(), flow.last_tag);
        let columns = self.state.settings.scheme.state().iter().enumerate();
        Some(columns.map(|(at, column)| (column, state.get(at))).collect())
    }

    /// Replaces the scheme or its parameters, which must have passed their checks. Path memory is reset; windows stay.
    pub fn change_scheme(&mut self, now: Time, scheme: HostParameters) {
        self.state.balancer = Balancer::new(scheme.build(self.state.settings.seed, self.state.settings.host_key));
        self.state.tags = scheme.capabilities().tags();
        self.state.settings.scheme = scheme;
        let slots: Vec<u32> = self.state.flows.iter().map(|(slot, _)| slot as u32).collect();
        for slot in slots {
            peers::reopen(&mut self.state, now, slot);
        }
    }

    /// Connects to a peer; no effect if the local endpoint has called it already.
    pub fn connect(&mut self, now: Time, peer: u32) {
        self.connect_over(now, peer, &[]);
    }

    /// Connects to a peer over these paths, each a list of labels, as far as the peer has their labels; no effect if
    /// the local endpoint has called it already. Tags number paths in this order. Streams to a peer that has called this
    /// endpoint lose their path memory.
    pub fn connect_over(&mut self, now: Time, peer: u32, paths: &[Vec<u32>]) {
        let phase = self.state.peer(peer).map(|known| known.phase);
        if phase.is_none() && !peers::make_peer(&mut self.state, peer, Phase::Greeting, None, now) {
            return;
        }
        let Some(Some(known)) = self.state.peers.get_mut(peer as usize) else { return };
        if std::mem::replace(&mut known.is_called, true) {
            return;
        }
        known.requested_paths = paths.to_vec();
        match phase {
            None => {}
            // It has called this endpoint, which has to measure the round trip before it sends.
            Some(Phase::Greeted) => {
                peers::begin_calibration(&mut self.state, peer, 0, now);
                return;
            }
            // It has called this endpoint, which sends to it already: streams that are open choose among other paths.
            Some(Phase::Greeting | Phase::Calibrating | Phase::Open) => {
                // Its labels lead over ports of its own now, from which no reply has come yet.
                let before = std::mem::take(&mut known.paths);
                known.set_labels(known.labels);
                known.sweeps = 0;
                if known.paths != before {
                    peers::reopen_streams(&mut self.state, peer, now);
                }
                peers::sweep(&mut self.state, peer, now);
                return;
            }
        }
        peers::send_request(&mut self.state, peer, now);
    }

    /// Sets the rates between the switches of the paths of [`Endpoint::connect_over`], in their order, for schemes with
    /// [`anabranch_lb::registry::SchemeCapabilities::reads_path_rates`]; empty: unknown, as until then.
    pub fn set_path_rates(&mut self, now: Time, peer: u32, rates: &[Rate]) {
        let State { peers, flows, balancer, settings, .. } = &mut self.state;
        let Some(Some(known)) = peers.get_mut(peer as usize) else { return };
        known.path_rates = rates.to_vec();
        let rates = known.rates();
        if rates.is_empty() || !settings.scheme.capabilities().reads_path_rates() {
            return;
        }
        for slot in known.streams.values() {
            balancer.scheme_mut().on_rates_changed(now, flows[*slot as usize].scheme_slot(), &rates);
        }
    }

    /// Appends a message to a stream, which opens on first use; returns the message's number in its stream.
    ///
    /// Fails if there is no such peer, the message is too large for it, or too many bytes wait already.
    pub fn send(&mut self, now: Time, peer: u32, stream: u32, bytes: Bytes) -> Result<u64, SendError> {
        let class = self.state.peer(peer).map_or(0, |known| known.class);
        self.send_with(now, peer, stream, SendOptions { class, ..SendOptions::default() }, bytes)
    }

    /// Appends a message with options, otherwise like [`Endpoint::send`].
    /// Fails as for [`Endpoint::send`], and if the head is longer than a packet.
    pub fn send_with(
        &mut self,
        now: Time,
        peer: u32,
        stream: u32,
        options: SendOptions,
        bytes: Bytes,
    ) -> Result<u64, SendError> {
        let head = &options.head;
        let length = (head.len() + bytes.len()) as u64;
        let known = self.state.peers.get_mut(peer as usize).and_then(Option::as_mut).ok_or(SendError::NoPeer)?;
        if stream >= sizes::SIZES {
            return Err(SendError::NoPeer);
        }
        let max = known.max_message.min(self.state.settings.max_message);
        if length > max || head.len() as u64 > self.state.settings.mtu() {
            return Err(SendError::TooLarge(max));
        }
        let flows = &self.state.flows;
        let held: u64 = known.streams.values().map(|slot| flows[*slot as usize].of.held).sum();
        let held = held + known.waiting.iter().map(|outgoing| outgoing.held).sum::<u64>();
        if held + length > self.state.settings.max_held {
            return Err(SendError::Full);
        }
        if let Some(&slot) = known.streams.get(&stream) {
            let number = self.state.flows[slot as usize].of.push(options, bytes, now);
            self.state.unacknowledged += 1;
            self.state.offer(slot, now);
            return Ok(number);
        }
        let at = match known.waiting.iter().position(|outgoing| outgoing.stream == stream) {
            Some(at) => at,
            None => {
                known.waiting.push({
                    let mtu = self.state.settings.transport.mtu();
                    Outgoing::new(peer, stream, known.theirs, mtu, self.state.first)
                });
                known.waiting.len() - 1
            }
        };
        let number = known.waiting[at].push(options, bytes, now);
        self.state.unacknowledged += 1;
        match known.phase {
            Phase::Open => peers::open_waiting(&mut self.state, peer, now),
            Phase::Greeted => peers::begin_calibration(&mut self.state, peer, 0, now),
            Phase::Greeting | Phase::Calibrating => {}
        }
        Ok(number)
    }

    /// Copies unacknowledged messages of a stream that were passed by reference ([`Bytes::from_owner`]), so that their
    /// owner can reuse the memory.
    pub fn own(&mut self, peer: u32, stream: u32) {
        let Some(Some(known)) = self.state.peers.get_mut(peer as usize) else { return };
        known.waiting.iter_mut().filter(|of| of.stream == stream).for_each(Outgoing::own);
        if let Some(slot) = known.streams.get(&stream) {
            self.state.flows[*slot as usize].of.own();
        }
    }

    /// Sets the traffic class of packets to a peer, except of messages with their own class ([`SendOptions`]).
    pub fn set_class(&mut self, peer: u32, class: u8) {
        if let Some(Some(known)) = self.state.peers.get_mut(peer as usize) {
            known.class = class;
        }
    }

    /// Sets the key by which a peer is called in place of the local one.
    pub fn set_peer_key(&mut self, peer: u32, key: Key) {
        sealing::set_peer_key(&mut self.state, peer, key);
    }

    /// Admits initiators that have proven their addresses; `number` returns a peer number of the datapath for each, if
    /// there is one.
    pub fn admit(&mut self, now: Time, number: &mut dyn FnMut(Source) -> Option<u32>) {
        peers::admit(&mut self.state, now, number);
    }

    /// Returns peer, label and address of a datagram that the datapath did not attribute to its peer.
    pub fn poll_confirmed(&mut self) -> Option<(u32, u32, SocketAddr)> {
        self.state.confirmed.pop()
    }

    /// Closes the connection to a peer; all messages to it under way are lost. The BYE acknowledges what has arrived.
    pub fn close(&mut self, peer: u32) {
        peers::leave(&mut self.state, peer, None);
    }

    /// Closes the connections to all peers ([`Endpoint::close`]).
    pub fn close_all(&mut self) {
        (0..self.state.peers.len() as u32).for_each(|peer| self.close(peer));
    }

    /// Handles a datagram that has arrived; `now` is the time of handling.
    pub fn handle(&mut self, now: Time, arrival: &Arrival<'_>) {
        self.handle_with_placement(now, arrival, &mut NoPlacement);
    }

    /// Handles a datagram with direct placement. An owner that has placed a message must not call [`Endpoint::handle`]
    /// afterwards.
    pub fn handle_with_placement(&mut self, now: Time, arrival: &Arrival<'_>, places: &mut dyn Placement) {
        receive::handle(&mut self.state, now, arrival, places);
    }

    /// Handles the outcome of a datagram to a peer, of which a reliable datapath returns the header: it has `arrived`, or
    /// never will. Others than data and probes have no effect.
    pub fn complete(&mut self, now: Time, peer: u32, label: u32, header: &[u8], arrived: bool) {
        if let Some(sent) = header::OfOurs::read(header) {
            receive::complete(&mut self.state, now, peer, label, &sent, arrived);
        }
    }

    /// Notes that a peer has written to memory of the owner.
    pub fn note_written(&mut self, now: Time, peer: u32) {
        if let Some(Some(known)) = self.state.peers.get_mut(peer as usize) {
            (known.awaiting_since, known.last_received_at, known.is_proven) = (None, now, true);
        }
    }

    /// The datapath has lost a peer for good.
    pub fn lose(&mut self, peer: u32) {
        peers::lose(&mut self.state, peer, CloseReason::Closed);
    }

    /// Returns the next datagram that may leave at `now`; its header is written into `out`, its payload is in the result.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        transmit::poll(&mut self.state, now, out)
    }

    /// Returns the next event, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.state.events.pop_front()?;
        if let Event::Received { peer, bytes, .. } = &event
            && let Some(Some(known)) = self.state.peers.get_mut(*peer as usize)
        {
            let bytes = bytes.len() as u64;
            let stored = Stored::new(bytes.min(known.stored.bytes), true);
            known.reserved = known.reserved.saturating_sub(bytes);
            known.stored.take(stored);
            self.state.hosts.release(known.host, stored);
        }
        Some(event)
    }

    /// Takes back the memory of a message ([`Event::Received`]) for reuse.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.state.spares.keep(bytes);
    }

    /// Returns the number of a peer that is gone, or never was one, once all packets to it have left: the datapath may
    /// reuse it. Poll until `None`, after all events have been taken.
    pub fn poll_released(&mut self) -> Option<u32> {
        if !self.state.control.is_empty() || !self.state.events.is_empty() {
            return None;
        }
        loop {
            let peer = self.state.released.pop_first()?;
            if self.state.peer(peer).is_none() {
                return Some(peer);
            }
        }
    }

    /// Returns the time of the next call of [`Endpoint::handle_timeout`] or [`Endpoint::poll_transmit`] that has an
    /// effect, unless something arrives.
    pub fn poll_timeout(&self) -> Option<Time> {
        let timer = self.state.timers.peek().map(|Reverse((at, _))| *at);
        [timer, self.next_send().map(|next| next.at)].into_iter().flatten().min()
    }

    /// Returns the time, possibly past, at which [`Endpoint::poll_transmit`] has a packet next, timers and arrivals aside.
    pub fn next_send(&self) -> Option<NextSend> {
        let free_at = self.state.pacer.free_at();
        let State { control, replies, fragments, nic, .. } = &self.state;
        if !control.is_empty() || !replies.is_empty() || !fragments.is_empty() || nic.ready() != 0 {
            return Some(NextSend { at: free_at, catches_up: true });
        }
        let held_until = self.state.nic.paced_until()?;
        Some(NextSend { at: held_until.max(free_at), catches_up: held_until <= free_at })
    }

    /// Returns `true` while a message that it sends is not acknowledged.
    pub fn is_sending(&self) -> bool {
        self.state.unacknowledged > 0
    }

    /// Returns `true` while a message of a peer is not complete, or its owner has not taken it.
    pub fn is_receiving(&self) -> bool {
        self.state.hosts.stored > 0
    }

    /// Handles the timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(&Reverse((at, timer))) = self.state.timers.peek()
            && at <= now
        {
            self.state.timers.pop();
            match timer {
                Timer::Peer { peer } => peers::peer_timer(&mut self.state, peer, at, now),
                Timer::Search { peer } => sizes::on_timer(&mut self.state, peer, at, now),
                Timer::Idle => peers::close_idle_peers(&mut self.state, now),
                Timer::Receiver { peer, stream } => receive::receiver_timer(&mut self.state, peer, stream, at, now),
                Timer::Stream { slot, peer, stream } => {
                    if self.state.slot(peer, stream) == Some(slot) {
                        self.stream_timer(slot, peer, at, now);
                    }
                }
            }
        }
    }

    fn stream_timer(&mut self, slot: u32, peer: u32, at: Time, now: Time) {
        let flow = &mut self.state.flows[slot as usize];
        if !flow.awaits(at) {
            return;
        }
        let transport = self.state.transports[peer as usize].as_ref().unwrap_or(&self.state.transport);
        let lost = flow
            .on_timer(transport, self.state.balancer.scheme_mut(), now, &mut |stream, psn| stream.note_timeout(psn));
        self.state.counters.timeouts += lost;
        flow.of.turn = flow.of.turn.wrapping_add(u32::from(lost > 0));
        if lost > 0
            && let Some(Some(known)) = self.state.peers.get_mut(peer as usize)
        {
            let since = *known.awaiting_since.get_or_insert(now);
            // More is lost than arrives: runs may be what the path drops.
            if self.state.flows[slot as usize].of.loses_most(lost) {
                known.single_until = now + sizes::SINGLE;
            }
            let is_silent = now.saturating_sub(since) > self.state.settings.peer_timeout;
            let flow = &mut self.state.flows[slot as usize];
            let (since, tag) = (*flow.of.stalled_since.get_or_insert(now), flow.last_tag.unwrap_or_default());
            let label = self.state.label(slot, tag);
            if !sizes::note_stall(&mut self.state, peer, since, label, is_silent, now) {
                return;
            }
        }
        transmit::send_probes(&mut self.state, slot, now);
        self.state.offer(slot, now);
        self.state.arm(slot, now);
    }
}
