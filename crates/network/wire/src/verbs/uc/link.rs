use super::own::{Own, SENDS, slots};
use crate::{
    Label, WireError,
    verbs::{
        control::{Control, Frame, Greeting, unknown},
        gid,
        sys::{AddressVector, Device, Post, Remote, Service, WorkCompletion},
    },
};
use anabranch_random::Stream;
use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    time::Instant,
};

#[derive(Clone, Copy, Debug)]
struct LabelQueue {
    /// Index in the device, queue pair number, sequence number of its first packet.
    queue: usize,
    number: u32,
    psn: u32,
    is_ready: bool,
}

pub(super) enum LinkStatus {
    Healthy,
    /// The peer has disconnected, or violates the protocol.
    Disconnected(WireError),
    /// A local operation failed.
    Failed(WireError),
}

/// Has a device and memory of its own, so that nothing of it remains when it is dropped.
pub(super) struct Link {
    pub(super) at: SocketAddr,
    pub(super) control: Control,
    pub(super) device: Device,
    gid: [u8; 16],
    class: u8,
    mtu: u8,
    /// Queue pairs by label, and labels by queue pair number.
    queues: Vec<LabelQueue>,
    labels: BTreeMap<u32, Label>,
    receives: u32,
    /// Bytes of a memory slot: receives of all labels first, then sends.
    size: u32,
    free: Vec<u32>,
    /// Label, slot, bytes.
    pub(super) arrived: VecDeque<(Label, u32, u32)>,
    pub(super) began: Instant,
    pub(super) called: bool,
    /// The peer has sent something, or the owner added it.
    pub(super) known: bool,
    /// The peer has disconnected, or a queue pair has failed.
    pub(super) broken: bool,
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
        let size = own.largest.max(theirs.largest);
        let (receives, slots) = slots(labels);
        let index = gid::choose(&own.name, own.settings.gid_index, control.local().map(|at| at.ip()))?;
        let bytes = slots as usize * size as usize;
        let mut device = Device::open(&own.name, index, bytes, slots, Service::Unreliable)?;
        let mut make = |_| {
            let (queue, number) = device.create(SENDS, receives)?;
            Ok(LabelQueue { queue, number, psn: draws.below(1 << 24) as u32, is_ready: false })
        };
        let made: Vec<LabelQueue> = (0..labels).map(&mut make).collect::<Result<_, WireError>>()?;
        let ours = Greeting { gid: device.gid()?, mtu: device.mtu()?, labels: own.labels, largest: own.largest };
        let link = Link {
            at: control.peer,
            control,
            device,
            gid: theirs.gid,
            class: own.class,
            mtu: ours.mtu.min(theirs.mtu),
            labels: made.iter().zip(0..).map(|(queue, label)| (queue.number, label)).collect(),
            queues: made,
            receives,
            size,
            free: (labels * receives..slots).collect(),
            arrived: VecDeque::new(),
            began: Instant::now(),
            called,
            known: called,
            broken: false,
        };
        Ok((link, ours))
    }

    pub(super) fn request_queues(&mut self) -> Result<(), WireError> {
        for label in 0..self.queues.len() as u32 {
            self.initialise(label)?;
            let LabelQueue { number, psn, .. } = self.queues[label as usize];
            self.control.post(&Frame::Queue { queue: label, qpn: number, psn, label: label + 1 })?;
        }
        Ok(())
    }

    pub(super) fn is_ready(&self) -> bool {
        self.queues.iter().all(|queue| queue.is_ready)
    }

    fn slot_range(&self, slot: u32) -> (u64, u32) {
        (u64::from(slot) * u64::from(self.size), self.size)
    }

    /// Moves a label's queue pair to INIT and posts its receives.
    fn initialise(&mut self, label: Label) -> Result<(), WireError> {
        let queue = self.queues[label as usize].queue;
        self.device.initialise(queue)?;
        for slot in label * self.receives..(label + 1) * self.receives {
            self.device.post_receive(queue, Some((u64::from(slot), self.slot_range(slot))))?;
        }
        Ok(())
    }

    fn connect(&mut self, label: Label, qpn: u32, psn: u32) -> Result<(), WireError> {
        // With flow label 0 the kernel would select the port.
        let address = AddressVector { gid: self.gid, flow_label: label + 1, class: self.class };
        let own = &mut self.queues[label as usize];
        self.device.connect(own.queue, &Remote { qpn, psn, mtu: self.mtu, address }, own.psn)?;
        own.is_ready = true;
        Ok(())
    }

    pub(super) fn poll_control(&mut self) -> LinkStatus {
        if let Err(error) = self.control.flush() {
            return LinkStatus::Disconnected(error);
        }
        loop {
            let done = match self.control.poll() {
                Ok(None) => return LinkStatus::Healthy,
                Ok(Some(Frame::Queue { queue, qpn, psn, .. })) if !self.called && self.lacks(queue) => self
                    .initialise(queue)
                    .and_then(|()| self.connect(queue, qpn, psn))
                    .map(|()| Some((queue, self.queues[queue as usize]))),
                Ok(Some(Frame::Ready { queue, qpn, psn })) if self.called && self.lacks(queue) => {
                    self.connect(queue, qpn, psn).map(|()| None)
                }
                Ok(Some(_)) => return LinkStatus::Disconnected(unknown(self.at)),
                Err(error) => return LinkStatus::Disconnected(error),
            };
            match done {
                Ok(None) => {}
                Ok(Some((queue, LabelQueue { number, psn, .. }))) => {
                    if let Err(error) = self.control.post(&Frame::Ready { queue, qpn: number, psn }) {
                        return LinkStatus::Disconnected(error);
                    }
                }
                Err(error) => return LinkStatus::Failed(error),
            }
        }
    }

    fn lacks(&self, label: Label) -> bool {
        self.queues.get(label as usize).is_some_and(|slot| !slot.is_ready)
    }

    pub(super) fn gather(&mut self) -> Result<(), WireError> {
        let Link { device, labels, free, arrived, broken, .. } = self;
        let gathered = device.poll(&mut |completion| match completion {
            WorkCompletion::Received { qpn, number, bytes } => {
                if let Some(label) = labels.get(&qpn) {
                    arrived.push_back((*label, number as u32, bytes));
                }
            }
            WorkCompletion::Sent { number, error, .. } => {
                free.push((number - 1) as u32);
                *broken |= error.is_some();
            }
            WorkCompletion::Withdrawn => *broken = true,
            WorkCompletion::Arrived { .. } => {}
        });
        self.broken |= gathered.is_err();
        gathered
    }

    pub(super) fn take<'a>(&mut self, to: &'a mut [u8]) -> Option<(Label, &'a [u8])> {
        let (label, slot, bytes) = self.arrived.pop_front()?;
        let (at, size) = self.slot_range(slot);
        let read = &mut to[..bytes.min(size) as usize];
        self.device.read(at, read);
        // If this fails, the queue pair has failed.
        let queue = self.queues[label as usize].queue;
        let posted = self.device.post_receive(queue, Some((u64::from(slot), (at, size))));
        (self.broken, self.known) = (self.broken | posted.is_err(), true);
        Some((label, read))
    }

    pub(super) fn carries(&self, label: Label, size: u32) -> bool {
        !self.broken && size <= self.size && self.queues.get(label as usize).is_some_and(|queue| queue.is_ready)
    }

    /// Requires [`Link::carries`]; returns `false` if the queue is full.
    pub(super) fn send(&mut self, label: Label, head: &[u8], payload: &[u8]) -> Result<bool, WireError> {
        if self.free.is_empty() {
            self.gather()?;
        }
        let Some(slot) = self.free.pop() else { return Ok(false) };
        let (at, _) = self.slot_range(slot);
        let size = (head.len() + payload.len()) as u32;
        self.device.write(at, head);
        self.device.write(at + head.len() as u64, payload);
        let queue = self.queues[label as usize].queue;
        let posted = self.device.post(queue, u64::from(slot) + 1, (at, size), Post::Message).is_some();
        if !posted {
            self.free.push(slot);
        }
        Ok(posted)
    }

    pub(super) fn is_sending(&mut self) -> bool {
        !self.broken && self.free.len() < SENDS as usize && self.gather().is_ok() && self.free.len() < SENDS as usize
    }
}
