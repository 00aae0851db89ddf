//! Pipeline: microbatches forward through all ranks, then back.

use crate::{
    jobs::schedule::Schedule,
    kinds::collective::pattern::{Group, Pattern, STEPS, chunk},
};

const MICROBATCHES: u32 = 8;

pub(super) const PATTERN: Pattern = Pattern {
    name: "pipeline",
    keys: &["message_size", "chunks"],
    buffer: |_, _, _| None,
    messages: |group| 2 * u128::from(group.ranks - 1) * u128::from(group.chunks.unwrap_or(MICROBATCHES)),
    schedule,
    ..STEPS
};

/// The last rank sends the first microbatch back when it has them all.
fn schedule(group: &Group<'_>) -> Schedule {
    let (ranks, microbatches) = (group.ranks, group.chunks.unwrap_or(MICROBATCHES));
    let bytes = group.part(microbatches.into());
    let mut schedule = Schedule::default();
    let stages = ranks as usize;
    let (mut forward, mut back) = (vec![vec![]; stages], vec![vec![]; stages]);
    let mut arrived = None;
    for _ in 0..microbatches {
        arrived = None;
        for stage in 0..ranks - 1 {
            let sent = &mut forward[stage as usize];
            let received = chunk(&mut schedule, (stage, stage + 1), (bytes, stage), arrived.as_slice(), sent);
            arrived = Some(received);
        }
    }
    let last = arrived;
    for _ in 0..microbatches {
        let mut arrived = last;
        for stage in (1..ranks).rev() {
            let (sent, step) = (&mut back[stage as usize], 2 * (ranks - 1) - stage);
            arrived = Some(chunk(&mut schedule, (stage, stage - 1), (bytes, step), arrived.as_slice(), sent));
        }
    }
    schedule
}
