use super::{record::record, request::require_directory};
use crate::{Failure, Format, print, print_json};
use anabranch_report::{viewed_runs, write_view, write_view_into};
use anabranch_results::{Inputs, OutputFile, check_results, check_runs, files_of};
use anabranch_study::Hold;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct View {
    /// Directory written by `run` or `compare`, or a run of a sweep
    pub(crate) dir: PathBuf,
    /// Second directory, shown beside the first
    pub(crate) beside: Option<PathBuf>,
    /// Load balancers of a comparison [default: its first two]
    #[arg(long, value_name = "A[,B]", value_delimiter = ',')]
    pub(crate) schemes: Vec<String>,
    /// Seed of a comparison [default: the first that both have]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Run again, with series of links and a trace of the slowest flow of each workload, what was run without them; fingerprints must be equal
    #[arg(long)]
    pub(crate) record: bool,
    /// File to write [default: DIR/view.html]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace an existing file of --out
    #[arg(long)]
    pub(crate) replace: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

pub(crate) fn view(arguments: &View) -> Result<(), Failure> {
    let dirs: Vec<_> = std::iter::once(&arguments.dir).chain(&arguments.beside).collect();
    for dir in &dirs {
        require_directory(dir, "; give the --out directory of run or compare")?;
    }
    if arguments.schemes.len() > 2 {
        let given = arguments.schemes.len();
        return Err(Failure::input(format!(
            "--schemes: found {given} load balancers, expected one, or two to show side by side"
        )));
    }
    let mut runs = vec![];
    for (place, dir) in dirs.iter().enumerate() {
        // With two directories, one run of each is shown.
        let (schemes, most) = match (dirs.len(), arguments.schemes.len()) {
            (2, 2) => (&arguments.schemes[place..=place], 1),
            (2, _) => (&arguments.schemes[..], 1),
            _ => (&arguments.schemes[..], 2),
        };
        let viewed = viewed_runs(dir, schemes, arguments.seed, most)?;
        check_runs(dir, &viewed)?;
        runs.extend(viewed);
    }
    runs.iter().try_for_each(|run| check_results(run))?;
    // The page of the same runs, with more measured; results on disk stay as they are.
    let recording = if arguments.record { Some(record(&runs)?) } else { None };
    let shown = recording.as_ref().map_or(&runs, |recording| &recording.runs);
    let _hold = Hold::take();
    let page = match &arguments.out {
        Some(out) => {
            let read = Inputs::joined(runs.iter().map(|run| files_of(run)));
            let file = OutputFile::new(out, arguments.replace, &read)?;
            write_view(shown, &file).map(|()| out.clone())?
        }
        None => write_view_into(&arguments.dir, shown)?,
    };
    match arguments.format {
        Format::Json => print_json(&json!({ "view": page.to_string_lossy() })),
        Format::Table => print(&format!("{}\n", page.display())),
    }
    Ok(())
}
