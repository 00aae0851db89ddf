//! A store of runs: each under the hash of all it depends on, whole from the moment it is there.
//!
//! A run is written aside and put in place by one rename of its directory, so what is done is known from the disk alone.
//! Nothing waits for the disk: what a failure of the power cut short is known by the sizes that the run's files had.
//! Any number of processes may work in one store, also on several computers. Where the file system has locks, two of them
//! do not do the same run; where it has none, both do it and the first result stays.

use crate::{
    compare::directory_error,
    error::ScenarioError,
    lock::{Lock, is_unsupported},
};
use anabranch_report::{Attempt, FailedRun, failed_file, is_whole, store_directory};
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

/// A directory of runs.
#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
    host: String,
}

/// Numbers what this process writes aside, whatever stores it has open.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The right to do a run, until dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    lock: Option<Lock>,
    /// How often it was begun by processes that were killed.
    pub(crate) killed: u64,
}

/// A directory to write an unclaimed run into, gone when dropped.
#[derive(Debug)]
pub(crate) struct Aside {
    pub(crate) path: PathBuf,
    _lock: Option<Lock>,
}

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Why a store cannot be worked in.
pub(crate) type Refused = ScenarioError;

impl Store {
    /// The store in `directory`, which is made where it is not there. What killed processes left half-written is removed.
    ///
    /// # Errors
    /// Where the directory cannot be written.
    pub(crate) fn open(directory: &Path) -> Result<Self, Refused> {
        let store = Store { directory: directory.to_path_buf(), host: host() };
        for part in ["runs", "failed", ".writing", ".claims"] {
            fs::create_dir_all(directory.join(part)).map_err(|error| directory_error(directory, &error))?;
        }
        // A disk that is mounted read-only lets directories be "made" that are there.
        let probe = store.aside("probe");
        fs::create_dir(&probe).map_err(|error| store.refused(&error))?;
        // Whoever opens the store at the same time may have taken it for a leftover.
        let _ = fs::remove_dir(&probe);
        store.remove_leftovers();
        Ok(store)
    }

    pub(crate) fn refused(&self, error: &io::Error) -> Refused {
        directory_error(&self.directory, error)
    }

    /// Whether the run is there.
    pub(crate) fn is_finished(&self, run: &str) -> bool {
        is_whole(&store_directory(&self.directory, run))
    }

    /// Whether it failed before.
    pub(crate) fn has_failed(&self, run: &str) -> bool {
        failed_file(&self.directory, run).exists()
    }

    /// Claims a run for this process; `None` where another one is at it.
    pub(crate) fn claim(&self, run: &str) -> Result<Option<Claim>, Refused> {
        match Lock::try_take(&self.directory.join(".claims").join(run)) {
            Ok(None) => Ok(None),
            Ok(Some(mut lock)) => {
                let killed = lock.read().map_err(|error| self.refused(&error))?.lines().count() as u64;
                Ok(Some(Claim { lock: Some(lock), killed }))
            }
            Err(error) if is_unsupported(&error) => Ok(Some(Claim { lock: None, killed: 0 })),
            Err(error) => Err(self.refused(&error)),
        }
    }

    /// Notes that the run begins: in the claim, where it stays if this process is killed, and in the store's log.
    pub(crate) fn note_start(&self, run: &str, claim: &mut Claim) -> Result<(), Refused> {
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let line = format!("{run} {} {} {seconds}", self.host, process::id());
        if let Some(lock) = &mut claim.lock {
            lock.append(&line).map_err(|error| self.refused(&error))?;
        }
        self.log_start(&line)
    }

    /// Adds to the log of starts.
    pub(crate) fn log_start(&self, line: &str) -> Result<(), Refused> {
        let mut log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.directory.join("starts.log"))
            .map_err(|error| self.refused(&error))?;
        // One write, so that lines of several processes do not mix.
        log.write_all(format!("{line}\n").as_bytes()).map_err(|error| self.refused(&error))
    }

    /// A directory of this process's own to write a run into.
    pub(crate) fn aside(&self, run: &str) -> PathBuf {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.directory.join(".writing").join(format!("{run}-{}-{}-{number}", self.host, process::id()))
    }

    /// The same for a run that is not claimed, since it was done elsewhere: while it lives, whoever opens the store does
    /// not take it for a leftover.
    pub(crate) fn aside_unclaimed(&self, run: &str) -> Result<Aside, Refused> {
        // Leftovers are known by the claim that stands before the first dash.
        let own = self.aside(run).file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
        let lock = match Lock::try_take(&self.directory.join(".claims").join(&own)) {
            Ok(lock) => lock,
            Err(error) if is_unsupported(&error) => None,
            Err(error) => return Err(self.refused(&error)),
        };
        let path = self.directory.join(".writing").join(format!("{own}-gathered"));
        fs::create_dir(&path).map_err(|error| self.refused(&error))?;
        Ok(Aside { path, _lock: lock })
    }

    /// Puts what was written aside in place. Where the run is there already, that one stays, unless it is to be replaced.
    pub(crate) fn publish(&self, aside: &Path, run: &str, attempts: u64, replace: bool) -> Result<(), Refused> {
        self.publish_of(&self.host, aside, run, attempts, replace)
    }

    /// The same of a run that `host` did.
    pub(crate) fn publish_of(
        &self,
        host: &str,
        aside: &Path,
        run: &str,
        attempts: u64,
        replace: bool,
    ) -> Result<(), Refused> {
        let attempt = Attempt { host: host.to_string(), attempts, ..Attempt::default() };
        let place = store_directory(&self.directory, run);
        let put = || -> io::Result<()> {
            attempt.write(aside)?;
            match fs::rename(aside, &place) {
                Err(_) if place.exists() => {}
                done => return done,
            }
            if !replace && self.is_finished(run) {
                return fs::remove_dir_all(aside);
            }
            let old = self.aside(run);
            fs::rename(&place, &old)?;
            fs::rename(aside, &place)?;
            fs::remove_dir_all(old)
        };
        put().map_err(|error| self.refused(&error))?;
        let _ = fs::remove_file(failed_file(&self.directory, run));
        Ok(())
    }

    /// Keeps why a run failed.
    pub(crate) fn keep_failure(&self, run: &str, name: &str, error: &str, attempts: u64) -> Result<(), Refused> {
        self.put_failure(&self.aside(run), run, &self.failure(name, error, attempts))
    }

    /// The same for a run that is not claimed.
    pub(crate) fn keep_failure_unclaimed(&self, run: &str, failed: &FailedRun) -> Result<(), Refused> {
        let aside = self.aside_unclaimed(run)?;
        self.put_failure(&aside.path.join("failed.json"), run, failed)
    }

    /// A failure on this computer.
    pub(crate) fn failure(&self, name: &str, error: &str, attempts: u64) -> FailedRun {
        FailedRun { name: name.to_string(), error: error.to_string(), attempts, host: self.host.clone() }
    }

    fn put_failure(&self, aside: &Path, run: &str, failed: &FailedRun) -> Result<(), Refused> {
        let put = || -> io::Result<()> {
            fs::write(aside, json(failed)?)?;
            fs::rename(aside, failed_file(&self.directory, run))
        };
        put().map_err(|error| self.refused(&error))
    }

    /// Forgets that a run failed, so that it is tried again.
    pub(crate) fn forget_failure(&self, run: &str) -> Result<(), Refused> {
        match fs::remove_file(failed_file(&self.directory, run)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.refused(&error)),
            _ => Ok(()),
        }
    }

    /// The right to write what stands over all runs; waits until no other process has it. `None` where there are no locks.
    pub(crate) fn exclusive(&self) -> Result<Option<Lock>, Refused> {
        loop {
            match Lock::try_take(&self.directory.join(".claims").join("tables")) {
                Ok(Some(lock)) => return Ok(Some(lock)),
                Ok(None) => std::thread::sleep(Duration::from_millis(50)),
                Err(error) if is_unsupported(&error) => return Ok(None),
                Err(error) => return Err(self.refused(&error)),
            }
        }
    }

    /// Removes what processes that are gone left half-written: what nobody holds a claim for.
    fn remove_leftovers(&self) {
        let Ok(entries) = fs::read_dir(self.directory.join(".writing")) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Some((run, _)) = name.split_once('-') else { continue };
            if let Ok(Some(lock)) = Lock::try_take(&self.directory.join(".claims").join(run)) {
                let path = entry.path();
                let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
                lock.leave();
            }
        }
    }
}

fn json(value: &impl serde::Serialize) -> io::Result<String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(io::Error::other)
}

/// The name of this computer.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    let name: String =
        name.unwrap_or_default().trim().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.is_empty() { "unknown".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);
    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("anabranch-store-{name}-{}", process::id()));
            let _ = fs::remove_dir_all(&path);
            Folder(path)
        }
    }
    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn write(store: &Store, run: &str, text: &str, replace: bool) {
        let aside = store.aside(run);
        fs::create_dir(&aside).unwrap();
        fs::write(aside.join("summary.json"), text).unwrap();
        assert!(text == "again" || !store.is_finished(run) || !replace, "nothing is visible before it is whole");
        store.publish(&aside, run, 1, replace).unwrap();
    }

    fn entries(path: &Path) -> usize {
        fs::read_dir(path).unwrap().count()
    }

    #[test]
    fn the_first_result_stays_and_nothing_is_left_aside() {
        let folder = Folder::new("first");
        let (one, other) = (Store::open(&folder.0).unwrap(), Store::open(&folder.0).unwrap());
        write(&one, "a1", "first", false);
        write(&other, "a1", "second", false);
        let text = || fs::read_to_string(store_directory(&folder.0, "a1").join("summary.json")).unwrap();
        assert_eq!(text(), "first");
        write(&one, "a1", "again", true);
        assert_eq!(text(), "again");
        assert_eq!(entries(&folder.0.join(".writing")), 0);
    }

    #[test]
    fn what_is_gathered_is_no_leftover_while_it_is_written() {
        let folder = Folder::new("gathered");
        let store = Store::open(&folder.0).unwrap();
        let aside = store.aside_unclaimed("a1").unwrap();
        fs::write(aside.path.join("summary.json"), "{}").unwrap();
        // Another process opens the store, and one does the very same run meanwhile.
        let other = Store::open(&folder.0).unwrap();
        assert!(aside.path.join("summary.json").exists(), "taken for a leftover");
        drop(other.claim("a1").unwrap().unwrap());
        assert_ne!(other.aside("a1"), store.aside("a1"), "of one process");
        store.publish_of("elsewhere", &aside.path, "a1", 2, false).unwrap();
        assert!(store.is_finished("a1"));
        drop(aside);
        // Whoever is killed while writing does leave something, which is removed.
        fs::create_dir(folder.0.join(".writing/b2_elsewhere_1_1-gathered")).unwrap();
        Store::open(&folder.0).unwrap();
        assert_eq!((entries(&folder.0.join(".writing")), entries(&folder.0.join(".claims"))), (0, 0));
    }

    #[test]
    fn a_run_that_lost_bytes_is_not_there_and_is_done_again() {
        let folder = Folder::new("cut");
        let store = Store::open(&folder.0).unwrap();
        let file = |name: &str| store_directory(&folder.0, "a1").join(name);
        // What is on the disk after the power failed: the names, not all of the bytes.
        for cut in ["flows.csv", "summary.json", "attempt.json"] {
            let aside = store.aside("a1");
            fs::create_dir(&aside).unwrap();
            fs::write(aside.join("flows.csv"), "rows").unwrap();
            fs::write(aside.join("summary.json"), "{}").unwrap();
            store.publish(&aside, "a1", 1, false).unwrap();
            assert!(store.is_finished("a1"), "{cut}: done again");
            fs::write(file(cut), "").unwrap();
            assert!(!store.is_finished("a1"), "{cut} is empty");
        }
        // A store that an older version wrote has no sizes.
        fs::write(file("summary.json"), "{}").unwrap();
        fs::write(file("attempt.json"), r#"{"host":"a","attempts":1}"#).unwrap();
        assert!(store.is_finished("a1"));
    }

    #[test]
    fn a_run_is_claimed_by_one_and_what_the_dead_began_is_counted() {
        let folder = Folder::new("claim");
        let (one, other) = (Store::open(&folder.0).unwrap(), Store::open(&folder.0).unwrap());
        let mut claim = one.claim("a1").unwrap().unwrap();
        one.note_start("a1", &mut claim).unwrap();
        assert!(other.claim("a1").unwrap().is_none());
        assert!(other.claim("b2").unwrap().is_some(), "another run is free");
        // A process that is killed leaves its claim's file and what it wrote, but holds no lock.
        let left = fs::read_to_string(folder.0.join(".claims/a1")).unwrap();
        drop(claim);
        fs::write(folder.0.join(".claims/a1"), left).unwrap();
        fs::create_dir(folder.0.join(".writing/a1-elsewhere-1-1")).unwrap();
        let later = Store::open(&folder.0).unwrap();
        assert_eq!(entries(&folder.0.join(".writing")), 0, "what it wrote is removed");
        assert_eq!(later.claim("a1").unwrap().unwrap().killed, 1, "what it began is counted");
    }

    #[test]
    fn failures_are_kept_until_they_are_forgotten_or_the_run_succeeds() {
        let folder = Folder::new("failed");
        let store = Store::open(&folder.0).unwrap();
        store.keep_failure("a1", "ecmp, seed 1", "it stalled", 1).unwrap();
        store.keep_failure("b2", "ecmp, seed 2", "it stalled", 1).unwrap();
        assert!(store.has_failed("a1") && store.has_failed("b2"));
        store.forget_failure("a1").unwrap();
        write(&store, "b2", "done", false);
        assert!(!store.has_failed("a1") && !store.has_failed("b2"));
    }
}
