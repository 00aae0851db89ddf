//! A set of PSNs within a moving span, one bit each in a ring of words.

/// Words stored inline; a wider span is on the heap.
const INLINE: usize = 4;

/// PSNs from a lowest one (`low`) upwards, which the owner stores and passes in. Each ring word represents one aligned
/// group of 64 PSNs; all bits outside the span are zero. The ring doubles when a member would not fit.
#[derive(Clone, Debug)]
pub(crate) struct PsnSet {
    inline: [u64; INLINE],
    spill: Box<[u64]>,
    /// Number of ring words less one; the number is a power of two.
    mask: usize,
}

impl PsnSet {
    pub(crate) fn new(packets: u64) -> Self {
        // One group more than the span needs, since `low` may be anywhere in its group.
        let words = (packets as usize / 64 + 2).next_power_of_two();
        if words <= INLINE {
            PsnSet { inline: [0; INLINE], spill: Box::default(), mask: INLINE - 1 }
        } else {
            PsnSet { inline: [0; INLINE], spill: vec![0; words].into_boxed_slice(), mask: words - 1 }
        }
    }

    #[inline]
    fn word(&self, group: u64) -> u64 {
        let index = group as usize & self.mask;
        if self.mask == INLINE - 1 { self.inline[index % INLINE] } else { self.spill[index] }
    }

    #[inline]
    fn word_mut(&mut self, group: u64) -> &mut u64 {
        let index = group as usize & self.mask;
        if self.mask == INLINE - 1 { &mut self.inline[index % INLINE] } else { &mut self.spill[index] }
    }

    /// Returns `true` if `psn`, at or above `low`, is a member.
    #[inline]
    pub(crate) fn contains(&self, low: u64, psn: u64) -> bool {
        (psn >> 6) - (low >> 6) <= self.mask as u64 && self.word(psn >> 6) >> (psn & 63) & 1 == 1
    }

    /// Returns a bitmap whose bit i is set if `base + i` is a member. `base` is at or above `low`.
    #[inline]
    pub(crate) fn bits_from(&self, low: u64, base: u64) -> u64 {
        let (group, shift, first) = (base >> 6, base & 63, low >> 6);
        if group - first > self.mask as u64 {
            return 0;
        }
        let bits = self.word(group) >> shift;
        if shift == 0 || group + 1 - first > self.mask as u64 {
            return bits;
        }
        bits | self.word(group + 1) << (64 - shift)
    }

    /// Adds `base + i` for every bit i of `bits`. `base` is at or above `low`.
    #[inline]
    pub(crate) fn insert_bits(&mut self, low: u64, base: u64, bits: u64) {
        if bits == 0 {
            return;
        }
        let highest = base + 63 - u64::from(bits.leading_zeros());
        if (highest >> 6) - (low >> 6) > self.mask as u64 {
            self.grow(low, highest);
        }
        let (group, shift) = (base >> 6, base & 63);
        if bits << shift != 0 {
            *self.word_mut(group) |= bits << shift;
        }
        if shift != 0 && bits >> (64 - shift) != 0 {
            *self.word_mut(group + 1) |= bits >> (64 - shift);
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, low: u64, psn: u64) {
        self.insert_bits(low, psn, 1);
    }

    /// Removes the consecutive members from `psn` (the lowest possible member) on; returns the first PSN after them.
    #[inline]
    pub(crate) fn take_run(&mut self, mut psn: u64) -> u64 {
        loop {
            let shift = psn & 63;
            let word = self.word_mut(psn >> 6);
            let run = u64::from((*word >> shift).trailing_ones());
            if run == 0 {
                return psn;
            }
            *word &= !((u64::MAX >> (64 - run)) << shift);
            psn += run;
            if psn & 63 != 0 {
                return psn;
            }
        }
    }

    /// Removes the members from `low` to below `to`; returns how many there were.
    #[inline]
    pub(crate) fn take_below(&mut self, low: u64, to: u64) -> u64 {
        if to <= low {
            return 0;
        }
        let first = low >> 6;
        // Beyond the ring's width there is nothing to remove.
        let last = ((to - 1) >> 6).min(first + self.mask as u64);
        let mut taken = 0;
        for group in first..=last {
            let mut bits = u64::MAX;
            if group == to >> 6 {
                bits = (1 << (to & 63)) - 1;
            }
            let word = self.word_mut(group);
            taken += u64::from((*word & bits).count_ones());
            *word &= !bits;
        }
        taken
    }

    #[cold]
    fn grow(&mut self, low: u64, highest: u64) {
        let first = low >> 6;
        let words = ((highest >> 6) - first + 1).next_power_of_two().max(2 * (self.mask as u64 + 1));
        let mut wider = vec![0u64; words as usize].into_boxed_slice();
        for group in first..=first + self.mask as u64 {
            wider[(group & (words - 1)) as usize] = self.word(group);
        }
        (self.spill, self.mask) = (wider, words as usize - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_random::Stream;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn model_bits(model: &BTreeSet<u64>, base: u64) -> u64 {
        (0..64).filter(|i| model.contains(&(base + i))).fold(0, |bits, i| bits | 1 << i)
    }

    proptest! {
        #[test]
        fn agrees_with_an_ordered_set(seed in any::<u64>(), start in 0u64..1_000, span in 1u64..1_500) {
            let mut stream = Stream::keyed(seed, 0, "psn-set");
            let (mut set, mut model, mut low) = (PsnSet::new(1), BTreeSet::new(), start);
            for _ in 0..300 {
                let psn = low + stream.below(span);
                match stream.below(6) {
                    0 | 1 => {
                        set.insert(low, psn);
                        model.insert(psn);
                    }
                    2 => {
                        let bits = stream.bits() & stream.bits();
                        set.insert_bits(low, psn, bits);
                        model.extend((0..64).filter(|i| bits >> i & 1 == 1).map(|i| psn + i));
                    }
                    3 => {
                        let to = low + stream.below(200);
                        let below: Vec<u64> = model.range(..to).copied().collect();
                        prop_assert_eq!(set.take_below(low, to), below.len() as u64);
                        below.iter().for_each(|psn| { model.remove(psn); });
                        low = to;
                    }
                    4 => {
                        let mut end = low;
                        while model.remove(&end) {
                            end += 1;
                        }
                        prop_assert_eq!(set.take_run(low), end);
                        low = end;
                    }
                    _ => {}
                }
                prop_assert_eq!(set.contains(low, psn.max(low)), model.contains(&psn.max(low)));
                prop_assert_eq!(set.bits_from(low, psn.max(low)), model_bits(&model, psn.max(low)));
                prop_assert_eq!(set.bits_from(low, low), model_bits(&model, low));
            }
        }
    }

    #[test]
    fn a_run_over_the_whole_ring_ends() {
        let mut set = PsnSet::new(1);
        for psn in 0..256 {
            set.insert(0, psn);
        }
        assert_eq!(set.take_run(0), 256);
        assert_eq!(set.bits_from(256, 256), 0);
    }
}
