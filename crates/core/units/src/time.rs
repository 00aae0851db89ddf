//! Points in time and durations, in whole picoseconds.

use crate::decimal::{self, Unit, UnitError};
use std::{
    fmt,
    ops::{Add, AddAssign, Div, Mul, Sub},
    str::FromStr,
};

/// A point in simulated time or a duration, in picoseconds. 64 bits hold 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

const UNITS: &[Unit] = &[("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];

impl Time {
    /// Zero.
    pub const ZERO: Time = Time(0);
    /// The largest time, which means "never".
    pub const MAX: Time = Time(u64::MAX);

    /// The longest time that a user may give, a million seconds: eighteen of them fit.
    pub const LONGEST: Time = Time(1_000_000_000_000_000_000);

    /// Creates a time from picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Time(ps)
    }
    /// Creates a time from nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Time(ns * 1_000)
    }
    /// Creates a time from microseconds.
    pub const fn from_us(us: u64) -> Self {
        Time(us * 1_000_000)
    }
    /// Creates a time from milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Time(ms * 1_000_000_000)
    }
    /// Returns picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// Returns microseconds, for reports.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Returns seconds, for reports.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// Returns the time to three digits in the unit that fits: `103 ms`.
    pub fn rounded(self) -> String {
        // A number that three digits round up to 1000 is 1.00 of the next unit.
        let of = UNITS.iter().find(|(name, scale)| *name == "s" || self.0 < scale.saturating_mul(1000) - scale / 2);
        let (name, scale) = of.copied().unwrap_or(UNITS[0]);
        let value = self.0 as f64 / scale as f64;
        let decimals = match value {
            _ if scale == 1 => 0,
            ..9.995 => 2,
            ..99.95 => 1,
            _ => 0,
        };
        format!("{value:.decimals$} {name}")
    }
    /// Returns the difference, or zero if `other` is later.
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
    /// Returns the sum, or [`Time::MAX`] on overflow.
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
    /// Returns the multiple, or [`Time::MAX`] on overflow.
    pub const fn saturating_mul(self, factor: u64) -> Time {
        Time(self.0.saturating_mul(factor))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}
impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}
impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}
impl Mul<u64> for Time {
    type Output = Time;
    fn mul(self, factor: u64) -> Time {
        Time(self.0 * factor)
    }
}
impl Div<u64> for Time {
    type Output = Time;
    fn div(self, divisor: u64) -> Time {
        Time(self.0 / divisor)
    }
}
impl std::iter::Sum for Time {
    fn sum<I: Iterator<Item = Time>>(times: I) -> Time {
        times.fold(Time::ZERO, Add::add)
    }
}

impl FromStr for Time {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        decimal::read(text, UNITS, "", "picoseconds", "\"1us\"").map(Time)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { f.write_str("0us") } else { decimal::write(self.0, UNITS, f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exactly() {
        assert_eq!("1us".parse(), Ok(Time::from_us(1)));
        assert_eq!("83.2ns".parse(), Ok(Time::from_ps(83_200)));
        assert_eq!("0.001ns".parse(), Ok(Time::from_ps(1)));
        assert_eq!(" 2 ms ".parse(), Ok(Time::from_ms(2)));
        for (text, problem) in [
            ("0.5ps", "`0.5ps` is not a whole number of picoseconds"),
            ("1", "`1` has no unit; allowed are ps, ns, us, ms, s, for example \"1us\""),
            ("1 lightyear", "`lightyear` in `1 lightyear` is not a unit here; allowed are ps, ns, us, ms, s"),
            ("us", "`us` does not start with a number; write for example \"1us\""),
            ("1.2.3us", "`1.2.3us` does not start with a number; write for example \"1us\""),
            ("99999999999s", "`99999999999s` is too large"),
        ] {
            assert_eq!(text.parse::<Time>().unwrap_err().to_string(), problem);
        }
    }

    #[test]
    fn rounds_to_three_digits() {
        for (ps, text) in [
            (103_439_594_052_000, "103 s"),
            (103_439_594_052, "103 ms"),
            (68_123_000, "68.1 us"),
            (1_734_000_000_000, "1.73 s"),
            (9_996_000_000, "10.0 ms"),
            (999_499_999, "999 us"),
            (999_500_000, "1.00 ms"),
            (7, "7 ps"),
            (0, "0 ps"),
        ] {
            assert_eq!(Time::from_ps(ps).rounded(), text);
        }
    }

    #[test]
    fn prints_what_it_reads() {
        for text in ["1us", "83.2ns", "1ps", "2ms", "1.5us", "0us", "12.345s"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
    }
}
