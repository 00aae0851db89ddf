//! `manifest.json`: origin of the results, and the meaning of every column of every file beside it.

use crate::{
    Content, FaultSummary, Key, MANIFEST, PAGE, PLAN, ReportError, RunStatus, SUMMARY, Table, is_key,
    json::{REMEDY, from_json, read_text},
    rows::is_default,
    to_json,
};
use anabranch_random::name_key;
use anabranch_statistics::Sequential;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path},
};

/// Properties of a run or comparison that only the caller has.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    /// The scenario with all defaults, as TOML.
    pub scenario_toml: String,
    pub scenario_hash: u64,
    /// Operating system, processor, cores.
    pub machine: String,
    /// Wall time of the whole command so far, in seconds.
    pub wall_seconds: f64,
    /// The command line; empty if there was none.
    pub command: String,
    /// Files that the run or comparison read.
    pub inputs: Vec<InputEntry>,
    /// Readings of papers that the scenario sets.
    pub readings: Vec<String>,
}

/// A file that a run read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputEntry {
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// BLAKE3 digest, 64 hexadecimal digits.
    pub blake3: String,
}

/// Content of `manifest.json`. Fields that a file of another version lacks are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    pub name: String,
    pub version: String,
    pub commit: String,
    /// The scenario with all defaults, as TOML.
    pub scenario: String,
    /// Hash of that scenario, 16 hexadecimal digits.
    pub scenario_hash: String,
    /// Readings of papers that the scenario sets: keys of this level with other values than their defaults.
    #[serde(skip_serializing_if = "is_default")]
    pub readings: Vec<String>,
    /// The load balancers, in the requested order.
    pub schemes: Vec<String>,
    /// The load balancer that the others are compared with; only of a comparison.
    #[serde(skip_serializing_if = "is_default")]
    pub baseline: Option<String>,
    /// The seeds, ascending.
    pub seeds: Vec<u64>,
    /// Plan by which seeds were added until the differences were decided; absent if their number was fixed.
    #[serde(skip_serializing_if = "is_default")]
    pub until_decided: Option<Sequential>,
    /// Threads of the simulation; absent from a sweep and a reproduction, whose runs have their own, as the next two.
    #[serde(skip_serializing_if = "is_default")]
    pub threads: usize,
    /// Operating system, processor, cores.
    #[serde(skip_serializing_if = "is_default")]
    pub machine: String,
    /// Wall time in seconds.
    #[serde(skip_serializing_if = "is_default")]
    pub wall_s: f64,
    #[serde(skip_serializing_if = "is_default")]
    pub command: String,
    /// Backend: `sim`, `testbed`.
    #[serde(skip_serializing_if = "is_default")]
    pub backend: String,
    /// Datapath of real packets; absent if they were simulated.
    #[serde(skip_serializing_if = "is_default")]
    pub datapath: Option<String>,
    /// The longest time for which an endpoint was descheduled, in seconds; absent if the run was simulated.
    #[serde(skip_serializing_if = "is_default")]
    pub longest_pause_s: Option<f64>,
    /// Runs (`scheme/seedN`) whose results reflect the machine rather than the load balancer.
    #[serde(skip_serializing_if = "is_default")]
    pub machine_bound: Vec<String>,
    /// Features that the machine of a run with real packets lacked.
    #[serde(skip_serializing_if = "is_default")]
    pub missing: Vec<String>,
    /// Times at which the faults of a run with real packets took effect.
    #[serde(skip_serializing_if = "is_default")]
    pub faults: Vec<FaultSummary>,
    /// Fingerprint per run (`scheme/seedN`).
    pub fingerprints: BTreeMap<String, String>,
    /// Status per run; absent from a sweep and a reproduction.
    #[serde(skip_serializing_if = "is_default")]
    pub statuses: BTreeMap<String, RunStatus>,
    /// Links of the circular wait of each run that ended as a deadlock.
    #[serde(skip_serializing_if = "is_default")]
    pub deadlocks: BTreeMap<String, Vec<String>>,
    /// Digest over the rows of each run of a comparison or sweep ([`Manifest::rows_digest`]).
    #[serde(skip_serializing_if = "is_default")]
    pub runs: BTreeMap<String, String>,
    /// State of the runs from which a sweep's tables were made; empty elsewhere.
    #[serde(rename = "standing", skip_serializing_if = "is_default")]
    pub run_states: String,
    /// The files that were read.
    #[serde(skip_serializing_if = "is_default")]
    pub inputs: Vec<InputEntry>,
    /// Files of this directory with their content.
    pub files: Vec<FileEntry>,
    /// BLAKE3 digest of this file with an empty seal.
    #[serde(skip_serializing_if = "is_default")]
    pub seal: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path from the directory of the manifest.
    pub name: String,
    pub meaning: String,
    /// Size in bytes.
    #[serde(skip_serializing_if = "is_default", default)]
    pub bytes: Option<u64>,
    /// BLAKE3 digest, 64 hexadecimal digits. A file without one was being written, or is to be removed.
    #[serde(skip_serializing_if = "is_default", default)]
    pub blake3: Option<String>,
    /// `true` for a file that grows, and for a directory whose parts have manifests of their own. Such an entry has no digest.
    #[serde(skip_serializing_if = "is_default", default)]
    pub open: bool,
    /// Columns of a table, or keys of a JSON file.
    #[serde(skip_serializing_if = "is_default", default)]
    pub columns: Vec<ColumnEntry>,
}

/// A column or key and its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnEntry {
    pub name: String,
    /// `integer`, `real`, `text`, `boolean` or `object`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Unit; empty if it has none.
    pub unit: String,
    pub meaning: String,
}

impl ColumnEntry {
    pub fn new(name: &str, kind: &str, unit: &str, meaning: &str) -> Self {
        let [name, kind, unit, meaning] = [name, kind, unit, meaning].map(str::to_string);
        ColumnEntry { name, kind, unit, meaning }
    }
}

impl From<&Key> for ColumnEntry {
    fn from(&(name, kind, unit, meaning): &Key) -> Self {
        ColumnEntry::new(name, kind, unit, meaning)
    }
}

impl FileEntry {
    /// Describes a file with these columns.
    pub fn new(name: impl Into<String>, meaning: &str, columns: Vec<ColumnEntry>) -> Self {
        FileEntry { name: name.into(), meaning: meaning.to_string(), bytes: None, blake3: None, open: false, columns }
    }
    /// The entry has no digest: the page is not drawn yet.
    pub fn page() -> Self {
        FileEntry::new(PAGE, "the page that shows all this; opens offline", vec![])
    }
    /// Describes a file or directory without a digest, to which others may add.
    pub fn open(name: &str, meaning: &str) -> Self {
        FileEntry { open: true, ..FileEntry::new(name, meaning, vec![]) }
    }
    pub(crate) fn holding(mut self, content: &Content) -> Self {
        (self.bytes, self.blake3) = (Some(content.bytes), Some(content.blake3.clone()));
        self
    }
    /// Returns size and digest of the file; `None` if the entry has no digest.
    pub fn content(&self) -> Option<Content> {
        Some(Content { bytes: self.bytes?, blake3: self.blake3.clone()? })
    }
    pub fn of_table(table: &Table, extension: &str) -> Self {
        let columns = table.columns.iter().map(|c| ColumnEntry::new(c.name, c.kind.word(), c.unit, c.meaning));
        FileEntry::new(format!("{}.{extension}", table.name), table.meaning, columns.collect())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    Run,
    Comparison,
    /// A sweep, or another store of runs.
    Store,
    /// Results of the same flows on several backends.
    Agreement,
    /// Results of another kind, such as figures of claims.
    Other,
}

impl std::fmt::Display for ResultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ResultKind::Run => "a single run",
            ResultKind::Comparison => "a comparison",
            ResultKind::Store => "a sweep",
            ResultKind::Agreement => "results of several backends",
            ResultKind::Other => "results of another kind",
        })
    }
}

/// Start of the seal, in the last line but one.
const SEAL: &str = "\"seal\": \"";
const SEAL_DIGITS: usize = 64;

impl Manifest {
    /// Reads the manifest of `dir`; `None` if there is none.
    /// Fails if it cannot be read, is not a manifest of results, or was changed after it was written.
    pub fn read(dir: &Path) -> Result<Option<Self>, ReportError> {
        let path = dir.join(MANIFEST);
        let Some(text) = read_text(&path)? else { return Ok(None) };
        let manifest: Manifest = from_json(&path, &text)?;
        let damaged = |found: &str| Err(ReportError::content(&path, found, REMEDY));
        if manifest.version.is_empty() || manifest.files.is_empty() {
            return damaged("this is not a manifest of results");
        }
        if let Some(file) = manifest.files.iter().find(|file| !is_inside(&file.name)) {
            return damaged(&format!("it lists `{}`, which is outside its directory", file.name));
        }
        if seal_of(&text).as_ref() != Some(&manifest.seal) {
            return damaged("its content does not match its seal: it was changed after it was written");
        }
        Ok(Some(manifest))
    }

    pub(crate) fn to_json(&self) -> String {
        let blank = "0".repeat(SEAL_DIGITS);
        resealed(&to_json(&Manifest { seal: blank, ..self.clone() }))
    }

    pub fn kind(&self) -> ResultKind {
        let lists = |names: &[&str]| names.iter().any(|name| self.file(name).is_some());
        match () {
            () if lists(&[SUMMARY]) => ResultKind::Run,
            () if lists(&["agreement.csv"]) => ResultKind::Agreement,
            () if lists(&["comparison.csv"]) => ResultKind::Comparison,
            () if lists(&[".claims", PLAN]) => ResultKind::Store,
            () => ResultKind::Other,
        }
    }

    pub fn file(&self, name: &str) -> Option<&FileEntry> {
        self.files.iter().find(|file| file.name == name)
    }

    pub(crate) fn is_run_to_draw(&self) -> bool {
        self.kind() == ResultKind::Run && self.is_undrawn()
    }

    /// Returns `true` if the command ended before figures and page were drawn.
    pub fn is_undrawn(&self) -> bool {
        self.file(PAGE).is_some_and(|page| page.content().is_none())
    }

    /// Returns a digest over scenario, version and rows, the same for every repetition of a run; `None` without digests.
    pub fn rows_digest(&self) -> Option<String> {
        let mut text = format!("{} {} {} {}\n", self.version, self.commit, self.scenario_hash, self.schemes.join(","));
        let mut tables: Vec<&FileEntry> = self.files.iter().filter(|file| is_table(&file.name)).collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        for file in tables {
            text += &format!("{} {} {}\n", file.name, file.bytes?, file.blake3.as_ref()?);
        }
        Some(Content::of(text.as_bytes()).blake3)
    }

    /// In a store, a directory is named by a hash of all that the run depends on.
    /// Returns `true` unless the name of `dir` is the hash of another run.
    pub fn is_of_run(&self, dir: &Path) -> bool {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        !is_key(&name) || *name == run_key(&self.scenario_hash, &self.backend, &self.commit)
    }

    /// Adds those of `entries` that are of finished files and whose names are new.
    pub fn keep_entries<'e>(&mut self, entries: impl IntoIterator<Item = &'e FileEntry>) {
        let known: BTreeSet<String> = self.files.iter().map(|file| file.name.clone()).collect();
        // A file that a command did not finish belongs to no results.
        let is_whole = |file: &&FileEntry| file.open || file.content().is_some() || file.name == PAGE;
        self.files.extend(entries.into_iter().filter(is_whole).filter(|file| !known.contains(&file.name)).cloned());
    }
}

/// Returns the name of a run in a store: 16 hex digits over the hash of its scenario, its backend and the commit of the build.
pub fn run_key(scenario_hash: &str, backend: &str, commit: &str) -> String {
    // Stores had simulations only before there were backends.
    let backend = if backend == "sim" { String::new() } else { format!(" {backend}") };
    format!("{:016x}", name_key(&format!("{scenario_hash}{backend} {commit}")))
}

pub(crate) fn is_table(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    ["csv", "parquet"].contains(&extension) && crate::tables::TABLES.iter().any(|table| table.name == stem)
}

/// Returns `true` if a path cannot lead out of its directory.
pub fn is_inside(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

/// Returns the text of a manifest with the seal of its content in place of its own, which tests use that change one.
#[doc(hidden)]
pub fn resealed(text: &str) -> String {
    match (text.rfind(SEAL), seal_of(text)) {
        (Some(at), Some(seal)) => {
            let digits = at + SEAL.len();
            format!("{}{seal}{}", &text[..digits], &text[digits + SEAL_DIGITS..])
        }
        _ => text.to_string(),
    }
}

fn seal_of(text: &str) -> Option<String> {
    let at = text.rfind(SEAL)? + SEAL.len();
    let rest = text.get(at + SEAL_DIGITS..)?;
    let mut digest = blake3::Hasher::new();
    digest.update(&text.as_bytes()[..at]).update(rest.as_bytes());
    Some(digest.finalize().to_hex().to_string())
}
