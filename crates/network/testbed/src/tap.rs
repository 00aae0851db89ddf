//! Request that turns an open `/dev/net/tun` into a TAP interface.
#![allow(unsafe_code)]

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

/// Size of an interface name in bytes, with the terminating zero.
const NAME: usize = 16;
/// `_IOW('T', 202, int)` of `linux/if_tun.h`.
const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
/// `IFF_TAP | IFF_NO_PI`: frames without the kernel's packet information header.
const FLAGS: i16 = 0x1002;

/// `struct ifreq` of `linux/if.h`, of whose union only the flags are used.
#[repr(C)]
struct Request {
    name: [u8; NAME],
    flags: i16,
    rest: [u8; 22],
}

/// Attaches a file to the TAP interface `name`.
pub(crate) fn set_interface(file: &OwnedFd, name: &str) -> io::Result<()> {
    let mut request = Request { name: [0; NAME], flags: FLAGS, rest: [0; 22] };
    let place = request.name.get_mut(..name.len()).filter(|place| place.len() < NAME);
    place
        .ok_or_else(|| io::Error::other(format!("`{name}` is too long for an interface")))?
        .copy_from_slice(name.as_bytes());
    let request: *mut Request = &mut request;
    // SAFETY: the kernel reads and writes a `struct ifreq`, 40 bytes, the size of `Request`, which outlives the call.
    match unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, request) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_kernel() {
        assert_eq!((size_of::<Request>(), std::mem::offset_of!(Request, flags)), (40, 16));
    }
}
