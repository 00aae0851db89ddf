//! Declaration of columns, and the cells that several tables share.

use super::{Context, Value};
use anabranch_units::Time;
use std::borrow::Cow;

#[inline]
pub(crate) fn text(value: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(value))
}

#[inline]
pub(crate) fn name<'r>(names: &'r [String], index: usize) -> Value<'r> {
    names.get(index).map_or_else(|| Value::Text(Cow::Owned(index.to_string())), |name| text(name))
}

#[inline]
pub(crate) fn integer(value: u64) -> Value<'static> {
    Value::Integer(value)
}

#[inline]
pub(crate) fn picoseconds(time: Option<Time>) -> Value<'static> {
    time.map(Time::ps).into()
}

/// Declares columns: `name: kind [optional], unit, meaning, cell;` each. A cell is a function, or the `.field` of what
/// `row` returns.
macro_rules! columns {
    ($row:ident => $($name:ident: $kind:ident $($optional:ident)?, $unit:literal, $meaning:literal,
        $(. $field:ident $(. $part:ident)?)? $($cell:expr)?;)*
    ) => {
        &[$($crate::tables::Column {
            name: stringify!($name),
            unit: $unit,
            meaning: $meaning,
            kind: $crate::tables::ColumnKind::$kind,
            optional: false $(|| { stringify!($optional); true })?,
            get: columns!(@cell $row $(. $field $(. $part)?)? $($cell)?),
            fill: |c, rows, to| {
                $crate::tables::filling::fill(columns!(@cell $row $(. $field $(. $part)?)? $($cell)?), c, rows, to)
            },
        },)*]
    };
    (@cell $row:ident . $($field:ident).+) => { |c, at| $row(c, at).$($field).+.into() };
    (@cell $row:ident $cell:expr) => { $cell };
}
pub(crate) use columns;

/// Returns the name of a link, such as `leaf0->spine3`; empty without one.
pub(crate) fn link_name<'r>(c: &Context<'r>, link: Option<u32>) -> Value<'r> {
    let link = link.and_then(|link| c.result.links.get(link as usize));
    Value::Text(link.map_or(Cow::Borrowed(""), |link| {
        Cow::Owned(anabranch_outcome::link_name(&link.from, &link.to, link.parallel))
    }))
}
