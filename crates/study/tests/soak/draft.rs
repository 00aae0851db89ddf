//! A scenario as text that can be added to and taken from, with the files that it names.

use anabranch_backend::Setup;
use anabranch_study::{ScenarioError, scenario::Scenario, tree::Tree};
use std::{collections::BTreeMap, fs, io, path::Path};

/// A table of a scenario file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section {
    /// `[run]` or `[[fault]]`; empty for the keys at the top.
    pub(crate) header: String,
    /// Keys and values as they stand in the file.
    pub(crate) keys: Vec<(String, String)>,
}

impl Section {
    pub(crate) fn new(header: &str) -> Self {
        Section { header: header.into(), keys: Vec::new() }
    }

    /// Adds a key whose value is a word.
    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.raw(key, format!("\"{value}\""))
    }

    /// Adds a key whose value is written as in TOML.
    pub(crate) fn raw(mut self, key: &str, value: impl ToString) -> Self {
        self.keys.retain(|(k, _)| k != key);
        self.keys.push((key.into(), value.to_string()));
        self
    }

    /// The value of a key, without quotation marks.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.keys.iter().find(|(k, _)| k == key).map(|(_, value)| value.trim_matches('"'))
    }
}

/// A scenario and the files it names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draft {
    pub(crate) sections: Vec<Section>,
    pub(crate) files: BTreeMap<String, String>,
}

impl Draft {
    /// A scenario of that seed and nothing else.
    pub(crate) fn new(seed: u64) -> Self {
        let top = Section::new("").text("name", "soak").raw("seed", seed);
        Draft { sections: vec![top], files: BTreeMap::new() }
    }

    pub(crate) fn with(&self, section: Section) -> Self {
        let mut more = self.clone();
        more.sections.push(section);
        more
    }

    /// The first section of that header.
    pub(crate) fn section(&self, header: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.header == header)
    }

    /// The scenario file.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for section in &self.sections {
            if !section.header.is_empty() {
                out += &format!("\n{}\n", section.header);
            }
            for (key, value) in &section.keys {
                out += &format!("{key} = {value}\n");
            }
        }
        out
    }

    /// Reads a scenario file of this simple form and the files beside it.
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        let mut draft = Draft { sections: vec![Section::new("")], files: BTreeMap::new() };
        for line in fs::read_to_string(folder.join(SCENARIO))?.lines().map(str::trim) {
            let section = draft.sections.last_mut().expect("the top");
            match line.split_once('=') {
                _ if line.is_empty() || line.starts_with('#') => {}
                _ if line.starts_with('[') => draft.sections.push(Section::new(line)),
                Some((key, value)) => section.keys.push((key.trim().into(), value.trim().into())),
                None => return Err(io::Error::other(format!("not a line of a simple scenario: {line}"))),
            }
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != SCENARIO && name != REPORT {
                draft.files.insert(name, fs::read_to_string(entry.path())?);
            }
        }
        Ok(draft)
    }

    /// Writes scenario and files into `folder`, which is emptied before.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        fs::write(folder.join(SCENARIO), self.text())?;
        self.files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    }

    /// The scenario, checked, and what it stands for. Its files, if any, are written to `folder`.
    pub(crate) fn load(&self, folder: &Path) -> Result<(Scenario, Setup), ScenarioError> {
        if !self.files.is_empty() {
            self.write(folder).map_err(|error| ScenarioError::new(error.to_string()))?;
        }
        let scenario = Scenario::read(Tree::parse(SCENARIO, &self.text())?, "s", folder)?;
        let setup = scenario.setup(scenario.seed)?;
        Ok((scenario, setup))
    }
}

/// Name of the scenario in its folder.
pub(crate) const SCENARIO: &str = "s.toml";

/// Beside a scenario that failed: what went wrong.
pub(crate) const REPORT: &str = "failure.txt";
