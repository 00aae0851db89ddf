//! The tables of a run. Each column is declared once, with its unit and meaning; CSV, Parquet and the dictionary in
//! `manifest.json` all come from that declaration.

mod columns;
mod differ;
mod filling;
mod gather;
mod guard;
mod parquet;
mod read;
mod text;

pub use columns::TABLES;
pub use differ::{RowDifference, differing_rows};
pub use filling::{Bits, Filling, Validity, Words};
pub use gather::{Label, Member};
pub use read::Frame;
pub use text::csv_tables;

pub(crate) use gather::stage_gathered;
pub(crate) use parquet::write_parquet;
pub(crate) use text::write_csv;

use crate::meta::RunMeta;
use anabranch_outcome::RunResult;
use std::borrow::Cow;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers from 0 to 2^63-1.
    Integer,
    /// Whole numbers from 0 to 2^64-1.
    Unsigned,
    /// Numbers.
    Real,
    /// Words.
    Text,
    /// `true` or `false`.
    Flag,
}

impl Kind {
    /// The word in `manifest.json`.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Integer | Kind::Unsigned => "integer",
            Kind::Real => "real",
            Kind::Text => "text",
            Kind::Flag => "boolean",
        }
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'r> {
    /// Of an [`Kind::Integer`] or [`Kind::Unsigned`] column.
    Integer(u64),
    /// Of a [`Kind::Real`] column.
    Real(f64),
    /// Of a [`Kind::Text`] column.
    Text(Cow<'r, str>),
    /// Of a [`Kind::Flag`] column.
    Flag(bool),
    /// Nothing; only in a column that may be empty.
    Empty,
}

impl From<Option<u64>> for Value<'_> {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Value::Empty, Value::Integer)
    }
}

impl From<Option<f64>> for Value<'_> {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Value::Empty, Value::Real)
    }
}

/// What a cell is worked out from.
#[derive(Clone, Copy, Debug)]
pub struct Context<'r> {
    /// The rows.
    pub result: &'r RunResult,
    /// The names.
    pub meta: &'r RunMeta,
    /// The moment from which starting flows count, in picoseconds.
    pub counted_from: anabranch_units::Time,
}

impl<'r> Context<'r> {
    /// Of a run.
    pub fn new(result: &'r RunResult, meta: &'r RunMeta) -> Self {
        Context { result, meta, counted_from: meta.counted_from(result) }
    }
}

/// Which row: position in the run's list and, where its entries have parts, position in the entry.
pub type At = (usize, usize);

/// One column's declaration.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name in every format.
    pub name: &'static str,
    /// Its unit; empty where it has none.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether cells may be empty.
    pub optional: bool,
    /// A cell.
    pub get: for<'r> fn(&Context<'r>, At) -> Value<'r>,
    /// Cells one after the other, appended to a column of the same kind. Whether all fit.
    pub fill: for<'r> fn(&Context<'r>, &[At], &mut Filling<'r>) -> bool,
}

/// One table's declaration.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of its files, without the extension.
    pub name: &'static str,
    /// What a row is.
    pub meaning: &'static str,
    /// Whether it is written when it has no rows.
    pub always: bool,
    /// Its columns.
    pub columns: &'static [Column],
    /// Its rows.
    pub rows: fn(&RunResult) -> Vec<At>,
}

impl Table {
    /// A column by name.
    pub fn column(&self, name: &str) -> Option<&'static Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}
