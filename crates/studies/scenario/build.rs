//! Records the commit and the sources of this build, so that results can name them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    // Of a published crate, whose neighbours are not ours.
    if let Ok(published) = fs::read_to_string(here.join(".cargo_vcs_info.json")) {
        let commit = published.split('"').find(|word| word.len() == 40).map_or("unknown", |commit| &commit[..12]);
        println!("cargo:rustc-env=ANABRANCH_COMMIT={commit}");
        return;
    }
    let crates = here.join("../..");
    println!("cargo:rerun-if-changed={}", crates.display());
    // The log grows with every commit and change of branch.
    let log = here.join("../../../.git/logs/HEAD");
    if log.exists() {
        println!("cargo:rerun-if-changed={}", log.display());
    }
    let commit = git(&here, &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let changed = git(&here, &["status", "--porcelain", "--", "../.."]).is_some_and(|list| !list.is_empty());
    let mut files = Vec::new();
    collect(&crates, &mut files);
    files.sort();
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for file in &files {
        let name = file.strip_prefix(&crates).unwrap_or(file).to_string_lossy().replace('\\', "/");
        for byte in name.bytes().chain(fs::read(file).unwrap_or_default()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    // A commit alone identifies the sources only if nothing was changed since.
    let exact = match (commit.as_str(), changed) {
        ("unknown", _) | (_, true) => format!("{commit}-{hash:016x}"),
        _ => commit,
    };
    println!("cargo:rustc-env=ANABRANCH_COMMIT={exact}");
}

fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Collects the sources below `directory`, except those of the command, tests, benchmarks and reports, which decide no result.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        // Symbolic links lead to what is not in `crates`.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if !["cli", "report", "tests", "benches", "target"].iter().any(|skipped| name == *skipped) {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|e| e == "rs" || e == "txt") {
            files.push(path);
        }
    }
}
