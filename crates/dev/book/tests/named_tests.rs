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

/// Returns `true` if a function, a module or a file has the filter in its name.
fn matches(sources: &[PathBuf], filter: &str) -> bool {
    let filter = filter.rsplit("::").next().unwrap();
    let declares = |line: &str| {
        let after = |word: &str| line.split_once(word).is_some_and(|(_, name)| of_name(name).contains(filter));
        after("fn ") || after("mod ")
    };
    sources.iter().any(|source| {
        source.file_stem().is_some_and(|stem| stem.to_string_lossy().contains(filter))
            || source.parent().is_some_and(|folder| folder.ends_with(filter))
            || read(source).lines().any(declares)
    })
}

fn of_name(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Returns what is wrong with a `T PACKAGE [--test NAME | --lib] [FILTER] [-- FLAGS]`.
fn wrong(packages: &BTreeMap<String, PathBuf>, command: &str) -> Option<String> {
    let mut words = command.split_whitespace();
    let package = words.next()?;
    let Some(folder) = packages.get(package) else { return Some(format!("there is no package {package}")) };
    let (mut sources, mut filters, mut all) = (vec![], vec![], true);
    while let Some(word) = words.next() {
        match word {
            "--test" => {
                let name = words.next()?;
                let mut own = files(&folder.join("tests").join(name), ".rs");
                own.extend([folder.join(format!("tests/{name}.rs"))].into_iter().filter(|file| file.exists()));
                if own.is_empty() {
                    return Some(format!("{package} has no tests/{name}.rs"));
                }
                sources.extend(own);
                all = false;
            }
            "--lib" => {
                sources.extend(files(&folder.join("src"), ".rs"));
                all = false;
            }
            flag if flag.starts_with('-') => {}
            filter => filters.push(filter),
        }
    }
    if all {
        sources.extend(files(&folder.join("src"), ".rs"));
        sources.extend(files(&folder.join("tests"), ".rs"));
    }
    let missing = filters.into_iter().find(|filter| !matches(&sources, filter));
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
        for (number, line) in read(page).lines().enumerate() {
            for command in line.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("T ")) {
                count += 1;
                let place = || format!("{}:{}: `T {command}`", page.strip_prefix(&root).unwrap().display(), number + 1);
                found.extend(wrong(&packages, command).map(|wrong| format!("{}: {wrong}", place())));
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
    assert_eq!(wrong("anabranch-book --test named_tests missing_tests -- --nocapture"), None);
    assert_eq!(wrong("anabranch-book named_tests::missing_tests"), None);
    assert_eq!(wrong("anabranch-bok").unwrap(), "there is no package anabranch-bok");
    assert_eq!(wrong("anabranch-book --test named").unwrap(), "anabranch-book has no tests/named.rs");
    assert_eq!(wrong("anabranch-book no_such").unwrap(), "no test of anabranch-book has no_such in its name");
}
