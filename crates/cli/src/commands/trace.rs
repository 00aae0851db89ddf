use super::request::require_directory;
use crate::{Failure, Format, print, print_json};
use anabranch_report::export_perfetto;
use anabranch_results::{OutputFile, check_results, files_of};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Trace {
    /// Directory of a run
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// File for Perfetto (ui.perfetto.dev): flows and phases of collectives as slices, time series as counters
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) replace: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

pub(crate) fn trace(arguments: &Trace) -> Result<(), Failure> {
    let (dir, file) = (&arguments.dir, &arguments.perfetto);
    require_directory(dir, "; give the --out directory of run")?;
    if dir.join("summary.json").exists() {
        check_results(dir)?;
    }
    let output = OutputFile::new(file, arguments.replace, &files_of(dir))?;
    let counts = export_perfetto(dir, &output)?;
    match arguments.format {
        Format::Json => print_json(&json!({
            "perfetto": file.to_string_lossy(),
            "tracks": counts.tracks,
            "slices": counts.slices,
            "counter_values": counts.values,
            "moments": counts.instants,
        })),
        Format::Table => print(&format!(
            "{}: {} tracks, {} slices, {} values of counters, {} moments; open it at https://ui.perfetto.dev\n",
            file.display(),
            counts.tracks,
            counts.slices,
            counts.values,
            counts.instants
        )),
    }
    Ok(())
}
