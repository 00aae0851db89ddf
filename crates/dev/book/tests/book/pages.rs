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
            let (says, drawing) = picture(side, about.name)
                .unwrap_or_else(|| panic!("no picture of {}: add it to crates/dev/book/pictures.toml", about.name));
            assert!(page.contains(&says) && page.contains(&format!("({}-{}.svg)", side.word(), about.name)));
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

#[test]
fn table_of_contents_lists_every_page() {
    let summary = fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    let mut folders = vec![docs()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let page = path.strip_prefix(docs()).unwrap().to_str().unwrap().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if page.ends_with(".md") && page != "SUMMARY.md" {
                assert!(summary.contains(&format!("({page})")), "{page}: add it to docs/SUMMARY.md");
            }
        }
    }
}
