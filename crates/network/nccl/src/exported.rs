//! Functions for a tuner inside the process, besides NCCL's tables: the paths and requests of the statistics page.

#![allow(unsafe_code)]

use crate::{
    abi::Code,
    ids::{Id, IdKind},
    node::DeliveryCounters,
    page::Slot,
    process,
};
use anabranch_wire::Datapath;
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::Timespec,
};
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

/// Writes up to `room` paths of this process' connections to `slots`. Returns the number of all paths, or -1 where the plugin is
/// not in use. To be called only while the library is loaded.
///
/// # Safety
/// `slots` points to at least `room` slots, or `room` is zero.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn anabranchPaths(slots: *mut Slot, room: usize) -> i64 {
    let all = catch_unwind(AssertUnwindSafe(|| process::get().map(|process| process.paths())));
    let Ok(Ok(all)) = all else { return -1 };
    let many = if slots.is_null() { 0 } else { room.min(all.len()) };
    for (at, slot) in all[..many].iter().enumerate() {
        // SAFETY: the caller's.
        unsafe { slots.add(at).write(*slot) };
    }
    all.len() as i64
}

/// Sets parameters of the scheme, `KEY=VALUE` with semicolons, and resets its path state. Returns one of NCCL's result codes;
/// the log contains the error.
///
/// # Safety
/// `settings` is a C string, or null.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn anabranchSet(settings: *const c_char) -> c_int {
    if settings.is_null() {
        return Code::Argument as c_int;
    }
    // SAFETY: the caller's.
    let text = unsafe { CStr::from_ptr(settings) }.to_string_lossy();
    let set = catch_unwind(AssertUnwindSafe(|| match process::get() {
        Ok(process) => process.set(&text).map_or(Code::Usage, |_| Code::Success),
        Err(failure) => failure.code,
    }));
    set.unwrap_or(Code::Internal) as c_int
}

/// Writes the delivery counters of the message of a sender that `test` last reported as sent. Returns one of NCCL's result codes.
///
/// # Safety
/// `counters` points to a [`DeliveryCounters`], or is null.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn anabranchWent(sender: *mut c_void, counters: *mut DeliveryCounters) -> c_int {
    let Some((device, id)) = Id::of_pointer(sender, IdKind::Sender) else { return Code::Internal as c_int };
    if counters.is_null() {
        return Code::Argument as c_int;
    }
    let result =
        catch_unwind(AssertUnwindSafe(|| process::with(|process| process.opened(device)?.node()?.counters(id))));
    match result {
        Ok(Ok(read)) => {
            // SAFETY: the caller's.
            unsafe { counters.write(read) };
            Code::Success as c_int
        }
        Ok(Err(failure)) => failure.code as c_int,
        Err(_) => Code::Internal as c_int,
    }
}

/// Waits until packets of a device arrive or its next work is due, at most `max`, after calls that found nothing to do.
///
/// Other threads may use the device meanwhile, and receive the packets. The next call on a communicator returns errors.
pub fn wait(device: u8, max: Duration) {
    let found = process::with(|process| {
        let mut opened = process.opened(device)?;
        let node = opened.node()?;
        let next = node.next_work();
        let datapath = node.driver().datapath();
        let left = next.map(|next| next.saturating_sub(datapath.now()).ps() / 1000).map_or(max, Duration::from_nanos);
        Ok((datapath.readiness(), left.min(max)))
    });
    match found {
        Ok((_, Duration::ZERO)) => {}
        Ok((Some(ready), left)) => {
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            // An interrupted wait is a short one.
            let _ = poll(&mut [PollFd::new(&*ready, PollFlags::IN)], Some(&left));
        }
        // Queue pairs have no descriptor.
        Ok((None, left)) => std::thread::sleep(left.min(Duration::from_micros(20))),
        Err(_) => std::thread::sleep(max.min(Duration::from_millis(1))),
    }
}

/// Returns what the ranks of a job must have in common, in words; `None`: the plugin is not in use.
pub fn settings() -> Option<String> {
    process::get().ok().map(|process| process.common())
}
