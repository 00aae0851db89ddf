//! Power cuts and failing disks: after any file operation, visible results are complete or absent.

use crate::common::Folder;
use anabranch_results::{
    FindingKind, Verified, check_files, damage,
    disk::{self, Operation},
    is_data, verify,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

/// Exclusive use of the disk by one test, which stops recording at its end.
struct Alone(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

fn alone() -> Alone {
    Alone(anabranch_testkit::turn())
}

impl Drop for Alone {
    fn drop(&mut self) {
        disk::watch(None);
    }
}

fn command(words: &[&str], out: &Path) -> u8 {
    let words = ["anabranch", "--quiet"].iter().chain(words).map(OsString::from);
    anabranch::command(
        words.chain(["--progress".into(), "never".into(), "--out".into(), out.into()]),
        anabranch::BACKENDS,
    )
}

/// Disks that are examined side by side.
const WORKERS: usize = 2;

const RUN: &[&str] = &["run", "tiny", "--threads", "1"];
const OTHER_RUN: &[&str] = &["run", "tiny", "--threads", "1", "--seed", "7", "--replace"];
const COMPARE: &[&str] = &["compare", "tiny", "--schemes", "ecmp,ops", "--seeds", "1", "--threads", "1"];
const SWEEP: &[&str] = &[
    "sweep",
    "tiny",
    "--over",
    "workload.0.size=4KiB,8KiB",
    "--schemes",
    "ecmp,ops",
    "--seeds",
    "1",
    "--threads",
    "1",
];

#[derive(Clone, Debug)]
enum LoggedOperation {
    MakeDirectory(PathBuf),
    Create(PathBuf),
    Append(PathBuf, Vec<u8>),
    Sync(PathBuf),
    SyncAll,
    Rename(PathBuf, PathBuf),
    MakeLink(PathBuf, PathBuf),
    Share(PathBuf, PathBuf),
    RemoveFile(PathBuf),
    RemoveDirectory(PathBuf),
}

fn recorded(words: &[&str], out: &Path) -> Vec<LoggedOperation> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let own = log.clone();
    disk::watch(Some(Box::new(move |operation| {
        let path = |path: &Path| path.to_path_buf();
        own.lock().unwrap().push(match *operation {
            Operation::MakeDirectory(at) => LoggedOperation::MakeDirectory(path(at)),
            Operation::Create(at) => LoggedOperation::Create(path(at)),
            Operation::Append(at, bytes) => LoggedOperation::Append(path(at), bytes.to_vec()),
            Operation::Sync(at) => LoggedOperation::Sync(path(at)),
            Operation::SyncAll(_) => LoggedOperation::SyncAll,
            Operation::Rename(from, to) => LoggedOperation::Rename(path(from), path(to)),
            Operation::MakeLink(target, at) => LoggedOperation::MakeLink(path(target), path(at)),
            Operation::Share(from, at) => LoggedOperation::Share(path(from), path(at)),
            Operation::RemoveFile(at) => LoggedOperation::RemoveFile(path(at)),
            Operation::RemoveDirectory(at) => LoggedOperation::RemoveDirectory(path(at)),
        });
        Ok(())
    })));
    assert_eq!(command(words, out), 0);
    disk::watch(None);
    Arc::try_unwrap(log).unwrap().into_inner().unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    Directory,
    /// Number of its target.
    Link(usize),
    File(usize),
}

#[derive(Clone, Debug)]
enum Change {
    Put(PathBuf, Entry),
    /// Source, target, and the entry.
    Move(PathBuf, PathBuf, Entry),
    Remove(PathBuf),
}

type Names = BTreeMap<PathBuf, Entry>;

fn change(names: &mut Names, change: &Change) {
    match change {
        Change::Put(path, entry) => {
            names.insert(path.clone(), *entry);
        }
        Change::Remove(path) => {
            names.remove(path);
        }
        Change::Move(from, to, entry) => {
            // Whether the old name was durable does not matter.
            names.remove(from);
            names.insert(to.clone(), *entry);
            let moved: Vec<PathBuf> = names.keys().filter(|path| path.starts_with(from)).cloned().collect();
            for path in moved {
                let entry = names.remove(&path).unwrap();
                names.insert(to.join(path.strip_prefix(from).unwrap()), entry);
            }
        }
    }
}

impl Change {
    /// Directory whose synchronization makes the change durable.
    fn folder(&self) -> &Path {
        let (Change::Put(path, _) | Change::Move(_, path, _) | Change::Remove(path)) = self;
        path.parent().unwrap()
    }
}

/// Model of a disk that loses unsynchronized data on a power cut.
#[derive(Clone, Default)]
struct Disk {
    now: Names,
    durable: Names,
    pending: Vec<Change>,
    /// Contents, and their durable length.
    files: Vec<(Vec<u8>, usize)>,
    targets: Vec<PathBuf>,
}

impl Disk {
    fn of(root: &Path) -> Self {
        let mut disk = Disk::default();
        let mut open = vec![root.to_path_buf()];
        while let Some(path) = open.pop() {
            let entry = if let Ok(target) = fs::read_link(&path) {
                disk.targets.push(target);
                Entry::Link(disk.targets.len() - 1)
            } else if path.is_dir() {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Entry::Directory
            } else {
                let content = fs::read(&path).unwrap();
                let length = content.len();
                disk.files.push((content, length));
                Entry::File(disk.files.len() - 1)
            };
            disk.now.insert(path, entry);
        }
        disk.durable = disk.now.clone();
        disk
    }

    fn change(&mut self, what: Change) {
        change(&mut self.now, &what);
        self.pending.push(what);
    }

    fn apply(&mut self, operation: &LoggedOperation) {
        match operation {
            LoggedOperation::MakeDirectory(path) => self.change(Change::Put(path.clone(), Entry::Directory)),
            LoggedOperation::Create(path) => {
                self.files.push((Vec::new(), 0));
                self.change(Change::Put(path.clone(), Entry::File(self.files.len() - 1)));
            }
            LoggedOperation::MakeLink(target, path) => {
                self.targets.push(target.clone());
                self.change(Change::Put(path.clone(), Entry::Link(self.targets.len() - 1)));
            }
            LoggedOperation::Share(from, path) => {
                let entry = self.now[from];
                self.change(Change::Put(path.clone(), entry));
            }
            LoggedOperation::Append(path, bytes) => {
                if let Some(Entry::File(number)) = self.now.get(path) {
                    self.files[*number].0.extend_from_slice(bytes);
                }
            }
            LoggedOperation::Rename(from, to) => {
                let entry = self.now[from];
                self.change(Change::Move(from.clone(), to.clone(), entry));
            }
            // Removing a missing entry has no effect.
            LoggedOperation::RemoveFile(path) | LoggedOperation::RemoveDirectory(path) => {
                let is_empty = !self.now.keys().any(|other| other != path && other.starts_with(path));
                if self.now.contains_key(path) && is_empty {
                    self.change(Change::Remove(path.clone()));
                }
            }
            LoggedOperation::Sync(path) => match self.now.get(path) {
                Some(Entry::File(number)) => self.files[*number].1 = self.files[*number].0.len(),
                _ => {
                    let (durable, pending) =
                        self.pending.drain(..).partition::<Vec<_>, _>(|change| change.folder() == path);
                    self.pending = pending;
                    durable.iter().for_each(|what| change(&mut self.durable, what));
                }
            },
            LoggedOperation::SyncAll => {
                let pending: Vec<Change> = self.pending.drain(..).collect();
                pending.iter().for_each(|what| change(&mut self.durable, what));
                self.files.iter_mut().for_each(|(content, durable)| *durable = content.len());
            }
        }
    }

    /// Disks after a power cut: none, all, each or all but each of the pending changes; part of unsynchronized data.
    fn found(&self) -> Vec<(Names, usize)> {
        let with = |these: &dyn Fn(usize) -> bool| {
            let mut names = self.durable.clone();
            let chosen = self.pending.iter().enumerate().filter(|(number, _)| these(*number));
            chosen.for_each(|(_, what)| change(&mut names, what));
            names
        };
        let mut found = vec![(with(&|_| false), 0), (with(&|_| true), 0), (with(&|_| true), 2)];
        if self.pending.len() > 1 {
            for one in 0..self.pending.len() {
                found.push((with(&|number| number == one), 0));
                found.push((with(&|number| number != one), 0));
            }
        }
        found
    }

    /// Writes the files of `names` below `root` to `to`; of unsynchronized data one part in `part` remains.
    fn lay_out(&self, names: &Names, part: usize, root: &Path, to: &Path) {
        let _ = fs::remove_dir_all(to);
        fs::create_dir_all(to).unwrap();
        let below = names.iter().filter_map(|(path, entry)| Some((path.strip_prefix(root).ok()?, entry)));
        for (path, entry) in below.filter(|(path, _)| !path.as_os_str().is_empty()) {
            let path = to.join(path);
            // A file in a lost directory is lost.
            if !path.parent().is_some_and(Path::is_dir) {
                continue;
            }
            match entry {
                Entry::Directory => fs::create_dir(path).unwrap(),
                Entry::Link(number) => std::os::unix::fs::symlink(&self.targets[*number], path).unwrap(),
                Entry::File(number) => {
                    let (content, durable) = &self.files[*number];
                    let lost = content.len() - durable;
                    let kept = durable + lost.checked_div(part).unwrap_or(0);
                    fs::write(path, &content[..kept]).unwrap();
                }
            }
        }
    }
}

/// `None`: there are no results.
fn wrong(out: &Path, verified: Option<&Verified>) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(verified) = verified else { return wrong };
    for finding in &verified.findings {
        let hidden = finding.path.components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            part.starts_with(".anabranch-") || part == "failed"
        });
        // Unfinished writes are listed as such, hidden files are not visible, and a run without a summary is not finished.
        let is_unfinished = finding.fault == FindingKind::Unfinished
            || finding.fault == FindingKind::Missing && finding.path.ends_with("summary.json");
        if !is_unfinished && !hidden && finding.path != out.join("manifest.json") {
            wrong.push(format!("{}: {:?}, {}", finding.path.display(), finding.fault, finding.found));
        }
    }
    let mut open = vec![out.to_path_buf()];
    while let Some(path) = open.pop() {
        if path.join("summary.json").exists() {
            let finished = check_files(&path, is_data).map(|findings| findings.is_empty());
            let begun = check_files(&path, is_data)
                .is_ok_and(|findings| findings.iter().any(|finding| finding.fault == FindingKind::Unfinished));
            if !begun && (!finished.unwrap_or(false) || damage(&path).is_some()) {
                wrong.push(format!("{}: {:?}", path.display(), damage(&path)));
            }
        }
        let entries = fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path());
        let visible = |path: &PathBuf| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        open.extend(entries.filter(|path| path.is_dir() && visible(path)));
    }
    wrong
}

/// Returns `true` if results that `verify` finds intact have their page.
fn has_page_or_is_reported(out: &Path, verified: Option<&Verified>) -> bool {
    let has_results = ["summary.json", "comparison.csv", "plan.json"].iter().any(|name| out.join(name).exists());
    !has_results || out.join("report.html").exists() || !verified.is_some_and(Verified::is_intact)
}

/// Cuts the power after every operation of a command; repeats the command on every `again`th resulting disk.
fn cut_power(name: &str, before: Option<&[&str]>, words: &[&str], again: usize) {
    let folder = Folder::new(name);
    let out = folder.0.join("out");
    fs::create_dir(&out).unwrap();
    if let Some(before) = before {
        assert_eq!(command(before, &out), 0);
    }
    let mut disk = Disk::of(&out);
    let log = recorded(words, &out);
    assert!(log.len() > 50, "{} operations", log.len());
    let (mut images, mut seen) = (0, BTreeSet::new());
    for (number, operation) in log.iter().enumerate() {
        disk.apply(operation);
        // A file grows in many steps; only the last is kept.
        if matches!(operation, LoggedOperation::Append(..))
            && matches!(log.get(number + 1), Some(LoggedOperation::Append(..)))
        {
            continue;
        }
        let state: Vec<_> = disk.files.iter().map(|(content, durable)| (content.len(), *durable)).collect();
        let mut fresh = disk.found();
        fresh.retain(|(names, part)| seen.insert((names.clone(), *part, state.clone())));
        let check = |image: usize, (names, part): &(Names, usize)| {
            let found = folder.0.join(format!("found{}", image % fresh.len().min(WORKERS)));
            disk.lay_out(names, *part, &out, &found);
            let verified = verify(&found).ok();
            let wrong = wrong(&found, verified.as_ref());
            assert!(wrong.is_empty(), "after operation {number}, {operation:?}: {wrong:#?}");
            assert!(has_page_or_is_reported(&found, verified.as_ref()), "after operation {number}, {operation:?}");
            if (images + image).is_multiple_of(again) {
                assert_eq!(command(words, &found), 0, "after operation {number}, {operation:?}");
                assert!(verify(&found).unwrap().is_intact(), "after operation {number}, {operation:?}");
            }
        };
        std::thread::scope(|scope| {
            for worker in 0..fresh.len().min(WORKERS) {
                let (check, fresh) = (&check, &fresh);
                scope.spawn(move || {
                    fresh.iter().enumerate().skip(worker).step_by(WORKERS).for_each(|(at, one)| check(at, one))
                });
            }
        });
        images += fresh.len();
    }
    assert!(verify(&out).unwrap().is_intact());
    println!("{name}: {} operations, {images} disks found", log.len());
}

#[test]
fn run_is_complete_or_absent_after_power_cut() {
    let _alone = alone();
    cut_power("run", None, RUN, 40);
}

#[test]
fn replaced_run_is_complete_or_absent_after_power_cut() {
    let _alone = alone();
    cut_power("run-over", Some(RUN), OTHER_RUN, 60);
}

#[test]
#[ignore = "slow: minutes"]
fn comparison_is_complete_or_absent_after_power_cut() {
    let _alone = alone();
    cut_power("compare", None, COMPARE, 50);
}

#[test]
#[ignore = "slow: minutes"]
fn sweep_is_complete_or_absent_after_power_cut() {
    let _alone = alone();
    cut_power("sweep", None, SWEEP, 50);
}

/// The disk is full from the `n`th operation on: one exit code and no partial results, until there is space.
fn fill_disk(name: &str, words: &[&str], error: i32, step: usize) {
    let folder = Folder::new(name);
    let mut failed = 0;
    for first in (1..).step_by(step) {
        let out = folder.0.join(format!("out-{first}"));
        let (mut number, hit) = (0, Arc::new(Mutex::new(false)));
        let own = hit.clone();
        disk::watch(Some(Box::new(move |operation| {
            // A full disk can still remove files; a read-only one cannot.
            let needs_space = !matches!(operation, Operation::RemoveFile(_) | Operation::RemoveDirectory(_));
            number += usize::from(needs_space);
            if number < first || (!needs_space && error == 28) {
                return Ok(());
            }
            *own.lock().unwrap() = true;
            Err(io::Error::from_raw_os_error(error))
        })));
        let code = command(words, &out);
        disk::watch(None);
        if !*hit.lock().unwrap() {
            assert_eq!(code, 0);
            break;
        }
        assert!([2, 3].contains(&code), "{name}, operation {first}: {code}");
        let verified = verify(&out).ok();
        let wrong = wrong(&out, verified.as_ref());
        assert!(wrong.is_empty(), "{name}, operation {first}: {wrong:#?}");
        assert!(has_page_or_is_reported(&out, verified.as_ref()), "{name}, operation {first}: intact without a page");
        assert_eq!(command(words, &out), 0, "{name}, operation {first}, then with room");
        assert!(verify(&out).unwrap().is_intact(), "{name}, operation {first}: {:#?}", verify(&out).unwrap().findings);
        fs::remove_dir_all(&out).unwrap();
        failed += 1;
    }
    println!("{name}: failed at {failed} operations");
    assert!(failed > 3);
}

/// On a disk that fills up after the rows are written, `rerun` and `verify` report missing figures, and `report` draws them.
#[test]
fn missing_figures_are_reported() {
    let _alone = alone();
    for (name, words) in [("undrawn-run", RUN), ("undrawn-compare", COMPARE), ("undrawn-sweep", SWEEP)] {
        let folder = Folder::new(name);
        let out = folder.0.join("out");
        let is_figure = |operation: &Operation| matches!(operation, Operation::Create(path) if path.to_string_lossy().contains("figures"));
        disk::watch(Some(Box::new(move |operation| match is_figure(operation) {
            true => Err(io::Error::from_raw_os_error(28)),
            false => Ok(()),
        })));
        let failed = command(words, &out);
        disk::watch(None);
        assert_eq!(failed, 2, "{name}");
        let alone = |command: &str| {
            let words = ["anabranch", "--quiet", command].into_iter().map(OsString::from);
            anabranch::command(words.chain([out.clone().into()]), anabranch::BACKENDS)
        };
        let findings = verify(&out).unwrap().findings;
        assert!(
            findings.iter().any(|of| of.fault == FindingKind::Unfinished && of.path == out.join("report.html")),
            "{name}: {findings:?}"
        );
        assert_eq!((alone("verify"), alone("rerun")), (1, 1), "{name}");
        assert_eq!(alone("report"), 0, "{name}");
        assert_eq!((alone("verify"), alone("rerun")), (0, 0), "{name}: {:?}", verify(&out).unwrap().findings);
    }
}

#[test]
fn full_disk_leaves_no_partial_file() {
    let _alone = alone();
    for (name, words) in [("full-run", RUN), ("full-compare", COMPARE), ("full-sweep", SWEEP)] {
        fill_disk(name, words, 28, 23);
    }
}

#[test]
#[ignore = "slow: minutes; every operation, ENOSPC and EROFS"]
fn full_or_read_only_disk_leaves_no_partial_file() {
    let _alone = alone();
    for (name, words) in [("full-run", RUN), ("full-compare", COMPARE), ("full-sweep", SWEEP)] {
        fill_disk(name, words, 28, 1);
        fill_disk(name, words, 30, 1);
    }
}

/// A hundred processes killed at different times: results are complete or absent, and the same command completes them.
#[test]
#[ignore = "slow: minutes"]
fn killed_processes_leave_complete_results_or_none() {
    let _alone = alone();
    let (mut killed, mut round) = (0, 0u64);
    while killed < 100 {
        let words = [RUN, COMPARE, SWEEP][round as usize % 3];
        let folder = Folder::new("killed");
        let out = folder.0.join("out");
        // Spread over the first 0.4 s; a command takes half of it.
        for delay in [7 * (round % 57), 3 * (round % 91)] {
            let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_anabranch"));
            let process = process.args(["--quiet"]).args(words).arg("--out").arg(&out);
            let mut process = process.stdout(std::process::Stdio::null()).spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(delay));
            process.kill().unwrap();
            killed += usize::from(process.wait().unwrap().code().is_none());
            let wrong = wrong(&out, verify(&out).ok().as_ref());
            assert!(wrong.is_empty(), "{words:?} after {delay} ms: {wrong:#?}");
        }
        assert_eq!(command(words, &out), 0, "{words:?}, round {round}");
        let verified = verify(&out).unwrap();
        assert!(verified.is_intact(), "{words:?}, round {round}: {:#?}", verified.findings);
        round += 1;
    }
    println!("{killed} processes killed in {round} rounds");
}
