//! Columns, keys and metrics of results with their meanings, for `explain`.

use crate::{Comparison, METRICS};
use anabranch_results::{Column, ColumnKind, Summary, TABLES, Table};

/// A column, key or metric of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Its name, in `summary.json` with the names of the objects around it: `slowdown_p99`, `flows.finished`.
    pub name: String,
    pub place: String,
    /// Its unit; empty if it has none.
    pub unit: String,
    pub meaning: String,
}

pub const METRIC: &str = "metric of comparisons and sweeps";

/// Returns every metric, column and key, metrics first.
pub fn terms() -> Vec<Term> {
    let term = |name: &str, place: &str, unit: &str, meaning: &str| {
        let [name, place, unit, meaning] = [name, place, unit, meaning].map(str::to_string);
        Term { name, place, unit, meaning }
    };
    let metric = METRICS.iter().map(|metric| term(metric.name, METRIC, metric.unit, metric.title));
    let column = TABLES.iter().flat_map(|table| {
        let place = format!("column of {0}.csv and {0}.parquet", table.name);
        let own = table.columns.iter().filter(|column| !is_shared(table, column));
        own.map(move |column| term(column.name, &place, column.unit, column.meaning))
    });
    // Those that the tables of all schemes share, once.
    let shared = TABLES.iter().find(|table| table.is_scheme()).into_iter().flat_map(|table| {
        let place = "column of scheme_NAME.csv and scheme_NAME.parquet";
        let shared = table.columns.iter().filter(move |column| is_shared(table, column));
        shared.map(move |column| term(column.name, place, column.unit, column.meaning))
    });
    let entries = [("column of comparison.csv", Comparison::columns()), ("key of summary.json", Summary::keys())];
    let entry = entries.into_iter().flat_map(|(place, entries)| {
        let own = move |entry: anabranch_results::ColumnEntry| term(&entry.name, place, &entry.unit, &entry.meaning);
        entries.into_iter().map(own)
    });
    metric.chain(column).chain(shared).chain(entry).collect()
}

fn is_shared(table: &Table, column: &Column) -> bool {
    table.is_scheme() && column.kind != ColumnKind::Real
}
