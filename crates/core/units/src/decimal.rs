//! A decimal number followed by a unit, read exactly.

use thiserror::Error;

/// Reason for which a quantity could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct UnitError(String);

/// Name of a unit, and its size in smallest units.
pub(crate) type Unit = (&'static str, u64);

/// `further` names units of another kind after the `units` that are allowed.
pub(crate) fn read(
    text: &str,
    units: &[Unit],
    further: &str,
    smallest: &'static str,
    example: &'static str,
) -> Result<u64, UnitError> {
    let wrong = |problem: String| UnitError(format!("`{text}` {problem}"));
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    let allowed = || units.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return Err(wrong(format!("does not start with a number; write for example {example}")));
    }
    if unit.is_empty() {
        return Err(wrong(format!("has no unit; allowed are {}, for example {example}", allowed())));
    }
    let Some(&(_, scale)) = units.iter().find(|u| u.0 == unit) else {
        let allowed = allowed();
        return Err(UnitError(format!("`{unit}` in `{text}` is not a unit here; allowed are {allowed}{further}")));
    };
    let fraction = fraction.trim_end_matches('0');
    let too_large = || wrong("is too large".into());
    let not_whole = || wrong(format!("is not a whole number of {smallest}"));
    let digits: u128 = format!("0{whole}{fraction}").parse().map_err(|_| too_large())?;
    let divisor = 10u128.checked_pow(fraction.len() as u32).ok_or_else(not_whole)?;
    let scaled = digits.checked_mul(u128::from(scale)).ok_or_else(too_large)?;
    if scaled % divisor != 0 {
        return Err(not_whole());
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
