//! A thread that leaves no state in its creator: `std::thread::spawn` keeps a destructor in the caller's thread-local
//! storage, which holds the library in memory after NCCL has unloaded it.

#![allow(unsafe_code)]

use std::{
    ffi::c_void,
    io,
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

#[derive(Debug)]
pub(crate) struct Thread(libc::pthread_t);

// SAFETY: an identifier, which POSIX lets any thread join; it is a pointer with musl and an integer with glibc.
unsafe impl Send for Thread {}

type Body = Box<dyn FnOnce() + Send>;

extern "C" fn begin(body: *mut c_void) -> *mut c_void {
    // SAFETY: created from a box in `spawn`, for this call alone.
    let body = unsafe { Box::from_raw(body.cast::<Body>()) };
    // A panic makes no difference to the joining thread.
    let _ = catch_unwind(AssertUnwindSafe(body));
    ptr::null_mut()
}

pub(crate) fn spawn(body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    let body: Box<Body> = Box::new(Box::new(body));
    let body = Box::into_raw(body);
    let mut thread = MaybeUninit::uninit();
    // SAFETY: `begin` takes the box, which has no other owner.
    let code = unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), begin, body.cast()) };
    if code != 0 {
        // SAFETY: no thread has taken it.
        drop(unsafe { Box::from_raw(body) });
        return Err(io::Error::from_raw_os_error(code));
    }
    // SAFETY: `pthread_create` has stored it.
    Ok(Thread(unsafe { thread.assume_init() }))
}

impl Thread {
    pub(crate) fn join(self) {
        // SAFETY: it was started, and is joined once. It can only fail where it is no thread.
        unsafe { libc::pthread_join(self.0, ptr::null_mut()) };
    }
}
