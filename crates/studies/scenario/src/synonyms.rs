//! Words of the field that are no names here, and the names that they lead to: `synonyms.txt`.

use std::sync::LazyLock;

/// A word that people search for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// The word and its other forms, in lower case with `-`.
    pub words: Vec<&'static str>,
    /// What it is here.
    pub meaning: &'static str,
    /// Names that `explain` finds.
    pub see: Vec<&'static str>,
}

/// All synonyms, a line each.
pub static SYNONYMS: LazyLock<Vec<Synonym>> = LazyLock::new(|| {
    let lines = include_str!("synonyms.txt").lines().filter(|line| !line.starts_with('#'));
    let parts = lines.filter_map(|line| <[&str; 3]>::try_from(line.split(" | ").collect::<Vec<_>>()).ok());
    let list = |names: &'static str| names.split(", ").collect();
    parts.map(|[words, meaning, see]| Synonym { words: list(words), meaning, see: list(see) }).collect()
});

/// Returns the synonym of a word in lower case with `-`.
pub fn synonym(word: &str) -> Option<&'static Synonym> {
    SYNONYMS.iter().find(|synonym| synonym.words.contains(&word))
}
