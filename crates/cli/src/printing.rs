//! What goes to standard output, and tables for people.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use std::{
    io::Write,
    sync::atomic::{AtomicBool, Ordering},
};

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

/// A line under the header, nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));

/// Prints to standard output; a reader that has gone away is no error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints one JSON object.
pub(crate) fn print_json(value: &serde_json::Value) {
    print(&format!("{value:#}\n"));
}

/// Prints for people, beside the answer; nothing with `--quiet`.
pub(crate) fn note(text: &str) {
    if !is_quiet() {
        complain(text);
    }
}

/// Prints what must be read: why there is no answer.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Columns with a header; columns whose cells are all numbers are aligned to the right.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header).add_rows(rows);
    let number = |cell: &str| cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c));
    for (index, column) in table.column_iter_mut().enumerate() {
        // Between two columns stands one blank more, where other styles have their line.
        column.set_padding((0, if index + 1 == header.len() { 0 } else { 1 }));
        if !rows.is_empty() && rows.iter().filter_map(|row| row.get(index)).all(|cell| number(cell)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt() + "\n"
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
    fn tables_align() {
        let rows = vec![vec!["prime".into(), "1.25".into()], vec!["ecmp".into(), "10.00".into()]];
        assert_eq!(table(&["scheme", "p99"], &rows), "scheme    p99\n-------------\nprime    1.25\necmp    10.00\n");
    }

    #[test]
    fn counts_have_groups() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }
}
