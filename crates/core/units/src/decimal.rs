//! A decimal number followed by a unit, read exactly.

use thiserror::Error;

/// Reason for which a quantity could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// The text does not start with a number.
    #[error("`{found}` does not start with a number; write for example {example}")]
    NoNumber {
        /// The text as found.
        found: String,
        /// A valid value.
        example: &'static str,
    },
    /// The number has no unit.
    #[error("`{found}` has no unit; allowed are {allowed}, for example {example}")]
    NoUnit {
        /// The text as found.
        found: String,
        /// The units allowed.
        allowed: String,
        /// A valid value.
        example: &'static str,
    },
    /// The unit is unknown.
    #[error("`{unit}` in `{found}` is not a unit here; allowed are {allowed}")]
    UnknownUnit {
        /// The text as found.
        found: String,
        /// The part read as a unit.
        unit: String,
        /// The units allowed.
        allowed: String,
    },
    /// Finer than the smallest unit.
    #[error("`{found}` is not a whole number of {smallest}")]
    NotWhole {
        /// The text as found.
        found: String,
        /// The smallest unit.
        smallest: &'static str,
    },
    /// More than 64 bits of the smallest unit.
    #[error("`{found}` is too large")]
    TooLarge {
        /// The text as found.
        found: String,
    },
}

/// Name of a unit, and its size in smallest units.
pub(crate) type Unit = (&'static str, u64);

pub(crate) fn read(
    text: &str,
    units: &[Unit],
    smallest: &'static str,
    example: &'static str,
) -> Result<u64, UnitError> {
    let found = || text.to_string();
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    let allowed = || units.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return Err(UnitError::NoNumber { found: found(), example });
    }
    if unit.is_empty() {
        return Err(UnitError::NoUnit { found: found(), allowed: allowed(), example });
    }
    let Some(&(_, scale)) = units.iter().find(|u| u.0 == unit) else {
        return Err(UnitError::UnknownUnit { found: found(), unit: unit.to_string(), allowed: allowed() });
    };
    let fraction = fraction.trim_end_matches('0');
    let too_large = || UnitError::TooLarge { found: found() };
    let digits: u128 = format!("0{whole}{fraction}").parse().map_err(|_| too_large())?;
    let divisor =
        10u128.checked_pow(fraction.len() as u32).ok_or_else(|| UnitError::NotWhole { found: found(), smallest })?;
    let scaled = digits.checked_mul(u128::from(scale)).ok_or_else(too_large)?;
    if scaled % divisor != 0 {
        return Err(UnitError::NotWhole { found: found(), smallest });
    }
    u64::try_from(scaled / divisor).map_err(|_| too_large())
}

/// Prints `value` in the largest unit that needs at most three decimals, else in the smallest. `units` ascend.
pub(crate) fn write(value: u64, units: &[Unit], f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    let &(smallest, one) = units.first().expect("a unit");
    for &(name, scale) in units.iter().rev() {
        let step = if scale.is_multiple_of(1000) && scale > one { scale / 1000 } else { scale };
        if value >= scale && value.is_multiple_of(step) {
            let (whole, rest) = (value / scale, (value % scale) / step);
            if rest == 0 {
                return write!(f, "{whole}{name}");
            }
            let decimals = format!("{rest:03}");
            return write!(f, "{whole}.{}{name}", decimals.trim_end_matches('0'));
        }
    }
    write!(f, "{value}{smallest}")
}
