//! The page of commands has what `--help` prints, options of many commands once. `ANABRANCH_RECORD=1` writes it.

use regex_lite::Regex;
use std::{collections::BTreeMap, fmt::Write, fs, path::Path, process::Command};

/// An option is common from this number of commands on.
const COMMON: usize = 4;

fn help(words: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(words)
        .arg("--help")
        .env("COLUMNS", "100")
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Names in a `Commands:` section, or in a section of a group of commands: lines indented by two columns.
fn subcommands(help: &str) -> Vec<String> {
    let sections = help.split("\n\n").filter(|section| {
        let title = section.lines().next().unwrap_or_default();
        title.ends_with(':') && !["Options:", "Arguments:", "Usage:"].contains(&title)
    });
    let lines = sections.flat_map(|section| section.lines().skip(1));
    lines
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && *word != "help")
        .filter(|word| !word.starts_with('-'))
        .map(str::to_string)
        .collect()
}

/// An argument or option, and its meaning.
type Entry = (String, String);

#[derive(Default)]
struct Help {
    words: Vec<String>,
    /// Meaning and usage.
    head: String,
    arguments: Vec<Entry>,
    options: Vec<Entry>,
}

/// Reads the entries of a section, each on a line or with its meaning below.
fn entries(section: &str) -> Vec<Entry> {
    let begin = Regex::new(r"^ {2,6}((?:-\w, )?--\S.*?|\[\S.*?|<\S.*?)(?: {2,}(.*))?$").unwrap();
    let mut all: Vec<Entry> = Vec::new();
    for line in section.lines().skip(1).filter(|line| !line.is_empty()) {
        match (begin.captures(line), all.last_mut()) {
            (Some(found), _) => {
                all.push((found[1].into(), found.get(2).map_or_else(String::new, |of| of.as_str().into())));
            }
            (None, Some((_, meaning))) => *meaning = format!("{meaning} {}", line.trim()).trim().to_string(),
            (None, None) => panic!("{line}"),
        }
    }
    let value = Regex::new(r" - ([a-z0-9-]+): +").unwrap();
    let listed = |meaning: String| match meaning.split_once(" Possible values:") {
        Some((meaning, values)) => {
            format!("{meaning}: {}", value.replace_all(values, "; $1: ").trim_start_matches("; "))
        }
        None => meaning,
    };
    all.into_iter().map(|(name, meaning)| (name, listed(meaning))).collect()
}

fn read(words: &[String]) -> (Help, Vec<String>) {
    let text = help(words);
    let mut read = Help { words: words.to_vec(), ..Help::default() };
    let sections = Regex::new(r"\n\n([A-Z][a-z ]*:\n)").unwrap().replace_all(&text, "\n\0$1").into_owned();
    for section in sections.split('\0') {
        match section.lines().next() {
            Some("Options:") => read.options = entries(section),
            Some("Arguments:") => read.arguments = entries(section),
            // The groups of commands are the sections below.
            Some(title) if words.is_empty() && title.ends_with(':') => {}
            _ => read.head += &format!("{}\n\n", section.trim_end()),
        }
    }
    (read, subcommands(&text))
}

fn read_all(words: &[String], all: &mut Vec<Help>) {
    let (help, below) = read(words);
    all.push(help);
    for name in below {
        read_all(&[words, &[name]].concat(), all);
    }
}

fn write_entry(page: &mut String, (name, meaning): &Entry) {
    let options = textwrap::Options::new(100).initial_indent("  ").subsequent_indent("      ");
    let _ = writeln!(page, "{}", textwrap::fill(&format!("{name}: {meaning}"), options));
}

#[test]
fn commands_page_matches_help() {
    let mut all = Vec::new();
    read_all(&[], &mut all);
    let mut used = BTreeMap::<&Entry, usize>::new();
    let entries = all.iter().flat_map(|help| help.arguments.iter().chain(&help.options));
    entries.for_each(|entry| *used.entry(entry).or_default() += 1);
    let is_common = |entry: &&Entry| used[*entry] >= COMMON;
    let is_of_all = |entry: &&&Entry| ["-h, --help", "-q, --quiet"].contains(&entry.0.as_str());
    let mut page = "<!-- Written by `ANABRANCH_RECORD=1 cargo test --profile fast -p anabranch commands_page::`; not to be \
                    edited. -->\n\n# Commands\n\nWhat `--help` prints, command by command. `anabranch man DIR` writes manual \
                    pages.\n\n## Common options\n\nEvery command has `--help` and `--quiet`. These arguments and options of \
                    several commands are listed once:\n\n```text\n"
        .to_string();
    for entry in used.keys().filter(|entry| is_common(entry) && !is_of_all(entry)) {
        write_entry(&mut page, entry);
    }
    page += "```\n\n";
    for help in &all {
        let title = [&["anabranch".to_string()][..], &help.words].concat().join(" ");
        let depth = if help.words.len() > 1 { "###" } else { "##" };
        let _ = write!(page, "{depth} {title}\n\n```text\n{}\n", help.head.trim_end());
        let (common, own): (Vec<&Entry>, Vec<&Entry>) = help.options.iter().partition(is_common);
        let arguments: Vec<&Entry> = help.arguments.iter().filter(|entry| !is_common(entry)).collect();
        for (title, entries) in [("Arguments", arguments), ("Options", own)] {
            if !entries.is_empty() {
                let _ = write!(page, "\n{title}:\n");
                entries.into_iter().for_each(|entry| write_entry(&mut page, entry));
            }
        }
        let named = common.iter().filter(|entry| !is_of_all(entry));
        let names: Vec<&str> = named.filter_map(|(name, _)| name.split_whitespace().next()).collect();
        if !names.is_empty() {
            let common = textwrap::fill(&format!("Common options: {}", names.join(", ")), 100);
            let _ = write!(page, "\n{common}\n");
        }
        page += "```\n\n";
    }
    let page = format!("{}\n", page.trim_end());
    assert!(
        page.contains("## anabranch compare\n") && page.contains("### anabranch testbed up\n"),
        "commands are missing"
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    if std::env::var_os("ANABRANCH_RECORD").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/reference/commands.md is stale: run this test with ANABRANCH_RECORD=1");
}
