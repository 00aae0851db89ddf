//! The seal of results: `verify`, what readers and reuse do with files that changed, and the same bytes for the same run.

#[allow(dead_code)]
mod common;

use common::{Folder, code, json, stderr, stdout};
use std::{
    fs,
    path::{Path, PathBuf},
};

const COMPARE: [&str; 8] = ["compare", "tiny", "--schemes", "ecmp,ops", "--seeds", "1", "--out", "out"];
const SWEEP: [&str; 8] =
    ["sweep", "tiny", "--over", "workload.0.size=4KiB,8KiB", "--schemes", "ecmp,ops", "--out", "out"];

/// All files below a directory, hidden ones too.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

#[test]
fn every_byte_of_every_file_is_sealed() {
    for words in [&["run", "tiny", "--out", "out"][..], &COMPARE, &SWEEP] {
        let folder = Folder::new("seal-verify");
        assert_eq!(code(&folder.run(words)), 0);
        let whole = folder.run(&["verify", "out", "--format", "json"]);
        assert!(json(&whole)["intact"].as_bool().unwrap(), "{words:?}: {}", stdout(&whole));
        for path in files(&folder.0.join("out")) {
            let name = path.strip_prefix(&folder.0).unwrap().to_string_lossy().into_owned();
            if name.ends_with("starts.log") {
                continue;
            }
            let content = fs::read(&path).unwrap();
            let mut damaged = content.clone();
            let middle = damaged.len() / 2;
            damaged[middle] ^= 1;
            for (damaged, fault) in [(Some(damaged), "differs"), (None, "missing")] {
                match damaged {
                    Some(damaged) => fs::write(&path, damaged).unwrap(),
                    None => fs::remove_file(&path).unwrap(),
                }
                let output = folder.run(&["verify", "out", "--format", "json"]);
                if fault == "missing" && name.ends_with("manifest.json") {
                    // Of a directory without one nothing is known.
                    assert!([1, 2].contains(&code(&output)), "{name}");
                } else {
                    assert_eq!(code(&output), 1, "{name} {fault}: {}", stderr(&output));
                    let found: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
                    let findings = found["findings"].as_array().unwrap();
                    assert!(
                        findings.iter().any(|f| f["path"] == *name && f["fault"] == fault),
                        "{name} {fault}: {findings:?}"
                    );
                }
            }
            fs::write(&path, content).unwrap();
        }
        assert_eq!(code(&folder.run(&["verify", "out"])), 0);
        folder.file("out/notes.txt", "mine");
        let output = folder.run(&["verify", "out"]);
        assert!(code(&output) == 1 && stdout(&output).contains("unlisted"), "{}", stdout(&output));
    }
    let folder = Folder::new("seal-none");
    assert_eq!(code(&folder.run(&["verify", "."])), 2);
    assert_eq!(code(&folder.run(&["verify", "nowhere"])), 2);
}

#[test]
fn inputs_are_sealed_too() {
    let folder = Folder::new("seal-inputs");
    folder.file("flows.csv", "src,dst,size_bytes,start_ps\n0,2,100000,0\n");
    folder.file(
        "my.toml",
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[[workload]]\nkind = \"file\"\npath = \"flows.csv\"\n",
    );
    assert_eq!(code(&folder.run(&["run", "my.toml", "--out", "out"])), 0);
    let inputs = folder.json_file("out/manifest.json")["inputs"].clone();
    // As `b3sum` has it.
    assert_eq!(inputs.as_array().map(Vec::len), Some(2), "{inputs}");
    assert_eq!(code(&folder.run(&["verify", "out"])), 0);
    folder.file("flows.csv", "src,dst,size_bytes,start_ps\n0,3,100000,0\n");
    let output = folder.run(&["verify", "out"]);
    assert!(code(&output) == 1 && stdout(&output).contains("flows.csv"), "{}", stdout(&output));
    fs::remove_file(folder.0.join("flows.csv")).unwrap();
    let output = folder.run(&["verify", "out"]);
    assert!(code(&output) == 0 && stdout(&output).contains("not there any more"), "{}", stdout(&output));
}

/// Rows of another scheme in the place of a run's, with a manifest and summary that fit, or without.
#[test]
fn rows_of_another_scheme_are_found_out() {
    let folder = Folder::new("seal-other");
    assert_eq!(code(&folder.run(&COMPARE)), 0);
    let (own, other) = (folder.0.join("out/runs/ecmp/seed1"), folder.0.join("out/runs/ops/seed1"));
    let first = fs::read(own.join("flows.csv")).unwrap();
    for name in ["flows.csv", "flows.parquet"] {
        fs::copy(other.join(name), own.join(name)).unwrap();
    }
    let output = folder.run(&["rerun", "out"]);
    assert_eq!(code(&output), 1, "{}", stdout(&output));
    assert!(stdout(&output).contains("row ") && stdout(&output).contains("flows.csv"), "{}", stdout(&output));
    for command in [&["report", "out"][..], &["view", "out"], &["report", "out/runs/ecmp/seed1"]] {
        let output = folder.run(command);
        assert!(code(&output) == 2 && stderr(&output).contains("flows"), "{command:?}: {}", stderr(&output));
    }
    // An edited summary: a comparison does the run again.
    let summary = other.join("summary.json");
    let text = fs::read_to_string(&summary).unwrap();
    fs::write(&summary, text.replacen("\"mean\": ", "\"mean\": 1", 1)).unwrap();
    let output = folder.run(&COMPARE);
    assert_eq!(code(&output), 0);
    assert_eq!(stderr(&output).matches("is run again").count(), 2, "{}", stderr(&output));
    assert_eq!(fs::read(own.join("flows.csv")).unwrap(), first);
    assert_eq!(code(&folder.run(&["rerun", "out"])), 0);
    assert_eq!(code(&folder.run(&["verify", "out"])), 0);
}

/// A run of a sweep whose table was cut, whose summary was edited, or that is another run altogether, does not count.
#[test]
fn damaged_runs_of_a_sweep_are_done_again() {
    let folder = Folder::new("seal-sweep");
    assert_eq!(code(&folder.run(&SWEEP)), 0);
    let runs: Vec<PathBuf> =
        fs::read_dir(folder.0.join("out/runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let cut = runs[0].join("flows.parquet");
    fs::write(&cut, &fs::read(&cut).unwrap()[..500]).unwrap();
    let summary = runs[1].join("summary.json");
    let text = fs::read_to_string(&summary).unwrap();
    fs::write(&summary, text.replacen("\"mean\": ", "\"mean\": 1", 1)).unwrap();
    for path in files(&runs[2]) {
        fs::copy(runs[3].join(path.file_name().unwrap()), path).unwrap();
    }
    assert_eq!(code(&folder.run(&["report", "out"])), 2);
    let output = folder.run(&SWEEP);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("is run again").count(), 3, "{}", stderr(&output));
    assert_eq!(code(&folder.run(&["rerun", "out"])), 0);
    assert_eq!(code(&folder.run(&["verify", "out"])), 0, "{}", stdout(&folder.run(&["verify", "out"])));
}

/// Results of a version without digests are read, and it is said that nobody can check them.
#[test]
fn results_without_digests_are_read_with_a_warning() {
    let folder = Folder::new("seal-old");
    assert_eq!(code(&folder.run(&["run", "tiny", "--out", "out"])), 0);
    let path = folder.0.join("out/manifest.json");
    let mut manifest = folder.json_file("out/manifest.json");
    manifest.as_object_mut().unwrap().remove("seal");
    for file in manifest["files"].as_array_mut().unwrap() {
        let file = file.as_object_mut().unwrap();
        file.remove("bytes");
        file.remove("blake3");
    }
    fs::write(&path, manifest.to_string()).unwrap();
    let output = folder.run(&["report", "out"]);
    assert!(code(&output) == 0 && stderr(&output).contains("no digests"), "{}", stderr(&output));
    assert_eq!(code(&folder.run(&["rerun", "out"])), 0);
    let output = folder.run(&["verify", "out"]);
    assert!(code(&output) == 1 && stdout(&output).contains("no digest"), "{}", stdout(&output));
    // The same run may be done over it, and is sealed then.
    assert_eq!(code(&folder.run(&["run", "tiny", "--out", "out"])), 0);
    assert_eq!(code(&folder.run(&["verify", "out"])), 0);
}

/// Whatever is written is the same for the same run, but for the two files that have times.
#[test]
fn the_same_run_gives_the_same_bytes() {
    let inside = [
        "run",
        "tiny",
        "--set",
        "measure.series_interval=100ns",
        "--set",
        "measure.trace_flows=[\"first:2\"]",
        "--set",
        "measure.occupancy=true",
        "--out",
        "out",
    ];
    for words in [&["run", "tiny", "--out", "out"][..], &inside, &COMPARE, &SWEEP] {
        let both = [Folder::new("seal-bytes-one"), Folder::new("seal-bytes-two")];
        for folder in &both {
            let output = folder.run(words);
            // A measurement of another name is no reason to look at nothing.
            assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
        }
        let names = |folder: &Folder| -> Vec<PathBuf> {
            files(&folder.0).iter().map(|path| path.strip_prefix(&folder.0).unwrap().to_path_buf()).collect()
        };
        assert_eq!(names(&both[0]), names(&both[1]), "{words:?}");
        for name in names(&both[0]) {
            let file = name.file_name().unwrap().to_string_lossy().into_owned();
            if ["manifest.json", "summary.json", "starts.log"].contains(&file.as_str()) {
                continue;
            }
            let read = |folder: &Folder| fs::read(folder.0.join(&name)).unwrap();
            assert!(read(&both[0]) == read(&both[1]), "{words:?}: {} differs", name.display());
        }
    }
}
