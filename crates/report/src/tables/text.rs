//! Tables as CSV.

use super::{Context, TABLES, Table, Value};
use crate::meta::RunMeta;
use anabranch_outcome::RunResult;
use std::io::{self, BufWriter, Write};

/// Every table of a run that would be written, by name, as its CSV file says it.
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

/// Writes `table` with a header line.
pub(crate) fn write_csv(table: &Table, context: &Context<'_>, to: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(BufWriter::new(to));
    writer.write_record(table.columns.iter().map(|column| column.name))?;
    let mut cell = Vec::new();
    for at in (table.rows)(context.result) {
        for column in table.columns {
            cell.clear();
            match (column.get)(context, at) {
                Value::Integer(value) => write!(cell, "{value}")?,
                Value::Real(value) => write!(cell, "{value}")?,
                Value::Text(value) => cell.extend_from_slice(value.as_bytes()),
                Value::Flag(value) => write!(cell, "{value}")?,
                Value::Empty => {}
            }
            writer.write_field(&cell)?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()
}
