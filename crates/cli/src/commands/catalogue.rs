//! `list` and `explain`.

use crate::{
    arguments::{Explain, Format, Kind, List},
    failure::Failure,
    printing::{print, print_json, width},
    table::Table,
};
use anabranch_scenario::explain::{self, Entry};
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
    let explanation = explain::explain(&arguments.name)?;
    // A scheme's name, and what the plugin for that library is called.
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
                tell_variables();
            }
        }
    }
    Ok(())
}

/// The variables that the plugin for NCCL reads.
fn variables() -> serde_json::Value {
    let one = |of: &Variable| json!({ "name": of.name, "meaning": of.meaning, "expected": of.expected, "default": of.default });
    VARIABLES.iter().map(one).collect()
}

fn tell_variables() {
    let options = textwrap::Options::new(width()).initial_indent("        ").subsequent_indent("        ");
    print("\nThe network plugin for NCCL (docs/reference/nccl.md) reads from the environment\n");
    for Variable { name, meaning, expected, default } in VARIABLES {
        let text = textwrap::fill(&format!("{meaning}: {expected}. Default: {default}."), &options);
        print(&format!("\n    {name}\n{text}\n"));
    }
}
