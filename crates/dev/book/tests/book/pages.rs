//! The generated pages in `docs/` are current and complete.

use anabranch_book::{Side, pages, picture};
use anabranch_lb::registry::{ALIASES, HostParameters, SwitchParameters};
use std::{
    collections::{BTreeSet, HashSet},
    fs,
    path::{Path, PathBuf},
};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs")
}

#[test]
fn the_pages_are_up_to_date() {
    let pages = pages();
    for page in &pages {
        let there = fs::read_to_string(docs().join(&page.path)).unwrap_or_default();
        assert!(there == page.text, "docs/{}: run `cargo run --profile fast -p anabranch-book`", page.path);
    }
    // No page of a removed scheme is left.
    let written: BTreeSet<&str> = pages.iter().filter_map(|page| page.path.strip_prefix("schemes/")).collect();
    for entry in fs::read_dir(docs().join("schemes")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(written.contains(name.as_str()), "docs/schemes/{name} has no generator: remove it");
    }
}

#[test]
fn every_scheme_has_a_page_a_picture_of_its_own_and_code() {
    let pages = pages();
    let text = |name: &str| {
        let path = format!("schemes/{name}.md");
        &pages.iter().find(|page| page.path == path).unwrap_or_else(|| panic!("no {path}")).text
    };
    let mut drawings = HashSet::new();
    for (side, abouts) in [(Side::Host, HostParameters::ALL), (Side::Switch, SwitchParameters::ALL)] {
        for about in abouts {
            let page = text(about.name);
            let (says, drawing) = picture(side, about.name).unwrap_or_else(|| {
                panic!("no picture of {}: add it to crates/dev/book/src/{}_pictures.rs", about.name, side.word())
            });
            assert!(page.contains(says) && page.contains(&format!("({}-{}.svg)", side.word(), about.name)));
            assert!(drawings.insert(drawing), "{}: the same drawing as another", about.name);
            let code = page.split("Code: `").skip(1).map(|rest| rest.split('`').next().unwrap());
            for file in code {
                assert!(docs().join("..").join(file).is_file(), "{}: no {file}", about.name);
            }
        }
    }
    // Each name is on the page that the list links to, with what it sets.
    let list = text("README");
    for alias in ALIASES {
        let linked = list.split(&format!("| [{}](", alias.name)).nth(1).and_then(|rest| rest.split(".md)").next());
        let page = text(linked.unwrap_or_else(|| panic!("the list has no {}", alias.name)));
        let line = page.lines().find(|line| line.starts_with(&format!("`{}` (`", alias.name))).unwrap_or_default();
        assert!(!line.is_empty(), "{}", alias.name);
        for (key, word) in alias.fixed {
            assert!(line.contains(&format!("`{key} = \"{word}\"`")), "{}", alias.name);
        }
    }
}

/// Returns path and text of the pages below `docs/`, without the table of contents.
fn pages_on_disk() -> Vec<(String, String)> {
    let mut pages = vec![];
    let mut folders = vec![docs()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let below = path.strip_prefix(docs()).unwrap().to_str().unwrap().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if below.ends_with(".md") && below != "SUMMARY.md" {
                pages.push((below, fs::read_to_string(path).unwrap()));
            }
        }
    }
    pages.sort();
    pages
}

#[test]
fn table_of_contents_lists_every_page() {
    let summary = fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    for (page, _) in pages_on_disk() {
        assert!(summary.contains(&format!("({page})")), "{page}: add it to crates/dev/book/src/contents.rs");
    }
}

/// Returns `true` if a page may be long and have wide tables (CONTRIBUTING.md, "The book").
fn is_long(page: &str) -> bool {
    ["reference/", "specification/", "schemes/"].iter().any(|folder| page.starts_with(folder))
}

fn is_wide(page: &str) -> bool {
    is_long(page) || page.starts_with("evidence/")
}

#[test]
fn pages_have_at_most_300_lines_and_six_columns() {
    let mut problems = vec![];
    for (page, text) in pages_on_disk() {
        let lines = text.lines().count();
        if !is_long(&page) && lines > 300 {
            problems.push(format!("{page}: {lines} lines"));
        }
        let mut is_code = false;
        for (number, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            if !is_code && line.starts_with("|--") && !is_wide(&page) {
                let columns = line.matches('|').count() - 1;
                if columns > 6 {
                    problems.push(format!("{page}:{}: {columns} columns", number + 1));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn pages_begin_with_their_title() {
    for (page, text) in pages_on_disk() {
        let text = text.strip_prefix("<!--").map_or(text.as_str(), |rest| rest.split_once("-->").unwrap().1);
        assert!(text.trim_start().starts_with("# "), "{page} has no title");
        let mut is_code = false;
        let titles = text.lines().filter(|line| {
            is_code ^= line.trim_start().starts_with("```");
            !is_code && line.starts_with("# ")
        });
        assert_eq!(titles.count(), 1, "{page} has more than one title");
    }
}
