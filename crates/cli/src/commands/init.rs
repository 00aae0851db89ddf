use crate::{
    arguments::Init,
    failure::Failure,
    printing::{note, print},
};
use anabranch_report::{Inputs, OutputFile};
use anabranch_scenario::init::scenario_to_start_from;
use std::path::Path;

pub(crate) fn init(arguments: &Init) -> Result<(), Failure> {
    let (text, file) = (scenario_to_start_from(), &arguments.file);
    if file == Path::new("-") {
        print(&text);
        return Ok(());
    }
    OutputFile::new(file, arguments.replace, &Inputs::default())?.write_all(text.as_bytes())?;
    let name = file.display();
    note(&format!("{name} written; next: anabranch check {name}, anabranch compare {name}"));
    Ok(())
}
