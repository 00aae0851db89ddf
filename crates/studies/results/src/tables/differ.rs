use super::{
    Context, Frame, TABLES, Table, Value,
    read::{Cells, read_csv, read_parquet},
};
use crate::ReportError;
use std::path::Path;

/// First difference between a file and the rows of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDifference {
    pub file: String,
    pub found: String,
}

/// Compares every cell of every table in `dir` with the rows of a run. Columns that an older version did not write are excluded.
/// A table that is missing, or that the run would not write, is a difference.
pub fn differing_rows(dir: &Path, context: &Context<'_>) -> Vec<RowDifference> {
    let mut differences = vec![];
    for table in TABLES.iter() {
        let files = ["csv", "parquet"].map(|extension| format!("{}.{extension}", table.name));
        let there: Vec<&String> = files.iter().filter(|file| dir.join(file).exists()).collect();
        let wanted = table.always || !(table.rows)(table, context.result).is_empty();
        if there.is_empty() && wanted {
            differences.push(RowDifference { file: files[1].clone(), found: "the table is not there".into() });
        }
        for file in there {
            if let Err(found) = compare(&dir.join(file), table, context) {
                differences.push(RowDifference { file: file.clone(), found });
            }
        }
    }
    differences
}

fn compare(path: &Path, table: &Table, context: &Context<'_>) -> Result<(), String> {
    let rows = (table.rows)(table, context.result);
    let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let (mut before, mut different) = (0, None);
    let mut part = |frame: &mut Frame| -> Result<(), ReportError> {
        if different.is_none() {
            let own = rows.get(before..).unwrap_or_default();
            let own = &own[..frame.rows.min(own.len())];
            different = first_difference(frame, table, own, before, context);
        }
        before += frame.rows;
        frame.clear();
        Ok(())
    };
    let read = match path.extension().is_some_and(|extension| extension == "parquet") {
        true => read_parquet(path, table, &columns, false, &mut part).map(drop),
        false => read_csv(path, table, &columns).and_then(|mut frame| part(&mut frame)),
    };
    read.map_err(|error| match error {
        ReportError::Content { found, .. } => format!("it cannot be read: {found}"),
        other => format!("it cannot be read: {other}"),
    })?;
    match different {
        Some(found) => Err(found),
        None if before != rows.len() => Err(format!("it has {before} rows; the run gives {}", rows.len())),
        None => Ok(()),
    }
}

fn first_difference(
    frame: &Frame,
    table: &Table,
    rows: &[super::At],
    before: usize,
    context: &Context<'_>,
) -> Option<String> {
    for (row_index, &at) in rows.iter().enumerate() {
        for column in table.columns {
            let Some(cells) = frame.cells(column.name) else { continue };
            let value = (column.get)(context, at);
            let same = match (&value, cells) {
                (Value::Integer(value), Cells::Integer(cells)) => cells[row_index] == Some(*value),
                (Value::Real(value), Cells::Real(cells)) => {
                    cells[row_index].is_some_and(|cell| cell == *value || cell.is_nan() && value.is_nan())
                }
                (Value::Text(value), Cells::Text(cells)) => cells[row_index] == **value,
                (Value::Flag(value), Cells::Flag(cells)) => cells[row_index] == *value,
                (Value::Empty, Cells::Integer(cells)) => cells[row_index].is_none(),
                (Value::Empty, Cells::Real(cells)) => cells[row_index].is_none(),
                (Value::Empty, Cells::Text(cells)) => cells[row_index].is_empty(),
                _ => false,
            };
            if !same {
                let (is, current) = (format_cell(cells, row_index), format_value(&value));
                let row = before + row_index + 1;
                return Some(format!("row {row}, `{}`: {is}; the run gives {current}", column.name));
            }
        }
    }
    None
}

fn format_cell(cells: &Cells, row_index: usize) -> String {
    let empty = || "nothing".to_string();
    match cells {
        Cells::Integer(cells) => cells[row_index].map_or_else(empty, |cell| cell.to_string()),
        Cells::Real(cells) => cells[row_index].map_or_else(empty, |cell| cell.to_string()),
        Cells::Text(cells) => format!("`{}`", cells[row_index]),
        Cells::Flag(cells) => cells[row_index].to_string(),
    }
}

fn format_value(value: &Value<'_>) -> String {
    match value {
        Value::Integer(value) => value.to_string(),
        Value::Real(value) => value.to_string(),
        Value::Text(value) => format!("`{value}`"),
        Value::Flag(value) => value.to_string(),
        Value::Empty => "nothing".into(),
    }
}
