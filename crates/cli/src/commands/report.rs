use crate::{
    arguments::{Format, Report, Style},
    failure::Failure,
    printing::{note, print, print_json},
};
use anabranch_report::{FigureStyle, Manifest, check_results, report_styled};
use anabranch_study::hold::Hold;
use serde_json::json;

pub(crate) fn report(arguments: &Report) -> Result<(), Failure> {
    if !arguments.dir.is_dir() {
        let dir = arguments.dir.display();
        return Err(Failure::input(format!(
            "directory {dir} does not exist; give the --out directory of run or compare"
        )));
    }
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
