//! Errors of commands and their exit codes.

use anabranch_results::ReportError;
use anabranch_scenario::ScenarioError;
use anabranch_study::RunError;
use miette::{GraphicalReportHandler, GraphicalTheme};
use std::io::IsTerminal;

/// Reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Invalid input (2).
    Input(ScenarioError),
    /// A check that the user requested failed (1).
    Check(String),
    /// An invariant failed or the simulation ended early (3).
    Broken(String),
    /// A single run ended as a deadlock or stalled (4); its results are written.
    Unfinished(String),
    /// Interrupted (130); partial results are kept.
    Interrupted,
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Self {
        Failure::Input(error)
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Drawing { .. } => Failure::Broken(error.to_string()),
            _ => Failure::input(error.to_string()),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Scenario(error) => Failure::Input(error),
            RunError::Broken(message) => Failure::Broken(message),
            RunError::Report(error) => error.into(),
            RunError::Interrupted => Failure::Interrupted,
        }
    }
}

impl Failure {
    /// Invalid input without a place in a file.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Failure::Input(ScenarioError::new(message))
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Check(_) => 1,
            Failure::Input(_) => 2,
            Failure::Broken(_) => 3,
            Failure::Unfinished(_) => 4,
            Failure::Interrupted => 130,
        }
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Failure::Input(error) => rendered(error),
            Failure::Check(message) | Failure::Broken(message) | Failure::Unfinished(message) => {
                format!("error: {}\n", anabranch_input::escaped(message))
            }
            Failure::Interrupted => "interrupted\n".into(),
        }
    }
}

/// Renders an error and those found with it, their number last.
fn rendered(error: &ScenarioError) -> String {
    let others = error.others();
    let all: String = std::iter::once(error).chain(others).map(render).collect();
    match (others.len() + 1, error.more()) {
        (1, _) => all,
        (shown, 0) => format!("{all}{shown} mistakes\n"),
        (shown, more) => format!("{all}{} mistakes, of which the first {shown} are shown\n", shown + more),
    }
}

/// Renders an error with the line of the source and a mark under the place; coloured on a terminal only.
fn render(error: &ScenarioError) -> String {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    // Unbroken lines where a script reads them.
    let width = terminal_size::terminal_size_of(std::io::stderr()).map_or(100_000, |(width, _)| usize::from(width.0));
    let mut text = String::new();
    match GraphicalReportHandler::new_themed(theme).with_links(false).with_width(width).render_report(&mut text, error)
    {
        Ok(()) => text,
        Err(_) => format!("error: {error}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_match_contract() {
        let broken = || RunError::Broken("the simulation ended early".into());
        let run = |error: RunError| Failure::from(error).code();
        assert_eq!((run(ScenarioError::new("x").into()), run(broken())), (2, 3));
        assert_eq!((Failure::input("x").code(), Failure::Interrupted.code()), (2, 130));
        assert_eq!(Failure::Unfinished("x".into()).code(), 4);
        assert_eq!(Failure::Check("1 of 2 cases failed".into()).code(), 1);
        assert_eq!(Failure::from(broken()).message(), "error: the simulation ended early\n");
        let missing = ReportError::NoResults { path: "nowhere".into() };
        assert_eq!(run(missing.into()), 2);
    }
}
