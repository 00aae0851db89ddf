//! Whether this process is still the one that called `init`: a child that was forked has our memory, but neither our thread nor
//! sockets of its own. Asked at every call, so that no system call may be needed for it.

#![allow(unsafe_code)]

use rustix::{
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap},
    process::getpid,
};
use std::{
    ptr,
    sync::atomic::{AtomicI32, AtomicPtr, Ordering},
};

/// A page that a child finds empty, in which our number stands otherwise.
static PAGE: AtomicPtr<AtomicI32> = AtomicPtr::new(ptr::null_mut());
/// Our number where there is no such page.
static PLAIN: AtomicI32 = AtomicI32::new(0);
const BYTES: usize = 4096;

/// Who called `init`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nobody has.
    Nobody,
    /// This process.
    Us,
    /// The process that this one was forked from.
    Parent,
}

/// This process has called `init`.
pub(crate) fn own() {
    PLAIN.store(getpid().as_raw_nonzero().get(), Ordering::Release);
    if PAGE.load(Ordering::Acquire).is_null() {
        // SAFETY: a new mapping, which nobody else has.
        let mapped =
            unsafe { mmap_anonymous(ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
        let Ok(page) = mapped else { return };
        // SAFETY: the page is ours.
        if unsafe { madvise(page, BYTES, Advice::LinuxWipeOnFork) }.is_err() {
            // SAFETY: nobody else knows of it.
            let _ = unsafe { munmap(page, BYTES) };
            return;
        }
        let page = page.cast::<AtomicI32>();
        if PAGE.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: somebody else was faster, so nobody knows of this one.
            let _ = unsafe { munmap(page.cast(), BYTES) };
        }
    }
    if let Some(page) = page() {
        page.store(1, Ordering::Release);
    }
}

fn page() -> Option<&'static AtomicI32> {
    // SAFETY: once it is known the page stays until the library is unloaded.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }
}

/// Nobody has called `init` any more.
pub(crate) fn disown() {
    PLAIN.store(0, Ordering::Release);
}

/// Who called `init`.
#[inline]
pub(crate) fn owner() -> Owner {
    let plain = PLAIN.load(Ordering::Acquire);
    let ours = match page() {
        _ if plain == 0 => return Owner::Nobody,
        Some(page) => page.load(Ordering::Acquire) == 1,
        None => plain == getpid().as_raw_nonzero().get(),
    };
    if ours { Owner::Us } else { Owner::Parent }
}

/// The library is unloaded.
pub(crate) fn unload() {
    let page = PAGE.swap(ptr::null_mut(), Ordering::AcqRel);
    if !page.is_null() {
        // SAFETY: nobody calls us any more.
        let _ = unsafe { munmap(page.cast(), BYTES) };
    }
}
