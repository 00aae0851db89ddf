//! Timeline of a flow at its sender: what kept its packets from leaving, from the first one on.

use super::Waits;
use anabranch_outcome::FlowDelays;
use anabranch_units::Time;
use std::collections::VecDeque;

/// Retransmissions that a flow remembers; all that follow its last byte must be among them.
const MAX_RETRANSMISSIONS: usize = 256;

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
#[repr(C)]
pub(crate) struct TopLinks {
    host: u64,
    times: [u64; LINKS],
    orders: [u32; LINKS],
}

impl TopLinks {
    #[inline]
    fn add(&mut self, order: u32, time: u64) {
        match self.orders.iter().position(|held| *held == order) {
            Some(index) => self.times[index] += time,
            None => self.replace(order, time),
        }
    }

    #[inline(never)]
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

/// What a flow's packets waited for, between its first transmission and the last so far. Those that most packets add to come
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct Sums {
    sender: u64,
    queue: u64,
    links: TopLinks,
    pause: u64,
    /// Start of the first transmission.
    started: u64,
    timeout: u64,
    nack: u64,
}

impl Sums {
    /// Adds a wait for a packet, as far as queues and pauses explain it; returns the rest.
    #[inline]
    fn wait(&mut self, span: u64, waits: &Waits) -> u64 {
        let queue = span.min(waits.queued());
        if queue > 0 {
            self.queue += queue;
            self.links.add(waits.order, queue);
        }
        let pause = (span - queue).min(waits.paused);
        if pause > 0 {
            self.pause += pause;
        }
        span - queue - pause
    }

    fn waited(&self) -> u64 {
        self.sender + self.queue + self.pause + self.timeout + self.nack
    }
}

/// A timeline up to the end of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    at: u64,
    sums: Sums,
}

impl Record {
    /// Returns the parts of the time up to `done`, when the packet with these waits completed the flow, the flight being what no
    /// other part explains of its way, and the links.
    pub(crate) fn complete(mut self, done: u64, waits: &Waits) -> (FlowDelays, TopLinks) {
        // Complete while a superfluous retransmission was leaving: the part of it until then.
        // At least the wire times of the flow's packets, which its caller checks.
        let serialisation = self.at.min(done).saturating_sub(self.sums.started + self.sums.waited());
        let flight = self.sums.wait(done.saturating_sub(self.at), waits);
        let Sums { queue, pause, timeout, nack, sender, links, .. } = self.sums;
        let [queue, pause, timeout, nack, sender, serialisation, flight] =
            [queue, pause, timeout, nack, sender, serialisation, flight].map(Time::from_ps);
        let delays = FlowDelays { queue, pause, timeout, nack, sender, serialisation, flight, ..FlowDelays::default() };
        (delays, links)
    }
}

/// What unblocked a flow last; [`Waits`] beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Unblocked {
    /// Nothing since its last packet.
    Not,
    Start,
    Reply,
    Nack,
    Timeout,
}

/// Retransmissions that may turn out to be superfluous: those after the first transmission of all packets.
#[derive(Clone, Debug, Default)]
struct Retransmissions {
    /// Time of each of the last ones, and the record before it.
    last: VecDeque<(u64, Record)>,
    /// Time of the last one that is no longer among them.
    forgotten: Option<u64>,
}

/// The first line of the processor's cache has what every packet and every reply changes, the second what waits in queues add to.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Timeline {
    /// End of the flow's last transmission.
    at: u64,
    /// Time of the last event that unblocked the flow.
    unblocked_at: u64,
    waits: Waits,
    /// Packets that were never sent.
    unsent: u32,
    unblocked: Unblocked,
    sums: Sums,
    /// Pauses of the host's link up to the last transmission, or up to the last event that unblocked the flow.
    paused: u64,
    retransmissions: Option<Box<Retransmissions>>,
}

impl Timeline {
    /// Creates the timeline of a flow of this many packets.
    pub(crate) fn new(packets: u64) -> Self {
        Timeline {
            at: 0,
            unblocked_at: 0,
            waits: Waits::default(),
            // No flow has more.
            unsent: packets.try_into().unwrap_or(u32::MAX),
            unblocked: Unblocked::Not,
            sums: Sums::default(),
            paused: 0,
            retransmissions: None,
        }
    }

    /// Notes that the flow may go on sending after an event at `now`; the host's link has been paused for `paused`.
    #[inline]
    pub(crate) fn unblock(&mut self, now: u64, cause: Cause, paused: u64) {
        if now > self.at {
            self.unblocked_at = now;
            self.unblocked = match cause {
                Cause::Start => Unblocked::Start,
                Cause::Timeout => Unblocked::Timeout,
                Cause::Reply(waits) => {
                    self.waits = waits;
                    Unblocked::Reply
                }
                Cause::Nack(waits) => {
                    self.waits = waits;
                    Unblocked::Nack
                }
            };
            self.note_pauses(paused);
        }
    }

    /// The duration never falls: without pauses its line of the cache is not touched.
    #[inline]
    fn note_pauses(&mut self, paused: u64) {
        if paused > 0 {
            self.paused = paused;
        }
    }

    /// Starts with the first packet, which leaves from `start` to `end`.
    pub(crate) fn first(&mut self, start: u64, end: u64, paused: u64) {
        (self.at, self.unblocked, self.paused) = (end, Unblocked::Not, paused);
        self.sums = Sums { started: start, ..Sums::default() };
        self.unsent = self.unsent.saturating_sub(1);
    }

    /// Adds a packet that leaves from `start` to `end`. Pacing and scheme let it leave from `ready` on; the host's link
    /// has been paused for `paused`.
    #[inline]
    pub(crate) fn send(&mut self, start: u64, end: u64, ready: u64, paused: u64, retransmission: bool) {
        match retransmission {
            true if self.unsent == 0 => self.remember(start),
            true => {}
            false => self.unsent = self.unsent.saturating_sub(1),
        }
        if start > self.at {
            self.wait(start, ready, paused, retransmission);
        }
        // Packets of several ports overlap.
        self.at = end.max(self.at);
        self.note_pauses(paused);
    }

    /// Adds the time from the last transmission to the next, at `start`.
    #[inline]
    fn wait(&mut self, start: u64, ready: u64, paused: u64, retransmission: bool) {
        let (mut from, sums) = (self.at, &mut self.sums);
        let unblocked = std::mem::replace(&mut self.unblocked, Unblocked::Not);
        if unblocked != Unblocked::Not {
            let span = self.unblocked_at - from;
            from = self.unblocked_at;
            match unblocked {
                Unblocked::Timeout => sums.timeout += span,
                Unblocked::Nack if retransmission => sums.nack += span,
                Unblocked::Reply | Unblocked::Nack => sums.sender += sums.wait(span, &self.waits),
                Unblocked::Start | Unblocked::Not => sums.sender += span,
            }
        }
        let ready = ready.max(from).min(start);
        sums.sender += ready - from;
        let blocked = start - ready;
        if blocked > 0 {
            let pause = if paused > 0 { blocked.min(paused - self.paused) } else { 0 };
            let queue = blocked - pause;
            sums.pause += pause;
            sums.queue += queue;
            sums.links.host += queue;
        }
    }

    fn record(&self) -> Record {
        Record { at: self.at, sums: self.sums }
    }

    #[cold]
    fn remember(&mut self, start: u64) {
        let record = self.record();
        let Retransmissions { last, forgotten } = self.retransmissions.get_or_insert_default().as_mut();
        if last.len() == MAX_RETRANSMISSIONS {
            *forgotten = last.pop_front().map(|(time, _)| time);
        }
        last.push_back((start, record));
    }

    /// Returns the record up to `done`, when the flow was complete; later packets were superfluous retransmissions.
    /// `None`: there were too many of them.
    pub(crate) fn until(&self, done: u64) -> Option<Record> {
        let Some(Retransmissions { last, forgotten }) = self.retransmissions.as_deref() else {
            return Some(self.record());
        };
        if forgotten.is_some_and(|time| time > done) {
            return None;
        }
        let superfluous = last.iter().find(|(time, _)| *time > done);
        Some(superfluous.map_or(self.record(), |(_, before)| *before))
    }

    pub(crate) fn bytes(&self) -> usize {
        let remembered = self
            .retransmissions
            .as_deref()
            .map_or(0, |all| size_of::<Retransmissions>() + all.last.capacity() * size_of::<(u64, Record)>());
        size_of::<Self>() + remembered
    }
}
