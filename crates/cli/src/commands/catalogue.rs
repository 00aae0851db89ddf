//! `list` and `explain`.

use crate::{
    arguments::{Catalogue, Explain, Format, List},
    failure::Failure,
    printing::{print, print_json, width},
    table::Table,
};
use anabranch_scenario::explain::{self, Entry};
use nccl_net_anabranch::{VARIABLES, Variable};
use serde_json::json;

pub(crate) fn list(arguments: &List) -> Result<(), Failure> {
    let (kind, word) = match arguments.what {
        Catalogue::Schemes => (explain::Kind::Schemes, "schemes"),
        Catalogue::Topologies => (explain::Kind::Topologies, "topologies"),
        Catalogue::Transports => (explain::Kind::Transports, "transports"),
        Catalogue::Workloads => (explain::Kind::Workloads, "workloads"),
        Catalogue::Scenarios => (explain::Kind::Scenarios, "scenarios"),
    };
    let entries = explain::catalogue(kind);
    match arguments.format {
        Format::Json => {
            let entry = |e: &Entry| json!({ "name": e.name, "sort": e.sort, "meaning": e.meaning });
            print_json(&json!({ word: entries.iter().map(entry).collect::<Vec<_>>() }));
        }
        Format::Table => {
            let rows: Vec<_> = entries.iter().map(|e| vec![e.name.clone(), e.sort.into(), e.meaning.clone()]).collect();
            print(&Table::new(&["name", "what", "meaning"], rows).wrap_last().hide_first(&["what"]).draw());
        }
    }
    Ok(())
}

pub(crate) fn explain(arguments: &Explain) -> Result<(), Failure> {
    let explanation = explain::explain(&arguments.name)?;
    // `nccl` names a scheme and the plugin.
    let plugin = arguments.name == "nccl";
    match arguments.format {
        Format::Json => {
            let mut explained = explanation.json();
            if plugin {
                explained["variables"] = variables();
            }
            print_json(&explained);
        }
        Format::Table => {
            print(&explanation.text(width()));
            if plugin {
                print_variables();
            }
        }
    }
    Ok(())
}

fn variables() -> serde_json::Value {
    let one = |of: &Variable| json!({ "name": of.name, "meaning": of.meaning, "expected": of.expected, "default": of.default });
    VARIABLES.iter().map(one).collect()
}

fn print_variables() {
    let options = textwrap::Options::new(width()).initial_indent("        ").subsequent_indent("        ");
    print("\nEnvironment variables of the network plugin for NCCL (docs/reference/nccl.md)\n");
    for Variable { name, meaning, expected, default } in VARIABLES {
        let text = textwrap::fill(&format!("{meaning}: {expected}. Default: {default}."), &options);
        print(&format!("\n    {name}\n{text}\n"));
    }
}
