//! Standard output and standard error, and their widths.

use crate::Table;
use anabranch_input::{escaped, is_plain};
use std::{
    io::{ErrorKind, IsTerminal, Write},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// Width where neither a terminal nor `COLUMNS` gives one.
const COLUMNS: usize = 80;
/// Minimum width; below it words are split.
const MIN_COLUMNS: usize = 40;

/// Set by `--quiet`: only results and errors are printed.
static QUIET: AtomicBool = AtomicBool::new(false);

pub(crate) fn set_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Width of standard output: `COLUMNS`, else that of the terminal, else 80.
pub(crate) fn width() -> usize {
    columns(terminal_size::terminal_size_of(std::io::stdout()))
}

pub(crate) fn stderr_width() -> usize {
    columns(terminal_size::terminal_size_of(std::io::stderr()))
}

fn columns(terminal: Option<(terminal_size::Width, terminal_size::Height)>) -> usize {
    let named = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    // Terminals of unknown width report 0.
    let seen = terminal.map(|(width, _)| usize::from(width.0)).filter(|columns| *columns > 0);
    named.or(seen).unwrap_or(COLUMNS).max(MIN_COLUMNS)
}

/// Prints to standard output. A closed pipe is not an error.
pub(crate) fn print(text: &str) {
    let (text, mut out) = (escaped(text), std::io::stdout().lock());
    record_output_result(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

static OUTPUT_ERROR: OnceLock<String> = OnceLock::new();

pub(crate) fn record_output_result(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = OUTPUT_ERROR.set(error.to_string());
    }
}

pub(crate) fn output_error() -> Option<&'static str> {
    OUTPUT_ERROR.get().map(String::as_str)
}

/// Prints one JSON object. Terminal control characters are escaped as JSON has it.
pub(crate) fn print_json(value: &serde_json::Value) {
    let text = format!("{value:#}\n");
    let plain = |c: char| is_plain(c.encode_utf8(&mut [0; 4]));
    let text = text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        // All of them are below U+10000 and occur in strings only.
        if plain(c) {
            out.push(c)
        } else {
            out += &format!("\\u{:04x}", u32::from(c))
        }
        out
    });
    print(&text);
}

/// Prints a note to standard error; nothing with `--quiet`.
pub(crate) fn note(text: &str) {
    if is_quiet() {
        return;
    }
    let text = &escaped(text);
    // Each message is one line for scripts.
    if std::io::stderr().is_terminal() { print_error(&wrapped(text, stderr_width())) } else { print_error(text) }
}

pub(crate) fn print_error(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let options = textwrap::Options::new(width).break_words(false);
    textwrap::fill(text, options.word_splitter(textwrap::WordSplitter::NoHyphenation))
}

pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    Table::new(header, rows.to_vec()).draw()
}

/// Formats a count with thin spaces between groups of three digits.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(crate) fn millions(value: f64) -> String {
    format!("{:.2} M", value / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_groups() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
