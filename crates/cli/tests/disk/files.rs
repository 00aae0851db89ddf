//! Every command and option that writes keeps existing files, byte for byte.

use crate::common::{Folder, code, json, stderr};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

const SCENARIO: &str = r#"
name = "mine"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[[workload]]
kind = "file"
path = "flows.csv"
[measure]
series_interval = "1us"
"#;
const FLOWS: &str = "src,dst,size_bytes,start_ps\n0,2,100000,0\n1,3,100000,0\n";

/// Commands that write no files, by clap's names.
const READING: &[&str] = &[
    "list",
    "explain",
    "check",
    "schema",
    "bench",
    "bound",
    "serve",
    "send",
    "collective-rank",
    "collective-case",
    "nccl",
    "nccl check",
    "stats",
    "paths",
    "rerun",
    "replay",
    "verify",
    "completions",
    // Networks, not files; they write to a directory of the system.
    "testbed",
    "testbed up",
    "testbed down",
    "testbed status",
    "testbed exec",
    "testbed hold",
    "testbed act",
    "testbed fault",
    "testbed forward",
];

/// Commands that write, each with the test that covers it.
const WRITING: &[(&str, &str)] = &[
    ("run", "directories"),
    ("compare", "directories"),
    ("sweep", "directories"),
    // Each backend has a directory as `compare` has; files above them: cli/backends.rs.
    ("agree", "directories"),
    ("reproduce", "directories"),
    ("matrix", "directories"),
    ("report", "reports"),
    ("view", "reports"),
    // Tests of the index page: cli/results.rs.
    ("results", "named files"),
    ("trace", "named files"),
    ("topology", "named files"),
    ("init", "named files"),
    ("collective", "named files"),
    ("man", "named files"),
    // Each failing case gets a new folder.
    ("soak", "tests of the soak"),
    ("nccl install", "named files"),
    // `run` and `compare` use the same functions; `capture` writes a named file, timed/testbed.rs.
    ("testbed run", "directories"),
    ("testbed compare", "directories"),
    ("testbed capture", "named files"),
];

/// Options whose value is a path, each with what covers it: an output, or an input that is only read.
const PATHS: &[(&str, &str)] = &[
    ("--out", "directories, reports"),
    ("--pcap", "captures"),
    ("--perfetto", "named files"),
    ("--export", "named files"),
    ("--index", "tests of the index page: cli/results.rs"),
    ("--against", "read"),
    ("--rows", "named files"),
    // Over a file of its own alone: tests of `stats`.
    ("--prometheus", "tests of stats"),
    ("--junit", "named files"),
    // The repository of the project, for maintainers.
    ("--write-docs", "tests of the claims"),
    ("--plugin", "read"),
    ("--claims", "read"),
    ("--topology", "read"),
    ("--folder", "read"),
    ("--testbed", "read"),
];

#[test]
fn every_command_and_option_is_covered() {
    let known: Vec<&str> = READING.iter().copied().chain(WRITING.iter().map(|(name, _)| *name)).collect();
    let commands = anabranch::commands();
    for name in &commands {
        assert!(known.contains(&&**name), "`{name}` is new: does it write files? Add it to a list and a test");
    }
    for name in known {
        assert!(commands.iter().any(|command| command == name), "`{name}` is gone");
    }
    let is_new = |(_, option): &(String, String)| !PATHS.iter().any(|(known, _)| known == option);
    let new: Vec<(String, String)> = anabranch::path_options().into_iter().filter(is_new).collect();
    assert!(new.is_empty(), "new options: do they write files? Add them to the list and a test: {new:?}");
}

#[derive(Debug, PartialEq, Eq)]
enum Thing {
    File(u64, String),
    Link(PathBuf),
    Directory,
}

fn snapshot(path: &Path) -> BTreeMap<PathBuf, Thing> {
    fn walk(root: &Path, path: &Path, found: &mut BTreeMap<PathBuf, Thing>) {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            let thing = match () {
                () if kind.is_symlink() => Thing::Link(fs::read_link(&path).unwrap()),
                () if kind.is_dir() => Thing::Directory,
                () => {
                    let content = anabranch_results::Content::of_file(&path).unwrap();
                    Thing::File(content.bytes, content.blake3)
                }
            };
            if thing == Thing::Directory {
                walk(root, &path, found);
            }
            found.insert(path.strip_prefix(root).unwrap().to_path_buf(), thing);
        }
    }
    let mut found = BTreeMap::new();
    walk(path, path, &mut found);
    found
}

fn lost(before: &BTreeMap<PathBuf, Thing>, path: &Path) -> Vec<PathBuf> {
    let after = snapshot(path);
    before.iter().filter(|(name, thing)| after.get(*name) != Some(thing)).map(|(name, _)| name.clone()).collect()
}

/// Names that commands write, created here as foreign files; a trailing slash makes a directory with a file.
const NAMES: &str = "\
    trace.csv series.csv links.parquet uplinks.csv occupancy.csv summary.json manifest.json attempt.json \
    report.html view.html comparison.csv comparison.json plan.json sweep.csv runs.csv starts.log .lock \
    .reported .anabranch figures/slowdown_cdf.svg figures/mine.svg runs/ecmp/seed1/flows.csv runs/mine \
    earlier-runs/ecmp/seed1/flows.csv failed/mine.json reproduce/quick/mine/claims.csv .partial/ \
    .anabranch-1-1/ .writing/mine-a-1-1/ .writing/mine .claims/mine manifest.json/ flows.csv.partial \
    report.html.partial";

fn put(folder: &Path, name: &str) {
    let path = folder.join(name);
    let path = if name.ends_with('/') { path.join("mine") } else { path };
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("this is mine: {name}\n")).unwrap();
}

/// Commands that write to the directory of `--out`, and changes that make another run of each.
const INTO: &[(&[&str], &[&str])] = &[
    (&["run", "my.toml", "--out"], &["--set", "run.warmup=1ns"]),
    (&["run", "my.toml", "--replace", "--out"], &["--set", "run.warmup=1ns"]),
    (&["compare", "my.toml", "--schemes", "ecmp,ops", "--replace", "--again", "--out"], &["--seeds", "2"]),
    (
        &[
            "sweep",
            "my.toml",
            "--over",
            "topology.link_delay=1us,2us",
            "--schemes",
            "ecmp,ops",
            "--replace",
            "--again",
            "--out",
        ],
        &["--set", "run.warmup=1ns"],
    ),
    // The paper with the fewest runs: they are planned each time.
    (&["reproduce", "mrc", "--no-run", "--out"], &[]),
    (&["matrix", "--schemes", "braid", "--no-run", "--out"], &[]),
];

/// One name at a time, then all together; in a foreign directory and in one with results.
#[test]
fn foreign_directories_keep_their_files() {
    for (words, _) in INTO {
        let all: Vec<&str> =
            anabranch_testkit::words(NAMES).into_iter().filter(|name| *name != "manifest.json/").collect();
        let cases: Vec<Vec<&str>> =
            anabranch_testkit::words(NAMES).into_iter().map(|name| vec![name]).chain([all]).collect();
        for names in cases {
            let folder = Folder::new("files-foreign");
            folder.file("my.toml", SCENARIO);
            folder.file("flows.csv", FLOWS);
            names.iter().for_each(|name| put(&folder.0, name));
            let before = snapshot(&folder.0);
            let output = folder.run(&[words, &["."][..]].concat());
            // The flows have the name of a table: a run there is always refused.
            let message = stderr(&output);
            assert!(
                lost(&before, &folder.0).is_empty(),
                "{words:?} {names:?}: {:?}\n{message}",
                lost(&before, &folder.0)
            );
            if words[0] == "run" {
                assert!(code(&output) == 2 && !message.is_empty(), "{words:?} {names:?}: {message}");
                assert_eq!(snapshot(&folder.0), before, "{words:?} {names:?}: {message}");
            }
            assert!([0, 2].contains(&code(&output)), "{words:?} {names:?}: {message}");
        }
    }
}

/// Results of ours with foreign files between them, which stay when results are replaced.
#[test]
fn replacing_results_keeps_foreign_files() {
    for (words, other) in INTO {
        let folder = Folder::new("files-ours");
        folder.file("my.toml", SCENARIO);
        folder.file("flows.csv", FLOWS);
        let first = folder.run(&[words, &["out"][..]].concat());
        assert_eq!(code(&first), 0, "{words:?}: {}", stderr(&first));
        let mut ours = snapshot(&folder.0.join("out"));
        folder.run(&[words, &["out"][..], other].concat());
        ours.extend(snapshot(&folder.0.join("out")));
        let mut foreign = Vec::new();
        for name in anabranch_testkit::words(NAMES)
            .into_iter()
            .filter(|name| !ours.contains_key(Path::new(name.trim_end_matches('/'))))
        {
            // A file where results have a directory, or the reverse, is a conflict, and the name of a run leads to its files.
            let is_conflict = |above: &Path| matches!(ours.get(above), Some(Thing::File(..) | Thing::Link(_)));
            if Path::new(name).ancestors().skip(1).any(is_conflict) {
                continue;
            }
            put(&folder.0.join("out"), name);
            foreign.push(name);
            let before: BTreeMap<_, _> =
                snapshot(&folder.0).into_iter().filter(|(path, _)| !is_ours(path, &ours)).collect();
            let output = folder.run(&[words, &["out"][..], other].concat());
            let message = stderr(&output);
            assert!([0, 2].contains(&code(&output)), "{words:?} {name}: {message}");
            assert!(lost(&before, &folder.0).is_empty(), "{words:?} {name}: {:?}\n{message}", lost(&before, &folder.0));
            let path = folder.0.join("out").join(name);
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
        assert!(foreign.len() > 10, "{words:?}: {foreign:?}");
    }
}

fn is_ours(path: &Path, ours: &BTreeMap<PathBuf, Thing>) -> bool {
    path.strip_prefix("out").is_ok_and(|path| ours.contains_key(path) || path.as_os_str().is_empty())
}

/// The flows that a run reads are not replaced by its table of flows.
#[test]
fn input_is_never_an_output() {
    let folder = Folder::new("files-input");
    folder.file("my.toml", SCENARIO);
    folder.file("flows.csv", FLOWS);
    folder.refused("run my.toml --out .", &["flows.csv", "--out"]);
    // A table of results is the input of a scenario whose results would replace it: by name, link and hard link.
    folder.ok("run my.toml --out out");
    let read = fs::read(folder.0.join("out/flows.csv")).unwrap();
    fs::create_dir(folder.0.join("by")).unwrap();
    fs::hard_link(folder.0.join("out/flows.csv"), folder.0.join("by/hard.csv")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../out/flows.csv", folder.0.join("by/soft.csv")).unwrap();
    for path in ["out/flows.csv", "by/hard.csv", "by/soft.csv"] {
        if !folder.0.join(path).exists() {
            continue;
        }
        let scenario = SCENARIO.replace("\"flows.csv\"", &format!("\"{path}\""));
        folder.file("again.toml", &scenario);
        for words in [
            &["run", "again.toml", "--replace", "--out", "out"][..],
            &["compare", "again.toml", "--replace", "--out", "out"],
            &["sweep", "again.toml", "--over", "topology.link_delay=1us", "--replace", "--out", "out"],
        ] {
            let before = snapshot(&folder.0);
            let output = folder.run(words);
            assert_eq!(code(&output), 2, "{words:?} {path}: {}", stderr(&output));
            assert_eq!(snapshot(&folder.0), before, "{words:?} {path}");
        }
    }
    assert_eq!(fs::read(folder.0.join("out/flows.csv")).unwrap(), read);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    use std::os::unix::fs::symlink;
    let words = [&["run", "tiny", "--out", "out"][..], &["compare", "tiny", "--schemes", "ecmp,ops", "--out", "out"]];
    for words in words {
        for (name, target) in [
            ("flows.csv", "victim.csv"),
            ("report.html", "victim.csv"),
            ("manifest.json", "victim.csv"),
            ("manifest.json", "nowhere"),
            (".lock", "victim.csv"),
            ("figures", "elsewhere"),
            ("runs", "elsewhere"),
            ("plan.json", "victim.csv"),
        ] {
            let folder = Folder::new("files-links");
            folder.file("victim.csv", "mine\n");
            fs::create_dir_all(folder.0.join("elsewhere/ecmp/seed1")).unwrap();
            fs::write(folder.0.join("elsewhere/slowdown_cdf.svg"), "mine\n").unwrap();
            fs::create_dir(folder.0.join("out")).unwrap();
            symlink(Path::new("..").join(target), folder.0.join("out").join(name)).unwrap();
            let before = snapshot(&folder.0);
            let output = folder.run(words);
            let message = stderr(&output);
            assert!(lost(&before, &folder.0).is_empty(), "{words:?} {name}: {:?}\n{message}", lost(&before, &folder.0));
            assert!(!folder.0.join("nowhere").exists(), "{words:?} {name}");
            assert!(snapshot(&folder.0.join("elsewhere")).len() == 3, "{words:?} {name}: {message}");
        }
    }
    // A directory of results with links in place of its parts is refused too.
    let folder = Folder::new("files-links-later");
    let words = ["compare", "tiny", "--schemes", "ecmp,ops", "--again", "--out", "out"];
    assert_eq!(code(&folder.run(&words)), 0);
    for part in ["figures", "runs", "runs/ecmp"] {
        fs::rename(folder.0.join("out").join(part), folder.0.join("elsewhere")).unwrap();
        symlink(folder.0.join("elsewhere"), folder.0.join("out").join(part)).unwrap();
        let before = snapshot(&folder.0);
        let output = folder.run(&words);
        assert_eq!(code(&output), 2, "{part}: {}", stderr(&output));
        assert!(lost(&before, &folder.0).is_empty(), "{part}: {:?}", lost(&before, &folder.0));
        fs::remove_file(folder.0.join("out").join(part)).unwrap();
        fs::rename(folder.0.join("elsewhere"), folder.0.join("out").join(part)).unwrap();
    }
}

#[test]
fn named_files_need_replace() {
    let folder = Folder::new("files-named");
    folder.file("my.toml", SCENARIO);
    folder.file("flows.csv", FLOWS);
    folder.file("plugin.so", "no plugin\n");
    folder.ok("run my.toml --out out");
    folder.file("there", "mine\n");
    fs::create_dir(folder.0.join("man")).unwrap();
    folder.file("man/anabranch.1", "mine\n");
    fs::create_dir(folder.0.join("plugins")).unwrap();
    folder.file("plugins/libnccl-net.so", "mine\n");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("there", folder.0.join("link")).unwrap();
        std::os::unix::fs::symlink("my.toml", folder.0.join("scenario-link")).unwrap();
    }
    fs::hard_link(folder.0.join("flows.csv"), folder.0.join("flows-link")).unwrap();
    let before = snapshot(&folder.0);
    let capture = |file: &str| format!("leaf0->spine0={file}");
    // Without --replace any existing file is refused; with it inputs, links, directories and parts of results.
    let always =
        ["my.toml", "flows.csv", "flows-link", "link", "scenario-link", "man", "out/flows.csv", "out/manifest.json"];
    for (file, replace) in always.iter().map(|file| (*file, true)).chain([("there", false)]) {
        if !folder.0.join(file).exists() {
            continue;
        }
        let pcap = capture(file);
        for words in [
            &["run", "my.toml", "--out", "out", "--pcap", &pcap][..],
            &["topology", "my.toml", "--export", file],
            &[
                "compare",
                "my.toml",
                "--schemes",
                "ecmp",
                "--out",
                "other",
                "--assert",
                "slowdown_p99 < 9",
                "--junit",
                file,
            ],
        ] {
            let more = if replace { &["--replace"][..] } else { &[] };
            let output = folder.run(&[words, more].concat());
            assert_eq!(code(&output), 2, "{words:?}: {}", stderr(&output));
            assert!(lost(&before, &folder.0).is_empty(), "{words:?}: {:?}", lost(&before, &folder.0));
        }
    }
    for (file, replace) in [("there", false), ("link", true), ("man", true), ("out/flows.csv", true)] {
        if !folder.0.join(file).exists() {
            continue;
        }
        for words in [
            &["trace", "out", "--perfetto", file][..],
            &["view", "out", "--out", file],
            &["init", file],
            &["collective", "ring", "--plugin", "plugin.so", "--rows", file],
        ] {
            let more = if replace { &["--replace"][..] } else { &[] };
            let output = folder.run(&[words, more].concat());
            assert_eq!(code(&output), 2, "{words:?}: {}", stderr(&output));
            assert!(lost(&before, &folder.0).is_empty(), "{words:?}: {:?}", lost(&before, &folder.0));
        }
    }
    for words in [&["man", "man"][..], &["nccl", "install", "plugins", "--plugin", "plugin.so"]] {
        let before = snapshot(&folder.0);
        let output = folder.run(words);
        assert_eq!(code(&output), 2, "{words:?}: {}", stderr(&output));
        assert_eq!(snapshot(&folder.0), before, "{words:?}");
        assert_eq!(code(&folder.run(&[words, &["--replace"]].concat())), 0, "{words:?}");
        // Identical contents are no conflict.
        assert_eq!(code(&folder.run(words)), 0, "{words:?}");
    }
    assert_eq!(fs::read(folder.0.join("plugins/libnccl-net.so")).unwrap(), b"no plugin\n");
}

/// A capture cannot take the name of a table of the same run.
#[test]
fn captures_and_tables_do_not_share_a_file() {
    for file in ["o/flows.csv", "o/manifest.json", "o/report.html", "./o/../o/summary.json"] {
        let folder = Folder::new("files-capture");
        let pcap = format!("leaf0->spine0={file}");
        // In an empty directory, and beside results.
        for replace in [&[][..], &["--replace"]] {
            let output = folder.run(&[&["run", "tiny", "--out", "o", "--pcap", &pcap][..], replace].concat());
            assert_eq!(code(&output), 2, "{file}: {}", stderr(&output));
            assert!(!folder.0.join("o").join("flows.csv").exists());
        }
    }
}

/// `report` and `view` replace files listed in the manifest, and no others.
#[test]
fn reports_keep_foreign_files() {
    let folder = Folder::new("files-report");
    folder.ok("compare tiny --schemes ecmp,ops --out out");
    for (words, name) in [
        (&["report", "out/runs/ecmp/seed1"][..], "out/runs/ecmp/seed1/report.html"),
        (&["report", "out/runs/ops/seed1"], "out/runs/ops/seed1/figures/slowdown_cdf.svg"),
        (&["view", "out/runs/ecmp/seed1"], "out/runs/ecmp/seed1/view.html"),
        (&["view", "out"], "out/view.html"),
    ] {
        put(&folder.0, name);
        let before = snapshot(&folder.0);
        let output = folder.run(words);
        assert_eq!(code(&output), 2, "{words:?} {name}: {}", stderr(&output));
        assert_eq!(snapshot(&folder.0), before, "{words:?} {name}");
        fs::remove_file(folder.0.join(name)).unwrap();
        // Unused names are no conflict.
        put(&folder.0, "out/figures/mine.svg");
        put(&folder.0, "out/runs/ecmp/seed1/figures/slowdown_cdf-mine.svg");
        let mine = snapshot(&folder.0).into_iter().filter(|(path, _)| path.to_string_lossy().contains("mine"));
        let mine: BTreeMap<_, _> = mine.collect();
        for _ in 0..2 {
            let output = folder.run(words);
            assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
            assert!(lost(&mine, &folder.0).is_empty(), "{words:?}");
        }
        fs::remove_file(folder.0.join("out/runs/ecmp/seed1/figures/slowdown_cdf-mine.svg")).unwrap();
    }
}

#[test]
fn replace_keeps_runs() {
    let folder = Folder::new("files-replace");
    folder.ok("run tiny --out out --set measure.series_interval=1us");
    let before = snapshot(&folder.0.join("out"));
    let other = ["run", "tiny", "--set", "run.warmup=1ns", "--out", "out"];
    assert_eq!(code(&folder.run(&other)), 2);
    assert_eq!(snapshot(&folder.0.join("out")), before);
    let output = folder.run(&[&other[..], &["--replace"]].concat());
    assert_eq!(code(&output), 0);
    let after = snapshot(&folder.0.join("out"));
    let is_of_run = |(name, thing): &(&PathBuf, &Thing)| name.starts_with("runs") && !matches!(thing, Thing::Link(_));
    assert!(before.iter().filter(is_of_run).all(|(name, thing)| after.get(name) == Some(thing)));
    json(&folder.run(&[&other[..], &["--format", "json"]].concat()));
}

/// A manifest that is damaged, or lists entries elsewhere, makes no file ours.
#[test]
fn damaged_manifest_owns_no_files() {
    let folder = Folder::new("files-manifest");
    folder.file("victim.csv", "mine\n");
    folder.ok("run tiny --out out");
    let path = folder.0.join("out/manifest.json");
    let whole = fs::read_to_string(&path).unwrap();
    let resealed = |path: &str| anabranch_results::resealed(&whole.replacen("flows.csv", path, 1));
    for damaged in [
        whole[..whole.len() / 2].to_string(),
        "{}".into(),
        whole.replacen("tiny", "tidy", 1),
        resealed("../victim.csv"),
        resealed(folder.0.join("victim.csv").to_str().unwrap()),
    ] {
        fs::write(&path, damaged).unwrap();
        let before = snapshot(&folder.0);
        for words in [
            &["run", "tiny", "--out", "out"][..],
            &["run", "tiny", "--seed", "3", "--replace", "--out", "out"],
            &["compare", "tiny", "--schemes", "ecmp,ops", "--replace", "--out", "out"],
            &["sweep", "tiny", "--over", "topology.link_delay=1us", "--replace", "--out", "out"],
            &["report", "out"],
            &["view", "out"],
        ] {
            let output = folder.run(words);
            assert_eq!(code(&output), 2, "{words:?}: {}", stderr(&output));
            assert!(stderr(&output).contains("manifest.json"), "{words:?}: {}", stderr(&output));
            assert_eq!(snapshot(&folder.0), before, "{words:?}");
        }
    }
}
