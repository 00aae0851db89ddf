//! The page of commands is what `--help` prints. `ANABRANCH_RECORD=1` writes it.

use std::{fs, path::Path, process::Command};

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

fn add(page: &mut String, words: &[String], depth: usize) {
    let text = help(words);
    let title = if words.is_empty() { "anabranch".to_string() } else { format!("anabranch {}", words.join(" ")) };
    *page += &format!("{} {title}\n\n```text\n{}\n```\n\n", "#".repeat(depth), text.trim());
    for name in subcommands(&text) {
        let words: Vec<String> = words.iter().cloned().chain([name]).collect();
        add(page, &words, if depth == 2 && words.len() == 1 { 2 } else { 3 });
    }
}

#[test]
fn commands_page_matches_help() {
    let mut page = "<!-- Written by `ANABRANCH_RECORD=1 cargo test --profile fast -p anabranch commands_page::`; not to be \
                    edited. -->\n\n# Commands\n\nWhat `--help` prints, command by command. `anabranch man DIR` writes the same as \
                    manual pages.\n\n"
        .to_string();
    add(&mut page, &[], 2);
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
