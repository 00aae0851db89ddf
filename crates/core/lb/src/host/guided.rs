//! Weighted sampling of the paths of a list, some of them blocked temporarily or permanently (Spritz §IV).

use crate::{GuidedPaths, Weights};
use anabranch_random::Stream;
use anabranch_settings::choices;
use anabranch_units::Time;
use std::sync::Arc;

choices! {
    /// Selection of paths where memory is limited.
    pub enum Subset {
        /// The fastest.
        Fastest = "fastest",
        /// The fastest one and random others, different for each pair (as FatPaths samples layers).
        Random = "random",
    }
}

/// Returns the list of a connection, limited to `most` paths (0: all), and the indices kept; empty: all.
pub(crate) fn limited(
    paths: &Arc<GuidedPaths>,
    most: u32,
    subset: Subset,
    stream: &mut Stream,
) -> (Arc<GuidedPaths>, Vec<u32>) {
    if most == 0 || most >= paths.len() {
        return (Arc::clone(paths), Vec::new());
    }
    let mut others: Vec<u32> = (1..paths.len()).collect();
    if subset == Subset::Random {
        stream.shuffle(&mut others);
    }
    let mut kept = others[..most as usize - 1].to_vec();
    kept.push(0);
    kept.sort_unstable();
    (Arc::new(paths.subset(&kept)), kept)
}

/// Returns the dead paths of a limited list, from those of the whole list.
pub(crate) fn dead_of(kept: &[u32], dead: &[bool]) -> Vec<bool> {
    match kept {
        [] => dead.to_vec(),
        kept => kept.iter().map(|&index| dead.get(index as usize).copied().unwrap_or(false)).collect(),
    }
}

/// Blocked paths of a list: those of a flow, or of all flows of an endpoint to one destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    paths: Vec<u32>,
    /// Timer interval in which the blocks were set.
    epoch: u64,
}

impl Blocks {
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }
}

#[derive(Debug)]
pub(crate) struct Sampler {
    /// Cumulative weight after each run of paths of equal weight, with the index after the run.
    runs: Vec<(u32, f64)>,
    /// Weight of path 0, original and current.
    first: (f64, f64),
    interval: Option<Time>,
    dead: Vec<bool>,
    pub(crate) stream: Stream,
}

/// Draws that may select a blocked path before weights are summed path by path.
const TRIES: u32 = 16;

impl Sampler {
    /// Creates a sampler from runs of equal weight: the index after each run and the weight of one path.
    pub(crate) fn new(runs: impl IntoIterator<Item = (u32, f64)>, interval: Option<Time>, stream: Stream) -> Self {
        let (mut sum, mut begin, mut cumulative) = (0.0, 0, Vec::new());
        for (end, weight) in runs {
            sum += weight * f64::from(end - begin);
            cumulative.push((end, sum));
            begin = end;
        }
        if cumulative.is_empty() {
            cumulative.push((1, 1.0));
        }
        let mut sampler = Sampler { runs: cumulative, first: (0.0, 0.0), interval, dead: Vec::new(), stream };
        sampler.first = (sampler.weight_of_run(0), sampler.weight_of_run(0));
        sampler
    }

    pub(crate) fn of(paths: &GuidedPaths, weights: Weights, interval: Option<Time>, stream: Stream) -> Self {
        let longest = paths.steps().last().copied();
        let weight = |step| longest.map_or(1.0, |longest| weights.weight(step, &longest));
        Sampler::new(paths.steps().iter().map(|step| (step.end, weight(step))), interval, stream)
    }

    fn len(&self) -> u32 {
        self.runs.last().map_or(1, |run| run.0)
    }

    fn weight_of_run(&self, run: usize) -> f64 {
        let (begin, before) = run.checked_sub(1).map_or((0, 0.0), |last| self.runs[last]);
        (self.runs[run].1 - before) / f64::from(self.runs[run].0 - begin)
    }

    pub(crate) fn weight(&self, index: u32) -> f64 {
        if index == 0 {
            return self.first.1;
        }
        let run = self.runs.partition_point(|run| run.0 <= index);
        self.weight_of_run(run.min(self.runs.len() - 1))
    }

    pub(crate) fn bias(&mut self, weight: Option<f64>) {
        self.first.1 = weight.unwrap_or(self.first.0);
    }

    pub(crate) fn block(&self, blocks: &mut Blocks, now: Time, index: u32) {
        self.restore(blocks, now);
        if index < self.len() && !blocks.paths.contains(&index) {
            blocks.paths.push(index);
        }
    }

    pub(crate) fn set_dead(&mut self, dead: Vec<bool>) {
        self.dead = dead;
    }

    pub(crate) fn is_blocked(&self, blocks: &Blocks, index: u32) -> bool {
        blocks.paths.contains(&index) || self.dead.get(index as usize).copied().unwrap_or(false)
    }

    fn restore(&self, blocks: &mut Blocks, now: Time) {
        let epoch = self.interval.map_or(0, |interval| now.ps() / interval.ps().max(1));
        if epoch != blocks.epoch {
            blocks.paths.clear();
            blocks.epoch = epoch;
        }
    }

    /// Draws a path by weight. If all are blocked, all are restored (ours: the paper leaves it open).
    #[inline]
    pub(crate) fn draw(&mut self, blocks: &mut Blocks, now: Time) -> u32 {
        self.restore(blocks, now);
        let free = blocks.paths.is_empty() && self.dead.is_empty();
        for _ in 0..TRIES {
            let index = self.sample();
            if free || !self.is_blocked(blocks, index) {
                return index;
            }
        }
        self.draw_exactly(blocks)
    }

    fn sample(&mut self) -> u32 {
        let (as_built, first) = self.first;
        let all = self.runs[self.runs.len() - 1].1;
        let drawn = self.stream.unit() * (all - as_built + first);
        if drawn < first {
            return 0;
        }
        let point = drawn - first + as_built;
        let run = self.runs.partition_point(|run| run.1 <= point).min(self.runs.len() - 1);
        let (begin, before) = run.checked_sub(1).map_or((0, 0.0), |last| self.runs[last]);
        let within = ((point - before) / self.weight_of_run(run)) as u32;
        (begin + within).min(self.runs[run].0 - 1)
    }

    #[cold]
    fn draw_exactly(&mut self, blocks: &mut Blocks) -> u32 {
        let total: f64 = (0..self.len()).filter(|&i| !self.is_blocked(blocks, i)).map(|i| self.weight(i)).sum();
        if total <= 0.0 {
            blocks.paths.clear();
            return self.sample();
        }
        let mut rest = self.stream.unit() * total;
        let mut last = 0;
        for index in (0..self.len()).filter(|&i| !self.is_blocked(blocks, i)) {
            last = index;
            rest -= self.weight(index);
            if rest < 0.0 {
                break;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Weights, host::testing::four_paths};

    fn sampler(weights: Weights, interval: Option<Time>) -> Sampler {
        Sampler::of(&four_paths(), weights, interval, Stream::keyed(1, 2, "test"))
    }

    fn shares(s: &mut Sampler, blocks: &mut Blocks, now: Time) -> [f64; 4] {
        let mut counts = [0u32; 4];
        (0..40_000).for_each(|_| counts[s.draw(blocks, now) as usize] += 1);
        counts.map(|count| f64::from(count) / 40_000.0)
    }

    /// 3.3 standard deviations of a share of one half in 40,000 draws.
    const NEAR: f64 = 0.0083;

    #[test]
    fn weights_follow_equation_1() {
        // 1491/691.4 * 3, 1491/1382.8 * 3 (twice), 1.
        let weights = [3.0 * 1491.0 / 691.4, 3.0 * 1491.0 / 1382.8, 3.0 * 1491.0 / 1382.8, 1.0];
        let sum: f64 = weights.iter().sum();
        let found = shares(&mut sampler(Weights::Latency, None), &mut Blocks::default(), Time::ZERO);
        for (found, weight) in found.iter().zip(weights) {
            assert!((found - weight / sum).abs() < NEAR, "{found} {}", weight / sum);
        }
        assert!(
            shares(&mut sampler(Weights::Uniform, None), &mut Blocks::default(), Time::ZERO)
                .iter()
                .all(|s| (s - 0.25).abs() < NEAR)
        );
    }

    #[test]
    fn blocked_paths_come_back_with_the_timer() {
        let (mut s, mut blocks) = (sampler(Weights::Uniform, Some(Time::from_ms(1))), Blocks::default());
        let at = Time::from_us(2300);
        s.block(&mut blocks, at, 1);
        s.block(&mut blocks, at, 2);
        let found = shares(&mut s, &mut blocks, at);
        assert_eq!((found[1], found[2]), (0.0, 0.0));
        assert!((found[0] - 0.5).abs() < NEAR);
        // The timer fires at 3 ms, independent of the time of the block.
        assert_eq!(shares(&mut s, &mut blocks, Time::from_us(2999))[1], 0.0);
        assert!(shares(&mut s, &mut blocks, Time::from_us(3000))[1] > 0.2);
        // Without a timer they remain blocked; if all are blocked, all are restored.
        let (mut s, mut blocks) = (sampler(Weights::Uniform, None), Blocks::default());
        (1..4).for_each(|i| s.block(&mut blocks, Time::ZERO, i));
        assert_eq!(shares(&mut s, &mut blocks, Time::from_ms(500))[0], 1.0);
        s.block(&mut blocks, Time::ZERO, 0);
        assert!(shares(&mut s, &mut blocks, Time::ZERO).iter().all(|s| (s - 0.25).abs() < NEAR));
    }

    #[test]
    fn a_bias_moves_the_first_path_alone() {
        let (mut s, mut blocks) = (sampler(Weights::Uniform, None), Blocks::default());
        s.bias(Some(97.0));
        assert!((shares(&mut s, &mut blocks, Time::ZERO)[0] - 0.97).abs() < NEAR);
        s.block(&mut blocks, Time::ZERO, 0);
        assert_eq!(shares(&mut s, &mut blocks, Time::ZERO)[0], 0.0);
        let (mut s, mut blocks) = (sampler(Weights::Uniform, None), Blocks::default());
        s.bias(Some(97.0));
        s.bias(None);
        assert!((shares(&mut s, &mut blocks, Time::ZERO)[0] - 0.25).abs() < NEAR);
    }

    #[test]
    fn dead_paths_are_never_drawn() {
        let (mut s, mut blocks) = (sampler(Weights::Latency, None), Blocks::default());
        s.set_dead(vec![true, false, true, true]);
        assert_eq!(shares(&mut s, &mut blocks, Time::ZERO)[1], 1.0);
    }

    #[test]
    fn subsets_keep_the_fastest() {
        let all = four_paths();
        let mut stream = Stream::keyed(1, 2, "subset");
        assert_eq!(limited(&all, 0, Subset::Fastest, &mut stream).0.len(), 4);
        let (two, _) = limited(&all, 2, Subset::Fastest, &mut stream);
        assert_eq!((two.ev(0), two.ev(1), two.len()), (all.ev(0), all.ev(1), 2));
        for _ in 0..20 {
            let (three, kept) = limited(&all, 3, Subset::Random, &mut stream);
            let gone = dead_of(&kept, &[false, true, false, false]);
            assert_eq!(gone.iter().position(|dead| *dead), kept.iter().position(|index| *index == 1));
            assert_eq!((three.ev(0), three.len()), (all.ev(0), 3));
            assert!((1..3).all(|i| three.path(i - 1).unwrap().latency <= three.path(i).unwrap().latency));
        }
    }
}
