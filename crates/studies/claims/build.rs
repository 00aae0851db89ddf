//! Generates a list of all claim files, so that they are embedded in the command.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    claims(&here.join("claims"));
}

/// Writes a list of all claim files with their texts, as Rust source: `(paper, file, text)`.
fn claims(directory: &Path) {
    println!("cargo:rerun-if-changed={}", directory.display());
    let list = |directory: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut source = String::from("[\n");
    for paper in list(directory).iter().filter(|path| path.is_dir() && name(path) != "rows") {
        for file in list(paper).iter().filter(|path| path.extension().is_some_and(|e| e == "toml")) {
            let path = fs::canonicalize(file).unwrap_or_else(|_| file.clone());
            source += &format!("({:?}, {:?}, include_str!({:?})),\n", name(paper), name(file), path);
        }
    }
    source += "]\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("claims.rs"), source).expect("cargo's own directory can be written");
}
