//! Sender of a transfer.

use super::{BYTES, CONFIRMATIONS, PAYLOAD, POLL_INTERVAL, Summary, TransferError, lost, path_text};
use crate::{Datapath, Driver, Label, PeerId};
use anabranch_endpoint::{Bytes, CloseReason, Counters, Delivered, Event, SchemeState, SendError, Sizes};
use anabranch_units::Time;
use std::{collections::VecDeque, net::SocketAddr};

const PIECE: usize = 1 << 20;
const LARGE: u64 = 1 << 16;
/// Unacknowledged pieces.
const PIECES: usize = 16;
const STREAM: u32 = 0;

/// Time for which the kernel may refuse datagrams to a destination that is not connected, and their minimum number.
const REFUSED: Time = Time::from_us(1_000_000);
const MIN_REFUSED: u64 = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Address at which it listens, of several planes in the first.
    pub at: SocketAddr,
    /// Addresses in the other planes.
    pub others: Vec<SocketAddr>,
    /// Paths towards it, each a set of labels; empty: every common label is a path.
    pub paths: Vec<Vec<Label>>,
}

/// Times and packet counts of a transfer, by the datapath's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Time at which the receiver was connected.
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
    pub retransmitted: u64,
    /// Packets that timed out.
    pub timeouts: u64,
    /// Packets per label, by number of the label.
    pub per_label: Vec<u64>,
}

/// Result of a transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// Times, from the first packet to the receiver's confirmation, and packet counts.
    pub record: Record,
    /// Shortest round trip of a full packet before anything was sent.
    pub base_rtt: Time,
    /// Noise floor: round trips up to this much above the base count as uncongested.
    pub noise: Time,
    /// Labels over which no reply came, in the end; they carried nothing.
    pub silent: Vec<Label>,
    /// State of the scheme after the last packet.
    pub scheme_state: SchemeState,
    /// Counters of the sender.
    pub counters: Counters,
    /// Longest time for which the sender was descheduled.
    pub longest_pause: Time,
    /// Sizes that pass and that do not, if packets were sent in fragments.
    pub fragmented: Option<Sizes>,
    /// The path dropped what is ECN-capable.
    pub drops_ecn: bool,
    /// Datagrams that the sender sent, and system calls for them ([`Datapath::sent`]).
    pub calls: [u64; 2],
}

struct Sender<'a, D> {
    driver: &'a mut Driver<D>,
    at: SocketAddr,
    peer: PeerId,
    bytes: u64,
    fill: &'a mut dyn FnMut(&mut [u8]),
    made: u64,
    hasher: crc32fast::Hasher,
    /// Payload of the unacknowledged pieces; `None`: the summary.
    pieces: VecDeque<Option<u64>>,
    /// Piece that the endpoint's full queue did not accept.
    waiting: Option<Bytes>,
    summary: Option<Summary>,
    /// Acknowledgement of the summary.
    settled_at: Option<Time>,
    /// Possibly before the last acknowledgements.
    confirmed: bool,
    /// Confirmed, and all pieces are acknowledged.
    done: bool,
    acknowledged: u64,
    record: Record,
    /// Base round trip and noise floor.
    round_trip: Option<(Time, Time)>,
    silent: Vec<Label>,
    fragmented: Option<Sizes>,
    drops_ecn: bool,
    scheme_state: SchemeState,
    started: Time,
}

impl From<SocketAddr> for Destination {
    fn from(at: SocketAddr) -> Self {
        Destination { at, others: Vec::new(), paths: Vec::new() }
    }
}

/// Sends `bytes` bytes, produced by `fill`. `poll` is called periodically with the time and the bytes acknowledged, and
/// returns `false` to stop.
///
/// Fails if the peer cannot be reached, leaves, or has received other bytes.
pub fn send<D: Datapath>(
    driver: &mut Driver<D>,
    to: &Destination,
    bytes: u64,
    fill: &mut dyn FnMut(&mut [u8]),
    poll: &mut dyn FnMut(Time, u64) -> bool,
) -> Result<Sent, TransferError> {
    let started = driver.datapath().now();
    let peer = open(driver, to)?;
    let mut sender = Sender {
        // The destination may be connected already.
        round_trip: driver.endpoint().0.round_trip(peer),
        driver,
        at: to.at,
        peer,
        bytes,
        fill,
        made: 0,
        hasher: crc32fast::Hasher::new(),
        pieces: VecDeque::new(),
        waiting: None,
        summary: None,
        settled_at: None,
        confirmed: false,
        done: false,
        acknowledged: 0,
        record: Record::default(),
        silent: Vec::new(),
        fragmented: None,
        drops_ecn: false,
        scheme_state: SchemeState::new(),
        started,
    };
    let ran = sender.run(poll);
    // The peer learns of failures too.
    sender.driver.endpoint().0.close_all();
    let left = sender.driver.finish();
    ran?;
    left?;
    let Sender { driver, record, silent, fragmented, drops_ecn, scheme_state, round_trip, .. } = sender;
    let (base_rtt, noise) = round_trip.unwrap_or_default();
    let (counters, longest_pause, calls) =
        (driver.endpoint().0.counters(), driver.longest_pause(), driver.datapath().sent());
    Ok(Sent { record, base_rtt, noise, silent, scheme_state, counters, longest_pause, fragmented, drops_ecn, calls })
}

fn open<D: Datapath>(driver: &mut Driver<D>, to: &Destination) -> Result<PeerId, TransferError> {
    let peer = match &to.others[..] {
        [] => driver.datapath().peer(to.at, &to.paths.concat())?,
        others => driver.datapath().peer_in_planes(&[&[to.at], others].concat())?,
    };
    let (endpoint, now) = driver.endpoint();
    endpoint.connect_over(now, peer, &to.paths);
    Ok(peer)
}

/// Connects to a destination within `timeout`, so that a transfer to it begins at once.
/// Fails if it does not reply, or if the kernel refuses what is sent to it.
pub fn connect<D: Datapath>(driver: &mut Driver<D>, to: &Destination, timeout: Time) -> Result<(), TransferError> {
    let peer = open(driver, to)?;
    let until = driver.datapath().now() + timeout;
    loop {
        let next = driver.work()?;
        let (endpoint, now) = driver.endpoint();
        while let Some(event) = endpoint.poll_event() {
            if let Event::Lost { reason, .. } = event {
                return Err(lost(to.at, reason));
            }
        }
        if endpoint.round_trip(peer).is_some() {
            return Ok(());
        }
        if now >= until {
            endpoint.close(peer);
            driver.finish()?;
            return Err(driver.datapath().refusals(peer).map_or(
                TransferError::NoResponse { at: to.at, waited: timeout.rounded(), error: String::new() },
                |(_, reason)| TransferError::Lost { at: to.at, reason: format!("cannot be reached: {reason}") },
            ));
        }
        driver.wait(next.unwrap_or(until).min(until))?;
    }
}

impl<D: Datapath> Sender<'_, D> {
    fn run(&mut self, poll: &mut dyn FnMut(Time, u64) -> bool) -> Result<(), TransferError> {
        let (mut began, mut last_poll) = (false, None);
        loop {
            let next = self.driver.work()?;
            self.events()?;
            if self.done {
                let (endpoint, now) = self.driver.endpoint();
                self.scheme_state = endpoint.scheme_state(now, self.peer, STREAM).unwrap_or_default();
                return Ok(());
            }
            if !began && self.round_trip.is_some() {
                (began, self.record.due) = (true, self.driver.datapath().now());
            }
            let queued = began && self.summary.is_none() && self.push()?;
            let now = self.driver.datapath().now();
            if last_poll.is_none_or(|at| now.saturating_sub(at) >= POLL_INTERVAL) {
                last_poll = Some(now);
                self.check_silence(now)?;
                while self.driver.datapath().poll_refusal().is_some() {}
                if !poll(now, self.acknowledged) {
                    return Err(TransferError::Interrupted);
                }
            }
            // Replies to events are still to be sent.
            let replies = self.driver.endpoint().0.poll_timeout();
            let due = [next, queued.then_some(now), replies].into_iter().flatten();
            self.driver.wait(due.fold(now + POLL_INTERVAL, Time::min))?;
        }
    }

    fn events(&mut self) -> Result<(), TransferError> {
        loop {
            let (endpoint, now) = self.driver.endpoint();
            let Some(event) = endpoint.poll_event() else { return Ok(()) };
            match event {
                Event::Open { peer, base_rtt, noise } if peer == self.peer => self.round_trip = Some((base_rtt, noise)),
                Event::Silent { peer, labels } if peer == self.peer => self.silent = labels,
                Event::Sent { peer, delivered, .. } if peer == self.peer => self.on_acknowledged(now, &delivered),
                Event::Received { peer, stream, bytes, .. } => {
                    if peer == self.peer && stream == STREAM | CONFIRMATIONS {
                        self.on_confirmed(now, &bytes)?;
                    }
                    self.driver.endpoint().0.recycle(bytes);
                }
                Event::Lost { peer, reason } if peer == self.peer && !self.done => return Err(self.lost(reason)),
                Event::EcnDropped { .. } => self.drops_ecn = true,
                Event::Fragmented { sizes, .. } => self.fragmented = Some(sizes),
                _ => {}
            }
        }
    }

    fn on_acknowledged(&mut self, now: Time, delivered: &Delivered) {
        let Some(piece) = self.pieces.pop_front() else { return };
        let record = &mut self.record;
        if record.packets == 0 {
            (record.first_sent, record.acknowledged) = (delivered.first_sent, now);
        }
        if let Some(bytes) = piece {
            record.acknowledged = now;
            record.packets += delivered.packets;
            record.retransmitted += delivered.retransmitted;
            record.timeouts += delivered.timeouts;
            record.per_label.resize(record.per_label.len().max(delivered.per_label.len()), 0);
            record.per_label.iter_mut().zip(&delivered.per_label).for_each(|(all, more)| *all += more);
            self.acknowledged += bytes;
        } else {
            self.settled_at = Some(now);
        }
        self.settle(now);
    }

    fn on_confirmed(&mut self, now: Time, message: &[u8]) -> Result<(), TransferError> {
        let confirmation = Summary::read(message).and_then(|message| Some((message.summary, message.took?)));
        let (Some((theirs, took)), Some(ours), false) = (confirmation, self.summary, self.confirmed) else {
            return Ok(());
        };
        if theirs != ours {
            return Err(TransferError::Differs { at: self.at, theirs, ours });
        }
        (self.confirmed, self.record.summary, self.record.received_in) = (true, ours, took);
        self.settle(now);
        Ok(())
    }

    fn settle(&mut self, now: Time) {
        if self.confirmed && self.pieces.is_empty() && !self.done {
            (self.done, self.record.confirmed) = (true, now);
        }
    }

    fn lost(&mut self, reason: CloseReason) -> TransferError {
        let (at, acknowledged) = (self.at, self.acknowledged);
        let timeout = self.driver.endpoint().0.settings().peer_timeout;
        let datapath = self.driver.datapath();
        let refused = datapath.refusals(self.peer).map(|(_, reason)| format!("This endpoint sends in vain: {reason}"));
        let error = match reason {
            CloseReason::TimedOut => datapath.icmp_error(at),
            _ => None,
        };
        let error = error.map_or_else(String::new, |error| format!("; {error}"));
        let path = |sizes| refused.unwrap_or_else(|| path_text(sizes, PAYLOAD) + &error);
        match reason {
            CloseReason::TimedOut if self.round_trip.is_some() => {
                TransferError::Unacknowledged { at, acknowledged, timeout, path: path(Sizes::default()) }
            }
            CloseReason::Stalled(sizes) => {
                TransferError::Unacknowledged { at, acknowledged, timeout, path: path(sizes) }
            }
            CloseReason::TimedOut => {
                TransferError::NoResponse { at, waited: format!("{} (wire.give_up)", timeout.rounded()), error }
            }
            _ => lost(at, reason),
        }
    }

    /// Fails if the kernel refuses what is sent to the destination, or if its confirmation does not come.
    fn check_silence(&mut self, now: Time) -> Result<(), TransferError> {
        let at = self.at;
        if self.round_trip.is_none()
            && now.saturating_sub(self.started) >= REFUSED
            && let Some((MIN_REFUSED.., reason)) = self.driver.datapath().refusals(self.peer)
        {
            return Err(TransferError::Lost { at, reason: format!("cannot be reached: {reason}") });
        }
        let timeout = self.driver.endpoint().0.settings().peer_timeout.saturating_mul(2);
        let is_over = |since| now.saturating_sub(since) > timeout;
        if self.pieces.is_empty() && self.settled_at.is_some_and(is_over) {
            return Err(TransferError::Unconfirmed { at, acknowledged: self.acknowledged, timeout });
        }
        Ok(())
    }

    /// Returns `true` if something was queued.
    fn push(&mut self) -> Result<bool, TransferError> {
        let (endpoint, now) = self.driver.endpoint();
        let (mtu, max) = (endpoint.settings().mtu(), endpoint.settings().max_message);
        // Whole chunks, where they are large.
        let max = if mtu >= LARGE { (PIECE as u64 / mtu).max(1) * mtu } else { PIECE as u64 + 1 }.min(max) - 1;
        let mut queued = false;
        while self.summary.is_none() && self.pieces.len() < PIECES {
            let message = self.waiting.take().unwrap_or_else(|| {
                if self.made == self.bytes {
                    let checksum = self.hasher.clone().finalize();
                    return Summary { bytes: self.bytes, checksum }.write(None).into();
                }
                let size = (self.bytes - self.made).min(max) as usize;
                let mut message = vec![BYTES; size + 1];
                (self.fill)(&mut message[1..]);
                self.hasher.update(&message[1..]);
                self.made += size as u64;
                message.into()
            });
            match endpoint.send(now, self.peer, STREAM, message.clone()) {
                Ok(_) => {
                    self.summary = Summary::read(&message).map(|message| message.summary);
                    let payload = message.len() as u64 - 1;
                    self.pieces.push_back(self.summary.is_none().then_some(payload));
                    queued = true;
                }
                Err(SendError::Full) => {
                    self.waiting = Some(message);
                    break;
                }
                Err(SendError::NoPeer) => return Err(lost(self.at, CloseReason::Closed)),
                Err(SendError::TooLarge(max)) => {
                    let reason = format!("accepts messages of at most {max} B, this one has {} B", message.len());
                    return Err(TransferError::Lost { at: self.at, reason });
                }
            }
        }
        Ok(queued)
    }
}
