use crate::{
    arguments::{Format, Verify},
    failure::Failure,
    printing::{count, print, print_json, table},
};
use anabranch_report::{Finding, FindingKind, Verified, verify as check};
use serde_json::json;
use std::path::Path;

pub(crate) fn verify(arguments: &Verify) -> Result<(), Failure> {
    let dir = &arguments.dir;
    if !dir.is_dir() {
        return Err(Failure::input(format!(
            "directory {} does not exist; give the --out directory of run, compare or sweep",
            dir.display()
        )));
    }
    let mut verified = check(dir)?;
    verified.findings.retain(|finding| !is_of_why(finding));
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

/// Returns `true` for an unlisted table of `reproduce --why`: the manifest of its paper is written without it, before or after.
fn is_of_why(finding: &Finding) -> bool {
    let Ok(path) = std::path::absolute(&finding.path) else { return false };
    let names: Vec<_> = path.iter().rev().take(5).map(|name| name.to_string_lossy()).collect();
    let is_there = matches!(names.as_slice(), [file, why, _, _, reproduce]
        if file.ends_with(".csv") && why == "why" && reproduce == "reproduce");
    let is_table = || {
        anabranch_input::read_text(&path, anabranch_input::MAX_TEXT)
            .is_ok_and(|text| text.lines().next() == Some(anabranch_claims::WHY_COLUMNS))
    };
    finding.fault == FindingKind::Unlisted && is_there && is_table()
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
            FindingKind::NoDigest => "no digest",
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
