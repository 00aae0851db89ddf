//! What the tests of the command share: a directory of their own, and what the command said.

use anabranch_testkit::rows;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

/// Ports and endpoints of testbeds with links of 200 Mbit/s: queues of 12 ms that mark from 60 kB on, windows of less than half of one.
#[allow(dead_code)]
pub(crate) const AT_200_MBPS: &str = r#"
[fabric]
queue_limit = "300kB"
ecn_kmin = "60kB"
ecn_kmax = "180kB"
trimming = false
[transport]
mtu = "4096B"
header = "98B"
congestion_control = "dctcp"
window = "131072B"
ack_every = 1
"#;

/// A directory of this test's own, removed at its end.
pub(crate) struct Folder(pub(crate) PathBuf, #[expect(dead_code, reason = "removes it")] TempDir);

// Each file of tests uses some of them.
#[allow(dead_code)]
impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = tempfile::Builder::new().prefix(&format!("anabranch-{name}-")).tempdir().unwrap();
        Folder(folder.path().to_path_buf(), folder)
    }
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).unwrap();
        name.to_string()
    }
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
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
    /// The rows of a CSV file.
    pub(crate) fn rows(&self, path: &str) -> Vec<BTreeMap<String, String>> {
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

/// The one JSON object on standard output.
pub(crate) fn json(output: &Output) -> Value {
    assert_eq!(code(output), 0, "{}", stderr(output));
    let value: Value = serde_json::from_str(&stdout(output)).unwrap();
    assert!(value.is_object());
    value
}

/// Returns `true`, having reported the skip, if the command found that there can be no testbed of namespaces here.
#[allow(dead_code)]
pub(crate) fn has_no_testbed(output: &Output) -> bool {
    code(output) == 2 && anabranch_testkit::has_no_testbed(&stderr(output))
}

pub(crate) fn assert_has(value: &Value, keys: &[&str]) {
    for key in keys {
        let found = key.split('.').try_fold(value, |at, part| at.get(part));
        assert!(found.is_some(), "no {key} in {value:#}");
    }
}
