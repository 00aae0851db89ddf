//! Close-on-exec for inherited files: a long-lived process must not keep its parents' files open, locks among them.

use rustix::io::{FdFlags, fcntl_setfd};
use std::os::fd::{BorrowedFd, RawFd};

/// Marks all open files but the first three as close-on-exec.
pub(crate) fn close_on_exec() {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // SAFETY: the number is borrowed for one call that neither closes nor keeps it; if the file is closed by now,
        // the call fails and has no effect.
        #[allow(unsafe_code)]
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(file, FdFlags::CLOEXEC);
    }
}
