//! Tables as Arrow, from the declarations of CSV and Parquet, through the PyCapsule interface.

use crate::error;
use anabranch_results::{
    At, Bits, ColumnEntry, ColumnKind, Context, Filling, Frame, Table as Declared, Validity, Value, Words,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray, UInt64Array, ffi_stream::FFI_ArrowArrayStream, types::Int32Type,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, ffi::FFI_ArrowSchema};
use pyo3::{prelude::*, types::PyCapsule};
use std::{borrow::Cow, collections::HashMap, ffi::CStr, sync::Arc};

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
/// Number of rows of a run that are converted to cells together.
const ROWS_AT_A_TIME: usize = 128;

/// Table: columns with their units and meanings. Consumers of the Arrow PyCapsule interface share its memory.
#[pyclass(frozen, module = "anabranch._native")]
#[derive(Clone)]
pub(crate) struct Table {
    schema: SchemaRef,
    parts: Vec<RecordBatch>,
}

/// A column's name, unit, meaning and kind; `optional` if cells may be empty.
struct Head<'n> {
    name: &'n str,
    unit: &'n str,
    meaning: &'n str,
    kind: ColumnKind,
    optional: bool,
}

impl Head<'_> {
    fn field(&self) -> Field {
        let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let kind = match self.kind {
            ColumnKind::Integer => DataType::Int64,
            ColumnKind::Unsigned => DataType::UInt64,
            ColumnKind::Real => DataType::Float64,
            ColumnKind::Text => words,
            ColumnKind::Flag => DataType::Boolean,
        };
        let mut metadata = HashMap::from([("meaning".to_string(), self.meaning.to_string())]);
        if !self.unit.is_empty() {
            metadata.insert("unit".into(), self.unit.into());
        }
        Field::new(self.name, kind, self.optional).with_metadata(metadata)
    }
}

/// Converts a filled column to Arrow without copying cells.
fn array(filled: Filling<'_>) -> Result<ArrayRef, ArrowError> {
    let bits = |bits: Bits| BooleanBuffer::new(bits.bytes.into(), 0, bits.len);
    let nulls = |validity: Validity| validity.bits.map(|valid| NullBuffer::new(bits(valid)));
    Ok(match filled {
        Filling::Integer(cells, validity) => Arc::new(Int64Array::try_new(cells.into(), nulls(validity))?),
        Filling::Unsigned(cells, validity) => Arc::new(UInt64Array::try_new(cells.into(), nulls(validity))?),
        Filling::Real(cells, validity) => Arc::new(Float64Array::try_new(cells.into(), nulls(validity))?),
        Filling::Flag(cells, validity) => Arc::new(BooleanArray::new(bits(cells), nulls(validity))),
        Filling::Text(mut words) => {
            if words.words.is_empty() && !words.keys.is_empty() {
                words.words.push(String::new());
            }
            let keys = Int32Array::try_new(words.keys.into(), nulls(words.validity))?;
            let words: StringArray = words.words.iter().map(|word| Some(word.as_str())).collect();
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(words))?)
        }
    })
}

impl Table {
    fn new(heads: &[Head<'_>], columns: Vec<Filling<'_>>) -> PyResult<Self> {
        let schema = Arc::new(Schema::new(heads.iter().map(Head::field).collect::<Vec<_>>()));
        let columns = columns.into_iter().map(array).collect::<Result<Vec<_>, _>>();
        let part = columns.and_then(|columns| RecordBatch::try_new(schema.clone(), columns));
        Ok(Table { schema, parts: vec![part.map_err(error::unexpected)?] })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    fn rows(&self) -> usize {
        self.parts.iter().map(RecordBatch::num_rows).sum()
    }

    /// Creates a table of the rows of a run.
    pub(crate) fn of_run(declared: &Declared, context: &Context<'_>) -> PyResult<Self> {
        let rows: Vec<At> = (declared.rows)(declared, context.result);
        let head = |column: &anabranch_results::Column| Head {
            name: column.name,
            unit: column.unit,
            meaning: column.meaning,
            kind: column.kind,
            optional: column.optional,
        };
        let heads: Vec<Head<'_>> = declared.columns.iter().map(head).collect();
        let mut filled: Vec<Filling<'_>> =
            declared.columns.iter().map(|column| Filling::new(column.kind, rows.len())).collect();
        // In chunks of rows that stay in the cache for the next column.
        for rows in rows.chunks(ROWS_AT_A_TIME) {
            for (column, filling) in declared.columns.iter().zip(&mut filled) {
                if !(column.fill)(context, rows, filling) {
                    return Err(error::unexpected(format!("a value does not fit in column {}", column.name)));
                }
            }
        }
        Table::new(&heads, filled)
    }

    /// Creates a table of a frame read from a directory, with the columns of `declared` that the file has.
    pub(crate) fn of_frame(declared: &Declared, frame: &Frame) -> PyResult<Self> {
        let there = |column: &&anabranch_results::Column| !frame.missing().iter().any(|name| name == column.name);
        let (mut heads, mut filled) = (vec![], vec![]);
        for column in declared.columns.iter().filter(there) {
            let (name, kind) = (column.name, column.kind);
            let mut filling = Filling::new(kind, frame.rows());
            let mut push = |value| filling.push(value);
            let fits = match kind {
                ColumnKind::Integer | ColumnKind::Unsigned => {
                    frame.integers(name).iter().all(|cell| push((*cell).into()))
                }
                ColumnKind::Real => frame.reals(name).iter().all(|cell| push((*cell).into())),
                ColumnKind::Text => frame.texts(name).iter().all(|cell| push(Value::Text(Cow::Borrowed(cell)))),
                ColumnKind::Flag => frame.flags(name).iter().all(|cell| push(Value::Flag(*cell))),
            };
            if !fits {
                return Err(error::unexpected(format!("a value does not fit in column {name}")));
            }
            heads.push(Head { name, unit: column.unit, meaning: column.meaning, kind, optional: column.optional });
            filled.push(filling);
        }
        Table::new(&heads, filled)
    }

    /// Creates a table of CSV rows whose columns are `entries`; empty cells are null.
    pub(crate) fn of_csv(text: &str, entries: &[ColumnEntry]) -> PyResult<Self> {
        let heads: Vec<Head<'_>> = entries
            .iter()
            .map(|entry| Head {
                name: &entry.name,
                unit: &entry.unit,
                meaning: &entry.meaning,
                kind: match entry.kind.as_str() {
                    "integer" if entry.name == "seed" => ColumnKind::Unsigned,
                    "integer" => ColumnKind::Integer,
                    "real" => ColumnKind::Real,
                    "boolean" => ColumnKind::Flag,
                    _ => ColumnKind::Text,
                },
                optional: true,
            })
            .collect();
        let mut filled: Vec<Filling<'_>> = heads.iter().map(|head| Filling::new(head.kind, 0)).collect();
        for record in csv::Reader::from_reader(text.as_bytes()).records() {
            let record = record.map_err(error::unexpected)?;
            for (filling, cell) in filled.iter_mut().zip(&record) {
                let value = match filling {
                    _ if cell.is_empty() => Value::Empty,
                    Filling::Integer(..) | Filling::Unsigned(..) => cell.parse().map_or(Value::Empty, Value::Integer),
                    Filling::Real(..) => cell.parse().map_or(Value::Empty, Value::Real),
                    Filling::Flag(..) => Value::Flag(cell == "true"),
                    Filling::Text(_) => Value::Text(Cow::Owned(cell.to_string())),
                };
                if !filling.push(value) {
                    return Err(error::unexpected(format!("`{cell}` does not fit its column")));
                }
            }
        }
        Table::new(&heads, filled)
    }

    /// Prepends columns with one value in every row.
    pub(crate) fn labelled(&self, labels: &[(String, Label)]) -> PyResult<Self> {
        let rows = self.rows();
        let (mut heads, mut filled) = (vec![], vec![]);
        for (name, label) in labels {
            let (kind, filling) = match label {
                Label::Integer(value) => {
                    (ColumnKind::Integer, Filling::Integer(vec![*value; rows], Validity::default()))
                }
                Label::Real(value) => (ColumnKind::Real, Filling::Real(vec![*value; rows], Validity::default())),
                Label::Text(text) => (ColumnKind::Text, Filling::Text(Words::all(text, rows))),
            };
            heads.push(Head { name, unit: "", meaning: "identifies the run of a row", kind, optional: false });
            filled.push(filling);
        }
        let before = Table::new(&heads, filled)?;
        let keep: Vec<usize> = (0..self.schema.fields().len())
            .filter(|index| !labels.iter().any(|(name, _)| name == self.schema.field(*index).name()))
            .collect();
        let own = self.schema.project(&keep).map_err(error::unexpected)?;
        let fields: Vec<_> = before.schema.fields().iter().chain(own.fields()).cloned().collect();
        let schema = Arc::new(Schema::new(fields));
        let part = self.parts.first().map(|part| {
            let own = keep.iter().map(|index| part.column(*index).clone());
            let columns = before.parts[0].columns().iter().cloned().chain(own).collect();
            RecordBatch::try_new(schema.clone(), columns)
        });
        let part = part.transpose().map_err(error::unexpected)?;
        Ok(Table { schema: schema.clone(), parts: part.into_iter().collect() })
    }
}

/// Value that identifies the run of a row.
#[derive(Clone, FromPyObject)]
pub(crate) enum Label {
    /// Whole number.
    Integer(i64),
    /// Number.
    Real(f64),
    /// Text.
    Text(String),
}

#[pymethods]
impl Table {
    /// Creates a table from CSV with a header; columns are name, kind, unit and meaning.
    #[staticmethod]
    fn of_rows(text: &str, columns: Vec<(String, String, String, String)>) -> PyResult<Self> {
        let entry = |(name, kind, unit, meaning)| ColumnEntry { name, kind, unit, meaning };
        Table::of_csv(text, &columns.into_iter().map(entry).collect::<Vec<_>>())
    }

    /// Concatenates tables with the same columns without copying.
    #[staticmethod]
    fn concatenated(tables: Vec<PyRef<'_, Table>>) -> PyResult<Self> {
        let first = tables.first().ok_or_else(|| error::unexpected("there are no tables"))?;
        let parts = tables.iter().flat_map(|table| &table.parts).cloned().collect();
        Ok(Table { schema: first.schema.clone(), parts })
    }

    /// Prepends columns with one value in every row.
    fn with_labels(&self, py: Python<'_>, labels: Vec<(String, Label)>) -> PyResult<Self> {
        py.detach(|| self.labelled(&labels))
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    /// Name, kind, unit and meaning of each column.
    fn columns(&self) -> Vec<(String, String, String, String)> {
        let of = |field: &Arc<Field>| {
            let kind = match field.data_type() {
                DataType::Int64 | DataType::UInt64 => "integer",
                DataType::Float64 => "real",
                DataType::Boolean => "boolean",
                _ => "text",
            };
            let said = |key: &str| field.metadata().get(key).cloned().unwrap_or_default();
            (field.name().clone(), kind.to_string(), said("unit"), said("meaning"))
        };
        self.schema.fields().iter().map(of).collect()
    }

    /// Start addresses of the chunks of a column.
    fn addresses(&self, column: &str) -> Vec<usize> {
        let Ok(index) = self.schema.index_of(column) else { return vec![] };
        let of = |part: &RecordBatch| {
            part.column(index).to_data().buffers().first().map_or(0, |buffer| buffer.as_ptr() as usize)
        };
        self.parts.iter().map(of).collect()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows other types than those requested.
        let _ = requested_schema;
        let parts: Vec<Result<RecordBatch, ArrowError>> = self.parts.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(parts, self.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(error::unexpected)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }
}
