//! A scenario as text that can be extended and reduced, with the files that it names.

use crate::Dice;
use anabranch_backend::Setup;
use anabranch_scenario::{Scenario, ScenarioError, Tree, library};
use std::{collections::BTreeMap, fs, io, path::Path};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section {
    /// `[run]` or `[[fault]]`; empty for top-level keys.
    pub(crate) header: String,
    pub(crate) keys: Vec<(String, String)>,
}

impl Section {
    pub(crate) fn new(header: &str) -> Self {
        Section { header: header.into(), keys: Vec::new() }
    }

    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.raw(key, format!("\"{value}\""))
    }

    /// Adds a key with a TOML value.
    pub(crate) fn raw(mut self, key: &str, value: impl ToString) -> Self {
        self.keys.retain(|(k, _)| k != key);
        self.keys.push((key.into(), value.to_string()));
        self
    }

    /// Adds keys with probability 1 / `times`.
    pub(crate) fn now_and_then(self, dice: &mut Dice, times: u64, keys: impl FnOnce(&mut Dice, Self) -> Self) -> Self {
        if dice.once_in(times) { keys(dice, self) } else { self }
    }

    /// Adds a key with one of `values` with probability 1 / `times`.
    pub(crate) fn maybe(self, dice: &mut Dice, times: u64, key: &str, values: &[&str]) -> Self {
        self.now_and_then(dice, times, |dice, section| section.text(key, dice.pick(values)))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.keys.iter().find(|(k, _)| k == key).map(|(_, value)| value.trim_matches('"'))
    }
}

/// Scenario, the files it names, and the links to capture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Draft {
    pub(crate) sections: Vec<Section>,
    pub(crate) files: BTreeMap<String, String>,
    /// Directed links to capture (`run --pcap`).
    pub(crate) captures: Vec<String>,
}

impl Draft {
    pub(crate) fn new(seed: u64) -> Self {
        let top = Section::new("").text("name", "soak");
        let top = if i64::try_from(seed).is_ok() { top.raw("seed", seed) } else { top.text("seed", &seed.to_string()) };
        Draft { sections: vec![top], files: BTreeMap::new(), captures: Vec::new() }
    }

    pub(crate) fn with(&self, section: Section) -> Self {
        let mut more = self.clone();
        more.sections.push(section);
        more
    }

    pub(crate) fn section(&self, header: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.header == header)
    }

    pub(crate) fn text(&self) -> String {
        let mut out: String = self.captures.iter().map(|link| format!("{CAPTURE}{link}\n")).collect();
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

    fn write_files(&self, folder: &Path) -> io::Result<()> {
        self.files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    }

    /// Writes the scenario after `preface`, and its files, to the new directory `folder`.
    pub(crate) fn write(&self, folder: &Path, preface: &str) -> io::Result<()> {
        fs::create_dir(folder)?;
        self.write_into(folder, preface)
    }

    pub(crate) fn write_into(&self, folder: &Path, preface: &str) -> io::Result<()> {
        let comments: String = preface.lines().map(|line| format!("# {line}").trim_end().to_string() + "\n").collect();
        fs::write(folder.join(SCENARIO), comments + &self.text())?;
        self.write_files(folder)
    }

    /// Reads the scenario and builds its setup with captures. Its files, if any, are written to `folder`.
    pub(crate) fn load(&self, folder: &Path) -> Result<(Scenario, Setup), ScenarioError> {
        self.write_files(folder).map_err(|error| ScenarioError::new(format!("{}: {error}", folder.display())))?;
        let scenario = Scenario::read(Tree::parse(SCENARIO, &self.text())?, "scenario", folder)?;
        let mut setup = scenario.setup(scenario.seed)?;
        capture(&mut setup, &self.captures)?;
        Ok((scenario, setup))
    }
}

fn capture(setup: &mut Setup, links: &[String]) -> Result<(), ScenarioError> {
    for link in links {
        let found = setup.topology.link_named(link).map_err(|error| ScenarioError::new(error.to_string()))?;
        setup.measure.capture_links.extend(found.first());
    }
    setup.measure.capture_links.sort_unstable();
    setup.measure.capture_links.dedup();
    setup.measure.capture_limit = anabranch_study::pcap::MAX_PACKETS;
    Ok(())
}

/// Reads a scenario (a file, or a ready-made one) as `anabranch run` does, with the captures of a kept case.
pub(super) fn read(name: &str) -> Result<(Scenario, Setup), ScenarioError> {
    let scenario = library::load(name, &[], None)?;
    let mut setup = scenario.setup(scenario.seed)?;
    let text = fs::read_to_string(name).unwrap_or_default();
    let links: Vec<String> = text.lines().filter_map(|line| line.strip_prefix(CAPTURE)).map(str::to_string).collect();
    capture(&mut setup, &links)?;
    Ok((scenario, setup))
}

pub(crate) const SCENARIO: &str = "scenario.toml";

/// File that describes a failure, beside the scenario.
pub(crate) const REPORT: &str = "failure.txt";

const CAPTURE: &str = "# capture: ";

#[test]
fn stored_cases_are_read_with_captures_and_files() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let topology = Section::new("[topology]").text("kind", "file").text("path", "graph.adj");
    let mut draft = Draft::new(7).with(topology).with(Section::new("[[workload]]").text("kind", "permutation"));
    draft.captures.push("host0->switch0".into());
    draft.files.insert("graph.adj".into(), "0 1\n1\n".into());
    let at = folder.path().join("case");
    draft.write(&at, "Found by a test.\n\nTo see it again: ...").expect("written");
    let (scenario, setup) = read(&at.join(SCENARIO).to_string_lossy()).expect("read");
    assert_eq!((scenario.seed, setup.topology.hosts, setup.measure.capture_links.len()), (7, 2, 1));
    // Existing files are not overwritten.
    assert!(draft.write(&at, "").is_err());
}
