//! Every citation of the specification, in sources, scenarios, pages and `anabranch explain`, leads to a section of
//! `docs/specification.md` or of the pages beneath it, and every link in the documentation to a page and a heading.

use anabranch_scenario::explain::{CatalogueKind, Explanation, catalogue, find};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use regex_lite::Regex;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const SECTIONS: [&str; 6] = ["fabric", "run", "measure", "compare", "wire", "fault"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().expect("the workspace exists")
}

/// All text files below `path`, in the order of their names.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_path_buf()];
    }
    let mut entries: Vec<PathBuf> =
        fs::read_dir(path).expect("a folder of the repository").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    entries.iter().filter(|path| path.file_name().is_some_and(|name| name != "target")).flat_map(|p| files(p)).collect()
}

/// Returns the hand-written files: path in the repository and text. Pictures and other binary files are skipped.
fn written() -> Vec<(String, String)> {
    let root = root();
    ["crates", "docs", "scenarios", "claims", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .iter()
        .flat_map(|place| files(&root.join(place)))
        .filter_map(|path| {
            let text = fs::read_to_string(&path).ok()?;
            Some((path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned(), text))
        })
        .collect()
}

#[derive(Default)]
struct Page {
    headings: BTreeSet<String>,
    anchors: BTreeSet<String>,
    /// Numbered sections with the labels of their items: `1` of a numbered list, `a` of an item that begins with (a).
    sections: BTreeMap<String, BTreeSet<String>>,
    /// Line and target.
    links: Vec<(usize, String)>,
}

impl Page {
    fn read(text: &str) -> Page {
        let number = Regex::new(r"^\d+(\.\d+)?\b").expect("a pattern");
        let lettered = Regex::new(r"^\(([a-z])\)").expect("a pattern");
        let mut page = Page::default();
        let (mut heading, mut item): (Option<String>, Option<String>) = (None, None);
        let mut lists: Vec<Option<u64>> = Vec::new();
        let mut section = None;
        for (event, place) in Parser::new(text).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let title = heading.take().expect("inside a heading");
                    section = number.find(&title).map(|found| found.as_str().to_string());
                    if let Some(section) = &section {
                        let new = page.sections.insert(section.clone(), BTreeSet::new()).is_none();
                        assert!(new, "section {section} is in a page twice");
                    }
                    page.anchor(&title);
                    page.headings.insert(title);
                }
                Event::Start(Tag::List(first)) => lists.push(first),
                Event::End(TagEnd::List(_)) => drop(lists.pop()),
                Event::Start(Tag::Item) => {
                    item = Some(String::new());
                    if let (Some(Some(next)), Some(section)) = (lists.last_mut(), &section) {
                        page.sections.entry(section.clone()).or_default().insert(next.to_string());
                        *next += 1;
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((1 + text[..place.start].matches('\n').count(), dest_url.to_string()));
                }
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                    if let (Some(start), Some(section)) = (&mut item, &section) {
                        start.push_str(&words);
                        if let Some(letter) = lettered.captures(start) {
                            page.sections.entry(section.clone()).or_default().insert(letter[1].to_string());
                        }
                    }
                }
                Event::SoftBreak => item = None,
                _ => {}
            }
        }
        page
    }

    /// Adds the fragment under which a heading is reached on the usual forges.
    fn anchor(&mut self, title: &str) {
        let kept =
            title.to_lowercase().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>();
        let slug = kept.replace(' ', "-");
        let again = (1..).map(|n| format!("{slug}-{n}"));
        let free = std::iter::once(slug.clone()).chain(again).find(|s| !self.anchors.contains(s));
        self.anchors.insert(free.expect("one is free"));
    }
}

fn specification() -> BTreeMap<String, BTreeSet<String>> {
    let mut sections = BTreeMap::new();
    for (path, text) in written() {
        if path == "docs/specification.md" || path.starts_with("docs/specification/") {
            for (section, items) in Page::read(&text).sections {
                assert!(sections.insert(section.clone(), items).is_none(), "section {section} stands in two pages");
            }
        }
    }
    sections
}

/// Finds citations in text whose words may be broken by comment marks and line ends.
struct Citations {
    first: Regex,
    item: Regex,
    next: Regex,
    other_forms: Regex,
    break_in_comment: Regex,
}

impl Citations {
    fn new() -> Self {
        let pattern = |p: &str| Regex::new(p).expect("a pattern");
        Citations {
            first: pattern(r"(?i)\bspecification (\d+(?:\.\d+)?)\b"),
            item: pattern(r"^(?:,? point (\d+)| \(([a-z])\))"),
            next: pattern(r"^(?:, (?:and )?(\d+\.\d+)|(?:,? and | to )(\d+(?:\.\d+)?))\b"),
            other_forms: pattern(
                r"(?i)\bspec\.? ?§? ?\d|\bspecification(?:'s)?,? (?:section|§) ?\d|§ ?\d[\d.]* of the specification|conweave-ns3 1\.\d",
            ),
            break_in_comment: pattern(r"\n[ \t]*(?://[/!]?|#+(?:[ \t]))?[ \t]*|\\\n[ \t]*"),
        }
    }

    /// Joins the text into one line; returns it with the offsets at which further lines begin.
    fn joined(&self, text: &str) -> (String, Vec<usize>) {
        let (mut joined, mut breaks, mut from) = (String::with_capacity(text.len()), Vec::new(), 0);
        for found in self.break_in_comment.find_iter(text) {
            joined.push_str(&text[from..found.start()]);
            joined.push(' ');
            breaks.push(joined.len());
            from = found.end();
        }
        joined.push_str(&text[from..]);
        (joined, breaks)
    }

    /// Returns the number of citations in `text`, and the wrong ones: line and message.
    fn wrong(&self, text: &str, sections: &BTreeMap<String, BTreeSet<String>>) -> (usize, Vec<(usize, String)>) {
        let (text, breaks) = self.joined(text);
        let line = |at: usize| 1 + breaks.partition_point(|begin| *begin <= at);
        let other_forms = self.other_forms.find_iter(&text);
        let mut wrong: Vec<(usize, String)> = other_forms
            .map(|found| (line(found.start()), format!("`{}`: cite it like `specification 7.10`", found.as_str())))
            .collect();
        let mut cited = 0;
        for found in self.first.captures_iter(&text) {
            let mut section = found[1].to_string();
            let mut at = found.get(0).expect("the whole").end();
            loop {
                cited += 1;
                let Some(items) = sections.get(&section) else {
                    wrong.push((line(at), format!("`specification {section}`: there is no such section")));
                    break;
                };
                if let Some(label) = self.item.captures(&text[at..]) {
                    let name = label.get(1).or(label.get(2)).expect("either").as_str();
                    if !items.contains(name) {
                        wrong.push((line(at), format!("`specification {section}{}`: it has no such item", &label[0])));
                    }
                    at += label[0].len();
                }
                let Some(next) = self.next.captures(&text[at..]) else { break };
                section = next.get(1).or(next.get(2)).expect("either").as_str().to_string();
                at += next[0].len();
            }
        }
        (cited, wrong)
    }
}

#[test]
fn citations_lead_to_a_section() {
    let (sections, citations) = (specification(), Citations::new());
    let mut problems = Vec::new();
    let mut cited = 0;
    // This file contains wrong ones on purpose.
    for (path, text) in written().into_iter().filter(|(path, _)| !path.ends_with("scenario/citations.rs")) {
        let (found, wrong) = citations.wrong(&text, &sections);
        cited += found;
        problems.extend(wrong.iter().map(|(line, problem)| format!("{path}:{line}: {problem}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(cited > 250, "only {cited} citations found: has their form changed?");
}

fn explained() -> Vec<Explanation> {
    let names =
        CatalogueKind::ALL.into_iter().flat_map(catalogue).map(|entry| entry.name).chain(SECTIONS.map(String::from));
    names.map(|name| find(&name).expect("what the catalogue lists is explained")).collect()
}

#[test]
fn sources_in_explain_lead_to_a_section() {
    let (sections, citations) = (specification(), Citations::new());
    let (mut cited, mut problems) = (0, Vec::new());
    for explanation in explained() {
        let (name, text) = (&explanation.name, explanation.text(100));
        let (found, wrong) = citations.wrong(&text, &sections);
        cited += found;
        problems.extend(wrong.iter().map(|(_, problem)| format!("explain {name}: {problem}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(cited > 100, "only {cited} citations found");
}

/// `key = "word"` in the specification: the program has such a key, which takes this word.
#[test]
fn options_in_the_specification_exist() {
    let option = Regex::new(r#"^([a-z_]+) = ("[a-z-]+")$"#).expect("a pattern");
    let taken: BTreeSet<(String, String)> = explained()
        .into_iter()
        .flat_map(|explanation| explanation.parts)
        .flat_map(|part| part.parameters)
        .map(|parameter| (parameter.name.to_string(), parameter.expected))
        .collect();
    let takes = |key: &str, word: &str| taken.iter().any(|(name, expected)| name == key && expected.contains(word));
    let mut options = 0;
    for (path, text) in written().iter().filter(|(path, _)| path.starts_with("docs/specification")) {
        for event in Parser::new(text) {
            let Event::Code(code) = event else { continue };
            let Some(found) = option.captures(&code) else { continue };
            options += 1;
            assert!(takes(&found[1], &found[2]), "{path}: `{code}` is no option");
        }
    }
    assert!(options > 15, "only {options} options found");
}

#[test]
fn wrong_citations_are_detected() {
    let citations = Citations::new();
    let items = |labels: &[&str]| labels.iter().map(|l| (*l).to_string()).collect::<BTreeSet<_>>();
    let sections = BTreeMap::from([
        ("2.3".to_string(), items(&["1", "2"])),
        ("5".to_string(), items(&[])),
        ("5.4".to_string(), items(&["f"])),
    ]);
    let wrong = |text: &str| citations.wrong(text, &sections);
    assert_eq!(wrong("specification 2.3, point 2; specification\n    /// 5.4 (f) and 5, and so on").1, vec![]);
    assert_eq!(wrong("Specification 2.3, 5.4: 16 KiB").0, 2);
    for text in [
        "specification 2.4",
        "specification 2.3, 2.4",
        "specification 5 and 6",
        "specification 5.4 to 5.6",
        "specification 2.3, point 3",
        "specification\n//! 5.4 (g)",
        "spec 5.4",
        "specification §5.4",
        "§5.4 of the specification",
    ] {
        assert_eq!(wrong(text).1.len(), 1, "{text}");
        assert_eq!(wrong(&format!("a\n// b\n{text}")).1[0].0, 3 + text.matches('\n').count(), "{text}");
    }
}

#[test]
fn items_and_anchors_of_a_page() {
    let page = Page::read(
        "# 2 Hopper\n\n## 2.3 The `ack_every` rule\n\n1. one\n2. two\n   - (b) three\n\n## Notes, again\n## Notes, again\n",
    );
    assert_eq!(page.sections["2.3"].iter().collect::<Vec<_>>(), ["1", "2", "b"]);
    assert_eq!(
        page.anchors.iter().collect::<Vec<_>>(),
        ["2-hopper", "23-the-ack_every-rule", "notes-again", "notes-again-1"]
    );
}

#[test]
fn links_lead_to_a_page_and_a_heading() {
    let root = root();
    let pages: BTreeMap<String, Page> = written()
        .into_iter()
        .filter(|(path, _)| path.ends_with(".md"))
        .map(|(path, text)| {
            let page = Page::read(&text);
            (path, page)
        })
        .collect();
    let mut problems = Vec::new();
    for (path, page) in &pages {
        for (line, target) in &page.links {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { root.join(path) } else { root.join(path).with_file_name(file) };
            let Ok(file) = file.canonicalize() else {
                problems.push(format!("{path}:{line}: nothing at {target}"));
                continue;
            };
            let file = file.strip_prefix(&root).map(|f| f.to_string_lossy().into_owned()).unwrap_or_default();
            if !anchor.is_empty() && !pages.get(&file).is_some_and(|page| page.anchors.contains(anchor)) {
                problems.push(format!("{path}:{line}: no heading of {file} is reached by #{anchor}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let index: Vec<&str> = pages["docs/specification.md"].links.iter().map(|(_, target)| target.as_str()).collect();
    for page in
        pages.keys().filter_map(|path| path.strip_prefix("docs/")).filter(|path| path.starts_with("specification/"))
    {
        assert!(index.contains(&page), "docs/specification.md does not list {page}");
    }
}

#[test]
fn pages_named_in_sources_exist() {
    let named = Regex::new(r"\bdocs/[a-z0-9/-]+\.md\b").expect("a pattern");
    let root = root();
    let missing: Vec<String> = written()
        .iter()
        .flat_map(|(path, text)| named.find_iter(text).map(move |found| (path, found.as_str())))
        .filter(|(_, page)| !root.join(page).exists())
        .map(|(path, page)| format!("{path}: {page}"))
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
