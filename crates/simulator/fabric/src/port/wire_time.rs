//! Wire times that are not a whole number of picoseconds per byte.

use anabranch_units::{Rate, Serialiser};

#[derive(Clone, Debug)]
pub(crate) enum WireTime {
    /// The remainder of a packet's time is carried over to the next, so that the sum is exact.
    Carried(Serialiser),
    /// Truncated to whole nanoseconds, by size in bytes.
    WholeNanoseconds(Box<[u32]>),
}

/// Returns the picoseconds per byte at `rate`, or 0 and a clock for packets of up to `largest` bytes.
pub(crate) fn wire_time(rate: Rate, whole_nanoseconds: bool, largest: u64) -> (u32, Option<Box<WireTime>>) {
    if whole_nanoseconds {
        let times = (0..=largest).map(|bytes| rate.wire_time_in_ns(bytes).ps() as u32).collect();
        return (0, Some(Box::new(WireTime::WholeNanoseconds(times))));
    }
    rate.ps_per_byte()
        .map_or_else(|| (0, Some(Box::new(WireTime::Carried(Serialiser::new(rate))))), |ps| (ps as u32, None))
}

impl WireTime {
    /// Returns the wire time of this port's next packet, of `bytes` bytes, in picoseconds.
    #[inline]
    pub(crate) fn of(&mut self, bytes: u32) -> u64 {
        match self {
            WireTime::Carried(serialiser) => serialiser.serialise(u64::from(bytes)).ps(),
            WireTime::WholeNanoseconds(times) => u64::from(times[bytes as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_picoseconds_are_exact() {
        assert!(matches!(wire_time(Rate::gbps(400), false, 9000), (20, None)));
    }

    /// 8 / 3 ps per byte at 3 Tb/s: three bytes take 8 ps, in any split.
    #[test]
    fn remainders_are_carried() {
        let (ps, clock) = wire_time(Rate::gbps(3000), false, 9000);
        let mut clock = clock.unwrap();
        assert_eq!(ps, 0);
        assert_eq!([1, 1, 1].map(|bytes| clock.of(bytes)).iter().sum::<u64>(), 8);
    }

    /// 1048 B at 100 Gb/s are 83.84 ns.
    #[test]
    fn the_recorded_model_cuts_to_nanoseconds() {
        let (_, clock) = wire_time(Rate::gbps(100), true, 1048);
        assert_eq!(clock.unwrap().of(1048), 83_000);
    }
}
