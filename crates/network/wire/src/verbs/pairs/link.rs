#[cfg(test)]
mod model;
mod send;

use super::{
    own::{Capacity, Own, capacity},
    trials::Trials,
};
use crate::{
    Kind, Label, WireError,
    verbs::{
        control::{Control, Frame, Greeting, Pair, no_reply, unknown},
        gid::{self, LocalGid},
        sys::{AddressVector, Device, QueuePairs, Remote, WorkCompletion},
    },
};
use anabranch_endpoint::header;
use anabranch_random::Stream;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::SocketAddr,
    ops::Range,
    time::{Duration, Instant},
};

/// Work requests of a queue pair under way.
pub(super) const DEPTH: u32 = 128;
/// Time after which a failed queue pair counts as drained though its driver has not returned all receives.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);
/// Time after which a datagram that found its queue pair failed is reported: its owner would send it again at once.
const REFUSAL_DELAY: Duration = Duration::from_millis(1);
/// Pause after a queue pair could not be connected again, doubled up to 1.6 s: while the kernel cannot reach the peer's
/// address, each try may block for a second.
const RETRY_DELAY: Duration = Duration::from_millis(100);
const MAX_DOUBLINGS: u32 = 4;
/// Maximum wait while a queue pair is connected again.
const FAILING_INTERVAL: Duration = Duration::from_millis(1);
/// Header of a datagram, by which its endpoint finds it again.
type Name = [u8; header::DATA_HEADER];

#[derive(Clone, Copy, Debug)]
struct Posted {
    number: u64,
    what: What,
    name: Name,
    label: Label,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Datagram {
        slot: u32,
    },
    Write,
    /// A write that the peer is not told of.
    Probe,
    /// A write to the memory for probes, which tests whether its label carries data again.
    Trial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not yet connected.
    New,
    Ready,
    /// Failed: its requests are still being returned.
    Draining,
    /// Failed: waits for the peer, or to be connected again.
    Waiting,
    /// Of the caller: offered to the peer, with its receives posted.
    Offered,
}

#[derive(Debug)]
struct Queue {
    /// Index in the device, queue pair number, sequence number of its first packet.
    index: usize,
    number: u32,
    psn: u32,
    label: Label,
    state: State,
    /// In order, which is that of their completions.
    posted: VecDeque<Posted>,
    /// Failed ones: the peer has the number of those that have arrived.
    unknown: Vec<Posted>,
    /// Messages since it was connected: sent ones that have certainly arrived, and received ones.
    delivered: u64,
    arrived: u64,
    /// Receives that are posted.
    receives: u32,
    failed_at: Option<Instant>,
    /// The peer's request to connect it again.
    request: Option<Pair>,
    /// Value of `choices` when it was last chosen.
    used: u64,
}

/// In the order of arrival.
#[derive(Debug)]
enum Event {
    /// Queue, slot, bytes.
    Datagram(usize, u32, u32),
    Completed(Label, Box<Name>, bool),
    Written(u32, u64),
}

pub(super) enum LinkStatus {
    Healthy,
    /// The peer has disconnected, or violates the protocol.
    Disconnected(WireError),
    /// A local operation failed.
    Failed(WireError),
}

/// Has queue pairs and memory of its own, so that nothing of it remains when it is dropped.
pub(super) struct Link<D = Device> {
    pub(super) at: SocketAddr,
    pub(super) control: Control,
    pub(super) device: D,
    /// Name of the device, and index that was requested.
    port: (String, Option<u8>),
    gid: LocalGid,
    theirs: Greeting,
    class: u8,
    mtu: u8,
    is_reliable: bool,
    queues: Vec<Queue>,
    /// Queues by queue pair number.
    numbers: BTreeMap<u32, usize>,
    choices: u64,
    last_data: usize,
    pub(super) relabelled: u64,
    receives: u32,
    /// Bytes of a memory slot: receives of all queues first, then sends, then memory for probes.
    size: u32,
    free: Vec<u32>,
    sends: usize,
    probe: (u64, u32),
    /// Address and key of that of the peer.
    their_probe: (u64, u32),
    next_number: u64,
    /// Numbers of the receives that are posted, by slot: others are of a connection before, or repeated. 0: none.
    expected: Vec<u64>,
    events: VecDeque<Event>,
    refused: VecDeque<(Instant, Posted)>,
    trials: Trials,
    /// Why queue pairs could not be connected again, how often the pause was doubled, and when to retry.
    trouble: Option<(WireError, u32, Instant)>,
    /// Streams whose writes are no longer wanted.
    revoked: BTreeSet<u32>,
    draws: Stream,
    pub(super) last_error: Option<u32>,
    pub(super) began: Instant,
    pub(super) called: bool,
    /// The peer has sent something, or the owner added it.
    pub(super) known: bool,
    /// The peer has disconnected, or an unreliable queue pair has failed.
    pub(super) broken: bool,
    /// The owner was notified.
    pub(super) is_told: bool,
}

impl Link {
    /// Returns the queue pairs for a peer's greeting, with the local greeting.
    pub(super) fn new(
        own: &Own,
        draws: &mut Stream,
        control: Control,
        theirs: &Greeting,
        called: bool,
    ) -> Result<(Self, Greeting), WireError> {
        let count = own.queues.min(theirs.queues).min(own.labels.min(theirs.labels));
        // Chunks are alike; a caller does not set how much memory it takes.
        let size = if own.is_reliable() { own.largest } else { own.largest.max(theirs.largest) };
        let capacity = capacity(own.is_reliable(), count, size, own.probe);
        let index = gid::choose(&own.name, own.settings.gid_index, control.local().map(|at| at.ip()))?;
        let completions = count * (capacity.receives + DEPTH);
        let mut device = Device::new(&own.domain, index, capacity.bytes, completions, &own.settings)?;
        let pairs: Result<Vec<_>, _> = (0..count).map(|_| device.create(DEPTH, capacity.receives)).collect();
        let ours = own.greeting(index)?;
        let port = (own.name.clone(), own.settings.gid_index, index);
        let link = Link::of(control, (device, pairs?), (size, &capacity), port, (&ours, theirs), draws, called);
        Ok((Link { class: own.class, ..link }, ours))
    }
}

impl<D: QueuePairs> Link<D> {
    /// Of a device with its queue pairs, each an index and a number, and slots of this many bytes. `port`: name of the device,
    /// index of the GID that was requested, and the one that it has.
    pub(super) fn of(
        control: Control,
        (device, pairs): (D, Vec<(usize, u32)>),
        (size, capacity): (u32, &Capacity),
        (name, requested, index): (String, Option<u8>, u8),
        (ours, theirs): (&Greeting, &Greeting),
        draws: &mut Stream,
        called: bool,
    ) -> Self {
        let queue = |((index, number), label)| Queue {
            index,
            number,
            psn: 0,
            label,
            state: State::New,
            posted: VecDeque::new(),
            unknown: Vec::new(),
            delivered: 0,
            arrived: 0,
            receives: 0,
            failed_at: None,
            request: None,
            used: 0,
        };
        let queues: Vec<Queue> = pairs.into_iter().zip(0..).map(queue).collect();
        let receives = queues.len() as u32 * capacity.receives;
        let slots = receives..receives + capacity.sends;
        let probe = (u64::from(slots.end) * u64::from(size), ours.probe);
        Link {
            at: control.peer,
            control,
            device,
            port: (name, requested),
            gid: LocalGid { index, gid: ours.gid },
            theirs: *theirs,
            class: 0,
            mtu: ours.mtu.min(theirs.mtu),
            is_reliable: ours.probe > 0,
            numbers: queues.iter().enumerate().map(|(at, queue)| (queue.number, at)).collect(),
            queues,
            choices: 0,
            last_data: 0,
            relabelled: 0,
            receives: capacity.receives,
            size,
            sends: slots.len(),
            free: slots.collect(),
            probe,
            their_probe: (0, 0),
            next_number: 0,
            expected: vec![0; receives as usize],
            events: VecDeque::new(),
            refused: VecDeque::new(),
            trials: Trials::default(),
            trouble: None,
            revoked: BTreeSet::new(),
            draws: Stream::keyed(draws.bits(), 0, "queue pairs"),
            last_error: None,
            began: Instant::now(),
            called,
            known: called,
            broken: false,
            is_told: false,
        }
    }

    pub(super) fn request_queues(&mut self) -> Result<(), WireError> {
        (0..self.queues.len()).try_for_each(|queue| self.request(queue))
    }

    pub(super) fn is_ready(&self) -> bool {
        self.queues.iter().all(|queue| queue.state != State::New)
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn slot_range(&self, slot: u32) -> (u64, u32) {
        (u64::from(slot) * u64::from(self.size), self.size)
    }

    fn receives_of(&self, queue: usize) -> Range<u32> {
        queue as u32 * self.receives..(queue as u32 + 1) * self.receives
    }

    /// Moves a queue pair to INIT and posts its receives, but those whose datagrams have not been taken.
    fn initialise(&mut self, queue: usize) -> Result<(), WireError> {
        let index = self.queues[queue].index;
        if self.queues[queue].state != State::New {
            self.refresh_gid();
            self.device.reset(index)?;
        }
        self.device.initialise(index)?;
        let of = &mut self.queues[queue];
        // Neither another packet of the connection before is accepted, nor is this one taken for that.
        of.psn = (of.psn + 1 + self.draws.below((1 << 24) - 1) as u32) % (1 << 24);
        of.receives = 0;
        let slots = self.receives_of(queue);
        self.expected[slots.start as usize..slots.end as usize].fill(0);
        let is_taken =
            |slot: &u32| !self.events.iter().any(|event| matches!(event, Event::Datagram(_, of, _) if of == slot));
        let slots: Vec<u32> = slots.filter(is_taken).collect();
        slots.into_iter().try_for_each(|slot| self.post_receive(queue, slot))
    }

    fn post_receive(&mut self, queue: usize, slot: u32) -> Result<(), WireError> {
        self.next_number += 1;
        let number = self.next_number << 16 | u64::from(slot);
        self.device.post_receive(self.queues[queue].index, number, self.slot_range(slot))?;
        self.expected[slot as usize] = number;
        self.queues[queue].receives += 1;
        Ok(())
    }

    fn refresh_gid(&mut self) {
        let Link { port: (name, requested), control, device, .. } = self;
        let choose = || gid::choose(name, *requested, control.local().map(|at| at.ip())).ok();
        self.gid = self.gid.refreshed(|index| device.gid(index).ok(), choose);
        self.device.use_gid(self.gid.index);
    }

    /// Of the caller: requests the queue pair of the peer.
    fn request(&mut self, queue: usize) -> Result<(), WireError> {
        self.initialise(queue)?;
        let of = &mut self.queues[queue];
        if of.state != State::New {
            of.state = State::Offered;
        }
        let pair = self.pair(queue);
        self.control.post(&Frame::Queue { queue: queue as u32, pair })
    }

    /// Of the listener: replies to that.
    fn reply(&mut self, queue: usize, request: Pair, now: Instant) -> Result<(), WireError> {
        self.resolve(queue, request.arrived)?;
        self.initialise(queue)?;
        if self.connect(queue, request, now)? {
            let pair = self.pair(queue);
            self.control.post(&Frame::Ready { queue: queue as u32, pair })?;
        }
        Ok(())
    }

    /// Returns a queue pair for the peer, and counts its messages from zero.
    fn pair(&mut self, queue: usize) -> Pair {
        let of = &mut self.queues[queue];
        let (arrived, (at, key)) = (std::mem::take(&mut of.arrived), self.device.window(self.probe.0));
        Pair { qpn: of.number, psn: of.psn, arrived, at, key, gid: self.gid.gid }
    }

    /// Returns `false` if one that has failed is to be connected later. Its requests are resolved.
    fn connect(&mut self, queue: usize, pair: Pair, now: Instant) -> Result<bool, WireError> {
        let Pair { qpn, psn, at, key, gid, .. } = pair;
        (self.their_probe, self.theirs.gid) = ((at, key), gid);
        // With flow label 0 the kernel would select the port.
        let of = &mut self.queues[queue];
        let address = AddressVector { gid, flow_label: of.label + 1, class: self.class };
        match self.device.connect(of.index, &Remote { qpn, psn, mtu: self.mtu, address }, of.psn) {
            Ok(()) => {
                (of.state, of.failed_at, of.request) = (State::Ready, None, None);
                self.trouble = None;
                Ok(true)
            }
            Err(error) if of.state == State::New => Err(error),
            Err(error) => {
                (of.state, of.request) = (State::Waiting, Some(Pair { arrived: 0, ..pair }));
                // One that is here already was doubled when this try began.
                let (doublings, retry_at) = self
                    .trouble
                    .take()
                    .map_or((0, now + RETRY_DELAY), |(_, doublings, retry_at)| (doublings, retry_at));
                self.trouble = Some((error, doublings, retry_at));
                Ok(false)
            }
        }
    }

    /// Reports failed requests. The peer has received `arrived` messages, the first of all since the queue pair was connected.
    fn resolve(&mut self, queue: usize, arrived: u64) -> Result<(), WireError> {
        let Link { queues, events, free, at, .. } = self;
        let of = &mut queues[queue];
        let mut more = arrived.checked_sub(std::mem::take(&mut of.delivered)).ok_or_else(|| unknown(*at))?;
        for posted in of.unknown.drain(..) {
            let has_arrived = more > 0 && posted.is_message();
            more -= u64::from(has_arrived);
            free.extend(posted.slot());
            if posted.what != What::Trial {
                events.push_back(Event::Completed(posted.label, Box::new(posted.name), has_arrived));
            }
        }
        if more == 0 { Ok(()) } else { Err(unknown(*at)) }
    }

    pub(super) fn poll_control(&mut self, timeout: Duration, now: Instant) -> LinkStatus {
        if let Err(error) = self.control.flush() {
            return LinkStatus::Disconnected(error);
        }
        if let Err(error) = self.advance(timeout, now) {
            return LinkStatus::Failed(error);
        }
        loop {
            let frame = match self.control.poll() {
                Ok(None) => return LinkStatus::Healthy,
                Ok(Some(frame)) => frame,
                Err(error) => return LinkStatus::Disconnected(error),
            };
            let known = |queue: u32| self.queues.get(queue as usize).map(|of| (queue as usize, of.state));
            let done = match frame {
                Frame::Queue { queue, pair } if !self.called => match known(queue) {
                    Some((queue, State::New)) => self.reply(queue, pair, now),
                    Some((queue, State::Ready | State::Draining | State::Waiting)) if self.is_reliable => {
                        self.queues[queue].request = Some(pair);
                        self.fail(queue, now).and_then(|()| self.advance(timeout, now))
                    }
                    _ => return LinkStatus::Disconnected(unknown(self.at)),
                },
                Frame::Ready { queue, pair } if self.called => match known(queue) {
                    Some((queue, State::New | State::Offered)) => {
                        self.resolve(queue, pair.arrived).and_then(|()| self.connect(queue, pair, now)).map(drop)
                    }
                    _ => return LinkStatus::Disconnected(unknown(self.at)),
                },
                Frame::Failed { queue } if self.called && self.is_reliable => match known(queue) {
                    Some((queue, _)) => self.fail(queue, now),
                    None => return LinkStatus::Disconnected(unknown(self.at)),
                },
                _ => return LinkStatus::Disconnected(unknown(self.at)),
            };
            if let Err(error) = done {
                return LinkStatus::Failed(error);
            }
        }
    }

    /// Drains a queue pair, after which the peer does: no packet of it arrives later.
    fn fail(&mut self, queue: usize, now: Instant) -> Result<(), WireError> {
        let of = &mut self.queues[queue];
        if of.state != State::Ready {
            return Ok(());
        }
        (of.state, of.failed_at) = (State::Draining, Some(now));
        self.trials.on_failure(of.label, now);
        self.device.fail(of.index)
    }

    /// Returns `true` if a queue pair may be connected now: after a failure one at a time.
    fn begin_try(&mut self, now: Instant) -> bool {
        match &mut self.trouble {
            None => true,
            Some((_, _, retry_at)) if now < *retry_at => false,
            Some((_, doublings, retry_at)) => {
                *doublings = (*doublings + 1).min(MAX_DOUBLINGS);
                *retry_at = now + RETRY_DELAY * (1 << *doublings);
                true
            }
        }
    }

    /// Connects drained queue pairs again.
    fn advance(&mut self, timeout: Duration, now: Instant) -> Result<(), WireError> {
        for queue in 0..self.queues.len() {
            let of = &self.queues[queue];
            let Some(failed) = of.failed_at.map(|at| now.saturating_duration_since(at)) else { continue };
            if failed > timeout {
                return Err(self.trouble.take().map_or_else(|| no_reply(self.at), |(error, ..)| error));
            }
            let is_drained = of.posted.is_empty() && (of.receives == 0 || failed > FLUSH_TIMEOUT);
            let is_due = match of.state {
                State::Draining => is_drained,
                State::Waiting => of.request.is_some(),
                State::New | State::Ready | State::Offered => false,
            };
            let request = of.request;
            match request {
                _ if !is_due => {}
                None if !self.called => {
                    self.queues[queue].state = State::Waiting;
                    self.control.post(&Frame::Failed { queue: queue as u32 })?;
                }
                _ if !self.begin_try(now) => {}
                Some(request) if !self.called => self.reply(queue, request, now)?,
                _ => self.request(queue)?,
            }
        }
        Ok(())
    }

    /// Returns the time after which it is to be polled, even if nothing arrives.
    pub(super) fn poll_interval(&self, now: Instant) -> Option<Duration> {
        let is_failing = self.queues.iter().any(|queue| queue.failed_at.is_some()) || !self.refused.is_empty();
        let failing = is_failing.then_some(FAILING_INTERVAL);
        let trial = self.trials.next(now, |label| self.trial_queue(label).is_some());
        failing.into_iter().chain(trial).min()
    }

    pub(super) fn gather(&mut self, now: Instant) -> Result<(), WireError> {
        let Link { device, numbers, queues, free, events, broken, last_error, is_reliable, expected, trials, .. } =
            self;
        let (mut failing, mut spent) = (Vec::new(), Vec::new());
        let gathered = device.poll(&mut |completion| {
            let (WorkCompletion::Sent { qpn, .. }
            | WorkCompletion::Arrived { qpn, .. }
            | WorkCompletion::Received { qpn, .. }
            | WorkCompletion::Withdrawn { qpn, .. }) = completion;
            let Some(&at) = numbers.get(&qpn) else { return };
            let of = &mut queues[at];
            if let WorkCompletion::Arrived { number, .. }
            | WorkCompletion::Received { number, .. }
            | WorkCompletion::Withdrawn { number, .. } = completion
            {
                let slot = (number & 0xffff) as usize;
                if expected.get(slot) != Some(&number) {
                    return;
                }
                (expected[slot], of.receives) = (0, of.receives.saturating_sub(1));
            }
            match completion {
                WorkCompletion::Received { number, bytes, .. } => {
                    of.arrived += 1;
                    events.push_back(Event::Datagram(at, (number & 0xffff) as u32, bytes));
                }
                WorkCompletion::Arrived { number, notice, bytes, .. } => {
                    of.arrived += 1;
                    events.push_back(Event::Written(notice, u64::from(bytes)));
                    spent.push((at, (number & 0xffff) as u32));
                }
                WorkCompletion::Withdrawn { .. } => failing.push(at),
                WorkCompletion::Sent { number, error, .. } => {
                    if of.posted.front().is_none_or(|first| number < first.number) {
                        // Reported before.
                        return;
                    }
                    let Some(posted) = of.posted.pop_front().filter(|posted| posted.number == number) else {
                        *broken = true;
                        return;
                    };
                    match error {
                        None => {
                            free.extend(posted.slot());
                            of.delivered += u64::from(posted.is_message());
                            trials.on_arrival(posted.label, posted.what == What::Trial);
                            if *is_reliable && posted.what != What::Trial {
                                events.push_back(Event::Completed(posted.label, Box::new(posted.name), true));
                            }
                        }
                        Some(reason) => {
                            // Requests behind a failure have no reason of their own.
                            if of.state == State::Ready && of.unknown.is_empty() {
                                *last_error = Some(reason);
                            }
                            of.unknown.push(posted);
                            failing.push(at);
                        }
                    }
                }
            }
        });
        self.broken |= gathered.is_err() || !self.is_reliable && !failing.is_empty();
        gathered?;
        if self.is_reliable {
            failing.into_iter().try_for_each(|queue| self.fail(queue, now))?;
            self.try_labels(now)?;
        }
        spent.into_iter().try_for_each(|(queue, slot)| self.repost(queue, slot))?;
        while self.refused.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) >= REFUSAL_DELAY)
            && let Some((_, posted)) = self.refused.pop_front()
        {
            self.events.push_back(Event::Completed(posted.label, Box::new(posted.name), false));
        }
        Ok(())
    }

    /// Returns the slot of a receive to a queue pair that takes it; one that is connected again takes all.
    fn repost(&mut self, queue: usize, slot: u32) -> Result<(), WireError> {
        match self.queues[queue].state {
            State::Ready | State::Offered => self.post_receive(queue, slot),
            State::New | State::Draining | State::Waiting => Ok(()),
        }
    }

    pub(super) fn take<'a>(&mut self, to: &'a mut [u8]) -> Option<(Label, Kind, &'a [u8])> {
        let event = self.events.pop_front()?;
        self.known |= !matches!(event, Event::Completed(..));
        match event {
            Event::Datagram(queue, slot, bytes) => {
                let (at, size) = self.slot_range(slot);
                let read = &mut to[..bytes.min(size) as usize];
                self.device.read(at, read);
                // If this fails, the queue pair has failed.
                self.broken |= self.repost(queue, slot).is_err();
                Some((self.queues[queue].label, Kind::Datagram, read))
            }
            Event::Completed(label, name, arrived) => {
                let read = &mut to[..name.len()];
                read.copy_from_slice(&name[..]);
                Some((label, Kind::Completed { arrived }, read))
            }
            Event::Written(notice, bytes) => Some((0, Kind::Written { notice, bytes }, &[])),
        }
    }
}

impl Posted {
    /// Returns `true` if the peer counts it.
    fn is_message(&self) -> bool {
        matches!(self.what, What::Datagram { .. } | What::Write)
    }

    fn slot(&self) -> Option<u32> {
        match self.what {
            What::Datagram { slot } => Some(slot),
            What::Write | What::Probe | What::Trial => None,
        }
    }
}
