//! A temporary directory for the files of scenarios that are being drawn.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// A directory of this process, removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes a new one.
    ///
    /// # Errors
    /// Where the system's directory for temporary files cannot be written.
    pub(crate) fn new() -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("anabranch-soak-{}-{number}", std::process::id()));
            // A name that is taken belongs to somebody else.
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok(Scratch(path)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
