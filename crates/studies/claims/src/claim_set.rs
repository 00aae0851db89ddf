//! Papers and the content of their claim files, with all names checked.

use super::{
    Claim, Figure, Reading, SourceFile, Study,
    every::EVERY,
    parse::{Parsed, parse},
};
use anabranch_scenario::{Place, ScenarioError, did_you_mean, list};
use anabranch_settings::nearest;
use std::{collections::BTreeMap, path::Path};

/// Paper with claim files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Name in the command, and of the folder with its files.
    pub name: &'static str,
    pub title: &'static str,
}

/// The papers, in the order of the command.
pub const PAPERS: &[Paper] = &[
    Paper { name: "hopper", title: "Hopper (arXiv 2506.08132)" },
    Paper { name: "hf2t", title: "HF2T (APNet 2024)" },
    Paper { name: "prime", title: "PRIME (arXiv 2507.23012)" },
    Paper { name: "spritz", title: "Spritz (path-aware load balancing in low-diameter networks)" },
    Paper { name: "mrc", title: "MRC (arXiv 2605.04333)" },
    Paper { name: "matrix", title: "Every scheme on every ground (ours)" },
];

/// Claim files embedded in the command: paper, file name, text.
const EMBEDDED: &[(&str, &str, &str)] = &include!(concat!(env!("OUT_DIR"), "/claims.rs"));

/// Content of the claim files of one paper.
#[derive(Clone, Debug)]
pub struct ClaimSet {
    /// Paper that the files are about.
    pub paper: Paper,
    /// Names for values in tables and figures.
    pub names: BTreeMap<String, String>,
    pub studies: Vec<Study>,
    pub figures: Vec<Figure>,
    pub claims: Vec<Claim>,
    /// Readings of the paper that are not ours.
    pub readings: Vec<Reading>,
}

impl ClaimSet {
    /// Parses the files of a paper and checks the references between studies and figures.
    pub fn read(paper: Paper, files: &[SourceFile]) -> Result<Self, ScenarioError> {
        let Parsed { names, studies, figures, claims, readings } = parse(files)?;
        let mut claim_set = ClaimSet { paper, names, studies, figures, claims, readings };
        claim_set.assign_readings()?;
        claim_set.check()?;
        Ok(claim_set)
    }

    /// Returns the claim set of `paper`, from the files embedded in the command.
    pub fn embedded(paper: Paper) -> Result<Self, ScenarioError> {
        let files = EMBEDDED.iter().filter(|(of, ..)| *of == paper.name);
        let files: Vec<SourceFile> = files
            .map(|(of, name, text)| SourceFile { name: format!("claims/{of}/{name}"), text: (*text).to_string() })
            .collect();
        ClaimSet::read(paper, &files)
    }

    /// Returns the claim set of `paper`, from the files in its subfolder of `folder`.
    /// Errors: [`ScenarioError`] of the first error in them, or if one cannot be read.
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
        ClaimSet::read(paper, &files)
    }

    /// Restricts studies of every scheme to some; with none nothing changes.
    pub fn restrict(&mut self, schemes: &[String]) {
        let every = |study: &&mut Study| study.schemes.iter().any(|scheme| scheme == EVERY);
        for study in self.studies.iter_mut().filter(every).filter(|_| !schemes.is_empty()) {
            study.schemes = schemes.iter().map(|scheme| format!("{EVERY}:{scheme}")).collect();
        }
    }

    /// Adds each reading to the claims that it names.
    fn assign_readings(&mut self) -> Result<(), ScenarioError> {
        for reading in &self.readings {
            for id in &reading.claims {
                let Some(claim) = self.claims.iter_mut().find(|claim| claim.id == *id) else {
                    let names = self.claims.iter().map(|claim| claim.id.as_str());
                    let message = format!("reading `{}` names the claim `{id}`, which does not exist", reading.id);
                    let error = ScenarioError::new(message).at(reading.place.clone());
                    return Err(did_you_mean(error, nearest(id, names)));
                };
                if !claim.readings.contains(&reading.id) {
                    claim.readings.push(reading.id.clone());
                }
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ScenarioError> {
        let unique = |what: &str, ids: Vec<(&String, &Place)>| {
            let twice = ids.iter().enumerate().find(|(i, (id, _))| ids[..*i].iter().any(|(other, _)| other == id));
            match twice {
                Some((_, (id, place))) => {
                    Err(ScenarioError::new(format!("the {what} `{id}` is defined twice")).at((*place).clone()))
                }
                None => Ok(()),
            }
        };
        unique("study", self.studies.iter().map(|study| (&study.id, &study.place)).collect())?;
        unique("figure", self.figures.iter().map(|figure| (&figure.id, &figure.place)).collect())?;
        unique("claim", self.claims.iter().map(|claim| (&claim.id, &claim.place)).collect())?;
        // The command accepts the id of a figure or of a claim.
        if let Some(claim) = self.claims.iter().find(|claim| self.figures.iter().any(|figure| figure.id == claim.id)) {
            let message = format!("a figure and a claim are named `{}`", claim.id);
            return Err(ScenarioError::new(message).at(claim.place.clone()).help("name the claim differently"));
        }
        unique("reading", self.readings.iter().map(|reading| (&reading.id, &reading.place)).collect())?;
        let readings: Vec<&str> = self.readings.iter().map(|reading| reading.id.as_str()).collect();
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
            for reading in &claim.readings {
                known("reading", reading, &readings, &by, &claim.place)?;
            }
            if let Some(figure) = &claim.figure {
                known("figure", figure, &figures, &by, &claim.place)?;
            }
        }
        Ok(())
    }

    pub fn study(&self, id: &str) -> Option<&Study> {
        self.studies.iter().find(|study| study.id == id)
    }

    pub(crate) fn readings_of<'c>(&'c self, claim: &'c Claim) -> impl Iterator<Item = &'c Reading> {
        claim.readings.iter().filter_map(|id| self.readings.iter().find(|reading| reading.id == *id))
    }

    /// Returns the name for a value in tables and figures.
    pub fn display_name<'n>(&'n self, value: &'n str) -> &'n str {
        self.names.get(value).map_or(value, String::as_str)
    }
}

/// Returns each [`ClaimSet`] of `name`, a paper or `all`: those embedded in the command, or from the files in `folder`.
/// Fails if there is no such paper or folder, or if a file is invalid.
pub fn claim_sets(name: &str, folder: Option<&Path>) -> Result<Vec<ClaimSet>, ScenarioError> {
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(ScenarioError::new(format!("--claims: {} is no directory", folder.display()))
            .help("give a directory with a folder per paper, such as `claims` in the repository"));
    }
    let claim_set = |paper: &Paper| match folder {
        Some(folder) => ClaimSet::in_folder(*paper, folder),
        None => ClaimSet::embedded(*paper),
    };
    let wanted: Vec<&Paper> = PAPERS.iter().filter(|paper| name == "all" || paper.name == name).collect();
    if wanted.is_empty() {
        let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).chain(["all"]).collect();
        let error = ScenarioError::new(format!("no paper `{name}`; there are {}", names.join(", ")));
        return Err(did_you_mean(error, nearest(name, names)));
    }
    if let Some(folder) = folder.filter(|folder| !wanted.iter().any(|paper| folder.join(paper.name).is_dir())) {
        let names: Vec<&str> = wanted.iter().map(|paper| paper.name).collect();
        return Err(ScenarioError::new(format!("--claims: {} has no folder {}", folder.display(), names.join(", ")))
            .help("give a directory with a folder per paper, such as `claims` in the repository"));
    }
    wanted.into_iter().map(claim_set).collect()
}
