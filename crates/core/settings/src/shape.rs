//! Which values a parameter takes, for programs: what a JSON Schema is made of.

/// The values of a type of parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Any: what is read is more than a shape says.
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
    List(Box<Shape>),
    /// A value of one of these.
    Either(Vec<Shape>),
}
