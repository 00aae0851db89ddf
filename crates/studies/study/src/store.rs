//! A store of runs: each in a directory named by the hash of all it depends on, complete from the moment it exists.
//!
//! A run is written aside, made durable and put in place by one rename, so the disk alone determines which runs are
//! done. Any number of processes and computers may share a store; without locks two may do the same run, and the first
//! result stays.

use crate::{
    Lock, RunError, input_error,
    lock::{is_unsupported, lock_directory},
};
use anabranch_results::{
    FailedRun, Inputs, Manifest, NewFile, OutputDir, PLAN, Plan, PlannedRun, ReportError, ResultKind, create_store,
    damage, disk, failed_file, is_complete_run, is_key, named_run, part_names, store_directory, study_files,
    write_plan,
};
use anabranch_scenario::{BackendEntry, COMMIT, Scenario, ScenarioError, VERSION};
use std::{
    collections::BTreeMap,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

/// Returns 16 hex digits over all that a run depends on: [`Scenario::hash`], the backend and this build's commit.
pub fn run_key(scenario: &Scenario, backend: &BackendEntry) -> String {
    anabranch_results::run_key(&format!("{:016x}", scenario.hash()), backend.name, COMMIT)
}

/// Existing runs that are repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Again {
    #[default]
    No,
    /// Those that failed.
    Failed,
    All,
}

/// A directory of runs.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    pub(crate) host: String,
}

/// Number of the next directory that this process writes aside, over all its stores.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The right to do a run, until dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    lock: Option<Lock>,
    /// Number of starts by processes that were killed.
    pub(crate) killed: u64,
}

/// A directory to write an unclaimed run into, removed on drop.
#[derive(Debug)]
pub(crate) struct Aside {
    pub(crate) path: PathBuf,
    _lock: Option<Lock>,
}

impl Claim {
    /// Marks the run as done and waiting to be put in place: if the process ends now, the run is not the cause.
    pub(crate) fn is_done(&mut self) {
        if let Some(lock) = &mut self.lock {
            let _ = lock.clear();
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = disk::remove_own_tree(&self.path);
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) aside: PathBuf,
    pub(crate) run: String,
    pub(crate) replace: bool,
}

/// Number of runs from which on the whole file system is synced at once.
const MANY: usize = 4;

pub(crate) type Refused = ScenarioError;

/// Makes `directory` and calls `write` while no other process is inside this function with it.
pub fn write_alone<T, E: From<ScenarioError>>(directory: &Path, write: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    disk::make_directories(directory).map_err(|error| directory_error(directory, &error))?;
    let _locked = lock_directory(directory);
    write()
}

/// Returns `true` if the run `key` remains to be done in the store `directory`.
pub(crate) fn is_due(directory: &Path, key: &str, again: Again) -> bool {
    let finished = || is_complete_run(&store_directory(directory, key));
    match again {
        Again::All => true,
        Again::Failed => !finished(),
        Again::No => !finished() && !failed_file(directory, key).exists(),
    }
}

/// Refuses a directory with files of others, a part of a store and, without `replace`, one whose plan is of another
/// scenario or version. Files of the same plan, begun by another process, are listed by a newer manifest.
pub(crate) fn replaceable(directory: &Path, plan: &Plan, inputs: &[PathBuf], replace: bool) -> Result<(), RunError> {
    let name = directory.display();
    let elsewhere = |message: String| ScenarioError::new(message).help("give another directory with --out DIR");
    if let Some(store) = store_around(directory) {
        return Err(elsewhere(format!("{name} is a part of the results in {}", store.display())).into());
    }
    let open = || OutputDir::keeping(directory, Inputs::of(inputs.to_vec()));
    let manifest = open()?.manifest().cloned();
    let kind = manifest.as_ref().map(Manifest::kind);
    if let Some(kind) = kind.filter(|kind| *kind == ResultKind::Other) {
        return Err(elsewhere(format!("{name} contains {kind}; runs need a separate directory")).into());
    }
    // By the manifest alone: another process may have begun the directory and not yet written its plan.
    let lists = |name: &str| manifest.as_ref().is_some_and(|there| there.file(name).is_some());
    if !lists(PLAN) && (lists("sweep.json") || kind.is_some_and(|kind| kind != ResultKind::Store)) {
        return Err(elsewhere(format!("{name} contains results of an earlier layout, without {PLAN}")).into());
    }
    OutputDir::settled(open, |output| {
        let names =
            plan.runs.iter().filter(|_| plan.is_comparison()).map(|run| Path::new("runs").join(plan.run_name(run)));
        output.admit_results(&study_files())?;
        names
            .filter_map(|name| name.parent().map(Path::to_path_buf))
            .try_for_each(|folder| output.admit_folder(&folder))
    })?;
    let there = match Plan::read(directory) {
        Ok(Some(there)) => there,
        Ok(None) => return Ok(()),
        Err(ReportError::Content { .. }) if replace => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let (same, version) = (there.ground == plan.ground, there.version == plan.version);
    let has_runs = || there.runs.iter().any(|run| store_directory(directory, &run.run).exists());
    if replace || same && version || !has_runs() {
        return Ok(());
    }
    let message = match (same, version) {
        (true, _) => format!("{name} contains runs by version {}; this is version {}", there.version, plan.version),
        (false, true) => format!("{name} contains runs of another scenario: {}", there.name),
        (false, false) => {
            format!("{name} contains runs of another scenario: {}, by version {}", there.name, there.version)
        }
    };
    let help = "give another directory with --out DIR; or --replace, which replaces its tables and keeps its runs";
    Err(ScenarioError::new(message).help(help).into())
}

/// Returns the store of which `directory` is a part that only its commands write.
fn store_around(directory: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(directory).ok()?;
    let is_store = |path: &Path| Manifest::read(path).ok().flatten().is_some_and(|there| there.file(PLAN).is_some());
    let is_part = |store: &&Path, part: &str| part_names().any(|name| name == part) && is_store(store);
    let around = absolute.ancestors().zip(absolute.ancestors().skip(1));
    let mut around = around.map(|(part, store)| (part.file_name().unwrap_or_default().to_string_lossy(), store));
    around.find(|(part, store)| is_part(store, part)).map(|(_, store)| store.to_path_buf())
}

/// Adds to an error of the disk what is finished, and the remedy.
pub(crate) fn with_what_is_done(error: RunError, finished: usize, of: usize) -> RunError {
    match error {
        RunError::Report(ReportError::File { path, source }) => {
            let message = format!("{}: {source}; {finished} of {of} runs are finished and kept", path.display());
            let help = match source.kind() {
                io::ErrorKind::NotFound => "the directory, or a part of it, was moved or removed during the runs",
                _ => "free space there, or make it writable, and repeat the command to continue",
            };
            ScenarioError::new(message).help(help).into()
        }
        other => other,
    }
}

impl Store {
    /// Writes the plan, unless it is there.
    pub(crate) fn write_plan(&self, plan: &Plan) -> Result<(), RunError> {
        let _alone = self.exclusive()?;
        self.put_plan(plan)
    }

    /// As [`Store::write_plan`], for a process that has the right to write the tables.
    pub(crate) fn put_plan(&self, plan: &Plan) -> Result<(), RunError> {
        let there = Plan::read(&self.directory).ok().flatten();
        let mut plan = plan.clone();
        if let (None, Some(there)) = (&plan.until_decided, there.as_ref().filter(|there| there.ground == plan.ground)) {
            plan.decided_before = there.until_decided.clone().or_else(|| there.decided_before.clone());
        }
        if there.as_ref() != Some(&plan) {
            write_plan(&plan, &self.directory)?;
        }
        Ok(())
    }

    /// Makes the names of a comparison's finished runs, `runs/SCHEME/seedN`: links to their directories. Names of other
    /// runs are removed. Without links, `plan.json` leads from names to directories.
    pub(crate) fn name_runs(&self, plan: &Plan) -> Result<(), Refused> {
        let finished = plan.runs.iter().filter(|run| self.is_finished(&run.run));
        let names: BTreeMap<PathBuf, &str> = finished.map(|run| (self.name(plan, run), run.run.as_str())).collect();
        self.put_names(&names).map_err(|error| self.refused(&error))
    }

    fn name(&self, plan: &Plan, run: &PlannedRun) -> PathBuf {
        store_directory(&self.directory, &plan.run_name(run))
    }

    fn put_names(&self, names: &BTreeMap<PathBuf, &str>) -> io::Result<()> {
        let is_of_names = |entry: &fs::DirEntry| {
            entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_key(&entry.file_name().to_string_lossy())
        };
        for folder in fs::read_dir(self.directory.join("runs"))?.flatten().filter(is_of_names) {
            for name in fs::read_dir(folder.path())?.flatten().map(|entry| entry.path()) {
                if named_run(&name).is_some_and(|run| names.get(&name) != Some(&run.as_str())) {
                    disk::remove_file(&name)?;
                }
            }
        }
        for (name, run) in names {
            let folder = name.parent().unwrap_or(&self.directory);
            disk::make_directories(folder)?;
            match fs::symlink_metadata(name) {
                Ok(there) if there.is_symlink() => {}
                // A copy for which links were followed.
                Ok(_) if is_complete_run(name) => {}
                Ok(_) => {
                    let found = format!("{} is no link to a run; move it away", name.display());
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, found));
                }
                Err(_) => {
                    disk::make_link(&Path::new("..").join(run), name)?;
                    disk::sync(folder)?;
                }
            }
        }
        disk::sync(&self.directory.join("runs"))
    }

    /// Opens or creates the store in `directory`, and removes what killed processes left half-written.
    pub(crate) fn open(directory: &Path) -> Result<Self, Refused> {
        Self::open_with(directory, &[])
    }

    /// As `open`, with further directories `also` (name, meaning).
    pub fn open_with(directory: &Path, also: &[(&str, &str)]) -> Result<Self, Refused> {
        let store = Store { directory: directory.to_path_buf(), host: host() };
        disk::make_directories(directory).map_err(|error| directory_error(directory, &error))?;
        {
            // Otherwise a second process could replace a manifest to which the first has added a plan.
            let _locked = lock_directory(directory);
            create_store(directory, VERSION, also).map_err(input_error)?;
        }
        for part in ["runs", "failed", ".writing", ".claims"] {
            disk::make_directories(&directory.join(part)).map_err(|error| directory_error(directory, &error))?;
        }
        // On a read-only mount, "making" an existing directory succeeds.
        let probe = store.aside("probe");
        disk::make_directory(&probe).map_err(|error| store.refused(&error))?;
        // Another process that opens the store at the same time may have removed it as a leftover.
        let _ = disk::remove_directory(&probe);
        store.remove_leftovers();
        Ok(store)
    }

    pub(crate) fn refused(&self, error: &io::Error) -> Refused {
        directory_error(&self.directory, error)
    }

    pub(crate) fn is_finished(&self, run: &str) -> bool {
        is_complete_run(&store_directory(&self.directory, run))
    }

    pub(crate) fn damage(&self, run: &str) -> Option<String> {
        damage(&store_directory(&self.directory, run))
    }

    pub(crate) fn has_failed(&self, run: &str) -> bool {
        failed_file(&self.directory, run).exists()
    }

    /// Claims a run for this process; `None` where another process holds it.
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

    /// Records the start of a run: in the claim, where it stays if this process is killed, and in the store's log.
    pub(crate) fn note_start(&self, run: &str, claim: &mut Claim) -> Result<(), Refused> {
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let line = format!("{run} {} {} {seconds}", self.host, process::id());
        if let Some(lock) = &mut claim.lock {
            lock.append(&line).map_err(|error| self.refused(&error))?;
        }
        self.log_start(&line)
    }

    pub(crate) fn log_start(&self, line: &str) -> Result<(), Refused> {
        let mut log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.directory.join("starts.log"))
            .map_err(|error| self.refused(&error))?;
        // One write, so that lines of several processes do not mix.
        log.write_all(format!("{line}\n").as_bytes()).map_err(|error| self.refused(&error))
    }

    /// Returns an unused path of this process to write a run into.
    pub(crate) fn aside(&self, run: &str) -> PathBuf {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.directory.join(".writing").join(format!("{run}-{}-{}-{number}", self.host, process::id()))
    }

    /// For a run that was done elsewhere. While the directory exists, no process removes it as a leftover.
    pub(crate) fn aside_unclaimed(&self, run: &str) -> Result<Aside, Refused> {
        // Leftovers are recognised by the claim named before the first dash.
        let own = self.aside(run).file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
        let lock = match Lock::try_take(&self.directory.join(".claims").join(&own)) {
            Ok(lock) => lock,
            Err(error) if is_unsupported(&error) => None,
            Err(error) => return Err(self.refused(&error)),
        };
        let path = self.directory.join(".writing").join(format!("{own}-gathered"));
        disk::make_directory(&path).map_err(|error| self.refused(&error))?;
        Ok(Aside { path, _lock: lock })
    }

    /// Makes directories written aside durable and puts them in place; returns notes on runs that were moved aside.
    pub(crate) fn publish(&self, written: &[Written]) -> Result<Vec<String>, Refused> {
        let put = || -> io::Result<Vec<String>> {
            let asides: Vec<PathBuf> = written.iter().map(|written| written.aside.clone()).collect();
            match asides.len() >= MANY {
                true => disk::sync_all(&self.directory, &asides)?,
                false => asides.iter().try_for_each(|aside| disk::sync_with_files(aside))?,
            }
            let moved = written.iter().map(|written| self.put_in_place(written)).collect::<io::Result<Vec<_>>>()?;
            disk::sync(&self.directory.join("runs"))?;
            Ok(moved.into_iter().flatten().collect())
        };
        let moved = put().map_err(|error| self.refused(&error))?;
        for written in written {
            let _ = disk::remove_file(&failed_file(&self.directory, &written.run));
        }
        Ok(moved)
    }

    fn put_in_place(&self, Written { aside, run, replace }: &Written) -> io::Result<Option<String>> {
        let place = store_directory(&self.directory, run);
        if fs::symlink_metadata(&place).is_err() {
            return disk::rename(aside, &place).map(|()| None);
        }
        if !replace && self.is_finished(run) {
            return disk::remove_own_tree(aside).map(|()| None);
        }
        // The old run is first moved away whole, so that no interruption loses data; then our files in it are removed.
        let earlier = self.directory.join("earlier-runs");
        let move_away = || {
            disk::make_directories(&earlier)?;
            let names = std::iter::once(run.clone()).chain((2..).map(|number| format!("{run}-{number}")));
            let free = names.map(|name| earlier.join(name)).find(|name| fs::symlink_metadata(name).is_err());
            let old = free.unwrap_or_else(|| earlier.join(run));
            disk::rename(&place, &old).map(|()| old)
        };
        // Another thread that replaces a run may remove the empty directory in between.
        let mut tries = 0;
        let old = loop {
            match move_away() {
                Err(error) if error.kind() == io::ErrorKind::NotFound && place.exists() && tries < 1000 => tries += 1,
                moved => break moved?,
            }
        };
        disk::rename(aside, &place)?;
        // A run that another name or process put here is kept whole.
        if let Some(manifest) = Manifest::read(&old).ok().flatten().filter(|manifest| manifest.is_of_run(&place)) {
            let files = manifest.files.iter().filter(|file| !file.open).map(|file| file.name.as_str());
            let below = |name: &str| fs::symlink_metadata(old.join(name)).is_ok_and(|there| !there.is_dir());
            let own: Vec<&str> = files.chain(["attempt.json", "manifest.json"]).filter(|name| below(name)).collect();
            own.iter().try_for_each(|name| disk::remove_file(&old.join(name)))?;
            let _ = disk::remove_directory(&old.join("figures"));
            // Foreign files move back beside the new run.
            for entry in fs::read_dir(&old)? {
                let entry = entry?;
                let to = place.join(entry.file_name());
                if fs::symlink_metadata(&to).is_err() {
                    disk::rename(&entry.path(), &to)?;
                }
            }
        }
        match disk::remove_directory(&old) {
            Ok(()) => disk::remove_directory(&earlier).or(Ok(())).map(|()| None),
            Err(_) => Ok(Some(format!("earlier files of {} are kept in {}", place.display(), old.display()))),
        }
    }

    pub(crate) fn record_failure(&self, run: &str, name: &str, error: &str, attempts: u64) -> Result<(), Refused> {
        self.put_failure(&self.aside(run), run, &self.failure(name, error, attempts))
    }

    /// As [`Store::record_failure`], for a run that is not claimed.
    pub(crate) fn record_unclaimed_failure(&self, run: &str, failed: &FailedRun) -> Result<(), Refused> {
        let aside = self.aside_unclaimed(run)?;
        self.put_failure(&aside.path.join("failed.json"), run, failed)
    }

    pub(crate) fn failure(&self, name: &str, error: &str, attempts: u64) -> FailedRun {
        FailedRun { name: name.to_string(), error: error.to_string(), attempts, host: self.host.clone() }
    }

    fn put_failure(&self, aside: &Path, run: &str, failed: &FailedRun) -> Result<(), Refused> {
        let put = || -> io::Result<()> {
            let mut file = NewFile::create(aside)?;
            file.write_all(json(failed)?.as_bytes())?;
            file.sync()?;
            disk::rename(aside, &failed_file(&self.directory, run))?;
            disk::sync(&self.directory.join("failed"))
        };
        put().map_err(|error| self.refused(&error))
    }

    /// Removes the record of a failure, so that the run is tried again.
    pub(crate) fn forget_failure(&self, run: &str) -> Result<(), Refused> {
        let file = failed_file(&self.directory, run);
        if !file.exists() {
            return Ok(());
        }
        disk::remove_file(&file).map_err(|error| self.refused(&error))
    }

    /// Takes the right to write the tables over all runs; waits until no other process has it. `None` where there are no locks.
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

    fn remove_leftovers(&self) {
        let Ok(entries) = fs::read_dir(self.directory.join(".writing")) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Some(run) = aside_of(&name) else { continue };
            if let Ok(Some(lock)) = Lock::try_take(&self.directory.join(".claims").join(run)) {
                let path = entry.path();
                let is_link_or_file = fs::symlink_metadata(&path).is_ok_and(|there| !there.is_dir());
                let _ = if is_link_or_file { disk::remove_file(&path) } else { disk::remove_own_tree(&path) };
                lock.leave();
            }
        }
    }
}

/// Returns the run or claim that a name in `.writing` belongs to; `None` for foreign names.
fn aside_of(name: &str) -> Option<&str> {
    let (run, rest) = name.split_once('-')?;
    let key = run.split('_').next().unwrap_or(run);
    if key != "probe" && !key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    if rest == "gathered" {
        return Some(run);
    }
    let numbers: Vec<&str> = rest.rsplitn(3, '-').collect();
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (numbers.len() == 3 && numbers[..2].iter().all(is_number) && !run.is_empty()).then_some(run)
}

fn json(value: &impl serde::Serialize) -> io::Result<String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(io::Error::other)
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    let name: String =
        name.unwrap_or_default().trim().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.is_empty() { "unknown".into() } else { name }
}

pub(crate) fn directory_error(directory: &Path, error: &io::Error) -> ScenarioError {
    ScenarioError::new(format!("the directory {} cannot be used for results: {error}", directory.display()))
        .help("give a directory that can be written with --out DIR")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_testkit::folder;

    fn write_aside(aside: &Path, text: &str) {
        let digest = |text: &str| anabranch_results::Content::of(text.as_bytes()).blake3;
        let entry = |name: &str, text: &str| {
            format!(r#"{{"name": "{name}", "meaning": "", "bytes": {}, "blake3": "{}"}}"#, text.len(), digest(text))
        };
        let attempt = r#"{"host": "a", "attempts": 1}"#;
        let entries =
            [entry("summary.json", text), entry("flows.csv", "rows"), entry("attempt.json", attempt)].join(", ");
        let blank = "0".repeat(64);
        let of = |seal: &str| format!("{{\"version\": \"1\", \"files\": [{entries}],\n  \"seal\": \"{seal}\"\n}}\n");
        let seal = digest(&of(""));
        assert_ne!(seal, blank);
        fs::create_dir_all(aside).unwrap();
        for (name, text) in
            [("summary.json", text), ("flows.csv", "rows"), ("attempt.json", attempt), ("manifest.json", &of(&seal))]
        {
            fs::write(aside.join(name), text).unwrap();
        }
    }

    fn publish(store: &Store, aside: &Path, run: &str, replace: bool) {
        let written = Written { aside: aside.to_path_buf(), run: run.into(), replace };
        store.publish(&[written]).unwrap();
    }

    fn write(store: &Store, run: &str, text: &str, replace: bool) {
        let aside = store.aside(run);
        write_aside(&aside, text);
        assert!(text == "again" || !store.is_finished(run) || !replace, "nothing is visible before it is whole");
        publish(store, &aside, run, replace);
    }

    fn entries(path: &Path) -> usize {
        fs::read_dir(path).unwrap().count()
    }

    #[test]
    fn first_result_stays_without_leftovers() {
        let folder = folder();
        let (one, other) = (Store::open(&folder).unwrap(), Store::open(&folder).unwrap());
        write(&one, "a1", "first", false);
        write(&other, "a1", "second", false);
        let text = || fs::read_to_string(store_directory(&folder, "a1").join("summary.json")).unwrap();
        assert_eq!(text(), "first");
        write(&one, "a1", "again", true);
        assert_eq!(text(), "again");
        assert_eq!(entries(&folder.join(".writing")), 0);
    }

    #[test]
    fn files_being_gathered_are_no_leftovers() {
        let folder = folder();
        let store = Store::open(&folder).unwrap();
        let aside = store.aside_unclaimed("a1").unwrap();
        write_aside(&aside.path, "{}");
        // Another process opens the store, and one does the same run meanwhile.
        let other = Store::open(&folder).unwrap();
        assert!(aside.path.join("summary.json").exists(), "taken for a leftover");
        drop(other.claim("a1").unwrap().unwrap());
        assert_ne!(other.aside("a1"), store.aside("a1"), "of one process");
        publish(&store, &aside.path, "a1", false);
        assert!(store.is_finished("a1"));
        drop(aside);
        // A process that is killed while writing does leave files, which are removed.
        fs::create_dir(folder.join(".writing/b2_elsewhere_1_1-gathered")).unwrap();
        Store::open(&folder).unwrap();
        assert_eq!((entries(&folder.join(".writing")), entries(&folder.join(".claims"))), (0, 0));
    }

    #[test]
    fn truncated_run_is_repeated() {
        let folder = folder();
        let store = Store::open(&folder).unwrap();
        let file = |name: &str| store_directory(&folder, "a1").join(name);
        // State of the disk after a power failure: the names, but not all of the bytes.
        for cut in ["flows.csv", "summary.json", "attempt.json"] {
            let aside = store.aside("a1");
            write_aside(&aside, "{}");
            publish(&store, &aside, "a1", false);
            assert!(store.is_finished("a1"), "{cut}: done again");
            fs::write(file(cut), "").unwrap();
            assert!(!store.is_finished("a1"), "{cut} is empty");
        }
        // Nothing of it is kept, since its manifest lists all of it.
        assert!(!folder.join("earlier-runs").exists());
    }

    #[test]
    fn files_of_others_beside_a_run_stay() {
        let folder = folder();
        let store = Store::open(&folder).unwrap();
        write(&store, "a1", "first", false);
        fs::write(store_directory(&folder, "a1").join("notes.txt"), "mine").unwrap();
        write(&store, "a1", "again", true);
        assert_eq!(fs::read_to_string(store_directory(&folder, "a1").join("notes.txt")).unwrap(), "mine");
        assert!(!folder.join("earlier-runs").exists());
        // No manifest claims the files of a damaged run: it is kept whole.
        fs::write(store_directory(&folder, "a1").join("manifest.json"), "{").unwrap();
        write(&store, "a1", "again", true);
        assert_eq!(entries(&folder.join("earlier-runs/a1")), 5);
    }

    #[test]
    fn a_directory_of_others_is_no_store() {
        let folder = folder();
        for name in ["runs/mine", "failed/mine", ".writing/mine-a-1-2", ".claims/mine"] {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
            fs::write(folder.join(name), "mine").unwrap();
            let refused = Store::open(&folder).unwrap_err().to_string();
            assert!(refused.contains("no manifest lists it"), "{refused}");
            assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), "mine");
            assert_eq!(entries(&folder), 1, "{name}");
        }
    }

    #[test]
    fn run_has_one_claim_and_dead_attempts_are_counted() {
        let folder = folder();
        let (one, other) = (Store::open(&folder).unwrap(), Store::open(&folder).unwrap());
        let mut claim = one.claim("a1").unwrap().unwrap();
        one.note_start("a1", &mut claim).unwrap();
        assert!(other.claim("a1").unwrap().is_none());
        assert!(other.claim("b2").unwrap().is_some(), "another run is free");
        // A process that is killed leaves its claim's file and what it wrote, but holds no lock.
        let left = fs::read_to_string(folder.join(".claims/a1")).unwrap();
        drop(claim);
        fs::write(folder.join(".claims/a1"), left).unwrap();
        fs::create_dir(folder.join(".writing/a1-elsewhere-1-1")).unwrap();
        let later = Store::open(&folder).unwrap();
        assert_eq!(entries(&folder.join(".writing")), 0, "what it wrote is removed");
        assert_eq!(later.claim("a1").unwrap().unwrap().killed, 1, "what it began is counted");
    }

    #[test]
    fn failures_are_kept_until_forgotten_or_success() {
        let folder = folder();
        let store = Store::open(&folder).unwrap();
        store.record_failure("a1", "ecmp, seed 1", "it stalled", 1).unwrap();
        store.record_failure("b2", "ecmp, seed 2", "it stalled", 1).unwrap();
        assert!(store.has_failed("a1") && store.has_failed("b2"));
        store.forget_failure("a1").unwrap();
        write(&store, "b2", "done", false);
        assert!(!store.has_failed("a1") && !store.has_failed("b2"));
    }
}
