//! Tables as CSV.

use super::{Context, Table, Value};
use std::io::{self, BufWriter, Write};

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
