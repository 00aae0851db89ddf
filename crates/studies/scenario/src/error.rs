//! Errors in a scenario or a flag. Quoted text is escaped, so a message contains no terminal control characters.

use crate::Place;
use anabranch_input::escaped;
use miette::{
    Diagnostic, LabeledSpan, MietteError, MietteSpanContents, NamedSource, SourceCode, SourceSpan, SpanContents,
};
use std::{fmt, ops::Range, sync::Arc};

/// Error in the user's input.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct ScenarioError(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    message: String,
    place: Option<Place>,
    help: Option<String>,
    code: Option<Arc<NamedSource<String>>>,
    others: Vec<ScenarioError>,
    /// Further errors that are not kept.
    more: usize,
}

/// Maximum number of errors that are kept of a scenario, the first places.
const MAX_KEPT: usize = 100;

/// Maximum length in bytes of a message.
const MAX_SHOWN: usize = 4000;

/// Maximum length in bytes of a line of the source that is shown whole; of longer ones as much around the place is.
const MAX_LINE: usize = 200;

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

/// Returns the line around a byte, without its end.
fn line_at(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    start..start + text[start..].lines().next().map_or(0, str::len)
}

/// Returns what is shown of the line around a byte.
fn shown_at(text: &str, at: usize) -> Range<usize> {
    let line = line_at(text, at);
    if line.len() <= MAX_LINE {
        return line;
    }
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    let from = (line.start.max(at.saturating_sub(MAX_LINE / 2))..=at).find(is_boundary).unwrap_or(at);
    let to = (at..=line.end.max(at).min(at + MAX_LINE / 2)).rev().find(is_boundary).unwrap_or(at);
    from..to
}

impl ScenarioError {
    pub fn new(message: impl Into<String>) -> Self {
        let message = shortened(&escaped(&message.into()));
        ScenarioError(Box::new(Parts { message, place: None, help: None, code: None, others: Vec::new(), more: 0 }))
    }

    /// Puts the name of the object concerned before the message.
    #[must_use]
    pub fn of(mut self, name: &str) -> Self {
        self.0.message = format!("{}: {}", escaped(name), self.0.message);
        self
    }

    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.0.code = Some(Arc::clone(place.source.shown()));
        self.0.place = Some(place);
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

    /// Returns the line of the place, of a long one the part around it, control characters masked.
    pub fn source_line(&self) -> Option<&str> {
        let (text, at) = (self.0.code.as_ref()?.inner(), start_of(self.0.place.as_ref()?));
        text.get(shown_at(text, at))
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

/// The line of the place and its neighbours, as far as they are short. It is quoted without a pass over the whole text for each
/// error.
impl SourceCode for Parts {
    fn read_span<'a>(
        &'a self,
        _span: &SourceSpan,
        before: usize,
        _after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let (Some(code), Some(place)) = (&self.code, &self.place) else { return Err(MietteError::OutOfBounds) };
        let (text, at) = (code.inner().as_str(), start_of(place));
        let (line, mut shown) = (line_at(text, at), shown_at(text, at));
        let mut first = text[..line.start].matches('\n').count();
        let mut column = text[line.start..shown.start].chars().count();
        if before == 0 {
            column = text[line.start..at].chars().count();
        } else if shown == line {
            let is_short = |line: &Range<usize>| line.len() <= MAX_LINE;
            let previous = line.start.checked_sub(1).map(|end| line_at(text, end)).filter(is_short);
            let next = text[line.end..].find('\n').map(|end| line_at(text, line.end + end + 1)).filter(is_short);
            first -= usize::from(previous.is_some());
            shown = previous.map_or(shown.start, |line| line.start)..next.map_or(shown.end, |line| line.end);
        }
        let span = SourceSpan::from(shown.clone());
        let (name, data) = (code.name().to_string(), &text.as_bytes()[shown]);
        Ok(Box::new(MietteSpanContents::new_named(name, data, span, first, column, 1)))
    }
}

impl Diagnostic for ScenarioError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.code.as_ref().map(|_| &*self.0 as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.0.place.as_ref()?;
        let start = start_of(place);
        let stop = place.span.end.min(shown_at(&place.source.text, start).end);
        let label = LabeledSpan::new(Some("here".into()), start, stop.saturating_sub(start));
        Some(Box::new(std::iter::once(label)))
    }
}
