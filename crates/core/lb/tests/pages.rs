//! Every page of the book is among the doctests.

#[test]
fn no_page_is_left_out() {
    let included = include_str!("../src/lib.rs");
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
    let mut pages = 0;
    for (folder, prefix) in [(root.to_string(), ""), (format!("{root}/docs"), "docs/")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            // The history of changes and what is written from the registry hold no examples.
            if !name.ends_with(".md") || ["CHANGELOG.md", "SUMMARY.md", "reference.md"].contains(&name.as_str()) {
                continue;
            }
            pages += 1;
            let line = format!("include_str!(\"../../../../../{prefix}{name}\")");
            assert!(
                included.contains(&line),
                "{prefix}{name} is not in `pages` of crates/core/lb/src/lib.rs: add {line}"
            );
        }
    }
    assert!(pages > 10, "{pages}");
}
