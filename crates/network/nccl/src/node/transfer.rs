//! Messages: granted by the receiver, cut into pieces by the sender, reassembled in the receiver's own buffers.

use super::{
    Node,
    parts::{Buffer, DeliveryCounters, Done, Failure, Grant, Memory, Ours, Part, Request, unknown},
    placing::Steering,
    windows::{Granted, MAX_CHUNKS, chunk_of, notice, read_notice},
};
use crate::{
    abi::{Code, MAX_RECEIVES, MAX_REQUESTS},
    ids::Id,
    message::{Control, PIECE_HEADER, PieceHeader, PostedBuffer, Window},
};
use anabranch_endpoint::{Bytes, Delivered, Placed, SendError, SendOptions, Write};
use anabranch_units::Time;
use anabranch_wire::{Datapath, PeerId, Region};

/// Maximum bytes of a connection's pieces in the endpoint: enough for the bytes in flight in a network, not for whole messages.
const MAX_FLYING: u64 = 4 << 20;
/// Minimum time between two rounds of work for a waiting request; earlier polls return at once.
const RESTS: Time = Time::from_us(1);

/// Grants are sent at once while the sender has fewer than this; otherwise when this many are pending, in one packet.
const GRANT_BATCH: u32 = 4;

impl<D: Datapath, M: Memory> Node<D, M> {
    /// Sends a message; `None`: the receiver has not yet posted a buffer for this tag, call again.
    ///
    /// Errors: the connection has failed, the message is larger than its buffer, or too many requests are open.
    pub fn send(&mut self, id: Id, memory: M, size: u64, tag: i32) -> Result<Option<Id>, Failure> {
        let sender = self.senders.get_mut(id).ok_or_else(|| unknown("a sender"))?;
        sender.error.check()?;
        if sender.open.len() >= MAX_REQUESTS * MAX_RECEIVES {
            return Err(Failure::internal(format!("more than {} sends at once", MAX_REQUESTS * MAX_RECEIVES)));
        }
        self.check_registered(&memory, size)?;
        let Some(sender) = self.senders.get_mut(id) else { return Err(unknown("a sender")) };
        let mut capacity = sender.take(tag);
        if capacity.is_none() && self.idle_for() >= RESTS {
            self.work()?;
            capacity = self.senders.get_mut(id).and_then(|sender| sender.take(tag));
        }
        let sender = self.senders.get_mut(id).ok_or_else(|| unknown("a sender"))?;
        let Some((number, index, posted)) = capacity else { return sender.error.check().map(|()| None) };
        let (capacity, window) = (posted.size, posted.window);
        if size > capacity {
            let message = format!("a message of {size} B (tag {tag}) was sent to a receive of {capacity} B");
            sender.error.record(&Failure::new(Code::Usage, ""));
            let (peer, connection) = (sender.peer, sender.connection);
            self.say(peer, &Control::WrongSize { connection, number, size });
            self.work()?;
            return Err(Failure::new(Code::Usage, message));
        }
        if self.writes && size.div_ceil(self.piece) > MAX_CHUNKS {
            return Err(Failure::internal(format!("{size} B are more than {MAX_CHUNKS} chunks (wire.chunk)")));
        }
        let (sent, chunks, flying, all_sent, counters) = (0, 0, 0, false, DeliveryCounters::default());
        let request =
            Request::Send { sender: id, memory, number, index, window, chunks, size, sent, flying, all_sent, counters };
        let request = self.requests.insert(request).ok_or_else(|| Failure::internal("too many requests"))?;
        if let Some(sender) = self.senders.get_mut(id) {
            sender.open.push(request);
            sender.queue.push_back(request);
        }
        self.busy.insert(id);
        self.rounds(true)?;
        Ok(Some(request))
    }

    /// Posts buffers for messages; fails if the connection has failed, or too many requests are open.
    pub fn receive(&mut self, id: Id, buffers: Vec<Buffer<M>>) -> Result<Id, Failure> {
        let receiver = self.receivers.get_mut(id).ok_or_else(|| unknown("a receiver"))?;
        receiver.error.check()?;
        if buffers.is_empty() || buffers.len() > MAX_RECEIVES {
            let count = buffers.len();
            return Err(Failure::internal(format!("a receive of {count} buffers, allowed are 1 to {MAX_RECEIVES}")));
        }
        if receiver.open.len() >= MAX_REQUESTS {
            return Err(Failure::internal(format!("more than {MAX_REQUESTS} receives at once")));
        }
        let left = buffers.len();
        for buffer in &buffers {
            self.check_registered(&buffer.memory, buffer.size)?;
        }
        let parts = buffers.into_iter().map(|buffer| Part { buffer, size: None, received: 0 }).collect();
        let request = self
            .requests
            .insert(Request::Receive { receiver: id, parts, left })
            .ok_or_else(|| Failure::internal("too many requests"))?;
        let Some(receiver) = self.receivers.get_mut(id) else { return Err(unknown("a receiver")) };
        receiver.waiting.push_back(request);
        receiver.open.push(request);
        self.grant(id);
        self.rounds(true)?;
        Ok(request)
    }

    /// Sends grants if the sender has few left or several are pending.
    pub(super) fn grant(&mut self, id: Id) {
        let Some(receiver) = self.receivers.get_mut(id) else { return };
        let known = receiver.granted.wrapping_sub(receiver.completed);
        let unknown = receiver.waiting.len() as u32 - known;
        if unknown == 0 || known >= GRANT_BATCH && unknown < GRANT_BATCH {
            return;
        }
        let (peer, connection, first) = (receiver.peer, receiver.connection, receiver.granted);
        let requests: Vec<Id> = receiver.waiting.iter().skip(known as usize).copied().collect();
        let mut number = first;
        for request in requests {
            let Some(Request::Receive { parts, .. }) = self.requests.get_mut(request) else { continue };
            let mut entries: Vec<PostedBuffer> = parts
                .iter()
                .map(|of| PostedBuffer { size: of.buffer.size, tag: of.buffer.tag, window: None })
                .collect();
            if self.writes && !self.open_windows(peer, request, &mut entries) {
                let failure = Failure::internal("the rank has too many buffers of this one");
                if let Some(receiver) = self.receivers.get_mut(id) {
                    receiver.error.record(&failure);
                }
                break;
            }
            self.say(peer, &Control::Grant { connection, number, entries });
            number = number.wrapping_add(1);
        }
        if let Some(receiver) = self.receivers.get_mut(id) {
            receiver.granted = number;
        }
    }

    /// Returns the sizes of a request that is done, and removes it. Works for it, unless the node has worked within the
    /// last microsecond. Fails if there is no such request, or its connection failed before it was done.
    pub fn test(&mut self, request: Id) -> Result<Option<Done>, Failure> {
        if let Some(done) = self.finished(request)? {
            return Ok(Some(done));
        }
        if self.idle_for() < RESTS {
            return Ok(None);
        }
        // A caller that waits for received data need not wait for the ACKs, which leave with the next call.
        self.hear()?;
        if let Some(done) = self.finished(request)? {
            return Ok(Some(done));
        }
        self.rounds(true)?;
        self.finished(request)
    }

    /// Returns the counters of a sender's message that [`Node::test`] last reported as done; fails if there is no such sender.
    pub fn counters(&self, id: Id) -> Result<DeliveryCounters, Failure> {
        self.senders.get(id).map(|sender| sender.counters).ok_or_else(|| unknown("a sender"))
    }

    fn finished(&mut self, id: Id) -> Result<Option<Done>, Failure> {
        let mut done = Done { sizes: [0; MAX_RECEIVES], count: 0 };
        let open = match self.requests.get(id).ok_or_else(|| unknown("a request"))? {
            Request::Send { sender, size, flying, all_sent, counters, .. } => {
                let sender = self.senders.get_mut(*sender).ok_or_else(|| unknown("a request of a sender"))?;
                if *flying > 0 || !all_sent {
                    return sender.error.check().map(|()| None);
                }
                // A queued retransmission of acknowledged bytes may still refer to NCCL's memory: copy it.
                self.driver.own_unsent();
                (done.sizes[0], done.count) = (*size, 1);
                sender.counters = *counters;
                &mut sender.open
            }
            Request::Receive { receiver, parts, left } => {
                let receiver = self.receivers.get_mut(*receiver).ok_or_else(|| unknown("a request of a receiver"))?;
                if *left > 0 {
                    return receiver.error.check().map(|()| None);
                }
                done.count = parts.len();
                done.sizes.iter_mut().zip(parts).for_each(|(size, part)| *size = part.received);
                &mut receiver.open
            }
        };
        open.retain(|open| *open != id);
        self.requests.remove(id);
        Ok(Some(done))
    }

    /// Passes pieces to the endpoint, as far as it accepts them; returns `true` if it accepted any.
    pub(super) fn send_pieces(&mut self, id: Id, now: Time) -> bool {
        let (mut some, max) = (false, self.piece);
        let Some(sender) = self.senders.get_mut(id).filter(|sender| sender.error.is_clear()) else { return false };
        let Some(peer) = self.peers.get_mut(&sender.peer) else { return false };
        while let Some(&request) = sender.queue.front() {
            let Some(Request::Send { memory, number, index, window, chunks, size, sent, flying, all_sent, .. }) =
                self.requests.get_mut(request)
            else {
                sender.queue.pop_front();
                continue;
            };
            let count = size.div_ceil(max).max(1);
            let bytes = if self.writes { chunk_of(*size, count, *chunks).1 } else { (*size - *sent).min(max) };
            let fits =
                sender.flying == 0 || sender.flying + bytes <= MAX_FLYING && peer.flying + bytes <= self.max_held;
            let piece = fits.then(|| match window {
                Some(Window { at, key, number }) => {
                    let write = Some(Write { to: *at + *sent, key: *key, notice: notice(*number, count) });
                    let options = SendOptions { class: sender.class, write, ..SendOptions::default() };
                    (options, memory.lend_in_place(*sent, bytes as usize))
                }
                None => {
                    let header = PieceHeader {
                        connection: sender.connection,
                        number: *number,
                        index: *index,
                        offset: *sent,
                        size: *size,
                    };
                    // A piece that fits into one packet needs no placement.
                    let is_packet = bytes + PIECE_HEADER as u64 <= self.mtu;
                    let steering = if is_packet { 0 } else { Steering::of(&header, max) };
                    let head = Bytes::copy_from_slice(&header.write());
                    let options = SendOptions { class: sender.class, steering, head, write: None };
                    (options, memory.lend(header.offset, bytes as usize))
                }
            });
            let stream = sender.channel as u32 + 1;
            let pushed = match piece {
                Some((options, piece)) => self.driver.endpoint().0.send_with(now, sender.peer, stream, options, piece),
                None => Err(SendError::Full),
            };
            match pushed {
                Ok(message) => {
                    some = true;
                    peer.streams[sender.channel].flying.push_back((message, request, bytes));
                    sender.flying += bytes;
                    peer.flying += bytes;
                    (*sent, *chunks) = (*sent + bytes, *chunks + 1);
                    *flying += 1;
                    if sent == size {
                        *all_sent = true;
                        sender.queue.pop_front();
                    }
                }
                Err(SendError::Full) => {
                    self.busy.insert(id);
                    break;
                }
                // The loss of the peer is among the events.
                Err(SendError::NoPeer) => break,
                Err(SendError::TooLarge(max)) => {
                    let message = format!("the other rank takes no pieces of more than {max} B");
                    sender.error.record(&Failure::new(Code::Usage, message));
                    break;
                }
            }
        }
        some
    }

    pub(super) fn acknowledged(&mut self, peer: PeerId, channel: usize, message: u64, delivered: &Delivered) {
        let Some(known) = self.peers.get_mut(&peer) else { return };
        let Some(of) = known.streams.get_mut(channel) else { return };
        let Some((_, id, bytes)) = of.flying.front().copied().filter(|(number, ..)| *number == message) else { return };
        of.flying.pop_front();
        known.flying -= bytes;
        let Some(Request::Send { sender, flying, counters, .. }) = self.requests.get_mut(id) else { return };
        *flying = flying.saturating_sub(1);
        counters.add(delivered);
        if let Some(sender) = self.senders.get_mut(*sender) {
            sender.flying = sender.flying.saturating_sub(bytes);
        }
    }

    /// Completes a send whose receive precedes `completed`, the number of receives that the receiver reports as complete.
    pub(super) fn complete_send(&mut self, request: Id, completed: u32) {
        if let Some(Request::Send { sender, number, flying, all_sent, .. }) = self.requests.get_mut(request)
            && (completed.wrapping_sub(*number) as i32) > 0
        {
            (*flying, *all_sent) = (0, true);
            if let Some(sender) = self.senders.get(*sender) {
                let (peer, channel) = (sender.peer, sender.channel);
                self.take_back(peer, channel, true);
            }
        }
    }

    /// Makes a stream forget NCCL's memory: what is on its way is copied, or withdrawn where it is written from there.
    pub(super) fn take_back(&mut self, peer: PeerId, channel: usize, is_flying: bool) {
        let stream = channel as u32 + 1;
        match self.writes {
            true if is_flying => self.driver.datapath().revoke(peer, stream, true),
            true => {}
            false => self.driver.own(peer, stream),
        }
    }

    /// Handles a grant of a receiver; returns `false` if it is invalid.
    pub(super) fn on_grant(&mut self, peer: PeerId, connection: u32, number: u32, entries: &[PostedBuffer]) -> bool {
        // A grant for a sender that was closed meanwhile is no error of the peer.
        let Some(Ours::Sender(id)) = self.ours.get(&connection).copied() else { return true };
        let Some(sender) = self.senders.get_mut(id) else { return true };
        let has_windows = entries.iter().all(|entry| entry.window.is_some() == self.writes);
        if sender.peer != peer || sender.next != number || sender.grants.len() >= MAX_REQUESTS || !has_windows {
            return false;
        }
        sender.next = number.wrapping_add(1);
        sender.grants.push_back(Grant { number, entries: entries.iter().copied().map(Some).collect() });
        true
    }

    /// Handles a piece of a message, part of which may already be placed; returns `false` if it is invalid.
    pub(super) fn on_piece(&mut self, peer: PeerId, bytes: &[u8], placed: Option<Placed>) -> bool {
        let Some((header, bytes)) = PieceHeader::read(bytes) else { return false };
        if placed.is_some_and(|placed| placed.steering != Steering::of(&header, self.piece)) {
            return false;
        }
        let arrived = bytes.len() as u64 + placed.map_or(0, |placed| placed.bytes);
        // A piece for a receiver that was closed meanwhile is no error of the peer.
        let Some(id) = self.theirs.get(&(peer, header.connection)).copied() else { return true };
        let Some(receiver) = self.receivers.get_mut(id) else { return true };
        let ahead = header.number.wrapping_sub(receiver.completed) as usize;
        let Some(&request) = receiver.waiting.get(ahead) else { return false };
        let Some(Request::Receive { parts, left, .. }) = self.requests.get_mut(request) else { return false };
        let Some(part) = parts.get_mut(header.index as usize) else { return false };
        let PieceHeader { offset, size, .. } = header;
        let end = offset.checked_add(arrived);
        let begins = part.size.is_none() && offset == 0;
        let continues = part.size == Some(size) && offset == part.received && part.received < size;
        if size > part.buffer.size || end.is_none_or(|end| end > size) || !(begins || continues) {
            return false;
        }
        part.buffer.memory.write(offset, bytes);
        part.size = Some(size);
        part.received += arrived;
        if part.received == size {
            *left -= 1;
        }
        // A connection's pieces come in order, so its receives complete in order.
        if *left == 0 && ahead == 0 {
            receiver.waiting.pop_front();
            receiver.completed = receiver.completed.wrapping_add(1);
            self.grant(id);
        }
        true
    }

    pub(super) fn on_wrong_size(&mut self, peer: PeerId, connection: u32, number: u32, size: u64) {
        let Some(id) = self.theirs.get(&(peer, connection)).copied() else { return };
        let name = self.named(peer);
        if let Some(receiver) = self.receivers.get_mut(id) {
            let message = format!("{name} sends a message of {size} B to receive {number}, which is smaller");
            receiver.error.record(&Failure::new(Code::Usage, message));
        }
    }

    // ---- messages that are written to their receiver's memory ----

    /// Registers memory of NCCL; `None`: messages are copied.
    pub fn register(&mut self, region: Region) -> Result<Option<Id>, Failure> {
        let registered = self.driver.datapath().register(region);
        if !registered.map_err(|error| Failure::new(Code::System, error.to_string()))? {
            return Ok(None);
        }
        Ok(self.regions.insert(region))
    }

    /// Ends a registration; no effect if there is none.
    pub fn deregister(&mut self, region: Id) {
        if let Some(region) = self.regions.remove(region) {
            self.driver.datapath().deregister(region);
        }
    }

    /// Fails unless a message's memory is registered, where it is written from there.
    pub(super) fn check_registered(&mut self, memory: &M, size: u64) -> Result<(), Failure> {
        let is_known = !self.writes || size == 0 || self.driver.datapath().key(memory.address(), size).is_some();
        let unknown = || Failure::internal(format!("{size} B are not in memory that NCCL has registered"));
        is_known.then_some(()).ok_or_else(unknown)
    }

    /// Opens windows for the buffers of a receive; returns `false` if there are too many.
    pub(super) fn open_windows(&mut self, peer: PeerId, request: Id, entries: &mut [PostedBuffer]) -> bool {
        let Node { driver, peers, requests, .. } = self;
        let (Some(known), Some(Request::Receive { parts, .. })) = (peers.get_mut(&peer), requests.get(request)) else {
            return false;
        };
        if !known.windows.have_room(entries.len()) {
            return false;
        }
        for (index, (entry, part)) in entries.iter_mut().zip(parts).enumerate() {
            let at = part.buffer.memory.address();
            let key = driver.datapath().key(at, entry.size).unwrap_or_default();
            let number = known.windows.open(request, index);
            entry.window = number.map(|number| Window { at, key, number });
        }
        true
    }

    /// Counts a chunk that a peer has written; returns `false` if no peer may write that.
    pub(super) fn on_written(&mut self, peer: PeerId, notice: u32, bytes: u64) -> bool {
        let Some(known) = self.peers.get_mut(&peer) else { return true };
        let (number, chunks) = read_notice(notice);
        // A chunk for a receiver that was closed meanwhile is no error of the peer.
        let Some(Granted { request, index, chunks: written }) = known.windows.count(number) else { return true };
        let Some(Request::Receive { receiver, parts, left }) = self.requests.get_mut(request) else { return true };
        let (receiver, part) = (*receiver, &mut parts[index]);
        part.received += bytes;
        if part.received > part.buffer.size || written > chunks {
            return false;
        }
        if written == chunks {
            part.size = Some(part.received);
            *left -= 1;
            known.windows.close(number);
            self.advance_receiver(receiver);
        }
        true
    }

    /// Takes receives that are complete from the front of their queue, and grants others.
    fn advance_receiver(&mut self, id: Id) {
        let Some(receiver) = self.receivers.get_mut(id) else { return };
        let requests = &self.requests;
        // One that was reported as done is gone.
        let is_complete = |request: &Id| !matches!(requests.get(*request), Some(Request::Receive { left: 1.., .. }));
        while receiver.waiting.front().is_some_and(is_complete) {
            receiver.waiting.pop_front();
            receiver.completed = receiver.completed.wrapping_add(1);
        }
        self.grant(id);
    }
}
