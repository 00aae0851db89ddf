//! Messages of the program in one file, `messages.txt`: a line each, after the command that causes it.
//! `ANABRANCH_RECORD=1` writes it again; read the difference as a newcomer would: what, where, limit, remedy.

use crate::common::{Folder, code, stderr, stdout};
use regex_lite::Regex;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const FILES: &[(&str, &str)] = &[
    (
        "size.toml",
        "[topology]\nkind = \"fat-tree\"\nradix = 4\n[[workload]]\nkind = \"permutation\"\nsize = \"64 parsec\"\n",
    ),
    ("key.toml", "[topology]\nkind = \"leaf-spine\"\nleafs = 3\n"),
    ("three.toml", "[topology]\nkind = \"fat-tree\"\ntires = 2\nradix = \"four\"\n[run]\nuntl = 1\n"),
    ("syntax.toml", "kind = fat-tree"),
    ("sweep.toml", "[sweep]\nscenario = \"tiny\"\nover = { workload.0.size = [\"32KiB\"] }\n"),
    ("sweep-key.toml", "[sweep]\nscenario = \"tiny\"\nover = { workload.0.size = \"32KiB\" }\nseed = 3\n"),
    ("sweep-empty.toml", "[sweep]\nscenario = \"tiny\"\n"),
    ("sweep-both.toml", "seed = 1\n[sweep]\nscenario = \"tiny\"\nover = { workload.0.size = \"32KiB\" }\n"),
    ("rails.toml", "[topology]\nkind = \"rail-only\"\n[[workload]]\nkind = \"permutation\"\n"),
    ("taken", "a file"),
    (
        "jobs.toml",
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 6\n[[workload]]\nkind = \"collective\"\n",
    ),
    ("twice.txt", "0 1 2 3\n4 5 6 1\n"),
    ("unknown.txt", "0 1 2 12\n4 5 6 7\n"),
    ("two.goal", "num_ranks 2\nrank 0 {\nsend 9b to 1\n}\nrank 1 {\nrecv 9b from 0\n}\n"),
];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages.txt")
}

/// Returns the messages of standard error without the excerpt of the source and clap's usage, a line each.
fn messages(text: &str, folder: &Path) -> Vec<String> {
    let excerpt = Regex::new(r"^\s*(\d+ │|·|╰|│)").unwrap();
    let count = Regex::new(r"nearest of \d+").unwrap();
    let size = Regex::new(r" \([\d.]+ [kMG]?B\)").unwrap();
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !excerpt.is_match(line)) {
        let line = line.trim();
        if line.is_empty() || line.starts_with("Usage:") || line.starts_with("For more information") {
            continue;
        }
        let line = line.replace(&folder.display().to_string(), "DIR");
        let line = count.replace_all(&line, "nearest of N").into_owned();
        let line = size.replace_all(&line, " (SIZE)").into_owned();
        let part_of_last = ["help:", "tip:", "╭─[", "[possible values"].iter().any(|mark| line.starts_with(mark));
        let line = line.strip_prefix("× ").unwrap_or(&line).replace("╭─[", "at [");
        match lines.last_mut() {
            Some(last) if part_of_last => *last += &format!(" | {line}"),
            _ => lines.push(line),
        }
    }
    lines
}

fn run(folder: &Folder, command: &str) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_anabranch"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(&folder.0).env("PATH", path).env("COLUMNS", "80").stdin(Stdio::null());
    let before = folder.entries("");
    let output = shell.output().unwrap();
    let (exit, text) = (code(&output), stderr(&output));
    assert!(!text.contains('\u{1b}'), "colours without a terminal: {text:?}");
    if exit == 2 && command.starts_with("anabranch ") {
        // What is refused prints no result and writes nothing.
        assert_eq!((stdout(&output), folder.entries("")), (String::new(), before), "{command}");
    }
    let mut found = vec![format!("exit code {exit}")];
    found.extend(messages(&text, &folder.0));
    found
}

#[test]
fn messages_match_file() {
    let folder = Folder::new("messages");
    FILES.iter().for_each(|(name, text)| drop(folder.file(name, text)));
    fs::create_dir(folder.0.join("empty")).unwrap();
    let expected = fs::read_to_string(golden()).unwrap();
    let mut text = String::new();
    let mut replaces = false;
    for line in expected.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let found = run(&folder, command);
            text += &format!("{line}\n{}\n\n", found.join("\n"));
            replaces = true;
        } else if line.starts_with('#') {
            replaces = false;
            text += &format!("{line}\n");
        } else if !replaces {
            text += &format!("{line}\n");
        }
    }
    let text = text.trim_end().to_string() + "\n";
    if std::env::var_os("ANABRANCH_RECORD").is_some() {
        fs::write(golden(), &text).unwrap();
    }
    for (found, expected) in text.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(text.lines().count(), expected.lines().count());
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() { sources(&entry, found) } else { found.push(entry) }
    }
}

/// Options are those of a command; variables are for messages of what reads them, the plugin and its commands.
#[test]
fn messages_name_options_and_variables_that_exist() {
    let cli = Path::new(env!("CARGO_MANIFEST_DIR"));
    let commands = fs::read_to_string(cli.join("../../docs/reference/commands.md")).unwrap();
    let option = Regex::new(r"(?:^|[\s`(=])--([a-z][a-z-]+)").unwrap();
    let known: Vec<String> = option.captures_iter(&commands).map(|found| found[1].to_string()).collect();
    let (string, variable) =
        (Regex::new(r#""(?:[^"\\]|\\[\s\S])*""#).unwrap(), Regex::new(r#"^"ANABRANCH_[A-Z_]*"$"#).unwrap());
    let mut wrong = String::new();
    for (folder, is_cli) in
        [("cli/src", true), ("core", false), ("simulator", false), ("studies", false), ("network", false)]
    {
        let mut files = Vec::new();
        sources(&cli.join("..").join(folder), &mut files);
        let plugin = ["/tests/", "build.rs", "network/nccl", "network/collective"];
        files.retain(|file| file.extension().is_some_and(|of| of == "rs"));
        for file in
            files.iter().map(|file| file.to_str().unwrap()).filter(|file| !plugin.iter().any(|of| file.contains(of)))
        {
            let text = fs::read_to_string(file).unwrap();
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().replace("'\"'", "");
            let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            for literal in string.find_iter(&code.join("\n")).map(|found| found.as_str()) {
                let options = option.captures_iter(literal).map(|found| found[1].to_string());
                // Cargo has its own.
                if is_cli && !literal.contains("cargo ") && options.into_iter().any(|name| !known.contains(&name)) {
                    wrong += &format!("{file}: no command has this option: {literal}\n");
                }
                if !is_cli && literal.contains("ANABRANCH_") && !variable.is_match(literal) {
                    wrong += &format!("{file}: names a variable: {literal}\n");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Every command line that a message proposes with arguments is one, with values for its placeholders.
#[test]
fn proposed_command_lines_are_command_lines() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    let mut proposed = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() && !entry.ends_with("tests") && !entry.ends_with("target") {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&entry).unwrap();
                let code =
                    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
                let lines = code.split('`').filter(|line| line.starts_with("anabranch ")).map(str::to_string);
                proposed.extend(lines.map(|line| (line, entry.clone())));
            }
        }
    }
    assert!(proposed.len() > 20, "{proposed:?}");
    let is_placeholder =
        |word: &&str| word.contains('{') || word.chars().all(|c| c.is_uppercase() || "./[]".contains(c));
    let refused: Vec<String> = proposed
        .iter()
        .filter_map(|(line, file)| {
            let words = line.split_whitespace().filter(|word| *word != "\\");
            // What is appended to a word is an option, as in `down{name}`.
            let word = |word| {
                if is_placeholder(&word) && !word.starts_with(char::is_lowercase) {
                    "1"
                } else {
                    word.split('{').next().unwrap_or(word)
                }
            };
            let words: Vec<&str> = words.map(word).collect();
            // The name of a command alone is not a line to enter.
            let is_name = words.iter().all(|word| !word.starts_with('-') && *word != "1");
            let refusal = anabranch::refusal(&words).filter(|refusal| !is_name || refusal.contains("unrecognized"));
            refusal.map(|refusal| format!("`{line}` in {}: {refusal}", file.display()))
        })
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
