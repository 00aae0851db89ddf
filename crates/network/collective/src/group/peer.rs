//! Connections to another rank: one for short messages, whose buffers are always posted, and one each for the long messages
//! of collectives and of point-to-point operations, which are received where they belong.
//!
//! A short message begins with a [`Header`]: kind (1 B), collective or 0 (1), type (1), reduction (1), root or tag (4), number
//! (4), zero (4), bytes (8), all little-endian; data follow.

#![expect(unsafe_code)]

use super::memory::Buffer;
use crate::plugin::{Opaque, Plugin, PluginError};
use std::{collections::VecDeque, sync::Arc};

pub(super) const HEADER: usize = 24;
/// Largest block that is copied into a short message.
pub(super) const MAX_SHORT: usize = 32 << 10;
/// Buffers posted for short messages.
const SLOTS: usize = 8;
/// Short messages that wait for their operation, after which the sender waits.
const MAX_ARRIVED: usize = 1024;
/// Connections of a rank to another.
pub(super) const LANES: usize = 3;
const TAG: i32 = 0x70;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum MessageKind {
    /// Part of a collective, with data or before long messages.
    Collective = 1,
    /// A point-to-point message, or before a long one.
    Message = 2,
    /// The long message of this number may be sent.
    Go = 3,
    /// The group has failed at the sender; data is the reason.
    Abort = 4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: MessageKind,
    /// Collective, type and reduction by their numbers.
    pub(super) what: [u8; 3],
    /// Root of a collective, or the tag of a message.
    pub(super) root: u32,
    pub(super) number: u32,
    pub(super) bytes: u64,
}

impl Header {
    pub(super) fn message(&self, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER + data.len());
        out.push(self.kind as u8);
        out.extend_from_slice(&self.what);
        out.extend_from_slice(&self.root.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out.extend_from_slice(data);
        out
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, _) = bytes.split_first_chunk::<HEADER>()?;
        let four = |at: usize| u32::from_le_bytes(std::array::from_fn(|of| head[at + of]));
        let kind = match head[0] {
            1 => MessageKind::Collective,
            2 => MessageKind::Message,
            3 => MessageKind::Go,
            4 => MessageKind::Abort,
            _ => return None,
        };
        let bytes = u64::from_le_bytes(std::array::from_fn(|of| head[16 + of]));
        Some(Header { kind, what: [head[1], head[2], head[3]], root: four(4), number: four(8), bytes })
    }
}

/// A short message that has arrived.
#[derive(Debug)]
pub(super) struct Short {
    pub(super) header: Header,
    len: usize,
    buffer: Buffer,
}

impl Short {
    pub(super) fn data(&self) -> &[u8] {
        &self.buffer.bytes[HEADER..self.len]
    }

    pub(super) fn data_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.bytes[HEADER..self.len]
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) sender: Opaque,
    pub(super) receiver: Opaque,
}

#[derive(Debug)]
pub(super) struct Peer {
    /// Short, long of collectives, long of messages.
    pub(super) lanes: [Lane; LANES],
    slots: VecDeque<(Opaque, Buffer)>,
    spare: Vec<Buffer>,
    outbox: VecDeque<Vec<u8>>,
    sending: VecDeque<(Opaque, Buffer)>,
    /// Short messages of collectives.
    pub(super) arrived: VecDeque<Short>,
    /// Messages without a receive.
    pub(super) unexpected: VecDeque<Short>,
    /// First error of a connection that may still have messages.
    closed: Option<String>,
    /// Reason of a failed connection.
    pub(super) failed: Option<String>,
}

/// Starts to send memory of the caller; `None`: no buffer is posted yet.
///
/// # Safety
/// As [`Plugin::send`]; the memory exists.
pub(super) unsafe fn send(
    plugin: &Plugin,
    sender: Opaque,
    at: usize,
    len: usize,
) -> Result<Option<Opaque>, PluginError> {
    let at = if len == 0 { std::ptr::dangling() } else { at as *const u8 };
    // SAFETY: the caller's. The plugin does not read the registration, which is that of every memory of the connection.
    unsafe { plugin.send(sender, std::slice::from_raw_parts(at, len), TAG, sender) }
}

/// Posts memory of the caller for a message.
///
/// # Safety
/// As [`Plugin::receive`]; the memory exists.
pub(super) unsafe fn receive(
    plugin: &Plugin,
    receiver: Opaque,
    at: usize,
    len: usize,
) -> Result<Option<Opaque>, PluginError> {
    let at = if len == 0 { std::ptr::dangling_mut() } else { at as *mut u8 };
    // SAFETY: the caller's.
    unsafe { plugin.receive(receiver, std::slice::from_raw_parts_mut(at, len), TAG, receiver) }
}

impl Peer {
    pub(super) fn new(lanes: [Lane; LANES]) -> Self {
        let (slots, outbox, sending) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let (arrived, unexpected) = (VecDeque::new(), VecDeque::new());
        Peer { lanes, slots, spare: Vec::new(), outbox, sending, arrived, unexpected, closed: None, failed: None }
    }

    pub(super) fn say(&mut self, message: Vec<u8>) {
        if self.failed.is_none() {
            self.outbox.push_back(message);
        }
    }

    /// Returns `true` if no short message is left to be sent or acknowledged.
    pub(super) fn is_quiet(&self) -> bool {
        self.failed.is_some() || self.outbox.is_empty() && self.sending.is_empty()
    }

    pub(super) fn is_unsent(&self) -> bool {
        self.failed.is_none() && !self.outbox.is_empty()
    }

    /// Sends and receives short messages, and passes the received ones to `take`; returns `true` if there was something to do.
    pub(super) fn poll(&mut self, plugin: &Arc<Plugin>, take: &mut dyn FnMut(Short)) -> bool {
        if self.failed.is_some() {
            return false;
        }
        self.try_poll(plugin, take).unwrap_or_else(|error| {
            self.failed = Some(self.closed.take().unwrap_or_else(|| error.to_string()));
            true
        })
    }

    fn try_poll(&mut self, plugin: &Arc<Plugin>, take: &mut dyn FnMut(Short)) -> Result<bool, PluginError> {
        let mut moved = false;
        // A peer that has closed may have sent messages before, which count; its buffers cannot be posted any more.
        let mut closed = None;
        while let Some((request, _)) = self.slots.front()
            && self.arrived.len() + self.unexpected.len() < MAX_ARRIVED
            && let Some(size) = plugin.test(*request)?
        {
            moved = true;
            let Some((_, buffer)) = self.slots.pop_front() else { break };
            let Some(header) = Header::read(&buffer.bytes[..size]) else {
                self.failed = Some("sends messages of another version".into());
                return Ok(true);
            };
            take(Short { header, len: size, buffer });
            closed = self.post(plugin).err();
        }
        if self.slots.len() < SLOTS {
            closed = self.post(plugin).err();
        }
        if let Some(closed) = closed {
            self.closed.get_or_insert_with(|| closed.to_string());
            return if self.slots.is_empty() { Err(closed) } else { Ok(moved) };
        }
        while let Some(message) = self.outbox.front() {
            let mut buffer = self.spare.pop().map_or_else(|| self.buffer(plugin), Ok)?;
            buffer.bytes[..message.len()].copy_from_slice(message);
            // SAFETY: the buffer's memory neither moves nor changes until the request is done or the connection closed.
            let request = unsafe { send(plugin, self.lanes[0].sender, buffer.at(), message.len())? };
            let Some(request) = request else {
                self.spare.push(buffer);
                break;
            };
            self.sending.push_back((request, buffer));
            self.outbox.pop_front();
            moved = true;
        }
        while let Some((request, _)) = self.sending.front()
            && plugin.test(*request)?.is_some()
        {
            self.spare.extend(self.sending.pop_front().map(|(_, buffer)| buffer));
            moved = true;
        }
        Ok(moved)
    }

    fn buffer(&self, plugin: &Arc<Plugin>) -> Result<Buffer, PluginError> {
        Buffer::new(plugin, self.lanes[0].sender, HEADER + MAX_SHORT)
    }

    fn post(&mut self, plugin: &Arc<Plugin>) -> Result<(), PluginError> {
        while self.slots.len() < SLOTS {
            let mut buffer = self.spare.pop().map_or_else(|| self.buffer(plugin), Ok)?;
            // SAFETY: as in `try_poll`.
            let request = unsafe { receive(plugin, self.lanes[0].receiver, buffer.at(), buffer.bytes.len())? };
            let Some(request) = request else {
                self.spare.push(buffer);
                break;
            };
            self.slots.push_back((request, buffer));
        }
        Ok(())
    }

    /// Keeps the memory of a message that has been read.
    pub(super) fn give_back(&mut self, short: Short) {
        if self.spare.len() < 2 * SLOTS {
            self.spare.push(short.buffer);
        }
    }

    /// Closes the connections; memory that was lent to them is the caller's again.
    pub(super) fn close(&mut self, plugin: &Plugin) {
        for lane in &self.lanes {
            // There is no one to report a failure to.
            let _ = plugin.close_sender(lane.sender);
            let _ = plugin.close_receiver(lane.receiver);
        }
        self.failed.get_or_insert_with(|| "closed".into());
    }
}
