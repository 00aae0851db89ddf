//! Counts of allocations of a thread.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    /// Allocations, and bytes allocated and not freed.
    static COUNTS: Cell<(u64, i64)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, which counts per thread. Checks need it as the program's.
#[derive(Debug)]
pub struct CountingAllocator;

fn count(allocations: u64, bytes: i64) {
    // Not while a thread ends.
    let _ = COUNTS.try_with(|counts| counts.set((counts.get().0 + allocations, counts.get().1 + bytes)));
}

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        unsafe { System.dealloc(pointer, layout) }
    }
}

impl CountingAllocator {
    /// Returns the number of allocations of this thread so far.
    pub fn allocations() -> u64 {
        COUNTS.get().0
    }

    /// Returns the bytes that this thread has allocated less those that it has freed.
    pub fn bytes() -> i64 {
        COUNTS.get().1
    }

    /// Returns `true` if it is the program's allocator.
    pub fn is_used() -> bool {
        let before = Self::allocations();
        drop(std::hint::black_box(Box::new(0u64)));
        Self::allocations() > before
    }
}
