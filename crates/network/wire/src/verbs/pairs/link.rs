use super::{
    own::{Own, capacity},
    regions::Regions,
};
use crate::{
    Kind, Label, Outbound, WireError,
    verbs::{
        control::{Control, Frame, Greeting, Pair, no_reply, unknown},
        gid,
        sys::{AddressVector, Device, Post, Remote, WorkCompletion},
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not yet connected.
    New,
    Ready,
    /// Failed: its requests are still being returned.
    Draining,
    /// Failed: waits for the peer.
    Waiting,
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
pub(super) struct Link {
    pub(super) at: SocketAddr,
    pub(super) control: Control,
    pub(super) device: Device,
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
    events: VecDeque<Event>,
    refused: VecDeque<(Instant, Posted)>,
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

fn stream_of(name: &Name) -> u32 {
    u32::from_be_bytes([name[12], name[13], name[14], name[15]])
}

fn name_of(head: &[u8]) -> Name {
    let mut name = [0; header::DATA_HEADER];
    let known = head.len().min(name.len());
    name[..known].copy_from_slice(&head[..known]);
    name
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
        let labels = own.labels.min(theirs.labels);
        let count = own.queues.min(theirs.queues).min(labels);
        // Chunks are alike; a caller does not set how much memory it takes.
        let size = if own.is_reliable() { own.largest } else { own.largest.max(theirs.largest) };
        let capacity = capacity(own.is_reliable(), count, size, own.probe);
        let index = gid::choose(&own.name, own.settings.gid_index, control.local().map(|at| at.ip()))?;
        let completions = count * (capacity.receives + DEPTH);
        let mut device = Device::new(&own.domain, index, capacity.bytes, completions, own.settings.reliable())?;
        let mut queues = Vec::new();
        for label in 0..count {
            let (index, number) = device.create(DEPTH, capacity.receives)?;
            queues.push(Queue {
                index,
                number,
                psn: draws.below(1 << 24) as u32,
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
            });
        }
        let slots = count * capacity.receives..count * capacity.receives + capacity.sends;
        let probe = (u64::from(slots.end) * u64::from(size), own.probe);
        let ours = own.greeting(index)?;
        let link = Link {
            at: control.peer,
            control,
            device,
            theirs: *theirs,
            class: own.class,
            mtu: ours.mtu.min(theirs.mtu),
            is_reliable: own.is_reliable(),
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
            events: VecDeque::new(),
            refused: VecDeque::new(),
            revoked: BTreeSet::new(),
            draws: Stream::keyed(draws.bits(), 0, "queue pairs"),
            last_error: None,
            began: Instant::now(),
            called,
            known: called,
            broken: false,
            is_told: false,
        };
        Ok((link, ours))
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
            self.device.reset(index)?;
        }
        self.device.initialise(index)?;
        let is_taken =
            |slot: &u32| !self.events.iter().any(|event| matches!(event, Event::Datagram(_, of, _) if of == slot));
        let slots: Vec<u32> = self.receives_of(queue).filter(is_taken).collect();
        self.queues[queue].receives = slots.len() as u32;
        slots.into_iter().try_for_each(|slot| self.device.post_receive(index, u64::from(slot), self.slot_range(slot)))
    }

    /// Of the caller: requests the queue pair of the peer.
    fn request(&mut self, queue: usize) -> Result<(), WireError> {
        self.initialise(queue)?;
        let psn = self.draws.below(1 << 24) as u32;
        let of = &mut self.queues[queue];
        of.psn = psn;
        if of.state != State::New {
            of.state = State::Waiting;
        }
        let pair = self.pair(queue);
        self.control.post(&Frame::Queue { queue: queue as u32, pair })
    }

    /// Of the listener: replies to that.
    fn reply(&mut self, queue: usize, request: Pair) -> Result<(), WireError> {
        self.initialise(queue)?;
        self.queues[queue].psn = self.draws.below(1 << 24) as u32;
        self.connect(queue, request)?;
        let pair = self.pair(queue);
        self.control.post(&Frame::Ready { queue: queue as u32, pair })
    }

    /// Returns a queue pair for the peer, and counts its messages from zero.
    fn pair(&mut self, queue: usize) -> Pair {
        let of = &mut self.queues[queue];
        let (arrived, (at, key)) = (std::mem::take(&mut of.arrived), self.device.window(self.probe.0));
        Pair { qpn: of.number, psn: of.psn, arrived, at, key }
    }

    fn connect(&mut self, queue: usize, pair: Pair) -> Result<(), WireError> {
        let Pair { qpn, psn, arrived, at, key } = pair;
        self.resolve(queue, arrived)?;
        self.their_probe = (at, key);
        // With flow label 0 the kernel would select the port.
        let of = &mut self.queues[queue];
        let address = AddressVector { gid: self.theirs.gid, flow_label: of.label + 1, class: self.class };
        self.device.connect(of.index, &Remote { qpn, psn, mtu: self.mtu, address }, of.psn)?;
        (of.state, of.failed_at, of.request) = (State::Ready, None, None);
        Ok(())
    }

    /// Reports failed requests. The peer has received `arrived` messages, the first of all since the queue pair was connected.
    fn resolve(&mut self, queue: usize, arrived: u64) -> Result<(), WireError> {
        let Link { queues, events, free, at, .. } = self;
        let of = &mut queues[queue];
        let mut more = arrived.checked_sub(std::mem::take(&mut of.delivered)).ok_or_else(|| unknown(*at))?;
        for posted in of.unknown.drain(..) {
            let has_arrived = more > 0 && posted.what != What::Probe;
            more -= u64::from(has_arrived);
            free.extend(posted.slot());
            events.push_back(Event::Completed(posted.label, Box::new(posted.name), has_arrived));
        }
        if more == 0 { Ok(()) } else { Err(unknown(*at)) }
    }

    pub(super) fn poll_control(&mut self, timeout: Duration) -> LinkStatus {
        let advanced = self.control.flush().and_then(|()| self.advance(timeout));
        if let Err(error) = advanced {
            return LinkStatus::Disconnected(error);
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
                    Some((queue, State::New | State::Waiting)) => self.reply(queue, pair),
                    Some((queue, State::Ready | State::Draining)) if self.is_reliable => {
                        self.queues[queue].request = Some(pair);
                        self.fail(queue)
                    }
                    _ => return LinkStatus::Disconnected(unknown(self.at)),
                },
                Frame::Ready { queue, pair } if self.called => match known(queue) {
                    Some((queue, State::New | State::Waiting)) => self.connect(queue, pair),
                    _ => return LinkStatus::Disconnected(unknown(self.at)),
                },
                Frame::Failed { queue } if self.called && self.is_reliable => match known(queue) {
                    Some((queue, _)) => self.fail(queue),
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
    fn fail(&mut self, queue: usize) -> Result<(), WireError> {
        let of = &mut self.queues[queue];
        if of.state != State::Ready {
            return Ok(());
        }
        (of.state, of.failed_at) = (State::Draining, Some(Instant::now()));
        self.device.fail(of.index)
    }

    /// Connects drained queue pairs again.
    fn advance(&mut self, timeout: Duration) -> Result<(), WireError> {
        for queue in 0..self.queues.len() {
            let of = &self.queues[queue];
            let Some(failed) = of.failed_at.map(|at| at.elapsed()) else { continue };
            if failed > timeout {
                return Err(no_reply(self.at));
            }
            let is_drained = of.posted.is_empty() && (of.receives == 0 || failed > FLUSH_TIMEOUT);
            match (of.state, of.request) {
                (State::Draining, _) if !is_drained => {}
                (State::Draining, _) if self.called => self.request(queue)?,
                (State::Draining, Some(request)) => self.reply(queue, request)?,
                (State::Draining, None) => {
                    self.queues[queue].state = State::Waiting;
                    self.control.post(&Frame::Failed { queue: queue as u32 })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn is_failing(&self) -> bool {
        self.queues.iter().any(|queue| queue.failed_at.is_some()) || !self.refused.is_empty()
    }

    pub(super) fn gather(&mut self) -> Result<(), WireError> {
        let Link { device, numbers, queues, free, events, broken, last_error, is_reliable, .. } = self;
        let (mut failing, mut spent) = (Vec::new(), Vec::new());
        let gathered = device.poll(&mut |completion| {
            let (WorkCompletion::Sent { qpn, .. }
            | WorkCompletion::Arrived { qpn, .. }
            | WorkCompletion::Received { qpn, .. }
            | WorkCompletion::Withdrawn { qpn }) = completion;
            let Some(&at) = numbers.get(&qpn) else { return };
            let of = &mut queues[at];
            match completion {
                WorkCompletion::Received { number, bytes, .. } => {
                    (of.receives, of.arrived) = (of.receives.saturating_sub(1), of.arrived + 1);
                    events.push_back(Event::Datagram(at, number as u32, bytes));
                }
                WorkCompletion::Arrived { number, notice, bytes, .. } => {
                    (of.receives, of.arrived) = (of.receives.saturating_sub(1), of.arrived + 1);
                    events.push_back(Event::Written(notice, u64::from(bytes)));
                    spent.push((at, number as u32));
                }
                WorkCompletion::Withdrawn { .. } => {
                    of.receives = of.receives.saturating_sub(1);
                    failing.push(at);
                }
                WorkCompletion::Sent { number, error, .. } => {
                    let Some(posted) = of.posted.pop_front().filter(|posted| posted.number == number) else {
                        *broken = true;
                        return;
                    };
                    match error {
                        None => {
                            free.extend(posted.slot());
                            of.delivered += u64::from(posted.what != What::Probe);
                            if *is_reliable {
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
            failing.into_iter().try_for_each(|queue| self.fail(queue))?;
        }
        spent.into_iter().try_for_each(|(queue, slot)| self.repost(queue, slot))?;
        while self.refused.front().is_some_and(|(at, _)| at.elapsed() >= REFUSAL_DELAY)
            && let Some((_, posted)) = self.refused.pop_front()
        {
            self.events.push_back(Event::Completed(posted.label, Box::new(posted.name), false));
        }
        Ok(())
    }

    /// Returns the slot of a receive to a queue pair that works; one that is connected again takes all.
    fn repost(&mut self, queue: usize, slot: u32) -> Result<(), WireError> {
        let of = &mut self.queues[queue];
        if of.state != State::Ready {
            return Ok(());
        }
        of.receives += 1;
        self.device.post_receive(of.index, u64::from(slot), self.slot_range(slot))
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

    /// Returns `true` if it can carry a datagram, or report its loss.
    pub(super) fn carries(&self, label: Label, size: u32) -> bool {
        let is_there = self.queues.get(label as usize).is_some_and(|queue| queue.state == State::Ready);
        !self.broken && if self.is_reliable { self.is_ready() } else { size <= self.size && is_there }
    }

    /// Returns the queue pair of a label: a label keeps its own, so that data use the one that was probed. With fewer queue pairs
    /// than labels the idle one that has not been used for longest is relabelled, not that of the data for a probe. `None`:
    /// all are in use.
    fn queue_for(&mut self, label: Label, is_probe: bool) -> Result<Option<usize>, WireError> {
        self.choices += 1;
        let queue = match self.queues.iter().position(|of| of.label == label) {
            Some(queue) => queue,
            None => {
                let is_idle = |(at, of): &(usize, &Queue)| {
                    of.state == State::Ready && of.posted.is_empty() && !(is_probe && *at == self.last_data)
                };
                let idle = self.queues.iter().enumerate().filter(is_idle).min_by_key(|(_, of)| of.used);
                let Some((queue, of)) = idle else { return Ok(None) };
                let address = AddressVector { gid: self.theirs.gid, flow_label: label + 1, class: self.class };
                self.device.redirect(of.index, address)?;
                self.queues[queue].label = label;
                self.relabelled += 1;
                queue
            }
        };
        self.queues[queue].used = self.choices;
        if !is_probe {
            self.last_data = queue;
        }
        Ok(Some(queue))
    }

    /// Requires [`Link::carries`]; returns `false` if the queue is full.
    pub(super) fn send(&mut self, outbound: &Outbound<'_>, regions: &Regions) -> Result<bool, WireError> {
        let Outbound { label, head, payload, write, .. } = *outbound;
        let (name, is_probe) = (name_of(head), self.is_reliable && header::is_probe(head));
        if self.free.is_empty() {
            self.gather()?;
        }
        let mut posted = Posted { number: 0, what: What::Write, name, label };
        if self.is_reliable && header::is_data(head) {
            let all = || self.queues.iter().flat_map(|of| of.posted.iter().chain(&of.unknown));
            if all().any(|other| header::is_same_data(&other.name, &name)) {
                // It is still under way: hardware delivers it, or reports that it does not.
                return Ok(true);
            }
            if write.is_some() && self.revoked.contains(&stream_of(&name)) {
                self.events.push_back(Event::Completed(label, Box::new(name), true));
                return Ok(true);
            }
        }
        let Some(at) = self.queue_for(label, is_probe)? else { return Ok(false) };
        let (index, state, under_way) = (self.queues[at].index, self.queues[at].state, self.queues[at].posted.len());
        if state != State::Ready {
            self.refused.push_back((Instant::now(), posted));
            return Ok(true);
        }
        if under_way >= DEPTH as usize {
            return Ok(false);
        }
        let number = self.next_number + 1;
        let accepted = if is_probe {
            posted.what = What::Probe;
            let bytes = (outbound.size() as u32).min(self.theirs.probe).min(self.probe.1);
            let what = Post::Write { to: self.their_probe.0, key: self.their_probe.1, notice: None };
            self.device.post(index, number, (self.probe.0, bytes), what)
        } else if let Some(write) = write {
            let keys = if payload.is_empty() {
                Some((0, 0))
            } else {
                regions.keys(payload.as_ptr() as u64, payload.len() as u64)
            };
            let Some((key, _)) = keys else {
                return Err(WireError::Verbs(format!("{} B to send are not in registered memory", payload.len())));
            };
            let what = Post::Write { to: write.to, key: write.key, notice: Some(write.notice) };
            self.device.post_bytes(index, number, payload, key, what)
        } else {
            let Some(slot) = self.free.pop() else { return Ok(false) };
            if outbound.size() > self.size as usize {
                let what = format!("a datagram of {} B, at most {} B fit", outbound.size(), self.size);
                return Err(WireError::Verbs(what));
            }
            posted.what = What::Datagram { slot };
            let (from, size) = (self.slot_range(slot).0, outbound.size() as u32);
            self.device.write(from, head);
            self.device.write(from + head.len() as u64, payload);
            let accepted = self.device.post(index, number, (from, size), Post::Message);
            if accepted.is_none() {
                self.free.push(slot);
            }
            accepted
        };
        if accepted.is_some() {
            self.next_number = number;
            self.queues[at].posted.push_back(Posted { number, ..posted });
        }
        Ok(accepted.is_some())
    }

    /// Writes of a stream are no longer wanted: none leaves, and those under way are withdrawn with their queue pairs.
    pub(super) fn revoke(&mut self, stream: u32, revoked: bool) {
        if !revoked {
            self.revoked.remove(&stream);
            return;
        }
        self.revoked.insert(stream);
        for queue in 0..self.queues.len() {
            let is_of = |posted: &Posted| posted.what == What::Write && stream_of(&posted.name) == stream;
            if self.queues[queue].posted.iter().any(is_of) {
                self.broken |= self.fail(queue).is_err();
            }
        }
    }

    /// Neither endpoint reads or writes the other's memory any more.
    pub(super) fn cut(&mut self) {
        self.device.destroy_queues();
        self.queues.clear();
        self.numbers.clear();
        self.events.clear();
        (self.broken, self.is_told) = (true, true);
    }

    pub(super) fn is_sending(&mut self) -> bool {
        let is_it = |link: &Self| {
            !link.broken && (link.free.len() < link.sends || link.queues.iter().any(|of| !of.posted.is_empty()))
        };
        is_it(self) && self.gather().is_ok() && is_it(self)
    }
}

impl Posted {
    fn slot(&self) -> Option<u32> {
        match self.what {
            What::Datagram { slot } => Some(slot),
            What::Write | What::Probe => None,
        }
    }
}
