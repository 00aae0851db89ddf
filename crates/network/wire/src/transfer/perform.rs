//! One endpoint's part in a workload: it sends the orders of a plan round by round, receives what arrives, and records
//! every message.

use super::{Received, Summary, TransferError, lost};
use crate::{Datapath, Driver, Label, PeerId};
use anabranch_endpoint::{Bytes, CloseReason, Counters, Delivered, Event, SendError, Sizes};
use anabranch_units::Time;
use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
};

const PIECE: usize = 1 << 20;
/// Unacknowledged pieces of an order.
const PIECES: usize = 16;
/// First byte of a piece with payload.
const BYTES: u8 = 0;
/// Bit that, set in the number of a data stream, gives the stream of its confirmations.
const CONFIRMATIONS: u32 = 1 << 30;
/// Unacknowledged confirmations per sender.
const MAX_WORDS: usize = 64;
/// Maximum time between two calls of [`Conductor::goes_on`].
const POLL_INTERVAL: Time = Time::from_us(100_000);
/// The same while a round waits for others.
const BARRIER_POLL_INTERVAL: Time = Time::from_us(200);

/// Time for which the kernel may refuse datagrams to a destination that is not connected, and their minimum number.
const REFUSED: Time = Time::from_us(1_000_000);
const MIN_REFUSED: u64 = 8;

/// Endpoint to send to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Address at which it listens.
    pub at: SocketAddr,
    /// Paths towards it, each a set of labels; empty: every common label is a path.
    pub paths: Vec<Vec<Label>>,
}

/// Bytes to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Destination, as an index into [`TransferPlan::destinations`].
    pub to: usize,
    /// Number of bytes.
    pub bytes: u64,
    /// Round in which they are sent.
    pub round: u32,
    /// Delay after the start of the round.
    pub after: Time,
    /// Stream number. Orders of a stream are sent one after another and share window and path memory.
    pub stream: u32,
}

/// Orders of an endpoint and their destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferPlan {
    /// Endpoints to send to.
    pub destinations: Vec<Destination>,
    /// Orders to send. A round begins when all of the previous one are done and the [`Conductor`] permits it.
    pub orders: Vec<Order>,
}

/// Times and packet counts of an order, by the datapath's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Due time: start of its round plus the order's delay.
    pub due: Time,
    /// Departure of its first packet.
    pub first_sent: Time,
    /// Acknowledgement of its last packet.
    pub acknowledged: Time,
    /// Time at which the confirmation had arrived and every packet was acknowledged.
    pub confirmed: Time,
    /// Time from the arrival of its first packet to that of the summary, as the receiver has measured it.
    pub received_in: Time,
    /// Bytes and checksum, equal at the receiver.
    pub summary: Summary,
    /// Packets, retransmissions included.
    pub packets: u64,
    /// Retransmitted packets.
    pub retransmitted: u64,
    /// Packets that timed out.
    pub timeouts: u64,
    /// Packets per label, by number of the label.
    pub per_label: Vec<u64>,
}

/// Results of an endpoint's part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Records in the order of the plan; `None`: the order was not done.
    pub records: Vec<Option<Record>>,
    /// Base round trip and noise floor per destination; zero if it was never reached.
    pub round_trips: Vec<(Time, Time)>,
    /// Labels per destination over which no reply came, in the end; they carried nothing.
    pub silent: Vec<Vec<Label>>,
    /// Counters of the endpoint.
    pub counters: Counters,
    /// Longest time for which the endpoint was descheduled.
    pub longest_pause: Time,
    /// Sizes that pass to a peer and that do not, if packets were sent to it in fragments.
    pub fragmented: Option<Sizes>,
    /// The path to a peer dropped what is ECN-capable.
    pub drops_ecn: bool,
}

/// Progress of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Time of the datapath's clock.
    pub now: Time,
    /// Payload bytes acknowledged.
    pub acknowledged: u64,
    /// Completed rounds.
    pub rounds: u32,
    /// Every order is done.
    pub done: bool,
    /// Whole transfers received whose senders have acknowledged the confirmation or are departed.
    pub served: u64,
}

/// Control of a run by its caller: barriers between endpoints, payload and termination.
pub trait Conductor {
    /// Returns `true` if a round may begin. Called until then, at least five thousand times a second.
    fn may_begin(&mut self, _round: u32) -> bool {
        true
    }
    /// Reports that a round is over: the receivers have all of it.
    fn is_over(&mut self, _round: u32) {}
    /// Produces the next bytes of an order.
    fn fill(&mut self, _order: usize, _bytes: &mut [u8]) {}
    /// Reports a transfer that has arrived.
    fn received(&mut self, _received: &Received) {}
    /// Reports what happened to a peer (`refused`, `lost` amid its transfer, `fragmented`) with its address and the reason.
    fn notice(&mut self, _what: &str, _at: Option<SocketAddr>, _reason: &str) {}
    /// Returns `true` to continue, also to receive after all own orders are done. Called at least ten times a second.
    fn goes_on(&mut self, progress: &Progress) -> bool;
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    order: usize,
    bytes: u64,
    is_summary: bool,
}

#[derive(Debug, Default)]
struct OrderState {
    made: u64,
    hasher: crc32fast::Hasher,
    pieces: usize,
    /// Piece that the endpoint's full queue did not accept.
    waiting: Option<Bytes>,
    summary: Option<Summary>,
    record: Record,
    /// Acknowledgement of the summary.
    settled_at: Option<Time>,
    /// Possibly before the last acknowledgements.
    confirmed: bool,
    /// Confirmed, and all pieces are acknowledged.
    done: bool,
}

impl OrderState {
    fn settle(&mut self, now: Time) {
        if self.confirmed && self.pieces == 0 && !self.done {
            (self.done, self.record.confirmed) = (true, now);
        }
    }
}

#[derive(Debug)]
struct Incoming {
    hasher: crc32fast::Hasher,
    bytes: u64,
    since: Time,
}

impl Incoming {
    fn new(since: Time) -> Self {
        Incoming { hasher: crc32fast::Hasher::new(), bytes: 0, since }
    }
}

struct Performance<'a, D> {
    driver: &'a mut Driver<D>,
    plan: &'a TransferPlan,
    conductor: &'a mut dyn Conductor,
    peers: Vec<PeerId>,
    departed: Vec<bool>,
    states: Vec<OrderState>,
    pieces: BTreeMap<(PeerId, u32), VecDeque<Piece>>,
    incoming: BTreeMap<(PeerId, u32), Incoming>,
    /// Unacknowledged confirmations; `true` for that of a whole transfer.
    unacknowledged: BTreeMap<PeerId, VecDeque<bool>>,
    /// Base round trip and noise floor of connected destinations.
    round_trips: Vec<Option<(Time, Time)>>,
    /// The first `over` are done, the next began at `began`.
    /// Labels that do not reply, per destination.
    silent: Vec<Vec<Label>>,
    rounds: Vec<u32>,
    over: usize,
    began: Option<Time>,
    progress: Progress,
    fragmented: Option<Sizes>,
    drops_ecn: bool,
    started: Time,
}

/// Runs an endpoint's part of a workload: connects, sends and receives until the conductor stops it.
///
/// # Errors
/// Fails if a destination cannot be reached, leaves before its orders are done, or has received other bytes, if the
/// conductor stops before all orders are done, or if the datapath fails.
pub fn perform<D: Datapath>(
    driver: &mut Driver<D>,
    plan: &TransferPlan,
    conductor: &mut dyn Conductor,
) -> Result<Report, TransferError> {
    let mut rounds: Vec<u32> = plan.orders.iter().map(|order| order.round).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let (mut peers, started) = (Vec::new(), driver.datapath().now());
    for destination in &plan.destinations {
        let peer = driver.datapath().peer(destination.at, &destination.paths.concat())?;
        let (endpoint, now) = driver.endpoint();
        endpoint.connect_over(now, peer, &destination.paths);
        peers.push(peer);
    }
    let mut performance = Performance {
        plan,
        conductor,
        departed: vec![false; peers.len()],
        silent: vec![Vec::new(); peers.len()],
        // A destination may be connected already.
        round_trips: peers.iter().map(|peer| driver.endpoint().0.round_trip(*peer)).collect(),
        driver,
        peers,
        states: plan.orders.iter().map(|_| OrderState::default()).collect(),
        pieces: BTreeMap::new(),
        incoming: BTreeMap::new(),
        unacknowledged: BTreeMap::new(),
        rounds,
        over: 0,
        began: None,
        progress: Progress::default(),
        fragmented: None,
        drops_ecn: false,
        started,
    };
    let ran = performance.run();
    // Peers learn of failures too.
    performance.driver.endpoint().0.close_all();
    let left = performance.driver.finish();
    ran?;
    left?;
    performance.report()
}

impl<D: Datapath> Performance<'_, D> {
    fn run(&mut self) -> Result<(), TransferError> {
        let mut last_poll: Option<Time> = None;
        loop {
            let next = self.driver.work()?;
            let served = self.progress.served;
            self.events()?;
            self.begin_rounds();
            let next_push = self.push()?;
            let now = self.driver.datapath().now();
            let is_done = self.over == self.rounds.len();
            let changed = is_done != self.progress.done || served != self.progress.served;
            (self.progress.now, self.progress.done, self.progress.rounds) = (now, is_done, self.over as u32);
            if changed || last_poll.is_none_or(|at| now.saturating_sub(at) >= POLL_INTERVAL) {
                last_poll = Some(now);
                self.check_silence(now)?;
                while let Some((at, reason)) = self.driver.datapath().poll_refusal() {
                    self.conductor.notice("warning", Some(at), &format!("cannot be reached: {reason}"));
                }
                if !self.conductor.goes_on(&self.progress) {
                    return Ok(());
                }
            }
            let waits_for_others = !is_done && self.began.is_none();
            let poll = now + if waits_for_others { BARRIER_POLL_INTERVAL } else { POLL_INTERVAL };
            // Replies to events are still to be sent.
            let queued = self.driver.endpoint().0.poll_timeout();
            self.driver.wait([next, next_push, queued].into_iter().flatten().fold(poll, Time::min))?;
        }
    }

    fn report(mut self) -> Result<Report, TransferError> {
        if !self.progress.done {
            return Err(TransferError::Interrupted);
        }
        let records =
            std::mem::take(&mut self.states).into_iter().map(|state| state.done.then_some(state.record)).collect();
        Ok(Report {
            records,
            round_trips: self.round_trips.into_iter().map(Option::unwrap_or_default).collect(),
            silent: self.silent,
            counters: self.driver.endpoint().0.counters(),
            longest_pause: self.driver.longest_pause(),
            fragmented: self.fragmented,
            drops_ecn: self.drops_ecn,
        })
    }

    fn events(&mut self) -> Result<(), TransferError> {
        loop {
            let (endpoint, now) = self.driver.endpoint();
            let Some(event) = endpoint.poll_event() else { return Ok(()) };
            match event {
                Event::Open { peer, base_rtt, noise } => {
                    if let Some(at) = self.peers.iter().position(|known| *known == peer) {
                        self.round_trips[at] = Some((base_rtt, noise));
                    }
                }
                Event::Silent { peer, labels } => {
                    if let Some(at) = self.peers.iter().position(|known| *known == peer) {
                        self.silent[at] = labels;
                    }
                }
                Event::Sent { peer, stream, delivered, .. } => self.acknowledged(now, peer, stream, &delivered),
                Event::Received { peer, stream, bytes, began, .. } => {
                    self.received([began, now], peer, stream, &bytes)?;
                    self.driver.endpoint().0.recycle(bytes);
                }
                Event::Lost { peer, reason } => self.lost(peer, reason)?,
                Event::Refused { peer, from, reason } => {
                    let at = from.or_else(|| self.driver.datapath().peer_at(peer?));
                    self.conductor.notice("refused", at, &super::close_reason_text(reason));
                }
                Event::EcnDropped { peer } => {
                    let at = self.driver.datapath().peer_at(peer);
                    self.conductor.notice("warning", at, super::ECN_TEXT);
                    self.drops_ecn = true;
                }
                Event::Fragmented { peer, sizes } => {
                    let at = self.driver.datapath().peer_at(peer);
                    let text = super::fragments_text(sizes, super::PAYLOAD);
                    self.conductor.notice("fragmented", at, &format!("receives packets in fragments: {text}"));
                    self.fragmented = Some(sizes);
                }
            }
        }
    }

    fn acknowledged(&mut self, now: Time, peer: PeerId, stream: u32, delivered: &Delivered) {
        let Some(piece) = self.pieces.get_mut(&(peer, stream)).and_then(VecDeque::pop_front) else {
            // A confirmation.
            self.confirmation_acknowledged(peer);
            return;
        };
        let state = &mut self.states[piece.order];
        state.pieces -= 1;
        let record = &mut state.record;
        if record.packets == 0 {
            (record.first_sent, record.acknowledged) = (delivered.first_sent, now);
        }
        if piece.is_summary {
            state.settled_at = Some(now);
            return state.settle(now);
        }
        record.acknowledged = now;
        record.packets += delivered.packets;
        record.retransmitted += delivered.retransmitted;
        record.timeouts += delivered.timeouts;
        record.per_label.resize(record.per_label.len().max(delivered.per_label.len()), 0);
        record.per_label.iter_mut().zip(&delivered.per_label).for_each(|(all, more)| *all += more);
        state.settle(now);
        self.progress.acknowledged += piece.bytes;
    }

    /// A peer that is departed counts as well.
    fn confirmation_acknowledged(&mut self, peer: PeerId) {
        if let Some(words) = self.unacknowledged.get_mut(&peer) {
            self.progress.served += u64::from(words.pop_front() == Some(true));
            if words.is_empty() {
                self.unacknowledged.remove(&peer);
            }
        }
    }

    /// The first packet arrived at `began`.
    fn received(
        &mut self,
        [began, now]: [Time; 2],
        peer: PeerId,
        stream: u32,
        message: &[u8],
    ) -> Result<(), TransferError> {
        let Some(statement) = Summary::read(message) else {
            if let Some((&BYTES, bytes)) = message.split_first() {
                let incoming = self.incoming.entry((peer, stream)).or_insert_with(|| Incoming::new(began));
                incoming.hasher.update(bytes);
                incoming.bytes += bytes.len() as u64;
            }
            return Ok(());
        };
        if let Some(took) = statement.took {
            return self.confirmed(now, peer, stream, statement.summary, took);
        }
        let Incoming { hasher, bytes, since } =
            self.incoming.remove(&(peer, stream)).unwrap_or_else(|| Incoming::new(began));
        let summary = Summary { bytes, checksum: hasher.finalize() };
        let from = self.driver.datapath().peer_at(peer);
        let received = Received { peer, from, summary, sent: statement.summary, took: now.saturating_sub(since) };
        if self.unacknowledged.get(&peer).is_some_and(|words| words.len() >= MAX_WORDS) {
            // It requests confirmations and acknowledges none.
            self.driver.endpoint().0.close(peer);
            return self.lost(peer, CloseReason::Closed);
        }
        // The peer may be departed.
        let word = summary.write(Some(received.took));
        if self.driver.endpoint().0.send(now, peer, stream | CONFIRMATIONS, word.into()).is_ok() {
            self.unacknowledged.entry(peer).or_default().push_back(received.is_whole());
        }
        self.conductor.received(&received);
        Ok(())
    }

    fn confirmed(
        &mut self,
        now: Time,
        peer: PeerId,
        stream: u32,
        theirs: Summary,
        took: Time,
    ) -> Result<(), TransferError> {
        let is_of = |(number, state): &(usize, &OrderState)| {
            let order = self.plan.orders[*number];
            self.peers[order.to] == peer
                && order.stream | CONFIRMATIONS == stream
                && state.summary.is_some()
                && !state.confirmed
        };
        let Some((number, _)) = self.states.iter().enumerate().find(is_of) else { return Ok(()) };
        let ours = self.states[number].summary.unwrap_or_default();
        if theirs != ours {
            let at = self.plan.destinations[self.plan.orders[number].to].at;
            return Err(TransferError::Differs { at, theirs, ours });
        }
        let state = &mut self.states[number];
        (state.confirmed, state.record.summary, state.record.received_in) = (true, ours, took);
        state.settle(now);
        Ok(())
    }

    fn lost(&mut self, peer: PeerId, reason: CloseReason) -> Result<(), TransferError> {
        let received: u64 = self.incoming.iter().filter(|((of, _), _)| *of == peer).map(|(_, of)| of.bytes).sum();
        if received > 0 {
            let at = self.driver.datapath().peer_at(peer);
            let reason = format!("{}; {received} B of its transfer were received", super::close_reason_text(reason));
            self.conductor.notice("lost", at, &reason);
        }
        self.incoming.retain(|(of, _), _| *of != peer);
        self.pieces.retain(|(of, _), _| *of != peer);
        while self.unacknowledged.contains_key(&peer) {
            self.confirmation_acknowledged(peer);
        }
        let Some(at) = self.peers.iter().position(|known| *known == peer) else { return Ok(()) };
        self.departed[at] = true;
        let owed = |(order, state): (&Order, &OrderState)| order.to == at && !state.done;
        if self.plan.orders.iter().zip(&self.states).any(owed) {
            let (to, acknowledged) = (self.plan.destinations[at].at, self.progress.acknowledged);
            let timeout = self.driver.endpoint().0.settings().peer_timeout;
            let refused = self
                .driver
                .datapath()
                .refusals(peer)
                .map(|(_, reason)| format!("This endpoint sends in vain: {reason}"));
            let error = match reason {
                CloseReason::TimedOut => self.driver.datapath().icmp_error(to),
                _ => None,
            };
            let error = error.map_or_else(String::new, |error| format!("; {error}"));
            let path = |sizes| refused.unwrap_or_else(|| super::path_text(sizes, super::PAYLOAD) + &error);
            return Err(match reason {
                CloseReason::TimedOut if self.round_trips[at].is_some() => {
                    TransferError::Unacknowledged { at: to, acknowledged, timeout, path: path(Sizes::default()) }
                }
                CloseReason::Stalled(sizes) => {
                    TransferError::Unacknowledged { at: to, acknowledged, timeout, path: path(sizes) }
                }
                CloseReason::TimedOut => {
                    TransferError::NoResponse { at: to, waited: format!("{} (wire.give_up)", timeout.rounded()), error }
                }
                _ => lost(to, reason),
            });
        }
        Ok(())
    }

    /// Fails if the kernel refuses what is sent to a destination, or if its confirmation does not come.
    fn check_silence(&mut self, now: Time) -> Result<(), TransferError> {
        for (at, peer) in self.peers.iter().enumerate().filter(|(at, _)| !self.departed[*at]) {
            let to = self.plan.destinations[at].at;
            if self.round_trips[at].is_none()
                && now.saturating_sub(self.started) >= REFUSED
                && let Some((MIN_REFUSED.., reason)) = self.driver.datapath().refusals(*peer)
            {
                return Err(TransferError::Lost { at: to, reason: format!("cannot be reached: {reason}") });
            }
            let timeout = self.driver.endpoint().0.settings().peer_timeout.saturating_mul(2);
            let waits = |(order, state): (&Order, &OrderState)| {
                let is_over = |since| now.saturating_sub(since) > timeout;
                order.to == at && state.pieces == 0 && !state.done && state.settled_at.is_some_and(is_over)
            };
            if self.plan.orders.iter().zip(&self.states).any(waits) {
                let acknowledged = self.progress.acknowledged;
                return Err(TransferError::Unconfirmed { at: to, acknowledged, timeout });
            }
        }
        Ok(())
    }

    fn begin_rounds(&mut self) {
        while let Some(&round) = self.rounds.get(self.over) {
            let now = self.driver.datapath().now();
            if self.began.is_none() {
                // Measurements begin when every destination is connected.
                let reached =
                    self.round_trips.iter().zip(&self.departed).all(|(known, departed)| known.is_some() || *departed);
                if !reached || !self.conductor.may_begin(round) {
                    return;
                }
                self.began = Some(now);
                for (order, state) in self.plan.orders.iter().zip(&mut self.states) {
                    if order.round == round {
                        state.record.due = now + order.after;
                    }
                }
            }
            let open = |(order, state): (&Order, &OrderState)| order.round == round && !state.done;
            if self.plan.orders.iter().zip(&self.states).any(open) {
                return;
            }
            self.conductor.is_over(round);
            (self.over, self.began) = (self.over + 1, None);
        }
    }

    /// Returns the time of the next work: now if something was queued and may leave; `None`: not before an acknowledgement.
    fn push(&mut self) -> Result<Option<Time>, TransferError> {
        let (Some(_), Some(&round)) = (self.began, self.rounds.get(self.over)) else { return Ok(None) };
        let mut next: Option<Time> = None;
        let mut busy: Vec<(usize, u32)> = Vec::new();
        for number in 0..self.plan.orders.len() {
            let order = self.plan.orders[number];
            let (stream, due) = ((order.to, order.stream), self.states[number].record.due);
            if order.round != round || self.states[number].done || busy.contains(&stream) {
                continue;
            }
            // The next order of a stream waits for this one's confirmation.
            busy.push(stream);
            let (_, now) = self.driver.endpoint();
            if due > now {
                next = Some(next.map_or(due, |at| at.min(due)));
            } else if self.states[number].summary.is_none() && self.push_order(number, now)? {
                next = Some(now);
            }
        }
        Ok(next)
    }

    /// Returns `true` if something was queued.
    fn push_order(&mut self, number: usize, now: Time) -> Result<bool, TransferError> {
        let order = self.plan.orders[number];
        let (peer, at) = (self.peers[order.to], self.plan.destinations[order.to].at);
        let piece = (PIECE as u64).min(self.driver.endpoint().0.settings().max_message - 1);
        let mut queued = false;
        loop {
            let state = &mut self.states[number];
            if state.summary.is_some() || state.pieces >= PIECES {
                return Ok(queued);
            }
            let message = state.waiting.take().unwrap_or_else(|| {
                if state.made == order.bytes {
                    let checksum = state.hasher.clone().finalize();
                    return Summary { bytes: order.bytes, checksum }.write(None).into();
                }
                let size = (order.bytes - state.made).min(piece) as usize;
                let mut message = vec![BYTES; size + 1];
                self.conductor.fill(number, &mut message[1..]);
                state.hasher.update(&message[1..]);
                state.made += size as u64;
                message.into()
            });
            match self.driver.endpoint().0.send(now, peer, order.stream, message.clone()) {
                Ok(_) => {
                    state.pieces += 1;
                    state.summary = Summary::read(&message).map(|message| message.summary);
                    let is_summary = state.summary.is_some();
                    let bytes = if is_summary { 0 } else { message.len() as u64 - 1 };
                    let pieces = self.pieces.entry((peer, order.stream)).or_default();
                    pieces.push_back(Piece { order: number, bytes, is_summary });
                    queued = true;
                }
                Err(SendError::Full) => {
                    state.waiting = Some(message);
                    return Ok(queued);
                }
                Err(SendError::NoPeer) => return Err(lost(at, CloseReason::Closed)),
                Err(SendError::TooLarge(max)) => {
                    let reason = format!("accepts messages of at most {max} B, this one has {} B", message.len());
                    return Err(TransferError::Lost { at, reason });
                }
            }
        }
    }
}
