//! What must not be cut short: runs that have begun and results that are being written.
//!
//! Building a large fabric takes many seconds and asks nobody. Nothing is lost when it is left behind, so an interruption
//! may end the process as soon as nothing is held; what is held looks at the interruption itself.

use std::sync::atomic::{AtomicUsize, Ordering};

static HELD: AtomicUsize = AtomicUsize::new(0);

/// While one lives, the process must not be ended from outside.
#[derive(Debug)]
pub struct Hold(());

impl Hold {
    /// Takes hold.
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

/// Whether anything is held.
pub fn any() -> bool {
    HELD.load(Ordering::SeqCst) > 0
}
