//! Hierarchical all-reduce: reduce-scatter in the server, all-reduce across servers per rank of a server, all-gather in the
//! server: rings.

use crate::kinds::collective::pattern::{Group, Pattern, STEPS};

pub(super) const PATTERN: Pattern = Pattern {
    name: "hierarchical",
    keys: &["message_size", "trigger", "server_ranks"],
    is_all_reduce: true,
    messages: |group| u128::from(group.ranks) * u128::from(steps(group)),
    schedule: |group| {
        let (ranks, local) = (group.ranks, group.local);
        group.schedule(steps(group), |step, rank| {
            let (first, place, servers) = (rank / local * local, rank % local, ranks / local);
            match step {
                step if step < local - 1 || step >= local - 1 + 2 * (servers - 1) => {
                    (first + (place + 1) % local, group.size.div_ceil(u64::from(local)))
                }
                _ => ((rank + local) % ranks, group.size.div_ceil(u64::from(ranks))),
            }
        })
    },
    ..STEPS
};

fn steps(group: &Group<'_>) -> u32 {
    2 * (group.local - 1) + 2 * (group.ranks / group.local - 1)
}
