//! The field of a data packet that names its path's most loaded link (CSIG, draft-ravi-ippm-csig: compare and replace).

use anabranch_units::Time;

/// Load of the most loaded link so far, and where that is, in 16 bits. 0: none yet.
///
/// With the packet's multi-part entropy value stage and direction name the link, so that it needs no number of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSignal(pub u16);

/// Load of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLoad {
    /// Picoseconds for which the packet waited.
    Delay(u64),
    /// The share of the second that is busy, the first.
    Utilisation(u64, u64),
    /// The packet was trimmed there: the highest load.
    Trimmed,
}

/// Picoseconds of the first level of a delay, as a power of two: 8.192 ns.
const UNIT: u32 = 13;
const MAX_LEVEL: u16 = (1 << 11) - 1;

impl LinkLoad {
    /// Returns the level, up to 2047 for a trimmed packet. A delay has units of 8.192 ns up to 64 of them, above 6 bits after the
    /// leading one.
    fn level(self) -> u16 {
        let level = match self {
            LinkLoad::Trimmed => return MAX_LEVEL,
            LinkLoad::Utilisation(busy, whole) => {
                (u128::from(busy.min(whole)) * u128::from(MAX_LEVEL) / u128::from(whole.max(1))) as u16
            }
            LinkLoad::Delay(ps) => match ps >> UNIT {
                units @ 0..64 => units as u16,
                units => {
                    let exponent = units.ilog2();
                    (exponent as u16 - 5) << 6 | (units >> (exponent - 6)) as u16 & 63
                }
            },
        };
        level.min(MAX_LEVEL - 1)
    }
}

impl LinkSignal {
    /// Creates the signal of a link. `stage` is the tier of its upper end: 0 for a leaf's link to a host.
    pub fn new(load: LinkLoad, stage: u8, is_down: bool) -> Self {
        let is_share = matches!(load, LinkLoad::Utilisation(..));
        LinkSignal(load.level() << 5 | u16::from(is_share) << 4 | u16::from(is_down) << 3 | u16::from(stage & 7))
    }

    /// Returns the tier of the link's upper end: as many parts of the packet's value name it. Paths with these parts have it in
    /// common.
    pub fn stage(self) -> usize {
        usize::from(self.0 & 7)
    }

    /// Returns `true` if the link leads towards hosts.
    pub fn is_down(self) -> bool {
        self.0 >> 3 & 1 == 1
    }

    /// Returns `true` if the link trimmed the packet.
    pub fn is_trim(self) -> bool {
        self.level() == MAX_LEVEL
    }

    /// Returns `true` if the load is at least this delay or, where it is one, this utilisation, which none above 1 is.
    pub fn is_at_least(self, delay: Time, utilisation: f64) -> bool {
        let least = match self.0 >> 4 & 1 == 1 {
            true if utilisation > 1.0 => return false,
            true => LinkLoad::Utilisation((utilisation * 1e6) as u64, 1_000_000),
            false => LinkLoad::Delay(delay.ps()),
        };
        self.level() >= least.level().max(1)
    }

    fn level(self) -> u16 {
        self.0 >> 5
    }

    /// Returns the one of the higher load, of equal ones the earlier.
    #[must_use]
    pub fn or_higher(self, later: Self) -> Self {
        if later.level() > self.level() { later } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_keeps_the_highest_load_with_its_place() {
        let trimmed = LinkSignal::new(LinkLoad::Trimmed, 4, true);
        assert_eq!((trimmed.is_trim(), trimmed.stage(), trimmed.is_down()), (true, 4, true));
        let waits = |ns: u64, stage| LinkSignal::new(LinkLoad::Delay(ns * 1000), stage, false);
        let all = [waits(5, 3), waits(400, 1), waits(400, 2), waits(500, 0), waits(90, 1)];
        assert_eq!(all[..3].iter().copied().fold(LinkSignal::default(), LinkSignal::or_higher), all[1], "the earlier");
        assert_eq!(all.iter().copied().fold(LinkSignal::default(), LinkSignal::or_higher), all[3]);
        assert_eq!(all[3].or_higher(trimmed).or_higher(all[3]), trimmed);
        assert_eq!(LinkSignal::default().or_higher(waits(5, 3)), LinkSignal::default(), "less than a level");
    }

    #[test]
    fn levels_are_units_then_six_bits() {
        // 8.192 ns each up to 63; 150 units are 2^7 (1 + 22 / 128): 6 bits are 11, after 2 * 64.
        let units = [0, 1, 63, 64, 127, 128, 150, u64::MAX >> 13];
        let level = |units: u64| LinkLoad::Delay(units << 13).level();
        assert_eq!(units.map(level), [0, 1, 63, 64, 127, 128, 139, 2046]);
        assert_eq!(LinkLoad::Delay(8191).level(), 0);
        assert!((0..50_000u64).map(|n| LinkLoad::Delay(n * n * n).level()).is_sorted());
        assert_eq!([0, 1, 2, 4, 9].map(|busy| LinkLoad::Utilisation(busy, 4).level()), [0, 511, 1023, 2046, 2046]);
    }

    #[test]
    fn thresholds_are_of_the_kind_of_load() {
        let is_at_least = |load| LinkSignal::new(load, 1, false).is_at_least(Time::from_us(5), 0.9);
        assert!(is_at_least(LinkLoad::Delay(5_000_000)) && !is_at_least(LinkLoad::Delay(4_800_000)));
        assert!(is_at_least(LinkLoad::Utilisation(10, 10)) && !is_at_least(LinkLoad::Utilisation(8, 10)));
        assert!(is_at_least(LinkLoad::Trimmed) && !LinkSignal::default().is_at_least(Time::ZERO, 0.9));
    }

    proptest::proptest! {
        /// A busy share is up to 1, in steps of 1 / 2047. What is at least one share is at least each lower one.
        #[test]
        fn a_utilisation_is_compared_as_a_share(busy in 0u64..=1000, least in 0.001..2.0f64) {
            let of = |busy, least| LinkSignal::new(LinkLoad::Utilisation(busy, 1000), 1, true).is_at_least(Time::ZERO, least);
            let share = busy as f64 / 1000.0;
            if (share - least).abs() > 1.0 / 2046.0 || least > 1.0 {
                proptest::prop_assert_eq!(of(busy, least), share >= least);
            }
            proptest::prop_assert!(of(1000, least.min(1.0)), "a link that is always busy");
        }
    }
}
