//! Host memory of NCCL's requests.

#![allow(unsafe_code)]

use crate::node::Memory;
use anabranch_endpoint::Bytes;

/// Memory of the host that NCCL owns and keeps until its request is done or its communicator closed.
#[derive(Debug)]
pub(crate) struct HostMemory(*mut u8);

// SAFETY: every holder copies under the lock of its node; NCCL may call from any thread.
unsafe impl Send for HostMemory {}

impl HostMemory {
    /// Creates a reference to the memory that begins at `at`.
    ///
    /// # Safety
    /// The memory must have the size of its request, readable for a send and writable for a receive, until `test` reports that
    /// the request is done or its communicator is closed.
    pub(crate) unsafe fn new(at: *mut u8) -> Self {
        HostMemory(at)
    }
}

/// Bytes from which lending costs less than copying.
const WORTH_LENDING: usize = 2048;

struct Lent {
    at: *const u8,
    bytes: usize,
}

// SAFETY: it is only read, and NCCL writes to it only after the node has returned it.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the bytes are valid until the request is done or its communicator closed (`HostMemory::new`); the node returns
        // them before that (`Memory::lend`).
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }
}

impl Memory for HostMemory {
    fn lend(&self, from: u64, bytes: usize) -> Bytes {
        if bytes == 0 {
            return Bytes::new();
        }
        let lent = self.lend_in_place(from, bytes);
        if bytes < WORTH_LENDING { Bytes::copy_from_slice(&lent) } else { lent }
    }

    fn lend_in_place(&self, from: u64, bytes: usize) -> Bytes {
        if bytes == 0 {
            return Bytes::new();
        }
        // SAFETY: the node reads no further than the size of the message that NCCL passed with this pointer.
        Bytes::from_owner(Lent { at: unsafe { self.0.add(from as usize) }, bytes })
    }

    fn address(&self) -> u64 {
        self.0 as u64
    }

    fn write(&mut self, to: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            // SAFETY: the node writes no further than the size of the buffer that NCCL passed with this pointer.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(to as usize), bytes.len()) }
        }
    }
}
