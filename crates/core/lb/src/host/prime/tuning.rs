//! `p_ecn = "auto"`: the penalty of a mark that tunes itself to what the path showed. Ours; no paper has it.
//!
//! Round robin over U paths sends one packet per U packets on each. A path that can carry the share r of that has to
//! wait p packets more per packet, such that 1 / (U + p) = r / U: p = U (1 / r - 1). Below one pass, p < U, the path is
//! only delayed within its pass and keeps its share.
//!
//! What r is, the path shows: over s packets that the flow sent since the last change, n took this path, so that it
//! came up every s / n packets. If it is marked again, that was too often, or just what it carries. The next penalty is
//! p = s / n: a pass more than the s / n - U that gave that spacing. While a path is marked at every return, its
//! spacing is p and what is left of its pass, and the penalty grows by up to a pass per change. If it is marked at every k-th return alone, s / n is
//! U + p / k. The fixed point is p = U / r with k = 1 / (1 - r): the share is r on average.
//!
//! Marks that come sooner than feedback can (`p_ecn_settle`) are of packets sent before the change; they penalise
//! alike, and change nothing.

/// What a path showed since its penalty changed.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Clock of the last change.
    since: u32,
    /// Packets sent on the path since then.
    sent: u32,
    /// Penalty of a mark; 0 before the first.
    penalty: u32,
}

/// Penalties of marks, one per path.
#[derive(Clone, Debug)]
pub(super) struct Tuner {
    seen: Box<[Seen]>,
    settle: u32,
}

impl Tuner {
    /// Creates the state of `paths` paths. `settle` is the least time between two changes, on the clock of the history.
    pub(super) fn new(paths: usize, settle: u32) -> Self {
        Tuner { seen: vec![Seen::default(); paths].into(), settle }
    }

    #[inline]
    pub(super) fn note_sent(&mut self, path: usize) {
        self.seen[path].sent = self.seen[path].sent.saturating_add(1);
    }

    /// Returns the penalty of a mark of `path` at `clock`: at least `pass`, at most `limit`.
    pub(super) fn penalty(&mut self, path: usize, clock: u32, pass: u32, limit: u32) -> u32 {
        let seen = &mut self.seen[path];
        let elapsed = clock.wrapping_sub(seen.since);
        if seen.penalty == 0 || elapsed >= self.settle {
            let spacing = if seen.sent == 0 { pass } else { elapsed.div_ceil(seen.sent) };
            *seen = Seen { since: clock, sent: 0, penalty: spacing.max(pass).min(limit) };
        }
        seen.penalty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_trace() {
        // 8 paths, changes at least 10 packets apart, at most 40. First mark after 24 packets, 3 of them on path 2: the
        // spacing is a pass, so is the penalty.
        let mut t = Tuner::new(8, 10);
        (0..3).for_each(|_| t.note_sent(2));
        assert_eq!(t.penalty(2, 24, 8, 40), 8);
        // Marked at its return, 16 packets later (8 of penalty, 8 of a pass): 16, then 24, 32, 40, and no more.
        let mut clock = 24;
        for expected in [16, 24, 32, 40, 40] {
            clock += 8 + t.penalty(2, clock, 8, 40);
            t.note_sent(2);
            assert_eq!(t.penalty(2, clock, 8, 40), expected);
        }
        // It returns after 40 + 8 and is marked at the fifth packet only: (48 + 4 * 8) / 5 = 16.
        (0..5).for_each(|_| t.note_sent(2));
        assert_eq!(t.penalty(2, clock + 80, 8, 40), 16);
        // A mark 9 packets later is of a packet from before.
        assert_eq!(t.penalty(2, clock + 89, 8, 40), 16);
        // Without a packet of its own, the mark is of another flow's share: a pass.
        assert_eq!(t.penalty(5, 1000, 8, 40), 8);
    }

    #[test]
    fn the_share_of_a_path_is_what_it_carries() {
        // A path with the share r of a healthy one, as a fluid queue: it drains r / U packets per packet sent and marks a
        // packet that finds one waiting; feedback at once. The long-run share of its packets is r / U.
        for (paths, r) in [(8u32, 0.25), (32, 0.25), (8, 0.5), (32, 0.5), (8, 0.875)] {
            let mut t = Tuner::new(1, 0);
            let (mut clock, mut queue, mut sent, mut last) = (0u32, 0.0f64, 0u32, 0u32);
            while clock < 2_000_000 {
                t.note_sent(0);
                sent += 1;
                queue = (queue - r * f64::from(clock - last) / f64::from(paths)).max(0.0);
                last = clock;
                let marked = queue >= 1.0;
                queue += 1.0;
                clock += paths + if marked { t.penalty(0, clock, paths, u32::MAX) } else { 0 };
            }
            let share = f64::from(sent) * f64::from(paths) / f64::from(clock);
            assert!((share - r).abs() < 0.05 * r, "{share} of {r} on {paths} paths; queue {queue}");
        }
    }
}
