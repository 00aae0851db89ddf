//! Sentences of a paper with several readings.

use anabranch_scenario::Place;

/// Reading of a sentence of the paper that is not ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Name, unique within the paper.
    pub id: String,
    pub section: Option<String>,
    /// The sentence, and how it is read.
    pub why: String,
    /// Entries of the studies that have the reading, by the entry that they replace.
    pub entries: Vec<(String, String)>,
    /// Claims that it concerns, besides those that name it.
    pub claims: Vec<String>,
    /// Position in the claim file.
    pub place: Place,
}

impl Reading {
    /// Returns the entry that replaces `entry` under the reading.
    pub(crate) fn entry<'e>(&'e self, entry: &'e str) -> &'e str {
        self.entries.iter().find(|(own, _)| own == entry).map_or(entry, |(_, other)| other)
    }
}
