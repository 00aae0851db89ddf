//! A directory of results that one process works in.

use crate::lock::{Lock, is_unsupported};
use anabranch_report::disk;
use anabranch_scenario::error::ScenarioError;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A directory that this process works in, until dropped. If made for it and empty, it is removed on drop.
#[derive(Debug)]
#[must_use]
pub struct Taken {
    directory: PathBuf,
    lock: Option<Lock>,
    made: Vec<PathBuf>,
}

impl Taken {
    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Checks that the directory is still the one that was taken.
    ///
    /// # Errors
    /// Where it was removed or replaced: further files would not be written beside the earlier ones.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let is_there = self.lock.as_ref().map_or_else(|| self.directory.is_dir(), Lock::is_there);
        if is_there {
            return Ok(());
        }
        let message = format!("{} was removed or replaced during the runs in it", self.directory.display());
        Err(ScenarioError::new(message).help("results that were not written are lost; run it again"))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.lock = None;
        self.made.iter().for_each(|directory| drop(std::fs::remove_dir(directory)));
    }
}

/// Takes `directory` for this process alone, if the file system has locks.
///
/// # Errors
/// Where another process holds it, or it cannot be written.
pub fn take_directory(directory: &Path) -> Result<Taken, ScenarioError> {
    let absent = directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
    let mut taken =
        Taken { directory: directory.to_path_buf(), lock: None, made: absent.map(Path::to_path_buf).collect() };
    disk::make_directories(directory).map_err(|error| directory_error(directory, &error))?;
    let lock = directory.join(".lock");
    match Lock::try_take_among_others(&lock) {
        Ok(Some(lock)) => {
            taken.lock = Some(lock);
            Ok(taken)
        }
        Ok(None) => Err(ScenarioError::new(format!("another anabranch process uses {}", directory.display()))
            .help("wait until it ends, or give another directory with --out DIR")),
        Err(error) if is_unsupported(&error) => Ok(taken),
        Err(error) if fs::symlink_metadata(&lock).is_ok_and(|there| !there.is_file()) => {
            Err(ScenarioError::new(format!("{}: {error}", lock.display()))
                .help("the command keeps its lock there: remove it, or give another directory with --out DIR"))
        }
        Err(error) => Err(directory_error(directory, &error)),
    }
}

pub(crate) fn directory_error(directory: &Path, error: &std::io::Error) -> ScenarioError {
    ScenarioError::new(format!("the directory {} cannot be used for results: {error}", directory.display()))
        .help("give a directory that can be written with --out DIR")
}
