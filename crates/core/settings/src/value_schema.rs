//! Allowed values of a parameter in machine-readable form, the source of the JSON Schema.

use crate::Raw;

/// Allowed values of a type of parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueSchema {
    /// Any value; the parser has further rules.
    Any,
    /// True or false.
    Bool,
    /// A whole number, zero or more.
    Whole,
    /// A number.
    Number,
    /// A number of this kind between two, which are allowed.
    Between(Box<ValueSchema>, Raw, Raw),
    /// Text.
    Text,
    /// Text of digits.
    Digits,
    /// Text: a number and one of these units.
    Quantity(Vec<&'static str>),
    /// One of a few words.
    Words(Vec<&'static str>),
    /// A list of values.
    List(Box<ValueSchema>),
    /// A value of one of these.
    Either(Vec<ValueSchema>),
}

impl ValueSchema {
    /// Returns `true` if these are numbers without a unit.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self, ValueSchema::Whole | ValueSchema::Number | ValueSchema::Between(..))
    }

    /// Returns these values with numbers from `min` to `max` alone.
    pub(crate) fn between(self, min: &Raw, max: &Raw) -> Self {
        match self {
            ValueSchema::Whole | ValueSchema::Number => ValueSchema::Between(Box::new(self), min.clone(), max.clone()),
            ValueSchema::Either(shapes) => {
                ValueSchema::Either(shapes.into_iter().map(|shape| shape.between(min, max)).collect())
            }
            other => other,
        }
    }
}
