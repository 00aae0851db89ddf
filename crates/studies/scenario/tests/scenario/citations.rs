//! Every citation of the specification, in sources, scenarios, pages and `anabranch explain`, leads to a section of
//! `docs/specification.md` or of the pages beneath it.

use anabranch_scenario::{
    CatalogueKind, Explanation,
    explain::{catalogue, find},
};
use regex_lite::Regex;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const SECTIONS: [&str; 6] = ["fabric", "run", "measure", "compare", "wire", "fault"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().expect("the workspace exists")
}

fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.to_path_buf()] };
    let entries = entries.map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.file_name().is_some_and(|name| name != "target")).flat_map(|path| files(&path)).collect()
}

/// Returns the hand-written files: path in the repository and text. Pictures and other binary files are skipped.
fn written() -> Vec<(String, String)> {
    let root = root();
    let places =
        ["crates", "docs", "scenarios", "claims", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let paths = places.iter().flat_map(|place| files(&root.join(place)));
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).ok()?;
        Some((path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned(), text))
    };
    paths.filter_map(text).collect()
}

fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern")
}

/// Returns the number of citations in a text and those that lead nowhere. Comment marks and line ends may break a citation.
fn citations(text: &str, sections: &BTreeSet<String>) -> (usize, Vec<String>) {
    // Most of the text is rows of numbers.
    let lower = text.to_ascii_lowercase();
    if !["specification", "spec ", "spec.", "\u{a7}", "conweave-ns3 1"].iter().any(|word| lower.contains(word)) {
        return (0, vec![]);
    }
    let text = pattern(r"\n[ \t]*(?://[/!]?|#+[ \t])?[ \t]*|\\\n[ \t]*").replace_all(text, " ");
    let text = pattern(r",? point \d+| \([a-z]\)").replace_all(&text, "");
    let next = r"(?:(?:, (?:and )?\d+\.\d+|(?:,? and | to )\d+(?:\.\d+)?)\b)*";
    let cited = pattern(&format!(r"(?i)\bspecification (\d+(?:\.\d+)?\b{next})"));
    let other = pattern(
        r"(?i)\bspec\.? ?§? ?\d|\bspecification(?:'s)?,? (?:section|§) ?\d|§ ?\d[\d.]* of the specification|conweave-ns3 1\.\d",
    );
    let number = pattern(r"\d+(\.\d+)?");
    let numbers = |found: &str| number.find_iter(found).map(|one| one.as_str().to_string()).collect::<Vec<_>>();
    let all: Vec<String> = cited.captures_iter(&text).flat_map(|found| numbers(&found[1])).collect();
    let wrong = all.iter().filter(|one| !sections.contains(*one)).map(|one| format!("no section {one}"));
    let forms = other.find_iter(&text).map(|found| format!("`{}`: cite it like `specification 7.10`", found.as_str()));
    (all.len(), wrong.chain(forms).collect())
}

fn sections() -> BTreeSet<String> {
    let heading = pattern(r"(?m)^#+ (\d+(?:\.\d+)?)\b");
    let pages = written().into_iter().filter(|(path, _)| path.starts_with("docs/specification"));
    pages.flat_map(|(_, text)| heading.captures_iter(&text).map(|of| of[1].to_string()).collect::<Vec<_>>()).collect()
}

fn explained() -> Vec<Explanation> {
    let names = CatalogueKind::ALL.into_iter().flat_map(catalogue);
    let names = names.map(|entry| entry.name).chain(SECTIONS.map(String::from));
    names.map(|name| find(&name).expect("what the catalogue lists is explained")).collect()
}

#[test]
fn citations_lead_to_a_section() {
    let sections = sections();
    let explained = explained().into_iter().map(|of| (format!("explain {}", of.name), of.text(100)));
    let (mut cited, mut problems) = (0, Vec::new());
    // This file has patterns of wrong ones.
    for (path, text) in written().into_iter().chain(explained).filter(|(path, _)| !path.ends_with("citations.rs")) {
        let (found, wrong) = citations(&text, &sections);
        cited += found;
        problems.extend(wrong.iter().map(|problem| format!("{path}: {problem}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(cited > 350, "only {cited} citations found: has their form changed?");
}

/// `key = "word"` in the specification: the program has such a key, which takes this word.
#[test]
fn options_in_the_specification_exist() {
    let option = pattern(r#"`([a-z_]+) = ("[a-z-]+")`"#);
    let explained = explained();
    let parameters = || explained.iter().flat_map(|of| &of.parts).flat_map(|part| &part.parameters);
    let mut options = 0;
    for (path, text) in written().iter().filter(|(path, _)| path.starts_with("docs/specification")) {
        for found in option.captures_iter(text) {
            options += 1;
            let takes = parameters().any(|of| of.name == &found[1] && of.expected.contains(&found[2]));
            assert!(takes, "{path}: {} is no option", &found[0]);
        }
    }
    assert!(options > 15, "only {options} options found");
}

#[test]
fn pages_named_in_sources_exist() {
    let (named, root) = (pattern(r"\bdocs/[a-z0-9/-]+\.md\b"), root());
    for (path, text) in written().into_iter().filter(|(_, text)| text.contains("docs/")) {
        for page in named.find_iter(&text).map(|found| found.as_str()) {
            assert!(root.join(page).exists(), "{path}: {page}");
        }
    }
}
