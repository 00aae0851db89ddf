//! `tools/htsim`: both simulators on the same files. The other one is a stand-in here.

use crate::common::Folder;
use anabranch_testkit::skip;
use std::{
    path::Path,
    process::{Command, Output},
};

/// Two leaves with two hosts each; a flow from host 0 to host 2.
const TOPOLOGY: &str = "Nodes 4\nTiers 2\nPodsize 4\nTier 0\nDownlink_speed_Gbps 400\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\n\
                        Switch_Latency_ns 0\nTier 1\nDownlink_speed_Gbps 400\nRadix_Down 2\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 0\n";
const CONNECTIONS: &str = "Nodes 4\nConnections 1\n0->2 id 1 start 0 size 65536\n";

/// `None` without Python.
fn tool(folder: &Folder, words: &[&str]) -> Option<Output> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/htsim");
    let mut command = Command::new("python3");
    command.arg(tool).args([
        "flat.topo",
        "one.cm",
        "--repetitions",
        "2",
        "--anabranch",
        env!("CARGO_BIN_EXE_anabranch"),
    ]);
    match command.args(words).current_dir(&folder.0).output() {
        Err(error) => {
            skip(format!("running python3: {error}"), "install python3");
            None
        }
        Ok(output) => Some(output),
    }
}

#[test]
fn both_run_on_the_same_files() {
    let folder = Folder::new("htsim");
    folder.file("flat.topo", TOPOLOGY);
    folder.file("one.cm", CONNECTIONS);
    // The stand-in works for a while and notes its arguments.
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; echo \"$@\" >> ARGUMENTS";
    let script = script.replace("ARGUMENTS", &folder.0.join("arguments").display().to_string());
    let words = ["--", "sh", "-c", &script, "htsim", "-topo", "{topology}", "-tm", "{connections}"];
    let Some(output) = tool(&folder, &words) else { return };
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    let numbers = |name: &str| -> Vec<f64> {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
        line.split_whitespace().skip(1).map(|word| word.parse().expect("a number")).collect()
    };
    for name in ["htsim ", "anabranch "] {
        assert!(numbers(name).len() == 3 && numbers(name).iter().all(|number| *number > 0.0), "{text}");
    }
    assert!(text.contains("1 of 1 flows finished") && text.contains("htsim over anabranch: wall "), "{text}");
    let arguments = std::fs::read_to_string(folder.0.join("arguments")).expect("two lines");
    let expected = format!("-topo {0}/flat.topo -tm {0}/one.cm", folder.0.canonicalize().expect("a folder").display());
    assert_eq!(arguments.lines().collect::<Vec<_>>(), [&expected, &expected]);
}

#[test]
fn what_is_not_there_is_named() {
    let folder = Folder::new("htsim");
    folder.file("one.cm", CONNECTIONS);
    let Some(output) = tool(&folder, &[]) else { return };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("flat.topo is no file"), "{errors}");
    folder.file("flat.topo", TOPOLOGY);
    let output = tool(&folder, &["--", "no-such-simulator"]).expect("Python");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("no-such-simulator is not there"), "{errors}");
    let output = tool(&folder, &["--", "false"]).expect("Python");
    assert!(output.status.code() == Some(1) && String::from_utf8_lossy(&output.stderr).contains("exit code 1"));
    let alone = tool(&folder, &[]).expect("Python");
    let text = String::from_utf8_lossy(&alone.stdout);
    assert!(
        alone.status.success() && text.contains("htsim was not run") && text.contains("1 of 1 flows finished"),
        "{text}"
    );
}
