//! Names of files and directories.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Origin of the results, and the content of every file beside it.
pub const MANIFEST: &str = "manifest.json";
/// The page of all results of a directory.
pub const PAGE: &str = "report.html";
/// The page with the fabric over time.
pub const VIEW: &str = "view.html";
/// The numbers of a run. It is written last: if it exists, all files of the run are complete.
pub const SUMMARY: &str = "summary.json";
/// Host of a run and number of its attempts.
pub const ATTEMPT: &str = "attempt.json";
/// Bounds and reference of a comparison.
pub const LIMITS: &str = "limits.json";
/// The plan of a comparison or sweep: keys, values, entries, seeds, runs.
pub const PLAN: &str = "plan.json";

/// Names of figures of runs and comparisons, which the crate `report` draws.
pub const FIGURES: [&str; 11] = [
    "fct_ratio",
    "slowdown_by_size",
    "slowdown_cdf",
    "job_completion",
    "link_heat",
    "link_utilisation",
    "queue_depth",
    "queue_occupancy",
    "series_links",
    "series_flows",
    "series_scheme",
];

/// Returns `true` if `file` is a figure of these results or of earlier ones.
pub fn is_figure(file: &str) -> bool {
    let Some((stem, extension)) = file.rsplit_once('.') else { return false };
    let is = |name: &&str| stem == *name || stem.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    ["svg", "pdf", "png", "csv"].contains(&extension) && FIGURES.iter().any(is)
}

/// Returns the name of a run of a comparison below `runs`, a link to the run's directory there: `prime/seed1`.
pub fn run_name(scheme: &str, seed: u64) -> String {
    let unfit = |c: char| !(c.is_ascii_alphanumeric() || "+-_.".contains(c));
    let mut name = scheme.replace(unfit, "_");
    if name.starts_with('.') {
        name.replace_range(..1, "_");
    }
    if is_key(&name) {
        name.insert(0, '_');
    }
    format!("{name}/seed{seed}")
}

/// Returns `true` for the name of the directory of a run, the hash of all it depends on.
pub fn is_key(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the hash of the run that the name `path`, `runs/SCHEME/seedN`, leads to; `None` for all that no command made.
pub fn named_run(path: &Path) -> Option<String> {
    let target = fs::read_link(path).ok()?;
    let key = target.strip_prefix("..").ok()?.to_string_lossy().into_owned();
    let number = path.file_name()?.to_str()?.strip_prefix("seed")?;
    (number.parse::<u64>().is_ok() && is_key(&key)).then_some(key)
}

/// Returns the directory of a run in the store `dir`.
pub fn store_directory(dir: &Path, run: &str) -> PathBuf {
    dir.join("runs").join(run)
}

/// Returns the file with the reason why a run failed.
pub fn failed_file(dir: &Path, run: &str) -> PathBuf {
    dir.join("failed").join(format!("{run}.json"))
}
