//! Types of parameters, and how each is parsed and printed.

use crate::ValueSchema;
use anabranch_units::{Bytes, BytesOrBdp, PacketsOrBdp, PacketsOrPasses, Rate, Time};
use std::fmt;

/// A value from a scenario or a command-line flag, before its type is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// Text, with a unit where the parameter has one.
    Text(String),
    /// Several values.
    List(Vec<Raw>),
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raw::Bool(b) => b.fmt(f),
            Raw::Int(i) => i.fmt(f),
            Raw::Float(x) => write!(f, "{x:?}"),
            Raw::Text(text) => write!(f, "{text:?}"),
            Raw::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// An invalid value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// The value as found.
    pub found: String,
    /// Allowed values.
    pub expected: String,
    /// Reason, if it does not follow from the type.
    pub reason: Option<String>,
    /// The nearest valid choice, if one is close.
    pub nearest: Option<String>,
}

impl InvalidValue {
    /// Creates the error for `raw`, which is no `T`.
    pub fn of<T: Setting>(raw: &Raw) -> Self {
        InvalidValue { found: raw.to_string(), expected: T::expected(), reason: None, nearest: None }
    }
    /// Adds a reason.
    pub fn because(mut self, reason: impl fmt::Display) -> Self {
        self.reason = Some(reason.to_string());
        self
    }
    /// Adds the nearest of `words`.
    pub fn near<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.nearest = crate::nearest(self.found.trim_matches('"'), words);
        self
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "found {}, expected {}", self.found, self.expected)?;
        if let Some(reason) = &self.reason {
            write!(f, ": {reason}")?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, " (did you mean `{nearest}`?)")?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidValue {}

/// Type of a parameter.
pub trait Setting: Sized {
    /// Returns the allowed values as text.
    fn expected() -> String;
    /// Returns the allowed values for programs.
    fn schema() -> ValueSchema {
        ValueSchema::Any
    }
    /// Parses a value.
    ///
    /// # Errors
    /// [`InvalidValue`] if the value is of another type, out of range or not among the choices.
    fn read(raw: &Raw) -> Result<Self, InvalidValue>;
    /// Prints the value in the form that [`Setting::read`] accepts.
    fn write(&self) -> Raw;
}

impl Setting for bool {
    fn expected() -> String {
        "true or false".into()
    }
    fn schema() -> ValueSchema {
        ValueSchema::Bool
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::Bool(b) => Ok(*b),
            _ => Err(InvalidValue::of::<Self>(raw)),
        }
    }
    fn write(&self) -> Raw {
        Raw::Bool(*self)
    }
}

impl Setting for u64 {
    fn expected() -> String {
        "a whole number, zero or more".into()
    }
    fn schema() -> ValueSchema {
        ValueSchema::Whole
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::Int(i) if *i > MAX_WHOLE => Err(InvalidValue::of::<Self>(raw).because(format!("at most {MAX_WHOLE}"))),
            Raw::Int(i) => u64::try_from(*i).map_err(|_| InvalidValue::of::<Self>(raw)),
            _ => Err(InvalidValue::of::<Self>(raw)),
        }
    }
    fn write(&self) -> Raw {
        Raw::Int(*self as i64)
    }
}

/// The largest number that a user may give for a count: that many packets of 9 kB have fewer than 2^64 bytes.
const MAX_WHOLE: i64 = 1_000_000_000_000_000;

/// A seed of 64 bits. TOML's whole numbers end at 2^63-1, so larger seeds are written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Setting for Seed {
    fn expected() -> String {
        "a whole number from 0 to 18446744073709551615, above 9223372036854775807 as text in quotes".into()
    }
    fn schema() -> ValueSchema {
        ValueSchema::Either(vec![ValueSchema::Whole, ValueSchema::Digits])
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        let number = match raw {
            Raw::Int(number) => u64::try_from(*number).ok(),
            Raw::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        };
        number.map(Seed).ok_or_else(|| InvalidValue::of::<Self>(raw))
    }
    fn write(&self) -> Raw {
        i64::try_from(self.0).map_or_else(|_| Raw::Text(self.0.to_string()), Raw::Int)
    }
}

impl Setting for u32 {
    fn expected() -> String {
        "a whole number, zero or more".into()
    }
    fn schema() -> ValueSchema {
        ValueSchema::Whole
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        u32::try_from(u64::read(raw)?).map_err(|_| InvalidValue::of::<Self>(raw).because("at most 4294967295"))
    }
    fn write(&self) -> Raw {
        Raw::Int(i64::from(*self))
    }
}

impl Setting for f64 {
    fn expected() -> String {
        "a number".into()
    }
    fn schema() -> ValueSchema {
        ValueSchema::Number
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::Int(i) => Self::read(&Raw::Float(*i as f64)),
            Raw::Float(x) if x.abs() <= MAX_WHOLE as f64 => Ok(*x),
            Raw::Float(x) if x.is_finite() => {
                Err(InvalidValue::of::<Self>(raw).because(format!("at most {MAX_WHOLE} with or without a sign")))
            }
            _ => Err(InvalidValue::of::<Self>(raw)),
        }
    }
    fn write(&self) -> Raw {
        Raw::Float(*self)
    }
}

impl Setting for String {
    fn expected() -> String {
        "text".into()
    }
    fn schema() -> ValueSchema {
        ValueSchema::Text
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::Text(text) => Ok(text.clone()),
            _ => Err(InvalidValue::of::<Self>(raw)),
        }
    }
    fn write(&self) -> Raw {
        Raw::Text(self.clone())
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn expected() -> String {
        format!("a list, each {}", T::expected())
    }
    fn schema() -> ValueSchema {
        ValueSchema::List(Box::new(T::schema()))
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::List(items) => items.iter().map(T::read).collect(),
            _ => Err(InvalidValue::of::<Self>(raw)),
        }
    }
    fn write(&self) -> Raw {
        Raw::List(self.iter().map(T::write).collect())
    }
}

impl<T: Setting> Setting for Option<T> {
    fn expected() -> String {
        format!("{}, or \"\" for none", T::expected())
    }
    fn schema() -> ValueSchema {
        ValueSchema::Either(vec![ValueSchema::Words(vec![""]), T::schema()])
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::Text(text) if text.is_empty() => Ok(None),
            _ => T::read(raw).map(Some),
        }
    }
    fn write(&self) -> Raw {
        self.as_ref().map_or(Raw::Text(String::new()), T::write)
    }
}

macro_rules! unit_setting {
    ($($kind:ty: $expected:literal, $units:expr, $wrong:expr => $allowed:literal;)*) => {$(
        impl Setting for $kind {
            fn expected() -> String {
                $expected.into()
            }
            fn schema() -> ValueSchema {
                ValueSchema::Quantity($units.to_vec())
            }
            fn read(raw: &Raw) -> Result<Self, InvalidValue> {
                match raw {
                    Raw::Text(text) => match text.parse() {
                        Ok(value) if $wrong(value) => Err(InvalidValue::of::<Self>(raw).because($allowed)),
                        parsed => parsed.map_err(|reason| InvalidValue::of::<Self>(raw).because(reason)),
                    },
                    _ => Err(InvalidValue::of::<Self>(raw).because("a quantity is written as text with its unit")),
                }
            }
            fn write(&self) -> Raw {
                Raw::Text(self.to_string())
            }
        }
    )*};
}

const BYTES: &[&str] = &["B", "kB", "KB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB"];

unit_setting! {
    Time: "a time such as \"1us\" (ps, ns, us, ms, s)", ["ps", "ns", "us", "ms", "s"],
        |time| time > Time::LONGEST => "at most 1000000s";
    Bytes: "a size such as \"4MiB\" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB)", BYTES,
        |bytes| bytes > Bytes::LARGEST => "at most 1024TiB";
    Rate: "a rate such as \"400Gbps\" (bps, Kbps, Mbps, Gbps, Tbps)", ["bps", "Kbps", "Mbps", "Gbps", "Tbps"],
        |rate| rate == Rate(0) || rate > Rate::LARGEST => "at least 1bps, at most 1000Tbps";
    BytesOrBdp: "a size such as \"64KiB\" or a multiple of the BDP such as \"1.5bdp\"", [BYTES, &["bdp"]].concat(),
        BytesOrBdp::is_too_large => "at most 1024TiB or 1000000bdp";
}

fn too_many<T: Setting>(raw: &Raw) -> InvalidValue {
    InvalidValue::of::<T>(raw).because("at most a million BDPs or passes, or a million million packets")
}

impl Setting for PacketsOrBdp {
    fn expected() -> String {
        "a number of packets such as 10, or a multiple of the BDP in packets such as \"0.25bdp\"".into()
    }
    fn schema() -> ValueSchema {
        ValueSchema::Either(vec![ValueSchema::Whole, ValueSchema::Quantity(vec!["bdp"])])
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::Int(i) => u64::try_from(*i).map(PacketsOrBdp::Packets).map_err(|_| InvalidValue::of::<Self>(raw)),
            Raw::Text(text) => text.parse().map_err(|reason| InvalidValue::of::<Self>(raw).because(reason)),
            _ => Err(InvalidValue::of::<Self>(raw)),
        }
        .and_then(|value: Self| if value.is_too_large() { Err(too_many::<Self>(raw)) } else { Ok(value) })
    }
    fn write(&self) -> Raw {
        match self {
            PacketsOrBdp::Packets(packets) => Raw::Int(*packets as i64),
            PacketsOrBdp::Bdp(_) => Raw::Text(self.to_string()),
        }
    }
}

impl Setting for PacketsOrPasses {
    fn expected() -> String {
        "a number of packets such as 10, a multiple of the BDP in packets such as \"0.25bdp\", or of the passes over all \
         paths such as \"2passes\""
            .into()
    }
    fn schema() -> ValueSchema {
        ValueSchema::Either(vec![ValueSchema::Whole, ValueSchema::Quantity(vec!["bdp", "passes", "pass"])])
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::Text(text) => text.parse().map_err(|reason| InvalidValue::of::<Self>(raw).because(reason)),
            _ => PacketsOrBdp::read(raw).map(PacketsOrPasses::Packets).map_err(|_| InvalidValue::of::<Self>(raw)),
        }
        .and_then(|value: Self| if value.is_too_large() { Err(too_many::<Self>(raw)) } else { Ok(value) })
    }
    fn write(&self) -> Raw {
        match self {
            PacketsOrPasses::Packets(packets) => packets.write(),
            PacketsOrPasses::Passes(_) => Raw::Text(self.to_string()),
        }
    }
}

macro_rules! word_or {
    ($($(#[doc = $title:literal])* $name:ident, $variant:ident, $word:literal;)*) => {$(
        $(#[doc = $title])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name<T> {
            /// The word.
            $variant,
            /// A value instead.
            Value(T),
        }
        impl<T> $name<T> {
            /// Returns the value; `None` for the word.
            pub fn value(self) -> Option<T> {
                match self {
                    $name::$variant => None,
                    $name::Value(value) => Some(value),
                }
            }
        }
        impl<T: Setting> Setting for $name<T> {
            fn expected() -> String {
                format!(concat!("\"", $word, "\" or {}"), T::expected())
            }
            fn schema() -> ValueSchema {
                ValueSchema::Either(vec![ValueSchema::Words(vec![$word]), T::schema()])
            }
            fn read(raw: &Raw) -> Result<Self, InvalidValue> {
                match raw {
                    Raw::Text(text) if text == $word => Ok($name::$variant),
                    _ => T::read(raw).map($name::Value).map_err(|mut wrong| {
                        wrong.expected = Self::expected();
                        wrong
                    }),
                }
            }
            fn write(&self) -> Raw {
                match self {
                    $name::$variant => Raw::Text($word.to_string()),
                    $name::Value(value) => value.write(),
                }
            }
        }
    )*};
}

word_or! {
    /// `"auto"` (derived from the rest of the scenario) or a value.
    Auto, Auto, "auto";
    /// `"never"`, or a value (usually a time).
    Never, Never, "never";
    /// `"once"` (one time) or a value.
    OnceOr, Once, "once";
    /// `"rotation"` (the rest of a rotation) or a value.
    RotationOr, Rotation, "rotation";
    /// `"control"` (as control packets) or a value.
    ControlOr, Control, "control";
}
