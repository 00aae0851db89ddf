//! The few operations by which files come and go, in one place: a test can watch them, refuse them or cut the power after
//! any of them.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// One operation, about to be done.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'o> {
    /// Makes a directory.
    MakeDirectory(&'o Path),
    /// Makes an empty file that is not there.
    Create(&'o Path),
    /// Adds bytes to the end of a file.
    Append(&'o Path, &'o [u8]),
    /// Makes the content of a file, or the entries of a directory, durable.
    Sync(&'o Path),
    /// Makes all that lies in a file system durable.
    SyncAll(&'o Path),
    /// Gives a file or directory another name, replacing a file of that name.
    Rename(&'o Path, &'o Path),
    /// Removes a file.
    RemoveFile(&'o Path),
    /// Removes an empty directory.
    RemoveDirectory(&'o Path),
}

/// Sees every operation before it is done, and may refuse it.
pub type Watcher = Box<dyn FnMut(&Operation<'_>) -> io::Result<()> + Send>;

static WATCHED: AtomicBool = AtomicBool::new(false);
static WATCHER: Mutex<Option<Watcher>> = Mutex::new(None);

/// For tests: from now on `watcher` sees every operation of this process.
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

/// A file that is being written; what is written passes through the digest.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: File,
    digest: blake3::Hasher,
    bytes: u64,
}

impl NewFile {
    /// Makes the file, which must not be there; a link of that name is not followed.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        before(&Operation::Create(path))?;
        let file = File::options().write(true).create_new(true).open(path)?;
        Ok(NewFile { path: path.to_path_buf(), file, digest: blake3::Hasher::new(), bytes: 0 })
    }

    /// What has been written so far.
    pub fn content(&self) -> Content {
        Content { bytes: self.bytes, blake3: self.digest.finalize().to_hex().to_string() }
    }

    /// Makes the content durable.
    ///
    /// # Errors
    /// Where the disk cannot take it.
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

/// What a file holds: its size and its BLAKE3 digest in 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Bytes.
    pub bytes: u64,
    /// Digest.
    pub blake3: String,
}

impl Content {
    /// That of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Content { bytes: bytes.len() as u64, blake3: blake3::hash(bytes).to_hex().to_string() }
    }

    /// That of a file.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut digest = blake3::Hasher::new();
        let (mut file, _) = anabranch_input::open(path)?;
        let bytes = io::copy(&mut file, &mut digest)?;
        Ok(Content { bytes, blake3: digest.finalize().to_hex().to_string() })
    }
}

/// Makes a directory that must not be there.
///
/// # Errors
/// Where it cannot be made.
pub fn make_directory(path: &Path) -> io::Result<()> {
    before(&Operation::MakeDirectory(path))?;
    fs::create_dir(path)
}

/// Makes a directory and those above it; what is there stays.
///
/// # Errors
/// Where one cannot be made.
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
///
/// # Errors
/// Where the disk cannot take it.
pub fn sync(path: &Path) -> io::Result<()> {
    before(&Operation::Sync(path))?;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match File::open(path)?.sync_all() {
        // Some file systems know no synchronising of directories.
        Err(error) if path.is_dir() && error.raw_os_error() == Some(EINVAL) => Ok(()),
        done => done,
    }
}

const EINVAL: i32 = 22;

/// Makes all that was written to the file system of `path` durable; cheaper than one file after the other where there are many.
///
/// # Errors
/// Where the disk cannot take it.
#[cfg(target_os = "linux")]
pub fn sync_all(path: &Path, _: &[PathBuf]) -> io::Result<()> {
    before(&Operation::SyncAll(path))?;
    Ok(rustix::fs::syncfs(File::open(path)?)?)
}

/// Makes the directories `these` and the files in them durable.
///
/// # Errors
/// Where the disk cannot take it.
#[cfg(not(target_os = "linux"))]
pub fn sync_all(_: &Path, these: &[PathBuf]) -> io::Result<()> {
    these.iter().try_for_each(|directory| sync_with_files(directory))
}

/// Makes a directory and the files in it durable.
///
/// # Errors
/// Where the disk cannot take it.
pub fn sync_with_files(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            sync(&entry.path())?;
        }
    }
    sync(directory)
}

/// Gives a file or directory another name.
///
/// # Errors
/// Where that cannot be done.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    before(&Operation::Rename(from, to))?;
    fs::rename(from, to)
}

/// Removes a file; it is no error where there is none.
///
/// # Errors
/// Where it cannot be removed.
pub fn remove_file(path: &Path) -> io::Result<()> {
    before(&Operation::RemoveFile(path))?;
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes a directory that is empty.
///
/// # Errors
/// Where it is not, or cannot be removed.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    before(&Operation::RemoveDirectory(path))?;
    fs::remove_dir(path)
}

/// Removes a directory that this process or one like it made for itself, with all files in it. Links are removed, not
/// followed.
///
/// # Errors
/// Where something cannot be removed.
pub fn remove_own_tree(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => remove_own_tree(&entry.path())?,
            false => remove_file(&entry.path())?,
        }
    }
    remove_directory(path)
}
