//! `completions` and `man`: from the definitions of the commands.

use crate::{
    arguments::{Arguments, Completions, Man},
    failure::Failure,
    printing::{note, print},
};
use clap::CommandFactory;

/// `anabranch completions`.
pub(crate) fn completions(arguments: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "anabranch", &mut text);
    print(&String::from_utf8_lossy(&text));
    Ok(())
}

/// `anabranch man`.
pub(crate) fn man(arguments: &Man) -> Result<(), Failure> {
    let dir = &arguments.dir;
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), dir))
        .map_err(|error| Failure::input(format!("{}: {error}", dir.display())))?;
    note(&format!("manual pages in {}; to read one: man -l {}", dir.display(), dir.join("anabranch.1").display()));
    Ok(())
}
