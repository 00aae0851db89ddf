use anabranch_transport::{DataArrival, Receiver, Reply, Transport};
use anabranch_units::Time;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

use crate::{
    event::{Delivered, Placed, SendOptions, Write},
    header::Data,
    transmissions::Transmissions,
    watched::Watched,
};

/// Memory of incomplete messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) bytes: u64,
    /// Of messages whose sender had not delivered as many bytes before.
    pub(crate) unearned: u64,
}

impl Stored {
    pub(crate) fn new(bytes: u64, is_earned: bool) -> Self {
        Stored { bytes, unearned: if is_earned { 0 } else { bytes } }
    }

    pub(crate) fn add(&mut self, more: Stored) {
        self.bytes += more.bytes;
        self.unearned += more.unearned;
    }

    pub(crate) fn take(&mut self, less: Stored) {
        self.bytes = self.bytes.saturating_sub(less.bytes);
        self.unearned = self.unearned.saturating_sub(less.unearned);
    }
}

/// First numbers of streams; zero but in tests of large ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct First {
    pub(crate) psn: u64,
    pub(crate) message: u64,
    pub(crate) transmission: u32,
}

#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) number: u64,
    /// PSN of its first packet.
    first: u64,
    packets: u64,
    /// At most one packet, which may be stored apart from the rest.
    pub(crate) head: Bytes,
    pub(crate) bytes: Bytes,
    pub(crate) steering: u64,
    pub(crate) class: u8,
    pub(crate) write: Option<Write>,
    pub(crate) delivered: Delivered,
}

impl Message {
    pub(crate) fn len(&self) -> u64 {
        (self.head.len() + self.bytes.len()) as u64
    }

    pub(crate) fn part(&self, from: usize, to: usize) -> (&[u8], Bytes) {
        let head = self.head.len();
        let of_head = &self.head[from.min(head)..to.min(head)];
        (of_head, self.bytes.slice(from.saturating_sub(head)..to.saturating_sub(head)))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) peer: u32,
    pub(crate) stream: u32,
    /// Connection number that datagrams to the peer must carry.
    pub(crate) connection: u32,
    pub(crate) mtu: u64,
    messages: VecDeque<Message>,
    next_message: u64,
    /// Packets of all messages; `offered`: those that the sender has.
    packets: u64,
    pub(crate) offered: u64,
    /// Packets below it are acknowledged.
    cumulative: u64,
    pub(crate) transmissions: Transmissions,
    pub(crate) held: u64,
    /// Path switches attributed to messages so far.
    switches: u64,
    /// Tag of the current run; `run_left`: packets of it left.
    pub(crate) run_tag: u32,
    pub(crate) run_left: u32,
    /// Selects one of a path's labels; advances after each timeout.
    pub(crate) turn: u32,
    pub(crate) watched: Option<Box<Watched>>,
    /// First timeout since `cumulative` has advanced.
    pub(crate) stalled_since: Option<Time>,
    /// First unacknowledged PSN at the last timeout.
    timed_out_at: u64,
    /// Timeouts in a row that have lost more than was acknowledged before.
    losing: u32,
    /// Makes ACKs of what a reliable datapath reports.
    completions: Option<Box<Receiver>>,
}

/// Timeouts in a row.
const FEW: u32 = 4;

impl Outgoing {
    pub(crate) fn new(peer: u32, stream: u32, connection: u32, mtu: u64, first: First) -> Self {
        let First { psn, message, transmission } = first;
        Outgoing {
            peer,
            stream,
            connection,
            mtu,
            turn: stream,
            next_message: message,
            packets: psn,
            offered: psn,
            cumulative: psn,
            timed_out_at: psn,
            transmissions: Transmissions::after(transmission),
            ..Outgoing::default()
        }
    }

    pub(crate) fn push(&mut self, options: SendOptions, bytes: Bytes, now: Time) -> u64 {
        let SendOptions { class, steering, head, write } = options;
        let length = (head.len() + bytes.len()) as u64;
        let packets = length.div_ceil(self.mtu).max(1);
        let (number, first) = (self.next_message, self.packets);
        self.held += length;
        self.packets += packets;
        self.next_message += 1;
        let delivered = Delivered { queued: now, ..Delivered::default() };
        self.messages.push_back(Message { number, first, packets, head, bytes, steering, class, write, delivered });
        number
    }

    /// Returns the reply that a receiver would send to a packet that has arrived, or that came without its payload.
    pub(crate) fn complete(
        &mut self,
        transport: &Transport,
        now: Time,
        (psn, tag): (u64, u32),
        arrived: bool,
        first: First,
    ) -> Option<Reply> {
        let receiver = self.completions.get_or_insert_with(|| Box::new(Receiver::of_stream(transport, first.psn)));
        if !arrived {
            return receiver.on_header(transport, psn, tag, true);
        }
        let arrival = DataArrival { psn, payload: self.mtu as u32, tag, ecn: false, ack_request: true };
        receiver.on_data(transport, now, &arrival).0
    }

    /// Notes a timeout of this many packets; returns `true` if the last few have lost more than was acknowledged between them.
    pub(crate) fn loses_most(&mut self, lost: u64) -> bool {
        let acknowledged = self.cumulative - std::mem::replace(&mut self.timed_out_at, self.cumulative);
        self.losing = if acknowledged < lost { self.losing + 1 } else { 0 };
        self.losing >= FEW
    }

    /// Returns the number of packets to add to the sender: those within `span` of `cumulative`.
    pub(crate) fn offer(&mut self, cumulative: u64, span: u64) -> u64 {
        if cumulative != self.cumulative {
            (self.cumulative, self.stalled_since) = (cumulative, None);
        }
        let to = self.packets.min(cumulative + span);
        let more = to.saturating_sub(self.offered);
        self.offered += more;
        more
    }

    fn find(&mut self, psn: u64) -> Option<&mut Message> {
        let (at, _) = self.place(psn)?;
        self.messages.get_mut(at)
    }

    /// Records a transmission; returns its message, the packet's index in that, and its number.
    pub(crate) fn transmit(&mut self, psn: u64, now: Time) -> Option<(&Message, u32, u32)> {
        let under_way = (psn + 1).saturating_sub(self.cumulative);
        let (at, index) = self.place(psn)?;
        let message = &self.messages[at];
        let is_full = (u64::from(index) + 1) * self.mtu <= message.len();
        Some((message, index, self.transmissions.note(now, is_full, under_way)))
    }

    fn place(&self, psn: u64) -> Option<(usize, u32)> {
        let at = self.messages.partition_point(|message| message.first <= psn).checked_sub(1)?;
        let message = &self.messages[at];
        let index = psn - message.first;
        (index < message.packets).then_some((at, index as u32))
    }

    /// `switches` are the stream's path switches, this one included.
    pub(crate) fn note_sent(&mut self, psn: u64, now: Time, label: u32, labels: u32, again: bool, switches: u64) {
        let more = switches - std::mem::replace(&mut self.switches, switches);
        let Some(message) = self.find(psn) else { return };
        let delivered = &mut message.delivered;
        if delivered.packets == 0 {
            delivered.first_sent = now;
            delivered.per_label = vec![0; labels as usize];
        }
        delivered.packets += 1;
        delivered.path_switches += more;
        delivered.retransmitted += u64::from(again);
        if let Some(count) = delivered.per_label.get_mut(label as usize) {
            *count += 1;
        }
    }

    pub(crate) fn note_timeout(&mut self, psn: u64) {
        if let Some(watched) = &mut self.watched {
            watched.note_timeout(psn);
        }
        if let Some(message) = self.find(psn) {
            message.delivered.timeouts += 1;
        }
    }

    /// Returns the next message whose packets are all below `cumulative`.
    pub(crate) fn acknowledged(&mut self, cumulative: u64) -> Option<(u64, Delivered)> {
        self.messages.front().filter(|message| message.first + message.packets <= cumulative)?;
        let message = self.messages.pop_front()?;
        self.held -= message.len();
        Some((message.number, message.delivered))
    }

    pub(crate) fn own(&mut self) {
        for message in &mut self.messages {
            message.bytes = Bytes::copy_from_slice(&message.bytes);
        }
    }

    pub(crate) fn messages(&self) -> usize {
        self.messages.len()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.messages.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) placed: Option<Placed>,
    pub(crate) began: Time,
    /// Bytes that it counted until completion.
    pub(crate) reserved: u64,
    pub(crate) stored: Stored,
}

#[derive(Debug, Default)]
struct Assembly {
    /// PSN of its first packet.
    first: u64,
    /// `bytes`: content up to the last packet received, of a placed message the head.
    length: u64,
    bytes: Vec<u8>,
    /// Packets beyond the memory that may be allocated yet, by offset.
    ahead: BTreeMap<usize, Box<[u8]>>,
    arrived: usize,
    counted: u64,
    /// Its sender has delivered at least as many bytes, besides what it holds: its memory is allocated at once.
    is_earned: bool,
    /// It began when memory was short.
    is_short: bool,
    missing: u64,
    /// [`Time::MAX`] before the first packet.
    began: Time,
    /// Selects the placement; 0: none.
    steering: u64,
    /// Leading bytes kept here, if the others are placed.
    head: Option<usize>,
}

/// Memory allocated with the first packet; `GROWTH`: multiple of the bytes received.
const INITIAL_BYTES: usize = 64 << 10;
const GROWTH: usize = 16;
/// `GROWTH` when memory is short: a sender that holds much has to send half of it.
const SHORT_GROWTH: usize = 2;
/// Bytes that a message counts besides its own.
const MESSAGE_OVERHEAD: u64 = 256;

impl Assembly {
    fn stored(&self) -> u64 {
        MESSAGE_OVERHEAD + (self.bytes.capacity() + self.ahead.values().map(|piece| piece.len()).sum::<usize>()) as u64
    }

    /// Bytes that count against the peer's limit until completion.
    fn reserved(&self) -> u64 {
        self.head.map_or(self.length, |head| self.length.min(head as u64))
    }

    /// Bytes up to which memory may be allocated once `more` bytes have arrived.
    fn reach(&self, more: usize) -> usize {
        if self.is_earned {
            return self.length as usize;
        }
        let arrived = self.arrived + more;
        let reach = if self.is_short {
            arrived.saturating_mul(SHORT_GROWTH)
        } else {
            INITIAL_BYTES.saturating_add(arrived.saturating_mul(GROWTH))
        };
        reach.min(usize::try_from(self.length).unwrap_or(usize::MAX))
    }

    /// Memory that a payload needs besides that allocated.
    fn needs(&self, from: usize, payload: usize) -> u64 {
        let (to, capacity) = (from + payload, self.bytes.capacity());
        if to <= capacity {
            return 0;
        }
        if let Some(head) = self.head {
            return head.saturating_sub(from) as u64;
        }
        let reach = self.reach(payload);
        if to <= reach { (reach - capacity) as u64 } else { payload as u64 }
    }

    fn put(&mut self, from: usize, payload: &[u8]) {
        self.arrived += payload.len();
        let to = from + payload.len();
        if to > self.bytes.capacity() {
            let reach = self.reach(0);
            if to > reach {
                self.ahead.insert(from, payload.into());
                return;
            }
            self.bytes.reserve_exact(reach - self.bytes.len());
        }
        self.write(from, payload);
        while let Some((&from, piece)) = self.ahead.first_key_value() {
            let to = from + piece.len();
            if to > self.bytes.capacity() {
                // The bytes received may allow more memory.
                let reach = self.reach(0);
                if to > reach {
                    return;
                }
                self.bytes.reserve_exact(reach - self.bytes.len());
            }
            if let Some((from, piece)) = self.ahead.pop_first() {
                self.write(from, &piece);
            }
        }
    }

    /// Writes no byte twice if packets arrive in order, or if memory was there before.
    fn write(&mut self, from: usize, payload: &[u8]) {
        let to = from + payload.len();
        if self.bytes.len() <= from {
            self.bytes.resize(from, 0);
            self.bytes.extend_from_slice(payload);
        } else if let Some(place) = self.bytes.get_mut(from..to) {
            place.copy_from_slice(payload);
        }
    }
}

/// Memory returned by owners of messages. Unlike the allocator's, it need not be written before packets arrive out of order.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    all: Vec<Vec<u8>>,
    bytes: usize,
}

/// Minimum bytes of a message whose memory is kept; `MAX_SPARE`: maximum of all kept memory.
const MIN_SPARE: usize = 1 << 14;
const MAX_SPARE: usize = 8 << 20;
const MAX_SPARES: usize = 16;

impl Spares {
    pub(crate) fn keep(&mut self, bytes: Vec<u8>) {
        let size = bytes.capacity();
        if bytes.len() >= MIN_SPARE && self.bytes + size <= MAX_SPARE && self.all.len() < MAX_SPARES {
            self.bytes += size;
            self.all.push(bytes);
        }
    }

    /// The content is arbitrary; empty if none of a similar size is kept.
    fn take(&mut self, length: usize) -> Vec<u8> {
        let fits = |spare: &Vec<u8>| spare.len() >= length && spare.capacity() / 2 <= length;
        // The last one is the most likely to be in a cache.
        let Some(at) = self.all.iter().rposition(fits).filter(|_| length >= MIN_SPARE) else { return Vec::new() };
        let mut spare = self.all.remove(at);
        self.bytes -= spare.capacity();
        spare.truncate(length);
        spare
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// The peer's limit has no space now.
    Full,
    /// Bytes of memory; `is_earned`: the sender has delivered as many bytes before.
    Bytes { bytes: u64, is_earned: bool },
}

impl Cost {
    const NONE: Cost = Cost::Bytes { bytes: 0, is_earned: true };
}

#[derive(Debug)]
pub(crate) struct Incoming {
    receiver: Receiver,
    /// First incomplete message; `next_first`: PSN of its first packet.
    next: u64,
    next_first: u64,
    /// Messages from `next` on of which a packet has arrived, in order.
    messages: VecDeque<(u64, Box<Assembly>)>,
    /// Of a delayed ACK.
    pub(crate) timer_at: Time,
    /// The memory of its bitmap is counted.
    pub(crate) is_wide: bool,
}

/// Packets beyond the first missing one that need no memory.
const INLINE_SPAN: u64 = 192;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) mtu: u64,
    pub(crate) span: u64,
    pub(crate) max_message: u64,
    /// Per peer.
    pub(crate) max_held: u64,
    /// Bytes delivered in complete messages, less the memory held.
    pub(crate) earned: u64,
    /// Memory for other senders is short.
    pub(crate) is_short: bool,
}

impl Incoming {
    pub(crate) fn new(transport: &Transport, First { psn, message, .. }: First) -> Self {
        let receiver = Receiver::of_stream(transport, psn);
        Incoming {
            receiver,
            next: message,
            next_first: psn,
            messages: VecDeque::new(),
            timer_at: Time::MAX,
            is_wide: false,
        }
    }

    /// Returns the memory of a bitmap of `span` packets, which doubles, where `psn` is the first to need one.
    pub(crate) fn widens(&self, psn: u64, span: u64) -> Option<u64> {
        (!self.is_wide && psn >= self.receiver.cumulative() + INLINE_SPAN).then_some(span / 4)
    }

    pub(crate) fn receiver(&mut self) -> &mut Receiver {
        &mut self.receiver
    }

    /// PSN and message are within what the sender may have under way, and the sizes match.
    pub(crate) fn fits(&self, data: &Data, limits: &Limits) -> bool {
        let packets = data.length.div_ceil(limits.mtu).max(1);
        let index = u64::from(data.index);
        let size = data.length.saturating_sub(index * limits.mtu).min(limits.mtu);
        let sizes = data.length <= limits.max_message && index < packets && u64::from(data.payload) == size;
        if !sizes || data.psn >= self.receiver.cumulative().saturating_add(limits.span) {
            return false;
        }
        if data.message < self.next {
            return true;
        }
        // Every message has a packet, so numbers cannot run ahead of PSNs.
        let (ahead, first) = (data.message - self.next, data.psn - index);
        match self.find(data.message) {
            Ok(at) => {
                let known = &self.messages[at].1;
                (known.first, known.length, known.steering) == (first, data.length, data.steering)
            }
            Err(_) if ahead == 0 => first == self.next_first,
            Err(_) => first >= self.next_first + ahead,
        }
    }

    /// Returns the index of the message, or the one at which to insert it.
    fn find(&self, message: u64) -> Result<usize, usize> {
        let Some((first, _)) = self.messages.front() else { return Err(0) };
        // Usually no message is missing in between.
        let usual = message.wrapping_sub(*first) as usize;
        if self.messages.get(usual).is_some_and(|(number, _)| *number == message) {
            return Ok(usual);
        }
        self.messages.binary_search_by_key(&message, |(number, _)| *number)
    }

    /// Returns the memory that a fitting packet needs. `reserved` counts the bytes of the peer's messages. A message of
    /// which `head` bytes are kept is placed as it arrives.
    pub(crate) fn prepare(
        &mut self,
        data: &Data,
        payload: usize,
        limits: &Limits,
        (reserved, spares): (&mut u64, &mut Spares),
        head: impl FnOnce() -> Option<usize>,
    ) -> Cost {
        let Some(ahead) = data.message.checked_sub(self.next) else { return Cost::NONE };
        let from = data.index as usize * limits.mtu as usize;
        let at = match self.find(data.message) {
            Ok(at) => {
                let known = &self.messages[at].1;
                return Cost::Bytes { bytes: known.needs(from, payload), is_earned: known.is_earned };
            }
            Err(at) => at,
        };
        // The message that others wait for always has space.
        let max = if ahead == 0 { limits.max_held } else { limits.max_held - limits.max_message };
        let head = if data.steering == 0 { None } else { head().map(|head| head.min(limits.mtu as usize)) };
        let missing = data.length.div_ceil(limits.mtu).max(1);
        let first = data.psn - u64::from(data.index);
        let Data { length, steering, .. } = *data;
        let mut assembly = Assembly {
            first,
            length,
            is_earned: data.length <= limits.earned,
            is_short: limits.is_short,
            missing,
            began: Time::MAX,
            steering,
            head,
            ..Assembly::default()
        };
        let more = assembly.reserved();
        if *reserved + more > max {
            return Cost::Full;
        }
        if assembly.is_earned && head.is_none() {
            assembly.bytes = spares.take(length as usize);
        }
        let bytes = MESSAGE_OVERHEAD + assembly.bytes.capacity() as u64 + assembly.needs(from, payload);
        let cost = Cost::Bytes { bytes, is_earned: assembly.is_earned };
        *reserved += more;
        self.messages.insert(at, (data.message, Box::new(assembly)));
        cost
    }

    /// Drops a message whose first packet finds no memory.
    pub(crate) fn abandon(&mut self, message: u64, reserved: &mut u64) {
        if let Ok(at) = self.find(message)
            && self.messages[at].1.counted == 0
            && let Some((_, message)) = self.messages.remove(at)
        {
            *reserved = reserved.saturating_sub(message.reserved());
        }
    }

    /// Accepts a prepared packet; `arrival` has the payload of a full packet, as which every packet of a stream counts.
    /// Returns the ACK, if any, and the additional memory of its message.
    pub(crate) fn on_data(
        &mut self,
        transport: &Transport,
        now: Time,
        arrival: &DataArrival,
        data: &Data,
        payload: &[u8],
        place: impl FnOnce(u64, &[u8]),
    ) -> (Option<anabranch_transport::Reply>, Stored) {
        let before = self.receiver.received_bytes();
        let (ack, _) = self.receiver.on_data(transport, now, arrival);
        let is_new = self.receiver.received_bytes() != before;
        let mut more = Stored::default();
        if is_new
            && data.message >= self.next
            && let Ok(at) = self.find(data.message)
        {
            let assembly = &mut self.messages[at].1;
            let from = data.index as usize * arrival.payload as usize;
            assembly.missing = assembly.missing.saturating_sub(1);
            assembly.began = assembly.began.min(now);
            let to = from + payload.len();
            if let Some(head) = assembly.head {
                let (kept, rest) = payload.split_at(head.saturating_sub(from).min(payload.len()));
                assembly.bytes.extend_from_slice(kept);
                place((from + kept.len()) as u64, rest);
            } else if to <= assembly.bytes.capacity() && assembly.ahead.is_empty() {
                assembly.arrived += payload.len();
                assembly.write(from, payload);
                if assembly.counted > 0 {
                    return (ack, more);
                }
            } else {
                assembly.put(from, payload);
            }
            let stored = assembly.stored();
            more = Stored::new(stored.saturating_sub(assembly.counted), assembly.is_earned);
            assembly.counted = assembly.counted.max(stored);
        }
        (ack, more)
    }

    pub(crate) fn take(&mut self, mtu: u64) -> Option<Completed> {
        self.messages.front().filter(|(number, message)| *number == self.next && message.missing == 0)?;
        let (number, message) = self.messages.pop_front()?;
        let (reserved, stored) = (message.reserved(), Stored::new(message.counted, message.is_earned));
        self.next += 1;
        self.next_first = message.first + message.length.div_ceil(mtu).max(1);
        let rest = message.length - message.bytes.len() as u64;
        let placed = message.head.map(|_| Placed { steering: message.steering, bytes: rest });
        Some(Completed { number, bytes: message.bytes, placed, began: message.began, reserved, stored })
    }

    pub(crate) fn incomplete_messages(&self) -> usize {
        self.messages.len()
    }
}
