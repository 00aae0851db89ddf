//! Limits the number of crates in the default build, which every newcomer waits for. `crates.txt` has their names;
//! `ANABRANCH_RECORD=1 cargo test --profile fast -p anabranch dependencies::` records them.

use anabranch_testkit::skip;
use std::{collections::BTreeSet, process::Command};

/// Maximum number of third-party crates in `cargo build --release -p anabranch`, with those of build scripts and macros. Lower it when
/// one goes; before raising it, search for a feature or a smaller crate that does the same. 18 are those of the solver of linear
/// programs (clarabel: 25 processor seconds alone with all that it needs, shared crates included); microlp has 7, and no duals.
const MAX_CRATES: usize = 188;

/// `None`, having reported the skip, where this user may not run the cargo that built the test.
fn crates() -> Option<BTreeSet<String>> {
    let output = match Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "-p", "anabranch", "-e", "normal,build"])
        .args(["--prefix", "none", "--no-dedupe", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
    {
        Err(error) => {
            skip(format!("{}: {error}", env!("CARGO")), "run the test as the user who built it");
            return None;
        }
        Ok(output) => output,
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let words = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    Some(String::from_utf8(output.stdout).expect("text").lines().map(words).filter(|line| !line.is_empty()).collect())
}

#[test]
fn default_build_has_few_crates() {
    let Some(crates) = crates() else { return };
    assert!(crates.iter().any(|name| name.starts_with("anabranch-sim ")), "{crates:?}");
    // Crates in two versions count twice, and are two lines.
    let found: Vec<&str> = crates
        .iter()
        .filter(|name| !name.starts_with("anabranch"))
        .map(|name| name.split_whitespace().next().expect("a name"))
        .collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crates.txt");
    if std::env::var_os("ANABRANCH_RECORD").is_some() {
        std::fs::write(path, found.join("\n") + "\n").expect("the record can be written");
    }
    let recorded = std::fs::read_to_string(path).expect("the record");
    let mut recorded: Vec<&str> = recorded.lines().collect();
    let new: Vec<&str> = found
        .iter()
        .copied()
        .filter(|name| match recorded.iter().position(|other| other == name) {
            Some(at) => {
                recorded.swap_remove(at);
                false
            }
            None => true,
        })
        .collect();
    let count = found.len();
    assert!(count <= MAX_CRATES, "{count} crates, at most {MAX_CRATES} are allowed; new: {new:#?}");
    assert!(new.is_empty() && recorded.is_empty(), "crates.txt is stale; new: {new:#?}, gone: {recorded:#?}");
}
