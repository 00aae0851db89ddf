//! File operations of result directories, so that a test can observe them, reject them or simulate a power failure after any.

use std::{
    fs,
    fs::File,
    io,
    io::Write,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// A file operation that is about to run.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'o> {
    MakeDirectory(&'o Path),
    /// Creates an empty file that must not exist.
    Create(&'o Path),
    /// Appends bytes to a file.
    Append(&'o Path, &'o [u8]),
    /// Makes the content of a file, or the entries of a directory, durable.
    Sync(&'o Path),
    /// Makes all content of a file system durable.
    SyncAll(&'o Path),
    /// Renames a file or directory, replacing a file of the new name.
    Rename(&'o Path, &'o Path),
    /// Makes a symbolic link: target, name.
    MakeLink(&'o Path, &'o Path),
    /// Gives a file a second name: its name, the second.
    Share(&'o Path, &'o Path),
    RemoveFile(&'o Path),
    /// Removes an empty directory.
    RemoveDirectory(&'o Path),
}

/// Function that is called before every operation and may reject it.
pub type Watcher = Box<dyn FnMut(&Operation<'_>) -> io::Result<()> + Send>;

static WATCHED: AtomicBool = AtomicBool::new(false);
static WATCHER: Mutex<Option<Watcher>> = Mutex::new(None);

/// Registers a function that is called before every operation of this process; for tests.
pub fn watch(watcher: Option<Watcher>) {
    WATCHED.store(watcher.is_some(), Ordering::SeqCst);
    *WATCHER.lock().unwrap_or_else(PoisonError::into_inner) = watcher;
}

fn before(operation: &Operation<'_>) -> io::Result<()> {
    if !WATCHED.load(Ordering::Relaxed) {
        return Ok(());
    }
    WATCHER.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map_or(Ok(()), |watcher| watcher(operation))
}

/// A file that is being written; all bytes written pass through the digest.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: File,
    digest: blake3::Hasher,
    bytes: u64,
}

impl NewFile {
    /// Creates the file, which must not exist; a link of that name is not followed.
    pub fn create(path: &Path) -> io::Result<Self> {
        before(&Operation::Create(path))?;
        let file = File::options().write(true).create_new(true).open(path)?;
        Ok(NewFile { path: path.to_path_buf(), file, digest: blake3::Hasher::new(), bytes: 0 })
    }

    /// Returns size and digest of the bytes written so far.
    pub fn content(&self) -> Content {
        Content { bytes: self.bytes, blake3: self.digest.finalize().to_hex().to_string() }
    }

    /// Makes the content durable.
    pub fn sync(&self) -> io::Result<()> {
        before(&Operation::Sync(&self.path))?;
        self.file.sync_all()
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        before(&Operation::Append(&self.path, bytes))?;
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Size and BLAKE3 digest of a file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Size in bytes.
    pub bytes: u64,
    /// BLAKE3 digest in 64 hexadecimal digits.
    pub blake3: String,
}

impl Content {
    /// Returns size and digest of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Content { bytes: bytes.len() as u64, blake3: blake3::hash(bytes).to_hex().to_string() }
    }

    /// Returns size and digest of a file.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut digest = blake3::Hasher::new();
        let (mut file, _) = anabranch_input::open(path)?;
        let bytes = io::copy(&mut file, &mut digest)?;
        Ok(Content { bytes, blake3: digest.finalize().to_hex().to_string() })
    }
}

/// Creates a directory that must not exist.
pub fn make_directory(path: &Path) -> io::Result<()> {
    before(&Operation::MakeDirectory(path))?;
    fs::create_dir(path)
}

/// Creates a directory and its missing parents.
pub fn make_directories(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_directories(parent)?;
    }
    match make_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync(path.parent().unwrap_or(Path::new(""))),
    }
}

/// Makes the content of a file or the entries of a directory durable.
pub fn sync(path: &Path) -> io::Result<()> {
    before(&Operation::Sync(path))?;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match File::open(path)?.sync_all() {
        // Some file systems do not support synchronising directories.
        Err(error) if path.is_dir() && error.raw_os_error() == Some(EINVAL) => Ok(()),
        done => done,
    }
}

const EINVAL: i32 = 22;

/// Makes all content of the file system of `path` durable; cheaper than file by file if there are many.
#[cfg(target_os = "linux")]
pub fn sync_all(path: &Path, _: &[PathBuf]) -> io::Result<()> {
    before(&Operation::SyncAll(path))?;
    Ok(rustix::fs::syncfs(File::open(path)?)?)
}

/// Makes the directories `these` and the files in them durable.
#[cfg(not(target_os = "linux"))]
pub fn sync_all(_: &Path, these: &[PathBuf]) -> io::Result<()> {
    these.iter().try_for_each(|directory| sync_with_files(directory))
}

/// Makes a directory and the files in it durable.
pub fn sync_with_files(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            sync(&entry.path())?;
        }
    }
    sync(directory)
}

/// Renames a file or directory.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    before(&Operation::Rename(from, to))?;
    fs::rename(from, to)
}

/// Makes a symbolic link `at` to `target`.
pub fn make_link(target: &Path, at: &Path) -> io::Result<()> {
    before(&Operation::MakeLink(target, at))?;
    std::os::unix::fs::symlink(target, at)
}

/// Gives the file `from` a second name, `at`; where the file system has no such names, copies it.
pub fn share(from: &Path, at: &Path) -> io::Result<()> {
    before(&Operation::Share(from, at))?;
    fs::hard_link(from, at).or_else(|_| {
        fs::copy(from, at)?;
        File::open(at)?.sync_all()
    })
}

/// Removes a file; a missing file is no error.
pub fn remove_file(path: &Path) -> io::Result<()> {
    before(&Operation::RemoveFile(path))?;
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes an empty directory.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    before(&Operation::RemoveDirectory(path))?;
    fs::remove_dir(path)
}

/// Removes a directory created by this program with all files in it. Links are removed, not followed.
pub fn remove_own_tree(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() { remove_own_tree(&entry.path())? } else { remove_file(&entry.path())? }
    }
    remove_directory(path)
}

/// Returns the bytes of the files below `directory`, each file once however many names it has.
pub fn disk_use(directory: &Path) -> u64 {
    let (mut open, mut seen, mut bytes) = (vec![directory.to_path_buf()], std::collections::HashSet::new(), 0);
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                open.push(entry.path());
            } else if about.is_file() && is_new(&about, &mut seen) {
                bytes += about.len();
            }
        }
    }
    bytes
}

#[cfg(unix)]
fn is_new(about: &fs::Metadata, seen: &mut std::collections::HashSet<(u64, u64)>) -> bool {
    use std::os::unix::fs::MetadataExt;
    about.nlink() < 2 || seen.insert((about.dev(), about.ino()))
}

#[cfg(not(unix))]
fn is_new(_: &fs::Metadata, _: &mut std::collections::HashSet<(u64, u64)>) -> bool {
    true
}
