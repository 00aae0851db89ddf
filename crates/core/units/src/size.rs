//! Sizes in bytes, and sizes relative to the bandwidth-delay product.

use crate::decimal::{self, Unit, UnitError};
use std::{fmt, str::FromStr};

/// A size in bytes. `kB`, `MB`, `GB` are powers of ten, `KiB`, `MiB`, `GiB` powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

const UNITS: &[Unit] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

impl Bytes {
    /// The largest size that a user may give.
    pub const LARGEST: Bytes = Bytes(1 << 50);

    /// Returns the size to one decimal place, in kB, MB or GB: `12.9 GB`.
    pub fn rounded(self) -> String {
        let (name, scale) = match self.0 {
            1_000_000_000.. => ("GB", 1e9),
            1_000_000.. => ("MB", 1e6),
            _ => ("kB", 1e3),
        };
        format!("{:.1} {name}", self.0 as f64 / scale)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        decimal::read(text, UNITS, "", "bytes", "\"4MiB\"").map(Bytes)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The largest unit that divides it; powers of two before powers of ten.
        let unit = |names: &[&str]| {
            UNITS.iter().rev().find(|(n, s)| names.contains(n) && self.0 >= *s && self.0.is_multiple_of(*s)).copied()
        };
        match unit(&["KiB", "MiB", "GiB", "TiB"]).or_else(|| unit(&["kB", "MB", "GB", "TB"])) {
            Some((name, scale)) => write!(f, "{}{name}", self.0 / scale),
            None => write!(f, "{}B", self.0),
        }
    }
}

/// Multiples of a BDP are stored as millionths, so that `"0.2bdp"` is exact.
const BDP: &[Unit] = &[("bdp", 1_000_000)];
/// A million of them.
pub(crate) const MAX_MULTIPLE: u64 = 1_000_000_000_000;
/// The largest number of packets that a user may give.
const MAX_PACKETS: u64 = 1_000_000_000_000;

/// Writes a number of millionths of `unit`.
pub(crate) fn write_millionths(millionths: u64, unit: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
    if rest == 0 {
        return write!(f, "{whole}{unit}");
    }
    write!(f, "{whole}.{}{unit}", format!("{rest:06}").trim_end_matches('0'))
}

/// Returns `millionths` of `bdp`, rounded to nearest.
pub(crate) fn part(millionths: u64, bdp: u64) -> u64 {
    u64::try_from((u128::from(millionths) * u128::from(bdp) + 500_000) / 1_000_000).unwrap_or(u64::MAX)
}

/// A size in bytes, or as a multiple of the BDP in bytes (`"1.5bdp"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BytesOrBdp {
    /// A number of bytes.
    Bytes(u64),
    /// Millionths of the BDP.
    Bdp(u64),
}

impl BytesOrBdp {
    /// Returns `true` for more bytes than [`Bytes::LARGEST`], or more than a million BDPs.
    pub fn is_too_large(self) -> bool {
        match self {
            BytesOrBdp::Bytes(bytes) => bytes > Bytes::LARGEST.0,
            BytesOrBdp::Bdp(millionths) => millionths > MAX_MULTIPLE,
        }
    }
    /// Converts to bytes for a BDP of `bdp` bytes; rounded to nearest.
    pub fn bytes(self, bdp: u64) -> u64 {
        match self {
            BytesOrBdp::Bytes(bytes) => bytes,
            BytesOrBdp::Bdp(millionths) => part(millionths, bdp),
        }
    }
}

impl FromStr for BytesOrBdp {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text.trim_end().ends_with("bdp") {
            return decimal::read(text, BDP, "", "millionths of a BDP", "\"1.5bdp\"").map(BytesOrBdp::Bdp);
        }
        decimal::read(text, UNITS, ", bdp", "bytes", "\"4MiB\"").map(BytesOrBdp::Bytes)
    }
}

impl fmt::Display for BytesOrBdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BytesOrBdp::Bytes(bytes) => Bytes(*bytes).fmt(f),
            BytesOrBdp::Bdp(millionths) => write_millionths(*millionths, "bdp", f),
        }
    }
}

/// A number of packets, or a multiple of the BDP in packets (`"0.25bdp"`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketsOrBdp {
    /// A number of packets.
    Packets(u64),
    /// Millionths of the BDP.
    Bdp(u64),
}

impl PacketsOrBdp {
    /// Returns `true` for more than a million million packets or a million BDPs.
    pub fn is_too_large(self) -> bool {
        match self {
            PacketsOrBdp::Packets(packets) => packets > MAX_PACKETS,
            PacketsOrBdp::Bdp(millionths) => millionths > MAX_MULTIPLE,
        }
    }
    /// Converts to packets for a BDP of `bdp_packets` packets; rounded to nearest.
    pub fn packets(self, bdp_packets: u64) -> u64 {
        match self {
            PacketsOrBdp::Packets(packets) => packets,
            PacketsOrBdp::Bdp(millionths) => part(millionths, bdp_packets),
        }
    }
    /// `further` names units besides the BDP.
    pub(crate) fn read(text: &str, further: &str) -> Result<Self, UnitError> {
        match text.trim().parse::<u64>() {
            Ok(packets) => Ok(PacketsOrBdp::Packets(packets)),
            Err(_) => decimal::read(text, BDP, further, "millionths of a BDP", "\"0.25bdp\"").map(PacketsOrBdp::Bdp),
        }
    }
}

impl FromStr for PacketsOrBdp {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        PacketsOrBdp::read(text, "")
    }
}

impl fmt::Display for PacketsOrBdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketsOrBdp::Packets(packets) => packets.fmt(f),
            PacketsOrBdp::Bdp(millionths) => write_millionths(*millionths, "bdp", f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_in_fitting_units() {
        let of = |bytes| Bytes(bytes).rounded();
        assert_eq!([of(1_500), of(533_600_000), of(12_949_000_000)], ["1.5 kB", "533.6 MB", "12.9 GB"]);
    }

    #[test]
    fn reads_and_prints() {
        for (text, bytes) in [("4MiB", 4 << 20), ("9MB", 9_000_000), ("64B", 64), ("100kB", 100_000), ("1500B", 1500)] {
            let read: Bytes = text.parse().unwrap();
            assert_eq!(read.0, bytes);
            assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn bdp_is_exact() {
        // 0.2 of 415,744 B is 83,148.8 B, nearest 83,149.
        let read: BytesOrBdp = "0.2bdp".parse().unwrap();
        assert_eq!(read.bytes(415_744), 83_149);
        assert_eq!(read.to_string(), "0.2bdp");
        assert_eq!("1.5bdp".parse::<BytesOrBdp>().unwrap().bytes(100), 150);
        assert_eq!("10".parse(), Ok(PacketsOrBdp::Packets(10)));
        assert_eq!("0.25bdp".parse::<PacketsOrBdp>().unwrap().packets(100), 25);
        let error = "3 parsecs".parse::<BytesOrBdp>().unwrap_err().to_string();
        assert!(error.ends_with(", bdp"), "{error}");
    }
}
