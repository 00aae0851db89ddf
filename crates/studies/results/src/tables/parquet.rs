//! Writing of tables as Parquet, through the low-level column writers.

use super::{At, Column, ColumnKind, Context, Filling, Table, Validity, Value};
use parquet::{
    basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::{ParquetError, Result},
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr},
        writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::{ColumnPath, Type, TypePtr},
};
use std::{borrow::Cow, io::Write, sync::Arc};

/// Maximum number of rows of a row group; bounds the memory of writing.
const ROW_GROUP: usize = 1 << 18;

/// Number of rows of a column that are in memory at once.
const BATCH: usize = 1 << 12;

/// `provenance` is stored in the file's key-value metadata, with the unit of every column that has one.
pub fn write_parquet(
    table: &Table,
    context: &Context<'_>,
    rows: &[At],
    provenance: &[(String, String)],
    to: impl Write + Send,
) -> Result<()> {
    let units = table.columns.iter().map(|column| (column.name, column.unit));
    let fields: Vec<Field<'_>> =
        table.columns.iter().map(|c| Field { name: c.name, kind: c.kind, optional: c.optional }).collect();
    let properties = writer_properties(provenance, units, &fields);
    let mut writer = SerializedFileWriter::new(to, schema(table.name, &fields)?, properties)?;
    let mut fillings: Vec<Filling<'_>> =
        table.columns.iter().map(|column| Filling::new(column.kind, BATCH.min(rows.len()))).collect();
    for rows in rows.chunks(ROW_GROUP) {
        let mut group = writer.next_row_group()?;
        for (column, filling) in table.columns.iter().zip(&mut fillings) {
            match column.kind {
                ColumnKind::Integer | ColumnKind::Unsigned => {
                    numbers::<Int64Type, _>(&mut group, column, context, rows, filling)
                }
                ColumnKind::Real => numbers::<DoubleType, _>(&mut group, column, context, rows, filling),
                ColumnKind::Text => {
                    // Consecutive rows often have equal texts, which share one copy.
                    let mut last = ByteArray::from("");
                    write::<ByteArrayType, _>(&mut group, column, context, rows, |value| match value {
                        Value::Text(value) => {
                            if last.data() != value.as_bytes() {
                                last = ByteArray::from(value.as_ref());
                            }
                            Some(last.clone())
                        }
                        _ => None,
                    })
                }
                ColumnKind::Flag => write::<BoolType, _>(&mut group, column, context, rows, |value| match value {
                    Value::Flag(value) => Some(value),
                    _ => None,
                }),
            }?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'n> {
    pub name: &'n str,
    pub kind: ColumnKind,
    pub optional: bool,
}

/// `provenance` and the `units` of columns are metadata. Most integers are times and counts close to the one before:
/// delta encoding takes less time and space than a dictionary.
pub(crate) fn writer_properties<'n>(
    provenance: &[(String, String)],
    units: impl Iterator<Item = (&'n str, &'n str)>,
    fields: &[Field<'_>],
) -> WriterPropertiesPtr {
    let units = units.filter(|(_, unit)| !unit.is_empty());
    let metadata = provenance
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .chain(units.map(|(column, unit)| KeyValue::new(format!("unit.{column}"), unit.to_string())))
        .collect();
    let mut properties = WriterProperties::builder();
    for field in fields.iter().filter(|field| matches!(field.kind, ColumnKind::Integer | ColumnKind::Unsigned)) {
        let column = ColumnPath::from(field.name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    let properties = properties
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("anabranch ", env!("CARGO_PKG_VERSION")).to_string())
        .set_key_value_metadata(Some(metadata))
        .build();
    Arc::new(properties)
}

pub(crate) fn schema(name: &str, fields: &[Field<'_>]) -> Result<TypePtr> {
    let fields = fields.iter().map(|field| {
        let (physical, logical) = match field.kind {
            ColumnKind::Integer => (Physical::INT64, None),
            ColumnKind::Unsigned => (Physical::INT64, Some(LogicalType::integer(64, false))),
            ColumnKind::Real => (Physical::DOUBLE, None),
            ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnKind::Flag => (Physical::BOOLEAN, None),
        };
        let repetition = if field.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(field.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    });
    Ok(Arc::new(Type::group_type_builder(name).with_fields(fields.collect::<Result<_>>()?).build()?))
}

fn next_column<'g, W: Write + Send>(
    group: &'g mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
) -> Result<SerializedColumnWriter<'g>> {
    group.next_column()?.ok_or_else(|| ParquetError::General(format!("no place for column {}", column.name)))
}

/// A bug of this program, unlike a full disk: the run counts as failed.
pub(super) fn unfit(column: &Column) -> ! {
    panic!("a value does not fit in column {}", column.name)
}

/// A type of numbers, as the cells of a [`Filling`].
trait Number: DataType {
    /// Returns the cells and their validity; `None` if they are of another type.
    fn cells<'f>(filling: &'f Filling<'_>) -> Option<(Cow<'f, [Self::T]>, &'f Validity)>;
}

impl Number for Int64Type {
    fn cells<'f>(filling: &'f Filling<'_>) -> Option<(Cow<'f, [i64]>, &'f Validity)> {
        match filling {
            Filling::Integer(cells, validity) => Some((Cow::Borrowed(cells), validity)),
            Filling::Unsigned(cells, validity) => Some((cells.iter().map(|cell| *cell as i64).collect(), validity)),
            _ => None,
        }
    }
}

impl Number for DoubleType {
    fn cells<'f>(filling: &'f Filling<'_>) -> Option<(Cow<'f, [f64]>, &'f Validity)> {
        if let Filling::Real(cells, validity) = filling { Some((Cow::Borrowed(cells), validity)) } else { None }
    }
}

/// Writes a column of numbers, which are filled into `filling` a batch at a time: they stay in the processor's caches.
fn numbers<'r, T: Number<T: Copy>, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
    context: &Context<'r>,
    rows: &[At],
    filling: &mut Filling<'r>,
) -> Result<()> {
    let mut writer = next_column(group, column)?;
    let (mut levels, mut filled) = (Vec::new(), Vec::new());
    for rows in rows.chunks(BATCH) {
        filling.clear();
        if !(column.fill)(context, rows, filling) {
            unfit(column);
        }
        let (cells, validity) = T::cells(filling).unwrap_or_else(|| unfit(column));
        match &validity.bits {
            Some(_) if !column.optional => unfit(column),
            Some(_) => {
                levels.clear();
                levels.extend((0..rows.len()).map(|row| i16::from(validity.has(row))));
                filled.clear();
                filled.extend((0..rows.len()).filter(|row| validity.has(*row)).map(|row| cells[row]));
                writer.typed::<T>().write_batch(&filled, Some(&levels), None)?;
            }
            None => {
                levels.clear();
                levels.resize(if column.optional { rows.len() } else { 0 }, 1);
                writer.typed::<T>().write_batch(&cells, column.optional.then_some(levels.as_slice()), None)?;
            }
        }
    }
    writer.close()
}

/// Writes a column whose cells are converted one by one.
fn write<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
    context: &Context<'_>,
    rows: &[At],
    mut convert: impl FnMut(Value<'_>) -> Option<T::T>,
) -> Result<()> {
    let mut writer = next_column(group, column)?;
    let (mut values, mut levels) = (Vec::with_capacity(BATCH.min(rows.len())), Vec::new());
    for rows in rows.chunks(BATCH) {
        values.clear();
        levels.clear();
        for &at in rows {
            match (column.get)(context, at) {
                Value::Empty if column.optional => levels.push(0),
                value => {
                    values.push(convert(value).unwrap_or_else(|| unfit(column)));
                    if column.optional {
                        levels.push(1);
                    }
                }
            }
        }
        writer.typed::<T>().write_batch(&values, column.optional.then_some(levels.as_slice()), None)?;
    }
    writer.close()
}
