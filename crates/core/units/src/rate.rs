//! Link rates and wire times.

use crate::{
    Time,
    decimal::{self, Unit, UnitError},
};
use std::{fmt, str::FromStr};

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

const UNITS: &[Unit] =
    &[("bps", 1), ("Kbps", 1_000), ("Mbps", 1_000_000), ("Gbps", 1_000_000_000), ("Tbps", 1_000_000_000_000)];

/// Picoseconds in a second times bits in a byte.
const PS_BITS: u64 = 8_000_000_000_000;

impl Rate {
    /// The largest rate that a user may give, a petabit per second.
    pub const LARGEST: Rate = Rate(1_000_000_000_000_000);

    /// Creates a rate from gigabits per second.
    pub const fn gbps(gbps: u64) -> Self {
        Rate(gbps * 1_000_000_000)
    }
    /// Returns the picoseconds per byte if they are a whole number (400 Gb/s: 20), else `None`.
    pub fn ps_per_byte(self) -> Option<u64> {
        (self.0 > 0 && PS_BITS.is_multiple_of(self.0)).then(|| PS_BITS / self.0)
    }
    /// Returns the wire time of `bytes`, rounded up to a picosecond; [`Time::MAX`] on overflow.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn wire_time(self, bytes: u64) -> Time {
        let bits = u128::from(bytes) * u128::from(PS_BITS);
        u64::try_from(bits.div_ceil(u128::from(self.0))).map_or(Time::MAX, Time::from_ps)
    }
    /// Returns the wire time of `bytes` as in the recorded model (specification 17.2): seconds as a double, truncated
    /// to a binary fraction of 64 bits, then to nanoseconds. At least one (ours), to keep the order on a link.
    ///
    /// # Panics
    /// If the rate is zero, or so slow that the time reaches a second.
    pub fn wire_time_in_ns(self, bytes: u64) -> Time {
        assert!(self.0 > bytes * 8, "{bytes} B take a second or more at {self}");
        let seconds = (bytes * 8) as f64 / self.0 as f64;
        // Exact: a power of two times a fraction below 1.
        let fraction = (seconds * 2f64.powi(64)) as u64;
        let nanoseconds = (u128::from(fraction) * 1_000_000_000) >> 64;
        Time::from_ps((nanoseconds as u64).max(1) * 1000)
    }
    /// Returns the bytes that pass in `time`, rounded down; `u64::MAX` on overflow.
    pub fn bytes_in(self, time: Time) -> u64 {
        u64::try_from(u128::from(time.ps()) * u128::from(self.0) / u128::from(PS_BITS)).unwrap_or(u64::MAX)
    }
}

/// Consecutive wire times of one port. The remainder of a division is carried over, so that sums are exact at any rate.
#[derive(Clone, Copy, Debug)]
pub struct Serialiser {
    rate: Rate,
    ps_per_byte: u64,
    remainder: u64,
}

impl Serialiser {
    /// Creates a port at `rate` without remainder.
    pub fn new(rate: Rate) -> Self {
        Serialiser { rate, ps_per_byte: rate.ps_per_byte().unwrap_or(0), remainder: 0 }
    }
    /// Returns the rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }
    /// Returns the wire time of the next packet of `bytes`.
    #[inline]
    pub fn serialise(&mut self, bytes: u64) -> Time {
        if self.ps_per_byte != 0 {
            return Time::from_ps(bytes * self.ps_per_byte);
        }
        let bits = u128::from(bytes) * u128::from(PS_BITS) + u128::from(self.remainder);
        self.remainder = (bits % u128::from(self.rate.0)) as u64;
        Time::from_ps((bits / u128::from(self.rate.0)) as u64)
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        decimal::read(text, UNITS, "", "bits per second", "\"400Gbps\"").map(Rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimal::write(self.0, UNITS, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_times() {
        assert_eq!(Rate::gbps(400).ps_per_byte(), Some(20));
        assert_eq!(Rate::gbps(400).wire_time(4160), Time::from_ps(83_200));
        assert_eq!(Rate::gbps(300).ps_per_byte(), None);
        assert_eq!(Rate::gbps(400).bytes_in(Time::from_us(1)), 50_000);
    }

    #[test]
    fn a_thousand_packets_take_exactly_the_time_of_their_bytes() {
        // 1000 packets of 1000 B at 300 Gb/s: 8e6 bits / 300e9 b/s = 26,666,666.67 ps.
        let mut port = Serialiser::new(Rate::gbps(300));
        let total: Time = (0..1000).map(|_| port.serialise(1000)).sum();
        assert_eq!(total, Time::from_ps(26_666_666));
        let mut three = Serialiser::new(Rate(3));
        assert_eq!((0..3).map(|_| three.serialise(1).ps()).sum::<u64>(), PS_BITS);
    }

    #[test]
    fn reads_and_prints() {
        for text in ["400Gbps", "1.6Tbps", "12.5Gbps", "100Mbps"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nanoseconds_are_cut_as_in_the_recorded_runs() {
        // specification 17.2: 83 ns for a full packet, 4 ns for an ACK; sizes that are multiples of 25 B lose one.
        for (bytes, ns) in [(1048, 83), (60, 4), (1000, 79), (64, 5), (43, 3), (1024, 81)] {
            assert_eq!(Rate::gbps(100).wire_time_in_ns(bytes), Time::from_ns(ns), "{bytes}");
        }
    }
}
