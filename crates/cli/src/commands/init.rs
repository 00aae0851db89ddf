//! `init`.

use crate::{
    arguments::Init,
    failure::Failure,
    printing::{note, print},
};
use anabranch_study::{ScenarioError, init::scenario_to_start_from};
use std::path::Path;

/// `anabranch init`.
pub(crate) fn init(arguments: &Init) -> Result<(), Failure> {
    let (text, file) = (scenario_to_start_from(), &arguments.file);
    if file == Path::new("-") {
        print(&text);
        return Ok(());
    }
    if file.exists() && !arguments.replace {
        let message = format!("{} is there already", file.display());
        return Err(ScenarioError::new(message).help("give another name, or --replace").into());
    }
    std::fs::write(file, text)
        .map_err(|error| Failure::input(format!("{} cannot be written: {error}", file.display())))?;
    let name = file.display();
    note(&format!("{name}: a scenario to start from; next: anabranch check {name}, anabranch compare {name}"));
    Ok(())
}
