use std::path::{Path, PathBuf};

/// Origin of the results, and the content of every file beside it.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The page of all results of a directory.
pub(crate) const PAGE: &str = "report.html";
/// The page with the fabric over time.
pub(crate) const VIEW: &str = "view.html";
/// The numbers of a run. It is written last: if it exists, all files of the run are complete.
pub(crate) const SUMMARY: &str = "summary.json";
pub(crate) const ATTEMPT: &str = "attempt.json";
pub(crate) const INTERRUPTED: &str = "interrupted.json";
/// Bounds and reference of a comparison.
pub(crate) const LIMITS: &str = "limits.json";
/// The plan of a sweep.
pub const SWEEP: &str = "sweep.json";

/// Files of an agreement beside its page.
pub const AGREEMENT_FILES: &[&str] = &["agreement.csv", "explanations.csv", "agreement.json", PAGE];
/// Directories and files of a comparison beside tables, figures and page.
pub const COMPARISON_FILES: &[&str] =
    &["comparison.csv", "comparison.json", INTERRUPTED, LIMITS, "runs", "earlier-runs"];
/// Returns the directory of a run within that of a comparison.
pub fn run_directory(dir: &Path, scheme: &str, seed: u64) -> PathBuf {
    let unfit = |c: char| !(c.is_ascii_alphanumeric() || "+-_.".contains(c));
    let name = scheme.replace(unfit, "_");
    let name = if name.starts_with('.') { name.replacen('.', "_", 1) } else { name };
    dir.join("runs").join(name).join(format!("seed{seed}"))
}

/// Returns the directory of a run in the store `dir`.
pub fn store_directory(dir: &Path, run: &str) -> PathBuf {
    dir.join("runs").join(run)
}

/// Returns the file with the reason why a run failed.
pub fn failed_file(dir: &Path, run: &str) -> PathBuf {
    dir.join("failed").join(format!("{run}.json"))
}
