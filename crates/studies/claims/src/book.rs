//! Papers, and everything that is kept of each: read from its files, names in them checked.

use super::{
    claim::Claim,
    model::{Figure, Study},
    parse::{Parsed, SourceFile, parse},
};
use anabranch_scenario::{
    error::ScenarioError,
    section::{did_you_mean, list},
    tree::Place,
};
use anabranch_settings::nearest;
use std::{collections::BTreeMap, path::Path};

/// A paper whose claims are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// What the command calls it, and the folder of its files.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
}

/// The papers, in the order of the command.
pub const PAPERS: &[Paper] = &[
    Paper { name: "hopper", title: "Hopper (arXiv 2506.08132)" },
    Paper { name: "hf2t", title: "HF2T (APNet 2024)" },
    Paper { name: "prime", title: "PRIME (arXiv 2507.23012)" },
    Paper { name: "spritz", title: "Spritz (path-aware load balancing in low-diameter networks)" },
];

/// Claim files as they come with the command: paper, name of the file, text.
const EMBEDDED: &[(&str, &str, &str)] = &include!(concat!(env!("OUT_DIR"), "/claims.rs"));

/// Everything that is kept of one paper.
#[derive(Clone, Debug)]
pub struct Book {
    /// The paper.
    pub paper: Paper,
    /// How values are written in tables and figures.
    pub names: BTreeMap<String, String>,
    /// What is run.
    pub studies: Vec<Study>,
    /// How the paper draws it.
    pub figures: Vec<Figure>,
    /// What it says.
    pub claims: Vec<Claim>,
}

impl Book {
    /// Reads the files of a paper. What they say of each other is checked too: studies, figures, dimensions.
    ///
    /// # Errors
    /// [`ScenarioError`] of the first mistake.
    pub fn read(paper: Paper, files: &[SourceFile]) -> Result<Self, ScenarioError> {
        let Parsed { names, studies, figures, claims } = parse(files)?;
        let book = Book { paper, names, studies, figures, claims };
        book.check()?;
        Ok(book)
    }

    /// The one of `paper`, from the files that come with the command.
    ///
    /// # Errors
    /// [`ScenarioError`] of the first mistake in them.
    pub fn embedded(paper: Paper) -> Result<Self, ScenarioError> {
        let files = EMBEDDED.iter().filter(|(of, ..)| *of == paper.name);
        let files: Vec<SourceFile> = files
            .map(|(of, name, text)| SourceFile { name: format!("claims/{of}/{name}"), text: (*text).to_string() })
            .collect();
        Book::read(paper, &files)
    }

    /// The one of `paper`, from the files in `folder`, where its own folder lies.
    ///
    /// # Errors
    /// [`ScenarioError`] of the first mistake in them, or where one cannot be read.
    pub fn in_folder(paper: Paper, folder: &Path) -> Result<Self, ScenarioError> {
        let entries = std::fs::read_dir(folder.join(paper.name)).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        let mut files = vec![];
        for path in paths {
            let unreadable = |error| ScenarioError::new(format!("{} cannot be read: {error}", path.display()));
            let text = anabranch_input::read_text(&path, anabranch_input::MAX_TEXT).map_err(unreadable)?;
            files.push(SourceFile { name: path.display().to_string(), text });
        }
        Book::read(paper, &files)
    }

    /// Names within the book: unique ids, studies and figures that exist.
    fn check(&self) -> Result<(), ScenarioError> {
        let unique = |what: &str, ids: Vec<(&String, &Place)>| {
            let twice = ids.iter().enumerate().find(|(i, (id, _))| ids[..*i].iter().any(|(other, _)| other == id));
            match twice {
                Some((_, (id, place))) => {
                    Err(ScenarioError::new(format!("the {what} `{id}` stands twice")).at((*place).clone()))
                }
                None => Ok(()),
            }
        };
        unique("study", self.studies.iter().map(|study| (&study.id, &study.place)).collect())?;
        unique("figure", self.figures.iter().map(|figure| (&figure.id, &figure.place)).collect())?;
        unique("claim", self.claims.iter().map(|claim| (&claim.id, &claim.place)).collect())?;
        let studies: Vec<&str> = self.studies.iter().map(|study| study.id.as_str()).collect();
        let figures: Vec<&str> = self.figures.iter().map(|figure| figure.id.as_str()).collect();
        let known = |what: &str, id: &str, names: &[&str], by: &str, place: &Place| {
            if names.contains(&id) {
                return Ok(());
            }
            let message = format!("{by} names the {what} `{id}`; there are {}", list(names));
            Err(did_you_mean(ScenarioError::new(message).at(place.clone()), nearest(id, names.iter().copied())))
        };
        for figure in &self.figures {
            for study in &figure.studies {
                known("study", study, &studies, &format!("figure `{}`", figure.id), &figure.place)?;
            }
        }
        for claim in &self.claims {
            let by = format!("claim `{}`", claim.id);
            for study in claim.studies.iter().chain(&claim.quick_studies) {
                known("study", study, &studies, &by, &claim.place)?;
            }
            if let Some(figure) = &claim.figure {
                known("figure", figure, &figures, &by, &claim.place)?;
            }
        }
        Ok(())
    }

    /// A study by its id.
    pub fn study(&self, id: &str) -> Option<&Study> {
        self.studies.iter().find(|study| study.id == id)
    }

    /// A value as it is written in tables and figures.
    pub fn written<'n>(&'n self, value: &'n str) -> &'n str {
        self.names.get(value).map_or(value, String::as_str)
    }
}

/// The books of `name`, a paper or `all`: those that come with the command, or of the files in `folder`.
///
/// # Errors
/// Where there is no such paper or folder, or a file has a mistake.
pub fn books(name: &str, folder: Option<&Path>) -> Result<Vec<Book>, ScenarioError> {
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(ScenarioError::new(format!("--claims: {} is no directory", folder.display()))
            .help("give a directory with a folder per paper, such as `claims` in the repository"));
    }
    let book = |paper: &Paper| match folder {
        Some(folder) => Book::in_folder(*paper, folder),
        None => Book::embedded(*paper),
    };
    if name == "all" {
        return PAPERS.iter().map(book).collect();
    }
    let Some(paper) = PAPERS.iter().find(|paper| paper.name == name) else {
        let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).chain(["all"]).collect();
        let error = ScenarioError::new(format!("no paper `{name}`; there are {}", names.join(", ")));
        return Err(did_you_mean(error, nearest(name, names)));
    };
    Ok(vec![book(paper)?])
}
