//! Communicators of a device: connections between listeners and senders, grants, pieces of messages, over one endpoint.
//! A node has no thread and no clock of its own, so that tests run two of them in memory. [`Node::work`] processes
//! queued requests and never waits.

mod connect;
mod parts;
mod placing;
mod transfer;
mod windows;

pub use connect::Connecting;
pub use parts::{Buffer, DeliveryCounters, Done, Failure, Memory, Watched};

use crate::{
    abi::Code,
    ids::{Id, Slots},
    log::{self, Level},
    message::{Control, End, PIECE_HEADER},
};
use anabranch_endpoint::{CloseReason, Entropy, Event, SchemeState, SendError, header::Protection};
use anabranch_lb::registry::HostParameters;
use anabranch_units::Time;
use anabranch_wire::{
    Datapath, Driver, PeerId, Region, WireError,
    transfer::{ECN_TEXT, fragments_text, path_here_text, path_text, silent_text},
};
use parts::{Attempt, Listener, Ours, Peer, Receiver, Request, Sender, StickyError};
use placing::Places;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

/// Maximum number of rounds of `work` before it leaves the rest to the next call.
const MAX_ROUNDS: usize = 16;
/// Variable of the size of packets.
const PAYLOAD: &str = "ANABRANCH_MTU";
/// A connected peer receives a ping after this time without control messages, so that a peer that is gone is detected.
const PING_INTERVAL: Time = Time::from_us(1_000_000);
/// Interval of the check which peers need a ping.
const LIVENESS_INTERVAL: Time = Time::from_us(100_000);
/// Bytes of a piece with its header: small enough for a processor's own cache during copy, checksum and send.
const USUAL_PIECE: u64 = 64 << 10;
/// Maximum bytes of control messages in one message of stream 0 over queue pairs, whose receives have space for no more.
pub(crate) const MAX_CONTROL: u64 = 4096;
/// Maximum number of connections of a node, per direction.
pub const MAX_CONNECTIONS: usize = 65_536;

/// The communicators of a device.
#[derive(Debug)]
pub struct Node<D, M> {
    driver: Driver<D>,
    entropy: Entropy,
    peer_timeout: Time,
    max_held: u64,
    /// Bytes of a piece, which with its header fills whole packets, and of a packet's payload.
    piece: u64,
    mtu: u64,
    /// The datapath writes messages to memory of their receiver; a piece is a chunk.
    writes: bool,
    regions: Slots<Region>,
    /// Chunks that peers have written: peer, notice, bytes.
    written: Vec<(PeerId, u32, u64)>,
    peers: BTreeMap<PeerId, Peer>,
    listeners: Slots<Listener>,
    attempts: Slots<Attempt>,
    senders: Slots<Sender>,
    receivers: Slots<Receiver>,
    requests: Slots<Request<M>>,
    /// Connections that this node sends over, by number.
    ours: BTreeMap<u32, Ours>,
    /// Connections that this node receives from, by peer and number.
    theirs: BTreeMap<(PeerId, u32), Id>,
    next_connection: u32,
    first: u32,
    /// Peers with unsent control messages, and senders with unsent pieces.
    with_unsent: BTreeSet<PeerId>,
    busy: BTreeSet<Id>,
    last_work_at: Time,
    /// Time of the next work after the last.
    next_work: Option<Time>,
    checked_at: Time,
    /// Failure of the datapath, which is permanent.
    broken: StickyError,
}

fn name_of(at: Option<SocketAddr>) -> String {
    at.map_or_else(|| "the other rank".into(), |at| format!("the rank at {at}"))
}

impl<D: Datapath, M: Memory> Node<D, M> {
    /// Creates a node on an endpoint without peers.
    pub fn new(mut driver: Driver<D>) -> Self {
        driver.endpoint().0.watch_paths();
        let settings = driver.endpoint().0.settings();
        let (entropy, peer_timeout) = (Entropy::new(&settings.secret, "anabranch listeners"), settings.peer_timeout);
        let (max_held, mtu, writes) = (settings.max_held, settings.mtu(), settings.is_reliable);
        let piece = if writes { mtu } else { (USUAL_PIECE / mtu).max(1) * mtu - PIECE_HEADER as u64 };
        Node {
            driver,
            entropy,
            peer_timeout,
            // An eighth is reserved for control messages on stream 0.
            max_held: max_held - max_held / 8,
            piece,
            mtu: if writes { MAX_CONTROL } else { mtu },
            writes,
            regions: Slots::default(),
            written: Vec::new(),
            peers: BTreeMap::new(),
            listeners: Slots::default(),
            attempts: Slots::default(),
            senders: Slots::default(),
            receivers: Slots::default(),
            requests: Slots::default(),
            ours: BTreeMap::new(),
            theirs: BTreeMap::new(),
            next_connection: 0,
            first: 0,
            with_unsent: BTreeSet::new(),
            busy: BTreeSet::new(),
            last_work_at: Time::ZERO,
            next_work: None,
            checked_at: Time::ZERO,
            broken: StickyError::default(),
        }
    }

    /// Returns the driver that carries its packets.
    pub fn driver(&mut self) -> &mut Driver<D> {
        &mut self.driver
    }

    /// Returns the number of listeners and open connections.
    pub fn communicators(&self) -> usize {
        self.listeners.len() + self.senders.len() + self.receivers.len()
    }

    /// Returns `true` if there is a communicator or an attempt that has not failed.
    pub fn is_used(&self) -> bool {
        self.communicators() > 0 || self.attempts.iter().any(|(_, attempt)| attempt.error.is_clear())
    }

    /// Begins connections and receives with these numbers, at both ranks, for tests of numbers that others reach in hours.
    #[doc(hidden)]
    pub fn begin_numbers_at(&mut self, connection: u32, receive: u32) {
        (self.next_connection, self.first) = (connection, receive);
    }

    /// Returns the number of requests that have not been reported as done.
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Returns the state of all senders, in the order of their connection numbers.
    pub fn watched(&mut self) -> Vec<Watched> {
        let now = self.driver.datapath().now();
        let mut all: Vec<Watched> = Vec::with_capacity(self.senders.len());
        for (_, sender) in self.senders.iter() {
            let (stream, is_open) = (sender.channel as u32 + 1, sender.error.is_clear());
            let of = is_open.then(|| self.driver.endpoint().0.watched(now, sender.peer, stream)).flatten();
            let (window, paths) = of.map_or((None, Vec::new()), |(window, paths)| (window, paths.collect()));
            let is_fragmented = is_open && self.driver.endpoint().0.fragmented(sender.peer).is_some();
            all.push(Watched { connection: sender.connection, at: sender.at, is_open, is_fragmented, window, paths });
        }
        all.sort_by_key(|of| of.connection);
        all
    }

    /// Returns the state of the scheme for a connection that sends; `None` if it is not open, or has sent nothing.
    pub fn scheme_state(&mut self, connection: u32) -> Option<SchemeState> {
        let now = self.driver.datapath().now();
        let (_, sender) = self.senders.iter().find(|(_, sender)| sender.connection == connection)?;
        self.driver.endpoint().0.scheme_state(now, sender.peer, sender.channel as u32 + 1)
    }

    /// Replaces the scheme or its parameters; path state of schemes is reset.
    pub fn change_scheme(&mut self, scheme: HostParameters) {
        let (endpoint, now) = self.driver.endpoint();
        endpoint.change_scheme(now, scheme);
    }

    /// Spreads the chunks of a connection over labels by these weights; `None`: there is no such connection, or its peer has sent
    /// no reply yet, `Some(false)`: its scheme decides alone.
    pub fn steer(&mut self, connection: u32, weights: &[f32]) -> Option<bool> {
        let of = |sender: &Sender| (sender.peer, sender.channel as u32 + 1);
        let open = self.senders.iter().find(|(_, sender)| sender.connection == connection && sender.error.is_clear());
        let (peer, stream) = open.map(|(_, sender)| of(sender))?;
        self.driver.endpoint().0.steer(peer, stream, weights)
    }

    /// Returns `true` if all messages have been sent and acknowledged.
    pub fn is_idle(&mut self) -> bool {
        self.with_unsent.is_empty() && self.driver.endpoint().0.is_idle()
    }

    /// Closes all peers.
    pub fn leave(&mut self) {
        for peer in std::mem::take(&mut self.peers).into_keys() {
            self.driver.endpoint().0.close(peer);
        }
        // A peer that does not receive the notice detects it by its timeout.
        let _ = self.driver.finish();
    }

    /// Returns the time of the next work as the last work found it; `None`: never.
    pub fn next_work(&self) -> Option<Time> {
        self.next_work
    }

    /// Returns the time since the last work, by the datapath's clock.
    pub fn idle_for(&mut self) -> Time {
        self.driver.datapath().now().saturating_sub(self.last_work_at)
    }

    /// Sends and receives all that is possible now. Returns the time of the next work, unless packets arrive earlier;
    /// `None`: never. Fails if the datapath has failed permanently.
    pub fn work(&mut self) -> Result<Option<Time>, Failure> {
        self.rounds(false)
    }

    /// Receives packets, and leaves ACKs to the next call.
    fn hear(&mut self) -> Result<(), Failure> {
        self.broken.check()?;
        let Node { driver, theirs, receivers, requests, piece, written, .. } = self;
        let heard = driver.receive_with_placement(&mut Places { theirs, receivers, requests, piece: *piece, written });
        heard.map_err(|error| self.breaks(&error))?;
        self.events();
        Ok(())
    }

    fn events(&mut self) {
        // What a peer has written precedes its messages.
        let mut written = std::mem::take(&mut self.written);
        let now = self.driver.datapath().now();
        for (peer, notice, bytes) in written.drain(..) {
            if let Some(known) = self.peers.get_mut(&peer) {
                known.heard_at = now;
            }
            if !self.on_written(peer, notice, bytes) {
                self.gives_up(peer);
            }
        }
        self.written = written;
        while let Some(event) = self.driver.endpoint().0.poll_event() {
            self.on_event(event);
        }
    }

    /// With `sends_first` it sends queued requests before it polls for received packets.
    fn rounds(&mut self, mut sends_first: bool) -> Result<Option<Time>, Failure> {
        self.broken.check()?;
        // New requests are sent with the first poll.
        let now = self.driver.datapath().now();
        self.flush(now);
        for _ in 0..MAX_ROUNDS {
            let Node { driver, theirs, receivers, requests, piece, written, .. } = self;
            let mut places = Places { theirs, receivers, requests, piece: *piece, written };
            let result = driver.work_with_placement(&mut places, std::mem::take(&mut sends_first));
            let next = result.map_err(|error| self.breaks(&error))?;
            self.events();
            let now = self.driver.datapath().now();
            self.ping(now);
            if !self.flush(now) && next.is_none_or(|next| next > now) {
                self.last_work_at = now;
                let ping = (!self.peers.is_empty()).then_some(now + LIVENESS_INTERVAL);
                self.next_work = [next, ping].into_iter().flatten().min();
                return Ok(self.next_work);
            }
        }
        self.last_work_at = self.driver.datapath().now();
        self.next_work = Some(self.last_work_at);
        Ok(self.next_work)
    }

    fn breaks(&mut self, error: &WireError) -> Failure {
        let failure = Failure::new(Code::System, error.to_string());
        self.broken.record(&failure);
        failure
    }

    /// Queues a control message for a peer's stream 0.
    fn say(&mut self, peer: PeerId, control: &Control) {
        if let Some(known) = self.peers.get_mut(&peer) {
            known.unsent.push_back(control.write());
            self.with_unsent.insert(peer);
        }
    }

    /// Passes queued control messages and pieces to the endpoint; returns `true` if it accepted any.
    fn flush(&mut self, now: Time) -> bool {
        let mut some = false;
        for peer in std::mem::take(&mut self.with_unsent) {
            let Some(known) = self.peers.get_mut(&peer) else { continue };
            while !known.unsent.is_empty() {
                // One message of the stream holds as many as fit into a packet.
                let mut bytes: Vec<u8> = Vec::new();
                let fits = |all: &mut usize, next: &Vec<u8>| {
                    *all += next.len();
                    Some(*all).filter(|all| *all as u64 <= self.mtu || *all == next.len())
                };
                let count = known.unsent.iter().scan(0, fits).count();
                known.unsent.iter().take(count).for_each(|one| bytes.extend_from_slice(one));
                match self.driver.endpoint().0.send(now, peer, 0, bytes.into()) {
                    Ok(_) => {
                        some = true;
                        known.last_sent_at = now;
                        known.unsent.drain(..count);
                    }
                    Err(SendError::Full) => {
                        self.with_unsent.insert(peer);
                        break;
                    }
                    // The loss of the peer is among the events.
                    Err(SendError::NoPeer | SendError::TooLarge(_)) => known.unsent.clear(),
                }
            }
        }
        for sender in std::mem::take(&mut self.busy) {
            some |= self.send_pieces(sender, now);
        }
        some
    }

    /// Sends a ping to every connected peer that is due, so that a timeout indicates a gone peer.
    fn ping(&mut self, now: Time) {
        if now.saturating_sub(self.checked_at) < LIVENESS_INTERVAL {
            return;
        }
        self.checked_at = now;
        if self.writes {
            self.check_silence(now);
        }
        let due = |known: &Peer| {
            known.connections > 0 && known.unsent.is_empty() && now.saturating_sub(known.last_sent_at) >= PING_INTERVAL
        };
        let due: Vec<PeerId> = self.peers.iter().filter(|(_, known)| due(known)).map(|(peer, _)| *peer).collect();
        for peer in due {
            self.say(peer, &Control::Ping);
        }
    }

    /// Hardware acknowledges for a suspended process, but sends no ping for it.
    fn check_silence(&mut self, now: Time) {
        let limit = self.peer_timeout.saturating_mul(2);
        let is_silent = |known: &Peer| known.connections > 0 && now.saturating_sub(known.heard_at) > limit;
        let silent: Vec<PeerId> =
            self.peers.iter().filter(|(_, known)| is_silent(known)).map(|(peer, _)| *peer).collect();
        for peer in silent {
            self.driver.endpoint().0.close(peer);
            self.lost(peer, CloseReason::TimedOut);
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Open { .. } => {}
            Event::Silent { peer, labels } => {
                let text = silent_text(&labels, self.driver.datapath().labels_at(peer));
                log::say(Level::Warn, &format!("{}: {text}", self.named(peer)));
            }
            Event::Sent { peer, stream, message, delivered } => {
                if stream > 0 {
                    self.acknowledged(peer, stream as usize - 1, message, &delivered);
                }
            }
            Event::Lost { peer, reason } => self.lost(peer, reason),
            Event::Refused { peer, from, reason } => {
                let at = from.or_else(|| self.driver.datapath().peer_at(peer?));
                let message = self.close_reason_text(&name_of(at), reason);
                log::say(Level::Warn, &format!("refused: {message}"));
            }
            Event::EcnDropped { peer } => {
                log::say(Level::Warn, &format!("{} {ECN_TEXT}", self.named(peer)));
            }
            Event::Fragmented { peer, sizes } => {
                let text = fragments_text(sizes, PAYLOAD);
                log::say(Level::Warn, &format!("packets to {} are sent in fragments: {text}", self.named(peer)));
            }
            Event::Received { peer, stream, bytes, placed, .. } => {
                let now = self.driver.datapath().now();
                self.peers.entry(peer).or_default().heard_at = now;
                let understood = match stream {
                    0 => Control::read(&bytes)
                        .is_some_and(|controls| controls.into_iter().all(|control| self.on_control(peer, control))),
                    _ => !self.writes && self.on_piece(peer, &bytes, placed),
                };
                if !understood {
                    self.gives_up(peer);
                }
            }
        }
    }

    /// Handles a control message of a peer; returns `false` if it is invalid.
    fn on_control(&mut self, peer: PeerId, control: Control) -> bool {
        match control {
            Control::Connect { connection, key } => return self.on_connect(peer, connection, key),
            Control::Connected { connection } => return self.on_connected(peer, connection),
            Control::Refused { connection, reason } => self.on_refused(peer, connection, reason),
            Control::Grant { connection, number, entries } => return self.on_grant(peer, connection, number, &entries),
            Control::WrongSize { connection, number, size } => self.on_wrong_size(peer, connection, number, size),
            Control::Close { connection, end: End::Sender, .. } => self.on_sender_closed(peer, connection),
            Control::Close { connection, end: End::Receiver, completed } => {
                self.on_receiver_closed(peer, connection, completed);
            }
            Control::Ping => {}
        }
        true
    }

    fn named(&mut self, peer: PeerId) -> String {
        let at = self.driver.datapath().peer_at(peer);
        name_of(at)
    }

    fn close_reason_text(&self, name: &str, reason: CloseReason) -> String {
        let us = self.peer_timeout.ps() / 1_000_000;
        match reason {
            CloseReason::TimedOut => format!("{name} timed out after {} s", us as f64 / 1e6),
            CloseReason::Idle => format!("{name} was idle for too long"),
            CloseReason::Closed => format!("{name} has disconnected"),
            CloseReason::Restarted => format!("{name} has restarted"),
            CloseReason::Evicted => format!("{name} was evicted: other ranks needed its slot or memory"),
            CloseReason::Version { theirs, ours } => {
                format!(
                    "{name} uses version {theirs} of the wire format, this rank version {ours}: install the same release for both"
                )
            }
            CloseReason::Key { theirs: Protection::Off, .. } => {
                format!("{name} has no key and this rank has one: give both the same ANABRANCH_AUTHENTICATE")
            }
            CloseReason::Key { ours: Protection::Off, .. } => {
                format!("{name} has a key and this rank has none: give both the same ANABRANCH_AUTHENTICATE")
            }
            CloseReason::Key { .. } => format!("{name} has another key than this rank: give both the same wire.key"),
            CloseReason::Mtu { theirs, ours } => {
                format!("{name} has packets of {theirs} B, this rank {ours} B: give both the same ANABRANCH_MTU")
            }
            CloseReason::Planes { theirs, ours } => {
                format!("{name} has {theirs} planes, this rank {ours}: give both the same ANABRANCH_PLANES")
            }
            CloseReason::Stalled(sizes) => {
                format!("{name} acknowledged no data for {} s. {}", us as f64 / 1e6, path_text(sizes, PAYLOAD))
            }
            CloseReason::Unreceived(sizes) => {
                let path = path_here_text(sizes, PAYLOAD);
                format!(
                    "{name} has disconnected: it received no acknowledgement from this rank for its timeout. {path}"
                )
            }
        }
    }

    fn lost(&mut self, peer: PeerId, reason: CloseReason) {
        let name = self.named(peer);
        let mut message = self.close_reason_text(&name, reason);
        if let (CloseReason::TimedOut | CloseReason::Stalled(_), Some((_, refused))) =
            (reason, self.driver.datapath().refusals(peer))
        {
            message += &format!("; {refused}");
        }
        let code = match reason {
            CloseReason::Mtu { .. }
            | CloseReason::Planes { .. }
            | CloseReason::Version { .. }
            | CloseReason::Key { .. } => Code::Usage,
            _ => Code::Remote,
        };
        self.fails(peer, &Failure::new(code, message));
    }

    /// Closes a peer that has sent an invalid message.
    fn gives_up(&mut self, peer: PeerId) {
        let name = self.named(peer);
        self.driver.endpoint().0.close(peer);
        self.fails(
            peer,
            &Failure::new(Code::Remote, format!("{name} sent a message that no version of this plugin sends")),
        );
    }

    /// Fails all connections and attempts of a peer.
    fn fails(&mut self, peer: PeerId, failure: &Failure) {
        // Callers that receive the failure may free their memory.
        self.driver.own_unsent();
        if self.writes {
            self.driver.datapath().cut(peer);
        }
        self.peers.remove(&peer);
        self.with_unsent.remove(&peer);
        let record = |error: &mut StickyError| error.record(failure);
        for (_, sender) in self.senders.iter_mut().filter(|(_, sender)| sender.is_attached && sender.peer == peer) {
            sender.is_attached = false;
            record(&mut sender.error);
        }
        for (_, attempt) in self.attempts.iter_mut().filter(|(_, of)| of.is_attached && of.peer == peer) {
            attempt.is_attached = false;
            record(&mut attempt.error);
        }
        let attached = &self.theirs;
        let is_attached = |of: &Receiver| of.peer == peer && attached.contains_key(&(peer, of.connection));
        self.receivers.iter_mut().filter(|(_, of)| is_attached(of)).for_each(|(_, of)| record(&mut of.error));
        for (_, listener) in self.listeners.iter_mut() {
            listener.waiting.iter_mut().filter(|waiting| waiting.peer == peer).for_each(|w| record(&mut w.error));
        }
        self.theirs.retain(|(of, _), _| *of != peer);
    }
}
