//! Result directories below a directory: what each has, and a page that shows all.

use crate::{Comparison, headlines, page::parts};
use anabranch_results::{
    MANIFEST, Manifest, PAGE, ReportError, ResultKind, RunStatus, Summary, read_runs, read_summary, significant_digits,
};
use minijinja::{Value, context};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

const TEMPLATE: &str = include_str!("page/results.html.jinja");
/// Start of every index page, by which it is known.
const MARK: &str = "<!-- anabranch results -->";
/// Maximum depth below the directory that is searched.
const MAX_DEPTH: usize = 8;

/// A result directory.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its path from the directory that was searched; `.` for that directory itself.
    pub path: PathBuf,
    pub kind: ResultKind,
    pub scenario: String,
    /// Load balancers.
    pub schemes: Vec<String>,
    pub seeds: Vec<u64>,
    /// `finished`, or how many runs ended how, or how many are missing.
    pub status: String,
    pub version: String,
    pub commit: String,
    pub backend: String,
    /// The result in a sentence; empty where none can be stated.
    pub headline: String,
    /// `true` if it has a page.
    pub has_page: bool,
}

/// Result directories, and manifests that could not be read.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The directories, by path.
    pub results: Vec<Listed>,
    /// Directories with a damaged manifest: path and what was found.
    pub damaged: Vec<(PathBuf, String)>,
}

/// Finds the result directories at and below `dir`. The runs within a comparison or sweep are part of it.
/// Fails if `dir` cannot be read. A damaged directory below it is listed as such.
pub fn list_results(dir: &Path) -> Result<Listing, ReportError> {
    let mut listing = Listing::default();
    fs::read_dir(dir).map_err(|error| ReportError::file(dir, error))?;
    search(dir, Path::new("."), MAX_DEPTH, &mut listing);
    Ok(listing)
}

fn search(dir: &Path, path: &Path, depth: usize, listing: &mut Listing) {
    if fs::symlink_metadata(dir.join(MANIFEST)).is_ok() {
        match Manifest::read(dir) {
            Ok(Some(manifest)) => listing.results.push(listed(dir, path, &manifest)),
            Ok(None) => {}
            Err(error) => listing.damaged.push((path.to_path_buf(), error.to_string())),
        }
        return;
    }
    let Ok(entries) = fs::read_dir(dir) else { return };
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut names: Vec<_> = entries.flatten().filter(is_folder).map(|entry| entry.file_name()).collect();
    names.retain(|name| !name.to_string_lossy().starts_with('.'));
    names.sort();
    for name in names.iter().filter(|_| depth > 0) {
        let below = if path == Path::new(".") { PathBuf::from(name) } else { path.join(name) };
        search(&dir.join(name), &below, depth - 1, listing);
    }
}

fn listed(dir: &Path, path: &Path, manifest: &Manifest) -> Listed {
    let kind = manifest.kind();
    let (runs, damage) = match kind {
        ResultKind::Run => (read_summary(dir).map(|run| run.into_iter().collect::<Vec<Summary>>()), ""),
        ResultKind::Comparison => (read_runs(dir).map(|runs| runs.into_iter().map(|(run, _)| run).collect()), ""),
        _ => (Ok(Vec::new()), ""),
    };
    let (runs, damage) = runs.map_or_else(|error| (Vec::new(), error.to_string()), |runs| (runs, damage.to_string()));
    let scenario = runs.first().map_or_else(|| manifest.name.clone(), |run| run.scenario.clone());
    Listed {
        path: path.to_path_buf(),
        kind,
        scenario,
        schemes: manifest.schemes.clone(),
        seeds: manifest.seeds.clone(),
        status: if damage.is_empty() { status(manifest, &runs) } else { damage },
        version: manifest.version.clone(),
        commit: manifest.commit.clone(),
        backend: manifest.backend.clone(),
        headline: headline(manifest, &runs),
        has_page: dir.join(PAGE).is_file(),
    }
}

fn status(manifest: &Manifest, runs: &[Summary]) -> String {
    let statuses: Vec<RunStatus> = match manifest.statuses.is_empty() {
        true => runs.iter().filter_map(|run| run.status).collect(),
        false => manifest.statuses.values().copied().collect(),
    };
    let mut counts: BTreeMap<RunStatus, usize> = BTreeMap::new();
    statuses.iter().for_each(|status| *counts.entry(*status).or_default() += 1);
    let mut words: Vec<String> = match counts.len() {
        0 => vec![],
        1 => counts.keys().map(|status| status.word().to_string()).collect(),
        _ => counts.iter().map(|(status, count)| format!("{count} {}", status.word())).collect(),
    };
    let planned = manifest.schemes.len() * manifest.seeds.len();
    if manifest.kind() == ResultKind::Comparison && runs.len() < planned {
        words.push(format!("{} of {planned} runs", runs.len()));
    }
    if words.is_empty() { "-".into() } else { words.join(", ") }
}

fn headline(manifest: &Manifest, runs: &[Summary]) -> String {
    if manifest.kind() == ResultKind::Run {
        let slowdown = runs.first().and_then(|run| run.all.slowdown.p99);
        return slowdown.map_or_else(String::new, |p99| format!("slowdown p99 {}", significant_digits(p99, 3)));
    }
    let has_run = |scheme: &&String| runs.iter().any(|run| run.scheme == **scheme);
    let named = manifest.baseline.as_ref().filter(has_run);
    let Some(baseline) = named.or(manifest.schemes.iter().find(has_run)) else { return String::new() };
    let comparison = Comparison::planned(runs, &manifest.schemes, baseline, manifest.until_decided.as_ref());
    let first = headlines(&comparison, false).into_iter().next();
    first.and_then(|headline| headline.sentences.into_iter().next()).unwrap_or_default()
}

/// Returns the page that shows all of `listing`; links lead from `dir`.
pub fn index_page(dir: &Path, listing: &Listing) -> Result<String, ReportError> {
    let row = |of: &Listed| {
        let link = of.path.join(PAGE).to_string_lossy().replace('\\', "/");
        context! {
            path => of.path.to_string_lossy(),
            // Escaping would change the slashes of a URL.
            link => of.has_page.then(|| Value::from_safe_string(percent_encoded(&link))),
            kind => of.kind.to_string(),
            scenario => &of.scenario,
            schemes => of.schemes.join(", "),
            seeds => of.seeds.len(),
            status => &of.status,
            version => &of.version,
            headline => &of.headline,
        }
    };
    let damaged: Vec<String> =
        listing.damaged.iter().map(|(path, found)| format!("{}: {found}", path.display())).collect();
    let page = context! {
        title => dir.to_string_lossy(),
        rows => listing.results.iter().map(row).collect::<Vec<_>>(),
        damaged => damaged,
    };
    Ok(format!("{MARK}\n{}", parts::render(TEMPLATE, page)?))
}

/// Returns `true` if `path` is an index page that this program wrote.
pub fn is_index_page(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(MARK.as_bytes()))
}

/// Encodes what has a meaning in a URL.
fn percent_encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
