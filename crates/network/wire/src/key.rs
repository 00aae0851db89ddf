//! Key files (`wire.key`).

use anabranch_endpoint::Key;
use std::{fs::OpenOptions, io::Read, os::unix::fs::MetadataExt, path::Path};
use zeroize::Zeroizing;

/// Hexadecimal digits of 32 bytes.
const MIN_DIGITS: usize = 64;
const MAX_FILE: u64 = 4096;

/// Error of a key file: what was found, and what is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    /// Description of the content or file that was found.
    pub found: String,
    /// Expected content, and how to create it.
    pub expected: String,
}

fn wrong(found: impl Into<String>, expected: impl Into<String>) -> KeyError {
    KeyError { found: found.into(), expected: expected.into() }
}

/// Refuses a file that others can read or write, or that is not of `user`, root included: its owner can change the mode and
/// has the key. `ssh` demands the same.
fn check(path: &str, mode: u32, owner: u32, user: u32) -> Result<(), KeyError> {
    let mode = mode & 0o7777;
    if mode & 0o077 != 0 {
        let expected = format!("a file that its owner alone may read or write: chmod 600 {path}");
        return Err(wrong(format!("`{path}`, which others may read or write (mode {mode:04o})"), expected));
    }
    if owner != user {
        let expected = format!("a file of the user that runs, {user}: chown {user} {path}");
        return Err(wrong(format!("`{path}`, which belongs to user {owner}"), expected));
    }
    Ok(())
}

/// Reads the key from a file: 64 hexadecimal digits or more, with optional whitespace.
///
/// Fails if there is no such file, if others may read or write it, or if it contains other bytes, of which messages
/// contain nothing.
pub fn read_key(path: &str) -> Result<Key, KeyError> {
    let expected = "a file with 64 hexadecimal digits or more, for example of `openssl rand -hex 32`";
    let unreadable = |error: std::io::Error| wrong(format!("`{path}`: {error}"), expected);
    let file = anabranch_input::open_own(Path::new(path), OpenOptions::new().read(true)).map_err(unreadable)?;
    // Checks the open file, not the name.
    let metadata = file.metadata().map_err(unreadable)?;
    check(path, metadata.mode(), metadata.uid(), rustix::process::geteuid().as_raw())?;
    let mut text = Zeroizing::new(Vec::with_capacity(MAX_FILE as usize + 1));
    file.take(MAX_FILE + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE {
        return Err(wrong(format!("`{path}`, which is larger than {MAX_FILE} B"), expected));
    }
    let mut digits = Zeroizing::new(Vec::with_capacity(text.len()));
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        match char::from(*byte).to_digit(16) {
            Some(digit) => digits.push(digit as u8),
            None => return Err(wrong(format!("`{path}`, which holds other bytes than hexadecimal digits"), expected)),
        }
    }
    if digits.len() < MIN_DIGITS || digits.len() % 2 != 0 {
        let of = if digits.len() < MIN_DIGITS { "" } else { ", an odd number" };
        return Err(wrong(format!("`{path}` with {} digits{of}", digits.len()), expected));
    }
    let secret: Zeroizing<Vec<u8>> = Zeroizing::new(digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect());
    Ok(Key::of(&secret))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    #[test]
    fn a_key_file_belongs_to_the_user_that_runs() {
        for (owner, user, is_taken) in [(7, 7, true), (0, 0, true), (7, 8, false), (0, 7, false), (7, 0, false)] {
            let checked = check("key", 0o100_600, owner, user);
            assert_eq!(checked.is_ok(), is_taken, "{owner} {user}");
            assert!(checked.map_or_else(|error| error.expected.contains("chown"), |()| true));
        }
    }

    #[test]
    fn a_key_file_is_private_and_long_enough() {
        let own = tempfile::tempdir().unwrap();
        let dir = own.path();
        let path = dir.join("key");
        let name = path.to_str().unwrap();
        let with = |text: &str, mode: u32| {
            // A file of mode 0400 cannot be overwritten.
            drop(fs::remove_file(&path));
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read_key(name)
        };
        let digits = "0123456789abcdef".repeat(4);
        let spaced = format!("{}\n{} \n", &digits[..32], digits[32..].to_uppercase());
        assert_eq!(with(&digits, 0o600), with(&spaced, 0o400));
        assert_ne!(with(&digits, 0o600), with(&digits.replace('0', "1"), 0o600));
        let refused = |text: &str, mode, word: &str| {
            let error = with(text, mode).unwrap_err();
            assert!(format!("{error:?}").contains(word), "{error:?}");
            assert!(!format!("{error:?}").contains("cafe"), "a key is never told: {error:?}");
        };
        let cafe = "cafe".repeat(16);
        refused(&cafe, 0o640, "mode 0640");
        refused(&cafe, 0o604, "chmod 600");
        refused(&cafe[1..], 0o600, "63 digits");
        refused(&format!("{cafe}c"), 0o600, "odd");
        refused(&format!("{cafe}g"), 0o600, "other bytes");
        refused(&"c".repeat(5000), 0o600, "4096 B");
        refused("", 0o600, "0 digits");
        let found = |path: &Path| read_key(path.to_str().unwrap()).unwrap_err().found;
        assert!(found(dir).contains("a directory, not a regular file"));
        let (fifo, link) = (dir.join("fifo"), dir.join("link"));
        assert!(std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&fifo).status().unwrap().success());
        with(&digits, 0o600).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(found(&fifo).contains("a pipe (FIFO)") && found(&link).contains("a symbolic link"));
        assert!(read_key("/nowhere").unwrap_err().found.contains("/nowhere"));
    }
}
