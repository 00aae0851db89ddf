use crate::{
    arguments::{Format, Report},
    failure::Failure,
    printing::{note, print, print_json},
};
use anabranch_report::{Manifest, check_results};
use anabranch_study::hold::Hold;
use serde_json::json;

pub(crate) fn report(arguments: &Report) -> Result<(), Failure> {
    if !arguments.dir.is_dir() {
        let dir = arguments.dir.display();
        return Err(Failure::input(format!(
            "directory {dir} does not exist; give the --out directory of run or compare"
        )));
    }
    for warning in check_results(&arguments.dir)? {
        note(&format!("warning: {warning}"));
    }
    if Manifest::read(&arguments.dir)?.is_some_and(|manifest| manifest.is_undrawn()) {
        note("the command that wrote these results ended before figures and page were drawn; drawing them now");
    }
    let _hold = Hold::take();
    let page = match arguments.all_flows {
        true => anabranch_report::report_pooled(&arguments.dir)?,
        false => anabranch_report::report(&arguments.dir)?,
    };
    match arguments.format {
        Format::Json => print_json(&json!({ "report": page.to_string_lossy() })),
        Format::Table => print(&format!("{}\n", page.display())),
    }
    Ok(())
}
