//! What the program's allocator needs of the system. It is here because `main.rs` is linked to this library alone.

/// Ends the process, without handlers that could allocate.
pub fn exit_at_once(code: i32) -> ! {
    #[allow(unsafe_code)]
    // SAFETY: ends the process.
    unsafe {
        nix::libc::_exit(code)
    }
}

/// Returns the limit of the address space, without allocation.
#[cfg(target_os = "linux")]
pub fn address_space() -> Option<u64> {
    let mut limit = nix::libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    #[allow(unsafe_code)]
    // SAFETY: writes the limit alone.
    let read = unsafe { nix::libc::getrlimit(nix::libc::RLIMIT_AS, &mut limit) };
    (read == 0 && limit.rlim_cur != nix::libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Returns `None`: it is not read here.
#[cfg(not(target_os = "linux"))]
pub fn address_space() -> Option<u64> {
    None
}
