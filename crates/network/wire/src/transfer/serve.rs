//! Receiver of transfers.

use super::{
    BYTES, CONFIRMATIONS, ECN_TEXT, PAYLOAD, POLL_INTERVAL, Summary, TransferError, close_reason_text, fragments_text,
};
use crate::{Datapath, Driver, PeerId};
use anabranch_endpoint::{CloseReason, Event};
use anabranch_units::Time;
use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
};

/// Unacknowledged confirmations per sender.
const MAX_CONFIRMATIONS: usize = 64;

/// Result of an incoming transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub peer: PeerId,
    /// Address of the peer.
    pub from: Option<SocketAddr>,
    /// Summary of the bytes received.
    pub summary: Summary,
    /// Summary of the bytes sent, as the sender reports it.
    pub sent: Summary,
    /// Time from the arrival of the first packet to the arrival of the sender's summary.
    pub took: Time,
}

impl Received {
    /// Returns `true` if bytes arrived and match the sender's summary.
    pub fn is_whole(&self) -> bool {
        self.summary == self.sent && self.summary.bytes > 0
    }
}

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

struct Server<'a, D> {
    driver: &'a mut Driver<D>,
    poll: &'a mut dyn FnMut(Option<&Received>) -> bool,
    notice: &'a mut dyn FnMut(&str, Option<SocketAddr>, &str),
    stopped: bool,
    incoming: BTreeMap<(PeerId, u32), Incoming>,
    /// Unacknowledged confirmations; `true` for that of a whole transfer.
    unacknowledged: BTreeMap<PeerId, VecDeque<bool>>,
    /// Whole transfers whose senders have acknowledged the confirmation or are departed.
    served: u64,
}

/// Receives transfers and confirms them until `poll`, called periodically and with each finished transfer, returns
/// `false`.
///
/// `notice` receives what happened to a peer (`refused`, `lost` amid a transfer, `fragmented`), its address and the reason. With `once` it returns when the first sender of a
/// [whole](Received::is_whole) transfer has acknowledged the confirmation or is gone.
pub fn serve<D: Datapath>(
    driver: &mut Driver<D>,
    once: bool,
    poll: &mut dyn FnMut(Option<&Received>) -> bool,
    notice: &mut dyn FnMut(&str, Option<SocketAddr>, &str),
) -> Result<(), TransferError> {
    let (incoming, unacknowledged) = (BTreeMap::new(), BTreeMap::new());
    let mut server = Server { driver, poll, notice, stopped: false, incoming, unacknowledged, served: 0 };
    let ran = server.run(once);
    server.driver.endpoint().0.close_all();
    let left = server.driver.finish();
    ran?;
    Ok(left?)
}

impl<D: Datapath> Server<'_, D> {
    fn run(&mut self, once: bool) -> Result<(), TransferError> {
        let mut last_poll: Option<Time> = None;
        loop {
            let next = self.driver.work()?;
            let served = self.served;
            self.events();
            let now = self.driver.datapath().now();
            if served != self.served || last_poll.is_none_or(|at| now.saturating_sub(at) >= POLL_INTERVAL) {
                last_poll = Some(now);
                while let Some((at, reason)) = self.driver.datapath().poll_refusal() {
                    (self.notice)("warning", Some(at), &format!("cannot be reached: {reason}"));
                }
                if self.stopped || (once && self.served > 0) || !(self.poll)(None) {
                    return Ok(());
                }
            }
            // Replies to events are still to be sent.
            let replies = self.driver.endpoint().0.poll_timeout();
            self.driver.wait([next, replies].into_iter().flatten().fold(now + POLL_INTERVAL, Time::min))?;
        }
    }

    fn events(&mut self) {
        loop {
            let (endpoint, now) = self.driver.endpoint();
            let Some(event) = endpoint.poll_event() else { return };
            match event {
                Event::Open { .. } | Event::Silent { .. } => {}
                Event::Sent { peer, .. } => self.on_confirmation_acknowledged(peer),
                Event::Received { peer, stream, bytes, began, .. } => {
                    self.on_message([began, now], peer, stream, &bytes);
                    self.driver.endpoint().0.recycle(bytes);
                }
                Event::Lost { peer, reason } => self.on_lost(peer, reason),
                Event::Refused { peer, from, reason } => {
                    let at = from.or_else(|| self.driver.datapath().peer_at(peer?));
                    (self.notice)("refused", at, &close_reason_text(reason));
                }
                Event::EcnDropped { peer } => {
                    (self.notice)("warning", self.driver.datapath().peer_at(peer), ECN_TEXT);
                }
                Event::Fragmented { peer, sizes } => {
                    let text = format!("receives packets in fragments: {}", fragments_text(sizes, PAYLOAD));
                    (self.notice)("fragmented", self.driver.datapath().peer_at(peer), &text);
                }
            }
        }
    }

    /// A peer that is departed counts as well.
    fn on_confirmation_acknowledged(&mut self, peer: PeerId) {
        if let Some(confirmations) = self.unacknowledged.get_mut(&peer) {
            self.served += u64::from(confirmations.pop_front() == Some(true));
            if confirmations.is_empty() {
                self.unacknowledged.remove(&peer);
            }
        }
    }

    /// The first packet arrived at `began`.
    fn on_message(&mut self, [began, now]: [Time; 2], peer: PeerId, stream: u32, message: &[u8]) {
        let Some(statement) = Summary::read(message) else {
            if let Some((&BYTES, bytes)) = message.split_first() {
                let incoming = self.incoming.entry((peer, stream)).or_insert_with(|| Incoming::new(began));
                incoming.hasher.update(bytes);
                incoming.bytes += bytes.len() as u64;
            }
            return;
        };
        if statement.took.is_some() {
            return;
        }
        let Incoming { hasher, bytes, since } =
            self.incoming.remove(&(peer, stream)).unwrap_or_else(|| Incoming::new(began));
        let summary = Summary { bytes, checksum: hasher.finalize() };
        let from = self.driver.datapath().peer_at(peer);
        let received = Received { peer, from, summary, sent: statement.summary, took: now.saturating_sub(since) };
        if self.unacknowledged.get(&peer).is_some_and(|all| all.len() >= MAX_CONFIRMATIONS) {
            // It requests confirmations and acknowledges none.
            self.driver.endpoint().0.close(peer);
            return self.on_lost(peer, CloseReason::Closed);
        }
        // The peer may be departed.
        let confirmation = summary.write(Some(received.took));
        if self.driver.endpoint().0.send(now, peer, stream | CONFIRMATIONS, confirmation.into()).is_ok() {
            self.unacknowledged.entry(peer).or_default().push_back(received.is_whole());
        }
        self.stopped |= !(self.poll)(Some(&received));
    }

    fn on_lost(&mut self, peer: PeerId, reason: CloseReason) {
        let received: u64 = self.incoming.iter().filter(|((of, _), _)| *of == peer).map(|(_, of)| of.bytes).sum();
        if received > 0 {
            let at = self.driver.datapath().peer_at(peer);
            let reason = format!("{}; {received} B of its transfer were received", close_reason_text(reason));
            (self.notice)("lost", at, &reason);
        }
        self.incoming.retain(|(of, _), _| *of != peer);
        while self.unacknowledged.contains_key(&peer) {
            self.on_confirmation_acknowledged(peer);
        }
    }
}
