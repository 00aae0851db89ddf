//! Ranges of numeric parameters.

use crate::{Auto, ControlOr, InvalidValue, Never, Raw, Setting, ValueSchema};
use anabranch_units::{Bytes, Rate, Time};
use std::{marker::PhantomData, ops::RangeInclusive};

/// Type of a parameter that has a range.
pub trait Bounded: Setting {
    /// Type of the ends.
    type End: Setting + PartialOrd;
    /// Returns the number; `None` for a word instead of one.
    fn number(&self) -> Option<&Self::End>;
}

macro_rules! bounded {
    ($($number:ty),*) => {$(
        impl Bounded for $number {
            type End = Self;
            fn number(&self) -> Option<&Self> {
                Some(self)
            }
        }
    )*};
}
bounded!(u32, u64, f64, Bytes, Rate, Time);

macro_rules! bounded_or {
    ($($name:ident),*) => {$(
        impl<T: Bounded> Bounded for $name<T> {
            type End = T::End;
            fn number(&self) -> Option<&T::End> {
                if let $name::Value(value) = self { value.number() } else { None }
            }
        }
    )*};
}
bounded_or!(Auto, Never, ControlOr);

impl<T: Bounded> Bounded for Option<T> {
    type End = T::End;
    fn number(&self) -> Option<&T::End> {
        self.as_ref().and_then(T::number)
    }
}

/// Reader of a parameter of type `T`, without a range.
#[derive(Debug)]
pub struct Within<T>(PhantomData<T>);

/// Reader of a parameter of type `T` with a range.
#[derive(Debug)]
pub struct Bounds<T: Bounded>(RangeInclusive<T::End>);

impl<T> Default for Within<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Within<T> {
    /// Creates a reader.
    pub fn new() -> Self {
        Within(PhantomData)
    }
}

impl<T: Bounded> Within<T> {
    /// Sets the range.
    pub fn range(self, range: RangeInclusive<T::End>) -> Bounds<T> {
        Bounds(range)
    }
}

impl<T: Setting> Within<T> {
    /// Returns the allowed values as text.
    pub fn expected(&self) -> String {
        T::expected()
    }
    /// Returns the allowed values for programs.
    pub fn schema(&self) -> ValueSchema {
        T::schema()
    }
    /// Parses a value.
    ///
    /// # Errors
    /// [`InvalidValue`].
    pub fn read(&self, raw: &Raw) -> Result<T, InvalidValue> {
        T::read(raw)
    }
}

/// Returns the value of a text without its quotes, and a number without an exponent.
fn plain(raw: &Raw) -> String {
    match raw {
        Raw::Text(text) => text.clone(),
        Raw::Float(number) => number.to_string(),
        other => other.to_string(),
    }
}

impl<T: Bounded> Bounds<T> {
    /// Returns the allowed values as text.
    pub fn expected(&self) -> String {
        let [min, max] = [self.0.start(), self.0.end()].map(|end| plain(&end.write()));
        format!("{}, from {min} to {max}", T::expected().trim_end_matches(", zero or more"))
    }
    /// Returns the allowed values for programs; quantities have no range there.
    pub fn schema(&self) -> ValueSchema {
        T::schema().between(&self.0.start().write(), &self.0.end().write())
    }
    /// Parses a value.
    ///
    /// # Errors
    /// [`InvalidValue`], also for a number out of the range.
    pub fn read(&self, raw: &Raw) -> Result<T, InvalidValue> {
        let wrong = |reason| InvalidValue { found: raw.to_string(), expected: self.expected(), reason, nearest: None };
        // The range of the key is within that of the type, "at most ...".
        let reason = |error: &InvalidValue| error.reason.clone().filter(|reason| !reason.starts_with("at "));
        let value =
            T::read(raw).map_err(|error| InvalidValue { nearest: error.nearest.clone(), ..wrong(reason(&error)) })?;
        if value.number().is_none_or(|number| self.0.contains(number)) { Ok(value) } else { Err(wrong(None)) }
    }
}

#[cfg(test)]
#[allow(unreachable_pub)]
mod tests {
    use crate::{Auto, Parameters, Raw, ValueSchema, parameters};

    parameters! {
        /// For the tests.
        pub struct Sample {
            /// A count.
            count: u32 = 3, within 1..=8, source "test";
            /// An optional share.
            share: Auto<f64> = Auto::Auto, within 0.0..=0.5, source "test";
        }
    }

    #[test]
    fn the_ends_are_allowed_and_shown() {
        let mut sample = Sample::default();
        for (key, raw, is_allowed) in [
            ("count", Raw::Int(1), true),
            ("count", Raw::Int(8), true),
            ("count", Raw::Int(0), false),
            ("count", Raw::Int(9), false),
            ("share", Raw::Float(0.5), true),
            ("share", Raw::Text("auto".into()), true),
            ("share", Raw::Float(0.51), false),
        ] {
            let set = sample.set(key, &raw);
            assert_eq!(set.is_ok(), is_allowed, "{key} = {raw}: {set:?}");
            assert!(set.is_ok() || set.unwrap_err().to_string().contains(", from "), "{key} = {raw}");
        }
        let [count, share] = &sample.documentation()[..] else { panic!("two keys") };
        assert_eq!(count.expected, "a whole number, from 1 to 8");
        assert_eq!(count.schema, ValueSchema::Between(Box::new(ValueSchema::Whole), Raw::Int(1), Raw::Int(8)));
        assert_eq!(share.expected, "\"auto\" or a number, from 0 to 0.5");
    }
}
