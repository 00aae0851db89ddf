//! `completions` and `man`, which follow from the definitions of the commands.

use crate::{Failure, complete, note, print};
use anabranch_results::{Inputs, OutputFile, disk};
use clap::{Args, Command};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell; for bash: source <(anabranch completions bash)
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Directory for the pages, one file per command
    #[arg(default_value = "man")]
    pub(crate) dir: PathBuf,
    /// Replace other files of these names
    #[arg(long)]
    pub(crate) replace: bool,
}

pub(crate) fn completions(arguments: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    complete::registration(&arguments.shell.to_string(), &mut text).expect("memory can be written");
    print(&String::from_utf8_lossy(&text));
    Ok(())
}

fn pages_of(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    pages.push((page.get_filename(), text));
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| pages_of(below, pages))
}

pub(crate) fn man(arguments: &Man, command: Command) -> Result<(), Failure> {
    let dir = &arguments.dir;
    let failed = |error: std::io::Error| Failure::input(format!("{}: {error}", dir.display()));
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    pages_of(&command, &mut pages).map_err(failed)?;
    if dir.exists() && !dir.is_dir() {
        return Err(Failure::input(format!(
            "{}: this is a file, expected a directory for the manual pages",
            dir.display()
        )));
    }
    disk::make_directories(dir).map_err(failed)?;
    // Identical pages are kept; other files are replaced with --replace only.
    let is_other = |(name, text): &(String, Vec<u8>)| !std::fs::read(dir.join(name)).is_ok_and(|there| there == *text);
    pages.retain(is_other);
    let file = |name: &String| OutputFile::new(&dir.join(name), arguments.replace, &Inputs::default());
    let files = pages.iter().map(|(name, _)| file(name)).collect::<Result<Vec<_>, _>>()?;
    for (file, (_, text)) in files.iter().zip(&pages) {
        file.write_all(text)?;
    }
    note(&format!("manual pages in {}; to read one: man -l {}", dir.display(), dir.join("anabranch.1").display()));
    Ok(())
}
