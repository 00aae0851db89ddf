//! Tables written and read back, as CSV and as Parquet.

use crate::{
    common,
    common::{CSV, SCHEMES, add_measurements, meta, run, unfinish},
};
use anabranch_outcome::{Measures, RunResult};
use anabranch_results::{Formats, Frame, Manifest, ReportError, TABLES};
use anabranch_testkit::{folder, words};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::{collections::BTreeSet, fs, path::Path};

fn files(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn names(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| word.to_string()).collect()
}

#[test]
fn both_formats_equal_the_run() {
    let dir = folder();
    let (csv, parquet) = (dir.join("csv"), dir.join("parquet"));
    let mut result = run(&SCHEMES[1], 3, 30_000, false);
    add_measurements(&mut result);
    unfinish(&mut result.flows[17]);
    result.flows[18].start = None;
    let meta = meta("hf2t+letflow", 3);
    common::write_run(&csv, &result, &meta, CSV);
    common::write_run(&parquet, &result, &meta, Formats::PARQUET);
    // Of the schemes one has calls.
    for table in TABLES.iter().filter(|table| !table.is_scheme() || table.name == "scheme_hopper") {
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        let one = Frame::read(&csv, table.name, &columns).unwrap().unwrap();
        let other = Frame::read(&parquet, table.name, &columns).unwrap().unwrap();
        assert_eq!(one.rows(), (table.rows)(table, &RunResult::new(result.clone(), &Measures::ALL)).len());
        assert_eq!(format!("{one:?}"), format!("{other:?}"), "{}", table.name);
    }
    let columns = ["size_bytes", "fct_rx_ps", "slowdown", "status", "start_ps"];
    let frame = Frame::read(&parquet, "flows", &columns).unwrap().unwrap();
    for (i, flow) in result.flows.iter().enumerate() {
        assert_eq!(frame.integers("size_bytes")[i], Some(flow.size_bytes));
        assert_eq!(frame.integers("fct_rx_ps")[i], flow.fct_rx.map(|t| t.ps()));
        assert_eq!(frame.integers("start_ps")[i], flow.start.map(|t| t.ps()));
    }
    assert_eq!((frame.reals("slowdown")[17], frame.texts("status")[17].as_str()), (None, "unfinished"));
}

/// A table whose CSV would exceed the limit is Parquet alone, and the manifest notes it.
#[test]
fn large_tables_are_parquet_alone() {
    let dir = folder();
    let result = run(&SCHEMES[1], 3, 30_000, false);
    let write = |name: &str, max_csv| {
        let formats = Formats { max_csv, ..Formats::BOTH };
        let dir = dir.join(name);
        common::write_run(&dir, &result, &meta("hf2t+letflow", 3), formats);
        let manifest = Manifest::read(&dir).unwrap().unwrap();
        let meaning = manifest.files.iter().find(|file| file.name == "links.parquet").unwrap().meaning.clone();
        (files(&dir), meaning)
    };
    let (whole, plain) = write("whole", Formats::BOTH.max_csv);
    let bytes = fs::metadata(dir.join("whole/links.csv")).unwrap().len();
    // The flows' table is the larger one.
    let flows = fs::metadata(dir.join("whole/flows.csv")).unwrap().len();
    assert!(flows > bytes, "{flows}");
    // There are fewer than a thousand links, so that the estimate is exact.
    assert!(!plain.contains("omitted"), "{plain}");
    let (same, _) = write("same", bytes);
    assert_eq!(whole.difference(&same).collect::<Vec<_>>(), ["flows.csv"]);
    let (less, meaning) = write("less", bytes - 1);
    let gone: Vec<&String> = whole.difference(&less).collect();
    assert_eq!(gone, ["flows.csv", "links.csv"]);
    assert!(meaning.contains("links.csv is omitted: about") && meaning.contains(&bytes.to_string()), "{meaning}");
    assert!(Frame::read(&dir.join("less"), "links", &["bytes"]).unwrap().is_some());
}

#[test]
fn parquet_has_provenance() {
    let dir = folder();
    common::write_run(&dir, &run(&SCHEMES[4], 2, 10, false), &meta("prime", 2), Formats::PARQUET);
    let reader = SerializedFileReader::new(fs::File::open(dir.join("flows.parquet")).unwrap()).unwrap();
    let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap().clone();
    let value = |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone());
    assert_eq!(value("anabranch.seed").as_deref(), Some("2"));
    assert_eq!(value("anabranch.scenario_hash").as_deref(), Some("0123456789abcdef"));
    assert_eq!(value("unit.start_ps").as_deref(), Some("ps"));
    assert_eq!(value("anabranch.fingerprint").unwrap().len(), 16);
}

#[test]
fn only_measured_tables_are_written_and_stale_ones_removed() {
    let dir = folder();
    let mut measured = run(&SCHEMES[4], 1, 10, false);
    add_measurements(&mut measured);
    common::write_run(&dir, &measured, &meta("prime", 1), CSV);
    let base = ["flows.csv", "links.csv", "manifest.json", "summary.json"];
    let extra = "series.csv series_flows.csv series_scheme.csv uplinks.csv occupancy.csv trace.csv scheme_hopper.csv";
    let of_jobs = ["jobs.csv", "job_ranks.csv", "job_steps.csv", "job_flows.csv", "gpus.csv"];
    assert_eq!(files(&dir), names(&[&base[..], &words(extra), &of_jobs[..]].concat()));
    common::write_run(&dir, &run(&SCHEMES[4], 1, 10, false), &meta("prime", 1), CSV);
    assert_eq!(files(&dir), names(&base));
}

#[test]
fn manifest_explains_every_column() {
    let dir = folder();
    let mut result = run(&SCHEMES[4], 1, 10, false);
    add_measurements(&mut result);
    common::write_run(&dir, &result, &meta("prime", 1), Formats::BOTH);
    let manifest = Manifest::read(&dir).unwrap().unwrap();
    assert_eq!((manifest.scenario_hash.as_str(), manifest.seeds.as_slice()), ("0123456789abcdef", &[1][..]));
    assert!(manifest.scenario.contains("leaf-spine"));
    for name in files(&dir).into_iter().filter(|name| name != "manifest.json") {
        let entry = manifest.files.iter().find(|file| file.name == name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(entry.columns.iter().all(|column| !column.meaning.is_empty()));
        if name.ends_with(".csv") {
            let header = csv::Reader::from_path(dir.join(&name)).unwrap().headers().unwrap().clone();
            let explained: Vec<_> = entry.columns.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(explained, header.iter().collect::<Vec<_>>());
        }
    }
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(dir.join("summary.json")).unwrap()).unwrap();
    let keys = &manifest.files.iter().find(|file| file.name == "summary.json").unwrap().columns;
    for key in summary.as_object().unwrap().keys() {
        let is_explained = keys.iter().any(|k| k.name == *key || k.name.starts_with(&format!("{key}.")));
        assert!(is_explained, "{key} is not explained");
    }
}

#[test]
fn names_may_contain_commas_and_quotes() {
    let dir = folder();
    let mut meta = meta("prime", 1);
    meta.workloads[0].name = "web, \"search\"\n2".to_string();
    common::write_run(&dir, &run(&SCHEMES[4], 1, 5, false), &meta, CSV);
    let frame = Frame::read(&dir, "flows", &["workload"]).unwrap().unwrap();
    assert!(frame.texts("workload").iter().all(|name| name == "web, \"search\"\n2"));
}

#[test]
fn damaged_files_give_errors_with_position() {
    let dir = folder();
    fs::write(dir.join("flows.csv"), "flow_id,size_bytes\n0,1000\n1,many\n").unwrap();
    let message = |columns: &[&str]| Frame::read(&dir, "flows", columns).unwrap_err().to_string();
    let text = message(&["size_bytes"]);
    assert!(text.contains("line 3") && text.contains("`many`") && text.contains("size_bytes"), "{text}");
    // A column that another version did not write is no damage: it is empty, and listed as missing.
    let frame = Frame::read(&dir, "flows", &["flow_id", "slowdown"]).unwrap().unwrap();
    assert_eq!((frame.rows(), frame.missing(), frame.reals("slowdown")), (2, &["slowdown".to_string()][..], &[][..]));
    fs::write(dir.join("flows.parquet"), "not parquet").unwrap();
    assert!(matches!(Frame::read(&dir, "flows", &["flow_id"]), Err(ReportError::Content { .. })));
    assert!(Frame::read(&dir, "links", &["from"]).unwrap().is_none());
}
