//! Trees: sums on the way up, then the result down, in chunks that follow each other. Two trees have half the vector each; a
//! rank is an inner node of one of them at most.

use crate::{
    jobs::schedule::{Dependency, Schedule},
    kinds::collective::{
        pattern::{Group, Pattern, STEPS, chunk},
        trees::Tree,
    },
};

pub(super) const ONE: Pattern = Pattern {
    name: "tree",
    keys: &["message_size", "chunks"],
    is_all_reduce: true,
    messages: |group| 2 * u128::from(group.ranks - 1) * u128::from(group.chunks.unwrap_or(1)),
    schedule: |group| on(&[Tree::binary(group.ranks)], group),
    ..STEPS
};
pub(super) const DOUBLE: Pattern = Pattern {
    name: "double-binary-tree",
    messages: |group| 2 * (ONE.messages)(group),
    schedule: |group| on(&Tree::double(group.ranks), group),
    ..ONE
};

fn on(trees: &[Tree], group: &Group<'_>) -> Schedule {
    let chunks = group.chunks.unwrap_or(1);
    let bytes = group.part(trees.len() as u64 * u64::from(chunks));
    let mut schedule = Schedule::default();
    for tree in trees {
        schedule.begin_channel();
        all_reduce(&mut schedule, tree, chunks, bytes);
    }
    schedule
}

/// Appends an all-reduce on a tree: each of `chunks` chunks of `bytes` is summed on the way up, and the result goes down.
fn all_reduce(schedule: &mut Schedule, tree: &Tree, chunks: u32, bytes: u64) {
    let ranks = tree.parent.len();
    let (mut up, mut down) = (vec![vec![]; ranks], vec![vec![]; ranks]);
    for _ in 0..chunks {
        let mut sums: Vec<Vec<Dependency>> = vec![vec![]; ranks];
        for &rank in tree.from_root.iter().rev() {
            let at = rank as usize;
            if let Some(parent) = tree.parent[at] {
                let step = tree.height[at];
                let sum = chunk(schedule, (rank, parent), (bytes, step), &std::mem::take(&mut sums[at]), &mut up[at]);
                sums[parent as usize].push(sum);
            }
        }
        // The root has the result when it has all sums, others when it reaches them.
        for &rank in &tree.from_root {
            let at = rank as usize;
            if let Some(parent) = tree.parent[at] {
                let step = tree.levels() + tree.depth[at] - 1;
                let after = sums[parent as usize].clone();
                sums[at] = vec![chunk(schedule, (parent, rank), (bytes, step), &after, &mut down[at])];
            }
        }
    }
}
