//! Detection of forks: a child has a copy of the memory, but neither the helper thread nor sockets of its own. The
//! check is made at every call, so it needs no system call where possible.

#![allow(unsafe_code)]

use rustix::{
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap},
    process::getpid,
};
use std::{
    ptr,
    sync::atomic::{AtomicI32, AtomicPtr, Ordering},
};

/// A page that the kernel clears in a child; it contains 1 in the process that called `init`.
static PAGE: AtomicPtr<AtomicI32> = AtomicPtr::new(ptr::null_mut());
/// Process number of the caller of `init`, compared where there is no such page; 0: none.
static PLAIN: AtomicI32 = AtomicI32::new(0);
const BYTES: usize = 4096;

/// The process that called `init`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    None,
    Us,
    Parent,
}

/// Records that this process has called `init`.
pub(crate) fn own() {
    PLAIN.store(getpid().as_raw_nonzero().get(), Ordering::Release);
    if PAGE.load(Ordering::Acquire).is_null() {
        // SAFETY: a new mapping without other references.
        let mapped =
            unsafe { mmap_anonymous(ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
        let Ok(page) = mapped else { return };
        // SAFETY: the page is ours.
        if unsafe { madvise(page, BYTES, Advice::LinuxWipeOnFork) }.is_err() {
            // SAFETY: no other thread has a reference to it.
            let _ = unsafe { munmap(page, BYTES) };
            return;
        }
        let page = page.cast::<AtomicI32>();
        if PAGE.compare_exchange(ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: another thread has stored its page first, so this one has no references.
            let _ = unsafe { munmap(page.cast(), BYTES) };
        }
    }
    if let Some(page) = page() {
        page.store(1, Ordering::Release);
    }
}

fn page() -> Option<&'static AtomicI32> {
    // SAFETY: once stored, the page stays mapped until the library is unloaded.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }
}

pub(crate) fn disown() {
    PLAIN.store(0, Ordering::Release);
}

#[inline]
pub(crate) fn owner() -> Owner {
    let plain = PLAIN.load(Ordering::Acquire);
    let ours = match page() {
        _ if plain == 0 => return Owner::None,
        Some(page) => page.load(Ordering::Acquire) == 1,
        None => plain == getpid().as_raw_nonzero().get(),
    };
    if ours { Owner::Us } else { Owner::Parent }
}

pub(crate) fn unload() {
    let page = PAGE.swap(ptr::null_mut(), Ordering::AcqRel);
    if !page.is_null() {
        // SAFETY: no call is made into an unloaded library.
        let _ = unsafe { munmap(page.cast(), BYTES) };
    }
}
