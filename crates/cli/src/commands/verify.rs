//! `verify`.

use crate::{
    arguments::{Format, Verify},
    failure::Failure,
    printing::{count, print, print_json, table},
};
use anabranch_report::{Fault, Finding, Verified, verify as check};
use serde_json::json;
use std::path::Path;

/// `anabranch verify`.
pub(crate) fn verify(arguments: &Verify) -> Result<(), Failure> {
    let dir = &arguments.dir;
    if !dir.is_dir() {
        return Err(Failure::input(format!(
            "there is no directory {}; give one that `--out` of run, compare or sweep named",
            dir.display()
        )));
    }
    let verified = check(dir)?;
    match arguments.format {
        Format::Json => print_json(&json!({
            "directory": dir.to_string_lossy(),
            "intact": verified.is_intact(),
            "manifests": verified.manifests,
            "files": verified.files,
            "inputs": verified.inputs,
            "inputs_gone": verified.inputs_gone,
            "findings": verified.findings,
        })),
        Format::Table => print(&text(&verified)),
    }
    not_as_written(dir, verified.findings.len()).map_or(Ok(()), Err)
}

/// A table of what is not as it was written; empty where there is none.
pub(super) fn listed(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let row = |finding: &Finding| {
        let word = match finding.fault {
            Fault::Differs => "differs",
            Fault::Missing => "missing",
            Fault::Unlisted => "unlisted",
            Fault::Unfinished => "unfinished",
            Fault::NoDigest => "no digest",
        };
        vec![finding.path.display().to_string(), word.to_string(), finding.found.clone()]
    };
    let rows: Vec<_> = findings.iter().map(row).collect();
    format!("{}\n", table(&["file", "", ""], &rows))
}

/// The failure of a check of so many files in `dir`; `None` where there is none.
pub(super) fn not_as_written(dir: &Path, findings: usize) -> Option<Failure> {
    let message = match findings {
        0 => return None,
        1 => format!("1 file in {} is not as it was written", dir.display()),
        several => format!("{several} files in {} are not as they were written", dir.display()),
    };
    Some(Failure::Check(message))
}

fn text(verified: &Verified) -> String {
    let mut text = listed(&verified.findings);
    let (files, inputs) = (count(verified.files as u64), count(verified.inputs as u64));
    text +=
        &format!("{files} files and {inputs} inputs compared with {} manifests\n", count(verified.manifests as u64));
    for path in &verified.inputs_gone {
        text += &format!("{path}: this input is not there any more and cannot be compared\n");
    }
    text
}
