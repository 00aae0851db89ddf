//! Unpredictable numbers: connection numbers, nonces and the keys of cookies.

use std::fmt;

/// Source of all unpredictable numbers of an endpoint: the system's generator, or chosen by a test.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl Secret {
    /// Returns a predictable secret for tests and simulations: the same seed gives the same numbers.
    pub fn of_seed(seed: u64) -> Self {
        Secret(blake3::derive_key("anabranch endpoint of a seed", &seed.to_be_bytes()))
    }

    /// Neither the secret nor the keys of other purposes can be computed from the result.
    pub(crate) fn key(&self, purpose: &str) -> [u8; 32] {
        blake3::derive_key(purpose, &self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Generator whose output cannot be predicted without its secret (BLAKE3 as an extendable-output function).
#[derive(Clone)]
pub struct Entropy(blake3::OutputReader);

impl Entropy {
    /// Creates the generator of a secret for one purpose.
    pub fn new(secret: &Secret, purpose: &str) -> Self {
        Entropy(blake3::Hasher::new_keyed(&secret.key(purpose)).finalize_xof())
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_secret_and_purpose_has_its_own_numbers() {
        let draws = |seed, purpose| {
            let mut entropy = Entropy::new(&Secret::of_seed(seed), purpose);
            [entropy.bits(), entropy.bits(), entropy.bits()]
        };
        let all = [draws(1, "a"), draws(2, "a"), draws(1, "b")].concat();
        let mut distinct = all.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!((distinct.len(), draws(1, "a").as_slice()), (9, &all[..3]));
        assert_eq!(format!("{:?}", Secret::of_seed(1)), "Secret");
    }
}
