//! What the papers claim, as data: what is run for it, how the paper draws it, and the rule that turns our numbers into a
//! verdict. The files lie in `claims/` and come with the command.

mod check;
mod docs;
mod figure;
mod judge;
mod kept;
mod metric;
mod model;
mod parse;
mod plan;
mod rows;
mod run;
#[cfg(test)]
mod run_tests;
mod select;
#[cfg(test)]
mod tests;
mod text;
mod verdict;

pub use docs::{Page, pages};
pub use figure::Shown;
pub use judge::{Detail, Judged};
pub use kept::Kept;
pub use metric::{LinkFilter, Metric, MetricError};
pub use model::{
    Across, Best, Claim, ClaimKind, Figure, FigureKind, Filter, Operand, Published, Quick, Reduce, Study, Take, Target,
};
pub use parse::SourceFile;
pub use plan::{Coordinate, Plan, Scale};
pub use rows::{Part, Row, Rows, Wanted};
pub use run::{Cost, Outcome, PaperResult, Reproduction, Settings, Shelf};
pub use select::Group;
pub use text::{told, totals};
pub use verdict::{Compared, Effect, Verdict};

use anabranch_scenario::{error::ScenarioError, section::did_you_mean};
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
        return Err(did_you_mean(error, anabranch_settings::nearest(name, names)));
    };
    Ok(vec![book(paper)?])
}
