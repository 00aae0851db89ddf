use crate::TopologyError;
use std::fmt::Display;

/// `line` counts from 1.
pub(crate) fn at_line(line: usize, message: impl Display) -> TopologyError {
    TopologyError::new(format!("line {line}: {message}"))
}

/// Returns the lines with content: number from 1, text without comment and surrounding blanks.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split('#').next().unwrap_or("").trim()))
        .filter(|(_, line)| !line.is_empty())
}

pub(crate) fn number(line: usize, what: &str, text: &str) -> Result<u64, TopologyError> {
    text.parse().map_err(|_| at_line(line, format!("{what} is `{text}`; a whole number is needed")))
}
