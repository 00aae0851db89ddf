//! Errors in a scenario or a flag. Quoted text is escaped, so a message contains no terminal control characters.

use crate::tree::Place;
use anabranch_input::escaped;
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::{fmt, sync::Arc};

/// Error in the user's input.
#[derive(Clone, Debug)]
pub struct ScenarioError(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    message: String,
    unknown_key: bool,
    place: Option<Place>,
    help: Option<String>,
    code: Option<Arc<NamedSource<String>>>,
    others: Vec<ScenarioError>,
    /// Further errors that are not kept.
    more: usize,
}

/// Maximum number of errors that are kept of a scenario, the first places.
const MAX_KEPT: usize = 100;

/// Maximum length in bytes of a message, or of a line of its source, that is shown.
const MAX_SHOWN: usize = 4000;

fn shortened(message: &str) -> String {
    let keep = MAX_SHOWN / 2;
    if message.len() <= MAX_SHOWN {
        return message.to_string();
    }
    let start: String = message.chars().take(keep / 2).collect();
    let end: Vec<char> = message.chars().rev().take(keep / 2).collect();
    let left_out = message.len() - start.len() - end.iter().map(|c| c.len_utf8()).sum::<usize>();
    format!("{start} ... ({left_out} bytes left out) ... {}", end.iter().rev().collect::<String>())
}

/// Returns the first byte of a place, at the start of a character.
fn start_of(place: &Place) -> usize {
    let mut start = place.span.start.min(place.source.text.len());
    while !place.source.text.is_char_boundary(start) {
        start -= 1;
    }
    start
}

/// Returns the line around a byte.
fn line_at(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    text[start..].lines().next().unwrap_or_default()
}

impl ScenarioError {
    /// Creates an error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        let message = shortened(&escaped(&message.into()));
        ScenarioError(Box::new(Parts {
            message,
            unknown_key: false,
            place: None,
            help: None,
            code: None,
            others: Vec::new(),
            more: 0,
        }))
    }

    /// Creates an error about a key that does not exist there.
    pub fn of_unknown_key(message: impl Into<String>) -> Self {
        let mut error = Self::new(message);
        error.0.unknown_key = true;
        error
    }

    /// Returns `true` if a key that does not exist there is the reason.
    pub fn is_unknown_key(&self) -> bool {
        self.0.unknown_key
    }

    /// Puts the name of the object concerned before the message.
    #[must_use]
    pub fn of(mut self, name: &str) -> Self {
        self.0.message = format!("{}: {}", escaped(name), self.0.message);
        self
    }

    /// Sets the place of the error.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.0.code = Some(Arc::clone(place.source.shown()));
        // Longer lines are not shown: a marked place in them would be hard to find.
        let is_long = line_at(&place.source.text, start_of(&place)).len() > MAX_SHOWN;
        self.0.place = Some(place);
        if is_long && let Some((line, column)) = self.line_column() {
            self.0.message =
                format!("{}:{line}:{column}: {}", escaped(self.source_name().unwrap_or_default()), self.0.message);
            self.0.code = None;
        }
        self
    }

    /// Sets the place of the error, if there is one.
    #[must_use]
    pub fn maybe_at(self, place: Option<Place>) -> Self {
        match place {
            Some(place) => self.at(place),
            None => self,
        }
    }

    /// Sets the place of the error where it has none.
    #[must_use]
    pub fn or_at(self, place: Option<Place>) -> Self {
        if self.0.place.is_some() { self } else { self.maybe_at(place) }
    }

    /// Sets the remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(escaped(&help.into()).into_owned());
        self
    }

    /// Returns the name of the file or flag at fault.
    pub fn source_name(&self) -> Option<&str> {
        self.0.place.as_ref().map(|p| p.source.name.as_str())
    }

    /// Returns line and column (from 1, in characters) of the place.
    pub fn line_column(&self) -> Option<(usize, usize)> {
        let place = self.0.place.as_ref()?;
        let before = &place.source.text[..start_of(place)];
        let line = 1 + before.matches('\n').count();
        Some((line, 1 + before.rsplit('\n').next().unwrap_or("").chars().count()))
    }

    /// Returns the line of the place, control characters masked.
    pub fn source_line(&self) -> Option<&str> {
        Some(line_at(self.0.code.as_ref()?.inner(), start_of(self.0.place.as_ref()?)))
    }

    /// Returns the further errors that were found with this one, in the order of their places.
    pub fn others(&self) -> &[ScenarioError] {
        &self.0.others
    }

    /// Returns the number of further errors that are not kept: those of the last places.
    pub fn more(&self) -> usize {
        self.0.more
    }

    fn position(&self) -> (u8, (usize, usize)) {
        // Errors without a place are about the whole and come last.
        self.0.place.as_ref().map_or((1, (0, 0)), |place| (0, (place.source.rank, place.span.start)))
    }

    /// Returns the remedy, if any.
    pub fn remedy(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

/// Errors found so far, so that the first [`MAX_KEPT`] of a file are shown at once.
#[derive(Debug, Default)]
pub(crate) struct Mistakes {
    kept: Vec<ScenarioError>,
    /// Number of others.
    more: usize,
}

impl Mistakes {
    pub(crate) fn add(&mut self, mut error: ScenarioError) {
        self.more += std::mem::take(&mut error.0.more);
        let others = std::mem::take(&mut error.0.others);
        self.kept.push(error);
        self.kept.extend(others);
        if self.kept.len() > 2 * MAX_KEPT {
            self.sort();
        }
    }

    /// Keeps the first places, each error once.
    fn sort(&mut self) {
        self.kept.sort_by_key(ScenarioError::position);
        self.kept.dedup_by(|a, b| a.0.message == b.0.message && a.position() == b.position());
        self.more += self.kept.len().saturating_sub(MAX_KEPT);
        self.kept.truncate(MAX_KEPT);
    }

    /// Returns the value; keeps the error.
    pub(crate) fn ok<T>(&mut self, result: Result<T, ScenarioError>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns all errors as one, if there are any, else `value`.
    pub(crate) fn or<T>(mut self, value: T) -> Result<T, ScenarioError> {
        self.sort();
        let mut all = self.kept.into_iter();
        let Some(mut first) = all.next() else { return Ok(value) };
        first.0.others = all.collect();
        first.0.more = self.more;
        Err(first)
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ScenarioError {}

impl Diagnostic for ScenarioError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.code.as_ref().map(|code| code as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.0.place.as_ref()?;
        let end = place.source.text.len();
        let (start, stop) = (place.span.start.min(end), place.span.end.min(end));
        let label = LabeledSpan::new(Some("here".into()), start, stop.saturating_sub(start));
        Some(Box::new(std::iter::once(label)))
    }
}
