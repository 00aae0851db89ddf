//! Every table and JSON file of results: its columns or keys, their types and units, in one file, `columns.txt`. `ANABRANCH_RECORD=1`
//! rewrites it. Scripts of users rely on these names: a removed or changed one breaks them, a new one does not.

use crate::common::Folder;
use anabranch_results::{Frame, TABLES, Table};
use anabranch_testkit::columns;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

const MEASURED: &str = r#"
name = "measured"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[servers]
gpus = 2
nics = 2
cross_rail = "network"
[load_balancer]
scheme = "prime"
[[workload]]
kind = "permutation"
name = "only"
scope = "other-leaf"
size = "64KiB"
[[workload]]
kind = "collective"
name = "job"
ranks = 2
start = "1us"
measured = false
[measure]
series_links = ["leaf0->spine0"]
series_flows = ["first:1"]
series_scheme = true
uplink_counts = true
occupancy = true
trace_flows = ["first:1"]
trace_scheme = true
"#;

const COMMANDS: &[(&str, &str)] = &[
    ("run", "run measured.toml --quiet --out run"),
    ("compare", "compare tiny --schemes ecmp,ops --seeds 2 --quiet --out compare"),
    ("sweep", "sweep tiny --over workload.0.size=4KiB,8KiB --schemes ecmp --seeds 2 --quiet --out sweep"),
    ("reproduce", "reproduce hopper fig3 --no-run --quiet --out reproduce"),
];

fn record() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/columns.txt")
}

/// Directories of results below `root`, without the runs of a comparison or sweep, which are those of `run`.
fn directories(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let below = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        open.extend(below.filter(|path| path.is_dir() && !path.ends_with("runs")));
        if path.join("manifest.json").is_file() {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The keys of a JSON value, those of objects in a list with `[]`.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            // Runs are known by hashes.
            let key = if key.len() == 16 && key.bytes().all(|b| b.is_ascii_hexdigit()) { "*" } else { key };
            keys(value, &if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }, found);
        }),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().for_each(|item| keys(item, &format!("{path}[]"), found));
        }
        _ => drop(found.insert(path.to_string())),
    }
}

fn described(directory: &Path) -> BTreeMap<String, Vec<String>> {
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let manifest: Value = serde_json::from_str(&read("manifest.json")).unwrap();
    let mut files = BTreeMap::new();
    for entry in manifest["files"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        let declared = entry["columns"].as_array().cloned().unwrap_or_default();
        let of = |column: &Value, key: &str| column[key].as_str().unwrap().to_string();
        let names: Vec<String> = declared.iter().map(|column| of(column, "name")).collect();
        let lines = |column: &Value| {
            let words = [of(column, "name"), of(column, "type"), of(column, "unit")];
            words.iter().filter(|word| !word.is_empty()).cloned().collect::<Vec<_>>().join(" ")
        };
        let mut lines: Vec<String> = declared.iter().map(lines).collect();
        if name.ends_with(".csv") {
            let header = columns(&read(name));
            // Undeclared columns are recorded by name only.
            if names.is_empty() {
                lines = header;
            } else {
                assert_eq!(header, names, "{name}: header and manifest");
            }
        } else if let Some(table) = name.strip_suffix(".parquet") {
            let own: Vec<&str> = names.iter().map(String::as_str).collect();
            let frame = Frame::read(directory, table, &own).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(frame.is_some(), "{name}");
        } else if name.ends_with(".json") && directory.join(name).is_file() && !name.contains('/') {
            let mut found = BTreeSet::new();
            keys(&serde_json::from_str(&read(name)).unwrap(), "", &mut found);
            let undeclared = found.into_iter().filter(|key| !names.contains(key));
            lines.extend(undeclared);
        } else {
            continue;
        }
        files.insert(name.to_string(), lines);
    }
    let mut found = BTreeSet::new();
    keys(&manifest, "", &mut found);
    files.insert("manifest.json".into(), found.into_iter().collect());
    files
}

#[test]
fn columns_and_keys_match_record() {
    let folder = Folder::new("columns");
    folder.file("measured.toml", MEASURED);
    let mut text = String::new();
    let mut tables = BTreeSet::new();
    for (name, command) in COMMANDS {
        folder.ok(*command);
        for directory in directories(&folder.0.join(name)) {
            let files = described(&directory);
            for (file, lines) in &files {
                tables.extend(file.strip_suffix(".parquet").filter(|_| *name == "run").map(str::to_string));
                // Both formats of a table have the same columns.
                let twin = file.strip_suffix(".csv").and_then(|table| files.get(&format!("{table}.parquet")));
                match twin {
                    Some(twin) => assert_eq!(twin, lines, "{name}: {file}"),
                    None => text += &format!("{name}: {file}\n  {}\n", lines.join("\n  ")),
                }
            }
        }
    }
    // Those of other schemes have the same columns before their state.
    let is_written = |table: &Table| tables.contains(table.name) || table.is_scheme() && table.name != "scheme_prime";
    assert!(TABLES.iter().all(is_written), "not every table is written: {tables:?}");
    let record = record();
    if env::var_os("ANABRANCH_RECORD").is_some() {
        fs::write(&record, &text).unwrap();
    }
    let recorded = fs::read_to_string(&record).unwrap();
    let differs = recorded.lines().zip(text.lines()).find(|(old, new)| old != new);
    assert!(
        recorded == text,
        "columns differ from {}, at {differs:?}; where that is meant, write them with ANABRANCH_RECORD=1",
        record.display()
    );
}
