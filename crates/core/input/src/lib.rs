//! Input files and their text. Only regular files are read, up to a limit: no FIFO, device or endless file blocks.

pub mod memory;
mod text;

pub use text::{MAX_NAME, escaped, is_plain, masked, wrong_name};

use std::{
    fs::{File, FileType, Metadata, OpenOptions},
    io::{Error, ErrorKind, Read, Result},
    path::Path,
};

/// Maximum bytes of a hand-written file: scenarios, sweeps, configurations, claims.
pub const MAX_TEXT: u64 = 16 << 20;

/// Maximum bytes of a JSON file or a page among results.
pub const MAX_JSON: u64 = 1 << 30;

/// Opens a regular file and returns it with its size. Symbolic links are followed.
/// Fails if it cannot be opened or is no regular file; the message names its kind, not the path.
pub fn open(path: &Path) -> Result<(File, u64)> {
    // Opening a device can have effects, so its kind is checked first, and again once the file is open.
    regular(&std::fs::metadata(path)?)?;
    let file = without_blocking(OpenOptions::new().read(true)).open(path)?;
    let size = regular(&file.metadata()?)?;
    Ok((file, size))
}

/// Opens a regular file of the program itself, such as a lock, a state or a key, with `options`. A symbolic link is
/// refused, since its creator would choose the file.
///
/// Fails if it cannot be opened or created, or is no regular file; the message names its kind, not the path.
pub fn open_own(path: &Path, options: &mut OpenOptions) -> Result<File> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => drop(regular(&metadata)?),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let file = without_following(options).open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Returns the content of a regular file of at most `max` bytes.
/// Fails as [`open`], and if the file is larger than `max` or its content differs from its size.
pub fn read(path: &Path, max: u64) -> Result<Vec<u8>> {
    let (file, size) = open(path)?;
    read_open(file, size, max)
}

/// Returns the content of a regular text file of the program itself ([`open_own`]) of at most `max` bytes.
/// Fails as [`open_own`] and [`read_text`].
pub fn read_own_text(path: &Path, max: u64) -> Result<String> {
    let file = open_own(path, OpenOptions::new().read(true))?;
    let size = file.metadata()?.len();
    text_of(read_open(file, size, max)?)
}

fn read_open(file: File, size: u64, max: u64) -> Result<Vec<u8>> {
    if size > max {
        let message = format!("it has {size} B, and at most {max} B of such a file are read");
        return Err(Error::new(ErrorKind::FileTooLarge, message));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    // One byte more detects a file that grows, or one that the kernel generates.
    file.take(size + 1).read_to_end(&mut bytes)?;
    let found = bytes.len() as u64;
    if found == size {
        return Ok(bytes);
    }
    let than = if found > size { "more" } else { "less" };
    let message =
        format!("it holds {than} than the {size} B of its size: a file of /proc or /sys, or one that changes");
    Err(Error::new(ErrorKind::InvalidData, message))
}

/// Returns the content of a regular text file of at most `max` bytes.
/// Fails as [`read`], and if the content is not UTF-8 ([`ErrorKind::InvalidData`]).
pub fn read_text(path: &Path, max: u64) -> Result<String> {
    text_of(read(path, max)?)
}

fn text_of(bytes: Vec<u8>) -> Result<String> {
    let not_text = |error: std::string::FromUtf8Error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count();
        Error::new(ErrorKind::InvalidData, format!("it is not text: line {line} is not UTF-8"))
    };
    String::from_utf8(bytes).map_err(not_text)
}

fn regular(metadata: &Metadata) -> Result<u64> {
    match kind(metadata.file_type()) {
        None => Ok(metadata.len()),
        Some(kind) => Err(Error::new(ErrorKind::InvalidInput, format!("it is {kind}, not a regular file"))),
    }
}

#[cfg(unix)]
fn without_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
}

#[cfg(unix)]
fn without_following(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags((rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW).bits() as i32)
}

#[cfg(not(unix))]
fn without_following(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(not(unix))]
fn without_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

fn kind(kind: FileType) -> Option<&'static str> {
    if kind.is_file() {
        return None;
    }
    if kind.is_dir() {
        return Some("a directory");
    }
    if kind.is_symlink() {
        return Some("a symbolic link");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kinds = [
            (kind.is_fifo(), "a pipe (FIFO)"),
            (kind.is_char_device(), "a character device"),
            (kind.is_block_device(), "a block device"),
            (kind.is_socket(), "a socket"),
        ];
        if let Some((_, name)) = kinds.into_iter().find(|(is, _)| *is) {
            return Some(name);
        }
    }
    Some("a special file")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::{fs, process::Command};

    #[test]
    fn only_regular_files_are_read() {
        let folder = anabranch_testkit::folder();
        let (fifo, link, socket) = (folder.join("fifo"), folder.join("link"), folder.join("socket"));
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, what) in [
            (fifo.as_path(), "a pipe (FIFO)"),
            (&link, "a pipe (FIFO)"),
            (&socket, "a socket"),
            (&folder, "a directory"),
            (Path::new("/dev/zero"), "a character device"),
        ] {
            let error = read(path, MAX_TEXT).unwrap_err().to_string();
            assert_eq!(error, format!("it is {what}, not a regular file"), "{}", path.display());
            assert!(open(path).is_err());
        }
        let error = read(Path::new("/proc/self/status"), MAX_TEXT).unwrap_err().to_string();
        assert!(error.contains("more than the 0 B of its size: a file of /proc"), "{error}");
        assert_eq!(read(&folder.join("none"), 1).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn own_files_are_regular_and_do_not_block() {
        let folder = anabranch_testkit::folder();
        let (fifo, link, dangling, file) =
            (folder.join("fifo"), folder.join("link"), folder.join("dangling"), folder.join("file"));
        let all = || {
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).read(true).write(true);
            options
        };
        drop(open_own(&file, &mut all()).unwrap());
        fs::write(&file, "text").unwrap();
        assert_eq!(read_own_text(&file, 4).unwrap(), "text");
        assert_eq!(read_own_text(&file, 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink(folder.join("none"), &dangling).unwrap();
        for (path, what) in [(&fifo, "a pipe (FIFO)"), (&link, "a symbolic link"), (&dangling, "a symbolic link")] {
            for mut options in [all(), OpenOptions::new().read(true).clone()] {
                let error = open_own(path, &mut options).unwrap_err().to_string();
                assert_eq!(error, format!("it is {what}, not a regular file"));
            }
            assert!(read_own_text(path, 4).is_err());
        }
        assert!(!folder.join("none").exists(), "made through a link");
    }

    #[test]
    fn the_limit_holds_to_the_byte() {
        let folder = anabranch_testkit::folder();
        let path = folder.join("text");
        fs::write(&path, "abc").unwrap();
        assert_eq!(read(&path, 3).unwrap(), b"abc");
        let error = read(&path, 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("3 B") && error.to_string().contains("2 B"), "{error}");
        fs::write(&path, b"one\ntwo \xff").unwrap();
        assert!(read_text(&path, 100).unwrap_err().to_string().contains("line 2 is not UTF-8"));
        // A hole of 8 TiB takes neither time nor memory.
        File::create(&path).unwrap().set_len(8 << 40).unwrap();
        assert!(read(&path, MAX_JSON).is_err());
    }
}
