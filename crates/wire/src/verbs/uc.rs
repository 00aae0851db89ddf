//! UC queue pairs as a [`Datapath`]: a message is a datagram, which arrives or does not; an endpoint's own packets and transport do the
//! rest. A label is a queue pair whose packets carry that flow label.

use super::{
    VerbsSettings,
    control::{Control, Frame},
    gid,
    sys::{self, Device, Post, Remote, Service, Told, Way},
};
use crate::{Abilities, Datapath, Inbound, Label, Outbound, PeerId, Stamps, WireError};
use anabranch_random::Stream;
use anabranch_units::Time;
use std::{
    collections::{BTreeMap, VecDeque},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

/// Bytes that a packet has on the wire besides its datagram: Ethernet, IPv4, UDP, base transport header and invariant CRC.
pub const UC_OVERHEAD: u64 = 14 + 20 + 8 + 12 + 4;

/// Datagrams to a peer that hardware has not sent yet.
const SENDS: u32 = 128;
/// Receives that stand ready for a peer, over all labels; of each label so many at least and at most.
const RECEIVES: u32 = 2048;
const RECEIVES_OF_LABEL: (u32, u32) = (32, 256);
/// Labels of a datapath: as many queue pairs for each peer.
const MOST_LABELS: u32 = 256;
/// Bytes of the longest datagram: more than our largest packet, and no more than what memory of a stranger may cost.
const LONGEST: usize = 1 << 14;
/// How long a peer that is forgotten waits for what is on its way to it.
const PARTING: Duration = Duration::from_millis(500);
/// How long callers wait at most while datagrams keep coming.
const LOOK: Duration = Duration::from_millis(1);
/// Callers that have not said yet who they are.
const MOST_CALLERS: usize = 16;

/// UC queue pairs, one per label and peer.
pub struct UcPath {
    opened: Instant,
    name: String,
    settings: VerbsSettings,
    labels: u32,
    /// Bytes of the longest datagram of this end.
    largest: u32,
    most_peers: u32,
    listener: Option<TcpListener>,
    callers: Vec<(Control, Instant)>,
    /// When callers and peers were last heard.
    answered: Instant,
    links: Vec<Option<Link>>,
    turn: usize,
    draws: Stream,
    buffer: Vec<u8>,
    refused: u64,
    /// Hears why somebody was sent away or a peer is of no more use.
    tell: Box<dyn FnMut(&str)>,
}

/// A peer: a device of its own with memory for what comes and goes, so that nothing of it is left when it is forgotten.
struct Link {
    at: SocketAddr,
    control: Control,
    device: Device,
    way: [u8; 16],
    mtu: u8,
    /// Places of its queue pairs, by label, and labels by their numbers.
    places: Vec<usize>,
    labels: BTreeMap<u32, Label>,
    receives: u32,
    /// Bytes of a place in memory: receives of all labels first, then what is sent.
    size: u32,
    free: Vec<u32>,
    /// What has arrived: label, place, bytes.
    arrived: VecDeque<(Label, u32, u32)>,
    /// The owner knows of it: something has come from it, or it was asked for.
    known: bool,
    /// The other end has gone, or hardware has given a queue pair up.
    broken: bool,
}

impl Link {
    fn new(path: &UcPath, control: Control, theirs: u32, size: u32) -> Result<Self, WireError> {
        let labels = path.labels.min(theirs);
        let receives = (RECEIVES / labels).clamp(RECEIVES_OF_LABEL.0, RECEIVES_OF_LABEL.1);
        let index = gid::choose(&path.name, path.settings.gid_index, control.local().map(|at| at.ip()))?;
        let places = labels * receives + SENDS;
        let bytes = places as usize * size as usize;
        let mut device = Device::open(&path.name, index, bytes, places, Service::Unreliable)?;
        let made: Vec<(usize, u32)> = (0..labels).map(|_| device.create(SENDS, receives)).collect::<Result<_, _>>()?;
        Ok(Link {
            at: control.peer,
            control,
            mtu: device.mtu()?,
            device,
            way: [0; 16],
            places: made.iter().map(|(place, _)| *place).collect(),
            labels: made.iter().zip(0..).map(|((_, number), label)| (*number, label)).collect(),
            receives,
            size,
            free: (labels * receives..places).collect(),
            arrived: VecDeque::new(),
            known: false,
            broken: false,
        })
    }

    fn number(&self, label: Label) -> u32 {
        self.labels.iter().find(|(_, of)| **of == label).map_or(0, |(number, _)| *number)
    }

    fn place(&self, place: u32) -> (u64, u32) {
        (u64::from(place) * u64::from(self.size), self.size)
    }

    /// Readies a label's queue pair to take what comes.
    fn initialise(&mut self, label: Label) -> Result<(), WireError> {
        let queue = self.places[label as usize];
        self.device.initialise(queue)?;
        for place in label * self.receives..(label + 1) * self.receives {
            self.device.post_receive_into(queue, u64::from(place), self.place(place))?;
        }
        Ok(())
    }

    fn connect(&mut self, label: Label, qpn: u32, psn: u32, own_psn: u32) -> Result<(), WireError> {
        // Flow label 0 would leave the port to the kernel.
        let way = Way { gid: self.way, flow_label: label + 1 };
        self.device.connect(self.places[label as usize], &Remote { qpn, psn, mtu: self.mtu, way }, own_psn)
    }

    /// Takes what the completion queue says.
    fn gather(&mut self) -> Result<(), WireError> {
        let Link { device, labels, free, arrived, broken, .. } = self;
        device.poll(&mut |told| match told {
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
        })?;
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // What has been posted is to leave, the last acknowledgement above all; with its queue pair it would be gone.
        let until = Instant::now() + PARTING;
        while !self.broken && self.free.len() < SENDS as usize && Instant::now() < until {
            if self.gather().is_err() {
                return;
            }
            thread::sleep(Duration::from_micros(100));
        }
    }
}

impl UcPath {
    /// Opens a device for datagrams of so many bytes at most over so many labels; with an address it is listened at, so that others may
    /// become peers, `most_peers` at most.
    ///
    /// # Errors
    /// Where library or device are missing, or the address cannot be listened at.
    pub fn open(
        at: Option<SocketAddr>,
        settings: VerbsSettings,
        (labels, most_peers): (u32, u32),
        largest: usize,
        seed: u64,
    ) -> Result<Self, WireError> {
        let name = super::device(settings.device.as_deref())?;
        let index = gid::choose(&name, settings.gid_index, at.map(|at| at.ip()))?;
        // Opened once to see that it can be.
        Device::open(&name, index, 4096, 16, Service::Unreliable)?.mtu()?;
        if !(1..=MOST_LABELS).contains(&labels) || largest > LONGEST {
            return Err(WireError::Verbs(format!(
                "{labels} labels and datagrams of {largest} B: from 1 to {MOST_LABELS}, and {LONGEST} B at most"
            )));
        }
        let listener = match at {
            Some(at) => {
                let system = |source| WireError::System { what: format!("cannot listen at {at}"), source };
                let listener = TcpListener::bind(at).map_err(system)?;
                listener.set_nonblocking(true).map_err(system)?;
                Some(listener)
            }
            None => None,
        };
        Ok(UcPath {
            opened: Instant::now(),
            name,
            settings,
            labels,
            largest: largest as u32,
            most_peers,
            listener,
            callers: Vec::new(),
            answered: Instant::now(),
            links: Vec::new(),
            turn: 0,
            draws: Stream::keyed(seed, std::process::id().into(), "first packets"),
            buffer: vec![0; LONGEST],
            refused: 0,
            tell: Box::new(|_| {}),
        })
    }

    /// Where it listens.
    pub fn at(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// The device.
    pub fn device(&self) -> &str {
        &self.name
    }

    /// Datagrams that had no queue pair to go by, as if the network had lost them.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Tells `hear` from now on why somebody was sent away, or a peer is of no more use.
    pub fn on_trouble(&mut self, hear: impl FnMut(&str) + 'static) {
        self.tell = Box::new(hear);
    }

    /// A free number.
    fn vacancy(&mut self) -> Option<usize> {
        if let Some(at) = self.links.iter().position(Option::is_none) {
            return Some(at);
        }
        ((self.links.len() as u32) < self.most_peers).then(|| {
            self.links.push(None);
            self.links.len() - 1
        })
    }

    /// Calls a peer: each label's queue pair is connected to one of its own.
    fn call(&mut self, at: SocketAddr) -> Result<Link, WireError> {
        let patience = self.settings.give_up;
        let stream = TcpStream::connect_timeout(&at, patience).map_err(|source| {
            let what = format!("no answer from {at}: does `anabranch serve --datapath uc` run there?");
            WireError::System { what, source }
        })?;
        let mut control =
            Control::new(stream, patience).map_err(|source| WireError::System { what: at.to_string(), source })?;
        let index = gid::choose(&self.name, self.settings.gid_index, control.local().map(|at| at.ip()))?;
        let own = Device::open(&self.name, index, 4096, 16, Service::Unreliable)?;
        let (gid, mtu) = (own.gid()?, own.mtu()?);
        drop(own);
        control.send(&Frame::HelloDatagrams { gid, mtu, labels: self.labels, largest: self.largest })?;
        let (gid, mtu, labels, largest) = control.expect(&mut |frame| match *frame {
            Frame::WelcomeDatagrams { gid, mtu, labels, largest } => Some((gid, mtu, labels, largest)),
            _ => None,
        })?;
        let nonsense = || WireError::Verbs(format!("{at} has {labels} labels and datagrams of {largest} B"));
        if labels == 0 || largest as usize > LONGEST {
            return Err(nonsense());
        }
        let mut link = Link::new(self, control, labels, self.largest.max(largest))?;
        (link.way, link.mtu) = (gid, link.mtu.min(mtu));
        for label in 0..link.places.len() as u32 {
            link.initialise(label)?;
            let own_psn = self.draws.below(1 << 24) as u32;
            let frame = Frame::Queue { queue: label, qpn: link.number(label), psn: own_psn, label: label + 1 };
            link.control.send(&frame)?;
            let (qpn, psn) = link.control.expect(&mut |frame| match *frame {
                Frame::Ready { queue, qpn, psn } if queue == label => Some((qpn, psn)),
                _ => None,
            })?;
            link.connect(label, qpn, psn, own_psn)?;
        }
        (link.known, link.at) = (true, at);
        Ok(link)
    }

    /// Hears those who call, and those of the peers who have something to say besides datagrams.
    fn answer(&mut self) {
        self.answered = Instant::now();
        while let Some(Ok((stream, from))) = self.listener.as_ref().map(TcpListener::accept) {
            let full = self.callers.len() >= MOST_CALLERS;
            match Control::new(stream, self.settings.give_up) {
                Ok(control) if !full => self.callers.push((control, Instant::now())),
                _ => (self.tell)(&format!("{from} called while too many others did")),
            }
        }
        let mut at = 0;
        while at < self.callers.len() {
            let (control, since) = &mut self.callers[at];
            match control.poll() {
                Ok(None) if since.elapsed() < self.settings.give_up => at += 1,
                Ok(Some(frame)) => {
                    let (control, _) = self.callers.swap_remove(at);
                    if let Err(error) = self.welcome(control, frame) {
                        (self.tell)(&error.to_string());
                    }
                }
                // Whoever says nothing, or nonsense, is none of ours.
                Ok(None) | Err(_) => drop(self.callers.swap_remove(at)),
            }
        }
        for place in 0..self.links.len() {
            let own_psn = self.draws.below(1 << 24) as u32;
            let Some(link) = &mut self.links[place] else { continue };
            while !link.broken {
                match link.control.poll() {
                    Ok(None) => break,
                    Ok(Some(Frame::Queue { queue, qpn, psn, .. })) if (queue as usize) < link.places.len() => {
                        let own = link.number(queue);
                        let ready = Frame::Ready { queue, qpn: own, psn: own_psn };
                        let done = link
                            .initialise(queue)
                            .and_then(|()| link.connect(queue, qpn, psn, own_psn))
                            .and_then(|()| link.control.send(&ready));
                        if let Err(error) = done {
                            link.broken = true;
                            (self.tell)(&error.to_string());
                        }
                    }
                    // It has gone, or does not speak as we do.
                    Ok(Some(_)) | Err(_) => link.broken = true,
                }
            }
            // Nobody else would forget it.
            if link.broken && !link.known {
                self.links[place] = None;
            }
        }
    }

    fn welcome(&mut self, mut control: Control, frame: Frame) -> Result<(), WireError> {
        let why = |control: &Control, what: &str| WireError::Verbs(format!("{} {what}", control.peer));
        let Frame::HelloDatagrams { gid, mtu, labels, largest } = frame else {
            control.send(&Frame::Refused)?;
            return Err(why(
                &control,
                "sends with the datapath verbs, and this end serves uc: both ends must be told the same",
            ));
        };
        let vacant = self.vacancy();
        let (Some(place), true) = (vacant, labels > 0 && largest as usize <= LONGEST) else {
            control.send(&Frame::Refused)?;
            return Err(why(&control, "asks for too much, or there are too many peers"));
        };
        let mut link = Link::new(self, control, labels, self.largest.max(largest))?;
        let welcome = Frame::WelcomeDatagrams {
            gid: link.device.gid()?,
            mtu: link.mtu,
            labels: self.labels,
            largest: self.largest,
        };
        (link.way, link.mtu) = (gid, link.mtu.min(mtu));
        link.control.send(&welcome)?;
        self.links[place] = Some(link);
        Ok(())
    }
}

impl Datapath for UcPath {
    fn abilities(&self) -> Abilities {
        Abilities {
            largest: self.largest as usize,
            labels: self.labels,
            run: 1,
            stamps: Stamps::User,
            ecn: false,
            trimmed: false,
        }
    }

    fn now(&self) -> Time {
        super::since(self.opened)
    }

    fn peer(&mut self, at: SocketAddr, labels: &[Label]) -> Result<PeerId, WireError> {
        if let Some(label) = labels.iter().find(|label| **label >= self.labels) {
            return Err(WireError::UnknownLabel { label: *label, labels: self.labels });
        }
        if let Some(known) = self.links.iter().position(|link| link.as_ref().is_some_and(|link| link.at == at)) {
            return Ok(known as PeerId);
        }
        let place = self.vacancy().ok_or(WireError::TooManyPeers(self.most_peers))?;
        self.links[place] = Some(self.call(at)?);
        Ok(place as PeerId)
    }

    fn peer_at(&self, peer: PeerId) -> Option<SocketAddr> {
        self.links.get(peer as usize)?.as_ref().map(|link| link.at)
    }

    fn release(&mut self, peer: PeerId) {
        if let Some(link) = self.links.get_mut(peer as usize) {
            *link = None;
        }
    }

    fn send(&mut self, batch: &[Outbound<'_>]) -> Result<usize, WireError> {
        for (sent, outbound) in batch.iter().enumerate() {
            let Outbound { peer, label, head, payload, .. } = *outbound;
            let size = outbound.size() as u32;
            let link = self.links.get_mut(peer as usize).and_then(Option::as_mut);
            let link = link.ok_or(WireError::UnknownPeer(peer))?;
            let queue = link.places.get(label as usize).filter(|_| !link.broken && size <= link.size);
            let Some(&queue) = queue else {
                self.refused += 1;
                continue;
            };
            if link.free.is_empty() {
                link.gather()?;
            }
            let Some(place) = link.free.pop() else { return Ok(sent) };
            let (at, _) = link.place(place);
            link.device.write(at as usize, head);
            link.device.write(at as usize + head.len(), payload);
            if link.device.post(queue, u64::from(place) + 1, (at, size), Post::Message).is_none() {
                link.free.push(place);
                return Ok(sent);
            }
        }
        Ok(batch.len())
    }

    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Inbound<'_>)) -> Result<usize, WireError> {
        if self.answered.elapsed() >= LOOK {
            self.answer();
        }
        let (count, mut received) = (self.links.len(), 0);
        self.turn = (self.turn + 1) % count.max(1);
        for index in 0..count {
            let peer = (self.turn + index) % count;
            let now = self.now();
            let Some(link) = &mut self.links[peer] else { continue };
            link.gather()?;
            while received < most
                && let Some((label, place, bytes)) = link.arrived.pop_front()
            {
                let (at, size) = link.place(place);
                let read = &mut self.buffer[..bytes.min(size) as usize];
                link.device.read(at as usize, read);
                // Where it cannot be posted again, its queue pair has been given up.
                let posted = link.device.post_receive_into(link.places[label as usize], u64::from(place), (at, size));
                (link.broken, link.known) = (link.broken | posted.is_err(), true);
                take(Inbound { peer: peer as PeerId, label, at: now, ecn: false, trimmed: false, bytes: read });
                received += 1;
            }
        }
        Ok(received)
    }

    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        self.answer();
        for link in self.links.iter_mut().flatten() {
            // Asked for first, so that nothing arrives unheard between the look and the wait.
            link.device.arm()?;
            link.gather()?;
            if !link.arrived.is_empty() {
                return Ok(());
            }
        }
        let left = until.saturating_sub(self.now());
        if left > Time::ZERO {
            use std::os::fd::AsFd;
            let devices: Vec<&Device> = self.links.iter().flatten().map(|link| &link.device).collect();
            let talking = self.links.iter().flatten().filter(|link| !link.broken).map(|link| link.control.fd());
            let callers = self.callers.iter().map(|(control, _)| control.fd());
            let sockets: Vec<_> = talking.chain(callers).chain(self.listener.as_ref().map(AsFd::as_fd)).collect();
            // Callers are given up after a while, though nothing comes of them.
            let most = if self.callers.is_empty() { Duration::MAX } else { Duration::from_millis(100) };
            sys::wait(&devices, &sockets, super::duration(left).min(most))?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for UcPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let peers = self.links.iter().flatten().count();
        f.debug_struct("UcPath")
            .field("device", &self.name)
            .field("labels", &self.labels)
            .field("peers", &peers)
            .finish()
    }
}
