//! `list` and `explain`.

use crate::{
    arguments::{Explain, Format, Kind, List},
    failure::Failure,
    printing::{print, print_json, table, width},
    table::Table,
};
use anabranch_study::explain::{self, Entry};
use nccl_net_anabranch::{VARIABLES, Variable};
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
    if arguments.name == "nccl" {
        explain_nccl(arguments.format);
        return Ok(());
    }
    let explanation = explain::explain(&arguments.name)?;
    match arguments.format {
        Format::Json => print_json(&explanation.json()),
        Format::Table => print(&explanation.text(width())),
    }
    Ok(())
}

/// The variables that the plugin for NCCL reads.
fn explain_nccl(format: Format) {
    if format == Format::Json {
        let variables: Vec<_> = VARIABLES
            .iter()
            .map(|of| json!({ "name": of.name, "meaning": of.meaning, "expected": of.expected, "default": of.default }))
            .collect();
        return print_json(&json!({ "name": "nccl", "variables": variables }));
    }
    let row =
        |of: &Variable| vec![of.name.to_string(), format!("{}: {}", of.meaning, of.expected), of.default.to_string()];
    let rows: Vec<_> = VARIABLES.iter().map(row).collect();
    print("nccl: the network plugin for NCCL (docs/nccl.md), set by variables of the environment.\n\n");
    print(&table(&["variable", "what it says", "default"], &rows));
}
