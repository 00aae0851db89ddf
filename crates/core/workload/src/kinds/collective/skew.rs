//! Bytes for experts of different popularity.

use crate::view::Context;
use anabranch_random::{Stream, exp, ln};

/// Returns the bytes that each rank sends to each expert, by group, repetition and expert.
///
/// The k-th most popular of n experts gets k^-skew / (1^-skew + ... + n^-skew) of the tokens of every rank, rounded up to
/// a byte. The order of the experts is drawn for each repetition.
pub(super) fn bytes(
    context: &Context<'_>,
    (groups, repetitions): (u32, u32),
    experts: u32,
    skew: f64,
    size: u64,
) -> Vec<u64> {
    let weights: Vec<f64> = (1..=experts).map(|k| exp(-skew * ln(f64::from(k)))).collect();
    let all: f64 = weights.iter().sum();
    let shares: Vec<u64> = match skew == 0.0 {
        true => vec![size.div_ceil(u64::from(experts)); experts as usize],
        false => weights.iter().map(|weight| ((size as f64 * (weight / all)).ceil() as u64).max(1)).collect(),
    };
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
