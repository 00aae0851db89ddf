//! Allocator of the program: where the system gives no more memory, it ends with a message and exit code 2.

use anabranch::at_limit;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::Write,
    sync::atomic::{AtomicBool, Ordering},
};

#[global_allocator]
static ALLOCATOR: OrMessage = OrMessage;

struct OrMessage;

/// Another thread writes the message.
static ENDED: AtomicBool = AtomicBool::new(false);

#[allow(unsafe_code)]
// SAFETY: all calls are passed on to the system's allocator, whose results are returned unless they are null.
unsafe impl GlobalAlloc for OrMessage {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        checked(unsafe { System.realloc(old, layout, size) }, size)
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        unsafe { System.dealloc(old, layout) }
    }
}

#[inline]
fn checked(new: *mut u8, bytes: usize) -> *mut u8 {
    if new.is_null() { refused(bytes) } else { new }
}

/// Ends the program likewise where the system gives no memory for the stack of a thread, at which the library panics.
pub(crate) fn end_without_threads() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match panic.payload().downcast_ref::<String>() {
        Some(message) if message.starts_with("failed to spawn thread") => ended(format_args!("a thread more")),
        _ => previous(panic),
    }));
}

#[cold]
fn refused(bytes: usize) -> ! {
    ended(format_args!("{bytes} B more"))
}

/// Writes without allocation, once: need and limit are in the message.
fn ended(needed: std::fmt::Arguments<'_>) -> ! {
    while ENDED.swap(true, Ordering::Relaxed) {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let mut error = std::io::stderr();
    let _ = write!(error, "error: memory ran out: the program needs {needed}, and ");
    let _ = match at_limit::address_space() {
        Some(limit) => write!(error, "the limit of the address space (`ulimit -v`) allows {limit} B in all"),
        None => write!(error, "the system gives no more"),
    };
    let _ =
        writeln!(error, "; make the input smaller, use fewer threads where the command has `--threads`, or allow more");
    at_limit::exit_at_once(2)
}
