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

/// What a timeline has added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// End of the flow's last transmission.
    at: u64,
    pub(crate) parts: Parts,
    pub(crate) links: TopLinks,
}

impl Record {
    /// Adds the time from the last transmission to `done`, when the packet with these waits completed the flow. Returns
    /// what the waits leave of it: the flight.
    pub(crate) fn complete(&mut self, done: u64, waits: &Waits) -> u64 {
        // Complete while a superfluous retransmission was leaving.
        self.parts.serialisation -= self.at.saturating_sub(done);
        self.wait(done.saturating_sub(self.at), waits)
    }

    /// Adds a wait for a packet, as far as queues and pauses explain it; returns the rest.
    #[inline]
    fn wait(&mut self, span: u64, waits: &Waits) -> u64 {
        let queue = span.min(waits.queued());
        let pause = (span - queue).min(waits.paused());
        self.parts.queue += queue;
        self.parts.pause += pause;
        if queue > 0 {
            self.links.add(waits.order(), queue);
        }
        span - queue - pause
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    record: Record,
    /// Pauses of the host's link up to the last transmission, or up to the last event that unblocked the flow.
    paused: u64,
    /// Last event that unblocked the flow, since its last packet.
    unblocked: Option<(u64, Cause)>,
    /// Time of each of the last retransmissions, and the record before it.
    retransmissions: VecDeque<(u64, Record)>,
    /// Time of the last retransmission that is no longer among them.
    forgotten: Option<u64>,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Timeline {
            record: Record::default(),
            paused: 0,
            unblocked: None,
            retransmissions: VecDeque::new(),
            forgotten: None,
        }
    }

    /// Notes that the flow may go on sending after an event at `now`; the host's link has been paused for `paused`.
    #[inline]
    pub(crate) fn unblock(&mut self, now: u64, cause: Cause, paused: u64) {
        if now > self.record.at {
            self.unblocked = Some((now, cause));
            self.paused = paused;
        }
    }

    /// Starts with the first packet, which leaves from `start` to `end`.
    pub(crate) fn first(&mut self, start: u64, end: u64, paused: u64) {
        (self.record, self.unblocked, self.paused) = (Record { at: end, ..Record::default() }, None, paused);
        self.record.parts.serialisation = end - start;
    }

    /// Adds a packet that leaves from `start` to `end`. Pacing and scheme let it leave from `ready` on; the host's link
    /// has been paused for `paused`.
    #[inline]
    pub(crate) fn send(&mut self, start: u64, end: u64, ready: u64, paused: u64, retransmission: bool) {
        if retransmission {
            self.remember(start);
        }
        if start > self.record.at {
            let mut from = self.record.at;
            if let Some((now, cause)) = self.unblocked.take() {
                let span = now - from;
                from = now;
                match cause {
                    Cause::Timeout => self.record.parts.timeout += span,
                    Cause::Nack(_) if retransmission => self.record.parts.nack += span,
                    Cause::Start => self.record.parts.sender += span,
                    Cause::Reply(waits) | Cause::Nack(waits) => {
                        let rest = self.record.wait(span, &waits);
                        self.record.parts.sender += rest;
                    }
                }
            }
            let Record { parts, links, .. } = &mut self.record;
            let ready = ready.max(from).min(start);
            parts.sender += ready - from;
            let pause = (start - ready).min(paused - self.paused);
            let queue = start - ready - pause;
            parts.pause += pause;
            parts.queue += queue;
            links.host += queue;
        }
        let Record { at, parts, .. } = &mut self.record;
        parts.serialisation += end - start;
        (*at, self.paused) = (end, paused);
    }

    #[cold]
    fn remember(&mut self, start: u64) {
        if self.retransmissions.len() == MAX_RETRANSMISSIONS {
            self.forgotten = self.retransmissions.pop_front().map(|(time, _)| time);
        }
        self.retransmissions.push_back((start, self.record));
    }

    /// Returns the record up to `done`, when the flow was complete; later packets were superfluous retransmissions.
    /// `None`: there were too many of them.
    pub(crate) fn until(&self, done: u64) -> Option<Record> {
        if self.forgotten.is_some_and(|time| time > done) {
            return None;
        }
        let superfluous = self.retransmissions.iter().find(|(time, _)| *time > done);
        Some(superfluous.map_or(self.record, |(_, before)| *before))
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.retransmissions.capacity() * size_of::<(u64, Record)>()
    }
}
