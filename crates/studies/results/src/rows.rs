//! Keys, columns and cells of CSV files.

use crate::ColumnEntry;

/// A key or column: name, type, unit, meaning. A part whose keys are declared elsewhere has an empty type.
pub type Key = (&'static str, &'static str, &'static str, &'static str);

/// Declares a struct whose fields are keys of a JSON object or columns of a table: `field: Type => "type", "unit", "meaning"`;
/// with `default` before the type, the key is absent where it has its default.
#[macro_export]
macro_rules! declared {
    (
        $(#[$about:meta])* pub struct $name:ident {
            $($(#[$attribute:meta])* pub $field:ident: $type:ty $(=> $($default:ident)? $kind:literal, $unit:literal, $meaning:literal)?;)*
        }
    ) => {
        $(#[$about])*
        #[allow(clippy::doc_markdown, reason = "meanings are shown to users without markup")]
        pub struct $name {
            $(
                $(#[$attribute])*
                $($(#[serde($default, skip_serializing_if = "crate::rows::is_default")])? #[doc = $meaning])?
                pub $field: $type,
            )*
        }

        impl $name {
            /// Keys of the object.
            pub const KEYS: &[$crate::rows::Key] =
                &[$($crate::declared!(@key $field $($kind, $unit, $meaning)?),)*];
        }
    };
    (@key $field:ident) => { (stringify!($field), "", "", "") };
    (@key $field:ident $kind:literal, $unit:literal, $meaning:literal) => {
        (stringify!($field), $kind, $unit, $meaning)
    };
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns a cell; empty for an unknown value.
pub fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Returns the content of a CSV file.
pub fn to_csv<R: IntoIterator<Item: AsRef<[u8]>>>(
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

/// Appends a cell, quoted if it requires quotes (RFC 4180).
pub fn push_cell(out: &mut String, text: &str) {
    if !text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        out.push_str(text);
        return;
    }
    out.push('"');
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}

/// Returns what was written to memory.
pub fn text(writer: csv::Writer<Vec<u8>>) -> String {
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}
