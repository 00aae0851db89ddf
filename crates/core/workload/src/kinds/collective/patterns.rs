//! The patterns. To add one, write a file with its [`Pattern`], and name both in the lists below.

mod all_to_all;
mod experts;
mod halving_doubling;
mod hierarchical;
mod pipeline;
mod recursive_doubling;
mod ring;
mod tree;

use super::pattern::Pattern;
use anabranch_settings::{InvalidValue, Raw, Setting, ValueSchema};

const PATTERNS: &[Pattern] = &[
    ring::ALLREDUCE,
    recursive_doubling::PATTERN,
    halving_doubling::PATTERN,
    ring::ALL_GATHER,
    ring::REDUCE_SCATTER,
    all_to_all::PATTERN,
    tree::ONE,
    tree::DOUBLE,
    hierarchical::PATTERN,
    experts::PATTERN,
    pipeline::PATTERN,
];

/// A pattern of a collective (specification 12.5), as a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm(&'static Pattern);

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Default for Algorithm {
    fn default() -> Self {
        Algorithm(&PATTERNS[0])
    }
}

impl Algorithm {
    /// Returns every pattern, in the order in which they are listed.
    pub fn each() -> impl Iterator<Item = Self> {
        PATTERNS.iter().map(Algorithm)
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::each().find(|one| one.name() == name || one.0.short == Some(name))
    }

    pub fn name(self) -> &'static str {
        self.0.name
    }

    pub(super) fn pattern(self) -> &'static Pattern {
        self.0
    }
}

fn short() -> impl Iterator<Item = &'static str> {
    PATTERNS.iter().filter_map(|pattern| pattern.short)
}

impl Setting for Algorithm {
    fn expected() -> String {
        let names: Vec<String> = Self::each().map(|one| format!("\"{}\"", one.name())).collect();
        let short = |pattern: &Pattern| Some(format!(", or \"{}\" for \"{}\"", pattern.short?, pattern.name));
        format!("one of {}{}", names.join(", "), PATTERNS.iter().filter_map(short).collect::<String>())
    }
    fn schema() -> ValueSchema {
        ValueSchema::Words(Self::each().map(Self::name).chain(short()).collect())
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        let found = if let Raw::Text(name) = raw { Self::named(name) } else { None };
        found.ok_or_else(|| InvalidValue::of::<Self>(raw).near(Self::each().map(Self::name).chain(short())))
    }
    fn write(&self) -> Raw {
        Raw::Text(self.name().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for one in Algorithm::each() {
            assert_eq!(Algorithm::read(&Raw::Text(one.name().into())), Ok(one));
            assert_eq!(one.write(), Raw::Text(one.name().into()));
        }
        assert_eq!(Algorithm::read(&Raw::Text("ring".into())), Ok(Algorithm::default()));
        let error = Algorithm::read(&Raw::Text("ring-allgather".into())).unwrap_err().to_string();
        assert!(error.contains("did you mean `ring-all-gather`") && error.contains("halving-doubling"), "{error}");
        assert!(Algorithm::read(&Raw::Int(1)).is_err());
    }
}
