//! Timeline of a flow at its sender: what kept its packets from leaving, from the first one on.

use super::Waits;
use std::collections::VecDeque;

/// Retransmissions that a flow remembers; all that follow its last byte must be among them.
const MAX_RETRANSMISSIONS: usize = 256;

/// Durations in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) queue: u64,
    pub(crate) pause: u64,
    pub(crate) timeout: u64,
    pub(crate) nack: u64,
    pub(crate) sender: u64,
    pub(crate) serialisation: u64,
}

/// Event that let a blocked flow continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its own start.
    Start,
    /// A reply; with it the waits of the packet that it is for.
    Reply(Waits),
    /// A reply that reports a loss: the same, unless a retransmission follows.
    Nack(Waits),
    Timeout,
}

const LINKS: usize = 3;

/// Time per link, of those that account for most of it: exact for the host's own link; a lower bound for others, short
/// by at most a quarter of all time (Misra and Gries, 1982).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TopLinks {
    host: u64,
    times: [u64; LINKS],
    orders: [u32; LINKS],
}

impl TopLinks {
    #[inline]
    fn add(&mut self, order: u32, time: u64) {
        let held = |index: &usize| self.times[*index] > 0 && self.orders[*index] == order;
        match (0..LINKS).find(held) {
            Some(index) => self.times[index] += time,
            None => self.replace(order, time),
        }
    }

    fn replace(&mut self, order: u32, time: u64) {
        let least = self.times.into_iter().min().unwrap_or(0);
        let cut = least.min(time);
        self.times.iter_mut().for_each(|held| *held -= cut);
        if time > cut
            && let Some(index) = self.times.iter().position(|held| *held == 0)
        {
            (self.orders[index], self.times[index]) = (order, time - cut);
        }
    }

    /// Returns the order of the link with the most time, and that time; `None` as order: the host's own link.
    pub(crate) fn longest(&self) -> Option<(Option<u32>, u64)> {
        let others = self.orders.iter().zip(self.times).map(|(order, time)| (time, Some(*order)));
        let all = others.chain([(self.host, None)]);
        all.max().filter(|most| most.0 > 0).map(|(time, order)| (order, time))
    }
}

/// What a flow's packets waited for, between its first transmission and the last so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    /// Start of the first transmission.
    started: u64,
    queue: u64,
    pause: u64,
    timeout: u64,
    nack: u64,
    sender: u64,
    links: TopLinks,
}

impl Sums {
    /// Adds a wait for a packet, as far as queues and pauses explain it; returns the rest.
    #[inline]
    fn wait(&mut self, span: u64, waits: &Waits) -> u64 {
        let queue = span.min(waits.queued());
        let pause = (span - queue).min(waits.paused);
        self.queue += queue;
        self.pause += pause;
        if queue > 0 {
            self.links.add(waits.order, queue);
        }
        span - queue - pause
    }

    fn waited(&self) -> u64 {
        self.queue + self.pause + self.timeout + self.nack + self.sender
    }
}

/// A timeline up to the end of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    at: u64,
    sums: Sums,
}

impl Record {
    /// Returns the parts of the time up to `done`, when the packet with these waits completed the flow, what no part
    /// explains of its way (the flight), and the links.
    pub(crate) fn complete(mut self, done: u64, waits: &Waits) -> (Parts, u64, TopLinks) {
        // Complete while a superfluous retransmission was leaving: the part of it until then.
        let serialisation = self.at.min(done) - self.sums.started - self.sums.waited();
        let flight = self.sums.wait(done.saturating_sub(self.at), waits);
        let Sums { queue, pause, timeout, nack, sender, links, .. } = self.sums;
        (Parts { queue, pause, timeout, nack, sender, serialisation }, flight, links)
    }
}

/// The first line of the processor's cache has what every packet and every reply changes.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Timeline {
    /// End of the flow's last transmission.
    at: u64,
    /// Pauses of the host's link up to the last transmission, or up to the last event that unblocked the flow.
    paused: u64,
    /// Last event that unblocked the flow, since its last packet.
    unblocked: Option<(u64, Cause)>,
    sums: Sums,
    /// Time of each of the last retransmissions, and the record before it.
    retransmissions: VecDeque<(u64, Record)>,
    /// Time of the last retransmission that is no longer among them.
    forgotten: Option<u64>,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Timeline {
            at: 0,
            paused: 0,
            unblocked: None,
            sums: Sums::default(),
            retransmissions: VecDeque::new(),
            forgotten: None,
        }
    }

    /// Notes that the flow may go on sending after an event at `now`; the host's link has been paused for `paused`.
    #[inline]
    pub(crate) fn unblock(&mut self, now: u64, cause: Cause, paused: u64) {
        if now > self.at {
            self.unblocked = Some((now, cause));
            self.paused = paused;
        }
    }

    /// Starts with the first packet, which leaves from `start` to `end`.
    pub(crate) fn first(&mut self, start: u64, end: u64, paused: u64) {
        (self.at, self.unblocked, self.paused) = (end, None, paused);
        self.sums = Sums { started: start, ..Sums::default() };
    }

    /// Adds a packet that leaves from `start` to `end`. Pacing and scheme let it leave from `ready` on; the host's link
    /// has been paused for `paused`.
    #[inline]
    pub(crate) fn send(&mut self, start: u64, end: u64, ready: u64, paused: u64, retransmission: bool) {
        if retransmission {
            self.remember(start);
        }
        if start > self.at {
            self.wait(start, ready, paused, retransmission);
        }
        (self.at, self.paused) = (end, paused);
    }

    /// Adds the time from the last transmission to the next, at `start`.
    #[inline]
    fn wait(&mut self, start: u64, ready: u64, paused: u64, retransmission: bool) {
        let (mut from, sums) = (self.at, &mut self.sums);
        if let Some((now, cause)) = self.unblocked.take() {
            let span = now - from;
            from = now;
            match cause {
                Cause::Timeout => sums.timeout += span,
                Cause::Nack(_) if retransmission => sums.nack += span,
                Cause::Start => sums.sender += span,
                Cause::Reply(waits) | Cause::Nack(waits) => sums.sender += sums.wait(span, &waits),
            }
        }
        let ready = ready.max(from).min(start);
        sums.sender += ready - from;
        let pause = (start - ready).min(paused - self.paused);
        let queue = start - ready - pause;
        sums.pause += pause;
        sums.queue += queue;
        sums.links.host += queue;
    }

    fn record(&self) -> Record {
        Record { at: self.at, sums: self.sums }
    }

    #[cold]
    fn remember(&mut self, start: u64) {
        if self.retransmissions.len() == MAX_RETRANSMISSIONS {
            self.forgotten = self.retransmissions.pop_front().map(|(time, _)| time);
        }
        self.retransmissions.push_back((start, self.record()));
    }

    /// Returns the record up to `done`, when the flow was complete; later packets were superfluous retransmissions.
    /// `None`: there were too many of them.
    pub(crate) fn until(&self, done: u64) -> Option<Record> {
        if self.forgotten.is_some_and(|time| time > done) {
            return None;
        }
        let superfluous = self.retransmissions.iter().find(|(time, _)| *time > done);
        Some(superfluous.map_or(self.record(), |(_, before)| *before))
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.retransmissions.capacity() * size_of::<(u64, Record)>()
    }
}
