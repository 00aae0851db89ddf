//! Files that appear all at once: written under a temporary name, renamed when complete.

use crate::error::ReportError;
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// A directory's new files, not yet visible. Dropped without [`Staging::publish`], it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Staging {
    target: PathBuf,
    hidden: PathBuf,
    names: Vec<String>,
}

/// Name of the subdirectory that holds files while they are written.
const HIDDEN: &str = ".partial";

impl Staging {
    /// Prepares to write into `target`, which is made where it is not there. What an earlier process that died left
    /// half-written is removed.
    pub(crate) fn new(target: &Path) -> Result<Self, ReportError> {
        let hidden = target.join(HIDDEN);
        match fs::remove_dir_all(&hidden) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(ReportError::file(&hidden, error)),
            _ => {}
        }
        fs::create_dir_all(&hidden).map_err(|error| ReportError::file(&hidden, error))?;
        Ok(Staging { target: target.to_path_buf(), hidden, names: vec![] })
    }

    /// Writes a file; the last one written is published last and so says that all others are there.
    pub(crate) fn write<E>(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<(), ReportError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let failed = |error: io::Error| ReportError::file(&self.target.join(name), error);
        let mut file = File::create(self.hidden.join(name)).map_err(failed)?;
        fill(&mut file).map_err(|error| failed(io::Error::other(error)))?;
        file.flush().map_err(failed)?;
        self.names.push(name.to_string());
        Ok(())
    }

    /// Writes a file from bytes in memory.
    pub(crate) fn write_all(&mut self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), ReportError> {
        self.write(name, |file| file.write_all(bytes.as_ref()))
    }

    /// Puts all files in place, in the order written. Files named in `stale` that were not written again are removed,
    /// since they would speak of other results.
    pub(crate) fn publish(self, stale: &[String]) -> Result<(), ReportError> {
        let last = self.names.last().into_iter();
        for name in stale.iter().filter(|name| !self.names.contains(name)).chain(last) {
            let path = self.target.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(ReportError::file(&path, error)),
                _ => {}
            }
        }
        for name in &self.names {
            let path = self.target.join(name);
            fs::rename(self.hidden.join(name), &path).map_err(|error| ReportError::file(&path, error))?;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.hidden);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("anabranch-staging-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn listing(path: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_visible_before_all_is_complete() {
        let path = directory("publish");
        let mut staging = Staging::new(&path).unwrap();
        staging.write_all("a", "1").unwrap();
        staging.write_all("b", "2").unwrap();
        assert_eq!(listing(&path), [HIDDEN]);
        staging.publish(&[]).unwrap();
        assert_eq!(listing(&path), ["a", "b"]);
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_failure_leaves_the_old_files_as_they_were() {
        let path = directory("failure");
        let mut staging = Staging::new(&path).unwrap();
        staging.write_all("a", "old").unwrap();
        staging.publish(&[]).unwrap();
        let mut staging = Staging::new(&path).unwrap();
        staging.write_all("a", "new").unwrap();
        let failed = staging.write("b", |_| Err(io::Error::other("disk full")));
        assert!(failed.unwrap_err().to_string().contains("disk full"));
        drop(staging);
        assert_eq!(listing(&path), ["a"]);
        assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "old");
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn stale_files_go() {
        let path = directory("stale");
        let mut staging = Staging::new(&path).unwrap();
        staging.write_all("series.csv", "old").unwrap();
        staging.write_all("a", "old").unwrap();
        staging.publish(&[]).unwrap();
        let mut staging = Staging::new(&path).unwrap();
        staging.write_all("a", "new").unwrap();
        staging.publish(&["series.csv".to_string(), "a".to_string()]).unwrap();
        assert_eq!(listing(&path), ["a"]);
        assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "new");
        fs::remove_dir_all(path).unwrap();
    }
}
