use super::{
    ColumnKind, TABLES, Table,
    guard::guarded,
    parquet::{Field, schema, writer_properties},
    read::{Cells, append},
};
use crate::{ColumnEntry, FileEntry, Manifest, ReportError, Staging};
use parquet::{
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::{ParquetError, Result},
    file::{
        reader::{FileReader, SerializedFileReader},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
};
use std::{io::Write, iter::repeat_n, path::PathBuf};

/// A column that identifies the run of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    pub name: String,
    pub kind: ColumnKind,
    pub meaning: String,
}

/// One of the gathered runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub directory: PathBuf,
    /// A cell per [`Label`].
    pub labels: Vec<String>,
}

/// Rows after which a row group is written; bounds the memory of gathering.
const ROW_GROUP: usize = 1 << 16;

const REPEAT_RUN: &str = "repeat the run, or remove its directory";

/// Gathers the rows of `members` and lists their files in `manifest`.
pub fn stage_gathered(
    staging: &mut Staging,
    manifest: &mut Manifest,
    labels: &[Label],
    members: &[Member],
) -> Result<(), ReportError> {
    let tables = gather_into(staging, labels, members)?;
    let is_gathered = |file: &FileEntry| TABLES.iter().any(|table| file.name == format!("{}.parquet", table.name));
    manifest.files.retain(|file| !is_gathered(file));
    for table in &tables {
        let meaning = format!("the rows of `{table}` of all runs");
        manifest.files.push(FileEntry::new(format!("{table}.parquet"), &meaning, columns(table, labels)));
    }
    Ok(())
}

/// Writes `TABLE.parquet` for every table that a member has: the labels, then the columns of the table. Returns the
/// names of the tables. The files do not depend on the time or place of writing.
fn gather_into(
    staging: &mut Staging,
    labels: &[Label],
    members: &[Member],
) -> std::result::Result<Vec<String>, ReportError> {
    let mut written = vec![];
    for table in TABLES.iter() {
        let file = |member: &Member| member.directory.join(format!("{}.parquet", table.name));
        let present: Vec<&Member> = members.iter().filter(|member| file(member).exists()).collect();
        if present.is_empty() {
            continue;
        }
        let name = format!("{}.parquet", table.name);
        let mut unreadable = None;
        let outcome = staging.write(&name, |to| {
            write_table(table, labels, &present, to).map_err(|wrong| match wrong {
                Wrong::Reading(error) => {
                    unreadable = Some(error);
                    ParquetError::General("a run's rows cannot be read".to_string())
                }
                Wrong::Writing(error) => error,
            })
        });
        match unreadable {
            Some(error) => return Err(error),
            None => outcome?,
        }
        written.push(table.name.to_string());
    }
    Ok(written)
}

fn columns(table: &str, labels: &[Label]) -> Vec<ColumnEntry> {
    let own = TABLES.iter().find(|t| t.name == table).map_or(&[][..], |table| table.columns);
    let label = |label: &Label| ColumnEntry::new(&label.name, label.kind.word(), "", &label.meaning);
    let column = |c: &super::Column| ColumnEntry::new(c.name, c.kind.word(), c.unit, c.meaning);
    labels.iter().map(label).chain(own.iter().filter(|c| !is_label(labels, c.name)).map(column)).collect()
}

/// A label replaces the column of its name, since both contain the same values.
fn is_label(labels: &[Label], column: &str) -> bool {
    labels.iter().any(|label| label.name == column)
}

enum Wrong {
    Reading(ReportError),
    Writing(ParquetError),
}

impl From<ParquetError> for Wrong {
    fn from(error: ParquetError) -> Self {
        Wrong::Writing(error)
    }
}

/// Rows that are not yet in a row group.
struct Pending {
    cells: Vec<Cells>,
    rows: usize,
}

fn extend(cells: &mut Cells, label: &Label, cell: &str, rows: usize) -> Result<()> {
    let unfit = || ParquetError::General(format!("`{cell}` does not fit in column {}", label.name));
    match cells {
        // Labels may be negative; they are stored as their 64 bits.
        Cells::Integer(cells) if label.kind == ColumnKind::Integer => {
            let value: i64 = cell.parse().map_err(|_| unfit())?;
            cells.extend(repeat_n(Some(value as u64), rows));
        }
        Cells::Integer(cells) => cells.extend(repeat_n(Some(cell.parse().map_err(|_| unfit())?), rows)),
        Cells::Real(cells) => cells.extend(repeat_n(Some(cell.parse().map_err(|_| unfit())?), rows)),
        Cells::Flag(cells) => cells.extend(repeat_n(cell.parse::<bool>().map_err(|_| unfit())?, rows)),
        Cells::Text(cells) => cells.extend(repeat_n(cell.to_string(), rows)),
    }
    Ok(())
}

fn write_table(
    table: &Table,
    labels: &[Label],
    members: &[&Member],
    to: impl Write + Send,
) -> std::result::Result<(), Wrong> {
    let columns: Vec<_> = table.columns.iter().filter(|column| !is_label(labels, column.name)).collect();
    let fields: Vec<Field<'_>> = labels
        .iter()
        .map(|label| Field { name: &label.name, kind: label.kind, optional: false })
        .chain(columns.iter().map(|c| Field { name: c.name, kind: c.kind, optional: c.optional }))
        .collect();
    let units = columns.iter().map(|column| (column.name, column.unit));
    let properties = writer_properties(&[], units, &fields);
    let mut writer = SerializedFileWriter::new(to, schema(table.name, &fields)?, properties)?;
    let empty = || Pending { cells: fields.iter().map(|field| Cells::new(field.kind)).collect(), rows: 0 };
    let mut pending = empty();
    for member in members {
        let path = member.directory.join(format!("{}.parquet", table.name));
        let wrong = |error: ParquetError| Wrong::Reading(ReportError::content(&path, error, REPEAT_RUN));
        let (file, _) =
            anabranch_input::open(&path).map_err(|error| Wrong::Reading(ReportError::file(&path, error)))?;
        let reader = guarded(|| SerializedFileReader::new(file)).map_err(wrong)?;
        let descriptor = reader.metadata().file_metadata().schema_descr();
        let header: Vec<&str> = descriptor.columns().iter().map(|column| column.name()).collect();
        let indices: Vec<usize> = columns
            .iter()
            .map(|column| {
                let missing = || ParquetError::General(format!("there is no column `{}`", column.name));
                header.iter().position(|name| *name == column.name).ok_or_else(missing)
            })
            .collect::<Result<_>>()
            .map_err(wrong)?;
        for number in 0..reader.num_row_groups() {
            let group = guarded(|| reader.get_row_group(number)).map_err(wrong)?;
            let rows = group.metadata().num_rows() as usize;
            let (of_run, own) = pending.cells.split_at_mut(labels.len());
            for ((cells, label), cell) in of_run.iter_mut().zip(labels).zip(&member.labels) {
                extend(cells, label, cell, rows)?;
            }
            for (cells, index) in own.iter_mut().zip(&indices) {
                append(cells, &*group, *index).map_err(wrong)?;
            }
            pending.rows += rows;
            if pending.rows >= ROW_GROUP {
                flush(&mut writer, &fields, std::mem::replace(&mut pending, empty()))?;
            }
        }
    }
    if pending.rows > 0 {
        flush(&mut writer, &fields, pending)?;
    }
    writer.close()?;
    Ok(())
}

fn flush<W: Write + Send>(writer: &mut SerializedFileWriter<W>, fields: &[Field<'_>], pending: Pending) -> Result<()> {
    let mut group = writer.next_row_group()?;
    for (field, cells) in fields.iter().zip(pending.cells) {
        match cells {
            Cells::Integer(cells) => {
                optional::<Int64Type, _>(&mut group, field, cells.into_iter().map(|c| c.map(|v| v as i64)))
            }
            Cells::Real(cells) => optional::<DoubleType, _>(&mut group, field, cells.into_iter()),
            Cells::Flag(cells) => optional::<BoolType, _>(&mut group, field, cells.into_iter().map(Some)),
            Cells::Text(cells) => {
                optional::<ByteArrayType, _>(&mut group, field, cells.iter().map(|c| Some(ByteArray::from(c.as_str()))))
            }
        }?;
    }
    group.close()?;
    Ok(())
}

/// Writes a column whose empty cells are `None`.
fn optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    field: &Field<'_>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let (mut values, mut levels) = (vec![], vec![]);
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    if !field.optional && values.len() < levels.len() {
        return Err(ParquetError::General(format!("an empty cell in column {}", field.name)));
    }
    let mut writer =
        group.next_column()?.ok_or_else(|| ParquetError::General("more columns than fields".to_string()))?;
    writer.typed::<T>().write_batch(&values, field.optional.then_some(levels.as_slice()), None)?;
    writer.close()
}
