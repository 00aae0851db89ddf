//! `list` and `explain`.

use crate::{Failure, Format, Table, complete, print, print_json, width};
use anabranch_report::Term;
use anabranch_scenario::explain;
use anabranch_settings::Level;
use anabranch_study::explain::{explain as explain_name, result_terms};
use clap::{Args, ValueEnum};
use nccl_net_anabranch::{VARIABLES, Variable};
use serde_json::json;

/// Catalogues of `list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Catalogue {
    /// Load balancers: pairs by name, host sides, switch sides
    Schemes,
    /// Kinds of topology
    Topologies,
    /// Transports and their congestion controls
    Transports,
    /// Kinds of workload and flow-size distributions
    Workloads,
    /// Ready-made scenarios
    Scenarios,
    /// Ready-made scenarios of papers, for `reproduce`
    PaperScenarios,
    /// Metrics of comparisons and sweeps
    Metrics,
    /// Columns and keys of result files
    Columns,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Catalogue to list [default: the catalogues]
    #[arg(value_enum)]
    pub(crate) what: Option<Catalogue>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Name as printed by `anabranch list`, section or key of a scenario, column of a result file, or a word of the field such as allreduce
    #[arg(value_name = "NAME", add = complete::terms())]
    pub(crate) name: String,
    /// Show keys for experts too: constants of algorithms, models and datapaths
    #[arg(long)]
    pub(crate) expert: bool,
    /// Show keys too that only try readings of a paper
    #[arg(long)]
    pub(crate) readings: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// An entry of a catalogue: name, sort, meaning.
type Row = (String, String, String);

fn rows(what: Catalogue) -> Vec<Row> {
    let scenario = |kind| {
        let row = |e: explain::CatalogueEntry| (e.name, e.sort.to_string(), e.meaning);
        explain::catalogue(kind).into_iter().map(row).collect()
    };
    let results = |metrics| {
        let row = |term: Term| {
            let unit = if term.unit.is_empty() { String::new() } else { format!(" ({})", term.unit) };
            (term.name, term.place, format!("{}{unit}", term.meaning))
        };
        result_terms(metrics).into_iter().map(row).collect()
    };
    match what {
        Catalogue::Schemes => scenario(explain::CatalogueKind::Schemes),
        Catalogue::Topologies => scenario(explain::CatalogueKind::Topologies),
        Catalogue::Transports => scenario(explain::CatalogueKind::Transports),
        Catalogue::Workloads => scenario(explain::CatalogueKind::Workloads),
        Catalogue::Scenarios => scenario(explain::CatalogueKind::Scenarios),
        Catalogue::PaperScenarios => scenario(explain::CatalogueKind::PaperScenarios),
        Catalogue::Metrics => results(true),
        Catalogue::Columns => results(false),
    }
}

/// Returns the catalogues with their meanings.
fn catalogues() -> Vec<(Catalogue, String, String)> {
    let named = |what: &Catalogue| {
        let value = what.to_possible_value()?;
        Some((*what, value.get_name().to_string(), value.get_help().map(ToString::to_string).unwrap_or_default()))
    };
    Catalogue::value_variants().iter().filter_map(named).collect()
}

fn list_catalogues(format: Format) {
    match format {
        Format::Json => {
            let one = |(what, name, meaning): (Catalogue, String, String)| json!({ "name": name, "entries": rows(what).len(), "meaning": meaning });
            print_json(&json!({ "catalogues": catalogues().into_iter().map(one).collect::<Vec<_>>() }));
        }
        Format::Table => {
            let one =
                |(what, name, meaning): (Catalogue, String, String)| vec![name, rows(what).len().to_string(), meaning];
            let rows = catalogues().into_iter().map(one).collect();
            print(&Table::new(&["anabranch list", "entries", "meaning"], rows).wrap_last().draw());
        }
    }
}

pub(crate) fn list(arguments: &List) -> Result<(), Failure> {
    let Some(what) = arguments.what else {
        list_catalogues(arguments.format);
        return Ok(());
    };
    let word = what.to_possible_value().map_or_else(String::new, |value| value.get_name().to_string());
    let rows = rows(what);
    match arguments.format {
        Format::Json => {
            let entry = |(name, sort, meaning): &Row| json!({ "name": name, "sort": sort, "meaning": meaning });
            print_json(&json!({ word: rows.iter().map(entry).collect::<Vec<_>>() }));
        }
        Format::Table => {
            let rows: Vec<_> = rows.into_iter().map(|(name, sort, meaning)| vec![name, sort, meaning]).collect();
            print(&Table::new(&["name", "what", "meaning"], rows).wrap_last().hide_first(&["what"]).draw());
        }
    }
    Ok(())
}

/// Returns the levels of the keys to show.
pub(super) fn levels(expert: bool, readings: bool) -> Vec<Level> {
    let more = [(expert, Level::Expert), (readings, Level::Reading)].into_iter().filter(|(is_shown, _)| *is_shown);
    std::iter::once(Level::User).chain(more.map(|(_, level)| level)).collect()
}

pub(crate) fn explain(arguments: &Explain) -> Result<(), Failure> {
    let explanation = explain_name(&arguments.name)?;
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
            let shown = explanation.at(&levels(arguments.expert, arguments.readings));
            print(&shown.text(width()));
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
