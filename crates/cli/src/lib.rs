//! The command line program `anabranch`, also shipped in the Python package.
//!
//! Exit codes: 0 done, 1 a requested check failed, 2 invalid input, 3 an invariant failed, 4 a run ended as a deadlock,
//! 130 interrupted.

#![allow(clippy::doc_markdown, reason = "help is printed as it is written")]

mod arguments;
#[doc(hidden)]
pub mod at_limit;
mod backends;
mod commands;
mod complete;
mod failure;
mod help;
mod printing;
mod progress;
mod table;

pub(crate) use arguments::{
    BackendArguments, EntryArguments, Format, MAX_THREADS, ProgressMode, RunOptions, ScenarioArguments,
};
pub use backends::BACKENDS;
pub(crate) use backends::{Schemes, scenario_on, select_backends};
pub use commands::topology_of;
// What a crate with a scheme of its own needs.
pub use anabranch_lb as lb;
pub use anabranch_random as random;
pub use anabranch_settings as settings;
pub use anabranch_transport as transport;
pub use anabranch_units as units;
pub use anabranch_wire as wire;
pub(crate) use failure::Failure;
pub use nccl_net_anabranch as nccl;
pub(crate) use printing::{count, is_quiet, millions, note, print, print_json, stderr_width, table, width, wrapped};
pub(crate) use progress::{INTERRUPTED, NumberedProgress, ProgressDisplay};
pub(crate) use table::Table;

use anabranch_scenario::BackendEntry;
use anabranch_settings::Addition;
use clap::{
    CommandFactory, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
};
use commands::Arguments;
use std::{
    ffi::OsString,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};

/// Maximum width of help texts, for legibility.
const MAX_COLUMNS: usize = 100;

/// Runs the program with schemes of other crates: `main` of a crate of one's own. The command line is that of this process.
///
/// ```no_run
/// # use anabranch_settings::Addition;
/// # fn host_scheme() -> Addition { unimplemented!() }
/// fn main() -> std::process::ExitCode {
///     anabranch::main_with(vec![host_scheme()])
/// }
/// ```
pub fn main_with(schemes: Vec<Addition>) -> ExitCode {
    if let Err(mistakes) = anabranch_settings::external::add(schemes) {
        printing::print_error(&Failure::input(mistakes).message());
        return ExitCode::from(2);
    }
    ExitCode::from(command(std::env::args_os(), BACKENDS))
}

/// Runs a command line, the program's name first, with these backends, the default first. Returns the exit code.
pub fn command(words: impl IntoIterator<Item = OsString>, backends: &[&'static BackendEntry]) -> u8 {
    let code = execute(words.into_iter().collect(), backends);
    match printing::output_error() {
        // Truncated output must not pass for a complete result.
        Some(error) if code == 0 => {
            printing::print_error(&format!("error: standard output could not be written: {error}"));
            2
        }
        _ => code,
    }
}

fn execute(words: Vec<OsString>, backends: &[&'static BackendEntry]) -> u8 {
    if complete::answer(&words, <Arguments as clap::CommandFactory>::command) {
        return 0;
    }
    anabranch_scenario::machine::note_command(&words);
    let command = Arguments::command().term_width(printing::width().min(MAX_COLUMNS));
    let parsed = help::with_grouped_commands(command)
        .try_get_matches_from(&words)
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(mut error) => {
            suggest_command(&mut error);
            match words.iter().all(|word| anabranch_input::is_plain(&word.to_string_lossy())) {
                true => printing::record_output_result(error.print()),
                // The message quotes the words.
                false => printing::print_error(&anabranch_input::escaped(error.render().to_string().trim_end())),
            }
            let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if asked { 0 } else { 2 };
        }
    };
    if arguments.quiet {
        printing::set_quiet();
    }
    if !arguments.command.forwards_signals() {
        progress::handle_signals();
    }
    match catch_unwind(AssertUnwindSafe(|| commands::execute(arguments, backends))) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => {
            printing::print_error(failure.message().trim_end());
            failure.code()
        }
        Err(_) => {
            printing::print_error(
                "internal error in anabranch, not in your input; please report it with the lines above",
            );
            3
        }
    }
}

/// Returns the help of the program, for tests.
#[doc(hidden)]
pub fn help() -> String {
    help::with_grouped_commands(Arguments::command().term_width(80)).render_help().to_string()
}

/// Returns the names of all commands and subcommands, hidden ones included, for tests.
#[doc(hidden)]
pub fn commands() -> Vec<String> {
    every(&Arguments::command()).into_iter().map(|(name, _)| name).collect()
}

/// Returns why a command line names a command or option that does not exist, or lacks an argument, for tests.
#[doc(hidden)]
pub fn refusal(words: &[&str]) -> Option<String> {
    let error = Arguments::command().try_get_matches_from(words).err()?;
    let is_of_shape = !matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation);
    is_of_shape.then(|| error.to_string())
}

/// Returns the options of every command whose value names a file or directory, for tests.
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

fn suggest_command(error: &mut clap::Error) {
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
