//! Exchange of a layer of experts, one per rank: tokens to experts by their popularity, and the results back when an expert
//! has all its tokens.

use crate::{
    jobs::schedule::{Dependency, Schedule},
    kinds::collective::pattern::{Group, Pattern, STEPS, Sizes},
    view::Context,
};
use anabranch_random::{Stream, exp, ln};
use anabranch_units::Time;

pub(super) const PATTERN: Pattern = Pattern {
    name: "expert-all-to-all",
    keys: &["skew"],
    buffer: |_, _, _| None,
    messages: |group| 2 * u128::from(group.ranks) * u128::from(group.ranks - 1),
    schedule,
    sizes,
    ..STEPS
};

fn schedule(group: &Group<'_>) -> Schedule {
    let (ranks, bytes) = (group.ranks, group.part(group.ranks.into()));
    let mut schedule = Schedule::default();
    let mut tokens: Vec<Vec<Dependency>> = vec![vec![]; ranks as usize];
    for rank in 0..ranks {
        for distance in 1..ranks {
            let expert = (rank + distance) % ranks;
            let sent = schedule.send(rank, expert, bytes, 0, &[]);
            tokens[expert as usize].push(Dependency::received(sent));
        }
    }
    let all: Vec<u32> = (0..ranks).map(|rank| schedule.compute(rank, Time::ZERO, 0, &tokens[rank as usize])).collect();
    for rank in 0..ranks {
        for distance in 1..ranks {
            let home = (rank + distance) % ranks;
            schedule.send(rank, home, bytes, 1, &[Dependency::computed(all[rank as usize])]);
        }
    }
    schedule
}

fn sizes(group: &Group<'_>, groups: u32, repetitions: u32) -> Option<Sizes> {
    if group.skew == 0.0 {
        return None;
    }
    let (ranks, others) = (group.ranks, group.ranks - 1);
    let bytes = shares(group.context, (groups, repetitions), ranks, group.skew, group.size);
    let size = move |group: u32, repetition: u32, message: u32| {
        let (sent, rank) = (message < ranks * others, message / others % ranks);
        // A result is as large as its tokens: its sender is the expert.
        let expert = if sent { (rank + message % others + 1) % ranks } else { rank };
        let at = u64::from(group) * u64::from(repetitions) + u64::from(repetition);
        bytes.get((at * u64::from(ranks)) as usize + expert as usize).copied()
    };
    Some(Box::new(size))
}

/// Returns the bytes that each rank sends to each expert, by group, repetition and expert.
///
/// The k-th most popular of n experts gets k^-skew / (1^-skew + ... + n^-skew) of the tokens of every rank, rounded up to
/// a byte. The order of the experts is drawn for each repetition.
fn shares(context: &Context<'_>, (groups, repetitions): (u32, u32), experts: u32, skew: f64, size: u64) -> Vec<u64> {
    let weights: Vec<f64> = (1..=experts).map(|k| exp(-skew * ln(f64::from(k)))).collect();
    let all: f64 = weights.iter().sum();
    let shares: Vec<u64> = weights.iter().map(|weight| ((size as f64 * (weight / all)).ceil() as u64).max(1)).collect();
    let mut bytes = Vec::with_capacity(groups as usize * repetitions as usize * experts as usize);
    for group in 0..groups {
        for repetition in 0..repetitions {
            let mut order: Vec<u32> = (0..experts).collect();
            Stream::keyed(context.seed, context.key(), &format!("workload experts {group} {repetition}"))
                .shuffle(&mut order);
            bytes.extend(order.iter().map(|&place| shares[place as usize]));
        }
    }
    bytes
}
