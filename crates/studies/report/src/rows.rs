//! Rows as CSV.

use crate::manifest::ColumnEntry;

/// The text of a cell; empty: nothing.
pub(crate) fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// `rows` under the names of `columns`.
pub(crate) fn to_csv<R: IntoIterator<Item: AsRef<[u8]>>>(
    columns: &[ColumnEntry],
    rows: impl IntoIterator<Item = R>,
) -> String {
    let mut writer = csv::Writer::from_writer(vec![]);
    // Writing to memory cannot fail.
    let _ = writer.write_record(columns.iter().map(|column| &column.name));
    for row in rows {
        let _ = writer.write_record(row);
    }
    text(writer)
}

/// What was written.
pub(crate) fn text(writer: csv::Writer<Vec<u8>>) -> String {
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}
