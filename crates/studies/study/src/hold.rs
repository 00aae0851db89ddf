//! Guard against ending the process during a run or while results are written.
//! A process may be ended while nothing is held: long calls without progress then lose nothing. Holders poll instead.

use std::sync::atomic::{AtomicUsize, Ordering};

static HELD: AtomicUsize = AtomicUsize::new(0);

/// Guard that forbids ending the process from outside until it is dropped.
#[derive(Debug)]
pub struct Hold(());

impl Hold {
    /// Creates a guard.
    pub fn take() -> Self {
        HELD.fetch_add(1, Ordering::SeqCst);
        Hold(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns `true` if any guard exists.
pub fn any() -> bool {
    HELD.load(Ordering::SeqCst) > 0
}
