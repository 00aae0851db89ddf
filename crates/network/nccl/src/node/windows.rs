//! Memory that a receiver grants to its sender, which writes whole chunks to it by RDMA, in any order. Each chunk has a notice: which
//! buffer it is for, and how many chunks the message has. So the receiver counts, and adds up their bytes.

use super::{
    Node,
    parts::{Failure, Memory, Request},
};
use crate::{
    abi::Code,
    ids::Id,
    message::{PostedBuffer, Window},
};
use anabranch_wire::{Datapath, PeerId, Region};

/// Bits of a notice that say how many chunks a message has, less one; the others name the window.
const COUNT_BITS: u32 = 18;
pub(super) const MAX_CHUNKS: u64 = 1 << COUNT_BITS;
const MAX_WINDOWS: u32 = 1 << (32 - COUNT_BITS);

/// Returns the notice of a message's chunks.
pub(super) fn notice(window: u32, chunks: u64) -> u32 {
    window << COUNT_BITS | (chunks - 1) as u32
}

/// Returns offset and bytes of chunk `index` of `count`. All have nearly one size: the time of a short one would measure its path
/// less accurately.
pub(super) fn chunk_of(bytes: u64, count: u64, index: u64) -> (u64, u64) {
    let (size, longer) = (bytes / count, bytes % count);
    (index * size + index.min(longer), size + u64::from(index < longer))
}

#[derive(Clone, Copy, Debug)]
struct Granted {
    request: Id,
    index: usize,
    chunks: u64,
}

/// Granted buffers of a peer, by number.
#[derive(Debug, Default)]
pub(super) struct Windows {
    all: Vec<Option<Granted>>,
    free: Vec<u32>,
}

impl Windows {
    fn open(&mut self, request: Id, index: usize) -> Option<u32> {
        let granted = Some(Granted { request, index, chunks: 0 });
        if let Some(number) = self.free.pop() {
            self.all[number as usize] = granted;
            return Some(number);
        }
        let number = u32::try_from(self.all.len()).ok().filter(|number| *number < MAX_WINDOWS)?;
        self.all.push(granted);
        Some(number)
    }

    /// Forgets the buffers of requests. Their numbers stay unused: chunks may still be on their way.
    pub(super) fn forget(&mut self, requests: &[Id]) {
        for place in &mut self.all {
            *place = place.filter(|granted| !requests.contains(&granted.request));
        }
    }
}

impl<D: Datapath, M: Memory> Node<D, M> {
    /// Registers memory of NCCL; `None`: messages are copied.
    pub fn register(&mut self, region: Region) -> Result<Option<Id>, Failure> {
        let registered = self.driver.datapath().register(region);
        if !registered.map_err(|error| Failure::new(Code::System, error.to_string()))? {
            return Ok(None);
        }
        Ok(self.regions.insert(region))
    }

    /// Ends a registration; no effect if there is none.
    pub fn deregister(&mut self, region: Id) {
        if let Some(region) = self.regions.remove(region) {
            self.driver.datapath().deregister(region);
        }
    }

    /// Fails unless a message's memory is registered, where it is written from there.
    pub(super) fn check_registered(&mut self, memory: &M, size: u64) -> Result<(), Failure> {
        let is_known = !self.writes || size == 0 || self.driver.datapath().key(memory.address(), size).is_some();
        let unknown = || Failure::internal(format!("{size} B are not in memory that NCCL has registered"));
        is_known.then_some(()).ok_or_else(unknown)
    }

    /// Opens windows for the buffers of a receive; returns `false` if there are too many.
    pub(super) fn open_windows(&mut self, peer: PeerId, request: Id, entries: &mut [PostedBuffer]) -> bool {
        let Node { driver, peers, requests, .. } = self;
        let (Some(known), Some(Request::Receive { parts, .. })) = (peers.get_mut(&peer), requests.get(request)) else {
            return false;
        };
        if known.windows.all.len() + entries.len() > MAX_WINDOWS as usize && known.windows.free.len() < entries.len() {
            return false;
        }
        for (index, (entry, part)) in entries.iter_mut().zip(parts).enumerate() {
            let at = part.buffer.memory.address();
            let key = driver.datapath().key(at, entry.size).unwrap_or_default();
            let number = known.windows.open(request, index);
            entry.window = number.map(|number| Window { at, key, number });
        }
        true
    }

    /// Counts a chunk that a peer has written; returns `false` if no peer may write that.
    pub(super) fn on_written(&mut self, peer: PeerId, notice: u32, bytes: u64) -> bool {
        let Some(known) = self.peers.get_mut(&peer) else { return true };
        let (number, chunks) = (notice >> COUNT_BITS, u64::from(notice) % MAX_CHUNKS + 1);
        // A chunk for a receiver that was closed meanwhile is no error of the peer.
        let Some(Some(granted)) = known.windows.all.get_mut(number as usize) else { return true };
        granted.chunks += 1;
        let Granted { request, index, chunks: written } = *granted;
        let Some(Request::Receive { receiver, parts, left }) = self.requests.get_mut(request) else { return true };
        let (receiver, part) = (*receiver, &mut parts[index]);
        part.received += bytes;
        if part.received > part.buffer.size || written > chunks {
            return false;
        }
        if written == chunks {
            part.size = Some(part.received);
            *left -= 1;
            known.windows.all[number as usize] = None;
            known.windows.free.push(number);
            self.advance_receiver(receiver);
        }
        true
    }

    /// Takes receives that are complete from the front of their queue, and grants others.
    fn advance_receiver(&mut self, id: Id) {
        let Some(receiver) = self.receivers.get_mut(id) else { return };
        let requests = &self.requests;
        // One that was reported as done is gone.
        let is_complete = |request: &Id| !matches!(requests.get(*request), Some(Request::Receive { left: 1.., .. }));
        while receiver.waiting.front().is_some_and(is_complete) {
            receiver.waiting.pop_front();
            receiver.completed = receiver.completed.wrapping_add(1);
        }
        self.grant(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_a_message() {
        // 10 bytes in 4 chunks: 3, 3, 2, 2.
        assert_eq!([0, 1, 2, 3].map(|index| chunk_of(10, 4, index)), [(0, 3), (3, 3), (6, 2), (8, 2)]);
        assert_eq!((chunk_of(7, 1, 0), chunk_of(0, 1, 0)), ((0, 7), (0, 0)));
        assert_eq!(notice(5, MAX_CHUNKS), 0x0017_ffff);
    }
}
