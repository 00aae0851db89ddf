//! Writing of tables as Parquet, through the low-level column writers.

use super::{At, Column, ColumnKind, Context, Table, Value};
use parquet::{
    basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::{ParquetError, Result},
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::{ColumnPath, Type, TypePtr},
};
use std::{io::Write, sync::Arc};

/// Maximum number of rows of a row group; bounds the memory of writing.
const ROW_GROUP: usize = 1 << 18;

/// `provenance` is stored in the file's key-value metadata, with the unit of every column that has one.
pub(crate) fn write_parquet(
    table: &Table,
    context: &Context<'_>,
    provenance: &[(String, String)],
    to: impl Write + Send,
) -> Result<()> {
    let units = table.columns.iter().map(|column| (column.name, column.unit));
    let fields: Vec<Field<'_>> =
        table.columns.iter().map(|c| Field { name: c.name, kind: c.kind, optional: c.optional }).collect();
    let properties = writer_properties(provenance, units, &fields);
    let mut writer = SerializedFileWriter::new(to, schema(table.name, &fields)?, properties)?;
    let rows = (table.rows)(context.result);
    for rows in rows.chunks(ROW_GROUP) {
        let mut group = writer.next_row_group()?;
        for column in table.columns {
            match column.kind {
                ColumnKind::Integer => write::<Int64Type, _>(&mut group, column, context, rows, |value| match value {
                    Value::Integer(value) => i64::try_from(value).ok(),
                    _ => None,
                }),
                ColumnKind::Unsigned => write::<Int64Type, _>(&mut group, column, context, rows, |value| match value {
                    Value::Integer(value) => Some(value as i64),
                    _ => None,
                }),
                ColumnKind::Real => write::<DoubleType, _>(&mut group, column, context, rows, |value| match value {
                    Value::Real(value) => Some(value),
                    _ => None,
                }),
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
pub(super) struct Field<'n> {
    pub(super) name: &'n str,
    pub(super) kind: ColumnKind,
    pub(super) optional: bool,
}

/// `provenance` and the `units` of columns are metadata. Most integers are times and counts close to the one before:
/// delta encoding takes less time and space than a dictionary.
pub(super) fn writer_properties<'n>(
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

pub(super) fn schema(name: &str, fields: &[Field<'_>]) -> Result<TypePtr> {
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

fn write<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
    context: &Context<'_>,
    rows: &[At],
    mut convert: impl FnMut(Value<'_>) -> Option<T::T>,
) -> Result<()> {
    let mut values = Vec::with_capacity(rows.len());
    let mut levels = Vec::with_capacity(if column.optional { rows.len() } else { 0 });
    for &at in rows {
        match (column.get)(context, at) {
            Value::Empty if column.optional => levels.push(0),
            value => {
                let unfit = || ParquetError::General(format!("a value does not fit in column {}", column.name));
                values.push(convert(value).ok_or_else(unfit)?);
                if column.optional {
                    levels.push(1);
                }
            }
        }
    }
    let mut writer =
        group.next_column()?.ok_or_else(|| ParquetError::General(format!("no place for column {}", column.name)))?;
    writer.typed::<T>().write_batch(&values, column.optional.then_some(levels.as_slice()), None)?;
    writer.close()
}
