//! Parameters that document themselves.
//!
//! Every configurable part declares its parameters once with [`parameters!`]: name, type, default, meaning, source. The
//! struct, parsing with errors that name the nearest valid choice, printing and `anabranch explain` derive from it.
//! [`registry!`] lists the kinds of a part by name, each with its own parameters.

#![warn(missing_docs)]

#[doc(hidden)]
pub mod external;
mod nearest;
mod registry;
mod setting;
mod value_schema;
mod within;
#[macro_use]
mod worded;

pub use external::{Addition, External, ExternalParameters, INTERFACE, undocumented};
pub use nearest::{nearest, nearest_few};
pub use registry::{About, Each, Named, Registry, Unknown};
pub use setting::{Auto, ControlOr, InvalidValue, Never, OnceOr, Raw, RotationOr, Seed, Setting};
pub use value_schema::ValueSchema;
pub use within::{Bounded, Bounds, Within};

use thiserror::Error;

/// Documentation of one parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Key in a scenario.
    pub name: &'static str,
    /// Meaning, with its unit.
    pub meaning: &'static str,
    /// Allowed values, as text.
    pub expected: String,
    /// Allowed values, for programs.
    pub schema: ValueSchema,
    /// Default, as written in a scenario.
    pub default: Raw,
    /// Source of the default: a section of a paper, a public source, or "ours".
    pub source: &'static str,
    /// Readers for whom it is meant.
    pub level: Level,
}

worded! {
/// Readers for whom a parameter is meant. All of them may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Users of a simulation: size, traffic, load, what to measure.
    User = "user",
    /// Experts: constants of an algorithm, a model or a datapath.
    Expert = "expert",
    /// Replications of a paper: another reading of its text, or of its artifact.
    Reading = "reading",
}
}

/// Reason for which a parameter could not be set.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SetError {
    /// No parameter has this key.
    #[error("unknown key `{key}`; allowed are {}{}", allowed.join(", "), hint(nearest))]
    UnknownKey {
        /// The key as found.
        key: String,
        /// All valid keys.
        allowed: Vec<&'static str>,
        /// Nearest valid key.
        nearest: Option<String>,
    },
    /// The value is invalid.
    #[error("`{key}`: {wrong}")]
    InvalidValue {
        /// The key.
        key: String,
        /// Value found and values allowed.
        wrong: InvalidValue,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default()
}

/// A set of parameters declared with [`parameters!`].
pub trait Parameters {
    /// Returns the documentation of each parameter, in declaration order.
    fn documentation(&self) -> Vec<Parameter>;
    /// Sets one parameter.
    ///
    /// # Errors
    /// [`SetError`] for an unknown key or an invalid value; nothing is changed then.
    fn set(&mut self, key: &str, value: &Raw) -> Result<(), SetError>;
    /// Returns every key with its current value.
    fn entries(&self) -> Vec<(&'static str, Raw)>;
}

/// Declares a set of parameters. `within MIN..=MAX` after a default is the range of the key; the word of an [`Auto`] or
/// [`Never`] stays allowed. A [`Level`] other than `User` follows the source.
///
/// ```
/// use anabranch_settings::{Level, Parameters, Raw, parameters};
/// use anabranch_units::Time;
/// parameters! {
///     /// Host flowlets: a pause longer than the gap frees the choice of a path.
///     pub struct FlowletParameters {
///         /// Gap after which a flowlet is over.
///         gap: Time = Time::from_us(4), within Time::from_ns(1)..=Time::from_ms(1), source "ours", Expert;
///     }
/// }
/// let mut p = FlowletParameters::default();
/// p.set("gap", &Raw::Text("2us".into())).unwrap();
/// assert_eq!((p.gap, p.documentation()[0].level), (Time::from_us(2), Level::Expert));
/// assert!(p.set("gap", &Raw::Int(2)).is_err());
/// assert!(p.set("gap", &Raw::Text("0us".into())).unwrap_err().to_string().contains("from 1ns to 1ms"));
/// ```
#[macro_export]
macro_rules! parameters {
    ($(#[doc = $title:literal])* pub struct $name:ident {
        $($(#[doc = $meaning:literal])+ $field:ident: $kind:ty = $default:expr $(, within $range:expr)?, source $source:literal $(, $level:ident)?;)*
    }) => {
        $(#[doc = $title])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $meaning])+ pub $field: $kind,)*
        }
        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
        impl $crate::Parameters for $name {
            fn documentation(&self) -> Vec<$crate::Parameter> {
                #[allow(unused_variables)]
                let defaults = Self::default();
                vec![$($crate::Parameter {
                    name: stringify!($field),
                    meaning: concat!($($meaning),+).trim(),
                    expected: $crate::Within::<$kind>::new()$(.range($range))?.expected(),
                    schema: $crate::Within::<$kind>::new()$(.range($range))?.schema(),
                    default: $crate::Setting::write(&defaults.$field),
                    source: $source,
                    level: [$($crate::Level::$level,)? $crate::Level::User][0],
                },)*]
            }
            #[allow(unused_variables)]
            fn set(&mut self, key: &str, value: &$crate::Raw) -> Result<(), $crate::SetError> {
                match key {
                    $(stringify!($field) => {
                        self.$field = $crate::Within::<$kind>::new()$(.range($range))?
                            .read(value)
                            .map_err(|wrong| $crate::SetError::InvalidValue { key: key.to_string(), wrong })?;
                        Ok(())
                    })*
                    _ => {
                        let allowed = vec![$(stringify!($field)),*];
                        let nearest = $crate::nearest(key, allowed.iter().copied());
                        Err($crate::SetError::UnknownKey { key: key.to_string(), allowed, nearest })
                    }
                }
            }
            fn entries(&self) -> Vec<(&'static str, $crate::Raw)> {
                vec![$((stringify!($field), $crate::Setting::write(&self.$field)),)*]
            }
        }
    };
}

/// Declares a parameter type whose values are a few words.
///
/// ```
/// use anabranch_settings::{choices, Raw, Setting};
/// choices! {
///     /// Event that lets a penalty decay.
///     pub enum DecayOn {
///         /// Every packet sent.
///         Sent = "sent",
///         /// Every entropy value generated.
///         Generated = "generated",
///     }
/// }
/// assert_eq!(DecayOn::read(&Raw::Text("sent".into())), Ok(DecayOn::Sent));
/// assert!(DecayOn::read(&Raw::Text("snet".into())).unwrap_err().to_string().contains("did you mean `sent`"));
/// ```
#[macro_export]
macro_rules! choices {
    ($(#[doc = $title:literal])* pub enum $name:ident {
        $($(#[doc = $meaning:literal])+ $variant:ident = $word:literal,)+
    }) => {
        $(#[doc = $title])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[doc = $meaning])+ $variant,)+
        }
        impl $name {
            /// Every one with its word.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];
        }
        impl $crate::Setting for $name {
            fn expected() -> String {
                concat!("one of", $(" \"", $word, "\""),+).to_string()
            }
            fn schema() -> $crate::ValueSchema {
                $crate::ValueSchema::Words(vec![$($word),+])
            }
            fn read(raw: &$crate::Raw) -> Result<Self, $crate::InvalidValue> {
                match raw {
                    $($crate::Raw::Text(word) if word == $word => Ok(Self::$variant),)+
                    _ => Err($crate::InvalidValue::of::<Self>(raw).near([$($word),+])),
                }
            }
            fn write(&self) -> $crate::Raw {
                $crate::Raw::Text(match self { $(Self::$variant => $word,)+ }.to_string())
            }
        }
    };
}

#[cfg(test)]
#[allow(unreachable_pub)]
mod tests {
    use super::*;
    use anabranch_units::Time;

    parameters! {
        /// For the tests.
        pub struct Sample {
            /// A delay.
            delay: Time = Time::from_us(1), source "test";
            /// A count.
            count: u64 = 3, source "test";
            /// A share.
            share: f64 = 0.5, source "test";
            /// An optional time.
            rto: Auto<Time> = Auto::Auto, source "test";
        }
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        let error = Sample::default().set("dealy", &Raw::Int(1)).unwrap_err();
        assert!(error.to_string().contains("did you mean `delay`?"), "{error}");
    }

    #[test]
    fn prefix_and_substring_come_before_edit_distance() {
        // By edit distance alone `spray` is nearest to `decay` (3), then to `qp-spray` (3) and `spritz-spray` (7).
        let names = ["decay", "spritz-spray", "qp-spray", "delay"];
        assert_eq!(nearest("spray", names).as_deref(), Some("qp-spray"));
        assert_eq!(nearest_few("spray", names, 3), ["qp-spray", "spritz-spray", "decay"]);
        // `rto` is two changes from `rate`.
        assert_eq!(nearest("rate", ["rto", "link_rate"]).as_deref(), Some("link_rate"));
        assert_eq!(nearest("over", ["order", "oversubscription"]).as_deref(), Some("oversubscription"));
        // Words of two letters are part of too much, and a typing error is still found.
        assert_eq!(nearest("at", ["rate", "a"]).as_deref(), Some("a"));
        assert_eq!(nearest("ecn_kmni", ["ecn", "ecn_kmin"]).as_deref(), Some("ecn_kmin"));
        assert_eq!(nearest("prmie", ["prime", "plb"]).as_deref(), Some("prime"));
    }

    #[test]
    fn wrong_values_say_what_is_allowed_and_change_nothing() {
        let mut sample = Sample::default();
        let error = sample.set("delay", &Raw::Text("1 parsec".into())).unwrap_err().to_string();
        assert!(error.contains("parsec") && error.contains("ns"), "{error}");
        assert!(sample.set("count", &Raw::Int(-1)).is_err());
        assert_eq!(sample, Sample::default());
    }

    #[test]
    fn entries_can_be_set_again() {
        let mut sample = Sample::default();
        sample.set("rto", &Raw::Text("20us".into())).unwrap();
        let mut copy = Sample::default();
        for (key, value) in sample.entries() {
            copy.set(key, &value).unwrap();
        }
        assert_eq!(copy, sample);
        assert_eq!(sample.documentation()[0].default, Raw::Text("1us".into()));
    }
}
