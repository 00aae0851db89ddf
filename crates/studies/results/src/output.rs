//! Rules for output paths.
//!
//! A file belongs to the results if the manifest beside it lists it. No other file is replaced
//! or removed, no input is written to, and no link inside an output directory is followed.

use crate::{
    MANIFEST, Manifest, NewFile, PAGE, ReportError, SUMMARY, TABLES, VIEW, disk, manifest::is_inside, names::is_figure,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Files that are read and must not be written.
#[derive(Clone, Debug, Default)]
pub struct Inputs(Vec<(PathBuf, Identity)>);

/// Device and inode of a file, which identify it under any name.
type Identity = (u64, u64);

fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

impl Inputs {
    /// Returns those of `paths` that exist.
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Inputs(paths.into_iter().filter_map(|path| identity(&path).map(|identity| (path, identity))).collect())
    }

    /// Joins several sets of inputs.
    pub fn joined(parts: impl IntoIterator<Item = Inputs>) -> Self {
        Inputs(parts.into_iter().flat_map(|part| part.0).collect())
    }

    /// Returns the input that is the same file as `path`, by a symbolic or a hard link too.
    pub fn find(&self, path: &Path) -> Option<&Path> {
        let found = identity(path)?;
        self.0.iter().find(|(_, identity)| *identity == found).map(|(path, _)| path.as_path())
    }
}

/// Returns the files of the results in `dir` that must not be written to: those that its manifest lists, or all without one.
pub fn files_of(dir: &Path) -> Inputs {
    let manifest = Manifest::read(dir).ok().flatten();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == MANIFEST || manifest.as_ref().is_none_or(|manifest| manifest.file(&name).is_some())
    };
    let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    Inputs::of(names.filter(|path| path.is_file()).filter(is_ours))
}

/// A directory that results are written into, with the manifest that lists its files.
#[derive(Clone, Debug)]
pub struct OutputDir {
    path: PathBuf,
    manifest: Option<Manifest>,
    inputs: Inputs,
    also: Vec<&'static str>,
}

impl OutputDir {
    /// Opens the directory, which need not exist.
    pub fn open(path: &Path) -> Result<Self, ReportError> {
        OutputDir::keeping(path, Inputs::default())
    }

    /// Opens the directory, whose output files must not be any of `inputs`.
    pub fn keeping(path: &Path, inputs: Inputs) -> Result<Self, ReportError> {
        Ok(OutputDir { path: path.to_path_buf(), manifest: Manifest::read(path)?, inputs, also: vec![] })
    }

    /// Opens a directory and applies `check`, again whenever another process has changed the manifest in the meantime.
    pub fn settled<T, E>(
        open: impl Fn() -> Result<OutputDir, E>,
        check: impl Fn(&OutputDir) -> Result<T, E>,
    ) -> Result<(OutputDir, T), E> {
        loop {
            let output = open()?;
            let checked = check(&output);
            if open()?.manifest == output.manifest {
                return checked.map(|checked| (output, checked));
            }
        }
    }

    /// Adds `names`, from another source than the manifest, to the files that belong to the results.
    #[must_use]
    pub fn with(mut self, names: &[&'static str]) -> Self {
        self.also.extend(names);
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    fn owns(&self, name: &str) -> bool {
        let listed = |manifest: &Manifest| name == MANIFEST || manifest.file(name).is_some();
        self.also.contains(&name) || self.manifest.as_ref().is_some_and(listed)
    }

    /// Checks that files or directories of these names may be created, replaced or removed.
    pub fn admit<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<(), ReportError> {
        names.into_iter().try_for_each(|name| self.admit_one(name))
    }

    fn admit_one(&self, name: &str) -> Result<(), ReportError> {
        let path = self.path.join(name);
        let refused = |path: &Path, found: &str, remedy: &str| Err(ReportError::content(path, found, remedy));
        if !is_inside(name) {
            return refused(&path, "this name is outside the directory", "give another one");
        }
        if let Some(folder) = Path::new(name).parent() {
            self.admit_folder(folder)?;
        }
        let there = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(()),
            Err(error) => return Err(ReportError::file(&path, error)),
            Ok(there) => there,
        };
        if let Some(input) = self.inputs.find(&path) {
            let found = match input == path {
                true => "this file is read by the scenario and cannot be its output too".to_string(),
                false => format!("this is {}, which the scenario reads: it cannot be its output too", input.display()),
            };
            return refused(&path, &found, ELSEWHERE);
        }
        if !self.owns(name) {
            let what = if there.is_dir() { "directory" } else { "file" };
            let found = format!("this {what} does not belong to these results: no manifest lists it");
            return refused(&path, &found, ELSEWHERE);
        }
        match there.is_dir() && !self.is_open(name) {
            true => refused(&path, "this is a directory, expected a file", ELSEWHERE),
            false if there.is_symlink() && fs::metadata(&path).is_ok_and(|there| there.is_dir()) => {
                refused(&path, LINK, ELSEWHERE)
            }
            false => Ok(()),
        }
    }

    /// Checks that the directory `name` below this one and those above it, if they exist, are real directories.
    pub fn admit_folder(&self, name: &Path) -> Result<(), ReportError> {
        for above in name.ancestors().filter(|above| !above.as_os_str().is_empty()) {
            let path = self.path.join(above);
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(ReportError::file(&path, error)),
                Ok(there) if there.is_dir() => {}
                Ok(_) => return Err(ReportError::content(&path, LINK, ELSEWHERE)),
            }
        }
        Ok(())
    }

    /// Returns `true` if `file` is one that results in this directory have, or may have.
    pub fn is_result(&self, file: &Path) -> bool {
        let (Some(own), Some(folder)) = (identity(&self.path), identity(folder_of(file))) else { return false };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let figures = identity(&self.path.join("figures")).is_some_and(|figures| figures == folder) && is_figure(&name);
        figures || (own == folder && result_names(&[SUMMARY, ".lock"]).iter().any(|result| *result == name))
    }

    fn is_open(&self, name: &str) -> bool {
        let open = |manifest: &Manifest| manifest.file(name).is_some_and(|file| file.open || file.blake3.is_none());
        self.also.contains(&name) || self.manifest.as_ref().is_some_and(open)
    }

    /// Checks that a run, a comparison or a sweep may write the files `own`, tables, pages and figures here.
    pub fn admit_results(&self, own: &[&str]) -> Result<(), ReportError> {
        let mut names = result_names(own);
        let figures = self.path.join("figures");
        let link = fs::symlink_metadata(&figures).is_ok_and(|there| !there.is_dir());
        if link {
            names.push("figures/report".into());
        } else if let Ok(entries) = fs::read_dir(&figures) {
            let there = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.extend(there.filter(|name| is_figure(name)).map(|name| format!("figures/{name}")));
        }
        self.admit(names.iter().map(String::as_str))
    }

    /// Returns the existing files that the manifest lists, which a run with other results would remove.
    pub fn listed(&self) -> Vec<String> {
        let files = self.manifest.iter().flat_map(|manifest| &manifest.files);
        let there = files.filter(|file| fs::symlink_metadata(self.path.join(&file.name)).is_ok());
        there.map(|file| file.name.clone()).collect()
    }
}

/// Names of tables, manifest, pages, and `own`.
fn result_names(own: &[&str]) -> Vec<String> {
    let tables = TABLES.iter().flat_map(|table| ["csv", "parquet"].map(|kind| format!("{}.{kind}", table.name)));
    tables.chain([MANIFEST, PAGE, VIEW].iter().chain(own).map(ToString::to_string)).collect()
}

const LINK: &str = "this is a link or a file, expected a directory for results";
const ELSEWHERE: &str = "give another directory with --out DIR, or move it away; nothing was written";

/// A single file that the user named.
#[derive(Clone, Debug)]
pub struct OutputFile {
    path: PathBuf,
    replace: bool,
}

impl OutputFile {
    /// Checks that `path` does not exist, or is a plain file and `replace` is set. An input is never written, nor a
    /// file that the results in its directory list.
    pub fn new(path: &Path, replace: bool, inputs: &Inputs) -> Result<Self, ReportError> {
        let refused = |found: String, remedy: &str| Err(ReportError::content(path, found, remedy));
        if let Some(input) = inputs.find(path) {
            return refused(format!("this is {}, which is read", input.display()), "give another file");
        }
        if path.file_name().is_none() {
            return refused("this is not a file name".into(), "give another one");
        }
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(ReportError::file(path, error)),
            Ok(there) if there.is_dir() => return refused("this is a directory".into(), "give a file"),
            Ok(there) if !there.is_file() => {
                return refused("this is a link or a device, expected a regular file".into(), "give another file");
            }
            Ok(_) if !replace => {
                return refused("this file exists".into(), "give another one, or --replace to overwrite it");
            }
            Ok(_) => {}
        }
        let folder = folder_of(path);
        if !folder.is_dir() {
            return refused(format!("there is no directory {}", folder.display()), "make it, or give another file");
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A damaged manifest lists no files, nor does one that is not written yet.
        let listed = Manifest::read(folder).ok().flatten().is_some_and(|manifest| manifest.file(&name).is_some());
        if listed || name == MANIFEST {
            return refused("this file belongs to the results in its directory".into(), "give another file");
        }
        Ok(OutputFile { path: path.to_path_buf(), replace })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a hidden file beside the target, which [`PendingFile::publish`] renames.
    /// Fails if it cannot be written; no file is left in that case.
    pub fn write<T>(&self, fill: impl FnOnce(&mut NewFile) -> io::Result<T>) -> Result<(PendingFile, T), ReportError> {
        let failed = |error: io::Error| ReportError::file(&self.path, error);
        let (hidden, mut file) = self.hidden().map_err(failed)?;
        let pending = PendingFile { hidden, to: self.clone(), published: false };
        let value = fill(&mut file).and_then(|value| file.sync().map(|()| value)).map_err(failed)?;
        Ok((pending, value))
    }

    /// Opens the file for a program that writes it while others may read it.
    pub fn open(&self) -> Result<fs::File, ReportError> {
        let failed = |error| ReportError::file(&self.path, error);
        if self.replace {
            disk::remove_file(&self.path).map_err(failed)?;
        }
        fs::File::options().write(true).create_new(true).open(&self.path).map_err(failed)
    }

    /// Writes the whole file and renames it to its target.
    pub fn write_all(&self, bytes: &[u8]) -> Result<(), ReportError> {
        self.write(|file| io::Write::write_all(file, bytes))?.0.publish()
    }

    fn hidden(&self) -> io::Result<(PathBuf, NewFile)> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let mut number = 0;
        loop {
            let hidden = self.path.with_file_name(format!(".{name}.partial-{}-{number}", std::process::id()));
            match NewFile::create(&hidden) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                made => return made.map(|file| (hidden, file)),
            }
        }
    }
}

/// A written file without its final name. It is removed if it is dropped without [`PendingFile::publish`].
#[derive(Debug)]
pub struct PendingFile {
    hidden: PathBuf,
    to: OutputFile,
    published: bool,
}

impl PendingFile {
    /// Makes the file readable and executable for all users, as a shared object requires.
    pub fn make_executable(&self) -> io::Result<()> {
        fs::set_permissions(&self.hidden, std::os::unix::fs::PermissionsExt::from_mode(0o755))
    }

    /// Renames the file to its target.
    /// Fails if a file was created at the target in the meantime, or it cannot be renamed.
    pub fn publish(mut self) -> Result<(), ReportError> {
        let OutputFile { path, replace } = self.to.clone();
        OutputFile::new(&path, replace, &Inputs::default())?;
        let named = disk::rename(&self.hidden, &path).and_then(|()| {
            self.published = true;
            disk::sync(folder_of(&path))
        });
        named.map_err(|error| ReportError::file(&path, error))
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if !self.published {
            let _ = disk::remove_file(&self.hidden);
        }
    }
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
