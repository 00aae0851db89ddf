//! Tables of a run. Each column is declared once; CSV, Parquet and the dictionary in `manifest.json` follow.

mod columns;
mod declare;
mod differ;
mod filling;
mod gather;
mod guard;
mod jobs;
mod parquet;
mod read;
mod schemes;
mod text;

pub use columns::TABLES;
pub use differ::{RowDifference, differing_rows};
pub use filling::{Bits, Filling, Validity, Words};
pub use gather::{Label, Member};
pub use read::{Frame, REPEAT_RUN};
pub use schemes::read_calls;
pub use text::csv_tables;

pub use gather::stage_gathered;
pub use parquet::write_parquet;
pub use text::{csv_bytes, write_csv};

use crate::RunMeta;
use anabranch_outcome::{CompactNumber, CompactTime, RunResult};
use anabranch_units::Time;
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Integers from 0 to 2^63-1.
    Integer,
    /// Integers from 0 to 2^64-1.
    Unsigned,
    /// Floating-point numbers.
    Real,
    Text,
    /// `true` or `false`.
    Flag,
}

impl ColumnKind {
    /// Returns the name of the kind in `manifest.json`.
    pub fn word(self) -> &'static str {
        match self {
            ColumnKind::Integer | ColumnKind::Unsigned => "integer",
            ColumnKind::Real => "real",
            ColumnKind::Text => "text",
            ColumnKind::Flag => "boolean",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value<'r> {
    /// Value of a [`ColumnKind::Integer`] or [`ColumnKind::Unsigned`] column.
    Integer(u64),
    /// Value of a [`ColumnKind::Real`] column.
    Real(f64),
    /// Value of a [`ColumnKind::Text`] column.
    Text(Cow<'r, str>),
    /// Value of a [`ColumnKind::Flag`] column.
    Flag(bool),
    /// No value; only in a column that may be empty.
    Empty,
}

/// Declares values of cells: the type, and what becomes of it.
macro_rules! values {
    ($($of:ty: $value:ident => $cell:expr;)*) => {
        $(impl<'r> From<$of> for Value<'r> {
            #[inline]
            fn from($value: $of) -> Self {
                $cell
            }
        })*
    };
}

values! {
    u64: value => Value::Integer(value);
    u32: value => Value::Integer(value.into());
    u16: value => Value::Integer(value.into());
    Time: time => Value::Integer(time.ps());
    f64: value => Value::Real(value);
    bool: value => Value::Flag(value);
    &'r str: text => Value::Text(Cow::Borrowed(text));
    CompactTime: time => time.get().into();
    CompactNumber: number => number.get().into();
}

impl<'r, T: Into<Value<'r>>> From<Option<T>> for Value<'r> {
    #[inline]
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Empty, T::into)
    }
}

/// Data from which cells are computed.
#[derive(Clone, Copy, Debug)]
pub struct Context<'r> {
    pub result: &'r RunResult,
    pub meta: &'r RunMeta,
    /// Time from which starting flows are measured.
    pub counted_from: anabranch_units::Time,
}

impl<'r> Context<'r> {
    pub fn new(result: &'r RunResult, meta: &'r RunMeta) -> Self {
        Context { result, meta, counted_from: meta.counted_from(result) }
    }
}

/// Position of a row: index in the run's list and, if its entries have parts, index in the entry.
pub type At = (usize, usize);

#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name in every format.
    pub name: &'static str,
    /// Unit; empty if it has none.
    pub unit: &'static str,
    pub meaning: &'static str,
    pub kind: ColumnKind,
    /// `true` if cells may be empty.
    pub optional: bool,
    /// Function that returns a cell.
    pub get: for<'r> fn(&Context<'r>, At) -> Value<'r>,
    /// Function that appends several cells to a column of the same kind. It returns `false` if a cell does not fit.
    pub fill: for<'r> fn(&Context<'r>, &[At], &mut Filling<'r>) -> bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of the files, without the extension.
    pub name: &'static str,
    pub meaning: &'static str,
    /// `true` if it is written even without rows.
    pub always: bool,
    pub columns: &'static [Column],
    /// Function that returns the positions of the rows of the table.
    pub rows: fn(&Table, &RunResult) -> Vec<At>,
}

impl Table {
    /// Returns `true` for the calls of a scheme.
    pub fn is_scheme(&self) -> bool {
        self.name.starts_with("scheme_")
    }

    /// Returns a column by name.
    pub fn column(&self, name: &str) -> Option<&'static Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}
