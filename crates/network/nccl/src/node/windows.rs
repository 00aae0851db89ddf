//! Memory that a receiver grants to its sender, which writes whole chunks to it by RDMA, in any order. Each chunk has a notice: which
//! buffer it is for, and how many chunks the message has. So the receiver counts, and adds up their bytes.

use crate::ids::Id;

/// Bits of a notice with the number of a message's chunks, less one; the others name the window.
const COUNT_BITS: u32 = 18;
pub(super) const MAX_CHUNKS: u64 = 1 << COUNT_BITS;
const MAX_WINDOWS: u32 = 1 << (32 - COUNT_BITS);

/// Splits a notice into number of the window and chunks of the message.
pub(super) fn read_notice(notice: u32) -> (u32, u64) {
    (notice >> COUNT_BITS, u64::from(notice) % MAX_CHUNKS + 1)
}

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
pub(super) struct Granted {
    pub(super) request: Id,
    pub(super) index: usize,
    /// Chunks that have arrived.
    pub(super) chunks: u64,
}

/// Granted buffers of a peer, by number.
#[derive(Debug, Default)]
pub(super) struct Windows {
    all: Vec<Option<Granted>>,
    free: Vec<u32>,
}

impl Windows {
    /// Returns `true` if there are numbers for this many more.
    pub(super) fn have_room(&self, count: usize) -> bool {
        self.all.len() + count <= MAX_WINDOWS as usize || self.free.len() >= count
    }

    pub(super) fn open(&mut self, request: Id, index: usize) -> Option<u32> {
        let granted = Some(Granted { request, index, chunks: 0 });
        if let Some(number) = self.free.pop() {
            self.all[number as usize] = granted;
            return Some(number);
        }
        let number = u32::try_from(self.all.len()).ok().filter(|number| *number < MAX_WINDOWS)?;
        self.all.push(granted);
        Some(number)
    }

    /// Counts a chunk; `None`: the buffer is granted no longer.
    pub(super) fn count(&mut self, number: u32) -> Option<Granted> {
        let granted = self.all.get_mut(number as usize)?.as_mut()?;
        granted.chunks += 1;
        Some(*granted)
    }

    /// All chunks have arrived.
    pub(super) fn close(&mut self, number: u32) {
        self.all[number as usize] = None;
        self.free.push(number);
    }

    /// Forgets the buffers of requests. Their numbers stay unused: chunks may still be on their way.
    pub(super) fn forget(&mut self, requests: &[Id]) {
        for place in &mut self.all {
            *place = place.filter(|granted| !requests.contains(&granted.request));
        }
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
        assert_eq!((notice(5, MAX_CHUNKS), read_notice(0x0017_ffff)), (0x0017_ffff, (5, MAX_CHUNKS)));
    }
}
