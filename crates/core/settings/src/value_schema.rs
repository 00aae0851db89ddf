//! Allowed values of a parameter in machine-readable form, the source of the JSON Schema.

/// Allowed values of a type of parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSchema {
    /// Any value; the parser has further rules.
    Any,
    /// True or false.
    Bool,
    /// A whole number, zero or more.
    Whole,
    /// A number.
    Number,
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
