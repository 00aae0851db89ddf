//! Runs of PSNs that have arrived beyond the first missing one.

/// Disjoint runs `[start, end)`, ascending. There are few, so a sorted list suffices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks(Vec<(u64, u64)>);

impl Blocks {
    pub(crate) fn insert(&mut self, psn: u64) {
        let runs = &mut self.0;
        // The first run that ends at or after `psn` contains it, is extended by it, or follows it.
        let at = runs.partition_point(|run| run.1 < psn);
        match runs.get_mut(at) {
            Some(run) if run.0 <= psn + 1 => {
                run.0 = run.0.min(psn);
                run.1 = run.1.max(psn + 1);
                if at + 1 < runs.len() && runs[at].1 >= runs[at + 1].0 {
                    runs[at].1 = runs[at + 1].1;
                    runs.remove(at + 1);
                }
            }
            _ => runs.insert(at, (psn, psn + 1)),
        }
    }

    pub(crate) fn contains(&self, psn: u64) -> bool {
        self.run_at(psn).is_some()
    }

    pub(crate) fn run_at(&self, psn: u64) -> Option<u64> {
        let at = self.0.partition_point(|run| run.1 <= psn);
        self.0.get(at).filter(|run| run.0 <= psn).map(|run| run.1)
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.0.first().copied()
    }

    /// Returns the 64 PSNs from `from` on, a bit each.
    pub(crate) fn bits(&self, from: u64) -> u64 {
        (0..64).filter(|bit| self.contains(from + bit)).fold(0, |bits, bit| bits | 1 << bit)
    }

    pub(crate) fn discard_below(&mut self, psn: u64) {
        let gone = self.0.partition_point(|run| run.1 <= psn);
        self.0.drain(..gone);
        if let Some(run) = self.0.first_mut() {
            run.0 = run.0.max(psn);
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_set(steps in prop::collection::vec((0u64..40, any::<bool>()), 1..120)) {
            let (mut blocks, mut model) = (Blocks::default(), BTreeSet::new());
            for (psn, insert) in steps {
                if insert {
                    blocks.insert(psn);
                    model.insert(psn);
                } else {
                    blocks.discard_below(psn / 4);
                    model.retain(|p| *p >= psn / 4);
                }
                for p in 0..45 {
                    prop_assert_eq!(blocks.contains(p), model.contains(&p));
                }
                prop_assert_eq!(blocks.first().map(|run| run.0), model.first().copied());
                prop_assert!(blocks.0.windows(2).all(|w| w[0].1 < w[1].0), "disjoint and ascending: {:?}", blocks);
            }
        }
    }
}
