//! Idioms per 100 comment lines and per 1,000 words of pages, and doc comments that begin with a question word. `idioms.toml`
//! lists idioms. Code, literals and tables do not count. `.ci/prose` allows no idiom at all in text that people write; this test
//! needs no linter, and counts generated text too.

use regex_lite::Regex;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Per 100 comment lines, or per 1,000 words of a page.
const MAX_IDIOMS: f64 = 1.0;
/// In percent of doc comments.
const MAX_QUESTIONS: f64 = 3.0;
const QUESTIONS: &str = "^(What|Whether|Who|How|Which|Where|When|Why)\\b";

#[derive(Deserialize)]
struct Idioms {
    idiom: Vec<Idiom>,
    allowed: Vec<Allowed>,
}

#[derive(Deserialize)]
struct Idiom {
    pattern: String,
    instead: String,
}

/// A phrase that is not counted.
#[derive(Deserialize)]
struct Allowed {
    pattern: String,
}

#[derive(Default)]
struct Count {
    lines: usize,
    idioms: usize,
    items: usize,
    questions: usize,
    examples: Vec<String>,
}

impl Count {
    fn rate(&self, per: f64) -> f64 {
        per * self.idioms as f64 / self.lines.max(1) as f64
    }
}

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")).unwrap()
}

struct Patterns {
    /// With what to write instead.
    idioms: Vec<(Regex, String)>,
    allowed: Vec<Regex>,
}

fn patterns() -> Patterns {
    let Idioms { idiom, allowed } = toml::from_str(include_str!("../idioms.toml")).unwrap();
    let of = |pattern: &str| Regex::new(&format!("(?i){pattern}")).unwrap();
    Patterns {
        idioms: idiom.into_iter().map(|idiom| (of(&idiom.pattern), idiom.instead)).collect(),
        allowed: allowed.iter().map(|allowed| of(&allowed.pattern)).collect(),
    }
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && !path.ends_with("target") {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|there| there == extension) {
            found.push(path);
        }
    }
}

fn prose(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("code")
}

fn count_idioms(text: &str, place: &str, patterns: &Patterns, count: &mut Count) {
    let mut text = prose(text);
    for allowed in &patterns.allowed {
        text = allowed.replace_all(&text, "allowed").into_owned();
    }
    for (pattern, instead) in &patterns.idioms {
        for found in pattern.find_iter(&text) {
            count.idioms += 1;
            if count.examples.len() < 8 {
                count.examples.push(format!("{place}: \"{}\": {instead}", found.as_str()));
            }
        }
    }
}

fn comments(path: &Path, patterns: &Patterns, count: &mut Count) {
    let question = Regex::new(QUESTIONS).unwrap();
    let mut before_was_doc = false;
    for (number, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("//") else {
            before_was_doc = false;
            continue;
        };
        let doc = comment.starts_with(['/', '!']);
        let text = comment.trim_start_matches(['/', '!']).trim();
        count.lines += 1;
        if doc && !before_was_doc {
            count.items += 1;
            count.questions += usize::from(question.is_match(text));
        }
        before_was_doc = doc;
        count_idioms(text, &format!("{}:{}", path.display(), number + 1), patterns, count);
    }
}

/// Records a rate above its limit.
fn judge(name: &str, rate: f64, limit: f64, examples: &[String], bad: &mut Vec<String>) {
    if rate > limit {
        bad.push(format!("{name}: {rate:.1}, allowed {limit:.1}\n  {}", examples.join("\n  ")));
    }
}

#[test]
fn comments_are_plain() {
    let (root, patterns) = (root(), patterns());
    let mut crates = BTreeMap::<String, Count>::new();
    let mut paths = Vec::new();
    files(&root.join("crates"), "rs", &mut paths);
    files(&root.join("python/native"), "rs", &mut paths);
    for path in paths {
        let words: Vec<String> =
            path.strip_prefix(&root).unwrap().iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let name = if words[1] == "cli" || words[0] == "python" { &words[1] } else { &words[2] };
        comments(&path, &patterns, crates.entry(name.clone()).or_default());
    }
    let mut bad = Vec::new();
    println!("{:12} {:>8} {:>12} {:>12}", "crate", "comments", "idioms/100", "questions %");
    for (name, count) in &crates {
        let (rate, questions) = (count.rate(100.0), 100.0 * count.questions as f64 / count.items.max(1) as f64);
        println!("{name:12} {:8} {rate:12.1} {questions:12.1}", count.lines);
        judge(name, rate, MAX_IDIOMS, &count.examples, &mut bad);
        judge(&format!("{name}-questions"), questions, MAX_QUESTIONS, &[], &mut bad);
    }
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}

#[test]
fn pages_are_plain() {
    let (root, patterns) = (root(), patterns());
    let mut paths = Vec::new();
    files(&root.join("docs"), "md", &mut paths);
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"] {
        paths.push(root.join(page));
    }
    let (mut bad, mut all) = (Vec::new(), Count::default());
    for path in paths {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let mut count = Count::default();
        let mut code = false;
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            code ^= line.trim_start().starts_with("```");
            if code || line.starts_with('|') || line.starts_with("<!--") {
                continue;
            }
            count.lines += prose(line).split_whitespace().count();
            count_idioms(line, &format!("{name}:{}", number + 1), &patterns, &mut count);
        }
        println!("{name:50} {:6} words {:6.1}", count.lines, count.rate(1000.0));
        all.lines += count.lines;
        all.idioms += count.idioms;
        all.examples.extend(count.examples.into_iter().take(2));
    }
    println!("{:50} {:6} words {:6.1}", "all pages", all.lines, all.rate(1000.0));
    all.examples.truncate(20);
    judge("docs", all.rate(1000.0), MAX_IDIOMS, &all.examples, &mut bad);
    assert!(bad.is_empty(), "\n{}", bad.join("\n"));
}
