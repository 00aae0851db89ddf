//! Publication of a set of files as a whole: they are written into a hidden directory, made durable, and renamed when complete.
//!
//! Before the first file is renamed, a manifest lists all files that will appear and disappear, without digests. After
//! the last rename the final manifest follows, and last the summary, which marks a run as finished. If the process ends
//! or the power fails at any time, all files are listed, and every file with a digest is complete.

use crate::{Content, FileEntry, MANIFEST, Manifest, NewFile, OutputDir, PAGE, ReportError, SUMMARY, disk};
use fs4::FileExt;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    fs::File,
    io,
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// New files of a directory, not yet visible. They are removed if it is dropped without [`Staging::publish`].
#[derive(Debug)]
pub struct Staging {
    target: OutputDir,
    hidden: PathBuf,
    /// `true` if no other process reads the target yet.
    fresh: bool,
    /// The hidden directory, locked while this process writes.
    _lock: Option<File>,
    files: BTreeMap<String, Content>,
}

/// Prefix of the names of hidden directories; see [`hidden_name`].
const HIDDEN: &str = ".anabranch-";

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Staging {
    /// Creates `target` if it does not exist. Partial files of earlier processes that died are removed.
    pub fn new(target: OutputDir) -> Result<Self, ReportError> {
        let path = target.path().to_path_buf();
        disk::make_directories(&path).map_err(|error| ReportError::file(&path, error))?;
        remove_leftovers(&path);
        let failed = |error: io::Error| ReportError::file(&path, error);
        let hidden = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let hidden = path.join(hidden_name(&format!("{}-{number}", std::process::id())));
            match disk::make_directory(&hidden) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => break made.map(|()| hidden).map_err(failed)?,
            }
        };
        // Without file locks, the next process takes this directory for a leftover; commands lock the directory of results.
        let lock = File::open(&hidden).ok().filter(|directory| FileExt::try_lock(directory).is_ok());
        Ok(Staging { target, hidden, fresh: false, _lock: lock, files: BTreeMap::new() })
    }

    /// `path` must not exist, and no other process reads it before the caller has made it durable and renamed it.
    pub fn fresh(path: &Path) -> Result<Self, ReportError> {
        disk::make_directory(path).map_err(|error| ReportError::file(path, error))?;
        let (target, hidden) = (OutputDir::open(path)?, path.to_path_buf());
        Ok(Staging { target, hidden, fresh: true, _lock: None, files: BTreeMap::new() })
    }

    /// The directory as it was at the start.
    pub fn target(&self) -> &OutputDir {
        &self.target
    }

    pub fn write<E>(&mut self, name: &str, fill: impl FnOnce(&mut NewFile) -> Result<(), E>) -> Result<(), ReportError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let content = write(&self.hidden.join(flat(name)), fill, !self.fresh)
            .map_err(|error| ReportError::file(&self.target.path().join(name), error))?;
        self.files.insert(name.to_string(), content);
        Ok(())
    }

    /// Writes a whole file.
    pub fn write_all(&mut self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), ReportError> {
        self.write(name, |file| file.write_all(bytes.as_ref()))
    }

    /// Gives the file `from`, which has this content, the name `name` too.
    pub fn link(&mut self, name: &str, from: &Path, content: Content) -> Result<(), ReportError> {
        let failed = |error| ReportError::file(&self.target.path().join(name), error);
        disk::share(from, &self.hidden.join(flat(name))).map_err(failed)?;
        self.files.insert(name.to_string(), content);
        Ok(())
    }

    /// Renames all files to their names in the target, with `manifest`, which lists them and all others that are to
    /// stay. Other files of the existing manifest are removed: they belong to other results.
    pub fn publish(self, mut manifest: Manifest) -> Result<(), ReportError> {
        let old = self.target.manifest();
        for (name, content) in &self.files {
            match manifest.files.iter_mut().find(|file| file.name == *name) {
                Some(entry) => *entry = entry.clone().holding(content),
                None => manifest.files.push(FileEntry::new(name, "", vec![]).holding(content)),
            }
        }
        if self.fresh {
            let path = self.hidden.join(MANIFEST);
            let written = write(&path, |file| file.write_all(manifest.to_json().as_bytes()), false);
            return written.map(drop).map_err(|error| ReportError::file(&path, error));
        }
        // The page of an earlier run belongs to other results.
        let is_old_page = |name: &str| name == PAGE && manifest.is_run_to_draw() && !self.files.contains_key(PAGE);
        let names = manifest.files.iter().map(|file| file.name.as_str());
        let listed: BTreeSet<&str> = names.filter(|name| !is_old_page(name)).collect();
        let was = old.iter().flat_map(|manifest| &manifest.files);
        let is_file =
            |name: &str| fs::symlink_metadata(self.target.path().join(name)).is_ok_and(|there| !there.is_dir());
        let stale: Vec<&FileEntry> =
            was.filter(|file| !listed.contains(file.name.as_str()) && !file.open && is_file(&file.name)).collect();
        let removed = stale.iter().map(|file| file.name.as_str());
        self.target.admit(self.files.keys().map(String::as_str).chain(removed).chain([MANIFEST]))?;
        let path = self.target.path();
        let put = || -> io::Result<()> {
            // First write a manifest that lists the files about to appear and disappear.
            let mut before = manifest.clone();
            // These tables are not there yet: a sweep that is repeated makes them.
            before.run_states.clear();
            for file in before.files.iter_mut().filter(|file| self.files.contains_key(&file.name)) {
                (file.bytes, file.blake3) = (None, None);
            }
            let unlisted = stale.iter().filter(|file| manifest.file(&file.name).is_none());
            before.files.extend(unlisted.map(|file| FileEntry::new(&file.name, &file.meaning, vec![])));
            if !before.files.iter().all(|file| file.open || file.blake3.is_some()) {
                self.put_manifest(&before)?;
                disk::sync(path)?;
            }
            if self.files.contains_key(SUMMARY) {
                disk::remove_file(&path.join(SUMMARY))?;
            }
            let mut folders = BTreeSet::new();
            for file in &stale {
                let removed = path.join(&file.name);
                disk::remove_file(&removed)?;
                folders.extend(removed.parent().map(Path::to_path_buf));
            }
            for name in self.files.keys().filter(|name| *name != SUMMARY) {
                let to = path.join(name);
                let folder = to.parent().unwrap_or(path).to_path_buf();
                disk::make_directories(&folder)?;
                folders.insert(folder);
                disk::rename(&self.hidden.join(flat(name)), &to)?;
            }
            folders.insert(path.to_path_buf());
            folders.iter().try_for_each(|folder| disk::sync(folder))?;
            self.put_manifest(&manifest)?;
            if self.files.contains_key(SUMMARY) {
                disk::rename(&self.hidden.join(SUMMARY), &path.join(SUMMARY))?;
            }
            disk::sync(path)
        };
        put().map_err(|error| ReportError::file(path, error))
    }

    fn put_manifest(&self, manifest: &Manifest) -> io::Result<()> {
        let aside = self.hidden.join(MANIFEST);
        let text = manifest.to_json();
        write(&aside, |file| file.write_all(text.as_bytes()), true)?;
        disk::rename(&aside, &self.target.path().join(MANIFEST))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.fresh {
            return;
        }
        let _ = disk::remove_own_tree(&self.hidden);
    }
}

/// The hidden directory has no subdirectories.
fn flat(name: &str) -> String {
    name.replace('/', "!")
}

/// Writes a file that must not exist, and makes it durable if `sync`.
pub fn write<E>(path: &Path, fill: impl FnOnce(&mut NewFile) -> Result<(), E>, sync: bool) -> io::Result<Content>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut file = NewFile::create(path)?;
    fill(&mut file).map_err(io::Error::other)?;
    file.flush()?;
    if sync {
        file.sync()?;
    }
    Ok(file.content())
}

/// The digits identify it as created by this program.
fn hidden_name(number: &str) -> String {
    format!(
        "{HIDDEN}{number}-{}",
        &Content::of(format!("hidden directory of anabranch, {number}").as_bytes()).blake3[..16]
    )
}

/// Removes the partial files of processes that have ended.
fn remove_leftovers(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let number = name.strip_prefix(HIDDEN).and_then(|rest| rest.rsplit_once('-')).map(|(number, _)| number);
        let ours = number.is_some_and(|number| hidden_name(number) == name);
        if ours
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && File::open(&path).is_ok_and(|directory| FileExt::try_lock(&directory).is_ok())
        {
            let _ = disk::remove_own_tree(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(path: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn staging(path: &Path) -> Staging {
        Staging::new(OutputDir::open(path).unwrap()).unwrap()
    }

    fn manifest() -> Manifest {
        Manifest { version: "1".into(), ..Manifest::default() }
    }

    #[test]
    fn unpublished_files_are_invisible() {
        let folder = anabranch_testkit::folder();
        let path = folder.join("out");
        let mut staging = staging(&path);
        staging.write_all("a", "1").unwrap();
        staging.write_all("figures/b", "2").unwrap();
        assert!(listing(&path).iter().all(|name| name.starts_with(HIDDEN)));
        staging.publish(manifest()).unwrap();
        assert_eq!(listing(&path), ["a", "figures", MANIFEST]);
        let manifest = Manifest::read(&path).unwrap().unwrap();
        assert_eq!(manifest.file("a").unwrap().content().unwrap().bytes, 1);
    }

    #[test]
    fn failure_keeps_old_files() {
        let folder = anabranch_testkit::folder();
        let path = folder.join("out");
        let mut first = staging(&path);
        first.write_all("a", "old").unwrap();
        first.publish(manifest()).unwrap();
        let mut second = staging(&path);
        second.write_all("a", "new").unwrap();
        let failed = second.write("b", |_| Err(io::Error::other("disk full")));
        assert!(failed.unwrap_err().to_string().contains("disk full"));
        drop(second);
        assert_eq!(listing(&path), ["a", MANIFEST]);
        assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "old");
    }

    #[test]
    fn stale_files_are_removed_and_foreign_files_kept() {
        let folder = anabranch_testkit::folder();
        let path = folder.join("out");
        let mut first = staging(&path);
        first.write_all("series.csv", "old").unwrap();
        first.write_all("a", "old").unwrap();
        first.publish(manifest()).unwrap();
        fs::write(path.join("trace.csv"), "foreign").unwrap();
        fs::create_dir(path.join(format!("{HIDDEN}mine"))).unwrap();
        let mut second = staging(&path);
        second.write_all("a", "new").unwrap();
        second.publish(manifest()).unwrap();
        assert_eq!(listing(&path), [&format!("{HIDDEN}mine"), "a", MANIFEST, "trace.csv"]);
        assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "new");
        let mut third = staging(&path);
        third.write_all("trace.csv", "new").unwrap();
        let refused = third.publish(manifest()).unwrap_err().to_string();
        assert!(refused.contains("no manifest lists it"), "{refused}");
        assert_eq!(fs::read_to_string(path.join("trace.csv")).unwrap(), "foreign");
    }

    /// Another process writes its first files while this one checks the directory.
    #[test]
    fn files_of_a_process_that_begins_meanwhile_are_no_foreign_ones() {
        let folder = anabranch_testkit::folder();
        let path = folder.join("out");
        let tries = std::cell::Cell::new(0);
        let check = |output: &OutputDir| {
            tries.set(tries.get() + 1);
            if tries.get() == 1 {
                let mut other = staging(&path);
                other.write_all("a", "1").unwrap();
                other.publish(manifest()).unwrap();
            }
            output.admit(["a", MANIFEST])
        };
        let (output, ()) = OutputDir::settled(|| OutputDir::open(&path), check).unwrap();
        assert_eq!((tries.get(), output.manifest().is_some()), (2, true));
    }

    #[test]
    fn leftovers_of_killed_process_are_removed() {
        let folder = anabranch_testkit::folder();
        let path = folder.join("out");
        let mut first = staging(&path);
        first.write_all("a", "old").unwrap();
        first._lock = None;
        let mut other = staging(&path);
        assert!(!first.hidden.exists());
        other.write_all("a", "2").unwrap();
        let third = staging(&path);
        assert!(other.hidden.exists(), "somebody works there");
        drop(third);
    }
}
