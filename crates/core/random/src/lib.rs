//! Random streams keyed by (seed, entity, purpose), and frozen samplers.
//!
//! A stream belongs to one entity (a switch, a host, a flow) and one purpose (RED marking, path choice): another entity
//! or scheme does not shift its draws. The samplers are our own: a seed has the same meaning on every machine.

#![warn(missing_docs)]

mod exp;
mod ln;
pub use exp::exp;
pub use ln::ln;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Mixes 64 bits so that every output bit depends on every input bit (the finaliser of SplitMix64).
#[inline]
pub const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Returns a 64-bit key of a name, by FNV-1a and [`mix`]. Frozen: recorded fingerprints depend on it.
pub const fn name_key(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let (mut hash, mut i) = (0xCBF2_9CE4_8422_2325u64, 0);
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01B3);
        i += 1;
    }
    mix(hash)
}

/// Returns the key of (seed, entity, purpose).
pub const fn key(seed: u64, entity: u64, purpose: &str) -> u64 {
    mix(mix(seed.wrapping_add(0x9E37_79B9_7F4A_7C15)) ^ mix(entity).rotate_left(17) ^ name_key(purpose))
}

/// A stream of random numbers (xoshiro256++).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Creates the stream of (seed, entity, purpose).
    pub fn keyed(seed: u64, entity: u64, purpose: &str) -> Self {
        Stream(Xoshiro256PlusPlus::seed_from_u64(key(seed, entity, purpose)))
    }

    /// Returns 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniform number in `0..n`, without bias (multiply and reject). `n` must not be zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0, "a draw from an empty range");
        let mut product = u128::from(self.bits()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// Returns a uniform number in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns `true` with probability `numerator / denominator` (at most 1), exactly.
    #[inline]
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// Returns an exponential number of mean `mean`, in the same unit, by inversion with our own logarithm.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * ln(1.0 - self.unit())
    }

    /// Shuffles by Fisher-Yates: for j from the last index down to 1, swaps j with a uniform one of 0..=j.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for j in (1..items.len()).rev() {
            let other = self.below(j as u64 + 1) as usize;
            items.swap(j, other);
        }
    }

    /// Returns one of `items`, uniformly; `None` if there is none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        (!items.is_empty()).then(|| &items[self.below(items.len() as u64) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_each_part_of_the_key() {
        let first = |seed, entity, purpose| Stream::keyed(seed, entity, purpose).bits();
        let base = first(1, 2, "red");
        assert_eq!(base, first(1, 2, "red"));
        for other in [first(2, 2, "red"), first(1, 3, "red"), first(1, 2, "path"), first(2, 1, "red")] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn below_is_uniform() {
        // Chi-square over 7 cells, 6 degrees of freedom: 22.46 is exceeded with probability 0.001.
        let mut stream = Stream::keyed(7, 0, "test");
        let mut cells = [0u64; 7];
        for _ in 0..70_000 {
            cells[stream.below(7) as usize] += 1;
        }
        let chi: f64 = cells.iter().map(|&c| (c as f64 - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 22.46, "{cells:?}");
    }

    #[test]
    fn exponential_has_its_mean() {
        // Mean of 1e5 draws has standard error 1/316; five of them is 1.6 %.
        let mut stream = Stream::keyed(7, 0, "gaps");
        let mean = (0..100_000).map(|_| stream.exponential(1.0)).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.016, "{mean}");
    }

    #[test]
    fn shuffle_reaches_every_order() {
        let mut stream = Stream::keyed(1, 1, "shuffle");
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let mut items = [0, 1, 2, 3];
            stream.shuffle(&mut items);
            seen.insert(items);
        }
        assert_eq!(seen.len(), 24);
    }
}
