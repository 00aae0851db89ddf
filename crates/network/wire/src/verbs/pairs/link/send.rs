//! What a link sends: datagrams, writes, probes, and trials of labels.

use super::{DEPTH, Event, Link, Name, Posted, Queue, State, What};
use crate::{
    Label, Outbound, WireError,
    verbs::sys::{AddressVector, Post, QueuePairs},
};
use anabranch_endpoint::header;
use std::time::Instant;

/// Bytes of the write that tries a label: one packet of any MTU.
const TRIAL: u32 = 4096;

fn stream_of(name: &Name) -> u32 {
    u32::from_be_bytes([name[12], name[13], name[14], name[15]])
}

fn name_of(head: &[u8]) -> Name {
    let mut name = [0; header::DATA_HEADER];
    let known = head.len().min(name.len());
    name[..known].copy_from_slice(&head[..known]);
    name
}

impl<D: QueuePairs> Link<D> {
    /// Returns `true` if it can carry a datagram, or report its loss.
    pub(in super::super) fn carries(&self, label: Label, size: u32) -> bool {
        let is_there = self.queues.get(label as usize).is_some_and(|queue| queue.state == State::Ready);
        !self.broken && if self.is_reliable { self.is_ready() } else { size <= self.size && is_there }
    }

    /// Returns the queue pair of a label: a label keeps its own, so that data use the one that was probed. With fewer queue pairs
    /// than labels the idle one that has not been used for longest is relabelled, not that of the data for a probe. `None`:
    /// all are in use.
    fn queue_for(&mut self, label: Label, is_probe: bool, now: Instant) -> Result<Option<usize>, WireError> {
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
                if self.device.redirect(of.index, address).is_err() {
                    // It has failed unnoticed.
                    self.fail(queue, now)?;
                } else {
                    self.queues[queue].label = label;
                    self.relabelled += 1;
                }
                queue
            }
        };
        self.queues[queue].used = self.choices;
        if !is_probe {
            self.last_data = queue;
        }
        Ok(Some(queue))
    }

    /// `keys` has those of registered memory. Requires [`Link::carries`]; returns `false` if the queue is full.
    pub(in super::super) fn send(
        &mut self,
        outbound: &Outbound<'_>,
        keys: &dyn Fn(u64, u64) -> Option<u32>,
        now: Instant,
    ) -> Result<bool, WireError> {
        let Outbound { label, head, payload, write, .. } = *outbound;
        let (name, is_probe) = (name_of(head), self.is_reliable && header::is_probe(head));
        if self.free.is_empty() {
            self.gather(now)?;
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
        if !self.trials.allow(label, now, || self.queues.iter().any(|of| of.label == label)) {
            self.refused.push_back((now, posted));
            return Ok(true);
        }
        let Some(at) = self.queue_for(label, is_probe, now)? else { return Ok(false) };
        let (index, state, under_way) = (self.queues[at].index, self.queues[at].state, self.queues[at].posted.len());
        if state != State::Ready {
            self.refused.push_back((now, posted));
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
            let key = match payload.len() {
                0 => Some(0),
                bytes => keys(payload.as_ptr() as u64, bytes as u64),
            };
            let Some(key) = key else {
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
        } else if under_way == 0 {
            // It is not full.
            self.fail(at, now)?;
        }
        Ok(accepted.is_some())
    }

    /// Returns the queue pair over which a label can be tried now.
    pub(super) fn trial_queue(&self, label: Label) -> Option<usize> {
        let is_it = |of: &Queue| of.label == label && of.state == State::Ready && of.posted.len() < DEPTH as usize;
        self.queues.iter().position(is_it)
    }

    /// Writes to the peer over labels that are to be tried.
    pub(super) fn try_labels(&mut self, now: Instant) -> Result<(), WireError> {
        for label in self.trials.due(now) {
            let Some(at) = self.trial_queue(label) else { continue };
            let what = Post::Write { to: self.their_probe.0, key: self.their_probe.1, notice: None };
            let range = (self.probe.0, TRIAL.min(self.theirs.probe).min(self.probe.1));
            let number = self.next_number + 1;
            if self.device.post(self.queues[at].index, number, range, what).is_some() {
                self.next_number = number;
                let posted = Posted { number, what: What::Trial, name: [0; _], label };
                self.queues[at].posted.push_back(posted);
                self.trials.post(label);
            } else if self.queues[at].posted.is_empty() {
                // It is not full.
                self.fail(at, now)?;
            }
        }
        Ok(())
    }

    /// Writes of a stream are no longer wanted: none leaves, and those under way are withdrawn with their queue pairs.
    pub(in super::super) fn revoke(&mut self, stream: u32, revoked: bool, now: Instant) {
        if !revoked {
            self.revoked.remove(&stream);
            return;
        }
        self.revoked.insert(stream);
        for queue in 0..self.queues.len() {
            let is_of = |posted: &Posted| posted.what == What::Write && stream_of(&posted.name) == stream;
            if self.queues[queue].posted.iter().any(is_of) {
                self.broken |= self.fail(queue, now).is_err();
            }
        }
    }

    /// Neither endpoint reads or writes the other's memory any more.
    pub(in super::super) fn cut(&mut self) {
        self.device.destroy_queues();
        self.queues.clear();
        self.numbers.clear();
        self.events.clear();
        (self.broken, self.is_told) = (true, true);
    }

    pub(in super::super) fn is_sending(&mut self) -> bool {
        let is_it = |link: &Self| {
            !link.broken && (link.free.len() < link.sends || link.queues.iter().any(|of| !of.posted.is_empty()))
        };
        is_it(self) && self.gather(Instant::now()).is_ok() && is_it(self)
    }
}
