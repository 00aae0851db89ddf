//! Tests that the pages name exist: a filter that matches nothing passes with no test run.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let mut all = vec![];
    for path in entries.map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => all.extend(files(&path, end)),
            false if path.to_string_lossy().ends_with(end) => all.push(path),
            false => {}
        }
    }
    all.sort();
    all
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the folder of each package.
fn packages(root: &Path) -> BTreeMap<String, PathBuf> {
    let named = |manifest: PathBuf| {
        let text = read(&manifest);
        let name = text.lines().find_map(|line| line.strip_prefix("name = \""))?.trim_end_matches('"').to_string();
        Some((name, manifest.parent().unwrap().to_path_buf()))
    };
    files(&root.join("crates"), "Cargo.toml").into_iter().filter_map(named).collect()
}

/// Returns the tests in the files of a folder, as the test harness names them; each program in `tests` has a folder.
fn tests(folder: &Path) -> Vec<String> {
    let programs = files(&folder.join("tests"), "main.rs").into_iter().map(|main| main.parent().unwrap().to_path_buf());
    let mut all = vec![];
    for root in programs.chain([folder.join("src")]) {
        for file in files(&root, ".rs") {
            let path = file.strip_prefix(&root).unwrap().with_extension("");
            let path = path.iter().map(|part| part.to_str().unwrap());
            let path: Vec<&str> = path.filter(|part| !["lib", "main", "mod"].contains(part)).collect();
            let (mut is_test, mut inner) = (false, None);
            for line in read(&file).lines().map(str::trim) {
                if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
                    inner = Some(name.to_string());
                } else if let Some((_, name)) = line.split_once("fn ").filter(|_| is_test) {
                    let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next();
                    all.push(path.iter().copied().chain(inner.as_deref()).chain(name).collect::<Vec<_>>().join("::"));
                    is_test = false;
                } else if let Some((name, _)) = line.strip_prefix("(\"").and_then(|rest| rest.split_once("\", ")) {
                    // A list of tests without the standard harness.
                    all.extend(name.contains("::").then(|| name.to_string()));
                }
                is_test |= line == "#[test]";
            }
        }
    }
    all
}

/// Returns what is wrong with a `T PACKAGE [FILTER] [-- FILTERS FLAGS]`.
fn wrong(packages: &BTreeMap<String, PathBuf>, command: &str) -> Option<String> {
    let mut words = command.split_whitespace();
    let package = words.next()?;
    let Some(folder) = packages.get(package) else { return Some(format!("there is no package {package}")) };
    let tests = tests(folder);
    let missing = words.find(|word| !word.starts_with('-') && !tests.iter().any(|test| test.contains(word)));
    missing.map(|filter| format!("no test of {package} has {filter} in its name"))
}

#[test]
fn named_tests_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let packages = packages(&root);
    let mut pages = files(&root.join("docs"), ".md");
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"].map(|name| root.join(name)),
    );
    let (mut found, mut count) = (vec![], 0);
    for page in &pages {
        for paragraph in read(page).split("\n\n").map(|paragraph| paragraph.replace('\n', " ")) {
            for command in paragraph.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("T ")) {
                count += 1;
                let place = page.strip_prefix(&root).unwrap().display();
                found.extend(wrong(&packages, command).map(|wrong| format!("{place}: `T {command}`: {wrong}")));
            }
        }
    }
    assert!(count > 100, "only {count} commands were found");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn missing_tests_are_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let packages = packages(&root);
    let wrong = |command: &str| wrong(&packages, command);
    assert_eq!(wrong("anabranch-book named_tests::missing_tests -- --nocapture"), None);
    assert_eq!(wrong("anabranch-collective -- loopback::rows verbs::messages"), None);
    assert_eq!(wrong("anabranch-bok").unwrap(), "there is no package anabranch-bok");
    assert_eq!(wrong("anabranch-book named_test::").unwrap(), "no test of anabranch-book has named_test:: in its name");
}
