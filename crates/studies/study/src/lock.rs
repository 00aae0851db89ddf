//! Lock files that mark a directory as in use by a process. A lock is held until its process ends, however that happens.

use fs4::{FileExt, TryLockError};
use std::{
    fs,
    fs::{File, OpenOptions},
    io,
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

static HELD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn held() -> MutexGuard<'static, Vec<PathBuf>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the lock files of this process before an exit without unwinding: remaining ones would suggest a kill.
pub fn release_locks() {
    for path in held().drain(..) {
        let _ = fs::remove_file(path);
    }
}

/// A lock file that this process holds; dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    file: File,
    stays: bool,
}

/// Locks a directory itself, until the file is dropped; blocks until it is free. `None` where there are no such locks.
pub(crate) fn lock_directory(path: &Path) -> Option<File> {
    let directory = File::open(path).ok()?;
    FileExt::lock(&directory).is_ok().then_some(directory)
}

impl Lock {
    /// Takes the lock at `path`; `None` where another process (or another lock of this one) holds it. Fails where the
    /// file is no regular file, or the file system has no locks.
    pub(crate) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).read(true).write(true);
            let file = anabranch_input::open_own(path, &mut options)?;
            match FileExt::try_lock(&file) {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The last holder may have removed the file between our opening and our locking it.
            if same_file(&file, path) {
                held().push(path.to_path_buf());
                return Ok(Some(Lock { path: path.to_path_buf(), file, stays: false }));
            }
        }
    }

    /// Returns what killed holders left in the file.
    pub(crate) fn read(&mut self) -> io::Result<String> {
        let mut text = String::new();
        self.file.rewind()?;
        self.file.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Releases the lock, but leaves the file with its content.
    pub(crate) fn leave(mut self) {
        self.stays = self.file.metadata().is_ok_and(|metadata| metadata.len() > 0);
    }

    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)
    }

    pub(crate) fn append(&mut self, line: &str) -> io::Result<()> {
        self.file.seek(io::SeekFrom::End(0))?;
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        held().retain(|path| *path != self.path);
        // Removed while the lock is held, so that a process that waits for it detects that the file is another one now.
        if !self.stays {
            let _ = fs::remove_file(&self.path);
        }
        let _ = FileExt::unlock(&self.file);
    }
}

fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (own, there) = (file.metadata().map(identity), fs::symlink_metadata(path).map(identity));
    matches!((own, there), (Ok(own), Ok(there)) if own == there)
}

/// Returns `true` if the file system has no locks; the caller must do without.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    // ENOLCK (37), ENOTSUP or EOPNOTSUPP (95), ENOSYS (38) of Linux.
    error.kind() == io::ErrorKind::Unsupported || matches!(error.raw_os_error(), Some(37 | 38 | 95))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_testkit::folder;

    #[cfg(target_os = "linux")]
    #[test]
    fn non_regular_files_are_refused() {
        let folder = folder();
        let (lock, foreign) = (folder.join(".lock"), folder.join("foreign"));
        fs::write(&foreign, "mine\n").unwrap();
        let make_fifo = || assert!(std::process::Command::new("mkfifo").arg(&lock).status().unwrap().success());
        let make_link = || std::os::unix::fs::symlink(&foreign, &lock).unwrap();
        for (make, what) in [(&make_fifo as &dyn Fn(), "a pipe (FIFO)"), (&make_link, "a symbolic link")] {
            make();
            let (sender, receiver) = std::sync::mpsc::channel();
            let path = lock.clone();
            std::thread::spawn(move || {
                let error = Lock::try_take(&path).map(|taken| taken.map(|mut lock| lock.read())).unwrap_err();
                let _ = sender.send(error.to_string());
            });
            let error = receiver.recv_timeout(std::time::Duration::from_secs(30)).expect("it blocks");
            assert!(error.contains(what), "{error}");
            fs::remove_file(&lock).unwrap();
        }
        assert_eq!(fs::read_to_string(&foreign).unwrap(), "mine\n");
    }

    #[test]
    fn lock_is_exclusive_and_reads_leftovers() {
        let folder = folder();
        let path = folder.join(".lock");
        let mut first = Lock::try_take(&path).unwrap().unwrap();
        first.append("one").unwrap();
        assert!(Lock::try_take(&path).unwrap().is_none(), "held");
        drop(first);
        assert!(!path.exists(), "gone with its holder");
        // A process that was killed leaves the file, but not the lock.
        fs::write(&path, "one\ntwo\n").unwrap();
        let mut second = Lock::try_take(&path).unwrap().unwrap();
        assert_eq!(second.read().unwrap(), "one\ntwo\n");
        second.append("three").unwrap();
        assert_eq!(second.read().unwrap(), "one\ntwo\nthree\n");
    }
}
