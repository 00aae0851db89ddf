//! The seal of results: `verify`, readers and reuse of changed files, and equal bytes for equal runs.

use crate::common::{Folder, code, json, stderr, stdout};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const COMPARE: [&str; 8] = ["compare", "tiny", "--schemes", "ecmp,ops", "--seeds", "1", "--out", "out"];
const SWEEP: [&str; 8] =
    ["sweep", "tiny", "--over", "workload.0.size=4KiB,8KiB", "--schemes", "ecmp,ops", "--out", "out"];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            match fs::symlink_metadata(&path).unwrap().is_dir() {
                true => open.push(path),
                false if path.is_symlink() => {}
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_byte_of_every_file_is_sealed() {
    for words in [&["run", "tiny", "--out", "out"][..], &COMPARE, &SWEEP] {
        let folder = Folder::new("seal-verify");
        folder.ok(words);
        let whole = folder.line("verify out --format json");
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
                // The file of a run may have two names, of which one is removed.
                fs::write(&path, &content).unwrap();
                match damaged {
                    Some(damaged) => fs::write(&path, damaged).unwrap(),
                    None => fs::remove_file(&path).unwrap(),
                }
                let output = folder.line("verify out --format json");
                if fault == "missing" && name.ends_with("manifest.json") {
                    // A directory without a manifest cannot be checked.
                    assert!([1, 2].contains(&code(&output)), "{name}");
                } else {
                    assert_eq!(code(&output), 1, "{name} {fault}: {}", stderr(&output));
                    let found: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
                    let findings = found["findings"].as_array().unwrap();
                    let is_found = findings.iter().any(|f| f["path"] == *name && f["fault"] == fault);
                    assert!(is_found, "{name} {fault}: {findings:?}");
                }
            }
            fs::write(&path, content).unwrap();
        }
        folder.ok("verify out");
        folder.file("out/notes.txt", "mine");
        folder.prints("verify out", 1, &["unlisted"]);
    }
    let folder = Folder::new("seal-none");
    folder.refused("verify .", &[]);
    folder.refused("verify nowhere", &[]);
}

#[test]
fn inputs_are_sealed_too() {
    let folder = Folder::new("seal-inputs");
    folder.file("flows.csv", "src,dst,size_bytes,start_ps\n0,2,100000,0\n");
    folder.file(
        "my.toml",
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n[[workload]]\nkind = \"file\"\npath = \"flows.csv\"\n",
    );
    folder.ok("run my.toml --out out");
    let inputs = folder.json_file("out/manifest.json")["inputs"].clone();
    // The digest is that of `b3sum`.
    assert_eq!(inputs.as_array().map(Vec::len), Some(2), "{inputs}");
    folder.ok("verify out");
    folder.file("flows.csv", "src,dst,size_bytes,start_ps\n0,3,100000,0\n");
    folder.prints("verify out", 1, &["flows.csv"]);
    fs::remove_file(folder.0.join("flows.csv")).unwrap();
    folder.prints("verify out", 0, &["no longer exists"]);
}

/// Rows of another scheme in place of a run's, with or without a matching manifest and summary.
#[test]
fn rows_of_another_scheme_are_detected() {
    let folder = Folder::new("seal-other");
    folder.ok(&COMPARE);
    let (own, other) = (folder.0.join("out/runs/ecmp/seed1"), folder.0.join("out/runs/ops/seed1"));
    let first = fs::read(own.join("flows.csv")).unwrap();
    for name in ["flows.csv", "flows.parquet"] {
        fs::copy(other.join(name), own.join(name)).unwrap();
    }
    folder.prints("rerun out", 1, &["row ", "flows.csv"]);
    for command in [&["report", "out"][..], &["view", "out"], &["report", "out/runs/ecmp/seed1"]] {
        folder.refused(command, &["flows"]);
    }
    // A comparison repeats a run with an edited summary.
    let summary = other.join("summary.json");
    let text = fs::read_to_string(&summary).unwrap();
    fs::write(&summary, text.replacen("\"mean\": ", "\"mean\": 1", 1)).unwrap();
    let output = folder.ok(&COMPARE);
    assert_eq!(stderr(&output).matches("is run again").count(), 2, "{}", stderr(&output));
    assert_eq!(fs::read(own.join("flows.csv")).unwrap(), first);
    folder.ok("rerun out");
    folder.ok("verify out");
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// Directories of the runs of a store.
fn keys(out: &Path) -> Vec<PathBuf> {
    let runs = fs::read_dir(out.join("runs")).unwrap().map(|run| run.unwrap());
    let mut runs: Vec<PathBuf> = runs.filter(|run| run.file_name().len() == 16).map(|run| run.path()).collect();
    runs.sort();
    runs
}

fn exchange(one: &Path, other: &Path) {
    let aside = one.with_file_name("aside");
    fs::rename(one, &aside).unwrap();
    fs::rename(other, one).unwrap();
    fs::rename(aside, other).unwrap();
}

fn change(path: &Path) {
    let mut content = fs::read(path).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(path, content).unwrap();
}

#[test]
fn rerun_begins_with_every_file() {
    let folder = Folder::new("seal-rerun");
    let (out, kept) = (&folder.0.join("out"), &folder.0.join("kept"));
    let figure = |out: &Path| fs::read_dir(out.join("figures")).unwrap().next().unwrap().unwrap().path();
    let two_runs = |out: &Path| {
        let runs = keys(out);
        [runs[0].clone(), runs[1].clone()]
    };
    type Damage<'a> = (&'a str, Box<dyn Fn() + 'a>);
    let changed = |name: &'static str| -> Damage<'_> { (name, Box::new(move || change(&out.join(name)))) };
    let gone =
        |name: &'static str| -> Damage<'_> { (name, Box::new(move || fs::remove_file(out.join(name)).unwrap())) };
    let exchanged = || -> Damage<'_> {
        let both = move || {
            let [one, other] = two_runs(out);
            exchange(&one, &other);
        };
        ("runs", Box::new(both))
    };
    let remove_run: Damage<'_> = ("runs/", Box::new(|| fs::remove_dir_all(&two_runs(out)[0]).unwrap()));
    let remove_figures: Damage<'_> = ("figures", Box::new(|| fs::remove_dir_all(out.join("figures")).unwrap()));
    let of_compare = ["comparison.csv", "comparison.json", "flows.parquet", "links.parquet", "manifest.json"];
    let cases: [(&[&str], Vec<Damage<'_>>); 3] = [
        (
            &COMPARE,
            of_compare
                .map(changed)
                .into_iter()
                .chain(["comparison.csv", "flows.parquet", "manifest.json"].map(gone))
                .chain([exchanged(), remove_run])
                .collect(),
        ),
        (
            &SWEEP,
            ["manifest.json", "sweep.csv", "flows.parquet"].map(changed).into_iter().chain([exchanged()]).collect(),
        ),
        (
            &["run", "tiny", "--out", "out"],
            vec![("figures", Box::new(|| change(&figure(out)))), changed("report.html"), remove_figures],
        ),
    ];
    for (words, damages) in cases {
        let _ = fs::remove_dir_all(out);
        folder.ok(words);
        copy(out, kept);
        for (name, damage) in damages {
            damage();
            let output = folder.prints("rerun out", 1, &[name]);
            assert!(stderr(&output).contains("manifest"), "{words:?}, {name}: {}", stderr(&output));
            copy(kept, out);
        }
        folder.file("out/notes.txt", "mine");
        folder.ok("rerun out");
        let whole = folder.line("rerun out --format json");
        assert!(json(&whole)["same"].as_bool().unwrap() && json(&whole)["findings"].as_array().unwrap().is_empty());
    }
}

/// The remedy in messages works: exchanged runs and runs without a manifest are repeated, and the old ones are kept.
#[test]
fn exchanged_runs_are_refused_and_repeated() {
    let folder = Folder::new("seal-replaced");
    let words = ["compare", "tiny", "--schemes", "ecmp,ops", "--seeds", "2", "--out", "out"];
    folder.ok(&words);
    let (out, kept) = (folder.0.join("out"), folder.0.join("kept"));
    copy(&out, &kept);
    let of_another = Folder::new("seal-replaced-other");
    of_another.ok("compare tiny --schemes ecmp --seeds 1 --set workload.0.size=4KiB --out out");
    let runs = ["ecmp/seed1", "ops/seed1"].map(|name| fs::canonicalize(out.join("runs").join(name)).unwrap());
    let other = &keys(&of_another.0.join("out"))[0];
    let cases: [(&str, &dyn Fn(), usize); 3] = [
        ("not the hash of this run", &|| exchange(&runs[0], &runs[1]), 2),
        ("not the hash of this run", &|| copy(other, &runs[0]), 1),
        ("manifest", &|| fs::remove_file(runs[0].join("manifest.json")).unwrap(), 1),
    ];
    for (number, (found, damage, runs)) in cases.into_iter().enumerate() {
        copy(&kept, &out);
        damage();
        let before: Vec<Vec<u8>> = files(&out.join("runs")).iter().map(|path| fs::read(path).unwrap()).collect();
        for command in ["report", "view"] {
            let message = stderr(&folder.ends(&[command, "out"], 2, &["earlier-runs"]));
            let is_named = message.contains(found) || message.contains("rows are not those");
            assert!(is_named, "{number} {command}: {message}");
            assert!(command == "report" || !out.join("view.html").exists(), "{number}");
        }
        let output = folder.ok(&words);
        assert_eq!(stderr(&output).matches("are kept in").count(), runs, "{number}: {}", stderr(&output));
        let verified = folder.line("verify out");
        // Files without a manifest are unlisted; the others are unchanged.
        let rest =
            stdout(&verified).lines().filter(|line| line.contains("differs") || line.contains("missing")).count();
        assert_eq!(rest, 0, "{number}: {}", stdout(&verified));
        folder.ok("rerun out");
        let after: Vec<Vec<u8>> = files(&out).iter().map(|path| fs::read(path).unwrap()).collect();
        assert!(before.iter().all(|content| after.contains(content)), "{number}: something is lost");
        for name in ["comparison.csv", "flows.parquet"] {
            assert!(fs::read(out.join(name)).unwrap() == fs::read(kept.join(name)).unwrap(), "{number}: {name}");
        }
    }
}

/// Equal runs write equal files on any number of threads, except for the two with wall times.
#[test]
fn equal_runs_give_equal_bytes() {
    let measured = "run tiny --set measure.series_interval=100ns --set measure.trace_flows=[\"first:2\"] --set measure.occupancy=true \
                    --set measure.series_links=[\"leaf0->spine0\"] --set measure.uplink_counts=true --seed 7 --out out";
    let inside = anabranch_testkit::words(measured);
    for words in [&["run", "tiny", "--out", "out"][..], &inside, &COMPARE, &SWEEP] {
        let all = ["one", "two", "threads"].map(|name| Folder::new(&format!("seal-bytes-{name}")));
        for (folder, threads) in all.iter().zip(["1", "1", "2"]) {
            let output = folder.run(&[words, &["--threads", threads]].concat());
            // Measurements of other names must not be skipped.
            assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
        }
        let names = |folder: &Folder| -> Vec<PathBuf> {
            files(&folder.0).iter().map(|path| path.strip_prefix(&folder.0).unwrap().to_path_buf()).collect()
        };
        let [first, again, threads] = &all;
        assert!(names(first) == names(again) && names(first) == names(threads), "{words:?}");
        for name in names(first) {
            let file = name.file_name().unwrap().to_string_lossy().into_owned();
            if ["manifest.json", "summary.json", "starts.log"].contains(&file.as_str()) {
                continue;
            }
            let read = |folder: &Folder| fs::read(folder.0.join(&name)).unwrap();
            assert!(read(first) == read(again), "{words:?}: {} differs", name.display());
            // The page names the threads.
            assert!(file == "report.html" || read(first) == read(threads), "{words:?}: {} differs", name.display());
        }
    }
}
