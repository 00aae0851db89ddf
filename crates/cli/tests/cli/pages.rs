//! Shell blocks of the pages do what the pages state. A block after `<!-- run -->` is executed, after `<!-- run: slow -->` in
//! the slow check only, after `<!-- run: testbed -->` where testbeds of namespaces can be built. Lines of a block after `<!-- shows -->` must occur in the output of the preceding run block
//! (`...` matches any lines). The blocks of a page share a folder.

use crate::common::Folder;
use std::{path::Path, process::Command};

fn pages() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec!["README.md".to_string()];
    for folder in ["docs", "docs/tutorials", "docs/how-to", "docs/reference", "docs/explanation", "docs/evidence"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                pages.push(format!("{folder}/{name}"));
            }
        }
    }
    pages.retain(|page| text(page).replace("<!-- run: own scheme", "").contains("<!-- run"));
    pages.sort();
    pages
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Run,
    Slow,
    Testbed,
    Shows,
}

type Block = (usize, Mark, String);

fn text(page: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page)).unwrap()
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut mark, mut open): (Vec<Block>, Option<Mark>, bool) = (vec![], None, false);
    let mut is_workflow = false;
    for (number, line) in text(page).lines().enumerate() {
        let bare = line.trim();
        match (bare, open) {
            ("<!-- run -->", false) => mark = Some(Mark::Run),
            ("<!-- run: slow -->", false) => mark = Some(Mark::Slow),
            ("<!-- run: testbed -->", false) => mark = Some(Mark::Testbed),
            ("<!-- shows -->", false) => mark = Some(Mark::Shows),
            // The tests of `own_scheme` run them.
            ("<!-- run: own scheme -->", false) => {}
            (fence, false) if fence.starts_with("```") && mark.is_some() => {
                blocks.push((number + 1, mark.unwrap_or(Mark::Shows), String::new()));
                (open, is_workflow) = (true, fence == "```yaml");
            }
            ("```", true) => {
                if let Some(block) = blocks.last_mut().filter(|_| is_workflow) {
                    block.2 = steps(&block.2);
                }
                (mark, open) = (None, false);
            }
            (_, true) => {
                let block = blocks.last_mut().unwrap();
                block.2 += &format!(
                    "{}\n",
                    line.strip_prefix("   ").filter(|_| line.starts_with("   anabranch")).unwrap_or(line)
                );
            }
            ("", false) => {}
            _ => assert!(mark.is_none(), "{page}:{}: a mark without a block", number + 1),
        }
    }
    blocks
}

/// Command lines of a workflow of continuous integration but those that install the program: `- run: LINE`, or `- run: >-` with the
/// words of one line below it.
fn steps(workflow: &str) -> String {
    let parts = workflow.split("\n      - ").filter_map(|step| step.strip_prefix("run: "));
    let line = |step: &str| step.trim_start_matches(">-").split_whitespace().collect::<Vec<_>>().join(" ");
    parts.map(line).filter(|line| !line.starts_with("cargo install")).collect::<Vec<_>>().join("\n")
}

/// Runs a block; its output and whether it succeeded. Programs in the background outlive the block.
fn run(folder: &Folder, block: &str) -> (bool, String) {
    let command = Path::new(env!("CARGO_BIN_EXE_anabranch"));
    let path = format!("{}:{}", command.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let script = block.replace("cargo run --release -p anabranch --", "anabranch");
    let status = Command::new("sh")
        .args(["-e", "-c", &format!("exec >output 2>&1\n{script}")])
        .current_dir(&folder.0)
        .env("PATH", path)
        .env_remove("COLUMNS")
        .status()
        .unwrap();
    (status.success(), String::from_utf8_lossy(&std::fs::read(folder.0.join("output")).unwrap()).into_owned())
}

/// Asserts that the lines of `quoted` occur in `message` in this order and consecutively, except at `...`.
fn shows(place: &str, quoted: &str, message: &str) {
    let message: Vec<&str> = message.lines().map(str::trim_end).collect();
    let mut at = None;
    for line in quoted.lines().map(str::trim_end) {
        if line == "..." {
            at = at.map(|(_, next)| (false, next));
            continue;
        }
        let found = match at {
            // The first line, and one after `...`, may be anywhere further down.
            None => message.iter().position(|other| *other == line),
            Some((false, next)) => message[next..].iter().position(|other| *other == line).map(|found| found + next),
            Some((true, next)) => (message.get(next) == Some(&line)).then_some(next),
        };
        let found = found.unwrap_or_else(|| panic!("{place}: `{line}` is not what comes out:\n{}", message.join("\n")));
        at = Some((true, found + 1));
    }
}

fn check(slow: bool) -> usize {
    let mut run_blocks = 0;
    for page in &pages() {
        let folder = Folder::new(&format!("pages-{slow}-{}", page.replace(['/', '.'], "-")));
        let mut message: Option<String> = None;
        for (line, mark, block) in blocks(page) {
            match mark {
                // Slow blocks may use files of the others.
                Mark::Run | Mark::Slow if slow || mark == Mark::Run => {
                    let (succeeded, output) = run(&folder, &block);
                    assert!(succeeded, "{page}:{line}\n{block}\n{output}");
                    message = Some(output);
                    run_blocks += 1;
                }
                Mark::Shows => {
                    if let Some(message) = &message {
                        shows(&format!("{page}:{line}"), &block, message);
                    }
                }
                Mark::Run | Mark::Slow | Mark::Testbed => message = None,
            }
        }
        if slow && page == "README.md" {
            readme_numbers(&folder);
        }
    }
    run_blocks
}

/// Asserts the four numbers that the README quotes of its first result.
fn readme_numbers(folder: &Folder) {
    let rows = folder.rows("results/first-run/comparison.csv");
    let of = |wanted: &str| {
        let row = rows.iter().find(|row| row["scheme"] == wanted && row["metric"] == "fct_ratio_max").unwrap();
        row["mean"].parse::<f64>().unwrap()
    };
    let message = text("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = format!(
        "takes {:.1} times its ideal under ECMP, {:.1} under random spraying, {:.1} under REPS, {:.1} under PRIME",
        of("ecmp"),
        of("ops"),
        of("reps"),
        of("prime")
    );
    assert!(message.contains(&expected), "README.md should say: {expected}");
}

#[test]
fn quick_shell_blocks_of_the_pages() {
    let run_blocks = check(false);
    assert!(run_blocks >= 8, "only {run_blocks} blocks are marked");
}

/// Without `sudo`, in a runtime directory of their own: other programs do not list these testbeds, and theirs remain.
#[test]
fn testbed_blocks_of_the_pages() {
    const OWN: &str = "export XDG_RUNTIME_DIR=$PWD/runtime\nmkdir -p -m 700 runtime\nsudo() { \"$@\"; }\n";
    let (_turn, mut run_blocks) = (anabranch_testkit::turn(), 0);
    for page in &pages() {
        let folder = Folder::new(&format!("testbed-{}", page.replace(['/', '.'], "-")));
        for (line, _, block) in blocks(page).into_iter().filter(|(_, mark, _)| *mark == Mark::Testbed) {
            let (succeeded, output) = run(&folder, &format!("{OWN}{block}"));
            if !succeeded {
                run(&folder, &format!("{OWN}anabranch testbed down"));
                if run_blocks == 0 && anabranch_testkit::has_no_testbed(&output) {
                    return;
                }
            }
            assert!(succeeded, "{page}:{line}\n{block}\n{output}");
            run_blocks += 1;
        }
    }
    assert_eq!(run_blocks, 5, "blocks of the tutorial and of the how-to page");
}

#[test]
#[ignore = "a minute: all shell blocks, with the numbers that README and first-run.md quote"]
fn all_shell_blocks_of_the_pages() {
    check(true);
}

#[test]
fn quotes_are_compared_with_output() {
    let message = "a\nb\nc\nd\n";
    shows("x", "b\nc\n", message);
    shows("x", "a\n...\nd\n", message);
    for wrong in ["b\nd\n", "e\n", "d\n...\na\n", "a\nb \nx\n"] {
        assert!(std::panic::catch_unwind(|| shows("x", wrong, message)).is_err(), "{wrong}");
    }
}
