//! What goes to standard output and standard error, and how wide it may be.

use crate::table::Table;
use anabranch_input::{escaped, is_plain};
use std::{
    io::{ErrorKind, IsTerminal, Write},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// Columns where neither a terminal nor `COLUMNS` says otherwise.
const COLUMNS: usize = 80;
/// Narrower than this, lines break anywhere.
const NARROWEST: usize = 40;

/// Set by `--quiet`: nothing but the answer and errors.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on notes are dropped.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether notes and progress are dropped.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Columns of the answer: those that `COLUMNS` names, else those of the terminal, else 80.
pub(crate) fn width() -> usize {
    columns(terminal_size::terminal_size_of(std::io::stdout()))
}

/// The same of standard error, where progress and notes go.
pub(crate) fn width_of_notes() -> usize {
    columns(terminal_size::terminal_size_of(std::io::stderr()))
}

fn columns(terminal: Option<(terminal_size::Width, terminal_size::Height)>) -> usize {
    let named = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    // Terminals that do not know their width say 0.
    let seen = terminal.map(|(width, _)| usize::from(width.0)).filter(|columns| *columns > 0);
    named.or(seen).unwrap_or(COLUMNS).max(NARROWEST)
}

/// Prints to standard output; a reader that has gone away is no error.
pub(crate) fn print(text: &str) {
    let (text, mut out) = (escaped(text), std::io::stdout().lock());
    note_output(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Why the answer could not be written, once that is so.
static UNWRITTEN: OnceLock<String> = OnceLock::new();

/// Notes how writing to standard output ended.
pub(crate) fn note_output(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = UNWRITTEN.set(error.to_string());
    }
}

/// Returns why the answer, or a part of it, could not be written; `None`: it was.
pub(crate) fn unwritten() -> Option<&'static str> {
    UNWRITTEN.get().map(String::as_str)
}

/// Prints one JSON object. Characters that control terminals stand as JSON's escapes.
pub(crate) fn print_json(value: &serde_json::Value) {
    let text = format!("{value:#}\n");
    let plain = |c: char| is_plain(c.encode_utf8(&mut [0; 4]));
    let text = text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        // All of them are below U+10000, and stand in strings alone.
        if plain(c) {
            out.push(c)
        } else {
            out += &format!("\\u{:04x}", u32::from(c))
        }
        out
    });
    print(&text);
}

/// Prints for people, beside the answer; nothing with `--quiet`.
pub(crate) fn note(text: &str) {
    if is_quiet() {
        return;
    }
    let text = &escaped(text);
    // Scripts find a message in one line.
    match std::io::stderr().is_terminal() {
        true => complain(&wrapped(text, width_of_notes())),
        false => complain(text),
    }
}

/// Prints what must be read: why there is no answer.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// `text` in lines of at most so many columns, broken between words.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let options = textwrap::Options::new(width).break_words(false);
    textwrap::fill(text, options.word_splitter(textwrap::WordSplitter::NoHyphenation))
}

/// A table none of whose columns goes. Those that may need [`Table`].
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    Table::new(header, rows.to_vec()).draw()
}

/// A count with thin groups of three digits.
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

/// A rate such as packet-hops per second, in millions.
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
