//! What the files and directories of results are called.

use std::path::{Path, PathBuf};

/// Where results come from, and what every file beside it holds.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The page over all results of a directory.
pub(crate) const PAGE: &str = "report.html";
/// The page with the fabric over time.
pub(crate) const VIEW: &str = "view.html";
/// The numbers of a run. It is written last, so where it stands all files of the run are complete.
pub(crate) const SUMMARY: &str = "summary.json";
/// Where a run of a store was done.
pub(crate) const ATTEMPT: &str = "attempt.json";
/// The runs of a comparison that are missing.
pub(crate) const INTERRUPTED: &str = "interrupted.json";
/// What a sweep consists of.
pub const SWEEP: &str = "sweep.json";

/// Files of an agreement beside its page.
pub const AGREEMENT_FILES: &[&str] = &["agreement.csv", "explanations.csv", "agreement.json", PAGE];
/// Directories and files that a comparison has beside tables, figures and page.
pub const COMPARISON_FILES: &[&str] = &["comparison.csv", "comparison.json", INTERRUPTED, "runs", "earlier-runs"];
/// Directory of a run within a comparison's.
pub fn run_directory(dir: &Path, scheme: &str, seed: u64) -> PathBuf {
    let unfit = |c: char| !(c.is_ascii_alphanumeric() || "+-_.".contains(c));
    let name = scheme.replace(unfit, "_");
    let name = if name.starts_with('.') { name.replacen('.', "_", 1) } else { name };
    dir.join("runs").join(name).join(format!("seed{seed}"))
}

/// Directory of a run in the store `dir`.
pub fn store_directory(dir: &Path, run: &str) -> PathBuf {
    dir.join("runs").join(run)
}

/// File that says why a run failed.
pub fn failed_file(dir: &Path, run: &str) -> PathBuf {
    dir.join("failed").join(format!("{run}.json"))
}
