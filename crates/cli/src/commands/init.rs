use super::catalogue::levels;
use crate::{Failure, complete, note, print};
use anabranch_results::{Inputs, OutputFile};
use anabranch_scenario::{ScenarioError, init, library::READY_MADE};
use anabranch_settings::nearest_few;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// File to write; `-` for standard output
    #[arg(default_value = "scenario.toml")]
    pub(crate) file: PathBuf,
    /// Write the keys of users with their meanings and defaults
    #[arg(long, conflicts_with = "from")]
    pub(crate) all: bool,
    /// Write keys for experts too: constants of algorithms, models and datapaths
    #[arg(long, requires = "all")]
    pub(crate) expert: bool,
    /// Write keys too that only try readings of a paper
    #[arg(long, requires = "all")]
    pub(crate) readings: bool,
    /// Write a ready-made scenario (`anabranch list scenarios`)
    #[arg(long, value_name = "NAME", add = complete::ready_made())]
    pub(crate) from: Option<String>,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) replace: bool,
}

pub(crate) fn init(arguments: &Init) -> Result<(), Failure> {
    let text = match &arguments.from {
        Some(name) => ready_made(name)?.to_string(),
        None if arguments.all => init::every_key(&levels(arguments.expert, arguments.readings)),
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
