//! Files of statistics pages, in a folder where every user may create files of any name.

use super::{HEADER_BYTES, MAGIC, PREFIX, wrong};
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, open as open_file},
    io::Errno,
    process::geteuid,
};
use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

const MAX_BYTES: u64 = 16 << 20;

/// A file that is named like a page but not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub path: PathBuf,
    /// Reason why it is not read.
    pub reason: String,
}

/// Pages found in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Pages of live processes, in the order of their names.
    pub pages: Vec<PathBuf>,
    /// Files that are named like a page but not read, in the order of their names.
    pub skipped: Vec<Skipped>,
}

/// Finds the pages of this user's live processes. Removes pages of processes that have ended, and no other file.
pub fn pages(folder: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX)) {
            continue;
        }
        let opened = open(&path, false).and_then(|(file, _)| {
            let mut begin = [0; 8];
            file.read_exact_at(&mut begin, 0)?;
            if begin == MAGIC { Ok(file) } else { Err(wrong("it is not a statistics page".into())) }
        });
        match opened {
            // The process that writes a page holds the lock.
            Ok(file) => match flock(&file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => remove(&path, &file),
                Err(_) => found.pages.push(path),
            },
            // Its process has ended meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.skipped.push(Skipped { path, reason: error.to_string() }),
        }
    }
    found.pages.sort();
    found.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Opens a page of this user and returns its size in bytes. Neither waits nor follows a link, for any kind of file.
pub(super) fn open(path: &Path, writable: bool) -> io::Result<(File, usize)> {
    // Files of other kinds or users are not opened: an open can have side effects on some devices.
    check(&fs::symlink_metadata(path)?)?;
    let access = if writable { OFlags::RDWR } else { OFlags::RDONLY };
    let flags = access | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open_file(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP => wrong("it is a symbolic link".into()),
        other => other.into(),
    })?);
    // Another file may have taken its name.
    let bytes = check(&file.metadata()?)?;
    Ok((file, bytes))
}

/// Checks that this is a regular file of this user that only its owner may open; returns its size in bytes.
fn check(of: &Metadata) -> io::Result<usize> {
    if of.file_type().is_symlink() {
        return Err(wrong("it is a symbolic link".into()));
    }
    if !of.is_file() {
        return Err(wrong("it is no regular file".into()));
    }
    if of.uid() != geteuid().as_raw() {
        return Err(wrong("it belongs to another user".into()));
    }
    if of.mode() & 0o077 != 0 {
        return Err(wrong(format!("its mode is {:o}, and a page has 600", of.mode() & 0o777)));
    }
    if of.len() < HEADER_BYTES as u64 || of.len() > MAX_BYTES {
        return Err(wrong(format!("it is not a statistics page: those have {HEADER_BYTES} to {MAX_BYTES} B")));
    }
    Ok(of.len() as usize)
}

/// Lock of the agent that steers a process, until it is dropped.
#[derive(Debug)]
pub struct AgentLock {
    path: PathBuf,
    _file: File,
}

impl AgentLock {
    /// Locks a page for one agent.
    ///
    /// # Errors
    /// Another one steers the process ([`io::ErrorKind::WouldBlock`]), or the lock cannot be created.
    pub fn take(page: &Path) -> io::Result<Self> {
        open(page, false)?;
        let path = lock_of(page);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(open_file(&path, flags, Mode::from_raw_mode(0o600))?);
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(AgentLock { path, _file: file })
    }
}

impl Drop for AgentLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn lock_of(page: &Path) -> PathBuf {
    page.with_file_name(format!(".{}.agent", page.file_name().unwrap_or_default().display()))
}

/// Removes the file that is open as `file`, unless another one has taken its name.
fn remove(path: &Path, file: &File) {
    let identity = |of: Metadata| (of.dev(), of.ino());
    if let (Ok(open), Ok(named)) = (file.metadata(), fs::symlink_metadata(path))
        && identity(open) == identity(named)
    {
        let _ = fs::remove_file(path);
        let _ = fs::remove_file(lock_of(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Page, Slot, read, request};
    use rustix::fs::FileType;
    use std::{
        os::unix::{fs::PermissionsExt, net::UnixListener},
        sync::mpsc,
        thread,
        time::Duration,
    };

    /// Returns the result of `body`; panics if it takes longer than ten seconds.
    fn in_time<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
        let (say, hear) = mpsc::channel();
        thread::spawn(move || say.send(body()));
        hear.recv_timeout(Duration::from_secs(10)).expect("it hangs")
    }

    #[test]
    fn only_own_regular_files_are_opened() {
        let own = tempfile::tempdir().unwrap();
        let folder = own.path().to_path_buf();
        let (page, own) = Page::create(&folder, 1, 2, "reps").unwrap();
        assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o600);
        let at = |name: &str| folder.join(format!("anabranch-0-{name}"));
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        std::os::unix::fs::symlink(&own, at("link")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("zero")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        fs::copy(&own, at("open")).unwrap();
        fs::set_permissions(at("open"), PermissionsExt::from_mode(0o644)).unwrap();
        fs::write(at("huge"), MAGIC).unwrap();
        fs::set_permissions(at("huge"), PermissionsExt::from_mode(0o600)).unwrap();
        File::options().write(true).open(at("huge")).unwrap().set_len(1 << 40).unwrap();
        let mut reasons = vec![
            ("fifo", "no regular file"),
            ("folder", "no regular file"),
            ("huge", "16777216 B"),
            ("link", "a symbolic link"),
            ("open", "its mode is 644"),
            ("socket", "no regular file"),
            ("zero", "a symbolic link"),
        ];
        if geteuid().is_root() {
            fs::copy(&own, at("theirs")).unwrap();
            fs::set_permissions(at("theirs"), PermissionsExt::from_mode(0o600)).unwrap();
            std::os::unix::fs::chown(at("theirs"), Some(65_534), None).unwrap();
            reasons.insert(6, ("theirs", "another user"));
        } else {
            anabranch_testkit::skip("a page of another user needs root", "run as root");
        }
        let path = folder.clone();
        let found = in_time(move || pages(&path).unwrap());
        assert_eq!(found.pages, std::slice::from_ref(&own));
        assert_eq!(found.skipped.len(), reasons.len(), "{:?}", found.skipped);
        for (skipped, (name, reason)) in found.skipped.iter().zip(reasons) {
            assert_eq!(skipped.path, at(name));
            assert!(skipped.reason.contains(reason), "{skipped:?}");
            let (one, two) = (at(name), at(name));
            assert!(
                in_time(move || read(&one)).is_err() && in_time(move || request(&two, "a=1", Duration::ZERO)).is_err()
            );
            assert!(fs::symlink_metadata(at(name)).is_ok(), "it is left where it is");
        }
        let path = folder.clone();
        in_time(move || Page::create(&path, 2, 2, "reps").map(drop)).unwrap();
        drop(page);
    }

    #[test]
    fn truncated_page_ends_neither_its_writer_nor_its_readers() {
        let own = tempfile::tempdir().unwrap();
        let folder = own.path().to_path_buf();
        let (mut page, path) = Page::create(&folder, 1, 2, "reps").unwrap();
        let slot = Slot { state: 1, ..Default::default() };
        for bytes in [0, 100, 3000] {
            File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
            assert!(read(&path).is_err() && request(&path, "a=1", Duration::ZERO).is_err(), "{bytes}");
            assert!(bytes > 1000 || page.request().is_none());
            page.write(5, 0, "reps", &[vec![slot; 2]]);
        }
        drop(page);
    }
}
