//! Input that no honest user gives: files that are no files, names that no file or terminal takes, numbers without measure.
//! Every command ends soon, with one message that names what it found.

#[allow(dead_code)]
mod common;

use common::{Folder, code, stderr, stdout};
use std::{
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

/// A small scenario, with `more` at its end.
fn scenario(more: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[load_balancer]\nscheme = \"ops\"\n{more}"
    )
}

/// What a command says that may take two minutes on a loaded machine; one that blocks fails.
fn run_in_time(folder: &Folder, words: &[&str]) -> Output {
    let mut command = folder.command(words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            let _ = child.kill();
            panic!("{words:?} blocks");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// Whether the command ends with 2, nothing on standard output and a message of all `words`.
fn assert_refused(output: &Output, words: &[&str], what: &str) {
    let said = stderr(output);
    assert_eq!((code(output), stdout(output).as_str()), (2, ""), "{what}: {said}");
    for word in words {
        assert!(said.contains(word), "{what}: no {word:?} in {said}");
    }
}

/// Every input is a regular file: a FIFO nobody writes to, a device without end, a directory and a file of the kernel's are
/// named, wherever an input can be named, and directly as by a link.
#[test]
#[cfg(target_os = "linux")]
fn only_regular_files_are_read() {
    let folder = Folder::new("inputs-kinds");
    assert!(Command::new("mkfifo").arg(folder.0.join("fifo")).status().unwrap().success());
    std::fs::create_dir(folder.0.join("dir")).unwrap();
    std::os::unix::fs::symlink("fifo", folder.0.join("link")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.0.join("endless")).unwrap();
    let kinds = [
        ("fifo", "a pipe (FIFO)"),
        ("link", "a pipe (FIFO)"),
        ("endless", "a character device"),
        ("/dev/stdin", "a character device"),
        ("dir", "a directory"),
        ("/proc/self/status", "a file of /proc"),
    ];
    let permutation = "[[workload]]\nkind = \"permutation\"\nsize = \"8KiB\"\n";
    for (path, what) in kinds {
        for words in [&["run", path][..], &["check", path], &["compare", path], &["sweep", path], &["topology", path]] {
            assert_refused(&run_in_time(&folder, words), &[path, what], &format!("{words:?}"));
        }
        for format in ["csv", "conweave", "htsim-cm", "goal"] {
            let text = format!("[[workload]]\nkind = \"file\"\npath = \"{path}\"\nformat = \"{format}\"\n");
            folder.file("flows.toml", &scenario(&text));
            assert_refused(&run_in_time(&folder, &["check", "flows.toml"]), &["flows.toml", path, what], format);
        }
        let sizes = format!("[[workload]]\nkind = \"poisson\"\nsizes = \"{path}\"\nload = 0.5\nduration = \"1us\"\n");
        folder.file("sizes.toml", &scenario(&sizes));
        assert_refused(&run_in_time(&folder, &["run", "sizes.toml"]), &["sizes.toml", path, what], "sizes");
        folder.file("graph.toml", &format!("[topology]\nkind = \"file\"\npath = \"{path}\"\n{permutation}"));
        assert_refused(&run_in_time(&folder, &["run", "graph.toml"]), &["graph.toml", path, what], "topology");
        folder.file(
            "over.toml",
            &format!(
                "[sweep]\nscenario = \"{path}\"\nschemes = [\"ops\"]\n[sweep.over]\n\"workload.0.size\" = [\"1KiB\"]\n"
            ),
        );
        assert_refused(&run_in_time(&folder, &["sweep", "over.toml"]), &[path, what], "sweep");
    }
    assert!(folder.entries("results").is_empty(), "nothing is left");
    // Result files.
    folder.file("good.toml", &scenario(permutation));
    for file in ["manifest.json", "summary.json", "flows.parquet", "links.parquet"] {
        let _ = std::fs::remove_dir_all(folder.0.join("out"));
        assert_eq!(code(&folder.run(&["run", "good.toml", "--out", "out"])), 0);
        std::fs::remove_file(folder.0.join("out").join(file)).unwrap();
        std::os::unix::fs::symlink("../fifo", folder.0.join("out").join(file)).unwrap();
        assert_refused(&run_in_time(&folder, &["report", "out"]), &[file, "a pipe (FIFO)"], file);
    }
}

/// A file of people's is read up to a stated size, and one that says to be huge costs nothing.
#[test]
fn a_huge_file_is_named() {
    let folder = Folder::new("inputs-huge");
    for name in ["huge.toml", "flows.csv"] {
        std::fs::File::create(folder.0.join(name)).unwrap().set_len(8 << 40).unwrap();
    }
    let output = run_in_time(&folder, &["run", "huge.toml"]);
    assert_refused(&output, &["huge.toml", "8796093022208 B", "at most 16777216 B"], "a scenario");
    folder.file("flows.toml", &scenario("[[workload]]\nkind = \"file\"\npath = \"flows.csv\"\n"));
    assert_refused(&run_in_time(&folder, &["run", "flows.toml"]), &["flows.csv", "8796.1 GB", "memory"], "flows");
}
