//! The local record of what was sent when. Datagrams carry the number of their transmission, replies repeat it: of a peer's
//! datagram nothing is read but that number, so no peer can make up a send time.

use anabranch_units::Time;

/// A data packet or probe that has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transmission {
    /// Zero: none.
    pub(crate) number: u32,
    /// Its round trip is that of a full packet.
    pub(crate) is_full: bool,
    pub(crate) at: Time,
}

impl Transmission {
    /// Returns the round trip without the time for which the peer states that it held the packet; `None` if that is
    /// longer than the whole, or the whole longer than `max`.
    pub(crate) fn round_trip(&self, now: Time, held: Time, max: Time) -> Option<Time> {
        let whole = now.saturating_sub(self.at);
        (whole <= max && held <= whole).then(|| whole.saturating_sub(held))
    }
}

/// Transmissions of a stream by number, as many as it had packets under way, twice over. Numbers wrap: a slot holds the last
/// one that belongs there, and no other is found in it.
#[derive(Debug, Default)]
pub(crate) struct Transmissions {
    ring: Box<[Transmission]>,
    last: u32,
}

const MIN_SLOTS: u64 = 32;

impl Transmissions {
    /// Creates a record whose first number follows `last`.
    pub(crate) fn after(last: u32) -> Self {
        Transmissions { last, ..Transmissions::default() }
    }

    /// Records a transmission of a stream with `under_way` packets in flight; returns its number.
    #[inline]
    pub(crate) fn note(&mut self, at: Time, is_full: bool, under_way: u64) -> u32 {
        if 2 * under_way >= self.ring.len() as u64 {
            self.grow(under_way);
        }
        self.last = self.last.wrapping_add(1).max(1);
        let slot = self.last as usize & (self.ring.len() - 1);
        self.ring[slot] = Transmission { number: self.last, is_full, at };
        self.last
    }

    #[cold]
    fn grow(&mut self, under_way: u64) {
        let slots = (2 * under_way + 1).next_power_of_two().max(MIN_SLOTS) as usize;
        let old = std::mem::replace(&mut self.ring, vec![Transmission::default(); slots].into_boxed_slice());
        for of in old.iter().filter(|of| of.number != 0) {
            self.ring[of.number as usize & (slots - 1)] = *of;
        }
    }

    /// Returns the transmission of this number, if it is among the last ones.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Transmission> {
        let slot = number as usize & self.ring.len().checked_sub(1)?;
        self.ring.get(slot).filter(|of| of.number == number && number != 0)
    }

    pub(crate) fn last(&self) -> Option<&Transmission> {
        self.get(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_round_trips_are_local() {
        let (mut all, us) = (Transmissions::after(u32::MAX - 4), Time::from_us);
        let numbers: Vec<u32> = (0..8).map(|at| all.note(us(100 + at), at > 3, 3)).collect();
        // Zero means none.
        assert_eq!(numbers, [u32::MAX - 3, u32::MAX - 2, u32::MAX - 1, u32::MAX, 1, 2, 3, 4]);
        let whole = |number| all.get(number).map(|of| (of.is_full, of.round_trip(us(200), Time::ZERO, us(1000))));
        assert_eq!(whole(u32::MAX), Some((false, Some(us(97)))));
        assert_eq!(whole(1), Some((true, Some(us(96)))));
        assert_eq!([0, 5, u32::MAX - 4, 1 << 31].map(whole), [None; 4]);
        let of = all.get(1).unwrap();
        assert_eq!(of.round_trip(us(200), us(90), us(1000)), Some(us(6)));
        assert_eq!(of.round_trip(us(200), us(97), us(1000)), None, "held for longer than it was away");
        assert_eq!(of.round_trip(us(200), us(1), us(95)), None, "longer than the limit");
        // Memory follows the packets under way, with twice as many slots.
        for _ in 0..1000 {
            all.note(us(1), true, 40);
        }
        assert_eq!(all.ring.len(), 128);
    }
}
