//! One table of a scenario while it is read: every key is taken once, and a remaining key is an error.

use crate::{Mistakes, Node, Place, ScenarioError, tree::Value};
use anabranch_settings::{Parameter, Parameters, Raw, Registry, SetError, Setting, nearest};

/// A table being read.
#[derive(Debug)]
pub struct Section<'t> {
    /// Its name in messages, for example `[topology]`.
    title: String,
    place: Option<Place>,
    left: Vec<&'t (String, Node)>,
}

impl<'t> Section<'t> {
    /// Opens the table `node`.
    pub fn of(node: &'t Node, title: impl Into<String>) -> Result<Self, ScenarioError> {
        let title = title.into();
        let Value::Table(entries) = &node.value else {
            return Err(ScenarioError::new(format!("{title}: found {}, expected a table of keys", node.describe()))
                .at(node.place.clone()));
        };
        Ok(Section { title, place: Some(node.key.clone()), left: entries.iter().collect() })
    }

    /// Creates the section of a missing table.
    pub(crate) fn absent(title: impl Into<String>) -> Self {
        Section { title: title.into(), place: None, left: Vec::new() }
    }

    /// Returns the place of the table's header.
    pub fn place(&self) -> Option<Place> {
        self.place.clone()
    }

    /// Creates an error about the table as a whole.
    pub fn error(&self, message: impl std::fmt::Display) -> ScenarioError {
        ScenarioError::new(format!("{}: {message}", self.title)).maybe_at(self.place())
    }

    /// Returns the node of a key that is not taken yet, without taking it.
    pub fn peek(&self, key: &str) -> Option<&'t Node> {
        self.left.iter().find(|(k, _)| k == key).map(|(_, node)| node)
    }

    /// Returns the keys that are not taken yet and fit.
    pub fn matching(&self, fits: impl Fn(&str) -> bool) -> Vec<(&'t str, &'t Node)> {
        self.left.iter().filter(|(key, _)| fits(key)).map(|(key, node)| (key.as_str(), node)).collect()
    }

    pub fn take(&mut self, key: &str) -> Option<&'t Node> {
        let index = self.left.iter().position(|(k, _)| k == key)?;
        Some(&self.left.remove(index).1)
    }

    pub fn read<T: Setting>(&mut self, key: &str) -> Result<Option<T>, ScenarioError> {
        let Some(node) = self.take(key) else { return Ok(None) };
        let Some(raw) = node.raw() else {
            let message = format!("{}: `{key}`: found {}, expected {}", self.title, node.describe(), T::expected());
            return Err(ScenarioError::new(message).at(node.place.clone()));
        };
        T::read(&raw)
            .map(Some)
            .map_err(|wrong| ScenarioError::new(format!("{}: `{key}`: {wrong}", self.title)).at(node.place.clone()))
    }

    /// Takes a word that must be one of `allowed`.
    pub fn word(&mut self, key: &str, allowed: &[&'static str]) -> Result<Option<&'static str>, ScenarioError> {
        let Some(node) = self.take(key) else { return Ok(None) };
        let found = node.raw();
        if let Some(Raw::Text(word)) = &found
            && let Some(known) = allowed.iter().find(|a| *a == word)
        {
            return Ok(Some(known));
        }
        let message = format!("{}: `{key}`: found {}, allowed are {}", self.title, node.describe(), list(allowed));
        let error = ScenarioError::new(message).at(node.place.clone());
        let near = match &found {
            Some(Raw::Text(word)) => nearest(word, allowed.iter().copied()),
            _ => None,
        };
        Err(did_you_mean(error, near))
    }

    /// Takes a word that must be one of `choices`, and returns its meaning.
    pub fn choice<T: Copy>(&mut self, key: &str, choices: &[(&'static str, T)]) -> Result<Option<T>, ScenarioError> {
        let words: Vec<&'static str> = choices.iter().map(|choice| choice.0).collect();
        let found = self.word(key, &words)?;
        Ok(choices.iter().find(|choice| Some(choice.0) == found).map(|choice| choice.1))
    }

    /// Takes `kind`, one of a registry, with its default parameters.
    pub(crate) fn kind<T: Registry>(&mut self) -> Result<Option<T>, ScenarioError> {
        let Some(node) = self.take("kind") else { return Ok(None) };
        let name = match node.raw() {
            Some(Raw::Text(name)) => name,
            _ => node.describe(),
        };
        let wrong = |unknown| ScenarioError::new(format!("{}: `kind`: {unknown}", self.title)).at(node.place.clone());
        T::named(&name).map(Some).map_err(wrong)
    }

    pub(crate) fn no_kind<T: Registry>(&self) -> ScenarioError {
        self.error(format!("`kind` is missing; allowed are {}", kinds::<T>()))
    }

    pub fn table(&mut self, key: &str) -> Result<Option<Section<'t>>, ScenarioError> {
        self.take(key).map(|node| Section::of(node, format!("[{key}]"))).transpose()
    }

    /// Takes an array of tables.
    pub fn tables(&mut self, key: &str, title: &str) -> Result<Vec<Section<'t>>, ScenarioError> {
        let Some(node) = self.take(key) else { return Ok(Vec::new()) };
        let Value::List(items) = &node.value else {
            let message = format!("`{key}`: found {}, expected one or more [[{title}]] tables", node.describe());
            let help = format!("write `[[{title}]]` with two brackets: there may be several");
            return Err(ScenarioError::new(message).at(node.key.clone()).help(help));
        };
        let title = |i: usize| format!("[[{title}]] {}", i + 1);
        items.iter().enumerate().map(|(i, item)| Section::of(item, title(i))).collect()
    }

    /// Sets `parameters` from all remaining keys; `also` names the keys that were taken before, for the message.
    pub(crate) fn fill(self, parameters: &mut dyn Parameters, also: &[&'static str]) -> Result<(), ScenarioError> {
        let mut mistakes = Mistakes::default();
        for (key, node) in &self.left {
            let Some(raw) = node.raw() else {
                let names: Vec<_> = parameters.documentation().iter().map(|p| p.name).collect();
                mistakes.add(match names.contains(&key.as_str()) {
                    false => self.unknown(key, node, &names, also),
                    true => {
                        let found = node.describe();
                        let message = format!("{}: `{key}`: found {found}, expected a value", self.title);
                        ScenarioError::new(message).at(node.place.clone())
                    }
                });
                continue;
            };
            match parameters.set(key, &raw) {
                Ok(()) => {}
                Err(SetError::UnknownKey { allowed, .. }) => mistakes.add(self.unknown(key, node, &allowed, also)),
                Err(SetError::InvalidValue { key, wrong }) => {
                    mistakes
                        .add(ScenarioError::new(format!("{}: `{key}`: {wrong}", self.title)).at(node.place.clone()));
                }
            }
        }
        mistakes.or(())
    }

    /// Returns all remaining keys.
    pub fn rest(self) -> impl Iterator<Item = (&'t String, &'t Node)> {
        self.left.into_iter().map(|(key, node)| (key, node))
    }

    /// Fails if a key remains; `allowed` are all valid keys.
    pub fn finish(self, allowed: &[&'static str]) -> Result<(), ScenarioError> {
        self.left.first().map_or(Ok(()), |(key, node)| Err(self.unknown(key, node, &[], allowed)))
    }

    fn unknown(&self, key: &str, node: &Node, own: &[&'static str], also: &[&'static str]) -> ScenarioError {
        let allowed: Vec<&'static str> = also.iter().chain(own).copied().collect();
        let message = format!("{}: unknown key `{key}`; allowed are {}", self.title, list(&allowed));
        did_you_mean(ScenarioError::new(message).at(node.key.clone()), nearest(key, allowed))
    }
}

pub(crate) struct Both<'a>(pub(crate) &'a mut dyn Parameters, pub(crate) &'a mut dyn Parameters);

impl Parameters for Both<'_> {
    fn documentation(&self) -> Vec<Parameter> {
        let mut all = self.0.documentation();
        all.extend(self.1.documentation());
        all
    }
    fn set(&mut self, key: &str, value: &Raw) -> Result<(), SetError> {
        match self.0.set(key, value) {
            Err(SetError::UnknownKey { allowed, .. }) => self.1.set(key, value).map_err(|error| match error {
                SetError::UnknownKey { key, allowed: more, .. } => {
                    let allowed: Vec<_> = allowed.into_iter().chain(more).collect();
                    let nearest = nearest(&key, allowed.iter().copied());
                    SetError::UnknownKey { key, allowed, nearest }
                }
                wrong => wrong,
            }),
            done => done,
        }
    }
    fn entries(&self) -> Vec<(&'static str, Raw)> {
        let mut all = self.0.entries();
        all.extend(self.1.entries());
        all
    }
}

pub(crate) fn kinds<T: Registry>() -> String {
    list(&T::all().iter().map(|about| about.name).collect::<Vec<_>>())
}

/// Lists the names, separated by commas.
pub fn list(names: &[&str]) -> String {
    names.join(", ")
}

/// Adds the nearest choice as the remedy, if there is one.
pub fn did_you_mean(error: ScenarioError, near: Option<String>) -> ScenarioError {
    match near {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error,
    }
}
