#![allow(unsafe_code)]

/// Memory of the owner that hardware may read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

impl Region {
    /// # Safety
    /// The memory may be read and written by anyone until its registration ends ([`crate::Datapath::deregister`]).
    pub unsafe fn new(at: *mut u8, bytes: usize) -> Self {
        Region { at: at as u64, bytes: bytes as u64 }
    }
}
