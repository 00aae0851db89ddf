//! Shared by the tests of the program: temporary folders, runs of the program, outputs.
// No program of tests uses all of them.
#![allow(dead_code)]

pub(crate) mod testbed;

pub(crate) use anabranch_testkit::assert_contains;
use anabranch_testkit::rows;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

/// Folder of one test, removed on drop.
pub(crate) struct Folder(pub(crate) PathBuf, #[expect(dead_code, reason = "removes it")] TempDir);

/// Arguments: a list, or a line of words.
pub(crate) trait Words {
    fn words(&self) -> Vec<&str>;
}

impl Words for str {
    fn words(&self) -> Vec<&str> {
        anabranch_testkit::words(self)
    }
}

impl Words for String {
    fn words(&self) -> Vec<&str> {
        anabranch_testkit::words(self)
    }
}

impl Words for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Words for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

impl<const N: usize> Words for [&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

/// Row of a CSV file, by column.
pub(crate) type Row = BTreeMap<String, String>;

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = tempfile::Builder::new().prefix(&format!("anabranch-{name}-")).tempdir().unwrap();
        Folder(folder.path().to_path_buf(), folder)
    }
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).unwrap();
        name.to_string()
    }
    /// Seals the results in `directory` again after a test has changed them, and changes their manifest by `edit`.
    pub(crate) fn reseal(&self, directory: &str, edit: &dyn Fn(&mut serde_json::Value)) {
        let path = format!("{directory}/manifest.json");
        let Ok(mut manifest) = serde_json::from_slice::<serde_json::Value>(&std::fs::read(self.0.join(&path)).unwrap())
        else {
            return;
        };
        for file in manifest["files"].as_array_mut().unwrap() {
            let own = self.0.join(directory).join(file["name"].as_str().unwrap_or_default());
            if let Some(bytes) = std::fs::read(own).ok().filter(|_| file["blake3"].is_string()) {
                let content = anabranch_results::Content::of(&bytes);
                (file["bytes"], file["blake3"]) = (content.bytes.into(), content.blake3.into());
            }
        }
        edit(&mut manifest);
        self.file(&path, &anabranch_results::resealed(&format!("{manifest:#}")));
    }
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
    /// Runs the words of a line.
    pub(crate) fn line(&self, line: &str) -> Output {
        self.run(&anabranch_testkit::words(line))
    }
    /// Runs a command that succeeds.
    pub(crate) fn ok(&self, arguments: &(impl Words + ?Sized)) -> Output {
        self.ends(arguments, 0, &[])
    }
    /// Runs a command that prints one JSON object.
    pub(crate) fn json(&self, arguments: &(impl Words + ?Sized)) -> Value {
        json(&self.run(&[&arguments.words()[..], &["--format", "json"]].concat()))
    }
    /// Runs a command that is refused with these words on standard error.
    pub(crate) fn refused(&self, arguments: &(impl Words + ?Sized), words: &[&str]) {
        self.ends(arguments, 2, words);
    }
    /// Runs a command that ends with this exit code and these words on standard error.
    pub(crate) fn ends(&self, arguments: &(impl Words + ?Sized), exit: i32, words: &[&str]) -> Output {
        let output = self.run(&arguments.words());
        assert_output(&output, exit, words);
        output
    }
    /// Runs a command that ends with this exit code and these words on standard output.
    pub(crate) fn prints(&self, arguments: &(impl Words + ?Sized), exit: i32, words: &[&str]) -> Output {
        let output = self.ends(arguments, exit, &[]);
        assert_contains(&stdout(&output), words);
        output
    }
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.0.join(path).exists()
    }
    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.0.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.0.join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
    /// Runs the program with the backends `sim` and `sleep` (`examples/sleep_backend.rs`).
    pub(crate) fn run_with_sleep(&self, arguments: &[&str]) -> Output {
        let beside = Path::new(env!("CARGO_BIN_EXE_anabranch")).parent().unwrap();
        let mut command = Command::new(beside.join("examples/sleep_backend"));
        command.args(arguments).current_dir(&self.0).stdin(Stdio::null()).output().unwrap()
    }
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command
    }
    pub(crate) fn entries(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.0.join(path)) else { return Vec::new() };
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
    pub(crate) fn rows(&self, path: &str) -> Vec<Row> {
        let path = self.0.join(path);
        rows(&std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }
    pub(crate) fn json_file(&self, path: &str) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.0.join(path)).unwrap()).unwrap()
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// An error or warnings in one line.
pub(crate) fn stderr_words(output: &Output) -> String {
    stderr(output).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

/// A command ended with this exit code and these words on standard error.
pub(crate) fn assert_output(output: &Output, exit: i32, words: &[&str]) {
    let text = stderr_words(output);
    assert_eq!(code(output), exit, "{}{text}", stdout(output));
    assert_contains(&text, words);
}

/// Parses standard output, which must be one JSON object.
pub(crate) fn json(output: &Output) -> Value {
    assert_eq!(code(output), 0, "{}", stderr(output));
    let value: Value = serde_json::from_str(&stdout(output)).unwrap();
    assert!(value.is_object());
    value
}

pub(crate) fn assert_has(value: &Value, keys: &[&str]) {
    for key in keys {
        let found = key.split('.').try_fold(value, |at, part| at.get(part));
        assert!(found.is_some(), "no {key} in {value:#}");
    }
}
