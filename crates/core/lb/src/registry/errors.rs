//! Errors in the name of a scheme, a pair of schemes, or a parameter.

use anabranch_settings::Unknown;
use std::{borrow::Cow, fmt::Display};
use thiserror::Error;

/// A parameter is outside its limits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{key}`: found {found}, expected {expected}")]
pub struct Invalid {
    /// Name of the parameter.
    pub key: &'static str,
    /// Value found.
    pub found: String,
    /// Allowed values.
    pub expected: Cow<'static, str>,
}

impl Invalid {
    /// Creates the error.
    pub fn new(key: &'static str, found: impl Display, expected: impl Into<Cow<'static, str>>) -> Self {
        Invalid { key, found: found.to_string(), expected: expected.into() }
    }

    /// Rejects a value that is not `valid`.
    ///
    /// # Errors
    /// The value is not valid.
    pub fn unless(
        valid: bool,
        key: &'static str,
        found: impl Display,
        expected: impl Into<Cow<'static, str>>,
    ) -> Result<(), Self> {
        if valid { Ok(()) } else { Err(Invalid::new(key, found, expected)) }
    }
}

/// Reason for which a load balancer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemeError {
    /// Unknown scheme.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The host scheme, the switch scheme and the topology do not fit; the text names others that do.
    #[error("{0}")]
    Unfit(String),
    /// The switches would choose the paths, and those of a real network hash.
    #[error(
        "its switches choose the paths (`{switch}`), and those of a real network keep their own ECMP; expected \
         `{instead}`, whose hosts choose the paths, or the simulator (`anabranch run`)"
    )]
    SwitchesChoose {
        /// The switch scheme.
        switch: &'static str,
        /// A similar load balancer of hosts.
        instead: &'static str,
    },
    /// A parameter is outside its limits.
    #[error("{scheme}: {invalid}")]
    Invalid {
        /// The scheme.
        scheme: &'static str,
        /// The parameter and its limits.
        invalid: Invalid,
    },
}
