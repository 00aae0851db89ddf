//! `list` and `explain`.

use crate::{
    arguments::{Explain, Format, Kind, List},
    failure::Failure,
    printing::{print, print_json, width},
    table::Table,
};
use anabranch_study::explain::{self, Entry};
use serde_json::json;

/// `anabranch list`.
pub(crate) fn list(arguments: &List) -> Result<(), Failure> {
    let (kind, word) = match arguments.what {
        Kind::Schemes => (explain::Kind::Schemes, "schemes"),
        Kind::Topologies => (explain::Kind::Topologies, "topologies"),
        Kind::Transports => (explain::Kind::Transports, "transports"),
        Kind::Workloads => (explain::Kind::Workloads, "workloads"),
        Kind::Scenarios => (explain::Kind::Scenarios, "scenarios"),
    };
    let entries = explain::catalogue(kind);
    match arguments.format {
        Format::Json => {
            let entry = |e: &Entry| json!({ "name": e.name, "sort": e.sort, "meaning": e.meaning });
            print_json(&json!({ word: entries.iter().map(entry).collect::<Vec<_>>() }));
        }
        Format::Table => {
            let rows: Vec<_> = entries.iter().map(|e| vec![e.name.clone(), e.sort.into(), e.meaning.clone()]).collect();
            print(&Table::new(&["name", "what", "meaning"], rows).wrap_last().least(&["what"]).draw());
        }
    }
    Ok(())
}

/// `anabranch explain`.
pub(crate) fn explain(arguments: &Explain) -> Result<(), Failure> {
    let explanation = explain::explain(&arguments.name)?;
    match arguments.format {
        Format::Json => print_json(&explanation.json()),
        Format::Table => print(&explanation.text(width())),
    }
    Ok(())
}
