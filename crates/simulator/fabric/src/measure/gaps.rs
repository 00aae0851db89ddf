//! Gaps between the packets of a flow, as its NIC sends them (HF2T's gap study).

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    pub(crate) all: u64,
    /// Gaps of at least one, two and three base round-trip times.
    pub(crate) round_trips: [u64; 3],
}

impl Gaps {
    /// Counts a gap; both times in picoseconds.
    #[inline]
    pub(crate) fn note(&mut self, gap: u64, base_rtt: u64) {
        self.all += 1;
        if gap >= base_rtt {
            for (times, count) in self.round_trips.iter_mut().enumerate() {
                *count += u64::from(gap >= (times as u64 + 1) * base_rtt);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_gap_counts_for_every_shorter_length() {
        let mut gaps = Gaps::default();
        for gap in [9, 10, 19, 20, 35] {
            gaps.note(gap, 10);
        }
        assert_eq!((gaps.all, gaps.round_trips), (5, [4, 2, 1]));
    }
}
