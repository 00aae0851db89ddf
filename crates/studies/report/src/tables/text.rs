use super::{At, Context, TABLES, Table, Value};
use crate::meta::RunMeta;
use anabranch_outcome::RunResult;
use std::io::{self, Write};

/// Returns the content of the CSV files of all tables that a run would write, by name.
pub fn csv_tables(result: &RunResult, meta: &RunMeta) -> Vec<(&'static str, String)> {
    let context = Context::new(result, meta);
    let text = |table: &Table| {
        let mut bytes = Vec::new();
        write_csv(table, &context, &mut bytes).expect("memory can be written");
        String::from_utf8(bytes).expect("made of texts")
    };
    let written = TABLES.iter().filter(|table| table.always || !(table.rows)(result).is_empty());
    written.map(|table| (table.name, text(table))).collect()
}

/// Approximate bytes that are written to the file at once.
const BLOCK: usize = 1 << 16;

/// Estimates the bytes of `table` as CSV from up to a thousand of its rows, evenly spaced.
pub(crate) fn csv_bytes(table: &Table, context: &Context<'_>) -> u64 {
    const SAMPLES: usize = 1000;
    let rows = (table.rows)(context.result);
    let sampled: Vec<At> = rows.iter().step_by(rows.len().div_ceil(SAMPLES).max(1)).copied().collect();
    let bytes = |rows: &[At]| {
        let mut text = Vec::new();
        write_rows(table, context, rows, &mut text).expect("memory can be written");
        text.len() as u64
    };
    let header = bytes(&[]);
    header + (bytes(&sampled) - header).saturating_mul(rows.len() as u64) / (sampled.len() as u64).max(1)
}

/// Most values are numbers, which need no quotes.
pub(crate) fn write_csv(table: &Table, context: &Context<'_>, to: impl Write) -> io::Result<()> {
    write_rows(table, context, &(table.rows)(context.result), to)
}

fn write_rows(table: &Table, context: &Context<'_>, rows: &[At], mut to: impl Write) -> io::Result<()> {
    let mut out = Vec::with_capacity(BLOCK + BLOCK / 4);
    let mut digits = itoa::Buffer::new();
    let end = |out: &mut Vec<u8>| {
        out.pop();
        out.push(b'\n');
    };
    for column in table.columns {
        push_text(&mut out, column.name);
        out.push(b',');
    }
    end(&mut out);
    for &at in rows {
        for column in table.columns {
            match (column.get)(context, at) {
                Value::Integer(value) => out.extend_from_slice(digits.format(value).as_bytes()),
                Value::Real(value) => write!(out, "{value}")?,
                Value::Text(value) => push_text(&mut out, &value),
                Value::Flag(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
                Value::Empty => {}
            }
            out.push(b',');
        }
        end(&mut out);
        if out.len() >= BLOCK {
            to.write_all(&out)?;
            out.clear();
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
