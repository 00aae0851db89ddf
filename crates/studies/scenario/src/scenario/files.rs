//! The files that a scenario names, relative to its folder.

use super::{Workload, memory::Budget};
use anabranch_random::{mix, name_key};
use anabranch_units::Bytes;
use anabranch_workload::{Placement, SIZE_DISTRIBUTIONS, WorkloadParameters};
use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Bytes of the largest file that a run reads; larger ones are not hashed.
    max_file: u64,
    /// Texts that represent files in a hash, by path; each file is read once for all the runs of a study.
    contents: Option<Arc<Mutex<BTreeMap<String, String>>>>,
}

impl Folder {
    pub(crate) fn new(folder: &Path, max_file: u64) -> Self {
        Folder { path: folder.to_path_buf(), max_file, contents: None }
    }

    /// Caches the texts that represent files in a hash from now on.
    pub(crate) fn remember(&mut self) {
        self.contents.get_or_insert_default();
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn read(&self, path: &str, budget: &Budget) -> std::io::Result<String> {
        String::from_utf8(self.read_bytes(path, budget)?).map_err(|_| std::io::ErrorKind::InvalidData.into())
    }

    /// Reads the content of a file, text or not, if the memory budget allows it.
    pub(crate) fn read_bytes(&self, path: &str, budget: &Budget) -> std::io::Result<Vec<u8>> {
        let path = self.path.join(path);
        let (_, size) = anabranch_input::open(&path)?;
        budget.check_file(size).map_err(std::io::Error::other)?;
        anabranch_input::read(&path, size)
    }

    /// Returns the absolute path, so that a printed scenario can be read anywhere.
    pub(crate) fn absolute(&self, path: &str) -> String {
        if path.is_empty() {
            return String::new();
        }
        let joined = self.path.join(path);
        std::path::absolute(&joined).unwrap_or(joined).to_string_lossy().into_owned()
    }

    /// Returns the text that represents the file in a hash: by its content, regardless of its path.
    pub(crate) fn content(&self, path: &str) -> String {
        let Some(contents) = &self.contents else { return self.read_content(path) };
        let mut contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
        contents.entry(path.to_string()).or_insert_with(|| self.read_content(path)).clone()
    }

    fn read_content(&self, path: &str) -> String {
        match digest(&self.path.join(path), self.max_file) {
            Ok((bytes, hash)) => {
                let ending = Path::new(path).extension().unwrap_or_default().to_string_lossy();
                format!("a {ending} file of {bytes} bytes, {hash:016x}")
            }
            Err(_) => format!("unreadable {}", self.absolute(path)),
        }
    }
}

/// Returns size and hash of a file's content without holding it in memory.
fn digest(path: &Path, max: u64) -> std::io::Result<(u64, u64)> {
    let (file, size) = anabranch_input::open(path)?;
    if size > max {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    let mut file = file.take(size);
    let (mut buffer, mut read, mut hash) = (vec![0; 1 << 16], 0, name_key("file"));
    loop {
        let bytes = file.read(&mut buffer)?;
        if bytes == 0 {
            return Ok((read, hash));
        }
        read += bytes as u64;
        hash = buffer[..bytes].iter().fold(hash, |state, byte| mix(state ^ u64::from(*byte)));
    }
}

pub(crate) fn with_files(workload: &Workload, files: impl Fn(&str) -> String) -> Workload {
    let mut workload = workload.clone();
    match &mut workload.kind {
        WorkloadParameters::File(file) => {
            file.path = files(&file.path);
            placed(&mut file.placement, files);
        }
        WorkloadParameters::TrainingRounds(job) => {
            if is_path(&job.sizes) {
                job.sizes = files(&job.sizes);
            }
            placed(&mut job.placement, files);
        }
        WorkloadParameters::Poisson(poisson) if is_path(&poisson.sizes) => poisson.sizes = files(&poisson.sizes),
        WorkloadParameters::Collective(job) => placed(&mut job.placement, files),
        WorkloadParameters::AllToAll(job) => placed(&mut job.placement, files),
        WorkloadParameters::TrainingStep(job) => placed(&mut job.placement, files),
        _ => {}
    }
    workload
}

fn placed(placement: &mut Placement, files: impl Fn(&str) -> String) {
    if let Placement::File(path) = placement {
        *path = files(path);
    }
}

pub(crate) fn named(workloads: &[Workload]) -> Vec<String> {
    let found = std::cell::RefCell::new(Vec::new());
    for workload in workloads {
        with_files(workload, |path| {
            found.borrow_mut().push(path.to_string());
            path.to_string()
        });
    }
    found.into_inner()
}

fn is_path(sizes: &str) -> bool {
    !SIZE_DISTRIBUTIONS.iter().any(|about| about.name == sizes) && sizes.parse::<Bytes>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_settings::Raw;
    use anabranch_workload::CommonParameters;

    #[test]
    fn every_file_of_a_job_is_named() {
        for (kind, keys) in [
            ("training-rounds", &[("sizes", "sizes.txt"), ("placement", "ranks.txt")][..]),
            ("file", &[("path", "trace.goal"), ("placement", "ranks.txt")]),
            ("collective", &[("placement", "ranks.txt")]),
            ("training-step", &[("placement", "ranks.txt")]),
        ] {
            let mut kind = WorkloadParameters::named(kind).unwrap();
            for (key, path) in keys {
                kind.parameters_mut().set(key, &Raw::Text((*path).into())).unwrap();
            }
            let workload = Workload { kind, common: CommonParameters::default(), name: "job".into() };
            let paths: Vec<&str> = keys.iter().map(|(_, path)| *path).collect();
            assert_eq!(named(&[workload]), paths);
        }
        let kind = WorkloadParameters::named("training-rounds").unwrap();
        let sized = Workload { kind, common: CommonParameters::default(), name: "job".into() };
        assert_eq!(named(&[sized]), Vec::<String>::new(), "100MB is no file");
    }
}
