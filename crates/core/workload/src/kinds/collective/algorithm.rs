use anabranch_settings::{InvalidValue, Raw, Setting, ValueSchema};

/// Schedule of messages of a collective (specification 12.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Reduce-scatter, then all-gather, around a ring: 2(n-1) steps of S/n.
    RingAllreduce,
    /// log2 n steps of S with the partners at distance 1, 2, 4, ...
    RecursiveDoubling,
    /// log2 n steps of S/2, S/4, ... with the partners at distance 1, 2, 4, ..., then the same backwards.
    HalvingDoubling,
    /// n-1 steps of S/n around a ring.
    RingAllGather,
    /// n-1 steps of S/n around a ring.
    RingReduceScatter,
    /// S/n from every rank to every other.
    AllToAll,
    /// Sums up a binary tree, then the result down.
    Tree,
    /// The same on two trees with half the vector each; a rank is an inner node of one of them at most.
    DoubleBinaryTree,
    /// Reduce-scatter in the server, all-reduce across servers per rank of a server, all-gather in the server: rings.
    Hierarchical,
    /// Tokens to experts by their popularity, and back.
    ExpertAllToAll,
    /// Microbatches forward through all ranks, then back.
    Pipeline,
}

const WORDS: [(&str, Algorithm); 11] = [
    ("ring-allreduce", Algorithm::RingAllreduce),
    ("recursive-doubling", Algorithm::RecursiveDoubling),
    ("halving-doubling", Algorithm::HalvingDoubling),
    ("ring-all-gather", Algorithm::RingAllGather),
    ("ring-reduce-scatter", Algorithm::RingReduceScatter),
    ("all-to-all", Algorithm::AllToAll),
    ("tree", Algorithm::Tree),
    ("double-binary-tree", Algorithm::DoubleBinaryTree),
    ("hierarchical", Algorithm::Hierarchical),
    ("expert-all-to-all", Algorithm::ExpertAllToAll),
    ("pipeline", Algorithm::Pipeline),
];

impl Setting for Algorithm {
    fn expected() -> String {
        let words = WORDS.map(|(word, _)| format!("\"{word}\"")).join(", ");
        format!("one of {words}, or \"ring\" for \"ring-allreduce\"")
    }
    fn schema() -> ValueSchema {
        ValueSchema::Words(WORDS.iter().map(|(word, _)| *word).chain(["ring"]).collect())
    }
    /// `ring` is short for `ring-allreduce`.
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        let Raw::Text(found) = raw else { return Err(InvalidValue::of::<Self>(raw)) };
        if found == "ring" {
            return Ok(Algorithm::RingAllreduce);
        }
        let known = WORDS.iter().find(|(word, _)| word == found).map(|(_, algorithm)| *algorithm);
        known.ok_or_else(|| InvalidValue::of::<Self>(raw).near(WORDS.iter().map(|(word, _)| *word).chain(["ring"])))
    }
    fn write(&self) -> Raw {
        Raw::Text(self.word().into())
    }
}

impl Algorithm {
    pub(super) fn word(self) -> &'static str {
        WORDS.iter().find(|(_, algorithm)| *algorithm == self).map_or("", |(word, _)| word)
    }

    pub(super) fn needs_a_power_of_two(self) -> bool {
        matches!(self, Algorithm::RecursiveDoubling | Algorithm::HalvingDoubling)
    }

    /// Returns `true` if its messages are steps of every rank, which may be repeated and shared among channels.
    pub(super) fn has_steps(self) -> bool {
        use Algorithm::{HalvingDoubling, RecursiveDoubling, RingAllGather, RingAllreduce, RingReduceScatter};
        matches!(self, RingAllreduce | RecursiveDoubling | HalvingDoubling | RingAllGather | RingReduceScatter)
    }

    /// Returns `true` if its messages are cut into chunks that follow each other.
    pub(super) fn has_chunks(self) -> bool {
        matches!(self, Algorithm::Tree | Algorithm::DoubleBinaryTree | Algorithm::Pipeline)
    }

    pub(super) fn steps(self, ranks: u32) -> u32 {
        match self {
            Algorithm::RingAllreduce => (ranks - 1).saturating_mul(2),
            Algorithm::RecursiveDoubling => ranks.ilog2(),
            Algorithm::HalvingDoubling => 2 * ranks.ilog2(),
            Algorithm::RingAllGather | Algorithm::RingReduceScatter => ranks - 1,
            _ => 1,
        }
    }

    /// Returns log2 of the partners' distance in a step of halving-doubling; steps beyond the schedule repeat it.
    fn exponent(self, ranks: u32, step: u32) -> u32 {
        let step = step % self.steps(ranks);
        step.min(self.steps(ranks) - 1 - step)
    }

    pub(super) fn receiver(self, ranks: u32, step: u32, rank: u32) -> u32 {
        match self {
            Algorithm::RecursiveDoubling => rank ^ 1 << (step % self.steps(ranks)),
            Algorithm::HalvingDoubling => rank ^ 1 << self.exponent(ranks, step),
            _ => (rank + 1) % ranks,
        }
    }

    /// Returns the bytes over each rank's link per byte of the buffer: NCCL's factor from algorithm to bus bandwidth
    /// (nccl-tests, PERFORMANCE.md).
    pub(super) fn bus_factor(self, ranks: u32) -> f64 {
        let others = f64::from(ranks - 1) / f64::from(ranks);
        match self {
            Algorithm::RingAllreduce
            | Algorithm::RecursiveDoubling
            | Algorithm::HalvingDoubling
            | Algorithm::Tree
            | Algorithm::DoubleBinaryTree
            | Algorithm::Hierarchical => 2.0 * others,
            _ => others,
        }
    }

    /// Returns the buffer of a rank whose messages all have `message` bytes; `None` where messages of one size are not
    /// those of a buffer.
    pub(super) fn buffer(self, ranks: u32, message: u64) -> Option<u64> {
        match self {
            Algorithm::RecursiveDoubling => Some(message),
            Algorithm::RingAllreduce
            | Algorithm::RingAllGather
            | Algorithm::RingReduceScatter
            | Algorithm::AllToAll => message.checked_mul(u64::from(ranks)),
            _ => None,
        }
    }

    /// Returns the bytes of a message for a vector of `size` bytes per rank, rounded up so that none is empty.
    pub(super) fn message(self, ranks: u32, step: u32, size: u64) -> u64 {
        match self {
            Algorithm::RecursiveDoubling => size,
            Algorithm::HalvingDoubling => size.div_ceil(2 << self.exponent(ranks, step)),
            _ => size.div_ceil(u64::from(ranks)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        for (word, algorithm) in WORDS {
            assert_eq!(Algorithm::read(&Raw::Text(word.into())), Ok(algorithm));
            assert_eq!(algorithm.write(), Raw::Text(word.into()));
        }
        assert_eq!(Algorithm::read(&Raw::Text("ring".into())), Ok(Algorithm::RingAllreduce));
        let error = Algorithm::read(&Raw::Text("ring-allgather".into())).unwrap_err().to_string();
        assert!(error.contains("did you mean `ring-all-gather`") && error.contains("halving-doubling"), "{error}");
        assert!(Algorithm::read(&Raw::Int(1)).is_err());
    }

    #[test]
    fn steps_are_those_of_the_specification() {
        // 128 ranks: 2(n-1), log2 n, 2 log2 n, n-1, n-1.
        let of = [
            Algorithm::RingAllreduce,
            Algorithm::RecursiveDoubling,
            Algorithm::HalvingDoubling,
            Algorithm::RingAllGather,
            Algorithm::RingReduceScatter,
        ];
        assert_eq!(of.map(|algorithm| algorithm.steps(128)), [254, 7, 14, 127, 127]);
        assert_eq!(of.map(|algorithm| algorithm.steps(2)), [2, 1, 2, 1, 1]);
    }

    #[test]
    fn partners_and_sizes_of_the_doublings() {
        let schedule = |algorithm: Algorithm, steps: u32| {
            (0..steps).map(|step| (algorithm.receiver(8, step, 0), algorithm.message(8, step, 800))).collect::<Vec<_>>()
        };
        // The fourth step repeats the schedule.
        assert_eq!(schedule(Algorithm::RecursiveDoubling, 4), [(1, 800), (2, 800), (4, 800), (1, 800)]);
        let there = [(1, 400), (2, 200), (4, 100)];
        let back = [(4, 100), (2, 200), (1, 400)];
        assert_eq!(schedule(Algorithm::HalvingDoubling, 9), [there, back, there].concat());
        // In a ring rank 0 sends to rank 1 and the last to rank 0, an eighth each time.
        assert_eq!(schedule(Algorithm::RingAllreduce, 2), [(1, 100), (1, 100)]);
        assert_eq!(Algorithm::RingAllreduce.receiver(8, 3, 7), 0);
        // 801 / 8 = 100.1 and 3 / 8 are rounded up.
        assert_eq!([801, 3].map(|size| Algorithm::RingAllGather.message(8, 0, size)), [101, 1]);
        assert_eq!(Algorithm::HalvingDoubling.message(8, 2, 3), 1);
    }
}
