//! The field of a data packet that names its path's most loaded link (CSIG, draft-ravi-ippm-csig: compare and replace).

/// Load of the most loaded link so far, and where that is, in 16 bits. 0: none yet.
///
/// With the packet's multi-part entropy value stage and direction name the link, so that it needs no number of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSignal(pub u16);

/// Picoseconds of the first level of a delay, as a power of two: 8.192 ns.
const UNIT: u32 = 13;

impl LinkSignal {
    /// The maximum level.
    pub const MAX_LEVEL: u16 = (1 << 12) - 1;

    /// Creates the signal of a link. `stage` is the tier of its upper end: 0 for a leaf's link to a host.
    pub const fn new(level: u16, stage: u8, is_down: bool) -> Self {
        LinkSignal(level << 4 | (is_down as u16) << 3 | stage as u16 & 7)
    }

    /// Returns the level of a queueing delay: in units of 8.192 ns up to 128, above with 7 bits after the leading one.
    pub const fn level_of_delay(ps: u64) -> u16 {
        let units = ps >> UNIT;
        if units < 128 {
            return units as u16;
        }
        let exponent = units.ilog2();
        if exponent > 37 {
            return Self::MAX_LEVEL;
        }
        (exponent as u16 - 6) << 7 | (units >> (exponent - 7)) as u16 & 127
    }

    /// Returns the level of a utilisation: the share of `whole` that is `busy`.
    pub const fn level_of_share(busy: u64, whole: u64) -> u16 {
        let busy = if busy < whole { busy } else { whole };
        (busy as u128 * Self::MAX_LEVEL as u128 / whole as u128) as u16
    }

    /// Returns its level.
    pub const fn level(self) -> u16 {
        self.0 >> 4
    }

    /// Returns the tier of the link's upper end: as many parts of the packet's value name it. Paths with these parts have it in
    /// common.
    pub const fn stage(self) -> usize {
        (self.0 & 7) as usize
    }

    /// Returns `true` if the link leads towards hosts.
    pub const fn is_down(self) -> bool {
        self.0 >> 3 & 1 == 1
    }

    /// Returns the one of the higher level, of equal ones the earlier.
    #[must_use]
    pub const fn or_higher(self, later: Self) -> Self {
        if later.level() > self.level() { later } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::LinkSignal;

    #[test]
    fn a_field_keeps_the_highest_level_with_its_place() {
        let signal = LinkSignal::new(4095, 4, true);
        assert_eq!((signal.level(), signal.stage(), signal.is_down()), (4095, 4, true));
        let [up, down] = [LinkSignal::new(7, 1, false), LinkSignal::new(7, 1, true)];
        let higher = LinkSignal::new(8, 0, true);
        assert_eq!(LinkSignal::default().or_higher(up).or_higher(down).or_higher(higher), higher);
        assert_eq!((up.or_higher(down), higher.or_higher(up)), (up, higher), "of equal ones the earlier");
    }

    #[test]
    fn levels_are_units_then_seven_bits() {
        // 8.192 ns each up to 127; 300 units are 2^8 (1 + 44 / 256): 7 bits are 22, after 2 * 128.
        let units = [0, 1, 127, 128, 255, 256, 300, u64::MAX >> 13];
        assert_eq!(units.map(|units| LinkSignal::level_of_delay(units << 13)), [0, 1, 127, 128, 255, 256, 278, 4095]);
        assert_eq!(LinkSignal::level_of_delay(8191), 0);
        let levels = (0..50_000u64).map(|n| LinkSignal::level_of_delay(n * n * n));
        assert!(levels.is_sorted());
        assert_eq!([0, 1, 2, 4, 9].map(|busy| LinkSignal::level_of_share(busy, 4)), [0, 1023, 2047, 4095, 4095]);
    }
}
