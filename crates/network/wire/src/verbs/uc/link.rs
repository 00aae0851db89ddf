use super::own::{Greeting, Own, SENDS, places};
use crate::{
    Label, WireError,
    verbs::{
        control::{Control, Frame},
        gid,
        sys::{Device, Post, Remote, Service, Told, Way},
    },
};
use anabranch_random::Stream;
use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    time::{Duration, Instant},
};

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Index in the device, queue pair number, sequence number of its first packet.
    queue: usize,
    number: u32,
    psn: u32,
    stands: bool,
}

pub(super) enum Heard {
    Fine,
    /// The peer has disconnected, or violates the protocol.
    Gone(WireError),
    /// A local operation failed.
    Wrong(WireError),
}

/// Has a device and memory of its own, so that nothing of it remains when it is dropped.
pub(super) struct Link {
    pub(super) at: SocketAddr,
    control: Control,
    device: Device,
    way: [u8; 16],
    class: u8,
    mtu: u8,
    /// Queue pairs by label, and labels by queue pair number.
    places: Vec<Place>,
    labels: BTreeMap<u32, Label>,
    receives: u32,
    /// Bytes of a memory slot: receives of all labels first, then sends.
    size: u32,
    free: Vec<u32>,
    /// Label, slot, bytes.
    arrived: VecDeque<(Label, u32, u32)>,
    began: Instant,
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
        let (receives, places) = places(labels);
        let index = gid::choose(&own.name, own.settings.gid_index, control.local().map(|at| at.ip()))?;
        let bytes = places as usize * size as usize;
        let mut device = Device::open(&own.name, index, bytes, places, Service::Unreliable)?;
        let mut make = |_| {
            let (queue, number) = device.create(SENDS, receives)?;
            Ok(Place { queue, number, psn: draws.below(1 << 24) as u32, stands: false })
        };
        let made: Vec<Place> = (0..labels).map(&mut make).collect::<Result<_, WireError>>()?;
        let ours = Greeting { gid: device.gid()?, mtu: device.mtu()?, labels: own.labels, largest: own.largest };
        let link = Link {
            at: control.peer,
            control,
            device,
            way: theirs.gid,
            class: own.class,
            mtu: ours.mtu.min(theirs.mtu),
            labels: made.iter().zip(0..).map(|(place, label)| (place.number, label)).collect(),
            places: made,
            receives,
            size,
            free: (labels * receives..places).collect(),
            arrived: VecDeque::new(),
            began: Instant::now(),
            called,
            known: called,
            broken: false,
        };
        Ok((link, ours))
    }

    pub(super) fn say(&mut self, frame: &Frame) -> Result<(), WireError> {
        self.control.post(frame)
    }

    pub(super) fn ask(&mut self) -> Result<(), WireError> {
        for label in 0..self.places.len() as u32 {
            self.initialise(label)?;
            let Place { number, psn, .. } = self.places[label as usize];
            self.say(&Frame::Queue { queue: label, qpn: number, psn, label: label + 1 })?;
        }
        Ok(())
    }

    pub(super) fn stands(&self) -> bool {
        self.places.iter().all(|place| place.stands)
    }

    pub(super) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn control(&self) -> &Control {
        &self.control
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    fn place(&self, place: u32) -> (u64, u32) {
        (u64::from(place) * u64::from(self.size), self.size)
    }

    /// Moves a label's queue pair to INIT and posts its receives.
    fn initialise(&mut self, label: Label) -> Result<(), WireError> {
        let queue = self.places[label as usize].queue;
        self.device.initialise(queue)?;
        for place in label * self.receives..(label + 1) * self.receives {
            self.device.post_receive_into(queue, u64::from(place), self.place(place))?;
        }
        Ok(())
    }

    fn connect(&mut self, label: Label, qpn: u32, psn: u32) -> Result<(), WireError> {
        // With flow label 0 the kernel would select the port.
        let way = Way { gid: self.way, flow_label: label + 1, class: self.class };
        let place = &mut self.places[label as usize];
        self.device.connect(place.queue, &Remote { qpn, psn, mtu: self.mtu, way }, place.psn)?;
        place.stands = true;
        Ok(())
    }

    pub(super) fn hear(&mut self) -> Heard {
        if let Err(error) = self.control.flush() {
            return Heard::Gone(error);
        }
        loop {
            let done = match self.control.poll() {
                Ok(None) => return Heard::Fine,
                Ok(Some(Frame::Queue { queue, qpn, psn, .. })) if !self.called && self.lacks(queue) => self
                    .initialise(queue)
                    .and_then(|()| self.connect(queue, qpn, psn))
                    .map(|()| Some((queue, self.places[queue as usize]))),
                Ok(Some(Frame::Ready { queue, qpn, psn })) if self.called && self.lacks(queue) => {
                    self.connect(queue, qpn, psn).map(|()| None)
                }
                Ok(Some(_)) => {
                    let what = format!("{} does not speak as this version does", self.at);
                    return Heard::Gone(WireError::Verbs(what));
                }
                Err(error) => return Heard::Gone(error),
            };
            match done {
                Ok(None) => {}
                Ok(Some((queue, Place { number, psn, .. }))) => {
                    if let Err(error) = self.say(&Frame::Ready { queue, qpn: number, psn }) {
                        return Heard::Gone(error);
                    }
                }
                Err(error) => return Heard::Wrong(error),
            }
        }
    }

    fn lacks(&self, label: Label) -> bool {
        self.places.get(label as usize).is_some_and(|place| !place.stands)
    }

    pub(super) fn gather(&mut self) -> Result<(), WireError> {
        let Link { device, labels, free, arrived, broken, .. } = self;
        let gathered = device.poll(&mut |told| match told {
            Told::Received { qpn, number, bytes } => {
                if let Some(label) = labels.get(&qpn) {
                    arrived.push_back((*label, number as u32, bytes));
                }
            }
            Told::Sent { number, error, .. } => {
                free.push((number - 1) as u32);
                *broken |= error.is_some();
            }
            Told::Withdrawn => *broken = true,
            Told::Arrived { .. } => {}
        });
        self.broken |= gathered.is_err();
        gathered.map(|_| ())
    }

    pub(super) fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    pub(super) fn take<'a>(&mut self, to: &'a mut [u8]) -> Option<(Label, &'a [u8])> {
        let (label, place, bytes) = self.arrived.pop_front()?;
        let (at, size) = self.place(place);
        let read = &mut to[..bytes.min(size) as usize];
        self.device.read(at as usize, read);
        // If this fails, the queue pair has failed.
        let queue = self.places[label as usize].queue;
        let posted = self.device.post_receive_into(queue, u64::from(place), (at, size));
        (self.broken, self.known) = (self.broken | posted.is_err(), true);
        Some((label, read))
    }

    pub(super) fn carries(&self, label: Label, size: u32) -> bool {
        !self.broken && size <= self.size && self.places.get(label as usize).is_some_and(|place| place.stands)
    }

    /// Requires [`Link::carries`]; returns `false` if the queue is full.
    pub(super) fn send(&mut self, label: Label, head: &[u8], payload: &[u8]) -> Result<bool, WireError> {
        if self.free.is_empty() {
            self.gather()?;
        }
        let Some(place) = self.free.pop() else { return Ok(false) };
        let (at, _) = self.place(place);
        let size = (head.len() + payload.len()) as u32;
        self.device.write(at as usize, head);
        self.device.write(at as usize + head.len(), payload);
        let queue = self.places[label as usize].queue;
        let posted = self.device.post(queue, u64::from(place) + 1, (at, size), Post::Message).is_some();
        if !posted {
            self.free.push(place);
        }
        Ok(posted)
    }

    pub(super) fn is_sending(&mut self) -> bool {
        !self.broken && self.free.len() < SENDS as usize && self.gather().is_ok() && self.free.len() < SENDS as usize
    }
}
