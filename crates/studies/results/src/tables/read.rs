use super::{ColumnKind, TABLES, Table, guard::guarded};
use crate::ReportError;
use anabranch_units::Bytes;
use parquet::{
    column::reader::ColumnReaderImpl,
    data_type::{AsBytes, BoolType, ByteArrayType, DataType, DoubleType, Int64Type},
    errors::ParquetError,
    file::reader::{FileReader, RowGroupReader, SerializedFileReader},
};
use std::path::Path;

/// Maximum number of rows allocated in advance: a file may claim any number.
const MAX_PREALLOCATED_ROWS: usize = 1 << 20;

/// Cells of one column; `None` if empty.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cells {
    Integer(Vec<Option<u64>>),
    Real(Vec<Option<f64>>),
    Text(Vec<String>),
    Flag(Vec<bool>),
}

impl Cells {
    pub(crate) fn new(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Integer | ColumnKind::Unsigned => Cells::Integer(vec![]),
            ColumnKind::Real => Cells::Real(vec![]),
            ColumnKind::Text => Cells::Text(vec![]),
            ColumnKind::Flag => Cells::Flag(vec![]),
        }
    }
}

/// Some columns of a table, by name.
#[derive(Clone, Debug)]
pub struct Frame {
    columns: Vec<(&'static str, Cells)>,
    pub(crate) rows: usize,
    missing: Vec<String>,
}

impl Frame {
    /// Reads `columns` of `table` (`flows`, `links`, ...) from `dir`: from Parquet if it exists, else from CSV; `None` without
    /// either. Columns that the file lacks, since another version wrote it, are empty and listed by [`Frame::missing`].
    pub fn read(dir: &Path, table: &str, columns: &[&str]) -> Result<Option<Self>, ReportError> {
        let Some(declared) = TABLES.iter().find(|t| t.name == table) else { return Ok(None) };
        let (parquet, csv) = (dir.join(format!("{table}.parquet")), dir.join(format!("{table}.csv")));
        if parquet.exists() {
            return read_parquet(&parquet, declared, columns, true, &mut |_| Ok(())).map(Some);
        }
        if csv.exists() { read_csv(&csv, declared, columns).map(Some) } else { Ok(None) }
    }

    /// Reads as [`Frame::read`], but passes the rows to `each` in parts, so that a large table is never in memory as a
    /// whole. Returns `true` if the table exists.
    pub fn read_parts(
        dir: &Path,
        table: &str,
        columns: &[&str],
        each: &mut dyn FnMut(&Frame) -> Result<(), ReportError>,
    ) -> Result<bool, ReportError> {
        let parquet = dir.join(format!("{table}.parquet"));
        let mut part = |frame: &mut Frame| {
            each(frame)?;
            frame.clear();
            Ok(())
        };
        match TABLES.iter().find(|t| t.name == table) {
            Some(declared) if parquet.exists() => {
                read_parquet(&parquet, declared, columns, false, &mut part).map(|_| true)
            }
            _ => Frame::read(dir, table, columns)?.map_or(Ok(false), |mut frame| part(&mut frame).map(|()| true)),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.rows = 0;
        for (_, cells) in &mut self.columns {
            match cells {
                Cells::Integer(cells) => cells.clear(),
                Cells::Real(cells) => cells.clear(),
                Cells::Text(cells) => cells.clear(),
                Cells::Flag(cells) => cells.clear(),
            }
        }
    }

    /// Returns the requested columns that the file does not have.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }
    pub fn rows(&self) -> usize {
        self.rows
    }
    pub(crate) fn cells(&self, name: &str) -> Option<&Cells> {
        self.columns.iter().find(|(column, _)| *column == name).map(|(_, cells)| cells)
    }
    /// Returns an integer column; empty if it was not read.
    pub fn integers(&self, name: &str) -> &[Option<u64>] {
        if let Some(Cells::Integer(cells)) = self.cells(name) { cells } else { &[] }
    }
    /// Returns a column of floating-point numbers; empty if it was not read.
    pub fn reals(&self, name: &str) -> &[Option<f64>] {
        if let Some(Cells::Real(cells)) = self.cells(name) { cells } else { &[] }
    }
    /// Returns a column of texts; empty if it was not read.
    pub fn texts(&self, name: &str) -> &[String] {
        if let Some(Cells::Text(cells)) = self.cells(name) { cells } else { &[] }
    }
    /// Returns a column of flags; empty if it was not read.
    pub fn flags(&self, name: &str) -> &[bool] {
        if let Some(Cells::Flag(cells)) = self.cells(name) { cells } else { &[] }
    }
}

/// Remedy for rows that cannot be read.
pub const REPEAT_RUN: &str = "repeat the run, or restore the file; nothing was written";

/// Name and kind of a column, and its index in the header.
type ColumnIndex = (&'static str, ColumnKind, usize);

/// Also returns the names of the columns that the file lacks.
fn column_indices(table: &Table, columns: &[&str], header: &[&str]) -> (Vec<ColumnIndex>, Vec<String>) {
    let (mut column_indices, mut missing) = (vec![], vec![]);
    for &name in columns {
        match (table.column(name), header.iter().position(|&found| found == name)) {
            (Some(column), Some(index)) => column_indices.push((column.name, column.kind, index)),
            _ => missing.push(name.to_string()),
        }
    }
    (column_indices, missing)
}

pub(crate) fn read_csv(path: &Path, table: &Table, columns: &[&str]) -> Result<Frame, ReportError> {
    let wrong = |error: csv::Error| ReportError::content(path, error, REPEAT_RUN);
    let mut reader =
        csv::Reader::from_reader(anabranch_input::open(path).map_err(|error| ReportError::file(path, error))?.0);
    let header = reader.headers().map_err(wrong)?.clone();
    let (column_indices, missing) = column_indices(table, columns, &header.iter().collect::<Vec<_>>());
    let mut cells: Vec<Cells> = column_indices.iter().map(|&(_, kind, _)| Cells::new(kind)).collect();
    let mut record = csv::StringRecord::new();
    let mut rows = 0;
    while reader.read_record(&mut record).map_err(wrong)? {
        rows += 1;
        for (cells, &(name, _, index)) in cells.iter_mut().zip(&column_indices) {
            let cell = record.get(index).unwrap_or_default();
            let unfit = || {
                let found = format!("line {}: `{cell}` does not fit in column `{name}`", rows + 1);
                ReportError::content(path, found, REPEAT_RUN)
            };
            match cells {
                Cells::Text(cells) => cells.push(cell.to_string()),
                Cells::Flag(cells) => cells.push(cell.parse().map_err(|_| unfit())?),
                Cells::Integer(cells) if cell.is_empty() => cells.push(None),
                Cells::Integer(cells) => cells.push(Some(cell.parse().map_err(|_| unfit())?)),
                Cells::Real(cells) if cell.is_empty() => cells.push(None),
                Cells::Real(cells) => cells.push(Some(cell.parse().map_err(|_| unfit())?)),
            }
        }
    }
    Ok(Frame { columns: column_indices.iter().map(|index| index.0).zip(cells).collect(), rows, missing })
}

/// Bytes of a cell, and of its copy while its row group is decoded.
fn cell_bytes(kind: ColumnKind) -> u64 {
    match kind {
        ColumnKind::Integer | ColumnKind::Unsigned | ColumnKind::Real => 16 + 10,
        ColumnKind::Text => 24 + 34,
        ColumnKind::Flag => 1 + 3,
    }
}

fn needed(rows: usize, columns: &[(&str, ColumnKind, usize)]) -> u64 {
    let row: u64 = columns.iter().map(|(_, kind, _)| cell_bytes(*kind)).sum();
    row.saturating_mul(rows as u64)
}

/// Refuses what takes more memory than a process may use.
fn fits(what: &str, bytes: u64) -> Result<(), String> {
    match anabranch_input::memory::memory_limit() {
        Some((limit, whose)) if bytes > limit => {
            let [bytes, limit] = [bytes, limit].map(|bytes| Bytes(bytes).rounded());
            Err(format!("{what} take {bytes} of memory, and {whose} allows {limit}"))
        }
        _ => Ok(()),
    }
}

/// After each row group, passes the rows read so far to `after`, which clears them unless the table `is_whole`.
pub(crate) fn read_parquet(
    path: &Path,
    table: &Table,
    columns: &[&str],
    is_whole: bool,
    after: &mut dyn FnMut(&mut Frame) -> Result<(), ReportError>,
) -> Result<Frame, ReportError> {
    let wrong = |error: ParquetError| ReportError::content(path, error, REPEAT_RUN);
    let (file, _) = anabranch_input::open(path).map_err(|error| ReportError::file(path, error))?;
    let reader = guarded(|| SerializedFileReader::new(file)).map_err(wrong)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let header: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
    let (column_indices, missing) = column_indices(table, columns, &header);
    let columns = column_indices.iter().map(|&(name, kind, _)| (name, Cells::new(kind))).collect();
    let mut frame = Frame { columns, rows: 0, missing };
    // What the footer claims is refused before any of it is decoded.
    let rows = reader.metadata().row_groups().iter().map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
    let rows = if is_whole { rows.fold(0, usize::saturating_add) } else { rows.max().unwrap_or(0) };
    fits(&format!("its {rows} rows"), needed(rows, &column_indices)).map_err(|found| {
        ReportError::content(path, found, "read it where there is more memory, or repeat the run with fewer rows")
    })?;
    for group in 0..reader.num_row_groups() {
        let group = guarded(|| reader.get_row_group(group)).map_err(wrong)?;
        for ((_, cells), &(_, _, index)) in frame.columns.iter_mut().zip(&column_indices) {
            append(cells, &*group, index).map_err(wrong)?;
        }
        frame.rows += group.metadata().num_rows() as usize;
        after(&mut frame)?;
    }
    Ok(frame)
}

pub(crate) fn append(cells: &mut Cells, group: &dyn RowGroupReader, index: usize) -> Result<(), ParquetError> {
    match cells {
        Cells::Integer(cells) => cells.extend(column::<Int64Type>(group, index)?.map(|cell| cell.map(|v| v as u64))),
        Cells::Real(cells) => cells.extend(column::<DoubleType>(group, index)?),
        Cells::Flag(cells) => cells.extend(column::<BoolType>(group, index)?.map(Option::unwrap_or_default)),
        Cells::Text(cells) => {
            for cell in column::<ByteArrayType>(group, index)? {
                cells.push(cell.map(|bytes| bytes.as_utf8().map(str::to_string)).transpose()?.unwrap_or_default());
            }
        }
    }
    Ok(())
}

fn column<T: DataType>(
    group: &dyn RowGroupReader,
    index: usize,
) -> Result<impl Iterator<Item = Option<T::T>> + use<T>, ParquetError> {
    let metadata = group.metadata();
    let damaged = || ParquetError::General("its metadata are damaged".to_string());
    let chunk = metadata.columns().get(index).ok_or_else(damaged)?;
    let descriptor = chunk.column_descr_ptr();
    // The library assumes these properties, and panics if they do not hold.
    let begin = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let numbers = [metadata.num_rows(), begin, chunk.data_page_offset(), chunk.compressed_size(), chunk.num_values()];
    let is_flat = descriptor.max_rep_level() == 0 && descriptor.max_def_level() <= 1;
    if numbers.iter().any(|number| *number < 0) || !is_flat || descriptor.physical_type() != T::get_physical_type() {
        return Err(damaged());
    }
    let rows = metadata.num_rows() as usize;
    let pages = u64::try_from(chunk.uncompressed_size()).map_err(|_| damaged())?;
    fits("the pages of a column", pages).map_err(ParquetError::General)?;
    let (mut values, mut levels) =
        (Vec::with_capacity(rows.min(MAX_PREALLOCATED_ROWS)), Vec::with_capacity(rows.min(MAX_PREALLOCATED_ROWS)));
    guarded(|| {
        let mut reader = ColumnReaderImpl::<T>::new(descriptor.clone(), group.get_column_page_reader(index)?);
        let optional = descriptor.max_def_level() > 0;
        let mut read = 0;
        while read < rows {
            let (records, ..) = reader.read_records(rows - read, optional.then_some(&mut levels), None, &mut values)?;
            if records == 0 {
                return Err(ParquetError::General("the file ends too early".to_string()));
            }
            read += records;
        }
        Ok(())
    })?;
    // A dictionary has a long text once for many rows, each of which gets a copy.
    let bytes = values.iter().map(|value| value.as_bytes().len() as u64).fold(0, u64::saturating_add);
    fits("the cells of a column", bytes).map_err(ParquetError::General)?;
    let mut values = values.into_iter();
    Ok((0..rows).map(move |row| if levels.get(row) == Some(&0) { None } else { values.next() }))
}
