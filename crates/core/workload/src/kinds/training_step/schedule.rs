//! One training step as a dependency graph.

use crate::jobs::schedule::{Dependency, Schedule};
use anabranch_units::Time;

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Data, tensor and pipeline parallelism.
    pub(super) degrees: [u32; 3],
    pub(super) layers: u32,
    /// Layers that compute together.
    pub(super) fused: u32,
    pub(super) microbatches: u32,
    pub(super) activations: u64,
    pub(super) gradients: u64,
    /// Forward and backward computation of a layer.
    pub(super) times: [Time; 2],
    pub(super) buckets: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Forward(u32),
    Backward(u32),
}

/// Returns the passes of a stage, one forward and one backward in turn (1F1B, Narayanan et al. 2021, section 2.2): the
/// stages behind it first need a microbatch each.
fn passes(stage: u32, stages: u32, microbatches: u32) -> Vec<Pass> {
    let ahead = (stages - 1 - stage).min(microbatches);
    let mut passes: Vec<Pass> = (0..ahead).map(Pass::Forward).collect();
    for number in 0..microbatches {
        if ahead + number < microbatches {
            passes.push(Pass::Forward(ahead + number));
        }
        passes.push(Pass::Backward(number));
    }
    passes
}

/// Appends a ring all-reduce of `bytes` among `members`, each of which has its part of the sum after `ready`. Returns the
/// event after which each has the result.
fn ring(schedule: &mut Schedule, members: &[u32], bytes: u64, step: u32, ready: &[Vec<Dependency>]) -> Vec<Dependency> {
    let ranks = members.len();
    let part = bytes.div_ceil(ranks as u64).max(1);
    let mut incoming: Vec<Vec<Dependency>> = vec![vec![]; ranks];
    for number in 0..2 * (ranks - 1) {
        let mut next = vec![vec![]; ranks];
        for (at, &rank) in members.iter().enumerate() {
            let mut after = std::mem::take(&mut incoming[at]);
            // In the first half a rank adds its own part to what it receives.
            if number < ranks - 1 {
                after.extend(&ready[at]);
            }
            let to = (at + 1) % ranks;
            let sent = schedule.send(rank, members[to], part, step, &after);
            next[to] = vec![Dependency::received(sent)];
        }
        incoming = next;
    }
    incoming.into_iter().flatten().collect()
}

struct Builder {
    of: Step,
    schedule: Schedule,
    /// Per rank, the event after which it may compute again.
    free: Vec<Option<Dependency>>,
    /// Per stage, microbatch and rank of a stage: arrival of activations from the stage before, and of their gradients
    /// from the stage behind.
    arrived: [Vec<Option<Dependency>>; 2],
    /// Per stage, parts of the layers whose last backward computation is done; and the end of each rank's last bucket.
    reduced: Vec<Option<Dependency>>,
    step: u32,
}

impl Step {
    fn parts(&self) -> u32 {
        self.layers / self.fused
    }

    pub(super) fn messages(&self) -> u128 {
        let [dp, tp, pp] = self.degrees.map(u128::from);
        let (microbatches, parts) = (u128::from(self.microbatches), u128::from(self.parts()));
        let ring = |ranks: u128| 2 * ranks * (ranks - 1);
        let tensor = dp * pp * microbatches * parts * 4 * ring(tp);
        let pipeline = 2 * microbatches * (pp - 1) * dp * tp;
        tensor + pipeline + pp * tp * u128::from(self.buckets) * ring(dp)
    }

    pub(super) fn schedule(self) -> Schedule {
        let [replicas, tensor, stages] = self.degrees;
        let ranks = (replicas * tensor * stages) as usize;
        let arrivals = ranks * self.microbatches as usize;
        let mut builder = Builder {
            of: self,
            schedule: Schedule::default(),
            free: vec![None; ranks],
            arrived: [vec![None; arrivals], vec![None; arrivals]],
            reduced: vec![None; ranks],
            step: 0,
        };
        let passes: Vec<Vec<Pass>> = (0..stages).map(|stage| passes(stage, stages, self.microbatches)).collect();
        let mut next = vec![0; stages as usize];
        // A pass follows those that it waits for; some stage can always go on.
        while (0..stages).any(|stage| next[stage as usize] < passes[stage as usize].len()) {
            for stage in 0..stages {
                let at = &mut next[stage as usize];
                while let Some(pass) = passes[stage as usize].get(*at).filter(|pass| builder.is_ready(stage, **pass)) {
                    builder.pass(stage, *pass);
                    *at += 1;
                }
            }
            builder.step += 1;
        }
        builder.schedule
    }
}

impl Builder {
    fn rank(&self, stage: u32, replica: u32, part: u32) -> u32 {
        (stage * self.of.degrees[0] + replica) * self.of.degrees[1] + part
    }

    fn arrival(&self, rank: u32, microbatch: u32) -> usize {
        (rank * self.of.microbatches + microbatch) as usize
    }

    fn is_ready(&self, stage: u32, pass: Pass) -> bool {
        let first = self.rank(stage, 0, 0);
        match pass {
            Pass::Forward(number) => stage == 0 || self.arrived[0][self.arrival(first, number)].is_some(),
            Pass::Backward(number) => {
                stage + 1 == self.of.degrees[2] || self.arrived[1][self.arrival(first, number)].is_some()
            }
        }
    }

    fn pass(&mut self, stage: u32, pass: Pass) {
        let [dp, tp, stages] = self.of.degrees;
        let (way, number) = match pass {
            Pass::Forward(number) => (0, number),
            Pass::Backward(number) => (1, number),
        };
        let ranks: Vec<u32> = (0..dp * tp).map(|of_stage| stage * dp * tp + of_stage).collect();
        let mut after: Vec<Vec<Dependency>> = Vec::with_capacity(ranks.len());
        for &rank in &ranks {
            let arrived = self.arrived[way][self.arrival(rank, number)];
            after.push(self.free[rank as usize].into_iter().chain(arrived).collect());
        }
        let is_last = pass == Pass::Backward(self.of.microbatches - 1);
        for part in 0..self.of.parts() {
            // Attention and MLP each compute, and reduce their result among the tensor-parallel ranks.
            for half in 0..2 {
                self.compute(&ranks, self.of.times[way], half, &mut after);
                if tp > 1 {
                    self.reduce_activations(&ranks, &mut after);
                }
            }
            let of_bucket = self.of.parts() / self.of.buckets;
            if is_last && dp > 1 && (part + 1).is_multiple_of(of_bucket) {
                self.reduce_gradients(stage, &after);
            }
        }
        for (&rank, after) in ranks.iter().zip(&after) {
            self.free[rank as usize] = after.first().copied();
        }
        let to = match pass {
            Pass::Forward(_) if stage + 1 < stages => Some(stage + 1),
            Pass::Backward(_) => stage.checked_sub(1),
            Pass::Forward(_) => None,
        };
        if let Some(to) = to {
            for (at, &rank) in ranks.iter().enumerate() {
                let peer = to * dp * tp + at as u32;
                let sent = self.schedule.send(rank, peer, self.of.activations, self.step, &after[at]);
                let arrival = self.arrival(peer, number);
                self.arrived[way][arrival] = Some(Dependency::received(sent));
            }
        }
    }

    /// Half of the computation of the fused layers; the second half has the odd picosecond.
    fn compute(&mut self, ranks: &[u32], layer: Time, half: u64, after: &mut [Vec<Dependency>]) {
        let all = layer.saturating_mul(u64::from(self.of.fused)).ps();
        let time = Time::from_ps((all + half) / 2);
        for (&rank, after) in ranks.iter().zip(after) {
            let computed = self.schedule.compute(rank, time, self.step, after);
            *after = vec![Dependency::computed(computed)];
        }
    }

    fn reduce_activations(&mut self, ranks: &[u32], after: &mut [Vec<Dependency>]) {
        let tp = self.of.degrees[1] as usize;
        let bytes = self.of.activations.saturating_mul(u64::from(self.of.fused));
        for (members, after) in ranks.chunks(tp).zip(after.chunks_mut(tp)) {
            let done = ring(&mut self.schedule, members, bytes, self.step, after);
            after.iter_mut().zip(done).for_each(|(after, done)| *after = vec![done]);
        }
    }

    /// Reduces a bucket of the gradients of each rank of a stage among the replicas, after the bucket before.
    fn reduce_gradients(&mut self, stage: u32, after: &[Vec<Dependency>]) {
        let [dp, tp, _] = self.of.degrees;
        let of_rank = (u128::from(self.of.gradients) * u128::from(self.of.layers)).div_ceil(u128::from(tp));
        let bytes = u64::try_from(of_rank.div_ceil(u128::from(self.of.buckets))).unwrap_or(u64::MAX);
        for part in 0..tp {
            let members: Vec<u32> = (0..dp).map(|replica| self.rank(stage, replica, part)).collect();
            let ready: Vec<Vec<Dependency>> = (0..dp)
                .map(|replica| {
                    let own = &after[(replica * tp + part) as usize];
                    own.iter().copied().chain(self.reduced[members[replica as usize] as usize]).collect()
                })
                .collect();
            let done = ring(&mut self.schedule, &members, bytes, self.step, &ready);
            for (member, done) in members.into_iter().zip(done) {
                self.reduced[member as usize] = Some(done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pass::*, *};

    #[test]
    fn stages_have_as_many_microbatches_ahead_as_stages_behind() {
        assert_eq!(
            passes(0, 3, 4),
            [Forward(0), Forward(1), Forward(2), Backward(0), Forward(3), Backward(1), Backward(2), Backward(3)]
        );
        assert_eq!(
            passes(2, 3, 4),
            [Forward(0), Backward(0), Forward(1), Backward(1), Forward(2), Backward(2), Forward(3), Backward(3)]
        );
        assert_eq!(passes(0, 4, 2), [Forward(0), Forward(1), Backward(0), Backward(1)]);
    }
}
