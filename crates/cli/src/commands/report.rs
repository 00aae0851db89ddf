use super::request::require_directory;
use crate::{Failure, Format, note, print, print_json};
use anabranch_report::{FigureStyle, report_styled};
use anabranch_results::{Manifest, check_results};
use anabranch_study::Hold;
use serde_json::json;
use std::path::PathBuf;

/// What figures are drawn for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Style {
    /// The page alone
    #[default]
    Page,
    /// Column and double-column width of ACM and IEEE, 8 to 9 pt, without titles
    Paper,
    /// Slides of 16:9, 16 to 18 pt, without titles
    Slides,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    /// Directory written by `run`, `compare` or `sweep`
    pub(crate) dir: PathBuf,
    /// Also draw figures for ACM and IEEE columns (SVG, PDF) or for slides (SVG, PDF, PNG), with their captions
    #[arg(long, value_enum, default_value_t)]
    pub(crate) style: Style,
    /// Add figures of all workloads pooled
    #[arg(long)]
    pub(crate) all_flows: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

pub(crate) fn report(arguments: &Report) -> Result<(), Failure> {
    require_directory(&arguments.dir, "; give the --out directory of run or compare")?;
    check_results(&arguments.dir)?;
    if Manifest::read(&arguments.dir)?.is_some_and(|manifest| manifest.is_undrawn()) {
        note("the command that wrote these results ended before figures and page were drawn; drawing them now");
    }
    let _hold = Hold::take();
    let style = match arguments.style {
        Style::Page => FigureStyle::Page,
        Style::Paper => FigureStyle::Paper,
        Style::Slides => FigureStyle::Slides,
    };
    let drawn = report_styled(&arguments.dir, style, arguments.all_flows)?;
    match arguments.format {
        Format::Json => {
            let folders: Vec<_> = drawn.folders.iter().map(|folder| folder.to_string_lossy()).collect();
            print_json(&json!({ "report": drawn.page.to_string_lossy(), "figures": folders }))
        }
        Format::Table => {
            let paths = std::iter::once(&drawn.page).chain(&drawn.folders);
            print(&paths.map(|path| format!("{}\n", path.display())).collect::<String>())
        }
    }
    Ok(())
}
