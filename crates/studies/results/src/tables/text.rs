use super::{At, Column, ColumnKind, Context, Filling, TABLES, Table, Value, parquet::unfit};
use crate::RunMeta;
use anabranch_outcome::RunResult;
use std::{borrow::Cow, io, io::Write};

/// Returns the content of the CSV files of all tables that a run would write, by name.
pub fn csv_tables(result: &RunResult, meta: &RunMeta) -> Vec<(&'static str, String)> {
    let context = Context::new(result, meta);
    let text = |table: &Table, rows: &[At]| {
        let mut bytes = Vec::new();
        write_csv(table, &context, rows, &mut bytes).expect("memory can be written");
        String::from_utf8(bytes).expect("made of texts")
    };
    let rows = TABLES.iter().map(|table| (table, (table.rows)(table, result)));
    let written = rows.filter(|(table, rows)| table.always || !rows.is_empty());
    written.map(|(table, rows)| (table.name, text(table, &rows))).collect()
}

/// Approximate bytes that are written to the file at once.
const BLOCK: usize = 1 << 16;

/// Number of rows whose numbers are in memory at once.
const ROWS: usize = 1 << 10;

/// Estimates the bytes of `rows` of `table` as CSV from up to a thousand of them, evenly spaced.
pub fn csv_bytes(table: &Table, context: &Context<'_>, rows: &[At]) -> u64 {
    const SAMPLES: usize = 1000;
    let sampled: Vec<At> = rows.iter().step_by(rows.len().div_ceil(SAMPLES).max(1)).copied().collect();
    let bytes = |rows: &[At]| {
        let mut text = Vec::new();
        write_csv(table, context, rows, &mut text).expect("memory can be written");
        text.len() as u64
    };
    let header = bytes(&[]);
    header + (bytes(&sampled) - header).saturating_mul(rows.len() as u64) / (sampled.len() as u64).max(1)
}

/// Cells of a column for some rows. Numbers are filled a column at a time, texts are taken from the rows.
struct Cells<'r> {
    column: &'static Column,
    numbers: Option<Filling<'r>>,
    /// Last text and its form in the file: most texts are equal to the one above.
    last: (&'r str, Vec<u8>),
}

impl<'r> Cells<'r> {
    fn new(column: &'static Column) -> Self {
        let numbers = (column.kind != ColumnKind::Text).then(|| Filling::new(column.kind, ROWS));
        Cells { column, numbers, last: ("", Vec::new()) }
    }

    fn fill(&mut self, context: &Context<'r>, rows: &[At]) {
        let Some(numbers) = &mut self.numbers else { return };
        numbers.clear();
        if !(self.column.fill)(context, rows, numbers) {
            unfit(self.column);
        }
    }

    /// Appends cell `row` of those filled, which is at `at`.
    #[inline]
    fn push(&mut self, context: &Context<'r>, at: At, row: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let mut digits = itoa::Buffer::new();
        match &self.numbers {
            Some(Filling::Integer(cells, validity)) if validity.has(row) => {
                out.extend_from_slice(digits.format(cells[row]).as_bytes());
            }
            Some(Filling::Unsigned(cells, validity)) if validity.has(row) => {
                out.extend_from_slice(digits.format(cells[row]).as_bytes());
            }
            Some(Filling::Real(cells, validity)) if validity.has(row) => write!(out, "{}", cells[row])?,
            Some(Filling::Flag(cells, validity)) if validity.has(row) => {
                out.extend_from_slice(if cells.get(row) { b"true" } else { b"false" });
            }
            Some(_) => {}
            None => match (self.column.get)(context, at) {
                Value::Text(Cow::Borrowed(text)) => {
                    if !std::ptr::eq(self.last.0, text) {
                        self.last.0 = text;
                        self.last.1.clear();
                        push_text(&mut self.last.1, text);
                    }
                    out.extend_from_slice(&self.last.1);
                }
                Value::Text(Cow::Owned(text)) => push_text(out, &text),
                _ => {}
            },
        }
        Ok(())
    }
}

/// Writes `rows` of a table. Most values are numbers, which need no quotes.
pub fn write_csv(table: &Table, context: &Context<'_>, rows: &[At], mut to: impl Write) -> io::Result<()> {
    let mut out = Vec::with_capacity(BLOCK + BLOCK / 4);
    let end = |out: &mut Vec<u8>| {
        out.pop();
        out.push(b'\n');
    };
    for column in table.columns {
        push_text(&mut out, column.name);
        out.push(b',');
    }
    end(&mut out);
    let mut columns: Vec<Cells<'_>> = table.columns.iter().map(Cells::new).collect();
    for rows in rows.chunks(ROWS) {
        columns.iter_mut().for_each(|cells| cells.fill(context, rows));
        for (row, &at) in rows.iter().enumerate() {
            for cells in &mut columns {
                cells.push(context, at, row, &mut out)?;
                out.push(b',');
            }
            end(&mut out);
            if out.len() >= BLOCK {
                to.write_all(&out)?;
                out.clear();
            }
        }
    }
    to.write_all(&out)?;
    to.flush()
}

/// Quotes a text if it requires quotes (RFC 4180).
fn push_text(out: &mut Vec<u8>, text: &str) {
    if !text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        for text in ["leaf0", "a,b", "say \"no\"", "two\nlines", "", "\"", "cr\r"] {
            let mut out = b"1,".to_vec();
            push_text(&mut out, text);
            out.push(b'\n');
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(out.as_slice());
            let record = reader.records().next().unwrap().unwrap();
            assert_eq!((&record[0], &record[1]), ("1", text));
        }
    }
}
