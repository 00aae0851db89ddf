//! Targets: result files, which are read from disk.

use anabranch_report::read_comparison;
use anabranch_results::{Frame, Manifest, TABLES, read_summary};
use anabranch_study::sweep::SweepFile;
use std::{cell::RefCell, fs, path::Path};
use tempfile::TempDir;

thread_local! {
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// Writes the bytes to files of these names in an empty folder of this thread.
fn with_files(names: &[&str], bytes: &[u8], read: impl FnOnce(&Path)) {
    FOLDER.with_borrow_mut(|folder| {
        let made = folder.get_or_insert_with(|| TempDir::new().expect("a temporary folder"));
        for name in names {
            fs::write(made.path().join(name), bytes).expect("a file");
        }
        read(made.path());
        for name in names {
            fs::remove_file(made.path().join(name)).expect("the file");
        }
    });
}

pub(crate) fn sweep_file(bytes: &[u8]) {
    with_files(&["sweep.toml"], bytes, |folder| drop(SweepFile::read(&folder.join("sweep.toml"))));
}

pub(crate) fn result_json(bytes: &[u8]) {
    with_files(&["manifest.json", "summary.json", "comparison.csv"], bytes, |folder| {
        let _ = Manifest::read(folder);
        let _ = read_summary(folder);
        let _ = read_comparison(folder);
    });
}

fn tables(ending: &str, bytes: &[u8]) {
    // Those of schemes are of one kind.
    for table in TABLES.iter().filter(|table| !table.is_scheme() || table.name == "scheme_hopper") {
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        with_files(&[&format!("{}.{ending}", table.name)], bytes, |folder| {
            let _ = Frame::read(folder, table.name, &columns);
        });
    }
}

pub(crate) fn table_csv(bytes: &[u8]) {
    tables("csv", bytes);
}

pub(crate) fn table_parquet(bytes: &[u8]) {
    tables("parquet", bytes);
}
