use super::{
    VerbsSettings,
    control::{Control, Frame},
    gid,
    sys::{self, AddressVector, Device, Post, Remote, WorkCompletion},
};
use crate::{
    Label, WireError,
    chunks::{Chunk, ChunkPath, Completion, Full, QueueId},
};
use anabranch_random::Stream;
use anabranch_units::Time;
use std::{
    collections::VecDeque,
    net::{SocketAddr, TcpStream},
    time::Instant,
};

struct Peer {
    control: Control,
    gid: [u8; 16],
    mtu: u8,
    /// Address, remote key and size of its memory.
    at: u64,
    key: u32,
    memory: u64,
}

/// Its index is that in the device.
#[derive(Clone, Copy, Debug)]
struct Queue {
    qpn: u32,
    outstanding: u32,
    failed: bool,
}

/// Open device whose queue pairs write to a receiver's memory.
pub struct VerbsPath {
    opened: Instant,
    device: Device,
    settings: VerbsSettings,
    mtu: u8,
    peer: Peer,
    queues: Vec<Queue>,
    completed: VecDeque<Completion>,
    draws: Stream,
    last_error: Option<String>,
}

impl VerbsPath {
    /// Opens a device with `memory` bytes and connects to a serving receiver.
    ///
    /// # Errors
    /// Fails if library, device or receiver are missing or incompatible.
    pub fn connect(to: SocketAddr, memory: u64, settings: VerbsSettings, seed: u64) -> Result<Self, WireError> {
        let name = super::device(settings.device.as_deref())?;
        let stream = TcpStream::connect_timeout(&to, settings.peer_timeout).map_err(|source| {
            let what = format!("no reply from {to}: check that `anabranch serve --datapath rc` runs there");
            WireError::System { what, source }
        })?;
        let control = Control::new(stream, settings.peer_timeout)
            .map_err(|source| WireError::System { what: to.to_string(), source })?;
        let index = gid::choose(&name, settings.gid_index, control.local().map(|at| at.ip()))?;
        let bytes = usize::try_from(memory).map_err(|_| WireError::Verbs(format!("{memory} B are too many")))?;
        let device = Device::open(&name, index, bytes, super::COMPLETIONS, settings.reliable())?;
        let (gid, mtu) = (device.gid()?, device.mtu()?);
        let peer = greet(control, gid, mtu, memory)?;
        Ok(VerbsPath {
            opened: Instant::now(),
            device,
            settings,
            mtu,
            peer,
            queues: Vec::new(),
            completed: VecDeque::new(),
            draws: Stream::keyed(seed, std::process::id().into(), "first packets"),
            last_error: None,
        })
    }

    /// Writes to own memory, from which chunks are read; panics if the bytes exceed it.
    pub fn fill(&mut self, at: u64, bytes: &[u8]) {
        self.device.write(at, bytes);
    }

    /// Returns the reason of the last failure of the hardware.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    pub(super) fn control(&mut self) -> &mut Control {
        &mut self.peer.control
    }

    fn address_vector(&self, label: Label) -> AddressVector {
        AddressVector { gid: self.peer.gid, flow_label: label, class: 0 }
    }

    /// The queue pair is in state RESET.
    fn establish(&mut self, at: usize, qpn: u32, label: Label) -> Result<(), WireError> {
        let psn = self.draws.below(1 << 24) as u32;
        self.device.initialise(at)?;
        let mtu = self.mtu.min(self.peer.mtu);
        let number = at as u32;
        let control = self.control();
        control.send(&Frame::Queue { queue: number, qpn, psn, label })?;
        let (theirs, their_psn) = control.expect(&mut |frame| match *frame {
            Frame::Ready { queue, qpn, psn } if queue == number => Some((qpn, psn)),
            _ => None,
        })?;
        let remote = Remote { qpn: theirs, psn: their_psn, mtu, address: self.address_vector(label) };
        self.device.connect(at, &remote, psn)
    }

    fn gather(&mut self) -> Result<(), WireError> {
        let now = self.now();
        let VerbsPath { device, queues, completed, .. } = self;
        let mut error = None;
        device.poll(&mut |completion| {
            let WorkCompletion::Sent { qpn, number, error: reason } = completion else { return };
            let Some((state, queue)) = queues.iter_mut().zip(0..).find(|(state, _)| state.qpn == qpn) else { return };
            state.outstanding = state.outstanding.saturating_sub(1);
            // Chunks behind a failure have no reason of their own.
            if reason.is_some() && !state.failed {
                error = reason;
            }
            state.failed |= reason.is_some();
            completed.push_back(Completion { queue, chunk: number - 1, at: now, is_done: reason.is_none() });
        })?;
        if let Some(error) = error {
            self.last_error = Some(self.device.meaning(error));
        }
        Ok(())
    }
}

fn greet(mut control: Control, own_gid: [u8; 16], own_mtu: u8, required: u64) -> Result<Peer, WireError> {
    control.send(&Frame::Hello { gid: own_gid, mtu: own_mtu, memory: required })?;
    let (gid, mtu, at, key, memory) = control.expect(&mut |frame| match *frame {
        Frame::Welcome { gid, mtu, at, key, memory } => Some((gid, mtu, at, key, memory)),
        _ => None,
    })?;
    if memory < required {
        return Err(WireError::Verbs(format!(
            "{} has {memory} B of memory, {required} B are required: use smaller chunks",
            control.peer
        )));
    }
    Ok(Peer { control, gid, mtu, at, key, memory })
}

impl ChunkPath for VerbsPath {
    fn now(&self) -> Time {
        super::since(self.opened)
    }

    fn queue(&mut self, label: Label) -> Result<QueueId, WireError> {
        super::check_label(label)?;
        let (at, qpn) = self.device.create(self.settings.depth, 1)?;
        self.establish(at, qpn, label)?;
        self.queues.push(Queue { qpn, outstanding: 0, failed: false });
        Ok(at as QueueId)
    }

    fn post(&mut self, queue: QueueId, chunk: Chunk) -> Result<(), Full> {
        let state = &mut self.queues[queue as usize];
        if state.outstanding >= self.settings.depth {
            return Err(Full);
        }
        let peer = &self.peer;
        let end = chunk.to.checked_add(u64::from(chunk.bytes)).filter(|end| *end <= peer.memory);
        assert!(end.is_some(), "{chunk:?} is not within the {} B of the receiver", peer.memory);
        // 0 is reserved for receives.
        let what = Post::Write { to: peer.at + chunk.to, key: peer.key, notice: chunk.notice };
        self.device.post(queue as usize, chunk.number + 1, (chunk.from, chunk.bytes), what).ok_or(Full)?;
        state.outstanding += 1;
        Ok(())
    }

    fn completions(&mut self, take: &mut dyn FnMut(Completion)) -> Result<(), WireError> {
        self.gather()?;
        self.completed.drain(..).for_each(take);
        Ok(())
    }

    fn relabel(&mut self, queue: QueueId, label: Label) -> Result<Time, WireError> {
        let at = queue as usize;
        let Queue { qpn, failed, .. } = self.queues[at];
        super::check_label(label)?;
        let start = self.now();
        if failed {
            self.device.reset(at)?;
            self.establish(at, qpn, label)?;
        } else {
            self.device.redirect(at, self.address_vector(label))?;
        }
        self.queues[at].failed = false;
        Ok(self.now().saturating_sub(start))
    }

    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        // First, so that no completion is missed between the poll and the wait.
        self.device.arm()?;
        self.gather()?;
        if !self.completed.is_empty() || self.peer.control.has_frames() {
            return Ok(());
        }
        let left = until.saturating_sub(self.now());
        if left > Time::ZERO {
            sys::wait(&[&self.device], &[self.peer.control.fd()], &[], super::duration(left))?;
        }
        Ok(())
    }
}
