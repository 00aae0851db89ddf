//! Verification of results: files against the digests in the manifest beside them.

use crate::{
    ATTEMPT, Content, FileEntry, InputEntry, MANIFEST, Manifest, PAGE, PLAN, ReportError, ResultKind, SUMMARY, is_key,
    manifest::is_table, named_run, runs_of, store_directory,
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Kind of deviation of a file from the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    Differs,
    /// It does not exist.
    Missing,
    /// No manifest lists it.
    Unlisted,
    /// The command ended while it was being written.
    Unfinished,
}

/// A file that deviates from the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub path: PathBuf,
    pub fault: FindingKind,
    /// Description of the deviation.
    pub found: String,
}

impl Finding {
    fn new(path: PathBuf, fault: FindingKind, found: impl Into<String>) -> Self {
        Finding { path, fault, found: found.into() }
    }
}

const REPAIR: &str = "`anabranch verify` lists all such files; restore them, or repeat the command that made the results: it repeats damaged runs and moves files that no manifest lists to `earlier-runs`";

const NOT_DRAWN: &str =
    "figures and page are missing, because a command ended before it drew them; run `anabranch report` to draw them";

/// Returns size and digest of a file, which is not read again while it does not change.
pub fn content_of(path: &Path) -> io::Result<Content> {
    use std::os::unix::fs::MetadataExt;
    type Known = BTreeMap<(u64, u64), ((u64, i64, i64), Content)>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let metadata = fs::metadata(path)?;
    let (file, state) = ((metadata.dev(), metadata.ino()), (metadata.len(), metadata.ctime(), metadata.ctime_nsec()));
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, content)) = known().get(&file).filter(|(then, _)| *then == state) {
        return Ok(content.clone());
    }
    let content = Content::of_file(path)?;
    known().insert(file, (state, content.clone()));
    Ok(content)
}

fn compare(dir: &Path, file: &FileEntry) -> Result<Option<Finding>, ReportError> {
    let path = dir.join(&file.name);
    let there = match fs::symlink_metadata(&path) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(ReportError::file(&path, error)),
    };
    if file.open {
        return Ok(None);
    }
    let Some(content) = file.content() else {
        let found = if file.name == PAGE { NOT_DRAWN } else { "a command ended while it wrote this file" };
        return Ok(Some(Finding::new(path, FindingKind::Unfinished, found)));
    };
    let Some(there) = there else {
        return Ok(Some(Finding::new(path, FindingKind::Missing, "the manifest lists this file")));
    };
    if !there.is_file() {
        let found = anabranch_input::open(&path).err().map_or("it is a link".into(), |error| error.to_string());
        return Ok(Some(Finding::new(path, FindingKind::Differs, found)));
    }
    if there.len() != content.bytes {
        let found = format!("it has {} bytes; the manifest has {}", there.len(), content.bytes);
        return Ok(Some(Finding::new(path, FindingKind::Differs, found)));
    }
    let now = content_of(&path).map_err(|error| ReportError::file(&path, error))?;
    let found = "its content differs from the digest in the manifest";
    Ok((now != content).then(|| Finding::new(path, FindingKind::Differs, found)))
}

/// Checks the files `is_wanted` in `dir` against the manifest and returns all deviations, or a finding if there is none.
pub fn check_files(dir: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Finding>, ReportError> {
    let Some(manifest) = Manifest::read(dir)? else {
        let found = "the manifest is not there";
        return Ok(vec![Finding::new(dir.join(MANIFEST), FindingKind::Missing, found)]);
    };
    let mut findings = vec![];
    for file in manifest.files.iter().filter(|file| is_wanted(&file.name)) {
        findings.extend(compare(dir, file)?);
    }
    // Rows that no manifest lists do not belong to this run.
    for name in fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name()) {
        let name = name.to_string_lossy();
        if is_data(&name) && is_wanted(&name) && manifest.file(&name).is_none() {
            findings.push(Finding::new(dir.join(&*name), FindingKind::Unlisted, "no manifest lists this file"));
        }
    }
    Ok(findings)
}

/// Returns `true` if a file of a run contains its results, rather than figures or pages drawn from them.
pub fn is_data(name: &str) -> bool {
    is_table(name) || [ATTEMPT, SUMMARY].contains(&name)
}

/// Returns the damage of the run of a store in `dir`; `None` if the run is intact or does not exist.
pub fn damage(dir: &Path) -> Option<String> {
    if fs::symlink_metadata(dir).is_err() {
        return None;
    }
    let finding = match check_files(dir, is_data) {
        Ok(findings) => findings.into_iter().next(),
        Err(error) => return Some(error.to_string()),
    };
    let finding = finding.or_else(|| of_other_run(dir).ok().flatten());
    finding.map(|finding| format!("{}: {}", finding.path.display(), finding.found))
}

fn of_other_run(dir: &Path) -> Result<Option<Finding>, ReportError> {
    let is_other = Manifest::read(dir)?.is_some_and(|manifest| !manifest.is_of_run(dir));
    let found = "the directory name is not the hash of this run";
    Ok(is_other.then(|| Finding::new(dir.to_path_buf(), FindingKind::Differs, found)))
}

/// Returns `true` if the results of the run in `dir` are unchanged or do not exist.
pub fn is_intact(dir: &Path) -> bool {
    damage(dir).is_none()
}

/// Checks that the results in `dir` (of a run, a comparison or a sweep) are unchanged before they are read.
/// Errors: [`ReportError`] that names the first changed file and the remedy.
pub fn check_results(dir: &Path) -> Result<(), ReportError> {
    if let Some(several) = Manifest::read(dir)?.filter(|manifest| manifest.kind() == ResultKind::Agreement) {
        return sides_of(&several).iter().try_for_each(|side| check_results(&dir.join(side)));
    }
    let mut findings = vec![];
    for run in runs_in(dir)? {
        findings.extend(check_files(&run, is_data)?);
        findings.extend(of_other_run(&run)?);
        if let Some(manifest) = Manifest::read(dir)? {
            findings.extend(of_other_rows(dir, &run, &manifest)?);
        }
    }
    if dir.join(PLAN).exists() {
        findings.extend(check_files(dir, |name| name == PLAN)?);
    }
    findings.first().map_or(Ok(()), |Finding { path, found, .. }| Err(ReportError::content(path, found, REPAIR)))
}

/// Checks that `runs` are those that the comparison in `dir` was made of.
pub fn check_runs(dir: &Path, runs: &[PathBuf]) -> Result<(), ReportError> {
    let Some(manifest) = Manifest::read(dir)? else { return Ok(()) };
    for run in runs {
        if let Some(Finding { path, found, .. }) = of_other_rows(dir, run, &manifest)? {
            return Err(ReportError::content(&path, found, REPAIR));
        }
    }
    Ok(())
}

fn runs_in(dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let mut paths: Vec<PathBuf> = runs_of(dir)?.into_iter().map(|run| run.path).filter(|run| run.is_dir()).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Returns `true` for a name of a run, and for a run of the store above the directory of a backend.
fn is_link_to_run(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let above = || fs::read_link(path).is_ok_and(|to| to == Path::new("../../runs").join(&*name));
    named_run(path).is_some() || is_key(&name) && above()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// Returns sorted entries; empty if the directory does not exist.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let read = match fs::read_dir(dir) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(error) => return Err(ReportError::file(dir, error)),
    };
    let mut found = vec![];
    for entry in read {
        found.push(entry.map_err(|error| ReportError::file(dir, error))?.path());
    }
    found.sort();
    Ok(found)
}

fn of_other_rows(dir: &Path, run: &Path, manifest: &Manifest) -> Result<Option<Finding>, ReportError> {
    let name = run.strip_prefix(dir.join("runs")).unwrap_or(run).to_string_lossy().replace('\\', "/");
    let Some(rows) = manifest.runs.get(&name) else { return Ok(None) };
    let Some(own) = Manifest::read(run)? else {
        return Ok(Some(Finding::new(run.join(MANIFEST), FindingKind::Missing, "the manifest is not there")));
    };
    let own = own.rows_digest();
    let found = "its rows are not those that the tables above it were made of";
    Ok((own.as_ref() != Some(rows)).then(|| Finding::new(run.join(MANIFEST), FindingKind::Differs, found)))
}

/// Names of the backends of an agreement, each with a directory of its own.
fn sides_of(manifest: &Manifest) -> BTreeSet<&str> {
    manifest.runs.keys().filter_map(|name| name.split_once('/')).map(|(side, _)| side).collect()
}

/// Names and digests of the rows of the runs of the backend `name` in an agreement.
fn rows_of_side(name: &str, manifest: &Manifest) -> BTreeMap<String, String> {
    let own =
        |(run, rows): (&String, &String)| Some((run.strip_prefix(name)?.strip_prefix('/')?.to_string(), rows.clone()));
    manifest.runs.iter().filter_map(own).collect()
}

/// Result of the verification of all files of results.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verified {
    /// Number of directories with a manifest.
    pub manifests: usize,
    /// Number of files whose content was compared.
    pub files: usize,
    /// Number of inputs whose content was compared.
    pub inputs: usize,
    /// Inputs that no longer exist and cannot be checked.
    pub missing_inputs: Vec<String>,
    /// Deviations from the manifests.
    pub findings: Vec<Finding>,
}

/// Compares every file of the results in `dir`, those of the runs below it and their inputs with the manifests.
pub fn verify(dir: &Path) -> Result<Verified, ReportError> {
    let mut verified = Verified::default();
    let mut inputs = BTreeMap::new();
    if dir.join(MANIFEST).exists() {
        verified.directory(dir, &mut inputs)?;
    } else {
        verified.below(dir, &mut inputs, None)?;
        if verified.manifests == 0 {
            return Err(ReportError::NoResults { path: dir.to_path_buf() });
        }
        let found = "there is no manifest of what was written";
        verified.findings.push(Finding::new(dir.join(MANIFEST), FindingKind::Missing, found));
    }
    for (path, entry) in inputs {
        match content_of(Path::new(&path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => verified.missing_inputs.push(path),
            Err(error) => return Err(ReportError::file(Path::new(&path), error)),
            Ok(now) => {
                verified.inputs += 1;
                if (now.bytes, &now.blake3) != (entry.bytes, &entry.blake3) {
                    let found = "this input has changed since it was read";
                    verified.findings.push(Finding::new(path.into(), FindingKind::Differs, found));
                }
            }
        }
    }
    Ok(verified)
}

impl Verified {
    /// Returns `true` if there is no deviation.
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty()
    }

    fn directory(&mut self, dir: &Path, inputs: &mut BTreeMap<String, InputEntry>) -> Result<(), ReportError> {
        self.manifests += 1;
        let manifest = match Manifest::read(dir) {
            Ok(Some(manifest)) => manifest,
            Ok(None) => return Ok(()),
            Err(ReportError::Content { path, found, .. }) => {
                self.findings.push(Finding::new(path, FindingKind::Differs, found));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for file in &manifest.files {
            self.files += usize::from(file.content().is_some());
            self.findings.extend(compare(dir, file)?);
        }
        inputs.extend(manifest.inputs.iter().map(|input| (input.path.clone(), input.clone())));
        let is_open = |name: &str| manifest.file(name).is_some_and(|file| file.open);
        self.unlisted(dir, dir, &manifest)?;
        for file in manifest.files.iter().filter(|file| is_open(&file.name) && !is_hidden(Path::new(&file.name))) {
            // Failures and the log of starts have no digests.
            let path = dir.join(&file.name);
            if path.join(MANIFEST).exists() {
                self.directory(&path, inputs)?;
            } else if sides_of(&manifest).contains(file.name.as_str()) {
                self.findings.push(Finding::new(path, FindingKind::Missing, "the tables were made of these results"));
            // Nor have runs that were moved away.
            } else if !["failed", "earlier-runs"].contains(&file.name.as_str()) && path.is_dir() {
                self.below(&path, inputs, Some((dir, &manifest)))?;
            }
        }
        if manifest.kind() == ResultKind::Agreement {
            return self.sides(dir, &manifest);
        }
        self.names(dir)?;
        for (name, _) in manifest.runs.iter().filter(|(name, _)| !dir.join("runs").join(name).is_dir()) {
            let path = dir.join("runs").join(name);
            self.findings.push(Finding::new(path, FindingKind::Missing, "the tables were made of this run too"));
        }
        Ok(())
    }

    /// Names of runs must lead to the runs that the plan names.
    fn names(&mut self, dir: &Path) -> Result<(), ReportError> {
        let runs = match runs_of(dir) {
            // A damaged plan is among the findings.
            Err(ReportError::Content { .. }) => vec![],
            runs => runs?,
        };
        for run in runs {
            let name = store_directory(dir, &run.name);
            let same = || fs::canonicalize(&name).ok() == fs::canonicalize(&run.path).ok();
            if fs::symlink_metadata(&name).is_ok_and(|there| there.is_symlink()) && !same() {
                self.findings.push(Finding::new(name, FindingKind::Differs, "this name leads to another run"));
            }
        }
        Ok(())
    }

    fn sides(&mut self, dir: &Path, manifest: &Manifest) -> Result<(), ReportError> {
        for side in sides_of(manifest).into_iter().filter(|side| dir.join(side).join(MANIFEST).exists()) {
            let path = dir.join(side);
            let now = Manifest::read(&path).ok().flatten().map(|side| side.runs).unwrap_or_default();
            let then = rows_of_side(side, manifest);
            if now != then {
                let found = "its runs are not those that the tables above it were made of";
                self.findings.push(Finding::new(path.join(MANIFEST), FindingKind::Differs, found));
            }
        }
        Ok(())
    }

    /// `dir` has no manifest of its own.
    fn below(
        &mut self,
        dir: &Path,
        inputs: &mut BTreeMap<String, InputEntry>,
        above: Option<(&Path, &Manifest)>,
    ) -> Result<(), ReportError> {
        for path in entries(dir)? {
            if fs::symlink_metadata(&path).is_ok_and(|there| !there.is_dir()) {
                if above.is_some() && !is_hidden(&path) && !(is_link_to_run(&path) && path.is_dir()) {
                    self.findings.push(Finding::new(path, FindingKind::Unlisted, "no manifest lists this file"));
                }
                continue;
            }
            if !path.join(MANIFEST).exists() {
                self.below(&path, inputs, above)?;
                continue;
            }
            self.directory(&path, inputs)?;
            if let Some((root, manifest)) = above
                && path.starts_with(root.join("runs"))
                && let Ok(other) = of_other_rows(root, &path, manifest)
            {
                self.findings.extend(other);
            }
        }
        Ok(())
    }

    fn unlisted(&mut self, root: &Path, dir: &Path, manifest: &Manifest) -> Result<(), ReportError> {
        for path in entries(dir)? {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            if name == MANIFEST || name == ".lock" || manifest.file(&name).is_some() {
                continue;
            }
            if fs::symlink_metadata(&path).is_ok_and(|there| there.is_dir()) {
                self.unlisted(root, &path, manifest)?;
            } else {
                self.findings.push(Finding::new(path, FindingKind::Unlisted, "no manifest lists this file"));
            }
        }
        Ok(())
    }
}
