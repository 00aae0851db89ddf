//! Turns the Rust blocks of the repository's pages into doctests.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../..");
    let mut pages = Vec::new();
    let docs = root.join("docs");
    let mut folders = vec![root, docs.clone()];
    folders
        .extend(fs::read_dir(docs).into_iter().flatten().flatten().map(|entry| entry.path()).filter(|at| at.is_dir()));
    folders.sort();
    for folder in folders {
        println!("cargo:rerun-if-changed={}", folder.display());
        collect(&folder, &mut pages);
    }
    let mut source = String::new();
    for (number, page) in pages.iter().enumerate() {
        let path = fs::canonicalize(page).expect("it was just listed");
        source += &format!("#[doc = include_str!({path:?})]\nstruct Page{number};\n");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("pages.rs"), source).expect("cargo's own directory can be written");
}

/// The changelog has no examples.
fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    let mut here: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    here.sort();
    let is_page = |path: &PathBuf| path.extension().is_some_and(|e| e == "md") && !path.ends_with("CHANGELOG.md");
    pages.extend(here.into_iter().filter(is_page));
}
