//! Memory that NCCL gives us.

#![allow(unsafe_code)]

use crate::node::Memory;

/// Memory of the host that NCCL owns and keeps until its request is done or its communicator closed.
#[derive(Debug)]
pub(crate) struct HostMemory(*mut u8);

// SAFETY: whoever holds it copies under the lock of its node; NCCL may call from any thread.
unsafe impl Send for HostMemory {}

impl HostMemory {
    /// Memory from a pointer on.
    ///
    /// # Safety
    /// As many bytes as the request says must be there, readable for a send and writable for a receive, until `test` says that
    /// the request is done or its communicator is closed.
    pub(crate) unsafe fn new(at: *mut u8) -> Self {
        HostMemory(at)
    }
}

impl Memory for HostMemory {
    fn append_to(&self, out: &mut Vec<u8>, from: u64, bytes: usize) {
        if bytes > 0 {
            // SAFETY: the node reads no further than the size of the message that NCCL named with this pointer.
            out.extend_from_slice(unsafe { std::slice::from_raw_parts(self.0.add(from as usize), bytes) });
        }
    }

    fn write(&mut self, to: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            // SAFETY: the node writes no further than the size of the buffer that NCCL named with this pointer.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(to as usize), bytes.len()) }
        }
    }
}
