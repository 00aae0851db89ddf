//! Open points of a paper: parameters without a value, and sentences with several readings.

use anabranch_scenario::tree::Place;

/// Parameter without a value in the paper, and the values to try instead of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenParameter {
    /// Dotted key of the scenario.
    pub key: String,
    /// Values to try, as written on a command line.
    pub values: Vec<String>,
    /// Reason why it is open, and for the values.
    pub why: String,
    /// Position in the claim file.
    pub place: Place,
}

/// Reading of a sentence of the paper that is not ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Name, unique within the paper.
    pub id: String,
    /// Section of the sentence.
    pub section: Option<String>,
    /// The sentence, and how it is read.
    pub why: String,
    /// Settings that give the reading, `KEY=VALUE`.
    pub set: Vec<String>,
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

    /// Returns `true` if the studies run the reading already.
    pub(crate) fn is_run(&self) -> bool {
        self.set.is_empty()
    }
}
