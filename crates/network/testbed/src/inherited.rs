//! What a process that stays must not keep: files that its parents have open, locks among them.

use rustix::io::{FdFlags, fcntl_setfd};
use std::os::fd::{BorrowedFd, RawFd};

/// Sees to it that programs started from now on have none of this process's files but the first three.
pub(crate) fn close_on_exec() {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // SAFETY: the number is borrowed for one call that neither closes nor keeps it; where the file is gone by now the call
        // says so and does nothing.
        #[allow(unsafe_code)]
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(file, FdFlags::CLOEXEC);
    }
}
