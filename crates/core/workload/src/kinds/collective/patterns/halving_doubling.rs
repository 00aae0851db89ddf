//! Halving-doubling: log2 n steps of S/2, S/4, ... with the partners at distance 1, 2, 4, ..., then the same backwards.

use crate::kinds::collective::pattern::{Pattern, STEPS};

pub(super) const PATTERN: Pattern = Pattern {
    name: "halving-doubling",
    needs_a_power_of_two: true,
    is_all_reduce: true,
    steps: |ranks| 2 * ranks.ilog2(),
    schedule: |group| {
        let pass = 2 * group.ranks.ilog2();
        group.schedule(group.steps, |step, rank| {
            // log2 of the partners' distance; steps beyond the pass repeat it.
            let exponent = (step % pass).min(pass - 1 - step % pass);
            (rank ^ 1 << exponent, group.size.div_ceil(2 << exponent))
        })
    },
    ..STEPS
};
