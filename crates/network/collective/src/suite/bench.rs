//! A loaded plugin with sender and receiver in this process, and messages with guards around their buffers.

use super::verdict::{End, Order, fail};
use crate::plugin::{Handle, MAX_GROUP, Opaque, Piece, Plugin, PluginError, Properties};
use std::{
    ffi::c_int,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Instant,
};

/// Seconds without a completed request after which a case fails: half of its limit.
pub(super) static PATIENCE: AtomicU64 = AtomicU64::new(10);
/// Open requests of a communicator in NCCL.
pub(super) const DEPTH: usize = 32;
/// Bytes before and after a buffer that no call may write.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xa5;

#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) sender: Opaque,
    pub(super) receiver: Opaque,
}

pub(super) struct Bench {
    pub(super) plugin: Plugin,
    pub(super) properties: Properties,
    /// Buffers of a grouped receive.
    pub(super) group: usize,
}

// SAFETY: NCCL calls a plugin from a thread for each of its communicators.
unsafe impl Sync for Bench {}
// SAFETY: as above.
unsafe impl Sync for Opaque {}

/// Ends a wait that makes no progress.
pub(super) struct Patience(Instant, &'static str);

impl Patience {
    pub(super) fn new(call: &'static str) -> Self {
        Patience(Instant::now(), call)
    }

    pub(super) fn after(&mut self, is_progress: bool) -> Result<(), End> {
        if is_progress {
            self.0 = Instant::now();
        } else if self.0.elapsed().as_secs() >= PATIENCE.load(Ordering::Relaxed) {
            return Err(fail(self.1, format!("no progress for {} s", self.0.elapsed().as_secs())));
        } else {
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// Repeats a call until it has a result.
pub(super) fn until<T>(call: &'static str, mut body: impl FnMut() -> Result<Option<T>, PluginError>) -> Result<T, End> {
    let mut patience = Patience::new(call);
    loop {
        match body()? {
            Some(found) => return Ok(found),
            None => patience.after(false)?,
        }
    }
}

/// `true` once a case ends early: requests may be open, and a plugin may access their buffers until connections close.
pub(super) static KEEPS: AtomicBool = AtomicBool::new(false);

/// Memory between guards.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    at: usize,
    room: usize,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if KEEPS.load(Ordering::Relaxed) {
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}

impl Buffer {
    /// Begins `offset` bytes, at most 63, after a multiple of 64.
    pub(super) fn new(room: usize, offset: usize) -> Self {
        let bytes = vec![GUARD_BYTE; room + 4 * GUARD];
        let at = bytes.as_ptr().align_offset(GUARD) + GUARD + offset;
        Buffer { bytes, at, room }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..self.at + self.room]
    }

    pub(super) fn fill(&mut self, seed: usize) {
        self.bytes().iter_mut().enumerate().for_each(|(at, byte)| *byte = pattern(seed, at));
    }

    /// Returns `true` if nothing beyond the first `size` bytes was written.
    pub(super) fn is_intact_after(&self, size: usize) -> bool {
        let end = self.at + size;
        let is_guard = |part: &[u8]| part.iter().all(|byte| *byte == GUARD_BYTE);
        is_guard(&self.bytes[..self.at]) && is_guard(&self.bytes[end..])
    }
}

fn pattern(seed: usize, at: usize) -> u8 {
    (at.wrapping_mul(31) ^ (at >> 8) ^ (at >> 16) ^ seed.wrapping_mul(17)) as u8
}

/// A message between two buffers of its own.
pub(super) struct Message {
    pub(super) from: Buffer,
    pub(super) to: Buffer,
    pub(super) tag: c_int,
    seed: usize,
}

impl Message {
    pub(super) fn new(size: usize, room: usize, tag: c_int) -> Self {
        Message::at(size, room, tag, [0, 0])
    }

    /// With the offsets of both buffers in a line of 64 B.
    pub(super) fn at(size: usize, room: usize, tag: c_int, offsets: [usize; 2]) -> Self {
        let seed = size.wrapping_add(tag as usize);
        let mut from = Buffer::new(size, offsets[0]);
        from.fill(seed);
        Message { from, to: Buffer::new(room, offsets[1]), tag, seed }
    }

    pub(super) fn size(&self) -> usize {
        self.from.room
    }

    /// Compares what has arrived with what was sent, whose buffer may have been reused.
    pub(super) fn check(&mut self, size: c_int) -> Result<(), End> {
        let (sent, seed) = (self.size(), self.seed);
        // NCCL's sizes are of type `int`.
        if c_int::try_from(sent).is_ok_and(|sent| sent != size) {
            return Err(fail("test", format!("{size} B reported of a message of {sent} B")));
        }
        let wrong = self.to.bytes()[..sent].iter().enumerate().position(|(at, byte)| *byte != pattern(seed, at));
        if let Some(at) = wrong {
            return Err(fail("test", format!("a message of {sent} B is done, and its byte {at} is wrong")));
        }
        if !self.to.is_intact_after(sent) {
            return Err(fail("test", format!("bytes beyond a message of {sent} B were written")));
        }
        Ok(())
    }
}

impl Bench {
    pub(super) fn open(order: &Order) -> Result<Self, End> {
        let plugin = Plugin::load(&order.plugin, order.abi)?;
        if plugin.devices()? < 1 {
            return Err(fail("devices", "there is no device"));
        }
        let properties = plugin.properties(0)?;
        let group = usize::try_from(properties.limits.max_recvs).unwrap_or(0).clamp(1, 8);
        Ok(Bench { plugin, properties, group })
    }

    pub(super) fn describe(&self) -> Result<String, End> {
        let speed = self.properties.limits.speed;
        Ok(format!("ncclNetPlugin_v{}, device {} ({speed} Mbit/s)", self.plugin.version(), self.properties.name))
    }

    pub(super) fn with_pair(&self, run: impl FnOnce(&Self, Pair) -> Result<(), End>) -> Result<(), End> {
        let pair = self.pair()?;
        run(self, pair)?;
        self.close(pair)
    }

    pub(super) fn pair(&self) -> Result<Pair, End> {
        self.pair_of([0, 0])
    }

    /// With the devices of sender and receiver.
    pub(super) fn pair_of(&self, [from, to]: [c_int; 2]) -> Result<Pair, End> {
        let (handle, listener) = self.plugin.listen(to)?;
        let pair = self.connect_from(from, handle, listener)?;
        self.plugin.close_listener(listener)?;
        Ok(pair)
    }

    pub(super) fn connect(&self, handle: Handle, listener: Opaque) -> Result<Pair, End> {
        self.connect_from(0, handle, listener)
    }

    /// Connects in turns: neither end may wait for the other.
    fn connect_from(&self, device: c_int, mut handle: Handle, listener: Opaque) -> Result<Pair, End> {
        let (mut sender, mut receiver) = (None, None);
        until("connect", || {
            sender = if sender.is_none() { self.plugin.connect(device, &mut handle)? } else { sender };
            receiver = if receiver.is_none() { self.plugin.accept(listener)? } else { receiver };
            Ok(sender.zip(receiver).map(|(sender, receiver)| Pair { sender, receiver }))
        })
    }

    pub(super) fn close(&self, pair: Pair) -> Result<(), End> {
        self.plugin.close_sender(pair.sender)?;
        Ok(self.plugin.close_receiver(pair.receiver)?)
    }

    pub(super) fn register(&self, pair: Pair, messages: &mut [Message]) -> Result<Vec<[Opaque; 2]>, PluginError> {
        let both = |message: &mut Message| {
            let from = self.plugin.register(pair.sender, message.from.bytes())?;
            Ok([from, self.plugin.register(pair.receiver, message.to.bytes())?])
        };
        messages.iter_mut().map(both).collect()
    }

    pub(super) fn deregister(&self, pair: Pair, memory: &[[Opaque; 2]]) -> Result<(), PluginError> {
        memory.iter().try_for_each(|[from, to]| {
            self.plugin.deregister(pair.sender, *from)?;
            self.plugin.deregister(pair.receiver, *to)
        })
    }

    pub(super) fn post(
        &self,
        pair: Pair,
        messages: &mut [Message],
        memory: &[[Opaque; 2]],
    ) -> Result<Option<Opaque>, PluginError> {
        let piece = |(message, memory): (&mut Message, &[Opaque; 2])| {
            let (tag, bytes) = (message.tag, message.to.bytes());
            Piece { data: bytes.as_mut_ptr(), size: bytes.len(), tag, memory: memory[1] }
        };
        let pieces: Vec<Piece> = messages.iter_mut().zip(memory).map(piece).collect();
        // SAFETY: buffers of messages do not move, and no one else uses them before the request is done.
        unsafe { self.plugin.receive_group(pair.receiver, &pieces, false) }
    }

    pub(super) fn send(
        &self,
        pair: Pair,
        message: &mut Message,
        memory: &[Opaque; 2],
    ) -> Result<Option<Opaque>, PluginError> {
        let tag = message.tag;
        // SAFETY: as above.
        unsafe { self.plugin.send(pair.sender, message.from.bytes(), tag, memory[0]) }
    }

    /// Carries messages in groups of receives, with as many open receives and sends; the sends of group `k` leave in the
    /// order `of(k)`. Each buffer is overwritten as soon as its send is done.
    pub(super) fn carry(
        &self,
        pair: Pair,
        messages: &mut [Message],
        (group, depth): (usize, usize),
        of: impl Fn(usize) -> Vec<usize>,
    ) -> Result<(), End> {
        let memory = self.register(pair, messages)?;
        let groups = messages.len() / group;
        let order: Vec<usize> = (0..groups).flat_map(|k| of(k).into_iter().map(move |at| k * group + at)).collect();
        let (mut receiving, mut sending) = (Vec::<(usize, Opaque)>::new(), Vec::<(usize, Opaque)>::new());
        let (mut posted, mut sent, mut received) = (0, 0, 0);
        let mut patience = Patience::new("test");
        while received < groups || sent < order.len() || !sending.is_empty() {
            let mut moved = false;
            while posted < groups && receiving.len() < depth {
                let range = posted * group..(posted + 1) * group;
                let Some(request) = self.post(pair, &mut messages[range.clone()], &memory[range])? else { break };
                receiving.push((posted, request));
                (posted, moved) = (posted + 1, true);
            }
            while sent < order.len() && sending.len() < depth * group {
                let at = order[sent];
                let Some(request) = self.send(pair, &mut messages[at], &memory[at])? else { break };
                sending.push((at, request));
                (sent, moved) = (sent + 1, true);
            }
            // The last first: requests may be tested in any order.
            for at in (0..sending.len()).rev() {
                if self.plugin.test_group(sending[at].1, Some(&mut [0; MAX_GROUP]))? {
                    let (number, _) = sending.remove(at);
                    messages[number].from.bytes().fill(0xee);
                    moved = true;
                }
            }
            for at in (0..receiving.len()).rev() {
                let mut sizes = [0; MAX_GROUP];
                if self.plugin.test_group(receiving[at].1, Some(&mut sizes))? {
                    let (number, _) = receiving.remove(at);
                    for index in 0..group {
                        messages[number * group + index].check(sizes[index])?;
                    }
                    (received, moved) = (received + 1, true);
                }
            }
            patience.after(moved)?;
        }
        if let Some(message) = messages.iter().find(|message| !message.from.is_intact_after(message.size())) {
            return Err(fail("isend", format!("it writes around a message of {} B", message.size())));
        }
        Ok(self.deregister(pair, &memory)?)
    }

    /// Carries messages one by one or several at once.
    pub(super) fn exchange(&self, pair: Pair, messages: &mut [Message], depth: usize) -> Result<(), End> {
        self.carry(pair, messages, (1, depth), |_| vec![0])
    }
}
