use crate::{
    arguments::Init,
    failure::Failure,
    printing::{note, print},
};
use anabranch_report::{Inputs, OutputFile};
use anabranch_scenario::{ScenarioError, init, library::READY_MADE};
use anabranch_settings::nearest_few;
use std::path::Path;

pub(crate) fn init(arguments: &Init) -> Result<(), Failure> {
    let text = match &arguments.from {
        Some(name) => ready_made(name)?.to_string(),
        None if arguments.all => init::every_key(),
        None => init::FIRST.to_string(),
    };
    let file = &arguments.file;
    if file == Path::new("-") {
        print(&text);
        return Ok(());
    }
    OutputFile::new(file, arguments.replace, &Inputs::default())?.write_all(text.as_bytes())?;
    let name = file.display();
    note(&format!("{name} written; next: anabranch check {name}, anabranch compare {name}"));
    Ok(())
}

fn ready_made(name: &str) -> Result<&'static str, ScenarioError> {
    let found = READY_MADE.iter().find(|ready| ready.name == name).map(|ready| ready.text);
    found.ok_or_else(|| {
        let near = nearest_few(name, READY_MADE.iter().map(|ready| ready.name), 3).join(", ");
        ScenarioError::new(format!("--from: unknown ready-made scenario `{name}`; the nearest are {near}"))
            .help("`anabranch list scenarios` shows all")
    })
}
