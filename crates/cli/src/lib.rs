//! The command `anabranch`, for its program and for the Python package, which brings it too. Exit codes: 0 done, 2 the
//! input is wrong, 3 an invariant failed, 4 a run ended as a deadlock, 130 interrupted.

mod arguments;
mod backends;
mod commands;
mod failure;
mod help;
mod printing;
mod progress;
mod table;

pub use backends::BACKENDS;
pub use commands::topology_of;

use anabranch_scenario::backend::BackendEntry;
use arguments::Arguments;
use clap::{
    CommandFactory, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{
    ffi::OsString,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Help in longer lines is hard to read.
const MOST_COLUMNS: usize = 100;

/// Does what a command line says, its first word the program's name, with these backends, the default first. Returns the exit
/// code.
pub fn command(words: impl IntoIterator<Item = OsString>, backends: &[&'static BackendEntry]) -> u8 {
    let code = execute(words.into_iter().collect(), backends);
    match printing::unwritten() {
        // A file that is cut short must not look like an answer.
        Some(error) if code == 0 => {
            printing::complain(&format!("error: standard output could not be written: {error}"));
            2
        }
        _ => code,
    }
}

fn execute(words: Vec<OsString>, backends: &[&'static BackendEntry]) -> u8 {
    anabranch_scenario::machine::note_command(&words);
    let command = Arguments::command().term_width(printing::width().min(MOST_COLUMNS));
    let parsed =
        help::by_groups(command).try_get_matches_from(&words).and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(mut error) => {
            name_the_nearest(&mut error);
            match words.iter().all(|word| anabranch_input::is_plain(&word.to_string_lossy())) {
                true => printing::note_output(error.print()),
                // It quotes them.
                false => printing::complain(&anabranch_input::escaped(error.render().to_string().trim_end())),
            }
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if asked { 0 } else { 2 };
        }
    };
    if arguments.quiet {
        printing::be_quiet();
    }
    if !arguments.command.passes_signals_on() {
        progress::listen_for_interruption();
    }
    match catch_unwind(AssertUnwindSafe(|| commands::execute(arguments, backends))) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => {
            printing::complain(failure.message().trim_end());
            failure.code()
        }
        Err(_) => {
            printing::complain(
                "error: this is a mistake in anabranch, not in your input; please report it with the lines above",
            );
            3
        }
    }
}

/// For tests: the help of the program.
#[doc(hidden)]
pub fn help() -> String {
    help::by_groups(Arguments::command().term_width(80)).render_help().to_string()
}

/// For tests: every command and those below it, hidden ones too.
#[doc(hidden)]
pub fn commands() -> Vec<String> {
    every(&Arguments::command()).into_iter().map(|(name, _)| name).collect()
}

/// For tests: the options of every command whose value names a file or directory.
#[doc(hidden)]
pub fn path_options() -> Vec<(String, String)> {
    let is_path = |argument: &&clap::Arg| {
        let names = argument.get_value_names().unwrap_or_default();
        names.iter().any(|name| ["FILE", "DIR", "PATH"].iter().any(|word| name.contains(word)))
            || argument.get_value_parser().type_id() == clap::builder::ValueParser::path_buf().type_id()
    };
    let of = |(name, command): (String, clap::Command)| {
        let options = command.get_arguments().filter(is_path).filter_map(clap::Arg::get_long);
        options.map(|option| (name.clone(), format!("--{option}"))).collect::<Vec<_>>()
    };
    every(&Arguments::command()).into_iter().flat_map(of).collect()
}

fn every(command: &clap::Command) -> Vec<(String, clap::Command)> {
    let below = |command: &clap::Command| {
        let name = command.get_name().to_string();
        let further = every(command).into_iter().map(|(below, command)| (format!("{name} {below}"), command));
        std::iter::once((name.clone(), command.clone())).chain(further.collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    command.get_subcommands().flat_map(below).collect()
}

/// Names the nearest command where clap found none near enough.
fn name_the_nearest(error: &mut clap::Error) {
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidSubcommand) else { return };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return;
    }
    let command = Arguments::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let near = anabranch_settings::nearest(found, names.iter().copied());
    let allowed =
        near.map_or_else(|| anabranch_settings::nearest_few(found, names.iter().copied(), 3), |near| vec![near]);
    error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(allowed));
}
