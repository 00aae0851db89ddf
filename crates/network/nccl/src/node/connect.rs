//! Setup and teardown of connections.

use super::{
    MAX_CONNECTIONS, Node,
    parts::{
        Attempt, Channel, DeliveryCounters, Failure, Listener, Memory, Ours, Peer, Receiver, Sender, StickyError,
        Waiting, unknown,
    },
};
use crate::{
    abi::Code,
    handle::{Authentication, Handle},
    ids::Id,
    message::{Control, End, Refusal},
};
use anabranch_endpoint::Key;
use anabranch_wire::{Datapath, Label, PeerId};
use constant_time_eq::constant_time_eq;
use std::collections::VecDeque;

/// Maximum number of consecutive refusals of a peer: ranks have the keys of the listeners they connect to.
const MAX_REFUSALS: u32 = 64;
/// Far more than there are connections.
const MAX_NUMBER: u32 = 1 << 24;

/// State of an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connecting {
    /// Not yet connected: call again with this attempt.
    Wait(Id),
    /// Connected; this is the sender.
    Done(Id),
}

impl<D: Datapath, M: Memory> Node<D, M> {
    /// Creates a listener; returns it and the key of its handle. Control messages and ACKs to peers that connect have
    /// this traffic class; 0 leaves their class unchanged. Fails if there are too many listeners.
    pub fn listen(&mut self, class: u8) -> Result<(Id, u64), Failure> {
        let key = self.entropy.bits();
        let listener = Listener { key, class, waiting: VecDeque::new() };
        let id = self.listeners.insert(listener).ok_or_else(|| Failure::new(Code::System, "too many listeners"))?;
        Ok((id, key))
    }

    /// Connects to the listener of a handle, or continues an earlier attempt. The connection's messages have this
    /// traffic class. So have ACKs and control messages to that rank, unless the class is 0 or a later connection sets
    /// another one. A rank that is called for the first time is over these paths, each a list of labels; none: every label is
    /// a path. Fails if the listener cannot be reached, or its settings differ from those of this rank.
    pub fn connect(
        &mut self,
        handle: &Handle,
        attempt: Option<Id>,
        class: u8,
        paths: &[Vec<Label>],
    ) -> Result<Connecting, Failure> {
        let id = match self.known_attempt(handle, attempt) {
            Some(id) => id,
            None => self.begin(handle, class, paths)?,
        };
        self.work()?;
        let Some(attempt) = self.attempts.get_mut(id) else { return Err(unknown("an attempt")) };
        let result = match (attempt.error.check(), attempt.sender) {
            (Err(failure), None) => Err(failure),
            // The sender detects a peer that has gone meanwhile.
            (_, Some(sender)) => Ok(Connecting::Done(sender)),
            (Ok(()), None) => return Ok(Connecting::Wait(id)),
        };
        if let Some(attempt) = self.attempts.remove(id)
            && result.is_err()
        {
            self.ours.remove(&attempt.connection);
            if attempt.is_attached {
                self.disconnect(attempt.peer);
            }
        }
        result
    }

    /// Returns the attempt if it is one to connect to this listener; another one counts as none.
    fn known_attempt(&self, handle: &Handle, attempt: Option<Id>) -> Option<Id> {
        attempt.filter(|id| {
            self.attempts.get(*id).is_some_and(|attempt| (attempt.at, attempt.key) == (handle.at, handle.key))
        })
    }

    /// Returns `true` if [`Node::connect`] would call the rank of this listener for the first time. Fails if its settings
    /// differ from those of this rank.
    pub fn is_first_call(&mut self, handle: &Handle, attempt: Option<Id>) -> Result<bool, Failure> {
        if self.known_attempt(handle, attempt).is_some() {
            return Ok(false);
        }
        self.check_settings(handle)?;
        let datapath = self.driver.datapath();
        let is_it = |(peer, known): (&PeerId, &Peer)| known.is_called && datapath.peer_at(*peer) == Some(handle.at);
        Ok(!self.peers.iter().any(is_it))
    }

    fn check_settings(&mut self, handle: &Handle) -> Result<(), Failure> {
        self.broken.check()?;
        let ours = self.driver.endpoint().0.settings().mtu();
        if self.writes && u64::from(handle.payload) != ours {
            return Err(Failure::new(
                Code::Usage,
                format!(
                    "the rank at {} sends chunks of {} B and we of {ours} B: give both the same wire.chunk or ANABRANCH_RATE",
                    handle.at, handle.payload
                ),
            ));
        }
        if u64::from(handle.payload) != ours {
            return Err(Failure::new(
                Code::Usage,
                format!(
                    "the rank at {} sends packets of {} B and we of {ours} B: give both the same ANABRANCH_MTU",
                    handle.at, handle.payload
                ),
            ));
        }
        let is_keyed = self.driver.endpoint().0.settings().key.is_some();
        if is_keyed != (handle.authentication != Authentication::Off) {
            let [theirs, ours] = if is_keyed { ["does not", "does"] } else { ["does", "does not"] };
            let message = format!(
                "the rank at {} {theirs} authenticate packets and this one {ours}: give both the same ANABRANCH_AUTHENTICATE",
                handle.at
            );
            return Err(Failure::new(Code::Usage, message));
        }
        Ok(())
    }

    fn begin(&mut self, handle: &Handle, class: u8, paths: &[Vec<Label>]) -> Result<Id, Failure> {
        self.check_settings(handle)?;
        if self.senders.len() + self.attempts.len() >= MAX_CONNECTIONS {
            return Err(Failure::new(Code::System, format!("there are {MAX_CONNECTIONS} connections already")));
        }
        let datapath = self.driver.datapath();
        let peer = datapath
            .peer_in_planes(&handle.planes())
            .map_err(|error| Failure::new(Code::System, format!("{}: {error}", handle.at)))?;
        let (endpoint, now) = self.driver.endpoint();
        endpoint.connect_over(now, peer, paths);
        if let Authentication::Job(secret) = &handle.authentication {
            endpoint.set_peer_key(peer, Key::of(secret));
        }
        if class > 0 {
            endpoint.set_class(peer, class);
        }
        // Numbers wrap at the 24 bits of a steering word, and long-lived connections keep theirs.
        let connection = loop {
            let number = self.next_connection & (MAX_NUMBER - 1);
            self.next_connection = number + 1;
            if !self.ours.contains_key(&number) {
                break number;
            }
        };
        let attempt = Attempt {
            peer,
            at: handle.at,
            connection,
            key: handle.key,
            class,
            sender: None,
            error: StickyError::default(),
            is_attached: true,
        };
        let id = self.attempts.insert(attempt).ok_or_else(|| Failure::new(Code::System, "too many attempts"))?;
        self.ours.insert(connection, Ours::Attempt(id));
        let now = self.driver.datapath().now();
        let known = self.peers.entry(peer).or_default();
        known.connections += 1;
        known.is_called = true;
        known.heard_at = now;
        self.say(peer, &Control::Connect { connection, key: handle.key });
        Ok(id)
    }

    /// Accepts a connection to a listener, if one waits; fails if there is no such listener.
    pub fn accept(&mut self, listener: Id) -> Result<Option<Id>, Failure> {
        self.work()?;
        let of = self.listeners.get_mut(listener).ok_or_else(|| unknown("a listener"))?;
        let Some(Waiting { peer, connection, error }) = of.waiting.pop_front() else { return Ok(None) };
        let is_open = error.is_clear();
        let receiver = {
            let (waiting, open, first) = (VecDeque::new(), Vec::new(), self.first);
            Receiver { peer, connection, waiting, completed: first, granted: first, open, error }
        };
        let id = self.receivers.insert(receiver).ok_or_else(|| Failure::new(Code::System, "too many receivers"))?;
        if is_open {
            self.theirs.insert((peer, connection), id);
        }
        Ok(Some(id))
    }

    /// Handles a peer's request to connect; returns `false` if the peer has sent too many invalid keys.
    pub(super) fn on_connect(&mut self, peer: PeerId, connection: u32, key: u64) -> bool {
        let waiting: usize = self.listeners.iter().map(|(_, listener)| listener.waiting.len()).sum();
        let full = self.receivers.len() + waiting >= MAX_CONNECTIONS;
        // Constant time: the duration reveals nothing about a key.
        let mut listener = None;
        for (id, candidate) in self.listeners.iter_mut() {
            if constant_time_eq(&candidate.key.to_be_bytes(), &key.to_be_bytes()) {
                listener = Some((id, candidate));
            }
        }
        let refused = &mut self.peers.entry(peer).or_default().refused;
        *refused = if listener.is_some() { 0 } else { *refused + 1 };
        if *refused > MAX_REFUSALS {
            return false;
        }
        let respond = match listener {
            Some((_, listener)) if !full => {
                listener.waiting.push_back(Waiting { peer, connection, error: StickyError::default() });
                if listener.class > 0 {
                    self.driver.endpoint().0.set_class(peer, listener.class);
                }
                self.peers.entry(peer).or_default().connections += 1;
                Control::Connected { connection }
            }
            Some(_) => Control::Refused { connection, reason: Refusal::TooMany },
            None => Control::Refused { connection, reason: Refusal::NoListener },
        };
        self.say(peer, &respond);
        true
    }

    fn attempt(&mut self, peer: PeerId, connection: u32) -> Option<&mut Attempt> {
        let Some(Ours::Attempt(id)) = self.ours.get(&connection).copied() else { return None };
        self.attempts.get_mut(id).filter(|attempt| attempt.peer == peer)
    }

    pub(super) fn on_connected(&mut self, peer: PeerId, connection: u32) -> bool {
        // An attempt that was dropped meanwhile is no error of the peer.
        let Some((at, class)) = self.attempt(peer, connection).map(|attempt| (attempt.at, attempt.class)) else {
            return true;
        };
        let Some(known) = self.peers.get_mut(&peer) else { return false };
        // A stream that an earlier connection has freed keeps its window and its paths.
        let free = known.streams.iter().position(|channel| !channel.used && channel.flying.is_empty());
        let channel = free.unwrap_or_else(|| {
            known.streams.push(Channel::default());
            known.streams.len() - 1
        });
        known.streams[channel].used = true;
        if self.writes {
            self.driver.datapath().revoke(peer, channel as u32 + 1, false);
        }
        let sender = Sender {
            peer,
            at,
            connection,
            class,
            channel,
            grants: VecDeque::new(),
            next: self.first,
            queue: VecDeque::new(),
            open: Vec::new(),
            flying: 0,
            counters: DeliveryCounters::default(),
            error: StickyError::default(),
            is_attached: true,
        };
        // Their number is bounded by that of attempts.
        let Some(id) = self.senders.insert(sender) else { return false };
        if let Some(attempt) = self.attempt(peer, connection) {
            (attempt.sender, attempt.is_attached) = (Some(id), false);
        }
        self.ours.insert(connection, Ours::Sender(id));
        true
    }

    pub(super) fn on_refused(&mut self, peer: PeerId, connection: u32, reason: Refusal) {
        let name = self.named(peer);
        if let Some(attempt) = self.attempt(peer, connection) {
            let reason = match reason {
                Refusal::NoListener => "does not listen any more",
                Refusal::TooMany => "has too many connections",
            };
            attempt.error.record(&Failure::new(Code::Remote, format!("{name} {reason}")));
        }
    }

    fn disconnect(&mut self, peer: PeerId) {
        if let Some(known) = self.peers.get_mut(&peer) {
            known.connections = known.connections.saturating_sub(1);
        }
    }

    /// Closes a listener, and notifies the peers that wait there; fails if there is no such listener.
    pub fn close_listener(&mut self, id: Id) -> Result<(), Failure> {
        let listener = self.listeners.remove(id).ok_or_else(|| unknown("a listener"))?;
        for Waiting { peer, connection, error } in listener.waiting {
            if error.is_clear() {
                self.say(peer, &Control::Close { connection, end: End::Receiver, completed: 0 });
                self.disconnect(peer);
            }
        }
        // Sends the final messages at once; failures no longer matter.
        let _ = self.work();
        Ok(())
    }

    /// Closes a sender; messages reported as complete have arrived. Fails if there is no such sender.
    pub fn close_sender(&mut self, id: Id) -> Result<(), Failure> {
        let sender = self.senders.remove(id).ok_or_else(|| unknown("a sender"))?;
        // Bytes in flight are in NCCL's memory: take them back before NCCL reuses it.
        if sender.is_attached {
            self.take_back(sender.peer, sender.channel, sender.flying > 0);
        }
        for request in sender.open {
            self.requests.remove(request);
        }
        self.ours.remove(&sender.connection);
        self.busy.remove(&id);
        if let Some(known) = self.peers.get_mut(&sender.peer)
            && let Some(channel) = known.streams.get_mut(sender.channel)
            && sender.is_attached
        {
            channel.used = false;
            self.disconnect(sender.peer);
            let connection = sender.connection;
            self.say(sender.peer, &Control::Close { connection, end: End::Sender, completed: 0 });
        }
        let _ = self.work();
        Ok(())
    }

    /// Closes a receiver, and notifies the sender of the number of complete receives; fails if there is no such receiver.
    pub fn close_receiver(&mut self, id: Id) -> Result<(), Failure> {
        let receiver = self.receivers.remove(id).ok_or_else(|| unknown("a receiver"))?;
        for request in &receiver.open {
            self.requests.remove(*request);
        }
        let Receiver { peer, connection, completed, open, .. } = receiver;
        if let Some(known) = self.peers.get_mut(&peer).filter(|_| self.writes) {
            known.windows.forget(&open);
        }
        if self.theirs.remove(&(peer, connection)).is_some() {
            self.disconnect(peer);
            self.say(peer, &Control::Close { connection, end: End::Receiver, completed });
        }
        let _ = self.work();
        Ok(())
    }

    pub(super) fn on_sender_closed(&mut self, peer: PeerId, connection: u32) {
        let failure = Failure::new(Code::Remote, format!("{} has closed the connection", self.named(peer)));
        if let Some(id) = self.theirs.remove(&(peer, connection))
            && let Some(receiver) = self.receivers.get_mut(id)
        {
            receiver.error.record(&failure);
            return self.disconnect(peer);
        }
        let is_it = |waiting: &&mut Waiting| (waiting.peer, waiting.connection) == (peer, connection);
        let mut all = self.listeners.iter_mut().flat_map(|(_, listener)| listener.waiting.iter_mut());
        let found = all.find(is_it).map(|waiting| waiting.error.record(&failure)).is_some();
        drop(all);
        if found {
            self.disconnect(peer);
        }
    }

    pub(super) fn on_receiver_closed(&mut self, peer: PeerId, connection: u32, completed: u32) {
        let failure = Failure::new(Code::Remote, format!("{} has closed the connection", self.named(peer)));
        let Some(Ours::Sender(id)) = self.ours.get(&connection).copied() else { return };
        let Some(sender) = self.senders.get_mut(id).filter(|sender| sender.peer == peer) else { return };
        sender.error.record(&failure);
        sender.is_attached = false;
        sender.queue.clear();
        let (channel, open) = (sender.channel, sender.open.clone());
        for request in open {
            self.complete_send(request, completed);
        }
        if let Some(channel) = self.peers.get_mut(&peer).and_then(|known| known.streams.get_mut(channel)) {
            channel.used = false;
        }
        self.disconnect(peer);
    }
}
