//! Marked blocks of the docs, written from stored rows: `<!-- reproduce: hopper fig3 -->` to `<!-- end -->`.

use super::{ClaimSet, PAPERS, Paper, PaperPlan, PaperResult, Scale, StoredRows, StudyPlan, plans, text};
use anabranch_results::{Inputs, OutputFile};
use anabranch_scenario::{ScenarioError, did_you_mean};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

const BEGIN: &str = "<!-- reproduce:";
const END: &str = "<!-- end -->";

/// Page with its blocks regenerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub path: PathBuf,
    pub found: String,
    /// Text from the stored rows.
    pub required: String,
}

impl Page {
    /// Returns `true` if the current text matches the stored rows.
    pub fn matches(&self) -> bool {
        self.found == self.required
    }

    /// Writes the text from the stored rows.
    pub fn write(&self) -> io::Result<()> {
        let file = OutputFile::new(&self.path, true, &Inputs::default()).map_err(io::Error::other)?;
        file.write_all(self.required.as_bytes()).map_err(io::Error::other)
    }
}

/// Returns every page of docs/ and claims/ with such blocks in the repository at `root`, README included.
/// Fails if a block names an unknown item or has no end, or if stored rows cannot be read.
pub fn pages(root: &Path) -> Result<Vec<Page>, ScenarioError> {
    let mut paths = vec![root.join("README.md")];
    let within =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect::<Vec<_>>();
    // The folders of docs/ have no folders with pages; those of claims/ have a page each.
    let mut entries: Vec<PathBuf> = within(&root.join("docs"));
    entries.extend(within(&root.join("claims")));
    entries.extend(entries.clone().iter().flat_map(|path| within(path)));
    entries.sort();
    paths.extend(entries.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    let mut results = Results { root, found: BTreeMap::new(), claim_sets: BTreeMap::new() };
    let mut pages = vec![];
    for path in paths {
        let Ok(found) = fs::read_to_string(&path) else { continue };
        if !found.contains(BEGIN) {
            continue;
        }
        let required = fill(&found, &mut |words| results.block(words))
            .map_err(|(line, error)| error.of(&format!("{}, line {line}", path.display())))?;
        pages.push(Page { path, found, required });
    }
    Ok(pages)
}

/// Returns the text with every block replaced by the result of `block` for its words. Code fences are left unchanged.
fn fill(
    text: &str,
    block: &mut dyn FnMut(&[&str]) -> Result<String, ScenarioError>,
) -> Result<String, (usize, ScenarioError)> {
    let mut out = String::with_capacity(text.len());
    let (mut lines, mut fenced) = (text.split_inclusive('\n').zip(1..), false);
    while let Some((line, number)) = lines.next() {
        out += line;
        fenced ^= line.trim_start().starts_with("```");
        let Some(words) = line.trim().strip_prefix(BEGIN).filter(|_| !fenced) else { continue };
        let Some(words) = words.strip_suffix("-->") else {
            return Err((number, ScenarioError::new("the mark of a block is not closed: `-->` is missing")));
        };
        let words: Vec<&str> = words.split_whitespace().collect();
        out += "\n";
        out += block(&words).map_err(|error| (number, error))?.trim_end();
        out += "\n\n";
        let Some((end, _)) = lines.find(|(line, _)| line.trim() == END || line.trim().starts_with(BEGIN)) else {
            return Err((number, ScenarioError::new(format!("the block has no end: `{END}` is missing"))));
        };
        if end.trim() != END {
            return Err((
                number,
                ScenarioError::new(format!("the block has no end before the next: `{END}` is missing")),
            ));
        }
        out += end;
    }
    Ok(out)
}

type FromStoredRows = (PaperResult, StoredRows, BTreeMap<String, StudyPlan>);

struct Results<'r> {
    root: &'r Path,
    found: BTreeMap<(&'static str, &'static str), FromStoredRows>,
    claim_sets: BTreeMap<&'static str, ClaimSet>,
}

impl Results<'_> {
    fn fetch(&mut self, paper: Paper, scale: Scale) -> Result<(), ScenarioError> {
        if !self.claim_sets.contains_key(paper.name) {
            self.claim_sets.insert(paper.name, ClaimSet::in_folder(paper, &self.root.join("claims"))?);
        }
        let claim_set = &self.claim_sets[paper.name];
        let key = (paper.name, scale.word());
        if !self.found.contains_key(&key) {
            let stored_rows = StoredRows::read(self.root, paper.name)?;
            let result = PaperPlan::from_stored_rows(claim_set, scale, &stored_rows)?;
            self.found.insert(key, (result, stored_rows, plans(claim_set, scale)?));
        }
        Ok(())
    }

    fn block(&mut self, words: &[&str]) -> Result<String, ScenarioError> {
        let (scale, words) = match words {
            [rest @ .., "quick"] => (Scale::Quick, rest),
            [rest @ .., "full"] => (Scale::Full, rest),
            all => (Scale::Full, all),
        };
        let [name, what, rest @ ..] = words else {
            return Err(ScenarioError::new(
                "write `reproduce: PAPER FIGURE`, `reproduce: PAPER claims [FIGURE]` or `reproduce: all totals`",
            ));
        };
        if (*name, *what) == ("all", "totals") {
            for paper in PAPERS {
                self.fetch(*paper, scale)?;
            }
            let with_claims = |paper: &&Paper| !self.claim_sets[paper.name].claims.is_empty();
            let of = |paper: &Paper| {
                let (result, _, plans) = &self.found[&(paper.name, scale.word())];
                (*paper, result, plans)
            };
            return Ok(text::totals_table(&PAPERS.iter().filter(with_claims).map(of).collect::<Vec<_>>(), scale));
        }
        let Some(paper) = PAPERS.iter().find(|paper| paper.name == *name) else {
            let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
            let error = ScenarioError::new(format!("no paper `{name}`"));
            return Err(did_you_mean(error, anabranch_settings::nearest(name, names)));
        };
        self.fetch(*paper, scale)?;
        let claim_set = &self.claim_sets[paper.name];
        let (result, stored_rows, plans) = &self.found[&(paper.name, scale.word())];
        if *what == "claims" {
            let required = rest.first();
            let claims: Vec<_> = result
                .claims
                .iter()
                .filter(|(claim, _)| {
                    required.is_none_or(|figure| claim.figure.as_deref() == Some(*figure) || claim.id == *figure)
                })
                .collect();
            if claims.is_empty() && required.is_some() {
                return Err(ScenarioError::new(format!("no claim of {name} is about `{}`", required.unwrap_or(&""))));
            }
            return Ok(text::verdicts(claim_set, &claims, plans, result, stored_rows, scale));
        }
        let Some((figure, shown)) = result.figures.iter().find(|(figure, _)| figure.id == *what) else {
            let names: Vec<&str> =
                claim_set.figures.iter().map(|figure| figure.id.as_str()).chain(["claims"]).collect();
            let error = ScenarioError::new(format!("{name} has no figure `{what}`"));
            return Err(did_you_mean(error, anabranch_settings::nearest(what, names)));
        };
        Ok(match shown {
            Some(shown) => shown.tables.clone(),
            None => format!(
                "{}: {} at {} scale.\n",
                figure.title,
                text::not_run(&figure.studies, stored_rows, scale),
                scale.word()
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_replaced_and_the_rest_stays() {
        let text = "a\n<!-- reproduce: x y -->\nold\n<!-- end -->\nb\n```text\n<!-- reproduce: z -->\n```\n";
        let once = fill(text, &mut |words| Ok(format!("{}!\n", words.join("+")))).unwrap();
        assert_eq!(
            once,
            "a\n<!-- reproduce: x y -->\n\nx+y!\n\n<!-- end -->\nb\n```text\n<!-- reproduce: z -->\n```\n"
        );
        let twice = fill(&once, &mut |words| Ok(format!("{}!\n", words.join("+")))).unwrap();
        assert_eq!(once, twice);
    }

    #[test]
    fn a_block_without_an_end_is_named() {
        let (line, error) = fill("a\n<!-- reproduce: x -->\nb\n", &mut |_| Ok(String::new())).unwrap_err();
        assert_eq!(line, 2);
        assert!(error.to_string().contains("<!-- end -->"));
        let two = "<!-- reproduce: x -->\n<!-- reproduce: y -->\n<!-- end -->\n";
        assert!(fill(two, &mut |_| Ok(String::new())).is_err());
    }

    #[test]
    fn tables_of_docs_match_stored_rows() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let pages = pages(&root).unwrap_or_else(|error| panic!("{error}"));
        let wrong: Vec<_> =
            pages.iter().filter(|page| !page.matches()).map(|page| page.path.display().to_string()).collect();
        assert!(wrong.is_empty(), "write them again with `anabranch reproduce PAPER --no-run --write-docs`: {wrong:?}");
        let rows = root.join("claims/rows");
        let bytes: u64 = walk(&rows).iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum();
        assert!(bytes < 5_000_000, "the stored rows take {bytes} B");
    }

    fn walk(path: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
    }
}
