//! Numbers of packets, relative to the bandwidth-delay product or to the number of paths.

use crate::{
    PacketsOrBdp,
    decimal::{self, Unit, UnitError},
    size::{MAX_MULTIPLE, part, write_millionths},
};
use std::{fmt, str::FromStr};

/// Multiples of a pass are stored as millionths, so that `"0.25passes"` is exact.
const PASSES: &[Unit] = &[("passes", 1_000_000), ("pass", 1_000_000)];

/// A number of packets (`10`), a multiple of the BDP in packets (`"0.25bdp"`), or of the passes over all paths
/// (`"2passes"`): one pass is a packet on every path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketsOrPasses {
    /// A number of packets, or a multiple of the BDP.
    Packets(PacketsOrBdp),
    /// Millionths of a pass.
    Passes(u64),
}

impl PacketsOrPasses {
    /// Returns `true` for more than a million passes, and as [`PacketsOrBdp::is_too_large`].
    pub fn is_too_large(self) -> bool {
        match self {
            PacketsOrPasses::Packets(packets) => packets.is_too_large(),
            PacketsOrPasses::Passes(millionths) => millionths > MAX_MULTIPLE,
        }
    }
    /// Converts to packets for a BDP of `bdp_packets` packets and `paths` paths; rounded to nearest.
    pub fn packets(self, bdp_packets: u64, paths: u64) -> u64 {
        match self {
            PacketsOrPasses::Packets(packets) => packets.packets(bdp_packets),
            PacketsOrPasses::Passes(millionths) => part(millionths, paths),
        }
    }
}

impl FromStr for PacketsOrPasses {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        if text.contains("pass") {
            return decimal::read(text, PASSES, "", "millionths of a pass", "\"2passes\"").map(PacketsOrPasses::Passes);
        }
        PacketsOrBdp::read(text, ", passes").map(PacketsOrPasses::Packets)
    }
}

impl fmt::Display for PacketsOrPasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketsOrPasses::Packets(packets) => packets.fmt(f),
            PacketsOrPasses::Passes(millionths) => write_millionths(*millionths, "passes", f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_count_paths() {
        // A BDP of 100 packets, 32 paths: 4 passes are 128 packets, a quarter of a pass is 8; 0.25 BDP are 25.
        for (text, packets) in [("4passes", 128), ("1pass", 32), ("0.25passes", 8), ("0.25bdp", 25), ("9", 9)] {
            let read: PacketsOrPasses = text.parse().unwrap();
            assert_eq!(read.packets(100, 32), packets, "{text}");
            assert_eq!(read.to_string().parse(), Ok(read), "{text}");
        }
        assert_eq!("1pass".parse::<PacketsOrPasses>().unwrap().to_string(), "1passes");
        let error = "3 laps".parse::<PacketsOrPasses>().unwrap_err().to_string();
        assert!(error.contains("bdp, passes"), "{error}");
        assert!("passes".parse::<PacketsOrPasses>().is_err());
    }
}
