//! `verify`.

use crate::{
    arguments::{Format, Verify},
    failure::Failure,
    printing::{count, print, print_json, table},
};
use anabranch_report::{Fault, Finding, Verified, verify as check};
use serde_json::json;

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
    match verified.findings.len() {
        0 => Ok(()),
        1 => Err(Failure::Check(format!("1 file in {} is not as it was written", dir.display()))),
        several => Err(Failure::Check(format!("{several} files in {} are not as they were written", dir.display()))),
    }
}

fn text(verified: &Verified) -> String {
    let mut text = String::new();
    if !verified.findings.is_empty() {
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
        let rows: Vec<_> = verified.findings.iter().map(row).collect();
        text += &format!("{}\n", table(&["file", "", ""], &rows));
    }
    let (files, inputs) = (count(verified.files as u64), count(verified.inputs as u64));
    text +=
        &format!("{files} files and {inputs} inputs compared with {} manifests\n", count(verified.manifests as u64));
    for path in &verified.inputs_gone {
        text += &format!("{path}: this input is not there any more and cannot be compared\n");
    }
    text
}
