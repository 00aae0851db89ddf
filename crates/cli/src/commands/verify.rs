use super::request::require_directory;
use crate::{Failure, Format, count, print, print_json, table};
use anabranch_results::{Finding, FindingKind, Verified, verify as check};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Verify {
    /// Directory written by `run`, `compare`, `sweep` or `reproduce`
    pub(crate) dir: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

pub(crate) fn verify(arguments: &Verify) -> Result<(), Failure> {
    let dir = &arguments.dir;
    require_directory(dir, "; give the --out directory of run, compare or sweep")?;
    let verified = check(dir)?;
    match arguments.format {
        Format::Json => print_json(&json!({
            "directory": dir.to_string_lossy(),
            "intact": verified.is_intact(),
            "manifests": verified.manifests,
            "files": verified.files,
            "inputs": verified.inputs,
            "inputs_gone": verified.missing_inputs,
            "findings": verified.findings,
        })),
        Format::Table => print(&text(&verified)),
    }
    integrity_failure(dir, verified.findings.len()).map_or(Ok(()), Err)
}

pub(super) fn findings_table(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let row = |finding: &Finding| {
        let word = match finding.fault {
            FindingKind::Differs => "differs",
            FindingKind::Missing => "missing",
            FindingKind::Unlisted => "unlisted",
            FindingKind::Unfinished => "unfinished",
        };
        vec![finding.path.display().to_string(), word.to_string(), finding.found.clone()]
    };
    let rows: Vec<_> = findings.iter().map(row).collect();
    format!("{}\n", table(&["file", "", ""], &rows))
}

/// Returns the error of `findings` damaged files in `dir`; `None` for 0.
pub(super) fn integrity_failure(dir: &Path, findings: usize) -> Option<Failure> {
    let message = match findings {
        0 => return None,
        1 => format!("1 file in {} differs from its manifest", dir.display()),
        several => format!("{several} files in {} differ from their manifests", dir.display()),
    };
    Some(Failure::Check(message))
}

fn text(verified: &Verified) -> String {
    let mut text = findings_table(&verified.findings);
    let (files, inputs) = (count(verified.files as u64), count(verified.inputs as u64));
    text +=
        &format!("{files} files and {inputs} inputs compared with {} manifests\n", count(verified.manifests as u64));
    for path in &verified.missing_inputs {
        text += &format!("{path}: input no longer exists, not compared\n");
    }
    text
}
